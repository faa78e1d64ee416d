// SPDX-License-Identifier: Apache-2.0
// Forward and reverse mode give the same Jacobian of every op, also at infinities, zeros and NaN.
//
// Entry i, j is what jacfwd gives for unit tangent j, and what jacrev gives for unit cotangent i: NaN
// in both, or infinite with one sign in both, or close; of complex numbers, finite in neither, or
// close.  The zeros of unit vectors are known as such, so that 0 times the infinite slope of another
// element is 0.  Inside of contractions and routines zeros multiply like numbers (docs/numerics.md,
// 10), and the terms of the two modes are others: those have finite numbers.
#include "passes/pass_support.h"

static const double specials[] = {1, -1, 2, 0.5, -2.5, 0, -0.0, NAN, INFINITY, -INFINITY};
enum { SPECIALS = sizeof specials / sizeof *specials, FINITE = 5, DRAWS = 3 };

static int64_t compared, failed;
static struct strbuf report;

static void put(struct ir_tensor x, int64_t at, double number)
{
    if (dtype_real(ir_dtype(x.type)) == JOT_F64)
        ((double *)x.data)[at] = number;
    else
        ((float *)x.data)[at] = (float)number;
}

// How many real numbers.
static int64_t parts(struct ir_tensor x)
{
    return ir_count(module, x.type) * (dtype_is_complex(ir_dtype(x.type)) ? 2 : 1);
}

// Operands with special numbers among those of the domain.
static void make_special(struct ir_tensor *x, int n, int few, uint64_t *state)
{
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; inexact(x[k].type) && i < parts(x[k]); i++)
            if (opcase_random(state) < 0.4)
                put(x[k], i, specials[(int)(opcase_random(state) * few)]);
}

static bool has_terms(enum ir_op op)
{
    enum ir_class c = ir_op_class(op);
    return c == IR_CLASS_CONTRACT || (c == IR_CLASS_LIBRARY && op != IR_sort && op != IR_top_k);
}

static bool agree(double x, double y, double tolerance)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    if (isinf(x) || isinf(y))
        return x == y;
    return fabs(x - y) <= tolerance * (1 + fabs(x));
}

static bool agree_complex(struct complex_number x, struct complex_number y, double tolerance)
{
    bool are[] = {isfinite(x.re) && isfinite(x.im), isfinite(y.re) && isfinite(y.im)};
    if (!are[0] || !are[1])
        return are[0] == are[1];
    return agree(x.re, y.re, tolerance) && agree(x.im, y.im, tolerance);
}

// Special numbers make matrices that have no factor, and complex ones are conjugated.
static bool is_left_out(const struct opcase *c)
{
    bool is_complex = c->n_in && dtype_is_complex(ir_dtype(c->in[0].type));
    return c->op == IR_cholesky || (is_complex && c->op == IR_triangular_solve);
}

static void print_operands(struct strbuf *s, const struct ir_tensor *x, int n)
{
    for (int k = 0; k < n; k++) {
        strbuf_printf(s, "\n  operand %d:", k);
        for (int64_t i = 0; inexact(x[k].type) && i < ir_count(module, x[k].type); i++)
            strbuf_printf(s, " %g%+gi", element(x[k], i).re, element(x[k], i).im);
    }
}

static void compare(const struct opcase *c, const struct ir_tensor *x, uint32_t forward,
                    uint32_t reverse)
{
    struct ir_tensor *f = evaluate(forward, x), *r = evaluate(reverse, x);
    double tolerance = dtype_real(ir_dtype(c->in[0].type)) == JOT_F64 ? 1e-9 : 1e-3;
    for (uint32_t k = 0; k < graph(forward)->outputs.count; k++)
        for (int64_t i = 0; i < ir_count(module, f[k].type); i++) {
            struct complex_number have = element(f[k], i), want = element(r[k], i);
            compared++;
            bool is_complex = dtype_is_complex(ir_dtype(f[k].type));
            if (is_complex ? agree_complex(have, want, tolerance)
                           : agree(have.re, want.re, tolerance))
                continue;
            failed++;
            strbuf_printf(&report,
                          "\n%s: Jacobian %u, entry %lld: forward %g%+gi, reverse %g%+gi",
                          c->text, k, (long long)i, have.re, have.im, want.re, want.im);
            print_operands(&report, x, c->n_in);
            return;
        }
}

// Whether results are complex where operands are real, or the other way round, or there are none: one
// mode has both parts of a derivative, the other one of them.
static bool is_mixed(uint32_t f)
{
    bool complex_in = false, real_in = false;
    for (uint32_t i = 0; i < graph(f)->n_params; i++) {
        struct ir_type t = ir_type_of(graph(f), i);
        complex_in |= dtype_is_complex(ir_dtype(t));
        real_in |= dtype_is_float(ir_dtype(t));
    }
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        if (dtype_is_complex(ir_dtype_of(graph(f), graph(f)->outputs.at[i])) != complex_in)
            return true;
    return !complex_in && !real_in;
}

static void check(const struct opcase *c, uint64_t *state)
{
    uint32_t f = opcase_function(module, c), forward, reverse;
    bool *wrt = inexact_inputs(graph(f));
    if (is_mixed(f) || is_left_out(c) || pass_jacfwd(module, f, wrt, &forward) != JOT_OK)
        return;
    require(pass_jacrev(module, f, wrt, &reverse));
    forward = pass_simplify(module, forward);
    reverse = pass_simplify(module, reverse);
    struct ir_tensor x[OPCASE_OPERANDS];
    for (int draw = 0; draw < DRAWS; draw++) {
        for (int k = 0; k < c->n_in; k++) {
            x[k] = zeros(c->in[k].type);
            memcpy(x[k].data, c->in[k].data,
                   jot_dtype_size(ir_dtype(x[k].type)) * (size_t)ir_count(module, x[k].type));
        }
        make_special(x, c->n_in, has_terms(c->op) ? FINITE : SPECIALS, state);
        compare(c, x, forward, reverse);
    }
}

START_TEST(forward_and_reverse_agree)
{
    static const jot_dtype dtypes[] = {JOT_F64, JOT_F32, JOT_C128};
    struct opcases cases = opcases_make(module, dtypes[_i], seed);
    uint64_t state = seed;
    report = strbuf_make(module->arena);
    for (uint32_t i = 0; i < cases.count; i++)
        check(&cases.at[i], &state);
    printf("%s: %lld entries\n", jot_dtype_name(dtypes[_i]), (long long)compared);
    ck_assert_msg(failed == 0, "%lld failures%.3000s", (long long)failed, report.text);
    ck_assert_int_gt(compared, 10000);
}
END_TEST

static void add_tests(TCase *t) { tcase_add_loop_test(t, forward_and_reverse_agree, 0, 3); }

int main(void) { return support_run("slopes", add_tests); }
