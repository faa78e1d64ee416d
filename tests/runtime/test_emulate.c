// SPDX-License-Identifier: Apache-2.0
// What emulate.h finds wrong in kernels, and what it does not; the kernels are C functions here.
#include "fake_cuda/emulate.h"

#include "base/dtype.h"
#include "fake_cuda/device.h"
#include "support/suite.h"

#include <check.h>
#include <stdint.h>

enum { THREADS = 64, BLOCKS = 3 };
enum { SHARED = 1024, MEMORY = 2048 }; // bytes

#define ALL UINT32_MAX
static uint32_t me(void) { return gpu_llvm_nvvm_read_ptx_sreg_tid_x(); }
static uint32_t block(void) { return gpu_llvm_nvvm_read_ptx_sreg_ctaid_x(); }
static int32_t *shared(void) { return emulated_symbol(NULL, "jot_shared"); }

static int32_t load(const int32_t *at)
{
    gpu_access((const char *)at, 4, 4, 0, 4);
    return *at;
}

static void store(int32_t *at, int32_t x)
{
    gpu_access((const char *)at, 4, 4, 1, 4);
    *at = x;
}

static int32_t count(int32_t *at)
{
    gpu_access((const char *)at, 4, 4, 2, 4);
    return (*at)++;
}

// What is wrong with three launches, one in each order; "" for nothing.
static const char *launch(void (*thread)(void **), int32_t *memory)
{
    CUlaunchConfig c = {.gridDimX = BLOCKS, .blockDimX = THREADS, .sharedMemBytes = SHARED};
    void *operands[] = {memory};
    for (int order = 0; order < 3; order++)
        if (!emulate("kernel", thread, &c, operands))
            return emulated_fault();
    return "";
}

static int32_t *memory;
static CUstream stream; // for the life of the process

static void allocate(void)
{
    CUdeviceptr at;
    CUmemoryPool pool;
    CUcontext context;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent_v2(context);
    cuStreamCreate(&stream, 0);
    cuMemPoolCreate(&pool, &(CUmemPoolProps){0});
    cuMemAllocFromPoolAsync(&at, MEMORY, pool, stream);
    memory = fake_near(at);
    memset(memory, 0, MEMORY);
}

// ---- right ----

static void turns_round(void **operands)
{
    store(&shared()[me()], (int32_t)(me() + 100 * block()));
    gpu_llvm_nvvm_barrier0();
    store((int32_t *)operands[0] + block() * THREADS + me(),
          load(&shared()[THREADS - 1 - me()]));
}

START_TEST(barriers_order)
{
    ck_assert_str_eq(launch(turns_round, memory), "");
    for (int i = 0; i < THREADS * BLOCKS; i++)
        ck_assert_int_eq(memory[i], THREADS - 1 - i % THREADS + 100 * (i / THREADS));
}
END_TEST

static void asks_the_warp(void **operands)
{
    uint32_t x = me() * 10, lane = me() % 32;
    uint32_t up = gpu_llvm_nvvm_shfl_sync_up_i32(ALL, x, 3, 0);
    uint32_t down = gpu_llvm_nvvm_shfl_sync_down_i32(ALL, x, 3, 31);
    uint32_t from = gpu_llvm_nvvm_shfl_sync_idx_i32(ALL, x, 5, 31);
    uint32_t odd = gpu_llvm_nvvm_match_any_sync_i32(ALL, me() % 2);
    bool some = gpu_llvm_nvvm_vote_any_sync(ALL, me() == 7);
    bool right = up == (lane < 3 ? x : x - 30) && down == (lane > 28 ? x : x + 30) &&
                 from == (me() / 32 * 32 + 5) * 10 &&
                 odd == (me() % 2 ? 0xaaaaaaaau : 0x55555555u) && some == (me() < 32);
    store((int32_t *)operands[0] + block() * THREADS + me(), right);
}

START_TEST(warps_exchange)
{
    ck_assert_str_eq(launch(asks_the_warp, memory), "");
    for (int i = 0; i < THREADS * BLOCKS; i++)
        ck_assert_int_eq(memory[i], 1);
}
END_TEST

// A warp's product of 16 by 16 and 16 by 8 numbers that come to what a block shares by copies.  Of
// memory the first 256 numbers are x by rows, the next 128 y by rows; the product follows.
enum { X = 256, Y = 128 };

static void multiplies(void **operands)
{
    uint16_t *x = operands[0], *rows = (uint16_t *)shared();
    uint32_t a[4], b[4], lane = me() % 32, eight = lane / 8 % 2 * 8, half = lane / 16 * 8;
    float *to = (float *)(x + X + Y) + lane / 4 * 8 + lane % 4 * 2, c[4];
    if (block() || me() >= 32)
        return;
    for (uint32_t i = lane; i < (X + Y) / 8; i += 32)
        gpu_llvm_nvvm_cp_async_cg_shared_global_16((char *)(rows + 8 * i), (char *)(x + 8 * i));
    gpu_llvm_nvvm_cp_async_wait_all();
    gpu_llvm_nvvm_bar_warp_sync(ALL);
    gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_b16_p3(
        a, (char *)(rows + (lane % 8 + eight) * 16 + half));
    gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16_p3(
        b, (char *)(rows + X + (lane % 8 + eight) * 8));
    gpu_llvm_nvvm_mma_m16n8k16_row_col_f32_f32(c, a[0], a[1], a[2], a[3], b[0], b[1], 1, 2, 3,
                                               4);
    memcpy(to, c, 2 * sizeof *c);
    memcpy(to + 64, c + 2, 2 * sizeof *c);
}

START_TEST(tensor_cores_multiply)
{
    uint16_t *x = (uint16_t *)memory, *y = x + X;
    const float *got = (const float *)(y + Y);
    for (int i = 0; i < X + Y; i++)
        x[i] = dtype_f16_from_f32((float)(i * 37 % 101 - 50));
    ck_assert_str_eq(launch(multiplies, memory), "");
    for (int i = 0; i < 16 * 8; i++) {
        float want = (float)(1 + i % 2 + (i >= 64 ? 2 : 0));
        for (int k = 0; k < 16; k++)
            want += dtype_f16_to_f32(x[i / 8 * 16 + k]) * dtype_f16_to_f32(y[k * 8 + i % 8]);
        ck_assert_float_eq(got[i], want);
    }
}
END_TEST

// The block that counts last adds up what all have stored.
static void last_adds(void **operands)
{
    int32_t *at = operands[0];
    if (me() == 0) {
        store(&at[1 + block()], 7);
        if (count(at) == BLOCKS - 1) {
            store(&at[10], load(&at[1]) + load(&at[2]) + load(&at[3]));
            *at = 0;
        }
    }
}

START_TEST(blocks_count)
{
    ck_assert_str_eq(launch(last_adds, memory), "");
    ck_assert_int_eq(memory[10], 21);
}
END_TEST

// ---- wrong ----

static void reads_too_early(void **operands)
{
    (void)operands;
    store(&shared()[me()], 1);
    gpu_llvm_nvvm_bar_warp_sync(ALL); // the other warp may be late
    load(&shared()[THREADS - 1 - me()]);
}

static void writes_too_early(void **operands)
{
    (void)operands;
    load(&shared()[0]);
    if (me() == 0)
        store(&shared()[0], 1);
}

// The first threads copy, 16 bytes each.
static void copy(void **operands)
{
    if (me() < THREADS / 4)
        gpu_llvm_nvvm_cp_async_cg_shared_global_16((char *)&shared()[4 * me()], operands[0]);
}

static void copies_too_early(void **operands)
{
    if (me() >= THREADS / 4)
        load(&shared()[me()]);
    copy(operands);
    gpu_llvm_nvvm_barrier0();
    gpu_llvm_nvvm_cp_async_wait_all();
}

static void waits_too_late(void **operands)
{
    copy(operands);
    gpu_llvm_nvvm_barrier0();
    gpu_llvm_nvvm_cp_async_wait_all();
    load(&shared()[me()]);
}

static void all_write(void **operands) { store(operands[0], 1); }

static void writes_behind(void **operands) { store((int32_t *)operands[0] + MEMORY / 4, 1); }

static void writes_behind_shared(void **operands)
{
    (void)operands;
    store(&shared()[SHARED / 4 + me()], 1);
}

static void some_wait(void **operands)
{
    (void)operands;
    if (me() < 32)
        gpu_llvm_nvvm_barrier0();
}

static void half_a_warp_waits(void **operands)
{
    (void)operands;
    if (me() % 2)
        gpu_llvm_nvvm_bar_warp_sync(ALL);
}

static void blocks_meet(void **operands)
{
    int32_t *at = operands[0];
    if (me() == 0)
        store(&at[0], load(&at[0]) + 1);
}

START_TEST(faults_are_found)
{
    static const struct {
        void (*thread)(void **);
        const char *text;
    } wrong[] = {
        {reads_too_early, "another thread"},
        {writes_too_early, "writes what another thread reads"},
        {copies_too_early, "another thread"},
        {waits_too_late, "another thread"},
        {all_write, "writes what another thread writes"},
        {writes_behind, "where it has no memory"},
        {writes_behind_shared, "where it has no memory"},
        {some_wait, "waits for threads that do not come"},
        {half_a_warp_waits, "waits for threads that do not come"},
        {blocks_meet, "another thread"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *fault = launch(wrong[i].thread, memory);
        ck_assert_msg(strstr(fault, wrong[i].text), "%s: \"%s\"", wrong[i].text, fault);
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, allocate, NULL);
    tcase_add_test(tests, barriers_order);
    tcase_add_test(tests, warps_exchange);
    tcase_add_test(tests, tensor_cores_multiply);
    tcase_add_test(tests, blocks_count);
    tcase_add_test(tests, faults_are_found);
}

int main(void) { return suite_run("emulate", add_tests); }
