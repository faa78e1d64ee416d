// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_PROGRAM_H
#define INTEROP_PROGRAM_H

#include "interop/jax_export.h"
#include "interop/to_graph.h"

#include "jot/program.h"

struct jot_program {
    struct mlir_program *tree;
    char *file;
    void *bytes;                      // what it was read from
    struct graph_function *functions; // as those of the tree
    jot_program_signature *signatures;
    struct jax_export *artefact; // that the tree is of, or NULL
    // Of an artefact: the function of JAX, whose arguments are more than those of main.
    jot_program_signature signature;
    struct jot_program *vjp; // of that function, or NULL; its artefact is part of this one
};

// The place of the function in the tree; -1 with a message when there is none.
int program_find(const jot_program *p, const char *name);

#endif
