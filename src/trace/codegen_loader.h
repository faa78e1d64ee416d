// SPDX-License-Identifier: Apache-2.0
// The code generator, loaded when a program is in no cache.
#ifndef TRACE_CODEGEN_LOADER_H
#define TRACE_CODEGEN_LOADER_H

#include "codegen/codegen.h"
#include "jot/status.h"

// The entry of the code generator; loaded once a process.  JOT_ERR_LIBRARY when there is none.
jot_status codegen_load(cg_entry **out_entry);

// What tells one build of the code generator from another, without loading it: path, size and
// time of its file; "" when there is none.
const char *codegen_identity(void);

#endif
