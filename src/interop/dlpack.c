// SPDX-License-Identifier: Apache-2.0
#include "jot/dlpack.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "interop/dlpack_abi.h"
#include "runtime/array.h"
#include "runtime/device.h"

// ---- dtypes

static int code_of(jot_dtype d)
{
    return d == JOT_BOOL         ? DL_BOOL
           : d == JOT_BF16       ? DL_BFLOAT
           : dtype_is_complex(d) ? DL_COMPLEX
           : dtype_is_float(d)   ? DL_FLOAT
           : dtype_is_signed(d)  ? DL_INT
                                 : DL_UINT;
}

static bool find_dtype(const DLTensor *t, jot_dtype *out)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (code_of((jot_dtype)d) == t->dtype.code &&
            8 * jot_dtype_size((jot_dtype)d) == t->dtype.bits && t->dtype.lanes == 1) {
            *out = (jot_dtype)d;
            return true;
        }
    return false;
}

// ---- out

// Either kind of tensor, with what belongs to it.
struct exported {
    union {
        DLManagedTensor unversioned;
        DLManagedTensorVersioned versioned;
    } as;
    jot_array *array;
    int64_t numbers[]; // shape, strides
};

static void forget(struct exported *e)
{
    atomic_fetch_sub(&e->array->exports, 1);
    jot_array_release(e->array);
    memory_release(e);
}

static void delete_unversioned(DLManagedTensor *t) { forget(t->manager_ctx); }
static void delete_versioned(DLManagedTensorVersioned *t) { forget(t->manager_ctx); }

static void describe(const jot_array *a, int64_t *numbers, DLTensor *out)
{
    jot_device *device = jot_array_device(a);
    *out = (DLTensor){.data = a->data, .ndim = a->rank, .shape = numbers};
    out->device.type = jot_device_kind_of(device) == JOT_HOST ? DL_CPU : DL_CUDA;
    out->device.id = device->part ? 0 : device->index;
    out->dtype.code = (uint8_t)code_of((jot_dtype)a->dtype);
    out->dtype.bits = (uint8_t)(8 * jot_dtype_size((jot_dtype)a->dtype));
    out->dtype.lanes = 1;
    out->strides = numbers + a->rank;
    int64_t stride = 1;
    for (int i = a->rank; i-- > 0;) {
        out->shape[i] = a->dims[i];
        out->strides[i] = stride;
        stride *= a->dims[i];
    }
}

static jot_status hold(jot_array *a, struct exported **out)
{
    if (!a)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_to_dlpack: the array is NULL");
    if (a->flags & RT_ARRAY_SPLIT)
        return status_fail(JOT_ERR_ARGUMENT,
                           "jot_array_to_dlpack: the array is in pieces on several devices: "
                           "jot_array_shard_on gives one, jot_array_to the whole");
    JOT_TRY(jot_array_wait(a));
    struct exported *e =
        memory_allocate_zeroed(sizeof *e + 2 * (size_t)a->rank * sizeof(int64_t));
    if (!e)
        return status_out_of_memory();
    e->array = jot_array_retain(a);
    // Nobody may write what another library reads.
    atomic_fetch_add(&a->exports, 1);
    *out = e;
    return JOT_OK;
}

jot_status jot_array_to_dlpack(jot_array *a, DLManagedTensorVersioned **out_tensor)
{
    struct exported *e;
    if (!out_tensor)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_to_dlpack: out_tensor is NULL");
    JOT_TRY(hold(a, &e));
    DLManagedTensorVersioned *t = &e->as.versioned;
    t->version.major = DLPACK_MAJOR;
    t->version.minor = DLPACK_MINOR;
    t->manager_ctx = e;
    t->deleter = delete_versioned;
    t->flags = DLPACK_READ_ONLY;
    describe(a, e->numbers, &t->dl_tensor);
    *out_tensor = t;
    return JOT_OK;
}

jot_status jot_array_to_dlpack_unversioned(jot_array *a, DLManagedTensor **out_tensor)
{
    struct exported *e;
    if (!out_tensor)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_to_dlpack: out_tensor is NULL");
    JOT_TRY(hold(a, &e));
    DLManagedTensor *t = &e->as.unversioned;
    t->manager_ctx = e;
    t->deleter = delete_unversioned;
    describe(a, e->numbers, &t->dl_tensor);
    *out_tensor = t;
    return JOT_OK;
}

// ---- in

static jot_array *fail(const char *what)
{
    status_fail(JOT_ERR_ARGUMENT, "jot_array_from_dlpack: %s", what);
    return NULL;
}

static bool is_dense(const DLTensor *t)
{
    int64_t stride = 1, count = 1;
    for (int i = 0; i < t->ndim; i++)
        count *= t->shape[i] != 0;
    for (int i = t->ndim; t->strides && count && i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != stride)
            return false;
        stride *= t->shape[i];
    }
    return true;
}

static jot_device *device_of(const DLTensor *t)
{
    switch (t->device.type) {
    case DL_CPU:
    case DL_CUDA_HOST:
        return jot_host();
    case DL_CUDA:
    case DL_CUDA_MANAGED:
        return jot_cuda(t->device.id);
    default:
        return NULL;
    }
}

static jot_array *borrow(const DLTensor *t, void (*release)(const void *, void *), void *ctx)
{
    static const char nothing[16] __attribute__((aligned(16)));
    int64_t dims[RT_ARRAY_RANK_LIMIT + 1];
    jot_dtype dtype;
    if (t->ndim < 0 || t->ndim > RT_ARRAY_RANK_LIMIT)
        return fail("the tensor has more axes than an array may have");
    if (!find_dtype(t, &dtype))
        return fail("there is no such dtype here");
    if (!is_dense(t))
        return fail("the tensor is not dense and row-major: copy it");
    jot_device *device = device_of(t);
    if (!device)
        return fail("the tensor is on a device that is neither the host nor a GPU of NVIDIA");
    bool is_empty = false;
    for (int i = 0; i < t->ndim; i++) {
        dims[i] = t->shape[i];
        is_empty |= dims[i] == 0;
    }
    dims[t->ndim] = JOT_END;
    const void *data = t->data ? (const char *)t->data + t->byte_offset : NULL;
    if (is_empty)
        data = nothing;
    return jot_array_borrow_on(device, dtype, data, dims, release, ctx);
}

static void release_unversioned(const void *data, void *ctx)
{
    DLManagedTensor *t = ctx;
    (void)data;
    if (t->deleter)
        t->deleter(t);
}

static void release_versioned(const void *data, void *ctx)
{
    DLManagedTensorVersioned *t = ctx;
    (void)data;
    if (t->deleter)
        t->deleter(t);
}

jot_array *jot_array_from_dlpack(DLManagedTensorVersioned *t)
{
    if (!t)
        return fail("the tensor is NULL");
    if (t->version.major != DLPACK_MAJOR)
        return fail("the tensor is of another major version of DLPack than 1");
    return borrow(&t->dl_tensor, release_versioned, t);
}

jot_array *jot_array_from_dlpack_unversioned(DLManagedTensor *t)
{
    return t ? borrow(&t->dl_tensor, release_unversioned, t) : fail("the tensor is NULL");
}
