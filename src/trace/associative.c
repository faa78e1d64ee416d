// SPDX-License-Identifier: Apache-2.0
// Scans by an operation that is associative: with neighbours combined, the scan of half as many
// gives every other result, and one more combination each of those between.
//
//     x        a   b    c    d     e          y = scan(combine(x[0::2], x[1::2]))
//     y            ab        abcd             result[1::2] = y
//     result   a   ab   abc  abcd  abcde      result[2::2] = combine(y, x[2::2])
//
// So n elements take less than 2 n combinations, and the graph grows with log n.  Blelloch, Prefix
// sums and their applications, 1990.
#include "trace/emit.h"
#include "trace/function.h"

#include "jot/control.h"

static const char *const name = "jot_associative_scan";

struct chain {
    jot_function combine; // of elements along axis 0
    int n;
    const char *where;
};

static struct ir_builder *builder(void) { return trace_builder(); }
static const int64_t *dims_of(ir_id v)
{
    return ir_dims(builder()->module, ir_type_in(builder(), v));
}

static ir_id *room(const struct chain *c)
{
    return arena_array(builder()->module->arena, ir_id, c->n + 1);
}

// Elements first, first + step, ... below end of x.
static ir_id elements(ir_id x, int64_t first, int64_t end, int64_t step)
{
    int64_t starts[IR_MAX_RANK] = {first}, limits[IR_MAX_RANK], steps[IR_MAX_RANK];
    int rank = ir_type_in(builder(), x).rank;
    for (int i = 0; i < rank; i++) {
        limits[i] = i ? dims_of(x)[i] : end;
        steps[i] = i ? 1 : step;
    }
    return ir_slice(builder(), x, starts, limits, steps);
}

// n elements of x and y in turn, the first of x.
static ir_id in_turn(ir_id x, ir_id y, int64_t n)
{
    struct ir_builder *b = builder();
    struct ir_type t = ir_type_in(b, x);
    int64_t half = n / 2, dims[IR_MAX_RANK], row = 1;
    memcpy(dims, dims_of(x), t.rank * sizeof *dims);
    for (int i = 1; i < t.rank; i++)
        row *= dims[i];
    // An element of each, side by side, is two elements.
    int64_t pairs[] = {half, row};
    ir_id sides[] = {ir_reshape(b, elements(x, 0, half, 1), 2, pairs),
                     ir_reshape(b, y, 2, pairs)};
    dims[0] = 2 * half;
    ir_id both = ir_reshape(b, ir_concatenate(b, 2, sides, 1), t.rank, dims);
    ir_id last[] = {both, IR_NONE};
    if (n % 2 == 0)
        return both;
    last[1] = elements(x, half, half + 1, 1);
    return ir_concatenate(b, 2, last, 0);
}

// combine(x, y); NULL with an error.
static const ir_id *combined(const struct chain *c, const ir_id *x, const ir_id *y)
{
    struct arena *arena = builder()->module->arena;
    jot_value *in = arena_array(arena, jot_value, 2 * c->n + 1);
    jot_value *out = arena_array(arena, jot_value, c->n + 1);
    ir_id *ids = room(c);
    for (int i = 0; i < c->n; i++) {
        in[i] = trace_value(x[i], false);
        in[c->n + i] = trace_value(y[i], false);
    }
    jot_apply_at(c->combine, 2 * (size_t)c->n, in, (size_t)c->n, out, c->where);
    for (int i = 0; i < c->n; i++) {
        if (trace_is_error(out[i]))
            return NULL;
        ids[i] = trace_strong(out[i]);
        if (ir_type_alike(ir_type_in(builder(), ids[i]), ir_type_in(builder(), x[i])))
            continue;
        struct ir_module *m = builder()->module;
        trace_fail(name, JOT_ERR_SHAPE, "%s gives %s for value %d, whose elements are %s",
                   c->combine.callee.name,
                   ir_type_text(m, ir_type_row(m, ir_type_in(builder(), ids[i]))), i,
                   ir_type_text(m, ir_type_row(m, ir_type_in(builder(), x[i]))));
        return NULL;
    }
    return ids;
}

static const ir_id *scan(const struct chain *c, int64_t n, const ir_id *x)
{
    if (n < 2)
        return x;
    ir_id *a = room(c), *b = room(c), *result = room(c);
    for (int i = 0; i < c->n; i++) {
        a[i] = elements(x[i], 0, n - n % 2, 2);
        b[i] = elements(x[i], 1, n, 2);
    }
    const ir_id *pairs = combined(c, a, b), *odd = pairs ? scan(c, n / 2, pairs) : NULL;
    if (!odd)
        return NULL;
    for (int i = 0; n > 2 && i < c->n; i++) {
        a[i] = elements(odd[i], 0, (n - 1) / 2, 1);
        b[i] = elements(x[i], 2, n, 2);
    }
    const ir_id *even = n > 2 ? combined(c, a, b) : x;
    for (int i = 0; even && i < c->n; i++) {
        ir_id first[] = {elements(x[i], 0, 1, 1), even[i]};
        result[i] =
            in_turn(n > 2 ? ir_concatenate(builder(), 2, first, 0) : first[0], odd[i], n);
    }
    return even ? result : NULL;
}

// x with the axis first, or back where it was.
static ir_id moved(ir_id x, int64_t axis, bool back)
{
    int64_t order[IR_MAX_RANK];
    int rank = ir_type_in(builder(), x).rank;
    for (int i = 0; i < rank; i++)
        order[i] = back ? (i < axis    ? i + 1
                           : i == axis ? 0
                                       : i)
                        : (i == 0      ? axis
                           : i <= axis ? i - 1
                                       : i);
    return axis ? ir_transpose(builder(), x, order) : x;
}

static bool check_counts(const struct chain *c, const jot_function *f)
{
    int in = function_in(f, f->n_transforms), out = function_out(f, f->n_transforms);
    if (c->n > 0 && in == 2 * c->n && out == c->n)
        return true;
    trace_fail(name, JOT_ERR_ARGUMENT, "%s takes %d values and gives %d, not %d and %d",
               f->callee.name, in, out, 2 * c->n, c->n);
    return false;
}

// The axis of each value, first, and in *n its extent, which all must have.
static bool read_values(const struct chain *c, jot_value *x, int axis, ir_id *ids, int64_t *at,
                        int64_t *n)
{
    jot_value error;
    for (int i = 0; i < c->n; i++) {
        if (!trace_axis(name, x[i], axis, &at[i], &error))
            return false;
        ids[i] = moved(trace_strong(x[i]), at[i], false);
        if (i && dims_of(ids[i])[0] != *n) {
            trace_fail(name, JOT_ERR_SHAPE,
                       "value %d is %s, but value 0 has %lld along axis %d", i,
                       trace_type_text(x[i]), (long long)*n, axis);
            return false;
        }
        *n = dims_of(ids[i])[0];
    }
    return true;
}

// False with an error, which is the last of the trace.
static bool run_chain(const jot_function *f, struct chain *c, jot_value *x, int axis,
                      bool reverse)
{
    ir_id *ids = room(c);
    int64_t *at = arena_array(builder()->module->arena, int64_t, c->n + 1), n = 0;
    if (!check_counts(c, f) || !read_values(c, x, axis, ids, at, &n))
        return false;
    const int64_t first = 0;
    for (int i = 0; reverse && i < c->n; i++)
        ids[i] = ir_rev(builder(), ids[i], 1, &first);
    const ir_id *y = scan(c, n, ids);
    for (int i = 0; y && i < c->n; i++) {
        ir_id v = reverse ? ir_rev(builder(), y[i], 1, &first) : y[i];
        x[i] = trace_result(name, moved(v, at[i], true), false);
    }
    return y != NULL;
}

struct request {
    const jot_function *combine;
    struct chain chain;
    int axis;
    bool reverse;
};

static bool make(void *ctx, jot_value *x, jot_value *out_error)
{
    struct request *r = ctx;
    const char *problem = function_problem(r->combine);
    if (!trace_ready(name, r->chain.n, x, out_error))
        return false;
    if (problem)
        trace_fail(name, function_problem_status(r->combine), "%s", problem);
    else if (run_chain(r->combine, &r->chain, x, r->axis, r->reverse))
        return true;
    *out_error = trace_fail_latest();
    return false;
}

void jot_associative_scan_tree(jot_function combine, size_t n, jot_value *x, int axis,
                               bool reverse, const char *where)
{
    if (trace_lacks(name, "x", n, x, n, x, where))
        return;
    struct chain chain = {jot_vmap_of(combine, where, NULL), (int)n, where};
    trace_make(make, &(struct request){&combine, chain, axis, reverse}, n, x, where);
}
