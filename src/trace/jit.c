// SPDX-License-Identifier: Apache-2.0
// Compiled functions: one version for each set of input types, found by comparing.
#include "jot/compile.h"

#include "base/memory.h"
#include "base/timeline.h"
#include "runtime/device.h"
#include "runtime/stack.h"
#include "trace/versions.h"

#include <stddef.h>
#include <stdio.h>

#define INPUTS_ON_STACK 128

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
    e->is_alone = o->device != NULL;
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
    e->most_versions = o->most_versions;
    // Callers that were built before there was such a field have a smaller struct.
    e->is_tuned = (!o->size || o->size > offsetof(jot_jit_options, tune)) && o->tune;
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
        status_fail(function_problem_status(&f), "%s", problem);
        return status_null(STATUS_NULL_FUNCTION, "");
    }
    struct jot_executable *e = memory_allocate_zeroed(sizeof *e);
    if (!e) {
        status_out_of_memory();
        return status_null(STATUS_NULL_FUNCTION, "");
    }
    e->f = f;
    atomic_init(&e->references, 1);
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

void jot_executable_release(jot_executable *e)
{
    if (e && atomic_fetch_sub(&e->references, 1) == 1)
        executable_release_user(e);
}

size_t jot_executable_versions(const jot_executable *e)
{
    return e ? executable_use((jot_executable *)(uintptr_t)e).made : 0;
}

jot_version_use jot_executable_use(const jot_executable *e)
{
    return e ? executable_use((jot_executable *)(uintptr_t)e) : (jot_version_use){0};
}

void jot_set_most_versions(size_t n) { version_set_most(n); }

// ---------------------------------------------------------------------------------------
// Calling

static jot_status check_lists(const jot_executable *e, const char *where, size_t n_in,
                              jot_array *const *in, size_t n_out, jot_array *const *out)
{
    const char *why;
    if (n_in != (size_t)e->n_in || n_out != (size_t)e->n_out)
        return status_fail(
            JOT_ERR_ARGUMENT,
            "%s%s: %s takes %d array%s and gives %d; the call passes %zu and has "
            "room for %zu",
            where, version_of_call(where), e->f.callee.name, e->n_in, e->n_in == 1 ? "" : "s",
            e->n_out, n_in, n_out);
    if ((n_in && !in) || (n_out && !out))
        return status_fail(JOT_ERR_ARGUMENT, "%s%s: the list of %s of %s is NULL", where,
                           version_of_call(where), n_in && !in ? "inputs" : "outputs",
                           e->f.callee.name);
    for (size_t i = 0; i < n_in; i++)
        if (!in[i]) {
            jot_status status = status_of_null(STATUS_NULL_ARRAY, &why);
            return status_fail(status, "%s%s: input %zu of %s is NULL%s", where,
                               version_of_call(where), i, e->f.callee.name, why);
        }
    return JOT_OK;
}

// A call.
struct call {
    jot_executable *e;
    const char *where;
    size_t n_in, n_out;
    jot_array **in, **out;
    jot_array **list; // the memory of in, or NULL when it is on the stack
    int group;        // of the hold
};

// A call of a version that calls code of the user, with its inputs and those of the version.
struct open_call {
    struct rt_frame frame;
    jot_executable *e;
    int group;
    jot_array *in[];
};

static void abandon_call(struct rt_frame *frame)
{
    struct open_call *c = (struct open_call *)frame;
    executable_let_go(c->e, c->group);
    memory_release(c);
}

static void copy_inputs(const struct call *c, const struct version *v, jot_array **all)
{
    if (c->n_in) // else both lists may be NULL
        memcpy(all, c->in, c->n_in * sizeof *all);
    if (v->n_hidden)
        memcpy(all + c->n_in, v->hidden, (size_t)v->n_hidden * sizeof *all);
}

__attribute__((noinline)) static jot_status run_open(struct call *c, struct version *v)
{
    RT_MARK mark = {0};
    size_t n = c->n_in + (size_t)v->n_hidden;
    struct open_call *open = memory_allocate(sizeof *open + n * sizeof *open->in);
    if (!open)
        return status_out_of_memory();
    open->e = c->e;
    open->group = c->group;
    copy_inputs(c, v, open->in);
    memory_release(c->list);
    c->list = NULL;
    rt_frame_open(&open->frame, &mark, abandon_call);
    jot_status status = backend_run(v->program, open->in, c->out);
    rt_frame_close(&mark);
    memory_release(open);
    return status;
}

static jot_status run_version(struct call *c, struct version *v)
{
    if (backend_calls_back(v->program))
        return run_open(c, v);
    if (v->n_hidden == 0)
        return backend_run(v->program, c->in, c->out);
    jot_array *few[INPUTS_ON_STACK];
    size_t n = c->n_in + (size_t)v->n_hidden;
    jot_array **all = n <= INPUTS_ON_STACK ? few : memory_allocate(n * sizeof *all);
    if (!all)
        return status_out_of_memory();
    copy_inputs(c, v, all);
    jot_status status = backend_run(v->program, all, c->out);
    if (all != few)
        memory_release(all);
    return status;
}

static jot_status fail_null(const char *where)
{
    const char *why;
    jot_status status = status_of_null(STATUS_NULL_FUNCTION, &why);
    return status_fail(status, "%s%s: the function is NULL%s", where, version_of_call(where),
                       why);
}

static jot_status run_call(struct call *c)
{
    struct version *v;
    JOT_TRY(check_lists(c->e, c->where, c->n_in, c->in, c->n_out, c->out));
    JOT_TRY(version_get(c->e, c->group, c->in, c->where, &v));
    JOT_TRY(run_version(c, v));
    status_forget_nulls();
    return JOT_OK;
}

static void end_call(const struct call *c, int64_t since, jot_status status)
{
    timeline_end(since, &(struct timeline_event){
                            .kind = "call", .name = c->e->f.callee.name, .where = c->where});
    if (status == JOT_OK)
        rt_device_count_memory(c->e->device);
}

static jot_status call(struct call *c)
{
    int64_t since = timeline_begin();
    c->group = executable_hold(c->e);
    jot_status status = run_call(c);
    if (since)
        end_call(c, since, status);
    executable_let_go(c->e, c->group);
    return jot_status_place(status, c->where == version_list_call ? NULL : c->where);
}

jot_status jot_call(jot_executable *e, const char *where, const jot_array_piece *in,
                    size_t n_out, jot_array **out)
{
    rt_frames_collect();
    if (!e)
        return fail_null(where);
    size_t n_in = 0;
    for (const jot_array_piece *p = in; p && p->at; p++)
        n_in += p->n;
    jot_array *few[INPUTS_ON_STACK];
    few[0] = NULL;
    struct call c = {
        .e = e, .where = where, .n_in = n_in, .in = few, .n_out = n_out, .out = out};
    if (n_in > INPUTS_ON_STACK)
        c.in = c.list = memory_allocate(n_in * sizeof *c.list);
    if (!c.in)
        return status_out_of_memory();
    size_t n = 0;
    for (const jot_array_piece *p = in; p && p->at; p++)
        for (size_t i = 0; i < p->n; i++)
            c.in[n++] = p->at[i];
    jot_status status = call(&c);
    memory_release(c.list);
    return status;
}

jot_status jot_call_list(jot_executable *e, size_t n_in, jot_array *const *in, size_t n_out,
                         jot_array **out)
{
    rt_frames_collect();
    if (!e)
        return fail_null(version_list_call);
    struct call c = {.e = e,
                     .where = version_list_call,
                     .n_in = n_in,
                     .in = (jot_array **)(uintptr_t)in,
                     .n_out = n_out,
                     .out = out};
    return call(&c);
}

jot_status jot_executable_prepare(jot_executable *e, size_t n_in, jot_array *const *in)
{
    const char *where = version_preparation;
    struct version *v;
    jot_array *const out[1] = {NULL};
    rt_frames_collect();
    if (!e)
        return fail_null(where);
    int group = executable_hold(e);
    jot_status status = check_lists(e, where, n_in, in, (size_t)e->n_out, out);
    if (status == JOT_OK)
        status = version_get(e, group, in, where, &v);
    executable_let_go(e, group);
    return status;
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

static jot_status copy_in_arena(void *ctx) { return arena_lend(copy_text, ctx); }

static jot_status make_text(jot_executable *e, void *ctx)
{
    struct wanted_text *w = ctx;
    struct version *last = e->last; // none where it was evicted meanwhile
    w->v = last ? last : e->first;
    JOT_TRY(rt_stack_lend(backend_stack(w->v->module), copy_in_arena, w));
    memory_release(e->text);
    e->text = w->copy;
    return JOT_OK;
}

const char *jot_executable_text(jot_executable *e, const char *stage)
{
    rt_frames_collect();
    bool is_called = e && e->first;
    if (!is_called || !stage) {
        status_fail(JOT_ERR_ARGUMENT, "jot_executable_text: %s%s",
                    e && stage ? e->f.callee.name : "",
                    !e       ? "the function is NULL"
                    : !stage ? "the name of the stage is NULL"
                             : " has not been called yet");
        return NULL;
    }
    struct wanted_text w = {.stage = stage};
    int group = executable_hold(e);
    executable_with_claim(e, make_text, &w);
    executable_let_go(e, group);
    return w.copy;
}

const char *jot_executable_graph(jot_executable *e)
{
    if (e)
        return jot_executable_text(e, "trace");
    status_fail(JOT_ERR_ARGUMENT, "jot_executable_graph: the function is NULL");
    return NULL;
}
