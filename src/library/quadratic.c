// SPDX-License-Identifier: Apache-2.0
// Quadratic programs by the alternating direction method of multipliers, as OSQP does it:
// Stellato and others, arXiv:1711.08013.
//
// The solution and the multipliers are a root of
//     p x + q + a^T y      and      a x - clip(a x + y, low, high),
// which is linear where the set of active bounds does not change: one step of Newton's makes
// the last digits, and the derivatives are those of this equation.
#include "library/formula.h"
#include "library/minimize.h"

#include "jot/control.h"
#include "jot/linalg.h"

static const double SIGMA = 1e-6, RELAXATION = 1.6, FIRST_RHO = 0.1, OF_EQUALITIES = 1e3;
enum { BETWEEN_FACTORS = 25 };

struct program {
    const char *name, *where;
    jot_value p, q, a, low, high, transposed;
    jot_dtype dtype;
    double tol;
    int64_t max_steps;
};

enum { X, Z, Y, RHO, FACTOR, PRIMAL, DUAL, STEPS, CARRIES };

static jot_value clip(jot_value x, jot_value low, jot_value high)
{
    return jot_minimum(jot_maximum(x, low), high);
}

// More for rows that are equations.
static jot_value weights(const struct program *g, jot_value rho)
{
    return mul(rho, jot_where(jot_equal(g->low, g->high), num(OF_EQUALITIES), num(1)));
}

static jot_value factor(const struct program *g, jot_value rho)
{
    int64_t n = jot_value_dim(g->p, 0);
    jot_value w = jot_expand_dims_axes(weights(g, rho), (const int[]){1, JOT_END});
    jot_value eye = mul(num(SIGMA), jot_eye(g->dtype, n, n));
    return jot_cholesky(add(add(g->p, eye), jot_matmul(g->transposed, mul(w, g->a))));
}

static jot_value quotient(jot_value x, jot_value size) { return over(x, add(num(1), size)); }

// How far both equations are from holding, as shares of 1 and what stands in them.
static void measure(const struct program *g, jot_value *c)
{
    jot_value ax = jot_matmul(g->a, c[X]), px = jot_matmul(g->p, c[X]);
    jot_value aty = jot_matmul(g->transposed, c[Y]);
    jot_value size = jot_maximum(library_largest(px), library_largest(aty));
    c[PRIMAL] = quotient(library_largest(sub(ax, c[Z])),
                         jot_maximum(library_largest(ax), library_largest(c[Z])));
    c[DUAL] = quotient(library_largest(add(add(px, g->q), aty)),
                       jot_maximum(size, library_largest(g->q)));
}

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct program *g = ctx;
    return both(jot_greater(jot_maximum(c[PRIMAL], c[DUAL]), num(g->tol)),
                jot_less(c[STEPS], jot_from_int(g->max_steps)));
}

static void adapt(const struct program *g, jot_value *c)
{
    jot_value least = num(1e-30),
              ratio = over(jot_maximum(c[PRIMAL], least), jot_maximum(c[DUAL], least));
    jot_value rho = clip(mul(c[RHO], jot_sqrt(ratio)), num(1e-6), num(1e6));
    jot_value rest = jot_rem(c[STEPS], jot_from_int(BETWEEN_FACTORS));
    jot_value is_far = jot_logical_or(jot_greater(rho, mul(num(5), c[RHO])),
                                      jot_less(mul(num(5), rho), c[RHO]));
    jot_value changes = both(jot_equal(rest, jot_from_int(0)), is_far);
    jot_piece pieces[] = {{c + RHO, 2, "the weight"}, {NULL, 0, NULL}};
    jot_block *b = jot_if_begin(pieces, changes, g->where);
    while (jot_block_next(b))
        if (jot_if_first(b)) {
            c[RHO] = rho;
            c[FACTOR] = factor(g, rho);
        }
    jot_block_leave(&b);
}

static void step(jot_value *c, void *ctx)
{
    const struct program *g = ctx;
    jot_value w = weights(g, c[RHO]);
    jot_value pull = jot_matmul(g->transposed, sub(mul(w, c[Z]), c[Y]));
    jot_value x = jot_cho_solve(c[FACTOR], add(sub(mul(num(SIGMA), c[X]), g->q), pull));
    jot_value z =
        add(mul(num(RELAXATION), jot_matmul(g->a, x)), mul(num(1 - RELAXATION), c[Z]));
    c[X] = add(mul(num(RELAXATION), x), mul(num(1 - RELAXATION), c[X]));
    c[Z] = clip(add(z, over(c[Y], w)), g->low, g->high);
    c[Y] = add(c[Y], mul(w, sub(z, c[Z])));
    c[STEPS] = add(c[STEPS], jot_from_int(1));
    measure(g, c);
    adapt(g, c);
}

// ---------------------------------------------------------------------------------------
// The equation

// Of x and y in one vector.
static void equation(const jot_value *in, jot_value *out, void *ctx)
{
    const struct program *g = ctx;
    int64_t n = jot_value_dim(g->p, 0), m = jot_value_dim(g->a, 0);
    jot_value x = jot_slice_axis(in[0], 0, 0, n, 1), y = jot_slice_axis(in[0], 0, n, n + m, 1);
    jot_value ax = jot_matmul(g->a, x);
    jot_value parts[] = {add(add(jot_matmul(g->p, x), g->q), jot_matmul(g->transposed, y)),
                         sub(ax, clip(add(ax, y), g->low, g->high))};
    out[0] = jot_concatenate_list(0, 2, parts);
}

// A step of Newton's, where it makes things better.
static jot_value polished(const struct program *g, jot_function root, jot_value v)
{
    jot_value left, matrix, after;
    jot_apply_at(root, 1, &v, 1, &left, g->where);
    jot_apply_at(jot_jacfwd_of(root, g->where, NULL), 1, &v, 1, &matrix, g->where);
    jot_value next = sub(v, jot_solve(matrix, left));
    jot_apply_at(root, 1, &next, 1, &after, g->where);
    return jot_where(jot_less(library_largest(after), library_largest(left)), next, v);
}

// ---------------------------------------------------------------------------------------
// The call

static bool is_shaped(jot_value x, int rank, int64_t rows, int64_t columns)
{
    return jot_value_rank(x) == rank && jot_value_dim(x, 0) == rows &&
           (rank == 1 || jot_value_dim(x, 1) == columns);
}

static bool check(const struct program *g, jot_value *out_error)
{
    const jot_value all[] = {g->p, g->q, g->a, g->low, g->high};
    const char *text = NULL;
    for (int i = 0; i < 5; i++) {
        if (jot_value_failed(all[i])) {
            *out_error = all[i];
            return false;
        }
        if (jot_value_dtype(all[i]) != g->dtype ||
            (g->dtype != JOT_F32 && g->dtype != JOT_F64)) {
            *out_error = jot_error(JOT_ERR_DTYPE, g->name, "all values are of f32 or of f64");
            return false;
        }
    }
    int64_t n = jot_value_dim(g->q, 0), m = jot_value_dim(g->low, 0);
    if (!is_shaped(g->q, 1, n, 0) || !is_shaped(g->p, 2, n, n) || n == 0)
        text = "p is a square matrix, and q has an element for each row of it";
    else if (!is_shaped(g->low, 1, m, 0) || !is_shaped(g->high, 1, m, 0) || m == 0 ||
             !is_shaped(g->a, 2, m, n))
        text =
            "a has a column for each row of p; low and high have an element for each row of a";
    if (text)
        *out_error = jot_error(JOT_ERR_SHAPE, g->name, text);
    return !text;
}

static jot_quadratic_solution placed(jot_quadratic_solution s, const char *where)
{
    jot_value *all[] = {&s.x, &s.y, &s.residual, &s.steps};
    for (int i = 0; i < 4; i++)
        jot_place(*all[i], where);
    return s;
}

static jot_quadratic_solution solve(struct program *g, const jot_minimize_options *o)
{
    g->p = mul(num(0.5), add(g->p, jot_transpose_axes(g->p, NULL)));
    g->transposed = jot_transpose_axes(g->a, NULL);
    g->tol = o->tol ? o->tol : g->dtype == JOT_F32 ? 1e-5 : 1e-8;
    g->max_steps = o->max_steps ? o->max_steps : 4000;
    int64_t n = jot_value_dim(g->p, 0), m = jot_value_dim(g->a, 0);
    jot_value c[CARRIES] = {[STEPS] = library_zero_count()};
    c[X] = jot_zeros_like(g->q);
    c[Y] = jot_zeros_like(g->low);
    c[Z] = clip(c[Y], g->low, g->high);
    c[RHO] = jot_full_dims(g->dtype, num(FIRST_RHO), (const int64_t[]){JOT_END});
    c[FACTOR] = factor(g, c[RHO]);
    measure(g, c);
    jot_while_at(goes_on, step, g, CARRIES, c, NULL, g->where);
    jot_function root = jot_function_uniform(g->name, g->where, equation, 1, 1, g);
    jot_value found[] = {c[X], c[Y]};
    jot_value v = jot_stop_gradient(polished(g, root, jot_concatenate_list(0, 2, found)));
    v = jot_custom_root_at(root, v, library_is_root(g->name, g->where), NULL, NULL, g->where);
    jot_value residual = jot_stop_gradient(jot_maximum(c[PRIMAL], c[DUAL]));
    return (jot_quadratic_solution){jot_slice_axis(v, 0, 0, n, 1),
                                    jot_slice_axis(v, 0, n, n + m, 1), residual, c[STEPS]};
}

jot_quadratic_solution jot_quadratic_program_at(jot_value p, jot_value q, jot_value a,
                                                jot_value low, jot_value high,
                                                const jot_minimize_options *options,
                                                const char *where)
{
    static const struct search_kind kind = {"jot_quadratic_program", false, false};
    static const jot_minimize_options none;
    const jot_minimize_options *o = options ? options : &none;
    jot_value error;
    char text[160];
    struct program given = {kind.name, where, p, q, a, low, high, .dtype = jot_value_dtype(p)};
    struct program *g = jot_trace_memory(sizeof *g);
    bool ok = check(&given, &error);
    if (ok && library_refuses(&kind, o, text, sizeof text))
        error = jot_error(JOT_ERR_ARGUMENT, kind.name, text);
    else if (ok && !g)
        error = jot_error(JOT_ERR_MEMORY, kind.name, "no memory, or no trace");
    else if (ok) {
        *g = given;
        return placed(solve(g, o), where);
    }
    return placed((jot_quadratic_solution){error, error, error, error}, where);
}
