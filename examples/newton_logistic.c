// SPDX-License-Identifier: Apache-2.0
// Logistic regression by Newton's method: gradient and Hessian from one C function.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 200, N = 4 };

// The mean of log(1 + e^(-y x.w)) with labels y = -1, 1, and a little regularisation.
static jot_value loss(jot_value w, jot_value x, jot_value y)
{
    jot_value margin = jot_mul(y, jot_dot(x, w));
    return jot_add(jot_mean(jot_softplus(jot_neg(margin))), jot_mul(1e-3, jot_dot(w, w)));
}

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

// Solves a x = b in place; a is symmetric and positive definite, so no pivots are needed.
static void solve(double (*a)[N], double *b)
{
    for (int i = 0; i < N; i++)
        for (int r = i + 1; r < N; r++) {
            double factor = a[r][i] / a[i][i];
            for (int c = i; c < N; c++)
                a[r][c] -= factor * a[i][c];
            b[r] -= factor * b[i];
        }
    for (int i = N - 1; i >= 0; i--) {
        for (int c = i + 1; c < N; c++)
            b[i] -= a[i][c] * b[c];
        b[i] /= a[i][i];
    }
}

// Samples around the origin, labelled by a noisy plane.
static void make_data(jot_array **x, jot_array **y)
{
    const double plane[N] = {1, -2, 0.5, 3};
    jot_scope *s = jot_scope_open();
    jot_value keys = jot_random_split(jot_random_key(0), 2);
    jot_value points = jot_random_normal(jot_take(keys, 0), JOT_F64, SAMPLES, N);
    jot_value noise = jot_random_normal(jot_take(keys, 1), JOT_F64, SAMPLES);
    jot_array *p = jot_array_from(plane, N);
    jot_value labels = jot_sign(jot_add(jot_dot(points, p), noise));
    must(jot_eval(points, x));
    must(jot_eval(labels, y));
    jot_scope_close(s);
    jot_array_release(p);
}

int main(void)
{
    jot_array *x, *y;
    make_data(&x, &y);
    jot_executable *df = jot_jit(jot_value_and_grad(jot_fn(loss)));
    jot_executable *d2f = jot_jit(jot_hessian(jot_fn(loss)));
    double w[N] = {0}, g[N], h[N][N], size = 1;
    for (int step = 0; step < 12 && size > 1e-12; step++) {
        jot_array *at = jot_array_from(w, N), *first[2], *second;
        must(jot_call(df, JOT_IN(at, x, y), JOT_OUT(first)));
        must(jot_call(d2f, JOT_IN(at, x, y), JOT_OUT(second)));
        must(jot_array_read(first[1], g, N));
        must(jot_array_read(second, h[0], N * N));
        size = 0;
        for (int i = 0; i < N; i++)
            size = fmax(size, fabs(g[i]));
        printf("step %d: loss %.12f, largest slope %.1e\n", step, jot_array_item(first[0]),
               size);
        solve(h, g);
        for (int i = 0; i < N; i++)
            w[i] -= g[i];
        jot_arrays_release(JOT_OUT(first));
        jot_array_release(second), jot_array_release(at);
    }
    printf("w = %.6f %.6f %.6f %.6f\n", w[0], w[1], w[2], w[3]);
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(df), jot_executable_release(d2f);
    return size < 1e-12 ? 0 : 1;
}
