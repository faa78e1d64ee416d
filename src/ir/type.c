// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include "ir/graph.h"

#include <assert.h>

static uint32_t intern_shape(struct ir_module *m, int rank, const int64_t *dims)
{
    uint64_t hash = hash_bytes((uint64_t)rank, dims, sizeof *dims * (size_t)rank);
    for (struct hash_probe p = hash_probe(&m->shape_table, hash);
         hash_next(&m->shape_table, &p);) {
        const int64_t *shape = m->shapes.at[p.id];
        if (shape[0] == rank && !memcmp(shape + 1, dims, sizeof *dims * (size_t)rank))
            return p.id;
    }
    int64_t *shape = arena_array(m->arena, int64_t, rank + 1);
    shape[0] = rank;
    memcpy(shape + 1, dims, sizeof *dims * (size_t)rank);
    vec_push(m->arena, &m->shapes, shape);
    hash_insert(m->arena, &m->shape_table, hash, m->shapes.count - 1);
    return m->shapes.count - 1;
}

struct ir_type ir_type_make(struct ir_module *m, jot_dtype dtype, int rank, const int64_t *dims)
{
    static const int64_t none[1];
    return (struct ir_type){.shape = intern_shape(m, rank, dims ? dims : none),
                            .dtype = (uint8_t)dtype,
                            .rank = (uint8_t)rank};
}

struct ir_type ir_type_with(struct ir_type t, jot_dtype dtype)
{
    t.dtype = (uint8_t)dtype;
    return t;
}

struct ir_type ir_type_stack(struct ir_module *m, struct ir_type t, int64_t size)
{
    int64_t dims[IR_MAX_RANK + 1] = {size};
    assert(t.rank < IR_MAX_RANK);
    memcpy(dims + 1, ir_dims(m, t), sizeof *dims * t.rank);
    struct ir_type stacked = ir_type_make(m, ir_dtype(t), t.rank + 1, dims);
    stacked.varies = t.varies;
    return stacked;
}

struct ir_type ir_type_row(struct ir_module *m, struct ir_type t)
{
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(m, t) + 1, sizeof *dims * (t.rank - 1u));
    struct ir_type row = ir_type_make(m, ir_dtype(t), t.rank - 1, dims);
    row.varies = t.varies;
    return row;
}

const int64_t *ir_dims(const struct ir_module *m, struct ir_type t)
{
    return m->shapes.at[t.shape] + 1;
}

int64_t ir_count(const struct ir_module *m, struct ir_type t)
{
    const int64_t *dims = ir_dims(m, t);
    int64_t count = 1;
    for (int i = 0; i < t.rank; i++)
        count *= dims[i];
    return count;
}

int ir_axis_add(struct ir_module *m, const char *name, int64_t size)
{
    for (uint32_t i = 0; i < m->axes.count; i++)
        if (m->axes.at[i].size == size && !strcmp(m->axes.at[i].name, name))
            return (int)i;
    if (m->axes.count == IR_MAX_AXES)
        return -1;
    vec_push(m->arena, &m->axes,
             (struct ir_axis){.name = arena_text(m->arena, name), .size = size});
    return (int)m->axes.count - 1;
}

void ir_axis_print(struct strbuf *s, const struct ir_module *m, int axis)
{
    strbuf_printf(s, "%s:%lld", m->axes.at[axis].name, (long long)m->axes.at[axis].size);
}

void ir_type_print(struct strbuf *s, const struct ir_module *m, struct ir_type t)
{
    const int64_t *dims = ir_dims(m, t);
    strbuf_printf(s, "%s[", jot_dtype_name(ir_dtype(t)));
    for (int i = 0; i < t.rank; i++)
        strbuf_printf(s, i ? ",%lld" : "%lld", (long long)dims[i]);
    strbuf_add(s, "]");
    for (int i = 0, any = 0; t.varies >> i; i++) {
        if (!(t.varies >> i & 1))
            continue;
        strbuf_add(s, any++ ? "," : "<");
        ir_axis_print(s, m, i);
    }
    strbuf_add(s, t.varies ? ">" : "");
}

const char *ir_type_text(struct ir_module *m, struct ir_type t)
{
    struct strbuf s = strbuf_make(m->arena);
    ir_type_print(&s, m, t);
    return s.text;
}
