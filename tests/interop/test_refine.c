// SPDX-License-Identifier: Apache-2.0
// Programs of functions of unknown extents, for arguments that have some.
#include "interop/refine.h"

#include "interop/tree.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Shapes as "6x8 2 8x5", a number that is known as "=1".
static jot_status refine(const struct mlir_program *p, const char *shapes,
                         struct mlir_program **out)
{
    const struct mlir_type *of = mlir_function_find(p, "main")->type;
    struct mlir_argument arguments[8] = {0};
    struct mlir_type types[8];
    int64_t dims[8][4];
    uint32_t n = 0;
    for (const char *at = shapes; *at; n++) {
        char *end;
        ck_assert_uint_lt(n, of->n_inputs);
        if (*at == '=') {
            arguments[n] =
                (struct mlir_argument){.is_known = true, .value = strtol(at + 1, &end, 10)};
        } else {
            types[n] = *of->parts[n];
            types[n].rank = 0;
            types[n].dims = dims[n];
            end = (char *)at;
            while (*end && *end != ' ' && *end != '-') {
                dims[n][types[n].rank++] = strtol(end, &end, 10);
                end += *end == 'x';
            }
            end += *end == '-';
            arguments[n].type = &types[n];
        }
        at = *end ? end + 1 : end;
    }
    return mlir_refine(p, "main", arguments, n, out);
}

// Each program has extents that are all known; of types of main as they should be.
START_TEST(finds_extents)
{
    static const struct {
        const char *name;
        bool is_vjp;
        const char *shapes, *type, *operation;
    } cases[] = {
        {"model", false, "=0 6x8 2 8x5",
         "(tensor<6x8xf32>, tensor<2xi32>, tensor<8x5xf32>) -> (tensor<6x5xf32>, tensor<f32>)",
         "tensor<6xf32> = stablehlo.iota"},
        {"model", false, "=1 4x8 2 8x5",
         "(tensor<4x8xf32>, tensor<2xi32>, tensor<8x5xf32>) -> (tensor<4x5xf32>, tensor<f32>)",
         "tensor<4x5xf32> = stablehlo.dot_general"},
        {"model", true, "=0 6x8 2 8x5 6x5 -",
         "(tensor<6x8xf32>, tensor<2xi32>, tensor<8x5xf32>, tensor<6x5xf32>, tensor<f32>) -> "
         "(tensor<6x8xf32>, tensor<2xi1>, tensor<8x5xf32>)",
         "tensor<8x5xf32> = stablehlo.transpose"},
        {"tails", false, "6x5 16",
         "(tensor<6x5xf32>, tensor<16xf32>) -> (tensor<5xf32>, tensor<6x5xf32>, "
         "tensor<4x3xf32>, tensor<46xbf16>)",
         "tensor<1x5xf32> = stablehlo.dynamic_slice"},
        {"tails", true, "6x5 16 5 6x5 4x3 46",
         "(tensor<6x5xf32>, tensor<16xf32>, tensor<5xf32>, tensor<6x5xf32>, tensor<4x3xf32>, "
         "tensor<46xbf16>) -> (tensor<6x5xf32>, tensor<16xf32>)",
         "tensor<6x5xf32> = stablehlo.scatter"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s.jaxexport", cases[i].name);
        struct tree_file x = tree_open(path, cases[i].is_vjp);
        struct mlir_program *p = NULL;
        ck_assert_msg(refine(x.program, cases[i].shapes, &p) == JOT_OK, "%s",
                      jot_error_message());
        struct strbuf type = strbuf_make(p->arena), tree = strbuf_make(p->arena);
        mlir_print_type(&type, p->functions[0].type);
        ck_assert_str_eq(type.text, cases[i].type);
        ck_assert_str_eq(p->functions[0].name, "main");
        tree_print(&tree, p);
        ck_assert_msg(!strstr(tree.text, "<?x") && !strstr(tree.text, "x?x"), "%.600s",
                      tree.text);
        ck_assert_msg(strstr(tree.text, cases[i].operation) != NULL, "%.600s", tree.text);
        ck_assert_msg(!strstr(tree.text, "stablehlo.dynamic_broadcast"), "%.600s", tree.text);
        ck_assert_msg(!strstr(tree.text, "assertion"), "%.600s", tree.text);
        mlir_release(p);
        tree_close(&x);
    }
}
END_TEST

// Operations of %x of 5 by 4, whose extents are %n and %m, and what they become.
START_TEST(takes_extents_from_operands)
{
    static const struct {
        const char *operation, *becomes;
    } cases[] = {
        {"%y = stablehlo.dynamic_reshape %x, %mn : (tensor<?x?xf32>, tensor<2xi32>) -> "
         "tensor<?x?xf32>",
         "tensor<4x5xf32> = stablehlo.reshape(%0) { }"},
        {"%y = stablehlo.dynamic_pad %x, %z, %two, %two, %two : (tensor<?x?xf32>, tensor<f32>, "
         "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>",
         "tensor<17x14xf32> = stablehlo.pad(%0, %1) { edge_padding_high = [2, 2] "
         "edge_padding_low = [2, 2] interior_padding = [2, 2] }"},
        {"%y:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) : (tensor<?x?xf32>, "
         "tensor<i32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)",
         "tensor<5x3xf32> %2 tensor<5x3xi32> = chlo.top_k(%0) { k = 3 }"},
        {"%y:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %mn) "
         "{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>, "
         "tensor<2xi32>) -> (tensor<2xui64>, tensor<?x?xui32>)",
         "tensor<4x5xui32> = stablehlo.rng_bit_generator(%1) { rng_algorithm = THREE_FRY }"},
        {"%y = stablehlo.custom_call @f(%x, %z, %mn) {indices_of_shape_operands = "
         "dense<2> : tensor<1xi64>, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, "
         "dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>], result_layouts = "
         "[dense<[1, 0]> : tensor<2xindex>]} : (tensor<?x?xf32>, tensor<f32>, "
         "tensor<2xi32>) -> tensor<?x?xf32>",
         "tensor<4x5xf32> = stablehlo.custom_call(%0, %1) { call_target_name = \"f\""},
        {"%y = \"stablehlo.case\"(%k) ({ %a = stablehlo.sine %x : tensor<?x?xf32>\n"
         "stablehlo.return %a : tensor<?x?xf32> }, { %a = stablehlo.cosine %x : "
         "tensor<?x?xf32>\n stablehlo.return %a : tensor<?x?xf32> }) : (tensor<i32>) -> "
         "tensor<?x?xf32>",
         "tensor<5x4xf32> = stablehlo.cosine(%0) { }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[3000];
        struct mlir_program *p = NULL, *q = NULL;
        snprintf(text, sizeof text,
                 "func.func @main(%%x: tensor<?x?xf32>) {\n"
                 "  %%n = stablehlo.get_dimension_size %%x, dim = 0 : (tensor<?x?xf32>) -> "
                 "tensor<i32>\n"
                 "  %%m = stablehlo.get_dimension_size %%x, dim = 1 : (tensor<?x?xf32>) -> "
                 "tensor<i32>\n"
                 "  %%n1 = stablehlo.reshape %%n : (tensor<i32>) -> tensor<1xi32>\n"
                 "  %%m1 = stablehlo.reshape %%m : (tensor<i32>) -> tensor<1xi32>\n"
                 "  %%mn = stablehlo.concatenate %%m1, %%n1, dim = 0 : (tensor<1xi32>, "
                 "tensor<1xi32>) -> tensor<2xi32>\n"
                 "  %%k = stablehlo.constant dense<3> : tensor<i32>\n"
                 "  %%two = stablehlo.constant dense<2> : tensor<2xi32>\n"
                 "  %%z = stablehlo.constant dense<1.0> : tensor<f32>\n"
                 "  %%s = stablehlo.constant dense<7> : tensor<2xui64>\n"
                 "  %s\n  return\n}\n",
                 cases[i].operation);
        ck_assert_msg(mlir_read_text("t", text, strlen(text), &p) == JOT_OK, "%s",
                      jot_error_message());
        ck_assert_msg(refine(p, "5x4", &q) == JOT_OK, "%s", jot_error_message());
        struct strbuf tree = strbuf_make(q->arena);
        tree_print(&tree, q);
        ck_assert_msg(strstr(tree.text, cases[i].becomes) != NULL, "%.600s", tree.text);
        mlir_release(q);
        mlir_release(p);
    }
}
END_TEST

// What an operation names beside calls.
START_TEST(keeps_named_functions)
{
    const char text[] =
        "func.func @order(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) "
        "-> "
        "tensor<i1> {\n  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> "
        "tensor<i1>\n  return %0 : tensor<i1>\n}\n"
        "func.func @main(%x: tensor<?x?xf32>, %i: tensor<5x4xi32>, %u: tensor<f32>, %v: "
        "tensor<i32>) -> (tensor<5x2xf32>, tensor<5x2xi32>) {\n"
        "  %y:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %u, %v) {called_computations = "
        "[@order]} : "
        "(tensor<?x?xf32>, tensor<5x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<5x2xf32>, "
        "tensor<5x2xi32>)\n  return %y#0, %y#1 : tensor<5x2xf32>, tensor<5x2xi32>\n}\n";
    struct mlir_program *p = NULL, *q = NULL;
    ck_assert_msg(mlir_read_text("t", text, strlen(text), &p) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_msg(refine(p, "5x4 5x4 - -", &q) == JOT_OK, "%s", jot_error_message());
    ck_assert_ptr_nonnull(mlir_function_find(q, "order"));
    mlir_release(q);
    mlir_release(p);
}
END_TEST

// A limit that an operation gives which nobody knows.
START_TEST(refuses_unknown_limits)
{
    const char text[] =
        "func.func @main(%x: tensor<?x?xf32>) {\n"
        "  %one = stablehlo.constant dense<1> : tensor<2xi32>\n"
        "  %end = \"other.limit\"() : () -> tensor<2xi32>\n"
        "  %y = stablehlo.real_dynamic_slice %x, %one, %end, %one : (tensor<?x?xf32>, "
        "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>\n  return\n}\n";
    struct mlir_program *p = NULL, *q = NULL;
    ck_assert_msg(mlir_read_text("t", text, strlen(text), &p) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_int_ne(refine(p, "5x4", &q), JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), "real_dynamic_slice") != NULL, "%s",
                  jot_error_message());
    mlir_release(p);
}
END_TEST

START_TEST(refuses_extents)
{
    static const struct {
        const char *shapes, *message;
    } cases[] = {
        {"3x5 16", "Expected 'n - 4' to be greater or equal to 0, but found -1."},
        {"6x5 17",
         "dimension size args[1].shape[0] (= 17) and the specification '3*m + 1' (= 16)"},
        {"6 16", "argument 0 of main is tensor<?x?xf32>, not tensor<6xf32>"},
        {"=1 16", "argument 0 of main is tensor<?x?xf32>, not a number"},
        {"6x5", "there is no function main of 1 arguments"},
    };
    struct tree_file x = tree_open("tails.jaxexport", false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mlir_program *p = NULL;
        ck_assert_int_eq(refine(x.program, cases[i].shapes, &p), JOT_ERR_SHAPE);
        ck_assert_msg(strstr(jot_error_message(), cases[i].message) != NULL, "%s",
                      jot_error_message());
        ck_assert_ptr_null(p);
    }
    tree_close(&x);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, finds_extents);
    tcase_add_test(t, takes_extents_from_operands);
    tcase_add_test(t, keeps_named_functions);
    tcase_add_test(t, refuses_unknown_limits);
    tcase_add_test(t, refuses_extents);
}

int main(void) { return suite_run("refine", add_tests); }
