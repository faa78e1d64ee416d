// SPDX-License-Identifier: Apache-2.0
// Whiles around products of the library, which a GPU runs as nodes of graphs, and products that do not
// wait for one another: the first call is step by step there, those after it are replayed.
#include "support/suite.h"
#include "trace_support.h"

enum { N = 208, CALLS = 4 };

static int trips;

static jot_value product(jot_value a, jot_value x) { return jot_mul(jot_matmul(a, x), 0.25); }

static jot_value one(jot_value a, jot_value x)
{
    jot_value i = jot_zeros(JOT_I32);
    JOT_WHILE ((x, i), jot_less(i, trips)) {
        x = jot_sub(product(a, x), x);
        i = jot_add(i, 1);
    }
    return x;
}

// The carry of an old x goes round with it.
static jot_value two(jot_value a, jot_value x)
{
    jot_value i = jot_zeros(JOT_I32), y = jot_mul(x, 0.5);
    JOT_WHILE ((x, y, i), jot_less(i, trips)) {
        jot_value next = jot_sub(product(a, x), y);
        y = x;
        x = next;
        i = jot_add(i, 1);
    }
    return jot_add(x, jot_mul(y, 10));
}

static jot_value three(jot_value a, jot_value x)
{
    jot_value i = jot_zeros(JOT_I32), y = jot_mul(x, 0.5), z = jot_mul(x, 0.25);
    JOT_WHILE ((x, y, z, i), jot_less(i, trips)) {
        jot_value next = jot_sub(product(a, x), z);
        z = y;
        y = x;
        x = next;
        i = jot_add(i, 1);
    }
    return jot_add(jot_add(x, jot_mul(y, 10)), jot_mul(z, 100));
}

static jot_value nested(jot_value a, jot_value x)
{
    jot_value i = jot_zeros(JOT_I32);
    JOT_WHILE ((x, i), jot_less(i, trips)) {
        jot_value y = x, old = jot_mul(x, 0.5), k = jot_zeros(JOT_I32);
        JOT_WHILE ((y, old, k), jot_less(k, i)) {
            jot_value next = jot_sub(product(a, y), old);
            old = y;
            y = next;
            k = jot_add(k, 1);
        }
        x = jot_sub(product(a, y), x);
        i = jot_add(i, 1);
    }
    return x;
}

// The same in C.
static void multiply(const float *a, const double *x, double *out)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i * N + k] * x[k * N + j];
            out[i * N + j] = 0.25 * sum;
        }
}

// x, y, z = a x / 4 - (x, y or z), x, y, by which of them is subtracted.
static void in_c(const float *a, int age, int count, double *x, double *y, double *z)
{
    static double next[N * N];
    double *old[] = {x, y, z};
    for (int t = 0; t < count; t++) {
        multiply(a, x, next);
        for (int i = 0; i < N * N; i++)
            next[i] -= old[age][i];
        memcpy(z, y, sizeof next);
        memcpy(y, x, sizeof next);
        memcpy(x, next, sizeof next);
    }
}

static void expected(const float *a, const float *start, int which, double *x)
{
    static double y[N * N], z[N * N], inner[N * N];
    for (int i = 0; i < N * N; i++) {
        x[i] = start[i];
        y[i] = 0.5 * x[i];
        z[i] = 0.25 * x[i];
    }
    if (which < 3) {
        in_c(a, which, trips, x, y, z);
        for (int i = 0; i < N * N; i++)
            x[i] += which == 0 ? 0 : 10 * y[i] + (which == 2 ? 100 * z[i] : 0);
        return;
    }
    for (int t = 0; t < trips; t++) {
        memcpy(inner, x, sizeof inner);
        for (int i = 0; i < N * N; i++)
            y[i] = 0.5 * x[i];
        in_c(a, 1, t, inner, y, z);
        multiply(a, inner, y);
        for (int i = 0; i < N * N; i++)
            x[i] = y[i] - x[i];
    }
}

START_TEST(whiles_are_replayed)
{
    static jot_value (*const all[])(jot_value, jot_value) = {one, two, three, nested};
    static float data[2][N * N], y[N * N], first[N * N];
    static double wanted[N * N];
    const int64_t dims[] = {N, N, JOT_END};
    jot_array *in[2], *out;
    trips = _i % 5;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < N * N; i++)
            data[k][i] = sinf((float)(i + 1) * (0.7f + (float)k)) * (k ? 1 : 0.2f);
        in[k] = jot_array_copy(JOT_F32, data[k], dims);
    }
    jot_executable *f = jot_jit(jot_fn(all[_i / 5]));
    expected(data[0], data[1], _i / 5, wanted);
    double largest = 0;
    for (int i = 0; i < N * N; i++)
        largest = fmax(largest, fabs(wanted[i]));
    for (int call = 0; call < CALLS; call++) {
        must(jot_call_list(f, 2, in, 1, &out));
        must(jot_array_read(out, y, N * N));
        jot_array_release(out);
        for (int i = 0; i < N * N; i++)
            ck_assert_double_le(fabs(y[i] - wanted[i]), 1e-5 * largest);
        if (call)
            ck_assert_mem_eq(y, first, sizeof y);
        memcpy(first, y, sizeof y);
    }
    const char *text = jot_executable_text(f, "schedule");
    if (jot_device_kind_of(NULL) == JOT_CUDA) {
        ck_assert_msg(strstr(text, "while: a node of a graph"), "%s", text);
        ck_assert_ptr_null(strstr(text, "not in a graph"));
    }
    jot_executable_release(f);
    jot_arrays_release(2, in);
}
END_TEST

static jot_value loss(jot_value v, jot_value w, jot_value x)
{
    jot_value hidden = jot_relu(jot_matmul(x, v));
    return jot_mean(jot_square(jot_sin(jot_matmul(hidden, w))));
}

enum { SAMPLES = 96, INPUTS = 64, HIDDEN = 80, OUTPUTS = 72 };

// Gradients of the two layers, and of what comes in, are products that two of them read the same for.
START_TEST(gradients_are_replayed)
{
    static const int64_t dims[3][3] = {
        {INPUTS, HIDDEN, JOT_END}, {HIDDEN, OUTPUTS, JOT_END}, {SAMPLES, INPUTS, JOT_END}};
    static float data[SAMPLES * HIDDEN], got[CALLS + 1][3][SAMPLES * HIDDEN];
    jot_array *in[3], *out[3];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < dims[k][0] * dims[k][1]; i++)
            data[i] = sinf((float)(i + 1) * (0.7f + (float)k)) * 0.3f;
        in[k] = jot_array_copy(JOT_F32, data, dims[k]);
    }
    jot_executable *f = NULL;
    for (int call = 0; call <= CALLS; call++) {
        if (call == 0 || call == CALLS) {
            setenv("JOT_BACKEND", call ? "eval" : "", 1);
            jot_executable_release(f);
            f = jot_jit(jot_grad(jot_fn(loss), 0, 1, 2));
        }
        must(jot_call_list(f, 3, in, 3, out));
        for (int k = 0; k < 3; k++)
            must(jot_array_read(out[k], got[call][k], dims[k][0] * dims[k][1]));
        jot_arrays_release(3, out);
    }
    setenv("JOT_BACKEND", "", 1);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < dims[k][0] * dims[k][1]; i++) {
            ck_assert_float_le(fabsf(got[0][k][i] - got[CALLS][k][i]), 1e-7f);
            for (int call = 1; call < CALLS; call++)
                ck_assert_float_eq(got[call][k][i], got[0][k][i]);
        }
    jot_executable_release(f);
    jot_arrays_release(3, in);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 200);
    tcase_add_loop_test(t, whiles_are_replayed, 0, 4 * 5);
    tcase_add_test(t, gradients_are_replayed);
}

int main(void) { return suite_run("products in loops", add_tests); }
