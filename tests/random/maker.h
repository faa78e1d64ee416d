// SPDX-License-Identifier: Apache-2.0
// The parts of the generator of random programs.
#ifndef RANDOM_MAKER_H
#define RANDOM_MAKER_H

#include "random/programs.h"

enum { MOST_NODES = 24, MOST_AXES = 6 };

struct maker {
    struct ir_builder b;
    struct ir_module *m;
    uint64_t state;
    unsigned kind;        // of enum program_kind
    int depth;            // of bodies
    int64_t most;         // elements of a value
    int64_t length, side; // that many large values have
    VEC(ir_id) pool;
};

// A number below n, and one chance in so many.
uint64_t draw(struct maker *k, uint64_t n);
bool chance(struct maker *k, uint64_t one_in);
static inline bool is_derivable(const struct maker *k) { return k->kind & PROGRAM_DERIVABLE; }
// What derivatives are taken in.
static inline jot_dtype real_of(unsigned kind)
{
    return kind & PROGRAM_LARGE ? JOT_F32 : JOT_F64;
}
jot_dtype draw_dtype(struct maker *k);

// A value to compute with; of derivable programs one of f64.
ir_id pick(struct maker *k);
ir_id constant(struct maker *k, jot_dtype d);
// x with the dtype.
ir_id as_dtype(struct maker *k, ir_id x, jot_dtype d);

// Of a value that failed: any type; the program is given up in the end.
struct ir_type type_in(struct maker *k, ir_id v);
static inline jot_dtype dtype_in(struct maker *k, ir_id v) { return ir_dtype(type_in(k, v)); }
static inline const int64_t *dims_in(struct maker *k, ir_id v)
{
    return ir_dims(k->m, type_in(k, v));
}
static inline int64_t count_in(struct maker *k, ir_id v)
{
    return ir_count(k->m, type_in(k, v));
}

// A node of the kind over values that are picked, or IR_NONE.
ir_id make_map(struct maker *k);
ir_id make_layout(struct maker *k);
ir_id make_fold(struct maker *k, enum ir_class op_class);
ir_id make_dot(struct maker *k);
ir_id make_layer(struct maker *k);       // of many points
ir_id make_indices_map(struct maker *k); // at indices that are data
ir_id make_library(struct maker *k);     // what routines compute
ir_id make_bodies(struct maker *k);      // calls, loops and branches
ir_id make_collective(struct maker *k);  // between the lanes of two named axes
ir_id make_pieces(struct maker *k);      // a shard_map of one value

// Programs with lanes: names the axes of the module, has a parameter vary over some of them, and makes a
// program of what a lane does.
void name_axes(struct ir_module *m);
struct ir_type varying(struct maker *k, struct ir_type t);
uint32_t shard_program(struct ir_module *m, uint32_t f);

// Parameters, and results that a function must have before those it has beside them.
struct signature {
    uint32_t n_types, n_results;
    const struct ir_type *types, *results; // types NULL: as the function likes
    const uint32_t *from; // by result: the parameter that it is, or IR_NONE; may be NULL
};

// A function of a few nodes, or IR_NONE.
uint32_t make_function(struct ir_module *m, uint64_t seed, unsigned kind, int depth,
                       const struct signature *signature, uint64_t n_more);

#endif
