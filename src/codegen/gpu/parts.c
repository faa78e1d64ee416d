// SPDX-License-Identifier: Apache-2.0
// A module of kernels compiled in parts, on as many threads: a long kernel is a part of its own, short
// ones share one until it is as long.  LLVM's objects are a thread's, so a thread reads bitcode and drops
// what is of other parts.  Of many parts it reads all and writes a share of them, until a share is one
// part: so each function is read as often as the number of parts has digits.  The PTX of each part ends in
// a zero byte, and the device's assembler takes the parts side by side too.
#include "codegen/gpu/gpu.h"

#include "base/status.h"
#include "codegen/module.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG 1000 // instructions of a kernel that takes longer than one more part does
#define STACK ((size_t)16 << 20) // of a thread, whatever new ones have by default
#define MOST 15                  // threads beside the caller's
#define SHARES 4                 // that a thread makes of many parts
#define PART "jot-part"          // the attribute of a kernel that says its part

struct part {
    LLVMMemoryBufferRef ptx;
    jot_status status;
    char fault[200];
};

// Parts first .. end of those in the bitcode, which other shares are read from too.
struct share {
    struct bitcode {
        LLVMMemoryBufferRef bytes;
        uint32_t readers;
    } *from;
    uint32_t first, end;
};

static bool is_part(const struct share *s) { return s->end - s->first == 1; }

struct work {
    const char *target;
    uint32_t n;
    struct part *parts;
    pthread_mutex_t lock;
    pthread_cond_t has_changed;
    struct share *open;      // that nobody has begun; under the lock, as what follows
    uint32_t n_open, n_left; // parts that are not done
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

static void choose_parts(struct arena *arena, LLVMModuleRef module, struct work *w)
{
    uint32_t kernels = 0, open = 0, shared = LONG; // open: a part of short ones, so long
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        kernels += is_kernel(f);
    w->parts = arena_array(arena, struct part, kernels + 1);
    w->open = arena_array(arena, struct share, kernels + 1);
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        uint32_t length = length_of(f);
        bool is_long = length >= LONG;
        if (!is_kernel(f))
            continue;
        if (!is_long && shared >= LONG) {
            open = w->n++;
            shared = 0;
        }
        set_part(f, is_long ? w->n++ : open);
        shared += is_long ? 0 : length;
    }
}

// Kernels of other shares, and what only they use: what calls stands in front of what is called.
static void drop_others(const struct share *s, LLVMModuleRef module)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module), next; f; f = next) {
        next = LLVMGetNextFunction(f);
        uint32_t part = is_kernel(f) ? part_of(f) : 0;
        if (is_kernel(f) ? part < s->first || part >= s->end : !LLVMGetFirstUse(f))
            LLVMDeleteFunction(f);
    }
    for (LLVMValueRef g = LLVMGetFirstGlobal(module), next; g; g = next) {
        next = LLVMGetNextGlobal(g);
        if (!LLVMGetFirstUse(g))
            LLVMDeleteGlobal(g);
    }
}

static jot_status compile_module(LLVMModuleRef module, struct cg_target *target,
                                 LLVMMemoryBufferRef *out)
{
    JOT_TRY(cg_module_simplify(module, target));
    return cg_module_emit(module, target, LLVMAssemblyFile, out);
}

// Takes the bitcode, of parts first .. end.
static jot_status open_shares(struct work *w, LLVMMemoryBufferRef bytes, uint32_t first,
                              uint32_t end)
{
    struct bitcode *from = malloc(sizeof *from);
    if (!from) {
        LLVMDisposeMemoryBuffer(bytes);
        return status_out_of_memory();
    }
    uint32_t size = (end - first + SHARES - 1) / SHARES;
    *from = (struct bitcode){.bytes = bytes};
    pthread_mutex_lock(&w->lock);
    for (uint32_t next; first < end; first = next) {
        next = first + size < end ? first + size : end;
        w->open[w->n_open++] = (struct share){from, first, next};
        from->readers++;
    }
    pthread_cond_broadcast(&w->has_changed);
    pthread_mutex_unlock(&w->lock);
    return JOT_OK;
}

// Waits while there may be more; false when all are done.
static bool take_share(struct work *w, struct share *out)
{
    pthread_mutex_lock(&w->lock);
    while (!w->n_open && w->n_left)
        pthread_cond_wait(&w->has_changed, &w->lock);
    bool has_one = w->n_open > 0;
    if (has_one)
        *out = w->open[--w->n_open];
    pthread_mutex_unlock(&w->lock);
    return has_one;
}

static jot_status do_share(struct work *w, const struct share *s, LLVMContextRef context)
{
    LLVMModuleRef module;
    struct cg_target *target;
    JOT_TRY(cg_target_find(w->target, &target));
    if (LLVMParseBitcodeInContext2(context, s->from->bytes, &module))
        return status_fail(JOT_ERR_INTERNAL, "LLVM does not read what it wrote");
    drop_others(s, module);
    jot_status status =
        is_part(s) ? compile_module(module, target, &w->parts[s->first].ptx)
                   : open_shares(w, LLVMWriteBitcodeToMemoryBuffer(module), s->first, s->end);
    LLVMDisposeModule(module);
    return status;
}

static void end_share(struct work *w, const struct share *s, jot_status status)
{
    struct part *p = &w->parts[s->first];
    if (status != JOT_OK) {
        p->status = status;
        snprintf(p->fault, sizeof p->fault, "%s", jot_error_message());
    }
    pthread_mutex_lock(&w->lock);
    bool is_read = --s->from->readers == 0;
    w->n_left -= is_part(s) || status != JOT_OK ? s->end - s->first : 0;
    if (!w->n_left)
        pthread_cond_broadcast(&w->has_changed);
    pthread_mutex_unlock(&w->lock);
    if (!is_read)
        return;
    LLVMDisposeMemoryBuffer(s->from->bytes);
    free(s->from);
}

// Any thread: what goes wrong stays with the part.
static void *work_on(void *arg)
{
    struct work *w = arg;
    for (struct share s; take_share(w, &s);) {
        LLVMContextRef context = LLVMContextCreate();
        jot_status status = do_share(w, &s, context);
        LLVMContextDispose(context);
        end_share(w, &s, status);
    }
    return NULL;
}

static jot_status compile_parts(struct work *w, LLVMModuleRef module)
{
    pthread_t threads[MOST];
    uint32_t n = 0;
    w->n_left = w->n;
    JOT_TRY(open_shares(w, LLVMWriteBitcodeToMemoryBuffer(module), 0, w->n));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    while (n + 1 < w->n && n < MOST && !pthread_create(&threads[n], &attributes, work_on, w))
        n++;
    pthread_attr_destroy(&attributes);
    work_on(w);
    while (n)
        pthread_join(threads[--n], NULL);
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
    struct work w = {.target = cg_target_name(target),
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .has_changed = PTHREAD_COND_INITIALIZER};
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
