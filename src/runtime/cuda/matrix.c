// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/matrix.h"

#include "base/dtype.h"
#include "runtime/cuda/lu_kernels.h"

#include <stdio.h>

#define KERNELS(...) #__VA_ARGS__ "\n",
static const char *const matrices[] = {
#include "runtime/cuda/matrix_kernels.inc"
    NULL};
static const char *const wide[] = {
#include "runtime/cuda/wide_kernels.inc"
    NULL};
static const char *const small[] = {
#include "runtime/cuda/small_kernels.inc"
    NULL};
static const char *const qr[] = {
#include "runtime/cuda/qr_kernels.inc"
    NULL};
static const char *const lu[] = {
#include "runtime/cuda/lu_kernels.inc"
    NULL};
static const char numbers_of_lu[] = LU_NUMBERS(KERNELS_WORD);

jot_status cuda_matrix_kernels(struct cuda_device *d, enum cuda_matrix_file file,
                               jot_dtype dtype, const char *names, CUfunction *out)
{
    static const char *const *const files[] = {matrices, wide, small, small, qr, qr, lu};
    static const int sides[] = {0, 0, 16, 32, 32, 64, 0};
    int side = sides[file];
    char words[512], suffix[16];
    snprintf(suffix, sizeof suffix, side ? "_%s_%d" : "_%s", dtype_get(dtype)->name, side);
    snprintf(words, sizeof words,
             "#define REAL %s\n#define PARTS %d\n#define NAMED(name) name##%s\n"
             "#define FROM_BITS __longlong_as_double\n#define SIDE %d\n%s",
             dtype_real(dtype) == JOT_F32 ? "float" : "double", 1 + dtype_is_complex(dtype),
             suffix, side, file == CUDA_OF_LU ? numbers_of_lu : "");
    return cuda_kernels_get(d, words, files[file], names, suffix, out);
}
