// SPDX-License-Identifier: Apache-2.0
// What a library product does to its result before it stores it: sums with a matrix or with a bias,
// and activations.
//
//     gemm c = a b                                          gemm y = relu(a b + bias)
//     par i, j { put y[i, j] = relu(c[i, j] + bias[j]) }    becomes
//
// Needs a scheduled program whose memories are not planned yet.  The kernel is the only reader of
// the product, reads and writes one element at each point, and does nothing else.  The product moves
// to the step of the kernel.
#include "schedule/copies.h"
#include "schedule/internal.h"
#include "schedule/library/library.h"
#include "schedule/plan/plan.h"

#include <math.h>

struct epilogue {
    const struct nest_program *p;
    const struct nest *nest;
    const struct nest_statement *put;
    struct nest_gemm gemm; // as it is to be
    uint32_t product;      // buffers of the nest
    nest_id bias, addend;
};

static const struct nest_statement *made_by(const struct epilogue *e, nest_id value)
{
    return nest_maker_of(e->nest, value);
}

static bool read_const(const struct epilogue *e, nest_id value, double *out)
{
    const struct nest_statement *s = made_by(e, value);
    if (s->kind != NEST_CONST)
        return false;
    if (s->dtype == JOT_F64)
        memcpy(out, s->bits, sizeof *out);
    else if (s->dtype == JOT_F32) {
        float x;
        memcpy(&x, s->bits, sizeof x);
        *out = (double)x;
    } else if (dtype_is_half(s->dtype) && (s->bits[0] & 0xffff) == 0)
        *out = 0;
    else
        return false;
    return true;
}

static bool is_zero(const struct epilogue *e, nest_id value)
{
    double x;
    return read_const(e, value, &x) && x == 0;
}

static bool is_positive_zero(const struct epilogue *e, nest_id value)
{
    double x;
    return read_const(e, value, &x) && x == 0 && !signbit(x);
}

// A load of what is put here of another matrix; the one of the product, or another one.
static bool is_matrix(const struct epilogue *e, nest_id value, bool is_product)
{
    const struct nest_statement *s = made_by(e, value);
    return s->kind == NEST_LOAD && s->guard == NEST_NONE &&
           (s->buffer == e->product) == is_product && !nest_index_has_values(&s->index) &&
           nest_index_equal(&s->index, &e->put->index);
}

// A load of element j of a vector, where j is the column.
static bool is_vector(const struct epilogue *e, nest_id value)
{
    const struct nest_statement *s = made_by(e, value);
    if (s->kind != NEST_LOAD || s->guard != NEST_NONE || s->buffer == e->product ||
        s->index.constant || s->index.count != 1 || s->index.terms[0].is_value ||
        s->index.terms[0].factor != 1)
        return false;
    nest_id column = s->index.terms[0].id;
    return nest_index_factor(&e->put->index, column) == 1 &&
           e->nest->axes.at[column].extent == e->gemm.n;
}

// ---- What the kernel computes

// alpha c + x, or x + c.
static bool match_addend(struct epilogue *e, const struct nest_statement *s)
{
    double alpha = 1;
    nest_id x, y;
    if (nest_is_op(s, IR_fma)) {
        bool is_first = is_matrix(e, s->in[0], true);
        x = s->in[is_first ? 0 : 1];
        if (!read_const(e, s->in[is_first ? 1 : 0], &alpha))
            return false;
        y = s->in[2];
    } else if (nest_is_op(s, IR_add)) {
        bool is_first = is_matrix(e, s->in[0], true);
        x = s->in[is_first ? 0 : 1];
        y = s->in[is_first ? 1 : 0];
    } else {
        return false;
    }
    if (!is_matrix(e, x, true) || !is_matrix(e, y, false))
        return false;
    e->gemm.alpha = alpha;
    e->gemm.has_addend = true;
    e->addend = made_by(e, y)->buffer;
    return true;
}

static bool match_bias(struct epilogue *e, const struct nest_statement *s)
{
    if (!nest_is_op(s, IR_add))
        return false;
    int at = is_matrix(e, s->in[0], true) ? 0 : 1;
    if (!is_matrix(e, s->in[at], true) || !is_vector(e, s->in[1 - at]))
        return false;
    e->gemm.has_bias = true;
    e->bias = made_by(e, s->in[1 - at])->buffer;
    return true;
}

// jot_relu: select(x <= 0, 0, x); JAX has max(x, 0).
static bool match_relu(struct epilogue *e, const struct nest_statement *s, nest_id *out_x)
{
    for (int i = 0; i < 2 && nest_is_op(s, IR_max); i++)
        if (is_positive_zero(e, s->in[1 - i])) {
            *out_x = s->in[i];
            return true;
        }
    if (!nest_is_op(s, IR_select))
        return false;
    const struct nest_statement *test = made_by(e, s->in[0]);
    if (!nest_is_op(test, IR_le) || test->in[0] != s->in[2] || !is_zero(e, test->in[1]) ||
        !is_zero(e, s->in[1]))
        return false;
    *out_x = s->in[2];
    return true;
}

static bool match(struct epilogue *e)
{
    nest_id x = e->put->in[0];
    const struct nest_statement *s = made_by(e, x);
    // Biases and activations are for real numbers of up to 32 bits.
    bool has_more = e->gemm.dtype == JOT_F32 || dtype_is_half(e->gemm.dtype);
    if (has_more && match_relu(e, s, &x)) {
        e->gemm.activation = NEST_RELU;
        s = made_by(e, x);
    }
    if (has_more && match_bias(e, s))
        return true;
    if (e->gemm.activation != NEST_LINEAR)
        return is_matrix(e, x, true);
    return !dtype_is_complex(e->gemm.dtype) && match_addend(e, s);
}

// ---- The kernel

// One loop over all elements of the matrix, one put of them, and no other structure.
static bool is_pointwise(struct epilogue *e)
{
    const struct nest *n = e->nest;
    const struct nest_statement *loop = NULL;
    nest_for_all (s, n)
        if (s->kind == NEST_PAR && !loop)
            loop = s;
        else if (s->kind == NEST_PUT && !e->put && s->op == 0 && s->guard == NEST_NONE)
            e->put = s;
        else if (s->kind != NEST_OP && s->kind != NEST_CONST && s->kind != NEST_LOAD)
            return false;
    int64_t count = e->gemm.m * e->gemm.n, stride = 1;
    if (!loop || !e->put || e->put->index.constant || e->put->index.count != loop->n_axes ||
        n->buffers.at[e->put->buffer].count != count)
        return false;
    // The last axis of the loop is the one that is contiguous.
    for (uint32_t i = loop->n_axes; i-- > 0;) {
        nest_id axis = loop->axes[i];
        if (nest_index_factor(&e->put->index, axis) != stride)
            return false;
        stride *= n->axes.at[axis].extent;
    }
    return stride == count;
}

// ---- Steps

static bool shows(const struct nest_program *p, uint32_t a, uint32_t b)
{
    return nest_memory_shows(p, a, b) || nest_memory_shows(p, b, a);
}

bool schedule_keeps_operands(const struct nest_program *p, uint32_t i, uint32_t end)
{
    const struct nest_step *s = &p->steps.at[i];
    for (uint32_t j = i + 1; j < end; j++) {
        const struct nest_step *t = &p->steps.at[j];
        if (t->kind != NEST_STEP_KERNEL && t->kind != NEST_STEP_GEMM &&
            t->kind != NEST_STEP_COPY)
            return false;
        for (uint32_t k = 0; k < t->n_memories; k++)
            for (uint32_t of = 0; of < s->n_memories; of++)
                if (shows(p, t->memories[k], s->memories[of]) && plan_is_written(p, t, k) &&
                    !plan_is_written(p, s, of))
                    return false;
    }
    return true;
}

bool schedule_is_unread(const struct nest_program *p, uint32_t i, uint32_t m)
{
    if (p->memories.at[m].kind != NEST_TEMPORARY)
        return false;
    for (uint32_t k = 0; k < p->memories.count; k++)
        if (k != m && shows(p, k, m))
            return false;
    for (uint32_t j = 0; j < p->steps.count; j++)
        for (uint32_t k = 0; k < p->steps.at[j].n_memories; k++)
            if (j != i && p->steps.at[j].memories[k] == m)
                return false;
    return true;
}

uint32_t schedule_find_reader(const struct nest_program *p, uint32_t i, uint32_t m)
{
    uint32_t reader = UINT32_MAX;
    if (p->memories.at[m].kind != NEST_TEMPORARY)
        return UINT32_MAX;
    for (uint32_t k = 0; k < p->memories.count; k++)
        if (k != m && shows(p, k, m))
            return UINT32_MAX;
    for (uint32_t j = 0; j < p->steps.count; j++)
        for (uint32_t k = 0; k < p->steps.at[j].n_memories; k++)
            if (j != i && p->steps.at[j].memories[k] == m) {
                if (reader != UINT32_MAX)
                    return UINT32_MAX;
                reader = j;
            }
    bool is_behind = reader != UINT32_MAX && reader > i;
    return is_behind && schedule_keeps_operands(p, i, reader) ? reader : UINT32_MAX;
}

static bool is_one_matrix(const struct nest_gemm *g)
{
    return g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3] == 1 && g->ldc == g->n &&
           dtype_is_inexact(g->dtype);
}

static bool join_next(struct nest_program *p, uint32_t i)
{
    struct nest_step *product = &p->steps.at[i];
    uint32_t m = product->memories[2];
    if (!is_one_matrix(&product->gemm))
        return false;
    uint32_t reader = schedule_find_reader(p, i, m);
    if (reader == UINT32_MAX || p->steps.at[reader].kind != NEST_STEP_KERNEL)
        return false;
    struct nest_step *kernel = &p->steps.at[reader];
    struct epilogue e = {.p = p, .nest = p->nests.at[kernel->nest], .gemm = product->gemm};
    uint32_t argument = 0;
    while (kernel->memories[argument] != m)
        argument++;
    e.product = nest_buffer_of(e.nest, argument);
    if (!is_pointwise(&e) || !match(&e))
        return false;
    uint32_t *memories = arena_array(p->arena, uint32_t, 5), n = 3;
    memories[0] = product->memories[0];
    memories[1] = product->memories[1];
    memories[2] = kernel->memories[nest_argument_of(e.nest, e.put->buffer)];
    if (e.gemm.has_bias)
        memories[n++] = kernel->memories[nest_argument_of(e.nest, e.bias)];
    if (e.gemm.has_addend)
        memories[n++] = kernel->memories[nest_argument_of(e.nest, e.addend)];
    // What is put over an operand of the product would be read after it is written.
    if (shows(p, memories[2], memories[0]) || shows(p, memories[2], memories[1]))
        return false;
    e.gemm.is_symmetric = false;
    *kernel = (struct nest_step){.kind = NEST_STEP_GEMM,
                                 .gemm = e.gemm,
                                 .n_memories = n,
                                 .memories = memories,
                                 .place = product->place,
                                 .reason = "library call with what follows it"};
    schedule_remove_step(p, i);
    return true;
}

void schedule_drop_nests(struct nest_program *p)
{
    uint32_t kept = 0, *to = arena_array(p->arena, uint32_t, p->nests.count + 1);
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_KERNEL)
            to[p->steps.at[i].nest] = 1;
    for (uint32_t n = 0; n < p->nests.count; n++)
        if (to[n]) {
            to[n] = kept;
            p->nests.at[kept++] = p->nests.at[n];
        }
    p->nests.count = kept;
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_KERNEL)
            p->steps.at[i].nest = to[p->steps.at[i].nest];
}

void schedule_join_products(struct nest_program *p,
                            bool (*join)(struct nest_program *p, uint32_t i))
{
    for (uint32_t i = 0; i < p->steps.count;)
        if (p->steps.at[i].kind != NEST_STEP_GEMM || !join(p, i))
            i++;
    schedule_drop_nests(p);
}

void epilogue_products(struct nest_program *p) { schedule_join_products(p, join_next); }
