// SPDX-License-Identifier: Apache-2.0
// Collectives of few bytes by kernels of jot's own over the memory of the other GPUs.
#include "runtime/cuda/together.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/collective.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/together_kernels.h"

#include <stdio.h>
#include <string.h>

#define KERNELS(...) #__VA_ARGS__ "\n",
static const char *const source[] = {
#include "runtime/cuda/together_kernels.inc"
    NULL};
#undef KERNELS
#define NUMBER(word, value) word = (value),
enum { TOGETHER_WORDS(NUMBER) };
#undef NUMBER
_Static_assert(COLLECTIVE_SMALL <= TOGETHER_BYTES, "there is room for what is small");

#define TEXT(...) TEXT_(__VA_ARGS__)
#define TEXT_(...) #__VA_ARGS__

// The numbers that elements are made of.
static jot_dtype number_of(jot_dtype dtype)
{
    return dtype == JOT_BOOL ? JOT_U8 : dtype_real(dtype);
}

// What they are to a kernel; NULL where there is none.
static const char *element_of(jot_dtype dtype)
{
    static const char *const names[] = {
        [JOT_I8] = "signed char",   [JOT_I16] = "short",
        [JOT_I32] = "int",          [JOT_I64] = "long long",
        [JOT_U8] = "unsigned char", [JOT_U16] = "unsigned short",
        [JOT_U32] = "unsigned",     [JOT_U64] = "unsigned long long",
        [JOT_F32] = "float",        [JOT_F64] = "double",
    };
    size_t row = (size_t)number_of(dtype);
    return row < sizeof names / sizeof *names ? names[row] : NULL;
}

static const char *combination_of(enum collective_combiner combiner, jot_dtype dtype)
{
    bool is_float = dtype_is_inexact(dtype);
    switch (combiner) {
    case COLLECTIVE_SUM:
        return is_float ? TEXT(TOGETHER_SUM_FLOAT(a, b)) : TEXT(TOGETHER_SUM(a, b));
    case COLLECTIVE_PRODUCT:
        return is_float ? TEXT(TOGETHER_PRODUCT_FLOAT(a, b)) : TEXT(TOGETHER_PRODUCT(a, b));
    case COLLECTIVE_MAX:
        return is_float ? TEXT(TOGETHER_LARGER_FLOAT(a, b)) : TEXT(TOGETHER_LARGER(a, b));
    case COLLECTIVE_MIN:
        return is_float ? TEXT(TOGETHER_SMALLER_FLOAT(a, b)) : TEXT(TOGETHER_SMALLER(a, b));
    case COLLECTIVE_AND:
        return TEXT(TOGETHER_AND(a, b));
    default:
        return TEXT(TOGETHER_OR(a, b));
    }
}

bool cuda_together_knows(const struct collective *c)
{
    if (!collective_reduces(c))
        return true;
    bool is_complex_product = dtype_is_complex(c->dtype) && c->combiner == COLLECTIVE_PRODUCT;
    return element_of(c->dtype) && !is_complex_product;
}

// ---- memory ----

// A channel has a table behind all else.
#define CHANNEL_BYTES (TOGETHER_ALL + (TOGETHER_GPUS + 1) * sizeof(uint64_t))

static char *channel_of(const struct cuda_together *t, int channel, size_t gpu)
{
    return (char *)t->memory[gpu] + (size_t)channel * CHANNEL_BYTES;
}

static jot_status fill_table(const struct cuda_together *t, int channel, size_t n,
                             struct cuda_device *const *devices)
{
    uint64_t table[TOGETHER_GPUS + 1] = {0};
    for (size_t i = 0; i < n; i++)
        table[i] = cuda_address(channel_of(t, channel, i));
    table[TOGETHER_GPUS] = cuda_address(t->stop);
    for (size_t i = 0; i < n; i++) {
        char *at = channel_of(t, channel, i);
        JOT_TRY(cuda_clear(&devices[i]->base, at, TOGETHER_ALL));
        JOT_TRY(cuda_upload(&devices[i]->base, at + TOGETHER_ALL, table, sizeof table));
    }
    return JOT_OK;
}

static jot_status allocate(struct cuda_together *t, size_t n,
                           struct cuda_device *const *devices)
{
    void *stop;
    JOT_TRY(cuda_enter(devices[0]));
    jot_status status = cuda_status(
        devices[0],
        cuda.driver.cuMemHostAlloc(&stop, sizeof *t->stop,
                                   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
        "allocating pinned memory");
    cuda_leave();
    JOT_TRY(status);
    t->stop = stop;
    *t->stop = 0;
    for (size_t i = 0; i < n; i++) {
        JOT_TRY(cuda_open_to_peers(devices[i]));
        JOT_TRY(cuda_allocate(&devices[i]->base, CUDA_TOGETHER_CHANNELS * CHANNEL_BYTES,
                              "what GPUs send one another", &t->memory[i]));
    }
    for (int k = 0; k < CUDA_TOGETHER_CHANNELS; k++)
        JOT_TRY(fill_table(t, k, n, devices));
    // Nobody writes into what has not been cleared.
    for (size_t i = 0; i < n; i++)
        JOT_TRY(cuda_wait(&devices[i]->base));
    return JOT_OK;
}

static jot_status open(struct cuda_together *t, size_t n, struct cuda_device *const *devices)
{
    if (t->is_open)
        return JOT_OK;
    t->is_missing |= n > TOGETHER_GPUS;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            t->is_missing |= i != k && cuda_link(devices[i], devices[k]) == CUDA_LINK_HOST;
    if (t->is_missing)
        return status_fail(JOT_ERR_LIBRARY, "the GPUs do not get at the memory of one another");
    JOT_TRY(allocate(t, n, devices));
    t->is_open = true;
    return JOT_OK;
}

// ---- kernels ----

static jot_status find_kernel(struct cuda_device *d, const struct collective *c, int move_bytes,
                              CUfunction *out)
{
    char words[1024], suffix[48];
    bool reduces = collective_reduces(c);
    const char *element = reduces           ? element_of(c->dtype)
                          : move_bytes == 8 ? "unsigned long long"
                                            : "unsigned char";
    if (*out)
        return JOT_OK;
    if (reduces)
        snprintf(suffix, sizeof suffix, "_%s_%s", collective_combiner_name(c->combiner),
                 jot_dtype_name(number_of(c->dtype)));
    else
        snprintf(suffix, sizeof suffix, "_%d", move_bytes);
    snprintf(words, sizeof words,
             "#define NAMED(name) name##%s\n#define ELEMENT %s\n#define REDUCES %d\n"
             "#define COMBINE(a, b) %s\n" TOGETHER_WORDS(KERNELS_WORD),
             suffix, element, reduces, reduces ? combination_of(c->combiner, c->dtype) : "(a)");
    return cuda_kernels_get(d, words, source, "together", suffix, out);
}

// Whether all blocks begin where a word of 8 bytes may.
static bool are_words(const struct rt_blocks *b, size_t n)
{
    uintptr_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= (uintptr_t)b->from[i] | (uintptr_t)b->to[i];
    return all % 8 == 0;
}

jot_status cuda_together_run(struct cuda_together *t, struct cuda_device *const *devices,
                             const struct collective *c, const struct rt_blocks *b,
                             uint64_t to_bytes, uint64_t from_bytes)
{
    size_t n = (size_t)c->size;
    uint64_t part = collective_part(c, to_bytes, from_bytes), all = (UINT64_C(1) << n) - 1;
    bool reduces = collective_reduces(c);
    bool moves_words = part % 8 == 0 && are_words(b, n);
    uint64_t unit = reduces ? dtype_get(dtype_real(c->dtype))->bytes : moves_words ? 8 : 1;
    int row = reduces ? (int)c->combiner * CUDA_TOGETHER_TYPES + (int)number_of(c->dtype)
                      : (moves_words ? CUDA_TOGETHER_KERNELS - 1 : CUDA_TOGETHER_KERNELS - 2);
    JOT_TRY(open(t, n, devices));
    for (size_t i = 0; i < n; i++) {
        JOT_TRY(cuda_enter(devices[i]));
        jot_status status = find_kernel(devices[i], c, (int)unit, &t->kernels[i][row]);
        cuda_leave();
        JOT_TRY(status);
    }
    uint64_t k = part / unit;
    int channel = cuda_branches_channel(cuda_stream(devices[0]));
    bool skips = c->kind == COLLECTIVE_REDUCE_SCATTER || c->kind == COLLECTIVE_ALL_TO_ALL;
    bool spreads = c->kind == COLLECTIVE_ALL_GATHER || c->kind == COLLECTIVE_ALL_TO_ALL;
    for (size_t i = 0; i < n; i++) {
        uint64_t takes = all, gives = all;
        if (c->kind == COLLECTIVE_PERMUTE) {
            takes = c->sources[i] < 0 ? 0 : UINT64_C(1) << c->sources[i];
            gives = 0;
            for (size_t j = 0; j < n; j++)
                gives |= (uint64_t)(c->sources[j] == (int64_t)i) << j;
        }
        struct cuda_start start = {
            .kernel = t->kernels[i][row],
            .blocks = (part + TOGETHER_BLOCK_BYTES - 1) / TOGETHER_BLOCK_BYTES,
            .block = TOGETHER_THREADS,
            .parameters = {cuda_address(channel_of(t, channel, i) + TOGETHER_ALL),
                           cuda_address(b->from[i]), cuda_address(b->to[i]), k, i, n,
                           skips ? k : 0, spreads ? k : 0, takes, gives}};
        JOT_TRY(cuda_enter(devices[i]));
        jot_status status = cuda_start(devices[i], &start);
        cuda_leave();
        JOT_TRY(status);
    }
    return JOT_OK;
}

void cuda_together_stop(struct cuda_together *t)
{
    if (t->stop)
        __atomic_store_n(t->stop, 1, __ATOMIC_SEQ_CST);
}
