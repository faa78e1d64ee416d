// SPDX-License-Identifier: Apache-2.0
// Collectives of GPUs: one thread hands the calls of all GPUs of a group over at once, to NCCL or, of few
// bytes, to kernels of jot's own (together.c).
//
// A communicator is made when some GPUs first do something together, and stays.  When one of them is
// lost it is aborted, which ends what the others wait in; what waits for them next says so.
//
// Of GPUs of several processes each process has its own part of a communicator; they meet by an id that one
// of them makes (runtime/distributed.h).  Calls of such a communicator do not block, so that a process
// that dies keeps nobody inside of NCCL: it is aborted when the job fails.
#include "runtime/cuda/device.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/collective.h"
#include "runtime/cuda/together.h"
#include "runtime/distributed.h"
#include "runtime/fork.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct comm {
    struct comm *next; // of all
    jot_device **members;
    size_t size; // of them
    // Those of this process, and their positions among the members.
    size_t n, positions[RT_CUDA_MOST];
    struct cuda_device *devices[RT_CUDA_MOST];
    bool has_nccl, is_none; // none: a process has no NCCL
    ncclComm_t comms[RT_CUDA_MOST];
    struct cuda_together together;
    atomic_bool is_aborted;
};

static struct comm *comms; // under the lock
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Held while calls are handed over: all GPUs get them in one order.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

FORK_KEEPS(FORK_COLLECTIVES, turn, NULL)
FORK_KEEPS(FORK_COMMUNICATORS, lock, NULL)

static jot_status nccl_status(ncclResult_t result, const char *doing)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return JOT_OK;
    return status_fail(JOT_ERR_DEVICE, "%s: NCCL says: %s", doing,
                       cuda.nccl.ncclGetErrorString(result));
}

static _Thread_local int depth;

void cuda_collective_begin(void)
{
    if (depth++ == 0)
        pthread_mutex_lock(&turn);
}

void cuda_collective_end(void)
{
    if (--depth == 0)
        pthread_mutex_unlock(&turn);
}

// ---- communicators ----

static bool is_of(const struct comm *m, size_t size, jot_device *const *members)
{
    return m->size == size && !atomic_load(&m->is_aborted) &&
           !memcmp(m->members, members, size * sizeof(jot_device *));
}

static bool is_across(const struct comm *m) { return m->n < m->size; }

static jot_status make_comm(size_t size, jot_device *const *members, struct comm **out)
{
    struct comm *m = memory_allocate_zeroed(sizeof *m);
    if (!m || !(m->members = memory_allocate(size * sizeof(jot_device *)))) {
        memory_release(m);
        return status_out_of_memory();
    }
    memcpy(m->members, members, size * sizeof(jot_device *));
    m->size = size;
    for (size_t i = 0; i < size; i++)
        if (!rt_is_elsewhere(members[i])) {
            m->positions[m->n] = i;
            m->devices[m->n++] = cuda_device_of(members[i]);
        }
    pthread_mutex_lock(&lock);
    m->next = comms;
    comms = m;
    for (size_t i = 0; i < m->n; i++)
        atomic_store(&m->devices[i]->has_peers, true);
    pthread_mutex_unlock(&lock);
    *out = m;
    return JOT_OK;
}

// Under the turn.
static jot_status get_comm(size_t n, jot_device *const *devices, struct comm **out)
{
    pthread_mutex_lock(&lock);
    struct comm *m = comms;
    while (m && !is_of(m, n, devices))
        m = m->next;
    pthread_mutex_unlock(&lock);
    *out = m;
    return m ? JOT_OK : make_comm(n, devices, out);
}

// What a process says of NCCL to the others.
struct offer {
    ncclUniqueId id;
    int is_there;
};

// The id of the first process that has a member; JOT_ERR_LIBRARY where one has no NCCL.
static jot_status agree(const struct comm *m, ncclUniqueId *out)
{
    int *processes = memory_allocate(m->size * sizeof *processes);
    struct offer own = {.is_there = 0}, *all = memory_allocate(m->size * sizeof *all);
    struct rt_group g = {0, processes};
    jot_status status = processes && all ? JOT_OK : status_out_of_memory();
    for (size_t i = 0; status == JOT_OK && i < m->size; i++) {
        int process = rt_distributed_process_of(m->members[i]);
        int64_t k = 0;
        while (k < g.count && processes[k] != process)
            k++;
        if (k == g.count)
            processes[g.count++] = process;
    }
    own.is_there = cuda_library_open(CUDA_LIBRARY_nccl) == JOT_OK &&
                   cuda.nccl.ncclGetUniqueId(&own.id) == ncclSuccess;
    const void *from = &own;
    void *to = all;
    if (status == JOT_OK)
        status = rt_distributed_all_gather(&g, "of NCCL", sizeof own, &from, &to);
    for (int64_t i = 0; status == JOT_OK && i < g.count; i++)
        if (!all[i].is_there)
            status = status_fail(JOT_ERR_LIBRARY, "process %d has no NCCL", processes[i]);
    if (status == JOT_OK)
        *out = all[0].id;
    memory_release(all);
    memory_release(processes);
    return status;
}

// Until what was begun is handed over; the failure of the job otherwise.
static jot_status settle(const struct comm *m, const char *doing)
{
    for (size_t i = 0; is_across(m) && i < m->n; i++)
        for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
            JOT_TRY(nccl_status(cuda.nccl.ncclCommGetAsyncError(m->comms[i], &state), doing));
            JOT_TRY(nccl_status(state, doing));
            JOT_TRY(rt_distributed_check());
            if (state == ncclInProgress)
                usleep(20);
        }
    return JOT_OK;
}

static void *abort_all(void *arg)
{
    struct comm *m = arg;
    for (size_t i = 0; i < m->n; i++)
        if (m->comms[i])
            cuda.nccl.ncclCommAbort(m->comms[i]);
    return NULL;
}

// By a thread that nobody waits for: NCCL may wait for a GPU that is lost, also where it is told to give up.
static void abort_comm(struct comm *m)
{
    pthread_t thread;
    if (atomic_exchange(&m->is_aborted, true))
        return;
    if (pthread_create(&thread, NULL, abort_all, m) == 0)
        pthread_detach(thread);
    else
        abort_all(m);
}

static jot_status meet(struct comm *m)
{
    static const int undefined = INT_MIN;
    ncclUniqueId id;
    ncclConfig_t config = {.size = sizeof config,
                           .magic = 0xcafebeef,
                           .version = 21700,
                           .cgaClusterSize = undefined,
                           .minCTAs = undefined,
                           .maxCTAs = undefined,
                           .splitShare = undefined};
    JOT_TRY(agree(m, &id));
    JOT_TRY(nccl_status(cuda.nccl.ncclGroupStart(), "bringing GPUs together"));
    jot_status status = JOT_OK;
    for (size_t i = 0; i < m->n && status == JOT_OK; i++) {
        status = cuda_enter(m->devices[i]);
        if (status != JOT_OK)
            break;
        status = nccl_status(cuda.nccl.ncclCommInitRankConfig(&m->comms[i], (int)m->size, id,
                                                              (int)m->positions[i], &config),
                             "bringing GPUs together");
        cuda_leave();
    }
    ncclResult_t result = cuda.nccl.ncclGroupEnd();
    if (status == JOT_OK)
        status = nccl_status(result, "bringing GPUs together");
    if (status == JOT_OK)
        status = settle(m, "bringing GPUs together");
    if (status != JOT_OK)
        abort_comm(m);
    return status;
}

// What the GPUs do with those of other processes ends with the job.
static void abort_across(void *ctx)
{
    (void)ctx;
    if (rt_distributed_check() == JOT_OK)
        return;
    char why[600];
    snprintf(why, sizeof why, "what it did together with other processes: %s",
             jot_error_message());
    cuda_collective_begin();
    pthread_mutex_lock(&lock);
    for (struct comm *m = comms; m; m = m->next) {
        if (!is_across(m) || !m->has_nccl || atomic_load(&m->is_aborted))
            continue;
        abort_comm(m);
        for (size_t i = 0; i < m->n; i++)
            cuda_give_up(m->devices[i], why);
    }
    pthread_mutex_unlock(&lock);
    cuda_collective_end();
}

static jot_status open_nccl(struct comm *m)
{
    int numbers[RT_CUDA_MOST];
    if (m->is_none)
        return status_fail(JOT_ERR_LIBRARY, "a process has no NCCL");
    if (m->has_nccl)
        return JOT_OK;
    if (is_across(m)) {
        jot_status status = meet(m);
        m->is_none = status == JOT_ERR_LIBRARY;
        JOT_TRY(status);
        rt_distributed_off_failure(abort_across, NULL);
        rt_distributed_on_failure(abort_across, NULL);
    } else {
        JOT_TRY(cuda_library_open(CUDA_LIBRARY_nccl));
        for (size_t i = 0; i < m->n; i++)
            numbers[i] = m->devices[i]->base.index;
        JOT_TRY(nccl_status(cuda.nccl.ncclCommInitAll(m->comms, (int)m->n, numbers),
                            "bringing GPUs together"));
    }
    m->has_nccl = true;
    return JOT_OK;
}

// ---- when one is lost ----

static bool has(const struct comm *m, const struct cuda_device *d)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->devices[i] == d)
            return true;
    return false;
}

void cuda_collective_lost(struct cuda_device *lost)
{
    char why[600];
    snprintf(why, sizeof why, "what it did together with %s, which is lost: %s",
             lost->base.name, lost->why_lost);
    bool is_told = false;
    pthread_mutex_lock(&lock);
    for (struct comm *m = comms; m; m = m->next) {
        if (!has(m, lost) || atomic_load(&m->is_aborted))
            continue;
        is_told |= is_across(m);
        if (!is_across(m))
            cuda_together_stop(&m->together);
        abort_comm(m);
        for (size_t i = 0; i < m->n; i++)
            if (m->devices[i] != lost)
                cuda_give_up(m->devices[i], why);
    }
    pthread_mutex_unlock(&lock);
    if (is_told)
        rt_distributed_fail(JOT_ERR_DEVICE, "%s is lost: %s", lost->base.name, lost->why_lost);
}

void cuda_check_peers(struct cuda_device *d)
{
    struct cuda_device *peers[RT_CUDA_MOST];
    size_t n = 0;
    pthread_mutex_lock(&lock);
    for (struct comm *m = comms; m; m = m->next)
        for (size_t i = 0; has(m, d) && !atomic_load(&m->is_aborted) && i < m->n; i++) {
            bool is_there = m->devices[i] == d;
            for (size_t k = 0; k < n; k++)
                is_there |= peers[k] == m->devices[i];
            if (!is_there)
                peers[n++] = m->devices[i];
        }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < n; i++) {
        if (atomic_load(&peers[i]->is_lost) || cuda_enter(peers[i]) != JOT_OK)
            continue;
        CUresult result = cuda.driver.cuStreamQuery(peers[i]->stream);
        if (result != CUDA_ERROR_NOT_READY)
            cuda_status(peers[i], result, "running a program");
        cuda_leave();
    }
}

// ---- the calls ----

// The type by which it is done, how many of them an element has; -1: by none.
static ncclDataType_t type_of(const struct collective *c, uint64_t *out_per_element)
{
    static const int types[] = {
        [JOT_I8] = ncclInt8,     [JOT_U8] = ncclUint8,      [JOT_I32] = ncclInt32,
        [JOT_U32] = ncclUint32,  [JOT_I64] = ncclInt64,     [JOT_U64] = ncclUint64,
        [JOT_F16] = ncclFloat16, [JOT_BF16] = ncclBfloat16, [JOT_F32] = ncclFloat32,
        [JOT_F64] = ncclFloat64, [JOT_C64] = ncclFloat32,   [JOT_C128] = ncclFloat64,
        [JOT_BOOL] = ncclUint8,
    };
    bool is_exact = !dtype_is_inexact(c->dtype), is_complex = dtype_is_complex(c->dtype);
    *out_per_element = is_complex ? 2 : 1;
    if (!collective_reduces(c)) {
        *out_per_element = dtype_get(c->dtype)->bytes;
        return ncclUint8;
    }
    if (c->dtype == JOT_I16 || c->dtype == JOT_U16)
        return -1;
    switch (c->combiner) {
    case COLLECTIVE_SUM:
        return types[c->dtype];
    case COLLECTIVE_PRODUCT:
        return is_complex ? -1 : types[c->dtype];
    case COLLECTIVE_MAX:
    case COLLECTIVE_MIN: // NCCL's ones of floats drop what is not a number
        return is_exact ? types[c->dtype] : -1;
    default: // of bits; true and false are numbers as well
        return c->dtype == JOT_BOOL ? ncclUint8 : -1;
    }
}

static ncclRedOp_t operation_of(const struct collective *c)
{
    switch (c->combiner) {
    case COLLECTIVE_PRODUCT:
        return ncclProd;
    case COLLECTIVE_MAX:
    case COLLECTIVE_OR:
        return ncclMax;
    case COLLECTIVE_MIN:
    case COLLECTIVE_AND:
        return ncclMin;
    default:
        return ncclSum;
    }
}

// What one GPU has to do, and whether it was handed over.
struct turn {
    const struct collective *c;
    struct comm *m;
    struct cuda_device *d;
    size_t number, position; // among those of this process, and of the group
    const char *from;
    char *to;
    uint64_t from_bytes, to_bytes;
};

static ncclResult_t send(const struct turn *t, const char *from, uint64_t bytes, size_t peer)
{
    return cuda.nccl.ncclSend(from, bytes, ncclUint8, (int)peer, t->m->comms[t->number],
                              cuda_stream(t->d));
}

static ncclResult_t receive(const struct turn *t, char *to, uint64_t bytes, size_t peer)
{
    return cuda.nccl.ncclRecv(to, bytes, ncclUint8, (int)peer, t->m->comms[t->number],
                              cuda_stream(t->d));
}

static ncclResult_t exchange(const struct turn *t)
{
    uint64_t part = t->to_bytes / t->m->size;
    ncclResult_t result = ncclSuccess;
    for (size_t k = 0; k < t->m->size && result == ncclSuccess; k++) {
        result = send(t, t->from + k * part, part, k);
        if (result == ncclSuccess)
            result = receive(t, t->to + k * part, part, k);
    }
    return result;
}

// A block may go to several devices.
static ncclResult_t permute(const struct turn *t)
{
    ncclResult_t result = ncclSuccess;
    for (size_t k = 0; k < t->m->size && result == ncclSuccess; k++)
        if (t->c->sources[k] == (int64_t)t->position)
            result = send(t, t->from, t->from_bytes, k);
    if (result == ncclSuccess && t->c->sources[t->position] >= 0)
        result = receive(t, t->to, t->to_bytes, (size_t)t->c->sources[t->position]);
    return result;
}

static ncclResult_t hand_over(const struct turn *t)
{
    uint64_t per;
    ncclDataType_t type = type_of(t->c, &per);
    uint64_t element = dtype_get(t->c->dtype)->bytes / per;
    ncclComm_t comm = t->m->comms[t->number];
    CUstream stream = cuda_stream(t->d);
    switch (t->c->kind) {
    case COLLECTIVE_ALL_REDUCE:
        return cuda.nccl.ncclAllReduce(t->from, t->to, t->to_bytes / element, type,
                                       operation_of(t->c), comm, stream);
    case COLLECTIVE_REDUCE_SCATTER:
        return cuda.nccl.ncclReduceScatter(t->from, t->to, t->to_bytes / element, type,
                                           operation_of(t->c), comm, stream);
    case COLLECTIVE_ALL_GATHER:
        return cuda.nccl.ncclAllGather(t->from, t->to, t->from_bytes / element, type, comm,
                                       stream);
    case COLLECTIVE_ALL_TO_ALL:
        return exchange(t);
    default:
        return permute(t);
    }
}

static jot_status fail_aborted(const struct comm *m, const struct cuda_device *d)
{
    for (size_t i = 0; i < m->n; i++)
        if (atomic_load(&m->devices[i]->is_lost))
            return status_fail(JOT_ERR_DEVICE, "%s cannot work with %s: that is lost: %s",
                               d->base.name, m->devices[i]->base.name, m->devices[i]->why_lost);
    return JOT_OK;
}

// The calls of one group, between the start and the end of a group of NCCL's.
static jot_status hand_over_group(const struct collective *c, jot_device *const *devices,
                                  const struct rt_blocks *b, uint64_t to_bytes,
                                  uint64_t from_bytes)
{
    struct comm *m;
    size_t n = (size_t)c->size;
    JOT_TRY(get_comm(n, devices, &m));
    for (size_t i = 0; i < m->n; i++) {
        struct cuda_device *d = m->devices[i];
        size_t position = m->positions[i];
        struct turn t = {
            c, m, d, i, position, b->from[position], b->to[position], from_bytes, to_bytes};
        JOT_TRY(fail_aborted(m, d));
        if (c->kind == COLLECTIVE_PERMUTE && c->sources[position] < 0)
            JOT_TRY(cuda_clear(&d->base, b->to[position], to_bytes));
        JOT_TRY(cuda_enter(d));
        ncclResult_t result = hand_over(&t);
        cuda_leave();
        JOT_TRY(nccl_status(result, collective_name(c->kind)));
    }
    return JOT_OK;
}

static jot_status copy_alone(jot_device *const *devices, size_t n_groups,
                             const struct collective *c, const struct rt_blocks *groups,
                             uint64_t bytes)
{
    for (size_t i = 0; i < n_groups; i++) {
        if (c->kind == COLLECTIVE_PERMUTE && c->sources[0] < 0)
            JOT_TRY(cuda_clear(devices[i], groups[i].to[0], bytes));
        else if (groups[i].to[0] != groups[i].from[0])
            JOT_TRY(
                cuda_copy(devices[i], groups[i].to[0], devices[i], groups[i].from[0], bytes));
    }
    return JOT_OK;
}

// Where nothing is missing; what NCCL lacks the host does.
bool cuda_records_collective(const struct collective *c)
{
    uint64_t per;
    return c->size == 1 || cuda_together_knows(c) ||
           (type_of(c, &per) >= 0 && cuda_library_open(CUDA_LIBRARY_nccl) == JOT_OK);
}

static jot_status check_all(const struct comm *m)
{
    for (size_t i = 0; i < m->n; i++)
        JOT_TRY(fail_aborted(m, m->devices[i]));
    return JOT_OK;
}

static jot_status by_kernels(jot_device *const *devices, const struct collective *c,
                             size_t n_groups, const struct rt_blocks *groups, uint64_t to_bytes,
                             uint64_t from_bytes)
{
    for (size_t i = 0; i < n_groups; i++) {
        struct comm *m;
        JOT_TRY(get_comm((size_t)c->size, devices + i * (size_t)c->size, &m));
        JOT_TRY(check_all(m));
        if (is_across(m))
            return JOT_ERR_LIBRARY;
        JOT_TRY(
            cuda_together_run(&m->together, m->devices, c, &groups[i], to_bytes, from_bytes));
    }
    return JOT_OK;
}

static jot_status by_nccl(jot_device *const *devices, const struct collective *c,
                          size_t n_groups, const struct rt_blocks *groups, uint64_t to_bytes,
                          uint64_t from_bytes)
{
    uint64_t per;
    if (type_of(c, &per) < 0)
        return status_fail(JOT_ERR_LIBRARY, "NCCL has no %s of %s",
                           collective_combiner_name(c->combiner), jot_dtype_name(c->dtype));
    // They are made outside of what is handed over together.
    for (size_t i = 0; i < n_groups; i++) {
        struct comm *m;
        JOT_TRY(get_comm((size_t)c->size, devices + i * (size_t)c->size, &m));
        JOT_TRY(open_nccl(m));
    }
    JOT_TRY(nccl_status(cuda.nccl.ncclGroupStart(), "starting a collective"));
    jot_status status = JOT_OK;
    for (size_t i = 0; status == JOT_OK && i < n_groups; i++)
        status =
            hand_over_group(c, devices + i * (size_t)c->size, &groups[i], to_bytes, from_bytes);
    ncclResult_t result = cuda.nccl.ncclGroupEnd();
    if (status == JOT_OK)
        status = nccl_status(result, collective_name(c->kind));
    for (size_t i = 0; status == JOT_OK && i < n_groups; i++) {
        struct comm *m;
        status = get_comm((size_t)c->size, devices + i * (size_t)c->size, &m);
        if (status == JOT_OK)
            status = settle(m, collective_name(c->kind));
    }
    return status;
}

static atomic_bool has_no_kernels; // for some that were tried

bool cuda_collective_by_kernels(const struct collective *c, uint64_t to_bytes,
                                uint64_t from_bytes)
{
    return cuda_together_knows(c) &&
           collective_part(c, to_bytes, from_bytes) <= COLLECTIVE_SMALL &&
           !atomic_load(&has_no_kernels);
}

jot_status cuda_collective(jot_device *const *devices, const struct collective *c,
                           size_t n_groups, const struct rt_blocks *groups, uint64_t to_bytes,
                           uint64_t from_bytes)
{
    jot_status status = JOT_ERR_LIBRARY;
    if (to_bytes == 0)
        return JOT_OK;
    if (c->size == 1)
        return copy_alone(devices, n_groups, c, groups, to_bytes);
    cuda_collective_begin();
    if (cuda_together_knows(c) &&
        collective_part(c, to_bytes, from_bytes) <= COLLECTIVE_SMALL) {
        status = by_kernels(devices, c, n_groups, groups, to_bytes, from_bytes);
        if (status == JOT_ERR_LIBRARY)
            atomic_store(&has_no_kernels, true);
    }
    if (status == JOT_ERR_LIBRARY)
        status = by_nccl(devices, c, n_groups, groups, to_bytes, from_bytes);
    cuda_collective_end();
    return status;
}
