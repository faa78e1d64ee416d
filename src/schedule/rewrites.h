// SPDX-License-Identifier: Apache-2.0
// Rewrites of a program or of the graph that it is made of, a function of each file.
#ifndef SCHEDULE_REWRITES_H
#define SCHEDULE_REWRITES_H

#include "schedule/internal.h"

// ---- Loop fusion of a lane's maps (fuse_maps.c)

void schedule_fuse_maps(struct nest_program *p, struct arena *scratch);

// ---- Loads in front of puts, in loops of a GPU (loads_first.c)

void schedule_loads_first(struct nest_program *p, struct arena *scratch);

// ---- Kernels that differ in numbers alone (share_kernels.c)

// Makes one of each eight or more, of each two with `always`.
void schedule_share_kernels(struct nest_program *p, bool always);

// ---- Fission (fission.c)

// Kernels of several loops that a GPU would do by one block or thread become kernels of one each; with
// `always` all that can.
void schedule_fission(struct nest_program *p, const struct schedule_options *options);

// ---- Ranges (schedule/ranges.c)

// Routines and collectives read and write parts of memories where kernels would move these.
void schedule_ranges(struct nest_program *p, struct arena *scratch);
// Kernels that put parts of memories have these parts alone.
void schedule_narrow_parts(struct nest_program *p);

// ---- Shapes (schedule/shapes.c)

// g, whose inputs and outputs have the shapes that loops and updates see them in.
const struct ir_graph *schedule_without_shapes(const struct ir_graph *g);

// ---- Parts (schedule/parts.c)

// s->g with a barrier in front of each part of an array whose parts are put in place.
const struct ir_graph *schedule_part_concatenations(struct schedule *s);
// s->g with a value of its own for each output that is elementwise.
const struct ir_graph *schedule_part_outputs(struct schedule *s);
// The same of arrays of which only some rows wait for what devices exchange (schedule/overlap.c).
const struct ir_graph *schedule_overlap_exchanges(struct schedule *s);

// ---- Attention (attention.c)

// Two products and the softmax between them become one kernel, and so does its gradient.
void attention_join(struct nest_program *p);
// The gradient that the product, step i, is of (attention_gradient.c).
bool attention_join_gradient(struct nest_program *p, uint32_t i);

#endif
