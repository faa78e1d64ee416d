// SPDX-License-Identifier: Apache-2.0
// A module of kernels compiled in parts, on as many threads: a long kernel is a part of its own, short
// ones share one until it is as long.  LLVM's objects are a thread's, so a part is read from bitcode, and
// what it does not need is dropped.  The PTX of each ends in a zero byte, and the device's assembler takes
// the parts side by side too.
#include "codegen/gpu/gpu.h"

#include "base/status.h"
#include "codegen/module.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LONG 1000 // instructions of a kernel that takes longer than one more part does
#define STACK ((size_t)16 << 20) // of a thread, whatever new ones have by default
#define MOST 15                  // threads beside the caller's

struct part {
    LLVMMemoryBufferRef ptx;
    jot_status status;
    char fault[200];
};

struct work {
    LLVMMemoryBufferRef bitcode;
    const char *target;
    uint32_t *of_kernel; // the part of each kernel of the module
    uint32_t n;
    struct part *parts;
    atomic_uint next; // that nobody has begun
};

static bool is_kernel(LLVMValueRef f)
{
    return LLVMGetFunctionCallConv(f) == LLVMPTXKernelCallConv;
}

// Instructions, with those of what is called as often as it is.
static uint32_t length_of(LLVMValueRef f)
{
    uint32_t n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            LLVMValueRef called = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
            n += 1 + (called && LLVMIsAFunction(called) ? length_of(called) : 0);
        }
    return n;
}

static void choose_parts(struct arena *arena, LLVMModuleRef module, struct work *w)
{
    uint32_t kernels = 0, k = 0, open = 0, shared = LONG; // open: a part of short ones, so long
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        kernels += is_kernel(f);
    w->of_kernel = arena_array(arena, uint32_t, kernels + 1);
    w->parts = arena_array(arena, struct part, kernels + 1);
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        uint32_t length = length_of(f);
        bool is_long = length >= LONG;
        if (!is_kernel(f))
            continue;
        if (!is_long && shared >= LONG) {
            open = w->n++;
            shared = 0;
        }
        w->of_kernel[k++] = is_long ? w->n++ : open;
        shared += is_long ? 0 : length;
    }
}

static void drop_others(const struct work *w, uint32_t part, LLVMModuleRef module)
{
    uint32_t k = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(module), next; f; f = next) {
        next = LLVMGetNextFunction(f);
        if (is_kernel(f) && w->of_kernel[k++] != part)
            LLVMDeleteFunction(f);
    }
}

static jot_status compile_module(LLVMModuleRef module, struct cg_target *target,
                                 LLVMMemoryBufferRef *out)
{
    JOT_TRY(cg_module_simplify(module, target));
    return cg_module_emit(module, target, LLVMAssemblyFile, out);
}

static jot_status compile_part(const struct work *w, uint32_t part, LLVMContextRef context,
                               LLVMMemoryBufferRef *out)
{
    LLVMModuleRef module;
    struct cg_target *target;
    JOT_TRY(cg_target_find(w->target, &target));
    if (LLVMParseBitcodeInContext2(context, w->bitcode, &module))
        return status_fail(JOT_ERR_INTERNAL, "LLVM does not read what it wrote");
    drop_others(w, part, module);
    jot_status status = compile_module(module, target, out);
    LLVMDisposeModule(module);
    return status;
}

// Any thread: what goes wrong stays with the part.
static void *work_on(void *arg)
{
    struct work *w = arg;
    for (uint32_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        struct part *p = &w->parts[i];
        LLVMContextRef context = LLVMContextCreate();
        p->status = compile_part(w, i, context, &p->ptx);
        if (p->status != JOT_OK)
            snprintf(p->fault, sizeof p->fault, "%s", jot_error_message());
        LLVMContextDispose(context);
    }
    return NULL;
}

static jot_status compile_parts(struct work *w, LLVMModuleRef module)
{
    pthread_t threads[MOST];
    uint32_t n = 0;
    w->bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    while (n + 1 < w->n && n < MOST && !pthread_create(&threads[n], &attributes, work_on, w))
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

// ptxas (13.0 for one) makes a comparison or an integer of a choice of floats between 1 or -1 and -0,
// and 0 of the last.  It does not where the choice is one of bits.
static void choose_negative_zeros_by_bits(char *ptx)
{
    for (char *line = ptx, *end; (line = strstr(line, "selp.f32")); line = end) {
        end = line + strcspn(line, "\n");
        char last = *end;
        *end = 0;
        if (strstr(line, "0f80000000") &&
            (strstr(line, "0f3F800000") || strstr(line, "0fBF800000")))
            memcpy(line, "selp.b32", 8);
        *end = last;
    }
}

// The first architecture whose kernels can begin before those in front of them are done.
#define EARLY_ARCHITECTURE 90

static const char wait_for_others[] = "\tgriddepcontrol.wait;\n";

// Where the instructions of the next kernel begin; NULL when there is none.
static const char *next_kernel(const char *ptx)
{
    const char *entry = strstr(ptx, ".visible .entry ");
    const char *brace = entry ? strstr(entry, "\n{\n") : NULL;
    return brace ? brace + 3 : NULL;
}

// Copies the text; every kernel first waits for those in front of it (RT_STEP_EARLY).  As text, since LLVM
// may move reads of what no kernel writes in front of assembly.
static void add_waits(const char *from, char *to)
{
    for (const char *at; (at = next_kernel(from)); from = at) {
        to = mempcpy(to, from, (size_t)(at - from));
        to = stpcpy(to, wait_for_others);
    }
    strcpy(to, from);
}

// LLVM numbers the calls of a process in comments: without them the same module is the same text, which
// nvJitLink knows again.
static void drop_call_numbers(char *ptx)
{
    static const char comment[] = "// callseq";
    char *to = strstr(ptx, comment);
    for (const char *from = to, *next; from; from = next) {
        from += strcspn(from, "\n");
        next = strstr(from, comment);
        size_t n = next ? (size_t)(next - from) : strlen(from) + 1;
        memmove(to, from, n);
        to += n;
    }
}

static const char *const access[][2] = {{"\tst.global.", "\tst.global.cs."},
                                        {"\tld.global.nc.", "\tld.global.nc.L1::no_allocate."}};

// Copies the text; in functions whose names end in GPU_STREAMS reads leave nothing in the first cache, and
// what is written is the first to leave the second.
static void stream(const char *from, char *to)
{
    bool is_inside = false;
    for (const char *end; *from; from = end) {
        end = from + strcspn(from, "\n");
        end += *end == '\n';
        if (!strncmp(from, ".visible .entry ", 16))
            is_inside =
                !strncmp(end - sizeof GPU_STREAMS - 1, GPU_STREAMS "(", sizeof GPU_STREAMS);
        for (int i = 0; is_inside && i < 2; i++)
            if (!strncmp(from, access[i][0], strlen(access[i][0]))) {
                to = stpcpy(to, access[i][1]);
                from += strlen(access[i][0]);
            }
        to = mempcpy(to, from, (size_t)(end - from));
    }
    *to = 0;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

char *gpu_finish_text(struct arena *arena, const char *target, const char *ptx)
{
    unsigned architecture;
    size_t room = strlen(ptx) + 1;
    for (const char *at = ptx; (at = next_kernel(at));)
        room += sizeof wait_for_others;
    char *text = arena_allocate(arena, room);
    if (sscanf(target, "cuda sm_%u", &architecture) == 1 && architecture >= EARLY_ARCHITECTURE)
        add_waits(ptx, text);
    else
        strcpy(text, ptx);
    choose_negative_zeros_by_bits(text);
    drop_call_numbers(text);
    if (!strstr(text, GPU_STREAMS "("))
        return text;
    char *streams =
        arena_allocate(arena, strlen(text) + 1 + count_lines(text) * strlen(access[1][1]));
    stream(text, streams);
    return streams;
}

static void take_texts(struct arena *arena, const struct work *w, struct cg_object *out)
{
    char **texts = arena_array(arena, char *, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        size_t size = LLVMGetBufferSize(w->parts[i].ptx);
        char *ptx = arena_allocate(arena, size + 1);
        memcpy(ptx, LLVMGetBufferStart(w->parts[i].ptx), size);
        ptx[size] = 0;
        texts[i] = gpu_finish_text(arena, w->target, ptx);
        out->size += strlen(texts[i]) + 1;
    }
    char *at = arena_allocate(arena, out->size);
    out->bytes = at;
    for (uint32_t i = 0; i < w->n; i++)
        at = stpcpy(at, texts[i]) + 1;
}

jot_status gpu_compile(struct cg_module *m, struct cg_target *target, struct cg_object *out)
{
    struct work w = {.target = cg_target_name(target)};
    choose_parts(m->arena, m->module, &w);
    if (!w.n)
        return JOT_OK;
    jot_status status = w.n > 1 ? compile_parts(&w, m->module)
                                : compile_module(m->module, target, &w.parts[0].ptx);
    if (status == JOT_OK)
        take_texts(m->arena, &w, out);
    for (uint32_t i = 0; i < w.n; i++)
        if (w.parts[i].ptx)
            LLVMDisposeMemoryBuffer(w.parts[i].ptx);
    return status;
}
