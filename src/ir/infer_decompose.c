// SPDX-License-Identifier: Apache-2.0
// The result types of decompositions of the matrices in the last two axes.
#include "ir/infer.h"

// Operand 0 is matrices, square or not; mode at most `last`.
static bool is_matrices(struct ir_infer *call, bool square, int64_t last)
{
    struct ir_type t = infer_in(call, 0);
    int64_t mode = ir_attr_int_or(call->attrs, IR_KEY_mode, 0);
    if (t.rank < 2)
        return infer_fail(call, JOT_ERR_SHAPE, "%s of %s: a matrix has two axes",
                          infer_name(call), infer_text(call, t));
    const int64_t *dims = infer_dims(call, 0) + t.rank - 2;
    if (square && dims[0] != dims[1])
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%s of %s: the matrix is %lld by %lld, not square", infer_name(call),
                          infer_text(call, t), (long long)dims[0], (long long)dims[1]);
    if (mode < 0 || mode > last)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s of mode %lld: there are 0 to %lld",
                          infer_name(call), (long long)mode, (long long)last);
    return true;
}

// Result i is matrices of the extents, or vectors when cols is -1, over the leading axes.
static bool give(struct ir_infer *call, int i, jot_dtype dtype, int64_t rows, int64_t cols)
{
    int64_t dims[IR_MAX_RANK];
    int rank = infer_in(call, 0).rank - 2;
    memcpy(dims, infer_dims(call, 0), (size_t)rank * sizeof *dims);
    dims[rank++] = rows;
    if (cols >= 0)
        dims[rank++] = cols;
    if (!infer_dims_fit(dtype, rank, dims))
        return infer_fail(call, JOT_ERR_SHAPE, "%s gives %s, which is too large",
                          infer_name(call), infer_dims_text(call, dtype, rank, dims));
    call->types[i] = ir_type_make(call->b->module, dtype, rank, dims);
    return true;
}

static void room(struct ir_infer *call, int n)
{
    call->n_out = n;
    call->types = arena_array(call->b->module->arena, struct ir_type, n);
}

bool infer_qr(struct ir_infer *call)
{
    if (!is_matrices(call, false, 1))
        return false;
    struct ir_type t = infer_in(call, 0);
    int64_t m = infer_dims(call, 0)[t.rank - 2], n = infer_dims(call, 0)[t.rank - 1];
    int64_t k = m < n || ir_attr_int_or(call->attrs, IR_KEY_mode, 0) ? m : n;
    room(call, 2);
    return give(call, 0, ir_dtype(t), m, k) && give(call, 1, ir_dtype(t), k, n);
}

bool infer_eigh(struct ir_infer *call)
{
    if (!is_matrices(call, true, 0))
        return false;
    struct ir_type t = infer_in(call, 0);
    int64_t n = infer_dims(call, 0)[t.rank - 1];
    room(call, 2);
    return give(call, 0, dtype_real(ir_dtype(t)), n, -1) && give(call, 1, ir_dtype(t), n, n);
}

bool infer_svd(struct ir_infer *call)
{
    if (!is_matrices(call, false, 3))
        return false;
    struct ir_type t = infer_in(call, 0);
    int64_t m = infer_dims(call, 0)[t.rank - 2], n = infer_dims(call, 0)[t.rank - 1];
    int64_t all = m < n ? m : n, mode = ir_attr_int_or(call->attrs, IR_KEY_mode, 0);
    int64_t least = mode == 3 ? ir_attr_int_or(call->attrs, IR_KEY_length, -1) : all;
    if (least < 0 || least > all)
        return infer_fail(call, JOT_ERR_ARGUMENT, "svd of %s: %lld of its %lld singular values",
                          infer_text(call, t), (long long)least, (long long)all);
    room(call, mode ? 3 : 1);
    return give(call, 0, dtype_real(ir_dtype(t)), least, -1) &&
           (!mode || (give(call, 1, ir_dtype(t), m, mode == 2 ? m : least) &&
                      give(call, 2, ir_dtype(t), mode == 2 ? n : least, n)));
}

bool infer_eig(struct ir_infer *call)
{
    if (!is_matrices(call, true, 2))
        return false;
    struct ir_type t = infer_in(call, 0);
    jot_dtype d = dtype_complex(dtype_real(ir_dtype(t)));
    int64_t n = infer_dims(call, 0)[t.rank - 1];
    int mode = (int)ir_attr_int_or(call->attrs, IR_KEY_mode, 0);
    room(call, 1 + mode);
    for (int i = 1; i <= mode; i++)
        if (!give(call, i, d, n, n))
            return false;
    return give(call, 0, d, n, -1);
}

bool infer_schur(struct ir_infer *call)
{
    if (!is_matrices(call, true, 0))
        return false;
    struct ir_type t = infer_in(call, 0);
    int64_t n = infer_dims(call, 0)[t.rank - 1];
    room(call, 2);
    return give(call, 0, ir_dtype(t), n, n) && give(call, 1, ir_dtype(t), n, n);
}
