// SPDX-License-Identifier: Apache-2.0
// Which operands need no look at whether they are in range.
#ifndef CODEGEN_GPU_SIZES_H
#define CODEGEN_GPU_SIZES_H

#include "codegen/lower.h"

// Whether it is an operation whose operands are looked at; lowers any operation of a run.
bool gpu_is_sized(const struct cg_lowering *l, const struct nest_statement *s);
void gpu_lower_sized(struct cg_lowering *l, nest_id id);
// Of the nest's values, by value; forgets what is known of those of statements.
struct gpu_size *gpu_sizes_of(struct cg_lowering *l);
void gpu_sizes_forget(struct cg_lowering *l, const nest_id *statements, uint32_t n);

#endif
