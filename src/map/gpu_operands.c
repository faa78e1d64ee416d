// SPDX-License-Identifier: Apache-2.0
// What the steps of a program promise about the arguments of a kernel: how they are aligned, which
// are in memory of their own, and which nothing writes.
#include "map/gpu_operands.h"

#include "base/vec.h"

#include <stdlib.h>

static uint64_t memory_bytes(const struct nest_memory *m)
{
    return (uint64_t)m->count * jot_dtype_size(m->dtype);
}

static unsigned alignment_of(const struct nest_program *p, uint32_t memory)
{
    const struct nest_memory *m = &p->memories.at[memory];
    unsigned align = MAP_ALIGNMENT;
    if (!nest_memory_is_view(m)) {
        while (m->offset % align)
            align /= 2;
        return align;
    }
    for (uint32_t i = 0; i < m->n_of; i++) {
        unsigned of = alignment_of(p, m->of[i]);
        align = of < align ? of : align;
    }
    while (m->kind == NEST_ROW && memory_bytes(m) % align)
        align /= 2;
    return align;
}

// Where arrays that are no views are, as if all were in one memory.
struct span {
    uint64_t begin, end;
};

static struct span span_of(const struct nest_program *p, const struct nest_memory *m)
{
    uint64_t end = p->is_planned ? p->arena_bytes : 0, at = end + m->index,
             own = (uint64_t)(m - p->memories.at);
    switch (m->kind) {
    case NEST_TEMPORARY:
        if (p->is_planned)
            return (struct span){m->offset, m->offset + memory_bytes(m)};
        own += p->n_inputs + p->n_outputs; // memory is not planned yet
        return (struct span){own, own + 1};
    case NEST_INPUT:
        return (struct span){at, at + 1};
    case NEST_OUTPUT: // may have taken the memory of an input
        at = p->donated && p->donated[m->index] >= 0 ? end + (uint64_t)p->donated[m->index]
                                                     : at + p->n_inputs;
        return (struct span){at, at + 1};
    default:
        return (struct span){0}; // nothing writes it
    }
}

static bool overlap(struct span a, struct span b) { return a.begin < b.end && b.begin < a.end; }

static bool meets(const struct nest_program *p, uint32_t memory, struct span s)
{
    const struct nest_memory *m = &p->memories.at[memory];
    for (uint32_t i = 0; nest_memory_is_view(m) && i < m->n_of; i++)
        if (meets(p, m->of[i], s))
            return true;
    return !nest_memory_is_view(m) && overlap(span_of(p, m), s);
}

// Whether memories a and b may be one in the same trip.
static bool may_meet(const struct nest_program *p, uint32_t a, uint32_t b)
{
    const struct nest_memory *x = &p->memories.at[a], *y = &p->memories.at[b];
    if (x->kind == NEST_TURN && y->kind == NEST_TURN && x->loop == y->loop &&
        x->n_of == y->n_of) {
        bool is = false;
        for (uint32_t t = 0; t < x->n_of; t++)
            is |= may_meet(p, x->of[(x->index + t) % x->n_of], y->of[(y->index + t) % y->n_of]);
        return is;
    }
    for (uint32_t i = 0; nest_memory_is_view(x) && i < x->n_of; i++)
        if (may_meet(p, x->of[i], b))
            return true;
    return a == b || (!nest_memory_is_view(x) && meets(p, b, span_of(p, x)));
}

// The buffers of the memories of a kernel's steps, in order.
static nest_id *operands_of(struct arena *arena, const struct nest *n)
{
    nest_id *all = arena_array(arena, nest_id, n->buffers.count + 1);
    uint32_t count = 0;
    for (nest_id i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role != NEST_LOCAL)
            all[count++] = i;
    return all;
}

// Which of its memories the step writes.
static bool *written_by(struct arena *arena, const struct nest_program *p,
                        const struct nest_step *t)
{
    bool *all = arena_array(arena, bool, t->n_memories + 1);
    if (t->kind == NEST_STEP_COPY)
        all[0] = true;
    if (t->kind != NEST_STEP_KERNEL)
        return all;
    const struct nest *n = p->nests.at[t->nest];
    const nest_id *operands = operands_of(arena, n);
    for (uint32_t k = 0; k < t->n_memories; k++)
        all[k] = n->buffers.at[operands[k]].role != NEST_IN;
    return all;
}

// ---- What resident loops write

struct map_writes {
    VEC(struct span) spans; // one after the other, with something between them
};

static void add_spans(struct arena *arena, const struct nest_program *p, uint32_t memory,
                      struct map_writes *w)
{
    const struct nest_memory *m = &p->memories.at[memory];
    for (uint32_t i = 0; nest_memory_is_view(m) && i < m->n_of; i++)
        add_spans(arena, p, m->of[i], w);
    if (!nest_memory_is_view(m))
        vec_push(arena, &w->spans, span_of(p, m));
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void unite_spans(struct map_writes *w)
{
    uint32_t n = 0;
    if (w->spans.count)
        qsort(w->spans.at, w->spans.count, sizeof *w->spans.at, compare_spans);
    for (uint32_t i = 0; i < w->spans.count; i++) {
        struct span s = w->spans.at[i], *last = &w->spans.at[n ? n - 1 : 0];
        if (!n || s.begin > last->end)
            w->spans.at[n++] = s;
        else if (s.end > last->end)
            last->end = s.end;
    }
    w->spans.count = n;
}

// By step: what the resident loop around it writes; NULL where there is none.
static const struct map_writes *const *writes_of_loops(struct arena *arena,
                                                       const struct nest_program *p)
{
    const struct map_writes **all =
        arena_array(arena, const struct map_writes *, p->steps.count + 1);
    for (uint32_t first = 0; first < p->steps.count; first++) {
        if (!nest_loop_is_resident(p, first))
            continue;
        struct map_writes *w = arena_new(arena, struct map_writes);
        uint32_t end = nest_step_end(p, first);
        for (uint32_t i = first; i < end; i++) {
            const struct nest_step *t = &p->steps.at[i];
            const bool *written = written_by(arena, p, t);
            for (uint32_t k = 0; k < t->n_memories; k++)
                if (written[k])
                    add_spans(arena, p, t->memories[k], w);
            all[i] = w;
        }
        unite_spans(w);
        first = end;
    }
    return all;
}

static bool loop_writes(const struct nest_program *p, const struct map_writes *w,
                        uint32_t memory)
{
    const struct nest_memory *m = &p->memories.at[memory];
    for (uint32_t i = 0; nest_memory_is_view(m) && i < m->n_of; i++)
        if (loop_writes(p, w, m->of[i]))
            return true;
    if (nest_memory_is_view(m))
        return false;
    struct span s = span_of(p, m);
    uint32_t low = 0, high = w->spans.count; // the first that ends behind where s begins
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (w->spans.at[middle].end <= s.begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->spans.count && overlap(w->spans.at[low], s);
}

bool map_step_writes(struct arena *arena, const struct nest_program *p, uint32_t i,
                     uint32_t memory)
{
    const struct nest_step *t = &p->steps.at[i];
    const bool *written = written_by(arena, p, t);
    for (uint32_t k = 0; k < t->n_memories; k++)
        if (written[k] && may_meet(p, t->memories[k], memory))
            return true;
    return false;
}

bool map_step_waits(struct arena *arena, const struct nest_program *p, uint32_t i, uint32_t k)
{
    const struct nest_step *s = &p->steps.at[i], *t = &p->steps.at[k];
    const bool *before = written_by(arena, p, s), *behind = written_by(arena, p, t);
    for (uint32_t x = 0; x < s->n_memories; x++)
        for (uint32_t y = 0; y < t->n_memories; y++)
            if ((before[x] || behind[y]) && may_meet(p, s->memories[x], t->memories[y]))
                return true;
    return false;
}

// ---- Operands

// Where an operand of a step is.
struct operand_span {
    struct span span;
    uint32_t operand;
};

struct operand_spans {
    VEC(struct operand_span) all;
};

static void add_operand_spans(struct arena *arena, const struct nest_program *p,
                              uint32_t memory, uint32_t operand, struct operand_spans *spans)
{
    const struct nest_memory *m = &p->memories.at[memory];
    for (uint32_t i = 0; nest_memory_is_view(m) && i < m->n_of; i++)
        add_operand_spans(arena, p, m->of[i], operand, spans);
    if (!nest_memory_is_view(m))
        vec_push(arena, &spans->all, ((struct operand_span){span_of(p, m), operand}));
}

static int compare_operand_spans(const void *a, const void *b)
{
    return compare_spans(&((const struct operand_span *)a)->span,
                         &((const struct operand_span *)b)->span);
}

// Finds the operands that share memory with others where the step writes.
static void find_shared(struct arena *arena, const struct nest_program *p,
                        const struct nest_step *t, const nest_id *operands,
                        struct map_operand *all)
{
    struct operand_spans spans = {0};
    const bool *written = written_by(arena, p, t);
    for (uint32_t k = 0; k < t->n_memories; k++)
        add_operand_spans(arena, p, t->memories[k], k, &spans);
    const struct operand_span *at = spans.all.at;
    uint32_t n = spans.all.count, end;
    if (n)
        qsort(spans.all.at, n, sizeof *at, compare_operand_spans);
    for (uint32_t first = 0; first < n; first = end) {
        bool is_written = false, is_shared = false;
        uint64_t reach = at[first].span.end;
        for (end = first; end == first || (end < n && at[end].span.begin < reach); end++) {
            reach = at[end].span.end > reach ? at[end].span.end : reach;
            is_written |= written[at[end].operand];
            is_shared |= at[end].operand != at[first].operand;
        }
        for (uint32_t i = first; i < end && is_written && is_shared; i++) {
            struct map_operand *o = &all[operands[at[i].operand]];
            o->is_alone = o->is_constant = false;
        }
    }
}

static struct map_operand *make_operands(struct arena *arena, const struct nest *n)
{
    struct map_operand *all = arena_array(arena, struct map_operand, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        all[i] =
            (struct map_operand){.align = MAP_ALIGNMENT, .is_alone = true, .is_constant = true};
    return all;
}

const struct map_operand *const *map_operands(struct arena *arena, const struct nest_program *p)
{
    const struct map_writes *const *writes = writes_of_loops(arena, p);
    struct map_operand **out = arena_array(arena, struct map_operand *, p->nests.count + 1);
    for (uint32_t i = 0; i < p->nests.count; i++)
        out[i] = make_operands(arena, p->nests.at[i]);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (t->kind != NEST_STEP_KERNEL)
            continue;
        const nest_id *operands = operands_of(arena, p->nests.at[t->nest]);
        for (uint32_t k = 0; k < t->n_memories; k++) {
            struct map_operand *o = &out[t->nest][operands[k]];
            unsigned align = alignment_of(p, t->memories[k]);
            uint64_t first = (uint64_t)nest_step_range(p, t, k).first;
            while (first * jot_dtype_size(p->memories.at[t->memories[k]].dtype) % align)
                align /= 2;
            o->align = align < o->align ? align : o->align;
            if (writes[i] && loop_writes(p, writes[i], t->memories[k]))
                o->is_constant = false;
        }
        find_shared(arena, p, t, operands, out[t->nest]);
    }
    return (const struct map_operand *const *)out;
}
