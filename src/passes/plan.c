// SPDX-License-Identifier: Apache-2.0
// Where the values of a program live.
//
// Temporaries share one arena: each gets the smallest gap that holds it, from the step that writes
// it to the last that reads it.  A kernel may write over an operand that nobody reads later if
// every point has read its elements before it writes them; so may an output take the memory of a
// donated input.
#include "passes/schedule.h"

#define ALIGNMENT 64

static uint64_t bytes_of(const struct nest_memory *m)
{
    return (uint64_t)m->count * dtype_get(m->dtype)->bytes;
}

static uint64_t room_of(const struct nest_memory *m)
{
    return (bytes_of(m) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Whether step t reads or writes its operand i.
static bool is_written(const struct nest_program *p, const struct nest_step *t, uint32_t i)
{
    if (t->kind == NEST_STEP_COPY)
        return i == 0;
    if (t->kind == NEST_STEP_GEMM)
        return i == 2;
    const struct nest *n = p->nests.at[t->nest];
    for (uint32_t b = 0, k = 0; b < n->buffers.count; b++)
        if (n->buffers.at[b].role != NEST_LOCAL && k++ == i)
            return n->buffers.at[b].role != NEST_IN;
    return false;
}

static nest_id buffer_number(const struct nest *n, uint32_t operand)
{
    for (uint32_t b = 0, k = 0; b < n->buffers.count; b++)
        if (n->buffers.at[b].role != NEST_LOCAL && k++ == operand)
            return b;
    return NEST_NONE;
}

// Whether step t reads its operand i beside writing it.
static bool is_updated(const struct nest_program *p, const struct nest_step *t, uint32_t i)
{
    if (t->kind != NEST_STEP_KERNEL)
        return false;
    const struct nest *n = p->nests.at[t->nest];
    return n->buffers.at[buffer_number(n, i)].role == NEST_INOUT;
}

// ---- Writing over an operand

#define MAX_DEPTH 16

// An access of one of the two buffers, in the order of the program.
struct access {
    nest_id statement;
    uint32_t depth;
    uint32_t path[MAX_DEPTH];      // loops around it
    uint32_t order[MAX_DEPTH + 1]; // places in the blocks
};

struct overwrite {
    const struct nest *n;
    nest_id from, to;
    VEC(struct access) loads;
    struct access put;
    uint32_t puts;
    bool fits;
};

static void visit_block(struct arena *arena, struct overwrite *o, uint32_t block,
                        struct access *at)
{
    const struct nest_block *b = &o->n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count && o->fits; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = &o->n->statements.at[id];
        at->order[at->depth] = i;
        at->statement = id;
        if (s->kind == NEST_LOAD && s->buffer == o->from) {
            vec_push(arena, &o->loads, *at);
        } else if (s->kind == NEST_PUT && s->buffer == o->to) {
            o->put = *at;
            o->puts++;
        } else if (s->kind == NEST_SEQ || s->kind == NEST_WHILE || s->kind == NEST_IF ||
                   s->kind == NEST_TILE || s->kind == NEST_CONTRACT) {
            o->fits = false;
        } else if (s->body != NEST_NONE) {
            o->fits = at->depth < MAX_DEPTH;
            if (!o->fits)
                return;
            at->path[at->depth++] = id;
            visit_block(arena, o, s->body, at);
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

static bool has_value(const struct nest_index *x)
{
    return x->count && x->terms[x->count - 1].is_value;
}

// Whether the forms use the axes of the outermost loop alike and the others by the same factors
// and extents: in one point they then visit the same elements.
static bool covers_same(const struct nest *n, nest_id point, const struct nest_index *x,
                        const struct nest_index *y)
{
    if (x->constant != y->constant || x->count != y->count || has_value(x) || has_value(y))
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
    if (x->constant != y->constant || x->count != y->count || has_value(x) || has_value(y))
        return false;
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].id != y->terms[i].id || x->terms[i].factor != y->terms[i].factor)
            return false;
    return true;
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
    if (common == put->depth && common == load->depth)
        return same_form(&l->index, &w->index) && l->guard == NEST_NONE;
    // Loops one after the other inside one point.
    return common == 1 && covers_same(n, put->path[0], &l->index, &w->index);
}

// Whether memory of buffer `to` may be that of buffer `from`.
static bool may_overwrite(struct arena *arena, const struct nest *n, nest_id from, nest_id to)
{
    struct overwrite o = {.n = n, .from = from, .to = to, .fits = true};
    struct access at = {0};
    visit_block(arena, &o, 0, &at);
    if (!o.fits || o.puts != 1 || n->statements.at[o.put.statement].op ||
        n->statements.at[o.put.statement].guard != NEST_NONE)
        return false;
    for (uint32_t i = 0; i < o.loads.count; i++)
        if (!is_before(n, &o.loads.at[i], &o.put))
            return false;
    return true;
}

// Whether operand `to` of the step may have the memory of every operand that is memory `from`.
static bool step_may_overwrite(const struct nest_program *p, const struct nest_step *t,
                               uint32_t from, uint32_t to)
{
    if (t->kind == NEST_STEP_COPY)
        return true; // nothing is left to be done
    if (t->kind != NEST_STEP_KERNEL)
        return false;
    const struct nest *n = p->nests.at[t->nest];
    for (uint32_t i = 0; i < t->n_memories; i++)
        if (t->memories[i] == from &&
            !may_overwrite(p->arena, n, buffer_number(n, i), buffer_number(n, to)))
            return false;
    return true;
}

// ---- The arena

struct gap {
    uint64_t offset, bytes;
};

struct planner {
    struct nest_program *p;
    uint32_t *first, *last; // steps that write and read a memory last, by memory
    bool *is_taken;         // its room went to another memory
    VEC(struct gap) gaps;   // by offset
};

static void find_lives(struct planner *q)
{
    struct nest_program *p = q->p;
    memset(q->first, 0xff, p->memories.count * sizeof *q->first);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        for (uint32_t k = 0; k < t->n_memories; k++) {
            uint32_t m = t->memories[k];
            if (is_written(p, t, k) && q->first[m] == UINT32_MAX)
                q->first[m] = i;
            q->last[m] = i;
        }
    }
}

static uint64_t take_room(struct planner *q, uint64_t bytes)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < q->gaps.count; i++)
        if (q->gaps.at[i].bytes >= bytes &&
            (best == UINT32_MAX || q->gaps.at[i].bytes < q->gaps.at[best].bytes))
            best = i;
    if (best != UINT32_MAX) {
        uint64_t offset = q->gaps.at[best].offset;
        q->gaps.at[best].offset += bytes;
        q->gaps.at[best].bytes -= bytes;
        return offset;
    }
    // A gap at the end grows.
    uint64_t offset = q->p->arena_bytes;
    if (q->gaps.count) {
        struct gap *g = &vec_last(&q->gaps);
        if (g->offset + g->bytes == offset) {
            offset = g->offset;
            q->gaps.count--;
        }
    }
    q->p->arena_bytes = offset + bytes;
    return offset;
}

static void give_room(struct planner *q, uint64_t offset, uint64_t bytes)
{
    uint32_t i = q->gaps.count;
    if (bytes == 0)
        return;
    vec_push(q->p->arena, &q->gaps, (struct gap){offset, bytes});
    for (; i > 0 && q->gaps.at[i - 1].offset > offset; i--)
        q->gaps.at[i] = q->gaps.at[i - 1];
    q->gaps.at[i] = (struct gap){offset, bytes};
    uint32_t kept = 0;
    for (uint32_t k = 0; k < q->gaps.count; k++) {
        struct gap g = q->gaps.at[k];
        if (g.bytes == 0)
            continue;
        if (kept && q->gaps.at[kept - 1].offset + q->gaps.at[kept - 1].bytes == g.offset)
            q->gaps.at[kept - 1].bytes += g.bytes;
        else
            q->gaps.at[kept++] = g;
    }
    q->gaps.count = kept;
}

// An operand that ends with the step and whose place the result may take.
static uint32_t find_dying(struct planner *q, uint32_t step, uint32_t operand)
{
    const struct nest_step *t = &q->p->steps.at[step];
    const struct nest_memory *to = &q->p->memories.at[t->memories[operand]];
    for (uint32_t i = 0; i < t->n_memories; i++) {
        uint32_t m = t->memories[i];
        const struct nest_memory *from = &q->p->memories.at[m];
        if (from->place == NEST_TEMPORARY && !is_written(q->p, t, i) && q->last[m] == step &&
            !q->is_taken[m] && bytes_of(from) == bytes_of(to) &&
            step_may_overwrite(q->p, t, m, operand))
            return m;
    }
    return UINT32_MAX;
}

static void place_results(struct planner *q, uint32_t step)
{
    const struct nest_step *t = &q->p->steps.at[step];
    for (uint32_t k = 0; k < t->n_memories; k++) {
        uint32_t m = t->memories[k];
        struct nest_memory *memory = &q->p->memories.at[m];
        if (memory->place != NEST_TEMPORARY || q->first[m] != step || !is_written(q->p, t, k))
            continue;
        uint32_t dying = find_dying(q, step, k);
        if (dying != UINT32_MAX) {
            memory->offset = q->p->memories.at[dying].offset;
            q->is_taken[dying] = true;
        } else {
            memory->offset = take_room(q, room_of(memory));
        }
    }
}

static void end_lives(struct planner *q, uint32_t step)
{
    const struct nest_step *t = &q->p->steps.at[step];
    for (uint32_t k = 0; k < t->n_memories; k++) {
        uint32_t m = t->memories[k];
        const struct nest_memory *memory = &q->p->memories.at[m];
        if (memory->place != NEST_TEMPORARY || q->last[m] != step || q->is_taken[m])
            continue;
        q->is_taken[m] = true;
        give_room(q, memory->offset, room_of(memory));
    }
}

static void place_constants(struct nest_program *p)
{
    for (uint32_t i = 0; i < p->memories.count; i++) {
        struct nest_memory *m = &p->memories.at[i];
        if (m->place != NEST_CONSTANT)
            continue;
        m->offset = p->constant_bytes;
        p->constant_bytes += room_of(m);
    }
}

// ---- Donation

static uint32_t input_memory(const struct nest_program *p, uint32_t input)
{
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].place == NEST_INPUT && p->memories.at[i].index == input)
            return i;
    return UINT32_MAX;
}

// Whether the output may be written to the memory of the input.
static bool may_donate(const struct planner *q, uint32_t input, uint32_t output)
{
    const struct nest_program *p = q->p;
    uint32_t step = q->first[output];
    if (step == UINT32_MAX ||
        bytes_of(&p->memories.at[input]) != bytes_of(&p->memories.at[output]))
        return false;
    bool is_read = false;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        for (uint32_t k = 0; k < t->n_memories; k++)
            is_read |= t->memories[k] == input && i > step;
    }
    if (is_read)
        return false;
    const struct nest_step *t = &p->steps.at[step];
    for (uint32_t k = 0; k < t->n_memories; k++) {
        if (t->memories[k] != output)
            continue;
        for (uint32_t i = 0; i < t->n_memories; i++)
            if (t->memories[i] == input)
                return step_may_overwrite(p, t, input, k);
    }
    return true;
}

static void place_donated(struct planner *q, const bool *donated)
{
    struct nest_program *p = q->p;
    bool *is_used = arena_array(p->arena, bool, p->n_inputs + 1);
    p->donated = arena_array(p->arena, int32_t, p->n_outputs + 1);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->donated[i] = -1;
    for (uint32_t m = 0; donated && m < p->memories.count; m++) {
        if (p->memories.at[m].place != NEST_OUTPUT || p->memories.at[m].count == 0)
            continue;
        for (uint32_t i = 0; i < p->n_inputs; i++)
            if (donated[i] && !is_used[i] && may_donate(q, input_memory(p, i), m)) {
                p->donated[p->memories.at[m].index] = (int32_t)i;
                is_used[i] = true;
                break;
            }
    }
}

void plan_memory(struct nest_program *p, const bool *donated)
{
    struct planner q = {.p = p};
    q.first = arena_array(p->arena, uint32_t, p->memories.count);
    q.last = arena_array(p->arena, uint32_t, p->memories.count);
    q.is_taken = arena_array(p->arena, bool, p->memories.count);
    p->arena_bytes = p->constant_bytes = 0;
    find_lives(&q);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        place_results(&q, i);
        end_lives(&q, i);
    }
    place_constants(p);
    place_donated(&q, donated);
}

// ---- Checking

struct replay {
    const struct nest_program *p;
    struct strbuf *report;
    int faults;
    bool *is_whole;     // by memory: it holds what was written to it
    VEC(uint32_t) held; // temporaries that are whole
};

static void report(struct replay *r, uint32_t step, uint32_t memory, const char *what)
{
    r->faults++;
    if (r->report)
        strbuf_printf(r->report, "step %u: memory %u %s\n", step, memory, what);
}

static bool do_overlap(const struct nest_program *p, uint32_t a, uint32_t b)
{
    const struct nest_memory *x = &p->memories.at[a], *y = &p->memories.at[b];
    if (x->place == NEST_TEMPORARY && y->place == NEST_TEMPORARY)
        return x->offset < y->offset + bytes_of(y) && y->offset < x->offset + bytes_of(x);
    return x->place == NEST_OUTPUT && y->place == NEST_INPUT && p->donated &&
           p->donated[x->index] == (int32_t)y->index;
}

static void replay_reads(struct replay *r, uint32_t i)
{
    const struct nest_step *t = &r->p->steps.at[i];
    for (uint32_t k = 0; k < t->n_memories; k++)
        if ((!is_written(r->p, t, k) || is_updated(r->p, t, k)) &&
            r->p->memories.at[t->memories[k]].count && !r->is_whole[t->memories[k]])
            report(r, i, t->memories[k], "is read when it does not hold its value");
}

// What the write at operand k destroys.
static void replay_write(struct replay *r, uint32_t i, uint32_t k)
{
    const struct nest_step *t = &r->p->steps.at[i];
    uint32_t m = t->memories[k], kept = 0;
    const struct nest_memory *memory = &r->p->memories.at[m];
    for (uint32_t j = 0; j < t->n_memories; j++) {
        uint32_t other = t->memories[j];
        if (other == m || !do_overlap(r->p, m, other))
            continue;
        bool same = memory->offset == r->p->memories.at[other].offset;
        if (is_written(r->p, t, j) || !same || !step_may_overwrite(r->p, t, other, k))
            report(r, i, other, "is written over while it is read");
    }
    for (uint32_t j = 0; j < r->held.count; j++) {
        uint32_t other = r->held.at[j];
        if (other != m && do_overlap(r->p, m, other))
            r->is_whole[other] = false;
        else
            r->held.at[kept++] = other;
    }
    r->held.count = kept;
    if (memory->place == NEST_OUTPUT && r->p->donated && r->p->donated[memory->index] >= 0)
        r->is_whole[input_memory(r->p, (uint32_t)r->p->donated[memory->index])] = false;
    if (memory->place == NEST_TEMPORARY && !r->is_whole[m])
        vec_push(r->p->arena, &r->held, m);
    r->is_whole[m] = true;
}

int plan_verify(const struct nest_program *p, struct strbuf *text)
{
    struct replay r = {.p = p, .report = text};
    r.is_whole = arena_array(p->arena, bool, p->memories.count);
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        r.is_whole[i] = m->place == NEST_INPUT || m->place == NEST_CONSTANT;
        if (m->place == NEST_TEMPORARY && m->offset + bytes_of(m) > p->arena_bytes)
            report(&r, 0, i, "ends outside of the arena");
    }
    for (uint32_t i = 0; i < p->steps.count; i++) {
        replay_reads(&r, i);
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            if (is_written(p, &p->steps.at[i], k))
                replay_write(&r, i, k);
    }
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].place == NEST_OUTPUT && p->memories.at[i].count && !r.is_whole[i])
            report(&r, p->steps.count, i, "is an output that is not there at the end");
    return r.faults;
}

void plan_print(struct strbuf *s, const struct nest_program *p)
{
    static const char *const places[] = {"input", "output", "constant", "temporary"};
    strbuf_printf(s, "arena %llu bytes, constants %llu bytes\n",
                  (unsigned long long)p->arena_bytes, (unsigned long long)p->constant_bytes);
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        strbuf_printf(s, "memory %u %s %s: %s[%lld]", i, m->name ? m->name : "",
                      places[m->place], dtype_get(m->dtype)->name, (long long)m->count);
        if (m->place == NEST_TEMPORARY || m->place == NEST_CONSTANT)
            strbuf_printf(s, " at %llu", (unsigned long long)m->offset);
        if (m->place == NEST_OUTPUT && p->donated && p->donated[m->index] >= 0)
            strbuf_printf(s, " in the memory of input %d", (int)p->donated[m->index]);
        strbuf_add(s, "\n");
    }
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        strbuf_printf(s, "step %u:", i);
        for (uint32_t k = 0; k < t->n_memories; k++)
            strbuf_printf(s, " %s %u", is_written(p, t, k) ? "writes" : "reads",
                          t->memories[k]);
        if (t->kind == NEST_STEP_COPY)
            strbuf_printf(s, ": a copy, because %s", t->reason);
        strbuf_add(s, "\n");
    }
}
