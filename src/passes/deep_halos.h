// SPDX-License-Identifier: Apache-2.0
// What deep_halos.c and deep_halos_find.c share.
#ifndef PASSES_DEEP_HALOS_H
#define PASSES_DEEP_HALOS_H

#include "ir/collective.h"
#include "ir/control.h"
#include "passes/body.h"

// Rows lo .. hi - 1 of a value that has rows 0 .. count - 1 in each lane: those below 0 and from count on are of
// the lanes before and behind.
struct halo_rows {
    int64_t lo, hi;
};

// What is wanted of the values of a trip, and what they have become.
struct halo_trip {
    bool *own;              // by value: its rows, as the body has them
    bool *extended;         // by value: and rows of neighbours
    struct halo_rows *rows; // by value: of those
    ir_id *map, *all;       // by value: its rows; all that are wanted
};

struct halos {
    struct ir_module *m;
    const struct ir_graph *g; // the body
    uint32_t n_consts, n_carry;
    const struct ir_node *down, *up; // what the lanes before and behind send; or NULL
    int64_t count;                   // rows of a lane
    ir_id *inner;       // by value: what it is with rows of neighbours around, or none
    int64_t *before;    // by value: how many of these come first
    int8_t *axis;       // by value: that of its rows, or -1
    bool *is_invariant; // by value: the same in all trips
    bool *is_uniform;   // by value: the same in all lanes
    bool *is_sent;      // by value: neighbours are sent some of its rows
    bool *is_hoisted;   // by value: its rows are exchanged in front of the loop
    struct halo_rows *hoisted_rows; // by value: those
    ir_id *hoisted;                 // by value: the parameter that has them
    int depth;
    struct halo_trip *trips;
    bool fails;
};

// Sets what is wanted of each trip; whether the loop may exchange for several trips, and pays.
bool deep_halos_find(struct halos *h, const struct ir_scan *s);
// The axis of operand i that the rows of the result are along; -1 where all rows are the same.
int deep_halos_axis(const struct halos *h, const struct ir_node *n, uint32_t i);

static inline int64_t halo_count(const struct halos *h, ir_id v)
{
    return ir_dims_of(h->g, v)[h->axis[v]];
}

static inline const struct ir_attrs *halo_exchange(const struct halos *h)
{
    return (h->down ? h->down : h->up)->attrs;
}

static inline const int64_t *halo_ints(const struct ir_node *n, enum ir_key key)
{
    int count;
    return ir_attr_ints(n->attrs, key, &count);
}

static inline struct halo_rows halo_move(struct halo_rows r, int64_t by)
{
    return (struct halo_rows){r.lo + by, r.hi + by};
}

#endif
