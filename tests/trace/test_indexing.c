// SPDX-License-Identifier: Apache-2.0
// Indices that are values, through the API.  Wanted values are those of JAX 0.10.
#include "trace_support.h"

#include <time.h>

static jot_scope *open_scope(void) { return jot_scope_open(); }

START_TEST(taking)
{
    jot_scope *s = open_scope();
    jot_value x = jot_reshape(jot_arange(JOT_F32, 12), 4, 3);
    jot_value i = jot_stack(0, 2, -1, 0, 7, -5);
    CHECK_TYPE(jot_take(x, i), "f32[5,3]");
    CHECK_EXACT(jot_take(x, i), 6, 7, 8, 9, 10, 11, 0, 1, 2, NAN, NAN, NAN, NAN, NAN, NAN);
    jot_value j = jot_reshape(jot_slice(i, 0, 0, 2), 1, 2);
    CHECK_TYPE(jot_take(x, j, 1), "f32[4,1,2]");
    CHECK_EXACT(jot_take(x, j, 1), 2, 2, 5, 5, 8, 8, 11, 11);
    CHECK_EXACT(jot_take(jot_arange(JOT_I32, 3), i), 2, 2, 0, INT32_MIN, INT32_MIN);
    CHECK_EXACT(jot_take(jot_arange(JOT_U32, 3), jot_astype(i, JOT_I8)), 2, 2, 0, UINT32_MAX,
                UINT32_MAX);
    CHECK_EXACT(jot_take(x, jot_argmax(jot_sum(x, 1))), 9, 10, 11);
    CHECK_TYPE(jot_take(x, jot_zeros(JOT_I32, 0)), "f32[0,3]");
    jot_scope_close(s);
}
END_TEST

START_TEST(taking_along)
{
    jot_scope *s = open_scope();
    jot_value x = jot_reshape(jot_arange(JOT_F32, 6), 2, 3);
    jot_value i = jot_reshape(jot_stack(0, 2, 0, -1, 1), 2, 2);
    CHECK_EXACT(jot_take_along_axis(x, i, 1), 2, 0, 5, 4);
    CHECK_EXACT(jot_take_along_axis(x, jot_reshape(jot_stack(0, 2, 5), 1, 2), 1), 2, NAN, 5,
                NAN);
    CHECK_EXACT(jot_take_along_axis(x, jot_reshape(jot_stack(0, 1, 0, 1), 1, 3), 0), 3, 1, 5);
    jot_scope_close(s);
}
END_TEST

START_TEST(slices)
{
    jot_scope *s = open_scope();
    jot_value x = jot_reshape(jot_arange(JOT_F32, 12), 4, 3);
    CHECK_EXACT(jot_dynamic_slice(x, jot_stack(0, 1, 1), 2, 2), 4, 5, 7, 8);
    CHECK_EXACT(jot_dynamic_slice(x, jot_stack(0, 9, -1), 2, 1), 8, 11);
    jot_value v = jot_arange(JOT_F32, 5);
    CHECK_EXACT(jot_dynamic_slice(v, jot_argmax(v), 2), 3, 4);
    CHECK_EXACT(jot_dynamic_update_slice(v, jot_stack(0, 7.0, 8.0), -2), 0, 1, 2, 7, 8);
    CHECK_EXACT(jot_dynamic_update_slice(v, jot_stack(0, 7.0, 8.0), jot_argmin(v)), 7, 8, 2, 3,
                4);
    jot_scope_close(s);
}
END_TEST

START_TEST(updates)
{
    jot_scope *s = open_scope();
    jot_value v = jot_add(jot_arange(JOT_F32, 4), 1);
    jot_value i = jot_stack(0, 1, -1, 1, 9), y = jot_stack(0, 10.0, 20.0, 30.0, 40.0);
    CHECK_EXACT(jot_at_set(v, i, y), 1, 30, 3, 20);
    CHECK_EXACT(jot_at_add(v, i, y), 1, 42, 3, 24);
    CHECK_EXACT(jot_at_mul(v, i, y), 1, 600, 3, 80);
    CHECK_EXACT(jot_at_min(v, i, -1), 1, -1, 3, -1);
    CHECK_EXACT(jot_at_max(v, i, y), 1, 30, 3, 20);
    CHECK_EXACT(jot_at_set(v, 2, 0), 1, 2, 0, 4);
    jot_value m = jot_zeros(JOT_I32, 2, 3);
    CHECK_EXACT(jot_at_add(m, jot_stack(0, 0, 2), 1, 1), 1, 0, 1, 1, 0, 1);
    CHECK_EXACT(jot_at_set(m, -1, jot_arange(JOT_I32, 3)), 0, 0, 0, 0, 1, 2);
    jot_scope_close(s);
}
END_TEST

START_TEST(general_forms)
{
    jot_scope *s = open_scope();
    const int zero[] = {0, JOT_END}, one[] = {1, JOT_END};
    const int64_t sizes[] = {1, 2, JOT_END};
    struct jot_index_dims dims = {
        .offset = one, .collapsed = zero, .map = (const int[]){0, 1, JOT_END}};
    jot_value x = jot_reshape(jot_arange(JOT_F32, 12), 4, 3);
    jot_value i = jot_reshape(jot_stack(0, 1, 0, 3, 2), 2, 2);
    CHECK_EXACT(jot_gather(x, i, &dims, sizes), 3, 4, 10, 11);
    dims.mode = JOT_INDEX_DROP;
    CHECK_EXACT(jot_gather(x, i, &dims, sizes), 3, 4, 0, 0);
    CHECK_EXACT(jot_scatter(JOT_SCATTER_ADD, x, i, jot_ones(JOT_F32, 2, 2), &dims), 0, 1, 2, 4,
                5, 5, 6, 7, 8, 9, 10, 11);
    jot_scope_close(s);
}
END_TEST

static jot_value picked(jot_value x, jot_value i)
{
    return jot_sum(jot_integer_pow(jot_take(x, i), 2));
}

START_TEST(gradients)
{
    const float x[] = {1, 2, 3};
    const int32_t i[] = {2, 0, 2, 5};
    const double want[] = {2, 0, 12};
    jot_array *a = jot_array_from(x, 3), *b = jot_array_from(i, 4), *g = NULL;
    jot_executable *df = jot_jit(jot_grad(jot_fn(picked), 0));
    must(jot_call(df, JOT_IN(a, b), JOT_OUT(g)));
    check_numbers(g, 3, want, 0);
    jot_array_release(a);
    jot_array_release(b);
    jot_array_release(g);
    jot_executable_release(df);
}
END_TEST

// ---- Modes and kinds

enum { EXTENT = 5, INDICES = 6 };
static const int32_t indices[2][INDICES] = {{0, -1, 7, 2, -9, 2}, {4, 0, -5, 1, 4, -2}};
static enum jot_index_mode mode;
static enum jot_scatter_kind kind;

// Where an index is in the mode, or -1.
static int index_in_mode(int i)
{
    if (mode == JOT_INDEX_WRAP)
        return (i % EXTENT + EXTENT) % EXTENT;
    i += i < 0 ? EXTENT : 0;
    if (i >= 0 && i < EXTENT)
        return i;
    return mode != JOT_INDEX_CLIP ? -1 : i < 0 ? 0 : EXTENT - 1;
}

static jot_value taken(jot_value x, jot_value i) { return jot_take_mode(x, i, 0, mode); }
static jot_value taken_along(jot_value x, jot_value i)
{
    return jot_take_along_axis_mode(x, i, 0, mode);
}
static jot_value updated(jot_value x, jot_value y, jot_value i)
{
    return jot_at_mode(kind, x, i, y, 0, mode);
}

static jot_array *fixed;
static jot_value updated_by_fixed(jot_value x, jot_value i)
{
    return updated(x, jot_from(fixed), i);
}

// Calls f on three arrays, or two.
static jot_array *call(jot_function f, jot_array *a, jot_array *b, jot_array *c)
{
    jot_array *in[] = {a, b, c}, *out = NULL;
    jot_executable *e = jot_jit(f);
    must(jot_call_list(e, c ? 3 : 2, in, 1, &out));
    jot_executable_release(e);
    return out;
}

static void check_call(jot_function f, jot_array *a, jot_array *b, jot_array *c, int n,
                       const double *want)
{
    jot_array *out = call(f, a, b, c);
    check_numbers(out, n, want, 0);
    jot_array_release(out);
}

static void fill_with(double *x, int n, double first)
{
    for (int i = 0; i < n; i++)
        x[i] = first + (double)(i * 7 % n) * 0.75;
}

// Every mode; whether indices are outside of x only where the mode says what becomes of them.
START_TEST(modes_of_taking)
{
    mode = (enum jot_index_mode)_i;
    double x[3 * EXTENT], want[3 * INDICES];
    fill_with(x, 3 * EXTENT, -2);
    for (int inside = mode == JOT_INDEX_PROMISE; inside < 2; inside++) {
        jot_array *i = jot_array_from(indices[inside], INDICES), *v = jot_array_from(x, EXTENT);
        jot_array *lanes = jot_array_from(x, 3, EXTENT);
        for (int k = 0; k < 3 * INDICES; k++) {
            int at = index_in_mode(indices[inside][k % INDICES]);
            want[k] = at >= 0 ? x[k / INDICES * EXTENT + at] : mode == JOT_INDEX_FILL ? NAN : 0;
        }
        check_call(jot_fn(taken), v, i, NULL, INDICES, want);
        check_call(jot_fn(taken_along), v, i, NULL, INDICES, want);
        check_call(jot_vmap(jot_fn(taken), 0, JOT_NONE), lanes, i, NULL, 3 * INDICES, want);
        check_call(jot_vmap(jot_fn(taken_along), 0, JOT_NONE), lanes, i, NULL, 3 * INDICES,
                   want);
        if (mode != JOT_INDEX_FILL || inside) {
            must(jot_check_grads(jot_fn(taken), 2, JOT_FORWARD | JOT_REVERSE, 0, v, i));
            must(jot_check_grads(jot_fn(taken_along), 2, JOT_FORWARD | JOT_REVERSE, 0, v, i));
        }
        jot_array *all[] = {i, v, lanes};
        jot_arrays_release(3, all);
    }
}
END_TEST

static double combined(double x, double y)
{
    switch (kind) {
    case JOT_SCATTER_ADD:
        return x + y;
    case JOT_SCATTER_MUL:
        return x * y;
    case JOT_SCATTER_MIN:
        return fmin(x, y);
    case JOT_SCATTER_MAX:
        return fmax(x, y);
    default:
        return y;
    }
}

// Every kind of update in every mode, indices that occur several times among them.
START_TEST(modes_of_updates)
{
    kind = (enum jot_scatter_kind)(_i / 5);
    mode = (enum jot_index_mode)(_i % 5);
    double x[3 * EXTENT], y[3 * INDICES], want[3 * EXTENT];
    fill_with(x, 3 * EXTENT, -2.125);
    fill_with(y, 3 * INDICES, -3);
    for (int inside = mode == JOT_INDEX_PROMISE; inside < 2; inside++) {
        jot_array *i = jot_array_from(indices[inside], INDICES), *v = jot_array_from(x, EXTENT);
        jot_array *u = jot_array_from(y, INDICES), *lanes = jot_array_from(x, 3, EXTENT);
        jot_array *several = jot_array_from(y, 3, INDICES);
        memcpy(want, x, sizeof want);
        for (int k = 0; k < 3 * INDICES; k++) {
            int at = index_in_mode(indices[inside][k % INDICES]) + k / INDICES * EXTENT;
            if (at >= k / INDICES * EXTENT)
                want[at] = combined(want[at], y[k]);
        }
        fixed = u;
        check_call(jot_fn(updated), v, u, i, EXTENT, want);
        check_call(jot_vmap(jot_fn(updated), 0, 0, JOT_NONE), lanes, several, i, 3 * EXTENT,
                   want);
        if (kind == JOT_SCATTER_MUL) // in y there is no derivative where indices meet
            must(jot_check_grads(jot_fn(updated_by_fixed), 2, JOT_FORWARD | JOT_REVERSE, 0, v,
                                 i));
        else
            must(jot_check_grads(jot_fn(updated), 2, JOT_FORWARD | JOT_REVERSE, 0, v, u, i));
        jot_array *all[] = {i, v, u, lanes, several};
        jot_arrays_release(5, all);
    }
}
END_TEST

// In a scope of its own each: the first error is what every call of a scope gives.
#define CHECK_ERROR(value, status, message)                                                    \
    do {                                                                                       \
        jot_scope *scope_ = jot_scope_open();                                                  \
        jot_value x = jot_reshape(jot_arange(JOT_F32, 12), 4, 3);                              \
        check_error((value), (status), (message));                                             \
        jot_scope_close(scope_);                                                               \
    } while (0)

START_TEST(errors)
{
    CHECK_ERROR(jot_take(x, x), JOT_ERR_DTYPE, "an index of f32[4,3]: it takes integers");
    CHECK_ERROR(jot_take(x, 4), JOT_ERR_ARGUMENT,
                "index 4 of axis 0 of f32[4,3]: indices are -4 to 3");
    CHECK_ERROR(jot_take(jot_slice(x, 0, 0, 0), jot_zeros(JOT_I32, 2)), JOT_ERR_ARGUMENT,
                "indices along axis 0 of f32[0,3], which has no elements");
    CHECK_ERROR(jot_take_along_axis(x, jot_zeros(JOT_I32, 2, 2), 1), JOT_ERR_SHAPE,
                "f32[4,3] and the index i32[2,2] differ in more than axis 1");
    CHECK_ERROR(jot_dynamic_slice(x, 1, 2, 2), JOT_ERR_SHAPE,
                "starts i32[] of a slice of f32[4,3]: it takes one for each axis");
    CHECK_ERROR(jot_dynamic_slice(x, jot_stack(0, 1, 1), 5, 1), JOT_ERR_SHAPE,
                "a window of 5 along axis 0 of f32[4,3]: at most 4");
    CHECK_ERROR(jot_at_set(x, 1, jot_zeros(JOT_F32, 2)), JOT_ERR_SHAPE,
                "f32[2] does not broadcast to f32[3], the shape of the indices");
    CHECK_ERROR(jot_at_add(x, 1, jot_zeros(JOT_F64, 3)), JOT_ERR_DTYPE,
                "f64[3] into f32[4,3]: convert it");
    CHECK_ERROR(jot_at_set(x, 4, 1), JOT_ERR_ARGUMENT,
                "index 4 of axis 0 of f32[4,3]: indices are -4 to 3");
    CHECK_ERROR(jot_at_add(x, -4, 1, 1), JOT_ERR_ARGUMENT,
                "index -4 of axis 1 of f32[4,3]: indices are -3 to 2");
    CHECK_ERROR(jot_at_max(jot_slice(x, 0, 0, 0), 0, 1), JOT_ERR_ARGUMENT,
                "index 0 of axis 0 of f32[0,3], which has no elements");
    CHECK_ERROR(
        jot_take_mode(x, 1, 0, (enum jot_index_mode)5), JOT_ERR_ARGUMENT,
        "the mode is 5, which is none of JOT_INDEX_CLIP, _FILL, _PROMISE, _DROP, _WRAP");
    CHECK_ERROR(jot_at_mode((enum jot_scatter_kind)9, x, 1, 1, 0, JOT_INDEX_CLIP),
                JOT_ERR_ARGUMENT,
                "the kind is 9, which is none of JOT_SCATTER_SET, _ADD, _MUL, _MIN, _MAX");
    CHECK_ERROR(jot_gather(x, jot_zeros(JOT_I32, 1),
                           (&(struct jot_index_dims){.mode = JOT_INDEX_WRAP}), NULL),
                JOT_ERR_ARGUMENT,
                "the mode is JOT_INDEX_WRAP, which is for rows, not windows: take "
                "JOT_INDEX_CLIP, _FILL, _PROMISE or _DROP");
}
END_TEST

// ---- In place

static jot_value with_one_more(jot_value x, jot_value i) { return jot_at_add(x, i, 1); }

static jot_value with_a_part(jot_value x, jot_value i)
{
    return jot_dynamic_update_slice(x, jot_full(JOT_F32, 2.0, 3), i);
}

// What is put depends on what is there.
static jot_value with_a_square(jot_value x, jot_value i)
{
    return jot_at_set(x, i, jot_integer_pow(jot_take(x, i), 2));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The shortest of many calls; *array is that of the last.
static double time_of(jot_executable *e, int64_t n, bool donated, jot_array **array)
{
    const int32_t index = 5;
    double best = 1;
    jot_array *x = jot_array_full(JOT_F32, 1, n), *i = jot_array_from(&index), *y = NULL;
    for (int k = 0; k < 30; k++) {
        const void *before = jot_array_data(x);
        double start = now();
        must(jot_call(e, JOT_IN(x, i), JOT_OUT(y)));
        double took = now() - start;
        best = took < best && k ? took : best;
        if (donated)
            ck_assert_ptr_eq(jot_array_data(y), before);
        else
            ck_assert_ptr_ne(jot_array_data(y), before);
        jot_array_release(x);
        x = y;
    }
    jot_array_release(i);
    *array = x;
    return best;
}

static void check_in_place(jot_function f, float want, float other)
{
    const int donate[] = {0, JOT_END};
    for (int donated = 0; donated < 2; donated++) {
        double time[2];
        for (int large = 0; large < 2; large++) {
            jot_executable *e = donated ? jot_jit(f, .donate = donate) : jot_jit(f);
            jot_array *y;
            time[large] = time_of(e, large ? 10000000 : 10000, donated, &y);
            const float *data = jot_array_data(y);
            ck_assert_float_eq(data[5], want);
            ck_assert_float_eq(data[4], 1);
            ck_assert_float_eq(data[6], other);
            jot_array_release(y);
            jot_executable_release(e);
        }
        // Copying the large one takes milliseconds.
        if (donated)
            ck_assert_msg(time[1] < 3 * time[0] + 1e-4, "%g s after %g s", time[1], time[0]);
    }
}

START_TEST(in_place)
{
    check_in_place(jot_fn(with_one_more), 31, 1);
    check_in_place(jot_fn(with_a_part), 2, 2);
    check_in_place(jot_fn(with_a_square), 1, 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, taking);
    tcase_add_test(t, taking_along);
    tcase_add_test(t, slices);
    tcase_add_test(t, updates);
    tcase_add_test(t, general_forms);
    tcase_add_test(t, gradients);
    tcase_add_loop_test(t, modes_of_taking, 0, JOT_INDEX_WRAP + 1);
    tcase_add_loop_test(t, modes_of_updates, 0, (JOT_SCATTER_MAX + 1) * (JOT_INDEX_WRAP + 1));
    tcase_add_test(t, errors);
    tcase_add_test(t, in_place);
}

int main(void) { return run_suite("trace/indexing", add_tests); }
