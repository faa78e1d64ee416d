// SPDX-License-Identifier: Apache-2.0
// Random programs: making them, what must hold of each, and making a bad one small.
#ifndef RANDOM_PROGRAMS_H
#define RANDOM_PROGRAMS_H

#include "ir/build.h"
#include "ir/eval.h"

// What a program is like, beside being over all ops of the op table.
enum program_kind {
    PROGRAM_DERIVABLE = 1u << 0, // f64 parameters, the same for NaN-free operands everywhere
    PROGRAM_LOOPS = 1u << 1,     // mostly loops and branches, in each other
    PROGRAM_RECORDS = 1u << 2,   // callbacks write down what they see (record.h)
    PROGRAM_WIDE = 1u << 3,      // values of some ten thousand elements
    PROGRAM_LARGE = 1u << 4,     // extents as people have them, mostly f32: compiled, not run
    PROGRAM_LANES = 1u << 5,     // what each device of a mesh does, with collectives
    PROGRAM_PIECES =
        1u << 6, // values that devices of the mesh have in pieces, and ops between them
};

uint32_t program_make(struct ir_module *m, uint64_t seed, unsigned kind);
// The same with the long extent of large values larger by so much: a neighbour, unless extents decide what it has.
uint32_t program_make_stretched(struct ir_module *m, uint64_t seed, unsigned kind,
                                int64_t stretch);
// Operands for it; some of them special values unless it is derivable.
struct ir_tensor *program_inputs(struct ir_module *m, const struct ir_graph *g, uint64_t seed,
                                 unsigned kind);
// What one run of f does, without loops, branches and effects.
uint32_t program_unroll(struct ir_module *m, uint32_t f, const struct ir_tensor *in);

enum program_property {
    PROGRAM_VERIFIES = 1u << 0,   // no faults, and the evaluator runs it
    PROGRAM_PRINTS = 1u << 1,     // the text parses to the same graph
    PROGRAM_CANONICAL = 1u << 2,  // canonical order is stable and keeps the bits
    PROGRAM_SIMPLIFIES = 1u << 3, // simplification keeps the bits
    PROGRAM_SCHEDULES = 1u << 4,  // the interpreter of nests gives the bits
    PROGRAM_SEPARATE = 1u << 5,   // the same with every value in a kernel of its own
    PROGRAM_NATIVE = 1u << 6,     // machine code of both gives the bits
    PROGRAM_TRANSPOSES = 1u << 7, // <w, J v> = <J' w, v>
    PROGRAM_MAPS = 1u << 8,       // vmap is a loop
    PROGRAM_COMMUTES = 1u << 9,   // grad . vmap = vmap . grad
    PROGRAM_UNROLLS = 1u << 10,   // derivatives are those of its run without loops
    PROGRAM_KEEPS = 1u << 11,     // transforms keep effects and their order
    PROGRAM_MACHINE = 1u << 12,   // machine code of transforms gives bits and effects
    PROGRAM_CHECKS = 1u << 13,    // checks of numbers stop kernels and evaluator alike
    PROGRAM_COMPILES =
        1u << 14, // code generators take it and its gradient, the host's and a GPU's
    PROGRAM_UNSHARDS = 1u << 15, // lanes side by side give what their map gives
    PROGRAM_DEVICES = 1u << 16,  // devices of the host give what the whole gives
    PROGRAM_SHARES = 1u << 17,   // the levels of a GPU's or a processor's mapping give the bits
    PROGRAM_FAULT = 1u << 18,    // agrees with a copy that is wrong: fails on purpose
    PROGRAM_PROPERTIES = 19,
};
extern const char *const program_property_names[PROGRAM_PROPERTIES];

// The first of the properties that does not hold, or 0; *why says what is wrong.
unsigned program_check(struct ir_module *m, uint32_t f, uint64_t seed, unsigned kind,
                       unsigned properties, struct strbuf *why);

// A smaller function of which the property does not hold either.
uint32_t program_reduce(struct ir_module *m, uint32_t f, uint64_t seed, unsigned kind,
                        unsigned property);

#endif
