// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: plain products of f32, f64 and complex numbers, of half types and bytes into what is wider, columns one
// after another.
#include "fake_cuda/fake.h"

#include "base/dtype.h"

#include <complex.h>

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? 99 : 0;
    return CUBLAS_STATUS_SUCCESS;
}

struct cublasLtContext {
    int unused;
};

struct cublasLtMatrixLayout {
    cudaDataType type;
    int64_t rows, columns, leading, stride;
    int32_t count;
};

struct cublasLtMatmulPreference {
    uint32_t alignment; // of all operands
    size_t workspace;
};

// What the words of a description hold.
enum { OP_A, OP_B, EPILOGUE, BIAS, BIAS_TYPE, COMPUTE, SCALE };

static int preferred_alignment, algorithms_made, compute_type;
int fake_cuda_alignment(void) { return preferred_alignment; }
int fake_cuda_compute(void) { return compute_type; }

size_t cublasLtGetVersion(void) { return 130001; }

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    (void)status;
    return "fake status";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    static struct cublasLtContext only;
    *handle = &only;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    *out = calloc(1, sizeof **out);
    (*out)->data[EPILOGUE] = CUBLASLT_EPILOGUE_DEFAULT;
    (*out)->data[COMPUTE] = (uint64_t)compute;
    (*out)->data[SCALE] = (uint64_t)scale;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    int word = attribute == CUBLASLT_MATMUL_DESC_TRANSA           ? OP_A
               : attribute == CUBLASLT_MATMUL_DESC_TRANSB         ? OP_B
               : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE       ? EPILOGUE
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER   ? BIAS
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? BIAS_TYPE
                                                                  : -1;
    if (word < 0 || bytes != (word == BIAS ? 8 : 4))
        return 7;
    d->data[word] = 0;
    memcpy(&d->data[word], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    *out = calloc(1, sizeof **out);
    **out = (struct cublasLtMatrixLayout){.type = type,
                                          .rows = (int64_t)rows,
                                          .columns = (int64_t)columns,
                                          .leading = leading,
                                          .count = 1};
    return leading >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : 7;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == 4)
        memcpy(&layout->count, value, bytes);
    else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == 8)
        memcpy(&layout->stride, value, bytes);
    else
        return 7;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = calloc(1, sizeof **out);
    (*out)->alignment = 256;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wish,
                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                     const void *value, size_t bytes)
{
    uint32_t alignment;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        memcpy(&wish->workspace, value, sizeof wish->workspace);
        return bytes == 8 ? CUBLAS_STATUS_SUCCESS : 7;
    }
    if (attribute < CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES ||
        attribute > CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES || bytes != 4)
        return 7;
    memcpy(&alignment, value, sizeof alignment);
    wish->alignment = alignment < wish->alignment ? alignment : wish->alignment;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t wish)
{
    free(wish);
    return CUBLAS_STATUS_SUCCESS;
}

#define FAKE_WORKSPACE 1000

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t to,
    cublasLtMatmulPreference_t wish, int most, cublasLtMatmulHeuristicResult_t *out, int *count)
{
    (void)handle;
    (void)a;
    (void)b;
    (void)c;
    (void)to;
    *count = most > 0 && d->data[COMPUTE] != (uint64_t)fake_number("FAKE_CUDA_NO_ROUTINE", 0);
    size_t workspace = wish->workspace < FAKE_WORKSPACE ? 0 : FAKE_WORKSPACE;
    *out = (cublasLtMatmulHeuristicResult_t){.algo = {{(uint64_t)++algorithms_made, workspace}},
                                             .workspaceSize = workspace};
    preferred_alignment = (int)wish->alignment;
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_complex(cudaDataType type) { return type == CUDA_C_32F || type == CUDA_C_64F; }

static double complex element(const void *matrix, cudaDataType type, int64_t at)
{
    return type == CUDA_R_8I     ? ((const int8_t *)matrix)[at]
           : type == CUDA_R_32I  ? ((const int32_t *)matrix)[at]
           : type == CUDA_R_16F  ? (double)dtype_f16_to_f32(((const uint16_t *)matrix)[at])
           : type == CUDA_R_16BF ? (double)dtype_bf16_to_f32(((const uint16_t *)matrix)[at])
           : type == CUDA_R_32F  ? (double)((const float *)matrix)[at]
           : type == CUDA_R_64F  ? ((const double *)matrix)[at]
           : type == CUDA_C_32F  ? (double complex)((const float complex *)matrix)[at]
                                 : ((const double complex *)matrix)[at];
}

static void set_element(void *matrix, cudaDataType type, int64_t at, double complex x)
{
    if (type == CUDA_R_32I)
        ((int32_t *)matrix)[at] = (int32_t)creal(x);
    else if (type == CUDA_R_16F)
        ((uint16_t *)matrix)[at] = dtype_f16_from_f64(creal(x));
    else if (type == CUDA_R_16BF)
        ((uint16_t *)matrix)[at] = dtype_bf16_from_f64(creal(x));
    else if (type == CUDA_R_32F)
        ((float *)matrix)[at] = (float)creal(x);
    else if (type == CUDA_R_64F)
        ((double *)matrix)[at] = creal(x);
    else if (type == CUDA_C_32F)
        ((float complex *)matrix)[at] = (float complex)x;
    else
        ((double complex *)matrix)[at] = x;
}

// The first words of the description, and copies of the rest.
struct fake_product {
    uint64_t d[COMPUTE + 1];
    const void *a, *b, *c, *bias;
    void *to;
    struct cublasLtMatrixLayout of_a, of_b, of_c, of_to;
    double complex alpha, beta;
};

static double complex factor(uint64_t op, const void *matrix,
                             const struct cublasLtMatrixLayout *of, int64_t number, int64_t row,
                             int64_t column)
{
    int64_t at = op == CUBLAS_OP_N ? column * of->leading + row : row * of->leading + column;
    double complex x = element(matrix, of->type, number * of->stride + at);
    return op == CUBLAS_OP_C ? conj(x) : x;
}

// The parts of complex numbers are multiplied by hand: infinities are no concern of a product.
static double complex multiply(double complex x, double complex y)
{
    return CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y),
                 creal(x) * cimag(y) + cimag(x) * creal(y));
}

static double complex multiply_element(const struct fake_product *p, int64_t matrix, int64_t i,
                                       int64_t j)
{
    const struct cublasLtMatrixLayout *a = &p->of_a, *c = &p->of_c;
    double complex sum = 0;
    int64_t inner = p->d[OP_A] == CUBLAS_OP_N ? a->columns : a->rows;
    for (int64_t l = 0; l < inner; l++)
        sum += multiply(factor(p->d[OP_A], p->a, a, matrix, i, l),
                        factor(p->d[OP_B], p->b, &p->of_b, matrix, l, j));
    sum = multiply(sum, p->alpha);
    if (p->beta != 0)
        sum +=
            multiply(p->beta, element(p->c, c->type, matrix * c->stride + j * c->leading + i));
    if (p->d[EPILOGUE] & CUBLASLT_EPILOGUE_BIAS)
        sum += element(p->bias, (cudaDataType)p->d[BIAS_TYPE], i);
    return p->d[EPILOGUE] & CUBLASLT_EPILOGUE_RELU && creal(sum) <= 0 ? 0 : sum;
}

static void run_product(void *argument)
{
    const struct fake_product *p = argument;
    for (int64_t matrix = 0; matrix < p->of_c.count; matrix++)
        for (int64_t j = 0; j < p->of_c.columns; j++)
            for (int64_t i = 0; i < p->of_c.rows; i++)
                set_element(p->to, p->of_to.type,
                            matrix * p->of_to.stride + j * p->of_to.leading + i,
                            multiply_element(p, matrix, i, j));
}

// Whether the library has a product of the types.  Of bytes it is that of rows of 4 with rows of 4, in i32.
static bool multiplies(cublasLtMatmulDesc_t d, const struct cublasLtMatrixLayout *a,
                       const struct cublasLtMatrixLayout *b,
                       const struct cublasLtMatrixLayout *c)
{
    bool is_wide = a->type == CUDA_R_32F || a->type == CUDA_R_64F || is_complex(a->type);
    uint64_t scale = d->data[SCALE];
    if (a->type == CUDA_R_8I)
        return c->type == CUDA_R_32I && scale == CUDA_R_32I &&
               d->data[COMPUTE] == CUBLAS_COMPUTE_32I && d->data[OP_A] == CUBLAS_OP_T &&
               d->data[OP_B] == CUBLAS_OP_N && d->data[EPILOGUE] == CUBLASLT_EPILOGUE_DEFAULT &&
               (a->leading | b->leading | c->leading | a->rows | a->columns) % 4 == 0;
    if (!is_wide)
        return (c->type == a->type || c->type == CUDA_R_32F) && scale == CUDA_R_32F &&
               d->data[COMPUTE] == CUBLAS_COMPUTE_32F;
    return c->type == a->type && scale == (uint64_t)c->type;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t of_a,
                              const void *b, cublasLtMatrixLayout_t of_b, const void *beta,
                              const void *c, cublasLtMatrixLayout_t of_c, void *to,
                              cublasLtMatrixLayout_t of_to,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    cudaDataType type = of_a->type, scale = (cudaDataType)d->data[SCALE];
    if (!handle || !stream || !algorithm->data[0] || (algorithm->data[1] && !workspace) ||
        workspace_bytes < algorithm->data[1] || type != of_b->type ||
        of_to->type != of_c->type || !multiplies(d, of_a, of_b, of_c))
        return 7;
    compute_type = (int)d->data[COMPUTE];
    struct fake_product p = {.a = fake_near((CUdeviceptr)(uintptr_t)a),
                             .b = fake_near((CUdeviceptr)(uintptr_t)b),
                             .c = fake_near((CUdeviceptr)(uintptr_t)c),
                             .bias = fake_near((CUdeviceptr)d->data[BIAS]),
                             .to = fake_near((CUdeviceptr)(uintptr_t)to),
                             .of_a = *of_a,
                             .of_b = *of_b,
                             .of_c = *of_c,
                             .of_to = *of_to,
                             .alpha = element(alpha, scale, 0),
                             .beta = element(beta, scale, 0)};
    memcpy(p.d, d->data, sizeof p.d);
    fake_submit(stream, run_product, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a,
                            cublasOperation_t op_b, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType type, int lda, const void *b,
                            cudaDataType type_b, int ldb, const void *beta, void *c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm)
{
    bool is_a = op_a == CUBLAS_OP_N, is_b = op_b == CUBLAS_OP_N;
    compute_type = (int)compute;
    if (type != type_b || type != type_c || algorithm != CUBLAS_GEMM_DEFAULT)
        return 7;
    struct cublasLtMatrixLayout of_c = {type, m, n, ldc, 0, 1};
    struct fake_product p = {.a = fake_near((CUdeviceptr)(uintptr_t)a),
                             .b = fake_near((CUdeviceptr)(uintptr_t)b),
                             .c = fake_near((CUdeviceptr)(uintptr_t)c),
                             .to = fake_near((CUdeviceptr)(uintptr_t)c),
                             .of_a = {type, is_a ? m : k, is_a ? k : m, lda, 0, 1},
                             .of_b = {type, is_b ? k : n, is_b ? n : k, ldb, 0, 1},
                             .of_c = of_c,
                             .of_to = of_c,
                             .alpha = element(alpha, type, 0),
                             .beta = element(beta, type, 0)};
    p.d[OP_A] = (uint64_t)op_a;
    p.d[OP_B] = (uint64_t)op_b;
    fake_submit(fake_blas_stream(handle), run_product, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}
