// SPDX-License-Identifier: Apache-2.0
// Reductions of matrices by Householder reflectors I - tau v v^H, as LAPACK leaves them: v without its leading 1
// below what it reduces, and tau beside.  A loop over columns of masked products.
#include "interop/graph_call.h"

#include "jot/control.h"

// A reduction of a matrix of so many rows and columns, of so many columns.
struct reduction {
    int64_t n_rows, n_columns, count;
    int64_t below;   // the row of the leading 1 is that of the column and so many more
    bool is_similar; // from the right too
};

struct reflector {
    jot_value v, tau, beta;
};

static jot_value constant(int64_t x) { return jot_from_int(x); }

static jot_value sum(jot_value x, int axis)
{
    return jot_sum_axes(x, (const int[]){axis, JOT_END});
}

static jot_value expanded(jot_value x, int axis)
{
    return jot_expand_dims_axes(x, (const int[]){axis, JOT_END});
}

static jot_value conjugate(jot_value x)
{
    return dtype_is_complex(ir_dtype(trace_type(x))) ? jot_conj(x) : x;
}

static jot_value squared(jot_value x) { return jot_real(jot_mul(x, conjugate(x))); }

// The one that takes what is below row `at` of a column to zero, and row `at` to beta, which is real.
static struct reflector reflect(jot_value column, jot_value rows, jot_value at)
{
    jot_value is_first = jot_equal(rows, at), is_below = jot_greater(rows, at);
    jot_value alpha = sum(jot_where(is_first, column, constant(0)), 0);
    jot_value x = jot_where(is_below, column, constant(0)), rest = sum(squared(x), 0);
    jot_value size = jot_sqrt(jot_add(rest, squared(alpha)));
    jot_value beta = jot_where(jot_less(jot_real(alpha), constant(0)), size, jot_neg(size));
    jot_value is_done = jot_equal(rest, constant(0));
    if (dtype_is_complex(ir_dtype(trace_type(alpha))))
        is_done = jot_logical_and(is_done, jot_equal(jot_imag(alpha), constant(0)));
    struct reflector r;
    r.tau =
        jot_where(is_done, jot_mul(alpha, constant(0)), jot_div(jot_sub(beta, alpha), beta));
    r.v = jot_where(is_done, jot_mul(x, constant(0)), jot_div(x, jot_sub(alpha, beta)));
    r.v = jot_where(is_first, constant(1), r.v);
    r.beta = jot_where(is_done, alpha, beta);
    return r;
}

// The column k, by a mask, as k is data.
static jot_value column_of(jot_value a, jot_value is_column)
{
    return sum(jot_where(is_column, a, constant(0)), 1);
}

static jot_value outer(jot_value x, jot_value y)
{
    return jot_mul(expanded(x, 1), expanded(y, 0));
}

static void reduce_column(jot_value k, jot_value *carry, void *ctx)
{
    const struct reduction *d = ctx;
    jot_value a = carry[0], rows = jot_arange(JOT_I32, d->n_rows);
    jot_value columns = jot_arange(JOT_I32, d->n_columns), at = jot_add(k, constant(d->below));
    jot_value is_column = jot_equal(columns, k), column = column_of(a, is_column);
    struct reflector r = reflect(column, rows, at);
    if (d->is_similar)
        a = jot_sub(a, jot_mul(r.tau, outer(jot_matmul(a, r.v), conjugate(r.v))));
    jot_value w = jot_matmul(conjugate(r.v), a);
    w = jot_where(jot_greater(columns, k), w, constant(0));
    a = jot_sub(a, jot_mul(conjugate(r.tau), outer(r.v, w)));
    column =
        jot_where(jot_greater(rows, at), r.v, jot_where(jot_equal(rows, at), r.beta, column));
    carry[0] = jot_where(is_column, expanded(column, 1), a);
    carry[1] = jot_where(jot_equal(jot_arange(JOT_I32, d->count), k), r.tau, carry[1]);
}

static void reduce(const jot_value *in, jot_value *out, void *ctx)
{
    const struct reduction *d = ctx;
    out[0] = in[0];
    out[1] = jot_zeros_dims(ir_dtype(trace_type(in[0])), (const int64_t[]){d->count, JOT_END});
    jot_for_at(reduce_column, ctx, jot_from_int(0), jot_from_int(d->count), 2, out,
               "reflectors");
}

static void multiply_by_last(jot_value i, jot_value *carry, void *ctx)
{
    const struct reduction *d = ctx;
    jot_value k = jot_sub(constant(d->count - 1), i), rows = jot_arange(JOT_I32, d->n_rows);
    jot_value is_column = jot_equal(jot_arange(JOT_I32, d->n_columns), k);
    jot_value v = jot_where(jot_greater(rows, k), column_of(carry[1], is_column), constant(0));
    jot_value is_k = jot_equal(jot_arange(JOT_I32, d->count), k);
    jot_value tau = sum(jot_where(is_k, carry[2], constant(0)), 0);
    v = jot_where(jot_equal(rows, k), constant(1), v);
    carry[0] = jot_sub(carry[0], jot_mul(tau, outer(v, jot_matmul(conjugate(v), carry[0]))));
}

// The first columns of the product of the reflectors.
static void multiply(const jot_value *in, jot_value *out, void *ctx)
{
    const struct reduction *d = ctx;
    jot_value rows = jot_arange(JOT_I32, d->n_rows),
              columns = jot_arange(JOT_I32, d->n_columns);
    jot_value is_one = jot_equal(expanded(rows, 1), columns);
    jot_value carry[] = {jot_convert(is_one, ir_dtype(trace_type(in[0]))), in[0], in[1]};
    jot_for_at(multiply_by_last, ctx, jot_from_int(0), jot_from_int(d->count), 3, carry,
               "reflectors");
    *out = carry[0];
}

// By matrix, over leading axes.
static void map(struct graph_op *g, const struct reduction *d,
                void (*f)(const jot_value *in, jot_value *out, void *ctx), int n_in, int n_out,
                const jot_value *in)
{
    jot_value out[2];
    struct reduction *own = arena_copy(g->frame->arena, d, sizeof *d);
    jot_function matrix = jot_function_uniform("reflectors", "reflectors", f, n_in, n_out, own);
    for (int i = 0; i + 2 < ir_type_in(g->b, g->in[0]).rank; i++)
        matrix = jot_vmap_of(matrix, "reflectors", (const int[]){JOT_END});
    jot_apply_at(matrix, (size_t)n_in, in, (size_t)n_out, out, graph_where(g->frame, g->op));
    for (int i = 0; i < n_out; i++)
        graph_take(g, i, out[i]);
}

static struct reduction reduction_of(const struct graph_op *g)
{
    struct ir_type a = ir_type_in(g->b, g->in[0]);
    const int64_t *dims = ir_dims(g->b->module, a);
    int64_t m = dims[a.rank - 2], n = dims[a.rank - 1];
    return (struct reduction){.n_rows = m, .n_columns = n, .count = m < n ? m : n};
}

void graph_reduce_qr(struct graph_op *g)
{
    struct reduction d = reduction_of(g);
    map(g, &d, reduce, 1, 2, (jot_value[]){trace_value(g->in[0], false)});
}

void graph_reduce_hessenberg(struct graph_op *g, ir_id a)
{
    struct reduction d = reduction_of(g);
    d.count = d.n_rows ? d.n_rows - 1 : 0;
    d.below = 1;
    d.is_similar = true;
    map(g, &d, reduce, 1, 2, (jot_value[]){trace_value(a, false)});
}

void graph_multiply_reflectors(struct graph_op *g)
{
    struct reduction d = reduction_of(g);
    struct ir_type taus = ir_type_in(g->b, g->in[1]);
    d.count = ir_dims(g->b->module, taus)[taus.rank - 1];
    map(g, &d, multiply, 2, 1,
        (jot_value[]){trace_value(g->in[0], false), trace_value(g->in[1], false)});
}
