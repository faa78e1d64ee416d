// SPDX-License-Identifier: Apache-2.0
// Networks over points whose operands are sums by indices: their layers and sums are one kernel each, on a processor,
// also where zeros that several updates begin with are put by one kernel.
#include "support/suite.h"
#include "trace_support.h"

enum { NODES = 512, EDGES = 4096, WIDTH = 16, LAYERS = 3 };

static jot_value of_layer(jot_value w, int i)
{
    return jot_reshape(jot_slice(w, 0, i, i + 1), WIDTH, WIDTH);
}

static jot_value loss(jot_value h, jot_value w, jot_value u, jot_value from, jot_value to)
{
    jot_value zeros = jot_zeros(JOT_F32, NODES, WIDTH);
    for (int i = 0; i < LAYERS; i++) {
        jot_value sums = jot_at_add(zeros, to, jot_take(h, from));
        h = jot_tanh(jot_add(jot_dot(sums, of_layer(w, i)), jot_dot(h, of_layer(u, i))));
    }
    return jot_mean(jot_square(h));
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

START_TEST(layers_of_points_are_kernels)
{
    jot_array *in[] = {jot_array_full(JOT_F32, 0.1, NODES, WIDTH),
                       jot_array_full(JOT_F32, 0.2, LAYERS, WIDTH, WIDTH),
                       jot_array_full(JOT_F32, 0.3, LAYERS, WIDTH, WIDTH),
                       jot_array_full(JOT_I32, 1, EDGES), jot_array_full(JOT_I32, 2, EDGES)};
    jot_executable *f = jot_jit(jot_value_and_grad(jot_fn(loss), 1, 2));
    must(jot_executable_prepare(f, 5, in));
    const char *text = jot_executable_text(f, "schedule");
    ck_assert_ptr_nonnull(text);
    if (jot_device_kind_of(NULL) == JOT_HOST)
        ck_assert_msg(count(text, "(layers and sums of the same points)") >= 2, "%.800s", text);
    jot_arrays_release(5, in);
    jot_executable_release(f);
}
END_TEST

static void add_tests(TCase *t) { tcase_add_test(t, layers_of_points_are_kernels); }

int main(void) { return suite_run("graph networks", add_tests); }
