// SPDX-License-Identifier: Apache-2.0
// A job of several processes, forked by a test: what they leave behind, and how they end.
#ifndef RUNTIME_JOB_H
#define RUNTIME_JOB_H

#include "runtime/distributed/job.h"

#include <stdatomic.h>
#include <sys/types.h>

#define MOST 8

// What the processes of a job leave behind, in memory that all have.
struct shared {
    atomic_int met;
    atomic_int at; // another one has come to its point of the test
    struct address addresses[MOST];
    _Atomic int64_t fell; // when the victim died or stopped
    struct outcome {
        jot_status status;
        char message[FAILURE_BYTES];
        int64_t when;
    } outcome[MOST];
};
extern struct shared *shared;
extern pid_t pids[MOST];

struct test {
    int count;
    jot_distributed_options options;
    void (*body)(int index, const void *ctx);
    const void *ctx;
    bool has_strangers;
    int absent; // does not start; 0: none
};

void job_note(int index, jot_status status);
void job_start(const struct test *t);
// All end by themselves, with 0 but the one that died.
void job_finish(const struct test *t, int victim);
void job_run(const struct test *t);
// All but one have the status, with a message that has both texts.
void job_all_are(const struct test *t, int but, jot_status status, const char *a,
                 const char *b);

#endif
