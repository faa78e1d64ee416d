// SPDX-License-Identifier: Apache-2.0
// Result types of what puts rows in order.
#include "ir/infer.h"

static bool has_rows(struct ir_infer *call)
{
    return infer_in(call, 0).rank > 0 ||
           infer_fail(call, JOT_ERR_SHAPE, "%s of %s: it has no axis", infer_name(call),
                      infer_text(call, infer_in(call, 0)));
}

bool infer_sort(struct ir_infer *call)
{
    int64_t num_keys;
    if (call->n_in < 1 || call->n_in > IR_SORT_MOST)
        return infer_fail(call, JOT_ERR_ARGUMENT, "sort of %d operands: it takes 1 to %d",
                          call->n_in, IR_SORT_MOST);
    if (!infer_int(call, IR_KEY_num_keys, &num_keys) || !has_rows(call))
        return false;
    if (num_keys < 1 || num_keys > call->n_in)
        return infer_fail(call, JOT_ERR_ARGUMENT, "sort of %d operands by %lld keys",
                          call->n_in, (long long)num_keys);
    call->n_out = call->n_in;
    call->types = arena_array(call->b->module->arena, struct ir_type, call->n_in);
    for (int i = 0; i < call->n_in; i++) {
        call->types[i] = infer_in(call, i);
        if (call->types[i].shape != call->types[0].shape)
            return infer_fail(call, JOT_ERR_SHAPE, "sort of %s and %s: shapes differ",
                              infer_text(call, call->types[0]),
                              infer_text(call, call->types[i]));
    }
    return true;
}

bool infer_top_k(struct ir_infer *call)
{
    int64_t k, dims[IR_MAX_RANK];
    jot_dtype dtype;
    struct ir_type t = infer_in(call, 0);
    if (!infer_int(call, IR_KEY_length, &k) || !infer_dtype(call, &dtype) || !has_rows(call))
        return false;
    if (dtype != JOT_I32 && dtype != JOT_I64)
        return infer_fail(call, JOT_ERR_DTYPE, "top_k with indices of %s: i32 or i64",
                          dtype_get(dtype)->name);
    memcpy(dims, infer_dims(call, 0), t.rank * sizeof *dims);
    int64_t *n = &dims[t.rank - 1];
    if (k < 0 || k > *n)
        return infer_fail(call, JOT_ERR_SHAPE, "top_k: %lld of the last axis of %s",
                          (long long)k, infer_text(call, t));
    *n = k;
    call->n_out = 2;
    call->types = arena_array(call->b->module->arena, struct ir_type, 2);
    call->types[0] = ir_type_make(call->b->module, ir_dtype(t), t.rank, dims);
    call->types[1] = ir_type_with(call->types[0], dtype);
    return true;
}
