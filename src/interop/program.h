// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_PROGRAM_H
#define INTEROP_PROGRAM_H

#include "interop/jax_export.h"
#include "interop/to_graph.h"

#include "jot/program.h"

#include <pthread.h>

struct jot_program {
    struct mlir_program *tree;
    const struct mlir_program *flat; // the tree as it is traced (flatten_tuples.h)
    char *file;
    struct graph_function *functions; // as those of the tree
    jot_program_signature *signatures;
    struct jax_export *artefact; // that the tree is of, or NULL
    // Of an artefact: the function of JAX, whose arguments are more than those of main.
    jot_program_signature signature;
    struct jot_program *vjp; // of that function, or NULL; its artefact is part of this one
    struct program_dynamic *dynamic; // by function, of those whose extents are not known
    pthread_mutex_t lock;
    struct jot_program *refined, *next; // those made of it for arguments so far; under its lock
    const char *key;                    // of a refined one: the types of the arguments
};

// A function whose extents are not known.
struct program_dynamic {
    jot_program *p;
    const struct mlir_function *f;
    bool takes_platform; // as its first argument, which then is this number
    int64_t platform;
};

// The index of the function in the tree; -1 with a message when there is none.
int program_find(const jot_program *p, const char *name);
// A program with a tree; takes the tree over.  NULL with a message.
jot_program *program_of_tree(const char *file, struct mlir_program *tree);
// The function of the tree with that number; its arguments are those of the tree, but for the platform.
jot_function program_function(const jot_program *p, int i);
// The same of a function that is dynamic: it is made anew for the types that it is used with.
jot_function dynamic_function(const struct program_dynamic *d);

#endif
