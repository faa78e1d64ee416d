// SPDX-License-Identifier: Apache-2.0
// Nonlinear least squares: the methods of Levenberg and Marquardt, and of Gauss and Newton.
//
// A step h solves (J^T J + mu) h = -J^T r, by the matrix of J or by products with J and its
// transpose. mu falls with the quotient of what the sum of squares has fallen and what the
// linear model said, as Nielsen has it (Damping Parameter in Marquardt's Method, 1999).
#include "library/formula.h"
#include "library/minimize.h"

#include "jot/control.h"
#include "jot/linalg.h"

#include <float.h>

enum { MOST_HALVES = 30 };

struct squares {
    struct search s;
    bool is_damped;
    jot_function jacobian, forward, backward; // of the residuals in the vector
};

// `normal` is J^T J, or nothing where products take its place.
enum { X, VALUE, GRADIENT, MU, GROWTH, STEPS, STALLS, NORMAL, CARRIES };

static void residual_body(const jot_value *in, jot_value *out, void *ctx)
{
    library_apply(ctx, in[0], 1, out);
    out[0] = jot_reshape_dims(out[0], (const int64_t[]){jot_value_size(out[0]), JOT_END});
}

static void half_of_squares(const jot_value *in, jot_value *out, void *ctx)
{
    residual_body(in, out, ctx);
    out[0] = mul(num(0.5), jot_vdot(out[0], out[0]));
}

// ---------------------------------------------------------------------------------------
// The linear model

// J^T J v at a point.
struct product {
    const struct squares *q;
    jot_value x, mu;
};

static jot_value times_normal(const struct squares *q, jot_value x, jot_value v)
{
    jot_value at[] = {x, v}, out[2];
    jot_apply_at(q->forward, 2, at, 2, out, q->s.where);
    at[1] = out[1];
    jot_apply_at(q->backward, 2, at, 2, out, q->s.where);
    return out[1];
}

static void product_body(const jot_value *in, jot_value *out, void *ctx)
{
    const struct product *p = ctx;
    out[0] = add(times_normal(p->q, p->x, in[0]), mul(p->mu, in[0]));
}

static void linearise(const struct squares *q, jot_value *c)
{
    jot_value jacobian;
    library_evaluate(&q->s, c[X], &c[VALUE], &c[GRADIENT]);
    if (q->s.o.is_matrix_free)
        return;
    jot_apply_at(q->jacobian, 1, &c[X], 1, &jacobian, q->s.where);
    c[NORMAL] = jot_matmul(jot_transpose_axes(jacobian, NULL), jacobian);
}

// h of a damping.
static jot_value solve(const struct squares *q, const jot_value *c)
{
    const struct search *s = &q->s;
    jot_value down = jot_neg(c[GRADIENT]);
    if (!s->o.is_matrix_free) {
        jot_value eye = jot_eye(s->dtype, s->length, s->length);
        return jot_solve(add(c[NORMAL], mul(c[MU], eye)), down);
    }
    struct product *p = jot_trace_memory(sizeof *p);
    if (!p)
        return jot_error(JOT_ERR_MEMORY, s->name, NULL);
    *p = (struct product){q, c[X], c[MU]};
    jot_krylov_options o = {.tol = 1e-4};
    return jot_cg_at(jot_function_uniform(s->name, s->where, product_body, 1, 1, p), down, &o,
                     s->where);
}

// ---------------------------------------------------------------------------------------
// Steps

static jot_value value_at(const struct search *s, jot_value x)
{
    jot_value value;
    jot_apply_at(s->value, 1, &x, 1, &value, s->where);
    return value;
}

// h by halves, until the value falls.
struct halving {
    const struct search *s;
    jot_value x, value;
};
enum { H, REACHED, HALVES, HALVING_CARRIES };

static jot_value halving_goes_on(const jot_value *c, void *ctx)
{
    const struct halving *l = ctx;
    return both(jot_logical_not(jot_less(c[REACHED], l->value)),
                jot_less(c[HALVES], jot_from_int(MOST_HALVES)));
}

static void halve(jot_value *c, void *ctx)
{
    const struct halving *l = ctx;
    c[H] = mul(num(0.5), c[H]);
    c[REACHED] = value_at(l->s, add(l->x, c[H]));
    c[HALVES] = add(c[HALVES], jot_from_int(1));
}

static jot_value halved(const struct search *s, const jot_value *c, jot_value h,
                        jot_value *reached)
{
    struct halving *l = jot_trace_memory(sizeof *l);
    if (!l)
        return jot_error(JOT_ERR_MEMORY, s->name, NULL);
    *l = (struct halving){s, c[X], c[VALUE]};
    jot_value carry[HALVING_CARRIES] = {h, *reached, library_zero_count()};
    jot_while_at(halving_goes_on, halve, l, HALVING_CARRIES, carry, NULL, s->where);
    *reached = carry[REACHED];
    return carry[H];
}

static void update_damping(jot_value *c, jot_value is_better, jot_value ratio)
{
    jot_value rise = sub(mul(num(2), ratio), num(1));
    jot_value factor = jot_maximum(num(1.0 / 3), sub(num(1), mul(rise, jot_square(rise))));
    c[MU] = mul(c[MU], jot_where(is_better, factor, c[GROWTH]));
    c[GROWTH] = jot_where(is_better, num(2), mul(num(2), c[GROWTH]));
}

static void step(jot_value *c, void *ctx)
{
    const struct squares *q = ctx;
    const struct search *s = &q->s;
    jot_value h = solve(q, c), reached = value_at(s, add(c[X], h));
    if (!q->is_damped)
        h = halved(s, c, h, &reached);
    jot_value is_better = jot_less(reached, c[VALUE]);
    if (q->is_damped) {
        jot_value said = mul(num(0.5), jot_vdot(h, sub(mul(c[MU], h), c[GRADIENT])));
        jot_value is_some = jot_greater(said, num(0));
        jot_value ratio = over(sub(c[VALUE], reached), jot_where(is_some, said, num(1)));
        update_damping(c, is_better, jot_where(is_better, ratio, num(0)));
    }
    double least = s->dtype == JOT_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    jot_value is_small =
        jot_less_equal(library_largest(h), mul(num(least), library_largest(c[X])));
    c[STALLS] = q->is_damped ? is_small : jot_logical_not(is_better);
    c[STEPS] = add(c[STEPS], jot_from_int(1));
    jot_piece pieces[] = {{c, 3, "the point"}, {c + NORMAL, 1, "the matrix"}, {NULL, 0, NULL}};
    jot_value to = add(c[X], h);
    jot_block *b = jot_if_begin(pieces, is_better, s->where);
    while (jot_block_next(b))
        if (jot_if_first(b)) {
            c[X] = to;
            linearise(q, c);
        }
    jot_block_leave(&b);
}

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct search *s = ctx;
    jot_value is_large = jot_greater(library_largest(c[GRADIENT]), num(s->o.tol));
    jot_value has_steps = jot_less(c[STEPS], jot_from_int(s->o.max_steps));
    return both(both(is_large, has_steps), jot_logical_not(c[STALLS]));
}

// A part of how much J^T J makes of the gradient.
static jot_value first_damping(const struct squares *q, const jot_value *c)
{
    jot_value g = c[GRADIENT], size = jot_vdot(g, g), is_some = jot_greater(size, num(0));
    jot_value product =
        q->s.o.is_matrix_free ? times_normal(q, c[X], g) : jot_dot(c[NORMAL], g);
    return mul(num(1e-3), over(jot_vdot(g, product), jot_where(is_some, size, num(1))));
}

static jot_search search(const struct search_kind *kind, bool is_damped, jot_function residuals,
                         size_t n, jot_value *x, const jot_minimize_options *options,
                         const char *where)
{
    jot_value c[CARRIES];
    jot_search out;
    const char *name = kind->name;
    struct squares *q =
        library_search(kind, sizeof *q, residuals, n, x, options, where, &c[X], &out);
    if (!q)
        return out;
    struct search *s = &q->s;
    q->is_damped = is_damped;
    jot_function r = jot_function_uniform(name, where, residual_body, 1, 1, s);
    q->jacobian = jot_jacfwd_of(r, where, NULL);
    q->forward = jot_jvp_of(r, where, NULL);
    q->backward = jot_vjp_of(r, where, NULL);
    s->value = jot_function_uniform(name, where, half_of_squares, 1, 1, s);
    s->with_gradient = jot_value_and_grad_of(s->value, where, NULL);
    c[NORMAL] = library_zero_count();
    linearise(q, c);
    if (!library_fits(s, c[VALUE], x, &out))
        return out;
    jot_value zero = jot_zeros_like(c[VALUE]);
    c[MU] = is_damped ? first_damping(q, c) : zero;
    c[GROWTH] = add(zero, num(2));
    c[STEPS] = library_zero_count();
    c[STALLS] = jot_not_equal(zero, zero);
    jot_while_at(goes_on, step, q, CARRIES, c, NULL, where);
    library_found(s, library_gradient(s), true, c[X], c[VALUE], x);
    return library_minimum(s, c[VALUE], c[GRADIENT], c[STEPS]);
}

jot_search jot_levenberg_marquardt_tree(jot_function residuals, size_t n, jot_value *x,
                                        const jot_minimize_options *options, const char *where)
{
    static const struct search_kind kind = {"jot_levenberg_marquardt", false, true};
    return search(&kind, true, residuals, n, x, options, where);
}

jot_search jot_gauss_newton_tree(jot_function residuals, size_t n, jot_value *x,
                                 const jot_minimize_options *options, const char *where)
{
    static const struct search_kind kind = {"jot_gauss_newton", false, true};
    return search(&kind, false, residuals, n, x, options, where);
}
