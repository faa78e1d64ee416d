// SPDX-License-Identifier: Apache-2.0
// The variational energy of a trial wave function and its gradient in 200 parameters, and what the
// gradient costs next to finite differences.
//
//     qmc_energy [--seed N] [--dtype f32|f64]
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 1000, PARAMETERS = 100, CALLS = 100 };

static jot_value energy(jot_value w, jot_value alpha, jot_value x)
{
    return jot_mean(jot_mul(jot_dot(x, w), jot_exp(jot_neg(jot_dot(x, alpha)))));
}

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Copies the numbers out and returns their norm.
static double take(const jot_array *a, double *out)
{
    const void *data = jot_array_data(a);
    double sum = 0;
    for (size_t i = 0; i < jot_array_size(a); i++) {
        out[i] = jot_array_dtype(a) == JOT_F64 ? ((const double *)data)[i]
                                               : (double)((const float *)data)[i];
        sum += out[i] * out[i];
    }
    return sqrt(sum);
}

// 0.1 everywhere, and h more in one place.
static jot_array *moved(jot_dtype dtype, int place, double h)
{
    const int64_t dims[] = {PARAMETERS, JOT_END};
    double wide[PARAMETERS];
    float narrow[PARAMETERS];
    for (int k = 0; k < PARAMETERS; k++)
        narrow[k] = (float)(wide[k] = k == place ? 0.1 + h : 0.1);
    return jot_array_copy(dtype, dtype == JOT_F64 ? (void *)wide : (void *)narrow, dims);
}

// The compiled energy with h more in one of the 200 parameters.
static double energy_at(jot_executable *f, jot_array *x, int place, double h)
{
    jot_dtype dtype = jot_array_dtype(x);
    jot_array *in[] = {moved(dtype, place, h), moved(dtype, place - PARAMETERS, h)}, *e;
    must(jot_call(f, JOT_IN(in, x), JOT_OUT(e)));
    double value = jot_array_item(e);
    jot_array_release(e);
    jot_arrays_release(JOT_OUT(in));
    return value;
}

int main(int argc, char **argv)
{
    long seed = 0;
    jot_dtype dtype = JOT_F32;
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1] ? argv[i + 1] : "";
        bool is_wide = !strcmp(value, "f64");
        if (!strcmp(argv[i], "--seed") && *value && !value[strspn(value, "0123456789")])
            seed = atol(value);
        else if (!strcmp(argv[i], "--dtype") && (is_wide || !strcmp(value, "f32")))
            dtype = is_wide ? JOT_F64 : JOT_F32;
        else
            return fprintf(stderr, "usage: %s [--seed N] [--dtype f32|f64]\n", argv[0]), 2;
    }
    jot_executable *f = jot_jit(jot_fn(energy)), *df = jot_jit(jot_grad(jot_fn(energy), 0, 1));
    jot_array *x, *e, *g[2];
    jot_scope *s = jot_scope_open();
    must(jot_eval(jot_random_normal(jot_random_key(seed), dtype, SAMPLES, PARAMETERS), &x));
    jot_scope_close(s);

    jot_array *w = jot_array_full(dtype, 0.1, PARAMETERS), *alpha = jot_array_retain(w);
    must(jot_call(f, JOT_IN(w, alpha, x), JOT_OUT(e)));
    must(jot_call(df, JOT_IN(w, alpha, x), JOT_OUT(g)));
    double gradient[2 * PARAMETERS], difference[2 * PARAMETERS], worst = 0;
    double dw = take(g[0], gradient), dalpha = take(g[1], gradient + PARAMETERS);
    printf("energy             %#.7g\nnorm of dE/dw      %#.7g\nnorm of dE/dalpha  %#.7g\n",
           jot_array_item(e), dw, dalpha);

    double start = seconds();
    for (int i = 0; i < CALLS; i++) {
        jot_arrays_release(JOT_OUT(g));
        must(jot_call(df, JOT_IN(w, alpha, x), JOT_OUT(g)));
    }
    double compiled = (seconds() - start) / CALLS, h = dtype == JOT_F64 ? 1e-5 : 1e-2;
    start = seconds();
    for (int i = 0; i < 2 * PARAMETERS; i++)
        difference[i] = (energy_at(f, x, i, h) - energy_at(f, x, i, -h)) / (2 * h);
    double numeric = seconds() - start;
    printf("gradient           %.3g us, finite differences %.3g us: %.0f times as long\n",
           1e6 * compiled, 1e6 * numeric, numeric / compiled);
    for (int i = 0; i < 2 * PARAMETERS; i++)
        worst = fmax(worst, fabs(gradient[i] - difference[i]));
    jot_arrays_release(JOT_OUT(g));
    jot_array_release(e), jot_array_release(x), jot_array_release(w), jot_array_release(alpha);
    jot_executable_release(f), jot_executable_release(df);
    printf("largest difference %.1e of the norm\n", worst / dalpha);
    return worst / dalpha < (dtype == JOT_F64 ? 1e-7 : 1e-3) ? 0 : 1;
}
