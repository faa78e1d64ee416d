// SPDX-License-Identifier: Apache-2.0
// What must hold of a scheduled program: sizes, offsets, and bodies that end.
#include "nest/program.h"

#include <stdarg.h>
#include <stdio.h>

struct checker {
    const struct nest_program *p;
    struct strbuf *report;
    int faults;
    uint32_t *loop_step; // by loop: where it begins, NEST_NONE when nowhere
};

__attribute__((format(printf, 2, 3))) static void fault(struct checker *c, const char *format,
                                                        ...)
{
    c->faults++;
    if (!c->report)
        return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    strbuf_add(c->report, line);
    strbuf_add(c->report, "\n");
}

static void check_view(struct checker *c, uint32_t i)
{
    const struct nest_program *p = c->p;
    const struct nest_memory *m = &p->memories.at[i];
    if (m->loop >= p->n_loops || c->loop_step[m->loop] == NEST_NONE) {
        fault(c, "memory %u is seen from loop %u, which there is not", i, m->loop);
        return;
    }
    if (m->n_of == 0 || (m->kind == NEST_ROW && m->n_of != 1) ||
        (m->kind == NEST_TURN && m->index >= m->n_of))
        fault(c, "memory %u is a view of %u memories", i, m->n_of);
    const struct nest_step *loop = &p->steps.at[c->loop_step[m->loop]];
    int64_t trips = loop->kind == NEST_STEP_LOOP ? loop->trips : INT64_MAX, count = m->count;
    for (uint32_t k = 0; k < m->n_of; k++) {
        const struct nest_memory *of = &p->memories.at[m->of[k]];
        if (m->of[k] >= i) {
            fault(c, "memory %u is a view of memory %u, which comes later", i, m->of[k]);
            return;
        }
        bool fits = m->kind == NEST_TURN
                        ? of->count == m->count
                        : m->count == 0 || (!__builtin_mul_overflow(trips, m->count, &count) &&
                                            count <= of->count);
        if (!fits || of->dtype != m->dtype)
            fault(c, "memory %u of %lld %s is a view of memory %u of %lld %s", i,
                  (long long)m->count, dtype_get(m->dtype)->name, m->of[k],
                  (long long)of->count, dtype_get(of->dtype)->name);
    }
}

static void check_memory(struct checker *c, uint32_t i)
{
    const struct nest_program *p = c->p;
    const struct nest_memory *m = &p->memories.at[i];
    if (!dtype_is_valid((int)m->dtype) || m->count < 0) {
        fault(c, "memory %u has no size", i);
        return;
    }
    if (nest_memory_is_view(m)) {
        check_view(c, i);
        return;
    }
    uint64_t bytes = 0, end = 0;
    bool fits =
        !__builtin_mul_overflow((uint64_t)m->count, dtype_get(m->dtype)->bytes, &bytes) &&
        !__builtin_add_overflow(bytes, m->offset, &end);
    if (m->kind == NEST_INPUT && m->index >= p->n_inputs)
        fault(c, "memory %u is input %u of %u", i, m->index, p->n_inputs);
    if (m->kind == NEST_OUTPUT && m->index >= p->n_outputs)
        fault(c, "memory %u is output %u of %u", i, m->index, p->n_outputs);
    if (m->kind == NEST_CONSTANT && m->count && !m->data)
        fault(c, "constant memory %u has no bytes", i);
    if (!p->is_planned)
        return;
    if (m->kind == NEST_CONSTANT && (!fits || end > p->constant_bytes))
        fault(c, "memory %u ends outside the constants of %llu bytes", i,
              (unsigned long long)p->constant_bytes);
    if (m->kind == NEST_TEMPORARY && (!fits || end > p->arena_bytes))
        fault(c, "memory %u ends outside the arena of %llu bytes", i,
              (unsigned long long)p->arena_bytes);
}

static bool is_read_only(const struct nest_program *p, const struct nest_memory *m)
{
    for (uint32_t i = 0; nest_memory_is_view(m) && i < m->n_of; i++)
        if (is_read_only(p, &p->memories.at[m->of[i]]))
            return true;
    return m->kind == NEST_INPUT || m->kind == NEST_CONSTANT;
}

static void check_kernel(struct checker *c, uint32_t i)
{
    const struct nest_program *p = c->p;
    const struct nest_step *t = &p->steps.at[i];
    if (t->nest >= p->nests.count) {
        fault(c, "step %u runs kernel %u of %u", i, t->nest, p->nests.count);
        return;
    }
    const struct nest *n = p->nests.at[t->nest];
    uint32_t k = 0;
    for (uint32_t j = 0; j < n->buffers.count; j++) {
        const struct nest_buffer *b = &n->buffers.at[j];
        if (b->role == NEST_LOCAL || k++ >= t->n_memories)
            continue;
        const struct nest_memory *m = &p->memories.at[t->memories[k - 1]];
        int64_t count = nest_step_range(p, t, k - 1).count;
        if (m->dtype != b->dtype || count < b->count)
            fault(c, "step %u: memory %u of %lld %s is buffer %s of %lld %s", i,
                  t->memories[k - 1], (long long)count, dtype_get(m->dtype)->name, b->name,
                  (long long)b->count, dtype_get(b->dtype)->name);
        if (b->role != NEST_IN && is_read_only(p, m))
            fault(c, "step %u writes memory %u, which is only read", i, t->memories[k - 1]);
    }
    if (k != t->n_memories)
        fault(c, "step %u has %u memories for %u buffers", i, t->n_memories, k);
}

// Whether a matrix of the rows and columns, repeated by batch, is inside count elements.
static bool matrix_fits(const struct nest_gemm *g, const int64_t stride[4], int64_t rows,
                        int64_t columns, int64_t ld, int64_t count)
{
    if (rows <= 0 || columns <= 0)
        return true;
    int64_t last, step;
    if (ld < columns || __builtin_mul_overflow(rows - 1, ld, &last) ||
        __builtin_add_overflow(last, columns - 1, &last))
        return false;
    for (int i = 0; i < 4; i++) {
        if (g->batch[i] <= 0)
            return true;
        if (stride[i] < 0 || __builtin_mul_overflow(g->batch[i] - 1, stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    }
    return last < count;
}

static void check_gemm(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    const struct nest_gemm *g = &t->gemm;
    uint32_t n = 3u + g->has_bias + g->has_addend;
    if (t->n_memories != n) {
        fault(c, "step %u: the gemm has %u memories, not %u", i, n, t->n_memories);
        return;
    }
    if (g->is_symmetric && g->m != g->n)
        fault(c, "step %u: a symmetric gemm of %lld by %lld", i, (long long)g->m,
              (long long)g->n);
    if (!dtype_multiplies(g->operands, g->dtype))
        fault(c, "step %u: a gemm of %s into %s", i, dtype_get(g->operands)->name,
              dtype_get(g->dtype)->name);
    if (dtype_is_byte(g->operands) &&
        (g->transpose_a || !g->transpose_b || n > 3 || g->alpha != 1 || g->activation))
        fault(c, "step %u: a gemm of bytes is a times b transposed, and no more", i);
    const int64_t *strides[] = {g->stride_a, g->stride_b, g->stride_c};
    const int64_t rows[] = {g->transpose_a ? g->k : g->m, g->transpose_b ? g->n : g->k, g->m};
    const int64_t columns[] = {g->transpose_a ? g->m : g->k, g->transpose_b ? g->k : g->n,
                               g->n};
    const int64_t ld[] = {g->lda, g->ldb, g->ldc};
    for (uint32_t j = 0; j < n; j++) {
        const struct nest_memory *m = &c->p->memories.at[t->memories[j]];
        jot_dtype wanted = j < 2 ? g->operands : g->dtype;
        if (m->dtype != wanted)
            fault(c, "step %u: a gemm of %s with memory %u of %s", i, dtype_get(wanted)->name,
                  t->memories[j], dtype_get(m->dtype)->name);
        bool is_bias = j == 3 && g->has_bias;
        uint32_t as = j < 3 ? j : 2; // an addend lies as c
        if (is_bias ? m->count < g->n
                    : !matrix_fits(g, strides[as], rows[as], columns[as], ld[as], m->count))
            fault(c, "step %u: matrix %c is not inside memory %u", i, "abcde"[j],
                  t -> memories[j]);
    }
    if (is_read_only(c->p, &c->p->memories.at[t->memories[2]]))
        fault(c, "step %u writes memory %u, which is only read", i, t->memories[2]);
}

static void check_copy(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    if (t->n_memories != 2) {
        fault(c, "step %u: a copy has 2 memories, not %u", i, t->n_memories);
        return;
    }
    const struct nest_memory *to = &c->p->memories.at[t->memories[0]];
    const struct nest_memory *from = &c->p->memories.at[t->memories[1]];
    if (to->dtype != from->dtype || to->count != from->count)
        fault(c, "step %u copies %lld %s to %lld %s", i, (long long)from->count,
              dtype_get(from->dtype)->name, (long long)to->count, dtype_get(to->dtype)->name);
    if (is_read_only(c->p, to))
        fault(c, "step %u writes memory %u, which is only read", i, t->memories[0]);
}

static void check_library(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    if (t->n_reads >= t->n_memories || (t->in_place && !t->n_reads))
        fault(c, "step %u: a routine that reads %u of %u memories", i, t->n_reads,
              t->n_memories);
    for (uint32_t k = t->n_reads; k < t->n_memories; k++)
        if (is_read_only(c->p, &c->p->memories.at[t->memories[k]]))
            fault(c, "step %u writes memory %u, which is only read", i, t->memories[k]);
}

static void check_collective(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    struct collective what;
    const char *wrong =
        collective_read(t->params, t->n_params, c->p->mesh_rank, c->p->mesh, &what);
    if (wrong || t->n_memories != 2) {
        fault(c, "step %u: a collective %s", i, wrong ? wrong : "of other memories");
        return;
    }
    const struct nest_memory *to = &c->p->memories.at[t->memories[0]];
    const struct nest_memory *from = &c->p->memories.at[t->memories[1]];
    int64_t n_to = nest_step_range(c->p, t, 0).count,
            n_from = nest_step_range(c->p, t, 1).count;
    uint64_t size = dtype_get(what.dtype)->bytes;
    if (to->dtype != what.dtype || from->dtype != what.dtype ||
        !collective_fits(&what, (uint64_t)n_to * size, (uint64_t)n_from * size))
        fault(c, "step %u: %s of %lld %s to %lld %s", i, collective_name(what.kind),
              (long long)n_from, dtype_get(from->dtype)->name, (long long)n_to,
              dtype_get(to->dtype)->name);
    if (is_read_only(c->p, to))
        fault(c, "step %u writes memory %u, which is only read", i, t->memories[0]);
}

static void check_check(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    int64_t count = 1;
    uint32_t lanes = 0;
    if (t->n_params < 1 || t->params[0] < 0 || t->params[0] >= t->n_params) {
        fault(c, "step %u checks lanes that are not there", i);
        return;
    }
    for (uint32_t k = 1; k < t->n_params; k++) {
        lanes += t->params[k] == -1;
        if (t->params[k] != -1 &&
            (t->params[k] < 0 || __builtin_mul_overflow(count, t->params[k], &count)))
            count = -1;
    }
    if (t->n_memories <= lanes) {
        fault(c, "step %u checks nothing", i);
        return;
    }
    const struct nest_memory *m = &c->p->memories.at[t->memories[0]];
    if (m->dtype != JOT_BOOL || m->count != count)
        fault(c, "step %u checks %lld %s, not %lld bool", i, (long long)m->count,
              dtype_get(m->dtype)->name, (long long)count);
    for (uint32_t k = 1; k < t->n_memories; k++) {
        const struct nest_memory *trip = &c->p->memories.at[t->memories[k]];
        if (trip->dtype != JOT_I64 || trip->count != 1)
            fault(c, "step %u: memory %u is no trip", i, t->memories[k]);
    }
}

// Each memory has a type among the params that fits it.
static void check_callback(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    uint32_t at = 4;
    for (uint32_t k = 0; k < t->n_memories; k++) {
        const struct nest_memory *m = &c->p->memories.at[t->memories[k]];
        int64_t rank = at + 1 < t->n_params ? t->params[at + 1] : -1, count = 1;
        bool fits = rank >= 0 && rank <= (int64_t)t->n_params - at - 2;
        for (int64_t axis = 0; fits && axis < rank; axis++)
            fits = !__builtin_mul_overflow(count, t->params[at + 2 + axis], &count);
        if (!fits || t->params[at] != (int64_t)m->dtype || count != m->count) {
            fault(c, "step %u: memory %u is not what the callback takes", i, t->memories[k]);
            return;
        }
        at += 2 + (uint32_t)rank;
        if (k >= t->params[1] && is_read_only(c->p, m))
            fault(c, "step %u writes memory %u, which is only read", i, t->memories[k]);
    }
    // The trips, the lanes, and the axis of each lane.
    bool told = at + 2 <= t->n_params && t->params[at] >= 0 && t->params[at + 1] >= 0 &&
                t->params[at + 1] == (int64_t)t->n_params - at - 2 &&
                t->params[at] + t->params[at + 1] <= t->params[1];
    if (!told || t->params[1] + t->params[2] != t->n_memories)
        fault(c, "step %u: a callback of other memories", i);
}

static void check_flag(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    bool is_test = t->kind == NEST_STEP_TEST;
    if (t->n_memories != 1) {
        fault(c, "step %u decides by %u memories", i, t->n_memories);
        return;
    }
    const struct nest_memory *m = &c->p->memories.at[t->memories[0]];
    if (m->dtype != (is_test ? JOT_BOOL : JOT_I32) || m->count != 1)
        fault(c, "step %u decides by memory %u, %lld %s", i, t->memories[0],
              (long long)m->count, dtype_get(m->dtype)->name);
}

// Whether the view of the step's operand is of a loop around it or, for a turn, before it.
static void check_view_use(struct checker *c, uint32_t i, uint32_t memory)
{
    const struct nest_memory *m = &c->p->memories.at[memory];
    if (!nest_memory_is_view(m))
        return;
    uint32_t start = c->loop_step[m->loop];
    if (i < start || (m->kind == NEST_ROW && i > nest_step_end(c->p, start)))
        fault(c, "step %u uses memory %u outside of its loop", i, memory);
    for (uint32_t k = 0; k < m->n_of; k++)
        check_view_use(c, i, m->of[k]);
}

// Whether what the step uses of its memory k is there.
static void check_range(struct checker *c, uint32_t i, uint32_t k)
{
    const struct nest_step *t = &c->p->steps.at[i];
    const struct nest_memory *m = &c->p->memories.at[t->memories[k]];
    struct nest_range r = t->ranges[k];
    bool has_parts = t->kind == NEST_STEP_COLLECTIVE || t->kind == NEST_STEP_LIBRARY ||
                     t->kind == NEST_STEP_KERNEL;
    if (!has_parts || r.first < 0 || r.count < 0 || r.first > m->count ||
        r.count > m->count - r.first)
        fault(c, "step %u uses elements %lld to %lld of memory %u of %lld", i,
              (long long)r.first, (long long)(r.first + r.count), t->memories[k],
              (long long)m->count);
}

static void check_step(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    for (uint32_t j = 0; j < t->n_memories; j++)
        if (t->memories[j] >= c->p->memories.count) {
            fault(c, "step %u uses memory %u of %u", i, t->memories[j], c->p->memories.count);
            return;
        }
    for (uint32_t j = 0; j < t->n_memories; j++) {
        check_view_use(c, i, t->memories[j]);
        if (t->ranges)
            check_range(c, i, j);
    }
    if (t->kind == NEST_STEP_KERNEL)
        check_kernel(c, i);
    else if (t->kind == NEST_STEP_GEMM)
        check_gemm(c, i);
    else if (t->kind == NEST_STEP_COPY)
        check_copy(c, i);
    else if (t->kind == NEST_STEP_LIBRARY)
        check_library(c, i);
    else if (t->kind == NEST_STEP_COLLECTIVE)
        check_collective(c, i);
    else if (t->kind == NEST_STEP_CHECK)
        check_check(c, i);
    else if (t->kind == NEST_STEP_CALLBACK)
        check_callback(c, i);
    else if (t->kind == NEST_STEP_TEST || t->kind == NEST_STEP_BRANCH)
        check_flag(c, i);
    else if (t->n_memories)
        fault(c, "step %u has %u memories", i, t->n_memories);
}

// Bodies end, tests are in a while and cases in a branch.  Finds the loops.
static void check_bodies(struct checker *c)
{
    const struct nest_program *p = c->p;
    uint32_t *open = arena_array(p->arena, uint32_t, p->steps.count + 1), depth = 0;
    c->loop_step = arena_array(p->arena, uint32_t, p->n_loops + 1);
    memset(c->loop_step, 0xff, p->n_loops * sizeof *c->loop_step);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        const struct nest_step *around = depth ? &p->steps.at[open[depth - 1]] : NULL;
        bool is_case = t->kind == NEST_STEP_CASE;
        if (around && around->kind == NEST_STEP_BRANCH && open[depth - 1] + 1 == i && !is_case)
            fault(c, "step %u is in no case of its branch", i);
        if (is_case && (!around || around->kind != NEST_STEP_BRANCH))
            fault(c, "step %u is a case outside of a branch", i);
        if (t->kind == NEST_STEP_TEST && (!around || around->kind != NEST_STEP_WHILE))
            fault(c, "step %u is a test outside of a while", i);
        if (nest_step_loops(t)) {
            if (t->loop >= p->n_loops || c->loop_step[t->loop] != NEST_NONE)
                fault(c, "step %u is loop %u, one of %u", i, t->loop, p->n_loops);
            else
                c->loop_step[t->loop] = i;
            if (t->trips < 0 && (t->kind == NEST_STEP_LOOP || t->trips != NEST_NO_BOUND))
                fault(c, "step %u makes %lld trips", i, (long long)t->trips);
        }
        if (nest_step_opens(t))
            open[depth++] = i;
        else if (t->kind == NEST_STEP_END && depth-- == 0) {
            fault(c, "step %u ends nothing", i);
            return;
        }
    }
    if (depth)
        fault(c, "step %u has no end", open[depth - 1]);
}

int nest_program_verify(const struct nest_program *p, struct strbuf *report)
{
    struct checker c = {.p = p, .report = report};
    for (uint32_t i = 0; i < p->nests.count; i++)
        c.faults += nest_verify(p->nests.at[i], report);
    check_bodies(&c);
    if (c.faults)
        return c.faults;
    for (uint32_t i = 0; i < p->memories.count; i++)
        check_memory(&c, i);
    if (c.faults)
        return c.faults;
    for (uint32_t i = 0; i < p->steps.count; i++)
        check_step(&c, i);
    for (uint32_t i = 0; p->donated && i < p->n_outputs; i++)
        if (p->donated[i] >= 0 && (uint32_t)p->donated[i] >= p->n_inputs)
            fault(&c, "output %u takes the memory of input %d of %u", i, p->donated[i],
                  p->n_inputs);
    return c.faults;
}
