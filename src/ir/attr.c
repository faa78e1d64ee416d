// SPDX-License-Identifier: Apache-2.0
#include "ir/attr.h"

#include "ir/graph.h"

#include <assert.h>

const struct ir_key_info ir_key_table[IR_KEY_COUNT] = {
#define KEY(name, kind) [IR_KEY_##name] = {#name, IR_KIND_##kind},
#include "ir/keys.def"
#undef KEY
};

static size_t field_bytes(const struct ir_field *f)
{
    enum ir_key_kind kind = ir_key_table[f->key].kind;
    bool raw = kind == IR_KIND_BYTES || kind == IR_KIND_TEXT;
    return raw ? f->count : f->count * sizeof(int64_t);
}

static bool fields_equal(const struct ir_attrs *a, int count, const struct ir_field *sorted)
{
    if ((int)a->count != count)
        return false;
    for (int i = 0; i < count; i++)
        if (a->fields[i].key != sorted[i].key || a->fields[i].count != sorted[i].count ||
            (sorted[i].count &&
             memcmp(a->fields[i].bytes, sorted[i].bytes, field_bytes(&sorted[i])) != 0))
            return false;
    return true;
}

const struct ir_attrs *ir_attrs_make(struct ir_module *m, int count,
                                     const struct ir_field *fields)
{
    if (count == 0)
        return NULL;
    assert(count <= IR_KEY_COUNT);
    struct ir_field sorted[IR_KEY_COUNT];
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1].key > fields[i].key; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = fields[i];
    }
    uint64_t hash = (uint64_t)count;
    for (int i = 0; i < count; i++)
        hash = hash_bytes(hash_combine(hash, sorted[i].key), sorted[i].bytes,
                          field_bytes(&sorted[i]));
    for (struct hash_probe p = hash_probe(&m->attr_table, hash); hash_next(&m->attr_table, &p);)
        if (fields_equal(m->attrs.at[p.id], count, sorted))
            return m->attrs.at[p.id];

    struct ir_attrs *a = arena_allocate(m->arena, sizeof(struct ir_attrs) +
                                                      sizeof(struct ir_field) * (size_t)count);
    a->hash = hash;
    a->id = m->attrs.count;
    a->count = (uint32_t)count;
    for (int i = 0; i < count; i++) {
        a->fields[i] = sorted[i];
        // One byte more, so that TEXT ends in a zero.
        unsigned char *copy = arena_allocate(m->arena, field_bytes(&sorted[i]) + 1);
        if (field_bytes(&sorted[i]))
            memcpy(copy, sorted[i].bytes, field_bytes(&sorted[i]));
        a->fields[i].bytes = copy;
    }
    vec_push(m->arena, &m->attrs, a);
    hash_insert(m->arena, &m->attr_table, hash, a->id);
    return a;
}

const struct ir_field *ir_field_find(const struct ir_attrs *a, enum ir_key key)
{
    for (uint32_t i = 0; a && i < a->count; i++)
        if (a->fields[i].key == key)
            return &a->fields[i];
    return NULL;
}

int64_t ir_attr_int(const struct ir_attrs *a, enum ir_key key)
{
    const struct ir_field *f = ir_field_find(a, key);
    assert(f && f->count == 1);
    return f->ints[0];
}

int64_t ir_attr_int_or(const struct ir_attrs *a, enum ir_key key, int64_t otherwise)
{
    const struct ir_field *f = ir_field_find(a, key);
    return f && f->count == 1 ? f->ints[0] : otherwise;
}

const int64_t *ir_attr_ints(const struct ir_attrs *a, enum ir_key key, int *count)
{
    static const int64_t none[1];
    const struct ir_field *f = ir_field_find(a, key);
    *count = f ? (int)f->count : 0;
    return f ? f->ints : none;
}
