// SPDX-License-Identifier: Apache-2.0
// Compiled functions: one version for each set of input types, found by comparing.
#include "base/memory.h"
#include "trace/backend.h"
#include "trace/dump.h"
#include "trace/function.h"

#include "jot/compile.h"

#include <pthread.h>
#include <stdio.h>

#define INPUTS_ON_STACK 128

struct input_type {
    jot_dtype dtype;
    int rank;
    const int64_t *dims; // in the version's module
};

struct version {
    struct version *next;
    struct ir_module *module;
    uint32_t function;
    struct backend_program *program;
    int n_hidden;
    struct input_type *types; // of the inputs of the user
    jot_array **hidden;       // references
    void *statics;            // what static_data was
};

// Where a call is that tells no place.
static const char list_call[] = "jot_call_list";

// What follows the place in a message.
static const char *of_call(const char *where) { return where == list_call ? "" : ": jot_call"; }

struct jot_executable {
    atomic_int references;
    jot_function f;
    int n_in, n_out;
    atomic_int n_versions;
    bool *donated; // by input, or NULL
    const void *static_data;
    size_t static_size;
    jot_device *device;
    jot_precision precision;
    struct codegen_options codegen;
    pthread_mutex_t lock;            // of what follows
    _Atomic(struct version *) first; // all versions, newest first
    _Atomic(struct version *) last;  // used by the last call
    char *text;
    char name[64];
};

// ---------------------------------------------------------------------------------------
// Making and releasing

static jot_status read_donations(struct jot_executable *e, const int *list)
{
    if (!list || *list == JOT_END)
        return JOT_OK;
    e->donated = memory_allocate_zeroed((size_t)e->n_in + 1);
    if (!e->donated)
        return status_out_of_memory();
    const jot_callee *c = &e->f.callee;
    for (; *list != JOT_END; list++) {
        if (*list < 0 || *list >= c->n_args)
            return status_fail(
                JOT_ERR_ARGUMENT,
                "%s: jot_jit: donate: no argument %d: %s takes %d (numbered from 0)", c->where,
                *list, c->name, c->n_args);
        for (int i = 0; i < callee_leaves(c, *list); i++)
            e->donated[callee_first(c, *list) + i] = true;
    }
    return JOT_OK;
}

static jot_status set_up(struct jot_executable *e, const jot_jit_options *o)
{
    e->n_in = function_in(&e->f, e->f.n_transforms);
    e->n_out = function_out(&e->f, e->f.n_transforms);
    e->device = o && o->device ? o->device : jot_default_device();
    if (!o)
        return JOT_OK;
    if (o->name) {
        snprintf(e->name, sizeof e->name, "%s", o->name);
        e->f.callee.name = e->name;
    }
    e->static_data = o->static_data;
    e->static_size = o->static_data ? o->static_size : 0;
    if ((int)o->precision < 0 || o->precision > JOT_PRECISION_3TF32)
        return status_fail(JOT_ERR_ARGUMENT, "%s: jot_jit: there is no precision %d",
                           e->f.callee.where, (int)o->precision);
    e->precision = o->precision;
    if ((int)o->compile < 0 || o->compile > JOT_COMPILE_PROCESS)
        return status_fail(JOT_ERR_ARGUMENT, "%s: jot_jit: compile is %d, none of jot_compile",
                           e->f.callee.where, (int)o->compile);
    if (!(o->compile_seconds >= 0))
        return status_fail(JOT_ERR_ARGUMENT, "%s: jot_jit: compile_seconds is %g",
                           e->f.callee.where, o->compile_seconds);
    e->codegen = (struct codegen_options){o->compile, o->compile_bytes, o->compile_seconds};
    return read_donations(e, o->donate);
}

jot_executable *jot_jit_with(jot_function f, const jot_jit_options *options)
{
    const char *problem = function_problem(&f);
    if (problem) {
        status_fail(JOT_ERR_ARGUMENT, "%s", problem);
        return status_null(STATUS_NULL_FUNCTION, "");
    }
    struct jot_executable *e = memory_allocate_zeroed(sizeof *e);
    if (!e) {
        status_out_of_memory();
        return status_null(STATUS_NULL_FUNCTION, "");
    }
    e->f = f;
    atomic_init(&e->references, 1);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&e->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (set_up(e, options) == JOT_OK)
        return e;
    jot_executable_release(e);
    return status_null(STATUS_NULL_FUNCTION, "");
}

jot_executable *jot_executable_retain(jot_executable *e)
{
    if (e)
        atomic_fetch_add(&e->references, 1);
    return e;
}

static void release_version(struct version *v)
{
    backend_release(v->program);
    for (int i = 0; i < v->n_hidden; i++)
        jot_array_release(v->hidden[i]);
    memory_release(v->statics);
    ir_module_release(v->module);
    memory_release(v);
}

void jot_executable_release(jot_executable *e)
{
    if (!e || atomic_fetch_sub(&e->references, 1) != 1)
        return;
    for (struct version *v = e->first, *next; v; v = next) {
        next = v->next;
        release_version(v);
    }
    pthread_mutex_destroy(&e->lock);
    memory_release(e->donated);
    memory_release(e->text);
    memory_release(e);
}

size_t jot_executable_versions(const jot_executable *e)
{
    return e ? (size_t)e->n_versions : 0;
}

// ---------------------------------------------------------------------------------------
// Finding the version

static bool fits(const jot_executable *e, const struct version *v, jot_array *const *in)
{
    for (int i = 0; i < e->n_in; i++) {
        const struct input_type *t = &v->types[i];
        const jot_array *a = in[i];
        if (a->dtype != t->dtype || a->rank != t->rank)
            return false;
        for (int k = 0; k < t->rank; k++)
            if (a->dims[k] != t->dims[k])
                return false;
    }
    return !e->static_size || !memcmp(v->statics, e->static_data, e->static_size);
}

static struct version *find(jot_executable *e, jot_array *const *in)
{
    struct version *v = atomic_load_explicit(&e->last, memory_order_acquire);
    if (v && fits(e, v, in))
        return v;
    for (v = atomic_load_explicit(&e->first, memory_order_acquire); v; v = v->next)
        if (fits(e, v, in)) {
            atomic_store_explicit(&e->last, v, memory_order_release);
            return v;
        }
    return NULL;
}

// The arrays that the traced function uses, in the order of its last parameters, where it runs.
static jot_status keep_hidden(const struct jot_executable *e, const struct trace *root,
                              const struct traced *traced, struct version *v)
{
    v->hidden = arena_array(root->module->arena, jot_array *, traced->n_hidden + 1);
    for (int i = 0; i < traced->n_hidden; i++) {
        ir_id id = root->slots.at[traced->hidden[i].id].id;
        for (uint32_t k = 0; k < root->hidden.count; k++)
            if (root->hidden.at[k].id == id)
                v->hidden[i] = jot_array_to(root->hidden.at[k].array, e->device);
        if (!v->hidden[i])
            return status_last();
        v->n_hidden++;
    }
    return JOT_OK;
}

static jot_status build(jot_executable *e, jot_array *const *in, struct trace *root,
                        struct version *v)
{
    struct arena *arena = root->module->arena;
    struct ir_type *types = arena_array(arena, struct ir_type, e->n_in + 1);
    v->types = arena_array(arena, struct input_type, e->n_in + 1);
    for (int i = 0; i < e->n_in; i++) {
        if (in[i]->rank > IR_MAX_RANK)
            return status_fail(JOT_ERR_SHAPE, "%s%s: input %d of %s has %d axes: at most %d",
                               root->where, of_call(root->where), i, e->f.callee.name,
                               in[i]->rank, IR_MAX_RANK);
        types[i] =
            ir_type_make(root->module, (jot_dtype)in[i]->dtype, in[i]->rank, in[i]->dims);
        v->types[i] = (struct input_type){.dtype = (jot_dtype)in[i]->dtype,
                                          .rank = in[i]->rank,
                                          .dims = ir_dims(root->module, types[i])};
    }
    struct traced traced = {0};
    bool ok = function_trace(&e->f, e->f.n_transforms, types, NULL, &traced);
    if (!ok || root->error)
        return root->error ? trace_report(root->error) : status_last();
    JOT_TRY(keep_hidden(e, root, &traced, v));
    v->function = traced.function;
    dump_function("transform", root->module, v->function);
    bool *donated = arena_array(arena, bool, e->n_in + v->n_hidden + 1);
    for (int i = 0; i < e->n_in && e->donated; i++)
        donated[i] = e->donated[i];
    struct backend_options options = {.name = e->f.callee.name,
                                      .donated = donated,
                                      .device = e->device,
                                      .codegen = e->codegen};
    return backend_compile(root->module, v->function, &options, &v->program);
}

static jot_status guarded_build(jot_executable *e, jot_array *const *in, struct trace *root,
                                struct version *v)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    jot_status status = build(e, in, root, v);
    arena_guard_close(&guard);
    return status;
}

// Gives the module to the version and lets go of the arrays that the trace held.
static void end_root(struct trace *root, struct version *v)
{
    for (uint32_t i = 0; i < root->hidden.count; i++)
        jot_array_release(root->hidden.at[i].array);
    v->module = root->module;
    trace_end(root);
}

static jot_status fail_on_device(const jot_executable *e, const char *where)
{
    char why[600];
    snprintf(why, sizeof why, "%s", jot_error_message());
    return status_fail(JOT_ERR_DEVICE, "%s%s: %s cannot run on %s: %s", where, of_call(where),
                       e->f.callee.name, jot_device_name(e->device), why);
}

static jot_status add_version(jot_executable *e, jot_array *const *in, const char *where,
                              struct version **out)
{
    struct version *v = memory_allocate_zeroed(sizeof *v);
    void *statics = memory_allocate(e->static_size + 1);
    struct trace *root =
        v && statics ? trace_open_root(TRACE_ROOT, e->f.callee.name, where) : NULL;
    if (!root) {
        memory_release(v);
        memory_release(statics);
        return status_out_of_memory();
    }
    v->statics = statics;
    root->precision = (int)e->precision;
    if (e->static_size)
        memcpy(statics, e->static_data, e->static_size);
    jot_status status = guarded_build(e, in, root, v);
    if (status == JOT_ERR_DEVICE)
        status = fail_on_device(e, where);
    if (status != JOT_OK) {
        backend_release(v->program);
        for (int i = 0; i < v->n_hidden; i++)
            jot_array_release(v->hidden[i]);
        trace_abandon(root);
        memory_release(statics);
        memory_release(v);
        return status;
    }
    end_root(root, v);
    v->next = e->first;
    e->n_versions++;
    atomic_store_explicit(&e->first, v, memory_order_release);
    atomic_store_explicit(&e->last, v, memory_order_release);
    *out = v;
    return JOT_OK;
}

static jot_status find_or_add(jot_executable *e, jot_array *const *in, const char *where,
                              struct version **out)
{
    *out = find(e, in);
    if (*out)
        return JOT_OK;
    if (pthread_mutex_lock(&e->lock))
        return status_fail(JOT_ERR_TRACE,
                           "%s%s: %s is being traced and cannot be called by itself", where,
                           of_call(where), e->f.callee.name);
    *out = find(e, in);
    jot_status status = *out ? JOT_OK : add_version(e, in, where, out);
    pthread_mutex_unlock(&e->lock);
    return status;
}

// ---------------------------------------------------------------------------------------
// Calling

static jot_status check_lists(const jot_executable *e, const char *where, size_t n_in,
                              jot_array *const *in, size_t n_out, jot_array *const *out)
{
    const char *why;
    if ((int)n_in != e->n_in || (int)n_out != e->n_out)
        return status_fail(
            JOT_ERR_ARGUMENT,
            "%s%s: %s takes %d array%s and gives %d; the call passes %zu and has "
            "room for %zu",
            where, of_call(where), e->f.callee.name, e->n_in, e->n_in == 1 ? "" : "s", e->n_out,
            n_in, n_out);
    if ((n_in && !in) || (n_out && !out))
        return status_fail(JOT_ERR_ARGUMENT, "%s%s: the list of %s of %s is NULL", where,
                           of_call(where), n_in && !in ? "inputs" : "outputs",
                           e->f.callee.name);
    for (size_t i = 0; i < n_in; i++)
        if (!in[i]) {
            jot_status status = status_of_null(STATUS_NULL_ARRAY, &why);
            return status_fail(status, "%s%s: input %zu of %s is NULL%s", where, of_call(where),
                               i, e->f.callee.name, why);
        }
    return JOT_OK;
}

static jot_status run(jot_executable *e, const char *where, size_t n_in, jot_array **in,
                      size_t n_out, jot_array **out)
{
    JOT_TRY(check_lists(e, where, n_in, in, n_out, out));
    struct version *v;
    JOT_TRY(find_or_add(e, in, where, &v));
    if (v->n_hidden == 0)
        return backend_run(v->program, in, out);
    jot_array *few[INPUTS_ON_STACK];
    size_t n = n_in + (size_t)v->n_hidden;
    jot_array **all = n <= INPUTS_ON_STACK ? few : memory_allocate(n * sizeof *all);
    if (!all)
        return status_out_of_memory();
    memcpy(all, in, n_in * sizeof *all);
    memcpy(all + n_in, v->hidden, (size_t)v->n_hidden * sizeof *all);
    jot_status status = backend_run(v->program, all, out);
    if (all != few)
        memory_release(all);
    return status;
}

static jot_status fail_null(const char *where)
{
    const char *why;
    jot_status status = status_of_null(STATUS_NULL_FUNCTION, &why);
    return status_fail(status, "%s%s: the function is NULL%s", where, of_call(where), why);
}

static jot_status call(jot_executable *e, const char *where, size_t n_in, jot_array **in,
                       size_t n_out, jot_array **out)
{
    jot_status status = run(e, where, n_in, in, n_out, out);
    if (status == JOT_OK)
        status_forget_nulls();
    return status;
}

jot_status jot_call(jot_executable *e, const char *where, const jot_array_piece *in,
                    size_t n_out, jot_array **out)
{
    if (!e)
        return fail_null(where);
    size_t n_in = 0;
    for (const jot_array_piece *p = in; p && p->at; p++)
        n_in += p->n;
    jot_array *few[INPUTS_ON_STACK];
    few[0] = NULL;
    jot_array **all = n_in <= INPUTS_ON_STACK ? few : memory_allocate(n_in * sizeof *all);
    if (!all)
        return status_out_of_memory();
    size_t n = 0;
    for (const jot_array_piece *p = in; p && p->at; p++)
        for (size_t i = 0; i < p->n; i++)
            all[n++] = p->at[i];
    jot_status status = call(e, where, n_in, all, n_out, out);
    if (all != few)
        memory_release(all);
    return status;
}

jot_status jot_call_list(jot_executable *e, size_t n_in, jot_array *const *in, size_t n_out,
                         jot_array **out)
{
    if (!e)
        return fail_null(list_call);
    return call(e, list_call, n_in, (jot_array **)(uintptr_t)in, n_out, out);
}

// ---------------------------------------------------------------------------------------
// Text

static const char *version_text(const struct version *v, const char *stage, struct arena *arena)
{
    if (!strcmp(stage, "trace")) {
        struct strbuf s = strbuf_make(arena);
        ir_graph_print(&s, ir_function(v->module, v->function));
        return s.text;
    }
    return backend_text(v->program, stage, arena);
}

struct wanted_text {
    const struct version *v;
    const char *stage;
    char *copy; // of memory_allocate
};

static jot_status copy_text(struct arena *arena, void *ctx)
{
    struct wanted_text *w = ctx;
    const char *text = version_text(w->v, w->stage, arena);
    if (!text)
        return status_last();
    w->copy = memory_allocate(strlen(text) + 1);
    if (!w->copy)
        return status_out_of_memory();
    memcpy(w->copy, text, strlen(text) + 1);
    return JOT_OK;
}

const char *jot_executable_text(jot_executable *e, const char *stage)
{
    struct version *v = e ? e->last : NULL;
    if (!v || !stage) {
        status_fail(JOT_ERR_ARGUMENT, "jot_executable_text: %s%s",
                    v   ? ""
                    : e ? e->f.callee.name
                        : "",
                    v   ? "the name of the stage is NULL"
                    : e ? " has not been called yet"
                        : "the function is NULL");
        return NULL;
    }
    if (pthread_mutex_lock(&e->lock)) {
        status_fail(JOT_ERR_TRACE, "jot_executable_text: %s is being traced", e->f.callee.name);
        return NULL;
    }
    struct wanted_text w = {.v = v, .stage = stage};
    if (arena_lend(copy_text, &w) == JOT_OK) {
        memory_release(e->text);
        e->text = w.copy;
    }
    pthread_mutex_unlock(&e->lock);
    return w.copy;
}

const char *jot_executable_graph(jot_executable *e) { return jot_executable_text(e, "trace"); }
