// SPDX-License-Identifier: Apache-2.0
// Result types of factorizations and solutions of linear systems.
#include "ir/infer.h"

static bool check_matrix(struct ir_infer *call, int i)
{
    struct ir_type t = infer_in(call, i);
    return t.rank >= 2 || infer_fail(call, JOT_ERR_SHAPE, "%s of %s: a matrix has two axes",
                                     infer_name(call), infer_text(call, t));
}

static bool check_square(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    const int64_t *dims = infer_dims(call, 0);
    if (!check_matrix(call, 0))
        return false;
    return dims[t.rank - 1] == dims[t.rank - 2] ||
           infer_fail(call, JOT_ERR_SHAPE, "%s of %s: the matrix is not square",
                      infer_name(call), infer_text(call, t));
}

// Whether operands i and k have the same n axes in front.
static bool check_batch(struct ir_infer *call, int i, int k, int n)
{
    const int64_t *a = infer_dims(call, i), *b = infer_dims(call, k);
    bool same = true;
    for (int axis = 0; axis < n; axis++)
        same &= a[axis] == b[axis];
    return same ||
           infer_fail(call, JOT_ERR_SHAPE,
                      "%s of %s and %s: the axes before the matrices differ", infer_name(call),
                      infer_text(call, infer_in(call, i)), infer_text(call, infer_in(call, k)));
}

bool infer_cholesky(struct ir_infer *call)
{
    return check_square(call) && infer_result(call, infer_in(call, 0));
}

bool infer_lu(struct ir_infer *call)
{
    if (!check_matrix(call, 0))
        return false;
    struct ir_type a = infer_in(call, 0);
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, infer_dims(call, 0), sizeof *dims * a.rank);
    int64_t rows = dims[a.rank - 2], columns = dims[a.rank - 1];
    if (rows > INT32_MAX)
        return infer_fail(call, JOT_ERR_SHAPE, "lu of %s: rows are numbered in i32",
                          infer_text(call, a));
    call->n_out = 3;
    call->types = arena_array(call->b->module->arena, struct ir_type, 3);
    call->types[0] = a;
    dims[a.rank - 2] = rows < columns ? rows : columns;
    call->types[1] = ir_type_make(call->b->module, JOT_I32, a.rank - 1, dims);
    dims[a.rank - 2] = rows;
    call->types[2] = ir_type_make(call->b->module, JOT_I32, a.rank - 1, dims);
    return true;
}

bool infer_triangular_solve(struct ir_infer *call)
{
    static const enum ir_key flags[] = {IR_KEY_left, IR_KEY_lower, IR_KEY_transposed,
                                        IR_KEY_conjugated, IR_KEY_unit_diagonal};
    int64_t flag, left = 0;
    for (int i = 4; i >= 0; i--) {
        if (!infer_int(call, flags[i], &flag))
            return false;
        left = flag;
    }
    struct ir_type a = infer_in(call, 0), b = infer_in(call, 1);
    if (!infer_one_dtype(call, 0) || !check_square(call) || !check_matrix(call, 1))
        return false;
    if (a.rank != b.rank)
        return infer_fail(call, JOT_ERR_SHAPE, "%s of %s and %s: they have %d and %d axes",
                          infer_name(call), infer_text(call, a), infer_text(call, b), a.rank,
                          b.rank);
    int64_t n = infer_dims(call, 0)[a.rank - 1];
    int64_t have = infer_dims(call, 1)[b.rank - (left ? 2 : 1)];
    if (n != have)
        return infer_fail(call, JOT_ERR_SHAPE, "%s of %s and %s: %lld %s, not %lld",
                          infer_name(call), infer_text(call, a), infer_text(call, b),
                          (long long)have, left ? "rows" : "columns", (long long)n);
    return check_batch(call, 0, 1, a.rank - 2) && infer_result(call, b);
}

bool infer_tridiagonal_solve(struct ir_infer *call)
{
    struct ir_type d = infer_in(call, 0), b = infer_in(call, 3);
    if (!infer_one_dtype(call, 0))
        return false;
    for (int i = 0; i < 3; i++) {
        struct ir_type t = infer_in(call, i);
        if (t.rank < 1 || t.shape != d.shape)
            return infer_fail(call, JOT_ERR_SHAPE, "%s of diagonals %s, %s and %s",
                              infer_name(call), infer_text(call, d),
                              infer_text(call, infer_in(call, 1)),
                              infer_text(call, infer_in(call, 2)));
    }
    int64_t n = infer_dims(call, 0)[d.rank - 1];
    if (b.rank != d.rank + 1 || infer_dims(call, 3)[d.rank - 1] != n)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%s of diagonals %s and %s: the right sides are the columns of %lld "
                          "rows",
                          infer_name(call), infer_text(call, d), infer_text(call, b),
                          (long long)n);
    return check_batch(call, 0, 3, d.rank - 1) && infer_result(call, b);
}
