// SPDX-License-Identifier: Apache-2.0
// Branches that are all computed, and lanes side by side: what a cond for each lane becomes
// where no kernel takes branches lane by lane.
//
//     y = scan {lanes=1, body: cond i {f, g} x} i x
// becomes, for all lanes at once,
//     a = f x;  b = g x;  p = le i 0;  y = select p a b
#include "passes/transform.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

// Whether branch k of n is the one: the index is clamped.
static ir_id is_branch(struct ir_builder *b, ir_id index, int k, int n)
{
    ir_id number = ir_scalar_int(b, JOT_I32, k);
    return k == 0       ? ir_le(b, index, number)
           : k == n - 1 ? ir_ge(b, index, number)
                        : ir_eq(b, index, number);
}

void pass_select_branches(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                          const bool *hidden, ir_id *out)
{
    const int64_t *branches;
    int count = ir_bodies_of(n, &branches);
    ir_id *x = pass_no_values(b->module, n->n_in);
    for (int k = 0; k < count && b->status == JOT_OK; k++) {
        uint32_t f = (uint32_t)branches[k];
        ir_id p = is_branch(b, in[0], k, count);
        for (uint32_t i = 1; i < n->n_in; i++)
            x[i] = hidden && hidden[i] ? ir_select(b, p, in[i], ir_stop_gradient(b, in[i]))
                                       : in[i];
        ir_id y = ir_call(b, IR_call, 1, &f, (int)n->n_in - 1, x + 1);
        for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
            out[i] = k == 0 ? y + i : ir_select(b, p, y + i, out[i]);
    }
}

static uint32_t select_in(struct ir_module *m, uint32_t f);

static void copy_selected(struct ir_builder *b, const struct ir_graph *g,
                          const struct ir_node *n, ir_id *map)
{
    struct ir_module *m = b->module;
    b->where = n->where;
    if (n->op == IR_cond) {
        pass_select_branches(b, n, body_operands(m, g, n, map), NULL, map + n->out);
    } else if (n->op == IR_scan && ir_scan_of(n).lanes) {
        uint32_t *made = body_rewrite_all(m, n, select_in);
        ir_id y = ir_build(b, IR_scan, (int)n->n_in, body_operands(m, g, n, map),
                           ir_with_functions(m, n->attrs, made));
        body_set_results(n, y, map);
    } else {
        pass_copy_node(b, g, n, map);
    }
}

// f, whose own conds compute all branches.
static uint32_t select_in(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_SELECT, copy_selected);
}

jot_status pass_spread_lanes(struct ir_module *m, const struct ir_node *n, uint32_t *out_f)
{
    struct ir_scan s = ir_scan_of(n);
    bool *rows = body_mask(m, n->n_in);
    memset(rows + s.n_consts, 1, n->n_in - (uint32_t)s.n_consts);
    return pass_vmap_all(m, select_in(m, s.body), rows, s.length, out_f);
}
