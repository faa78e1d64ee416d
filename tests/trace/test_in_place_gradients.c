// SPDX-License-Identifier: Apache-2.0
// What a trip adds to the gradient of an array at a few elements takes no pass over the array: not when
// the indices are numbers of C, and not when the carries of a loop take turns.
#include "trace_support.h"

enum { N = 30011, TRIPS = 23 }; // N is no other extent

static jot_value number_of_a_table(jot_value x)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, TRIPS, s) {
        s = jot_add(jot_mul(s, 0.3), jot_mul(s, jot_take(x, 3)));
        s = jot_sin(jot_add(s, jot_take(x, N - 1)));
    }
    return s;
}

static jot_value number_in_a_branch(jot_value x)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, TRIPS, s) {
        JOT_IF (jot_greater(s, 0.1), s) {
            s = jot_add(jot_mul(s, 0.3), jot_take(x, 3));
        } else {
            s = jot_add(jot_add(s, jot_mul(s, jot_take(x, 5))), 0.01);
        }
    }
    return s;
}

static jot_value slice_in_a_branch(jot_value x)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, TRIPS, s) {
        JOT_IF (jot_greater(s, 0.1), s) {
            s = jot_sum(jot_mul(s, jot_slice(x, 0, 2, 5)));
        } else {
            s = jot_add(s, 0.04);
        }
    }
    return s;
}

static jot_value slice_in_a_case(jot_value x)
{
    jot_value s = jot_zeros(JOT_F32);
    JOT_FOR (i, TRIPS, s) {
        jot_value v;
        JOT_SWITCH (jot_mod(i, 3), 3, v) {
        case 0:
            v = jot_take(x, i);
            break;
        case 1:
            v = jot_mul(jot_take(x, jot_mul(i, 2)), s);
            break;
        case 2:
            v = jot_sum(jot_slice(x, 0, 2, 5));
        }
        s = jot_sin(jot_add(s, v));
    }
    return s;
}

static jot_value number_in_a_while(jot_value x)
{
    jot_value s = jot_zeros(JOT_F32), n = jot_zeros(JOT_I32);
    JOT_WHILE ((s, n), jot_less(n, TRIPS)) {
        s = jot_add(jot_mul(0.5, s), jot_mul(s, jot_take(x, 2)));
        s = jot_add(s, jot_take(x, 1));
        n = jot_add(n, 1);
    }
    return s;
}

static jot_value number_of_a_carry(jot_value x)
{
    JOT_FOR (i, TRIPS, x) {
        x = jot_at_add(x, jot_add(i, 2), jot_take(x, 5));
    }
    return jot_add(jot_take(x, 3), jot_take(x, 9));
}

static jot_value numbers_of_a_carry(jot_value x)
{
    JOT_FOR (i, TRIPS, x) {
        x = jot_at_set(x, 3, jot_sin(jot_take(x, 5)));
        x = jot_at_add(x, 5, jot_take(x, i));
    }
    return jot_take(x, 3);
}

static jot_value exchanged_before(jot_value x)
{
    jot_value y = jot_mul(x, 2);
    JOT_FOR (i, TRIPS, x, y) {
        jot_value t = x;
        x = jot_at_set(y, i, jot_take(x, 7));
        y = t;
    }
    return jot_add(jot_take(x, 3), jot_take(y, 4));
}

static jot_value exchanged_after(jot_value x)
{
    jot_value y = jot_mul(x, 2);
    JOT_FOR (i, TRIPS, x, y) {
        jot_value t = x;
        x = y;
        y = jot_at_set(t, i, jot_take(t, jot_add(i, 1)));
    }
    return jot_add(jot_take(x, 3), jot_take(y, 4));
}

static jot_value rotated(jot_value x)
{
    jot_value y = jot_mul(x, 2), z = jot_mul(x, 3);
    JOT_FOR (i, TRIPS, x, y, z) {
        jot_value t = x;
        x = jot_at_add(y, i, jot_take(z, jot_add(i, 1)));
        y = jot_at_set(z, 4, jot_sin(jot_take(y, 6)));
        z = t;
    }
    return jot_add(jot_add(jot_take(x, 3), jot_take(y, 4)), jot_take(z, 5));
}

static const struct {
    const char *name;
    jot_value (*f)(jot_value);
} programs[] = {
    {"number of a table", number_of_a_table},   {"number in a branch", number_in_a_branch},
    {"slice in a branch", slice_in_a_branch},   {"slice in a case", slice_in_a_case},
    {"number in a while", number_in_a_while},   {"number of a carry", number_of_a_carry},
    {"numbers of a carry", numbers_of_a_carry}, {"exchanged before", exchanged_before},
    {"exchanged after", exchanged_after},       {"rotated", rotated},
};

// ---- What a trip does ----

// The end of the line.
static size_t line_length(const char *t) { return strcspn(t, "\n"); }

static bool line_has(const char *t, const char *text)
{
    const char *at = strstr(t, text);
    return at && at < t + line_length(t);
}

// Whether memory number k of the program is an array of N.
static bool is_array(const char *schedule, int k)
{
    char type[32];
    snprintf(type, sizeof type, " : f32[%d]", N);
    const char *m = schedule;
    for (int i = -1; i < k; i++) {
        m = strstr(m + 1, "\n  memory ");
        ck_assert_ptr_nonnull(m);
    }
    return line_has(m + 1, type);
}

// Whether kernel k goes over an array of N.
static bool goes_over_array(const char *schedule, int k)
{
    char name[32], loop[32];
    snprintf(name, sizeof name, "\nkernel k%d_", k);
    snprintf(loop, sizeof loop, " < %d ", N);
    const char *kernel = strstr(schedule, name), *at;
    ck_assert_ptr_nonnull(kernel);
    at = strstr(kernel, loop);
    return at && at < strstr(kernel, "\n}\n");
}

// The steps in loops that copy an array or compute all of it, the first of which is in *line.
static int passes_in_loops(const char *schedule, const char **line)
{
    int depth = 0, loop = 0, n = 0, k;
    for (const char *t = strstr(schedule, "\n  step "); t; t = strstr(t, "\n  step ")) {
        t += strlen("\n  step ");
        depth -= !strncmp(t, "end ", 4);
        loop = depth < loop ? 0 : loop;
        bool opens = !strncmp(t, "loop ", 5) || !strncmp(t, "while ", 6);
        depth += opens || !strncmp(t, "branch ", 7);
        if (!loop && opens)
            loop = depth;
        bool is_pass = (sscanf(t, "copy (%d", &k) == 1 && is_array(schedule, k)) ||
                       (sscanf(t, "kernel %d", &k) == 1 && goes_over_array(schedule, k));
        *line = loop && is_pass && !n ? t : *line;
        n += loop && is_pass;
    }
    ck_assert_int_eq(depth, 0);
    return n;
}

START_TEST(test_no_pass_over_the_array)
{
    jot_function f = jot_grad(jot_fn(programs[_i].f));
    float *numbers = malloc(N * sizeof *numbers);
    for (int i = 0; i < N; i++)
        numbers[i] = (float)(i % 97 + 1) / 97;
    jot_array *x = jot_array_from(numbers, N), *y[2];
    for (int k = 0; k < 2; k++) {
        setenv("JOT_BACKEND", k ? "eval" : "", 1);
        jot_executable *e = jot_jit(f);
        must(jot_call(e, JOT_IN(x), JOT_OUT(y[k])));
        const char *schedule = k ? "" : jot_executable_text(e, "schedule"), *line = "";
        ck_assert_msg(schedule != NULL, "%s", jot_error_message());
        int passes = passes_in_loops(schedule, &line);
        ck_assert_msg(!passes, "%s: %d, the first of which is step %.*s", programs[_i].name,
                      passes, (int)line_length(line), line);
        jot_executable_release(e);
    }
    ck_assert_mem_eq(jot_array_data(y[0]), jot_array_data(y[1]), N * sizeof *numbers);
    jot_array_release(x), jot_array_release(y[0]), jot_array_release(y[1]);
    free(numbers);
}
END_TEST

static jot_value heat_on_a_ring(jot_value u)
{
    JOT_FOR (i, TRIPS, u) {
        jot_value around = jot_add(jot_roll(u, 1, 0), jot_roll(u, -1, 0));
        u = jot_add(u, jot_mul(0.1, jot_sub(around, jot_mul(2, u))));
    }
    return jot_sum(jot_square(u));
}

// Where the cotangents of neighbours go is read for them all: no update, but one kernel a trip.
START_TEST(test_neighbours_are_one_kernel)
{
    jot_array *x = jot_array_full(JOT_F32, 0.5, N), *y;
    jot_executable *e = jot_jit(jot_grad(jot_fn(heat_on_a_ring)));
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    const char *schedule = jot_executable_text(e, "schedule");
    ck_assert_msg(schedule != NULL, "%s", jot_error_message());
    int loops = 0;
    for (const char *t = schedule; (t = strstr(t, "\n  step loop ")); loops++) {
        const char *kernel = strstr(t, "\n  step kernel ");
        t = strstr(t, "\n  step end ");
        ck_assert(kernel && kernel < t);
        ck_assert_ptr_eq(strstr(kernel + 1, "\n  step "), t);
    }
    ck_assert_int_eq(loops, 2);
    jot_executable_release(e);
    jot_array_release(x), jot_array_release(y);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_no_pass_over_the_array, 0, sizeof programs / sizeof *programs);
    tcase_add_test(t, test_neighbours_are_one_kernel);
}

int main(void) { return run_suite("gradients in place", add_tests); }
