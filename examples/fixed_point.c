// SPDX-License-Identifier: Apache-2.0
// The fixed point x = cos(c x) by iteration, and its derivative in c in two ways: through the
// iteration, and by the implicit function theorem, dx/dc = -x sin(c x) / (1 + c sin(c x)).
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { ITERATIONS = 100, LANES = 5 };

static jot_value fixed_point(jot_value c)
{
    jot_value x = jot_ones_like(c);
    JOT_FOR (i, ITERATIONS, x) {
        x = jot_cos(jot_mul(c, x));
    }
    return x;
}

// A rule of its own for the derivative: f(c, dc) = dx.
static jot_value implicit(jot_value c, jot_value dc)
{
    jot_value x = fixed_point(c), s = jot_sin(jot_mul(c, x));
    return jot_mul(dc, jot_div(jot_neg(jot_mul(x, s)), jot_add(1, jot_mul(c, s))));
}

int main(void)
{
    const double c[LANES] = {0.1, 0.3, 0.5, 0.7, 0.9};
    jot_function f = jot_fn(fixed_point), g = jot_custom_jvp(f, jot_fn(implicit));
    jot_executable *value = jot_jit(jot_vmap(f)), *through = jot_jit(jot_vmap(jot_grad(f))),
                   *around = jot_jit(jot_vmap(jot_grad(g)));
    jot_array *in = jot_array_from(c, LANES), *out[3];
    double x[LANES], d[LANES], e[LANES], worst = 0;
    if (jot_call(value, JOT_IN(in), JOT_OUT(out[0])) != JOT_OK ||
        jot_call(through, JOT_IN(in), JOT_OUT(out[1])) != JOT_OK ||
        jot_call(around, JOT_IN(in), JOT_OUT(out[2])) != JOT_OK ||
        jot_array_read(out[0], x, LANES) != JOT_OK ||
        jot_array_read(out[1], d, LANES) != JOT_OK ||
        jot_array_read(out[2], e, LANES) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    for (int i = 0; i < LANES; i++) {
        double s = sin(c[i] * x[i]), exact = -x[i] * s / (1 + c[i] * s);
        printf("c %.1f  x %.10f  dx/dc %.10f  implicit %.10f\n", c[i], x[i], d[i], e[i]);
        worst = fmax(worst, fabs(x[i] - cos(c[i] * x[i])));
        worst = fmax(worst, fmax(fabs(d[i] - exact), fabs(e[i] - exact)));
    }
    jot_arrays_release(JOT_OUT(out));
    jot_array_release(in);
    jot_executable_release(value), jot_executable_release(through);
    jot_executable_release(around);
    return worst < 1e-10 ? 0 : 1;
}
