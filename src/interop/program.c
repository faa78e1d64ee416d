// SPDX-License-Identifier: Apache-2.0
// Programs as the API has them.
#include "interop/program.h"

#include "interop/flatten_tuples.h"
#include "interop/jax_export_call.h"
#include "interop/refine.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runtime/stack.h"
#include "trace/stacks.h"

#include <stdio.h>
#include <string.h>

// ---- what tracing wants to know ----

static void read_makers(const struct mlir_block *block, const struct mlir_op **makers)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        for (uint32_t k = 0; k < op->n_results; k++)
            makers[op->results[k]->number] = op;
        for (uint32_t k = 0; k < op->n_regions; k++)
            read_makers(&op->regions[k], makers);
    }
}

static const char *where_of(struct mlir_program *p, const struct mlir_function *f)
{
    struct strbuf s = strbuf_make(p->arena);
    if (f->place.line)
        strbuf_printf(&s, "%s:%u: @%s", p->file, f->place.line, f->name);
    else
        strbuf_printf(&s, "%s: @%s", p->file, f->name);
    return s.text;
}

static void open_function(jot_program *p, uint32_t i)
{
    const struct mlir_function *f = &p->flat->functions[i];
    const struct mlir_op **makers =
        arena_array(p->tree->arena, const struct mlir_op *, f->n_values + 1);
    if (f->body)
        read_makers(f->body, makers);
    p->functions[i] = (struct graph_function){.program = p->flat,
                                              .f = f,
                                              .all = p->functions,
                                              .makers = makers,
                                              .where = where_of(p->tree, f)};
}

// ---- signatures ----

static jot_program_type type_of(struct arena *a, const struct mlir_type *t)
{
    jot_program_type out = {.dtype = JOT_BOOL};
    if (t->kind != MLIR_TENSOR)
        return out;
    int64_t *dims = arena_array(a, int64_t, t->rank + 1);
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i] < 0 ? -1 : t->dims[i];
    return (jot_program_type){mlir_elements[t->element].dtype, t->rank, dims};
}

static bool is_donated(const struct mlir_attr *attrs)
{
    for (size_t i = 0; attrs && attrs->kind == MLIR_DICTIONARY && i < attrs->n; i++)
        if (!strcmp(attrs->named[i].name, "tf.aliasing_output") ||
            !strcmp(attrs->named[i].name, "jax.buffer_donor"))
            return true;
    return false;
}

static void read_signature(jot_program *p, uint32_t i)
{
    struct arena *a = p->tree->arena;
    const struct mlir_function *f = &p->flat->functions[i];
    const struct mlir_type *t = f->type;
    jot_program_type *types = arena_array(a, jot_program_type, t->n_parts + 1);
    bool *donated = arena_array(a, bool, t->n_inputs + 1);
    const char **names = arena_array(a, const char *, t->n_inputs + 1);
    for (uint32_t k = 0; k < t->n_parts; k++)
        types[k] = type_of(a, t->parts[k]);
    for (uint32_t k = 0; k < t->n_inputs; k++)
        donated[k] = f->args && is_donated(f->args[k]);
    for (uint32_t k = 0; f->body && k < t->n_inputs; k++)
        names[k] = f->body->args[k]->called ? f->body->args[k]->called->text : NULL;
    p->signatures[i] = (jot_program_signature){.n_in = t->n_inputs,
                                               .n_out = t->n_parts - t->n_inputs,
                                               .in = types,
                                               .out = types + t->n_inputs,
                                               .donated = donated,
                                               .names = names};
}

static void open_dynamic(jot_program *p, uint32_t i)
{
    const struct mlir_function *f = &p->tree->functions[i];
    p->dynamic[i] = (struct program_dynamic){.p = p, .f = mlir_is_dynamic(f) ? f : NULL};
}

static jot_status open_program(jot_program *p)
{
    struct arena_guard guard;
    uint32_t n = p->tree->n_functions;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    p->flat = mlir_flatten(p->tree);
    p->dynamic = arena_array(p->tree->arena, struct program_dynamic, n + 1);
    p->functions = arena_array(p->tree->arena, struct graph_function, n + 1);
    p->signatures = arena_array(p->tree->arena, jot_program_signature, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        open_function(p, i);
        read_signature(p, i);
        open_dynamic(p, i);
    }
    arena_guard_close(&guard);
    return JOT_OK;
}

// ---- reading ----

static bool is_bytecode(const unsigned char *bytes, size_t n)
{
    return n >= 4 && bytes[0] == 'M' && bytes[1] == 'L' && bytes[2] == 0xef && bytes[3] == 'R';
}

// Whether the first bytes are characters, as those of an artefact and of an array are not.
static bool begins_as_text(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n && i < 4; i++)
        if (bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r' &&
            (bytes[i] < ' ' || bytes[i] > '~'))
            return false;
    return true;
}

// What a program is read from.
struct source {
    jot_program *p;
    const void *bytes;
    size_t n;
    struct mlir_memory *memory; // of the bytes, or NULL
};

static jot_status read_tree(const struct source *s, jot_program *p, const void *bytes, size_t n)
{
    if (is_bytecode(bytes, n))
        return mlir_read_bytecode_in(s->memory, p->file, bytes, n, &p->tree);
    if (!begins_as_text(bytes, n))
        return status_fail(
            JOT_ERR_ARGUMENT,
            "%s: offset 0: this is no program: not text, not bytecode of MLIR, and not an "
            "artefact of jax.export that is whole",
            p->file);
    return mlir_read_text(p->file, bytes, n, &p->tree);
}

static jot_program *create(const char *file)
{
    jot_program *p = memory_allocate_zeroed(sizeof *p);
    if (p)
        p->file = memory_allocate(strlen(file) + 1);
    if (p && p->file) {
        pthread_mutex_init(&p->lock, NULL);
        return strcpy(p->file, file), p;
    }
    memory_release(p);
    return status_out_of_memory(), NULL;
}

// The program of an artefact, and that of its gradient.
static jot_status open_artefact(const struct source *s, jot_program *p)
{
    const struct jax_export *e = p->artefact;
    JOT_TRY(read_tree(s, p, e->module, e->module_size));
    JOT_TRY(open_program(p));
    JOT_TRY(jax_export_call_open(p));
    if (!e->vjp)
        return JOT_OK;
    p->vjp = create(p->file);
    if (!p->vjp)
        return status_last();
    p->vjp->artefact = (struct jax_export *)(uintptr_t)e->vjp;
    if (e->vjp->n_in != e->n_in + e->n_out || e->vjp->n_out != e->n_in)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: the gradient of a function of %u values that gives %u takes %u "
                           "and gives %u",
                           p->file, e->n_in, e->n_out, e->vjp->n_in, e->vjp->n_out);
    return open_artefact(s, p->vjp);
}

static jot_status open_source(void *ctx)
{
    const struct source *s = ctx;
    if (!jax_export_is(s->bytes, s->n)) {
        JOT_TRY(read_tree(s, s->p, s->bytes, s->n));
        return open_program(s->p);
    }
    JOT_TRY(jax_export_read(s->p->file, s->bytes, s->n, &s->p->artefact));
    return open_artefact(s, s->p);
}

static jot_program *read_source(const char *name, struct source s)
{
    s.p = create(name);
    if (!s.p || rt_stack_lend(STACK_OF_PROGRAM, open_source, &s) == JOT_OK)
        return s.p;
    jot_program_release(s.p);
    return NULL;
}

jot_program *program_of_tree(const char *file, struct mlir_program *tree)
{
    jot_program *p = create(file);
    if (!p) {
        mlir_release(tree);
        return NULL;
    }
    p->tree = tree;
    if (open_program(p) == JOT_OK)
        return p;
    jot_program_release(p);
    return NULL;
}

jot_program *jot_program_read(const char *path)
{
    struct file_bytes file;
    if (!path)
        return status_fail(JOT_ERR_ARGUMENT, "jot_program_read: path is NULL"), NULL;
    if (file_read(path, &file) != JOT_OK)
        return NULL;
    jot_program *p = read_source(path, (struct source){.bytes = file.bytes, .n = file.n});
    file_release(&file);
    return p;
}

static bool check_memory(const char *what, const char *name, const void *bytes, size_t n)
{
    if (name && (bytes || !n))
        return true;
    status_fail(JOT_ERR_ARGUMENT, "%s: %s is NULL", what, name ? "bytes" : "name");
    return false;
}

jot_program *jot_program_from_memory(const char *name, const void *bytes, size_t n)
{
    return check_memory("jot_program_from_memory", name, bytes, n)
               ? read_source(name, (struct source){.bytes = bytes, .n = n})
               : NULL;
}

jot_program *jot_program_borrow(const char *name, void *bytes, size_t n,
                                void (*release)(void *bytes, void *ctx), void *ctx)
{
    if (!check_memory("jot_program_borrow", name, bytes, n))
        return NULL;
    struct mlir_memory *m = memory_allocate(sizeof *m);
    if (!m)
        return status_out_of_memory(), NULL;
    *m = (struct mlir_memory){.bytes = bytes, .release = release, .ctx = ctx};
    atomic_init(&m->uses, 1);
    jot_program *p = read_source(name, (struct source){.bytes = bytes, .n = n, .memory = m});
    if (!p)
        m->release = NULL;
    mlir_memory_leave(m);
    return p;
}

void jot_program_release(jot_program *p)
{
    if (!p)
        return;
    if (p->vjp)
        p->vjp->artefact = NULL; // part of that of p
    jot_program_release(p->vjp);
    jax_export_release(p->artefact);
    while (p->refined) {
        jot_program *first = p->refined;
        p->refined = first->next;
        jot_program_release(first);
    }
    pthread_mutex_destroy(&p->lock);
    mlir_release(p->tree);
    memory_release(p->file);
    memory_release((void *)(uintptr_t)p->key);
    memory_release(p);
}

// ---- asking ----

int program_find(const jot_program *p, const char *name)
{
    const struct mlir_function *f = p && name ? mlir_function_find(p->tree, name) : NULL;
    if (f && f->body)
        return (int)(f - p->tree->functions);
    if (!p || !name)
        status_fail(JOT_ERR_ARGUMENT, "jot_program: %s is NULL", p ? "name" : "p");
    else
        status_fail(JOT_ERR_ARGUMENT, "%s has no function @%s, but %u others%s%s", p->file,
                    name, p->tree->n_functions, p->tree->n_functions ? ", as @" : "",
                    p->tree->n_functions ? p->tree->functions[0].name : "");
    return -1;
}

jot_function program_function(const jot_program *p, int i)
{
    return p->dynamic[i].f ? dynamic_function(&p->dynamic[i])
                           : graph_function_value(&p->functions[i]);
}

static bool is_vjp(const jot_program *p, const char *name)
{
    return p && p->vjp && name && !strcmp(name, "vjp");
}

jot_function jot_program_function(const jot_program *p, const char *name)
{
    if (is_vjp(p, name))
        return jax_export_call_function(p->vjp);
    int i = program_find(p, name);
    if (i >= 0 && p->artefact && !strcmp(name, "main"))
        return jax_export_call_function(p);
    if (i >= 0)
        return program_function(p, i);
    // A function without a body, whose place tells why.
    static _Thread_local char why[512];
    snprintf(why, sizeof why, "jot_program_function: %s", jot_error_message());
    return jot_function_uniform(name ? name : "NULL", why, NULL, 0, 0, NULL);
}

size_t jot_program_functions(const jot_program *p) { return p ? p->tree->n_functions : 0; }

const char *jot_program_name(const jot_program *p, size_t i)
{
    return i < jot_program_functions(p) ? p->tree->functions[i].name : NULL;
}

const jot_program_signature *jot_program_signature_of(const jot_program *p, const char *name)
{
    if (is_vjp(p, name))
        return &p->vjp->signature;
    int i = program_find(p, name);
    return i < 0                                  ? NULL
           : p->artefact && !strcmp(name, "main") ? &p->signature
                                                  : &p->signatures[i];
}
