// SPDX-License-Identifier: Apache-2.0
// Nodes that change indices.
#include "interop/from_graph.h"

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

// Elements at places that i and k tell, and zeros where there is none.
static hlo_value shear(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    hlo_value x = n->in[0];
    int rank = n->type->rank, n_offset = 0;
    int axis = (int)ir_attr_int(n->n->attrs, IR_KEY_axis);
    int along = (int)ir_attr_int(n->n->attrs, IR_KEY_along);
    int64_t offset = ir_attr_int(n->n->attrs, IR_KEY_offset);
    int64_t step = ir_attr_int(n->n->attrs, IR_KEY_step);
    const int64_t *dims = n->type->dims;
    if (mlir_elements_of(n->type) == 0 || mlir_elements_of(x->type) == 0)
        return hlo_number(w, n->type, 0);
    int64_t pair[] = {dims[axis], dims[along], 1}, offsets[IR_MAX_RANK], sizes[IR_MAX_RANK];
    int64_t map[] = {axis, along}, order[IR_MAX_RANK];
    const struct mlir_type *plane = hlo_type(w, JOT_I64, 2, pair);
    hlo_value i = hlo_iota(w, plane, 0), k = hlo_iota(w, plane, 1);
    hlo_value place = hlo_2(w, HLO_(multiply), k, hlo_number(w, plane, (double)step));
    place = hlo_2(w, HLO_(add), hlo_2(w, HLO_(add), i, place),
                  hlo_integer(w, plane, (uint64_t)offset));
    hlo_value inside =
        hlo_2(w, HLO_(and), hlo_compare(w, "GE", false, place, hlo_number(w, plane, 0)),
              hlo_compare(w, "LT", false, place,
                          hlo_integer(w, plane, (uint64_t)x->type->dims[axis])));
    pair[2] = 2;
    const struct mlir_type *both = hlo_type(w, JOT_I64, 3, pair);
    pair[2] = 1;
    struct hlo_attrs last = {0};
    hlo_int(w, &last, "dimension", 2);
    hlo_value indices = hlo_op(
        w, HLO_(concatenate), both, 2,
        (hlo_value[]){hlo_reshape(w, place, 3, pair), hlo_reshape(w, k, 3, pair)}, &last);
    // The result has i and k in front, then the other axes.
    int64_t front[IR_MAX_RANK] = {dims[axis], dims[along]};
    for (int d = 0, at = 2; d < rank; d++) {
        bool is_moved = d == axis || d == along;
        sizes[d] = is_moved ? 1 : dims[d];
        order[d] = d == axis ? 0 : d == along ? 1 : at;
        if (is_moved)
            continue;
        front[at] = dims[d];
        offsets[n_offset++] = at++;
    }
    struct hlo_attrs a = {0};
    int64_t collapsed[] = {axis < along ? axis : along, axis < along ? along : axis};
    hlo_ints(w, &a, "offset_dims", n_offset, offsets);
    hlo_ints(w, &a, "collapsed_slice_dims", 2, collapsed);
    hlo_ints(w, &a, "start_index_map", 2, map);
    hlo_ints(w, &a, "slice_sizes", rank, sizes);
    hlo_int(w, &a, "index_vector_dim", 2);
    hlo_value y = hlo_op(w, HLO_(gather), hlo_type(w, hlo_dtype(x), rank, front), 2,
                         (hlo_value[]){x, indices}, &a);
    y = hlo_transpose(w, y, order);
    if (axis > along)
        inside = hlo_transpose(w, inside, (const int64_t[]){1, 0});
    return hlo_select(w, hlo_broadcast(w, inside, n->type, collapsed), y,
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
    case IR_shear:
        n->out[0] = shear(n);
        break;
    default:
        n->out[0] = concatenate(n);
    }
}
