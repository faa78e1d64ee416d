// SPDX-License-Identifier: Apache-2.0
// Which axes of a result go along axes of the shift, from those of the operands (shift.c).
#include "ir/origin.h"
#include "passes/derive/shift.h"

// From the axes of operand i; false: some result would go with several elements of m.
static bool align(const struct shift_step *c, uint32_t i, int8_t *out)
{
    const struct ir_graph *g = c->at->g;
    ir_id x = ir_operand(g, c->n, i), y = c->n->out;
    int8_t left[IR_MAX_RANK];
    struct ir_origin from;
    memcpy(left, c->in[i]->axis, sizeof left);
    for (int k = 0; k < ir_rank_of(g, y); k++) {
        if (!ir_origin_of(g, c->n, i, k, &from))
            continue;
        if (from.axis < 0 || left[from.axis] < 0)
            continue;
        if (from.step != 1 || from.offset != 0 ||
            ir_dims_of(g, x)[from.axis] != ir_dims_of(g, y)[k])
            return false;
        out[k] = left[from.axis];
        left[from.axis] = -1;
    }
    for (int k = 0; k < ir_rank_of(g, x); k++)
        if (left[k] >= 0)
            return false;
    return true;
}

bool shift_align(struct shift_step *c)
{
    bool is_first = true;
    memset(c->y.axis, -1, sizeof c->y.axis);
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        int8_t axis[IR_MAX_RANK];
        memset(axis, -1, sizeof axis);
        if (!c->in[i])
            continue;
        if (!align(c, i, axis) || (!is_first && (memcmp(axis, c->y.axis, sizeof axis) ||
                                                 !shift_has_unit(c->in[i], &c->y.unit))))
            return false;
        c->y.unit = c->in[i]->unit;
        memcpy(c->y.axis, axis, sizeof axis);
        is_first = false;
    }
    return true;
}
