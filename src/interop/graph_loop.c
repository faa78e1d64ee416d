// SPDX-License-Identifier: Apache-2.0
#include "interop/graph_loop.h"

struct reading {
    const struct graph_frame *frame;
    const struct mlir_op *op;
    const struct mlir_block *test, *body;
    struct graph_loop *out;
};

// The index of the value among the arguments of a block, or -1.
static int argument(const struct mlir_block *block, const struct mlir_value *v)
{
    for (uint32_t i = 0; i < block->n_args; i++)
        if (block->args[i] == v)
            return (int)i;
    return -1;
}

static const struct mlir_op *end_of(const struct mlir_block *block)
{
    return block->ops[block->n_ops - 1];
}

static bool is_code(const struct mlir_op *op, enum mlir_code code)
{
    return op && op->row && op->row->code == code;
}

// What the value is around the loop, when it is the same there: itself, or an invariant.
static const struct mlir_value *outside(const struct reading *r, const struct mlir_value *v)
{
    const struct mlir_block *blocks[] = {r->test, r->body};
    for (int k = 0; k < 2; k++) {
        int i = argument(blocks[k], v);
        if (i >= 0)
            return r->out->is_invariant[i] ? r->op->operands[i] : NULL;
    }
    return v;
}

static bool integer(const struct reading *r, const struct mlir_value *v, int64_t *out)
{
    v = outside(r, v);
    return v && graph_integer(r->frame, v, out);
}

// Whether the value is made by an operation of the block.
static bool is_made_in(const struct reading *r, const struct mlir_block *block,
                       const struct mlir_value *v)
{
    const struct mlir_op *maker = graph_maker(r->frame, v);
    for (uint32_t i = 0; maker && i < block->n_ops; i++)
        if (block->ops[i] == maker)
            return true;
    return false;
}

// "LT" of x and y is "GT" of y and x.
static const char *turned(const char *direction)
{
    static const char *const pairs[][2] = {
        {"LT", "GT"}, {"GT", "LT"}, {"LE", "GE"}, {"GE", "LE"}};
    for (int i = 0; i < 4; i++)
        if (!strcmp(direction, pairs[i][0]))
            return pairs[i][1];
    return direction;
}

// The comparison that ends the loop: of argument *out_counter with *out_bound.
static const char *read_test(const struct reading *r, int *out_counter,
                             const struct mlir_value **out_bound)
{
    const struct mlir_op *compare = graph_maker(r->frame, end_of(r->test)->operands[0]);
    if (!is_code(compare, MLIR_OP_stablehlo_compare))
        return NULL;
    const char *direction = mlir_text(compare, "comparison_direction");
    for (int side = 0; side < 2 && direction; side++) {
        int i = argument(r->test, compare->operands[side]);
        if (i < 0 || r->out->is_invariant[i])
            continue;
        *out_counter = i;
        *out_bound = compare->operands[1 - side];
        return side ? turned(direction) : direction;
    }
    return NULL;
}

// The number that each trip adds to the counter; false when it does something else.
static bool read_step(const struct reading *r, int counter, int64_t *out)
{
    const struct mlir_value *next = end_of(r->body)->operands[counter];
    const struct mlir_op *sum = graph_maker(r->frame, next);
    bool is_difference = is_code(sum, MLIR_OP_stablehlo_subtract);
    if (!is_code(sum, MLIR_OP_stablehlo_add) && !is_difference)
        return false;
    int side = argument(r->body, sum->operands[0]) == counter ? 0 : 1;
    if (argument(r->body, sum->operands[side]) != counter || (is_difference && side) ||
        !integer(r, sum->operands[1 - side], out))
        return false;
    *out = is_difference ? -*out : *out;
    return *out != 0;
}

static int64_t divided_up(int64_t n, int64_t by) { return n <= 0 ? 0 : (n - 1) / by + 1; }

// How many trips there are from start by step; -1: not known, or without end.
static int64_t count(const char *direction, int64_t start, int64_t step, int64_t bound)
{
    int64_t most = INT64_MAX / 4;
    if (start > most || start < -most || bound > most || bound < -most)
        return -1;
    if (!strcmp(direction, "LT") && step > 0)
        return divided_up(bound - start, step);
    if (!strcmp(direction, "LE") && step > 0)
        return divided_up(bound - start + 1, step);
    if (!strcmp(direction, "GT") && step < 0)
        return divided_up(start - bound, -step);
    if (!strcmp(direction, "GE") && step < 0)
        return divided_up(start - bound + 1, -step);
    bool reaches = (bound - start) % step == 0 && (bound - start) / step >= 0;
    return !strcmp(direction, "NE") && reaches ? (bound - start) / step : -1;
}

static void read_counter(struct reading *r)
{
    struct graph_loop *f = r->out;
    const struct mlir_value *bound = NULL;
    int counter = 0;
    int64_t step, start, end;
    const char *direction = read_test(r, &counter, &bound);
    if (!direction || !read_step(r, counter, &step))
        return;
    const struct mlir_type *type = r->op->operands[counter]->type;
    char kind = type->kind == MLIR_TENSOR ? mlir_elements[type->element].kind : '-';
    if (type->rank || (kind != 'i' && kind != 'u'))
        return;
    f->counter = counter;
    if (integer(r, r->op->operands[counter], &start) && integer(r, bound, &end)) {
        int64_t trips = count(direction, start, step, end);
        if (trips < 0)
            return;
        f->is_counted = f->is_known = true;
        f->start = start;
        f->step = step;
        f->trips = trips;
        return;
    }
    // A bound that the test itself makes is not there before it.
    bound = is_made_in(r, r->test, bound) ? NULL : outside(r, bound);
    f->bound = bound;
    f->is_counted = bound && step == 1 && !strcmp(direction, "LT") && kind == 'i';
}

void graph_loop_read(const struct graph_frame *frame, const struct mlir_op *op,
                     struct graph_loop *out)
{
    struct reading r = {frame, op, &op->regions[0], &op->regions[1], out};
    *out = (struct graph_loop){.is_invariant =
                                   arena_array(frame->arena, bool, op->n_operands + 1)};
    for (uint32_t i = 0; i < op->n_operands; i++)
        out->is_invariant[i] = end_of(r.body)->operands[i] == r.body->args[i];
    read_counter(&r);
}
