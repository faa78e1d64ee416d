// SPDX-License-Identifier: Apache-2.0
// A program of one routine over the libraries of fake_cuda.
#ifndef CUDA_ROUTINES_SUPPORT_H
#define CUDA_ROUTINES_SUPPORT_H

#include "base/arena.h"
#include "base/conv.h"
#include "base/memory.h"
#include "cuda_support.h"
#include "runtime/cuda/device.h"

#include <unistd.h>

#define MOST 4

// A routine between copies of what it reads and of its results.
struct routine_plan {
    const char *name;
    int n_params, n_reads, n_operands;
    int64_t params[CONV_PARAMS_MOST];
    uint64_t bytes[MOST];
};

static inline jot_status load(const struct routine_plan *r, struct rt_program **out)
{
    struct rt_argument in[MOST], results[MOST];
    struct rt_buffer buffers[2 * MOST];
    struct rt_step steps[MOST + 1];
    uint32_t operands[3 * MOST], n = (uint32_t)r->n_operands, count = 0, reads = 0, writes = 0;
    uint64_t arena_bytes = 0;
    // Buffers i are in the arena, n + i the arguments.
    for (uint32_t i = 0; i < n; i++) {
        bool is_read = i < (uint32_t)r->n_reads;
        struct rt_argument *a = is_read ? &in[reads] : &results[writes];
        *a = (struct rt_argument){.bytes = r->bytes[i], .donated = -1};
        buffers[i] = (struct rt_buffer){
            .memory = RT_MEMORY_ARENA, .offset = arena_bytes, .bytes = r->bytes[i]};
        buffers[n + i] =
            (struct rt_buffer){.memory = is_read ? RT_MEMORY_INPUT : RT_MEMORY_OUTPUT,
                               .index = is_read ? reads++ : writes++,
                               .bytes = r->bytes[i]};
        arena_bytes += (r->bytes[i] + 63) & ~UINT64_C(63);
    }
    uint32_t n_steps = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == reads) {
            steps[n_steps++] = (struct rt_step){.kind = RT_STEP_LIBRARY,
                                                .index = reads,
                                                .operand_first = count,
                                                .operand_count = n,
                                                .param_count = (uint32_t)r->n_params};
            for (uint32_t k = 0; k < n; k++)
                operands[count++] = k;
        }
        steps[n_steps++] =
            (struct rt_step){.kind = RT_STEP_COPY, .operand_first = count, .operand_count = 2};
        operands[count++] = i < reads ? i : n + i;
        operands[count++] = i < reads ? n + i : i;
    }
    struct rt_plan plan = {.input_count = reads,
                           .output_count = writes,
                           .buffer_count = 2 * n,
                           .operand_count = count,
                           .step_count = n_steps,
                           .param_count = (uint32_t)r->n_params,
                           .text_bytes = (uint32_t)strlen(r->name) + 1,
                           .arena_bytes = arena_bytes,
                           .inputs = in,
                           .outputs = results,
                           .buffers = buffers,
                           .operands = operands,
                           .steps = steps,
                           .params = r->params,
                           .text = r->name};
    struct arena *arena = arena_create();
    const void *bytes;
    void *images;
    size_t size, images_size;
    rt_plan_write(&plan, arena, &bytes, &size);
    jot_status status = rt_cuda_type.assemble(jot_cuda(0), "", 0, &images, &images_size);
    if (status == JOT_OK) {
        status = rt_program_load(jot_cuda(0), images, images_size, bytes, size, NULL, 0, out);
        memory_release(images);
    }
    arena_release(arena);
    return status;
}

// Runs it so often on memory of the GPU; out has the results of the last time.
static inline jot_status run_times(struct rt_program *p, const struct routine_plan *r,
                                   int times, const void *const *in, void *const *out)
{
    void *at[MOST] = {NULL};
    const void *inputs[MOST] = {NULL};
    void *outputs[MOST] = {NULL};
    jot_status status = JOT_OK;
    for (int i = 0; i < r->n_operands; i++) {
        OK(rt_cuda_type.allocate(jot_cuda(0), r->bytes[i], "a test", &at[i]));
        if (i < r->n_reads)
            OK(rt_cuda_type.upload(jot_cuda(0), at[i], in[i], r->bytes[i]));
        if (i < r->n_reads)
            inputs[i] = at[i];
        else
            outputs[i - r->n_reads] = at[i];
    }
    for (int i = 0; i < times && status == JOT_OK; i++)
        status = rt_program_run(p, inputs, outputs);
    for (int i = r->n_reads; i < r->n_operands && status == JOT_OK; i++)
        OK(rt_cuda_type.download(jot_cuda(0), out[i - r->n_reads], at[i], r->bytes[i]));
    for (int i = 0; i < r->n_operands; i++)
        rt_cuda_type.release(jot_cuda(0), at[i], r->bytes[i]);
    return status;
}

#endif
