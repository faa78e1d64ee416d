// SPDX-License-Identifier: Apache-2.0
// Loops and branches: their bodies as frames, their carries as scalars or locals.
//
//     y, z = scan(x, s)       seq t < T carry %x0 = ..., %x1 = ... {     an element of a lane each
//                               ... put z[...]
//                               yield %x0', %x1'
//                             } -> %y0, %y1
//
// A carry that is looped over is a local instead.  What is made of it by updates takes its place
// (write/in_place.c); what is not is copied there when every carry has been made.
#include "schedule/write/write.h"

#include "ir/control.h"

// The carries of a loop: scalars of all, one after the other, and locals.
struct carries {
    uint32_t n;
    const struct view *view; // by carry: of one trip
    struct held *held;
    nest_id *local; // by carry, NEST_NONE for scalars
    bool *waits;    // by carry: its updates come last
    bool *is_fresh; // by carry: nothing reads what the local has; NULL: none is so
    int64_t *first; // by carry: its first scalar
    int n_scalars;
    nest_id *scalars;
};

static int64_t count_of(struct writer *w, struct view v)
{
    return lanes_inner_count(w->lanes, v);
}

// The elements of a value of the current frame as scalars, or in the local.
static void give(struct writer *w, ir_id v, struct view view, nest_id *elements, nest_id local)
{
    struct sink to = {.elements = elements, .buffer = local, .time = NONE, .guard = NEST_NONE};
    write_elements(w, v, view, &to);
}

static nest_id new_local(struct writer *w, ir_id v, struct view view)
{
    return write_new_local(w, ir_dtype_of(w->s->g, v), count_of(w, view));
}

// A local with the value of the current frame.
static nest_id make_local(struct writer *w, ir_id v, struct view view)
{
    nest_id local = write_local_with(w, v);
    if (local == NEST_NONE) {
        local = new_local(w, v, view);
        give(w, v, view, NULL, local);
    }
    return local;
}

static struct carries begin_carries(struct writer *w, uint32_t n, const ir_id *init,
                                    const struct view *view)
{
    struct arena *a = w->outer->scratch;
    struct carries c = {.n = n,
                        .view = view,
                        .held = arena_array(a, struct held, n + 1),
                        .local = arena_array(a, nest_id, n + 1),
                        .waits = arena_array(a, bool, n + 1),
                        .first = arena_array(a, int64_t, n + 1)};
    int64_t total = 0;
    for (uint32_t k = 0; k < n; k++) {
        c.first[k] = total;
        total += write_is_looped(w, view[k]) ? 0 : count_of(w, view[k]);
    }
    c.n_scalars = (int)total;
    c.scalars = arena_array(a, nest_id, total + 1);
    for (uint32_t k = 0; k < n; k++) {
        bool is_local = write_is_looped(w, view[k]);
        c.local[k] = is_local ? write_take(w, init[k]) : NEST_NONE;
        if (c.local[k] != NEST_NONE)
            continue;
        if (is_local)
            c.local[k] = new_local(w, init[k], view[k]);
        give(w, init[k], view[k], is_local ? NULL : c.scalars + c.first[k], c.local[k]);
    }
    return c;
}

// What is held when the scalars are first, first + 1, ...
static void hold(struct writer *w, struct carries *c, nest_id first, struct held *out)
{
    for (uint32_t k = 0; k < c->n; k++) {
        int64_t count = count_of(w, c->view[k]);
        nest_id *elements = arena_array(w->outer->scratch, nest_id, count + 1);
        for (int64_t i = 0; i < count; i++)
            elements[i] = first + (nest_id)(c->first[k] + i);
        out[k] = (struct held){.is_set = true,
                               .elements = c->local[k] == NEST_NONE ? elements : NULL,
                               .local = c->local[k]};
    }
}

// The carries as parameters of the current frame, from `first` on, and what they become there.
static void enter_carries(struct writer *w, struct carries *c, uint32_t first, const ir_id *out)
{
    for (uint32_t k = 0; k < c->n; k++)
        w->frame->held[first + k] = c->held[k];
    for (uint32_t k = 0; k < c->n; k++)
        c->waits[k] = c->local[k] != NEST_NONE && write_can_wait(w, out[k], first + k);
}

static bool is_carried(const struct carries *c, nest_id local)
{
    for (uint32_t k = 0; k < c->n; k++)
        if (c->local[k] == local)
            return true;
    return false;
}

// The local of carry k or one that no carry has, with the value v of the current frame.
static nest_id next_local(struct writer *w, const struct carries *c, uint32_t k, ir_id v)
{
    nest_id local = make_local(w, v, c->view[k]);
    if (local == c->local[k] || !is_carried(c, local))
        return local;
    nest_id copy = new_local(w, v, c->view[k]);
    write_copy_local(w, copy, local);
    return copy;
}

// The carries become these values of the current frame.
static void make_next(struct writer *w, struct carries *c, const ir_id *out)
{
    struct arena *a = w->outer->scratch;
    nest_id *next = arena_array(a, nest_id, c->n + 1),
            *late = arena_array(a, nest_id, c->n + 1);
    ir_id *updated = arena_array(a, ir_id, c->n + 1);
    uint32_t n_late = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        next[k] = c->local[k];
        if (c->local[k] == NEST_NONE)
            give(w, out[k], c->view[k], c->scalars + c->first[k], NEST_NONE);
        else if (c->is_fresh && c->is_fresh[k])
            give(w, out[k], c->view[k], NULL, c->local[k]);
        else if (c->waits[k] && write_updated_local(w, out[k]) == c->local[k])
            late[n_late] = c->local[k], updated[n_late++] = out[k];
        else
            next[k] = next_local(w, c, k, out[k]);
    }
    write_waiting(w, n_late, updated, late);
    for (uint32_t k = 0; k < c->n; k++)
        if (next[k] != c->local[k])
            write_copy_local(w, c->local[k], next[k]);
}

// ---- Scan

// A local of all rows of result k.
static struct sink local_rows(struct writer *w, const struct ir_node *n, uint32_t k,
                              struct view row, int64_t length, struct held *out)
{
    jot_dtype d = ir_dtype_of(w->s->g, n->out + k);
    out[k] = (struct held){.is_set = true,
                           .local = write_new_local(w, d, length * count_of(w, row))};
    return (struct sink){.buffer = out[k].local, .guard = NEST_NONE};
}

// One trip of a scan without carries, whose trips are lanes of the kernel.
static void write_lane(struct writer *w, const struct ir_node *n, struct lane_graph *body,
                       form_id time, const struct sink *rows, struct held *out)
{
    struct frame *up = w->frame, *f = write_frame(w, body, ir_operands(w->s->g, n));
    f->first_row = (uint32_t)ir_scan_of(n).n_consts;
    f->time = time;
    f->is_lane = true;
    write_enter(w, f);
    for (uint32_t k = 0; k < n->n_out; k++) {
        ir_id v = body->g->outputs.at[k];
        struct view view = body->view[v];
        struct sink to = rows ? rows[k] : (struct sink){.is_kept = true};
        to.time = time;
        if (to.is_memory)
            write_elements(w, v, view, &to);
        out[k] = (struct held){.is_set = true, .local = NEST_NONE};
        if (!to.is_kept)
            continue;
        if (write_is_looped(w, view)) {
            out[k].local = make_local(w, v, view);
            continue;
        }
        nest_id *elements = arena_array(w->outer->scratch, nest_id, count_of(w, view) + 1);
        give(w, v, view, elements, NEST_NONE);
        out[k].elements = elements;
    }
    write_enter(w, up);
}

// The trip that a lane is, or NONE.
static form_id trip_of_lane(struct writer *w, const struct ir_node *n)
{
    const struct lane_graph *f = w->frame ? w->frame->lanes : w->lanes->top;
    if (ir_scan_of(n).n_carry || !n->n_out || !ir_scan_of(n).length)
        return NONE;
    return write_form_of_lanes(w, f->view[n->out].dims[0]);
}

static void write_scan(struct writer *w, const struct ir_node *n, struct lane_graph *body,
                       const struct sink *rows, struct held *out)
{
    struct ir_scan s = ir_scan_of(n);
    form_id lane = trip_of_lane(w, n);
    if (lane != NONE) {
        write_lane(w, n, body, lane, rows, out);
        return;
    }
    uint32_t n_carry = (uint32_t)s.n_carry, n_consts = (uint32_t)s.n_consts;
    struct frame *up = w->frame;
    scope_id back = w->e.at;
    const ir_id *in = ir_operands(w->s->g, n);
    struct carries c = begin_carries(w, n_carry, in + n_consts, body->view + n_consts);
    struct sink *kept = arena_array(w->outer->scratch, struct sink, n->n_out + 1);
    for (uint32_t k = n_carry; k < n->n_out; k++)
        out[k] = (struct held){.is_set = true, .local = NEST_NONE};
    for (uint32_t k = n_carry; k < n->n_out; k++)
        if (!rows || rows[k].is_kept)
            kept[k] = local_rows(w, n, k, body->view[body->g->outputs.at[k]], s.length, out);

    nest_id axis = emit_axis(&w->e, s.length);
    nest_id carry = emit_seq_open(&w->e, back, axis, s.reverse, c.n_scalars, c.scalars);
    struct frame *f = write_frame(w, body, in);
    f->first_row = n_consts + n_carry;
    f->time = emit_form_axis(&w->e, axis);
    hold(w, &c, carry, c.held);
    write_enter(w, f);
    enter_carries(w, &c, n_consts, body->g->outputs.at);
    for (uint32_t k = n_carry; k < n->n_out; k++) {
        ir_id v = body->g->outputs.at[k];
        struct sink to = rows ? rows[k] : (struct sink){.is_kept = true};
        to.time = kept[k].time = f->time;
        if (to.is_memory)
            write_elements(w, v, body->view[v], &to);
        if (to.is_kept)
            write_elements(w, v, body->view[v], &kept[k]);
    }
    make_next(w, &c, body->g->outputs.at);
    write_enter(w, up);
    hold(w, &c, emit_close_values(&w->e, back, c.n_scalars, c.scalars), out);
}

// ---- While

// The test of the trip that is to come, in the current scope.  The body reads the carries after it.
static struct frame *test_frame(struct writer *w, const struct ir_node *n,
                                struct lane_graph *test, const struct carries *c)
{
    struct frame *f = write_frame(w, test, ir_operands(w->s->g, n));
    for (uint32_t k = 0; k < c->n; k++) {
        f->held[n->n_in - c->n + k] = c->held[k];
        f->uses[n->n_in - c->n + k] = 2;
    }
    return f;
}

// Whether the test holds for one element that the lane has.
static nest_id any_holds(struct writer *w, const struct lane_graph *test)
{
    ir_id v = test->g->outputs.at[0];
    int64_t count = count_of(w, test->view[v]);
    nest_id any = NEST_NONE;
    form_id at[IR_MAX_RANK];
    for (int64_t i = 0; i < count; i++) {
        write_forms_of_element(w, test->view[v], i, at);
        nest_id in[2] = {any, write_value_at(w, v, at, NEST_NONE)};
        any = i ? emit_op(&w->e, IR_or, JOT_BOOL, 2, in, NULL) : in[1];
    }
    return any == NEST_NONE ? write_zero_of(w, JOT_BOOL) : any;
}

// Where one lane of the kernel has several of the loop, those that are done keep their carries.
static void keep_done(struct writer *w, struct carries *c, struct frame *test)
{
    ir_id v = test->s.g->outputs.at[0];
    struct frame *step = w->frame;
    for (uint32_t k = 0; k < c->n; k++)
        for (int64_t i = 0; i < count_of(w, c->view[k]); i++) {
            form_id at[IR_MAX_RANK];
            write_forms_of_element(w, c->view[k], i, at);
            write_enter(w, test);
            nest_id *next = &c->scalars[c->first[k] + i];
            nest_id in[3] = {write_value_at(w, v, at, NEST_NONE), *next,
                             c->held[k].elements[i]};
            write_enter(w, step);
            *next = emit_op(&w->e, IR_select, w->e.b.nest->values.at[*next].dtype, 3, in, NULL);
        }
}

static void write_while(struct writer *w, const struct ir_node *n, struct lane_graph **bodies,
                        struct held *out)
{
    struct ir_while l = ir_while_of(n);
    uint32_t n_consts = (uint32_t)l.n_consts;
    struct frame *up = w->frame;
    scope_id back = w->e.at;
    const ir_id *in = ir_operands(w->s->g, n);
    struct carries c = begin_carries(w, n->n_out, in + n_consts, bodies[1]->view + n_consts);
    nest_id carry = emit_while_open(&w->e, back, c.n_scalars, c.scalars);
    hold(w, &c, carry, c.held);
    write_enter(w, test_frame(w, n, bodies[0], &c));
    nest_id holds = any_holds(w, bodies[0]);
    write_enter(w, up);
    emit_while_do(&w->e, holds);

    struct frame *f = write_frame(w, bodies[1], in);
    struct frame *test = test_frame(w, n, bodies[0], &c);
    write_enter(w, f);
    enter_carries(w, &c, n_consts, bodies[1]->g->outputs.at);
    make_next(w, &c, bodies[1]->g->outputs.at);
    if (count_of(w, bodies[0]->view[bodies[0]->g->outputs.at[0]]) > 1)
        keep_done(w, &c, test);
    write_enter(w, up);
    hold(w, &c, emit_close_values(&w->e, back, c.n_scalars, c.scalars), out);
}

// ---- Cond

struct branches {
    const struct ir_node *n;
    struct lane_graph **bodies;
    int count;
    nest_id index;
    struct carries c; // of the results
    uint32_t *from;   // by result: the operand of the branches whose local it takes, or NONE
    bool *is_taken;   // by operand of the branches: a result has its local
};

// The operand that all branches make the result of, by updates or not at all, or NONE.  Of several
// results the first has it.
static uint32_t updated_operand(const struct branches *b, uint32_t result)
{
    uint32_t operand = NONE;
    for (int k = 0; k < b->count; k++) {
        const struct ir_graph *g = b->bodies[k]->g;
        ir_id v = write_updated_value(g, g->outputs.at[result]);
        if (ir_node_of(g, v)->op != IR_param || (k && v != operand))
            return NONE;
        operand = v;
    }
    return b->is_taken[operand] ? NONE : operand;
}

// The results of branch k in the current scope.
static void write_branch(struct writer *w, struct branches *b, int k)
{
    struct frame *up = w->frame;
    struct frame *f = write_frame(w, b->bodies[k], ir_operands(w->s->g, b->n) + 1);
    f->floor = w->e.at;
    write_enter(w, f);
    const ir_id *out = b->bodies[k]->g->outputs.at;
    for (uint32_t i = 0; i < b->c.n; i++)
        if (b->from[i] != NONE)
            f->held[b->from[i]] = (struct held){.is_set = true, .local = b->c.local[i]};
    for (uint32_t i = 0; i < b->c.n; i++)
        b->c.waits[i] = b->from[i] != NONE && write_can_wait(w, out[i], b->from[i]);
    make_next(w, &b->c, out);
    write_enter(w, up);
}

// One of the branches from `first` to before `end`, which the index chooses by halves; their scalars in
// the carries.
static void write_branches(struct writer *w, struct branches *b, int first, int end)
{
    if (first + 1 == end) {
        write_branch(w, b, first);
        return;
    }
    int half = first + (end - first) / 2;
    int32_t last = half - 1;
    scope_id back = w->e.at, floor = w->e.floor;
    nest_id in[2] = {b->index, emit_const(&w->e, JOT_I32, &last)};
    w->e.floor = back;
    nest_id is_before = emit_op(&w->e, IR_le, JOT_BOOL, 2, in, NULL);
    emit_if_open(&w->e, back, is_before);
    write_branches(w, b, first, half);
    emit_if_else(&w->e, b->c.n_scalars, b->c.scalars);
    write_branches(w, b, half, end);
    nest_id result = emit_close_values(&w->e, back, b->c.n_scalars, b->c.scalars);
    for (int i = 0; i < b->c.n_scalars; i++)
        b->c.scalars[i] = result + (nest_id)i;
    w->e.floor = floor;
}

static void write_cond(struct writer *w, const struct ir_node *n, struct lane_graph **bodies,
                       struct held *out)
{
    struct arena *a = w->outer->scratch;
    const int64_t *functions;
    struct branches b = {.n = n, .bodies = bodies, .count = ir_bodies_of(n, &functions)};
    struct view *view = arena_array(a, struct view, n->n_out + 1);
    for (uint32_t k = 0; k < n->n_out; k++)
        view[k] = bodies[0]->view[bodies[0]->g->outputs.at[k]];
    b.c = (struct carries){.n = n->n_out,
                           .view = view,
                           .local = arena_array(a, nest_id, n->n_out + 1),
                           .waits = arena_array(a, bool, n->n_out + 1),
                           .is_fresh = arena_array(a, bool, n->n_out + 1),
                           .first = arena_array(a, int64_t, n->n_out + 1)};
    b.from = arena_array(a, uint32_t, n->n_out + 1);
    b.is_taken = arena_array(a, bool, n->n_in + 1);
    int64_t total = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        bool is_local = write_is_looped(w, view[k]);
        b.c.first[k] = total;
        b.from[k] = is_local ? updated_operand(&b, k) : NONE;
        b.c.local[k] = b.from[k] == NONE ? NEST_NONE
                                         : write_take(w, ir_operand(w->s->g, n, b.from[k] + 1));
        if (b.c.local[k] == NEST_NONE)
            b.from[k] = NONE;
        else
            b.is_taken[b.from[k]] = true;
        b.c.is_fresh[k] = is_local && b.from[k] == NONE;
        if (b.c.is_fresh[k])
            b.c.local[k] = new_local(w, n->out + k, view[k]);
        total += is_local ? 0 : count_of(w, view[k]);
    }
    b.c.n_scalars = (int)total;
    b.c.scalars = arena_array(a, nest_id, total + 1);
    b.index = write_value_at(w, ir_operand(w->s->g, n, 0), NULL, NEST_NONE);
    write_branches(w, &b, 0, b.count);
    for (uint32_t k = 0; k < n->n_out; k++) {
        nest_id *elements = arena_array(a, nest_id, count_of(w, view[k]) + 1);
        bool is_local = b.c.local[k] != NEST_NONE;
        for (int64_t i = 0; i < count_of(w, view[k]) && !is_local; i++)
            elements[i] = b.c.scalars[b.c.first[k] + i];
        out[k] = (struct held){
            .is_set = true, .elements = is_local ? NULL : elements, .local = b.c.local[k]};
    }
}

void write_control(struct writer *w, const struct ir_node *n, struct lane_graph **bodies,
                   const struct sink *rows, struct held *out)
{
    if (n->op == IR_scan)
        write_scan(w, n, bodies[0], rows, out);
    else if (n->op == IR_while)
        write_while(w, n, bodies, out);
    else
        write_cond(w, n, bodies, out);
}
