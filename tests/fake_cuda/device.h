// SPDX-License-Identifier: Apache-2.0
// What the code of a kernel calls: intrinsics of LLVM under names of C, and what is told of accesses.
// Two numbers of a half type are a uint32_t; where an intrinsic has several results, the first
// parameter says where they go.
#ifndef FAKE_CUDA_DEVICE_H
#define FAKE_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

uint32_t gpu_llvm_nvvm_read_ptx_sreg_tid_x(void);
uint32_t gpu_llvm_nvvm_read_ptx_sreg_ctaid_x(void);
uint32_t gpu_llvm_nvvm_read_ptx_sreg_nctaid_x(void);
uint32_t gpu_llvm_nvvm_read_ptx_sreg_nctaid_y(void);
void gpu_llvm_nvvm_barrier0(void);
void gpu_llvm_nvvm_barrier(uint32_t barrier, uint32_t count);
void gpu_llvm_nvvm_bar_warp_sync(uint32_t mask);
uint32_t gpu_llvm_nvvm_shfl_sync_up_i32(uint32_t mask, uint32_t x, uint32_t by, uint32_t end);
uint32_t gpu_llvm_nvvm_shfl_sync_down_i32(uint32_t mask, uint32_t x, uint32_t by, uint32_t end);
uint32_t gpu_llvm_nvvm_shfl_sync_idx_i32(uint32_t mask, uint32_t x, uint32_t from,
                                         uint32_t end);
float gpu_llvm_nvvm_shfl_sync_bfly_f32(uint32_t mask, float x, uint32_t by, uint32_t end);
uint32_t gpu_llvm_nvvm_match_any_sync_i32(uint32_t mask, uint32_t key);
bool gpu_llvm_nvvm_vote_any_sync(uint32_t mask, bool condition);
uint32_t gpu_llvm_nvvm_vote_ballot_sync(uint32_t mask, bool condition);
void gpu_llvm_nvvm_membar_gl(void);
float gpu_llvm_nvvm_rcp_approx_ftz_f(float x);
float gpu_llvm_nvvm_rsqrt_approx_ftz_f(float x);
float gpu_llvm_nvvm_ex2_approx_ftz_f(float x);
float gpu_llvm_nvvm_lg2_approx_ftz_f(float x);

// kind: 0 reads, 1 writes, 2 both at once.
void gpu_access(const char *at, uint32_t bytes, uint32_t element, uint32_t kind,
                uint32_t align);

// tensor.c
uint32_t gpu_llvm_nvvm_ff2bf16x2_rn(float high, float low);
uint32_t gpu_llvm_nvvm_ff2f16x2_rn(float high, float low);
uint32_t gpu_llvm_nvvm_fma_rn_bf16x2(uint32_t x, uint32_t y, uint32_t z);
uint32_t gpu_llvm_nvvm_fma_rn_f16x2(uint32_t x, uint32_t y, uint32_t z);
void gpu_llvm_nvvm_cp_async_cg_shared_global_16(char *to, const char *from);
void gpu_llvm_nvvm_cp_async_cg_shared_global_16_s(char *to, const char *from, uint32_t bytes);
void gpu_llvm_nvvm_cp_async_wait_all(void);
void gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_b16_p3(uint32_t out[4], const char *row);
void gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16_p3(uint32_t out[4], const char *row);
void gpu_llvm_nvvm_mma_m16n8k16_row_col_bf16(float out[4], uint32_t a0, uint32_t a1,
                                             uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
                                             float c0, float c1, float c2, float c3);
void gpu_llvm_nvvm_mma_m16n8k16_row_col_f32_f32(float out[4], uint32_t a0, uint32_t a1,
                                                uint32_t a2, uint32_t a3, uint32_t b0,
                                                uint32_t b1, float c0, float c1, float c2,
                                                float c3);

// warpgroup.c; the text is that of the assembly
void gpu_warpgroup(const char *text, float *sums, const void *left, uint64_t right);

#endif
