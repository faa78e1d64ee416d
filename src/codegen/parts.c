// SPDX-License-Identifier: Apache-2.0
// A module compiled in parts, on several threads: a long kernel is a part of its own, short ones share one
// until it is as long.  LLVM's objects are a thread's, so the module is written as bitcode, and for each part
// a thread reads of it what the part needs.  A function that several parts of a processor call is compiled in one
// of them; that of a GPU, whose parts are assembled apart, in each.
#include "codegen/parts.h"
#include "codegen/emit.h"
#include "codegen/module.h"

#include "base/status.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Linker.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG 400                 // instructions that take longer than one more part does
#define LONG_OF_GPU 1000         // the same where parts are assembled apart
#define STACK ((size_t)16 << 20) // of a thread, whatever new ones have by default
#define MOST 16                  // threads, the caller's among them
#define PARTS 4 // of a thread, that they may end together; of long programs twice as many
#define PART "jot-part" // the attribute of a function that says its part

struct part {
    uint32_t length; // instructions
    LLVMMemoryBufferRef object;
    jot_status status;
    char fault[200];
};

struct work {
    const char *target;
    LLVMMemoryBufferRef bitcode;
    uint32_t n, threads;
    // The longest first, that none of them is left for one thread at the end.
    struct part *parts, **by_length;
    atomic_uint next; // that nobody has begun
};

// Whether others than the module call it.
static bool is_kernel(LLVMValueRef f)
{
    return !LLVMIsDeclaration(f) && LLVMGetLinkage(f) == LLVMExternalLinkage;
}

static bool is_inlined(LLVMValueRef call)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    return LLVMGetCallSiteEnumAttribute(call, (unsigned)LLVMAttributeFunctionIndex, kind);
}

// Instructions, with those of what is called and becomes part of the function, as often as it is; of a GPU with
// those of what is called.
static uint32_t length_of(LLVMValueRef f, bool is_gpu)
{
    uint32_t n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            LLVMValueRef called = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
            bool is_inside = called && LLVMIsAFunction(called) &&
                             (is_gpu && !is_kernel(called) ? true : is_inlined(i));
            n += 1 + (is_inside ? length_of(called, is_gpu) : 0);
        }
    return n;
}

static void set_part(LLVMValueRef kernel, uint32_t part)
{
    char text[16];
    snprintf(text, sizeof text, "%u", part);
    LLVMAddTargetDependentFunctionAttr(kernel, PART, text);
}

static uint32_t part_of(LLVMValueRef kernel)
{
    unsigned n;
    LLVMAttributeRef a = LLVMGetStringAttributeAtIndex(kernel, LLVMAttributeFunctionIndex, PART,
                                                       sizeof PART - 1);
    return (uint32_t)strtoul(LLVMGetStringAttributeValue(a, &n), NULL, 10);
}

static bool has_part(LLVMValueRef f)
{
    return LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, PART, sizeof PART - 1);
}

// Functions of the module that the part calls are its own, or of the part that calls them too.
static void share_functions(LLVMValueRef f, uint32_t part)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            LLVMValueRef called = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
            if (!called || !LLVMIsAFunction(called) || LLVMIsDeclaration(called))
                continue;
            if (is_inlined(i)) {
                share_functions(called, part);
            } else if (!has_part(called)) {
                set_part(called, part);
                share_functions(called, part);
            } else if (part_of(called) != part) {
                LLVMSetLinkage(called, LLVMExternalLinkage);
            }
        }
}

static int compare_lengths(const void *a, const void *b)
{
    const struct part *x = *(struct part *const *)a, *y = *(struct part *const *)b;
    return x->length != y->length ? (x->length < y->length) - (x->length > y->length)
                                  : (x > y) - (x < y);
}

static void sort_parts(struct arena *arena, struct work *w)
{
    w->by_length = arena_array(arena, struct part *, w->n + 1);
    for (uint32_t i = 0; i < w->n; i++)
        w->by_length[i] = &w->parts[i];
    qsort(w->by_length, w->n, sizeof *w->by_length, compare_lengths);
}

static void choose_parts(struct cg_module *m, struct work *w)
{
    uint32_t kernels = 0, total = 0, shortest = m->is_gpu ? LONG_OF_GPU : LONG;
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f))
        if (is_kernel(f)) {
            kernels++;
            total += length_of(f, m->is_gpu);
        }
    // The same module is the same text for a GPU, whatever machine compiles it.
    uint32_t threads = m->is_gpu ? MOST : w->threads;
    uint32_t share = threads > 1 ? total / (PARTS * threads) : total;
    if (threads > 1 && share > 2 * shortest)
        share = share > 4 * shortest ? share / 2 : 2 * shortest;
    uint32_t least = share > shortest ? share : shortest;
    uint32_t open = 0, shared = least; // open: a part of short ones, so long
    w->parts = arena_array(m->arena, struct part, kernels + 1);
    for (f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f)) {
        if (!is_kernel(f))
            continue;
        uint32_t length = length_of(f, m->is_gpu);
        bool is_long = length >= least;
        if (!is_long && shared >= least) {
            open = w->n++;
            shared = 0;
        }
        set_part(f, is_long ? w->n++ : open);
        shared += is_long ? 0 : length;
    }
    for (f = LLVMGetFirstFunction(m->module); f && !m->is_gpu && w->n > 1;
         f = LLVMGetNextFunction(f))
        if (is_kernel(f))
            share_functions(f, part_of(f));
    for (f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f))
        if (has_part(f))
            w->parts[part_of(f)].length += length_of(f, m->is_gpu);
    sort_parts(m->arena, w);
}

// What the part needs of the module.  Kernels of others are not emitted; of those that are called the code is there
// to be inlined.
static LLVMModuleRef read_part(const struct work *w, uint32_t part, LLVMContextRef context)
{
    LLVMModuleRef all, own;
    const char *bytes = LLVMGetBufferStart(w->bitcode);
    LLVMMemoryBufferRef view =
        LLVMCreateMemoryBufferWithMemoryRange(bytes, LLVMGetBufferSize(w->bitcode), "jot", 0);
    if (LLVMGetBitcodeModuleInContext2(context, view, &all)) {
        LLVMDisposeMemoryBuffer(view);
        return NULL;
    }
    for (LLVMValueRef f = LLVMGetFirstFunction(all); f; f = LLVMGetNextFunction(f))
        if (is_kernel(f) && part_of(f) != part)
            LLVMSetLinkage(f, LLVMAvailableExternallyLinkage);
    own = LLVMModuleCreateWithNameInContext("jot", context);
    LLVMSetTarget(own, LLVMGetTarget(all));
    LLVMSetModuleDataLayout(own, LLVMGetModuleDataLayout(all));
    if (!LLVMLinkModules2(own, all))
        return own;
    LLVMDisposeModule(own);
    return NULL;
}

static jot_status do_part(struct work *w, struct part *part, LLVMContextRef context)
{
    struct cg_target *target;
    JOT_TRY(cg_target_find(w->target, &target));
    LLVMModuleRef module = read_part(w, (uint32_t)(part - w->parts), context);
    if (!module)
        return status_fail(JOT_ERR_INTERNAL, "LLVM does not read what it wrote");
    jot_status status = cg_module_make_object(module, target, &part->object);
    LLVMDisposeModule(module);
    return status;
}

// Any thread: what goes wrong stays with the part.
static void *work_on(void *arg)
{
    struct work *w = arg;
    for (uint32_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        struct part *p = w->by_length[i];
        LLVMContextRef context = LLVMContextCreate();
        p->status = do_part(w, p, context);
        if (p->status != JOT_OK)
            snprintf(p->fault, sizeof p->fault, "%s", jot_error_message());
        LLVMContextDispose(context);
    }
    return NULL;
}

// Cores that this thread may run on.
static uint32_t count_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? MOST : CPU_COUNT(&set);
    return n < MOST ? (uint32_t)n : MOST;
}

// The module is not kept beside its parts.
static jot_status compile_parts(struct work *w, struct cg_module *m)
{
    pthread_t threads[MOST];
    pthread_attr_t attributes;
    uint32_t n = 0;
    w->bitcode = LLVMWriteBitcodeToMemoryBuffer(m->module);
    cg_module_finish(m);
    m->module = NULL;
    m->context = NULL;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    while (n + 1 < w->n && n + 1 < w->threads &&
           !pthread_create(&threads[n], &attributes, work_on, w))
        n++;
    pthread_attr_destroy(&attributes);
    work_on(w);
    while (n)
        pthread_join(threads[--n], NULL);
    LLVMDisposeMemoryBuffer(w->bitcode);
    for (uint32_t i = 0; i < w->n; i++)
        if (w->parts[i].status != JOT_OK)
            return status_fail(w->parts[i].status, "%s", w->parts[i].fault);
    return JOT_OK;
}

jot_status cg_compile_parts(struct cg_module *m, struct cg_target *target,
                            struct cg_objects *out)
{
    struct work w = {.target = cg_target_name(target), .threads = count_cores()};
    choose_parts(m, &w);
    *out = (struct cg_objects){.at = arena_array(m->arena, LLVMMemoryBufferRef, w.n + 1)};
    jot_status status = w.n > 1 ? compile_parts(&w, m)
                        : w.n   ? cg_module_make_object(m->module, target, &w.parts[0].object)
                                : JOT_OK;
    for (uint32_t i = 0; i < w.n; i++)
        if (w.parts[i].object)
            out->at[out->n++] = w.parts[i].object;
    if (status != JOT_OK)
        cg_objects_release(out);
    return status;
}

void cg_objects_release(struct cg_objects *objects)
{
    while (objects->n)
        LLVMDisposeMemoryBuffer(objects->at[--objects->n]);
}
