// SPDX-License-Identifier: Apache-2.0
// The loop of README.md, against the closed form of the method.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

static jot_value position(jot_value k)
{
    jot_value x = jot_from(1.0), v = jot_from(0.0);
    JOT_FOR (i, 500, x, v) {
        v = jot_sub(v, jot_mul(0.01, jot_mul(k, x)));
        x = jot_add(x, jot_mul(0.01, v));
    }
    return x;
}

// The method turns by an angle a step.
static double exact(double k)
{
    double half = asin(sqrt(k) * 0.005);
    return cos(1001 * half) / cos(half);
}

int main(void)
{
    enum { LANES = 1000 };
    static double stiffness[LANES], x[LANES], slope[LANES];
    for (int i = 0; i < LANES; i++)
        stiffness[i] = 1 + 0.003 * i;
    jot_array *k = jot_array_from(stiffness, LANES), *out[2];
    jot_executable *f = jot_jit(jot_vmap(jot_value_and_grad(jot_fn(position))));
    if (jot_call(f, JOT_IN(k), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[0], x, LANES) != JOT_OK ||
        jot_array_read(out[1], slope, LANES) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    double worst = 0, h = 1e-5;
    for (int i = 0; i < LANES; i++) {
        double difference = (exact(stiffness[i] + h) - exact(stiffness[i] - h)) / (2 * h);
        worst = fmax(worst, fabs(x[i] - exact(stiffness[i])));
        worst = fmax(worst, 1e-3 * fabs(slope[i] - difference));
    }
    printf("x and dx/dk of %d springs, off by %.1e at most\n", LANES, worst);
    jot_array_release(k), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f);
    return worst < 1e-12 ? 0 : 1;
}
