// SPDX-License-Identifier: Apache-2.0
// Plans of teams, step by step: sums over devices, and what is before them, of blocks of numbers of f32.
//
//     plan_open(&p, 1, &devices, n);      buffer 0 is the input, 1 the output, of n numbers
//     plan_copy(&p, 1, 0);
//     plan_loop(&p, 3);
//     plan_sum(&p, 1, 1, COLLECTIVE_SUM, 0);
//     plan_next(&p);                      p.plan: y = x, three times replaced by its sum over all devices
#ifndef TEAM_PLAN_H
#define TEAM_PLAN_H

#include "base/launch.h"
#include "runtime/collective.h"

struct team_plan {
    struct rt_plan plan;
    struct rt_argument in[2], out;
    struct rt_buffer buffers[16];
    uint32_t operands[32];
    struct rt_step steps[16];
    int64_t params[64];
    char text[32]; // of kernels, and at 8 of sums
    uint32_t loop; // the step that begins the loop
};

static inline uint32_t plan_buffer(struct team_plan *p, struct rt_buffer b)
{
    p->buffers[p->plan.buffer_count] = b;
    return p->plan.buffer_count++;
}

static inline void plan_open(struct team_plan *p, uint32_t mesh_rank, const int64_t *mesh,
                             uint64_t n)
{
    uint64_t bytes = 4 * n;
    *p = (struct team_plan){.in = {{.bytes = bytes, .donated = -1}},
                            .out = {.bytes = bytes, .donated = -1},
                            .text = "add_one\0the sum at here.c:3"};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .param_count = mesh_rank,
                               .text_bytes = sizeof p->text,
                               .mesh_rank = mesh_rank,
                               .inputs = p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .params = p->params,
                               .steps = p->steps,
                               .text = p->text};
    for (uint32_t i = 0; i < mesh_rank; i++)
        p->params[i] = mesh[i];
    plan_buffer(p, (struct rt_buffer){.memory = RT_MEMORY_INPUT, .bytes = bytes});
    plan_buffer(p, (struct rt_buffer){.memory = RT_MEMORY_OUTPUT, .bytes = bytes});
}

// The step over two buffers, or one.
static inline struct rt_step *plan_step(struct team_plan *p, struct rt_step step, uint32_t n,
                                        uint32_t first, uint32_t second)
{
    step.operand_first = n ? p->plan.operand_count : 0;
    step.operand_count = n;
    p->operands[p->plan.operand_count] = first;
    p->operands[p->plan.operand_count + 1] = second;
    p->plan.operand_count += n;
    p->steps[p->plan.step_count] = step;
    return &p->steps[p->plan.step_count++];
}

static inline void plan_copy(struct team_plan *p, uint32_t to, uint32_t from)
{
    plan_step(p, (struct rt_step){.kind = RT_STEP_COPY, .grain = 1}, 2, to, from);
}

// The kernel "add_one", or what the text begins with, of so many threads, `grain` of them to a block.
static inline void plan_kernel(struct team_plan *p, uint32_t to, uint32_t from,
                               uint32_t threads, uint32_t grain)
{
    plan_step(p,
              (struct rt_step){.kind = RT_STEP_KERNEL,
                               .total = threads,
                               .grain = grain,
                               .block = threads < 64 ? threads : 64,
                               .read_only = 1},
              2, from, to);
}

static inline void plan_reduce(struct team_plan *p, uint32_t to, uint32_t from,
                               enum collective_combiner combiner, jot_dtype dtype, int axis)
{
    const int64_t params[] = {COLLECTIVE_ALL_REDUCE, combiner, dtype, 1, axis};
    plan_step(p,
              (struct rt_step){.kind = RT_STEP_COLLECTIVE,
                               .name = 8,
                               .param_first = p->plan.param_count,
                               .param_count = 5},
              2, to, from);
    for (int i = 0; i < 5; i++)
        p->params[p->plan.param_count++] = params[i];
}

static inline void plan_sum(struct team_plan *p, uint32_t to, uint32_t from,
                            enum collective_combiner combiner, int axis)
{
    plan_reduce(p, to, from, combiner, JOT_F32, axis);
}

static inline void plan_loop(struct team_plan *p, int64_t trips)
{
    p->loop = p->plan.step_count;
    p->plan.loop_count = 1;
    plan_step(p, (struct rt_step){.kind = RT_STEP_LOOP, .total = trips}, 0, 0, 0);
}

static inline void plan_next(struct team_plan *p)
{
    struct rt_step *loop = &p->steps[p->loop];
    plan_step(
        p, (struct rt_step){.kind = RT_STEP_NEXT, .total = loop->total, .target = p->loop + 1},
        0, 0, 0);
    loop->target = p->plan.step_count;
}

#endif
