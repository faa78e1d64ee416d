// SPDX-License-Identifier: Apache-2.0
// What all processes do with whole arrays.
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/array.h"
#include "runtime/distributed.h"
#include "runtime/mesh.h"
#include "runtime/text.h"

#include <stdio.h>
#include <string.h>

#define WHAT_BYTES 128

// "of f32[3,4]": in all processes the same.
static const char *name_type(const jot_array *a, char buffer[WHAT_BYTES])
{
    struct rt_text text = {.at = buffer, .size = WHAT_BYTES};
    rt_text_add(&text, "of %s[", dtype_get((jot_dtype)a->dtype)->name);
    for (int i = 0; i < a->rank; i++)
        rt_text_add(&text, "%s%lld", i ? "," : "", (long long)a->dims[i]);
    rt_text_add(&text, "]");
    return buffer;
}

// The result where the array is that was given.  Who has none tells the others, which wait for it.
static jot_array *put_back(const char *name, const jot_array *a, jot_array *result)
{
    jot_array *there = result ? jot_array_to(result, rt_array_device(a)) : NULL;
    jot_array_release(result);
    if (there)
        return there;
    if (rt_distributed_check() == JOT_OK) {
        char why[256];
        jot_status status = status_last();
        snprintf(why, sizeof why, "%s", jot_error_message());
        rt_distributed_fail(status, "%s: %s", name, why);
        status_fail(status, "%s", why);
    }
    return status_null(STATUS_NULL_ARRAY, name);
}

static jot_array *gather_split(const char *name, const jot_array *a)
{
    char what[WHAT_BYTES];
    jot_array *result = rt_array_create((jot_dtype)a->dtype, a->rank, a->dims);
    if (result && rt_array_collect(a, name_type(a, what), result->data) != JOT_OK) {
        jot_array_release(result);
        result = NULL;
    }
    return put_back(name, a, result);
}

jot_array *jot_process_all_gather(jot_array *a)
{
    static const char name[] = "jot_process_all_gather";
    char what[WHAT_BYTES];
    struct rt_group all = rt_distributed_all();
    jot_array *result = NULL;
    const void *from = NULL;
    int64_t dims[RT_ARRAY_RANK_LIMIT + 1] = {all.count};
    if (a && rt_array_split(a))
        return gather_split(name, a);
    if (!a)
        status_fail(JOT_ERR_ARGUMENT, "a is NULL");
    else
        from = jot_array_data(a);
    if (from)
        memcpy(dims + 1, a->dims, (size_t)a->rank * sizeof *dims);
    if (from && rt_array_check(name, a->dtype, a->rank + 1, dims) == JOT_OK)
        result = rt_array_create((jot_dtype)a->dtype, a->rank + 1, dims);
    if (result && rt_distributed_all_gather(&all, name_type(a, what), a->bytes, &from,
                                            &result->data) != JOT_OK) {
        jot_array_release(result);
        result = NULL;
    }
    return put_back(name, a, result);
}

jot_array *jot_process_broadcast(jot_array *a, int root)
{
    static const char name[] = "jot_process_broadcast";
    char what[WHAT_BYTES];
    struct rt_group all = rt_distributed_all();
    jot_array *result = NULL;
    const void *from = NULL;
    if (!a)
        status_fail(JOT_ERR_ARGUMENT, "a is NULL");
    else if (root < 0 || root >= all.count)
        status_fail(JOT_ERR_ARGUMENT, "root is %d: the processes are 0 to %d", root,
                    (int)all.count - 1);
    else
        from = jot_array_data(a);
    if (from)
        result = rt_array_create((jot_dtype)a->dtype, a->rank, a->dims);
    if (!result)
        return put_back(name, a, NULL);
    memcpy(result->data, from, a->bytes);
    if (rt_distributed_broadcast(&all, name_type(a, what), a->bytes, root, &result->data) !=
        JOT_OK) {
        jot_array_release(result);
        result = NULL;
    }
    return put_back(name, a, result);
}

jot_status jot_process_barrier(void)
{
    struct rt_group all = rt_distributed_all();
    return rt_distributed_barrier(&all, "of all processes");
}
