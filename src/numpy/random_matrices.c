// SPDX-License-Identifier: Apache-2.0
// Random vectors and matrices that are made of normal numbers.
#include "trace/random.h"

#include "jot/decompose.h"
#include "jot/linalg.h"
#include "jot/shapes.h"

// r with r r^H = cov.
static jot_value root_of(jot_value cov, enum jot_random_root root)
{
    jot_value vectors, squares;
    if (root == JOT_RANDOM_CHOLESKY)
        return jot_cholesky(cov);
    if (root == JOT_RANDOM_SVD) {
        jot_svd_factors f = jot_svd(cov);
        vectors = f.u;
        squares = f.s;
    } else {
        jot_eigen f = jot_eigh(cov);
        vectors = f.vectors;
        squares = f.values;
    }
    return jot_mul(vectors,
                   jot_expand_dims_axes(jot_sqrt(squares), (const int[]){-2, JOT_END}));
}

static bool is_covariance(const char *name, jot_value mean, jot_value cov, jot_value *out_error)
{
    int n = trace_type(mean).rank, m = trace_type(cov).rank;
    if (n >= 1 && m >= 2 && jot_value_dim(cov, -1) == jot_value_dim(mean, -1) &&
        jot_value_dim(cov, -2) == jot_value_dim(mean, -1))
        return true;
    *out_error = trace_fail(name, JOT_ERR_SHAPE,
                            "the mean %s and the covariance %s: they are [..., n], [..., n, n]",
                            trace_type_text(mean), trace_type_text(cov));
    return false;
}

static jot_value multivariate_normal(const char *name, jot_value key, jot_dtype dtype,
                                     jot_value mean, jot_value cov, enum jot_random_root root,
                                     const int64_t *dims)
{
    struct random_request r;
    const int column[] = {-1, JOT_END};
    jot_value v[] = {mean, cov}, error;
    if ((unsigned)root > JOT_RANDOM_SVD)
        return trace_fail(name, JOT_ERR_ARGUMENT, "there is no root %d", (int)root);
    if (!trace_ready(name, 2, v, &error) || !is_covariance(name, v[0], v[1], &error))
        return error;
    for (int i = 0; i < 2; i++)
        v[i] = jot_convert(v[i], dtype);
    // What the axes before those of the matrix broadcast to, as the covariance has one more.
    jot_value batch[] = {jot_take_axis(v[0], 0, -1),
                         jot_take_axis(jot_take_axis(v[1], 0, -1), 0, -1)};
    if (!random_open_params(&r, name, key, dtype, 2, batch, dims, &error))
        return error;
    if (r.rank == IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "more than %d axes", IR_MAX_RANK);
    r.dims[r.rank] = jot_value_dim(v[0], -1);
    r.dims[r.rank + 1] = JOT_END;
    jot_value z = jot_random_normal_dims(r.key, dtype, r.dims);
    jot_value y = jot_matmul(root_of(v[1], root), jot_expand_dims_axes(z, column));
    return jot_add(v[0], jot_squeeze_axes(y, column));
}

jot_value jot_random_multivariate_normal_dims(jot_value key, jot_dtype dtype, jot_value mean,
                                              jot_value cov, const int64_t *dims)
{
    TRACE_RETURN(multivariate_normal("jot_random_multivariate_normal", key, dtype, mean, cov,
                                     JOT_RANDOM_CHOLESKY, dims));
}

jot_value jot_random_multivariate_normal_root_dims(jot_value key, jot_dtype dtype,
                                                   jot_value mean, jot_value cov,
                                                   enum jot_random_root root,
                                                   const int64_t *dims)
{
    TRACE_RETURN(multivariate_normal("jot_random_multivariate_normal_root", key, dtype, mean,
                                     cov, root, dims));
}

static jot_value orthogonal(jot_value key, jot_dtype dtype, int64_t n, int64_t m,
                            const int64_t *dims)
{
    const char *name = "jot_random_orthogonal";
    struct random_request r;
    jot_value error;
    if (!random_open(&r, name, key, dtype, dims, &error))
        return error;
    if (n < 0 || m < 0 || r.rank + 2 > IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "%lld by %lld after %d axes", (long long)n,
                          (long long)m, r.rank);
    r.dims[r.rank] = n > m ? n : m;
    r.dims[r.rank + 1] = n > m ? m : n;
    r.dims[r.rank + 2] = JOT_END;
    if (!trace_count(name, r.rank + 2, r.dims, RANDOM_MOST_NUMBERS, &r.count, &error))
        return error;
    jot_qr_factors f = jot_qr(jot_random_normal_dims(r.key, dtype, r.dims));
    jot_value sign = jot_sign(jot_diagonal(f.r, 0, -2, -1));
    jot_value q = jot_mul(f.q, jot_expand_dims_axes(sign, (const int[]){-2, JOT_END}));
    return n < m ? jot_swap_axes(q, -2, -1) : q;
}

jot_value jot_random_orthogonal_dims(jot_value key, jot_dtype dtype, int64_t n, int64_t m,
                                     const int64_t *dims)
{
    TRACE_RETURN(orthogonal(key, dtype, n, m, dims));
}
