// SPDX-License-Identifier: Apache-2.0
// Nodes that change indices.
#include "interop/from_graph.h"
#include "ir/index_map.h"

#include <assert.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- layouts ----

static const int64_t *list(struct hlo_node *n, enum ir_key key, int *count)
{
    return ir_attr_ints(n->n->attrs, key, count);
}

static hlo_value with_list(struct hlo_node *n, enum mlir_code code, const char *name,
                           enum ir_key key)
{
    struct hlo_attrs a = {0};
    int count;
    const int64_t *numbers = list(n, key, &count);
    hlo_ints(n->w, &a, name, count, numbers);
    return hlo_op(n->w, code, n->type, 1, n->in, &a);
}

static hlo_value pad(struct hlo_node *n)
{
    struct hlo_attrs a = {0};
    int rank;
    const int64_t *low = list(n, IR_KEY_low, &rank);
    hlo_ints(n->w, &a, "edge_padding_low", rank, low);
    hlo_ints(n->w, &a, "edge_padding_high", rank, list(n, IR_KEY_high, &rank));
    hlo_ints(n->w, &a, "interior_padding", rank, list(n, IR_KEY_interior, &rank));
    return hlo_op(n->w, HLO_(pad), n->type, 2, n->in, &a);
}

static hlo_value concatenate(struct hlo_node *n)
{
    struct hlo_attrs a = {0};
    hlo_int(n->w, &a, "dimension", ir_attr_int(n->n->attrs, IR_KEY_axis));
    return hlo_op(n->w, HLO_(concatenate), n->type, n->n->n_in, n->in, &a);
}

static hlo_value slice(struct hlo_node *n)
{
    int rank;
    return hlo_slice(n->w, n->in[0], list(n, IR_KEY_starts, &rank),
                     list(n, IR_KEY_limits, &rank), list(n, IR_KEY_strides, &rank));
}

// The coordinate of the operand for each element of the plane: some axes of the result, which have
// these numbers in it.
static hlo_value coordinate(struct hlo_writer *w, const struct ir_index_axis *a,
                            const struct mlir_type *plane, const int64_t *in_plane)
{
    hlo_value at = hlo_integer(w, plane, (uint64_t)a->offset);
    for (int t = 0; t < a->n_terms; t++) {
        hlo_value along = hlo_iota(w, plane, (int)in_plane[a->axis[t]]);
        if (a->step[t] != 1)
            along =
                hlo_2(w, HLO_(multiply), along, hlo_integer(w, plane, (uint64_t)a->step[t]));
        at = hlo_2(w, HLO_(add), at, along);
    }
    return at;
}

static hlo_value is_inside(struct hlo_writer *w, hlo_value at, int64_t extent)
{
    hlo_value low = hlo_number(w, at->type, 0);
    hlo_value high = hlo_integer(w, at->type, (uint64_t)extent);
    return hlo_2(w, HLO_(and), hlo_compare(w, "GE", false, at, low),
                 hlo_compare(w, "LT", false, at, high));
}

// The axis of the operand that each of the result is and no other coordinate is made of, or -1.
static void find_windows(const struct ir_index_map *map, int rank, int *window)
{
    for (int k = 0; k < rank; k++)
        window[k] = -1;
    for (int d = 0; d < map->rank; d++)
        if (map->axes[d].is_kept)
            window[map->axes[d].axis[0]] = d;
    for (int d = 0; d < map->rank; d++)
        for (int t = 0; t < map->axes[d].n_terms && !map->axes[d].is_kept; t++)
            window[map->axes[d].axis[t]] = -1;
}

static bool is_window(const struct ir_index_axis *a, const int *window, int d)
{
    return a->n_terms == 1 && window[a->axis[0]] == d;
}

// What StableHLO has no operation for: a gather of windows at the indices that the index map tells, and
// zeros where there are none.  The gather has the plane of the indices in front.
static hlo_value by_gather(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    hlo_value x = n->in[0], inside = NULL, starts[IR_MAX_RANK];
    int rank = n->type->rank, n_plane = 0, n_windows = 0, n_starts = 0, window[IR_MAX_RANK];
    int64_t order[IR_MAX_RANK], front[IR_MAX_RANK + 1], plane_axes[IR_MAX_RANK],
        offsets[IR_MAX_RANK], sizes[IR_MAX_RANK], taken[IR_MAX_RANK];
    struct ir_index_map map;
    if (mlir_elements_of(n->type) == 0 || mlir_elements_of(x->type) == 0)
        return hlo_number(w, n->type, 0);
    ir_index_map_of(n->g, n->n, 0, &map);
    find_windows(&map, rank, window);
    for (int k = 0; k < rank; k++)
        if (window[k] < 0) {
            front[n_plane] = n->type->dims[k];
            plane_axes[n_plane] = k;
            order[k] = n_plane++;
        }
    const struct mlir_type *plane = hlo_type(w, JOT_I64, n_plane, front);
    front[n_plane] = 1;
    for (int d = 0; d < map.rank; d++) {
        const struct ir_index_axis *a = &map.axes[d];
        assert(a->spread == 1);
        sizes[d] = is_window(a, window, d) ? x->type->dims[d] : 1;
        if (is_window(a, window, d))
            continue;
        hlo_value at = coordinate(w, a, plane, order), is = NULL;
        if (a->is_guarded)
            is = is_inside(w, at, x->type->dims[d]);
        inside = inside && is ? hlo_2(w, HLO_(and), inside, is) : is ? is : inside;
        taken[n_starts] = d;
        starts[n_starts++] = hlo_reshape(w, at, n_plane + 1, front);
    }
    front[n_plane] = n_starts;
    struct hlo_attrs last = {0}, a = {0};
    hlo_int(w, &last, "dimension", n_plane);
    hlo_value indices = hlo_op(w, HLO_(concatenate), hlo_type(w, JOT_I64, n_plane + 1, front),
                               (uint32_t)n_starts, starts, &last);
    for (int d = 0; d < map.rank; d++) {
        int k = map.axes[d].axis[0];
        if (!is_window(&map.axes[d], window, d))
            continue;
        order[k] = offsets[n_windows] = n_plane + n_windows;
        front[n_plane + n_windows++] = n->type->dims[k];
    }
    hlo_ints(w, &a, "offset_dims", n_windows, offsets);
    hlo_ints(w, &a, "collapsed_slice_dims", n_starts, taken);
    hlo_ints(w, &a, "start_index_map", n_starts, taken);
    hlo_ints(w, &a, "slice_sizes", map.rank, sizes);
    hlo_int(w, &a, "index_vector_dim", n_plane);
    hlo_value y = hlo_op(w, HLO_(gather), hlo_type(w, hlo_dtype(x), rank, front), 2,
                         (hlo_value[]){x, indices}, &a);
    y = hlo_transpose(w, y, order);
    if (!inside)
        return y;
    return hlo_select(w, hlo_broadcast(w, inside, n->type, plane_axes), y,
                      hlo_number(w, n->type, 0));
}

void hlo_layout(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    switch (n->n->op) {
    case IR_iota:
        n->out[0] = hlo_iota(w, n->type, (int)ir_attr_int(n->n->attrs, IR_KEY_axis));
        break;
    case IR_broadcast_in_dim:
        n->out[0] = with_list(n, HLO_(broadcast_in_dim), "broadcast_dimensions", IR_KEY_axes);
        break;
    case IR_reshape:
        n->out[0] = hlo_op(w, HLO_(reshape), n->type, 1, n->in, NULL);
        break;
    case IR_transpose:
        n->out[0] = with_list(n, HLO_(transpose), "permutation", IR_KEY_axes);
        break;
    case IR_rev:
        n->out[0] = with_list(n, HLO_(reverse), "dimensions", IR_KEY_axes);
        break;
    case IR_slice:
        n->out[0] = slice(n);
        break;
    case IR_pad:
        n->out[0] = pad(n);
        break;
    case IR_concatenate:
        n->out[0] = concatenate(n);
        break;
    default:
        n->out[0] = by_gather(n);
    }
}
