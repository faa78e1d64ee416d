// SPDX-License-Identifier: Apache-2.0
// Between the files that decide on groups.
#ifndef SCHEDULE_GROUP_GROUP_H
#define SCHEDULE_GROUP_GROUP_H

#include "schedule/internal.h"

// The demands on a value, those of one group at the same coordinates only once.
typedef VEC(struct demand) demand_list;

static inline struct group *group_at(struct schedule *s, uint32_t g)
{
    return &s->groups.at[g];
}

// group/demands.c
void group_want(struct schedule *s, ir_id v, struct demand d);
demand_list group_demands_on(struct schedule *s, ir_id v);
// Passes the demand on v on to the operands of its node; what folds v wants its operands along the view, and all
// that is folded.
void group_pass_on(struct schedule *s, ir_id v, const struct demand *d);
void group_pass_on_fold(struct schedule *s, ir_id v, uint32_t group, struct view view);

// group.c
// A group whose results are wanted by those of the list.
uint32_t group_make(struct schedule *s, enum group_kind kind, const demand_list *l);

// group/count.c
// Whether the results cost more than a load where they are computed.
bool node_is_dear(const struct ir_graph *g, const struct ir_node *n);
// How much code the value is in a kernel.
int group_ops_of(const struct schedule *s, ir_id v);
// Fills uses, cheap, cone_ops and cone_bytes of the schedule.
void group_count(struct schedule *s);

// schedule/parts.c
// Stores v, a concatenation of barriers, part by part; false, and nothing is done, when it is none.
bool group_store_parts(struct schedule *s, ir_id v, const demand_list *l);

// group/alone.c
// A loop, a branch, an effect, a routine: a step or several.
bool node_is_steps(const struct ir_node *n);
void group_store_update(struct schedule *s, ir_id v, const demand_list *l);
void group_store_steps(struct schedule *s, const struct ir_node *n);
// false, and nothing is done, when it is none that the library or the loop makes.
bool group_has_few_terms(struct schedule *s, ir_id v, const demand_list *l);
bool group_store_library(struct schedule *s, ir_id v, const demand_list *l);
bool group_store_in_loop(struct schedule *s, ir_id v, const demand_list *l);
// Whether it is a product that a processor makes in place of the library, for whoever wants it to load.
bool group_is_apart(struct schedule *s, ir_id v, const demand_list *l);

// group/apart.c
// What the kernels of the program take, and the loops that are one kernel, with lanes by blocks of so many, 0: not; -1: nobody
// knows.
double group_price_of_order(struct schedule *s, int64_t block);
// Sets values apart that make their kernel slower, by the price; whether there are any.
bool group_find_apart(struct schedule *s);

// group/narrow.c
// Whether v is made with little arithmetic of values that have fewer bytes, which get memory instead.
bool group_find_narrow(struct schedule *s, ir_id v);

// group/order.c
// Chooses which axis of temporaries comes last in memory.
void group_order_axes(struct schedule *s);
// Puts lanes of loops that are one kernel together by blocks, where the price is less.
void group_find_blocks(struct schedule *s);

// group/old.c
// Marks what is read of values that are written over and has to be stored before (is_old).
void group_find_old(struct schedule *s);

#endif
