// SPDX-License-Identifier: Apache-2.0
// The one builder: infers types, checks and records.
//
//     struct ir_builder b = ir_builder_make(module, "name", IR_BUILD_PLAIN);
//     ir_id x = ir_param(&b, type), y = ir_mul(&b, x, x);
//     ir_output(&b, y);
//     struct ir_graph *g = ir_finish(&b);        // NULL if anything failed
//
// Errors stick: a failing call records the first message and gives IR_NONE; calls with an IR_NONE
// operand give IR_NONE and record nothing.  Types must be equal where ops want equal types:
// promotion and NumPy broadcasting belong to the public operations.
//
// MAP ops broadcast: an operand may have rank 0, or the rank of the result with extents equal to
// it or 1.
#ifndef IR_BUILD_H
#define IR_BUILD_H

#include "base/fft.h"
#include "ir/graph.h"

// What a builder does beside recording.
enum ir_build_flags {
    IR_BUILD_PLAIN = 0,       // every call its own node: the tracer, the parser
    IR_BUILD_ZEROS = 1u << 0, // drops additions of 0 and products with 1 that transforms make
    IR_BUILD_IDENTITIES = 1u << 1, // rewrites that are exact for every value
    IR_BUILD_FOLD = 1u << 2,       // evaluates ops on constants, results up to 4 KiB
    IR_BUILD_CSE = 1u << 3,        // finds equal nodes
    IR_BUILD_ALL = 15,
};

struct ir_builder {
    struct ir_graph *graph;
    struct ir_module *module;
    unsigned flags;
    uint32_t where;          // given to every node made
    struct hash_table nodes; // for IR_BUILD_CSE
    // For IR_BUILD_FOLD: elements of masks that are made of constants, by value, or NULL.
    VEC(const void *) known;
    jot_status status;   // JOT_OK until something failed
    const char *message; // in the module's arena, NULL until something failed
};

struct ir_builder ir_builder_make(struct ir_module *m, const char *name, unsigned flags);
ir_id ir_param(struct ir_builder *b, struct ir_type type); // before any other node
void ir_output(struct ir_builder *b, ir_id v);
// The graph, or NULL after an error (see message).
struct ir_graph *ir_finish(struct ir_builder *b);
// The same as a function of the module, or IR_NONE.
uint32_t ir_finish_function(struct ir_builder *b);
// Records an error (only the first counts) and gives IR_NONE.
__attribute__((format(printf, 3, 4))) ir_id ir_fail(struct ir_builder *b, jot_status status,
                                                    const char *format, ...);

// Any node; returns its first result.  Results follow each other.
ir_id ir_build(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
               const struct ir_attrs *attrs);
// The node n of graph g again, over other operands (same count).
ir_id ir_rebuild(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                 const ir_id *in);

static inline struct ir_type ir_type_in(const struct ir_builder *b, ir_id v)
{
    return b->graph->values.at[v].type;
}
static inline const struct ir_node *ir_node_in(const struct ir_builder *b, ir_id v)
{
    return ir_node_of(b->graph, v);
}

// One function per MAP op of fixed arity without attributes: ir_add(b, x, y), ir_exp(b, x), ...
// and ir_<op>(b, x) for the hints.
ir_id ir_map1(struct ir_builder *b, enum ir_op op, ir_id x);
ir_id ir_map2(struct ir_builder *b, enum ir_op op, ir_id x, ir_id y);
ir_id ir_map3(struct ir_builder *b, enum ir_op op, ir_id x, ir_id y, ir_id z);

// clang-format off
#define IR_UNARY_LIST(X)                                                                       \
    X(neg) X(sign) X(abs) X(floor) X(ceil) X(round_even) X(round_away) X(is_finite) X(exp)     \
    X(exp2) X(expm1) X(log) X(log1p) X(sqrt) X(rsqrt) X(cbrt) X(sin) X(cos) X(tan) X(asin)     \
    X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(logistic) X(erf_inv)  \
    X(erf) X(erfc) X(lgamma) X(gamma) X(digamma)                                              \
    X(not) X(popcount) X(clz) X(real) X(imag) X(conj) X(stop_gradient) X(variable)
#define IR_BINARY_LIST(X)                                                                      \
    X(add) X(sub) X(mul) X(mul_z) X(guard) X(div) X(rem) X(pow) X(max) X(min) X(atan2)         \
    X(hypot) X(direction) X(inversion) X(zeta) X(nextafter)                                    \
    X(complex) X(and) X(or) X(xor) X(shl) X(shr_logical) X(shr_arith) X(eq) X(ne) X(lt) X(le)  \
    X(gt) X(ge)
// clang-format on
#define IR_UNARY_(op)                                                                          \
    static inline ir_id ir_##op(struct ir_builder *b, ir_id x)                                 \
    {                                                                                          \
        return ir_map1(b, IR_##op, x);                                                         \
    }
#define IR_BINARY_(op)                                                                         \
    static inline ir_id ir_##op(struct ir_builder *b, ir_id x, ir_id y)                        \
    {                                                                                          \
        return ir_map2(b, IR_##op, x, y);                                                      \
    }
IR_UNARY_LIST(IR_UNARY_)
IR_BINARY_LIST(IR_BINARY_)
static inline ir_id ir_select(struct ir_builder *b, ir_id p, ir_id x, ir_id y)
{
    return ir_map3(b, IR_select, p, x, y);
}
static inline ir_id ir_clamp(struct ir_builder *b, ir_id low, ir_id x, ir_id high)
{
    return ir_map3(b, IR_clamp, low, x, high);
}
static inline ir_id ir_fma(struct ir_builder *b, ir_id x, ir_id y, ir_id z)
{
    return ir_map3(b, IR_fma, x, y, z);
}

// A constant with the given row-major data (copied).
ir_id ir_const(struct ir_builder *b, struct ir_type type, const void *data);
// A rank-0 constant; the number is rounded to the dtype.
ir_id ir_scalar(struct ir_builder *b, jot_dtype dtype, double x);
ir_id ir_scalar_int(struct ir_builder *b, jot_dtype dtype, int64_t x);
// A rank-0 constant of the dtype of v.
ir_id ir_scalar_like(struct ir_builder *b, ir_id v, double x);
// All elements x, of the type: a broadcast rank-0 constant.
ir_id ir_full(struct ir_builder *b, struct ir_type type, double x);
static inline ir_id ir_zeros(struct ir_builder *b, struct ir_type type)
{
    return ir_full(b, type, 0);
}

ir_id ir_iota(struct ir_builder *b, struct ir_type type, int axis);
ir_id ir_convert(struct ir_builder *b, ir_id x, jot_dtype dtype);
ir_id ir_bitcast(struct ir_builder *b, ir_id x, jot_dtype dtype);
ir_id ir_integer_pow(struct ir_builder *b, ir_id x, int64_t exponent);
// axes[i] is the result axis of operand axis i, increasing.
ir_id ir_broadcast_in_dim(struct ir_builder *b, ir_id x, int rank, const int64_t *dims,
                          const int64_t *axes);
ir_id ir_reshape(struct ir_builder *b, ir_id x, int rank, const int64_t *dims);
// Result axis i is operand axis axes[i].
ir_id ir_transpose(struct ir_builder *b, ir_id x, const int64_t *axes);
ir_id ir_rev(struct ir_builder *b, ir_id x, int n, const int64_t *axes);
ir_id ir_slice(struct ir_builder *b, ir_id x, const int64_t *starts, const int64_t *limits,
               const int64_t *strides);
ir_id ir_pad(struct ir_builder *b, ir_id x, ir_id value, const int64_t *low,
             const int64_t *high, const int64_t *interior);
// result[.., i, .., k, ..] = x[.., i + offset + step k, .., k, ..], 0 outside of x: axis `axis` of the
// result has `length`, and is shifted as the coordinate k along `along` says.
ir_id ir_shear(struct ir_builder *b, ir_id x, int axis, int along, int64_t offset, int64_t step,
               int64_t length);
ir_id ir_concatenate(struct ir_builder *b, int n, const ir_id *x, int axis);
// op is one of the REDUCE row; axes need not be sorted.  No axes: x itself.
ir_id ir_reduce(struct ir_builder *b, enum ir_op op, ir_id x, int n, const int64_t *axes);
// reduce_max or reduce_min over axes that increase, with the derivative of the first winner.
ir_id ir_reduce_first(struct ir_builder *b, enum ir_op op, ir_id x, int n, const int64_t *axes);
ir_id ir_cumulative(struct ir_builder *b, enum ir_op op, ir_id x, int axis, bool reverse);
ir_id ir_arg(struct ir_builder *b, enum ir_op op, ir_id x, int axis, jot_dtype dtype);

struct ir_dot {
    int n_batch, n_contract;
    const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
    int precision;
};
// Result axes: batch, then free axes of x, then free axes of y.
ir_id ir_dot_general(struct ir_builder *b, ir_id x, ir_id y, const struct ir_dot *dims);

// The transform of the last n axes, of those lengths (enum fft_kind).
ir_id ir_fft(struct ir_builder *b, enum fft_kind kind, ir_id x, int n, const int64_t *sizes);
// A decomposition of matrices (ops.def); its results follow each other.
ir_id ir_decompose(struct ir_builder *b, enum ir_op op, ir_id x, int mode);
ir_id ir_svd_first(struct ir_builder *b, ir_id x, int64_t k); // the k largest
// Operands of a sort, at most.
#define IR_SORT_MOST 8
// n operands of one shape, rows along the last axis in the order of the first n_keys: from low to
// high, -0 equal to 0, NaN equal and last, complex numbers by real part first, equal elements in
// their order.  The first of n results.
ir_id ir_sort(struct ir_builder *b, int n, const ir_id *x, int n_keys);
// The k greatest of each row, the greatest first, and of equal ones the first; floats in the
// total order of IEEE 754.  The next result is their indices.
ir_id ir_top_k(struct ir_builder *b, ir_id x, int64_t k, jot_dtype dtype);

// A node with bodies: op, its functions and operands; results as the first body gives them.
ir_id ir_call(struct ir_builder *b, enum ir_op op, int n_functions, const uint32_t *functions,
              int n_in, const ir_id *in);
// linear_call: functions forward and backward, n_residuals of the operands first.
ir_id ir_linear_call(struct ir_builder *b, uint32_t forward, uint32_t backward, int n_residuals,
                     int n_in, const ir_id *in);
// linear_solve: functions solve, matvec and transposed solve, n_residuals of the operands first.
ir_id ir_linear_solve(struct ir_builder *b, const uint32_t functions[3], int n_residuals,
                      int n_in, const ir_id *in);
// The run fails unless all elements of holds, bool of any shape, are true.  The message says
// what is wrong, place where the user wrote it; of the trips, i64[], the outermost
// IR_CHECK_TRIPS are kept.
#define IR_CHECK_TRIPS 8
#define IR_CHECK_LANES 16
#define IR_LANES_UNKNOWN (-1) // its attribute `lanes`: of checks that nobody wrote
void ir_check(struct ir_builder *b, ir_id holds, int n_trips, const ir_id *trips,
              const char *message, const char *place);
// A call of host number `host` of the module: results of the n_out types, lanes leading.
ir_id ir_callback(struct ir_builder *b, uint32_t host, int lanes, int n_in, const ir_id *in,
                  int n_out, const struct ir_type *types);
// What the message of a failing check says before the index: place and message.
const char *ir_check_text(struct arena *arena, const struct ir_attrs *attrs);
// The index that a check tells: extents of its flags, and -1 at axes that its last operands are, in
// their order; the rank, or -1 when they do not fit.
int ir_check_index(const struct ir_module *m, const struct ir_attrs *attrs,
                   struct ir_type holds, int64_t *dims);
// How many of the first axes of that index are lanes, as far as the check knows.
int ir_check_lanes(const struct ir_attrs *attrs);
// The nodes of f in place of a call of it: out receives its results.
void ir_inline(struct ir_builder *b, const struct ir_graph *f, const ir_id *in, ir_id *out);

// The types of the results of a node; false and a message in the builder when it has none.
// (infer.c)
struct ir_infer {
    struct ir_builder *b;
    enum ir_op op;
    int n_in;
    const ir_id *in;
    const struct ir_attrs *attrs;
    int n_out;             // to be set
    struct ir_type *types; // to be set; room for one, or allocated by the rule
};
bool ir_infer(struct ir_infer *call);
// Size-1 broadcasting of n types to one, the MAP rule: false when they do not fit.
bool ir_broadcast_types(struct ir_module *m, int n, const struct ir_type *types,
                        struct ir_type *out);

#endif
