// SPDX-License-Identifier: Apache-2.0
// Functions that the devices of a mesh run on their pieces: jot_shard_map and jot_pmap.
#ifndef TRACE_SHARD_H
#define TRACE_SHARD_H

#include "trace/function.h"

// The types of the pieces, before transform `level` of f, and its axes added to those in *inside.  False
// with an error.
bool shard_inner_types(const jot_function *f, int level, const struct ir_type *types,
                       struct ir_type *out, uint16_t *inside);
// What jot_shard_map makes of the traced function.
bool shard_transform(const jot_function *f, int level, const struct ir_type *types,
                     struct traced *t);
// The mesh of jot_pmap over an axis of that size; and what it makes of the traced function, with the
// mapped axes by value, PASS_NO_AXIS for none.
bool pmap_check_mesh(const jot_transform *t, int64_t size);
bool pmap_transform(const jot_function *f, int level, int axis, const int32_t *in_axes,
                    const int32_t *out_axes, const struct ir_type *types, struct traced *t);

#endif
