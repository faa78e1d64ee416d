// SPDX-License-Identifier: Apache-2.0
// An interpreter of nests: what a kernel means, slowly.
//
// It finds reads of elements that nothing wrote, indices outside a buffer, outputs that are not
// complete, and points that read or overwrite what another point wrote without a barrier between.
// Arithmetic is that of the evaluator; folds have the order of docs/numerics.md.
//
// Levels of a GPU are followed: each thread does its elements of a loop and combines those of a fold, in the order of
// the fold; a running fold of more than 1024 elements goes by chunks.  Threads that share a loop go one after the other,
// the last one first.  Of locals each thread has its own, or a block, as their space says: what another one has put is
// not there.
#ifndef SUPPORT_NEST_EVAL_H
#define SUPPORT_NEST_EVAL_H

#include "nest/program.h"

// buffers: one per IN and OUT buffer of the nest, in order.  The message of the thread says what
// is wrong.
jot_status nest_eval(const struct nest *n, void *const *buffers);

// What the nest was before it was mapped to a GPU, but for running folds that threads share, which have another order.
struct nest *nest_without_levels(struct arena *arena, const struct nest *n);

// Whether the program has steps that routines of the run time do, which the interpreter has none of.
bool nest_program_has_routines(const struct nest_program *p);

// Runs the steps.  inputs and outputs by number; the memory of a donated input is not touched.
jot_status nest_program_eval(const struct nest_program *p, void *const *inputs,
                             void *const *outputs);

#endif
