// SPDX-License-Identifier: Apache-2.0
// Loops over time that wait for memory: where points are few, nothing else goes on while a trip waits for what it
// reads, as the rows of a tape on the way back.  It reads that some trips before: as many as a read of memory takes.
#include "map/gpu_early.h"

#include "map/gpu_lanes.h"

#include <math.h>

#define LEAST_TRIPS 8  // of a loop
#define MOST_EARLY 8   // before a trip
#define MOST_BYTES 256 // that a thread keeps from trip to trip
#define APART 4 // elements between points, from which on rows along time are read by warps

static bool goes_along(const struct nest_statement *seq, const struct nest_statement *load)
{
    int64_t along = nest_index_factor(&load->index, seq->axes[0]), across = 0;
    for (uint32_t k = 0; k < load->index.count; k++)
        if (load->index.terms[k].id != seq->axes[0]) {
            int64_t factor = load->index.terms[k].factor;
            factor = factor < 0 ? -factor : factor;
            across = !across || factor < across ? factor : across;
        }
    return along > 1 || along < -1 || (along && (across < APART || load->guard != NEST_NONE));
}

static bool may_be_early(const struct map_gpu *m, const struct nest_statement *seq,
                         const struct nest_statement *s)
{
    return s->kind == NEST_LOAD && !nest_index_has_values(&s->index) &&
           m->is_read_only[s->buffer] && !dtype_is_complex(s->dtype) && goes_along(seq, s);
}

// Whether the guard of such a load is made of the trip's number and of what the loop does not change; what of the body
// it is made of.
static bool find_guard(const struct map_gpu *m, const struct nest_statement *seq, nest_id guard,
                       bool *is_needed)
{
    if (guard == NEST_NONE)
        return true;
    nest_id id = m->nest->values.at[guard].statement;
    const struct nest_statement *s = nest_statement_at(m->nest, id);
    bool is_inside = guard >= seq->first_carry && guard < seq->first_carry + seq->n_in,
         is = true;
    nest_for_each (t, m->nest, seq->body)
        is_inside |= t == s;
    if (!is_inside)
        return true;
    if ((s->kind != NEST_OP && s->kind != NEST_INDEX && s->kind != NEST_CONST) ||
        nest_index_has_values(&s->index))
        return false;
    for (uint32_t k = 0; k < s->n_in; k++)
        is = is && find_guard(m, seq, s->in[k], is_needed);
    is_needed[id] = true;
    return is;
}

uint32_t map_early_find(const struct map_gpu *m, const struct nest_statement *seq, nest_id *out)
{
    const struct nest *n = m->nest;
    bool *is_needed = arena_array(m->arena, bool, n->statements.count + 1);
    uint32_t count = 0;
    nest_for_each (s, n, seq->body)
        if (may_be_early(m, seq, s)) {
            bool *of_guard = arena_array(m->arena, bool, n->statements.count + 1);
            if (!find_guard(m, seq, s->guard, of_guard))
                continue;
            is_needed[nest_id_of(n, s)] = true;
            for (uint32_t i = 0; s->guard != NEST_NONE && i < n->statements.count; i++)
                is_needed[i] |= of_guard[i];
        }
    nest_for_each (s, n, seq->body)
        if (is_needed[nest_id_of(n, s)])
            out[count++] = nest_id_of(n, s);
    return count;
}

void map_early_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    nest_id *early = arena_array(m->arena, nest_id, n->statements.count + 1);
    nest_for_each (seq, n, nest_statement_at(n, loop)->body) {
        if (seq->kind != NEST_SEQ || nest_extent(n, seq) < LEAST_TRIPS)
            continue;
        double bytes = 0, work = map_turn_work(n, seq->body);
        for (uint32_t i = map_early_find(m, seq, early); i-- > 0;) {
            const struct nest_statement *s = nest_statement_at(n, early[i]);
            bytes += s->kind == NEST_LOAD ? (double)jot_dtype_size(s->dtype) : 0;
        }
        double trips = fmin(ceil(COST_OF_READ / work), MOST_EARLY);
        trips = bytes > 0 ? fmin(trips, floor(MOST_BYTES / bytes)) : 0;
        n->axes.at[seq->axes[0]].early = (unsigned)trips;
    }
}
