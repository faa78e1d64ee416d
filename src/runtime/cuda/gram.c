// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/gram.h"

#include "base/status.h"

// Blocks of a multiprocessor: 64 threads with up to 168 registers each.
#define BLOCKS 6
// Numbers of a result and terms of a sum for which the kernels are made.
#define LEAST_SIDE 256
#define LEAST_TERMS 512
// Terms of a cut, at least.
#define LEAST_CUT 128
// Tiles of a result, at most: those of 4096 rows.
#define TILES_MOST 2080

#define KERNELS(...) #__VA_ARGS__ "\n",
static const char *const source[] = {
#include "runtime/cuda/gram_kernels.inc"
    NULL};
static const char words[] = "#define NAMED(name) name##_f32\n" GRAM_NUMBERS(KERNELS_WORD);
#define NUMBER(word, value) word = (value),
enum { GRAM_NUMBERS(NUMBER) };
#undef NUMBER

static bool is_fit(const struct rt_gemm *g, uint32_t alignment)
{
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
        if (g->batch[i] != 1)
            return false;
    return g->flags == RT_GEMM_SYMMETRIC && g->activation == RT_LINEAR && g->dtype == JOT_F32 &&
           g->precision == RT_PRECISION_FULL && g->transpose_a && !g->transpose_b &&
           g->alpha == 1 && g->beta == 0 && g->n >= LEAST_SIDE && g->k >= LEAST_TERMS &&
           (g->n | g->lda | g->ldb | g->ldc) % 4 == 0 && alignment % 16 == 0;
}

jot_status cuda_gram_bind(struct cuda_device *d, const struct rt_gemm *g, uint32_t alignment,
                          struct cuda_gram *out)
{
    int64_t rows = (g->n + GRAM_TILE - 1) / GRAM_TILE, tiles = rows * (rows + 1) / 2;
    int64_t cuts = d->sm_count * BLOCKS / tiles, most = g->k / LEAST_CUT;
    cuts = cuts > most ? most : cuts < 1 ? 1 : cuts;
    *out = (struct cuda_gram){0};
    if (!is_fit(g, alignment) || tiles > TILES_MOST)
        return JOT_OK;
    jot_status status =
        cuda_kernels_get(d, words, source, "gram gram_sum", "_f32", out->kernels);
    if (status != JOT_OK)
        return status == JOT_ERR_LIBRARY ? JOT_OK : status;
    out->tiles = tiles;
    out->cuts = cuts;
    out->workspace = (size_t)(tiles * cuts) * GRAM_TILE * GRAM_TILE * sizeof(float);
    return JOT_OK;
}

jot_status cuda_gram(struct cuda_device *d, const struct rt_gemm *g,
                     const struct cuda_gram *gram, void *const *operands, void *workspace)
{
    uint64_t parts = cuda_address(workspace), tiles = (uint64_t)gram->tiles;
    uint64_t cuts = (uint64_t)gram->cuts, n = (uint64_t)g->n;
    JOT_TRY(cuda_start(
        d,
        &(struct cuda_start){.kernel = gram->kernels[0],
                             .blocks = tiles * cuts,
                             .block = GRAM_THREADS,
                             .parameters = {cuda_address(operands[0]),
                                            cuda_address(operands[1]), parts, n, (uint64_t)g->k,
                                            (uint64_t)g->lda, (uint64_t)g->ldb, tiles, cuts}}));
    return cuda_start(
        d, &(struct cuda_start){.kernel = gram->kernels[1],
                                .blocks = tiles * (GRAM_TILE / 32) * (GRAM_TILE / 32),
                                .block = 256,
                                .parameters = {parts, cuda_address(operands[2]), n,
                                               (uint64_t)g->ldc, tiles, cuts}});
}
