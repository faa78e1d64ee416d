// SPDX-License-Identifier: Apache-2.0
// Programs of functions of unknown extents, for arguments that have some.
#include "interop/refine.h"

#include "interop/jax_export.h"
#include "interop/tree.h"
#include "jot/jot.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

struct exported {
    unsigned char *bytes;
    struct jax_export *export;
    struct mlir_program *program;
};

static struct exported load(const char *name, bool is_vjp)
{
    struct exported x = {0};
    size_t n;
    x.bytes = tree_load(name, &n);
    ck_assert_int_eq(jax_export_read(name, x.bytes, n, &x.export), JOT_OK);
    const struct jax_export *e = is_vjp ? x.export->vjp : x.export;
    ck_assert_int_eq(mlir_read_bytecode(name, e->module, e->module_size, &x.program), JOT_OK);
    return x;
}

static void unload(struct exported *x)
{
    mlir_release(x->program);
    jax_export_release(x->export);
    free(x->bytes);
}

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
        snprintf(path, sizeof path, PROGRAMS "%s.jaxexport", cases[i].name);
        struct exported x = load(path, cases[i].is_vjp);
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
        unload(&x);
    }
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
    struct exported x = load(PROGRAMS "tails.jaxexport", false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mlir_program *p = NULL;
        ck_assert_int_eq(refine(x.program, cases[i].shapes, &p), JOT_ERR_SHAPE);
        ck_assert_msg(strstr(jot_error_message(), cases[i].message) != NULL, "%s",
                      jot_error_message());
        ck_assert_ptr_null(p);
    }
    unload(&x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("refine");
    TCase *group = tcase_create("refine");
    tcase_add_test(group, finds_extents);
    tcase_add_test(group, refuses_extents);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
