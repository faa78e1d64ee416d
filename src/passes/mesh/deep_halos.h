// SPDX-License-Identifier: Apache-2.0
// What deep_halos.c, deep_halos_find.c and deep_halos_sides.c share.
#ifndef PASSES_MESH_DEEP_HALOS_H
#define PASSES_MESH_DEEP_HALOS_H

#include "ir/collective.h"
#include "ir/control.h"
#include "ir/cost.h"
#include "ir/origin.h"
#include "passes/body.h"

// Rows lo .. hi - 1 of a value that has rows 0 .. count - 1 in each lane.
struct halo_rows {
    int64_t lo, hi;
};

// Whose rows: of the lane before or behind alone, as that lane numbers them; or of this lane with those of its
// neighbours around, which are below 0 and from count on.
enum halo_side { HALO_BEFORE, HALO_AROUND, HALO_BEHIND, HALO_SIDES };

// What is wanted of the values of a trip, and what they have become.
struct halo_trip {
    bool *own;  // by value: its rows, as the body has them
    ir_id *map; // by value: those
    struct halo_part {
        bool *wanted;
        struct halo_rows *rows;
        ir_id *map;
    } part[HALO_SIDES]; // by value
};

// Rows that are exchanged in front of the loop: of what no trip changes, or of what each trip has a row of.
struct halo_front {
    bool *is;
    struct halo_rows *rows;
    ir_id *map; // the parameter that has them
};

struct halos {
    struct ir_module *m;
    const struct ir_graph *g; // the body
    uint32_t n_consts, n_carry;
    const struct ir_node *down, *up; // what the lanes before and behind send; or NULL
    int64_t count;                   // rows of a lane, where its neighbours' are around
    ir_id *inner;       // by value: what it is with rows of neighbours around, or none
    int64_t *before;    // by value: how many of these come first
    int8_t *axis;       // by value: that of its rows, or -1
    bool *is_invariant; // by value: the same in all trips
    bool *is_uniform;   // by value: the same in all lanes
    bool *is_sent;      // by value: neighbours are sent some of its rows
    bool by_sides;      // neighbours' rows are values of their own
    bool is_swap;       // the lane before is the one behind
    uint16_t others;    // axes along which this does not look for neighbours
    uint16_t
        done; // those along which the body exchanges for several trips of the loop that it was
    struct halo_front front[HALO_SIDES]; // by value
    int depth;
    struct halo_trip *trips;
    bool fails;
};

// Sets what is wanted of each trip; whether the loop may exchange for several trips, and pays.
bool deep_halos_find(struct halos *h, const struct ir_scan *s);
// Whether row r of the result is made of rows of operands, and of what all lanes have; and row r of operand i alone.
bool deep_halos_by_rows(const struct halos *h, const struct ir_node *n);
// The rows of operand i that these of the result are made of, as far as there are any; axis -1: all of it.
struct ir_origin deep_halos_axis(const struct halos *h, const struct ir_node *n, uint32_t i);
struct halo_rows deep_halos_of_operand(struct ir_origin from, struct halo_rows r);
struct halo_rows deep_halos_hull(struct halo_rows a, struct halo_rows b);
// Has rows r of v, which no trip changes or each trip has a row of, exchanged in front of the loop.
void deep_halos_exchange_in_front(struct halos *h, int side, ir_id v, struct halo_rows r);
// n over rows of its operands, as many along the axis as its result has then.
ir_id deep_halos_rebuild(struct ir_builder *b, const struct halos *h, const struct ir_node *n,
                         const ir_id *in, int64_t rows);
// Rows r of v, of those that were exchanged in front of the loop.
ir_id deep_halos_from_front(struct ir_builder *b, const struct halos *h, int side, ir_id v,
                            struct halo_rows r);
// Whether no lane sends this one anything by the exchange: a number, or none where all lanes are sent something.
ir_id deep_halos_alone(struct ir_builder *b, const struct ir_node *n);
// Elements from .. to - 1 of the axis; axis -1: x.
ir_id deep_halos_part(struct ir_builder *b, ir_id x, int axis, int64_t from, int64_t to);

// Where neighbours' rows are values of their own (deep_halos_sides.c): what trip t wants, and its values.
void deep_halos_want_sides(struct halos *h, struct halo_trip *t, const struct halo_trip *next);
void deep_halos_run_sides(struct ir_builder *b, const struct halos *h, struct halo_trip *t);
// The rows of a value at a side; and some of them.
struct halo_rows deep_halos_rows_at(const struct halos *h, const struct halo_trip *t, int side,
                                    ir_id v);
ir_id deep_halos_take(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                      int side, ir_id v, int axis, struct halo_rows r);

static inline int64_t halo_count(const struct halos *h, ir_id v)
{
    return ir_dims_of(h->g, v)[h->axis[v]];
}

static inline const struct ir_node *halo_node(const struct halos *h)
{
    return h->down ? h->down : h->up;
}
static inline const struct ir_attrs *halo_exchange(const struct halos *h)
{
    return halo_node(h)->attrs;
}

static inline const int64_t *halo_ints(const struct ir_node *n, enum ir_key key)
{
    int count;
    return ir_attr_ints(n->attrs, key, &count);
}

// Whether the neighbours may be in other processes.
static inline bool halo_is_far(const struct halos *h)
{
    uint16_t over = ir_over_set(halo_exchange(h));
    for (uint32_t i = 0; i < h->m->axes.count; i++)
        if (over >> i & 1 && h->m->axes.at[i].is_far)
            return true;
    return false;
}
static inline int64_t halo_most_bytes(const struct halos *h)
{
    return halo_is_far(h) ? COST_HALO_FAR_BYTES : COST_HALO_BYTES;
}

// Whether n exchanges rows with a neighbour; and whether it is made, element by element, of lanes along other axes,
// all of which have the same rows.
static inline bool halo_is_exchange(const struct halos *h, const struct ir_node *n)
{
    return n->op == IR_ppermute &&
           ((h->down && h->down->attrs == n->attrs) || (h->up && h->up->attrs == n->attrs));
}
static inline bool halo_is_across(const struct halos *h, const struct ir_node *n)
{
    return (n->op == IR_ppermute || n->op == IR_psum || n->op == IR_pmax || n->op == IR_pmin) &&
           !(ir_over_set(n->attrs) & ir_over_set(halo_exchange(h)));
}

static inline struct halo_rows halo_move(struct halo_rows r, int64_t by)
{
    return (struct halo_rows){r.lo + by, r.hi + by};
}

#endif
