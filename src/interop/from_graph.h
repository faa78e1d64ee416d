// SPDX-License-Identifier: Apache-2.0
// Graphs as programs: the way back of to_graph.h.
//
// Each node is written by its family; bodies of calls, loops and branches are private functions.  What
// StableHLO has no operation for is a composite, "chlo.erf" or "jot.gamma", whose decomposition is
// made of the templates that every back end makes it of (ir/scalar.h, base/math).
//
// Everything lives in the arena of the program; memory running out leaves by the guard.
#ifndef INTEROP_FROM_GRAPH_H
#define INTEROP_FROM_GRAPH_H

#include "base/vec.h"
#include "interop/mlir.h"
#include "ir/graph.h"

typedef struct mlir_value *hlo_value;
typedef VEC(struct mlir_op *) hlo_ops;

// What is known of a function of the module, by its number.
struct hlo_written {
    const char *name; // NULL: not written yet
};

// A composite that has been written: the name of its decomposition.
struct hlo_decomposition {
    enum ir_op op;
    const struct mlir_type *type; // of the first operand
    const char *name;
};

// A program that is being written, and in it the block of a function.
struct hlo_writer {
    struct arena *arena;
    struct ir_module *module;
    VEC(struct mlir_function) functions;
    struct hlo_written *written;
    VEC(struct hlo_decomposition) decompositions;
    hlo_ops ops;       // of the innermost block
    uint32_t n_values; // of the function
    // Of the program of one device of a mesh: the last parameter of the graph is where it is in the mesh.
    int mesh_rank;
    const int64_t *mesh;
};

// ---- types ----

enum mlir_element hlo_element(jot_dtype d);
const struct mlir_type *hlo_type(struct hlo_writer *w, jot_dtype d, int rank,
                                 const int64_t *dims);
const struct mlir_type *hlo_type_of(struct hlo_writer *w, struct ir_type t);
// Of numbers in attributes.
const struct mlir_type *hlo_word_type(struct hlo_writer *w, enum mlir_element e);
// The same shape with another element.
const struct mlir_type *hlo_type_with(struct hlo_writer *w, const struct mlir_type *t,
                                      jot_dtype d);
static inline jot_dtype hlo_dtype(const struct mlir_value *v)
{
    return mlir_elements[v->type->element].dtype;
}

// ---- attributes ----

struct hlo_attrs {
    uint32_t n;
    struct mlir_named at[20];
};
void hlo_int(struct hlo_writer *w, struct hlo_attrs *a, const char *name, int64_t x);
void hlo_bool(struct hlo_writer *w, struct hlo_attrs *a, const char *name, bool x);
void hlo_ints(struct hlo_writer *w, struct hlo_attrs *a, const char *name, int n,
              const int64_t *x);
void hlo_text(struct hlo_writer *w, struct hlo_attrs *a, const char *name,
              enum mlir_attr_kind kind, const char *text);
void hlo_add(struct hlo_attrs *a, const char *name, const struct mlir_attr *attr);
const struct mlir_attr *hlo_attr(struct hlo_writer *w, struct mlir_attr a);

// ---- operations ----

// Any operation; its attributes may stand in any order, those that have their default are left out.
struct mlir_op *hlo_emit(struct hlo_writer *w, enum mlir_code code, uint32_t n_in,
                         const hlo_value *in, uint32_t n_out,
                         const struct mlir_type *const *types, const struct hlo_attrs *attrs,
                         uint32_t n_regions, const struct mlir_block *regions);
// One with one result and no region.
hlo_value hlo_op(struct hlo_writer *w, enum mlir_code code, const struct mlir_type *type,
                 uint32_t n_in, const hlo_value *in, const struct hlo_attrs *attrs);
hlo_value hlo_1(struct hlo_writer *w, enum mlir_code code, hlo_value x);
hlo_value hlo_2(struct hlo_writer *w, enum mlir_code code, hlo_value x, hlo_value y);
hlo_value hlo_select(struct hlo_writer *w, hlo_value p, hlo_value x, hlo_value y);
// "LT", "EQ" ...; floats in the total order of IEEE 754 when is_total.
hlo_value hlo_compare(struct hlo_writer *w, const char *direction, bool is_total, hlo_value x,
                      hlo_value y);
hlo_value hlo_convert(struct hlo_writer *w, hlo_value x, jot_dtype d);
hlo_value hlo_bitcast(struct hlo_writer *w, hlo_value x, jot_dtype d);

// Constants: of the elements, n bytes of them or of one that stands for all; of a number; of the bits
// of an integer.
hlo_value hlo_constant(struct hlo_writer *w, const struct mlir_type *t, const void *bytes,
                       size_t n);
hlo_value hlo_number(struct hlo_writer *w, const struct mlir_type *t, double x);
hlo_value hlo_integer(struct hlo_writer *w, const struct mlir_type *t, uint64_t bits);

hlo_value hlo_iota(struct hlo_writer *w, const struct mlir_type *t, int axis);
hlo_value hlo_reshape(struct hlo_writer *w, hlo_value x, int rank, const int64_t *dims);
hlo_value hlo_transpose(struct hlo_writer *w, hlo_value x, const int64_t *axes);
hlo_value hlo_broadcast(struct hlo_writer *w, hlo_value x, const struct mlir_type *t,
                        const int64_t *axes);
hlo_value hlo_slice(struct hlo_writer *w, hlo_value x, const int64_t *starts,
                    const int64_t *limits, const int64_t *strides); // NULL: ones
// As ops of class MAP broadcast: a number, or axes of extent 1.
hlo_value hlo_stretch(struct hlo_writer *w, hlo_value x, const struct mlir_type *t);
// By what combines elements (hlo_combiner), along axes that increase.
hlo_value hlo_reduce(struct hlo_writer *w, enum ir_op op, hlo_value x, hlo_value init, int n,
                     const int64_t *axes);

// ---- blocks and functions ----

struct hlo_block {
    struct mlir_block block;
    hlo_ops outer;
};
// A block with arguments of those types, in which operations are written until it is closed with what it
// gives, by stablehlo.return or func.return.
struct hlo_block hlo_open(struct hlo_writer *w, uint32_t n,
                          const struct mlir_type *const *types);
struct mlir_block hlo_close(struct hlo_writer *w, struct hlo_block *b, enum mlir_code code,
                            uint32_t n, const hlo_value *out);
// A region of two numbers of that type, combined by an op of two operands or as an op folds.
struct mlir_block hlo_combiner(struct hlo_writer *w, enum ir_op op, jot_dtype d);

// A function while it is written: what stands around it waits.
struct hlo_function {
    struct hlo_block block;
    uint32_t slot, n_values;
};
struct hlo_function hlo_open_function(struct hlo_writer *w, const char *name, uint32_t n,
                                      const struct mlir_type *const *types);
// Its name.
const char *hlo_close_function(struct hlo_writer *w, struct hlo_function *f, uint32_t n,
                               const hlo_value *out);
void hlo_call(struct hlo_writer *w, const char *name, uint32_t n_in, const hlo_value *in,
              uint32_t n_out, const struct mlir_type *const *types, hlo_value *out);
// Calls function f of the module, which is written when it is called first.
void hlo_call_body(struct hlo_writer *w, uint32_t f, const hlo_value *in, hlo_value *out);

// ---- nodes ----

// A node that is being written.
struct hlo_node {
    struct hlo_writer *w;
    const struct ir_graph *g;
    const struct ir_node *n;
    const hlo_value *in;
    hlo_value *out;               // to be set
    const struct mlir_type *type; // of the first result
};

typedef void hlo_family(struct hlo_node *n);
hlo_family hlo_map, hlo_layout, hlo_index, hlo_fold, hlo_product, hlo_order, hlo_library,
    hlo_control;

// What the partitions of the program exchange; and where a partition is in a mesh of them, i32[rank].
hlo_family hlo_exchange;
hlo_value hlo_coordinates(struct hlo_writer *w, int rank, const int64_t *mesh);

// The operation that the reader takes for the op, and the one that is written for it; MLIR_N_CODES: none.
enum mlir_code graph_map_code(enum ir_op op);
enum mlir_code hlo_code(enum ir_op op);

// A function of base/math by its name, on floats.
hlo_value hlo_math(struct hlo_writer *w, const char *name, hlo_value x, hlo_value y);
// x y + z, rounded once but for the last bit.
hlo_value hlo_fma(struct hlo_writer *w, hlo_value x, hlo_value y, hlo_value z);
// What the column `scalar` of an op says, or `complex`, on operands of the shape of the result.
void hlo_expand(struct hlo_node *n, const hlo_value *in, hlo_value *out);
// The same for an op that a body of two operands applies.
hlo_value hlo_combine(struct hlo_writer *w, enum ir_op op, hlo_value x, hlo_value y);

// The graph as the function `name` of the program; constants stand for its last parameters, but for the
// coordinates in the mesh.
void hlo_write_main(struct hlo_writer *w, const char *name, const struct ir_graph *g,
                    uint32_t n_in, const void *const *data);
// What keeps a graph from being written, or NULL.
const char *hlo_refusal(struct arena *arena, const struct ir_graph *g);

#endif
