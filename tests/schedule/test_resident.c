// SPDX-License-Identifier: Apache-2.0
// Loops and branches as single kernels: the evaluator's bits, alone, mapped over any axes, mapped
// twice, differentiated, and both.
#include "base/strbuf.h"
#include "control_schedule.h"
#include "ir/cost.h"

enum { LANES = 5 };

// Every loop of the function is one kernel, and the program gives the evaluator's bits.
static void check_resident(const char *what, uint32_t f)
{
    struct nest_program *p;
    f = simplified(f);
    jot_status status = pass_schedule(module->arena, graph(f), NULL, &p);
    if (status != JOT_OK)
        fprintf(stderr, "%s\n%s\n", what, ir_graph_text(graph(f)));
    ck_assert_msg(status == JOT_OK, "%s: %s", what, jot_error_message());
    check_program(f, p);
    bool is_nothing = p->nests.count == 0; // of no lanes
    require_of(is_nothing || count_resident(p) == count_control(f), what, f, p);
    check_run(f, p, draw_inputs(f, seed));
}

START_TEST(alone)
{
    check_resident(control_programs[_i].name, parse(control_programs[_i].text));
}
END_TEST

START_TEST(mapped_over_any_inputs)
{
    uint32_t f = parse(control_programs[_i].text);
    for (uint64_t bits = all_inputs(f); bits; bits--)
        check_resident(control_programs[_i].name, mapped(f, bits, bits == 1 ? 0 : LANES));
}
END_TEST

START_TEST(mapped_twice)
{
    uint32_t f = parse(control_programs[_i].text);
    for (uint64_t bits = all_inputs(f); bits; bits--) {
        uint64_t other = (bits * 5 + 3) & all_inputs(f);
        check_resident(control_programs[_i].name,
                       mapped(mapped(f, bits, 3), other ? other : bits, LANES));
    }
}
END_TEST

START_TEST(derivatives)
{
    uint32_t f = parse(control_programs[_i].text), g;
    check_resident(control_programs[_i].name, forward(f));
    check_resident(control_programs[_i].name, mapped(forward(f), all_inputs(f), LANES));
    if (control_programs[_i].kind == CONTROL_NO_BOUND)
        return;
    g = backward(f);
    check_resident(control_programs[_i].name, g);
    check_resident(control_programs[_i].name, mapped(g, all_inputs(g), LANES));
}
END_TEST

// A loop that is one kernel is one whatever it is mapped over.
START_TEST(random_loops)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t state = seed + (uint64_t)_i * 1000 + i;
        uint32_t f = simplified(random_loop(state, 3 + (int)(i % 9)));
        struct nest_program *p;
        if (!count_control(f) || pass_schedule(module->arena, graph(f), NULL, &p) != JOT_OK ||
            count_resident(p) != count_control(f))
            continue;
        check_resident("random loop", f);
        uint32_t g = mapped(f, all_inputs(f), LANES);
        check_resident("random loop, mapped", g);
        check_resident("random loop, mapped twice", mapped(g, all_inputs(f), 3));
    }
}
END_TEST

// Padding between elements moves them, though the extent is what it was.
START_TEST(interior_padding_mixes)
{
    uint32_t f = simplified(parse(
        "jot ir 1\nfunction @0(%x: f64[1000]) {\n  %z = const {data=1} : f64[]\n"
        "  %y = pad %x, %z {low=[0], high=[-999], interior=[1]} : f64[1000]\n"
        "  %s = sin %y : f64[1000]\n  return %s\n}\n"
        "function @1 f(%x: f64[1000]) {\n  %y = scan %x {reverse=0, length=3, n_consts=0, "
        "n_carry=1, functions=[@0]} : f64[1000]\n  return %y\n}\n"));
    struct nest_program *p = schedule(f);
    require_of(count_resident(p) == 0, "a lane reads another one", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// What reverse mode keeps of a while without a bound, five carries of 64 slots, is moved and set
// only: the loops are one kernel all the same.
START_TEST(slots_stay_in_lanes)
{
    uint32_t f =
        parse("jot ir 1\n"
              "function @0 test(%k: f64[], %t: f64[], %a: f64[], %b: f64[], %c: f64[], "
              "%d: f64[]) {\n"
              "  %m = const {data=70} : f64[]\n"
              "  %p = lt %t, %m : bool[]\n"
              "  return %p\n"
              "}\n"
              "function @1 step(%k: f64[], %t: f64[], %a: f64[], %b: f64[], %c: f64[], "
              "%d: f64[]) {\n"
              "  %s = sin %a : f64[]\n"
              "  %u = mul %k, %s : f64[]\n"
              "  %v = cos %u : f64[]\n"
              "  %w = mul %v, %b : f64[]\n"
              "  %x = mul %c, %d : f64[]\n"
              "  %y = sin %x : f64[]\n"
              "  %one = const {data=1} : f64[]\n"
              "  %n = add %t, %one : f64[]\n"
              "  return %n, %v, %y, %w, %u\n"
              "}\n"
              "function @2 f(%k: f64[], %t: f64[], %a: f64[], %b: f64[], %c: f64[], "
              "%d: f64[]) {\n"
              "  %n, %v, %y, %w, %u = while %k, %t, %a, %b, %c, %d {n_consts=1, "
              "functions=[@0, @1]} : f64[], f64[], f64[], f64[], f64[]\n"
              "  return %v, %w\n"
              "}\n");
    uint32_t g = backward(f);
    check_resident("slots", g);
    check_resident("slots, mapped", mapped(g, all_inputs(g), LANES));
}
END_TEST

// So is a table of which a trip reads and sets an element, but not one that it sums.
START_TEST(tables_that_are_read_whole_are_not)
{
    static const char text[] =
        "jot ir 1\nfunction @0(%%i: i32[], %%x: f64[900]) {\n"
        "  %%r = dynamic_slice %%x, %%i {sizes=[1]} : f64[1]\n"
        "  %%s = sin %%r : f64[1]\n"
        "  %%t = reduce_sum %%%s {axes=[0]} : f64[]\n  %%u = add %%s, %%t : f64[1]\n"
        "  %%y = dynamic_update_slice %%x, %%u, %%i : f64[900]\n  return %%y\n}\n"
        "function @1 f(%%i: i32[], %%x: f64[900]) {\n  %%y = scan %%i, %%x {reverse=0, "
        "length=5, n_consts=1, n_carry=1, functions=[@0]} : f64[900]\n  return %%y\n}\n";
    char of[sizeof text];
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        snprintf(of, sizeof of, text, is_whole ? "x" : "r");
        uint32_t f = simplified(parse(of));
        struct nest_program *p = schedule(f);
        require_of(count_resident(p) == !is_whole, is_whole ? "summed" : "set", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// Loops whose trips need an array that is no carry of theirs: how much of it a lane may have.
static const struct {
    int64_t most;
    const char *text;
} arrays[] = {
    // An update of what is captured, which stays as it was for the next trip.
    {COST_LANE_BYTES + COST_TAPE_OF_FEW,
     "function @0(%x: f32[70000], %i: i32[]) {\n  %o = const {data=[1]} : f32[1]\n"
     "  %y = dynamic_update_slice %x, %o, %i : f32[70000]\n  return %y\n}\n"
     "function @1 f(%x: f32[70000], %i: i32[3]) {\n  %y = scan %x, %i {reverse=0, length=3, "
     "n_consts=1, n_carry=0, functions=[@0]} : f32[3,70000]\n  return %y\n}\n"},
    // A carry that becomes what is captured.
    {COST_LANE_BYTES,
     "function @0(%x: f32[700], %c: f32[700], %s: f32[]) {\n"
     "  %r = slice %c {starts=[0], limits=[1], strides=[1]} : f32[1]\n"
     "  %u = reshape %r {dims=[]} : f32[]\n  %t = add %s, %u : f32[]\n  return %x, %t\n}\n"
     "function @1 f(%x: f32[700], %c: f32[700], %s: f32[]) {\n  %y, %t = scan %x, %c, %s "
     "{reverse=0, length=3, n_consts=1, n_carry=2, functions=[@0]} : f32[700], f32[]\n"
     "  return %y, %t\n}\n"},
    // A loop in it that begins with ones.
    {COST_LANE_BYTES + COST_TAPE_OF_FEW,
     "function @0(%x: f32[70000], %i: i32[]) {\n"
     "  %r = dynamic_slice %x, %i {sizes=[1]} : f32[1]\n"
     "  %y = dynamic_update_slice %x, %r, %i : f32[70000]\n  return %y\n}\n"
     "function @1(%i: i32[3], %t: f32[], %j: i32[]) {\n  %o = const {data=1} : f32[]\n"
     "  %z = broadcast_in_dim %o {dims=[70000], axes=[]} : f32[70000]\n"
     "  %y = scan %z, %i {reverse=0, length=3, n_consts=0, n_carry=1, functions=[@0]} : "
     "f32[70000]\n  %r = dynamic_slice %y, %j {sizes=[1]} : f32[1]\n"
     "  %s = reshape %r {dims=[]} : f32[]\n  %u = add %t, %s : f32[]\n  return %u\n}\n"
     "function @2 f(%t: f32[], %i: i32[3]) {\n  %y = scan %i, %t, %i {reverse=0, length=3, "
     "n_consts=1, n_carry=1, functions=[@1]} : f32[]\n  return %y\n}\n"},
};
enum { ARRAYS = sizeof arrays / sizeof *arrays };

START_TEST(locals_of_a_lane_have_room)
{
    struct strbuf text = strbuf_make(module->arena);
    strbuf_printf(&text, "jot ir 1\n%s", arrays[_i].text);
    uint32_t f = simplified(parse(text.text));
    struct nest_program *p = schedule(f);
    for (uint32_t k = 0; k < p->nests.count; k++) {
        const struct nest *n = p->nests.at[k];
        int64_t bytes = 0;
        for (uint32_t i = 0; i < n->buffers.count; i++)
            if (n->buffers.at[i].role == NEST_LOCAL)
                bytes += n->buffers.at[i].count * dtype_get(n->buffers.at[i].dtype)->bytes;
        require_of(bytes <= arrays[_i].most, "too much state", f, p);
    }
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// However many branches there are or stand in one another, a code generator can read the kernels.
static const struct {
    int branches, depth;
    bool is_resident;
} choices[] = {{2, 1, true}, {3, 1, true}, {300, 1, true}, {2, 150, false}, {5, 40, false}};

// At each depth but the first a choice, by an index one less, between what is below and products.
static uint32_t function_of_choices(int branches, int depth)
{
    struct strbuf s = strbuf_make(module->arena);
    strbuf_printf(&s, "jot ir 1\nfunction @0(%%i: i32[], %%x: f64[]) {\n"
                      "  %%y = sin %%x : f64[]\n  return %%y\n}\n");
    for (int d = 0; d < depth; d++) {
        int below = d * branches;
        for (int k = 1; k < branches; k++)
            strbuf_printf(&s,
                          "function @%d(%%i: i32[], %%x: f64[]) {\n"
                          "  %%k = const {data=%d} : f64[]\n  %%y = mul %%x, %%k : f64[]\n"
                          "  return %%y\n}\n",
                          below + k, 2 + below + k);
        strbuf_printf(&s,
                      "function @%d f(%%i: i32[], %%x: f64[]) {\n"
                      "  %%one = const {data=1} : i32[]\n  %%j = sub %%i, %%one : i32[]\n"
                      "  %%y = cond %%j, %%j, %%x {functions=[@%d",
                      below + branches, below);
        for (int k = 1; k < branches; k++)
            strbuf_printf(&s, ", @%d", below + k);
        strbuf_printf(&s, "]} : f64[]\n  return %%y\n}\n");
    }
    return parse(s.text);
}

START_TEST(many_branches)
{
    uint32_t f = function_of_choices(choices[_i].branches, choices[_i].depth);
    struct nest_program *p = schedule(f), *read;
    struct strbuf text = strbuf_make(module->arena);
    require_of((p->steps.count == 1) == choices[_i].is_resident, "one kernel or not", f, p);
    nest_program_print(&text, p);
    require_of(nest_program_parse(module->arena, text.text, &read) == JOT_OK,
               jot_error_message(), f, p);
    struct ir_tensor *in = draw_inputs(f, seed);
    for (int32_t i = -1; i <= 301; i += i < 4 || i > 297 ? 1 : 7) {
        memcpy(in[0].data, &i, sizeof i);
        check_run(f, p, in);
    }
}
END_TEST

// What a product of a lane reads several times of each of is put by itself, with what it is of.
START_TEST(dear_factors_are_kept)
{
    static const char text[] =
        "jot ir 1\nfunction @0(%a: f32[4,64], %b: f32[64,4], %x: f32[20,4]) {\n"
        "  %h = dot_general %x, %a {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[]} : f32[20,64]\n  %t = tanh %h : f32[20,64]\n"
        "  %y = dot_general %t, %b {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[]} : f32[20,4]\n  return %y\n}\n"
        "function @1 f(%a: f32[4,64], %b: f32[64,4], %x: f32[20,4]) {\n  %y = scan %a, %b, %x "
        "{reverse=0, length=5, n_consts=2, n_carry=1, functions=[@0]} : f32[20,4]\n"
        "  return %y\n}\n";
    uint32_t f = simplified(parse(text));
    struct nest_program *p = schedule(f);
    struct strbuf s = strbuf_make(module->arena);
    nest_program_print(&s, p);
    const char *dear = strstr(s.text, "= tanh"), *next = dear ? strchr(dear, '\n') : NULL;
    require_of(next && !strncmp(next + strspn(next, "\n "), "put state", 9), "not kept", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// A kernel of a GPU has parameters for so many arrays; one of the host has them in memory.
START_TEST(a_kernel_of_a_gpu_has_few_arrays)
{
    enum { N_ARRAYS = 2100 };
    struct strbuf b = strbuf_make(module->arena);
    strbuf_add(&b, "jot ir 1\nfunction @0(");
    for (int i = 0; i < N_ARRAYS; i++)
        strbuf_printf(&b, "%%v%d: f32[8], ", i);
    strbuf_add(&b, "%x0: f32[8]) {\n");
    for (int i = 0; i < N_ARRAYS; i++)
        strbuf_printf(&b, "  %%x%d = add %%x%d, %%v%d : f32[8]\n", i + 1, i, i);
    strbuf_printf(&b, "  return %%x%d\n}\nfunction @1 f(%%x: f32[8]", N_ARRAYS);
    for (int i = 0; i < N_ARRAYS; i++)
        strbuf_printf(&b, ", %%v%d: f32[8]", i);
    strbuf_add(&b, ") {\n  %y = scan ");
    for (int i = 0; i < N_ARRAYS; i++)
        strbuf_printf(&b, "%%v%d, ", i);
    strbuf_printf(
        &b,
        "%%x {reverse=0, length=10, n_consts=%d, n_carry=1, functions=[@0]} : f32[8]\n"
        "  return %%y\n}\n",
        N_ARRAYS);
    uint32_t f = parse(b.text);
    for (int is_gpu = 0; is_gpu < 2; is_gpu++) {
        struct schedule_options options = {.many_lanes = is_gpu};
        struct nest_program *p;
        require(pass_schedule(module->arena, graph(f), &options, &p));
        ck_assert_int_eq(count_resident(p), !is_gpu);
        for (uint32_t i = 0; i < p->nests.count && is_gpu; i++)
            ck_assert_uint_le(p->nests.at[i]->buffers.count, COST_OPERANDS);
    }
}
END_TEST

// One lane with a product of so many rows: a core or a block would make it alone while the others wait.
START_TEST(branches_of_much_work_are_steps)
{
    static const int rows[] = {100, 100000};
    for (int k = 0; k < 4; k++) {
        struct strbuf b = strbuf_make(module->arena);
        int n = rows[k / 2];
        strbuf_printf(&b,
                      "jot ir 1\nfunction @0(%%x: f32[%d,16]) {\n"
                      "  %%y = dot_general %%x, %%x {lhs_contract=[0], rhs_contract=[0], "
                      "lhs_batch=[], rhs_batch=[], precision=0} : f32[16,16]\n"
                      "  return %%y\n}\nfunction @1(%%x: f32[%d,16]) {\n"
                      "  %%z = const {data=0} : f32[]\n"
                      "  %%y = broadcast_in_dim %%z {dims=[16, 16], axes=[]} : f32[16,16]\n"
                      "  return %%y\n}\nfunction @2 f(%%i: i32[], %%x: f32[%d,16]) {\n"
                      "  %%y = cond %%i, %%x {functions=[@0, @1]} : f32[16,16]\n"
                      "  return %%y\n}\n",
                      n, n, n);
        struct schedule_options options = {.many_lanes = k % 2, .no_gemm = true};
        struct nest_program *p;
        require(pass_schedule(module->arena, graph(parse(b.text)), &options, &p));
        ck_assert_int_eq(count_resident(p), n == rows[0]);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, branches_of_much_work_are_steps);
    tcase_add_test(t, dear_factors_are_kept);
    tcase_add_test(t, a_kernel_of_a_gpu_has_few_arrays);
    tcase_add_loop_test(t, many_branches, 0, sizeof choices / sizeof *choices);
    tcase_add_test(t, slots_stay_in_lanes);
    tcase_add_test(t, tables_that_are_read_whole_are_not);
    tcase_add_loop_test(t, locals_of_a_lane_have_room, 0, ARRAYS);
    tcase_add_test(t, interior_padding_mixes);
    tcase_add_loop_test(t, alone, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, mapped_over_any_inputs, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, mapped_twice, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, derivatives, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, random_loops, 0, 10);
}

int main(void) { return support_run("resident", add_tests); }
