// SPDX-License-Identifier: Apache-2.0
#include "passes/rules/matrix.h"

static int64_t extent(struct ir_builder *b, ir_id x, int from_end)
{
    if (x == IR_NONE)
        return 0;
    struct ir_type t = ir_type_in(b, x);
    return ir_dims(b->module, t)[t.rank - from_end];
}

int64_t rule_rows(struct ir_builder *b, ir_id x) { return extent(b, x, 2); }
int64_t rule_columns(struct ir_builder *b, ir_id x) { return extent(b, x, 1); }

ir_id rule_transpose(struct ir_builder *b, ir_id x)
{
    int64_t axes[IR_MAX_RANK];
    int rank = x == IR_NONE ? 2 : ir_type_in(b, x).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ir_transpose(b, x, axes);
}

ir_id rule_adjoint(struct ir_builder *b, ir_id x)
{
    x = rule_transpose(b, x);
    bool is_complex = x != IR_NONE && dtype_is_complex(ir_dtype(ir_type_in(b, x)));
    return is_complex ? ir_conj(b, x) : x;
}

ir_id rule_product(struct ir_builder *b, ir_id x, ir_id y)
{
    int64_t batch[IR_MAX_RANK];
    int rank = x == IR_NONE ? 2 : ir_type_in(b, x).rank;
    for (int i = 0; i < rank; i++)
        batch[i] = i;
    return ir_dot_general(b, x, y,
                          &(struct ir_dot){.n_batch = rank - 2,
                                           .lhs_batch = batch,
                                           .rhs_batch = batch,
                                           .n_contract = 1,
                                           .lhs_contract = (int64_t[]){rank - 1},
                                           .rhs_contract = (int64_t[]){rank - 2}});
}

ir_id rule_compare(struct ir_builder *b, enum ir_op op, ir_id x, int64_t k)
{
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_with(ir_type_in(b, x), JOT_I64);
    ir_id row = ir_iota(b, t, t.rank - 2), column = ir_iota(b, t, t.rank - 1);
    return ir_map2(b, op, ir_add(b, row, ir_scalar_int(b, JOT_I64, k)), column);
}

ir_id rule_keep(struct ir_builder *b, ir_id holds, ir_id x)
{
    return x == IR_NONE ? x : ir_select(b, holds, x, ir_scalar_like(b, x, 0));
}

ir_id rule_lower(struct ir_builder *b, ir_id x, int64_t k)
{
    return rule_keep(b, rule_compare(b, IR_ge, x, k), x);
}

ir_id rule_upper(struct ir_builder *b, ir_id x, int64_t k)
{
    return rule_keep(b, rule_compare(b, IR_le, x, k), x);
}

ir_id rule_resize(struct ir_builder *b, ir_id x, int64_t rows, int64_t columns)
{
    int64_t zeros[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    int64_t more[] = {rows - rule_rows(b, x), columns - rule_columns(b, x)};
    if (x == IR_NONE || (!more[0] && !more[1]))
        return x;
    memcpy(high + ir_type_in(b, x).rank - 2, more, sizeof more);
    return ir_pad(b, x, ir_scalar_like(b, x, 0), zeros, high, zeros);
}

ir_id rule_diagonal(struct ir_builder *b, ir_id x)
{
    ir_id only = rule_keep(b, rule_compare(b, IR_eq, x, 0), x);
    int64_t rows = x == IR_NONE ? 0 : ir_type_in(b, x).rank - 2;
    return only == IR_NONE ? only : ir_reduce(b, IR_reduce_sum, only, 1, &rows);
}

static ir_id with_axis(struct ir_builder *b, ir_id x, int from_end)
{
    int64_t dims[IR_MAX_RANK + 1];
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(b, x);
    memcpy(dims, ir_dims(b->module, t), t.rank * sizeof *dims);
    dims[t.rank] = dims[t.rank - 1];
    dims[t.rank - from_end] = 1;
    return ir_reshape(b, x, t.rank + 1, dims);
}

ir_id rule_row(struct ir_builder *b, ir_id x) { return with_axis(b, x, 1); }
ir_id rule_column(struct ir_builder *b, ir_id x) { return with_axis(b, x, 0); }
