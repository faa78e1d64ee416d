// SPDX-License-Identifier: Apache-2.0
// For a GPU: many updates of rows at indices that are data, in the order of their indices.
//
//     y = scatter_add(x, i, u)      becomes      keys, order = sort(i, 0 1 2 ..)
//                                                first[p] = how many keys are below p
//                                                y = while r < end, by index:  y = y + u[order[r]], r = r + 1
//                                                    (y, r, end) = (x[p], first[p], first[p + 1])
//
// An element gets its updates in the order that it always does, and elements are lanes: nobody waits for
// anybody, and a lane reads several updates at once.  The order is a value of its indices alone: equal ones
// are one, and a loop that does not change them has it in front.  Of a sum in parts (ir_scatter_parts) each element has as
// many lanes, whose sums are added in pairs.  What is computed of rows is computed where
// they are added; what rows are gathered by comes in the order first.  After all differentiation.
#include "ir/control.h"
#include "ir/cost.h"
#include "ir/indexing.h"
#include "passes/body.h"
#include "passes/expand/scatter_parts.h"

enum {
    MOST_OPS = 16,   // of an element of an update that are done where it is added
    TRIP = 8,        // updates that a lane reads together, where they are plain
    LANE_BYTES = 16, // of a row that a lane has
    MOST_LEAVES = 2 * MOST_OPS + 2,
    MOST_OPERANDS = 3 * MOST_LEAVES + 3
};

// Where a value that rows are computed of is read in the loop.
enum leaf_kind {
    LEAF_WHOLE,  // one number
    LEAF_UPDATE, // a number of each update, in their order
    LEAF_COLUMN, // a number of each column of the rows
    LEAF_ROW,    // rows, one after the other
    LEAF_GATHER, // rows at indices, of a gather
};

struct leaf {
    ir_id value;
    enum leaf_kind kind;
    ir_id outer[3], inner[3]; // what the loop reads, IR_NONE behind
};

struct updates {
    struct ir_builder *b;
    const struct ir_graph *g;
    const ir_id *map;
    const struct ir_node *n;
    int64_t extent, count,
        row;                // of the operand, or of all pieces; of updates; numbers of a row
    int64_t pieces, length; // of the first axis that counts updates, and of each
    int64_t parts, width;   // of a row: lanes, and numbers of each
    int counts;             // axes of the updates that count them; those of the row follow
    ir_id keys, order;
    struct leaf leaves[MOST_LEAVES];
    int n_leaves, ops;
    bool *seen;        // by value of g
    const bool *stays; // the same: in all trips of the loop around it is what it is
};

// ---- What are such updates

static struct ir_window window_of(const struct ir_graph *g, const struct ir_node *n)
{
    ir_id y = n->op == IR_gather ? n->out : ir_operand(g, n, 2);
    return ir_window_of(g->module, n->attrs, ir_type_of(g, ir_operand(g, n, 0)),
                        ir_type_of(g, ir_operand(g, n, 1)), ir_type_of(g, y));
}

// Whether all indices are along the first axes of the operand and windows are all of the others, which come
// last in what is gathered or scattered.
static bool is_of_rows(const struct ir_graph *g, const struct ir_node *n)
{
    struct ir_gather of = ir_gather_of(n->attrs);
    struct ir_window w = window_of(g, n);
    const int64_t *dims = ir_dims_of(g, ir_operand(g, n, 0));
    for (int d = 0; d < w.rank; d++)
        if (d < of.n_map ? w.component[d] < 0 || w.along[d] >= 0
                         : w.component[d] >= 0 || w.size[d] != dims[d] ||
                               w.along[d] != w.index_rank + d - of.n_map)
            return false;
    return !of.n_batch && of.n_map && ir_count_of(g, ir_operand(g, n, 0));
}

static int64_t product(const int64_t *dims, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dims[i];
    return n;
}

static bool is_one_number(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    return n->op == IR_broadcast_in_dim && ir_rank_of(g, ir_operand(g, n, 0)) == 0;
}

static bool find_updates(struct updates *u, const struct ir_graph *g, const struct ir_node *n)
{
    struct ir_module *m = g->module;
    *u = (struct updates){.g = g, .n = n};
    if (ir_op_class((enum ir_op)n->op) != IR_CLASS_UPDATE || n->op == IR_dynamic_update_slice ||
        ir_op_get((enum ir_op)n->op)->pair == IR_OP_COUNT)
        return false;
    struct ir_gather of = ir_gather_of(n->attrs);
    ir_id x = ir_operand(g, n, 0), at = ir_operand(g, n, 1), y = ir_operand(g, n, 2);
    if ((of.unique && of.mode != IR_MODE_CLIP) || !is_of_rows(g, n))
        return false;
    u->pieces = ir_scatter_parts(m, (enum ir_op)n->op, n->attrs, ir_type_of(g, x),
                                 ir_type_of(g, at), ir_type_of(g, y));
    u->pieces = u->pieces > 1 ? u->pieces : 1;
    u->length = ir_dims_of(g, at)[0] / u->pieces;
    const int64_t *dims = ir_dims_of(g, x);
    u->counts = ir_rank_of(g, at) - 1;
    u->extent = product(dims, 0, of.n_map);
    u->row = product(dims, of.n_map, ir_rank_of(g, x));
    u->count = product(ir_dims_of(g, at), 0, u->counts);
    return u->count >= COST_SORTED_UPDATES && u->count < INT32_MAX / 2 &&
           u->extent * u->pieces < INT32_MAX &&
           (is_one_number(g, x) || u->extent <= COST_SORTED_EMPTY * u->count);
}

// Whether the order pays: rows are long, or others want it, or it is the same in all trips of the loop around, whose
// invariant values `stays` tells, and elements have few updates each.
static bool is_wanted(const struct updates *u, const bool *stays)
{
    bool wanted =
        u->row >= COST_SORTED_ROW || (stays[ir_operand(u->g, u->n, 1)] &&
                                      u->count <= COST_SORTED_TURNS * u->extent * u->pieces);
    struct updates other;
    for (uint32_t i = 0; !wanted && i < u->g->nodes.count; i++) {
        const struct ir_node *n = &u->g->nodes.at[i];
        wanted = n->n_in == 3 && ir_operand(u->g, n, 1) == ir_operand(u->g, u->n, 1) &&
                 find_updates(&other, u->g, n) && other.row >= COST_SORTED_ROW &&
                 other.extent == u->extent && other.pieces == u->pieces;
    }
    return wanted;
}

// ---- What rows are computed of

static bool has_axes(const struct ir_node *n, int from, int to)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    for (int i = 0; i < count; i++)
        if (axes[i] != from + i)
            return false;
    return count == to - from;
}

// The value, broadcast from *from, is of which kind.
static enum leaf_kind kind_of(const struct updates *u, ir_id v, ir_id *from)
{
    const struct ir_graph *g = u->g;
    const struct ir_node *n = ir_node_of(g, v);
    *from = v;
    if (ir_rank_of(g, v) == 0)
        return LEAF_WHOLE;
    // Numbers that stay are brought in order once, in front of the loop around.
    if (u->row == 1 && u->stays[v] && n->op != IR_broadcast_in_dim)
        return LEAF_UPDATE;
    if (n->op == IR_gather && ir_gather_of(n->attrs).n_map && is_of_rows(g, n) &&
        ir_count_of(g, ir_operand(g, n, 0)) < INT32_MAX)
        return LEAF_GATHER;
    if (n->op != IR_broadcast_in_dim)
        return LEAF_ROW;
    const int64_t *dims = ir_dims_of(g, v), *of = ir_dims_of(g, ir_operand(g, n, 0));
    int rank = ir_rank_of(g, v), first = has_axes(n, 0, u->counts) ? 0 : u->counts;
    int end = first ? rank : u->counts;
    bool fits = ir_rank_of(g, ir_operand(g, n, 0)) == 0 || has_axes(n, first, end);
    for (int i = 0; fits && i < ir_rank_of(g, ir_operand(g, n, 0)); i++)
        fits = of[i] == dims[first + i];
    if (!fits)
        return LEAF_ROW;
    *from = ir_operand(g, n, 0);
    return ir_rank_of(g, *from) == 0 ? LEAF_WHOLE : first ? LEAF_COLUMN : LEAF_UPDATE;
}

// Whether an element of v is computed of elements there, or numbers.
static bool is_elementwise(const struct updates *u, ir_id v)
{
    const struct ir_graph *g = u->g;
    const struct ir_node *n = ir_node_of(g, v);
    bool is = ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP && n->n_out == 1 && n->n_in;
    for (uint32_t i = 0; is && i < n->n_in; i++) {
        struct ir_type t = ir_type_of(g, ir_operand(g, n, i));
        is = t.rank == 0 || t.shape == ir_type_of(g, v).shape;
    }
    return is;
}

static void find_leaves(struct updates *u, ir_id v)
{
    ir_id from;
    if (u->seen[v])
        return;
    u->seen[v] = true;
    bool is_in_order = u->row == 1 && u->stays[v];
    if (is_elementwise(u, v) && ir_rank_of(u->g, v) && u->ops < MOST_OPS && !is_in_order) {
        const struct ir_node *n = ir_node_of(u->g, v);
        u->ops++;
        for (uint32_t i = 0; i < n->n_in; i++)
            find_leaves(u, ir_operand(u->g, n, i));
        return;
    }
    enum leaf_kind kind = kind_of(u, v, &from);
    u->leaves[u->n_leaves++] =
        (struct leaf){v, kind, {IR_NONE, IR_NONE, IR_NONE}, {IR_NONE, IR_NONE, IR_NONE}};
}

// ---- In front of the loop

static ir_id reshape(struct ir_builder *b, ir_id x, int rank, int64_t d0, int64_t d1,
                     int64_t d2)
{
    return ir_reshape(b, x, rank, (int64_t[]){d0, d1, d2});
}

// x of the type with those extents, along the first axes of which it lies.
static ir_id spread(struct ir_builder *b, ir_id x, int rank, int64_t d0, int64_t d1, int64_t d2)
{
    return ir_broadcast_in_dim(b, x, rank, (int64_t[]){d0, d1, d2}, (int64_t[]){0, 1, 2});
}

static ir_id constant(struct ir_builder *b, int64_t x) { return ir_scalar_int(b, JOT_I64, x); }

static ir_id operand(const struct updates *u, const struct ir_node *n, uint32_t i)
{
    return u->map[ir_operand(u->g, n, i)];
}

// x[i] by element of i, which is moved inside; by_part: x[i, p], where the last axis of i is that of parts p.
static ir_id rows_at(struct ir_builder *b, ir_id x, ir_id i, bool by_part)
{
    struct ir_type t = ir_type_in(b, x), at = ir_type_in(b, i);
    int64_t dims[IR_MAX_RANK] = {0}, sizes[] = {1, 1, 1}, offset = at.rank, first = 0,
            second = 1;
    int64_t last = at.rank - 1;
    memcpy(dims, ir_dims(b->module, at), (size_t)at.rank * sizeof *dims);
    dims[at.rank] = 1;
    if (by_part)
        sizes[2] = ir_dims(b->module, t)[2];
    struct ir_gather g = {.n_offset = by_part,
                          .offset_dims = &offset,
                          .n_collapsed = 1,
                          .collapsed_dims = &first,
                          .n_batch = by_part,
                          .operand_batch = &second,
                          .index_batch = &last,
                          .n_map = 1,
                          .index_map = &first,
                          .sizes = sizes,
                          .mode = IR_MODE_PROMISE};
    return ir_gather(b, x, ir_reshape(b, i, at.rank + 1, dims), &g);
}

// The number of the row that each window of a gather or scatter is about, i64; *inside is whether there is
// one, IR_NONE where it is moved inside.
static ir_id row_numbers(const struct updates *u, const struct ir_node *n, ir_id *inside)
{
    struct ir_builder *b = u->b;
    struct ir_gather of = ir_gather_of(n->attrs);
    struct ir_window w = window_of(u->g, n);
    const int64_t *dims = ir_dims_of(u->g, ir_operand(u->g, n, 0));
    ir_id at = reshape(b, operand(u, n, 1), 2, u->count, of.n_map, 0), all = constant(b, 0);
    if (ir_dtype(ir_type_in(b, at)) == JOT_U64)
        at = ir_min(b, at, ir_scalar_int(b, JOT_U64, INT64_MAX));
    at = ir_convert(b, at, JOT_I64);
    *inside = IR_NONE;
    for (int d = 0; d < of.n_map; d++) {
        int64_t k = w.component[d], starts[] = {0, k}, limits[] = {u->count, k + 1};
        ir_id x = reshape(b, ir_slice(b, at, starts, limits, NULL), 1, u->count, 0, 0);
        ir_id moved = ir_clamp(b, constant(b, 0), x, constant(b, dims[d] - 1));
        ir_id is = ir_eq(b, x, moved);
        *inside = ir_mode_moves(of.mode) ? IR_NONE : d ? ir_and(b, *inside, is) : is;
        all = ir_add(b, ir_mul(b, all, constant(b, dims[d])), moved);
    }
    return all;
}

// Sorts the updates by piece and index; those that have none come last.
static void sort_updates(struct updates *u)
{
    struct ir_builder *b = u->b;
    ir_id inside, key = row_numbers(u, u->n, &inside),
                  numbers = ir_iota(b, ir_type_in(b, key), 0);
    if (u->pieces > 1) {
        int64_t rows = u->length * (u->count / ir_dims_of(u->g, ir_operand(u->g, u->n, 1))[0]);
        ir_id is_of_piece = ir_lt(b, numbers, constant(b, rows * u->pieces));
        ir_id first = ir_mul(b, ir_div(b, numbers, constant(b, rows)), constant(b, u->extent));
        key = ir_add(b, key, first);
        inside = inside == IR_NONE ? is_of_piece : ir_and(b, inside, is_of_piece);
        u->extent *= u->pieces;
    }
    if (inside != IR_NONE)
        key = ir_select(b, inside, key, constant(b, u->extent));
    key = ir_convert(b, key, JOT_I32);
    numbers = ir_convert(b, numbers, JOT_I32);
    u->keys = ir_sort(b, 2, (ir_id[]){key, numbers}, 1);
    u->order = u->keys + 1;
}

static ir_id sorted(const struct updates *u, ir_id x)
{
    return rows_at(u->b, reshape(u->b, x, 1, u->count, 0, 0), u->order, false);
}

// (keys | position by index | step) -> the position, a step further where the keys before that are lower
static uint32_t bisection(struct updates *u, struct ir_type positions)
{
    struct ir_builder b = ir_builder_make(u->b->module, "first", IR_BUILD_PLAIN);
    ir_id keys = ir_param(&b, ir_type_in(u->b, u->keys)), at = ir_param(&b, positions);
    ir_id step = ir_param(&b, ir_type_make(b.module, JOT_I32, 0, NULL));
    ir_id next = ir_add(&b, at, step), end = ir_scalar_int(&b, JOT_I32, u->count);
    ir_id key = rows_at(&b, keys, ir_sub(&b, next, ir_scalar_int(&b, JOT_I32, 1)), false);
    ir_id goes = ir_and(&b, ir_le(&b, next, end), ir_lt(&b, key, ir_iota(&b, positions, 0)));
    ir_output(&b, ir_select(&b, goes, next, at));
    return ir_finish_function(&b);
}

// By place, and behind all of them, how many keys are lower.
static ir_id find_first(struct updates *u)
{
    struct ir_builder *b = u->b;
    int32_t steps[32];
    int64_t n = 0, extent = u->extent + 1;
    for (int64_t step = 1; step <= u->count; step *= 2)
        n++;
    for (int64_t i = 0; i < n; i++)
        steps[i] = INT32_C(1) << (n - 1 - i);
    struct ir_type t = ir_type_make(b->module, JOT_I32, 1, &extent);
    ir_id in[] = {u->keys, ir_zeros(b, t),
                  ir_const(b, ir_type_make(b->module, JOT_I32, 1, &n), steps)};
    struct ir_scan s = {.body = bisection(u, t), .n_consts = 1, .n_carry = 1, .length = n};
    return ir_scan(b, &s, 3, in);
}

// What the loop reads of the leaf.
static void make_outer(const struct updates *u, struct leaf *f)
{
    struct ir_builder *b = u->b;
    ir_id from, inside;
    kind_of(u, f->value, &from);
    const struct ir_node *n = ir_node_of(u->g, f->value);
    switch (f->kind) {
    case LEAF_WHOLE:
        f->outer[0] = u->map[from];
        break;
    case LEAF_UPDATE:
        f->outer[0] = sorted(u, u->map[from]);
        break;
    case LEAF_COLUMN:
        f->outer[0] = reshape(b, u->map[from], 2, u->parts, u->width, 0);
        break;
    case LEAF_ROW:
        f->outer[0] = u->order;
        f->outer[1] = reshape(b, u->map[from], 3, u->count, u->parts, u->width);
        break;
    case LEAF_GATHER:
        f->outer[0] = sorted(u, ir_convert(b, row_numbers(u, n, &inside), JOT_I32));
        f->outer[1] = operand(u, n, 0);
        f->outer[1] =
            reshape(b, f->outer[1], 3, ir_count(b->module, ir_type_in(b, f->outer[1])) / u->row,
                    u->parts, u->width);
        if (inside != IR_NONE)
            f->outer[2] = sorted(u, inside);
        break;
    }
}

// ---- In the loop

// Numbers of a gather where it has no window.
static ir_id fill_of(struct ir_builder *b, const struct ir_node *n, jot_dtype d)
{
    unsigned char element[16] = {0};
    if (ir_gather_of(n->attrs).mode == IR_MODE_FILL)
        ir_fill_element(d, element);
    return ir_const(b, ir_type_make(b->module, d, 0, NULL), element);
}

// The leaf for number `at` of the order, by lane.
static ir_id read_leaf(const struct updates *u, struct ir_builder *b, const struct leaf *f,
                       ir_id at)
{
    int64_t extent = u->extent, parts = u->parts, width = u->width,
            dims[] = {extent, parts, width};
    if (f->kind == LEAF_WHOLE)
        return f->inner[0];
    if (f->kind == LEAF_COLUMN)
        return ir_broadcast_in_dim(b, f->inner[0], 3, dims, (int64_t[]){1, 2});
    ir_id x = rows_at(b, f->inner[0], at, false);
    if (f->kind == LEAF_UPDATE)
        return spread(b, x, 3, extent, parts, width);
    x = rows_at(b, f->inner[1], x, true);
    if (f->inner[2] == IR_NONE)
        return x;
    ir_id inside = spread(b, rows_at(b, f->inner[2], at, false), 3, extent, parts, width);
    return ir_select(b, inside, x,
                     fill_of(b, ir_node_of(u->g, f->value), ir_dtype(ir_type_in(b, x))));
}

static ir_id read_value(const struct updates *u, struct ir_builder *b, ir_id v, ir_id at,
                        ir_id *done)
{
    if (done[v] != IR_NONE)
        return done[v];
    for (int i = 0; i < u->n_leaves; i++)
        if (u->leaves[i].value == v)
            return done[v] = read_leaf(u, b, &u->leaves[i], at);
    const struct ir_node *n = ir_node_of(u->g, v);
    ir_id in[IR_MAX_RANK];
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = read_value(u, b, ir_operand(u->g, n, i), at, done);
    return done[v] = ir_rebuild(b, u->g, n, in);
}

static int trip_of(const struct updates *u)
{
    int64_t work = (u->ops + 2 * u->n_leaves + 2) * u->width;
    int trip = TRIP;
    while (trip > 1 && work * trip > COST_SORTED_CODE)
        trip /= 2;
    return trip;
}

// (ends, what leaves read | numbers of the order, sums), all by lane: a builder with these parameters
static struct ir_builder begin(struct updates *u, const ir_id *in, int n_in, ir_id *out)
{
    struct ir_builder b = ir_builder_make(u->b->module, "updates", IR_BUILD_PLAIN);
    int next = 0;
    for (int i = 0; i < n_in; i++)
        out[i] = ir_param(&b, ir_type_in(u->b, in[i]));
    next = 1;
    for (int i = 0; i < u->n_leaves; i++)
        for (int k = 0; k < 3; k++)
            u->leaves[i].inner[k] = u->leaves[i].outer[k] == IR_NONE ? IR_NONE : out[next++];
    return b;
}

static uint32_t loop_test(struct updates *u, const ir_id *in, int n_in)
{
    ir_id p[MOST_OPERANDS];
    struct ir_builder b = begin(u, in, n_in, p);
    ir_output(&b, ir_lt(&b, p[n_in - 2], p[0]));
    return ir_finish_function(&b);
}

static uint32_t loop_body(struct updates *u, const ir_id *in, int n_in)
{
    ir_id p[MOST_OPERANDS], next[TRIP];
    struct ir_builder b = begin(u, in, n_in, p);
    ir_id at = p[n_in - 2], sum = p[n_in - 1];
    enum ir_op op = ir_op_get((enum ir_op)u->n->op)->pair;
    int trip = trip_of(u);
    ir_id is[TRIP];
    for (int k = 0; k < trip; k++) {
        ir_id *done = pass_no_values(b.module, u->g->values.count);
        ir_id to = ir_add(&b, at, ir_scalar_int(&b, JOT_I32, k));
        is[k] = ir_lt(&b, to, p[0]);
        next[k] = read_value(u, &b, ir_operand(u->g, u->n, 2), to, done);
    }
    for (int k = 0; k < trip; k++) {
        ir_id more = ir_map2(&b, op, sum, next[k]);
        ir_id there = spread(&b, is[k], 3, u->extent, u->parts, u->width);
        sum = k ? ir_select(&b, there, more, sum) : more;
    }
    ir_output(&b, ir_add(&b, at, ir_scalar_int(&b, JOT_I32, trip)));
    ir_output(&b, sum);
    return ir_finish_function(&b);
}

// Numbers of a row that a lane has, and how many lanes a row has.
static void set_parts(struct updates *u)
{
    u->width = LANE_BYTES / (int64_t)jot_dtype_size(ir_dtype_of(u->g, u->n->out));
    while (u->width > 1 &&
           (u->row % u->width || u->extent * u->row < COST_SORTED_LANES * u->width))
        u->width /= 2;
    u->parts = u->row / u->width;
}

// x and the sums of the pieces, and what fills none.
static ir_id add_pieces(struct updates *u, ir_id sums)
{
    struct ir_builder *b = u->b;
    ir_id x = operand(u, u->n, 0), at = operand(u, u->n, 1), y = operand(u, u->n, 2);
    struct ir_type t = ir_type_in(b, x);
    struct ir_gather of = ir_gather_of(u->n->attrs);
    int64_t dims[IR_MAX_RANK + 1] = {u->pieces}, end = u->pieces * u->length;
    int64_t total = ir_dims(b->module, ir_type_in(b, at))[0];
    memcpy(dims + 1, ir_dims(b->module, t), (size_t)t.rank * sizeof *dims);
    sums = ir_reshape(b, sums, t.rank + 1, dims);
    x = ir_add(b, x, scatter_sum_pairs(b, sums, u->pieces));
    if (end == total)
        return x;
    return ir_scatter(b, (enum ir_op)u->n->op, x, scatter_cut(b, at, 0, end, total),
                      scatter_cut(b, y, 0, end, total), &of);
}

static ir_id run_updates(struct updates *u)
{
    struct ir_builder *b = u->b;
    ir_id in[MOST_OPERANDS];
    int n_in = 1;
    sort_updates(u);
    set_parts(u);
    int64_t zero = 0, one = 1, extent = u->extent, end = extent + 1;
    ir_id first = find_first(u), x = operand(u, u->n, 0);
    struct ir_type of_all = ir_type_make(b->module, ir_dtype(ir_type_in(b, x)), 3,
                                         (int64_t[]){extent, u->parts, u->width});
    u->seen = body_mask(b->module, u->g->values.count);
    find_leaves(u, ir_operand(u->g, u->n, 2));
    for (int i = 0; i < u->n_leaves; i++) {
        make_outer(u, &u->leaves[i]);
        for (int k = 0; k < 3; k++)
            if (u->leaves[i].outer[k] != IR_NONE)
                in[n_in++] = u->leaves[i].outer[k];
    }
    struct ir_while w = {
        .n_consts = n_in, .batched = 2, .max_trips = IR_NO_BOUND, .trips = IR_TRIPS_UNNAMED};
    in[0] = spread(b, ir_slice(b, first, &one, &end, NULL), 2, extent, u->parts, 0);
    in[n_in++] = spread(b, ir_slice(b, first, &zero, &extent, NULL), 2, extent, u->parts, 0);
    in[n_in++] =
        u->pieces > 1 ? ir_full(b, of_all, -0.0) : reshape(b, x, 3, extent, u->parts, u->width);
    w.test = loop_test(u, in, n_in);
    w.body = loop_body(u, in, n_in);
    ir_id y = ir_while(b, &w, n_in, in);
    if (y != IR_NONE && u->pieces > 1)
        return add_pieces(u, y + 1);
    struct ir_type t = ir_type_in(b, x);
    return y == IR_NONE ? y : ir_reshape(b, y + 1, t.rank, ir_dims(b->module, t));
}

// ---- Functions

#define NO_LOOP (-1)

static uint32_t sort_function(struct ir_module *m, uint32_t f, int64_t consts);

// The first so many operands of a loop are the same in all its trips; NO_LOOP for other nodes.
static int64_t consts_of(const struct ir_node *n)
{
    return n->op == IR_scan    ? ir_scan_of(n).n_consts
           : n->op == IR_while ? ir_while_of(n).n_consts
                               : NO_LOOP;
}

static ir_id copy_with_bodies(struct ir_builder *b, const struct ir_graph *g,
                              const struct ir_node *n, const ir_id *map)
{
    const int64_t *functions;
    int count = ir_bodies_of(n, &functions);
    uint32_t *made = arena_array(b->module->arena, uint32_t, count + 1);
    for (int i = 0; i < count; i++)
        made[i] = sort_function(b->module, (uint32_t)functions[i], consts_of(n));
    ir_id *in = body_operands(b->module, g, n, map);
    b->where = n->where;
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                    ir_with_functions(b->module, n->attrs, made));
}

static void find_what_stays(const struct ir_graph *g, const struct ir_node *n, bool *stays)
{
    bool all = ir_op_class((enum ir_op)n->op) != IR_CLASS_EFFECT;
    for (uint32_t i = 0; i < n->n_in; i++)
        all = all && stays[ir_operand(g, n, i)];
    for (uint32_t k = 0; k < n->n_out; k++)
        stays[n->out + k] = all;
}

static uint32_t sort_function(struct ir_module *m, uint32_t f, int64_t consts)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_SORT_UPDATES, .f = f, .number = consts};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    bool *stays = body_mask(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (int64_t i = 0; i < consts; i++)
        stays[i] = true;
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        struct updates u;
        if (consts != NO_LOOP)
            find_what_stays(g, n, stays);
        b.where = n->where;
        if (ir_has_bodies((enum ir_op)n->op)) {
            body_set_results(n, copy_with_bodies(&b, g, n, map), map);
        } else if (find_updates(&u, g, n) && is_wanted(&u, stays)) {
            u.b = &b;
            u.map = map;
            u.stays = stays;
            map[n->out] = run_updates(&u);
        } else {
            pass_copy_node(&b, g, n, map);
        }
    }
    pass_copy_outputs(&b, g, map);
    return pass_memo_add_function(m, &key, ir_finish_function(&b));
}

uint32_t pass_sort_updates(struct ir_module *m, uint32_t f)
{
    return sort_function(m, f, NO_LOOP);
}
