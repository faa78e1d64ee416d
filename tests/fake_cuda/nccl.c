// SPDX-License-Identifier: Apache-2.0
// NCCL, by the collectives of the host.
//
// The calls of a group are kept up to its end, and are then done for each communicator in the order in
// which its GPUs made them.  On streams that are captured all of a group is a node of each, which waits
// for those of the other GPUs.
#include "fake_cuda/fake.h"

#include "base/dtype.h"
#include "runtime/collective.h"

#include <stdio.h>

#define RANKS 16
#define CALLS 4096

// Of all ranks of a communicator.
struct root {
    int n, uses;
    bool is_aborted;
};
struct ncclComm {
    struct root *root;
    int rank;
};

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND, RECEIVE };

struct call {
    struct root *root;
    enum kind kind;
    int rank, peer, op;
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    CUstream stream;
    bool is_done;
};

static _Thread_local struct call calls[CALLS]; // of the open group
static _Thread_local int n_calls, depth;
static int collectives;

int fake_cuda_collectives(void) { return collectives; }

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22809;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess ? "no error" : "fake error";
}

ncclResult_t ncclCommInitAll(ncclComm_t *out, int n, const int *devices)
{
    (void)devices;
    long fault = fake_number("FAKE_CUDA_NO_NCCL", 0);
    if (fault)
        return (ncclResult_t)fault;
    struct root *root = fake_untracked(calloc(1, sizeof *root));
    root->n = n;
    for (int i = 0; i < n; i++) {
        out[i] = fake_untracked(calloc(1, sizeof **out));
        *out[i] = (struct ncclComm){root, i};
    }
    return ncclSuccess;
}

// Only of one process.
ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    (void)out;
    return 5;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    (void)out, (void)n, (void)id, (void)rank, (void)config;
    return 5;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    (void)comm;
    *out = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->root->is_aborted = true;
    free(comm);
    return ncclSuccess;
}

// ---- what a group does ----

static jot_dtype dtype_of(ncclDataType_t type)
{
    static const jot_dtype dtypes[] = {JOT_I8,  JOT_U8,  JOT_I32, JOT_U32, JOT_I64,
                                       JOT_U64, JOT_F16, JOT_F32, JOT_F64, JOT_BF16};
    return dtypes[type];
}

static enum collective_combiner combiner_of(int op)
{
    static const enum collective_combiner combiners[] = {COLLECTIVE_SUM, COLLECTIVE_PRODUCT,
                                                         COLLECTIVE_MAX, COLLECTIVE_MIN};
    return combiners[op];
}

// What one call and its fellows on the other ranks do.
static void do_together(struct call *all, int n, struct call *first)
{
    static const enum collective_kind kinds[] = {
        COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER};
    void *to[RANKS];
    const void *from[RANKS];
    int size = first->root->n;
    for (int rank = 0; rank < size; rank++) {
        struct call *c = all;
        while (c < all + n && (c->is_done || c->root != first->root || c->rank != rank))
            c++;
        // All ranks make the same call, or they would wait for one another for ever.
        if (c == all + n || c->kind != first->kind || c->count != first->count ||
            c->type != first->type || c->op != first->op)
            abort();
        to[rank] = c->to;
        from[rank] = c->from;
        c->is_done = true;
    }
    size_t bytes = first->count * dtype_get(dtype_of(first->type))->bytes;
    struct collective what = {.kind = kinds[first->kind],
                              .combiner = combiner_of(first->op),
                              .dtype = dtype_of(first->type),
                              .size = size};
    rt_collective_run(&what, 1, &(struct rt_blocks){to, from},
                      bytes * (first->kind == ALL_GATHER ? (size_t)size : 1),
                      bytes * (first->kind == REDUCE_SCATTER ? (size_t)size : 1));
}

static void do_send(struct call *all, int n, struct call *send)
{
    struct call *c = all;
    while (c < all + n && (c->is_done || c->kind != RECEIVE || c->root != send->root ||
                           c->rank != send->peer || c->peer != send->rank))
        c++;
    if (c == all + n || c->count != send->count || c->type != send->type)
        abort();
    memcpy(c->to, send->from, send->count * dtype_get(dtype_of(send->type))->bytes);
    c->is_done = send->is_done = true;
}

struct batch {
    int n;
    struct call calls[];
};

static void run_batch(void *argument)
{
    struct batch *b = argument;
    for (int i = 0; i < b->n; i++)
        b->calls[i].is_done = false;
    for (int i = 0; i < b->n; i++)
        if (!b->calls[i].is_done && b->calls[i].kind == SEND)
            do_send(b->calls, b->n, &b->calls[i]);
    for (int i = 0; i < b->n; i++)
        if (!b->calls[i].is_done && b->calls[i].kind == RECEIVE)
            abort();
        else if (!b->calls[i].is_done)
            do_together(b->calls, b->n, &b->calls[i]);
    collectives++;
}

// The streams that the calls are on, each once.
static int streams_of(const struct batch *b, CUstream *out)
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        int k = 0;
        while (k < n && out[k] != b->calls[i].stream)
            k++;
        if (k == n)
            out[n++] = b->calls[i].stream;
    }
    return n;
}

static ncclResult_t end_group(void)
{
    static _Thread_local CUstream streams[CALLS];
    struct batch *b = fake_untracked(calloc(1, sizeof *b + (size_t)n_calls * sizeof *b->calls));
    bool is_aborted = false;
    b->n = n_calls;
    memcpy(b->calls, calls, (size_t)n_calls * sizeof *calls);
    for (int i = 0; i < n_calls; i++)
        is_aborted |= calls[i].root->is_aborted;
    n_calls = 0;
    if (!is_aborted && b->n)
        fake_meet(streams_of(b, streams), streams, run_batch, b, &b->calls[0].root->is_aborted);
    else
        free(b);
    return is_aborted ? 5 : ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) { return --depth ? ncclSuccess : end_group(); }

static ncclResult_t add(ncclComm_t comm, struct call c)
{
    long fault = fake_number("FAKE_CUDA_NCCL_FAULT", 0);
    if (fault || n_calls == CALLS)
        return fault ? (ncclResult_t)fault : 3;
    c.root = comm->root;
    c.rank = comm->rank;
    c.from = c.from ? fake_near((CUdeviceptr)(uintptr_t)c.from) : NULL;
    c.to = c.to ? fake_near((CUdeviceptr)(uintptr_t)c.to) : NULL;
    calls[n_calls++] = c;
    return depth ? ncclSuccess : end_group();
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, (struct call){.kind = ALL_REDUCE,
                                   .op = op,
                                   .from = from,
                                   .to = to,
                                   .count = count,
                                   .type = type,
                                   .stream = stream});
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, (struct call){.kind = REDUCE_SCATTER,
                                   .op = op,
                                   .from = from,
                                   .to = to,
                                   .count = count,
                                   .type = type,
                                   .stream = stream});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, (struct call){.kind = ALL_GATHER,
                                   .from = from,
                                   .to = to,
                                   .count = count,
                                   .type = type,
                                   .stream = stream});
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, (struct call){.kind = SEND,
                                   .from = from,
                                   .count = count,
                                   .type = type,
                                   .peer = peer,
                                   .stream = stream});
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add(comm, (struct call){.kind = RECEIVE,
                                   .to = to,
                                   .count = count,
                                   .type = type,
                                   .peer = peer,
                                   .stream = stream});
}
