// SPDX-License-Identifier: Apache-2.0
// Derivative rules of ops that choose among their operands.
#include "passes/rules/rules.h"

#define B c->b

static ir_id num(struct jvp *c, double x) { return ir_scalar_like(B, c->y[0], x); }

// d max(x, y) = dx where x wins, dy where y wins, half of each at a tie
static void jvp_choice(struct jvp *c)
{
    for (int i = 0; i < 2; i++) {
        if (c->dx[i] == IR_NONE)
            continue;
        ir_id share = ir_select(B, ir_eq(B, c->x[1 - i], c->y[0]), num(c, 0.5), num(c, 1));
        ir_id won = ir_mul_z(B, c->dx[i], share);
        won = ir_select(B, ir_eq(B, c->x[i], c->y[0]), won, num(c, 0));
        c->dy[0] = rule_sum(B, c->dy[0], won);
    }
}

void jvp_max(struct jvp *c) { jvp_choice(c); }
void jvp_min(struct jvp *c) { jvp_choice(c); }

// d select(p, x, y) = select(p, dx, dy)
void jvp_select(struct jvp *c)
{
    ir_id zero = num(c, 0);
    c->dy[0] = ir_select(B, c->x[0], c->dx[1] == IR_NONE ? zero : c->dx[1],
                         c->dx[2] == IR_NONE ? zero : c->dx[2]);
}

// d clamp(low, x, high): the tangent of what is strictly chosen; 0 on a boundary
void jvp_clamp(struct jvp *c)
{
    ir_id low = c->x[0], x = c->x[1], high = c->x[2], chosen[3];
    chosen[0] = ir_and(B, ir_gt(B, low, x), ir_lt(B, low, high));
    chosen[1] = ir_and(B, ir_gt(B, x, low), ir_lt(B, x, high));
    chosen[2] = ir_lt(B, high, x);
    for (int i = 0; i < 3; i++)
        if (c->dx[i] != IR_NONE)
            c->dy[0] = rule_sum(B, c->dy[0], ir_select(B, chosen[i], c->dx[i], num(c, 0)));
}

// Where the operand was not chosen its cotangent is zero.
void transpose_select(struct transpose *c)
{
    if (transpose_is_linear(c, 0)) {
        transpose_none(c);
        return;
    }
    ir_id zero = ir_scalar_like(B, c->ct[0], 0);
    if (transpose_is_linear(c, 1))
        transpose_give(c, 1, ir_select(B, c->x[0], c->ct[0], zero));
    if (transpose_is_linear(c, 2))
        transpose_give(c, 2, ir_select(B, c->x[0], zero, c->ct[0]));
}
