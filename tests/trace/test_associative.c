// SPDX-License-Identifier: Apache-2.0
// Associative scans against loops in C.
#include "trace_support.h"

// x -> a x + b, composed.
struct affine {
    jot_value a, b;
};

static struct affine compose(struct affine f, struct affine g)
{
    return (struct affine){jot_mul(g.a, f.a), jot_add(jot_mul(g.a, f.b), g.b)};
}
JOT_FUNCTION(compose_fn, compose, struct affine, struct affine, struct affine);

static jot_value line(jot_value a, jot_value b)
{
    struct affine f = {a, b};
    return jot_associative_scan(compose_fn, f).b;
}

static jot_value weighted(jot_value a, jot_value b)
{
    jot_value y = line(a, b);
    return jot_sum(jot_mul(y, jot_add(jot_arange(JOT_F64, (int)jot_value_dim(y, 0)), 1)));
}

static void line_in_c(int n, const double *a, const double *b, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] = i ? a[i] * y[i - 1] + b[i] : b[0];
}

static jot_array *call(jot_function f, jot_array *x, jot_array *y)
{
    jot_executable *e = jot_jit(f);
    jot_array *out = NULL;
    must(jot_call(e, JOT_IN(x, y), JOT_OUT(out)));
    jot_executable_release(e);
    return out;
}

START_TEST(recurrences)
{
    int n = _i;
    double a[40], b[40], y[40], da[40], db[40];
    for (int i = 0; i < n; i++) {
        a[i] = 0.25 + 0.125 * (i % 7);
        b[i] = 1 - 0.5 * (i % 5);
    }
    line_in_c(n, a, b, y);
    // Backward: s[i] = i + 1 + a[i + 1] s[i + 1].
    for (int i = n; i-- > 0;) {
        db[i] = i + 1 + (i + 1 < n ? a[i + 1] * db[i + 1] : 0);
        da[i] = i ? db[i] * y[i - 1] : 0;
    }
    jot_array *x = jot_array_from(a, n), *z = jot_array_from(b, n);
    jot_array *out = call(jot_fn(line), x, z), *ga = call(jot_grad(jot_fn(weighted)), x, z);
    jot_array *gb = call(jot_grad(jot_fn(weighted), 1), x, z);
    check_numbers(out, n, y, 1e-13);
    check_numbers(ga, n, da, 1e-12);
    check_numbers(gb, n, db, 1e-12);
    jot_array *rows = jot_array_from(a, 1, n),
              *mapped = call(jot_vmap(jot_fn(line), 0, JOT_NONE), rows, z);
    check_numbers(mapped, n, y, 1e-13);
    jot_array *all[] = {x, z, out, ga, gb, rows, mapped};
    jot_arrays_release(7, all);
}
END_TEST

static jot_value plus(jot_value x, jot_value y) { return jot_add(x, y); }
static jot_value last(jot_value x, jot_value y)
{
    (void)x;
    return y;
}
// Matrices do not commute, so their order is seen.
static jot_value product(jot_value x, jot_value y) { return jot_dot(x, y); }

START_TEST(axes_and_directions)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_reshape(jot_arange(JOT_F32, 6), 2, 3);
    CHECK_EXACT(jot_associative_scan(jot_fn(plus), x), 0, 1, 2, 3, 5, 7);
    CHECK_EXACT(jot_associative_scan(jot_fn(plus), x, 1), 0, 1, 3, 3, 7, 12);
    CHECK_EXACT(jot_associative_scan(jot_fn(plus), x, -1, true), 3, 3, 2, 12, 9, 5);
    CHECK_EXACT(jot_associative_scan(jot_fn(last), x, 1, true), 0, 1, 2, 3, 4, 5);
    jot_value one = jot_reshape(jot_stack(0, 1, 1, 0, 1), 1, 2, 2);
    jot_value two = jot_reshape(jot_stack(0, 1, 0, 2, 1), 1, 2, 2);
    jot_value all = jot_concatenate(0, one, two, one);
    CHECK_EXACT(jot_associative_scan(jot_fn(product), all), 1, 1, 0, 1, 3, 1, 2, 1, 3, 4, 2, 3);
    CHECK_EXACT(jot_associative_scan(jot_fn(plus), jot_zeros(JOT_I32, 1, 2)), 0, 0);
    CHECK_TYPE(jot_associative_scan(jot_fn(plus), jot_zeros(JOT_I32, 0, 2)), "i32[0,2]");
    jot_scope_close(s);
}
END_TEST

// -0 is kept where nothing is combined.
START_TEST(bits_of_the_first)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_neg(jot_zeros(JOT_F64, 3)), y = jot_associative_scan(jot_fn(last), x);
    CHECK_EXACT(jot_div(1, y), -INFINITY, -INFINITY, -INFINITY);
    jot_scope_close(s);
}
END_TEST

static jot_value narrower(jot_value x, jot_value y) { return jot_sum(jot_add(x, y)); }

#define CHECK_ERROR(value, message)                                                            \
    do {                                                                                       \
        jot_scope *scope_ = jot_scope_open();                                                  \
        jot_value x = jot_zeros(JOT_F32, 4, 2);                                                \
        struct affine f = {x, jot_zeros(JOT_F32, 3, 2)};                                       \
        (void)f;                                                                               \
        ck_assert(isnan(jot_item(value)));                                                     \
        CHECK_MESSAGE("bad_scan.c:7: jot_associative_scan: " message);                         \
        jot_scope_close(scope_);                                                               \
    } while (0)

START_TEST(messages)
{
    // clang-format off
#line 7 "bad_scan.c"
    CHECK_ERROR(jot_associative_scan(jot_fn(plus), x, 2), "axis 2 of f32[4,2]: axes are -2 to 1");
#line 7 "bad_scan.c"
    CHECK_ERROR(jot_associative_scan(compose_fn, x), "compose takes 4 values and gives 2, not 2 and 1");
#line 7 "bad_scan.c"
    CHECK_ERROR(jot_associative_scan(compose_fn, f).a, "value 1 is f32[3,2], but value 0 has 4 along axis 0");
#line 7 "bad_scan.c"
    CHECK_ERROR(jot_associative_scan(jot_fn(narrower), x), "narrower gives f32[] for value 0, whose elements are f32[2]");
#line 150 "test_associative.c"
    // clang-format on
}
END_TEST

static jot_value total(jot_value x) { return jot_associative_scan(jot_fn(plus), x); }

// The graph grows with the logarithm of the length.
START_TEST(size_of_the_graph)
{
    size_t lines[2] = {0};
    for (int k = 0; k < 2; k++) {
        jot_array *x = jot_array_full(JOT_F32, 1, k ? 1 << 20 : 1 << 10), *y;
        jot_executable *e = jot_jit(jot_fn(total));
        must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        ck_assert_float_eq(((const float *)jot_array_data(y))[1023], 1024);
        for (const char *c = jot_executable_graph(e); *c; c++)
            lines[k] += *c == '\n';
        jot_array_release(x);
        jot_array_release(y);
        jot_executable_release(e);
    }
    ck_assert_msg(lines[1] < 3 * lines[0], "%zu lines after %zu", lines[1], lines[0]);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, recurrences, 1, 12);
    tcase_add_loop_test(t, recurrences, 31, 34);
    tcase_add_test(t, axes_and_directions);
    tcase_add_test(t, bits_of_the_first);
    tcase_add_test(t, messages);
    tcase_add_test(t, size_of_the_graph);
}

int main(void) { return run_suite("trace/associative", add_tests); }
