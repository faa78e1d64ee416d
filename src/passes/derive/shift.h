// SPDX-License-Identifier: Apache-2.0
// What the search for shifts that cancel knows of a value (shift.c).
#ifndef PASSES_DERIVE_SHIFT_H
#define PASSES_DERIVE_SHIFT_H

#include "passes/transform.h"

// A scalar that does not depend on m, by the function that it is of, to the power; power 0: 1.
struct shift_unit {
    const struct ir_graph *g;
    ir_id v;
    int power;
};

// The derivative of a value v in the element of m that it goes with is unit (plus + times v).
struct shift_slope {
    double plus, times;
    struct shift_unit unit;
    bool is_far; // or v is a number whose exponential is 0, and does not depend on m
    int8_t axis[IR_MAX_RANK]; // by axis of v: the one of m that it goes along, or -1
};

// A function that is searched, and the call that it is entered by.
struct shift_frame {
    const struct ir_graph *g;
    struct shift_slope **of; // by value; NULL: it does not depend on m
    const struct shift_frame *caller;
    const struct ir_node *call;
};

#define SHIFT_MOST 64 // nodes that a search visits, and operands of one

// A node of one real result, of whose operands some depend on m.
struct shift_step {
    const struct shift_frame *at;
    const struct ir_node *n;
    const struct shift_slope *in[SHIFT_MOST];
    struct shift_slope y;
};

// Whether the op gives the elements of its operand again.
bool shift_repeats(enum ir_op op);
static inline bool shift_has_unit(const struct shift_slope *x, const struct shift_unit *u)
{
    return x->unit.g == u->g && x->unit.v == u->v && x->unit.power == u->power;
}

// The axes and the unit of y, on which all operands have to agree.  False: they do not, or elements of
// y go with several elements of m.
bool shift_align(struct shift_step *c);
// The rest of y.  False: it has no slope of this form.
bool shift_find_slope(struct shift_step *c);

#endif
