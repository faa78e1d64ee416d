// SPDX-License-Identifier: Apache-2.0
// Any bytes give a program or a message with an offset, and memory in proportion: programs with
// bytes that are changed, taken out, doubled and taken from elsewhere (fuzz.h).
#include "interop/fuzz.h"
#include "interop/jax_export.h"
#include "interop/refine.h"
#include "interop/tree.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

enum { MAX_SIZE = 1 << 16 };

// Puts bytes of a program of the corpus in the place of others, perhaps of another length.
static size_t splice(unsigned char *bytes, size_t n)
{
    const struct fuzz_file *other = fuzz_any_file();
    size_t at = fuzz_below(n), length = fuzz_below(20), old = fuzz_below(20);
    size_t from = fuzz_below(other->n - length);
    old = at + old > n ? n - at : old;
    if (n - old + length > MAX_SIZE)
        return n;
    memmove(bytes + at + length, bytes + at + old, n - at - old);
    memcpy(bytes + at, other->bytes + from, length);
    return n - old + length;
}

static size_t mutate(unsigned char *bytes, size_t n)
{
    static const unsigned char extremes[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    size_t at = fuzz_below(n);
    switch (fuzz_below(6)) {
    case 0:
        bytes[at] ^= (unsigned char)(1u << fuzz_below(8));
        return n;
    case 1:
        bytes[at] = (unsigned char)fuzz_below(256);
        return n;
    case 2:
        bytes[at] = extremes[fuzz_below(sizeof extremes)];
        return n;
    case 3: // a number of eight bytes
        for (size_t i = at; i < n && i < at + 9; i++)
            bytes[i] = i == at ? 0 : fuzz_below(2) ? 0xff : 0;
        return n;
    case 4: // another number of the same length
        bytes[at] = (unsigned char)(bytes[at] + 2 * fuzz_below(8) - 8);
        return n;
    default:
        return splice(bytes, n);
    }
}

static void check_message(const void *made)
{
    ck_assert_ptr_null(made);
    ck_assert_msg(!strncmp(jot_error_message(), "f: offset ", 10), "%s", jot_error_message());
}

// What is written is a program, which is written again as the same bytes.
static void check_written(const struct strbuf *written)
{
    struct mlir_program *p = NULL;
    jot_status status = mlir_read_bytecode("f", written->text, written->length, &p);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    struct strbuf again = strbuf_make(p->arena);
    ck_assert_msg(mlir_write_bytecode(&again, p) == JOT_OK, "%s", jot_error_message());
    ck_assert_uint_eq(again.length, written->length);
    ck_assert_mem_eq(again.text, written->text, written->length);
    mlir_release(p);
}

// Some extents for those of main that are not known: a program, or a message.
static void check_refined(const struct mlir_program *p)
{
    enum { MAX_ARGUMENTS = 8, MAX_RANK = 4 };
    const struct mlir_function *f = mlir_function_find(p, "main");
    struct mlir_argument arguments[MAX_ARGUMENTS] = {0};
    struct mlir_type types[MAX_ARGUMENTS];
    int64_t dims[MAX_ARGUMENTS][MAX_RANK], extent = 4 + (int64_t)fuzz_below(3);
    struct mlir_program *refined = NULL;
    for (uint32_t i = 0; f && i < f->type->n_inputs; i++) {
        if (i == MAX_ARGUMENTS || f->type->parts[i]->rank > MAX_RANK)
            return;
        types[i] = *f->type->parts[i];
        types[i].dims = dims[i];
        for (int k = 0; k < types[i].rank; k++) {
            dims[i][k] = f->type->parts[i]->dims[k];
            dims[i][k] = dims[i][k] == MLIR_DYNAMIC
                             ? types[i].rank == 1 ? 3 * extent + 1 : extent
                             : dims[i][k];
        }
        arguments[i] = (struct mlir_argument){.type = &types[i],
                                              .is_known = !i && !types[i].rank &&
                                                          types[i].element == MLIR_I32};
    }
    if (mlir_refine(p, "main", arguments, f ? f->type->n_inputs : 0, &refined) != JOT_OK) {
        ck_assert_ptr_null(refined);
        ck_assert_msg(!strncmp(jot_error_message(), "f: ", 3), "%s", jot_error_message());
        return;
    }
    struct strbuf tree = strbuf_make(refined->arena), written = strbuf_make(refined->arena);
    tree_print(&tree, refined);
    if (mlir_write_bytecode(&written, refined) == JOT_OK)
        check_written(&written);
    mlir_release(refined);
}

static bool read_program(const unsigned char *bytes, size_t n)
{
    struct mlir_program *p = NULL;
    if (mlir_read_bytecode("f", bytes, n, &p) != JOT_OK) {
        check_message(p);
        return false;
    }
    ck_assert_msg(arena_bytes(p->arena) <= 300 * n + (1 << 20), "%zu bytes of %zu",
                  arena_bytes(p->arena), n);
    struct strbuf tree = strbuf_make(p->arena), written = strbuf_make(p->arena);
    tree_print(&tree, p);
    if (mlir_write_bytecode(&written, p) == JOT_OK)
        check_written(&written);
    check_refined(p);
    mlir_release(p);
    return true;
}

static bool read_export(const unsigned char *bytes, size_t n)
{
    struct jax_export *e = NULL;
    jax_export_is(bytes, n);
    if (jax_export_read("f", bytes, n, &e) != JOT_OK) {
        check_message(e);
        return false;
    }
    ck_assert_msg(arena_bytes(e->arena) <= 40 * n + (1 << 20), "%zu bytes of %zu",
                  arena_bytes(e->arena), n);
    bool is_good = true;
    for (const struct jax_export *x = e; x; x = x->vjp)
        is_good = read_program(x->module, x->module_size) && is_good;
    jax_export_release(e);
    return is_good;
}

static bool change_and_read(const struct fuzz_file *file)
{
    static unsigned char bytes[MAX_SIZE + 32];
    size_t n = file->n;
    memcpy(bytes, file->bytes, n);
    for (uint64_t k = 1 + fuzz_below(4); k > 0; k--)
        n = mutate(bytes, n);
    unsigned char *exact = fuzz_exact(bytes, n);
    bool is_export = strstr(file->name, "export") != NULL;
    bool is_taken = is_export ? read_export(exact, n) : read_program(exact, n);
    free(exact);
    return is_taken;
}

START_TEST(survives_any_bytes)
{
    fuzz_run(PROGRAMS "{*.bytecode,{mesh,model,tails}.jaxexport}", 3, 3000, change_and_read);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 1200);
    tcase_add_test(t, survives_any_bytes);
}

int main(void) { return suite_run("bytecode_fuzz", add_tests); }
