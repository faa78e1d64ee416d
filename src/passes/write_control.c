// SPDX-License-Identifier: Apache-2.0
// Loops and branches: their bodies as frames, their carries as scalars or locals.
//
//     y, z = scan(x, s)       seq t < T carry %x0 = ..., %x1 = ... {     an element of a lane each
//                               ... put z[...]
//                               yield %x0', %x1'
//                             } -> %y0, %y1
//
// A carry that is looped over is a local instead.  What it becomes is made in a second local, and
// copied when every carry has been made.
#include "passes/write.h"

#include "ir/control.h"

// The carries of a loop: scalars of all, one after the other, and locals.
struct carries {
    uint32_t n;
    const struct view *view; // by carry: of one step
    struct held *held;
    nest_id *next;  // by carry: the second local
    nest_id *local; // by carry: the first, NEST_NONE for scalars
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

static struct carries begin_carries(struct writer *w, uint32_t n, const ir_id *init,
                                    const struct view *view)
{
    struct arena *a = w->outer->scratch;
    struct carries c = {.n = n,
                        .view = view,
                        .held = arena_array(a, struct held, n + 1),
                        .next = arena_array(a, nest_id, n + 1),
                        .local = arena_array(a, nest_id, n + 1),
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
        jot_dtype d = ir_dtype_of(w->s->g, init[k]);
        c.local[k] = is_local ? write_new_local(w, d, count_of(w, view[k])) : NEST_NONE;
        c.next[k] = is_local ? write_new_local(w, d, count_of(w, view[k])) : NEST_NONE;
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

// The values of the current frame that the carries become.
static void make_next(struct writer *w, struct carries *c, const ir_id *out)
{
    for (uint32_t k = 0; k < c->n; k++)
        if (c->local[k] == NEST_NONE)
            give(w, out[k], c->view[k], c->scalars + c->first[k], NEST_NONE);
        else
            give(w, out[k], c->view[k], NULL, c->next[k]);
}

static void copy_next(struct writer *w, const struct carries *c)
{
    for (uint32_t k = 0; k < c->n; k++)
        if (c->local[k] != NEST_NONE)
            write_copy_local(w, c->local[k], c->next[k]);
}

static void hold_params(struct frame *f, const struct carries *c, uint32_t first)
{
    for (uint32_t k = 0; k < c->n; k++)
        f->held[first + k] = c->held[k];
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
        bool is_local = write_is_looped(w, view);
        nest_id *elements = arena_array(w->outer->scratch, nest_id, count_of(w, view) + 1);
        jot_dtype d = ir_dtype_of(body->g, v);
        out[k] = (struct held){.is_set = true,
                               .elements = is_local ? NULL : elements,
                               .local = is_local ? write_new_local(w, d, count_of(w, view))
                                                 : NEST_NONE};
        give(w, v, view, is_local ? NULL : elements, out[k].local);
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
    hold_params(f, &c, n_consts);
    write_enter(w, f);
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
    copy_next(w, &c);
    write_enter(w, up);
    hold(w, &c, emit_seq_close(&w->e, back, c.n_scalars, c.scalars), out);
}

// ---- While

// The test of the step that is to come, in the current scope.
static struct frame *test_frame(struct writer *w, const struct ir_node *n,
                                struct lane_graph *test, const struct carries *c)
{
    struct frame *f = write_frame(w, test, ir_operands(w->s->g, n));
    hold_params(f, c, n->n_in - c->n);
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
        write_forms_of_place(w, test->view[v], i, at);
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
            write_forms_of_place(w, c->view[k], i, at);
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
    hold_params(f, &c, n_consts);
    write_enter(w, f);
    make_next(w, &c, bodies[1]->g->outputs.at);
    if (count_of(w, bodies[0]->view[bodies[0]->g->outputs.at[0]]) > 1)
        keep_done(w, &c, test);
    copy_next(w, &c);
    write_enter(w, up);
    hold(w, &c, emit_while_close(&w->e, back, c.n_scalars, c.scalars), out);
}

// ---- Cond

struct branches {
    const struct ir_node *n;
    struct lane_graph **bodies;
    int count;
    nest_id index;
    struct carries c; // of the results
};

// The results of branch k in the current scope.
static void write_branch(struct writer *w, struct branches *b, int k)
{
    struct frame *up = w->frame;
    struct frame *f = write_frame(w, b->bodies[k], ir_operands(w->s->g, b->n) + 1);
    f->floor = w->e.at;
    write_enter(w, f);
    for (uint32_t i = 0; i < b->c.n; i++) {
        bool is_local = b->c.local[i] != NEST_NONE;
        give(w, b->bodies[k]->g->outputs.at[i], b->c.view[i],
             is_local ? NULL : b->c.scalars + b->c.first[i], b->c.local[i]);
    }
    write_enter(w, up);
}

// Branch k or a later one; their scalars in the carries.
static void write_branches(struct writer *w, struct branches *b, int k)
{
    if (k + 1 == b->count) {
        write_branch(w, b, k);
        return;
    }
    int32_t number = k;
    scope_id back = w->e.at, floor = w->e.floor;
    nest_id in[2] = {b->index, emit_const(&w->e, JOT_I32, &number)};
    w->e.floor = back;
    nest_id is_it = emit_op(&w->e, IR_le, JOT_BOOL, 2, in, NULL);
    emit_if_open(&w->e, back, is_it);
    write_branch(w, b, k);
    emit_if_else(&w->e, b->c.n_scalars, b->c.scalars);
    write_branches(w, b, k + 1);
    nest_id first = emit_if_close(&w->e, back, b->c.n_scalars, b->c.scalars);
    for (int i = 0; i < b->c.n_scalars; i++)
        b->c.scalars[i] = first + (nest_id)i;
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
                           .first = arena_array(a, int64_t, n->n_out + 1)};
    int64_t total = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        bool is_local = write_is_looped(w, view[k]);
        b.c.first[k] = total;
        b.c.local[k] = is_local ? write_new_local(w, ir_dtype_of(w->s->g, n->out + k),
                                                  count_of(w, view[k]))
                                : NEST_NONE;
        total += is_local ? 0 : count_of(w, view[k]);
    }
    b.c.n_scalars = (int)total;
    b.c.scalars = arena_array(a, nest_id, total + 1);
    b.index = write_value_at(w, ir_operand(w->s->g, n, 0), NULL, NEST_NONE);
    write_branches(w, &b, 0);
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
