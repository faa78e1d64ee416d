// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of the host against the definition, with FFTW and without.
#include "base/status.h"
#include "jot/device.h"
#include "runtime/host/fft_plan.h"
#include "runtime/routine.h"
#include "support/suite.h"

#include <check.h>
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned seed;

static jot_status transform(jot_dtype dtype, enum fft_kind kind, int64_t batch, int n,
                            const int64_t *sizes, const void *in, size_t in_bytes, void *out,
                            size_t out_bytes)
{
    int64_t params[8] = {dtype, batch, kind};
    memcpy(params + 3, sizes, (size_t)n * sizeof *sizes);
    void *operands[2] = {(void *)(uintptr_t)in, out};
    struct rt_routine_call call = {.params = params,
                                   .param_count = 3 + (uint32_t)n,
                                   .operand_count = 2,
                                   .read_count = 1,
                                   .bytes = {in_bytes, out_bytes}};
    size_t scratch;
    const struct rt_routine *r = rt_routine_find("fft");
    JOT_TRY(r->check(&call));
    JOT_TRY(r->bind(&call, &scratch));
    call.operands = operands;
    return rt_routine_run(r, &call, scratch);
}

static long double complex load(bool is_single, const void *at, int64_t i)
{
    return is_single ? (long double complex)((const float complex *)at)[i]
                     : (long double complex)((const double complex *)at)[i];
}

static double draw(void) { return rand() / (double)RAND_MAX - 0.5; }

static void *draw_numbers(bool is_single, int64_t reals)
{
    void *at = aligned_alloc(64, ((size_t)reals * 8 + 127) / 64 * 64);
    for (int64_t i = 0; i < reals; i++)
        if (is_single)
            ((float *)at)[i] = (float)draw();
        else
            ((double *)at)[i] = draw();
    return at;
}

// X[k] = sum_j x[j] exp(sign 2 pi i j k / n)
static void define(int64_t n, int sign, const long double complex *x, long double complex *y)
{
    long double turn = 2 * acosl(-1) * sign;
    long double complex *w = malloc((size_t)n * sizeof *w);
    for (int64_t k = 0; k < n; k++)
        w[k] = cexpl(I * turn * (long double)k / (long double)n);
    for (int64_t k = 0; k < n; k++) {
        y[k] = 0;
        for (int64_t j = 0; j < n; j++)
            y[k] += x[j] * w[j * k % n];
    }
    free(w);
}

// The distance is at most a few units times log n, as that of any transform by passes (Higham,
// Accuracy and Stability of Numerical Algorithms, 24.1); a convolution has three in a row.
static void check_near(bool is_single, int64_t n, double distance, double norm,
                       const char *what)
{
    double unit = is_single ? 0x1p-24 : 0x1p-53, most = 8 * unit * (1 + log2((double)n)) * norm;
    ck_assert_msg(distance <= most, "%s of %d (%s): %g, at most %g: seed %u", what, (int)n,
                  is_single ? "f32" : "f64", distance, most, seed);
}

// Rows of n, from which lines are 1 or several elements apart.
static void check_lines(bool is_single, bool is_inverse, int64_t batch, int64_t n,
                        int64_t inner)
{
    int64_t sizes[] = {n, inner}, count = batch * n * inner;
    size_t element = is_single ? 8 : 16, bytes = (size_t)count * element;
    void *x = draw_numbers(is_single, 2 * count), *y = draw_numbers(is_single, 2 * count);
    // Of the two axes the last one, of 1 element, is as it was.
    ck_assert_int_eq(transform(is_single ? JOT_C64 : JOT_C128, is_inverse ? FFT_IFFT : FFT_FFT,
                               batch, inner == 1 ? 1 : 2, sizes, x, bytes, y, bytes),
                     JOT_OK);
    long double complex *a = malloc((size_t)n * inner * sizeof *a),
                        *b = malloc((size_t)n * inner * sizeof *b);
    long double complex *line = malloc((size_t)(n + inner) * 2 * sizeof *line);
    double distance = 0, norm = 0;
    for (int64_t r = 0; r < batch; r++) {
        for (int64_t i = 0; i < n * inner; i++)
            a[i] = load(is_single, x, r * n * inner + i);
        for (int64_t i = 0; i < n; i++)
            define(inner, is_inverse ? 1 : -1, a + i * inner, b + i * inner);
        for (int64_t i = 0; i < inner; i++) {
            for (int64_t j = 0; j < n; j++)
                line[j] = b[j * inner + i];
            define(n, is_inverse ? 1 : -1, line, line + n);
            for (int64_t j = 0; j < n; j++) {
                long double complex want = line[n + j];
                if (is_inverse)
                    want /= (long double)(n * inner);
                long double complex d = load(is_single, y, (r * n + j) * inner + i) - want;
                distance += (double)(creall(d) * creall(d) + cimagl(d) * cimagl(d));
                norm += (double)(creall(want) * creall(want) + cimagl(want) * cimagl(want));
            }
        }
    }
    check_near(is_single, n * inner, sqrt(distance), sqrt(norm), is_inverse ? "ifft" : "fft");
    free(line);
    free(a);
    free(b);
    free(x);
    free(y);
}

// From reals to halves, and back to the reals.
static void check_reals(bool is_single, int64_t batch, int64_t n)
{
    int64_t h = fft_half(n);
    size_t real = is_single ? 4 : 8;
    size_t bytes = (size_t)(batch * n) * real, half_bytes = (size_t)(batch * h) * 2 * real;
    void *x = draw_numbers(is_single, batch * n), *y = draw_numbers(is_single, 2 * batch * h);
    void *z = draw_numbers(is_single, batch * n);
    ck_assert_int_eq(transform(is_single ? JOT_F32 : JOT_F64, FFT_RFFT, batch, 1, &n, x, bytes,
                               y, half_bytes),
                     JOT_OK);
    long double complex *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    double distance = 0, norm = 0;
    for (int64_t r = 0; r < batch; r++) {
        for (int64_t i = 0; i < n; i++)
            a[i] = is_single ? (long double)((float *)x)[r * n + i]
                             : (long double)((double *)x)[r * n + i];
        define(n, -1, a, b);
        for (int64_t k = 0; k < h; k++) {
            double d = (double)cabsl(load(is_single, y, r * h + k) - b[k]);
            distance += d * d;
            norm += (double)(cabsl(b[k]) * cabsl(b[k]));
        }
    }
    check_near(is_single, n, sqrt(distance), sqrt(norm), "rfft");
    // Imaginary parts that no half has are ignored.
    for (int64_t r = 0; r < batch; r++)
        for (int end = 0; end < (n % 2 ? 1 : 2); end++) {
            int64_t at = 2 * (r * h + (end ? h - 1 : 0)) + 1;
            if (is_single)
                ((float *)y)[at] += 3;
            else
                ((double *)y)[at] += 3;
        }
    ck_assert_int_eq(transform(is_single ? JOT_C64 : JOT_C128, FFT_IRFFT, batch, 1, &n, y,
                               half_bytes, z, bytes),
                     JOT_OK);
    distance = norm = 0;
    for (int64_t i = 0; i < batch * n; i++) {
        double u = is_single ? (double)((float *)x)[i] : ((double *)x)[i];
        double v = is_single ? (double)((float *)z)[i] : ((double *)z)[i];
        distance += (u - v) * (u - v);
        norm += u * u;
    }
    check_near(is_single, n, sqrt(distance), sqrt(norm), "irfft of rfft");
    free(a);
    free(b);
    free(x);
    free(y);
    free(z);
}

static void check_all(void)
{
    // Each small length, powers, products, primes with and without a pass of their own.
    static const int64_t more[] = {49,  64,  67,  97,  101, 128,  210,
                                   243, 256, 509, 625, 720, 1009, 1024};
    for (int64_t i = 1; i < 36 + (int64_t)(sizeof more / sizeof *more); i++) {
        int64_t n = i < 36 ? i : more[i - 36];
        for (int k = 0; k < 4; k++) {
            bool is_single = k & 1, is_inverse = k & 2;
            check_lines(is_single, is_inverse, n < 100 ? 18 : 2, n, 1);
            if (n < 70)
                check_lines(is_single, is_inverse, 2, n, 1 + n % 23);
        }
        check_reals(false, n < 100 ? 3 : 1, n);
        check_reals(false, n < 300 ? 11 : 8, n);
        check_reals(true, n < 300 ? 17 : 1, n);
    }
}

// Each test has a process of its own, which loads the library, or not.
START_TEST(fftw_is_right)
{
    if (!fftw_is_there()) {
        printf("skipped: no FFTW\n");
        return;
    }
    check_all();
}
END_TEST

START_TEST(own_passes_are_right)
{
    setenv("JOT_FFTW", "off", 1);
    ck_assert(!fftw_is_there());
    check_all();
}
END_TEST

START_TEST(devices_tell_of_fftw)
{
    char text[8192];
    if (_i)
        setenv("JOT_FFTW", "off", 1);
    jot_devices_format(text, sizeof text);
    const char *line = strstr(text, "\nFFTW");
    ck_assert(line && !strstr(line, "jot's own") == fftw_is_there());
}
END_TEST

// A thousand small rows and one long line, on any number of threads the same bits.
static void check_threads(void)
{
    static const int64_t shapes[][3] = {
        {1000, 60, 1}, {3, 200, 50}, {1, 70001, 1}, {1, 3, 5000}};
    for (int i = 0; i < 4; i++) {
        int64_t count = shapes[i][0] * shapes[i][1] * shapes[i][2];
        size_t bytes = (size_t)count * 8;
        void *x = draw_numbers(true, 2 * count), *y[2];
        for (int k = 0; k < 2; k++) {
            y[k] = draw_numbers(true, 2 * count);
            ck_assert_int_eq(jot_set_threads(k ? 5 : 1), JOT_OK);
            ck_assert_int_eq(transform(JOT_C64, FFT_FFT, shapes[i][0], 2, shapes[i] + 1, x,
                                       bytes, y[k], bytes),
                             JOT_OK);
        }
        ck_assert(!memcmp(y[0], y[1], bytes));
        free(x);
        free(y[0]);
        free(y[1]);
    }
}

START_TEST(threads_give_the_same)
{
    if (_i)
        setenv("JOT_FFTW", "off", 1);
    check_threads();
}
END_TEST

// Rows are apart: an infinity in one changes no other one, whatever is transformed beside it.
START_TEST(rows_are_apart)
{
    static const int64_t lengths[] = {8, 9, 26, 128, 1009};
    if (_i >= 5)
        setenv("JOT_FFTW", "off", 1);
    int64_t n = lengths[_i % 5], h = fft_half(n), rows = 21, bad = 13;
    size_t bytes = (size_t)(rows * n) * 4, half_bytes = (size_t)(rows * h) * 8;
    for (int kind = FFT_RFFT; kind <= FFT_IRFFT; kind++) {
        bool is_real = kind == FFT_RFFT;
        size_t in = is_real ? bytes : half_bytes, out = is_real ? half_bytes : bytes;
        float *x = draw_numbers(true, 2 * rows * h), *y = draw_numbers(true, 2 * rows * h),
              *z = draw_numbers(true, 2 * rows * h);
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(transform(is_real ? JOT_F32 : JOT_C64, (enum fft_kind)kind, rows,
                                       1, &n, x, in, k ? z : y, out),
                             JOT_OK);
            x[in / 4 / (size_t)rows * (size_t)bad] = INFINITY;
        }
        size_t row = out / (size_t)rows;
        ck_assert(!memcmp(y, z, row * (size_t)bad));
        ck_assert(memcmp((char *)y + row * (size_t)bad, (char *)z + row * (size_t)bad, row));
        size_t behind = row * (size_t)(bad + 1);
        ck_assert(!memcmp((char *)y + behind, (char *)z + behind, out - behind));
        free(x);
        free(y);
        free(z);
    }
}
END_TEST

// What a damaged plan may say.
START_TEST(wrong_params_are_refused)
{
    int64_t n = 8, none = 0, many = INT64_MAX;
    char x[64], y[64];
#define REFUSED(...)                                                                           \
    ck_assert_int_eq(transform(__VA_ARGS__), JOT_ERR_IO);                                      \
    ck_assert_str_eq(jot_error_message(), "the launch plan is damaged: a step of routine fft")
    REFUSED(JOT_F32, FFT_FFT, 1, 1, &n, x, 64, y, 64);
    REFUSED(JOT_C64, FFT_RFFT, 1, 1, &n, x, 64, y, 64);
    REFUSED(JOT_C64, FFT_KIND_COUNT, 1, 1, &n, x, 64, y, 64);
    REFUSED(JOT_C64, FFT_FFT, 2, 1, &n, x, 64, y, 64);
    REFUSED(JOT_C64, FFT_FFT, 1, 0, &n, x, 64, y, 64);
    REFUSED(JOT_C64, FFT_FFT, 1, 1, &none, x, 0, y, 0);
    REFUSED(JOT_C64, FFT_FFT, 1, 1, &many, x, 64, y, 64);
    REFUSED(JOT_C64, FFT_FFT, 1, 1, &n, x, 64, y, 56);
    ck_assert_ptr_null(rt_routine_find("nothing"));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, fftw_is_right);
    tcase_add_test(tests, own_passes_are_right);
    tcase_add_loop_test(tests, devices_tell_of_fftw, 0, 2);
    tcase_add_loop_test(tests, threads_give_the_same, 0, 2);
    tcase_add_loop_test(tests, rows_are_apart, 0, 10);
    tcase_add_test(tests, wrong_params_are_refused);
}

int main(void)
{
    const char *given = getenv("JOT_TEST_SEED");
    seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    printf("seed %u\n", seed);
    fflush(stdout);
    srand(seed);
    return suite_run("fft", add_tests);
}
