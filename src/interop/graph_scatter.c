// SPDX-License-Identifier: Apache-2.0
// scatter and select_and_scatter.  A body that is one operation is a scatter of the graph; with any
// other the windows are read, changed and written back: all at once when no element is updated
// twice, and else one after the other.
#include "interop/graph_fold.h"

#include "base/dtype.h"
#include "ir/indexing.h"

#include "jot/control.h"
#include "jot/shapes.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

struct scatter {
    struct graph_op *g;
    struct graph_frame *frame;
    const struct mlir_op *op;
    const struct mlir_block *body;
    int n; // operands, and updates
    struct ir_gather d;
    ir_id indices;
};

static const int64_t *list(const struct mlir_op *op, const char *name, int *out_n)
{
    size_t n;
    const int64_t *numbers = mlir_ints(op, name, &n);
    *out_n = (int)n;
    return numbers;
}

static void read_dims(struct scatter *s)
{
    int n_batch;
    s->d.offset_dims = list(s->op, "update_window_dims", &s->d.n_offset);
    s->d.collapsed_dims = list(s->op, "inserted_window_dims", &s->d.n_collapsed);
    s->d.operand_batch = list(s->op, "input_batching_dims", &n_batch);
    s->d.index_map = list(s->op, "scatter_dims_to_operand_dims", &s->d.n_map);
    s->d.mode = IR_MODE_DROP;
    s->d.unique = mlir_int(s->op, "unique_indices", 0) != 0;
    s->indices = graph_indices(s->g, s->g->in[s->n], "scatter_indices_batching_dims", &s->d);
    if (n_batch != s->d.n_batch)
        graph_refuse(s->g, "%d and %d batching dimensions", n_batch, s->d.n_batch);
}

// ---- bodies that are one operation ----

static enum ir_op scatter_op(const struct mlir_block *body, jot_dtype d)
{
    int arg = -1;
    enum mlir_code code = graph_body(body, &arg);
    bool is_bool = d == JOT_BOOL, is_complex = dtype_is_complex(d);
    switch ((int)code) {
    case HLO_(return):
        return arg == 1 ? IR_scatter : IR_OP_COUNT;
    case HLO_(add):
        return is_bool ? IR_scatter_max : IR_scatter_add;
    case HLO_(multiply):
        return is_bool ? IR_scatter_min : IR_scatter_mul;
    case HLO_(or):
        return is_bool ? IR_scatter_max : IR_OP_COUNT;
    case HLO_(and):
        return is_bool ? IR_scatter_min : IR_OP_COUNT;
    case HLO_(maximum):
        return is_complex ? IR_OP_COUNT : IR_scatter_max;
    case HLO_(minimum):
        return is_complex ? IR_OP_COUNT : IR_scatter_min;
    default:
        return IR_OP_COUNT;
    }
}

// Bools are combined as bytes.
static ir_id scattered(struct scatter *s, enum ir_op op)
{
    struct ir_builder *b = s->g->b;
    ir_id x = s->g->in[0], updates = s->g->in[s->n + 1];
    bool is_bool = ir_dtype(ir_type_in(b, x)) == JOT_BOOL && op != IR_scatter;
    if (is_bool) {
        x = ir_convert(b, x, JOT_U8);
        updates = ir_convert(b, updates, JOT_U8);
    }
    ir_id y = ir_scatter(b, op, x, s->indices, updates, &s->d);
    return is_bool ? ir_convert(b, y, JOT_BOOL) : y;
}

// ---- any body ----

static struct ir_type type_of(const struct scatter *s, ir_id x)
{
    return ir_type_in(s->g->b, x);
}

static const int64_t *dims_of(const struct scatter *s, ir_id x)
{
    return ir_dims(s->g->b->module, type_of(s, x));
}

static int64_t *more(struct scatter *s, const int64_t *list, int n, const int64_t *add,
                     int n_add)
{
    int64_t *all = arena_array(s->frame->arena, int64_t, n + n_add + 1);
    if (n)
        memcpy(all, list, sizeof *all * (size_t)n);
    if (n_add)
        memcpy(all + n, add, sizeof *all * (size_t)n_add);
    return all;
}

static void sort_numbers(int n, int64_t *x)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && x[k - 1] > x[k]; k--) {
            int64_t t = x[k];
            x[k] = x[k - 1];
            x[k - 1] = t;
        }
}

// Batch axes become components of the indices, which count along them.
static void spell_out_batch(struct scatter *s)
{
    struct ir_builder *b = s->g->b;
    struct ir_gather *d = &s->d;
    if (!d->n_batch)
        return;
    struct ir_type type = type_of(s, s->indices);
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, dims_of(s, s->indices), sizeof *dims * type.rank);
    dims[type.rank - 1] = 1;
    struct ir_type one = ir_type_make(b->module, ir_dtype(type), type.rank, dims);
    ir_id *parts = arena_array(s->frame->arena, ir_id, d->n_batch + 1);
    parts[0] = s->indices;
    for (int i = 0; i < d->n_batch; i++)
        parts[i + 1] = ir_iota(b, one, (int)d->index_batch[i]);
    s->indices = ir_concatenate(b, d->n_batch + 1, parts, type.rank - 1);
    d->index_map = more(s, d->index_map, d->n_map, d->operand_batch, d->n_batch);
    d->n_map += d->n_batch;
    int64_t *collapsed =
        more(s, d->collapsed_dims, d->n_collapsed, d->operand_batch, d->n_batch);
    d->n_collapsed += d->n_batch;
    sort_numbers(d->n_collapsed, collapsed);
    d->collapsed_dims = collapsed;
    d->n_batch = 0;
}

// Updates with the axes of the indices in one, first, and the window behind; indices as rows.
static void make_rows(struct scatter *s, ir_id *updates)
{
    struct ir_builder *b = s->g->b;
    int rank = type_of(s, updates[0]).rank, at = 0, n_window = s->d.n_offset;
    int64_t axes[IR_MAX_RANK], dims[IR_MAX_RANK + 1];
    for (int i = 0; i < rank; i++) {
        bool is_window = false;
        for (int k = 0; k < n_window; k++)
            is_window = is_window || s->d.offset_dims[k] == i;
        if (!is_window)
            axes[at++] = i;
    }
    dims[0] = 1;
    for (int i = 0; i < at; i++)
        dims[0] *= dims_of(s, updates[0])[axes[i]];
    int64_t *offsets = arena_array(s->frame->arena, int64_t, n_window + 1);
    for (int k = 0; k < n_window; k++) {
        axes[at + k] = s->d.offset_dims[k];
        dims[1 + k] = dims_of(s, updates[0])[axes[at + k]];
        offsets[k] = 1 + k;
    }
    for (int i = 0; i < s->n; i++)
        updates[i] = ir_reshape(b, ir_transpose(b, updates[i], axes), n_window + 1, dims);
    struct ir_type type = type_of(s, s->indices);
    int64_t rows[] = {dims[0], dims_of(s, s->indices)[type.rank - 1]};
    s->indices = ir_reshape(b, s->indices, 2, rows);
    s->d.offset_dims = offsets;
}

// Extents of a window by axis of the operand.
static void read_sizes(struct scatter *s, ir_id x, ir_id updates)
{
    int rank = type_of(s, x).rank;
    int64_t *sizes = arena_array(s->frame->arena, int64_t, rank + 1);
    for (int i = 0, at = 0; i < rank; i++) {
        bool is_collapsed = false;
        for (int k = 0; k < s->d.n_collapsed; k++)
            is_collapsed = is_collapsed || s->d.collapsed_dims[k] == i;
        sizes[i] = is_collapsed ? 1 : dims_of(s, updates)[s->d.offset_dims[at++]];
    }
    s->d.sizes = sizes;
}

static ir_id id_of(jot_value v) { return trace_strong(trace_import("stablehlo.scatter", v)); }

// x with the windows at the indices changed by the updates.
static void change(const struct scatter *s, ir_id indices, const jot_value *updates,
                   jot_value *x)
{
    jot_value *args = arena_array(s->frame->arena, jot_value, 3 * s->n + 1),
              *out = args + 2 * s->n;
    struct ir_builder *b = trace_builder();
    struct ir_gather from = s->d;
    from.mode = IR_MODE_CLIP;
    for (int i = 0; i < s->n; i++) {
        args[i] = trace_result(s->op->name, ir_gather(b, id_of(x[i]), indices, &from), false);
        args[s->n + i] = updates[i];
    }
    int rank = trace_type(trace_import(s->op->name, updates[0])).rank;
    graph_elements(s->frame, s->op, s->body, rank, args, out);
    for (int i = 0; i < s->n; i++) {
        ir_id y = id_of(out[i]);
        x[i] = trace_result(s->op->name,
                            ir_scatter(b, IR_scatter, id_of(x[i]), indices, y, &s->d), false);
    }
}

struct rows {
    const struct scatter *s;
    jot_value indices;
    jot_value *updates;
};

static jot_value row_of(const struct scatter *s, jot_value x, jot_value number)
{
    struct ir_builder *b = trace_builder();
    ir_id id = id_of(x), starts[IR_MAX_RANK + 1];
    struct ir_type type = ir_type_in(b, id);
    int64_t sizes[IR_MAX_RANK + 1];
    memcpy(sizes, ir_dims(b->module, type), sizeof *sizes * type.rank);
    sizes[0] = 1;
    starts[0] = id_of(number);
    for (int i = 1; i < type.rank; i++)
        starts[i] = ir_scalar_int(b, JOT_I32, 0);
    return trace_result(s->op->name, ir_dynamic_slice(b, id, starts, sizes), false);
}

static void change_row(jot_value number, jot_value *x, void *ctx)
{
    const struct rows *r = ctx;
    const struct scatter *s = r->s;
    number = jot_convert(number, JOT_I32);
    jot_value *updates = arena_array(s->frame->arena, jot_value, s->n + 1);
    for (int i = 0; i < s->n; i++)
        updates[i] = row_of(s, r->updates[i], number);
    change(s, id_of(row_of(s, r->indices, number)), updates, x);
}

static void scatter_by_body(struct scatter *s)
{
    struct graph_op *g = s->g;
    ir_id *ids = arena_array(s->frame->arena, ir_id, s->n + 1);
    jot_value *updates = arena_array(s->frame->arena, jot_value, 2 * s->n + 1),
              *x = updates + s->n;
    memcpy(ids, g->in + s->n + 1, sizeof *ids * (size_t)s->n);
    spell_out_batch(s);
    make_rows(s, ids);
    read_sizes(s, g->in[0], ids[0]);
    if (g->b->status != JOT_OK)
        return;
    for (int i = 0; i < s->n; i++) {
        updates[i] = trace_value(ids[i], false);
        x[i] = trace_value(g->in[i], false);
    }
    int64_t n = dims_of(s, s->indices)[0];
    struct rows r = {s, trace_value(s->indices, false), updates};
    if (s->d.unique || n == 1)
        change(s, s->indices, updates, x);
    else
        jot_for_at(change_row, &r, jot_from_int(0), jot_from_int(n), (size_t)s->n, x,
                   graph_where(s->frame, s->op));
    for (int i = 0; i < s->n; i++)
        graph_take(g, i, x[i]);
}

static void scatter(struct scatter *s)
{
    struct graph_op *g = s->g;
    jot_dtype d = ir_dtype(type_of(s, g->in[0]));
    enum ir_op op = s->n == 1 ? scatter_op(s->body, d) : IR_OP_COUNT;
    if (op != IR_OP_COUNT)
        g->out[0] = scattered(s, op);
    else if (ir_count(g->b->module, type_of(s, g->in[s->n + 1])) == 0)
        memcpy(g->out, g->in, sizeof *g->out * (size_t)s->n);
    else
        scatter_by_body(s);
}

jot_value graph_scatter_elements(struct graph_frame *frame, const struct mlir_op *op,
                                 const struct mlir_block *body, ir_id x, ir_id indices,
                                 ir_id updates)
{
    static const int64_t first[1];
    ir_id in[] = {x, indices, updates}, out = IR_NONE;
    struct graph_op g = {.frame = frame, .op = op, .b = trace_builder(), .in = in, .out = &out};
    struct scatter s = {
        .g = &g, .frame = frame, .op = op, .body = body, .n = 1, .indices = indices};
    s.d = (struct ir_gather){.n_collapsed = 1,
                             .collapsed_dims = first,
                             .n_map = 1,
                             .index_map = first,
                             .mode = IR_MODE_DROP};
    scatter(&s);
    return trace_result(op->name, out, false);
}

static void convert_scatter(struct graph_op *g)
{
    struct scatter s = {.g = g,
                        .frame = g->frame,
                        .op = g->op,
                        .body = &g->op->regions[0],
                        .n = ((int)g->op->n_operands - 1) / 2};
    if (g->op->n_operands < 3 || g->op->n_operands % 2 == 0) {
        graph_refuse(g, "%u operands", g->op->n_operands);
        return;
    }
    read_dims(&s);
    if (g->b->status == JOT_OK)
        scatter(&s);
}

graph_convert *graph_scatter_find(enum mlir_code code)
{
    return code == HLO_(scatter) ? convert_scatter : NULL;
}
