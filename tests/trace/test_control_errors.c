// SPDX-License-Identifier: Apache-2.0
// What mistakes in loops and branches say.  Places come from #line.
#include "failing_allocation.h"

static jot_value kept;

static jot_status nothing(void *ctx, const jot_callback_call *call)
{
    (void)ctx, (void)call;
    return JOT_OK;
}

static jot_value cosine(jot_value x) { return jot_cos(x); }
static jot_value sum_of(jot_value x, jot_value y) { return jot_add(x, y); }
static jot_value pair(jot_value x) { return jot_stack(0, x, x); }
#line 9 "test_control_errors.c"
static void widen(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    (void)row, (void)out, (void)ctx;
    carry[1] = jot_stack(0, carry[1], carry[1]);
}
static jot_value not_zero(const jot_value *carry, void *ctx)
{
    (void)ctx;
    return carry[0];
}
static void halve(jot_value *carry, void *ctx)
{
    (void)ctx;
    carry[0] = jot_mul(0.5, carry[0]);
}

#line 27 "test_control_errors.c"
static void keep_sum(jot_value index, jot_value *carry, void *ctx)
{
    (void)ctx;
    kept = carry[0] = jot_add(carry[0], index);
}

// x is f64[], v f64[4], w f32[3,2].  Lines are counted by hand from here on.
// clang-format off
#line 1 "bad_loop.c"
#define F(name) static jot_value name(jot_value x, jot_value v, jot_value w)
F(shape) { (void)v, (void)w; JOT_FOR (i, 3, x) { x = jot_stack(0, x, x); } return x; }
F(dtype) { (void)x, (void)v; jot_value s = jot_sum(w); JOT_SCAN ((s), (v), ()) { s = jot_add(s, v); } return s; }
F(lossy) { (void)x, (void)v, (void)w; jot_value s = jot_from(0.5); JOT_FOR (i, 3, s) { s = jot_add(jot_zeros(JOT_I32), i); } return s; }
struct state { jot_value p, q; };
F(member) { (void)v, (void)w; struct state s = {x, x}; JOT_WHILE ((s), jot_less(s.p, 9)) { s.q = jot_stack(0, s.q, s.p); } return s.q; }
F(function) { (void)w; jot_value c[] = {x, v}; jot_scan(widen, NULL, 2, c, 0, NULL, 0, NULL, &(jot_loop_options){.length = 3}); return c[1]; }
F(branch) { (void)w; jot_value y; JOT_IF (jot_greater(x, 0), y) { y = v; } else { y = x; } return y; }
F(branch_dtype) { (void)v, (void)w; jot_value y; JOT_IF (jot_greater(x, 0), y) { y = x; } else { y = jot_greater(x, 1); } return y; }
F(branch_unset) { (void)v, (void)w; jot_value y = {0}; JOT_IF (jot_greater(x, 0), y) { y = x; } else { } return y; }
F(cases) { (void)w; jot_value y; JOT_SWITCH (1, 3, y) { case 0: y = x; break; case 1: y = v; break; default: y = x; } return y; }
F(case_unset) { (void)v, (void)w; jot_value y = {0}; JOT_SWITCH (1, 3, y) { case 0: case 1: y = x; } return y; }
F(case_functions) { (void)v, (void)w; jot_value y; jot_switch(0, 2, ((jot_function[]){jot_fn(cosine), jot_fn(pair)}), 1, &x, 1, &y); return y; }
F(case_counts) { (void)v, (void)w; jot_value y; jot_switch(0, 2, ((jot_function[]){jot_fn(cosine), jot_fn(sum_of)}), 1, &x, 1, &y); return y; }
F(no_case) { (void)v, (void)w; jot_value y = x; JOT_SWITCH (1, 0, y) { default: y = x; } return y; }
F(float_index) { (void)v, (void)w; jot_value y; JOT_SWITCH (x, 2, y) { default: y = x; } return y; }
F(long_index) { (void)w; jot_value y; JOT_SWITCH (jot_convert(v, JOT_I32), 2, y) { default: y = x; } return y; }
F(condition) { (void)w; jot_value y; JOT_IF (jot_greater(v, 0), y) { y = x; } else { y = x; } return y; }
F(number_condition) { (void)v, (void)w; JOT_IF (2, x) { x = jot_add(x, 1); } return x; }
F(test) { (void)v, (void)w; JOT_WHILE ((x), jot_sub(x, 1)) { x = jot_mul(0.5, x); } return x; }
F(test_function) { (void)v, (void)w; jot_while(not_zero, halve, NULL, 1, &x, NULL); return x; }
F(idle) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 1)) { } return x; }
F(no_state) { (void)v, (void)w; JOT_WHILE ((), jot_less(x, 1)) { } return x; }
F(bound) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 1), .bound = -2) { x = jot_mul(2, x); } return x; }
F(trips) { (void)v, (void)w; JOT_FOR (i, -3, x) { x = jot_add(x, i); } return x; }
F(many_trips) { (void)v, (void)w; JOT_FOR_RANGE (i, INT64_MIN, 1, x) { x = jot_add(x, i); } return x; }
F(float_trips) { (void)v, (void)w; JOT_FOR (i, 3.0, x) { x = jot_add(x, i); } return x; }
F(vector_trips) { (void)w; JOT_FOR (i, jot_convert(v, JOT_I32), x) { x = jot_add(x, i); } return x; }
F(first) { (void)v, (void)w; JOT_FOR_RANGE (i, x, 3, x) { x = jot_add(x, i); } return x; }
F(end) { (void)v, (void)w; JOT_FOR_RANGE (i, 0, 0.5, x) { x = jot_add(x, i); } return x; }
F(length) { (void)v, (void)w; JOT_SCAN ((x), (), (), .length = -1) { x = jot_mul(2, x); } return x; }
F(no_length) { (void)v, (void)w; jot_value y; JOT_SCAN ((x), (), (y)) { y = x; } return y; }
F(no_rows) { (void)v, (void)w; JOT_SCAN ((), (x), ()) { } return x; }
F(rows) { JOT_SCAN ((x), (v, w), ()) { x = jot_add(x, v); } return x; }
F(rows_and_length) { (void)w; JOT_SCAN ((x), (v), (), .length = 5) { x = jot_add(x, v); } return x; }
F(unset_row) { (void)w; jot_value y; JOT_SCAN ((x), (v), (y)) { x = jot_add(x, v); } return y; }
F(batch) { (void)x, (void)w; JOT_MAP ((v), (v), .batch = -8) { v = jot_sin(v); } return v; }
F(no_map) { (void)v, (void)w; jot_value y; JOT_MAP ((), (y)) { y = x; } return y; }
F(twice) { (void)v, (void)w; JOT_FOR (i, 3, x, x) { x = jot_add(x, i); } return x; }
F(two_roles) { (void)x, (void)w; JOT_SCAN ((v), (v), ()) { v = jot_add(v, 1); } return v; }
F(two_results) { (void)w; JOT_SCAN ((x), (v), (x)) { x = jot_add(x, v); } return x; }
F(leaks) { (void)v, (void)w; jot_value y = x; JOT_FOR (i, 3, x) { y = jot_exp(x); x = jot_add(x, y); } return jot_add(x, y); }
F(leaks_index) { (void)v, (void)w; JOT_FOR (i, 3, x) { kept = jot_mul(i, 2); x = jot_add(x, kept); } return jot_add(x, kept); }
F(other_block) { (void)v, (void)w; JOT_FOR (i, 3, x) { kept = jot_exp(x); x = kept; } JOT_IF (jot_less(x, 1), x) { x = jot_add(x, kept); } return x; }
F(other_case) { (void)v, (void)w; jot_value y; JOT_SWITCH (0, 2, y) { case 0: kept = jot_exp(x); y = kept; break; case 1: y = kept; } return y; }
F(keeps) { (void)v, (void)w; JOT_FOR (i, 3, x) { kept = jot_exp(x); x = kept; } return x; }
F(other_trace) { (void)v, (void)w; return jot_add(x, kept); }
F(test_leaks) { (void)v, (void)w; jot_value y = x; JOT_WHILE ((x), jot_less(y = jot_mul(x, x), 9)) { x = jot_add(x, y); } return x; }
F(breaks) { (void)v, (void)w; JOT_FOR (i, 3, x) { x = jot_add(x, 1); break; } return x; }
F(returns) { (void)w; JOT_SCAN ((x), (v), ()) { x = jot_add(x, v); return x; } return x; }
F(jumps) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 9)) { x = jot_add(x, 1); goto end; } end: return x; }
F(breaks_if) { (void)v, (void)w; JOT_IF (jot_less(x, 9), x) { x = jot_add(x, 1); break; } return x; }
F(returns_inside) { (void)w; JOT_FOR (i, 2, x) { JOT_SCAN ((x), (v), ()) { x = jot_add(x, v); return x; } } return x; }
F(inside) { (void)v; JOT_FOR (i, 2, x) { x = jot_add(x, jot_dot(w, w)); } return x; }
F(checkpoint) { (void)w; JOT_SCAN ((x), (v), (), .checkpoint = -7) { x = jot_add(x, v); } return x; }
F(while_checkpoint) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 9), .checkpoint = 2) { x = jot_add(x, 1); } return x; }
F(slots) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 9), .slots = 1) { x = jot_add(x, 1); } return x; }
F(slots_and_bound) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 9), .bound = 9, .slots = 8) { x = jot_add(x, 1); } return x; }
F(slots_of_scan) { (void)w; JOT_SCAN ((x), (v), (), .slots = 8) { x = jot_add(x, v); } return x; }
F(bound_of_scan) { (void)w; JOT_SCAN ((x), (v), (), .bound = 8) { x = jot_add(x, v); } return x; }
F(length_of_while) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 9), .length = 9) { x = jot_add(x, 1); } return x; }
F(reverse_of_map) { (void)w, (void)x; JOT_MAP ((v), (v), .reverse = true) { v = jot_exp(v); } return v; }
F(batch_of_scan) { (void)w; JOT_SCAN ((x), (v), (), .batch = 2) { x = jot_add(x, v); } return x; }
F(unset) { (void)v, (void)w; jot_value z = {0}; JOT_FOR (i, 3, z) { z = jot_add(x, i); } return z; }
F(leaks_row) { (void)w; jot_value r = x; JOT_SCAN ((x), (v), ()) { r = v; x = jot_add(x, v); } return jot_add(x, r); }
F(leaks_step) { (void)v, (void)w; jot_for(keep_sum, NULL, 0, 3, 1, &x); return jot_add(x, kept); }
F(leaks_branch) { (void)v, (void)w; JOT_IF (jot_less(x, 9), x) { kept = jot_exp(x); x = kept; } return jot_add(x, kept); }
F(leaks_rows) { (void)x, (void)w; jot_value y; JOT_MAP ((v), (y)) { kept = jot_exp(v); y = kept; } return jot_add(y, kept); }
F(stale_branch) { (void)v, (void)w; jot_value y; JOT_IF (jot_less(x, 9), y) { JOT_FOR (i, 3, x) { kept = jot_exp(x); x = kept; } y = kept; } else { y = x; } return y; }
F(last_index) { (void)v, (void)w; JOT_FOR (i, UINT64_MAX, x) { x = jot_add(x, i); } return x; }
F(last_end) { (void)v, (void)w; JOT_FOR_RANGE (i, 2, UINT64_MAX, x) { x = jot_add(x, i); } return x; }
F(index_outside) { (void)w; JOT_FOR (i, 3, x) { x = jot_add(x, jot_take(v, 4)); } return x; }
F(update_outside) { (void)w; JOT_FOR (i, 3, v) { v = jot_at_set(v, -5, x); } return v; }
F(window_outside) { (void)w; JOT_FOR (i, 3, x) { x = jot_add(x, jot_sum(jot_dynamic_slice(v, jot_stack(0, i), 5))); } return x; }
F(negative_window) { (void)w; JOT_FOR (i, 3, x) { x = jot_add(x, jot_sum(jot_dynamic_slice(v, jot_stack(0, i), -1))); } return x; }
F(negative_size) { (void)v, (void)w; JOT_FOR (i, 3, x) { x = jot_add(x, jot_sum(jot_zeros(JOT_F64, 2, -2))); } return x; }
F(number_and_integer) { (void)v, (void)w; jot_value s = jot_from(0.5); JOT_FOR (i, 3, s) { JOT_FOR (k, 3, s) { s = i; } } return jot_add(s, x); }
F(breaks_while) { (void)v, (void)w; JOT_WHILE ((x), jot_less(x, 9)) { x = jot_add(x, 1); if (jot_value_rank(x) == 0) break; x = jot_mul(x, x); } return x; }
F(idle_case) { (void)v, (void)w; jot_value y = {123456, 1}; JOT_SWITCH (jot_convert(x, JOT_I32), 3, y) { case 1: break; default: y = x; } return y; }
F(no_step) { (void)v, (void)w; jot_for(NULL, NULL, 0, 3, 1, &x); return x; }
F(no_scan) { (void)w; jot_value y; jot_scan(NULL, NULL, 1, &x, 1, &v, 1, &y, NULL); return y; }
F(no_rows_given) { (void)v, (void)w; jot_value y; jot_scan(widen, NULL, 1, &x, 1, NULL, 1, &y, NULL); return y; }
F(no_condition) { (void)v, (void)w; jot_while(NULL, halve, NULL, 1, &x, NULL); return x; }
F(no_carry) { (void)v, (void)w; jot_while(not_zero, halve, NULL, 1, NULL, NULL); return x; }
F(no_branches) { (void)v, (void)w; jot_value y; jot_switch(0, 2, NULL, 1, &x, 1, &y); return y; }
F(no_arguments) { (void)x, (void)v, (void)w; jot_value y; jot_switch(0, 1, ((jot_function[]){jot_fn(cosine)}), 1, NULL, 1, &y); return y; }
F(no_map_rows) { (void)x, (void)v, (void)w; jot_value y; jot_map(jot_fn(cosine), 1, NULL, 1, &y, NULL); return y; }
F(take_half) { (void)x, (void)w; return jot_take(v, 1.5); }
F(take_number) { (void)x, (void)w; return jot_take(v, jot_from(-5)); }
F(no_dims) { (void)x, (void)w; return jot_gather(v, jot_zeros(JOT_I32, 2, 1), NULL, NULL); }
F(no_update_dims) { (void)w; return jot_scatter(JOT_SCATTER_ADD, v, jot_zeros(JOT_I32, 2, 1), x, NULL); }
F(repeats) { (void)x, (void)w; return jot_repeat(v, -2, 0); }
F(no_spec) { (void)v, (void)w; jot_value y = x; jot_callback((const jot_callback_spec *)NULL, &y, x); return y; }
F(bad_result) { (void)v, (void)w; jot_value y[2]; const jot_type t[] = {JOT_TYPE(JOT_F64), JOT_TYPE(JOT_F64, -3)}; jot_callback((&(jot_callback_spec){.call = nothing, .n_out = 2, .out = t}), y, x); return y[0]; }
F(unset_print) { (void)v, (void)w; jot_printf("{} {}\n", x, (jot_value){0}); return x; }
#line 200 "test_control_errors.c"
// clang-format on

static jot_status call(jot_function f)
{
    const double row[4] = {1, 2, 3, 4}, one = 1;
    jot_array *in[] = {jot_array_from(&one), jot_array_from(row, 4),
                       jot_array_full(JOT_F32, 1, 3, 2)};
    jot_array *y = NULL;
    jot_executable *e = jot_jit(f);
    jot_status status = jot_call(e, JOT_IN(in), JOT_OUT(y));
    jot_arrays_release(3, in);
    jot_array_release(y);
    jot_executable_release(e);
    return status;
}

static void check_failure(jot_function f, jot_status status, const char *message)
{
    jot_status got = call(f);
    CHECK_MESSAGE(message);
    ck_assert_int_eq(got, status);
    ck_assert_ptr_null(trace_top());
}

static const struct {
    jot_value (*f)(jot_value x, jot_value v, jot_value w);
    jot_status status;
    const char *message;
} faults[] = {
    {shape, JOT_ERR_SHAPE,
     "bad_loop.c:2: JOT_FOR: 'x' is f64[] before the body and f64[2] after it, made at "
     "bad_loop.c:2: jot_stack(0, x, x)"},
    {dtype, JOT_ERR_DTYPE,
     "bad_loop.c:3: JOT_SCAN: 's' is f32[] before the body and f64[] after it, made at "
     "bad_loop.c:3: jot_add(s, v)"},
    {lossy, JOT_ERR_DTYPE,
     "bad_loop.c:4: JOT_FOR: 's' is f32[] before the body and i32[] after it, made at "
     "bad_loop.c:4: jot_add(jot_zeros(JOT_I32), i)"},
    {member, JOT_ERR_SHAPE,
     "bad_loop.c:6: JOT_WHILE: 's (value 2 of 2)' is f64[] before the body and f64[2] after "
     "it, made at bad_loop.c:6: jot_stack(0, s.q, s.p)"},
    {function, JOT_ERR_SHAPE,
     "bad_loop.c:7: jot_scan: 'carry (value 2 of 2)' is f64[4] before the body and f64[2,4] "
     "after it, made at test_control_errors.c:12: jot_stack(0, carry[1], carry[1])"},
    {branch, JOT_ERR_SHAPE,
     "bad_loop.c:8: JOT_IF: 'y' is f64[4] in the first branch and f64[] in the second branch"},
    {branch_dtype, JOT_ERR_DTYPE,
     "bad_loop.c:9: JOT_IF: 'y' is f64[] in the first branch and bool[] in the second branch, "
     "made at bad_loop.c:9: jot_greater(x, 1)"},
    {cases, JOT_ERR_SHAPE,
     "bad_loop.c:11: JOT_SWITCH: 'y' is f64[] in case 0 and f64[4] in case 1"},
    {case_functions, JOT_ERR_SHAPE,
     "bad_loop.c:13: jot_switch: 'out' is f64[] in case 0 and f64[2] in case 1"},
    {branch_unset, JOT_ERR_TRACE,
     "bad_loop.c:10: JOT_IF: 'y' has no value in the second branch: set it there, or before "
     "JOT_IF"},
    {case_unset, JOT_ERR_TRACE,
     "bad_loop.c:12: JOT_SWITCH: 'y' has no value in case 2: set it there, or before "
     "JOT_SWITCH"},
    {idle_case, JOT_ERR_TRACE,
     "bad_loop.c:79: JOT_SWITCH: 'y' has no value in case 1: set it there, or before "
     "JOT_SWITCH"},
    {case_counts, JOT_ERR_ARGUMENT,
     "bad_loop.c:14: jot_switch: jot_apply: sum_of takes 2 values and gives 1, not 1 and 1"},
    {no_case, JOT_ERR_ARGUMENT, "bad_loop.c:15: JOT_SWITCH: 0 cases: it takes 1 to 65536"},
    {float_index, JOT_ERR_DTYPE,
     "bad_loop.c:16: JOT_SWITCH: the index is f64[], not one integer"},
    {long_index, JOT_ERR_SHAPE,
     "bad_loop.c:17: JOT_SWITCH: the index is i32[4], not one integer"},
    {condition, JOT_ERR_SHAPE,
     "bad_loop.c:18: JOT_IF: the condition is bool[4], not one bool: jot_where chooses by "
     "element"},
    {number_condition, JOT_ERR_DTYPE,
     "bad_loop.c:19: JOT_IF: the condition is i32[], not one bool: jot_where chooses by "
     "element"},
    {test, JOT_ERR_DTYPE, "bad_loop.c:20: JOT_WHILE: the test is f64[]: it must be one bool"},
    {test_function, JOT_ERR_DTYPE,
     "bad_loop.c:21: jot_while: the test is f64[]: it must be one bool"},
    {idle, JOT_ERR_ARGUMENT,
     "bad_loop.c:22: JOT_WHILE: the body changes nothing that is listed: the loop would not "
     "end"},
    {no_state, JOT_ERR_ARGUMENT,
     "bad_loop.c:23: JOT_WHILE: no state: list what the body changes"},
    {bound, JOT_ERR_ARGUMENT, "bad_loop.c:24: JOT_WHILE: a bound of -2 trips: it is 1 or more"},
    {trips, JOT_ERR_ARGUMENT, "bad_loop.c:25: JOT_FOR: -3 trips: negative"},
    {many_trips, JOT_ERR_ARGUMENT,
     "bad_loop.c:26: JOT_FOR_RANGE: from -9223372036854775808 to 1: more than 2^63 - 1 trips"},
    {float_trips, JOT_ERR_DTYPE,
     "bad_loop.c:27: JOT_FOR: the trips are f32[], not one integer"},
    {vector_trips, JOT_ERR_SHAPE,
     "bad_loop.c:28: JOT_FOR: the trips are i32[4], not one integer"},
    {first, JOT_ERR_DTYPE,
     "bad_loop.c:29: JOT_FOR_RANGE: the first index is f64[], not one integer"},
    {end, JOT_ERR_DTYPE, "bad_loop.c:30: JOT_FOR_RANGE: the end is f32[], not one integer"},
    {length, JOT_ERR_ARGUMENT, "bad_loop.c:31: JOT_SCAN: a length of -1: negative"},
    {no_length, JOT_ERR_ARGUMENT,
     "bad_loop.c:32: JOT_SCAN: no rows in and no length: write .length = N behind the lists"},
    {no_rows, JOT_ERR_SHAPE, "bad_loop.c:33: JOT_SCAN: 'x' is f64[]: it has no rows"},
    {rows, JOT_ERR_SHAPE, "bad_loop.c:34: JOT_SCAN: 'w' is f32[3,2], but there are 4 rows"},
    {rows_and_length, JOT_ERR_SHAPE,
     "bad_loop.c:35: JOT_SCAN: 'v' is f64[4], but there are 5 rows"},
    {unset_row, JOT_ERR_TRACE, "bad_loop.c:36: JOT_SCAN: 'y' was not set in the body"},
    {batch, JOT_ERR_ARGUMENT, "bad_loop.c:37: JOT_MAP: a batch of -8: it is 1 or more rows"},
    {no_map, JOT_ERR_ARGUMENT, "bad_loop.c:38: JOT_MAP: no rows: list what is mapped"},
    {twice, JOT_ERR_ARGUMENT, "bad_loop.c:39: JOT_FOR: 'x' is listed twice"},
    {two_roles, JOT_ERR_ARGUMENT, "bad_loop.c:40: JOT_SCAN: 'v' is listed twice"},
    {two_results, JOT_ERR_ARGUMENT, "bad_loop.c:41: JOT_SCAN: 'x' is listed twice"},
    {inside, JOT_ERR_SHAPE,
     "bad_loop.c:54: jot_dot(w, w): contracting 2 with 3: f32[3,2] · f32[3,2]"},
    {checkpoint, JOT_ERR_ARGUMENT,
     "bad_loop.c:55: JOT_SCAN: a checkpoint of -7: the trips between two states that are kept, "
     "or a constant of enum jot_checkpoint"},
    {while_checkpoint, JOT_ERR_ARGUMENT,
     "bad_loop.c:56: JOT_WHILE: a checkpoint is for JOT_SCAN, whose trips are counted before "
     "it runs"},
    {slots, JOT_ERR_ARGUMENT, "bad_loop.c:57: JOT_WHILE: 1 slots: 2 to 16777216 are possible"},
    {slots_and_bound, JOT_ERR_ARGUMENT,
     "bad_loop.c:58: JOT_WHILE: slots are for a loop without a bound: one with a bound keeps "
     "what its trips need"},
    {slots_of_scan, JOT_ERR_ARGUMENT,
     "bad_loop.c:59: JOT_SCAN: slots are for JOT_WHILE: write .checkpoint here"},
    {bound_of_scan, JOT_ERR_ARGUMENT, "bad_loop.c:60: JOT_SCAN: a bound is for JOT_WHILE"},
    {length_of_while, JOT_ERR_ARGUMENT, "bad_loop.c:61: JOT_WHILE: a length is for JOT_SCAN"},
    {reverse_of_map, JOT_ERR_ARGUMENT, "bad_loop.c:62: JOT_MAP: reverse is for JOT_SCAN"},
    {batch_of_scan, JOT_ERR_ARGUMENT, "bad_loop.c:63: JOT_SCAN: a batch is for JOT_MAP"},
    {leaks, JOT_ERR_STALE,
     "bad_loop.c:42: jot_add(x, y): the value made at bad_loop.c:42: jot_exp(x) is used "
     "outside the JOT_FOR (bad_loop.c:42: JOT_FOR): list the variable in the JOT_FOR to bring "
     "it out"},
    {leaks_index, JOT_ERR_STALE,
     "bad_loop.c:43: jot_add(x, kept): the value made at bad_loop.c:43: jot_mul(i, 2) is used "
     "outside the JOT_FOR (bad_loop.c:43: JOT_FOR): list the variable in the JOT_FOR to bring "
     "it out"},
    {other_block, JOT_ERR_STALE,
     "bad_loop.c:44: jot_add(x, kept): the value made at bad_loop.c:44: jot_exp(x) is used "
     "outside the JOT_FOR (bad_loop.c:44: JOT_FOR): list the variable in the JOT_FOR to bring "
     "it out"},
    {other_case, JOT_ERR_STALE,
     "bad_loop.c:45: JOT_SWITCH: 'y': the value made at bad_loop.c:45: jot_exp(x) inside the "
     "JOT_SWITCH (bad_loop.c:45: JOT_SWITCH) is used in another part of it: compute it before "
     "the JOT_SWITCH"},
    {test_leaks, JOT_ERR_STALE,
     "bad_loop.c:48: jot_add(x, y): the value made at bad_loop.c:48: jot_mul(x, x) inside the "
     "JOT_WHILE (bad_loop.c:48: JOT_WHILE) is used in another part of it: compute it before "
     "the JOT_WHILE"},
    {breaks, JOT_ERR_TRACE,
     "bad_loop.c:49: JOT_FOR: left by break, return or goto; a traced block has no early exit: "
     "use JOT_WHILE or jot_where"},
    {returns, JOT_ERR_TRACE,
     "bad_loop.c:50: JOT_SCAN: left by break, return or goto; a traced block has no early "
     "exit: use JOT_WHILE or jot_where"},
    {jumps, JOT_ERR_TRACE,
     "bad_loop.c:51: JOT_WHILE: left by break, return or goto; a traced block has no early "
     "exit: use JOT_WHILE or jot_where"},
    {breaks_while, JOT_ERR_TRACE,
     "bad_loop.c:78: JOT_WHILE: left by break, return or goto; a traced block has no early "
     "exit: use JOT_WHILE or jot_where"},
    {breaks_if, JOT_ERR_TRACE,
     "bad_loop.c:52: JOT_IF: left by break, return or goto; a traced block has no early exit: "
     "use JOT_WHILE or jot_where"},
    {returns_inside, JOT_ERR_TRACE,
     "bad_loop.c:53: JOT_SCAN: left by break, return or goto; a traced block has no early "
     "exit: use JOT_WHILE or jot_where"},
    {unset, JOT_ERR_ARGUMENT,
     "bad_loop.c:64: JOT_FOR: 'z': a jot_value that was never set (all zero)"},
    {leaks_row, JOT_ERR_STALE,
     "bad_loop.c:65: jot_add(x, r): the state, row or index is used outside the JOT_SCAN "
     "(bad_loop.c:65: JOT_SCAN): list the variable in the JOT_SCAN to bring it out"},
    {leaks_step, JOT_ERR_STALE,
     "bad_loop.c:66: jot_add(x, kept): the value made at test_control_errors.c:30: "
     "jot_add(carry[0], index) is used outside the jot_for (bad_loop.c:66: jot_for): make it a "
     "carry or an output of the jot_for to bring it out"},
    {leaks_branch, JOT_ERR_STALE,
     "bad_loop.c:67: jot_add(x, kept): the value made at bad_loop.c:67: jot_exp(x) is used "
     "outside the JOT_IF (bad_loop.c:67: JOT_IF): list the variable in the JOT_IF to bring it "
     "out"},
    {leaks_rows, JOT_ERR_STALE,
     "bad_loop.c:68: jot_add(y, kept): the value made at bad_loop.c:68: jot_exp(v) is used "
     "outside the JOT_MAP (bad_loop.c:68: JOT_MAP): list the variable in the JOT_MAP to bring "
     "it out"},
    {stale_branch, JOT_ERR_STALE,
     "bad_loop.c:69: JOT_IF: 'y': the value made at bad_loop.c:69: jot_exp(x) is used outside "
     "the JOT_FOR (bad_loop.c:69: JOT_FOR): list the variable in the JOT_FOR to bring it out"},
    {last_index, JOT_ERR_ARGUMENT,
     "bad_loop.c:70: JOT_FOR: the trips are 18446744073709551615: an index ends at 2^63 - 1"},
    {last_end, JOT_ERR_ARGUMENT,
     "bad_loop.c:71: JOT_FOR_RANGE: the end is 18446744073709551615: an index ends at 2^63 - "
     "1"},
    {index_outside, JOT_ERR_ARGUMENT,
     "bad_loop.c:72: jot_take(v, 4): index 4 of axis 0 of f64[4]: indices are -4 to 3"},
    {update_outside, JOT_ERR_ARGUMENT,
     "bad_loop.c:73: jot_at_set(v, -5, x): index -5 of axis 0 of f64[4]: indices are -4 to 3"},
    {window_outside, JOT_ERR_SHAPE,
     "bad_loop.c:74: jot_dynamic_slice(v, jot_stack(0, i), 5): a window of 5 along axis 0 of "
     "f64[4]: at most 4"},
    {negative_window, JOT_ERR_ARGUMENT,
     "bad_loop.c:75: jot_dynamic_slice(v, jot_stack(0, i), -1): size -1 of axis 0 is negative"},
    {negative_size, JOT_ERR_ARGUMENT,
     "bad_loop.c:76: jot_zeros(JOT_F64, 2, -2): size -2 of axis 1 is negative"},
    {number_and_integer, JOT_ERR_DTYPE,
     "bad_loop.c:77: JOT_FOR: 's' is f32[] before the body and i32[] after it"},
    {no_step, JOT_ERR_ARGUMENT, "bad_loop.c:80: jot_for: step is NULL"},
    {no_scan, JOT_ERR_ARGUMENT, "bad_loop.c:81: jot_scan: step is NULL"},
    {no_rows_given, JOT_ERR_ARGUMENT, "bad_loop.c:82: jot_scan: rows is NULL"},
    {no_condition, JOT_ERR_ARGUMENT, "bad_loop.c:83: jot_while: condition is NULL"},
    {no_carry, JOT_ERR_ARGUMENT, "bad_loop.c:84: jot_while: carry is NULL"},
    {no_branches, JOT_ERR_ARGUMENT, "bad_loop.c:85: jot_switch: branches is NULL"},
    {no_arguments, JOT_ERR_ARGUMENT, "bad_loop.c:86: jot_switch: in is NULL"},
    {no_map_rows, JOT_ERR_ARGUMENT, "bad_loop.c:87: jot_map: rows is NULL"},
    {take_half, JOT_ERR_DTYPE,
     "bad_loop.c:88: jot_take(v, 1.5): an index of f32[]: it takes integers"},
    {take_number, JOT_ERR_ARGUMENT,
     "bad_loop.c:89: jot_take(v, jot_from(-5)): index -5 of axis 0 of f64[4]: indices are -4 "
     "to 3"},
    {no_dims, JOT_ERR_ARGUMENT,
     "bad_loop.c:90: jot_gather(v, jot_zeros(JOT_I32, 2, 1), NULL, NULL): dims is NULL: it "
     "says "
     "which axes the indices are for"},
    {no_update_dims, JOT_ERR_ARGUMENT,
     "bad_loop.c:91: jot_scatter(JOT_SCATTER_ADD, v, jot_zeros(JOT_I32, 2, 1), x, NULL): dims "
     "is "
     "NULL: it says which axes the indices are for"},
    {repeats, JOT_ERR_ARGUMENT,
     "bad_loop.c:92: jot_repeat(v, -2, 0): -2 times: it takes 0 or more"},
    {no_spec, JOT_ERR_ARGUMENT, "bad_loop.c:93: jot_callback: the spec is NULL"},
    {bad_result, JOT_ERR_ARGUMENT,
     "bad_loop.c:94: jot_callback: the type of result 1: size -3 of axis 0 is negative"},
    {unset_print, JOT_ERR_ARGUMENT,
     "bad_loop.c:95: jot_printf: a jot_value that was never set (all zero)"},
};

START_TEST(fault)
{
    check_failure(jot_fn(faults[_i].f), faults[_i].status, faults[_i].message);
}
END_TEST

START_TEST(handle_of_another_trace)
{
    must(call(jot_fn(keeps)));
    check_failure(jot_fn(other_trace), JOT_ERR_STALE,
                  "bad_loop.c:47: jot_add(x, kept): the value made at bad_loop.c:46: "
                  "jot_exp(x) is used outside the JOT_FOR (bad_loop.c:46: JOT_FOR): list the "
                  "variable in the JOT_FOR to bring it out");
}
END_TEST

// ---- No memory

static jot_value every_block(jot_value x)
{
    jot_value k = jot_convert(x, JOT_I32), y = jot_from(1), z = x, r = jot_stack(0, x, y);
    JOT_FOR_RANGE (i, 0, k, z) {
        z = jot_mul(z, y);
    }
    JOT_SWITCH (k, 3, y, z) {
    case 0:
        y = jot_sin(x);
        break;
    default:
        JOT_WHILE ((z), jot_less(z, 4), .bound = 5) {
            z = jot_mul(2, z);
        }
    }
    JOT_MAP ((r), (r), .batch = 2) {
        r = jot_mul(r, z);
    }
    JOT_IF (jot_less(x, 3), y) {
        y = jot_add(y, jot_sum(jot_associative_scan(jot_fn(sum_of), r)));
    }
    jot_map(jot_fn(cosine), 1, &r, 1, &z, NULL);
    return jot_add(y, jot_sum(z));
}

static jot_status whole_life(void)
{
    jot_executable *e = jot_jit(jot_fn(every_block));
    jot_array *x = jot_array_full(JOT_F64, 1), *y = NULL;
    jot_status s = e && x ? jot_call(e, JOT_IN(x), JOT_OUT(y)) : JOT_ERR_MEMORY;
    jot_array_release(y);
    jot_array_release(x);
    jot_executable_release(e);
    return s;
}

START_TEST(no_memory)
{
    setenv("JOT_BACKEND", "eval", 1);
    check_failing_allocations(whole_life);
    unsetenv("JOT_BACKEND");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, fault, 0, sizeof faults / sizeof *faults);
    tcase_add_test(t, handle_of_another_trace);
    tcase_add_test(t, no_memory);
}

int main(void)
{
    // Nothing runs, and a context of a GPU for each of so many processes takes a minute.
    jot_set_default_device(jot_host());
    return run_suite("trace/control errors", add_tests);
}
