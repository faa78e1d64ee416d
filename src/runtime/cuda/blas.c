// SPDX-License-Identifier: Apache-2.0
// Matrix products on a GPU, by cuBLASLt.  f32 is f32 unless the product says that less will do.
//
// The library's heuristic chooses the routine when a program is loaded, by shapes, types and
// alignments alone, so that the same product has the same bits in every run.
#include "runtime/cuda/device.h"
#include "runtime/cuda/gram.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/steps.h"

#include <string.h>

// What routines that cut the summed axis into parts may take; NVIDIA's advice for this generation.
#define WORKSPACE_MOST ((size_t)32 << 20)
#define WORKSPACE_ALIGN 256
// Terms of a sum that is not cut: routines that do so need more than one kernel.
#define WHOLE_SUM 64
// Terms of a sum that TF32 makes no faster: on an H200 1024 by 10 by 512 took 8.4 us, 3.3 in f32.
#define SHORT_SUM 16
// The best alignment that operands are known to have.
#define ALIGNMENT_MOST 16

struct cuda_product {
    struct cuda_product *next; // of the program
    const struct rt_gemm *numbers;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    struct cuda_gram gram; // if it has tiles, what is used in place of the library
    int axis;              // of the batch, the one that a call of the library runs over
};

static jot_status blas_status(struct cuda_device *d, cublasStatus_t result)
{
    if (result == CUBLAS_STATUS_SUCCESS)
        return JOT_OK;
    jot_status status = result == CUBLAS_STATUS_ALLOC_FAILED ? JOT_ERR_MEMORY : JOT_ERR_LIBRARY;
    return status_fail(status, "%s: a matrix product: %s", d->base.name,
                       cuda.cublaslt.cublasLtGetStatusString(result));
}

// In the context.
static jot_status open_library(struct cuda_device *d)
{
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_cublaslt));
    pthread_mutex_lock(&d->blas_lock);
    jot_status status =
        d->blas ? JOT_OK : blas_status(d, cuda.cublaslt.cublasLtCreate(&d->blas));
    pthread_mutex_unlock(&d->blas_lock);
    return status;
}

// ---- Describing a product

struct kind {
    cudaDataType operands, type, scale; // of a and b, of c, of factors
    cublasComputeType_t compute;
};

static cudaDataType type_of(uint32_t dtype)
{
    switch ((jot_dtype)dtype) {
    case JOT_BOOL:
    case JOT_I8:
        return CUDA_R_8I;
    case JOT_I32:
        return CUDA_R_32I;
    case JOT_F16:
        return CUDA_R_16F;
    case JOT_BF16:
        return CUDA_R_16BF;
    case JOT_F32:
        return CUDA_R_32F;
    case JOT_C64:
        return CUDA_C_32F;
    case JOT_F64:
        return CUDA_R_64F;
    default:
        return CUDA_C_64F;
    }
}

static struct kind kind_of(const struct rt_gemm *g)
{
    static const cublasComputeType_t of_f32[RT_PRECISION_COUNT] = {
        [RT_PRECISION_FULL] = CUBLAS_COMPUTE_32F,
        [RT_PRECISION_TF32] = CUBLAS_COMPUTE_32F_FAST_TF32,
        [RT_PRECISION_BF16] = CUBLAS_COMPUTE_32F_FAST_16BF,
        [RT_PRECISION_3TF32] = CUBLAS_COMPUTE_32F,
    };
    struct kind k = {.operands = type_of(g->operands), .type = type_of(g->dtype)};
    bool is_half = dtype_is_half((jot_dtype)g->operands);
    k.scale = is_half ? CUDA_R_32F : k.type;
    switch ((jot_dtype)g->dtype) {
    case JOT_I32:
        k.compute = CUBLAS_COMPUTE_32I;
        break;
    case JOT_F16:
    case JOT_BF16:
        k.compute = CUBLAS_COMPUTE_32F;
        break;
    case JOT_F32:
        k.compute = is_half || (g->precision == RT_PRECISION_TF32 && g->k <= SHORT_SUM)
                        ? CUBLAS_COMPUTE_32F
                        : of_f32[g->precision];
        break;
    case JOT_C64:
        k.compute = of_f32[g->precision];
        break;
    default:
        k.compute = CUBLAS_COMPUTE_64F;
    }
    return k;
}

static int operation_of(uint32_t transpose)
{
    return transpose == RT_TRANSPOSE_NO    ? CUBLAS_OP_N
           : transpose == RT_TRANSPOSE_YES ? CUBLAS_OP_T
                                           : CUBLAS_OP_C;
}

static int epilogue_of(const struct rt_gemm *g)
{
    bool has_bias = g->flags & RT_GEMM_BIAS;
    switch ((enum rt_activation)g->activation) {
    case RT_RELU:
        return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case RT_GELU:
        return has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
        return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
}

// As the library wants leading dimensions, also of matrices without elements.
static int64_t at_least_1(int64_t stride) { return stride > 0 ? stride : 1; }

// Columns one after the other, `leading` apart, so many times `stride` apart.
static cublasStatus_t make_layout(cublasLtMatrixLayout_t *out, cudaDataType type, int64_t rows,
                                  int64_t columns, int64_t leading, int64_t count,
                                  int64_t stride)
{
    int32_t batch = (int32_t)count;
    cublasStatus_t result = cuda.cublaslt.cublasLtMatrixLayoutCreate(
        out, type, (uint64_t)rows, (uint64_t)columns, at_least_1(leading));
    if (result == CUBLAS_STATUS_SUCCESS)
        result = cuda.cublaslt.cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = cuda.cublaslt.cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    return result;
}

static cublasStatus_t set_operation(cublasLtMatmulDesc_t operation, int attribute,
                                    const void *value, size_t bytes)
{
    return cuda.cublaslt.cublasLtMatmulDescSetAttribute(operation, attribute, value, bytes);
}

static cublasStatus_t make_operation(struct cuda_product *p, struct kind kind)
{
    const struct rt_gemm *g = p->numbers;
    // c' = op(b)' op(a)', as memory of rows is read by a library of columns.
    int32_t first = operation_of(g->transpose_b), second = operation_of(g->transpose_a);
    int32_t bias_type = kind.type, epilogue = epilogue_of(g);
    cublasStatus_t result =
        cuda.cublaslt.cublasLtMatmulDescCreate(&p->operation, kind.compute, kind.scale);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = set_operation(p->operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (result == CUBLAS_STATUS_SUCCESS)
        result =
            set_operation(p->operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (result == CUBLAS_STATUS_SUCCESS && epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        result = set_operation(p->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                               sizeof epilogue);
    if (result == CUBLAS_STATUS_SUCCESS && g->flags & RT_GEMM_BIAS)
        result = set_operation(p->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type,
                               sizeof bias_type);
    return result;
}

static cublasStatus_t make_layouts(struct cuda_product *p, struct kind kind)
{
    const struct rt_gemm *g = p->numbers;
    int64_t n = g->batch[p->axis];
    cublasStatus_t result =
        make_layout(&p->a, kind.operands, g->transpose_a ? g->m : g->k,
                    g->transpose_a ? g->k : g->m, g->lda, n, g->stride_a[p->axis]);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = make_layout(&p->b, kind.operands, g->transpose_b ? g->k : g->n,
                             g->transpose_b ? g->n : g->k, g->ldb, n, g->stride_b[p->axis]);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = make_layout(&p->c, kind.type, g->n, g->m, g->ldc, n, g->stride_c[p->axis]);
    return result;
}

// ---- Choosing a routine

static uint64_t largest_power(uint64_t x) { return x ? x & -x : ALIGNMENT_MOST; }

// What the addresses of a buffer are multiples of, in every trip.
static uint64_t alignment_of_buffer(const struct rt_plan *plan, uint32_t buffer)
{
    const struct rt_buffer *b = &plan->buffers[buffer];
    uint64_t all = b->offset | (uint64_t)(b->stride < 0 ? -b->stride : b->stride);
    uint64_t least = largest_power(all | ALIGNMENT_MOST);
    for (uint32_t i = 0; i < b->of_count; i++) {
        uint64_t of = alignment_of_buffer(plan, plan->operands[b->of_first + i]);
        least = of < least ? of : least;
    }
    return least;
}

// The same of the matrices of an operand that start calls of the library.
static uint32_t alignment_of(const struct rt_program *program, const struct rt_step *s,
                             const struct cuda_product *p, uint32_t operand,
                             const int64_t *strides)
{
    uint32_t dtype = operand < 2 ? p->numbers->operands : p->numbers->dtype;
    uint64_t element = dtype_get((jot_dtype)dtype)->bytes;
    uint64_t least =
        alignment_of_buffer(&program->plan, program->plan.operands[s->operand_first + operand]);
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
        if (i != p->axis && p->numbers->batch[i] > 1) {
            uint64_t of = largest_power((uint64_t)strides[i] * element | ALIGNMENT_MOST);
            least = of < least ? of : least;
        }
    return (uint32_t)least;
}

static cublasStatus_t prefer(cublasLtMatmulPreference_t wish, const struct rt_program *program,
                             const struct rt_step *s, const struct cuda_product *p)
{
    const struct rt_gemm *g = p->numbers;
    uint32_t last = s->operand_count - 1; // the addend, or c, whose strides it has
    struct {
        int attribute;
        uint32_t bytes;
    } alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
         alignment_of(program, s, p, 1, g->stride_b)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
         alignment_of(program, s, p, 0, g->stride_a)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
         alignment_of(program, s, p, g->flags & RT_GEMM_ADDEND ? last : 2, g->stride_c)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
         alignment_of(program, s, p, 2, g->stride_c)},
    };
    size_t workspace = g->k > WHOLE_SUM ? WORKSPACE_MOST : 0;
    cublasStatus_t result = cuda.cublaslt.cublasLtMatmulPreferenceSetAttribute(
        wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (size_t i = 0; i < 4 && result == CUBLAS_STATUS_SUCCESS; i++)
        result = cuda.cublaslt.cublasLtMatmulPreferenceSetAttribute(
            wish, alignments[i].attribute, &alignments[i].bytes, sizeof alignments[i].bytes);
    return result;
}

static cublasStatus_t choose(struct cuda_device *d, const struct rt_program *program,
                             const struct rt_step *s, struct cuda_product *p,
                             size_t *out_workspace)
{
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    cublasStatus_t result = cuda.cublaslt.cublasLtMatmulPreferenceCreate(&wish);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = prefer(wish, program, s, p);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = cuda.cublaslt.cublasLtMatmulAlgoGetHeuristic(
            d->blas, p->operation, p->b, p->a, p->c, p->c, wish, 1, &found, &count);
    if (wish)
        cuda.cublaslt.cublasLtMatmulPreferenceDestroy(wish);
    if (result == CUBLAS_STATUS_SUCCESS && count == 0)
        result = CUBLAS_STATUS_NOT_SUPPORTED;
    if (result == CUBLAS_STATUS_SUCCESS)
        p->algorithm = found.algo;
    *out_workspace = result == CUBLAS_STATUS_SUCCESS ? found.workspaceSize : 0;
    return result;
}

// ---- Binding

static bool is_empty(const struct rt_gemm *g)
{
    int64_t count = g->m * g->n;
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
        count *= g->batch[i];
    return count == 0;
}

// The longest axis of the batch goes into one call.
static int longest_axis(const struct rt_gemm *g)
{
    int axis = 0;
    for (int i = 1; i < RT_GEMM_BATCH_RANK; i++)
        axis = g->batch[i] > g->batch[axis] ? i : axis;
    return axis;
}

// As many for all products of a program as may run at once.
static jot_status widen_workspace(struct cuda_device *d, const struct rt_program *program,
                                  size_t bytes)
{
    struct cuda_code *code = program->code;
    if (bytes <= code->workspace_bytes)
        return JOT_OK;
    cuda_release(&d->base, code->workspace, code->workspaces * code->workspace_bytes);
    code->workspace = NULL;
    code->workspace_bytes = 0;
    code->workspaces =
        program->plan.gemm_count < CUDA_WORKSPACES ? program->plan.gemm_count : CUDA_WORKSPACES;
    bytes = (bytes + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    JOT_TRY(cuda_allocate(&d->base, code->workspaces * bytes, "the workspace of products",
                          &code->workspace));
    code->workspace_bytes = bytes;
    return JOT_OK;
}

static jot_status describe(struct cuda_device *d, const struct rt_program *program,
                           const struct rt_step *from, struct cuda_product *p)
{
    struct kind kind = kind_of(p->numbers);
    p->axis = longest_axis(p->numbers);
    if (p->numbers->batch[p->axis] > INT32_MAX)
        return status_fail(JOT_ERR_SHAPE, "%s: a matrix product of more than 2^31 matrices",
                           d->base.name);
    cublasStatus_t result = make_operation(p, kind);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = make_layouts(p, kind);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = choose(d, program, from, p, &p->workspace);
    JOT_TRY(blas_status(d, result));
    return widen_workspace(d, program, p->workspace);
}

// The library does what is not left to kernels for symmetric products.
static jot_status choose_kernels(struct cuda_device *d, const struct rt_program *program,
                                 const struct rt_step *from, struct cuda_product *p)
{
    const struct rt_gemm *g = p->numbers;
    uint32_t alignment = alignment_of(program, from, p, 2, g->stride_c);
    uint32_t of_a = alignment_of(program, from, p, 0, g->stride_a);
    uint32_t of_b = alignment_of(program, from, p, 1, g->stride_b);
    alignment = of_a < alignment ? of_a : alignment;
    alignment = of_b < alignment ? of_b : alignment;
    JOT_TRY(cuda_gram_bind(d, g, alignment, &p->gram));
    p->workspace = p->gram.workspace;
    return widen_workspace(d, program, p->workspace);
}

jot_status cuda_gemm_bind(struct rt_program *program, const struct rt_step *from,
                          struct rt_bound_step *step)
{
    struct cuda_device *d = cuda_device_of(program->device);
    struct cuda_code *code = program->code;
    struct cuda_product *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    p->numbers = step->gemm;
    p->next = code->products;
    code->products = p;
    step->product = p;
    if (is_empty(p->numbers))
        return JOT_OK;
    JOT_TRY(cuda_enter(d));
    jot_status status =
        p->numbers->flags & RT_GEMM_SYMMETRIC ? choose_kernels(d, program, from, p) : JOT_OK;
    if (status == JOT_OK && !p->gram.tiles)
        status = open_library(d);
    if (status == JOT_OK && !p->gram.tiles)
        status = describe(d, program, from, p);
    cuda_leave();
    return status;
}

bool cuda_gemm_has_workspace(const struct cuda_product *p) { return p->workspace > 0; }

void cuda_gemm_forget(struct cuda_product *p)
{
    while (p) {
        struct cuda_product *next = p->next;
        if (p->operation)
            cuda.cublaslt.cublasLtMatmulDescDestroy(p->operation);
        cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->c};
        for (int i = 0; i < 3; i++)
            if (layouts[i])
                cuda.cublaslt.cublasLtMatrixLayoutDestroy(layouts[i]);
        memory_release(p);
        p = next;
    }
}

// ---- Opening the library ahead of what needs it

// The first choice takes the library longer than to open, whatever the product.
static void choose_once(struct cuda_device *d)
{
    struct rt_gemm g = {.dtype = JOT_F32,
                        .operands = JOT_F32,
                        .m = 64,
                        .n = 64,
                        .k = 64,
                        .lda = 64,
                        .ldb = 64,
                        .ldc = 64};
    struct cuda_product *p = memory_allocate_zeroed(sizeof *p);
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    if (!p)
        return;
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
        g.batch[i] = 1;
    p->numbers = &g;
    struct kind kind = kind_of(&g);
    if (make_operation(p, kind) == CUBLAS_STATUS_SUCCESS &&
        make_layouts(p, kind) == CUBLAS_STATUS_SUCCESS &&
        cuda.cublaslt.cublasLtMatmulPreferenceCreate(&wish) == CUBLAS_STATUS_SUCCESS) {
        cuda.cublaslt.cublasLtMatmulAlgoGetHeuristic(d->blas, p->operation, p->b, p->a, p->c,
                                                     p->c, wish, 1, &found, &count);
        cuda.cublaslt.cublasLtMatmulPreferenceDestroy(wish);
    }
    cuda_gemm_forget(p);
}

void cuda_gemm_open(struct cuda_device *d)
{
    if (open_library(d) != JOT_OK)
        return;
    pthread_mutex_lock(&d->blas_lock);
    bool is_first = !d->has_chosen;
    d->has_chosen = true;
    pthread_mutex_unlock(&d->blas_lock);
    if (is_first)
        choose_once(d);
}

// ---- Running

// A number in the type of factors.
union factor {
    float f[2];
    double d[2];
    int32_t i;
};

static union factor factor_of(uint32_t dtype, double x)
{
    return dtype == JOT_F64 || dtype == JOT_C128 ? (union factor){.d = {x}}
           : dtype == JOT_I32                    ? (union factor){.i = (int32_t)x}
                                                 : (union factor){.f = {(float)x}};
}

static jot_status multiply(struct cuda_device *d, const struct cuda_code *code,
                           const struct cuda_product *p, cublasLtMatmulDesc_t operation,
                           const char *a, const char *b, const char *addend, char *c)
{
    const struct rt_gemm *g = p->numbers;
    union factor alpha = factor_of(g->dtype, g->alpha), beta = factor_of(g->dtype, g->beta);
    return blas_status(d, cuda.cublaslt.cublasLtMatmul(d->blas, operation, &alpha, b, p->b, a,
                                                       p->a, &beta, addend, p->c, c, p->c,
                                                       &p->algorithm, cuda_workspace(code),
                                                       code->workspace_bytes, cuda_stream(d)));
}

static jot_status multiply_all(struct cuda_device *d, const struct cuda_code *code,
                               const struct cuda_product *p, cublasLtMatmulDesc_t operation,
                               void *const *operands)
{
    const struct rt_gemm *g = p->numbers;
    const char *addend = operands[2];
    if (g->flags & RT_GEMM_ADDEND)
        addend = operands[g->flags & RT_GEMM_BIAS ? 4 : 3];
    int64_t calls = 1;
    size_t element = dtype_get((jot_dtype)g->dtype)->bytes;
    size_t of_operands = dtype_get((jot_dtype)g->operands)->bytes;
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
        calls *= i == p->axis ? 1 : g->batch[i];
    for (int64_t call = 0; call < calls; call++) {
        int64_t rest = call, at_a = 0, at_b = 0, at_c = 0;
        for (int i = RT_GEMM_BATCH_RANK - 1; i >= 0; i--) {
            if (i == p->axis)
                continue;
            int64_t at = rest % g->batch[i];
            rest /= g->batch[i];
            at_a += at * g->stride_a[i];
            at_b += at * g->stride_b[i];
            at_c += at * g->stride_c[i];
        }
        JOT_TRY(multiply(
            d, code, p, operation, (const char *)operands[0] + (size_t)at_a * of_operands,
            (const char *)operands[1] + (size_t)at_b * of_operands,
            addend + (size_t)at_c * element, (char *)operands[2] + (size_t)at_c * element));
    }
    return JOT_OK;
}

jot_status cuda_gemm(const struct rt_program *program, const struct rt_bound_step *step,
                     void *const *operands)
{
    struct cuda_device *d = cuda_device_of(program->device);
    const struct cuda_product *p = step->product;
    if (p->gram.tiles) {
        JOT_TRY(cuda_enter(d));
        jot_status status =
            cuda_gram(d, p->numbers, &p->gram, operands, cuda_workspace(program->code));
        cuda_leave();
        return status;
    }
    if (!p->operation)
        return JOT_OK;
    // The address of a bias is part of the description, which other calls use at the same time.
    cublasLtMatmulDescOpaque_t own = *p->operation;
    JOT_TRY(cuda_enter(d));
    jot_status status = JOT_OK;
    if (p->numbers->flags & RT_GEMM_BIAS)
        status = blas_status(d, set_operation(&own, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                              &operands[3], sizeof operands[3]));
    if (status == JOT_OK)
        status = multiply_all(d, program->code, p, &own, operands);
    cuda_leave();
    return status;
}
