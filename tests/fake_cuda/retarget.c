// SPDX-License-Identifier: Apache-2.0
// Kernels of a GPU as code of this machine, for threads.c to run: stands between the code generator
// and the back end of LLVM where JOT_TEST_EMULATED is set, and gives instead of PTX a text,
//
//     emulated
//     jot_kernel_0 3                 a kernel and how many operands it has, for each
//
//     7f454c46...                    an object file whose emulated_jot_kernel_0 takes their array
//
// What a GPU does for a thread is a call: llvm.nvvm.barrier0 is gpu_llvm_nvvm_barrier0.  Each access
// to memory that is not the thread's own tells of itself first.
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

LLVMBool __real_LLVMTargetMachineEmitToMemoryBuffer(LLVMTargetMachineRef machine,
                                                    LLVMModuleRef module,
                                                    LLVMCodeGenFileType kind, char **error,
                                                    LLVMMemoryBufferRef *out);
LLVMBool __wrap_LLVMTargetMachineEmitToMemoryBuffer(LLVMTargetMachineRef machine,
                                                    LLVMModuleRef module,
                                                    LLVMCodeGenFileType kind, char **error,
                                                    LLVMMemoryBufferRef *out);

#define PARAMETERS_MOST 16 // of an intrinsic

struct writer {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetDataRef layout;
    LLVMBuilderRef b;
    LLVMTypeRef nothing, ptr, i32, tell_type;
    LLVMValueRef
        tell; // what is told of an access: where, bytes, those of an element, kind, alignment
};

// ---- what a GPU does for a thread ----

// Two numbers of a half type are an integer, as device.h has them.
static LLVMTypeRef type_in_c(const struct writer *w, LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? w->i32 : type;
}

// Several results go where the first parameter says.
static LLVMValueRef declare_in_c(const struct writer *w, const char *name, LLVMTypeRef type)
{
    LLVMTypeRef result = LLVMGetReturnType(type), parameters[PARAMETERS_MOST + 1] = {w->ptr};
    unsigned more = LLVMGetTypeKind(result) == LLVMStructTypeKind;
    unsigned n = LLVMCountParamTypes(type);
    LLVMGetParamTypes(type, parameters + more);
    for (unsigned i = 0; i < n; i++)
        parameters[more + i] = type_in_c(w, parameters[more + i]);
    result = more ? w->nothing : type_in_c(w, result);
    return LLVMAddFunction(w->module, name, LLVMFunctionType(result, parameters, n + more, 0));
}

static LLVMValueRef room_for_results(const struct writer *w, LLVMValueRef call)
{
    LLVMValueRef caller = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
    LLVMPositionBuilderBefore(w->b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(caller)));
    return LLVMBuildAlloca(w->b, LLVMTypeOf(call), "");
}

static void replace_call(const struct writer *w, LLVMValueRef call, LLVMValueRef f)
{
    LLVMTypeRef result = LLVMTypeOf(call);
    LLVMValueRef arguments[PARAMETERS_MOST + 1];
    unsigned more = LLVMGetTypeKind(result) == LLVMStructTypeKind;
    unsigned n = LLVMGetNumArgOperands(call);
    if (more)
        arguments[0] = room_for_results(w, call);
    LLVMPositionBuilderBefore(w->b, call);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef x = LLVMGetOperand(call, i);
        arguments[more + i] = LLVMBuildBitCast(w->b, x, type_in_c(w, LLVMTypeOf(x)), "");
    }
    LLVMValueRef new =
        LLVMBuildCall2(w->b, LLVMGlobalGetValueType(f), f, arguments, n + more, "");
    if (more)
        new = LLVMBuildLoad2(w->b, result, arguments[0], "");
    else if (result != w->nothing)
        new = LLVMBuildBitCast(w->b, new, result, "");
    LLVMReplaceAllUsesWith(call, new);
    LLVMInstructionEraseFromParent(call);
}

static void replace_intrinsics(const struct writer *w)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module), next; f; f = next) {
        next = LLVMGetNextFunction(f);
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        char other[128];
        if (strncmp(name, "llvm.nvvm.", 10) != 0)
            continue;
        snprintf(other, sizeof other, "gpu_%s", name);
        for (char *at = other; *at; at++)
            *at = *at == '.' ? '_' : *at;
        LLVMValueRef g = declare_in_c(w, other, LLVMGlobalGetValueType(f));
        for (LLVMUseRef use; (use = LLVMGetFirstUse(f));)
            replace_call(w, LLVMGetUser(use), g);
        LLVMDeleteFunction(f);
    }
}

// Values one behind the other in memory, of n elements, from the operand `first` on.
static LLVMValueRef store_operands(const struct writer *w, LLVMValueRef call, LLVMTypeRef type,
                                   unsigned first, unsigned n)
{
    LLVMValueRef caller = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
    LLVMPositionBuilderBefore(w->b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(caller)));
    LLVMValueRef room = LLVMBuildAlloca(w->b, LLVMArrayType2(type, n), "");
    LLVMPositionBuilderBefore(w->b, call);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef at = LLVMConstInt(w->i32, i, 0);
        LLVMBuildStore(w->b, LLVMGetOperand(call, first + i),
                       LLVMBuildGEP2(w->b, type, room, &at, 1, ""));
    }
    return room;
}

// Products of a warpgroup: gpu_warpgroup(text, sums, left, descriptor of the right) of warpgroup.c.
static void replace_warpgroup(const struct writer *w, LLVMValueRef call, const char *text)
{
    LLVMTypeRef result = LLVMTypeOf(call);
    if (strstr(text, "finish")) { // the product is made where it starts
        unsigned n = LLVMGetNumArgOperands(call), sums = LLVMCountStructElementTypes(result);
        LLVMTypeRef f32 = LLVMStructGetTypeAtIndex(result, 0);
        LLVMValueRef all = store_operands(w, call, f32, n - sums, sums);
        LLVMReplaceAllUsesWith(call, LLVMBuildLoad2(w->b, result, all, ""));
    } else if (result != w->nothing) {
        LLVMTypeRef i64 = LLVMInt64TypeInContext(w->context);
        unsigned n = LLVMGetNumArgOperands(call), sums = LLVMCountStructElementTypes(result);
        LLVMTypeRef f32 = LLVMStructGetTypeAtIndex(result, 0);
        LLVMTypeRef left = LLVMTypeOf(LLVMGetOperand(call, 0));
        LLVMTypeRef types[] = {w->ptr, w->ptr, w->ptr, i64};
        LLVMTypeRef type = LLVMFunctionType(w->nothing, types, 4, 0);
        LLVMValueRef f = LLVMGetNamedFunction(w->module, "gpu_warpgroup");
        LLVMValueRef all = store_operands(w, call, f32, n - sums, sums);
        LLVMValueRef x = store_operands(w, call, left, 0, n - sums - 1);
        LLVMValueRef arguments[] = {LLVMBuildGlobalString(w->b, text, ""), all, x,
                                    LLVMGetOperand(call, n - sums - 1)};
        LLVMBuildCall2(w->b, type, f ? f : LLVMAddFunction(w->module, "gpu_warpgroup", type),
                       arguments, 4, "");
        LLVMReplaceAllUsesWith(call, LLVMBuildLoad2(w->b, result, all, ""));
    }
    LLVMInstructionEraseFromParent(call);
}

// Assembly that counts, or looks at a count, or is none and gives what it is given.
static void replace_assembly_of(const struct writer *w, LLVMValueRef call)
{
    size_t length;
    LLVMValueRef code = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    if (!code || !LLVMIsAInlineAsm(code))
        return;
    LLVMPositionBuilderBefore(w->b, call);
    const char *text = LLVMGetInlineAsmAsmString(code, &length);
    static const char group[] = "// warpgroup";
    if (length >= sizeof group - 1 && !strncmp(text, group, sizeof group - 1)) {
        replace_warpgroup(w, call, text);
        return;
    }
    LLVMValueRef at = LLVMGetOperand(call, 0), one = LLVMConstInt(w->i32, 1, 0), new;
    if (!length)
        new = at;
    else if (!strncmp(text, "atom", 4))
        new = LLVMBuildAtomicRMW(w->b, LLVMAtomicRMWBinOpAdd, at, one,
                                 LLVMAtomicOrderingSequentiallyConsistent, 0);
    else
        new = LLVMBuildLoad2(w->b, w->i32, at, "");
    LLVMReplaceAllUsesWith(call, new);
    LLVMInstructionEraseFromParent(call);
}

static void replace_instructions(const struct writer *w,
                                 void (*replace)(const struct writer *, LLVMValueRef))
{
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                replace(w, i);
            }
}

// ---- half types ----

static LLVMValueRef twice(const struct writer *w, bool is_bf16, uint32_t bf16, uint32_t f16)
{
    uint32_t bits = is_bf16 ? bf16 : f16;
    return LLVMConstInt(w->i32, bits << 16 | bits, 0);
}

// Sums and products of two numbers of a half type, which LLVM has made of those of a GPU: a processor's instructions
// know no denormals of bf16.
static void replace_half_arithmetic(const struct writer *w, LLVMValueRef i)
{
    LLVMTypeRef type = LLVMTypeOf(i);
    LLVMOpcode op = LLVMGetInstructionOpcode(i);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind || LLVMGetVectorSize(type) != 2)
        return;
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMGetElementType(type));
    bool is_bf16 = kind == LLVMBFloatTypeKind;
    bool is_known = op == LLVMFAdd || op == LLVMFSub || op == LLVMFMul ||
                    (op == LLVMCall && LLVMGetIntrinsicID(LLVMGetCalledValue(i)) ==
                                           LLVMLookupIntrinsicID("llvm.fma", 8));
    if (!is_known || (!is_bf16 && kind != LLVMHalfTypeKind))
        return;
    LLVMValueRef x[3];
    LLVMPositionBuilderBefore(w->b, i);
    for (unsigned k = 0; k < 3; k++)
        x[k] = k < 2 || op == LLVMCall
                   ? LLVMBuildBitCast(w->b, LLVMGetOperand(i, k), w->i32, "")
                   : NULL;
    LLVMValueRef one = twice(w, is_bf16, 0x3f80, 0x3c00);
    LLVMValueRef minus_one = twice(w, is_bf16, 0xbf80, 0xbc00);
    LLVMValueRef in[] = {op == LLVMFSub ? x[1] : x[0],
                         op == LLVMFAdd   ? one
                         : op == LLVMFSub ? minus_one
                                          : x[1],
                         op == LLVMFAdd   ? x[1]
                         : op == LLVMFSub ? x[0]
                         : op == LLVMFMul ? twice(w, is_bf16, 0x8000, 0x8000)
                                          : x[2]};
    const char *name = is_bf16 ? "gpu_llvm_nvvm_fma_rn_bf16x2" : "gpu_llvm_nvvm_fma_rn_f16x2";
    LLVMTypeRef f_type =
        LLVMFunctionType(w->i32, (LLVMTypeRef[]){w->i32, w->i32, w->i32}, 3, 0);
    LLVMValueRef f = LLVMGetNamedFunction(w->module, name);
    f = f ? f : LLVMAddFunction(w->module, name, f_type);
    LLVMValueRef y = LLVMBuildCall2(w->b, f_type, f, in, 3, "");
    LLVMReplaceAllUsesWith(i, LLVMBuildBitCast(w->b, y, type, ""));
    LLVMInstructionEraseFromParent(i);
}

// ---- accesses ----

// What a pointer is computed from, as far as that is plain.
static LLVMValueRef base_of(LLVMValueRef pointer)
{
    while (LLVMIsAGetElementPtrInst(pointer) || LLVMIsAAddrSpaceCastInst(pointer) ||
           (LLVMIsAConstantExpr(pointer) && (LLVMGetConstOpcode(pointer) == LLVMGetElementPtr ||
                                             LLVMGetConstOpcode(pointer) == LLVMAddrSpaceCast)))
        pointer = LLVMGetOperand(pointer, 0);
    return pointer;
}

// The NVPTX back end reads 16 elements of a byte at once whatever the load says.
static unsigned alignment_of(LLVMValueRef instruction, LLVMTypeRef type, LLVMTypeRef element)
{
    bool are_bytes = element != type && LLVMGetTypeKind(element) == LLVMIntegerTypeKind &&
                     LLVMGetIntTypeWidth(element) == 8;
    bool is_whole = LLVMIsALoadInst(instruction) && are_bytes && LLVMGetVectorSize(type) == 16;
    return is_whole ? 16 : LLVMGetAlignment(instruction);
}

// Where a function leaves what it gives, which is the thread's own.
static bool is_result(LLVMValueRef base)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("sret", 4);
    return LLVMIsAArgument(base) && base == LLVMGetFirstParam(LLVMGetParamParent(base)) &&
           LLVMGetEnumAttributeAtIndex(LLVMGetParamParent(base), 1, kind);
}

static void tell_of(const struct writer *w, LLVMValueRef instruction)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    bool is_store = op == LLVMStore;
    if (!is_store && op != LLVMLoad && op != LLVMAtomicRMW)
        return;
    // Words that blocks tell others by are volatile.
    bool counts = op == LLVMAtomicRMW || LLVMGetVolatile(instruction);
    LLVMValueRef pointer = LLVMGetOperand(instruction, is_store ? 1 : 0);
    LLVMValueRef base = base_of(pointer);
    if (is_result(base) || LLVMIsAAllocaInst(base) ||
        (LLVMIsAGlobalVariable(base) && LLVMGetInitializer(base)))
        return;
    LLVMTypeRef type = LLVMTypeOf(is_store ? LLVMGetOperand(instruction, 0) : instruction);
    LLVMTypeRef element =
        LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
    LLVMPositionBuilderBefore(w->b, instruction);
    LLVMValueRef arguments[] = {
        LLVMBuildAddrSpaceCast(w->b, pointer, w->ptr, ""),
        LLVMConstInt(w->i32, LLVMStoreSizeOfType(w->layout, type), 0),
        LLVMConstInt(w->i32, LLVMStoreSizeOfType(w->layout, element), 0),
        LLVMConstInt(w->i32, counts ? 2 : is_store, 0),
        LLVMConstInt(w->i32, alignment_of(instruction, type, element), 0)};
    LLVMBuildCall2(w->b, w->tell_type, w->tell, arguments, 5, "");
}

static void tell_of_accesses(const struct writer *w)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                tell_of(w, i);
}

// ---- kernels ----

static void add_entry(const struct writer *w, LLVMValueRef kernel, const char *name)
{
    char other[256];
    unsigned n = LLVMCountParams(kernel);
    LLVMValueRef *operands = calloc(n + 1, sizeof *operands);
    snprintf(other, sizeof other, "emulated_%s", name);
    LLVMTypeRef array[] = {w->ptr};
    LLVMValueRef entry =
        LLVMAddFunction(w->module, other, LLVMFunctionType(w->nothing, array, 1, 0));
    LLVMPositionBuilderAtEnd(w->b, LLVMAppendBasicBlockInContext(w->context, entry, ""));
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef at = LLVMConstInt(w->i32, i, 0);
        at = LLVMBuildGEP2(w->b, w->ptr, LLVMGetParam(entry, 0), &at, 1, "");
        operands[i] = LLVMBuildLoad2(w->b, w->ptr, at, "");
    }
    LLVMBuildCall2(w->b, LLVMGlobalGetValueType(kernel), kernel, operands, n, "");
    LLVMBuildRetVoid(w->b);
    free(operands);
}

static void add_entries(const struct writer *w, FILE *text)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMGetFunctionCallConv(f) != LLVMPTXKernelCallConv)
            continue;
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        LLVMSetFunctionCallConv(f, LLVMCCallConv);
        fprintf(text, "%s %u\n", name, LLVMCountParams(f));
        add_entry(w, f, name);
    }
    fputc('\n', text);
}

// ---- the object ----

static LLVMTargetMachineRef make_machine(const char *triple)
{
    LLVMTargetRef target;
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures(), *error = NULL;
    LLVMTargetMachineRef machine = NULL;
    if (!LLVMGetTargetFromTriple(triple, &target, &error))
        machine = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelNone,
                                          LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMDisposeMessage(error);
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(cpu);
    return machine;
}

static void write_hexadecimal(FILE *text, LLVMMemoryBufferRef object)
{
    const unsigned char *bytes = (const unsigned char *)LLVMGetBufferStart(object);
    for (size_t i = 0; i < LLVMGetBufferSize(object); i++) {
        fputc("0123456789abcdef"[bytes[i] >> 4], text);
        fputc("0123456789abcdef"[bytes[i] & 15], text);
    }
}

static LLVMBool emit(LLVMModuleRef module, LLVMTargetMachineRef machine, char **error,
                     LLVMMemoryBufferRef *out)
{
    LLVMContextRef c = LLVMGetModuleContext(module);
    char *bytes = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&bytes, &size);
    fputs("emulated\n", text);
    struct writer w = {.context = c,
                       .module = module,
                       .layout = LLVMCreateTargetDataLayout(machine),
                       .b = LLVMCreateBuilderInContext(c),
                       .nothing = LLVMVoidTypeInContext(c),
                       .ptr = LLVMPointerTypeInContext(c, 0),
                       .i32 = LLVMInt32TypeInContext(c)};
    LLVMTypeRef parameters[] = {w.ptr, w.i32, w.i32, w.i32, w.i32};
    w.tell_type = LLVMFunctionType(w.nothing, parameters, 5, 0);
    w.tell = LLVMAddFunction(module, "gpu_access", w.tell_type);
    LLVMSetModuleDataLayout(module, w.layout);
    replace_intrinsics(&w);
    replace_instructions(&w, replace_half_arithmetic);
    replace_instructions(&w, replace_assembly_of);
    tell_of_accesses(&w);
    add_entries(&w, text);
    LLVMMemoryBufferRef object;
    LLVMBool failed = __real_LLVMTargetMachineEmitToMemoryBuffer(
        machine, module, LLVMObjectFile, error, &object);
    if (!failed) {
        write_hexadecimal(text, object);
        LLVMDisposeMemoryBuffer(object);
    }
    fclose(text);
    if (!failed)
        *out = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, size, "kernels");
    free(bytes);
    LLVMDisposeBuilder(w.b);
    LLVMDisposeTargetData(w.layout);
    return failed;
}

LLVMBool __wrap_LLVMTargetMachineEmitToMemoryBuffer(LLVMTargetMachineRef machine,
                                                    LLVMModuleRef module,
                                                    LLVMCodeGenFileType kind, char **error,
                                                    LLVMMemoryBufferRef *out)
{
    if (strncmp(LLVMGetTarget(module), "nvptx", 5) != 0 || !getenv("JOT_TEST_EMULATED"))
        return __real_LLVMTargetMachineEmitToMemoryBuffer(machine, module, kind, error, out);
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMSetTarget(module, triple);
    LLVMTargetMachineRef host = make_machine(triple);
    LLVMBool failed = emit(module, host, error, out);
    LLVMDisposeTargetMachine(host);
    LLVMDisposeMessage(triple);
    return failed;
}
