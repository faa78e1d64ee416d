// SPDX-License-Identifier: Apache-2.0
// An equation that is solved with steps as long as the error allows, and the derivative of what is found
// in a parameter.  Under vmap every equation has its own steps and ends by itself.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { LANES = 6 };
static const double END = 3, START = 0.05;

// Logistic growth: y' = r y (1 - y).
static jot_value slope(jot_value t, jot_value y, jot_value r)
{
    (void)t;
    return jot_mul(r, jot_mul(y, jot_sub(1, y)));
}

// y(END) from y(0) = START.
static jot_value grown(jot_value r)
{
    return jot_ode_solve(jot_fn(slope), 0, END, jot_from(START), .method = JOT_ODE_DOPRI5,
                         .parameters = JOT_PARAMETERS(r), .rtol = 1e-9, .atol = 1e-10);
}

int main(void)
{
    const double r[LANES] = {0.25, 0.5, 1, 2, 4, 8};
    double y[LANES], dy[LANES], worst = 0;
    jot_executable *f = jot_jit(jot_vmap(jot_value_and_grad(jot_fn(grown))));
    jot_array *in = jot_array_from(r, LANES), *out[2];
    if (jot_call(f, JOT_IN(in), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[0], y, LANES) != JOT_OK ||
        jot_array_read(out[1], dy, LANES) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    for (int i = 0; i < LANES; i++) {
        double exact = 1 / (1 + (1 / START - 1) * exp(-r[i] * END));
        double slope = END * exact * (1 - exact);
        printf("r %.2f  y(%g) %.10f  dy/dr %.10f\n", r[i], END, y[i], dy[i]);
        worst = fmax(worst, fmax(fabs(y[i] - exact), fabs(dy[i] - slope)));
    }
    printf("largest error %.1e\n", worst);
    jot_array_release(in), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f);
    return worst < 1e-8 ? 0 : 1;
}
