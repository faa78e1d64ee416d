// SPDX-License-Identifier: Apache-2.0
// What mistakes say.  Places come from #line, so that whole messages can be compared.
#include "trace_support.h"

#include "trace/tracer.h"

static jot_value keep; // a handle that outlives its trace

// Lines are counted by hand from here on.
// clang-format off
#line 6 "bad_run.c"
static jot_value shapes(jot_value x, jot_value w) { return jot_sum(jot_mul(jot_dot(x, w), 2)); }
static jot_value bcast(jot_value x, jot_value w) { jot_value y = jot_exp(x); return jot_add(jot_square(y), w); }
static jot_value axis(jot_value x, jot_value w) { (void)w; return jot_sum(x, 2); }
static jot_value leak(jot_value x, jot_value w) { keep = jot_exp(x); return jot_add(keep, jot_sum(w)); }
static jot_value stale(jot_value x, jot_value w) { (void)x; return jot_mul(w, keep); }
static jot_value nonscalar(jot_value x, jot_value w) { (void)w; return jot_exp(x); }
static jot_value unset(jot_value x, jot_value w) { jot_value y = {0}; (void)w; return jot_add(x, y); }
static jot_value total_(jot_value x) { return jot_sum(jot_square(x)); }
static jot_value computed(jot_value x, jot_value w) { jot_value y = jot_exp(x); (void)w; return jot_gradient(total_(jot_add(y, 1)), y); }
static void two(const jot_value *in, jot_value *out, void *ctx) { (void)ctx; out[0] = jot_exp(in[0]); }
static void none(const jot_value *in, jot_value *out, void *ctx) { (void)ctx; (void)out; (void)in; }
static void toomany(const jot_value *in, jot_value *out, void *ctx) { (void)ctx; out[0] = jot_exp(in[0]); out[1] = in[0]; }
static void readmore(const jot_value *in, jot_value *out, void *ctx) { (void)ctx; out[0] = jot_add(in[0], in[2]); }
static jot_value escaped(jot_value x, jot_value w) { jot_value s = x, r; (void)w; JOT_VMAP ((x), (r)) { s = jot_add(x, 1); r = s; } return jot_add(r, s); }
static jot_value broke(jot_value x, jot_value w) { jot_value r; (void)w; JOT_VMAP ((x), (r)) { r = x; break; } return r; }
static jot_value returned(jot_value x, jot_value w) { jot_value r; (void)w; JOT_VMAP ((x), (r)) { r = x; return r; } return r; }
static jot_value rows(jot_value x, jot_value w) { jot_value s = jot_take(jot_take(w, 0), 0, 0), r; (void)x; JOT_VMAP ((s), (r)) { r = s; } return r; }
static jot_value uneven(jot_value x, jot_value w) { jot_value y = jot_full(JOT_F32, 0, 3), r; (void)w; JOT_VMAP ((x, y), (r)) { r = jot_mul(x, y); } return r; }
static jot_value notset(jot_value x, jot_value w) { jot_value r; (void)w; JOT_VMAP ((x), (r)) { (void)x; } return r; }
static jot_value outerx(jot_value x, jot_value w) { jot_value g = x; JOT_VMAP ((x), (g)) { jot_value v = jot_sum(jot_square(x)); g = jot_gradient(v, w); } return g; }
static jot_value toolate(jot_value x, jot_value w) { jot_value y = jot_sum(jot_square(x)); (void)w; x = jot_variable(x); return jot_gradient(y, x); }
static jot_value soft(jot_value x, jot_value w) { (void)w; return jot_softmax(x, 3); }
static jot_value longtext(jot_value x, jot_value w) { return jot_add(jot_mul(jot_exp(jot_sin(jot_cos(jot_tanh(jot_add(x, jot_mul(2, x)))))), jot_add(x, 1)), w); }
static jot_value counts(jot_value x, jot_value w) { (void)w; return jot_bitwise_and(x, 1); }
#line 100 "test_errors.c"

static void check_failure(const char *want, jot_function f)
{
    jot_array *x = jot_array_full(JOT_F32, 1, 2, 3), *w = jot_array_full(JOT_F32, 1, 2), *y = NULL;
    jot_executable *e = jot_jit(f);
    if (e) {
        jot_status s = jot_call(e, JOT_IN(x, w), JOT_OUT(y));
        ck_assert_msg(s != JOT_OK, "no complaint, but wanted: %s", want);
    }
    CHECK_MESSAGE(want);
    ck_assert_ptr_null(y);
    jot_array_release(x);
    jot_array_release(w);
    jot_executable_release(e);
    ck_assert_ptr_null(trace_top());
}

START_TEST(test_shapes)
{
    check_failure("bad_run.c:6: jot_dot(x, w): contracting 3 with 2: f32[2,3] · f32[2]",
                  jot_fn(shapes));
    check_failure("bad_run.c:7: jot_add(jot_square(y), w): f32[2,3] and f32[2] do not broadcast: "
                  "axis 1 is 3 in one and 2 in the other",
                  jot_fn(bcast));
    check_failure("bad_run.c:8: jot_sum(x, 2): axis 2 of f32[2,3]: axes are -2 to 1", jot_fn(axis));
    check_failure("bad_run.c:27: jot_softmax(x, 3): jot_max: axis 3 of f32[2,3]: axes are -2 to 1",
                  jot_fn(soft));
    check_failure("bad_run.c:28: jot_add(...): f32[2,3] and f32[2] do not broadcast: axis 1 is 3 "
                  "in one and 2 in the other",
                  jot_fn(longtext));
    check_failure("bad_run.c:29: jot_bitwise_and(x, 1): f32[2,3]: takes integers or bool",
                  jot_fn(counts));
}
END_TEST

START_TEST(test_handles)
{
    jot_array *x = jot_array_full(JOT_F32, 1, 2, 3), *w = jot_array_full(JOT_F32, 1, 2), *y;
    jot_executable *e = jot_jit(jot_fn(leak));
    must(jot_call(e, JOT_IN(x, w), JOT_OUT(y)));
    jot_array_release(x);
    jot_array_release(w);
    jot_array_release(y);
    jot_executable_release(e);
    check_failure("bad_run.c:10: jot_mul(w, keep): the value made at bad_run.c:9: jot_exp(x), while "
                  "tracing leak, is used while tracing stale: pass it as an argument",
                  jot_fn(stale));
    check_failure("bad_run.c:12: jot_add(x, y): a jot_value that was never set (all zero)",
                  jot_fn(unset));
    ck_assert_str_eq(jot_describe((jot_value){0, 0}), "none");
    ck_assert(strstr(jot_describe(keep), "stale") != NULL);
}
END_TEST

START_TEST(test_uniform_signature)
{
    const char *place = "test_errors.c:1000";
    (void)place;
#line 48 "bad_run.c"
    check_failure("bad_run.c:48: none: output 0 of 1 was not set", jot_function_make(none, 2, 1, NULL));
    check_failure("bad_run.c:49: toomany: sets output 1, but it has 1 (numbered from 0)", jot_function_make(toomany, 2, 1, NULL));
    check_failure("bad_run.c:18: jot_add(in[0], in[2]): reads input 2 of readmore, which takes 2 (numbered from 0)", jot_function_make(readmore, 2, 1, NULL));
#line 200 "test_errors.c"
}
END_TEST

START_TEST(test_second_output)
{
#line 60 "bad_run.c"
    jot_executable *e = jot_jit(jot_function_make(two, 2, 2, NULL));
    jot_array *w = jot_array_full(JOT_F32, 1, 2), *z[2] = {NULL, NULL};
    ck_assert_int_eq(jot_call(e, JOT_IN(w, w), JOT_OUT(z)), JOT_ERR_TRACE);
    CHECK_MESSAGE("bad_run.c:60: two: output 1 of 2 was not set");
#line 210 "test_errors.c"
    jot_array_release(w);
    jot_executable_release(e);
}
END_TEST

START_TEST(test_derivatives)
{
    check_failure("bad_run.c:14: jot_gradient(total_(jot_add(y, 1)), y): value 0 to differentiate in "
                  "is a computed f32[2,3] (bad_run.c:14: jot_exp(x)), not an argument: write x = "
                  "jot_variable(x) first and compute with that",
                  jot_fn(computed));
    check_failure("bad_run.c:26: jot_gradient(y, x): the value was computed before bad_run.c:26: "
                  "jot_variable(x): compute it from the new variable",
                  jot_fn(toolate));
    check_failure("bad_run.c:25: jot_gradient(v, w): value 0 to differentiate in comes from outside "
                  "this block: write x = jot_variable(x) in the block and compute with that",
                  jot_fn(outerx));
#line 45 "bad_run.c"
    check_failure("bad_run.c:45: jot_gradient: the value to differentiate is f32[2,3], not a scalar: reduce it first, or take jot_jacobian", jot_grad(jot_fn(nonscalar)));
    check_failure("bad_run.c:46: jot_grad: no argument 3: leak takes 2 (numbered from 0)", jot_grad(jot_vmap(jot_fn(leak), 0, 0), 3));
    check_failure("bad_run.c:47: jot_vmap: 1 axes for the 2 arguments of leak", jot_vmap(jot_fn(leak), 0));
    check_failure("bad_run.c:48: jot_vmap: arguments 0 and 1 of leak have 3 and 2 along the mapped axis: f32[2,3] and f32[2]", jot_vmap(jot_fn(leak), 1, 0));
#line 240 "test_errors.c"
}
END_TEST

START_TEST(test_blocks)
{
    check_failure("bad_run.c:19: jot_add(r, s): the value made at bad_run.c:19: jot_add(x, 1) is used "
                  "outside the JOT_VMAP (bad_run.c:19: JOT_VMAP): list the variable in the JOT_VMAP "
                  "to bring it out",
                  jot_fn(escaped));
    check_failure("bad_run.c:20: JOT_VMAP: left by break, return or goto; a traced block has no early "
                  "exit: use JOT_WHILE or jot_where",
                  jot_fn(broke));
    check_failure("bad_run.c:21: JOT_VMAP: left by break, return or goto; a traced block has no early "
                  "exit: use JOT_WHILE or jot_where",
                  jot_fn(returned));
    check_failure("bad_run.c:22: jot_take(jot_take(w, 0), 0, 0): axis 0 of f32[], which has none",
                  jot_fn(rows));
    check_failure("bad_run.c:23: JOT_VMAP: 'y' is f32[3], but there are 2 rows", jot_fn(uneven));
    check_failure("bad_run.c:24: JOT_VMAP: 'r' was not set in the body", jot_fn(notset));
}
END_TEST

START_TEST(test_calls)
{
    jot_executable *e = jot_jit(jot_fn(leak));
    jot_array *w = jot_array_full(JOT_F32, 1, 2), *y = NULL, *z[2] = {NULL, NULL};
    jot_array *x = jot_array_full(JOT_F32, 1, 2, -3);
#line 60 "bad_run.c"
    ck_assert(jot_call(e, JOT_IN(x, w), JOT_OUT(y)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:60: jot_call: input 0 of leak is NULL (jot_array_full: size -3 of axis 1 is negative)");
    ck_assert(jot_call(e, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT); // 62
#line 61 "bad_run.c"
    ck_assert(jot_call(e, JOT_IN(w), JOT_OUT(y)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:61: jot_call: leak takes 2 arrays and gives 1, not 1 and 1");
    ck_assert(jot_call(e, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:63: jot_call: leak takes 2 arrays and gives 1, not 2 and 2");
    ck_assert(jot_call(NULL, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:65: jot_call: the function is NULL");
    jot_executable *none_made = jot_jit(jot_grad(jot_fn(leak), 3));
    ck_assert(jot_call(none_made, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:68: jot_call: the function is NULL (bad_run.c:67: jot_grad: no argument 3: leak takes 2 (numbered from 0))");
#line 300 "test_errors.c"
    jot_array_release(w);
    jot_executable_release(e);
}
END_TEST

START_TEST(test_outside)
{
#line 68 "bad_run.c"
    jot_value v = jot_add(2, 3);
    CHECK_MESSAGE("bad_run.c:68: jot_add(2, 3): nothing is being traced: call it in a traced function or open a scope");
#line 310 "test_errors.c"
    ck_assert(jot_value_failed(v));
    jot_value z = {0, 0}, r;
    JOT_VMAP ((z), (r)) {
        r = z;
    }
    ck_assert(strstr(jot_error_message(), "nothing is being traced") != NULL);
    ck_assert(jot_value_failed(r));
}
END_TEST

// In a scope only what depends on the failure fails.
START_TEST(test_scope_goes_on)
{
    jot_array *w = jot_array_full(JOT_F32, 1, 2);
    jot_scope *s = jot_scope_open();
#line 70 "bad_run.c"
    jot_value bad = jot_add(w, jot_full(JOT_F32, 1, 3)), good = jot_add(w, 1);
#line 330 "test_errors.c"
    ck_assert(isnan(jot_item(bad)));
    CHECK_MESSAGE("bad_run.c:70: jot_add(w, jot_full(JOT_F32, 1, 3)): f32[2] and f32[3] do not "
                  "broadcast: axis 0 is 2 in one and 3 in the other");
    ck_assert_double_eq(jot_item(jot_sum(good)), 4);
    jot_value worse = jot_add(bad, 1);
    ck_assert(isnan(jot_item(worse)));
    ck_assert(strstr(jot_error_message(), "bad_run.c:70") != NULL);
    jot_scope_close(s);
    jot_array_release(w);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_shapes);
    tcase_add_test(t, test_handles);
    tcase_add_test(t, test_uniform_signature);
    tcase_add_test(t, test_second_output);
    tcase_add_test(t, test_derivatives);
    tcase_add_test(t, test_blocks);
    tcase_add_test(t, test_calls);
    tcase_add_test(t, test_outside);
    tcase_add_test(t, test_scope_goes_on);
}

int main(void) { return run_suite("trace/errors", add); }
