// SPDX-License-Identifier: Apache-2.0
// Loop distribution: what a scan computes trip by trip is made of all its trips at once, in front of the loop or
// behind it (loop_products.c, loop_folds.c).
#ifndef PASSES_LOOPS_LOOP_DISTRIBUTION_H
#define PASSES_LOOPS_LOOP_DISTRIBUTION_H

#include "ir/control.h"
#include "passes/body.h"

// A scan, and what its body is made of.
struct loop {
    struct ir_builder *b;
    struct ir_module *m;
    struct ir_scan s;
    const struct ir_graph *g; // the body
    ir_id *in;                // operands, with room for a row for each value of the body
    uint32_t n_in;
    bool *invariant, *of_rows; // by value: made of consts alone, of consts and rows
    bool *gone;                // by value: a product that the body has no more
    uint32_t *uses;            // by value: how often it is read or given
    uint32_t *reader;          // by value: the last node that reads it
    ir_id *sum; // by value: what it is a term of, read by nothing else, and given; or IR_NONE
};

static inline bool loop_is_param(const struct ir_graph *g, ir_id v)
{
    return ir_node_of(g, v)->op == IR_param;
}

static inline uint32_t loop_first_row(const struct loop *l)
{
    return (uint32_t)(l->s.n_consts + l->s.n_carry);
}

// A value of the body for each trip, as a value around it.
struct loop_stack {
    ir_id of;
    ir_id v; // or IR_NONE so far: a new row out
};

// What is made behind it.
struct loop_behind {
    VEC(struct loop_stack) stacks; // that products behind are made of
    VEC(ir_id) rows, terms; // products or what is made of folds: rows out, terms of carries
    VEC(uint32_t) carry_of; // by term
    bool *is_row;           // by result: one of those rows
    uint32_t *row_out; // by value: the result that it is a row out of, which stays; or IR_NONE
};

// The loop with n values of the body, made of rows, as rows.
jot_status loop_move_values(struct loop *l, uint32_t n, const ir_id *moved);
struct loop_stack *loop_find_stack(const struct loop_behind *h, ir_id v);
// Whether the value is there for all trips: a row, or a row out that stays.
bool loop_is_stacked(const struct loop *l, const struct loop_behind *h, ir_id v);
// Whether the loop gives it because it is one of the stacks.
bool loop_is_new_row(const struct loop *l, const struct loop_behind *h, ir_id v);
void loop_add_stack(struct loop *l, struct loop_behind *h, ir_id v);
// The body without what is made behind, and with the rows that it is made of: how many results there are, and where
// one that stays is.
jot_status loop_make_body(const struct loop *l, const struct loop_behind *h, uint32_t *out_n,
                          uint32_t *index, uint32_t *out);
// Gives results as the loop does.
void loop_make(struct loop *l, ir_id *y);
struct loop_behind loop_behind_make(const struct loop *l);
// The rest of the loop, and n values for all trips behind it; rows among the results have theirs.
jot_status loop_make_behind(struct loop *l, struct loop_behind *h, uint32_t n,
                            const ir_id *values, ir_id *made, ir_id *y);
// A node of a graph: the rewritten bodies, and of a scan what `distribute` makes of it, whose results y receives.
void loop_copy(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
               uint32_t (*rewrite)(struct ir_module *m, uint32_t f),
               jot_status (*distribute)(struct loop *l, ir_id *y), ir_id *map);
// Folds of rows, where lanes are not mixed without them.
jot_status loop_move_folds(struct loop *l);

#endif
