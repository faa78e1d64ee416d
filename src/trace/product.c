// SPDX-License-Identifier: Apache-2.0
// Products with sums: dot, matmul, tensordot and their kin.
#include "trace/emit.h"

struct product {
    jot_value v[2];
    struct ir_type types[2];
    const int64_t *dims[2];
    ir_id ids[2];
    struct trace_promoted p;
    int precision;
};

static bool open_product(const char *name, jot_value x, jot_value y,
                         const jot_product_options *options, struct product *out,
                         jot_value *out_error)
{
    out->v[0] = x;
    out->v[1] = y;
    if (!trace_ready(name, 2, out->v, out_error))
        return false;
    int asked = options ? (int)options->precision : JOT_PRECISION_FULL;
    if (asked < 0 || asked > JOT_PRECISION_3TF32) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "there is no precision %d", asked);
        return false;
    }
    out->precision = asked ? asked : trace_top()->root->precision;
    // Products of truth values are counts.
    bool both_bool = trace_slot_of(out->v[0])->dtype == JOT_BOOL &&
                     trace_slot_of(out->v[1])->dtype == JOT_BOOL;
    if (both_bool)
        out->p = (struct trace_promoted){.seen = JOT_I32, .dtype = JOT_I32};
    else if (!trace_promote(name, "num", 2, out->v, &out->p, out_error))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!trace_fits(name, out->v[i], out->p.dtype, out_error))
            return false;
        out->ids[i] = trace_operand(out->v[i], out->p.dtype);
        out->types[i] = trace_type(out->v[i]);
        out->dims[i] = ir_dims(trace_top()->module, out->types[i]);
    }
    return true;
}

static jot_value fail_sizes(const char *name, const struct product *p, int64_t a, int64_t b)
{
    return trace_fail(name, JOT_ERR_SHAPE, "contracting %lld with %lld: %s · %s", (long long)a,
                      (long long)b, trace_type_text(p->v[0]), trace_type_text(p->v[1]));
}

// The sum over n pairs of axes; free axes of x, then those of y.
static jot_value contract(const char *name, const struct product *p, int n,
                          const int64_t *x_axes, const int64_t *y_axes)
{
    for (int i = 0; i < n; i++)
        if (p->dims[0][x_axes[i]] != p->dims[1][y_axes[i]])
            return fail_sizes(name, p, p->dims[0][x_axes[i]], p->dims[1][y_axes[i]]);
    struct ir_dot d = {.n_contract = n,
                       .lhs_contract = x_axes,
                       .rhs_contract = y_axes,
                       .precision = p->precision};
    return trace_result(name, ir_dot_general(trace_builder(), p->ids[0], p->ids[1], &d),
                        p->p.weak);
}

jot_value trace_product(const char *name, jot_value x, jot_value y, const struct ir_dot *dims)
{
    struct product p;
    jot_value error;
    if (!open_product(name, x, y, NULL, &p, &error))
        return error;
    struct ir_dot d = *dims;
    d.precision = p.precision;
    return trace_result(name, ir_dot_general(trace_builder(), p.ids[0], p.ids[1], &d),
                        p.p.weak);
}

static jot_value dot(jot_value x, jot_value y, const jot_product_options *options)
{
    struct product p;
    jot_value error;
    if (!open_product("jot_dot", x, y, options, &p, &error))
        return error;
    int rx = p.types[0].rank, ry = p.types[1].rank;
    if (rx == 0 || ry == 0)
        return trace_map(IR_mul, "jot_dot", 2, p.v);
    return contract("jot_dot", &p, 1, (int64_t[]){rx - 1}, (int64_t[]){ry >= 2 ? ry - 2 : 0});
}

jot_value jot_dot_with(jot_value x, jot_value y, const jot_product_options *options)
{
    TRACE_RETURN(dot(x, y, options));
}

jot_value jot_dot(jot_value x, jot_value y) { return jot_dot_with(x, y, NULL); }

// Repeats the axes in front of the matrix to `batch`.
static ir_id spread_batch(ir_id id, int n_batch, const int64_t *batch, int n_matrix)
{
    struct ir_builder *b = trace_builder();
    struct ir_type t = ir_type_in(b, id);
    const int64_t *old = ir_dims(b->module, t);
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK];
    int shift = n_batch + n_matrix - t.rank;
    bool same = shift == 0;
    for (int i = 0; i < n_batch + n_matrix; i++) {
        dims[i] = i < n_batch ? batch[i] : old[i - shift];
        if (i >= shift) {
            axes[i - shift] = i;
            same &= old[i - shift] == dims[i];
        }
    }
    return same ? id : ir_broadcast_in_dim(b, id, n_batch + n_matrix, dims, axes);
}

static bool common_batch(const struct product *p, const int *n_matrix, int *out_n, int64_t *out)
{
    int nx = p->types[0].rank - n_matrix[0], ny = p->types[1].rank - n_matrix[1];
    int n = nx > ny ? nx : ny;
    for (int k = 1; k <= n; k++) {
        int64_t a = k <= nx ? p->dims[0][nx - k] : 1, b = k <= ny ? p->dims[1][ny - k] : 1;
        if (a != b && a != 1 && b != 1)
            return false;
        out[n - k] = a == 1 ? b : a;
    }
    *out_n = n;
    return true;
}

// jot sums rows that are not there at once: with matrices alone on one side no batch is needed.
static jot_value matmul(jot_value x, jot_value y, const jot_product_options *options)
{
    const char *name = "jot_matmul";
    struct product p;
    jot_value error;
    if (!open_product(name, x, y, options, &p, &error))
        return error;
    int rx = p.types[0].rank, ry = p.types[1].rank, n;
    if (rx == 0 || ry == 0)
        return trace_fail(name, JOT_ERR_SHAPE, "%s · %s: a scalar is no matrix: use jot_mul",
                          trace_type_text(p.v[0]), trace_type_text(p.v[1]));
    if (ry <= 2)
        return contract(name, &p, 1, (int64_t[]){rx - 1}, (int64_t[]){ry - 1 - (ry > 1)});
    int n_matrix[] = {rx > 1 ? 2 : 1, 2};
    int64_t batch[IR_MAX_RANK], axes[IR_MAX_RANK];
    if (!common_batch(&p, n_matrix, &n, batch))
        return trace_fail(name, JOT_ERR_SHAPE,
                          "%s · %s: the axes before the matrices do not broadcast",
                          trace_type_text(p.v[0]), trace_type_text(p.v[1]));
    int64_t inner_x = p.dims[0][rx - 1], inner_y = p.dims[1][ry - 2];
    if (inner_x != inner_y)
        return fail_sizes(name, &p, inner_x, inner_y);
    for (int i = 0; i < n; i++)
        axes[i] = i;
    int64_t cx = n + n_matrix[0] - 1, cy = n;
    struct ir_dot d = {.n_batch = n,
                       .lhs_batch = axes,
                       .rhs_batch = axes,
                       .n_contract = 1,
                       .lhs_contract = &cx,
                       .rhs_contract = &cy,
                       .precision = p.precision};
    ir_id a = spread_batch(p.ids[0], n, batch, n_matrix[0]);
    ir_id b = spread_batch(p.ids[1], n, batch, n_matrix[1]);
    return trace_result(name, ir_dot_general(trace_builder(), a, b, &d), p.p.weak);
}

jot_value jot_matmul_with(jot_value x, jot_value y, const jot_product_options *options)
{
    TRACE_RETURN(matmul(x, y, options));
}

jot_value jot_matmul(jot_value x, jot_value y) { return jot_matmul_with(x, y, NULL); }

static jot_value tensordot(jot_value x, jot_value y, int n)
{
    struct product p;
    jot_value error;
    if (!open_product("jot_tensordot", x, y, NULL, &p, &error))
        return error;
    if (n < 0 || n > p.types[0].rank || n > p.types[1].rank)
        return trace_fail("jot_tensordot", JOT_ERR_ARGUMENT, "%d axes of %s and %s", n,
                          trace_type_text(p.v[0]), trace_type_text(p.v[1]));
    int64_t x_axes[IR_MAX_RANK], y_axes[IR_MAX_RANK];
    for (int i = 0; i < n; i++) {
        x_axes[i] = p.types[0].rank - n + i;
        y_axes[i] = i;
    }
    return contract("jot_tensordot", &p, n, x_axes, y_axes);
}

jot_value jot_tensordot(jot_value x, jot_value y, int axes)
{
    TRACE_RETURN(tensordot(x, y, axes));
}

static jot_value tensordot_axes(jot_value x, jot_value y, const int *x_list, const int *y_list)
{
    const char *name = "jot_tensordot";
    struct product p;
    jot_value error;
    int nx, ny;
    int64_t x_axes[IR_MAX_RANK], y_axes[IR_MAX_RANK];
    if (!open_product(name, x, y, NULL, &p, &error) ||
        !trace_axes(name, p.v[0], p.types[0].rank, x_list, false, &nx, x_axes, NULL, &error) ||
        !trace_axes(name, p.v[1], p.types[1].rank, y_list, false, &ny, y_axes, NULL, &error))
        return error;
    if (nx != ny)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d axes with %d", nx, ny);
    return contract(name, &p, nx, x_axes, y_axes);
}

jot_value jot_tensordot_axes(jot_value x, jot_value y, const int *x_axes, const int *y_axes)
{
    TRACE_RETURN(tensordot_axes(x, y, x_axes, y_axes));
}

static const int64_t flat[] = {-1, JOT_END};

jot_value jot_outer(jot_value x, jot_value y)
{
    return jot_tensordot(jot_reshape_dims(x, flat), jot_reshape_dims(y, flat), 0);
}

jot_value jot_vdot(jot_value x, jot_value y)
{
    return jot_tensordot(jot_conj(jot_reshape_dims(x, flat)), jot_reshape_dims(y, flat), 1);
}
