// SPDX-License-Identifier: Apache-2.0
#include "interop/tree.h"

#include "base/hash.h"
#include "interop/mlir_defaults.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_dense(struct strbuf *out, const struct mlir_attr *a)
{
    int64_t n = mlir_elements_of(a->type);
    size_t bytes = (size_t)(mlir_elements[a->type->element].bits + 7) / 8;
    uint64_t hash = 0;
    for (int64_t i = 0; i < n; i++)
        hash = hash_bytes(hash, a->bytes + (a->is_splat ? 0 : (size_t)i * bytes), bytes);
    strbuf_printf(out, "dense %016llx ", (unsigned long long)hash);
    mlir_print_type(out, a->type);
}

static void print_named(struct strbuf *out, const struct mlir_row *row,
                        const struct mlir_named *named, size_t n);

static void print_attr(struct strbuf *out, const struct mlir_attr *a)
{
    switch (a->kind) {
    case MLIR_UNIT:
        strbuf_add(out, "1");
        break;
    case MLIR_BOOL:
    case MLIR_INT:
        strbuf_printf(out, "%lld", (long long)a->integer);
        break;
    case MLIR_REAL:
        strbuf_printf(out, "%.17g", a->real);
        break;
    case MLIR_STRING:
        strbuf_add(out, "\"");
        for (size_t i = 0; i < a->n; i++)
            strbuf_printf(out, a->text[i] < 32 ? "\\%02x" : "%c", (unsigned char)a->text[i]);
        strbuf_add(out, "\"");
        break;
    case MLIR_SYMBOL:
        strbuf_printf(out, "@%s", a->text);
        break;
    case MLIR_TYPE:
        mlir_print_type(out, a->type);
        break;
    case MLIR_ARRAY:
        strbuf_add(out, "<");
        for (size_t i = 0; i < a->n; i++) {
            strbuf_add(out, i ? ", " : "");
            print_attr(out, a->parts[i]);
        }
        strbuf_add(out, ">");
        break;
    case MLIR_DICTIONARY:
        print_named(out, NULL, a->named, a->n);
        break;
    case MLIR_INTS:
        strbuf_add(out, "[");
        for (size_t i = 0; i < a->n; i++)
            strbuf_printf(out, i ? ", %lld" : "%lld", (long long)a->numbers[i]);
        strbuf_add(out, "]");
        break;
    case MLIR_DENSE:
        print_dense(out, a);
        break;
    default:
        strbuf_add(out, a->text ? a->text : "?");
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct mlir_named *const *)a)->name,
                  (*(const struct mlir_named *const *)b)->name);
}

static void print_named(struct strbuf *out, const struct mlir_row *row,
                        const struct mlir_named *named, size_t n)
{
    const struct mlir_named **sorted =
        arena_array(out->arena, const struct mlir_named *, n + 1);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &named[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    strbuf_add(out, "{");
    for (size_t i = 0; i < n; i++) {
        const struct mlir_default *d = row ? mlir_default_find(row, sorted[i]->name) : NULL;
        if (d && mlir_default_is(d, sorted[i]->attr))
            continue;
        int64_t table[2];
        strbuf_printf(out, " %s = ", sorted[i]->name);
        print_attr(out, sorted[i]->attr);
        if (sorted[i]->attr->kind == MLIR_INTS &&
            mlir_table_of(sorted[i]->name, sorted[i]->attr, table))
            strbuf_printf(out, " in %lld rows", (long long)table[0]);
    }
    strbuf_add(out, " }");
}

// Values get numbers in the order of the text.
struct numbers {
    uint32_t *of; // by their own
    uint32_t next, n;
};

static void print_new(struct strbuf *out, struct numbers *numbers, const struct mlir_value *v)
{
    ck_assert_uint_lt(v->number, numbers->n);
    numbers->of[v->number] = numbers->next++;
    strbuf_printf(out, "%%%u ", numbers->of[v->number]);
    mlir_print_type(out, v->type);
}

static void print_block(struct strbuf *out, struct numbers *numbers,
                        const struct mlir_block *block, int depth)
{
    strbuf_printf(out, "%*s(", depth, "");
    for (uint32_t i = 0; i < block->n_args; i++) {
        strbuf_add(out, i ? ", " : "");
        print_new(out, numbers, block->args[i]);
    }
    strbuf_add(out, ")\n");
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        strbuf_printf(out, "%*s", depth, "");
        for (uint32_t k = 0; k < op->n_results; k++) {
            print_new(out, numbers, op->results[k]);
            strbuf_add(out, " ");
        }
        strbuf_printf(out, "= %s%s(", op->row ? "" : "unknown ", op->name);
        for (uint32_t k = 0; k < op->n_operands; k++)
            strbuf_printf(out, k ? ", %%%u" : "%%%u", numbers->of[op->operands[k]->number]);
        strbuf_add(out, ") ");
        print_named(out, op->row, op->attrs, op->n_attrs);
        strbuf_add(out, "\n");
        for (uint32_t k = 0; k < op->n_regions; k++)
            print_block(out, numbers, &op->regions[k], depth + 2);
    }
}

static void print_each(struct strbuf *out, const char *what,
                       const struct mlir_attr *const *each, uint32_t n)
{
    for (uint32_t i = 0; each && i < n; i++) {
        if (!each[i] || !each[i]->n)
            continue;
        strbuf_printf(out, " %s %u ", what, i);
        print_named(out, NULL, each[i]->named, each[i]->n);
    }
}

void tree_print(struct strbuf *out, const struct mlir_program *p)
{
    for (uint32_t i = 0; i < p->n_functions; i++) {
        const struct mlir_function *f = &p->functions[i];
        strbuf_printf(out, "%s %s ", f->is_private ? "private" : "public", f->name);
        mlir_print_type(out, f->type);
        print_each(out, "argument", f->args, f->type->n_inputs);
        print_each(out, "result", f->results, f->type->n_parts - f->type->n_inputs);
        strbuf_add(out, "\n");
        if (!f->body)
            continue;
        struct numbers numbers = {.n = f->n_values,
                                  .of = arena_array(out->arena, uint32_t, f->n_values)};
        print_block(out, &numbers, f->body, 2);
        ck_assert_uint_eq(numbers.next, f->n_values);
    }
}

void tree_compare(const char *what, const char *a, const char *b)
{
    size_t start = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        start = a[i] == '\n' ? i + 1 : start;
    ck_assert_msg(a[i] == b[i], "%s:\n  %.*s\n  %.*s", what, (int)strcspn(a + start, "\n"),
                  a + start, (int)strcspn(b + start, "\n"), b + start);
}

unsigned char *tree_load(const char *path, size_t *out_n)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file, "%s is missing", path);
    fseek(file, 0, SEEK_END);
    *out_n = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*out_n + 1);
    ck_assert_uint_eq(fread(bytes, 1, *out_n, file), *out_n);
    bytes[*out_n] = 0;
    fclose(file);
    return bytes;
}

struct tree_file tree_open(const char *name, bool is_vjp)
{
    struct tree_file f = {0};
    char path[256];
    size_t n;
    snprintf(path, sizeof path, "tests/interop/programs/%s", name);
    f.bytes = tree_load(path, &n);
    bool is_text = strstr(name, ".mlir") != NULL, is_export = jax_export_is(f.bytes, n);
    const void *module = f.bytes;
    if (is_export) {
        ck_assert_msg(jax_export_read(name, f.bytes, n, &f.export) == JOT_OK, "%s",
                      jot_error_message());
        const struct jax_export *e = is_vjp ? f.export->vjp : f.export;
        module = e->module;
        n = e->module_size;
    }
    jot_status status =
        (is_text ? mlir_read_text : mlir_read_bytecode)(name, module, n, &f.program);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    return f;
}

void tree_close(struct tree_file *f)
{
    mlir_release(f->program);
    jax_export_release(f->export);
    free(f->bytes);
}
