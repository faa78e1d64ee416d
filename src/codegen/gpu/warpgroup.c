// SPDX-License-Identifier: Apache-2.0
// Products by warpgroups, of the PTX ISA: four warps multiply 64 rows by a matrix in shared memory. Each has 16
// of the rows, in registers or in shared memory too; what a thread has of rows and sums is what it has of
// products by its warp alone (tensor.c). Rows that a loop multiplies again belong in shared memory: ptxas 13.0
// does not keep the registers of a left matrix for the next turn.
//
// A matrix in shared memory is by panels of 64 columns, 128 bytes, whose rows follow one another: pieces of 16
// bytes of row r stand at number p ^ r % 8, the 128-byte swizzle of the ISA. Eight rows are 1024 bytes, on which
// a panel begins.
#include "codegen/gpu/warpgroup.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/tensor.h"

#include <string.h>

#define ROW GPU_PANEL_ROW
#define EIGHT_ROWS (8 * ROW)
#define SWIZZLE_128 (1ull << 62)

// The descriptor of a matrix: its address, bytes from panel to panel and from eight rows to the next, each by 16.
static LLVMValueRef descriptor_of(struct gpu_tensor *t, const struct gpu_panels *p)
{
    LLVMTypeRef i64 = LLVMInt64TypeInContext(t->l->module->context);
    LLVMValueRef address =
        LLVMBuildPtrToInt(t->b, gpu_tensor_shared_at(t, p->at), t->l->module->i32, "");
    address = LLVMBuildAnd(t->b, address, gpu_i32(t->l, 0x3ffff), "");
    address = LLVMBuildLShr(t->b, address, gpu_i32(t->l, 4), "");
    uint64_t strides = (uint64_t)(EIGHT_ROWS / 16) << 32 | (uint64_t)(p->rows * ROW / 16) << 16;
    return LLVMBuildOr(t->b, LLVMBuildZExt(t->b, address, i64, ""),
                       LLVMConstInt(i64, SWIZZLE_128 | strides, 0), "");
}

// Bytes from the rows, or columns, of one step of 16 terms to those of the next.
static int64_t step_offset(const struct gpu_panels *p, int step)
{
    return p->turned ? (int64_t)step * 16 * ROW
                     : step / 4 * p->rows * ROW + (int64_t)step % 4 * 32;
}

// The products as text: operands are sums, then the left matrix by 4 registers a step or as a descriptor, then
// the right one's descriptor, then the sums as they were.
struct text {
    struct strbuf text;
    int sums, steps, right; // the right one's operand
    const char *type;
};

static void write_list(struct strbuf *s, int first, int count)
{
    for (int i = 0; i < count; i++)
        strbuf_printf(s, "%s$%d", i ? ", " : "{", first + i);
    strbuf_add(s, "}");
}

// Its first line says what it does, for the fake GPU of the tests.
static void write_text(struct text *t, const struct gpu_panels *x, const struct gpu_panels *y,
                       bool adds)
{
    struct strbuf *s = &t->text;
    strbuf_printf(
        s, "// warpgroup %s sums %d steps %d adds %d left %lld right %lld turned %d\n", t->type,
        t->sums, t->steps, adds, (long long)(x ? x->rows : 0), (long long)y->rows, y->turned);
    strbuf_printf(s,
                  "{\n.reg .pred adds;\n.reg .b64 x, y;\n"
                  "setp.%s.b64 adds, $%d, $%d;\nwgmma.fence.sync.aligned;\n",
                  adds ? "eq" : "ne", t->right, t->right);
    for (int step = 0; step < t->steps; step++) {
        if (step == 1 && !adds)
            strbuf_printf(s, "setp.eq.b64 adds, $%d, $%d;\n", t->right, t->right);
        if (x)
            strbuf_printf(s, "add.s64 x, $%d, %lld;\n", t->sums,
                          (long long)step_offset(x, step) / 16);
        strbuf_printf(s, "add.s64 y, $%d, %lld;\n", t->right,
                      (long long)step_offset(y, step) / 16);
        strbuf_printf(s, "wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s ", 2 * t->sums,
                      t->type, t->type);
        write_list(s, 0, t->sums);
        strbuf_add(s, ", ");
        if (x)
            strbuf_add(s, "x");
        else
            write_list(s, t->sums + 4 * step, 4);
        strbuf_printf(s, ", y, adds, 1, 1%s, %d;\n", x ? ", 0" : "", y->turned);
    }
    strbuf_add(s, "wgmma.commit_group.sync.aligned;\n}");
}

// All threads of the warpgroup come to it together.
static LLVMValueRef build_assembly(struct gpu_tensor *t, const char *text,
                                   const char *constraints, LLVMTypeRef result,
                                   LLVMValueRef *arguments, int n)
{
    LLVMContextRef context = t->l->module->context;
    LLVMTypeRef *types = arena_array(t->l->arena, LLVMTypeRef, n + 1);
    for (int i = 0; i < n; i++)
        types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, (unsigned)n, 0);
    LLVMValueRef f = LLVMGetInlineAsm(type, (char *)text, strlen(text), (char *)constraints,
                                      strlen(constraints), 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef call = LLVMBuildCall2(t->b, type, f, arguments, (unsigned)n, "");
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(context, convergent, 0));
    return call;
}

// The results of assembly that gives so many f32.
static void build_results(struct gpu_tensor *t, const char *text, const char *constraints,
                          LLVMValueRef *arguments, int n, LLVMValueRef *sum, int sums)
{
    LLVMTypeRef *types = arena_array(t->l->arena, LLVMTypeRef, sums);
    for (int i = 0; i < sums; i++)
        types[i] = t->f32;
    LLVMTypeRef type = LLVMStructTypeInContext(t->l->module->context, types, (unsigned)sums, 0);
    LLVMValueRef call = build_assembly(t, text, constraints, type, arguments, n);
    for (int i = 0; i < sums; i++)
        sum[i] = LLVMBuildExtractValue(t->b, call, (unsigned)i, "");
}

static void add_results(struct strbuf *constraints, int sums)
{
    for (int i = 0; i < sums; i++)
        strbuf_add(constraints, "=f,");
}

// They were the same operands.
static void add_sums(struct strbuf *constraints, int sums)
{
    for (int i = 0; i < sums; i++)
        strbuf_printf(constraints, "%d,", i);
    strbuf_add(constraints, "~{memory}");
}

void gpu_warpgroup_start(struct gpu_tensor *t, LLVMValueRef *sum, int sums, bool adds,
                         int steps, const LLVMValueRef *x, const struct gpu_panels *in_x,
                         const struct gpu_panels *y)
{
    struct arena *a = t->l->arena;
    int lefts = in_x ? 1 : 4 * steps, n = 0;
    struct text text = {strbuf_make(a), sums, steps, sums + lefts, t->is_bf16 ? "bf16" : "f16"};
    struct strbuf constraints = strbuf_make(a);
    LLVMValueRef *arguments = arena_array(a, LLVMValueRef, lefts + 1 + sums);
    write_text(&text, in_x, y, adds);
    add_results(&constraints, sums);
    for (int i = 0; i < lefts; i++)
        arguments[n++] =
            in_x ? descriptor_of(t, in_x) : LLVMBuildBitCast(t->b, x[i], t->i32, "");
    arguments[n++] = descriptor_of(t, y);
    for (int i = 0; i < n; i++)
        strbuf_add(&constraints, !in_x && i < lefts ? "r," : "l,");
    for (int i = 0; i < sums; i++)
        arguments[n++] = adds ? sum[i] : LLVMConstReal(t->f32, 0);
    add_sums(&constraints, sums);
    build_results(t, text.text.text, constraints.text, arguments, n, sum, sums);
}

void gpu_warpgroup_finish(struct gpu_tensor *t, LLVMValueRef *sum, int sums, int pending,
                          int lefts, const LLVMValueRef *x)
{
    struct arena *a = t->l->arena;
    struct strbuf text = strbuf_make(a), constraints = strbuf_make(a);
    LLVMValueRef *arguments = arena_array(a, LLVMValueRef, lefts + sums);
    strbuf_printf(&text, "// warpgroup finish\nwgmma.wait_group.sync.aligned %d;", pending);
    add_results(&constraints, sums);
    for (int i = 0; i < lefts; i++) {
        arguments[i] = LLVMBuildBitCast(t->b, x[i], t->i32, "");
        strbuf_add(&constraints, "r,");
    }
    memcpy(arguments + lefts, sum, (size_t)sums * sizeof *sum);
    add_sums(&constraints, sums);
    build_results(t, text.text, constraints.text, arguments, lefts + sums, sum, sums);
}

void gpu_warpgroup_multiply(struct gpu_tensor *t, LLVMValueRef *sum, int sums, bool adds,
                            int steps, const LLVMValueRef *x, const struct gpu_panels *in_x,
                            const struct gpu_panels *y)
{
    gpu_warpgroup_start(t, sum, sums, adds, steps, x, in_x, y);
    gpu_warpgroup_finish(t, sum, sums, 0, 0, NULL);
}

void gpu_warpgroup_publish(struct gpu_tensor *t)
{
    build_assembly(t, "// warpgroup publish\nfence.proxy.async.shared::cta;", "~{memory}",
                   LLVMVoidTypeInContext(t->l->module->context), NULL, 0);
}
