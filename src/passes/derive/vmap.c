// SPDX-License-Identifier: Apache-2.0
// A function over a leading axis of some of its inputs.
//
//     f(x: f32[], w: f32[3]) { y = mul x w; return y }
// becomes, for 8 values of x,
//     (x: f32[8], w: f32[3]) { a = reshape x [8,1]; b = reshape w [1,3]; y = mul a b; return y }
//
// Needs nothing.  What does not depend on a mapped input stays as it is; nothing is repeated that
// broadcasting can stand for.
#include "base/status.h"
#include "ir/collective.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

struct sweep {
    struct ir_builder *b;
    const struct ir_graph *g;
    int64_t size;
    int axis;      // named, or PASS_UNNAMED
    ir_id *value;  // by value of g
    bool *batched; // by value of g
};

static void check_result(const struct batch *c, uint32_t i)
{
    struct ir_module *m = c->b->module;
    struct ir_type plain = ir_type_of(c->g, c->n->out + i), have = ir_type_in(c->b, c->y[i]);
    const int64_t *from = ir_dims(m, plain), *to = ir_dims(m, have);
    bool fits = have.rank == plain.rank + c->y_batched[i] && have.dtype == plain.dtype;
    if (fits && c->y_batched[i])
        fits = to[0] == c->size;
    for (int k = 0; fits && k < plain.rank; k++)
        fits = from[k] == to[k + c->y_batched[i]];
    if (!fits)
        ir_fail(c->b, JOT_ERR_INTERNAL, "%s mapped over %lld gives %s for %s",
                ir_op_get(c->n->op)->name, (long long)c->size, ir_type_text(m, have),
                ir_type_text(m, plain));
}

// Whether it is a collective over the axis, or has bodies that name it.  Other nodes vary over it as
// their operands do.
static bool names_axis(const struct sweep *s, const struct ir_node *n)
{
    if (s->axis < 0)
        return false;
    return ir_axes_inside(s->g, n) >> s->axis & 1;
}

// Row 0 of a value that does not vary over the named axis, whose rows are all the same: collectives go
// by what the type says.
static void drop_axis(struct sweep *s, ir_id v)
{
    struct ir_type t = ir_type_unnamed(ir_type_of(s->g, v), s->axis);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {1};
    if (!s->batched[v] || batch_may_have_axis(s->axis, ir_type_of(s->g, v)))
        return;
    const int64_t *dims = ir_dims(s->b->module, t);
    memcpy(limits + 1, dims, sizeof *limits * t.rank);
    s->value[v] = s->size ? ir_reshape(s->b, ir_slice(s->b, s->value[v], starts, limits, NULL),
                                       t.rank, dims)
                          : ir_zeros(s->b, t);
    s->batched[v] = false;
}

static void map_node(struct sweep *s, const struct ir_node *n)
{
    struct arena *arena = s->b->module->arena;
    struct batch c = {.b = s->b, .g = s->g, .n = n, .size = s->size, .axis = s->axis};
    ir_id few[8];
    bool few_batched[8];
    c.x = n->n_in <= 8 ? few : arena_array(arena, ir_id, n->n_in);
    c.batched = n->n_in <= 8 ? few_batched : arena_array(arena, bool, n->n_in);
    c.y = s->value + n->out;
    c.y_batched = s->batched + n->out;
    bool any = names_axis(s, n);
    for (uint32_t i = 0; i < n->n_in; i++) {
        c.x[i] = s->value[ir_operand(s->g, n, i)];
        c.batched[i] = s->batched[ir_operand(s->g, n, i)];
        any = any || c.batched[i];
    }
    if (!any) {
        pass_copy_node(s->b, s->g, n, s->value);
        return;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        c.y_batched[i] = batch_may_have_axis(s->axis, ir_type_of(s->g, n->out + i));
    s->b->where = n->where;
    batch_rules[n->op](&c);
    for (uint32_t i = 0; i < n->n_out && s->b->status == JOT_OK; i++)
        check_result(&c, i);
    for (uint32_t i = 0; i < n->n_out && s->b->status == JOT_OK; i++)
        drop_axis(s, n->out + i);
}

static ir_id mapped_param(struct ir_builder *b, struct ir_type t, int64_t size)
{
    if (t.rank == IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "mapping %s: it has %d axes already",
                       ir_type_text(b->module, t), IR_MAX_RANK);
    return ir_param(b, ir_type_stack(b->module, t, size));
}

struct mapped {
    uint32_t f;
    bool *batched; // by result
};

static jot_status build(struct ir_module *m, uint32_t f, const bool *batched_in, int64_t size,
                        int axis, bool all, struct mapped *out)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ZEROS);
    struct sweep s = {.b = &b, .g = g, .size = size, .axis = axis};
    s.value = pass_no_values(m, g->values.count);
    s.batched = arena_array(m->arena, bool, g->values.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type t = ir_type_unnamed(ir_type_of(g, i), axis);
        s.batched[i] = batched_in[i];
        s.value[i] = batched_in[i] ? mapped_param(&b, t, size) : ir_param(&b, t);
    }
    for (uint32_t i = 0; i < g->n_params; i++)
        drop_axis(&s, i);
    for (uint32_t i = g->n_params; i < g->nodes.count && b.status == JOT_OK; i++)
        map_node(&s, &g->nodes.at[i]);
    JOT_TRY(pass_builder_status(&b));
    out->batched = arena_array(m->arena, bool, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i], y = s.value[v];
        out->batched[i] = s.batched[v] || (all && batch_may_have_axis(axis, ir_type_of(g, v)));
        if (out->batched[i] && !s.batched[v])
            y = batch_repeat(&b, y, size);
        ir_output(&b, y);
    }
    return pass_finish(&b, &out->f);
}

static jot_status find_or_build(struct ir_module *m, uint32_t f, const bool *batched_in,
                                int64_t size, int axis, bool all, const struct mapped **out)
{
    if (size < 0)
        return status_fail(JOT_ERR_ARGUMENT,
                           "mapping over an axis of %lld: it cannot be negative",
                           (long long)size);
    struct memo_key key = {.kind = MEMO_VMAP,
                           .f = f,
                           .number = size * 2 + all,
                           .axis = (uint32_t)(axis + 1),
                           .n = ir_function(m, f)->n_params,
                           .mask = batched_in};
    *out = pass_memo_find(m, &key);
    if (*out)
        return JOT_OK;
    struct mapped *made = arena_new(m->arena, struct mapped);
    JOT_TRY(build(m, f, batched_in, size, axis, all, made));
    pass_memo_add(m, &key, made);
    *out = made;
    return JOT_OK;
}

static jot_status vmap_all(struct ir_module *m, uint32_t f, const bool *batched_in,
                           int64_t size, int axis, uint32_t *out_f)
{
    const struct mapped *r;
    JOT_TRY(find_or_build(m, f, batched_in, size, axis, true, &r));
    *out_f = r->f;
    return JOT_OK;
}

jot_status pass_vmap_all(struct ir_module *m, uint32_t f, const bool *batched_in, int64_t size,
                         uint32_t *out_f)
{
    return vmap_all(m, f, batched_in, size, PASS_UNNAMED, out_f);
}

jot_status pass_vmap_named(struct ir_module *m, uint32_t f, const bool *batched_in,
                           int64_t size, int axis, uint32_t *out_f, bool *out_batched)
{
    const struct mapped *r;
    JOT_TRY(find_or_build(m, f, batched_in, size, axis, false, &r));
    *out_f = r->f;
    if (out_batched && ir_function(m, f)->outputs.count)
        memcpy(out_batched, r->batched, sizeof(bool) * ir_function(m, f)->outputs.count);
    return JOT_OK;
}

jot_status pass_vmap(struct ir_module *m, uint32_t f, const bool *batched_in, int64_t size,
                     uint32_t *out_f, bool *out_batched)
{
    return pass_vmap_named(m, f, batched_in, size, PASS_UNNAMED, out_f, out_batched);
}

jot_status batch_function(const struct batch *c, uint32_t f, const bool *in, uint32_t *out_f,
                          bool *out)
{
    return pass_vmap_named(c->b->module, f, in, c->size, c->axis, out_f, out);
}

jot_status batch_function_all(const struct batch *c, uint32_t f, const bool *in,
                              uint32_t *out_f)
{
    return vmap_all(c->b->module, f, in, c->size, c->axis, out_f);
}

// v with axis `from` moved to position `to`.
static ir_id move_axis(struct ir_builder *b, ir_id v, int from, int to)
{
    if (v == IR_NONE || from == to)
        return v;
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(b, v).rank;
    for (int i = 0, next = 0; i < rank; i++) {
        next += next == from;
        axes[i] = i == to ? from : next++;
    }
    return ir_transpose(b, v, axes);
}

static bool read_axis(struct ir_builder *b, const char *what, uint32_t i, int32_t axis,
                      int rank, int *out)
{
    int at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
        ir_fail(b, JOT_ERR_ARGUMENT, "mapped axis %d of %s %u: it has axes %d to %d", axis,
                what, i, -rank, rank - 1);
        return false;
    }
    *out = at;
    return true;
}

// Parameters of the mapped function with the axis where the caller has it, brought to the front.
static void take_inputs(struct ir_builder *b, const struct ir_graph *g, const int32_t *in_axes,
                        int64_t size, int axis, ir_id *x)
{
    int at[1];
    int *axes = arena_array(b->module->arena, int, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type t = ir_type_unnamed(ir_type_of(g, i), axis), mapped;
        const int64_t *from = ir_dims(b->module, t);
        int64_t dims[IR_MAX_RANK + 1];
        if (in_axes[i] == PASS_NO_AXIS) {
            x[i] = ir_param(b, t);
            continue;
        }
        if (!read_axis(b, "input", i, in_axes[i], t.rank + 1, at))
            return;
        axes[i] = *at;
        for (int k = 0, next = 0; k <= t.rank; k++)
            dims[k] = k == *at ? size : from[next++];
        mapped = ir_type_make(b->module, ir_dtype(t), t.rank + 1, dims);
        mapped.varies = t.varies;
        x[i] = ir_param(b, mapped);
    }
    for (uint32_t i = 0; i < g->n_params; i++)
        if (in_axes[i] != PASS_NO_AXIS)
            x[i] = move_axis(b, x[i], axes[i], 0);
}

jot_status pass_vmap_axes(struct ir_module *m, uint32_t f, const int32_t *in_axes,
                          const int32_t *out_axes, int64_t size, int axis, uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f);
    bool *batched_in = arena_array(m->arena, bool, g->n_params + 1);
    bool *batched = arena_array(m->arena, bool, g->outputs.count + 1);
    uint32_t mapped;
    for (uint32_t i = 0; i < g->n_params; i++)
        batched_in[i] = in_axes[i] != PASS_NO_AXIS;
    JOT_TRY(pass_vmap_named(m, f, batched_in, size, axis, &mapped, batched));
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *x = pass_no_values(m, g->n_params), *y = pass_no_values(m, g->outputs.count);
    take_inputs(&b, g, in_axes, size, axis, x);
    if (b.status == JOT_OK)
        ir_inline(&b, ir_function(m, mapped), x, y);
    for (uint32_t i = 0; i < g->outputs.count && b.status == JOT_OK; i++) {
        int at = 0, rank = ir_rank_of(g, g->outputs.at[i]) + 1;
        if (out_axes[i] == PASS_NO_AXIS && batched[i])
            ir_fail(&b, JOT_ERR_ARGUMENT,
                    "result %u depends on a mapped input: it needs an out axis", i);
        else if (out_axes[i] != PASS_NO_AXIS &&
                 read_axis(&b, "result", i, out_axes[i], rank, &at))
            y[i] = move_axis(&b, batched[i] ? y[i] : batch_repeat(&b, y[i], size), 0, at);
        ir_output(&b, y[i]);
    }
    return pass_finish(&b, out_f);
}
