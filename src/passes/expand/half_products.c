// SPDX-License-Identifier: Apache-2.0
// Products of half types where the library has none of them: of numbers of f32, which the operands are.
//
//     dot x y : f16      becomes      convert (dot (convert x) (convert y)) : f16
//
// Sums of products of half types are f32 until they are rounded, once, as here.  Transposes and
// reshapes stay between a conversion and the product, which takes them as they lie.  After all
// differentiation, of products large enough for the library.
#include "ir/control.h"
#include "ir/cost.h"
#include "passes/body.h"
#include "passes/passes.h"

static bool is_half_product(const struct ir_graph *g, const struct ir_node *n)
{
    return n->op == IR_dot_general && dtype_is_half(ir_dtype_of(g, n->out)) &&
           cost_is_product(g, n, JOT_F32, false);
}

static ir_id widen(struct ir_builder *b, ir_id x)
{
    const struct ir_node *n = ir_node_of(b->graph, x);
    if (n->op != IR_transpose && n->op != IR_reshape)
        return ir_convert(b, x, JOT_F32);
    struct ir_node change = *n;
    ir_id of = widen(b, ir_operand(b->graph, n, 0));
    if (change.op == IR_transpose)
        return ir_build(b, IR_transpose, 1, &of, change.attrs);
    return ir_reshape(b, of, ir_type_in(b, x).rank, ir_dims(b->module, ir_type_in(b, x)));
}

static void copy_widened(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map)
{
    if (is_half_product(g, n)) {
        b->where = n->where;
        ir_id in[] = {widen(b, map[ir_operand(g, n, 0)]), widen(b, map[ir_operand(g, n, 1)])};
        ir_id y = ir_build(b, IR_dot_general, 2, in, n->attrs);
        map[n->out] = ir_convert(b, y, ir_dtype_of(g, n->out));
    } else if (ir_has_bodies((enum ir_op)n->op)) {
        body_copy_rewritten(b, g, n, map, pass_half_products);
    } else {
        pass_copy_node(b, g, n, map);
    }
}

uint32_t pass_half_products(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_HALF_PRODUCTS, copy_widened);
}
