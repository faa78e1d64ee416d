// SPDX-License-Identifier: Apache-2.0
// Structs in structs, arrays of them, and parts that are not there: names, and every way that
// trees go.
#include "trace/trace_support.h"

enum { LAYERS = 3, LEAVES = 2 * LAYERS + 3 };

JOT_STRUCT(layer, w, b);
JOT_STRUCT_TYPE(offset, here, there);
JOT_STRUCT(net, (struct layer, layers[LAYERS]), scale, (offset, offset));
JOT_OPTIM_STATE(state, struct net, adam);
JOT_STRUCT(training, (struct net, net), (struct state, state), (jot_value, loss[2][3]));
JOT_STRUCT(wide, (struct layer, first), a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14,
           a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31,
           a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48,
           a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64, a65,
           a66, a67, a68, (struct layer, last));

static void check_name(const jot_members *members, size_t i, const char *want)
{
    char text[80], cut[6];
    ck_assert_int_eq(jot_value_name(members, i, text, sizeof text), (int)strlen(want));
    ck_assert_str_eq(text, want);
    ck_assert_int_eq(jot_value_name(members, i, cut, sizeof cut), (int)strlen(want));
    ck_assert_int_eq(strncmp(cut, want, sizeof cut - 1), 0);
    ck_assert_uint_le(strlen(cut), sizeof cut - 1);
}

START_TEST(test_values_have_names)
{
    check_name(JOT_MEMBERS(layer), 1, "b");
    check_name(JOT_MEMBERS(net), 0, "layers[0].w");
    check_name(JOT_MEMBERS(net), 5, "layers[2].b");
    check_name(JOT_MEMBERS(net), 6, "scale");
    check_name(JOT_MEMBERS(net), 8, "offset.there");
    check_name(JOT_MEMBERS(training), 3, "net.layers[1].b");
    check_name(JOT_MEMBERS(training), LEAVES, "state.count");
    check_name(JOT_MEMBERS(training), LEAVES + 2, "state.adam[1]");
    check_name(JOT_MEMBERS(training), 3 * LEAVES + 1 + 5, "loss[5]");
    ck_assert_int_eq(jot_value_name(JOT_MEMBERS(training), 3 * LEAVES + 1 + 6, NULL, 0), -1);
    check_name(JOT_MEMBERS(wide), 68, "a68");
    check_name(JOT_MEMBERS(wide), 70, "last.b");
    ck_assert_uint_eq(JOT_MEMBERS(wide)->values, sizeof(struct wide) / sizeof(jot_value));
    ck_assert_uint_eq(JOT_MEMBERS(wide)->n, 69);
    ck_assert_uint_eq(sizeof(struct wide_arrays), 71 * sizeof(jot_array *));
    ck_assert_uint_eq(offsetof(struct training_arrays, state.adam[LEAVES]),
                      (2 * LEAVES + 1) * sizeof(jot_array *));
}
END_TEST

// The last layer has no b.
static jot_value apply(struct net p, jot_value x, int layers)
{
    for (int i = 0; i < layers; i++) {
        x = jot_dot(x, p.layers[i].w);
        x = jot_value_size(p.layers[i].b) ? jot_tanh(jot_add(x, p.layers[i].b)) : x;
    }
    return jot_add(jot_mul(x, p.scale), jot_add(p.offset.here, p.offset.there));
}

static jot_value loss(struct net p, jot_value x, int layers)
{
    return jot_mean(jot_square(jot_sub(apply(p, x, layers), 1)));
}

static struct net begin(void)
{
    jot_value one = jot_ones(JOT_F64), none = jot_zeros(JOT_F64, 0);
    struct net p = {.scale = one, .offset = {jot_mul(0.5, one), jot_mul(0.25, one)}};
    for (int i = 0; i < LAYERS; i++) {
        p.layers[i].w = jot_mul(0.1, jot_reshape(jot_arange(JOT_F64, 4), 2, 2));
        p.layers[i].b = i + 1 < LAYERS ? jot_full(JOT_F64, 0.1 * (i + 1), 2) : none;
    }
    return p;
}

// Steps of Adam, one in each trip, with losses of all rows at once.
static struct training train(struct training t, jot_value x)
{
    jot_optimizer o = jot_chain(jot_clip_by_global_norm(1), jot_adam(0.1));
    jot_optimizer_init(o, t.net, &t.state);
    for (int k = 0; k < 6; k++) {
        JOT_FOR (i, 4, t) {
            struct net g = JOT_GRAD(loss, t.net, x, LAYERS);
            jot_optimizer_step(o, g, &t.net, &t.state);
        }
        jot_value each = x;
        JOT_VMAP ((x), (each)) {
            each = loss(t.net, x, LAYERS);
        }
        t.loss[k / 3][k % 3] = jot_mean(each);
    }
    return t;
}
JOT_FUNCTION(train_fn, train, struct training, struct training, jot_value);

START_TEST(test_trees_of_structs_go_everywhere)
{
    jot_scope *scope = jot_scope_open();
    struct training first = {.net = begin()};
    for (int k = 0; k < 6; k++)
        first.loss[k / 3][k % 3] = jot_zeros(JOT_F64);
    jot_optimizer_init(jot_adam(0.1), first.net, &first.state);
    struct training_arrays t, next;
    jot_array *x;
    must(jot_eval_tree(JOT_TREE(first), (jot_array **)(void *)&t));
    must(jot_eval(jot_reshape(jot_linspace(JOT_F64, -1, 1, 6), 3, 2), &x));
    jot_scope_close(scope);
    ck_assert_uint_eq(jot_array_size(t.net.layers[LAYERS - 1].b), 0);
    jot_executable *f = jot_jit(train_fn);
    must(jot_call(f, JOT_IN(t, x), JOT_OUT(next)));
    jot_arrays_replace(t, next);
    double begin = jot_array_item(t.loss[0][0]), end = jot_array_item(t.loss[1][2]);
    ck_assert_msg(end < 0.1 * begin, "the loss is %g, and was %g", end, begin);
    ck_assert_double_eq(jot_array_item(t.state.count), 24);
    ck_assert_uint_eq(jot_array_size(t.net.layers[LAYERS - 1].b), 0);
    jot_arrays_release(JOT_OUT(t)), jot_array_release(x), jot_executable_release(f);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_values_have_names);
    tcase_add_test(t, test_trees_of_structs_go_everywhere);
}

int main(void) { return run_suite("library/structs", add); }
