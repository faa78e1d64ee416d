// SPDX-License-Identifier: Apache-2.0
// How optimisers are used: their states in loops and files, under transforms, and what is
// refused.
#include "support/suite.h"

#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define must(expression)                                                                       \
    do {                                                                                       \
        const jot_status status_ = (expression);                                               \
        ck_assert_msg(status_ == JOT_OK, "%s", jot_error_message());                           \
    } while (0)

JOT_STRUCT(net, w, b);
JOT_OPTIM_STATE(state, struct net, multi_steps, adam, params_ema);

struct training {
    struct net p;
    struct state s;
};
struct training_arrays {
    struct net_arrays p;
    struct state_arrays s;
};

static jot_optimizer optimizer(void)
{
    return jot_multi_steps(jot_chain(jot_clip_by_global_norm(1),
                                     jot_adamw(jot_cosine_decay_schedule(0.1, 20),
                                               .mask = JOT_MASK(struct net, w)),
                                     jot_params_ema(0.9)),
                           2);
}

static jot_value loss(struct net p, jot_value x)
{
    return jot_mean(jot_square(jot_sub(jot_add(jot_mul(p.w, x), p.b), jot_sin(x))));
}

static struct training begin(jot_value x)
{
    struct training t = {.p = {jot_zeros_like(x), jot_ones(JOT_F32)}};
    jot_optimizer_init(optimizer(), t.p, &t.s);
    return t;
}

static struct training one_step(struct training t, jot_value x)
{
    jot_optimizer_step(optimizer(), JOT_GRAD(loss, t.p, x), &t.p, &t.s);
    return t;
}

static struct training many_steps(jot_value x)
{
    struct training t = begin(x);
    JOT_FOR (i, 11, t)
        t = one_step(t, x);
    return t;
}

JOT_FUNCTION(begin_fn, begin, struct training, jot_value);
JOT_FUNCTION(one_step_fn, one_step, struct training, struct training, jot_value);
JOT_FUNCTION(many_steps_fn, many_steps, struct training, jot_value);

enum { VALUES = sizeof(struct training) / sizeof(jot_value) };

// All arrays of t are written to a file and read again.
static void save_and_load(struct training_arrays *t)
{
    char path[] = "/tmp/jot_optim_XXXXXX", name[16];
    ck_assert_int_ge(mkstemp(path), 0);
    jot_archive *to = jot_archive_create();
    jot_array **at = (jot_array **)(void *)t;
    for (int i = 0; i < VALUES; i++) {
        snprintf(name, sizeof name, "%d", i);
        must(jot_archive_add(to, name, at[i]));
    }
    must(jot_archive_save(to, path, false));
    jot_archive_release(to);
    jot_archive *from = jot_archive_load(path);
    for (int i = 0; i < VALUES; i++) {
        snprintf(name, sizeof name, "%d", i);
        jot_array_release(at[i]);
        at[i] = jot_archive_get(from, name);
        ck_assert_msg(at[i] != NULL, "%s", jot_error_message());
    }
    jot_archive_release(from);
    unlink(path);
}

START_TEST(test_steps_of_calls_and_of_a_loop_have_the_same_bits)
{
    const float numbers[] = {0.1f, -0.7f, 1.3f};
    jot_array *x = jot_array_from(numbers, 3);
    struct training_arrays t, next, whole;
    jot_executable *first = jot_jit(begin_fn), *step = jot_jit(one_step_fn);
    jot_executable *all = jot_jit(many_steps_fn);
    must(jot_call(first, JOT_IN(x), JOT_OUT(t)));
    for (int i = 0; i < 11; i++) {
        must(jot_call(step, JOT_IN(t, x), JOT_OUT(next)));
        jot_arrays_replace(t, next);
        if (i == 4)
            save_and_load(&t);
    }
    must(jot_call(all, JOT_IN(x), JOT_OUT(whole)));
    jot_array **a = (jot_array **)(void *)&t, **b = (jot_array **)(void *)&whole;
    for (int i = 0; i < VALUES; i++) {
        ck_assert_uint_eq(jot_array_bytes(a[i]), jot_array_bytes(b[i]));
        ck_assert_mem_eq(jot_array_data(a[i]), jot_array_data(b[i]), jot_array_bytes(a[i]));
    }
    // 11 steps of 2 gradients: 5 updates, and one gradient waits.
    ck_assert_int_eq((int)jot_array_item(t.s.count), 11);
    ck_assert_int_eq((int)jot_array_item(t.s.multi_steps[0]), 1);
    ck_assert_int_eq((int)jot_array_item(t.s.multi_steps[1]), 5);
    jot_arrays_release(JOT_OUT(t)), jot_arrays_release(JOT_OUT(whole)), jot_array_release(x);
    jot_executable_release(first), jot_executable_release(step), jot_executable_release(all);
}
END_TEST

// An update is what a step adds; of an optimiser without means the parameters are those to use.
START_TEST(test_updates_are_what_steps_add)
{
    jot_scope *scope = jot_scope_open();
    jot_optimizer o = jot_sgd(0.5);
    jot_value count;
    struct net p = {jot_full(JOT_F64, 3, 2), jot_ones(JOT_F64)}, g = p, u = g, to = p;
    jot_optimizer_init(o, p, &count);
    jot_optimizer_update(o, &u, p, &count);
    jot_optimizer_step(o, g, &to, &count);
    struct net used = jot_optimizer_params(o, to, count);
    ck_assert_double_eq(jot_item(u.b), -0.5);
    ck_assert_double_eq(jot_item(jot_max(u.w)), -1.5);
    ck_assert_double_eq(jot_item(jot_max(to.w)), 1.5);
    ck_assert_double_eq(jot_item(used.b), 0.5);
    ck_assert_double_eq(jot_item(count), 2);
    jot_scope_close(scope);
}
END_TEST

// Each gradient is a loss times the scale, in f16; at step 3 it overflows.
START_TEST(test_loss_scale_halves_when_gradients_overflow_and_doubles_when_none_does)
{
    jot_optimizer o = jot_dynamic_loss_scale(jot_adam(0.1), .initial = 1024, .every = 2);
    jot_scope *scope = jot_scope_open();
    struct {
        jot_value count, loss_scale[3], adam[2];
    } s;
    jot_value p = jot_ones(JOT_F32, 2);
    const double scales[] = {1024, 2048, 2048, 1024, 1024, 2048};
    const int steps[] = {1, 2, 3, 3, 4, 5};
    jot_optimizer_init(o, p, &s);
    for (int i = 0; i < 6; i++) {
        jot_value g = jot_astype(jot_full(JOT_F32, i == 3 ? 1000 : 0.5, 2), JOT_F32);
        g = jot_astype(jot_mul(g, s.loss_scale[0]), JOT_F16);
        jot_value before = p;
        struct {
            jot_value v;
        } gradient = {g}, parameter = {p};
        jot_optimizer_step(o, gradient, &parameter, &s);
        p = parameter.v;
        ck_assert_double_eq(jot_item(s.loss_scale[0]), scales[i]);
        ck_assert_double_eq(jot_item(s.loss_scale[2]), steps[i]);
        // Adam's steps are as long as the rate.
        double moved = jot_item(jot_max(jot_sub(before, p)));
        ck_assert_double_eq_tol(moved, i == 3 ? 0 : 0.1, 1e-6);
    }
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_loss_scale_stays_finite)
{
    jot_optimizer o = jot_dynamic_loss_scale(jot_sgd(0.1), .initial = 0x1p126, .every = 1);
    jot_scope *scope = jot_scope_open();
    struct {
        jot_value count, loss_scale[3];
    } s;
    struct {
        jot_value v;
    } p = {jot_ones(JOT_F32, 2)}, g = {jot_zeros(JOT_F32, 2)};
    jot_optimizer_init(o, p, &s);
    for (int i = 0; i < 3; i++)
        jot_optimizer_step(o, g, &p, &s);
    ck_assert_double_eq(jot_item(s.loss_scale[0]), 0x1p127);
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_a_rate_is_a_scalar)
{
    jot_scope *scope = jot_scope_open();
    struct {
        jot_value v;
    } p = {jot_ones(JOT_F32, 2)}, g = {jot_ones(JOT_F32, 2)};
    struct {
        jot_value count;
    } s;
    jot_optimizer o = jot_sgd(jot_ones(JOT_F32, 2));
    jot_optimizer_init(o, p, &s);
    jot_optimizer_step(o, g, &p, &s);
    jot_array *none = NULL;
    ck_assert_int_eq(jot_eval(p.v, &none), JOT_ERR_SHAPE);
    ck_assert_msg(strstr(jot_error_message(), "the value is no scalar") != NULL, "%s",
                  jot_error_message());
    jot_scope_close(scope);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Transforms

// What the loss is after some steps at a rate that is a value.
static jot_value trained(jot_value rate, jot_value x)
{
    struct {
        jot_value count, momentum[2];
    } s;
    jot_optimizer o = jot_sgd(rate, .momentum = 0.5);
    struct net p = {jot_zeros_like(x), jot_zeros_like(rate)};
    jot_optimizer_init(o, p, &s);
    JOT_FOR (i, 5, p, s)
        jot_optimizer_step(o, JOT_GRAD(loss, p, x), &p, &s);
    return loss(p, x);
}

START_TEST(test_derivatives_in_the_rate_and_maps_over_rates)
{
    const double rates[] = {0.05, 0.2, 0.4}, numbers[] = {0.5, -1, 2};
    jot_array *rate = jot_array_from(rates, 3), *x = jot_array_from(numbers, 3), *out[2];
    jot_executable *f = jot_jit(jot_vmap(jot_value_and_grad(jot_fn(trained)), 0, JOT_NONE));
    jot_executable *one = jot_jit(jot_fn(trained));
    must(jot_call(f, JOT_IN(rate, x), JOT_OUT(out)));
    for (int i = 0; i < 3; i++) {
        double at[3];
        for (int k = 0; k < 3; k++) {
            double moved = rates[i] + (k - 1) * 1e-5;
            jot_array *r = jot_array_from(&moved), *y;
            must(jot_call(one, JOT_IN(r, x), JOT_OUT(y)));
            at[k] = jot_array_item(y);
            jot_array_release(r), jot_array_release(y);
        }
        ck_assert_double_eq_tol(((const double *)jot_array_data(out[0]))[i], at[1], 1e-14);
        ck_assert_double_eq_tol(((const double *)jot_array_data(out[1]))[i],
                                (at[2] - at[0]) / 2e-5, 1e-7);
    }
    jot_array_release(rate), jot_array_release(x), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f), jot_executable_release(one);
}
END_TEST

// Each leaf and its state keep their type in a loop.
static jot_value half_steps(jot_value x)
{
    struct {
        jot_value count, adam[4];
    } s;
    struct net p = {x, jot_astype(x, JOT_F16)};
    jot_optimizer o = jot_adam(0.125);
    jot_optimizer_init(o, p, &s);
    JOT_FOR (i, 4, p, s) {
        struct net g = p;
        jot_optimizer_step(o, g, &p, &s);
    }
    return jot_add(jot_astype(p.w, JOT_F32), jot_astype(p.b, JOT_F32));
}

START_TEST(test_half_types)
{
    jot_array *x = jot_array_full(JOT_BF16, 1, 4), *y;
    jot_executable *f = jot_jit(jot_fn(half_steps));
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq_tol(((const float *)jot_array_data(y))[i], 1, 0.05);
    jot_array_release(x), jot_array_release(y), jot_executable_release(f);
}
END_TEST

// Numbers that half floats do not have stay in the formulas: eps in f16, 1 - b2 in bf16.
static jot_value half_state(jot_value x, jot_value g)
{
    struct {
        jot_value count, m, v;
    } s;
    jot_optimizer o = jot_adam(0.125);
    jot_optimizer_init(o, x, &s);
    for (int i = 0; i < 3; i++)
        jot_optimizer_step(o, g, &x, &s);
    return jot_stack(0, jot_convert(x, JOT_F32), s.m, s.v);
}

START_TEST(test_half_types_keep_small_numbers)
{
    jot_dtype dtype = _i ? JOT_BF16 : JOT_F16;
    jot_array *x = jot_array_full(dtype, 1), *g, *y;
    jot_executable *f = jot_jit(jot_fn(half_state));
    for (int one = 0; one < 2; one++) {
        float out[3];
        g = jot_array_full(dtype, one);
        must(jot_call(f, JOT_IN(x, g), JOT_OUT(y)));
        must(jot_array_read(y, out, 3));
        ck_assert_float_eq(out[0], one ? 0.625f : 1);
        ck_assert_float_eq_tol(out[1], one ? 1 - pow(0.9, 3) : 0, 1e-6);
        ck_assert_float_eq_tol(out[2], one ? 1 - pow(0.999, 3) : 0, 1e-8);
        jot_array_release(g), jot_array_release(y);
    }
    jot_array_release(x), jot_executable_release(f);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Mistakes

static jot_optimizer of_mistakes[16];
static const struct {
    jot_status status;
    const char *message; // behind the place
} mistakes[] = {
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: jot_adam: b1 is 1: below 1, or finite"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: jot_lion: eps is 0.1: it has no such option"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: jot_clip_by_norm: most is 0: above 0"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: jot_cosine_decay_schedule: steps is 0: at least 1"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: the mask is of 1 values, and there are 2: at most "
                       "256 can be masked"},
    {JOT_ERR_ARGUMENT,
     "jot_optimizer_step: the state has 2 values; that of 2 parameters has 5: the count, then "
     "what is kept: adam"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: jot_chain: the number of parts is 17: at most 16"},
    {JOT_ERR_ARGUMENT,
     "jot_optimizer_step: jot_cosine_onecycle_schedule: rise is 1: above 0 and below 1"},
    {JOT_ERR_ARGUMENT,
     "jot_optimizer_step: jot_linear_onecycle_schedule: fall is 0.25: above rise and below 1"},
    {JOT_ERR_ARGUMENT,
     "jot_optimizer_step: jot_linear_onecycle_schedule: rise is nan: above 0 and below 1"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: this is no schedule: a function of jot makes one"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: this is no schedule: a function of jot makes one"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: jot_join_schedules: this is no "
                       "schedule: a function of jot makes one"},
    {JOT_ERR_ARGUMENT, "jot_optimizer_step: this is no optimiser: a function of jot makes one"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static void make_mistakes(void)
{
    const bool yes[] = {true};
    jot_optimizer sgd = jot_sgd(1), clip = jot_clip_by_value(1);
    jot_optimizer four = jot_chain(clip, clip, clip, clip);
    of_mistakes[0] = jot_adam(0.1, .b1 = 1);
    of_mistakes[1] = jot_chain(sgd, jot_lion(0.1, .eps = 0.1));
    of_mistakes[2] = jot_multi_steps(jot_clip_by_norm(0), 3);
    of_mistakes[3] = jot_sgd(jot_cosine_decay_schedule(0.1, 0));
    of_mistakes[4] = jot_masked(sgd, jot_mask_make(1, yes));
    of_mistakes[5] = jot_adam(0.1);
    of_mistakes[6] = jot_chain(four, four, four, four, clip);
    of_mistakes[7] = jot_sgd(jot_cosine_onecycle_schedule(100, 1, .rise = 1));
    of_mistakes[8] = jot_sgd(jot_linear_onecycle_schedule(100, 1, .fall = 0.25));
    of_mistakes[9] = jot_sgd(jot_linear_onecycle_schedule(100, 1, .rise = NAN));
    jot_schedule no_schedule = {0}, unknown = jot_constant_schedule(1);
    unknown.piece[0].kind = 99;
    of_mistakes[10] = jot_sgd(no_schedule);
    of_mistakes[11] = jot_sgd(unknown);
    of_mistakes[12] = jot_sgd(jot_join_schedules(unknown, 3, no_schedule));
    of_mistakes[13] = jot_sgd(1);
    of_mistakes[13].part[0].first_piece = 1 << 20;
}

static int line_of_step;
static void make_mistake(const jot_value *in, jot_value *out, void *ctx)
{
    struct {
        jot_value count, other;
    } s = {in[0], in[1]};
    struct net p = {in[0], in[1]}, g = p;
    line_of_step = __LINE__ + 1;
    jot_optimizer_step(*(const jot_optimizer *)ctx, g, &p, &s);
    out[0] = p.w;
}

static void check_message(int line, const char *text)
{
    char place[40];
    snprintf(place, sizeof place, "test_optim_use.c:%d: ", line);
    const char *have = jot_error_message();
    ck_assert_msg(strstr(have, place) && strstr(have, text), "'%s' is not '%s%s'", have, place,
                  text);
}

START_TEST(test_mistake)
{
    make_mistakes();
    jot_array *in[] = {jot_array_full(JOT_F32, 1, 2), jot_array_full(JOT_F32, 1)}, *out;
    jot_executable *f = jot_jit(jot_function_make(make_mistake, 2, 1, &of_mistakes[_i]));
    ck_assert_int_eq(jot_call(f, JOT_IN(in), JOT_OUT(out)), mistakes[_i].status);
    const char *text = strstr(mistakes[_i].message, ": ") + 2;
    check_message(line_of_step, text);
    jot_arrays_release(JOT_OUT(in)), jot_executable_release(f);
}
END_TEST

START_TEST(test_leaves_that_do_not_fit)
{
    jot_scope *scope = jot_scope_open();
    struct {
        jot_value count;
    } s;
    struct net p = {jot_ones(JOT_F32, 2), jot_ones(JOT_I32)}, g = p;
    jot_optimizer_init(jot_sgd(1), p, &s);
    int line = __LINE__ - 1;
    ck_assert(jot_value_failed(s.count) && !jot_value_failed(p.w));
    ck_assert_int_eq(jot_eval(s.count, NULL), JOT_ERR_DTYPE);
    check_message(line, "parameter 1 is");
    p.b = g.b = jot_ones(JOT_F32, 3);
    jot_optimizer_init(jot_sgd(1), p, &s);
    p.b = jot_ones(JOT_F32, 4);
    jot_optimizer_step(jot_sgd(1), g, &p, &s);
    line = __LINE__ - 1;
    ck_assert_int_eq(jot_eval(p.w, NULL), JOT_ERR_SHAPE);
    check_message(line, "gradient 1 is");
    jot_scope_close(scope);
}
END_TEST

// A state whose leaves are not those that it begins with: the first such one is named.
START_TEST(test_states_that_do_not_fit)
{
    jot_scope *scope = jot_scope_open();
    struct net p = {jot_ones(JOT_F32, 2), jot_ones(JOT_F32)}, g = p;
    jot_optimizer o =
        jot_chain(jot_ema(0.5, false), jot_masked(jot_adam(1), JOT_MASK(struct net, w)));
    struct {
        jot_value count, ema[2], adam[2];
    } begin, now;
    const struct {
        jot_status status;
        const char *text;
    } wrong[] = {
        {JOT_ERR_DTYPE, "value 0 of the state, the count, is f32[]; it begins as i32[]"},
        {JOT_ERR_SHAPE, "value 2 of the state, ema[1], is f32[7]; it begins as f32[]"},
        {JOT_ERR_DTYPE, "value 4 of the state, adam[1], is f16[2]; it begins as f32[2]"},
    };
    jot_optimizer_init(o, p, &begin);
    for (int i = 0; i < 3; i++) {
        now = begin;
        if (i == 0)
            now.count = jot_zeros(JOT_F32);
        else if (i == 1)
            now.ema[1] = jot_zeros(JOT_F32, 7);
        else
            now.adam[1] = jot_zeros(JOT_F16, 2);
        struct net q = p;
        jot_optimizer_step(o, g, &q, &now);
        int line = __LINE__ - 1;
        ck_assert_int_eq(jot_eval(q.w, NULL), wrong[i].status);
        check_message(line, wrong[i].text);
    }
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_steps_of_calls_and_of_a_loop_have_the_same_bits);
    tcase_add_test(t,
                   test_loss_scale_halves_when_gradients_overflow_and_doubles_when_none_does);
    tcase_add_test(t, test_loss_scale_stays_finite);
    tcase_add_test(t, test_a_rate_is_a_scalar);
    tcase_add_test(t, test_updates_are_what_steps_add);
    tcase_add_test(t, test_derivatives_in_the_rate_and_maps_over_rates);
    tcase_add_test(t, test_half_types);
    tcase_add_loop_test(t, test_mistake, 0, MISTAKES);
    tcase_add_test(t, test_leaves_that_do_not_fit);
    tcase_add_test(t, test_states_that_do_not_fit);
    tcase_add_loop_test(t, test_half_types_keep_small_numbers, 0, 2);
}

int main(void) { return suite_run("library/optim_use", add); }
