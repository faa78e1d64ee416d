// SPDX-License-Identifier: Apache-2.0
// Poisson's equation -div grad u = f on the torus [0, 2 pi)^2, solved in Fourier space, and the adjoint
// solution as a gradient: how a functional of u depends on each value of f.
//
// A wave cos(p x) sin(q y) is divided by p^2 + q^2, so that both have closed forms.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64, P = 3, Q = 5 };

static void check(jot_status status)
{
    if (status == JOT_OK)
        return;
    fprintf(stderr, "%s\n", jot_error_message());
    exit(1);
}

// u of mean 0: each Fourier coefficient of f divided by |k|^2, that of the mean by 1 and then dropped.
static jot_value solve(jot_value f)
{
    jot_value k = jot_reshape(jot_fftfreq(JOT_F64, N, 1.0 / N), N, 1);
    jot_value l = jot_rfftfreq(JOT_F64, N, 1.0 / N);
    jot_value k2 = jot_add(jot_square(k), jot_square(l));
    jot_value is_mean = jot_equal(k2, 0);
    jot_value inverse = jot_where(is_mean, 0, jot_div(1, jot_where(is_mean, 1, k2)));
    return jot_irfft2(jot_mul(jot_rfft2(f), inverse), .n = JOT_SIZES(N, N));
}

// The mean of u^2 / 2; its gradient in f is A u / N^2, of the solution operator A, its own adjoint.
static jot_value energy(jot_value f) { return jot_div(jot_mean(jot_square(solve(f))), 2); }

static double wave(int row, int column)
{
    double h = 2 * acos(-1) / N;
    return cos(P * h * row) * sin(Q * h * column);
}

static double largest_error(const jot_array *a, double factor)
{
    const double *x = jot_array_data(a);
    double worst = 0;
    for (int i = 0; i < N * N; i++)
        worst = fmax(worst, fabs(x[i] - factor * wave(i / N, i % N)) / factor);
    return worst;
}

int main(void)
{
    static double data[N * N];
    const double k2 = P * P + Q * Q;
    for (int i = 0; i < N * N; i++)
        data[i] = 1 + k2 * wave(i / N, i % N); // the mean has no solution, and no influence
    jot_array *f = jot_array_from(data, N, N), *u = NULL, *g = NULL;
    jot_executable *forward = jot_jit(jot_fn(solve));
    jot_executable *adjoint = jot_jit(jot_grad(jot_fn(energy)));
    check(jot_call(forward, JOT_IN(f), JOT_OUT(u)));
    check(jot_call(adjoint, JOT_IN(f), JOT_OUT(g)));

    double in_u = largest_error(u, 1), in_g = largest_error(g, 1 / (k2 * N * N));
    printf("largest error of the solution %.1e, of its adjoint %.1e\n", in_u, in_g);
    jot_arrays_release(3, (jot_array *[]){f, u, g});
    jot_executable_release(forward);
    jot_executable_release(adjoint);
    return in_u < 1e-13 && in_g < 1e-12 ? 0 : 1;
}
