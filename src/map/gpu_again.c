// SPDX-License-Identifier: Apache-2.0
// A loop over time of a thread that leaves a tape for one that comes back over it, where the tapes of all threads are
// more than the caches hold: trips are made again, a segment at a time, and the tape is that of a segment.
//
//     seq t < T { put x[t] = ... }  ...  seq t < T reverse { ... load x[t] ... }
#include "map/gpu_again.h"
#include "ir/cost.h"

#include "map/gpu_ahead.h"
#include "map/gpu_lanes.h"

#define MOST_TAPE 64     // values of a segment
#define MOST_WORK 1000.0 // operations of a segment, there and back

struct again {
    nest_id first, second; // the loops
    const bool *is_tape;   // by buffer
};

static const struct nest_term *only_term(const struct nest_index *x)
{
    return x->constant == 0 && x->count == 1 && !x->terms[0].is_value && x->terms[0].factor == 1
               ? &x->terms[0]
               : NULL;
}

// Whether all that a trip does is computing, but for what it puts on tapes, or loads from there.
static bool is_straight(const struct map_gpu *m, const struct nest_statement *seq,
                        enum nest_kind access, bool *is_tape)
{
    nest_for_each (s, m->nest, seq->body) {
        bool moves = s->kind == NEST_LOAD || s->kind == NEST_PUT;
        if (moves && m->nest->buffers.at[s->buffer].role == NEST_LOCAL) {
            const struct nest_term *t = only_term(&s->index);
            if (s->kind != access || s->op || s->guard != NEST_NONE || !t ||
                t->id != seq->axes[0])
                return false;
            is_tape[s->buffer] = true;
        } else if (!nest_is_scalar(s) ||
                   (s->kind == NEST_LOAD && !map_is_read_only(m, s->buffer))) {
            return false;
        }
    }
    return true;
}

static int64_t choose_segment(const struct map_gpu *m, const struct nest_statement *there,
                              const struct nest_statement *back, int64_t tapes)
{
    double work = map_turn_work(m->nest, there->body) + map_turn_work(m->nest, back->body);
    int64_t n = nest_extent(m->nest, there), trips = MAP_MOST_SEGMENT;
    while (trips > 1 &&
           (n % trips || trips * tapes > MOST_TAPE || (double)trips * work > MOST_WORK))
        trips--;
    // What is kept is to be much less than the tape.
    return trips * tapes >= 4 * (int64_t)there->n_in ? trips : 0;
}

// The two loops, if they are all that the tapes are for; how many these are, and their bytes.
static bool is_pair(const struct map_gpu *m, struct again *r, int64_t *tapes, int64_t *bytes)
{
    const struct nest_statement *there = nest_statement_at(m->nest, r->first),
                                *back = nest_statement_at(m->nest, r->second);
    uint32_t n = m->nest->buffers.count;
    bool *put = arena_array(m->arena, bool, n + 1), *read = arena_array(m->arena, bool, n + 1);
    if (there->reverse || !back->reverse ||
        nest_extent(m->nest, there) != nest_extent(m->nest, back) ||
        !is_straight(m, there, NEST_PUT, put) || !is_straight(m, back, NEST_LOAD, read) ||
        map_carries_complex(m->nest, there) || map_carries_complex(m->nest, back))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_buffer *b = &m->nest->buffers.at[i];
        if (put[i] != read[i] || (put[i] && dtype_is_complex(b->dtype)))
            return false;
        *tapes += put[i];
        *bytes += put[i] ? b->count * (int64_t)jot_dtype_size(b->dtype) : 0;
    }
    nest_for_all (s, m->nest) { // by anyone else
        bool uses = (s->kind == NEST_LOAD || s->kind == NEST_PUT) && put[s->buffer];
        nest_id axis = uses ? only_term(&s->index) ? only_term(&s->index)->id : NEST_NONE : 0;
        if (uses && axis != there->axes[0] && axis != back->axes[0])
            return false;
    }
    r->is_tape = put;
    return *tapes > 0;
}

static bool find_tapes(const struct map_gpu *m, nest_id loop, struct again *r, int64_t *tapes,
                       int64_t *bytes)
{
    *r = (struct again){.first = NEST_NONE, .second = NEST_NONE};
    nest_for_each (s, m->nest, nest_statement_at(m->nest, loop)->body) {
        if (s->kind > NEST_PUT && (s->kind != NEST_SEQ || r->second != NEST_NONE))
            return false;
        if (s->kind == NEST_SEQ)
            *(r->first == NEST_NONE ? &r->first : &r->second) = nest_id_of(m->nest, s);
    }
    return r->second != NEST_NONE && is_pair(m, r, tapes, bytes);
}

const bool *map_again_find(const struct map_gpu *m, nest_id loop,
                           const struct nest_statement *seq)
{
    struct again r;
    int64_t tapes = 0, bytes = 0;
    bool is = find_tapes(m, loop, &r, &tapes, &bytes) && r.first == nest_id_of(m->nest, seq);
    return is ? r.is_tape : NULL;
}

bool map_again_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct again r;
    int64_t tapes = 0, bytes = 0;
    if (!find_tapes(m, loop, &r, &tapes, &bytes))
        return false;
    const struct nest_statement *there = nest_statement_at(n, r.first);
    int64_t segment = choose_segment(m, there, nest_statement_at(n, r.second), tapes);
    if (!segment || bytes * nest_extent(n, nest_statement_at(n, loop)) <= COST_TAPE_OF_ALL)
        return false;
    n->axes.at[there->axes[0]].segment = (unsigned)segment;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (r.is_tape[i])
            n->buffers.at[i].space = NEST_AGAIN;
    return true;
}
