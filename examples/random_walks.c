// SPDX-License-Identifier: Apache-2.0
// Random walks of steps -1 and 1, two laws of theirs.  The walks are a vmap over keys.
//
// The arcsine law: of 2 n steps, 2 k are on the positive side with probability
//     u(k) u(n - k),  u(k) = binomial(2 k, k) / 4^k,
// which is least in the middle: most walks stay on one side for most of the time.  First passage:
// the level r > 0 is not reached in t steps with probability P(-r <= S(t) < r), the principle of
// reflection.  Feller, An Introduction to Probability Theory I, chapter III.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { WALKS = 20000, STEPS = 40, LEVEL = 5 };

// Of each walk how many of its steps are on the positive side, and how many pass before it is at
// LEVEL, or STEPS where it never is.
static void walk(jot_value key, jot_value *out_positive, jot_value *out_before)
{
    jot_value steps = jot_random_rademacher(key, JOT_I32, STEPS);
    jot_value after = jot_cumsum(steps, 0), before = jot_sub(after, steps);
    jot_value is_above = jot_greater(jot_add(after, before), 0);
    jot_value is_below = jot_less(jot_cummax(after, 0), LEVEL);
    *out_positive = jot_sum(jot_astype(is_above, JOT_I32));
    *out_before = jot_sum(jot_astype(is_below, JOT_I32));
}

static void walks(const jot_value *seed, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value keys = jot_random_split(jot_random_key(seed[0]), WALKS);
    JOT_VMAP ((keys), (out[0], out[1])) {
        walk(keys, &out[0], &out[1]);
    }
}

// The probability of k heads in n throws.
static double heads(int n, int k)
{
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
}

static double arcsine(int k) { return heads(2 * k, k) * heads(STEPS - 2 * k, STEPS / 2 - k); }

// The probability that the first t steps stay below LEVEL.
static double stays(int t)
{
    double sum = 0;
    for (int up = 0; up <= t; up++)
        if (2 * up - t >= -LEVEL && 2 * up - t < LEVEL)
            sum += heads(t, up);
    return sum;
}

// Pearson's sum over the classes; with n of them, its mean is n - 1 and its variance 2 (n - 1).
static double misfit(int n, const int *count, const double *p)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double expected = WALKS * p[i];
        sum += (count[i] - expected) * (count[i] - expected) / expected;
    }
    return sum;
}

// Whether it is within four standard deviations of its mean.
static bool fits(const char *law, int n, const int *count, const double *p)
{
    double sum = misfit(n, count, p), most = n - 1 + 4 * sqrt(2 * (n - 1));
    printf("%s: chi-squared %.1f of %d classes, at most %.1f\n", law, sum, n, most);
    return sum < most;
}

int main(void)
{
    static int positive[WALKS], before[WALKS];
    jot_executable *f = jot_jit(jot_function_make(walks, 1, 2, NULL));
    jot_array *seed = jot_array_full(JOT_I32, 0), *out[2];
    if (jot_call_list(f, 1, &seed, 2, out) != JOT_OK ||
        jot_array_read(out[0], positive, WALKS) != JOT_OK ||
        jot_array_read(out[1], before, WALKS) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    jot_array_release(seed), jot_arrays_release(2, out);
    jot_executable_release(f);

    // Classes of the first law: k = 0, ..., STEPS / 2.  Of the second: passage at the steps LEVEL,
    // LEVEL + 2, ..., and none.
    enum { SIDES = STEPS / 2 + 1, PASSAGES = (STEPS - LEVEL) / 2 + 2 };
    int side[SIDES] = {0}, passage[PASSAGES] = {0};
    double side_law[SIDES], passage_law[PASSAGES];
    for (int i = 0; i < WALKS; i++) {
        side[positive[i] / 2]++;
        passage[before[i] == STEPS ? PASSAGES - 1 : (before[i] + 1 - LEVEL) / 2]++;
    }
    for (int k = 0; k < SIDES; k++)
        side_law[k] = arcsine(k);
    for (int i = 0; i < PASSAGES; i++) {
        int t = LEVEL + 2 * i;
        passage_law[i] = i == PASSAGES - 1 ? stays(STEPS) : stays(t - 1) - stays(t);
    }
    printf("all on one side %.4f, by the law %.4f\n",
           (double)(side[0] + side[SIDES - 1]) / WALKS, 2 * arcsine(0));
    bool is_right = fits("arcsine law", SIDES, side, side_law);
    is_right = fits("first passage", PASSAGES, passage, passage_law) && is_right;
    return is_right ? 0 : 1;
}
