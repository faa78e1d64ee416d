// SPDX-License-Identifier: Apache-2.0
// Loops that read rows of others: one kernel, or why not, and the evaluator's bits either way.
#include "control_schedule.h"
#include "nest/nest_support.h"

#define THERE(lanes, trips)                                                                    \
    "jot ir 1\n"                                                                               \
    "function @0(%x: f32[" lanes "]) {\n"                                                      \
    "  %y = sin %x : f32[" lanes "]\n"                                                         \
    "  return %y, %x\n"                                                                        \
    "}\n"                                                                                      \
    "function @1(%g: f32[" lanes "], %r: f32[" lanes "]) {\n"                                  \
    "  %p = mul %g, %r : f32[" lanes "]\n"                                                     \
    "  %q = add %p, %r : f32[" lanes "]\n"                                                     \
    "  return %q\n"                                                                            \
    "}\n"                                                                                      \
    "function @2 f(%x: f32[" lanes "]) {\n"                                                    \
    "  %y, %r = scan %x {reverse=0, length=" trips ", n_consts=0, n_carry=1, functions=[@0]} " \
    ": f32[" lanes "], f32[" trips "," lanes "]\n"
#define BACK(z, d, s, lanes, trips)                                                            \
    "  " z " = scan " d ", " s " {reverse=1, length=" trips                                    \
    ", n_consts=0, n_carry=1, functions=[@1]} : f32[" lanes "]\n"

static const struct {
    const char *name, *text;
    const char *reasons; // of the steps, in order
} programs[] = {
    {"rows as they are", THERE("5", "9") BACK("%z", "%y", "%r", "5", "9") "  return %z\n}\n",
     "resident, 2 loops"},
    {"what is between them",
     THERE("5", "9") "  %d = cos %y : f32[5]\n"
                     "  %e = mul %d, %x : f32[5]\n" BACK("%z", "%e", "%r", "5",
                                                         "9") "  return %z, %d\n}\n",
     "resident, 2 loops"},
    {"rows are a result too",
     THERE("5", "9") BACK("%z", "%y", "%r", "5", "9") "  return %r, %z, %y\n}\n",
     "resident, 2 loops"},
    {"transposed rows are a result",
     THERE("5", "9") BACK("%z", "%y", "%r", "5", "9") "  %t = transpose %r {axes=[1, 0]} : "
                                                      "f32[5,9]\n  return %t, %z\n}\n",
     "resident, 2 loops"},
    {"rows are changed and turned round",
     THERE("5", "9") "  %c = cos %r : f32[9,5]\n"
                     "  %s = rev %c {axes=[0]} : f32[9,5]\n" BACK("%z", "%y", "%s", "5",
                                                                  "9") "  return %z\n}\n",
     "resident, 2 loops"},
    {"a few rows are changed, and a result",
     THERE("5", "9") "  %s = cos %r : f32[9,5]\n" BACK("%z", "%y", "%s", "5",
                                                       "9") "  return %z, %s\n}\n",
     "resident, 2 loops"},
    {"many rows are changed, and a result",
     THERE("5", "90") "  %s = cos %r : f32[90,5]\n" BACK("%z", "%y", "%s", "5",
                                                         "90") "  return %z, %s\n}\n",
     "resident, 2 loops"},
    {"a sum over time",
     THERE("5", "90") "  %m = reduce_sum %r {axes=[0]} : f32[5]\n"
                      "  %s = broadcast_in_dim %m {dims=[90, 5], axes=[1]} : f32[90,5]\n"
                      "  %t = mul %s, %r : f32[90,5]\n" BACK("%z", "%y", "%t", "5",
                                                             "90") "  return %z\n}\n",
     "resident, 2 loops"},
    {"a sum over lanes",
     THERE("5", "9") "  %m = reduce_sum %y {axes=[0]} : f32[]\n"
                     "  %d = mul %m, %y : f32[5]\n" BACK("%z", "%d", "%r", "5",
                                                         "9") "  return %z\n}\n",
     "resident; operand of a loop; resident, not joined: they have different lanes"},
    {"rows of other lanes",
     THERE("5", "9") "  %s = rev %r {axes=[1]} : f32[9,5]\n" BACK("%z", "%y", "%s", "5",
                                                                  "9") "  return %z\n}\n",
     "resident; resident, not joined: they have different lanes"},
    {"rows become lanes",
     THERE("9", "9") "  %s = transpose %r {axes=[1, 0]} : f32[9,9]\n" BACK(
         "%z", "%y", "%s", "9", "9") "  return %z\n}\n",
     "resident; resident, not joined: they have different lanes"},
    {"more than a lane may keep",
     THERE("3", "9000") BACK("%z", "%y", "%r", "3", "9000") "  return %z\n}\n",
     "resident; resident, not joined: too many rows are kept for a lane: scan"},
    {"more than the caches may keep of all lanes",
     THERE("500", "9000") BACK("%z", "%y", "%r", "500", "9000") "  return %z\n}\n",
     "resident, 2 loops"},
    {"three loops",
     THERE("5", "9") BACK("%d", "%y", "%r", "5", "9")
         BACK("%z", "%d", "%r", "5", "9") "  return %z\n}\n",
     "resident, 3 loops"},
    {"two pairs that are the same",
     THERE("5", "9") "  %a = cos %y : f32[5]\n" BACK(
         "%b", "%a", "%r", "5", "9") "  %c, %t = scan %b {reverse=0, length=9, n_consts=0, "
                                     "n_carry=1, functions=[@0]} : "
                                     "f32[5], f32[9,5]\n"
                                     "  %u = reduce_sum %c {axes=[0]} : f32[]\n"
                                     "  %v = mul %u, %c : f32[5]\n"
                                     "  %w, %k = scan %v {reverse=0, length=9, n_consts=0, "
                                     "n_carry=1, functions=[@0]} : "
                                     "f32[5], f32[9,5]\n"
                                     "  %e = cos %w : f32[5]\n" BACK("%z", "%e", "%k", "5",
                                                                     "9") "  return %z\n}\n",
     "resident, 2 loops; resident; operand of a loop; resident, 2 loops"},
    {"a check between them",
     THERE("5", "9") "  %zero = const {data=-8} : f32[]\n"
                     "  %ok = gt %y, %zero : bool[5]\n"
                     "  %all = reduce_and %ok {axes=[0]} : bool[]\n"
                     "  check %all {message=\"small\", place=\"\"}\n" BACK(
                         "%z", "%y", "%r", "5", "9") "  return %z\n}\n",
     "resident; operand of an effect; resident, not joined: an effect stands between them; "
     "the host does an effect: check"},
    {"no lanes", THERE("1", "9") BACK("%z", "%y", "%r", "1", "9") "  return %z\n}\n",
     "resident, 2 loops"},
};

static const char *reasons_of(const struct nest_program *p)
{
    struct strbuf b = strbuf_make(module->arena);
    for (uint32_t i = 0; i < p->steps.count; i++)
        strbuf_printf(&b, "%s%s", i ? "; " : "",
                      p->steps.at[i].reason ? p->steps.at[i].reason
                                            : nest_step_name(p->steps.at[i].kind));
    return b.text;
}

START_TEST(joined_or_why_not)
{
    uint32_t f = simplified(parse(programs[_i].text));
    struct nest_program *p = schedule(f);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    ck_assert_msg(!strcmp(reasons_of(p), programs[_i].reasons), "%s:\n%s\n%s",
                  programs[_i].name, reasons_of(p), programs[_i].reasons);
}
END_TEST

// What the way back reads of the way there stays in the kernel, whatever is kept.
START_TEST(gradients_are_one_kernel)
{
    static const char *const kept[] = {"", ", checkpoint=-1", ", checkpoint=-2",
                                       ", checkpoint=5"};
    struct strbuf text = strbuf_make(module->arena);
    strbuf_printf(&text,
                  "jot ir 1\n"
                  "function @0(%%a: f64[], %%x: f64[], %%n: f32[]) {\n"
                  "  %%p = sin %%x : f64[]\n"
                  "  %%q = mul %%a, %%p : f64[]\n"
                  "  %%m = cos %%n : f32[]\n"
                  "  %%c = convert %%m {dtype=f64} : f64[]\n"
                  "  %%y = mul %%q, %%c : f64[]\n"
                  "  return %%y, %%m, %%q\n"
                  "}\n"
                  "function @1 f(%%a: f64[], %%x: f64[], %%n: f32[]) {\n"
                  "  %%y, %%m, %%r = scan %%a, %%x, %%n {reverse=0, length=%d, n_consts=1, "
                  "n_carry=2%s, functions=[@0]} : f64[], f32[], f64[%d]\n"
                  "  return %%y, %%m, %%r\n"
                  "}\n",
                  _i % 3 ? 20 : 110, kept[_i % 4], _i % 3 ? 20 : 110);
    for (int lanes = 0; lanes < 2; lanes++) {
        uint32_t f = backward(parse(text.text));
        f = simplified(lanes ? mapped(f, all_inputs(f), 5) : f);
        struct nest_program *p = schedule(f);
        check_program(f, p);
        check_run(f, p, draw_inputs(f, seed));
        // Rows of the inner of two loops are put together by a copy where lanes stand before them.
        const char *want =
            _i % 4 < 2 || !lanes ? "resident, 2 loops" : "resident, 2 loops; result";
        require_of(!strcmp(reasons_of(p), want), reasons_of(p), f, p);
    }
}
END_TEST

// The nest of a gradient, word for word.
START_TEST(text_of_a_gradient)
{
    uint32_t f = backward(parse("jot ir 1\n"
                                "function @0(%k: f32[], %x: f32[], %v: f32[]) {\n"
                                "  %h = const {data=0.01} : f32[]\n"
                                "  %p = mul %k, %x : f32[]\n"
                                "  %n = neg %p : f32[]\n"
                                "  %w = fma %n, %h, %v : f32[]\n"
                                "  %y = fma %w, %h, %x : f32[]\n"
                                "  return %y, %w\n"
                                "}\n"
                                "function @1 f(%k: f32[]) {\n"
                                "  %x = const {data=1} : f32[]\n"
                                "  %v = const {data=0} : f32[]\n"
                                "  %1, %2 = scan %k, %x, %v {reverse=0, length=1000, "
                                "n_consts=1, n_carry=2, functions=[@0]} : f32[], f32[]\n"
                                "  return %1\n"
                                "}\n"));
    struct nest_program *p = schedule(simplified(mapped(f, 3, 16)));
    ck_assert_uint_eq(p->nests.count, 1);
    ck_assert_str_eq(print_nest(module->arena, p->nests.at[0]),
                     read_nest_file(module->arena, "spring_grad"));
}
END_TEST

// Derivatives of a mean over lanes, and of a while that keeps states: as machine code the
// evaluator's bits, in so many loops of one kernel.
static const struct {
    const char *name, *text, *reasons;
} gradients[] = {
    {"a mean over lanes",
     "jot ir 1\n"
     "function @0(%a: f32[5], %x: f32[5]) {\n"
     "  %p = mul %a, %x : f32[5]\n"
     "  %y = sin %p : f32[5]\n"
     "  return %y\n"
     "}\n"
     "function @1 f(%a: f32[5], %x: f32[5]) {\n"
     "  %y = scan %a, %x {reverse=0, length=20, n_consts=1, n_carry=1, functions=[@0]} : "
     "f32[5]\n"
     "  %s = reduce_sum %y {axes=[0]} : f32[]\n"
     "  %n = const {data=5} : f32[]\n"
     "  %m = div %s, %n : f32[]\n"
     "  return %m\n"
     "}\n",
     "operand of a loop; resident, 2 loops; result"},
    {"a while without a bound",
     "jot ir 1\n"
     "function @0 test(%a: f32[], %x: f32[]) {\n"
     "  %p = lt %x, %a : bool[]\n"
     "  return %p\n"
     "}\n"
     "function @1 step(%a: f32[], %x: f32[]) {\n"
     "  %y = mul %x, %x : f32[]\n"
     "  %one = const {data=1} : f32[]\n"
     "  %z = add %y, %one : f32[]\n"
     "  return %z\n"
     "}\n"
     "function @2 f(%a: f32[], %x: f32[]) {\n"
     "  %y = while %a, %x {n_consts=1, slots=4, functions=[@0, @1]} : f32[]\n"
     "  return %y\n"
     "}\n",
     "resident, 2 loops; result"},
};

START_TEST(gradients_join)
{
    uint32_t f = backward(parse(gradients[_i].text));
    f = simplified(_i == 1 ? mapped(f, all_inputs(f), 5) : f);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    require_of(!strcmp(reasons_of(p), gradients[_i].reasons), reasons_of(p), f, p);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, text_of_a_gradient);
    tcase_add_loop_test(t, joined_or_why_not, 0, sizeof programs / sizeof *programs);
    tcase_add_loop_test(t, gradients_are_one_kernel, 0, 12);
    tcase_add_loop_test(t, gradients_join, 0, sizeof gradients / sizeof *gradients);
}

int main(void) { return support_run("join", add_tests); }
