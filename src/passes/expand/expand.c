// SPDX-License-Identifier: Apache-2.0
// Linear algebra on small matrices, and arrays of many parts, as graphs of other ops.
//
//     l = cholesky(a)        a: f32[1000,8,8]
// becomes
//     l = scan {lanes=1, length=1000} (a)     of a body that takes one f32[8,8]
//
// whose lanes a kernel has in vectors, or in threads, one matrix each with its elements in registers.
// A routine would be called for each matrix, and its calls cost more than the work.  In the
// body of a loop or branch the op is written out in place: the loop may itself be one of lanes.
#include "passes/expand/expand.h"

#include "ir/control.h"
#include "passes/body.h"

typedef void expand_function(struct ir_builder *b, const struct ir_attrs *attrs,
                             const ir_id *in, ir_id *out);

// By op: what makes the graph, and the axes of each operand that belong to one matrix.
static const struct expansion {
    expand_function *make;
    int8_t axes[4];
} expansions[IR_OP_COUNT] = {
    [IR_cholesky] = {expand_cholesky, {2}},
    [IR_lu] = {expand_lu, {2}},
    [IR_triangular_solve] = {expand_triangular_solve, {2, 2}},
    [IR_tridiagonal_solve] = {expand_tridiagonal_solve, {1, 1, 1, 2}},
};

static bool is_small(const struct ir_graph *g, const struct ir_node *n)
{
    if (!expansions[n->op].make)
        return false;
    if (n->op == IR_tridiagonal_solve)
        return true;
    ir_id a = ir_operand(g, n, 0);
    const int64_t *end = ir_dims_of(g, a) + ir_rank_of(g, a);
    return end[-1] <= EXPAND_SIZE && end[-2] <= EXPAND_SIZE;
}

// Of matrices without elements there is nothing to compute, and the results that are not empty, the
// permutations of lu, are the same for all.
static bool is_empty(const struct ir_graph *g, const struct ir_node *n)
{
    return expansions[n->op].make && ir_count_of(g, ir_operand(g, n, 0)) == 0;
}

// How many matrices the first operand holds.
static int64_t count_of(const struct ir_graph *g, const struct ir_node *n)
{
    ir_id a = ir_operand(g, n, 0);
    int64_t count = 1;
    for (int i = 0; i < ir_rank_of(g, a) - expansions[n->op].axes[0]; i++)
        count *= ir_dims_of(g, a)[i];
    return count;
}

// Multiplications of one matrix, roughly.
static int64_t work_of_one(const struct ir_graph *g, const struct ir_node *n)
{
    ir_id a = ir_operand(g, n, 0), b = ir_operand(g, n, n->n_in - 1);
    const int64_t *end_a = ir_dims_of(g, a) + ir_rank_of(g, a),
                  *end_b = ir_dims_of(g, b) + ir_rank_of(g, b);
    return end_a[-2] * end_b[-2] * end_b[-1] * (dtype_is_complex(ir_dtype_of(g, a)) ? 4 : 1);
}

// Whether so many matrices are worth code of their own.
static bool is_worth_code(const struct ir_graph *g, const struct ir_node *n, int64_t count)
{
    int64_t work = work_of_one(g, n);
    return count >= EXPAND_COUNT && work <= EXPAND_WORK &&
           (double)count >= EXPAND_COUNT_OF_WORK * (double)work;
}

// The operand without the axes that count matrices.
static struct ir_type type_of_one(struct ir_module *m, struct ir_type t, int axes)
{
    return ir_type_make(m, ir_dtype(t), axes, ir_dims(m, t) + t.rank - axes);
}

// The function of one matrix.
static uint32_t body_of_one(struct ir_module *m, const struct ir_graph *g,
                            const struct ir_node *n)
{
    const struct expansion *e = &expansions[n->op];
    struct ir_builder b = ir_builder_make(m, ir_op_get((enum ir_op)n->op)->name, IR_BUILD_ALL);
    ir_id in[4], out[3];
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = ir_param(&b, type_of_one(m, ir_type_of(g, ir_operand(g, n, i)), e->axes[i]));
    b.where = n->where;
    e->make(&b, n->attrs, in, out);
    for (uint32_t i = 0; i < n->n_out; i++)
        ir_output(&b, out[i]);
    return ir_finish_function(&b);
}

// x with its leading axes, all but `axes`, as one.
static ir_id count_in_one(struct ir_builder *b, ir_id x, int axes, int64_t count)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK] = {count};
    memcpy(dims + 1, ir_dims(b->module, t) + t.rank - axes, sizeof *dims * (size_t)axes);
    return ir_reshape(b, x, axes + 1, dims);
}

static void map_over_lanes(struct ir_builder *b, const struct ir_graph *g,
                           const struct ir_node *n, ir_id *map, int64_t count)
{
    const struct expansion *e = &expansions[n->op];
    ir_id rows[4];
    b->where = n->where;
    for (uint32_t i = 0; i < n->n_in; i++)
        rows[i] = count_in_one(b, map[ir_operand(g, n, i)], e->axes[i], count);
    struct ir_scan s = {.body = body_of_one(b->module, g, n), .length = count, .lanes = 1};
    ir_id y = ir_scan(b, &s, (int)n->n_in, rows);
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct ir_type t = ir_type_of(g, n->out + i);
        map[n->out + i] = ir_reshape(b, y + i, t.rank, ir_dims(b->module, t));
    }
}

static void write_out(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *map)
{
    ir_id in[4];
    b->where = n->where;
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = map[ir_operand(g, n, i)];
    expansions[n->op].make(b, n->attrs, in, map + n->out);
}

static uint32_t expand_inside(struct ir_module *m, uint32_t f);

static void copy_inside(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *map)
{
    if (ir_has_bodies((enum ir_op)n->op))
        body_copy_rewritten(b, g, n, map, expand_inside);
    else if (is_empty(g, n) || is_small(g, n))
        write_out(b, g, n, map);
    else
        pass_copy_node(b, g, n, map);
}

// A kernel asks for each element which of the parts it is of: many are put together by groups.
static void join_by_groups(struct ir_builder *b, const struct ir_graph *g,
                           const struct ir_node *n, ir_id *map)
{
    uint32_t count = n->n_in;
    int axis = (int)ir_attr_int(n->attrs, IR_KEY_axis);
    ir_id *x = body_operands(b->module, g, n, map);
    b->where = n->where;
    while (count > 1) {
        uint32_t groups = 0;
        for (uint32_t i = 0; i < count; i += EXPAND_PARTS)
            x[groups++] = ir_concatenate(
                b, (int)(count - i < EXPAND_PARTS ? count - i : EXPAND_PARTS), x + i, axis);
        count = groups;
    }
    map[n->out] = x[0];
}

static bool has_many_parts(const struct ir_node *n)
{
    return n->op == IR_concatenate && n->n_in > EXPAND_PARTS;
}

static void copy_outside(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map)
{
    bool has_routine = n->op != IR_tridiagonal_solve; // or needs none
    int64_t count = is_small(g, n) ? count_of(g, n) : 0;
    if (ir_has_bodies((enum ir_op)n->op))
        body_copy_rewritten(b, g, n, map, expand_inside);
    else if (has_many_parts(n))
        join_by_groups(b, g, n, map);
    else if (is_empty(g, n))
        write_out(b, g, n, map);
    else if (count && (!has_routine || is_worth_code(g, n, count)))
        map_over_lanes(b, g, n, map, count);
    else if (!has_routine)
        write_out(b, g, n, map);
    else
        pass_copy_node(b, g, n, map);
}

static uint32_t expand_inside(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_EXPAND_INSIDE, copy_inside);
}

// Whether the graph, or a body in it, has what may be written out.
static bool has_expansions(const struct ir_graph *g)
{
    ir_for_each_node (g, n) {
        int bodies = 0;
        if (expansions[n->op].make || has_many_parts(n))
            return true;
        if (ir_has_bodies((enum ir_op)n->op))
            ir_attr_ints(n->attrs, IR_KEY_functions, &bodies);
        for (int i = 0; i < bodies; i++)
            if (has_expansions(ir_body(g, n, i)))
                return true;
    }
    return false;
}

const struct ir_graph *pass_expand(const struct ir_graph *g, bool keeps_convolutions)
{
    bool has_conv = g && !keeps_convolutions && pass_has_convolutions(g);
    if (!g || !(has_conv || has_expansions(g)))
        return g;
    struct ir_module *m = g->module;
    uint32_t f = ir_function_add(m, (struct ir_graph *)(uintptr_t)g);
    if (has_conv)
        f = pass_expand_convolutions(m, f, NULL);
    return ir_function(m, body_rewrite(m, f, MEMO_EXPAND, copy_outside));
}
