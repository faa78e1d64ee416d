// SPDX-License-Identifier: Apache-2.0
// The order of the passes: what all of them together compute, and that what a pass leaves wrong is named.
#include "passes/control_support.h"

#include "schedule/pipeline.h"

#include <string.h>

#define LOOP                                                                                   \
    "jot ir 1\n"                                                                               \
    "function @0(%a: f32[64,64], %s: f32[]) {\n"                                               \
    "  %y = reduce_max %a {axes=[0,1]} : f32[]\n"                                              \
    "  %r = add %s, %y : f32[]\n  return %r\n}\n"                                              \
    "function @1 f(%a: f32[64,64], %s: f32[]) {\n"                                             \
    "  %r = scan %a, %s {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : "       \
    "f32[]\n"                                                                                  \
    "  return %r\n}\n"

START_TEST(all_passes_keep_values)
{
    uint32_t f = parse(LOOP), g;
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in);
    struct pass_target target = {.is_gpu = _i == 1, .is_on_mesh = _i == 2, .verifies = true};
    ck_assert_msg(pass_pipeline(module, f, &target, &g) == JOT_OK, "%s", jot_error_message());
    ck_assert_msg(bits_equal(a[0], evaluate(g, in)[0]), "seed %" PRIu64, seed);
    ck_assert_int_eq(count_op(g, IR_reduce_max), 1); // hoisted out of the body
}
END_TEST

START_TEST(wrong_graphs_are_named)
{
    struct ir_graph *g = ir_function(module, parse(LOOP));
    ck_assert_int_eq(pass_verify(g, "hoist"), JOT_OK);
    ir_for_each_node (g, n)
        if (n->op == IR_scan)
            g->operands.at[n->in + 1] = IR_NONE;
    ck_assert_int_eq(pass_verify(g, "hoist"), JOT_ERR_INTERNAL);
    ck_assert_msg(strstr(jot_error_message(), "the pass hoist leaves a graph that is wrong: "),
                  "%s", jot_error_message());
}
END_TEST

// A kernel whose result is put beyond its memory, where somebody wants to know.
START_TEST(wrong_programs_are_named)
{
    struct schedule_options options = {.verifies = true};
    struct nest_program *p;
    ck_assert_int_eq(
        pass_schedule(module->arena, ir_function(module, parse(LOOP)), &options, &p), JOT_OK);
    ck_assert_int_eq(pass_verify_program(&options, p, "fission"), JOT_OK);
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_for_all (s, p->nests.at[i])
            if (s->kind == NEST_PUT)
                p->nests.at[i]->statements.at[nest_id_of(p->nests.at[i], s)].index.constant =
                    99;
    ck_assert_int_eq(pass_verify_program(&options, p, "fission"), JOT_ERR_INTERNAL);
    ck_assert_msg(
        strstr(jot_error_message(), "the pass fission leaves a program that is wrong: "), "%s",
        jot_error_message());
    options.verifies = false;
    ck_assert_int_eq(pass_verify_program(&options, p, "fission"), JOT_OK);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, all_passes_keep_values, 0, 3);
    tcase_add_test(t, wrong_graphs_are_named);
    tcase_add_test(t, wrong_programs_are_named);
}

int main(void) { return support_run("passes/pipeline", add); }
