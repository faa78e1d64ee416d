// SPDX-License-Identifier: Apache-2.0
// Derivative rules of special functions.  The letters are those of formulas.h.
#include "passes/rules/formulas.h"

#include <math.h>

// d erf(x) = dx 2/sqrt(pi) exp(-x^2)
void jvp_erf(struct jvp *c)
{
    ir_id power = ir_exp(B, ir_neg(B, ir_mul(B, X, X)));
    add_product(c, DX, ir_mul(B, num(c, 1.12837916709551257390), power));
}

// d erfc(x) = -d erf(x)
void jvp_erfc(struct jvp *c)
{
    jvp_erf(c);
    c->dy[0] = ir_neg(B, c->dy[0]);
}

// d lgamma(x) = dx digamma(x)
void jvp_lgamma(struct jvp *c) { add_product(c, DX, ir_digamma(B, X)); }

// d gamma(x) = dx gamma(x) digamma(x)
void jvp_gamma(struct jvp *c) { add_product(c, DX, ir_mul(B, F, ir_digamma(B, X))); }

// d digamma(x) = dx zeta(2, x), and below 0 by reflection dx ((pi / sin(pi x))^2 - zeta(2, 1 - x))
void jvp_digamma(struct jvp *c)
{
    const double pi = 3.14159265358979323846;
    ir_id one = num(c, 1), below = ir_lt(B, X, num(c, 0));
    ir_id z = ir_zeta(B, num(c, 2), ir_select(B, below, ir_sub(B, one, X), X));
    ir_id r = ir_sub(B, X, ir_round_even(B, X));
    ir_id safe = ir_select(B, below, r, ir_full(B, ir_type_in(B, X), 0.5));
    ir_id q = ir_div(B, num(c, pi), ir_sin(B, ir_mul(B, num(c, pi), safe)));
    add_product(c, DX, ir_select(B, below, ir_sub(B, ir_mul(B, q, q), z), z));
}

// The sum over k >= 0 of -log(q + k) (q + k)^-s, as zeta itself: N terms and the
// Euler-Maclaurin formula; 0 at infinity.
static ir_id zeta_slope(struct jvp *c)
{
    static const double factors[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                     -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                     1.0 / 74724249600}; // B_2j / (2j)!
    enum { TERMS = 15, FACTORS = sizeof factors / sizeof factors[0] };
    ir_id s = X, q = Y, minus_s = ir_neg(B, s), one = num(c, 1);
    ir_id w = ir_add(B, q, num(c, TERMS)), inverse = ir_div(B, one, w);
    // rest = w / (s - 1) + 1/2 + the sum of factor_j (s)_(2j-1) w^(1-2j), and its derivative in s
    ir_id less = ir_sub(B, s, one), first = ir_div(B, w, less);
    ir_id rest = ir_add(B, first, num(c, 0.5)), rest_slope = ir_neg(B, ir_div(B, first, less));
    ir_id term = ir_mul(B, s, inverse), term_slope = inverse;
    for (int j = 0; j < FACTORS; j++) {
        rest = ir_add(B, rest, ir_mul(B, num(c, factors[j]), term));
        rest_slope = ir_add(B, rest_slope, ir_mul(B, num(c, factors[j]), term_slope));
        for (int i = 2 * j + 1; i <= 2 * j + 2; i++) {
            ir_id factor = ir_mul(B, ir_add(B, s, num(c, i)), inverse);
            term_slope = ir_add(B, ir_mul(B, term_slope, factor), ir_mul(B, term, inverse));
            term = ir_mul(B, term, factor);
        }
    }
    ir_id power = ir_pow(B, w, minus_s), zero = num(c, 0);
    ir_id sum = ir_mul(B, power, ir_sub(B, rest_slope, ir_mul(B, ir_log(B, w), rest)));
    // The sums may be infinite where the power is 0.
    sum = ir_select(B, ir_eq(B, power, zero), zero, sum);
    for (int k = TERMS - 1; k >= 0; k--) {
        ir_id at = ir_add(B, q, num(c, k));
        sum = ir_sub(B, sum, ir_mul(B, ir_log(B, at), ir_pow(B, at, minus_s)));
    }
    return ir_select(B, ir_eq(B, q, num(c, INFINITY)), zero, sum);
}

// d zeta(s, q) = ds (d zeta / ds) - dq s zeta(s + 1, q)
void jvp_zeta(struct jvp *c)
{
    if (DX != IR_NONE)
        add_product(c, DX, zeta_slope(c));
    if (DY != IR_NONE)
        add_product(c, DY, ir_neg(B, ir_mul(B, X, ir_zeta(B, ir_add(B, X, num(c, 1)), Y))));
}
