// SPDX-License-Identifier: Apache-2.0
// Folds.  Sums and products have one shape, given by the number of elements alone: blocks
// (base/fold.h), in a block 64 accumulators that take elements in turn (of fewer elements the
// next power of two), a fixed fold of the accumulators, and pairs of block results.  Half types
// accumulate in f32.
#include "ir/eval_fold.h"

static struct eval_number identity(enum ir_op op, jot_dtype d)
{
    jot_dtype part = dtype_compute(dtype_real(d));
    return (struct eval_number){{scalar_identity(op, d), part}, {0, part}};
}

struct eval_fold eval_fold_make(struct arena *arena, enum ir_op op, jot_dtype d, int64_t n)
{
    int64_t block = fold_block(n), blocks = (n + block - 1) / block;
    int lanes = 1;
    while (lanes < FOLD_LANES && lanes < n)
        lanes *= 2;
    return (struct eval_fold){.op = op,
                              .machine = {.dtype = d},
                              .identity = identity(op, d),
                              .block = block,
                              .n_lanes = lanes,
                              .blocks = arena_array(arena, struct eval_number, blocks)};
}

struct eval_number *eval_fold_open_block(struct eval_fold *f)
{
    for (int i = 0; i < FOLD_LANES; i++)
        f->lanes[i] = f->identity;
    return f->lanes;
}

static struct eval_number combine(struct eval_fold *f, struct eval_number x,
                                  struct eval_number y)
{
    return eval_scalar(&f->machine, f->op, x, y, y);
}

void eval_fold_close_block(struct eval_fold *f)
{
    for (int half = f->n_lanes / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            f->lanes[i] = combine(f, f->lanes[i], f->lanes[i + half]);
    f->blocks[f->n_blocks++] = f->lanes[0];
}

struct eval_number eval_fold_finish(struct eval_fold *f)
{
    int64_t n = f->n_blocks;
    f->n_blocks = 0;
    if (n == 0)
        return f->identity;
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++)
            f->blocks[i] = combine(f, f->blocks[2 * i], f->blocks[2 * i + 1]);
        if (n % 2)
            f->blocks[n / 2] = f->blocks[n - 1];
    }
    return f->blocks[0];
}

// The axes of the operand that are folded, and those that are kept, each in increasing order.
static void split_axes(const struct eval_view *v, int n, const int64_t *axes,
                       struct eval_view *kept, struct eval_view *folded)
{
    uint32_t set = 0;
    for (int i = 0; i < n; i++)
        set |= UINT32_C(1) << axes[i];
    *kept = *folded = (struct eval_view){0};
    for (int a = 0; a < v->rank; a++) {
        struct eval_view *part = set >> a & 1 ? folded : kept;
        part->dims[part->rank] = v->dims[a];
        part->steps[part->rank++] = v->steps[a];
    }
}

static int64_t count_of(const struct eval_view *v)
{
    int64_t count = 1;
    for (int a = 0; a < v->rank; a++)
        count *= v->dims[a];
    return count;
}

static struct eval_number fold(struct eval_fold *f, const struct ir_tensor *x, int64_t start,
                               const struct eval_view *folded)
{
    int64_t index[IR_MAX_RANK] = {0}, n = count_of(folded), at = start;
    for (int64_t first = 0; first < n; first += f->block) {
        int64_t end = n - first < f->block ? n - first : f->block;
        struct eval_number *lanes = eval_fold_open_block(f);
        for (int64_t i = 0; i < end; i++) {
            struct eval_number e = eval_load_wide(ir_dtype(x->type), x->data, at);
            lanes[i % FOLD_LANES] = combine(f, lanes[i % FOLD_LANES], e);
            at = eval_view_next(folded, index, at);
        }
        eval_fold_close_block(f);
    }
    return eval_fold_finish(f);
}

jot_status eval_reduce(const struct eval_call *c)
{
    int n;
    const int64_t *axes = ir_attr_ints(c->attrs, IR_KEY_axes, &n);
    struct eval_view v = eval_view_dense(c->module, c->in[0].type), kept, folded;
    split_axes(&v, n, axes, &kept, &folded);
    jot_dtype d = ir_dtype(c->in[0].type);
    struct eval_fold f = eval_fold_make(c->arena, c->op, d, count_of(&folded));
    int64_t index[IR_MAX_RANK] = {0}, start = 0, count = count_of(&kept);
    for (int64_t i = 0; i < count; i++) {
        eval_store(d, c->out[0].data, i, fold(&f, &c->in[0], start, &folded));
        start = eval_view_next(&kept, index, start);
    }
    return JOT_OK;
}

jot_status eval_arg(const struct eval_call *c)
{
    int64_t axis = ir_attr_int(c->attrs, IR_KEY_axis);
    struct eval_view v = eval_view_dense(c->module, c->in[0].type), kept, folded;
    split_axes(&v, 1, &axis, &kept, &folded);
    jot_dtype d = ir_dtype(c->in[0].type), index_dtype = ir_dtype(c->out[0].type);
    struct machine m = {.dtype = d};
    int64_t index[IR_MAX_RANK] = {0}, start = 0, count = count_of(&kept);
    for (int64_t i = 0; i < count; i++) {
        uint64_t winner = 0;
        struct eval_number best = eval_load_wide(d, c->in[0].data, start);
        for (int64_t k = 1; k < folded.dims[0]; k++) {
            struct eval_number x =
                eval_load_wide(d, c->in[0].data, start + k * folded.steps[0]);
            if (eval_scalar(&m, c->op, x, best, best).re.bits) {
                best = x;
                winner = (uint64_t)k;
            }
        }
        struct eval_number at = {{winner, index_dtype}, {0, index_dtype}};
        eval_store(index_dtype, c->out[0].data, i, at);
        start = eval_view_next(&kept, index, start);
    }
    return JOT_OK;
}

// Strictly from one end to the other; what runs is not rounded to a half type.
jot_status eval_cumulative(const struct eval_call *c)
{
    int64_t axis = ir_attr_int(c->attrs, IR_KEY_axis);
    bool is_reverse = ir_attr_int_or(c->attrs, IR_KEY_reverse, 0);
    struct eval_view v = eval_view_dense(c->module, c->in[0].type), kept, folded;
    split_axes(&v, 1, &axis, &kept, &folded);
    jot_dtype d = ir_dtype(c->in[0].type);
    struct machine m = {.dtype = d, .attrs = c->attrs};
    int64_t n = folded.dims[0], step = is_reverse ? -folded.steps[0] : folded.steps[0];
    int64_t index[IR_MAX_RANK] = {0}, start = 0, count = n ? count_of(&kept) : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = is_reverse ? start + (n - 1) * folded.steps[0] : start;
        struct eval_number running = eval_load_wide(d, c->in[0].data, at);
        eval_store(d, c->out[0].data, at, running);
        for (int64_t k = 1; k < n; k++) {
            at += step;
            struct eval_number x = eval_load_wide(d, c->in[0].data, at);
            running = eval_scalar(&m, c->op, running, x, x);
            eval_store(d, c->out[0].data, at, running);
        }
        start = eval_view_next(&kept, index, start);
    }
    return JOT_OK;
}
