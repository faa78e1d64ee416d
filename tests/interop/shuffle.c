// SPDX-License-Identifier: Apache-2.0
#include "interop/shuffle.h"

#include "base/strbuf.h"
#include "jot/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shuffle {
    struct mlir_program *p;
    uint64_t random;
    bool *made; // by the number of a value of the function
};

static uint32_t draw(struct shuffle *s, uint32_t n)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(s->random >> 33) % n;
}

// ---- order ----

static void make(struct shuffle *s, const struct mlir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        s->made[op->results[i]->number] = true;
}

// Whether all values from outside of the block that it or its regions use are made; those that are
// made inside count as well, being unmade again afterwards.
static bool block_is_ready(struct shuffle *s, const struct mlir_block *block);

static bool is_ready(struct shuffle *s, const struct mlir_op *op)
{
    bool ready = true;
    for (uint32_t i = 0; i < op->n_operands; i++)
        ready = ready && s->made[op->operands[i]->number];
    for (uint32_t i = 0; i < op->n_regions && ready; i++)
        ready = block_is_ready(s, &op->regions[i]);
    return ready;
}

static bool block_is_ready(struct shuffle *s, const struct mlir_block *block)
{
    bool ready = true;
    for (uint32_t i = 0; i < block->n_args; i++)
        s->made[block->args[i]->number] = true;
    for (uint32_t i = 0; i < block->n_ops && ready; i++) {
        ready = is_ready(s, block->ops[i]);
        make(s, block->ops[i]);
    }
    for (uint32_t i = 0; i < block->n_ops; i++)
        for (uint32_t k = 0; k < block->ops[i]->n_results; k++)
            s->made[block->ops[i]->results[k]->number] = false;
    for (uint32_t i = 0; i < block->n_args; i++)
        s->made[block->args[i]->number] = false;
    return ready;
}

// Takes any operation that is ready; the return stays last.  Afterwards the values of the block are made.
static void shuffle_block(struct shuffle *s, const struct mlir_block *block)
{
    struct mlir_op **ops = (struct mlir_op **)(uintptr_t)block->ops;
    for (uint32_t i = 0; i < block->n_args; i++)
        s->made[block->args[i]->number] = true;
    for (uint32_t at = 0; at + 1 < block->n_ops; at++) {
        uint32_t n = 0, ready[256];
        for (uint32_t i = at; i + 1 < block->n_ops && n < 256; i++)
            if (is_ready(s, ops[i]))
                ready[n++] = i;
        ck_assert_uint_gt(n, 0);
        uint32_t take = ready[draw(s, n)];
        struct mlir_op *op = ops[take];
        memmove(ops + at + 1, ops + at, sizeof *ops * (take - at));
        ops[at] = op;
        for (uint32_t k = 0; k < op->n_regions; k++)
            shuffle_block(s, &op->regions[k]);
        make(s, op);
    }
}

// ---- names ----

static const char *renamed(struct shuffle *s, const char *name)
{
    struct strbuf t = strbuf_make(s->p->arena);
    if (!strcmp(name, "main"))
        return name;
    strbuf_printf(&t, "f_%zx_%s", strlen(name) * 7919u, name);
    return t.text;
}

static void rename_calls(struct shuffle *s, const struct mlir_block *block)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        struct mlir_op *op = block->ops[i];
        for (uint32_t k = 0; k < op->n_attrs; k++)
            if (op->attrs[k].attr->kind == MLIR_SYMBOL) {
                struct mlir_attr *a = (struct mlir_attr *)(uintptr_t)op->attrs[k].attr;
                if (mlir_function_find(s->p, a->text))
                    a->text = renamed(s, a->text);
            }
        for (uint32_t k = 0; k < op->n_regions; k++)
            rename_calls(s, &op->regions[k]);
    }
}

char *shuffle_rewrite(const char *name, const void *bytes, size_t n, uint64_t seed,
                      bool as_text, size_t *out_size)
{
    struct shuffle s = {.random = seed};
    ck_assert_msg(mlir_read_text(name, bytes, n, &s.p) == JOT_OK, "%s", jot_error_message());
    struct arena_guard guard;
    ck_assert(!arena_guard_left(&guard));
    for (uint32_t i = 0; i < s.p->n_functions; i++)
        if (s.p->functions[i].body)
            rename_calls(&s, s.p->functions[i].body);
    for (uint32_t i = 0; i < s.p->n_functions; i++) {
        struct mlir_function *f = &s.p->functions[i];
        f->name = renamed(&s, f->name);
        s.made = calloc(f->n_values + 1, sizeof *s.made);
        if (f->body)
            shuffle_block(&s, f->body);
        free(s.made);
    }
    struct strbuf out = strbuf_make(s.p->arena);
    if (as_text)
        mlir_write_text(&out, s.p);
    else
        ck_assert_msg(mlir_write_bytecode(&out, s.p) == JOT_OK, "%s", jot_error_message());
    arena_guard_close(&guard);
    char *copy = malloc(out.length + 1);
    memcpy(copy, out.text, out.length + 1);
    *out_size = out.length;
    mlir_release(s.p);
    return copy;
}
