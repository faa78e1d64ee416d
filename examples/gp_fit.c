// SPDX-License-Identifier: Apache-2.0
// A Gaussian process learns how smooth, how large and how noisy a curve is that it sees at some points:
// by L-BFGS it finds the numbers that make what it sees most likely.  Then it says what the curve is
// between the points, and how sure it is of that.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { POINTS = 60, ASKED = 9 };
static const double NOISE = 0.1;

// Logarithms, so that any number will do.
struct scales {
    jot_value length, size, noise;
};

static jot_value covariance(struct scales s, jot_value a, jot_value b)
{
    jot_value d = jot_sub(jot_expand_dims(a, 1), jot_expand_dims(b, 0));
    jot_value z = jot_div(d, jot_exp(s.length));
    return jot_mul(jot_exp(jot_mul(2, s.size)), jot_exp(jot_mul(-0.5, jot_square(z))));
}

// The factor of the covariance of what is seen.
static jot_value factor(struct scales s, jot_value x)
{
    jot_value noise = jot_mul(jot_exp(jot_mul(2, s.noise)), jot_eye(JOT_F64, POINTS, POINTS));
    return jot_cholesky(jot_add(covariance(s, x, x), noise));
}

struct seen {
    jot_value x, y;
};

// - log p(y), without what does not depend on the scales.
static void unlikeliness(const jot_value *in, jot_value *out, void *ctx)
{
    const struct seen *seen = ctx;
    jot_value l = factor((struct scales){in[0], in[1], in[2]}, seen->x);
    jot_value fit = jot_dot(seen->y, jot_cho_solve(l, seen->y));
    jot_value volume = jot_sum(jot_log(jot_diagonal(l, 0, 0, 1)));
    out[0] = jot_add(jot_mul(0.5, fit), volume);
}

struct answer {
    struct scales scales;
    jot_value mean, deviation, steps;
};

static struct answer learn(jot_value x, jot_value y, jot_value asked)
{
    struct seen *seen = jot_trace_memory(sizeof *seen);
    *seen = (struct seen){x, y};
    jot_value zero = jot_zeros(JOT_F64);
    struct answer a = {.scales = {zero, zero, zero}};
    a.steps =
        jot_lbfgs(jot_function_make(unlikeliness, 3, 1, seen), &a.scales, .tol = 1e-6).steps;
    jot_value l = factor(a.scales, x), k = covariance(a.scales, x, asked);
    jot_value known = jot_solve_triangular(l, k, .lower = true);
    jot_value prior = jot_exp(jot_mul(2, a.scales.size));
    a.mean = jot_dot(jot_cho_solve(l, y), k);
    a.deviation = jot_sqrt(jot_sub(prior, jot_sum(jot_square(known), 0)));
    return a;
}
JOT_FUNCTION(learn_fn, learn, struct answer, jot_value, jot_value, jot_value);

static double curve(double x) { return sin(2 * x) + 0.5 * x; }

int main(void)
{
    double x[POINTS], y[POINTS], asked[ASKED], mean[ASKED], deviation[ASKED];
    for (int i = 0; i < POINTS; i++) {
        x[i] = -3 + 6.0 * i / POINTS;
        // Noise of a mean square of NOISE^2, from a sequence that fills its interval evenly.
        y[i] = curve(x[i]) + NOISE * sqrt(12) * (fmod((i + 1) * 0.6180339887498949, 1) - 0.5);
    }
    for (int i = 0; i < ASKED; i++)
        asked[i] = -2.9 + 0.7 * i;
    jot_array *in[] = {jot_array_from(x, POINTS), jot_array_from(y, POINTS),
                       jot_array_from(asked, ASKED)};
    jot_array *out[6];
    jot_executable *f = jot_jit(learn_fn);
    if (jot_call(f, JOT_IN(in), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[3], mean, ASKED) != JOT_OK ||
        jot_array_read(out[4], deviation, ASKED) != JOT_OK)
        return fprintf(stderr, "%s\n", jot_error_message()), 1;
    double noise = exp(jot_array_item(out[2]));
    int is_good = fabs(noise - NOISE) < 0.3 * NOISE;
    printf("%g steps: length %.3f, size %.3f, noise %.4f\n", jot_array_item(out[5]),
           exp(jot_array_item(out[0])), exp(jot_array_item(out[1])), noise);
    for (int i = 0; i < ASKED; i++) {
        printf("x %4.1f  process %7.4f +- %.4f  curve %7.4f\n", asked[i], mean[i], deviation[i],
               curve(asked[i]));
        is_good = is_good && fabs(mean[i] - curve(asked[i])) < 3 * deviation[i];
    }
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out)),
        jot_executable_release(f);
    return !is_good;
}
