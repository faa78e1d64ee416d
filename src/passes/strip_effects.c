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

void pass_copy_stripped(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *map)
{
    struct ir_module *m = b->module;
    bool has_bodies = ir_has_bodies((enum ir_op)n->op);
    if (has_bodies && ir_has_effect(g, n)) {
        b->where = n->where;
        uint32_t *made = body_rewrite_all(m, n, pass_strip_effects);
        ir_id y = ir_build(b, (enum ir_op)n->op, (int)n->n_in, body_operands(m, g, n, map),
                           ir_with_functions(m, n->attrs, made));
        body_set_results(n, y, map);
    } else if (has_bodies || n->n_out || !ir_has_effect(g, n)) {
        pass_copy_node(b, g, n, map);
    }
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
