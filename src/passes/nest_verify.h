// SPDX-License-Identifier: Apache-2.0
// What the parts of the verifier share.
#ifndef PASSES_NEST_VERIFY_H
#define PASSES_NEST_VERIFY_H

#include "passes/nest.h"

// A use of a buffer and the loops and branches around it, outermost first.
struct nest_access {
    nest_id statement, buffer;
    const struct nest_index *index;
    bool is_put;
    bool is_sure; // it happens in every iteration: no guard, no branch around it, no empty loop
    nest_id fold; // the loop at whose end the result is stored, or NEST_NONE
    uint32_t depth;
    const nest_id *path;
};

struct verifier {
    const struct nest *nest;
    struct arena *arena;
    struct strbuf *report;
    int faults;
    nest_id statement;    // being looked at
    uint8_t *value_state; // enum value_state
    uint8_t *axis_open;
    uint8_t *block_seen, *statement_seen;
    VEC(nest_id) path;
    VEC(struct nest_access) accesses; // in the order of the text
};

__attribute__((format(printf, 2, 3))) void nest_fault(struct verifier *v, const char *format,
                                                      ...);

// Everything about places in buffers, after the walk: ranges, one point to an element, reads of
// what other points write, reads of what nothing wrote.
void nest_verify_accesses(struct verifier *v);

#endif
