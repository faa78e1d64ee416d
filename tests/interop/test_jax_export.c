// SPDX-License-Identifier: Apache-2.0
// Functions that jax.export has serialized.
#include "interop/jax_export.h"

#include "interop/tree.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

static void check_module(const struct jax_export *e, uint32_t n_arguments)
{
    struct mlir_program *p = NULL;
    jot_status status = mlir_read_bytecode(e->file, e->module, e->module_size, &p);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    ck_assert_uint_eq(mlir_function_find(p, "main")->type->n_inputs, n_arguments);
    mlir_release(p);
}

START_TEST(reads_functions)
{
    size_t n;
    unsigned char *bytes = tree_load(PROGRAMS "model.jaxexport", &n);
    struct jax_export *e = NULL;
    ck_assert(jax_export_is(bytes, n));
    ck_assert_msg(jax_export_read("model", bytes, n, &e) == JOT_OK, "%s", jot_error_message());
    ck_assert_str_eq(e->function_name, "model");
    ck_assert_int_eq(e->calling_convention, 10);
    ck_assert_uint_eq(e->n_platforms, 2);
    ck_assert_str_eq(e->platforms[1], "cuda");
    ck_assert_uint_eq(e->n_devices, 1);
    ck_assert(e->uses_global_constants);
    ck_assert_uint_eq(e->n_in, 3);
    ck_assert_uint_eq(e->in[0].rank, 2);
    ck_assert_str_eq(e->in[0].dims[0], "n");
    ck_assert_str_eq(e->in[0].dims[1], "8");
    ck_assert_int_eq(e->in[1].element, MLIR_I32);
    ck_assert_uint_eq(e->n_out, 2);
    ck_assert_uint_eq(e->out[1].rank, 0);
    ck_assert_uint_eq(e->n_ordered + e->n_unordered + e->n_disabled, 0);
    check_module(e, e->n_kept + 1); // the platform
    ck_assert_ptr_nonnull(e->vjp);
    ck_assert_str_eq(e->vjp->out[1].dtype, "float0");
    check_module(e->vjp, e->vjp->n_kept + 1);
    ck_assert_ptr_null(e->vjp->vjp);
    jax_export_release(e);
    free(bytes);
}
END_TEST

// Beginnings of a function do no harm, and what is no such function is said to be none.
START_TEST(refuses)
{
    size_t n;
    unsigned char *bytes = tree_load(PROGRAMS "model.jaxexport", &n);
    for (size_t i = 0; i < n; i += 1 + i / 300) {
        struct jax_export *e = NULL;
        unsigned char *part = malloc(i + 1);
        memcpy(part, bytes, i);
        if (jax_export_read("f", part, i, &e) == JOT_OK)
            jax_export_release(e);
        else
            ck_assert_msg(!strncmp(jot_error_message(), "f: offset ", 10), "%s",
                          jot_error_message());
        free(part);
    }
    free(bytes);
    bytes = tree_load(PROGRAMS "loops_1.17.0.bytecode", &n);
    ck_assert(!jax_export_is(bytes, n));
    free(bytes);
    bytes = tree_load(PROGRAMS "loops.mlir", &n);
    ck_assert(!jax_export_is(bytes, n));
    free(bytes);
    ck_assert(!jax_export_is("", 0));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, reads_functions);
    tcase_add_test(t, refuses);
}

int main(void) { return suite_run("jax_export", add_tests); }
