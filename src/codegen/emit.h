// SPDX-License-Identifier: Apache-2.0
// What the emitters of this folder share: the LLVM state, scalar values of any lane count, and
// the ops on them.
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "base/arena.h"
#include "base/dtype.h"
#include "ir/ops.h"

#include <llvm-c/Core.h>

struct cg_hooks;
struct ir_attrs;

// One LLVM module in the making.
struct cg_module {
    struct arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr;
    unsigned vector_bytes; // of the target's registers
    unsigned registers;    // vectors that it holds at once
    bool is_gpu;           // one lane of code is one of many threads
    bool has_warpgroups;   // of a GPU whose tensor cores read shared memory (gpu/warpgroup.c)
    const struct cg_hooks *hooks; // of a GPU (hooks.h); NULL on the host
};

// A run of operations without branches, for functions that hold in a range: gpu/ranges.c sets it for
// as long as it lowers the run.
struct cg_range_run {
    LLVMValueRef outside;   // whether some number has been out of range, or NULL: none could be
    bool is_redo;           // what is lowered does numbers of any size
    bool is_known;          // operands of what is lowered need no look
    struct gpu_size *sizes; // by value of the nest
};

// The scalar machine of ir/scalar.h on LLVM values of any lane count: the type of a value says
// how many lanes it has, so one lane is a plain LLVM scalar.
struct machine {
    jot_dtype dtype; // of the last operand of the op, as it is stored
    const struct ir_attrs *attrs;
    struct cg_module *module;
    LLVMBuilderRef b;
    bool by_function; // longer ops are calls of functions of the module (op_function.c)
    bool is_crowded;  // of a GPU: a thread's registers are full, and none are there for a call
    // Of a function of a GPU that is or becomes part of a long one: LLVM compares the test of each loop
    // with those in front of it, and looks through the whole function for what a call gives.
    bool is_long;
    struct cg_range_run *ranges; // the one that is being lowered, or NULL
};

// A value of a nest: bool is i1, a half type its 16 bits, a complex number two parts.
struct cg_value {
    LLVMValueRef re, im; // im NULL unless complex
};

// types.c
LLVMTypeRef cg_lane_type(const struct cg_module *m,
                         jot_dtype d); // i1 for bool; the part's type
LLVMTypeRef cg_memory_type(const struct cg_module *m,
                           jot_dtype d); // i8 for bool; the part's type
LLVMTypeRef cg_with_lanes(LLVMTypeRef lane, unsigned lanes);
LLVMTypeRef cg_lane_of(LLVMValueRef v); // the type of a lane
unsigned cg_lanes_of(LLVMValueRef v);
LLVMValueRef cg_splat(struct machine *m, LLVMValueRef v, unsigned lanes); // of one lane
LLVMValueRef cg_int(const struct cg_module *m, int64_t x);                // an i64
LLVMValueRef cg_intrinsic(struct machine *m, const char *name, LLVMTypeRef overload, int n,
                          LLVMValueRef *arguments);
// One whose name has two types.
LLVMValueRef cg_intrinsic_of_two(struct machine *m, const char *name, LLVMTypeRef a,
                                 LLVMTypeRef b, int n, LLVMValueRef *arguments);
static inline LLVMValueRef cg_call1(struct machine *m, const char *name, LLVMValueRef x)
{
    return cg_intrinsic(m, name, LLVMTypeOf(x), 1, &x);
}
static inline LLVMValueRef cg_call2(struct machine *m, const char *name, LLVMValueRef x,
                                    LLVMValueRef y)
{
    return cg_intrinsic(m, name, LLVMTypeOf(x), 2, (LLVMValueRef[]){x, y});
}
// Constant vector first, first + step, ... of i64 or i32.
LLVMValueRef cg_sequence(const struct cg_module *m, LLVMTypeRef lane, unsigned lanes,
                         int64_t first, int64_t step);
// Lanes first .. first + count - 1 of v.
LLVMValueRef cg_extract(struct machine *m, LLVMValueRef v, unsigned first, unsigned count);

// scalar.c
// The op on operands of equal lane counts; bits as in struct nest_statement.  out has room for
// two results.
void cg_op(struct machine *m, enum ir_op op, jot_dtype result, int n, const jot_dtype *dtypes,
           const struct cg_value *in, const int64_t bits[2], struct cg_value *out);
// op_function.c: the same by a function, if the op is longer than a call and is not known already.
bool cg_op_by_function(struct machine *m, enum ir_op op, jot_dtype result, int n,
                       const jot_dtype *dtypes, const struct cg_value *in,
                       const int64_t bits[2], struct cg_value *out);
// To a function, or to a call.
void cg_add_attribute(const struct cg_module *m, LLVMValueRef to, const char *name);
// A call of a function with one result; in a long function of a GPU by one that leaves it in memory.
LLVMValueRef cg_call(struct machine *m, LLVMTypeRef type, LLVMValueRef f,
                     LLVMValueRef *arguments);
// A function of the module without a body, whose calls stay calls.
LLVMValueRef cg_function_apart(struct cg_module *m, const char *name, LLVMTypeRef type);
struct cg_value cg_convert(struct machine *m, struct cg_value x, jot_dtype from, jot_dtype to);
// The element with these bytes, splat.
struct cg_value cg_constant(const struct cg_module *m, jot_dtype d, const void *element,
                            unsigned lanes);
// What accumulators of a combiner begin with.
struct cg_value cg_identity(const struct cg_module *m, enum ir_op op, jot_dtype d,
                            unsigned lanes);
// What combined with any element leaves it as it is, if that is known of the op.
bool cg_has_neutral(enum ir_op op, jot_dtype d);
struct cg_value cg_neutral(struct machine *m, enum ir_op op, jot_dtype d, unsigned lanes);
// Combines two values of one combiner, both of dtype d.
struct cg_value cg_combine(struct machine *m, enum ir_op op, jot_dtype d, struct cg_value a,
                           struct cg_value b);
// acc + a * b in the order of the fma combiner.
struct cg_value cg_combine_fma(struct machine *m, jot_dtype d, struct cg_value acc,
                               struct cg_value a, struct cg_value b);
// Whether a takes the place of b as the winner of an ARG op.
LLVMValueRef cg_wins(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef a,
                     LLVMValueRef b);
struct cg_value cg_select(struct machine *m, LLVMValueRef p, struct cg_value a,
                          struct cg_value b);

// x / y and the root of x, of floats.
LLVMValueRef cg_divide(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cg_sqrt(struct machine *m, LLVMValueRef x);
// x, a vector of f32 or f64, divided by one number y; the bits of the division.
LLVMValueRef cg_divide_by_uniform(struct machine *m, LLVMValueRef x, LLVMValueRef y);

// Whether some lane of a mask is set, lane by lane.
LLVMValueRef cg_any_lane(struct machine *m, LLVMValueRef mask);

// in_step.c: v, a vector of a number of 4 bytes, with its registers computed side by side.
LLVMValueRef cg_in_step(struct machine *m, LLVMValueRef v);

// math.c: elementary functions on f32 or f64 lanes.
LLVMValueRef cg_math(struct machine *m, const char *name, LLVMValueRef x, LLVMValueRef y);
// Numbers of a run that is not done again yet are out of range.
void cg_outside(struct machine *m, LLVMValueRef mask);
// e^x of f32s that are not above 0, with the bits of exp.
LLVMValueRef cg_exp_of_nonpositive(struct machine *m, LLVMValueRef x);
// Two numbers whose product is that of the sine and the cosine of x, in the range of these.
void cg_sincos_factors(struct machine *m, LLVMValueRef x, LLVMValueRef *a, LLVMValueRef *b);
// A rarely taken block for the condition, from open to close; close gives quick or slow.
LLVMBasicBlockRef cg_cold_open(struct machine *m, LLVMValueRef condition,
                               LLVMBasicBlockRef *out_from);
LLVMValueRef cg_cold_close(struct machine *m, LLVMBasicBlockRef warm, LLVMBasicBlockRef from,
                           LLVMValueRef quick, LLVMValueRef slow);

#endif
