// SPDX-License-Identifier: Apache-2.0
// Geometric Brownian motion, dX = mu X dt + sigma X dW, by the method of Euler and Maruyama: all paths are
// the vmap of one over keys.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { PATHS = 4000, STEPS = 100 };
static const double MU = 0.5, SIGMA = 0.4, DT = 1.0 / STEPS;

static jot_value drift(jot_value t, jot_value x) { return (void)t, jot_mul(MU, x); }
static jot_value noise(jot_value t, jot_value x) { return (void)t, jot_mul(SIGMA, x); }

static jot_value ends(jot_value seed)
{
    jot_value key = jot_random_split(jot_random_key(seed), PATHS), x;
    JOT_VMAP ((key), (x)) {
        x = jot_sde_solve(jot_fn(drift), jot_fn(noise), 0, 1, key, jot_ones(JOT_F32),
                          .steps = STEPS);
    }
    return x;
}

int main(void)
{
    static float x[PATHS];
    jot_executable *f = jot_jit(jot_fn(ends));
    jot_array *seed = jot_array_full(JOT_I32, 0), *out;
    if (jot_call(f, JOT_IN(seed), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out, x, PATHS) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    jot_array_release(seed), jot_array_release(out);
    jot_executable_release(f);

    // The moments of the method, which are those of the process but for terms of the size of DT.
    double one = pow(1 + MU * DT, STEPS);
    double two = pow((1 + MU * DT) * (1 + MU * DT) + SIGMA * SIGMA * DT, STEPS);
    double mean = 0, variance = 0, spread = 0;
    for (int i = 0; i < PATHS; i++)
        mean += x[i] / PATHS;
    for (int i = 0; i < PATHS; i++) {
        double square = (x[i] - mean) * (x[i] - mean);
        variance += square / PATHS, spread += square * square / PATHS;
    }
    printf("mean     %.4f, of the process %.4f\n", mean, exp(MU));
    printf("variance %.4f, of the process %.4f\n", variance,
           exp(2 * MU) * expm1(SIGMA * SIGMA));

    // Four standard deviations of a mean over so many paths.
    double few = 4 / sqrt(PATHS);
    bool is_right = fabs(mean - one) < few * sqrt(variance) &&
                    fabs(variance - (two - one * one)) < few * sqrt(spread);
    // The first paths by JAX: tests/golden/make_examples.py.
    static const float jax[] = {2.61582470f,  1.83971155f, 1.48529851f, 2.38881612f,
                                0.812011242f, 1.69823468f, 1.06502807f, 0.742778540f};
    for (size_t i = 0; i < sizeof jax / sizeof *jax; i++)
        is_right = is_right && fabsf(x[i] - jax[i]) < 2e-6f * jax[i];
    return is_right ? 0 : 1;
}
