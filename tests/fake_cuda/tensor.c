// SPDX-License-Identifier: Apache-2.0
// Copies to what a block shares that go on while threads do other things, and products of small
// matrices by warps.  Fragments are those of the PTX ISA: of 8 by 8 numbers thread 4 r + c of a warp
// has 2c and 2c + 1 of row r.
#include "fake_cuda/emulate.h"

#include "base/dtype.h"
#include "fake_cuda/device.h"

#define COPIES_MOST 64 // of a thread
#define WARP 32

// ---- half types ----

uint32_t gpu_llvm_nvvm_ff2bf16x2_rn(float high, float low)
{
    return (uint32_t)dtype_bf16_from_f32(high) << 16 | dtype_bf16_from_f32(low);
}

uint32_t gpu_llvm_nvvm_ff2f16x2_rn(float high, float low)
{
    return (uint32_t)dtype_f16_from_f32(high) << 16 | dtype_f16_from_f32(low);
}

static float add_product(float x, float y, float z) { return x * y + z; }

// Of a sum or a product, which the numbers of f32 hold twice over.
uint32_t gpu_llvm_nvvm_fma_rn_bf16x2(uint32_t x, uint32_t y, uint32_t z)
{
    float two[2];
    for (int i = 0; i < 2; i++)
        two[i] = add_product(dtype_bf16_to_f32((uint16_t)(x >> 16 * i)),
                             dtype_bf16_to_f32((uint16_t)(y >> 16 * i)),
                             dtype_bf16_to_f32((uint16_t)(z >> 16 * i)));
    return gpu_llvm_nvvm_ff2bf16x2_rn(two[1], two[0]);
}

uint32_t gpu_llvm_nvvm_fma_rn_f16x2(uint32_t x, uint32_t y, uint32_t z)
{
    float two[2];
    for (int i = 0; i < 2; i++)
        two[i] = add_product(dtype_f16_to_f32((uint16_t)(x >> 16 * i)),
                             dtype_f16_to_f32((uint16_t)(y >> 16 * i)),
                             dtype_f16_to_f32((uint16_t)(z >> 16 * i)));
    return gpu_llvm_nvvm_ff2f16x2_rn(two[1], two[0]);
}

// ---- copies ----

// One happens at any time until the thread waits for it: it is told of at both ends, and done at the
// last one.
struct copy {
    char *to;
    const char *from;
    uint32_t bytes; // the rest of 16 are zeros
};

static struct copy copies[EMULATED_THREADS][COPIES_MOST];
static uint32_t copy_count[EMULATED_THREADS];

void tensor_block(void) { memset(copy_count, 0, sizeof copy_count); }

static void tell_of(const struct copy *c)
{
    if (c->bytes)
        gpu_access(c->from, c->bytes, 2, 0, 16);
    gpu_access(c->to, 16, 2, 1, 16);
}

void gpu_llvm_nvvm_cp_async_cg_shared_global_16_s(char *to, const char *from, uint32_t bytes)
{
    uint32_t thread = gpu_llvm_nvvm_read_ptx_sreg_tid_x();
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16)
        emulated_fail("copies between addresses that are no multiples of 16");
    if (copy_count[thread] == COPIES_MOST)
        emulated_fail("has more copies on their way than the fake GPU can");
    struct copy *c = &copies[thread][copy_count[thread]++];
    *c = (struct copy){to, from, bytes};
    tell_of(c);
}

void gpu_llvm_nvvm_cp_async_cg_shared_global_16(char *to, const char *from)
{
    gpu_llvm_nvvm_cp_async_cg_shared_global_16_s(to, from, 16);
}

void gpu_llvm_nvvm_cp_async_wait_all(void)
{
    uint32_t thread = gpu_llvm_nvvm_read_ptx_sreg_tid_x();
    for (uint32_t i = 0; i < copy_count[thread]; i++) {
        const struct copy *c = &copies[thread][i];
        tell_of(c);
        memset(c->to, 0, 16);
        memcpy(c->to, c->from, c->bytes);
    }
    copy_count[thread] = 0;
}

// ---- matrices ----

static uint16_t load(const struct emulated_lane *lane, uint32_t column)
{
    uint16_t x;
    const char *at;
    memcpy(&at, lane->words, sizeof at);
    at += column * sizeof x;
    gpu_access(at, sizeof x, sizeof x, 0, sizeof x);
    memcpy(&x, at, sizeof x);
    return x;
}

// Rows of matrix i begin where lanes 8i to 8i + 7 say.
static void load_matrices(const char *what, uint32_t out[4], const char *row, bool turned)
{
    if ((uintptr_t)row % 16)
        emulated_fail("loads a row of a matrix from no multiple of 16");
    uint32_t lane = gpu_llvm_nvvm_read_ptx_sreg_tid_x() % WARP, r = lane / 4, c = lane % 4 * 2;
    const struct emulated_lane *rows = emulated_meet(what, UINT32_MAX, &row, sizeof row);
    for (int i = 0; i < 4; i++, rows += 8) {
        uint16_t low = turned ? load(&rows[c], r) : load(&rows[r], c);
        uint16_t high = turned ? load(&rows[c + 1], r) : load(&rows[r], c + 1);
        out[i] = (uint32_t)high << 16 | low;
    }
}

void gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_b16_p3(uint32_t out[4], const char *row)
{
    load_matrices("matrices", out, row, false);
}

void gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16_p3(uint32_t out[4], const char *row)
{
    load_matrices("matrices turned", out, row, true);
}

// Words of the thread: of 16 by 16 numbers rows 0 to 7 and 8 to 15 of columns 0 to 7, the same of
// columns 8 to 15; of 16 by 8, turned, rows 0 to 7 and 8 to 15.  Products of half types are exact in
// f32.
static void multiply(const char *what, float out[4], const uint32_t words[6], const float c[4],
                     float (*widen)(uint16_t))
{
    uint32_t lane = gpu_llvm_nvvm_read_ptx_sreg_tid_x() % WARP;
    const struct emulated_lane *all = emulated_meet(what, UINT32_MAX, words, 6 * sizeof *words);
    for (uint32_t i = 0; i < 4; i++) {
        const struct emulated_lane *x = &all[lane / 4 * 4];
        const struct emulated_lane *y = &all[(lane % 4 * 2 + i % 2) * 4];
        double sum = (double)c[i];
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t a = x[k % 4].words[k / 4 * 2 + i / 2], b = y[k % 4].words[4 + k / 4];
            sum += (double)(widen((uint16_t)a) * widen((uint16_t)b));
            sum += (double)(widen((uint16_t)(a >> 16)) * widen((uint16_t)(b >> 16)));
        }
        out[i] = (float)sum;
    }
}

void gpu_llvm_nvvm_mma_m16n8k16_row_col_bf16(float out[4], uint32_t a0, uint32_t a1,
                                             uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
                                             float c0, float c1, float c2, float c3)
{
    multiply("product of bf16", out, (uint32_t[]){a0, a1, a2, a3, b0, b1},
             (float[]){c0, c1, c2, c3}, dtype_bf16_to_f32);
}

void gpu_llvm_nvvm_mma_m16n8k16_row_col_f32_f32(float out[4], uint32_t a0, uint32_t a1,
                                                uint32_t a2, uint32_t a3, uint32_t b0,
                                                uint32_t b1, float c0, float c1, float c2,
                                                float c3)
{
    multiply("product of f16", out, (uint32_t[]){a0, a1, a2, a3, b0, b1},
             (float[]){c0, c1, c2, c3}, dtype_f16_to_f32);
}
