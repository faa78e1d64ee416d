// SPDX-License-Identifier: Apache-2.0
// Loop fission (fission.c): which kernels are split.
#include "schedule/kernels/fission.h"

#include "base/fold.h"

bool fission_is_anchored(const struct fission *f, const struct nest_statement *s)
{
    return s->kind == NEST_PUT ||
           (s->kind == NEST_LOAD && s->buffer < f->n_known && f->is_written[s->buffer]);
}

// Whether all of the kernel is a fold over the points of a network that does not give sums alone: what there is code for
// (codegen/gpu/network.c) gives sums.
static bool is_network_of_other_folds(const struct nest *n)
{
    const struct nest_statement *fold = NULL;
    bool gives_others = false;
    nest_for_each (s, n, 0) {
        if (s->body != NEST_NONE && (s->kind != NEST_FOLD || fold))
            return false;
        fold = s->body != NEST_NONE ? s : fold;
    }
    for (uint32_t i = 0; fold && i < fold->n_combines; i++)
        gives_others |= fold->combines[i].order == NEST_FREE;
    return gives_others;
}

bool fission_is_plain(const struct fission *f)
{
    bool is_network = is_network_of_other_folds(f->n);
    nest_for_all (s, f->n)
        if (s->kind == NEST_CONTRACT && !is_network)
            return false;
    return fission_knows_accumulations(f);
}

// Whether two buffers of the kernel are in the same memory in any of its steps.
static bool may_meet(const struct fission *f, nest_id a, nest_id b)
{
    bool are_operands = a < f->n_known && b < f->n_known && f->operand[a] != NEST_NONE &&
                        f->operand[b] != NEST_NONE;
    for (uint32_t i = f->first_step; are_operands && i != NEST_NONE; i = f->steps->next[i]) {
        const uint32_t *of = f->program->steps.at[i].memories;
        if (nest_memory_meets(f->program, of[f->operand[a]], of[f->operand[b]]))
            return true;
    }
    return a == b;
}

void fission_find_written(struct fission *f)
{
    uint32_t count = 0;
    f->n_known = f->n->buffers.count;
    f->is_written = arena_array(f->arena, bool, f->n_known + 1);
    f->operand = nest_no_numbers(f->arena, f->n_known);
    for (nest_id i = 0; i < f->n_known; i++)
        if (f->n->buffers.at[i].role != NEST_LOCAL)
            f->operand[i] = count++;
    for (nest_id a = 0; a < f->n_known; a++)
        for (nest_id b = 0; b < f->n_known; b++)
            f->is_written[a] |= f->n->buffers.at[b].role != NEST_IN && may_meet(f, a, b);
}

void fission_find_block(struct fission *f)
{
    const struct nest_block *b = &f->n->blocks.at[0];
    f->par = NEST_NONE;
    f->block = 0;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        bool ends = i + 1 == b->statements.count;
        if (fission_is_loop(s) && !(ends && s->kind == NEST_PAR))
            return;
        if (fission_is_anchored(f, s))
            return;
        if (fission_is_loop(s)) {
            f->par = b->statements.at[i];
            f->block = s->body;
        }
    }
}

static int64_t points_of(const struct fission *f)
{
    return f->par == NEST_NONE ? 1 : nest_extent(f->n, fission_statement(f, f->par));
}

// Whether points are few that lie beside one another: a block has some of them whole, and the grid has one loop of
// them (codegen/gpu/columns.c).  With rows that one loop leaves for another a thread would have a point.
static bool are_few_columns(const struct fission *f)
{
    bool has_rows = false;
    for (uint32_t i = 0; i < f->n->buffers.count; i++)
        has_rows |= f->n->buffers.at[i].role == NEST_LOCAL;
    if (f->par == NEST_NONE || points_of(f) > (has_rows ? COST_PART_POINTS : COST_FEW_COLUMNS))
        return false;
    return nest_lies_along(nest_lines_in(f->n, fission_statement(f, f->par)));
}

static bool takes(const struct fission *f, const struct nest_statement *s, const bool *values);

static bool block_takes(const struct fission *f, uint32_t block, const bool *values)
{
    nest_for_each (s, f->n, block)
        if (takes(f, s, values))
            return true;
    return false;
}

// Whether the statement takes any of the values.
static bool takes(const struct fission *f, const struct nest_statement *s, const bool *values)
{
    return nest_takes(s, values) || block_takes(f, s->body, values) ||
           block_takes(f, s->other, values);
}

// Whether loops wait for a fold: else parts of it, and maps, are functions of one kernel already.
static bool has_loops_in_turn(const struct fission *f)
{
    bool *of_fold = arena_array(f->arena, bool, f->n->values.count + 1);
    uint32_t folds = 0;
    nest_for_each (s, f->n, f->block) {
        bool does = takes(f, s, of_fold);
        folds += s->kind == NEST_FOLD;
        if (folds > 1 || (does && fission_is_loop(s)))
            return true;
        for (uint32_t k = 0; k < s->n_results; k++)
            of_fold[s->result + k] = does || s->kind == NEST_FOLD;
    }
    return false;
}

uint32_t fission_yield_of(const struct fission *f, const struct nest_statement *scan)
{
    const struct nest_block *b = &f->n->blocks.at[scan->body];
    uint32_t at = 0;
    while (at < b->statements.count &&
           fission_statement(f, b->statements.at[at])->kind != NEST_YIELD)
        at++;
    return at;
}

// Whether what is put there is read or put among the uses.
static bool uses_memory_of(const struct fission *f, const struct fission_uses *u,
                           const struct nest_statement *put)
{
    for (nest_id i = 0; i < f->n->buffers.count; i++)
        if ((u->loads[i] || u->puts[i]) && may_meet(f, i, put->buffer))
            return true;
    return false;
}

// What stands behind the only loop of a block, points or a running fold, and takes nothing of it, may stand in front:
// threads share such a loop behind which nothing stands.
bool fission_wants_loop_last(const struct fission *f, uint32_t block)
{
    const struct nest_block *b = &f->n->blocks.at[block];
    bool *of_loop = arena_array(f->arena, bool, f->n->values.count + 1), is_behind = false;
    struct fission_uses u = fission_no_uses(f); // of the loop
    if (f->par != NEST_NONE)
        return false;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        bool is_shared = s->kind == NEST_SCAN || s->kind == NEST_MAP || s->kind == NEST_PAR;
        if ((s->kind == NEST_LOAD && fission_is_anchored(f, s)) ||
            (is_behind &&
             (takes(f, s, of_loop) || (s->kind == NEST_PUT && uses_memory_of(f, &u, s)))) ||
            (fission_is_loop(s) && (is_behind || !is_shared)))
            return false;
        if (fission_is_loop(s))
            fission_use(f, b->statements.at[i], &u);
        for (uint32_t k = 0; fission_is_loop(s) && k < s->n_results; k++)
            of_loop[s->result + k] = true;
        is_behind |= fission_is_loop(s);
    }
    return is_behind && !fission_is_loop(fission_statement(f, vec_last(&b->statements)));
}

static bool reads_written(const struct fission *f, uint32_t block)
{
    nest_for_below (s, f->n, block)
        if (s->kind == NEST_LOAD && fission_is_anchored(f, s))
            return true;
    return false;
}

// Whether what the running fold combines is made by loops, or by operations where terms are dear, and nothing
// else is.
static bool makes_terms(const struct fission *f, const struct nest_statement *scan,
                        bool is_dear)
{
    const struct nest_block *b = &f->n->blocks.at[scan->body];
    uint32_t at = fission_yield_of(f, scan);
    bool *of_loop = arena_array(f->arena, bool, f->n->values.count + 1), has_loops = is_dear;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        bool does = takes(f, s, of_loop);
        if (i > at && (does || fission_is_loop(s)))
            return false;
        has_loops |= fission_is_loop(s);
        bool is_term = fission_is_loop(s) || (is_dear && i < at && s->kind == NEST_OP);
        for (uint32_t k = 0; i != at && k < s->n_results; k++)
            of_loop[s->result + k] = does || is_term;
    }
    return has_loops && at < b->statements.count && !reads_written(f, scan->body);
}

// Whether loops in the terms of the fold go along rows of memory, which a thread that has a term of its own reads apart
// from its neighbours.
static bool are_of_rows(const struct fission *f, const struct nest_statement *fold)
{
    struct nest_lines all = {0};
    nest_for_each (inner, f->n, fold->body) {
        if (!fission_is_loop(inner) || nest_extent(f->n, inner) < COST_ROW_OF_TERM)
            continue;
        nest_for_each (s, f->n, inner->body) {
            if (s->kind != NEST_LOAD)
                continue;
            struct nest_lines one = nest_lines_of(f->n, fold, inner, s);
            all.of_points += one.of_points;
            all.of_inner += one.of_inner;
        }
    }
    return all.of_inner > 0 && 2 * all.of_inner < all.of_points;
}

bool fission_wants_terms(const struct fission *f, nest_id id)
{
    const struct nest_statement *s = fission_statement(f, id);
    int64_t points = points_of(f);
    if (s->kind == NEST_SCAN) {
        // One thread makes the terms of a short one, where there is one for each of few points.
        double work = nest_work(f->n, s->body);
        bool is_dear = points <= COST_SCAN_POINTS && nest_extent(f->n, s) <= COST_LONG_SCAN &&
                       work >= COST_PUT_TERM;
        return points <= COST_PART_SCANS && points * nest_extent(f->n, s) <= COST_KEPT_TERMS &&
               (makes_terms(f, s, false) || (is_dear && makes_terms(f, s, true))) &&
               (f->always || (double)nest_extent(f->n, s) * work > COST_LAUNCH);
    }
    if (s->kind != NEST_FOLD || nest_extent(f->n, s) <= 1 ||
        points * nest_extent(f->n, s) > COST_KEPT_TERMS)
        return false;
    double work = nest_work(f->n, s->body), terms = (double)nest_extent(f->n, s);
    if (!nest_fold_is_leaf(f->n, id))
        return f->always || terms * work > COST_LAUNCH;
    // There is a warp for each term in place of a thread.
    if (f->par == NEST_NONE)
        return terms * work > COST_LAUNCH && are_of_rows(f, s) &&
               terms * COST_WARP <= COST_MULTIPROCESSORS * COST_THREADS_OF_ONE;
    return points <= COST_IDLE_POINTS && work >= COST_DEAR_TERM &&
           (double)points * terms >= COST_MANY_TERMS && !are_few_columns(f);
}

// The loads behind the values, of a body of plain statements.
static void find_loads(const struct fission *f, const struct nest_block *b,
                       const struct nest_combine *c, bool *is_load)
{
    bool *used = arena_array(f->arena, bool, f->n->values.count + 1);
    for (uint32_t k = 0; k < c->n; k++)
        used[c->value[k]] = true;
    for (uint32_t i = b->statements.count; i-- > 0;) {
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        if (!used[s->result])
            continue;
        is_load[i] = s->kind == NEST_LOAD;
        nest_for_uses (v, s)
            used[v] = true;
    }
}

static struct nest_lines lines_of(const struct fission *f, const struct nest_statement *fold,
                                  const bool *is_load)
{
    const struct nest_block *b = &f->n->blocks.at[fold->body];
    struct nest_lines all = {0};
    for (uint32_t i = 0; i < b->statements.count; i++) {
        if (is_load && !is_load[i])
            continue;
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        if (s->kind != NEST_LOAD)
            continue;
        struct nest_lines one = nest_lines_of(f->n, fission_statement(f, f->par), fold, s);
        all.of_points += one.of_points;
        all.of_inner += one.of_inner;
    }
    return all;
}

// Whether the body only computes, from operands alone.
static bool is_of_operands(const struct fission *f, uint32_t block)
{
    nest_for_each (s, f->n, block)
        if (s->kind >= NEST_PUT ||
            (s->kind == NEST_LOAD && f->n->buffers.at[s->buffer].role != NEST_IN))
            return false;
    return true;
}

bool fission_wants_apart(const struct fission *f, nest_id id, bool *is_along)
{
    const struct nest_statement *s = fission_statement(f, id);
    if (f->par == NEST_NONE || s->kind != NEST_FOLD || s->n_combines < 2 ||
        !is_of_operands(f, s->body) ||
        (!f->always && points_of(f) * nest_extent(f->n, s) < COST_APART))
        return false;
    uint32_t count = f->n->blocks.at[s->body].statements.count;
    bool *of[2] = {arena_array(f->arena, bool, count + 1),
                   arena_array(f->arena, bool, count + 1)};
    for (uint32_t c = 0; c < s->n_combines; c++) {
        bool *mine = arena_array(f->arena, bool, count + 1);
        find_loads(f, &f->n->blocks.at[s->body], &s->combines[c], mine);
        struct nest_lines lines = lines_of(f, s, mine);
        is_along[c] = lines.of_points < lines.of_inner;
        for (uint32_t i = 0; i < count; i++)
            of[is_along[c]][i] |= mine[i];
    }
    struct nest_lines all = lines_of(f, s, NULL);
    double together = all.of_points < all.of_inner ? all.of_points : all.of_inner;
    double apart = lines_of(f, s, of[true]).of_points + lines_of(f, s, of[false]).of_inner;
    return 2 * apart <= together;
}

// Whether points whose elements lie beside one another are so few, and so long, that blocks of threads that have one
// each leave most of a GPU idle: in kernels of their own the maps are loops of all points' elements, and blocks share
// each fold.
static bool are_few_rows(const struct fission *f)
{
    double apart = 0, shared = 0;
    if (f->par == NEST_NONE ||
        nest_lies_along(nest_lines_in(f->n, fission_statement(f, f->par))))
        return false;
    nest_for_each (s, f->n, f->block) {
        if (s->kind != NEST_PAR && s->kind != NEST_MAP && s->kind != NEST_FOLD)
            continue;
        struct nest_time time = nest_time_of(f->n, s, points_of(f));
        apart += time.apart;
        shared += time.shared + COST_TOGETHER_US;
    }
    return f->always || apart > COST_GROUP_BETTER * shared;
}

bool fission_is_map_alone(const struct fission *f, uint32_t block)
{
    const struct nest_block *b = &f->n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *t = fission_statement(f, b->statements.at[i]);
        if (i + 1 == b->statements.count ? t->kind != NEST_MAP
                                         : fission_is_loop(t) || fission_is_anchored(f, t))
            return false;
    }
    return b->statements.count > 0;
}

// Where neighbouring points are beside one another in memory a thread has a point, and does its map alone; all
// elements make again what stands before it.
bool fission_is_one_map(const struct fission *f)
{
    if (f->par == NEST_NONE || !fission_is_map_alone(f, f->block))
        return false;
    const struct nest_statement *par = fission_statement(f, f->par);
    const struct nest_block *b = &f->n->blocks.at[f->block];
    const struct nest_statement *map = fission_statement(f, vec_last(&b->statements));
    double points = (double)points_of(f), elements = (double)nest_extent(f->n, map);
    double all = nest_work(f->n, f->block), of_element = 1 + nest_work(f->n, map->body);
    double of_map = elements * of_element;
    // Elements that are much work have a thread or more each, where what stands before is no more.
    if (points < COST_POINTS || (of_element >= COST_GROUP_WORK && all - of_map <= of_element))
        return true;
    if (!nest_lies_along(nest_lines_in(f->n, par)))
        return false;
    double apart = elements / COST_MAPPED_PER_US;
    double together = points * (of_map + elements * (all - of_map)) / COST_WORK_PER_US;
    return apart > COST_TOGETHER_US + COST_GROUP_BETTER * together;
}

// Threads that share one of so many neighbouring points with such a fold (map/gpu_groups.c).
static int64_t threads_of(int64_t fold, int64_t longest, int64_t points)
{
    int64_t threads = 1;
    if (points * longest <= COST_SMALL_READ)
        return FOLD_LANES;
    while (threads < COST_POINT_THREADS && threads * fold_block(fold) < fold)
        threads *= 2;
    return threads;
}

// Whether points have maps, and folds that these wait for, which a thread or a few for each of them make much later than
// loops of all the maps' elements.
static bool has_maps_of_few(const struct fission *f)
{
    double elements = 0, together = 0;
    int64_t n_loops = 0, points = points_of(f), fold = 0, longest = 0;
    if (f->par == NEST_NONE ||
        !nest_lies_along(nest_lines_in(f->n, fission_statement(f, f->par))))
        return false;
    nest_for_each (s, f->n, f->block) {
        if (fission_is_loop(s) && s->kind != NEST_MAP && s->kind != NEST_FOLD)
            return false;
        int64_t extent = fission_is_loop(s) ? nest_extent(f->n, s) : 0;
        fold = s->kind == NEST_FOLD && extent > fold ? extent : fold;
        longest = extent > longest ? extent : longest;
        double turns = s->kind == NEST_MAP ? nest_turns(f->n, s->body) : 0;
        elements +=
            s->kind == NEST_MAP ? (double)extent * (turns >= COST_GROUP_WORK ? turns : 1) : 0;
        together += s->kind == NEST_MAP ? nest_time_of(f->n, s, points).shared : 0;
        n_loops += fission_is_loop(s) || s->kind == NEST_PUT;
    }
    if (fold && !has_loops_in_turn(f))
        return false;
    int64_t threads = fold ? threads_of(fold, longest, points) : 1;
    return (f->always && n_loops > 1 && elements > 0) ||
           elements / (double)threads / COST_MAPPED_PER_US >
               (double)n_loops * COST_TOGETHER_US + COST_GROUP_BETTER * together;
}

// Whether what one of its loops puts is read, which leaves all of the kernel to one thread.
static bool has_updates(const struct nest *n)
{
    nest_for_all (s, n) {
        enum nest_role role = s->kind == NEST_LOAD ? n->buffers.at[s->buffer].role : NEST_IN;
        if (role == NEST_OUT || role == NEST_INOUT)
            return true;
    }
    return false;
}

// Whether loops of the kernel have a row in common, which warps that share running folds do not.
static bool has_rows(const struct fission *f)
{
    for (uint32_t i = 0; i < f->n->buffers.count; i++)
        if (f->n->buffers.at[i].role == NEST_LOCAL)
            return true;
    return false;
}

// Trips of a loop over time are for one thread in a kernel of their own as well: what counts is what
// stands beside them.
bool fission_is_wanted(const struct fission *f)
{
    int64_t points = points_of(f), elements = 0;
    uint32_t loops = 0, scans = 0;
    bool has_terms = false, has_long_scan = false, is_apart = false;
    double shared = 0;
    nest_for_each (s, f->n, f->block) {
        nest_id id = nest_id_of(f->n, s);
        loops += fission_is_loop(s);
        scans += s->kind == NEST_SCAN;
        has_long_scan |= s->kind == NEST_SCAN && nest_extent(f->n, s) > COST_LONG_SCAN;
        if (s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD) {
            shared += (double)nest_extent(f->n, s) * nest_work(f->n, s->body);
            elements += nest_extent(f->n, s);
        }
        has_terms |= fission_wants_terms(f, id) || fission_wants_accumulations(f, id);
        bool *is_along = arena_array(f->arena, bool, s->n_combines + 1);
        is_apart |= fission_wants_apart(f, id, is_along);
    }
    if (f->par != NEST_NONE)
        return is_apart || fission_is_one_map(f) || has_maps_of_few(f) ||
               (loops > 1 && are_few_rows(f)) || (has_terms && points <= COST_PART_POINTS) ||
               (has_long_scan && loops > 1 && points <= COST_PART_SCANS) ||
               (loops > 1 && are_few_columns(f) && has_loops_in_turn(f) &&
                (f->always ||
                 (elements >= COST_LONG_COLUMN && elements * points >= COST_COLUMNS &&
                  elements * points <= COST_KEPT_TERMS)));
    bool is_much = shared > (has_updates(f->n) ? COST_LAUNCH : COST_OF_KERNEL);
    return has_terms || fission_wants_loop_last(f, 0) ||
           (loops > 1 &&
            (f->always || is_much || (has_long_scan && (scans < loops || has_rows(f)))));
}
