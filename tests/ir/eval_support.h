// SPDX-License-Identifier: Apache-2.0
// What the tests of the evaluator share.
#ifndef TESTS_EVAL_SUPPORT_H
#define TESTS_EVAL_SUPPORT_H

#include "base/status.h"
#include "ir/build.h"
#include "ir/eval.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static struct ir_module *module;
static struct arena *arena;

static inline void setup(void)
{
    module = ir_module_create();
    arena = arena_create();
}

static inline void teardown(void)
{
    ir_module_release(module);
    arena_release(arena);
}

#define DIMS(...)                                                                              \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])         \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

static inline struct ir_tensor tensor(jot_dtype d, int rank, const int64_t *dims,
                                      const void *data)
{
    return (struct ir_tensor){ir_type_make(module, d, rank, dims), (void *)(uintptr_t)data};
}

static inline struct ir_tensor vector(jot_dtype d, int64_t n, const void *data)
{
    return tensor(d, 1, &n, data);
}

static inline struct ir_tensor point(jot_dtype d, const void *data)
{
    return tensor(d, 0, NULL, data);
}

// The node on the operands, built, checked and run: its first result.
static inline struct ir_tensor run(enum ir_op op, const struct ir_attrs *attrs, int n,
                                   const struct ir_tensor *in)
{
    struct ir_builder b = ir_builder_make(module, "test", IR_BUILD_PLAIN);
    ir_id ids[8];
    for (int i = 0; i < n; i++)
        ids[i] = ir_param(&b, in[i].type);
    ir_id first = ir_build(&b, op, n, ids, attrs);
    ck_assert_msg(first != IR_NONE, "%s: %s", ir_op_get(op)->name, b.message);
    ir_output(&b, first);
    struct ir_graph *g = ir_finish(&b);
    ck_assert_ptr_nonnull(g);
    struct ir_tensor out = {0};
    ck_assert_int_eq(ir_eval(arena, g, in, &out), JOT_OK);
    ck_assert(ir_type_equal(out.type, ir_type_of(g, first)));
    return out;
}

static inline struct ir_tensor run1(enum ir_op op, const struct ir_attrs *attrs,
                                    struct ir_tensor x)
{
    return run(op, attrs, 1, &x);
}

static inline struct ir_tensor run2(enum ir_op op, struct ir_tensor x, struct ir_tensor y)
{
    return run(op, NULL, 2, (struct ir_tensor[]){x, y});
}

static inline uint32_t bits32(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline uint64_t bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static inline bool same32(float x, float y)
{
    return (x != x && y != y) || bits32(x) == bits32(y);
}
static inline bool same64(double x, double y)
{
    return (x != x && y != y) || bits64(x) == bits64(y);
}

// xorshift64*
static uint64_t random_state = 88172645463325252u;
static inline uint64_t random_bits(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}
static inline double random_unit(void) { return (double)(random_bits() >> 11) * 0x1p-53; }

// Within `limit` units in the last place of the long double result.
static inline void check_close(const char *name, long double truth, double got, int digits,
                               double limit)
{
    if (isnan(truth)) {
        ck_assert_msg(isnan(got), "%s: %g, not NaN", name, got);
        return;
    }
    int exponent;
    frexpl(truth, &exponent);
    int least = digits == 24 ? -125 : -1021;
    long double unit = ldexpl(1, (exponent < least ? least : exponent) - digits);
    long double error = fabsl((long double)got - truth) / unit;
    bool is_equal = isinf(truth) ? (long double)got == truth : error <= limit;
    ck_assert_msg(is_equal, "%s: %a, not %La: %Lg ulp", name, got, truth, error);
}

// Runs the tests that add_tests adds.
static inline int run_suite(const char *name, void (*add_tests)(TCase *t))
{
    Suite *suite = suite_create(name);
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    add_tests(t);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
