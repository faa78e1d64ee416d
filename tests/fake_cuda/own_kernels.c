// SPDX-License-Identifier: Apache-2.0
// The kernels of runtime/cuda/*_kernels.inc as C, for the threads of emulate.h.
#include "fake_cuda/own_kernels.h"

#include "fake_cuda/device.h"
#include "fake_cuda/emulate.h"
#include "fake_cuda/fake.h"
#include "runtime/cuda/gram.h"
#include "runtime/cuda/lu_kernels.h"
#include "runtime/cuda/sort_kernels.h"
#include "runtime/cuda/together_kernels.h"

#include <math.h>

struct index {
    unsigned x;
};
static struct index thread_index(void)
{
    return (struct index){gpu_llvm_nvvm_read_ptx_sreg_tid_x()};
}
static struct index block_index(void)
{
    return (struct index){gpu_llvm_nvvm_read_ptx_sreg_ctaid_x()};
}
static struct index grid_size(void)
{
    return (struct index){gpu_llvm_nvvm_read_ptx_sreg_nctaid_x()};
}
static double from_bits(long long bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static unsigned reduce_max(unsigned x)
{
    const struct emulated_lane *all = emulated_meet("reduce", ~0u, &x, sizeof x);
    for (int i = 0; i < 32; i++)
        x = all[i].words[0] > x ? all[i].words[0] : x;
    return x;
}
static int first_lane(int is)
{
    const struct emulated_lane *all = emulated_meet("ballot", ~0u, &is, sizeof is);
    for (int i = 0; i < 32; i++)
        if (all[i].words[0])
            return i;
    return -1;
}

#define KERNELS(...) __VA_ARGS__
#define DEVICE static
#define KERNEL(...) __attribute__((unused)) static void
#define SHARED static
#define VOLATILE volatile
#define UNROLL
#define ROLLED
#define REDUCE_MAX reduce_max
#define REDUCE_MIN(x) (~reduce_max(~(x)))
#define FIRST_LANE first_lane
#define ALIGNED _Alignas(16)
#define COPY(to, from, bytes) (memset(to, 0, 16), (bytes) == 16 ? memcpy(to, from, 16) : NULL)
#define COPY_WAIT()
#define CLUSTER_SYNC __syncthreads
#define MESSAGE_OPEN(bar) (void)(bar)
#define MESSAGE_EXPECT(bar, bytes) (void)(bytes)
#define MESSAGE_SEND(to, from, block, bar) ((void)(bar), memcpy(to, from, 16))
#define MESSAGE_WAIT(bar, phase) ((void)(bar), (void)(phase), __syncthreads())
#define FROM_BITS from_bits
#define ADDRESS(x) ((char *)fake_near((CUdeviceptr)(uintptr_t)(x)))
#define SYSTEM_FENCE()
#define SEND(at, x) (*(at) = (x))
#define AWAIT(at, x, stop) ((void)(stop), (int)(*(at) - (x)) < 0 ? abort() : (void)0)
#define threadIdx thread_index()
#define blockIdx block_index()
#define gridDim grid_size()
#define __syncthreads gpu_llvm_nvvm_barrier0
#define __syncwarp() gpu_llvm_nvvm_bar_warp_sync(~0u)
#define __shfl_up_sync(mask, x, by) gpu_llvm_nvvm_shfl_sync_up_i32(mask, x, by, 0)
#define __shfl_sync(mask, x, from) gpu_llvm_nvvm_shfl_sync_idx_i32(mask, x, from, 0)
#define __popc __builtin_popcount
#define __clz __builtin_clz
#define __threadfence()
#define atomicAdd(at, x) __atomic_fetch_add(at, x, __ATOMIC_SEQ_CST)
#define atomicOr(at, x) __atomic_fetch_or(at, x, __ATOMIC_SEQ_CST)

#define NUMBER(word, value) enum { word = (int)(value) };
SORT_WORDS(NUMBER)
LU_NUMBERS(NUMBER)
GRAM_NUMBERS(NUMBER)
TOGETHER_WORDS(NUMBER)
#undef NUMBER

// Parameter i of a launch: an address, which may be NULL, or a number.
#define AT(i) (fake_far(operands[i]) ? operands[i] : NULL)
#define N(i) ((long long)fake_far(operands[i]))

#define KEY uint32_t
#define INFINITE 0x7f800000u
#define TAGGED 0
#define NAMED(name) name##_u32
#include "fake_cuda/own_sort.inc"
#undef TAGGED
#undef NAMED
#define TAGGED 1
#define NAMED(name) name##_u32_tagged
#include "fake_cuda/own_sort.inc"
#undef KEY
#undef INFINITE
#undef NAMED
#define KEY unsigned long long
#define INFINITE 0x7ff0000000000000ull
#define NAMED(name) name##_u64_tagged
#include "fake_cuda/own_sort.inc"
#undef TAGGED
#undef NAMED
#define TAGGED 0
#define NAMED(name) name##_u64
#include "fake_cuda/own_sort.inc"
#undef NAMED

#define REAL float
#define PARTS 1
#define NAMED(name) name##_f32
#include "fake_cuda/own_gram.inc"
#include "fake_cuda/own_lu.inc"
#include "fake_cuda/own_matrix.inc"
#undef PARTS
#undef NAMED
#define PARTS 2
#define NAMED(name) name##_c64
#include "fake_cuda/own_matrix.inc"
#undef REAL
#undef PARTS
#undef NAMED
#define REAL double
#define PARTS 1
#define NAMED(name) name##_f64
#include "fake_cuda/own_lu.inc"
#include "fake_cuda/own_matrix.inc"
#include "fake_cuda/own_wide.inc"
#undef PARTS
#undef NAMED
#define PARTS 2
#define NAMED(name) name##_c128
#include "fake_cuda/own_matrix.inc"
#include "fake_cuda/own_wide.inc"
#undef PARTS
#undef NAMED
#define PARTS 1
#define SIDE 16
#define NAMED(name) name##_f64_16
#include "fake_cuda/own_small.inc"
#undef REAL
#undef NAMED
#define REAL float
#define NAMED(name) name##_f32_16
#include "fake_cuda/own_small.inc"
#undef SIDE
#undef NAMED
#define SIDE 32
#define NAMED(name) name##_f32_32
#include "fake_cuda/own_small.inc"
#undef SIDE
#undef PARTS
#undef NAMED
#define SIDE 16
#define PARTS 2
#define NAMED(name) name##_c64_16
#include "fake_cuda/own_small.inc"

#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL float
#define PARTS 1
#define SIDE 32
#define NAMED(name) name##_f32_32_qr
#include "fake_cuda/own_qr.inc"
#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL float
#define PARTS 1
#define SIDE 64
#define NAMED(name) name##_f32_64_qr
#include "fake_cuda/own_qr.inc"
#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL double
#define PARTS 1
#define SIDE 32
#define NAMED(name) name##_f64_32_qr
#include "fake_cuda/own_qr.inc"
#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL double
#define PARTS 1
#define SIDE 64
#define NAMED(name) name##_f64_64_qr
#include "fake_cuda/own_qr.inc"
#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL float
#define PARTS 2
#define SIDE 32
#define NAMED(name) name##_c64_32_qr
#include "fake_cuda/own_qr.inc"
#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL float
#define PARTS 2
#define SIDE 64
#define NAMED(name) name##_c64_64_qr
#include "fake_cuda/own_qr.inc"
#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED
#define REAL double
#define PARTS 2
#define SIDE 32
#define NAMED(name) name##_c128_32_qr
#include "fake_cuda/own_qr.inc"

#undef REAL
#undef PARTS
#undef SIDE
#undef NAMED

#define TOGETHER_NAME(name, combiner, type) TOGETHER_NAME_(name, combiner, type)
#define TOGETHER_NAME_(name, combiner, type) name##_##combiner##_##type
#define COMBINER sum
#define OF_INTEGERS TOGETHER_SUM
#define OF_FLOATS TOGETHER_SUM_FLOAT
#include "fake_cuda/own_together_types.inc"
#define COMBINER product
#define OF_INTEGERS TOGETHER_PRODUCT
#define OF_FLOATS TOGETHER_PRODUCT_FLOAT
#include "fake_cuda/own_together_types.inc"
#define COMBINER max
#define OF_INTEGERS TOGETHER_LARGER
#define OF_FLOATS TOGETHER_LARGER_FLOAT
#include "fake_cuda/own_together_types.inc"
#define COMBINER min
#define OF_INTEGERS TOGETHER_SMALLER
#define OF_FLOATS TOGETHER_SMALLER_FLOAT
#include "fake_cuda/own_together_types.inc"
#define COMBINER and
#define OF_INTEGERS TOGETHER_AND
#include "fake_cuda/own_together_types.inc"
#define COMBINER or
#define OF_INTEGERS TOGETHER_OR
#include "fake_cuda/own_together_types.inc"
#define REDUCES 0
#define COMBINE(a, b) (a)
#define ELEMENT unsigned char
#define NAMED(name) name##_1
#include "fake_cuda/own_together.inc"
#undef ELEMENT
#undef NAMED
#define ELEMENT unsigned long long
#define NAMED(name) name##_8
#include "fake_cuda/own_together.inc"

#define SORT(suffix)                                                                           \
    {"sort_count" #suffix, 5, run_sort_count##suffix, NULL},                                   \
        {"sort_pass" #suffix, 10, run_sort_pass##suffix, NULL},                                \
        {"sort_restore" #suffix, 4, run_sort_restore##suffix, NULL},                           \
        {"sort_rows" #suffix, 4, run_sort_rows##suffix, NULL},                                 \
        {"sort_part" #suffix, 10, run_sort_part##suffix, NULL},                                \
        {"sort_top" #suffix, 13, run_sort_top##suffix, NULL},                                  \
        {"sort_gather" #suffix, 8, run_sort_gather##suffix, NULL},
#define MATRIX(suffix)                                                                         \
    {"scale" #suffix, 3, run_scale##suffix, NULL},                                             \
        {"turn" #suffix, 10, run_turn##suffix, NULL},                                          \
        {"symmetrize" #suffix, 3, run_symmetrize##suffix, NULL},                               \
        {"cholesky_judge" #suffix, 4, run_cholesky_judge##suffix, NULL},                       \
        {"cholesky_end" #suffix, 3, run_cholesky_end##suffix, NULL},                           \
        {"order_rows" #suffix, 6, run_order_rows##suffix, NULL},                               \
        {"addresses" #suffix, 4, run_addresses##suffix, NULL},                                 \
        {"spoil" #suffix, 5, run_spoil##suffix, NULL},
#define WIDE(suffix)                                                                           \
    {"widen" #suffix, 4, run_widen##suffix, NULL},                                             \
        {"narrow" #suffix, 4, run_narrow##suffix, NULL},                                       \
        {"roots" #suffix, 5, run_roots##suffix, NULL},                                         \
        {"descend" #suffix, 3, run_descend##suffix, NULL},                                     \
        {"compare" #suffix, 4, run_compare##suffix, NULL},                                     \
        {"weigh" #suffix, 4, run_weigh##suffix, NULL},                                         \
        {"settle" #suffix, 6, run_settle##suffix, NULL},                                       \
        {"multiply" #suffix, 4, run_multiply##suffix, NULL},                                   \
        {"lower" #suffix, 2, run_lower##suffix, NULL},                                         \
        {"unravel" #suffix, 3, run_unravel##suffix, NULL},                                     \
        {"narrow_lower" #suffix, 5, run_narrow_lower##suffix, NULL},                           \
        {"stretched" #suffix, 6, run_stretched##suffix, NULL},                                 \
        {"subtract" #suffix, 3, run_subtract##suffix, NULL},                                   \
        {"scatter" #suffix, 2, run_scatter##suffix, NULL},                                     \
        {"grown" #suffix, 6, run_grown##suffix, NULL},
#define LU(suffix)                                                                             \
    {"lu_panel" #suffix, 10, run_lu_panel##suffix, NULL},                                      \
        {"lu_apply" #suffix, 8, run_lu_apply##suffix, NULL},
#define GRAM(suffix)                                                                           \
    {"gram" #suffix, 9, run_gram##suffix, NULL},                                               \
        {"gram_sum" #suffix, 6, run_gram_sum##suffix, NULL},
#define QR(suffix) {"qr_small" #suffix, 6, run_qr_small##suffix##_qr, NULL},
#define TOGETHER(suffix) {"together" #suffix, 10, run_give##suffix, run_take##suffix},
#define TOGETHER_INTEGERS(name)                                                                \
    TOGETHER(name##_i8)                                                                        \
    TOGETHER(name##_i16)                                                                       \
    TOGETHER(name##_i32)                                                                       \
    TOGETHER(name##_i64)                                                                       \
    TOGETHER(name##_u8) TOGETHER(name##_u16) TOGETHER(name##_u32) TOGETHER(name##_u64)
#define TOGETHER_ALL_TYPES(name)                                                               \
    TOGETHER_INTEGERS(name) TOGETHER(name##_f32) TOGETHER(name##_f64)
#define SMALL(suffix) {"jacobi" #suffix, 8, run_jacobi##suffix, NULL},

const struct own_kernel own_kernels[] = {
    SORT(_u32) SORT(_u32_tagged) SORT(_u64) SORT(_u64_tagged) MATRIX(_f32) MATRIX(_f64)
        MATRIX(_c64) MATRIX(_c128) WIDE(_f64) WIDE(_c128) SMALL(_f32_16) SMALL(_f32_32)
            SMALL(_f64_16) SMALL(_c64_16) LU(_f32) LU(_f64) GRAM(_f32) QR(_f32_32) QR(_f32_64)
                QR(_f64_32) QR(_f64_64) QR(_c64_32) QR(_c64_64) QR(_c128_32)
                    TOGETHER_ALL_TYPES(_sum) TOGETHER_ALL_TYPES(_product)
                        TOGETHER_ALL_TYPES(_max) TOGETHER_ALL_TYPES(_min)
                            TOGETHER_INTEGERS(_and) TOGETHER_INTEGERS(_or) TOGETHER(_1)
                                TOGETHER(_8){NULL, 0, NULL, NULL}};
