// SPDX-License-Identifier: Apache-2.0
// Memory plans: temporaries share memory, donated inputs are taken over, and the check finds
// plans that are wrong.
#include "schedule_examples.h"

static uint64_t bytes_of_temporaries(const struct nest_program *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].kind == NEST_TEMPORARY)
            sum +=
                (uint64_t)p->memories.at[i].count * dtype_get(p->memories.at[i].dtype)->bytes;
    return sum;
}

START_TEST(temporaries_share_memory)
{
    uint32_t f = example_heat(64, 12);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    ck_assert_uint_eq(p->steps.count, 12);
    ck_assert_uint_eq(bytes_of_temporaries(p), 11 * 64 * 64 * 4);
    ck_assert_uint_eq(p->arena_bytes, 2 * 64 * 64 * 4); // a stencil cannot be done in place
}
END_TEST

START_TEST(elementwise_kernels_work_in_place)
{
    struct ir_builder b = begin("chain");
    ir_id x = ir_param(&b, F32(1000));
    for (int i = 0; i < 5; i++)
        x = ir_sin(&b, x);
    ir_output(&b, x);
    uint32_t f = finish(&b);
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.separate = true});
    check_program(f, p);
    ck_assert_uint_eq(p->steps.count, 5);
    ck_assert_uint_eq(p->arena_bytes, 4032);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

static struct nest_program *donated_to(uint32_t f)
{
    bool donated[8] = {true, true, true, true, true, true, true, true};
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.donated = donated});
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    return p;
}

START_TEST(donated_inputs_are_taken_over)
{
    ck_assert_int_eq(donated_to(example_softmax(70, 500))->donated[0], 0);
    ck_assert_int_eq(donated_to(example_layer_norm(70, 500))->donated[0], 0);
    // Elements are read after others are written.
    ck_assert_int_eq(donated_to(example_transpose_add(30))->donated[0], -1);
    ck_assert_int_eq(donated_to(example_heat(20, 1))->donated[0], -1);
}
END_TEST

START_TEST(outputs_may_be_inputs_or_equal)
{
    struct ir_builder b = begin("copies");
    ir_id x = ir_param(&b, F32(10)), y = ir_exp(&b, x);
    ir_output(&b, y);
    ir_output(&b, x);
    ir_output(&b, y);
    uint32_t f = done(&b);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    ck_assert_uint_eq(p->steps.count, 2);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

#define POINTS(points, loop, sum)                                                              \
    "  par " points " {\n    " loop " {\n      %2 = load x[i] : f32\n" sum "\n"                \
    "    put y[i] = %4\n  }\n"
#define TIME(points, loop)                                                                     \
    POINTS(points, loop " carry %1 = %0",                                                      \
           "      %3 = add %1, %2 : f32\n      yield %3\n    } -> %4")
#define SUM(points)                                                                            \
    POINTS(points, "fold j < 64", "      yield reduce_sum %2 sum64\n    } -> %4 : f32")

// What levels have read before its step, or again after it, is not written over: each point reads an element in its
// loop, and puts its result.
static const struct {
    const char *nest;
    bool in_place;
} read_elsewhen[] = {
    {TIME("i < 1024", "seq j < 64"), true},
    {TIME("@thread i < 1024", "seq @serial j < 64"), true},
    {TIME("@thread i < 1024", "seq @ahead j < 64"), false},
    {TIME("@thread i < 1024", "seq @serial j < 64 @early 1"), false},
    {TIME("@thread i < 1024", "seq @serial j < 64 @segment 8"), false},
    {SUM("@thread i < 1024"), true},
    {SUM("@thread i < 1024 @rows 2"), false},
};

START_TEST(what_levels_read_elsewhen_stays)
{
    struct strbuf text = strbuf_make(module->arena);
    struct nest_program *p;
    strbuf_add(&text, "jot nest 1\nprogram \"two\" {\n  inputs 1\n  outputs 1\n  arena 8192\n"
                      "  constants 0\n  memory input 0 : f32[1024] \"x\"\n"
                      "  memory output 0 : f32[1024] \"y\"\n"
                      "  memory temporary at 0 : f32[1024] \"t\"\n"
                      "  memory temporary at 4096 : f32[1024] \"u\"\n"
                      "  step kernel 0 (0, 2)\n  step kernel 1 (2, 3)\n"
                      "  step kernel 0 (3, 1)\n}\n"
                      "kernel k0(x: f32[1024], y: out f32[1024]) {\n  par i < 1024 {\n"
                      "    %0 = load x[i] : f32\n    put y[i] = %0\n  }\n}\n"
                      "kernel k1(x: f32[1024], y: out f32[1024]) block 256 {\n"
                      "  %0 = const 0x00000000 : f32\n");
    strbuf_printf(&text, "%s}\n", read_elsewhen[_i].nest);
    require(nest_program_parse(module->arena, text.text, &p));
    plan_memory(p, NULL, false);
    bool in_place = p->memories.at[2].offset == p->memories.at[3].offset;
    ck_assert_msg(in_place == read_elsewhen[_i].in_place, "%s", text.text);
}
END_TEST

// A routine that writes two parts of one memory, apart from one another or not.
START_TEST(parts_of_a_memory_are_written_apart)
{
    struct strbuf text = strbuf_make(module->arena);
    struct nest_program *p;
    strbuf_printf(&text,
                  "jot nest 1\nprogram \"two\" {\n  inputs 1\n  outputs 1\n  arena 0\n"
                  "  constants 0\n  memory input 0 : f32[100] \"x\"\n"
                  "  memory output 0 : f32[200] \"y\"\n"
                  "  step library \"qr\" [11, 1, 10, 10, 0] reads 1 (0[0:100], 1[0:100], "
                  "1[%d:200])\n}\n",
                  _i ? 99 : 100);
    require(nest_program_parse(module->arena, text.text, &p));
    ck_assert_int_eq(plan_verify(p, NULL), _i ? 2 : 0);
}
END_TEST

START_TEST(wrong_plans_are_found)
{
    uint32_t f = example_heat(64, 4);
    struct nest_program *p = schedule(f);
    ck_assert_int_eq(plan_verify(p, NULL), 0);
    // All temporaries in one place: a stencil then reads what it has overwritten.
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].kind == NEST_TEMPORARY)
            p->memories.at[i].offset = 0;
    ck_assert_int_gt(plan_verify(p, NULL), 0);

    p = schedule(f);
    struct nest_step first = p->steps.at[0];
    p->steps.at[0] = p->steps.at[1];
    p->steps.at[1] = first;
    ck_assert_int_gt(plan_verify(p, NULL), 0);

    p = schedule(f);
    p->donated[0] = 0;
    ck_assert_int_eq(plan_verify(p, NULL), 0); // the input is read by the first step only
    p = schedule(example_heat(64, 1));
    p->donated[0] = 0;
    ck_assert_int_gt(plan_verify(p, NULL), 0);

    p = schedule(f);
    p->steps.count--;
    ck_assert_int_gt(plan_verify(p, NULL), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, temporaries_share_memory);
    tcase_add_test(t, elementwise_kernels_work_in_place);
    tcase_add_test(t, donated_inputs_are_taken_over);
    tcase_add_test(t, outputs_may_be_inputs_or_equal);
    tcase_add_loop_test(t, what_levels_read_elsewhen_stays, 0,
                        (int)(sizeof read_elsewhen / sizeof *read_elsewhen));
    tcase_add_loop_test(t, parts_of_a_memory_are_written_apart, 0, 2);
    tcase_add_test(t, wrong_plans_are_found);
}

int main(void) { return support_run("plan", add_tests); }
