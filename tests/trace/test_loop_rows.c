// SPDX-License-Identifier: Apache-2.0
// Indices that count with the trips of a loop are rows, whatever way they are written, and others are not.
// Values and gradients are those of the same loop whose indices are data.
#include "trace_support.h"

enum { N = 9, M = 4 };

// ---- bodies: x, y f32[N,M]; a result f32[N,M] ----

struct loop {
    jot_value x, y;
    jot_value at; // 0, 1 ... N - 1 as data, or an error: indices are those of the counter
    bool is_data;
};
typedef jot_value body(const struct loop *l);

static jot_value index_of(const struct loop *l, jot_value i)
{
    return l->is_data ? jot_take(l->at, i) : i;
}

static jot_value row(jot_value x, jot_value i)
{
    return jot_reshape(jot_dynamic_slice(x, jot_stack(0, i, 0), 1, M), M);
}

static jot_value put(jot_value x, jot_value u, jot_value i)
{
    return jot_dynamic_update_slice(x, jot_reshape(u, 1, M), jot_stack(0, i, 0));
}

static jot_value sums(const struct loop *l)
{
    jot_value s = jot_zeros(JOT_F32, M), x = l->x, y = l->y;
    JOT_FOR (i, N, s) {
        jot_value at = index_of(l, i);
        s = jot_add(s, jot_mul(jot_take(x, at), jot_sin(row(y, at))));
    }
    return jot_add(x, s);
}

static jot_value sets(const struct loop *l)
{
    jot_value z = jot_zeros(JOT_F32, N, M), s = jot_take(l->y, 0);
    JOT_FOR (i, N, z, s) {
        jot_value at = index_of(l, i);
        s = jot_mul(s, jot_cos(jot_take(l->x, at)));
        z = jot_at_set(z, at, s);
    }
    return jot_add(z, s);
}

static jot_value sets_slices(const struct loop *l)
{
    jot_value z = l->y, s = jot_take(l->y, 1);
    JOT_FOR (i, N, z, s) {
        s = jot_sin(jot_add(s, row(l->x, index_of(l, i))));
        z = put(z, s, index_of(l, i));
    }
    return z;
}

// As JAX numbers the rows of a scan from the last to the first.
static jot_value downwards(const struct loop *l)
{
    jot_value z = l->y, s = jot_take(l->x, 0);
    JOT_FOR (i, N, z, s) {
        jot_value at = index_of(l, jot_sub(jot_sub(N, i), 1));
        s = jot_add(jot_mul(s, 0.5), jot_take(l->x, at));
        z = jot_at_set(z, at, s);
    }
    return jot_add(z, s);
}

static jot_value both_ways(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z)
        z = jot_at_set(z, index_of(l, i),
                       jot_mul(jot_take(l->x, index_of(l, i)),
                               jot_take(l->x, index_of(l, jot_sub(N - 1, i)))));
    return z;
}

// Neighbours of an array that does not change, and rows that are a part of an array.
static jot_value neighbours(const struct loop *l)
{
    jot_value z = l->y, s = jot_zeros(JOT_F32, M);
    JOT_FOR_RANGE (i, 1, N - 1, z, s) {
        jot_value before = jot_take(l->x, index_of(l, jot_sub(i, 1)));
        jot_value after = jot_take(l->x, index_of(l, jot_add(i, 1)));
        s = jot_add(s, before);
        z = jot_at_set(z, index_of(l, i), jot_mul(after, s));
    }
    return z;
}

static jot_value columns(const struct loop *l)
{
    jot_value z = jot_zeros(JOT_F32, N, M), s = jot_zeros(JOT_F32, N);
    JOT_FOR (i, M, z, s) {
        jot_value at = jot_stack(0, 0, index_of(l, i));
        s = jot_add(s, jot_reshape(jot_dynamic_slice(l->x, at, N, 1), N));
        z = jot_dynamic_update_slice(z, jot_reshape(jot_sin(s), N, 1), at);
    }
    return z;
}

// Windows of three rows, one behind the other, there and back.
static jot_value windows(const struct loop *l)
{
    jot_value z = l->y, back = jot_zeros(JOT_F32, N, M);
    JOT_FOR (i, N / 3, z, back) {
        jot_value at = jot_stack(0, jot_mul(3, index_of(l, i)), 0);
        jot_value end = jot_stack(0, jot_mul(3, index_of(l, jot_sub(N / 3 - 1, i))), 0);
        z = jot_dynamic_update_slice(z, jot_sin(jot_dynamic_slice(l->x, at, 3, M)), at);
        back = jot_dynamic_update_slice(back, jot_dynamic_slice(l->x, at, 3, M), end);
    }
    return jot_mul(z, back);
}

static jot_value own_rows(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N - 2, z) {
        jot_value at = index_of(l, i), own = jot_take(z, at);
        z = jot_at_set(z, at, jot_add(jot_mul(own, own), jot_take(l->x, at)));
    }
    return z;
}

static jot_value added(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z)
        z = jot_at_add(z, index_of(l, i), jot_sin(jot_take(l->x, index_of(l, i))));
    return z;
}

// As JAX adds up what the rows of a loop get.
static jot_value added_to_zeros(const struct loop *l)
{
    jot_value z = jot_zeros(JOT_F32, N, M);
    JOT_FOR (i, N, z)
        z = jot_add(z, put(jot_zeros(JOT_F32, N, M), jot_sin(jot_take(l->x, index_of(l, i))),
                           index_of(l, i)));
    return jot_mul(z, l->y);
}

// A counter that is a carry, and indices from the end.
static jot_value from_the_end(const struct loop *l)
{
    jot_value z = l->y, k = jot_astype(-N, JOT_I32);
    JOT_SCAN ((z, k), (), (), .length = N) {
        jot_value at = l->is_data ? jot_take(l->at, jot_add(k, N)) : k;
        z = jot_at_set(z, at, jot_cos(jot_take(l->x, at)));
        k = jot_add(k, 1);
    }
    return jot_add(z, k);
}

static void put_sine(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_at_set(in[1], in[2], jot_sin(jot_take(in[0], in[2])));
    (void)ctx;
}

static jot_value in_calls(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z)
        jot_apply(jot_function_make(put_sine, 3, 1, NULL), 3,
                  ((jot_value[]){l->x, z, index_of(l, i)}), 1, &z);
    return z;
}

static jot_value inner(const struct loop *l)
{
    jot_value z = jot_zeros(JOT_F32, N, M);
    JOT_FOR (i, N, z) {
        jot_value r = jot_zeros(JOT_F32, M), from = jot_take(l->x, index_of(l, i));
        JOT_FOR (k, M, r)
            r = jot_at_set(r, index_of(l, k),
                           jot_mul(jot_take(from, index_of(l, k)), jot_add(k, i)));
        z = jot_at_set(z, index_of(l, i), r);
    }
    return jot_add(z, l->y);
}

static jot_value recurrence(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR_RANGE (i, 1, N, z) {
        jot_value before = jot_take(z, index_of(l, jot_sub(i, 1)));
        z = jot_at_set(z, index_of(l, i),
                       jot_sin(jot_add(before, jot_take(l->x, index_of(l, i)))));
    }
    return z;
}

// From the last row down, of two rows that were put before.
static jot_value second_order(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N - 2, z) {
        jot_value at = jot_sub(N - 3, i);
        jot_value one = jot_take(z, index_of(l, jot_add(at, 1)));
        jot_value two = jot_take(z, index_of(l, jot_add(at, 2)));
        z = jot_at_set(z, index_of(l, at), jot_sub(jot_mul(one, 0.7), jot_mul(two, 0.3)));
    }
    return jot_mul(z, l->x);
}

// Rows as they are before, at and behind the index: put already, and not yet.
static jot_value relaxed(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR_RANGE (i, 1, N - 2, z) {
        jot_value ends = jot_add(jot_take(z, index_of(l, jot_sub(i, 1))),
                                 jot_take(z, index_of(l, jot_add(i, 2))));
        z = jot_at_set(z, index_of(l, i),
                       jot_mul(0.3, jot_add(ends, jot_take(z, index_of(l, i)))));
    }
    return jot_add(z, l->x);
}

static jot_value added_before(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR_RANGE (i, 1, N, z)
        z = jot_at_add(z, index_of(l, i),
                       jot_mul(0.5, jot_take(z, index_of(l, jot_sub(i, 1)))));
    return jot_mul(z, l->x);
}

// ---- what is no row ----

static jot_value of_another_index(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z) {
        jot_value first = jot_take(z, 0);
        z = jot_at_set(z, index_of(l, i), jot_sin(jot_add(first, jot_take(l->x, i))));
    }
    return z;
}

static jot_value two_sets(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z) {
        z = jot_at_set(z, index_of(l, i), jot_take(l->x, 0));
        z = jot_at_set(z, index_of(l, jot_sub(N - 1, i)), jot_take(l->x, 1));
    }
    return z;
}

static jot_value pushed_inside(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z)
        z = put(z, jot_mul(jot_take(l->x, 0), i), jot_add(index_of(l, i), 3));
    return z;
}

static jot_value in_another_order(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z) {
        jot_value at = index_of(l, jot_remainder(jot_mul(i, 4), N));
        z = jot_at_set(z, at, jot_mul(jot_take(l->x, at), i));
    }
    return z;
}

static jot_value changed_whole(const struct loop *l)
{
    jot_value z = l->y;
    JOT_FOR (i, N, z)
        z = jot_mul(0.5, jot_at_set(z, index_of(l, i), jot_take(l->x, 0)));
    return z;
}

static jot_value read_whole(const struct loop *l)
{
    jot_value z = l->y, s = jot_take(l->x, 1);
    JOT_FOR (i, N, z, s) {
        s = jot_mul(0.1, jot_add(s, jot_sum(z, 0)));
        z = jot_at_set(z, index_of(l, i), s);
    }
    return z;
}

static jot_value counter_that_wraps(const struct loop *l)
{
    jot_value z = l->y, k = jot_astype(0, JOT_U8);
    JOT_FOR (i, N, z, k) {
        jot_value at = index_of(l, jot_remainder(jot_astype(k, JOT_I32), N));
        z = jot_at_set(z, at, jot_mul(jot_take(l->x, at), i));
        k = jot_add(k, jot_astype(85, JOT_U8));
    }
    return z;
}

static const struct {
    const char *name;
    body *body;
    bool is_rows;
} loops[] = {
    {"sums", sums, true},
    {"sets", sets, true},
    {"sets of slices", sets_slices, true},
    {"downwards", downwards, true},
    {"both ways", both_ways, true},
    {"neighbours", neighbours, true},
    {"columns", columns, true},
    {"windows", windows, true},
    {"own rows", own_rows, true},
    {"added", added, true},
    {"added to zeros", added_to_zeros, true},
    {"from the end", from_the_end, true},
    {"in calls", in_calls, true},
    {"inner", inner, true},
    {"a recurrence", recurrence, true},
    {"of second order", second_order, true},
    {"relaxed", relaxed, true},
    {"added before", added_before, true},
    {"of another index", of_another_index, false},
    {"two sets", two_sets, false},
    {"pushed inside", pushed_inside, false},
    {"in another order", in_another_order, false},
    {"changed whole", changed_whole, false},
    {"read whole", read_whole, false},
    {"a counter that wraps", counter_that_wraps, false},
};
enum { LOOPS = sizeof loops / sizeof *loops };

// ---- runs ----

struct how {
    int i;
    bool is_data;
};

static void value(const jot_value *in, jot_value *out, void *ctx)
{
    const struct how *h = ctx;
    struct loop l = {in[0], in[1], in[2], h->is_data};
    out[0] = loops[h->i].body(&l);
}

static void total(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value z;
    value(in, &z, ctx);
    out[0] = jot_sum(jot_mul(z, z));
}

static jot_executable *run(jot_function f, int n_out, jot_array **out)
{
    float x[N * M], y[N * M];
    int32_t at[N];
    for (int i = 0; i < N * M; i++) {
        x[i] = (float)(i * 37 % 41) / 32 - 0.5f;
        y[i] = (float)(i * 23 % 43) / 16 - 1;
    }
    for (int i = 0; i < N; i++)
        at[i] = i;
    jot_array *in[] = {jot_array_from(x, N, M), jot_array_from(y, N, M), jot_array_from(at, N)};
    jot_executable *e = jot_jit(f);
    must(jot_call_list(e, 3, in, (size_t)n_out, out));
    jot_arrays_release(3, in);
    return e;
}

// In bodies of loops, which stand before the function that uses them.
static bool has_indices(const char *text)
{
    static const char *const ops[] = {" = dynamic_", " = gather", " = scatter"};
    const char *last = text, *next;
    while ((next = strstr(last + 1, "\nfunction ")))
        last = next;
    for (int i = 0; i < 3; i++) {
        const char *at = strstr(text, ops[i]);
        if (at && at < last)
            return true;
    }
    return false;
}

static void compare(const char *what, int i, jot_array *const *got, jot_array *const *want,
                    int n)
{
    for (int k = 0; k < n; k++)
        for (size_t at = 0; at < N * M; at++) {
            float x = ((const float *)jot_array_data(got[k]))[at];
            float y = ((const float *)jot_array_data(want[k]))[at];
            ck_assert_msg(fabsf(x - y) <= 1e-5f * fmaxf(1, fabsf(y)),
                          "%s: %s %d [%zu] is %.9g, not %.9g", loops[i].name, what, k, at,
                          (double)x, (double)y);
        }
}

START_TEST(test_loops)
{
    struct how how = {_i, false}, hidden = {_i, true};
    jot_array *got[2], *want[2];
    jot_executable *e = run(jot_function_make(value, 3, 1, &how), 1, got);
    jot_executable *same = run(jot_function_make(value, 3, 1, &hidden), 1, want);
    compare("result", _i, got, want, 1);
    const char *text = jot_executable_text(e, "simplify");
    ck_assert_msg(text != NULL, "%s", jot_error_message());
    ck_assert_msg(has_indices(text) != loops[_i].is_rows, "%s:\n%s", loops[_i].name, text);
    jot_arrays_release(1, got), jot_arrays_release(1, want);
    jot_executable_release(e), jot_executable_release(same);
}
END_TEST

START_TEST(test_gradients)
{
    struct how how = {_i, false}, hidden = {_i, true};
    jot_array *got[2], *want[2];
    jot_executable *e = run(jot_grad(jot_function_make(total, 3, 1, &how), 0, 1), 2, got);
    jot_executable *same =
        run(jot_grad(jot_function_make(total, 3, 1, &hidden), 0, 1), 2, want);
    compare("gradient", _i, got, want, 2);
    const char *text = jot_executable_text(e, "simplify");
    ck_assert_msg(text != NULL, "%s", jot_error_message());
    ck_assert_msg(has_indices(text) != loops[_i].is_rows, "%s:\n%s", loops[_i].name, text);
    jot_arrays_release(2, got), jot_arrays_release(2, want);
    jot_executable_release(e), jot_executable_release(same);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_loops, 0, LOOPS);
    tcase_add_loop_test(t, test_gradients, 0, LOOPS);
}

int main(void) { return run_suite("loop rows", add_tests); }
