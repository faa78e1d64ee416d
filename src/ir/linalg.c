// SPDX-License-Identifier: Apache-2.0
#include "ir/linalg.h"

struct ir_triangular ir_triangular_of(const struct ir_attrs *attrs)
{
    return (struct ir_triangular){
        .left = ir_attr_int(attrs, IR_KEY_left),
        .lower = ir_attr_int(attrs, IR_KEY_lower),
        .transposed = ir_attr_int(attrs, IR_KEY_transposed),
        .conjugated = ir_attr_int(attrs, IR_KEY_conjugated),
        .unit_diagonal = ir_attr_int(attrs, IR_KEY_unit_diagonal),
    };
}

ir_id ir_cholesky(struct ir_builder *b, ir_id a)
{
    return ir_build(b, IR_cholesky, 1, &a, NULL);
}

ir_id ir_lu(struct ir_builder *b, ir_id a) { return ir_build(b, IR_lu, 1, &a, NULL); }

ir_id ir_triangular_solve(struct ir_builder *b, ir_id a, ir_id x, const struct ir_triangular *t)
{
    return ir_build(b, IR_triangular_solve, 2, (ir_id[]){a, x},
                    ir_attrs(b->module, IR_INT(left, t->left), IR_INT(lower, t->lower),
                             IR_INT(transposed, t->transposed),
                             IR_INT(conjugated, t->conjugated),
                             IR_INT(unit_diagonal, t->unit_diagonal)));
}

ir_id ir_tridiagonal_solve(struct ir_builder *b, ir_id dl, ir_id d, ir_id du, ir_id x)
{
    return ir_build(b, IR_tridiagonal_solve, 4, (ir_id[]){dl, d, du, x}, NULL);
}
