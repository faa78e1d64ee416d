// SPDX-License-Identifier: Apache-2.0
// Updates in a loop are made in the memory of what is updated: a donated array is not copied, any
// other is copied once, and what else reads the old values still sees them.
#include "trace_support.h"

#include <time.h>

enum { UPDATES = 1000 };
static bool is_native; // and not the evaluator
static const int donate_first[] = {0, JOT_END};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int copies(jot_executable *e)
{
    int n = 0;
    const char *text = jot_executable_text(e, "memory");
    ck_assert_msg(text != NULL, "%s", jot_error_message());
    for (; (text = strstr(text, ": a copy, because ")); text++)
        n++;
    return n;
}

// i + 1 is added to element 7 i mod n.
static jot_value updated(jot_value x)
{
    JOT_FOR (i, UPDATES, x) {
        x = jot_at_add(x, jot_mul(7, i), jot_add(i, 1));
    }
    return x;
}

static void check_updated(const jot_array *y, int64_t n, double times)
{
    const float *at = jot_array_data(y);
    int64_t k = 0;
    double want = 0;
    for (; k < n; k++) {
        want = 1 + (k % 7 == 0 && k / 7 < UPDATES ? times * (double)(k / 7 + 1) : 0);
        if (at[k] != (float)want)
            break;
    }
    ck_assert_msg(k == n, "element %lld of %lld is %g, not %g", (long long)k, (long long)n,
                  k < n ? at[k] : 0, want);
}

// ---- time and copies ----

enum { SIZES = 4 };

// A chain of calls: the result of each is the input of the next.
struct chain {
    jot_executable *e;
    jot_array *x;
    int64_t n;
    int calls;
    double least; // time of a call
};

static void chain_call(struct chain *c)
{
    jot_array *y;
    double start = seconds();
    must(jot_call(c->e, JOT_IN(c->x), JOT_OUT(y)));
    c->least = fmin(c->least, seconds() - start);
    c->calls++;
    jot_array_release(c->x);
    c->x = y;
}

// The sizes take turns, and go on for some seconds until their least times are close: what else
// runs on the machine only adds, and a copy of 40 MB is never quick.
START_TEST(test_donated_is_not_copied)
{
    enum { ROUNDS = 80, CALLS = 200 }; // what is summed stays exact in f32
    struct chain chains[SIZES];
    int64_t n = 10000;
    double least = 0, most = 1e9, stop = seconds() + 10;
    for (int k = 0; k < SIZES; k++, n *= 10)
        chains[k] = (struct chain){.e = jot_jit(jot_fn(updated), .donate = donate_first),
                                   .x = jot_array_full(JOT_F32, 1, n),
                                   .n = n,
                                   .least = 1e9};
    for (int round = 0; most > 1.5 * least && round < ROUNDS && seconds() < stop; round++) {
        if (round)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        for (int i = 0; i < CALLS; i++)
            for (int k = 0; k < SIZES; k++)
                chain_call(&chains[k]);
        least = most = chains[0].least;
        for (int k = 1; k < SIZES; k++) {
            least = fmin(least, chains[k].least);
            most = fmax(most, chains[k].least);
        }
    }
    ck_assert_msg(most <= 1.5 * least, "between %.1f and %.1f us", 1e6 * least, 1e6 * most);
    for (int k = 0; k < SIZES; k++) {
        ck_assert_int_eq(copies(chains[k].e), 0);
        const char *memory = jot_executable_text(chains[k].e, "memory");
        ck_assert_ptr_nonnull(
            strstr(memory, ": a copy if others hold the input too, because "));
        check_updated(chains[k].x, chains[k].n, chains[k].calls);
        jot_array_release(chains[k].x);
        jot_executable_release(chains[k].e);
    }
}
END_TEST

static jot_value updated_as_rows(jot_value x)
{
    return jot_reshape(updated(jot_reshape(x, -1)), 4, -1);
}

// An array of another shape is the same memory.
START_TEST(test_reshaped_is_not_copied)
{
    enum { N = 10000 };
    for (int donated = 0; donated < 2; donated++) {
        jot_executable *e = donated ? jot_jit(jot_fn(updated_as_rows), .donate = donate_first)
                                    : jot_jit(jot_fn(updated_as_rows));
        jot_array *x = jot_array_full(JOT_F32, 1, 4, N / 4), *y;
        must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        ck_assert_int_eq(jot_array_rank(y), 2);
        check_updated(y, N, 1);
        if (!donated)
            check_updated(x, N, 0);
        ck_assert_int_eq(copies(e), !donated);
        ck_assert_ptr_null(strstr(jot_executable_text(e, "schedule"), "reshape"));
        jot_array_release(x), jot_array_release(y);
        jot_executable_release(e);
    }
}
END_TEST

START_TEST(test_not_donated_is_copied_once)
{
    for (int64_t n = 10000; n <= 1000000; n *= 10) {
        jot_executable *e = jot_jit(jot_fn(updated));
        jot_array *x = jot_array_full(JOT_F32, 1, n), *y;
        must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        check_updated(x, n, 0);
        check_updated(y, n, 1);
        ck_assert_msg(copies(e) == 1, "%d copies:\n%s", copies(e),
                      jot_executable_text(e, "memory"));
        jot_array_release(x), jot_array_release(y);
        jot_executable_release(e);
    }
}
END_TEST

// Element 2 i takes the place of element i, and the other way round.
static jot_value exchanged(jot_value x)
{
    JOT_FOR (i, UPDATES, x) {
        jot_value k = jot_mul(2, i), a = jot_take(x, i), b = jot_take(x, k);
        x = jot_at_set(x, i, b);
        x = jot_at_set(x, k, a);
    }
    return x;
}

// What is read of a carry that two updates overwrite is read before the first.
START_TEST(test_old_elements_are_read_before_updates)
{
    enum { LENGTH = 4000 };
    float want[LENGTH];
    for (int k = 0; k < LENGTH; k++)
        want[k] = (float)k;
    jot_executable *e = jot_jit(jot_fn(exchanged), .donate = donate_first);
    jot_array *x = jot_array_from(want, LENGTH), *y;
    for (int i = 0; i < UPDATES; i++) {
        float a = want[i];
        want[i] = want[2 * i];
        want[2 * i] = a;
    }
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    ck_assert_mem_eq(jot_array_data(y), want, sizeof want);
    ck_assert_msg(copies(e) == 0, "%s", jot_executable_text(e, "memory"));
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(e);
}
END_TEST

// ---- the gradient of a table that bodies read ----

enum { TABLE = 300000 };
static int reads;

static jot_value entry(jot_value t, jot_value i)
{
    return jot_sin(jot_take(t, jot_rem(jot_mul(i, 7919), TABLE)));
}

static jot_value read_in_a_branch(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, reads, s) {
        JOT_IF (jot_equal(jot_rem(i, 3), 0), s) {
            s = jot_add(s, entry(t, i));
        }
    }
    return s;
}

static jot_value read_in_cases(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, reads, s) {
        JOT_SWITCH (jot_rem(i, 3), 3, s) {
        case 0:
            s = jot_add(s, entry(t, i));
            break;
        case 1:
            s = jot_add(s, jot_mul(entry(t, i), jot_take(t, i)));
            break;
        }
    }
    return s;
}

static jot_value read_in_a_loop(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, reads, s) {
        JOT_FOR (j, 3, s) {
            s = jot_add(s, entry(t, jot_add(i, j)));
        }
    }
    return s;
}

static jot_value read_in_a_bounded_while(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, reads, s) {
        jot_value k = jot_zeros(JOT_I32);
        JOT_WHILE ((s, k), jot_less(k, jot_rem(i, 4)), .bound = 4) {
            s = jot_add(s, entry(t, jot_add(i, k)));
            k = jot_add(k, 1);
        }
    }
    return s;
}

static jot_value read_in_a_while(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32), k = jot_zeros(JOT_I32);
    JOT_WHILE ((s, k), jot_less(k, reads)) {
        JOT_IF (jot_equal(jot_rem(k, 3), 0), s) {
            s = jot_add(s, entry(t, k));
        }
        k = jot_add(k, 1);
    }
    return s;
}

static jot_value read_in_a_while_in_a_loop(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, reads, s) {
        jot_value k = jot_zeros(JOT_I32);
        JOT_WHILE ((s, k), jot_less(k, jot_rem(i, 4))) {
            s = jot_add(s, entry(t, jot_add(i, k)));
            k = jot_add(k, 1);
        }
    }
    return s;
}

static jot_value entries(jot_value t, jot_value i)
{
    return jot_mul(entry(t, i), jot_take(t, i));
}

static jot_value read_in_a_function(jot_value t)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, reads, s) {
        jot_value y;
        jot_apply(jot_checkpoint(jot_fn(entries)), 2, ((jot_value[]){t, i}), 1, &y);
        s = jot_add(s, y);
    }
    return s;
}

static double timed(jot_executable *e, jot_array *x, double least)
{
    double start = seconds();
    jot_array *y;
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    must(jot_array_wait(y));
    jot_array_release(y);
    return fmin(least, seconds() - start);
}

static jot_value (*const readers[])(jot_value) = {read_in_a_branch,  read_in_cases,
                                                  read_in_a_loop,    read_in_a_bounded_while,
                                                  read_in_a_while,   read_in_a_while_in_a_loop,
                                                  read_in_a_function};

// What a trip adds to the gradient it adds in place: a hundred times as many would take as many
// times as long if each went over the whole table, and without do not even with the sanitizers.
static void check_trips(jot_function f, jot_array *x)
{
    reads = 10;
    jot_executable *few = jot_jit(f), *many = jot_jit(f);
    timed(few, x, 1e9); // which traces and compiles
    reads = 1000;
    timed(many, x, 1e9);
    double least = 1e9, most = 1e9, stop = seconds() + 10;
    do {
        least = timed(few, x, least);
        most = timed(many, x, most);
    } while (most > 40 * least && seconds() < stop);
    ck_assert_msg(most <= 40 * least, "between %.1f and %.1f us", 1e6 * least, 1e6 * most);
    jot_executable_release(few), jot_executable_release(many);
}

START_TEST(test_gradients_of_tables_are_not_copied)
{
    jot_function f = jot_grad(jot_fn(readers[_i]));
    float *table = malloc(TABLE * sizeof *table);
    for (int i = 0; i < TABLE; i++)
        table[i] = (float)(i % 97) / 97;
    jot_array *x = jot_array_from(table, TABLE), *y[2];
    if (jot_device_kind_of(NULL) !=
        JOT_CUDA) // where a trip takes longer than a copy of the table
        check_trips(f, x);
    reads = 10;
    for (int k = 0; k < 2; k++) {
        setenv("JOT_BACKEND", k ? "eval" : "", 1);
        jot_executable *e = jot_jit(f);
        must(jot_call(e, JOT_IN(x), JOT_OUT(y[k])));
        jot_executable_release(e);
    }
    ck_assert_mem_eq(jot_array_data(y[0]), jot_array_data(y[1]), TABLE * sizeof *table);
    jot_array_release(x), jot_array_release(y[0]), jot_array_release(y[1]);
    free(table);
}
END_TEST

// ---- what must be right whatever is copied ----

enum { N = 40, TRIPS = 11, MOST = 3 };

// f takes n arrays of N numbers and gives as many; in_c does the same in place.
static void agrees(jot_function f, int n, const int *donate, void (*in_c)(double (*)[N]))
{
    double x[MOST][N], got[N];
    jot_array *in[MOST], *out[MOST];
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < N; i++)
            x[k][i] = 1 + ((k + 3) * (i + 5) * 37 % 101) / 64.0;
        in[k] = jot_array_from(x[k], N);
    }
    jot_executable *e = jot_jit(f, .donate = donate);
    must(jot_call_list(e, (size_t)n, in, (size_t)n, out));
    for (int k = 0; k < n && !donate; k++) {
        must(jot_array_read(in[k], got, N));
        ck_assert_msg(!memcmp(got, x[k], sizeof got), "argument %d has changed", k);
    }
    in_c(x);
    for (int k = 0; k < n; k++) {
        must(jot_array_read(out[k], got, N));
        for (int i = 0; i < N; i++)
            ck_assert_msg(got[i] == x[k][i], "result %d, element %d is %.17g, not %.17g", k, i,
                          got[i], x[k][i]);
    }
    jot_arrays_release((size_t)n, in);
    jot_arrays_release((size_t)n, out);
    jot_executable_release(e);
}

// With every combination of the arguments donated.
static void agrees_always(jot_function f, int n, void (*in_c)(double (*)[N]))
{
    for (int mask = 0; mask < 1 << n; mask++) {
        int donate[MOST + 1], count = 0;
        for (int k = 0; k < n; k++)
            if (mask >> k & 1)
                donate[count++] = k;
        donate[count] = JOT_END;
        agrees(f, n, mask ? donate : NULL, in_c);
    }
}

// Three carries that are swapped, each updated on the way.
static void rotated(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1], c = in[2];
    JOT_FOR (i, TRIPS, a, b, c) {
        jot_value t = a;
        a = jot_at_set(b, i, 0.5);
        b = jot_at_add(c, jot_add(i, 1), 2);
        c = t;
    }
    out[0] = a, out[1] = b, out[2] = c;
    (void)ctx;
}

static void rotated_in_c(double (*x)[N])
{
    for (int i = 0; i < TRIPS; i++) {
        double t[N];
        memcpy(t, x[0], sizeof t);
        memcpy(x[0], x[1], sizeof t);
        memcpy(x[1], x[2], sizeof t);
        memcpy(x[2], t, sizeof t);
        x[0][i] = 0.5;
        x[1][i + 1] += 2;
    }
}

START_TEST(test_permuted_carries)
{
    agrees_always(jot_function_make(rotated, 3, 3, NULL), 3, rotated_in_c);
}
END_TEST

// Two carries that are swapped and nothing else.
static void swapped(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value t = a;
        a = b;
        b = t;
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

static void swapped_in_c(double (*x)[N])
{
    double t[N];
    memcpy(t, x[0], sizeof t); // an odd number of times
    memcpy(x[0], x[1], sizeof t);
    memcpy(x[1], t, sizeof t);
}

START_TEST(test_swapped_carries)
{
    agrees_always(jot_function_make(swapped, 2, 2, NULL), 2, swapped_in_c);
}
END_TEST

// The old a is read after a has been updated, whole and one element.
static void read_later(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value old = a;
        a = jot_at_add(a, jot_add(i, 1), jot_take(b, i));
        b = jot_at_set(jot_add(b, jot_mul(0.25, old)), i,
                       jot_sub(jot_take(a, jot_add(i, 1)), jot_take(old, jot_add(i, 1))));
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

static void read_later_in_c(double (*x)[N])
{
    for (int i = 0; i < TRIPS; i++) {
        double old[N];
        memcpy(old, x[0], sizeof old);
        x[0][i + 1] += x[1][i];
        for (int k = 0; k < N; k++)
            x[1][k] = fma(0.25, old[k], x[1][k]);
        x[1][i] = x[0][i + 1] - old[i + 1];
    }
}

START_TEST(test_carry_read_by_a_later_phase)
{
    agrees_always(jot_function_make(read_later, 2, 2, NULL), 2, read_later_in_c);
}
END_TEST

// What the carry starts from is used in the body, and after the loop.
static void captured(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        a = jot_at_set(a, jot_add(i, 1), jot_sub(jot_take(in[0], i), jot_take(a, i)));
        b = jot_at_add(b, i, jot_take(in[0], jot_add(i, 1)));
    }
    out[0] = jot_add(a, in[0]), out[1] = b;
    (void)ctx;
}

static void captured_in_c(double (*x)[N])
{
    double start[N];
    memcpy(start, x[0], sizeof start);
    for (int i = 0; i < TRIPS; i++) {
        x[0][i + 1] = start[i] - x[0][i];
        x[1][i] += start[i + 1];
    }
    for (int k = 0; k < N; k++)
        x[0][k] += start[k];
}

START_TEST(test_operand_that_is_captured)
{
    agrees_always(jot_function_make(captured, 2, 2, NULL), 2, captured_in_c);
}
END_TEST

// Both carries start from one value, and differ from then on.
static void shared(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[0];
    JOT_FOR (i, TRIPS, a, b) {
        a = jot_at_add(a, i, 1);
        b = jot_at_set(b, i, jot_take(a, i));
    }
    out[0] = jot_sub(a, jot_mul(2, b));
    (void)ctx;
}

static void shared_in_c(double (*x)[N])
{
    for (int k = 0; k < N; k++) {
        double a = k < TRIPS ? x[0][k] + 1 : x[0][k];
        x[0][k] = fma(-2, a, a);
    }
}

START_TEST(test_carries_of_one_value)
{
    agrees_always(jot_function_make(shared, 1, 1, NULL), 1, shared_in_c);
}
END_TEST

// A loop in a loop: the inner one updates the carry of the outer one.
static void nested(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0];
    JOT_FOR (i, 3, a) {
        JOT_FOR (j, TRIPS, a) {
            a = jot_at_add(a, jot_add(jot_mul(i, 5), j), jot_take(a, jot_add(j, 1)));
        }
    }
    out[0] = a;
    (void)ctx;
}

static void nested_in_c(double (*x)[N])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < TRIPS; j++)
            x[0][5 * i + j] += x[0][j + 1];
}

START_TEST(test_nested_loops)
{
    agrees_always(jot_function_make(nested, 1, 1, NULL), 1, nested_in_c);
}
END_TEST

// One array given twice: donated as the first argument, only read as the second.
static jot_value twice(jot_value x, jot_value y)
{
    JOT_FOR (i, TRIPS, x) {
        x = jot_at_add(x, jot_add(i, 1), jot_take(y, i));
    }
    return x;
}

START_TEST(test_one_array_donated_and_not)
{
    double start[N], got[N], kept[N];
    for (int i = 0; i < N; i++)
        start[i] = 0.5 * i + 1;
    jot_array *x = jot_array_from(start, N), *held = jot_array_retain(x), *y;
    jot_executable *e = jot_jit(jot_fn(twice), .donate = donate_first);
    must(jot_call(e, JOT_IN(x, x), JOT_OUT(y)));
    must(jot_array_read(y, got, N));
    must(jot_array_read(held, kept, N)); // somebody else holds it, so it is not overwritten
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq(got[i], start[i] + (i > 0 && i <= TRIPS ? start[i - 1] : 0));
        ck_assert_double_eq(kept[i], start[i]);
    }
    jot_array_release(y), jot_array_release(held);
    must(jot_call(e, JOT_IN(x, x), JOT_OUT(y)));
    must(jot_array_read(y, got, N));
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(got[i], start[i] + (i > 0 && i <= TRIPS ? start[i - 1] : 0));
    jot_array_release(y), jot_array_release(x);
    jot_executable_release(e);
}
END_TEST

static void add_tests(TCase *t)
{
    if (is_native) {
        tcase_add_test(t, test_donated_is_not_copied);
        tcase_add_test(t, test_not_donated_is_copied_once);
        tcase_add_test(t, test_reshaped_is_not_copied);
        tcase_add_test(t, test_old_elements_are_read_before_updates);
        tcase_add_loop_test(t, test_gradients_of_tables_are_not_copied, 0,
                            sizeof readers / sizeof *readers);
    }
    tcase_add_test(t, test_permuted_carries);
    tcase_add_test(t, test_swapped_carries);
    tcase_add_test(t, test_carry_read_by_a_later_phase);
    tcase_add_test(t, test_operand_that_is_captured);
    tcase_add_test(t, test_carries_of_one_value);
    tcase_add_test(t, test_nested_loops);
    tcase_add_test(t, test_one_array_donated_and_not);
}

int main(void)
{
    setenv("JOT_BACKEND", "eval", 1);
    int failed = run_suite("in place on the evaluator", add_tests);
    is_native = true;
    setenv("JOT_BACKEND", "", 1);
    return run_suite("in place", add_tests) || failed;
}
