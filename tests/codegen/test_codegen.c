// SPDX-License-Identifier: Apache-2.0
// Machine code against the interpreter of nests, bit for bit: ways to read, write and keep elements, in every mapping
// to vector lanes.
#include "nest_check.h"

#include "codegen/kernel.h"
#include "codegen/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                "  local e: %s[%d]\n  local p: %s[%d]\n  par i < 3 {\n"
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
// As many loops of points as one kernel has functions.
START_TEST(loops_of_points)
{
    nest_check_text("kernel four(x: f32[100000], a: out f32[100000], b: out f32[100000], "
                    "c: out f32[100000], d: out f32[100000]) {\n"
                    "  par i < 100000 {\n    %0 = load x[i] : f32\n    %1 = exp %0 : f32\n    "
                    "put a[i] = %1\n  }\n"
                    "  par j < 100000 {\n    %2 = load x[j] : f32\n    %3 = sin %2 : f32\n    "
                    "put b[j] = %3\n  }\n"
                    "  par k < 100000 {\n    %4 = load x[k] : f32\n    %5 = cos %4 : f32\n    "
                    "put c[k] = %5\n  }\n"
                    "  par l < 100000 {\n    %6 = load x[l] : f32\n    %7 = tanh %6 : f32\n    "
                    "put d[l] = %7\n  }\n"
                    "}\n");
    nest_check_end();
}
END_TEST

// A loop with nothing in it.
START_TEST(empty_bodies)
{
    nest_check_text(
        "kernel empty(x: f32[100], y: out f32[100], z: out f32[0]) {\n  par i < 100 {\n"
        "    %0 = load x[i] : f32\n    put y[i] = %0\n    map j < 0 {\n    }\n  }\n"
        "  map k < 0 {\n  }\n}\n");
    nest_check_end();
}
END_TEST

START_TEST(access)
{
    jot_dtype d = (jot_dtype)_i;
    int64_t n = 150;
    for (int pattern = 0; pattern < 8; pattern++) {
        struct nest_builder b = nest_builder_make(nest_check_arena, "access");
        nest_id x = nest_buffer(&b, "x", d, 4 * n, NEST_IN);
        nest_id which = nest_buffer(&b, "which", JOT_U8, n, NEST_IN);
        nest_id y = nest_buffer(&b, "y", d, 2 * n, NEST_OUT);
        nest_id z = nest_buffer(&b, "z", d, n, NEST_OUT);
        nest_id t = nest_buffer(&b, "t", d, 3 * n, NEST_OUT);
        nest_id i = nest_axis(&b, "i", n);
        nest_open(&b, NEST_PAR, 1, &i);
        struct nest_index from[] = {
            form(&b, n - 1, 1, (struct nest_term[]){AXIS(i, -1)}),
            form(&b, 1, 1, (struct nest_term[]){AXIS(i, 3)}),
            form(&b, 7, 0, NULL),
            form(&b, 0, 1, (struct nest_term[]){AXIS(i, 1)}),
            form(&b, 0, 1, (struct nest_term[]){AXIS(i, 2)}),
            form(&b, 2, 1, (struct nest_term[]){AXIS(i, 3)}),
            form(&b, 0, 1, (struct nest_term[]){AXIS(i, 3)}),
            form(&b, 3, 1, (struct nest_term[]){AXIS(i, 4)}),
        };
        nest_id guard = NEST_NONE;
        struct nest_index at = from[pattern];
        if (pattern == 3 || pattern >= 6) { // where i is below 100
            nest_id index = nest_index_value(&b, from[3], JOT_I32);
            nest_id limit = nest_const(&b, JOT_I32, &(int32_t){100});
            guard = nest_op(&b, IR_lt, JOT_BOOL, 2, (nest_id[]){index, limit}, NULL);
        }
        if (pattern == 3) { // x[which[i]]
            nest_id w = nest_load(&b, which, from[3], NEST_NONE);
            at = form(&b, 0, 1, (struct nest_term[]){{.factor = 1, .id = w, .is_value = true}});
        }
        nest_id v = nest_load(&b, x, at, guard);
        nest_put(&b, z, from[3], v, NEST_NONE);
        for (int k = 0; k < 3; k++)
            nest_put(&b, t, form(&b, k, 1, (struct nest_term[]){AXIS(i, 3)}), v, NEST_NONE);
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
        struct nest_index forms[] = {form(&b, 3, 1, (struct nest_term[]){AXIS(c, 1)}),
                                     form(&b, N - 1, 1, (struct nest_term[]){AXIS(c, -1)}),
                                     form(&b, 0, 1, (struct nest_term[]){AXIS(r, 1)})};
        int64_t low = edge, high = (kind == 2 ? ROWS : N) - edge;
        nest_id index = nest_index_value(&b, forms[kind], JOT_I64);
        nest_id p = nest_op(&b, op, JOT_BOOL, 2,
                            (nest_id[]){index, nest_const(&b, JOT_I64, &low)}, NULL);
        nest_id q = nest_op(&b, op, JOT_BOOL, 2,
                            (nest_id[]){index, nest_const(&b, JOT_I64, &high)}, NULL);
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

// Short rows and what stands beside them, within borders: of a vector of several registers the mask of a load never
// has some.
START_TEST(masks_of_few_registers)
{
    static const int widths[] = {6, 9, 12, 16, 18, 20, 28}, edges[] = {3, 4, 6, 8, 12};
    int w = widths[_i];
    for (int k = 0; k < (int)(sizeof edges / sizeof *edges) * 4; k++) {
        static char text[1 << 12];
        bool is_wide = k & 1;
        const char *type = is_wide ? "f64" : "f32";
        int edge = edges[k / 4], n = 26 * w;
        if (edge >= w)
            continue;
        int at = snprintf(text, sizeof text,
                          "kernel shifted%d(x: %s[%d], y: out %s[%d]) {\n"
                          "  %%0 = const 0x%0*x : %s\n"
                          "  %%1 = const 0x0000000000000018 : i64\n"
                          "  %%2 = const 0x%016x : i64\n"
                          "  %%3 = const 0x0000000000000002 : i64\n"
                          "  par i < 26, j < %d {\n"
                          "    %%4 = index i : i64\n"
                          "    %%5 = ge %%4, %%3 : bool\n"
                          "    %%6 = load x[%d*i + j - %d] if %%5 : %s\n"
                          "    %%7 = select %%5, %%6, %%0 : %s\n",
                          k, type, n, type, n, is_wide ? 16 : 8, 0u, type, (unsigned)edge, w, w,
                          2 * w, type, type);
        snprintf(text + at, sizeof text - (size_t)at,
                 "    %%8 = lt %%4, %%1 : bool\n"
                 "    %%9 = index j : i64\n"
                 "    %%10 = %s %%9, %%2 : bool\n"
                 "    %%11 = and %%8, %%10 : bool\n"
                 "    %%12 = load x[%d*i + j + 2] if %%11 : %s\n"
                 "    %%13 = select %%11, %%12, %%0 : %s\n"
                 "    %%14 = add %%7, %%13 : %s\n"
                 "    put y[%d*i + j] = %%14\n"
                 "  }\n"
                 "}\n",
                 k & 2 ? "ge" : "lt", w, type, type, type, w);
        nest_check_text(text);
    }
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

// Loops with axes that are short beside what a vector or a chunk has.
static const struct {
    const char *what, *text;
    int64_t least; // chunks
} shares[] = {
    {"few rows that are long",
     "kernel k(x: f32[524288], y: out f32[524288]) {\n  local row: f32[8192]\n"
     "  par i < 64 {\n    fold j < 8192 {\n      %0 = load x[8192*i + j] : f32\n"
     "      %1 = exp %0 : f32\n      put row[j] = %1\n      yield reduce_sum %1 sum64\n"
     "    } -> %2 : f32\n    map k < 8192 {\n      %3 = load row[k] : f32\n"
     "      %4 = div %3, %2 : f32\n      put y[8192*i + k] = %4\n    }\n  }\n}\n",
     8},
    {"pixels of few rows and columns, whose channels are one vector",
     "kernel k(x: i32[25088], w: i32[64], y: out i32[25088]) {\n"
     "  par i < 8, j < 14, k < 14, l < 16 {\n    fold m < 64 {\n"
     "      %0 = load x[3136*i + 224*j + 16*k] : i32\n      %1 = load w[m] : i32\n"
     "      yield fma %0 %1 free\n    } -> %2 : i32\n    put y[3136*i + 224*j + 16*k + l] = "
     "%2\n"
     "  }\n}\n",
     8},
    {"a transpose goes by tiles",
     "kernel k(x: f32[1048576], y: out f32[1048576]) {\n  par i < 1024, j < 1024 {\n"
     "    %0 = load x[1024*j + i] : f32\n    put y[1024*i + j] = %0\n  }\n}\n",
     8},
    {"little work is not shared",
     "kernel k(x: f32[512], y: out f32[64]) {\n  par i < 64 {\n    fold j < 8 {\n"
     "      %0 = load x[8*i + j] : f32\n      yield reduce_max %0 free\n    } -> %1 : f32\n"
     "    put y[i] = %1\n  }\n}\n",
     1},
};

START_TEST(threads_share_loops)
{
    struct cg_target *target;
    struct cg_module m;
    struct cg_kernel kernel = {0};
    struct nest **nests;
    int count;
    ck_assert_int_eq(nest_parse(nest_check_arena, shares[_i].text, &count, &nests), JOT_OK);
    ck_assert_int_eq(cg_target_find(NULL, &target), JOT_OK);
    ck_assert_int_eq(cg_module_make(target, nest_check_arena, &m), JOT_OK);
    ck_assert_int_eq(cg_kernel_lower(&m, nest_check_arena, nests[0], 0, &kernel), JOT_OK);
    const struct cg_kernel_step *step = &kernel.steps[0];
    int64_t chunks = (step->total + step->grain - 1) / step->grain;
    ck_assert_msg(chunks >= shares[_i].least, "%s: %" PRId64 " chunks", shares[_i].what,
                  chunks);
    ck_assert_int_eq(step->parallel, shares[_i].least > 1);
    cg_module_finish(&m);
}
END_TEST

// In a loop two, four or eight threads have as many chunks each, and none where there is little work.
START_TEST(threads_share_steps_evenly)
{
    struct cg_target *target;
    ck_assert_int_eq(cg_target_find(NULL, &target), JOT_OK);
    int shared = 0;
    for (int64_t columns = 16; columns <= 1024; columns += 16) {
        struct cg_module m;
        struct cg_kernel kernel = {0};
        struct nest **nests;
        int count;
        char text[512];
        snprintf(text, sizeof text,
                 "kernel k(x: f32[262144], y: out f32[262144]) {\n  par i < 256, j < %d {\n"
                 "    %%0 = load x[1024*i + j] : f32\n    %%1 = exp %%0 : f32\n"
                 "    put y[1024*i + j] = %%1\n  }\n}\n",
                 (int)columns);
        ck_assert_int_eq(nest_parse(nest_check_arena, text, &count, &nests), JOT_OK);
        ck_assert_int_eq(cg_module_make(target, nest_check_arena, &m), JOT_OK);
        ck_assert_int_eq(cg_kernel_lower(&m, nest_check_arena, nests[0], 0, &kernel), JOT_OK);
        const struct cg_kernel_step *step = &kernel.steps[0];
        int64_t chunks = (step->total + step->phase_grain - 1) / step->phase_grain;
        ck_assert_msg((chunks & (chunks - 1)) == 0, "%" PRId64 " columns: %" PRId64 " chunks",
                      columns, chunks);
        shared += chunks > 1;
        cg_module_finish(&m);
    }
    ck_assert_int_gt(shared, 48);
    ck_assert_int_lt(shared, 64);
}
END_TEST

int main(void)
{
    nest_check_any = true;
    Suite *s = suite_create("codegen");
    TCase *grids = tcase_create("grids");
    tcase_add_checked_fixture(grids, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(grids, 300);
    tcase_add_loop_test(grids, squares, 0, 3);
    tcase_add_test(grids, large_maps);
    tcase_add_loop_test(grids, local_rows, 0, 3);
    suite_add_tcase(s, grids);
    TCase *bits = tcase_create("bits");
    tcase_add_checked_fixture(bits, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(bits, 300);
    tcase_add_loop_test(bits, access, 0, DTYPE_COUNT);
    tcase_add_test(bits, empty_bodies);
    tcase_add_test(bits, loops_of_points);
    tcase_add_loop_test(bits, locals, 0, 2);
    tcase_add_loop_test(bits, divisions, 0, 2);
    tcase_add_test(bits, streams);
    tcase_add_loop_test(bits, scans, 0, 8);
    tcase_add_loop_test(bits, one_hot, 0, 4);
    tcase_add_loop_test(bits, borders, 0, 36);
    tcase_add_loop_test(bits, masks_of_few_registers, 0, 7);
    tcase_add_loop_test(bits, neighbours, 0, 12);
    tcase_add_loop_test(bits, threads_share_loops, 0, (int)(sizeof shares / sizeof *shares));
    tcase_add_test(bits, threads_share_steps_evenly);
    suite_add_tcase(s, bits);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
