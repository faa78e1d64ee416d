// SPDX-License-Identifier: Apache-2.0
// Products of warpgroups (codegen/gpu/warpgroup.c): of 64 rows a warp has 16, in registers or in shared
// memory, and the other matrix is in shared memory by panels of 64 columns with the 128-byte swizzle.
// Fragments are those of tensor.c.
#include "fake_cuda/emulate.h"

#include "base/dtype.h"
#include "fake_cuda/device.h"

#include <stdio.h>

#define WARP 32
#define WARPS 4
#define PANEL 64
#define ROW (2 * PANEL)
#define ALIGNMENT 1024

struct product {
    char type[8];
    int sums, steps, adds, left, right, turned;
    float (*widen)(uint16_t);
};

// What a descriptor says of the offset of a matrix: its lower 18 bits, by 16.
static const char *matrix_at(uint64_t descriptor)
{
    char *shared = emulated_shared();
    uint64_t offset = (descriptor & 0x3fff) << 4;
    uint64_t at = (offset - (uintptr_t)shared) & 0x3ffff;
    if ((descriptor >> 62) != 1 || (descriptor >> 32 & 0x3fff) != 8 * ROW / 16)
        emulated_fail("has a matrix that is not swizzled by rows of 128 bytes");
    return shared + at;
}

// An element of a matrix whose panels have so many rows.
static float element(const struct product *p, const char *matrix, int rows, int row, int column)
{
    uint32_t at = (uint32_t)(column / PANEL * rows * ROW + row * ROW + column % PANEL * 2);
    const char *from = matrix + (at ^ (at >> 7 & 7) << 4);
    uint16_t x;
    gpu_access(from, sizeof x, sizeof x, 0, sizeof x);
    memcpy(&x, from, sizeof x);
    return p->widen(x);
}

// Two rows of the left matrix that the thread has sums of, from the words of its warp.
static void left_of_words(const struct product *p, const uint32_t *words, float *out[2])
{
    uint32_t lane = gpu_llvm_nvvm_read_ptx_sreg_tid_x() % WARP;
    for (int step = 0; step < p->steps; step++) {
        const struct emulated_lane *all = emulated_meet("product of a warpgroup", UINT32_MAX,
                                                        words + 4 * step, 4 * sizeof *words);
        const struct emulated_lane *x = &all[lane / 4 * 4];
        for (int row = 0; row < 2; row++)
            for (int k = 0; k < 16; k++) {
                uint32_t word = x[k / 2 % 4].words[k / 8 * 2 + row];
                out[row][16 * step + k] = p->widen((uint16_t)(k % 2 ? word >> 16 : word));
            }
    }
}

static void left_of_memory(const struct product *p, uint64_t descriptor, float *out[2])
{
    uint32_t thread = gpu_llvm_nvvm_read_ptx_sreg_tid_x();
    int first = (int)(thread / WARP % WARPS * 16 + thread % WARP / 4);
    for (int row = 0; row < 2; row++)
        for (int k = 0; k < 16 * p->steps; k++)
            out[row][k] = element(p, matrix_at(descriptor), p->left, first + 8 * row, k);
}

void gpu_warpgroup(const char *text, float *sums, const void *left, uint64_t right)
{
    struct product p;
    float rows[2][16 * 16], *x[2] = {rows[0], rows[1]};
    uint32_t lane = gpu_llvm_nvvm_read_ptx_sreg_tid_x() % WARP;
    if (sscanf(text, "// warpgroup %7s sums %d steps %d adds %d left %d right %d turned %d",
               p.type, &p.sums, &p.steps, &p.adds, &p.left, &p.right, &p.turned) != 7 ||
        p.steps > 16)
        emulated_fail("has a product of a warpgroup that the fake GPU does not know");
    p.widen = strcmp(p.type, "bf16") ? dtype_f16_to_f32 : dtype_bf16_to_f32;
    const char *y = matrix_at(right);
    if (p.left)
        left_of_memory(&p, *(const uint64_t *)left, x);
    else
        left_of_words(&p, left, x);
    for (int i = 0; i < p.sums / 2; i++) { // a column
        int column = i / 2 * 8 + (int)(lane % 4) * 2 + i % 2;
        int at[2] = {i / 2 * 4 + i % 2, i / 2 * 4 + i % 2 + 2};
        double sum[2] = {p.adds ? (double)sums[at[0]] : 0, p.adds ? (double)sums[at[1]] : 0};
        for (int k = 0; k < 16 * p.steps; k++) {
            float z = p.turned ? element(&p, y, p.right, k, column)
                               : element(&p, y, p.right, column, k);
            for (int row = 0; row < 2; row++)
                sum[row] += (double)(x[row][k] * z);
        }
        for (int row = 0; row < 2; row++)
            sums[at[row]] = (float)sum[row];
    }
}
