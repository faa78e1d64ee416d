// SPDX-License-Identifier: Apache-2.0
// The thread that hears of the other processes and says that this one is there.
//
// A process that dies is known by the end of its socket, one that is stopped or cut off by its silence.
// Silence is counted from what was heard last, and signs come every eighth of the limit, so a process that is
// silent for 7/8 of it has been so for less than the limit since it was stopped.
#include "runtime/distributed/job.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define SIGNS 8
// How long leaving waits for others to notice, at most.
#define LEAVE_NS INT64_C(1000000000)

static bool is_here(const struct job *job, int i)
{
    return i != job->index && job->peers[i].control >= 0 &&
           atomic_load(&job->peers[i].state) == PEER_HERE;
}

void job_tell(struct job *job, const void *note, size_t bytes)
{
    pthread_mutex_lock(&job->notes);
    for (int i = 0; i < job->count; i++)
        if (is_here(job, i)) {
            // What a full buffer does not take is for a process that does not read: it will be silent.
            ssize_t done =
                send(job->peers[i].control, note, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)done;
        }
    pthread_mutex_unlock(&job->notes);
}

// ---- what others say ----

static void lose(struct job *job, int process, const char *how)
{
    char text[FAILURE_BYTES], name[NAME_BYTES];
    snprintf(text, sizeof text, "%s %s", job_name(job, process, name), how);
    job_fail(job, JOT_ERR_DEVICE, text);
}

// Takes the notes that are whole.
static void take_notes(struct job *job, int process)
{
    struct peer *p = &job->peers[process];
    size_t at = 0;
    while (at < p->n_read) {
        struct note note;
        char text[FAILURE_BYTES];
        size_t left = p->n_read - at;
        if (p->read[at] == NOTE_LEAVE) {
            atomic_store(&p->state, PEER_LEFT);
            shutdown(p->control, SHUT_RDWR); // says that it is known
        }
        if (p->read[at] != NOTE_FAILURE) {
            at++;
            continue;
        }
        if (left < sizeof note)
            break;
        memcpy(&note, p->read + at, sizeof note);
        if (note.length >= sizeof text) {
            lose(job, process, "says what cannot be understood");
            return;
        }
        if (left < sizeof note + note.length)
            break;
        memcpy(text, p->read + at + sizeof note, note.length);
        text[note.length] = 0;
        job_fail(job, (jot_status)note.status, text);
        at += sizeof note + note.length;
    }
    p->n_read -= at;
    memmove(p->read, p->read + at, p->n_read);
}

static void hear(struct job *job, int process)
{
    struct peer *p = &job->peers[process];
    for (;;) {
        ssize_t n =
            recv(p->control, p->read + p->n_read, sizeof p->read - p->n_read, MSG_DONTWAIT);
        if (n > 0) {
            p->heard = clock_ns();
            p->n_read += (size_t)n;
            take_notes(job, process);
            if (atomic_load(&job->has_failed) || !is_here(job, process))
                return;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            if (atomic_load(&job->leaving))
                atomic_store(&p->state, PEER_LEFT); // it has noticed
            else
                lose(job, process, "has died");
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

// ---- the thread ----

// Finds the first that has been silent too long, or when that would be.
static int64_t next_judgement(struct job *job, int64_t now)
{
    int64_t silence = atomic_load(&job->silence), limit = silence - silence / SIGNS;
    int64_t next = INT64_MAX;
    char how[64];
    for (int i = 0; i < job->count; i++) {
        if (!is_here(job, i))
            continue;
        if (now - job->peers[i].heard >= limit) {
            snprintf(how, sizeof how, "has not been heard of for %.3g s", (double)limit * 1e-9);
            lose(job, i, how);
            return next;
        }
        if (job->peers[i].heard + limit < next)
            next = job->peers[i].heard + limit;
    }
    return next;
}

static nfds_t list_sockets(struct job *job, struct pollfd *out, int *out_process)
{
    nfds_t n = 0;
    out[n++] = (struct pollfd){.fd = job->wake, .events = POLLIN};
    for (int i = 0; i < job->count; i++)
        if (is_here(job, i)) {
            out_process[n] = i;
            out[n++] = (struct pollfd){.fd = job->peers[i].control, .events = POLLIN};
        }
    return n;
}

struct watch {
    struct job *job;
    struct pollfd *sockets;
    int *processes;
};

// Returns how many others there are.
static nfds_t hear_all(const struct watch *w, int64_t until)
{
    struct job *job = w->job;
    nfds_t n = list_sockets(job, w->sockets, w->processes);
    int64_t ms = (until - clock_ns()) / 1000000 + 1;
    if (poll(w->sockets, n, ms < 0 ? 0 : ms < 1000 ? (int)ms : 1000) <= 0)
        return n - 1;
    eventfd_t ignored;
    eventfd_read(job->wake, &ignored);
    for (nfds_t i = 1; i < n && !atomic_load(&job->has_failed); i++)
        if (w->sockets[i].revents)
            hear(job, w->processes[i]);
    return n - 1;
}

// Under another limit others have given fewer signs.
static void forget_silence(struct job *job, int64_t now)
{
    for (int i = 0; i < job->count; i++)
        job->peers[i].heard = now;
}

// Hears first and judges then: this process may have been stopped itself.
static void watch_until_end(const struct watch *w)
{
    struct job *job = w->job;
    int64_t now = clock_ns(), next = now, last_sign = 0, leaves_at = INT64_MAX, silence = 0;
    for (;;) {
        nfds_t others = hear_all(w, next);
        int64_t every = atomic_load(&job->silence) / SIGNS;
        now = clock_ns();
        if (silence != every * SIGNS)
            forget_silence(job, now);
        silence = every * SIGNS;
        int leaving = atomic_load(&job->leaving);
        if (leaving && leaves_at == INT64_MAX)
            leaves_at = now + LEAVE_NS;
        if (atomic_load(&job->has_failed) || leaving == LEAVING_AT_ONCE ||
            (leaves_at < INT64_MAX && (now >= leaves_at || !others)))
            return;
        if (now - last_sign >= every) {
            job_tell(job, &(char){NOTE_HERE}, 1);
            last_sign = now;
        }
        next = next_judgement(job, now);
        if (next > last_sign + every)
            next = last_sign + every;
        if (next > leaves_at)
            next = leaves_at;
    }
}

static void *watch(void *ctx)
{
    struct watch *w = ctx;
    watch_until_end(w);
    memory_release(w);
    return NULL;
}

jot_status job_watch(struct job *job)
{
    size_t room = (size_t)job->count + 1;
    struct watch *w =
        memory_allocate(sizeof *w + room * (sizeof *w->sockets + sizeof *w->processes));
    if (!w)
        return status_out_of_memory();
    w->job = job;
    w->sockets = (struct pollfd *)(void *)(w + 1);
    w->processes = (int *)(void *)(w->sockets + room);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int fault = pthread_create(&job->watcher, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    job->has_watcher = fault == 0;
    if (fault) {
        memory_release(w);
        return status_fail(JOT_ERR_MEMORY, "no thread can be started: %s", strerror(fault));
    }
    return JOT_OK;
}

// ---- leaving ----

void job_leave(struct job *job, bool waits)
{
    atomic_store(&job->leaving, waits ? LEAVING : LEAVING_AT_ONCE);
    job_tell(job, &(char){NOTE_LEAVE}, 1);
    if (!job->has_watcher)
        return;
    eventfd_write(job->wake, 1);
    pthread_join(job->watcher, NULL);
    job->has_watcher = false;
}
