// SPDX-License-Identifier: Apache-2.0
#include "support/opcases.h"

#include "ir/conv.h"
#include "ir/indexing.h"

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

static void put_real(jot_dtype dtype, double x, void *at)
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
            put_real(part, draw_real(domain, state), at);
            if (dtype_is_complex(dtype))
                put_real(part, draw_real(domain, state), at + half);
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

struct maker {
    struct ir_module *m;
    jot_dtype dtype;
    jot_dtype places; // of operands that say where
    uint64_t state;
    struct opcases cases;
};

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

struct shape {
    int rank;
    int64_t dims[4];
};
#define SHAPE(...)                                                                             \
    ((struct shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
static const struct shape scalar = {0, {0}};

static const char *domain_of(enum ir_op op, int i)
{
    const char *d = ir_op_get(op)->domain;
    if (op == IR_clamp)
        return i == 0 ? "LOW" : i == 1 ? "ANY" : "HIGH";
    return is(d, "SHIFT") ? i == 1 ? "COUNT" : "ANY" : d;
}

// Whether operand i says where.
static bool is_place(enum ir_op op, int i)
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

static void add_case(struct maker *k, enum ir_op op, const struct ir_attrs *attrs, int n,
                     const struct shape *shapes)
{
    struct opcase c = {.op = op, .attrs = attrs, .n_in = n};
    struct strbuf text = strbuf_make(k->m->arena);
    strbuf_add(&text, ir_op_get(op)->name);
    for (int i = 0; i < n; i++) {
        jot_dtype d = op == IR_select && i == 0 ? JOT_BOOL : k->dtype;
        if (is_place(op, i))
            d = k->places;
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

static void add_one(struct maker *k, enum ir_op op, const struct ir_attrs *attrs,
                    struct shape s)
{
    add_case(k, op, attrs, 1, &s);
}

// One case for each pattern of shapes of an elementwise op.
static void add_map(struct maker *k, enum ir_op op, const struct ir_attrs *attrs)
{
    int n = ir_op_get(op)->in;
    struct shape same[4], mixed[4];
    const struct shape wholes[] = {SHAPE(2, 3), SHAPE(37), scalar, SHAPE(1), SHAPE(0, 3)};
    for (int w = 0; w < 5; w++) {
        for (int i = 0; i < n; i++)
            same[i] = wholes[w];
        add_case(k, op, attrs, n, same);
    }
    for (int small = 0; small < n && n > 1; small++) {
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < n; i++)
                mixed[i] = SHAPE(2, 3);
            mixed[small] = kind == 0 ? scalar : kind == 1 ? SHAPE(2, 1) : SHAPE(1, 3);
            add_case(k, op, attrs, n, mixed);
        }
        for (int i = 0; i < n; i++)
            mixed[i] = i == small ? SHAPE(2, 1) : i == (small + 1) % n ? SHAPE(1, 3) : scalar;
        add_case(k, op, attrs, n, mixed);
    }
}

static void add_integer_pow(struct maker *k)
{
    for (int e = dtype_is_inexact(k->dtype) ? -3 : 0; e < 6; e++)
        add_map(k, IR_integer_pow, ir_attrs(k->m, IR_INT(exponent, e)));
}

static void add_convert(struct maker *k)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        add_map(k, IR_convert, ir_attrs(k->m, IR_INT(dtype, d)));
}

static void add_bitcast(struct maker *k)
{
    if (k->dtype == JOT_BOOL || dtype_is_complex(k->dtype))
        return;
    for (int d = JOT_I8; d < JOT_C64; d++)
        if (dtype_get((jot_dtype)d)->bytes == dtype_get(k->dtype)->bytes)
            add_map(k, IR_bitcast, ir_attrs(k->m, IR_INT(dtype, d)));
}

static void add_reduce_precision(struct maker *k)
{
    add_map(k, IR_reduce_precision,
            ir_attrs(k->m, IR_INT(exponent_bits, 8), IR_INT(mantissa_bits, 7)));
    add_map(k, IR_reduce_precision,
            ir_attrs(k->m, IR_INT(exponent_bits, 5), IR_INT(mantissa_bits, 10)));
}

#define LIST(...)                                                                              \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])         \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }
#define NO_LIST 0, (const int64_t[]){0}
#define INTS_(k, n, ...) {.key = IR_KEY_##k, .count = (uint32_t)(n), .ints = __VA_ARGS__}
#define INTS(k, ...) INTS_(k, __VA_ARGS__)

static void add_iota(struct maker *k)
{
    for (int axis = 0; axis < 2; axis++) {
        add_case(
            k, IR_iota,
            ir_attrs(k->m, IR_INT(dtype, k->dtype), INTS(dims, LIST(3, 4)), IR_INT(axis, axis)),
            0, NULL);
        add_case(
            k, IR_iota,
            ir_attrs(k->m, IR_INT(dtype, k->dtype), INTS(dims, LIST(2, 0)), IR_INT(axis, axis)),
            0, NULL);
    }
}

static void add_broadcast_in_dim(struct maker *k)
{
    enum ir_op op = IR_broadcast_in_dim;
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, NO_LIST)), scalar);
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, LIST(1))), SHAPE(3));
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, LIST(0))), SHAPE(2));
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 3)), INTS(axes, LIST(0, 1))), SHAPE(1, 3));
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(2, 4, 3)), INTS(axes, LIST(0, 2))),
            SHAPE(2, 1));
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(0, 3)), INTS(axes, LIST(1))), SHAPE(3));
    add_one(k, op, ir_attrs(k->m, INTS(dims, LIST(1, 1)), INTS(axes, LIST(1))), SHAPE(1));
}

static void add_reshape(struct maker *k)
{
    add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(3, 2))), SHAPE(2, 3));
    add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(6))), SHAPE(2, 3));
    add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(2, 1, 3))), SHAPE(2, 3));
    add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, NO_LIST)), SHAPE(1, 1));
    add_one(k, IR_reshape, ir_attrs(k->m, INTS(dims, LIST(5, 0))), SHAPE(0, 3));
}

static void add_transpose(struct maker *k)
{
    add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(1, 0))), SHAPE(2, 3));
    add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(1, 2, 0))), SHAPE(2, 3, 4));
    add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(0, 2, 1))), SHAPE(2, 0, 4));
    add_one(k, IR_transpose, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(5));
}

static void add_rev(struct maker *k)
{
    add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(5));
    add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, LIST(1))), SHAPE(2, 3));
    add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, LIST(0, 2))), SHAPE(2, 3, 4));
    add_one(k, IR_rev, ir_attrs(k->m, INTS(axes, NO_LIST)), SHAPE(2));
}

static void add_slice(struct maker *k)
{
    add_one(
        k, IR_slice,
        ir_attrs(k->m, INTS(starts, LIST(1)), INTS(limits, LIST(4)), INTS(strides, LIST(1))),
        SHAPE(5));
    add_one(k, IR_slice,
            ir_attrs(k->m, INTS(starts, LIST(1, 0)), INTS(limits, LIST(6, 3)),
                     INTS(strides, LIST(2, 3))),
            SHAPE(7, 3));
    add_one(k, IR_slice,
            ir_attrs(k->m, INTS(starts, LIST(2, 1)), INTS(limits, LIST(2, 3)),
                     INTS(strides, LIST(1, 1))),
            SHAPE(4, 3));
}

static void add_pad(struct maker *k)
{
    add_case(k, IR_pad,
             ir_attrs(k->m, INTS(low, LIST(2)), INTS(high, LIST(1)), INTS(interior, LIST(0))),
             2, (struct shape[]){SHAPE(3), scalar});
    add_case(k, IR_pad,
             ir_attrs(k->m, INTS(low, LIST(1, -1)), INTS(high, LIST(-1, 2)),
                      INTS(interior, LIST(2, 1))),
             2, (struct shape[]){SHAPE(2, 3), scalar});
    add_case(k, IR_pad,
             ir_attrs(k->m, INTS(low, LIST(1, 1)), INTS(high, LIST(1, 0)),
                      INTS(interior, LIST(1, 0))),
             2, (struct shape[]){SHAPE(0, 2), scalar});
    add_case(k, IR_pad,
             ir_attrs(k->m, INTS(low, LIST(-1, 0)), INTS(high, LIST(-2, 0)),
                      INTS(interior, LIST(0, 0))),
             2, (struct shape[]){SHAPE(5, 2), scalar});
}

static void add_one_shear(struct maker *k, struct shape x, int axis, int along, int offset,
                          int step, int length)
{
    add_one(k, IR_shear,
            ir_attrs(k->m, IR_INT(axis, axis), IR_INT(along, along), IR_INT(offset, offset),
                     IR_INT(step, step), IR_INT(length, length)),
            x);
}

static void add_shear(struct maker *k)
{
    add_one_shear(k, SHAPE(7, 3), 0, 1, 0, 2, 3);
    add_one_shear(k, SHAPE(3, 2, 5), 2, 0, -2, 1, 6);
    add_one_shear(k, SHAPE(4, 3), 0, 1, 3, -2, 5);
    add_one_shear(k, SHAPE(3, 1), 0, 1, 9, 1, 2);
    add_one_shear(k, SHAPE(0, 2), 0, 1, 0, 1, 2);
    add_one_shear(k, SHAPE(2, 0), 0, 1, 0, 1, 2);
}

static void add_concatenate(struct maker *k)
{
    add_case(k, IR_concatenate, ir_attrs(k->m, IR_INT(axis, 0)), 3,
             (struct shape[]){SHAPE(2), SHAPE(0), SHAPE(3)});
    add_case(k, IR_concatenate, ir_attrs(k->m, IR_INT(axis, 1)), 2,
             (struct shape[]){SHAPE(2, 1), SHAPE(2, 3)});
    add_case(k, IR_concatenate, ir_attrs(k->m, IR_INT(axis, 0)), 1,
             (struct shape[]){SHAPE(2, 3)});
}

static void add_reduce(struct maker *k, enum ir_op op)
{
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(5));
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(1))), SHAPE(2, 3));
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0, 2))), SHAPE(2, 3, 4));
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0, 1))), SHAPE(3, 2));
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(1))), SHAPE(0, 3));
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(1, 3));
    add_one(k, op, ir_attrs(k->m, INTS(axes, LIST(0))), SHAPE(0, 2));
}

static void add_arg(struct maker *k, enum ir_op op)
{
    add_one(k, op, ir_attrs(k->m, IR_INT(axis, 0), IR_INT(dtype, JOT_I32)), SHAPE(5));
    add_one(k, op, ir_attrs(k->m, IR_INT(axis, 1), IR_INT(dtype, JOT_I64)), SHAPE(2, 3));
    add_one(k, op, ir_attrs(k->m, IR_INT(axis, 1), IR_INT(dtype, JOT_I32)), SHAPE(0, 3));
}

static void add_cumulative(struct maker *k, enum ir_op op)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        const struct ir_attrs *first =
            ir_attrs(k->m, IR_INT(axis, 0), IR_INT(reverse, reverse));
        const struct ir_attrs *second =
            ir_attrs(k->m, IR_INT(axis, 1), IR_INT(reverse, reverse));
        add_one(k, op, first, SHAPE(5));
        add_one(k, op, first, SHAPE(1));
        add_one(k, op, second, SHAPE(2, 6));
        add_one(k, op, second, SHAPE(2, 0));
        add_one(k, op, first, SHAPE(7, 2));
    }
}

static void add_dot_general(struct maker *k)
{
    struct ir_module *m = k->m;
#define DOT(lc, rc, lb, rb)                                                                    \
    ir_attrs(m, INTS(lhs_contract, lc), INTS(rhs_contract, rc), INTS(lhs_batch, lb),           \
             INTS(rhs_batch, rb), IR_INT(precision, 0))
    enum ir_op op = IR_dot_general;
    add_case(k, op, DOT(LIST(0), LIST(0), NO_LIST, NO_LIST), 2,
             (struct shape[]){SHAPE(5), SHAPE(5)});
    add_case(k, op, DOT(LIST(1), LIST(0), NO_LIST, NO_LIST), 2,
             (struct shape[]){SHAPE(2, 3), SHAPE(3, 4)});
    add_case(k, op, DOT(LIST(0), LIST(1), NO_LIST, NO_LIST), 2,
             (struct shape[]){SHAPE(3, 2), SHAPE(4, 3)});
    add_case(k, op, DOT(LIST(2), LIST(1), LIST(0), LIST(0)), 2,
             (struct shape[]){SHAPE(2, 3, 4), SHAPE(2, 4, 5)});
    add_case(k, op, DOT(LIST(2, 0), LIST(0, 2), LIST(1), LIST(3)), 2,
             (struct shape[]){SHAPE(2, 3, 4), SHAPE(4, 1, 2, 3)});
    add_case(k, op, DOT(NO_LIST, NO_LIST, NO_LIST, NO_LIST), 2,
             (struct shape[]){SHAPE(2), SHAPE(3)});
    add_case(k, op, DOT(LIST(1), LIST(0), NO_LIST, NO_LIST), 2,
             (struct shape[]){SHAPE(2, 0), SHAPE(0, 4)});
#undef DOT
}

// Adds to places of every matrix, or of a diagonal, so that it is far from singular: those of the
// main diagonal, or, so that rows are swapped, of the other one.
static void make_regular(struct maker *k, struct ir_tensor *t, bool is_diagonal, bool swaps)
{
    const int64_t *dims = ir_dims(k->m, t->type);
    int64_t columns = t->type.rank ? dims[t->type.rank - 1] : 1,
            count = ir_count(k->m, t->type);
    int64_t rows = is_diagonal ? 1 : dims[t->type.rank - 2];
    size_t bytes = jot_dtype_size(k->dtype);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / columns % rows, column = i % columns;
        if (is_diagonal || row == (swaps ? rows - 1 - column : column))
            put_real(dtype_real(k->dtype), 12 + 3 * opcase_random(&k->state),
                     (char *)t->data + (size_t)i * bytes);
    }
}

void opcase_make_swapped(struct ir_module *m, struct ir_tensor *t, uint64_t *state)
{
    struct maker k = {.m = m, .dtype = ir_dtype(t->type), .state = *state};
    make_regular(&k, t, false, true);
    *state = k.state;
}

static struct ir_tensor *last_operand(struct maker *k, int i)
{
    return &k->cases.at[k->cases.count - 1].in[i];
}

static void add_factored(struct maker *k, enum ir_op op)
{
    const struct shape shapes[] = {SHAPE(3, 3),    SHAPE(1, 1), SHAPE(2, 4, 4), SHAPE(0, 0),
                                   SHAPE(0, 2, 2), SHAPE(5, 5), SHAPE(4, 2),    SHAPE(2, 2, 3)};
    for (int i = 0; i < (op == IR_lu ? 8 : 6); i++) {
        add_one(k, op, NULL, shapes[i]);
        make_regular(k, last_operand(k, 0), false, op == IR_lu);
    }
}

// Every flag at least once with each other one.
static void add_triangular_solve(struct maker *k)
{
    const struct shape a[] = {SHAPE(3, 3), SHAPE(2, 4, 4), SHAPE(1, 1), SHAPE(0, 0)};
    const struct shape b[] = {SHAPE(3, 2), SHAPE(2, 4, 5), SHAPE(1, 1), SHAPE(0, 2)};
    const struct shape right[] = {SHAPE(2, 3), SHAPE(2, 5, 4), SHAPE(1, 1), SHAPE(2, 0)};
    for (int i = 0; i < 16; i++) {
        int shape = i < 12 ? i / 4 % 2 : i % 4, left = i & 1;
        const struct ir_attrs *attrs = ir_attrs(
            k->m, IR_INT(left, left), IR_INT(lower, i >> 1 & 1), IR_INT(transposed, i >> 2 & 1),
            IR_INT(conjugated, i >> 3 & 1), IR_INT(unit_diagonal, (i ^ i >> 1 ^ i >> 2) & 1));
        add_case(k, IR_triangular_solve, attrs, 2,
                 (struct shape[]){a[shape], left ? b[shape] : right[shape]});
        make_regular(k, last_operand(k, 0), false, false);
    }
}

static void add_tridiagonal_solve(struct maker *k)
{
    const struct shape diagonals[] = {SHAPE(4), SHAPE(2, 3), SHAPE(1), SHAPE(2), SHAPE(0)};
    const struct shape b[] = {SHAPE(4, 2), SHAPE(2, 3, 1), SHAPE(1, 3), SHAPE(2, 1),
                              SHAPE(0, 2)};
    for (int i = 0; i < 5; i++) {
        struct shape d = diagonals[i];
        add_case(k, IR_tridiagonal_solve, NULL, 4, (struct shape[]){d, d, d, b[i]});
        make_regular(k, last_operand(k, 1), true, false);
    }
}

static void add_dynamic_slice(struct maker *k, enum ir_op op)
{
    const struct shape wholes[] = {SHAPE(5), SHAPE(6, 3), SHAPE(4, 5), SHAPE(3, 0), scalar};
    const struct shape parts[] = {SHAPE(2), SHAPE(1, 3), SHAPE(3, 2), SHAPE(2, 0), scalar};
    for (int i = 0; i < 5; i++) {
        struct shape in[4] = {wholes[i], scalar, scalar, scalar};
        int rank = wholes[i].rank;
        const struct ir_attrs *sizes = ir_attrs(k->m, IR_INTS(sizes, rank, parts[i].dims));
        if (op == IR_dynamic_slice) {
            add_case(k, op, sizes, 1 + rank, in);
            continue;
        }
        in[1] = parts[i];
        add_case(k, op, NULL, 2 + rank, in);
    }
}

// Operands, indices, windows (of a gather) or updates, and how they belong together.
static const struct {
    struct shape x, indices, sizes, updates;
    int n[4];
    int64_t offset[3], collapsed[3], operand_batch[2], index_batch[2], map[3];
} windows[] = {
    {{1, {5}}, {2, {7, 1}}, {1, {1}}, {1, {7}}, {0, 1, 0, 1}, {0}, {0}, {0}, {0}, {0}},
    {{2, {5, 3}}, {2, {4, 1}}, {2, {1, 3}}, {2, {4, 3}}, {1, 1, 0, 1}, {1}, {0}, {0}, {0}, {0}},
    {{2, {4, 5}}, {2, {3, 1}}, {2, {4, 1}}, {2, {4, 3}}, {1, 1, 0, 1}, {0}, {1}, {0}, {0}, {1}},
    {{2, {4, 6}},
     {3, {2, 3, 2}},
     {2, {2, 3}},
     {4, {2, 2, 3, 3}},
     {2, 0, 0, 2},
     {1, 3},
     {0},
     {0},
     {0},
     {1, 0}},
    {{3, {2, 4, 3}},
     {3, {2, 5, 1}},
     {3, {1, 1, 2}},
     {3, {2, 5, 2}},
     {1, 1, 1, 1},
     {2},
     {1},
     {0},
     {0},
     {1}},
    {{3, {4, 2, 3}},
     {3, {5, 3, 2}},
     {3, {1, 2, 1}},
     {3, {2, 5, 3}},
     {1, 1, 1, 2},
     {0},
     {0},
     {2},
     {1},
     {1, 0}},
    {{1, {4}}, {1, {1}}, {1, {2}}, {1, {2}}, {1, 0, 0, 1}, {0}, {0}, {0}, {0}, {0}},
    {{2, {3, 2}}, {2, {4, 0}}, {2, {1, 2}}, {2, {4, 2}}, {1, 1, 0, 0}, {1}, {0}, {0}, {0}, {0}},
    {{1, {4}}, {2, {0, 1}}, {1, {1}}, {1, {0}}, {0, 1, 0, 1}, {0}, {0}, {0}, {0}, {0}},
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static const struct ir_attrs *window_attrs(struct maker *k, int i, int mode, bool gathers)
{
    const int *n = windows[i].n;
    struct ir_field fields[] = {
        IR_INTS(offset_dims, n[0], windows[i].offset),
        IR_INTS(collapsed_dims, n[1], windows[i].collapsed),
        IR_INTS(operand_batch, n[2], windows[i].operand_batch),
        IR_INTS(index_batch, n[2], windows[i].index_batch),
        IR_INTS(index_map, n[3], windows[i].map),
        IR_INT(mode, mode),
        IR_INTS(sizes, windows[i].sizes.rank, windows[i].sizes.dims),
    };
    return ir_attrs_make(k->m, gathers ? 7 : 6, fields);
}

// What fills has no difference quotient: not for the dtypes of those tests.
static void add_gather(struct maker *k)
{
    bool fills = k->dtype != JOT_F64 && k->dtype != JOT_C128;
    for (int i = 0; i < WINDOWS; i++)
        for (int mode = 0; mode < IR_MODE_COUNT; mode++)
            if (mode != IR_MODE_FILL || fills)
                add_case(k, IR_gather, window_attrs(k, i, mode, true), 2,
                         (struct shape[]){windows[i].x, windows[i].indices});
}

static void add_scatter(struct maker *k, enum ir_op op)
{
    if (op == IR_scatter_mul) { // has derivatives when indices do not repeat
        const int64_t zero = 0;
        add_case(k, op,
                 ir_attrs(k->m, IR_INTS(collapsed_dims, 1, &zero), IR_INTS(index_map, 1, &zero),
                          IR_INT(mode, 0), IR_INT(unique, 1)),
                 3, (struct shape[]){SHAPE(6), SHAPE(3, 1), SHAPE(3)});
        struct opcase *c = &k->cases.at[k->cases.count - 1];
        size_t bytes = jot_dtype_size(k->places);
        for (int64_t i = 0; i < 3; i++)
            memcpy((char *)c->in[1].data + (size_t)i * bytes, &(int64_t){5 - 2 * i}, bytes);
        return;
    }
    for (int i = 0; i < WINDOWS; i++)
        for (int mode = 0; mode < IR_MODE_COUNT; mode++)
            if (mode == IR_MODE_CLIP || mode == IR_MODE_DROP)
                add_case(
                    k, op, window_attrs(k, i, mode, false), 3,
                    (struct shape[]){windows[i].x, windows[i].indices, windows[i].updates});
}

// Lengths with and without large primes, one and several axes, none of a batch.
static void add_fft(struct maker *k)
{
    static const struct shape wholes[] = {
        {1, {1}},       {1, {2}},       {1, {8}},     {2, {3, 7}}, {2, {2, 37}},
        {3, {2, 6, 5}}, {3, {0, 4, 4}}, {2, {20, 1}}, {2, {8, 6}}, {3, {4, 3, 8}}};
    static const int n_axes[] = {1, 1, 1, 1, 1, 2, 2, 2, 2, 3};
    bool is_complex = dtype_is_complex(k->dtype);
    for (size_t i = 0; i < sizeof n_axes / sizeof *n_axes; i++)
        for (int kind = 0; kind < FFT_KIND_COUNT; kind++) {
            struct shape s = wholes[i];
            const int64_t *sizes = wholes[i].dims + s.rank - n_axes[i];
            if (is_complex == (kind == FFT_RFFT))
                continue;
            if (kind == FFT_IRFFT)
                s.dims[s.rank - 1] = fft_half(s.dims[s.rank - 1]);
            add_one(k, IR_fft,
                    ir_attrs(k->m, IR_INT(mode, kind), IR_INTS(sizes, n_axes[i], sizes)), s);
        }
}

// Both orders of axes; strides, padding, dilations and groups, places that no window reaches, and none.
static void add_conv(struct maker *k)
{
    static const struct conv_case {
        struct shape parts[CONV_PARTS];
        enum conv_layout layout;
        int64_t groups, lists[5][2]; // strides, low, high, dilation of x and of w
    } cases[] = {
        {{{2, {2, 3}}, {2, {4, 3}}, {2, {2, 4}}}, false, 1, {{0}}},
        {{{3, {2, 3, 7}}, {3, {4, 3, 3}}, {3, {2, 4, 3}}}, false, 1, {{2}, {0}, {0}, {1}, {1}}},
        {{{3, {2, 5, 4}}, {3, {2, 2, 6}}, {3, {2, 8, 6}}}, true, 2, {{1}, {1}, {-1}, {2}, {1}}},
        {{{4, {1, 4, 4, 5}}, {4, {6, 2, 2, 3}}, {4, {1, 6, 2, 5}}},
         false,
         2,
         {{2, 1}, {1, 1}, {0, 1}, {1, 1}, {2, 1}}},
        {{{4, {2, 4, 5, 2}}, {4, {2, 2, 2, 3}}, {4, {2, 2, 2, 3}}},
         true,
         1,
         {{2, 2}, {0, 0}, {0, 0}, {1, 1}, {1, 1}}},
        {{{3, {2, 0, 3}}, {3, {2, 0, 3}}, {3, {2, 2, 1}}}, false, 1, {{1}, {0}, {0}, {1}, {1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct conv_case *of = &cases[i];
        struct ir_conv c = {.layout = of->layout,
                            .n = of->parts[0].rank - 2,
                            .groups = of->groups,
                            .strides = of->lists[0],
                            .low = of->lists[1],
                            .high = of->lists[2],
                            .lhs_dilation = of->lists[3],
                            .rhs_dilation = of->lists[4]};
        for (int part = 0; part < CONV_PARTS; part++) {
            c.part = (enum conv_part)part;
            if (c.part != CONV_Y && !dtype_is_inexact(k->dtype))
                continue;
            c.sizes = of->parts[part].dims + ir_conv_spatial(&c, c.part);
            add_case(k, IR_conv, ir_conv_attrs(k->m, &c), 2,
                     (struct shape[]){of->parts[ir_conv_operand(&c, 0)],
                                      of->parts[ir_conv_operand(&c, 1)]});
        }
    }
}

static void add_sort(struct maker *k)
{
    const struct ir_attrs *one = ir_attrs(k->m, IR_INT(num_keys, 1));
    const struct ir_attrs *two = ir_attrs(k->m, IR_INT(num_keys, 2));
    const struct shape same[] = {SHAPE(3, 4), SHAPE(3, 4), SHAPE(3, 4)};
    add_one(k, IR_sort, one, SHAPE(7));
    add_one(k, IR_sort, one, SHAPE(2, 60));
    add_one(k, IR_sort, one, SHAPE(2, 0));
    add_case(k, IR_sort, one, 2, same);
    add_case(k, IR_sort, two, 3, same);
}

static void add_top_k(struct maker *k)
{
    add_one(k, IR_top_k, ir_attrs(k->m, IR_INT(length, 3), IR_INT(dtype, JOT_I32)), SHAPE(7));
    add_one(k, IR_top_k, ir_attrs(k->m, IR_INT(length, 5), IR_INT(dtype, JOT_I64)),
            SHAPE(2, 5));
    add_one(k, IR_top_k, ir_attrs(k->m, IR_INT(length, 0), IR_INT(dtype, JOT_I32)),
            SHAPE(2, 3));
}

static void add_op(struct maker *k, enum ir_op op)
{
    switch (op) {
    case IR_dynamic_slice:
    case IR_dynamic_update_slice:
        add_dynamic_slice(k, op);
        return;
    case IR_gather:
        add_gather(k);
        return;
    case IR_integer_pow:
        add_integer_pow(k);
        return;
    case IR_convert:
        add_convert(k);
        return;
    case IR_bitcast:
        add_bitcast(k);
        return;
    case IR_reduce_precision:
        add_reduce_precision(k);
        return;
    case IR_iota:
        add_iota(k);
        return;
    case IR_broadcast_in_dim:
        add_broadcast_in_dim(k);
        return;
    case IR_reshape:
        add_reshape(k);
        return;
    case IR_transpose:
        add_transpose(k);
        return;
    case IR_rev:
        add_rev(k);
        return;
    case IR_slice:
        add_slice(k);
        return;
    case IR_pad:
        add_pad(k);
        return;
    case IR_shear:
        add_shear(k);
        return;
    case IR_concatenate:
        add_concatenate(k);
        return;
    case IR_dot_general:
        add_dot_general(k);
        return;
    case IR_conv:
        add_conv(k);
        return;
    case IR_fft:
        add_fft(k);
        return;
    case IR_sort:
        add_sort(k);
        return;
    case IR_top_k:
        add_top_k(k);
        return;
    case IR_barrier:
        add_case(k, op, NULL, 2, (struct shape[]){SHAPE(2), SHAPE(3)});
        return;
    case IR_qr: // unique but for signs and phases: tests/trace/test_decompose.c
    case IR_eigh:
    case IR_svd:
    case IR_eig:
    case IR_schur:
        return;
    case IR_cholesky:
    case IR_lu:
        add_factored(k, op);
        return;
    case IR_triangular_solve:
        add_triangular_solve(k);
        return;
    case IR_tridiagonal_solve:
        add_tridiagonal_solve(k);
        return;
    default:
        break;
    }
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
    case IR_CLASS_EFFECT:
        return;
    case IR_CLASS_UPDATE:
        add_scatter(k, op);
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
    struct maker k = {.m = m, .dtype = dtype, .state = seed};
    k.places = dtype_is_integer(dtype) ? dtype : dtype == JOT_F32 ? JOT_I64 : JOT_I32;
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
