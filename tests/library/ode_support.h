// SPDX-License-Identifier: Apache-2.0
// What the tests of differential equations share.
#ifndef ODE_SUPPORT_H
#define ODE_SUPPORT_H

#include "trace/trace_support.h"

// Calls f on numbers of double precision and reads n of each of n_out results.
static inline void run_numbers(jot_function f, int n_in, const double *in, int n_out, int n,
                               double *out)
{
    jot_array *inputs[8], *results[8] = {NULL};
    for (int i = 0; i < n_in; i++)
        inputs[i] = jot_array_full(JOT_F64, in[i]);
    jot_executable *e = jot_jit(f);
    must(jot_call_list(e, (size_t)n_in, inputs, (size_t)n_out, results));
    for (int i = 0; i < n_out; i++) {
        must(jot_array_copy_out(results[i], JOT_F64, out + i * n, (size_t)n));
        jot_array_release(results[i]);
    }
    for (int i = 0; i < n_in; i++)
        jot_array_release(inputs[i]);
    jot_executable_release(e);
}

static inline void check_near(const char *what, double x, double want, double bound)
{
    ck_assert_msg(fabs(x - want) <= bound, "%s: %.17g is not %.17g, off by %g, more than %g",
                  what, x, want, x - want, bound);
}

// Four equations that depend on time and on each other, with a solution that is known.
// Hairer, Noersett, Wanner: Solving Ordinary Differential Equations I, II.1.
struct four {
    jot_value a, b, c, d;
};

static inline struct four four_slope(jot_value t, struct four y)
{
    jot_value two_t = jot_mul(2, t);
    return (struct four){
        jot_mul(two_t, jot_mul(jot_pow(y.b, 0.2), y.d)),
        jot_mul(jot_mul(5, two_t), jot_mul(jot_exp(jot_mul(5, jot_sub(y.c, 1))), y.d)),
        jot_mul(two_t, y.d),
        jot_neg(jot_mul(two_t, jot_log(y.a))),
    };
}
JOT_FUNCTION(four_fn, four_slope, struct four, jot_value, struct four);

static inline double four_exact(int i, double t)
{
    double s = sin(t * t);
    return i == 0 ? exp(s) : i == 1 ? exp(5 * s) : i == 2 ? s + 1 : cos(t * t);
}

static inline struct four four_start(void)
{
    jot_value one = jot_ones(JOT_F64);
    return (struct four){one, one, one, one};
}

#endif
