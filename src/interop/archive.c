// SPDX-License-Identifier: Apache-2.0
// Archives of arrays: members of a file, which are read when they are asked for, and arrays.
#include "base/memory.h"
#include "base/status.h"
#include "interop/npy.h"
#include "interop/zip.h"
#include "jot/io.h"

#include <string.h>

struct added {
    char *name;
    jot_array *array;
};

struct jot_archive {
    struct input in;
    struct zip_member *members;
    struct added *added;
    size_t n_members, n_added, room;
};

// ---- making ----

jot_archive *jot_archive_create(void)
{
    jot_archive *a = memory_allocate_zeroed(sizeof *a);
    if (!a)
        status_out_of_memory();
    else
        a->in.file = -1;
    return a;
}

void jot_archive_release(jot_archive *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_added; i++) {
        jot_array_release(a->added[i].array);
        memory_release(a->added[i].name);
    }
    memory_release(a->added);
    memory_release(a->members);
    input_close(&a->in);
    memory_release(a);
}

// Takes over the input.
static jot_archive *read_input(struct input *in)
{
    jot_archive *a = jot_archive_create();
    if (!a) {
        input_close(in);
        return NULL;
    }
    a->in = *in;
    if (zip_read_directory(&a->in, &a->members, &a->n_members) == JOT_OK)
        return a;
    jot_archive_release(a);
    return NULL;
}

jot_archive *jot_archive_load(const char *path)
{
    struct input in;
    if (!path)
        return status_fail(JOT_ERR_ARGUMENT, "jot_archive_load: path is NULL"), NULL;
    return input_open(&in, path) == JOT_OK ? read_input(&in) : NULL;
}

jot_archive *jot_archive_from_memory(const char *name, const void *bytes, size_t n)
{
    struct input in;
    if (!name || (n && !bytes)) {
        status_fail(JOT_ERR_ARGUMENT, "jot_archive_from_memory: %s is NULL",
                    name ? "bytes" : "name");
        return NULL;
    }
    return input_copy(&in, name, bytes, n) == JOT_OK ? read_input(&in) : NULL;
}

// ---- reading ----

size_t jot_archive_count(const jot_archive *a) { return a ? a->n_members + a->n_added : 0; }

const char *jot_archive_name(const jot_archive *a, size_t i)
{
    if (i >= jot_archive_count(a))
        return NULL;
    return i < a->n_members ? a->members[i].name : a->added[i - a->n_members].name;
}

// The length of a name without ".npy".
static size_t stem(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0 ? n - 4 : n;
}

// The last one of that name; how many there are when there is none.
static size_t find_member(const jot_archive *a, const char *name)
{
    size_t count = jot_archive_count(a), n = stem(name);
    for (size_t i = count; i-- > 0;) {
        const char *has = jot_archive_name(a, i);
        if (strlen(has) == n && memcmp(has, name, n) == 0)
            return i;
    }
    return count;
}

static jot_status read_member(const jot_archive *a, size_t i, jot_array **out)
{
    struct zip_stream z;
    JOT_TRY(zip_open(&a->in, &a->members[i], &z));
    jot_status status = npy_read(&z.s, out);
    zip_close(&z);
    return status;
}

static jot_status get(const jot_archive *a, size_t i, jot_array **out)
{
    if (i < a->n_members)
        return read_member(a, i, out);
    *out = jot_array_retain(a->added[i - a->n_members].array);
    return JOT_OK;
}

jot_array *jot_archive_get(const jot_archive *a, const char *name)
{
    jot_array *array = NULL;
    if (!a || !name) {
        status_fail(JOT_ERR_ARGUMENT, "jot_archive_get: the %s is NULL",
                    a ? "name" : "archive");
        return status_null(STATUS_NULL_ARRAY, "jot_archive_get");
    }
    const char *file = a->in.name ? a->in.name : "the archive";
    size_t i = find_member(a, name), count = jot_archive_count(a);
    if (i == count)
        status_fail(JOT_ERR_ARGUMENT, "%s: there is no %.100s among the %zu arrays%s%.100s",
                    file, name, count, count ? ", the first of which is " : "",
                    count ? jot_archive_name(a, 0) : "");
    else if (get(a, i, &array) == JOT_OK)
        return array;
    return status_null(STATUS_NULL_ARRAY, file);
}

// ---- writing ----

jot_status jot_archive_add(jot_archive *a, const char *name, jot_array *array)
{
    if (!a || !name || !array)
        return status_fail(JOT_ERR_ARGUMENT, "jot_archive_add: the %s is NULL",
                           !a      ? "archive"
                           : !name ? "name"
                                   : "array");
    if (find_member(a, name) < jot_archive_count(a))
        return status_fail(JOT_ERR_ARGUMENT, "jot_archive_add: there is a %.100s already",
                           name);
    if (a->n_added == a->room) {
        size_t room = 2 * a->room + 8;
        struct added *larger = memory_resize(a->added, room * sizeof *larger);
        if (!larger)
            return status_out_of_memory();
        a->added = larger;
        a->room = room;
    }
    size_t n = stem(name);
    char *copy = memory_allocate(n + 1);
    if (!copy)
        return status_out_of_memory();
    memcpy(copy, name, n);
    copy[n] = 0;
    a->added[a->n_added++] = (struct added){copy, jot_array_retain(array)};
    return JOT_OK;
}

static jot_status write_member(struct zip_writer *w, const char *name, const jot_array *array,
                               bool is_deflated)
{
    char *header = NULL;
    size_t n;
    const void *data = jot_array_data(array);
    char *with_ending = memory_allocate(strlen(name) + 5);
    jot_status status = !data         ? status_last()
                        : with_ending ? npy_make_header(array, &header, &n)
                                      : status_out_of_memory();
    if (status == JOT_OK) {
        strcat(strcpy(with_ending, name), ".npy");
        status = zip_write(w, with_ending, is_deflated, 2,
                           (struct zip_piece[]){{header, n}, {data, jot_array_bytes(array)}});
    }
    memory_release(header);
    memory_release(with_ending);
    return status;
}

static jot_status write_members(const jot_archive *a, struct zip_writer *w, bool is_deflated)
{
    for (size_t i = 0; i < jot_archive_count(a); i++) {
        jot_array *array;
        JOT_TRY(get(a, i, &array));
        jot_status status = write_member(w, jot_archive_name(a, i), array, is_deflated);
        jot_array_release(array);
        JOT_TRY(status);
    }
    return zip_finish(w);
}

jot_status jot_archive_save(const jot_archive *a, const char *path, bool is_deflated)
{
    struct output o;
    if (!a || !path)
        return status_fail(JOT_ERR_ARGUMENT, "jot_archive_save: the %s is NULL",
                           a ? "path" : "archive");
    JOT_TRY(output_open(&o, path));
    struct zip_writer w = {.o = &o, .wide = UINT32_MAX};
    jot_status status = write_members(a, &w, is_deflated);
    memory_release(w.directory);
    return output_close(&o, status);
}
