// SPDX-License-Identifier: Apache-2.0
// Products of a program, kernels of few blocks, and what GPUs do together, as branches of the graph that is
// captured: they wait only for steps before them that use the same memory, one of the two writing it, and only
// such wait for them.  Kernels that fill the device stay in the order of the steps; small ones and products are
// free, and what GPUs do together waits for the links between them.  That has rows of its own: one for each channel
// that kernels of jot's own have (together.h), which they take in turn, and one for NCCL, which waits for all
// of these and they for it.  In a row each waits for the one before it, so all GPUs do them in one order.
//
// What they use are ranges of addresses, as they are in the call that is captured, so memory that is
// used again for something else counts, and so does an output in the place of a donated input.  The
// workspace of a product is memory that it writes; there are several, taken in turn.
//
// The steps since the last one that waited for all are looked at, so many at most; then one waits for
// all again.  Steps of which it is not known what they use do so too.  All wait for the first one: that
// a set of no nodes may be waited for is not said.
#include "base/memory.h"
#include "base/status.h"
#include "runtime/cuda/together.h"
#include "runtime/steps.h"

#include <string.h>

#define STEPS_MOST 64 // bits of a set of steps

// Steps of a row come one after the other.
enum row { KERNELS, BY_NCCL, CHANNELS, ROWS = CHANNELS + CUDA_TOGETHER_CHANNELS, NO_ROW };

struct use {
    uintptr_t begin, end;
    bool is_written;
};

struct branch {
    uint32_t first_use, use_count;
    uint32_t first_node, node_count; // what it ended with
    uint64_t before;                 // steps that it comes after
    bool is_whole;                   // every step after it waits for it
};

struct cuda_branches {
    struct cuda_branches *next; // of the thread
    CUstream stream;            // that is captured
    struct branch steps[STEPS_MOST];
    uint32_t count;
    int last[ROWS]; // by row, -1: none
    struct use *uses;
    uint32_t use_count, use_room;
    CUgraphNode *nodes;
    uint32_t node_count, node_room;
    unsigned workspaces; // that were taken so far
    unsigned exchanges;  // by kernels of jot's own, so far
};

static _Thread_local struct cuda_branches *branches; // of the captures of this thread

static void forget(struct cuda_branches *b)
{
    b->count = b->use_count = b->node_count = 0;
    for (int row = 0; row < ROWS; row++)
        b->last[row] = -1;
    b->steps[0] = (struct branch){0};
}

jot_status cuda_branches_open(CUstream stream)
{
    struct cuda_branches *b = memory_allocate_zeroed(sizeof *b);
    if (!b)
        return status_out_of_memory();
    b->stream = stream;
    b->next = branches;
    forget(b);
    branches = b;
    return JOT_OK;
}

// Those of the stream that the thread captures now; NULL in bodies of nodes, whose steps come one
// after the other.
static struct cuda_branches *current(void)
{
    struct cuda_branches *b = branches;
    while (b && b->stream != cuda_capturing())
        b = b->next;
    return b;
}

// ---- What steps use

static jot_status grow(void **block, uint32_t *room, uint32_t count, size_t size)
{
    if (count <= *room)
        return JOT_OK;
    uint32_t more = 2 * count + 16;
    void *wider = memory_resize(*block, more * size);
    if (!wider)
        return status_out_of_memory();
    *block = wider;
    *room = more;
    return JOT_OK;
}

static jot_status add_use(struct cuda_branches *b, const void *at, size_t bytes,
                          bool is_written)
{
    void *block = b->uses;
    JOT_TRY(grow(&block, &b->use_room, b->use_count + 1, sizeof *b->uses));
    b->uses = block;
    b->uses[b->use_count++] = (struct use){(uintptr_t)at, (uintptr_t)at + bytes, is_written};
    b->steps[b->count].use_count++;
    return JOT_OK;
}

static bool is_read_only(const struct rt_bound_step *s, uint32_t operand)
{
    switch ((enum rt_step_kind)s->kind) {
    case RT_STEP_GEMM:
        return operand != 2;
    case RT_STEP_COPY:
    case RT_STEP_COLLECTIVE:
        return operand == 1;
    case RT_STEP_KERNEL:
        return operand < 32 && s->read_only >> operand & 1;
    case RT_STEP_LIBRARY:
        return operand < s->index;
    default:
        return false;
    }
}

static jot_status add_uses(struct cuda_branches *b, const struct rt_program *p,
                           const struct rt_instance *instance, const struct rt_bound_step *s)
{
    for (uint32_t i = 0; i < s->operand_count; i++) {
        uint32_t operand = s->operand_first + i;
        JOT_TRY(add_use(b, instance->operands[operand],
                        p->plan.buffers[p->plan.operands[operand]].bytes, !is_read_only(s, i)));
    }
    const struct cuda_code *code = p->code;
    if (s->kind != RT_STEP_GEMM || !cuda_gemm_has_workspace(s->product))
        return JOT_OK;
    b->workspaces++;
    return add_use(b, cuda_workspace(code), code->workspace_bytes, true);
}

static bool meet(const struct cuda_branches *b, const struct branch *x, const struct branch *y)
{
    if (x->is_whole)
        return true;
    const struct use *u = &b->uses[x->first_use], *v = &b->uses[y->first_use];
    for (uint32_t i = 0; i < x->use_count; i++)
        for (uint32_t k = 0; k < y->use_count; k++)
            if ((u[i].is_written || v[k].is_written) && u[i].begin < v[k].end &&
                v[k].begin < u[i].end)
                return true;
    return false;
}

// ---- Nodes

static jot_status status_of(const struct rt_program *p, CUresult result)
{
    return cuda_status(cuda_device_of(p->device), result, "capturing steps");
}

// What comes next waits for these steps, those left out that others of them wait for.
static jot_status wait_for(struct cuda_branches *b, const struct rt_program *p, uint64_t steps)
{
    uint64_t left_out = 0;
    uint32_t count = 0, first = b->node_count;
    for (uint32_t i = 0; i < b->count; i++)
        if (steps >> i & 1) {
            left_out |= b->steps[i].before;
            count += b->steps[i].node_count;
        }
    void *block = b->nodes;
    JOT_TRY(grow(&block, &b->node_room, first + count, sizeof *b->nodes));
    b->nodes = block;
    count = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct branch *s = &b->steps[i];
        if (!((steps & ~left_out) >> i & 1))
            continue;
        for (uint32_t k = 0; k < s->node_count; k++)
            b->nodes[first + count++] = b->nodes[s->first_node + k];
    }
    return status_of(
        p, cuda.driver.cuStreamUpdateCaptureDependencies_v2(
               b->stream, &b->nodes[first], NULL, count, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

static uint64_t all_steps(const struct cuda_branches *b)
{
    return b->count == STEPS_MOST ? UINT64_MAX : (UINT64_C(1) << b->count) - 1;
}

// ---- Around steps

static bool has_work(const struct rt_bound_step *s)
{
    return s->kind == RT_STEP_KERNEL || s->kind == RT_STEP_GEMM || s->kind == RT_STEP_COPY ||
           s->kind == RT_STEP_CLEAR || s->kind == RT_STEP_PHASES ||
           s->kind == RT_STEP_CALLBACK || s->kind == RT_STEP_LIBRARY ||
           s->kind == RT_STEP_COLLECTIVE;
}

static bool is_by_kernels(const struct rt_program *p, const struct rt_bound_step *s)
{
    struct collective c;
    const uint32_t *operands = &p->plan.operands[s->operand_first];
    collective_read(s->params, s->param_count, p->plan.mesh_rank, p->plan.params, &c);
    return cuda_collective_by_kernels(&c, p->plan.buffers[operands[0]].bytes,
                                      p->plan.buffers[operands[1]].bytes);
}

static int row_of(struct cuda_branches *b, const struct rt_program *p,
                  const struct rt_bound_step *s)
{
    if (s->kind == RT_STEP_COLLECTIVE)
        return is_by_kernels(p, s) ? CHANNELS + (int)(b->exchanges++ % CUDA_TOGETHER_CHANNELS)
                                   : BY_NCCL;
    return s->kind == RT_STEP_GEMM || cuda_kernel_is_small(p, s) ? NO_ROW : KERNELS;
}

// Whether a step of the row waits for step i for the sake of the rows.
static bool comes_after(const struct cuda_branches *b, int row, int i)
{
    if (row >= CHANNELS && row < ROWS && i == b->last[BY_NCCL])
        return true;
    for (int other = BY_NCCL; row == BY_NCCL && other < ROWS; other++)
        if (i == b->last[other])
            return true;
    return row < ROWS && i == b->last[row];
}

int cuda_branches_channel(CUstream stream)
{
    const struct cuda_branches *b = branches;
    while (b && b->stream != stream)
        b = b->next;
    return b && b->exchanges ? (int)((b->exchanges - 1) % CUDA_TOGETHER_CHANNELS) : 0;
}

// The nodes that the step ended with.
static jot_status take_nodes(struct cuda_branches *b, const struct rt_program *p)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *end;
    const CUgraphEdgeData
        *edges; // of kernels that others need not wait for the end of: they do
    size_t count;
    JOT_TRY(status_of(p, cuda.driver.cuStreamGetCaptureInfo_v3(b->stream, &status, &id, &graph,
                                                               &end, &edges, &count)));
    struct branch *s = &b->steps[b->count];
    void *block = b->nodes;
    JOT_TRY(grow(&block, &b->node_room, b->node_count + (uint32_t)count, sizeof *b->nodes));
    b->nodes = block;
    memcpy(&b->nodes[b->node_count], end, count * sizeof *end);
    s->first_node = b->node_count;
    s->node_count = (uint32_t)count;
    b->node_count += s->node_count;
    b->count++;
    return JOT_OK;
}

jot_status cuda_branches_wait(const struct rt_program *p)
{
    struct cuda_branches *b = current();
    return b && b->count ? wait_for(b, p, all_steps(b)) : JOT_OK;
}

jot_status cuda_branches_restart(const struct rt_program *p)
{
    struct cuda_branches *b = current();
    if (!b)
        return JOT_OK;
    forget(b);
    b->steps[0].is_whole = true;
    return take_nodes(b, p);
}

jot_status cuda_branch_open(const struct rt_program *p, const struct rt_instance *instance,
                            const struct rt_bound_step *step)
{
    struct cuda_branches *b = current();
    if (!b || !has_work(step))
        return JOT_OK;
    bool is_known = step->kind != RT_STEP_PHASES && step->kind != RT_STEP_CALLBACK;
    int row = row_of(b, p, step);
    if (b->count == STEPS_MOST || (!is_known && b->count)) {
        JOT_TRY(wait_for(b, p, all_steps(b)));
        JOT_TRY(cuda_branches_restart(p));
    }
    struct branch *s = &b->steps[b->count];
    *s = (struct branch){.first_use = b->use_count, .is_whole = !is_known || b->count == 0};
    if (is_known)
        JOT_TRY(add_uses(b, p, instance, step));
    for (uint32_t i = 0; i < b->count; i++)
        if (meet(b, &b->steps[i], s) || comes_after(b, row, (int)i))
            s->before |= b->steps[i].before | UINT64_C(1) << i;
    if (row < ROWS)
        b->last[row] = (int)b->count;
    return b->count ? wait_for(b, p, s->before) : JOT_OK;
}

jot_status cuda_branch_close(const struct rt_program *p, const struct rt_bound_step *step)
{
    struct cuda_branches *b = current();
    return b && has_work(step) ? take_nodes(b, p) : JOT_OK;
}

// Whether both use some memory that one of them writes, at the addresses of the call.
static bool share(const struct rt_program *p, const struct rt_instance *instance,
                  const struct rt_bound_step *x, const struct rt_bound_step *y)
{
    for (uint32_t i = 0; i < x->operand_count; i++)
        for (uint32_t k = 0; k < y->operand_count; k++) {
            uint32_t a = x->operand_first + i, b = y->operand_first + k;
            uintptr_t u = (uintptr_t)instance->operands[a],
                      v = (uintptr_t)instance->operands[b];
            if ((!is_read_only(x, i) || !is_read_only(y, k)) &&
                u < v + p->plan.buffers[p->plan.operands[b]].bytes &&
                v < u + p->plan.buffers[p->plan.operands[a]].bytes)
                return true;
        }
    return false;
}

bool cuda_branches_are_worth_it(const struct rt_program *p, const struct rt_instance *instance,
                                uint32_t first, uint32_t end)
{
    bool is = false;
    for (uint32_t i = first; i < end && !is; i++) {
        const struct rt_bound_step *s = &p->steps[i];
        is = s->kind == RT_STEP_GEMM ||
             (i + 1 < end && cuda_kernel_is_aside(p, s) && cuda_kernel_is_aside(p, s + 1) &&
              !share(p, instance, s, s + 1));
    }
    return is;
}

void cuda_branches_close(void)
{
    while (branches) {
        struct cuda_branches *b = branches;
        branches = b->next;
        memory_release(b->uses);
        memory_release(b->nodes);
        memory_release(b);
    }
}

void *cuda_workspace(const struct cuda_code *code)
{
    const struct cuda_branches *b = current();
    size_t number = b && code->workspaces ? b->workspaces % code->workspaces : 0;
    return (char *)code->workspace + number * code->workspace_bytes;
}
