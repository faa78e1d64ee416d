// SPDX-License-Identifier: Apache-2.0
// Robertson's three reactions, whose speeds lie nine powers of ten apart, over eleven powers of ten of time, by an
// implicit method: for many rates at once, each with steps of its own, and how the end depends on the rate.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { LANES = 8, TIMES = 12 };

struct state {
    jot_value a, b, c;
};
struct end {
    jot_value a, steps;
};

static struct state slope(jot_value t, struct state s, jot_value rate)
{
    jot_value slow = jot_mul(rate, s.a), back = jot_mul(1e4, jot_mul(s.b, s.c));
    jot_value fast = jot_mul(3e7, jot_square(s.b));
    (void)t;
    return (struct state){jot_sub(back, slow), jot_sub(jot_sub(slow, back), fast), fast};
}
JOT_FUNCTION(slope_fn, slope, struct state, jot_value, struct state, jot_value);

// What is left of the first substance at 1, 10, 100, ..., and in how many steps.
static struct end left(jot_value rate)
{
    struct state s = {jot_full_like(rate, 1), jot_full_like(rate, 0), jot_full_like(rate, 0)};
    jot_value times = jot_pow(10, jot_arange(JOT_F64, TIMES));
    jot_ode_result result;
    s = jot_ode_solve(slope_fn, 0, 1e11, s, .method = JOT_ODE_KVAERNO5, .times = times,
                      .parameters = JOT_PARAMETERS(rate), .rtol = 1e-8, .atol = 1e-16,
                      .result = &result);
    return (struct end){s.a, result.accepted};
}
JOT_FUNCTION(left_fn, left, struct end, jot_value);

static jot_value last(jot_value rate) { return jot_take(left(rate).a, -1); }

static bool run(jot_executable *f, jot_array *in, size_t n, jot_array **out)
{
    if (jot_call_list(f, 1, &in, n, out) == JOT_OK)
        return true;
    fprintf(stderr, "%s\n", jot_error_message());
    return false;
}

int main(void)
{
    double rate[LANES], a[LANES][TIMES], da[LANES];
    int32_t steps[LANES];
    for (int i = 0; i < LANES; i++)
        rate[i] = 0.04 * (1 + 0.1 * i);
    jot_array *in = jot_array_from(rate, LANES), *out[3];
    jot_executable *f = jot_jit(jot_vmap(left_fn)),
                   *df = jot_jit(jot_vmap(jot_grad(jot_fn(last))));
    if (!run(f, in, 2, out) || !run(df, in, 1, out + 2) ||
        jot_array_read(out[0], *a, LANES * TIMES) != JOT_OK ||
        jot_array_read(out[1], steps, LANES) != JOT_OK ||
        jot_array_read(out[2], da, LANES) != JOT_OK)
        return 1;
    for (int k = 0; k < TIMES; k++)
        printf("t 1e%02d  a %.12g\n", k, a[0][k]);
    bool is_right = true;
    for (int i = 0; i < LANES; i++) {
        // At last b is rate a / 1e4 and c is 1, so that a' = -0.3 rate^2 a^2.
        double end = a[i][TIMES - 1], late = 1 / (0.3 * rate[i] * rate[i] * 1e11);
        printf("rate %.3f  a(1e11) %.8e in %d steps, da/drate %.6e\n", rate[i], end,
               (int)steps[i], da[i]);
        is_right = is_right && fabs(end / late - 1) < 1e-4 &&
                   fabs(da[i] / (-2 * late / rate[i]) - 1) < 1e-4 && steps[i] < 500;
    }
    jot_array_release(in), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f), jot_executable_release(df);
    return is_right ? 0 : 1;
}
