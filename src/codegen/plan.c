// SPDX-License-Identifier: Apache-2.0
// From the steps of a scheduled program to the launch plan of the runtime.
#include "codegen/plan.h"
#include "codegen/kernel.h"
#include "codegen/phases.h"

#include "base/launch.h"
#include "base/status.h"
#include "base/vec.h"
#include "schedule/plan/plan.h"

// A loop or branch that is being written.
struct body {
    const struct nest_step *from;
    uint32_t first;       // its first step
    VEC(uint32_t) leaves; // jumps to what follows it
    VEC(int64_t) cases;   // steps that they begin with
};

struct draft {
    struct arena *arena;
    const struct nest_program *program;
    const struct cg_phases *phases; // by step
    uint32_t *buffer_of;            // by memory
    VEC(struct rt_buffer) buffers;
    VEC(struct rt_step) steps;
    VEC(struct rt_gemm) gemms;
    VEC(uint32_t) operands;
    VEC(int64_t) params;
    VEC(struct body) bodies; // open ones, innermost last
    VEC(char) text;
    uint64_t arena_bytes;
    uint32_t counter; // buffer of u32s that are 0 before and after each kernel; 0: none is used
    uint64_t counter_bytes;
};

static uint32_t add_text(struct draft *d, const char *text)
{
    uint32_t at = d->text.count;
    for (const char *c = text;; c++) {
        vec_push(d->arena, &d->text, *c);
        if (!*c)
            return at;
    }
}

// 0 for none, which is where no place begins.
static uint32_t add_place(struct draft *d, const struct nest_step *step)
{
    if (step->place && !d->text.count)
        add_text(d, "");
    return step->place ? add_text(d, step->place) : 0;
}

// The name of kernel step i in the nests.
static uint32_t add_title(struct draft *d, const struct nest_step *step)
{
    const char *name = d->program->nests.at[step->nest]->name;
    return add_text(d, name ? name : "kernel");
}

static int64_t trips_of(const struct nest_program *p, uint32_t loop)
{
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_LOOP && p->steps.at[i].loop == loop)
            return p->steps.at[i].trips;
    return 0;
}

// Adds the buffer of a memory, after those that it is part of.
static uint32_t add_buffer(struct draft *d, uint32_t memory, struct nest_range range);

// The same once something needs it.
static uint32_t buffer_of(struct draft *d, uint32_t memory)
{
    int64_t count = d->program->memories.at[memory].count;
    if (d->buffer_of[memory] == NEST_NONE)
        d->buffer_of[memory] = add_buffer(d, memory, (struct nest_range){0, count});
    return d->buffer_of[memory];
}

static uint32_t add_buffer(struct draft *d, uint32_t memory, struct nest_range range)
{
    static const uint32_t kinds[] = {
        [NEST_INPUT] = RT_MEMORY_INPUT,       [NEST_OUTPUT] = RT_MEMORY_OUTPUT,
        [NEST_CONSTANT] = RT_MEMORY_CONSTANT, [NEST_TEMPORARY] = RT_MEMORY_ARENA,
        [NEST_ROW] = RT_MEMORY_ROW,           [NEST_TURN] = RT_MEMORY_TURN};
    const struct nest_memory *m = &d->program->memories.at[memory];
    uint64_t size = jot_dtype_size(m->dtype);
    uint32_t *of = arena_array(d->arena, uint32_t, m->n_of + 1);
    bool is_part_of_turn = m->kind == NEST_TURN && range.count != m->count;
    for (uint32_t k = 0; k < m->n_of; k++)
        of[k] = is_part_of_turn ? add_buffer(d, m->of[k], range) : buffer_of(d, m->of[k]);
    struct rt_buffer b = {.memory = kinds[m->kind],
                          .index = m->index,
                          .offset = m->offset + (uint64_t)range.first * size,
                          .bytes = (uint64_t)range.count * size,
                          .loop = m->loop,
                          .of_first = d->operands.count,
                          .of_count = m->n_of};
    for (uint32_t k = 0; k < m->n_of; k++)
        vec_push(d->arena, &d->operands, of[k]);
    if (m->kind == NEST_ROW) {
        int64_t trips = trips_of(d->program, m->loop), bytes = m->count * (int64_t)size;
        b.stride = m->reverse ? -bytes : bytes;
        b.offset += m->reverse && trips ? (uint64_t)((trips - 1) * bytes) : 0;
    }
    if (m->kind == NEST_TURN)
        b.offset = 0; // what is part of them is
    vec_push(d->arena, &d->buffers, b);
    return d->buffers.count - 1;
}

// Partial results live after the program's own temporaries; steps run one after another, so all
// kernels share one.
static uint32_t partial_buffer(struct draft *d, uint64_t bytes)
{
    uint64_t start = (d->program->arena_bytes + 63) / 64 * 64;
    if (start + bytes > d->arena_bytes)
        d->arena_bytes = start + bytes;
    vec_push(d->arena, &d->buffers,
             (struct rt_buffer){.memory = RT_MEMORY_ARENA, .offset = start, .bytes = bytes});
    return d->buffers.count - 1;
}

// Its offset is known when all others are (lay_out_counter).
static uint32_t counter_buffer(struct draft *d, uint32_t count)
{
    uint64_t bytes = ((uint64_t)count * sizeof(uint32_t) + 63) / 64 * 64;
    if (!d->counter_bytes) {
        vec_push(d->arena, &d->buffers, (struct rt_buffer){.memory = RT_MEMORY_ARENA});
        d->counter = d->buffers.count - 1;
    }
    d->counter_bytes = bytes > d->counter_bytes ? bytes : d->counter_bytes;
    return d->counter;
}

static uint64_t lay_out_counter(struct draft *d)
{
    if (!d->counter_bytes)
        return 0;
    uint64_t start = (d->arena_bytes + 63) / 64 * 64;
    d->buffers.at[d->counter].offset = start;
    d->buffers.at[d->counter].bytes = d->counter_bytes;
    d->arena_bytes = start + d->counter_bytes;
    return d->counter_bytes;
}

// ranges: NULL for all of each.
static void add_buffers(struct draft *d, struct rt_step *s, uint32_t n,
                        const uint32_t *memories, const struct nest_range *ranges)
{
    uint32_t *buffers = arena_array(d->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        buffers[i] = ranges ? add_buffer(d, memories[i], ranges[i]) : buffer_of(d, memories[i]);
    s->operand_first = d->operands.count;
    for (uint32_t i = 0; i < n; i++)
        vec_push(d->arena, &d->operands, buffers[i]);
    s->operand_count = n;
}

static void add_operands(struct draft *d, struct rt_step *s, const struct nest_step *from)
{
    add_buffers(d, s, from->n_memories, from->memories, from->ranges);
}

// Operands that the kernel does not write, a bit each, as far as there are bits.
static uint32_t read_only_operands(const struct draft *d, const struct nest_step *s)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < s->n_memories && i < 32; i++)
        set |= (uint32_t)!plan_is_written(d->program, s, i) << i;
    return set;
}

static void add_kernel(struct draft *d, const struct nest_step *from, const struct cg_kernel *k)
{
    uint32_t partial = k->partial_bytes ? partial_buffer(d, k->partial_bytes) : 0;
    uint32_t counter = k->counters ? counter_buffer(d, k->counters) : 0;
    uint32_t title = add_title(d, from), where = add_place(d, from);
    for (int i = 0; i < k->n_steps; i++) {
        const struct cg_kernel_step *step = &k->steps[i];
        struct rt_step s = {.kind = RT_STEP_KERNEL,
                            .flags = step->parallel ? RT_STEP_PARALLEL : 0,
                            .name = add_text(d, step->symbol),
                            .title = title,
                            .where = where,
                            .total = step->total,
                            .grain = step->grain,
                            .scratch_bytes = step->scratch_bytes,
                            .block = step->block,
                            .read_only = read_only_operands(d, from)};
        if (step->exact_grid)
            s.flags |= RT_STEP_EXACT_GRID;
        add_operands(d, &s, from);
        if (k->partial_bytes) {
            vec_push(d->arena, &d->operands, partial);
            s.operand_count++;
        }
        if (k->counters) {
            vec_push(d->arena, &d->operands, counter);
            s.operand_count++;
        }
        vec_push(d->arena, &d->steps, s);
    }
}

static void add_product(struct draft *d, const struct nest_step *from)
{
    const struct nest_gemm *g = &from->gemm;
    struct rt_gemm gemm = {.dtype = g->dtype,
                           .operands = g->operands,
                           .transpose_a = g->transpose_a,
                           .transpose_b = g->transpose_b,
                           .precision = (uint32_t)g->precision,
                           .flags = (g->has_bias ? RT_GEMM_BIAS : 0u) |
                                    (g->has_addend ? RT_GEMM_ADDEND : 0u) |
                                    (g->is_symmetric ? RT_GEMM_SYMMETRIC : 0u),
                           .activation = g->activation == NEST_RELU   ? RT_RELU
                                         : g->activation == NEST_GELU ? RT_GELU
                                                                      : RT_LINEAR,
                           .m = g->m,
                           .n = g->n,
                           .k = g->k,
                           .lda = g->lda,
                           .ldb = g->ldb,
                           .ldc = g->ldc,
                           .alpha = g->alpha,
                           .beta = g->has_addend};
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++) {
        gemm.batch[i] = g->batch[i];
        gemm.stride_a[i] = g->stride_a[i];
        gemm.stride_b[i] = g->stride_b[i];
        gemm.stride_c[i] = g->stride_c[i];
    }
    vec_push(d->arena, &d->gemms, gemm);
}

static void add_gemm(struct draft *d, const struct nest_step *from)
{
    // The run time decides how many tiles there are, and runs a single one on the calling thread.
    struct rt_step s = {
        .kind = RT_STEP_GEMM, .flags = RT_STEP_PARALLEL, .index = d->gemms.count, .grain = 1};
    s.where = add_place(d, from);
    add_product(d, from);
    add_operands(d, &s, from);
    vec_push(d->arena, &d->steps, s);
}

static void add_copy(struct draft *d, const struct nest_step *from)
{
    struct rt_step s = {.kind = RT_STEP_COPY, .grain = 1, .where = add_place(d, from)};
    add_operands(d, &s, from);
    vec_push(d->arena, &d->steps, s);
}

static void add_params(struct draft *d, struct rt_step *s, const struct nest_step *from)
{
    s->param_first = d->params.count;
    for (uint32_t i = 0; i < from->n_params; i++)
        vec_push(d->arena, &d->params, from->params[i]);
    s->param_count = from->n_params;
}

// A step whose operands and parameters are those of the program's.
static void add_call(struct draft *d, const struct nest_step *from, enum rt_step_kind kind,
                     uint32_t index)
{
    struct rt_step s = {.kind = kind, .grain = 1, .index = index};
    if (kind != RT_STEP_CALLBACK)
        s.name = add_text(d, from->text);
    s.where = add_place(d, from);
    add_params(d, &s, from);
    add_operands(d, &s, from);
    vec_push(d->arena, &d->steps, s);
}

static struct body *open_body(struct draft *d) { return &d->bodies.at[d->bodies.count - 1]; }

// A jump to the end of the body that is open.
static void add_leave(struct draft *d, struct rt_step s)
{
    vec_push(d->arena, &open_body(d)->leaves, d->steps.count);
    vec_push(d->arena, &d->steps, s);
}

// A kernel that is all of it may make several of its trips at once.
static void open_loop(struct draft *d, const struct nest_step *from,
                      const struct cg_kernel *kernels)
{
    int64_t trips = from->trips;
    if (from[1].kind == NEST_STEP_KERNEL && kernels[from[1].nest].trips)
        trips /= kernels[from[1].nest].trips;
    vec_push(d->arena, &d->bodies, (struct body){.from = from, .first = d->steps.count + 1});
    add_leave(d, (struct rt_step){
                     .kind = RT_STEP_LOOP, .index = from->loop, .total = trips, .grain = 1});
}

static void add_test(struct draft *d, const struct nest_step *from)
{
    struct rt_step s = {.kind = RT_STEP_JUMP_IFN, .grain = 1};
    add_operands(d, &s, from);
    add_leave(d, s);
}

static void open_branch(struct draft *d, const struct nest_step *from)
{
    struct rt_step s = {.kind = RT_STEP_SWITCH, .grain = 1};
    vec_push(d->arena, &d->bodies, (struct body){.from = from, .first = d->steps.count});
    add_operands(d, &s, from);
    vec_push(d->arena, &d->steps, s);
}

static void add_case(struct draft *d)
{
    if (open_body(d)->cases.count)
        add_leave(d, (struct rt_step){.kind = RT_STEP_JUMP, .grain = 1});
    vec_push(d->arena, &open_body(d)->cases, d->steps.count);
}

static void close_body(struct draft *d)
{
    struct body *b = open_body(d);
    if (b->from->kind == NEST_STEP_BRANCH) {
        struct rt_step *s = &d->steps.at[b->first];
        s->param_first = d->params.count;
        s->param_count = b->cases.count;
        for (uint32_t i = 0; i < b->cases.count; i++)
            vec_push(d->arena, &d->params, b->cases.at[i]);
    } else {
        vec_push(d->arena, &d->steps,
                 (struct rt_step){.kind = RT_STEP_NEXT,
                                  .index = b->from->loop,
                                  .target = b->first,
                                  .total = d->steps.at[b->first - 1].total,
                                  .grain = 1});
    }
    for (uint32_t i = 0; i < b->leaves.count; i++)
        d->steps.at[b->leaves.at[i]].target = d->steps.count;
    d->bodies.count--;
}

// The name of the loop that step i opens: that of its first kernel, if it has one.
static uint32_t add_loop_title(struct draft *d, uint32_t i)
{
    for (uint32_t end = nest_step_end(d->program, i); i < end; i++)
        if (d->program->steps.at[i].kind == NEST_STEP_KERNEL)
            return add_title(d, &d->program->steps.at[i]);
    return add_text(d, "loop");
}

// The place of the first step of the loop that has one.
static uint32_t add_loop_place(struct draft *d, uint32_t i)
{
    for (uint32_t end = nest_step_end(d->program, i); i < end; i++)
        if (d->program->steps.at[i].place)
            return add_place(d, &d->program->steps.at[i]);
    return 0;
}

// The loop that step i opens, as one function.
static void add_phases(struct draft *d, uint32_t i)
{
    const struct cg_phases *f = &d->phases[i];
    struct rt_step s = {.kind = RT_STEP_PHASES,
                        .flags = f->parallel ? RT_STEP_PARALLEL : 0,
                        .name = add_text(d, f->symbol),
                        .title = add_loop_title(d, i),
                        .where = add_loop_place(d, i),
                        .index = d->program->steps.at[i].loop,
                        .param_first = d->params.count,
                        .total = f->blocks,
                        .grain = 1,
                        .scratch_bytes = f->scratch_bytes,
                        .block = f->block};
    if (f->block) {
        s.flags = f->counters ? RT_STEP_COOPERATIVE : 0;
        s.param_count = 1;
        vec_push(d->arena, &d->params, f->trips);
    }
    add_buffers(d, &s, f->operands.count, f->operands.at, NULL);
    if (f->partial_bytes) {
        vec_push(d->arena, &d->operands, partial_buffer(d, f->partial_bytes));
        s.operand_count++;
    }
    if (f->counters) {
        vec_push(d->arena, &d->operands, counter_buffer(d, f->counters));
        s.operand_count++;
    }
    vec_push(d->arena, &d->steps, s);
    for (uint32_t end = nest_step_end(d->program, i); i < end; i++)
        if (d->program->steps.at[i].kind == NEST_STEP_GEMM)
            add_product(d, &d->program->steps.at[i]);
}

static void add_step(struct draft *d, const struct nest_step *s,
                     const struct cg_kernel *kernels)
{
    switch (s->kind) {
    case NEST_STEP_KERNEL:
        add_kernel(d, s, &kernels[s->nest]);
        break;
    case NEST_STEP_GEMM:
        add_gemm(d, s);
        break;
    case NEST_STEP_COPY:
        add_copy(d, s);
        break;
    case NEST_STEP_LIBRARY:
        add_call(d, s, RT_STEP_LIBRARY, s->n_reads);
        break;
    case NEST_STEP_CHECK:
        add_call(d, s, RT_STEP_CHECK, 0);
        break;
    case NEST_STEP_COLLECTIVE:
        add_call(d, s, RT_STEP_COLLECTIVE, 0);
        break;
    case NEST_STEP_CALLBACK:
        add_call(d, s, RT_STEP_CALLBACK, (uint32_t)s->params[0]);
        break;
    case NEST_STEP_LOOP:
    case NEST_STEP_WHILE:
        open_loop(d, s, kernels);
        break;
    case NEST_STEP_TEST:
        add_test(d, s);
        break;
    case NEST_STEP_BRANCH:
        open_branch(d, s);
        break;
    case NEST_STEP_CASE:
        add_case(d);
        break;
    case NEST_STEP_END:
        close_body(d);
        break;
    }
}

static struct rt_argument *arguments(struct draft *d, enum nest_memory_kind kind, uint32_t n)
{
    struct rt_argument *all = arena_array(d->arena, struct rt_argument, n + 1);
    for (uint32_t i = 0; i < n; i++)
        all[i].donated = -1;
    for (uint32_t i = 0; i < d->program->memories.count; i++) {
        const struct nest_memory *m = &d->program->memories.at[i];
        if (m->kind == kind && m->index < n)
            all[m->index].bytes = (uint64_t)m->count * jot_dtype_size(m->dtype);
    }
    if (kind == NEST_OUTPUT && d->program->donated)
        for (uint32_t i = 0; i < n; i++)
            all[i].donated = d->program->donated[i];
    return all;
}

// Whether nothing but kernels, in turn, is launched: products are branches of a graph, where kernels that are
// early take longer, and a loop with a condition is a node.
static bool has_kernels_alone(const struct draft *d)
{
    for (uint32_t i = 0; i < d->steps.count; i++)
        switch (d->steps.at[i].kind) {
        case RT_STEP_KERNEL:
        case RT_STEP_COPY:
        case RT_STEP_CLEAR:
        case RT_STEP_LOOP:
        case RT_STEP_NEXT:
            break;
        default:
            return false;
        }
    return true;
}

static void launch_early(struct draft *d)
{
    for (uint32_t i = 0; i < d->steps.count; i++)
        if (d->steps.at[i].kind == RT_STEP_KERNEL && d->steps.at[i].block)
            d->steps.at[i].flags |= RT_STEP_EARLY;
}

static void *constants(struct draft *d)
{
    char *all = arena_allocate(d->arena, d->program->constant_bytes + 1);
    for (uint32_t i = 0; i < d->program->memories.count; i++) {
        const struct nest_memory *m = &d->program->memories.at[i];
        if (m->kind == NEST_CONSTANT && m->count)
            memcpy(all + m->offset, m->data, (size_t)m->count * jot_dtype_size(m->dtype));
    }
    return all;
}

jot_status cg_plan_write(struct arena *arena, const struct nest_program *program,
                         const struct cg_kernel *kernels, const struct cg_phases *phases,
                         const void **out_bytes, size_t *out_size)
{
    struct draft d = {.arena = arena,
                      .program = program,
                      .phases = phases,
                      .buffer_of = arena_array(arena, uint32_t, program->memories.count + 1),
                      .arena_bytes = program->arena_bytes};
    for (uint32_t i = 0; i < program->mesh_rank; i++)
        vec_push(arena, &d.params, program->mesh[i]);
    memset(d.buffer_of, 0xff, program->memories.count * sizeof *d.buffer_of);
    for (uint32_t i = 0; i < program->steps.count; i++) {
        if (!phases[i].symbol) {
            add_step(&d, &program->steps.at[i], kernels);
            continue;
        }
        add_phases(&d, i);
        i = nest_step_end(program, i);
    }
    if (has_kernels_alone(&d))
        launch_early(&d);
    uint64_t zeroed_bytes = lay_out_counter(&d);
    struct rt_plan plan = {.input_count = program->n_inputs,
                           .output_count = program->n_outputs,
                           .buffer_count = d.buffers.count,
                           .operand_count = d.operands.count,
                           .step_count = d.steps.count,
                           .gemm_count = d.gemms.count,
                           .param_count = d.params.count,
                           .text_bytes = d.text.count,
                           .loop_count = program->n_loops,
                           .mesh_rank = program->mesh_rank,
                           .constant_bytes = program->constant_bytes,
                           .arena_bytes = d.arena_bytes,
                           .zeroed_bytes = zeroed_bytes,
                           .inputs = arguments(&d, NEST_INPUT, program->n_inputs),
                           .outputs = arguments(&d, NEST_OUTPUT, program->n_outputs),
                           .buffers = d.buffers.at,
                           .steps = d.steps.at,
                           .gemms = d.gemms.at,
                           .operands = d.operands.at,
                           .params = d.params.at,
                           .text = d.text.at,
                           .constants = constants(&d)};
    rt_plan_write(&plan, arena, out_bytes, out_size);
    return JOT_OK;
}
