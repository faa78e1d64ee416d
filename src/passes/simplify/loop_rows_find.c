// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/loop_rows.h"

#include "ir/indexing.h"
#include "passes/body.h"

enum {
    MOST_ROUNDS = 8,       // in which calls are opened
    MOST_OPENED = 1 << 12, // nodes of a body that is opened
    MOST_PAST = 8,         // trips whose rows are carried
};

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

uint32_t loop_rows_open(struct ir_module *m, uint32_t f)
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

// ---- slices ----

// The integer that says where the only window of a gather or scatter is along the axis, or IR_NONE.
static ir_id start_of_window(const struct ir_graph *g, const struct ir_node *n,
                             const struct ir_window *w, int axis)
{
    ir_id indices = ir_operand(g, n, 1);
    bool is_one = ir_count_of(g, indices) == 1;
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
static bool read_slice(const struct rows *r, const struct ir_node *n, struct slice *out)
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
    *out = (struct slice){true, array, axis, sizes[axis], at};
    last = at.start + at.step * (r->scan.length - 1);
    return at.start >= 0 && last >= 0 && at.start <= dims[axis] - sizes[axis] &&
           last <= dims[axis] - sizes[axis];
}

// How many trips ago the slice q was p, when it ever was or will be.
static bool is_slice_of(const struct rows *r, const struct slice *p, const struct slice *q,
                        int64_t *out_ago)
{
    int64_t by = r->scan.reverse ? -p->at.step : p->at.step;
    if (!q->is || p->array != q->array || p->axis != q->axis || p->size != q->size ||
        p->at.step != q->at.step || (p->at.start - q->at.start) % by != 0)
        return false;
    *out_ago = (p->at.start - q->at.start) / by;
    return *out_ago <= MOST_PAST;
}

static void count_way(struct rows *r, const struct slice *p)
{
    r->found++;
    r->up += p->at.step > 0;
    r->down += p->at.step < 0;
}

static void find_reads(struct rows *r)
{
    for (uint32_t at = r->f->n_params; at < r->f->nodes.count; at++) {
        const struct ir_node *n = &r->f->nodes.at[at];
        struct slice p;
        if (is_update(n) || !read_slice(r, n, &p) || p.array >= rows_at(r))
            continue;
        r->slices[at] = p;
        vec_push(r->b->module->arena, &r->reads, at);
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
    if (!is_update(n) || !read_slice(r, n, &out->slice))
        return false;
    if (is_sum ? !is_zero(r, out->slice.array) : out->slice.array != carry)
        return false;
    out->slice.array = carry;
    out->update = update_of(f, n);
    out->is_added = is_sum || n->op == IR_scatter_add;
    return true;
}

// Whether the carry is rows that trips put, and all that trips read of it are such rows.
static bool is_rows(const struct rows *r, uint32_t i, struct carry *out)
{
    int64_t ago;
    out->is_zero = ir_is_zero(r->b->graph, r->in[carries_at(r) + i]);
    if (!find_update(r, i, out))
        return false;
    out->is_read = out->is_added;
    uint32_t reads = 0;
    for (uint32_t k = 0; k < r->reads.count; k++)
        if (is_slice_of(r, &out->slice, &r->slices[r->reads.at[k]], &ago)) {
            reads++;
            out->depth = ago > out->depth ? (int)ago : out->depth;
            out->is_read = out->is_read || ago == 0;
        }
    return r->uses[carries_at(r) + i] == reads + 1;
}

bool loop_rows_read(const struct rows *r, uint32_t at, const struct carry **out,
                    int64_t *out_ago)
{
    const struct slice *p = &r->slices[at];
    if (!p->is || p->array < carries_at(r))
        return false;
    *out = &r->carries[p->array - carries_at(r)];
    return (*out)->kind == CARRY_ROWS && is_slice_of(r, &(*out)->slice, p, out_ago);
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
            count_way(r, &c->slice);
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

bool loop_rows_find(struct rows *r)
{
    struct ir_module *m = r->b->module;
    r->l = (struct affine_loop){r->b, r->f, &r->scan, r->in};
    r->uses = pass_count_uses(m, r->f);
    r->slices = arena_array(m->arena, struct slice, r->f->nodes.count + 1);
    r->carries = arena_array(m->arena, struct carry, r->scan.n_carry + 1);
    r->counts = arena_array(m->arena, struct affine, r->f->outputs.count + 1);
    r->is_count = body_mask(m, r->f->outputs.count);
    find_reads(r);
    find_carries(r);
    find_counts(r);
    return r->found > 0;
}
