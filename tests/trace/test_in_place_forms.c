// SPDX-License-Identifier: Apache-2.0
// Every kind of update in every kind of branch in every kind of loop, of two arrays, and the gradient:
// in place where the arrays are donated, and what the evaluator gives, whatever is copied.
#include "trace_support.h"

#include "support/sample.h"

enum { N = 1100, TRIPS = 13 };

struct pair {
    jot_value a, b;
};

// ---- What a trip does ----

typedef struct pair change(struct pair p, jot_value i);

static jot_value times(int k, jot_value i) { return jot_mul(k, i); }

static struct pair set(struct pair p, jot_value i)
{
    p.a = jot_at_set(p.a, times(3, i), jot_mul(0.5, i));
    return p;
}

static struct pair add_of_another(struct pair p, jot_value i)
{
    p.a = jot_at_add(p.a, times(3, i), jot_mul(0.25, jot_take(p.a, i)));
    p.b = jot_at_mul(p.b, i, jot_take(p.b, times(2, i)));
    return p;
}

static struct pair set_same(struct pair p, jot_value i)
{
    p.a = jot_at_set(p.a, i, jot_sin(jot_take(p.a, i)));
    return p;
}

static struct pair swap(struct pair p, jot_value i)
{
    jot_value k = times(2, i), x = jot_take(p.a, i), y = jot_take(p.a, k);
    p.a = jot_at_set(p.a, i, y);
    p.a = jot_at_set(p.a, k, x);
    return p;
}

static struct pair rotate_three(struct pair p, jot_value i)
{
    jot_value k = times(2, i), l = jot_add(i, 5);
    jot_value x = jot_take(p.a, i), y = jot_take(p.a, k), z = jot_take(p.a, l);
    p.a = jot_at_set(p.a, i, y);
    p.a = jot_at_set(p.a, k, z);
    p.a = jot_at_set(p.a, l, x);
    return p;
}

// Only the last of three updates reads what was there before the first.
static struct pair read_by_the_third(struct pair p, jot_value i)
{
    jot_value old = jot_sin(jot_take(p.a, jot_add(i, 5)));
    p.a = jot_at_set(p.a, i, 1.5);
    p.a = jot_at_add(p.a, times(2, i), 2);
    p.a = jot_at_set(p.a, times(3, i), old);
    return p;
}

// Each gets an element that the other one had.
static struct pair cross(struct pair p, jot_value i)
{
    jot_value x = jot_take(p.a, times(2, i)), y = jot_take(p.b, i);
    p.a = jot_at_set(p.a, i, jot_add(y, 1));
    p.b = jot_at_set(p.b, times(2, i), jot_mul(x, 0.5));
    return p;
}

static struct pair move_slice(struct pair p, jot_value i)
{
    jot_value from = jot_reshape(times(2, i), 1), to = jot_reshape(times(3, i), 1);
    jot_value w = jot_dynamic_slice(p.a, from, 4);
    p.a = jot_dynamic_update_slice(p.a, jot_mul(0.5, w), to);
    p.b = jot_dynamic_update_slice(p.b, w, from);
    return p;
}

static struct pair exchange_arrays(struct pair p, jot_value i)
{
    return (struct pair){jot_at_add(p.b, i, 1), p.a};
}

static struct pair compute_anew(struct pair p, jot_value i)
{
    return (struct pair){jot_at_set(jot_flip(p.a), i, 2), jot_add(p.b, jot_take(p.a, i))};
}

static const struct {
    const char *name;
    change *f;
    bool copies; // or computes arrays
} changes[] = {
    {"set", set, false},
    {"add of another", add_of_another, false},
    {"set same", set_same, false},
    {"swap", swap, false},
    {"rotate three", rotate_three, false},
    {"read by the third", read_by_the_third, false},
    {"cross", cross, false},
    {"move slice", move_slice, false},
    {"exchange arrays", exchange_arrays, true},
    {"compute anew", compute_anew, true},
};
enum { CHANGES = sizeof changes / sizeof *changes };

// ---- in which branch ----

enum { ALWAYS, IF, IF_ELSE, SWITCH, IF_OF_DATA, IF_IN_IF, BRANCHES };
static const char *const branches[] = {"always", "if",         "if and else",
                                       "switch", "if of data", "if in if"};

static jot_value is_multiple(jot_value i, int of) { return jot_equal(jot_remainder(i, of), 0); }

static struct pair branch(int kind, change *f, struct pair p, jot_value i)
{
    switch (kind) {
    case IF:
        JOT_IF (is_multiple(i, 3), p) {
            p = f(p, i);
        }
        return p;
    case IF_ELSE:
        JOT_IF (is_multiple(i, 3), p) {
            p = f(p, i);
        } else {
            p.a = jot_at_add(p.a, i, jot_take(p.b, i));
        }
        return p;
    case SWITCH:
        JOT_SWITCH (jot_remainder(i, 4), 3, p) {
        case 0:
            p = f(p, i);
            break;
        case 1:
            break;
        case 2:
            p = f(p, jot_add(i, 1));
            break;
        }
        return p;
    case IF_OF_DATA:
        JOT_IF (jot_greater(jot_take(p.a, jot_add(i, 2)), 1.2), p) {
            p = f(p, i);
        }
        return p;
    case IF_IN_IF:
        JOT_IF (jot_logical_not(is_multiple(i, 3)), p) {
            JOT_IF (is_multiple(i, 2), p) {
                p = f(p, i);
            } else {
                p.b = jot_at_set(p.b, i, 0.25);
            }
        }
        return p;
    default:
        return f(p, i);
    }
}

// ---- in which loop ----

enum { ONCE, FOR, WHILE, SCAN, SCAN_FUNCTION, LOOPS };
static const char *const loops[] = {"once", "for", "while", "scan", "scan of a function"};

struct form {
    int loop, branch, change;
};

static struct pair step(const struct form *m, struct pair p, jot_value i)
{
    return branch(m->branch, changes[m->change].f, p, i);
}

static void scan_step(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    struct pair p = step(ctx, (struct pair){carry[0], carry[1]}, row[0]);
    out[0] = jot_take(carry[1], row[0]); // the old element
    carry[0] = p.a, carry[1] = p.b;
}

static void looped(const jot_value *in, jot_value *out, void *ctx)
{
    const struct form *m = ctx;
    struct pair p = {in[0], in[1]};
    jot_value i = jot_arange(JOT_I32, TRIPS), rows = jot_zeros(JOT_F64, TRIPS);
    switch (m->loop) {
    case ONCE:
        p = step(m, p, jot_astype(jot_take(p.b, 0), JOT_I32));
        break;
    case FOR:
        JOT_FOR (k, TRIPS, p) {
            p = step(m, p, k);
        }
        break;
    case WHILE:
        i = jot_zeros(JOT_I32);
        JOT_WHILE ((p, i), jot_less(i, TRIPS), .bound = TRIPS) {
            p = step(m, p, i);
            i = jot_add(i, 1);
        }
        break;
    case SCAN:
        JOT_SCAN ((p), (i), (rows)) {
            rows = jot_take(p.a, times(3, i));
            p = step(m, p, i);
        }
        break;
    case SCAN_FUNCTION:
        jot_scan(scan_step, ctx, 2, &p.a, 1, &i, 1, &rows, NULL);
        break;
    }
    out[0] = p.a, out[1] = p.b, out[2] = rows;
}

static void loss(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value y[3];
    looped(in, y, ctx);
    out[0] = jot_add(jot_sum(jot_mul(y[0], y[0])), jot_sum(jot_sin(y[1])));
    out[0] = jot_add(out[0], jot_sum(jot_exp(y[2])));
}

static jot_function function_of(const struct form *m, bool gradient)
{
    void *ctx = (void *)(uintptr_t)m;
    return gradient ? jot_value_and_grad(jot_function_make(loss, 2, 1, ctx), 0, 1)
                    : jot_function_make(looped, 2, 3, ctx);
}

// ---- what must be so ----

enum { RESULTS = 3 };

static void describe(const struct form *m, const char *what, int donated)
{
    printf("%s: %s, %s, %s, donated %d\n", what, loops[m->loop], branches[m->branch],
           changes[m->change].name, donated);
    fflush(stdout); // before the test ends
}

// Whether the memory with the number at the text is a whole array.
static bool is_array(const char *memory, int number)
{
    char name[32], array[32];
    snprintf(name, sizeof name, "\nmemory %d ", number);
    snprintf(array, sizeof array, ": f64[%d]", N);
    const char *m = strstr(memory, name);
    ck_assert_ptr_nonnull(m);
    return !strncmp(strchr(m, ':'), array, strlen(array));
}

// Copies of arrays, in loops or anywhere.
static int copies(jot_executable *e, bool in_loops)
{
    int n = 0, loop = 0, depth = 0;
    const char *memory = jot_executable_text(e, "memory");
    ck_assert_msg(memory != NULL, "%s", jot_error_message());
    for (const char *t = strstr(memory, "\nstep "); t; t = strstr(t + 1, "\nstep ")) {
        char line[400], kind[8];
        int of;
        snprintf(line, sizeof line, "%s", t + 1);
        line[strcspn(line, "\n")] = 0;
        ck_assert_int_eq(sscanf(line, "step %*d: %7s", kind), 1);
        depth -= !strcmp(kind, "end");
        loop = depth < loop ? 0 : loop;
        depth += !strcmp(kind, "loop") || !strcmp(kind, "while") || !strcmp(kind, "branch");
        if (!loop && (!strcmp(kind, "loop") || !strcmp(kind, "while")))
            loop = depth;
        if (strstr(line, ": a copy, because ") && sscanf(line, "step %*d: writes %d", &of) == 1)
            n += (loop || !in_loops) && is_array(memory, of);
    }
    return n;
}

static void run(const struct form *m, const char *backend, int donated, bool gradient,
                double got[RESULTS][N])
{
    int donate[3] = {JOT_END, JOT_END, JOT_END}, n = 0;
    double x[2][N];
    jot_array *in[2], *out[RESULTS];
    for (int k = 0; k < 2; k++) {
        if (donated >> k & 1)
            donate[n++] = k;
        for (int i = 0; i < N; i++)
            x[k][i] = 1 + ((k + 3) * (i + 5) * 37 % 101) / 64.0;
        in[k] = jot_array_from(x[k], N);
    }
    setenv("JOT_BACKEND", backend, 1);
    jot_executable *e = jot_jit(function_of(m, gradient), .donate = donate);
    must(jot_call_list(e, 2, in, RESULTS, out));
    for (int k = 0; k < RESULTS; k++)
        must(jot_array_read(out[k], got[k], jot_array_size(out[k])));
    for (int k = 0; k < 2 && !donated; k++)
        ck_assert_mem_eq(jot_array_data(in[k]), x[k], sizeof x[k]);
    if (!*backend && donated == 3 && !changes[m->change].copies && copies(e, gradient)) {
        describe(m, gradient ? "copied in the gradient" : "copied", donated);
        ck_abort_msg("%s", jot_executable_text(e, "memory"));
    }
    jot_arrays_release(2, in);
    jot_arrays_release(RESULTS, out);
    jot_executable_release(e);
}

static void compare(const struct form *m, bool gradient)
{
    int f = m->loop + m->branch + m->change;
    double want[RESULTS][N] = {0};
    if (!sample_takes((uint64_t)f, gradient ? 8 : 4))
        return;
    run(m, "eval", 0, gradient, want);
    for (int k = 0; k < 3; k++) {
        double got[RESULTS][N] = {0};
        int donated = k == 1 ? 1 + f / 8 % 2 : k + k / 2; // none, one, both
        run(m, "", donated, gradient, got);
        if (memcmp(got, want, sizeof got)) {
            describe(m, gradient ? "another gradient" : "other numbers", donated);
            ck_abort();
        }
    }
}

START_TEST(test_forms)
{
    for (int f = 0; f < BRANCHES * CHANGES; f++)
        compare(&(struct form){_i, f / CHANGES, f % CHANGES}, false);
}
END_TEST

START_TEST(test_gradients)
{
    for (int f = 0; f < BRANCHES * CHANGES; f++)
        compare(&(struct form){_i, f / CHANGES, f % CHANGES}, true);
}
END_TEST

// Against central differences: what the evaluator computes is as wrong as a rule is.
START_TEST(test_derivatives)
{
    setenv("JOT_BACKEND", "", 1);
    for (int f = 0; f < BRANCHES * CHANGES; f++) {
        struct form m = {_i, f / CHANGES, f % CHANGES};
        double x[2][N];
        if (!sample_takes((uint64_t)(m.loop + m.branch + m.change), 14))
            continue;
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < N; i++)
                x[k][i] = 1.1 + ((k + 3) * (i + 5) * 37 % 101) / 64.0;
        jot_array *a = jot_array_from(x[0], N), *b = jot_array_from(x[1], N);
        jot_status status = jot_check_grads(jot_function_make(loss, 2, 1, &m), 1,
                                            JOT_FORWARD | JOT_REVERSE, 1e-5, a, b);
        if (status != JOT_OK)
            describe(&m, "another derivative", 0);
        must(status);
        jot_array_release(a), jot_array_release(b);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_forms, 0, LOOPS);
    tcase_add_loop_test(t, test_gradients, 0, LOOPS);
    tcase_add_loop_test(t, test_derivatives, 0, LOOPS);
}

int main(void) { return run_suite("forms of updates in place", add_tests); }
