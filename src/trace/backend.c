// SPDX-License-Identifier: Apache-2.0
// Machine code, or the reference evaluator when JOT_BACKEND asks for it.
#include "trace/backend.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "ir/collective.h"
#include "ir/eval.h"
#include "passes/mesh/partition.h"
#include "passes/passes.h"
#include "runtime/frames.h"
#include "runtime/mesh.h"
#include "runtime/stack.h"
#include "trace/environment.h"
#include "trace/native.h"
#include "trace/stacks.h"

#include <stdlib.h>

struct backend_program {
    const struct ir_graph *graph;
    struct native_program *native; // NULL: evaluated
};

static bool wants_evaluator(void)
{
    const char *name = secure_getenv("JOT_BACKEND");
    return name && !strcmp(name, "eval");
}

// The function with the checks that JOT_CHECK asks for, and the trips in those there are.
static uint32_t checked(struct ir_module *m, uint32_t function)
{
    unsigned kinds = (environment_lists("JOT_CHECK", "nan") ? PASS_CHECK_NAN : 0) |
                     (environment_lists("JOT_CHECK", "inf") ? PASS_CHECK_INF : 0);
    return pass_check_numbers(m, function, kinds);
}

// The mesh of the function, of whose sizes it is; NULL with a message.
static const jot_mesh *find_mesh(struct ir_module *m, const struct ir_node *n,
                                 const struct backend_options *options)
{
    struct ir_shard s = ir_shard_of(m, n);
    jot_mesh_axis axes[IR_MAX_AXES];
    for (int i = 0; i < s.n_axes; i++)
        axes[i] = (jot_mesh_axis){m->axes.at[s.grid[i]].name, ir_axis_size(m, s.grid[i])};
    return options->mesh
               ? options->mesh
               : jot_mesh_of_kind(jot_device_kind_of(options->device), (size_t)s.n_axes, axes);
}

// Says of the axes of the function which are far.
static void tell_far(struct ir_module *m, const struct ir_node *n, const jot_mesh *mesh)
{
    struct ir_shard s = ir_shard_of(m, n);
    for (int i = 0; i < s.n_axes; i++)
        m->axes.at[s.grid[i]].is_far = rt_mesh_is_far_along(mesh, i);
}

// What each device of the mesh does, where several do anything; else one does all.
static jot_status lay_out(struct ir_module *m, uint32_t *function,
                          struct backend_options *options, struct pass_partition **parts)
{
    const struct ir_node *n =
        m->axes.count ? pass_find_shard_map(ir_function(m, *function)) : NULL;
    if (!n)
        return JOT_OK;
    if (!options->is_alone && !wants_evaluator()) {
        options->mesh = find_mesh(m, n, options);
        if (!options->mesh)
            return status_last();
        if (jot_mesh_size(options->mesh) > 1) {
            *parts = arena_new(m->arena, struct pass_partition);
            tell_far(m, n, options->mesh);
            return pass_partition(m, *function, *parts);
        }
    }
    return pass_unshard(m, *function, function);
}

static jot_status compile(struct ir_module *m, uint32_t function,
                          const struct backend_options *options, struct backend_program **out)
{
    struct backend_options own = *options;
    struct pass_partition *parts = NULL;
    JOT_TRY(environment_check());
    JOT_TRY(lay_out(m, &function, &own, &parts));
    if (parts)
        parts->f = checked(m, parts->f);
    else
        function = checked(m, function);
    struct backend_program *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    bool evaluates = wants_evaluator();
    p->graph = ir_function(m, evaluates ? pass_support(m, function) : function);
    jot_status status =
        evaluates ? JOT_OK : native_compile(m, function, &own, parts, &p->native);
    if (status != JOT_OK)
        memory_release(p);
    else
        *out = p;
    return status;
}

jot_status backend_compile(struct ir_module *m, uint32_t function,
                           const struct backend_options *options, struct backend_program **out)
{
    int64_t since = timeline_begin();
    jot_status status = compile(m, function, options, out);
    timeline_end(since, &(struct timeline_event){.kind = "compile", .name = options->name});
    return status;
}

void backend_release(struct backend_program *p)
{
    if (!p)
        return;
    native_release(p->native);
    memory_release(p);
}

void backend_tune(struct backend_program *p, jot_array *const *in)
{
    if (p->native)
        native_tune(p->native, in);
}

const char *backend_text(struct backend_program *p, const char *stage, struct arena *arena)
{
    if (p->native)
        return native_text(p->native, stage, arena);
    status_fail(JOT_ERR_ARGUMENT,
                "jot_executable_text: the evaluator has no stage '%s', only trace", stage);
    return NULL;
}

jot_status backend_keep(const struct backend_program *p, uint32_t i, jot_array *a,
                        jot_array **out)
{
    if (p->native)
        return native_keep(p->native, i, a, out);
    *out = jot_array_retain(a);
    return JOT_OK;
}

size_t backend_stack(const struct ir_module *m)
{
    return STACK_OF_COMPILER + m->functions.count * STACK_OF_COMPILED_FUNCTION;
}

bool backend_calls_back(const struct backend_program *p)
{
    return p->native ? native_calls_back(p->native) : p->graph->module->hosts.count > 0;
}

size_t backend_bytes(const struct backend_program *p)
{
    return sizeof *p + (p->native ? native_bytes(p->native) : 0);
}

struct evaluation {
    struct rt_frame frame;
    struct arena *arena;
    const struct ir_graph *g;
    jot_array *const *in;
    jot_array **out;
};

static jot_status evaluate(struct evaluation *e)
{
    struct arena *arena = e->arena;
    const struct ir_graph *g = e->g;
    uint32_t n_out = g->outputs.count;
    jot_array **made = arena_array(arena, jot_array *, n_out + 1);
    struct ir_tensor *args = arena_array(arena, struct ir_tensor, g->n_params + 1);
    struct ir_tensor *results = arena_array(arena, struct ir_tensor, n_out + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        const void *data = jot_array_data(e->in[i]);
        if (!data)
            return status_last();
        args[i] = (struct ir_tensor){.type = ir_type_of(g, i), .data = (void *)(uintptr_t)data};
    }
    JOT_TRY(ir_eval(arena, g, args, results));
    for (uint32_t i = 0; i < n_out; i++) {
        struct ir_type t = results[i].type;
        made[i] = rt_array_create(ir_dtype(t), t.rank, ir_dims(g->module, t));
        if (!made[i]) {
            jot_arrays_release(i, made);
            return JOT_ERR_MEMORY;
        }
        if (made[i]->bytes)
            memcpy(made[i]->data, results[i].data, made[i]->bytes);
    }
    memcpy(e->out, made, sizeof *made * n_out);
    return JOT_OK;
}

// The arena has the frame too, and goes last.
static void abandon_evaluation(struct rt_frame *frame)
{
    arena_release(((struct evaluation *)frame)->arena);
}

__attribute__((noinline)) static jot_status evaluate_in(void *ctx)
{
    RT_MARK mark = {0};
    struct evaluation *e = ctx;
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        rt_frame_forget(&e->frame);
        mark.frame = NULL;
        return status_out_of_memory();
    }
    rt_frame_open(&e->frame, &mark, abandon_evaluation);
    jot_status status = evaluate(e);
    rt_frame_close(&mark);
    arena_guard_close(&guard);
    return status;
}

static jot_status evaluate_program(const struct ir_graph *g, jot_array *const *in,
                                   jot_array **out)
{
    struct arena *arena = arena_create();
    if (!arena)
        return status_out_of_memory();
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        arena_release(arena);
        return status_out_of_memory();
    }
    struct evaluation *e = arena_new(arena, struct evaluation);
    arena_guard_close(&guard);
    *e = (struct evaluation){.arena = arena, .g = g, .in = in, .out = out};
    // Callbacks are called on the thread of the call, whatever stack it has.
    jot_status status = g->module->hosts.count
                            ? evaluate_in(e)
                            : rt_stack_lend(backend_stack(g->module), evaluate_in, e);
    arena_release(arena);
    return status;
}

jot_status backend_run(struct backend_program *p, jot_array *const *in, jot_array **out)
{
    return p->native ? native_run(p->native, in, out) : evaluate_program(p->graph, in, out);
}
