// SPDX-License-Identifier: Apache-2.0
// Finds the steps of a program that go over the same points, as those of a network mapped over
// samples do:
//
//     gemm z = x [10000, 20] w [20, 20]           fold n < 10000 {
//     par n, j { put h[20*n + j] = tanh z }         contract z[j] = x[k], w[20*k + j] ...
//     gemm g = x^T [20, 10000] h         become     map j { put h[j] = tanh z[j] }
//     ...                                           map i, j { put g[20*i + j] fma= x[i], h[j] in @n }
//                                                 }
//
// A step belongs to them when it takes of what they make only what is of its own point.  The others
// run before when they need nothing of it, else after.
#include "schedule/kernels/points.h"

#include "schedule/internal.h"
#include "schedule/library/library.h"

#include <string.h>

#define LEAST_POINTS 256
#define LARGEST_SIDE 64   // of a matrix that stays in the nearest cache
#define MOST_COLUMNS 4096 // sums that a kernel may keep
// Bytes of what products over points are made of, for one point: of a block of 512 points that is
// what the second cache holds.
#define MOST_KEPT 3072

// ---- What a step is

static bool has_simple_loops(const struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block) {
        if (s->kind > NEST_FOLD || s->kind == NEST_PAR)
            return false;
        for (uint32_t k = 0; k < s->n_combines; k++)
            if (nest_combine_results(s->combines[k].op) != 1)
                return false;
    }
    return true;
}

static uint32_t block_count(const struct nest *n, uint32_t block)
{
    return n->blocks.at[block].statements.count;
}

static bool has_loops(const struct nest *n, uint32_t block)
{
    nest_for_each (s, n, block) {
        enum nest_kind kind = s->kind;
        if (kind == NEST_MAP || kind == NEST_FOLD)
            return true;
    }
    return false;
}

// The loop over points at the top of a kernel, or in each of its columns.
static void find_loop(const struct points *p, struct points_step *t)
{
    const struct nest *n = t->nest;
    const struct nest_block *body = &n->blocks.at[0];
    for (t->at = 0; t->at < body->statements.count; t->at++) {
        t->loop = body->statements.at[t->at];
        if (!nest_is_scalar(&n->statements.at[t->loop]))
            break;
    }
    if (t->at == body->statements.count)
        return;
    const struct nest_statement *s = &n->statements.at[t->loop];
    if ((s->kind != NEST_PAR && s->kind != NEST_FOLD) || !has_simple_loops(n, s->body))
        return;
    int64_t first = n->axes.at[s->axes[0]].extent;
    bool ends = t->at + 1 == body->statements.count;
    t->axis = s->axes[0];
    t->width = 1;
    if (s->kind == NEST_FOLD) {
        bool is_sum = first == p->n && s->n_axes == 1 && has_simple_loops(n, 0);
        t->kind = is_sum ? POINTS_FOLD : POINTS_OTHER;
    } else if (ends && first % p->n == 0 && (first == p->n || s->n_axes == 1)) {
        t->width = first / p->n;
        t->kind = t->width <= LARGEST_SIDE ? POINTS_MAP : POINTS_OTHER;
    } else if (ends && nest_extent(n, s) <= MOST_COLUMNS) {
        nest_for_each (f, n, s->body) {
            if (f->kind == NEST_MAP || (f->kind == NEST_FOLD && t->kind != POINTS_OTHER)) {
                t->kind = POINTS_OTHER;
                return;
            }
            if (f->kind != NEST_FOLD)
                continue;
            if (f->n_axes != 1 || n->axes.at[f->axes[0]].extent != p->n ||
                has_loops(n, f->body))
                return;
            t->kind = POINTS_COLUMNS;
            t->fold = nest_id_of(n, f);
            t->axis = f->axes[0];
        }
    }
}

static void note_uses(const struct nest_statement *s, bool *is_taken)
{
    nest_for_uses (value, s)
        is_taken[value] = true;
}

// Moves what a column computes in front of its fold over points, and the fold does not take, behind it: that may
// be made of other sums over the points.
static void put_fold_first(const struct points *p, struct nest *n, const struct points_step *t)
{
    struct nest_block *column = &n->blocks.at[n->statements.at[t->loop].body];
    uint32_t at = points_fold_at(t), kept = 0, moved = 0;
    bool *is_taken = arena_array(p->scratch, bool, n->values.count + 1);
    nest_id *behind = arena_array(p->scratch, nest_id, at + 1);
    note_uses(&n->statements.at[t->fold], is_taken);
    nest_for_each (s, n, n->statements.at[t->fold].body)
        note_uses(s, is_taken);
    for (uint32_t i = at; i-- > 0;) {
        const struct nest_statement *s = &n->statements.at[column->statements.at[i]];
        bool stays = !nest_is_scalar(s) || is_taken[s->result];
        if (stays)
            note_uses(s, is_taken);
        else
            behind[moved++] = column->statements.at[i];
    }
    for (uint32_t i = 0; i < at; i++) {
        nest_id id = column->statements.at[i];
        bool moves =
            nest_is_scalar(&n->statements.at[id]) && !is_taken[n->statements.at[id].result];
        if (!moves)
            column->statements.at[kept++] = id;
    }
    column->statements.at[kept++] = t->fold;
    while (moved)
        column->statements.at[kept++] = behind[--moved];
}

static bool is_single(const struct nest_gemm *g)
{
    return g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3] == 1 &&
           (g->dtype == JOT_F32 || g->dtype == JOT_F64) && g->operands == g->dtype;
}

bool points_is_layer(const struct nest_gemm *g)
{
    return is_single(g) && !g->transpose_a && g->m >= LEAST_POINTS && g->n <= LARGEST_SIDE &&
           g->k <= LARGEST_SIDE && g->lda == g->k && g->ldc == g->n;
}

static bool is_gradient(const struct nest_gemm *g)
{
    return is_single(g) && g->transpose_a && !g->transpose_b && g->m <= LARGEST_SIDE &&
           g->n <= LARGEST_SIDE && g->lda == g->m && g->ldb == g->n && g->ldc == g->n;
}

static struct points_step classify(const struct points *p, const struct nest_step *s)
{
    struct points_step t = {.width = 1, .axis = NEST_NONE, .loop = NEST_NONE};
    const struct nest_program *m = p->program;
    if (s->kind == NEST_STEP_GEMM) {
        const int64_t counts[] = {m->memories.at[s->memories[0]].count,
                                  m->memories.at[s->memories[1]].count,
                                  m->memories.at[s->memories[2]].count};
        const struct nest_gemm *g = &s->gemm;
        if (points_is_layer(g) && g->m == p->n && counts[0] == p->n * g->k &&
            counts[2] == p->n * g->n)
            t.kind = POINTS_LAYER;
        if (is_gradient(g) && g->k == p->n && counts[0] == p->n * g->m &&
            counts[1] == p->n * g->n)
            t.kind = POINTS_GRADIENT;
        return t;
    }
    if (s->kind != NEST_STEP_KERNEL)
        return t;
    t.nest = m->nests.at[s->nest];
    find_loop(p, &t);
    if (t.kind == POINTS_COLUMNS)
        put_fold_first(p, m->nests.at[s->nest], &t);
    return t;
}

// ---- Where it reads

// Whether the access is to what belongs to the point: elements width * n to width * n + width - 1.
static bool is_own(const struct points *p, const struct points_step *t,
                   const struct nest_index *x, uint32_t memory)
{
    int64_t count = p->program->memories.at[memory].count, low = x->constant, high = low;
    int64_t width = count / p->n;
    if (count % p->n || width > LARGEST_SIDE ||
        nest_index_factor(x, t->axis) * t->width != width)
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->terms[i].is_value)
            return false;
        bool is_points = x->terms[i].id == t->axis;
        int64_t extent = is_points ? t->width : t->nest->axes.at[x->terms[i].id].extent;
        int64_t reach = x->terms[i].factor * (extent - 1);
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    return low >= 0 && high < width;
}

// The memory that a buffer of the kernel of a step stands for; NEST_NONE for a local.
static uint32_t memory_of(const struct points *p, uint32_t step, nest_id buffer)
{
    const struct nest *n = p->steps[step].nest;
    uint32_t argument = 0;
    for (nest_id i = 0; i < buffer; i++)
        argument += n->buffers.at[i].role != NEST_LOCAL;
    return n->buffers.at[buffer].role == NEST_LOCAL
               ? NEST_NONE
               : p->program->steps.at[step].memories[argument];
}

struct sets {
    bool *made, *late;            // by memory: written by steps IN, by steps AFTER
    bool *shared;                 // by memory: made, and not each element at its own point
    bool *is_read, *is_read_late; // by memory: by steps IN, by steps AFTER
};

// Whether every access below the block to what the kernel makes is to the own point.
static bool stays_own(const struct points *p, uint32_t step, uint32_t block,
                      const struct sets *of)
{
    const struct points_step *t = &p->steps[step];
    nest_for_below (s, t->nest, block) {
        uint32_t m = s->kind == NEST_LOAD ? memory_of(p, step, s->buffer) : NEST_NONE;
        if (m != NEST_NONE && of->made[m] && (of->shared[m] || !is_own(p, t, &s->index, m)))
            return false;
    }
    return true;
}

// Whether what follows the sums of columns, in a kernel afterwards, leaves alone what is of points.
static bool goes_on(const struct points *p, uint32_t step, const struct sets *of)
{
    const struct points_step *t = &p->steps[step];
    nest_for_each (s, t->nest, t->nest->statements.at[t->loop].body) {
        uint32_t m = s->kind == NEST_LOAD ? memory_of(p, step, s->buffer) : NEST_NONE;
        if (m != NEST_NONE && of->made[m] && !of->shared[m])
            return false;
    }
    return true;
}

// Whether no statement of a block in a range, nor any inside one, reads what the kernel makes.
static bool reads_nothing_made(const struct points *p, uint32_t step, uint32_t block,
                               uint32_t from, uint32_t to, const struct sets *of)
{
    const struct nest *n = p->steps[step].nest;
    for (uint32_t i = from; i < to; i++) {
        const struct nest_statement *s =
            &n->statements.at[n->blocks.at[block].statements.at[i]];
        uint32_t m = s->kind == NEST_LOAD ? memory_of(p, step, s->buffer) : NEST_NONE;
        if (m != NEST_NONE && of->made[m])
            return false;
        if ((s->kind == NEST_MAP || s->kind == NEST_FOLD) &&
            !reads_nothing_made(p, step, s->body, 0, block_count(n, s->body), of))
            return false;
    }
    return true;
}

// Whether what stands in front of the fold over points of columns reads nothing that the kernel
// makes, and the fold what is of its own point.
static bool columns_stay_own(const struct points *p, uint32_t step, const struct sets *of)
{
    const struct points_step *t = &p->steps[step];
    uint32_t block = t->nest->statements.at[t->loop].body;
    return reads_nothing_made(p, step, block, 0, points_fold_at(t), of) &&
           stays_own(p, step, t->nest->statements.at[t->fold].body, of);
}

// Buffers are read or written whole; what is updated stays outside.
static bool has_plain_buffers(const struct nest *n)
{
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role == NEST_INOUT || n->buffers.at[i].role == NEST_PART)
            return false;
    return true;
}

static bool fits(const struct points *p, uint32_t step, const struct sets *of)
{
    const struct points_step *t = &p->steps[step];
    const struct nest_step *s = &p->program->steps.at[step];
    if (t->kind == POINTS_OTHER)
        return false;
    if (t->kind == POINTS_LAYER)
        return !of->shared[s->memories[0]] && !of->made[s->memories[1]];
    // One of memory alone is the library's.
    if (t->kind == POINTS_GRADIENT)
        return (of->made[s->memories[0]] || of->made[s->memories[1]]) &&
               !of->shared[s->memories[0]] && !of->shared[s->memories[1]];
    const struct nest_statement *loop = &t->nest->statements.at[t->loop];
    if (!has_plain_buffers(t->nest) || !reads_nothing_made(p, step, 0, 0, t->at, of) ||
        (t->kind == POINTS_FOLD &&
         !reads_nothing_made(p, step, 0, t->at + 1, block_count(t->nest, 0), of)))
        return false;
    return t->kind == POINTS_COLUMNS ? goes_on(p, step, of) && columns_stay_own(p, step, of)
                                     : stays_own(p, step, loop->body, of);
}

// ---- Choosing

// Notes what a step IN makes that belongs to no point, or not to the one that makes it.
static void share_puts(const struct points *p, uint32_t step, uint32_t block, struct sets *of)
{
    const struct points_step *t = &p->steps[step];
    nest_for_each (s, t->nest, block) {
        // What stands around the sums of columns runs in a kernel afterwards.
        bool is_late =
            t->kind == POINTS_COLUMNS && block != t->nest->statements.at[t->fold].body;
        uint32_t m = s->kind == NEST_PUT ? memory_of(p, step, s->buffer) : NEST_NONE;
        if (m != NEST_NONE && (s->op || is_late || !is_own(p, t, &s->index, m)))
            of->shared[m] = true;
        if (s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD)
            share_puts(p, step, s->body, of);
    }
}

static void find_shared(const struct points *p, uint32_t step, struct sets *of)
{
    if (p->steps[step].kind == POINTS_GRADIENT)
        of->shared[p->program->steps.at[step].memories[2]] = true;
    else if (p->steps[step].nest)
        share_puts(p, step, 0, of);
}

// Whether the step reads what is in the memory before it writes there.
static bool overwrites(const struct points *p, const struct nest_step *s, uint32_t memory)
{
    bool reads = false;
    for (uint32_t k = 0; k < s->n_memories; k++)
        reads |= s->memories[k] == memory && !plan_is_written(p->program, s, k);
    return reads;
}

// The side of the kernel that the step stands on.  It is in it if what it reads is there, and what it writes is not
// wanted any more as it was.
static enum points_side side_of(const struct points *p, uint32_t step, const struct sets *of)
{
    const struct nest_step *s = &p->program->steps.at[step];
    bool is_late = false, needs = false, clashes = false;
    for (uint32_t k = 0; k < s->n_memories; k++) {
        uint32_t m = s->memories[k];
        bool is_written = plan_is_written(p->program, &p->program->steps.at[step], k);
        is_late = is_late || of->late[m] || (is_written && of->is_read_late[m]);
        needs = needs || of->made[m] || (is_written && of->is_read[m]);
        clashes =
            clashes || (is_written && (of->made[m] || of->is_read[m] || overwrites(p, s, m)));
    }
    if (!is_late && !clashes && fits(p, step, of))
        return POINTS_IN;
    return is_late || needs ? POINTS_AFTER : POINTS_BEFORE;
}

// Steps, and the memories that are of points; those in `outside` others know too.
static void choose_sides(struct points *p, const bool *outside)
{
    struct nest_program *m = p->program;
    uint32_t n = m->memories.count;
    bool *sets[5];
    for (int i = 0; i < 5; i++)
        sets[i] = arena_array(p->scratch, bool, n + 1);
    struct sets of = {sets[0], sets[1], sets[2], sets[3], sets[4]};
    bool *exported = arena_copy(p->scratch, outside, n * sizeof *outside);
    for (uint32_t i = 0; i < m->steps.count; i++) {
        const struct nest_step *s = &m->steps.at[i];
        enum points_side side = p->steps[i].side = side_of(p, i, &of);
        for (uint32_t k = 0; k < s->n_memories; k++) {
            uint32_t memory = s->memories[k];
            bool is_written = plan_is_written(p->program, &p->program->steps.at[i], k);
            if (side == POINTS_IN)
                (is_written ? of.made : of.is_read)[memory] = true;
            if (side == POINTS_AFTER)
                (is_written ? of.late : of.is_read_late)[memory] = true;
            exported[memory] = exported[memory] || side != POINTS_IN;
        }
        if (side == POINTS_IN)
            find_shared(p, i, &of);
    }
    p->is_local = arena_array(p->scratch, bool, n + 1);
    p->is_exported = arena_array(p->scratch, bool, n + 1);
    for (uint32_t k = 0; k < n; k++) {
        p->is_local[k] = of.made[k] && !of.shared[k];
        p->is_exported[k] =
            p->is_local[k] && (exported[k] || m->memories.at[k].kind != NEST_TEMPORARY);
    }
}

static uint32_t count_layers(const struct nest_program *m, int64_t n)
{
    uint32_t layers = 0;
    for (uint32_t i = 0; i < m->steps.count; i++)
        layers += m->steps.at[i].kind == NEST_STEP_GEMM &&
                  points_is_layer(&m->steps.at[i].gemm) && m->steps.at[i].gemm.m == n;
    return layers;
}

// Bytes that the products over points read of one point.
static int64_t kept_bytes(const struct points *p)
{
    const struct nest_program *m = p->program;
    bool *seen = arena_array(p->scratch, bool, m->memories.count + 1);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < m->steps.count; i++) {
        if (p->steps[i].side != POINTS_IN)
            continue;
        bytes += points_product_bytes(p, &p->steps[i]);
        for (int k = 0; k < 2 && p->steps[i].kind == POINTS_GRADIENT; k++) {
            uint32_t memory = m->steps.at[i].memories[k];
            if (!seen[memory])
                bytes +=
                    points_width(p, memory) * dtype_get(m->memories.at[memory].dtype)->bytes;
            seen[memory] = true;
        }
    }
    return bytes;
}

static bool fuse(struct nest_program *m, struct arena *scratch, int64_t n, int64_t least_alone,
                 const bool *outside)
{
    struct points p = {.program = m, .scratch = scratch, .n = n};
    if (count_layers(m, n) < POINTS_LEAST_LAYERS)
        return false;
    points_split(m, scratch, n);
    p.steps = arena_array(scratch, struct points_step, m->steps.count + 1);
    for (uint32_t i = 0; i < m->steps.count; i++)
        p.steps[i] = classify(&p, &m->steps.at[i]);
    choose_sides(&p, outside);
    uint32_t layers = 0, sums = 0;
    for (uint32_t i = 0; i < m->steps.count; i++)
        if (p.steps[i].side == POINTS_IN) {
            layers += p.steps[i].kind == POINTS_LAYER;
            sums += p.steps[i].kind == POINTS_GRADIENT || p.steps[i].kind == POINTS_FOLD;
        }
    if (layers < POINTS_LEAST_LAYERS || kept_bytes(&p) > MOST_KEPT ||
        (!sums && n < least_alone))
        return false;
    points_write(&p);
    return true;
}

// ---- Sections: steps between those that are neither kernels nor products

static bool is_of_section(const struct nest_step *s)
{
    return s->kind == NEST_STEP_KERNEL || s->kind == NEST_STEP_GEMM;
}

// Whether two memories of the section are the same in some trip of a loop.
static bool has_views_of_written(const struct nest_program *m)
{
    struct points p = {.program = (struct nest_program *)(uintptr_t)m};
    for (uint32_t i = 0; i < m->steps.count; i++)
        for (uint32_t k = 0; k < m->steps.at[i].n_memories; k++) {
            uint32_t written = m->steps.at[i].memories[k];
            if (!plan_is_written(p.program, &p.program->steps.at[i], k))
                continue;
            for (uint32_t j = 0; j < m->steps.count; j++)
                for (uint32_t q = 0; q < m->steps.at[j].n_memories; q++) {
                    uint32_t other = m->steps.at[j].memories[q];
                    if (other != written && (nest_memory_shows(m, other, written) ||
                                             nest_memory_shows(m, written, other)))
                        return true;
                }
        }
    return false;
}

// The program with the steps [first, end) only, and which of its memories others know.
static struct nest_program section_of(const struct nest_program *m, struct arena *scratch,
                                      uint32_t first, uint32_t end, bool **outside)
{
    struct nest_program section = *m;
    memset(&section.steps, 0, sizeof section.steps);
    *outside = arena_array(scratch, bool, m->memories.count + 1);
    for (uint32_t i = 0; i < m->steps.count; i++) {
        const struct nest_step *s = &m->steps.at[i];
        if (i >= first && i < end)
            vec_push(m->arena, &section.steps, *s);
        for (uint32_t k = 0; (i < first || i >= end) && k < s->n_memories; k++)
            (*outside)[s->memories[k]] = true;
    }
    for (uint32_t i = 0; i < m->memories.count; i++)
        for (uint32_t k = 0;
             nest_memory_is_view(&m->memories.at[i]) && k < m->memories.at[i].n_of; k++)
            (*outside)[m->memories.at[i].of[k]] = true;
    return section;
}

static bool has_layers(const struct nest_program *m, uint32_t first, uint32_t end)
{
    uint32_t layers = 0;
    for (uint32_t i = first; i < end; i++)
        layers +=
            m->steps.at[i].kind == NEST_STEP_GEMM && points_is_layer(&m->steps.at[i].gemm);
    return layers >= POINTS_LEAST_LAYERS;
}

// Makes what can be made of one section; returns how many steps it has then.
static uint32_t fuse_section(struct nest_program *m, struct arena *scratch, int64_t least_alone,
                             uint32_t first, uint32_t end)
{
    bool *outside;
    struct nest_program section = section_of(m, scratch, first, end, &outside);
    int64_t tried = 0;
    bool done = false;
    for (uint32_t i = 0; i < section.steps.count && !done; i++) {
        const struct nest_step *s = &section.steps.at[i];
        if (s->kind != NEST_STEP_GEMM || !points_is_layer(&s->gemm) || s->gemm.m == tried)
            continue;
        tried = s->gemm.m;
        done = count_layers(&section, tried) >= POINTS_LEAST_LAYERS &&
               !has_views_of_written(&section) &&
               fuse(&section, scratch, tried, least_alone, outside);
    }
    m->nests = section.nests;
    m->memories = section.memories;
    if (!done)
        return end - first;
    VEC(struct nest_step) steps = {0};
    for (uint32_t i = 0; i < first; i++)
        vec_push(m->arena, &steps, m->steps.at[i]);
    for (uint32_t i = 0; i < section.steps.count; i++)
        vec_push(m->arena, &steps, section.steps.at[i]);
    for (uint32_t i = end; i < m->steps.count; i++)
        vec_push(m->arena, &steps, m->steps.at[i]);
    m->steps.count = 0;
    for (uint32_t i = 0; i < steps.count; i++)
        vec_push(m->arena, &m->steps, steps.at[i]);
    return section.steps.count;
}

bool points_is_network(const struct nest *n)
{
    bool has_layer = false, has_sum = false;
    jot_dtype d = JOT_F32;
    nest_for_all (s, n) {
        has_layer |= s->kind == NEST_CONTRACT;
        if (s->kind != NEST_PUT || !s->op)
            continue;
        jot_dtype put = n->buffers.at[s->buffer].dtype;
        bool is_sum = s->op == IR_fma || s->op == IR_reduce_sum;
        if (!is_sum || s->guard != NEST_NONE || (has_sum && put != d) ||
            (put != JOT_F32 && put != JOT_F64))
            return false;
        d = put;
        has_sum = true;
    }
    nest_for_each (s, n, 0)
        for (uint32_t k = 0; s->kind == NEST_FOLD && k < s->n_combines; k++) {
            const struct nest_combine *c = &s->combines[k];
            if ((c->op != IR_fma && c->op != IR_reduce_sum) || (has_sum && c->dtype != d))
                return false;
        }
    return has_layer;
}

static int64_t accumulated_in(const struct nest *n, uint32_t block)
{
    int64_t count = 0;
    nest_for_each (s, n, block)
        if (s->kind == NEST_PUT)
            count += s->op != 0;
        else if (s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD)
            count += nest_extent(n, s) * accumulated_in(n, s->body);
    return count;
}

int64_t points_accumulated(const struct nest *n) { return accumulated_in(n, 0); }

void schedule_points(struct nest_program *m, struct arena *scratch, int64_t least_alone)
{
    for (uint32_t i = 0; i < m->steps.count; i++) {
        uint32_t end = i;
        while (end < m->steps.count && is_of_section(&m->steps.at[end]))
            end++;
        if (end == i)
            continue;
        i = has_layers(m, i, end) ? i + fuse_section(m, scratch, least_alone, i, end) : end;
    }
    schedule_drop_nests(m);
}
