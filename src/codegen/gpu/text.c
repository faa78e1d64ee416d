// SPDX-License-Identifier: Apache-2.0
// PTX as the device's assembler takes it: what LLVM wrote for a target, with what LLVM has no words for.
#include "codegen/gpu/text.h"
#include "codegen/gpu/entry.h"
#include "codegen/module.h"
#include "codegen/parts.h"

#include <stdio.h>
#include <string.h>

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

// ptxas (13.0 for one) makes one instruction of Hopper of the maximum or minimum of three signed integers of 16 or
// 32 bits, and drops the negation of the second.  It keeps it where a negation is a complement and one more.
static char *negate_by_complement(struct arena *arena, const char *from)
{
    static const char negation[] = "\tneg.s";
    enum { LONGEST = 32 }; // name of a register
    size_t room = strlen(from) + 1;
    for (const char *at = from; (at = strstr(at, negation)); at++)
        room += strcspn(at, "\n") + LONGEST;
    char *text = arena_allocate(arena, room), *to = text;
    for (const char *at; (at = strstr(from, negation));) {
        char result[LONGEST], operand[LONGEST];
        int bits;
        to = mempcpy(to, from, (size_t)(at - from));
        from = at + strcspn(at, "\n");
        if (sscanf(at, "\tneg.s%d \t%31[^,], %31[^;];", &bits, result, operand) == 3 &&
            bits < 64)
            to += sprintf(to, "\tnot.b%d \t%s, %s;\n\tadd.s%d \t%s, %s, 1;", bits, result,
                          operand, bits, result, result);
        else
            to = mempcpy(to, at, (size_t)(from - at));
    }
    strcpy(to, from);
    return text;
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
    text = negate_by_complement(arena, text);
    choose_negative_zeros_by_bits(text);
    drop_call_numbers(text);
    if (!strstr(text, GPU_STREAMS "("))
        return text;
    char *streams =
        arena_allocate(arena, strlen(text) + 1 + count_lines(text) * strlen(access[1][1]));
    stream(text, streams);
    return streams;
}

void gpu_take_texts(struct arena *arena, const char *target, const struct cg_objects *parts,
                    struct cg_object *out)
{
    char **texts = arena_array(arena, char *, parts->n + 1);
    for (uint32_t i = 0; i < parts->n; i++) {
        size_t size = LLVMGetBufferSize(parts->at[i]);
        char *ptx = arena_allocate(arena, size + 1);
        memcpy(ptx, LLVMGetBufferStart(parts->at[i]), size);
        ptx[size] = 0;
        texts[i] = gpu_finish_text(arena, target, ptx);
        out->size += strlen(texts[i]) + 1;
    }
    char *at = arena_allocate(arena, out->size + 1);
    out->bytes = at;
    for (uint32_t i = 0; i < parts->n; i++)
        at = stpcpy(at, texts[i]) + 1;
}
