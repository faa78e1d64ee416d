// SPDX-License-Identifier: Apache-2.0
// A softmax that cannot overflow, and what jot makes of it.
//
//     softmax [stage]       prints another stage of the compilation too, such as llvm or code
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

static jot_value softmax(jot_value x)
{
    jot_value e = jot_exp(jot_sub(x, jot_max(x, -1, JOT_KEEPDIMS)));
    return jot_div(e, jot_sum(e, -1, JOT_KEEPDIMS));
}

int main(int argc, char **argv)
{
    const float logits[6] = {1, 2, 3, 1000, 1001, 1002}; // exp(1000) is no float
    jot_array *x = jot_array_from(logits, 2, 3), *y;
    jot_executable *f = jot_jit(jot_fn(softmax));
    float p[6];
    if (jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK || jot_array_read(y, p, 6) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    jot_array_print(y);
    puts(jot_executable_graph(f));
    puts(jot_executable_text(f, "schedule"));
    if (argc > 1) {
        const char *text = jot_executable_text(f, argv[1]);
        puts(text ? text : jot_error_message());
    }
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        double want = exp(i) / (1 + exp(1) + exp(2));
        wrong += !(fabs(p[i] - want) < 1e-6) || p[i] != p[i + 3];
    }
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(f);
    return wrong != 0;
}
