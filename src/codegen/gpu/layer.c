// SPDX-License-Identifier: Apache-2.0
// Products with small matrices, a point a thread: z[j] = sum over k of x[k] w[...], terms in their
// order by fma.  All threads of a warp read the same of the matrix, 16 bytes at a time where its
// elements are beside one another: along j there are as many sums in registers, along k four, and x.
//
// A network has many of the same shape.  Where its points are many they are one function, which is called:
// code that is written out for each of them takes longer to compile, and threads wait for more of it.
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/gpu/layer.h"
#include "codegen/emit.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/memory.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/op_function.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu.h"

#include <stdio.h>

#define MOST_SIDE 64
#define SUMS 32     // at most side by side
#define SUMS_OF_X 4 // where x is in registers
#define TERMS 4     // that are written out
#define LONG 8      // terms that are worth a call

struct layer {
    const struct nest_statement *s;
    jot_dtype dtype;
    LLVMTypeRef lane;
    LLVMValueRef x, z, w; // bases
    int64_t inputs, outputs, by_input, by_output;
    unsigned width; // neighbouring elements of the matrix that are read at once
};

static bool find_layer(struct cg_lowering *l, const struct nest_statement *s, struct layer *out)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    nest_id j = s->axes[0], k = s->axes[1];
    const struct nest_index *w = &s->source_index[1];
    if (!nest_is_layer(s) || l->vector.lanes > 1 || gpu_is_together(l) ||
        (d != JOT_F32 && d != JOT_F64))
        return false;
    *out = (struct layer){.s = s,
                          .dtype = d,
                          .lane = cg_memory_type(l->module, d),
                          .inputs = l->nest->axes.at[k].extent,
                          .outputs = l->nest->axes.at[j].extent,
                          .by_input = nest_index_factor(w, k),
                          .by_output = nest_index_factor(w, j),
                          .width = 16 / dtype_get(d)->bytes};
    if (out->inputs > MOST_SIDE || out->outputs > MOST_SIDE)
        return false;
    out->x = cg_buffer_base(l, s->source[0]);
    out->z = cg_buffer_base(l, s->buffer);
    out->w =
        cg_at(l, out->lane, cg_buffer_base(l, s->source[1]), cg_int(l->module, w->constant));
    int64_t apart = out->by_output == 1 ? out->by_input : out->by_output;
    bool is_row = out->by_output == 1 || out->by_input == 1;
    int64_t side = out->by_output == 1 ? out->outputs : out->inputs;
    if (!is_row || apart % out->width || w->constant % out->width || side % out->width ||
        gpu_align_of(l, s->source[1]) < 16)
        out->width = 1;
    return true;
}

// Elements from number `at` on, each lane one of the matrix.
static LLVMValueRef load_matrix(struct cg_lowering *l, const struct layer *p, LLVMValueRef at)
{
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_with_lanes(p->lane, p->width),
                                    cg_at(l, p->lane, p->w, at), "");
    LLVMSetAlignment(v, p->width * dtype_get(p->dtype)->bytes);
    if (gpu_is_read_only(l, p->s->source[1]))
        LLVMSetMetadata(v, LLVMGetMDKindIDInContext(l->module->context, "invariant.load", 14),
                        LLVMMetadataAsValue(l->module->context,
                                            LLVMMDNodeInContext2(l->module->context, NULL, 0)));
    return v;
}

static LLVMValueRef load_x(struct cg_lowering *l, const struct layer *p, LLVMValueRef k)
{
    return LLVMBuildLoad2(l->m.b, p->lane, cg_at(l, p->lane, p->x, k), "");
}

static LLVMValueRef add_product(struct cg_lowering *l, const struct layer *p, LLVMValueRef sum,
                                LLVMValueRef x, LLVMValueRef y)
{
    struct cg_value v[] = {{sum, NULL}, {x, NULL}, {y, NULL}};
    return cg_combine_fma(&l->m, p->dtype, v[0], v[1], v[2]).re;
}

// Outputs first .. first + count - 1, whose elements of the matrix are beside one another.
static void along_outputs(struct cg_lowering *l, const struct layer *p, int64_t first,
                          int64_t count)
{
    LLVMBuilderRef b = l->m.b;
    int64_t terms = TERMS, n = count / p->width;
    while (p->inputs % terms)
        terms /= 2;
    LLVMTypeRef type = cg_with_lanes(p->lane, p->width);
    LLVMValueRef slots[SUMS], sums[SUMS];
    for (int64_t q = 0; q < n; q++) {
        slots[q] = cg_alloca(l, type, 1);
        LLVMBuildStore(b, LLVMConstNull(type), slots[q]);
    }
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, p->inputs),
                                       cg_int(l->module, terms));
    for (int64_t q = 0; q < n; q++)
        sums[q] = LLVMBuildLoad2(b, type, slots[q], "");
    for (int64_t t = 0; t < terms; t++) {
        LLVMValueRef k = LLVMBuildAdd(b, loop.index, cg_int(l->module, t), "");
        LLVMValueRef x = cg_splat(&l->m, load_x(l, p, k), p->width);
        LLVMValueRef row = LLVMBuildMul(b, k, cg_int(l->module, p->by_input), "");
        for (int64_t q = 0; q < n; q++) {
            LLVMValueRef at = LLVMBuildAdd(b, row, cg_int(l->module, first + q * p->width), "");
            sums[q] = add_product(l, p, sums[q], x, load_matrix(l, p, at));
        }
    }
    for (int64_t q = 0; q < n; q++)
        LLVMBuildStore(b, sums[q], slots[q]);
    cg_loop_close(l, &loop);
    for (int64_t q = 0; q < n; q++) {
        LLVMValueRef v = LLVMBuildLoad2(b, type, slots[q], "");
        LLVMValueRef to = cg_at(l, p->lane, p->z, cg_int(l->module, first + q * p->width));
        LLVMSetAlignment(LLVMBuildStore(b, v, to), p->width * dtype_get(p->dtype)->bytes);
    }
}

static void along_inputs(struct cg_lowering *l, const struct layer *p)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef x[MOST_SIDE], sums[SUMS_OF_X];
    for (int64_t k = 0; k < p->inputs; k++)
        x[k] = load_x(l, p, cg_int(l->module, k));
    int64_t n = SUMS_OF_X;
    while (p->outputs % n)
        n /= 2;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, p->outputs),
                                       cg_int(l->module, n));
    for (int64_t q = 0; q < n; q++)
        sums[q] = LLVMConstNull(p->lane);
    for (int64_t k = 0; k < p->inputs; k += p->width)
        for (int64_t q = 0; q < n; q++) {
            LLVMValueRef j = LLVMBuildAdd(b, loop.index, cg_int(l->module, q), "");
            LLVMValueRef at = LLVMBuildMul(b, j, cg_int(l->module, p->by_output), "");
            at = LLVMBuildAdd(b, at, cg_int(l->module, k * p->by_input), "");
            LLVMValueRef w = load_matrix(l, p, at);
            for (unsigned i = 0; i < p->width; i++)
                sums[q] = add_product(l, p, sums[q], x[k + i],
                                      p->width > 1 ? cg_extract(&l->m, w, i, 1) : w);
        }
    for (int64_t q = 0; q < n; q++) {
        LLVMValueRef j = LLVMBuildAdd(b, loop.index, cg_int(l->module, q), "");
        LLVMBuildStore(b, sums[q], cg_at(l, p->lane, p->z, j));
    }
    cg_loop_close(l, &loop);
}

static void write_layer(struct cg_lowering *l, const struct layer *p)
{
    if (p->by_output != 1) {
        along_inputs(l, p);
        return;
    }
    int64_t most = SUMS;
    for (int64_t first = 0; first < p->outputs; first += most)
        along_outputs(l, p, first, p->outputs - first < most ? p->outputs - first : most);
}

static LLVMValueRef in_space(struct cg_lowering *l, LLVMValueRef x, unsigned space)
{
    return LLVMBuildAddrSpaceCast(l->m.b, x,
                                  LLVMPointerTypeInContext(l->module->context, space), "");
}

static void write_function(const struct cg_lowering *l, const struct layer *p, LLVMValueRef f)
{
    LLVMContextRef c = l->module->context;
    struct cg_lowering inner = *l;
    struct layer q = *p;
    inner.m.b = LLVMCreateBuilderInContext(c);
    inner.frame.function = f;
    inner.frame.entry = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMPositionBuilderAtEnd(inner.m.b, inner.frame.entry);
    q.z = in_space(&inner, LLVMGetParam(f, 0), 0);
    q.x = in_space(&inner, LLVMGetParam(f, 1), 0);
    q.w = in_space(&inner, LLVMGetParam(f, 2), 0);
    write_layer(&inner, &q);
    LLVMBuildRetVoid(inner.m.b);
    LLVMDisposeBuilder(inner.m.b);
}

// Of what is near the thread, with a matrix that is not.
static void call_layer(struct cg_lowering *l, const struct layer *p)
{
    LLVMContextRef c = l->module->context;
    LLVMTypeRef near = LLVMPointerTypeInContext(c, 5), far = LLVMPointerTypeInContext(c, 1);
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(c), (LLVMTypeRef[]){near, near, far}, 3, 0);
    char name[160];
    snprintf(name, sizeof name, "layer_%d_%lld_%lld_%lld_%lld_%u_%d", (int)p->dtype,
             (long long)p->inputs, (long long)p->outputs, (long long)p->by_input,
             (long long)p->by_output, p->width, gpu_is_read_only(l, p->s->source[1]));
    LLVMValueRef f = LLVMGetNamedFunction(l->module->module, name);
    if (!f) {
        f = cg_function_apart(l->module, name, type);
        write_function(l, p, f);
    }
    LLVMValueRef in[] = {in_space(l, p->z, 5), in_space(l, p->x, 5), in_space(l, p->w, 1)};
    LLVMBuildCall2(l->m.b, type, f, in, 3, "");
}

void gpu_layer(struct cg_lowering *l, const struct nest_statement *s)
{
    struct layer p;
    const struct nest_buffer *buffers = l->nest->buffers.at;
    if (!find_layer(l, s, &p))
        cg_fail(l, "no code for this product on a GPU");
    else if (l->gpu->network && l->gpu->block > GPU_WARP && p.inputs >= LONG &&
             buffers[s->buffer].role == NEST_LOCAL &&
             buffers[s->source[0]].role == NEST_LOCAL &&
             buffers[s->source[1]].role != NEST_LOCAL)
        call_layer(l, &p);
    else
        write_layer(l, &p);
}
