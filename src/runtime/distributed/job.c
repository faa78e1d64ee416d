// SPDX-License-Identifier: Apache-2.0
// The job: that it is there, and that it has failed.
#include "runtime/distributed/job.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/fork.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

// Never released, so that any thread may look at any time whether it is there.
static struct job the_job = {.turn = PTHREAD_MUTEX_INITIALIZER,
                             .notes = PTHREAD_MUTEX_INITIALIZER,
                             .failure_lock = PTHREAD_MUTEX_INITIALIZER,
                             .wake = -1,
                             .has_failed_fd = -1};
static atomic_bool is_there;

struct job *job_find(void)
{
    if (!atomic_load_explicit(&is_there, memory_order_acquire))
        return NULL;
    return the_job.forks == fork_count() ? &the_job : NULL;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_all(struct job *job)
{
    for (int i = 0; job->peers && i < job->count; i++) {
        close_one(&job->peers[i].control);
        close_one(&job->peers[i].data);
    }
    close_one(&job->wake);
    close_one(&job->has_failed_fd);
}

// Of the parent's job, whose death the others see by the last end of a socket.
static void close_in_child(void)
{
    if (!atomic_exchange(&is_there, false))
        return;
    close_all(&the_job);
    the_job.has_watcher = false;
    pthread_mutex_init(&the_job.turn, NULL);
    pthread_mutex_init(&the_job.notes, NULL);
    pthread_mutex_init(&the_job.failure_lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    fork_register(FORK_PROCESSES, NULL, close_in_child);
}

// A process that exits takes leave; one that dies does not get here.
__attribute__((destructor)) static void leave_at_exit(void)
{
    struct job *job = job_find();
    if (job)
        job_leave(job, false);
}

static void release(struct job *job)
{
    close_all(job);
    memory_release(job->peers);
    memory_release(job->processes);
    job->peers = NULL;
    job->processes = NULL;
}

// Whatever waits inside of a collective gives up.
static void end(struct job *job)
{
    if (!atomic_exchange(&is_there, false))
        return;
    job_leave(job, true);
    job_fail(job, JOT_ERR_ARGUMENT, "jot_distributed_stop was called meanwhile");
    pthread_mutex_lock(&job->turn);
    release(job);
    pthread_mutex_unlock(&job->turn);
}

static int64_t seconds_or(double seconds, double otherwise)
{
    seconds = seconds > 0 ? seconds : otherwise;
    return (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9);
}

static jot_status set_up(struct job *job, const struct address *all)
{
    size_t count = (size_t)job->count;
    job->forks = fork_count();
    job->failure = JOT_OK;
    atomic_store(&job->has_failed, false);
    atomic_store(&job->leaving, STAYING);
    job->processes = memory_allocate(count * sizeof *job->processes);
    job->peers = memory_allocate_zeroed(count * sizeof *job->peers);
    if (!job->processes || !job->peers)
        return status_out_of_memory();
    for (int i = 0; i < job->count; i++) {
        job->processes[i] = i;
        job->peers[i].control = job->peers[i].data = -1;
        job->peers[i].address = all[i];
    }
    job->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    job->has_failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job->wake < 0 || job->has_failed_fd < 0)
        return status_fail(JOT_ERR_IO, "no more files can be opened: %s", strerror(errno));
    return JOT_OK;
}

static jot_status check_builds(const struct job *job)
{
    char name[NAME_BYTES];
    for (int i = 0; i < job->count; i++)
        if (strcmp(job->peers[i].address.build, job->peers[0].address.build) != 0)
            return status_fail(JOT_ERR_CHECK, "%s has another build of jot than process 0",
                               job_name(job, i, name));
    return JOT_OK;
}

static jot_status meet_and_connect(struct job *job, const struct address *own, int listening,
                                   int64_t end, rt_meet *meet, void *ctx)
{
    void *all = NULL;
    const char *fault = meet(ctx, own, sizeof *own, &job->index, &job->count, &all);
    jot_status status =
        fault ? status_fail(JOT_ERR_DEVICE, "the processes have not met: %s", fault)
              : set_up(job, all);
    memory_release(all);
    JOT_TRY(status);
    JOT_TRY(check_builds(job));
    if (job->count == 1)
        return JOT_OK;
    JOT_TRY(job_connect(job, listening, end));
    return job_watch(job);
}

static jot_status join(struct job *job, const jot_distributed_options *options, rt_meet *meet,
                       void *ctx)
{
    int listening;
    struct address own;
    int64_t start = seconds_or(options->start_seconds, 300), end = clock_ns() + start;
    job->wait = seconds_or(options->wait_seconds, 1800);
    // Until all are there it is not known who has begun to give signs.
    atomic_store(&job->silence, start);
    JOT_TRY(address_make(options->interface, &own, &listening));
    jot_status status = meet_and_connect(job, &own, listening, end, meet, ctx);
    close(listening);
    if (status != JOT_OK)
        release(job);
    return status;
}

jot_status rt_distributed_join(const jot_distributed_options *options, rt_meet *meet, void *ctx)
{
    static const jot_distributed_options defaults;
    struct job *job = &the_job;
    options = options ? options : &defaults;
    pthread_mutex_lock(&job->turn);
    jot_status status = job_find() ? status_fail(JOT_ERR_ARGUMENT,
                                                 "jot_distributed_start: it was called before")
                                   : join(job, options, meet, ctx);
    atomic_store_explicit(&is_there, status == JOT_OK || job_find(), memory_order_release);
    pthread_mutex_unlock(&job->turn);
    JOT_TRY(status);
    struct rt_group all = rt_distributed_all();
    status = rt_distributed_barrier(&all, "jot_distributed_start");
    if (status != JOT_OK) {
        end(job);
        return status;
    }
    atomic_store(&job->silence, seconds_or(options->silence_seconds, 10));
    eventfd_write(job->wake, 1);
    return JOT_OK;
}

void jot_distributed_stop(void)
{
    struct job *job = job_find();
    if (job)
        end(job);
}

int jot_process_index(void) { return job_find() ? the_job.index : 0; }
int jot_process_count(void) { return job_find() ? the_job.count : 1; }

struct rt_group rt_distributed_all(void)
{
    static const int alone;
    struct job *job = job_find();
    return job ? (struct rt_group){job->count, job->processes} : (struct rt_group){1, &alone};
}

// ---- failure ----

jot_status job_check(struct job *job)
{
    if (!atomic_load(&job->has_failed))
        return JOT_OK;
    pthread_mutex_lock(&job->failure_lock);
    jot_status status = status_fail(job->failure, "%s", job->message);
    pthread_mutex_unlock(&job->failure_lock);
    return status;
}

jot_status rt_distributed_check(void)
{
    struct job *job = job_find();
    return job ? job_check(job) : JOT_OK;
}

jot_status jot_distributed_check(void) { return rt_distributed_check(); }

static void tell(struct job *job)
{
    struct {
        struct note note;
        char text[FAILURE_BYTES];
    } told = {.note = {.kind = NOTE_FAILURE,
                       .status = (uint8_t)job->failure,
                       .length = (uint16_t)strlen(job->message)}};
    memcpy(told.text, job->message, told.note.length);
    job_tell(job, &told, sizeof told.note + told.note.length);
}

// The others hear it before this process acts on it, and perhaps ends.
void job_fail(struct job *job, jot_status status, const char *text)
{
    pthread_mutex_lock(&job->failure_lock);
    bool is_first = !atomic_load(&job->has_failed);
    if (is_first) {
        job->failure = status;
        snprintf(job->message, sizeof job->message, "%s", text);
        if (atomic_load(&is_there))
            tell(job);
        atomic_store(&job->has_failed, true);
        eventfd_write(job->has_failed_fd, 1);
    }
    pthread_mutex_unlock(&job->failure_lock);
    for (int i = 0; i < FAILURE_CALLS && is_first; i++) {
        pthread_mutex_lock(&job->failure_lock);
        void (*call)(void *) = job->on_failure[i].call;
        void *ctx = job->on_failure[i].ctx;
        job->on_failure[i].call = NULL;
        pthread_mutex_unlock(&job->failure_lock);
        if (call)
            call(ctx);
    }
}

void rt_distributed_fail(jot_status status, const char *format, ...)
{
    struct job *job = job_find();
    char text[FAILURE_BYTES - NAME_BYTES - sizeof ": "], whole[FAILURE_BYTES], name[NAME_BYTES];
    if (!job)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(whole, sizeof whole, "%s: %s", job_name(job, job->index, name), text);
    job_fail(job, status, whole);
}

bool rt_distributed_on_failure(void (*call)(void *ctx), void *ctx)
{
    struct job *job = job_find();
    if (!job)
        return true;
    bool has_room = false;
    pthread_mutex_lock(&job->failure_lock);
    bool has_failed = atomic_load(&job->has_failed);
    for (int i = 0; i < FAILURE_CALLS && !has_room && !has_failed; i++)
        if (!job->on_failure[i].call) {
            job->on_failure[i].call = call;
            job->on_failure[i].ctx = ctx;
            has_room = true;
        }
    pthread_mutex_unlock(&job->failure_lock);
    if (has_failed)
        call(ctx);
    return has_room || has_failed;
}

void rt_distributed_off_failure(void (*call)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&the_job.failure_lock);
    for (int i = 0; i < FAILURE_CALLS; i++)
        if (the_job.on_failure[i].call == call && the_job.on_failure[i].ctx == ctx)
            the_job.on_failure[i].call = NULL;
    pthread_mutex_unlock(&the_job.failure_lock);
}

// ---- for all ----

const char *job_name(const struct job *job, int process, char *buffer)
{
    const struct address *a = &job->peers[process].address;
    int n = snprintf(buffer, NAME_BYTES, "process %d of %d", process, job->count);
    if (a->pid)
        snprintf(buffer + n, NAME_BYTES - (size_t)n, " (%.*s, process id %d)",
                 (int)sizeof a->machine - 1, a->machine, a->pid);
    return buffer;
}

int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool socket_wait(int fd, short events, int64_t end)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        int64_t left = end - clock_ns();
        int n = poll(&p, 1,
                     left <= 0           ? 0
                     : left < 1000000000 ? (int)(left / 1000000) + 1
                                         : 1000);
        if (n > 0)
            return true;
        if ((n < 0 && errno != EINTR) || left <= 0)
            return false;
    }
}
