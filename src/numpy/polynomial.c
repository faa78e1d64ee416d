// SPDX-License-Identifier: Apache-2.0
// Polynomials as vectors of coefficients, that of the highest power first.
#include "trace/emit.h"

#include "jot/control.h"
#include "jot/decompose.h"
#include "jot/indexing.h"
#include "jot/numeric.h"
#include "jot/ordering.h"
#include "jot/shapes.h"

#include <math.h>

static const int column[] = {1, JOT_END};
static const int64_t flat[] = {-1, JOT_END};

static bool are_vectors(const char *name, int n, jot_value *v, jot_value *out_error)
{
    if (!trace_ready(name, n, v, out_error))
        return false;
    for (int i = 0; i < n; i++)
        if (trace_type(v[i]).rank != 1) {
            *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s is no vector of coefficients",
                                    trace_type_text(v[i]));
            return false;
        }
    return true;
}

static void horner(jot_value *sum, const jot_value *coefficient, jot_value *out, void *ctx)
{
    (void)out;
    sum[0] = jot_add(jot_mul(sum[0], *(jot_value *)ctx), coefficient[0]);
}

// Short ones are written out, so that they are one expression of a kernel.
static jot_value polyval(jot_value p, jot_value x)
{
    enum { SHORT = 32 };
    jot_value v[] = {p, x}, error;
    if (!are_vectors("jot_polyval", 1, v, &error) || !trace_ready("jot_polyval", 2, v, &error))
        return error;
    int64_t n = jot_value_dim(v[0], 0);
    jot_value sum = jot_mul(jot_zeros_like(v[1]), jot_sum_axes(jot_zeros_like(v[0]), NULL));
    if (n > SHORT) {
        jot_scan_at(horner, &v[1], 1, &sum, 1, v, 0, NULL, NULL, "jot_polyval");
        return sum;
    }
    for (int64_t i = 0; i < n; i++) {
        jot_value c = jot_take_axis(v[0], i, 0);
        sum = i ? jot_add(jot_mul(sum, v[1]), c) : jot_add(sum, c);
    }
    return sum;
}

jot_value jot_polyval(jot_value p, jot_value x) { TRACE_RETURN(polyval(p, x)); }

static jot_value lengthened(jot_value p, int64_t n)
{
    return jot_pad_axis(p, jot_from_int(0), 0, n - jot_value_dim(p, 0), 0);
}

static jot_value term_by_term(const char *name, jot_value (*f)(jot_value, jot_value),
                              jot_value p, jot_value q)
{
    jot_value v[] = {p, q}, error;
    if (!are_vectors(name, 2, v, &error))
        return error;
    int64_t n = jot_value_dim(v[0], 0), m = jot_value_dim(v[1], 0), most = n > m ? n : m;
    return f(lengthened(v[0], most), lengthened(v[1], most));
}

jot_value jot_polyadd(jot_value p, jot_value q)
{
    TRACE_RETURN(term_by_term("jot_polyadd", jot_add, p, q));
}

jot_value jot_polysub(jot_value p, jot_value q)
{
    TRACE_RETURN(term_by_term("jot_polysub", jot_sub, p, q));
}

// Rows p_i q, each one element further than the one before: as rows that are one longer than the
// matrix of the result, read with its width.
static jot_value polymul(jot_value p, jot_value q)
{
    jot_value v[] = {p, q}, error;
    if (!are_vectors("jot_polymul", 2, v, &error))
        return error;
    int64_t n = jot_value_dim(v[0], 0), m = jot_value_dim(v[1], 0), width = n + m - 1;
    if (n == 0 || m == 0)
        return trace_fail("jot_polymul", JOT_ERR_SHAPE,
                          "%s and %s: each has a coefficient at least", trace_type_text(v[0]),
                          trace_type_text(v[1]));
    const int64_t matrix[] = {n, width, JOT_END};
    jot_value rows = jot_mul(jot_expand_dims_axes(v[0], column), v[1]);
    rows = jot_reshape_dims(jot_pad_axis(rows, jot_from_int(0), 1, 0, n), flat);
    rows = jot_reshape_dims(jot_slice_axis(rows, 0, 0, n * width, 1), matrix);
    return jot_sum_axes(rows, (const int[]){0, JOT_END});
}

jot_value jot_polymul(jot_value p, jot_value q) { TRACE_RETURN(polymul(p, q)); }

static jot_value polydiv(jot_value p, jot_value q, jot_value *out_rest)
{
    jot_value v[] = {p, q}, error;
    if (!are_vectors("jot_polydiv", 2, v, &error))
        return error;
    int64_t n = jot_value_dim(v[0], 0), m = jot_value_dim(v[1], 0);
    if (m == 0)
        return trace_fail("jot_polydiv", JOT_ERR_SHAPE, "a division by %s, of no coefficients",
                          trace_type_text(v[1]));
    if (n - m >= TRACE_MOST_TIMES)
        return trace_fail("jot_polydiv", JOT_ERR_ARGUMENT,
                          "%s by %s: it takes quotients of at most %d coefficients",
                          trace_type_text(v[0]), trace_type_text(v[1]), TRACE_MOST_TIMES);
    jot_value zero = jot_from_int(0), left = jot_mul(v[0], jot_from_double(1));
    jot_value quotient = jot_slice_axis(left, 0, 0, 0, 1), leading = jot_take_axis(v[1], 0, 0);
    if (n < m) // the quotient is 0
        quotient =
            jot_zeros_like(jot_slice_axis(jot_pad_axis(left, zero, 0, 0, 1), 0, 0, 1, 1));
    for (int64_t i = 0; i + m <= n; i++) {
        jot_value c = jot_div(jot_slice_axis(left, 0, i, i + 1, 1), leading);
        quotient = jot_concatenate_list(0, 2, (const jot_value[]){quotient, c});
        left = jot_sub(left, jot_pad_axis(jot_mul(c, v[1]), zero, 0, i, n - m - i));
    }
    *out_rest = left;
    return quotient;
}

static jot_value guarded_polydiv(jot_value p, jot_value q, jot_value *out_rest)
{
    TRACE_RETURN(polydiv(p, q, out_rest));
}

static jot_value fail_count(size_t n)
{
    TRACE_RETURN(trace_fail("jot_polydiv", JOT_ERR_ARGUMENT, "into %zu values: it gives 2", n));
}

void jot_polydiv_into(jot_value p, jot_value q, size_t n, jot_value *out)
{
    if (trace_lacks("jot_polydiv", "out", n, out, n, out, NULL))
        return;
    jot_value remainder = p;
    jot_value quotient = n == 2 ? guarded_polydiv(p, q, &remainder) : fail_count(n);
    for (size_t i = 0; i < n; i++)
        out[i] = i == 1 && !jot_value_failed(quotient) ? remainder : quotient;
}

// n, n - 1, ..., 1.
static jot_value powers(int64_t n)
{
    return jot_sub(jot_full_dims(JOT_I32, jot_from_int(n), NULL), jot_arange(JOT_I32, n));
}

// A vector and how often it is derived or integrated; what makes it empty goes on at no cost.
static bool open_times(const char *name, jot_value *p, int n, bool shrinks,
                       jot_value *out_error)
{
    if (!are_vectors(name, 1, p, out_error))
        return false;
    if (n < 0)
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "%d times: it takes 0 or more", n);
    else if (n > TRACE_MOST_TIMES && !(shrinks && jot_value_dim(*p, 0) <= TRACE_MOST_TIMES))
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "%d times: it takes at most %d", n,
                                TRACE_MOST_TIMES);
    else
        return true;
    return false;
}

static jot_value polyder(jot_value p, int n)
{
    jot_value error;
    if (!open_times("jot_polyder", &p, n, true, &error))
        return error;
    for (int64_t size; n > 0 && (size = jot_value_dim(p, 0)) > 0; n--)
        p = jot_mul(jot_slice_axis(p, 0, 0, size - 1, 1), powers(size - 1));
    return p;
}

jot_value jot_polyder(jot_value p, int n) { TRACE_RETURN(polyder(p, n)); }

static jot_value polyint(jot_value p, int n)
{
    jot_value error;
    if (!open_times("jot_polyint", &p, n, false, &error))
        return error;
    for (; n > 0; n--)
        p = jot_pad_axis(jot_div(p, powers(jot_value_dim(p, 0))), jot_from_int(0), 0, 0, 1);
    return p;
}

jot_value jot_polyint(jot_value p, int n) { TRACE_RETURN(polyint(p, n)); }

static jot_value poly(jot_value zeros)
{
    jot_value error, nothing = jot_from_int(0);
    if (!are_vectors("jot_poly", 1, &zeros, &error))
        return error;
    if (jot_value_dim(zeros, 0) > TRACE_MOST_TIMES)
        return trace_fail("jot_poly", JOT_ERR_ARGUMENT, "%s: it takes at most %d zeros",
                          trace_type_text(zeros), TRACE_MOST_TIMES);
    jot_value z = jot_mul(zeros, jot_from_double(1));
    jot_value p = jot_pad_axis(jot_slice_axis(z, 0, 0, 0, 1), jot_from_int(1), 0, 1, 0);
    for (int64_t i = 0; i < jot_value_dim(z, 0); i++) // p times x - zero
        p = jot_sub(jot_pad_axis(p, nothing, 0, 0, 1),
                    jot_pad_axis(jot_mul(p, jot_take_axis(z, i, 0)), nothing, 0, 1, 0));
    return p;
}

jot_value jot_poly(jot_value zeros) { TRACE_RETURN(poly(zeros)); }

// Coefficients that begin with zeros are rolled until one that is not 0 is the first.  The rows of the
// companion matrix that this adds are zero, so that their eigenvalues are exactly 0; these go last.
static jot_value roots(jot_value p)
{
    const int all[] = {JOT_END};
    jot_value error, zero = jot_from_int(0), one = jot_from_int(1);
    if (!are_vectors("jot_roots", 1, &p, &error))
        return error;
    p = jot_mul(p, jot_from_double(1));
    int64_t n = jot_value_dim(p, 0), m = n > 1 ? n - 1 : 0;
    jot_dtype d = jot_value_dtype(p),
              complex = d == JOT_F64 || d == JOT_C128 ? JOT_C128 : JOT_C64;
    if (m == 0)
        return jot_zeros_dims(complex, (const int64_t[]){0, JOT_END});
    jot_value is_zero = jot_equal(p, zero), none = jot_all_axes(is_zero, all);
    jot_value added = jot_argmin_axes(is_zero, all), numbers = jot_arange(JOT_I32, m);
    jot_value from = jot_rem(jot_add(jot_arange(JOT_I32, n), added), jot_from_int(n));
    jot_value c = jot_where(none, one, jot_take_mode(p, from, 0, JOT_INDEX_PROMISE));
    jot_value row = jot_neg(jot_div(jot_slice_axis(c, 0, 1, n, 1), jot_take_axis(c, 0, 0)));
    jot_value is_root = jot_less(numbers, jot_sub(jot_from_int(m), added));
    jot_value below = jot_diag(jot_convert(jot_slice_axis(is_root, 0, 1, m, 1), d), -1);
    below = jot_slice_axis(below, 0, 1, m, 1);
    jot_value rows[] = {jot_expand_dims_axes(row, (const int[]){0, JOT_END}), below};
    jot_value z = jot_eigvals(jot_concatenate_list(0, 2, rows));
    jot_value keyed[] = {jot_equal(z, zero), z};
    jot_sort_by_key_into(0, 1, 2, keyed);
    jot_value missing = jot_full_dims(complex, jot_from_double((double)NAN), NULL);
    return jot_where(jot_logical_and(is_root, jot_logical_not(none)), keyed[1], missing);
}

jot_value jot_roots(jot_value p) { TRACE_RETURN(roots(p)); }
