// SPDX-License-Identifier: Apache-2.0
// Fourier transforms: types, derivatives, what mistakes say.  Values against JAX's are in
// tests/table, of machine code against the evaluator in tests/harness, of the routine in
// tests/runtime.
#include "trace_support.h"

#include <sys/resource.h>

static jot_scope *scope;

static void setup(void) { scope = jot_scope_open(); }
static void teardown(void) { jot_scope_close(scope); }

START_TEST(types)
{
    CHECK_TYPE(jot_fft(jot_zeros(JOT_F32, 3, 8)), "c64[3,8]");
    CHECK_TYPE(jot_fft(jot_zeros(JOT_C128, 8)), "c128[8]");
    CHECK_TYPE(jot_fft(jot_zeros(JOT_I32, 8)), "c64[8]");
    CHECK_TYPE(jot_ifft(jot_zeros(JOT_BOOL, 8)), "c64[8]");
    CHECK_TYPE(jot_rfft(jot_zeros(JOT_F64, 3, 8)), "c128[3,5]");
    CHECK_TYPE(jot_rfft(jot_zeros(JOT_U8, 7)), "c64[4]");
    CHECK_TYPE(jot_irfft(jot_zeros(JOT_C64, 5)), "f32[8]");
    CHECK_TYPE(jot_irfft(jot_zeros(JOT_F64, 5), .n = JOT_SIZES(9)), "f64[9]");
    CHECK_TYPE(jot_rfftn(jot_zeros(JOT_F32, 4, 6, 8), .axes = JOT_AXES(2, 0)), "c64[3,6,8]");
    CHECK_TYPE(jot_irfft2(jot_zeros(JOT_C64, 0, 4, 3)), "f32[0,4,4]");
    CHECK_TYPE(jot_fftn(jot_zeros(JOT_F32, 4, 6), .n = JOT_SIZES(3)), "c64[4,3]");
    CHECK_TYPE(jot_hfft(jot_zeros(JOT_C64, 5)), "f32[8]");
    CHECK_TYPE(jot_ihfft(jot_zeros(JOT_F32, 8)), "c64[5]");
    CHECK_TYPE(jot_fftfreq(JOT_F32, 8, 0.5), "f32[8]");
}
END_TEST

START_TEST(values)
{
    jot_value x = jot_arange(JOT_F64, 5);
    CHECK(jot_real(jot_fft(x)), 1e-15, 10, -2.5, -2.5, -2.5, -2.5);
    CHECK(jot_irfft(jot_rfft(x), .n = JOT_SIZES(5)), 1e-15, 0, 1, 2, 3, 4);
    CHECK(jot_hfft(jot_ihfft(x), .n = JOT_SIZES(5)), 1e-15, 0, 1, 2, 3, 4);
    CHECK_EXACT(jot_real(jot_fft(jot_ones(JOT_F32, 1))), 1);
    CHECK_EXACT(
        jot_real(jot_fft(jot_from_array(jot_array_from(((const double[]){NAN, 1}), 2)))), NAN,
        NAN);
    CHECK_EXACT(jot_fftshift(x), 3, 4, 0, 1, 2);
    CHECK_EXACT(jot_ifftshift(jot_fftshift(x)), 0, 1, 2, 3, 4);
    CHECK_EXACT(jot_fftfreq(JOT_F64, 5, 0.2), 0, 1, 2, -2, -1);
    CHECK_EXACT(jot_rfftfreq(JOT_F64, 5, 0.2), 0, 1, 2);
}
END_TEST

static jot_value there_and_back(jot_value x)
{
    jot_value a = jot_rfft(x), b = jot_rfft(jot_mul(2, x));
    jot_value y = jot_irfft(a, .n = JOT_SIZES(5)), z = jot_irfft(b, .n = JOT_SIZES(5));
    jot_value w = jot_irfft(jot_sub(b, a), .n = JOT_SIZES(5));
    return jot_add(y, jot_add(jot_mul(10, z), jot_mul(100, w)));
}

// Transforms that do not wait for one another are one call on a GPU.
START_TEST(side_by_side)
{
    jot_value x = jot_arange(JOT_F64, 5), y = x;
    CHECK(there_and_back(x), 1e-12, 0, 121, 242, 363, 484);
    JOT_FOR (i, 2, y)
        y = there_and_back(y);
    CHECK(y, 1e-10, 0, 14641, 29282, 43923, 58564);
}
END_TEST

// ---- Derivatives

static jot_value there(jot_value x)
{
    jot_value y = jot_fftn(x, .n = JOT_SIZES(5, 3), .norm = JOT_FFT_ORTHO);
    return jot_sum(jot_square(jot_abs(y)));
}
static jot_value half(jot_value x)
{
    jot_value y = jot_rfft2(x, .axes = JOT_AXES(1, 0));
    return jot_sum(jot_mul(jot_real(y), jot_sin(jot_imag(y))));
}
static jot_value back(jot_value x)
{
    jot_value z = jot_complex(jot_sin(x), jot_square(x));
    return jot_sum(jot_integer_pow(jot_irfftn(z, .n = JOT_SIZES(4, 7)), 3));
}
static jot_value mirrored(jot_value x)
{
    return jot_sum(jot_square(jot_hfft(jot_mul(x, jot_ihfft(jot_sin(x), .n = JOT_SIZES(8))))));
}

// A loop around transforms, mapped.
static jot_value steps(jot_value x)
{
    JOT_FOR (i, 3, x)
        x = jot_add(x, jot_real(jot_ifft(jot_mul(jot_fft(jot_sin(x)), 0.5))));
    return x;
}
static jot_value mapped_steps(jot_value x)
{
    jot_value y;
    jot_apply(jot_vmap(jot_fn(steps)), 1, &x, 1, &y);
    return jot_sum(jot_square(y));
}

START_TEST(derivatives)
{
    static const double data[20] = {0.3, -0.7, 0.2,  0.9,  -0.4, 0.6, 0.1, -0.8, 0.5, 0.35,
                                    0.8, -0.1, 0.45, -0.6, 0.15, 0.7, 0.2, -0.3, 0.4, -0.9};
    const jot_function all[] = {jot_fn(there), jot_fn(half), jot_fn(back), jot_fn(mirrored),
                                jot_fn(mapped_steps)};
    jot_array *x = jot_array_from(data, 4, 5);
    ck_assert_msg(x != NULL, "%s", jot_error_message());
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        jot_array *row = NULL;
        if (i == 3)
            row = jot_array_from(data, 5);
        must(jot_check_grads(all[i], 2, JOT_FORWARD | JOT_REVERSE, 0, row ? row : x));
        jot_array_release(row);
    }
    jot_array_release(x);
}
END_TEST

// jax.grad of sum(|fft(z)|^2) is 2 n conj(z).
static jot_value energy(jot_value z) { return jot_sum(jot_square(jot_abs(jot_fft(z)))); }

START_TEST(complex_convention)
{
    jot_value z = jot_complex(jot_arange(JOT_F64, 3),
                              jot_from_array(jot_array_from(((const double[]){1, -1, 2}), 3)));
    jot_value g;
    jot_apply(jot_grad(jot_fn(energy)), 1, &z, 1, &g);
    CHECK(jot_real(g), 1e-14, 0, 6, 12);
    CHECK(jot_imag(g), 1e-14, -6, 6, -12);
}
END_TEST

// ---- On a GPU

static jot_value spectrum(jot_value x) { return jot_abs(jot_fft(jot_sin(x))); }
static jot_value eigenvalues(jot_value x)
{
    return jot_sqrt(jot_abs(jot_eigh(jot_sin(x)).values));
}

// Whether the schedule names a step that is in no graph.
static const char *text_of(jot_value (*f)(jot_value), jot_executable **out)
{
    static const float data[16] = {1, 2, 3, 4};
    jot_array *x = jot_array_copy(JOT_F32, data, (int64_t[]){4, 4, JOT_END}), *y;
    *out = jot_jit(jot_fn(f));
    ck_assert_int_eq(jot_call_list(*out, 1, &x, 1, &y), JOT_OK);
    jot_arrays_release(2, (jot_array *[]){x, y});
    return jot_executable_text(*out, "schedule");
}

START_TEST(schedules_name_what_splits_graphs)
{
    jot_executable *a, *b;
    const char *recorded = text_of(spectrum, &a), *split = text_of(eigenvalues, &b);
    if (jot_device_kind_of(NULL) == JOT_CUDA && recorded && split) {
        ck_assert_msg(!strstr(recorded, "not in a graph"), "%s", recorded);
        ck_assert_msg(strstr(split, "not in a graph: step 2, library (eigh)"), "%s", split);
    }
    jot_executable_release(a);
    jot_executable_release(b);
}
END_TEST

// ---- Messages

#define SAYS(expression, text)                                                                 \
    do {                                                                                       \
        jot_array *none_ = NULL;                                                               \
        jot_scope *inner_ = jot_scope_open();                                                  \
        ck_assert_int_ne(jot_eval((expression), &none_), JOT_OK);                              \
        ck_assert_str_eq(jot_error_message(), text);                                           \
        jot_scope_close(inner_);                                                               \
    } while (0)

START_TEST(messages)
{
    // clang-format off
#line 1 "bad.c"
SAYS(jot_fft(jot_zeros(JOT_F16, 4)), "bad.c:1: jot_fft(jot_zeros(JOT_F16, 4)): f16[4]: transforms are of f32, f64, c64 and c128: convert it first");
SAYS(jot_rfft(jot_zeros(JOT_C64, 4)), "bad.c:2: jot_rfft(jot_zeros(JOT_C64, 4)): c64[4]: of complex numbers no half tells all: take jot_fft, or a part");
SAYS(jot_fft(1.5), "bad.c:3: jot_fft(1.5): f32[] has fewer axes than the 1 transformed");
SAYS(jot_fft2(jot_ones(JOT_F32, 4)), "bad.c:4: jot_fft2(jot_ones(JOT_F32, 4)): f32[4] has fewer axes than the 2 transformed");
SAYS(jot_fft(jot_ones(JOT_F32, 4), .n = JOT_SIZES(0)), "bad.c:5: jot_fft(jot_ones(JOT_F32, 4), .n = JOT_SIZES(0)): length 0 along axis 0 of f32[4]: it must be at least 1");
SAYS(jot_fft(jot_ones(JOT_F32, 4), .n = JOT_SIZES(-3)), "bad.c:6: jot_fft(jot_ones(JOT_F32, 4), .n = JOT_SIZES(-3)): length -3 along axis 0 of f32[4]: it must be at least 1");
SAYS(jot_fft(jot_ones(JOT_F32, 0)), "bad.c:7: jot_fft(jot_ones(JOT_F32, 0)): length 0 along axis 0 of f32[0]: it must be at least 1: say .n");
SAYS(jot_irfft(jot_ones(JOT_F32, 1)), "bad.c:8: jot_irfft(jot_ones(JOT_F32, 1)): length 0 along axis 0 of f32[1]: it must be at least 1: say .n");
SAYS(jot_fft(jot_ones(JOT_F32, 4), .axes = JOT_AXES(1)), "bad.c:9: jot_fft(jot_ones(JOT_F32, 4), .axes = JOT_AXES(1)): axis 1 of f32[4]: axes are -1 to 0");
SAYS(jot_fftn(jot_ones(JOT_F32, 4, 4), .axes = JOT_AXES(1, -1)), "bad.c:10: jot_fftn(jot_ones(JOT_F32, 4, 4), .axes = JOT_AXES(1, -1)): axis -1 of f32[4,4] is listed twice");
SAYS(jot_fft(jot_ones(JOT_F32, 4, 4), .axes = JOT_AXES(0, 1)), "bad.c:11: jot_fft(jot_ones(JOT_F32, 4, 4), .axes = JOT_AXES(0, 1)): 2 axes are listed: it transforms 1");
SAYS(jot_fftn(jot_ones(JOT_F32, 4, 4), .n = JOT_SIZES(4), .axes = JOT_AXES(0, 1)), "bad.c:12: jot_fftn(...): lengths for 1 axes, of 2");
SAYS(jot_fft(jot_ones(JOT_F32, 4), .norm = (jot_fft_norm)3), "bad.c:13: jot_fft(jot_ones(JOT_F32, 4), .norm = (jot_fft_norm)3): norm 3: there are 0 to 2");
SAYS(jot_fftshift(jot_ones(JOT_F32, 4), 1), "bad.c:14: jot_fftshift(jot_ones(JOT_F32, 4), 1): axis 1 of f32[4]: axes are -1 to 0");
SAYS(jot_fftfreq(JOT_F32, 0, 1), "bad.c:15: jot_fftfreq(JOT_F32, 0, 1): 0 samples: there must be at least 1");
SAYS(jot_rfftfreq(JOT_I32, 4, 1), "bad.c:16: jot_rfftfreq(JOT_I32, 4, 1): frequencies of i32: they are floats");
SAYS(jot_fftfreq(JOT_F32, 4, 0), "bad.c:17: jot_fftfreq(JOT_F32, 4, 0): samples 0 apart");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // Some systems promise memory that they do not have.
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)1 << 40, (rlim_t)1 << 40});
    if (!getenv("JOT_DEVICE"))
#line 18
SAYS(jot_fft(jot_ones(JOT_F32, 4), .n = JOT_SIZES(INT64_C(1) << 40)), "bad.c:18: out of memory: a Fourier transform of 1099511627776 numbers");
#endif
#line 183 "test_fft.c"
    // clang-format on
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, types);
    tcase_add_test(t, values);
    tcase_add_test(t, side_by_side);
    tcase_add_test(t, derivatives);
    tcase_add_test(t, complex_convention);
    tcase_add_test(t, schedules_name_what_splits_graphs);
    tcase_add_test(t, messages);
}

int main(void) { return run_suite("trace/fft", add); }
