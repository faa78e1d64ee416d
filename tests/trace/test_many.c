// SPDX-License-Identifier: Apache-2.0
// Long lists: nothing is cut off.
#include "trace_support.h"

static jot_array *number(double x) { return jot_array_from(&x); }

// out[0] = sum of (k + 1) x[k]^2
static void weighted(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_from(0.0);
    for (int k = 0; k < *(int *)ctx; k++)
        out[0] = jot_add(out[0], jot_mul(k + 1, jot_square(in[k])));
}

// Calls f with n numbers 1, 2, ... and compares each of the results.
static void call_many(jot_function f, int n, jot_array **in, int n_out, double (*want)(int))
{
    jot_executable *e = jot_jit(f);
    jot_array **out = calloc((size_t)n_out, sizeof *out);
    must(jot_call_list(e, (size_t)n, in, (size_t)n_out, out));
    for (int k = 0; k < n_out; k++)
        check_numbers(out[k], 1, (double[]){want(k)}, 1e-12);
    jot_arrays_release((size_t)n_out, out);
    free(out);
    jot_executable_release(e);
}

static double gradient_of_weighted(int k) { return 2.0 * (k + 1) * (k + 1); }

START_TEST(test_gradients)
{
    enum { MANY = 1000 };
    int n = 20, all = MANY, list[MANY + 1];
    jot_array *x[MANY];
    for (int k = 0; k < MANY; k++) {
        x[k] = number(k + 1);
        list[k] = k;
    }
    jot_function f = jot_function_make(weighted, n, 1, &n),
                 g = jot_function_make(weighted, MANY, 1, &all);
    list[MANY] = JOT_END;
    call_many(jot_grad(f, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19),
              n, x, n, gradient_of_weighted);
    call_many(jot_grad_of(g, JOT_HERE, list), MANY, x, MANY, gradient_of_weighted);
    jot_arrays_release(MANY, x);
}
END_TEST

// Sixteen mapped arguments and four that are not.
static void sums(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = jot_from(0.0);
    for (int k = 0; k < 20; k++)
        out[0] = jot_add(out[0], jot_sum(in[k]));
}

START_TEST(test_maps)
{
    jot_array *x[20], *y = NULL, *wrong[1] = {NULL};
    for (int k = 0; k < 20; k++)
        x[k] = jot_array_full(JOT_F64, k + 1, 2);
    jot_function f = jot_function_make(sums, 20, 1, NULL);
    jot_executable *e = jot_jit(jot_vmap(f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                         JOT_NONE, JOT_NONE, JOT_NONE, JOT_NONE));
    must(jot_call_list(e, 20, x, 1, &y));
    // 1 + ... + 16 and twice 17 + ... + 20
    check_numbers(y, 2, (double[]){136 + 2 * 74, 136 + 2 * 74}, 0);
    jot_executable_release(e);
    jot_array_release(y);

    e = jot_jit(
        jot_vmap(f, 0, 300, JOT_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    ck_assert_int_eq(jot_call_list(e, 20, x, 1, wrong), JOT_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(
        jot_error_message(), ": argument 1 of sums is f64[2]: no axis 300: axes are -1 to 0"));
    jot_executable_release(e);
    ck_assert_ptr_null(jot_jit(jot_grad(f, 300)));
    ck_assert_ptr_nonnull(strstr(
        jot_error_message(), ": jot_grad: no argument 300: sums takes 20 (numbered from 0)"));
    ck_assert_ptr_null(jot_jit(jot_grad(f, 1, 0, 1)));
    ck_assert_ptr_nonnull(
        strstr(jot_error_message(), ": jot_grad: argument 1 of sums is listed twice"));
    jot_arrays_release(20, x);
}
END_TEST

static jot_value power(jot_value x) { return jot_integer_pow(x, 12); }

// The twelfth derivative of x^12, and a function mapped over 20 axes.
START_TEST(test_nesting)
{
    jot_function f = jot_fn(power), g = jot_fn(power);
    for (int k = 0; k < 12; k++)
        f = jot_grad(f);
    for (int k = 0; k < 20; k++)
        g = jot_vmap(g);
    jot_array *x = number(3), *y = NULL;
    jot_executable *e = jot_jit(f);
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 1, (double[]){479001600}, 0);
    jot_executable_release(e);
    jot_array_release(y);
    jot_array_release(x);
    x = jot_array_full(JOT_F64, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2);
    e = jot_jit(g);
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 2, (double[]){4096, 4096}, 0);
    jot_executable_release(e);
    jot_array_release(y);
    jot_array_release(x);
}
END_TEST

JOT_STRUCT(wide, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,
           a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34,
           a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51,
           a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64, a65, a66, a67, a68,
           rest[2]);

static jot_value of_wide(struct wide w, jot_value x)
{
    return jot_add(jot_mul(w.a1, x), jot_sub(w.a68, w.rest[1]));
}
JOT_FUNCTION(wide_fn, of_wide, jot_value, struct wide, jot_value);

#define V jot_value
static V of_20(V a, struct wide b, V c, V d, V e, V f, V g, V h, V i, V j, V k, V l, V m, V n,
               V o, V p, V q, V r, V s, struct wide t)
{
    V z[] = {a, b.a1, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t.rest[1]},
      y = jot_from(0.0);
    for (int at = 0; at < 20; at++)
        y = jot_add(y, jot_mul(at + 1, z[at]));
    return y;
}
JOT_FUNCTION(fn_20, of_20, V, V, struct wide, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
             struct wide);

static V of_32(V a, V b, V c, V d, V e, V f, V g, V h, V i, V j, V k, V l, V m, V n, V o, V p,
               V q, V r, V s, V t, V u, V v, V w, V x, V y, V z, V a1, V b1, V c1, V d1, V e1,
               V f1)
{
    V all[] = {a, b, c, d, e, f, g, h, i, j, k,  l,  m,  n,  o,  p,
               q, r, s, t, u, v, w, x, y, z, a1, b1, c1, d1, e1, f1};
    V sum = jot_from(0.0);
    for (int at = 0; at < 32; at++)
        sum = jot_add(sum, jot_mul(at + 1, jot_square(all[at])));
    return sum;
}

START_TEST(test_structs_and_functions)
{
    struct wide_arrays w = {0}, other = {0};
    jot_array **each = (jot_array **)&w, **last = (jot_array **)&other, *x[32], *y = NULL,
              *g[32];
    ck_assert_int_eq((int)(sizeof w / sizeof *each), 70);
    for (int k = 0; k < 70; k++) {
        each[k] = number(k + 1);
        last[k] = number(100 + k);
    }
    for (int k = 0; k < 32; k++)
        x[k] = number(k + 1);
    jot_executable *e = jot_jit(wide_fn);
    must(jot_call(e, JOT_IN(w, x[1]), JOT_OUT(y)));
    check_numbers(y, 1, (double[]){2 + 68 - 70}, 0);
    jot_executable_release(e);
    jot_array_release(y);
    e = jot_jit(fn_20);
    jot_status status =
        jot_call(e,
                 JOT_IN(x[0], w, x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11],
                        x[12], x[13], x[14], x[15], x[16], x[17], x[18], other),
                 JOT_OUT(y));
    must(status);
    // 1 + 2 + 9 + 16 + ... + 361 + 20 * 169
    check_numbers(y, 1, (double[]){2470 - 2 + 20 * 169}, 0);
    jot_executable_release(e);
    jot_array_release(y);
    e = jot_jit(jot_grad(jot_fn(of_32), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
    must(jot_call(e, JOT_IN(x), JOT_OUT(g)));
    for (int k = 0; k < 32; k++)
        check_numbers(g[k], 1, (double[]){gradient_of_weighted(k)}, 0);
    jot_executable_release(e);
    jot_arrays_release(JOT_OUT(g));
    jot_arrays_release(JOT_OUT(x));
    jot_arrays_release(JOT_OUT(w));
    jot_arrays_release(JOT_OUT(other));
}
END_TEST

#define TWENTY(m)                                                                              \
    m(0), m(1), m(2), m(3), m(4), m(5), m(6), m(7), m(8), m(9), m(10), m(11), m(12), m(13),    \
        m(14), m(15), m(16), m(17), m(18), m(19)
#define X(k) x[k]
#define Y(k) y[k]

static void blocks(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x[20], y[20], i = jot_from(0);
    (void)ctx;
    for (int k = 0; k < 20; k++) {
        x[k] = in[k];
        y[k] = jot_broadcast_to(in[k], 3);
    }
    JOT_FOR (t, 2, TWENTY(X)) {
        for (int k = 0; k < 20; k++)
            x[k] = jot_add(x[k], k);
    }
    JOT_SCAN ((TWENTY(X)), (TWENTY(Y)), (TWENTY(Y))) {
        for (int k = 0; k < 20; k++) {
            x[k] = jot_add(x[k], y[k]);
            y[k] = x[k];
        }
    }
    JOT_WHILE ((i, TWENTY(X)), jot_less(i, 2)) {
        i = jot_add(i, 1);
        for (int k = 0; k < 20; k++)
            x[k] = jot_add(x[k], 100);
    }
    JOT_IF (jot_greater(i, 1), TWENTY(X)) {
        for (int k = 0; k < 20; k++)
            x[k] = jot_sub(x[k], 200);
    } else {
        for (int k = 0; k < 20; k++)
            x[k] = jot_from(0.0);
    }
    JOT_SWITCH (i, 3, TWENTY(X)) {
    case 2:
        for (int k = 0; k < 20; k++)
            x[k] = jot_mul(x[k], 10);
    }
    JOT_MAP ((TWENTY(Y)), (TWENTY(Y))) {
        for (int k = 0; k < 20; k++)
            y[k] = jot_neg(y[k]);
    }
    JOT_VMAP ((TWENTY(Y)), (TWENTY(Y))) {
        for (int k = 0; k < 20; k++)
            y[k] = jot_neg(y[k]);
    }
    for (int k = 0; k < 20; k++)
        out[k] = jot_add(x[k], jot_take(y[k], -1));
}

// x + 2k, then three times the argument more, ten times that and the last row.
static double of_blocks(int k) { return 11 * (k + 1 + 2 * k + 3 * (k + 1)); }

START_TEST(test_blocks)
{
    jot_array *x[20];
    for (int k = 0; k < 20; k++)
        x[k] = number(k + 1);
    call_many(jot_function_make(blocks, 20, 20, NULL), 20, x, 20, of_blocks);
    jot_arrays_release(20, x);
}
END_TEST

static jot_status add_up(void *ctx, const jot_callback_call *call)
{
    double sum = *(double *)ctx;
    for (size_t k = 0; k < call->n_in; k++)
        sum += *(const double *)call->in[k].data;
    *(double *)call->out[0].data = sum;
    return JOT_OK;
}

START_TEST(test_lists_of_values)
{
    static const char names[] = "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t";
    jot_scope *s = jot_scope_open();
    jot_value x[20], v;
    double start = 0.5;
    for (int k = 0; k < 20; k++)
        x[k] = jot_from(jot_convert(k + 1, JOT_F64));
    CHECK(jot_sum(jot_stack(0, TWENTY(X), TWENTY(X))), 0, 420);
    jot_value y[20];
    for (int k = 0; k < 20; k++)
        y[k] = jot_reshape(x[k], 1);
    CHECK(jot_concatenate(0, TWENTY(Y)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
          16, 17, 18, 19, 20);
    CHECK(jot_einsum(",,,,,,,,,,,,,,,,,,,", TWENTY(X)), 1e-14, 2432902008176640000.0);
    CHECK(jot_elementwise(names, "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t", TWENTY(X)), 0, 210);
    const jot_type types[] = {JOT_TYPE(JOT_F64)};
    const jot_callback_spec spec = {.call = add_up, .ctx = &start, .n_out = 1, .out = types};
    jot_callback(&spec, &v, TWENTY(X), TWENTY(X));
    CHECK(v, 0, 420.5);
    jot_value m[20];
    for (int k = 0; k < 20; k++)
        m[k] = jot_reshape(x[k], 1, 1);
#define M(k) m[k]
    CHECK(jot_multi_dot(TWENTY(M)), 1e-14, 2432902008176640000.0);
    jot_scope_close(s);
}
END_TEST

// The message of a number that does not fit says what it is, not what is left of it.
START_TEST(test_counts_in_messages)
{
    static const struct {
        int in, out;
        const char *want;
    } cases[] = {
        {32768, 1,
         "jot_call_list: sums takes 32768 arrays and gives 1; the call passes 1 and has room "
         "for 1"},
        {-1, 1, "test: sums takes -1 arguments and gives 1 results: both are 0 to 16777215"},
        {1, 1 << 30,
         "test: sums takes 1 arguments and gives 1073741824 results: both are 0 to 16777215"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jot_array *x = number(1), *y = NULL;
        jot_executable *e = jot_jit(
            jot_function_uniform("sums", "test", sums, cases[i].in, cases[i].out, NULL));
        if (e)
            ck_assert_int_eq(jot_call_list(e, 1, &x, 1, &y), JOT_ERR_ARGUMENT);
        const char *have = jot_error_message();
        size_t n = strlen(have), want = strlen(cases[i].want);
        ck_assert_msg(n >= want && !strcmp(have + n - want, cases[i].want), "%s", have);
        jot_executable_release(e);
        jot_array_release(x);
    }
    jot_function f = jot_fn(power);
    for (int k = 0; k < 60; k++)
        f = jot_jvp(f);
    ck_assert_ptr_null(jot_jit(f));
    ck_assert_ptr_nonnull(
        strstr(jot_error_message(),
               ": power takes or gives more than 16777215 values, with 60 transforms"));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_gradients);
    tcase_add_test(t, test_maps);
    tcase_add_test(t, test_nesting);
    tcase_add_test(t, test_structs_and_functions);
    tcase_add_test(t, test_blocks);
    tcase_add_test(t, test_lists_of_values);
    tcase_add_test(t, test_counts_in_messages);
}

int main(void) { return run_suite("trace/many", add); }
