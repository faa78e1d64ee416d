// SPDX-License-Identifier: Apache-2.0
// What must hold of who does what: the levels of loops, the threads of a kernel, and what threads know of one another.
#include "nest/verify.h"

#define MOST_LANES 64
#define MOST_THREADS 1024
#define MOST_TURNS 64 // that are written out
#define BIT(kind) (1u << (kind))
#define POINTS (BIT(NEST_PAR) | BIT(NEST_MAP))

// Who shares the loop of a GPU around the statement, of those that divide work.
static enum nest_level level_around(const struct verifier *v)
{
    enum nest_level level = NEST_NO_LEVEL;
    for (uint32_t i = 0; i < v->path.count; i++) {
        enum nest_level own = v->nest->statements.at[v->path.at[i]].level;
        level = own && own != NEST_SERIALLY ? own : level;
    }
    return level;
}

// An element has one owner, and no two threads put what comes one after the other: levels go inwards, from the
// grid to a thread, and loops that have an order are of whoever goes through all of it.
static void check_owner(struct verifier *v, const struct nest_statement *s)
{
    static const unsigned kinds[NEST_LEVELS] = {
        [NEST_GRID] = POINTS,
        [NEST_GROUP] = POINTS,
        [NEST_THREAD] = POINTS | BIT(NEST_FOLD) | BIT(NEST_SCAN),
        [NEST_IN_ROW] = POINTS,
        [NEST_OWNER] = BIT(NEST_SEQ),
        [NEST_AHEAD] = BIT(NEST_SEQ),
        [NEST_SERIALLY] = POINTS | BIT(NEST_FOLD) | BIT(NEST_SCAN) | BIT(NEST_SEQ),
    };
    enum nest_level around = level_around(v);
    unsigned tiles = 0;
    if (s->level) {
        const char *name = nest_level_names[s->level];
        // Threads look ahead in a point of theirs; all else is shared once.
        bool may = s->level == NEST_SERIALLY || around == NEST_NO_LEVEL ||
                   (s->level == NEST_AHEAD ? around == NEST_THREAD
                                           : s->level >= NEST_THREAD && around < NEST_THREAD);
        if (!(kinds[s->level] >> s->kind & 1))
            nest_fault(v, "elements of such a loop are not shared out @%s", name);
        else if (!may)
            nest_fault(v, "@%s stands in a loop @%s", name, nest_level_names[around]);
        if (!v->nest->threads[NEST_BLOCK_THREADS] && !v->nest->special)
            nest_fault(v, "@%s, and no block of threads", name);
        if (s->level == NEST_IN_ROW && s->n_axes != 1)
            nest_fault(v, "points of %u axes are no row", s->n_axes);
        if (s->level == NEST_THREAD && nest_accumulates(v->nest, nest_id_of(v->nest, s)))
            nest_fault(v, "what accumulates over a loop is for one thread");
    }
    if (s->terms &&
        (s->level != NEST_THREAD || s->terms == NEST_REGISTER || s->terms == NEST_AGAIN))
        nest_fault(v, "what the fold combines is computed by whoever combines it");
    for (uint32_t i = 0; i < s->n_axes; i++) {
        const struct nest_axis *a = &v->nest->axes.at[s->axes[i]];
        tiles += a->tile != 0;
        if ((a->tile || a->rows) && (s->level != NEST_THREAD || !(POINTS >> s->kind & 1)))
            nest_fault(v, "axis %s is not one of threads", a->name);
        if ((a->segment || a->early) && s->kind != NEST_SEQ)
            nest_fault(v, "axis %s is not one of time", a->name);
        unsigned parts = a->rows ? a->rows : a->segment;
        if (parts && a->extent % parts)
            nest_fault(v, "axis %s does not come in %u parts", a->name, parts);
    }
    if (tiles == 1 || tiles > 2)
        nest_fault(v, "%u axes have tiles", tiles);
}

// What a thread has of a loop in its code is of plain statements where all of it is read first; of a fold they are
// rounds of blocks, and windows of each.
static void check_turns(struct verifier *v, const struct nest_statement *s)
{
    bool is_plain = true, is_fold = s->kind == NEST_FOLD;
    nest_for_each (t, v->nest, s->body)
        is_plain &= t->kind < NEST_PUT || (t->kind == NEST_PUT && !t->op);
    bool is_of_thread = s->level == NEST_THREAD || (s->level == NEST_GROUP && v->nest->special);
    if ((s->turns || s->at_once) && (!is_of_thread || !(POINTS >> s->kind & 1 || is_fold)))
        nest_fault(v, "the turns of such a loop are not a thread's");
    if (s->turns > MOST_TURNS || s->at_once > MOST_TURNS ||
        (s->turns && s->at_once && !is_fold))
        nest_fault(v, "a thread has no %u turns, and %u at once", s->turns, s->at_once);
    if (s->at_once && !is_plain && !is_fold)
        nest_fault(v, "what turns read is not all read before it is written");
}

// Loops that have an order go element by element, and lanes of a fold are neighbours in its sequence.
void verify_levels(struct verifier *v, const struct nest_statement *s)
{
    uint32_t first = s->kind == NEST_FOLD ? s->n_axes - 1 : 0, with = 0;
    bool may = s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD ||
               (s->kind == NEST_SCAN && s->level == NEST_THREAD);
    for (uint32_t i = 0; i < s->n_axes; i++) {
        const struct nest_axis *a = &v->nest->axes.at[s->axes[i]];
        with += a->vector != 0;
        if (a->vector && (!may || i < first))
            nest_fault(v, "elements of axis %s go one by one", a->name);
        if (a->vector & (a->vector - 1) || a->vector == 1 || a->vector > MOST_LANES)
            nest_fault(v, "there are no vectors of %u lanes", a->vector);
    }
    if (with > 1)
        nest_fault(v, "%u axes have lanes", with);
    check_owner(v, s);
    check_turns(v, s);
}

// A tape is made again by the loop over time whose steps come in segments.
static bool has_segments(const struct nest *n)
{
    for (uint32_t i = 0; i < n->axes.count; i++)
        if (n->axes.at[i].segment)
            return true;
    return false;
}

// Threads of a block are whole groups, or columns of them; what is theirs is local.
void verify_threads(struct verifier *v)
{
    const unsigned *t = v->nest->threads;
    unsigned block = t[NEST_BLOCK_THREADS], group = t[NEST_GROUP_THREADS];
    if (block > MOST_THREADS)
        nest_fault(v, "there are no blocks of %u threads", block);
    if (group && (!block || block % group))
        nest_fault(v, "a block of %u threads has no groups of %u", block, group);
    if (t[NEST_COLUMNS] && group && t[NEST_COLUMNS] * group != block)
        nest_fault(v, "a block of %u threads has no %u columns", block, t[NEST_COLUMNS]);
    for (uint32_t i = 0; i < v->nest->buffers.count; i++) {
        const struct nest_buffer *b = &v->nest->buffers.at[i];
        if (b->space && (b->role != NEST_LOCAL || b->space == NEST_SCRATCH))
            nest_fault(v, "buffer %s is in memory", b->name);
        else if (b->space == NEST_AGAIN && !has_segments(v->nest))
            nest_fault(v, "%s is made again by no loop", b->name);
    }
}

// ---- What threads know of one another

static const struct nest_statement *loop_of(const struct verifier *v, nest_id id)
{
    return &v->nest->statements.at[id];
}

// The loop around the access whose elements threads share, where each has some of the buffer; NEST_NONE: whoever does
// the statement has all of it.
static nest_id shared_around(const struct verifier *v, const struct nest_access *a,
                             nest_id scope)
{
    nest_id found = NEST_NONE;
    for (uint32_t i = 0; i < a->depth && a->path[i] != a->fold; i++) {
        enum nest_level level = loop_of(v, a->path[i])->level;
        if (nest_is_of_threads(loop_of(v, a->path[i])) || level == NEST_OWNER)
            found = a->path[i];
        if (a->path[i] == scope)
            found = NEST_NONE;
    }
    return found;
}

// Whether no group has the loop around: blocks of threads, which do not wait for one another, share it.
static bool is_of_grid(const struct verifier *v, const struct nest_access *a)
{
    for (uint32_t i = 0; i < a->depth; i++)
        if (loop_of(v, a->path[i])->level == NEST_GROUP)
            return false;
    return v->nest->threads[NEST_BLOCKS] != 1;
}

// Whether elements of two loops that are one thread's are at different indices: of as many, that are shared alike.
static bool is_another_element(const struct verifier *v, const struct nest_access *a,
                               nest_id put, const struct nest_access *b, nest_id load)
{
    const struct nest_statement *p = loop_of(v, put), *l = loop_of(v, load);
    if (p->n_axes != 1 || l->n_axes != 1 || nest_index_has_values(a->index) ||
        nest_index_has_values(b->index))
        return false;
    const struct nest_axis *x = &v->nest->axes.at[p->axes[0]],
                           *y = &v->nest->axes.at[l->axes[0]];
    return x->extent == y->extent && x->vector == y->vector &&
           (a->index->constant != b->index->constant ||
            nest_index_factor(a->index, p->axes[0]) != nest_index_factor(b->index, l->axes[0]));
}

// Whether a thread that reads the buffer has what is put, by itself or for all that wait for one another.
enum source { KNOWN, OF_THREADS, OF_BLOCKS };

static enum source source_of(const struct verifier *v, const struct nest_access *put,
                             const struct nest_access *load, nest_id scope)
{
    const struct nest_buffer *b = &v->nest->buffers.at[put->buffer];
    nest_id from = shared_around(v, put, scope), to = shared_around(v, load, scope);
    if (from == NEST_NONE || from == to || nest_extent(v->nest, loop_of(v, from)) < 2 ||
        !put->is_sure || !load->is_sure)
        return KNOWN;
    if (is_of_grid(v, put) && (b->role == NEST_LOCAL || b->role == NEST_OUT))
        return OF_BLOCKS;
    bool is_apart = b->role == NEST_LOCAL && b->space != NEST_SHARED;
    return is_apart && (to == NEST_NONE || is_another_element(v, put, from, load, to))
               ? OF_THREADS
               : KNOWN;
}

// What a thread puts in a loop that is shared is read by one that has it: whichever of several puts it is that an
// element is of.
static void check_known(struct verifier *v, const struct nest_access *load, nest_id scope)
{
    const char *name = v->nest->buffers.at[load->buffer].name;
    enum source found = KNOWN;
    for (uint32_t i = 0; i < v->accesses.count; i++) {
        const struct nest_access *put = &v->accesses.at[i];
        if (!put->is_put || put->buffer != load->buffer || !verify_may_meet(v, put, load))
            continue;
        found = source_of(v, put, load, scope);
        if (found == KNOWN)
            return;
    }
    v->statement = load->statement;
    if (found == OF_BLOCKS)
        nest_fault(v, "%s is put by blocks of threads that do not wait for one another", name);
    else if (found == OF_THREADS)
        nest_fault(v, "each thread has its own %s, and reads what another one puts", name);
}

// What threads keep of a row is at hand in loops that go through all of it alike.
static void check_kept(struct verifier *v, const struct nest_access *a)
{
    const struct nest_statement *s = a->depth ? loop_of(v, a->path[a->depth - 1]) : NULL;
    const struct nest_buffer *b = &v->nest->buffers.at[a->buffer];
    bool is = s &&
              (s->level == NEST_IN_ROW || (s->kind == NEST_FOLD && s->level == NEST_THREAD)) &&
              nest_extent(v->nest, s) == b->count;
    v->statement = a->statement;
    if (b->space == NEST_REGISTER && !is)
        nest_fault(v, "threads that keep %s go through it in another order", b->name);
}

void nest_verify_sharing(struct verifier *v)
{
    const struct nest *n = v->nest;
    if (!n->threads[NEST_BLOCK_THREADS] || n->special)
        return;
    nest_id *scopes = arena_array(v->arena, nest_id, n->buffers.count + 1);
    nest_local_scopes(n, scopes);
    for (uint32_t i = 0; i < v->accesses.count; i++) {
        const struct nest_access *a = &v->accesses.at[i];
        check_kept(v, a);
        if (!a->is_put)
            check_known(v, a, scopes[a->buffer]);
    }
}
