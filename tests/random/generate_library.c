// SPDX-License-Identifier: Apache-2.0
// Nodes that routines compute, of operands for which all ways to compute them give the same bits:
// sorts, and factorizations and systems in which nothing is rounded.
#include "random/maker.h"

#include "ir/linalg.h"

#include <math.h>

// x, with 1 for what is not finite or so large that a step might be.
static ir_id tame(struct maker *k, ir_id x)
{
    struct ir_builder *b = &k->b;
    ir_id is_tame = ir_lt(b, ir_abs(b, x), ir_scalar_like(b, x, 1e30));
    return ir_select(b, is_tame, x, ir_scalar_like(b, x, 1));
}

// x without the signs of its NaN, which are not specified, and which top_k sees.
static ir_id without_signs_of_nan(struct maker *k, ir_id x)
{
    struct ir_builder *b = &k->b;
    if (!dtype_is_float(ir_dtype(type_in(k, x))))
        return x;
    return ir_select(b, ir_eq(b, x, x), x, ir_scalar_like(b, x, NAN));
}

static ir_id make_sort(struct maker *k, ir_id x)
{
    struct ir_type t = type_in(k, x);
    ir_id in[2] = {x, pick(k)};
    if (t.rank == 0 || dtype_is_complex(ir_dtype(t)))
        return IR_NONE;
    if (chance(k, 3) && dims_in(k, x)[t.rank - 1] > 0) {
        ir_id first =
            ir_top_k(&k->b, without_signs_of_nan(k, x),
                     1 + (int64_t)draw(k, (uint64_t)dims_in(k, x)[t.rank - 1]), JOT_I32);
        return first == IR_NONE || is_derivable(k) || chance(k, 2) ? first : first + 1;
    }
    int n = ir_type_equal(ir_type_with(type_in(k, in[1]), ir_dtype(t)), t) ? 2 : 1;
    ir_id first = ir_sort(&k->b, n, in, 1 + (n == 2 && chance(k, 2)));
    return n == 2 && first != IR_NONE && chance(k, 2) ? first + 1 : first;
}

// Of the type, whose last two axes are those of square matrices: x where the column is `shift` behind
// the row, or that many in front of it at the other end, and 0 elsewhere.
static ir_id band(struct maker *k, struct ir_type t, int64_t shift, double x)
{
    struct ir_builder *b = &k->b;
    int64_t n = ir_dims(k->m, t)[t.rank - 1];
    struct ir_type indices = ir_type_with(t, JOT_I32);
    ir_id row = ir_iota(b, indices, t.rank - 2), column = ir_iota(b, indices, t.rank - 1);
    ir_id apart = ir_sub(b, column, row), wanted = ir_scalar_like(b, row, (double)shift);
    ir_id around = ir_scalar_like(b, row, (double)(shift - n));
    ir_id is_there = ir_or(b, ir_eq(b, apart, wanted), ir_eq(b, apart, around));
    return ir_select(b, is_there, ir_scalar(b, ir_dtype(t), x), ir_zeros(b, t));
}

// Whole numbers below 2^6, and how many halvings and sums of them f32 holds exactly.
enum { HALVINGS = 12 };
static ir_id whole(struct maker *k, ir_id x)
{
    struct ir_builder *b = &k->b;
    ir_id parts = ir_mul(b, ir_sin(b, tame(k, x)), ir_scalar_like(b, x, 63));
    return ir_add(b, ir_floor(b, parts), ir_scalar_like(b, x, 0)); // no -0
}

// Systems whose matrices have powers of 2 on the diagonal and beside it.
static ir_id make_system(struct maker *k, ir_id x)
{
    struct ir_type t = type_in(k, x);
    struct ir_builder *b = &k->b;
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, dims_in(k, x), sizeof *dims * t.rank);
    struct ir_triangular how = {.left = chance(k, 2),
                                .lower = chance(k, 2),
                                .transposed = chance(k, 2),
                                .unit_diagonal = chance(k, 2)};
    int64_t n = how.left ? dims[t.rank - 2] : dims[t.rank - 1];
    dims[t.rank - 2] = dims[t.rank - 1] = n;
    struct ir_type square = ir_type_make(k->m, ir_dtype(t), t.rank, dims);
    if (n > HALVINGS || ir_count(k->m, square) > 4 * k->most)
        return IR_NONE;
    ir_id a = band(k, square, 0, 2);
    if (n > 1)
        a = ir_add(b, a, band(k, square, how.lower ? n - 1 : 1, -0.5));
    return ir_triangular_solve(b, a, whole(k, x), &how);
}

// Factors of matrices with one power of 4 in each row and column, one for each row of x.
static ir_id make_factor(struct maker *k, ir_id x)
{
    struct ir_type t = type_in(k, x);
    struct ir_builder *b = &k->b;
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK], last = t.rank - 1;
    int64_t n = 1 + (int64_t)draw(k, 34), shift = (int64_t)draw(k, (uint64_t)n);
    memcpy(dims, dims_in(k, x), sizeof *dims * t.rank);
    dims[last] = dims[last + 1] = n;
    for (int i = 0; i < last; i++)
        axes[i] = i;
    struct ir_type square = ir_type_make(k->m, ir_dtype(t), t.rank + 1, dims);
    if (ir_count(k->m, square) > 4 * k->most)
        return IR_NONE;
    ir_id row = ir_reduce(b, IR_reduce_max, tame(k, x), 1, &last);
    ir_id is_low = ir_lt(b, row, ir_scalar_like(b, row, 0.25));
    ir_id power = ir_select(b, is_low, ir_scalar_like(b, row, 4), ir_scalar_like(b, row, 16));
    power = ir_broadcast_in_dim(b, power, t.rank + 1, dims, axes);
    if (chance(k, 2))
        return ir_cholesky(b, ir_mul(b, band(k, square, 0, 1), power));
    ir_id first = ir_lu(b, ir_mul(b, band(k, square, shift, 1), power));
    return first == IR_NONE ? first : first + (ir_id)draw(k, 3);
}

static ir_id make_linear(struct maker *k, ir_id x)
{
    if (dtype_in(k, x) != real_of(k->kind))
        x = as_dtype(k, x, JOT_F32);
    struct ir_type t = type_in(k, x);
    if (t.rank == 0 || t.rank == MOST_AXES || count_in(k, x) == 0)
        return IR_NONE;
    return t.rank > 1 && chance(k, 2) ? make_system(k, x) : make_factor(k, x);
}

ir_id make_library(struct maker *k)
{
    ir_id x = pick(k);
    return is_derivable(k) || chance(k, 2) ? make_sort(k, x) : make_linear(k, x);
}
