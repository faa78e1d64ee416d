// SPDX-License-Identifier: Apache-2.0
// An ensemble of Lorenz systems by the classical Runge-Kutta method: how fast neighbours part.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MEMBERS = 256, STEPS = 1000 };
static const double DT = 0.01;

struct state {
    jot_value x, y, z;
};

static struct state slope(struct state s)
{
    return (struct state){
        jot_mul(10, jot_sub(s.y, s.x)),
        jot_sub(jot_mul(s.x, jot_sub(28, s.z)), s.y),
        jot_sub(jot_mul(s.x, s.y), jot_mul(8. / 3, s.z)),
    };
}

static struct state moved(struct state s, double h, struct state d)
{
    return (struct state){jot_add(s.x, jot_mul(h, d.x)), jot_add(s.y, jot_mul(h, d.y)),
                          jot_add(s.z, jot_mul(h, d.z))};
}

static struct state step(struct state s)
{
    struct state a = slope(s), b = slope(moved(s, DT / 2, a)), c = slope(moved(s, DT / 2, b)),
                 d = slope(moved(s, DT, c));
    s = moved(s, DT / 6, a);
    s = moved(s, DT / 3, b);
    s = moved(s, DT / 3, c);
    return moved(s, DT / 6, d);
}

static jot_value end_of(jot_value x)
{
    struct state s = {x, jot_ones_like(x), jot_ones_like(x)};
    JOT_FOR (i, STEPS, s) {
        s = step(s);
    }
    return jot_stack(0, s.x, s.y, s.z);
}

// The same member in C.
static double end_in_c(double start)
{
    double s[3] = {start, 1, 1}, k[4][3];
    static const double at[] = {0, 0.5, 0.5, 1}, weight[] = {1. / 6, 1. / 3, 1. / 3, 1. / 6};
    for (int i = 0; i < STEPS; i++) {
        for (int j = 0; j < 4; j++) {
            double p[3];
            for (int c = 0; c < 3; c++)
                p[c] = s[c] + (j ? at[j] * DT * k[j - 1][c] : 0);
            k[j][0] = 10 * (p[1] - p[0]);
            k[j][1] = p[0] * (28 - p[2]) - p[1];
            k[j][2] = p[0] * p[1] - 8. / 3 * p[2];
        }
        for (int j = 0; j < 4; j++)
            for (int c = 0; c < 3; c++)
                s[c] += weight[j] * DT * k[j][c];
    }
    return s[0];
}

int main(void)
{
    double start[MEMBERS], end[3 * MEMBERS], low = INFINITY, high = -INFINITY, mean = 0;
    for (int i = 0; i < MEMBERS; i++)
        start[i] = 1 + 1e-9 * i;
    jot_executable *f = jot_jit(jot_vmap_axes(jot_fn(end_of), JOT_AXES(0), JOT_AXES(1)));
    jot_array *in = jot_array_from(start, MEMBERS), *out;
    if (jot_call(f, JOT_IN(in), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out, end, 3 * MEMBERS) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    for (int i = 0; i < MEMBERS; i++) {
        low = fmin(low, end[i]);
        high = fmax(high, end[i]);
        mean += end[i] / MEMBERS;
    }
    printf("x(10 s) of %d members, 1e-9 apart at first: %.6f, and %.1e apart\n", MEMBERS, mean,
           high - low);
    double deviation = fabs(end[0] - end_in_c(start[0]));
    jot_array_release(in), jot_array_release(out);
    jot_executable_release(f);
    return deviation < 1e-4 && high - low < 1 && high > low ? 0 : 1;
}
