// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_PROGRAM_H
#define INTEROP_PROGRAM_H

#include "interop/to_graph.h"

#include "jot/program.h"

struct jot_program {
    struct mlir_program *tree;
    char *file;
    void *bytes;                      // what it was read from
    struct graph_function *functions; // as those of the tree
    jot_program_signature *signatures;
};

// The place of the function in the tree; -1 with a message when there is none.
int program_find(const jot_program *p, const char *name);

#endif
