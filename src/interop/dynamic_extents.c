// SPDX-License-Identifier: Apache-2.0
// Functions whose extents are known when they are used: the program is refined for the types of the
// arguments, once for each set of types.
#include "interop/program.h"
#include "interop/refine.h"

#include "base/memory.h"
#include "base/strbuf.h"

struct use {
    const struct program_dynamic *d;
    const jot_value *in;
    uint32_t n; // arguments of the tree
    struct mlir_argument *arguments;
};

static uint32_t first_value(const struct program_dynamic *d) { return d->takes_platform; }

// The type of the tree with the extents of the value; false with an error.
static bool read_argument(const struct use *u, uint32_t i, struct arena *arena,
                          jot_value *out_error)
{
    const struct mlir_type *declared = u->d->f->type->parts[i];
    jot_value v = u->in[i - first_value(u->d)];
    jot_program_type want = {mlir_elements[declared->element].dtype, declared->rank,
                             declared->dims};
    if (!graph_check_argument(u->d->f->name, i, v, &want, out_error))
        return false;
    struct ir_type type = trace_type(trace_import(u->d->f->name, v));
    struct mlir_type *t = arena_new(arena, struct mlir_type);
    *t = *declared;
    t->dims = arena_copy(arena, ir_dims(trace_top()->module, type),
                         sizeof *t->dims * ((size_t)type.rank + 1));
    u->arguments[i] = (struct mlir_argument){.type = t};
    return true;
}

static bool read_arguments(struct use *u, struct arena *arena, jot_value *out_error)
{
    u->n = u->d->f->type->n_inputs;
    u->arguments = arena_array(arena, struct mlir_argument, u->n + 1);
    for (uint32_t i = first_value(u->d); i < u->n; i++)
        if (!read_argument(u, i, arena, out_error))
            return false;
    if (u->d->takes_platform)
        u->arguments[0] = (struct mlir_argument){
            .type = u->d->f->type->parts[0], .is_known = true, .value = u->d->platform};
    return true;
}

static const char *key_of(const struct use *u, struct arena *arena)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_printf(&s, "%s %lld", u->d->f->name, (long long)u->d->platform);
    for (uint32_t i = first_value(u->d); i < u->n; i++) {
        strbuf_add(&s, " ");
        for (int k = 0; k < u->arguments[i].type->rank; k++)
            strbuf_printf(&s, "%lldx", (long long)u->arguments[i].type->dims[k]);
    }
    return s.text;
}

static jot_program *refine(const struct use *u, const char *key)
{
    jot_program *p = u->d->p;
    struct mlir_program *tree;
    if (mlir_refine(p->tree, u->d->f->name, u->arguments, u->n, &tree) != JOT_OK)
        return NULL;
    jot_program *made = program_of_tree(p->file, tree);
    char *own = made ? memory_allocate(strlen(key) + 1) : NULL;
    if (!own)
        return made ? (jot_program_release(made), status_out_of_memory(), NULL) : NULL;
    made->key = strcpy(own, key);
    made->next = p->refined;
    p->refined = made;
    return made;
}

static const jot_program *find_program(const struct use *u, const char *key)
{
    jot_program *p = u->d->p;
    pthread_mutex_lock(&p->lock);
    jot_program *found = p->refined;
    while (found && strcmp(found->key, key) != 0)
        found = found->next;
    if (!found)
        found = refine(u, key);
    pthread_mutex_unlock(&p->lock);
    return found;
}

struct call {
    struct use use;
    uint32_t n_out;
};

static bool make(void *ctx, jot_value *out, jot_value *out_error)
{
    struct call *c = ctx;
    struct use *u = &c->use;
    struct arena *arena = trace_top()->module->arena;
    if (!read_arguments(u, arena, out_error))
        return false;
    const jot_program *p = find_program(u, key_of(u, arena));
    int i = p ? program_find(p, u->d->f->name) : -1;
    if (i < 0) {
        *out_error = trace_fail_status(u->d->f->name);
        return false;
    }
    jot_apply_at(graph_function_value(&p->functions[i]), u->n - first_value(u->d), u->in,
                 c->n_out, out, p->functions[i].where);
    return true;
}

static uint32_t results_of(const struct program_dynamic *d)
{
    return d->f->type->n_parts - d->f->type->n_inputs;
}

static void trace(const jot_value *in, jot_value *out, void *ctx)
{
    const struct program_dynamic *d = ctx;
    struct call c = {{.d = d, .in = in}, results_of(d)};
    trace_make(make, &c, c.n_out, out, NULL);
}

jot_function dynamic_function(const struct program_dynamic *d)
{
    return jot_function_uniform(d->f->name, d->p->file, trace,
                                (int)(d->f->type->n_inputs - first_value(d)),
                                (int)results_of(d), (void *)(uintptr_t)d);
}
