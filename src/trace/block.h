// SPDX-License-Identifier: Apache-2.0
// Blocks: bodies traced in place.
//
// A block macro is a loop that runs its body once.  Opening it opens a trace and rebinds the
// variables of its lists; closing it makes a function of what the body recorded, hands that to the
// kind of the block, and assigns the results to the variables.
#ifndef TRACE_BLOCK_H
#define TRACE_BLOCK_H

#include "trace/function.h"

// One value of a variable in a list.
struct block_leaf {
    jot_value *at, outer; // where it lives; what it was before the block
    const char *name;
    size_t index, of; // in its variable
    struct ir_type type;
};

struct block_leaves {
    struct block_leaf *at;
    int count;
};

struct block_kind {
    const char *name; // "JOT_VMAP"
    // Checks the imported inputs and opens the trace of the body with rebound variables.
    bool (*open)(jot_block *b);
    // Turns the body, closed, into results in the trace around the block.
    bool (*finish)(jot_block *b, struct traced *body, ir_id *out);
};

struct jot_block {
    const struct block_kind *kind;
    const char *where;
    struct trace *trace, *outer;
    struct block_leaves in, out;
    int64_t length;
    bool is_inert;  // opening failed: the body runs, and its results are the error
    bool is_closed; // the end of the body was reached
    bool has_run;
    jot_value error;
};

// "x", or "p (value 2 of 4)"; in a buffer of the thread.
const char *block_leaf_name(const struct block_leaf *l);
// An error of the block, at its place.
__attribute__((format(printf, 3, 4))) jot_value block_fail(jot_block *b, jot_status status,
                                                           const char *format, ...);

#endif
