// SPDX-License-Identifier: Apache-2.0
// Rows in and out of a scan, found in what its body reads and puts at indices that the counter tells.
//
//     y = scan {body, length=9} [x | 0, y0]           y = scan {body', length=9} [| x]
//     body(x, i, y):                          becomes
//       u = sin(x[i])                                 body'(x_i):
//       return i + 1, dynamic_update_slice(y, u, i)     return sin(x_i)
//
// A counter becomes a row, and rows that count are made around the loop.  What is read from an array that no
// trip changes is a row in.  An array to which each trip puts a row of its own is rows out; where these are a part of
// it, they are put into it behind the loop.  Of such an array trips may read rows: what the last trips put are
// carries, and what is not put yet are rows in.  Where most are counted downwards the loop goes the other way.
// Calls that take integers are opened for it.
//
// For derivatives a row is what is kept of a trip, where a carry would be all of the array, and no loop
// copies an array of which it changes a row.  All values are as they were.
#include "passes/simplify/loop_rows.h"

#include "ir/indexing.h"
#include "passes/body.h"

enum { MOST_ROUNDS = 8 }; // what is found makes other things known

// ---- arrays as rows ----

// With the axis in front, or what was in front at the axis again.
static ir_id moved(struct ir_builder *b, ir_id x, int axis, bool to_front)
{
    int64_t axes[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, x);
    if (axis == 0)
        return x;
    for (int i = 0; i < t.rank; i++)
        axes[i] = to_front ? (i == 0      ? axis
                              : i <= axis ? i - 1
                                          : i)
                           : (i == axis  ? 0
                              : i < axis ? i + 1
                                         : i);
    return ir_transpose(b, x, axes);
}

static ir_id shaped(struct ir_builder *b, ir_id x, struct ir_type t)
{
    if (x == IR_NONE || ir_type_equal(ir_type_in(b, x), t))
        return x;
    return ir_reshape(b, x, t.rank, ir_dims(b->module, t));
}

static ir_id turned(struct ir_builder *b, ir_id x, bool is_down)
{
    return is_down ? ir_rev(b, x, 1, (const int64_t[]){0}) : x;
}

// Where the first of the rows is, or the last one of those that go down.
static int64_t lowest(const struct rows *r, const struct slice *p)
{
    return p->at.step > 0 ? p->at.start : p->at.start + p->at.step * (r->scan.length - 1);
}

// The type of a row: that of the array with `size` along the axis, in front, or without it where that is 1.
static struct ir_type row_type(struct ir_module *m, struct ir_type array, const struct slice *p)
{
    int64_t dims[IR_MAX_RANK], rank = 0;
    if (p->size != 1)
        dims[rank++] = p->size;
    for (int i = 0; i < array.rank; i++)
        if (i != p->axis)
            dims[rank++] = ir_dims(m, array)[i];
    return ir_type_make(m, ir_dtype(array), (int)rank, dims);
}

static bool goes_down(const struct slice *p, bool turns) { return (p->at.step < 0) != turns; }

// One part of the array, from there on, as a row.
static ir_id row_at(const struct rows *r, const struct slice *p, int64_t start)
{
    struct ir_builder *b = r->b;
    ir_id x = moved(b, r->in[p->array], p->axis, true);
    struct ir_type t = ir_type_in(b, x);
    int64_t from[IR_MAX_RANK] = {start}, to[IR_MAX_RANK];
    memcpy(to, ir_dims(b->module, t), (size_t)t.rank * sizeof *to);
    to[0] = start + p->size;
    return shaped(b, ir_slice(b, x, from, to, NULL),
                  row_type(b->module, ir_type_in(b, r->in[p->array]), p));
}

static ir_id rows_of(const struct rows *r, const struct slice *p, bool turns)
{
    struct ir_builder *b = r->b;
    ir_id x = r->in[p->array];
    struct ir_type array = ir_type_in(b, x);
    struct ir_type row = row_type(b->module, array, p);
    int64_t n = r->scan.length * p->size, low = lowest(r, p), from[IR_MAX_RANK] = {low};
    x = moved(b, x, p->axis, true);
    struct ir_type t = ir_type_in(b, x);
    int64_t to[IR_MAX_RANK];
    memcpy(to, ir_dims(b->module, t), (size_t)t.rank * sizeof *to);
    if (to[0] != n) {
        to[0] = low + n;
        x = ir_slice(b, x, from, to, NULL);
    }
    x = shaped(b, x, ir_type_stack(b->module, row, r->scan.length));
    return turned(b, x, goes_down(p, turns));
}

// The array with the rows in it.
static ir_id array_of(const struct rows *r, const struct slice *p, ir_id rows, bool turns)
{
    struct ir_builder *b = r->b;
    struct ir_type array = ir_type_in(b, r->in[p->array]);
    int64_t dims[IR_MAX_RANK], n = r->scan.length * p->size;
    struct ir_type row = row_type(b->module, array, p);
    memcpy(dims, ir_dims(b->module, array), (size_t)array.rank * sizeof *dims);
    dims[p->axis] = n;
    rows = turned(b, rows, goes_down(p, turns));
    int rest = row.rank - (p->size != 1);
    int64_t front[IR_MAX_RANK] = {n};
    memcpy(front + 1, ir_dims(b->module, row) + (p->size != 1), (size_t)rest * sizeof *front);
    rows = shaped(b, rows, ir_type_make(b->module, ir_dtype(array), rest + 1, front));
    rows = moved(b, rows, p->axis, false);
    if (n == ir_dims(b->module, array)[p->axis])
        return rows;
    ir_id starts[IR_MAX_RANK];
    for (int i = 0; i < array.rank; i++)
        starts[i] = ir_scalar_int(b, JOT_I64, i == p->axis ? lowest(r, p) : 0);
    return ir_dynamic_update_slice(b, r->in[p->array], rows, starts);
}

static ir_id counting(const struct rows *r, jot_dtype d, struct affine a, bool turns)
{
    struct ir_builder *b = r->b;
    struct ir_type t = ir_type_make(b->module, d, 1, &r->scan.length);
    a = turns ? affine_turned(a, r->scan.length) : a;
    if (!a.step)
        return ir_broadcast_in_dim(b, ir_scalar_int(b, d, a.start), 1, &r->scan.length, NULL);
    ir_id rows = ir_iota(b, t, 0);
    if (a.step != 1 && a.step != -1)
        rows = ir_mul(b, rows, ir_scalar_int(b, d, a.step < 0 ? -a.step : a.step));
    if (a.step < 0)
        return ir_sub(b, ir_scalar_int(b, d, a.start), rows);
    return a.start ? ir_add(b, rows, ir_scalar_int(b, d, a.start)) : rows;
}

// ---- the new loop ----

struct made {
    struct ir_scan scan;
    struct ir_builder body;
    ir_id *in, *map; // operands, values of the body in the new one
    int n_in;
    bool turns;
};

// One more operand and parameter.
static ir_id add_operand(struct made *w, ir_id in, struct ir_type t)
{
    w->in[w->n_in++] = in;
    return ir_param(&w->body, t);
}

static void take_old(const struct rows *r, struct made *w, ir_id v)
{
    w->map[v] = add_operand(w, r->in[v], ir_type_of(r->f, v));
}

static void take_row(const struct rows *r, struct made *w, ir_id v)
{
    struct affine a;
    ir_id rows = r->in[v];
    if (w->turns)
        rows = affine_rows(&r->l, rows, &a) ? counting(r, ir_dtype_of(r->f, v), a, true)
                                            : turned(r->b, rows, true);
    w->map[v] = add_operand(w, rows, ir_type_of(r->f, v));
}

// A row of the shape that what was read has.
static ir_id as_read(struct made *w, const struct slice *p, ir_id row, struct ir_type t)
{
    return shaped(&w->body, p->size == 1 ? row : moved(&w->body, row, p->axis, false), t);
}

// Consts that are read as rows alone are none.
static void take_consts(const struct rows *r, struct made *w)
{
    uint32_t *left =
        arena_copy(r->b->module->arena, r->uses, ((size_t)r->scan.n_consts + 1) * sizeof *left);
    for (uint32_t k = 0; k < r->reads.count; k++)
        if (r->slices[r->reads.at[k]].array < carries_at(r))
            left[r->slices[r->reads.at[k]].array]--;
    w->scan.n_consts = 0;
    for (ir_id v = 0; v < carries_at(r); v++)
        if (left[v] || !r->uses[v]) {
            take_old(r, w, v);
            w->scan.n_consts++;
        }
}

// What the last trips put, before the first one.
static void take_past(const struct rows *r, struct made *w, struct carry *c)
{
    struct ir_module *m = r->b->module;
    const struct affine at = c->slice.at;
    struct ir_type row = row_type(m, ir_type_of(r->f, c->slice.array), &c->slice);
    int64_t first = r->scan.reverse ? at.start + at.step * (r->scan.length - 1) : at.start;
    c->past = pass_no_values(m, (uint32_t)c->depth + 1);
    for (int k = 0; k < c->depth; k++, w->scan.n_carry++) {
        first += r->scan.reverse ? at.step : -at.step;
        c->past[k] = add_operand(w, row_at(r, &c->slice, first), row);
    }
}

static void take_carries(const struct rows *r, struct made *w)
{
    w->scan.n_carry = 0;
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++)
        if (r->carries[i].kind == CARRY_KEPT) {
            take_old(r, w, carries_at(r) + i);
            w->scan.n_carry++;
        }
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++)
        if (r->carries[i].kind == CARRY_ROWS)
            take_past(r, w, &r->carries[i]);
}

static void take_rows(const struct rows *r, struct made *w)
{
    struct ir_module *m = r->b->module;
    for (ir_id v = rows_at(r); v < (ir_id)r->n_in; v++)
        take_row(r, w, v);
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++) {
        struct carry *c = &r->carries[i];
        ir_id v = carries_at(r) + i;
        struct ir_type t = ir_type_of(r->f, v);
        if (c->kind == CARRY_COUNTED)
            w->map[v] = add_operand(w, counting(r, ir_dtype(t), c->count, w->turns), t);
        if (c->kind == CARRY_ROWS && c->is_read && !c->is_zero)
            c->own = add_operand(w, rows_of(r, &c->slice, w->turns), row_type(m, t, &c->slice));
    }
    for (uint32_t k = 0; k < r->reads.count; k++) {
        uint32_t at = r->reads.at[k];
        const struct slice *p = &r->slices[at];
        const struct carry *c;
        int64_t ago;
        bool is_ahead = loop_rows_read(r, at, &c, &ago) && ago < 0;
        if (p->array >= carries_at(r) && !is_ahead)
            continue;
        struct ir_type row = row_type(m, ir_type_of(r->f, p->array), p);
        w->map[r->f->nodes.at[at].out] = add_operand(w, rows_of(r, p, w->turns), row);
    }
}

static void copy_nodes(const struct rows *r, struct made *w)
{
    const struct ir_graph *f = r->f;
    bool *is_put = body_mask(r->b->module, f->values.count);
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++)
        is_put[f->outputs.at[i]] |= r->carries[i].kind == CARRY_ROWS;
    for (uint32_t at = f->n_params; at < f->nodes.count; at++) {
        const struct ir_node *n = &f->nodes.at[at];
        const struct carry *c;
        ir_id row = n->n_out ? w->map[n->out] : IR_NONE; // a row in that was taken
        int64_t ago;
        bool is_read = loop_rows_read(r, at, &c, &ago);
        if (is_read && ago >= 0)
            row = ago ? c->past[ago - 1] : c->own;
        if (is_read || (r->slices[at].is && r->slices[at].array < carries_at(r)))
            w->map[n->out] = as_read(w, &r->slices[at], row, ir_type_of(f, n->out));
        else if (n->n_out != 1 || !is_put[n->out])
            pass_copy_node(&w->body, f, n, w->map);
    }
}

// What a trip puts, as a row.
static ir_id row_put(const struct rows *r, struct made *w, const struct carry *c)
{
    struct ir_builder *b = &w->body;
    struct ir_type array = ir_type_of(r->f, c->slice.array);
    ir_id u = w->map[c->update];
    if (c->slice.size != 1) {
        int64_t dims[IR_MAX_RANK];
        memcpy(dims, ir_dims(b->module, array), (size_t)array.rank * sizeof *dims);
        dims[c->slice.axis] = c->slice.size;
        u = shaped(b, u, ir_type_make(b->module, ir_dtype(array), array.rank, dims));
        u = moved(b, u, c->slice.axis, true);
    }
    u = shaped(b, u, row_type(b->module, array, &c->slice));
    return c->is_added ? ir_add(b, c->own, u) : u;
}

// Carries, what the last trips put, rows out and rows put.
static void give_results(const struct rows *r, struct made *w)
{
    uint32_t n_carry = (uint32_t)r->scan.n_carry;
    ir_id *put = pass_no_values(r->b->module, n_carry);
    for (uint32_t i = 0; i < n_carry; i++)
        if (r->carries[i].kind == CARRY_ROWS)
            put[i] = row_put(r, w, &r->carries[i]);
        else if (r->carries[i].kind == CARRY_KEPT)
            ir_output(&w->body, w->map[r->f->outputs.at[i]]);
    for (uint32_t i = 0; i < n_carry; i++)
        for (int k = 0; k < r->carries[i].depth && put[i] != IR_NONE; k++)
            ir_output(&w->body, k ? r->carries[i].past[k - 1] : put[i]);
    for (uint32_t i = n_carry; i < r->f->outputs.count; i++)
        if (!r->is_count[i])
            ir_output(&w->body, w->map[r->f->outputs.at[i]]);
    for (uint32_t i = 0; i < n_carry; i++)
        if (r->carries[i].kind == CARRY_ROWS)
            ir_output(&w->body, put[i]);
}

static void make_zeros(const struct rows *r, struct made *w)
{
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++) {
        struct carry *c = &r->carries[i];
        struct ir_type t = ir_type_of(r->f, carries_at(r) + i);
        if (c->kind == CARRY_ROWS && c->is_read && c->is_zero)
            c->own = ir_zeros(&w->body, row_type(r->b->module, t, &c->slice));
    }
}

static void make_body(const struct rows *r, struct made *w)
{
    make_zeros(r, w);
    copy_nodes(r, w);
    give_results(r, w);
    w->scan.body = ir_finish_function(&w->body);
}

// The results of the loop, of those that the new one has.
static void set_results(const struct rows *r, const struct made *w, const ir_id *y, ir_id *out)
{
    uint32_t n_carry = (uint32_t)r->scan.n_carry;
    const ir_id *rows = y + w->scan.n_carry;
    for (uint32_t i = 0; i < r->f->outputs.count; i++) {
        jot_dtype d = ir_dtype_of(r->f, r->f->outputs.at[i]);
        if (i < n_carry && r->carries[i].kind == CARRY_COUNTED)
            out[i] = ir_scalar_int(r->b, d, r->carries[i].end);
        else if (i >= n_carry && r->is_count[i])
            out[i] = counting(r, d, r->counts[i], false);
        else if (i < n_carry && r->carries[i].kind == CARRY_KEPT)
            out[i] = *y++;
        else if (i >= n_carry)
            out[i] = turned(r->b, *rows++, w->turns);
    }
    for (uint32_t i = 0; i < n_carry; i++)
        if (r->carries[i].kind == CARRY_ROWS)
            out[i] = array_of(r, &r->carries[i].slice, *rows++, w->turns);
}

static uint32_t most_operands(const struct rows *r)
{
    uint32_t n = (uint32_t)r->n_in + r->f->nodes.count;
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++)
        n += (uint32_t)r->carries[i].depth;
    return n;
}

static void build_scan(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in,
                       ir_id *out, int rounds)
{
    struct ir_module *m = b->module;
    struct rows r = {.b = b, .scan = *s, .in = in, .n_in = n_in};
    bool can = b->status == JOT_OK && s->length > 1 && !s->lanes && rounds > 0;
    r.scan.body = can ? loop_rows_open(m, s->body) : s->body;
    r.f = ir_function(m, r.scan.body);
    if (!can || !loop_rows_find(&r)) {
        ir_id y = ir_scan(b, s, n_in, in);
        for (uint32_t i = 0; i < r.f->outputs.count; i++)
            out[i] = y == IR_NONE ? IR_NONE : y + i;
        return;
    }
    struct made w = {.scan = r.scan,
                     .body = ir_builder_make(m, r.f->name, b->flags),
                     .in = pass_no_values(m, most_operands(&r)),
                     .map = pass_no_values(m, r.f->values.count),
                     .turns = r.down > r.up && !r.f->has_effects};
    w.scan.reverse = s->reverse != w.turns;
    take_consts(&r, &w);
    take_carries(&r, &w);
    take_rows(&r, &w);
    make_body(&r, &w);
    if (w.scan.body == IR_NONE) {
        ir_fail(b, w.body.status, "%s", w.body.message);
        return;
    }
    ir_id *y = pass_no_values(m, r.f->outputs.count);
    build_scan(b, &w.scan, w.n_in, w.in, y, rounds - 1);
    set_results(&r, &w, y, out);
}

void pass_scan_rows(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in,
                    ir_id *out)
{
    build_scan(b, s, n_in, in, out, MOST_ROUNDS);
}
