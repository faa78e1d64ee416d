// SPDX-License-Identifier: Apache-2.0
// A mass on a spring, 500 steps of 0.01 s, and the stiffness that puts it where it is wanted: the
// gradient goes through the whole simulation.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 500 };
static const double DT = 0.01, TARGET = 0.5;

// x(5 s) from x = 1 m at rest, with 1 kg and stiffness k, by the symplectic Euler method.
static jot_value position(jot_value k)
{
    jot_value x = jot_from(1.0), v = jot_from(0.0);
    JOT_FOR (i, STEPS, x, v) {
        v = jot_sub(v, jot_mul(DT, jot_mul(k, x)));
        x = jot_add(x, jot_mul(DT, v));
    }
    return x;
}

static jot_value misfit(jot_value k) { return jot_square(jot_sub(position(k), TARGET)); }

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

static double number(jot_executable *f, jot_array *k)
{
    jot_array *y;
    must(jot_call(f, JOT_IN(k), JOT_OUT(y)));
    double value = jot_array_item(y);
    jot_array_release(y);
    return value;
}

int main(void)
{
    jot_executable *x = jot_jit(jot_fn(position)), *slope = jot_jit(jot_grad(jot_fn(misfit)));
    double k = 1;
    for (int i = 0; i < 200; i++) {
        jot_array *at = jot_array_full(JOT_F64, k);
        k -= 0.02 * number(slope, at);
        jot_array_release(at);
    }
    jot_array *at = jot_array_full(JOT_F64, k);
    // The method in closed form: it turns by an angle a step.
    double angle = 2 * asin(sqrt(k) * DT / 2);
    double end = number(x, at), exact = cos((STEPS + 0.5) * angle) / cos(angle / 2);
    printf("stiffness %.4f N/m: the mass is at %.4f m after 5 s\n", k, end);
    jot_array_release(at);
    jot_executable_release(x), jot_executable_release(slope);
    return fabs(k - 1.0944) < 5e-5 && fabs(end - TARGET) < 1e-6 && fabs(end - exact) < 1e-12
               ? 0
               : 1;
}
