// SPDX-License-Identifier: Apache-2.0
// What a scope carries over its evaluations.
//
// An evaluation ends a stage of the scope: what has been recorded since the one before it.  A value
// that an evaluation needs from an earlier stage is carried: it is computed by a program of its own
// stage alone and is an array from then on.  So no program is longer than a stage, stages that are
// alike have the same program, and of a loop around an evaluation each trip costs the same:
//
//     for (...) {
//         x = x + 1e-3 * sin(x);       stage k: x_k from the array of x_(k-1)
//         m = jot_item(max(x));
//     }
//
// When what a program has computed turns out to be carried, the program gives it as a result the
// next time, so that nothing is computed twice.
//
// What costs less to compute again than to keep, such as a broadcast, is not carried; what it is made
// of is.  Arrays that are carried are let go of, the one that has not been used for the longest time
// first, when they take too much; what is let go of is computed again, stage by
// stage.
#ifndef TRACE_CARRIED_H
#define TRACE_CARRIED_H

#include "trace/tracer.h"

struct carried_value {
    ir_id id;
    uint32_t stage;
};

// Those that outs and the effects to come need, by stage, then in the order of their making.
// Borrowed until the next call for the scope.
const struct carried_value *carried_find(struct trace *t, int n, const ir_id *outs,
                                         uint32_t *out_count);
// What the program of that key, which trace_close has just made, is known to be asked for later.
// Borrowed until the next call for the scope.
const ir_id *carried_expected(struct trace *t, struct hash128 key, uint32_t *out_count);
// Room for n more arrays and the end of a stage, for what follows needs no memory.
void carried_reserve(struct trace *t, uint32_t n);
// An array of the scope is read by the evaluation; is kept by the scope for itself; is the user's.
void carried_use(struct trace *t, struct trace_hidden *h);
void carried_add(struct trace *t, struct trace_hidden *h);
void carried_claim(struct trace *t, struct trace_hidden *h);
// The stage ends: the program of that key, made by the last trace_close, has run.
void carried_end_stage(struct trace *t, struct hash128 key);
// Lets go of arrays that take more than carried_most_bytes.
void carried_trim(struct trace *t);
// For tests, which set it.
size_t *carried_most_bytes(void);

#endif
