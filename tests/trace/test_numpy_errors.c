// SPDX-License-Identifier: Apache-2.0
// What the operations of einsum.h, shapes.h and numeric.h say of operands that they are not for.
#include "trace_support.h"

// In a scope of its own each: the first error is what every call of a scope gives.
#define CHECK_ERROR(value, status, message)                                                    \
    do {                                                                                       \
        jot_scope *scope_ = jot_scope_open();                                                  \
        jot_value m = jot_reshape(jot_arange(JOT_F32, 6), 2, 3), v = jot_arange(JOT_F32, 3);   \
        jot_value k = jot_arange(JOT_I32, 3), p[2];                                            \
        (void)m, (void)v, (void)k, (void)p;                                                    \
        check_error((value), (status), (message));                                             \
        jot_scope_close(scope_);                                                               \
    } while (0)

#define ARGUMENT JOT_ERR_ARGUMENT
#define SHAPE JOT_ERR_SHAPE
#define DTYPE JOT_ERR_DTYPE

START_TEST(of_einsum)
{
    CHECK_ERROR(jot_einsum(NULL, m), ARGUMENT, "the subscripts are NULL");
    CHECK_ERROR(jot_einsum("i;j", m), ARGUMENT,
                "\"i;j\": ';' is no letter, comma, \"...\" or \"->\"");
    CHECK_ERROR(jot_einsum("......", m), ARGUMENT,
                "\"......\": \"...\" stands twice in one operand");
    CHECK_ERROR(jot_einsum("ij->i->j", m), ARGUMENT,
                "\"ij->i->j\": the result is one list of letters");
    CHECK_ERROR(jot_einsum("ij,jk", m), ARGUMENT,
                "\"ij,jk\" is of 2 operands, and there are 1");
    CHECK_ERROR(jot_einsum("ij", m, m), ARGUMENT, "\"ij\" is of 1 operands, and there are 2");
    CHECK_ERROR(jot_einsum("ijk", m), SHAPE,
                "\"ijk\": \"ijk\" is of 3 axes, and operand 0 is f32[2,3]");
    CHECK_ERROR(jot_einsum("ij,j", m, m), SHAPE,
                "\"ij,j\": \"j\" is of 1 axes, and operand 1 is f32[2,3]");
    CHECK_ERROR(jot_einsum("ij,jk", m, m), SHAPE,
                "\"ij,jk\": 'j' is 3, and 2 in operand 1, f32[2,3]");
    CHECK_ERROR(jot_einsum("ii", m), SHAPE, "\"ii\": 'i' is 2, and 3 in operand 0, f32[2,3]");
    CHECK_ERROR(jot_einsum("...,...", m, jot_arange(JOT_F32, 2)), SHAPE,
                "\"...,...\": an axis of \"...\" is 3, and 2 in operand 1, f32[2]");
    CHECK_ERROR(jot_einsum("ij->ik", m), ARGUMENT,
                "\"ij->ik\": 'k' of the result is in no operand");
    CHECK_ERROR(jot_einsum("ij->ii", m), ARGUMENT,
                "\"ij->ii\": 'i' of the result stands twice");
}
END_TEST

START_TEST(of_products)
{
    CHECK_ERROR(jot_cross(v, jot_arange(JOT_F32, 4)), SHAPE,
                "f32[3] and f32[4]: the last axes have 2 or 3 elements");
    CHECK_ERROR(jot_vecdot(v, m, 1), ARGUMENT, "axis 1 of f32[3]: axes are -1 to 0");
    CHECK_ERROR(jot_inner(m, jot_arange(JOT_F32, 2)), SHAPE,
                "jot_tensordot: contracting 3 with 2: f32[2,3] · f32[2]");
    CHECK_ERROR(jot_multi_dot(m), ARGUMENT, "1 matrices: it takes 2 to 25");
    CHECK_ERROR(jot_multi_dot(m, v, m), SHAPE, "factor 1 is f32[3], no matrix");
    CHECK_ERROR(jot_multi_dot(m, jot_from(1)), SHAPE,
                "factor 1 is i32[], no matrix and no vector");
}
END_TEST

START_TEST(of_shapes)
{
    CHECK_ERROR(jot_diagonal(m, 0, 1, -1), ARGUMENT,
                "a diagonal of f32[2,3] along axis 1 and itself");
    CHECK_ERROR(jot_diagonal(v, 0, 0, 1), ARGUMENT, "axis 1 of f32[3]: axes are -1 to 0");
    CHECK_ERROR(jot_diagonal_step(m, 0, 1, 1, -1), ARGUMENT,
                "a diagonal of f32[2,3] along axis 1 and itself");
    CHECK_ERROR(jot_diagonal_step(m, 0, 0, 0, 1), ARGUMENT, "step 0: steps are positive");
    CHECK_ERROR(jot_trace(v, 0), ARGUMENT, "axis 1 of f32[3]: axes are -1 to 0");
    CHECK_ERROR(jot_diag(jot_from(1), 0), SHAPE, "i32[] is neither a vector nor a matrix");
    CHECK_ERROR(jot_fill_diagonal(v, 1), SHAPE,
                "f32[3] is no matrix: at least two axes are needed");
    CHECK_ERROR(jot_fill_diagonal(m, jot_zeros(JOT_F64)), DTYPE,
                "f64[] into f32[2,3]: convert it");
    CHECK_ERROR(jot_tri(JOT_F32, -1, 2, 0), ARGUMENT, "a matrix of -1 by 2");
    CHECK_ERROR(jot_tril_indices(2, 0, -3), ARGUMENT, "a matrix of 2 by -3");
    CHECK_ERROR(jot_vander(m, 2), SHAPE, "f32[2,3] is no vector");
    CHECK_ERROR(jot_vander(v, -1), ARGUMENT, "-1 columns");
    CHECK_ERROR(jot_rot90(m, 1, 0, 0), ARGUMENT, "f32[2,3] turned from axis 0 to itself");
    CHECK_ERROR(jot_resize(m, -2), ARGUMENT, "size -2 of axis 0 is negative");
    CHECK_ERROR(jot_insert(m, 4, 0, 1), ARGUMENT,
                "before 4 of axis 1 of f32[2,3]: indices are -3 to 3");
    CHECK_ERROR(jot_delete(m, 3, 1), ARGUMENT,
                "index 3 of axis 1 of f32[2,3]: indices are -3 to 2");
    CHECK_ERROR((jot_unstack(m, 1, p), p[1]), SHAPE, "axis 1 of f32[2,3] into 2 values");
    CHECK_ERROR((jot_array_split(m, 2, p), p[0]), ARGUMENT,
                "jot_slice: axis 2 of f32[2,3]: axes are -2 to 1");
    CHECK_ERROR((p[0] = v, p[1] = m, jot_meshgrid(JOT_GRID_IJ, p), p[0]), SHAPE,
                "f32[2,3] is no vector");
    CHECK_ERROR((p[0] = p[1] = v, jot_meshgrid((enum jot_grid)7, p), p[1]), ARGUMENT,
                "the grid is 7, which is neither JOT_GRID_IJ nor JOT_GRID_XY");
    CHECK_ERROR((p[0] = m, p[1] = jot_arange(JOT_F32, 2), jot_broadcast_arrays(p), p[1]), SHAPE,
                "f32[2,3] and f32[2] do not broadcast: axis 1 is 3 in one and 2 in the other");
    CHECK_ERROR(jot_matrix(2, 2, 1, 2, 3), ARGUMENT, "3 numbers for 2 by 2");
    CHECK_ERROR(jot_matrix(0, 2, 1, 2), ARGUMENT, "2 numbers for 0 by 2");
    CHECK_ERROR(jot_constant((float *)NULL, 2), ARGUMENT, "the data is NULL");
    CHECK_ERROR(jot_fill_tril(jot_arange(JOT_F32, 4)), SHAPE,
                "f32[4]: the last axis has n (n + 1) / 2 elements of a triangle of n rows");
    CHECK_ERROR(jot_tril_elements(m), SHAPE, "f32[2,3] is no square matrix");
    CHECK_ERROR(jot_take_points(m, v), DTYPE, "points of f32[3]: it takes integers");
    CHECK_ERROR(
        jot_take_points(m, k), SHAPE,
        "points of i32[3] in f32[2,3]: the last axis has an index along each of the first 1 "
        "to 2 axes");
    CHECK_ERROR(jot_at_points(JOT_SCATTER_SET, m, jot_stack(0, 0, 1), jot_zeros(JOT_F64)),
                DTYPE, "jot_scatter: f64[] into f32[2,3]: convert it");
    CHECK_ERROR(jot_at_slice((enum jot_scatter_kind)9, m, 0, 0, 1, v), ARGUMENT,
                "the kind is 9, which is none of JOT_SCATTER_SET, _ADD, _MUL, _MIN, _MAX");
    CHECK_ERROR(jot_at_slice(JOT_SCATTER_SET, m, 1, 0, 2, v), SHAPE,
                "jot_broadcast_to: axis 0 of f32[3] cannot become 2: only size 1 is repeated");
    CHECK_ERROR(jot_map_coordinates(m, m, 2, JOT_BORDER_WRAP, 0), ARGUMENT,
                "order 2: there are 0 and 1");
    CHECK_ERROR(
        jot_map_coordinates(m, v, 1, JOT_BORDER_WRAP, 0), SHAPE,
        "coordinates of f32[3] in f32[2,3]: the first axis has one for each axis, of which "
        "none is empty");
    CHECK_ERROR(jot_geomspace(JOT_F32, -1, 2, 3), ARGUMENT,
                "from -1 to 2: both are finite, of one sign, and not 0");
    CHECK_ERROR(jot_unravel_index(v, 2, 2), DTYPE, "an index of f32[3]: it takes integers");
    CHECK_ERROR(jot_unravel_index(k, 2, 0), ARGUMENT, "axis 1 has size 0, and no elements");
    CHECK_ERROR(jot_ravel_multi_index(k, 2, 2), SHAPE,
                "indices i32[3] in 2 axes: the first axis has one of each");
    CHECK_ERROR(jot_put_along_axis(m, k, 0, 1), SHAPE,
                "f32[2,3] and the index i32[3] differ in more than axis 1");
    CHECK_ERROR(jot_put_along_axis(m, m, 0, 1), DTYPE,
                "an index of f32[2,3]: it takes integers");
    CHECK_ERROR(jot_packbits(v, 0), DTYPE, "f32[3]: it takes bool or integers");
    CHECK_ERROR(jot_unpackbits(k, 0), DTYPE, "i32[3]: it takes u8");
}
END_TEST

START_TEST(of_numbers)
{
    CHECK_ERROR(jot_round_to(k, -1), ARGUMENT,
                "i32[3] to -1 decimals: integers are rounded to 0 or more");
    CHECK_ERROR(jot_signbit(jot_complex(v, v)), DTYPE,
                "c64[3]: is not defined for complex numbers");
    CHECK_ERROR(jot_ldexp(v, v), DTYPE, "an exponent of f32[3]: it takes integers");
    jot_value one[1];
    CHECK_ERROR((jot_frexp(v, one), one[0]), ARGUMENT, "into 1 values: it gives 2");
    CHECK_ERROR((jot_polydiv(v, v, one), one[0]), ARGUMENT, "into 1 values: it gives 2");
    CHECK_ERROR(jot_gcd(k, v), DTYPE, "f32[3]: takes integers");
    CHECK_ERROR(
        jot_average(m, jot_arange(JOT_F32, 2), 1), SHAPE,
        "weights f32[2] of f32[2,3]: they have its shape, or are a vector along axis 1");
    CHECK_ERROR(jot_cov(jot_zeros(JOT_F32, 2, 2, 2)), SHAPE,
                "f32[2,2,2] is neither a matrix nor a vector");
    CHECK_ERROR(jot_diff(v, -1, 0), ARGUMENT, "-1 times: it takes 0 or more");
    CHECK_ERROR(jot_finite_difference(jot_slice(v, 0, 0, 1), 1, 0), SHAPE,
                "axis 0 of f32[1]: it takes 2 elements or more");
    CHECK_ERROR(jot_finite_difference(v, v, 0), SHAPE, "the spacing is f32[3], not one number");
    CHECK_ERROR(jot_trapezoid(m, jot_arange(JOT_F32, 2), 1), SHAPE,
                "points f32[2] of f32[2,3]: they are a number, have its shape, or are a vector "
                "along axis 1");
    CHECK_ERROR(jot_unwrap(jot_complex(v, v), 0), DTYPE,
                "c64[3]: is not defined for complex numbers");
    CHECK_ERROR(jot_polyval(m, v), SHAPE, "f32[2,3] is no vector of coefficients");
    CHECK_ERROR(jot_polyadd(v, jot_from(1)), SHAPE, "i32[] is no vector of coefficients");
    CHECK_ERROR(jot_polymul(v, jot_slice(v, 0, 0, 0)), SHAPE,
                "f32[3] and f32[0]: each has a coefficient at least");
    CHECK_ERROR((jot_polydiv(v, jot_slice(v, 0, 0, 0), p), p[1]), SHAPE,
                "a division by f32[0], of no coefficients");
    CHECK_ERROR(jot_polyder(v, -1), ARGUMENT, "-1 times: it takes 0 or more");
    CHECK_ERROR(jot_polyint(v, -2), ARGUMENT, "-2 times: it takes 0 or more");
    CHECK_ERROR(jot_poly(m), SHAPE, "f32[2,3] is no vector of coefficients");
    CHECK_ERROR(jot_hanning(JOT_F32, -1), ARGUMENT,
                "jot_arange: the number of elements is -1: negative");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, of_einsum);
    tcase_add_test(t, of_products);
    tcase_add_test(t, of_shapes);
    tcase_add_test(t, of_numbers);
}

int main(void) { return run_suite("trace/numpy_errors", add_tests); }
