// SPDX-License-Identifier: Apache-2.0
// Nests as machine code against the interpreter, bit for bit.
#ifndef CODEGEN_NEST_CHECK_H
#define CODEGEN_NEST_CHECK_H

#include "support/nest_eval.h"
#include "support/run_native.h"

#include <check.h>
#include <stdint.h>

extern struct arena *nest_check_arena; // of the test that runs

void nest_check_setup(void);
uint64_t nest_check_seed(void);   // JOT_TEST_SEED, or 1
void nest_check_vary(int number); // other random numbers for each of many programs
void nest_check_teardown(void);
uint64_t nest_check_random(void);

// Every kernel of the text, on random operands.  Forgets what is in the arena.
void nest_check_text(const char *text);

#endif
