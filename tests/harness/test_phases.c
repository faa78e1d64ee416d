// SPDX-License-Identifier: Apache-2.0
// Loops of steps that are one function of machine code each: the evaluator's bits, on any number of
// threads.
#include "schedule/control_schedule.h"

#include "jot/device.h"
#include "support/run_native.h"

static const int threads[] = {1, 2, 7};

// Every loop, or what is around it, is such a function.
static void check_class(uint32_t f, const struct nest_program *p)
{
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (nest_step_loops(&p->steps.at[i]))
            require_of(nest_loop_is_phases(p, i), "a loop is run step by step", f, p);
}

static void check_once(uint32_t f, const struct nest_program *p, struct rt_program *program,
                       const struct ir_tensor *in, const struct ir_tensor *want,
                       double tolerance)
{
    const struct ir_graph *g = graph(f);
    void **inputs = arena_array(module->arena, void *, g->n_params + 1);
    void **outputs = arena_array(module->arena, void *, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        inputs[i] = arena_copy(module->arena, in[i].data, tensor_bytes(in[i].type) + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        outputs[i] = p->donated[i] >= 0
                         ? inputs[p->donated[i]]
                         : arena_allocate(module->arena, tensor_bytes(want[i].type) + 64);
    require(run_native_call(program, (const void *const *)inputs, outputs));
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_tensor got = {want[i].type, outputs[i]};
        require_of(bits_equal(got, want[i]) || distance(got, want[i]) <= tolerance,
                   "the evaluator gives something else", f, p);
    }
}

// Of programs with products of the library the tolerance is that of their sums' order.
static void check_phases(uint32_t f, const struct schedule_options *options, double tolerance)
{
    f = simplified(f);
    struct nest_program *p = schedule_with(f, options);
    struct ir_tensor *in = draw_inputs(f, seed), *want = evaluate(f, in);
    struct rt_program *program;
    check_program(f, p);
    check_class(f, p);
    require(run_native_load(module->arena, p, NULL, &program));
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        require(jot_set_threads(threads[i]));
        check_once(f, p, program, in, want, tolerance);
        check_once(f, p, program, in, want, tolerance);
    }
    rt_program_release(program);
}

// As it is scheduled, which may be one kernel.
static void check_kernels(uint32_t f)
{
    struct nest_program *p = schedule_with(f = simplified(f), NULL);
    struct ir_tensor *in = draw_inputs(f, seed), *want = evaluate(f, in);
    struct rt_program *program;
    check_program(f, p);
    require(run_native_load(module->arena, p, NULL, &program));
    check_once(f, p, program, in, want, 0);
    rt_program_release(program);
}

static void check_steps(uint32_t f)
{
    bool *donated = arena_array(module->arena, bool, graph(f)->n_params + 1);
    memset(donated, 1, graph(f)->n_params);
    check_phases(f, &(struct schedule_options){.steps = true, .no_gemm = true}, 0);
    check_phases(
        f, &(struct schedule_options){.steps = true, .no_gemm = true, .donated = donated}, 0);
}

START_TEST(programs_run)
{
    uint32_t f = parse(control_programs[_i].text);
    check_steps(f);
    check_phases(f, &(struct schedule_options){.separate = true}, 0);
    check_steps(mapped(f, 2, 3));
}
END_TEST

// Loops in a while in a branch: rows both ways, no trips, and a case that there is not.
START_TEST(nested_loops)
{
    static const char *const indices[] = {"-3", "0", "1", "2", "9"};
    static const char text[] =
        "jot ir 1\n"
        "function @0 row(%%a: f32[40], %%s: f32[40]) {\n"
        "  %%r = rev %%a {axes=[0]} : f32[40]\n  %%t = add %%r, %%s : f32[40]\n"
        "  %%u = tanh %%t : f32[40]\n  return %%u, %%t\n}\n"
        "function @1 turn(%%a: f32[40], %%b: f32[40], %%c: f32[40]) {\n"
        "  %%r = rev %%c {axes=[0]} : f32[40]\n  %%x = sub %%r, %%a : f32[40]\n"
        "  return %%x, %%a, %%b\n}\n"
        "function @2 test(%%x: f32[6,40], %%n: i32[], %%k: i32[], %%a: f32[40]) {\n"
        "  %%p = lt %%k, %%n : bool[]\n  return %%p\n}\n"
        "function @3 step(%%x: f32[6,40], %%n: i32[], %%k: i32[], %%a: f32[40]) {\n"
        "  %%b, %%y = scan %%a, %%x {reverse=1, length=6, n_consts=0, n_carry=1, "
        "functions=[@0]} : f32[40], f32[6,40]\n"
        "  %%c, %%z = scan %%b, %%y {reverse=0, length=6, n_consts=0, n_carry=1, "
        "functions=[@0]} : f32[40], f32[6,40]\n"
        "  %%d, %%e, %%f = scan %%c, %%a, %%b {reverse=0, length=%d, n_consts=0, n_carry=3, "
        "functions=[@1]} : f32[40], f32[40], f32[40]\n"
        "  %%g = sub %%d, %%f : f32[40]\n"
        "  %%one = const {data=1} : i32[]\n  %%l = add %%k, %%one : i32[]\n"
        "  return %%l, %%g\n}\n"
        "function @4 loops(%%x: f32[6,40], %%n: i32[], %%a: f32[40]) {\n"
        "  %%k = const {data=0} : i32[]\n"
        "  %%l, %%b = while %%x, %%n, %%k, %%a {n_consts=2, functions=[@2, @3]} : i32[], "
        "f32[40]\n"
        "  return %%b\n}\n"
        "function @5 once(%%x: f32[6,40], %%n: i32[], %%a: f32[40]) {\n"
        "  %%b, %%y = scan %%a, %%x {reverse=0, length=6, n_consts=0, n_carry=1, "
        "functions=[@0]} : f32[40], f32[6,40]\n  return %%b\n}\n"
        "function @6 none(%%x: f32[6,40], %%n: i32[], %%a: f32[40]) {\n  return %%a\n}\n"
        "function @7 outer(%%x: f32[6,40], %%n: i32[], %%i: i32[], %%a: f32[40]) {\n"
        "  %%b = cond %%i, %%x, %%n, %%a {functions=[@4, @5, @6]} : f32[40]\n"
        "  %%one = const {data=1} : i32[]\n  %%j = add %%i, %%one : i32[]\n"
        "  return %%j, %%b\n}\n"
        "function @8 f(%%x: f32[6,40], %%a: f32[40]) {\n"
        "  %%n = const {data=%d} : i32[]\n  %%i = const {data=%s} : i32[]\n"
        "  %%j, %%b = scan %%x, %%n, %%i, %%a {reverse=0, length=%d, n_consts=2, n_carry=2, "
        "functions=[@7]} : i32[], f32[40]\n"
        "  return %%j, %%b\n}\n";
    for (int trips = 0; trips < 5; trips++) {
        char filled[sizeof text + 100];
        snprintf(filled, sizeof filled, text, trips, trips % 3, indices[_i], trips % 4 + 1);
        check_steps(parse(filled));
    }
}
END_TEST

// Three carries that are swapped, in a while that ends by its test or by its bound, at any trip.
START_TEST(turning_carries)
{
    static const char text[] =
        "jot ir 1\n"
        "function @0 test(%%k: i32[], %%a: f32[40], %%b: f32[40], %%c: f32[40]) {\n"
        "  %%n = const {data=%d} : i32[]\n  %%p = lt %%k, %%n : bool[]\n  return %%p\n}\n"
        "function @1 step(%%k: i32[], %%a: f32[40], %%b: f32[40], %%c: f32[40]) {\n"
        "  %%one = const {data=1} : i32[]\n  %%l = add %%k, %%one : i32[]\n"
        "  %%r = rev %%c {axes=[0]} : f32[40]\n  %%x = sub %%r, %%a : f32[40]\n"
        "  return %%l, %%x, %%a, %%b\n}\n"
        "function @2 f(%%a: f32[40], %%b: f32[40], %%c: f32[40]) {\n"
        "  %%k = const {data=0} : i32[]\n"
        "  %%1, %%2, %%3, %%4 = while %%k, %%a, %%b, %%c {n_consts=0, max_trips=%d, "
        "functions=[@0, @1]} : i32[], f32[40], f32[40], f32[40]\n"
        "  return %%1, %%2, %%3, %%4\n}\n";
    for (int bound = 0; bound < 6; bound++) {
        char filled[sizeof text + 100];
        snprintf(filled, sizeof filled, text, _i, bound);
        check_steps(parse(filled));
    }
}
END_TEST

// A loop, the only one of its program, in which no kernel runs: carries that are swapped, and a loop
// of nothing.
START_TEST(no_kernel)
{
    static const char *const results[] = {"%b, %a", "%a, %b"};
    char text[500];
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0 step(%%a: f64[7], %%b: f64[7]) {\n  return %s\n}\n"
             "function @1 f(%%a: f64[7], %%b: f64[7]) {\n"
             "  %%1, %%2 = scan %%a, %%b {reverse=0, length=5, n_consts=0, n_carry=2, "
             "functions=[@0]} : f64[7], f64[7]\n"
             "  return %%1, %%2\n}\n",
             results[_i]);
    check_steps(parse(text));
}
END_TEST

// Carries that are swapped and have nothing else to do with the loop, which may stand in another
// and in a branch: they are where the last trip left them.
static const char idle_text[] =
    "jot ir 1\n"
    "function @0 test(%%k: i32[], %%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
    "  %%n = const {data=%d} : i32[]\n  %%p = lt %%k, %%n : bool[]\n  return %%p\n}\n"
    "function @1 step(%%k: i32[], %%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
    "  %%one = const {data=1} : i32[]\n  %%l = add %%k, %%one : i32[]\n"
    "  %%r = rev %%s {axes=[0]} : f32[40]\n  %%x = sub %%r, %%s : f32[40]\n"
    "  return %%l, %%x, %s\n}\n"
    "function @2 loop(%%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
    "  %%k = const {data=0} : i32[]\n"
    "  %%1, %%2, %%3, %%4, %%5 = %s : i32[], f32[40], f64[7], f64[7], f64[7]\n"
    "  return %%2, %%3, %%4, %%5\n}\n"
    "function @3 skip(%%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
    "  return %%s, %%b, %%a, %%c\n}\n"
    "function @4 either(%%k: i32[], %%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
    "  %%2, %%3, %%4, %%5 = cond %%k, %%s, %%a, %%b, %%c {functions=[@2, @3]} : f32[40], "
    "f64[7], "
    "f64[7], f64[7]\n"
    "  %%one = const {data=1} : i32[]\n  %%l = add %%k, %%one : i32[]\n"
    "  return %%l, %%2, %%3, %%4, %%5\n}\n"
    "function @5 f(%%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
    "  %%k = const {data=0} : i32[]\n"
    "  %%1, %%2, %%3, %%4, %%5 = scan %%k, %%s, %%a, %%b, %%c {reverse=0, length=%d, "
    "n_consts=0, "
    "n_carry=5, functions=[@4]} : i32[], f32[40], f64[7], f64[7], f64[7]\n"
    "  %%6 = neg %%4 : f64[7]\n"
    "  return %%2, %%3, %%4, %%5, %%6\n}\n";

START_TEST(idle_carries)
{
    static const char *const orders[] = {"%b, %c, %a", "%b, %a, %c", "%c, %a, %a",
                                         "%a, %b, %b"};
    char filled[sizeof idle_text + 1000], loop[300];
    for (int trips = 0; trips < 5; trips++) {
        if (_i)
            snprintf(loop, sizeof loop,
                     "while %%k, %%s, %%a, %%b, %%c {n_consts=0, functions=[@0, @1]}");
        else
            snprintf(
                loop, sizeof loop,
                "scan %%k, %%s, %%a, %%b, %%c {reverse=0, length=%d, n_consts=0, n_carry=5, "
                "functions=[@1]}",
                trips);
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
            for (int around = 1; around < 4; around += 2) {
                snprintf(filled, sizeof filled, idle_text, trips, orders[i], loop, around);
                uint32_t f = parse(filled);
                check_steps(f);
                if (trips < 3)
                    check_kernels(mapped(f, all_inputs(f), 9));
            }
    }
}
END_TEST

// So many carries that are swapped, ten in a round, that the loop is cut into functions, which have where they
// are from tables; it counts, or ends by its test.
START_TEST(many_turning_carries)
{
    enum { ROUND = 10, CARRIES = 100 * ROUND, TRIPS = 13 };
    struct strbuf text = strbuf_make(module->arena), list = strbuf_make(module->arena);
    struct strbuf types = strbuf_make(module->arena), next = strbuf_make(module->arena);
    struct strbuf first = strbuf_make(module->arena), last = strbuf_make(module->arena);
    for (int k = 0; k < CARRIES; k++) {
        strbuf_printf(&list, ", %%x%d: f32[5]", k);
        strbuf_printf(&types, ", f32[5]");
        strbuf_printf(&first, ", %%x%d", k);
        strbuf_printf(&last, ", %%z%d", k);
        strbuf_printf(&next, ", %%%s%d", (k + 1) % ROUND ? "x" : "y",
                      (k + 1) % ROUND ? k + 1 : k);
    }
    strbuf_printf(&text,
                  "jot ir 1\nfunction @0(%%i: i32[]%s) {\n  %%n = const {data=%d} : i32[]\n"
                  "  %%p = lt %%i, %%n : bool[]\n  return %%p\n}\nfunction @1(%%i: i32[]%s) {\n"
                  "  %%o = const {data=1} : i32[]\n  %%j = add %%i, %%o : i32[]\n",
                  list.text, TRIPS, list.text);
    for (int k = ROUND - 1; k < CARRIES; k += ROUND)
        strbuf_printf(&text,
                      "  %%r%d = rev %%x%d {axes=[0]} : f32[5]\n  %%y%d = sub %%r%d, %%x%d : "
                      "f32[5]\n",
                      k, k - 9, k, k, k - 2);
    strbuf_printf(&text,
                  "  return %%j%s\n}\nfunction @2 f(%%a: f32[5]) {\n"
                  "  %%i = const {data=0} : i32[]\n  %%s0 = sin %%a : f32[5]\n",
                  next.text);
    for (int k = 0; k < CARRIES; k++)
        strbuf_printf(&text,
                      "  %%c%d = const {data=%d} : f32[]\n  %%b%d = broadcast_in_dim %%c%d "
                      "{dims=[5], axes=[]} : f32[5]\n  %%x%d = add %%a, %%b%d : f32[5]\n",
                      k, k, k, k, k, k);
    strbuf_printf(&text, "  %%j%s = %s %%i%s {n_consts=0, %s} : i32[]%s\n", last.text,
                  _i ? "while" : "scan", first.text,
                  _i ? "functions=[@0, @1]"
                     : "reverse=0, length=13, n_carry=1001, functions=[@1]",
                  types.text);
    for (int k = 0; k < CARRIES; k++)
        strbuf_printf(&text, "  %%s%d = add %%s%d, %%z%d : f32[5]\n", k + 1, k, k);
    strbuf_printf(&text, "  return %%s%d\n}\n", CARRIES);
    check_phases(parse(text.text), NULL, 0);
}
END_TEST

// Carries that are swapped in a loop of another, through memories that are rows of the other
// one; the functions of the loops before and after know nothing of these.
START_TEST(turns_of_other_loops)
{
    static const char text[] =
        "jot ir 1\n"
        "function @0 turn(%%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
        "  %%r = rev %%s {axes=[0]} : f32[40]\n  %%x = sub %%r, %%s : f32[40]\n"
        "  %%d = sin %%a : f64[7]\n  return %%x, %%b, %%c, %%d\n}\n"
        "function @1 step(%%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
        "  %%1, %%2, %%3, %%4 = scan %%s, %%a, %%b, %%c {reverse=0, length=%d, n_consts=0, "
        "n_carry=4, functions=[@0]} : f32[40], f64[7], f64[7], f64[7]\n"
        "  %%5 = cos %%a : f64[7]\n  return %%1, %%b, %%5, %%a, %%2, %%3, %%4\n}\n"
        "function @2 f(%%s: f32[40], %%a: f64[7], %%b: f64[7], %%c: f64[7]) {\n"
        "  %%1, %%2, %%3, %%4 = scan %%s, %%a, %%b, %%c {reverse=0, length=3, n_consts=0, "
        "n_carry=4, functions=[@0]} : f32[40], f64[7], f64[7], f64[7]\n"
        "  %%5, %%6, %%7, %%8, %%9, %%10, %%11 = scan %%1, %%2, %%3, %%4 {reverse=%d, "
        "length=3, n_consts=0, n_carry=4, functions=[@1]} : f32[40], f64[7], f64[7], f64[7], "
        "f64[3,7], f64[3,7], f64[3,7]\n"
        "  %%12, %%13, %%14, %%15 = scan %%5, %%6, %%7, %%8 {reverse=0, length=2, "
        "n_consts=0, n_carry=4, functions=[@0]} : f32[40], f64[7], f64[7], f64[7]\n"
        "  return %%12, %%13, %%14, %%15, %%9, %%10, %%11\n}\n";
    char filled[sizeof text + 100];
    for (int trips = 0; trips < 5; trips++) {
        snprintf(filled, sizeof filled, text, trips, trips % 2);
        check_steps(parse(filled));
    }
}
END_TEST

// Phases that threads share, and sums with partial results, in between small ones.
START_TEST(large_phases)
{
    static const char text[] =
        "jot ir 1\n"
        "function @0(%a: f32[200000], %s: f32[], %t: f32[]) {\n"
        "  %h = const {data=0.3} : f32[]\n"
        "  %w = broadcast_in_dim %h {dims=[200000], axes=[]} : f32[200000]\n"
        "  %r = rev %a {axes=[0]} : f32[200000]\n"
        "  %b = mul %r, %w : f32[200000]\n  %c = add %b, %a : f32[200000]\n"
        "  %d = sin %c : f32[200000]\n"
        "  %m = reduce_sum %d {axes=[0]} : f32[]\n  %n = tanh %m : f32[]\n"
        "  %v = broadcast_in_dim %n {dims=[200000], axes=[]} : f32[200000]\n"
        "  %e = add %d, %v : f32[200000]\n  return %e, %n, %m\n}\n"
        "function @1 f(%a: f32[200000], %s: f32[3]) {\n"
        "  %z = const {data=0} : f32[]\n"
        "  %b, %c, %m = scan %a, %z, %s {reverse=0, length=3, n_consts=0, n_carry=2, "
        "functions=[@0]} : f32[200000], f32[], f32[3]\n"
        "  return %b, %c, %m\n}\n";
    check_steps(parse(text));
}
END_TEST

// Layers with parts of one array of weights and, the other way round, of one of offsets: so
// much code that a GPU calls one function for all of them.
START_TEST(parts_of_weights)
{
    enum { LAYERS = 150 };
    struct strbuf text = strbuf_make(module->arena);
    strbuf_add(&text,
               "jot ir 1\nfunction @0 step(%w: f32[150,5,5], %b: f32[150,5], %x: f32[5]) {\n");
    for (int i = 0; i < LAYERS; i++) {
        strbuf_printf(&text, i ? "  %%x%d = add %%s%d, %%e%d : f32[5]\n" : "", i, i - 1, i - 1);
        strbuf_printf(
            &text,
            "  %%p%d = slice %%w {starts=[%d, 0, 0], limits=[%d, 5, 5], strides=[1, 1, 1]} : "
            "f32[1,5,5]\n"
            "  %%q%d = reshape %%p%d {dims=[5, 5]} : f32[5,5]\n",
            i, i, i + 1, i, i);
        strbuf_printf(&text, "  %%d%d = dot_general %%x", i);
        strbuf_printf(&text, i ? "%d" : "", i);
        strbuf_printf(&text, ", %%q%d {lhs_contract=[0], rhs_contract=[0]} : f32[5]\n", i);
        strbuf_printf(
            &text,
            "  %%u%d = slice %%b {starts=[%d, 0], limits=[%d, 5], strides=[1, 1]} : f32[1,5]\n"
            "  %%v%d = reshape %%u%d {dims=[5]} : f32[5]\n"
            "  %%e%d = rev %%v%d {axes=[0]} : f32[5]\n  %%s%d = sin %%d%d : f32[5]\n",
            i, i, i + 1, i, i, i, i, i, i);
    }
    strbuf_printf(
        &text,
        "  return %%s%d\n}\nfunction @1 f(%%x: f32[5], %%w: f32[150,5,5], %%b: f32[150,5]) {\n"
        "  %%r = scan %%w, %%b, %%x {reverse=0, length=2, n_consts=2, n_carry=1, "
        "functions=[@0]} : f32[5]\n  return %%r\n}\n",
        LAYERS - 1);
    check_phases(parse(text.text), &(struct schedule_options){.steps = true, .no_gemm = true},
                 0);
}
END_TEST

// Products that the library does, of all trips, in loops that count and that do not.
START_TEST(library_products)
{
    static const char *const forms[] = {
        "while %c, %x, %y {n_consts=0, functions=[@0, @1]}",
        "scan %c, %x, %y {n_consts=0, n_carry=3, length=5, reverse=0, functions=[@1]}"};
    char text[2000];
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0(%%c: i32[], %%x: f64[96,96], %%y: f64[96,96]) {\n"
             "  %%n = const {data=4} : i32[]\n  %%p = lt %%c, %%n : bool[]\n  return %%p\n}\n"
             "function @1(%%c: i32[], %%x: f64[96,96], %%y: f64[96,96]) {\n"
             "  %%o = const {data=1} : i32[]\n  %%d = add %%c, %%o : i32[]\n"
             "  %%1 = dot_general %%x, %%y {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
             "rhs_batch=[], precision=0} : f64[96,96]\n  %%2 = tanh %%1 : f64[96,96]\n"
             "  return %%d, %%y, %%2\n}\n"
             "function @2 f(%%x: f64[96,96], %%y: f64[96,96]) {\n"
             "  %%c = const {data=0} : i32[]\n"
             "  %%1, %%2, %%3 = %s : i32[], f64[96,96], f64[96,96]\n  return %%2, %%3\n}\n",
             forms[_i]);
    uint32_t f = parse(text);
    struct nest_program *p = schedule_with(simplified(f), NULL);
    uint32_t products = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        products += p->steps.at[i].kind == NEST_STEP_GEMM;
    require_of(products == 1, "no product for the library", f, p);
    check_phases(f, &(struct schedule_options){0}, 1e-6);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, programs_run, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, nested_loops, 0, 5);
    tcase_add_loop_test(t, turning_carries, 0, 5);
    tcase_add_loop_test(t, many_turning_carries, 0, 2);
    tcase_add_loop_test(t, no_kernel, 0, 2);
    tcase_add_loop_test(t, idle_carries, 0, 2);
    tcase_add_test(t, turns_of_other_loops);
    tcase_add_test(t, large_phases);
    tcase_add_test(t, parts_of_weights);
    tcase_add_loop_test(t, library_products, 0, 2);
}

int main(void) { return support_run("phases", add_tests); }
