// SPDX-License-Identifier: Apache-2.0
// Parts of values at indices that are values, and values with such parts changed.
#include "ir/indexing.h"
#include "trace/emit.h"

#include "jot/indexing.h"

static const int64_t *dims_of(ir_id v)
{
    return ir_dims(trace_builder()->module, ir_type_in(trace_builder(), v));
}

static int rank_of(ir_id v) { return ir_type_in(trace_builder(), v).rank; }

// Integers as the graph has them: at least 32 bits, and 64 where the axes are long.
static bool read_indices(const char *name, jot_value v, int64_t extent, ir_id *out,
                         jot_value *out_error)
{
    struct ir_type t = trace_type(v);
    jot_dtype d = ir_dtype(t);
    if (!dtype_is_integer(d)) {
        *out_error = trace_fail(name, JOT_ERR_DTYPE, "an index of %s: it takes integers",
                                trace_type_text(v));
        return false;
    }
    if (trace_number_of(v) || jot_dtype_size(d) < 4)
        d = JOT_I32;
    if (extent > INT32_MAX && dtype_is_signed(d))
        d = JOT_I64;
    if (!trace_fits(name, v, d, out_error))
        return false;
    *out = trace_operand(v, d);
    return *out != IR_NONE;
}

// Indices counted from the end counted from the start.
static ir_id from_start(ir_id indices, int64_t extent)
{
    struct ir_builder *b = trace_builder();
    if (indices == IR_NONE || !dtype_is_signed(ir_dtype(ir_type_in(b, indices))))
        return indices;
    jot_dtype d = ir_dtype(ir_type_in(b, indices));
    ir_id moved = ir_add(b, indices, ir_scalar_int(b, d, extent));
    return ir_select(b, ir_lt(b, indices, ir_scalar_int(b, d, 0)), moved, indices);
}

static const enum ir_index_mode modes[] = {[JOT_INDEX_CLIP] = IR_MODE_CLIP,
                                           [JOT_INDEX_FILL] = IR_MODE_FILL,
                                           [JOT_INDEX_PROMISE] = IR_MODE_PROMISE,
                                           [JOT_INDEX_DROP] = IR_MODE_DROP,
                                           [JOT_INDEX_WRAP] = IR_MODE_PROMISE};

static const enum ir_op ops[] = {[JOT_SCATTER_SET] = IR_scatter,
                                 [JOT_SCATTER_ADD] = IR_scatter_add,
                                 [JOT_SCATTER_MUL] = IR_scatter_mul,
                                 [JOT_SCATTER_MIN] = IR_scatter_min,
                                 [JOT_SCATTER_MAX] = IR_scatter_max};

static bool is_mode(const char *name, enum jot_index_mode mode, enum jot_index_mode last,
                    jot_value *out_error)
{
    if ((unsigned)mode <= last)
        return true;
    if (mode == JOT_INDEX_WRAP)
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                "the mode is JOT_INDEX_WRAP, which is for rows, not windows: "
                                "take JOT_INDEX_CLIP, _FILL, _PROMISE or _DROP");
    else
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                "the mode is %d, which is none of JOT_INDEX_CLIP, _FILL, "
                                "_PROMISE, _DROP%s",
                                (int)mode, last == JOT_INDEX_WRAP ? ", _WRAP" : "");
    return false;
}

static bool is_kind(const char *name, enum jot_scatter_kind kind, jot_value *out_error)
{
    if ((unsigned)kind <= JOT_SCATTER_MAX)
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                            "the kind is %d, which is none of JOT_SCATTER_SET, _ADD, _MUL, "
                            "_MIN, _MAX",
                            (int)kind);
    return false;
}

// Indices that the mode has moved, and what is left for the gather or scatter to do with the others.
static ir_id moved_by_mode(ir_id indices, int64_t extent, enum jot_index_mode mode,
                           enum ir_index_mode *out_mode)
{
    *out_mode = modes[mode];
    if (mode == JOT_INDEX_WRAP && indices != IR_NONE && extent) {
        struct ir_builder *b = trace_builder();
        jot_dtype d = ir_dtype(ir_type_in(b, indices));
        indices = ir_rem(b, indices, ir_scalar_int(b, d, extent));
    }
    return from_start(indices, extent);
}

// One more axis, of extent 1, for the index of one window.
static ir_id with_last_axis(ir_id indices)
{
    int64_t dims[IR_MAX_RANK + 1];
    if (indices == IR_NONE)
        return IR_NONE;
    int rank = rank_of(indices);
    for (int i = 0; i < rank; i++)
        dims[i] = dims_of(indices)[i];
    dims[rank] = 1;
    return ir_reshape(trace_builder(), indices, rank + 1, dims);
}

// Whole rows of x along an axis, by an array of indices: the axis becomes those of the array.
struct rows {
    struct ir_gather g;
    int64_t offset[IR_MAX_RANK], sizes[IR_MAX_RANK], axis;
};

static void find_rows(struct rows *r, ir_id x, int64_t axis, int index_rank)
{
    int rank = rank_of(x);
    r->axis = axis;
    for (int i = 0, n = 0; i < rank; i++) {
        r->sizes[i] = i == axis ? 1 : dims_of(x)[i];
        if (i != axis)
            r->offset[n++] = i < axis ? i : i - 1 + index_rank;
    }
    r->g = (struct ir_gather){.n_offset = rank - 1,
                              .offset_dims = r->offset,
                              .n_collapsed = 1,
                              .collapsed_dims = &r->axis,
                              .n_map = 1,
                              .index_map = &r->axis,
                              .sizes = r->sizes};
}

// ---- Taking

// x, its axis and the indices along it, and room for a result of the rank.
static bool read_rows(const char *name, jot_value x, jot_value index, int axis,
                      enum jot_index_mode mode, struct rows *r, ir_id *out_indices,
                      jot_value *out_error)
{
    int64_t at;
    if (!is_mode(name, mode, JOT_INDEX_WRAP, out_error) ||
        !trace_axis(name, x, axis, &at, out_error))
        return false;
    ir_id id = trace_kept(x);
    int64_t extent = dims_of(id)[at];
    if (!read_indices(name, index, extent, out_indices, out_error))
        return false;
    int index_rank = rank_of(*out_indices), rank = rank_of(id) - 1 + index_rank;
    if (rank > IR_MAX_RANK || index_rank == IR_MAX_RANK) {
        *out_error = trace_fail(name, JOT_ERR_SHAPE, "a result of %d axes: at most %d", rank,
                                IR_MAX_RANK);
        return false;
    }
    if (extent == 0 && ir_count(trace_builder()->module, trace_type(index))) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                "indices along axis %lld of %s, which has no elements",
                                (long long)at, trace_type_text(x));
        return false;
    }
    find_rows(r, id, at, index_rank);
    *out_indices = with_last_axis(moved_by_mode(*out_indices, extent, mode, &r->g.mode));
    return true;
}

// The type of a result that has no elements because there are no indices.
static ir_id no_rows(ir_id x, const struct rows *r, ir_id indices)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_builder *b = trace_builder();
    int n = rank_of(indices) - 1, rank = rank_of(x) - 1 + n;
    for (int i = 0; i < rank; i++)
        dims[i] = i < r->axis       ? dims_of(x)[i]
                  : i < r->axis + n ? dims_of(indices)[i - r->axis]
                                    : dims_of(x)[i - n + 1];
    return ir_zeros(b, ir_type_make(b->module, ir_dtype(ir_type_in(b, x)), rank, dims));
}

static jot_value take_values(const char *name, jot_value x, jot_value index, int axis,
                             enum jot_index_mode mode)
{
    jot_value v[] = {x, index}, error;
    struct rows r;
    ir_id indices;
    if (!trace_ready(name, 2, v, &error) ||
        !read_rows(name, v[0], v[1], axis, mode, &r, &indices, &error))
        return error;
    ir_id id = trace_kept(v[0]);
    if (dims_of(id)[r.axis] == 0)
        return trace_like(name, v[0], no_rows(id, &r, indices));
    return trace_like(name, v[0], ir_gather(trace_builder(), id, indices, &r.g));
}

// Whether an index that is a C number is inside of x.
static bool is_inside(const char *name, jot_value x, jot_value index, int axis,
                      jot_value *out_error)
{
    int64_t at, i;
    const struct trace_number *n = trace_number_of(index);
    return !n || n->kind != 'i' ||
           (trace_axis(name, x, axis, &at, out_error) &&
            trace_index(name, x, at, n->i, &i, out_error));
}

static jot_value take_checked(jot_value x, jot_value index, int axis)
{
    const char *name = "jot_take";
    jot_value v[] = {x, index}, error;
    if (!trace_ready(name, 2, v, &error) || !is_inside(name, v[0], v[1], axis, &error))
        return error;
    return take_values(name, v[0], v[1], axis, JOT_INDEX_FILL);
}

jot_value jot_take_values(jot_value x, jot_value index, int axis)
{
    TRACE_RETURN(take_checked(x, index, axis));
}

jot_value jot_take_mode(jot_value x, jot_value index, int axis, enum jot_index_mode mode)
{
    TRACE_RETURN(take_values("jot_take_mode", x, index, axis, mode));
}

// Repeats axes of extent 1 as far as the other value has more, but for one axis.
static ir_id broadcast_but(ir_id x, ir_id like, int64_t axis)
{
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK];
    int rank = rank_of(x);
    for (int i = 0; i < rank; i++) {
        axes[i] = i;
        dims[i] = i != axis && dims_of(x)[i] == 1 ? dims_of(like)[i] : dims_of(x)[i];
    }
    return ir_broadcast_in_dim(trace_builder(), x, rank, dims, axes);
}

static jot_value take_along_axis(const char *name, jot_value x, jot_value index, int axis,
                                 enum jot_index_mode mode)
{
    jot_value v[] = {x, index}, error;
    int64_t at, batch[IR_MAX_RANK], sizes[IR_MAX_RANK];
    ir_id indices;
    if (!trace_ready(name, 2, v, &error) || !is_mode(name, mode, JOT_INDEX_WRAP, &error) ||
        !trace_axis(name, v[0], axis, &at, &error))
        return error;
    ir_id id = trace_kept(v[0]);
    enum ir_index_mode left;
    int rank = rank_of(id), n = 0;
    if (!read_indices(name, v[1], dims_of(id)[at], &indices, &error))
        return error;
    bool fits = rank_of(indices) == rank;
    for (int i = 0; i < rank && fits; i++) {
        int64_t a = dims_of(id)[i], b = dims_of(indices)[i];
        fits = i == at || a == b || a == 1 || b == 1;
    }
    if (!fits)
        return trace_fail(name, JOT_ERR_SHAPE,
                          "%s and the index %s differ in more than axis %lld",
                          trace_type_text(v[0]), trace_type_text(v[1]), (long long)at);
    if (rank == IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "%d axes: at most %d", rank, IR_MAX_RANK - 1);
    if (dims_of(id)[at] == 0 && dims_of(indices)[at])
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "indices along axis %lld of %s, which has no elements", (long long)at,
                          trace_type_text(v[0]));
    ir_id wide = broadcast_but(id, indices, at);
    indices = broadcast_but(moved_by_mode(indices, dims_of(id)[at], mode, &left), id, at);
    for (int i = 0; i < rank; i++) {
        sizes[i] = 1;
        if (i != at)
            batch[n++] = i;
    }
    if (dims_of(id)[at] == 0)
        return trace_like(name, v[0], broadcast_but(id, indices, at));
    struct ir_gather g = {.n_collapsed = 1,
                          .collapsed_dims = &at,
                          .n_batch = n,
                          .operand_batch = batch,
                          .index_batch = batch,
                          .n_map = 1,
                          .index_map = &at,
                          .sizes = sizes,
                          .mode = left};
    return trace_like(name, v[0],
                      ir_gather(trace_builder(), wide, with_last_axis(indices), &g));
}

jot_value jot_take_along_axis(jot_value x, jot_value index, int axis)
{
    TRACE_RETURN(take_along_axis("jot_take_along_axis", x, index, axis, JOT_INDEX_FILL));
}

jot_value jot_take_along_axis_mode(jot_value x, jot_value index, int axis,
                                   enum jot_index_mode mode)
{
    TRACE_RETURN(take_along_axis("jot_take_along_axis_mode", x, index, axis, mode));
}

// ---- Slices

// One start for each axis of x: v is an array of them, or one number when x has one axis.
static bool read_starts(const char *name, jot_value x, jot_value v, ir_id *starts,
                        jot_value *out_error)
{
    struct ir_builder *b = trace_builder();
    ir_id id = trace_kept(x), all;
    int rank = rank_of(id);
    int64_t longest = 0;
    for (int i = 0; i < rank; i++)
        longest = dims_of(id)[i] > longest ? dims_of(id)[i] : longest;
    if (!read_indices(name, v, longest, &all, out_error))
        return false;
    int have = rank_of(all);
    if (have > 1 || (have == 0 ? rank != 1 : dims_of(all)[0] != rank)) {
        *out_error = trace_fail(name, JOT_ERR_SHAPE,
                                "starts %s of a slice of %s: it takes one for each axis",
                                trace_type_text(v), trace_type_text(x));
        return false;
    }
    for (int i = 0; i < rank; i++) {
        int64_t start = i, limit = i + 1;
        starts[i] = have ? ir_reshape(b, ir_slice(b, all, &start, &limit, NULL), 0, NULL) : all;
        starts[i] = from_start(starts[i], dims_of(id)[i]);
    }
    return true;
}

static jot_value dynamic_slice(jot_value x, jot_value starts, const int64_t *sizes)
{
    const char *name = "jot_dynamic_slice";
    jot_value v[] = {x, starts}, error;
    ir_id ids[IR_MAX_RANK];
    int64_t dims[IR_MAX_RANK];
    int rank;
    if (!trace_ready(name, 2, v, &error) || !trace_sizes(name, sizes, 0, &rank, dims, &error) ||
        !read_starts(name, v[0], v[1], ids, &error))
        return error;
    ir_id id = trace_kept(v[0]);
    if (rank != rank_of(id))
        return trace_fail(name, JOT_ERR_SHAPE, "%d sizes of a slice of %s: it takes %d", rank,
                          trace_type_text(v[0]), rank_of(id));
    return trace_like(name, v[0], ir_dynamic_slice(trace_builder(), id, ids, dims));
}

jot_value jot_dynamic_slice_dims(jot_value x, jot_value starts, const int64_t *sizes)
{
    TRACE_RETURN(dynamic_slice(x, starts, sizes));
}

// What is put into x, of the type of x; false with an error when that would lose something.
static bool read_values(const char *name, jot_value x, jot_value y, ir_id *out,
                        jot_value *out_error)
{
    struct trace_promoted p;
    jot_dtype d = ir_dtype(trace_kept_type(x));
    if (!trace_number_of(y)) {
        if (!trace_promote(name, "any", 2, (jot_value[]){x, y}, &p, out_error))
            return false;
        if (p.dtype != d) {
            *out_error = trace_fail(name, JOT_ERR_DTYPE, "%s into %s: convert it",
                                    trace_type_text(y), trace_type_text(x));
            return false;
        }
    }
    if (!trace_fits(name, y, d, out_error))
        return false;
    *out = trace_operand(y, d);
    return *out != IR_NONE;
}

static jot_value dynamic_update_slice(jot_value x, jot_value y, jot_value starts)
{
    const char *name = "jot_dynamic_update_slice";
    jot_value v[] = {x, y, starts}, error;
    ir_id ids[IR_MAX_RANK], update;
    if (!trace_ready(name, 3, v, &error) || !read_values(name, v[0], v[1], &update, &error) ||
        !read_starts(name, v[0], v[2], ids, &error))
        return error;
    return trace_like(name, v[0],
                      ir_dynamic_update_slice(trace_builder(), trace_kept(v[0]), update, ids));
}

jot_value jot_dynamic_update_slice(jot_value x, jot_value y, jot_value starts)
{
    TRACE_RETURN(dynamic_update_slice(x, y, starts));
}

// ---- Updates

// y broadcast to the shape of the rows of x at the indices.
static bool spread(const char *name, jot_value y, ir_id rows, ir_id *id, jot_value *out_error)
{
    int64_t axes[IR_MAX_RANK];
    struct ir_builder *b = trace_builder();
    int rank = rank_of(rows), have = rank_of(*id);
    bool fits = have <= rank;
    for (int i = 0; i < have && fits; i++) {
        axes[i] = rank - have + i;
        fits = dims_of(*id)[i] == 1 || dims_of(*id)[i] == dims_of(rows)[axes[i]];
    }
    if (!fits) {
        *out_error = trace_fail(
            name, JOT_ERR_SHAPE, "%s does not broadcast to %s, the shape of the indices",
            trace_type_text(y), ir_type_text(b->module, ir_type_in(b, rows)));
        return false;
    }
    *id = ir_broadcast_in_dim(b, *id, rank, dims_of(rows), axes);
    return true;
}

static jot_value at_update(const char *name, enum jot_scatter_kind kind, jot_value x,
                           jot_value index, jot_value y, int axis, enum jot_index_mode mode)
{
    jot_value v[] = {x, index, y}, error;
    struct rows r;
    ir_id indices, values;
    if (!trace_ready(name, 3, v, &error) || !is_kind(name, kind, &error) ||
        !read_rows(name, v[0], v[1], axis, mode, &r, &indices, &error) ||
        !read_values(name, v[0], v[2], &values, &error))
        return error;
    ir_id id = trace_kept(v[0]), rows = no_rows(id, &r, indices);
    if (rows == IR_NONE || !spread(name, v[2], rows, &values, &error))
        return rows == IR_NONE ? trace_result(name, rows, false) : error;
    if (r.g.mode == IR_MODE_FILL)
        r.g.mode = IR_MODE_DROP;
    return trace_like(name, v[0],
                      ir_scatter(trace_builder(), ops[kind], id, indices, values, &r.g));
}

static jot_value at_checked(const char *name, enum jot_scatter_kind kind, jot_value x,
                            jot_value index, jot_value y, int axis)
{
    jot_value v[] = {x, index}, error;
    if (!trace_ready(name, 2, v, &error) || !is_inside(name, v[0], v[1], axis, &error))
        return error;
    return at_update(name, kind, v[0], v[1], y, axis, JOT_INDEX_DROP);
}

#define AT(word, kind)                                                                         \
    jot_value jot_at_##word##_axis(jot_value x, jot_value index, jot_value y, int axis)        \
    {                                                                                          \
        TRACE_RETURN(at_checked("jot_at_" #word, kind, x, index, y, axis));                    \
    }
AT(set, JOT_SCATTER_SET)
AT(add, JOT_SCATTER_ADD)
AT(mul, JOT_SCATTER_MUL)
AT(min, JOT_SCATTER_MIN)
AT(max, JOT_SCATTER_MAX)

jot_value jot_at_mode(enum jot_scatter_kind kind, jot_value x, jot_value index, jot_value y,
                      int axis, enum jot_index_mode mode)
{
    TRACE_RETURN(at_update("jot_at_mode", kind, x, index, y, axis, mode));
}

// ---- The general forms

static int read_list(const int *list, int64_t *out)
{
    int n = 0;
    for (; list && list[n] != JOT_END && n < IR_MAX_RANK; n++)
        out[n] = list[n];
    return n;
}

struct lists {
    int64_t offset[IR_MAX_RANK], collapsed[IR_MAX_RANK], operand[IR_MAX_RANK];
    int64_t index[IR_MAX_RANK], map[IR_MAX_RANK];
};

static bool read_dims(const char *name, const struct jot_index_dims *dims, struct lists *l,
                      struct ir_gather *out, jot_value *out_error)
{
    if (!dims) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                "dims is NULL: it says which axes the indices are for");
        return false;
    }
    if (!is_mode(name, dims->mode, JOT_INDEX_DROP, out_error))
        return false;
    *out = (struct ir_gather){.n_offset = read_list(dims->offset, l->offset),
                              .offset_dims = l->offset,
                              .n_collapsed = read_list(dims->collapsed, l->collapsed),
                              .collapsed_dims = l->collapsed,
                              .n_batch = read_list(dims->operand_batch, l->operand),
                              .operand_batch = l->operand,
                              .index_batch = l->index,
                              .n_map = read_list(dims->map, l->map),
                              .index_map = l->map,
                              .mode = modes[dims->mode],
                              .unique = dims->unique};
    if (read_list(dims->index_batch, l->index) == out->n_batch)
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                            "operand_batch has %d axes, index_batch has not", out->n_batch);
    return false;
}

static jot_value gather(jot_value x, jot_value indices, const struct jot_index_dims *dims,
                        const int64_t *sizes)
{
    const char *name = "jot_gather";
    jot_value v[] = {x, indices}, error;
    struct lists l;
    struct ir_gather g;
    ir_id starts;
    int64_t window[IR_MAX_RANK];
    int rank;
    if (!trace_ready(name, 2, v, &error) || !read_dims(name, dims, &l, &g, &error) ||
        !trace_sizes(name, sizes, 0, &rank, window, &error) ||
        !read_indices(name, v[1], 0, &starts, &error))
        return error;
    ir_id id = trace_kept(v[0]);
    if (rank != rank_of(id))
        return trace_fail(name, JOT_ERR_SHAPE, "%d sizes of a window of %s: it takes %d", rank,
                          trace_type_text(v[0]), rank_of(id));
    g.sizes = window;
    return trace_like(name, v[0], ir_gather(trace_builder(), id, starts, &g));
}

jot_value jot_gather(jot_value x, jot_value indices, const struct jot_index_dims *dims,
                     const int64_t *sizes)
{
    TRACE_RETURN(gather(x, indices, dims, sizes));
}

static jot_value scatter(enum jot_scatter_kind kind, jot_value x, jot_value indices,
                         jot_value updates, const struct jot_index_dims *dims)
{
    const char *name = "jot_scatter";
    jot_value v[] = {x, indices, updates}, error;
    struct lists l;
    struct ir_gather g;
    ir_id starts, values;
    if (!trace_ready(name, 3, v, &error) || !is_kind(name, kind, &error) ||
        !read_dims(name, dims, &l, &g, &error) ||
        !read_indices(name, v[1], 0, &starts, &error) ||
        !read_values(name, v[0], v[2], &values, &error))
        return error;
    return trace_like(
        name, v[0],
        ir_scatter(trace_builder(), ops[kind], trace_kept(v[0]), starts, values, &g));
}

jot_value jot_scatter(enum jot_scatter_kind kind, jot_value x, jot_value indices,
                      jot_value updates, const struct jot_index_dims *dims)
{
    TRACE_RETURN(scatter(kind, x, indices, updates, dims));
}
