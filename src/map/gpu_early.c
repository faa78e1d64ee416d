// SPDX-License-Identifier: Apache-2.0
// Loops over time that wait for memory: where points are few, nothing else goes on while a step waits for what it
// reads, as the rows of a tape on the way back.  It reads that one step before.
#include "map/gpu.h"

#define LEAST_STEPS 8  // of a loop
#define LEAST_WORK 16  // operations of a step, behind which what is read may come
#define MOST_BYTES 256 // that a thread keeps from step to step
#define APART 4 // elements between points, from which on rows along time are read by warps

bool map_is_early(const struct map_gpu *m, const struct nest_statement *seq,
                  const struct nest_statement *s)
{
    if (s->kind != NEST_LOAD || s->guard != NEST_NONE || nest_index_has_values(&s->index) ||
        !m->is_read_only[s->buffer] || dtype_is_complex(s->dtype))
        return false;
    int64_t along = nest_index_factor(&s->index, seq->axes[0]), across = 0;
    for (uint32_t k = 0; k < s->index.count; k++)
        if (s->index.terms[k].id != seq->axes[0]) {
            int64_t factor = s->index.terms[k].factor;
            factor = factor < 0 ? -factor : factor;
            across = !across || factor < across ? factor : across;
        }
    return along > 1 || along < -1 || (along && across < APART);
}

void map_early_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    nest_for_each (seq, n, nest_statement_at(n, loop)->body) {
        uint64_t bytes = 0;
        // Little work is overlapped by an assembler, which does several steps side by side.
        if (seq->kind != NEST_SEQ || nest_extent(n, seq) < LEAST_STEPS ||
            map_turn_work(n, seq->body) < LEAST_WORK)
            continue;
        nest_for_each (s, n, seq->body)
            bytes += map_is_early(m, seq, s) ? jot_dtype_size(s->dtype) : 0;
        n->axes.at[seq->axes[0]].early = bytes > 0 && bytes <= MOST_BYTES;
    }
}
