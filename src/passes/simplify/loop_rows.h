// SPDX-License-Identifier: Apache-2.0
// What loop_rows.c and loop_rows_find.c share.
#ifndef PASSES_SIMPLIFY_LOOP_ROWS_H
#define PASSES_SIMPLIFY_LOOP_ROWS_H

#include "passes/analysis/affine.h"

// A part of an array: all of it but along one axis, and there `size` from start + step * row on.
struct slice {
    bool is;
    ir_id array;
    int axis;
    int64_t size;
    struct affine at;
};

enum carry_kind { CARRY_KEPT, CARRY_COUNTED, CARRY_ROWS };

struct carry {
    enum carry_kind kind;
    struct affine count;
    int64_t end;
    struct slice slice;
    ir_id update;  // of the body: what is put there,
    bool is_added; // or added to what is there
    bool is_read;  // what is there is read
    bool is_zero;  // and is zero
    // What trips before put is read, of as many trips ago at most: these are carried.
    int depth;
    ir_id own;   // of the new body: what is there,
    ir_id *past; // and what the last trip put, the one before it ...
};

struct rows {
    struct ir_builder *b;
    struct affine_loop l;
    struct ir_scan scan;
    const struct ir_graph *f;
    const ir_id *in;
    int n_in;
    uint32_t *uses;       // by value of the body
    struct slice *slices; // by node of the body: what is read of consts and carries
    VEC(uint32_t) reads;  // those nodes
    struct carry *carries;
    struct affine *counts; // by row out,
    bool *is_count;        // and whether it is such
    int found, up, down;   // rows, and which way those go that are not counters
};

static inline ir_id carries_at(const struct rows *r) { return (ir_id)r->scan.n_consts; }
static inline ir_id rows_at(const struct rows *r)
{
    return (ir_id)(r->scan.n_consts + r->scan.n_carry);
}

// The body with the calls in their place that take integers, which may be indices.
uint32_t loop_rows_open(struct ir_module *m, uint32_t f);
// Sets what is known of the loop; whether there is anything to do.
bool loop_rows_find(struct rows *r);
// How many trips ago what the node at `at` of the body reads was put to the carry *out, which is rows: 0 and less, it
// is as it was before the loop.  False when the node reads no such carry.
bool loop_rows_read(const struct rows *r, uint32_t at, const struct carry **out,
                    int64_t *out_ago);

#endif
