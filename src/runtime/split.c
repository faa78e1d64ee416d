// SPDX-License-Identifier: Apache-2.0
// Arrays in pieces: made of whole ones, of others in pieces, and put together again.
//
// All of these assemble blocks, each of what is there: one piece that has all of it, as it is, or, by way of
// the host, parts of several.
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/device.h"
#include "runtime/distributed.h"
#include "runtime/host/blocks.h"
#include "runtime/mesh.h"

#include <inttypes.h>
#include <string.h>

// A box of a whole array.
struct box {
    int rank;
    int64_t start[RT_ARRAY_RANK_LIMIT], dims[RT_ARRAY_RANK_LIMIT];
};

static int64_t count_of(const struct box *b)
{
    int64_t n = 1;
    for (int i = 0; i < b->rank; i++)
        n *= b->dims[i];
    return n;
}

static void box_of_piece(const jot_array *a, size_t i, struct box *out)
{
    const struct rt_split_array *s = rt_array_split(a);
    out->rank = a->rank;
    if (s) {
        rt_spec_piece(s->mesh, &s->spec, a->rank, a->dims, i, out->start, out->dims);
        return;
    }
    memset(out->start, 0, sizeof out->start);
    memcpy(out->dims, a->dims, (size_t)a->rank * sizeof *a->dims);
}

// The first of the devices that have the same piece as device i.
static size_t first_with_piece(const jot_mesh *mesh, const struct rt_spec *spec, size_t i)
{
    size_t first = i, step = 1;
    for (uint32_t axis = mesh->rank; axis-- > 0; step *= (size_t)mesh->dims[axis])
        if (spec->dim[axis] < 0)
            first -= i / step % (size_t)mesh->dims[axis] * step;
    return first;
}

// Pieces of an array, of which a whole one has one.
static size_t n_pieces(const jot_array *a)
{
    const struct rt_split_array *s = rt_array_split(a);
    return s ? s->mesh->count : 1;
}

static jot_array *piece_of(const jot_array *a, size_t i)
{
    const struct rt_split_array *s = rt_array_split(a);
    return s ? s->pieces[i] : (jot_array *)(uintptr_t)a;
}

static bool is_elsewhere(const jot_array *a, size_t i)
{
    return rt_is_elsewhere(rt_array_device(piece_of(a, i)));
}

// The device whose piece stands for those that are the same as that of device i: one of this process, if
// there is one.
static size_t best_with_piece(const struct rt_split_array *s, size_t i)
{
    size_t first = first_with_piece(s->mesh, &s->spec, i);
    for (size_t k = first; k < s->mesh->count; k++)
        if (!is_elsewhere(&s->a, k) && first_with_piece(s->mesh, &s->spec, k) == first)
            return k;
    return first;
}

// ---- boxes ----

static bool contains(const struct box *outer, const struct box *inner)
{
    for (int i = 0; i < inner->rank; i++)
        if (inner->start[i] < outer->start[i] ||
            inner->start[i] + inner->dims[i] > outer->start[i] + outer->dims[i])
            return false;
    return true;
}

// False when they have nothing in common.
static bool intersect(const struct box *a, const struct box *b, struct box *out)
{
    out->rank = a->rank;
    for (int i = 0; i < a->rank; i++) {
        int64_t end_a = a->start[i] + a->dims[i], end_b = b->start[i] + b->dims[i];
        out->start[i] = a->start[i] > b->start[i] ? a->start[i] : b->start[i];
        out->dims[i] = (end_a < end_b ? end_a : end_b) - out->start[i];
        if (out->dims[i] <= 0)
            return false;
    }
    return true;
}

// Whether the elements of the inner box stand next to each other in memory that has the outer one.
static bool is_contiguous(const struct box *outer, const struct box *inner)
{
    int i = 0;
    while (i < inner->rank && inner->dims[i] == 1)
        i++;
    for (i++; i < inner->rank; i++)
        if (inner->dims[i] != outer->dims[i])
            return false;
    return true;
}

// Where the first element of the inner box is in memory that has the outer one, in elements.
static int64_t offset_in(const struct box *outer, const struct box *inner)
{
    int64_t at = 0;
    for (int i = 0; i < inner->rank; i++)
        at = at * outer->dims[i] + inner->start[i] - outer->start[i];
    return at;
}

// Copies what is in `part` between two memories of the host, which have the boxes.
static void copy_box(char *to, const struct box *to_box, const char *from,
                     const struct box *from_box, const struct box *part, size_t size)
{
    int64_t at[RT_ARRAY_RANK_LIMIT] = {0}, run = 1;
    int outer = part->rank; // axes that are walked; the others are one run
    to += (size_t)offset_in(to_box, part) * size;
    from += (size_t)offset_in(from_box, part) * size;
    while (outer > 0 && part->dims[outer - 1] == to_box->dims[outer - 1] &&
           part->dims[outer - 1] == from_box->dims[outer - 1])
        run *= part->dims[--outer];
    if (outer > 0)
        run *= part->dims[--outer];
    for (;;) {
        int64_t to_at = 0, from_at = 0;
        for (int i = 0; i < part->rank; i++) {
            int64_t index = i < outer ? at[i] : 0;
            to_at = to_at * to_box->dims[i] + index;
            from_at = from_at * from_box->dims[i] + index;
        }
        memcpy(to + (size_t)to_at * size, from + (size_t)from_at * size, (size_t)run * size);
        int i = outer;
        while (i > 0 && ++at[i - 1] == part->dims[i - 1])
            at[--i] = 0;
        if (i == 0)
            return;
    }
}

// ---- blocks ----

// A piece that has all of the box, on the device if there is one, and rather here than elsewhere; n_pieces
// when none has.
static size_t find_piece(const jot_array *a, const struct box *box, jot_device *device)
{
    size_t n = n_pieces(a), found = n;
    for (size_t i = 0; i < n; i++) {
        struct box have;
        box_of_piece(a, i, &have);
        if (!contains(&have, box) || !is_contiguous(&have, box))
            continue;
        if (rt_array_device(piece_of(a, i)) == device)
            return i;
        if (found == n || is_elsewhere(a, found))
            found = i;
    }
    return found;
}

// The box in memory of the host that has the box `to_box`, from all pieces that have a part of it.
static jot_status gather_box(const jot_array *a, const struct box *to_box, char *to)
{
    const struct rt_split_array *s = rt_array_split(a);
    size_t size = dtype_get((jot_dtype)a->dtype)->bytes;
    for (size_t i = 0; i < n_pieces(a); i++) {
        struct box have, part;
        box_of_piece(a, i, &have);
        if (!intersect(&have, to_box, &part) || (s && best_with_piece(s, i) != i))
            continue;
        const void *from = jot_array_data(piece_of(a, i));
        if (!from)
            return status_last();
        copy_box(to, to_box, from, &have, &part, size);
    }
    return JOT_OK;
}

// So many bytes from device to device, or from the host or to it.
static jot_status copy_bytes(jot_device *there, void *to, jot_device *here, const void *from,
                             size_t bytes)
{
    if (rt_is_host(here))
        return there->type->upload(there, to, from, bytes);
    if (rt_is_host(there) || rt_is_elsewhere(here))
        return here->type->download(here, to, from, bytes);
    return there->type->copy(there, to, here, from, bytes);
}

// The box as a new array on the device, of a piece that has it.
static jot_array *take_from(jot_array *piece, const struct box *have, const struct box *box,
                            jot_device *device)
{
    jot_dtype dtype = (jot_dtype)piece->dtype;
    size_t size = dtype_get(dtype)->bytes, skip = (size_t)offset_in(have, box) * size;
    if (count_of(box) == count_of(have))
        return jot_array_to(piece, device);
    const char *from = (const char *)piece->data + skip;
    if (rt_is_host(device) && rt_is_host(rt_array_device(piece)))
        return rt_array_view(piece, device, box->rank, box->dims, from);
    jot_array *a = rt_array_create_on(device, dtype, box->rank, box->dims);
    if (a && copy_bytes(device, a->data, rt_array_device(piece), from, a->bytes) == JOT_OK)
        return a;
    jot_array_release(a);
    return NULL;
}

// The box as an array on the device.
static jot_array *assemble(const jot_array *a, const struct box *box, jot_device *device)
{
    if (rt_is_elsewhere(device))
        return rt_array_create_on(device, (jot_dtype)a->dtype, box->rank, box->dims);
    size_t found = find_piece(a, box, device);
    if (found < n_pieces(a)) {
        struct box have;
        box_of_piece(a, found, &have);
        return take_from(piece_of(a, found), &have, box, device);
    }
    jot_device *first = rt_is_host(device) ? device : jot_host();
    jot_array *here = rt_array_create_on(first, (jot_dtype)a->dtype, box->rank, box->dims);
    if (!here || gather_box(a, box, here->data) != JOT_OK) {
        jot_array_release(here);
        return NULL;
    }
    jot_array *there = jot_array_to(here, device);
    jot_array_release(here);
    return there;
}

// ---- whole arrays of pieces ----

jot_status rt_array_gather(const jot_array *a, void *to)
{
    struct box whole = {.rank = a->rank};
    memcpy(whole.dims, a->dims, (size_t)a->rank * sizeof *a->dims);
    return a->size ? gather_box(a, &whole, to) : JOT_OK;
}

jot_array *rt_array_whole_on(jot_array *a, jot_device *device)
{
    struct box whole = {.rank = a->rank};
    memcpy(whole.dims, a->dims, (size_t)a->rank * sizeof *a->dims);
    return assemble(a, &whole, device);
}

const void *rt_split_mirror(struct rt_split_array *s)
{
    void *mirror = atomic_load_explicit(&s->mirror, memory_order_acquire), *other = NULL;
    if (mirror)
        return mirror;
    mirror = rt_block_allocate(s->a.bytes);
    if (!mirror)
        return status_out_of_memory(), NULL;
    if (rt_array_gather(&s->a, mirror) == JOT_OK &&
        atomic_compare_exchange_strong(&s->mirror, &other, mirror))
        return mirror;
    rt_block_release(mirror, s->a.bytes);
    return other;
}

// ---- over processes ----

// The processes that have devices of the mesh, each once, and which of them has device i.
static struct rt_group processes_of(const jot_mesh *mesh, int *out_process, int64_t *out_which)
{
    struct rt_group g = {0, out_process};
    for (size_t i = 0; i < mesh->count; i++) {
        int process = rt_distributed_process_of(mesh->devices[i]);
        int64_t k = 0;
        while (k < g.count && out_process[k] != process)
            k++;
        if (k == g.count)
            out_process[g.count++] = process;
        out_which[i] = k;
    }
    return g;
}

// Every piece comes from the first device that has it.
static jot_status collect(const struct rt_split_array *s, const struct rt_group *g,
                          const int64_t *which, const char *what, void *piece, char *to)
{
    const jot_array *a = &s->a;
    size_t bytes = s->pieces[0]->bytes, size = dtype_get((jot_dtype)a->dtype)->bytes;
    struct box whole = {.rank = a->rank}, have;
    memcpy(whole.dims, a->dims, (size_t)a->rank * sizeof *a->dims);
    for (size_t i = 0; i < s->mesh->count; i++) {
        if (first_with_piece(s->mesh, &s->spec, i) != i)
            continue;
        if (!is_elsewhere(a, i)) {
            const void *from = jot_array_data(s->pieces[i]);
            if (!from)
                return status_last();
            memcpy(piece, from, bytes);
        }
        JOT_TRY(rt_distributed_broadcast(g, what, bytes, which[i], &piece));
        box_of_piece(a, i, &have);
        if (a->size)
            copy_box(to, &whole, piece, &have, &have, size);
    }
    return JOT_OK;
}

jot_status rt_array_collect(const jot_array *a, const char *what, void *to)
{
    const struct rt_split_array *s = rt_array_split(a);
    size_t n = s->mesh->count, own = 0;
    while (own < n && is_elsewhere(a, own))
        own++;
    if (own == n)
        return status_fail(JOT_ERR_ARGUMENT, "no device of the mesh is of this process");
    int *process = memory_allocate(n * sizeof *process);
    int64_t *which = memory_allocate(n * sizeof *which);
    void *piece = memory_allocate(s->pieces[0]->bytes + 1);
    jot_status status = process && which && piece ? JOT_OK : status_out_of_memory();
    if (status == JOT_OK) {
        struct rt_group g = processes_of(s->mesh, process, which);
        status = collect(s, &g, which, what, piece, to);
    }
    memory_release(piece);
    memory_release(which);
    memory_release(process);
    return status;
}

// ---- making them ----

// With the text of how it is split behind the pieces.
static size_t header_bytes(const jot_mesh *mesh, const struct rt_spec *spec)
{
    return sizeof(struct rt_split_array) + mesh->count * sizeof(jot_array *) +
           (size_t)rt_spec_text(mesh, spec, NULL, 0) + 1;
}

static char *text_of(struct rt_split_array *s) { return (char *)(s->pieces + s->mesh->count); }

void rt_split_release(struct rt_split_array *s)
{
    jot_arrays_release(s->mesh->count, s->pieces);
    rt_block_release(atomic_load(&s->mirror), s->a.bytes);
    rt_array_release_header(&s->a, header_bytes(s->mesh, &s->spec));
}

jot_array *rt_array_from_pieces(jot_mesh *mesh, const struct rt_spec *spec, jot_dtype dtype,
                                int rank, const int64_t *dims, jot_array **pieces)
{
    size_t bytes = header_bytes(mesh, spec);
    jot_array *a = rt_array_create_header(dtype, rank, dims, bytes);
    if (!a) {
        jot_arrays_release(mesh->count, pieces);
        return NULL;
    }
    struct rt_split_array *s = (struct rt_split_array *)a;
    a->flags = RT_ARRAY_SPLIT;
    a->data = NULL;
    s->mesh = mesh;
    s->spec = *spec;
    rt_spec_text(mesh, spec, text_of(s), bytes - (size_t)(text_of(s) - (char *)s));
    atomic_init(&s->mirror, NULL);
    memcpy(s->pieces, pieces, mesh->count * sizeof *pieces);
    return a;
}

jot_array *rt_array_split_as(jot_array *a, jot_mesh *mesh, const struct rt_spec *spec)
{
    struct rt_split_array *old = rt_array_split(a);
    if (old && old->mesh == mesh && rt_spec_equal(mesh, &old->spec, spec))
        return jot_array_retain(a);
    jot_array **pieces = memory_allocate_zeroed(mesh->count * sizeof *pieces);
    jot_array *split = NULL;
    if (!pieces)
        return status_out_of_memory(), NULL;
    for (size_t i = 0; i < mesh->count; i++) {
        struct box box = {.rank = a->rank};
        rt_spec_piece(mesh, spec, a->rank, a->dims, i, box.start, box.dims);
        size_t first = first_with_piece(mesh, spec, i);
        bool is_there = (old && find_piece(a, &box, mesh->devices[i]) < n_pieces(a)) ||
                        rt_is_elsewhere(mesh->devices[i]) ||
                        rt_is_elsewhere(mesh->devices[first]);
        pieces[i] = first < i && !is_there ? jot_array_to(pieces[first], mesh->devices[i])
                                           : assemble(a, &box, mesh->devices[i]);
        if (!pieces[i])
            goto end;
    }
    split = rt_array_from_pieces(mesh, spec, (jot_dtype)a->dtype, a->rank, a->dims, pieces);
    if (split)
        memset(pieces, 0, mesh->count * sizeof *pieces);
end:
    jot_arrays_release(mesh->count, pieces);
    memory_release(pieces);
    return split;
}

static jot_array *shard(jot_array *a, jot_mesh *mesh, const char *text)
{
    static const char who[] = "jot_array_shard";
    struct rt_spec spec;
    const char *why;
    if (!a) {
        jot_status status = status_of_null(STATUS_NULL_ARRAY, &why);
        return status_fail(status, "%s: the array is NULL%s", who, why), NULL;
    }
    if (!mesh) {
        why = jot_error_message();
        return status_fail(JOT_ERR_ARGUMENT, "%s: the mesh is NULL%s%s", who, *why ? ": " : "",
                           why),
               NULL;
    }
    if (rt_spec_parse(who, mesh, text, a->rank, &spec) != JOT_OK ||
        rt_spec_check(who, mesh, &spec, (jot_dtype)a->dtype, a->rank, a->dims) != JOT_OK)
        return NULL;
    for (size_t i = 0; i < mesh->count; i++)
        if (jot_device_check(mesh->devices[i]) != JOT_OK)
            return NULL;
    return rt_array_split_as(a, mesh, &spec);
}

jot_array *jot_array_shard(jot_array *a, jot_mesh *mesh, const char *spec)
{
    jot_array *split = shard(a, mesh, spec);
    return split ? split : status_null(STATUS_NULL_ARRAY, "jot_array_shard");
}

// Whether piece i is one of the mesh beside the first one of this process; another process has no
// piece here.
static jot_status check_piece(const char *who, const jot_mesh *mesh, jot_array *const *pieces,
                              size_t n_first, size_t i)
{
    const jot_array *first = pieces[n_first], *piece = pieces[i];
    if (!piece && rt_is_elsewhere(mesh->devices[i]))
        return JOT_OK;
    if (!piece)
        return status_fail(JOT_ERR_ARGUMENT, "%s: piece %zu is NULL", who, i);
    if (rt_array_split(piece) || rt_array_device(piece) != mesh->devices[i])
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: piece %zu is on %s%s, and the mesh has %s there: jot_array_to "
                           "takes it to it",
                           who, i, rt_array_split(piece) ? "several devices from " : "",
                           rt_array_device(piece)->name, mesh->devices[i]->name);
    if (piece->dtype != first->dtype)
        return status_fail(JOT_ERR_DTYPE, "%s: piece %zu is %s, piece %zu %s", who, i,
                           jot_dtype_name((jot_dtype)piece->dtype), n_first,
                           jot_dtype_name((jot_dtype)first->dtype));
    bool is_same = piece->rank == first->rank;
    for (int k = 0; is_same && k < first->rank; k++)
        is_same = piece->dims[k] == first->dims[k];
    return is_same ? JOT_OK
                   : status_fail(JOT_ERR_SHAPE,
                                 "%s: piece %zu has other sizes than piece %zu: all are to be "
                                 "alike",
                                 who, i, n_first);
}

static jot_array *from_shards(jot_mesh *mesh, const char *text, size_t n,
                              jot_array *const *pieces)
{
    static const char who[] = "jot_array_from_shards";
    struct rt_spec spec;
    int64_t dims[RT_ARRAY_RANK_LIMIT];
    if (!mesh || !pieces)
        return status_fail(JOT_ERR_ARGUMENT, "%s: %s is NULL", who,
                           mesh ? "pieces" : "the mesh"),
               NULL;
    if (n != mesh->count)
        return status_fail(JOT_ERR_ARGUMENT, "%s: %zu pieces for a mesh of %u devices", who, n,
                           mesh->count),
               NULL;
    size_t n_first = 0;
    while (n_first < n && rt_is_elsewhere(mesh->devices[n_first]))
        n_first++;
    if (n_first == n)
        return status_fail(JOT_ERR_ARGUMENT, "%s: no device of the mesh is of this process",
                           who),
               NULL;
    for (size_t i = 0; i < n; i++)
        if (check_piece(who, mesh, pieces, n_first, i) != JOT_OK)
            return NULL;
    const jot_array *first = pieces[n_first];
    if (rt_spec_parse(who, mesh, text, first->rank, &spec) != JOT_OK)
        return NULL;
    for (int k = 0; k < first->rank; k++) {
        dims[k] = first->dims[k];
        for (uint32_t axis = 0; axis < mesh->rank; axis++)
            if (spec.dim[axis] == k &&
                __builtin_mul_overflow(dims[k], mesh->dims[axis], &dims[k]))
                dims[k] = INT64_MAX;
    }
    if (rt_array_check(who, first->dtype, first->rank, dims) != JOT_OK)
        return NULL;
    jot_array **own = memory_allocate_zeroed(n * sizeof *own);
    if (!own)
        return status_out_of_memory(), NULL;
    for (size_t i = 0; i < n; i++) {
        own[i] = pieces[i] ? jot_array_retain(pieces[i])
                           : rt_array_create_on(mesh->devices[i], (jot_dtype)first->dtype,
                                                first->rank, first->dims);
        if (own[i])
            continue;
        jot_arrays_release(n, own);
        memory_release(own);
        return NULL;
    }
    jot_array *a =
        rt_array_from_pieces(mesh, &spec, (jot_dtype)first->dtype, first->rank, dims, own);
    memory_release(own);
    return a;
}

jot_array *jot_array_from_shards(jot_mesh *mesh, const char *spec, size_t n,
                                 jot_array *const *pieces)
{
    jot_array *a = from_shards(mesh, spec, n, pieces);
    return a ? a : status_null(STATUS_NULL_ARRAY, "jot_array_from_shards");
}

// ---- asking them ----

jot_mesh *jot_array_mesh(const jot_array *a)
{
    return a && rt_array_split(a) ? rt_array_split(a)->mesh : NULL;
}

const char *jot_array_spec(const jot_array *a)
{
    return a && rt_array_split(a) ? text_of(rt_array_split(a)) : NULL;
}

static jot_status check_number(const char *who, const jot_array *a, size_t i)
{
    if (!a)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the array is NULL", who);
    if (i >= n_pieces(a))
        return status_fail(JOT_ERR_ARGUMENT, "%s: piece %zu of an array of %zu", who, i,
                           n_pieces(a));
    return JOT_OK;
}

jot_array *jot_array_shard_on(const jot_array *a, size_t i)
{
    if (check_number("jot_array_shard_on", a, i) == JOT_OK)
        return jot_array_retain(piece_of(a, i));
    return status_null(STATUS_NULL_ARRAY, "jot_array_shard_on");
}

jot_status jot_array_shard_start(const jot_array *a, size_t i, int64_t *start)
{
    struct box box;
    if (!start)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_shard_start: start is NULL");
    JOT_TRY(check_number("jot_array_shard_start", a, i));
    box_of_piece(a, i, &box);
    memcpy(start, box.start, (size_t)a->rank * sizeof *start);
    return JOT_OK;
}

jot_array *rt_mesh_coordinates(jot_mesh *mesh)
{
    jot_array *coordinates = atomic_load_explicit(&mesh->coordinates, memory_order_acquire),
              *other = NULL;
    struct rt_spec spec;
    if (coordinates)
        return coordinates;
    for (uint32_t i = 0; i < RT_MESH_RANK; i++)
        spec.dim[i] = i < mesh->rank ? 0 : -1, spec.order[i] = (int8_t)i;
    jot_array *all =
        rt_array_create(JOT_I32, 1, (int64_t[]){(int64_t)mesh->count * mesh->rank});
    if (!all)
        return NULL;
    for (uint32_t i = 0; i < mesh->count; i++) {
        uint32_t rest = i;
        for (uint32_t axis = mesh->rank; axis-- > 0; rest /= (uint32_t)mesh->dims[axis])
            ((int32_t *)all->data)[i * mesh->rank + axis] =
                (int32_t)(rest % (uint32_t)mesh->dims[axis]);
    }
    coordinates = rt_array_split_as(all, mesh, &spec);
    jot_array_release(all);
    if (!coordinates || atomic_compare_exchange_strong(&mesh->coordinates, &other, coordinates))
        return coordinates;
    jot_array_release(coordinates);
    return other;
}
