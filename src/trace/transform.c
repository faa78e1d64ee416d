// SPDX-License-Identifier: Apache-2.0
// What each transform of a function value does with the traced function: masks for the passes,
// and parameters and results in the order that the user sees.
//
// Hidden parameters come last in a traced function, before and after every transform.  They are
// constants: never differentiated and never mapped.
#include "trace/function.h"

#include "ir/collective.h"
#include "passes/passes.h"
#include "trace/shard.h"

struct work {
    const jot_function *f;
    const jot_transform *t;
    const char *name;
    int level;
    int axis; // of a named map
    struct traced *traced;
    struct ir_module *m;
    const struct ir_type *types; // of the parameters after the transform
    int n_in, n_out;             // before it, without hidden parameters
    bool *mask;                  // by parameter before it, hidden ones too
    int n_listed, *listed;       // the values it is about, in the order of its list
    int *among;                  // listed[k] is that number of them in the order of parameters
};

static void list_values(struct work *w, bool all_when_empty)
{
    w->n_listed = transform_listed(w->f, w->level, all_when_empty, w->listed);
    for (int k = 0; k < w->n_listed; k++)
        w->mask[w->listed[k]] = true;
    int *index = arena_array(w->m->arena, int, w->n_in + 1); // by parameter
    for (int i = 0, n = 0; i < w->n_in; i++)
        index[i] = w->mask[i] ? n++ : 0;
    for (int k = 0; k < w->n_listed; k++)
        w->among[k] = index[w->listed[k]];
}

static bool fail(const struct work *w, jot_value error)
{
    jot_place(error, w->t->where);
    return false;
}

static bool check(const struct work *w, jot_status status)
{
    return status == JOT_OK || fail(w, trace_fail_status(w->name));
}

static const char *type_text(const struct work *w, struct ir_type t)
{
    return ir_type_text(w->m, t);
}

static bool needs_floats(const struct work *w)
{
    for (int i = 0; i < w->n_in; i++)
        if (w->mask[i] && !dtype_is_inexact(ir_dtype(w->types[i])))
            return fail(w, trace_fail(w->name, JOT_ERR_DTYPE,
                                      "argument %d of %s is %s: only floats have derivatives: "
                                      "convert it first",
                                      function_argument(w->f, w->level, i), w->f->callee.name,
                                      type_text(w, w->types[i])));
    return true;
}

static bool needs_real_scalar(const struct work *w)
{
    if (w->n_out != 1)
        return fail(w, trace_fail(w->name, JOT_ERR_SHAPE, "%s has %d outputs, not one",
                                  w->f->callee.name, w->n_out));
    struct ir_type t = traced_out_type(w->traced, 0);
    if (!dtype_is_float(ir_dtype(t)))
        return fail(w, trace_fail(w->name, JOT_ERR_DTYPE,
                                  "the result of %s is %s, not a real float", w->f->callee.name,
                                  type_text(w, t)));
    if (t.rank)
        return fail(w, trace_fail(w->name, JOT_ERR_SHAPE,
                                  "the result of %s is %s, not a scalar: reduce it first%s",
                                  w->f->callee.name, type_text(w, t),
                                  w->t->kind == TRACE_GRAD ? ", or take jot_jacrev" : ""));
    return true;
}

// ---------------------------------------------------------------------------------------
// Wrappers

// A call of `inner` in a new function whose parameters are those after the transform.
struct wrapper {
    struct ir_builder b;
    ir_id *param, *hidden; // own parameters, hidden ones
    ir_id *operands;       // of the call, to be filled
    int n_operands;
};

static struct wrapper open_wrapper(const struct work *w, int n_own)
{
    struct arena *arena = w->m->arena;
    struct wrapper r = {.b = ir_builder_make(w->m, ir_function(w->m, w->traced->function)->name,
                                             IR_BUILD_PLAIN)};
    const struct ir_graph *g = ir_function(w->m, w->traced->function);
    r.param = arena_array(arena, ir_id, n_own + 1);
    r.hidden = arena_array(arena, ir_id, w->traced->n_hidden + 1);
    r.operands = arena_array(arena, ir_id, 2 * n_own + w->traced->n_hidden + 1);
    for (int i = 0; i < n_own; i++)
        r.param[i] = ir_param(&r.b, w->types[i]);
    for (int i = 0; i < w->traced->n_hidden; i++)
        r.hidden[i] = ir_param(&r.b, ir_type_of(g, (ir_id)(w->n_in + i)));
    // Every inner function starts with the arguments and what is hidden.
    for (int i = 0; i < w->n_in; i++)
        r.operands[r.n_operands++] = r.param[i];
    for (int i = 0; i < w->traced->n_hidden; i++)
        r.operands[r.n_operands++] = r.hidden[i];
    return r;
}

static bool finish_wrapper(struct work *w, struct wrapper *r)
{
    uint32_t f = ir_finish_function(&r->b);
    if (f == IR_NONE)
        return fail(w, trace_fail(w->name, JOT_ERR_INTERNAL, "%s", r->b.message));
    w->traced->function = f;
    return true;
}

// ---------------------------------------------------------------------------------------
// Forward and reverse mode

// The results of the traced function, which are `lead` others and rows of derivatives in the listed
// values, with the rows in the order of the list; with `square` the rows themselves as well.
static bool order_results(struct work *w, int lead, bool square)
{
    int n = w->n_listed, at = 0,
        n_out = (int)ir_function(w->m, w->traced->function)->outputs.count;
    while (at < n && w->among[at] == at)
        at++;
    if (at == n)
        return true;
    struct wrapper r = open_wrapper(w, w->n_in);
    ir_id y = ir_call(&r.b, IR_call, 1, &w->traced->function, r.n_operands, r.operands);
    for (int i = 0; i < n_out && y != IR_NONE; i++) {
        int row = (i - lead) / n, column = (i - lead) % n;
        int from = i < lead ? i : lead + (square ? w->among[row] : row) * n + w->among[column];
        ir_output(&r.b, y + (ir_id)from);
    }
    return finish_wrapper(w, &r);
}

typedef jot_status pass(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f);

static bool by_mask(struct work *w, pass *p, bool scalar)
{
    list_values(w, false);
    return needs_floats(w) && (!scalar || needs_real_scalar(w)) &&
           check(w, p(w->m, w->traced->function, w->mask, &w->traced->function)) &&
           order_results(w, w->t->kind == TRACE_VALUE_AND_GRAD, w->t->kind == TRACE_HESSIAN);
}

static bool jvp(struct work *w)
{
    list_values(w, true);
    struct wrapper r = open_wrapper(w, w->n_in + w->n_listed);
    ir_id *tangent = arena_array(w->m->arena, ir_id, w->n_in + 1);
    for (int k = 0; k < w->n_listed; k++) {
        int i = w->listed[k];
        struct ir_type have = w->types[w->n_in + k], want = w->types[i];
        if (dtype_is_inexact(ir_dtype(want)) && !ir_type_alike(have, want))
            return fail(
                w, trace_fail(w->name, JOT_ERR_SHAPE,
                              "the tangent of argument %d of %s is %s, but the argument is %s",
                              function_argument(w->f, w->level, i), w->f->callee.name,
                              type_text(w, have), type_text(w, want)));
        w->mask[i] = dtype_is_inexact(ir_dtype(want));
        tangent[i] = r.param[w->n_in + k];
    }
    for (int i = 0; i < w->n_in; i++)
        if (w->mask[i])
            r.operands[r.n_operands++] = tangent[i];
    uint32_t inner;
    bool *nonzero = arena_array(w->m->arena, bool, w->n_out + 1);
    if (!check(w, pass_jvp(w->m, w->traced->function, w->mask, &inner, nonzero)))
        return false;
    ir_id y = ir_call(&r.b, IR_call, 1, &inner, r.n_operands, r.operands);
    for (int i = 0; i < w->n_out; i++)
        ir_output(&r.b, y == IR_NONE ? y : y + (ir_id)i);
    ir_id dy = y + (ir_id)w->n_out;
    for (int i = 0; i < w->n_out; i++)
        ir_output(&r.b, nonzero[i] ? dy++ : ir_zeros(&r.b, traced_out_type(w->traced, i)));
    return finish_wrapper(w, &r);
}

static bool vjp(struct work *w)
{
    list_values(w, true);
    if (!needs_floats(w))
        return false;
    struct wrapper r = open_wrapper(w, w->n_in + w->n_out);
    for (int i = 0; i < w->n_out; i++) {
        struct ir_type have = w->types[w->n_in + i], want = traced_out_type(w->traced, i);
        if (!dtype_is_inexact(ir_dtype(want)))
            continue;
        if (!ir_type_alike(have, want))
            return fail(
                w, trace_fail(w->name, JOT_ERR_SHAPE,
                              "the cotangent of result %d of %s is %s, but the result is %s", i,
                              w->f->callee.name, type_text(w, have), type_text(w, want)));
        // A lane's own cotangent of what all lanes have is one of its own copy of that.
        r.operands[r.n_operands++] =
            ir_psum(&r.b, r.param[w->n_in + i], have.varies & (uint16_t)~want.varies);
    }
    uint32_t inner;
    if (!check(w, pass_vjp(w->m, w->traced->function, w->mask, &inner)))
        return false;
    ir_id y = ir_call(&r.b, IR_call, 1, &inner, r.n_operands, r.operands);
    for (int i = 0; i < w->n_out + w->n_listed; i++) {
        int from = i < w->n_out ? i : w->n_out + w->among[i - w->n_out];
        ir_output(&r.b, y == IR_NONE ? y : y + (ir_id)from);
    }
    return finish_wrapper(w, &r);
}

// ---------------------------------------------------------------------------------------
// Maps

static bool map_sizes(const struct work *w, const int32_t *axes, int64_t *out_size)
{
    int first = -1;
    for (int i = 0; i < w->n_in; i++) {
        if (axes[i] == PASS_NO_AXIS)
            continue;
        int at = axes[i] < 0 ? axes[i] + w->types[i].rank : axes[i];
        int64_t size = ir_dims(w->m, w->types[i])[at];
        if (first >= 0 && size != *out_size)
            return fail(w,
                        trace_fail(w->name, JOT_ERR_SHAPE,
                                   "arguments %d and %d of %s have %lld and %lld along the "
                                   "mapped axis: %s and %s",
                                   function_argument(w->f, w->level, first),
                                   function_argument(w->f, w->level, i), w->f->callee.name,
                                   (long long)*out_size, (long long)size,
                                   type_text(w, w->types[first]), type_text(w, w->types[i])));
        if (first < 0)
            first = i;
        *out_size = size;
    }
    if (first < 0)
        return fail(w, trace_fail(w->name, JOT_ERR_ARGUMENT, "no argument of %s is mapped",
                                  w->f->callee.name));
    return true;
}

static bool vmap(struct work *w)
{
    struct arena *arena = w->m->arena;
    int n_hidden = w->traced->n_hidden;
    int32_t *in_axes = arena_array(arena, int32_t, w->n_in + n_hidden + 1);
    int32_t *out_axes = arena_array(arena, int32_t, w->n_out + 1);
    for (int i = 0; i < w->n_in + n_hidden; i++) {
        int axis = i < w->n_in ? function_mapped_axis(w->f, w->level, i) : TRACE_AXIS_NONE;
        in_axes[i] = axis == TRACE_AXIS_NONE ? PASS_NO_AXIS : axis;
    }
    if (w->t->n_out && w->t->n_out != w->n_out)
        return fail(w, trace_fail(w->name, JOT_ERR_ARGUMENT, "%d axes for the %d results of %s",
                                  w->t->n_out, w->n_out, w->f->callee.name));
    for (int i = 0; i < w->n_out; i++) {
        int axis = w->t->n_out ? w->t->out_axis[i] : 0;
        out_axes[i] = axis == TRACE_AXIS_NONE ? PASS_NO_AXIS : axis;
    }
    int64_t size = 0;
    if (!map_sizes(w, in_axes, &size))
        return false;
    if (w->t->kind == TRACE_PMAP)
        return pmap_transform(w->f, w->level, w->axis, in_axes, out_axes, w->types, w->traced);
    return check(w, pass_vmap_axes(w->m, w->traced->function, in_axes, out_axes, size, w->axis,
                                   &w->traced->function));
}

static bool checkpoint(struct work *w)
{
    struct wrapper r = open_wrapper(w, w->n_in);
    ir_id y = ir_call(&r.b, IR_checkpoint, 1, &w->traced->function, r.n_operands, r.operands);
    for (int i = 0; i < w->n_out; i++)
        ir_output(&r.b, y == IR_NONE ? y : y + (ir_id)i);
    return finish_wrapper(w, &r);
}

static bool transform(void *ctx)
{
    struct work *w = ctx;
    switch ((enum trace_transform)w->t->kind) {
    case TRACE_GRAD:
        return by_mask(w, pass_grad, true);
    case TRACE_VALUE_AND_GRAD:
        return by_mask(w, pass_value_and_grad, true);
    case TRACE_JACFWD:
        return by_mask(w, pass_jacfwd, false);
    case TRACE_JACREV:
        return by_mask(w, pass_jacrev, false);
    case TRACE_HESSIAN:
        return by_mask(w, pass_hessian, true);
    case TRACE_JVP:
        return jvp(w);
    case TRACE_VJP:
        return vjp(w);
    case TRACE_VMAP:
    case TRACE_PMAP:
        return vmap(w);
    case TRACE_SHARD_MAP:
        return shard_transform(w->f, w->level, w->types, w->traced);
    case TRACE_CHECKPOINT:
        return checkpoint(w);
    case TRACE_NO_MEMORY:
        break;
    }
    return false;
}

bool function_transform(const jot_function *f, int level, int axis, const struct ir_type *types,
                        struct traced *t)
{
    struct ir_module *m = trace_top()->module;
    struct work w = {.f = f,
                     .t = &f->transform[level - 1],
                     .level = level,
                     .axis = axis,
                     .traced = t,
                     .m = m,
                     .types = types,
                     .n_in = function_in(f, level - 1),
                     .n_out = t->n_out};
    w.name = trace_transform_names[w.t->kind];
    w.mask = arena_array(m->arena, bool, w.n_in + t->n_hidden + 1);
    w.listed = arena_array(m->arena, int, w.n_in + 1);
    w.among = arena_array(m->arena, int, w.n_in + 1);
    bool ok = trace_with_stack(transform, &w);
    t->n_out = function_out(f, level);
    t->weak = arena_array(m->arena, bool, t->n_out + 1);
    if (ok && (int)ir_function(m, t->function)->outputs.count != t->n_out)
        return fail(&w, trace_fail(w.name, JOT_ERR_DTYPE,
                                   "a result of %s is not a float: it has no derivative",
                                   f->callee.name));
    return ok;
}
