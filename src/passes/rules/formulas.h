// SPDX-License-Identifier: Apache-2.0
// The letters in which rules of elementwise functions are written: operands x and y, their tangents, the
// result f; included by the files of such rules alone.
#ifndef PASSES_RULES_FORMULAS_H
#define PASSES_RULES_FORMULAS_H

#include "passes/rules/rules.h"

#define B c->b
#define X c->x[0]
#define Y c->x[1]
#define DX c->dx[0]
#define DY c->dx[1]
#define F c->y[0]

static inline ir_id num(struct jvp *c, double x) { return ir_scalar_like(B, X, x); }

// Adds slope * t to the tangent of the result.
static inline void add_product(struct jvp *c, ir_id t, ir_id slope)
{
    c->dy[0] = rule_sum(B, c->dy[0], ir_mul_z(B, t, slope));
}

#endif
