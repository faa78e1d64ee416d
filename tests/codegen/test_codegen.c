// SPDX-License-Identifier: Apache-2.0
// Machine code against the interpreter of nests, bit for bit: folds of every combiner, dtype and
// awkward length, in every mapping to vector lanes.
#include "nest_check.h"

#include "codegen/codegen.h"
#include "support/opcases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct nest_index form(struct nest_builder *b, int64_t constant, int n,
                              const struct nest_term *terms)
{
    return nest_index_make(b->nest->arena, constant, n, terms);
}

#define AXIS(axis, by) ((struct nest_term){.factor = (by), .id = (axis)})

static bool takes(enum ir_op op, jot_dtype d)
{
    switch (op) {
    case IR_reduce_sum:
    case IR_reduce_prod:
    case IR_fma:
        return d != JOT_BOOL;
    case IR_reduce_and:
    case IR_reduce_or:
    case IR_reduce_xor:
        return d == JOT_BOOL || dtype_is_integer(d);
    default:
        return !dtype_is_complex(d);
    }
}

static const enum ir_op combiners[] = {
    IR_reduce_sum, IR_reduce_prod, IR_reduce_max, IR_reduce_min, IR_reduce_and,
    IR_reduce_or,  IR_reduce_xor,  IR_fma,        IR_argmax,     IR_argmin};
#define COMBINERS ((int)(sizeof combiners / sizeof *combiners))

static jot_dtype result_dtype(enum ir_op op, jot_dtype d)
{
    bool wide = op == IR_reduce_sum || op == IR_reduce_prod || op == IR_fma;
    return wide && dtype_is_half(d) ? JOT_F32 : d;
}

// Whether it is an op of elements of the type that gives such an element.
static bool gives_its_type(enum ir_op op, jot_dtype d)
{
    const struct ir_op_info *info = ir_op_get(op);
    return ir_op_class(op) == IR_CLASS_MAP && info->out == 1 && !strcmp(info->shape, "same") &&
           opcase_takes(op, d);
}

// y[i] = fold of x[i, j] over j, where j runs over one or two axes.
struct shape {
    int64_t rows, outer, inner, row_stride, outer_stride, inner_stride;
};

static void check_fold(enum ir_op op, jot_dtype d, const struct shape *s)
{
    struct nest_builder b = nest_builder_make(nest_check_arena, "fold");
    int64_t count = s->rows * s->outer * s->inner;
    nest_id x = nest_buffer(&b, "x", d, count, NEST_IN);
    bool is_arg = op == IR_argmax || op == IR_argmin;
    jot_dtype r = result_dtype(op, d);
    nest_id y = nest_buffer(&b, "y", r, s->rows, NEST_OUT);
    nest_id at = is_arg ? nest_buffer(&b, "at", JOT_I64, s->rows, NEST_OUT) : NEST_NONE;
    nest_id i = nest_axis(&b, "i", s->rows), j = nest_axis(&b, "j", s->outer),
            k = nest_axis(&b, "k", s->inner);
    nest_open(&b, NEST_PAR, 1, &i);
    nest_open(&b, NEST_FOLD, 2, (nest_id[]){j, k});
    struct nest_index from =
        form(&b, 0, 3,
             (struct nest_term[]){AXIS(i, s->row_stride), AXIS(j, s->outer_stride),
                                  AXIS(k, s->inner_stride)});
    nest_id v = nest_load(&b, x, from, NEST_NONE);
    struct nest_combine c = {.op = (uint16_t)op,
                             .n = op == IR_fma ? 2 : 1,
                             .dtype = r,
                             .order = nest_fold_order((uint16_t)op, r)};
    c.value[0] = c.value[1] = v;
    nest_id result = nest_close(&b, 1, &c);
    struct nest_index to = form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)});
    nest_put(&b, y, to, result, NEST_NONE);
    if (is_arg)
        nest_put(&b, at, to, result + 1, NEST_NONE);
    nest_close(&b, 0, NULL);
    nest_check(b.nest);
}

// Of a combiner and a dtype every third of these: what is left out, other dtypes have.
static void check_fold_lengths(enum ir_op op, jot_dtype d, int first)
{
    static const int64_t lengths[] = {1,  2,  3,   7,   16,   40,   63,
                                      64, 65, 100, 200, 4096, 4100, 9000};
    static const struct shape two_axes[] = {{2, 5, 64, 320, 64, 1}, // adjoining
                                            {2, 7, 30, 30, 60, 1},  // apart
                                            {2, 3, 5, 5, 10, 1},
                                            {2, 90, 70, 70, 140, 1}, // rows end inside windows
                                            {40, 3, 9, 27, 9, 1}};
    uint64_t at = (uint64_t)first;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t n = lengths[i];
        // Contiguous along the fold, and along the points.
        if (sample_takes(at++, 3))
            check_fold(op, d, &(struct shape){3, 1, n, n, 0, 1});
        if (sample_takes(at++, 3) && n <= 4100)
            check_fold(op, d, &(struct shape){35, n, 1, 1, 35, 0});
    }
    for (size_t i = 0; i < sizeof two_axes / sizeof *two_axes; i++)
        if (sample_takes(at++, 3))
            check_fold(op, d, &two_axes[i]);
}

START_TEST(folds)
{
    enum ir_op op = combiners[_i % COMBINERS];
    jot_dtype d = (jot_dtype)(_i / COMBINERS);
    if (takes(op, d))
        check_fold_lengths(op, d, _i % COMBINERS + _i / COMBINERS);
    nest_check_end();
}
END_TEST

// g[k] accumulates over n inside the kernel, and the whole sum of x besides.
static void check_accumulation(jot_dtype d, int64_t n, int64_t k)
{
    struct nest_builder b = nest_builder_make(nest_check_arena, "accumulate");
    jot_dtype r = result_dtype(IR_reduce_sum, d);
    nest_id x = nest_buffer(&b, "x", d, n * k, NEST_IN);
    nest_id w = nest_buffer(&b, "w", d, n, NEST_IN);
    nest_id g = nest_buffer(&b, "g", r, k, NEST_OUT);
    nest_id h = nest_buffer(&b, "h", r, k, NEST_OUT);
    nest_id total = nest_buffer(&b, "total", r, 1, NEST_OUT);
    nest_id i = nest_axis(&b, "i", n), j = nest_axis(&b, "j", k), l = nest_axis(&b, "l", k);
    nest_id fold = nest_open(&b, NEST_FOLD, 1, &i);
    nest_open(&b, NEST_FOLD, 1, &l);
    nest_id row = nest_load(&b, x, form(&b, 0, 2, (struct nest_term[]){AXIS(i, k), AXIS(l, 1)}),
                            NEST_NONE);
    struct nest_combine sum = {.op = IR_reduce_sum,
                               .n = 1,
                               .dtype = r,
                               .order = nest_fold_order(IR_reduce_sum, r),
                               .value = {row}};
    nest_id inner = nest_close(&b, 1, &sum);
    nest_id weight =
        nest_load(&b, w, form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)}), NEST_NONE);
    nest_open(&b, NEST_MAP, 1, &j);
    nest_id v = nest_load(&b, x, form(&b, 0, 2, (struct nest_term[]){AXIS(i, k), AXIS(j, 1)}),
                          NEST_NONE);
    struct nest_index to = form(&b, 0, 1, (struct nest_term[]){AXIS(j, 1)});
    struct nest_combine fma = {.op = IR_fma,
                               .n = 2,
                               .dtype = r,
                               .order = nest_fold_order(IR_fma, r),
                               .value = {v, weight}};
    nest_put_combine(&b, g, to, fold, &fma);
    struct nest_combine plain = {.op = IR_reduce_sum,
                                 .n = 1,
                                 .dtype = r,
                                 .order = nest_fold_order(IR_reduce_sum, r),
                                 .value = {v}};
    nest_put_combine(&b, h, to, fold, &plain);
    nest_close(&b, 0, NULL);
    struct nest_combine all = {.op = IR_reduce_sum,
                               .n = 1,
                               .dtype = r,
                               .order = nest_fold_order(IR_reduce_sum, r),
                               .value = {inner}};
    nest_id result = nest_close(&b, 1, &all);
    nest_put(&b, total, form(&b, 0, 0, NULL), result, NEST_NONE);
    nest_check(b.nest);
}

START_TEST(accumulations)
{
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_I32, JOT_C64, JOT_F16};
    static const int64_t sizes[][2] = {{1, 1},     {5, 3},    {64, 4},    {70, 20},
                                       {1000, 33}, {5000, 3}, {9000, 40}, {40000, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sample_takes(i + (size_t)_i, 1))
            check_accumulation(dtypes[_i], sizes[i][0], sizes[i][1]);
    nest_check_end();
}
END_TEST

// A number between the loops of every element: expensive, chosen by a bool, of two stages.
START_TEST(numbers_of_rows)
{
    static const int64_t sizes[][2] = {{129, 20}, {513, 20}, {1000, 33}, {1100, 64}};
    jot_dtype d = _i % 2 ? JOT_F64 : JOT_F32;
    int64_t n = sizes[_i / 2][0], columns = sizes[_i / 2][1];
    struct nest_builder b = nest_builder_make(nest_check_arena, "rows");
    nest_id x = nest_buffer(&b, "x", d, n * columns, NEST_IN);
    nest_id y = nest_buffer(&b, "y", d, columns, NEST_OUT);
    nest_id z = nest_buffer(&b, "z", d, 1, NEST_OUT);
    nest_id i = nest_axis(&b, "i", n), j = nest_axis(&b, "j", columns),
            k = nest_axis(&b, "k", columns);
    nest_id fold = nest_open(&b, NEST_FOLD, 1, &i);
    nest_id number =
        nest_index_value(&b, form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)}), JOT_I32);
    nest_id place = nest_op(&b, IR_convert, d, 1, &number, NULL);
    nest_open(&b, NEST_FOLD, 1, &j);
    nest_id u = nest_load(
        &b, x, form(&b, 0, 2, (struct nest_term[]){AXIS(i, columns), AXIS(j, 1)}), NEST_NONE);
    struct nest_combine sum = {.op = IR_reduce_sum,
                               .n = 1,
                               .dtype = d,
                               .order = nest_fold_order(IR_reduce_sum, d),
                               .value = {u}};
    nest_id s = nest_close(&b, 1, &sum);
    nest_id is_low = nest_op(&b, IR_lt, JOT_BOOL, 2, (nest_id[]){s, place}, NULL);
    nest_id e = nest_op(&b, IR_tanh, d, 1, &s, NULL);
    nest_id g = nest_op(&b, IR_select, d, 3, (nest_id[]){is_low, e, s}, NULL);
    nest_open(&b, NEST_MAP, 1, &k);
    nest_id v = nest_load(
        &b, x, form(&b, 0, 2, (struct nest_term[]){AXIS(i, columns), AXIS(k, 1)}), NEST_NONE);
    nest_id w = nest_op(&b, IR_mul, d, 2, (nest_id[]){v, g}, NULL);
    struct nest_combine add = {.op = IR_reduce_sum,
                               .n = 1,
                               .dtype = d,
                               .order = nest_fold_order(IR_reduce_sum, d),
                               .value = {w}};
    nest_put_combine(&b, y, form(&b, 0, 1, (struct nest_term[]){AXIS(k, 1)}), fold, &add);
    nest_close(&b, 0, NULL);
    struct nest_combine last = {.op = IR_reduce_max,
                                .n = 1,
                                .dtype = d,
                                .order = nest_fold_order(IR_reduce_max, d),
                                .value = {g}};
    nest_id most = nest_close(&b, 1, &last);
    nest_put(&b, z, form(&b, 0, 0, NULL), most, NEST_NONE);
    nest_check(b.nest);
    nest_check_end();
}
END_TEST

// A network over points: products with a matrix and its transpose, sums of products and of numbers
// over the points, a product that is summed as it is, and what goes back to memory.
static const char network[] =
    "kernel net(x: %s[%d], w: %s[%d], y: out %s[%d], g: out %s[%d], q: out %s[%d], "
    "s: out %s[1], r: out %s[%d]) {\n"
    "  local a: %s[%d] @ point\n  local z: %s[%d] @ point\n  local h: %s[%d] @ point\n"
    "  local u: %s[%d] @ point\n"
    "  fold n < %d {\n"
    "    map k < %d {\n      %%0 = load x[%d*n + k] : %s\n      put a[k] = %%0\n    }\n"
    "    contract z[j] = a[k2], w[%d*k2 + j] for j < %d over k2 < %d\n"
    "    map i < %d {\n      %%1 = load z[i] : %s\n      %%2 = tanh %%1 : %s\n"
    "      put h[i] = %%2\n    }\n"
    "    contract u[k3] = h[j3], w[%d*k3 + j3] for k3 < %d over j3 < %d\n"
    "    map i4 < %d, j4 < %d {\n      %%3 = load a[i4] : %s\n      %%4 = load h[j4] : %s\n"
    "      put g[%d*i4 + j4] fma= %%3, %%4 in @n sum64\n    }\n"
    "    map i5 < %d, j5 < %d {\n      %%5 = load z[i5] : %s\n      %%6 = load u[j5] : %s\n"
    "      put r[%d*i5 + j5] fma= %%5, %%6 in @n sum64\n    }\n"
    "    fold k6 < %d {\n      %%7 = load u[k6] : %s\n      put y[%d*n + k6] = %%7\n"
    "      put q[k6] reduce_sum= %%7 in @n sum64\n      yield reduce_max %%7 free\n    } -> "
    "%%8 : %s\n"
    "    yield reduce_sum %%8 sum64\n  } -> %%9 : %s\n  put s[0] = %%9\n}\n";

static void check_network(const char *d, int n, int inputs, int outputs)
{
    char text[4096];
    int k = inputs, j = outputs;
    snprintf(text, sizeof text, network, d, n * k, d, k * j, d, n * k, d, k * j, d, k, d, d,
             j * k, d, k, d, j, d, j, d, k, n, k, k, d, j, j, k, j, d, d, j, k, j, k, j, d, d,
             j, j, k, d, d, k, k, d, k, d, d);
    nest_check_text(text);
}

// A sum of what a point has of its own and a row of memory, which is quick to read along the row.
static const char row_sums[] =
    "kernel rows(x: %s[%d], w: %s[%d], y: out %s[%d]) {\n"
    "  local a: %s[%d] @ point\n  local z: %s[%d] @ point\n"
    "  par n < %d {\n"
    "    map k < %d {\n      %%0 = load x[%d*n + k] : %s\n      put a[k] = %%0\n    }\n"
    "    %s\n"
    "    fold i < %d {\n      %%1 = load x[%d*n + i] : %s\n      %%2 = load z[i] : %s\n"
    "      %%3 = mul %%1, %%2 : %s\n      yield reduce_sum %%3 sum64\n    } -> %%4 : %s\n"
    "    map i2 < %d {\n      %%5 = load z[i2] : %s\n      %%6 = mul %%4, %%5 : %s\n"
    "      put y[%d*n + i2] = %%6\n    }\n  }\n}\n";

static void check_row_sums(const char *d, int n, int k)
{
    char text[2048], product[256], map[256];
    snprintf(product, sizeof product,
             "contract z[j] = a[k2], w[%d*k2 + j] for j < %d over k2 < %d", k, k, k);
    snprintf(map, sizeof map,
             "map j < %d {\n%%7 = load a[j] : %s\n%%8 = load w[j] : %s\n"
             "%%9 = add %%7, %%8 : %s\nput z[j] = %%9\n}",
             k, d, d, d);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, row_sums, d, n * k, d, k * k, d, n * k, d, k, d, k, n, k, k,
                 d, i ? map : product, k, k, d, d, d, d, k, d, d, k);
        nest_check_text(text);
    }
}

START_TEST(networks)
{
    // The last but one ends with a block, the last has blocks of 4096 points.
    static const int sizes[][3] = {{2, 1, 2},    {7, 3, 5},     {64, 20, 20}, {100, 8, 20},
                                   {300, 2, 33}, {513, 20, 20}, {600, 50, 7}, {1100, 13, 64},
                                   {511, 17, 3}, {1024, 5, 9},  {33001, 2, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sample_takes(i + (size_t)_i, 1))
            check_network(_i ? "f64" : "f32", sizes[i][0], sizes[i][1], sizes[i][2]);
    check_row_sums(_i ? "f64" : "f32", 4099, 64);
    check_row_sums(_i ? "f64" : "f32", 300, 7);
    nest_check_end();
}
END_TEST

START_TEST(large_fold)
{
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_I32, JOT_BF16, JOT_C128, JOT_BOOL};
    jot_dtype d = dtypes[_i];
    enum ir_op op = d == JOT_BOOL ? IR_reduce_xor : IR_reduce_sum;
    int64_t lengths[] = {1000000, 4096 * 50, 123457};
    for (int i = 0; i < 3; i++) {
        struct nest_builder b = nest_builder_make(nest_check_arena, "all");
        jot_dtype r = result_dtype(op, d);
        nest_id x = nest_buffer(&b, "x", d, lengths[i], NEST_IN);
        nest_id y = nest_buffer(&b, "y", r, 1, NEST_OUT);
        nest_id a = nest_axis(&b, "a", lengths[i]);
        nest_open(&b, NEST_FOLD, 1, &a);
        nest_id v =
            nest_load(&b, x, form(&b, 0, 1, (struct nest_term[]){AXIS(a, 1)}), NEST_NONE);
        struct nest_combine c = {.op = (uint16_t)op,
                                 .n = 1,
                                 .dtype = r,
                                 .order = nest_fold_order((uint16_t)op, r),
                                 .value = {v}};
        nest_id result = nest_close(&b, 1, &c);
        nest_put(&b, y, form(&b, 0, 0, NULL), result, NEST_NONE);
        nest_check(b.nest);
    }
    nest_check_end();
}
END_TEST

// Elements that a GPU computes before it adds them up, by a function of its own or by who has the block.
START_TEST(dear_folds)
{
    static const int lengths[] = {100000, 480001};
    const char *dtype = _i ? "f64" : "f32";
    for (int i = 0; i < 2; i++) {
        char text[1000], *at = text;
        at += sprintf(at,
                      "kernel dear(x: %s[%d], y: out %s[1], z: out %s[1]) {\n  fold i < %d {\n"
                      "    %%0 = load x[i] : %s\n",
                      dtype, lengths[i], dtype, dtype, lengths[i], dtype);
        for (int k = 0; k < 8; k++)
            at += sprintf(at, "    %%%d = sin %%%d : %s\n", k + 1, k, dtype);
        sprintf(
            at,
            "    yield reduce_sum %%8 sum64, fma %%8 %%0 sum64\n  } -> %%9 : %s, %%10 : %s\n"
            "  put y[0] = %%9\n  put z[0] = %%10\n}\n",
            dtype, dtype);
        nest_check_text(text);
    }
    nest_check_end();
}
END_TEST

// Squares beside their transposes: tiles of them and their mirror images, whole and cut short, an even
// number along a side and an odd one.
START_TEST(squares)
{
    static const int sides[] = {64, 100, 96, 128};
    static const char *const dtypes[] = {"f32", "f64", "i8"};
    const char *dtype = dtypes[_i];
    for (int i = 0; i < 4; i++) {
        int n = sides[i];
        char text[1000];
        sprintf(text,
                "kernel square(x: %s[%d], v: %s[%d], y: out %s[%d]) {\n  par i < %d, j < %d {\n"
                "    %%0 = load x[i + %d*j] : %s\n    %%1 = load x[%d*i + j] : %s\n"
                "    %%2 = load v[%d*i + j] : %s\n    %%3 = sub %%0, %%1 : %s\n"
                "    %%4 = mul %%3, %%2 : %s\n    put y[%d*i + j] = %%4\n  }\n}\n",
                dtype, n * n, dtype, n * n, dtype, n * n, n, n, n, dtype, n, dtype, n, dtype,
                dtype, dtype, n);
        nest_check_text(text);
    }
    nest_check_end();
}
END_TEST

// Of so many points a thread of a GPU has two vectors, and reads both before it does anything else.
START_TEST(large_maps)
{
    nest_check_text("kernel map(x: f32[4325376], v: f32[4325376], y: out f32[4325376]) {\n"
                    "  par i < 2, j < 2162688 {\n"
                    "    %0 = load x[2162688*i + j] : f32\n"
                    "    %1 = neg %0 : f32\n"
                    "    %2 = load v[4325375 - 2162688*i - j] : f32\n"
                    "    %3 = div %1, %2 : f32\n"
                    "    %4 = tanh %3 : f32\n"
                    "    put y[2162688*i + j] = %4\n"
                    "  }\n"
                    "}\n");
    nest_check_end();
}
END_TEST

// A kernel of so many ops that the long ones are functions: all of a type, several times, each several
// times of the same operands.
START_TEST(ops_of_large_kernels)
{
    enum { N = 40, TIMES = 8 };
    jot_dtype d = (jot_dtype)_i;
    static const int64_t bits[] = {3, 7}; // an exponent, or the bits that are left
    int n_ops = 0;
    for (int op = 0; op < IR_OP_COUNT; op++)
        n_ops += gives_its_type((enum ir_op)op, d);
    struct nest_builder b = nest_builder_make(nest_check_arena, "large");
    nest_id x = nest_buffer(&b, "x", d, N + 4 * TIMES, NEST_IN);
    nest_id y = nest_buffer(&b, "y", d, N * TIMES * n_ops, NEST_OUT), i = nest_axis(&b, "i", N);
    nest_open(&b, NEST_PAR, 1, &i);
    for (int t = 0, k = 0; t < TIMES; t++) {
        nest_id in[4];
        for (int j = 0; j < 4; j++)
            in[j] = nest_load(&b, x, form(&b, 4 * t + j, 1, (struct nest_term[]){AXIS(i, 1)}),
                              NEST_NONE);
        for (int op = 0; op < IR_OP_COUNT; op++) {
            if (!gives_its_type((enum ir_op)op, d))
                continue;
            nest_id v = nest_op(&b, (enum ir_op)op, d, (uint32_t)ir_op_get((enum ir_op)op)->in,
                                in, bits);
            nest_put(&b, y, form(&b, N * k++, 1, (struct nest_term[]){AXIS(i, 1)}), v,
                     NEST_NONE);
        }
    }
    nest_close(&b, 0, NULL);
    nest_check(b.nest);
    nest_check_end();
}
END_TEST

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

// Beyond the bound equal ops are compiled once, and a sine and a cosine of the same number as one.
START_TEST(equal_ops_are_one_function)
{
    struct strbuf text = strbuf_make(nest_check_arena);
    int n = 0, n_nests;
    strbuf_add(&text, "kernel long(x: f32[10000], y: out f32[10000]) {\n  par i < 10000 {\n"
                      "    %0 = load x[i] : f32\n");
    for (; n < 1200; n += 3)
        strbuf_printf(&text,
                      "    %%%d = sin %%%d : f32\n    %%%d = cos %%%d : f32\n"
                      "    %%%d = mul %%%d, %%%d : f32\n",
                      n + 1, n, n + 2, n, n + 3, n + 1, n + 2);
    strbuf_printf(&text, "    put y[i] = %%%d\n  }\n}\n", n);
    struct nest **nests;
    ck_assert_int_eq(nest_parse(nest_check_arena, text.text, &n_nests, &nests), JOT_OK);
    struct strbuf program = strbuf_make(nest_check_arena);
    nest_program_print(&program, run_native_wrap(nest_check_arena, nests[0]));
    struct cg_request request = {.want = CG_WANT_LLVM, .program = program.text};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_int_eq(r.status, JOT_OK);
    int defined = 0, called = 0;
    for (const char *at = r.llvm; (at = strstr(at, "@pair_op_sin_f32")); at++)
        defined += !strncmp(at - 2, "} @", 3), called++;
    ck_assert_int_ge(called, 400);
    ck_assert_ptr_null(strstr(r.llvm, "define internal <16 x float> @op_"));
    ck_assert_uint_lt(r.object_size, 120000);
    r.release(&r);
}
END_TEST

// Local rows, of which threads of a GPU keep what they have where they have room; one is read from
// elsewhere too.
START_TEST(local_rows)
{
    static const int lengths[] = {512, 1024, 1000, 2048, 8192};
    static const char *const dtypes[] = {"f32", "f64", "i32"};
    const char *d = dtypes[_i];
    for (int i = 0; i < 5; i++) {
        int n = lengths[i];
        char text[2000];
        sprintf(text,
                "kernel rows(x: %s[%d], y: out %s[%d], z: out %s[%d]) {\n"
                "  local e: %s[%d] @ point\n  local p: %s[%d] @ point\n  par i < 3 {\n"
                "    fold j < %d {\n      %%0 = load x[%d*i + j] : %s\n"
                "      %%1 = mul %%0, %%0 : %s\n      put e[j] = %%1\n"
                "      yield reduce_max %%1 free\n    } -> %%2 : %s\n"
                "    fold k < %d {\n      %%3 = load e[k] : %s\n      %%4 = sub %%3, %%2 : %s\n"
                "      put p[k] = %%4\n      yield reduce_sum %%4 sum64\n    } -> %%5 : %s\n",
                d, 3 * n, d, 3 * n, d, 3 * n, d, n, d, n, n, n, d, d, d, n, d, d, d);
        sprintf(text + strlen(text),
                "    map l < %d {\n      %%6 = load e[l] : %s\n      %%7 = load p[l] : %s\n"
                "      %%8 = add %%6, %%7 : %s\n      %%9 = mul %%8, %%5 : %s\n"
                "      put y[%d*i + l] = %%9\n    }\n"
                "    map m < %d {\n      %%10 = load p[%d - m] : %s\n"
                "      put z[%d*i + m] = %%10\n    }\n  }\n}\n",
                n, d, d, d, d, n, n, n - 1, d, n);
        nest_check_text(text);
    }
    nest_check_end();
}
END_TEST

// Reversed, strided, guarded and data-dependent access.
START_TEST(access)
{
    jot_dtype d = (jot_dtype)_i;
    int64_t n = 150;
    for (int pattern = 0; pattern < 5; pattern++) {
        struct nest_builder b = nest_builder_make(nest_check_arena, "access");
        nest_id x = nest_buffer(&b, "x", d, 3 * n, NEST_IN);
        nest_id which = nest_buffer(&b, "which", JOT_U8, n, NEST_IN);
        nest_id y = nest_buffer(&b, "y", d, 2 * n, NEST_OUT);
        nest_id z = nest_buffer(&b, "z", d, n, NEST_OUT);
        nest_id i = nest_axis(&b, "i", n);
        nest_open(&b, NEST_PAR, 1, &i);
        struct nest_index from[] = {
            form(&b, n - 1, 1, (struct nest_term[]){AXIS(i, -1)}),
            form(&b, 1, 1, (struct nest_term[]){AXIS(i, 3)}),
            form(&b, 7, 0, NULL),
            form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)}),
            form(&b, 0, 1, (struct nest_term[]){AXIS(i, 2)}),
        };
        nest_id guard = NEST_NONE;
        struct nest_index at = from[pattern];
        if (pattern == 3) { // x[which[i]] where i is below 100
            nest_id w = nest_load(&b, which, from[3], NEST_NONE);
            nest_id place = nest_index_value(&b, from[3], JOT_I32);
            nest_id limit = nest_const(&b, JOT_I32, &(int32_t){100});
            guard = nest_op(&b, IR_lt, JOT_BOOL, 2, (nest_id[]){place, limit}, NULL);
            at = form(&b, 0, 1, (struct nest_term[]){{.factor = 1, .id = w, .is_value = true}});
        }
        nest_id v = nest_load(&b, x, at, guard);
        nest_put(&b, z, from[3], v, NEST_NONE);
        nest_put(&b, y, form(&b, 0, 1, (struct nest_term[]){AXIS(i, 2)}), v, NEST_NONE);
        nest_put(&b, y, form(&b, 1, 1, (struct nest_term[]){AXIS(i, 2)}), v, NEST_NONE);
        nest_close(&b, 0, NULL);
        nest_check(b.nest);
    }
    nest_check_end();
}
END_TEST

// Rows with a local array that two loops share.
START_TEST(locals)
{
    jot_dtype d = _i ? JOT_F64 : JOT_F32;
    int64_t shapes[][2] = {{3, 100}, {40, 5}, {2, 5000}, {200, 3}};
    for (int k = 0; k < 4; k++) {
        int64_t rows = shapes[k][0], n = shapes[k][1];
        struct nest_builder b = nest_builder_make(nest_check_arena, "rows");
        nest_id x = nest_buffer(&b, "x", d, rows * n, NEST_IN);
        nest_id y = nest_buffer(&b, "y", d, rows * n, NEST_OUT);
        nest_id t = nest_buffer(&b, "t", d, n, NEST_LOCAL);
        nest_id r = nest_axis(&b, "r", rows), c = nest_axis(&b, "c", n),
                e = nest_axis(&b, "e", n), g = nest_axis(&b, "g", n);
        nest_open(&b, NEST_PAR, 1, &r);
        nest_open(&b, NEST_MAP, 1, &c);
        nest_id v = nest_load(
            &b, x, form(&b, 0, 2, (struct nest_term[]){AXIS(r, n), AXIS(c, 1)}), NEST_NONE);
        nest_id w = nest_op(&b, IR_tanh, d, 1, &v, NULL);
        nest_put(&b, t, form(&b, 0, 1, (struct nest_term[]){AXIS(c, 1)}), w, NEST_NONE);
        nest_close(&b, 0, NULL);
        nest_open(&b, NEST_FOLD, 1, &e);
        nest_id u =
            nest_load(&b, t, form(&b, 0, 1, (struct nest_term[]){AXIS(e, 1)}), NEST_NONE);
        struct nest_combine sum = {.op = IR_reduce_sum,
                                   .n = 1,
                                   .dtype = d,
                                   .order = nest_fold_order(IR_reduce_sum, d),
                                   .value = {u}};
        nest_id s = nest_close(&b, 1, &sum);
        nest_open(&b, NEST_MAP, 1, &g);
        nest_id q =
            nest_load(&b, t, form(&b, n - 1, 1, (struct nest_term[]){AXIS(g, -1)}), NEST_NONE);
        nest_id o = nest_op(&b, IR_div, d, 2, (nest_id[]){q, s}, NULL);
        nest_put(&b, y, form(&b, 0, 2, (struct nest_term[]){AXIS(r, n), AXIS(g, 1)}), o,
                 NEST_NONE);
        nest_close(&b, 0, NULL);
        nest_close(&b, 0, NULL);
        nest_check(b.nest);
    }
    nest_check_end();
}
END_TEST

// Division by one number for all lanes, at every distance from the ends of the range.
START_TEST(divisions)
{
    enum { N = 4096, DIVISORS = 200 };
    jot_dtype d = _i ? JOT_F64 : JOT_F32;
    struct nest_builder b = nest_builder_make(nest_check_arena, "divide");
    nest_id x = nest_buffer(&b, "x", d, N, NEST_IN), y = nest_buffer(&b, "y", d, 1, NEST_IN);
    nest_id z = nest_buffer(&b, "z", d, N, NEST_OUT), i = nest_axis(&b, "i", N);
    nest_id divisor = nest_load(&b, y, form(&b, 0, 0, NULL), NEST_NONE);
    nest_open(&b, NEST_PAR, 1, &i);
    struct nest_index at = form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)});
    nest_id v = nest_load(&b, x, at, NEST_NONE);
    nest_put(&b, z, at, nest_op(&b, IR_div, d, 2, (nest_id[]){v, divisor}, NULL), NEST_NONE);
    nest_close(&b, 0, NULL);
    struct rt_program *program;
    ck_assert_int_eq(run_native_load(nest_check_arena,
                                     run_native_wrap(nest_check_arena, b.nest), NULL, &program),
                     JOT_OK);
    size_t size = jot_dtype_size(d);
    char *in = arena_allocate(nest_check_arena, N * 8),
         *out = arena_allocate(nest_check_arena, N * 8);
    char *expected = arena_allocate(nest_check_arena, N * 8);
    for (int k = 0; k < DIVISORS; k++) {
        uint64_t by = nest_check_random();
        bool tame = k % 4 != 0; // exponents near 1, so that the quick way is taken
        for (int e = 0; e < N; e++) {
            uint64_t bits = nest_check_random();
            if (tame)
                bits = size == 4
                           ? (bits & 0x87ffffff) | 0x3c000000
                           : (bits & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x3ff) << 52;
            if (bits % 50 == 0)
                bits = (uint64_t)(bits % 100 == 0) << (8 * size - 1);
            memcpy(in + e * (int)size, &bits, size);
        }
        if (tame)
            by = size == 4 ? (by & 0x87ffffff) | 0x3c000000
                           : (by & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x3fe) << 52;
        const void *inputs[] = {in, &by};
        void *outputs[] = {out};
        ck_assert_int_eq(run_native_call(program, inputs, outputs), JOT_OK);
        for (int e = 0; e < N; e++) {
            float f[2];
            double g[2];
            memcpy(f, in + e * 4, 4);
            memcpy(f + 1, &by, 4);
            memcpy(g, in + e * (int)size, size);
            memcpy(g + 1, &by, 8);
            f[0] /= f[1];
            g[0] /= g[1];
            memcpy(expected + e * (int)size, size == 4 ? (void *)f : (void *)g, size);
        }
        ck_assert(nest_check_differs(d, N, out, expected) < 0);
    }
    rt_program_release(program);
}
END_TEST

// An array that goes past the caches, at the start of a cache line and elsewhere.
START_TEST(streams)
{
    int64_t n = (INT64_C(1) << 23) + 77;
    struct nest_builder b = nest_builder_make(nest_check_arena, "stream");
    nest_id x = nest_buffer(&b, "x", JOT_F32, n, NEST_IN),
            y = nest_buffer(&b, "y", JOT_F32, n, NEST_OUT), i = nest_axis(&b, "i", n);
    nest_open(&b, NEST_PAR, 1, &i);
    struct nest_index at = form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)});
    nest_id v = nest_load(&b, x, at, NEST_NONE);
    nest_put(&b, y, at, nest_op(&b, IR_add, JOT_F32, 2, (nest_id[]){v, v}, NULL), NEST_NONE);
    nest_close(&b, 0, NULL);
    struct rt_program *program;
    ck_assert_int_eq(run_native_load(nest_check_arena,
                                     run_native_wrap(nest_check_arena, b.nest), NULL, &program),
                     JOT_OK);
    size_t bytes = (size_t)n * sizeof(float);
    float *from = malloc(bytes), *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    for (int64_t k = 0; k < n; k++)
        from[k] = (float)(nest_check_random() >> 40);
    for (int offset = 0; offset < 2; offset++) {
        float *to = memory + offset;
        memset(memory, 0xff, bytes + 4);
        const void *inputs[] = {from};
        void *outputs[] = {to};
        ck_assert_int_eq(run_native_call(program, inputs, outputs), JOT_OK);
        bool is_same = true;
        for (int64_t k = 0; k < n; k++)
            is_same &= to[k] == 2 * from[k];
        ck_assert(is_same);
    }
    free(from);
    free(memory);
    rt_program_release(program);
}
END_TEST

START_TEST(scans)
{
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_I16, JOT_C64};
    jot_dtype d = dtypes[_i % 4];
    int64_t n = _i < 4 ? 77 : 1;
    struct nest_builder b = nest_builder_make(nest_check_arena, "scan");
    nest_id x = nest_buffer(&b, "x", d, 40 * n, NEST_IN);
    nest_id y = nest_buffer(&b, "y", d, 40 * n, NEST_OUT);
    nest_id r = nest_axis(&b, "r", 40), c = nest_axis(&b, "c", n);
    nest_open(&b, NEST_PAR, 1, &r);
    nest_open(&b, NEST_SCAN, 1, &c);
    struct nest_index at = form(&b, 0, 2, (struct nest_term[]){AXIS(r, 1), AXIS(c, 40)});
    nest_id v = nest_load(&b, x, at, NEST_NONE);
    struct nest_combine sum = {.op = IR_reduce_sum, .n = 1, .dtype = d, .value = {v}};
    sum.order = nest_is_free(IR_reduce_sum, d) ? NEST_FREE : NEST_SERIAL;
    nest_id running = nest_yield(&b, 1, &sum);
    nest_put(&b, y, at, running, NEST_NONE);
    nest_close(&b, 0, NULL);
    nest_close(&b, 0, NULL);
    nest_check(b.nest);
    nest_check_end();
}
END_TEST

// Rows whose lanes differ only where the index equals a number of the row: narrow types that wrap,
// a falling index, and (pattern 3) a number that itself depends on the lane.
START_TEST(one_hot)
{
    enum { ROWS = 30, N = 333 };
    static const jot_dtype counts[] = {JOT_I32, JOT_U8, JOT_I64, JOT_I32};
    jot_dtype d = counts[_i];
    struct nest_builder b = nest_builder_make(nest_check_arena, "one_hot");
    nest_id which = nest_buffer(&b, "which", d, ROWS, NEST_IN);
    nest_id x = nest_buffer(&b, "x", JOT_F32, ROWS, NEST_IN);
    nest_id y = nest_buffer(&b, "y", JOT_F32, ROWS * N, NEST_OUT);
    nest_id r = nest_axis(&b, "r", ROWS), c = nest_axis(&b, "c", N);
    nest_open(&b, NEST_PAR, 2, (nest_id[]){r, c});
    struct nest_index row = form(&b, 0, 1, (struct nest_term[]){AXIS(r, 1)});
    nest_id v = nest_load(&b, x, row, NEST_NONE), w = nest_load(&b, which, row, NEST_NONE);
    nest_id rising = nest_index_value(&b, form(&b, 0, 1, (struct nest_term[]){AXIS(c, 1)}), d);
    nest_id falling =
        nest_index_value(&b, form(&b, N - 1, 1, (struct nest_term[]){AXIS(c, -1)}), d);
    nest_id diagonal =
        nest_index_value(&b, form(&b, 60, 1, (struct nest_term[]){AXIS(r, 1)}), d);
    nest_id p = nest_op(&b, IR_eq, JOT_BOOL, 2, (nest_id[]){rising, diagonal}, NULL);
    nest_id other = w;
    if (_i == 3)
        other = nest_op(&b, IR_select, d, 3, (nest_id[]){p, w, diagonal}, NULL);
    nest_id q = nest_op(&b, IR_eq, JOT_BOOL, 2, (nest_id[]){other, falling}, NULL);
    nest_id f = nest_op(&b, IR_convert, JOT_F32, 1, &p, NULL);
    nest_id g = nest_op(&b, IR_select, JOT_F32, 3, (nest_id[]){q, f, v}, NULL);
    nest_id h = nest_op(&b, IR_add, JOT_F32, 2, (nest_id[]){g, f}, NULL);
    nest_put(&b, y, form(&b, 0, 2, (struct nest_term[]){AXIS(r, N), AXIS(c, 1)}), h, NEST_NONE);
    nest_close(&b, 0, NULL);
    nest_check(b.nest);
    nest_check_end();
}
END_TEST

// Comparisons of indices with numbers near both ends of their loops: what lies between is code of its
// own, whose loads have no guards.
START_TEST(borders)
{
    static const enum ir_op ops[] = {IR_lt, IR_le, IR_gt, IR_ge, IR_eq, IR_ne};
    static const int64_t edges[] = {0, 1, 2, 15, 16, 40};
    enum { ROWS = 70, N = 203 };
    if (!sample_takes((uint64_t)(_i / 6 + _i % 6), 1))
        return;
    enum ir_op op = ops[_i % 6];
    int64_t edge = edges[_i / 6];
    struct nest_builder b = nest_builder_make(nest_check_arena, "borders");
    nest_id x = nest_buffer(&b, "x", JOT_F32, ROWS * N, NEST_IN);
    for (int kind = 0; kind < 3; kind++) {
        nest_id y = nest_buffer(&b, "y", JOT_F32, ROWS * N, NEST_OUT);
        nest_id r = nest_axis(&b, "r", ROWS), c = nest_axis(&b, "c", N);
        nest_open(&b, NEST_PAR, 2, (nest_id[]){r, c});
        struct nest_index at = form(&b, 0, 2, (struct nest_term[]){AXIS(r, N), AXIS(c, 1)});
        struct nest_index places[] = {form(&b, 3, 1, (struct nest_term[]){AXIS(c, 1)}),
                                      form(&b, N - 1, 1, (struct nest_term[]){AXIS(c, -1)}),
                                      form(&b, 0, 1, (struct nest_term[]){AXIS(r, 1)})};
        int64_t low = edge, high = (kind == 2 ? ROWS : N) - edge;
        nest_id place = nest_index_value(&b, places[kind], JOT_I64);
        nest_id p = nest_op(&b, op, JOT_BOOL, 2,
                            (nest_id[]){place, nest_const(&b, JOT_I64, &low)}, NULL);
        nest_id q = nest_op(&b, op, JOT_BOOL, 2,
                            (nest_id[]){place, nest_const(&b, JOT_I64, &high)}, NULL);
        nest_id v = nest_load(&b, x, at, p), w = nest_load(&b, x, at, q);
        nest_id either = nest_op(&b, IR_or, JOT_BOOL, 2, (nest_id[]){p, q}, NULL);
        nest_id sum = nest_op(&b, IR_sub, JOT_F32, 2, (nest_id[]){v, w}, NULL);
        nest_put(&b, y, at,
                 nest_op(&b, IR_select, JOT_F32, 3, (nest_id[]){either, sum, v}, NULL),
                 NEST_NONE);
        nest_close(&b, 0, NULL);
    }
    nest_check(b.nest);
    nest_check_end();
}
END_TEST

// Loads of which some are shuffles of what others read: neighbours along the rows, behind guards
// and before a row's end, or with what is around them in memory.
START_TEST(neighbours)
{
    static const char text[] = "kernel neighbours(x: %d[%P], y: out %d[%P], z: out %d[192]) {"
                               "  %0 = const 0x0000000000000001 : i64"
                               "  %1 = const 0xffffffffffffffff : i64"
                               "  %2 = const 0x0000000000000007 : i64"
                               "  par i < %T, j < %B {"
                               "    %3 = index j : i64"
                               "    %4 = ge %3, %0 : bool"
                               "    %5 = ge %3, %2 : bool"
                               "    %6 = index j - %B : i64"
                               "    %7 = lt %6, %1 : bool"
                               "    %8 = load x[%B*i + j] : %d"
                               "    %9 = load x[%B*i + j - 1] if %4 : %d"
                               "    %10 = load x[%B*i + j + 1] if %7 : %d"
                               "    %11 = load x[%B*i + j - 7] if %5 : %d"
                               "    %12 = sub %8, %9 : %d"
                               "    %13 = sub %10, %11 : %d"
                               "    %14 = sub %12, %13 : %d"
                               "    put y[%B*i + j] = %14"
                               "  }"
                               "  par k < %T, l < 64 {"
                               "    %15 = load x[%B*k + l + 16] : %d"
                               "    %16 = load x[%B*k + l + 13] : %d"
                               "    %17 = load x[%B*k + l + 20] : %d"
                               "    %18 = load x[%B*k + l] : %d"
                               "    %19 = load x[%B*k + l + 2] : %d"
                               "    %20 = sub %15, %16 : %d"
                               "    %21 = sub %17, %18 : %d"
                               "    %22 = sub %20, %21 : %d"
                               "    %23 = sub %22, %19 : %d"
                               "    put z[64*k + l] = %23"
                               "  }"
                               "}";
    static const int64_t columns[] = {90, 100, 203, 256};
    static const char *const dtypes[] = {"f32", "f64", "i32"};
    nest_check_text(nest_check_instance(text, columns[_i % 4], 3, dtypes[_i / 4]));
    nest_check_end();
}
END_TEST

int main(void)
{
    nest_check_any = true;
    Suite *s = suite_create("codegen");
    TCase *points = tcase_create("networks");
    tcase_add_checked_fixture(points, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(points, 100);
    tcase_add_loop_test(points, networks, 0, 2);
    suite_add_tcase(s, points);
    TCase *grids = tcase_create("grids");
    tcase_add_checked_fixture(grids, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(grids, 300);
    tcase_add_loop_test(grids, dear_folds, 0, 2);
    tcase_add_loop_test(grids, squares, 0, 3);
    tcase_add_test(grids, large_maps);
    tcase_add_loop_test(grids, local_rows, 0, 3);
    suite_add_tcase(s, grids);
    TCase *c = tcase_create("bits");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, nest_check_setup, nest_check_teardown);
    tcase_add_loop_test(c, folds, 0, COMBINERS * DTYPE_COUNT);
    tcase_add_loop_test(c, accumulations, 0, 5);
    tcase_add_loop_test(c, numbers_of_rows, 0, 8);
    tcase_add_loop_test(c, large_fold, 0, 6);
    tcase_add_loop_test(c, access, 0, DTYPE_COUNT);
    tcase_add_loop_test(c, ops_of_large_kernels, 0, DTYPE_COUNT);
    tcase_add_test(c, equal_ops_are_one_function);
    tcase_add_loop_test(c, locals, 0, 2);
    tcase_add_loop_test(c, divisions, 0, 2);
    tcase_add_test(c, streams);
    tcase_add_loop_test(c, scans, 0, 8);
    tcase_add_loop_test(c, one_hot, 0, 4);
    tcase_add_loop_test(c, borders, 0, 36);
    tcase_add_loop_test(c, neighbours, 0, 12);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
