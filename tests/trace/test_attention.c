// SPDX-License-Identifier: Apache-2.0
// Attention in half types, which is one kernel on a GPU, beside sums in f64.
#include "trace_support.h"

enum mask { NONE, CAUSAL, WINDOW, BIAS, SLOPE };

struct sizes {
    jot_dtype dtype;
    int64_t batch, heads, queries, keys, depth, columns;
    enum mask mask;
    bool heads_last; // q, k and v are [batch, position, head, depth]
};

static const struct sizes all[] = {
    {JOT_BF16, 2, 3, 64, 64, 16, 16, NONE, false},
    {JOT_F16, 2, 2, 130, 200, 64, 64, NONE, false},
    {JOT_BF16, 1, 2, 100, 77, 24, 40, NONE, false},
    {JOT_BF16, 1, 1, 65, 129, 128, 128, CAUSAL, false},
    {JOT_BF16, 8, 16, 140, 100, 64, 64, CAUSAL, false}, // a warp has two tiles
    {JOT_BF16, 1, 2, 200, 200, 32, 64, WINDOW, false},  // whole blocks of keys weigh nothing
    {JOT_BF16, 1, 3, 90, 128, 48, 8, BIAS, false},
    {JOT_F16, 2, 3, 128, 128, 64, 64, CAUSAL, true},
    {JOT_F16, 1, 2, 256, 256, 64, 64, SLOPE,
     false}, // the last keys weigh e^24 times the first ones
    {JOT_F16, 1, 2, 70, 256, 32, 16, SLOPE, false},
};
enum { WINDOW_SIDE = 3 };

static const struct sizes *now;

static jot_value masked(jot_value s, jot_value bias)
{
    jot_value i = jot_expand_dims(jot_arange(JOT_I32, now->queries), 1);
    jot_value k = jot_expand_dims(jot_arange(JOT_I32, now->keys), 0);
    switch (now->mask) {
    case CAUSAL:
        return jot_where(jot_greater_equal(i, k), s, -1e4);
    case WINDOW:
        return jot_where(jot_less_equal(jot_abs(jot_sub(i, k)), (int)WINDOW_SIDE), s,
                         -INFINITY);
    case BIAS:
        return jot_add(s, bias);
    case SLOPE:
        return jot_add(s, jot_mul(jot_astype(k, now->dtype), 0.125));
    default:
        return s;
    }
}

static jot_value attention(jot_value q, jot_value k, jot_value v, jot_value bias)
{
    if (now->heads_last) {
        q = jot_transpose(q, 0, 2, 1, 3);
        k = jot_transpose(k, 0, 2, 1, 3);
        v = jot_transpose(v, 0, 2, 1, 3);
    }
    jot_value s = jot_mul(jot_matmul(q, jot_transpose(k, 0, 1, 3, 2)), 0.25);
    return jot_matmul(jot_softmax(masked(s, bias), -1), v);
}

// Normal numbers of the type, and what they are in f32.
static jot_array *draw(int seed, const int64_t *dims, jot_array **out_wide)
{
    jot_array *x = NULL;
    jot_scope *s = jot_scope_open();
    jot_value v =
        jot_astype((jot_random_normal_dims)(jot_random_key(seed), JOT_F32, dims), now->dtype);
    ck_assert_msg(jot_eval(v, &x) == JOT_OK, "%s", jot_error_message());
    ck_assert_msg(jot_eval(jot_astype(v, JOT_F32), out_wide) == JOT_OK, "%s",
                  jot_error_message());
    jot_scope_close(s);
    return x;
}

// The row of an operand at a batch, a head and a position.
static const float *row_of(const float *x, int64_t batch, int64_t head, int64_t positions,
                           int64_t position, int64_t depth)
{
    int64_t at = now->heads_last ? (batch * positions + position) * now->heads + head
                                 : (batch * now->heads + head) * positions + position;
    return x + at * depth;
}

static double score_of(const float *q, const float *k, const float *bias, int64_t i, int64_t j)
{
    double s = 0;
    for (int64_t d = 0; d < now->depth; d++)
        s += (double)q[d] * (double)k[d];
    s *= 0.25;
    if (now->mask == CAUSAL && i < j)
        return -1e4;
    if (now->mask == WINDOW && llabs(i - j) > WINDOW_SIDE)
        return -INFINITY;
    if (now->mask == SLOPE)
        return s + 0.125 * (double)j;
    return now->mask == BIAS ? s + (double)bias[i * now->keys + j] : s;
}

// Whether the row is as near as two roundings to the type, of the weights and of the result, allow;
// on the host, where scores and all else are rounded too, as near as those do.
static void check_row(const float *y, const double *weights, double sum, double largest,
                      const float *v, int64_t batch, int64_t head)
{
    double unit = now->dtype == JOT_BF16 ? 0x1p-8 : 0x1p-11;
    double roundings = jot_device_kind_of(NULL) == JOT_CUDA ? 1 : 6 + 4 * largest;
    for (int64_t c = 0; c < now->columns; c++) {
        double want = 0, size = 0;
        for (int64_t j = 0; j < now->keys; j++) {
            const float *value = row_of(v, batch, head, now->keys, j, now->columns);
            want += weights[j] / sum * (double)value[c];
            size += weights[j] / sum * fabs((double)value[c]);
        }
        double bound = unit * (roundings * size + fabs(want)) + 1e-5 * size;
        ck_assert_msg(fabs((double)y[c] - want) <= bound, "%g, not %g within %g", (double)y[c],
                      want, bound);
    }
}

static void check_all(const float *q, const float *k, const float *v, const float *bias,
                      const float *y)
{
    double *weights = malloc((size_t)now->keys * sizeof *weights);
    for (int64_t r = 0; r < now->batch * now->heads * now->queries; r++) {
        int64_t i = r % now->queries, head = r / now->queries % now->heads;
        int64_t batch = r / now->queries / now->heads;
        if (r % 7 && now->batch * now->heads > 64) // some of many
            continue;
        const float *query = row_of(q, batch, head, now->queries, i, now->depth);
        double top = -INFINITY, sum = 0, largest = 0;
        for (int64_t j = 0; j < now->keys; j++) {
            const float *key = row_of(k, batch, head, now->keys, j, now->depth);
            weights[j] = score_of(query, key, bias, i, j);
            top = fmax(top, weights[j]);
        }
        for (int64_t j = 0; j < now->keys; j++) {
            if (weights[j] > -1e4)
                largest = fmax(largest, fabs(weights[j]));
            sum += weights[j] = exp(weights[j] - top);
        }
        check_row(y + r * now->columns, weights, sum, largest, v, batch, head);
    }
    free(weights);
}

START_TEST(attention_is_near_sums_in_f64)
{
    now = &all[_i];
    const struct sizes *z = now;
    int64_t q_dims[] = {z->batch, z->heads, z->queries, z->depth, JOT_END};
    int64_t k_dims[] = {z->batch, z->heads, z->keys, z->depth, JOT_END};
    int64_t v_dims[] = {z->batch, z->heads, z->keys, z->columns, JOT_END};
    int64_t *dims[] = {q_dims, k_dims, v_dims, (int64_t[]){z->queries, z->keys, JOT_END}};
    jot_array *in[4], *wide[4], *out, *y = NULL;
    for (int i = 0; i < 3 && z->heads_last; i++) {
        int64_t positions = dims[i][2];
        dims[i][2] = dims[i][1];
        dims[i][1] = positions;
    }
    for (int i = 0; i < 4; i++)
        in[i] = draw(i, dims[i], &wide[i]);
    jot_executable *f = jot_jit(jot_fn(attention));
    ck_assert_msg(jot_call_list(f, 4, in, 1, &out) == JOT_OK, "%s", jot_error_message());
    const char *text = jot_executable_text(f, "schedule");
    ck_assert_ptr_nonnull(text);
    if (jot_device_kind_of(NULL) == JOT_CUDA)
        ck_assert_ptr_nonnull(strstr(text, "(attention)"));
    jot_scope *s = jot_scope_open();
    ck_assert_msg(jot_eval(jot_astype(out, JOT_F32), &y) == JOT_OK, "%s", jot_error_message());
    jot_scope_close(s);
    const float *x[5];
    for (int i = 0; i < 4; i++)
        x[i] = jot_array_data(wide[i]);
    check_all(x[0], x[1], x[2], x[3], jot_array_data(y));
    jot_arrays_release(4, in);
    jot_arrays_release(4, wide);
    jot_array_release(out);
    jot_array_release(y);
    jot_executable_release(f);
}
END_TEST

// ---- Gradients

// A loss whose gradients are those that a cotangent of y gives.
static jot_value loss(jot_value q, jot_value k, jot_value v, jot_value bias, jot_value dy)
{
    return jot_sum(
        jot_mul(jot_astype(attention(q, k, v, bias), JOT_F32), jot_astype(dy, JOT_F32)));
}

// The gradients of a batch and a head in f64, and for each number the size of what it is a sum of,
// for a bound: of those of q, k and v, from each other.
struct gradients {
    double *d[3], *size[3];
};

static void add_head(const float *const x[5], int64_t batch, int64_t head,
                     struct gradients *out)
{
    int64_t nq = now->queries, nk = now->keys, nd = now->depth, nc = now->columns;
    double *w = malloc((size_t)nk * sizeof *w), *p = malloc((size_t)nk * sizeof *p);
    for (int64_t i = 0; i < nq; i++) {
        const float *q = row_of(x[0], batch, head, nq, i, nd);
        const float *dy = x[4] + ((batch * now->heads + head) * nq + i) * nc;
        double top = -INFINITY, sum = 0, delta = 0, size = 0;
        for (int64_t j = 0; j < nk; j++) {
            w[j] = score_of(q, row_of(x[1], batch, head, nk, j, nd), x[3], i, j);
            top = fmax(top, w[j]);
        }
        for (int64_t j = 0; j < nk; j++)
            sum += w[j] = exp(w[j] - top);
        for (int64_t j = 0; j < nk; j++) {
            const float *v = row_of(x[2], batch, head, nk, j, nc);
            w[j] /= sum;
            p[j] = 0;
            for (int64_t c = 0; c < nc; c++)
                p[j] += (double)dy[c] * (double)v[c];
            delta += w[j] * p[j];
            size += w[j] * fabs(p[j]);
        }
        for (int64_t j = 0; j < nk; j++) {
            const float *k = row_of(x[1], batch, head, nk, j, nd);
            bool is_constant = now->mask == CAUSAL && i < j;
            double change = is_constant ? 0 : 0.25 * w[j] * (p[j] - delta);
            double most = is_constant ? 0 : 0.25 * w[j] * (fabs(p[j]) + size);
            for (int64_t d = 0; d < nd; d++) {
                int64_t at[2] = {row_of(x[0], batch, head, nq, i, nd) - x[0] + d, k - x[1] + d};
                out->d[0][at[0]] += change * (double)k[d];
                out->size[0][at[0]] += most * fabs((double)k[d]);
                out->d[1][at[1]] += change * (double)q[d];
                out->size[1][at[1]] += most * fabs((double)q[d]);
            }
            for (int64_t c = 0; c < nc; c++) {
                int64_t at = row_of(x[2], batch, head, nk, j, nc) - x[2] + c;
                out->d[2][at] += w[j] * (double)dy[c];
                out->size[2][at] += w[j] * fabs((double)dy[c]);
            }
        }
    }
    free(w);
    free(p);
}

static void check_gradients(const float *const x[5], const float *const got[3],
                            const int64_t count[3])
{
    // Roundings of weights or changes, and of the result; on the host those of scores, products
    // and all between them, too.
    double unit = now->dtype == JOT_BF16 ? 0x1p-8 : 0x1p-11;
    double roundings = jot_device_kind_of(NULL) == JOT_CUDA ? 1 : 40;
    struct gradients right;
    for (int i = 0; i < 3; i++) {
        right.d[i] = calloc((size_t)count[i], sizeof *right.d[i]);
        right.size[i] = calloc((size_t)count[i], sizeof *right.size[i]);
    }
    for (int64_t b = 0; b < now->batch; b++)
        for (int64_t h = 0; h < now->heads; h++)
            add_head(x, b, h, &right);
    for (int i = 0; i < 3; i++)
        for (int64_t n = 0; n < count[i]; n++) {
            double want = right.d[i][n], size = right.size[i][n];
            double bound = unit * (roundings * size + fabs(want)) + 1e-5 * size + 1e-7;
            ck_assert_msg(fabs((double)got[i][n] - want) <= bound,
                          "gradient %d, number %lld: %g, not %g within %g", i, (long long)n,
                          (double)got[i][n], want, bound);
        }
    for (int i = 0; i < 3; i++) {
        free(right.d[i]);
        free(right.size[i]);
    }
}

static const struct sizes of_gradients[] = {
    {JOT_BF16, 1, 2, 64, 64, 16, 16, NONE, false},
    {JOT_F16, 1, 1, 70, 140, 64, 64, NONE, false}, // keys of two blocks, the last not full
    {JOT_BF16, 1, 1, 65, 77, 24, 40, NONE, false},
    {JOT_BF16, 1, 1, 130, 130, 32, 64, WINDOW, false},
    {JOT_BF16, 1, 2, 90, 128, 48, 8, BIAS, false},
    {JOT_F16, 1, 2, 64, 64, 32, 32, CAUSAL, true},
    {JOT_BF16, 12, 11, 20, 257, 32, 16, CAUSAL, false}, // more keys to a block, all to one
};

// With the value, which needs the forward pass, or without.
START_TEST(gradients_are_near_sums_in_f64)
{
    now = &of_gradients[_i];
    bool has_value = _i % 2;
    const struct sizes *z = now;
    int64_t q_dims[] = {z->batch, z->heads, z->queries, z->depth, JOT_END};
    int64_t k_dims[] = {z->batch, z->heads, z->keys, z->depth, JOT_END};
    int64_t v_dims[] = {z->batch, z->heads, z->keys, z->columns, JOT_END};
    int64_t dy_dims[] = {z->batch, z->heads, z->queries, z->columns, JOT_END};
    int64_t bias_dims[] = {z->queries, z->keys, JOT_END};
    int64_t *dims[] = {q_dims, k_dims, v_dims, bias_dims, dy_dims}, count[3];
    jot_array *in[5], *wide[5], *out[4], *again[4], *d[3] = {NULL};
    for (int i = 0; i < 3; i++)
        count[i] = dims[i][0] * dims[i][1] * dims[i][2] * dims[i][3];
    for (int i = 0; i < 3 && z->heads_last; i++) {
        int64_t positions = dims[i][2];
        dims[i][2] = dims[i][1];
        dims[i][1] = positions;
    }
    for (int i = 0; i < 5; i++)
        in[i] = draw(i, dims[i], &wide[i]);
    jot_executable *f = jot_jit(has_value ? jot_value_and_grad(jot_fn(loss), 0, 1, 2)
                                          : jot_grad(jot_fn(loss), 0, 1, 2));
    int n = has_value ? 4 : 3;
    ck_assert_msg(jot_call_list(f, 5, in, n, out) == JOT_OK, "%s", jot_error_message());
    ck_assert_msg(jot_call_list(f, 5, in, n, again) == JOT_OK, "%s", jot_error_message());
    const char *text = jot_executable_text(f, "schedule");
    ck_assert_ptr_nonnull(text);
    if (jot_device_kind_of(NULL) == JOT_CUDA) {
        ck_assert_ptr_nonnull(strstr(text, "(gradient of attention)"));
        ck_assert_ptr_null(strstr(text, "step gemm"));
    }
    jot_scope *s = jot_scope_open();
    const float *x[5], *got[3];
    for (int i = 0; i < 3; i++) {
        jot_array *same = NULL;
        jot_array *one = out[n - 3 + i], *other = again[n - 3 + i];
        ck_assert_msg(jot_eval(jot_astype(one, JOT_F32), &d[i]) == JOT_OK, "%s",
                      jot_error_message());
        got[i] = jot_array_data(d[i]);
        ck_assert(jot_eval(jot_all(jot_equal(one, other)), &same) == JOT_OK);
        ck_assert(*(const bool *)jot_array_data(same));
        jot_array_release(same);
    }
    jot_scope_close(s);
    for (int i = 0; i < 5; i++)
        x[i] = jot_array_data(wide[i]);
    check_gradients(x, got, count);
    jot_arrays_release(5, in);
    jot_arrays_release(5, wide);
    jot_arrays_release(n, out);
    jot_arrays_release(n, again);
    jot_arrays_release(3, d);
    jot_executable_release(f);
}
END_TEST

// ---- In a loop

static jot_value loss_of_step(jot_value q, jot_value k, jot_value v)
{
    jot_value s = jot_mul(jot_matmul(q, jot_transpose(k, 0, 1, 3, 2)), 0.25);
    jot_value y = jot_astype(jot_matmul(jot_softmax(s, -1), v), JOT_F32);
    return jot_sum(jot_mul(y, y));
}

static void step(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value d[3];
    (void)ctx;
    jot_apply(jot_grad(jot_fn(loss_of_step), 0, 1, 2), 3, in, 3, d);
    for (int i = 0; i < 3; i++)
        out[i] = jot_sub(in[i], d[i]);
}

static void two_steps(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value q = in[0], k = in[1], v = in[2];
    JOT_FOR (i, 2, q, k, v) {
        jot_value x[] = {q, k, v}, y[3];
        step(x, y, ctx);
        q = y[0];
        k = y[1];
        v = y[2];
    }
    out[0] = q;
    out[1] = k;
    out[2] = v;
}

// The same bits as steps that are called one by one.
START_TEST(gradients_descend_in_a_loop)
{
    static const struct sizes square = {JOT_BF16, 1, 1, 64, 64, 64, 64, NONE, false};
    now = &square;
    jot_array *in[3], *wide[3], *once[3], *twice[3], *got[3], *same = NULL;
    for (int i = 0; i < 3; i++)
        in[i] = draw(i, (int64_t[]){1, 1, 64, 64, JOT_END}, &wide[i]);
    jot_executable *f = jot_jit(jot_function_make(step, 3, 3, NULL));
    jot_executable *loop = jot_jit(jot_function_make(two_steps, 3, 3, NULL));
    ck_assert_msg(jot_call_list(f, 3, in, 3, once) == JOT_OK, "%s", jot_error_message());
    ck_assert_msg(jot_call_list(f, 3, once, 3, twice) == JOT_OK, "%s", jot_error_message());
    ck_assert_msg(jot_call_list(loop, 3, in, 3, got) == JOT_OK, "%s", jot_error_message());
    const char *text = jot_executable_text(loop, "schedule");
    ck_assert_ptr_nonnull(text);
    if (jot_device_kind_of(NULL) == JOT_CUDA)
        ck_assert_ptr_nonnull(strstr(text, "(gradient of attention)"));
    for (int i = 0; i < 3; i++) {
        jot_scope *s = jot_scope_open();
        ck_assert(jot_eval(jot_all(jot_equal(got[i], twice[i])), &same) == JOT_OK);
        jot_scope_close(s);
        ck_assert(*(const bool *)jot_array_data(same));
        jot_array_release(same);
    }
    jot_arrays_release(3, in);
    jot_arrays_release(3, wide);
    jot_arrays_release(3, once);
    jot_arrays_release(3, twice);
    jot_arrays_release(3, got);
    jot_executable_release(f);
    jot_executable_release(loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attention");
    TCase *tests = tcase_create("attention");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, attention_is_near_sums_in_f64, 0,
                        (int)(sizeof all / sizeof *all));
    suite_add_tcase(suite, tests);
    tests = tcase_create("gradients");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, gradients_are_near_sums_in_f64, 0,
                        (int)(sizeof of_gradients / sizeof *of_gradients));
    suite_add_tcase(suite, tests);
    tests = tcase_create("loop");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, gradients_descend_in_a_loop);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
