// SPDX-License-Identifier: Apache-2.0
// The code generator, asked when a program is in no cache.
#ifndef TRACE_CODEGEN_LOADER_H
#define TRACE_CODEGEN_LOADER_H

#include "codegen/codegen.h"
#include "jot/status.h"

#include <stdbool.h>

// Loads the code generator, where it is not loaded yet.
jot_status codegen_open(void);
// Runs the code generator, which is loaded once a process.  JOT_ERR_LIBRARY when there is none, or one
// that was built from other sources than libjot.
jot_status codegen_run(const struct cg_request *request, struct cg_response *out);
// Whether another thread was in the code generator when this process was forked: LLVM may have locks
// of its own that nobody gives back.
bool codegen_is_left(void);

// The files of the code generator and of the program that runs it in a process of its own:
// $JOT_CODEGEN for the first; beside libjot, installed or in a build tree; where they were to be
// installed.  "" where there is none.
const char *codegen_path(void);
const char *codegen_process_path(void);

#endif
