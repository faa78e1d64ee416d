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
static jot_value high(jot_value x, jot_value w) { (void)w; return jot_take(x, 2, 0); }
static jot_value low(jot_value x, jot_value w) { (void)w; return jot_take(x, -4, 1); }
static jot_value added(jot_value x, jot_value w) { (void)w; return jot_expand_dims(x, 3); }
static jot_value second(jot_value x, jot_value w) { (void)w; return jot_atan2(1, jot_complex(x, x)); }
static jot_value nothing(jot_value x, jot_value w) { (void)w; return jot_add(x, (jot_array *)NULL); }
static jot_value full(jot_value x, jot_value w) { (void)x; (void)w; return jot_full(JOT_U8, 300); }
static jot_value whole(jot_value x, jot_value w) { (void)x; (void)w; return jot_full(JOT_I32, 0.5, 2); }
static jot_value like(jot_value x, jot_value w) { (void)x; (void)w; return jot_full_like(jot_zeros(JOT_U64), -1); }
static jot_value range(jot_value x, jot_value w) { (void)x; (void)w; return jot_arange(JOT_I8, 129); }
static jot_value steps(jot_value x, jot_value w) { (void)x; (void)w; return jot_linspace(JOT_U8, 0, 300, 4); }
static jot_value padded(jot_value x, jot_value w) { (void)w; return jot_pad(jot_convert(x, JOT_I8), 128, 0, 1, 1); }
static jot_value bound(jot_value x, jot_value w) { (void)w; return jot_clamp(0, jot_convert(x, JOT_U8), 256); }
static jot_value chosen(jot_value x, jot_value w) { (void)w; return jot_where(jot_less(x, 1), 256, jot_convert(x, JOT_U8)); }
static jot_value joined(jot_value x, jot_value w) { (void)w; return jot_stack(0, jot_convert(jot_sum(x), JOT_U8), -1); }
static jot_value imaginary(jot_value x, jot_value w) { (void)x; (void)w; return jot_full(JOT_F32, jot_from_complex(1, 2)); }
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

START_TEST(test_places_in_values)
{
    check_failure("bad_run.c:30: jot_take(x, 2, 0): index 2 of axis 0 of f32[2,3]: indices are -2 to 1",
                  jot_fn(high));
    check_failure("bad_run.c:31: jot_take(x, -4, 1): index -4 of axis 1 of f32[2,3]: indices are -3 to 2",
                  jot_fn(low));
    check_failure("bad_run.c:32: jot_expand_dims(x, 3): axis 3 of the result from f32[2,3]: axes are "
                  "-3 to 2",
                  jot_fn(added));
    check_failure("bad_run.c:33: jot_atan2(1, jot_complex(x, x)): c64[2,3]: is not defined for complex "
                  "numbers",
                  jot_fn(second));
    check_failure("bad_run.c:34: jot_add(x, (jot_array *)NULL): an array is NULL", jot_fn(nothing));
}
END_TEST

// A number that an integer type cannot hold is refused wherever it would take on the type.
START_TEST(test_numbers)
{
    check_failure("bad_run.c:35: jot_full(JOT_U8, 300): u8 cannot hold 300", jot_fn(full));
    check_failure("bad_run.c:36: jot_full(JOT_I32, 0.5, 2): i32 cannot hold 0.5", jot_fn(whole));
    check_failure("bad_run.c:37: jot_full_like(jot_zeros(JOT_U64), -1): u64 cannot hold -1", jot_fn(like));
    check_failure("bad_run.c:38: jot_arange(JOT_I8, 129): i8 cannot hold 128", jot_fn(range));
    check_failure("bad_run.c:39: jot_linspace(JOT_U8, 0, 300, 4): u8 cannot hold 300", jot_fn(steps));
    check_failure("bad_run.c:40: jot_pad(jot_convert(x, JOT_I8), 128, 0, 1, 1): i8 cannot hold 128",
                  jot_fn(padded));
    check_failure("bad_run.c:41: jot_clamp(0, jot_convert(x, JOT_U8), 256): u8 cannot hold 256",
                  jot_fn(bound));
    check_failure("bad_run.c:42: jot_where(jot_less(x, 1), 256, jot_convert(x, JOT_U8)): u8 cannot hold "
                  "256",
                  jot_fn(chosen));
    check_failure("bad_run.c:43: jot_stack(0, jot_convert(jot_sum(x), JOT_U8), -1): u8 cannot hold -1",
                  jot_fn(joined));
    check_failure("bad_run.c:44: jot_full(JOT_F32, jot_from_complex(1, 2)): f32 cannot hold 1 + 2i",
                  jot_fn(imaginary));
    jot_scope *s = jot_scope_open();
    CHECK_EXACT(jot_full(JOT_U64, UINT64_MAX), 0x1p64);
    CHECK_EXACT(jot_full(JOT_I64, INT64_MIN), -0x1p63);
    CHECK_EXACT(jot_full(JOT_I32, -3.0), -3);
    CHECK_EXACT(jot_full(JOT_BOOL, 0.5), 1);
    CHECK_EXACT(jot_sub(jot_full(JOT_U32, UINT32_MAX), 1), 4294967294.0);
    jot_scope_close(s);
}
END_TEST

START_TEST(test_environment)
{
    static const struct {
        const char *name, *value, *message;
    } all[] = {
        {"JOT_BACKEND", "evl", "is 'evl', which is none of: native, eval"},
        {"JOT_CACHE", "no", "is 'no', which is none of: on, off"},
        {"JOT_CACHE_BYTES", "1G", "is '1G', which is no number from 0 to 18446744073709551615"},
        {"JOT_DUMP", "code,graph",
         "lists 'graph', which is none of: trace, transform, simplify, schedule, memory, llvm, code, tune, cache, run, all"},
        {"JOT_PERF", "yes", "is 'yes', which is none of: 0, 1"},
        {"JOT_THREADS", "0", "is '0', which is no number from 1 to 4096"},
    };
    jot_array *x = jot_array_full(JOT_F32, 1, 2), *y = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char message[300];
        snprintf(message, sizeof message, "call.c:1: the environment variable %s %s", all[i].name, all[i].message);
        setenv(all[i].name, all[i].value, 1);
        jot_executable *e = jot_jit(jot_fn(total_));
#line 1 "call.c"
        jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
#line 200 "test_errors.c"
        ck_assert_int_eq(status, JOT_ERR_ARGUMENT);
        CHECK_MESSAGE(message);
        unsetenv(all[i].name);
        must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        jot_array_release(y);
        y = NULL;
        jot_executable_release(e);
    }
    jot_array_release(x);
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
    check_failure("bad_run.c:45: jot_grad: the result of nonscalar is f32[2,3], not a scalar: reduce it first, or take jot_jacrev", jot_grad(jot_fn(nonscalar)));
    check_failure("bad_run.c:46: jot_grad: no argument 3: leak takes 2 (numbered from 0)", jot_grad(jot_vmap(jot_fn(leak), 0, 0), 3));
    check_failure("bad_run.c:47: jot_vmap: 1 axes for the 2 arguments of leak", jot_vmap(jot_fn(leak), 0));
    check_failure("bad_run.c:48: jot_vmap: argument 1 of leak is f32[2]: no axis -2: axes are -1 to 0", jot_vmap(jot_fn(leak), 0, -2));
    check_failure("bad_run.c:49: jot_vmap: arguments 0 and 1 of leak have 3 and 2 along the mapped axis: f32[2,3] and f32[2]", jot_vmap(jot_fn(leak), 1, 0));
    check_failure("bad_run.c:50: jot_vmap: 3 axes for the 2 arguments of leak, or 4 with tangents and cotangents", jot_vmap(jot_jvp(jot_fn(leak)), 0, 0, 0));
#line 241 "test_errors.c"
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
    CHECK_MESSAGE("bad_run.c:61: jot_call: leak takes 2 arrays and gives 1; the call passes 1 and has room for 1");
    ck_assert(jot_call(e, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:63: jot_call: leak takes 2 arrays and gives 1; the call passes 2 and has room for 2");
    ck_assert(jot_call(NULL, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:65: jot_call: the function is NULL");
    jot_executable *none_made = jot_jit(jot_grad(jot_fn(leak), 3));
    ck_assert(jot_call(none_made, JOT_IN(w, w), JOT_OUT(z)) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:68: jot_call: the function is NULL (bad_run.c:67: jot_grad: no argument 3: leak takes 2 (numbered from 0))");
    ck_assert(jot_call_list(e, 1, &w, 1, &y) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:70: jot_call_list: leak takes 2 arrays and gives 1; the call passes 1 and has room for 1");
    ck_assert(jot_call_list(NULL, 1, &w, 1, &y) == JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:72: jot_call_list: the function is NULL (bad_run.c:67: jot_grad: no argument 3: leak takes 2 (numbered from 0))");
    ck_assert_ptr_null(jot_jit(jot_fn(leak), .donate = (int[]){2, JOT_END}));
    CHECK_MESSAGE("bad_run.c:74: jot_jit: donate: no argument 2: leak takes 2 (numbered from 0)");
    ck_assert_ptr_null(jot_executable_text(e, "trace"));
    CHECK_MESSAGE("jot_executable_text: leak has not been called yet");
    jot_executable *good = jot_jit(jot_fn(total_));
    must(jot_call(good, JOT_IN(w), JOT_OUT(y)));
    ck_assert_ptr_null(jot_executable_text(good, "graph"));
    ck_assert_ptr_nonnull(strchr(jot_error_message(), '\''));
    jot_executable_release(good);
    jot_array_release(y);
    ck_assert_int_eq(jot_check_grads(jot_fn(total_), 9, JOT_FORWARD, 0, w), JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:84: jot_check_grads: order 9: orders are 1 to 8");
    ck_assert_int_eq(jot_check_grads(jot_fn(total_), 1, 0, 0, w), JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:86: jot_check_grads: the modes are 0, not JOT_FORWARD, JOT_REVERSE or both");
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
#line 90 "bad_run.c"
    double item = jot_item(good);
#line 400 "test_errors.c"
    ck_assert(isnan(item));
    CHECK_MESSAGE("bad_run.c:90: jot_item: the value has 2 elements, not one");
    jot_value worse = jot_add(bad, 1);
    ck_assert(isnan(jot_item(worse)));
    ck_assert(strstr(jot_error_message(), "bad_run.c:70") != NULL);
    jot_scope_close(s);
    jot_array_release(w);
}
END_TEST

// What a library on the headers gives for what it does not take.
static jot_value even(jot_value x)
{
    return jot_value_size(x) % 2 ? jot_error(JOT_ERR_SHAPE, "even", "an odd number of elements")
                                 : jot_neg(x);
}

START_TEST(test_errors_of_a_library)
{
    ck_assert_ptr_null(jot_trace_memory(8));
    jot_array *w = jot_array_full(JOT_F32, 1, 2);
    jot_scope *s = jot_scope_open();
    const char *memory = jot_trace_memory(1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(memory[i], 0);
    CHECK(even(jot_from(w)), 0, -1, -1);
    jot_array *out;
#line 92 "bad_run.c"
    jot_value bad = jot_at(even(jot_full(JOT_F32, 1, 3)), JOT_HERE ": even");
#line 440 "test_errors.c"
    ck_assert_int_eq(jot_eval(jot_add(bad, 1), &out), JOT_ERR_SHAPE);
    CHECK_MESSAGE("bad_run.c:92: even: an odd number of elements");
    jot_scope_close(s);
    jot_array_release(w);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_shapes);
    tcase_add_test(t, test_places_in_values);
    tcase_add_test(t, test_numbers);
    tcase_add_test(t, test_environment);
    tcase_add_test(t, test_handles);
    tcase_add_test(t, test_uniform_signature);
    tcase_add_test(t, test_second_output);
    tcase_add_test(t, test_derivatives);
    tcase_add_test(t, test_blocks);
    tcase_add_test(t, test_calls);
    tcase_add_test(t, test_outside);
    tcase_add_test(t, test_scope_goes_on);
    tcase_add_test(t, test_errors_of_a_library);
}

int main(void) { return run_suite("trace/errors", add); }
