// SPDX-License-Identifier: Apache-2.0
// Transpose and batching of convolutions, which are the derivatives of one sum of products of three
// factors (conv.h): the cotangent of one is that sum's derivative in it.
#include "ir/conv.h"

#include "passes/rules/rules.h"

#define B c->b

void transpose_conv(struct transpose *c)
{
    struct ir_conv conv = ir_conv_of(c->n->attrs);
    int mine = transpose_is_linear(c, 0) ? 0 : 1;
    if (transpose_is_linear(c, 1 - mine)) {
        transpose_none(c);
        return;
    }
    ir_id of[CONV_PARTS];
    of[conv.part] = c->ct[0];
    of[ir_conv_operand(&conv, 1 - mine)] = c->x[1 - mine];
    conv.part = ir_conv_operand(&conv, mine);
    conv.sizes = ir_dims(B->module, transpose_type(c, (uint32_t)mine)) +
                 ir_conv_spatial(&conv, conv.part);
    ir_id ct = ir_conv(B, of[ir_conv_operand(&conv, 0)], of[ir_conv_operand(&conv, 1)], &conv);
    transpose_give(c, (uint32_t)mine, ct);
}

// Where the axis of lanes goes in a part: into an axis, inside of groups of it.
struct seat {
    int axis;
    int64_t groups;
};

// x [lanes, ..] with the lanes in the axis of the seat: [groups, lanes, the rest of it].
static ir_id fold(struct ir_builder *b, ir_id x, struct seat seat)
{
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK + 1], axes[IR_MAX_RANK + 1];
    const int64_t *of = ir_dims(b->module, t);
    int rank = t.rank, at = seat.axis + 1; // the axis in x
    for (int i = 0; i < at; i++)
        dims[i] = of[i];
    dims[at] = seat.groups;
    for (int i = at; i < rank; i++)
        dims[i + 1] = of[i];
    dims[at + 1] /= seat.groups;
    for (int i = 0; i <= rank; i++)
        axes[i] = i < at ? i + 1 : i;
    axes[at] = 0;
    int64_t lanes = dims[0];
    x = ir_transpose(b, ir_reshape(b, x, rank + 1, dims), axes);
    for (int i = 0; i + 1 < rank; i++)
        dims[i] = of[i + 1];
    dims[seat.axis] *= lanes;
    return ir_reshape(b, x, rank - 1, dims);
}

// The other way, to lanes of the type.
static ir_id unfold(struct ir_builder *b, ir_id x, struct seat seat, int64_t lanes,
                    struct ir_type t)
{
    int64_t dims[IR_MAX_RANK + 2], axes[IR_MAX_RANK + 2];
    const int64_t *of = ir_dims(b->module, t);
    int at = seat.axis;
    for (int i = 0; i < t.rank; i++)
        dims[i < at ? i : i + 2] = of[i];
    dims[at] = seat.groups;
    dims[at + 1] = lanes;
    dims[at + 2] = of[at] / seat.groups;
    axes[0] = at + 1;
    for (int i = 0; i < t.rank + 2; i++)
        if (i != at + 1)
            axes[i <= at ? i + 1 : i] = i;
    x = ir_transpose(b, ir_reshape(b, x, t.rank + 2, dims), axes);
    dims[0] = lanes;
    memcpy(dims + 1, of, sizeof *of * t.rank);
    return ir_reshape(b, x, t.rank + 1, dims);
}

// Lanes of two parts go into the axis that the two share, of all three into groups.
void batch_conv(struct batch *c)
{
    struct ir_conv conv = ir_conv_of(c->n->attrs);
    bool has[CONV_PARTS];
    struct seat seat[CONV_PARTS];
    ir_id in[2];
    struct ir_type one = ir_type_of(c->g, c->n->out);
    if (c->size == 0) {
        c->y[0] = batch_repeat(B, ir_zeros(B, one), 0);
        return;
    }
    has[conv.part] = true;
    for (int i = 0; i < 2; i++)
        has[ir_conv_operand(&conv, i)] = c->batched[i];
    bool all = has[CONV_X] && has[CONV_W] && has[CONV_Y];
    for (int i = 0; i < CONV_PARTS; i++) {
        enum conv_part part = (enum conv_part)i;
        seat[i] = (struct seat){ir_conv_features(&conv, part), all ? 1 : conv.groups};
        if (!all && part != CONV_W && !has[CONV_W])
            seat[i] = (struct seat){0, 1};
        else if (part == CONV_W && !has[CONV_Y])
            seat[i] = (struct seat){ir_conv_in(&conv), 1};
    }
    for (int i = 0; i < 2; i++)
        in[i] = c->batched[i] ? fold(B, c->x[i], seat[ir_conv_operand(&conv, i)]) : c->x[i];
    if (all)
        conv.groups *= c->size;
    ir_id y = ir_conv(B, in[0], in[1], &conv);
    c->y[0] = unfold(B, y, seat[conv.part], c->size, one);
}
