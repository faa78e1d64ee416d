// SPDX-License-Identifier: Apache-2.0
// sdy.manual_computation, as JAX prints a shard_map: what each device of a mesh of the program does.
//
//     %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"i"}, {}]>] out_shardings=[...]
//         manual_axes={"i"} (%arg: tensor<2x3xf32>) { ... }
//
// It becomes a shard_map on a mesh of devices of the default kind (graph_mesh.h).  Along axes that
// are not manual all devices do the same.  In a manual computation another one takes its pieces of values that
// all devices have, and puts its results together again.
#include "interop/graph_mesh.h"

#include "ir/collective.h"
#include "ir/indexing.h"

// An operand or result.
struct side {
    struct graph_sharding sharding;
    const char *spec; // as the shard_map splits it, by whole axes; NULL: the body does
};

struct manual {
    struct graph_frame *frame;
    const struct mlir_op *op;
    struct graph_mesh mesh;
    uint16_t axes;               // that are manual, by their positions in the mesh
    int64_t around[IR_MAX_AXES]; // the axes of the mesh in the body
    bool is_inner;               // in another manual computation
    struct side *in, *out;
};

// ---- reading

// The first mesh with axes that a sharding names.
static bool find_mesh(struct manual *m)
{
    static const char *const names[] = {"in_shardings", "out_shardings"};
    for (int i = 0; i < 2; i++) {
        const char *at = graph_mesh_text(mlir_attr_find(m->op, names[i]));
        while (*(at += strcspn(at, "<"))) {
            at++;
            if ((*at == '@' || !strncmp(at, "mesh<", strlen("mesh<"))) &&
                graph_mesh_read(m->frame, &at, &m->mesh))
                return true;
        }
    }
    return false;
}

// "x y,", of the axes that split each dimension; NULL where one is split by a part of an axis.
static const char *spec_of(const struct manual *m, const struct graph_sharding *s)
{
    struct strbuf text = strbuf_make(m->frame->arena);
    strbuf_add(&text, "");
    for (int d = 0; d < s->rank; d++) {
        strbuf_add(&text, d ? "," : "");
        for (int i = 0; i < s->n[d]; i++) {
            const jot_mesh_axis *axis = &m->mesh.axes[s->parts[d][i].axis];
            if (s->parts[d][i].size != axis->size)
                return NULL;
            strbuf_printf(&text, " %s", axis->name);
        }
    }
    return text.text;
}

static bool read_sides(const struct manual *m, const char *name, uint32_t n,
                       struct mlir_value *const *values, struct side *out)
{
    const char *at = graph_mesh_text(mlir_attr_find(m->op, name));
    at += strcspn(at, "[");
    for (uint32_t i = 0; i < n; i++) {
        struct graph_sharding *s = &out[i].sharding;
        at += strcspn(at, "<");
        if (!graph_sharding_read(m->frame, &m->mesh, m->axes, &at, s) ||
            s->rank != values[i]->type->rank) {
            graph_fail(m->frame, m->op,
                       "%s does not say how value %u is split by axes of the mesh", name, i);
            return false;
        }
        out[i].spec = m->is_inner ? NULL : spec_of(m, s);
    }
    return true;
}

static bool read_manual(struct manual *m)
{
    const struct mlir_op *op = m->op;
    m->in = arena_array(m->frame->arena, struct side, op->n_operands + 1);
    m->out = arena_array(m->frame->arena, struct side, op->n_results + 1);
    if (!find_mesh(m)) {
        graph_fail(m->frame, op, "its mesh is none of the module, or has a device twice");
        return false;
    }
    if (!graph_mesh_set(m->frame, &m->mesh, graph_mesh_text(mlir_attr_find(op, "manual_axes")),
                        &m->axes)) {
        graph_fail(m->frame, op,
                   "manual_axes that are none of its mesh, or parts of one that it and "
                   "another mesh are made of, as of 2 by 3 and 3 by 2");
        return false;
    }
    m->is_inner = graph_mesh_around(&m->mesh, m->around);
    return read_sides(m, "in_shardings", op->n_operands, op->operands, m->in) &&
           read_sides(m, "out_shardings", op->n_results, op->results, m->out);
}

// ---- pieces

// The number, along dimension d, of the piece of this device.
static ir_id own_piece(const struct manual *m, const struct graph_sharding *s, int d)
{
    struct ir_builder *b = trace_builder();
    ir_id number = ir_scalar_int(b, JOT_I32, 0);
    for (int i = 0; i < s->n[d]; i++) {
        struct graph_mesh_part part = s->parts[d][i];
        ir_id size = ir_scalar_int(b, JOT_I32, part.size);
        ir_id own = ir_div(b, ir_axis_index(b, m->around[part.axis]),
                           ir_scalar_int(b, JOT_I32, part.step));
        number = ir_add(b, ir_mul(b, number, size), ir_rem(b, own, size));
    }
    return number;
}

static ir_id cut(const struct manual *m, const struct graph_sharding *s, ir_id x)
{
    struct ir_builder *b = trace_builder();
    ir_id starts[IR_MAX_RANK];
    int64_t sizes[IR_MAX_RANK];
    const int64_t *dims = ir_dims(b->module, ir_type_in(b, x));
    for (int d = 0; d < s->rank; d++) {
        int64_t n = graph_sharding_of(s, d);
        if (dims[d] % n)
            return ir_fail(b, JOT_ERR_SHAPE, "axis %d of %lld in %lld pieces", d,
                           (long long)dims[d], (long long)n);
        sizes[d] = dims[d] / n;
        starts[d] = ir_mul(b, own_piece(m, s, d), ir_scalar_int(b, JOT_I32, sizes[d]));
    }
    return ir_dynamic_slice(b, x, starts, sizes);
}

// Of a sum over axes the device that is first along them has it all.
static ir_id only_first(const struct manual *m, uint16_t axes, ir_id x)
{
    struct ir_builder *b = trace_builder();
    for (size_t k = 0; k < m->mesh.n && x != IR_NONE; k++)
        if (axes >> k & 1) {
            ir_id own = ir_axis_index(b, m->around[k]);
            x = ir_select(b, ir_eq(b, own, ir_scalar_int(b, JOT_I32, 0)), x,
                          ir_zeros(b, ir_type_in(b, x)));
        }
    return x;
}

static jot_value take_piece(const struct manual *m, const struct side *side, jot_value x)
{
    x = trace_import(m->op->name, x);
    if (trace_is_error(x))
        return x;
    ir_id v = trace_strong(x);
    if (!side->spec)
        v = cut(m, &side->sharding, v);
    return trace_result(m->op->name, only_first(m, side->sharding.unreduced, v), false);
}

// ---- wholes

// Of rows, one of each lane, numbered as `step` says by positions in the mesh, those of the pieces of a value, the
// ones along its first dimension slowest: of each piece the first lane that has it.
static ir_id rows_of(const struct graph_sharding *s, const int64_t *step, ir_id rows)
{
    struct ir_builder *b = trace_builder();
    int64_t n = 1, starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    for (int d = 0; d < s->rank; d++)
        n *= graph_sharding_of(s, d);
    int32_t *lanes = arena_array(b->module->arena, int32_t, n + 1);
    bool is_straight = true;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        for (int d = s->rank; d-- > 0;)
            for (int k = s->n[d]; k-- > 0;) {
                struct graph_mesh_part p = s->parts[d][k];
                lanes[i] += (int32_t)(rest % p.size * p.step * step[p.axis]);
                rest /= p.size;
            }
        is_straight = is_straight && lanes[i] == i;
    }
    if (!is_straight)
        return graph_taken(rows, ir_const(b, ir_type_make(b->module, JOT_I32, 1, &n), lanes));
    struct ir_type t = ir_type_in(b, rows);
    memcpy(limits, ir_dims(b->module, t), sizeof *limits * t.rank);
    limits[0] = n;
    return ir_slice(b, rows, starts, limits, NULL);
}

// Those rows as the value.
static ir_id join(const struct graph_sharding *s, ir_id rows)
{
    struct ir_builder *b = trace_builder();
    int64_t apart[IR_MAX_RANK], axes[IR_MAX_RANK], whole[IR_MAX_RANK];
    if (rows == IR_NONE)
        return rows;
    if (2 * s->rank > IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "pieces of %d dimensions", s->rank);
    const int64_t *dims = ir_dims(b->module, ir_type_in(b, rows)) + 1;
    for (int d = 0; d < s->rank; d++) {
        apart[d] = graph_sharding_of(s, d);
        apart[s->rank + d] = dims[d];
        axes[2 * d] = d;
        axes[2 * d + 1] = s->rank + d;
        whole[d] = apart[d] * dims[d];
    }
    ir_id x = ir_reshape(b, rows, 2 * s->rank, apart);
    return ir_reshape(b, ir_transpose(b, x, axes), s->rank, whole);
}

// The axes that split a value, by their positions in the mesh.
static uint16_t split_by(const struct graph_sharding *s)
{
    uint16_t axes = 0;
    for (int d = 0; d < s->rank; d++)
        for (int i = 0; i < s->n[d]; i++)
            axes |= (uint16_t)(1u << s->parts[d][i].axis);
    return axes;
}

// The axes along which what devices have of a result is put together here: those that split it, unless the
// shard_map does that, and those along which its type does not say that they have the same of it.
static uint16_t axes_over(const struct manual *m, const struct side *side, ir_id v)
{
    uint16_t varies = ir_type_in(trace_builder(), v).varies, axes = 0;
    for (size_t k = 0; k < m->mesh.n; k++)
        if (!m->is_inner || m->axes >> k & 1)
            axes |= (uint16_t)((varies >> m->around[k] & 1u) << k);
    uint16_t split = split_by(&side->sharding);
    return side->spec ? axes & (uint16_t)~split : axes | split;
}

static ir_id put_together(const struct manual *m, const struct side *side, ir_id v)
{
    struct ir_builder *b = trace_builder();
    struct graph_sharding s = side->sharding;
    int64_t over[IR_MAX_AXES], step[IR_MAX_AXES], lanes = 1;
    int n = 0;
    for (size_t k = 0; k < m->mesh.n && v != IR_NONE; k++)
        if (s.unreduced >> k & 1)
            v = ir_psum(b, v, (uint16_t)(1u << m->around[k]));
    if (v == IR_NONE)
        return v;
    uint16_t axes = axes_over(m, side, v);
    for (size_t k = 0; k < m->mesh.n; k++)
        if (axes >> k & 1)
            over[n++] = m->around[k];
    for (size_t k = m->mesh.n; k-- > 0;) {
        step[k] = lanes;
        lanes *= axes >> k & 1 ? m->mesh.axes[k].size : 1;
    }
    if (side->spec)
        memset(s.n, 0, sizeof s.n);
    if (n)
        v = ir_collective(b, IR_all_gather, v, n, over);
    return n && v != IR_NONE ? join(&s, rows_of(&s, step, v)) : v;
}

static jot_value give_whole(const struct manual *m, const struct side *side, jot_value y)
{
    y = trace_import(m->op->name, y);
    return trace_is_error(y)
               ? y
               : trace_result(m->op->name, put_together(m, side, trace_strong(y)), false);
}

// ---- tracing

static void trace_body(const jot_value *in, jot_value *out, void *ctx)
{
    struct manual *m = ctx;
    uint32_t n_in = m->op->n_operands;
    jot_value *x = arena_array(m->frame->arena, jot_value, n_in + 1);
    if (!graph_mesh_around(&m->mesh, m->around))
        return;
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = take_piece(m, &m->in[i], in[i]);
    graph_region_step(m->frame, &m->op->regions[0], x, out);
    for (uint32_t i = 0; i < m->op->n_results; i++)
        out[i] = give_whole(m, &m->out[i], out[i]);
}

static const char **specs_of(const struct manual *m, uint32_t n, const struct side *sides)
{
    const char **specs = arena_array(m->frame->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        specs[i] = sides[i].spec ? sides[i].spec : "";
    return specs;
}

// As a shard_map.
static void map_body(struct manual *m, const jot_value *x, jot_value *y)
{
    int n_in = (int)m->op->n_operands, n_out = (int)m->op->n_results;
    const char *where = graph_where(m->frame, m->op);
    jot_mesh *mesh =
        jot_mesh_of_kind(jot_device_kind_of(jot_default_device()), m->mesh.n, m->mesh.axes);
    if (!mesh) {
        graph_fail(m->frame, m->op, "%s", jot_error_message());
        return;
    }
    jot_function f = jot_function_uniform("piece", where, trace_body, n_in, n_out, m);
    f = jot_shard_map_of(f, mesh, where, (size_t)n_in, specs_of(m, m->op->n_operands, m->in),
                         (size_t)n_out, specs_of(m, m->op->n_results, m->out));
    jot_apply_at(f, n_in, x, n_out, y, where);
    for (int i = 0; i < n_out; i++)
        graph_set_result(m->frame, m->op, (uint32_t)i, y[i]);
}

void graph_manual(struct graph_frame *frame, const struct mlir_op *op)
{
    struct arena *arena = frame->arena;
    struct manual *m = arena_new(arena, struct manual);
    uint32_t n_in = op->n_operands, n_out = op->n_results;
    const struct mlir_block *block = &op->regions[0];
    *m = (struct manual){.frame = frame, .op = op};
    jot_value *x = arena_array(arena, jot_value, n_in + 1),
              *y = arena_array(arena, jot_value, n_out + 1);
    if (block->n_args != n_in || block->ops[block->n_ops - 1]->n_operands != n_out) {
        graph_fail(frame, op, "%u operands and %u results, of a region of others", n_in, n_out);
        return;
    }
    if (!read_manual(m))
        return;
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = graph_operand(frame, op, i);
    if (!m->is_inner) {
        map_body(m, x, y);
        return;
    }
    trace_body(x, y, m);
    for (uint32_t i = 0; i < n_out; i++)
        graph_set_result(frame, op, i, y[i]);
}
