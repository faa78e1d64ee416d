// SPDX-License-Identifier: Apache-2.0
// Derivatives, transposes and batching of factorizations and solutions of linear systems.
//
// Matrices are the last two axes of values of any rank.
#include "ir/linalg.h"
#include "ir/indexing.h"
#include "passes/rules/matrix.h"
#include "passes/rules/rules.h"

#define B c->b
#define Y c->y[0]

// ---- Cholesky

// Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527:
// dl = l phi(l^-1 da l^-H), where phi takes the lower triangle and half of the diagonal.
void jvp_cholesky(struct jvp *c)
{
    ir_id a = ir_add(B, c->dx[0], rule_adjoint(B, c->dx[0]));
    a = ir_mul(B, a, ir_scalar_like(B, a, 0.5));
    struct ir_triangular from_left = {.left = true, .lower = true};
    struct ir_triangular from_right = {.lower = true, .transposed = true, .conjugated = true};
    ir_id s = ir_triangular_solve(B, Y, a, &from_right);
    s = ir_triangular_solve(B, Y, s, &from_left);
    ir_id half = ir_mul(B, s, ir_scalar_like(B, s, 0.5));
    s = ir_select(B, rule_compare(B, IR_eq, s, 0), half, rule_lower(B, s, 0));
    c->dy[0] = rule_product(B, Y, s);
}

void batch_cholesky(struct batch *c) { c->y[0] = ir_cholesky(B, c->x[0]); }

// ---- LU

// The rows of x in the order of a permutation.
static ir_id take_rows(struct ir_builder *b, ir_id x, ir_id permutation)
{
    struct ir_type t = ir_type_in(b, permutation);
    int64_t dims[IR_MAX_RANK], sizes[IR_MAX_RANK], batch[IR_MAX_RANK], n = t.rank - 1;
    memcpy(dims, ir_dims(b->module, t), sizeof *dims * t.rank);
    dims[t.rank] = 1;
    for (int i = 0; i <= n; i++) {
        sizes[i] = 1;
        batch[i] = i;
    }
    sizes[n + 1] = rule_columns(b, x);
    return ir_gather(b, x, ir_reshape(b, permutation, t.rank + 1, dims),
                     &(struct ir_gather){.n_offset = 1,
                                         .offset_dims = (int64_t[]){n + 1},
                                         .n_collapsed = 1,
                                         .collapsed_dims = &n,
                                         .n_batch = (int)n,
                                         .operand_batch = batch,
                                         .index_batch = batch,
                                         .n_map = 1,
                                         .index_map = &n,
                                         .sizes = sizes,
                                         .mode = IR_MODE_PROMISE});
}

// x as a square of n: its first rows and columns, and below or beside them those of the unit matrix.
static ir_id make_square(struct ir_builder *b, ir_id x, int64_t n)
{
    int64_t zeros[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    int rank = ir_type_in(b, x).rank;
    int64_t rows = rule_rows(b, x), columns = rule_columns(b, x);
    int64_t k = rows < columns ? rows : columns; // where the unit matrix goes on
    high[rank - 2] = n - rows;
    high[rank - 1] = n - columns;
    x = ir_pad(b, x, ir_scalar_like(b, x, 0), zeros, high, zeros);
    struct ir_type t = ir_type_with(ir_type_in(b, x), JOT_I64);
    ir_id behind = ir_ge(b, ir_iota(b, t, rank - 2), ir_scalar_int(b, JOT_I64, k));
    return ir_select(b, ir_and(b, behind, rule_compare(b, IR_eq, x, 0)),
                     ir_scalar_like(b, x, 1), x);
}

// With s = l^-1 p da u^-1:  dl = l (s below the diagonal),  du = (the rest of s) u.  Of matrices
// that are not square l and u are continued by the unit matrix.
void jvp_lu(struct jvp *c)
{
    int64_t rows = rule_rows(B, Y), columns = rule_columns(B, Y);
    int64_t k = rows < columns ? rows : columns;
    struct ir_triangular by_l = {.left = true, .lower = true, .unit_diagonal = true};
    struct ir_triangular by_u = {.left = false};
    if (k == 0) // no row to take
        return;
    ir_id l = make_square(B, rule_lower(B, rule_resize(B, Y, rows, k), -1), rows);
    ir_id u = make_square(B, rule_upper(B, rule_resize(B, Y, k, columns), 0), columns);
    l = ir_select(B, rule_compare(B, IR_eq, l, 0), ir_scalar_like(B, l, 1), l);
    ir_id s = ir_triangular_solve(B, l, take_rows(B, c->dx[0], c->y[2]), &by_l);
    s = ir_triangular_solve(B, u, s, &by_u);
    c->dy[0] = ir_add(B, rule_product(B, l, rule_lower(B, s, -1)),
                      rule_product(B, rule_upper(B, s, 0), u));
}

void batch_lu(struct batch *c)
{
    ir_id first = ir_lu(B, c->x[0]);
    for (uint32_t i = 0; i < 3; i++)
        c->y[i] = first == IR_NONE ? IR_NONE : first + i;
}

// ---- Triangular systems

// -a^-1 da x, or -x da a^-1, by the products and solutions that cost least.
static ir_id tangent_of_triangle(struct jvp *c, const struct ir_triangular *t)
{
    int64_t k = t->unit_diagonal;
    int64_t rows = rule_rows(B, Y), columns = rule_columns(B, Y);
    ir_id a = c->x[0], da = c->dx[0];
    da = ir_neg(B, t->lower ? rule_lower(B, da, -k) : rule_upper(B, da, k));
    da = t->transposed ? rule_transpose(B, da) : da;
    if (t->conjugated && dtype_is_complex(ir_dtype(ir_type_in(B, da))))
        da = ir_conj(B, da);
    if (t->left)
        return rows > columns ? ir_triangular_solve(B, a, rule_product(B, da, Y), t)
                              : rule_product(B, ir_triangular_solve(B, a, da, t), Y);
    return rows < columns ? ir_triangular_solve(B, a, rule_product(B, Y, da), t)
                          : rule_product(B, Y, ir_triangular_solve(B, a, da, t));
}

void jvp_triangular_solve(struct jvp *c)
{
    struct ir_triangular t = ir_triangular_of(c->n.attrs);
    if (c->dx[0] != IR_NONE)
        c->dy[0] = tangent_of_triangle(c, &t);
    if (c->dx[1] != IR_NONE)
        c->dy[0] = rule_sum(B, c->dy[0], ir_triangular_solve(B, c->x[0], c->dx[1], &t));
}

void transpose_triangular_solve(struct transpose *c)
{
    struct ir_triangular t = ir_triangular_of(c->n->attrs);
    if (transpose_is_linear(c, 0)) {
        transpose_none(c);
        return;
    }
    t.transposed = !t.transposed;
    transpose_give(c, 1, ir_triangular_solve(B, c->x[0], c->ct[0], &t));
}

// With one matrix for all lanes their right sides are columns of one, or rows: axis 0 goes beside
// the axis `at` of those of a lane, and back.
static ir_id fold_lanes(struct batch *c, int at)
{
    int64_t axes[IR_MAX_RANK], dims[IR_MAX_RANK];
    struct ir_type t = ir_type_in(B, c->x[1]), lane = batch_type(c, 1);
    for (int i = 0; i < t.rank; i++)
        axes[i] = i < at ? i + 1 : i == at ? 0 : i;
    memcpy(dims, ir_dims(B->module, lane), sizeof *dims * lane.rank);
    dims[at] *= c->size;
    return ir_reshape(B, ir_transpose(B, c->x[1], axes), lane.rank, dims);
}

static ir_id unfold_lanes(struct batch *c, ir_id x, int at)
{
    int64_t axes[IR_MAX_RANK], dims[IR_MAX_RANK];
    struct ir_type lane = batch_type(c, 1);
    const int64_t *old = ir_dims(B->module, lane);
    for (int i = 0; i <= lane.rank; i++) {
        dims[i] = i < at ? old[i] : i == at ? c->size : old[i - 1];
        axes[i] = i == 0 ? at : i <= at ? i - 1 : i;
    }
    return ir_transpose(B, ir_reshape(B, x, lane.rank + 1, dims), axes);
}

void batch_triangular_solve(struct batch *c)
{
    struct ir_triangular t = ir_triangular_of(c->n->attrs);
    int at = batch_type(c, 1).rank - (t.left ? 1 : 2);
    if (c->batched[0])
        c->y[0] = ir_triangular_solve(B, c->x[0], batch_materialise(c, 1), &t);
    else
        c->y[0] = unfold_lanes(c, ir_triangular_solve(B, c->x[0], fold_lanes(c, at), &t), at);
}

// ---- Tridiagonal systems

// x along an axis from first to end, with zeros in front and behind.
static ir_id shift(struct ir_builder *b, ir_id x, int axis, int64_t by)
{
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, none[IR_MAX_RANK] = {0};
    low[axis] = by;
    high[axis] = -by;
    return ir_pad(b, x, ir_scalar_like(b, x, 0), low, high, none);
}

// A diagonal as a column that scales the rows of x, or of x moved along its rows.
static ir_id scale_rows(struct ir_builder *b, ir_id diagonal, ir_id x, int64_t by)
{
    int64_t dims[IR_MAX_RANK];
    if (diagonal == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, diagonal);
    memcpy(dims, ir_dims(b->module, t), sizeof *dims * t.rank);
    dims[t.rank] = 1;
    ir_id moved = by ? shift(b, x, t.rank - 1, by) : x;
    return ir_mul(b, ir_reshape(b, diagonal, t.rank + 1, dims), moved);
}

// dx = a^-1 (db - da x)
void jvp_tridiagonal_solve(struct jvp *c)
{
    ir_id moved = IR_NONE;
    for (int i = 0; i < 3; i++)
        moved = rule_sum(B, moved, scale_rows(B, c->dx[i], Y, 1 - i));
    ir_id right = moved == IR_NONE ? c->dx[3] : rule_sum(B, c->dx[3], ir_neg(B, moved));
    c->dy[0] = ir_tridiagonal_solve(B, c->x[0], c->x[1], c->x[2], right);
}

void transpose_tridiagonal_solve(struct transpose *c)
{
    for (uint32_t i = 0; i < 3; i++)
        if (transpose_is_linear(c, i)) {
            transpose_none(c);
            return;
        }
    int axis = ir_type_in(B, c->x[0]).rank - 1;
    transpose_give(c, 3,
                   ir_tridiagonal_solve(B, shift(B, c->x[2], axis, 1), c->x[1],
                                        shift(B, c->x[0], axis, -1), c->ct[0]));
}

void batch_tridiagonal_solve(struct batch *c)
{
    ir_id x[4];
    for (uint32_t i = 0; i < 4; i++)
        x[i] = batch_materialise(c, i);
    c->y[0] = ir_tridiagonal_solve(B, x[0], x[1], x[2], x[3]);
}
