// SPDX-License-Identifier: Apache-2.0
// C numbers that start what a loop carries: random nests of blocks against the same nests unrolled
// by C.
#include "trace_support.h"

#define DEPTH 3
#define VARIABLES 3

struct state {
    jot_value v[VARIABLES];
};

struct program {
    uint64_t seed;
    bool is_unrolled;
    jot_dtype dtype; // of f64: products, sums of variables and numbers that f32 rounds
    jot_value x;     // the one value that is no number
    double x_in_c;   // what it is, for branches of what is unrolled
};
static struct program program;

static uint32_t draw(uint64_t *seed, uint32_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % n;
}

static bool is_float(void) { return program.dtype == JOT_F64 || program.dtype == JOT_F32; }

// A C integer or a C double.
static jot_value number(uint64_t *seed)
{
    static const double wide[] = {0.1, 1e-60, -0.3, 1e-45, 7}, narrow[] = {0.5, -1, 3, 2.5, -4};
    uint32_t which = draw(seed, 8);
    if (which >= 5 || !is_float())
        return jot_from((int)which - 6);
    return jot_from(program.dtype == JOT_F64 ? wide[which] : narrow[which]);
}

static jot_value operand(uint64_t *seed) { return draw(seed, 6) ? number(seed) : program.x; }

// Products are by powers of two, so that fused multiply-adds, which do not reach over trips, have
// the bits of a product and a sum.
static void step(uint64_t *seed, struct state *s)
{
    jot_value *to = &s->v[draw(seed, VARIABLES)], a = s->v[draw(seed, VARIABLES)],
              b = s->v[draw(seed, VARIABLES)];
    switch (draw(seed, program.dtype == JOT_F64 ? 9 : 6)) {
    case 0:
        *to = jot_add(a, operand(seed));
        break;
    case 1:
        *to = jot_sub(operand(seed), a);
        break;
    case 2:
        *to = jot_maximum(a, b);
        break;
    case 3:
        *to = jot_minimum(a, operand(seed));
        break;
    case 4:
        *to = a;
        break;
    case 5:
        *to = operand(seed);
        break;
    case 6:
        *to = jot_mul(a, draw(seed, 2) ? 0.5 : 2.0);
        break;
    case 7:
        *to = jot_add(a, b);
        break;
    default:
        *to = jot_sub(a, b);
    }
}

static void body(uint64_t seed, int depth, struct state *s);

static void branch(uint64_t seed, int depth, struct state *s)
{
    double limit = (double)draw(&seed, 5) - 2;
    if (program.is_unrolled) {
        body(seed + (program.x_in_c > limit), depth, s);
        return;
    }
    JOT_IF (jot_greater(program.x, limit), *s) {
        body(seed + 1, depth, s);
    } else {
        body(seed, depth, s);
    }
}

static void loop(uint64_t seed, int depth, struct state *s)
{
    int trips = (int)draw(&seed, 4);
    if (program.is_unrolled) {
        for (int i = 0; i < trips; i++)
            body(seed, depth, s);
        return;
    }
    JOT_FOR (i, trips, *s) {
        body(seed, depth, s);
    }
}

static void scan(uint64_t seed, int depth, struct state *s)
{
    int trips = 1 + (int)draw(&seed, 3);
    jot_value y, rows[3];
    if (program.is_unrolled) {
        for (int i = 0; i < trips; i++) {
            body(seed, depth, s);
            rows[i] = s->v[0];
        }
        y = jot_stack_list(0, (size_t)trips, rows);
    } else {
        JOT_SCAN ((*s), (), (y), .length = trips) {
            body(seed, depth, s);
            y = s->v[0];
        }
    }
    s->v[1] = jot_take(y, trips / 2);
}

static void repeat(uint64_t seed, int depth, struct state *s)
{
    int trips = (int)draw(&seed, 4);
    jot_value k = jot_from(0);
    if (program.is_unrolled) {
        for (int i = 0; i < trips; i++)
            body(seed, depth, s);
        return;
    }
    JOT_WHILE ((*s, k), jot_less(k, trips), .bound = 4) {
        body(seed, depth, s);
        k = jot_add(k, 1);
    }
}

static void body(uint64_t seed, int depth, struct state *s)
{
    void (*const blocks[])(uint64_t, int, struct state *) = {branch, loop, scan, repeat};
    int n = 1 + (int)draw(&seed, 3);
    for (int i = 0; i < n; i++)
        if (depth && draw(&seed, 2))
            blocks[draw(&seed, 4)](seed += 17, depth - 1, s);
        else
            step(&seed, s);
}

// The variables start as C numbers, or one of them as x, and come out as f64.
static jot_value run(jot_value x)
{
    struct state s;
    uint64_t seed = program.seed;
    program.x = x;
    for (int i = 0; i < VARIABLES; i++)
        s.v[i] = number(&seed);
    if (draw(&seed, 2))
        s.v[draw(&seed, VARIABLES)] = x;
    body(seed, DEPTH, &s);
    jot_value sum = jot_from(0);
    for (int i = 0; i < VARIABLES; i++)
        sum = jot_add(sum, jot_convert(s.v[i], JOT_F64));
    return sum;
}

static jot_value squared(jot_value x)
{
    jot_value y = run(x);
    return jot_mul(jot_add(jot_convert(x, JOT_F64), 1), y);
}

// The results of f for each element of x.
static void call(jot_function f, bool is_unrolled, const jot_array *x, double *out)
{
    jot_executable *e = jot_jit(f);
    jot_array *y = NULL;
    program.is_unrolled = is_unrolled;
    jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
    ck_assert_msg(status == JOT_OK, "seed %llu: %s", (unsigned long long)program.seed,
                  jot_error_message());
    for (size_t i = 0; i < jot_array_size(y); i++)
        out[i] = jot_array_dtype(y) == JOT_F64 ? ((const double *)jot_array_data(y))[i]
                                               : ((const float *)jot_array_data(y))[i];
    jot_array_release(y);
    jot_executable_release(e);
}

static void compare(const char *what, double got, double want, double tolerance)
{
    ck_assert_msg(fabs(got - want) <= tolerance * fabs(want), "seed %llu, %s: %.17g, not %.17g",
                  (unsigned long long)program.seed, what, got, want);
}

enum { LANES = 3 };
static const double f64s[LANES] = {-1.5, 0.25, 2};
static const float f32s[LANES] = {-1.5F, 0.25F, 2};
static const int32_t i32s[LANES] = {-2, 0, 3};
static const int64_t i64s[LANES] = {-2, 0, 3};
static const struct {
    jot_dtype dtype;
    size_t bytes;
    const void *data;
} inputs[] = {{JOT_F64, 8, f64s}, {JOT_F32, 4, f32s}, {JOT_I32, 4, i32s}, {JOT_I64, 8, i64s}};

static void check_program(uint64_t seed, size_t which)
{
    jot_dtype dtype = inputs[which].dtype;
    double got[LANES], slopes[LANES], lane, want;
    program = (struct program){.seed = seed, .dtype = dtype};
    jot_array *all =
        jot_array_copy(dtype, inputs[which].data, ((const int64_t[]){LANES, JOT_END}));
    call(jot_vmap(jot_fn(run)), false, all, got);
    if (is_float())
        call(jot_vmap(jot_grad(jot_fn(squared))), false, all, slopes);
    for (int i = 0; i < LANES; i++) {
        const char *at = (const char *)inputs[which].data + (size_t)i * inputs[which].bytes;
        jot_array *x = jot_array_copy(dtype, at, ((const int64_t[]){JOT_END}));
        program.x_in_c = is_float() ? f64s[i] : i32s[i];
        call(jot_fn(run), true, x, &want);
        call(jot_fn(run), false, x, &lane);
        compare("alone", lane, want, 0);
        compare("as a lane", got[i], want, 0);
        if (is_float()) {
            call(jot_grad(jot_fn(squared)), true, x, &want);
            call(jot_grad(jot_fn(squared)), false, x, &lane);
            compare("derivative", lane, want, 1e-12);
            compare("derivative of a lane", slopes[i], want, 1e-12);
        }
        jot_array_release(x);
    }
    jot_array_release(all);
}

START_TEST(random_nests)
{
    setenv("JOT_BACKEND", "eval", 1);
    for (uint64_t seed = 1; seed <= 200; seed++)
        check_program(seed * 1000003, (size_t)_i);
    unsetenv("JOT_BACKEND");
}
END_TEST

// -- Single cases --------------------------------------------------------------------------------

static jot_value bodies(jot_value x, int which, int64_t n)
{
    jot_value s = jot_from(1e-60), t = jot_from(false), k = jot_from(0), y;
    switch (which) {
    case 0: // numbers alone stay one
        JOT_FOR (i, n, s) {
            s = jot_mul(s, 1e10);
        }
        return jot_mul(s, x);
    case 1: // rows of numbers
        JOT_SCAN ((s), (), (y), .length = n) {
            s = jot_mul(s, 1e10);
            y = s;
        }
        return jot_mul(jot_take(y, n - 1), x);
    case 2: // a branch
        JOT_IF (jot_greater(x, 0), s) {
            s = jot_mul(s, 1e60);
        }
        return jot_mul(s, x);
    case 3: // an integer becomes a float
        JOT_FOR (i, n, k) {
            k = jot_add(k, 0.5);
        }
        return jot_mul(k, x);
    case 4: // an integer that is found to be an index, and then a number
        JOT_FOR (i, n, k, s) {
            k = jot_mul(jot_add(k, i), 0.5);
        }
        return jot_mul(k, x);
    case 5: // false of C
        JOT_WHILE ((k, t), jot_less(k, n)) {
            JOT_IF (jot_greater(jot_mul(k, x), 2), t) {
                t = jot_from(1);
            } else {
                t = jot_greater(x, 100);
            }
            k = jot_add(k, 1);
        }
        return jot_where(t, x, k);
    default: // a number that a step puts
        y = x;
        JOT_FOR (i, n, y) {
            y = jot_from(7);
        }
        return y;
    }
}

static int which_body;
static jot_value one_body(jot_value x) { return bodies(x, which_body, 4); }

START_TEST(single_cases)
{
    const double x = 2, want[] = {2e-20, 2e-20, 2, 4, 2 * 2.125, 2, 7};
    jot_array *in = jot_array_from(&x), *y = NULL;
    for (which_body = 0; which_body < 7; which_body++) {
        jot_executable *e = jot_jit(jot_fn(one_body));
        must(jot_call(e, JOT_IN(in), JOT_OUT(y)));
        ck_assert_int_eq(jot_array_dtype(y), JOT_F64);
        check_numbers(y, 1, &want[which_body], which_body < 3 ? 1e-15 : 0);
        jot_executable_release(e);
        jot_array_release(y);
        y = NULL;
    }
    jot_array_release(in);
}
END_TEST

// What a block inside has taken rows of is whole again for the next run of the body, for another
// branch, and behind the block around.
static jot_value rows_again(jot_value v)
{
    jot_value s = jot_from(0), y;
    JOT_FOR (i, 3, s) {
        JOT_SCAN ((s), (v), ()) {
            s = jot_add(s, v);
        }
    }
    JOT_IF (jot_greater(jot_sum(v), 100), y) {
        y = s;
        JOT_SCAN ((y), (v), ()) {
            y = jot_mul(y, v);
        }
    } else {
        y = jot_add(s, jot_sum(v));
    }
    return jot_add(y, jot_max(v));
}

START_TEST(rows_stay_whole)
{
    const double v[] = {1, 2, 3, 4}, want = 3 * 10 + 10 + 4;
    jot_array *in = jot_array_from(v, 4), *y = NULL;
    jot_executable *e = jot_jit(jot_fn(rows_again));
    must(jot_call(e, JOT_IN(in), JOT_OUT(y)));
    check_numbers(y, 1, &want, 0);
    jot_executable_release(e);
    jot_array_release(y);
    jot_array_release(in);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, random_nests, 0, 4);
    tcase_add_test(t, single_cases);
    tcase_add_test(t, rows_stay_whole);
}

int main(void) { return run_suite("trace/carried numbers", add_tests); }
