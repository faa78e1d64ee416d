// SPDX-License-Identifier: Apache-2.0
// What searches for minima share: the values of x as one vector, and the derivative of what is
// found.
#include "library/minimize.h"

#include "library/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 1 << 16, MOST_OF_MATRIX = 64 };

jot_value library_largest(jot_value v) { return jot_max_axes(jot_abs(v), NULL); }

jot_value library_zero_count(void)
{
    return jot_zeros_dims(JOT_I32, (const int64_t[]){JOT_END});
}

// ---------------------------------------------------------------------------------------
// Vectors

static jot_value vector_of(size_t n, const jot_value *x, jot_value *flat)
{
    for (size_t i = 0; i < n; i++)
        flat[i] = jot_reshape_dims(x[i], (const int64_t[]){jot_value_size(x[i]), JOT_END});
    return n == 1 ? flat[0] : jot_concatenate_list(0, n, flat);
}

static void parts_of(const struct search *s, jot_value vector, jot_value *x)
{
    enum { MOST_RANK = 64 };
    int64_t start = 0;
    for (size_t i = 0; i < s->n; i++) {
        int64_t size = jot_value_size(s->like[i]), dims[MOST_RANK + 1];
        int rank = jot_value_rank(s->like[i]);
        for (int axis = 0; axis < rank && axis < MOST_RANK; axis++)
            dims[axis] = jot_value_dim(s->like[i], axis);
        dims[rank < MOST_RANK ? rank : MOST_RANK] = JOT_END;
        jot_value part = s->n == 1 ? vector : jot_slice_axis(vector, 0, start, start + size, 1);
        x[i] = jot_reshape_dims(part, dims);
        start += size;
    }
}

void library_apply(const struct search *s, jot_value vector, size_t n_out, jot_value *out)
{
    jot_value *x = jot_trace_memory(s->n * sizeof *x);
    for (size_t i = 0; !x && i < n_out; i++)
        out[i] = jot_error(JOT_ERR_MEMORY, s->name, NULL);
    if (!x)
        return;
    parts_of(s, vector, x);
    jot_apply_at(s->f, s->n, x, n_out, out, s->where);
}

jot_value library_through(const struct search *s, jot_value vector)
{
    jot_value *x = jot_trace_memory(2 * s->n * sizeof *x);
    if (!x)
        return jot_error(JOT_ERR_MEMORY, s->name, NULL);
    library_apply(s, vector, s->n, x);
    for (size_t i = 0; i < s->n; i++) {
        if (jot_value_failed(x[i]))
            return x[i];
        char text[160];
        snprintf(text, sizeof text, "%.60s gives value %zu with another shape than x has",
                 s->f.callee.name, i);
        if (!has_shape_of(x[i], s->like[i]))
            return jot_error(JOT_ERR_SHAPE, s->name, text);
        x[i] = jot_convert(x[i], s->dtype);
    }
    return vector_of(s->n, x, x + s->n);
}

void library_parts(const struct search *s, jot_value vector, jot_value *x)
{
    parts_of(s, vector, x);
    for (size_t i = 0; i < s->n; i++)
        jot_place(x[i], s->where);
}

static void value_body(const jot_value *in, jot_value *out, void *ctx)
{
    library_apply(ctx, in[0], 1, out);
}

void library_evaluate(const struct search *s, jot_value vector, jot_value *value,
                      jot_value *gradient)
{
    jot_value out[2];
    jot_apply_at(s->with_gradient, 1, &vector, 2, out, s->where);
    *value = out[0];
    *gradient = out[1];
}

// ---------------------------------------------------------------------------------------
// The beginning

bool library_refuses(const struct search_kind *kind, const jot_minimize_options *o, char *text,
                     size_t size)
{
    if (!(o->tol >= 0 && isfinite(o->tol)))
        snprintf(text, size, "tol is %g: finite and not below 0", o->tol);
    else if (o->max_steps < 0 || o->max_steps > INT32_MAX)
        snprintf(text, size, "max_steps is %lld: 0 to 2^31 - 1", (long long)o->max_steps);
    else if (o->history < 0 || o->history > MOST_HISTORY)
        snprintf(text, size, "history is %d: 0 to %d", o->history, MOST_HISTORY);
    else if ((o->history && !kind->has_history) || (o->is_matrix_free && !kind->has_products))
        snprintf(text, size, "%s is set: it has no such option",
                 o->history && !kind->has_history ? "history" : "is_matrix_free");
    else
        return false;
    return true;
}

static bool check(const struct search_kind *kind, struct search *s, const jot_value *x,
                  jot_value *out_error)
{
    char text[160] = "";
    jot_status status = JOT_ERR_ARGUMENT;
    if (!x || s->n == 0 || s->n > MOST_VALUES)
        snprintf(text, sizeof text, x ? "n is %zu: 1 to %d values" : "x is NULL", s->n,
                 (int)MOST_VALUES);
    else
        library_refuses(kind, &s->o, text, sizeof text);
    for (size_t i = 0; !text[0] && i < s->n; i++) {
        jot_dtype d = jot_value_dtype(x[i]);
        status = JOT_ERR_DTYPE;
        if (jot_value_failed(x[i])) {
            *out_error = x[i];
            return false;
        }
        if ((d != JOT_F32 && d != JOT_F64) || d != jot_value_dtype(x[0]))
            snprintf(text, sizeof text, "value %zu of x is of %s: all are of f32 or of f64", i,
                     jot_dtype_name(d));
        s->length += jot_value_size(x[i]);
    }
    if (!text[0] && s->length == 0)
        snprintf(text, sizeof text, "x has no elements");
    if (text[0])
        *out_error = jot_error(status, s->name, text);
    return !text[0];
}

static void *fail(size_t n, jot_value *x, const char *where, jot_value error, jot_search *out)
{
    jot_place(error, where);
    *out = (jot_search){error, error, error};
    for (size_t i = 0; x && i < n && n <= MOST_VALUES; i++)
        x[i] = error;
    return NULL;
}

void *library_search(const struct search_kind *kind, size_t size, jot_function f, size_t n,
                     jot_value *x, const jot_minimize_options *options, const char *where,
                     jot_value *start, jot_search *out)
{
    jot_value error;
    struct search given = {.name = kind->name, .where = where, .f = f, .n = n};
    given.o = options ? *options : (jot_minimize_options){0};
    if (!check(kind, &given, x, &error))
        return fail(n, x, where, error, out);
    struct search *s = jot_trace_memory(size);
    jot_value *like = jot_trace_memory(2 * n * sizeof *like);
    if (!s || !like)
        return fail(n, x, where,
                    jot_error(JOT_ERR_MEMORY, kind->name, "no memory, or no trace"), out);
    *s = given;
    memcpy(like, x, n * sizeof *x);
    s->like = like;
    s->dtype = jot_value_dtype(x[0]);
    s->o.tol = s->o.tol ? s->o.tol : s->dtype == JOT_F32 ? 1e-4 : 1e-8;
    s->o.max_steps = s->o.max_steps ? s->o.max_steps : 500;
    s->o.history = s->o.history ? s->o.history : 10;
    s->value = jot_function_uniform(kind->name, where, value_body, 1, 1, s);
    s->with_gradient = jot_value_and_grad_of(s->value, where, NULL);
    *start = vector_of(n, like, like + n);
    return s;
}

bool library_fits(const struct search *s, jot_value value, jot_value *x, jot_search *out)
{
    char text[160];
    jot_dtype d = jot_value_dtype(value);
    if (jot_value_failed(value) || d == s->dtype)
        return true;
    snprintf(text, sizeof text,
             "the start is of %s, what %.60s gives of %s: convert one of them",
             jot_dtype_name(s->dtype), s->f.callee.name, jot_dtype_name(d));
    fail(s->n, x, s->where, jot_error(JOT_ERR_DTYPE, s->name, text), out);
    return false;
}

// ---------------------------------------------------------------------------------------
// The end

jot_function library_gradient(const struct search *s)
{
    return jot_grad_of(s->value, s->where, NULL);
}

static void same(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = in[0];
}

jot_function library_is_root(const char *name, const char *where)
{
    return jot_function_uniform(name, where, same, 1, 1, NULL);
}

static void solve_by_cg(jot_function linear, size_t n, const jot_value *y, jot_value *x,
                        void *ctx)
{
    const struct search *s = ctx;
    jot_krylov_options o = {.tol = s->dtype == JOT_F32 ? 1e-6 : 1e-12};
    jot_cg_tree(linear, n, y, x, &o, s->where);
}

static void solve_by_gmres(jot_function linear, size_t n, const jot_value *y, jot_value *x,
                           void *ctx)
{
    const struct search *s = ctx;
    jot_krylov_options o = {.tol = s->dtype == JOT_F32 ? 1e-6 : 1e-12};
    jot_gmres_tree(linear, n, y, x, &o, s->where);
}

jot_value library_held(jot_value vector, jot_value value)
{
    return or_nan(jot_is_finite(jot_stop_gradient(value)), vector);
}

void library_found(const struct search *s, jot_function equation, bool is_symmetric,
                   jot_value vector, jot_value value, jot_value *x)
{
    jot_tangent_solve *solve = s->length <= MOST_OF_MATRIX ? NULL
                               : is_symmetric              ? solve_by_cg
                                                           : solve_by_gmres;
    jot_value found =
        jot_custom_root_at(equation, jot_stop_gradient(vector),
                           library_is_root(s->name, s->where), solve, (void *)s, s->where);
    library_parts(s, library_held(found, value), x);
}

jot_search library_minimum(const struct search *s, jot_value value, jot_value gradient,
                           jot_value steps)
{
    jot_search m = {jot_stop_gradient(value), jot_stop_gradient(library_largest(gradient)),
                    steps};
    jot_place(m.value, s->where);
    jot_place(m.gradient, s->where);
    jot_place(m.steps, s->where);
    return m;
}
