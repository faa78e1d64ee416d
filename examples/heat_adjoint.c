// SPDX-License-Identifier: Apache-2.0
// Heat that spreads on a torus for 100 steps, and how the misfit to what is measured at the end
// depends on each place at the start: one gradient through all steps.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { N = 64, STEPS = 100 };
static const double RATE = 0.1;

static jot_value spread(jot_value u)
{
    JOT_FOR (i, STEPS, u) {
        jot_value rows = jot_add(jot_roll(u, 1, 0), jot_roll(u, -1, 0));
        jot_value columns = jot_add(jot_roll(u, 1, 1), jot_roll(u, -1, 1));
        u = jot_add(u, jot_mul(RATE, jot_sub(jot_add(rows, columns), jot_mul(4, u))));
    }
    return u;
}

static jot_value misfit(jot_value u, jot_value measured)
{
    return jot_mul(0.5, jot_sum(jot_square(jot_sub(spread(u), measured))));
}

// The adjoint by hand: a step is a symmetric matrix A, so the gradient is A^100 (A^100 u - d).
static jot_value adjoint(jot_value u, jot_value measured)
{
    return spread(jot_sub(spread(u), measured));
}

static bool call(jot_executable *f, jot_array *u, jot_array *measured, double *to, size_t n)
{
    jot_array *out;
    if (jot_call(f, JOT_IN(u, measured), JOT_OUT(out)) != JOT_OK)
        return false;
    bool is_read = jot_array_read(out, to, n) == JOT_OK;
    jot_array_release(out);
    return is_read;
}

int main(void)
{
    static double u[N * N], d[N * N], gradient[N * N], by_hand[N * N];
    jot_executable *f = jot_jit(jot_fn(misfit)), *df = jot_jit(jot_grad(jot_fn(misfit)));
    jot_executable *check = jot_jit(jot_fn(adjoint));
    for (int i = 0; i < N * N; i++) {
        u[i] = i / N / 8 % 2 == i % N / 8 % 2; // a chessboard
        d[i] = sin(0.1 * i);
    }
    jot_array *at = jot_array_from(u, N, N), *measured = jot_array_from(d, N, N);
    bool is_well =
        call(df, at, measured, gradient, N * N) && call(check, at, measured, by_hand, N * N);

    // Central differences here and there; the misfit is quadratic: only rounding is in them.
    double hand = 0, largest = 0, difference = 0, h = 0.1;
    for (int i = 0; i < N * N; i += 555) {
        double keep = u[i], side[2];
        for (int k = 0; k < 2; k++) {
            u[i] = keep + (k ? -h : h);
            jot_array *moved = jot_array_from(u, N, N);
            is_well = is_well && call(f, moved, measured, &side[k], 1);
            jot_array_release(moved);
        }
        u[i] = keep;
        difference = fmax(difference, fabs((side[0] - side[1]) / (2 * h) - gradient[i]));
    }
    for (int i = 0; i < N * N; i++) {
        hand = fmax(hand, fabs(gradient[i] - by_hand[i]));
        largest = fmax(largest, fabs(gradient[i]));
    }
    if (is_well)
        printf("gradient of at most %.4f, by hand the same to %.1e, by differences to %.1e\n",
               largest, hand, difference);
    else
        fprintf(stderr, "%s\n", jot_error_message());
    jot_array_release(at), jot_array_release(measured);
    jot_executable_release(f), jot_executable_release(df), jot_executable_release(check);
    return is_well && largest > 0.1 && hand < 1e-13 && difference < 1e-9 ? 0 : 1;
}
