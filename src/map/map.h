// SPDX-License-Identifier: Apache-2.0
// The mapping: what is done with how many elements at once, written into a nest.
//
// A level of an axis says who has its elements (nest/nest.h).  The code generator reads the levels; bits do
// not depend on them.
#ifndef MAP_MAP_H
#define MAP_MAP_H

#include "nest/program.h"

// How operations become code, of the most to the least.
enum map_form {
    MAP_WRITTEN_OUT,
    MAP_BY_FUNCTION,  // expensive ones are calls, which cost no code
    MAP_ONE_REGISTER, // and lanes are those of one register
};

// A processor.
struct map_host {
    unsigned vector_bytes; // of a register
    enum map_form form;
};

// Unroll-and-jam: writes several elements of an axis of points side by side, where folds load much that is the same
// for all of them.  Whether it has changed the nest.
bool map_jam(struct nest *n);
// Staging: writes rows of points that lie far apart as copies to locals of the points, and from them.
void map_stage(struct nest *n);
// Whether the map, in a loop over points along the axis, is such a copy: an element of a local, and one of memory whose
// row lies apart from that of the next point.
bool map_is_copy(const struct nest *n, const struct nest_statement *map, nest_id point);
// Gives the axes of the nest their levels, in place of those that they have.
void map_to_host(struct nest *n, const struct map_host *host);

// gpu_program.c: nests that are kernels of a GPU as well as phases of loops that are one kernel become two each.
void map_split_phases(struct nest_program *p);
// Writes into the nests of a program that say nothing of levels who does what, and gives those whose threads want memory
// besides (gpu_scratch.c) a buffer of it; whether memory is planned or not.
void map_program_to_gpu(struct nest_program *p, bool has_warpgroups);
// Nanoseconds of a GPU for a kernel that is not mapped, and stays so.
int64_t map_price_on_gpu(const struct nest *n);
// Whether there is code for what nests say of levels; what is wrong is added to the report, which may be NULL.  Returns the
// number of faults.
int map_program_verify(const struct nest_program *p, bool has_warpgroups,
                       struct strbuf *report);
// The architecture of the one kind of GPU with warpgroups; whether the target (codegen/codegen.h) is of that.
#define MAP_WARPGROUPS "sm_90a"
bool map_has_warpgroups(const char *target);
// Which loop of a mapped kernel one thread does, and why, or NULL.
const char *map_serial_text(struct arena *arena, const struct nest *n);

// A loop over time around what is priced: its axis, and the bytes of registers that keep from trip to trip
// what no trip changes.
struct map_time {
    nest_id axis;
    int64_t kept;
};

// An estimate of the work of a loop that a single lane comes to, in scalar operations, and the axis whose
// elements are best its lanes: NEST_NONE leaves them to the loops inside.  out_axis may be NULL.
double map_cost(const struct nest *n, nest_id loop, nest_id *out_axis);
double map_cost_in(const struct nest *n, nest_id loop, struct map_time time, nest_id *out_axis);
// The most code that a loop may become, where so many turns of loops are written out.
int64_t map_most_code(const struct nest *n, int64_t turns);
// What a nest moves to and from memory, in scalar operations.
double map_traffic(const struct nest *n);
// Of a whole nest, with that.
int64_t map_price(const struct nest *n);
// Changes the nest as is best for a processor, before it is mapped.
void map_change(struct nest *n);
// The price of a nest as it is then, which it is afterwards, for so many threads as share it (COST_CORES).
int64_t map_price_of_all(struct nest *n);
// How many cores have parts of the nest, whose work pays for it, at most COST_CORES.
double map_cores(const struct nest *n);
// Whether a fold in the body of the loop s costs less for one lane of the axis after the other.
bool map_folds_by_lane(const struct nest *n, const struct nest_statement *s,
                       const struct nest_statement *fold, nest_id axis, struct map_time time);
bool map_may_fold_by_lane(const struct nest *n, uint32_t body,
                          const struct nest_statement *fold);

// By value, the axes with which it differs, as bits; NULL where no index is data.
struct map_variation {
    const uint64_t *axes;
};

// Of the values of a block, which are all that differ with axes of the loop that it is the body of.
struct map_variation map_variation_of(const struct nest *n, uint32_t block);
// Whether a value in the index differs along the axis.
bool map_index_varies(const struct map_variation *v, const struct nest_index *x, nest_id axis);

// Uses of each buffer, in all and in the loop that was asked about last, to ask about the next one; zeros at first.
struct map_uses {
    nest_id loop;
    uint32_t *all, *inside; // NULL: not counted
};

// Whether all uses of the buffer are in the body of the loop.
bool map_is_inside(const struct nest *n, struct arena *arena, struct map_uses *uses,
                   nest_id buffer, nest_id loop);
// By value, whether it differs from element to element of an axis of the loop.
const bool *map_varies(const struct nest *n, struct arena *arena, struct map_uses *uses,
                       nest_id loop, nest_id axis);

#endif
