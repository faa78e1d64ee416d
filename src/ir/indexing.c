// SPDX-License-Identifier: Apache-2.0
#include "ir/indexing.h"

#include <math.h>

#define PARTS 16               // at most
#define PART_UPDATES (1 << 16) // elements of updates that are worth parts
#define PART_LOAD 8            // updates of a part for each element of the operand

struct ir_gather ir_gather_of(const struct ir_attrs *attrs)
{
    int n;
    struct ir_gather g = {.mode = (enum ir_index_mode)ir_attr_int_or(attrs, IR_KEY_mode, 0),
                          .unique = ir_attr_int_or(attrs, IR_KEY_unique, 0) != 0};
    g.offset_dims = ir_attr_ints(attrs, IR_KEY_offset_dims, &g.n_offset);
    g.collapsed_dims = ir_attr_ints(attrs, IR_KEY_collapsed_dims, &g.n_collapsed);
    g.operand_batch = ir_attr_ints(attrs, IR_KEY_operand_batch, &g.n_batch);
    g.index_batch = ir_attr_ints(attrs, IR_KEY_index_batch, &n);
    g.index_map = ir_attr_ints(attrs, IR_KEY_index_map, &g.n_map);
    g.sizes = ir_attr_ints(attrs, IR_KEY_sizes, &n);
    return g;
}

#define DIMENSIONS(g)                                                                          \
    IR_INTS(offset_dims, (g)->n_offset, (g)->offset_dims),                                     \
        IR_INTS(collapsed_dims, (g)->n_collapsed, (g)->collapsed_dims),                        \
        IR_INTS(operand_batch, (g)->n_batch, (g)->operand_batch),                              \
        IR_INTS(index_batch, (g)->n_batch, (g)->index_batch),                                  \
        IR_INTS(index_map, (g)->n_map, (g)->index_map), IR_INT(mode, (g)->mode)

ir_id ir_gather(struct ir_builder *b, ir_id x, ir_id indices, const struct ir_gather *g)
{
    if (x == IR_NONE || indices == IR_NONE)
        return IR_NONE;
    return ir_build(
        b, IR_gather, 2, (ir_id[]){x, indices},
        ir_attrs(b->module, DIMENSIONS(g), IR_INTS(sizes, ir_type_in(b, x).rank, g->sizes)));
}

ir_id ir_scatter(struct ir_builder *b, enum ir_op op, ir_id x, ir_id indices, ir_id updates,
                 const struct ir_gather *g)
{
    if (x == IR_NONE || indices == IR_NONE || updates == IR_NONE)
        return IR_NONE;
    return ir_build(b, op, 3, (ir_id[]){x, indices, updates},
                    ir_attrs(b->module, DIMENSIONS(g), IR_INT(unique, g->unique)));
}

ir_id ir_dynamic_slice(struct ir_builder *b, ir_id x, const ir_id *starts, const int64_t *sizes)
{
    ir_id in[IR_MAX_RANK + 1] = {x};
    if (x == IR_NONE)
        return IR_NONE;
    int rank = ir_type_in(b, x).rank;
    for (int i = 0; i < rank; i++)
        in[i + 1] = starts[i];
    return ir_build(b, IR_dynamic_slice, rank + 1, in,
                    ir_attrs(b->module, IR_INTS(sizes, rank, sizes)));
}

ir_id ir_dynamic_update_slice(struct ir_builder *b, ir_id x, ir_id update, const ir_id *starts)
{
    ir_id in[IR_MAX_RANK + 2] = {x, update};
    if (x == IR_NONE)
        return IR_NONE;
    int rank = ir_type_in(b, x).rank;
    for (int i = 0; i < rank; i++)
        in[i + 2] = starts[i];
    return ir_build(b, IR_dynamic_update_slice, rank + 2, in, NULL);
}

static int index_in(const int64_t *list, int n, int64_t x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return i;
    return -1;
}

struct ir_window ir_window_of(const struct ir_module *m, const struct ir_attrs *attrs,
                              struct ir_type x, struct ir_type indices, struct ir_type y)
{
    struct ir_gather g = ir_gather_of(attrs);
    struct ir_window w = {.rank = x.rank, .index_rank = indices.rank - 1};
    const int64_t *dims = ir_dims(m, y);
    for (int d = 0, next = 0; d < y.rank; d++)
        if (index_in(g.offset_dims, g.n_offset, d) < 0)
            w.index_axis[next++] = d;
    for (int d = 0, next = 0; d < x.rank; d++) {
        int batch = index_in(g.operand_batch, g.n_batch, d);
        w.component[d] = index_in(g.index_map, g.n_map, d);
        w.is_batch[d] = batch >= 0;
        w.along[d] = -1;
        w.size[d] = 1;
        if (batch >= 0) {
            w.along[d] = w.index_axis[g.index_batch[batch]];
        } else if (index_in(g.collapsed_dims, g.n_collapsed, d) < 0) {
            w.along[d] = (int)g.offset_dims[next++];
            w.size[d] = dims[w.along[d]];
        }
    }
    return w;
}

void ir_fill_element(jot_dtype d, void *element)
{
    unsigned char *bytes = element;
    size_t size = jot_dtype_size(d);
    if (dtype_is_inexact(d)) {
        static const uint16_t half[] = {0x7e00, 0x7fc0};
        size_t part = dtype_is_complex(d) ? size / 2 : size;
        double wide = NAN;
        float narrow = NAN;
        memcpy(bytes,
               size == 2   ? (const void *)&half[d == JOT_BF16]
               : part == 8 ? (const void *)&wide
                           : (const void *)&narrow,
               part);
        memset(bytes + part, 0, size - part);
        return;
    }
    bool is_signed = dtype_is_integer(d) && dtype_is_signed(d);
    memset(bytes, is_signed ? 0 : 0xff, size);
    if (d == JOT_BOOL)
        bytes[0] = 1;
    if (is_signed)
        bytes[size - 1] = 0x80;
}

int64_t ir_scatter_parts(const struct ir_module *m, enum ir_op op, const struct ir_attrs *attrs,
                         struct ir_type x, struct ir_type indices, struct ir_type updates)
{
    struct ir_gather g = ir_gather_of(attrs);
    int64_t count = ir_count(m, updates), elements = ir_count(m, x), parts = 1;
    if (op != IR_scatter_add || g.n_batch || g.unique || indices.rank < 2 || elements == 0 ||
        count < PART_UPDATES)
        return 1;
    while (parts < PARTS && parts * 2 <= ir_dims(m, indices)[0] &&
           parts * 2 <= count / PART_LOAD / elements)
        parts *= 2;
    return parts;
}
