// SPDX-License-Identifier: Apache-2.0
// The example of README.md.
#include <jot/jot.h>
#include <stdio.h>

static jot_value energy(jot_value w, jot_value alpha, jot_value x)
{
    return jot_mean(jot_mul(jot_dot(x, w), jot_exp(jot_neg(jot_dot(x, alpha)))));
}

int main(void)
{
    jot_array *w = jot_array_full(JOT_F32, 0.1, 100),
              *alpha = jot_array_full(JOT_F32, 0.1, 100);
    jot_array *x = jot_array_full(JOT_F32, 0.2, 1000, 100), *g[2];
    jot_executable *df = jot_jit(jot_grad(jot_fn(energy), 0, 1));
    if (jot_call(df, JOT_IN(w, alpha, x), JOT_OUT(g)) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    jot_array_print(g[0]);
    jot_arrays_release(JOT_OUT(g));
    jot_array_release(w), jot_array_release(alpha), jot_array_release(x);
    jot_executable_release(df);
}
