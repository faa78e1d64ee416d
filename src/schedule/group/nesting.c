// SPDX-License-Identifier: Apache-2.0
// How often a kernel would compute what is in it.
//
// A value is computed in the innermost loop that it depends on, of those around what it is wanted
// for.  It is wanted in several loops at times, and a loop runs as often as all that are around it:
//
//     fold i { fold j { %x = tanh ... } -> %u ... }         %x: i * j times,
//     map i, k { fold j { %x = tanh ... } -> %u ... }       and i * k * j times here
//
// Counts are of loops, not of the paths to them, so they are found in one sweep from results to
// what these are made of, however deep folds are in folds.  Loops that are one in the kernel, those
// of results side by side and of reductions that share a loop, are one here.
#include "base/count.h"
#include "schedule/internal.h"

#include <stdlib.h>

struct loop_set { // by number
    uint32_t count;
    const uint32_t *at;
};

struct loop {
    struct atoms own;
    uint32_t depth; // of reductions for each other; 0: no reduction
    struct loop_set up;
    int64_t runs; // of its body
};

struct nested { // a value
    ir_id value;
    uint32_t depth;
    uint32_t inside; // REDUCE: the loop that it is
    struct loop_set loops;
};

struct nesting {
    struct schedule *s;
    const struct group *g;
    VEC(struct loop) loops; // the points, then the fold of the group if there is one
    VEC(struct nested) values;
};

static struct loop_set add_to_set(struct nesting *n, struct loop_set p, uint32_t loop)
{
    for (uint32_t i = 0; i < p.count; i++)
        if (p.at[i] == loop)
            return p;
    uint32_t *at = arena_array(n->s->scratch, uint32_t, p.count + 1);
    if (p.count)
        memcpy(at, p.at, p.count * sizeof *at);
    at[p.count] = loop;
    return (struct loop_set){p.count + 1, at};
}

// The loop, or one that is the same.
static uint32_t add_loop(struct nesting *n, struct loop l)
{
    for (uint32_t i = 0; i < n->loops.count; i++) {
        const struct loop *x = &n->loops.at[i];
        if (x->depth == l.depth && x->own.count == l.own.count &&
            axes_include(&n->s->axes, x->own, l.own) && x->up.count == l.up.count &&
            (!l.up.count || !memcmp(x->up.at, l.up.at, l.up.count * sizeof *l.up.at)))
            return i;
    }
    vec_push(n->s->scratch, &n->loops, l);
    return n->loops.count - 1;
}

// Adds the innermost loops that a value of these atoms needs, from `loop` outwards.
static struct loop_set climb(struct nesting *n, struct loop_set p, uint32_t loop,
                             struct atoms kept)
{
    struct loop l = n->loops.at[loop];
    if (!l.up.count || axes_intersect(&n->s->axes, kept, l.own).count)
        return add_to_set(n, p, loop);
    for (uint32_t i = 0; i < l.up.count; i++)
        p = climb(n, p, l.up.at[i], kept);
    return p;
}

// The loop that is written for a result.
static uint32_t loop_of_result(struct nesting *n, struct atoms around)
{
    const struct group *g = n->g;
    uint32_t up = g->fold.count && axes_include(&n->s->axes, around, g->fold);
    struct atoms own =
        axes_minus(&n->s->axes, axes_minus(&n->s->axes, around, g->points), g->fold);
    own = axes_minus(&n->s->axes, own, g->unrolled);
    if (!own.count)
        return up;
    return add_loop(n, (struct loop){.own = own,
                                     .up = add_to_set(n, (struct loop_set){0}, up),
                                     .runs = count_times(n->loops.at[up].runs,
                                                         axes_product(&n->s->axes, own))});
}

// The loop that a reduction is: that of the group, unless it is wanted in there.  All of it that is
// written out is in one.
static uint32_t loop_of_reduction(struct nesting *n, const struct constraint *c,
                                  const struct nested *p)
{
    if (n->g->fold.count && !c->is_inside && axes_equal(&n->s->axes, c->folded, n->g->fold))
        return loop_of_result(n, axes_concat(&n->s->axes, c->kept, c->folded));
    struct loop l = {.own = c->folded, .depth = p->depth, .up = p->loops};
    for (uint32_t i = 0; i < p->loops.count; i++)
        l.runs = count_plus(l.runs, n->loops.at[p->loops.at[i]].runs);
    l.runs = count_times(l.runs, axes_product(&n->s->axes, c->folded));
    return add_loop(n, l);
}

static const struct nested *find_nested(const struct nesting *n, ir_id v)
{
    for (uint32_t i = 0; i < n->values.count; i++)
        if (n->values.at[i].value == v)
            return &n->values.at[i];
    return NULL;
}

// Finds the loops of a value by all its constraints; those of what it is wanted for are known.
static struct nested find_loops(struct nesting *n, uint32_t count,
                                const struct constraint *const *c)
{
    struct nested p = {.value = c[0]->value, .inside = NONE};
    const struct constraint *reduce = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct nested *outer =
            c[i]->outer == IR_NONE ? NULL : find_nested(n, c[i]->outer);
        bool is_inside = outer && outer->inside != NONE;
        uint32_t from = is_inside ? outer->inside : loop_of_result(n, c[i]->around);
        uint32_t depth = is_inside ? outer->depth + 1 : 1;
        p.depth = depth > p.depth ? depth : p.depth;
        p.loops = climb(n, p.loops, from, c[i]->kept);
        if (c[i]->stored.count)
            p.loops = climb(n, p.loops, loop_of_result(n, c[i]->stored), c[i]->kept);
        reduce = c[i]->kind == CONSTRAINT_REDUCE ? c[i] : reduce;
    }
    if (reduce)
        p.inside = loop_of_reduction(n, reduce, &p);
    return p;
}

// Elements that are computed.  Where a row keeps what a loop has computed, the next takes it from
// there (write/row.c).
static int64_t runs_of(struct nesting *n, const struct nested *p, struct atoms kept)
{
    int64_t runs = 0, elements = axes_product(&n->s->axes, kept);
    int64_t written_out =
        axes_product(&n->s->axes, axes_intersect(&n->s->axes, n->g->unrolled, kept));
    bool has_row = false;
    for (uint32_t i = 0; i < p->loops.count; i++) {
        int64_t r = count_times(n->loops.at[p->loops.at[i]].runs, written_out);
        bool fills = r == elements && !n->g->fold.count;
        if (!fills || !has_row)
            runs = count_plus(runs, r);
        has_row |= fills;
    }
    return runs;
}

// What it takes to compute an element, with all that is made for it alone, up to COST_DEAR_TERM.
static int64_t work_of_element(const struct schedule *s, ir_id v, int *visits)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    int64_t work = cost_of_op((enum ir_op)n->op, ir_dtype_of(s->g, v));
    for (uint32_t i = 0; i < n->n_in && work < COST_DEAR_TERM; i++) {
        ir_id x = ir_operand(s->g, n, i);
        const struct ir_node *of = ir_node_of(s->g, x);
        bool is_map = ir_op_class((enum ir_op)of->op) == IR_CLASS_MAP || node_is_index(of);
        if (is_map && value_count(s, x) >= value_count(s, v) && (*visits)-- > 0)
            work += work_of_element(s, x, visits);
    }
    return work;
}

// Whether loops of a GPU compute again what one of them stores for all of its elements, for no row of it has room in the
// memory of a block of threads: to read it takes less time where it is made of what is dear.
static bool is_stored_and_made_again(const struct nesting *n, const struct nested *p,
                                     uint32_t count, const struct constraint *const *c)
{
    enum { VISITS = 64 }; // of values that it is made of
    int64_t elements = axes_product(&n->s->axes, c[0]->kept), loops = 0;
    int visits = VISITS;
    int64_t row = axes_product(&n->s->axes, axes_minus(&n->s->axes, c[0]->kept, n->g->points));
    bool is_stored = false;
    // Columns, whose points come last, are cut apart by fission.c.
    for (uint32_t i = 0; i < count; i++)
        is_stored |= c[i]->kind == CONSTRAINT_ROOT && c[i]->around.count &&
                     !axes_contain(&n->s->axes, axes_leaves(&n->s->axes, n->g->points),
                                   c[i]->around.at[c[i]->around.count - 1]);
    for (uint32_t i = 0; i < p->loops.count; i++)
        loops += n->loops.at[p->loops.at[i]].runs == elements;
    return is_stored && loops > 1 && n->s->options->no_accumulation && !n->g->fold.count &&
           elements >= COST_OF_KERNEL &&
           row > COST_SHARED_BYTES / dtype_get(ir_dtype_of(n->s->g, p->value))->bytes &&
           work_of_element(n->s, p->value, &visits) >= COST_DEAR_TERM;
}

// What a value is wanted for comes later in the graph, and first here.
static int compare_values(const void *a, const void *b)
{
    const struct constraint *x = *(const struct constraint *const *)a;
    const struct constraint *y = *(const struct constraint *const *)b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->kind == y->kind ? 0 : x->kind == CONSTRAINT_REDUCE ? -1 : 1;
}

// The constraints of dear values and of arithmetic, those of a value together, reductions first.
static const struct constraint **in_order(struct schedule *s, const struct group *g,
                                          uint32_t count)
{
    const struct constraint **c = arena_array(s->scratch, const struct constraint *, count + 1);
    for (uint32_t i = 0; i < g->constraints.count; i++)
        c[i] = &g->constraints.at[i];
    for (uint32_t i = 0; i < g->arithmetic.count; i++)
        c[g->constraints.count + i] = &g->arithmetic.at[i];
    if (count)
        qsort(c, count, sizeof *c, compare_values);
    return c;
}

// Elements that are wanted, each once: not more than there are, where several loops want one, as those
// of windows do.
static int64_t elements_of(const struct schedule *s, const struct constraint *c)
{
    int64_t wanted = axes_product(&s->axes, c->kept), all = value_count(s, c->value);
    return c->kind != CONSTRAINT_CHEAP && all < wanted ? all : wanted;
}

bool group_repeats(struct schedule *s, const struct group *g)
{
    struct nesting n = {.s = s, .g = g};
    uint32_t count = g->constraints.count + g->arithmetic.count;
    const struct constraint **c = in_order(s, g, count);
    struct loop points = {.own = g->points, .runs = axes_product(&s->axes, g->points)};
    struct loop fold = {.own = g->fold,
                        .up = {1, &(uint32_t){0}},
                        .runs = count_times(points.runs, axes_product(&s->axes, g->fold))};
    vec_push(s->scratch, &n.loops, points);
    if (g->fold.count)
        vec_push(s->scratch, &n.loops, fold);
    int64_t once = 0, done = 0;
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && c[end]->value == c[i]->value;)
            end++;
        ir_id v = c[i]->value;
        struct nested p = find_loops(&n, end - i, c + i);
        vec_push(s->scratch, &n.values, p);
        if (is_stored_and_made_again(&n, &p, end - i, c + i))
            return true;
        int64_t price = cost_of_op((enum ir_op)ir_node_of(s->g, v)->op, ir_dtype_of(s->g, v));
        price = count_times(price, axes_product(&s->axes, c[i]->folded));
        int64_t own = elements_of(s, c[i]), runs = runs_of(&n, &p, c[i]->kept);
        once = count_plus(once, count_times(price, own));
        done = count_plus(done, count_times(price, runs));
        if (axes_product(&s->axes, c[i]->folded) >= COST_LONG_FOLD &&
            runs / COST_FOLD_AGAIN >= own && count_times(price, runs - own) > s->tiny)
            return true;
    }
    int64_t again = done - once;
    int64_t most = s->options->repeat == SCHEDULE_STORES    ? once / 4
                   : s->options->repeat == SCHEDULE_REPEATS ? count_times(4, once)
                                                            : once;
    return again > most && again > s->tiny;
}
