// SPDX-License-Identifier: Apache-2.0
// Finds shifts that cancel: values that no result depends on, though they are computed with.
//
//     m = reduce_max x;  d = sub x m;  e = exp d;  s = reduce_sum e;  y = div e s
//     m = reduce_max x;  d = sub x m;  e = exp d;  s = reduce_sum e;  l = log s;  y = add m l
//
// y is the same for every m.  The derivative goes without that of m, which would be added and taken
// off again; at ties and at infinities too it is that of the sums alone.
//
// Needs a graph that is to be differentiated.  From each value m that is repeated and added or taken
// off, the search goes forward: the derivative of a value v in the element of m that it goes with
// is unit (plus + times v), with two numbers and a power of a scalar, as a temperature, or the search
// ends.  Where both numbers are 0 the path is over; all paths have to be.  This is algebra, so the
// order, the signs and the ops in between do not count.
#include "passes/derive/shift.h"

#include "passes/rules/rules.h"

#define MOST_BODY 256 // nodes of a function that a search enters
#define MOST_DEPTH 8  // of calls

struct search {
    struct arena *arena;
    int left, depth;
};

static bool visit(struct search *s, struct shift_frame *at, const struct ir_node *n);

// A call, whose results get slopes by those of the operands.
static bool visit_body(struct search *s, struct shift_frame *at, const struct shift_step *c)
{
    const struct ir_graph *g = ir_body(at->g, c->n, 0);
    if (g->nodes.count > MOST_BODY || s->depth == MOST_DEPTH)
        return false;
    struct shift_frame body = {
        g, arena_array(s->arena, struct shift_slope *, g->values.count + 1), at, c->n};
    for (uint32_t i = 0; i < g->n_params; i++)
        body.of[i] = at->of[ir_operand(at->g, c->n, i)];
    s->depth++;
    for (uint32_t i = g->n_params; i < g->nodes.count; i++)
        if (!visit(s, &body, &g->nodes.at[i]))
            return false;
    s->depth--;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        at->of[c->n->out + i] = body.of[g->outputs.at[i]];
    return true;
}

static bool visit_one(struct search *s, struct shift_frame *at, struct shift_step *c)
{
    if (!shift_align(c) || !shift_find_slope(c))
        return false;
    if (c->y.plus != 0 || c->y.times != 0)
        at->of[c->n->out] = arena_copy(s->arena, &c->y, sizeof c->y);
    return true;
}

// A result without derivatives, as a predicate, has a slope of 0.
static bool has_derivative(const struct ir_graph *g, const struct ir_node *n)
{
    bool has = n->n_out == 0;
    for (uint32_t i = 0; i < n->n_out; i++)
        has = has || pass_is_inexact(ir_type_of(g, n->out + i));
    return has && jvp_rules[n->op] != jvp_zero;
}

static bool visit(struct search *s, struct shift_frame *at, const struct ir_node *n)
{
    struct shift_step c = {.at = at, .n = n};
    bool any = false;
    for (uint32_t i = 0; i < n->n_in; i++)
        any = any || at->of[ir_operand(at->g, n, i)];
    if (!any || !has_derivative(at->g, n))
        return true;
    // x - x asks whether x is finite, and its derivative is NaN where that of x is.
    bool is_of_one = n->op == IR_sub && ir_operand(at->g, n, 0) == ir_operand(at->g, n, 1);
    if (n->n_in > SHIFT_MOST || s->left-- == 0 || n->n_out == 0 || is_of_one)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        c.in[i] = at->of[ir_operand(at->g, n, i)];
    if (n->op == IR_call || n->op == IR_checkpoint)
        return visit_body(s, at, &c);
    if (n->op == IR_barrier) {
        memcpy(at->of + n->out, c.in, n->n_in * sizeof *c.in);
        return true;
    }
    return !dtype_is_complex(ir_dtype_of(at->g, n->out)) && visit_one(s, at, &c);
}

// The nodes that read values, and whether these are results.
struct readers {
    uint32_t *first; // by value: of node; where the next begins is the end
    uint32_t *node;
    bool *is_result;
};

static struct readers find_readers(struct arena *arena, const struct ir_graph *g)
{
    struct readers r = {arena_array(arena, uint32_t, g->values.count + 2),
                        arena_array(arena, uint32_t, g->operands.count + 1),
                        arena_array(arena, bool, g->values.count + 1)};
    uint32_t *next = r.first + 1;
    for (uint32_t i = 0; i < g->operands.count; i++)
        next[g->operands.at[i]]++;
    for (uint32_t v = 0, sum = 0, count; v < g->values.count; v++, sum += count) {
        count = next[v];
        next[v] = sum;
    }
    for (uint32_t i = 0; i < g->nodes.count; i++)
        for (uint32_t k = 0; k < g->nodes.at[i].n_in; k++)
            r.node[next[ir_operand(g, &g->nodes.at[i], k)]++] = i;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        r.is_result[g->outputs.at[i]] = true;
    return r;
}

// The nodes to be visited, the first last.
struct queue {
    int n;
    uint32_t node[SHIFT_MOST];
};

static bool expect_readers(struct queue *q, const struct readers *r, ir_id v)
{
    if (r->is_result[v])
        return false;
    for (uint32_t i = r->first[v]; i < r->first[v + 1]; i++) {
        int at = q->n;
        while (at > 0 && q->node[at - 1] < r->node[i])
            at--;
        if (at > 0 && q->node[at - 1] == r->node[i])
            continue;
        if (q->n == SHIFT_MOST)
            return false;
        memmove(q->node + at + 1, q->node + at, (size_t)(q->n++ - at) * sizeof *q->node);
        q->node[at] = r->node[i];
    }
    return true;
}

struct finder {
    const struct ir_graph *g;
    struct arena *arena;
    struct readers readers;
    struct shift_slope **of;
    bool *tried, *found;
};

static bool follow(struct finder *f, ir_id m, struct queue *visited)
{
    struct search s = {.arena = f->arena, .left = SHIFT_MOST};
    struct shift_frame top = {.g = f->g, .of = f->of};
    struct queue q = {0};
    struct shift_slope one = {.plus = 1};
    for (int k = 0; k < ir_rank_of(f->g, m); k++)
        one.axis[k] = ir_dims_of(f->g, m)[k] == 1 ? -1 : (int8_t)k;
    f->of[m] = &one;
    bool goes = expect_readers(&q, &f->readers, m);
    while (goes && q.n && visited->n < SHIFT_MOST) {
        const struct ir_node *n = &f->g->nodes.at[q.node[--q.n]];
        visited->node[visited->n++] = q.node[q.n];
        goes = visit(&s, &top, n);
        for (uint32_t i = 0; i < n->n_out && goes; i++)
            goes = !f->of[n->out + i] || expect_readers(&q, &f->readers, n->out + i);
    }
    return goes && q.n == 0;
}

static bool cancels(struct finder *f, ir_id m)
{
    if (f->tried[m])
        return f->found[m];
    f->tried[m] = true;
    struct arena_mark mark = arena_mark(f->arena);
    struct queue visited = {0};
    f->found[m] = follow(f, m, &visited);
    f->of[m] = NULL;
    for (int i = 0; i < visited.n; i++) {
        const struct ir_node *n = &f->g->nodes.at[visited.node[i]];
        memset(f->of + n->out, 0, n->n_out * sizeof *f->of);
    }
    arena_rewind(f->arena, mark);
    return f->found[m];
}

// What v repeats first, with all its uses; then v for itself.
static bool try_shift(struct finder *f, ir_id v, int64_t count)
{
    const struct ir_node *n = ir_node_of(f->g, v);
    if (!dtype_is_float(ir_dtype_of(f->g, v)) || n->op == IR_const || n->op == IR_iota)
        return false;
    if ((shift_repeats((enum ir_op)n->op) || n->op == IR_neg) &&
        try_shift(f, ir_operand(f->g, n, 0), count))
        return true;
    return ir_count_of(f->g, v) < count && cancels(f, v);
}

static bool adds(const struct ir_node *n)
{
    return n->op == IR_add || n->op == IR_sub || n->op == IR_fma;
}

// g with equal values as one, so that what was written twice is one m; map is from values of g.
static const struct ir_graph *share(const struct ir_graph *g, ir_id *map)
{
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_CSE);
    pass_copy_values(&b, g, map);
    pass_copy_outputs(&b, g, map);
    return b.status == JOT_OK ? ir_finish(&b) : NULL;
}

static void search(struct finder *f)
{
    ir_for_each_node (f->g, n)
        for (uint32_t i = 0; i < n->n_in && adds(n); i++)
            try_shift(f, ir_operand(f->g, n, i), ir_count_of(f->g, n->out));
}

void pass_find_shifts(const struct ir_graph *g, bool *is_shift)
{
    struct arena *arena = g->module->arena;
    bool any = false;
    ir_for_each_node (g, n)
        any = any || adds(n);
    ir_id *map = any ? arena_array(arena, ir_id, g->values.count + 1) : NULL;
    const struct ir_graph *shared = any ? share(g, map) : NULL;
    if (!shared)
        return;
    uint32_t n = shared->values.count + 1;
    struct finder f = {.g = shared,
                       .arena = arena,
                       .readers = find_readers(arena, shared),
                       .of = arena_array(arena, struct shift_slope *, n),
                       .tried = arena_array(arena, bool, n),
                       .found = arena_array(arena, bool, n)};
    search(&f);
    for (ir_id v = 0; v < g->values.count; v++)
        is_shift[v] = f.found[map[v]];
}
