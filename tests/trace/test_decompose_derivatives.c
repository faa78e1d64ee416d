// SPDX-License-Identifier: Apache-2.0
// Derivatives and maps of decompositions, by the evaluator and by routines.
#include "factor_support.h"
#include "support/sample.h"

// Real numbers that depend on all elements, each in another way.
static jot_value mix(jot_value x)
{
    jot_value flat = jot_reshape(x, -1);
    int64_t n = jot_value_dim(flat, 0);
    jot_value w = jot_cos(jot_add(jot_arange(JOT_F64, n), 0.3));
    bool is_complex = jot_value_dtype(x) == JOT_C128;
    jot_value y = jot_sum(jot_mul(w, is_complex ? jot_real(flat) : flat));
    return is_complex ? jot_add(y, jot_sum(jot_mul(jot_sin(w), jot_imag(flat)))) : y;
}

static jot_value of_qr(jot_value a)
{
    jot_qr_factors f = jot_qr(a);
    return jot_add(mix(f.q), mix(f.r));
}

// The columns that complete q are free but for the space they span.
static jot_value of_qr_full(jot_value a)
{
    jot_qr_factors f = jot_qr_full(a);
    int64_t m = jot_value_dim(a, -2), n = jot_value_dim(a, -1), k = m < n ? m : n;
    jot_value rest = jot_slice(f.q, -1, k, m);
    jot_value y = jot_add(mix(jot_slice(f.q, -1, 0, k)), mix(f.r));
    return jot_add(y, mix(jot_matmul(rest, adjoint(rest))));
}

static jot_value of_eigh(jot_value a)
{
    jot_eigen e = jot_eigh(a);
    jot_value f = jot_matmul(columns_by(e.vectors, jot_sin(e.values)), adjoint(e.vectors));
    return jot_add(mix(f), jot_sum(jot_cos(e.values)));
}

// An element of the projection on the first two vectors.
static jot_value of_projection(jot_value a)
{
    jot_value v = jot_slice(jot_eigh(a).vectors, -1, 0, 2);
    return mix(jot_matmul(v, adjoint(v)));
}

static jot_value of_svd(jot_value a)
{
    jot_svd_factors f = jot_svd(a);
    jot_value y = jot_add(jot_sum(jot_cos(f.s)), jot_sum(jot_sin(jot_svdvals(a))));
    return jot_add(mix(jot_matmul(columns_by(f.u, jot_sin(f.s)), f.vh)), y);
}

// The vectors that complete u or vh are free but for the space they span.
static jot_value of_svd_full(jot_value a)
{
    jot_svd_factors f = jot_svd_full(a);
    int64_t m = jot_value_dim(a, -2), n = jot_value_dim(a, -1), k = m < n ? m : n;
    jot_value u = jot_slice(f.u, -1, k, m), vh = jot_slice(f.vh, -2, k, n);
    jot_value y = mix(jot_matmul(columns_by(jot_slice(f.u, -1, 0, k), jot_sin(f.s)),
                                 jot_slice(f.vh, -2, 0, k)));
    return jot_add(jot_add(y, mix(jot_matmul(u, adjoint(u)))),
                   mix(jot_matmul(adjoint(vh), vh)));
}

// The unitary factor of the polar decomposition.
static jot_value of_polar(jot_value a)
{
    jot_svd_factors f = jot_svd(a);
    return jot_add(mix(jot_matmul(f.u, f.vh)), jot_sum(jot_cos(f.s)));
}

static jot_value of_values(jot_value a) { return jot_sum(jot_cos(jot_eigvalsh(a))); }

static jot_value of_projector(jot_value a)
{
    jot_svd_factors f = jot_svd(a);
    return jot_add(mix(jot_matmul(f.u, adjoint(f.u))), mix(jot_matmul(adjoint(f.vh), f.vh)));
}

// Weighted by the eigenvalues, for their order is free, as is the sign of vectors.
static jot_value of_eigenvectors(jot_eigen e)
{
    jot_value sizes = jot_real(jot_mul(e.vectors, jot_conj(e.vectors)));
    jot_value w = jot_mul(e.values, jot_convert(jot_sum(jot_mul(sizes, sizes), -2), JOT_C128));
    jot_value phased = jot_sum(jot_mul(jot_square(jot_sum(e.vectors, -2)), e.values));
    return jot_add(mix(jot_sum(w)), mix(phased));
}

static jot_value of_eig(jot_value a)
{
    return jot_add(of_eigenvectors(jot_eig(a)), mix(jot_sum(jot_sin(jot_eigvals(a)))));
}

static jot_value of_left(jot_value a)
{
    jot_eigen_pairs p = jot_eig_pairs(a);
    return jot_add(of_eigenvectors((jot_eigen){p.values, p.right}),
                   of_eigenvectors((jot_eigen){p.values, p.left}));
}

static jot_value of_pinv(jot_value a) { return mix(jot_pinv(a, -1)); }
static jot_value of_lstsq(jot_value a)
{
    return mix(jot_lstsq(a, jot_slice(jot_sin(a), -1, 0, 2), -1).x);
}
static jot_value of_norms(jot_value a)
{
    jot_value y = jot_add(jot_matrix_norm(a, JOT_NORM_NUCLEAR), jot_matrix_norm(a, JOT_NORM_2));
    return jot_add(jot_add(y, jot_cond(a)), jot_vector_norm(a, 3));
}

static void check_derivatives(jot_function f, jot_dtype d, const int64_t *dims, int order)
{
    static uint64_t number;
    if (!sample_takes(number++ + (d == JOT_C128), 1))
        return;
    jot_array *a = draw(d, 3, dims);
    jot_status status = jot_check_grads(f, order, JOT_FORWARD | JOT_REVERSE, 1e-4, a);
    ck_assert_msg(status == JOT_OK, "%s: %s", jot_dtype_name(d), jot_error_message());
    jot_array_release(a);
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, JOT_END})

enum { FIRST = 3 };

static jot_value of_factors(jot_svd_factors f)
{
    return jot_add(mix(jot_matmul(columns_by(f.u, jot_sin(f.s)), f.vh)), jot_sum(jot_cos(f.s)));
}

static jot_value of_truncated(jot_value a) { return of_factors(jot_svd_truncated(a, FIRST)); }

static jot_value of_sliced(jot_value a)
{
    jot_svd_factors f = jot_svd(a);
    return of_factors((jot_svd_factors){.u = jot_slice(f.u, -1, 0, FIRST),
                                        .s = jot_slice(f.s, -1, 0, FIRST),
                                        .vh = jot_slice(f.vh, -2, 0, FIRST)});
}

static jot_value gradients_differ(jot_value a)
{
    jot_value x, y;
    jot_apply(jot_grad(jot_fn(of_truncated)), 1, &a, 1, &x);
    jot_apply(jot_grad(jot_fn(of_sliced)), 1, &a, 1, &y);
    return jot_div(largest(jot_sub(x, y)), largest(y));
}

static jot_value first_product(jot_value a)
{
    jot_svd_factors f = jot_svd_truncated(a, FIRST);
    return jot_matmul(columns_by(f.u, f.s), f.vh);
}

static jot_value maps_differ(jot_value a)
{
    jot_value x, y = first_product(a);
    jot_apply(jot_vmap(jot_fn(first_product)), 1, &a, 1, &x);
    return largest(jot_sub(x, y));
}

START_TEST(test_map_of_truncated)
{
    jot_array *a = draw(JOT_F64, 5, DIMS(2, 512, 520));
    ck_assert_double_le(item(jot_fn(maps_differ), a), 1e-12);
    jot_array_release(a);
}
END_TEST

// The first vectors move towards those that are left out.
START_TEST(test_derivatives_of_truncated)
{
    jot_array *a = draw(JOT_F64, 3, DIMS(520, 512));
    ck_assert_double_le(item(jot_fn(gradients_differ), a), 1e-9);
    jot_array_release(a);
}
END_TEST

START_TEST(test_derivatives)
{
    jot_dtype d = _i ? JOT_C128 : JOT_F64;
    check_derivatives(jot_fn(of_qr), d, DIMS(4, 4), _i ? 1 : 2);
    check_derivatives(jot_fn(of_qr), d, DIMS(2, 5, 3), 1);
    check_derivatives(jot_fn(of_qr), d, DIMS(3, 5), 1);
    check_derivatives(jot_fn(of_qr_full), d, DIMS(5, 3), 1);
    check_derivatives(jot_fn(of_eigh), d, DIMS(4, 4), _i ? 1 : 2);
    check_derivatives(jot_fn(of_projection), d, DIMS(2, 4, 4), 1);
    check_derivatives(jot_fn(of_svd), d, DIMS(4, 4), _i ? 1 : 2);
    check_derivatives(jot_fn(of_svd), d, DIMS(2, 5, 3), 1);
    check_derivatives(jot_fn(of_svd), d, DIMS(3, 5), 1);
    check_derivatives(jot_fn(of_svd_full), d, DIMS(4, 4), 1);
    check_derivatives(jot_fn(of_svd_full), d, DIMS(2, 5, 3), 1);
    check_derivatives(jot_fn(of_svd_full), d, DIMS(3, 5), _i ? 1 : 2);
    check_derivatives(jot_fn(of_projector), d, DIMS(5, 3), 1);
    check_derivatives(jot_fn(of_projector), d, DIMS(3, 5), 1);
    check_derivatives(jot_fn(of_pinv), d, DIMS(4, 3), 1);
    check_derivatives(jot_fn(of_lstsq), d, DIMS(5, 3), 1);
    check_derivatives(jot_fn(of_norms), d, DIMS(4, 3), 1);
    check_derivatives(jot_fn(of_eig), d, DIMS(4, 4), 1);
    check_derivatives(jot_fn(of_left), d, DIMS(4, 4), 1);
}
END_TEST

// ---- Equal values

static void check_at(jot_function f, const double *x, int64_t m, int64_t n)
{
    const int64_t dims[] = {m, n, JOT_END};
    jot_array *a = jot_array_copy(JOT_F64, x, dims);
    jot_status status = jot_check_grads(f, 1, JOT_FORWARD | JOT_REVERSE, 1e-4, a);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    jot_array_release(a);
}

START_TEST(test_equal_values)
{
    const double identity[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const double pair[] = {2, 0, 0, 0, 2, 0, 0, 0, 5};
    const double zeros[9] = {0}, tall[] = {1, 0, 0, 1, 0, 0};
    check_at(jot_fn(of_values), identity, 3, 3);
    check_at(jot_fn(of_values), zeros, 3, 3);
    check_at(jot_fn(of_projection), pair, 3, 3);
    check_at(jot_fn(of_polar), identity, 3, 3);
    check_at(jot_fn(of_polar), pair, 3, 3);
    check_at(jot_fn(of_polar), tall, 3, 2);
    check_at(jot_fn(of_projector), tall, 3, 2);
    check_at(jot_fn(of_lstsq), tall, 3, 2);
    check_at(jot_fn(of_pinv), identity, 3, 3);
    check_at(jot_fn(of_pinv), tall, 3, 2);
}
END_TEST

static jot_value one_vector(jot_value a)
{
    return jot_sum(jot_sin(jot_slice(jot_eigh(a).vectors, -1, 0, 1)));
}
static jot_value one_left(jot_value a)
{
    return jot_sum(jot_sin(jot_slice(jot_svd(a).u, -1, 0, 1)));
}
static jot_value one_of_the_rest(jot_value a)
{
    return jot_sum(jot_sin(jot_slice(jot_svd_full(jot_slice(a, -1, 0, 1)).u, -1, 1, 2)));
}

// A derivative that there is none of is NaN in reverse mode.
START_TEST(test_undefined)
{
    const jot_function functions[] = {jot_fn(one_vector), jot_fn(one_left),
                                      jot_fn(one_of_the_rest)};
    for (int i = 0; i < 3; i++) {
        jot_scope *s = jot_scope_open();
        jot_array *at = evaluated(jot_eye(JOT_F64, 3, 3)), *g = NULL;
        jot_executable *e = jot_jit(jot_grad(functions[i], 0));
        must(jot_call(e, JOT_IN(at), JOT_OUT(g)));
        bool any = false;
        for (int k = 0; k < 9; k++)
            any = any || isnan(((const double *)jot_array_data(g))[k]);
        ck_assert(any);
        jot_array_release(g);
        jot_array_release(at);
        jot_executable_release(e);
        jot_scope_close(s);
    }
}
END_TEST

// ---- Maps

START_TEST(test_maps)
{
    jot_array *a = draw(JOT_F64, 1, DIMS(3, 4, 4)), *y = NULL, *z = NULL;
    const jot_function functions[] = {jot_fn(of_qr), jot_fn(of_svd), jot_fn(of_pinv)};
    for (int i = 0; i < 3; i++) {
        jot_executable *mapped = jot_jit(jot_vmap(functions[i], 0));
        must(jot_call(mapped, JOT_IN(a), JOT_OUT(y)));
        jot_scope *s = jot_scope_open();
        for (int k = 0; k < 3; k++) {
            jot_array *one = evaluated(jot_take(jot_from(a), k));
            jot_executable *alone = jot_jit(functions[i]);
            must(jot_call(alone, JOT_IN(one), JOT_OUT(z)));
            double want = *(const double *)jot_array_data(z);
            double have = ((const double *)jot_array_data(y))[k];
            ck_assert_msg(fabs(want - have) < 1e-11, "%d: %.17g, not %.17g", i, have, want);
            jot_array_release(z);
            jot_array_release(one);
            jot_executable_release(alone);
        }
        jot_scope_close(s);
        jot_array_release(y);
        jot_executable_release(mapped);
    }
    jot_array_release(a);
}
END_TEST

static void add(TCase *t)
{
    // What the evaluator has no part in, and takes minutes on a fake GPU.
    if (!*getenv("JOT_BACKEND") && !getenv("JOT_TEST_EMULATED")) {
        tcase_add_test(t, test_derivatives_of_truncated);
        tcase_add_test(t, test_map_of_truncated);
    }
    tcase_add_loop_test(t, test_derivatives, 0, 2);
    tcase_add_test(t, test_equal_values);
    tcase_add_test(t, test_undefined);
    tcase_add_test(t, test_maps);
}

int main(void) { return run_by_both("decompose derivatives", add); }
