// SPDX-License-Identifier: Apache-2.0
// Derivative rules of elementwise arithmetic and elementary functions.
//
// The formula stands first: d f is the tangent of the result, dx and dy those of the operands, f
// the result itself.  In a transpose, ct is the cotangent of the result.  Products and quotients of
// tangents and cotangents are mul_z and guard (passes/derive/support.c): what is zero because a path was
// not taken stays zero whatever it meets.
#include "passes/rules/formulas.h"

static ir_id square(struct jvp *c, ir_id x) { return ir_mul(B, x, x); }

static bool is_complex(struct jvp *c) { return dtype_is_complex(ir_dtype(ir_type_in(B, X))); }

static bool has_fma(struct jvp *c)
{
    jot_dtype d = ir_dtype(ir_type_in(B, X));
    return d == JOT_F32 || d == JOT_F64;
}

// 1 - v^2, in f32 and f64 rounded once.
static ir_id one_less_square(struct jvp *c, ir_id v)
{
    return has_fma(c) ? ir_fma(B, ir_neg(B, v), v, num(c, 1))
                      : ir_sub(B, num(c, 1), square(c, v));
}

// d f = f(d...): zeros stand for missing tangents.
void jvp_linear(struct jvp *c)
{
    struct ir_type type = ir_type_in(B, F);
    if ((c->n.op == IR_add || c->n.op == IR_sub) && (DX == IR_NONE || DY == IR_NONE)) {
        ir_id t = DX != IR_NONE ? DX : c->n.op == IR_add ? DY : ir_neg(B, DY);
        c->dy[0] = rule_broadcast_to(B, t, type);
        return;
    }
    ir_id *t = arena_array(B->module->arena, ir_id, c->n.n_in);
    for (uint32_t i = 0; i < c->n.n_in; i++)
        t[i] = c->dx[i] != IR_NONE ? c->dx[i] : rule_zeros_like(B, c->x[i]);
    c->dy[0] = ir_build(B, c->n.op, (int)c->n.n_in, t, c->n.attrs);
}

static bool is_negative(const struct ir_graph *g, ir_id x, ir_id y)
{
    const struct ir_node *n = ir_node_of(g, x);
    return n->op == IR_neg && ir_operand(g, n, 0) == y;
}

// Whether y is x or -x, and dy likewise, so that d (x y) = dy (x + x), one product in place of two.
static bool is_square(const struct jvp *c)
{
    const struct ir_graph *g = B->graph;
    if (DX == IR_NONE || DY == IR_NONE)
        return false;
    return (X == Y && DX == DY) || (is_negative(g, X, Y) && is_negative(g, DX, DY)) ||
           (is_negative(g, Y, X) && is_negative(g, DY, DX));
}

// d f(x, y) = f(dx, y) + f(x, dy)
void jvp_bilinear(struct jvp *c)
{
    if (c->n.op == IR_mul && is_square(c)) {
        add_product(c, DY, ir_add(B, X, X));
        return;
    }
    for (int i = 0; i < 2; i++) {
        ir_id in[] = {i == 0 ? DX : X, i == 1 ? DY : Y};
        if (c->dx[i] == IR_NONE)
            continue;
        ir_id t = c->n.op == IR_mul ? ir_mul_z(B, c->dx[i], c->x[1 - i])
                                    : ir_build(B, c->n.op, 2, in, c->n.attrs);
        c->dy[0] = rule_sum(B, c->dy[0], t);
    }
}

// d mul_z(x, y) = mul_z(dx, y) + mul_z(dy, x), which is zero as well where x is without a term
void jvp_mul_z(struct jvp *c)
{
    if (DX != IR_NONE)
        c->dy[0] = ir_mul_z(B, DX, Y);
    if (DY != IR_NONE)
        c->dy[0] = rule_sum(B, c->dy[0], ir_guard(B, X, ir_mul_z(B, DY, X)));
}

// d guard(x, y) = guard(x, dy)
void jvp_guard(struct jvp *c)
{
    if (DY != IR_NONE)
        c->dy[0] = ir_guard(B, X, DY);
}

// d exp(x) = dx exp(x)
void jvp_exp(struct jvp *c) { add_product(c, DX, F); }

// d 2^x = dx log(2) 2^x
void jvp_exp2(struct jvp *c)
{
    add_product(c, DX, ir_mul(B, num(c, 0.69314718055994530942), F));
}

// d expm1(x) = dx exp(x); expm1(x) + 1 would cancel far below 0
void jvp_expm1(struct jvp *c) { add_product(c, DX, ir_exp(B, X)); }

// x less the nearest even number, which is exact
static ir_id less_turns(struct jvp *c, ir_id x)
{
    ir_id half = ir_round_even(B, ir_mul(B, num(c, 0.5), x));
    return ir_sub(B, x, ir_add(B, half, half));
}

// d sinc(x) = dx (cos(pi x) - sinc(x)) / x, and near 0, where that cancels, its Taylor polynomial
// -pi^2 x/3 + pi^4 x^3/30 - ..., which has derivatives of its own.
void jvp_sinc(struct jvp *c)
{
    const double pi = 3.14159265358979323846;
    ir_id z = ir_mul(B, num(c, pi), X), zz = ir_mul(B, z, z), near = num(c, 0);
    double factorial = 1;
    for (int k = 1; k <= 25; k++)
        factorial *= k;
    for (int k = 12; k >= 1; k--) { // 2k / (2k + 1)! (-1)^k z^(2k - 1)
        near = ir_add(B, ir_mul(B, near, zz), num(c, (k % 2 ? -2.0 : 2.0) * k / factorial));
        factorial /= (2 * k + 1) * (2 * k);
    }
    near = ir_mul(B, ir_mul(B, near, z), num(c, pi));
    ir_id size = ir_abs(B, X), is_near = ir_lt(B, size, ir_scalar_like(B, size, 0.5));
    ir_id safe = ir_select(B, is_near, ir_full(B, ir_type_in(B, X), 1), X);
    ir_id rest = is_complex(c) ? safe : less_turns(c, safe);
    ir_id far = ir_div(B, ir_sub(B, ir_cos(B, ir_mul(B, num(c, pi), rest)), F), safe);
    add_product(c, DX, ir_select(B, is_near, near, far));
}

// d log(x) = dx / x
void jvp_log(struct jvp *c) { c->dy[0] = rule_quotient(B, DX, X); }

// d log2(x) = dx / x log2(e)
void jvp_log2(struct jvp *c)
{
    c->dy[0] = ir_mul(B, rule_quotient(B, DX, X), num(c, 1.4426950408889634074));
}

// d log1p(x) = dx / (x + 1)
void jvp_log1p(struct jvp *c) { c->dy[0] = rule_quotient(B, DX, ir_add(B, X, num(c, 1))); }

// d sqrt(x) = dx (1/2 / sqrt(x))
void jvp_sqrt(struct jvp *c) { add_product(c, DX, ir_div(B, num(c, 0.5), F)); }

// d rsqrt(x) = dx (-1/2 (rsqrt(x) / x))
void jvp_rsqrt(struct jvp *c) { add_product(c, DX, ir_mul(B, num(c, -0.5), ir_div(B, F, X))); }

// d cbrt(x) = dx 1/3 cbrt(x)^-2
void jvp_cbrt(struct jvp *c)
{
    add_product(c, DX, ir_mul(B, num(c, 1.0 / 3), ir_integer_pow(B, F, -2)));
}

// d sin(x) = dx cos(x)
void jvp_sin(struct jvp *c) { add_product(c, DX, ir_cos(B, X)); }

// d cos(x) = -(dx sin(x))
void jvp_cos(struct jvp *c) { c->dy[0] = ir_neg(B, ir_mul_z(B, DX, ir_sin(B, X))); }

// d tan(x) = dx (1 + tan(x)^2)
void jvp_tan(struct jvp *c) { add_product(c, DX, ir_add(B, num(c, 1), square(c, F))); }

// d cospi(x) = -(dx pi sin(pi x)), and sin(pi x) = cospi(n) sin(pi (x - n)) of the integer n next to x
void jvp_cospi(struct jvp *c)
{
    const double pi = 3.14159265358979323846;
    ir_id n = ir_round_even(B, X);
    ir_id sine = ir_sin(B, ir_mul(B, num(c, pi), ir_sub(B, X, n)));
    add_product(c, DX, ir_mul(B, ir_mul(B, num(c, -pi), ir_map1(B, IR_cospi, n)), sine));
}

// d asin(x) = dx rsqrt(1 - x^2)
void jvp_asin(struct jvp *c) { add_product(c, DX, ir_rsqrt(B, one_less_square(c, X))); }

// d acos(x) = -(dx rsqrt(1 - x^2))
void jvp_acos(struct jvp *c)
{
    jvp_asin(c);
    c->dy[0] = ir_neg(B, c->dy[0]);
}

// d atan(x) = dx / (1 + x^2): real, inversion(1, x), whose derivatives do not underflow
void jvp_atan(struct jvp *c)
{
    if (is_complex(c))
        c->dy[0] = rule_quotient(B, DX, ir_add(B, num(c, 1), square(c, X)));
    else
        add_product(c, DX, ir_inversion(B, num(c, 1), X));
}

// d sinh(x) = dx cosh(x)
void jvp_sinh(struct jvp *c) { add_product(c, DX, ir_cosh(B, X)); }

// d cosh(x) = dx sinh(x)
void jvp_cosh(struct jvp *c) { add_product(c, DX, ir_sinh(B, X)); }

// d tanh(x) = dx (1 - tanh(x)^2), rounded once, or (dx + dx tanh(x)) (1 - tanh(x)), which cancels
// little.
void jvp_tanh(struct jvp *c)
{
    if (has_fma(c))
        add_product(c, DX, one_less_square(c, F));
    else
        add_product(c, ir_add(B, DX, ir_mul_z(B, DX, F)), ir_sub(B, num(c, 1), F));
}

// d asinh(x) = dx rsqrt(x^2 + 1): real, direction(1, x), which does not overflow
void jvp_asinh(struct jvp *c)
{
    add_product(c, DX,
                is_complex(c) ? ir_rsqrt(B, ir_add(B, square(c, X), num(c, 1)))
                              : ir_direction(B, num(c, 1), X));
}

// d acosh(x) = dx rsqrt(x^2 - 1): real, of the factors of that, which do not overflow
void jvp_acosh(struct jvp *c)
{
    ir_id one = num(c, 1);
    if (is_complex(c))
        add_product(c, DX, ir_rsqrt(B, ir_sub(B, square(c, X), one)));
    else
        add_product(c, DX,
                    ir_mul(B, ir_rsqrt(B, ir_sub(B, X, one)), ir_rsqrt(B, ir_add(B, X, one))));
}

// d atanh(x) = dx / (1 - x^2)
void jvp_atanh(struct jvp *c) { c->dy[0] = rule_quotient(B, DX, one_less_square(c, X)); }

// d logistic(x) = dx logistic(x) (1 - logistic(x))
void jvp_logistic(struct jvp *c) { add_product(c, DX, ir_mul(B, F, ir_sub(B, num(c, 1), F))); }

// d erf_inv(x) = dx sqrt(pi)/2 exp(erf_inv(x)^2)
void jvp_erf_inv(struct jvp *c)
{
    add_product(c, DX, ir_mul(B, num(c, 0.88622692545275801365), ir_exp(B, square(c, F))));
}

// d x^n = dx n x^(n-1), of n < 0 dx n (x^n / x), for x^(1-n) may overflow; x^0 is constant.
void jvp_integer_pow(struct jvp *c)
{
    int64_t n = ir_attr_int(c->n.attrs, IR_KEY_exponent);
    if (n == 1)
        c->dy[0] = DX;
    else if (n != 0)
        add_product(c, DX,
                    ir_mul(B, num(c, (double)n),
                           n < 0    ? ir_div(B, F, X)
                           : n == 2 ? X
                                    : ir_integer_pow(B, X, n - 1)));
}

// d |x| = dx if x >= 0, -dx if not; complex: Re(dx conj(x) / |x|), and 0 at 0
void jvp_abs(struct jvp *c)
{
    if (!dtype_is_complex(ir_dtype(ir_type_in(B, X)))) {
        c->dy[0] = ir_select(B, ir_ge(B, X, num(c, 0)), DX, ir_neg(B, DX));
        return;
    }
    ir_id size = ir_convert(B, rule_replace_zero(B, F), ir_dtype(ir_type_in(B, X)));
    c->dy[0] = ir_real(B, ir_mul_z(B, DX, ir_div(B, ir_conj(B, X), size)));
}

// d (x / y) = dx / y - (dy / y) (x / y), whose factors are numbers where it is one
void jvp_div(struct jvp *c)
{
    if (DX != IR_NONE)
        c->dy[0] = rule_quotient(B, DX, Y);
    if (DY != IR_NONE)
        add_product(c, ir_neg(B, rule_quotient(B, DY, Y)), F);
}

// d rem(x, y) = dx - dy n, where x - rem(x, y) is n y
void jvp_rem(struct jvp *c)
{
    c->dy[0] = rule_broadcast_to(B, DX, ir_type_in(B, F));
    if (DY != IR_NONE)
        add_product(c, ir_neg(B, DY), ir_round_even(B, ir_div(B, ir_sub(B, X, F), Y)));
}

// The slope and what is 0 at x = 0 and y = 0 or 1, with an infinite slope in one of the two,
// and else -0.  The slopes of x^y are numbers there, but theirs, x^(y-1) (1 + y log(x)), are
// infinite.
static ir_id with_corner(struct jvp *c, ir_id slope, bool in_y)
{
    if (is_complex(c) || rule_is_nonzero_number(B->graph, X) ||
        rule_is_nonzero_number(B->graph, Y))
        return slope;
    ir_id zero = num(c, 0), one = num(c, 1), is_one = ir_eq(B, Y, one);
    ir_id rest = ir_sub(B, Y, ir_select(B, is_one, one, zero));
    ir_id at = ir_and(B, ir_eq(B, X, zero), ir_eq(B, rest, zero));
    ir_id root = ir_sqrt(B, ir_select(B, at, in_y ? rest : ir_abs(B, X), one));
    root = ir_select(B, is_one, ir_neg(B, root), root);
    return ir_add(B, slope, ir_select(B, at, root, num(c, -0.0)));
}

// y x^(y-1), with x^0 at 0 as 1: 0 times it is 0, and a whole power of x has all its
// derivatives there.  Of |y| < 1/2, for which y - 1 is rounded, y x^y / x, unless x is 0 or
// infinite.
static ir_id power_slope(struct jvp *c)
{
    ir_id one = num(c, 1), zero = num(c, 0), half = num(c, 0.5), size = ir_abs(B, Y);
    ir_id is_none = ir_and(B, ir_eq(B, X, zero), ir_eq(B, Y, zero)), less = ir_sub(B, Y, one);
    ir_id power = ir_mul(B, Y, ir_pow(B, ir_select(B, is_none, one, X), less));
    ir_id is_small = ir_and(B, ir_lt(B, size, ir_scalar_like(B, size, 0.5)),
                            ir_ne(B, X, ir_mul(B, X, half)));
    ir_id safe = ir_select(B, is_small, X, one);
    ir_id slope = ir_select(B, is_small, ir_div(B, ir_mul(B, Y, F), safe), power);
    return with_corner(c, slope, true);
}

// d x^y = dx y x^(y-1) + dy log(x) x^y, with log(0) taken as 0
void jvp_pow(struct jvp *c)
{
    if (DX != IR_NONE)
        add_product(c, DX, power_slope(c));
    if (DY == IR_NONE)
        return;
    ir_id slope = ir_mul(B, ir_log(B, rule_replace_zero(B, X)), F);
    add_product(c, DY, with_corner(c, slope, false));
}

// d hypot(x, y) = dx x/h + dy y/h
void jvp_hypot(struct jvp *c)
{
    if (DX != IR_NONE)
        add_product(c, DX, ir_direction(B, X, Y));
    if (DY != IR_NONE)
        add_product(c, DY, ir_direction(B, Y, X));
}

// d (x/h) = y/h (dx y/h - dy x/h) / h, h = hypot(x, y)
void jvp_direction(struct jvp *c)
{
    ir_id other = ir_direction(B, Y, X), slope = ir_div(B, other, ir_hypot(B, X, Y));
    if (DX != IR_NONE)
        add_product(c, DX, ir_mul(B, slope, other));
    if (DY != IR_NONE)
        add_product(c, ir_neg(B, DY), ir_mul(B, slope, F));
}

// d atan2(x, y) = dx y/(x^2 + y^2) - dy x/(x^2 + y^2)
void jvp_atan2(struct jvp *c)
{
    if (DX != IR_NONE)
        add_product(c, DX, ir_inversion(B, Y, X));
    if (DY != IR_NONE)
        add_product(c, ir_neg(B, DY), ir_inversion(B, X, Y));
}

// d i = dx (j^2 - i^2) - dy 2 i j, i = x/(x^2 + y^2), j = y/(x^2 + y^2)
void jvp_inversion(struct jvp *c)
{
    ir_id other = ir_inversion(B, Y, X);
    if (DX != IR_NONE)
        add_product(c, DX, ir_mul(B, ir_sub(B, other, F), ir_add(B, other, F)));
    if (DY != IR_NONE)
        add_product(c, ir_neg(B, DY), ir_mul(B, ir_add(B, F, F), other));
}

// d fma(x, y, z) = dx y + x dy + dz
void jvp_fma(struct jvp *c)
{
    bool square = is_square(c);
    if (DX != IR_NONE && !square)
        add_product(c, DX, Y);
    if (DY != IR_NONE)
        add_product(c, DY, square ? ir_add(B, X, X) : X);
    if (c->dx[2] != IR_NONE)
        c->dy[0] = rule_sum(B, c->dy[0], rule_broadcast_to(B, c->dx[2], ir_type_in(B, F)));
}

// d convert(x) = convert(dx) between floats and complex numbers; anything else is constant.
void jvp_convert(struct jvp *c) { c->dy[0] = ir_convert(B, DX, ir_dtype(ir_type_in(B, F))); }

// -- Transposes -------------------------------------------------------------------------------

#define CT c->ct[0]

void transpose_neg(struct transpose *c) { transpose_give(c, 0, ir_neg(B, CT)); }

void transpose_add(struct transpose *c)
{
    transpose_give(c, 0, CT);
    transpose_give(c, 1, CT);
}

void transpose_sub(struct transpose *c)
{
    transpose_give(c, 0, CT);
    if (transpose_is_linear(c, 1))
        transpose_give(c, 1, ir_neg(B, CT));
}

// Also of mul_z, whose first operand, when that is known, settles zeros of y as well.
void transpose_mul(struct transpose *c)
{
    if (transpose_is_linear(c, 0) && transpose_is_linear(c, 1)) {
        transpose_none(c);
        return;
    }
    if (transpose_is_linear(c, 0))
        transpose_give(c, 0, ir_mul_z(B, CT, Y));
    else if (c->n->op == IR_mul_z)
        transpose_give(c, 1, ir_guard(B, X, ir_mul_z(B, CT, X)));
    else
        transpose_give(c, 1, ir_mul_z(B, CT, X));
}

// Linear in y; a tangent x that is known settles zeros of the cotangent too.
void transpose_guard(struct transpose *c)
{
    transpose_give(c, 1, transpose_is_linear(c, 0) ? CT : ir_guard(B, X, CT));
}

// x y + z, linear in one of the factors at most.
void transpose_fma(struct transpose *c)
{
    if (transpose_is_linear(c, 0) && transpose_is_linear(c, 1)) {
        transpose_none(c);
        return;
    }
    if (transpose_is_linear(c, 0))
        transpose_give(c, 0, ir_mul_z(B, CT, Y));
    if (transpose_is_linear(c, 1))
        transpose_give(c, 1, ir_mul_z(B, CT, X));
    if (transpose_is_linear(c, 2))
        transpose_give(c, 2, CT);
}

// Whether v is the same along an axis of a result that it is an operand of.
static bool is_spread(const struct ir_builder *b, ir_id v, struct ir_type result)
{
    return ir_node_of(b->graph, v)->op == IR_broadcast_in_dim ||
           ir_count(b->module, ir_type_in(b, v)) != ir_count(b->module, result);
}

// x is linear in x / y.  Division by a number that cannot be zero needs no guard.
void transpose_div(struct transpose *c)
{
    if (transpose_is_linear(c, 1)) {
        transpose_none(c);
        return;
    }
    // What is the same along an axis is inverted once for it.
    if (rule_is_nonzero_number(B->graph, Y))
        transpose_give(c, 0, ir_div(B, CT, Y));
    else if (is_spread(B, Y, ir_type_in(B, CT)))
        transpose_give(c, 0, ir_mul_z(B, CT, ir_div(B, ir_scalar_like(B, Y, 1), Y)));
    else
        transpose_give(c, 0, rule_quotient(B, CT, Y));
}

// Back to the type of the operand: a real operand takes the real part.
void transpose_convert(struct transpose *c)
{
    transpose_give(c, 0, ir_convert(B, CT, ir_dtype(transpose_type(c, 0))));
}

void transpose_reduce_precision(struct transpose *c)
{
    transpose_give(c, 0, ir_build(B, IR_reduce_precision, 1, &CT, c->n->attrs));
}

// Complex numbers transpose without conjugation.

// ct + 0i
void transpose_real(struct transpose *c)
{
    transpose_give(c, 0, ir_complex(B, CT, ir_scalar_like(B, CT, 0)));
}

// 0 - ct i
void transpose_imag(struct transpose *c)
{
    transpose_give(c, 0, ir_complex(B, ir_scalar_like(B, CT, 0), ir_neg(B, CT)));
}

void transpose_conj(struct transpose *c) { transpose_give(c, 0, ir_conj(B, CT)); }

// (Re ct, -Im ct)
void transpose_complex(struct transpose *c)
{
    if (transpose_is_linear(c, 0))
        transpose_give(c, 0, ir_real(B, CT));
    if (transpose_is_linear(c, 1))
        transpose_give(c, 1, ir_neg(B, ir_imag(B, CT)));
}

void transpose_identity(struct transpose *c) { transpose_give(c, 0, CT); }
