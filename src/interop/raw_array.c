// SPDX-License-Identifier: Apache-2.0
#include "interop/raw_array.h"

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/array.h"
#include "runtime/device.h"

#include <string.h>

static void release_map(const void *data, void *ctx)
{
    (void)data;
    mapping_release(ctx);
}

jot_array *raw_array_map(const struct input *in, uint64_t at, jot_dtype dtype, int rank,
                         const int64_t *dims)
{
    if (!in->map || dtype == JOT_BOOL)
        return NULL;
    const unsigned char *data = in->bytes + at;
    if ((uintptr_t)data % dtype_get(dtype_real(dtype))->bytes)
        return NULL;
    jot_array *a = rt_array_create_over(dtype, rank, dims, data, release_map, in->map);
    if (a)
        atomic_fetch_add(&in->map->users, 1);
    return a;
}

jot_status raw_array_place(jot_array *a, jot_array **out)
{
    if (jot_default_device() == jot_host()) {
        *out = a;
        return JOT_OK;
    }
    jot_array *there = jot_array_to(a, NULL);
    jot_array_release(a);
    if (!there)
        return status_last();
    *out = there;
    return JOT_OK;
}

void raw_array_normalize(jot_array *a)
{
    unsigned char *bytes = a->data;
    for (size_t i = 0; i < a->size; i++)
        bytes[i] = bytes[i] != 0;
}

void raw_array_widen(jot_array *a)
{
    unsigned char *bytes = a->data;
    for (size_t i = a->size; i-- > 0;) {
        uint16_t wide = (uint16_t)(bytes[i] << 8);
        memcpy(bytes + 2 * i, &wide, 2);
    }
}
