// SPDX-License-Identifier: Apache-2.0
// The code generator in a process of its own: what LLVM does there is a status here.
#ifndef TRACE_CODEGEN_PROCESS_H
#define TRACE_CODEGEN_PROCESS_H

#include "codegen/codegen.h"
#include "jot/compile.h"

// Where and within which limits code is generated.  Zero is what the environment says, or the default.
struct codegen_options {
    jot_compile where;
    size_t bytes;
    double seconds;
};

// Whether the code generator runs in a process of its own.
bool codegen_is_process(const struct codegen_options *options);

// Runs the code generator as its entry does, and waits for it.  Fails with JOT_ERR_MEMORY or
// JOT_ERR_LIBRARY, and what the process wrote to its standard error, when it ends without a response:
// it crashed, or reached a limit.
jot_status codegen_process(const struct cg_request *request,
                           const struct codegen_options *options, struct cg_response *out);

#endif
