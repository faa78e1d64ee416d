// SPDX-License-Identifier: Apache-2.0
// Decides in which kernel each value is computed.
//
// Values are visited from the last to the first, so that everybody who wants a value is known: a
// demand says which group wants it and at which coordinates (axes.c).  Changes of index and cheap
// values are computed wherever they are wanted, their demands go on to their operands.  Any other
// value joins the group that wants it if all demands are at the same coordinates and the loops of the group
// allow it (frame.c); groups that want it at the same coordinates are merged first.  What fits nowhere
// gets memory and a group of its own.
//
// Groups have ranks, larger for those whose results others read.  A group is merged or gets a
// result only when the ranks stay in order, which rules out cycles without a search.
#include "schedule/group/group.h"
#include "schedule/library/library.h"

#include "base/count.h"

uint32_t group_root(const struct schedule *s, uint32_t g)
{
    while (s->groups.at[g].same != g)
        g = s->groups.at[g].same;
    return g;
}

// Whether the group computes nothing but its root, from operands in memory.
static bool is_whole(const struct group *g)
{
    return g->kind == GROUP_GEMM || g->kind == GROUP_LIBRARY || g->kind == GROUP_EFFECT ||
           (g->kind == GROUP_CONTROL && !g->resident);
}

// Whether the loops of the group are given: it takes what may be computed in any.
static bool has_own_loops(const struct group *g)
{
    return g->kind == GROUP_UPDATE || g->kind == GROUP_CONTROL;
}

// ---- Groups

uint32_t group_make(struct schedule *s, enum group_kind kind, const demand_list *l)
{
    uint32_t g = s->groups.count;
    struct group group = {.same = g, .kind = kind, .feeder = UINT32_MAX};
    for (uint32_t i = 0; i < l->count; i++)
        if (group_at(s, l->at[i].group)->rank >= group.rank)
            group.rank = group_at(s, l->at[i].group)->rank + 1;
    for (uint32_t i = 0; i < l->count; i++)
        if (group_at(s, l->at[i].group)->feeder > group.rank)
            group_at(s, l->at[i].group)->feeder = group.rank;
    vec_push(s->scratch, &s->groups, group);
    return g;
}

// All elements of the value, or those that it folds, in units of cost.
static int64_t work_of_value(const struct schedule *s, ir_id v)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    int64_t count = value_count(s, node_is_folding(n) ? ir_operand(s->g, n, 0) : v), work;
    int cost = node_is_index(n) ? 0 : cost_of_op((enum ir_op)n->op, ir_dtype_of(s->g, v));
    return __builtin_mul_overflow(count, cost, &work) || work > COST_OF_KERNEL ? COST_OF_KERNEL
                                                                               : work;
}

static void add_value(const struct schedule *s, struct group *g, ir_id v)
{
    g->ops += (uint32_t)group_ops_of(s, v);
    g->work += work_of_value(s, v);
}

static void add_list(struct schedule *s, struct group *to, const struct group *from)
{
    for (uint32_t i = 0; i < from->constraints.count; i++)
        vec_push(s->scratch, &to->constraints, from->constraints.at[i]);
    for (uint32_t i = 0; i < from->arithmetic.count; i++)
        vec_push(s->scratch, &to->arithmetic, from->arithmetic.at[i]);
}

// Whether the two groups can run at the same time: no result goes from one to the other.
static bool align_ranks(const struct group *a, const struct group *b, uint32_t *rank)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    return (a->rank == *rank || *rank < a->feeder) && (b->rank == *rank || *rank < b->feeder);
}

static bool merge_groups(struct schedule *s, const struct demand *x, const struct demand *y)
{
    struct group *a = group_at(s, x->group), *b = group_at(s, y->group);
    struct atoms united;
    uint32_t rank;
    const char *reason;
    if (a->kind != GROUP_KERNEL || b->kind != GROUP_KERNEL || s->options->separate ||
        a->is_alone || b->is_alone || a->ops + b->ops > COST_KERNEL_OPS ||
        !align_ranks(a, b, &rank) || !axes_unify(&s->axes, x->view, y->view, &united))
        return false;
    struct group merged = *a;
    memset(&merged.constraints, 0, sizeof merged.constraints);
    memset(&merged.arithmetic, 0, sizeof merged.arithmetic);
    add_list(s, &merged, a);
    add_list(s, &merged, b);
    merged.work += b->work;
    if (!group_frame(s, &merged, &reason)) {
        axes_separate(&s->axes, united);
        return false;
    }
    merged.rank = rank;
    merged.feeder = a->feeder < b->feeder ? a->feeder : b->feeder;
    merged.ops += b->ops;
    for (uint32_t i = 0; i < b->roots.count; i++)
        vec_push(s->scratch, &merged.roots, b->roots.at[i]);
    for (uint32_t i = 0; i < b->reduced.count; i++)
        vec_push(s->scratch, &merged.reduced, b->reduced.at[i]);
    *a = merged;
    b->same = x->group;
    return true;
}

// One group that wants a value at two coordinates may want it at one: loops of folds that are done one
// after the other are made the same.
static bool unite_in_group(struct schedule *s, const struct demand *x, const struct demand *y)
{
    struct group *g = group_at(s, x->group);
    struct atoms united;
    const char *reason;
    if (g->kind != GROUP_KERNEL || !axes_unify(&s->axes, x->view, y->view, &united))
        return false;
    if (group_frame(s, g, &reason))
        return true;
    axes_separate(&s->axes, united);
    group_frame(s, g, &reason);
    return false;
}

// The demands after groups were merged and loops united.  A value that is only read (reads) asks
// for no union inside of a group.
static demand_list gather_demands(struct schedule *s, ir_id v, bool reads)
{
    demand_list l = group_demands_on(s, v);
    if (l.count < 2 || l.count > COST_DEMANDS || s->options->separate)
        return l;
    bool changed = false;
    for (uint32_t i = 1; i < l.count; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint32_t a = group_root(s, l.at[k].group), b = group_root(s, l.at[i].group);
            struct demand x = l.at[k], y = l.at[i];
            x.group = a;
            y.group = b;
            if (a != b ? merge_groups(s, &x, &y)
                       : !reads && !axes_view_equal(&s->axes, x.view, y.view) &&
                             unite_in_group(s, &x, &y))
                changed = true;
        }
    return changed ? group_demands_on(s, v) : l;
}

// ---- Joining

static struct constraint constraint_of(struct schedule *s, ir_id v, const struct demand *d)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    struct constraint c = {.kind = CONSTRAINT_EXPENSIVE, .value = v, .outer = d->outer};
    c.kept = axes_dependence(&s->axes, axes_of_view(&s->axes, d->view));
    c.context = d->context;
    c.around = d->around;
    c.stored = d->stored;
    if (node_is_folding(n)) {
        c.kind = CONSTRAINT_REDUCE;
        c.is_used = true;
        c.folded = s->folded_of[v];
        c.is_inside = !axes_include(
            &s->axes, c.kept, axes_leaves(&s->axes, axes_dependence(&s->axes, d->context)));
    }
    return c;
}

// Whether an equal or stronger constraint is there.
static bool is_constrained(struct schedule *s, struct group *g, const struct constraint *c)
{
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *old = &g->constraints.at[i];
        if (old->kind == CONSTRAINT_EXPENSIVE && old->outer == c->outer &&
            axes_equal(&s->axes, old->kept, c->kept) &&
            axes_equal(&s->axes, old->context, c->context))
            return true;
    }
    return false;
}

static bool has_distinct_axes(struct schedule *s, struct view v)
{
    struct atoms a = axes_of_view(&s->axes, v);
    for (uint32_t i = 0; i < a.count; i++) {
        if (s->axes.atoms.at[a.at[i]].is_derived)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (a.at[i] == a.at[k])
                return false;
    }
    return true;
}

// The same coordinates by all demands: one group, one view.
static bool have_one_view(struct schedule *s, const demand_list *l)
{
    for (uint32_t i = 1; i < l->count; i++)
        if (l->at[i].group != l->at[0].group ||
            !axes_view_equal(&s->axes, l->at[i].view, l->at[0].view))
            return false;
    return l->count > 0;
}

// Whether all operands are there for others too, so that a kernel that computes the node need not
// compute more.  Such nodes may overfill a kernel: in a gradient they lead from a kernel on the way
// back to values of the way there, and where kernels end on the two ways has nothing in common.
static bool ends_chain(const struct schedule *s, const struct ir_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (s->uses[ir_operand(s->g, n, i)] < 2)
            return false;
    return true;
}

// Lets group g, the one at l->at[0], compute v; stores it too if as_root.
static bool join_group(struct schedule *s, ir_id v, const demand_list *l, uint32_t n_same,
                       bool as_root, const char **reason)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    struct group *g = group_at(s, l->at[0].group);
    uint32_t before = g->constraints.count, before_arithmetic = g->arithmetic.count;
    *reason = g->kind == GROUP_GEMM      ? "operand of a library call"
              : g->kind == GROUP_LIBRARY ? "operand of a routine"
              : g->kind == GROUP_EFFECT  ? "operand of an effect"
              : is_whole(g)              ? "operand of a loop or branch"
                                         : "kernel is full";
    uint32_t room = COST_KERNEL_OPS + (ends_chain(s, n) ? COST_KERNEL_SLACK : 0);
    if (is_whole(g) || g->ops + (uint32_t)group_ops_of(s, v) > room)
        return false;
    if (has_own_loops(g) && (as_root || node_is_folding(n) ||
                             cost_is_expensive((enum ir_op)n->op, ir_dtype_of(s->g, v)))) {
        *reason = g->kind == GROUP_UPDATE ? "operand of an update" : "operand of a loop";
        return false;
    }
    *reason = "reads a large matrix, once for all rows";
    for (uint32_t i = 0; i < n_same; i++)
        if (dot_rereads_matrix(s, v, &l->at[i]))
            return false;
    *reason = "read at other coordinates than it is written";
    if (as_root && !has_distinct_axes(s, l->at[0].view))
        return false;
    bool folds = node_is_folding(n);
    bool is_expensive = cost_is_expensive((enum ir_op)n->op, ir_dtype_of(s->g, v));
    if (folds)
        s->folded_of[v] = axes_fold_atoms(&s->axes, n);
    for (uint32_t i = 0; i < n_same; i++) {
        struct constraint c = constraint_of(s, v, &l->at[i]);
        if (folds || (is_expensive && !is_constrained(s, g, &c)))
            vec_push(s->scratch, &g->constraints, c);
        c.kind = CONSTRAINT_CHEAP;
        if (!folds && !is_expensive && !has_own_loops(g) && s->cheap[v] > COST_REPEAT_OPS)
            vec_push(s->scratch, &g->arithmetic, c);
    }
    if (as_root)
        vec_push(s->scratch, &g->constraints,
                 (struct constraint){.kind = CONSTRAINT_ROOT,
                                     .value = v,
                                     .outer = IR_NONE,
                                     .kept = axes_of_view(&s->axes, l->at[0].view),
                                     .context = axes_of_view(&s->axes, l->at[0].view),
                                     .around = axes_of_view(&s->axes, l->at[0].view)});
    bool asks = g->constraints.count != before || g->arithmetic.count != before_arithmetic;
    uint32_t ops = g->ops;
    int64_t work = g->work;
    add_value(s, g, v);
    if (asks && !group_frame(s, g, reason)) {
        g->constraints.count = before;
        g->arithmetic.count = before_arithmetic;
        g->ops = ops;
        g->work = work;
        return false;
    }
    if (folds)
        vec_push(s->scratch, &g->reduced, v);
    if (as_root)
        vec_push(s->scratch, &g->roots, v);
    s->decision[v] = DECIDE_MEMBER;
    s->group_of[v] = l->at[0].group;
    s->view_of[v] = l->at[0].view;
    s->is_stored[v] |= as_root;
    for (uint32_t i = 0; i < n_same; i++) {
        if (folds) {
            group_pass_on_fold(s, v, l->at[0].group, l->at[0].view);
            break;
        }
        struct demand d = l->at[i];
        if (as_root)
            d.stored = axes_of_view(&s->axes, d.view);
        group_pass_on(s, v, &d);
    }
    return true;
}

// Demands of one group first, at one view; returns how many, 0 when the group has several views.
static uint32_t sort_out(struct schedule *s, demand_list *l, uint32_t g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i].group == g) {
            struct demand d = l->at[n];
            l->at[n++] = l->at[i];
            l->at[i] = d;
        }
    for (uint32_t i = 1; i < n; i++)
        if (!axes_view_equal(&s->axes, l->at[i].view, l->at[0].view))
            return 0;
    return n;
}

// Stores v from within one of the groups that want it; the others load it.
static bool join_and_store(struct schedule *s, ir_id v, demand_list *l, const char **reason)
{
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t g = l->at[i].group, rank = group_at(s, g)->rank;
        bool ranks_fit = true;
        for (uint32_t k = 0; k < l->count; k++)
            if (l->at[k].group != g && group_at(s, l->at[k].group)->rank >= rank)
                rank = group_at(s, l->at[k].group)->rank + 1;
        ranks_fit = rank == group_at(s, g)->rank || rank < group_at(s, g)->feeder;
        if (!ranks_fit)
            continue;
        demand_list copy = {0};
        for (uint32_t k = 0; k < l->count; k++)
            vec_push(s->scratch, &copy, l->at[k]);
        uint32_t n = sort_out(s, &copy, g);
        if (!n || !join_group(s, v, &copy, n, true, reason))
            continue;
        group_at(s, g)->rank = rank;
        for (uint32_t k = n; k < copy.count; k++)
            if (group_at(s, copy.at[k].group)->feeder > rank)
                group_at(s, copy.at[k].group)->feeder = rank;
        return true;
    }
    return false;
}

// ---- Groups of their own

static void store_alone(struct schedule *s, ir_id v, const demand_list *l, const char *reason)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    uint32_t g = group_make(s, GROUP_KERNEL, l);
    struct demand d = {.group = g, .outer = IR_NONE, .view = axes_fresh_view(&s->axes, v)};
    struct constraint c = {.kind = CONSTRAINT_ROOT, .value = v, .outer = IR_NONE};
    d.context = d.around = axes_of_view(&s->axes, d.view);
    c.kept = c.context = c.around = d.context;
    s->decision[v] = DECIDE_MEMBER;
    s->group_of[v] = g;
    s->view_of[v] = d.view;
    s->is_stored[v] = true;
    if (node_is_folding(n)) {
        c.kind = CONSTRAINT_REDUCE;
        c.is_root = true;
        c.folded = s->folded_of[v] = axes_fold_atoms(&s->axes, n);
        vec_push(s->scratch, &group_at(s, g)->reduced, v);
    } else if (node_is_scan(n)) {
        c.folded = d.view.dims[ir_attr_int(n->attrs, IR_KEY_axis)];
        c.kept = axes_minus(&s->axes, c.kept, c.folded);
    }
    struct group *group = group_at(s, g);
    vec_push(s->scratch, &group->constraints, c);
    vec_push(s->scratch, &group->roots, v);
    add_value(s, group, v);
    group->ops = node_is_index(n) ? 1 : group->ops;
    group->reason = reason;
    const char *unused;
    group_frame(s, group, &unused);
    if (node_is_folding(n))
        group_pass_on_fold(s, v, g, d.view);
    else
        group_pass_on(s, v, &d);
}

// ---- Values

// Whether computing it in each kernel that wants it is cheap beside storing it.
static bool is_cheap_to_repeat(const struct schedule *s, ir_id v)
{
    static const uint8_t most[SCHEDULE_REPEAT_KINDS] = {COST_REPEAT_OPS, 1,
                                                        3 * COST_REPEAT_OPS};
    return s->cheap[v] <= most[s->options->repeat];
}

// Whether a value is so much larger than what it is made of that computing it again is better than
// storing and loading it.
static bool is_expanded(const struct schedule *s, ir_id v)
{
    int64_t bytes = value_count(s, v) * dtype_get(ir_dtype_of(s->g, v))->bytes;
    return s->options->repeat != SCHEDULE_STORES && s->cone_ops[v] <= COST_REPEAT_EXPANDED &&
           bytes >= (s->options->large ? 64 : COST_LARGE_BYTES) &&
           s->cone_bytes[v] <= bytes / COST_EXPANSION;
}

static bool may_repeat(struct schedule *s, ir_id v, const demand_list *l)
{
    bool is_cheap = !s->is_narrow[v] && is_cheap_to_repeat(s, v);
    if (s->options->separate || (!is_cheap && l->count > COST_DEMANDS))
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        if (is_whole(group_at(s, l->at[i].group)) ||
            group_at(s, l->at[i].group)->ops + (uint32_t)group_ops_of(s, v) > COST_KERNEL_OPS)
            return false;
    bool is_made_once = l->count > 2 || !is_expanded(s, v);
    return is_cheap || (is_made_once && group_find_narrow(s, v));
}

static void repeat(struct schedule *s, ir_id v, const demand_list *l)
{
    s->decision[v] = DECIDE_REPEAT;
    for (uint32_t i = 0; i < l->count; i++) {
        add_value(s, group_at(s, l->at[i].group), v);
        group_pass_on(s, v, &l->at[i]);
    }
}

// Computes a dear value at all coordinates where it is wanted, if the groups allow it at each.
static bool repeat_expanded(struct schedule *s, ir_id v, const demand_list *l)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    const char *reason;
    if (l->count > 2 || n->n_out != 1 || s->is_narrow[v] || !is_expanded(s, v))
        return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct group *g = group_at(s, l->at[i].group);
        if (g->kind != GROUP_KERNEL ||
            g->ops + 1 + (uint32_t)group_ops_of(s, v) > COST_KERNEL_OPS)
            return false;
    }
    struct atoms *folded = arena_array(s->scratch, struct atoms, l->count + 1);
    struct group *asked[2] = {NULL};
    for (uint32_t i = 0; i < l->count; i++) {
        struct group *g = group_at(s, l->at[i].group);
        if (node_is_folding(n))
            s->folded_of[v] = folded[i] = axes_fold_atoms(&s->axes, n);
        struct constraint c = constraint_of(s, v, &l->at[i]);
        if (s->cheap[v] != COST_NEVER || (!node_is_folding(n) && is_constrained(s, g, &c)))
            continue;
        vec_push(s->scratch, &g->constraints, c);
        asked[i] = g;
        if (group_frame(s, g, &reason))
            continue;
        for (uint32_t k = 0; k <= i; k++)
            if (asked[k])
                asked[k]->constraints.count--;
        return false;
    }
    if (!node_is_folding(n)) {
        repeat(s, v, l);
        return true;
    }
    s->decision[v] = DECIDE_REPEAT;
    for (uint32_t i = 0; i < l->count; i++) {
        group_at(s, l->at[i].group)->ops++;
        group_at(s, l->at[i].group)->work += work_of_value(s, v);
        s->folded_of[v] = folded[i];
        group_pass_on_fold(s, v, l->at[i].group, l->at[i].view);
    }
    return true;
}

static bool is_chain_short(const struct schedule *s, const demand_list *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i].depth >= COST_CHAIN || s->groups.at[l->at[i].group].ops >= COST_KERNEL_OPS)
            return false;
    return true;
}

static void decide_index(struct schedule *s, ir_id v)
{
    demand_list l = group_demands_on(s, v);
    if (ir_node_of(s->g, v)->op == IR_const)
        s->decision[v] = DECIDE_REPEAT;
    else if ((s->is_output[v] || s->is_forced[v]) && node_is_update(ir_node_of(s->g, v)))
        group_store_update(s, v, &l);
    else if ((s->is_output[v] || s->is_forced[v]) && group_store_in_loop(s, v, &l))
        return;
    else if (group_store_parts(s, v, &l))
        return;
    else if (s->is_output[v] || s->is_forced[v])
        store_alone(s, v, &l, s->part_of[v] == IR_NONE ? "result" : "a part of a result");
    else if (s->is_old[v])
        store_alone(s, v, &l, "read before an update");
    else if (!is_chain_short(s, &l))
        store_alone(s, v, &l, "kernel is full");
    else
        repeat(s, v, &l);
}

// Whether some demand would compute elements several times that cost more than a load.
static bool is_dear_to_repeat(const struct schedule *s, ir_id v, const demand_list *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i].is_repeated)
            return !is_cheap_to_repeat(s, v);
    return false;
}

static void decide_value(struct schedule *s, ir_id v)
{
    const char *reason = "result";
    bool stored = s->is_output[v] || s->is_forced[v];
    if (node_is_scan(ir_node_of(s->g, v))) {
        demand_list all = group_demands_on(s, v);
        store_alone(s, v, &all, "prefix sum");
        return;
    }
    if (s->is_apart[v]) {
        demand_list all = gather_demands(s, v, true);
        store_alone(s, v, &all, "takes less time apart");
        group_at(s, s->group_of[v])->is_alone = true;
        return;
    }
    demand_list l = gather_demands(s, v, false);
    if (group_has_few_terms(s, v, &l) && have_one_view(s, &l) &&
        join_group(s, v, &l, l.count, false, &reason))
        return;
    if (group_store_library(s, v, &l))
        return;
    if (group_is_apart(s, v, &l)) {
        store_alone(s, v, &l, "a product of few terms");
        return;
    }
    if (node_is_update(ir_node_of(s->g, v))) {
        group_store_update(s, v, &l);
        return;
    }
    if (s->is_old[v]) {
        store_alone(s, v, &l, "read before an update");
        return;
    }
    if (is_dear_to_repeat(s, v, &l)) {
        store_alone(s, v, &l, "gathered from");
        return;
    }
    if (l.count && !s->options->separate) {
        if (have_one_view(s, &l) && join_group(s, v, &l, l.count, stored, &reason))
            return;
        if (!stored && l.count > 1 && may_repeat(s, v, &l)) {
            repeat(s, v, &l);
            return;
        }
        if (!stored && l.count > 1 && repeat_expanded(s, v, &l))
            return;
        if (!have_one_view(s, &l)) {
            reason = "wanted at several coordinates";
            if (l.count <= COST_DEMANDS && join_and_store(s, v, &l, &reason))
                return;
        }
    }
    store_alone(s, v, &l, reason);
}

// Groups that read the same parameter over the same loops become one.
static void merge_readers(struct schedule *s, ir_id v)
{
    if (value_count(s, v) >= (s->options->large ? 2 : COST_MERGE))
        gather_demands(s, v, true);
}

void group_values(struct schedule *s)
{
    // A result that is a constant is copied: no kernel makes it.
    for (uint32_t i = 0; i < s->g->outputs.count; i++)
        if (ir_node_of(s->g, s->g->outputs.at[i])->op != IR_const)
            s->is_output[s->g->outputs.at[i]] = true;
    group_count(s);
    group_find_old(s);
    for (uint32_t i = s->g->nodes.count; i-- > 0;) {
        const struct ir_node *n = &s->g->nodes.at[i];
        if (node_is_steps(n)) {
            group_store_steps(s, n);
            continue;
        }
        for (uint32_t k = n->n_out; k-- > 0;) {
            ir_id v = n->out + k;
            if (s->first_demand[v] == NONE && !s->is_output[v] && s->part_of[v] == IR_NONE)
                continue;
            if (n->op == IR_param)
                merge_readers(s, v);
            else if (node_is_index(n))
                decide_index(s, v);
            else
                decide_value(s, v);
        }
    }
    group_order_axes(s);
}
