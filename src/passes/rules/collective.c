// SPDX-License-Identifier: Apache-2.0
// Rules of collectives (ir/collective.h).
//
// A map over the axis of a collective has all its lanes in one value, and the collective becomes what
// it does to them: psum a sum over the mapped axis, ppermute a permutation of it.  Of one over several
// axes that leaves a collective over the others.
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/indexing.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

#define B c->b

// -- Derivatives ------------------------------------------------------------------------------

// The tangents of all lanes that have the extremum, divided equally, as of reduce_max.
void jvp_pmax(struct jvp *c)
{
    ir_id x = c->x[0], y = c->y[0];
    int n;
    const int64_t *over = ir_over(c->n.attrs, &n);
    ir_id wins = rule_wins(B, c->n.op == IR_pmax, x, y);
    ir_id count =
        ir_collective(B, IR_psum, ir_convert(B, wins, ir_dtype(ir_type_in(B, x))), n, over);
    ir_id won = ir_select(B, wins, c->dx[0], ir_scalar_like(B, x, 0));
    c->dy[0] =
        rule_quotient(B, ir_collective(B, IR_psum, won, n, over), rule_or_nan(B, y, count));
}

void transpose_psum(struct transpose *c)
{
    transpose_give(c, 0, ir_build(B, IR_pvary, 1, c->ct, c->n->attrs));
}

void transpose_pvary(struct transpose *c)
{
    transpose_give(c, 0, ir_build(B, IR_psum, 1, c->ct, c->n->attrs));
}

// Row `number` of x.
static ir_id row_of(struct ir_builder *b, ir_id x, ir_id number)
{
    ir_id starts[IR_MAX_RANK];
    int64_t sizes[IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    for (int i = 0; i < t.rank; i++) {
        starts[i] = i ? ir_scalar_int(b, JOT_I32, 0) : number;
        sizes[i] = i ? ir_dims(b->module, t)[i] : 1;
    }
    ir_id row = ir_dynamic_slice(b, x, starts, sizes);
    return ir_reshape(b, row, t.rank - 1, sizes + 1);
}

// Own row of a cotangent that is the same everywhere; of one that is a sum, that is a psum_scatter.
void transpose_all_gather(struct transpose *c)
{
    int n;
    const int64_t *over = ir_over(c->n->attrs, &n);
    const struct ir_node *made = ir_node_of(B->graph, c->ct[0]);
    if (made->op == IR_psum && made->attrs == c->n->attrs)
        transpose_give(
            c, 0, ir_collective(B, IR_psum_scatter, ir_operand(B->graph, made, 0), n, over));
    else
        transpose_give(c, 0, row_of(B, c->ct[0], ir_lane_number(B, n, over)));
}

void transpose_psum_scatter(struct transpose *c)
{
    ir_id all = ir_build(B, IR_all_gather, 1, c->ct, c->n->attrs);
    transpose_give(c, 0, ir_pvary(B, all, ir_over_set(c->n->attrs)));
}

void transpose_all_to_all(struct transpose *c)
{
    transpose_give(c, 0, ir_build(B, IR_all_to_all, 1, c->ct, c->n->attrs));
}

void transpose_ppermute(struct transpose *c)
{
    int n, n_pairs;
    const int64_t *over = ir_over(c->n->attrs, &n);
    const int64_t *pairs = ir_attr_ints(c->n->attrs, IR_KEY_pairs, &n_pairs);
    int64_t *back = arena_array(B->module->arena, int64_t, n_pairs + 1);
    for (int i = 0; i < n_pairs; i++)
        back[i] = pairs[i ^ 1];
    transpose_give(c, 0, ir_ppermute(B, c->ct[0], n, over, n_pairs / 2, back));
}

// -- Batching over another axis ---------------------------------------------------------------

// Rows of what it takes and of what it gives are along axis 0.
static void map_rows(struct batch *c, bool takes_rows, bool gives_rows)
{
    ir_id x = takes_rows ? rule_swap(B, c->x[0], 0, 1) : c->x[0];
    ir_id y = ir_build(B, (enum ir_op)c->n->op, 1, &x, c->n->attrs);
    c->y[0] = gives_rows ? rule_swap(B, y, 0, 1) : y;
}

static void map_along(struct batch *c)
{
    enum ir_op op = (enum ir_op)c->n->op;
    map_rows(c, op == IR_psum_scatter || op == IR_all_to_all,
             op == IR_all_gather || op == IR_all_to_all);
}

void batch_exchange(struct batch *c)
{
    struct collective e;
    ir_exchange_read(c->n->attrs, &e);
    map_rows(c, e.kind == COLLECTIVE_REDUCE_SCATTER || e.kind == COLLECTIVE_ALL_TO_ALL,
             e.kind == COLLECTIVE_ALL_GATHER || e.kind == COLLECTIVE_ALL_TO_ALL);
}

// -- Batching over an axis of its own ---------------------------------------------------------

// The axes of a collective without the one that is mapped; how many lanes there are along those in
// front of it and behind it.
struct rest {
    int n;
    int64_t over[IR_MAX_AXES], before, after, size;
};

static struct rest rest_of(const struct batch *c)
{
    struct rest r = {.before = 1, .after = 1, .size = c->size};
    int n;
    const int64_t *over = ir_over(c->n->attrs, &n);
    bool is_behind = false;
    for (int i = 0; i < n; i++) {
        if (over[i] == c->axis) {
            is_behind = true;
            continue;
        }
        r.over[r.n++] = over[i];
        *(is_behind ? &r.after : &r.before) *= ir_axis_size(B->module, over[i]);
    }
    return r;
}

// The collective over the other axes, if there are any.
static ir_id over_rest(struct batch *c, const struct rest *r, enum ir_op op, ir_id x)
{
    return r->n ? ir_collective(B, op, x, r->n, r->over) : x;
}

// x with the first `take` axes as the `give` in lead.
static ir_id reshape_lead(struct ir_builder *b, ir_id x, int take, int give,
                          const int64_t *lead)
{
    int64_t dims[2 * IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    int rank = t.rank - take + give;
    if (rank > IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "a collective of %s: it has too many axes",
                       ir_type_text(b->module, t));
    memcpy(dims, lead, sizeof *dims * (size_t)give);
    memcpy(dims + give, ir_dims(b->module, t) + take, sizeof *dims * (size_t)(t.rank - take));
    return ir_reshape(b, x, rank, dims);
}

// x with its first axes in the order.
static ir_id order_lead(struct ir_builder *b, ir_id x, int n, const int64_t *order)
{
    int64_t axes[IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    for (int i = 0; i < ir_type_in(b, x).rank; i++)
        axes[i] = i < n ? order[i] : i;
    return ir_transpose(b, x, axes);
}

// [lanes, ...], one of each lane of all axes, of x: [size, ...].
static ir_id gather_own(struct batch *c, const struct rest *r, ir_id x)
{
    if (!r->n)
        return x;
    ir_id all = ir_collective(B, IR_all_gather, x, r->n, r->over);
    all = reshape_lead(B, all, 1, 2, (const int64_t[]){r->before, r->after});
    all = order_lead(B, all, 3, (const int64_t[]){0, 2, 1});
    return reshape_lead(B, all, 3, 1, (const int64_t[]){r->before * r->size * r->after});
}

// [size, ...] of x: [size, lanes, ...], the sum over axis 0 of what is for a lane.
static ir_id scatter_own(struct batch *c, const struct rest *r, ir_id x)
{
    ir_id sum = ir_reduce(B, IR_reduce_sum, x, 1, (const int64_t[]){0});
    if (!r->n)
        return sum;
    sum = reshape_lead(B, sum, 1, 3, (const int64_t[]){r->before, r->size, r->after});
    sum = order_lead(B, sum, 3, (const int64_t[]){0, 2, 1});
    sum = reshape_lead(B, sum, 2, 1, (const int64_t[]){r->before * r->after});
    return ir_collective(B, IR_psum_scatter, sum, r->n, r->over);
}

// [size, lanes, ...] of x: [size, lanes, ...].
static ir_id exchange_own(struct batch *c, const struct rest *r, ir_id x)
{
    if (!r->n)
        return rule_swap(B, x, 0, 1);
    const int64_t apart[] = {r->before, r->size, r->after};
    // Axes: lane, and of rows: before, lane, after.
    x = reshape_lead(B, x, 2, 4, (const int64_t[]){r->size, apart[0], apart[1], apart[2]});
    x = order_lead(B, x, 4, (const int64_t[]){1, 3, 2, 0});
    x = reshape_lead(B, x, 2, 1, (const int64_t[]){r->before * r->after});
    x = ir_collective(B, IR_all_to_all, x, r->n, r->over);
    x = reshape_lead(B, x, 1, 2, (const int64_t[]){r->before, r->after});
    x = order_lead(B, x, 4, (const int64_t[]){2, 0, 3, 1});
    return reshape_lead(B, x, 4, 2, (const int64_t[]){r->size, r->before * r->size * r->after});
}

// Rows of x by their numbers, i32[n]; zeros where a number is none of x.
static ir_id take_rows(struct ir_builder *b, ir_id x, ir_id numbers)
{
    if (x == IR_NONE || numbers == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    int64_t sizes[IR_MAX_RANK] = {1}, offset[IR_MAX_RANK], zero = 0;
    for (int i = 1; i < t.rank; i++) {
        sizes[i] = ir_dims(b->module, t)[i];
        offset[i - 1] = i;
    }
    struct ir_gather g = {.n_offset = t.rank - 1,
                          .n_collapsed = 1,
                          .n_map = 1,
                          .offset_dims = offset,
                          .collapsed_dims = &zero,
                          .index_map = &zero,
                          .sizes = sizes,
                          .mode = IR_MODE_DROP};
    int64_t column[] = {ir_dims(b->module, ir_type_in(b, numbers))[0], 1};
    return ir_gather(b, x, ir_reshape(b, numbers, 2, column), &g);
}

// Rows first .. first + count - 1 of x, or so many zeros for a negative one.
static ir_id run_of(struct ir_builder *b, ir_id x, int64_t first, int64_t count)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, t), sizeof *limits * t.rank);
    if (first < 0) {
        limits[0] = count;
        struct ir_type none = ir_type_make(b->module, ir_dtype(t), t.rank, limits);
        none.varies = t.varies;
        return ir_zeros(b, none);
    }
    starts[0] = first;
    limits[0] = first + count;
    return ir_slice(b, x, starts, limits, NULL);
}

// Rows of x by constant numbers: few runs of neighbours as slices, which cost nothing.
static ir_id permute_rows(struct ir_builder *b, ir_id x, int64_t n, const int64_t *from)
{
    enum { MOST_RUNS = 8 };
    ir_id runs[MOST_RUNS];
    int n_runs = 0;
    int32_t *numbers = arena_array(b->module->arena, int32_t, n + 1);
    for (int64_t i = 0, end; i < n && x != IR_NONE; i = end) {
        for (end = i + 1; end < n && from[end] == (from[i] < 0 ? -1 : from[i] + end - i);)
            end++;
        if (n_runs < MOST_RUNS)
            runs[n_runs] = run_of(b, x, from[i], end - i);
        n_runs++;
    }
    if (n_runs == 0)
        return x;
    if (n_runs <= MOST_RUNS)
        return n_runs == 1 ? runs[0] : ir_concatenate(b, n_runs, runs, 0);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (int32_t)from[i];
    return take_rows(b, x, ir_const(b, ir_type_make(b->module, JOT_I32, 1, &n), numbers));
}

// By lane of all axes, that which its value comes from, or -1.
static int64_t *sources_of(struct batch *c, int64_t lanes)
{
    int n_pairs;
    const int64_t *pairs = ir_attr_ints(c->n->attrs, IR_KEY_pairs, &n_pairs);
    int64_t *from = arena_array(B->module->arena, int64_t, lanes + 1);
    for (int64_t i = 0; i < lanes; i++)
        from[i] = -1;
    for (int i = 0; i < n_pairs; i += 2)
        from[pairs[i + 1]] = pairs[i];
    return from;
}

// [size, ...] of x: [size, ...].  With other axes from what all of them have: a lane there looks up
// where each of its own comes from.
static ir_id permute_own(struct batch *c, const struct rest *r, ir_id x)
{
    struct ir_module *m = B->module;
    int64_t lanes = r->before * r->size * r->after;
    int64_t *from = sources_of(c, lanes);
    if (!r->n)
        return permute_rows(B, x, lanes, from);
    // A row for each lane of the others.
    int32_t *table = arena_array(m->arena, int32_t, lanes + 1);
    for (int64_t i = 0, at = 0; i < r->before; i++)
        for (int64_t k = 0; k < r->after; k++)
            for (int64_t own = 0; own < r->size; own++)
                table[at++] = (int32_t)from[(i * r->size + own) * r->after + k];
    int64_t dims[] = {r->before * r->after, r->size};
    ir_id numbers = row_of(B, ir_const(B, ir_type_make(m, JOT_I32, 2, dims), table),
                           ir_lane_number(B, r->n, r->over));
    return take_rows(B, gather_own(c, r, x), numbers);
}

static void map_own(struct batch *c)
{
    struct rest r = rest_of(c);
    enum ir_op op = (enum ir_op)c->n->op;
    ir_id x = c->n->n_in ? c->x[0] : IR_NONE;
    bool batched = c->n->n_in && c->batched[0];
    if (op == IR_axis_index) {
        c->y[0] = ir_iota(B, ir_type_make(B->module, JOT_I32, 1, &c->size), 0);
        return;
    }
    if (op == IR_pvary) {
        c->y[0] = over_rest(c, &r, op, x);
        c->y_batched[0] = batched;
        return;
    }
    if (op == IR_pmax || op == IR_pmin) {
        enum ir_op fold = op == IR_pmax ? IR_reduce_max : IR_reduce_min;
        c->y[0] =
            over_rest(c, &r, op, batched ? ir_reduce(B, fold, x, 1, (const int64_t[]){0}) : x);
        c->y_batched[0] = false;
        return;
    }
    x = batch_materialise(c, 0);
    c->y_batched[0] = op != IR_psum && op != IR_all_gather;
    if (op == IR_psum)
        c->y[0] = over_rest(c, &r, op, ir_reduce(B, IR_reduce_sum, x, 1, (const int64_t[]){0}));
    else if (op == IR_all_gather)
        c->y[0] = gather_own(c, &r, x);
    else if (op == IR_psum_scatter)
        c->y[0] = scatter_own(c, &r, x);
    else if (op == IR_all_to_all)
        c->y[0] = exchange_own(c, &r, x);
    else
        c->y[0] = permute_own(c, &r, x);
}

void batch_collective(struct batch *c)
{
    if (c->axis >= 0 && ir_over_set(c->n->attrs) >> c->axis & 1)
        map_own(c);
    else
        map_along(c);
}

// -- Without the name -------------------------------------------------------------------------

bool rule_asks_for_lane(const struct ir_graph *f, int axis)
{
    if (!(f->names >> axis & 1))
        return false;
    ir_for_each_node (f, n) {
        int n_bodies =
            ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &(const int64_t *){0}) : 0;
        if (n->op == IR_axis_index && ir_over_set(n->attrs) >> axis & 1)
            return true;
        for (int k = 0; k < n_bodies; k++)
            if (rule_asks_for_lane(ir_body(f, n, k), axis))
                return true;
    }
    return false;
}

static uint32_t build_unnamed(struct ir_module *m, uint32_t f, int axis)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    for (uint32_t i = 0; i < g->n_params; i++)
        map[i] = ir_param(&b, ir_type_unnamed(ir_type_of(g, i), axis));
    for (uint32_t at = g->n_params; at < g->nodes.count && b.status == JOT_OK; at++) {
        struct ir_node n = g->nodes.at[at];
        const int64_t *bodies;
        int n_bodies = ir_has_bodies((enum ir_op)n.op) ? ir_bodies_of(&n, &bodies) : 0;
        b.where = n.where;
        if (n.op == IR_pvary) {
            uint16_t over = ir_over_set(n.attrs) & (uint16_t)~(1u << axis);
            map[n.out] = ir_pvary(&b, map[ir_operand(g, &n, 0)], over);
            continue;
        }
        uint32_t *made = arena_array(m->arena, uint32_t, n_bodies + 1);
        for (int k = 0; k < n_bodies; k++)
            made[k] = rule_unname(m, (uint32_t)bodies[k], axis);
        if (n_bodies)
            n.attrs = ir_with_functions(m, n.attrs, made);
        pass_copy_node(&b, g, &n, map);
    }
    pass_copy_outputs(&b, g, map);
    return ir_finish_function(&b);
}

uint32_t rule_unname(struct ir_module *m, uint32_t f, int axis)
{
    struct memo_key key = {.kind = MEMO_UNNAME, .f = f, .axis = (uint32_t)axis + 1};
    if (!(ir_function(m, f)->names >> axis & 1))
        return f;
    const uint32_t *known = pass_memo_find(m, &key);
    return known ? *known : pass_memo_add_function(m, &key, build_unnamed(m, f, axis));
}
