// SPDX-License-Identifier: Apache-2.0
// A program in other words: functions renamed, operations in another order that uses values after they
// are made.
#ifndef TESTS_INTEROP_SHUFFLE_H
#define TESTS_INTEROP_SHUFFLE_H

#include "interop/mlir.h"

// The text, a tree by mlir_read_text, as jot writes it as text or as bytecode; to be freed.
char *shuffle_rewrite(const char *name, const void *bytes, size_t n, uint64_t seed,
                      bool as_text, size_t *out_size);

#endif
