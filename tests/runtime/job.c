// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include "base/memory.h"
#include "support/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared *shared;
pid_t pids[MOST];

// Somebody who is not of the job connects: silent, with nonsense, and as another process.
static void disturb(const struct address *a)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(a->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char nonsense[200] = "GET / HTTP/1.0";
    for (int i = 0; i < 3; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)(void *)&at, sizeof at), 0);
        if (i)
            ck_assert_int_eq(send(fd, nonsense, sizeof nonsense, MSG_NOSIGNAL),
                             sizeof nonsense);
        close(fd);
    }
}

struct member {
    const struct test *test;
    int index;
};

static const char *meet(void *ctx, const void *own, size_t bytes, int *out_index,
                        int *out_count, void **out_all)
{
    const struct member *p = ctx;
    int count = p->test->count;
    ck_assert_uint_eq(bytes, sizeof *shared->addresses);
    memcpy(&shared->addresses[p->index], own, bytes);
    if (p->test->has_strangers)
        disturb(&shared->addresses[p->index]);
    atomic_fetch_add(&shared->met, 1);
    while (atomic_load(&shared->met) < count - (p->test->absent > 0))
        usleep(200);
    if (p->test->absent)
        shared->addresses[p->test->absent] = (struct address){.port = 1};
    memcpy(shared->addresses[p->test->absent].build, shared->addresses[0].build,
           sizeof shared->addresses->build);
    *out_index = p->index, *out_count = count;
    *out_all = memory_allocate((size_t)count * bytes);
    memcpy(*out_all, shared->addresses, (size_t)count * bytes);
    return NULL;
}

void job_note(int index, jot_status status)
{
    struct outcome *o = &shared->outcome[index];
    o->when = clock_ns();
    o->status = status;
    snprintf(o->message, sizeof o->message, "%s", status == JOT_OK ? "" : jot_error_message());
}

static void run_process(const struct test *t, int index)
{
    struct member member = {t, index};
    alarm(120);
    jot_status status = rt_distributed_join(&t->options, meet, &member);
    job_note(index, status);
    if (status == JOT_OK) {
        ck_assert_int_eq(jot_process_index(), index);
        ck_assert_int_eq(jot_process_count(), t->count);
        t->body(index, t->ctx);
    }
    exit(0);
}

void job_start(const struct test *t)
{
    shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (int i = 0; i < t->count; i++) {
        pids[i] = 0;
        if (t->absent && i == t->absent)
            continue;
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            run_process(t, i);
    }
}

// All end by themselves, with 0 but the one that died.
void job_finish(const struct test *t, int victim)
{
    for (int i = 0; i < t->count; i++) {
        int how;
        if (!pids[i])
            continue;
        ck_assert_int_eq(waitpid(pids[i], &how, 0), pids[i]);
        if (i == victim)
            ck_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        else
            ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "process %d: %x, %s", i, how,
                          shared->outcome[i].message);
    }
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1); // no child is left
}

void job_run(const struct test *t)
{
    job_start(t);
    job_finish(t, -1);
}

void job_all_are(const struct test *t, int but, jot_status status, const char *a, const char *b)
{
    for (int i = 0; i < t->count; i++) {
        const struct outcome *o = &shared->outcome[i];
        if (i == but)
            continue;
        ck_assert_msg(o->status == status && strstr(o->message, a) && strstr(o->message, b),
                      "process %d: %s, '%s' does not have '%s' and '%s'", i,
                      jot_status_name(o->status), o->message, a, b);
    }
}
