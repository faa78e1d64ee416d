// SPDX-License-Identifier: Apache-2.0
// Portable bytecode in and out: what jaxlib has written of programs of tests/interop/programs, and what
// nobody writes.
#include "base/memory.h"
#include "interop/refine.h"
#include "interop/tree.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAMS "tests/interop/programs/"

static char *tree_of(const struct mlir_program *p)
{
    struct strbuf tree = strbuf_make(p->arena);
    tree_print(&tree, p);
    return strdup(tree.text);
}

// All versions of VHLO, and of the bytecode that holds it, give the tree of the text.
START_TEST(reads_what_the_text_says)
{
    static const char *const names[][2] = {
        {"loops.mlir", "loops_0.9.0.bytecode"},    {"loops.mlir", "loops_0.13.0.bytecode"},
        {"loops.mlir", "loops_1.17.0.bytecode"},   {"forms.mlir", "forms_1.17.0.bytecode"},
        {"groups.mlir", "groups_1.17.0.bytecode"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *trees[2];
        for (int k = 0; k < 2; k++) {
            struct tree_file f = tree_open(names[i][k], false);
            trees[k] = tree_of(f.program);
            tree_close(&f);
        }
        tree_compare(names[i][1], trees[0], trees[1]);
        free(trees[0]);
        free(trees[1]);
    }
}
END_TEST

// Functions of old programs are not isolated from what is around them: what says so is in the number of their
// regions, 2 and not 3, as numbers of bytecode 5 and 7.  In old bytecode all else is the same.
START_TEST(reads_functions_that_are_not_isolated)
{
    size_t n;
    unsigned char *bytes = tree_load(PROGRAMS "loops_0.9.0.bytecode", &n);
    struct mlir_program *p = NULL;
    ck_assert_int_lt(bytes[4] >> 1, 2); // the version
    ck_assert_int_eq(mlir_read_bytecode("f", bytes, n, &p), JOT_OK);
    char *want = tree_of(p);
    for (uint32_t k = 0; k < p->n_functions; k++) {
        bool is_read = false;
        unsigned char *at = bytes + p->functions[k].place.column;
        for (int i = 0; i < 16 && !is_read; i++) {
            struct mlir_program *q = NULL;
            if (at[i] != 7)
                continue;
            at[i] = 5;
            char *have = mlir_read_bytecode("f", bytes, n, &q) == JOT_OK ? tree_of(q) : NULL;
            is_read = have && !strcmp(want, have);
            at[i] = is_read ? 5 : 7;
            mlir_release(q);
            free(have);
        }
        ck_assert_msg(is_read, "%s", jot_error_message());
    }
    mlir_release(p);
    free(want);
    free(bytes);
}
END_TEST

static const struct mlir_op *find(const struct mlir_block *block, const char *name)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i], *inner = NULL;
        if (!strcmp(op->name, name))
            return op;
        for (uint32_t k = 0; k < op->n_regions && !inner; k++)
            inner = find(&op->regions[k], name);
        if (inner)
            return inner;
    }
    return NULL;
}

// Attributes have the form of the table, and are not there where they are as if they were not.
START_TEST(has_the_normal_form)
{
    struct tree_file f = tree_open("forms_1.17.0.bytecode", false);
    const struct mlir_program *p = f.program;
    size_t n;
    const struct mlir_op *op =
        find(mlir_function_find(p, "shape")->body, "stablehlo.reduce_window");
    const int64_t *padding = mlir_ints(op, "padding", &n);
    ck_assert_uint_eq(n, 6);
    ck_assert_int_eq(padding[2], 1);
    ck_assert_ptr_null(mlir_attr_find(op, "base_dilations"));
    op = find(mlir_function_find(p, "shape")->body, "stablehlo.triangular_solve");
    ck_assert_str_eq(mlir_text(op, "transpose_a"), "ADJOINT");
    ck_assert_int_eq(mlir_int(op, "left_side", 0), 1);
    op = find(mlir_function_find(p, "main")->body, "stablehlo.composite");
    ck_assert_int_eq(mlir_attr_find(op, "decomposition")->kind, MLIR_SYMBOL);
    ck_assert_str_eq(mlir_text(op, "name"), "my.thing");
    op = find(mlir_function_find(p, "helper")->body, "stablehlo.return");
    ck_assert_ptr_nonnull(op);
    ck_assert_ptr_nonnull(find(mlir_function_find(p, "helper")->body, "func.return"));
    op = find(mlir_function_find(p, "conv")->body, "stablehlo.convolution");
    ck_assert_ptr_nonnull(mlir_ints(op, "window_reversal", &n));
    ck_assert_uint_eq(n, 2);
    const struct mlir_attr *words = mlir_attr_find(op, "precision_config");
    ck_assert_str_eq(words->parts[0]->text, "HIGH");
    op = find(mlir_function_find(p, "index")->body, "stablehlo.gather");
    ck_assert_ptr_null(mlir_attr_find(op, "indices_are_sorted"));
    tree_close(&f);
}
END_TEST

// Of bytes that are not what they should be nothing is made, and the message says where.
START_TEST(refuses)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *message;
    } cases[] = {
        {"", 0, "f: offset 0: the bytecode ends too early here"},
        {"module {}", 9, "f: offset 0: no MLIR bytecode: the first four bytes are others"},
        {"ML\xefR\x0fx", 6,
         "f: offset 5: MLIR bytecode of version 7, of which 6 is the newest read"},
        {"ML\xefR\x0dx\0\x0a\x01", 9, "f: offset 7: a section of number 10"},
        {"ML\xefR\x0dx\0\x80\x01\x07", 10, "f: offset 7: an alignment of 3"},
        {"ML\xefR\x0dx\0", 7, "f: offset 7: the bytecode ends too early here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mlir_program *p = NULL;
        ck_assert_int_eq(mlir_read_bytecode("f", cases[i].bytes, cases[i].n, &p),
                         JOT_ERR_ARGUMENT);
        ck_assert_str_eq(jot_error_message(), cases[i].message);
        ck_assert_ptr_null(p);
    }
}
END_TEST

// Every beginning of a program is refused: its end is needed.
START_TEST(refuses_beginnings)
{
    size_t n;
    unsigned char *bytes = tree_load(PROGRAMS "loops_1.17.0.bytecode", &n);
    for (size_t i = 0; i < n; i++) {
        struct mlir_program *p = NULL;
        unsigned char *part = malloc(i + 1);
        memcpy(part, bytes, i);
        ck_assert_int_eq(mlir_read_bytecode("f", part, i, &p), JOT_ERR_ARGUMENT);
        free(part);
    }
    free(bytes);
}
END_TEST

// What is written is read as the same tree, and written again as the same bytes.
START_TEST(writes_what_it_reads)
{
    static const char *const names[] = {"loops.mlir", "forms.mlir", "loops_0.9.0.bytecode",
                                        "forms_1.17.0.bytecode"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tree_file f = tree_open(names[i], false);
        struct mlir_program *p = f.program, *q = NULL;
        struct strbuf first = strbuf_make(p->arena), second = strbuf_make(p->arena);
        ck_assert_msg(mlir_write_bytecode(&first, p) == JOT_OK, "%s", jot_error_message());
        ck_assert_msg(mlir_read_bytecode("written", first.text, first.length, &q) == JOT_OK,
                      "%s", jot_error_message());
        ck_assert_int_eq(mlir_write_bytecode(&second, q), JOT_OK);
        ck_assert_uint_eq(second.length, first.length);
        ck_assert_mem_eq(second.text, first.text, first.length);
        char *from = tree_of(q);
        char *of = tree_of(p);
        tree_compare(names[i], of, from);
        free(of);
        free(from);
        mlir_release(q);
        tree_close(&f);
    }
}
END_TEST

// A Python with JAX takes what is written of a text for what JAX wrote: JOT_PYTHON names it.
START_TEST(jax_reads_what_is_written)
{
    const char *python = getenv("JOT_PYTHON");
    static const char *const names[][2] = {{"loops.mlir", "loops_1.17.0.bytecode"},
                                           {"forms.mlir", "forms_1.17.0.bytecode"}};
    for (size_t i = 0; python && *python && i < sizeof names / sizeof *names; i++) {
        struct tree_file f = tree_open(names[i][0], false);
        struct strbuf written = strbuf_make(f.program->arena);
        struct strbuf command = strbuf_make(f.program->arena);
        ck_assert_int_eq(mlir_write_bytecode(&written, f.program), JOT_OK);
        char path[] = "/tmp/jot-bytecode-XXXXXX";
        int file = mkstemp(path);
        ck_assert_int_ge(file, 0);
        ck_assert_int_eq(write(file, written.text, written.length), (ssize_t)written.length);
        close(file);
        strbuf_printf(&command, "%s tests/interop/accepts.py %s " PROGRAMS "%s", python, path,
                      names[i][1]);
        ck_assert_msg(system(command.text) == 0, "JAX refuses %s", names[i][0]);
        unlink(path);
        tree_close(&f);
    }
}
END_TEST

static void count_release(void *bytes, void *ctx)
{
    (void)bytes;
    ++*(int *)ctx;
}

// Wherever the bytes begin: numbers of four bytes stay there, those of eight where there is room to move them.
START_TEST(large_constants_stay)
{
    enum { N = 1 << 15 };
    struct mlir_program *p = NULL, *q = NULL;
    struct strbuf text, written;
    struct arena *arena = arena_create();
    text = strbuf_make(arena), written = strbuf_make(arena);
    strbuf_add(&text, "func.func @main() {\n  %0 = stablehlo.constant dense<\"0x");
    for (int i = 0; i < N; i++)
        strbuf_printf(&text, "%02x%02x0000", i & 255, i >> 8 & 255);
    strbuf_printf(&text, "\"> : tensor<%dxi32>\n  %%1 = stablehlo.constant dense<\"0x", N);
    for (int i = 0; i < N; i++)
        strbuf_printf(&text, "%02x%02x000000000000", i & 255, i >> 8 & 255);
    strbuf_printf(&text, "\"> : tensor<%dxi64>\n  return\n}", N);
    ck_assert_msg(mlir_read_text("t", text.text, text.length, &p) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_int_eq(mlir_write_bytecode(&written, p), JOT_OK);
    mlir_release(p);
    unsigned char *bytes = malloc(written.length + 8);
    int n_released = 0, n_stay = 0;
    for (int at = 0; at < 8; at++) {
        struct mlir_memory *m = memory_allocate_zeroed(sizeof *m);
        *m = (struct mlir_memory){.bytes = bytes, .release = count_release, .ctx = &n_released};
        atomic_init(&m->uses, 1);
        memcpy(bytes + at, written.text, written.length);
        ck_assert_msg(mlir_read_bytecode_in(m, "w", bytes + at, written.length, &q) == JOT_OK,
                      "%s", jot_error_message());
        mlir_memory_leave(m);
        for (int k = 0; k < 2; k++) {
            const struct mlir_attr *a = mlir_attr_find(q->functions[0].body->ops[k], "value");
            bool stays = a->bytes > bytes && a->bytes < bytes + 8 + written.length;
            ck_assert(a->array && (uintptr_t)a->bytes % (k ? 8 : 4) == 0 && (stays || k));
            n_stay += stays;
            for (int64_t i = 0; i < N; i++)
                ck_assert(
                    i == (k ? ((const int64_t *)a->bytes)[i] : ((const int32_t *)a->bytes)[i]));
        }
        ck_assert_int_eq(n_released, at);
        mlir_release(q);
        ck_assert_int_eq(n_released, at + 1);
    }
    ck_assert_int_ge(n_stay, 8 + 5);
    free(bytes);
    arena_release(arena);
}
END_TEST

// Reads, writes and makes for extents with ever more memory: whatever is out gives its status, and
// nothing is kept.
START_TEST(runs_out_of_memory)
{
    unsigned char *bytes;
    size_t n;
    bytes = tree_load(PROGRAMS "loops_1.17.0.bytecode", &n);
    int64_t before = memory_live_blocks();
    jot_status status = JOT_ERR_MEMORY;
    for (uint64_t limit = 1; status != JOT_OK; limit++) {
        struct mlir_program *p = NULL, *q = NULL;
        memory_fail_after(limit);
        status = mlir_read_bytecode("f", bytes, n, &p);
        if (status == JOT_OK) {
            const struct mlir_type *t = mlir_function_find(p, "main")->type;
            struct mlir_argument arguments[2] = {{.type = t->parts[0]}, {.type = t->parts[1]}};
            status = mlir_refine(p, "main", arguments, 2, &q);
        }
        struct arena_guard guard;
        if (status == JOT_OK && !arena_guard_left(&guard)) {
            struct strbuf written = strbuf_make(p->arena);
            status = mlir_write_bytecode(&written, p);
            arena_guard_close(&guard);
        } else if (status == JOT_OK) {
            status = JOT_ERR_MEMORY;
        }
        memory_fail_after(0);
        ck_assert(status == JOT_OK || status == JOT_ERR_MEMORY);
        mlir_release(q);
        mlir_release(p);
        ck_assert_int_eq(memory_live_blocks(), before);
    }
    free(bytes);
}
END_TEST

// A padding of three numbers is no table of pairs: it is written as the list that it is, for whoever traces it
// to refuse.
START_TEST(keeps_what_is_no_table)
{
    static const char text[] =
        "func.func @main(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<9xf32> {\n"
        "  %0 = \"stablehlo.pad\"(%x, %v) <{edge_padding_low = array<i64: 2>, "
        "edge_padding_high = "
        "array<i64: 3>, interior_padding = array<i64: 0>, padding = array<i64: 1, 2, 1>}> : "
        "(tensor<4xf32>, tensor<f32>) -> tensor<9xf32>\n  return %0 : tensor<9xf32>\n}";
    int64_t dims[2];
    const int64_t numbers[] = {1, 2, 1, 4};
    struct mlir_attr odd = {.kind = MLIR_INTS, .n = 3, .numbers = numbers}, even = odd;
    even.n = 4;
    ck_assert(!mlir_table_of("padding", &odd, dims));
    ck_assert(mlir_table_of("padding", &even, dims) && dims[0] == 2 && dims[1] == 2);
    struct mlir_program *p = NULL, *q = NULL;
    ck_assert_msg(mlir_read_text("t", text, strlen(text), &p) == JOT_OK, "%s",
                  jot_error_message());
    struct strbuf written = strbuf_make(p->arena);
    ck_assert_int_eq(mlir_write_bytecode(&written, p), JOT_OK);
    ck_assert_msg(mlir_read_bytecode("w", written.text, written.length, &q) == JOT_OK, "%s",
                  jot_error_message());
    mlir_release(q);
    mlir_release(p);
}
END_TEST

START_TEST(refuses_to_write)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"func.func @main(%x: tensor<f32>) {\n  %0 = chlo.erf %x : tensor<f32> -> tensor<f32>\n"
         "  return\n}",
         "t:2:8: chlo.erf: it has no portable form"},
        {"func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>) {\n  return\n}",
         "t: the type tensor<2x!quant.uniform<i8:f32, 0.5>> has no portable form"},
        {"func.func @main(%x: tensor<4xf32>) {\n"
         "  %0 = \"stablehlo.reverse\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}",
         "t:2:8: stablehlo.reverse: there is no dimensions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mlir_program *p = NULL;
        jot_status status = mlir_read_text("t", cases[i].text, strlen(cases[i].text), &p);
        ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
        struct strbuf written = strbuf_make(p->arena);
        ck_assert_int_eq(mlir_write_bytecode(&written, p), JOT_ERR_ARGUMENT);
        ck_assert_str_eq(jot_error_message(), cases[i].message);
        mlir_release(p);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 60); // of jax_reads_what_is_written
    tcase_add_test(t, reads_what_the_text_says);
    tcase_add_test(t, reads_functions_that_are_not_isolated);
    tcase_add_test(t, has_the_normal_form);
    tcase_add_test(t, refuses);
    tcase_add_test(t, refuses_beginnings);
    tcase_add_test(t, writes_what_it_reads);
    tcase_add_test(t, jax_reads_what_is_written);
    tcase_add_test(t, keeps_what_is_no_table);
    tcase_add_test(t, refuses_to_write);
    tcase_add_test(t, large_constants_stay);
    tcase_add_test(t, runs_out_of_memory);
}

int main(void) { return suite_run("bytecode", add_tests); }
