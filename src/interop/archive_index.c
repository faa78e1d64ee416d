// SPDX-License-Identifier: Apache-2.0
// Indexes of tensors in several .safetensors files, as model.safetensors.index.json of Hugging
// Face.
#include "interop/archive.h"

#include "base/memory.h"
#include "base/status.h"
#include "interop/json.h"

#include <string.h>

#define INDEX_LIMIT ((uint64_t)100000000)

// ---- the files ----

static jot_status check_file_name(struct json *j, const char *name)
{
    bool is_beside = name[0] && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
    return is_beside ? JOT_OK
                     : JSON_FAIL(j, "%.100s is no name of a file beside the index", name);
}

// The number of the file, which is opened when it is named first.
static jot_status find_file(jot_archive *a, const char *folder, size_t n_folder,
                            const char *name, archive_open *open, size_t *out)
{
    for (*out = 0; *out < a->n_files; ++*out)
        if (strcmp(a->files[*out].in.name + n_folder, name) == 0)
            return JOT_OK;
    char *path = memory_allocate(n_folder + strlen(name) + 1);
    if (!path)
        return status_out_of_memory();
    memcpy(path, folder, n_folder);
    strcpy(path + n_folder, name);
    struct input in;
    jot_status status = open(&in, path);
    memory_release(path);
    return status == JOT_OK ? archive_take_file(a, &in) : status;
}

// ---- the map ----

static jot_status read_entry(jot_archive *a, struct json *j, archive_open *open, size_t *room)
{
    const char *tensor, *file, *slash = strrchr(j->in->name, '/');
    size_t n_folder = slash ? (size_t)(slash + 1 - j->in->name) : 0, number;
    JOT_TRY(json_key(j, &tensor));
    JOT_TRY(json_string(j, &file));
    JOT_TRY(check_file_name(j, file));
    JOT_TRY(find_file(a, j->in->name, n_folder, file, open, &number));
    const struct archive_file *f = &a->files[number];
    size_t i = safetensors_find(&f->tensors, tensor);
    if (i == f->tensors.n)
        return JSON_FAIL(j, "there is no %.100s in %.100s", tensor, file);
    if (a->n_entries == *room) {
        *room = 2 * *room + 8;
        struct archive_entry *larger = memory_resize(a->entries, *room * sizeof *a->entries);
        if (!larger)
            return status_out_of_memory();
        a->entries = larger;
    }
    a->entries[a->n_entries++] = (struct archive_entry){f->tensors.tensors[i].name, number, i};
    return JOT_OK;
}

static jot_status read_map(jot_archive *a, struct json *j, archive_open *open)
{
    size_t room = 0;
    JOT_TRY(json_expect(j, '{'));
    for (bool is_more = !json_take(j, '}'); is_more;) {
        JOT_TRY(read_entry(a, j, open, &room));
        JOT_TRY(json_next(j, '}', &is_more));
    }
    return JOT_OK;
}

static jot_status read_index(jot_archive *a, struct json *j, archive_open *open)
{
    bool has_map = false;
    JOT_TRY(json_expect(j, '{'));
    for (bool is_more = !json_take(j, '}'); is_more;) {
        const char *key;
        JOT_TRY(json_key(j, &key));
        bool is_map = strcmp(key, "weight_map") == 0;
        if (is_map && has_map)
            return JSON_FAIL(j, "there are two maps");
        has_map |= is_map;
        JOT_TRY(is_map ? read_map(a, j, open) : json_skip(j));
        JOT_TRY(json_next(j, '}', &is_more));
    }
    return has_map ? json_end(j) : JSON_FAIL(j, "there is no weight_map");
}

jot_status archive_take_index(jot_archive *a, const struct input *index, archive_open *open)
{
    if (index->size > INDEX_LIMIT)
        return input_fail(index, 0, "an index of more than 100 MB");
    size_t n = (size_t)index->size;
    char *text = memory_allocate(n + 1), *strings = memory_allocate(n + 1);
    jot_status status =
        text && strings ? input_read(index, 0, text, n) : status_out_of_memory();
    struct json j = {.in = index, .text = text, .n = n, .room = strings};
    if (status == JOT_OK)
        status = read_index(a, &j, open);
    memory_release(text);
    memory_release(strings);
    return status;
}
