// SPDX-License-Identifier: Apache-2.0
// Errors of factors, which are judged by what they are to be: a product, orthonormal columns, an order.
#ifndef TESTS_TRACE_FACTOR_SUPPORT_H
#define TESTS_TRACE_FACTOR_SUPPORT_H

#include "trace_support.h"

enum { SEED = 7 };

static inline jot_array *evaluated(jot_value v)
{
    jot_array *a = NULL;
    must(jot_eval(v, &a));
    return a;
}

static inline jot_value normal(jot_dtype d, int seed, const int64_t *dims)
{
    return jot_random_normal_dims(jot_random_key(jot_from(seed)), d, dims);
}

static inline jot_array *draw(jot_dtype d, int seed, const int64_t *dims)
{
    jot_scope *s = jot_scope_open();
    bool is_complex = d == JOT_C64 || d == JOT_C128;
    jot_dtype part = d == JOT_C64 ? JOT_F32 : d == JOT_C128 ? JOT_F64 : d;
    jot_value x = normal(part, SEED + 2 * seed, dims);
    if (is_complex)
        x = jot_complex(x, normal(part, SEED + 2 * seed + 1, dims));
    jot_array *a = evaluated(x);
    jot_scope_close(s);
    return a;
}

static inline double item(jot_function f, jot_array *a)
{
    jot_array *y = NULL;
    jot_executable *e = jot_jit(f);
    must(jot_call(e, JOT_IN(a), JOT_OUT(y)));
    double x = jot_array_dtype(y) == JOT_F32 ? (double)*(const float *)jot_array_data(y)
                                             : *(const double *)jot_array_data(y);
    jot_array_release(y);
    jot_executable_release(e);
    return x;
}

// ---- What factors are

static inline jot_value adjoint(jot_value a) { return jot_conj(jot_swap_axes(a, -2, -1)); }

static inline jot_value largest(jot_value x) { return jot_max(jot_abs(x)); }

static inline jot_value as(jot_value like, jot_value x)
{
    return jot_astype(x, jot_value_dtype(like));
}

// How far the columns are from orthonormal.
static inline jot_value off_unitary(jot_value q)
{
    int64_t n = jot_value_dim(q, -1);
    return largest(jot_sub(jot_matmul(adjoint(q), q), jot_eye(jot_value_dtype(q), n, n)));
}

// The largest element, or of zeros what makes no difference to them.
static inline jot_value scale_of(jot_value a) { return jot_maximum(largest(a), 0x1p-126); }

static inline jot_value worst(jot_value a, jot_value product, jot_value others)
{
    return jot_maximum(jot_div(largest(jot_sub(a, product)), scale_of(a)), others);
}

static inline jot_value qr_errors_of(jot_value a, jot_qr_factors f)
{
    return worst(a, jot_matmul(f.q, f.r),
                 jot_maximum(off_unitary(f.q), largest(jot_tril(f.r, -1))));
}

static inline jot_value qr_errors(jot_value a) { return qr_errors_of(a, jot_qr(a)); }
static inline jot_value qr_full_errors(jot_value a) { return qr_errors_of(a, jot_qr_full(a)); }

static inline jot_value columns_by(jot_value v, jot_value w)
{
    return jot_mul(v, as(v, jot_expand_dims(w, -2)));
}

static inline jot_value descents(jot_value w)
{
    int64_t n = jot_value_dim(w, -1);
    return jot_sum(jot_astype(jot_less(jot_slice(w, -1, 1, n), jot_slice(w, -1, 0, n - 1)),
                              jot_value_dtype(w)));
}

static inline jot_value eigh_errors(jot_value a)
{
    jot_value h = jot_mul(jot_add(a, adjoint(a)), 0.5);
    jot_eigen e = jot_eigh(a), low = jot_eigh_lower(jot_tril(h, 0)),
              up = jot_eigh_upper(jot_triu(h, 0));
    jot_value values = jot_maximum(largest(jot_sub(e.values, low.values)),
                                   largest(jot_sub(e.values, up.values)));
    values = jot_maximum(values, largest(jot_sub(e.values, jot_eigvalsh(a))));
    values = jot_maximum(jot_div(values, scale_of(h)), descents(e.values));
    return worst(h, jot_matmul(columns_by(e.vectors, e.values), adjoint(e.vectors)),
                 jot_maximum(values, off_unitary(e.vectors)));
}

static inline jot_value svd_errors_of(jot_value a, jot_svd_factors f)
{
    int64_t k = jot_value_dim(f.s, -1);
    jot_value values = jot_div(largest(jot_sub(f.s, jot_svdvals(a))), scale_of(a));
    jot_value order = jot_add(descents(jot_neg(f.s)), jot_maximum(jot_neg(jot_min(f.s)), 0));
    jot_value unitary = jot_maximum(off_unitary(f.u), off_unitary(adjoint(f.vh)));
    jot_value product =
        jot_matmul(columns_by(jot_slice(f.u, -1, 0, k), f.s), jot_slice(f.vh, -2, 0, k));
    return worst(a, product, jot_maximum(jot_maximum(values, order), unitary));
}

static inline jot_value svd_errors(jot_value a) { return svd_errors_of(a, jot_svd(a)); }
static inline jot_value svd_full_errors(jot_value a)
{
    return svd_errors_of(a, jot_svd_full(a));
}

#endif
