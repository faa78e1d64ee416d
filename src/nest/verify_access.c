// SPDX-License-Identifier: Apache-2.0
// What must hold of the elements of buffers that a nest reads and writes.
//
// A fault is reported when it is certain: indices with values in them, accesses behind guards and
// combinations of more than two axes may pass.
#include "nest/verify.h"

__extension__ typedef __int128 wide;

// An axis as it moves an index.
struct motion {
    wide factor;
    int64_t extent;
};

#define MAX_MOTIONS 64

struct motions {
    uint32_t count;
    struct motion at[MAX_MOTIONS];
};

static const struct nest_statement *statement(const struct verifier *v, nest_id id)
{
    return &v->nest->statements.at[id];
}

static int64_t extent(const struct verifier *v, nest_id axis)
{
    return v->nest->axes.at[axis].extent;
}

static void add_motion(struct motions *m, wide factor, int64_t length)
{
    if (m->count < MAX_MOTIONS)
        m->at[m->count++] = (struct motion){factor, length};
}

static void add_axes(struct motions *m, const struct verifier *v, const struct nest_index *x,
                     uint32_t count, const nest_id *axes)
{
    for (uint32_t i = 0; i < count; i++)
        add_motion(m, nest_index_factor(x, axes[i]), extent(v, axes[i]));
}

// --- ranges

// The elements that the access comes to, where they are known.
static bool range_of(const struct verifier *v, const struct nest_access *a, wide *low,
                     wide *high)
{
    const struct nest_index *x = a->index;
    const struct nest_statement *own = statement(v, a->statement);
    struct motions m = {0};
    for (uint32_t i = 0; i < a->depth; i++) {
        const struct nest_statement *s = statement(v, a->path[i]);
        add_axes(&m, v, x, s->n_axes, s->axes);
    }
    if (own->kind == NEST_CONTRACT)
        add_axes(&m, v, x, own->n_axes, own->axes);
    *low = *high = x->constant;
    for (uint32_t i = 0; i < m.count; i++) {
        wide reach = m.at[i].factor * (m.at[i].extent - 1);
        *(reach < 0 ? low : high) += reach;
    }
    return m.count < MAX_MOTIONS && !nest_index_has_values(x);
}

bool verify_may_meet(const struct verifier *v, const struct nest_access *a,
                     const struct nest_access *b)
{
    wide a_low, a_high, b_low, b_high;
    return !range_of(v, a, &a_low, &a_high) || !range_of(v, b, &b_low, &b_high) ||
           (a_low <= b_high && b_low <= a_high);
}

static void check_range(struct verifier *v, const struct nest_access *a)
{
    const struct nest_buffer *b = &v->nest->buffers.at[a->buffer];
    wide low, high;
    if (!a->is_sure || !range_of(v, a, &low, &high) || (low >= 0 && high < b->count))
        return;
    nest_fault(v, "%s[%lld] is %s: its %lld elements count from 0", b->name,
               (long long)(low < 0 ? low : high), a->is_put ? "put" : "read",
               (long long)b->count);
}

// --- scopes of locals

// An accumulating put stores where its loop ends.
static uint32_t stored_depth(const struct nest_access *a)
{
    for (uint32_t i = 0; i < a->depth; i++)
        if (a->path[i] == a->fold)
            return i;
    return a->depth;
}

// By buffer: how many loops and branches are around where it lives.
static uint32_t *scope_depths(struct verifier *v)
{
    uint32_t n = v->nest->buffers.count;
    uint32_t *depth = arena_array(v->arena, uint32_t, n + 1);
    nest_id *scope = arena_array(v->arena, nest_id, n + 1);
    nest_local_scopes(v->nest, scope);
    for (uint32_t i = 0; i < v->accesses.count; i++) {
        const struct nest_access *a = &v->accesses.at[i];
        for (uint32_t k = 0; k < a->depth; k++)
            if (a->path[k] == scope[a->buffer])
                depth[a->buffer] = k + 1;
    }
    return depth;
}

static void check_point_local(struct verifier *v, const struct nest_access *a, uint32_t scope)
{
    const struct nest_buffer *b = &v->nest->buffers.at[a->buffer];
    for (uint32_t i = scope; b->role == NEST_LOCAL && i < a->depth; i++)
        if (statement(v, a->path[i])->kind == NEST_PAR) {
            nest_fault(v, "%s belongs to a point and is used by several", b->name);
            return;
        }
}

// --- one point to an element

static wide divisor(wide a, wide b)
{
    while (b) {
        wide r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static wide size_of(wide x) { return x < 0 ? -x : x; }

// The axes of independent loops between where the buffer lives and the put.
static struct motions put_motions(struct verifier *v, const struct nest_access *a,
                                  uint32_t scope)
{
    struct motions m = {0};
    const struct nest_statement *own = statement(v, a->statement);
    for (uint32_t i = 0; i < a->depth; i++) {
        const struct nest_statement *s = statement(v, a->path[i]);
        if (i >= scope && a->path[i] != a->fold &&
            (s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD))
            add_axes(&m, v, a->index, s->n_axes, s->axes);
    }
    if (own->kind == NEST_CONTRACT)
        add_axes(&m, v, a->index, own->n_axes - 1, own->axes);
    return m;
}

static void check_one_point(struct verifier *v, const struct nest_access *a, uint32_t scope)
{
    if (!a->is_sure || nest_index_has_values(a->index))
        return;
    const char *name = v->nest->buffers.at[a->buffer].name;
    struct motions m = put_motions(v, a, scope);
    for (uint32_t i = 0; i < m.count; i++) {
        if (m.at[i].extent < 2)
            continue;
        if (!m.at[i].factor) {
            nest_fault(v, "every iteration of a loop puts the same element of %s", name);
            return;
        }
        for (uint32_t j = 0; j < i; j++) {
            wide x = size_of(m.at[i].factor), y = size_of(m.at[j].factor);
            if (m.at[j].extent < 2 || x <= 0 || y <= 0)
                continue;
            wide g = divisor(x, y);
            if (y / g < m.at[i].extent && x / g < m.at[j].extent) {
                nest_fault(v, "several iterations put the same element of %s", name);
                return;
            }
        }
    }
}

// The index of what accumulates over a loop stays in place while the loop runs.
static void check_accumulating(struct verifier *v, const struct nest_access *a, uint32_t scope)
{
    if (a->fold == NEST_NONE)
        return;
    const struct nest_statement *fold = statement(v, a->fold);
    for (uint32_t i = 0; i < fold->n_axes; i++)
        if (nest_index_factor(a->index, fold->axes[i]))
            nest_fault(v, "its index uses axis %s of the loop that it accumulates over",
                       v->nest->axes.at[fold->axes[i]].name);
    uint32_t depth = stored_depth(a);
    if (!nest_index_has_values(a->index))
        return;
    for (uint32_t i = scope; i < depth; i++)
        if (statement(v, a->path[i])->kind == NEST_PAR)
            nest_fault(v, "an index with values stores the whole buffer, in every point: "
                          "accumulate into a local");
}

static void check_summed_axis(struct verifier *v, const struct nest_access *a)
{
    const struct nest_statement *s = statement(v, a->statement);
    if (s->kind == NEST_CONTRACT && a->is_put &&
        nest_index_factor(a->index, s->axes[s->n_axes - 1]))
        nest_fault(v, "its index uses the axis that it sums over");
}

// --- reads of what others write

// Whether factors over the axes but `axis` are the same.
static bool same_but(const struct nest_index *x, const struct nest_index *y, nest_id axis)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].id != axis &&
            nest_index_factor(y, x->terms[i].id) != x->terms[i].factor)
            return false;
    return true;
}

// Whether some iteration of the axis reads what another one puts.
static bool crosses(const struct verifier *v, const struct nest_index *put,
                    const struct nest_index *load, nest_id axis)
{
    if (!same_but(put, load, axis) || !same_but(load, put, axis))
        return false;
    int64_t n = extent(v, axis), p = nest_index_factor(put, axis);
    int64_t l = nest_index_factor(load, axis);
    wide gap = (wide)put->constant - load->constant;
    for (int64_t i = 0; i < n && i < 64; i++) {
        wide at = (wide)p * i + gap;
        if (l == 0 && at == 0 && n > 1)
            return true;
        if (l != 0 && at % l == 0 && at / l >= 0 && at / l < n && at / l != i)
            return true;
    }
    return false;
}

static void check_pair(struct verifier *v, const struct nest_access *put,
                       const struct nest_access *load, uint32_t scope)
{
    if (!put->is_sure || !load->is_sure || nest_index_has_values(put->index) ||
        nest_index_has_values(load->index))
        return;
    for (uint32_t i = scope; i < put->depth && i < load->depth; i++) {
        if (put->path[i] != load->path[i])
            return;
        const struct nest_statement *s = statement(v, put->path[i]);
        if (s->kind != NEST_PAR && s->kind != NEST_MAP && s->kind != NEST_FOLD)
            continue;
        for (uint32_t j = 0; j < s->n_axes; j++)
            if (crosses(v, put->index, load->index, s->axes[j])) {
                nest_fault(v, "it reads what another iteration of %s puts into %s",
                           v->nest->axes.at[s->axes[j]].name,
                           v->nest->buffers.at[put->buffer].name);
                return;
            }
    }
}

static bool repeats_together(const struct verifier *v, const struct nest_access *a,
                             const struct nest_access *b)
{
    for (uint32_t i = 0; i < a->depth && i < b->depth && a->path[i] == b->path[i]; i++) {
        enum nest_kind kind = statement(v, a->path[i])->kind;
        if (kind == NEST_SEQ || kind == NEST_WHILE || kind == NEST_SCAN)
            return true;
    }
    return false;
}

// Everything there is to say of access i in the light of the others of its buffer.
static void check_load(struct verifier *v, uint32_t i, uint32_t scope)
{
    const struct nest_access *a = &v->accesses.at[i];
    const struct nest_buffer *b = &v->nest->buffers.at[a->buffer];
    if (b->role == NEST_IN)
        return;
    bool written = false, inside = false;
    for (uint32_t j = 0; j < v->accesses.count; j++) {
        const struct nest_access *put = &v->accesses.at[j];
        if (put->buffer != a->buffer || !put->is_put)
            continue;
        written |= j < i || repeats_together(v, put, a);
        uint32_t stored = stored_depth(put);
        inside |= stored < put->depth && stored < a->depth && a->path[stored] == put->fold;
        if (put->fold == NEST_NONE)
            check_pair(v, put, a, scope);
    }
    if (!written && b->role != NEST_INOUT)
        nest_fault(v, "%s is read before anything is put into it", b->name);
    if (inside)
        nest_fault(v, "%s is read in the loop that accumulates it", b->name);
}

void nest_verify_accesses(struct verifier *v)
{
    uint32_t *scope = scope_depths(v);
    for (uint32_t i = 0; i < v->accesses.count; i++) {
        const struct nest_access *a = &v->accesses.at[i];
        v->statement = a->statement;
        check_range(v, a);
        check_point_local(v, a, scope[a->buffer]);
        check_summed_axis(v, a);
        if (!a->is_put) {
            check_load(v, i, scope[a->buffer]);
            continue;
        }
        if (v->nest->buffers.at[a->buffer].role == NEST_IN)
            nest_fault(v, "%s is an input", v->nest->buffers.at[a->buffer].name);
        if (v->nest->buffers.at[a->buffer].role == NEST_WORK)
            nest_fault(v, "%s is for the threads alone", v->nest->buffers.at[a->buffer].name);
        check_accumulating(v, a, scope[a->buffer]);
        check_one_point(v, a, scope[a->buffer]);
    }
}
