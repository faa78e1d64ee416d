// SPDX-License-Identifier: Apache-2.0
#include "runtime/array.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "runtime/device.h"
#include "runtime/host/blocks.h"
#include "runtime/mesh.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define HEADER_BYTES ((sizeof(jot_array) + 63) / 64 * 64)
#define ARRAY_BYTES_LIMIT ((int64_t)1 << 46)

_Static_assert(HEADER_BYTES == 128, "two cache lines");

jot_status rt_array_check(const char *what, int dtype, int64_t rank, const int64_t *dims)
{
    if (!dtype_is_valid(dtype))
        return status_fail(JOT_ERR_ARGUMENT, "%s: %d is not a dtype", what, dtype);
    if (rank < 0 || rank > RT_ARRAY_RANK_LIMIT)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: rank %" PRId64 ", but at most %d axes are possible", what, rank,
                           RT_ARRAY_RANK_LIMIT);
    int64_t bytes = dtype_get((jot_dtype)dtype)->bytes;
    bool is_empty = false;
    for (int64_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: size %" PRId64 " of axis %" PRId64 " is negative", what,
                               dims[i], i);
        is_empty |= dims[i] == 0;
    }
    for (int64_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(bytes, dims[i] ? dims[i] : 1, &bytes) ||
            (bytes > ARRAY_BYTES_LIMIT && !is_empty))
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: the sizes up to axis %" PRId64 " (%" PRId64
                               ") make more bytes than any memory has",
                               what, i, dims[i]);
    return JOT_OK;
}

static size_t size_of(int rank, const int64_t *dims)
{
    size_t size = 1;
    for (int i = 0; i < rank; i++)
        size *= (size_t)dims[i];
    return size;
}

jot_array *rt_array_create_header(jot_dtype dtype, int rank, const int64_t *dims,
                                  size_t block_bytes)
{
    size_t size = size_of(rank, dims);
    int64_t *far_dims = NULL;
    if (rank > RT_ARRAY_INLINE_RANK) {
        far_dims = memory_allocate((size_t)rank * sizeof *far_dims);
        if (!far_dims)
            return status_out_of_memory(), NULL;
    }
    jot_array *a = rt_block_allocate(block_bytes);
    if (!a) {
        memory_release(far_dims);
        return status_out_of_memory(), NULL;
    }
    atomic_init(&a->references, 1);
    atomic_init(&a->exports, 0);
    a->dtype = (uint8_t)dtype;
    a->flags = 0;
    a->rank = (uint16_t)rank;
    a->size = size;
    a->bytes = size * dtype_get(dtype)->bytes;
    a->dims = far_dims ? far_dims : a->inline_dims;
    a->release = NULL;
    a->ctx = NULL;
    a->part = 0;
    for (int i = 0; i < rank; i++)
        a->dims[i] = dims[i];
    return a;
}

static void drop_mirror(jot_array *a)
{
    struct rt_far_array *far = (struct rt_far_array *)a;
    if (a->flags & RT_ARRAY_FAR)
        rt_block_release(atomic_exchange(&far->mirror, NULL), a->bytes);
}

void rt_array_release_header(jot_array *a, size_t bytes)
{
    if (a->dims != a->inline_dims)
        memory_release(a->dims);
    rt_block_release(a, bytes);
}

static void release_header(jot_array *a)
{
    size_t bytes = HEADER_BYTES + (a->flags & RT_ARRAY_INLINE ? a->bytes : 0);
    rt_array_release_header(a, a->flags & RT_ARRAY_FAR ? sizeof(struct rt_far_array) : bytes);
}

jot_array *rt_array_create(jot_dtype dtype, int rank, const int64_t *dims)
{
    size_t bytes = size_of(rank, dims) * dtype_get(dtype)->bytes;
    bool is_inline = bytes <= RT_BLOCK_SMALL - HEADER_BYTES;
    jot_array *a =
        rt_array_create_header(dtype, rank, dims, HEADER_BYTES + (is_inline ? bytes : 0));
    if (!a)
        return NULL;
    if (is_inline) {
        a->flags = RT_ARRAY_INLINE;
        a->data = (char *)a + HEADER_BYTES;
        return a;
    }
    a->data = rt_block_allocate(bytes);
    if (!a->data) {
        release_header(a);
        status_fail(JOT_ERR_MEMORY, "out of memory: an array of %zu bytes", bytes);
        return NULL;
    }
    return a;
}

static jot_array *create_far(jot_device *device, jot_dtype dtype, int rank, const int64_t *dims,
                             void *data)
{
    jot_array *a = rt_array_create_header(dtype, rank, dims, sizeof(struct rt_far_array));
    if (!a)
        return NULL;
    struct rt_far_array *far = (struct rt_far_array *)a;
    a->flags = RT_ARRAY_FAR;
    a->data = data;
    far->device = device;
    atomic_init(&far->mirror, NULL);
    return a;
}

jot_array *rt_array_create_on(jot_device *device, jot_dtype dtype, int rank,
                              const int64_t *dims)
{
    size_t bytes = size_of(rank, dims) * dtype_get(dtype)->bytes;
    void *data;
    if (rt_is_host(device)) {
        jot_array *a = rt_array_create(dtype, rank, dims);
        if (a)
            a->part = device->part;
        return a;
    }
    if (device->type->allocate(device, bytes, "an array", &data) != JOT_OK)
        return NULL;
    jot_array *a = create_far(device, dtype, rank, dims, data);
    if (!a)
        device->type->release(device, data, bytes);
    return a;
}

jot_array *rt_array_create_over(jot_dtype dtype, int rank, const int64_t *dims,
                                const void *data, void (*release)(const void *, void *),
                                void *ctx)
{
    jot_array *a = rt_array_create_header(dtype, rank, dims, HEADER_BYTES);
    if (!a)
        return NULL;
    a->flags = RT_ARRAY_BORROWED;
    a->data = (void *)(uintptr_t)data;
    a->release = release;
    a->ctx = ctx;
    return a;
}

bool rt_array_can_retype(const jot_array *a, jot_dtype dtype, int rank, const int64_t *dims)
{
    int room = a->dims == a->inline_dims ? RT_ARRAY_INLINE_RANK : a->rank;
    return rank <= room && size_of(rank, dims) * dtype_get(dtype)->bytes == a->bytes;
}

void rt_array_retype(jot_array *a, jot_dtype dtype, int rank, const int64_t *dims)
{
    drop_mirror(a);
    a->dtype = (uint8_t)dtype;
    a->rank = (uint16_t)rank;
    a->size = size_of(rank, dims);
    for (int i = 0; i < rank; i++)
        a->dims[i] = dims[i];
}

// ---- constructors of the API ----

static jot_status read_dims(const char *what, int dtype, const int64_t *dims, int *out_rank)
{
    if (!dims)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: the list of sizes is NULL; for a scalar it is "
                           "{JOT_END}",
                           what);
    int rank = 0;
    while (rank <= RT_ARRAY_RANK_LIMIT && dims[rank] != JOT_END)
        rank++;
    if (rank > RT_ARRAY_RANK_LIMIT)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: no JOT_END after %d sizes, which is the highest rank", what,
                           RT_ARRAY_RANK_LIMIT);
    JOT_TRY(rt_array_check(what, dtype, rank, dims));
    *out_rank = rank;
    return JOT_OK;
}

static void end_transfer(int64_t since, const char *name, size_t bytes)
{
    timeline_end(since, &(struct timeline_event){
                            .kind = "transfer", .name = name, .bytes = (int64_t)bytes});
}

static jot_status upload_bytes(jot_device *d, void *to, const void *from, size_t bytes)
{
    int64_t since = timeline_begin();
    jot_status status = d->type->upload(d, to, from, bytes);
    end_transfer(since, "upload", bytes);
    return status;
}

static jot_status download_bytes(jot_device *d, void *to, const void *from, size_t bytes)
{
    int64_t since = timeline_begin();
    jot_status status = d->type->download(d, to, from, bytes);
    end_transfer(since, "download", bytes);
    return status;
}

static jot_array *upload(jot_device *device, jot_dtype dtype, int rank, const int64_t *dims,
                         const void *data)
{
    jot_array *a = rt_array_create_on(device, dtype, rank, dims);
    if (a && upload_bytes(device, a->data, data, a->bytes) == JOT_OK)
        return a;
    jot_array_release(a);
    return NULL;
}

// Takes an array that was made on the host to where arrays are made.
static jot_array *move_to_default(jot_array *a)
{
    jot_device *device = jot_default_device();
    if (a && rt_is_host(device))
        a->part = device->part;
    if (!a || rt_is_host(device))
        return a;
    jot_array *moved = jot_array_to(a, NULL);
    jot_array_release(a);
    return moved;
}

static jot_array *copy(jot_dtype dtype, const void *data, const int64_t *dims)
{
    int rank;
    if (read_dims("jot_array_copy", (int)dtype, dims, &rank) != JOT_OK)
        return NULL;
    if (!data && size_of(rank, dims))
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_copy: the data is NULL"), NULL;
    jot_device *device = jot_default_device();
    if (!rt_is_host(device) && dtype != JOT_BOOL)
        return upload(device, dtype, rank, dims, data);
    jot_array *a = rt_array_create(dtype, rank, dims);
    if (!a || !a->size)
        return move_to_default(a);
    memcpy(a->data, data, a->bytes);
    if (dtype == JOT_BOOL) {
        unsigned char *at = a->data;
        for (size_t i = 0; i < a->size; i++)
            at[i] = at[i] != 0;
    }
    return move_to_default(a);
}

jot_array *jot_array_copy(jot_dtype dtype, const void *data, const int64_t *dims)
{
    jot_array *a = copy(dtype, data, dims);
    return a ? a : status_null(STATUS_NULL_ARRAY, "jot_array_copy");
}

jot_array *jot_array_borrow(jot_dtype dtype, const void *data, const int64_t *dims,
                            void (*release)(const void *data, void *ctx), void *ctx)
{
    return jot_array_borrow_on(jot_host(), dtype, data, dims, release, ctx);
}

static jot_array *borrow(jot_device *device, jot_dtype dtype, const void *data,
                         const int64_t *dims, void (*release)(const void *data, void *ctx),
                         void *ctx)
{
    int rank;
    device = device ? device : jot_default_device();
    if (read_dims("jot_array_borrow", (int)dtype, dims, &rank) != JOT_OK ||
        jot_device_check(device) != JOT_OK)
        return NULL;
    if (!data)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_borrow: the data is NULL"), NULL;
    unsigned alignment = dtype_get(dtype_real(dtype))->bytes;
    if ((uintptr_t)data % alignment)
        return status_fail(
                   JOT_ERR_ARGUMENT,
                   "jot_array_borrow: the data at %p is not aligned to %u bytes, as %s needs",
                   data, alignment, jot_dtype_name(dtype)),
               NULL;
    if (rt_is_host(device)) {
        jot_array *here = rt_array_create_over(dtype, rank, dims, data, release, ctx);
        if (here)
            here->part = device->part;
        return here;
    }
    jot_array *a = create_far(device, dtype, rank, dims, (void *)(uintptr_t)data);
    if (!a)
        return NULL;
    a->flags |= RT_ARRAY_BORROWED;
    a->release = release;
    a->ctx = ctx;
    return a;
}

jot_array *jot_array_borrow_on(jot_device *device, jot_dtype dtype, const void *data,
                               const int64_t *dims,
                               void (*release)(const void *data, void *ctx), void *ctx)
{
    jot_array *a = borrow(device, dtype, data, dims, release, ctx);
    return a ? a : status_null(STATUS_NULL_ARRAY, "jot_array_borrow");
}

// The bytes of one element; false when an integer type cannot hold the value.
static bool encode(jot_dtype dtype, double value, unsigned char *out)
{
    const struct dtype_info *info = dtype_get(dtype);
    memset(out, 0, 16);
    if (info->kind == 'b') {
        out[0] = value != 0;
    } else if (info->kind == 'i') {
        double limit = ldexp(1, info->bits - 1);
        if (!(value >= -limit && value < limit) || value != trunc(value))
            return false;
        int64_t x = (int64_t)value;
        memcpy(out, &x, info->bytes); // little-endian: the low bytes come first
    } else if (info->kind == 'u') {
        if (!(value >= 0 && value < ldexp(1, info->bits)) || value != trunc(value))
            return false;
        uint64_t x = (uint64_t)value;
        memcpy(out, &x, info->bytes);
    } else if (dtype == JOT_F16 || dtype == JOT_BF16) {
        uint16_t x = dtype == JOT_F16 ? dtype_f16_from_f64(value) : dtype_bf16_from_f64(value);
        memcpy(out, &x, 2);
    } else if (dtype_real(dtype) == JOT_F32) {
        float x = (float)value;
        memcpy(out, &x, 4);
    } else {
        memcpy(out, &value, 8);
    }
    return true;
}

static jot_array *repeat(jot_dtype dtype, int rank, const int64_t *dims,
                         const unsigned char *element)
{
    jot_array *a = rt_array_create(dtype, rank, dims);
    if (!a || !a->size)
        return a;
    size_t bytes = dtype_get(dtype)->bytes, done = bytes;
    memcpy(a->data, element, bytes);
    // Doubling copies: the part that is done is the source of the next.
    for (; done < a->bytes; done *= 2) {
        size_t part = done < a->bytes - done ? done : a->bytes - done;
        memcpy((char *)a->data + done, a->data, part);
    }
    return a;
}

static jot_array *fill(jot_dtype dtype, double value, const int64_t *dims)
{
    int rank;
    unsigned char element[16];
    jot_device *device = jot_default_device();
    if (read_dims("jot_array_full", (int)dtype, dims, &rank) != JOT_OK)
        return NULL;
    if (!encode(dtype, value, element))
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_full: %s cannot hold %.17g",
                           jot_dtype_name(dtype), value),
               NULL;
    if (rt_is_host(device))
        return move_to_default(repeat(dtype, rank, dims, element));
    // The device first: what does not fit there is not made here.
    jot_array *there = rt_array_create_on(device, dtype, rank, dims);
    jot_array *here = there ? repeat(dtype, rank, dims, element) : NULL;
    if (!here || rt_array_transfer(there, here) != JOT_OK) {
        jot_array_release(there);
        there = NULL;
    }
    jot_array_release(here);
    return there;
}

jot_array *jot_array_fill(jot_dtype dtype, double value, const int64_t *dims)
{
    jot_array *a = fill(dtype, value, dims);
    return a ? a : status_null(STATUS_NULL_ARRAY, "jot_array_full");
}

jot_array *jot_array_retain(jot_array *a)
{
    if (a)
        atomic_fetch_add_explicit(&a->references, 1, memory_order_relaxed);
    return a;
}

// Who has the only reference needs no exchange with other threads: none of them can make another one.
static bool is_last(jot_array *a)
{
    return atomic_load_explicit(&a->references, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&a->references, 1, memory_order_acq_rel) == 1;
}

void jot_array_release(jot_array *a)
{
    if (!a || !is_last(a))
        return;
    if (a->flags & RT_ARRAY_SPLIT) {
        rt_split_release(rt_array_split(a));
        return;
    }
    if (a->flags & RT_ARRAY_BORROWED) {
        if (a->release)
            a->release(a->data, a->ctx);
    } else if (a->flags & RT_ARRAY_FAR) {
        jot_device *d = rt_array_device(a);
        d->type->release(d, a->data, a->bytes);
    } else if (!(a->flags & RT_ARRAY_INLINE)) {
        rt_block_release(a->data, a->bytes);
    }
    drop_mirror(a);
    release_header(a);
}

// A list of more is a mistake.
static bool is_list(const char *name, size_t n)
{
    if (n <= (size_t)1 << 24)
        return true;
    status_fail(JOT_ERR_ARGUMENT, "%s: %zu arrays are more than any list has", name, n);
    return false;
}

void jot_arrays_release(size_t n, jot_array **a)
{
    if (!is_list("jot_arrays_release", n))
        return;
    for (size_t i = 0; a && i < n; i++) {
        jot_array_release(a[i]);
        a[i] = NULL;
    }
}

void jot_arrays_move(size_t n, jot_array **dst, size_t n_src, jot_array **src)
{
    if (!is_list("jot_arrays_move", n))
        return;
    if (n != n_src) {
        status_fail(JOT_ERR_ARGUMENT, "jot_arrays_move: %zu arrays into %zu", n_src, n);
        return;
    }
    if (n && (!dst || !src)) {
        status_fail(JOT_ERR_ARGUMENT, "jot_arrays_move: %s is NULL", dst ? "src" : "dst");
        return;
    }
    if (dst == src)
        return;
    for (size_t i = 0; i < n; i++) {
        jot_array *old = dst[i];
        dst[i] = src[i];
        src[i] = NULL;
        jot_array_release(old);
    }
}

// ---- what an array is ----

jot_dtype jot_array_dtype(const jot_array *a) { return a ? (jot_dtype)a->dtype : JOT_BOOL; }
int jot_array_rank(const jot_array *a) { return a ? a->rank : 0; }
size_t jot_array_size(const jot_array *a) { return a ? a->size : 0; }
size_t jot_array_bytes(const jot_array *a) { return a ? a->bytes : 0; }
const void *jot_array_device_data(const jot_array *a) { return a ? a->data : NULL; }
jot_device *rt_array_first_device(const jot_array *a)
{
    return rt_mesh_device(rt_array_split(a)->mesh);
}

jot_device *jot_array_device(const jot_array *a) { return a ? rt_array_device(a) : jot_host(); }

// Of several threads that read for the first time, the copy of one stays.
static const void *mirror_of(struct rt_far_array *far)
{
    jot_device *d = far->device;
    void *mirror = atomic_load_explicit(&far->mirror, memory_order_acquire), *other = NULL;
    if (mirror)
        return mirror;
    mirror = rt_block_allocate(far->a.bytes);
    if (!mirror)
        return status_out_of_memory(), NULL;
    if (download_bytes(d, mirror, far->a.data, far->a.bytes) == JOT_OK &&
        atomic_compare_exchange_strong(&far->mirror, &other, mirror))
        return mirror;
    rt_block_release(mirror, far->a.bytes);
    return other;
}

const void *jot_array_data(const jot_array *a)
{
    if (a && a->flags & RT_ARRAY_SPLIT)
        return rt_split_mirror(rt_array_split(a));
    if (a && a->flags & RT_ARRAY_FAR)
        return mirror_of((struct rt_far_array *)(uintptr_t)a);
    return a ? a->data : NULL;
}

jot_status jot_array_wait(const jot_array *a)
{
    if (!a)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_wait: the array is NULL");
    const struct rt_split_array *s = rt_array_split(a);
    for (size_t i = 0; s && i < s->mesh->count; i++)
        JOT_TRY(jot_device_wait(s->mesh->devices[i]));
    return jot_device_wait(rt_array_device(a));
}

jot_status rt_array_transfer(jot_array *to, const jot_array *from)
{
    jot_device *there = rt_array_device(to), *here = rt_array_device(from);
    if (from->flags & RT_ARRAY_SPLIT) {
        const void *data = rt_is_host(there) ? NULL : jot_array_data(from);
        if (rt_is_host(there))
            return rt_array_gather(from, to->data);
        return data ? upload_bytes(there, to->data, data, from->bytes) : status_last();
    }
    if (rt_is_host(here))
        return upload_bytes(there, to->data, from->data, from->bytes);
    if (rt_is_host(there) || rt_is_elsewhere(here))
        return download_bytes(here, to->data, from->data, from->bytes);
    int64_t since = timeline_begin();
    jot_status status = there->type->copy(there, to->data, here, from->data, from->bytes);
    end_transfer(since, "copy between devices", from->bytes);
    return status;
}

static void release_viewed(const void *data, void *ctx)
{
    (void)data;
    jot_array_release(ctx);
}

jot_array *rt_array_view(jot_array *a, jot_device *device, int rank, const int64_t *dims,
                         const void *data)
{
    jot_array *view =
        rt_array_create_over((jot_dtype)a->dtype, rank, dims, data, release_viewed, a);
    if (!view)
        return NULL;
    view->part = device->part;
    jot_array_retain(a);
    return view;
}

jot_array *jot_array_to(jot_array *a, jot_device *device)
{
    const char *why;
    device = device ? device : jot_default_device();
    if (!a) {
        jot_status status = status_of_null(STATUS_NULL_ARRAY, &why);
        return status_fail(status, "jot_array_to: the array is NULL%s", why), NULL;
    }
    if (a->flags & RT_ARRAY_SPLIT) {
        jot_array *whole = rt_array_whole_on(a, device);
        return whole ? whole : status_null(STATUS_NULL_ARRAY, "jot_array_to");
    }
    if (rt_array_device(a) == device)
        return jot_array_retain(a);
    if (rt_is_host(rt_array_device(a)) && rt_is_host(device)) {
        jot_array *view = jot_device_check(device) == JOT_OK
                              ? rt_array_view(a, device, a->rank, a->dims, a->data)
                              : NULL;
        return view ? view : status_null(STATUS_NULL_ARRAY, "jot_array_to");
    }
    jot_array *to = rt_array_create_on(device, (jot_dtype)a->dtype, a->rank, a->dims);
    if (to && rt_array_transfer(to, a) == JOT_OK)
        return to;
    jot_array_release(to);
    return status_null(STATUS_NULL_ARRAY, "jot_array_to");
}

int64_t jot_array_dim(const jot_array *a, int axis)
{
    if (!a)
        return 0;
    if (axis < 0)
        axis += a->rank;
    return axis >= 0 && axis < a->rank ? a->dims[axis] : 0;
}

jot_status jot_array_read_at(const jot_array *a, jot_dtype dtype, void *dst, size_t count,
                             const char *where)
{
    where = where ? where : "jot_array_read";
    if (!a)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the array is NULL", where);
    if (!dtype_is_valid((int)dtype))
        return status_fail(JOT_ERR_ARGUMENT, "%s: %d is not a dtype", where, (int)dtype);
    if (dtype != a->dtype)
        return status_fail(JOT_ERR_DTYPE, "%s: the array is %s, the buffer %s", where,
                           jot_dtype_name((jot_dtype)a->dtype), jot_dtype_name(dtype));
    if (count != a->size)
        return status_fail(JOT_ERR_SHAPE, "%s: the array has %zu elements, the buffer %zu",
                           where, a->size, count);
    if (!dst && count)
        return status_fail(JOT_ERR_ARGUMENT, "%s: dst is NULL", where);
    jot_device *d = rt_array_device(a);
    if (a->flags & RT_ARRAY_SPLIT)
        return rt_array_gather(a, dst);
    return count ? download_bytes(d, dst, a->data, a->bytes) : JOT_OK;
}

jot_status jot_array_copy_out(const jot_array *a, jot_dtype dtype, void *dst, size_t count)
{
    return jot_array_read_at(a, dtype, dst, count, "jot_array_copy_out");
}

double rt_element_to_f64(jot_dtype dtype, const void *element)
{
    const struct dtype_info *info = dtype_get(dtype);
    if (info->kind == 'f' || info->kind == 'c') {
        uint16_t half;
        float single;
        double x;
        switch (dtype_real(dtype)) {
        case JOT_F16:
            memcpy(&half, element, 2);
            return (double)dtype_f16_to_f32(half);
        case JOT_BF16:
            memcpy(&half, element, 2);
            return (double)dtype_bf16_to_f32(half);
        case JOT_F32:
            memcpy(&single, element, 4);
            return (double)single;
        default:
            memcpy(&x, element, 8);
            return x;
        }
    }
    uint64_t bits = 0;
    memcpy(&bits, element, info->bytes);
    if (info->kind != 'i')
        return (double)bits;
    unsigned unused = 64u - info->bits;
    return (double)((int64_t)(bits << unused) >> unused);
}

double jot_array_item(const jot_array *a)
{
    if (!a || a->size != 1) {
        if (a)
            status_fail(JOT_ERR_SHAPE, "jot_array_item: the array has %zu elements, not one",
                        a->size);
        else
            status_fail(JOT_ERR_ARGUMENT, "jot_array_item: the array is NULL");
        return NAN;
    }
    unsigned char element[16];
    if (jot_array_copy_out(a, (jot_dtype)a->dtype, element, 1) != JOT_OK)
        return NAN;
    return rt_element_to_f64((jot_dtype)a->dtype, element);
}
