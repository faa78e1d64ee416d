// SPDX-License-Identifier: Apache-2.0
// What the tests of transforms share: running functions in the evaluator, and comparing.
#ifndef TESTS_PASS_SUPPORT_H
#define TESTS_PASS_SUPPORT_H

#include "base/status.h"
#include "ir/eval.h"
#include "passes/passes.h"
#include "support/opcases.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern struct ir_module *module;
extern uint64_t seed; // of the run; printed when a test fails

void support_setup(void);
void support_teardown(void);
int support_run(const char *name, void (*add_tests)(TCase *t));

#define require(status)                                                                        \
    do {                                                                                       \
        jot_status status_ = (status);                                                         \
        ck_assert_msg(status_ == JOT_OK, "%s", jot_error_message());                           \
    } while (0)

struct ir_type type_of_dims(jot_dtype d, int rank, const int64_t *dims);
#define F64(...)                                                                               \
    type_of_dims(JOT_F64, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                 (int64_t[]){__VA_ARGS__})
#define F64_SCALAR type_of_dims(JOT_F64, 0, NULL)

// The finished function of a builder.
uint32_t done(struct ir_builder *b);
// The function parsed from text.
uint32_t parse(const char *text);
const struct ir_graph *graph(uint32_t f);
// The results of f; fails the test when it does not verify or run.
struct ir_tensor *evaluate(uint32_t f, const struct ir_tensor *in);
struct ir_tensor draw(struct ir_type t, uint64_t *state);
struct ir_tensor zeros(struct ir_type t);
struct ir_tensor scalar_f64(double x);

// Element i as a complex number, whatever the (float or complex) dtype.
struct complex_number {
    double re, im;
};
struct complex_number element(struct ir_tensor x, int64_t i);
// Re of the sum of products, without conjugation: what transposition preserves.
double pair(struct ir_tensor x, struct ir_tensor y);
// x + scale * t for inexact types.
struct ir_tensor moved(struct ir_tensor x, struct ir_tensor t, double scale);
// Largest difference relative to 1 + |value|; NaN equals NaN.
double distance(struct ir_tensor x, struct ir_tensor y);
bool bits_equal(struct ir_tensor x, struct ir_tensor y);

// Lane i of a tensor with a leading axis, and lanes put together.
struct ir_tensor lane(struct ir_tensor x, int64_t i);
struct ir_tensor stack(struct ir_type lane_type, int64_t n, const struct ir_tensor *lanes);

// A mask of n with the bits of a number.
const bool *mask_of(uint32_t n, uint64_t bits);

// -- Checks of a transform ---------------------------------------------------------------------
// what names the case in messages; mask says which inputs are differentiated in or mapped.

static inline bool inexact(struct ir_type t) { return dtype_is_inexact(ir_dtype(t)); }
bool *inexact_inputs(const struct ir_graph *g);
uint64_t inexact_bits(uint32_t f); // the same as a number
// The tangents of all results of f, as pass_jvp gives them; zeros made.
struct ir_tensor *tangents(uint32_t f, const bool *nonzero, const struct ir_tensor *x,
                           const struct ir_tensor *dx);
// pass_jvp against central differences, in a random direction.
void check_differences(const char *what, uint32_t f, const bool *mask,
                       const struct ir_tensor *x, uint64_t *state);
// pass_vjp against pass_jvp: <w, J v> = <J' w, v>.
void check_transpose(const char *what, uint32_t f, const bool *mask, const struct ir_tensor *x,
                     uint64_t *state);
// pass_inline and pass_simplify keep every bit.
void check_simplify(const char *what, uint32_t f, const struct ir_tensor *x);
// pass_vmap against a loop; lanes after the first are drawn from the domain.
void check_vmap(const char *what, uint32_t f, const bool *mask, int64_t size,
                const struct ir_tensor *x, double tolerance, const char *domain,
                uint64_t *state);

#endif
