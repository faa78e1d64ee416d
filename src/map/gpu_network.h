// SPDX-License-Identifier: Apache-2.0
// Networks over points: their products, the locals of a point, and squads of threads.
#ifndef MAP_GPU_NETWORK_H
#define MAP_GPU_NETWORK_H

#include "map/gpu.h"

// A map of nothing but products, for which the points have nothing to do; the local that is read at
// index i of the axis, or NEST_NONE.
bool map_is_products(const struct nest *n, const struct nest_statement *s);
nest_id map_row_at(const struct nest *n, nest_id value, nest_id axis);
// Where locals of a point are that are of no use at the same time, by buffer; their bytes are given, 0: none.  Notes
// the statements that write them last.  Returns the bytes of all.
int64_t map_network_lay_out(const struct map_gpu *m, nest_id loop, const int64_t *bytes,
                            int64_t *at, uint32_t *written);
// Squads: what a contract reads of memory, and where it is in shared memory.
#define MAP_SQUAD 4        // threads
#define MAP_SQUAD_UNITS 16 // of a thread, at most
struct map_matrix {
    nest_id buffer;
    int64_t constant, by_input, by_output, inputs, outputs;
    int64_t at; // bytes
};
struct map_squads {
    bool *is_common; // by buffer: read or written by other threads than those of its units
    uint32_t
        *put_in; // by buffer: what is not shared out and puts it, 1 being the first statement
    uint32_t at_statement;
    VEC(struct map_matrix) matrices;
    int64_t matrix_bytes, point_bytes;
    int64_t *at;       // by buffer: its row in shared memory
    uint32_t *written; // by buffer: the statement of the body that does so last
};
// False: there is no such code.
bool map_squads_find(const struct map_gpu *m, nest_id loop, struct map_squads *out);
bool map_is_squad_row(int64_t count);
int64_t map_squad_stride(int64_t count); // elements, an odd number of times 16 bytes
// The axis of a map whose units the squad shares out, or NEST_NONE.
nest_id map_squad_units(const struct nest *n, const struct nest_statement *s);
void map_network_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

#endif
