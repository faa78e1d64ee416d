// SPDX-License-Identifier: Apache-2.0
// Tracing function values, and calls of them.
#include "passes/passes.h"
#include "runtime/stack.h"
#include "trace/dump.h"
#include "trace/emit.h"
#include "trace/function.h"
#include "trace/named.h"
#include "trace/shard.h"
#include "trace/stacks.h"

#include <stdio.h>

// A traced function by what it was traced from.
struct memo_key {
    jot_callee callee, rule[2];
    int rule_kind, n_transforms;
    uint16_t axes; // of the maps around it
    bool keeps_weak;
    const jot_transform *transform; // their places do not count
};

// Only of functions that use nothing of the traces around them: the same context may hold other
// values by the next use, in a loop over layers for example.
struct trace_memo {
    struct memo_key key;
    int n_in;
    const struct ir_type *types;
    const bool *weak;
    struct traced traced;
};

static void make_key(const jot_function *f, int level, uint16_t axes, const bool *weak,
                     struct memo_key *key)
{
    memset(key, 0, sizeof *key);
    key->callee = f->callee;
    key->callee.where = NULL;
    key->rule[0] = f->rule[0];
    key->rule[1] = f->rule[1];
    key->rule_kind = f->rule_kind;
    key->n_transforms = level;
    key->axes = axes;
    key->keeps_weak = weak != NULL;
    key->transform = f->transform;
}

static bool same_callee(const jot_callee *a, const jot_callee *b)
{
    return a->body == b->body && a->plain == b->plain && a->ctx == b->ctx &&
           a->arg_leaves == b->arg_leaves && a->result_leaves == b->result_leaves &&
           a->n_args == b->n_args && a->n_results == b->n_results;
}

static bool same_key(const struct memo_key *a, const struct memo_key *b)
{
    if (!same_callee(&a->callee, &b->callee) || !same_callee(&a->rule[0], &b->rule[0]) ||
        !same_callee(&a->rule[1], &b->rule[1]) || a->rule_kind != b->rule_kind ||
        a->n_transforms != b->n_transforms || a->axes != b->axes ||
        a->keeps_weak != b->keeps_weak)
        return false;
    for (int i = 0; i < a->n_transforms; i++) {
        const jot_transform *s = &a->transform[i], *t = &b->transform[i];
        // Equal lists are one (interned.h).
        if (s->kind != t->kind || s->n != t->n || s->n_out != t->n_out || s->axis != t->axis ||
            s->out_axis != t->out_axis || s->name != t->name || s->mesh != t->mesh ||
            s->split_in != t->split_in || s->split_out != t->split_out)
            return false;
    }
    return true;
}

static uint64_t hash_key(const struct memo_key *key, int n_in, const struct ir_type *types)
{
    uint64_t h = hash_combine((uintptr_t)key->callee.body, (uintptr_t)key->callee.plain);
    h = hash_combine(h, (uintptr_t)key->callee.ctx);
    h = hash_combine(h, (uint64_t)key->n_transforms);
    for (int i = 0; i < n_in; i++)
        h = hash_combine(hash_combine(h, ir_dtype(types[i])), types[i].shape);
    return h;
}

static const struct trace_memo *find_memo(const struct memo_key *key, int n_in,
                                          const struct ir_type *types, const bool *weak)
{
    const struct trace *root = trace_top()->root;
    struct hash_probe p = hash_probe(&root->memo_table, hash_key(key, n_in, types));
    while (hash_next(&root->memo_table, &p)) {
        const struct trace_memo *m = root->memos.at[p.id];
        bool same = m->n_in == n_in && same_key(&m->key, key);
        for (int i = 0; same && i < n_in; i++)
            same = ir_type_equal(m->types[i], types[i]) && (!weak || m->weak[i] == weak[i]);
        if (same)
            return m;
    }
    return NULL;
}

static void remember(const struct memo_key *key, int n_in, const struct ir_type *types,
                     const bool *weak, const struct traced *traced)
{
    struct trace *root = trace_top()->root;
    struct arena *arena = root->module->arena;
    struct trace_memo *m = arena_new(arena, struct trace_memo);
    m->key = *key;
    m->n_in = n_in;
    m->types = arena_copy(arena, types, sizeof *types * (size_t)n_in);
    m->weak = weak ? arena_copy(arena, weak, sizeof *weak * (size_t)n_in) : NULL;
    m->traced = *traced;
    hash_insert(arena, &root->memo_table, hash_key(key, n_in, types), root->memos.count);
    vec_push(arena, &root->memos, m);
}

// The results as values of the graph, converted to what the user sees unless numbers stay numbers.
static void collect(int n, const jot_value *out, bool keep_weak, ir_id *ids, bool *weak)
{
    for (int i = 0; i < n; i++) {
        weak[i] = keep_weak && trace_slot_of(out[i])->weak;
        ids[i] = weak[i] ? trace_kept(out[i]) : trace_strong(out[i]);
    }
}

static bool is_too_deep(const jot_callee *c)
{
    const char *why = trace_too_deep(TRACE_FUNCTION);
    if (!why)
        return false;
    int depth = 0;
    for (const struct trace *t = trace_top(); t; t = t->parent)
        depth++;
    jot_place(trace_fail("jot_apply", JOT_ERR_TRACE, "%s is traced in %d functions: %s",
                         c->name, depth, why),
              c->where);
    return true;
}

__attribute__((noinline)) static bool trace_callee(const jot_callee *c, uint16_t axes,
                                                   const struct ir_type *types,
                                                   const bool *weak, struct traced *out)
{
    RT_MARK mark = {0};
    if (is_too_deep(c))
        return false;
    struct trace *outer = trace_top();
    struct arena *arena = outer->module->arena;
    int n_in = callee_in(c), n_out = callee_out(c);
    jot_value *v = arena_array(arena, jot_value, n_in + n_out + 1);
    ir_id *ids = arena_array(arena, ir_id, n_out + 1);
    struct trace *t = trace_open_nested(TRACE_FUNCTION, c->name, c->where);
    t->axes = axes;
    rt_frame_open(&t->frame, &mark, trace_abandon_body);
    for (int i = 0; i < n_in; i++)
        v[i] = trace_param(types[i], weak && weak[i]);
    if (callee_place(c))
        jot_place((jot_value){0, 0}, c->where);
    callee_call(c, v, v + n_in);
    *out = (struct traced){.n_out = n_out, .weak = arena_array(arena, bool, n_out + 1)};
    uint32_t n_hidden = 0, *hidden = NULL;
    if (!t->error) {
        collect(n_out, v + n_in, weak != NULL, ids, out->weak);
        out->function = trace_close(t, n_out, ids, &n_hidden, &hidden);
        // Before any transform, so that a value has the same bits with and without its gradient.
        if (!t->error)
            out->function = pass_form_fma(outer->module, out->function);
    }
    bool ok = !t->error;
    out->n_hidden = (int)n_hidden;
    out->hidden = arena_array(arena, jot_value, n_hidden + 1);
    for (uint32_t i = 0; i < n_hidden; i++)
        out->hidden[i] = t->hidden.at[hidden[i]].outer;
    rt_frame_close(&mark);
    trace_end(t);
    return ok;
}

// Inside of a named map every lane has arguments of its own, those too that are not mapped: without
// collectives a name makes no difference.
static void vary_all(int n, struct ir_type *types, uint16_t axes)
{
    for (int i = 0; i < n; i++)
        types[i].varies |= axes;
}

static bool name_axis(const jot_function *f, int level, const struct ir_type *types, int n,
                      struct ir_type *out, uint16_t *axes, int *out_axis)
{
    const jot_transform *t = &f->transform[level - 1];
    jot_value error;
    int i = 0;
    while (i < n && function_mapped_axis(f, level, i) == TRACE_AXIS_NONE)
        i++;
    if (i == n)
        return true; // which the transform finds
    int axis = function_mapped_axis(f, level, i), rank = types[i].rank;
    int64_t size = ir_dims(trace_top()->module, types[i])[axis < 0 ? axis + rank : axis];
    *out_axis = trace_name_axis(trace_transform_name(t), *axes, t->name, size, &error);
    if (*out_axis < 0) {
        jot_place(error, t->where);
        return false;
    }
    if (t->kind == TRACE_PMAP && !pmap_check_mesh(t, size))
        return false;
    *axes |= (uint16_t)(1u << *out_axis);
    vary_all(n, out, (uint16_t)(1u << *out_axis));
    return true;
}

// The types before the outermost transform, and the axes inside of it, with that of a named map in
// *out_axis.  False with an error when an axis is not there.
static bool inner_types(const jot_function *f, int level, const struct ir_type *types,
                        struct ir_type *out, uint16_t *inside, int *out_axis)
{
    const jot_transform *t = &f->transform[level - 1];
    struct ir_module *m = trace_top()->module;
    int n = function_in(f, level - 1);
    memcpy(out, types, sizeof *out * (size_t)n);
    *out_axis = PASS_UNNAMED;
    // A derivative is that of a lane's function in its own arguments.
    if (t->kind == TRACE_SHARD_MAP)
        return shard_inner_types(f, level, types, out, inside);
    if (!trace_is_map(t) && t->kind != TRACE_CHECKPOINT)
        vary_all(n, out, *inside);
    if (!trace_is_map(t))
        return true;
    for (int i = 0; i < n; i++) {
        int axis = function_mapped_axis(f, level, i);
        if (axis == TRACE_AXIS_NONE)
            continue;
        int rank = types[i].rank, at = axis < 0 ? axis + rank : axis;
        if (at < 0 || at >= rank) {
            char axes[48] = "it has none";
            if (rank)
                snprintf(axes, sizeof axes, "axes are %d to %d", -rank, rank - 1);
            jot_place(trace_fail(trace_transform_name(t), JOT_ERR_SHAPE,
                                 "argument %d of %s is %s: no axis %d: %s",
                                 function_argument(f, level, i), f->callee.name,
                                 ir_type_text(m, types[i]), axis, axes),
                      t->where);
            return false;
        }
        int64_t dims[IR_MAX_RANK];
        const int64_t *old = ir_dims(m, types[i]);
        for (int k = 0; k < rank - 1; k++)
            dims[k] = old[k + (k >= at)];
        out[i] = ir_type_make(m, ir_dtype(types[i]), rank - 1, dims);
        out[i].varies = types[i].varies;
    }
    return !t->name || name_axis(f, level, types, n, out, inside, out_axis);
}

bool function_trace(const jot_function *f, int level, const struct ir_type *types,
                    const bool *weak, struct traced *out)
{
    return function_trace_in(f, level, trace_top()->axes, types, weak, out);
}

bool function_trace_in(const jot_function *f, int level, uint16_t axes,
                       const struct ir_type *types, const bool *weak, struct traced *out)
{
    int n_in = function_in(f, level);
    struct memo_key key;
    make_key(f, level, axes, weak, &key);
    const struct trace_memo *known = find_memo(&key, n_in, types, weak);
    if (known) {
        *out = known->traced;
        return true;
    }
    if (level == 0) {
        if (!trace_callee(&f->callee, axes, types, weak, out) ||
            (f->rule_kind && !function_add_rule(f, axes, types, out)))
            return false;
        dump_function("trace", trace_top()->module, out->function);
    } else {
        const jot_transform *t = &f->transform[level - 1];
        if (rt_stack_left() < STACK_OF_TRACE) {
            jot_place(trace_fail(trace_transform_name(t), JOT_ERR_TRACE,
                                 "%d transforms of %s: %s", f->n_transforms, f->callee.name,
                                 trace_too_deep(TRACE_FUNCTION)),
                      t->where);
            return false;
        }
        struct ir_type *inner = arena_array(trace_top()->module->arena, struct ir_type,
                                            function_in(f, level - 1) + 1);
        uint16_t inside = axes;
        int axis;
        if (!inner_types(f, level, types, inner, &inside, &axis) ||
            !function_trace_in(f, level - 1, inside, inner, NULL, out) ||
            !function_transform(f, level, axis, types, out))
            return false;
    }
    if (out->n_hidden == 0)
        remember(&key, n_in, types, weak, out);
    return true;
}

bool traced_emit(const char *name, const struct traced *t, int n_in, const ir_id *in,
                 ir_id *out)
{
    struct trace *top = trace_top();
    struct ir_builder *b = &top->b;
    ir_id *operands = arena_array(top->module->arena, ir_id, n_in + t->n_hidden + 1);
    if (n_in)
        memcpy(operands, in, sizeof *in * (size_t)n_in);
    for (int i = 0; i < t->n_hidden; i++)
        operands[n_in + i] = trace_slot_of(trace_import(name, t->hidden[i]))->id;
    ir_id first = ir_call(b, IR_call, 1, &t->function, n_in + t->n_hidden, operands);
    for (int i = 0; i < t->n_out; i++)
        out[i] = first == IR_NONE ? IR_NONE : first + (ir_id)i;
    if (b->status == JOT_OK)
        return true;
    trace_result(name, IR_NONE, false);
    return false;
}

static bool apply(const jot_function *f, const jot_value *values, jot_value *out)
{
    struct trace *top = trace_top();
    struct arena *arena = top->module->arena;
    int n_in = function_in(f, f->n_transforms), n_out = function_out(f, f->n_transforms);
    bool keep_weak = f->n_transforms == 0 && !f->rule_kind;
    jot_value error, *v = arena_array(arena, jot_value, n_in + 1);
    memcpy(v, values, sizeof *v * (size_t)n_in);
    if (!trace_ready("jot_apply", n_in, v, &error))
        return false;
    ir_id *in = arena_array(arena, ir_id, n_in + 1),
          *ids = arena_array(arena, ir_id, n_out + 1);
    struct ir_type *types = arena_array(arena, struct ir_type, n_in + 1);
    bool *weak = arena_array(arena, bool, n_in + 1);
    for (int i = 0; i < n_in; i++) {
        const struct trace_slot *s = trace_slot_of(v[i]);
        weak[i] = keep_weak && s->weak && s->kind == TRACE_VALUE;
        in[i] = weak[i] ? s->id : trace_strong(v[i]);
        types[i] = ir_type_in(&top->b, in[i]);
    }
    struct traced traced;
    if (!function_trace(f, f->n_transforms, types, keep_weak ? weak : NULL, &traced) ||
        !traced_emit("jot_apply", &traced, n_in, in, ids))
        return false;
    for (int i = 0; i < n_out; i++)
        out[i] = trace_value(ids[i], traced.weak[i]);
    return true;
}

struct application {
    const jot_function *f;
    size_t n_in, n_out;
    const jot_value *in;
};

static bool make_application(void *ctx, jot_value *out, jot_value *out_error)
{
    const struct application *a = ctx;
    const jot_function *f = a->f;
    const char *problem = function_problem(f);
    if (!trace_ready("jot_apply", 0, NULL, out_error))
        return false;
    if (problem) {
        *out_error = trace_fail("jot_apply", function_problem_status(f), "%s", problem);
        return false;
    }
    int n_in = function_in(f, f->n_transforms), n_out = function_out(f, f->n_transforms);
    if ((int)a->n_in != n_in || (int)a->n_out != n_out) {
        *out_error = trace_fail("jot_apply", JOT_ERR_ARGUMENT,
                                "%s takes %d values and gives %d, not %zu and %zu",
                                f->callee.name, n_in, n_out, a->n_in, a->n_out);
        return false;
    }
    if (apply(f, a->in, out))
        return true;
    *out_error = trace_fail_latest();
    return false;
}

void jot_apply_at(jot_function f, size_t n_in, const jot_value *in, size_t n_out,
                  jot_value *out, const char *where)
{
    if (trace_lacks("jot_apply", "in", n_in, in, n_out, out, where) ||
        trace_lacks("jot_apply", "out", n_out, out, n_out, out, where))
        return;
    trace_make(make_application, &(struct application){&f, n_in, n_out, in}, n_out, out, where);
}
