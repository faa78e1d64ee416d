// SPDX-License-Identifier: Apache-2.0
#include "runtime/mesh.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/distributed.h"
#include "runtime/fork.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// All meshes there are.
static jot_mesh *meshes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

FORK_KEEPS(FORK_MESHES, lock, NULL)

// ---- making them ----

static bool is_word(const char *name)
{
    size_t n = 0;
    for (; name[n]; n++) {
        char c = name[n];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (n == 0 || c < '0' || c > '9'))
            return false;
    }
    return n > 0 && n < RT_MESH_NAME && strcmp(name, "_") != 0;
}

static jot_status check_names(const char *who, size_t n, const jot_mesh_axis *axes)
{
    if (n < 1 || n > RT_MESH_RANK || !axes)
        return status_fail(JOT_ERR_ARGUMENT, "%s: a mesh has 1 to %d axes, not %zu", who,
                           RT_MESH_RANK, axes ? n : 0);
    for (size_t i = 0; i < n; i++) {
        if (!axes[i].name || !is_word(axes[i].name))
            return status_fail(
                JOT_ERR_ARGUMENT,
                "%s: the name of axis %zu is '%s': it is to be a word of letters, "
                "digits and _, of at most %d",
                who, i, axes[i].name ? axes[i].name : "NULL", RT_MESH_NAME - 1);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(axes[i].name, axes[k].name))
                return status_fail(JOT_ERR_ARGUMENT, "%s: two axes have the name '%s'", who,
                                   axes[i].name);
    }
    return JOT_OK;
}

// The sizes, of which one may be what n devices leave; their product, or 0 where an axis gets none.
static jot_status find_sizes(const char *who, size_t n_axes, const jot_mesh_axis *axes,
                             size_t n, int64_t *dims, int64_t *out_count)
{
    int64_t count = 1;
    size_t open = n_axes;
    for (size_t i = 0; i < n_axes; i++) {
        dims[i] = axes[i].size;
        if (dims[i] < 0 || dims[i] > COLLECTIVE_MOST)
            return status_fail(JOT_ERR_ARGUMENT, "%s: axis %s has %" PRId64 " devices", who,
                               axes[i].name, dims[i]);
        if (dims[i] == 0 && open < n_axes)
            return status_fail(
                JOT_ERR_ARGUMENT,
                "%s: axes %s and %s are both to have as many devices as there are", who,
                axes[open].name, axes[i].name);
        if (dims[i] == 0)
            open = i;
        else
            count *= dims[i];
        if (count > COLLECTIVE_MOST)
            return status_fail(JOT_ERR_ARGUMENT, "%s: a mesh of more than %d devices", who,
                               COLLECTIVE_MOST);
    }
    if (open < n_axes) {
        dims[open] = (int64_t)n / count;
        count *= dims[open];
    }
    *out_count = count;
    return JOT_OK;
}

static bool is_mesh(const jot_mesh *m, uint32_t count, jot_device *const *devices,
                    uint32_t rank, const int64_t *dims, const jot_mesh_axis *axes)
{
    if (m->count != count || m->rank != rank ||
        memcmp(m->devices, devices, count * sizeof(jot_device *)) ||
        memcmp(m->dims, dims, rank * sizeof *dims))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (strcmp(m->names[i], axes[i].name))
            return false;
    return true;
}

static jot_mesh *find_or_add(uint32_t count, jot_device *const *devices, uint32_t rank,
                             const int64_t *dims, const jot_mesh_axis *axes)
{
    pthread_mutex_lock(&lock);
    jot_mesh *m = meshes;
    while (m && !is_mesh(m, count, devices, rank, dims, axes))
        m = m->next;
    if (!m && (m = memory_allocate_zeroed(sizeof *m + count * sizeof(jot_device *)))) {
        m->rank = rank;
        m->count = count;
        memcpy(m->devices, devices, count * sizeof(jot_device *));
        memcpy(m->dims, dims, rank * sizeof *dims);
        for (uint32_t i = 0; i < rank; i++)
            snprintf(m->names[i], sizeof m->names[i], "%s", axes[i].name);
        m->next = meshes;
        meshes = m;
    }
    pthread_mutex_unlock(&lock);
    if (!m)
        status_out_of_memory();
    return m;
}

static jot_mesh *make_mesh(size_t n, jot_device *const *devices, size_t n_axes,
                           const jot_mesh_axis *axes)
{
    static const char who[] = "jot_mesh_over";
    int64_t dims[RT_MESH_RANK], count;
    if (check_names(who, n_axes, axes) != JOT_OK ||
        find_sizes(who, n_axes, axes, n, dims, &count) != JOT_OK)
        return NULL;
    if (n && !devices)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the list of devices is NULL", who), NULL;
    if ((int64_t)n != count || n == 0)
        return status_fail(JOT_ERR_ARGUMENT, "%s: a mesh of %" PRId64 " devices of %zu", who,
                           count, n),
               NULL;
    for (size_t i = 0; i < n; i++) {
        if (!devices[i])
            return status_fail(JOT_ERR_ARGUMENT, "%s: device %zu is NULL", who, i), NULL;
        if (devices[i]->type->kind != devices[0]->type->kind)
            return status_fail(JOT_ERR_ARGUMENT, "%s: %s and %s are of different kinds", who,
                               devices[0]->name, devices[i]->name),
                   NULL;
        for (size_t k = 0; k < i; k++)
            if (devices[k] == devices[i])
                return status_fail(JOT_ERR_ARGUMENT, "%s: %s is in the mesh twice", who,
                                   devices[i]->name),
                       NULL;
    }
    return find_or_add((uint32_t)n, devices, (uint32_t)n_axes, dims, axes);
}

jot_mesh *jot_mesh_over(size_t n_devices, jot_device *const *devices, size_t n_axes,
                        const jot_mesh_axis *axes)
{
    return make_mesh(n_devices, devices, n_axes, axes);
}

static void print_axes(struct rt_text *text, size_t n, const jot_mesh_axis *axes,
                       const int64_t *dims)
{
    for (size_t i = 0; i < n; i++)
        rt_text_add(text, "%s%s %" PRId64, i ? ", " : "", axes[i].name, dims[i]);
}

// Of more devices than there are.
static jot_status fail_large(jot_device_kind kind, int n, int64_t count, size_t n_axes,
                             const jot_mesh_axis *axes, const int64_t *dims)
{
    char shape[256] = "";
    struct rt_text text = {.at = shape, .size = sizeof shape};
    print_axes(&text, n_axes, axes, dims);
    if (kind == JOT_CUDA)
        return status_fail(JOT_ERR_DEVICE,
                           "jot_mesh_of: a mesh of %" PRId64 " GPUs (%s), but there are %d%s%s",
                           count, shape, n, n ? "" : ": ", n ? "" : jot_error_message());
    return status_fail(JOT_ERR_DEVICE,
                       "jot_mesh_of: a mesh of %" PRId64 " devices (%s), but the host is %d: "
                       "JOT_HOST_DEVICES=%" PRId64 " or jot_set_host_devices makes it more",
                       count, shape, n, count);
}

// The first devices of all processes.
static void list_devices(jot_device_kind kind, const int *counts, int64_t n, jot_device **out)
{
    for (int process = 0; process < jot_process_count(); process++)
        for (int i = 0; i < counts[process] && n > 0; i++, n--)
            *out++ = jot_process_device(process, kind, i);
}

static int sum_of(const int *counts)
{
    int n = 0;
    for (int process = 0; process < jot_process_count(); process++)
        n += counts[process];
    return n;
}

static jot_mesh *make_of_kind(jot_device_kind kind, const int *counts, size_t n_axes,
                              const jot_mesh_axis *axes)
{
    static const char who[] = "jot_mesh_of";
    int64_t dims[RT_MESH_RANK], count;
    int n = sum_of(counts);
    if (check_names(who, n_axes, axes) != JOT_OK ||
        find_sizes(who, n_axes, axes, (size_t)n, dims, &count) != JOT_OK)
        return NULL;
    for (size_t i = 0; i < n_axes; i++)
        if (dims[i] == 0) // no devices are left for it: at least one it takes
            count = dims[i] = 1;
    for (size_t i = 0; count == 1 && i < n_axes; i++)
        count *= dims[i];
    if (count > n) {
        fail_large(kind, n, count, n_axes, axes, dims);
        return NULL;
    }
    jot_device **devices = memory_allocate((size_t)count * sizeof *devices);
    if (!devices)
        return status_out_of_memory(), NULL;
    list_devices(kind, counts, count, devices);
    jot_mesh *mesh = find_or_add((uint32_t)count, devices, (uint32_t)n_axes, dims, axes);
    memory_release(devices);
    return mesh;
}

jot_mesh *jot_mesh_of_kind(jot_device_kind kind, size_t n_axes, const jot_mesh_axis *axes)
{
    int *counts;
    if (kind != JOT_HOST && kind != JOT_CUDA)
        return status_fail(JOT_ERR_ARGUMENT, "jot_mesh_of: %d is no kind of device", (int)kind),
               NULL;
    if (rt_distributed_count(kind, &counts) != JOT_OK)
        return NULL;
    jot_mesh *mesh = make_of_kind(kind, counts, n_axes, axes);
    memory_release(counts);
    return mesh;
}

// ---- asking them ----

size_t jot_mesh_size(const jot_mesh *m) { return m ? m->count : 0; }
int jot_mesh_rank(const jot_mesh *m) { return m ? (int)m->rank : 0; }

jot_device *rt_mesh_device(const jot_mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->count; i++)
        if (!rt_is_elsewhere(mesh->devices[i]))
            return mesh->devices[i];
    return mesh->devices[0];
}

bool rt_mesh_is_across(const jot_mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->count; i++)
        if (rt_is_elsewhere(mesh->devices[i]))
            return true;
    return false;
}

bool rt_mesh_is_far_along(const jot_mesh *mesh, int axis)
{
    size_t stride = 1;
    for (uint32_t k = mesh->rank; k-- > (uint32_t)axis + 1;)
        stride *= (size_t)mesh->dims[k];
    for (size_t i = 0; i < mesh->count; i++) {
        size_t first = i - i / stride % (size_t)mesh->dims[axis] * stride;
        if (jot_device_process(mesh->devices[i]) != jot_device_process(mesh->devices[first]))
            return true;
    }
    return false;
}

jot_device *jot_mesh_device(const jot_mesh *m, size_t i)
{
    return m && i < m->count ? m->devices[i] : NULL;
}

const char *jot_mesh_axis_name(const jot_mesh *m, int axis)
{
    return m && axis >= 0 && axis < (int)m->rank ? m->names[axis] : NULL;
}

int64_t jot_mesh_axis_size(const jot_mesh *m, const char *name)
{
    for (uint32_t i = 0; m && name && i < m->rank; i++)
        if (!strcmp(m->names[i], name))
            return m->dims[i];
    return 0;
}

int jot_mesh_format(const jot_mesh *m, char *buffer, size_t size)
{
    struct rt_text text = {.at = buffer, .size = buffer ? size : 0};
    if (buffer && size)
        buffer[0] = 0;
    if (!m)
        return 0;
    rt_text_add(&text, "mesh ");
    for (uint32_t i = 0; i < m->rank; i++)
        rt_text_add(&text, "%s%s %" PRId64, i ? ", " : "", m->names[i], m->dims[i]);
    int64_t row = m->dims[m->rank - 1];
    for (uint32_t i = 0; i < m->count; i++)
        rt_text_add(&text, "%s%s", i % row ? " " : "\n  ", m->devices[i]->name);
    rt_text_add(&text, "\n");
    return (int)text.length;
}

// ---- how arrays are split ----

// "i 4, j 2"
static void print_mesh_axes(char *buffer, size_t size, const jot_mesh *m)
{
    struct rt_text text = {.at = buffer, .size = size};
    for (uint32_t i = 0; i < m->rank; i++)
        rt_text_add(&text, "%s%s %" PRId64, i ? ", " : "", m->names[i], m->dims[i]);
}

static jot_status take_axis(const char *who, const jot_mesh *mesh, const char *at, size_t n,
                            int dim, int order, int rank, struct rt_spec *out)
{
    char axes[256] = "";
    for (uint32_t i = 0; i < mesh->rank; i++) {
        if (strlen(mesh->names[i]) != n || memcmp(mesh->names[i], at, n))
            continue;
        if (out->dim[i] == dim)
            return status_fail(JOT_ERR_ARGUMENT, "%s: axis %s splits dimension %d twice", who,
                               mesh->names[i], dim);
        if (out->dim[i] >= 0)
            return status_fail(
                JOT_ERR_ARGUMENT,
                "%s: axis %s is to split dimensions %d and %d: an axis splits one", who,
                mesh->names[i], out->dim[i], dim);
        if (dim >= rank)
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: axis %s is to split dimension %d of an array of %d", who,
                               mesh->names[i], dim, rank);
        out->dim[i] = (int8_t)dim;
        out->order[i] = (int8_t)order;
        return JOT_OK;
    }
    print_mesh_axes(axes, sizeof axes, mesh);
    return status_fail(JOT_ERR_ARGUMENT, "%s: the mesh has no axis %.*s, only %s", who, (int)n,
                       at, axes);
}

jot_status rt_spec_parse(const char *who, const jot_mesh *mesh, const char *text, int rank,
                         struct rt_spec *out)
{
    struct rt_spec s;
    memset(s.dim, -1, sizeof s.dim);
    memset(s.order, 0, sizeof s.order);
    int dim = 0, order = 0, n_whole = 0;
    for (const char *at = text ? text : "";;) {
        size_t n = strcspn(at, ", \t");
        bool is_whole = n == 1 && *at == '_', ends = !n && (*at == ',' || !*at);
        n_whole += is_whole;
        if (n && !is_whole)
            JOT_TRY(take_axis(who, mesh, at, n, dim, order++, rank, &s));
        if (ends && n_whole && order)
            return status_fail(JOT_ERR_ARGUMENT, "%s: \"%.60s\" has _ beside an axis", who,
                               text);
        if (ends && dim >= rank && (n_whole || *at))
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: \"%.60s\" splits more than the %d dimensions of the array",
                               who, text, rank);
        if (!n && !*at)
            break;
        if (ends)
            dim++, order = n_whole = 0;
        at += n ? n : 1;
    }
    *out = s;
    return JOT_OK;
}

// The axes that split a dimension, the slowest first; their number.
static int axes_of(const jot_mesh *mesh, const struct rt_spec *spec, int dim,
                   uint32_t out[RT_MESH_RANK])
{
    int n = 0;
    for (int order = 0; order < (int)mesh->rank; order++)
        for (uint32_t i = 0; i < mesh->rank; i++)
            if (spec->dim[i] == dim && spec->order[i] == order)
                out[n++] = i;
    return n;
}

int rt_spec_text(const jot_mesh *mesh, const struct rt_spec *spec, char *buffer, size_t size)
{
    struct rt_text text = {.at = buffer, .size = size};
    int last = -1;
    for (uint32_t i = 0; i < mesh->rank; i++)
        last = spec->dim[i] > last ? spec->dim[i] : last;
    if (size)
        buffer[0] = 0;
    for (int dim = 0; dim <= last; dim++) {
        uint32_t axes[RT_MESH_RANK];
        int n = axes_of(mesh, spec, dim, axes);
        for (int k = 0; k < n; k++)
            rt_text_add(&text, "%s%s", k ? " " : "", mesh->names[axes[k]]);
        rt_text_add(&text, "%s%s", n ? "" : "_", dim < last ? ", " : "");
    }
    return (int)text.length;
}

bool rt_spec_equal(const jot_mesh *mesh, const struct rt_spec *a, const struct rt_spec *b)
{
    for (uint32_t i = 0; i < mesh->rank; i++)
        if (a->dim[i] != b->dim[i] || (a->dim[i] >= 0 && a->order[i] != b->order[i]))
            return false;
    return true;
}

static int64_t splits_of(const jot_mesh *mesh, const struct rt_spec *spec, int dim)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < mesh->rank; i++)
        n *= spec->dim[i] == dim ? mesh->dims[i] : 1;
    return n;
}

// The next sizes that can be divided, and the largest number of devices below that divides this one.
static jot_status fail_divide(const char *who, const jot_mesh *mesh, const struct rt_spec *spec,
                              jot_dtype dtype, int rank, const int64_t *dims, int dim)
{
    char shape[256] = "", axes[256] = "";
    struct rt_text s = {.at = shape, .size = sizeof shape},
                   a = {.at = axes, .size = sizeof axes};
    int64_t size = dims[dim], n = splits_of(mesh, spec, dim), fewer = n - 1;
    uint32_t by[RT_MESH_RANK];
    int n_by = axes_of(mesh, spec, dim, by);
    while (fewer > 1 && size % fewer)
        fewer--;
    for (int i = 0; i < rank; i++)
        rt_text_add(&s, "%s%" PRId64, i ? "," : "", dims[i]);
    for (int k = 0; k < n_by; k++)
        rt_text_add(&a, "%s%s %" PRId64, k ? ", " : "", mesh->names[by[k]], mesh->dims[by[k]]);
    return status_fail(JOT_ERR_SHAPE,
                       "%s: dimension %d of %s[%s] has %" PRId64 " elements, which %" PRId64
                       " devices (%s) do not divide: %" PRId64 " or %" PRId64
                       " would fit, or %" PRId64 " device%s",
                       who, dim, jot_dtype_name(dtype), shape, size, n, axes, size / n * n,
                       (size / n + 1) * n, fewer, fewer == 1 ? "" : "s");
}

jot_status rt_spec_check(const char *who, const jot_mesh *mesh, const struct rt_spec *spec,
                         jot_dtype dtype, int rank, const int64_t *dims)
{
    for (int dim = 0; dim < rank; dim++)
        if (dims[dim] % splits_of(mesh, spec, dim))
            return fail_divide(who, mesh, spec, dtype, rank, dims, dim);
    return JOT_OK;
}

void rt_spec_piece(const jot_mesh *mesh, const struct rt_spec *spec, int rank,
                   const int64_t *dims, size_t i, int64_t *out_start, int64_t *out_dims)
{
    int64_t at[RT_MESH_RANK];
    for (uint32_t axis = mesh->rank; axis-- > 0; i /= (size_t)mesh->dims[axis])
        at[axis] = (int64_t)(i % (size_t)mesh->dims[axis]);
    for (int dim = 0; dim < rank; dim++) {
        uint32_t axes[RT_MESH_RANK];
        int n = axes_of(mesh, spec, dim, axes);
        int64_t which = 0;
        for (int k = 0; k < n; k++)
            which = which * mesh->dims[axes[k]] + at[axes[k]];
        out_dims[dim] = dims[dim] / splits_of(mesh, spec, dim);
        out_start[dim] = which * out_dims[dim];
    }
}
