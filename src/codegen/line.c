// SPDX-License-Identifier: Apache-2.0
// Rows that do not begin on cache lines, stored by whole lines all the same.
//
// A store across two lines dirties both, and each is fetched and written back twice when lanes are
// many.  So a row keeps what its last line lacks until the next tile: of the two lines of a row, a
// line takes the end of the lower one and the beginning of the higher one.
#include "codegen/line.h"
#include "codegen/contiguous.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/prefetch.h"
#include "codegen/types.h"
#include "ir/cost.h"

#define UNROLL 4

// The elements of a line that there are, of a row of which `phase` bytes lie before it.
static LLVMValueRef line_mask(struct cg_lowering *l, const struct cg_lines *x,
                              LLVMValueRef phase, LLVMValueRef row)
{
    LLVMBuilderRef b = l->m.b;
    unsigned n = COST_LINE_BYTES / x->bytes;
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef skipped =
        LLVMBuildUDiv(b, LLVMBuildTrunc(b, phase, i32, ""), LLVMConstInt(i32, x->bytes, 0), "");
    LLVMValueRef element =
        LLVMBuildSub(b, cg_sequence(l->module, i32, n, n, 1), cg_splat(&l->m, skipped, n), "");
    LLVMValueRef low = cg_splat(&l->m, LLVMBuildTrunc(b, x->low, i32, ""), n);
    LLVMValueRef high = cg_splat(&l->m, LLVMBuildTrunc(b, x->high, i32, ""), n);
    LLVMValueRef mask = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntUGE, element, low, ""),
                                     LLVMBuildICmp(b, LLVMIntULT, element, high, ""), "");
    if (!x->masks)
        return mask;
    LLVMTypeRef word = LLVMIntTypeInContext(l->module->context, l->vector.lanes);
    LLVMValueRef lanes = cg_int(l->module, l->vector.lanes);
    LLVMValueRef bits =
        LLVMBuildLoad2(b, word, cg_at(l, word, x->masks, LLVMBuildUDiv(b, row, lanes, "")), "");
    LLVMValueRef lane = LLVMBuildIntCast2(b, LLVMBuildURem(b, row, lanes, ""), word, false, "");
    LLVMValueRef bit = LLVMBuildTrunc(b, LLVMBuildLShr(b, bits, lane, ""), l->module->i1, "");
    return LLVMBuildAnd(b, mask, cg_splat(&l->m, bit, n), "");
}

static void store_row(struct cg_lowering *l, const struct cg_lines *x, LLVMValueRef row,
                      bool ends, bool whole)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i64 = l->module->i64, byte = l->module->i8;
    unsigned n = COST_LINE_BYTES / x->bytes;
    LLVMTypeRef vector = LLVMVectorType(x->lane, n);
    LLVMValueRef at =
        cg_at(l, x->lane, x->outside, LLVMBuildMul(b, row, cg_int(l->module, x->stride), ""));
    LLVMValueRef phase = LLVMBuildAnd(b, LLVMBuildPtrToInt(b, at, i64, ""),
                                      cg_int(l->module, COST_LINE_BYTES - 1), "");
    // The line with the lower end of the tile in it, or the one above.
    bool above = x->falls != ends;
    LLVMValueRef to =
        LLVMBuildSub(b, cg_int(l->module, above ? COST_LINE_BYTES : 0), phase, "");
    LLVMValueRef lines = cg_at(
        l, byte, x->rows, LLVMBuildMul(b, row, cg_int(l->module, 2 * COST_LINE_BYTES), ""));
    LLVMValueRef from = LLVMBuildSub(b, cg_int(l->module, COST_LINE_BYTES), phase, "");
    LLVMValueRef v = cg_load_row(l, vector, cg_at(l, byte, lines, from), x->bytes, NULL);
    cg_store_row(l, v, LLVMBuildGEP2(b, byte, at, &to, 1, ""),
                 whole ? COST_LINE_BYTES : x->bytes, whole ? NULL : line_mask(l, x, phase, row),
                 whole && x->streams);
    if (ends)
        return;
    // What this tile has is what the next one finds.
    LLVMValueRef high = cg_at(l, byte, lines, cg_int(l->module, COST_LINE_BYTES));
    LLVMValueRef now = cg_load_row(l, vector, x->falls ? lines : high, COST_LINE_BYTES, NULL);
    cg_store_row(l, now, x->falls ? high : lines, COST_LINE_BYTES, NULL, false);
}

// Lines of which only a part is stored are fetched, all of them at the same time.
static void ask_for_rows(struct cg_lowering *l, const struct cg_lines *x, bool ends)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, x->count),
                                       cg_int(l->module, 1));
    LLVMValueRef at = cg_at(l, x->lane, x->outside,
                            LLVMBuildMul(b, loop.index, cg_int(l->module, x->stride), ""));
    LLVMValueRef further = cg_int(l->module, x->falls != ends ? COST_LINE_BYTES : 0);
    cg_prefetch_line(l, LLVMBuildGEP2(b, l->module->i8, at, &further, 1, ""), true);
    cg_loop_close(l, &loop);
}

static void store_rows(struct cg_lowering *l, const struct cg_lines *x, bool ends, bool whole)
{
    if (!whole)
        ask_for_rows(l, x, ends);
    int64_t step = whole && x->count % UNROLL == 0 ? UNROLL : 1;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, x->count),
                                       cg_int(l->module, step));
    for (int64_t i = 0; i < step; i++)
        store_row(l, x, LLVMBuildAdd(l->m.b, loop.index, cg_int(l->module, i), ""), ends,
                  whole);
    cg_loop_close(l, &loop);
}

void cg_lines_store(struct cg_lowering *l, const struct cg_lines *x, bool ends)
{
    LLVMBuilderRef b = l->m.b;
    if (ends || x->masks) {
        store_rows(l, x, ends, false);
        return;
    }
    int64_t both = 2 * COST_LINE_BYTES / x->bytes;
    LLVMValueRef all =
        LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntEQ, x->low, cg_int(l->module, 0), ""),
                     LLVMBuildICmp(b, LLVMIntEQ, x->high, cg_int(l->module, both), ""), "");
    struct cg_branch branch = cg_if_open(l, all);
    store_rows(l, x, false, true);
    cg_else_open(l, &branch);
    store_rows(l, x, false, false);
    cg_if_close(l, &branch);
}
