// SPDX-License-Identifier: Apache-2.0
// A loop or branch as one kernel: points are its lanes, time runs inside.
//
//     y = scan(k, x, v)             par b < B { load k[b] ... seq t < T carry ... { ... } put y[b] }
//
// What a lane has besides, the axes that are no lanes, is written out element by element while that
// is little, else kept in locals and looped over.
#include "schedule/write/write.h"

#include "ir/control.h"
#include "schedule/control/control.h"

static bool is_wanted(const struct schedule *s, ir_id v)
{
    bool has_memory =
        s->first_demand[v] != NONE || s->is_output[v] || s->stored_as[v] != IR_NONE;
    return has_memory && value_count(s, v);
}

// A value without all lanes is stored by the first of those that it has not.
static nest_id guard_of(struct writer *w, struct view v)
{
    struct atoms missing =
        axes_minus(&w->lanes->space, w->lanes->lanes, axes_of_view(&w->lanes->space, v));
    nest_id guard = NEST_NONE;
    for (uint32_t i = 0; i < w->lanes->lanes.count; i++)
        if (axes_contain(&w->lanes->space, missing, w->lanes->lanes.at[i]))
            guard = emit_both(&w->e, guard, emit_less(&w->e, w->lane_forms[i], 1));
    return guard;
}

static struct sink memory_sink(struct writer *w, ir_id v)
{
    const struct ir_graph *g = w->outer->g;
    ir_id as = w->outer->stored_as[v];
    int count;
    const int64_t *axes =
        as == IR_NONE ? NULL : ir_attr_ints(ir_node_of(g, as)->attrs, IR_KEY_axes, &count);
    as = as == IR_NONE ? v : as;
    return (struct sink){
        .buffer = write_buffer_of(w, schedule_memory(w->outer, as), NEST_OUT),
        .is_memory = true,
        .as = as,
        .axes = axes,
        .time = NONE,
        .guard = guard_of(w, w->lanes->top->view[v]),
    };
}

static void write_points(struct writer *w, const struct ir_node *n)
{
    struct schedule *s = w->outer;
    struct lane_graph *top = w->lanes->top;
    uint32_t n_carry = n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_carry : n->n_out;
    struct sink *rows = arena_array(s->scratch, struct sink, n->n_out + 1);
    struct held *held = arena_array(s->scratch, struct held, n->n_out + 1);
    for (uint32_t k = n_carry; k < n->n_out; k++)
        if (is_wanted(s, n->out + k))
            rows[k] = memory_sink(w, n->out + k);
    write_control(w, n, top->bodies[n - s->g->nodes.at], rows, held);
    struct frame *results = write_results(w);
    write_enter(w, results);
    for (uint32_t k = 0; k < n_carry; k++) {
        ir_id v = n->out + k;
        results->held[v] = held[k];
        if (!is_wanted(s, v))
            continue;
        struct sink to = memory_sink(w, v);
        write_elements(w, v, top->view[v], &to);
    }
    write_enter(w, NULL);
}

// The loops of a function, and what is between them, in its frame.
static void write_joined(struct writer *w, const struct ir_node *n)
{
    struct schedule *s = w->outer;
    struct lane_graph *body = w->lanes->top->bodies[n - s->g->nodes.at][0];
    const struct ir_graph *g = body->g;
    struct frame *f = write_frame(w, body, ir_operands(s->g, n));
    struct sink *rows = arena_array(s->scratch, struct sink, g->values.count + 1);
    f->rows = rows;
    for (uint32_t k = 0; k < g->outputs.count; k++)
        if (is_wanted(s, n->out + k))
            rows[g->outputs.at[k]] = memory_sink(w, n->out + k);
    for (uint32_t i = 0; i < g->operands.count; i++)
        rows[g->operands.at[i]].is_kept = true;
    write_enter(w, f);
    for (uint32_t k = 0; k < g->outputs.count; k++) {
        ir_id v = g->outputs.at[k];
        if (!is_wanted(s, n->out + k))
            continue;
        if (ir_is_row(ir_node_of(g, v), v))
            write_loop(w, ir_node_of(g, v));
        else
            write_elements(w, v, body->view[v], &rows[v]);
    }
    write_enter(w, NULL);
}

static void write_lanes(struct writer *w, const struct ir_node *n)
{
    struct arena *a = w->outer->scratch;
    struct atoms lanes = w->lanes->lanes;
    nest_id *axes = arena_array(a, nest_id, lanes.count + 2);
    form_id *forms = arena_array(a, form_id, lanes.count + 1);
    // Those of a vector that are together in memory are the last axis.
    int64_t block = w->outer->lane_block;
    uint32_t split = block ? lanes_find_blocks(w->lanes, block) : lanes.count;
    bool is_split = split < lanes.count;
    for (uint32_t i = 0; i < lanes.count; i++) {
        int64_t extent = w->lanes->space.atoms.at[lanes.at[i]].extent;
        axes[i] = emit_axis(&w->e, i == split ? extent / block : extent);
    }
    if (is_split)
        axes[lanes.count] = emit_axis(&w->e, block);
    if (lanes.count)
        emit_open(&w->e, 0, NEST_PAR, (int)lanes.count + is_split, axes);
    for (uint32_t i = 0; i < lanes.count; i++)
        forms[i] = emit_form_axis(&w->e, axes[i]);
    if (is_split)
        forms[split] =
            emit_form_add(&w->e, forms[split], block, emit_form_axis(&w->e, axes[lanes.count]));
    w->lane_forms = forms;
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL)
        write_joined(w, n);
    else
        write_points(w, n);
    if (lanes.count)
        emit_close(&w->e, 0, 0, NULL);
}

// "k0_scan", or of several loops "k0_scan_scan".
static const char *name_of_kernel(struct schedule *s, const struct ir_node *n)
{
    struct strbuf b = strbuf_make(s->program->arena);
    strbuf_printf(&b, "k%u", s->program->nests.count);
    if (ir_op_class((enum ir_op)n->op) != IR_CLASS_CALL)
        strbuf_printf(&b, "_%s", ir_op_get((enum ir_op)n->op)->name);
    else
        ir_for_each_node (ir_body(s->g, n, 0), m)
            if (ir_op_class((enum ir_op)m->op) == IR_CLASS_CONTROL)
                strbuf_printf(&b, "_%s", ir_op_get((enum ir_op)m->op)->name);
    return b.text;
}

bool schedule_resident(struct schedule *s, const struct ir_node *n, struct kernel *out,
                       const char **reason)
{
    const struct resident *r = schedule_residence(s, n);
    *reason = r->reason;
    if (r->reason)
        return false;
    struct group none = {0};
    struct writer w = {.s = s,
                       .outer = s,
                       .e = emit_make(s->program->arena, s->scratch, name_of_kernel(s, n)),
                       .group = NONE,
                       .g = &none,
                       .lanes = r->lanes,
                       .is_expanded = r->is_expanded};
    write_lanes(&w, n);
    if (w.fault) {
        *reason = w.fault;
        s->is_refused = true;
        return false;
    }
    *out = (struct kernel){.nest = w.e.b.nest, .n_memories = w.memories.count};
    out->memories =
        arena_copy(s->program->arena, w.memories.at, out->n_memories * sizeof *out->memories);
    return true;
}
