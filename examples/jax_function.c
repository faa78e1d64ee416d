// SPDX-License-Identifier: Apache-2.0
// A function of JAX in a C program: the loss of a logistic regression (data/loss.py), and its gradient, which
// jot makes, by which the weights that the samples were drawn with are found again.
//
//     jax_function data/loss.jaxexport
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1000, STEPS = 300 };

static void check(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

// Points on a grid, and the sides of a plane that they are on.
static void draw(float (*x)[3], float *y)
{
    for (int i = 0; i < SAMPLES; i++) {
        x[i][0] = (float)(i % 10) - 4.5f;
        x[i][1] = (float)(i / 10 % 10) - 4.5f;
        x[i][2] = (float)(i / 100) - 4.5f;
        y[i] = 2 * x[i][0] - x[i][1] + x[i][2] / 2 > 0 ? 1 : -1;
    }
}

int main(int argc, char **argv)
{
    static float points[SAMPLES][3], sides[SAMPLES];
    draw(points, sides);
    jot_array *x = jot_array_from(&points[0][0], SAMPLES, 3);
    jot_array *y = jot_array_from(sides, SAMPLES), *w = jot_array_full(JOT_F32, 0.1, 3);
    jot_program *p = jot_program_read(argc > 1 ? argv[1] : "examples/data/loss.jaxexport");
    if (!p)
        check(JOT_ERR_IO);
    jot_executable *df = jot_jit(jot_value_and_grad(jot_program_function(p, "main"), 0));
    double loss = 0;
    for (int step = 0; step < STEPS; step++) {
        jot_array *out[2] = {0};
        check(jot_call(df, JOT_IN(w, x, y), JOT_OUT(out)));
        loss = jot_array_item(out[0]);
        float at[3], slope[3];
        check(jot_array_read(w, at, 3));
        check(jot_array_read(out[1], slope, 3));
        for (int k = 0; k < 3; k++)
            at[k] -= slope[k];
        jot_array_release(w);
        w = jot_array_from(at, 3);
        jot_arrays_release(JOT_OUT(out));
    }
    float found[3];
    check(jot_array_read(w, found, 3));
    printf("loss %.4f, weights in the ratio %.2f : %.2f : 1\n", loss, found[0] / found[2],
           found[1] / found[2]);
    bool ok = loss < 0.05 && fabs(found[0] / found[2] - 4) < 0.4 &&
              fabs(found[1] / found[2] + 2) < 0.2;
    jot_array_release(w), jot_array_release(x), jot_array_release(y);
    jot_executable_release(df);
    jot_program_release(p);
    return !ok;
}
