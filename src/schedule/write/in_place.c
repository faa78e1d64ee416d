// SPDX-License-Identifier: Apache-2.0
// Values that take the local of what they are made from.
//
//     y = dynamic_update_slice(x, u, i)         put state[%i] = %u          where x was
//
// A local may be written over when nothing reads it any more.  Values are written when they are
// wanted, so that is known in two cases: its value has one reader, an update, a loop or a branch,
// which are written once; or it is what a carry was, and updates wait until all else that the step
// makes is there.
#include "schedule/write/write.h"

#include "ir/control.h"

static int64_t count_of(struct writer *w, ir_id v)
{
    return lanes_inner_count(w->lanes, write_view(w, v));
}

nest_id write_local_with(struct writer *w, ir_id v)
{
    const struct ir_graph *g = w->s->g;
    while (lanes_only_move(w->lanes, w->frame->lanes, v))
        v = ir_operand(g, ir_node_of(g, v), 0);
    write_hold(w, v);
    return write_local_of(w, v);
}

nest_id write_take(struct writer *w, ir_id v)
{
    struct frame *f = w->frame;
    while (f && f->uses[v] == 1 && lanes_only_move(w->lanes, f->lanes, v))
        v = ir_operand(f->s.g, ir_node_of(f->s.g, v), 0);
    if (!f || f->uses[v] != 1)
        return NEST_NONE;
    if (f->is_lane && ir_node_of(f->s.g, v)->op == IR_param) {
        write_enter(w, f->up);
        nest_id local = write_take(w, f->in[v]);
        write_enter(w, f);
        return local;
    }
    write_hold(w, v);
    return write_local_of(w, v);
}

static nest_id copy_to_local(struct writer *w, ir_id v)
{
    struct sink to = {.time = NONE, .guard = NEST_NONE};
    to.buffer = write_new_local(w, ir_dtype_of(w->s->g, v), count_of(w, v));
    write_elements(w, v, write_view(w, v), &to);
    return to.buffer;
}

// Of an update of one element.
static struct updated only_update(struct writer *w, const struct ir_node *n)
{
    form_id at[IR_MAX_RANK];
    write_forms_of_element(w, write_view(w, write_updates_of(w->s->g, n)), 0, at);
    return write_updated(w, n, at);
}

static void put_all(struct writer *w, const struct ir_node *n, nest_id local)
{
    struct update_order order = write_update_order(w, n);
    int64_t count = lanes_inner_count(w->lanes, order.view);
    form_id ordered[IR_MAX_RANK], at[IR_MAX_RANK];
    scope_id back = w->e.at;
    if (count > 1) {
        write_open_inner(w, order.view, order.are_several ? NEST_SEQ : NEST_MAP, ordered);
        write_unorder(&order, ordered, at);
        struct updated u = write_updated(w, n, at);
        write_put_updated(w, n, local, &u);
        emit_close(&w->e, back, 0, NULL);
    } else if (count) {
        struct updated u = only_update(w, n);
        write_put_updated(w, n, local, &u);
    }
}

nest_id write_update_local(struct writer *w, const struct ir_node *n)
{
    ir_id x = ir_operand(w->s->g, n, 0);
    nest_id local = write_take(w, x);
    if (local == NEST_NONE)
        local = copy_to_local(w, x);
    put_all(w, n, local);
    return local;
}

// ---- Updates that wait

// What the value of a loop's carry is at first, else NONE.
static ir_id start_of(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    uint32_t k = v - n->out;
    if (n->op == IR_while)
        return ir_operand(g, n, (uint32_t)ir_while_of(n).n_consts + k);
    if (n->op == IR_scan && k < (uint32_t)ir_scan_of(n).n_carry)
        return ir_operand(g, n, (uint32_t)ir_scan_of(n).n_consts + k);
    return IR_NONE;
}

bool write_can_wait(struct writer *w, ir_id v, ir_id from)
{
    struct frame *f = w->frame;
    const struct ir_graph *g = f->s.g;
    bool is_shared = false; // otherwise every update takes the memory at once
    ir_id x = v;
    for (const struct ir_node *n; n = ir_node_of(g, x), node_is_update(n);
         x = ir_operand(g, n, 0)) {
        if (f->uses[x] > 1 && count_of(w, write_updates_of(g, n)) > 1)
            return false;
        is_shared |= f->uses[ir_operand(g, n, 0)] > 1;
    }
    if (!is_shared || x == v || (x != from && start_of(g, x) != from))
        return false;
    for (; v != x; v = ir_operand(g, ir_node_of(g, v), 0))
        f->is_kept[v] = false;
    return true;
}

ir_id write_updated_value(const struct ir_graph *g, ir_id v)
{
    while (node_is_update(ir_node_of(g, v)))
        v = ir_operand(g, ir_node_of(g, v), 0);
    return v;
}

nest_id write_updated_local(struct writer *w, ir_id v)
{
    v = write_updated_value(w->s->g, v);
    write_hold(w, v);
    return write_local_of(w, v);
}

// An update that is ready: it reads nothing that is written over.
struct waiting {
    const struct ir_node *n;
    nest_id local;
    struct updated u; // when it is one element
};

// Computes the value here.
static void settle(struct writer *w, ir_id v)
{
    form_id at[IR_MAX_RANK];
    if (count_of(w, v) > 1) {
        w->frame->held[v] = (struct held){.is_set = true, .local = copy_to_local(w, v)};
        return;
    }
    write_forms_of_element(w, write_view(w, v), 0, at);
    write_value_at(w, v, at, NEST_NONE);
}

static struct waiting make_ready(struct writer *w, const struct ir_node *n, nest_id local)
{
    struct waiting r = {.n = n, .local = local};
    if (count_of(w, write_updates_of(w->s->g, n)) == 1)
        r.u = only_update(w, n);
    else
        for (uint32_t i = 1; i < n->n_in; i++)
            settle(w, ir_operand(w->s->g, n, i));
    return r;
}

void write_waiting(struct writer *w, uint32_t n, const ir_id *v, const nest_id *local)
{
    const struct ir_graph *g = w->s->g;
    struct arena *scratch = w->outer->scratch;
    VEC(struct waiting) ready = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = ready.count;
        for (ir_id x = v[i]; node_is_update(ir_node_of(g, x));
             x = ir_operand(g, ir_node_of(g, x), 0))
            vec_push(scratch, &ready, (struct waiting){.n = ir_node_of(g, x)});
        // The first comes first.
        for (uint32_t a = first, b = ready.count; a + 1 < b; a++) {
            struct waiting swap = ready.at[a];
            ready.at[a] = ready.at[--b];
            ready.at[b] = swap;
        }
        for (uint32_t a = first; a < ready.count; a++)
            ready.at[a] = make_ready(w, ready.at[a].n, local[i]);
    }
    for (uint32_t i = 0; i < ready.count; i++) {
        const struct waiting *r = &ready.at[i];
        if (count_of(w, write_updates_of(w->s->g, r->n)) == 1)
            write_put_updated(w, r->n, r->local, &r->u);
        else
            put_all(w, r->n, r->local);
    }
}
