// SPDX-License-Identifier: Apache-2.0
// Random numbers are those of jax.random: bits, integers and uniform ones bit for bit, others to a
// few units in the last place, because elementary functions of XLA are not jot's.
#include "golden/golden.h"
#include "support/suite.h"

#include <check.h>
#include <jot/jot.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct ir_module *module;
static jot_scope *scope;

static void setup(void)
{
    module = ir_module_create();
    scope = jot_scope_open();
}

static void teardown(void)
{
    jot_scope_close(scope);
    ir_module_release(module);
}

static double number(jot_dtype d, const void *data, int64_t i)
{
    if (d == JOT_F64 || d == JOT_C128)
        return ((const double *)data)[i];
    if (d == JOT_F32 || d == JOT_C64)
        return (double)((const float *)data)[i];
    uint16_t half = ((const uint16_t *)data)[i];
    return (double)(d == JOT_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half));
}

typedef jot_value draw0(jot_value key, jot_dtype d, const int64_t *dims);
typedef jot_value draw1(jot_value key, jot_dtype d, jot_value a, const int64_t *dims);
typedef jot_value draw2(jot_value key, jot_dtype d, jot_value a, jot_value b,
                        const int64_t *dims);
typedef jot_value draw3(jot_value key, jot_dtype d, jot_value a, jot_value b, jot_value c,
                        const int64_t *dims);

// Distributions by the number of their parameters, and how many units in the last place their f32
// and f64 may differ; those of f16 and bf16 are rounded more often here than by XLA.
static const struct distribution {
    const char *name;
    int n_params, ulps;
    void (*draw)(void);
} distributions[] = {
#define DRAW(name, n, ulps) {#name, n, ulps, (void (*)(void))(jot_random_##name##_dims)}
    DRAW(bits, 0, 0),
    DRAW(rademacher, 0, 0),
    DRAW(uniform, 0, 0),
    DRAW(normal, 0, 4),
    DRAW(exponential, 0, 1),
    DRAW(gumbel, 0, 8),
    DRAW(laplace, 0, 1),
    DRAW(logistic, 0, 8),
    DRAW(cauchy, 0, 4),
    DRAW(maxwell, 0, 4),
    DRAW(geometric, 1, 0),
    DRAW(lognormal, 1, 8),
    DRAW(rayleigh, 1, 1),
    DRAW(pareto, 1, 8),
    DRAW(wald, 1, 64), // JAX takes a difference of what is nearly equal
    DRAW(randint, 2, 0),
    DRAW(uniform_in, 2, 0),
    DRAW(weibull_min, 2, 4),
    DRAW(double_sided_maxwell, 2, 4),
    DRAW(triangular, 3, 0),
    DRAW(truncated_normal, 2, 8),
    DRAW(gamma, 1, 8),
    DRAW(loggamma, 1, 8),
    DRAW(chisquare, 1, 8),
    DRAW(t, 1, 8),
    DRAW(beta, 2, 8),
    DRAW(f, 2, 8),
    DRAW(generalized_normal, 1, 8),
    DRAW(poisson, 1, 0),
    DRAW(binomial, 2, 0),
#undef DRAW
};

static const struct distribution *find(const char *name)
{
    for (size_t i = 0; i < sizeof distributions / sizeof *distributions; i++)
        if (!strcmp(distributions[i].name, name))
            return &distributions[i];
    return NULL;
}

// The numbers of "-1,2.5", or of "-".
static void read_params(const char *text, jot_value *p)
{
    for (int n = 0; n < 3 && strcmp(text, "-"); n++) {
        char *end;
        double x = strtod(text, &end);
        bool is_float = memchr(text, '.', (size_t)(end - text)) != NULL;
        p[n] = is_float ? jot_from(x) : jot_from(strtoll(text, NULL, 10));
        if (!*end)
            return;
        text = end + 1;
    }
}

static jot_value value_of(const char *function, jot_dtype d, jot_value key,
                          const char *arguments, const int64_t *dims)
{
    if (!strcmp(function, "key"))
        return key;
    if (!strcmp(function, "split"))
        return jot_random_split(key, atoi(arguments));
    if (!strcmp(function, "fold_in")) {
        int64_t data = strtoll(arguments, NULL, 0);
        return jot_random_fold_in(key, jot_convert(data, JOT_U32));
    }
    jot_value p[3];
    read_params(arguments, p);
    if (!strcmp(function, "bernoulli"))
        return (jot_random_bernoulli_dims)(key, p[0], dims);
    const struct distribution *f = find(function);
    ck_assert_msg(f != NULL, "%s", function);
    switch (f->n_params) {
    case 0:
        return ((draw0 *)f->draw)(key, d, dims);
    case 1:
        return ((draw1 *)f->draw)(key, d, p[0], dims);
    case 2:
        return ((draw2 *)f->draw)(key, d, p[0], p[1], dims);
    default:
        return ((draw3 *)f->draw)(key, d, p[0], p[1], p[2], dims);
    }
}

static double tolerance_of(const char *function, jot_dtype d)
{
    const struct distribution *f = find(function);
    if (!f || f->ulps == 0)
        return 0;
    return d == JOT_F64 || d == JOT_C128  ? f->ulps * 0x1p-52
           : d == JOT_F32 || d == JOT_C64 ? f->ulps * 0x1p-23
           : d == JOT_F16                 ? 64 * 0x1p-10
                                          : 64 * 0x1p-7;
}

// random FUNCTION DTYPE SEED ARGUMENTS TYPE HEX
static void check_line(char **w)
{
    const char *function = w[1];
    jot_dtype d = (jot_dtype)dtype_find(w[2], strlen(w[2]));
    struct ir_tensor want = golden_tensor(module, w[5], w[6]);
    int64_t dims[IR_MAX_RANK + 1], count = ir_count(module, want.type);
    memcpy(dims, ir_dims(module, want.type), want.type.rank * sizeof *dims);
    dims[want.type.rank] = JOT_END;
    jot_value key = jot_random_key((int64_t)strtoll(w[3], NULL, 0));
    jot_array *got = NULL;
    jot_status status = jot_eval(value_of(function, d, key, w[4], dims), &got);
    ck_assert_msg(status == JOT_OK, "%s %s: %s", function, w[2], jot_error_message());
    ck_assert_int_eq((int)jot_array_dtype(got), (int)ir_dtype(want.type));
    ck_assert_int_eq((int64_t)jot_array_size(got), count);
    size_t size = jot_dtype_size(ir_dtype(want.type));
    for (int64_t i = 0; i < count; i++) {
        const char *x = (const char *)jot_array_data(got) + (size_t)i * size;
        if (!memcmp(x, (const char *)want.data + (size_t)i * size, size))
            continue;
        ck_assert_msg(dtype_is_inexact(d), "%s %s of seed %s: element %lld differs", function,
                      w[2], w[3], (long long)i);
        for (int part = 0; part <= dtype_is_complex(d); part++) {
            int64_t at = i * (1 + dtype_is_complex(d)) + part;
            double a = number(d, jot_array_data(got), at), b = number(d, want.data, at);
            ck_assert_msg(fabs(a - b) <= tolerance_of(function, d) * fabs(b),
                          "%s %s of seed %s: element %lld is %.17g, expected %.17g", function,
                          w[2], w[3], (long long)i, a, b);
        }
    }
    jot_array_release(got);
}

START_TEST(numbers_are_those_of_jax)
{
    struct golden g = golden_read(module, "tests/golden/random.golden");
    ck_assert_uint_gt(g.lines.count, 200);
    for (uint32_t i = 0; i < g.lines.count; i++)
        check_line(g.lines.at[i]);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, numbers_are_those_of_jax);
}

int main(void)
{
    setenv("JOT_BACKEND", "eval", 0);
    return suite_run("random", add_tests);
}
