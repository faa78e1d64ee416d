// SPDX-License-Identifier: Apache-2.0
#include "trace/shard.h"

#include "base/strbuf.h"
#include "ir/collective.h"
#include "ir/shard.h"
#include "passes/passes.h"
#include "trace/named.h"

#include "jot/parallel.h"

static bool fail_at(const jot_transform *t, jot_value error)
{
    jot_place(error, t->where);
    return false;
}

// All meshes of a program are one.
static bool keep_mesh(const jot_transform *t)
{
    struct trace *root = trace_top()->root;
    if (root->mesh && t->mesh && root->mesh != t->mesh)
        return fail_at(t, trace_fail(trace_transform_name(t), JOT_ERR_ARGUMENT,
                                     "another mesh than that of %s: a program has one",
                                     root->mesh_where));
    if (!t->mesh || root->mesh)
        return true;
    root->mesh = t->mesh;
    root->mesh_where = t->where;
    return true;
}

bool pmap_check_mesh(const jot_transform *t, int64_t size)
{
    const jot_mesh *mesh = t->mesh;
    if (mesh && (jot_mesh_rank(mesh) != 1 || (int64_t)jot_mesh_size(mesh) != size))
        return fail_at(
            t, trace_fail("jot_pmap", JOT_ERR_SHAPE,
                          "%lld along the mapped axis, on a mesh of %zu devices and %d axes: "
                          "it takes one axis of as many",
                          (long long)size, jot_mesh_size(mesh), jot_mesh_rank(mesh)));
    return keep_mesh(t);
}

// ---- Splits

// The grid of the mesh, whose axes are in the module.
static struct ir_shard grid_of(const jot_transform *t)
{
    const jot_mesh *mesh = t->mesh;
    struct ir_module *m = trace_top()->module;
    struct ir_shard s = {.n_axes = jot_mesh_rank(mesh)};
    int64_t *grid = arena_array(m->arena, int64_t, s.n_axes + 1);
    for (int i = 0; i < s.n_axes; i++) {
        const char *name = jot_mesh_axis_name(mesh, i);
        grid[i] = ir_axis_add(m, name, jot_mesh_axis_size(mesh, name));
    }
    s.grid = grid;
    return s;
}

// The position in the grid of the axis called so, or -1.
static int find_axis(const struct ir_shard *s, const char *name, size_t length)
{
    const struct ir_module *m = trace_top()->module;
    for (int i = 0; i < s->n_axes; i++) {
        const char *known = m->axes.at[s->grid[i]].name;
        if (strlen(known) == length && !memcmp(known, name, length))
            return i;
    }
    return -1;
}

// Reads "i", ", x y", "_" (jot/parallel.h) of a value of the rank: false with an error that begins with
// what.
static bool read_split(const jot_transform *t, const char *what, const char *text,
                       const struct ir_shard *s, int rank, struct ir_split *out)
{
    struct ir_module *m = trace_top()->module;
    int64_t *at = arena_array(m->arena, int64_t, rank + s->n_axes + 1);
    int n = 0, d = 0, count = 0;
    bool is_whole = false; // the dimension is said to be split by none
    uint32_t seen = 0;
    const char *c = text ? text : "";
    for (;; c++) {
        if (*c == ' ')
            continue;
        if (*c == ',' || !*c) {
            if (d < rank) {
                at[n] = count;
                n += 1 + count;
            } else if (count || is_whole || *c) {
                return fail_at(t, trace_fail(trace_transform_name(t), JOT_ERR_ARGUMENT,
                                             "%s has %d axes, and \"%.60s\" splits more", what,
                                             rank, text));
            }
            if (count && is_whole)
                return fail_at(t, trace_fail(trace_transform_name(t), JOT_ERR_ARGUMENT,
                                             "%s: \"%.60s\" has _ beside an axis", what, text));
            d++;
            count = 0;
            is_whole = false;
            if (!*c)
                break;
            continue;
        }
        size_t length = 0;
        while (strbuf_is_word_char(c[length]))
            length++;
        int axis = find_axis(s, c, length);
        if (length == 1 && *c == '_') {
            is_whole = true;
            continue;
        }
        if (length == 0 || axis < 0)
            return fail_at(t, trace_fail(trace_transform_name(t), JOT_ERR_ARGUMENT,
                                         "%s: \"%.60s\" splits by %.*s, and the mesh has %s",
                                         what, text, length ? (int)length : 1, c,
                                         ir_axes_text(m, ir_grid_set(s))));
        if (seen >> axis & 1)
            return fail_at(t, trace_fail(trace_transform_name(t), JOT_ERR_ARGUMENT,
                                         "%s: \"%.60s\" splits by %.*s twice", what, text,
                                         (int)length, c));
        seen |= 1u << axis;
        if (d < rank)
            at[n + 1 + count] = axis;
        count++;
        c += length - 1;
    }
    for (; d < rank; d++)
        at[n++] = 0;
    *out = (struct ir_split){n, at};
    return true;
}

static const char *name_of(const char *kind, int i, const jot_function *f)
{
    struct strbuf s = strbuf_make(trace_top()->module->arena);
    strbuf_printf(&s, "%s %d of %s", kind, i, f->callee.name);
    return s.text;
}

// How argument value i is split.
static bool split_in(const jot_function *f, int level, const struct ir_shard *s, int i,
                     struct ir_type type, struct ir_split *out)
{
    const jot_transform *t = &f->transform[level - 1];
    int arg = function_argument(f, level, i);
    const char *text = arg < t->n_split_in ? t->split_in[arg] : "";
    return read_split(t, name_of("argument", arg, f), text, s, type.rank, out);
}

bool shard_inner_types(const jot_function *f, int level, const struct ir_type *types,
                       struct ir_type *out, uint16_t *inside)
{
    const jot_transform *t = &f->transform[level - 1];
    struct ir_module *m = trace_top()->module;
    const jot_mesh *mesh = t->mesh;
    int n = function_in(f, level - 1);
    if (!keep_mesh(t))
        return false;
    for (int k = 0; k < jot_mesh_rank(mesh); k++) {
        jot_value error;
        const char *name = jot_mesh_axis_name(mesh, k);
        int axis = trace_name_axis("jot_shard_map", *inside, name,
                                   jot_mesh_axis_size(mesh, name), &error);
        if (axis < 0)
            return fail_at(t, error);
        *inside |= (uint16_t)(1u << axis);
    }
    struct ir_shard s = grid_of(t);
    for (int i = 0; i < n; i++) {
        struct ir_split split;
        int d = 0, n_by;
        const int64_t *by;
        if (!split_in(f, level, &s, i, types[i], &split))
            return false;
        if (ir_piece_type(m, &s, split, types[i], &out[i], &d))
            continue;
        int64_t lanes = ir_split_of(m, &s, split, d, &n_by, &by),
                extent = ir_dims(m, types[i])[d], least = lanes ? extent / lanes * lanes : 0;
        return fail_at(
            t,
            trace_fail("jot_shard_map", JOT_ERR_SHAPE,
                       "argument %d of %s is %s: axis %d is split by %lld devices, which %lld "
                       "does not divide into: %lld or %lld would",
                       function_argument(f, level, i), f->callee.name,
                       ir_type_text(m, types[i]), d, (long long)lanes, (long long)extent,
                       (long long)least, (long long)(least + lanes)));
    }
    return true;
}

// ---- The node

// A function of the values from outside, own and hidden ones, that gives the results of the shard_map
// over them; splits of hidden operands follow the own ones of s.
static bool finish(const jot_function *f, const jot_transform *t, struct ir_shard *s,
                   const struct ir_type *types, int n_own, struct traced *traced)
{
    struct ir_module *m = trace_top()->module;
    const struct ir_graph *body = ir_function(m, s->body);
    struct ir_builder b = ir_builder_make(m, f->callee.name, IR_BUILD_PLAIN);
    uint32_t n_in = body->n_params, n_out = body->outputs.count;
    ir_id *x = arena_array(m->arena, ir_id, n_in + 1);
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = ir_param(&b, (int)i < n_own ? types[i] : ir_type_of(body, i));
    b.where = ir_where_make(m, t->where);
    ir_id y = ir_shard_map(&b, s, (int)n_in, x);
    for (uint32_t i = 0; i < n_out; i++)
        ir_output(&b, y == IR_NONE ? y : y + i);
    uint32_t made = ir_finish_function(&b);
    if (made == IR_NONE)
        return fail_at(t, trace_fail(trace_transform_name(t), b.status, "%s", b.message));
    traced->function = made;
    return true;
}

bool shard_transform(const jot_function *f, int level, const struct ir_type *types,
                     struct traced *traced)
{
    const jot_transform *t = &f->transform[level - 1];
    struct ir_module *m = trace_top()->module;
    struct ir_shard s = grid_of(t);
    const struct ir_graph *body = ir_function(m, traced->function);
    int n_in = (int)body->n_params, n_own = n_in - traced->n_hidden, n_out = traced->n_out;
    s.body = traced->function;
    s.n_splits = n_in + n_out;
    s.split = arena_array(m->arena, struct ir_split, s.n_splits + 1);
    for (int i = 0; i < n_own; i++)
        if (!split_in(f, level, &s, i, types[i], &s.split[i]))
            return false;
    for (int i = n_own; i < n_in; i++)
        s.split[i] = ir_split_none(m, ir_type_of(body, (ir_id)i).rank);
    for (int i = 0; i < n_out; i++) {
        const char *text = i < t->n_split_out ? t->split_out[i] : "";
        if (!read_split(t, name_of("result", i, f), text, &s, traced_out_type(traced, i).rank,
                        &s.split[n_in + i]))
            return false;
    }
    return finish(f, t, &s, types, n_own, traced);
}

// ---- Maps

// The split of a value of the rank by the one axis of the grid along `axis`, or of none.
static struct ir_split split_along(struct ir_module *m, int rank, int axis)
{
    int64_t *at = arena_array(m->arena, int64_t, rank + 2);
    int n = 0;
    for (int d = 0; d < rank; d++) {
        at[n++] = d == axis;
        if (d == axis)
            at[n++] = 0;
    }
    return (struct ir_split){n, at};
}

// The position of a mapped axis in a value that has it.
static bool position_of(const jot_transform *t, const char *what, int i, int32_t axis, int rank,
                        int *out)
{
    *out = axis < 0 ? axis + rank : axis;
    if (*out >= 0 && *out < rank)
        return true;
    return fail_at(t, trace_fail("jot_pmap", JOT_ERR_ARGUMENT,
                                 "mapped axis %d of %s %d: axes are %d to %d", axis, what, i,
                                 -rank, rank - 1));
}

// x with an axis of size 1 at the position, or without it.
static ir_id with_one(struct ir_builder *b, ir_id x, int at, bool has)
{
    int64_t dims[IR_MAX_RANK + 1];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    int rank = has ? t.rank + 1 : t.rank - 1, next = 0;
    for (int d = 0; d < (has ? rank : t.rank); d++) {
        if (d == at) {
            next += !has;
            if (has)
                dims[d] = 1;
            continue;
        }
        dims[has ? d : d - (d > at)] = ir_dims(b->module, t)[next++];
    }
    return ir_reshape(b, x, rank, dims);
}

// A device has a row as a piece of extent 1.
bool pmap_transform(const jot_function *f, int level, int axis, const int32_t *in_axes,
                    const int32_t *out_axes, const struct ir_type *types, struct traced *traced)
{
    const jot_transform *t = &f->transform[level - 1];
    struct ir_module *m = trace_top()->module;
    int64_t grid = axis;
    struct ir_shard s = {.n_axes = 1, .grid = &grid};
    const struct ir_graph *g = ir_function(m, traced->function);
    int n_in = (int)g->n_params, n_own = n_in - traced->n_hidden, n_out = traced->n_out;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *x = arena_array(m->arena, ir_id, n_in + 1);
    int *position = arena_array(m->arena, int, n_in + 1);
    s.n_splits = n_in + n_out;
    s.split = arena_array(m->arena, struct ir_split, s.n_splits + 1);
    for (int i = 0; i < n_in; i++) {
        struct ir_type row = ir_type_of(g, (ir_id)i);
        bool is_mapped = i < n_own && in_axes[i] != PASS_NO_AXIS;
        position[i] = -1;
        if (is_mapped && !position_of(t, "argument", i, in_axes[i], row.rank + 1, &position[i]))
            return false;
        s.split[i] = split_along(m, row.rank + is_mapped, position[i]);
        int64_t dims[IR_MAX_RANK + 1];
        for (int d = 0, next = 0; d < row.rank + is_mapped; d++)
            dims[d] = d == position[i] ? 1 : ir_dims(m, row)[next++];
        struct ir_type piece = ir_type_make(m, ir_dtype(row), row.rank + is_mapped, dims);
        piece.varies = is_mapped ? row.varies
                                 : ir_type_unnamed(row, i < n_own ? axis : PASS_UNNAMED).varies;
        x[i] = ir_param(&b, piece);
    }
    for (int i = 0; i < n_own; i++)
        if (position[i] >= 0)
            x[i] = with_one(&b, x[i], position[i], false);
    ir_id y = ir_call(&b, IR_call, 1, &traced->function, n_in, x);
    for (int i = 0; i < n_out; i++) {
        int rank = traced_out_type(traced, i).rank, at = -1;
        bool is_mapped = out_axes[i] != PASS_NO_AXIS;
        if (is_mapped && !position_of(t, "result", i, out_axes[i], rank + 1, &at))
            return false;
        s.split[n_in + i] = split_along(m, rank + is_mapped, at);
        ir_id v = y == IR_NONE ? y : y + (ir_id)i;
        ir_output(&b, is_mapped ? with_one(&b, v, at, true) : v);
    }
    s.body = ir_finish_function(&b);
    if (s.body == IR_NONE)
        return fail_at(t, trace_fail("jot_pmap", b.status, "%s", b.message));
    return finish(f, t, &s, types, n_own, traced);
}
