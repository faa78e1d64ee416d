// SPDX-License-Identifier: Apache-2.0
// Dormand and Prince's method with steps as long as the error allows, and the derivative of what it
// finds in a parameter.  Under vmap every equation has its own steps and ends by itself.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { STAGES = 7, LANES = 6 };
static const double END = 3, START = 0.05, TOLERANCE = 1e-10;

// The method's table; its last row is the solution, and `error` how it differs from order 4.
static const double table[STAGES][STAGES] = {
    {0},
    {1. / 5},
    {3. / 40, 9. / 40},
    {44. / 45, -56. / 15, 32. / 9},
    {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
    {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
    {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
};
static const double error[STAGES] = {71. / 57600,       0,         -71. / 16695, 71. / 1920,
                                     -17253. / 339200., 22. / 525, -1. / 40};

// Logistic growth: y' = r y (1 - y).
static jot_value slope(jot_value r, jot_value y)
{
    return jot_mul(r, jot_mul(y, jot_sub(1, y)));
}

static jot_value combined(int n, const double *weights, const jot_value *k)
{
    jot_value sum = jot_from(0.0);
    for (int i = 0; i < n; i++)
        sum = weights[i] ? jot_add(sum, jot_mul(weights[i], k[i])) : sum;
    return sum;
}

// y(END) from y(0) = START.
static jot_value grown(jot_value r)
{
    jot_value y = jot_from(START), left = jot_from(END), h = jot_from(0.01);
    JOT_WHILE ((y, left, h), jot_greater(left, 0), .bound = 1000) {
        jot_value k[STAGES], next = y;
        for (int i = 0; i < STAGES; i++) {
            next = jot_add(y, jot_mul(h, combined(i, table[i], k)));
            k[i] = slope(r, next);
        }
        jot_value wrong = jot_abs(jot_mul(h, combined(STAGES, error, k)));
        jot_value ratio = jot_stop_gradient(jot_div(jot_add(wrong, 1e-30), TOLERANCE));
        jot_value is_good = jot_less_equal(ratio, 1);
        y = jot_where(is_good, next, y);
        left = jot_where(is_good, jot_sub(left, h), left);
        h = jot_mul(h, jot_clip(jot_mul(0.9, jot_pow(ratio, -0.2)), 0.2, 5.0));
        h = jot_minimum(h, left);
    }
    return y;
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
