// SPDX-License-Identifier: Apache-2.0
// Attention in half types, which is one kernel on a GPU, beside sums in f64.
#include "trace_support.h"

enum mask { NONE, CAUSAL, WINDOW, BIAS };

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

int main(void)
{
    Suite *suite = suite_create("attention");
    TCase *tests = tcase_create("attention");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, attention_is_near_sums_in_f64, 0,
                        (int)(sizeof all / sizeof *all));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
