// SPDX-License-Identifier: Apache-2.0
// The calling convention of jax.export: main takes the number of the platform where there are several, and
// of the flattened arguments those that are used.
#include "interop/jax_export_call.h"

#include <stdlib.h>

static int first_kept(const struct jax_export *e) { return e->n_platforms > 1; }

// The platform whose form of the program jot takes: that of hosts, which has the fewest calls of libraries
// that others know better; else the first.
static int64_t platform(const struct jax_export *e)
{
    for (uint32_t i = 0; i < e->n_platforms; i++)
        if (!strcmp(e->platforms[i], "cpu"))
            return i;
    return 0;
}

static jot_status refuse_effects(const struct jax_export *e)
{
    if (e->n_ordered || e->n_unordered)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: %s has the effect %s, which jot does not have", e->file,
                           e->function_name, e->n_ordered ? e->ordered[0] : e->unordered[0]);
    return JOT_OK;
}

static jot_program_type type_of(struct arena *a, const struct jax_aval *v)
{
    jot_program_type t = {.dtype = JOT_BOOL, .rank = (int)v->rank};
    int64_t *dims = arena_array(a, int64_t, v->rank + 1);
    if (v->element < MLIR_N_ELEMENTS)
        t.dtype = mlir_elements[v->element].dtype;
    for (uint32_t i = 0; i < v->rank; i++) {
        char *end;
        dims[i] = strtoll(v->dims[i], &end, 10);
        dims[i] = *end || end == v->dims[i] ? -1 : dims[i];
    }
    t.dims = dims;
    return t;
}

static jot_status read_signature(jot_program *p)
{
    const struct jax_export *e = p->artefact;
    struct arena *a = p->tree->arena;
    int at = program_find(p, "main");
    if (at < 0)
        return status_last();
    const jot_program_signature *main = &p->signatures[at];
    uint32_t n_main = e->n_kept + (uint32_t)first_kept(e);
    if (main->n_in != n_main || main->n_out != e->n_out)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: main takes %zu values and gives %zu, %s takes %u and gives %u",
                           e->file, main->n_in, main->n_out, e->function_name, n_main,
                           e->n_out);
    jot_program_type *in = arena_array(a, jot_program_type, e->n_in + 1);
    bool *donated = arena_array(a, bool, e->n_in + 1);
    const char **names = arena_array(a, const char *, e->n_in + 1);
    for (uint32_t i = 0; i < e->n_in; i++)
        in[i] = type_of(a, &e->in[i]);
    for (uint32_t i = 0; i < e->n_kept; i++) {
        uint32_t to = e->kept[i];
        if (to >= e->n_in)
            return status_fail(JOT_ERR_ARGUMENT, "%s: argument %u of %u is kept", e->file, to,
                               e->n_in);
        in[to] = main->in[i + (uint32_t)first_kept(e)];
        donated[to] = main->donated[i + (uint32_t)first_kept(e)];
        names[to] = main->names[i + (uint32_t)first_kept(e)];
    }
    if (first_kept(e))
        p->dynamic[at].f =
            &p->tree->functions[at]; // of which only what the platform does is traced
    p->dynamic[at].takes_platform = first_kept(e);
    p->dynamic[at].platform = platform(e);
    p->signature = (jot_program_signature){.n_in = e->n_in,
                                           .n_out = e->n_out,
                                           .in = in,
                                           .out = main->out,
                                           .donated = donated,
                                           .names = names};
    return JOT_OK;
}

jot_status jax_export_call_open(jot_program *p)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    jot_status status = refuse_effects(p->artefact);
    if (status == JOT_OK)
        status = read_signature(p);
    arena_guard_close(&guard);
    return status;
}

struct call {
    const jot_program *p;
    const jot_value *in;
};

static bool make(void *ctx, jot_value *out, jot_value *out_error)
{
    const struct call *c = ctx;
    const struct jax_export *e = c->p->artefact;
    int main = program_find(c->p, "main");
    jot_value *in = arena_array(trace_top()->module->arena, jot_value, e->n_kept + 1);
    for (uint32_t i = 0; i < e->n_in; i++)
        if (!trace_number_of(c->in[i]) &&
            !graph_check_argument(e->function_name, i, c->in[i], &c->p->signature.in[i],
                                  out_error))
            return false;
    for (uint32_t i = 0; i < e->n_kept; i++)
        in[i] = c->in[e->kept[i]];
    jot_apply_at(program_function(c->p, main), (int)e->n_kept, in, e->n_out, out,
                 c->p->functions[main].where);
    return true;
}

static void trace(const jot_value *in, jot_value *out, void *ctx)
{
    struct call c = {ctx, in};
    trace_make(make, &c, c.p->artefact->n_out, out, NULL);
}

// ---- the gradient that the artefact brings along, as the rule of its function

static jot_function call_of(const jot_program *p)
{
    const struct jax_export *e = p->artefact;
    return jot_function_uniform(e->function_name, p->file, trace, (int)e->n_in, (int)e->n_out,
                                (void *)(uintptr_t)p);
}

// The results, then the arguments.
static void trace_forward(const jot_value *in, jot_value *out, void *ctx)
{
    const jot_program *p = ctx;
    const struct jax_export *e = p->artefact;
    jot_apply_at(call_of(p), (int)e->n_in, in, (int)e->n_out, out, p->file);
    memcpy(out + e->n_out, in, sizeof *in * e->n_in);
}

// Of the arguments, then cotangents of the results, those of the arguments.  JAX has them of floats.
static void trace_backward(const jot_value *in, jot_value *out, void *ctx)
{
    const jot_program *p = ctx;
    const struct jax_export *e = p->vjp->artefact;
    jot_value *x = arena_array(trace_top()->module->arena, jot_value, e->n_in + 1);
    for (uint32_t i = 0; i < e->n_in; i++)
        x[i] = i < e->n_out || e->in[i].element < MLIR_N_ELEMENTS
                   ? in[i]
                   : jot_astype(jot_zeros_like(in[i]), JOT_BOOL);
    jot_apply_at(jax_export_call_function(p->vjp), (int)e->n_in, x, (int)e->n_out, out,
                 p->file);
    for (uint32_t i = 0; i < e->n_out; i++)
        if (e->out[i].element == MLIR_N_ELEMENTS)
            out[i] = jot_zeros_like(in[i]);
}

jot_function jax_export_call_function(const jot_program *p)
{
    int n_in = (int)p->artefact->n_in, n_out = (int)p->artefact->n_out;
    void *ctx = (void *)(uintptr_t)p;
    return p->vjp ? jot_custom_vjp_of(call_of(p),
                                      jot_function_uniform("forward", p->file, trace_forward,
                                                           n_in, n_out + n_in, ctx),
                                      jot_function_uniform("vjp", p->file, trace_backward,
                                                           n_in + n_out, n_in, ctx),
                                      p->file)
                  : call_of(p);
}
