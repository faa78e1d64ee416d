// SPDX-License-Identifier: Apache-2.0
// A loop over time of each thread, part of which is the same in all threads of the kernel: keys of
// random numbers that lanes share, what is made of times alone.  A warp more does that part, some trips ahead.
#include "map/gpu_ahead.h"
#include "ir/cost.h"

#define MOST_POINTS 768 // of a block: threads that have registers for a long body
#define LEAST_CHUNKS 4  // of a loop that is worth it
#define STRIP 4         // trips side by side
#define STRIP_WORK 1000 // operations of them

bool map_carries_complex(const struct nest *n, const struct nest_statement *seq)
{
    for (uint32_t i = 0; i < seq->n_in; i++)
        if (dtype_is_complex(n->values.at[seq->first_carry + i].dtype))
            return true;
    return false;
}

static bool is_plain(const struct map_gpu *m, nest_id value)
{
    jot_dtype d = m->nest->values.at[value].dtype;
    return !dtype_is_complex(d) && dtype_get(d)->bytes >= 4;
}

// Indices and constants are made wherever they are wanted.
bool map_is_common(const struct map_ahead *c, const struct nest_statement *s)
{
    return (s->kind == NEST_OP || s->kind == NEST_LOAD) && !c->varies[s->result];
}

static bool is_in_body(const struct map_gpu *m, const struct nest_statement *seq, nest_id v)
{
    nest_for_each (s, m->nest, seq->body)
        if (s == nest_maker_of(m->nest, v))
            return true;
    return false;
}

// The value of a trip is wanted by what differs: it gets a slot if the common part makes it.
static bool want(const struct map_gpu *m, struct map_ahead *c, const struct nest_statement *seq,
                 nest_id v)
{
    bool is_carry = v >= seq->first_carry && v < seq->first_carry + seq->n_in;
    if (c->varies[v] ||
        (!is_carry && (!is_in_body(m, seq, v) || !map_is_common(c, nest_maker_of(m->nest, v)))))
        return true;
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slots[i] == v)
            return true;
    if (c->n_slots == MAP_SLOTS || !is_plain(m, v))
        return false;
    c->slots[c->n_slots++] = v;
    return true;
}

// Fills the slots; false: there is no such part, or not enough of it.
static bool fill_slots(const struct map_gpu *m, struct map_ahead *c,
                       const struct nest_statement *seq)
{
    double work = 0;
    nest_for_each (s, m->nest, seq->body) {
        if (!nest_is_scalar(s) || (s->kind == NEST_LOAD && !map_is_read_only(m, s->buffer)))
            return false;
        if (map_is_common(c, s)) {
            work += s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 0;
            continue;
        }
        nest_for_uses (v, s)
            if (!want(m, c, seq, v))
                return false;
    }
    if (map_carries_complex(m->nest, seq))
        return false;
    for (uint32_t i = 0; i < seq->n_in; i++) {
        nest_id carry = seq->first_carry + i;
        if (c->varies[carry] ? !want(m, c, seq, seq->yields[i]) : !is_plain(m, carry))
            return false;
    }
    return work >= COST_COMMON;
}

// Marks the operations that are made of what has no part in the carries that vary; their work.
static double find_apart(const struct map_gpu *m, struct map_ahead *c,
                         const struct nest_statement *seq)
{
    bool *is_apart = arena_array(m->arena, bool, m->nest->statements.count + 1);
    bool *is_tied = arena_array(m->arena, bool, m->nest->values.count + 1);
    double work = 0;
    for (uint32_t i = 0; i < seq->n_in; i++)
        is_tied[seq->first_carry + i] = c->varies[seq->first_carry + i];
    nest_for_each (s, m->nest, seq->body) {
        nest_id id = nest_id_of(m->nest, s);
        bool comes_from_trip = s->kind == NEST_LOAD;
        for (uint32_t k = 0; k < s->n_in; k++)
            comes_from_trip |= is_tied[s->in[k]];
        for (uint32_t k = 0; k < s->index.count; k++)
            comes_from_trip |=
                s->index.terms[k].is_value || s->index.terms[k].id == seq->axes[0];
        for (uint32_t k = 0; k < s->n_results; k++)
            is_tied[s->result + k] = comes_from_trip;
        is_apart[id] = !comes_from_trip && !map_is_common(c, s);
        work += is_apart[id] ? cost_of_op(s->op, s->dtype) : 0;
    }
    c->is_apart = is_apart;
    return work;
}

struct map_ahead *map_ahead_find(const struct map_gpu *m, nest_id loop)
{
    const struct nest_statement *points = nest_statement_at(m->nest, loop);
    struct map_ahead *c = arena_array(m->arena, struct map_ahead, 1);
    *c = (struct map_ahead){.loop = NEST_NONE};
    nest_for_each (s, m->nest, points->body) {
        enum nest_kind kind = s->kind;
        if (kind > NEST_PUT && (kind != NEST_SEQ || c->loop != NEST_NONE))
            return NULL;
        c->loop = kind == NEST_SEQ ? nest_id_of(m->nest, s) : c->loop;
    }
    if (m->is_phase || c->loop == NEST_NONE ||
        nest_extent(m->nest, nest_statement_at(m->nest, c->loop)) < LEAST_CHUNKS * GPU_WARP)
        return NULL;
    bool *varies = arena_array(m->arena, bool, m->nest->values.count + 1);
    for (uint32_t k = 0; k < points->n_axes; k++) {
        const bool *along = map_varies(m->nest, m->arena, m->uses, loop, points->axes[k]);
        for (uint32_t i = 0; i < m->nest->values.count; i++)
            varies[i] |= along[i];
    }
    c->varies = varies;
    const struct nest_statement *seq = nest_statement_at(m->nest, c->loop);
    if (!fill_slots(m, c, seq))
        return NULL;
    double work = find_apart(m, c, seq);
    c->strip = work < COST_COMMON ? 1 : STRIP;
    while (c->strip > 1 &&
           (nest_extent(m->nest, seq) % c->strip || c->strip * work > STRIP_WORK))
        c->strip /= 2;
    return c;
}

unsigned map_ahead_threads(int64_t points)
{
    int64_t n = (points + GPU_MULTIPROCESSORS - 1) / GPU_MULTIPROCESSORS;
    n = (n + GPU_WARP - 1) / GPU_WARP * GPU_WARP;
    return (unsigned)(n < GPU_BLOCK ? GPU_BLOCK : n > MOST_POINTS ? MOST_POINTS : n);
}
