// SPDX-License-Identifier: Apache-2.0
// Functions as programs.
#include "interop/from_graph.h"
#include "interop/program.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/collective.h"
#include "passes/mesh/partition.h"
#include "passes/passes.h"
#include "runtime/frames.h"
#include "runtime/stack.h"
#include "trace/backend.h"
#include "trace/function.h"

// A function that is being traced and written.
struct making {
    struct rt_frame frame;
    const jot_function *f;
    size_t n;
    const jot_program_type *in;
    bool is_piece; // what one device of a mesh does
    struct trace *root;
    struct arena *arena; // of the program
    uint32_t function;   // of the module
    int n_hidden;
    const void **data; // of the arrays that it uses besides its arguments
    struct mlir_program *tree;
};

// ---- tracing ----

static jot_status read_types(struct making *m, struct ir_type *types)
{
    for (size_t i = 0; i < m->n; i++) {
        const jot_program_type *t = &m->in[i];
        bool fits = t->rank >= 0 && t->rank <= IR_MAX_RANK && (t->dims || !t->rank);
        for (int k = 0; k < t->rank && fits; k++)
            fits = t->dims[k] >= 0;
        if (!dtype_is_valid((int)t->dtype) || !fits)
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: jot_program_from_function: type %zu of its arguments is "
                               "none: a dtype, at most %d axes and their extents",
                               m->f->callee.where, i, IR_MAX_RANK);
        types[i] = ir_type_make(m->root->module, t->dtype, t->rank, t->dims);
    }
    return JOT_OK;
}

static jot_status read_hidden(struct making *m, const struct traced *traced)
{
    const struct trace *root = m->root;
    m->data = arena_array(root->module->arena, const void *, traced->n_hidden + 1);
    m->n_hidden = traced->n_hidden;
    for (int i = 0; i < traced->n_hidden; i++) {
        ir_id id = root->slots.at[traced->hidden[i].id].id;
        for (uint32_t k = 0; k < root->hidden.count; k++)
            if (root->hidden.at[k].id == id)
                m->data[i] = jot_array_data(root->hidden.at[k].array);
        if (!m->data[i])
            return status_last();
    }
    return JOT_OK;
}

static jot_status trace(struct making *m)
{
    struct trace *root = m->root;
    struct ir_type *types = arena_array(root->module->arena, struct ir_type, m->n + 1);
    struct traced traced = {0};
    JOT_TRY(read_types(m, types));
    bool ok = function_trace(m->f, m->f->n_transforms, types, NULL, &traced);
    if (!ok || root->error)
        return root->error ? trace_report(root->error) : status_last();
    m->function = traced.function;
    return read_hidden(m, &traced);
}

static jot_status trace_guarded(struct making *m)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    jot_status status = trace(m);
    arena_guard_close(&guard);
    return status;
}

static void abandon(struct rt_frame *frame)
{
    struct making *m = (struct making *)frame;
    if (m->root)
        trace_abandon(m->root);
    memory_release(m);
}

__attribute__((noinline)) static jot_status trace_open(struct making *m)
{
    RT_MARK mark = {0};
    rt_frame_open(&m->frame, &mark, abandon);
    const char *where = m->f->callee.where;
    m->root = trace_open_root(TRACE_ROOT, m->f->callee.name, where ? where : "");
    jot_status status = m->root ? trace_guarded(m) : status_out_of_memory();
    rt_frame_close(&mark);
    return status;
}

// ---- writing ----

static const struct mlir_attr *number_attr(struct hlo_writer *w, int64_t x)
{
    return hlo_attr(w, (struct mlir_attr){
                           .kind = MLIR_INT, .type = hlo_word_type(w, MLIR_I32), .integer = x});
}

// The function of one device of its mesh, as many as which the program has partitions.
static jot_status take_piece(struct making *m, struct hlo_writer *w, uint32_t *f,
                             struct mlir_named *attrs)
{
    struct ir_module *module = m->root->module;
    struct pass_partition parts;
    int64_t lanes = 1;
    if (!pass_find_shard_map(ir_function(module, *f)))
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: jot_program_of_device: %s is no function on a mesh",
                           m->f->callee.where, m->f->callee.name);
    JOT_TRY(pass_partition(module, *f, &parts));
    *f = parts.f;
    int64_t *mesh = arena_array(m->arena, int64_t, parts.shard.n_axes);
    for (int i = 0; i < parts.shard.n_axes; i++)
        lanes *= mesh[i] = ir_axis_size(module, parts.shard.grid[i]);
    for (int i = 0; i < m->n_hidden; i++)
        if (ir_split_set(&parts.shard, parts.in[m->n + (size_t)i]))
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: jot_program_of_device: an array that %s uses is split over "
                               "devices: make it an argument",
                               m->f->callee.where, m->f->callee.name);
    w->mesh_rank = parts.shard.n_axes;
    w->mesh = mesh;
    attrs[0] = (struct mlir_named){"mhlo.num_partitions", number_attr(w, lanes)};
    attrs[1] = (struct mlir_named){"mhlo.num_replicas", number_attr(w, 1)};
    return JOT_OK;
}

static jot_status write_tree(struct making *m)
{
    struct ir_module *module = m->root->module;
    struct hlo_writer w = {.arena = m->arena, .module = module};
    uint32_t f = m->function;
    struct mlir_named *attrs = arena_array(m->arena, struct mlir_named, 2);
    JOT_TRY(m->is_piece ? take_piece(m, &w, &f, attrs) : pass_unshard(module, f, &f));
    f = pass_simplify(module, f);
    const struct ir_graph *g = ir_function(module, f);
    const char *refusal = hlo_refusal(m->arena, g);
    if (refusal)
        return status_fail(JOT_ERR_TRACE, "%s", refusal);
    hlo_write_main(&w, "main", g, (uint32_t)m->n, m->data);
    m->tree = arena_new(m->arena, struct mlir_program);
    *m->tree = (struct mlir_program){.arena = m->arena,
                                     .file = arena_text(m->arena, m->f->callee.name),
                                     .n_attrs = m->is_piece ? 2 : 0,
                                     .attrs = attrs,
                                     .n_functions = w.functions.count,
                                     .functions = w.functions.at};
    return JOT_OK;
}

static jot_status write_guarded(void *ctx)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    jot_status status = write_tree(ctx);
    arena_guard_close(&guard);
    return status;
}

// Lets go of the trace and what it holds.
static void end(struct making *m, bool is_traced)
{
    struct trace *root = m->root;
    if (!root)
        return;
    if (!is_traced) {
        trace_abandon(root);
        return;
    }
    struct ir_module *module = root->module;
    for (uint32_t i = 0; i < root->hidden.count; i++)
        jot_array_release(root->hidden.at[i].array);
    trace_end(root);
    ir_module_release(module);
}

static jot_program *make_program(struct making *m)
{
    bool is_traced = trace_open(m) == JOT_OK;
    m->arena = is_traced ? arena_create() : NULL;
    if (is_traced && !m->arena)
        status_out_of_memory();
    bool is_written =
        m->arena && rt_stack_lend(backend_stack(m->root->module), write_guarded, m) == JOT_OK;
    end(m, is_traced);
    if (is_written)
        return program_of_tree(m->tree->file, m->tree);
    arena_release(m->arena);
    return NULL;
}

static jot_program *from_function(const char *name, bool is_piece, jot_function f, size_t n,
                                  const jot_program_type *in)
{
    const char *problem = function_problem(&f);
    if (problem)
        return status_fail(function_problem_status(&f), "%s", problem), NULL;
    int wanted = function_in(&f, f.n_transforms);
    const char *where = f.callee.where ? f.callee.where : "";
    if (n && !in)
        return status_fail(JOT_ERR_ARGUMENT, "%s: %s: in is NULL", where, name), NULL;
    if (n != (size_t)wanted) {
        status_fail(JOT_ERR_ARGUMENT, "%s: %s: %s takes %d values, not %zu", where, name,
                    f.callee.name, wanted, n);
        return NULL;
    }
    struct making *m = memory_allocate_zeroed(sizeof *m);
    if (!m)
        return status_out_of_memory(), NULL;
    m->f = &f;
    m->n = n;
    m->in = in;
    m->is_piece = is_piece;
    jot_program *p = make_program(m);
    memory_release(m);
    return p;
}

jot_program *jot_program_from_function(jot_function f, size_t n, const jot_program_type *in)
{
    return from_function("jot_program_from_function", false, f, n, in);
}

jot_program *jot_program_of_device(jot_function f, size_t n, const jot_program_type *in)
{
    return from_function("jot_program_of_device", true, f, n, in);
}
