// SPDX-License-Identifier: Apache-2.0
// Rows in and out of a scan, found in what its body reads and puts at places that the counter tells.
//
//     y = scan {body, length=9} [x | 0, y0]           y = scan {body', length=9} [| x]
//     body(x, i, y):                          becomes
//       u = sin(x[i])                                 body'(x_i):
//       return i + 1, dynamic_update_slice(y, u, i)     return sin(x_i)
//
// A counter becomes a row, and rows that count are made around the loop.  What is read from an array that no
// trip changes is a row in.  An array to which each trip puts a row of its own, and reads no other, is rows out;
// where these are a part of it, they are put into it behind the loop.  Of rows that are most counted
// downwards the loop goes the other way.  Calls that take integers are opened for it.
//
// For derivatives a row is what is kept of a trip, where a carry would be all of the array, and no loop
// copies an array of which it changes a row.  All values are as they were.
#include "ir/indexing.h"
#include "passes/affine.h"
#include "passes/body.h"

enum {
    MOST_ROUNDS = 8,      // in which calls are opened, and rows found
    MOST_OPENED = 1 << 12 // nodes of a body that is opened
};

// A part of an array: all of it but along one axis, and there `size` from start + step * row on.
struct place {
    bool is;
    ir_id array;
    int axis;
    int64_t size;
    struct affine at;
};

enum carry_kind { CARRY_KEPT, CARRY_COUNTED, CARRY_ROWS };

struct carry {
    enum carry_kind kind;
    struct affine count;
    int64_t end;
    struct place place;
    ir_id update;  // of the body: what is put there,
    bool is_added; // or added to what is there
    bool is_read;  // what is there is read
    bool is_zero;  // and is zero
    ir_id own;     // of the new body: what is there
};

struct rows {
    struct ir_builder *b;
    struct affine_loop l;
    struct ir_scan scan;
    const struct ir_graph *f;
    const ir_id *in;
    int n_in;
    uint32_t *uses;       // by value of the body
    struct place *places; // by node of the body: of array that are read and change in no trip
    struct carry *carries;
    struct affine *counts; // by row out,
    bool *is_count;        // and whether it is such
    int found, up, down;   // rows, and which way those go that are not counters
};

static ir_id carries_at(const struct rows *r) { return (ir_id)r->scan.n_consts; }
static ir_id rows_at(const struct rows *r)
{
    return (ir_id)(r->scan.n_consts + r->scan.n_carry);
}

// ---- calls ----

static bool takes_integer(const struct ir_graph *g, const struct ir_node *n)
{
    for (uint32_t i = 0; n->op == IR_call && i < n->n_in; i++) {
        ir_id v = ir_operand(g, n, i);
        if (!ir_rank_of(g, v) && dtype_is_integer(ir_dtype_of(g, v)))
            return ir_body(g, n, 0)->nodes.count <= MOST_OPENED;
    }
    return false;
}

static void copy_opened(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *map)
{
    if (!takes_integer(g, n)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    ir_id *out = pass_no_values(b->module, n->n_out);
    ir_inline(b, ir_body(g, n, 0), body_operands(b->module, g, n, map), out);
    for (uint32_t i = 0; i < n->n_out; i++)
        map[n->out + i] = out[i];
}

static uint32_t open_calls(struct ir_module *m, uint32_t f)
{
    for (int round = 0; round < MOST_ROUNDS; round++) {
        const struct ir_graph *g = ir_function(m, f);
        bool any = false;
        ir_for_each_node (g, n)
            any = any || takes_integer(g, n);
        if (!any || g->nodes.count > MOST_OPENED)
            return f;
        struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
        body_copy_all(&b, g, copy_opened);
        f = ir_finish_function(&b);
    }
    return f;
}

// ---- places ----

// The integer that says where the only window of a gather or scatter is along the axis, or IR_NONE.
static ir_id start_of_window(const struct ir_graph *g, const struct ir_node *n,
                             const struct ir_window *w, int axis)
{
    ir_id indices = ir_operand(g, n, 1);
    bool is_one = ir_count(g->module, ir_type_of(g, indices)) == 1;
    return is_one && w->component[axis] == 0 ? indices : IR_NONE;
}

static bool is_update(const struct ir_node *n)
{
    return n->op == IR_dynamic_update_slice || n->op == IR_scatter || n->op == IR_scatter_add;
}

static ir_id update_of(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_operand(g, n, n->op == IR_dynamic_update_slice ? 1 : 2);
}

// What the node reads or updates, when it is such a part, inside of the array in all trips and each trip
// another one.
static bool read_place(const struct rows *r, const struct ir_node *n, struct place *out)
{
    const struct ir_graph *g = r->f;
    bool is_window = n->op == IR_gather || n->op == IR_scatter || n->op == IR_scatter_add;
    if (!is_window && n->op != IR_dynamic_slice && n->op != IR_dynamic_update_slice)
        return false;
    ir_id array = ir_operand(g, n, 0), part = is_update(n) ? update_of(g, n) : n->out;
    const int64_t *dims = ir_dims_of(g, array), *sizes = ir_dims_of(g, part);
    struct ir_window w;
    if (is_window) {
        w = ir_window_of(g->module, n->attrs, ir_type_of(g, array),
                         ir_type_of(g, ir_operand(g, n, 1)), ir_type_of(g, part));
        sizes = w.size;
    }
    int axis = -1;
    for (int i = 0; i < ir_rank_of(g, array); i++) {
        if (sizes[i] == dims[i] && !(is_window && w.is_batch[i]))
            continue;
        if (axis >= 0 || (is_window && w.is_batch[i]))
            return false;
        axis = i;
    }
    if (axis < 0)
        return false;
    ir_id start = is_window ? start_of_window(g, n, &w, axis)
                            : ir_operand(g, n, (is_update(n) ? 2 : 1) + (uint32_t)axis);
    struct affine at;
    int64_t last;
    if (start == IR_NONE || !affine_in_body(&r->l, start, &at) ||
        (at.step != sizes[axis] && at.step != -sizes[axis]))
        return false;
    *out = (struct place){true, array, axis, sizes[axis], at};
    last = at.start + at.step * (r->scan.length - 1);
    return at.start >= 0 && last >= 0 && at.start <= dims[axis] - sizes[axis] &&
           last <= dims[axis] - sizes[axis];
}

static bool is_same_place(const struct place *a, const struct place *b)
{
    return b->is && a->array == b->array && a->axis == b->axis && a->size == b->size &&
           a->at.step == b->at.step && a->at.start == b->at.start;
}

static void count_way(struct rows *r, const struct place *p)
{
    r->found++;
    r->up += p->at.step > 0;
    r->down += p->at.step < 0;
}

static void find_reads(struct rows *r)
{
    for (uint32_t at = r->f->n_params; at < r->f->nodes.count; at++) {
        const struct ir_node *n = &r->f->nodes.at[at];
        struct place p;
        if (is_update(n) || !read_place(r, n, &p) || p.array >= rows_at(r))
            continue;
        r->places[at] = p;
        if (p.array < carries_at(r))
            count_way(r, &p);
    }
}

// ---- carries ----

// Whether v of the body is zero, there or around the loop.
static bool is_zero(const struct rows *r, ir_id v)
{
    const struct ir_node *n = ir_node_of(r->f, v);
    while (n->op == IR_broadcast_in_dim || n->op == IR_reshape)
        n = ir_node_of(r->f, ir_operand(r->f, n, 0));
    return n->op == IR_param ? n->out < carries_at(r) && ir_is_zero(r->b->graph, r->in[n->out])
                             : ir_is_zero(r->f, v);
}

// What is put to the carry and where: c is updated, or it is zero at first and an updated zero is added.
static bool find_update(const struct rows *r, uint32_t i, struct carry *out)
{
    const struct ir_graph *f = r->f;
    ir_id carry = carries_at(r) + i, given = f->outputs.at[i];
    const struct ir_node *n = ir_node_of(f, given);
    bool is_sum = n->op == IR_add && out->is_zero;
    if (r->uses[given] != 1)
        return false;
    if (is_sum) {
        uint32_t other = ir_operand(f, n, 0) == carry;
        given = ir_operand(f, n, other);
        if (ir_operand(f, n, 1 - other) != carry || r->uses[given] != 1 ||
            !ir_type_equal(ir_type_of(f, given), ir_type_of(f, carry)))
            return false;
        n = ir_node_of(f, given);
    }
    if (!is_update(n) || !read_place(r, n, &out->place))
        return false;
    if (is_sum ? !is_zero(r, out->place.array) : out->place.array != carry)
        return false;
    out->place.array = carry;
    out->update = update_of(f, n);
    out->is_added = is_sum || n->op == IR_scatter_add;
    return true;
}

// Whether the carry is rows that trips put, of which none reads another one's.
static bool is_rows(const struct rows *r, uint32_t i, struct carry *out)
{
    out->is_zero = ir_is_zero(r->b->graph, r->in[carries_at(r) + i]);
    if (!find_update(r, i, out))
        return false;
    uint32_t reads = 0;
    for (uint32_t at = r->f->n_params; at < r->f->nodes.count; at++)
        reads += is_same_place(&out->place, &r->places[at]);
    out->is_read = reads > 0 || out->is_added;
    return r->uses[carries_at(r) + i] == reads + 1;
}

static void find_carries(struct rows *r)
{
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++) {
        struct carry *c = &r->carries[i];
        if (affine_carry(&r->l, i, &c->count, &c->end)) {
            c->kind = CARRY_COUNTED;
            r->found++;
        } else if (is_rows(r, i, c)) {
            c->kind = CARRY_ROWS;
            count_way(r, &c->place);
        }
    }
}

static void find_counts(struct rows *r)
{
    for (uint32_t i = (uint32_t)r->scan.n_carry; i < r->f->outputs.count; i++) {
        ir_id v = r->f->outputs.at[i];
        r->is_count[i] = !ir_rank_of(r->f, v) && dtype_is_integer(ir_dtype_of(r->f, v)) &&
                         affine_in_body(&r->l, v, &r->counts[i]);
        r->found += r->is_count[i];
        r->up += !r->is_count[i];
    }
    for (uint32_t i = rows_at(r); i < (uint32_t)r->n_in; i++) {
        struct affine count;
        r->up += !affine_rows(&r->l, r->in[i], &count);
    }
}

static bool find(struct rows *r)
{
    struct ir_module *m = r->b->module;
    r->l = (struct affine_loop){r->b, r->f, &r->scan, r->in};
    r->uses = pass_count_uses(m, r->f);
    r->places = arena_array(m->arena, struct place, r->f->nodes.count + 1);
    r->carries = arena_array(m->arena, struct carry, r->scan.n_carry + 1);
    r->counts = arena_array(m->arena, struct affine, r->f->outputs.count + 1);
    r->is_count = body_mask(m, r->f->outputs.count);
    find_reads(r);
    find_carries(r);
    find_counts(r);
    return r->found > 0;
}

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
static int64_t lowest(const struct rows *r, const struct place *p)
{
    return p->at.step > 0 ? p->at.start : p->at.start + p->at.step * (r->scan.length - 1);
}

// The type of a row: that of the array with `size` along the axis, in front, or without it where that is 1.
static struct ir_type row_type(struct ir_module *m, struct ir_type array, const struct place *p)
{
    int64_t dims[IR_MAX_RANK], rank = 0;
    if (p->size != 1)
        dims[rank++] = p->size;
    for (int i = 0; i < array.rank; i++)
        if (i != p->axis)
            dims[rank++] = ir_dims(m, array)[i];
    return ir_type_make(m, ir_dtype(array), (int)rank, dims);
}

static bool goes_down(const struct place *p, bool turns) { return (p->at.step < 0) != turns; }

static ir_id rows_of(const struct rows *r, const struct place *p, bool turns)
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
static ir_id array_of(const struct rows *r, const struct place *p, ir_id rows, bool turns)
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
static ir_id take(struct made *w, ir_id in, struct ir_type t)
{
    w->in[w->n_in++] = in;
    return ir_param(&w->body, t);
}

static void take_old(const struct rows *r, struct made *w, ir_id v)
{
    w->map[v] = take(w, r->in[v], ir_type_of(r->f, v));
}

static void take_row(const struct rows *r, struct made *w, ir_id v)
{
    struct affine a;
    ir_id rows = r->in[v];
    if (w->turns)
        rows = affine_rows(&r->l, rows, &a) ? counting(r, ir_dtype_of(r->f, v), a, true)
                                            : turned(r->b, rows, true);
    w->map[v] = take(w, rows, ir_type_of(r->f, v));
}

// A row of the shape that what was read has.
static ir_id as_read(struct made *w, const struct place *p, ir_id row, struct ir_type t)
{
    return shaped(&w->body, p->size == 1 ? row : moved(&w->body, row, p->axis, false), t);
}

// Consts that are read as rows alone are none.
static void take_consts(const struct rows *r, struct made *w)
{
    uint32_t *left =
        arena_copy(r->b->module->arena, r->uses, ((size_t)r->scan.n_consts + 1) * sizeof *left);
    for (uint32_t at = r->f->n_params; at < r->f->nodes.count; at++)
        if (r->places[at].is && r->places[at].array < carries_at(r))
            left[r->places[at].array]--;
    w->scan.n_consts = 0;
    for (ir_id v = 0; v < carries_at(r); v++)
        if (left[v] || !r->uses[v]) {
            take_old(r, w, v);
            w->scan.n_consts++;
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
            w->map[v] = take(w, counting(r, ir_dtype(t), c->count, w->turns), t);
        if (c->kind == CARRY_ROWS && c->is_read && !c->is_zero)
            c->own = take(w, rows_of(r, &c->place, w->turns), row_type(m, t, &c->place));
    }
    for (uint32_t at = r->f->n_params; at < r->f->nodes.count; at++) {
        const struct place *p = &r->places[at];
        if (!p->is || p->array >= carries_at(r))
            continue;
        struct ir_type row = row_type(m, ir_type_of(r->f, p->array), p);
        w->map[r->f->nodes.at[at].out] = take(w, rows_of(r, p, w->turns), row);
    }
}

// The carry, made of rows, that the node at `at` reads its own row of; or NULL.
static const struct carry *carry_read(const struct rows *r, uint32_t at)
{
    ir_id v = r->places[at].array;
    if (!r->places[at].is || v < carries_at(r))
        return NULL;
    const struct carry *c = &r->carries[v - carries_at(r)];
    return c->kind == CARRY_ROWS && is_same_place(&c->place, &r->places[at]) ? c : NULL;
}

static void copy_nodes(const struct rows *r, struct made *w)
{
    const struct ir_graph *f = r->f;
    bool *is_put = body_mask(r->b->module, f->values.count);
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++)
        is_put[f->outputs.at[i]] |= r->carries[i].kind == CARRY_ROWS;
    for (uint32_t at = f->n_params; at < f->nodes.count; at++) {
        const struct ir_node *n = &f->nodes.at[at];
        const struct carry *c = carry_read(r, at);
        ir_id *y = &w->map[n->out];
        if (c)
            *y = as_read(w, &c->place, c->own, ir_type_of(f, n->out));
        else if (r->places[at].is && r->places[at].array < carries_at(r))
            *y = as_read(w, &r->places[at], *y, ir_type_of(f, n->out));
        else if (n->n_out != 1 || !is_put[n->out])
            pass_copy_node(&w->body, f, n, w->map);
    }
}

// What a trip puts, as a row.
static ir_id row_put(const struct rows *r, struct made *w, const struct carry *c)
{
    struct ir_builder *b = &w->body;
    struct ir_type array = ir_type_of(r->f, c->place.array);
    ir_id u = w->map[c->update];
    if (c->place.size != 1) {
        int64_t dims[IR_MAX_RANK];
        memcpy(dims, ir_dims(b->module, array), (size_t)array.rank * sizeof *dims);
        dims[c->place.axis] = c->place.size;
        u = shaped(b, u, ir_type_make(b->module, ir_dtype(array), array.rank, dims));
        u = moved(b, u, c->place.axis, true);
    }
    u = shaped(b, u, row_type(b->module, array, &c->place));
    return c->is_added ? ir_add(b, c->own, u) : u;
}

static void give_rows(const struct rows *r, struct made *w)
{
    for (uint32_t i = 0; i < r->f->outputs.count; i++)
        if (i < (uint32_t)r->scan.n_carry ? r->carries[i].kind == CARRY_KEPT : !r->is_count[i])
            ir_output(&w->body, w->map[r->f->outputs.at[i]]);
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++)
        if (r->carries[i].kind == CARRY_ROWS)
            ir_output(&w->body, row_put(r, w, &r->carries[i]));
}

static void make_zeros(const struct rows *r, struct made *w)
{
    for (uint32_t i = 0; i < (uint32_t)r->scan.n_carry; i++) {
        struct carry *c = &r->carries[i];
        struct ir_type t = ir_type_of(r->f, carries_at(r) + i);
        if (c->kind == CARRY_ROWS && c->is_read && c->is_zero)
            c->own = ir_zeros(&w->body, row_type(r->b->module, t, &c->place));
    }
}

static void make_body(const struct rows *r, struct made *w)
{
    make_zeros(r, w);
    copy_nodes(r, w);
    give_rows(r, w);
    w->scan.body = ir_finish_function(&w->body);
}

// The results of the loop, of those that the new one has.
static void set_results(const struct rows *r, const struct made *w, const ir_id *y, ir_id *out)
{
    uint32_t n_carry = (uint32_t)r->scan.n_carry;
    for (uint32_t i = 0; i < r->f->outputs.count; i++) {
        jot_dtype d = ir_dtype_of(r->f, r->f->outputs.at[i]);
        if (i < n_carry && r->carries[i].kind == CARRY_COUNTED)
            out[i] = ir_scalar_int(r->b, d, r->carries[i].end);
        else if (i >= n_carry && r->is_count[i])
            out[i] = counting(r, d, r->counts[i], false);
        else if (i < n_carry && r->carries[i].kind == CARRY_KEPT)
            out[i] = *y++;
        else if (i >= n_carry)
            out[i] = turned(r->b, *y++, w->turns);
    }
    for (uint32_t i = 0; i < n_carry; i++)
        if (r->carries[i].kind == CARRY_ROWS)
            out[i] = array_of(r, &r->carries[i].place, *y++, w->turns);
}

static void build(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in,
                  ir_id *out, int rounds)
{
    struct ir_module *m = b->module;
    struct rows r = {.b = b, .scan = *s, .in = in, .n_in = n_in};
    bool can = b->status == JOT_OK && s->length > 1 && !s->lanes && rounds > 0;
    r.scan.body = can ? open_calls(m, s->body) : s->body;
    r.f = ir_function(m, r.scan.body);
    if (!can || !find(&r)) {
        ir_id y = ir_scan(b, s, n_in, in);
        for (uint32_t i = 0; i < r.f->outputs.count; i++)
            out[i] = y == IR_NONE ? IR_NONE : y + i;
        return;
    }
    struct made w = {.scan = r.scan,
                     .body = ir_builder_make(m, r.f->name, b->flags),
                     .in = pass_no_values(m, (uint32_t)n_in + r.f->nodes.count),
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
    build(b, &w.scan, w.n_in, w.in, y, rounds - 1);
    set_results(&r, &w, y, out);
}

void pass_scan_rows(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in,
                    ir_id *out)
{
    build(b, s, n_in, in, out, MOST_ROUNDS);
}
