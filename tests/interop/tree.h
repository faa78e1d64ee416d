// SPDX-License-Identifier: Apache-2.0
// The tree of a program of MLIR as text, for tests: two programs are the same when it is.
// Attributes stand in the order of the alphabet without those that have their default, elements of
// tensors as a hash; places and locations are left out.
#ifndef TESTS_INTEROP_TREE_H
#define TESTS_INTEROP_TREE_H

#include "base/strbuf.h"
#include "interop/mlir.h"

void tree_print(struct strbuf *out, const struct mlir_program *p);
// Fails a test, showing the first lines that differ, unless the two texts are the same.
void tree_compare(const char *what, const char *a, const char *b);

// A file of the folder of programs; what it holds is released by free.
unsigned char *tree_load(const char *path, size_t *out_n);

#endif
