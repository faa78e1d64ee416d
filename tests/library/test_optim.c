// SPDX-License-Identifier: Apache-2.0
// Optimisers and schedules beside the numbers of Optax (make_optim.py): all steps in one
// compiled loop.
#include "support/suite.h"

#include <jot/jot.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define must(expression)                                                                       \
    do {                                                                                       \
        const jot_status status_ = (expression);                                               \
        ck_assert_msg(status_ == JOT_OK, "%s", jot_error_message());                           \
    } while (0)

enum { LEAVES = 3, ELEMENTS = 11, STEPS = 50, MOST_STATE = 32, COUNTS = 15 };

struct tree {
    jot_value a, b, c;
};

static const int64_t extents[LEAVES] = {6, 4, 1};

// ---------------------------------------------------------------------------------------
// What make_optim.py has, too

static double number(int64_t step, int64_t k)
{
    const int64_t most = INT64_C(1) << 31;
    int64_t x = (step * 7919 + k * 104729 + 12345) % most;
    x = (x * 1103515245 + 12345) % most;
    return (double)((x >> 8) % 8191 - 4095) / 4096 * (step % 7 == 6 ? 8 : 1);
}

static jot_array *array_of(jot_dtype dtype, const double *x, int64_t n, const int64_t *dims)
{
    float f[STEPS * ELEMENTS];
    for (int64_t i = 0; i < n; i++)
        f[i] = (float)x[i];
    jot_array *a =
        dtype == JOT_F32 ? jot_array_copy(dtype, f, dims) : jot_array_copy(dtype, x, dims);
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    return a;
}

// The leaves of the parameters, or of the gradients of all steps, along a first axis.
static void make_leaves(jot_dtype dtype, bool is_gradients, jot_array **out)
{
    double x[STEPS * ELEMENTS];
    int64_t steps = is_gradients ? STEPS : 1, k = 0;
    const int64_t dims[LEAVES][4] = {
        {steps, 2, 3, JOT_END}, {steps, 4, JOT_END}, {steps, JOT_END}};
    for (int i = 0; i < LEAVES; k += extents[i++]) {
        for (int64_t t = 0; t < steps; t++)
            for (int64_t e = 0; e < extents[i]; e++)
                x[t * extents[i] + e] = number(is_gradients ? t : 1000, k + e);
        out[i] = array_of(dtype, x, steps * extents[i], dims[i] + !is_gradients);
    }
}

#define SGD jot_sgd(0.1)

static jot_mask mask(void) { return JOT_MASK(struct tree, a, c); }
static jot_schedule polynomial(void) { return jot_polynomial_schedule(0.5, 0.1, 2, 30); }
static jot_schedule line(void) { return jot_linear_schedule(0, 0.3, 20); }
static jot_schedule exponential(void)
{
    return jot_exponential_decay(0.5, 10, 0.7, .begin = 5, .end = 0.1);
}
static jot_schedule staircase(void)
{
    return jot_exponential_decay(0.5, 10, 0.7, .staircase = true);
}
static jot_schedule cosine(void) { return jot_cosine_decay_schedule(0.5, 40); }
static jot_schedule cosine_options(void)
{
    return jot_cosine_decay_schedule(0.5, 40, .end = 0.1, .exponent = 1.5);
}
static jot_schedule warmup_cosine(void)
{
    return jot_warmup_cosine_decay_schedule(0.01, 0.5, 10, 45, .end = 0.05);
}
static jot_schedule cosine_cycle(void) { return jot_cosine_onecycle_schedule(50, 0.4); }
static jot_schedule linear_cycle(void)
{
    return jot_linear_onecycle_schedule(50, 0.4, .rise = 0.2, .fall = 0.7, .first = 10,
                                        .last = 100);
}
static jot_schedule joined(void)
{
    jot_schedule s =
        jot_join_schedules(jot_constant_schedule(0.5), 10, jot_linear_schedule(0.4, 0.1, 20));
    return jot_join_schedules(s, 25, jot_constant_schedule(0.05));
}
static jot_schedule piecewise(void)
{
    jot_schedule s =
        jot_join_schedules(jot_constant_schedule(0.5), 10, jot_constant_schedule(0.25));
    return jot_join_schedules(s, 25, jot_constant_schedule(0.025));
}

static const struct {
    const char *name;
    jot_schedule (*make)(void);
} schedules[] = {
    {"polynomial", polynomial},
    {"linear", line},
    {"exponential", exponential},
    {"staircase", staircase},
    {"cosine", cosine},
    {"cosine_options", cosine_options},
    {"warmup_cosine", warmup_cosine},
    {"cosine_onecycle", cosine_cycle},
    {"linear_onecycle", linear_cycle},
    {"join", joined},
    {"piecewise", piecewise},
};

static jot_optimizer sgd(void) { return SGD; }
static jot_optimizer sgd_momentum(void) { return jot_sgd(0.1, .momentum = 0.9); }
static jot_optimizer sgd_nesterov(void)
{
    return jot_sgd(polynomial(), .momentum = 0.9, .nesterov = true);
}
static jot_optimizer adam(void) { return jot_adam(1e-2); }
static jot_optimizer adam_options(void)
{
    return jot_adam(warmup_cosine(), .b1 = 0.8, .b2 = 0.95, .eps = 1e-6, .eps_root = 1e-8);
}
static jot_optimizer nadam(void) { return jot_nadam(1e-2); }
static jot_optimizer adamw(void)
{
    return jot_adamw(1e-2, .weight_decay = 0.1, .mask = mask());
}
static jot_optimizer adamax(void) { return jot_adamax(1e-2); }
static jot_optimizer radam(void) { return jot_radam(1e-2, .b2 = 0.9, .threshold = 4.5); }
static jot_optimizer radam_defaults(void) { return jot_radam(1e-2); }
static jot_optimizer radam_nesterov(void)
{
    return jot_radam(1e-2, .b2 = 0.9, .nesterov = true);
}
static jot_optimizer lion(void) { return jot_lion(1e-2); }
static jot_optimizer lamb(void) { return jot_lamb(1e-2, .weight_decay = 0.01); }
static jot_optimizer lars(void) { return jot_lars(0.5, .weight_decay = 0.01, .mask = mask()); }
static jot_optimizer lars_nesterov(void)
{
    return jot_lars(0.5, .trust = 0.01, .eps = 1e-3, .nesterov = true);
}
static jot_optimizer adagrad(void) { return jot_adagrad(0.1); }
static jot_optimizer adadelta(void) { return jot_adadelta(1, .weight_decay = 0.01); }
static jot_optimizer rmsprop(void) { return jot_rmsprop(1e-2, .initial = 0.5); }
static jot_optimizer rmsprop_centered(void)
{
    return jot_rmsprop(1e-2, .centered = true, .momentum = 0.9);
}
static jot_optimizer rmsprop_debiased(void)
{
    return jot_rmsprop(1e-2, .debiased = true, .momentum = 0.5, .nesterov = true);
}
static jot_optimizer adafactor(void) { return jot_adafactor(1e-2); }
static jot_optimizer adafactor_factored(void)
{
    return jot_adafactor(1e-2, .decay = 0.7, .weight_decay = 0.01, .momentum = 0.9,
                         .unscaled = true, .min_factored = 2);
}
static jot_optimizer clip_by_value(void) { return jot_chain(jot_clip_by_value(0.5), SGD); }
static jot_optimizer clip_by_norm(void) { return jot_chain(jot_clip_by_norm(1), SGD); }
static jot_optimizer clip_by_global_norm(void)
{
    return jot_chain(jot_clip_by_global_norm(3), jot_adam(1e-2));
}
static jot_optimizer decayed_weights(void)
{
    return jot_chain(jot_add_decayed_weights(line(), mask()), jot_scale(-0.1));
}
static jot_optimizer ema(void) { return jot_chain(jot_ema(0.9, true), jot_sgd(staircase())); }
static jot_optimizer ema_biased(void) { return jot_chain(jot_ema(0.9, false), SGD); }
static jot_optimizer multi_steps(void) { return jot_multi_steps(jot_adam(line()), 4); }
static jot_optimizer groups(void)
{
    return jot_chain(
        jot_masked(jot_adam(1e-2), mask()),
        jot_masked(jot_sgd(0.1, .momentum = 0.5), JOT_MASK_EXCEPT(struct tree, a, c)));
}
static jot_optimizer schedule_free(void) { return jot_schedule_free(SGD, 0.1); }
static jot_optimizer schedule_free_adamw(void)
{
    jot_schedule rate = jot_linear_schedule(0, 1e-2, 10);
    return jot_schedule_free(jot_chain(jot_rmsprop(-1, .decay = 0.999, .debiased = true),
                                       jot_add_decayed_weights(0.01), jot_sgd(rate)),
                             rate);
}
static jot_optimizer lookahead(void)
{
    return jot_chain(jot_adam(1e-2), jot_lookahead(5, 0.5));
}
static jot_optimizer params_ema(void) { return jot_chain(SGD, jot_params_ema(0.9)); }

static const struct {
    const char *name;
    jot_optimizer (*make)(void);
    int state;        // how many values
    bool is_asked;    // for the parameters to use
    bool is_f64_only; // the golden file says why
} cases[] = {
    {"sgd", sgd, 1, 0, 0},
    {"sgd_momentum", sgd_momentum, 4, 0, 0},
    {"sgd_nesterov", sgd_nesterov, 4, 0, 0},
    {"adam", adam, 7, 0, 0},
    {"adam_options", adam_options, 7, 0, 0},
    {"nadam", nadam, 7, 0, 0},
    {"adamw", adamw, 7, 0, 0},
    {"adamax", adamax, 7, 0, 0},
    {"radam", radam, 7, 0, 0},
    {"radam_defaults", radam_defaults, 7, 0, 1},
    {"radam_nesterov", radam_nesterov, 7, 0, 0},
    {"lion", lion, 4, 0, 0},
    {"lamb", lamb, 7, 0, 0},
    {"lars", lars, 4, 0, 0},
    {"lars_nesterov", lars_nesterov, 4, 0, 0},
    {"adagrad", adagrad, 4, 0, 0},
    {"adadelta", adadelta, 7, 0, 0},
    {"rmsprop", rmsprop, 4, 0, 0},
    {"rmsprop_centered", rmsprop_centered, 10, 0, 0},
    {"rmsprop_debiased", rmsprop_debiased, 7, 0, 0},
    {"adafactor", adafactor, 7, 0, 0},
    {"adafactor_factored", adafactor_factored, 10, 0, 0},
    {"clip_by_value", clip_by_value, 1, 0, 0},
    {"clip_by_norm", clip_by_norm, 1, 0, 0},
    {"clip_by_global_norm", clip_by_global_norm, 7, 0, 0},
    {"decayed_weights", decayed_weights, 1, 0, 0},
    {"ema", ema, 4, 0, 0},
    {"ema_biased", ema_biased, 4, 0, 0},
    {"multi_steps", multi_steps, 12, 0, 0},
    {"groups", groups, 6, 0, 0},
    {"schedule_free", schedule_free, 6, 0, 0},
    {"schedule_free_params", schedule_free, 6, 1, 0},
    {"schedule_free_adamw", schedule_free_adamw, 9, 0, 0},
    {"lookahead", lookahead, 10, 0, 0},
    {"params_ema", params_ema, 4, 1, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

// ---------------------------------------------------------------------------------------
// The golden file

static int read_golden(const char *name, jot_dtype dtype, int step, double *out, int most)
{
    char head[80], line[1000];
    FILE *f = fopen("tests/library/optim.golden", "r");
    ck_assert_ptr_nonnull(f);
    snprintf(head, sizeof head, "%s %s %d ", name, dtype == JOT_F32 ? "float32" : "float64",
             step);
    int n = 0;
    while (!n && fgets(line, sizeof line, f))
        if (!strncmp(line, head, strlen(head)))
            for (char *at = line + strlen(head), *end; n < most; at = end, n++) {
                out[n] = strtod(at, &end);
                if (end == at)
                    break;
            }
    fclose(f);
    ck_assert_msg(n > 0, "%s: not in the file", head);
    return n;
}

static void read_out(const jot_array *a, double *out)
{
    for (size_t i = 0; i < jot_array_size(a); i++)
        out[i] = jot_array_dtype(a) == JOT_F32 ? (double)((const float *)jot_array_data(a))[i]
                                               : ((const double *)jot_array_data(a))[i];
}

// Within 8 ULP of the largest element in f32, and 1e-12 of it in f64.
static void check_near(const char *name, jot_dtype dtype, int step, int64_t n,
                       const double *have, const double *want)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(want[i]));
    double ulp = ldexp(1, ilogb(largest) - 23),
           most = dtype == JOT_F32 ? 8 * ulp : 1e-12 * largest;
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(have[i] - want[i]) <= most,
                      "%s, %s, step %d: %.17g is not %.17g, by %.2g of what may be", name,
                      jot_dtype_name(dtype), step, have[i], want[i],
                      fabs(have[i] - want[i]) / most);
}

// ---------------------------------------------------------------------------------------
// All steps

struct training {
    jot_optimizer optimizer;
    size_t n_state;
    bool is_asked;
};

static void step(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    const struct training *t = ctx;
    jot_value g[LEAVES], *state = carry + LEAVES;
    memcpy(g, row, sizeof g);
    jot_optimizer_step_tree(t->optimizer, LEAVES, g, carry, t->n_state, state, JOT_HERE);
    memcpy(out, carry, sizeof g);
    if (t->is_asked)
        jot_optimizer_params_tree(t->optimizer, LEAVES, carry, t->n_state, state, out,
                                  JOT_HERE);
}

// in: parameters, gradients of all steps; out: the parameters after each.
static void train(const jot_value *in, jot_value *out, void *ctx)
{
    const struct training *t = ctx;
    jot_value carry[LEAVES + MOST_STATE];
    memcpy(carry, in, LEAVES * sizeof *in);
    jot_optimizer_init_tree(t->optimizer, LEAVES, carry, t->n_state, carry + LEAVES, JOT_HERE);
    jot_scan(step, ctx, LEAVES + t->n_state, carry, LEAVES, in + LEAVES, LEAVES, out, NULL);
}

static void check_case(int i, jot_dtype dtype)
{
    struct training t = {cases[i].make(), (size_t)cases[i].state, cases[i].is_asked};
    ck_assert_uint_eq(jot_optimizer_leaves(t.optimizer, LEAVES), t.n_state);
    jot_array *in[2 * LEAVES], *out[LEAVES];
    make_leaves(dtype, false, in);
    make_leaves(dtype, true, in + LEAVES);
    jot_executable *f = jot_jit(jot_function_make(train, 2 * LEAVES, LEAVES, &t));
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    for (int shown = 0; shown < 2; shown++) {
        double want[ELEMENTS], have[STEPS * 6];
        int64_t done = shown ? STEPS : 3, k = 0;
        ck_assert_int_eq(read_golden(cases[i].name, dtype, (int)done, want, ELEMENTS),
                         ELEMENTS);
        for (int leaf = 0; leaf < LEAVES; k += extents[leaf++]) {
            read_out(out[leaf], have);
            check_near(cases[i].name, dtype, (int)done, extents[leaf],
                       have + (done - 1) * extents[leaf], want + k);
        }
    }
    jot_executable_release(f);
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out));
}

START_TEST(test_f32)
{
    if (!cases[_i].is_f64_only)
        check_case(_i, JOT_F32);
}
END_TEST

START_TEST(test_f64) { check_case(_i, JOT_F64); }
END_TEST

// ---------------------------------------------------------------------------------------
// Schedules

static void ask_schedule(const jot_value *in, jot_value *out, void *ctx)
{
    const jot_dtype dtype = jot_value_dtype(in[1]);
    out[0] = jot_schedule_value(*(const jot_schedule *)ctx, in[0], dtype);
}

START_TEST(test_schedule)
{
    const int32_t counts[COUNTS] = {0, 1, 2, 5, 9, 10, 11, 17, 24, 25, 30, 42, 49, 50, 80};
    jot_schedule s = schedules[_i].make();
    jot_executable *f = jot_jit(jot_function_make(ask_schedule, 2, 1, &s));
    for (int d = 0; d < 2; d++) {
        jot_dtype dtype = d ? JOT_F64 : JOT_F32;
        jot_array *at = jot_array_from(counts, COUNTS), *like = jot_array_full(dtype, 0), *y;
        double have[COUNTS], want[COUNTS];
        must(jot_call(f, JOT_IN(at, like), JOT_OUT(y)));
        ck_assert_int_eq(read_golden(schedules[_i].name, dtype, COUNTS, want, COUNTS), COUNTS);
        read_out(y, have);
        check_near(schedules[_i].name, dtype, 0, COUNTS, have, want);
        jot_array_release(at), jot_array_release(like), jot_array_release(y);
    }
    jot_executable_release(f);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_f32, 0, CASES);
    tcase_add_loop_test(t, test_f64, 0, CASES);
    tcase_add_loop_test(t, test_schedule, 0, sizeof schedules / sizeof *schedules);
}

int main(void) { return suite_run("library/optim", add); }
