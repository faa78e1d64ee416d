// SPDX-License-Identifier: Apache-2.0
// A value in pieces becomes other pieces of it, or whole.
//
//     x: f32[8,8] in pieces f32[2,8], split by [i:4] along axis 0
// in pieces along axis 1 is
//     a = reshape x [2,4,2]; b = transpose a {axes=[1,0,2]}; c = all_to_all b {over=[i:4]}; y = reshape c [8,2]
//
// Axis by axis: what splits nothing yet is sliced, what is to split another dimension is exchanged in blocks,
// and along what is to split nothing any more the blocks are gathered.
#include "ir/collective.h"
#include "ir/indexing.h"
#include "passes/mesh/partition_axes.h"

// The axes that split the dimensions of a value on its way from some pieces to others.
struct split_now {
    int n[IR_MAX_RANK];
    int64_t axes[IR_MAX_RANK][IR_MAX_AXES]; // the slowest first
};

static struct split_now read_split(const struct ir_module *m, const struct ir_shard *mesh,
                                   struct ir_split split, int rank)
{
    struct split_now now = {0};
    const int64_t *axes;
    for (int d = 0; d < rank; d++) {
        ir_split_of(m, mesh, split, d, &now.n[d], &axes);
        for (int i = 0; i < now.n[d]; i++)
            now.axes[d][i] = mesh->grid[axes[i]];
    }
    return now;
}

// The dimension that the axis splits, or -1.
static int find_axis(const struct split_now *now, int rank, int64_t axis)
{
    for (int d = 0; d < rank; d++)
        for (int i = 0; i < now->n[d]; i++)
            if (now->axes[d][i] == axis)
                return d;
    return -1;
}

// How many axes of dimension d are first in both.
static int common(const struct split_now *a, const struct split_now *b, int d)
{
    int n = 0;
    while (n < a->n[d] && n < b->n[d] && a->axes[d][n] == b->axes[d][n])
        n++;
    return n;
}

static int64_t lanes_along(const struct ir_module *m, int n, const int64_t *axes)
{
    int64_t lanes = 1;
    for (int i = 0; i < n; i++)
        lanes *= ir_axis_size(m, axes[i]);
    return lanes;
}

// Its own part along axes that split nothing now; x where there are none.
static ir_id slice(struct ir_builder *b, ir_id x, struct split_now *now,
                   const struct split_now *to)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t sizes[IR_MAX_RANK];
    ir_id starts[IR_MAX_RANK];
    bool any = false;
    for (int d = 0; d < t.rank; d++) {
        int first = now->n[d], n = 0;
        const int64_t *axes = to->axes[d] + first;
        while (common(now, to, d) == first && first + n < to->n[d] &&
               find_axis(now, t.rank, axes[n]) < 0)
            n++;
        sizes[d] = ir_dims(b->module, t)[d] / lanes_along(b->module, n, axes);
        starts[d] = ir_scalar_int(b, JOT_I32, n ? sizes[d] : 0);
        if (n)
            starts[d] = ir_mul(b, ir_lane_number(b, n, axes), starts[d]);
        any = any || n;
        memcpy(now->axes[d] + first, axes, sizeof *axes * (size_t)n);
        now->n[d] += n;
    }
    return any ? ir_dynamic_slice(b, x, starts, sizes) : x;
}

// x with its rows along axis 0 one after the other along dimension d of a row.
static ir_id merge_rows(struct ir_builder *b, ir_id x, int d)
{
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(b, x);
    const int64_t *rows = ir_dims(b->module, t);
    int64_t order[IR_MAX_RANK], dims[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        order[i] = i < d ? i + 1 : i == d ? 0 : i;
    for (int i = 0; i < t.rank - 1; i++)
        dims[i] = rows[i + 1] * (i == d ? rows[0] : 1);
    return ir_reshape(b, d ? ir_transpose(b, x, order) : x, t.rank - 1, dims);
}

// Dimension e as rows in front of the others, one for each lane.
static ir_id split_rows(struct ir_builder *b, ir_id x, int e, int64_t lanes)
{
    struct ir_type t = ir_type_in(b, x);
    const int64_t *from = ir_dims(b->module, t);
    int64_t dims[IR_MAX_RANK], order[IR_MAX_RANK];
    for (int i = 0; i <= t.rank; i++) {
        dims[i] = i < e ? from[i] : i == e ? lanes : i == e + 1 ? from[e] / lanes : from[i - 1];
        order[i] = i == 0 ? e : i <= e ? i - 1 : i;
    }
    x = ir_reshape(b, x, t.rank + 1, dims);
    return e ? ir_transpose(b, x, order) : x;
}

// Along the last axis of dimension d, which is to be the next one of another: devices send each other blocks
// of that one.  False where there is no such axis.
static bool move_axis(struct ir_builder *b, ir_id *x, struct split_now *now,
                      const struct split_now *to)
{
    int rank = ir_type_in(b, *x).rank;
    for (int d = 0; d < rank && rank < IR_MAX_RANK; d++) {
        if (now->n[d] == common(now, to, d))
            continue;
        int64_t axis = now->axes[d][now->n[d] - 1];
        int e = find_axis(to, rank, axis);
        if (e < 0 || e == d || common(now, to, e) < now->n[e] || to->axes[e][now->n[e]] != axis)
            continue;
        *x = split_rows(b, *x, e, ir_axis_size(b->module, axis));
        *x = merge_rows(b, ir_collective(b, IR_all_to_all, *x, 1, &axis), d);
        now->n[d]--;
        now->axes[e][now->n[e]++] = axis;
        return true;
    }
    return false;
}

// The whole along last axes of a dimension that are not to split it, with the blocks of all lanes one after the
// other; those that are to split another one go by themselves.
static bool gather_blocks(struct ir_builder *b, ir_id *x, struct split_now *now,
                          const struct split_now *to)
{
    int rank = ir_type_in(b, *x).rank;
    for (int d = 0; d < rank; d++) {
        int keep = common(now, to, d), first = now->n[d];
        while (first > keep && find_axis(to, rank, now->axes[d][first - 1]) < 0)
            first--;
        if (first == now->n[d] && first > keep)
            first--;
        if (first == now->n[d])
            continue;
        *x = ir_collective(b, IR_all_gather, *x, now->n[d] - first, now->axes[d] + first);
        *x = merge_rows(b, *x, d);
        now->n[d] = first;
        return true;
    }
    return false;
}

ir_id partition_move(struct ir_builder *b, const struct ir_shard *mesh, ir_id x,
                     struct ir_split from, struct ir_split split)
{
    if (x == IR_NONE)
        return x;
    int rank = ir_type_in(b, x).rank;
    struct split_now now = read_split(b->module, mesh, from, rank),
                     to = read_split(b->module, mesh, split, rank);
    do
        x = slice(b, x, &now, &to);
    while (b->status == JOT_OK &&
           (move_axis(b, &x, &now, &to) || gather_blocks(b, &x, &now, &to)));
    return x;
}
