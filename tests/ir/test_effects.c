// SPDX-License-Identifier: Apache-2.0
// Checks: their types, their text, their order, and what they say in the evaluator.
#include "eval_support.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const struct ir_graph *parsed(const char *text)
{
    struct ir_graph *g;
    ck_assert_msg(ir_graph_parse(module, text, &g) == JOT_OK, "%s", jot_error_message());
    struct strbuf report = strbuf_make(module->arena);
    ck_assert_msg(ir_verify(g, &report) == 0, "%s", report.text);
    return g;
}

static const char two_checks[] =
    "jot ir 1\n"
    "function @0 body(%0: f32[], %1: f32[]) {\n"
    "  %2 = const {data=0} : f32[]\n"
    "  %3 = ge %1, %2 : bool[]\n"
    "  check %3 {message=\"a row below 0\", place=\"a.c:1: jot_assert(x)\"}\n"
    "  %4 = add %0, %1 : f32[]\n"
    "  return %4\n"
    "}\n"
    "function @1 f(%0: f32[2,3], %1: f32[], %2: f32[4], %3: i64[]) {\n"
    "  %4 = const {data=0} : f32[]\n"
    "  %5 = ne %0, %4 : bool[2,3]\n"
    "  check %5, %3 {message=\"0\", place=\"b.c:2\"}\n"
    "  %6 = scan %1, %2 {reverse=0, length=4, n_consts=0, n_carry=1, functions=[@0]} : f32[]\n"
    "  %7 = ne %1, %4 : bool[]\n"
    "  check %7, %3, %3 {message=\"the start\", place=\"\"}\n"
    "  return %0\n"
    "}\n";

START_TEST(test_text_round_trip)
{
    const struct ir_graph *g = parsed(two_checks);
    ck_assert_str_eq(ir_graph_text(g), two_checks);
    const struct ir_graph *again = ir_canonical(g);
    ck_assert_int_eq(ir_verify(again, NULL), 0);
    ck_assert(ir_graph_equal(g, again));
}
END_TEST

// The graph but for the first check, in *out: another function with another key.
START_TEST(test_effects_are_content)
{
    struct ir_graph *g = (struct ir_graph *)(uintptr_t)parsed(two_checks);
    char other[sizeof two_checks];
    memcpy(other, two_checks, sizeof other);
    *strstr(other, "b.c:2") = 'c';
    const struct ir_graph *h = parsed(other);
    struct hash128 a = ir_graph_key(g), b = ir_graph_key(h);
    ck_assert(!ir_graph_equal(g, h));
    ck_assert(a.lo != b.lo || a.hi != b.hi);
    ck_assert(ir_function(module, ir_function_add(module, g))->has_effects);
}
END_TEST

// f32 x[2,3], start, rows of 4, trip
static jot_status run_two_checks(const float x[6], float start, const float rows[4])
{
    static const int64_t trip = 7;
    const struct ir_graph *g = parsed(two_checks);
    struct ir_tensor out, in[] = {tensor(JOT_F32, DIMS(2, 3), x), point(JOT_F32, &start),
                                  vector(JOT_F32, 4, rows), point(JOT_I64, &trip)};
    return ir_eval(arena, g, in, &out);
}

START_TEST(test_messages)
{
    static const float good[6] = {1, 1, 1, 1, 1, 1}, bad[6] = {1, 1, 1, 1, 0, 0};
    static const float rows[4] = {0, 1, 2, 3}, bad_rows[4] = {0, 1, -2, 3};
    ck_assert_int_eq(run_two_checks(good, 1, rows), JOT_OK);
    ck_assert_int_eq(run_two_checks(bad, 0, bad_rows), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), "b.c:2: 0, at [1, 1], in trip 7");
    ck_assert_int_eq(run_two_checks(good, 0, bad_rows), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), "a.c:1: jot_assert(x): a row below 0");
    ck_assert_int_eq(run_two_checks(good, 0, rows), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), "the start, in trips 7, 7");
}
END_TEST

START_TEST(test_nothing_to_check)
{
    const struct ir_graph *g = parsed("jot ir 1\n"
                                      "function @0 f(%0: bool[2,0]) {\n"
                                      "  check %0 {message=\"m\", place=\"p\"}\n"
                                      "  return\n"
                                      "}\n");
    struct ir_tensor in = tensor(JOT_BOOL, DIMS(2, 0), NULL);
    ck_assert_int_eq(ir_eval(arena, g, &in, NULL), JOT_OK);
}
END_TEST

static const struct {
    const char *node, *message;
} faults[] = {
    {"check {message=\"m\", place=\"p\"}",
     "check of 0 operands: it takes what must hold and the trips of at most 8 loops"},
    {"check %0 {message=\"m\", place=\"p\"}", "check of f32[2], not of bool: compare it"},
    {"check %1, %0 {message=\"m\", place=\"p\"}", "trip 0 of check is f32[2], not i64[]"},
    {"check %1 {place=\"p\"}", "check without the attribute message"},
    {"check %1 {message=\"m\"}", "check without the attribute place"},
    {"callback %1 {host=0, lanes=0, results=[]}", "callback of host 0: the module has 0"},
};

START_TEST(test_faults)
{
    struct ir_graph *g;
    char text[256];
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 f(%%0: f32[2], %%1: bool[2]) {\n  %s\n  return\n}\n",
             faults[_i].node);
    ck_assert_int_ne(ir_graph_parse(module, text, &g), JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), faults[_i].message) != NULL, "%s",
                  jot_error_message());
}
END_TEST

// Equal checks stay two under every flag of the builder, and canonical order keeps theirs: the one
// that was made last reads what the other made first.
START_TEST(test_order_and_number)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_ALL);
    ir_id x = ir_param(&b, ir_type_make(module, JOT_F32, 0, NULL));
    ir_id zero = ir_scalar(&b, JOT_F32, 0), late = ir_lt(&b, x, zero),
          early = ir_gt(&b, x, zero);
    ir_check(&b, early, 0, NULL, "one", "");
    ir_check(&b, late, 0, NULL, "two", "");
    ir_check(&b, early, 0, NULL, "one", "");
    ir_output(&b, late);
    const struct ir_graph *g = ir_canonical(ir_finish(&b));
    const char *want[] = {"one", "two", "one"};
    int n = 0;
    ir_for_each_node (g, node)
        if (node->op == IR_check) {
            ck_assert_int_lt(n, 3);
            ck_assert_str_eq(ir_check_text(module->arena, node->attrs), want[n++]);
        }
    ck_assert_int_eq(n, 3);
}
END_TEST

static jot_status add_one(void *ctx, const jot_callback_call *call)
{
    const double *x = call->in[0].data;
    double *y = call->out[1].data;
    ck_assert_uint_eq(call->n_in, 1);
    ck_assert_uint_eq(call->n_out, 2);
    ck_assert_int_eq(call->out[1].rank, 1);
    if (x[0] < 0)
        return JOT_ERR_DEVICE;
    *(int32_t *)call->out[0].data = *(const int *)ctx;
    for (int64_t i = 0; i < call->out[1].dims[0]; i++)
        y[i] = x[i] + 1;
    return JOT_OK;
}

START_TEST(test_callback)
{
    static const int number = 7;
    struct ir_host host = {.name = "add_one",
                           .where = "prog.c:3: jot_callback",
                           .call = add_one,
                           .ctx = (void *)(uintptr_t)&number};
    ck_assert_uint_eq(ir_host_add(module, &host), 0);
    ck_assert_uint_eq(ir_host_add(module, &host), 0);
    const char *text = "jot ir 1\n"
                       "function @0 f(%0: f64[3]) {\n"
                       "  %1, %2 = callback %0 {host=0, lanes=0, results=[3, 0, 12, 1, 3]} : "
                       "i32[], f64[3]\n"
                       "  return %1, %2\n"
                       "}\n";
    const struct ir_graph *g = parsed(text);
    ck_assert_str_eq(ir_graph_text(g), text);
    double x[3] = {1, 2, 3};
    struct ir_tensor in = vector(JOT_F64, 3, x), out[2];
    ck_assert_int_eq(ir_eval(arena, g, &in, out), JOT_OK);
    ck_assert_int_eq(*(int32_t *)out[0].data, 7);
    ck_assert_double_eq(((double *)out[1].data)[2], 4);
    x[0] = -1;
    ck_assert_int_eq(ir_eval(arena, g, &in, out), JOT_ERR_DEVICE);
    ck_assert_str_eq(jot_error_message(), "prog.c:3: jot_callback: add_one: JOT_ERR_DEVICE");
}
END_TEST

// Contexts with bytes are the same by content, others by address; keys tell them apart, but for those that processes
// compare, which have other addresses.
START_TEST(test_hosts)
{
    char a[] = "one", b[] = "one", c[] = "two";
    struct ir_host host = {
        .name = "h", .where = "", .call = add_one, .ctx = a, .ctx_bytes = sizeof a};
    uint32_t first = ir_host_add(module, &host);
    host.ctx = b;
    ck_assert_uint_eq(ir_host_add(module, &host), first);
    host.ctx = c;
    uint32_t second = ir_host_add(module, &host);
    ck_assert_uint_ne(second, first);
    host.name = "k";
    uint32_t renamed = ir_host_add(module, &host);
    struct hash128 key[3], across[3];
    for (int i = 0; i < 3; i++) {
        struct ir_builder builder = ir_builder_make(module, "f", IR_BUILD_ALL);
        uint32_t called = i == 0 ? first : i == 1 ? second : renamed;
        ir_callback(&builder, called, 0, 0, NULL, 0, NULL);
        ir_callback(&builder, called, 0, 0, NULL, 0, NULL);
        struct ir_graph *g = ir_canonical(ir_finish(&builder));
        ck_assert_uint_eq(g->nodes.count, 2);
        key[i] = ir_graph_key(g);
        across[i] = ir_graph_key_across(g);
    }
    ck_assert(key[0].lo != key[1].lo || key[0].hi != key[1].hi);
    ck_assert(across[0].lo == across[1].lo && across[0].hi == across[1].hi);
    ck_assert(across[0].lo != across[2].lo || across[0].hi != across[2].hi);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_text_round_trip);
    tcase_add_test(t, test_effects_are_content);
    tcase_add_test(t, test_messages);
    tcase_add_test(t, test_nothing_to_check);
    tcase_add_loop_test(t, test_faults, 0, (int)(sizeof faults / sizeof *faults));
    tcase_add_test(t, test_order_and_number);
    tcase_add_test(t, test_callback);
    tcase_add_test(t, test_hosts);
}

int main(void) { return suite_run("effects", add_tests); }
