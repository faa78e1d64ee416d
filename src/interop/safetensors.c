// SPDX-License-Identifier: Apache-2.0
#include "interop/safetensors.h"

#include "base/memory.h"
#include "base/status.h"
#include "interop/json.h"
#include "interop/raw_array.h"
#include "interop/safetensor_types.h"
#include "runtime/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_LIMIT UINT64_C(100000000) // of the reference implementation

// ---- the header ----

// Room for one more element of a list.
static jot_status make_room(void *list, size_t n, size_t *room, size_t bytes)
{
    void *old;
    memcpy(&old, list, sizeof old);
    if (n < *room)
        return JOT_OK;
    size_t more = 2 * *room + 8;
    void *larger = memory_resize(old, more * bytes);
    if (!larger)
        return status_out_of_memory();
    memcpy(list, &larger, sizeof larger);
    *room = more;
    return JOT_OK;
}

static jot_status read_notes(struct json *j, struct safetensors *s)
{
    JOT_TRY(json_expect(j, '{'));
    for (bool is_more = !json_take(j, '}'); is_more;) {
        struct note *note;
        JOT_TRY(make_room(&s->notes, s->n_notes, &s->notes_room, sizeof *s->notes));
        note = &s->notes[s->n_notes];
        JOT_TRY(json_key(j, &note->key));
        JOT_TRY(json_string(j, &note->text));
        s->n_notes++;
        JOT_TRY(json_next(j, '}', &is_more));
    }
    return JOT_OK;
}

static jot_status read_shape(struct json *j, struct safetensors *s, struct tensor *t)
{
    t->first_dim = s->n_dims;
    JOT_TRY(json_expect(j, '['));
    for (bool is_more = !json_take(j, ']'); is_more; t->rank++) {
        uint64_t n;
        JOT_TRY(json_count(j, &n));
        if (n > INT64_MAX || t->rank == RT_ARRAY_RANK_LIMIT)
            return JSON_FAIL(j, "%.100s has more than %d axes, or one that is too long",
                             t->name, RT_ARRAY_RANK_LIMIT);
        JOT_TRY(make_room(&s->dims, s->n_dims, &s->dims_room, sizeof *s->dims));
        s->dims[s->n_dims++] = (int64_t)n;
        JOT_TRY(json_next(j, ']', &is_more));
    }
    return JOT_OK;
}

static jot_status read_offsets(struct json *j, struct tensor *t)
{
    uint64_t end;
    JOT_TRY(json_expect(j, '['));
    JOT_TRY(json_count(j, &t->at));
    JOT_TRY(json_expect(j, ','));
    JOT_TRY(json_count(j, &end));
    JOT_TRY(json_expect(j, ']'));
    if (end < t->at)
        return JSON_FAIL(j, "%.100s ends before it begins", t->name);
    t->bytes = end - t->at;
    return JOT_OK;
}

static jot_status read_tensor(struct json *j, struct safetensors *s, struct tensor *t)
{
    enum { TYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    unsigned has = 0;
    JOT_TRY(json_expect(j, '{'));
    for (bool is_more = !json_take(j, '}'); is_more;) {
        const char *key;
        JOT_TRY(json_key(j, &key));
        unsigned which = strcmp(key, "dtype") == 0          ? TYPE
                         : strcmp(key, "shape") == 0        ? SHAPE
                         : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                            : 0;
        if (!which || (has & which))
            return JSON_FAIL(j, "%.100s has %s %.100s", t->name, which ? "two" : "the unknown",
                             key);
        has |= which;
        JOT_TRY(which == TYPE    ? json_string(j, &t->type)
                : which == SHAPE ? read_shape(j, s, t)
                                 : read_offsets(j, t));
        JOT_TRY(json_next(j, '}', &is_more));
    }
    return has == ALL ? JOT_OK
                      : JSON_FAIL(j, "%.100s has no %s", t->name,
                                  !(has & TYPE)    ? "dtype"
                                  : !(has & SHAPE) ? "shape"
                                                   : "data_offsets");
}

static jot_status read_entries(struct json *j, struct safetensors *s)
{
    JOT_TRY(json_expect(j, '{'));
    for (bool is_more = !json_take(j, '}'); is_more;) {
        struct tensor t = {0};
        json_peek(j);
        t.entry = j->start + j->at;
        JOT_TRY(json_key(j, &t.name));
        if (strcmp(t.name, "__metadata__") == 0) {
            JOT_TRY(read_notes(j, s));
        } else {
            JOT_TRY(read_tensor(j, s, &t));
            JOT_TRY(make_room(&s->tensors, s->n, &s->room, sizeof *s->tensors));
            s->tensors[s->n++] = t;
        }
        JOT_TRY(json_next(j, '}', &is_more));
    }
    return json_end(j);
}

// ---- checks ----

// What the elements of a type take; those of unknown types may take any number of bytes.
static jot_status check_size(const struct input *in, const struct safetensors *s,
                             const struct tensor *t)
{
    const struct safetensor_type *type = safetensor_type_named(t->type);
    uint64_t n = 1;
    bool is_empty = false, is_large = false;
    for (int i = 0; i < t->rank; i++)
        is_empty |= s->dims[t->first_dim + (size_t)i] == 0;
    for (int i = 0; !is_empty && i < t->rank; i++) {
        uint64_t dim = (uint64_t)s->dims[t->first_dim + (size_t)i];
        is_large |= n > UINT64_MAX / 64 / dim;
        n *= dim;
    }
    n = is_empty ? 0 : n;
    if (!type || (!is_large && n * type->bits % 8 == 0 && n * type->bits / 8 == t->bytes))
        return JOT_OK;
    if (is_large)
        return input_fail(in, t->entry, "%.100s has too many elements", t->name);
    return input_fail(in, t->entry,
                      "%.100s: %" PRIu64 " elements of %s do not take %" PRIu64 " bytes",
                      t->name, n, t->type, t->bytes);
}

struct sorted {
    const struct tensor *t;
};

static int by_offset(const void *x, const void *y)
{
    const struct tensor *a = ((const struct sorted *)x)->t, *b = ((const struct sorted *)y)->t;
    uint64_t end_a = a->at + a->bytes, end_b = b->at + b->bytes;
    return a->at != b->at ? (a->at < b->at ? -1 : 1) : (end_a > end_b) - (end_a < end_b);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct sorted *)x)->t->name, ((const struct sorted *)y)->t->name);
}

// One behind the other, from the begin to the end.
static jot_status check_offsets(const struct input *in, const struct safetensors *s,
                                uint64_t data, struct sorted *sorted)
{
    uint64_t at = 0, all = in->size - data;
    qsort(sorted, s->n, sizeof *sorted, by_offset);
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor *t = sorted[i].t;
        if (t->at != at)
            return input_fail(in, t->entry,
                              "%.100s begins at %" PRIu64 " of the elements, where %" PRIu64
                              " comes next",
                              t->name, t->at, at);
        if (t->bytes > all - at)
            return input_fail(in, t->entry,
                              "%.100s ends at %" PRIu64 " of the elements, of which there are "
                              "%" PRIu64 " bytes",
                              t->name, t->at + t->bytes, all);
        JOT_TRY(check_size(in, s, t));
        at += t->bytes;
    }
    if (at != all)
        return input_fail(in, data + at, "%" PRIu64 " bytes that belong to no tensor",
                          all - at);
    return JOT_OK;
}

static jot_status check(const struct input *in, struct safetensors *s, uint64_t data)
{
    struct sorted *sorted = memory_allocate((s->n + 1) * sizeof *sorted);
    s->by_name = memory_allocate((s->n + 1) * sizeof *s->by_name);
    jot_status status = sorted && s->by_name ? JOT_OK : status_out_of_memory();
    for (size_t i = 0; sorted && i < s->n; i++)
        sorted[i].t = &s->tensors[i];
    if (status == JOT_OK)
        status = check_offsets(in, s, data, sorted);
    if (status == JOT_OK)
        qsort(sorted, s->n, sizeof *sorted, by_name);
    for (size_t i = 0; status == JOT_OK && i < s->n; i++) {
        s->by_name[i] = (size_t)(sorted[i].t - s->tensors);
        if (i && strcmp(sorted[i - 1].t->name, sorted[i].t->name) == 0)
            status = input_fail(in, sorted[i].t->entry, "there are two of the name %.100s",
                                sorted[i].t->name);
    }
    for (size_t i = 0; i < s->n; i++)
        s->tensors[i].at += data;
    memory_release(sorted);
    return status;
}

jot_status safetensors_read(const struct input *in, struct safetensors *out)
{
    unsigned char length[8];
    uint64_t n = 0;
    *out = (struct safetensors){0};
    JOT_TRY(input_read(in, 0, length, sizeof length));
    for (int i = 8; i-- > 0;)
        n = n << 8 | length[i];
    if (n > HEADER_LIMIT)
        return input_fail(in, 0, "a header of %" PRIu64 " bytes, more than the format allows",
                          n);
    if (n > in->size - 8)
        return input_fail(in, 0,
                          "a header of %" PRIu64 " bytes, but there are %" PRIu64 " to the end",
                          n, in->size - 8);
    out->text = memory_allocate(n + 1);
    out->strings = memory_allocate(n + 1);
    if (!out->text || !out->strings)
        return status_out_of_memory();
    JOT_TRY(input_read(in, 8, out->text, n));
    struct json j = {.in = in, .start = 8, .text = out->text, .n = n, .room = out->strings};
    JOT_TRY(read_entries(&j, out));
    return check(in, out, 8 + n);
}

void safetensors_release(struct safetensors *s)
{
    memory_release(s->tensors);
    memory_release(s->by_name);
    memory_release(s->dims);
    memory_release(s->notes);
    memory_release(s->text);
    memory_release(s->strings);
    *s = (struct safetensors){0};
}

// ---- a tensor ----

size_t safetensors_find(const struct safetensors *s, const char *name)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(s->tensors[s->by_name[middle]].name, name);
        if (order == 0)
            return s->by_name[middle];
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return s->n;
}

static jot_status read_elements(const struct input *in, const struct tensor *t,
                                const struct safetensor_type *type, jot_array *a)
{
    JOT_TRY(input_read(in, t->at, a->data, t->bytes));
    if (type->is_f8e5m2)
        raw_array_widen(a);
    if (a->dtype == JOT_BOOL)
        raw_array_normalize(a);
    return JOT_OK;
}

jot_status safetensors_get(const struct input *in, const struct safetensors *s, size_t i,
                           jot_array **out)
{
    const struct tensor *t = &s->tensors[i];
    const struct safetensor_type *type = safetensor_type_named(t->type);
    const int64_t *dims = t->rank ? s->dims + t->first_dim : NULL;
    if (!type || !type->is_read)
        return input_fail(in, t->entry, "%.100s is of the type %.40s, which jot does not have",
                          t->name, t->type);
    if (rt_array_check("shape", (int)type->dtype, t->rank, dims) != JOT_OK)
        return input_fail(in, t->entry, "%.100s: %s", t->name, jot_error_message());
    jot_array *a =
        type->is_f8e5m2 ? NULL : raw_array_map(in, t->at, type->dtype, t->rank, dims);
    if (a)
        return raw_array_place(a, out);
    a = rt_array_create(type->dtype, t->rank, dims);
    if (!a)
        return status_last();
    jot_status status = read_elements(in, t, type, a);
    if (status == JOT_OK)
        return raw_array_place(a, out);
    jot_array_release(a);
    return status;
}
