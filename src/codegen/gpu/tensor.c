// SPDX-License-Identifier: Apache-2.0
// Tensor cores of a warp.  Fragments are those of the PTX ISA: of a tile of 16 by 8 numbers thread
// 4 r + c has columns 2c and 2c + 1 of rows r and r + 8.
#include "codegen/gpu/tensor.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/warpgroup.h"
#include "codegen/index.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu.h"

#include <math.h>
#include <string.h>

LLVMValueRef gpu_tensor_call(struct gpu_tensor *t, const char *name, LLVMTypeRef overload,
                             int n, LLVMValueRef *arguments)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    size_t many = overload != NULL;
    LLVMValueRef f =
        LLVMGetIntrinsicDeclaration(t->l->module->module, id, many ? &overload : NULL, many);
    LLVMTypeRef type =
        LLVMIntrinsicGetType(t->l->module->context, id, many ? &overload : NULL, many);
    return LLVMBuildCall2(t->b, type, f, arguments, (unsigned)n, "");
}

LLVMValueRef gpu_tensor_number(const struct gpu_tensor *t, double x)
{
    return LLVMConstReal(t->f32, x);
}

LLVMValueRef gpu_tensor_load_f32(const struct gpu_tensor *t, LLVMValueRef at)
{
    return LLVMBuildLoad2(t->b, t->f32, at, "");
}

LLVMValueRef gpu_tensor_plus(struct gpu_tensor *t, LLVMValueRef x, int64_t y)
{
    return y ? LLVMBuildAdd(t->b, x, cg_int(t->l->module, y), "") : x;
}

LLVMValueRef gpu_tensor_at_most(struct gpu_tensor *t, LLVMValueRef x, int64_t most)
{
    LLVMValueRef limit = cg_int(t->l->module, most);
    return LLVMBuildSelect(t->b, LLVMBuildICmp(t->b, LLVMIntSLT, x, limit, ""), x, limit, "");
}

LLVMValueRef gpu_tensor_shared_at(struct gpu_tensor *t, LLVMValueRef bytes)
{
    return LLVMBuildGEP2(t->b, t->l->module->i8, t->shared, &bytes, 1, "");
}

struct gpu_tensor gpu_tensor_make(struct cg_lowering *l, jot_dtype dtype, unsigned warps,
                                  uint64_t shared_bytes)
{
    struct cg_module *m = l->module;
    LLVMBuilderRef b = l->m.b;
    struct gpu_tensor t = {.l = l,
                           .b = b,
                           .f32 = m->f32,
                           .i32 = m->i32,
                           .pair = dtype == JOT_BF16
                                       ? m->i32
                                       : LLVMVectorType(LLVMHalfTypeInContext(m->context), 2),
                           .is_bf16 = dtype == JOT_BF16,
                           .warps = warps};
    LLVMValueRef shared = gpu_shared(l, shared_bytes);
    t.shared = LLVMBuildAddrSpaceCast(b, shared, LLVMPointerTypeInContext(m->context, 3), "");
    LLVMValueRef lane = LLVMBuildAnd(b, l->gpu->thread, gpu_i32(l, 31), "");
    t.row = gpu_wide(l, LLVMBuildLShr(b, lane, gpu_i32(l, 2), ""));
    t.column = gpu_wide(
        l, LLVMBuildShl(b, LLVMBuildAnd(b, lane, gpu_i32(l, 3), ""), gpu_i32(l, 1), ""));
    return t;
}

LLVMValueRef gpu_tensor_matrix(struct gpu_tensor *t, int64_t pitch, bool is_column)
{
    struct cg_lowering *l = t->l;
    LLVMBuilderRef b = t->b;
    LLVMValueRef lane = LLVMBuildAnd(b, l->gpu->thread, gpu_i32(l, 31), "");
    LLVMValueRef in_eight = LLVMBuildAnd(b, lane, gpu_i32(l, 7), "");
    LLVMValueRef high = LLVMBuildLShr(b, lane, gpu_i32(l, 4), "");
    LLVMValueRef low =
        LLVMBuildAnd(b, LLVMBuildLShr(b, lane, gpu_i32(l, 3), ""), gpu_i32(l, 1), "");
    LLVMValueRef eight = LLVMBuildShl(b, is_column ? low : high, gpu_i32(l, 3), "");
    LLVMValueRef piece = LLVMBuildShl(b, is_column ? high : low, gpu_i32(l, 4), "");
    LLVMValueRef row = LLVMBuildAdd(b, in_eight, eight, "");
    LLVMValueRef at = LLVMBuildMul(b, row, gpu_i32(l, pitch), "");
    return gpu_wide(l, LLVMBuildAdd(b, at, piece, ""));
}

void gpu_tensor_load(struct gpu_tensor *t, LLVMValueRef at, bool turned, LLVMValueRef out[4])
{
    LLVMValueRef address = gpu_tensor_shared_at(t, at);
    LLVMValueRef m =
        gpu_tensor_call(t,
                        turned ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                               : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                        LLVMPointerTypeInContext(t->l->module->context, 3), 1, &address);
    for (unsigned i = 0; i < 4; i++)
        out[i] = LLVMBuildExtractValue(t->b, m, i, "");
}

void gpu_tensor_multiply(struct gpu_tensor *t, LLVMValueRef sum[4], const LLVMValueRef x[4],
                         const LLVMValueRef y[2])
{
    LLVMValueRef arguments[10];
    for (int i = 0; i < 4; i++)
        arguments[i] = LLVMBuildBitCast(t->b, x[i], t->pair, "");
    for (int i = 0; i < 2; i++)
        arguments[4 + i] = LLVMBuildBitCast(t->b, y[i], t->pair, "");
    memcpy(arguments + 6, sum, 4 * sizeof *sum);
    LLVMValueRef r = gpu_tensor_call(t,
                                     t->is_bf16 ? "llvm.nvvm.mma.m16n8k16.row.col.bf16"
                                                : "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
                                     NULL, 10, arguments);
    for (unsigned i = 0; i < 4; i++)
        sum[i] = LLVMBuildExtractValue(t->b, r, i, "");
}

LLVMValueRef gpu_tensor_round(struct gpu_tensor *t, LLVMValueRef low, LLVMValueRef high)
{
    LLVMValueRef arguments[] = {high, low};
    LLVMValueRef pair = gpu_tensor_call(
        t, t->is_bf16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", NULL, 2, arguments);
    return LLVMBuildBitCast(t->b, pair, t->i32, "");
}

LLVMValueRef gpu_tensor_exponential(struct gpu_tensor *t, LLVMValueRef x, LLVMValueRef factor,
                                    LLVMValueRef top)
{
    LLVMValueRef arguments[] = {x, factor, LLVMBuildFNeg(t->b, top, "")};
    LLVMValueRef y = gpu_tensor_call(t, "llvm.fma", t->f32, 3, arguments);
    return gpu_tensor_call(t, "llvm.nvvm.ex2.approx.ftz.f", NULL, 1, &y);
}

LLVMValueRef gpu_tensor_reference(const struct gpu_tensor *t, LLVMValueRef top)
{
    LLVMValueRef lowest = gpu_tensor_number(t, -INFINITY);
    LLVMValueRef is_lowest = LLVMBuildFCmp(t->b, LLVMRealOEQ, top, lowest, "");
    return LLVMBuildSelect(t->b, is_lowest, gpu_tensor_number(t, 0), top, "");
}

LLVMValueRef gpu_tensor_largest(struct gpu_tensor *t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef arguments[] = {x, y};
    return gpu_tensor_call(t, "llvm.maximum", t->f32, 2, arguments);
}

LLVMValueRef gpu_tensor_other(struct gpu_tensor *t, LLVMValueRef x, int by)
{
    LLVMValueRef arguments[] = {gpu_i32(t->l, -1), x, gpu_i32(t->l, by), gpu_i32(t->l, 31)};
    return gpu_tensor_call(t, "llvm.nvvm.shfl.sync.bfly.f32", NULL, 4, arguments);
}

int64_t gpu_tensor_pitch(int64_t columns) { return (columns + 15) / 16 * 32 + 16; }

struct gpu_tensor_rows gpu_tensor_rows_of(const struct cg_lowering *l,
                                          const struct nest_statement *load, nest_id row,
                                          nest_id column, bool by_panels)
{
    const struct nest_axis *axes = l->nest->axes.at;
    int64_t columns = axes[column].extent;
    int64_t pitch = by_panels ? 2 * columns : gpu_tensor_pitch(columns);
    return (struct gpu_tensor_rows){load, row, column, axes[row].extent, pitch, by_panels};
}

void gpu_tensor_copy(struct gpu_tensor *t, LLVMValueRef to, LLVMValueRef from,
                     LLVMValueRef size)
{
    LLVMTypeRef global = LLVMPointerTypeInContext(t->l->module->context, 1);
    LLVMValueRef arguments[] = {to, LLVMBuildAddrSpaceCast(t->b, from, global, ""), size};
    gpu_tensor_call(t,
                    size ? "llvm.nvvm.cp.async.cg.shared.global.16.s"
                         : "llvm.nvvm.cp.async.cg.shared.global.16",
                    NULL, size ? 3 : 2, arguments);
}

// 16 bytes of a row from a column on; zeros where there are none.
static void fetch_piece(struct gpu_tensor *t, const struct gpu_tensor_rows *r, LLVMValueRef row,
                        LLVMValueRef column, bool is_exact, LLVMValueRef to)
{
    struct cg_lowering *l = t->l;
    LLVMBuilderRef b = t->b;
    int64_t extent = l->nest->axes.at[r->column].extent;
    LLVMValueRef size = NULL;
    if (!is_exact) {
        LLVMValueRef rows = cg_int(l->module, r->rows), end = cg_int(l->module, extent);
        LLVMValueRef is_there = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSLT, row, rows, ""),
                                             LLVMBuildICmp(b, LLVMIntSLT, column, end, ""), "");
        size = LLVMBuildSelect(b, is_there, gpu_i32(l, 16), gpu_i32(l, 0), "");
        row = gpu_tensor_at_most(t, row, r->rows - 1);
        column = gpu_tensor_at_most(t, column, extent - 8);
    }
    l->axes[r->row] = row;
    l->axes[r->column] = column;
    LLVMValueRef from = cg_at(l, l->module->i16, cg_buffer_base(l, r->load->buffer),
                              cg_index_first(l, &r->load->index));
    gpu_tensor_copy(t, to, from, size);
}

static int64_t pieces_of(const struct gpu_tensor_rows *r)
{
    return (r->pitch - (r->by_panels ? 0 : 16)) / 16;
}

// Of a piece of 16 bytes, in the shared memory of `count` rows.
static LLVMValueRef piece_offset(struct gpu_tensor *t, const struct gpu_tensor_rows *r,
                                 LLVMValueRef row, LLVMValueRef piece, int64_t count)
{
    LLVMBuilderRef b = t->b;
    struct cg_module *m = t->l->module;
    LLVMValueRef seven = cg_int(m, 7), sixteen = cg_int(m, 16);
    if (!r->by_panels)
        return LLVMBuildAdd(b, LLVMBuildMul(b, row, cg_int(m, r->pitch), ""),
                            LLVMBuildMul(b, piece, sixteen, ""), "");
    LLVMValueRef in_row =
        LLVMBuildXor(b, LLVMBuildAnd(b, piece, seven, ""), LLVMBuildAnd(b, row, seven, ""), "");
    LLVMValueRef at = LLVMBuildAdd(b, LLVMBuildMul(b, row, cg_int(m, GPU_PANEL_ROW), ""),
                                   LLVMBuildMul(b, in_row, sixteen, ""), "");
    if (pieces_of(r) <= 8)
        return at;
    LLVMValueRef panel = LLVMBuildLShr(b, piece, cg_int(m, 3), "");
    return LLVMBuildAdd(b, at, LLVMBuildMul(b, panel, cg_int(m, count * GPU_PANEL_ROW), ""),
                        "");
}

void gpu_tensor_fetch(struct gpu_tensor *t, const struct gpu_tensor_rows *r, LLVMValueRef first,
                      int64_t count, LLVMValueRef offset)
{
    int64_t pieces = pieces_of(r), threads = (int64_t)t->warps * GPU_WARP;
    // Where rows are whole rounds of the threads, the row is so many further on from piece to piece.
    bool is_round = threads % pieces == 0;
    bool is_exact = r->rows % count == 0 && t->l->nest->axes.at[r->column].extent % 16 == 0;
    LLVMValueRef n = cg_int(t->l->module, pieces), thread = gpu_wide(t->l, t->l->gpu->thread);
    for (int64_t i = 0; i < (count * pieces + threads - 1) / threads; i++) {
        LLVMValueRef at = gpu_tensor_plus(t, thread, is_round ? 0 : i * threads);
        LLVMValueRef row = gpu_tensor_plus(t, LLVMBuildUDiv(t->b, at, n, ""),
                                           is_round ? i * (threads / pieces) : 0);
        LLVMValueRef piece = LLVMBuildURem(t->b, at, n, "");
        bool is_last = (i + 1) * threads > count * pieces;
        struct cg_branch inside = {0};
        if (is_last)
            inside = cg_if_open(
                t->l, LLVMBuildICmp(t->b, LLVMIntSLT, row, cg_int(t->l->module, count), ""));
        LLVMValueRef to = gpu_tensor_shared_at(
            t, LLVMBuildAdd(t->b, offset, piece_offset(t, r, row, piece, count), ""));
        LLVMValueRef column = LLVMBuildMul(t->b, piece, cg_int(t->l->module, 8), "");
        fetch_piece(t, r, LLVMBuildAdd(t->b, first, row, ""), column, is_exact, to);
        if (is_last)
            cg_if_close(t->l, &inside);
    }
}

void gpu_tensor_wait(struct gpu_tensor *t)
{
    gpu_tensor_call(t, "llvm.nvvm.cp.async.wait.all", NULL, 0, NULL);
}
