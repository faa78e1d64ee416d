// SPDX-License-Identifier: Apache-2.0
#include "codegen/module.h"
#include "codegen/codegen.h"
#include "codegen/constants.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/large.h"
#include "codegen/long_blocks.h"
#include "codegen/masked_loads.h"
#include "codegen/op_function.h"
#include "codegen/parts.h"
#include "codegen/types.h"
#include "map/map.h"

#include "base/memory.h"
#include "base/status.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Vectors are explicit, so nothing here looks for parallelism: memory that only constants reach
// becomes registers, repeated values one.
#define PASSES                                                                                 \
    "always-inline,elim-avail-extern,globaldce,function(sroa,early-cse,instcombine<no-verify-" \
    "fixpoint>,"                                                                               \
    "simplifycfg)"
// Phases are functions of their loops, and vectors are read again behind branches.  Of neighbours
// that are known to be aligned the back end reads several at once.
#define GPU_PASSES                                                                             \
    "always-inline,globaldce,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>," \
    "simplifycfg,infer-alignment)"

struct cg_target {
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef layout;
    char *triple, *asked; // as it was asked for; "" is this machine
    unsigned vector_bytes;
    bool is_gpu, has_warpgroups;
};

static void release_target(void *target)
{
    struct cg_target *t = target;
    if (!t)
        return;
    if (t->layout)
        LLVMDisposeTargetData(t->layout);
    if (t->machine)
        LLVMDisposeTargetMachine(t->machine);
    LLVMDisposeMessage(t->triple);
    LLVMDisposeMessage(t->asked);
    memory_release(t);
}

static jot_status make_target(const char *cpu, const char *features, struct cg_target *t)
{
    LLVMTargetRef target;
    char *error = NULL;
    if (LLVMGetTargetFromTriple(t->triple, &target, &error)) {
        jot_status s =
            status_fail(JOT_ERR_LIBRARY, "LLVM has no target %s: %s", t->triple, error);
        LLVMDisposeMessage(error);
        return s;
    }
    t->machine =
        LLVMCreateTargetMachine(target, t->triple, cpu, features, LLVMCodeGenLevelDefault,
                                LLVMRelocPIC, LLVMCodeModelSmall);
    if (!t->machine)
        return status_fail(JOT_ERR_LIBRARY, "LLVM makes no code for the CPU %s", cpu);
    t->layout = LLVMCreateTargetDataLayout(t->machine);
    t->vector_bytes = strstr(features, "+avx512f") ? 64 : strstr(features, "+avx2") ? 32 : 16;
    return JOT_OK;
}

static jot_status make_host(struct cg_target *t)
{
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    jot_status status = make_target(cpu, features, t);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return status;
}

// Architectures whose PTX this LLVM writes, the one of the most features last.  Version 8.1 of the
// language, that of CUDA 12.1, is the first whose kernels may have more than 4352 bytes of parameters.
static const char *const architectures[] = {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90"};
// "sm_90": the newest that is not newer.
static jot_status make_cuda(const char *asked, struct cg_target *t)
{
    const char *known = NULL;
    unsigned n = 0, have;
    bool is_name = sscanf(asked, "sm_%u", &n) == 1;
    for (size_t i = 0; is_name && i < sizeof architectures / sizeof *architectures; i++)
        if (sscanf(architectures[i], "sm_%u", &have) == 1 && have <= n)
            known = architectures[i];
    t->has_warpgroups = !strcmp(asked, MAP_WARPGROUPS);
    if (t->has_warpgroups) // of this one alone, no newer one has all features
        known = MAP_WARPGROUPS;
    if (!known)
        return status_fail(JOT_ERR_LIBRARY,
                           "no code for the GPU architecture \"%s\": %s to %s are known", asked,
                           architectures[0], "sm_90 and newer");
    LLVMDisposeMessage(t->triple);
    t->triple = LLVMCreateMessage("nvptx64-nvidia-cuda");
    if (!t->triple)
        return status_out_of_memory();
    t->is_gpu = true;
    return make_target(known, "+ptx81", t);
}

// "CPU FEATURES", or "cuda ARCHITECTURE"
static jot_status make_asked(const char *text, struct cg_target *t)
{
    char copy[4096] = {0};
    strncpy(copy, text, sizeof copy - 1);
    char *rest = strchr(copy, ' ');
    if (rest)
        *rest++ = 0;
    if (strcmp(copy, "cuda") != 0)
        return make_target(copy, rest ? rest : "", t);
    if (rest && strchr(rest, ' '))
        *strchr(rest, ' ') = 0;
    return make_cuda(rest ? rest : "", t);
}

// A target machine is not for several threads at once, so each keeps one of its own until it ends.
static pthread_key_t of_thread;
static pthread_once_t initialised = PTHREAD_ONCE_INIT;
static bool has_key;

// Whether no other module with this code has asked before in this copy of LLVM, whose options may be set
// once. Kinds of metadata are numbered as they come, so that one of our own follows on a new one.
static bool is_first_in_llvm(void)
{
    char own[40];
    LLVMContextRef all = LLVMGetGlobalContext();
    int n = snprintf(own, sizeof own, "jot.%p", (void *)&initialised);
    unsigned shared = LLVMGetMDKindIDInContext(all, "jot.options", 11);
    return LLVMGetMDKindIDInContext(all, own, (unsigned)n) == shared + 1;
}

// What has no other switch.  LLVM's schedulers compare an instruction that reads or writes memory with those
// before it in its block, but for blocks of very many, whose order they keep in parts: so many, here.
// "CodeGen Prepare" begins a function again after each block that it changes, but for functions of very many.
// LLVM 19's pass "X86 Avoid Store Forwarding Blocks" asks masked loads for their size, which they do not
// know, and ends the process.  "X86 Domain Reassignment" takes a time that grows with the square of the
// code, and changes none: masks are in their registers.
static void set_options(void)
{
    static const char *const options[] = {
        "jot",
        "-dag-maps-huge-region=200",
        "-dag-maps-reduction-size=100",
        "-cgpp-huge-func=100",
#if defined(__x86_64__)
        "-x86-disable-avoid-SFB",
        "-disable-x86-domain-reassignment",
#endif
    };
    if (is_first_in_llvm())
        LLVMParseCommandLineOptions(sizeof options / sizeof *options, options, NULL);
}

static void initialise(void)
{
    set_options();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    has_key = pthread_key_create(&of_thread, release_target) == 0;
}

jot_status cg_target_find(const char *text, struct cg_target **out_target)
{
    pthread_once(&initialised, initialise);
    struct cg_target *old = has_key ? pthread_getspecific(of_thread) : NULL;
    if (old && !strcmp(old->asked, text ? text : "")) {
        *out_target = old;
        return JOT_OK;
    }
    struct cg_target *t = has_key ? memory_allocate_zeroed(sizeof *t) : NULL;
    if (!t)
        return status_out_of_memory();
    t->asked = LLVMCreateMessage(text ? text : "");
    t->triple = LLVMGetDefaultTargetTriple();
    jot_status status = !t->asked || !t->triple ? status_out_of_memory()
                        : *t->asked             ? make_asked(text, t)
                                                : make_host(t);
    if (status == JOT_OK && pthread_setspecific(of_thread, t))
        status = status_out_of_memory();
    if (status != JOT_OK) {
        release_target(t);
        return status;
    }
    release_target(old);
    *out_target = t;
    return JOT_OK;
}

const char *cg_target_name(const struct cg_target *target) { return target->asked; }

static struct cg_module made_of(LLVMModuleRef module, const struct cg_target *target,
                                struct arena *arena)
{
    LLVMContextRef c = LLVMGetModuleContext(module);
    return (struct cg_module){.arena = arena,
                              .context = c,
                              .module = module,
                              .i1 = LLVMInt1TypeInContext(c),
                              .i8 = LLVMInt8TypeInContext(c),
                              .i16 = LLVMInt16TypeInContext(c),
                              .i32 = LLVMInt32TypeInContext(c),
                              .i64 = LLVMInt64TypeInContext(c),
                              .f32 = LLVMFloatTypeInContext(c),
                              .f64 = LLVMDoubleTypeInContext(c),
                              .ptr = LLVMPointerTypeInContext(c, 0),
                              .vector_bytes = target->vector_bytes,
                              .registers = target->vector_bytes == 64 ? 32 : 16,
                              .is_gpu = target->is_gpu,
                              .has_warpgroups = target->has_warpgroups,
                              .hooks = target->is_gpu ? &cg_hooks_of_gpu : NULL};
}

jot_status cg_module_make(struct cg_target *target, struct arena *arena, struct cg_module *out)
{
    *out =
        made_of(LLVMModuleCreateWithNameInContext("jot", LLVMContextCreate()), target, arena);
    LLVMSetTarget(out->module, target->triple);
    LLVMSetModuleDataLayout(out->module, target->layout);
    return JOT_OK;
}

void cg_module_finish(struct cg_module *m)
{
    if (m->module)
        LLVMDisposeModule(m->module);
    if (m->context)
        LLVMContextDispose(m->context);
}

static void set_function_attributes(struct cg_module *m)
{
    static const struct {
        const char *name, *value;
    } all[] = {{"prefer-vector-width", "512"}, {"no-trapping-math", "true"}};
    for (LLVMValueRef f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                                    LLVMCreateStringAttribute(
                                        m->context, all[i].name, (unsigned)strlen(all[i].name),
                                        all[i].value, (unsigned)strlen(all[i].value)));
    }
}

// Runs passes of LLVM, by their names.
static jot_status cg_module_run(LLVMModuleRef module, struct cg_target *target,
                                const char *passes)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, target->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return JOT_OK;
    char *text = LLVMGetErrorMessage(error);
    jot_status s = status_fail(JOT_ERR_INTERNAL, "LLVM: %s", text);
    LLVMDisposeErrorMessage(text);
    return s;
}

static void add_under_mask(struct machine *m, LLVMValueRef add)
{
    LLVMTypeRef type = LLVMTypeOf(add);
    for (unsigned k = 0; k < 2 && LLVMGetTypeKind(type) == LLVMVectorTypeKind; k++) {
        LLVMValueRef x = LLVMGetOperand(add, 1 - k), wide = LLVMGetOperand(add, k);
        bool is_zext = LLVMIsAZExtInst(wide) != NULL;
        if (!is_zext && !LLVMIsASExtInst(wide))
            continue;
        LLVMValueRef mask = LLVMGetOperand(wide, 0);
        LLVMTypeRef lane = LLVMGetElementType(type);
        if (LLVMGetElementType(LLVMTypeOf(mask)) != m->module->i1)
            continue;
        LLVMValueRef one = is_zext ? LLVMConstInt(lane, 1, 0) : LLVMConstAllOnes(lane);
        LLVMPositionBuilderBefore(m->b, add);
        one = cg_splat(m, one, LLVMGetVectorSize(type));
        LLVMValueRef sum = LLVMBuildAdd(m->b, x, one, "");
        LLVMReplaceAllUsesWith(add, LLVMBuildSelect(m->b, mask, sum, x, ""));
        LLVMInstructionEraseFromParent(add);
        return;
    }
}

// LLVM writes a select of x + 1 and x as x + zext(mask), which takes the mask out of its register.
// As a select again it is one addition under the mask, and three cycles less for what waits.
static void add_under_masks(struct cg_module *module)
{
    struct machine m = {.module = module, .b = LLVMCreateBuilderInContext(module->context)};
    for (LLVMValueRef f = LLVMGetFirstFunction(module->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (LLVMGetInstructionOpcode(i) == LLVMAdd)
                    add_under_mask(&m, i);
            }
    LLVMDisposeBuilder(m.b);
}

// ---- Functions that are calls

#define CALLS "calls"

void cg_mark_calls(struct cg_module *m, LLVMValueRef f)
{
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(m->context, CALLS, strlen(CALLS), "", 0));
}

static void take_calls(LLVMModuleRef module)
{
    static const char *const names[] = {"noinline", "optnone"};
    LLVMContextRef c = LLVMGetModuleContext(module);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        unsigned at = (unsigned)LLVMAttributeFunctionIndex;
        if (!LLVMGetStringAttributeAtIndex(f, at, CALLS, strlen(CALLS)))
            continue;
        for (int i = 0; i < 2; i++) {
            unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
            LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(c, kind, 0));
        }
    }
}

static jot_status emit(LLVMModuleRef module, struct cg_target *target, LLVMCodeGenFileType kind,
                       LLVMMemoryBufferRef *out)
{
    char *error = NULL;
    take_calls(module);
    if (target->is_gpu)
        cg_hooks_of_gpu.split_bytes(module);
    if (!LLVMTargetMachineEmitToMemoryBuffer(target->machine, module, kind, &error, out))
        return JOT_OK;
    jot_status s = status_fail(JOT_ERR_INTERNAL, "LLVM: %s", error);
    LLVMDisposeMessage(error);
    return s;
}

// Whether LLVM takes the module: an assert.
static jot_status verify(struct cg_module *m)
{
#ifndef NDEBUG
    char *error = NULL;
    bool is_refused = LLVMVerifyModule(m->module, LLVMReturnStatusAction, &error);
    jot_status status =
        is_refused ? status_fail(JOT_ERR_INTERNAL, "LLVM refuses the code: %s", error) : JOT_OK;
    LLVMDisposeMessage(error);
    return status;
#else
    (void)m;
    return JOT_OK;
#endif
}

static jot_status simplify(struct cg_module *m, struct cg_target *target)
{
    JOT_TRY(cg_module_run(m->module, target, m->is_gpu ? GPU_PASSES : PASSES));
    if (target->vector_bytes == 64) // has mask registers
        add_under_masks(m);
    if (!m->is_gpu)
        cg_large_functions(m);
    // AVX2 has no registers of masks, and its operations broadcast no operand.
    if (!m->is_gpu && target->vector_bytes == 32) {
        cg_split_masked_loads(m);
        cg_constants_to_memory(m);
    }
    return verify(m);
}

struct making {
    LLVMModuleRef module;
    struct cg_target *target;
    LLVMMemoryBufferRef *out;
};

static jot_status make_object(struct arena *arena, void *ctx)
{
    struct making *k = ctx;
    struct cg_module m = made_of(k->module, k->target, arena);
    JOT_TRY(simplify(&m, k->target));
    if (!m.is_gpu)
        cg_cut_blocks(&m, m.module);
    return emit(m.module, k->target, m.is_gpu ? LLVMAssemblyFile : LLVMObjectFile, k->out);
}

jot_status cg_module_make_object(LLVMModuleRef module, struct cg_target *target,
                                 LLVMMemoryBufferRef *out)
{
    return arena_lend(make_object, &(struct making){module, target, out});
}

// ---- What becomes of a module

static char *text_of(struct arena *arena, LLVMMemoryBufferRef buffer)
{
    size_t size = LLVMGetBufferSize(buffer);
    char *text = arena_allocate(arena, size + 1);
    memcpy(text, LLVMGetBufferStart(buffer), size);
    text[size] = 0;
    LLVMDisposeMemoryBuffer(buffer);
    return text;
}

// Of a copy, which emission changes.
static jot_status write_texts(struct cg_module *copy, struct cg_target *target, unsigned want,
                              struct cg_object *out)
{
    JOT_TRY(simplify(copy, target));
    if (want & CG_WANT_LLVM) {
        char *text = LLVMPrintModuleToString(copy->module);
        out->llvm = arena_text(copy->arena, text);
        LLVMDisposeMessage(text);
    }
    if (!(want & CG_WANT_ASSEMBLY))
        return JOT_OK;
    LLVMMemoryBufferRef buffer;
    if (!copy->is_gpu)
        cg_cut_blocks(copy, copy->module);
    JOT_TRY(emit(copy->module, target, LLVMAssemblyFile, &buffer));
    char *text = text_of(copy->arena, buffer);
    out->assembly =
        copy->is_gpu ? copy->hooks->finish_text(copy->arena, target->asked, text) : text;
    return JOT_OK;
}

static size_t rounded(size_t size) { return (size + 7) / 8 * 8; }

static void take_objects(struct arena *arena, const struct cg_objects *objects,
                         struct cg_object *out)
{
    for (uint32_t i = 0; i < objects->n; i++)
        out->size += rounded(LLVMGetBufferSize(objects->at[i]));
    char *at = arena_allocate(arena, out->size + 1);
    out->bytes = at;
    for (uint32_t i = 0; i < objects->n; i++) {
        size_t size = LLVMGetBufferSize(objects->at[i]);
        memcpy(at, LLVMGetBufferStart(objects->at[i]), size);
        at += rounded(size);
    }
}

jot_status cg_module_compile(struct cg_module *m, struct cg_target *target, unsigned want,
                             struct cg_object *out)
{
    struct cg_objects objects;
    *out = (struct cg_object){0};
    cg_pair_op_functions(m);
    if (!m->is_gpu)
        set_function_attributes(m);
    JOT_TRY(verify(m));
    if (want & (CG_WANT_LLVM | CG_WANT_ASSEMBLY)) {
        struct cg_module copy = *m;
        copy.module = LLVMCloneModule(m->module);
        jot_status status = write_texts(&copy, target, want, out);
        LLVMDisposeModule(copy.module);
        JOT_TRY(status);
    }
    JOT_TRY(cg_compile_parts(m, target, &objects));
    if (m->is_gpu)
        m->hooks->take_texts(m->arena, target->asked, &objects, out);
    else
        take_objects(m->arena, &objects, out);
    cg_objects_release(&objects);
    return JOT_OK;
}
