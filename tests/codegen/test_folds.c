// SPDX-License-Identifier: Apache-2.0
// Machine code of folds against the interpreter of nests, bit for bit: every combiner, dtype and awkward length,
// in every mapping to vector lanes.
#include "codegen/codegen.h"
#include "nest_check.h"

#include <stdio.h>
#include <string.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

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

// Many folds of one sequence, more than registers have accumulators for: some of operands of their own, some of
// operands that others have as well.
static void check_many_folds(jot_dtype d, int64_t n, int count)
{
    static const enum ir_op ops[] = {IR_reduce_sum, IR_reduce_max, IR_fma, IR_argmax,
                                     IR_reduce_prod};
    struct nest_builder b = nest_builder_make(nest_check_arena, "many");
    nest_id x = nest_buffer(&b, "x", d, n * count, NEST_IN), i = nest_axis(&b, "i", n);
    struct nest_combine *all =
        arena_array(nest_check_arena, struct nest_combine, (size_t)count);
    nest_open(&b, NEST_FOLD, 1, &i);
    nest_id before = NEST_NONE;
    for (int k = 0; k < count; k++) {
        enum ir_op op = ops[nest_check_random() % (sizeof ops / sizeof *ops)];
        bool is_shared = before != NEST_NONE && nest_check_random() % 3 == 0;
        struct nest_index from = form(&b, n * k, 1, (struct nest_term[]){AXIS(i, 1)});
        nest_id v = is_shared ? before : nest_load(&b, x, from, NEST_NONE);
        if (nest_check_random() % 4 == 0) {
            nest_id index =
                nest_index_value(&b, form(&b, k, 1, (struct nest_term[]){AXIS(i, 1)}), JOT_I32);
            nest_id number = nest_op(&b, IR_convert, d, 1, &index, NULL);
            v = nest_op(&b, IR_mul, d, 2, (nest_id[]){v, number}, NULL);
        }
        before = v;
        all[k] =
            (struct nest_combine){.op = (uint16_t)op,
                                  .n = op == IR_fma ? 2 : 1,
                                  .dtype = result_dtype(op, d),
                                  .order = nest_fold_order((uint16_t)op, result_dtype(op, d)),
                                  .value = {v, v}};
    }
    nest_id result = nest_close(&b, count, all);
    for (int k = 0; k < count; k++) {
        nest_id y = nest_buffer(&b, "y", all[k].dtype, 1, NEST_OUT);
        nest_put(&b, y, form(&b, 0, 0, NULL), result, NEST_NONE);
        result += nest_combine_results(all[k].op);
    }
    nest_check(b.nest);
}

START_TEST(many_folds)
{
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_I32, JOT_BF16};
    static const int64_t lengths[] = {1, 30, 63, 64, 65, 100, 512, 1000, 5000, 40000};
    nest_check_vary(_i);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (sample_takes(i + (size_t)_i, 1))
            check_many_folds(dtypes[_i], lengths[i], 2 + (int)(nest_check_random() % 9));
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
    nest_id index = nest_op(&b, IR_convert, d, 1, &number, NULL);
    nest_open(&b, NEST_FOLD, 1, &j);
    nest_id u = nest_load(
        &b, x, form(&b, 0, 2, (struct nest_term[]){AXIS(i, columns), AXIS(j, 1)}), NEST_NONE);
    struct nest_combine sum = {.op = IR_reduce_sum,
                               .n = 1,
                               .dtype = d,
                               .order = nest_fold_order(IR_reduce_sum, d),
                               .value = {u}};
    nest_id s = nest_close(&b, 1, &sum);
    nest_id is_low = nest_op(&b, IR_lt, JOT_BOOL, 2, (nest_id[]){s, index}, NULL);
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
    "  local a: %s[%d]\n  local z: %s[%d]\n  local h: %s[%d]\n"
    "  local u: %s[%d]\n"
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
    "  local a: %s[%d]\n  local z: %s[%d]\n"
    "  par n < %d {\n"
    "    map k < %d {\n      %%0 = load x[%d*n + k] : %s\n      put a[k] = %%0\n    }\n"
    "    %s\n"
    "    fold i < %d {\n      %%1 = load x[%d*n + i] : %s\n      %%2 = load z[i] : %s\n"
    "      %%3 = mul %%1, %%2 : %s\n      yield reduce_sum %%3 sum64\n    } -> %%4 : %s\n"
    "    map i2 < %d {\n      %%5 = load z[i2] : %s\n      %%6 = mul %%4, %%5 : %s\n"
    "      %%10 = load x[%d*n + i2] : %s\n      %%11 = add %%6, %%10 : %s\n"
    "      put y[%d*n + i2] = %%11\n    }\n  }\n}\n";

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
                 d, i ? map : product, k, k, d, d, d, d, k, d, d, k, d, d, k);
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
    if (sample_takes((uint64_t)_i, 1))
        check_row_sums(_i ? "f64" : "f32", 4099, 64);
    check_row_sums(_i ? "f64" : "f32", 300, 7);
    nest_check_end();
}
END_TEST

// Sums of a point that lie far apart in memory, by the steps of their axes: those of k, m and both.
START_TEST(sums_far_apart)
{
    static const char *const indices[] = {"i + 37*k", "i - 37*k + 148", "i + 37*k + 185*m",
                                          "i + 37*m + 185*k"};
    static const int lengths[] = {1, 19, 70, 5000};
    const char *dtype = _i ? "f64" : "f32";
    for (int n = 0; n < 4; n++)
        for (int at = 0; at < 4; at++) {
            char text[1000];
            if (!sample_takes((uint64_t)(n + at + _i), 1))
                continue;
            snprintf(
                text, sizeof text,
                "kernel far(x: %s[%d], y: out %s[%d]) {\n  par i < 37 {\n    fold j < %d {\n"
                "      %%0 = load x[i + 37*j] : %s\n      map k < 5, m < %d {\n"
                "        %%1 = load x[i + 2*k + m] : %s\n        put y[%s] fma= %%0, %%1 in @j "
                "sum64\n      }\n    }\n  }\n}\n",
                dtype, 37 * lengths[n] + 12, dtype, at < 2 ? 185 : 925, lengths[n], dtype,
                at < 2 ? 1 : 5, dtype, indices[at]);
            nest_check_text(text);
        }
    nest_check_end();
}
END_TEST

// Short rows, a lane to a point, as many lanes as a choice can make of the narrowest elements.
START_TEST(rows_of_many_lanes)
{
    static const char *const choices[] = {"", "more_lanes ", "fewer_lanes "};
    static const int points[] = {100, 128, 300};
    for (int n = 0; n < 3; n++) {
        char text[1000];
        snprintf(
            text, sizeof text,
            "kernel rows(x: bf16[%d], y: out bool[%d]) %s{\n  %%0 = const 0x3f80 : bf16\n"
            "  par i < %d {\n    fold k < 12 {\n      %%1 = load x[12*i + k] : bf16\n"
            "      %%2 = convert %%1 : f32\n      yield reduce_max %%2 free\n    } -> %%3 : "
            "f32\n    %%4 = convert %%3 : bf16\n    %%5 = lt %%4, %%0 : bool\n"
            "    put y[i] = %%5\n  }\n}\n",
            12 * points[n], points[n], choices[_i], points[n]);
        nest_check_text(text);
    }
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

// Rows that read one matrix together, as it lies and turned.
START_TEST(products_of_few_rows)
{
    static const char *const dtypes[] = {"f32", "f64", "i32", "c64", "bf16"};
    const char *d = dtypes[_i], *sum = _i == 4 ? "f32" : d;
    const char *order = _i == 2 ? "free" : "sum64";
    static const int lengths[] = {40, 64, 300, 600};
    static const int counts[] = {2, 3, 4, 5, 6, 7, 8, 9, 11, 17, 31};
    for (int at = 0; at < 11; at++)
        for (int turned = 0; turned < 2; turned++) {
            int rows = counts[at];
            int k = lengths[(at + turned + _i) % 4];
            struct strbuf s = strbuf_make(nest_check_arena);
            if (!sample_takes((size_t)(2 * at + turned + _i), 3))
                continue;
            strbuf_printf(&s,
                          "kernel rows(x: %s[%d], w: %s[%d], c: f32[80], y: out %s[%d], "
                          "z: out %s[%d], m: out f32[%d]) {\n",
                          d, k * rows, d, 80 * k, sum, 80 * rows, d, 80 * rows, 80 * rows);
            strbuf_printf(
                &s,
                "  par i < %d, j < 80 {\n    fold k < %d {\n"
                "      %%0 = load x[%d*i + k] : %s\n      %%1 = load w[%d*j + %d*k] : %s\n",
                rows, k, k, d, turned ? k : 1, turned ? 1 : 80, d);
            strbuf_printf(&s,
                          "      %%2 = sub %%0, %%1 : %s\n      %%3 = load c[j] : f32\n"
                          "      yield fma %%0 %%1 %s, reduce_sum %%2 %s, reduce_max %%3 free\n"
                          "    } -> %%4 : %s, %%5 : %s, %%6 : f32\n    put y[80*i + j] = %%4\n",
                          d, order, order, sum, sum);
            if (_i == 4)
                strbuf_printf(&s, "    %%7 = convert %%5 : bf16\n");
            strbuf_printf(&s, "    put z[80*i + j] = %%%d\n    put m[80*i + j] = %%6\n  }\n}\n",
                          _i == 4 ? 7 : 5);
            nest_check_text(s.text);
        }
    nest_check_end();
}
END_TEST

// Rows that go side by side with what is theirs: maxima, locals, maps.
START_TEST(products_of_rows_with_locals)
{
    static const int counts[] = {2, 5, 11, 18, 31};
    struct strbuf s = strbuf_make(nest_check_arena);
    int n = counts[_i];
    strbuf_printf(
        &s,
        "kernel rows(x: f32[%d], w: f32[24000], y: out f32[%d], z: out f32[%d]) {\n"
        "  local row: f32[300]\n  local twice: f32[300]\n"
        "  par i < %d {\n    fold k < 300 {\n      %%0 = load x[300*i + k] : f32\n"
        "      put row[k] = %%0\n      yield reduce_max %%0 free\n    } -> %%1 : f32\n",
        300 * n, 80 * n, n, n);
    strbuf_printf(&s,
                  "    map k < 300 {\n      %%2 = load row[k] : f32\n"
                  "      %%3 = mul %%2, %%1 : f32\n      put twice[k] = %%3\n    }\n"
                  "    map j < 80 {\n      fold k < 300 {\n        %%4 = load twice[k] : f32\n"
                  "        %%5 = load w[j + 80*k] : f32\n        yield fma %%4 %%5 sum64\n"
                  "      } -> %%6 : f32\n      put y[80*i + j] = %%6\n    }\n"
                  "    put z[i] = %%1\n  }\n}\n");
    nest_check_text(s.text);
    nest_check_end();
}
END_TEST

// y accumulates over i: rows, columns, from the end.
static const struct {
    int j, k;
    const char *index;
} accumulated[] = {
    {10, 10, "10*j + k"}, {7, 33, "j + 7*k"}, {3, 20, "20*j - k + 19"}, {5, 70, "70*j + k"}};
#define ACCUMULATED ((int)(sizeof accumulated / sizeof *accumulated))

static const char *accumulated_text(int which, int terms)
{
    int j = accumulated[which].j, k = accumulated[which].k;
    struct strbuf s = strbuf_make(nest_check_arena);
    strbuf_printf(&s,
                  "kernel rows(x: f32[%d], w: f32[%d], y: out f32[%d]) {\n"
                  "  fold i < %d {\n    map j < %d, k < %d {\n"
                  "      %%0 = load x[%d*i + j] : f32\n      %%1 = load w[%d*i + k] : f32\n"
                  "      put y[%s] fma= %%0, %%1 in @i sum64\n    }\n  }\n}\n",
                  terms * j, terms * k, j * k, terms, j, k, j, k, accumulated[which].index);
    return s.text;
}

START_TEST(accumulated_rows)
{
    static const int terms[] = {2, 70, 700, 40000};
    for (int i = 0; i < 4; i++)
        nest_check_text(accumulated_text(_i, terms[i]));
    nest_check_end();
}
END_TEST

// Where a row is no whole number of vectors the next one begins behind a whole one all the same: a vector that is read
// before the cache has what was put into a part of it waits.
START_TEST(rows_begin_on_vectors)
{
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_printf(&text,
                  "jot nest 1\nprogram \"rows\" {\n  inputs 2\n  outputs 1 donated -1\n"
                  "  arena 0\n  constants 0\n  memory input 0 : f32[400000]\n"
                  "  memory input 1 : f32[400000]\n  memory output 0 : f32[100]\n"
                  "  step kernel 0 (0, 1, 2)\n}\n%s",
                  accumulated_text(0, 40000));
    struct cg_request request = {.want = CG_WANT_LLVM, .program = text.text};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    ck_assert_msg(strstr(r.llvm, "i64 10, i64 160)"), "%s", r.llvm); // 10 blocks of 10 by 16
    r.release(&r);
}
END_TEST

int main(void)
{
    nest_check_any = true;
    Suite *s = suite_create("folds");
    TCase *points = tcase_create("networks");
    tcase_add_checked_fixture(points, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(points, 100);
    tcase_add_loop_test(points, networks, 0, 2);
    tcase_add_loop_test(points, sums_far_apart, 0, 2);
    tcase_add_loop_test(points, rows_of_many_lanes, 0, 3);
    suite_add_tcase(s, points);
    TCase *grids = tcase_create("grids");
    tcase_add_checked_fixture(grids, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(grids, 300);
    tcase_add_loop_test(grids, dear_folds, 0, 2);
    suite_add_tcase(s, grids);
    TCase *bits = tcase_create("bits");
    tcase_add_checked_fixture(bits, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(bits, 300);
    tcase_add_loop_test(bits, folds, 0, COMBINERS * DTYPE_COUNT);
    tcase_add_loop_test(bits, accumulations, 0, 5);
    tcase_add_loop_test(bits, many_folds, 0, 4);
    tcase_add_sampled_test(bits, accumulated_rows, 0, ACCUMULATED);
    tcase_add_test(bits, rows_begin_on_vectors);
    tcase_add_loop_test(bits, numbers_of_rows, 0, 8);
    tcase_add_loop_test(bits, large_fold, 0, 6);
    tcase_add_loop_test(bits, products_of_few_rows, 0, 5);
    tcase_add_sampled_test(bits, products_of_rows_with_locals, 0, 5);
    suite_add_tcase(s, bits);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
