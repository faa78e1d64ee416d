// SPDX-License-Identifier: Apache-2.0
// Tracing a program: its operations as nodes of the innermost trace, by families.
//
// A value of the program is a jot_value of the trace that computes it.  Everything here runs inside
// the guard of the function that is traced.
#ifndef INTEROP_TO_GRAPH_H
#define INTEROP_TO_GRAPH_H

#include "interop/mlir.h"
#include "trace/emit.h"

#include "jot/program.h"
#include "jot/transform.h"

// What tracing knows of a function of the program.
struct graph_function {
    const struct mlir_program *program;
    const struct mlir_function *f;
    const struct graph_function *all; // of the program, as its functions
    const struct mlir_op *const
        *makers; // by the number of a value: what gives it; NULL: an argument
    const char *where;
    bool has_checks;         // its results are followed by what its checks compare
    jot_array *const *given; // by number: values that are inputs instead; NULL: none
};

// A call of a function while it is traced.
struct graph_frame {
    const struct graph_function *in;
    struct arena *arena; // of the module
    jot_value *values;   // by number
};

// An operation that is being converted.
struct graph_op {
    struct graph_frame *frame;
    const struct mlir_op *op;
    struct ir_builder *b;
    ir_id *in;  // its operands
    ir_id *out; // to be set: its results
    // Of its first result.
    jot_dtype dtype;
    int rank;
    const int64_t *dims;
};

// The type in the graph; false and an error of the builder when it has none.
bool graph_type(struct ir_builder *b, const struct mlir_type *t, struct ir_type *out);
// Fails the operation with "what it is: reason".
__attribute__((format(printf, 2, 3))) void graph_refuse(struct graph_op *g, const char *format,
                                                        ...);
// The same as the results of an operation, which are values.
__attribute__((format(printf, 3, 4))) void
graph_fail(struct graph_frame *frame, const struct mlir_op *op, const char *format, ...);
// "model.mlir:12: stablehlo.add (train.py:7)"; as long as the module.
const char *graph_where(const struct graph_frame *frame, const struct mlir_op *op);

// The value of an operand.
static inline jot_value graph_operand(const struct graph_frame *f, const struct mlir_op *op,
                                      uint32_t i)
{
    return f->values[op->operands[i]->number];
}
static inline void graph_set_result(struct graph_frame *f, const struct mlir_op *op, uint32_t i,
                                    jot_value v)
{
    f->values[op->results[i]->number] = v;
}
void graph_set_results(struct graph_frame *frame, const struct mlir_op *op, jot_value v);

// Traces the operations of a block whose arguments are set, but for its return, which is given.
const struct mlir_op *graph_block(struct graph_frame *frame, const struct mlir_block *block);
// Traces a block with those arguments; out has what it returns.
void graph_region_step(struct graph_frame *frame, const struct mlir_block *block,
                       const jot_value *in, jot_value *out);
// The block as a function of its arguments, as long as the module.
jot_function graph_region(struct graph_frame *frame, const struct mlir_block *block);
// The block, of numbers, on the elements of arrays of that rank.
void graph_elements(struct graph_frame *frame, const struct mlir_op *op,
                    const struct mlir_block *block, int rank, const jot_value *args,
                    jot_value *results);
// How many operands a check of StableHLO's tests has; 0: it is none.
uint32_t graph_check_operands(const struct mlir_op *op);
uint32_t graph_results(const struct graph_function *f);
// Whether argument i of a function that is used is of that type, an extent of which is -1 where it may be any; else
// *out_error says which it is.
bool graph_check_argument(const char *function, uint32_t i, jot_value v,
                          const jot_program_type *want, jot_value *out_error);
// A function of the program as one of jot.
jot_function graph_function_value(const struct graph_function *f);

// The operation that gives the value, when it is in the function; NULL for arguments.
static inline const struct mlir_op *graph_maker(const struct graph_frame *f,
                                                const struct mlir_value *v)
{
    return f->in->makers[v->number];
}
// The constant that the value has in all its elements; NULL when it is none.
const struct mlir_attr *graph_constant(const struct graph_frame *f, const struct mlir_value *v);
// The complex value of which the operation, a select, is the absolute value; NULL when it is none.
const struct mlir_value *graph_magnitude_of(const struct graph_frame *f,
                                            const struct mlir_op *op);
// The number of a constant of one element, or a splat of one, through operations that only change its
// shape or type.  False when it is none, or no integer.
bool graph_integer(const struct graph_frame *f, const struct mlir_value *v, int64_t *out);
// Whether it is a constant all of whose elements are the neutral element of `op` (an IR op of the
// reductions) of its type.
bool graph_is_neutral(const struct graph_frame *f, const struct mlir_value *v, enum ir_op op);

// What a region of two arguments does: MLIR_N_CODES nothing known, else the operation that it applies to
// both, in either order where that does not matter; MLIR_OP_stablehlo_return: gives one of them,
// which *out_arg tells.
enum mlir_code graph_body(const struct mlir_block *block, int *out_arg);
// The reduction of the graph by that operation on elements of the type; IR_OP_COUNT when there is none.
enum ir_op graph_reduction(enum mlir_code code, jot_dtype dtype);
// The running form of a reduction, as IR_cumsum of IR_reduce_sum; IR_OP_COUNT when there is none.
enum ir_op graph_running(enum ir_op reduction);

// Result i is what a public operation gave.
void graph_take(struct graph_op *g, int i, jot_value v);
// x by a number or numbers along axis 0.
ir_id graph_taken(ir_id x, ir_id numbers);
// Indices with their components along the last axis, and the axes of theirs, of that attribute, that count
// parts of the operand.
struct ir_gather;
ir_id graph_indices(struct graph_op *g, ir_id indices, const char *batch_name,
                    struct ir_gather *out);
// Integers of less than eight bits are kept in bytes: before an operation on elements those whose bits it
// counts or shifts, and afterwards its results, which are wrapped, and floats rounded.
void graph_widen_small(struct graph_op *g);
void graph_narrow_small(struct graph_op *g);
// Whether elements are floats of eight bits or less, which are kept in f16 or f32; numbers rounded to them, of
// the type that keeps them; and their bits, in u8.
bool graph_is_small_float(const struct mlir_type *t);
ir_id graph_round_small(struct ir_builder *b, ir_id x, enum mlir_element e);
ir_id graph_bits_of_small(struct ir_builder *b, ir_id x, enum mlir_element e);
ir_id graph_small_of_bits(struct ir_builder *b, ir_id bits, enum mlir_element e);
// Integers in the total order of IEEE 754 of floats; others as they are.
ir_id graph_total_order(struct ir_builder *b, ir_id x);

// The axes around the trace that are all those of a mesh of the program, the one that has most, in its order; how many
// there are; and the numbers of its devices, or NULL where they are in order.
int graph_axes_around(const struct graph_frame *frame, int64_t *out,
                      const int64_t **out_devices);
// The devices of a mesh, `most` or fewer, by group, as #stablehlo.replica_group_mesh_axes<...> has them, and how
// many a group has; NULL where a mesh or its axes are not as they are read.
const int64_t *graph_mesh_groups(const struct graph_frame *frame, const char *text,
                                 int64_t most, int64_t *out_count, int64_t *out_size);
// sdy.manual_computation, as a shard_map.
void graph_manual(struct graph_frame *frame, const struct mlir_op *op);

// ---- families: each converts op, or fails it ----

typedef void graph_convert(struct graph_op *g);
typedef void graph_trace(struct graph_frame *frame, const struct mlir_op *op);
// Converts the operation by that function, or by what the families have for it.
void graph_convert_op(struct graph_frame *frame, const struct mlir_op *op, graph_convert *with);
void graph_trace_op(struct graph_frame *frame, const struct mlir_op *op);
bool graph_runs(const struct mlir_row *row); // whether there is a way to

// The conversion of an operation on values of the graph; NULL when it has none.
graph_convert *graph_map_find(enum mlir_code code);
graph_convert *graph_shape_find(enum mlir_code code);
graph_convert *graph_index_find(enum mlir_code code);
graph_convert *graph_product_find(enum mlir_code code);
graph_convert *graph_order_find(enum mlir_code code);
graph_convert *graph_scatter_find(enum mlir_code code);
graph_convert *graph_collective_find(enum mlir_code code);
graph_convert *graph_call_find(enum mlir_code code);
// The same of those that record by public operations: they set the results of the frame.
graph_trace *graph_control_find(enum mlir_code code);
graph_trace *graph_fold_find(enum mlir_code code);
graph_trace *graph_scan_find(enum mlir_code code);

graph_trace *graph_called_find(enum mlir_code code);

#endif
