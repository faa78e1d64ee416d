// SPDX-License-Identifier: Apache-2.0
// Collectives (jot/collective.h) as those of the graph, which have their rows along axis 0.
#include "jot/collective.h"

#include "ir/collective.h"
#include "ir/indexing.h"
#include "trace/emit.h"
#include "trace/named.h"

// The axes that a call lists.
struct over {
    int n;
    int64_t axes[IR_MAX_AXES], lanes;
};

static bool read_axes(const char *op, const char *axes, struct over *out, jot_value *out_error)
{
    if (!trace_ready(op, 0, NULL, out_error) ||
        trace_is_missing(op, "axes", 1, axes, out_error) ||
        !trace_find_axes(op, axes, &out->n, out->axes, out_error))
        return false;
    out->lanes = 1;
    for (int i = 0; i < out->n; i++)
        out->lanes *= ir_axis_size(trace_top()->module, out->axes[i]);
    return true;
}

static bool read(const char *op, jot_value *x, const char *axes, struct over *out,
                 jot_value *out_error)
{
    return trace_ready(op, 1, x, out_error) && read_axes(op, axes, out, out_error);
}

static ir_id collective(enum ir_op op, ir_id x, const struct over *o)
{
    return ir_collective(trace_builder(), op, x, o->n, o->axes);
}

static jot_dtype seen_dtype(jot_value x) { return (jot_dtype)trace_slot_of(x)->dtype; }

// ---------------------------------------------------------------------------------------
// Folds

static jot_value psum(const char *name, jot_value x, const char *axes)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    ir_id in = trace_operand(x, trace_sum_dtype(seen_dtype(x)));
    return trace_result(name, collective(IR_psum, in, &o), false);
}

jot_value jot_psum(jot_value x, const char *axes) { TRACE_RETURN(psum("jot_psum", x, axes)); }

static jot_value pmean(const char *name, jot_value x, const char *axes)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    struct ir_builder *b = trace_builder();
    jot_dtype result = dtype_to_inexact(seen_dtype(x)), wide = dtype_compute(result);
    ir_id y = collective(IR_psum, trace_operand(x, wide), &o);
    y = y == IR_NONE ? y : ir_div(b, y, ir_scalar(b, wide, (double)o.lanes));
    return trace_result(name, y == IR_NONE ? y : ir_convert(b, y, result), false);
}

jot_value jot_pmean(jot_value x, const char *axes)
{
    TRACE_RETURN(pmean("jot_pmean", x, axes));
}

// Of bools as numbers.
static jot_value extremum(enum ir_op op, const char *name, jot_value x, const char *axes)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    jot_dtype d = seen_dtype(x);
    ir_id y = collective(op, trace_operand(x, d == JOT_BOOL ? JOT_I32 : d), &o);
    if (d == JOT_BOOL && y != IR_NONE)
        y = ir_convert(trace_builder(), y, d);
    return trace_result(name, y, false);
}

jot_value jot_pmax(jot_value x, const char *axes)
{
    TRACE_RETURN(extremum(IR_pmax, "jot_pmax", x, axes));
}

jot_value jot_pmin(jot_value x, const char *axes)
{
    TRACE_RETURN(extremum(IR_pmin, "jot_pmin", x, axes));
}

void jot_psum_tree(size_t n, jot_value *x, const char *axes)
{
    if (trace_lacks("jot_psum_tree", "x", n, x, n, x, NULL))
        return;
    for (size_t i = 0; i < n; i++)
        x[i] = jot_psum(x[i], axes);
}

void jot_pmean_tree(size_t n, jot_value *x, const char *axes)
{
    if (trace_lacks("jot_pmean_tree", "x", n, x, n, x, NULL))
        return;
    for (size_t i = 0; i < n; i++)
        x[i] = jot_pmean(x[i], axes);
}

// ---------------------------------------------------------------------------------------
// Rows

// Axis `axis` of a value of that rank.
static bool find_axis(const char *name, int rank, int axis, int *out, jot_value *out_error)
{
    *out = axis < 0 ? axis + rank : axis;
    if (*out >= 0 && *out < rank)
        return true;
    *out_error = rank
                     ? trace_fail(name, JOT_ERR_SHAPE, "axis %d: axes are %d to %d", axis,
                                  -rank, rank - 1)
                     : trace_fail(name, JOT_ERR_SHAPE, "axis %d of a value without axes", axis);
    return false;
}

// x with axis `from` as axis `to`.
static ir_id move_axis(ir_id x, int from, int to)
{
    int64_t axes[IR_MAX_RANK];
    struct ir_builder *b = trace_builder();
    if (x == IR_NONE || from == to)
        return x;
    int rank = ir_type_in(b, x).rank;
    for (int i = 0, next = 0; i < rank; i++) {
        next += next == from;
        axes[i] = i == to ? from : next++;
    }
    return ir_transpose(b, x, axes);
}

// x with axes at and at + 1 as one.
static ir_id merge_axes(ir_id x, int at)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_builder *b = trace_builder();
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(b, x);
    const int64_t *from = ir_dims(b->module, t);
    for (int i = 0; i < t.rank - 1; i++)
        dims[i] = i < at ? from[i] : i == at ? from[at] * from[at + 1] : from[i + 1];
    return ir_reshape(b, x, t.rank - 1, dims);
}

// x with what goes to each lane as a row: index k along the axis, or part k of it.
static bool rows_of(const char *name, jot_value x, ir_id id, const struct over *o, int axis,
                    bool tiled, ir_id *out, jot_value *out_error)
{
    struct ir_builder *b = trace_builder();
    struct ir_type t = ir_type_in(b, id);
    int64_t dims[IR_MAX_RANK + 1], extent = ir_dims(b->module, t)[axis];
    if (tiled ? o->lanes == 0 || extent % o->lanes : extent != o->lanes) {
        *out_error = trace_fail(
            name, JOT_ERR_SHAPE, "axis %d of %s for %lld lanes: its extent must be %s", axis,
            trace_type_text(x), (long long)o->lanes, tiled ? "a multiple of that" : "as many");
        return false;
    }
    if (tiled && t.rank == IR_MAX_RANK) {
        *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s has %d axes already",
                                trace_type_text(x), IR_MAX_RANK);
        return false;
    }
    if (tiled) {
        for (int i = 0; i < t.rank; i++)
            dims[i + (i > axis)] = ir_dims(b->module, t)[i];
        dims[axis] = o->lanes;
        dims[axis + 1] = extent / o->lanes;
        id = ir_reshape(b, id, t.rank + 1, dims);
    }
    *out = move_axis(id, axis, 0);
    return true;
}

static bool read_options(const char *name, const jot_collective_options *options,
                         jot_collective_options *out, jot_value *out_error)
{
    *out = options ? *options : (jot_collective_options){0};
    if (!out->to)
        return true;
    *out_error =
        trace_fail(name, JOT_ERR_ARGUMENT,
                   "to is %d, which jot_all_to_all alone takes: axis says where", out->to);
    return false;
}

static jot_value all_gather(const char *name, jot_value x, const char *axes,
                            const jot_collective_options *options)
{
    struct over o;
    jot_collective_options p;
    jot_value error;
    int axis;
    if (!read(name, &x, axes, &o, &error) || !read_options(name, options, &p, &error) ||
        !find_axis(name, trace_type(x).rank + !p.tiled, p.axis, &axis, &error))
        return error;
    ir_id y = move_axis(collective(IR_all_gather, trace_strong(x), &o), 0, axis);
    return trace_result(name, p.tiled ? merge_axes(y, axis) : y, false);
}

jot_value jot_all_gather(jot_value x, const char *axes, const jot_collective_options *options)
{
    TRACE_RETURN(all_gather("jot_all_gather", x, axes, options));
}

static jot_value psum_scatter(const char *name, jot_value x, const char *axes,
                              const jot_collective_options *options)
{
    struct over o;
    jot_collective_options p;
    jot_value error;
    int axis;
    ir_id rows;
    if (!read(name, &x, axes, &o, &error) || !read_options(name, options, &p, &error) ||
        !find_axis(name, trace_type(x).rank, p.axis, &axis, &error) ||
        !rows_of(name, x, trace_operand(x, trace_sum_dtype(seen_dtype(x))), &o, axis, p.tiled,
                 &rows, &error))
        return error;
    return trace_result(name, collective(IR_psum_scatter, rows, &o), false);
}

jot_value jot_psum_scatter(jot_value x, const char *axes, const jot_collective_options *options)
{
    TRACE_RETURN(psum_scatter("jot_psum_scatter", x, axes, options));
}

static jot_value all_to_all(const char *name, jot_value x, const char *axes,
                            const jot_collective_options *options)
{
    struct over o;
    jot_collective_options p = options ? *options : (jot_collective_options){0};
    jot_value error;
    int axis, to;
    ir_id rows;
    if (!read(name, &x, axes, &o, &error) ||
        !find_axis(name, trace_type(x).rank, p.axis, &axis, &error) ||
        !find_axis(name, trace_type(x).rank, p.to, &to, &error) ||
        !rows_of(name, x, trace_strong(x), &o, axis, p.tiled, &rows, &error))
        return error;
    ir_id y = move_axis(collective(IR_all_to_all, rows, &o), 0, to);
    return trace_result(name, p.tiled ? merge_axes(y, to) : y, false);
}

jot_value jot_all_to_all(jot_value x, const char *axes, const jot_collective_options *options)
{
    TRACE_RETURN(all_to_all("jot_all_to_all", x, axes, options));
}

// ---------------------------------------------------------------------------------------
// Permutations

// The numbers of a list, up to one more than most.
static int64_t count_list(const int *list, int64_t most)
{
    int64_t n = 0;
    while (n <= most && list[n] != JOT_END)
        n++;
    return n;
}

static jot_value permute(const char *name, jot_value x, const struct over *o, int64_t n,
                         const int64_t *pairs)
{
    bool *seen = arena_array(trace_top()->module->arena, bool, 2 * o->lanes + 1);
    for (int64_t i = 0; i < n; i++) {
        const char *side = i % 2 ? "to" : "from";
        if (pairs[i] < 0 || pairs[i] >= o->lanes)
            return trace_fail(name, JOT_ERR_ARGUMENT, "%s lane %lld: lanes are 0 to %lld", side,
                              (long long)pairs[i], (long long)o->lanes - 1);
        if (seen[2 * pairs[i] + i % 2])
            return trace_fail(name, JOT_ERR_ARGUMENT, "%s lane %lld twice", side,
                              (long long)pairs[i]);
        seen[2 * pairs[i] + i % 2] = true;
    }
    return trace_result(
        name, ir_ppermute(trace_builder(), trace_strong(x), o->n, o->axes, (int)(n / 2), pairs),
        false);
}

static jot_value ppermute(const char *name, jot_value x, const char *axes, const int *list)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    int64_t n = count_list(list, 2 * o.lanes);
    if (n > 2 * o.lanes || n % 2)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "%lld%s numbers as pairs of %lld lanes: list from and to by turns",
                          (long long)n, n > 2 * o.lanes ? " or more" : "", (long long)o.lanes);
    int64_t *pairs = arena_array(trace_top()->module->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        pairs[i] = list[i];
    return permute(name, x, &o, n, pairs);
}

jot_value jot_ppermute_pairs(jot_value x, const char *axes, const int *pairs)
{
    TRACE_NEEDS("jot_ppermute", "pairs", 1, pairs);
    TRACE_RETURN(ppermute("jot_ppermute", x, axes, pairs));
}

static jot_value pshuffle(const char *name, jot_value x, const char *axes, const int *order)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    int64_t n = count_list(order, o.lanes);
    if (n != o.lanes)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%lld%s numbers for %lld lanes", (long long)n,
                          n > o.lanes ? " or more" : "", (long long)o.lanes);
    int64_t *pairs = arena_array(trace_top()->module->arena, int64_t, 2 * n + 1);
    for (int64_t i = 0; i < n; i++) {
        pairs[2 * i] = order[i];
        pairs[2 * i + 1] = i;
    }
    return permute(name, x, &o, 2 * n, pairs);
}

jot_value jot_pshuffle_order(jot_value x, const char *axes, const int *order)
{
    TRACE_NEEDS("jot_pshuffle", "order", 1, order);
    TRACE_RETURN(pshuffle("jot_pshuffle", x, axes, order));
}

static jot_value pbroadcast(const char *name, jot_value x, const char *axes, int64_t source)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    if (source < 0 || source >= o.lanes)
        return trace_fail(name, JOT_ERR_ARGUMENT, "from lane %lld: lanes are 0 to %lld",
                          (long long)source, (long long)o.lanes - 1);
    struct ir_builder *b = trace_builder();
    ir_id all = collective(IR_all_gather, trace_strong(x), &o);
    if (all == IR_NONE)
        return trace_result(name, all, false);
    int64_t starts[IR_MAX_RANK + 1] = {source}, limits[IR_MAX_RANK + 1];
    struct ir_type t = ir_type_in(b, all);
    memcpy(limits, ir_dims(b->module, t), sizeof *limits * t.rank);
    limits[0] = source + 1;
    ir_id row = ir_slice(b, all, starts, limits, NULL);
    return trace_result(name, ir_reshape(b, row, t.rank - 1, limits + 1), false);
}

jot_value jot_pbroadcast(jot_value x, const char *axes, int64_t source)
{
    TRACE_RETURN(pbroadcast("jot_pbroadcast", x, axes, source));
}

// ---------------------------------------------------------------------------------------
// Numbers

static jot_value axis_index(const char *name, const char *axes)
{
    struct over o;
    jot_value error;
    if (!read_axes(name, axes, &o, &error))
        return error;
    struct ir_builder *b = trace_builder();
    ir_id number = ir_axis_index(b, o.axes[0]);
    for (int i = 1; i < o.n; i++) {
        ir_id size = ir_scalar_int(b, JOT_I32, ir_axis_size(b->module, o.axes[i]));
        number = ir_add(b, ir_mul(b, number, size), ir_axis_index(b, o.axes[i]));
    }
    return trace_result(name, number, false);
}

jot_value jot_axis_index(const char *axes) { TRACE_RETURN(axis_index("jot_axis_index", axes)); }

// The number of lanes as a C number, or an error.
static jot_value axis_size(const char *axes, int64_t *out)
{
    struct over o;
    jot_value error;
    if (!read_axes("jot_axis_size", axes, &o, &error))
        return error;
    *out = o.lanes;
    return (jot_value){0, 0};
}

static jot_value guarded_axis_size(const char *axes, int64_t *out)
{
    TRACE_RETURN(axis_size(axes, out));
}

int64_t jot_axis_size(const char *axes)
{
    int64_t size = 0;
    guarded_axis_size(axes, &size);
    return size;
}

static jot_value pvary(const char *name, jot_value x, const char *axes)
{
    struct over o;
    jot_value error;
    if (!read(name, &x, axes, &o, &error))
        return error;
    uint16_t set = 0;
    for (int i = 0; i < o.n; i++)
        set |= (uint16_t)(1u << o.axes[i]);
    return trace_result(name, ir_pvary(trace_builder(), trace_strong(x), set), false);
}

jot_value jot_pvary(jot_value x, const char *axes)
{
    TRACE_RETURN(pvary("jot_pvary", x, axes));
}
