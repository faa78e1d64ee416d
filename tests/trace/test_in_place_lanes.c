// SPDX-License-Identifier: Apache-2.0
// Loops that are one kernel update the state of a lane in place: what else reads the old state
// sees it, and nothing is copied that need not be.  Against the evaluator, lane by lane.
#include "trace_support.h"

enum { N = 40, LANES = 37, TRIPS = 11, MOST = 3 };

// ---- bodies: two arrays and a number of trips, two arrays ----

typedef void body(const jot_value *in, jot_value *out, void *ctx);

static jot_value index_of(jot_value i, int step, int from)
{
    return jot_remainder(jot_add(jot_mul(i, step), from), N);
}

static void one_element(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        a = jot_at_add(a, index_of(i, 7, 0), 0.5);
        b = jot_at_set(b, index_of(i, 3, 1), jot_add(jot_take(b, index_of(i, 5, 2)), i));
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// Each reads the old one of the other at the index that is updated there.
static void crossed(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value at = index_of(i, 7, 0), x = jot_take(a, at), y = jot_take(b, at);
        a = jot_at_set(a, at, jot_add(y, 1));
        b = jot_at_set(b, at, jot_mul(x, 0.5));
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

static void rotated(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1], c = jot_mul(in[0], 2);
    JOT_FOR (i, TRIPS, a, b, c) {
        jot_value t = a;
        a = jot_at_set(b, i, 0.5);
        b = jot_at_add(c, jot_add(i, 1), 2);
        c = t;
    }
    out[0] = jot_add(a, c), out[1] = b;
    (void)ctx;
}

// The old a is read after its update, whole and one element; the new one too.
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

static void captured(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[0];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value at = index_of(i, 7, 0);
        a = jot_at_set(a, jot_add(at, 1), jot_sub(jot_take(in[0], at), jot_take(a, at)));
        b = jot_at_add(b, at, jot_take(in[0], jot_add(at, 1)));
    }
    out[0] = jot_add(a, in[0]), out[1] = jot_add(b, in[1]);
    (void)ctx;
}

// The new window is made of the old one, one element further.
static void window(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value w = jot_mul(jot_dynamic_slice(a, jot_stack(0, jot_add(i, 1)), 5), 0.75);
        a = jot_dynamic_update_slice(a, w, jot_stack(0, jot_add(i, 2)));
        b = jot_dynamic_update_slice(b, jot_dynamic_slice(a, jot_stack(0, i), 5),
                                     jot_stack(0, i));
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// Several elements at once, one of them twice, and at indices that are read from what is updated.
static void several(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value at = jot_stack(0, 3, 1, 4, 1, 9, 28), a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value to = jot_astype(jot_take(a, jot_add(at, i)), JOT_I32);
        a = jot_at_add(a, at, jot_mul(jot_take(a, jot_sub(at, 1)), 0.5));
        b = jot_at_set(b, to, jot_add(jot_take(b, at), i));
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// One update after the other, and a sum between them.
static void chained(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value first = jot_at_set(a, i, jot_take(b, 1));
        b = jot_at_add(b, i, jot_mul(1e-3, jot_sum(first)));
        a = jot_at_mul(jot_at_add(first, jot_add(i, 1), jot_take(a, i)), jot_add(i, 2), 0.5);
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// The inner loop reads what it updates, once as a carry and once as it was before.
static void inner(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, 4, a, b) {
        jot_value old = a;
        JOT_FOR (j, TRIPS, a, b) {
            a = jot_at_set(a, jot_add(i, j), jot_add(jot_take(old, j), 1));
            b = jot_at_add(b, j, jot_take(a, i));
        }
        b = jot_at_set(b, i, 7);
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// What the inner loop makes becomes the other carry.
static void handed_on(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, 5, a, b) {
        jot_value t = a;
        JOT_FOR (j, i, t) {
            t = jot_at_add(t, j, 1);
        }
        a = b;
        b = t;
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// Lanes end by themselves, some before the first trip; the test updates a copy of its own.
static void ends_apart(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1], k = jot_from(0.0);
    JOT_WHILE ((a, b, k), jot_less(jot_sum(jot_at_set(jot_mul(a, 0), 1, k)), in[2])) {
        jot_value i = jot_astype(k, JOT_I32);
        b = jot_at_set(b, i, jot_take(a, jot_add(i, 1)));
        a = jot_at_add(a, i, 1);
        k = jot_add(k, 1);
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

static void test_takes(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1], k = jot_from(0.0);
    JOT_WHILE ((a, b, k), jot_less(jot_take(jot_at_set(a, 2, k), 2), in[2])) {
        b = jot_at_add(b, 3, jot_take(a, 2));
        k = jot_add(k, 1);
        a = jot_at_add(a, 2, 0.25);
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// A branch that updates, one that does not, and one that makes something else.
static void branches(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value k = jot_add(jot_astype(in[2], JOT_I32), jot_add(i, 2)), old = a;
        JOT_SWITCH (jot_remainder(k, 3), 3, a, b) {
        case 0:
            a = jot_at_set(a, k, jot_add(jot_take(a, jot_add(k, 1)), 1));
            b = jot_at_add(b, k, jot_take(a, k));
            break;
        case 1:
            break;
        case 2:
            b = jot_at_set(b, k, jot_sum(jot_sin(old)));
            break;
        }
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

static void crossed_branches(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        JOT_IF (jot_greater(jot_take(a, i), jot_take(b, i)), a, b) {
            jot_value t = jot_at_set(a, i, jot_sum(jot_tanh(b)));
            a = jot_at_set(b, jot_add(i, 1), jot_sum(jot_tanh(a)));
            b = t;
        }
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// Two results of a branch that are made of one value, which nothing else reads.
static void two_of_one(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], b = in[1];
    JOT_FOR (i, TRIPS, a, b) {
        jot_value p = a, q = a;
        JOT_IF (jot_greater(jot_take(b, i), 2), p, q) {
            p = jot_at_set(a, 0, i);
            q = jot_at_add(a, i, 1);
        } else {
            p = jot_at_add(a, jot_add(i, 1), 0.5);
        }
        a = jot_mul(0.5, jot_add(p, q));
        b = jot_at_set(b, i, jot_take(a, 3));
    }
    out[0] = a, out[1] = b;
    (void)ctx;
}

// Rows of the state are results, before and after the update.
static void rows(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value a = in[0], s = in[1], before, after, sums;
    JOT_SCAN ((a), (s), (before, after, sums)) {
        before = jot_take(a, 3);
        a = jot_at_add(a, 3, s);
        after = jot_take(a, 3);
        sums = jot_sum(a);
    }
    out[0] = jot_add(a, before), out[1] = jot_add(after, sums);
    (void)ctx;
}

static const struct {
    const char *name;
    body *body;
    int locals; // of the kernel; 0: not asked
} bodies[] = {
    {"one element", one_element, 2},
    {"crossed", crossed, 2},
    {"rotated", rotated, 0},
    {"read later", read_later, 0},
    {"captured", captured, 2},
    {"a window", window, 0},
    {"several elements", several, 0},
    {"chained", chained, 2},
    {"inner", inner, 0},
    {"handed on", handed_on, 0},
    {"lanes that end apart", ends_apart, 0},
    {"the test updates", test_takes, 0},
    {"branches", branches, 2},
    {"crossed branches", crossed_branches, 0},
    {"two of one", two_of_one, 0},
    {"rows", rows, 0},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

// ---- runs ----

// How the body is mapped: not at all, over everything, over the first argument and the number, twice.
enum how { ALONE, ALL, FIRST, TWICE, HOWS };

static jot_function mapped(int i, enum how how)
{
    jot_function f = jot_function_make(bodies[i].body, 3, 2, NULL);
    if (how == FIRST)
        return jot_vmap(f, 0, JOT_NONE, 0);
    f = how == ALONE ? f : jot_vmap(f);
    return how == TWICE ? jot_vmap(f) : f;
}

static float elements[LANES * 3 * N];

static jot_array *argument(int k, enum how how)
{
    bool has_lanes = how != ALONE && !(how == FIRST && k == 1);
    int64_t lanes = has_lanes ? (how == TWICE ? LANES * 3 : LANES) : 1, dims[4], rank = 0;
    for (int i = 0; i < lanes * N; i++)
        elements[i] =
            k == 2 ? (float)((i * 5) % 9 - 1) : 1 + (float)((k + 3) * (i + 5) * 37 % 101) / 64;
    if (how == TWICE)
        dims[rank++] = 3;
    if (has_lanes)
        dims[rank++] = LANES;
    if (k < 2)
        dims[rank++] = N;
    dims[rank] = JOT_END;
    return jot_array_copy(JOT_F32, elements, dims);
}

static void run(jot_executable *e, enum how how, jot_array **out)
{
    jot_array *in[3];
    for (int k = 0; k < 3; k++)
        in[k] = argument(k, how);
    must(jot_call_list(e, 3, in, 2, out));
    jot_arrays_release(3, in);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static void check(int i, enum how how)
{
    static const int donate[] = {0, 1, JOT_END};
    jot_array *want[2], *got[2], *over[2];
    jot_executable *e = jot_jit(mapped(i, how)), *donated;
    setenv("JOT_BACKEND", "eval", 1);
    run(e, how, want);
    jot_executable_release(e);
    setenv("JOT_BACKEND", "", 1);
    e = jot_jit(mapped(i, how));
    run(e, how, got);
    donated = jot_jit(mapped(i, how), .donate = donate);
    run(donated, how, over);
    const char *text = jot_executable_text(e, "schedule");
    ck_assert_msg(text != NULL, "%s", jot_error_message());
    ck_assert_msg(count(text, "(resident") == 1, "%s: not resident\n%.3000s", bodies[i].name,
                  text);
    if (bodies[i].locals)
        ck_assert_msg(count(text, "  local ") == bodies[i].locals, "%s: %d locals\n%.3000s",
                      bodies[i].name, count(text, "  local "), text);
    for (int k = 0; k < 2; k++) {
        size_t bytes = jot_array_size(want[k]) * sizeof(float);
        const void *expected = jot_array_data(want[k]);
        ck_assert_msg(!memcmp(expected, jot_array_data(over[k]), bytes),
                      "%s, mapped %d, donated: result %d differs", bodies[i].name, how, k);
        ck_assert_msg(!memcmp(expected, jot_array_data(got[k]), bytes),
                      "%s, mapped %d: result %d differs\n%.3000s", bodies[i].name, how, k,
                      text);
    }
    jot_arrays_release(2, want), jot_arrays_release(2, got), jot_arrays_release(2, over);
    jot_executable_release(e), jot_executable_release(donated);
}

START_TEST(test_bodies) { check(_i / HOWS, (enum how)(_i % HOWS)); }
END_TEST

static void add_tests(TCase *t) { tcase_add_loop_test(t, test_bodies, 0, BODIES * HOWS); }

int main(void) { return run_suite("in place in lanes", add_tests); }
