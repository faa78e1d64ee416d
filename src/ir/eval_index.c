// SPDX-License-Identifier: Apache-2.0
// Ops whose indices are data.
#include "ir/eval_ops.h"
#include "ir/indexing.h"

// Element i of integers; what no i64 holds is the largest.
static int64_t index_at(const struct ir_tensor *t, int64_t i)
{
    jot_dtype d = ir_dtype(t->type);
    uint64_t bits = eval_convert(d, JOT_I64, eval_load_wide(d, t->data, i)).re.bits;
    return d == JOT_U64 && bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

static int64_t clamped(int64_t x, int64_t last) { return x < 0 ? 0 : x > last ? last : x; }

// Where the window of `part` starts in the operand, by the operands of the node from `first` on.
static int64_t slice_start(const struct eval_call *c, int first, const struct eval_view *whole,
                           const int64_t *part)
{
    int64_t start = 0;
    for (int a = 0; a < whole->rank; a++)
        start +=
            whole->steps[a] * clamped(index_at(&c->in[first + a], 0), whole->dims[a] - part[a]);
    return start;
}

// Copies between a dense array and the window of another one.
static void copy_window(void *dense, const void *whole, bool to_whole,
                        const struct eval_view *window, int64_t start, size_t bytes)
{
    int64_t index[IR_MAX_RANK] = {0}, count = 1;
    for (int a = 0; a < window->rank; a++)
        count *= window->dims[a];
    for (int64_t i = 0, at = start; i < count; i++) {
        unsigned char *inside = (unsigned char *)(uintptr_t)whole + (size_t)at * bytes;
        unsigned char *outside = (unsigned char *)dense + (size_t)i * bytes;
        memcpy(to_whole ? inside : outside, to_whole ? outside : inside, bytes);
        at = eval_view_next(window, index, at);
    }
}

jot_status eval_dynamic_slice(const struct eval_call *c)
{
    struct eval_view whole = eval_view_dense(c->module, c->in[0].type), window = whole;
    const int64_t *part = ir_dims(c->module, c->out[0].type);
    memcpy(window.dims, part, (size_t)whole.rank * sizeof *part);
    copy_window(c->out[0].data, c->in[0].data, false, &window, slice_start(c, 1, &whole, part),
                jot_dtype_size(ir_dtype(c->out[0].type)));
    return JOT_OK;
}

jot_status eval_dynamic_update_slice(const struct eval_call *c)
{
    struct eval_view whole = eval_view_dense(c->module, c->in[0].type), window = whole;
    const int64_t *part = ir_dims(c->module, c->in[1].type);
    memcpy(window.dims, part, (size_t)whole.rank * sizeof *part);
    eval_copy(c);
    copy_window(c->in[1].data, c->out[0].data, true, &window, slice_start(c, 2, &whole, part),
                jot_dtype_size(ir_dtype(c->out[0].type)));
    return JOT_OK;
}

// A gather or scatter: the element of the operand that an element of y is about.
struct windows {
    struct ir_window w;
    struct ir_gather g;
    struct eval_view x, indices;
    const struct ir_tensor *index;
};

static struct windows windows_of(const struct eval_call *c, struct ir_type y)
{
    return (struct windows){
        .w = ir_window_of(c->module, c->attrs, c->in[0].type, c->in[1].type, y),
        .g = ir_gather_of(c->attrs),
        .x = eval_view_dense(c->module, c->in[0].type),
        .indices = eval_view_dense(c->module, c->in[1].type),
        .index = &c->in[1]};
}

// -1 where the window leaves the operand and is not to be moved inside.
static int64_t element_at(const struct windows *v, const int64_t *y)
{
    int64_t row = 0, at = 0;
    for (int a = 0; a < v->w.index_rank; a++)
        row += y[v->w.index_axis[a]] * v->indices.steps[a];
    for (int a = 0; a < v->w.rank; a++) {
        int64_t start = 0, last = v->x.dims[a] - v->w.size[a];
        if (v->w.component[a] >= 0)
            start = index_at(v->index, row + v->w.component[a]);
        if (!ir_mode_moves(v->g.mode) && (start < 0 || start > last))
            return -1;
        start = clamped(start, last) + (v->w.along[a] >= 0 ? y[v->w.along[a]] : 0);
        at += start * v->x.steps[a];
    }
    return at;
}

jot_status eval_gather(const struct eval_call *c)
{
    struct windows v = windows_of(c, c->out[0].type);
    struct eval_view y = eval_view_dense(c->module, c->out[0].type);
    size_t bytes = jot_dtype_size(ir_dtype(c->out[0].type));
    int64_t index[IR_MAX_RANK] = {0}, count = eval_count(c, c->out[0].type);
    unsigned char outside[16] = {0}, *out = c->out[0].data;
    if (v.g.mode == IR_MODE_FILL)
        ir_fill_element(ir_dtype(c->out[0].type), outside);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = element_at(&v, index);
        memcpy(out + (size_t)i * bytes,
               at < 0 ? outside : (const unsigned char *)c->in[0].data + (size_t)at * bytes,
               bytes);
        eval_view_next(&y, index, 0);
    }
    return JOT_OK;
}

static void update(const struct eval_call *c, void *to, int64_t at, struct eval_number u)
{
    jot_dtype d = ir_dtype(c->out[0].type);
    struct machine m = {.dtype = d};
    if (ir_is_fold(c->op))
        u = eval_scalar(&m, c->op, eval_load_wide(d, to, at), u, u);
    eval_store(d, to, at, u);
}

// Combines the updates whose first index axis is in [begin, end) with `to`, window by window.
static void scatter_into(const struct eval_call *c, const struct windows *v, void *to,
                         int64_t begin, int64_t end)
{
    struct eval_view u = eval_view_dense(c->module, c->in[2].type), order = {.rank = u.rank};
    int axis[IR_MAX_RANK], n = 0;
    bool is_window[IR_MAX_RANK] = {0};
    for (int i = 0; i < v->g.n_offset; i++)
        is_window[v->g.offset_dims[i]] = true;
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < u.rank; a++)
            if (is_window[a] == (pass == 1)) {
                order.dims[n] = u.dims[a];
                order.steps[n] = u.steps[a];
                axis[n++] = a;
            }
    int64_t index[IR_MAX_RANK] = {0}, count = 1;
    for (int a = 0; a < n; a++)
        count *= order.dims[a];
    for (int64_t i = 0, from = 0; i < count; i++) {
        int64_t y[IR_MAX_RANK];
        for (int a = 0; a < n; a++)
            y[axis[a]] = index[a];
        bool is_part = v->w.index_rank == 0 || (index[0] >= begin && index[0] < end);
        int64_t at = is_part ? element_at(v, y) : -1;
        if (at >= 0)
            update(c, to, at, eval_load_wide(ir_dtype(c->in[2].type), c->in[2].data, from));
        from = eval_view_next(&order, index, from);
    }
}

// Sums of parts, pairwise, and with the operand (ir_scatter_parts).
static void sum_parts(const struct eval_call *c, const struct windows *v, int64_t parts,
                      int64_t length)
{
    jot_dtype d = ir_dtype(c->out[0].type);
    size_t bytes = (size_t)eval_count(c, c->out[0].type) * jot_dtype_size(d);
    int64_t count = eval_count(c, c->out[0].type);
    unsigned char **sum = arena_array(c->arena, unsigned char *, parts);
    struct machine m = {.dtype = d};
    struct eval_number zero =
        eval_convert(JOT_I64, d, (struct eval_number){{0, JOT_I64}, {0, JOT_I64}});
    struct eval_number none = eval_scalar(&m, IR_neg, zero, zero, zero);
    for (int64_t p = 0; p < parts; p++) {
        sum[p] = arena_allocate(c->arena, bytes);
        for (int64_t i = 0; i < count; i++)
            eval_store(d, sum[p], i, none);
        scatter_into(c, v, sum[p], p * length, (p + 1) * length);
    }
    for (int64_t n = parts; n > 1; n /= 2)
        for (int64_t p = 0; p < n / 2; p++)
            for (int64_t i = 0; i < count; i++) {
                struct eval_number x = eval_load_wide(d, sum[2 * p], i);
                struct eval_number y = eval_load_wide(d, sum[2 * p + 1], i);
                eval_store(d, sum[p], i, eval_scalar(&m, IR_add, x, y, y));
            }
    for (int64_t i = 0; i < count; i++)
        update(c, c->out[0].data, i, eval_load_wide(d, sum[0], i));
}

jot_status eval_scatter(const struct eval_call *c)
{
    struct windows v = windows_of(c, c->in[2].type);
    int64_t parts = ir_scatter_parts(c->module, c->op, c->attrs, c->in[0].type, c->in[1].type,
                                     c->in[2].type);
    int64_t first = v.w.index_rank ? ir_dims(c->module, c->in[1].type)[0] : 1, begin = 0;
    eval_copy(c);
    if (parts > 1) {
        sum_parts(c, &v, parts, first / parts);
        begin = first / parts * parts;
    }
    scatter_into(c, &v, c->out[0].data, begin, first);
    return JOT_OK;
}
