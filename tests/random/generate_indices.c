// SPDX-License-Identifier: Apache-2.0
// Nodes of random programs at indices that are data.
#include "ir/indexing.h"
#include "random/maker.h"
#include "support/opcases.h"

// Indices [n], some of them outside of an axis of the extent.  Derivable programs take them from
// integers alone: an index that moves has no difference quotient.
static ir_id make_indices(struct maker *k, int64_t n, int64_t extent)
{
    struct ir_builder *b = &k->b;
    ir_id x = pick(k);
    jot_dtype d = dtype_in(k, x);
    bool is_fit = is_derivable(k) ? dtype_is_integer(d) : !dtype_is_complex(d);
    if (is_fit && count_in(k, x) == n)
        return ir_reshape(b, ir_convert(b, x, chance(k, 2) ? JOT_I32 : JOT_I64), 1, &n);
    ir_id i = ir_iota(b, ir_type_make(k->m, JOT_I32, 1, &n), 0);
    i = ir_mul(b, i, ir_scalar_int(b, JOT_I32, (int64_t)draw(k, 100)));
    if (d == JOT_I32 && type_in(k, x).rank == 0) // the index of a loop, perhaps
        i = ir_add(b, i, x);
    i = ir_rem(b, i, ir_scalar_int(b, JOT_I32, extent + 2));
    return ir_sub(b, i, ir_scalar_int(b, JOT_I32, (int64_t)draw(k, 3)));
}

static ir_id make_dynamic_slice(struct maker *k, ir_id x)
{
    struct ir_builder *b = &k->b;
    struct ir_type t = type_in(k, x);
    const int64_t *dims = dims_in(k, x);
    int64_t sizes[MOST_AXES + 1], zeros[MOST_AXES + 1] = {0};
    ir_id starts[MOST_AXES + 1], indices = make_indices(k, t.rank, dims[0]);
    for (int64_t i = 0; i < t.rank; i++) {
        int64_t end = i + 1;
        sizes[i] = 1 + (int64_t)draw(k, (uint64_t)dims[i]);
        starts[i] = ir_reshape(b, ir_slice(b, indices, &i, &end, NULL), 0, NULL);
    }
    if (chance(k, 2))
        return ir_dynamic_slice(b, x, starts, sizes);
    ir_id part = ir_slice(b, x, zeros, sizes, NULL);
    return ir_dynamic_update_slice(b, x, ir_rev(b, part, 1, zeros), starts);
}

// ---- Windows

// The dimension numbers of windows of x: some axes are batches, the index is along one or two
// others, and is a slice of any size there.
struct windows {
    struct ir_gather g;
    int64_t offset[MOST_AXES + 1], collapsed[MOST_AXES + 1], batch[MOST_AXES + 1];
    int64_t index_batch[MOST_AXES + 1], map[MOST_AXES + 1], sizes[MOST_AXES + 1];
    int64_t index_dims[MOST_AXES + 2]; // with the last axis
    int index_rank;
};

static void draw_windows(struct maker *k, ir_id x, struct windows *w)
{
    struct ir_type t = type_in(k, x);
    const int64_t *dims = dims_in(k, x);
    struct ir_gather *g = &w->g;
    int64_t index = (int64_t)draw(k, t.rank);
    for (int64_t i = 0; i < t.rank; i++) {
        bool is_index = i == index || (g->n_map < 2 && chance(k, 4));
        w->sizes[i] = dims[i];
        if (is_index) {
            w->map[g->n_map++] = i;
            w->sizes[i] = chance(k, 2) ? 1 : 1 + (int64_t)draw(k, (uint64_t)dims[i]);
        } else if (chance(k, 4)) {
            w->sizes[i] = 1;
            w->index_batch[g->n_batch] = w->index_rank;
            w->batch[g->n_batch++] = i;
            w->index_dims[w->index_rank++] = dims[i];
            continue;
        }
        if (is_index && w->sizes[i] == 1 && chance(k, 2))
            w->collapsed[g->n_collapsed++] = i;
        else
            g->n_offset++;
    }
    if (g->n_map == 2 && chance(k, 2)) {
        int64_t swap = w->map[0];
        w->map[0] = w->map[1], w->map[1] = swap;
    }
    if (!chance(k, 4)) // else one window, or one for each batch
        w->index_dims[w->index_rank++] = 1 + (int64_t)draw(k, 8);
    bool is_first = chance(k, 3);
    for (int i = 0; i < g->n_offset; i++)
        w->offset[i] = i + (is_first ? 0 : w->index_rank);
    w->index_dims[w->index_rank] = g->n_map;
    g->offset_dims = w->offset;
    g->collapsed_dims = w->collapsed;
    g->operand_batch = w->batch;
    g->index_batch = w->index_batch;
    g->index_map = w->map;
    g->sizes = w->sizes;
}

static ir_id window_indices(struct maker *k, const struct windows *w, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i <= w->index_rank; i++)
        n *= w->index_dims[i];
    return ir_reshape(&k->b, make_indices(k, n, dims[w->map[0]]), w->index_rank + 1,
                      w->index_dims);
}

// Rows along the first axis that differ, in any order: what derivatives of products ask for.
static ir_id differing_rows(struct maker *k, struct windows *w, const int64_t *dims)
{
    struct ir_builder *b = &k->b;
    int64_t n = 1 + (int64_t)draw(k, (uint64_t)(dims[0] < 8 ? dims[0] : 8)), zero = 0;
    ir_id i = ir_iota(b, ir_type_make(k->m, JOT_I32, 1, &n), 0);
    i = ir_add(b, i, ir_scalar_int(b, JOT_I32, (int64_t)draw(k, (uint64_t)(dims[0] - n) + 1)));
    w->g.unique = true;
    return ir_reshape(b, chance(k, 2) ? ir_rev(b, i, 1, &zero) : i, 2, (int64_t[]){n, 1});
}

static void whole_rows(struct maker *k, ir_id x, struct windows *w)
{
    struct ir_type t = type_in(k, x);
    for (int i = 0; i < t.rank; i++) {
        w->sizes[i] = i ? dims_in(k, x)[i] : 1;
        w->offset[i] = i + 1;
    }
    w->g = (struct ir_gather){.n_offset = t.rank - 1,
                              .offset_dims = w->offset,
                              .n_collapsed = 1,
                              .collapsed_dims = w->collapsed,
                              .n_map = 1,
                              .index_map = w->map,
                              .sizes = w->sizes};
    w->index_rank = 1;
    w->index_dims[0] = k->kind & PROGRAM_LARGE && chance(k, 2) ? dims_in(k, x)[0] << draw(k, 4)
                                                               : 1 + (int64_t)draw(k, 8);
    w->index_dims[1] = 1;
}

// Windows of a value, and perhaps what they are put into.
ir_id make_indices_map(struct maker *k)
{
    static const enum ir_op ops[] = {IR_scatter, IR_scatter_add, IR_scatter_min, IR_scatter_max,
                                     IR_scatter_mul};
    struct ir_builder *b = &k->b;
    struct windows w = {0};
    ir_id x = pick(k), indices;
    struct ir_type t = type_in(k, x);
    if (t.rank == 0 || count_in(k, x) == 0 || count_in(k, x) / dims_in(k, x)[0] > k->most / 8)
        return IR_NONE;
    if (chance(k, 3))
        return make_dynamic_slice(k, x);
    const int64_t *dims = dims_in(k, x);
    bool are_rows = chance(k, 2);
    if (are_rows)
        whole_rows(k, x, &w);
    else
        draw_windows(k, x, &w);
    if (w.index_rank + w.g.n_offset > MOST_AXES)
        return IR_NONE;
    w.g.mode = (enum ir_index_mode)draw(k, IR_MODE_COUNT);
    if (is_derivable(k) && w.g.mode == IR_MODE_FILL)
        w.g.mode = IR_MODE_DROP;
    if (are_rows && chance(k, 3))
        indices = differing_rows(k, &w, dims);
    else
        indices = window_indices(k, &w, dims);
    ir_id rows = ir_gather(b, x, indices, &w.g);
    if (rows == IR_NONE || count_in(k, rows) > k->most)
        return IR_NONE;
    enum ir_op op = ops[draw(k, is_derivable(k) && !w.g.unique ? 4 : 5)];
    if (chance(k, 2) || !opcase_takes(op, ir_dtype(t)))
        return rows;
    int64_t axis = 0;
    if (type_in(k, rows).rank)
        rows = ir_rev(b, rows, 1, &axis);
    return ir_scatter(b, op, x, indices, rows, &w.g);
}
