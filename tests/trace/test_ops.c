// SPDX-License-Identifier: Apache-2.0
// Types and values of the operations, in a lazy scope.
#include "trace_support.h"

#include <complex.h>

static jot_scope *scope;

static void setup(void) { scope = jot_scope_open(); }
static void teardown(void) { jot_scope_close(scope); }

static jot_value range(jot_dtype d, int64_t n) { return jot_arange(d, n); }

START_TEST(test_numbers_are_weak)
{
    jot_value x = jot_full(JOT_BF16, 1, 3), i = range(JOT_I32, 4), u = jot_full(JOT_U8, 7, 2);
    CHECK_TYPE(jot_mul(x, 2.0), "bf16[3]");
    CHECK_TYPE(jot_mul(x, 2), "bf16[3]");
    CHECK_TYPE(jot_add(u, 1), "u8[2]");
    CHECK_TYPE(jot_mul(i, 2.5), "f32[4]");
    CHECK_TYPE(jot_mul(i, x = jot_full(JOT_F16, 1)), "f16[4]");
    CHECK_TYPE(jot_add(i, true), "i32[4]");
    CHECK_TYPE(jot_add(jot_full(JOT_U32, 1), jot_full(JOT_I32, 1)), "i64[]");
    CHECK_TYPE(jot_add(jot_full(JOT_U64, 1), jot_full(JOT_I32, 1)), "f32[]");
    CHECK_TYPE(jot_add(jot_full(JOT_F16, 1), jot_full(JOT_BF16, 1)), "f32[]");
    CHECK_TYPE(jot_add(jot_full(JOT_F64, 1), jot_full(JOT_C64, 1)), "c128[]");
    ck_assert_int_eq(jot_value_dtype(jot_from(INT64_C(1) << 40)), JOT_I64);
    // Of two numbers the wider one counts, whichever comes first.
    CHECK_TYPE(jot_add(1, 3000000000), "i64[]");
    CHECK_TYPE(jot_add(3000000000, 1), "i64[]");
    CHECK_TYPE(jot_add(1, UINT64_C(1) << 63), "u64[]");
    CHECK_TYPE(jot_maximum(UINT64_C(1) << 63, INT64_C(1) << 40), "u64[]");
    CHECK_TYPE(jot_maximum(INT64_C(1) << 40, UINT64_C(1) << 63), "u64[]");
    ck_assert(jot_item(jot_add(1, 3000000000)) == 3000000001);
    CHECK_TYPE(jot_add(i, jot_add(1, 2)), "i32[4]");
    // Arithmetic on numbers alone is as precise as in C until it meets a type.
    jot_value tenth = jot_mul(jot_from(0.2), 0.5);
    CHECK_EXACT(jot_mul(tenth, jot_full(JOT_F64, 1)), 0.2 * 0.5);
    CHECK_EXACT(tenth, (float)0.1);
    // A weak value keeps its weakness through operations.
    CHECK_TYPE(jot_mul(jot_mul(i, 2.5), jot_full(JOT_F16, 1)), "f16[4]");
    ck_assert_int_eq(jot_value_dtype(tenth), JOT_F32);
}
END_TEST

START_TEST(test_division)
{
    jot_value a = jot_from(jot_array_from(((const int[]){7, -7, 7, -7, 5}), 5));
    jot_value b = jot_from(jot_array_from(((const int[]){2, 2, -2, -2, 0}), 5));
    CHECK_TYPE(jot_div(a, b), "f32[5]");
    CHECK_EXACT(jot_div(a, b), 3.5, -3.5, -3.5, 3.5, INFINITY);
    CHECK_EXACT(jot_floor_divide(a, b), 3, -4, -4, 3, -1);
    CHECK_EXACT(jot_rem(a, b), 1, -1, 1, -1, 5);
    CHECK_EXACT(jot_mod(a, b), 1, 1, -1, -1, 5);
    CHECK_EXACT(jot_floor_divide(jot_mul(a, 1.0), 2), 3, -4, 3, -4, 2);
    CHECK_EXACT(jot_mod(jot_mul(a, 1.0), -2), -1, -1, -1, -1, -1);
    // Quotients that are just above a whole number, and beyond all numbers.
    jot_value x = jot_from(
        jot_array_from(((const double[]){-1.1153914474910240, -1.2, -1, 1, -1, 1, NAN}), 7));
    jot_value y =
        jot_from(jot_array_from(((const double[]){0.1, 0.1, 0, 0, INFINITY, -INFINITY, 1}), 7));
    CHECK_EXACT(jot_floor_divide(x, y), -12, -12, -INFINITY, INFINITY, -1, -1, NAN);
    CHECK_TYPE(jot_div(jot_full(JOT_I64, 1), 2), "f64[]");
}
END_TEST

START_TEST(test_powers)
{
    jot_value i = range(JOT_I32, 4), x = jot_mul(i, 1.0);
    CHECK_TYPE(jot_power(i, 3), "i32[4]");
    CHECK_EXACT(jot_power(i, 3), 0, 1, 8, 27);
    CHECK_EXACT(jot_power(x, 2), 0, 1, 4, 9);
    CHECK(jot_power(x, 0.5), 1e-6, 0, 1, sqrt(2), sqrt(3));
    CHECK(jot_power(2, x), 1e-6, 1, 2, 4, 8);
    CHECK_EXACT(jot_cospi(jot_mul(x, 0.5)), 1, 0, -1, 0);
    CHECK_EXACT(jot_integer_pow(x, -1), INFINITY, 1, 0.5, 1 / 3.f);
    CHECK(jot_hypot(jot_mul(x, 3e30), jot_mul(x, 4e30)), 1e-6, 0, 5e30, 1e31, 1.5e31);
    CHECK_EXACT(jot_hypot(-INFINITY, jot_stack(0, INFINITY, 1.0, NAN)), INFINITY, INFINITY,
                INFINITY);
    CHECK_EXACT(jot_hypot(1.0, NAN), NAN);
}
END_TEST

START_TEST(test_compare_and_logic)
{
    jot_value i = range(JOT_I32, 4), x = jot_div(jot_sub(i, 1), jot_sub(i, 2));
    CHECK_TYPE(jot_less(i, 2.5), "bool[4]");
    CHECK_EXACT(jot_less(i, 2.5), 1, 1, 1, 0);
    CHECK_EXACT(jot_logical_and(i, jot_not_equal(i, 2)), 0, 1, 0, 1);
    CHECK_EXACT(jot_logical_not(i), 1, 0, 0, 0);
    CHECK_EXACT(jot_is_inf(x), 0, 0, 1, 0);
    CHECK_EXACT(jot_is_finite(i), 1, 1, 1, 1);
    CHECK_EXACT(jot_is_nan(jot_sub(x, x)), 0, 0, 1, 0);
    CHECK_TYPE(jot_where(jot_greater(i, 1), i, 0.5), "f32[4]");
    CHECK_EXACT(jot_where(jot_greater(i, 1), i, 0.5), 0.5, 0.5, 2, 3);
    CHECK_EXACT(jot_add(jot_equal(i, 0), jot_equal(i, 1)), 1, 1, 0, 0);
    CHECK_EXACT(jot_any(jot_equal(i, 3)), 1);
    CHECK_EXACT(jot_all(i), 0);
    CHECK_EXACT(jot_left_shift(i, 2), 0, 4, 8, 12);
    CHECK_EXACT(jot_right_shift(jot_neg(i), 1), 0, -1, -1, -2);
    CHECK_EXACT(jot_bitwise_not(i), -1, -2, -3, -4);
    CHECK_EXACT(jot_popcount(i), 0, 1, 1, 2);
}
END_TEST

START_TEST(test_rounding)
{
    jot_value x = jot_from(jot_array_from(((const double[]){-2.5, -0.5, 0.5, 1.5, 2.4}), 5));
    CHECK_EXACT(jot_round(x), -2, 0, 0, 2, 2);
    CHECK_EXACT(jot_round_away(x), -3, -1, 1, 2, 2);
    CHECK_EXACT(jot_floor(x), -3, -1, 0, 1, 2);
    CHECK_EXACT(jot_ceil(x), -2, 0, 1, 2, 3);
    CHECK_TYPE(jot_floor(range(JOT_I32, 3)), "i32[3]");
    CHECK_EXACT(jot_clip(x, -1, 1), -1, -0.5, 0.5, 1, 1);
    CHECK_EXACT(jot_convert(x, JOT_I32), -2, 0, 0, 1, 2);
    CHECK_EXACT(jot_convert(x, JOT_BOOL), 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(test_reductions)
{
    jot_value i = jot_reshape(range(JOT_I32, 6), 2, 3), b = jot_greater(i, 2);
    jot_value x = jot_convert(i, JOT_F64), none = jot_zeros(JOT_F32, 0);
    CHECK_EXACT(jot_sum(i), 15);
    CHECK_EXACT(jot_sum(i, 0), 3, 5, 7);
    CHECK_TYPE(jot_sum(i, -1, JOT_KEEPDIMS), "i32[2,1]");
    CHECK_TYPE(jot_sum(b), "i32[]");
    CHECK_TYPE(jot_sum(jot_full(JOT_U8, 200, 3)), "u32[]");
    CHECK_EXACT(jot_sum(jot_full(JOT_U8, 200, 3)), 600);
    CHECK_EXACT(jot_prod(jot_add(i, 1), 1), 6, 120);
    CHECK_TYPE(jot_mean(i), "f32[]");
    CHECK_EXACT(jot_mean(i, 0), 1.5, 2.5, 3.5);
    CHECK_TYPE(jot_mean(jot_full(JOT_F16, 60000, 4)), "f16[]");
    CHECK_EXACT(jot_convert(jot_mean(jot_full(JOT_F16, 60000, 4)), JOT_F32), 60000);
    CHECK(jot_var(x), 1e-15, 35.0 / 12);
    CHECK(jot_std(x, 1), 1e-15, sqrt(2.0 / 3), sqrt(2.0 / 3));
    CHECK(jot_norm(x), 1e-15, sqrt(55));
    CHECK_EXACT(jot_max(i, 1, JOT_KEEPDIMS), 2, 5);
    CHECK_EXACT(jot_min(i), 0);
    CHECK_EXACT(jot_argmax(i), 5);
    CHECK_EXACT(jot_argmax(jot_neg(i), 1), 0, 0);
    CHECK_EXACT(jot_sum(none), 0);
    CHECK_EXACT(jot_prod(none), 1);
    CHECK_EXACT(jot_max(none), -INFINITY);
    CHECK_EXACT(jot_cumsum(i, 1), 0, 1, 3, 3, 7, 12);
    CHECK_EXACT(jot_cumsum(i), 0, 1, 3, 6, 10, 15);
    CHECK_EXACT(jot_cummax(jot_mod(i, 4), 1), 0, 1, 2, 3, 3, 3);
    CHECK_EXACT(jot_cumor(i, 1), 0, 1, 3, 3, 7, 7);
    CHECK(jot_logsumexp(jot_mul(x, 1000)), 1e-12, 5000);
    CHECK_EXACT(jot_logsumexp(jot_full(JOT_F64, -INFINITY, 3)), -INFINITY);
    CHECK(jot_softmax(jot_full(JOT_F64, 1000, 4), 0), 1e-15, 0.25, 0.25, 0.25, 0.25);
    CHECK(jot_log_softmax(jot_full(JOT_F64, 1000, 4), 0), 1e-15, -log(4), -log(4), -log(4),
          -log(4));
}
END_TEST

START_TEST(test_shapes)
{
    jot_value i = jot_reshape(range(JOT_I32, 6), 2, 3), v = range(JOT_I32, 4);
    CHECK_TYPE(jot_reshape(i, 3, -1), "i32[3,2]");
    CHECK_TYPE(jot_reshape(i, -1), "i32[6]");
    CHECK_EXACT(jot_transpose(i), 0, 3, 1, 4, 2, 5);
    CHECK_TYPE(jot_transpose(jot_zeros(JOT_F32, 2, 3, 4), 1, 2, 0), "f32[3,4,2]");
    CHECK_TYPE(jot_move_axis(jot_zeros(JOT_F32, 2, 3, 4), 0, -1), "f32[3,4,2]");
    CHECK_TYPE(jot_move_axis(jot_zeros(JOT_F32, 2, 3, 4), 2, 0), "f32[4,2,3]");
    CHECK_TYPE(jot_swap_axes(jot_zeros(JOT_F32, 2, 3, 4), 0, 2), "f32[4,3,2]");
    CHECK_TYPE(jot_expand_dims(i, 0, -1), "i32[1,2,3,1]");
    CHECK_TYPE(jot_squeeze(jot_zeros(JOT_F32, 1, 2, 1)), "f32[2]");
    CHECK_TYPE(jot_squeeze(jot_zeros(JOT_F32, 1, 2, 1), -1), "f32[1,2]");
    CHECK_EXACT(jot_flip(i), 5, 4, 3, 2, 1, 0);
    CHECK_EXACT(jot_flip(i, 1), 2, 1, 0, 5, 4, 3);
    CHECK_EXACT(jot_diagonal_step(i, 1, 1, 0, 1), 1, 5);
    CHECK_EXACT(jot_diagonal_step(i, 1, 2, 0, -1), 1);
    CHECK_TYPE(jot_diagonal_step(i, 3, 2, 0, 1), "i32[0]");
    CHECK_EXACT(jot_slice(v, 0, 1, 3), 1, 2);
    CHECK_EXACT(jot_slice(v, 0, -3, JOT_END), 1, 2, 3);
    CHECK_EXACT(jot_slice(v, 0, JOT_END, JOT_END, -1), 3, 2, 1, 0);
    CHECK_EXACT(jot_slice(v, 0, 3, 0, -2), 3, 1);
    CHECK_EXACT(jot_slice(v, 0, 0, 100, 3), 0, 3);
    CHECK_TYPE(jot_slice(v, 0, 3, 1), "i32[0]");
    CHECK_EXACT(jot_take(i, 1), 3, 4, 5);
    CHECK_EXACT(jot_take(i, -1, 1), 2, 5);
    CHECK_EXACT(jot_concatenate(0, v, jot_take(i, 0)), 0, 1, 2, 3, 0, 1, 2);
    CHECK_EXACT(jot_stack(1, jot_take(i, 0), jot_take(i, 1)), 0, 3, 1, 4, 2, 5);
    CHECK_TYPE(jot_stack(0, 1, 2.5), "f32[2]");
    CHECK_EXACT(jot_pad(v, -1, 0, 1, -2), -1, 0, 1);
    CHECK_EXACT(jot_roll(v, 1, 0), 3, 0, 1, 2);
    CHECK_EXACT(jot_roll(v, -5, 0), 1, 2, 3, 0);
    CHECK_EXACT(jot_repeat(jot_slice(v, 0, 0, 2), 2, 0), 0, 0, 1, 1);
    CHECK_EXACT(jot_tile(jot_slice(v, 0, 0, 2), 2, 2), 0, 1, 0, 1, 0, 1, 0, 1);
    CHECK_EXACT(jot_broadcast_to(jot_take(i, 0), 2, 3), 0, 1, 2, 0, 1, 2);
    CHECK_EXACT(jot_eye(JOT_I32, 2, 3), 1, 0, 0, 0, 1, 0);
    CHECK_EXACT(jot_tril(i, 0), 0, 0, 0, 3, 4, 0);
    CHECK_EXACT(jot_triu(i, 1), 0, 1, 2, 0, 0, 5);
    CHECK_EXACT(jot_linspace(JOT_F64, 0, 1, 5), 0, 0.25, 0.5, 0.75, 1);
    jot_value parts[2];
    jot_split(v, 0, parts);
    CHECK_EXACT(parts[1], 2, 3);
    CHECK_EXACT(jot_full_like(v, 7), 7, 7, 7, 7);
    ck_assert_int_eq(jot_value_rank(i), 2);
    ck_assert_int_eq((int)jot_value_dim(i, -1), 3);
    ck_assert_int_eq((int)jot_value_size(i), 6);
}
END_TEST

START_TEST(test_products)
{
    jot_value a = jot_reshape(range(JOT_F64, 6), 2, 3),
              b = jot_reshape(range(JOT_F64, 6), 3, 2);
    jot_value v = range(JOT_F64, 3), c = jot_reshape(range(JOT_F64, 12), 2, 3, 2);
    CHECK_EXACT(jot_dot(a, b), 10, 13, 28, 40);
    CHECK_EXACT(jot_dot(a, v), 5, 14);
    CHECK_EXACT(jot_dot(v, v), 5);
    CHECK_EXACT(jot_dot(2, v), 0, 2, 4);
    CHECK_TYPE(jot_dot(a, c), "f64[2,2,2]");
    CHECK_EXACT(jot_matmul(a, c), 10, 13, 28, 40, 28, 31, 100, 112);
    CHECK_EXACT(jot_matmul(v, b), 10, 13);
    CHECK_EXACT(jot_matmul(v, c), 10, 13, 28, 31);
    CHECK_TYPE(jot_matmul(c, jot_zeros(JOT_F64, 5, 1, 2, 4)), "f64[5,2,3,4]");
    CHECK_EXACT(jot_outer(v, jot_arange(JOT_F64, 2)), 0, 0, 0, 1, 0, 2);
    CHECK_EXACT(jot_vdot(a, a), 55);
    CHECK_EXACT(jot_tensordot(a, a, 2), 55);
    CHECK_TYPE(jot_dot(a, jot_convert(b, JOT_F32)), "f64[2,2]");
    jot_value z = jot_complex(v, 1.0);
    CHECK_TYPE(z, "c128[3]");
    CHECK_EXACT(jot_real(jot_vdot(z, z)), 8);
    CHECK_EXACT(jot_imag(jot_mul(z, z)), 0, 2, 4);
    CHECK(jot_angle(z), 1e-15, M_PI / 2, M_PI / 4, atan(0.5));
    CHECK_EXACT(jot_abs(jot_complex(3.0, jot_full(JOT_F64, 4))), 5);
}
END_TEST

static jot_value sums(jot_value x) { return jot_cumsum(x); }
static jot_value sums_back(jot_value x) { return jot_flip(jot_cumsum(jot_flip(x))); }
static jot_value largest(jot_value x) { return jot_cummax(x); }

// Of so many numbers, among them some that fill neither a part of a scan nor a group of parts.
static void check_running(int64_t n)
{
    jot_value (*const functions[])(jot_value) = {sums, sums_back, largest};
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    float *again = malloc((size_t)n * sizeof *again);
    int32_t *k = malloc((size_t)n * sizeof *k);
    for (int64_t i = 0; i < n; i++) {
        k[i] = (int32_t)((uint32_t)i * 2654435761u);
        x[i] = ((float)(((uint32_t)k[i] >> 8) % 64) - 24) / 64; // all sums of them are exact
    }
    for (int f = 0; f < 3; f++) {
        jot_executable *run = jot_jit(jot_fn(functions[f])),
                       *over =
                           jot_jit(jot_fn(functions[f]), .donate = (const int[]){0, JOT_END});
        jot_array *in = jot_array_from(x, n), *out, *out_over;
        ck_assert_int_eq(jot_call_list(run, 1, &in, 1, &out), JOT_OK);
        ck_assert_int_eq(jot_array_read(out, y, (size_t)n), JOT_OK);
        ck_assert_int_eq(jot_call_list(over, 1, &in, 1, &out_over), JOT_OK);
        ck_assert_int_eq(jot_array_read(out_over, again, (size_t)n), JOT_OK);
        ck_assert_int_eq(memcmp(y, again, (size_t)n * sizeof *y), 0);
        double sum = 0, most = -INFINITY;
        int64_t wrong = -1;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = f == 1 ? n - 1 - i : i;
            sum += (double)x[at];
            most = fmax(most, (double)x[at]);
            wrong = (double)y[at] == (f == 2 ? most : sum) ? wrong : at;
        }
        ck_assert_msg(wrong < 0, "number %lld of %lld", (long long)wrong, (long long)n);
        jot_arrays_release(3, (jot_array *[]){in, out, out_over});
        jot_executable_release(run);
        jot_executable_release(over);
    }
    jot_array *sum;
    ck_assert_int_eq(jot_eval(jot_cumsum(jot_from(jot_array_from(k, n))), &sum), JOT_OK);
    int32_t *found = (int32_t *)(void *)y;
    ck_assert_int_eq(jot_array_read(sum, found, (size_t)n), JOT_OK);
    uint32_t want = 0;
    bool is_right = true;
    for (int64_t i = 0; i < n; i++)
        is_right &= (uint32_t)found[i] == (want += (uint32_t)k[i]);
    ck_assert(is_right);
    jot_array_release(sum);
    free(x);
    free(y);
    free(again);
    free(k);
}

static jot_value products(jot_value x) { return jot_cumprod(x); }
static jot_value log_sums(jot_value x) { return jot_cumlogsumexp(x); }

// Folds whose identity is not neutral: the first number comes out as it is.
static void check_running_from(int64_t n)
{
    double _Complex *z = malloc((size_t)n * sizeof *z), product = 1;
    double *x = malloc((size_t)n * sizeof *x), sum = 0;
    for (int64_t i = 0; i < n; i++) {
        z[i] = cexp(I * (double)(i % 5));
        x[i] = i < 3 ? -0.0 : sin((double)i);
    }
    jot_executable *f[] = {jot_jit(jot_fn(products)), jot_jit(jot_fn(log_sums))};
    jot_array *in[] = {jot_array_from(z, n), jot_array_from(x, n)}, *out[2];
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(jot_call_list(f[k], 1, &in[k], 1, &out[k]), JOT_OK);
    ck_assert_int_eq(jot_array_read(out[0], z, (size_t)n), JOT_OK);
    ck_assert_int_eq(jot_array_read(out[1], x, (size_t)n), JOT_OK);
    ck_assert(x[0] == 0 && signbit(x[0]));
    for (int64_t i = 0; i < n; i++) {
        product *= cexp(I * (double)(i % 5));
        sum += exp(i < 3 ? 0 : sin((double)i));
        ck_assert_msg(cabs(z[i] - product) < 1e-11, "product %lld", (long long)i);
        ck_assert_msg(fabs(x[i] - log(sum)) < 1e-11, "logarithm %lld", (long long)i);
    }
    for (int k = 0; k < 2; k++) {
        jot_arrays_release(2, (jot_array *[]){in[k], out[k]});
        jot_executable_release(f[k]);
    }
    free(z), free(x);
}

START_TEST(test_long_running_folds)
{
    check_running(70001);
    check_running(33 * 8192 + 4);
    check_running_from(5003);
}
END_TEST

// e^(x - max x) has the bits of e^x where the maximum is 0.
START_TEST(test_exponentials_of_rows)
{
    enum { ROWS = 24, LENGTH = 512 };
    static float x[ROWS * LENGTH], y[ROWS * LENGTH], plain[ROWS * LENGTH];
    for (int i = 0; i < ROWS * LENGTH; i++)
        x[i] = i % LENGTH ? -(float)i * (float)i * 1.3e-6f - (float)(i % 7) * 0.1f : 0;
    x[5] = -INFINITY;
    x[6] = -0.0f;
    x[7] = -103.9f;
    x[8] = -104.1f;
    x[LENGTH + 1] = NAN;
    jot_value v = jot_from(jot_array_from(x, ROWS, LENGTH));
    jot_array *rows, *all;
    jot_value less = jot_sub(v, jot_max(v, 1, JOT_KEEPDIMS));
    ck_assert_int_eq(jot_eval(jot_exp(less), &rows), JOT_OK);
    ck_assert_int_eq(jot_eval(jot_exp(v), &all), JOT_OK);
    ck_assert_int_eq(jot_array_read(rows, y, ROWS * LENGTH), JOT_OK);
    ck_assert_int_eq(jot_array_read(all, plain, ROWS * LENGTH), JOT_OK);
    for (int i = 0; i < ROWS * LENGTH; i++)
        if (i / LENGTH == 1 ? !isnan(y[i]) : memcmp(&y[i], &plain[i], sizeof *y) != 0)
            ck_abort_msg("%d: e^%a is %a, not %a", i, (double)x[i], (double)y[i],
                         (double)plain[i]);
    jot_arrays_release(2, (jot_array *[]){rows, all});
}
END_TEST

START_TEST(test_activations)
{
    jot_value x = jot_from(jot_array_from(((const double[]){-1, 0, 2}), 3));
    CHECK_EXACT(jot_relu(x), 0, 0, 2);
    CHECK(jot_sigmoid(x), 1e-15, 1 / (1 + exp(1)), 0.5, 1 / (1 + exp(-2)));
    CHECK(jot_silu(x), 1e-15, -1 / (1 + exp(1)), 0, 2 / (1 + exp(-2)));
    CHECK(jot_softplus(x), 1e-15, log1p(exp(-1)), log(2), log1p(exp(2)));
    CHECK(jot_gelu(x), 1e-12, -0.15880800939172324, 0, 1.954597694087775);
    CHECK_EXACT(jot_logaddexp(jot_full(JOT_F64, -INFINITY), -INFINITY), -INFINITY);
}
END_TEST

// Of equal numbers each has half of the derivative, infinite ones as well.
START_TEST(test_derivative_of_logaddexp)
{
    const double inf = INFINITY, at[] = {inf, -inf, inf, -inf, 2, NAN};
    const double to[] = {inf, -inf, 1, inf, 2, 1};
    jot_value x = jot_variable(jot_from(jot_array_from(at, 6)));
    jot_value y = jot_from(jot_array_from(to, 6));
    CHECK_EXACT(jot_gradient(jot_sum(jot_logaddexp(x, y)), x), 0.5, 0.5, 1, 0, 0.5, NAN);
    CHECK(jot_gradient(jot_sum(jot_logaddexp2(x, y)), x), 1e-15, 0.5, 0.5, 1, 0, 0.5, NAN);
    // Equal numbers are no kink.
    const double ties[] = {0, 3};
    jot_value z = jot_variable(jot_from(jot_array_from(ties, 2))), w = jot_stop_gradient(z);
    jot_value slope = jot_gradient(jot_sum(jot_logaddexp(z, w)), z);
    CHECK(jot_gradient(jot_sum(slope), z), 1e-15, 0.25, 0.25);
    slope = jot_gradient(jot_sum(jot_logaddexp2(z, w)), z);
    CHECK(jot_gradient(jot_sum(slope), z), 1e-15, log(2) / 4, log(2) / 4);
}
END_TEST

static jot_value complex_of(int n, const double *re, const double *im)
{
    const int64_t dims[] = {n, JOT_END};
    jot_array *a = jot_array_copy(JOT_F64, re, dims), *b = jot_array_copy(JOT_F64, im, dims);
    jot_value z = jot_complex(a, b);
    jot_array_release(a);
    jot_array_release(b);
    return z;
}

// By real parts, then by imaginary ones; NaN, of which it is enough in a part, is in no order
// and wins, as in NumPy.
static void check_complex(jot_value z, double re, double im)
{
    CHECK(jot_real(z), 4e-16, re);
    CHECK(jot_imag(z), 4e-16, im);
}

// Near the ends of the range and at infinities.
START_TEST(test_complex_functions_far_out)
{
    jot_value huge = complex_of(1, (double[]){1e308}, (double[]){1e308});
    check_complex(jot_square(huge), 0, INFINITY);
    check_complex(jot_pow(huge, 2), 0, INFINITY);
    check_complex(jot_reciprocal(huge), 5e-309, -5e-309);
    check_complex(jot_sign(huge), M_SQRT1_2, M_SQRT1_2);
    CHECK(jot_abs(huge), 4e-16, 1.4142135623730951e308);
    check_complex(jot_acos(huge), M_PI / 4, -710.23592941300599);
    jot_value infinite = complex_of(1, (double[]){INFINITY}, (double[]){1.5});
    check_complex(jot_asin(infinite), M_PI / 2, INFINITY);
    check_complex(jot_log10(infinite), INFINITY, 0);
    check_complex(jot_reciprocal(infinite), 0, 0);
    check_complex(jot_exp(complex_of(1, (double[]){1500}, (double[]){0})), INFINITY, 0);
    jot_value beyond = complex_of(1, (double[]){711}, (double[]){1});
    check_complex(jot_sinh(beyond), 1.6405272874327550e308, INFINITY);
}
END_TEST

START_TEST(test_order_of_complex_numbers)
{
    const double x[] = {1, 1, 2, NAN, 1, 0, 5, INFINITY, 0},
                 xi[] = {2, 2, 0, 1, NAN, 7, 0, 1, 0};
    const double y[] = {1, 1, 1, 1, 2, 2, NAN, INFINITY, -0.0},
                 yi[] = {3, 2, 9, 0, 0, NAN, 4, 0, 0};
    jot_value p = complex_of(9, x, xi), q = complex_of(9, y, yi);
    CHECK_EXACT(jot_less(p, q), 1, 0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_EXACT(jot_less_equal(p, q), 1, 1, 0, 0, 0, 0, 0, 0, 1);
    CHECK_EXACT(jot_greater(p, q), 0, 0, 1, 0, 0, 0, 0, 1, 0);
    CHECK_EXACT(jot_greater_equal(p, q), 0, 1, 1, 0, 0, 0, 0, 1, 1);
    jot_value most = jot_maximum(p, q), least = jot_minimum(p, q);
    CHECK_EXACT(jot_real(most), 1, 1, 2, NAN, 1, 2, NAN, INFINITY, 0);
    CHECK_EXACT(jot_imag(most), 3, 2, 0, 1, NAN, NAN, 4, 1, 0);
    CHECK_EXACT(jot_real(least), 1, 1, 1, NAN, 1, 2, NAN, INFINITY, 0);
    CHECK_EXACT(jot_imag(least), 2, 2, 9, 1, NAN, NAN, 4, 0, 0);
    CHECK_EXACT(jot_is_nan(jot_stack(0, jot_max(p), jot_min(q))), 1, 1);
    CHECK_EXACT(jot_real(jot_nanmax(p)), INFINITY);
    // Equal extrema share the derivative.
    const double e[] = {1, 3, 3, 3}, ei[] = {9, -1, 4, 4};
    jot_value z = jot_variable(complex_of(4, e, ei));
    CHECK_EXACT(jot_real(jot_gradient(jot_real(jot_max(z)), z)), 0, 0, 0.5, 0.5);
    CHECK_EXACT(jot_real(jot_gradient(jot_real(jot_min(z)), z)), 1, 0, 0, 0);
    jot_value w = jot_variable(complex_of(4, e, ei)), v = jot_roll(w, 1, 0);
    CHECK_EXACT(jot_real(jot_gradient(jot_sum(jot_real(jot_maximum(w, v))), w)), 0, 1, 1.5,
                1.5);
    CHECK_TYPE(jot_max(jot_convert(z, JOT_C64), JOT_KEEPDIMS), "c64[1]");
}
END_TEST

// As in NumPy: what has no modulus has divisors.
START_TEST(test_divisors_of_lowest)
{
    jot_value low = jot_full(JOT_I32, INT32_MIN), x = jot_stack(0, 6, 0, -96, 7, INT32_MIN);
    CHECK_EXACT(jot_gcd(low, x), 2, INT32_MIN, 32, 1, INT32_MIN);
    CHECK_EXACT(jot_gcd(x, low), 2, INT32_MIN, 32, 1, INT32_MIN);
    CHECK_EXACT(jot_lcm(low, 6), INT32_MIN);
}
END_TEST

// The plain functions take lists; ops have addresses.
START_TEST(test_plain)
{
    jot_value (*op)(jot_value, jot_value) = jot_add;
    jot_value a = jot_from(1), b = (jot_add)(a, a);
    CHECK_EXACT(op(a, b), 3);
    CHECK_EXACT(jot_sum_axes(jot_ones(JOT_I32, 2, 2), (const int[]){0, JOT_END}), 2, 2);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_numbers_are_weak);
    tcase_add_test(t, test_division);
    tcase_add_test(t, test_powers);
    tcase_add_test(t, test_compare_and_logic);
    tcase_add_test(t, test_rounding);
    tcase_add_test(t, test_reductions);
    tcase_add_test(t, test_shapes);
    tcase_add_test(t, test_products);
    tcase_add_test(t, test_long_running_folds);
    tcase_add_test(t, test_exponentials_of_rows);
    tcase_add_test(t, test_activations);
    tcase_add_test(t, test_derivative_of_logaddexp);
    tcase_add_test(t, test_divisors_of_lowest);
    tcase_add_test(t, test_complex_functions_far_out);
    tcase_add_test(t, test_order_of_complex_numbers);
    tcase_add_test(t, test_plain);
}

int main(void) { return run_suite("trace/ops", add); }
