// SPDX-License-Identifier: Apache-2.0
// Nests as machine code against the interpreter, bit for bit.
#ifndef CODEGEN_NEST_CHECK_H
#define CODEGEN_NEST_CHECK_H

#include "support/nest_eval.h"
#include "support/run_native.h"
#include "support/sample.h"

#include <check.h>
#include <stdint.h>

extern struct arena *nest_check_arena; // of the test that runs
// What is drawn: integers from 0 to 39 and some NaN, or integers of any bits and no NaN.
extern bool nest_check_any;

void nest_check_setup(void);
uint64_t nest_check_seed(void);   // JOT_TEST_SEED, or 1
void nest_check_vary(int number); // other random numbers for each of many programs
void nest_check_teardown(void);
uint64_t nest_check_random(void);
// The first element that differs, or -1.  NaN of any kind equals NaN.
int64_t nest_check_differs(jot_dtype d, int64_t count, const void *left, const void *right);

// The text with numbers for %B, %T, %P (their product), types for %d.
const char *nest_check_instance(const char *text, int64_t lanes, int64_t times,
                                const char *dtype);
// A kernel on random operands, or every kernel of the text; they wait until there are enough for a
// program.
void nest_check(struct nest *n);
void nest_check_text(const char *text);
// An index of a kernel that is built: a constant and terms.
static inline struct nest_index form(struct nest_builder *b, int64_t constant, int n,
                                     const struct nest_term *terms)
{
    return nest_index_make(b->nest->arena, constant, n, terms);
}

#define AXIS(axis, by) ((struct nest_term){.factor = (by), .id = (axis)})

// Runs what waits: the end of a test.
void nest_check_end(void);

#endif
