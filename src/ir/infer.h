// SPDX-License-Identifier: Apache-2.0
// What the rules of infer*.c share.  A rule reads the operands' types and the attributes of a
// call, sets n_out and types, or records why there is no result and gives false.
#ifndef IR_INFER_H
#define IR_INFER_H

#include "ir/build.h"

// Tensors larger than this have no type, so that byte offsets never overflow.
#define INFER_MAX_BYTES (INT64_C(1) << 62)

#define infer_fail(call, status, ...) (ir_fail((call)->b, (status), __VA_ARGS__), false)

static inline const char *infer_name(const struct ir_infer *call)
{
    return ir_op_get(call->op)->name;
}
static inline struct ir_type infer_in(const struct ir_infer *call, int i)
{
    return ir_type_in(call->b, call->in[i]);
}
static inline const int64_t *infer_dims(const struct ir_infer *call, int i)
{
    return ir_dims(call->b->module, infer_in(call, i));
}
static inline const char *infer_text(const struct ir_infer *call, struct ir_type t)
{
    return ir_type_text(call->b->module, t);
}

// Whether a tensor of these extents has a type at all: at most IR_MAX_RANK axes, none negative,
// at most INFER_MAX_BYTES even with the empty axes left out.
bool infer_dims_fit(jot_dtype dtype, int rank, const int64_t *dims);
// "f32[2,3]" of extents that need not fit.
const char *infer_dims_text(const struct ir_infer *call, jot_dtype dtype, int rank,
                            const int64_t *dims);
// The type as the only result.
bool infer_result(struct ir_infer *call, struct ir_type t);
// The same with extents to be checked.
bool infer_result_dims(struct ir_infer *call, jot_dtype dtype, int rank, const int64_t *dims);

// The attribute of a key that must be there: one number, count numbers, an element type.  NULL
// or false when it is not; a list of no numbers may be absent.
bool infer_int(struct ir_infer *call, enum ir_key key, int64_t *out);
const int64_t *infer_ints(struct ir_infer *call, enum ir_key key, int count);
bool infer_dtype(struct ir_infer *call, jot_dtype *out);

// The n functions of the node.
bool infer_functions(struct ir_infer *call, int n, struct ir_graph **out);

// axis is one of t.
bool infer_axis(struct ir_infer *call, struct ir_type t, int64_t axis);
// The axes are among those of t and increase.
bool infer_axes(struct ir_infer *call, struct ir_type t, int n, const int64_t *axes);
// Operands first .. n_in - 1 have one dtype.
bool infer_one_dtype(struct ir_infer *call, int first);

// A rule for each word of the shape column of ops.def, and for each INDEX(word).
#define FOLD(combiner, identity, pair)
#define INDEX(word) ir_index_rule index_##word;
#define NO_FOLD
#define OP(name, in, out, class, domain, types, shape, jvp, transp, batch, scalar, complex,    \
           fold, ...)                                                                          \
    bool infer_##shape(struct ir_infer *call);                                                 \
    fold
#include "ir/ops.def"
#undef OP
#undef NO_FOLD
#undef INDEX
#undef FOLD

#endif
