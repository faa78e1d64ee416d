// SPDX-License-Identifier: Apache-2.0
// Writing .safetensors files, in the order of the reference implementation: its bytes are the
// same.
#include "base/memory.h"
#include "base/status.h"
#include "interop/json_write.h"
#include "interop/safetensor_types.h"
#include "interop/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the types ----

// In the order of the reference implementation, by the width of elements.
static const struct safetensor_type types[] = {
    {"BOOL", 8, true, false, JOT_BOOL},    {"F4", 4, false, false, JOT_F16},
    {"F6_E2M3", 6, false, false, JOT_F16}, {"F6_E3M2", 6, false, false, JOT_F16},
    {"U8", 8, true, false, JOT_U8},        {"I8", 8, true, false, JOT_I8},
    {"F8_E5M2", 8, true, true, JOT_F16},   {"F8_E4M3", 8, false, false, JOT_F16},
    {"F8_E8M0", 8, false, false, JOT_F16}, {"I16", 16, true, false, JOT_I16},
    {"U16", 16, true, false, JOT_U16},     {"F16", 16, true, false, JOT_F16},
    {"BF16", 16, true, false, JOT_BF16},   {"I32", 32, true, false, JOT_I32},
    {"U32", 32, true, false, JOT_U32},     {"F32", 32, true, false, JOT_F32},
    {"C64", 64, true, false, JOT_C64},     {"F64", 64, true, false, JOT_F64},
    {"I64", 64, true, false, JOT_I64},     {"U64", 64, true, false, JOT_U64},
};
enum { TYPES = sizeof types / sizeof *types };

const struct safetensor_type *safetensor_type_named(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const struct safetensor_type *safetensor_type_of(jot_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].is_read && !types[i].is_f8e5m2 && types[i].dtype == dtype)
            return &types[i];
    return NULL;
}

// ---- the header ----

static void put_notes(struct json_text *t, size_t n, const struct note *notes)
{
    json_put(t, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        json_put(t, i ? "," : "");
        json_put_string(t, notes[i].key);
        json_put(t, ":");
        json_put_string(t, notes[i].text);
    }
    json_put(t, "}");
}

static uint64_t put_tensor(struct json_text *t, const struct named_array *x, uint64_t at)
{
    const jot_array *a = x->array;
    json_put_string(t, x->name);
    json_put(t, ":{\"dtype\":\"");
    json_put(t, safetensor_type_of(jot_array_dtype(a))->name);
    json_put(t, "\",\"shape\":[");
    for (int i = 0; i < jot_array_rank(a); i++) {
        json_put_count(t, (uint64_t)jot_array_dim(a, i));
        json_put(t, i + 1 < jot_array_rank(a) ? "," : "");
    }
    json_put(t, "],\"data_offsets\":[");
    json_put_count(t, at);
    json_put(t, ",");
    at += jot_array_bytes(a);
    json_put_count(t, at);
    json_put(t, "]}");
    return at;
}

static int by_type_and_name(const void *x, const void *y)
{
    const struct named_array *a = x, *b = y;
    const struct safetensor_type *s = safetensor_type_of(jot_array_dtype(a->array)),
                                 *t = safetensor_type_of(jot_array_dtype(b->array));
    return s != t ? (s > t ? -1 : 1) : strcmp(a->name, b->name);
}

// Whether the bytes are UTF-8, which the format asks for.
static bool is_utf8(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : (*p & 0xf0) == 0xe0 ? 2 : 3;
        bool is_lead = *p < 0x80 || (*p >= 0xc2 && *p < 0xf5);
        unsigned first = p[0], second = is_lead && more ? p[1] : 0x80;
        bool is_short = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
        bool is_beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
        if (!is_lead || is_short || is_beyond)
            return false;
        for (p++; more--; p++)
            if ((*p & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static jot_status check(const struct output *o, size_t n, const struct named_array *list,
                        size_t n_notes, const struct note *notes)
{
    for (size_t i = 0; i < n; i++) {
        if (!safetensor_type_of(jot_array_dtype(list[i].array)))
            return status_fail(JOT_ERR_DTYPE,
                               "%s: %.100s is %s, which safetensors does not have", o->path,
                               list[i].name, jot_dtype_name(jot_array_dtype(list[i].array)));
        if (!is_utf8(list[i].name) || strcmp(list[i].name, "__metadata__") == 0)
            return status_fail(JOT_ERR_ARGUMENT, "%s: an array may not have the name %.100s",
                               o->path, list[i].name);
    }
    for (size_t i = 0; i < n_notes; i++)
        if (!is_utf8(notes[i].key) || !is_utf8(notes[i].text))
            return status_fail(JOT_ERR_ARGUMENT, "%s: the metadata %.100s is no UTF-8", o->path,
                               notes[i].key);
    return JOT_OK;
}

static jot_status write_header(struct output *o, const struct json_text *t)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)t->n >> 8 * i);
    JOT_TRY(output_write(o, length, sizeof length));
    return output_write(o, t->bytes, t->n);
}

jot_status safetensors_write(struct output *o, size_t n, struct named_array *list,
                             size_t n_notes, const struct note *notes)
{
    struct json_text t = {0};
    uint64_t at = 0;
    JOT_TRY(check(o, n, list, n_notes, notes));
    qsort(list, n, sizeof *list, by_type_and_name);
    json_put(&t, "{");
    if (n_notes)
        put_notes(&t, n_notes, notes);
    for (size_t i = 0; i < n; i++) {
        json_put(&t, i || n_notes ? "," : "");
        at = put_tensor(&t, &list[i], at);
    }
    json_put(&t, "}");
    while (t.n % 8 && !t.is_lost)
        json_put(&t, " ");
    jot_status status = t.is_lost ? status_out_of_memory() : write_header(o, &t);
    for (size_t i = 0; status == JOT_OK && i < n; i++) {
        const void *data = jot_array_data(list[i].array);
        status = data ? output_write(o, data, jot_array_bytes(list[i].array)) : status_last();
    }
    memory_release(t.bytes);
    return status;
}
