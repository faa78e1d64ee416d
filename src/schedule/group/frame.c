// SPDX-License-Identifier: Apache-2.0
// The loops around a group: parallel points, and a fold that results accumulate over.
//
// Every dear value of a group and every result says which loops it depends on.  Points are the
// loops that all of them have: then each is computed once a point, and folds run inside.  Where
// that leaves too little, the results that are folds themselves may accumulate over an outer loop:
//
//     u[n] = sum_k x[n,k] w[k]              fold n {
//     g[k] = sum_n f(u[n]) x[n,k]             fold k { ... } -> %u
//                                             map k { put g[k] reduce_sum= ... in @n }
//                                           }
#include "base/count.h"
#include "base/fold.h"
#include "schedule/internal.h"

#define MOST_ATOMS 256

static struct atoms leaves_of(struct schedule *s, struct atoms a)
{
    return axes_leaves(&s->axes, axes_dependence(&s->axes, a));
}

static struct constraint refresh(struct schedule *s, struct constraint c)
{
    c.kept = leaves_of(s, c.kept);
    c.folded = axes_leaves(&s->axes, c.folded);
    c.context = leaves_of(s, c.context);
    c.around = leaves_of(s, c.around);
    c.stored = leaves_of(s, c.stored);
    return c;
}

// The group with the atoms of its constraints up to date.  A copy: unions may be taken back.
static struct group refreshed(struct schedule *s, const struct group *g)
{
    struct group fresh = *g;
    memset(&fresh.constraints, 0, sizeof fresh.constraints);
    memset(&fresh.arithmetic, 0, sizeof fresh.arithmetic);
    for (uint32_t i = 0; i < g->constraints.count; i++)
        vec_push(s->scratch, &fresh.constraints, refresh(s, g->constraints.at[i]));
    for (uint32_t i = 0; i < g->arithmetic.count; i++)
        vec_push(s->scratch, &fresh.arithmetic, refresh(s, g->arithmetic.at[i]));
    return fresh;
}

static int64_t work_of(const struct schedule *s, const struct constraint *c)
{
    return count_times(axes_product(&s->axes, c->kept), axes_product(&s->axes, c->folded));
}

// The same in units of cost.
static int64_t dear_work_of(const struct schedule *s, const struct constraint *c)
{
    int cost =
        cost_of_op((enum ir_op)ir_node_of(s->g, c->value)->op, ir_dtype_of(s->g, c->value));
    return count_times(work_of(s, c), cost);
}

// No loop is both kept and folded, and none counts twice: unions of atoms can do that.
static bool are_loops_distinct(const struct constraint *c)
{
    for (uint32_t i = 0; i < c->kept.count; i++)
        for (uint32_t k = 0; k < c->folded.count; k++)
            if (c->kept.at[i] == c->folded.at[k])
                return false;
    for (uint32_t i = 0; i < c->kept.count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (c->kept.at[i] == c->kept.at[k])
                return false;
    for (uint32_t i = 0; i < c->folded.count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (c->folded.at[i] == c->folded.at[k])
                return false;
    return true;
}

static bool is_scalar_work(const struct constraint *c)
{
    return c->kind == CONSTRAINT_EXPENSIVE && !c->kept.count;
}

static struct atoms common_loops(struct schedule *s, const struct group *g)
{
    struct atoms points = {0};
    bool first = true;
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *c = &g->constraints.at[i];
        if (is_scalar_work(c))
            continue;
        points = first ? c->kept : axes_intersect(&s->axes, points, c->kept);
        first = false;
    }
    return points;
}

static const struct constraint *find_reduce(const struct group *g, ir_id v)
{
    for (uint32_t i = 0; i < g->constraints.count; i++)
        if (g->constraints.at[i].kind == CONSTRAINT_REDUCE && g->constraints.at[i].value == v)
            return &g->constraints.at[i];
    return NULL;
}

// The loops for each of whose elements the value would be computed anew, although it does not
// depend on them.  Loops around a value are the points, then those that the reduction it is for
// keeps (or those of a result), then those that the reduction folds; it is computed in the
// outermost of these that has all that it needs.
static struct atoms repeated_over(struct schedule *s, const struct group *g,
                                  const struct constraint *c, struct atoms points)
{
    const struct constraint *outer = c->outer == IR_NONE ? NULL : find_reduce(g, c->outer);
    struct atoms loops = axes_minus(&s->axes, outer ? outer->kept : c->context, points);
    bool is_inner = axes_overlap(&s->axes, c->kept, loops);
    if (outer && axes_overlap(&s->axes, c->kept, outer->folded)) {
        loops = axes_concat(&s->axes, loops, outer->folded);
        is_inner = true;
    }
    return is_inner && c->kind != CONSTRAINT_ROOT ? axes_minus(&s->axes, loops, c->kept)
                                                  : (struct atoms){0};
}

// How many results of a loop that is written out share their terms.
static int64_t most_unrolled(const struct schedule *s)
{
    return s->options->many_lanes ? COST_THREAD_UNROLL : COST_UNROLL;
}

// Loops to write out so that no value is computed too often; false when there are none.
static bool find_unrolled(struct schedule *s, const struct group *g, struct atoms points,
                          struct atoms *out)
{
    *out = (struct atoms){0};
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *c = &g->constraints.at[i];
        struct atoms over = repeated_over(s, g, c, points);
        if (!over.count ||
            count_times(dear_work_of(s, c), axes_product(&s->axes, over)) <= s->tiny)
            continue;
        const struct constraint *outer = c->outer == IR_NONE ? NULL : find_reduce(g, c->outer);
        *out = axes_concat(&s->axes, *out, axes_minus(&s->axes, over, *out));
        if (!outer || axes_product(&s->axes, *out) > most_unrolled(s) ||
            axes_overlap(&s->axes, over, outer->folded))
            return false;
    }
    return true;
}

// Whether the reduction can accumulate element by element over `fold`.
static bool is_terminal(struct schedule *s, const struct constraint *c, struct atoms points,
                        struct atoms fold, int64_t *bytes)
{
    jot_dtype d = ir_dtype_of(s->g, c->value);
    if (s->options->no_accumulation || c->kind != CONSTRAINT_REDUCE || !c->is_root ||
        c->is_used || dtype_is_half(d) ||
        ir_op_class((enum ir_op)ir_node_of(s->g, c->value)->op) == IR_CLASS_ARG ||
        !axes_equal(&s->axes, c->folded, fold))
        return false;
    struct atoms inner = axes_minus(&s->axes, c->kept, points);
    *bytes = count_times(*bytes, 1) + count_times(axes_product(&s->axes, inner),
                                                  COST_ACCUMULATORS * dtype_get(d)->bytes);
    return inner.count && *bytes <= COST_LOCAL_BYTES;
}

// Whether everything can be computed around and inside of the fold.
static bool fits_fold(struct schedule *s, const struct group *g, struct atoms points,
                      struct atoms fold, const char **reason)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *c = &g->constraints.at[i];
        if (!axes_include(&s->axes, c->kept, points) && !is_scalar_work(c))
            return false;
        if (axes_include(&s->axes, c->kept, fold))
            continue;
        if (axes_overlap(&s->axes, c->kept, fold))
            return false;
        bool is_whole = axes_include(&s->axes, points, c->kept);
        if (c->kind != CONSTRAINT_REDUCE && is_whole)
            continue; // before or after the fold
        if (c->kind == CONSTRAINT_REDUCE && is_whole &&
            ((axes_equal(&s->axes, c->folded, fold) && !c->is_inside) || points.count))
            continue;
        if (is_terminal(s, c, points, fold, &bytes))
            continue;
        *reason = bytes > COST_LOCAL_BYTES ? "accumulators too large"
                                           : "reduced over an axis that another value needs";
        return false;
    }
    return true;
}

// Whether dear terms of a fold that accumulates element by element would be made one by one: the lanes of
// a processor are these elements, unless they are few and written out.  Terms that are folds themselves
// may be, with what is made of them: reading their operands again takes longer.  So may terms of rows of a
// large matrix that are longer than these are dear: such a matrix is read row by row.
static bool makes_terms_alone(struct schedule *s, const struct group *g, struct atoms points,
                              struct atoms fold)
{
    struct atoms around = axes_concat(&s->axes, points, axes_minus(&s->axes, fold, points));
    int64_t work = 0, bytes = 0; // of terms; of what is summed
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *c = &g->constraints.at[i];
        int64_t type_bytes = dtype_get(ir_dtype_of(s->g, c->value))->bytes;
        bool is_term = fold.count && axes_include(&s->axes, c->kept, fold);
        if (!is_term &&
            axes_product(&s->axes, axes_minus(&s->axes, c->kept, points)) > COST_UNROLL)
            bytes = count_plus(bytes, count_times(work_of(s, c), type_bytes));
        if (is_term && c->kind == CONSTRAINT_REDUCE)
            return false;
        if (is_term && c->kind == CONSTRAINT_EXPENSIVE &&
            axes_include(&s->axes, around, c->kept))
            work = count_plus(work, dear_work_of(s, c));
    }
    bool is_large = bytes > count_times(axes_product(&s->axes, points), COST_LARGE_BYTES);
    if (is_large && bytes / COST_VECTOR_BYTES >= work)
        return false;
    return bytes && work > s->tiny && !s->options->no_accumulation;
}

static bool is_fold_candidate(const struct constraint *c, struct atoms points,
                              const struct schedule *s)
{
    return c->kind == CONSTRAINT_REDUCE && c->folded.count &&
           ((c->is_root && !c->is_used) || axes_include(&s->axes, points, c->kept));
}

// A fold over which all results that need one accumulate.
static bool find_fold(struct schedule *s, const struct group *g, struct atoms points,
                      struct atoms *out, const char **reason)
{
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *c = &g->constraints.at[i];
        if (!is_fold_candidate(c, points, s))
            continue;
        if (fits_fold(s, g, points, c->folded, reason)) {
            *out = c->folded;
            return true;
        }
        // Other candidates have other loops, and this reduction would not fit into them.
        if (!points.count && (c->is_root || !c->kept.count))
            return false;
    }
    return false;
}

// Whether each fold is one of a point, whose loops become kernels of their own where that keeps more of a GPU busy
// (fission.c).  Beside the points of a network they are such kernels from the beginning.
static bool are_folds_of_points(const struct schedule *s, const struct group *g,
                                struct atoms points)
{
    for (uint32_t i = 0; i < g->constraints.count; i++)
        if (g->constraints.at[i].kind == CONSTRAINT_REDUCE &&
            !axes_include(&s->axes, points, g->constraints.at[i].kept))
            return false;
    return true;
}

// Of the group with the atoms of its constraints up to date.
static bool choose_loops(struct schedule *s, struct group *g, const char **reason)
{
    struct atoms fold = {0}, unrolled = {0};
    int64_t work = 0;
    bool is_nested = false;
    *reason = "reduced over an axis that another value needs";
    for (uint32_t i = 0; i < g->constraints.count; i++) {
        const struct constraint *c = &g->constraints.at[i];
        if (!are_loops_distinct(c))
            return false;
        work = work_of(s, c) > work ? work_of(s, c) : work;
        is_nested |= c->outer != IR_NONE && c->kept.count &&
                     axes_product(&s->axes, c->folded) > FOLD_LANES;
    }
    struct atoms points = common_loops(s, g);
    int64_t n_points = axes_product(&s->axes, points);
    int64_t enough = s->options->large ? 2 : COST_POINTS;
    bool is_single = g->constraints.count == 1;
    bool is_split_later = s->options->one_loop && s->options->no_accumulation && points.count &&
                          are_folds_of_points(s, g, points);
    if (!points.count && is_nested && s->options->no_accumulation) {
        *reason = "each thread of a block would add all of it up";
        return false;
    }
    if (work > s->alone || (!points.count && g->work > s->alone_together)) {
        if (n_points < enough && find_fold(s, g, (struct atoms){0}, &fold, reason)) {
            points = (struct atoms){0};
        } else if (!points.count && !is_single) {
            return false;
        } else if (n_points < enough && !is_single && !is_split_later &&
                   !axes_equal(&s->axes, points, axes_leaves(&s->axes, g->points))) {
            *reason = "too few parallel points";
            return false;
        }
    }
    if (!fold.count && !find_unrolled(s, g, points, &unrolled) &&
        !find_fold(s, g, points, &fold, reason)) {
        *reason = "would be computed for every element of an axis that it does not have";
        return false;
    }
    if (makes_terms_alone(s, g, points, fold)) {
        *reason = "would be computed an element at a time";
        return false;
    }
    g->points = points;
    g->fold = fold;
    g->unrolled = fold.count ? (struct atoms){0} : unrolled;
    struct arena_mark mark = arena_mark(s->scratch);
    bool repeats = group_repeats(s, g);
    arena_rewind(s->scratch, mark);
    if (repeats)
        *reason = "would be computed too often";
    return !repeats;
}

// Atoms in memory of their own.
struct kept_atoms {
    atom_id at[MOST_ATOMS];
    uint32_t count;
};

static bool keep_atoms(struct kept_atoms *k, struct atoms a)
{
    k->count = a.count;
    if (a.count <= MOST_ATOMS && a.count)
        memcpy(k->at, a.at, a.count * sizeof *a.at);
    return a.count <= MOST_ATOMS;
}

static struct atoms kept(struct schedule *s, const struct kept_atoms *k)
{
    return (struct atoms){.count = k->count,
                          .at = arena_copy(s->scratch, k->at, k->count * sizeof *k->at)};
}

bool group_frame(struct schedule *s, struct group *group, const char **reason)
{
    struct arena_mark mark = arena_mark(s->scratch);
    struct group fresh = refreshed(s, group);
    struct kept_atoms points, fold, unrolled;
    bool fits = choose_loops(s, &fresh, reason);
    if (!keep_atoms(&points, fresh.points) || !keep_atoms(&fold, fresh.fold) ||
        !keep_atoms(&unrolled, fresh.unrolled)) {
        *reason = "too many loops";
        fits = false;
    }
    arena_rewind(s->scratch, mark);
    if (fits) {
        group->points = kept(s, &points);
        group->fold = kept(s, &fold);
        group->unrolled = kept(s, &unrolled);
    }
    return fits;
}
