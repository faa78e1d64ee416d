// SPDX-License-Identifier: Apache-2.0
// Which axes of a loop are its lanes, once all ops have been looked at (lanes_ops.c).
#include "passes/analysis/lanes.h"

#include "ir/control.h"

// Values of so few elements, or of so small a part of the largest, need not have the lanes: every
// lane computes them.
#define SMALL_COUNT 8
#define SMALL_PART 16
#define LONG_ENOUGH 16 // lanes, for vectors along them

// Calls f for every value of the graph and of its bodies until it says true; whether it did.
static bool any_view(struct lanes *l, struct lane_graph *f,
                     bool (*holds)(struct lanes *l, const struct ir_node *n, struct view v))
{
    for (uint32_t at = f->first; at < f->end; at++) {
        const struct ir_node *n = &f->g->nodes.at[at];
        for (uint32_t k = 0; k < n->n_out; k++)
            if (holds(l, n, f->view[n->out + k]))
                return true;
        struct lane_graph **bodies = f->bodies[at];
        for (int i = 0; bodies && bodies[i]; i++)
            if (any_view(l, bodies[i], holds))
                return true;
    }
    return false;
}

// An axis cannot be the same lane twice.
static bool mix_repeated(struct lanes *l, const struct ir_node *n, struct view v)
{
    struct atoms a = axes_of_view(&l->space, v);
    for (uint32_t i = 0; i < a.count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (a.at[i] == a.at[k])
                lanes_mix(l, n, (struct atoms){.count = 1, .at = &a.at[i]});
    return false;
}

// ---- The lanes

// What has the lanes: one step of every result of the loop or branch, or of those in a function of
// several.  Without carries the steps are lanes too.
static void add_subjects(struct lanes *l, const struct lane_graph *f, const struct ir_node *n)
{
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL) {
        struct lane_graph *body = f->bodies[n - f->g->nodes.at][0];
        ir_for_each_node (body->g, m)
            if (ir_op_class((enum ir_op)m->op) == IR_CLASS_CONTROL)
                add_subjects(l, body, m);
        return;
    }
    uint32_t n_carry = n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_carry : 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        struct view v = f->view[n->out + k];
        vec_push(l->space.scratch, &l->subjects, n_carry && k >= n_carry ? lanes_row(v) : v);
    }
}

static int64_t count_of(struct lanes *l, struct view v)
{
    return axes_product(&l->space, axes_of_view(&l->space, v));
}

static struct view largest(struct lanes *l)
{
    struct view best = {0};
    for (uint32_t k = 0; k < l->subjects.count; k++)
        if (count_of(l, l->subjects.at[k]) > count_of(l, best))
            best = l->subjects.at[k];
    return best;
}

static struct atoms unmixed(struct lanes *l, struct atoms a)
{
    VEC(atom_id) out = {0};
    for (uint32_t i = 0; i < a.count; i++)
        if (!l->space.atoms.at[a.at[i]].is_derived)
            vec_push(l->space.scratch, &out, a.at[i]);
    return (struct atoms){.count = out.count, .at = out.at};
}

static bool list_view(struct lanes *l, const struct ir_node *n, struct view v)
{
    struct atoms a = axes_of_view(&l->space, v);
    (void)n;
    for (uint32_t i = 0; i < a.count; i++) {
        struct lane_uses *uses = &l->uses[a.at[i]];
        struct lane_use *use = arena_new(l->space.scratch, struct lane_use);
        use->view = v;
        *(uses->last ? &uses->last->next : &uses->first) = use;
        uses->last = use;
    }
    return false;
}

// Makes a the same as b, unless some value has both.
static bool unite(struct lanes *l, atom_id a, atom_id b)
{
    struct axes *s = &l->space;
    if (!l->uses) {
        l->uses = arena_array(s->scratch, struct lane_uses, s->atoms.count);
        any_view(l, l->top, list_view);
    }
    struct lane_uses *of_a = &l->uses[a], *of_b = &l->uses[b];
    for (const struct lane_use *use = of_a->first; use; use = use->next)
        if (axes_contain(s, axes_of_view(s, use->view), b))
            return false;
    s->atoms.at[a].same = b;
    if (of_a->first) {
        *(of_b->last ? &of_b->last->next : &of_b->first) = of_a->first;
        of_b->last = of_a->last;
    }
    return true;
}

// Carries that have nothing to do with each other may have lanes of the same extents: they are made
// the same, unless some value has both.
static void align(struct lanes *l, struct view v)
{
    struct axes *s = &l->space;
    struct atoms missing = axes_minus(s, l->lanes, axes_of_view(s, v));
    for (uint32_t i = 0; i < missing.count; i++) {
        struct atoms own = unmixed(l, axes_minus(s, axes_of_view(s, v), l->lanes));
        for (uint32_t k = 0; k < own.count; k++) {
            bool alike = s->atoms.at[own.at[k]].extent == s->atoms.at[missing.at[i]].extent;
            if (alike && unite(l, own.at[k], missing.at[i]))
                break;
        }
    }
}

static void choose_lanes(struct lanes *l)
{
    struct view most = largest(l);
    int64_t count = count_of(l, most);
    if (count == 0)
        return;
    l->lanes = unmixed(l, axes_of_view(&l->space, most));
    for (uint32_t k = 0; k < l->subjects.count; k++) {
        struct view v = l->subjects.at[k];
        int64_t own = count_of(l, v);
        align(l, v);
        if (own <= SMALL_COUNT || own <= count / SMALL_PART)
            continue;
        l->lanes = axes_intersect(&l->space, l->lanes, axes_of_view(&l->space, v));
    }
}

// Loops of one graph have their results in the same lists.
static struct lane_graph *top_of(struct axes *s, const struct ir_node *n)
{
    struct lane_graph *top = arena_new(s->scratch, struct lane_graph);
    const struct ir_graph *g = s->g;
    if (!s->loops)
        s->loops = arena_new(s->scratch, struct lane_graph);
    if (s->loops->g != g)
        *s->loops = (struct lane_graph){
            .g = g,
            .view = arena_array(s->scratch, struct view, g->values.count),
            .bodies = arena_array(s->scratch, struct lane_graph **, g->nodes.count + 1)};
    *top = *s->loops;
    top->first = (uint32_t)(n - g->nodes.at);
    top->end = top->first + 1;
    return top;
}

struct lanes *lanes_of(struct axes *s, const struct ir_node *n)
{
    struct arena *scratch = s->scratch;
    const struct ir_graph *g = s->g;
    struct lanes *l = arena_new(scratch, struct lanes);
    *l = (struct lanes){.space = {.scratch = scratch, .g = g}, .module = g->module};
    l->top = top_of(s, n);
    struct view *in = arena_array(scratch, struct view, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = axes_fresh_view(&l->space, ir_operand(g, n, i));
    l->operands = in;
    lanes_look(l, l->top, n, in);
    any_view(l, l->top, mix_repeated);
    add_subjects(l, l->top, n);
    choose_lanes(l);
    return l;
}

bool lanes_keep_tested(struct lanes *l, const struct ir_node *n)
{
    if (n->op != IR_while)
        return false;
    struct lane_graph *test = l->top->bodies[n - l->top->g->nodes.at][0];
    struct view v = test->view[test->g->outputs.at[0]];
    struct atoms tested = axes_intersect(&l->space, l->lanes, axes_of_view(&l->space, v)),
                 others = axes_minus(&l->space, l->lanes, tested);
    for (uint32_t i = 0; i < others.count; i++)
        if (l->space.atoms.at[others.at[i]].extent >= LONG_ENOUGH)
            return false;
    if (!others.count || axes_product(&l->space, tested) < LONG_ENOUGH)
        return false;
    l->lanes = tested;
    return true;
}

bool lanes_lead(const struct ir_graph *g, const struct ir_node *n)
{
    struct axes s = {.scratch = g->module->arena, .g = g};
    struct lanes *l = lanes_of(&s, n);
    bool lead = true;
    for (uint32_t k = 0; k < l->subjects.count; k++)
        for (int d = 0; d < ir_while_of(n).batched; d++) {
            struct atoms dim = axes_leaves(&l->space, l->subjects.at[k].dims[d]);
            lead &= unmixed(l, dim).count == dim.count;
        }
    return lead;
}

uint32_t lanes_find_blocks(const struct lanes *l, int64_t block)
{
    for (uint32_t i = l->lanes.count; i-- > 0;) {
        int64_t extent = l->space.atoms.at[l->lanes.at[i]].extent;
        if (extent > block && extent % block == 0)
            return i;
    }
    return l->lanes.count;
}

struct atoms lanes_inner(struct lanes *l, struct atoms dim)
{
    return axes_minus(&l->space, dim, l->lanes);
}

int64_t lanes_inner_count(struct lanes *l, struct view v)
{
    return axes_product(&l->space, lanes_inner(l, axes_of_view(&l->space, v)));
}

bool lanes_only_move(struct lanes *l, const struct lane_graph *f, ir_id v)
{
    const struct ir_node *n = ir_node_of(f->g, v);
    if (n->op != IR_transpose && n->op != IR_reshape)
        return false;
    struct axes *s = &l->space;
    struct view x = f->view[ir_operand(f->g, n, 0)], y = f->view[v];
    struct atoms a = axes_leaves(s, lanes_inner(l, axes_of_view(s, x)));
    struct atoms b = axes_leaves(s, lanes_inner(l, axes_of_view(s, y)));
    return a.count == b.count && a.count && !memcmp(a.at, b.at, a.count * sizeof *a.at);
}

const struct ir_node *lanes_lost_to(struct lanes *l)
{
    const struct ir_node *by = NULL;
    int64_t most = 0;
    for (uint32_t k = 0; k < l->subjects.count; k++) {
        struct atoms a = axes_of_view(&l->space, l->subjects.at[k]);
        for (uint32_t i = 0; i < a.count; i++) {
            const struct atom *atom = &l->space.atoms.at[a.at[i]];
            if (!atom->is_derived || atom->extent <= most)
                continue;
            most = atom->extent;
            by = l->mixers.at[*atom->from];
        }
    }
    return by;
}
