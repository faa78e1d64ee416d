// SPDX-License-Identifier: Apache-2.0
// Values of bodies: parameters, what is held, and what is kept in a local.
//
// Inside a body a value is wanted at coordinates as anywhere else.  Along lanes these are the
// loops of the kernel's points, and only they: an op that would ask for another lane has mixed
// the axis (lanes.c).  Along other axes they are numbers where elements are written out, and
// loops where they are not.
#include "schedule/write/write.h"

#include "base/count.h"
#include "ir/control.h"

void write_enter(struct writer *w, struct frame *f)
{
    w->frame = f;
    w->s = f ? &f->s : w->outer;
    w->e.floor = f ? f->floor : 0;
}

// Terms of a fold of operand i, and 1 of any other op.
static int64_t terms_of(struct writer *w, const struct frame *f, const struct ir_node *n,
                        uint32_t i)
{
    int count = 0;
    const int64_t *axes = node_is_folding(n) ? node_folded_axes(n, i, &count) : NULL;
    struct view view = f->lanes->view[ir_operand(f->s.g, n, i)];
    int64_t terms = 1;
    for (int k = 0; k < count; k++)
        terms = count_times(
            terms, axes_product(&w->lanes->space, lanes_inner(w->lanes, view.dims[axes[k]])));
    return terms;
}

// By value what one element costs where it is computed of the elements that it is of.
static int64_t *costs_of(struct writer *w, const struct frame *f)
{
    const struct ir_graph *g = f->s.g;
    int64_t *cost = arena_array(w->outer->scratch, int64_t, g->values.count + 1);
    for (uint32_t at = f->lanes->first; at < f->lanes->end; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool is_map = ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP;
        for (uint32_t k = 0; k < n->n_out && (is_map || node_is_index(n)); k++) {
            if (is_map)
                cost[n->out + k] = cost_of_op((enum ir_op)n->op, ir_dtype_of(g, n->out));
            for (uint32_t i = 0; i < n->n_in; i++)
                if (f->uses[ir_operand(g, n, i)] == 1)
                    cost[n->out + k] = count_plus(cost[n->out + k], cost[ir_operand(g, n, i)]);
        }
    }
    return cost;
}

// Whether all elements of v are made at once: of prefix folds, and where elements are looped over of what several
// read, or one op several times if it is dear, and of what folds and updates make, but for folds that are read
// once by an element of what is kept.
static bool is_to_keep(struct writer *w, const struct frame *f, const struct ir_node *n,
                       ir_id v, bool is_dear, bool is_inside)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    bool is_wanted =
        c == IR_CLASS_MAP ? f->uses[v] > 1 || is_dear : !(node_is_folding(n) && is_inside);
    return c == IR_CLASS_CUMULATIVE ||
           (is_wanted && write_is_looped(w, f->lanes->view[v]) &&
            (!node_is_index(n) || c == IR_CLASS_UPDATE) && n->op != IR_param);
}

static void choose_kept(struct writer *w, struct frame *f)
{
    const struct ir_graph *g = f->s.g;
    int64_t *cost = costs_of(w, f);
    int64_t *reads = arena_array(w->outer->scratch, int64_t, g->values.count + 1);
    bool *is_inside = arena_array(w->outer->scratch, bool, g->values.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        reads[g->outputs.at[i]] = lanes_inner_count(w->lanes, f->lanes->view[g->outputs.at[i]]);
    for (uint32_t at = f->lanes->end; at-- > f->lanes->first;) {
        const struct ir_node *n = &g->nodes.at[at];
        int64_t made = 0;
        bool is_loop = false;
        for (ir_id v = n->out; v < n->out + n->n_out; v++) {
            int64_t count = lanes_inner_count(w->lanes, f->lanes->view[v]);
            bool is_dear = reads[v] > count && count_times(reads[v] - count, cost[v]) >=
                                                   count_times(COST_EXPENSIVE, count);
            f->is_kept[v] = is_to_keep(w, f, n, v, is_dear, is_inside[v]);
            is_loop |= f->is_kept[v] || is_inside[v];
            int64_t own = f->is_kept[v] ? count : reads[v];
            made = own > made ? own : made;
        }
        is_loop &= ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP;
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id x = ir_operand(g, n, i);
            bool is_written = i && ir_op_class((enum ir_op)n->op) == IR_CLASS_UPDATE;
            int64_t each = is_written ? lanes_inner_count(w->lanes, f->lanes->view[x])
                                      : count_times(made, terms_of(w, f, n, i));
            reads[x] = count_plus(reads[x], each);
            is_inside[x] = is_loop && f->uses[x] == 1 &&
                           lanes_inner_count(w->lanes, f->lanes->view[x]) ==
                               lanes_inner_count(w->lanes, f->lanes->view[n->out]);
        }
    }
}

// The tables of a frame: by value, and of the last by node.
struct frame_tables {
    struct held *held;
    bool *is_kept, *is_stored;
    uint8_t *uses, *decision;
    uint32_t *memory_of;
    ir_id *part_of;
    struct frame **calls;
};

static struct frame_tables make_tables(struct arena *a, const struct ir_graph *g)
{
    uint32_t n = g->values.count + 1;
    struct frame_tables t = {
        .held = arena_array(a, struct held, n),
        .is_kept = arena_array(a, bool, n),
        .is_stored = arena_array(a, bool, n),
        .uses = arena_array(a, uint8_t, n),
        .decision = arena_array(a, uint8_t, n),
        .memory_of = arena_array(a, uint32_t, n),
        .part_of = arena_array(a, ir_id, n),
        .calls = arena_array(a, struct frame *, g->nodes.count + 1),
    };
    memset(t.memory_of, 0xff, n * sizeof *t.memory_of);
    memset(t.part_of, 0xff, n * sizeof *t.part_of);
    for (uint32_t i = 0; i < g->operands.count; i++)
        t.uses[g->operands.at[i]] += t.uses[g->operands.at[i]] < 2;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        t.uses[g->outputs.at[i]] += t.uses[g->outputs.at[i]] < 2;
    return t;
}

static struct frame *make_frame(struct writer *w, struct lane_graph *body, const ir_id *in,
                                const struct frame_tables *t)
{
    struct frame *f = arena_new(w->outer->scratch, struct frame);
    *f = (struct frame){
        .up = w->frame,
        .s = *w->outer,
        .lanes = body,
        .scope = w->e.at,
        .floor = w->e.floor,
        .held = t->held,
        .in = in,
        .first_row = NONE,
        .is_kept = t->is_kept,
        .uses = t->uses,
        .calls = t->calls,
    };
    f->s.g = body->g;
    f->s.n_bound = 0;
    f->s.decision = t->decision;
    f->s.is_stored = t->is_stored;
    f->s.memory_of = t->memory_of;
    if (body != w->lanes->top) {
        f->s.part_of = t->part_of;
        f->s.axis_last = NULL;
        f->s.last_block = NULL;
        choose_kept(w, f);
        return f;
    }
    // Of the graph around a loop there is the loop alone.
    const struct ir_node *n = &body->g->nodes.at[body->first];
    for (ir_id v = n->out; v < n->out + n->n_out; v++)
        f->is_kept[v] = is_to_keep(w, f, n, v, false, false);
    return f;
}

struct frame *write_frame(struct writer *w, struct lane_graph *body, const ir_id *in)
{
    struct frame_tables t = make_tables(w->outer->scratch, body->g);
    return make_frame(w, body, in, &t);
}

void write_make_results(struct schedule *s)
{
    s->results = arena_new(s->scratch, struct frame_tables);
    *s->results = make_tables(s->scratch, s->g);
}

struct frame *write_results(struct writer *w)
{
    return make_frame(w, w->lanes->top, NULL, w->outer->results);
}

struct view write_view(const struct writer *w, ir_id v) { return w->frame->lanes->view[v]; }

// ---- Coordinates

static struct axes *space(const struct writer *w) { return &w->lanes->space; }

// The loop of an atom that is a lane, or NONE.
static form_id lane_form(const struct writer *w, atom_id a)
{
    for (uint32_t i = 0; i < w->lanes->lanes.count; i++)
        if (w->lanes->lanes.at[i] == a)
            return w->lane_forms[i];
    return NONE;
}

form_id write_form_of_lanes(struct writer *w, struct atoms a)
{
    form_id form = 0;
    a = axes_leaves(space(w), a);
    for (uint32_t i = 0; i < a.count; i++) {
        form_id lane = lane_form(w, a.at[i]);
        if (lane == NONE)
            return NONE;
        form = emit_form_add(&w->e, form, space(w)->atoms.at[a.at[i]].extent, lane);
    }
    return form;
}

// Coordinates from those along the atoms that are no lanes, in order.
static void join_forms(struct writer *w, struct view view, const form_id *inner, form_id *at)
{
    struct axes *s = space(w);
    for (uint32_t d = 0; d < view.rank; d++) {
        struct atoms a = axes_leaves(s, view.dims[d]);
        at[d] = 0;
        for (uint32_t i = 0; i < a.count; i++) {
            form_id lane = lane_form(w, a.at[i]);
            at[d] = emit_form_add(&w->e, at[d], s->atoms.at[a.at[i]].extent,
                                  lane == NONE ? *inner++ : lane);
        }
    }
}

static struct atoms inner_of(struct writer *w, struct view view)
{
    return lanes_inner(w->lanes, axes_of_view(space(w), view));
}

void write_forms_of_element(struct writer *w, struct view view, int64_t element, form_id *at)
{
    struct axes *s = space(w);
    struct atoms inner = inner_of(w, view);
    form_id *forms = arena_array(s->scratch, form_id, inner.count + 1);
    for (uint32_t i = inner.count; i-- > 0;) {
        int64_t extent = s->atoms.at[inner.at[i]].extent;
        forms[i] = emit_form_constant(&w->e, element % extent);
        element /= extent;
    }
    join_forms(w, view, forms, at);
}

form_id write_inner_index(struct writer *w, struct view view, const form_id *at)
{
    struct axes *s = space(w);
    form_id element = 0;
    for (uint32_t d = 0; d < view.rank; d++) {
        struct atoms a = axes_leaves(s, view.dims[d]);
        form_id *parts = arena_array(s->scratch, form_id, a.count + 1), rest = at[d];
        for (uint32_t i = a.count; i-- > 0;) {
            parts[i] = rest;
            if (i)
                emit_form_divide(&w->e, rest, s->atoms.at[a.at[i]].extent, &rest, &parts[i]);
        }
        for (uint32_t i = 0; i < a.count; i++) {
            form_id lane = lane_form(w, a.at[i]);
            if (lane == NONE)
                element = emit_form_add(&w->e, element, s->atoms.at[a.at[i]].extent, parts[i]);
            else if (lane != parts[i])
                w->fault = "a lane reads another one";
        }
    }
    return element;
}

bool write_is_looped(struct writer *w, struct view view)
{
    return !w->is_expanded && lanes_inner_count(w->lanes, view) > 1;
}

// ---- What is held

// Which of the elements it is is only known when the kernel runs.
static nest_id choose_element(struct writer *w, const nest_id *elements, int64_t count,
                              form_id element)
{
    nest_id result = elements[0], at = emit_index(&w->e, element, JOT_I64);
    jot_dtype d = w->e.b.nest->values.at[result].dtype;
    for (int64_t i = 1; i < count; i++) {
        nest_id in[3] = {at, emit_const(&w->e, JOT_I64, &i)};
        in[0] = emit_op(&w->e, IR_eq, JOT_BOOL, 2, in, NULL);
        in[1] = elements[i];
        in[2] = result;
        result = emit_op(&w->e, IR_select, d, 3, in, NULL);
    }
    return result;
}

static nest_id read_held(struct writer *w, const struct held *h, struct view view,
                         const form_id *at, nest_id guard)
{
    form_id element = write_inner_index(w, view, at);
    int64_t count = lanes_inner_count(w->lanes, view), known;
    if (!h->elements)
        return emit_load(&w->e, h->local, element, guard);
    if (!emit_form_is_constant(&w->e, element, &known))
        return choose_element(w, h->elements, count, element);
    // Outside of the value, where a guard is false, any element will do.
    return h->elements[known < 0 || known >= count ? 0 : known];
}

// ---- All elements

static void put_element(struct writer *w, ir_id v, const struct sink *to, const form_id *at,
                        form_id element, int64_t number)
{
    nest_id value = write_value_at(w, v, at, NEST_NONE);
    if (to->elements) {
        to->elements[number] = value;
        return;
    }
    form_id full[IR_MAX_RANK], index = element;
    if (to->is_memory) {
        int first = to->time != NONE;
        for (int i = 0; i < ir_rank_of(w->outer->g, to->as); i++) {
            int axis = to->axes ? (int)to->axes[i] : i;
            full[i] = axis < first ? to->time : at[axis - first];
        }
        index = write_memory_index(w, w->outer, to->as, full);
    } else if (to->time != NONE) {
        index = emit_form_add(&w->e, to->time, lanes_inner_count(w->lanes, write_view(w, v)),
                              element);
    }
    emit_put_guarded(&w->e, to->buffer, index, value, to->guard);
}

form_id write_open_inner(struct writer *w, struct view view, enum nest_kind kind, form_id *at)
{
    struct axes *s = space(w);
    struct atoms inner = inner_of(w, view);
    nest_id *axes = arena_array(s->scratch, nest_id, inner.count + 1);
    form_id *forms = arena_array(s->scratch, form_id, inner.count + 1), element = 0;
    bool is_one = kind == NEST_SEQ; // which has one axis
    int64_t count = axes_product(s, inner);
    for (uint32_t i = 0; i < (is_one ? 1 : inner.count); i++)
        axes[i] = emit_axis(&w->e, is_one ? count : s->atoms.at[inner.at[i]].extent);
    emit_open(&w->e, w->e.at, kind, is_one ? 1 : (int)inner.count, axes);
    form_id rest = emit_form_axis(&w->e, axes[0]);
    for (uint32_t i = inner.count; i-- > 0;) {
        forms[i] = is_one ? rest : emit_form_axis(&w->e, axes[i]);
        if (is_one && i)
            emit_form_divide(&w->e, rest, s->atoms.at[inner.at[i]].extent, &rest, &forms[i]);
    }
    for (uint32_t i = 0; i < inner.count; i++)
        element = emit_form_add(&w->e, element, s->atoms.at[inner.at[i]].extent, forms[i]);
    join_forms(w, view, forms, at);
    return element;
}

void write_elements(struct writer *w, ir_id v, struct view view, const struct sink *to)
{
    form_id at[IR_MAX_RANK];
    int64_t count = lanes_inner_count(w->lanes, view);
    bool is_lane = w->frame && w->frame->is_lane;
    bool are_many = count > (is_lane ? COST_EXPANDED_ROW : COST_EXPANDED_STATE);
    if (to->elements || (!are_many && !write_is_looped(w, view))) {
        for (int64_t i = 0; i < count; i++) {
            write_forms_of_element(w, view, i, at);
            put_element(w, v, to, at, emit_form_constant(&w->e, i), i);
        }
        return;
    }
    scope_id back = w->e.at;
    form_id element = write_open_inner(w, view, NEST_MAP, at);
    put_element(w, v, to, at, element, 0);
    emit_close(&w->e, back, 0, NULL);
}

nest_id write_new_local(struct writer *w, jot_dtype d, int64_t count)
{
    return nest_local(&w->e.b, "state", d, count);
}

void write_copy_local(struct writer *w, nest_id to, nest_id from)
{
    nest_id axis = emit_axis(&w->e, w->e.b.nest->buffers.at[to].count);
    scope_id back = w->e.at;
    emit_open(&w->e, back, NEST_MAP, 1, &axis);
    form_id element = emit_form_axis(&w->e, axis);
    emit_put(&w->e, to, element, emit_load_here(&w->e, from, element));
    emit_close(&w->e, back, 0, NULL);
}

// ---- Values

// A prefix fold into a local: a loop along its axis inside of those over the others.  Atoms are told by their numbers
// in the view, for one atom may be several axes.
static void write_prefix(struct writer *w, ir_id v, nest_id local)
{
    struct axes *s = space(w);
    const struct ir_node *n = ir_node_of(w->s->g, v);
    struct view view = write_view(w, v), before = view;
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis);
    before.rank = (uint32_t)axis;
    struct atoms along = lanes_inner(w->lanes, view.dims[axis]), inner = inner_of(w, view);
    uint32_t first = inner_of(w, before).count, last = first + along.count;
    atom_id *others = arena_array(s->scratch, atom_id, inner.count + 1);
    struct atoms around = {.at = others};
    for (uint32_t i = 0; i < inner.count; i++)
        if (i < first || i >= last)
            others[around.count++] = inner.at[i];
    nest_id *axes = arena_array(s->scratch, nest_id, around.count + 1);
    form_id *forms = arena_array(s->scratch, form_id, inner.count + 1), at[IR_MAX_RANK];
    scope_id back = w->e.at;
    write_open_map(w, s, around, axes);
    scope_id outside = w->e.at;
    nest_id scan = emit_axis(&w->e, axes_product(s, along));
    write_open_scan(w, n, scan);
    form_id rest = emit_form_axis(&w->e, scan), element = 0;
    for (uint32_t i = inner.count; i-- > 0;) {
        if (i < first || i >= last)
            forms[i] = emit_form_axis(&w->e, axes[i < first ? i : i - along.count]);
        else if (i > first)
            emit_form_divide(&w->e, rest, s->atoms.at[inner.at[i]].extent, &rest, &forms[i]);
        else
            forms[i] = rest;
    }
    for (uint32_t i = 0; i < inner.count; i++)
        element = emit_form_add(&w->e, element, s->atoms.at[inner.at[i]].extent, forms[i]);
    join_forms(w, view, forms, at);
    emit_put(&w->e, local, element, write_running(w, n, at));
    emit_close(&w->e, outside, 0, NULL);
    if (around.count)
        emit_close(&w->e, back, 0, NULL);
}

// Makes all elements in the scope of the frame and holds them.  While they are made the value is
// held, but nothing of it is there.
static void keep_value(struct writer *w, ir_id v)
{
    struct frame *f = w->frame;
    scope_id back = w->e.at;
    struct view view = write_view(w, v);
    int64_t count = lanes_inner_count(w->lanes, view);
    struct sink to = {.buffer = NEST_NONE, .time = NONE, .guard = NEST_NONE};
    f->held[v] = (struct held){.is_set = true, .local = NEST_NONE};
    const struct ir_node *n = ir_node_of(f->s.g, v);
    bool is_prefix = ir_op_class((enum ir_op)n->op) == IR_CLASS_CUMULATIVE &&
                     !(w->is_expanded && write_can_chain(f->s.g, n));
    bool is_update = ir_op_class((enum ir_op)n->op) == IR_CLASS_UPDATE;
    w->e.at = f->scope;
    if (is_prefix || (write_is_looped(w, view) && !is_update))
        to.buffer = write_new_local(w, ir_dtype_of(w->s->g, v), count);
    else if (!is_update)
        to.elements = arena_array(f->s.scratch, nest_id, count + 1);
    if (is_update)
        to.buffer = write_update_local(w, n);
    else if (is_prefix)
        write_prefix(w, v, to.buffer);
    else
        write_elements(w, v, view, &to);
    w->e.at = back;
    f->held[v] = (struct held){.is_set = true, .elements = to.elements, .local = to.buffer};
}

void write_hold(struct writer *w, ir_id v)
{
    struct frame *f = w->frame;
    const struct ir_node *n = ir_node_of(f->s.g, v);
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL)
        write_loop(w, n);
    if (f->is_kept[v] && !f->held[v].is_set)
        keep_value(w, v);
}

nest_id write_local_of(const struct writer *w, ir_id v)
{
    const struct held *h = &w->frame->held[v];
    return h->is_set && !h->elements ? h->local : NEST_NONE;
}

static nest_id read_parameter(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    struct frame *f = w->frame;
    form_id full[IR_MAX_RANK];
    bool is_row = v >= f->first_row;
    int rank = ir_rank_of(f->s.g, v);
    if (rank)
        memcpy(full + is_row, at, (size_t)rank * sizeof *at);
    if (is_row)
        full[0] = f->time;
    write_enter(w, f->up);
    nest_id result = write_value_at(w, f->in[v], full, guard);
    write_enter(w, f);
    return result;
}

static nest_id read_call(struct writer *w, const struct ir_node *n, uint32_t k,
                         const form_id *at, nest_id guard)
{
    struct frame *f = w->frame;
    uint32_t number = (uint32_t)(n - f->s.g->nodes.at);
    scope_id back = w->e.at;
    if (!f->calls[number]) {
        w->e.at = f->scope;
        f->calls[number] = write_frame(w, f->lanes->bodies[number][0], ir_operands(f->s.g, n));
        w->e.at = back;
    }
    write_enter(w, f->calls[number]);
    nest_id result = write_value_at(w, w->s->g->outputs.at[k], at, guard);
    write_enter(w, f);
    return result;
}

void write_loop(struct writer *w, const struct ir_node *n)
{
    struct frame *f = w->frame;
    scope_id back = w->e.at;
    if (f->held[n->out].is_set)
        return;
    w->e.at = f->scope;
    write_control(w, n, f->lanes->bodies[n - f->s.g->nodes.at],
                  f->rows ? f->rows + n->out : NULL, f->held + n->out);
    w->e.at = back;
}

bool write_in_frame(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id *out)
{
    struct frame *f = w->frame;
    const struct ir_node *n = ir_node_of(f->s.g, v);
    enum ir_class op_class = ir_op_class((enum ir_op)n->op);
    if (op_class == IR_CLASS_CONTROL)
        write_loop(w, n);
    if (n->op == IR_param && !f->held[v].is_set) {
        *out = read_parameter(w, v, at, guard);
        return true;
    }
    if (op_class == IR_CLASS_CALL) {
        *out = read_call(w, n, v - n->out, at, guard);
        return true;
    }
    if (!f->held[v].is_set && f->is_kept[v])
        keep_value(w, v);
    if (f->held[v].is_set && (f->held[v].elements || f->held[v].local != NEST_NONE)) {
        *out = read_held(w, &f->held[v], write_view(w, v), at, guard);
        return true;
    }
    if (w->is_expanded && write_can_chain(f->s.g, n)) {
        *out = write_chain(w, v, at, guard);
        write_remember(w, v, at, guard, *out);
        return true;
    }
    return false;
}
