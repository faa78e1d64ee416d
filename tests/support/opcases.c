// SPDX-License-Identifier: Apache-2.0
#include "support/opcases.h"

#include "support/opcases_maker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double opcase_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (double)(hash_mix(*state) >> 11) * 0x1p-53;
}

// -- Data -------------------------------------------------------------------------------------

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static double draw_real(const char *domain, uint64_t *state)
{
    double u = opcase_random(state), sign = opcase_random(state) < 0.5 ? -1 : 1;
    if (is(domain, "UNIT"))
        return 0.9 * (2 * u - 1);
    if (is(domain, "POSITIVE"))
        return 0.3 + 2.7 * u;
    if (is(domain, "ABOVE1"))
        return 1.2 + 2 * u;
    if (is(domain, "NONZERO"))
        return sign * (0.4 + 2 * u);
    if (is(domain, "FRACTION"))
        return sign * (floor(8 * opcase_random(state)) + 0.1 + 0.3 * u + (u < 0.5 ? 0 : 0.5));
    if (is(domain, "LOW") || is(domain, "HIGH"))
        return (is(domain, "LOW") ? -1 : 1) * (0.2 + 2 * u);
    return 3 * (2 * u - 1);
}

static int64_t draw_integer(const char *domain, bool is_signed, uint64_t *state)
{
    int64_t n = (int64_t)floor(10 * opcase_random(state));
    if (is(domain, "NONZERO") || is(domain, "POSITIVE"))
        n++;
    if (is(domain, "LOW") || is(domain, "HIGH"))
        return is(domain, "HIGH") ? 3 + n : is_signed ? -n : n / 4;
    bool both = is_signed && !is(domain, "POSITIVE");
    return both && opcase_random(state) < 0.5 ? -n : n;
}

void opcase_put_real(jot_dtype dtype, double x, void *at)
{
    if (dtype == JOT_F64)
        memcpy(at, &x, 8);
    else if (dtype == JOT_F32)
        memcpy(at, &(float){(float)x}, 4);
    else if (dtype == JOT_F16)
        memcpy(at, &(uint16_t){dtype_f16_from_f64(x)}, 2);
    else
        memcpy(at, &(uint16_t){dtype_bf16_from_f64(x)}, 2);
}

struct ir_tensor opcase_draw(struct ir_module *m, struct ir_type t, const char *domain,
                             uint64_t *state)
{
    jot_dtype dtype = ir_dtype(t), part = dtype_real(dtype);
    size_t bytes = jot_dtype_size(dtype), half = jot_dtype_size(part);
    int64_t n = ir_count(m, t);
    struct ir_tensor x = {t, arena_allocate(m->arena, bytes * (size_t)n + 1)};
    for (int64_t i = 0; i < n; i++) {
        char *at = (char *)x.data + (size_t)i * bytes;
        if (dtype_is_inexact(dtype)) {
            opcase_put_real(part, draw_real(domain, state), at);
            if (dtype_is_complex(dtype))
                opcase_put_real(part, draw_real(domain, state), at + half);
            continue;
        }
        int64_t k = dtype == JOT_BOOL ? opcase_random(state) < 0.5
                                      : draw_integer(domain, dtype_is_signed(dtype), state);
        if (is(domain, "COUNT"))
            k = (int64_t)floor(opcase_random(state) * (dtype_get(dtype)->bits + 2));
        memcpy(at, &k, bytes); // the low bytes of a two's complement number
    }
    return x;
}

// -- Cases ------------------------------------------------------------------------------------

bool opcase_takes(enum ir_op op, jot_dtype d)
{
    const char *types = ir_op_get(op)->types;
    if (op == IR_complex)
        return d == JOT_F32 || d == JOT_F64;
    if (op == IR_fft)
        return dtype_is_inexact(d) && !dtype_is_half(d);
    if (op == IR_threefry2x32)
        return d == JOT_U32;
    if (op == IR_iota)
        return d != JOT_BOOL;
    return is(types, "any") || (is(types, "num") && d != JOT_BOOL) ||
           (is(types, "ordered") && d != JOT_BOOL && !dtype_is_complex(d)) ||
           (is(types, "real") && !dtype_is_complex(d)) ||
           (is(types, "inexact") && dtype_is_inexact(d)) ||
           (is(types, "wide") && dtype_is_inexact(d) && !dtype_is_half(d)) ||
           (is(types, "float") && dtype_is_float(d)) ||
           (is(types, "integer") && dtype_is_integer(d)) ||
           (is(types, "bits") && (dtype_is_integer(d) || d == JOT_BOOL)) ||
           (is(types, "bool") && d == JOT_BOOL) ||
           (is(types, "complex") && dtype_is_complex(d));
}

static const char *domain_of(enum ir_op op, int i)
{
    const char *d = ir_op_get(op)->domain;
    if (op == IR_clamp)
        return i == 0 ? "LOW" : i == 1 ? "ANY" : "HIGH";
    return is(d, "SHIFT") ? i == 1 ? "COUNT" : "ANY" : d;
}

// Whether operand i says where.
static bool is_index(enum ir_op op, int i)
{
    switch (op) {
    case IR_dynamic_slice:
        return i >= 1;
    case IR_dynamic_update_slice:
        return i >= 2;
    default:
        return i == 1 && (op == IR_gather || ir_op_class(op) == IR_CLASS_UPDATE);
    }
}

void opcase_add(struct opcase_maker *k, enum ir_op op, const struct ir_attrs *attrs, int n,
                const struct opcase_shape *shapes)
{
    struct opcase c = {.op = op, .attrs = attrs, .n_in = n};
    struct strbuf text = strbuf_make(k->m->arena);
    strbuf_add(&text, ir_op_get(op)->name);
    for (int i = 0; i < n; i++) {
        jot_dtype d = op == IR_select && i == 0 ? JOT_BOOL : k->dtype;
        if (is_index(op, i))
            d = k->indices;
        struct ir_type t = ir_type_make(k->m, d, shapes[i].rank, shapes[i].dims);
        c.in[i] = opcase_draw(k->m, t, domain_of(op, i), &k->state);
        strbuf_printf(&text, " %s", ir_type_text(k->m, t));
    }
    for (uint32_t i = 0; attrs && i < attrs->count; i++) {
        const struct ir_field *f = &attrs->fields[i];
        enum ir_key_kind kind = ir_key_table[f->key].kind;
        strbuf_printf(&text, " %s", ir_key_table[f->key].name);
        for (uint32_t j = 0; j < f->count && kind != IR_KIND_BYTES && kind != IR_KIND_TEXT; j++)
            strbuf_printf(&text, "%c%lld", j ? ',' : '=', (long long)f->ints[j]);
    }
    c.text = text.text;
    vec_push(k->m->arena, &k->cases, c);
}

void opcase_add_one(struct opcase_maker *k, enum ir_op op, const struct ir_attrs *attrs,
                    struct opcase_shape s)
{
    opcase_add(k, op, attrs, 1, &s);
}

// One case for each pattern of shapes of an elementwise op.
static void add_map(struct opcase_maker *k, enum ir_op op, const struct ir_attrs *attrs)
{
    int n = ir_op_get(op)->in;
    struct opcase_shape same[4], mixed[4];
    const struct opcase_shape wholes[] = {SHAPE(2, 3), SHAPE(37), scalar, SHAPE(1),
                                          SHAPE(0, 3)};
    for (int w = 0; w < 5; w++) {
        for (int i = 0; i < n; i++)
            same[i] = wholes[w];
        opcase_add(k, op, attrs, n, same);
    }
    for (int small = 0; small < n && n > 1; small++) {
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < n; i++)
                mixed[i] = SHAPE(2, 3);
            mixed[small] = kind == 0 ? scalar : kind == 1 ? SHAPE(2, 1) : SHAPE(1, 3);
            opcase_add(k, op, attrs, n, mixed);
        }
        for (int i = 0; i < n; i++)
            mixed[i] = i == small ? SHAPE(2, 1) : i == (small + 1) % n ? SHAPE(1, 3) : scalar;
        opcase_add(k, op, attrs, n, mixed);
    }
}

static void add_integer_pow(struct opcase_maker *k)
{
    for (int e = dtype_is_inexact(k->dtype) ? -3 : 0; e < 6; e++)
        add_map(k, IR_integer_pow, ir_attrs(k->m, IR_INT(exponent, e)));
}

static void add_convert(struct opcase_maker *k)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        add_map(k, IR_convert, ir_attrs(k->m, IR_INT(dtype, d)));
}

static void add_bitcast(struct opcase_maker *k)
{
    if (k->dtype == JOT_BOOL || dtype_is_complex(k->dtype))
        return;
    for (int d = JOT_I8; d < JOT_C64; d++)
        if (dtype_get((jot_dtype)d)->bytes == dtype_get(k->dtype)->bytes)
            add_map(k, IR_bitcast, ir_attrs(k->m, IR_INT(dtype, d)));
}

static void add_reduce_precision(struct opcase_maker *k)
{
    add_map(k, IR_reduce_precision,
            ir_attrs(k->m, IR_INT(exponent_bits, 8), IR_INT(mantissa_bits, 7)));
    add_map(k, IR_reduce_precision,
            ir_attrs(k->m, IR_INT(exponent_bits, 5), IR_INT(mantissa_bits, 10)));
}

static void add_iota(struct opcase_maker *k)
{
    for (int axis = 0; axis < 2; axis++) {
        opcase_add(
            k, IR_iota,
            ir_attrs(k->m, IR_INT(dtype, k->dtype), INTS(dims, LIST(3, 4)), IR_INT(axis, axis)),
            0, NULL);
        opcase_add(
            k, IR_iota,
            ir_attrs(k->m, IR_INT(dtype, k->dtype), INTS(dims, LIST(2, 0)), IR_INT(axis, axis)),
            0, NULL);
    }
}

static void add_broadcast_in_dim(struct opcase_maker *k)
{
    enum ir_op op = IR_broadcast_in_dim;
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, NO_LIST)), scalar);
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, LIST(1))),
                   SHAPE(3));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, LIST(0))),
                   SHAPE(2));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, LIST(0, 1))),
                   SHAPE(1, 3));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 4, 3)), INTS(axes, LIST(0, 2))),
                   SHAPE(2, 1));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(0, 3)), INTS(axes, LIST(1))),
                   SHAPE(3));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(1, 1)), INTS(axes, LIST(1))),
                   SHAPE(1));
}

static void add_reshape(struct opcase_maker *k)
{
    opcase_add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(3, 2))), SHAPE(2, 3));
    opcase_add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(6))), SHAPE(2, 3));
    opcase_add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(2, 1, 3))), SHAPE(2, 3));
    opcase_add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, NO_LIST)), SHAPE(1, 1));
    opcase_add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(5, 0))), SHAPE(0, 3));
}

static void add_transpose(struct opcase_maker *k)
{
    opcase_add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(1, 0))), SHAPE(2, 3));
    opcase_add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(1, 2, 0))), SHAPE(2, 3, 4));
    opcase_add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(0, 2, 1))), SHAPE(2, 0, 4));
    opcase_add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(5));
}

static void add_rev(struct opcase_maker *k)
{
    opcase_add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(5));
    opcase_add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, LIST(1))), SHAPE(2, 3));
    opcase_add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, LIST(0, 2))), SHAPE(2, 3, 4));
    opcase_add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, NO_LIST)), SHAPE(2));
}

static void add_slice(struct opcase_maker *k)
{
    opcase_add_one(
        k, IR_slice,
        ir_attrs(k->m, INTS(starts, LIST(1)), INTS(limits, LIST(4)), INTS(strides, LIST(1))),
        SHAPE(5));
    opcase_add_one(k, IR_slice,
                   ir_attrs(k->m, INTS(starts, LIST(1, 0)), INTS(limits, LIST(6, 3)),
                            INTS(strides, LIST(2, 3))),
                   SHAPE(7, 3));
    opcase_add_one(k, IR_slice,
                   ir_attrs(k->m, INTS(starts, LIST(2, 1)), INTS(limits, LIST(2, 3)),
                            INTS(strides, LIST(1, 1))),
                   SHAPE(4, 3));
}

static void add_pad(struct opcase_maker *k)
{
    opcase_add(k, IR_pad,
               ir_attrs(k->m, INTS(low, LIST(2)), INTS(high, LIST(1)), INTS(interior, LIST(0))),
               2, (struct opcase_shape[]){SHAPE(3), scalar});
    opcase_add(k, IR_pad,
               ir_attrs(k->m, INTS(low, LIST(1, -1)), INTS(high, LIST(-1, 2)),
                        INTS(interior, LIST(2, 1))),
               2, (struct opcase_shape[]){SHAPE(2, 3), scalar});
    opcase_add(k, IR_pad,
               ir_attrs(k->m, INTS(low, LIST(1, 1)), INTS(high, LIST(1, 0)),
                        INTS(interior, LIST(1, 0))),
               2, (struct opcase_shape[]){SHAPE(0, 2), scalar});
    opcase_add(k, IR_pad,
               ir_attrs(k->m, INTS(low, LIST(-1, 0)), INTS(high, LIST(-2, 0)),
                        INTS(interior, LIST(0, 0))),
               2, (struct opcase_shape[]){SHAPE(5, 2), scalar});
}

static void add_one_shear(struct opcase_maker *k, struct opcase_shape x, int axis, int along,
                          int offset, int step, int length)
{
    opcase_add_one(k, IR_shear,
                   ir_attrs(k->m, IR_INT(axis, axis), IR_INT(along, along),
                            IR_INT(offset, offset), IR_INT(step, step), IR_INT(length, length)),
                   x);
}

static void add_shear(struct opcase_maker *k)
{
    add_one_shear(k, SHAPE(7, 3), 0, 1, 0, 2, 3);
    add_one_shear(k, SHAPE(3, 2, 5), 2, 0, -2, 1, 6);
    add_one_shear(k, SHAPE(4, 3), 0, 1, 3, -2, 5);
    add_one_shear(k, SHAPE(3, 1), 0, 1, 9, 1, 2);
    add_one_shear(k, SHAPE(0, 2), 0, 1, 0, 1, 2);
    add_one_shear(k, SHAPE(2, 0), 0, 1, 0, 1, 2);
}

static void add_one_diagonal(struct opcase_maker *k, struct opcase_shape x, int axis, int along,
                             int offset, int step, int length)
{
    opcase_add_one(k, IR_diagonal,
                   ir_attrs(k->m, IR_INT(axis, axis), IR_INT(along, along),
                            IR_INT(offset, offset), IR_INT(step, step), IR_INT(length, length)),
                   x);
}

static void add_diagonal(struct opcase_maker *k)
{
    add_one_diagonal(k, SHAPE(4, 4), 0, 1, 0, 1, 4);
    add_one_diagonal(k, SHAPE(7, 3), 0, 1, -1, 2, 2);
    add_one_diagonal(k, SHAPE(5, 2, 6), 2, 0, 1, 2, 2);
    add_one_diagonal(k, SHAPE(3, 5), 0, 1, 2, 1, 0);
    add_one_diagonal(k, SHAPE(0, 2), 0, 1, 0, 1, 0);
}

static void add_concatenate(struct opcase_maker *k)
{
    opcase_add(k, IR_concatenate, ir_attrs(k->m, IR_INT(axis, 0)), 3,
               (struct opcase_shape[]){SHAPE(2), SHAPE(0), SHAPE(3)});
    opcase_add(k, IR_concatenate, ir_attrs(k->m, IR_INT(axis, 1)), 2,
               (struct opcase_shape[]){SHAPE(2, 1), SHAPE(2, 3)});
    opcase_add(k, IR_concatenate, ir_attrs(k->m, IR_INT(axis, 0)), 1,
               (struct opcase_shape[]){SHAPE(2, 3)});
}

static void add_reduce(struct opcase_maker *k, enum ir_op op)
{
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(5));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(1))), SHAPE(2, 3));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0, 2))), SHAPE(2, 3, 4));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0, 1))), SHAPE(3, 2));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(1))), SHAPE(0, 3));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(1, 3));
    opcase_add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(0, 2));
}

static void add_arg(struct opcase_maker *k, enum ir_op op)
{
    opcase_add_one(k, op, ir_attrs(k->m, IR_INT(axis, 0), IR_INT(dtype, JOT_I32)), SHAPE(5));
    opcase_add_one(k, op, ir_attrs(k->m, IR_INT(axis, 1), IR_INT(dtype, JOT_I64)), SHAPE(2, 3));
    opcase_add_one(k, op, ir_attrs(k->m, IR_INT(axis, 1), IR_INT(dtype, JOT_I32)), SHAPE(0, 3));
}

static void add_cumulative(struct opcase_maker *k, enum ir_op op)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        const struct ir_attrs *first =
            ir_attrs(k->m, IR_INT(axis, 0), IR_INT(reverse, reverse));
        const struct ir_attrs *second =
            ir_attrs(k->m, IR_INT(axis, 1), IR_INT(reverse, reverse));
        opcase_add_one(k, op, first, SHAPE(5));
        opcase_add_one(k, op, first, SHAPE(1));
        opcase_add_one(k, op, second, SHAPE(2, 6));
        opcase_add_one(k, op, second, SHAPE(2, 0));
        opcase_add_one(k, op, first, SHAPE(7, 2));
    }
}

// Ops that want operands of their own; false: others.
static bool add_by_op(struct opcase_maker *k, enum ir_op op)
{
    switch (op) {
    case IR_dynamic_slice:
    case IR_dynamic_update_slice:
        opcase_add_dynamic_slice(k, op);
        return true;
    case IR_gather:
        opcase_add_gather(k);
        return true;
    case IR_integer_pow:
        add_integer_pow(k);
        return true;
    case IR_convert:
        add_convert(k);
        return true;
    case IR_bitcast:
        add_bitcast(k);
        return true;
    case IR_reduce_precision:
        add_reduce_precision(k);
        return true;
    case IR_iota:
        add_iota(k);
        return true;
    case IR_broadcast_in_dim:
        add_broadcast_in_dim(k);
        return true;
    case IR_reshape:
        add_reshape(k);
        return true;
    case IR_transpose:
        add_transpose(k);
        return true;
    case IR_rev:
        add_rev(k);
        return true;
    case IR_slice:
        add_slice(k);
        return true;
    case IR_pad:
        add_pad(k);
        return true;
    case IR_shear:
        add_shear(k);
        return true;
    case IR_diagonal:
        add_diagonal(k);
        return true;
    case IR_concatenate:
        add_concatenate(k);
        return true;
    case IR_dot_general:
        opcase_add_dot_general(k);
        return true;
    case IR_conv:
        opcase_add_conv(k);
        return true;
    case IR_fft:
        opcase_add_fft(k);
        return true;
    case IR_sort:
        opcase_add_sort(k);
        return true;
    case IR_top_k:
        opcase_add_top_k(k);
        return true;
    case IR_barrier:
        opcase_add(k, op, NULL, 2, (struct opcase_shape[]){SHAPE(2), SHAPE(3)});
        return true;
    case IR_qr: // unique but for signs and phases: tests/trace/test_decompose.c
    case IR_eigh:
    case IR_svd:
    case IR_eig:
    case IR_schur:
    case IR_exchange: // by several devices: tests/harness/test_exchange.c
        return true;
    case IR_cholesky:
    case IR_lu:
        opcase_add_factored(k, op);
        return true;
    case IR_triangular_solve:
        opcase_add_triangular_solve(k);
        return true;
    case IR_tridiagonal_solve:
        opcase_add_tridiagonal_solve(k);
        return true;
    default:
        return false;
    }
}

static void add_op(struct opcase_maker *k, enum ir_op op)
{
    if (add_by_op(k, op))
        return;
    switch (ir_op_class(op)) {
    case IR_CLASS_MAP:
    case IR_CLASS_HINT:
        add_map(k, op, NULL);
        return;
    case IR_CLASS_REDUCE:
        add_reduce(k, op);
        return;
    case IR_CLASS_ARG:
        add_arg(k, op);
        return;
    case IR_CLASS_CUMULATIVE:
        add_cumulative(k, op);
        return;
    case IR_CLASS_CONST:
    case IR_CLASS_PARAM:
    case IR_CLASS_CALL:
    case IR_CLASS_CONTROL:
    case IR_CLASS_COLLECTIVE: // inside of named maps: tests/passes/test_collectives.c
    case IR_CLASS_EFFECT:
        return;
    case IR_CLASS_UPDATE:
        opcase_add_scatter(k, op);
        return;
    case IR_CLASS_LAYOUT:
    case IR_CLASS_INDEX:
    case IR_CLASS_CONTRACT:
    case IR_CLASS_LIBRARY:
        break;
    }
    fprintf(stderr, "opcases: no attributes for %s\n", ir_op_get(op)->name);
    abort();
}

struct opcases opcases_make(struct ir_module *m, jot_dtype dtype, uint64_t seed)
{
    struct opcase_maker k = {.m = m, .dtype = dtype, .state = seed};
    k.indices = dtype_is_integer(dtype) ? dtype : dtype == JOT_F32 ? JOT_I64 : JOT_I32;
    for (int op = 0; op < IR_OP_COUNT; op++)
        if (opcase_takes((enum ir_op)op, dtype))
            add_op(&k, (enum ir_op)op);
    return k.cases;
}

uint32_t opcase_function(struct ir_module *m, const struct opcase *c)
{
    struct ir_builder b = ir_builder_make(m, ir_op_get(c->op)->name, IR_BUILD_PLAIN);
    ir_id in[OPCASE_OPERANDS];
    for (int i = 0; i < c->n_in; i++)
        in[i] = ir_param(&b, c->in[i].type);
    ir_id y = ir_build(&b, c->op, c->n_in, in, c->attrs);
    if (y == IR_NONE) {
        fprintf(stderr, "opcases: %s: %s\n", c->text, b.message);
        abort();
    }
    uint32_t n_out = ir_node_of(b.graph, y)->n_out;
    for (uint32_t i = 0; i < n_out; i++)
        ir_output(&b, y + i);
    return ir_finish_function(&b);
}
