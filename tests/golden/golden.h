// SPDX-License-Identifier: Apache-2.0
// Reading the golden files (their format is in make_golden.py).
#ifndef GOLDEN_GOLDEN_H
#define GOLDEN_GOLDEN_H

#include "ir/eval.h"

enum golden_how { GOLDEN_EXACT, GOLDEN_ULP, GOLDEN_CLOSE };
enum { GOLDEN_TENSORS = 8 };

struct golden_test {
    const char *name;
    enum golden_how how;
    double bound;
    const char *apply; // NULL, or a transform and its arguments
    const char *op;    // statements, separated by |
    int n_in, n_out;
    struct ir_tensor in[GOLDEN_TENSORS], out[GOLDEN_TENSORS];
};

struct golden {
    const char *made; // with what
    VEC(struct golden_test) tests;
    VEC(char **) lines; // words of the other lines, NULL at the end
};

// Reads a file; fails the test that runs when it cannot.
struct golden golden_read(struct ir_module *m, const char *path);
// A tensor from "f32[2,3]" and its digits.
struct ir_tensor golden_tensor(struct ir_module *m, const char *type, const char *digits);

#endif
