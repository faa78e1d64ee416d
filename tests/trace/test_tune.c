// SPDX-License-Identifier: Apache-2.0
// jot_jit(f, .tune = true): the same bits, whatever measuring chooses, and measured once.
#include "trace_support.h"

#include <stddef.h>
#include <unistd.h>

static jot_value layers(jot_value w, jot_value x)
{
    jot_value h = jot_tanh(jot_matmul(x, w));
    jot_value y = jot_softmax(jot_matmul(h, jot_transpose(w)), 1);
    return jot_sum(jot_mul(jot_log(jot_add(y, 1.0)), x));
}

static jot_value heat(jot_value u, jot_value k)
{
    JOT_FOR (i, 20, u) {
        jot_value left = jot_roll(u, 1, 0), right = jot_roll(u, -1, 0);
        u = jot_add(u, jot_mul(k, jot_sub(jot_add(left, right), jot_mul(2.0, u))));
    }
    return u;
}

static jot_value chains(jot_value x, jot_value y)
{
    jot_value s = jot_zeros_like(x);
    JOT_FOR (i, 50, s) {
        s = jot_add(jot_mul(0.5, s), jot_sin(jot_add(x, jot_mul(s, y))));
    }
    return jot_concatenate(0, jot_exp(s), jot_mul(s, x));
}

static jot_value twice_used(jot_value x, jot_value y)
{
    jot_value e = jot_add(jot_mul(x, y), jot_mul(jot_add(x, 1.0), jot_sub(y, 2.0)));
    jot_value rows = jot_sum(e, 1), columns = jot_sum(jot_mul(e, e), 0);
    return jot_add(jot_sum(jot_sin(rows)), jot_sum(jot_sqrt(columns)));
}

static const struct {
    const char *name;
    int64_t first[2], second[2]; // of the two arguments
} programs[] = {
    {"layers", {24, 40}, {300, 24}},
    {"heat", {5000, 1}, {5000, 1}},
    {"chains", {3000, 1}, {3000, 1}},
    {"twice_used", {150, 130}, {150, 130}},
};
#define PROGRAMS (int)(sizeof programs / sizeof *programs)

static jot_function function_of(int i)
{
    return i == 0   ? jot_grad(jot_fn(layers), 0, 1)
           : i == 1 ? jot_fn(heat)
           : i == 2 ? jot_fn(chains)
                    : jot_grad(jot_fn(twice_used), 0, 1);
}

static jot_array *numbers(const int64_t dims[2], jot_dtype dtype, double from)
{
    jot_scope *s = jot_scope_open();
    jot_array *a = NULL;
    jot_value n = jot_arange(dtype, dims[0] * dims[1]);
    jot_value v = jot_add(from, jot_mul(0.4, jot_sin(jot_mul(n, 0.37))));
    must(jot_eval(jot_reshape(v, dims[0], dims[1]), &a));
    jot_scope_close(s);
    return a;
}

static void check_same(const jot_array *a, const jot_array *b)
{
    ck_assert_uint_eq(jot_array_size(a), jot_array_size(b));
    size_t bytes = jot_array_size(a) * jot_dtype_size(jot_array_dtype(a));
    ck_assert(!memcmp(jot_array_data(a), jot_array_data(b), bytes));
}

// Runs it on new arrays; the first result.
static void run(jot_executable *e, int i, jot_dtype dtype, jot_array *out[2])
{
    jot_array *x = numbers(programs[i].first, dtype, 0.6),
              *y = numbers(programs[i].second, dtype, 0.3);
    size_t n = i % 3 == 0 ? 2 : 1;
    out[1] = NULL;
    must(jot_call_list(e, 2, (jot_array *[]){x, y}, n, out));
    jot_arrays_release(2, (jot_array *[]){x, y});
}

static void check_tuned(int i, jot_dtype dtype, const int *donated)
{
    jot_executable *plain = jot_jit(function_of(i)),
                   *tuned = jot_jit(function_of(i), .tune = true, .donate = donated);
    jot_array *want[2], *have[2];
    run(plain, i, dtype, want);
    for (int call = 0; call < 2; call++) {
        run(tuned, i, dtype, have);
        for (int k = 0; k < 2 && want[k]; k++)
            check_same(want[k], have[k]);
        jot_arrays_release(2, have);
    }
    ck_assert_uint_eq(jot_executable_versions(tuned), 1);
    jot_arrays_release(2, want);
    jot_executable_release(plain);
    jot_executable_release(tuned);
}

START_TEST(test_bits_are_the_same) { check_tuned(_i / 2, _i % 2 ? JOT_F64 : JOT_F32, NULL); }
END_TEST

// Measuring overwrites no argument, also of one whose memory the call may take.
START_TEST(test_donated_arguments) { check_tuned(_i, JOT_F32, (const int[]){0, JOT_END}); }
END_TEST

// What JOT_DUMP writes to stderr while the program is made.
static char *dumped(jot_executable *e, int i, char *text, size_t size)
{
    FILE *to = tmpfile();
    int before = dup(STDERR_FILENO);
    jot_array *out[2];
    ck_assert(to && before >= 0);
    fflush(stderr);
    dup2(fileno(to), STDERR_FILENO);
    run(e, i, JOT_F64, out);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    jot_arrays_release(2, out);
    rewind(to);
    text[fread(text, 1, size - 1, to)] = 0;
    fclose(to);
    return text;
}

START_TEST(test_measured_once)
{
    char text[65536], schedule[65536] = "";
    setenv("JOT_DUMP", "tune", 1);
    for (int k = 0; k < 2; k++) {
        jot_executable *e = jot_jit(jot_fn(twice_used), .tune = true);
        dumped(e, 1, text, sizeof text);
        bool is_measured = strstr(text, "---- tune of twice_used") != NULL;
        ck_assert_msg(is_measured == (k == 0), "%s", text);
        if (k == 0) {
            ck_assert_ptr_nonnull(strstr(text, "by their prices: "));
            ck_assert_ptr_nonnull(strstr(text, "rather stored: "));
            ck_assert_ptr_nonnull(strstr(text, ", fewer_lanes "));
            snprintf(schedule, sizeof schedule, "%s", jot_executable_text(e, "schedule"));
        }
        ck_assert_str_eq(jot_executable_text(e, "schedule"), schedule);
        jot_executable_release(e);
    }
    unsetenv("JOT_DUMP");
}
END_TEST

// A caller that was built before the field was there, and what JOT_DUMP=run prints of a tuned program.
START_TEST(test_older_callers)
{
    char text[65536];
    setenv("JOT_DUMP", "tune,run", 1);
    for (int older = 0; older < 2; older++) {
        jot_jit_options o = {.tune = true,
                             .size = older ? offsetof(jot_jit_options, tune) : sizeof o};
        jot_executable *e = jot_jit_with(jot_fn(twice_used), &o);
        dumped(e, 2, text, sizeof text);
        ck_assert_msg((strstr(text, "---- tune of twice_used") != NULL) == !older, "%s", text);
        dumped(e, 2, text, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, "---- run: k0_"));
        jot_executable_release(e);
    }
    unsetenv("JOT_DUMP");
}
END_TEST

static jot_status count(void *ctx, const jot_callback_call *call)
{
    (void)call;
    ++*(int *)ctx;
    return JOT_OK;
}

static int called;

static jot_value with_callback(jot_value x)
{
    static const jot_callback_spec spec = {.call = count, .ctx = &called};
    jot_callback(&spec, NULL, x);
    return jot_mul(x, 2.0);
}

// What is done for its effect is done as often as the program says.
START_TEST(test_callbacks_are_not_repeated)
{
    jot_executable *e = jot_jit(jot_fn(with_callback), .tune = true);
    jot_array *x = jot_array_full(JOT_F32, 2, 3), *y;
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    ck_assert_int_eq(called, 1);
    jot_arrays_release(2, (jot_array *[]){x, y});
    jot_executable_release(e);
}
END_TEST

static jot_value positive(jot_value x)
{
    jot_assert(jot_greater(x, 0), "x is not positive");
    return jot_sqrt(x);
}

// A run that fails while it is measured fails in the call, which tells why.
START_TEST(test_failing_runs)
{
    jot_executable *e = jot_jit(jot_fn(positive), .tune = true);
    jot_array *x = jot_array_full(JOT_F32, -1, 3), *y = NULL;
    ck_assert_int_eq(jot_call(e, JOT_IN(x), JOT_OUT(y)), JOT_ERR_CHECK);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "x is not positive"));
    jot_array_release(x);
    x = jot_array_full(JOT_F32, 4, 3);
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 3, (const double[]){2, 2, 2}, 0);
    ck_assert_uint_eq(jot_executable_versions(e), 1);
    jot_arrays_release(2, (jot_array *[]){x, y});
    jot_executable_release(e);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_bits_are_the_same, 0, 2 * PROGRAMS);
    tcase_add_loop_test(t, test_donated_arguments, 0, PROGRAMS);
    tcase_add_test(t, test_older_callers);
    tcase_add_test(t, test_measured_once);
    tcase_add_test(t, test_callbacks_are_not_repeated);
    tcase_add_test(t, test_failing_runs);
}

int main(void)
{
    setenv("JOT_BACKEND", "", 1);
    char directory[] = P_tmpdir "/jot-tune-XXXXXX";
    if (!mkdtemp(directory))
        return 1;
    setenv("JOT_CACHE_DIR", directory, 1);
    int failed = run_suite("tune", add_tests);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) != 0 || failed;
}
