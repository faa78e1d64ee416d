// SPDX-License-Identifier: Apache-2.0
// Ops of the evaluator that look at more than one element, against straightforward loops.
#include "eval_support.h"

START_TEST(test_broadcast)
{
    const float x[] = {1, 2, 3}, y[] = {10, 20}, s = 100;
    struct ir_tensor row = tensor(JOT_F32, DIMS(1, 3), x),
                     column = tensor(JOT_F32, DIMS(2, 1), y);
    const float sums[] = {11, 12, 13, 21, 22, 23};
    ck_assert_mem_eq(run2(IR_add, row, column).data, sums, sizeof sums);
    ck_assert_mem_eq(run2(IR_add, column, row).data, sums, sizeof sums);
    ck_assert_mem_eq(run2(IR_sub, point(JOT_F32, &s), column).data, ((float[]){90, 80}), 8);
    const uint8_t p[] = {1, 0};
    const float chosen[] = {1, 2, 3, 100, 100, 100};
    ck_assert_mem_eq(
        run(IR_select, NULL, 3,
            (struct ir_tensor[]){tensor(JOT_BOOL, DIMS(2, 1), p), row, point(JOT_F32, &s)})
            .data,
        chosen, sizeof chosen);
    const float low = 1.5f, high = 2.5f;
    ck_assert_mem_eq(run(IR_clamp, NULL, 3,
                         (struct ir_tensor[]){point(JOT_F32, &low), row, point(JOT_F32, &high)})
                         .data,
                     ((float[]){1.5f, 2, 2.5f}), 12);
    const float a = 1 + 0x1p-23f;
    ck_assert(*(float *)run(IR_fma, NULL, 3,
                            (struct ir_tensor[]){point(JOT_F32, &a), point(JOT_F32, &a),
                                                 point(JOT_F32, &(float){-1})})
                   .data == 0x1p-22f + 0x1p-46f);
    // No elements at all.
    ck_assert_int_eq(
        ir_count(module, run2(IR_add, tensor(JOT_F32, DIMS(0, 1), NULL), row).type), 0);
}
END_TEST

START_TEST(test_layout)
{
    int32_t x[24];
    for (int i = 0; i < 24; i++)
        x[i] = i;
    struct ir_tensor t = tensor(JOT_I32, DIMS(2, 3, 4), x);
    const int32_t *r =
        run1(IR_transpose, ir_attrs(module, IR_INTS(axes, 3, ((int64_t[]){2, 0, 1}))), t).data;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 3; k++)
                ck_assert_int_eq(r[(i * 2 + j) * 3 + k], x[(j * 3 + k) * 4 + i]);
    r = run1(IR_rev, ir_attrs(module, IR_INTS(axes, 2, ((int64_t[]){0, 2}))), t).data;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                ck_assert_int_eq(r[(i * 3 + j) * 4 + k], x[((1 - i) * 3 + j) * 4 + 3 - k]);
    r = run1(IR_slice,
             ir_attrs(module, IR_INTS(starts, 3, ((int64_t[]){1, 0, 1})),
                      IR_INTS(limits, 3, ((int64_t[]){2, 3, 4})),
                      IR_INTS(strides, 3, ((int64_t[]){1, 2, 2}))),
             t)
            .data;
    ck_assert_mem_eq(r, ((int32_t[]){13, 15, 21, 23}), 16);
    r = run1(IR_broadcast_in_dim,
             ir_attrs(module, IR_INTS(dims, 3, ((int64_t[]){2, 2, 3})),
                      IR_INTS(axes, 2, ((int64_t[]){0, 2}))),
             tensor(JOT_I32, DIMS(2, 3), x))
            .data;
    ck_assert_mem_eq(r, ((int32_t[]){0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}), 48);
    r = run1(IR_reshape, ir_attrs(module, IR_INTS(dims, 2, ((int64_t[]){4, 6}))), t).data;
    ck_assert_mem_eq(r, x, sizeof x);
    r = run(IR_concatenate, ir_attrs(module, IR_INT(axis, 1)), 3,
            (struct ir_tensor[]){tensor(JOT_I32, DIMS(2, 1), x),
                                 tensor(JOT_I32, DIMS(2, 0), NULL),
                                 tensor(JOT_I32, DIMS(2, 2), x + 10)})
            .data;
    ck_assert_mem_eq(r, ((int32_t[]){0, 10, 11, 1, 12, 13}), 24);
    const int64_t one = 1, minus_one = -1;
    r = run(IR_pad,
            ir_attrs(module, IR_INTS(low, 1, &one), IR_INTS(high, 1, &minus_one),
                     IR_INTS(interior, 1, &one)),
            2, (struct ir_tensor[]){tensor(JOT_I32, DIMS(3), x + 1), point(JOT_I32, x + 9)})
            .data;
    ck_assert_mem_eq(r, ((int32_t[]){9, 1, 9, 2, 9}), 20);
    r = run1(IR_shear,
             ir_attrs(module, IR_INT(axis, 0), IR_INT(along, 1), IR_INT(offset, -1),
                      IR_INT(step, 2), IR_INT(length, 3)),
             tensor(JOT_I32, DIMS(4, 2), x + 8))
            .data;
    ck_assert_mem_eq(r, ((int32_t[]){0, 11, 8, 13, 10, 15}), 24);
    r = run1(IR_diagonal,
             ir_attrs(module, IR_INT(axis, 2), IR_INT(along, 1), IR_INT(offset, -1),
                      IR_INT(step, 2), IR_INT(length, 2)),
             t)
            .data;
    ck_assert_mem_eq(r, ((int32_t[]){1, 11, 13, 23}), 16);
}
END_TEST

// The indices of numbers of a vector.
static const struct ir_attrs *vector_indices(int mode)
{
    static const int64_t zero = 0, one = 1;
    return ir_attrs(module, IR_INTS(collapsed_dims, 1, &zero), IR_INTS(index_map, 1, &zero),
                    IR_INTS(sizes, 1, &one), IR_INT(mode, mode));
}

START_TEST(test_gather_modes)
{
    const int32_t x[] = {10, 11, 12, 13}, i[] = {1, -1, 4, 3, INT32_MIN};
    const uint64_t far[] = {2, UINT64_MAX};
    struct ir_tensor t = tensor(JOT_I32, DIMS(4), x), at = tensor(JOT_I32, DIMS(5, 1), i);
    const int32_t want[][5] = {{11, 10, 13, 13, 10},
                               {11, INT32_MIN, INT32_MIN, 13, INT32_MIN},
                               {11, 10, 13, 13, 10},
                               {11, 0, 0, 13, 0}};
    for (int mode = 0; mode < 4; mode++)
        ck_assert_mem_eq(
            run(IR_gather, vector_indices(mode), 2, (struct ir_tensor[]){t, at}).data,
            want[mode], sizeof want[mode]);
    const int32_t *r = run(IR_gather, vector_indices(0), 2,
                           (struct ir_tensor[]){t, tensor(JOT_U64, DIMS(2, 1), far)})
                           .data;
    ck_assert_mem_eq(r, ((int32_t[]){12, 13}), 8);
}
END_TEST

START_TEST(test_scatter_order)
{
    const int32_t x[] = {1, 2, 3, 4}, i[] = {2, 0, 2, 7, -1}, u[] = {10, 20, 30, 40, 50};
    const enum ir_op ops[] = {IR_scatter, IR_scatter_add, IR_scatter_mul, IR_scatter_min,
                              IR_scatter_max};
    const int32_t drop[][4] = {
        {20, 2, 30, 4}, {21, 2, 43, 4}, {20, 2, 900, 4}, {1, 2, 3, 4}, {20, 2, 30, 4}};
    const int32_t clip[][4] = {
        {50, 2, 30, 40}, {71, 2, 43, 44}, {1000, 2, 900, 160}, {1, 2, 3, 4}, {50, 2, 30, 40}};
    struct ir_tensor in[] = {tensor(JOT_I32, DIMS(4), x), tensor(JOT_I32, DIMS(5, 1), i),
                             tensor(JOT_I32, DIMS(5), u)};
    for (int k = 0; k < 5; k++) {
        ck_assert_mem_eq(run(ops[k], vector_indices(3), 3, in).data, drop[k], 16);
        ck_assert_mem_eq(run(ops[k], vector_indices(0), 3, in).data, clip[k], 16);
    }
}
END_TEST

START_TEST(test_pad)
{
    const int16_t x[] = {1, 2, 3, 4, 5, 6}, value = 9;
    struct ir_tensor in[] = {tensor(JOT_I16, DIMS(2, 3), x), point(JOT_I16, &value)};
    const int16_t *r = run(IR_pad,
                           ir_attrs(module, IR_INTS(low, 2, ((int64_t[]){1, -1})),
                                    IR_INTS(high, 2, ((int64_t[]){0, 1})),
                                    IR_INTS(interior, 2, ((int64_t[]){1, 1}))),
                           2, in)
                           .data;
    const int16_t padded[] = {9, 9, 9, 9, 9, 9, 2, 9, 3, 9, 9, 9, 9, 9, 9, 9, 5, 9, 6, 9};
    ck_assert_mem_eq(r, padded, sizeof padded);
}
END_TEST

START_TEST(test_constants)
{
    struct ir_builder b = ir_builder_make(module, "constants", IR_BUILD_PLAIN);
    struct ir_type t = ir_type_make(module, JOT_BF16, DIMS(2, 3));
    ir_output(&b, ir_iota(&b, t, 1));
    ir_output(&b, ir_iota(&b, ir_type_make(module, JOT_C64, DIMS(2)), 0));
    ir_output(&b, ir_full(&b, ir_type_make(module, JOT_U8, DIMS(3)), 7));
    struct ir_graph *g = ir_finish(&b);
    ck_assert_ptr_nonnull(g);
    struct ir_tensor out[3];
    ck_assert_int_eq(ir_eval(arena, g, NULL, out), JOT_OK);
    const uint16_t counted[] = {0, 0x3f80, 0x4000, 0, 0x3f80, 0x4000};
    ck_assert_mem_eq(out[0].data, counted, sizeof counted);
    ck_assert_mem_eq(out[1].data, ((float[]){0, 0, 1, 0}), 16);
    ck_assert_mem_eq(out[2].data, ((uint8_t[]){7, 7, 7}), 3);
    const float x = 1;
    ck_assert_int_eq(*(int32_t *)run1(IR_bitcast, ir_attrs(module, IR_INT(dtype, JOT_I32)),
                                      point(JOT_F32, &x))
                          .data,
                     0x3f800000);
}
END_TEST

// The order of sums of products, written as it is defined.
static float ordered_dot(const float *x, const float *y, int64_t n)
{
    float blocks[64] = {0};
    int count = 0, used = 1;
    const int64_t block = n <= 32768 ? 512 : 4096;
    while (used < n && used < 64)
        used *= 2;
    for (int64_t first = 0; first < n; first += block, count++) {
        float lanes[64] = {0};
        for (int64_t i = first; i < n && i < first + block; i++)
            lanes[(i - first) % 64] = fmaf(x[i], y[i], lanes[(i - first) % 64]);
        for (int half = used / 2; half; half /= 2)
            for (int i = 0; i < half; i++)
                lanes[i] += lanes[i + half];
        blocks[count] = lanes[0];
    }
    while (count > 1) {
        int next = 0;
        for (int i = 0; i + 1 < count; i += 2)
            blocks[next++] = blocks[i] + blocks[i + 1];
        if (count % 2)
            blocks[next++] = blocks[count - 1];
        count = next;
    }
    return blocks[0];
}

static const int64_t sizes[] = {0,    1,     2,     3,     31,    32,   33,  63,
                                64,   65,    100,   127,   511,   512,  513, 4096,
                                9000, 12300, 20481, 32768, 32769, 45000};

START_TEST(test_sum_order)
{
    static float x[45000], y[45000];
    int64_t n = sizes[_i];
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)((random_unit() - 0.5) * exp(20 * random_unit()));
        y[i] = 1;
    }
    const int64_t axis = 0;
    const struct ir_attrs *axes = ir_attrs(module, IR_INTS(axes, 1, &axis));
    float truth = ordered_dot(x, y, n);
    const float *sum = run1(IR_reduce_sum, axes, vector(JOT_F32, n, x)).data;
    ck_assert_msg(same32(*sum, truth), "%" PRId64 ": %a, not %a", n, (double)*sum,
                  (double)truth);
    struct ir_tensor in[] = {vector(JOT_F32, n, x), vector(JOT_F32, n, y)};
    const struct ir_attrs *contract =
        ir_attrs(module, IR_INTS(lhs_contract, 1, &axis), IR_INTS(rhs_contract, 1, &axis));
    const float *dot = run(IR_dot_general, contract, 2, in).data;
    ck_assert_msg(same32(*dot, truth), "dot of %" PRId64, n);
    // A sum never is -0.
    for (int64_t i = 0; i < n; i++)
        x[i] = -0.0f;
    sum = run1(IR_reduce_sum, axes, vector(JOT_F32, n, x)).data;
    ck_assert(same32(*sum, 0.0f));
    for (int64_t i = 0; i < n; i++) {
        x[i] = -0x1p-149f;
        y[i] = 0x1p-20f;
    }
    dot = run(IR_dot_general, contract, 2, in).data;
    ck_assert(same32(*dot, ordered_dot(x, y, n)));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(random_unit() - 0.5);
        y[i] = (float)(random_unit() - 0.5);
    }
    dot = run(IR_dot_general, contract, 2, in).data;
    ck_assert(same32(*dot, ordered_dot(x, y, n)));
}
END_TEST

START_TEST(test_reduce_axes)
{
    double x[24], truth[3] = {0};
    for (int i = 0; i < 24; i++)
        x[i] = i + 1;
    for (int i = 0; i < 24; i++)
        truth[i / 4 % 3] += x[i];
    struct ir_tensor t = tensor(JOT_F64, DIMS(2, 3, 4), x);
    const struct ir_attrs *axes = ir_attrs(module, IR_INTS(axes, 2, ((int64_t[]){0, 2})));
    ck_assert_mem_eq(run1(IR_reduce_sum, axes, t).data, truth, sizeof truth);
    ck_assert_mem_eq(run1(IR_reduce_max, axes, t).data, ((double[]){16, 20, 24}), 24);
    ck_assert_mem_eq(run1(IR_reduce_min, axes, t).data, ((double[]){1, 5, 9}), 24);
    const double *p =
        run1(IR_reduce_prod, ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){0}))), t).data;
    for (int i = 0; i < 12; i++)
        ck_assert(p[i] == x[i] * x[i + 12]);
    const uint8_t u[] = {0xf1, 0x3f, 0xff};
    const struct ir_attrs *first = ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){0})));
    struct ir_tensor b = vector(JOT_U8, 3, u);
    ck_assert_int_eq(*(uint8_t *)run1(IR_reduce_and, first, b).data, 0x31);
    ck_assert_int_eq(*(uint8_t *)run1(IR_reduce_or, first, b).data, 0xff);
    ck_assert_int_eq(*(uint8_t *)run1(IR_reduce_xor, first, b).data, 0x31);
    ck_assert_int_eq(*(uint8_t *)run1(IR_reduce_sum, first, b).data, 0x2f);
    // Halves accumulate in f32: 2048 + 1 + 1 is 2050.
    const uint16_t h[] = {0x6800, 0x3c00, 0x3c00};
    ck_assert_int_eq(*(uint16_t *)run1(IR_reduce_sum, first, vector(JOT_F16, 3, h)).data,
                     0x6801);
    const float zeros[] = {-0.0f, 0.0f, -0.0f}, nans[] = {1, NAN, 2};
    ck_assert(
        same32(*(float *)run1(IR_reduce_max, first, vector(JOT_F32, 3, zeros)).data, 0.0f));
    ck_assert(
        same32(*(float *)run1(IR_reduce_min, first, vector(JOT_F32, 3, zeros)).data, -0.0f));
    ck_assert(isnan(*(float *)run1(IR_reduce_max, first, vector(JOT_F32, 3, nans)).data));
}
END_TEST

START_TEST(test_reduce_nothing)
{
    const struct ir_attrs *axes = ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){0})));
    struct ir_tensor f = tensor(JOT_F32, DIMS(0, 2), NULL), i = tensor(JOT_I8, DIMS(0), NULL);
    ck_assert_mem_eq(run1(IR_reduce_max, axes, f).data, ((float[]){-INFINITY, -INFINITY}), 8);
    ck_assert_mem_eq(run1(IR_reduce_min, axes, f).data, ((float[]){INFINITY, INFINITY}), 8);
    ck_assert_mem_eq(run1(IR_reduce_prod, axes, f).data, ((float[]){1, 1}), 8);
    ck_assert_int_eq(*(int8_t *)run1(IR_reduce_max, axes, i).data, -128);
    ck_assert_int_eq(*(int8_t *)run1(IR_reduce_min, axes, i).data, 127);
    ck_assert_int_eq(*(int8_t *)run1(IR_reduce_and, axes, i).data, -1);
    ck_assert_int_eq(*(int8_t *)run1(IR_reduce_or, axes, i).data, 0);
    struct ir_tensor b = tensor(JOT_BOOL, DIMS(0), NULL), h = tensor(JOT_F16, DIMS(0), NULL);
    ck_assert_int_eq(*(uint8_t *)run1(IR_reduce_and, axes, b).data, 1);
    ck_assert_int_eq(*(uint8_t *)run1(IR_reduce_or, axes, b).data, 0);
    ck_assert_int_eq(*(uint16_t *)run1(IR_reduce_max, axes, h).data, 0xfc00);
    ck_assert_int_eq(*(uint16_t *)run1(IR_reduce_prod, axes, h).data, 0x3c00);
}
END_TEST

START_TEST(test_arg)
{
    const float x[] = {1, 5, 5, 2, NAN, 7, NAN, -1, -0.0f, 0.0f, -0.0f, 0.0f};
    const struct ir_attrs *attrs = ir_attrs(module, IR_INT(axis, 1), IR_INT(dtype, JOT_I32));
    struct ir_tensor t = tensor(JOT_F32, DIMS(3, 4), x);
    ck_assert_mem_eq(run1(IR_argmax, attrs, t).data, ((int32_t[]){1, 0, 0}), 12);
    ck_assert_mem_eq(run1(IR_argmin, attrs, t).data, ((int32_t[]){0, 0, 0}), 12);
    attrs = ir_attrs(module, IR_INT(axis, 0), IR_INT(dtype, JOT_U8));
    ck_assert_mem_eq(run1(IR_argmax, attrs, t).data, ((uint8_t[]){1, 1, 1, 0}), 4);
    ck_assert_mem_eq(run1(IR_argmin, attrs, t).data, ((uint8_t[]){1, 2, 1, 1}), 4);
    const int8_t i[] = {-3, 5, -128, 5};
    attrs = ir_attrs(module, IR_INT(axis, 0), IR_INT(dtype, JOT_I64));
    ck_assert_int_eq(*(int64_t *)run1(IR_argmax, attrs, vector(JOT_I8, 4, i)).data, 1);
    ck_assert_int_eq(*(int64_t *)run1(IR_argmin, attrs, vector(JOT_I8, 4, i)).data, 2);
}
END_TEST

START_TEST(test_cumulative)
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    struct ir_tensor t = tensor(JOT_F32, DIMS(2, 3), x);
    const struct ir_attrs *along = ir_attrs(module, IR_INT(axis, 1), IR_INT(reverse, 0));
    const struct ir_attrs *back = ir_attrs(module, IR_INT(axis, 0), IR_INT(reverse, 1));
    ck_assert_mem_eq(run1(IR_cumsum, along, t).data, ((float[]){1, 3, 6, 4, 9, 15}), 24);
    ck_assert_mem_eq(run1(IR_cumsum, back, t).data, ((float[]){5, 7, 9, 4, 5, 6}), 24);
    ck_assert_mem_eq(run1(IR_cumprod, along, t).data, ((float[]){1, 2, 6, 4, 20, 120}), 24);
    const int32_t i[] = {3, 1, 4, 1, 5};
    const struct ir_attrs *first = ir_attrs(module, IR_INT(axis, 0), IR_INT(reverse, 0));
    ck_assert_mem_eq(run1(IR_cummax, first, vector(JOT_I32, 5, i)).data,
                     ((int32_t[]){3, 3, 4, 4, 5}), 20);
    ck_assert_mem_eq(run1(IR_cummin, first, vector(JOT_I32, 5, i)).data,
                     ((int32_t[]){3, 1, 1, 1, 1}), 20);
    // What runs is f32: 2048, 2049 (shown as 2048), 2050.
    const uint16_t h[] = {0x6800, 0x3c00, 0x3c00};
    ck_assert_mem_eq(run1(IR_cumsum, first, vector(JOT_F16, 3, h)).data,
                     ((uint16_t[]){0x6800, 0x6800, 0x6801}), 6);
    const double l[] = {-INFINITY, 0.5, 700, 701, INFINITY};
    const double *r = run1(IR_cumlogsumexp, first, vector(JOT_F64, 5, l)).data;
    ck_assert(r[0] == -INFINITY && r[1] == 0.5 && r[2] == 700 && r[4] == INFINITY);
    check_close("cumlogsumexp", 701 + log1pl(expl(-1)), r[3], 53, 2);
    const double falling[] = {2, 1};
    r = run1(IR_cumlogsumexp, first, vector(JOT_F64, 2, falling)).data;
    check_close("cumlogsumexp", 2 + log1pl(expl(-1)), r[1], 53, 2);
}
END_TEST

START_TEST(test_dot)
{
    // Batch axis 1 of x and 0 of y; two contracted axes; the rest free.
    enum { B = 2, M = 3, N = 4, K = 5, L = 2 };
    int32_t x[M * B * K * L], y[B * L * K * N];
    for (int i = 0; i < M * B * K * L; i++)
        x[i] = (int32_t)(random_bits() % 100) - 50;
    for (int i = 0; i < B * L * K * N; i++)
        y[i] = (int32_t)(random_bits() % 100) - 50;
    const struct ir_attrs *attrs = ir_attrs(module, IR_INTS(lhs_batch, 1, ((int64_t[]){1})),
                                            IR_INTS(rhs_batch, 1, ((int64_t[]){0})),
                                            IR_INTS(lhs_contract, 2, ((int64_t[]){2, 3})),
                                            IR_INTS(rhs_contract, 2, ((int64_t[]){2, 1})));
    const int32_t *r = run(IR_dot_general, attrs, 2,
                           (struct ir_tensor[]){tensor(JOT_I32, DIMS(M, B, K, L), x),
                                                tensor(JOT_I32, DIMS(B, L, K, N), y)})
                           .data;
    for (int b = 0; b < B; b++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                int32_t sum = 0;
                for (int k = 0; k < K; k++)
                    for (int l = 0; l < L; l++)
                        sum +=
                            x[((i * B + b) * K + k) * L + l] * y[((b * L + l) * K + k) * N + j];
                ck_assert_int_eq(r[(b * M + i) * N + j], sum);
            }
    const float c[] = {1, 2, 3, 4}, d[] = {5, 6, 7, 8};
    attrs = ir_attrs(module, IR_INTS(lhs_contract, 1, ((int64_t[]){0})),
                     IR_INTS(rhs_contract, 1, ((int64_t[]){0})));
    // (1 + 2i)(5 + 6i) + (3 + 4i)(7 + 8i)
    ck_assert_mem_eq(run(IR_dot_general, attrs, 2,
                         (struct ir_tensor[]){vector(JOT_C64, 2, c), vector(JOT_C64, 2, d)})
                         .data,
                     ((float[]){-18, 68}), 8);
    const uint16_t h[] = {0x6800, 0x3c00, 0x3c00}, ones[] = {0x3c00, 0x3c00, 0x3c00};
    ck_assert_int_eq(
        *(uint16_t *)run(IR_dot_general, attrs, 2,
                         (struct ir_tensor[]){vector(JOT_F16, 3, h), vector(JOT_F16, 3, ones)})
             .data,
        0x6801);
    ck_assert(
        *(float *)run(IR_dot_general, attrs, 2,
                      (struct ir_tensor[]){vector(JOT_F32, 0, NULL), vector(JOT_F32, 0, NULL)})
             .data == 0);
}
END_TEST

// More columns than are gathered together.
START_TEST(test_wide_dot)
{
    enum { M = 3, N = 700, K = 200 };
    static float x[M * K], y[K * N], column[K];
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(random_unit() - 0.5);
    for (int i = 0; i < K * N; i++)
        y[i] = (float)(random_unit() - 0.5);
    const struct ir_attrs *attrs = ir_attrs(module, IR_INTS(lhs_contract, 1, ((int64_t[]){1})),
                                            IR_INTS(rhs_contract, 1, ((int64_t[]){0})));
    const float *r = run(IR_dot_general, attrs, 2,
                         (struct ir_tensor[]){tensor(JOT_F32, DIMS(M, K), x),
                                              tensor(JOT_F32, DIMS(K, N), y)})
                         .data;
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < K; k++)
            column[k] = y[k * N + j];
        for (int i = 0; i < M; i++)
            ck_assert(same32(r[i * N + j], ordered_dot(x + i * K, column, K)));
    }
}
END_TEST

START_TEST(test_threefry)
{
    // Known answers of Random123.
    const uint32_t k1[] = {0, UINT32_MAX, 0x13198a2e}, k2[] = {0, UINT32_MAX, 0x03707344};
    const uint32_t x1[] = {0, UINT32_MAX, 0x243f6a88}, x2[] = {0, UINT32_MAX, 0x85a308d3};
    const uint32_t y1[] = {0x6b200159, 0x1cb996fc, 0xc4923a9c};
    const uint32_t y2[] = {0x99ba4efe, 0xbb002be7, 0x483df7a0};
    struct ir_builder b = ir_builder_make(module, "threefry", IR_BUILD_PLAIN);
    struct ir_type t = ir_type_make(module, JOT_U32, DIMS(3));
    ir_id in[4];
    for (int i = 0; i < 4; i++)
        in[i] = ir_param(&b, t);
    ir_id first = ir_build(&b, IR_threefry2x32, 4, in, NULL);
    ir_output(&b, first);
    ir_output(&b, first + 1);
    struct ir_graph *g = ir_finish(&b);
    ck_assert_ptr_nonnull(g);
    struct ir_tensor out[2], values[] = {vector(JOT_U32, 3, k1), vector(JOT_U32, 3, k2),
                                         vector(JOT_U32, 3, x1), vector(JOT_U32, 3, x2)};
    ck_assert_int_eq(ir_eval(arena, g, values, out), JOT_OK);
    ck_assert_mem_eq(out[0].data, y1, sizeof y1);
    ck_assert_mem_eq(out[1].data, y2, sizeof y2);
}
END_TEST

START_TEST(test_call)
{
    struct ir_builder f = ir_builder_make(module, "square", IR_BUILD_PLAIN);
    struct ir_type t = ir_type_make(module, JOT_F32, DIMS(2));
    ir_id x = ir_param(&f, t), y = ir_param(&f, t);
    ir_output(&f, ir_mul(&f, x, x));
    ir_output(&f, ir_add(&f, x, y));
    uint32_t square = ir_finish_function(&f);
    ck_assert_uint_ne(square, IR_NONE);
    struct ir_builder b = ir_builder_make(module, "calls", IR_BUILD_PLAIN);
    ir_id u = ir_param(&b, t), v = ir_param(&b, t);
    ir_id call = ir_call(&b, IR_call, 1, &square, 2, (ir_id[]){u, v});
    ir_id again = ir_call(&b, IR_checkpoint, 1, &square, 2, (ir_id[]){call, call + 1});
    ir_output(&b, again);
    ir_output(&b, again + 1);
    ir_output(&b, ir_stop_gradient(&b, u));
    struct ir_graph *g = ir_finish(&b);
    ck_assert_msg(g != NULL, "%s", b.message);
    const float a[] = {1, 2}, c[] = {3, 4};
    struct ir_tensor out[3], in[] = {vector(JOT_F32, 2, a), vector(JOT_F32, 2, c)};
    ck_assert_int_eq(ir_eval(arena, g, in, out), JOT_OK);
    ck_assert_mem_eq(out[0].data, ((float[]){1, 16}), 8);
    ck_assert_mem_eq(out[1].data, ((float[]){5, 10}), 8);
    ck_assert_mem_eq(out[2].data, a, 8);
}
END_TEST

// The attributes that any op of these classes may ask for.
static const struct ir_attrs *all_attributes(enum ir_op op)
{
    static const int64_t axis[] = {0};
    switch (ir_op_class(op)) {
    case IR_CLASS_REDUCE:
        return ir_attrs(module, IR_INTS(axes, 1, axis));
    case IR_CLASS_ARG:
        return ir_attrs(module, IR_INT(axis, 0), IR_INT(dtype, JOT_I64));
    case IR_CLASS_CUMULATIVE:
        return ir_attrs(module, IR_INT(axis, 0), IR_INT(reverse, 1));
    case IR_CLASS_CONTRACT:
        return ir_attrs(module, IR_INTS(lhs_contract, 1, axis), IR_INTS(rhs_contract, 1, axis));
    default:
        if (op == IR_integer_pow)
            return ir_attrs(module, IR_INT(exponent, 3));
        if (op == IR_reduce_precision)
            return ir_attrs(module, IR_INT(exponent_bits, 5), IR_INT(mantissa_bits, 3));
        if (op == IR_convert || op == IR_bitcast)
            return ir_attrs(module, IR_INT(dtype, JOT_F32));
        return NULL;
    }
}

// Whatever types an op takes, it has a value for every pattern of bits.
START_TEST(test_every_op_and_dtype)
{
    enum ir_op op = (enum ir_op)_i;
    enum ir_class class = ir_op_class(op);
    if (class != IR_CLASS_MAP && class != IR_CLASS_REDUCE && class != IR_CLASS_ARG &&
        class != IR_CLASS_CUMULATIVE && class != IR_CLASS_CONTRACT)
        return;
    int taken = 0;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        uint64_t data[4][10];
        struct ir_tensor in[4], out[2];
        struct ir_builder b = ir_builder_make(module, "any", IR_BUILD_PLAIN);
        ir_id ids[4];
        for (int i = 0; i < ir_op_get(op)->in; i++) {
            jot_dtype operand = op == IR_select && i == 0 ? JOT_BOOL : (jot_dtype)d;
            for (int k = 0; k < 10; k++)
                data[i][k] = random_bits();
            for (int k = 0; operand == JOT_BOOL && k < 5; k++)
                ((uint8_t *)data[i])[k] &= 1;
            in[i] = vector(operand, 5, data[i]);
            ids[i] = ir_param(&b, in[i].type);
        }
        ir_id r = ir_build(&b, op, ir_op_get(op)->in, ids, all_attributes(op));
        if (r == IR_NONE)
            continue;
        taken++;
        ck_assert_msg(d < JOT_C64 || ir_op_get(op)->has_complex || class == IR_CLASS_CONTRACT ||
                          op == IR_convert || op == IR_complex,
                      "%s takes %s and has no column for it", ir_op_get(op)->name,
                      dtype_get((jot_dtype)d)->name);
        ir_output(&b, r);
        struct ir_graph *g = ir_finish(&b);
        ck_assert_ptr_nonnull(g);
        ck_assert_int_eq(ir_eval(arena, g, in, out), JOT_OK);
        if (ir_dtype(out[0].type) == JOT_BOOL)
            for (int64_t k = 0; k < ir_count(module, out[0].type); k++)
                ck_assert_uint_le(((uint8_t *)out[0].data)[k], 1);
    }
    ck_assert_msg(taken > 0, "%s takes nothing", ir_op_get(op)->name);
}
END_TEST

START_TEST(test_bad_arguments)
{
    struct ir_builder b = ir_builder_make(module, "bad", IR_BUILD_PLAIN);
    ir_output(&b, ir_param(&b, ir_type_make(module, JOT_F32, DIMS(2))));
    struct ir_graph *g = ir_finish(&b);
    const float a[] = {1, 2, 3};
    struct ir_tensor out = {0};
    ck_assert_int_eq(ir_eval(arena, g, (struct ir_tensor[]){vector(JOT_F32, 3, a)}, &out),
                     JOT_ERR_ARGUMENT);
    ck_assert_int_eq(ir_eval(arena, g, (struct ir_tensor[]){vector(JOT_I32, 2, a)}, &out),
                     JOT_ERR_ARGUMENT);
    ck_assert_int_eq(ir_eval(arena, g, (struct ir_tensor[]){vector(JOT_F32, 2, NULL)}, &out),
                     JOT_ERR_ARGUMENT);
    ck_assert_ptr_null(out.data);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, test_broadcast);
    tcase_add_test(t, test_layout);
    tcase_add_test(t, test_gather_modes);
    tcase_add_test(t, test_scatter_order);
    tcase_add_test(t, test_pad);
    tcase_add_test(t, test_constants);
    tcase_add_loop_test(t, test_sum_order, 0, (int)(sizeof sizes / sizeof *sizes));
    tcase_add_test(t, test_reduce_axes);
    tcase_add_test(t, test_reduce_nothing);
    tcase_add_test(t, test_arg);
    tcase_add_test(t, test_cumulative);
    tcase_add_test(t, test_dot);
    tcase_add_test(t, test_wide_dot);
    tcase_add_test(t, test_threefry);
    tcase_add_test(t, test_call);
    tcase_add_loop_test(t, test_every_op_and_dtype, 0, IR_OP_COUNT);
    tcase_add_test(t, test_bad_arguments);
}

int main(void) { return run_suite("eval_tensors", add_tests); }
