// SPDX-License-Identifier: Apache-2.0
// A function without its effects, for values that are computed a second time.
//
//     f(x) { p = lt x 0; check p; y = sin x; return y }
// becomes
//     f(x) { y = sin x; return y }
//
// A callback that gives results stays.
#include "ir/control.h"
#include "passes/body.h"

ir_id pass_rebuild_stripped(struct ir_builder *b, const struct ir_graph *g,
                            const struct ir_node *n, const ir_id *in)
{
    struct ir_module *m = b->module;
    bool has_effect = ir_has_effect(g, n);
    if (ir_has_bodies((enum ir_op)n->op) && has_effect) {
        b->where = n->where;
        uint32_t *made = body_rewrite_all(m, n, pass_strip_effects);
        return ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                        ir_with_functions(m, n->attrs, made));
    }
    return n->n_out || !has_effect ? ir_rebuild(b, g, n, in) : IR_NONE;
}

void pass_copy_stripped(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *map)
{
    body_set_results(n, pass_rebuild_stripped(b, g, n, body_operands(b->module, g, n, map)),
                     map);
}

bool pass_is_repeatable(struct ir_module *m, uint32_t f)
{
    return !ir_function(m, pass_strip_effects(m, f))->has_effects;
}

uint32_t pass_strip_effects(struct ir_module *m, uint32_t f)
{
    return ir_function(m, f)->has_effects ? body_rewrite(m, f, MEMO_STRIP, pass_copy_stripped)
                                          : f;
}
