// SPDX-License-Identifier: Apache-2.0
// What is lowered otherwise than on the host.
#ifndef CODEGEN_GPU_STATEMENT_H
#define CODEGEN_GPU_STATEMENT_H

#include "codegen/loop.h"

// False: as on the host.
bool gpu_statement(struct cg_lowering *l, nest_id statement);
// Before threads put what the block puts in memory that others may still be reading.
void gpu_sync_to_put(struct cg_lowering *l, uint32_t block);
// The memory of a local that a group has in common, NULL for one of each thread.
LLVMValueRef gpu_shared_local(struct cg_lowering *l, nest_id buffer);
// Where all threads of a group have the same to put in memory that they share, one of them does
// between open and close; false: as on the host.
bool gpu_put_open(struct cg_lowering *l, nest_id buffer, struct cg_branch *out);
void gpu_put_close(struct cg_lowering *l, nest_id buffer, struct cg_branch *one);

#endif
