// SPDX-License-Identifier: Apache-2.0
// Bytes between processes, to and from all others at once, so that no order of theirs is a deadlock.
//
// What one process sends another in an exchange is one message: a head that says what the exchange is, and the
// parts.  Both know how long it has to be.
#include "runtime/distributed/job.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define WHAT_BYTES 96
#define VECTOR_MOST 64 // parts of one call of the system
// How long the reason for the end of a data socket may take to come by the control socket.
#define REASON_NS INT64_C(2000000000)

struct head {
    uint64_t kind, bytes; // a hash of what has to be the same
    char what[WHAT_BYTES];
};

// One direction between this process and another one.
struct flow {
    int process;
    bool is_out, is_ready;
    struct head head, heard; // as it has to be, and as it came
    struct iovec *parts;     // the head first
    size_t n_parts, at;
};

struct traffic {
    struct job *job;
    const struct exchange *x;
    struct head head;
    struct flow *flows;
    struct pollfd *sockets;
    struct iovec *parts;
    int *flow_of; // by process and direction, -1: none
    int n_flows;
};

static jot_status fail(struct job *job, jot_status status, const char *text)
{
    job_fail(job, status, text);
    return job_check(job);
}

// ---- what goes where ----

static void add_flows(struct traffic *t, const struct part *parts, size_t n, bool is_out)
{
    int *flow_of = t->flow_of + (is_out ? t->job->count : 0);
    for (size_t i = 0; i < n; i++) {
        int *at = &flow_of[parts[i].process];
        if (*at < 0) {
            *at = t->n_flows++;
            t->flows[*at] = (struct flow){.process = parts[i].process,
                                          .is_out = is_out,
                                          .is_ready = true,
                                          .head = t->head,
                                          .n_parts = 1};
        }
        t->flows[*at].n_parts++;
        t->flows[*at].head.bytes += parts[i].bytes;
    }
}

static void add_parts(struct traffic *t, const struct part *parts, size_t n, bool is_out)
{
    const int *flow_of = t->flow_of + (is_out ? t->job->count : 0);
    for (size_t i = 0; i < n; i++) {
        struct flow *f = &t->flows[flow_of[parts[i].process]];
        f->parts[f->n_parts++] = (struct iovec){parts[i].at, parts[i].bytes};
    }
}

static bool prepare(struct traffic *t)
{
    const struct exchange *x = t->x;
    size_t processes = 2 * (size_t)t->job->count, parts = x->n_out + x->n_in + processes;
    t->flows = memory_allocate(processes * sizeof *t->flows);
    t->sockets = memory_allocate((processes + 1) * sizeof *t->sockets);
    t->parts = memory_allocate(parts * sizeof *t->parts);
    t->flow_of = memory_allocate(processes * sizeof *t->flow_of);
    if (!t->flows || !t->sockets || !t->parts || !t->flow_of)
        return false;
    for (size_t i = 0; i < processes; i++)
        t->flow_of[i] = -1;
    add_flows(t, x->out, x->n_out, true);
    add_flows(t, x->in, x->n_in, false);
    struct iovec *next = t->parts;
    for (int i = 0; i < t->n_flows; i++) {
        struct flow *f = &t->flows[i];
        f->parts = next;
        next += f->n_parts;
        f->parts[0] = (struct iovec){f->is_out ? &f->head : &f->heard, sizeof f->head};
        f->n_parts = 1;
    }
    add_parts(t, x->out, x->n_out, true);
    add_parts(t, x->in, x->n_in, false);
    return true;
}

static void release(struct traffic *t)
{
    memory_release(t->flows);
    memory_release(t->sockets);
    memory_release(t->parts);
    memory_release(t->flow_of);
}

// ---- moving ----

static jot_status compare_flows(struct traffic *t, const struct flow *f)
{
    struct job *job = t->job;
    char own[NAME_BYTES], other[NAME_BYTES], text[FAILURE_BYTES];
    if (f->heard.kind == f->head.kind && f->heard.bytes == f->head.bytes)
        return JOT_OK;
    snprintf(text, sizeof text,
             "%s is at %s, %llu bytes, and %s at %.*s, %llu bytes: all processes do the same "
             "things in the same order",
             job_name(job, job->index, own), f->head.what, (unsigned long long)f->head.bytes,
             job_name(job, f->process, other), WHAT_BYTES - 1, f->heard.what,
             (unsigned long long)f->heard.bytes);
    return fail(job, JOT_ERR_CHECK, text);
}

// The data socket has ended: the reason is on its way.
static jot_status explain(struct traffic *t, const struct flow *f)
{
    struct job *job = t->job;
    char name[NAME_BYTES], text[FAILURE_BYTES];
    int64_t end = clock_ns() + REASON_NS;
    while (clock_ns() < end && atomic_load(&job->peers[f->process].state) == PEER_HERE &&
           !socket_wait(job->has_failed_fd, POLLIN, clock_ns() + 10000000))
        continue;
    if (atomic_load(&job->has_failed))
        return job_check(job);
    bool has_left = atomic_load(&job->peers[f->process].state) == PEER_LEFT;
    snprintf(text, sizeof text, "%s has %s before %.*s", job_name(job, f->process, name),
             has_left ? "left" : "closed its socket", WHAT_BYTES - 1, t->head.what);
    return fail(job, JOT_ERR_DEVICE, text);
}

static void advance(struct flow *f, size_t done)
{
    while (f->at < f->n_parts && done >= f->parts[f->at].iov_len)
        done -= f->parts[f->at++].iov_len;
    if (f->at < f->n_parts) {
        f->parts[f->at].iov_base = (char *)f->parts[f->at].iov_base + done;
        f->parts[f->at].iov_len -= done;
    }
}

// As much as goes without waiting.
static jot_status move(struct traffic *t, struct flow *f, bool *has_moved)
{
    int fd = t->job->peers[f->process].data;
    while (f->at < f->n_parts) {
        size_t n = f->n_parts - f->at;
        struct msghdr m = {.msg_iov = f->parts + f->at,
                           .msg_iovlen = n < VECTOR_MOST ? n : VECTOR_MOST};
        ssize_t done = f->is_out ? sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : recvmsg(fd, &m, MSG_DONTWAIT);
        if (done > 0) {
            bool has_head = f->at > 0;
            advance(f, (size_t)done);
            *has_moved = true;
            if (!f->is_out && !has_head && f->at > 0)
                JOT_TRY(compare_flows(t, f));
        } else if (done < 0 && errno == EAGAIN) {
            return JOT_OK;
        } else if (done == 0 || errno != EINTR) {
            return explain(t, f);
        }
    }
    return JOT_OK;
}

static nfds_t list_sockets(struct traffic *t)
{
    nfds_t n = 0;
    t->sockets[n++] = (struct pollfd){.fd = t->job->has_failed_fd, .events = POLLIN};
    for (int i = 0; i < t->n_flows; i++) {
        const struct flow *f = &t->flows[i];
        if (f->at < f->n_parts)
            t->sockets[n++] = (struct pollfd){.fd = t->job->peers[f->process].data,
                                              .events = f->is_out ? POLLOUT : POLLIN};
    }
    return n;
}

static void note_ready(struct traffic *t)
{
    const struct pollfd *next = t->sockets + 1;
    for (int i = 0; i < t->n_flows; i++) {
        struct flow *f = &t->flows[i];
        f->is_ready = f->at < f->n_parts && (next++)->revents;
    }
}

static jot_status give_up(struct traffic *t)
{
    struct job *job = t->job;
    char own[NAME_BYTES], other[NAME_BYTES], text[FAILURE_BYTES];
    int i = 0;
    while (t->flows[i].at == t->flows[i].n_parts)
        i++;
    snprintf(text, sizeof text, "%s has waited %.3g s at %s for %s",
             job_name(job, job->index, own), (double)job->wait * 1e-9, t->head.what,
             job_name(job, t->flows[i].process, other));
    return fail(job, JOT_ERR_DEVICE, text);
}

static jot_status move_all(struct traffic *t)
{
    int64_t end = clock_ns() + t->job->wait;
    for (;;) {
        bool has_moved = false;
        for (int i = 0; i < t->n_flows; i++)
            if (t->flows[i].is_ready)
                JOT_TRY(move(t, &t->flows[i], &has_moved));
        nfds_t n = list_sockets(t);
        if (n == 1)
            return JOT_OK;
        int64_t now = clock_ns();
        if (has_moved)
            end = now + t->job->wait;
        else if (now >= end)
            return give_up(t);
        int64_t ms = (end - now) / 1000000 + 1;
        poll(t->sockets, n, ms < INT_MAX ? (int)ms : INT_MAX);
        if (t->sockets[0].revents)
            return job_check(t->job);
        note_ready(t);
    }
}

// Who has left takes nothing any more; what it had to give may be on the way.
static jot_status check_flows(struct traffic *t)
{
    JOT_TRY(job_check(t->job));
    for (int i = 0; i < t->n_flows; i++)
        if (t->flows[i].is_out &&
            atomic_load(&t->job->peers[t->flows[i].process].state) == PEER_LEFT)
            return explain(t, &t->flows[i]);
    return JOT_OK;
}

jot_status job_exchange(struct job *job, const struct exchange *x)
{
    struct traffic t = {.job = job, .x = x};
    snprintf(t.head.what, sizeof t.head.what, "%s %s", x->kind, x->what);
    t.head.kind = hash_combine(hash_bytes(0, x->kind, strlen(x->kind)),
                               x->is_named ? hash_bytes(0, x->what, strlen(x->what)) : 0);
    if (!prepare(&t)) {
        release(&t);
        return fail(job, JOT_ERR_MEMORY, "out of memory");
    }
    jot_status status = check_flows(&t);
    if (status == JOT_OK)
        status = move_all(&t);
    release(&t);
    return status;
}
