// SPDX-License-Identifier: Apache-2.0
// Small products: a thread has several rows of a result, so that what it read of one operand for the
// first is in registers for the others.
//
//     par i < 100000, j < 16, k < 16 {                 a thread: i, k .. k + 3, and j and j + 8;
//       fold l < 16 { load x[i, j, l] load y[i, l, k] ... }     y[i, l, k .. k + 3] of all l is read once
//       put z[i, j, k]
//     }
//
// Otherwise every row of the result reads the matrix again, and the first cache is what bounds it.
// That reads of memory which nothing writes are made once is left to LLVM: the rows are one straight
// piece of code.
#include "codegen/gpu/gpu.h"

#define MOST_ROWS 2  // more of them leave too few threads that wait for memory
#define REGISTERS 64 // for what the rows share
#define ENOUGH (GPU_MULTIPROCESSORS * 512) // threads

// Four-byte registers of what is read in the fold that is the same along the axis and beside its
// neighbours along that of the lanes, 0 when there is nothing; REGISTERS + 1 when it may not be kept.
static int64_t count_shared(const struct cg_lowering *l, const struct gpu_points *p,
                            const struct nest_statement *fold, nest_id axis)
{
    int64_t registers = 0;
    nest_for_each (s, l->nest, fold->body) {
        if (s->kind > NEST_LOAD)
            return REGISTERS + 1;
        if (s->kind != NEST_LOAD || nest_index_factor(&s->index, axis))
            continue;
        if (s->guard != NEST_NONE || !gpu_is_read_only(l, s->buffer))
            return REGISTERS + 1;
        for (uint32_t k = 0; k < s->index.count; k++)
            if (s->index.terms[k].is_value)
                return REGISTERS + 1;
        if (nest_index_factor(&s->index, p->axis) == 1)
            registers += (int64_t)jot_dtype_size(s->dtype) * p->lanes * cg_extent(l, fold) / 4;
    }
    return registers;
}

// Whether the rows along the axis share what short folds of the body read, and nothing of it is more
// than a thread can keep.
static bool is_shared(const struct cg_lowering *l, const struct gpu_points *p, nest_id axis)
{
    int64_t registers = 0;
    nest_for_each (s, l->nest, p->s->body) {
        nest_id id = nest_id_of(l->nest, s);
        if (s->kind == NEST_FOLD && gpu_fold_is_written_out(l, id))
            registers += count_shared(l, p, s, axis);
        else if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return false;
    }
    return registers > 0 && registers <= REGISTERS;
}

void gpu_points_widen(const struct cg_lowering *l, struct gpu_points *p)
{
    if (l->gpu->is_phase || l->gpu->common || p->lanes == 1 ||
        l->nest->axes.at[p->axis].extent % p->lanes)
        return;
    for (uint32_t k = p->s->n_axes; k-- > 0;) {
        nest_id axis = p->s->axes[k];
        int64_t extent = l->nest->axes.at[axis].extent, rows = MOST_ROWS;
        while (rows > 1 && (extent % rows || p->count / rows < ENOUGH))
            rows /= 2;
        if (axis == p->axis || rows == 1 || !is_shared(l, p, axis))
            continue;
        p->row_axis = axis;
        p->rows = rows;
        p->count /= rows;
        return;
    }
}

bool gpu_has_strips(const struct cg_lowering *l, nest_id loop)
{
    struct gpu_points p = gpu_points_make(l, loop, true);
    gpu_points_widen(l, &p);
    return p.rows > 1;
}
