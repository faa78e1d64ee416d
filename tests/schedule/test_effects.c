// SPDX-License-Identifier: Apache-2.0
// Effects under every transform: they are kept, in order, and done once.
#include "schedule_support.h"

#include "ir/control.h"

// The texts of the checks that a run comes by when every branch is taken and every loop runs once.
static void list_checks(const struct ir_graph *g, struct strbuf *s)
{
    ir_for_each_node (g, n) {
        if (n->op == IR_check)
            strbuf_printf(s, "%s;", ir_check_text(module->arena, n->attrs));
        const int64_t *functions;
        int count = n->attrs ? ir_bodies_of(n, &functions) : 0;
        if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL)
            count = 1;
        for (int i = 0; i < count; i++)
            list_checks(ir_function(module, (uint32_t)functions[i]), s);
        if (n->op == IR_while) // the test is made once more
            list_checks(ir_function(module, (uint32_t)functions[0]), s);
    }
}

static const char *checks_of(uint32_t f)
{
    struct strbuf s = strbuf_make(module->arena), report = strbuf_make(module->arena);
    ck_assert_msg(ir_verify(graph(f), &report) == 0, "%s", report.text);
    list_checks(graph(f), &s);
    return s.text;
}

#define CHECK(value, text) "  check " value " {message=\"" text "\", place=\"\"}\n"

static const struct program {
    const char *name, *text, *checks;
} programs[] = {
    {"beside the results",
     "jot ir 1\n"
     "function @0 f(%x: f64[], %k: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "a") //
     "  %y = sin %x : f64[]\n"
     "  %q = lt %y, %k : bool[]\n" CHECK("%q", "b") //
     "  %z = mul %y, %x : f64[]\n"
     "  return %z\n"
     "}\n",
     "a;b;"},
    {"in a call that nothing else needs, and in one",
     "jot ir 1\n"
     "function @0 g(%x: f64[], %k: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "a") //
     "  %y = sin %x : f64[]\n"
     "  return %y\n"
     "}\n"
     "function @1 f(%x: f64[], %k: f64[]) {\n"
     "  %u = call %x, %k {functions=[@0]} : f64[]\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "b") //
     "  %y = call %x, %k {functions=[@0]} : f64[]\n"
     "  return %y\n"
     "}\n",
     "a;b;a;"},
    {"in a checkpoint",
     "jot ir 1\n"
     "function @0 g(%x: f64[], %k: f64[]) {\n"
     "  %y = sin %x : f64[]\n"
     "  %p = lt %y, %k : bool[]\n" CHECK("%p", "a") //
     "  %z = mul %y, %x : f64[]\n"
     "  return %z\n"
     "}\n"
     "function @1 f(%x: f64[], %k: f64[]) {\n"
     "  %y = checkpoint %x, %k {functions=[@0]} : f64[]\n"
     "  return %y\n"
     "}\n",
     "a;"},
    {"in a loop, of a const and of a carry",
     "jot ir 1\n"
     "function @0 step(%k: f64[], %x: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "a") //
     "  %y = sin %x : f64[]\n"
     "  %z = mul %y, %x : f64[]\n"
     "  %q = lt %k, %k : bool[]\n" CHECK("%q", "b") //
     "  return %z\n"
     "}\n"
     "function @1 f(%x: f64[], %k: f64[]) {\n"
     "  %y = scan %k, %x {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : f64[]\n"
     "  %p = lt %y, %k : bool[]\n" CHECK("%p", "c") //
     "  return %y\n"
     "}\n",
     "a;b;c;"},
    {"in a loop that gives nothing",
     "jot ir 1\n"
     "function @0 step(%k: f64[], %s: f64[]) {\n"
     "  %p = lt %s, %k : bool[]\n" CHECK("%p", "a") //
     "  return\n"
     "}\n"
     "function @1 f(%x: f64[], %k: f64[]) {\n"
     "  %s = broadcast_in_dim %x {dims=[4], axes=[]} : f64[4]\n"
     "  scan %k, %s {reverse=0, length=4, n_consts=1, n_carry=0, functions=[@0]}\n"
     "  return %x\n"
     "}\n",
     "a;"},
    {"in a while with a bound, in its test too",
     "jot ir 1\n"
     "function @0 test(%k: f64[], %x: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "a") //
     "  return %p\n"
     "}\n"
     "function @1 step(%k: f64[], %x: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "b") //
     "  %y = add %x, %x : f64[]\n"
     "  %z = mul %y, %x : f64[]\n"
     "  return %z\n"
     "}\n"
     "function @2 f(%x: f64[], %k: f64[]) {\n"
     "  %y = while %k, %x {n_consts=1, max_trips=5, functions=[@0, @1]} : f64[]\n"
     "  return %y\n"
     "}\n",
     "a;b;a;"},
    {"in branches",
     "jot ir 1\n"
     "function @0 left(%x: f64[], %k: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n" CHECK("%p", "a") //
     "  %y = sin %x : f64[]\n"
     "  return %y\n"
     "}\n"
     "function @1 right(%x: f64[], %k: f64[]) {\n"
     "  %y = mul %x, %x : f64[]\n"
     "  %p = lt %y, %k : bool[]\n" CHECK("%p", "b") //
     "  return %y\n"
     "}\n"
     "function @2 f(%x: f64[], %k: f64[]) {\n"
     "  %p = lt %x, %k : bool[]\n"
     "  %i = convert %p {dtype=i32} : i32[]\n"
     "  %y = cond %i, %x, %k {functions=[@0, @1]} : f64[]\n"
     "  return %y\n"
     "}\n",
     "a;b;"},
};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

static void same_checks(const char *what, uint32_t f, const char *want)
{
    ck_assert_msg(!strcmp(checks_of(f), want), "%s: %s, not %s\n%s", what, checks_of(f), want,
                  ir_graph_text(graph(f)));
}

START_TEST(test_kept_once)
{
    const struct program *p = &programs[_i];
    uint32_t f = parse(p->text), g;
    const bool x[] = {true, false};
    bool nonzero[1];
    same_checks("dce", pass_dce(module, f), p->checks);
    same_checks("simplify", pass_simplify(module, f), p->checks);
    same_checks("inline", pass_inline(module, f, 1000), p->checks);
    same_checks("fma", pass_form_fma(module, f), p->checks);
    require(pass_jvp(module, f, x, &g, nonzero));
    same_checks("jvp", pass_simplify(module, g), p->checks);
    require(pass_vjp(module, f, x, &g));
    same_checks("vjp", pass_simplify(module, g), p->checks);
    require(pass_grad(module, f, x, &g));
    same_checks("grad", pass_simplify(module, g), p->checks);
    require(pass_grad(module, g, x, &g));
    same_checks("grad of grad", pass_simplify(module, g), p->checks);
    require(pass_vmap(module, f, x, 3, &g, NULL));
    same_checks("vmap", pass_simplify(module, g), p->checks);
    struct pass_split s;
    require(pass_linearize(module, f, x, &s));
    same_checks("forward part", s.forward, p->checks);
    same_checks("linear part", s.linear, "");
    require(pass_transpose(module, s.linear, s.n_residuals, &g));
    same_checks("transpose", g, "");
    same_checks("strip", pass_dce(module, f), p->checks);
}
END_TEST

// Results of f at x, or the message of the check that fails.
static const char *outcome(uint32_t f, struct ir_tensor x, struct ir_tensor k, double *y)
{
    struct ir_tensor in[] = {x, k}, out[4];
    jot_status status = ir_eval(module->arena, graph(f), in, out);
    if (status == JOT_OK) {
        *y = element(out[0], 0).re;
        return "";
    }
    ck_assert_int_eq(status, JOT_ERR_CHECK);
    return jot_error_message();
}

// A mapped program fails where some lane does alone, and names one that does.
START_TEST(test_lanes_are_named)
{
    const struct program *p = &programs[_i];
    const bool both[] = {true, true};
    uint32_t f = parse(p->text), g;
    require(pass_vmap(module, f, both, 3, &g, NULL));
    g = pass_simplify(module, g);
    for (int which = 0; which < 8; which++) {
        struct ir_tensor x = zeros(F64(3)), k = zeros(F64(3));
        bool fails[3], any = false;
        for (int i = 0; i < 3; i++) {
            double y;
            ((double *)x.data)[i] = 0.5;
            ((double *)k.data)[i] = which >> i & 1 ? 2 : -2;
            fails[i] = *outcome(f, lane(x, i), lane(k, i), &y);
            any = any || fails[i];
        }
        double y;
        const char *message = outcome(g, x, k, &y);
        const char *at = strstr(message, "in lane ");
        ck_assert_msg(any == (*message != 0), "%s: %d, %s", p->name, which, message);
        ck_assert_msg(!at || fails[at[8] - '0'], "%s: %d, %s", p->name, which, message);
        ck_assert_msg(!any || at, "%s: %s", p->name, message);
    }
}
END_TEST

// Of two maps the outer one comes first, whether lanes are checked at once or one after the other.
START_TEST(test_lanes_of_two_maps)
{
    const bool both[] = {true, true};
    uint32_t f = parse(programs[_i].text), g;
    double half = 0.5, bad = 2, good = -2, y;
    if (!*outcome(f, (struct ir_tensor){F64_SCALAR, &half},
                  (struct ir_tensor){F64_SCALAR, &bad}, &y)) {
        bad = -2;
        good = 2;
    }
    if (*outcome(f, (struct ir_tensor){F64_SCALAR, &half},
                 (struct ir_tensor){F64_SCALAR, &good}, &y))
        return; // every lane fails
    require(pass_vmap(module, f, both, 3, &g, NULL));
    require(pass_vmap(module, g, both, 2, &g, NULL));
    g = pass_simplify(module, g);
    for (int which = 0; which < 6; which++) {
        struct ir_tensor x = zeros(F64(2, 3)), k = zeros(F64(2, 3));
        char want[32];
        for (int i = 0; i < 6; i++) {
            ((double *)x.data)[i] = half;
            ((double *)k.data)[i] = i == which ? bad : good;
        }
        snprintf(want, sizeof want, "in lanes %d, %d", which / 3, which % 3);
        const char *message = outcome(g, x, k, &y);
        ck_assert_msg(strstr(message, want) != NULL, "%s: %d, %s", programs[_i].name, which,
                      message);
    }
}
END_TEST

// A branch that a lane does not take does not check it.
START_TEST(test_branch_not_taken)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0 left(%x: f64[]) {\n"
                       "  %z = const {data=0} : f64[]\n"
                       "  %p = gt %x, %z : bool[]\n" CHECK("%p", "positive") //
                       "  return %x\n"
                       "}\n"
                       "function @1 right(%x: f64[]) {\n"
                       "  %y = neg %x : f64[]\n"
                       "  return %y\n"
                       "}\n"
                       "function @2 f(%x: f64[], %i: i32[]) {\n"
                       "  %y = cond %i, %x {functions=[@0, @1]} : f64[]\n"
                       "  return %y\n"
                       "}\n");
    const bool both[] = {true, true};
    uint32_t g;
    require(pass_vmap(module, f, both, 2, &g, NULL));
    double x[2] = {3, -4};
    int32_t right[2] = {0, 1}, wrong[2] = {0, 0};
    struct ir_tensor in[] = {{F64(2), x}, {type_of_dims(JOT_I32, 1, (int64_t[]){2}), right}};
    struct ir_tensor *out = evaluate(g, in);
    ck_assert_double_eq(element(*out, 0).re, 3);
    ck_assert_double_eq(element(*out, 1).re, 4);
    in[1].data = wrong;
    struct ir_tensor none;
    ck_assert_int_eq(ir_eval(module->arena, graph(g), in, &none), JOT_ERR_CHECK);
}
END_TEST

// A lane that has left a while is not checked any more.
START_TEST(test_lane_that_is_done)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0 test(%x: f64[]) {\n"
                       "  %k = const {data=8} : f64[]\n"
                       "  %p = lt %x, %k : bool[]\n"
                       "  return %p\n"
                       "}\n"
                       "function @1 step(%x: f64[]) {\n"
                       "  %k = const {data=8} : f64[]\n"
                       "  %p = lt %x, %k : bool[]\n" CHECK("%p", "running") //
                       "  %y = add %x, %x : f64[]\n"
                       "  return %y\n"
                       "}\n"
                       "function @2 f(%x: f64[]) {\n"
                       "  %y = while %x {n_consts=0, functions=[@0, @1]} : f64[]\n"
                       "  return %y\n"
                       "}\n");
    const bool mapped[] = {true};
    uint32_t g;
    require(pass_vmap(module, f, mapped, 3, &g, NULL));
    double x[3] = {1, 7, 9};
    struct ir_tensor in = {F64(3), x}, *out = evaluate(g, &in);
    ck_assert_double_eq(element(*out, 0).re, 8);
    ck_assert_double_eq(element(*out, 1).re, 14);
    ck_assert_double_eq(element(*out, 2).re, 9);
}
END_TEST

// A derivative of a value that a loop computes runs the loop again, but does not check again.
START_TEST(test_derivative_of_a_value)
{
    uint32_t step = parse("jot ir 1\n"
                          "function @0 step(%x: f64[]) {\n"
                          "  %z = const {data=0} : f64[]\n"
                          "  %p = gt %x, %z : bool[]\n" CHECK("%p", "a") //
                          "  %y = sin %x : f64[]\n"
                          "  return %y\n"
                          "}\n");
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), d, t, one = ir_scalar(&b, JOT_F64, 1);
    struct ir_scan s = {.body = step, .n_carry = 1, .length = 3};
    ir_id y = ir_scan(&b, &s, 1, &x);
    ck_assert(pass_gradient_in(&b, y, 1, &x, &d));
    ck_assert(pass_tangent_in(&b, y, 1, &x, &one, &t));
    ir_output(&b, y);
    ir_output(&b, d);
    ir_output(&b, t);
    uint32_t f = done(&b);
    same_checks("derivatives", f, "a;");
    same_checks("simplified", pass_simplify(module, f), "a;");
}
END_TEST

static jot_status count_call(void *ctx, const jot_callback_call *call)
{
    (void)call;
    ++*(int *)ctx;
    return JOT_OK;
}

// A test with an effect is made once before each trip and once after the last, also by reverse
// mode, whose loop has as many trips as the bound.
START_TEST(test_of_a_bounded_loop)
{
    int calls = 0;
    struct ir_host host = {.name = "count", .call = count_call, .ctx = &calls};
    ck_assert_uint_eq(ir_host_add(module, &host), 0);
    uint32_t f = parse(
                 "jot ir 1\n"
                 "function @0 test(%k: f64[], %x: f64[]) {\n"
                 "  callback %x {host=0, lanes=0, results=[]}\n"
                 "  %p = lt %x, %k : bool[]\n"
                 "  return %p\n"
                 "}\n"
                 "function @1 step(%k: f64[], %x: f64[]) {\n"
                 "  %y = add %x, %x : f64[]\n"
                 "  return %y\n"
                 "}\n"
                 "function @2 f(%k: f64[], %x: f64[]) {\n"
                 "  %y = while %k, %x {n_consts=1, max_trips=4, functions=[@0, @1]} : f64[]\n"
                 "  return %y\n"
                 "}\n"),
             g[3] = {f};
    require(pass_jvp(module, f, mask_of(2, 2), &g[1], NULL));
    require(pass_vjp(module, f, mask_of(2, 2), &g[2]));
    static const struct {
        double k;
        int calls;
        double slope;
    } rows[] = {{0, 1, 1}, {4, 3, 4}, {16, 5, 16}, {100, 5, 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 3; k++) {
            struct ir_tensor in[] = {scalar_f64(rows[i].k), scalar_f64(1), scalar_f64(1)};
            calls = 0;
            struct ir_tensor *y = evaluate(g[k], in);
            ck_assert_int_eq(calls, rows[i].calls);
            if (k > 0)
                ck_assert_double_eq(element(y[1], 0).re, rows[i].slope);
        }
}
END_TEST

// A bound as a count: the same carries, in every lane.
START_TEST(test_bound_as_a_count)
{
    uint32_t f =
        parse("jot ir 1\n"
              "function @0 test(%a: f64[], %x: f64[]) {\n"
              "  %p = lt %x, %a : bool[]\n"
              "  return %p\n"
              "}\n"
              "function @1 step(%a: f64[], %x: f64[]) {\n"
              "  %y = add %x, %x : f64[]\n"
              "  return %y\n"
              "}\n"
              "function @2 inside(%a: f64[], %x: f64[]) {\n"
              "  %y = while %a, %x {n_consts=1, max_trips=3, functions=[@0, @1]} : f64[]\n"
              "  return %y\n"
              "}\n"
              "function @3 f(%a: f64[], %x: f64[]) {\n"
              "  %y = scan %a, %x {reverse=0, length=2, n_consts=1, n_carry=1, "
              "functions=[@2]} : f64[]\n"
              "  return %y\n"
              "}\n");
    const bool mapped[] = {false, true};
    uint32_t g;
    require(pass_vmap(module, f, mapped, 4, &g, NULL));
    double a = 50, x[4] = {0.5, 7, 60, 3};
    struct ir_tensor in[] = {{F64_SCALAR, &a}, {F64(4), x}}, *want = evaluate(g, in);
    uint32_t counted = pass_count_trips(module, g);
    ck_assert(strstr(ir_graph_text(graph(g)), "max_trips") != NULL);
    ck_assert(strstr(ir_graph_text(graph(counted)), "max_trips") == NULL);
    ck_assert(bits_equal(*evaluate(counted, in), *want));
    ck_assert_double_eq(element(*want, 0).re, 32);
    ck_assert_double_eq(element(*want, 1).re, 56);
    ck_assert_double_eq(element(*want, 2).re, 60);
}
END_TEST

// The steps of checks come in their order, whatever is computed where.
START_TEST(test_schedule)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0 f(%x: f64[3], %k: f64[3]) {\n"
                       "  %y = cumsum %x {axis=0, reverse=0} : f64[3]\n"
                       "  %p = lt %y, %k : bool[3]\n" CHECK("%p", "late")        //
                       "  %q = lt %x, %k : bool[3]\n" CHECK("%q", "early")       //
                       "  %t = const {data=true} : bool[]\n" CHECK("%t", "true") //
                       "  return %x\n"
                       "}\n");
    struct nest_program *p;
    require(pass_schedule(module->arena, graph(f), NULL, &p));
    struct strbuf s = strbuf_make(module->arena), report = strbuf_make(module->arena);
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_CHECK)
            strbuf_printf(&s, "%s;", p->steps.at[i].text);
    ck_assert_str_eq(s.text, "late;early;true;");
    ck_assert_msg(nest_program_verify(p, &report) == 0, "%s", report.text);
    ck_assert_msg(plan_verify(p, &report) == 0, "%s", report.text);
    struct strbuf text = strbuf_make(module->arena), again = strbuf_make(module->arena);
    struct nest_program *q;
    nest_program_print(&text, p);
    require(nest_program_parse(module->arena, text.text, &q));
    nest_program_print(&again, q);
    ck_assert_str_eq(text.text, again.text);
}
END_TEST

// A check has no result: the update behind it is made in the memory of its own operand, not in that
// of the flags.
START_TEST(test_schedule_of_an_update_behind)
{
    uint32_t f =
        parse("jot ir 1\n"
              "function @0 f(%x: f64[], %h: i32[4], %at: i32[4,1], %u: i32[4]) {\n"
              "  %y = sqrt %x : f64[]\n"
              "  %p = eq %y, %y : bool[]\n" CHECK("%p", "a") //
              "  %z = scatter_add %h, %at, %u {offset_dims=[], collapsed_dims=[0], "
              "operand_batch=[], index_batch=[], index_map=[0], unique=0, mode=3} : i32[4]\n"
              "  %s = reduce_sum %z {axes=[0]} : i32[]\n"
              "  return %y, %s\n"
              "}\n");
    double x = 4;
    int32_t h[4] = {1, 2, 3, 4}, at[4] = {0, 2, 2, 9}, u[4] = {5, 6, 7, 8};
    void *inputs[] = {&x, h, at, u}, *outputs[] = {&(double){0}, &(int32_t){0}};
    struct ir_tensor in[4];
    for (uint32_t i = 0; i < 4; i++)
        in[i] = (struct ir_tensor){ir_type_of(graph(f), i), inputs[i]};
    struct nest_program *p = schedule(f);
    check_program(f, p);
    check_run(f, p, in);
    x = -1;
    ck_assert_int_eq(nest_program_eval(p, inputs, outputs), JOT_ERR_CHECK);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_kept_once, 0, N_PROGRAMS);
    tcase_add_loop_test(t, test_lanes_of_two_maps, 0, N_PROGRAMS);
    tcase_add_loop_test(t, test_lanes_are_named, 0, N_PROGRAMS);
    tcase_add_test(t, test_branch_not_taken);
    tcase_add_test(t, test_lane_that_is_done);
    tcase_add_test(t, test_derivative_of_a_value);
    tcase_add_test(t, test_of_a_bounded_loop);
    tcase_add_test(t, test_bound_as_a_count);
    tcase_add_test(t, test_schedule);
    tcase_add_test(t, test_schedule_of_an_update_behind);
}

int main(void) { return support_run("effects", add_tests); }
