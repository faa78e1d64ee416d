// SPDX-License-Identifier: Apache-2.0
// Minimax polynomials for src/base/math, by Remez' exchange in quad precision.
//
//     cc -O2 -o remez remez.c -lquadmath -lm && ./remez [name]
//
// For each row of `fits`: coefficients c such that sum c_k t(x)^k, times a factor m(x), is the
// nearest to g(x) in the weighted maximum norm on [low, high]. Coefficients are rounded to the
// format one after the other, each time fitting the rest anew, so that the later ones make up
// for the rounding of the earlier. The error printed is that of the rounded polynomial.
#include <quadmath.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef __float128 quad;

enum { MAX_TERMS = 30, SCAN = 4000 };

struct fit {
    const char *name;
    quad (*target)(quad), (*factor)(quad), (*variable)(quad), (*weight)(quad);
    quad low, high;
    int terms;
    int digits;  // 24 or 53.
    int rounded; // How many coefficients are fitted again after rounding.
};

// The problem that is left when the first `fixed` coefficients are given.
static const struct fit *fit;
static quad coefficient[MAX_TERMS];
static int fixed;

static quad power(quad t, int n)
{
    quad p = 1;
    for (int i = 0; i < n; i++)
        p *= t;
    return p;
}

static quad error_at(quad x)
{
    quad t = fit->variable(x), sum = 0;
    for (int k = fit->terms - 1; k >= 0; k--)
        sum = sum * t + coefficient[k];
    return (sum * fit->factor(x) - fit->target(x)) * fit->weight(x);
}

static quad node(int i, int n)
{
    return (fit->low + fit->high) / 2 - (fit->high - fit->low) / 2 * cosq(M_PIq * i / n);
}

// Gaussian elimination with column pivots.
static void solve(int n, quad a[MAX_TERMS + 1][MAX_TERMS + 2], quad *x)
{
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int r = i + 1; r < n; r++) {
            if (fabsq(a[r][i]) > fabsq(a[pivot][i]))
                pivot = r;
        }
        for (int c = 0; c <= n; c++) {
            quad swap = a[i][c];
            a[i][c] = a[pivot][c];
            a[pivot][c] = swap;
        }
        for (int r = i + 1; r < n; r++) {
            quad m = a[r][i] / a[i][i];
            for (int c = i; c <= n; c++)
                a[r][c] -= m * a[i][c];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        quad s = a[i][n];
        for (int c = i + 1; c < n; c++)
            s -= a[i][c] * x[c];
        x[i] = s / a[i][i];
    }
}

// Coefficients that level the error, with alternating signs, at the points.
static void level(const quad *points)
{
    static quad a[MAX_TERMS + 1][MAX_TERMS + 2];
    int n = fit->terms - fixed;
    for (int i = 0; i <= n; i++) {
        quad t = fit->variable(points[i]), known = 0;
        for (int k = fixed - 1; k >= 0; k--)
            known = known * t + coefficient[k];
        quad p = fit->factor(points[i]);
        a[i][n + 1] = fit->target(points[i]) - known * p;
        p *= power(t, fixed);
        for (int k = 0; k < n; k++, p *= t)
            a[i][k] = p;
        a[i][n] = (i % 2 ? -1 : 1) / fit->weight(points[i]);
    }
    quad x[MAX_TERMS + 1];
    solve(n + 1, a, x);
    memcpy(coefficient + fixed, x, sizeof x[0] * (size_t)n);
}

// The extrema of the error, one for each change of its sign; returns how many.
static int extrema(quad *points, quad *errors, int most)
{
    int count = 0, sign = 0;
    for (int i = 0; i <= SCAN; i++) {
        quad x = node(i, SCAN), e = error_at(x);
        int s = e < 0 ? -1 : 1;
        if (s != sign) {
            if (count == most)
                break;
            sign = s;
            count++;
            errors[count - 1] = 0;
        }
        if (fabsq(e) >= fabsq(errors[count - 1])) {
            errors[count - 1] = e;
            points[count - 1] = x;
        }
    }
    return count;
}

static void exchange(void)
{
    enum { MOST = 4 * MAX_TERMS };
    quad points[MOST], errors[MOST];
    int n = fit->terms - fixed + 1;
    for (int i = 0; i < n; i++)
        points[i] = node(2 * i + 1, 2 * n);
    for (int round = 0; round < 40; round++) {
        level(points);
        int count = extrema(points, errors, MOST);
        if (count < n)
            return;
        int first = 0;
        while (count - first > n) {
            if (fabsq(errors[first]) < fabsq(errors[count - 1]))
                first++;
            else
                count--;
        }
        memmove(points, points + first, sizeof points[0] * (size_t)n);
        quad least = HUGE_VALQ, most = 0;
        for (int i = 0; i < n; i++) {
            quad e = fabsq(errors[first + i]);
            least = e < least ? e : least;
            most = e > most ? e : most;
        }
        if (most - least < most * 1e-5Q)
            return;
    }
}

static quad to_format(quad c) { return fit->digits == 24 ? (quad)(float)c : (quad)(double)c; }

static void run(void)
{
    for (fixed = 0; fixed < fit->terms; fixed++) {
        if (fixed <= fit->rounded)
            exchange();
        coefficient[fixed] = to_format(coefficient[fixed]);
    }
    quad most = 0;
    for (int i = 0; i <= SCAN; i++) {
        quad e = fabsq(error_at(node(i, SCAN)));
        most = e > most ? e : most;
    }
    printf("%s: [%g, %g], error 2^%.2f\n", fit->name, (double)fit->low, (double)fit->high,
           (double)log2q(most));
    for (int k = 0; k < fit->terms; k++)
        printf("%s%a%s", k % 4 ? " " : "    ", (double)coefficient[k],
               k == fit->terms - 1 ? "\n"
               : k % 4 == 3        ? ",\n"
                                   : ",");
}

// -- Functions ----------------------------------------------------------------------------

static quad one(quad x) { return x * 0 + 1; }
static quad identity(quad x) { return x; }
static quad square(quad x) { return x * x; }
static quad cube(quad x) { return x * x * x; }
static quad fourth(quad x) { return x * x * x * x; }
static quad fifth(quad x) { return x * x * x * x * x; }

static quad exp_tail(quad x) { return expm1q(x) - x; }
static quad exp_weight(quad x) { return expq(-x); }
static quad log_tail(quad x) { return log1pq(x) - x + x * x / 2; }
static quad log_weight(quad x) { return fabsq(x) < 1e-9Q ? 1e9Q : 1 / log1pq(x); }
static quad log_s_tail(quad s) { return 2 * (atanhq(s) - s); }
static quad sin_tail(quad x) { return sinq(x) - x; }
static quad sin_weight(quad x) { return 1 / sinq(x); }
static quad cos_tail(quad x) { return cosq(x) - 1 + x * x / 2; }
static quad cos_weight(quad x) { return 1 / cosq(x); }
static quad tanh_tail(quad x) { return tanhq(x) - x; }
static quad tanh_weight(quad x) { return 1 / tanhq(x); }
static quad log_erfc(quad x) { return logq(erfcq(x)); }
static quad exp2m1(quad x) { return expm1q(x * M_LN2q); }
static quad exp2_weight(quad x) { return expq(-x * M_LN2q); }
// The target minus its first terms in x, and 1 / target.
static quad asin_tail(quad x) { return asinq(x) - x; }
static quad asin_weight(quad x) { return 1 / asinq(x); }
static quad atan_tail(quad x) { return atanq(x) - x; }
static quad atan_weight(quad x) { return 1 / atanq(x); }
static quad sinh_tail(quad x) { return sinhq(x) - x; }
static quad sinh_weight(quad x) { return 1 / sinhq(x); }
static quad atanh2_tail(quad s) { return 2 * (atanhq(s) - s - s * s * s / 3); }
static quad atanh2_weight(quad s) { return 1 / atanhq(s) / 2; }
static quad erf_tail(quad x) { return erfq(x) - x; }
static quad erf_weight(quad x) { return 1 / erfq(x); }
static quad inverse_cbrt(quad x) { return 1 / cbrtq(x); }
static quad inverse_cbrt_weight(quad x) { return cbrtq(x); }

// e^(x^2) erfc(x) (x + K) as a polynomial in (x - K) / (x + K).
static quad erfcx(quad x) { return expq(x * x) * erfcq(x); }
static quad erfcx3_variable(quad x) { return (x - 3) / (x + 3); }
static quad erfcx3_target(quad x) { return erfcx(x) * (x + 3); }
static quad erfcx3_weight(quad x) { return 1 / erfcx3_target(x); }
static quad erfcx4_variable(quad x) { return (x - 4) / (x + 4); }
// Its constant term goes first, so that the low part of that is fitted.
static quad erfcx4_target(quad x) { return erfcx(x) * (x + 4) - 0x1.18932bf08e154p+0; }
static quad erfcx4_weight(quad x) { return 1 / erfcx(x) / (x + 4); }

#define SQRT_HALF 0.70710678118654752440Q
#define LOG_S 0.17157287525380990240Q
#define EXP_R (M_LN2q / 2 + 1e-4Q)
#define TRIG_R (M_PI_4q + 1e-3Q)

static const struct fit fits[] = {
    {"exp_f32", exp_tail, square, identity, exp_weight, -EXP_R, EXP_R, 6, 24, 0},
    {"exp_f64", exp_tail, square, identity, exp_weight, -EXP_R, EXP_R, 11, 53, 0},
    {"log_f32", log_tail, cube, identity, log_weight, SQRT_HALF - 1, 2 * SQRT_HALF - 1, 8, 24,
     0},
    {"log_f64", log_s_tail, cube, square, atanh2_weight, 1e-6Q, LOG_S, 7, 53, 0},
    {"sin_f32", sin_tail, cube, square, sin_weight, 1e-5Q, TRIG_R, 4, 24, 0},
    {"sin_f64", sin_tail, cube, square, sin_weight, 1e-6Q, TRIG_R, 7, 53, 0},
    {"cos_f32", cos_tail, fourth, square, cos_weight, 0, TRIG_R, 3, 24, 0},
    {"cos_f64", cos_tail, fourth, square, cos_weight, 0, TRIG_R, 6, 53, 0},
    {"tanh_f32", tanh_tail, cube, square, tanh_weight, 1e-5Q, 0.56Q, 5, 24, 0},
    {"log_erfc_f32", log_erfc, one, identity, one, 0.92Q, 3.95Q, 10, 24, 0},
    {"exp2_f32", exp2m1, identity, identity, exp2_weight, -0.5Q, 0.5Q, 6, 24, 4},
    {"exp2_f64", exp2m1, identity, identity, exp2_weight, -0.5Q, 0.5Q, 12, 53, 3},
    {"asin_f32", asin_tail, cube, square, asin_weight, 1e-4Q, 0.5Q, 5, 24, 3},
    {"asin_f64", asin_tail, cube, square, asin_weight, 1e-6Q, 0.5Q, 12, 53, 3},
    {"atan_f32", atan_tail, cube, square, atan_weight, 1e-4Q, 1, 8, 24, 5},
    {"atan_f64", atan_tail, cube, square, atan_weight, 1e-6Q, 1, 20, 53, 5},
    {"sinh_f32", sinh_tail, cube, square, sinh_weight, 1e-4Q, 1, 4, 24, 3},
    {"sinh_f64", sinh_tail, cube, square, sinh_weight, 1e-6Q, 1, 7, 53, 3},
    {"pow_f32", atanh2_tail, fifth, square, atanh2_weight, 1e-4Q, LOG_S, 3, 24, 1},
    {"pow_f64", atanh2_tail, fifth, square, atanh2_weight, 1e-6Q, LOG_S, 7, 53, 1},
    {"erf_f32", erf_tail, identity, square, erf_weight, 1e-5Q, 0.93Q, 7, 24, 4},
    {"erf_f64", erf_tail, identity, square, erf_weight, 1e-6Q, 1, 12, 53, 4},
    {"erfcx_f32", erfcx3_target, one, erfcx3_variable, erfcx3_weight, 0.81Q, 10.1Q, 10, 24, 0},
    {"erfcx_f64", erfcx4_target, one, erfcx4_variable, erfcx4_weight, 0.81Q, 27.3Q, 20, 53, 0},
    {"cbrt", inverse_cbrt, one, identity, inverse_cbrt_weight, SQRT_HALF, 2 * SQRT_HALF, 5, 24,
     0},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        fit = &fits[i];
        if (argc < 2 || strcmp(argv[1], fit->name) == 0)
            run();
    }
    return 0;
}
