// SPDX-License-Identifier: Apache-2.0
// Cases of every op of the op table: attributes, operand types and operand data.
//
//     struct opcases cases = opcases_make(module, JOT_F64, seed);
//     for (uint32_t i = 0; i < cases.count; i++) check(&cases.at[i]);
//
// The walk is over ops.def: operands are drawn by the columns `domain` and `types`, attributes by
// the op's class.  A new elementwise op needs nothing here.  Nodes with bodies and parameters are
// left out.
#ifndef TESTS_OPCASES_H
#define TESTS_OPCASES_H

#include "ir/build.h"
#include "ir/eval.h"

enum { OPCASE_OPERANDS = 4 };

struct opcase {
    enum ir_op op;
    const struct ir_attrs *attrs;
    int n_in;
    struct ir_tensor in[OPCASE_OPERANDS];
    const char *text; // "add f64[2,3] f64[]"
};

struct opcases {
    struct opcase *at;
    uint32_t count, capacity;
};

// All cases whose operands are of the dtype (predicates, shifts, ... have their own); memory of
// the module's arena.  Shapes include sizes 0 and 1 and both kinds of broadcasting.
struct opcases opcases_make(struct ir_module *m, jot_dtype dtype, uint64_t seed);

// The op alone as a function of its operands; every result is an output.
uint32_t opcase_function(struct ir_module *m, const struct opcase *c);

// Whether an op takes the dtype, by the column `types`.
bool opcase_takes(enum ir_op op, jot_dtype dtype);

// Elements of a dtype drawn from a domain of ops.def.
struct ir_tensor opcase_draw(struct ir_module *m, struct ir_type t, const char *domain,
                             uint64_t *state);
// Makes matrices of floats such that lu swaps their rows, and each pivot is the largest by any measure:
// of complex numbers a GPU's library has another than LAPACK.
void opcase_make_swapped(struct ir_module *m, struct ir_tensor *t, uint64_t *state);

// A number in [0, 1) and the next state.
double opcase_random(uint64_t *state);

#endif
