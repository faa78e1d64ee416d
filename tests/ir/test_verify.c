// SPDX-License-Identifier: Apache-2.0
// The verifier finds what was broken on purpose, says so once, and finds nothing else.
#include "ir/build.h"

#include <check.h>
#include <stdlib.h>

static struct ir_module *module;
static struct ir_graph *graph; // of the parts below

static void set_up(void)
{
    module = ir_module_create();
    ck_assert_ptr_nonnull(module);
    ck_assert_int_eq(ir_graph_parse(module,
                                    "jot ir 1\n"
                                    "function @0 inner(%0: f32[2]) {\n"
                                    "  %1 = neg %0 : f32[2]\n"
                                    "  return %1\n"
                                    "}\n"
                                    "function @1 outer(%0: f32[2]) {\n"
                                    "  %1 = call %0 {functions=[@0]} : f32[2]\n"
                                    "  return %1\n"
                                    "}\n"
                                    "function @2 main(%0: f32[2], %1: f32[3]) {\n"
                                    "  %2 = add %0, %0 : f32[2]\n"
                                    "  %3, %4 = barrier %2, %1 : f32[2], f32[3]\n"
                                    "  %5 = rev %3 {axes=[0]} : f32[2]\n"
                                    "  %6 = call %5 {functions=[@1]} : f32[2]\n"
                                    "  %7 = convert %6 {dtype=f64} : f64[2]\n"
                                    "  return %7, %4\n"
                                    "}\n",
                                    &graph),
                     JOT_OK);
}

static void tear_down(void) { ir_module_release(module); }

enum { ADD = 2, BARRIER = 3, REV = 4, CALL = 5, CONVERT = 6 }; // node numbers

static void swap_operands_backwards(void)
{
    graph->operands.at[graph->nodes.at[ADD].in + 1] = 5;
}

static void use_itself(void) { graph->operands.at[graph->nodes.at[ADD].in] = 2; }

static void use_nothing(void) { graph->operands.at[graph->nodes.at[ADD].in] = IR_NONE; }

static void operands_out_of_range(void) { graph->nodes.at[ADD].in = 7; }

static void operand_count_overflows(void) { graph->nodes.at[ADD].n_in = UINT32_MAX; }

static void drop_operand(void) { graph->nodes.at[ADD].n_in = 1; }

static void other_result_type(void) { graph->values.at[2].type = graph->values.at[1].type; }

static void other_dtype(void)
{
    graph->values.at[7].type = ir_type_with(graph->values.at[7].type, JOT_F32);
}

static void bad_dtype(void) { graph->values.at[7].type.dtype = 77; }

static void bad_shape(void) { graph->values.at[7].type.shape = 1000; }

static void bad_rank(void) { graph->values.at[7].type.rank = 2; }

static void bad_op(void) { graph->nodes.at[ADD].op = 9999; }

static void late_parameter(void)
{
    struct ir_node *n = &graph->nodes.at[ADD];
    n->op = IR_param;
}

static void parameter_is_other_op(void) { graph->nodes.at[1].op = IR_neg; }

static void too_many_parameters(void) { graph->n_params = 99; }

static void result_elsewhere(void) { graph->nodes.at[CONVERT].out = 6; }

static void results_out_of_range(void) { graph->nodes.at[CONVERT].n_out = 3; }

static void value_of_other_node(void) { graph->values.at[7].node = BARRIER; }

static void value_without_node(void)
{
    vec_push(module->arena, &graph->values, graph->values.at[0]);
}

static void output_out_of_range(void) { graph->outputs.at[1] = 8; }

static void place_out_of_range(void) { graph->nodes.at[ADD].where = 12; }

static struct ir_attrs *copy_attrs(const struct ir_attrs *a)
{
    return arena_copy(module->arena, a, sizeof *a + a->count * sizeof a->fields[0]);
}

static void own_attrs(void)
{
    graph->nodes.at[REV].attrs = copy_attrs(graph->nodes.at[REV].attrs);
}

static void other_attrs(void)
{
    graph->nodes.at[REV].attrs = ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){1})));
}

static void no_attrs(void) { graph->nodes.at[CONVERT].attrs = NULL; }

static void two_numbers(void)
{
    graph->nodes.at[CONVERT].attrs = ir_attrs(module, IR_INTS(dtype, 2, ((int64_t[]){1, 2})));
}

static void attr_dtype(void)
{
    graph->nodes.at[CONVERT].attrs = ir_attrs(module, IR_INT(dtype, -1));
}

static void unordered_attrs(void)
{
    struct ir_attrs *a = (struct ir_attrs *)ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){0})),
                                                     IR_INT(index, 5));
    struct ir_field first = a->fields[0];
    a->fields[0] = a->fields[1];
    a->fields[1] = first;
    graph->nodes.at[REV].attrs = a;
}

static void drop_result(void) { graph->nodes.at[BARRIER].n_out = 1; }

static void unknown_function(void)
{
    graph->nodes.at[CALL].attrs = ir_attrs(module, IR_INT(functions, 2));
}

static void recursion(void)
{
    struct ir_graph *inner = ir_function(module, 0);
    inner->nodes.at[1].op = IR_call;
    inner->nodes.at[1].attrs = ir_attrs(module, IR_INT(functions, 1));
}

static void self_recursion(void)
{
    struct ir_graph *inner = ir_function(module, 0);
    inner->nodes.at[1].op = IR_call;
    inner->nodes.at[1].attrs = ir_attrs(module, IR_INT(functions, 0));
}

static void broken_signature(void) { ir_function(module, 1)->outputs.at[0] = 9; }

static void two_faults(void)
{
    other_dtype();
    place_out_of_range();
}

static const struct {
    void (*corrupt)(void);
    int faults;
    const char *report;
} rows[] = {
    {swap_operands_backwards, 1,
     "graph main: node 2 (add): operand 1 is %5, which is not defined before it\n"},
    {use_itself, 1,
     "graph main: node 2 (add): operand 0 is %2, which is not defined before it\n"},
    {use_nothing, 1, "graph main: node 2 (add): operand 0 is %4294967295 of 8 values\n"},
    {operands_out_of_range, 1,
     "graph main: node 2 (add): 2 operands from 7 of 7 in the graph\n"},
    {operand_count_overflows, 1, NULL},
    {drop_operand, 1, "graph main: node 2 (add): add takes 2 operands, not 1\n"},
    {other_result_type, 2,
     "graph main: node 2 (add): result %2 is f32[3], not f32[2]\n"
     "graph main: node 3 (barrier): result %3 is f32[2], not f32[3]\n"},
    {other_dtype, 1, "graph main: node 6 (convert): result %7 is f32[2], not f64[2]\n"},
    {bad_dtype, 1, "graph main: value %7: 77 is not a dtype\n"},
    {bad_shape, 1, NULL},
    {bad_rank, 1, "graph main: value %7: rank 2, but its shape has 1 axes\n"},
    {bad_op, 1, "graph main: node 2: 9999 is not an op\n"},
    {late_parameter, 1, "graph main: node 2 (param): a parameter after other nodes\n"},
    {parameter_is_other_op, 1,
     "graph main: node 1 (neg): the first 2 nodes are the parameters %0 to %1\n"},
    {too_many_parameters, 1, "graph main: 99 parameters, but 7 nodes and 8 values\n"},
    {result_elsewhere, 3,
     "graph main: node 6 (convert): %6 is the result of two nodes\n"
     "graph main: node 6 (convert): its result %6 says it is of node 5\n"
     "graph main: value %7 is the result of no node\n"},
    {results_out_of_range, 2,
     "graph main: node 6 (convert): 3 results from %7 of 8 values\n"
     "graph main: value %7 is the result of no node\n"},
    {value_of_other_node, 1,
     "graph main: node 6 (convert): its result %7 says it is of node 3\n"},
    {value_without_node, 1, "graph main: value %8 is the result of no node\n"},
    {output_out_of_range, 1, "graph main: output 1 is %8 of 8 values\n"},
    {place_out_of_range, 1, "graph main: node 2 (add): place 12 of 1 in the module\n"},
    {own_attrs, 1, "graph main: node 4 (rev): its attributes are not interned\n"},
    {other_attrs, 1, "graph main: node 4 (rev): axis 1 of f32[2]: axes are -1 to 0\n"},
    {no_attrs, 1,
     "graph main: node 6 (convert): convert needs the attribute dtype, one number\n"},
    {two_numbers, 1,
     "graph main: node 6 (convert): 2 numbers in the attribute dtype, which is one\n"},
    {attr_dtype, 1, "graph main: node 6 (convert): -1 is not a dtype\n"},
    {unordered_attrs, 1,
     "graph main: node 4 (rev): its attributes are not in increasing order\n"},
    {drop_result, 2,
     "graph main: node 3 (barrier): it has 1 results, not 2\n"
     "graph main: value %4 is the result of no node\n"},
    {unknown_function, 1, "graph main: node 5 (call): function 2 of 2 in the module\n"},
    {recursion, 1,
     "function 0 inner: node 1 (call): function 0 uses function 1, which is not older\n"},
    {self_recursion, 1,
     "function 0 inner: node 1 (call): function 0 uses function 0, which is not older\n"},
    {broken_signature, 1, "function 1 outer: output 0 is %9 of 2 values\n"},
    {two_faults, 2,
     "graph main: node 2 (add): place 12 of 1 in the module\n"
     "graph main: node 6 (convert): result %7 is f32[2], not f64[2]\n"},
};

START_TEST(sound)
{
    struct strbuf report = strbuf_make(module->arena);
    ck_assert_int_eq(ir_verify(graph, &report), 0);
    ck_assert_str_eq(report.text, "");
    for (uint32_t f = 0; f < module->functions.count; f++)
        ck_assert_int_eq(ir_verify(ir_function(module, f), NULL), 0);
}
END_TEST

START_TEST(corrupted)
{
    struct strbuf report = strbuf_make(module->arena);
    rows[_i].corrupt();
    int faults = ir_verify(graph, &report);
    if (rows[_i].report)
        ck_assert_str_eq(report.text, rows[_i].report);
    ck_assert_msg(faults == rows[_i].faults, "%d faults:\n%s", faults, report.text);
    ck_assert_int_eq(ir_verify(graph, NULL), faults);
}
END_TEST

// A graph that became a function is checked under its number.
START_TEST(own_number)
{
    struct strbuf report = strbuf_make(module->arena);
    struct ir_graph *outer = ir_function(module, 1);
    outer->nodes.at[1].attrs = ir_attrs(module, IR_INT(functions, 1));
    ck_assert_int_eq(ir_verify(outer, &report), 1);
    ck_assert_str_eq(report.text,
                     "function 1 outer: node 1 (call): function 1 uses function 1, "
                     "which is not older\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify");
    TCase *faults = tcase_create("faults");
    tcase_add_checked_fixture(faults, set_up, tear_down);
    tcase_add_test(faults, sound);
    tcase_add_loop_test(faults, corrupted, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(faults, own_number);
    suite_add_tcase(suite, faults);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
