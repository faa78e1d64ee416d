// SPDX-License-Identifier: Apache-2.0
// Programs: their steps on a memory plan, library calls by plain loops.
#include "base/check.h"
#include "nest_eval.h"
#include "nest_eval_memory.h"

struct program_run {
    struct arena *arena;
    const struct nest_program *p;
    unsigned char *temporaries;
    int64_t *trip, *trips;    // by loop: the one now, and all
    void **inputs, **outputs; // donated inputs and their outputs are one memory
};

static void *memory_at(const struct program_run *r, uint32_t memory)
{
    const struct nest_memory *m = &r->p->memories.at[memory];
    switch (m->kind) {
    case NEST_INPUT:
        return r->inputs[m->index];
    case NEST_OUTPUT:
        return r->outputs[m->index];
    case NEST_ROW: {
        int64_t row = m->reverse ? r->trips[m->loop] - 1 - r->trip[m->loop] : r->trip[m->loop];
        return (char *)memory_at(r, m->of[0]) +
               row * m->count * (int64_t)dtype_get(m->dtype)->bytes;
    }
    case NEST_TURN:
        return memory_at(r, m->of[(m->index + (uint64_t)r->trip[m->loop]) % m->n_of]);
    case NEST_CONSTANT:
        return arena_copy(r->arena, m->data, (size_t)m->count * dtype_get(m->dtype)->bytes);
    default:
        return r->temporaries + m->offset;
    }
}

static int64_t at(int64_t row, int64_t column, int64_t ld, bool transpose)
{
    return transpose ? column * ld + row : row * ld + column;
}

#define FINISH(type, fused)                                                                    \
    static type finish_##type(const struct nest_gemm *g, type x, const type *addend,           \
                              const type *bias)                                                \
    {                                                                                          \
        if (addend)                                                                            \
            x = g->alpha == 1 ? x + *addend : fused((type)g->alpha, x, *addend);               \
        if (bias)                                                                              \
            x += *bias;                                                                        \
        return g->activation == NEST_RELU && x <= 0 ? 0 : x;                                   \
    }
FINISH(float, fmaf)
FINISH(double, fma)

// activation(alpha x + addend + bias) of column j, element `to` of c; more: bias, addend.  f32 holds
// half types.
static struct eval_number finish(const struct nest_gemm *g, struct eval_number x, int64_t j,
                                 int64_t to, void *const *more)
{
    struct eval_number bias = {0}, addend = {0};
    if (g->has_bias)
        bias = eval_load_wide(g->dtype, more[0], j);
    if (g->has_addend)
        addend = eval_load_wide(g->dtype, more[g->has_bias], to);
    if (g->dtype == JOT_F64) {
        double b = scalar_f64(bias.re), a = scalar_f64(addend.re);
        x.re = scalar_from_f64(finish_double(g, scalar_f64(x.re), g->has_addend ? &a : NULL,
                                             g->has_bias ? &b : NULL));
    } else if (dtype_is_float(g->dtype)) {
        float b = scalar_f32(bias.re), a = scalar_f32(addend.re);
        x.re = scalar_from_f32(finish_float(g, scalar_f32(x.re), g->has_addend ? &a : NULL,
                                            g->has_bias ? &b : NULL));
    }
    return x;
}

// In the type of the product; f32 holds half types.
static struct eval_number load_factor(const struct nest_gemm *g, const void *data, int64_t i)
{
    struct eval_number x = eval_load_wide(g->operands, data, i);
    return g->operands == g->dtype ? x : eval_convert(g->operands, g->dtype, x);
}

static void multiply(const struct nest_gemm *g, struct eval_fold *f, const int64_t base[3],
                     void *const *data)
{
    bool is_complex = dtype_is_complex(g->dtype);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            for (int64_t k = 0; k < g->k; k++) {
                if (k % f->block == 0)
                    eval_fold_open_block(f);
                multiply_add(
                    &f->lanes[k % f->block % FOLD_LANES],
                    load_factor(g, data[0], base[0] + at(i, k, g->lda, g->transpose_a)),
                    load_factor(g, data[1], base[1] + at(k, j, g->ldb, g->transpose_b)),
                    is_complex);
                if (k + 1 == g->k || (k + 1) % f->block == 0)
                    eval_fold_close_block(f);
            }
            int64_t to = base[2] + at(i, j, g->ldc, false);
            eval_store(g->dtype, data[2], to, finish(g, eval_fold_finish(f), j, to, data + 3));
        }
}

static void run_gemm(const struct program_run *r, const struct nest_step *s)
{
    const struct nest_gemm *g = &s->gemm;
    struct eval_fold f = eval_fold_make(r->arena, IR_reduce_sum, g->dtype, g->k);
    void *data[5];
    for (uint32_t i = 0; i < s->n_memories; i++)
        data[i] = memory_at(r, s->memories[i]);
    int64_t batches = g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3];
    for (int64_t b = 0; b < batches; b++) {
        int64_t base[3] = {0}, left = b;
        for (int axis = 3; axis >= 0; axis--) {
            int64_t i = left % g->batch[axis];
            left /= g->batch[axis];
            base[0] += i * g->stride_a[axis];
            base[1] += i * g->stride_b[axis];
            base[2] += i * g->stride_c[axis];
        }
        multiply(g, &f, base, data);
    }
}

static jot_status check_flags(const struct nest_step *s, void *const *data)
{
    struct check c = {.what = s->text,
                      .holds = data[0],
                      .rank = (int)s->n_params - 1,
                      .dims = s->params + 1,
                      .n_lanes = (int)s->params[0],
                      .n_counts = (int)s->n_memories - 1};
    for (int i = 0; i < c.n_counts; i++)
        memcpy(&c.counts[i], data[1 + i], sizeof c.counts[i]);
    return check_all(&c);
}

static jot_status run_step(const struct program_run *r, const struct nest_step *s)
{
    if (s->kind == NEST_STEP_GEMM) {
        run_gemm(r, s);
        return JOT_OK;
    }
    void **data = arena_array(r->arena, void *, s->n_memories + 1);
    for (uint32_t i = 0; i < s->n_memories; i++) {
        int64_t bytes = dtype_get(r->p->memories.at[s->memories[i]].dtype)->bytes;
        data[i] =
            (char *)memory_at(r, s->memories[i]) + nest_step_range(r->p, s, i).first * bytes;
    }
    if (s->kind == NEST_STEP_KERNEL)
        return nest_eval(r->p->nests.at[s->nest], data);
    if (s->kind == NEST_STEP_CHECK)
        return check_flags(s, data);
    const struct nest_memory *m = &r->p->memories.at[s->memories[0]];
    memmove(data[0], data[1], (size_t)m->count * dtype_get(m->dtype)->bytes);
    return JOT_OK;
}

static jot_status run_steps(const struct program_run *r, uint32_t first, uint32_t end);

// A test between the steps ends them.
static jot_status run_while_steps(const struct program_run *r, uint32_t first, uint32_t end)
{
    const struct nest_step *loop = &r->p->steps.at[first];
    for (int64_t *trip = &r->trip[loop->loop]; *trip != loop->trips; (*trip)++)
        for (uint32_t i = first + 1; i < end; i++) {
            const struct nest_step *s = &r->p->steps.at[i];
            uint32_t next = nest_step_opens(s) ? nest_step_end(r->p, i) : i;
            if (s->kind != NEST_STEP_TEST) {
                JOT_TRY(run_steps(r, i, next + 1));
                i = next;
            } else if (!*(const bool *)memory_at(r, s->memories[0])) {
                return JOT_OK;
            }
        }
    return JOT_OK;
}

static jot_status run_branch(const struct program_run *r, uint32_t first, uint32_t end)
{
    // Wider than what is read: it counts down from any number.
    int64_t index = *(const int32_t *)memory_at(r, r->p->steps.at[first].memories[0]);
    uint32_t at = first + 1;
    for (uint32_t i = at; i < end; i++) {
        if (r->p->steps.at[i].kind == NEST_STEP_CASE && i > at && index-- > 0)
            at = i;
        if (nest_step_opens(&r->p->steps.at[i]))
            i = nest_step_end(r->p, i);
    }
    uint32_t last = at + 1;
    while (last < end && r->p->steps.at[last].kind != NEST_STEP_CASE)
        last =
            nest_step_opens(&r->p->steps.at[last]) ? nest_step_end(r->p, last) + 1 : last + 1;
    return run_steps(r, at + 1, last);
}

static jot_status run_steps(const struct program_run *r, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct nest_step *s = &r->p->steps.at[i];
        uint32_t last = nest_step_opens(s) ? nest_step_end(r->p, i) : i;
        if (s->kind == NEST_STEP_BRANCH) {
            JOT_TRY(run_branch(r, i, last));
        } else if (s->kind == NEST_STEP_LOOP || s->kind == NEST_STEP_WHILE) {
            r->trip[s->loop] = 0;
            r->trips[s->loop] = s->trips;
            if (s->kind == NEST_STEP_WHILE)
                JOT_TRY(run_while_steps(r, i, last));
            for (; s->kind == NEST_STEP_LOOP && r->trip[s->loop] < s->trips; r->trip[s->loop]++)
                JOT_TRY(run_steps(r, i + 1, last));
        } else {
            JOT_TRY(run_step(r, s));
        }
        i = last;
    }
    return JOT_OK;
}

static size_t bytes_of(const struct nest_program *p, enum nest_memory_kind kind, uint32_t index)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        size_t size = (size_t)m->count * dtype_get(m->dtype)->bytes;
        if (m->kind == kind && m->index == index && size > bytes)
            bytes = size;
    }
    return bytes;
}

// A donated input is copied into memory that its output has, too.
static void share_donated(struct program_run *r, void *const *inputs)
{
    const struct nest_program *p = r->p;
    for (uint32_t o = 0; p->donated && o < p->n_outputs; o++) {
        if (p->donated[o] < 0)
            continue;
        uint32_t i = (uint32_t)p->donated[o];
        size_t in = bytes_of(p, NEST_INPUT, i), out = bytes_of(p, NEST_OUTPUT, o);
        void *memory = arena_allocate(r->arena, (in > out ? in : out) + 1);
        if (in)
            memcpy(memory, inputs[i], in);
        r->inputs[i] = r->outputs[o] = memory;
    }
}

static jot_status run(struct arena *arena, const struct nest_program *p, void *const *inputs,
                      void *const *outputs)
{
    struct program_run r = {
        .arena = arena,
        .p = p,
        .temporaries = arena_allocate(arena, (size_t)p->arena_bytes + 1),
        .inputs = arena_copy(arena, inputs, p->n_inputs * sizeof(void *)),
        .outputs = arena_copy(arena, outputs, p->n_outputs * sizeof(void *)),
        .trip = arena_array(arena, int64_t, p->n_loops + 1),
        .trips = arena_array(arena, int64_t, p->n_loops + 1),
    };
    memset(r.temporaries, 0xff, (size_t)p->arena_bytes); // NaN, should anybody read it
    share_donated(&r, inputs);
    JOT_TRY(run_steps(&r, 0, p->steps.count));
    for (uint32_t o = 0; o < p->n_outputs; o++)
        if (r.outputs[o] != outputs[o])
            memcpy(outputs[o], r.outputs[o], bytes_of(p, NEST_OUTPUT, o));
    return JOT_OK;
}

bool nest_program_has_routines(const struct nest_program *p)
{
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_LIBRARY)
            return true;
    return false;
}

jot_status nest_program_eval(const struct nest_program *p, void *const *inputs,
                             void *const *outputs)
{
    struct arena *arena = arena_create();
    jot_status status = run(arena, p, inputs, outputs);
    arena_release(arena);
    return status;
}
