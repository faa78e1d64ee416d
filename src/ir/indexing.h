// SPDX-License-Identifier: Apache-2.0
// Gather and scatter: windows of an operand at indices that an array of indices says.
//
// The last axis of indices holds the index of one window: component k is where the window starts
// along operand axis index_map[k]; along the other axes it starts at 0.  Its other axes count the
// windows.  The result of a gather (the updates of a scatter) has an axis for each of them and, at
// offset_dims, one for each axis of the window that is not collapsed; axes of extent 1 are
// collapsed.  Batch axes pair an axis of the operand with one of indices: window i is of part i.
//
//     x: f32[10,4], i: i32[3,1]: rows i of x
//     %2 = gather %x, %i {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 4],
//                         mode=0} : f32[3,4]
#ifndef IR_INDEXING_H
#define IR_INDEXING_H

#include "ir/build.h"

// What happens to a window that is not inside of the operand.
enum ir_index_mode {
    IR_MODE_CLIP, // it is moved inside
    IR_MODE_FILL, // gather: NaN; the least or greatest integer where that is signed or not; true
    IR_MODE_PROMISE, // there is none; should there be one, it is moved inside
    IR_MODE_DROP,    // gather: zeros; scatter: it is left out
    IR_MODE_COUNT,
};

struct ir_gather {
    int n_offset, n_collapsed, n_batch, n_map;
    const int64_t *offset_dims;
    const int64_t *collapsed_dims;
    const int64_t *operand_batch, *index_batch;
    const int64_t *index_map;
    const int64_t *sizes; // gather: extents of the window, by operand axis
    enum ir_index_mode mode;
    bool unique; // scatter: no element is updated twice
};

struct ir_gather ir_gather_of(const struct ir_attrs *attrs);
ir_id ir_gather(struct ir_builder *b, ir_id x, ir_id indices, const struct ir_gather *g);
ir_id ir_scatter(struct ir_builder *b, enum ir_op op, ir_id x, ir_id indices, ir_id updates,
                 const struct ir_gather *g);
// starts: one for each axis of x.
ir_id ir_dynamic_slice(struct ir_builder *b, ir_id x, const ir_id *starts,
                       const int64_t *sizes);
ir_id ir_dynamic_update_slice(struct ir_builder *b, ir_id x, ir_id update, const ir_id *starts);

// The axes of a gather or scatter, resolved.  y is the result or the updates.
struct ir_window {
    int rank, index_rank;        // of the operand; of indices, without the last axis
    int component[IR_MAX_RANK];  // by operand axis: of the index that starts it, or -1
    int along[IR_MAX_RANK];      // by operand axis: the axis of y that moves along it, or -1
    bool is_batch[IR_MAX_RANK];  // by operand axis: a batch axis
    int64_t size[IR_MAX_RANK];   // by operand axis: the extent of the window
    int index_axis[IR_MAX_RANK]; // by axis of indices: the axis of y
};
struct ir_window ir_window_of(const struct ir_module *m, const struct ir_attrs *attrs,
                              struct ir_type x, struct ir_type indices, struct ir_type y);

// Whether the mode moves windows inside.
static inline bool ir_mode_moves(enum ir_index_mode mode)
{
    return mode == IR_MODE_CLIP || mode == IR_MODE_PROMISE;
}

// The element that a gather in mode IR_MODE_FILL has outside of the operand; at most 16 bytes.
void ir_fill_element(jot_dtype dtype, void *element);

// A scatter_add of many updates into few elements sums in parts: the first axis of indices is cut
// into `parts` (a power of two) of `length`, each is summed from -0 on, the sums are added
// pairwise, and that to the operand; what is left of the axis follows one by one.  1 for none.
int64_t ir_scatter_parts(const struct ir_module *m, enum ir_op op, const struct ir_attrs *attrs,
                         struct ir_type x, struct ir_type indices, struct ir_type updates);

#endif
