// SPDX-License-Identifier: Apache-2.0
// The code generator: a scheduled program and a target in, object bytes and a launch plan out.
//
// It is a shared object of its own that holds LLVM and shares no symbol with libjot but the two that
// it exports.  What crosses the boundary is plain data.
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include <stddef.h>
#include <stdint.h>

enum cg_want {
    CG_WANT_LLVM = 1u << 0,     // the LLVM text too
    CG_WANT_ASSEMBLY = 1u << 1, // the assembly too
    CG_WANT_MAPPED = 1u << 2, // instead of an object: the program, its nests with their levels
    CG_WANT_VERIFIED = 1u << 3, // levels that the text says of a GPU's nests are checked first
};

struct cg_request {
    uint32_t want;
    const char *program; // text of a nest_program (nest/program.h)
    const char
        *target; // a CPU name and features ("skylake-avx512", "+fma"), NULL: this machine
};

// Filled by the entry; all memory is the response's and goes with release.
struct cg_response {
    int status;          // jot_status
    const char *message; // when status is not JOT_OK
    const void *object;
    size_t object_size;
    const void *plan; // rt_plan bytes
    size_t plan_size;
    const char *llvm, *assembly; // NULL unless wanted
    const char *text;            // of the program, where that is wanted instead of an object
    void (*release)(struct cg_response *response);
    void *memory;
};

// The hash of the sources that the module was built from (base/built.h).  libjot asks no module for
// code that another one has: the two are built together.
#define CG_BUILT_SYMBOL "jot_codegen_built"
#define CG_ENTRY_SYMBOL "jot_codegen_entry"

typedef void cg_entry(const struct cg_request *request, struct cg_response *response);

#endif
