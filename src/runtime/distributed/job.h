// SPDX-License-Identifier: Apache-2.0
// The job that this process is part of, and its sockets.
#ifndef RUNTIME_DISTRIBUTED_JOB_H
#define RUNTIME_DISTRIBUTED_JOB_H

#include "runtime/distributed.h"

#include <pthread.h>
#include <stdatomic.h>

#define ADDRESS_COUNT 8
#define FAILURE_BYTES 512
#define FAILURE_CALLS 8

// What a process says of itself for others to find it.
struct address {
    unsigned char token[16]; // who knows it is of the job
    unsigned char ip[ADDRESS_COUNT][16];
    char build[33];
    char machine[64];
    uint64_t network; // the same where one is reached through the loopback
    int32_t pid;
    uint16_t port, n_ips;
};

enum peer_state {
    PEER_HERE,
    PEER_LEFT, // it has taken leave
};

// Messages over the control socket: a byte, and after NOTE_FAILURE a struct note and its text.
enum { NOTE_HERE = 'h', NOTE_LEAVE = 'l', NOTE_FAILURE = 'f' };
struct note {
    uint8_t kind, status;
    uint16_t length;
};

struct peer {
    struct address address;
    int control, data; // -1: none
    atomic_int state;  // enum peer_state
    // Of the watcher.
    int64_t heard; // when, in ns
    size_t n_read;
    unsigned char read[sizeof(struct note) + FAILURE_BYTES];
};

enum leaving { STAYING, LEAVING, LEAVING_AT_ONCE };

struct job {
    int index, count;
    int *processes; // 0, 1, 2, ...
    struct peer *peers;
    unsigned forks;          // where it is; a child of a fork is not in it
    int64_t wait;            // in ns
    _Atomic int64_t silence; // in ns
    pthread_mutex_t turn;    // of the thread that is inside of a collective
    pthread_mutex_t notes;   // of who writes to control sockets
    pthread_t watcher;
    bool has_watcher;
    int wake;           // an eventfd: there is something to do for the watcher
    atomic_int leaving; // enum leaving
    // The failure.  An eventfd that stays readable from then on.
    int has_failed_fd;
    atomic_bool has_failed;
    pthread_mutex_t failure_lock;
    jot_status failure;
    char message[FAILURE_BYTES];
    struct {
        void (*call)(void *ctx);
        void *ctx;
    } on_failure[FAILURE_CALLS];
};

// NULL where there is none.
struct job *job_find(void);
jot_status job_check(struct job *job);
// The first failure counts.  The others are told, also of what was told by another.
void job_fail(struct job *job, jot_status status, const char *text);
// "process 3 of 8 (node7, process id 4711)", in a buffer of NAME_BYTES.
enum { NAME_BYTES = 128 };
const char *job_name(const struct job *job, int process, char *buffer);

int64_t clock_ns(void);
// Waits until a socket can be used, up to that time; false when it cannot.
bool socket_wait(int fd, short events, int64_t end);

// Own address with a socket that listens there, or the reason why not.
jot_status address_make(const char *interface, struct address *out, int *out_socket);
// The sockets to all others.
jot_status job_connect(struct job *job, int listening, int64_t end);

jot_status job_watch(struct job *job);
// Takes leave and ends the watcher; with `waits` it waits a little for the others to notice.
void job_leave(struct job *job, bool waits);
void job_tell(struct job *job, const void *note, size_t bytes);

// ---- exchange ----

// Bytes for or from another process; those of one pair go one after the other.
struct part {
    int process;
    void *at;
    size_t bytes;
};
struct exchange {
    const char *kind, *what;
    bool is_named; // `what` has to be the same in all processes; `kind` has
    struct part *out, *in;
    size_t n_out, n_in;
};
// Sends and receives all.  The caller has the turn.
jot_status job_exchange(struct job *job, const struct exchange *x);

#endif
