// SPDX-License-Identifier: Apache-2.0
// Which steps may write over what they read.
//
// A kernel may when every point has read its elements before it writes them, as the loops stand and as their levels
// say that they are gone through.
#include "schedule/plan/plan.h"

bool plan_is_written(const struct nest_program *p, const struct nest_step *t, uint32_t i)
{
    if (t->kind == NEST_STEP_COPY || t->kind == NEST_STEP_COLLECTIVE)
        return i == 0;
    if (t->kind == NEST_STEP_GEMM)
        return i == 2;
    if (t->kind == NEST_STEP_LIBRARY)
        return i >= t->n_reads;
    if (t->kind == NEST_STEP_CALLBACK)
        return i >= t->params[1];
    if (t->kind != NEST_STEP_KERNEL)
        return false;
    const struct nest *n = p->nests.at[t->nest];
    for (uint32_t b = 0, k = 0; b < n->buffers.count; b++)
        if (n->buffers.at[b].role != NEST_LOCAL && k++ == i)
            return n->buffers.at[b].role != NEST_IN;
    return false;
}

bool plan_overlap(const struct nest_program *p, uint32_t a, uint32_t b)
{
    const struct nest_memory *x = &p->memories.at[a], *y = &p->memories.at[b];
    if (x->kind == NEST_TEMPORARY && y->kind == NEST_TEMPORARY)
        return x->offset < y->offset + plan_bytes(y) && y->offset < x->offset + plan_bytes(x);
    return x->kind == NEST_OUTPUT && y->kind == NEST_INPUT && p->donated &&
           p->donated[x->index] == (int32_t)y->index;
}

static nest_id buffer_number(const struct nest *n, uint32_t operand)
{
    for (uint32_t b = 0, k = 0; b < n->buffers.count; b++)
        if (n->buffers.at[b].role != NEST_LOCAL && k++ == operand)
            return b;
    return NEST_NONE;
}

static bool has_role(const struct nest_program *p, const struct nest_step *t, uint32_t i,
                     enum nest_role role)
{
    if (t->kind != NEST_STEP_KERNEL)
        return false;
    const struct nest *n = p->nests.at[t->nest];
    return n->buffers.at[buffer_number(n, i)].role == role;
}

bool plan_is_updated(const struct nest_program *p, const struct nest_step *t, uint32_t i)
{
    return has_role(p, t, i, NEST_INOUT);
}

bool plan_is_part(const struct nest_program *p, const struct nest_step *t, uint32_t i)
{
    return has_role(p, t, i, NEST_PART);
}

bool plan_is_work(const struct nest_program *p, const struct nest_step *t, uint32_t i)
{
    return has_role(p, t, i, NEST_WORK);
}

// ---- Kernels

#define MAX_DEPTH 16

// An access of one of the two buffers, in the order of the program.
struct access {
    nest_id statement;
    uint32_t depth;
    uint32_t path[MAX_DEPTH];      // loops around it
    uint32_t order[MAX_DEPTH + 1]; // numbers in the blocks
};

// Looks for the put first, and then at every load in the light of it.
struct overwrite {
    const struct nest *n;
    nest_id from, to;
    struct access put;
    uint32_t puts;
    bool looks_at_loads;
    bool fits;
};

static bool is_before(const struct nest *n, const struct access *load,
                      const struct access *put);

static void visit_block(struct overwrite *o, uint32_t block, struct access *at)
{
    const struct nest_block *b = &o->n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count && o->fits; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = &o->n->statements.at[id];
        at->order[at->depth] = i;
        at->statement = id;
        if (s->kind == NEST_LOAD && s->buffer == o->from && o->looks_at_loads) {
            o->fits = is_before(o->n, at, &o->put);
        } else if (s->kind == NEST_PUT && s->buffer == o->to && !o->looks_at_loads) {
            o->put = *at;
            o->fits = ++o->puts == 1 && !s->op && s->guard == NEST_NONE;
        } else if (s->kind == NEST_CONTRACT) {
            o->fits = false;
        } else if (s->body != NEST_NONE) {
            if (at->depth == MAX_DEPTH) {
                o->fits = false;
                return;
            }
            at->path[at->depth++] = id;
            visit_block(o, s->body, at);
            if (s->kind == NEST_WHILE || s->kind == NEST_IF)
                visit_block(o, s->other, at);
            at->depth--;
        }
    }
}

static bool is_axis_of(const struct nest *n, nest_id loop, nest_id axis)
{
    const struct nest_statement *s = &n->statements.at[loop];
    for (uint32_t i = 0; i < s->n_axes; i++)
        if (s->axes[i] == axis)
            return true;
    return false;
}

// Whether the forms use the axes of the outermost loop alike and the others by the same factors
// and extents: in one point they then visit the same elements.
static bool covers_same(const struct nest *n, nest_id point, const struct nest_index *x,
                        const struct nest_index *y)
{
    if (x->constant != y->constant || x->count != y->count || nest_index_has_values(x) ||
        nest_index_has_values(y))
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        struct nest_term t = x->terms[i];
        uint32_t in_x = 0, in_y = 0;
        if (is_axis_of(n, point, t.id)) {
            if (nest_index_factor(y, t.id) != t.factor)
                return false;
            continue;
        }
        for (uint32_t k = 0; k < x->count; k++) {
            in_x += !is_axis_of(n, point, x->terms[k].id) && x->terms[k].factor == t.factor &&
                    n->axes.at[x->terms[k].id].extent == n->axes.at[t.id].extent;
            in_y += !is_axis_of(n, point, y->terms[k].id) && y->terms[k].factor == t.factor &&
                    n->axes.at[y->terms[k].id].extent == n->axes.at[t.id].extent;
        }
        if (in_x != in_y)
            return false;
    }
    return true;
}

static bool same_form(const struct nest_index *x, const struct nest_index *y)
{
    return !nest_index_has_values(x) && nest_index_equal(x, y);
}

static enum nest_kind kind_of(const struct nest *n, nest_id id)
{
    return n->statements.at[id].kind;
}

// Whether the kernel is one point, whose statements are done one after the other: a loop over time,
// or what is like it, without lanes.
static bool is_one_point(const struct nest *n)
{
    bool has_time = false;
    const struct nest_block *b = &n->blocks.at[0];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        enum nest_kind kind = kind_of(n, b->statements.at[i]);
        has_time |= kind == NEST_SEQ || kind == NEST_WHILE || kind == NEST_IF;
        if (kind == NEST_PAR)
            return false;
    }
    return has_time;
}

// Whether the load of an element comes before the put of the same element by any point.
static bool is_before(const struct nest *n, const struct access *load, const struct access *put)
{
    const struct nest_statement *l = &n->statements.at[load->statement];
    const struct nest_statement *w = &n->statements.at[put->statement];
    uint32_t common = 0;
    while (common < load->depth && common < put->depth &&
           load->path[common] == put->path[common])
        common++;
    if (load->order[common] > put->order[common])
        return false;
    // A step after this one must not come back to the element.
    for (uint32_t i = 0; i < common; i++)
        if (kind_of(n, put->path[i]) == NEST_SEQ &&
            !nest_index_factor(&w->index, n->statements.at[put->path[i]].axes[0]))
            return false;
    if (common == put->depth && common == load->depth)
        return same_form(&l->index, &w->index) && l->guard == NEST_NONE;
    if (common == 0)
        return is_one_point(n);
    // Loops one after the other inside one point.
    return common == 1 && covers_same(n, put->path[0], &l->index, &w->index);
}

// Whether every element is put, in each run of the kernel.
static bool is_always_put(const struct nest *n, const struct access *put)
{
    for (uint32_t i = 0; i < put->depth; i++)
        if (kind_of(n, put->path[i]) == NEST_WHILE || kind_of(n, put->path[i]) == NEST_IF)
            return false;
    return true;
}

// Whether levels have the buffer read at other times than the loops say: steps before their own or again behind it, or
// in a fold once for several rows of points.  moved: the block is of such a loop; rows: of such points.
static bool is_read_elsewhen(const struct nest *n, uint32_t block, nest_id buffer, bool moved,
                             bool rows)
{
    nest_for_each (s, n, block) {
        bool moves = moved || s->level == NEST_AHEAD || (rows && s->kind == NEST_FOLD);
        bool has_rows = rows;
        for (uint32_t i = 0; i < s->n_axes; i++) {
            const struct nest_axis *a = &n->axes.at[s->axes[i]];
            moves |= a->early || a->segment;
            has_rows |= a->rows != 0;
        }
        if ((moved && s->kind == NEST_LOAD && s->buffer == buffer) ||
            is_read_elsewhen(n, s->body, buffer, moves, has_rows) ||
            is_read_elsewhen(n, s->other, buffer, moves, has_rows))
            return true;
    }
    return false;
}

// Whether memory of buffer `to` may be that of buffer `from`.  Elements of both must be as long: an
// index is then the same element.
static bool may_overwrite(const struct nest *n, nest_id from, nest_id to)
{
    struct overwrite o = {.n = n, .from = from, .to = to, .fits = true};
    struct access at = {0};
    if (jot_dtype_size(n->buffers.at[from].dtype) != jot_dtype_size(n->buffers.at[to].dtype) ||
        is_read_elsewhen(n, 0, from, false, false))
        return false;
    visit_block(&o, 0, &at);
    if (!o.fits || o.puts != 1 || !is_always_put(n, &o.put))
        return false;
    o.looks_at_loads = true;
    visit_block(&o, 0, &at);
    return o.fits;
}

// Among the memories first .. end - 1 of the step.
static uint32_t count_uses(const struct nest_step *t, uint32_t first, uint32_t end, uint32_t m)
{
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++)
        n += t->memories[i] == m;
    return n;
}

bool plan_step_may_overwrite(const struct nest_program *p, const struct nest_step *t,
                             uint32_t from, uint32_t to)
{
    if (t->kind == NEST_STEP_COPY)
        return true; // nothing is left to be done
    if (t->ranges)
        return false;
    uint32_t last = t->n_memories - 1;
    if (t->kind == NEST_STEP_GEMM) // only an addend, which is read where the result is put
        return t->gemm.has_addend && t->memories[last] == from &&
               count_uses(t, 0, 2, from) == 0 && count_uses(t, 3, last, from) == 0;
    if (t->kind == NEST_STEP_LIBRARY)
        return t->in_place && to == t->n_reads && t->memories[0] == from &&
               count_uses(t, 1, t->n_reads, from) == 0;
    if (t->kind == NEST_STEP_COLLECTIVE)
        return t->params[0] == COLLECTIVE_ALL_REDUCE;
    if (t->kind != NEST_STEP_KERNEL)
        return false;
    const struct nest *n = p->nests.at[t->nest];
    for (uint32_t i = 0; i < t->n_memories; i++)
        if (t->memories[i] == from && i != to &&
            !may_overwrite(n, buffer_number(n, i), buffer_number(n, to)))
            return false;
    return true;
}
