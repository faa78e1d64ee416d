// SPDX-License-Identifier: Apache-2.0
#include "random/programs.h"

#include "ir/control.h"
#include "ir/indexing.h"
#include "support/opcases.h"

#include <math.h>

enum { MOST_ELEMENTS = 700, MOST_NODES = 24, MOST_AXES = 6 };

struct maker {
    struct ir_builder b;
    struct ir_module *m;
    uint64_t state;
    bool is_derivable;
    int depth; // of calls
    VEC(ir_id) pool;
};

static uint64_t draw(struct maker *k, uint64_t n)
{
    return (uint64_t)(opcase_random(&k->state) * (double)n);
}

static bool chance(struct maker *k, uint64_t one_in) { return draw(k, one_in) == 0; }

static ir_id pick(struct maker *k)
{
    // Half the time one of the last few, so that chains get long.
    uint32_t n = k->pool.count;
    return k->pool.at[chance(k, 2) && n > 3 ? n - 1 - draw(k, 3) : draw(k, n)];
}

// Of a value that failed: any type; the program is given up in the end.
static struct ir_type type_in(struct maker *k, ir_id v)
{
    return ir_type_in(&k->b, v == IR_NONE ? 0 : v);
}

static jot_dtype dtype_in(struct maker *k, ir_id v) { return ir_dtype(type_in(k, v)); }

static const int64_t *dims_in(struct maker *k, ir_id v) { return ir_dims(k->m, type_in(k, v)); }

static int64_t count_in(struct maker *k, ir_id v) { return ir_count(k->m, type_in(k, v)); }

// -- Types ------------------------------------------------------------------------------------

static jot_dtype draw_dtype(struct maker *k)
{
    static const jot_dtype likely[] = {JOT_F32, JOT_F64, JOT_I32, JOT_F32, JOT_U8, JOT_F16};
    if (k->is_derivable)
        return JOT_F64;
    return chance(k, 2) ? likely[draw(k, 6)] : (jot_dtype)draw(k, DTYPE_COUNT);
}

static struct ir_type draw_type(struct maker *k, jot_dtype d)
{
    static const int64_t extents[] = {1, 2, 3, 5, 7, 4, 13, 17, 31, 64, 65, 67, 130};
    int64_t dims[4], count = 1;
    int rank = (int)draw(k, 4);
    for (int i = 0; i < rank; i++) {
        dims[i] = extents[draw(k, i == 0 ? 13 : 7)];
        if (count * dims[i] > MOST_ELEMENTS)
            dims[i] = 2;
        count *= dims[i];
    }
    if (rank && chance(k, 40))
        dims[draw(k, (uint64_t)rank)] = 0;
    if (rank == 1 && chance(k, 60))
        dims[0] = 4097 + (int64_t)draw(k, 70);
    return ir_type_make(k->m, d, rank, dims);
}

static ir_id constant(struct maker *k, jot_dtype d)
{
    static const double values[] = {0, 1, 2, -1, 0.5, 3, -0.0};
    double x = values[draw(k, 7)];
    if (d == JOT_BOOL || dtype_is_unsigned(d))
        x = fabs(x) > 1 && d == JOT_BOOL ? 1 : fabs(x);
    return ir_scalar(&k->b, d, x);
}

// -- Fitting operands -------------------------------------------------------------------------

// x with the dtype.
static ir_id as_dtype(struct maker *k, ir_id x, jot_dtype d)
{
    return dtype_in(k, x) == d ? x : ir_convert(&k->b, x, d);
}

// A value of the dtype whose shape fits that of x: the same, broadcast, or rank 0.
static ir_id partner(struct maker *k, ir_id x, jot_dtype d)
{
    struct ir_type t = type_in(k, x);
    for (int attempt = chance(k, 5) ? 6 : 0; attempt < 6; attempt++) {
        ir_id y = pick(k);
        struct ir_type u = type_in(k, y), both[] = {t, ir_type_with(u, ir_dtype(t))}, out;
        if (k->is_derivable && dtype_in(k, y) != d)
            continue;
        if (ir_broadcast_types(k->m, 2, both, &out) && ir_count(k->m, out) <= 2 * MOST_ELEMENTS)
            return as_dtype(k, y, d);
        // A vector along one of the axes.
        if (u.rank == 1 && t.rank > 1)
            for (int64_t axis = 0; axis < t.rank; axis++)
                if (ir_dims(k->m, t)[axis] == ir_dims(k->m, u)[0])
                    return as_dtype(
                        k, ir_broadcast_in_dim(&k->b, y, t.rank, ir_dims(k->m, t), &axis), d);
    }
    return constant(k, d);
}

// x moved to where the op is tame, most of the time.
static ir_id shaped(struct maker *k, enum ir_op op, ir_id x)
{
    const char *domain = ir_op_get(op)->domain;
    jot_dtype d = dtype_in(k, x);
    struct ir_builder *b = &k->b;
    if (!dtype_is_float(d) || (!k->is_derivable && chance(k, 6)))
        return x;
    if (!strcmp(domain, "UNIT"))
        return ir_mul(b, ir_sin(b, x), ir_scalar(b, d, 0.875));
    if (!strcmp(domain, "SMALL"))
        return ir_mul(b, ir_tanh(b, x), ir_scalar(b, d, 2));
    if (!strcmp(domain, "POSITIVE"))
        return ir_add(b, ir_abs(b, ir_tanh(b, x)), ir_scalar(b, d, 0.5));
    if (!strcmp(domain, "ABOVE1"))
        return ir_add(b, ir_abs(b, x), ir_scalar(b, d, 1.25));
    if (!strcmp(domain, "NONZERO"))
        return ir_add(b, ir_mul(b, x, x), ir_scalar(b, d, 0.75));
    return x;
}

// -- Nodes, by class --------------------------------------------------------------------------

static enum ir_op draw_op(struct maker *k, enum ir_class op_class)
{
    for (;;) {
        enum ir_op op = (enum ir_op)draw(k, IR_OP_COUNT);
        if (ir_op_class(op) == op_class)
            return op;
    }
}

static bool needs_attributes(enum ir_op op)
{
    return op == IR_convert || op == IR_bitcast || op == IR_integer_pow ||
           op == IR_reduce_precision;
}

static ir_id make_special_map(struct maker *k, enum ir_op op, ir_id x)
{
    jot_dtype d = dtype_in(k, x);
    switch (op) {
    case IR_integer_pow:
        return d == JOT_BOOL ? IR_NONE
                             : ir_integer_pow(&k->b, k->is_derivable ? ir_sin(&k->b, x) : x,
                                              (int64_t)draw(k, 4));
    case IR_bitcast:
        if (k->is_derivable || d == JOT_BOOL || dtype_is_complex(d))
            return IR_NONE;
        return ir_bitcast(&k->b, x,
                          dtype_is_integer(d) && jot_dtype_size(d) == 4 ? JOT_F32
                          : jot_dtype_size(d) == 8                      ? JOT_I64
                          : jot_dtype_size(d) == 4                      ? JOT_U32
                          : jot_dtype_size(d) == 2                      ? JOT_I16
                                                                        : JOT_U8);
    case IR_reduce_precision:
        if (!dtype_is_float(d) || k->is_derivable)
            return IR_NONE;
        return ir_build(&k->b, op, 1, &x,
                        ir_attrs(k->m, IR_INT(exponent_bits, 8), IR_INT(mantissa_bits, 7)));
    default:
        return k->is_derivable ? IR_NONE : ir_convert(&k->b, x, draw_dtype(k));
    }
}

static ir_id make_map(struct maker *k)
{
    enum ir_op op = draw_op(k, IR_CLASS_MAP);
    const struct ir_op_info *info = ir_op_get(op);
    ir_id x = pick(k);
    if (needs_attributes(op))
        return make_special_map(k, op, x);
    jot_dtype d = dtype_in(k, x);
    if (op == IR_select) {
        ir_id p = ir_lt(&k->b, k->is_derivable ? x : as_dtype(k, x, JOT_F32),
                        ir_scalar(&k->b, k->is_derivable ? JOT_F64 : JOT_F32, 0.5));
        return ir_select(&k->b, p, x, partner(k, x, d));
    }
    for (int attempt = 0; !opcase_takes(op, d) && attempt < 30; attempt++)
        d = draw_dtype(k);
    if (!opcase_takes(op, d) || (k->is_derivable && op == IR_complex))
        return IR_NONE;
    ir_id in[4];
    in[0] = as_dtype(k, x, d);
    for (int i = 1; i < info->in; i++)
        in[i] = partner(k, in[0], d);
    for (int i = 0; i < info->in; i++)
        if (info->in == 1 || op == IR_pow || ((op == IR_div || op == IR_rem) && i == 1) ||
            op == IR_atan2)
            in[i] = shaped(k, op, in[i]);
    if (op == IR_clamp) { // the lower bound first
        in[1] = in[0];
        in[0] = ir_scalar(&k->b, d, dtype_is_unsigned(d) ? 0 : -1);
        in[2] = ir_scalar(&k->b, d, 2);
    }
    return ir_build(&k->b, op, info->in, in, NULL);
}

static ir_id make_layout(struct maker *k)
{
    ir_id x = pick(k);
    struct ir_type t = type_in(k, x);
    const int64_t *dims = dims_in(k, x);
    int64_t a[MOST_AXES + 1], c[MOST_AXES + 1], e[MOST_AXES + 1];
    struct ir_builder *b = &k->b;
    switch (draw(k, 8)) {
    case 0: // a new axis
        if (count_in(k, x) > 200 || t.rank == MOST_AXES)
            return IR_NONE;
        for (int i = 0, at = (int)draw(k, t.rank + 1u); i <= t.rank; i++) {
            a[i] = i < at ? dims[i] : i == at ? (int64_t)(1 + draw(k, 5)) : dims[i - 1];
            if (i < t.rank)
                c[i] = i < at ? i : i + 1;
        }
        return ir_broadcast_in_dim(b, x, t.rank + 1, a, c);
    case 1: // other rows
        if (t.rank > 1 && chance(k, 2)) {
            a[0] = dims[0] * dims[1];
            memcpy(a + 1, dims + 2, (t.rank - 2u) * sizeof *a);
            return ir_reshape(b, x, t.rank - 1, a);
        }
        if (t.rank == 0)
            return ir_reshape(b, x, 1, (int64_t[]){1});
        for (int64_t p = 2; p < 8 && t.rank < MOST_AXES; p++)
            if (dims[0] % p == 0) {
                a[0] = p, a[1] = dims[0] / p;
                memcpy(a + 2, dims + 1, (t.rank - 1u) * sizeof *a);
                return ir_reshape(b, x, t.rank + 1, a);
            }
        return IR_NONE;
    case 2:
        for (int i = 0; i < t.rank; i++)
            a[i] = i;
        for (int i = t.rank - 1; i > 0; i--) {
            int j = (int)draw(k, i + 1u);
            int64_t swap = a[i];
            a[i] = a[j], a[j] = swap;
        }
        return ir_transpose(b, x, a);
    case 3:
        if (t.rank == 0)
            return IR_NONE;
        return ir_rev(b, x, 1, (int64_t[]){(int64_t)draw(k, t.rank)});
    case 4:
        for (int i = 0; i < t.rank; i++) {
            a[i] = (int64_t)draw(k, (uint64_t)dims[i] / 2 + 1);
            c[i] = dims[i] - (int64_t)draw(k, (uint64_t)(dims[i] - a[i]) / 2 + 1);
            e[i] = 1 + (int64_t)draw(k, 2) * (int64_t)draw(k, 3);
        }
        return ir_slice(b, x, a, c, e);
    case 5:
        if (count_in(k, x) > 200 && t.rank > 1)
            return IR_NONE;
        for (int i = 0; i < t.rank; i++) {
            a[i] = (int64_t)draw(k, 4) - 1;
            c[i] = (int64_t)draw(k, 4) - 1;
            e[i] = (int64_t)draw(k, 2) * (int64_t)draw(k, 2);
            if (dims[i] < 3)
                a[i] = a[i] < 0 ? 0 : a[i], c[i] = c[i] < 0 ? 0 : c[i];
        }
        return ir_pad(b, x, constant(k, ir_dtype(t)), a, c, e);
    case 6: {
        if (t.rank == 0 || count_in(k, x) > 400)
            return IR_NONE;
        int axis = (int)draw(k, t.rank);
        ir_id in[3] = {x, x, x};
        for (int i = 1; i < 3; i++) {
            ir_id y = pick(k);
            if (ir_type_equal(type_in(k, y), t))
                in[i] = y;
        }
        return ir_concatenate(b, 2 + (int)draw(k, 2), in, axis);
    }
    default:
        if (t.rank == 0 || k->is_derivable)
            return IR_NONE;
        return ir_iota(b, ir_type_with(t, chance(k, 2) ? JOT_I32 : JOT_F32),
                       (int)draw(k, t.rank));
    }
}

// Places [n], some of them outside of an axis of the extent.  Derivable programs take them from
// nowhere: a place that moves has no difference quotient.
static ir_id make_places(struct maker *k, int64_t n, int64_t extent)
{
    struct ir_builder *b = &k->b;
    ir_id x = pick(k);
    if (!k->is_derivable && count_in(k, x) == n && !dtype_is_complex(dtype_in(k, x)))
        return ir_reshape(b, ir_convert(b, x, chance(k, 2) ? JOT_I32 : JOT_I64), 1, &n);
    ir_id i = ir_iota(b, ir_type_make(k->m, JOT_I32, 1, &n), 0);
    i = ir_mul(b, i, ir_scalar_int(b, JOT_I32, (int64_t)draw(k, 100)));
    i = ir_rem(b, i, ir_scalar_int(b, JOT_I32, extent + 2));
    return ir_sub(b, i, ir_scalar_int(b, JOT_I32, (int64_t)draw(k, 3)));
}

static ir_id make_dynamic_slice(struct maker *k, ir_id x)
{
    struct ir_builder *b = &k->b;
    struct ir_type t = type_in(k, x);
    const int64_t *dims = dims_in(k, x);
    int64_t sizes[MOST_AXES + 1], zeros[MOST_AXES + 1] = {0};
    ir_id starts[MOST_AXES + 1], places = make_places(k, t.rank, dims[0]);
    for (int64_t i = 0; i < t.rank; i++) {
        int64_t end = i + 1;
        sizes[i] = 1 + (int64_t)draw(k, (uint64_t)dims[i]);
        starts[i] = ir_reshape(b, ir_slice(b, places, &i, &end, NULL), 0, NULL);
    }
    if (chance(k, 2))
        return ir_dynamic_slice(b, x, starts, sizes);
    ir_id part = ir_slice(b, x, zeros, sizes, NULL);
    return ir_dynamic_update_slice(b, x, ir_rev(b, part, 1, zeros), starts);
}

// Rows along the first axis, and perhaps what they are put into.
static ir_id make_places_map(struct maker *k)
{
    static const enum ir_op ops[] = {IR_scatter, IR_scatter_add, IR_scatter_min, IR_scatter_max,
                                     IR_scatter_mul};
    struct ir_builder *b = &k->b;
    ir_id x = pick(k);
    struct ir_type t = type_in(k, x);
    int64_t offset[MOST_AXES + 1], sizes[MOST_AXES + 1], zero = 0;
    if (t.rank == 0 || count_in(k, x) == 0 || count_in(k, x) / dims_in(k, x)[0] > 80)
        return IR_NONE;
    if (chance(k, 3))
        return make_dynamic_slice(k, x);
    const int64_t *dims = dims_in(k, x);
    int64_t shape[] = {1 + (int64_t)draw(k, 8), 1};
    for (int i = 0; i < t.rank; i++) {
        sizes[i] = i ? dims[i] : 1;
        offset[i] = i + 1;
    }
    struct ir_gather g = {.n_offset = t.rank - 1,
                          .offset_dims = offset,
                          .n_collapsed = 1,
                          .collapsed_dims = &zero,
                          .n_map = 1,
                          .index_map = &zero,
                          .sizes = sizes,
                          .mode = (enum ir_index_mode)draw(k, IR_MODE_COUNT)};
    if (k->is_derivable && g.mode == IR_MODE_FILL)
        g.mode = IR_MODE_DROP;
    ir_id places = ir_reshape(b, make_places(k, shape[0], dims[0]), 2, shape);
    ir_id rows = ir_gather(b, x, places, &g);
    enum ir_op op = ops[draw(k, k->is_derivable ? 2 : 5)];
    if (chance(k, 2) || !opcase_takes(op, ir_dtype(t)))
        return rows;
    return ir_scatter(b, op, x, places, rows, &g);
}

static ir_id make_fold(struct maker *k, enum ir_class op_class)
{
    enum ir_op op = draw_op(k, op_class);
    ir_id x = pick(k);
    jot_dtype d = dtype_in(k, x);
    for (int attempt = 0; !opcase_takes(op, d) && attempt < 20; attempt++)
        d = draw_dtype(k);
    struct ir_type t = type_in(k, x);
    if (!opcase_takes(op, d) || t.rank == 0)
        return IR_NONE;
    x = as_dtype(k, x, d);
    int64_t axes[MOST_AXES], axis = (int64_t)draw(k, t.rank);
    if (op_class == IR_CLASS_CUMULATIVE) {
        x = op == IR_cumprod ? shaped(k, IR_sin, x) : x;
        return ir_cumulative(&k->b, op, x, (int)axis, chance(k, 2));
    }
    if (op_class == IR_CLASS_ARG)
        return d == JOT_BOOL || dims_in(k, x)[axis] == 0
                   ? IR_NONE
                   : ir_arg(&k->b, op, x, (int)axis, JOT_I32);
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        if (i == axis || chance(k, 2))
            axes[n++] = i;
    if (op == IR_reduce_prod && dtype_is_float(d))
        x = ir_sin(&k->b, x);
    return ir_reduce(&k->b, op, x, n, axes);
}

static ir_id make_dot(struct maker *k)
{
    ir_id x = pick(k), y = pick(k);
    jot_dtype d = dtype_in(k, x);
    if (d == JOT_BOOL)
        return IR_NONE;
    struct ir_type t = type_in(k, x), u = type_in(k, y);
    for (int64_t i = 0; i < t.rank; i++)
        for (int64_t j = 0; j < u.rank; j++) {
            int64_t n = ir_dims(k->m, t)[i];
            if (n != ir_dims(k->m, u)[j] || n == 0 || t.rank + u.rank - 2 > MOST_AXES)
                continue;
            if (ir_count(k->m, t) / n * (ir_count(k->m, u) / n) > MOST_ELEMENTS)
                continue;
            if (k->is_derivable && ir_dtype(u) != JOT_F64)
                continue;
            struct ir_dot dot = {.n_contract = 1, .lhs_contract = &i, .rhs_contract = &j};
            return ir_dot_general(&k->b, x, as_dtype(k, y, d), &dot);
        }
    return IR_NONE;
}

// Parameters, and results that a function must have before those it has beside them.
struct signature {
    uint32_t n_types, n_results;
    const struct ir_type *types, *results; // types NULL: as the function likes
};

static uint32_t make_function(struct ir_module *m, uint64_t seed, bool is_derivable, int depth,
                              const struct signature *signature, uint64_t n_more);

// A function of its own of values that are picked, or IR_NONE.
static uint32_t make_part(struct maker *k, const struct signature *signature, uint64_t n_more)
{
    uint32_t f =
        make_function(k->m, k->state, k->is_derivable, k->depth + 1, signature, n_more);
    draw(k, 2);
    return f;
}

static void pick_operands(struct maker *k, uint32_t n, ir_id *in, struct ir_type *types)
{
    for (uint32_t i = 0; i < n; i++) {
        in[i] = pick(k);
        types[i] = type_in(k, in[i]);
    }
}

// The results after the first, too, can be picked.  There may be none.
static ir_id add_results(struct maker *k, ir_id v)
{
    if (v == IR_NONE || v == k->b.graph->values.count)
        return IR_NONE;
    for (uint32_t i = 1; i < ir_node_of(k->b.graph, v)->n_out; i++)
        vec_push(k->m->arena, &k->pool, v + i);
    return v;
}

static ir_id make_call(struct maker *k)
{
    uint32_t n = 1 + (uint32_t)draw(k, 2);
    ir_id in[2];
    struct ir_type types[2];
    pick_operands(k, n, in, types);
    uint32_t f =
        make_part(k, &(struct signature){.n_types = n, .types = types}, 1 + draw(k, 3));
    if (f == IR_NONE)
        return IR_NONE;
    enum ir_op op = chance(k, 3) ? IR_checkpoint : IR_call;
    return add_results(k, ir_call(&k->b, op, 1, &f, (int)n, in));
}

// Up to two consts, up to three carries, and rows of one value where its axis 0 is short.
static ir_id make_scan(struct maker *k)
{
    struct ir_scan s = {.n_consts = (int)draw(k, 3),
                        .n_carry = (int)draw(k, 4),
                        .length = (int64_t)draw(k, 5),
                        .reverse = chance(k, 2)};
    uint32_t n = (uint32_t)(s.n_consts + s.n_carry);
    ir_id in[6];
    struct ir_type types[6];
    pick_operands(k, n, in, types);
    ir_id rows = pick(k);
    struct ir_type t = type_in(k, rows);
    if (t.rank && ir_dims(k->m, t)[0] < 8) {
        s.length = ir_dims(k->m, t)[0];
        in[n] = rows;
        types[n++] = ir_type_row(k->m, t);
    }
    for (uint32_t i = 0; i < n; i++)
        if (ir_count(k->m, types[i]) > MOST_ELEMENTS / 8)
            return IR_NONE;
    struct signature signature = {.n_types = n,
                                  .types = types,
                                  .n_results = (uint32_t)s.n_carry,
                                  .results = types + s.n_consts};
    s.body = make_part(k, &signature, draw(k, 3));
    if (s.body == IR_NONE)
        return IR_NONE;
    const struct ir_graph *body = ir_function(k->m, s.body);
    for (uint32_t i = 0; i < body->outputs.count; i++)
        if (ir_count(k->m, ir_type_of(body, body->outputs.at[i])) > MOST_ELEMENTS / 8)
            return IR_NONE;
    return add_results(k, ir_scan(&k->b, &s, (int)n, in));
}

// An index from the sign of a value, or an integer as it is.
static ir_id make_index(struct maker *k)
{
    ir_id x = pick(k);
    jot_dtype d = dtype_in(k, x);
    if (d == JOT_BOOL || dtype_is_complex(d) || count_in(k, x) == 0)
        return IR_NONE;
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < IR_MAX_RANK; i++)
        axes[i] = i;
    x = ir_reduce(&k->b, IR_reduce_max, x, type_in(k, x).rank, axes);
    return d == JOT_I32 ? x
                        : ir_convert(&k->b, ir_lt(&k->b, x, ir_scalar(&k->b, d, 1)), JOT_I32);
}

// (count, carries) -> count < n, and -> count + 1 and the carries of the part.
static void make_count(struct maker *k, uint32_t part, int64_t n, struct ir_while *out)
{
    const struct ir_graph *f = ir_function(k->m, part);
    struct ir_builder test = ir_builder_make(k->m, "test", IR_BUILD_PLAIN);
    struct ir_builder step = ir_builder_make(k->m, "step", IR_BUILD_PLAIN);
    ir_id in[5], y[5];
    for (uint32_t i = 0; i < f->n_params; i++) {
        in[i] = ir_param(&step, ir_type_of(f, i));
        ir_param(&test, ir_type_of(f, i));
    }
    ir_output(&test, ir_lt(&test, 0, ir_scalar_int(&test, JOT_I32, n)));
    out->test = ir_finish_function(&test);
    ir_output(&step, ir_add(&step, in[0], ir_scalar_int(&step, JOT_I32, 1)));
    ir_inline(&step, f, in, y);
    for (uint32_t i = 0; i < f->outputs.count; i++)
        ir_output(&step, y[i]);
    out->step = ir_finish_function(&step);
}

// A few trips, by a count that may come from a value; always bounded where it is differentiated.
static ir_id make_while(struct maker *k)
{
    uint32_t n = 1 + (uint32_t)draw(k, 3);
    int64_t most = (int64_t)draw(k, 4);
    ir_id in[5];
    struct ir_type types[5];
    in[0] = chance(k, 2) ? make_index(k) : ir_scalar_int(&k->b, JOT_I32, 0);
    if (in[0] == IR_NONE)
        return IR_NONE;
    types[0] = type_in(k, in[0]);
    // Of i32 values there are all: none is so small that the loop is long.
    in[0] = ir_max(&k->b, in[0], ir_scalar_int(&k->b, JOT_I32, 0));
    pick_operands(k, n, in + 1, types + 1);
    struct signature signature = {
        .n_types = n + 1, .types = types, .n_results = n, .results = types + 1};
    uint32_t part = make_part(k, &signature, 0);
    if (part == IR_NONE)
        return IR_NONE;
    bool is_bounded = k->is_derivable || chance(k, 2);
    struct ir_while l = {.max_trips = is_bounded ? most + (int64_t)draw(k, 2) : IR_NO_BOUND};
    make_count(k, part, most, &l);
    return add_results(k, ir_while(&k->b, &l, (int)n + 1, in));
}

static ir_id make_cond(struct maker *k)
{
    uint32_t n = 1 + (uint32_t)draw(k, 3), branches[3];
    int n_branches = 2 + chance(k, 3);
    ir_id in[4];
    struct ir_type types[4], results[4];
    in[0] = make_index(k);
    if (in[0] == IR_NONE)
        return IR_NONE;
    pick_operands(k, n, in + 1, types);
    struct signature signature = {.n_types = n, .types = types};
    for (int i = 0; i < n_branches; i++) {
        branches[i] = make_part(k, &signature, i ? 0 : 1 + draw(k, 3));
        if (branches[i] == IR_NONE)
            return IR_NONE;
        const struct ir_graph *first = ir_function(k->m, branches[0]);
        signature.n_results = first->outputs.count;
        for (uint32_t o = 0; o < first->outputs.count; o++)
            results[o] = ir_type_of(first, first->outputs.at[o]);
        signature.results = results;
    }
    return add_results(k, ir_cond(&k->b, n_branches, branches, (int)n + 1, in));
}

static ir_id make_bodies(struct maker *k)
{
    if (k->depth > 1)
        return IR_NONE;
    switch (draw(k, 5)) {
    case 0:
        return make_scan(k);
    case 1:
        return make_cond(k);
    case 2:
        return make_while(k);
    default:
        return make_call(k);
    }
}

static ir_id make_hint(struct maker *k)
{
    ir_id x = pick(k);
    if (chance(k, 3))
        return ir_build(&k->b, IR_barrier, 1, &x, NULL);
    return chance(k, 3) ? ir_variable(&k->b, x) : ir_neg(&k->b, as_dtype(k, x, draw_dtype(k)));
}

static ir_id make_node(struct maker *k)
{
    switch (draw(k, 18)) {
    case 16:
    case 17:
        return make_places_map(k);
    case 0:
    case 1:
    case 2:
        return make_layout(k);
    case 3:
    case 4:
        return make_fold(k, IR_CLASS_REDUCE);
    case 5:
        return make_fold(k, IR_CLASS_CUMULATIVE);
    case 6:
        return k->is_derivable ? make_dot(k) : make_fold(k, IR_CLASS_ARG);
    case 7:
        return make_dot(k);
    case 8:
        return make_bodies(k);
    case 9:
        return make_hint(k);
    default:
        return make_map(k);
    }
}

// -- Programs ---------------------------------------------------------------------------------

// A value of the type; of moderate size when derivatives are to be taken of many trips.
static ir_id value_of(struct maker *k, struct ir_type t)
{
    uint32_t n = k->pool.count, first = (uint32_t)draw(k, n);
    for (uint32_t i = 0; i < n; i++) {
        ir_id v = k->pool.at[(first + i) % n];
        if (ir_type_equal(type_in(k, v), t))
            return k->is_derivable && dtype_is_float(ir_dtype(t)) ? ir_sin(&k->b, v) : v;
    }
    return ir_zeros(&k->b, t);
}

static void add_outputs(struct maker *k, const struct signature *signature, uint64_t n_more)
{
    for (uint32_t i = 0; i < signature->n_results; i++)
        ir_output(&k->b, value_of(k, signature->results[i]));
    for (uint64_t i = 0; i < n_more; i++)
        ir_output(&k->b, i ? pick(k) : vec_last(&k->pool));
}

static uint32_t make_function(struct ir_module *m, uint64_t seed, bool is_derivable, int depth,
                              const struct signature *signature, uint64_t n_more)
{
    struct maker k = {.b = ir_builder_make(m, depth ? "part" : "program", IR_BUILD_PLAIN),
                      .m = m,
                      .state = hash_mix(seed),
                      .is_derivable = is_derivable,
                      .depth = depth};
    const struct ir_type *types = signature->types;
    uint32_t n_params = types ? signature->n_types : 1 + (uint32_t)draw(&k, 3);
    for (uint32_t i = 0; i < n_params; i++)
        vec_push(m->arena, &k.pool,
                 ir_param(&k.b, types ? types[i] : draw_type(&k, draw_dtype(&k))));
    if (n_params == 0)
        vec_push(m->arena, &k.pool, constant(&k, draw_dtype(&k)));
    uint64_t wanted = depth ? 1 + draw(&k, 4) : 2 + draw(&k, MOST_NODES - 2);
    for (uint64_t made = 0, attempts = 0; made < wanted && attempts < 100; attempts++) {
        ir_id v = make_node(&k);
        if (k.b.status != JOT_OK)
            return IR_NONE;
        if (v == IR_NONE)
            continue;
        vec_push(m->arena, &k.pool, v);
        made++;
    }
    add_outputs(&k, signature, n_more);
    return ir_finish_function(&k.b);
}

uint32_t program_make(struct ir_module *m, uint64_t seed, bool is_derivable)
{
    for (uint64_t i = 0;; i++) {
        struct signature any = {0};
        uint64_t n = 1 + hash_mix(seed) % 3;
        uint32_t f = make_function(m, seed + (i << 48), is_derivable, 0, &any, n);
        if (f != IR_NONE)
            return f;
    }
}

struct ir_tensor *program_inputs(struct ir_module *m, const struct ir_graph *g, uint64_t seed,
                                 bool is_derivable)
{
    static const double specials[] = {-0.0, NAN, -0.0, INFINITY, -0.0, -INFINITY, 0, 1e300};
    struct ir_tensor *in = arena_array(m->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        uint64_t state = hash_combine(seed, i);
        in[i] = opcase_draw(m, ir_type_of(g, i), "ANY", &state);
        jot_dtype d = ir_dtype_of(g, i);
        int64_t n = ir_count(m, in[i].type);
        bool is_wild = !is_derivable && opcase_random(&state) < 0.5;
        for (int64_t at = 0; is_wild && at < n; at++) {
            double x = specials[(int)(opcase_random(&state) * 8)];
            if (opcase_random(&state) > 0.2)
                continue;
            if (d == JOT_F64)
                ((double *)in[i].data)[at] = x;
            else if (d == JOT_F32)
                ((float *)in[i].data)[at] = (float)x;
        }
    }
    return in;
}
