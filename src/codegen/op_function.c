// SPDX-License-Identifier: Apache-2.0
// Ops as functions of the module, for kernels that would be too much code with all of them written out
// (COST_CODE): equal ones are compiled once.
//
//     %y = ... 40 operations of a sine ...    becomes    %y = call <16 x float> @op_sin_f32_f32_16(%x)
#include "codegen/op_function.h"
#include "codegen/emit.h"
#include "codegen/scalar.h"
#include "codegen/size.h"
#include "codegen/types.h"
#include "ir/cost.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PARTS = 8, MOST_USES = 64 };

#define PREFIX "op_"

// An op on operands of some types and of a number of lanes.
struct op_function {
    enum ir_op op;
    jot_dtype result;
    int n, n_results; // operands and results, of which complex ones have two parts
    const jot_dtype *dtypes;
    const int64_t *bits;
    unsigned lanes;
};

void cg_add_attribute(const struct cg_module *m, LLVMValueRef to, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAttributeRef a = LLVMCreateEnumAttribute(m->context, kind, 0);
    if (LLVMIsAFunction(to))
        LLVMAddAttributeAtIndex(to, LLVMAttributeFunctionIndex, a);
    else
        LLVMAddCallSiteAttribute(to, LLVMAttributeFunctionIndex, a);
}

LLVMValueRef cg_function_apart(struct cg_module *m, const char *name, LLVMTypeRef type)
{
    LLVMValueRef f = LLVMAddFunction(m->module, name, type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    cg_add_attribute(m, f, "noinline");
    return f;
}

static void write_name(const struct op_function *o, char *name, size_t size)
{
    int at = snprintf(name, size, PREFIX "%s_%s", ir_op_get(o->op)->name,
                      dtype_get(o->result)->name);
    for (int i = 0; i < o->n; i++)
        at += snprintf(name + at, size - (size_t)at, "_%s", dtype_get(o->dtypes[i])->name);
    snprintf(name + at, size - (size_t)at, "_%u_%llx_%llx", o->lanes,
             (unsigned long long)o->bits[0], (unsigned long long)o->bits[1]);
}

static int split(struct cg_value v, LLVMValueRef *parts)
{
    parts[0] = v.re;
    parts[1] = v.im;
    return v.im ? 2 : 1;
}

static struct cg_value value_of_parts(bool is_complex, const LLVMValueRef *parts, int *at)
{
    struct cg_value v = {parts[(*at)++], NULL};
    if (is_complex)
        v.im = parts[(*at)++];
    return v;
}

static int count_results(const struct op_function *o)
{
    return o->n_results * (dtype_is_complex(o->result) ? 2 : 1);
}

static LLVMTypeRef type_of(const struct cg_module *m, const struct op_function *o,
                           const LLVMValueRef *parts, int n_parts)
{
    LLVMTypeRef in[MOST_PARTS], out[MOST_PARTS];
    int n_out = count_results(o);
    for (int i = 0; i < n_parts; i++)
        in[i] = LLVMTypeOf(parts[i]);
    for (int i = 0; i < n_out; i++)
        out[i] = cg_with_lanes(cg_lane_type(m, dtype_real(o->result)), o->lanes);
    LLVMTypeRef all =
        n_out == 1 ? out[0] : LLVMStructTypeInContext(m->context, out, (unsigned)n_out, 0);
    return LLVMFunctionType(all, in, (unsigned)n_parts, 0);
}

static void write_body(struct machine *m, const struct op_function *o, LLVMValueRef f)
{
    LLVMValueRef in[MOST_PARTS], parts[MOST_PARTS];
    struct cg_value operands[4], results[2];
    int at = 0, n = 0;
    LLVMGetParams(f, in);
    for (int i = 0; i < o->n; i++)
        operands[i] = value_of_parts(dtype_is_complex(o->dtypes[i]), in, &at);
    cg_op(m, o->op, o->result, o->n, o->dtypes, operands, o->bits, results);
    for (int i = 0; i < o->n_results; i++)
        n += split(results[i], parts + n);
    if (n == 1)
        LLVMBuildRet(m->b, parts[0]);
    else
        LLVMBuildAggregateRet(m->b, parts, (unsigned)n);
}

static LLVMValueRef add_function(const struct cg_module *m, const char *name, LLVMTypeRef type)
{
    LLVMValueRef f = LLVMAddFunction(m->module, name, type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    cg_add_attribute(m, f, "memory"); // none but its own
    cg_add_attribute(m, f, "nounwind");
    cg_add_attribute(m, f, "willreturn");
    return f;
}

static LLVMValueRef make_function(struct cg_module *m, const struct op_function *o,
                                  const char *name, LLVMTypeRef type)
{
    LLVMValueRef f = add_function(m, name, type);
    struct machine inner = {.module = m, .b = LLVMCreateBuilderInContext(m->context)};
    LLVMPositionBuilderAtEnd(inner.b, LLVMAppendBasicBlockInContext(m->context, f, ""));
    write_body(&inner, o, f);
    LLVMDisposeBuilder(inner.b);
    return f;
}

static bool are_constant(const LLVMValueRef *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (!LLVMIsConstant(parts[i]))
            return false;
    return true;
}

bool cg_op_by_function(struct machine *m, enum ir_op op, jot_dtype result, int n,
                       const jot_dtype *dtypes, const struct cg_value *in,
                       const int64_t bits[2], struct cg_value *out)
{
    struct op_function o = {.op = op,
                            .result = result,
                            .n = n,
                            .n_results = ir_op_get(op)->out,
                            .dtypes = dtypes,
                            .bits = bits,
                            .lanes = cg_lanes_of(in[0].re)};
    LLVMValueRef parts[MOST_PARTS];
    int n_parts = 0, n_results = count_results(&o);
    for (int i = 0; i < n; i++)
        n_parts += split(in[i], parts + n_parts);
    if (m->ranges || are_constant(parts, n_parts))
        return false;
    char name[128];
    write_name(&o, name, sizeof name);
    LLVMTypeRef type = type_of(m->module, &o, parts, n_parts);
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, name);
    if (!f)
        f = make_function(m->module, &o, name, type);
    if (cg_code_of(m->module, f) <= COST_CODE_CALL)
        return false;
    LLVMValueRef y = LLVMBuildCall2(m->b, type, f, parts, (unsigned)n_parts, "");
    for (int i = 0; i < n_results; i++)
        parts[i] = n_results == 1 ? y : LLVMBuildExtractValue(m->b, y, (unsigned)i, "");
    n_parts = 0;
    for (int i = 0; i < o.n_results; i++)
        out[i] = value_of_parts(dtype_is_complex(result), parts, &n_parts);
    return true;
}

// ---- Pairs

static bool is_op_call(LLVMValueRef i)
{
    size_t size;
    return LLVMIsACallInst(i) && LLVMIsAFunction(LLVMGetCalledValue(i)) &&
           !strncmp(LLVMGetValueName2(LLVMGetCalledValue(i), &size), PREFIX, strlen(PREFIX));
}

static bool has_same_operands(LLVMValueRef x, LLVMValueRef y)
{
    unsigned n = LLVMGetNumArgOperands(x);
    bool same = n == LLVMGetNumArgOperands(y);
    for (unsigned i = 0; same && i < n; i++)
        same = LLVMGetOperand(x, i) == LLVMGetOperand(y, i);
    return same;
}

// The function of the same operands that a call further down in the block has, or NULL.
static LLVMValueRef find_partner(LLVMValueRef call)
{
    LLVMValueRef x = LLVMGetOperand(call, 0);
    int left = MOST_USES;
    for (LLVMUseRef u = LLVMIsConstant(x) ? NULL : LLVMGetFirstUse(x); u && left-- > 0;
         u = LLVMGetNextUse(u)) {
        LLVMValueRef other = LLVMGetUser(u);
        if (other != call && is_op_call(other) && has_same_operands(call, other) &&
            LLVMGetInstructionParent(other) == LLVMGetInstructionParent(call))
            return other;
    }
    return NULL;
}

static LLVMValueRef call_within(const struct cg_module *m, LLVMBuilderRef b, LLVMValueRef f,
                                LLVMValueRef *operands)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(f);
    LLVMValueRef y = LLVMBuildCall2(b, type, f, operands, LLVMCountParams(f), "");
    cg_add_attribute(m, y, "alwaysinline");
    return y;
}

static LLVMValueRef pair_of(const struct cg_module *m, LLVMValueRef f, LLVMValueRef g)
{
    char name[256];
    size_t size;
    snprintf(name, sizeof name, "pair_%s_%s", LLVMGetValueName2(f, &size),
             LLVMGetValueName2(g, &size));
    LLVMValueRef pair = LLVMGetNamedFunction(m->module, name), in[MOST_PARTS], out[2];
    if (pair)
        return pair;
    LLVMTypeRef types[MOST_PARTS], one = LLVMGlobalGetValueType(f),
                                   other = LLVMGlobalGetValueType(g);
    LLVMTypeRef results[] = {LLVMGetReturnType(one), LLVMGetReturnType(other)};
    LLVMGetParamTypes(one, types);
    LLVMTypeRef both = LLVMStructTypeInContext(m->context, results, 2, 0);
    pair = add_function(m, name, LLVMFunctionType(both, types, LLVMCountParamTypes(one), 0));
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(m->context, pair, ""));
    LLVMGetParams(pair, in);
    out[0] = call_within(m, b, f, in);
    out[1] = call_within(m, b, g, in);
    LLVMBuildAggregateRet(b, out, 2);
    LLVMDisposeBuilder(b);
    return pair;
}

// Ops of the same operands, as a sine and a cosine, are one function, in which they share what they can.
static void pair_up(const struct cg_module *m, LLVMBuilderRef b, LLVMValueRef call)
{
    LLVMValueRef partner = find_partner(call), in[MOST_PARTS];
    if (!partner)
        return;
    LLVMValueRef pair = pair_of(m, LLVMGetCalledValue(call), LLVMGetCalledValue(partner));
    for (unsigned i = 0; i < LLVMCountParams(pair); i++)
        in[i] = LLVMGetOperand(call, i);
    LLVMPositionBuilderBefore(b, call);
    LLVMValueRef both =
        LLVMBuildCall2(b, LLVMGlobalGetValueType(pair), pair, in, LLVMCountParams(pair), "");
    LLVMReplaceAllUsesWith(call, LLVMBuildExtractValue(b, both, 0, ""));
    LLVMReplaceAllUsesWith(partner, LLVMBuildExtractValue(b, both, 1, ""));
    LLVMInstructionEraseFromParent(partner);
}

void cg_pair_op_functions(const struct cg_module *m)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    LLVMValueRef last = LLVMGetLastFunction(m->module), f = LLVMGetFirstFunction(m->module);
    for (; f; f = f == last ? NULL : LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k))
            for (LLVMValueRef i = LLVMGetFirstInstruction(k), next; i; i = next) {
                bool is_paired = is_op_call(i) && LLVMGetFirstUse(i);
                if (is_paired)
                    pair_up(m, b, i);
                next = LLVMGetNextInstruction(i);
                if (is_paired && !LLVMGetFirstUse(i))
                    LLVMInstructionEraseFromParent(i);
            }
    LLVMDisposeBuilder(b);
}
