// SPDX-License-Identifier: Apache-2.0
// The tree of a program of MLIR as text, for tests: two programs are the same when it is.
// Attributes stand in the order of the alphabet without those that have their default, elements of
// tensors as a hash; places and locations are left out.
#ifndef TESTS_INTEROP_TREE_H
#define TESTS_INTEROP_TREE_H

#include "base/strbuf.h"
#include "interop/jax_export.h"

void tree_print(struct strbuf *out, const struct mlir_program *p);
// Fails a test, showing the first lines that differ, unless the two texts are the same.
void tree_compare(const char *what, const char *a, const char *b);

// A file; what it holds is released by free.
unsigned char *tree_load(const char *path, size_t *out_n);

// A program of tests/interop/programs: of text, of bytecode, or what an artefact has of a function or of its gradient.
struct tree_file {
    unsigned char *bytes;
    struct jax_export *export; // or NULL
    struct mlir_program *program;
};
struct tree_file tree_open(const char *name, bool is_vjp);
void tree_close(struct tree_file *f);

#endif
