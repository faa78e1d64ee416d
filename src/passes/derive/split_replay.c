// SPDX-License-Identifier: Apache-2.0
// A function that is linear in some inputs, in two, of which the second keeps nothing of the first.
//
//     f(x, dx) { y = sin x; c = cos x; dy = mul_z dx c; return y, dy }
// becomes
//     forward(x) { y = sin x; return y }
//     linear(x, dx) { c = cos x; dy = mul_z dx c; return dy }
//
// The linear part computes again what it needs of the inputs, without effects: what
// jot_checkpoint asks for, and what a segment of a loop does.
//
// Needs nothing.  Keeps the order of nodes.
#include "base/status.h"
#include "passes/transform.h"

// The nodes that results in the mask need, or effects of what is known, in wanted; the values in
// needed.
static void find_needed(const struct ir_graph *g, const bool *linear_out, bool which,
                        bool *needed, bool *wanted)
{
    for (uint32_t i = 0; i < g->outputs.count; i++)
        needed[g->outputs.at[i]] |= linear_out[i] == which;
    for (uint32_t at = g->nodes.count; at-- > g->n_params;) {
        const struct ir_node *n = &g->nodes.at[at];
        wanted[at] = !which && ir_has_effect(g, n);
        for (uint32_t k = 0; k < n->n_out; k++)
            wanted[at] = wanted[at] || needed[n->out + k];
        for (uint32_t i = 0; wanted[at] && i < n->n_in; i++)
            needed[ir_operand(g, n, i)] = true;
    }
}

// Adds the nodes and the results in the mask.  What is computed again has no effects.
static jot_status build_part(struct ir_builder *b, const struct ir_graph *g, const bool *wanted,
                             const bool *linear_out, bool which, ir_id *map, uint32_t *out_f)
{
    for (uint32_t at = g->n_params; at < g->nodes.count && b->status == JOT_OK; at++)
        if (wanted[at])
            (which ? pass_copy_stripped : pass_copy_node)(b, g, &g->nodes.at[at], map);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (linear_out[i] == which)
            ir_output(b, map[g->outputs.at[i]]);
    return pass_finish(b, out_f);
}

static jot_status build(struct ir_module *m, uint32_t f, const bool *linear_in,
                        struct pass_split *out)
{
    struct unzipped u;
    JOT_TRY(pass_unzip(m, ir_function(m, f), linear_in, NULL, &u));
    // The parts of the separated function: in f itself a mixed call would drag linear inputs into
    // what does not depend on them.
    const struct ir_graph *g = u.g;
    bool *linear_out = arena_array(m->arena, bool, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        linear_out[i] = u.linear[g->outputs.at[i]];
    out->linear_out = linear_out;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    bool *needed = arena_array(m->arena, bool, g->values.count + 1);
    bool *wanted = arena_array(m->arena, bool, g->nodes.count + 1);
    find_needed(g, linear_out, false, needed, wanted);
    pass_copy_params(&b, g, linear_in, false, map);
    JOT_TRY(build_part(&b, g, wanted, linear_out, false, map, &out->forward));
    b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    map = pass_no_values(m, g->values.count);
    needed = arena_array(m->arena, bool, g->values.count + 1);
    find_needed(g, linear_out, true, needed, wanted);
    struct pass_residual *residuals =
        arena_array(m->arena, struct pass_residual, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        if (linear_in[i] || !needed[i])
            continue;
        map[i] = ir_param(&b, ir_type_of(g, i));
        residuals[out->n_residuals++] = (struct pass_residual){PASS_RESIDUAL_INPUT, i};
    }
    out->residuals = residuals;
    pass_copy_params(&b, g, linear_in, true, map);
    return build_part(&b, g, wanted, linear_out, true, map, &out->linear);
}

jot_status pass_split_replay(struct ir_module *m, uint32_t f, const bool *linear_in,
                             struct pass_split *out)
{
    uint32_t n = ir_function(m, f)->n_params;
    struct memo_key key = {.kind = MEMO_SPLIT_REPLAY, .f = f, .n = n, .mask = linear_in};
    const struct pass_split *known = pass_memo_find(m, &key);
    if (!known) {
        struct pass_split *s = arena_new(m->arena, struct pass_split);
        JOT_TRY(build(m, f, linear_in, s));
        pass_memo_add(m, &key, s);
        known = s;
    }
    *out = *known;
    return JOT_OK;
}
