// SPDX-License-Identifier: Apache-2.0
#include "base/collective.h"

#include "base/dtype.h"

#include <stddef.h>

#define HEAD 4 // params in front of the axes

int64_t collective_mesh_size(uint32_t mesh_rank, const int64_t *mesh)
{
    int64_t size = 1;
    if (mesh_rank > COLLECTIVE_MESH_RANK)
        return 0;
    for (uint32_t i = 0; i < mesh_rank; i++) {
        if (mesh[i] < 1 || mesh[i] > COLLECTIVE_MOST)
            return 0;
        size *= mesh[i];
        if (size > COLLECTIVE_MOST)
            return 0;
    }
    return size;
}

static const char *read_axes(const int64_t *params, uint32_t n, uint32_t mesh_rank,
                             const int64_t *mesh, struct collective *out)
{
    uint32_t seen = 0;
    if (params[3] < 0 || params[3] > mesh_rank || params[3] > (int64_t)n - HEAD)
        return "of axes that the mesh does not have";
    out->n_axes = (uint32_t)params[3];
    out->axes = params + HEAD;
    out->size = 1;
    for (uint32_t i = 0; i < out->n_axes; i++) {
        int64_t axis = out->axes[i];
        if (axis < 0 || axis >= mesh_rank || seen & 1u << axis)
            return "of axes that the mesh does not have";
        seen |= 1u << axis;
        out->size *= mesh[axis];
    }
    return NULL;
}

static bool can_combine(enum collective_combiner combiner, jot_dtype dtype)
{
    char kind = dtype_get(dtype)->kind;
    if (combiner == COLLECTIVE_AND || combiner == COLLECTIVE_OR)
        return kind == 'b' || kind == 'i' || kind == 'u';
    if (combiner == COLLECTIVE_MAX || combiner == COLLECTIVE_MIN)
        return kind != 'c';
    return kind != 'b';
}

const char *collective_read(const int64_t *params, uint32_t n, uint32_t mesh_rank,
                            const int64_t *mesh, struct collective *out)
{
    if (collective_mesh_size(mesh_rank, mesh) == 0)
        return "on no mesh";
    if (n < HEAD || params[0] < 0 || params[0] >= COLLECTIVE_KIND_COUNT || params[1] < 0 ||
        params[1] >= COLLECTIVE_COMBINER_COUNT || params[2] < 0 || params[2] > INT32_MAX ||
        !dtype_is_valid((int)params[2]))
        return "of no kind";
    *out = (struct collective){.kind = (enum collective_kind)params[0],
                               .combiner = (enum collective_combiner)params[1],
                               .dtype = (jot_dtype)params[2]};
    const char *fault = read_axes(params, n, mesh_rank, mesh, out);
    if (fault)
        return fault;
    if (collective_reduces(out) && !can_combine(out->combiner, out->dtype))
        return "of elements that it cannot combine";
    int64_t n_sources = out->kind == COLLECTIVE_PERMUTE ? out->size : 0;
    if ((int64_t)n - HEAD - out->n_axes != n_sources)
        return "of too many or too few numbers";
    out->sources = out->axes + out->n_axes;
    for (int64_t i = 0; i < n_sources; i++)
        if (out->sources[i] < -1 || out->sources[i] >= out->size)
            return "from a device outside of the group";
    return NULL;
}

bool collective_fits(const struct collective *c, uint64_t to_bytes, uint64_t from_bytes)
{
    uint64_t size = (uint64_t)c->size, product;
    if (to_bytes % dtype_get(c->dtype)->bytes || from_bytes % dtype_get(c->dtype)->bytes)
        return false;
    switch (c->kind) {
    case COLLECTIVE_REDUCE_SCATTER:
        return !__builtin_mul_overflow(to_bytes, size, &product) && product == from_bytes;
    case COLLECTIVE_ALL_GATHER:
        return !__builtin_mul_overflow(from_bytes, size, &product) && product == to_bytes;
    case COLLECTIVE_ALL_TO_ALL:
        return to_bytes == from_bytes &&
               to_bytes % (size * (uint64_t)dtype_get(c->dtype)->bytes) == 0;
    default:
        return to_bytes == from_bytes;
    }
}

uint64_t collective_part(const struct collective *c, uint64_t to_bytes, uint64_t from_bytes)
{
    if (c->kind == COLLECTIVE_ALL_TO_ALL)
        return to_bytes / (uint64_t)c->size;
    return to_bytes < from_bytes ? to_bytes : from_bytes;
}

const char *collective_name(enum collective_kind kind)
{
    static const char *const names[] = {
        [COLLECTIVE_ALL_REDUCE] = "all_reduce", [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
        [COLLECTIVE_ALL_GATHER] = "all_gather", [COLLECTIVE_ALL_TO_ALL] = "all_to_all",
        [COLLECTIVE_PERMUTE] = "permute",
    };
    return names[kind];
}

const char *collective_combiner_name(enum collective_combiner combiner)
{
    static const char *const names[] = {
        [COLLECTIVE_SUM] = "sum", [COLLECTIVE_PRODUCT] = "product", [COLLECTIVE_MAX] = "max",
        [COLLECTIVE_MIN] = "min", [COLLECTIVE_AND] = "and",         [COLLECTIVE_OR] = "or",
    };
    return names[combiner];
}

// How far apart neighbours along an axis are.
static int64_t step_of(uint32_t mesh_rank, const int64_t *mesh, int64_t axis)
{
    int64_t step = 1;
    for (uint32_t i = mesh_rank; i-- > (uint32_t)axis + 1;)
        step *= mesh[i];
    return step;
}

int64_t collective_position(const struct collective *c, uint32_t mesh_rank, const int64_t *mesh,
                            int64_t device)
{
    int64_t position = 0;
    for (uint32_t i = 0; i < c->n_axes; i++) {
        int64_t axis = c->axes[i];
        position = position * mesh[axis] + device / step_of(mesh_rank, mesh, axis) % mesh[axis];
    }
    return position;
}

int64_t collective_member(const struct collective *c, uint32_t mesh_rank, const int64_t *mesh,
                          int64_t device, int64_t position)
{
    for (uint32_t i = c->n_axes; i-- > 0;) {
        int64_t axis = c->axes[i], step = step_of(mesh_rank, mesh, axis);
        device += (position % mesh[axis] - device / step % mesh[axis]) * step;
        position /= mesh[axis];
    }
    return device;
}
