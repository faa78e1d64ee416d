// SPDX-License-Identifier: Apache-2.0
// Stiff equations: ends beside those of make_stiff.py, and how many steps it takes.
#include "ode_support.h"

struct many {
    jot_value y[20];
};

static jot_value times(double k, jot_value x, jot_value y) { return jot_mul(k, jot_mul(x, y)); }

static void robertson(const jot_value *y, jot_value *d)
{
    jot_value a = jot_mul(0.04, y[0]), b = times(1e4, y[1], y[2]), c = times(3e7, y[1], y[1]);
    d[0] = jot_sub(b, a), d[1] = jot_sub(jot_sub(a, b), c), d[2] = c;
}

static jot_value sum(int n, const double *k, const jot_value *y)
{
    jot_value s = jot_from(0.0);
    for (int i = 0; i < n; i++)
        s = k[i] != 0 ? jot_add(s, jot_mul(k[i], y[i])) : s;
    return s;
}

static void hires(const jot_value *y, jot_value *d)
{
    static const double k[8][8] = {
        {-1.71, 0.43, 8.32},
        {1.71, -8.75},
        {0, 0, -10.03, 0.43, 0.035},
        {0, 8.32, 1.71, -1.12},
        {0, 0, 0, 0, -1.745, 0.43, 0.43},
        {0, 0, 0, 0.69, 1.71, -0.43, 0.69},
        {0, 0, 0, 0, 0, 0, -1.81},
        {0, 0, 0, 0, 0, 0, 1.81},
    };
    for (int i = 0; i < 8; i++)
        d[i] = sum(8, k[i], y);
    jot_value bound = times(280, y[5], y[7]);
    d[0] = jot_add(d[0], 0.0007), d[5] = jot_sub(d[5], bound);
    d[6] = jot_add(d[6], bound), d[7] = jot_sub(d[7], bound);
}

static void oregonator(const jot_value *y, jot_value *d)
{
    jot_value rest = jot_sub(jot_sub(1, jot_mul(8.375e-6, y[0])), y[1]);
    d[0] = jot_mul(77.27, jot_add(y[1], jot_mul(y[0], rest)));
    d[1] = jot_div(jot_sub(y[2], jot_mul(jot_add(1, y[0]), y[1])), 77.27);
    d[2] = jot_mul(0.161, jot_sub(y[0], y[2]));
}

static void van_der_pol(const jot_value *y, jot_value *d)
{
    d[0] = y[1];
    d[1] = jot_mul(1e6, jot_sub(jot_mul(jot_sub(1, jot_square(y[0])), y[1]), y[0]));
}

// What a reaction takes and makes, values counted from 1.
static void pollution(const jot_value *y, jot_value *d)
{
    static const struct {
        double rate;
        int taken[2], made[3];
    } reactions[] = {
        {.35, {1}, {2, 3}},        {26.6, {2, 4}, {1}},      {12300, {5, 2}, {1, 6}},
        {.00086, {7}, {5, 5, 8}},  {.00082, {7}, {8}},       {15000, {7, 6}, {5, 8}},
        {.00013, {9}, {5, 8, 10}}, {24000, {9, 6}, {11}},    {16500, {11, 2}, {1, 10, 12}},
        {9000, {11, 1}, {13}},     {.022, {13}, {1, 11}},    {12000, {10, 2}, {1, 14}},
        {1.88, {14}, {5, 7}},      {16300, {1, 6}, {15}},    {4.8e6, {3}, {4}},
        {.00035, {4}, {16}},       {.0175, {4}, {3}},        {1e8, {16}, {6, 6}},
        {4.44e11, {16}, {3}},      {1240, {17, 6}, {5, 18}}, {2.1, {19}, {2}},
        {5.78, {19}, {1, 3}},      {.0474, {1, 4}, {19}},    {1780, {19, 1}, {20}},
        {3.12, {20}, {1, 19}},
    };
    for (int i = 0; i < 20; i++)
        d[i] = jot_zeros_like(y[i]);
    for (size_t r = 0; r < sizeof reactions / sizeof *reactions; r++) {
        const int *taken = reactions[r].taken, *made = reactions[r].made;
        jot_value speed = jot_mul(reactions[r].rate, y[taken[0] - 1]);
        speed = taken[1] ? jot_mul(speed, y[taken[1] - 1]) : speed;
        for (int i = 0; i < 2 && taken[i]; i++)
            d[taken[i] - 1] = jot_sub(d[taken[i] - 1], speed);
        for (int i = 0; i < 3 && made[i]; i++)
            d[made[i] - 1] = jot_add(d[made[i] - 1], speed);
    }
}

// ---- The problems

static const struct problem {
    const char *name;
    void (*slope)(const jot_value *y, jot_value *d);
    double end;
    double exact[20];
} problems[] = {
#define STIFF(name, end, ...) {#name, name, end, {__VA_ARGS__}},
#include "stiff.def"
#undef STIFF
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

// Numbers of values, where they begin, and how many steps, accepted and rejected, are enough
// with 1e-5 and 1e-8, for each of the methods.
static const struct {
    int n;
    double start[20];
    int enough[2][3];
} starts[] = {
    {3, {1}, {{950, 125, 210}, {9300, 420, 780}}},
    {8, {1, 0, 0, 0, 0, 0, 0, 0.0057}, {{560, 110, 160}, {5400, 530, 1000}}},
    {3, {1, 2, 3}, {{2020, 520, 630}, {20500, 1860, 3300}}},
    {2, {2, 0}, {{1950, 390, 510}, {19700, 1320, 2340}}},
    {20,
     {0, .2, 0, .04, 0, 0, .1, .3, .01, 0, 0, 0, 0, 0, 0, 0, .007},
     {{275, 64, 75}, {2700, 270, 380}}},
};
static const jot_ode_method methods[] = {JOT_ODE_KVAERNO3, JOT_ODE_KVAERNO5, JOT_ODE_RODAS5P};

static int problem;
static jot_ode_options wanted;

static void slope(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    problems[problem].slope(in + 1, out);
}

// The end, the status and the numbers of steps.
static jot_value solved(jot_value zero)
{
    int n = starts[problem].n;
    jot_ode_result r;
    jot_value y[20 + 3];
    for (int i = 0; i < n; i++)
        y[i] = jot_add(zero, starts[problem].start[i]);
    wanted.result = &r;
    jot_ode_solve_tree(jot_function_make(slope, n + 1, n, NULL), jot_from(0),
                       jot_from(problems[problem].end), (size_t)n, y, &wanted, JOT_HERE);
    y[n] = jot_convert(r.status, JOT_F64);
    y[n + 1] = jot_convert(r.accepted, JOT_F64);
    y[n + 2] = jot_convert(r.rejected, JOT_F64);
    return jot_stack_list(0, (size_t)n + 3, y);
}

START_TEST(stiff_equations_are_solved)
{
    problem = _i / 2;
    int n = starts[problem].n, fine = _i % 2;
    double tolerance = fine ? 1e-8 : 1e-5, y[23];
    if (fine && getenv("JOT_TEST_EMULATED")) // minutes
        return;
    for (int m = 0; m < 3; m++) {
        wanted = (jot_ode_options){.method = methods[m],
                                   .rtol = tolerance,
                                   .atol = tolerance * 1e-8,
                                   .most_steps = starts[problem].enough[fine][m]};
        run_numbers(jot_fn(solved), 1, (double[]){0}, 1, n + 3, y);
        ck_assert_msg(y[n] == JOT_ODE_DONE, "%s, method %d: status %g after %g and %g steps",
                      problems[problem].name, m, y[n], y[n + 1], y[n + 2]);
        for (int i = 0; i < n; i++)
            check_near(problems[problem].name, y[i] / problems[problem].exact[i], 1,
                       20 * tolerance);
    }
}
END_TEST

// Without an implicit method the same takes more steps than anyone waits for.
START_TEST(an_explicit_method_is_not_enough)
{
    double y[6];
    problem = 0;
    wanted = (jot_ode_options){.rtol = 1e-5, .atol = 1e-13, .most_steps = 10000};
    run_numbers(jot_fn(solved), 1, (double[]){0}, 1, 6, y);
    ck_assert_double_eq(y[3], JOT_ODE_MOST_STEPS);
}
END_TEST

// ---- Derivatives and lanes of Robertson's equations in the first rate

static void rated(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    robertson(in + 1, out);
    jot_value more = jot_mul(jot_sub(in[4], 0.04), in[1]);
    out[0] = jot_sub(out[0], more), out[1] = jot_add(out[1], more);
}

static jot_value last(jot_value rate)
{
    jot_value y[3] = {jot_from(1), jot_from(0), jot_from(0)};
    wanted.parameters = JOT_PARAMETERS(rate);
    jot_ode_solve_tree(jot_function_make(rated, 5, 3, NULL), jot_from(0), jot_from(100), 3, y,
                       &wanted, JOT_HERE);
    return y[2];
}

START_TEST(derivatives_are_those_of_the_solution)
{
    enum { LANES = 4 };
    double rate[LANES], slopes[3][LANES], ends[2][LANES], h = 1e-5;
    jot_array *in[3], *out;
    for (int m = 1; m < 3; m++) {
        wanted = (jot_ode_options){.method = methods[m], .rtol = 1e-9, .atol = 1e-15};
        const jot_function f[] = {jot_vmap(jot_fn(last)), jot_vmap(jot_grad(jot_fn(last))),
                                  jot_vmap(jot_jacfwd(jot_fn(last)))};
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < LANES; i++)
                rate[i] = 0.04 + 0.01 * i + (k == 2 ? 0 : k == 0 ? h : -h);
            in[k] = jot_array_from(rate, LANES);
        }
        for (int k = 0; k < 4; k++) {
            jot_executable *e = jot_jit(f[k < 2 ? 0 : k - 1]);
            must(jot_call(e, JOT_IN(in[k < 2 ? k : 2]), JOT_OUT(out)));
            must(jot_array_read(out, k < 2 ? ends[k] : slopes[k - 2], LANES));
            const char *schedule = jot_executable_text(e, "schedule");
            int kernels = 0;
            for (const char *at = schedule; at && (at = strstr(at, "\nkernel ")); at++)
                kernels++;
            // One of all steps, and one that finds the first.
            ck_assert_msg(!schedule || k >= 2 || kernels <= 2, "%d kernels", kernels);
            jot_array_release(out);
            jot_executable_release(e);
        }
        for (int i = 0; i < LANES; i++) {
            double difference = (ends[0][i] - ends[1][i]) / (2 * h);
            check_near("reverse", slopes[0][i] / difference, 1, 1e-4);
            check_near("forward", slopes[1][i], slopes[0][i], 1e-8);
        }
        for (int k = 0; k < 3; k++)
            jot_array_release(in[k]);
    }
}
END_TEST

static jot_value falling(jot_value t, jot_value y)
{
    (void)t;
    return jot_neg(y);
}

START_TEST(a_complex_state_is_refused)
{
    jot_scope *scope = jot_scope_open();
    jot_value y = jot_ones(JOT_C128);
    y = jot_ode_solve(jot_fn(falling), 0, 1, y, .method = JOT_ODE_KVAERNO3);
    jot_array *none;
    ck_assert_int_eq(jot_eval(y, &none), JOT_ERR_DTYPE);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "an implicit method takes a real state"));
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, stiff_equations_are_solved, 0, 2 * PROBLEMS);
    tcase_add_test(t, an_explicit_method_is_not_enough);
    tcase_add_test(t, derivatives_are_those_of_the_solution);
    tcase_add_test(t, a_complex_state_is_refused);
}

int main(void) { return run_suite("ode_stiff", add); }
