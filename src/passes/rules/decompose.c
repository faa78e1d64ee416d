// SPDX-License-Identifier: Apache-2.0
// Derivatives and batching of decompositions.
//
// Where eigenvalues or singular values are equal, single vectors are not determined and have no
// derivative, but what depends only on the space they span has.  So parts that are divided by a gap
// that is 0 are left out, which is right for such functions, and reverse mode, which sees the
// function, gives NaN for others.
#include "ir/linalg.h"
#include "passes/rules/matrix.h"
#include "passes/rules/rules.h"

#include <math.h>
#include <string.h>

#define B c->b
#define DX c->dx[0]
#define Y(i) c->y[i]

static double epsilon_of(struct ir_builder *b, ir_id x)
{
    return dtype_real(ir_dtype(ir_type_in(b, x))) == JOT_F32 ? 0x1p-23 : 0x1p-52;
}

static ir_id scaled(struct ir_builder *b, ir_id x, double by)
{
    return x == IR_NONE ? x : ir_mul(b, x, ir_scalar_like(b, x, by));
}

// The largest modulus of the last n axes, which stay with size 1; 0 of none.
static ir_id largest(struct ir_builder *b, ir_id x, int n)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t axes[2], dims[IR_MAX_RANK], count = 1;
    memcpy(dims, ir_dims(b->module, t), t.rank * sizeof *dims);
    for (int i = 0; i < n; i++) {
        axes[i] = t.rank - n + i;
        count *= dims[axes[i]];
        dims[axes[i]] = 1;
    }
    if (!count)
        return ir_zeros(b, ir_type_make(b->module, dtype_real(ir_dtype(t)), t.rank, dims));
    return ir_reshape(b, ir_reduce(b, IR_reduce_max, ir_abs(b, x), n, axes), t.rank, dims);
}

// ---- Division by gaps

// What cotangents of x / 0 must be for functions of spaces alone: x is Hermitian or skew in the sense
// that its quotient is skew and so only the skew part of the cotangent counts; or all of it counts.
enum gauge { GAUGE_SKEW, GAUGE_ALL };

static ir_id quotient(struct ir_builder *b, ir_id x, ir_id gap, ir_id otherwise)
{
    ir_id is_zero = ir_eq(b, gap, ir_scalar_like(b, gap, 0));
    return ir_select(b, is_zero, otherwise, ir_div(b, x, rule_replace_zero(b, gap)));
}

// NaN where what counts of the cotangent is more than rounding errors, and else 0.
static ir_id complaint(struct ir_builder *b, ir_id ct, enum gauge gauge)
{
    ir_id counts = ct;
    if (gauge == GAUGE_SKEW)
        counts =
            rule_keep(b, rule_compare(b, IR_ne, ct, 0), ir_sub(b, ct, rule_adjoint(b, ct)));
    ir_id most = scaled(b, largest(b, ct, 2), sqrt(epsilon_of(b, ct)));
    return ir_select(b, ir_gt(b, ir_abs(b, counts), most), ir_scalar_like(b, ct, NAN),
                     ir_scalar_like(b, ct, 0));
}

// x / gap, 0 where the gap is 0, as a linear function with a transpose of its own.
static ir_id divide(struct ir_builder *b, ir_id x, ir_id gap, enum gauge gauge)
{
    uint32_t functions[2];
    if (x == IR_NONE || gap == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    gap = rule_broadcast_to(b, gap, ir_type_with(t, ir_dtype(ir_type_in(b, gap))));
    gap = ir_convert(b, gap, ir_dtype(t));
    for (int i = 0; i < 2; i++) {
        struct ir_builder f =
            ir_builder_make(b->module, i ? "undivide" : "divide", IR_BUILD_PLAIN);
        ir_id by = ir_param(&f, t), v = ir_param(&f, t);
        ir_output(&f,
                  quotient(&f, v, by, i ? complaint(&f, v, gauge) : ir_scalar_like(&f, v, 0)));
        functions[i] = ir_finish_function(&f);
        if (functions[i] == IR_NONE)
            return ir_fail(b, f.status, "%s", f.message);
    }
    return ir_linear_call(b, functions[0], functions[1], 1, 2, (ir_id[]){gap, x});
}

// w_j - w_i, 0 where that is within the errors of the values.
static ir_id gaps(struct ir_builder *b, ir_id w, enum ir_op op)
{
    ir_id d = ir_map2(b, op, rule_row(b, w), rule_column(b, w));
    if (d == IR_NONE)
        return d;
    double errors = epsilon_of(b, w) * (double)rule_columns(b, w);
    ir_id least = scaled(b, rule_row(b, largest(b, w, 1)), errors);
    return rule_keep(b, ir_gt(b, ir_abs(b, d), least), d);
}

// ---- Rules

// With X = Q^H dA R^-1, the skew matrix W = Q^H dQ has the lower triangle of X and the imaginary
// parts of its diagonal, for that of R is real: dQ = Q W, and what dA R^-1 has outside of the space of
// Q; dR = Q^H dA - W R.  Only the first columns of a wide A and its R determine Q.  The columns that
// complete Q turn as little as they can (Roberts, Roberts, arXiv:2009.10071, and for the full Q
// arXiv:2409.13374).
void jvp_qr(struct jvp *c)
{
    ir_id q = Y(0), r = Y(1);
    int64_t m = rule_rows(B, q), columns = rule_columns(B, q), n = rule_columns(B, r);
    int64_t k = m < n ? m : n;
    ir_id y = ir_triangular_solve(B, rule_resize(B, r, k, k), rule_resize(B, DX, m, k),
                                  &(struct ir_triangular){.lower = false});
    ir_id x = rule_product(B, rule_adjoint(B, q), y);
    ir_id whole = rule_resize(B, x, columns, columns), low = rule_lower(B, whole, -1);
    ir_id w = ir_sub(B, low, rule_adjoint(B, low));
    if (w != IR_NONE && dtype_is_complex(ir_dtype(ir_type_in(B, w)))) {
        ir_id imaginary = scaled(B, ir_sub(B, whole, ir_conj(B, whole)), 0.5);
        w = ir_add(B, w, rule_keep(B, rule_compare(B, IR_eq, w, 0), imaginary));
    }
    c->dy[0] = rule_product(B, q, w);
    if (columns < m)
        c->dy[0] = ir_add(B, c->dy[0], ir_sub(B, y, rule_product(B, q, x)));
    ir_id dr = ir_sub(B, rule_product(B, rule_adjoint(B, q), DX), rule_product(B, w, r));
    c->dy[1] = rule_upper(B, dr, 0);
}

// With G = V^H dA V, dw is its diagonal and dV = V (G_ij / (w_j - w_i)).
void jvp_eigh(struct jvp *c)
{
    ir_id w = Y(0), v = Y(1);
    // The op reads the lower triangle.
    ir_id low = rule_lower(B, DX, -1), all = ir_add(B, low, rule_adjoint(B, low));
    ir_id diagonal = rule_keep(B, rule_compare(B, IR_eq, DX, 0), DX);
    if (dtype_is_complex(ir_dtype(ir_type_in(B, v))))
        diagonal = scaled(B, ir_add(B, diagonal, ir_conj(B, diagonal)), 0.5);
    ir_id g = rule_product(B, rule_adjoint(B, v), rule_product(B, ir_add(B, all, diagonal), v));
    ir_id d = rule_diagonal(B, g);
    c->dy[0] = dtype_is_complex(ir_dtype(ir_type_in(B, v))) ? ir_real(B, d) : d;
    c->dy[1] = rule_product(B, v, divide(B, g, gaps(B, w, IR_sub), GAUGE_SKEW));
}

// (I - U U^H) X / s.
static ir_id outside(struct ir_builder *b, ir_id u, ir_id x, ir_id s)
{
    x = divide(b, x, rule_row(b, s), GAUGE_ALL);
    return ir_sub(b, x, rule_product(b, u, rule_product(b, rule_adjoint(b, u), x)));
}

static ir_id columns_from(struct ir_builder *b, ir_id x, int64_t first)
{
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0};
    starts[t.rank - 1] = first;
    return ir_slice(b, x, starts, ir_dims(b->module, t), NULL);
}

// What becomes of all columns of the unitary Q when its first ones, U, move by dU: the others move as
// little as they can, by -U dU^H times them, and not among themselves, which are as free as vectors of
// equal values: dX stands for what would be divided by a gap of 0.
static ir_id completed(struct ir_builder *b, ir_id q, ir_id u, ir_id du, ir_id dx)
{
    int64_t m = rule_rows(b, q);
    ir_id rest = columns_from(b, q, rule_columns(b, u)), adjoint = rule_adjoint(b, rest);
    ir_id among = rule_product(b, adjoint, rule_product(b, rule_resize(b, dx, m, m), rest));
    if (among == IR_NONE || du == IR_NONE)
        return IR_NONE;
    among = divide(b, among, ir_zeros(b, ir_type_in(b, among)), GAUGE_SKEW);
    ir_id back = rule_product(b, u, rule_product(b, rule_adjoint(b, du), rest));
    ir_id both[] = {du, ir_sub(b, rule_product(b, rest, among), back)};
    return ir_concatenate(b, 2, both, ir_type_in(b, du).rank - 1);
}

// The sum over rows of conj(x) y, as one row.
static ir_id column_products(struct ir_builder *b, ir_id x, ir_id y)
{
    if (x == IR_NONE)
        return x;
    bool is_complex = dtype_is_complex(ir_dtype(ir_type_in(b, x)));
    ir_id xy = ir_mul(b, is_complex ? ir_conj(b, x) : x, y);
    if (xy == IR_NONE)
        return xy;
    int64_t rows = ir_type_in(b, xy).rank - 2;
    return rule_row(b, ir_reduce(b, IR_reduce_sum, xy, 1, &rows));
}

// The first k of the last axis.
static ir_id first_of(struct ir_builder *b, ir_id x, int64_t k)
{
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, t), (size_t)t.rank * sizeof *limits);
    limits[t.rank - 1] = k;
    return ir_slice(b, x, starts, limits, NULL);
}

// With dS = U^H dA V = H + K, Hermitian and skew: ds is the diagonal of H, and with
// E_ij = H_ij / (s_j - s_i) and P_ij = K_ij / (s_j + s_i), dU = U (E + P) and dV = V (E - P).  (The
// usual form of this divides by s_j^2 - s_i^2, which overflows first.)  A matrix that is not square
// adds what dA has outside of the space of U or V, and its square factors more columns.  The first
// vectors move towards all others: they are found for it, and turned by the phases of those that
// move, which may have come another way.
void jvp_svd(struct jvp *c)
{
    int64_t mode = ir_attr_int_or(c->n.attrs, IR_KEY_mode, 0);
    int64_t m = rule_rows(B, c->x[0]), n = rule_columns(B, c->x[0]);
    int64_t k = m < n ? m : n;
    bool is_whole = mode == 1 || mode == 2;
    ir_id all = is_whole ? Y(0) : ir_decompose(B, IR_svd, c->x[0], 1);
    if (all == IR_NONE)
        return;
    ir_id s = all, u = rule_resize(B, all + 1, m, k);
    ir_id v = rule_adjoint(B, rule_resize(B, all + 2, k, n));
    ir_id dav = rule_product(B, DX, v), ds = rule_product(B, rule_adjoint(B, u), dav);
    ir_id d = rule_diagonal(B, ds), adjoint = rule_adjoint(B, ds);
    c->dy[0] = d != IR_NONE && dtype_is_complex(ir_dtype(ir_type_in(B, d))) ? ir_real(B, d) : d;
    if (!mode)
        return;
    ir_id e = divide(B, scaled(B, ir_add(B, ds, adjoint), 0.5), gaps(B, s, IR_sub), GAUGE_SKEW);
    ir_id p = divide(B, scaled(B, ir_sub(B, ds, adjoint), 0.5), gaps(B, s, IR_add), GAUGE_SKEW);
    ir_id du = rule_product(B, u, ir_add(B, e, p)), dv = rule_product(B, v, ir_sub(B, e, p));
    ir_id least = scaled(B, largest(B, s, 1), epsilon_of(B, s) * (double)(m > n ? m : n));
    ir_id sure = rule_keep(B, ir_gt(B, s, least), s);
    if (m > n)
        du = ir_add(B, du, outside(B, u, dav, sure));
    if (n > m)
        dv = ir_add(B, dv, outside(B, v, rule_product(B, rule_adjoint(B, DX), u), sure));
    if (mode == 2 && m > n)
        du = completed(B, Y(1), u, du, DX);
    if (mode == 2 && n > m)
        dv = completed(B, rule_adjoint(B, Y(2)), v, dv, rule_adjoint(B, DX));
    if (mode == 3) {
        int64_t first = rule_columns(B, Y(1));
        ir_id phases = column_products(B, first_of(B, u, first), Y(1));
        c->dy[0] = first_of(B, c->dy[0], first);
        du = ir_mul(B, first_of(B, du, first), phases);
        dv = ir_mul(B, first_of(B, dv, first), phases);
    }
    c->dy[1] = du;
    c->dy[2] = rule_adjoint(B, dv);
}

// What keeps columns of v, which change by dv, of length 1 and their largest elements real.
static ir_id keep_normal(struct ir_builder *b, ir_id v, ir_id dv)
{
    if (dv == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, v);
    ir_id at = rule_row(b, ir_arg(b, IR_argmax, ir_abs(b, v), t.rank - 2, JOT_I64));
    ir_id is_largest = ir_eq(b, ir_iota(b, ir_type_with(t, JOT_I64), t.rank - 2), at);
    ir_id top = rule_keep(b, is_largest, v);
    ir_id turn =
        ir_imag(b, ir_div(b, column_products(b, top, dv), column_products(b, top, top)));
    ir_id grow = ir_real(b, column_products(b, v, dv));
    return ir_sub(b, dv, ir_mul(b, v, ir_complex(b, grow, turn)));
}

// The tangent of vectors v, normalised as v is, whose coefficients in v are these but for the gaps of w.
static ir_id eigenvectors(struct ir_builder *b, ir_id v, ir_id coefficients, ir_id w)
{
    ir_id moved = divide(b, coefficients, gaps(b, w, IR_sub), GAUGE_ALL);
    return keep_normal(b, v, rule_product(b, v, moved));
}

// With left vectors U, the right ones of A^H, and C = U^H dA V / (u_i^H v_i), dw is the diagonal of C
// and dV = V (C_ij / (w_j - w_i)).
void jvp_eig(struct jvp *c)
{
    ir_id both = ir_decompose(B, IR_eig, c->x[0], 2);
    if (both == IR_NONE || rule_rows(B, both + 1) == 0)
        return;
    ir_id w = both, u = both + 1, v = both + 2;
    ir_id da = ir_convert(B, DX, ir_dtype(ir_type_in(B, v)));
    ir_id g = rule_product(B, rule_adjoint(B, u), rule_product(B, da, v));
    ir_id norms = rule_transpose(B, column_products(B, u, v));
    ir_id coefficients = ir_div(B, g, norms);
    c->dy[0] = rule_diagonal(B, coefficients);
    int last = (int)c->n.n_out - 1;
    if (last > 0)
        c->dy[last] = eigenvectors(B, v, coefficients, w);
    if (last == 2)
        c->dy[1] =
            eigenvectors(B, u, ir_div(B, rule_adjoint(B, g), ir_conj(B, norms)), ir_conj(B, w));
}

void jvp_schur(struct jvp *c)
{
    rule_refuse(B, "schur has no derivative: those of eigenvalues and eigenvectors are "
                   "jot_eig's, and functions of a matrix have theirs, such as jot_expm");
}

// The axes of matrices are the last ones.
void batch_matrices(struct batch *c)
{
    ir_id y = ir_build(B, (enum ir_op)c->n->op, 1, c->x, c->n->attrs);
    for (uint32_t i = 0; i < c->n->n_out && y != IR_NONE; i++)
        c->y[i] = y + i;
}
