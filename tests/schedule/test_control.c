// SPDX-License-Identifier: Apache-2.0
// Loops and branches as steps: the evaluator's bits, whose memory carries have, and what is copied.
#include "control_schedule.h"

static const struct schedule_options ways[] = {
    {.steps = true}, {.separate = true}, {.steps = true, .large = true, .no_gemm = true}};

static void check_text(uint32_t f, const struct nest_program *p)
{
    struct strbuf first = strbuf_make(module->arena), second = strbuf_make(module->arena);
    struct nest_program *again;
    nest_program_print(&first, p);
    require(nest_program_parse(module->arena, first.text, &again));
    nest_program_print(&second, again);
    require_of(!strcmp(first.text, second.text), "it does not print as it is read", f, p);
}

static void check_steps(uint32_t f)
{
    f = simplified(f);
    struct ir_tensor *in = draw_inputs(f, seed);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct nest_program *p = schedule_with(f, &ways[i]);
        check_program(f, p);
        check_text(f, p);
        check_run(f, p, in);
    }
}

START_TEST(programs_run)
{
    uint32_t f = parse(control_programs[_i].text), g;
    check_steps(f);
    check_steps(mapped(f, all_inputs(f), 3));
    check_steps(mapped(f, 2, 2));
    check_steps(forward(f));
    if (control_programs[_i].kind == CONTROL_NO_BOUND)
        return;
    g = backward(f);
    check_steps(g);
    check_steps(mapped(g, all_inputs(g), 3));
}
END_TEST

START_TEST(random_loops_run)
{
    for (uint64_t i = 0; i < 6; i++) {
        uint32_t f = random_loop(seed + (uint64_t)_i * 1000 + i, 3 + (int)i);
        check_steps(f);
        check_steps(mapped(f, 1 + i, 3));
    }
}
END_TEST

// Lanes with more state than a kernel's lane may have are spread: a select, and no loop over them.
START_TEST(lanes_are_spread)
{
    static const char *const text =
        "jot ir 1\nfunction @0(%x: f32[2000], %y: f32[]) {\n"
        "  %r = rev %x {axes=[0]} : f32[2000]\n  %s = cumsum %r {axis=0, reverse=0} : "
        "f32[2000]\n"
        "  %z = mul %s, %y : f32[2000]\n  return %z\n}\n"
        "function @1(%x: f32[2000], %y: f32[]) {\n  return %x\n}\n"
        "function @2 f(%i: i32[], %x: f32[2000], %y: f32[]) {\n"
        "  %z = cond %i, %x, %y {functions=[@0, @1, @0]} : f32[2000]\n  return %z\n}\n";
    uint32_t f = parse(text);
    for (int maps = 1; maps <= 2; maps++) {
        f = mapped(f, 7, 3);
        ck_assert_int_eq((int)count_control(f), 1);
        struct nest_program *p = schedule(simplified(f));
        for (uint32_t i = 0; i < p->steps.count; i++)
            require_of(!nest_step_opens(&p->steps.at[i]), "a loop over lanes", f, p);
        check_program(f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// Copies in the bodies of loops, and outside.
static void count_copies(const struct nest_program *p, uint32_t *inside, uint32_t *outside)
{
    uint32_t depth = 0;
    *inside = *outside = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        depth -= t->kind == NEST_STEP_END;
        if (t->kind == NEST_STEP_COPY)
            ++*(depth ? inside : outside);
        depth += nest_step_opens(t);
    }
}

static uint32_t count_turns(const struct nest_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->memories.count; i++)
        n += p->memories.at[i].kind == NEST_TURN;
    return n;
}

// Bodies over a, b and c: f32[100], and what a loop of theirs takes.
static const struct {
    const char *name, *body;
    uint32_t inside, turns;
} bodies[] = {
    {"in place",
     "  %x = sin %a : f32[100]\n  %y = cos %b : f32[100]\n  %z = exp %c : f32[100]\n"
     "  return %x, %y, %z\n",
     0, 0},
    {"carry k feeds carry k + 1", "  %x = sin %c : f32[100]\n  return %x, %a, %b\n", 0, 1},
    {"all of them are swapped", "  return %b, %c, %a\n", 0, 0},
    {"a stencil",
     "  %x = rev %a {axes=[0]} : f32[100]\n  %y = add %x, %a : f32[100]\n"
     "  %z = sub %y, %c : f32[100]\n  return %y, %b, %z\n",
     0, 2},
    {"each gets an old element of the next",
     "  %i = const {data=3} : i32[]\n  %j = const {data=50} : i32[]\n"
     "  %1 = dynamic_slice %a, %i {sizes=[1]} : f32[1]\n"
     "  %2 = dynamic_slice %b, %j {sizes=[1]} : f32[1]\n"
     "  %3 = dynamic_slice %c, %i {sizes=[1]} : f32[1]\n  %4 = sin %2 : f32[1]\n"
     "  %x = dynamic_update_slice %a, %4, %i : f32[100]\n"
     "  %y = dynamic_update_slice %b, %3, %j : f32[100]\n"
     "  %z = dynamic_update_slice %c, %1, %i : f32[100]\n  return %x, %y, %z\n",
     0, 0},
    {"the second update of one waits for the other",
     "  %i = const {data=3} : i32[]\n  %j = const {data=50} : i32[]\n"
     "  %1 = dynamic_slice %a, %i {sizes=[1]} : f32[1]\n"
     "  %2 = dynamic_slice %b, %j {sizes=[1]} : f32[1]\n  %3 = exp %1 : f32[1]\n"
     "  %4 = dynamic_update_slice %a, %3, %j : f32[100]\n"
     "  %x = dynamic_update_slice %4, %2, %i : f32[100]\n"
     "  %y = dynamic_update_slice %b, %1, %j : f32[100]\n  return %x, %y, %c\n",
     0, 0},
    {"one value twice", "  %x = sin %a : f32[100]\n  return %x, %x, %c\n", 0, 0},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

static uint32_t loop_of(const char *body, int trips)
{
    struct strbuf s = strbuf_make(module->arena);
    strbuf_printf(&s,
                  "jot ir 1\nfunction @0(%%a: f32[100], %%b: f32[100], %%c: f32[100]) {\n%s}\n"
                  "function @1 f(%%a: f32[100], %%b: f32[100], %%c: f32[100]) {\n"
                  "  %%1, %%2, %%3 = scan %%a, %%b, %%c {reverse=0, length=%d, n_consts=0, "
                  "n_carry=3, functions=[@0]} : f32[100], f32[100], f32[100]\n"
                  "  return %%1, %%2, %%3\n}\n",
                  body, trips);
    return parse(s.text);
}

START_TEST(carries)
{
    static const int trips[] = {0, 1, 2, 3, 4, 5, 7};
    const bool donated[] = {true, true, true};
    for (size_t i = 0; i < sizeof trips / sizeof *trips; i++)
        for (int dies = 0; dies < 2; dies++) {
            uint32_t f = loop_of(bodies[_i].body, trips[i]), inside, outside;
            struct nest_program *p = schedule_with(
                f, &(struct schedule_options){.steps = true, .donated = dies ? donated : NULL});
            check_program(f, p);
            check_run(f, p, draw_inputs(f, seed));
            count_copies(p, &inside, &outside);
            require_of(inside == bodies[_i].inside, "other copies in the loop", f, p);
            require_of(count_turns(p) == bodies[_i].turns, "other turns", f, p);
            require_of(outside == 3, "other copies beside the loop", f, p);
        }
}
END_TEST

// Carries that begin as one value are put by the kernel that makes it, those that begin as a sum by a copy.
START_TEST(carries_begin_as_one_value)
{
    struct strbuf s = strbuf_make(module->arena);
    strbuf_printf(&s,
                  "jot ir 1\nfunction @0(%%a: f32[100], %%b: f32[100]) {\n"
                  "  %%x = rev %%a {axes=[0]} : f32[100]\n  %%y = add %%x, %%b : f32[100]\n"
                  "  return %%y, %%x\n}\n"
                  "function @1 f(%%a: f32[100,40]) {\n%s"
                  "  %%1, %%2 = scan %%0, %%0 {reverse=0, length=5, n_consts=0, n_carry=2, "
                  "functions=[@0]} : f32[100], f32[100]\n  return %%0, %%1, %%2\n}\n",
                  _i ? "  %0 = reduce_sum %a {axes=[1]} : f32[100]\n"
                     : "  %3 = slice %a {starts=[0, 3], limits=[100, 4], strides=[1, 1]} : "
                       "f32[100,1]\n  %4 = reshape %3 {dims=[100]} : f32[100]\n"
                       "  %0 = sin %4 : f32[100]\n");
    uint32_t f = parse(s.text), inside, outside;
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.steps = true});
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    count_copies(p, &inside, &outside);
    require_of(outside == (_i ? 2 : 0), "other copies beside the loop", f, p);
}
END_TEST

// On a GPU what the kernel of a trip reads of a point stands in front of what it puts there.
START_TEST(loads_stand_first)
{
    uint32_t f = loop_of("  %r = exp %a : f32[100]\n  %x = add %r, %a : f32[100]\n"
                         "  %y = mul %r, %b : f32[100]\n  %z = sub %c, %r : f32[100]\n"
                         "  return %x, %y, %z\n",
                         5);
    struct nest_program *p = schedule_with(
        f,
        &(struct schedule_options){.steps = true, .one_loop = true, .no_accumulation = true});
    uint32_t puts = 0, late = 0;
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct nest *n = p->nests.at[i];
        for (uint32_t k = 0; k < n->blocks.count; k++) {
            bool has_put = false;
            nest_for_each (s, n, k) {
                puts += s->kind == NEST_PUT && has_put;
                has_put |= s->kind == NEST_PUT;
                late += s->kind == NEST_LOAD && has_put;
            }
        }
    }
    require_of(puts > 0 && late == 0, "a load behind a put", f, p);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// Updates of an element: the copy that brings the operand is the only one, and donation makes it none.
START_TEST(updates_in_place)
{
    const char *text =
        "jot ir 1\nfunction @0(%a: f32[1000], %i: i32[]) {\n"
        "  %x = dynamic_slice %a, %i {sizes=[1]} : f32[1]\n  %y = sin %x : f32[1]\n"
        "  %z = dynamic_update_slice %a, %y, %i : f32[1000]\n"
        "  %one = const {data=1} : i32[]\n  %j = add %i, %one : i32[]\n  return %z, %j\n}\n"
        "function @1 f(%a: f32[1000], %i: i32[]) {\n"
        "  %1, %2 = scan %a, %i {reverse=0, length=9, n_consts=0, n_carry=2, functions=[@0]} : "
        "f32[1000], i32[]\n  return %1\n}\n";
    const bool donated[] = {true, false};
    uint32_t f = parse(text), inside, outside;
    struct nest_program *p = schedule_with(
        f, &(struct schedule_options){.steps = true, .donated = _i ? donated : NULL});
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    count_copies(p, &inside, &outside);
    require_of(inside == 0 && outside == 2, "other copies", f, p);
    ck_assert_int_eq(p->donated[0], _i ? 0 : -1);
}
END_TEST

// Kernels with time in them write over what they have read: all of it, or the same row.
static const struct {
    const char *name, *text;
    int donor;
} kernels[] = {
    {"lanes",
     "function @0(%x: f32[2000]) {\n  %y = sin %x : f32[2000]\n  return %y\n}\n"
     "function @1 f(%x: f32[2000]) {\n  %y = scan %x {reverse=0, length=5, n_consts=0, "
     "n_carry=1, "
     "functions=[@0]} : f32[2000]\n  return %y\n}\n",
     0},
    {"one point",
     "function @0(%x: f32[100]) {\n  %y = rev %x {axes=[0]} : f32[100]\n"
     "  %z = sub %y, %x : f32[100]\n  return %z\n}\n"
     "function @1 f(%x: f32[100]) {\n  %y = scan %x {reverse=0, length=5, n_consts=0, "
     "n_carry=1, "
     "functions=[@0]} : f32[100]\n  return %y\n}\n",
     0},
    {"rows",
     "function @0(%c: f32[], %x: f32[]) {\n  %d = add %c, %x : f32[]\n  return %d, %d\n}\n"
     "function @1 f(%x: f32[900], %c: f32[]) {\n  %d, %y = scan %c, %x {reverse=0, length=900, "
     "n_consts=0, n_carry=1, functions=[@0]} : f32[], f32[900]\n  return %y\n}\n",
     0},
    {"rows that are read the other way",
     "function @0(%c: f32[], %x: f32[]) {\n  %d = add %c, %x : f32[]\n  return %d, %c\n}\n"
     "function @1 f(%x: f32[900], %c: f32[]) {\n  %r = rev %x {axes=[0]} : f32[900]\n"
     "  %d, %y = scan %c, %r {reverse=0, length=900, n_consts=0, n_carry=1, functions=[@0]} : "
     "f32[], f32[900]\n  return %y\n}\n",
     -1},
    {"rows before the last of which all are read again",
     "function @0(%a: f32[9], %c: f32[], %x: f32[]) {\n"
     "  %s = reduce_sum %a {axes=[0]} : f32[]\n  %t = mul %s, %c : f32[]\n"
     "  %i = convert %c {dtype=i32} : i32[]\n"
     "  %e = dynamic_slice %a, %i {sizes=[1]} : f32[1]\n  %f = reshape %e {dims=[]} : f32[]\n"
     "  %d = add %f, %x : f32[]\n  return %d, %t\n}\n"
     "function @1 f(%x: f32[9], %c: f32[]) {\n  %d, %y = scan %x, %c, %x {reverse=0, length=9, "
     "n_consts=1, n_carry=1, functions=[@0]} : f32[], f32[9]\n  return %y\n}\n",
     -1},
    {"a while",
     "function @0(%x: f32[2000], %i: i32[]) {\n  %n = const {data=7} : i32[]\n"
     "  %p = lt %i, %n : bool[]\n  return %p\n}\n"
     "function @1(%x: f32[2000], %i: i32[]) {\n  %y = sin %x : f32[2000]\n"
     "  %one = const {data=1} : i32[]\n  %j = add %i, %one : i32[]\n  return %y, %j\n}\n"
     "function @2 f(%x: f32[2000], %i: i32[]) {\n  %y, %j = while %x, %i {functions=[@0, @1], "
     "n_consts=0} : f32[2000], i32[]\n  return %y\n}\n",
     0},
    {"a branch",
     "function @0(%x: f32[2000]) {\n  %y = sin %x : f32[2000]\n  return %y\n}\n"
     "function @1(%x: f32[2000]) {\n  %y = cos %x : f32[2000]\n  return %y\n}\n"
     "function @2 f(%x: f32[2000], %i: i32[]) {\n"
     "  %y = cond %i, %x {functions=[@0, @1]} : f32[2000]\n  return %y\n}\n",
     0},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

START_TEST(kernels_write_over_their_operands)
{
    const bool donated[] = {true, true};
    struct strbuf s = strbuf_make(module->arena);
    strbuf_printf(&s, "jot ir 1\n%s", kernels[_i].text);
    uint32_t f = parse(s.text);
    struct nest_program *p =
        schedule_with(simplified(f), &(struct schedule_options){.donated = donated});
    check_program(f, p);
    require_of(count_resident(p) == 1, "not one kernel", f, p);
    check_run(f, p, draw_inputs(f, seed));
    require_of(p->donated[0] == kernels[_i].donor, "another donor", f, p);
}
END_TEST

// %u is %a with an update, %p a bool that is computed from %u.
#define UPDATE_AND_ASK                                                                         \
    "  %k = const {data=[7]} : i32[1]\n  %v = const {data=2} : f32[]\n"                        \
    "  %u = scatter %a, %k, %v {offset_dims=[], collapsed_dims=[0], operand_batch=[], "        \
    "index_batch=[], index_map=[0], unique=0, mode=3} : f32[2000]\n"                           \
    "  %s = reduce_sum %u {axes=[0]} : f32[]\n  %p = gt %s, %v : bool[]\n"

// What is printed of a loop: how it runs, and what keeps it from running better.
START_TEST(classes)
{
    static const struct {
        const char *body, *line;
    } cases[] = {
        {"  %x = sin %a : f32[2000]\n", "# step 0: kernel k0_scan (resident)\n"},
        {"  %x = rev %a {axes=[0]} : f32[2000]\n",
         "# step 1: loop: phases (lanes are mixed at t.c:41: x, rev)\n"},
        {"  %s = reduce_sum %a {axes=[0]} : f32[]\n  %x = mul %s, %a : f32[2000]\n",
         "# step 1: loop: phases (lanes are mixed at t.c:41: x, reduce_sum)\n"},
        {"  %b = broadcast_in_dim %a {axes=[0], dims=[2000, 3000]} : f32[2000,3000]\n"
         "  %c = cumsum %b {axis=1, reverse=0} : f32[2000,3000]\n"
         "  %x = reduce_max %c {axes=[1]} : f32[2000]\n",
         "# step 1: loop: phases (too much state for a lane at t.c:41: x, cumsum)\n"},
        {UPDATE_AND_ASK "  %x = select %p, %u, %a : f32[2000]\n",
         "# step 1: loop: phases (an array that is updated or not is too much state at t.c:41: "
         "x, "
         "select)\n"},
        {UPDATE_AND_ASK "  %x = select %p, %a, %u : f32[2000]\n",
         "# step 1: loop: phases (an array that is updated or not is too much state at t.c:41: "
         "x, "
         "select)\n"},
        {"  %y = rev %a {axes=[0]} : f32[2000]\n  %p = lt %y, %a : bool[2000]\n"
         "  check %p {message=\"low\", place=\"t.c:41\"}\n  %x = sin %y : f32[2000]\n",
         "# step 1: loop: steps (the host does an effect at t.c:41: x, check)\n"},
    };
    struct strbuf s = strbuf_make(module->arena);
    strbuf_printf(&s,
                  "jot ir 1\nfunction @0(%%a: f32[2000]) {\n%s  return %%x\n}\n"
                  "function @1 f(%%a: f32[2000]) {\n"
                  "  %%1 = scan %%a {reverse=0, length=5, n_consts=0, n_carry=1, "
                  "functions=[@0]} : f32[2000]\n  return %%1\n}\n",
                  cases[_i].body);
    uint32_t f = parse(s.text);
    for (uint32_t g = 0; g < f; g++)
        ir_for_each_node (graph(g), n)
            ((struct ir_node *)(uintptr_t)n)->where = ir_where_make(module, "t.c:41: x");
    const char *text = schedule_text(schedule(f));
    ck_assert_msg(strstr(text, cases[_i].line) != NULL, "%s is not in\n%s", cases[_i].line,
                  text);
}
END_TEST

// A trip without carries gives parts of its row, or something of each: loops, for elements that are
// written out are code that takes LLVM long.
START_TEST(parts_of_rows_are_loops)
{
    enum { PARTS = 12 };
    static const struct {
        const char *part;
        int results;
    } cases[] = {
        {"  %%%d = slice %%0 {starts=[%d], limits=[%d], strides=[1]} : f32[40]\n", 1},
        {"  %%%d = slice %%0 {starts=[%d], limits=[%d], strides=[1]} : f32[40]\n"
         "  %%%d = mul %%%d, %%%d : f32[40]\n",
         1},
        {"  %%%d = slice %%0 {starts=[%d], limits=[%d], strides=[1]} : f32[40]\n"
         "  %%%d = mul %%%d, %%%d : f32[40]\n  %%%d = sqrt %%%d : f32[40]\n",
         2},
    };
    struct arena *a = module->arena;
    struct strbuf s = strbuf_make(a), names = strbuf_make(a), types = strbuf_make(a),
                  results = strbuf_make(a);
    strbuf_printf(&s, "jot ir 1\nfunction @0(%%0: f32[%d]) {\n", 40 * PARTS);
    for (int k = 0; k < PARTS; k++) {
        int x = 1 + k * (_i + 1), last = x + _i;
        strbuf_printf(&s, cases[_i].part, x, 40 * k, 40 * k + 40, x + 1, x, x, x + 2, x + 1);
        for (int r = cases[_i].results; r-- > 0;) {
            const char *comma = names.length ? ", " : "";
            strbuf_printf(&names, "%s%%%d", comma, last - r);
            strbuf_printf(&types, "%sf32[3,40]", comma);
            strbuf_printf(&results, "%s%%%d", comma, (k + 1) * cases[_i].results - r);
        }
    }
    strbuf_printf(&s,
                  "  return %s\n}\nfunction @1 f(%%0: f32[3,%d]) {\n"
                  "  %s = scan %%0 {reverse=0, length=3, n_consts=0, n_carry=0, "
                  "functions=[@0]} : %s\n  return %s\n}\n",
                  names.text, 40 * PARTS, results.text, types.text, results.text);
    struct nest_program *p = schedule(parse(s.text));
    check_run(module->functions.count - 1, p, draw_inputs(module->functions.count - 1, seed));
    uint32_t statements = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        statements += p->nests.at[i]->statements.count;
    const char *text = schedule_text(p);
    ck_assert_msg(statements <= 8 * PARTS * (uint32_t)cases[_i].results, "%s", text);
}
END_TEST

START_TEST(wrong_plans_are_found)
{
    uint32_t f = loop_of(bodies[3].body, 5);
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.steps = true});
    for (uint32_t m = 0; m < p->memories.count; m++)
        if (p->memories.at[m].kind == NEST_TURN) {
            struct nest_memory kept = p->memories.at[m];
            p->memories.at[m].index = (kept.index + 1) % kept.n_of;
            require_of(plan_verify(p, NULL) > 0, "a wrong turn is not found", f, p);
            p->memories.at[m] = kept;
        }
    check_program(f, p);
    p->steps.count--;
    require_of(nest_program_verify(p, NULL) > 0, "a body without an end is not found", f, p);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, programs_run, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, random_loops_run, 0, 10);
    tcase_add_test(t, lanes_are_spread);
    tcase_add_loop_test(t, carries, 0, BODIES);
    tcase_add_loop_test(t, carries_begin_as_one_value, 0, 2);
    tcase_add_test(t, loads_stand_first);
    tcase_add_loop_test(t, updates_in_place, 0, 2);
    tcase_add_loop_test(t, kernels_write_over_their_operands, 0, KERNELS);
    tcase_add_loop_test(t, classes, 0, 7);
    tcase_add_loop_test(t, parts_of_rows_are_loops, 0, 3);
    tcase_add_test(t, wrong_plans_are_found);
}

int main(void) { return support_run("schedule_control", add_tests); }
