// SPDX-License-Identifier: Apache-2.0
// What libjot and jot-compile, the process that runs the code generator, give each other: a file of
// the request, which is the process's standard input, and one of the response, its standard output.
// Both are on one machine and of one build.
//
//     jot-compile BUILT MODULE BYTES SECONDS
//
// with the hash of libjot's sources and limits of memory and of processor time.
//
// A file is a header, then its parts one after the other, each with a zero behind it.  That of a
// response is whole when is_whole is set, which is written last of all.
#ifndef CODEGEN_EXCHANGE_H
#define CODEGEN_EXCHANGE_H

#include <stdint.h>

#define EXCHANGE_NONE UINT64_MAX // the size of a part that is not there

enum { EXCHANGE_PROGRAM, EXCHANGE_TARGET, EXCHANGE_REQUEST_PARTS };

struct exchange_request {
    uint64_t sizes[EXCHANGE_REQUEST_PARTS];
    uint32_t want;
    uint32_t reserved;
};

enum {
    EXCHANGE_MESSAGE,
    EXCHANGE_OBJECT,
    EXCHANGE_PLAN,
    EXCHANGE_LLVM,
    EXCHANGE_ASSEMBLY,
    EXCHANGE_TEXT,
    EXCHANGE_RESPONSE_PARTS
};

struct exchange_response {
    uint64_t sizes[EXCHANGE_RESPONSE_PARTS];
    int32_t status;
    uint32_t is_whole;
};

#endif
