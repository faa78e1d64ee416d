// SPDX-License-Identifier: Apache-2.0
// Krylov methods, as solvers of jot_linear_solve.  All values of b are one vector inside.
#include "trace/function.h"
#include "trace/lanes.h"
#include "trace/vectors.h"

#include "jot/control.h"
#include "jot/indexing.h"
#include "jot/ops.h"
#include "jot/products.h"
#include "jot/solvers.h"

#include <math.h>

struct krylov;
struct method {
    const char *name;
    jot_value (*solve)(const struct krylov *k, jot_value b, jot_value x);
    bool keeps_symmetry; // a real system is its own transpose
};

struct krylov {
    const struct method *method;
    jot_function a, preconditioner;
    jot_krylov_options o;
    const char *where;
    int n;
    const jot_value *like; // values of the shapes and types of b
    double tol2, epsilon;  // of |r|^2 over |b|^2; of the dtype
    jot_value limit2;      // of |r|^2
    int64_t length;        // of all values
};

static jot_value num(double x) { return jot_from_double(x); }

// ---------------------------------------------------------------------------------------
// Values and vectors

jot_value trace_vector(int n, const jot_value *v)
{
    jot_value *flat = arena_array(trace_top()->module->arena, jot_value, n + 1);
    for (int i = 0; i < n; i++)
        flat[i] = jot_reshape_dims(v[i], (const int64_t[]){jot_value_size(v[i]), JOT_END});
    return n == 1 ? flat[0] : jot_concatenate_list(0, (size_t)n, flat);
}

void trace_vector_parts(int n, const jot_value *like, jot_value vector, jot_value *out)
{
    int64_t start = 0;
    for (int i = 0; i < n; i++) {
        int64_t size = jot_value_size(like[i]), dims[IR_MAX_RANK + 1];
        int rank = jot_value_rank(like[i]);
        for (int axis = 0; axis < rank; axis++)
            dims[axis] = jot_value_dim(like[i], axis);
        dims[rank] = JOT_END;
        jot_value part = n == 1 ? vector : jot_slice_axis(vector, 0, start, start + size, 1);
        out[i] = jot_convert(jot_reshape_dims(part, dims), jot_value_dtype(like[i]));
        start += size;
    }
}

static jot_value applied(const struct krylov *k, jot_function f, jot_value v)
{
    struct arena *arena = trace_top()->module->arena;
    jot_value *in = arena_array(arena, jot_value, k->n + 1);
    jot_value *out = arena_array(arena, jot_value, k->n + 1);
    trace_vector_parts(k->n, k->like, v, in);
    jot_apply_at(f, (size_t)k->n, in, (size_t)k->n, out, k->where);
    return trace_vector(k->n, out);
}

static jot_value product(const struct krylov *k, jot_value v) { return applied(k, k->a, v); }

static jot_value preconditioned(const struct krylov *k, jot_value v)
{
    return k->o.preconditioner ? applied(k, k->preconditioner, v) : v;
}

static jot_value squared(jot_value v) { return jot_real(jot_vdot(v, v)); }

static jot_value limited(const struct krylov *k, jot_value b)
{
    return jot_maximum(jot_mul(num(k->tol2), squared(b)), num(k->o.atol * k->o.atol));
}

static jot_value goes_on(const struct krylov *k, jot_value trips, jot_value residual2)
{
    return jot_logical_and(jot_less(k->limit2, residual2),
                           jot_less(trips, jot_from_int(k->o.max_trips)));
}

static jot_value ratio(jot_value x, jot_value y)
{
    jot_value is_zero = jot_equal(y, jot_zeros_like(y));
    return jot_where(is_zero, jot_zeros_like(y),
                     jot_div(x, jot_where(is_zero, jot_ones_like(y), y)));
}

static jot_value moved(jot_value x, jot_value step, jot_value direction)
{
    return jot_add(x, jot_mul(step, direction));
}

static jot_value residual(const struct krylov *k, jot_value b, jot_value x)
{
    return jot_sub(b, product(k, x));
}

// ---------------------------------------------------------------------------------------
// Conjugate gradients

enum { CG_TRIPS, CG_X, CG_R, CG_P, CG_GAMMA, CG_CARRIES }; // gamma = Re r^H M r

static jot_value cg_goes_on(const jot_value *s, void *ctx)
{
    return goes_on(ctx, s[CG_TRIPS], squared(s[CG_R]));
}

static void cg_step(jot_value *s, void *ctx)
{
    jot_value ap = product(ctx, s[CG_P]);
    jot_value alpha = ratio(s[CG_GAMMA], jot_real(jot_vdot(s[CG_P], ap)));
    s[CG_X] = moved(s[CG_X], alpha, s[CG_P]);
    s[CG_R] = moved(s[CG_R], jot_neg(alpha), ap);
    jot_value z = preconditioned(ctx, s[CG_R]), gamma = jot_real(jot_vdot(s[CG_R], z));
    s[CG_P] = moved(z, ratio(gamma, s[CG_GAMMA]), s[CG_P]);
    s[CG_GAMMA] = gamma;
    s[CG_TRIPS] = jot_add(s[CG_TRIPS], jot_from_int(1));
}

static jot_value cg(const struct krylov *k, jot_value b, jot_value x)
{
    jot_value r = residual(k, b, x), z = preconditioned(k, r);
    jot_value s[CG_CARRIES] = {jot_zeros_dims(JOT_I32, (const int64_t[]){JOT_END}), x, r, z,
                               jot_real(jot_vdot(r, z))};
    jot_while_at(cg_goes_on, cg_step, (void *)k, CG_CARRIES, s, NULL, k->where);
    return s[CG_X];
}

// ---------------------------------------------------------------------------------------
// Stabilised biconjugate gradients

enum { BI_TRIPS, BI_X, BI_R, BI_P, BI_Q, BI_ALPHA, BI_OMEGA, BI_RHO, BI_SHADOW, BI_CARRIES };

static jot_value bicgstab_goes_on(const jot_value *s, void *ctx)
{
    // After a breakdown the numbers are zero, and steps change nothing.
    return jot_logical_and(goes_on(ctx, s[BI_TRIPS], squared(s[BI_R])),
                           jot_not_equal(s[BI_RHO], jot_zeros_like(s[BI_RHO])));
}

static void bicgstab_step(jot_value *s, void *ctx)
{
    const struct krylov *k = ctx;
    jot_value rho = jot_vdot(s[BI_SHADOW], s[BI_R]);
    jot_value beta = jot_mul(ratio(rho, s[BI_RHO]), ratio(s[BI_ALPHA], s[BI_OMEGA]));
    jot_value p = moved(s[BI_R], beta, moved(s[BI_P], jot_neg(s[BI_OMEGA]), s[BI_Q]));
    jot_value along_p = preconditioned(k, p), q = product(k, along_p);
    jot_value alpha = ratio(rho, jot_vdot(s[BI_SHADOW], q));
    jot_value half = moved(s[BI_R], jot_neg(alpha), q);
    jot_value along_half = preconditioned(k, half), t = product(k, along_half);
    // A half step that is good enough is not followed by the other half.
    jot_value ends = jot_less_equal(squared(half), k->limit2);
    jot_value omega = ratio(jot_vdot(t, half), jot_vdot(t, t));
    omega = jot_where(ends, jot_zeros_like(omega), omega);
    s[BI_X] = moved(moved(s[BI_X], alpha, along_p), omega, along_half);
    s[BI_R] = moved(half, jot_neg(omega), t);
    s[BI_P] = p;
    s[BI_Q] = q;
    s[BI_ALPHA] = alpha;
    s[BI_RHO] = jot_where(jot_equal(jot_mul(alpha, omega), jot_zeros_like(omega)),
                          jot_zeros_like(rho), rho);
    s[BI_OMEGA] = omega;
    s[BI_TRIPS] = jot_add(s[BI_TRIPS], jot_from_int(1));
}

static jot_value bicgstab(const struct krylov *k, jot_value b, jot_value x)
{
    jot_value r = residual(k, b, x), zero = jot_zeros_like(r);
    jot_value one = jot_ones_like(jot_vdot(r, r));
    jot_value s[BI_CARRIES] = {jot_zeros_dims(JOT_I32, (const int64_t[]){JOT_END}),
                               x,
                               r,
                               zero,
                               zero,
                               one,
                               one,
                               one,
                               r};
    jot_while_at(bicgstab_goes_on, bicgstab_step, (void *)k, BI_CARRIES, s, NULL, k->where);
    return s[BI_X];
}

// ---------------------------------------------------------------------------------------
// Generalised minimal residuals
//
// A round finds directions v[0], v[1], ... with M A v[j] = sum of h[j][i] v[i], i <= j + 1, and
// the combination of them with the least residual: a triangle by Givens rotations, from the bottom
// up.

static jot_value row(jot_value x, jot_value i) { return jot_take_values(x, i, 0); }
static jot_value column(jot_value x, jot_value i) { return jot_take_values(x, i, 1); }
static jot_value next(jot_value i) { return jot_add(i, jot_from_int(1)); }

// c: v, h
static void add_direction(jot_value j, jot_value *c, void *ctx)
{
    const struct krylov *k = ctx;
    jot_value w = preconditioned(k, product(k, row(c[0], j))), before = squared(w), h = {0, 0};
    for (int pass = 0; pass < 2; pass++) {
        jot_value along = jot_matmul(jot_conj(c[0]), w);
        w = jot_sub(w, jot_matmul(along, c[0]));
        h = pass ? jot_add(h, along) : along;
    }
    jot_value left2 = squared(w);
    jot_value counts = jot_less(jot_mul(num(k->epsilon * k->epsilon), before), left2);
    jot_value left = jot_where(counts, jot_sqrt(left2), jot_zeros_like(left2));
    jot_value inverse = jot_convert(ratio(jot_ones_like(left), left), jot_value_dtype(w));
    c[0] = jot_at_set_axis(c[0], next(j), jot_mul(inverse, w), 0);
    h = jot_at_set_axis(h, next(j), jot_convert(left, jot_value_dtype(h)), 0);
    c[1] = jot_at_set_axis(c[1], j, h, 0);
}

// c: h, g.  Turns elements j and j + 1 of all so that h[j][j + 1] is zero, which is real.
static void rotate(jot_value j, jot_value *c, void *ctx)
{
    (void)ctx;
    jot_value x = column(c[0], j), y = column(c[0], next(j)), a = row(x, j), b = row(y, j);
    jot_value r = jot_sqrt(jot_add(squared(a), squared(b)));
    jot_value is_zero = jot_equal(r, jot_zeros_like(r));
    a = jot_where(is_zero, jot_ones_like(a), ratio(a, r));
    b = ratio(b, r);
    jot_value *both[] = {&c[0], &c[1]};
    for (int i = 0; i < 2; i++) {
        int axis = i == 0;
        jot_value u = i ? row(*both[i], j) : x, w = i ? row(*both[i], next(j)) : y;
        jot_value turned = jot_add(jot_mul(jot_conj(a), u), jot_mul(b, w));
        jot_value other = jot_sub(jot_mul(a, w), jot_mul(b, u));
        *both[i] = jot_at_set_axis(*both[i], j, turned, axis);
        *both[i] = jot_at_set_axis(*both[i], next(j), other, axis);
    }
}

struct triangle {
    jot_value h, g;
    int m;
};

// c: y, of which the elements behind are known
static void substitute(jot_value step, jot_value *c, void *ctx)
{
    const struct triangle *t = ctx;
    jot_value i = jot_sub(jot_from_int(t->m - 1), step), of = column(t->h, i);
    jot_value left = jot_sub(row(t->g, i), jot_sum_axes(jot_mul(of, c[0]), NULL));
    c[0] = jot_at_set_axis(c[0], i, ratio(left, row(of, i)), 0);
}

enum { GM_TRIPS, GM_X, GM_R, GM_CARRIES };

static jot_value gmres_goes_on(const jot_value *s, void *ctx)
{
    return goes_on(ctx, s[GM_TRIPS], squared(s[GM_R]));
}

struct round {
    const struct krylov *k;
    jot_value b;
};

static jot_value round_goes_on(const jot_value *s, void *ctx)
{
    return gmres_goes_on(s, (void *)((const struct round *)ctx)->k);
}

static void gmres_round(jot_value *s, void *ctx)
{
    const struct round *round = ctx;
    const struct krylov *k = round->k;
    int m = k->o.restart < k->length ? k->o.restart : (int)k->length;
    jot_dtype d = jot_value_dtype(s[GM_R]);
    jot_value size = jot_convert(jot_sqrt(squared(s[GM_R])), d), first = jot_from_int(0);
    jot_value v = jot_zeros_dims(d, (const int64_t[]){m + 1, k->length, JOT_END});
    jot_value h = jot_zeros_dims(d, (const int64_t[]){m, m + 1, JOT_END});
    jot_value g = jot_zeros_dims(d, (const int64_t[]){m + 1, JOT_END});
    jot_value found[] = {
        jot_at_set_axis(v, first, jot_mul(ratio(jot_ones_like(size), size), s[GM_R]), 0), h};
    jot_for_at(add_direction, (void *)k, first, jot_from_int(m), 2, found, k->where);
    jot_value turned[] = {found[1], jot_at_set_axis(g, first, size, 0)};
    jot_for_at(rotate, NULL, first, jot_from_int(m), 2, turned, k->where);
    struct triangle t = {turned[0], turned[1], m};
    jot_value y = jot_zeros_dims(d, (const int64_t[]){m, JOT_END});
    jot_for_at(substitute, &t, first, jot_from_int(m), 1, &y, k->where);
    s[GM_X] = jot_add(s[GM_X], jot_matmul(y, jot_slice_axis(found[0], 0, 0, m, 1)));
    s[GM_R] = preconditioned(k, residual(k, round->b, s[GM_X]));
    s[GM_TRIPS] = next(s[GM_TRIPS]);
}

static jot_value gmres(const struct krylov *outer, jot_value b, jot_value x)
{
    struct krylov k = *outer;
    if (k.length == 0)
        return x;
    // What counts is the size of M r, against that of M b as |r| against |b|.
    if (k.o.preconditioner) {
        jot_value part = jot_minimum(ratio(k.limit2, squared(b)), num(1));
        k.limit2 = jot_mul(squared(preconditioned(&k, b)), part);
    }
    struct round round = {&k, b};
    jot_value s[GM_CARRIES] = {jot_zeros_dims(JOT_I32, (const int64_t[]){JOT_END}), x,
                               preconditioned(&k, residual(&k, b, x))};
    jot_while_at(round_goes_on, gmres_round, &round, GM_CARRIES, s, NULL, k.where);
    return s[GM_X];
}

// ---------------------------------------------------------------------------------------
// The solver

static void solve_body(const jot_value *in, jot_value *out, void *ctx)
{
    struct krylov k = *(const struct krylov *)ctx;
    k.like = in;
    jot_value b = trace_vector(k.n, in);
    jot_value x = jot_zeros_like(b),
              is_zero = jot_equal(squared(b), jot_zeros_like(squared(b)));
    if (k.o.x0) // of no use where b, or what takes its place in a derivative, is zero
        x = jot_where(is_zero, x, jot_convert(trace_vector(k.n, k.o.x0), jot_value_dtype(b)));
    k.length = jot_value_size(b);
    k.limit2 = limited(&k, b);
    k.epsilon = trace_epsilon(jot_value_dtype(b));
    trace_vector_parts(k.n, k.like, k.method->solve(&k, b, x), out);
}

// f^T of values in[0 .. n-1]: what reverse mode makes of it at zero.
struct transposed {
    jot_function f;
    int n;
    const char *where;
};

static void transposed_body(const jot_value *in, jot_value *out, void *ctx)
{
    const struct transposed *t = ctx;
    struct arena *arena = trace_top()->module->arena;
    jot_value *both = arena_array(arena, jot_value, 2 * t->n + 1);
    jot_value *results = arena_array(arena, jot_value, 2 * t->n + 1);
    for (int i = 0; i < t->n; i++) {
        both[i] = jot_zeros_like(in[i]);
        both[t->n + i] = in[i];
    }
    jot_apply_at(jot_vjp_of(t->f, t->where, NULL), 2 * (size_t)t->n, both, 2 * (size_t)t->n,
                 results, t->where);
    memcpy(out, results + t->n, sizeof *out * (size_t)t->n);
}

static jot_function function_over(const struct krylov *k, jot_body *body, void *ctx)
{
    return jot_function_uniform(k->method->name, k->where, body, k->n, k->n, ctx);
}

static bool check(const struct krylov *k, const jot_value *b, jot_value *out_error)
{
    const jot_krylov_options *o = &k->o;
    const char *name = k->method->name;
    if (!trace_ready(name, 0, NULL, out_error))
        return false;
    if (isnan(o->tol) || isnan(o->atol)) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "a tolerance is NaN");
        return false;
    }
    if (o->max_trips < 0 || o->restart < 0) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                "%lld trips, %d directions: neither can be negative",
                                (long long)o->max_trips, o->restart);
        return false;
    }
    for (int i = 0; o->x0 && i < k->n; i++) {
        int rank = jot_value_rank(o->x0[i]);
        bool is_like = rank == jot_value_rank(b[i]);
        for (int axis = 0; is_like && axis < rank; axis++)
            is_like = jot_value_dim(o->x0[i], axis) == jot_value_dim(b[i], axis);
        if (!is_like) {
            *out_error =
                trace_fail(name, JOT_ERR_SHAPE, "x0 has another shape than b in value %d", i);
            return false;
        }
    }
    return true;
}

struct request {
    struct krylov k;
    const jot_value *b;
};

// What the traced functions refer to for as long as the trace is open, where one is known by it.
struct contexts {
    struct krylov k, back;
    struct transposed a, preconditioner;
};

static bool make(void *ctx, jot_value *x, jot_value *out_error)
{
    const struct request *r = ctx;
    if (!check(&r->k, r->b, out_error))
        return false;
    struct contexts *c = arena_new(trace_top()->module->arena, struct contexts);
    struct krylov *k = &c->k;
    int64_t length = 0;
    bool is_real = true;
    *k = r->k;
    for (int i = 0; i < k->n; i++) {
        length += jot_value_size(r->b[i]);
        is_real = is_real && !dtype_is_complex(jot_value_dtype(r->b[i]));
    }
    k->tol2 = k->o.tol == 0 ? 1e-10 : k->o.tol < 0 ? 0 : k->o.tol * k->o.tol;
    k->o.max_trips = k->o.max_trips ? k->o.max_trips : 10 * length;
    if (k->o.max_trips > INT32_MAX) // they are counted in i32
        k->o.max_trips = INT32_MAX;
    k->o.restart = k->o.restart ? k->o.restart : 20;
    c->a = (struct transposed){k->a, k->n, k->where};
    c->preconditioner = (struct transposed){k->preconditioner, k->n, k->where};
    c->back = *k;
    c->back.a = function_over(k, transposed_body, &c->a);
    c->back.preconditioner = function_over(k, transposed_body, &c->preconditioner);
    bool is_own = k->method->keeps_symmetry && is_real;
    jot_linear_solve_tree(k->a, function_over(k, solve_body, k),
                          function_over(k, solve_body, is_own ? k : &c->back), (size_t)k->n,
                          r->b, x, k->where);
    return true;
}

static void solve(const struct method *method, jot_function a, size_t n, const jot_value *b,
                  jot_value *x, const jot_krylov_options *options, const char *where)
{
    if (trace_lacks(method->name, "b", n, b, n, x, where) ||
        trace_lacks(method->name, "x", n, x, n, x, where))
        return;
    struct request r = {{.method = method, .a = a, .where = where, .n = (int)n}, b};
    if (options)
        r.k.o = *options;
    if (r.k.o.preconditioner)
        r.k.preconditioner = *r.k.o.preconditioner;
    trace_make(make, &r, n, x, where);
}

#define METHOD(f, keeps)                                                                       \
    static const struct method f##_method = {"jot_" #f, f, keeps};                             \
    void jot_##f##_tree(jot_function a, size_t n, const jot_value *b, jot_value *x,            \
                        const jot_krylov_options *options, const char *where)                  \
    {                                                                                          \
        solve(&f##_method, a, n, b, x, options, where);                                        \
    }                                                                                          \
    jot_value jot_##f##_at(jot_function a, jot_value b, const jot_krylov_options *options,     \
                           const char *where)                                                  \
    {                                                                                          \
        jot_value x;                                                                           \
        solve(&f##_method, a, 1, &b, &x, options, where);                                      \
        return x;                                                                              \
    }

METHOD(cg, true)
METHOD(bicgstab, false)
METHOD(gmres, false)
