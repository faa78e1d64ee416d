// SPDX-License-Identifier: Apache-2.0
// What is known of a block when the numbers that it loads are within bounds (inside.c).
#ifndef CODEGEN_INSIDE_H
#define CODEGEN_INSIDE_H

#include "codegen/lower.h"

enum cg_fact_kind { CG_UNSEEN, CG_UNKNOWN, CG_FALSE, CG_TRUE, CG_LOADED };

struct cg_fact {
    enum cg_fact_kind kind;
    nest_id load; // CG_LOADED: the value it equals
};

struct cg_inside {
    const struct nest_block *body;
    const bool *is_left_out; // by statement of the body: a load that may give anything
    struct cg_fact *facts;   // by value: of those that were asked for
    int64_t *most;           // by value: facts hold when a load is between 0 and this
};

struct cg_inside cg_inside_make(struct cg_lowering *l, const struct nest_block *body,
                                const bool *is_left_out);
// What the value is, and what that takes of loads; of those the fact is that they are themselves.
struct cg_fact cg_inside_fact(const struct cg_lowering *l, struct cg_inside *p, nest_id value);

#endif
