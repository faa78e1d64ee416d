// SPDX-License-Identifier: Apache-2.0
// sdy.manual_computation, as JAX prints a shard_map: what each device of a mesh of the program does.
//
//     %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"i"}, {}]>] out_shardings=[...]
//         manual_axes={"i"} (%arg: tensor<2x3xf32>) { ... }
//
// It becomes a shard_map on a mesh of devices of the default kind, whose axes have those names.
#include "interop/to_graph.h"

#include "ir/collective.h"
#include "trace/named.h"

#include "jot/parallel.h"

#include <stdlib.h>

struct manual {
    struct graph_frame *frame;
    const struct mlir_op *op;
    size_t n_axes;
    jot_mesh_axis axes[IR_MAX_AXES];
    uint16_t *split; // by result: the axes that split it, bits by their places in the mesh
};

// ---- reading

static const char *text_of(const struct mlir_attr *a)
{
    return a && a->kind == MLIR_OPAQUE ? a->text : "";
}

// The text of a mesh from behind "@name = ", or NULL.
static const char *find_mesh(const struct graph_frame *frame, const char *name, size_t n)
{
    const struct mlir_program *p = frame->in->program;
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        const char *text = text_of(p->attrs[i].attr);
        if (!strcmp(p->attrs[i].name, "sdy.mesh") && !strncmp(text, name, n) &&
            strchr(" =", text[n]))
            return text + n;
    }
    return NULL;
}

// A name in quotes, of letters, digits and '_', behind other characters than those in `end`.
static const char *next_name(struct arena *arena, const char **at, const char *end)
{
    const char *start = *at + strcspn(*at, end);
    if (*start != '"')
        return NULL;
    size_t n = strcspn(++start, "\"");
    for (size_t i = 0; i < n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
                    start[i]))
            return NULL;
    char *name = arena_array(arena, char, n + 1);
    memcpy(name, start, n);
    *at = start + n + (start[n] == '"');
    return name;
}

// <["x"=2, "y"=4]>; how many there are, 0 where its devices are in another order than their own.
static size_t read_mesh(struct arena *arena, const char *at, jot_mesh_axis *axes)
{
    size_t n = 0;
    if (strstr(at, "device_ids"))
        return 0;
    for (const char *name; n < IR_MAX_AXES && (name = next_name(arena, &at, "\"]"));)
        axes[n++] = (jot_mesh_axis){name, *at == '=' ? strtoll(at + 1, NULL, 10) : 0};
    return n;
}

static int place_of(const struct manual *m, const char *name)
{
    for (size_t i = 0; i < m->n_axes; i++)
        if (!strcmp(m->axes[i].name, name))
            return (int)i;
    return -1;
}

// <@mesh, [{"x", "y"}, {}]> as "x y,", of the value that it is of, and the set of its axes; NULL for anything else.
static const char *read_sharding(const struct manual *m, const char **at, uint16_t *out_set)
{
    struct strbuf s = strbuf_make(m->frame->arena);
    const char *c = strchr(*at, '@');
    c = c ? c + strcspn(c, "[>") : NULL;
    if (!c || *c++ != '[')
        return NULL;
    strbuf_add(&s, "");
    for (int d = 0; *c != ']'; d++) {
        strbuf_add(&s, d ? "," : "");
        if (*c++ != '{')
            return NULL;
        for (const char *name; (name = next_name(m->frame->arena, &c, "\"}?:"));) {
            int place = place_of(m, name);
            if (place < 0 || *c == ':') // a part of an axis
                return NULL;
            *out_set |= (uint16_t)(1u << place);
            strbuf_printf(&s, " %s", name);
        }
        if (*c++ != '}')
            return NULL;
        c += strspn(c, ", ");
    }
    if (c[1] != '>')
        return NULL;
    *at = c + 2;
    return s.text;
}

// Of n values; false where one is split as no shard_map has it.
static bool read_shardings(const struct manual *m, const char *name, uint32_t n,
                           const char **out, uint16_t *sets)
{
    const char *at = text_of(mlir_attr_find(m->op, name));
    for (uint32_t i = 0; i < n; i++) {
        out[i] = read_sharding(m, &at, &sets[i]);
        if (!out[i])
            return graph_fail(m->frame, m->op, "%s that splits by whole axes of a mesh is read",
                              name),
                   false;
    }
    return true;
}

// The mesh that the first sharding names, all of whose axes are manual.
static bool read_axes(struct manual *m)
{
    const char *at = text_of(mlir_attr_find(m->op, "manual_axes"));
    const char *name = strchr(text_of(mlir_attr_find(m->op, "in_shardings")), '@');
    if (!name)
        name = strchr(text_of(mlir_attr_find(m->op, "out_shardings")), '@');
    const char *mesh = name ? find_mesh(m->frame, name, strcspn(name, ", >")) : NULL;
    if (!mesh || !(m->n_axes = read_mesh(m->frame->arena, mesh, m->axes)))
        return graph_fail(m->frame, m->op,
                          "a mesh that the module has, of devices in order, is read"),
               false;
    size_t n = 0;
    for (const char *axis; (axis = next_name(m->frame->arena, &at, "\"}"));)
        n += place_of(m, axis) >= 0;
    if (n != m->n_axes)
        return graph_fail(m->frame, m->op,
                          "%zu of the %zu axes of its mesh are manual: all are read", n,
                          m->n_axes),
               false;
    return true;
}

// ---- groups by axes

const int64_t *graph_mesh_groups(const struct graph_frame *frame, const char *text,
                                 int64_t most, int64_t *out_count, int64_t *out_size)
{
    struct manual m = {0};
    const char *name = strchr(text, '@'), *at = strchr(text, '[');
    const char *mesh = name && at ? find_mesh(frame, name, strcspn(name, ", >")) : NULL;
    m.n_axes = mesh ? read_mesh(frame->arena, mesh, m.axes) : 0;
    bool is_along[IR_MAX_AXES] = {0};
    int64_t along[IR_MAX_AXES], n_along = 0, lanes = 1;
    for (const char *axis; at && (axis = next_name(frame->arena, &at, "\"]"));) {
        int place = place_of(&m, axis);
        if (place < 0 || is_along[place] || *at != '>') // '>': no part of an axis
            return NULL;
        is_along[place] = true;
        along[n_along++] = place;
    }
    for (size_t i = 0; i < m.n_axes; i++)
        if (m.axes[i].size < 1 || __builtin_mul_overflow(lanes, m.axes[i].size, &lanes) ||
            lanes > most)
            return NULL;
    *out_size = 1;
    for (int64_t i = 0; i < n_along; i++)
        *out_size *= m.axes[along[i]].size;
    *out_count = lanes / *out_size;
    int64_t *of = arena_array(frame->arena, int64_t, lanes);
    for (int64_t lane = 0; m.n_axes && lane < lanes; lane++) {
        int64_t digits[IR_MAX_AXES], rest = lane, group = 0, k = 0;
        for (size_t i = m.n_axes; i-- > 0; rest /= m.axes[i].size)
            digits[i] = rest % m.axes[i].size;
        for (size_t i = 0; i < m.n_axes; i++)
            group = is_along[i] ? group : group * m.axes[i].size + digits[i];
        for (int64_t i = 0; i < n_along; i++)
            k = k * m.axes[along[i]].size + digits[along[i]];
        of[group * *out_size + k] = lane;
    }
    return m.n_axes ? of : NULL;
}

// ---- axes around a trace

static int64_t axis_around(const char *name)
{
    const struct trace *t = trace_top();
    for (int i = 0; t->axes >> i; i++)
        if (t->axes >> i & 1 && !strcmp(t->module->axes.at[i].name, name))
            return i;
    return -1;
}

int graph_axes_around(const struct graph_frame *frame, int64_t *out)
{
    const struct mlir_program *p = frame->in->program;
    jot_mesh_axis axes[IR_MAX_AXES];
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        if (strcmp(p->attrs[i].name, "sdy.mesh") != 0)
            continue;
        size_t n = read_mesh(frame->arena, text_of(p->attrs[i].attr), axes), k = 0;
        while (k < n && (out[k] = axis_around(axes[k].name)) >= 0)
            k++;
        if (n && k == n)
            return (int)n;
    }
    return 0;
}

// ---- tracing

// Devices that a result is not split by have the same of it, which its type may not say.
static jot_value as_one(const struct manual *m, uint32_t i, jot_value y)
{
    const char *name = m->op->name;
    struct ir_builder *b = trace_builder();
    y = trace_import(name, y);
    if (trace_is_error(y))
        return y;
    ir_id v = trace_strong(y);
    int64_t over[IR_MAX_AXES], starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    int n = 0;
    for (size_t k = 0; k < m->n_axes; k++) {
        int64_t axis = axis_around(m->axes[k].name);
        if (!(m->split[i] >> k & 1) && axis >= 0 && ir_type_in(b, v).varies >> axis & 1)
            over[n++] = axis;
    }
    if (!n)
        return y;
    ir_id all = ir_collective(b, IR_all_gather, v, n, over);
    if (all == IR_NONE)
        return trace_result(name, all, false);
    struct ir_type t = ir_type_in(b, all);
    const int64_t *dims = ir_dims(b->module, t);
    memcpy(limits, dims, sizeof *limits * t.rank);
    limits[0] = 1;
    return trace_result(
        name, ir_reshape(b, ir_slice(b, all, starts, limits, NULL), t.rank - 1, dims + 1),
        false);
}

static void trace_piece(const jot_value *in, jot_value *out, void *ctx)
{
    const struct manual *m = ctx;
    graph_region_step(m->frame, &m->op->regions[0], in, out);
    for (uint32_t i = 0; i < m->op->n_results; i++)
        out[i] = as_one(m, i, out[i]);
}

void graph_manual(struct graph_frame *frame, const struct mlir_op *op)
{
    struct arena *arena = frame->arena;
    struct manual *m = arena_new(arena, struct manual);
    uint32_t n_in = op->n_operands, n_out = op->n_results;
    const struct mlir_block *block = &op->regions[0];
    *m = (struct manual){
        .frame = frame, .op = op, .split = arena_array(arena, uint16_t, n_out + 1)};
    const char **in = arena_array(arena, const char *, n_in + 1),
               **out = arena_array(arena, const char *, n_out + 1);
    jot_value *x = arena_array(arena, jot_value, n_in + 1),
              *y = arena_array(arena, jot_value, n_out + 1);
    if (block->n_args != n_in || block->ops[block->n_ops - 1]->n_operands != n_out) {
        graph_fail(frame, op, "%u operands and %u results, of a region of others", n_in, n_out);
        return;
    }
    if (!read_axes(m) ||
        !read_shardings(m, "in_shardings", n_in, in, arena_array(arena, uint16_t, n_in + 1)) ||
        !read_shardings(m, "out_shardings", n_out, out, m->split))
        return;
    jot_mesh *mesh =
        jot_mesh_of_kind(jot_device_kind_of(jot_default_device()), m->n_axes, m->axes);
    if (!mesh) {
        graph_fail(frame, op, "%s", jot_error_message());
        return;
    }
    const char *where = graph_where(frame, op);
    jot_function f =
        jot_function_uniform("piece", where, trace_piece, (int)n_in, (int)n_out, m);
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = graph_operand(frame, op, i);
    jot_apply_at(jot_shard_map_of(f, mesh, where, n_in, in, n_out, out), n_in, x, n_out, y,
                 where);
    for (uint32_t i = 0; i < n_out; i++)
        graph_set_result(frame, op, i, y[i]);
}
