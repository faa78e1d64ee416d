// SPDX-License-Identifier: Apache-2.0
// Graphs that name axes: all lanes along them side by side, node by node, so that each has come to a
// collective when it is evaluated.  In a loop or branch only the lanes that take it go on; their types
// make sure that all lanes of a collective take it or none.
#include "base/status.h"
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/eval_ops.h"
#include "ir/shard.h"

// The lanes of a number of axes, in row-major order of these.
struct grid {
    struct arena *arena;
    struct ir_module *m;
    int n_axes;
    const int64_t *axes;
};

// Some of them, by their numbers.
struct lanes {
    const struct grid *grid;
    int n;
    const int64_t *number;
};

// What each of them has: values of lane k of the list at k.
typedef struct ir_tensor *const *per_lane;

static int64_t size_of_axis(const struct grid *g, int k)
{
    return ir_axis_size(g->m, g->axes[k]);
}

static size_t bytes_of(const struct ir_module *m, struct ir_type t)
{
    return (size_t)ir_count(m, t) * dtype_get(ir_dtype(t))->bytes;
}

static struct ir_tensor room_for(const struct grid *g, struct ir_type t)
{
    return (struct ir_tensor){t, arena_allocate(g->arena, bytes_of(g->m, t) + 1)};
}

static void copy(const struct grid *g, struct ir_type t, void *to, const void *from)
{
    if (bytes_of(g->m, t))
        memcpy(to, from, bytes_of(g->m, t));
}

static struct ir_tensor **rows(const struct grid *g, int n, uint32_t values)
{
    struct ir_tensor **all = arena_array(g->arena, struct ir_tensor *, n + 1);
    for (int k = 0; k < n; k++)
        all[k] = arena_array(g->arena, struct ir_tensor, values + 1);
    return all;
}

// The coordinate of a lane along the named axis.
static int64_t coordinate(const struct grid *g, int64_t lane, int64_t axis)
{
    for (int k = g->n_axes; k-- > 0; lane /= size_of_axis(g, k))
        if (g->axes[k] == axis)
            return lane % size_of_axis(g, k);
    return 0;
}

// Its number along the axes of a collective.
static int64_t number_over(const struct grid *g, int64_t lane, int n, const int64_t *over)
{
    int64_t number = 0;
    for (int i = 0; i < n; i++)
        number = number * ir_axis_size(g->m, over[i]) + coordinate(g, lane, over[i]);
    return number;
}

// Whether two lanes differ along these axes alone.
static bool is_peer(const struct grid *g, int64_t a, int64_t b, uint16_t over)
{
    for (int k = 0; k < g->n_axes; k++)
        if (!(over >> g->axes[k] & 1) &&
            coordinate(g, a, g->axes[k]) != coordinate(g, b, g->axes[k]))
            return false;
    return true;
}

static jot_status eval_lanes(const struct lanes *l, const struct ir_graph *g, per_lane in,
                             per_lane out);

// ---- Collectives

// The operand of each peer of lane k, by its number, one after the other.
static jot_status stack_peers(const struct lanes *l, int k, const struct ir_attrs *a,
                              per_lane in, struct ir_tensor *out)
{
    const struct grid *g = l->grid;
    int n;
    const int64_t *over = ir_over(a, &n);
    struct ir_type t = in[k][0].type;
    t.varies = 0;
    *out = room_for(g, ir_type_stack(g->m, t, ir_lanes_over(g->m, a)));
    int64_t found = 0;
    for (int p = 0; p < l->n; p++) {
        if (!is_peer(g, l->number[k], l->number[p], ir_over_set(a)))
            continue;
        int64_t at = number_over(g, l->number[p], n, over);
        copy(g, t, (char *)out->data + (size_t)at * bytes_of(g->m, t), in[p][0].data);
        found++;
    }
    return found == ir_lanes_over(g->m, a)
               ? JOT_OK
               : status_fail(JOT_ERR_INTERNAL, "%lld of %lld lanes have come to a collective",
                             (long long)found, (long long)ir_lanes_over(g->m, a));
}

static enum ir_op fold_of(enum ir_op op)
{
    return op == IR_pmax ? IR_reduce_max : op == IR_pmin ? IR_reduce_min : IR_reduce_sum;
}

static jot_status fold(const struct grid *g, enum ir_op op, struct ir_tensor all,
                       struct ir_type result, struct ir_tensor *out)
{
    const struct ir_attrs *a = ir_attrs(g->m, IR_INTS(axes, 1, (const int64_t[]){0}));
    return ir_eval_op(g->arena, g->m, fold_of(op), a, 1, &all, 1, &result, out);
}

// Row `row` of x, of the type.
static struct ir_tensor row_of(const struct grid *g, struct ir_tensor x, int64_t row,
                               struct ir_type t)
{
    return (struct ir_tensor){t, (char *)x.data + (size_t)row * bytes_of(g->m, t)};
}

static jot_status eval_collective(const struct lanes *l, int k, const struct ir_node *n,
                                  struct ir_type type, per_lane in, struct ir_tensor *out)
{
    const struct grid *g = l->grid;
    int n_over, n_pairs;
    const int64_t *over = ir_over(n->attrs, &n_over);
    const int64_t *pairs = ir_attr_ints(n->attrs, IR_KEY_pairs, &n_pairs);
    int64_t own = number_over(g, l->number[k], n_over, over),
            lanes = ir_lanes_over(g->m, n->attrs);
    enum ir_op op = (enum ir_op)n->op;
    struct ir_tensor all, sum;
    *out = room_for(g, type);
    if (op == IR_axis_index) {
        memcpy(out->data, &(int32_t){(int32_t)own}, sizeof(int32_t));
        return JOT_OK;
    }
    if (op == IR_pvary) {
        copy(g, type, out->data, in[k][0].data);
        return JOT_OK;
    }
    JOT_TRY(stack_peers(l, k, n->attrs, in, &all));
    if (op == IR_psum || op == IR_pmax || op == IR_pmin)
        return fold(g, op, all, type, out);
    if (op == IR_all_gather) {
        copy(g, type, out->data, all.data);
        return JOT_OK;
    }
    if (op == IR_ppermute) {
        for (int i = 0; i < n_pairs; i += 2)
            if (pairs[i + 1] == own)
                copy(g, type, out->data, row_of(g, all, pairs[i], type).data);
        return JOT_OK;
    }
    if (op == IR_psum_scatter) {
        JOT_TRY(fold(g, op, all, in[k][0].type, &sum));
        copy(g, type, out->data, row_of(g, sum, own, type).data);
        return JOT_OK;
    }
    // all_to_all: row `own` of what each peer has.
    struct ir_type row = ir_type_row(g->m, type);
    for (int64_t p = 0; p < lanes; p++)
        copy(g, row, row_of(g, *out, p, row).data,
             row_of(g, row_of(g, all, p, type), own, row).data);
    return JOT_OK;
}

// ---- Loops and branches

static jot_status eval_scan_of(const struct lanes *l, const struct ir_node *n, per_lane in,
                               per_lane out)
{
    const struct grid *g = l->grid;
    struct ir_scan s = ir_scan_of(n);
    const struct ir_graph *body = ir_function(g->m, s.body);
    uint32_t first = (uint32_t)(s.n_consts + s.n_carry), n_carry = (uint32_t)s.n_carry;
    struct ir_tensor **x = rows(g, l->n, n->n_in), **y = rows(g, l->n, n->n_out);
    for (int k = 0; k < l->n; k++) {
        memcpy(x[k], in[k], n->n_in * sizeof **x);
        for (uint32_t i = 0; i < n_carry; i++)
            copy(g, out[k][i].type, out[k][i].data, in[k][(uint32_t)s.n_consts + i].data);
    }
    for (int64_t trip = 0; trip < s.length; trip++) {
        int64_t t = s.reverse ? s.length - 1 - trip : trip;
        for (int k = 0; k < l->n; k++)
            for (uint32_t i = first; i < n->n_in; i++)
                x[k][i] = row_of(g, in[k][i], t, ir_type_of(body, i));
        JOT_TRY(eval_lanes(l, body, x, y));
        for (int k = 0; k < l->n; k++)
            for (uint32_t i = 0; i < n->n_out; i++) {
                if (i < n_carry)
                    x[k][(uint32_t)s.n_consts + i] = y[k][i];
                struct ir_tensor to =
                    i < n_carry ? out[k][i] : row_of(g, out[k][i], t, y[k][i].type);
                copy(g, y[k][i].type, to.data, y[k][i].data);
            }
    }
    return JOT_OK;
}

// Of a batched loop a lane goes on while any of those it has itself does, whose carries change then.
static bool goes_on(const struct ir_module *m, struct ir_tensor holds)
{
    for (int64_t i = 0; i < ir_count(m, holds.type); i++)
        if (((const bool *)holds.data)[i])
            return true;
    return false;
}

static void copy_lane(const struct grid *g, struct ir_tensor holds, struct ir_tensor from,
                      struct ir_tensor *to)
{
    int64_t n = ir_count(g->m, holds.type);
    size_t bytes = bytes_of(g->m, from.type) / (n ? (size_t)n : 1);
    struct ir_tensor kept = room_for(g, from.type);
    copy(g, from.type, kept.data, to->data);
    for (int64_t i = 0; bytes && i < n; i++)
        if (((const bool *)holds.data)[i])
            memcpy((char *)kept.data + (size_t)i * bytes, (char *)from.data + (size_t)i * bytes,
                   bytes);
    to->data = kept.data;
}

static jot_status eval_while_of(const struct lanes *l, const struct ir_node *n, per_lane in,
                                per_lane out)
{
    const struct grid *g = l->grid;
    struct ir_while w = ir_while_of(n);
    const struct ir_graph *test = ir_function(g->m, w.test), *body = ir_function(g->m, w.body);
    uint32_t n_consts = (uint32_t)w.n_consts;
    struct ir_tensor **x = rows(g, l->n, n->n_in), **holds = rows(g, l->n, 1),
                     **y = rows(g, l->n, n->n_out);
    // Those that go on, and their indices in l.
    int64_t *number = arena_array(g->arena, int64_t, l->n + 1);
    int *index = arena_array(g->arena, int, l->n + 1);
    struct ir_tensor **own = arena_array(g->arena, struct ir_tensor *, l->n + 1);
    struct lanes on = {.grid = g, .n = l->n, .number = number};
    memcpy(number, l->number, (size_t)l->n * sizeof *number);
    for (int k = 0; k < l->n; k++) {
        index[k] = k;
        own[k] = x[k];
        memcpy(x[k], in[k], n->n_in * sizeof **x);
    }
    for (int64_t trip = 0; on.n && trip != w.max_trips; trip++) {
        JOT_TRY(eval_lanes(&on, test, own, holds));
        int left = 0;
        for (int k = 0; k < on.n; k++) {
            if (!goes_on(g->m, holds[k][0]))
                continue;
            number[left] = number[k];
            index[left] = index[k];
            own[left] = own[k];
            holds[left][0] = holds[k][0];
            left++;
        }
        on.n = left;
        JOT_TRY(eval_lanes(&on, body, own, y));
        for (int k = 0; k < on.n; k++)
            for (uint32_t i = 0; i < n->n_out; i++)
                copy_lane(g, holds[k][0], y[k][i], &x[index[k]][n_consts + i]);
    }
    for (int k = 0; k < l->n; k++)
        for (uint32_t i = 0; i < n->n_out; i++)
            copy(g, out[k][i].type, out[k][i].data, x[k][n_consts + i].data);
    return JOT_OK;
}

static jot_status eval_cond_of(const struct lanes *l, const struct ir_node *n, per_lane in,
                               per_lane out)
{
    const struct grid *g = l->grid;
    const int64_t *branches;
    int count = ir_bodies_of(n, &branches);
    struct ir_tensor **x = arena_array(g->arena, struct ir_tensor *, l->n + 1),
                     **y = rows(g, l->n, n->n_out);
    int64_t *number = arena_array(g->arena, int64_t, l->n + 1);
    int *taken = arena_array(g->arena, int, l->n + 1);
    for (int b = 0; b < count; b++) {
        struct lanes some = {.grid = g, .number = number};
        for (int k = 0; k < l->n; k++) {
            int32_t index;
            memcpy(&index, in[k][0].data, sizeof index);
            index = index < 0 ? 0 : index >= count ? count - 1 : index;
            if (index != b)
                continue;
            number[some.n] = l->number[k];
            taken[some.n] = k;
            x[some.n++] = in[k] + 1;
        }
        JOT_TRY(eval_lanes(&some, ir_function(g->m, (uint32_t)branches[b]), x, y));
        for (int k = 0; k < some.n; k++)
            for (uint32_t i = 0; i < n->n_out; i++)
                copy(g, out[taken[k]][i].type, out[taken[k]][i].data, y[k][i].data);
    }
    return JOT_OK;
}

static jot_status eval_bodies(const struct lanes *l, const struct ir_node *n, per_lane in,
                              per_lane out)
{
    const int64_t *functions;
    if (n->op == IR_scan)
        return eval_scan_of(l, n, in, out);
    if (n->op == IR_while)
        return eval_while_of(l, n, in, out);
    if (n->op == IR_cond)
        return eval_cond_of(l, n, in, out);
    ir_bodies_of(n, &functions);
    return eval_lanes(l, ir_function(l->grid->m, (uint32_t)functions[0]), in, out);
}

// ---- Graphs

static jot_status eval_node(const struct lanes *l, const struct ir_graph *g,
                            const struct ir_node *n, per_lane in, per_lane out)
{
    bool is_together =
        ir_has_bodies((enum ir_op)n->op) && n->op != IR_shard_map && ir_axes_inside(g, n);
    for (int k = 0; k < l->n; k++) {
        if (ir_op_class((enum ir_op)n->op) == IR_CLASS_COLLECTIVE)
            JOT_TRY(eval_collective(l, k, n, ir_type_of(g, n->out), in, out[k]));
        else if (!is_together)
            JOT_TRY(ir_eval_node(l->grid->arena, g, n, in[k], out[k]));
        for (int i = 0; is_together && i < n->n_out; i++)
            out[k][i] = room_for(l->grid, ir_type_of(g, n->out + (ir_id)i));
    }
    return is_together ? eval_bodies(l, n, in, out) : JOT_OK;
}

static jot_status eval_lanes(const struct lanes *l, const struct ir_graph *g, per_lane in,
                             per_lane out)
{
    struct ir_tensor **values = rows(l->grid, l->n, g->values.count);
    struct ir_tensor **results = arena_array(l->grid->arena, struct ir_tensor *, l->n + 1);
    if (l->n == 0)
        return JOT_OK;
    for (int k = 0; k < l->n; k++)
        for (uint32_t i = 0; i < g->n_params; i++)
            values[k][i] = in[k][i];
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        struct ir_tensor **operands = rows(l->grid, l->n, n->n_in);
        for (int k = 0; k < l->n; k++) {
            for (uint32_t i = 0; i < n->n_in; i++)
                operands[k][i] = values[k][ir_operand(g, n, i)];
            results[k] = values[k] + n->out;
        }
        JOT_TRY(eval_node(l, g, n, operands, results));
    }
    for (int k = 0; k < l->n; k++)
        for (uint32_t i = 0; i < g->outputs.count; i++)
            out[k][i] = values[k][g->outputs.at[i]];
    return JOT_OK;
}

jot_status ir_eval_lanes(struct arena *arena, const struct ir_graph *g, int n_axes,
                         const int64_t *axes, struct ir_tensor *const *in,
                         struct ir_tensor *const *out)
{
    struct grid grid = {arena, g->module, n_axes, axes};
    struct lanes all = {.grid = &grid, .n = 1};
    for (int k = 0; k < n_axes; k++)
        all.n *= (int)size_of_axis(&grid, k);
    int64_t *number = arena_array(arena, int64_t, all.n + 1);
    for (int k = 0; k < all.n; k++)
        number[k] = k;
    all.number = number;
    return eval_lanes(&all, g, in, out);
}

// ---- shard_map

// Where element `at` of the piece of a lane is in the whole.
static int64_t index_in_whole(const struct grid *g, const struct ir_shard *s,
                              struct ir_split split, int64_t lane, struct ir_type piece,
                              struct ir_type whole, int64_t at)
{
    const int64_t *dims = ir_dims(g->m, piece), *all = ir_dims(g->m, whole);
    int64_t index = 0, step = 1;
    for (int d = piece.rank; d-- > 0; at /= dims[d], step *= all[d]) {
        int n;
        const int64_t *by;
        int64_t part = 0;
        ir_split_of(g->m, s, split, d, &n, &by);
        for (int k = 0; k < n; k++)
            part = part * size_of_axis(g, (int)by[k]) + coordinate(g, lane, g->axes[by[k]]);
        index += (part * dims[d] + at % dims[d]) * step;
    }
    return index;
}

static void move_piece(const struct grid *g, const struct ir_shard *s, struct ir_split split,
                       int64_t lane, struct ir_tensor piece, struct ir_tensor whole,
                       bool is_out)
{
    size_t bytes = (size_t)dtype_get(ir_dtype(piece.type))->bytes;
    for (int64_t i = 0; i < ir_count(g->m, piece.type); i++) {
        char *there =
            (char *)whole.data +
            (size_t)index_in_whole(g, s, split, lane, piece.type, whole.type, i) * bytes;
        char *here = (char *)piece.data + (size_t)i * bytes;
        memcpy(is_out ? there : here, is_out ? here : there, bytes);
    }
}

jot_status eval_shard_map(const struct eval_call *c)
{
    struct ir_shard s;
    ir_shard_read(c->module, c->attrs, &s);
    struct grid g = {c->arena, c->module, s.n_axes, s.grid};
    const struct ir_graph *body = ir_function(c->module, s.body);
    int lanes = 1;
    for (int k = 0; k < s.n_axes; k++)
        lanes *= (int)size_of_axis(&g, k);
    struct ir_tensor **in = rows(&g, lanes, (uint32_t)c->n_in),
                     **out = rows(&g, lanes, (uint32_t)c->n_out);
    for (int k = 0; k < lanes; k++)
        for (int i = 0; i < c->n_in; i++) {
            in[k][i] = room_for(&g, ir_type_of(body, (ir_id)i));
            move_piece(&g, &s, s.split[i], k, in[k][i], c->in[i], false);
        }
    JOT_TRY(ir_eval_lanes(c->arena, body, s.n_axes, s.grid, in, out));
    for (int k = 0; k < lanes; k++)
        for (int i = 0; i < c->n_out; i++)
            move_piece(&g, &s, s.split[c->n_in + i], k, out[k][i], c->out[i], true);
    return JOT_OK;
}
