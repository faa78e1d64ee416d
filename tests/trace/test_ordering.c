// SPDX-License-Identifier: Apache-2.0
// Sorting and what rests on it, through the API.  Wanted values are those of JAX 0.10.
#include "trace_support.h"

// What is known of every row: with all that floats have that is special.
static jot_value special(void)
{
    return jot_stack(0, 3., NAN, -0., 0., -INFINITY, INFINITY, 1., 3., -NAN, -2.);
}

static jot_value vector(jot_value x) { return jot_convert(x, JOT_F32); }

START_TEST(sorting)
{
    jot_scope *s = jot_scope_open();
    jot_value x = vector(special());
    CHECK_EXACT(jot_sort(x), -INFINITY, -2, 0, 0, 1, 3, 3, INFINITY, NAN, NAN);
    CHECK_EXACT(jot_less(jot_div(1, jot_sort(x)), 0), 0, 1, 1, 0, 0, 0, 0, 0, 0, 0);
    CHECK_EXACT(jot_sort_descending(x), NAN, NAN, INFINITY, 3, 3, 1, 0, 0, -2, -INFINITY);
    CHECK_EXACT(jot_argsort(x), 4, 9, 2, 3, 6, 0, 7, 5, 1, 8);
    CHECK_EXACT(jot_argsort_descending(x), 1, 8, 5, 0, 7, 6, 2, 3, 9, 4);
    CHECK_TYPE(jot_argsort(x), "i32[10]");
    jot_value m = jot_reshape(jot_stack(0, 3, 1, 2, 1, 2, 0), 2, 3);
    CHECK_EXACT(jot_sort(m), 1, 2, 3, 0, 1, 2);
    CHECK_EXACT(jot_sort(m, 0), 1, 1, 0, 3, 2, 2);
    CHECK_EXACT(jot_argsort(m, 0), 1, 0, 1, 0, 1, 0);
    CHECK_EXACT(jot_sort(jot_not_equal(m, 1)), 0, 1, 1, 0, 1, 1);
    CHECK_TYPE(jot_sort(jot_zeros(JOT_F32, 2, 0)), "f32[2,0]");
    CHECK_EXACT(jot_partition(x, 2, -1), -INFINITY, -2, 0, 0, 1, 3, 3, INFINITY, NAN, NAN);
    CHECK_EXACT(jot_argpartition(m, 1, 1), 1, 2, 0, 2, 0, 1);
    jot_value z = jot_complex(vector(jot_stack(0, 1., 1., 0., 1., NAN, -0.)),
                              vector(jot_stack(0, 2., -1., 5., NAN, 0., 3.)));
    CHECK_EXACT(jot_imag(jot_sort(z)), 3, 5, -1, 2, NAN, 0);
    CHECK_EXACT(jot_real(jot_sort(z)), 0, 0, 1, 1, 1, NAN);
    jot_scope_close(s);
}
END_TEST

START_TEST(sorting_by_keys)
{
    jot_scope *s = jot_scope_open();
    jot_value z = jot_stack(0, 2, 1, 2, 1, 0, 2), w = jot_stack(0, 1., 5., 0., 4., 9., 0.);
    CHECK_EXACT(jot_lexsort(0, w, z), 4, 3, 1, 2, 5, 0);
    struct {
        jot_value z, w, i;
    } t = {z, w, jot_arange(JOT_I32, 6)};
    jot_sort_by_key(0, 2, t);
    CHECK_EXACT(t.z, 0, 1, 1, 2, 2, 2);
    CHECK_EXACT(t.w, 9, 4, 5, 0, 0, 1);
    CHECK_EXACT(t.i, 4, 3, 1, 2, 5, 0);
    jot_scope_close(s);
}
END_TEST

// Of signs of NaN and of zero alike.
START_TEST(greatest)
{
    jot_scope *s = jot_scope_open();
    static const jot_dtype types[] = {JOT_F32, JOT_F64, JOT_F16, JOT_BF16};
    const float numbers[] = {3, NAN, -0.f, 0, -INFINITY, INFINITY, 1, 3, -NAN, -2};
    jot_value indices;
    for (int i = 0; i < 4; i++) {
        jot_value x = jot_convert(jot_from(jot_array_from(numbers, 10)), types[i]);
        CHECK_EXACT(jot_convert(jot_top_k(x, 10, &indices), JOT_F64), NAN, INFINITY, 3, 3, 1, 0,
                    0, -2, -INFINITY, NAN);
        CHECK_EXACT(indices, 1, 5, 0, 7, 6, 3, 2, 9, 4, 8);
    }
    jot_value m = jot_reshape(jot_stack(0, 3, 1, 2, 1, 2, 2), 2, 3);
    CHECK_EXACT(jot_top_k(m, 2, &indices), 3, 2, 2, 2);
    CHECK_EXACT(indices, 0, 2, 1, 2);
    CHECK_TYPE(jot_top_k(m, 0, NULL), "i32[2,0]");
    jot_scope_close(s);
}
END_TEST

// Of rows that are chosen from in parts, some of them several times, what a sort of all gives; equal ones in their order.
START_TEST(greatest_of_long_rows)
{
    static const struct {
        int64_t rows, length, k;
        jot_dtype type;
    } all[] = {{3, 5000, 20, JOT_I32}, {1, 70000, 33, JOT_F32}, {2, 1024, 64, JOT_U8},
               {5, 1025, 1, JOT_BF16}, {2, 1100, 100, JOT_F32}, {40, 30, 30, JOT_I16}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        jot_scope *s = jot_scope_open();
        jot_value n = jot_arange(JOT_I32, all[i].rows * all[i].length), indices;
        jot_value x = jot_sub(jot_mod(jot_mul(n, 7919), 1009), 100);
        x = jot_convert(jot_reshape(x, all[i].rows, all[i].length), all[i].type);
        jot_value best = jot_top_k(x, all[i].k, &indices);
        jot_value order = jot_argsort(jot_neg(jot_convert(x, JOT_F64)), 1);
        order = jot_slice(order, 1, 0, all[i].k);
        CHECK_EXACT(jot_all(jot_equal(indices, order)), 1);
        CHECK_EXACT(jot_all(jot_equal(best, jot_take_along_axis(x, order, 1))), 1);
        jot_scope_close(s);
    }
}
END_TEST

START_TEST(quantiles)
{
    jot_scope *s = jot_scope_open();
    jot_value a = vector(jot_reshape(jot_stack(0, 4, 1, 3, 2, 8, 6, 7, 5), 2, 4));
    jot_value q = jot_stack(0, 0., .3, .5, 1.);
    CHECK(jot_quantile(a, q, 1), 1e-6, 1, 5, 1.9, 5.9, 2.5, 6.5, 4, 8);
    CHECK_EXACT(jot_quantile_method(a, q, JOT_QUANTILE_LOWER, 1), 1, 5, 1, 5, 2, 6, 4, 8);
    CHECK_EXACT(jot_quantile_method(a, q, JOT_QUANTILE_HIGHER, 1), 1, 5, 2, 6, 3, 7, 4, 8);
    CHECK_EXACT(jot_quantile_method(a, q, JOT_QUANTILE_NEAREST, 1), 1, 5, 2, 6, 2, 6, 4, 8);
    CHECK(jot_percentile_method(a, jot_mul(q, 100), JOT_QUANTILE_MIDPOINT, 1), 1e-6, 1, 5, 1.5,
          5.5, 2.5, 6.5, 4, 8);
    CHECK_EXACT(jot_median(a), 4.5);
    CHECK_EXACT(jot_median(a, 0), 6, 3.5, 5, 3.5);
    CHECK_TYPE(jot_percentile(a, 30, 1, JOT_KEEPDIMS), "f32[2,1]");
    CHECK(jot_percentile(a, 30, 1, JOT_KEEPDIMS), 1e-6, 1.9, 5.9);
    CHECK_TYPE(jot_quantile(a, q, 1, JOT_KEEPDIMS), "f32[4,2,1]");
    CHECK_EXACT(jot_median(jot_stack(0, 3, 1, 2)), 2);
    jot_value b = vector(jot_reshape(jot_stack(0, 4., NAN, 3., 2., NAN, NAN, NAN, NAN), 2, 4));
    CHECK_EXACT(jot_nanmedian(b, 1), 3, NAN);
    CHECK_EXACT(jot_median(b, 1), NAN, NAN);
    // What is NaN for want of elements has no derivative in those that were skipped.
    jot_value c = jot_variable(vector(jot_stack(0, NAN, NAN, 1., NAN, 3., 2.)));
    jot_value r = jot_reshape(c, 3, 2);
    CHECK_EXACT(jot_gradient(jot_sum(jot_nanmedian(r, 1)), c), 0, 0, 1, 0, 0.5, 0.5);
    CHECK_EXACT(jot_gradient(jot_sum(jot_nanquantile(r, 0.25, 1)), c), 0, 0, 1, 0, 0.25, 0.75);
    CHECK_EXACT(jot_nanquantile(b, jot_stack(0, .25, .5), 1), 2.5, NAN, 3, NAN);
    CHECK_EXACT(jot_nanpercentile(b, 100, 1), 4, NAN);
    CHECK_EXACT(jot_quantile(a, jot_stack(0, -.1, 1.1, NAN)), NAN, NAN, NAN);
    CHECK_EXACT(jot_quantile(vector(jot_stack(0, INFINITY, 1.)), 1), INFINITY);
    CHECK_TYPE(jot_median(jot_convert(a, JOT_F16)), "f16[]");
    jot_scope_close(s);
}
END_TEST

START_TEST(bins)
{
    jot_scope *s = jot_scope_open();
    jot_value x = vector(jot_stack(0, 1., 2., 2., 3., NAN));
    jot_value v = vector(jot_stack(0, 0., 1., 2., 2.5, 3., INFINITY, NAN, -0.));
    CHECK_EXACT(jot_searchsorted(x, v, JOT_SIDE_LEFT), 0, 0, 1, 3, 3, 4, 4, 0);
    CHECK_EXACT(jot_searchsorted(x, v, JOT_SIDE_RIGHT), 0, 1, 3, 3, 4, 4, 5, 0);
    CHECK_EXACT(jot_searchsorted(jot_slice(x, 0, 0, 0), v, JOT_SIDE_LEFT), 0, 0, 0, 0, 0, 0, 0,
                0);
    jot_value e = vector(jot_stack(0, 0., 1., 2.5, 4.)), falling = jot_flip(e);
    jot_value w = vector(jot_stack(0, -1., 0., 1., 2.5, 3., 4., 5., NAN));
    CHECK_EXACT(jot_digitize(w, e, false), 0, 1, 2, 3, 3, 4, 4, 4);
    CHECK_EXACT(jot_digitize(w, e, true), 0, 0, 1, 2, 3, 3, 4, 4);
    CHECK_EXACT(jot_digitize(w, falling, false), 4, 3, 2, 1, 1, 0, 0, 0);
    CHECK_EXACT(jot_digitize(w, falling, true), 4, 4, 3, 2, 1, 1, 0, 0);
    jot_value i = jot_stack(0, 0, 3, 1, 3, -2, 7);
    CHECK_EXACT(jot_bincount(i, 5), 2, 1, 0, 2, 0);
    CHECK_EXACT(jot_bincount_weights(i, jot_add(jot_arange(JOT_F32, 6), 1), 5), 6, 3, 0, 6, 0);
    CHECK_TYPE(jot_bincount(i, 0), "i32[0]");
    jot_value h = vector(jot_stack(0, 1., 2., 2., 4., 0.5, 5.));
    CHECK(jot_histogram_bin_edges(h, 3), 1e-6, .5, 2, 3.5, 5);
    CHECK_EXACT(jot_histogram_bin_edges(vector(jot_stack(0, 2., 2.)), 2), 1.5, 2, 2.5);
    CHECK_EXACT(jot_histogram_bin_edges(jot_zeros(JOT_F32, 0), 2), 0, .5, 1);
    CHECK_EXACT(jot_histogram_bin_edges_between(h, 4, 0, 1), 0, .25, .5, .75, 1);
    CHECK_EXACT(jot_histogram(h, jot_histogram_bin_edges(h, 3)), 2, 2, 2);
    CHECK_EXACT(jot_histogram(h, e), 1, 3, 1);
    CHECK_EXACT(jot_histogram(w, e), 1, 1, 3);
    CHECK(jot_histogram_density(h, e), 1e-6, .2, .4, .4 / 3);
    CHECK_EXACT(jot_histogram_weights(h, e, h), .5, 5, 4);
    CHECK_EXACT(jot_histogram2d(h, jot_flip(h), e, vector(jot_stack(0, 0., 2., 6.))), 0, 1, 1,
                2, 0, 1);
    jot_scope_close(s);
}
END_TEST

START_TEST(sets)
{
    jot_scope *s = jot_scope_open();
    jot_value m = jot_reshape(jot_stack(0, 0, 2, 0, 3, 0, 4), 2, 3);
    CHECK_EXACT(jot_flatnonzero(m, 5, -1), 1, 3, 5, -1, -1);
    CHECK_EXACT(jot_flatnonzero(m, 2, 0), 1, 3);
    CHECK_EXACT(jot_argwhere(m, 5, -1), 0, 1, 1, 0, 1, 2, -1, -1, -1, -1);
    struct {
        jot_value i, k;
    } at;
    jot_nonzero(m, 4, 9, at);
    CHECK_EXACT(at.i, 0, 1, 1, 9);
    CHECK_EXACT(at.k, 1, 0, 2, 9);
    jot_value index, inverse, counts;
    jot_value u = vector(jot_stack(0, 3., 1., NAN, 3., -0., 0., NAN, 1.));
    CHECK_EXACT(jot_unique_all(u, 6, 9, &index, &inverse, &counts), 0, 1, 3, NAN, 9, 9);
    CHECK_EXACT(index, 4, 1, 0, 2, 4, 4);
    CHECK_EXACT(inverse, 2, 1, 3, 2, 0, 0, 3, 1);
    CHECK_EXACT(counts, 2, 2, 2, 2, 0, 0);
    CHECK_EXACT(jot_unique(u, 2, 9), 0, 1);
    CHECK_EXACT(jot_unique(jot_zeros(JOT_F32, 0), 2, 9), 9, 9);
    jot_value c = jot_stack(0, 5, 1, 3, 3, 2), d = jot_stack(0, 3, 7, 5, 5);
    CHECK_EXACT(jot_union1d(c, d, 7, -1), 1, 2, 3, 5, 7, -1, -1);
    CHECK_EXACT(jot_intersect1d(c, d, 3, -1), 3, 5, -1);
    CHECK_EXACT(jot_setdiff1d(c, d, 4, -1), 1, 2, -1, -1);
    CHECK_EXACT(jot_setxor1d(c, d, 4, -1), 1, 2, 7, -1);
    CHECK_EXACT(jot_isin(c, d), 1, 0, 1, 1, 0);
    // As in NumPy a NaN of each are two.
    jot_value nans = jot_stack(0, NAN, 1., NAN), others = jot_stack(0, NAN, 2.);
    CHECK_EXACT(jot_setxor1d(nans, others, 6, -1), 1, 2, NAN, NAN, -1, -1);
    CHECK_EXACT(jot_setxor1d(nans, jot_stack(0, 1., 2.), 4, -1), 2, NAN, -1, -1);
    CHECK_EXACT(jot_setxor1d(nans, others, 3, -1), 1, 2, NAN);
    CHECK_EXACT(jot_union1d(nans, others, 4, -1), 1, 2, NAN, -1);
    // NaN with different other parts, a number between them in the order of real parts.
    jot_value z = jot_complex(jot_stack(0, NAN, 2., 1., NAN), jot_stack(0, 3., 0., NAN, NAN));
    jot_value y = jot_unique_all(z, 3, 9, &index, &inverse, &counts);
    CHECK_EXACT(jot_real(y), 2, NAN, 9);
    CHECK_EXACT(jot_imag(y), 0, 3, 0);
    CHECK_EXACT(index, 1, 0, 1);
    CHECK_EXACT(inverse, 1, 0, 1, 1);
    CHECK_EXACT(counts, 1, 3, 0);
    CHECK_EXACT(jot_extract(jot_stack(0, 1, 0, 1, 1, 0), c, 4, -1), 5, 3, 3, -1);
    jot_scope_close(s);
}
END_TEST

// ---- Derivatives and maps

static jot_value weighed(jot_value y)
{
    return jot_sum(jot_mul(y, jot_add(jot_arange(JOT_F64, jot_value_dim(y, -1)), 1)));
}
static jot_value of_sort(jot_value x) { return weighed(jot_sort(jot_sin(x))); }
static jot_value of_descending(jot_value x) { return weighed(jot_sort_descending(x, 0)); }
static jot_value of_greatest(jot_value x) { return weighed(jot_square(jot_top_k(x, 2, NULL))); }
static jot_value of_quantile(jot_value x) { return jot_sum(jot_quantile(x, .3, 1)); }
static jot_value of_median(jot_value x) { return jot_median(jot_square(x)); }
static jot_value of_unique(jot_value x) { return weighed(jot_unique(x, 5, 0)); }
static jot_value of_keys(jot_value x)
{
    struct {
        jot_value a, b;
    } t = {x, jot_square(x)};
    jot_sort_by_key(1, 1, t);
    return jot_add(weighed(t.a), weighed(jot_mul(t.b, t.a)));
}

START_TEST(derivatives)
{
    static const double data[] = {3, 1, 2, 5, .5, -1, 4, 2.5};
    jot_array *x = jot_array_from(data, 2, 4);
    const jot_function all[] = {jot_fn(of_sort),     jot_fn(of_descending), jot_fn(of_greatest),
                                jot_fn(of_quantile), jot_fn(of_median),     jot_fn(of_unique),
                                jot_fn(of_keys)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        must(jot_check_grads(all[i], 2, JOT_FORWARD | JOT_REVERSE, 1e-4, x));
    jot_array_release(x);
}
END_TEST

static jot_value indices_of_row(jot_value x) { return jot_argsort(x); }
static jot_value bins_of_row(jot_value x)
{
    return jot_bincount(jot_searchsorted(jot_sort(x), x, JOT_SIDE_RIGHT), 4);
}
static jot_value set_of_row(jot_value x) { return jot_unique(x, 3, 0); }
static jot_value median_of_row(jot_value x) { return jot_median(x); }

START_TEST(maps)
{
    static const double data[] = {3, 1, 2, 2, 2, 5};
    static const struct {
        jot_value (*f)(jot_value);
        int n;
        double want[8];
    } cases[] = {{indices_of_row, 6, {1, 2, 0, 0, 1, 2}},
                 {bins_of_row, 8, {0, 1, 1, 1, 0, 0, 2, 1}},
                 {set_of_row, 6, {1, 2, 3, 2, 5, 0}},
                 {median_of_row, 2, {2, 2}}};
    jot_array *x = jot_array_from(data, 2, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jot_array *y = NULL;
        jot_executable *e = jot_jit(jot_vmap(jot_fn(cases[i].f)));
        must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        check_numbers(y, cases[i].n, cases[i].want, 0);
        jot_array_release(y);
        jot_executable_release(e);
    }
    jot_array_release(x);
}
END_TEST

// ---- Messages

// In a scope of its own each: the first error is what every call of a scope gives.
#define CHECK_ERROR(value, status, message)                                                    \
    do {                                                                                       \
        jot_scope *scope_ = jot_scope_open();                                                  \
        jot_value x = jot_zeros(JOT_F32, 4, 3);                                                \
        (void)x;                                                                               \
        check_error((value), (status), (message));                                             \
        jot_scope_close(scope_);                                                               \
    } while (0)

static jot_value keyed(jot_value x, jot_value y, int num_keys)
{
    struct {
        jot_value x, y;
    } t = {x, y};
    jot_sort_by_key(0, num_keys, t);
    return t.y;
}

static jot_value eight_keys(jot_value x)
{
    jot_value keys[] = {x, x, x, x, x, x, x, x};
    return jot_at(jot_lexsort_list(0, 8, keys), JOT_HERE ": jot_lexsort(...)");
}

START_TEST(errors)
{
    CHECK_ERROR(jot_sort(x, 2), JOT_ERR_ARGUMENT, "axis 2 of f32[4,3]: axes are -2 to 1");
    CHECK_ERROR(jot_argsort(1.0), JOT_ERR_ARGUMENT, "axis -1 of f32[], which has none");
    CHECK_ERROR(jot_top_k(x, 4, NULL), JOT_ERR_ARGUMENT,
                "k is 4: the last axis of f32[4,3] has 3 elements");
    CHECK_ERROR(jot_top_k(jot_complex(x, x), 1, NULL), JOT_ERR_DTYPE,
                "c64[4,3]: is not defined for complex numbers");
    CHECK_ERROR(jot_partition(x, 3, 1), JOT_ERR_ARGUMENT,
                "index 3 of axis 1 of f32[4,3]: indices are -3 to 2");
    CHECK_ERROR(keyed(x, x, 3), JOT_ERR_ARGUMENT, "3 keys of 2 values: 1 to 2");
    CHECK_ERROR(keyed(x, jot_sum(x, 1), 1), JOT_ERR_SHAPE,
                "f32[4,3] and f32[4] have not the same shape");
    CHECK_ERROR(jot_lexsort(0, x, jot_sum(x, 0)), JOT_ERR_SHAPE,
                "f32[4,3] and f32[3] have not the same shape");
    CHECK_ERROR(eight_keys(x), JOT_ERR_ARGUMENT, "8 values: it takes 1 to 7");
    CHECK_ERROR(jot_quantile(x, 1.5), JOT_ERR_ARGUMENT, "q is 1.5: it takes 0 to 1");
    CHECK_ERROR(jot_percentile(x, -1, 0), JOT_ERR_ARGUMENT, "q is -1: it takes 0 to 100");
    CHECK_ERROR(jot_quantile(x, x), JOT_ERR_SHAPE,
                "q is f32[4,3]: it takes a number or a vector");
    CHECK_ERROR(jot_quantile_method(x, .5, (enum jot_quantile_method)7), JOT_ERR_ARGUMENT,
                "jot_quantile: the method is 7, which is none of JOT_QUANTILE_LINEAR, _LOWER, "
                "_HIGHER, _NEAREST, _MIDPOINT");
    CHECK_ERROR(jot_median(jot_zeros(JOT_F32, 0)), JOT_ERR_SHAPE,
                "f32[0]: no elements to choose from");
    CHECK_ERROR(jot_median(jot_complex(x, x)), JOT_ERR_DTYPE,
                "c64[4,3]: is not defined for complex numbers");
    CHECK_ERROR(jot_searchsorted(x, 1, JOT_SIDE_LEFT), JOT_ERR_SHAPE,
                "f32[4,3]: the sorted values are a vector");
    CHECK_ERROR(jot_searchsorted(jot_sum(x, 1), 1, (enum jot_side)2), JOT_ERR_ARGUMENT,
                "the side is 2, which is none of JOT_SIDE_LEFT, _RIGHT");
    CHECK_ERROR(jot_digitize(x, x, true), JOT_ERR_SHAPE, "f32[4,3]: bins are a vector");
    CHECK_ERROR(jot_bincount(x, 3), JOT_ERR_DTYPE, "f32[4,3]: it counts integers");
    CHECK_ERROR(jot_bincount(jot_zeros(JOT_I32, 3), -1), JOT_ERR_ARGUMENT, "the length is -1");
    CHECK_ERROR(jot_bincount_weights(jot_zeros(JOT_I32, 3), x, 1), JOT_ERR_SHAPE,
                "weights are f32[4,3]: not of the shape of i32[3]");
    CHECK_ERROR(jot_histogram_bin_edges(x, 0), JOT_ERR_ARGUMENT, "0 bins: at least 1");
    CHECK_ERROR(jot_histogram(x, jot_zeros(JOT_F32, 1)), JOT_ERR_SHAPE,
                "the edges are f32[1]: at least 2");
    CHECK_ERROR(jot_flatnonzero(x, -1, 0), JOT_ERR_ARGUMENT, "the size is -1");
    CHECK_ERROR(jot_argwhere(jot_sum(x), 2, 0), JOT_ERR_SHAPE,
                "f32[]: it takes an axis or more, and as many vectors");
    CHECK_ERROR(jot_unique(x, 2, x), JOT_ERR_SHAPE,
                "the fill is f32[4,3]: it takes one number");
    CHECK_ERROR(jot_extract(jot_sum(x, 0), x, 2, 0), JOT_ERR_SHAPE,
                "the condition f32[3] has not the shape of f32[4,3]");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, sorting);
    tcase_add_test(t, sorting_by_keys);
    tcase_add_test(t, greatest);
    tcase_add_test(t, greatest_of_long_rows);
    tcase_add_test(t, quantiles);
    tcase_add_test(t, bins);
    tcase_add_test(t, sets);
    tcase_add_test(t, derivatives);
    tcase_add_test(t, maps);
    tcase_add_test(t, errors);
}

int main(void) { return run_by_both("trace/ordering", add_tests); }
