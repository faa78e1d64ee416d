// SPDX-License-Identifier: Apache-2.0
// Archives of arrays: members of files, which are read when they are asked for, and arrays.
#include "interop/archive.h"

#include "base/memory.h"
#include "base/status.h"
#include "interop/npy.h"
#include "jot/io.h"

#include <string.h>

// ---- making ----

static char *copy_text(const char *text)
{
    char *copy = memory_allocate(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

jot_archive *jot_archive_create(void)
{
    jot_archive *a = memory_allocate_zeroed(sizeof *a);
    if (!a)
        status_out_of_memory();
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
    for (size_t i = 0; i < a->n_notes; i++) {
        memory_release(a->notes[i].key);
        memory_release(a->notes[i].text);
    }
    for (size_t i = 0; i < a->n_files; i++) {
        memory_release(a->files[i].members);
        safetensors_release(&a->files[i].tensors);
        input_close(&a->files[i].in);
    }
    memory_release(a->added);
    memory_release(a->notes);
    memory_release(a->files);
    memory_release(a->entries);
    memory_release(a->name);
    memory_release(a);
}

// The metadata of files; of several texts with one key the first stays.
static jot_status take_notes(jot_archive *a, const struct safetensors *s)
{
    for (size_t i = 0; i < s->n_notes; i++)
        if (!jot_archive_metadata(a, s->notes[i].key))
            JOT_TRY(jot_archive_set_metadata(a, s->notes[i].key, s->notes[i].text));
    return JOT_OK;
}

static bool is_safetensors(const struct input *in)
{
    char start[9];
    return in->size >= sizeof start && input_read(in, 0, start, sizeof start) == JOT_OK &&
           start[8] == '{'; // in an archive of ZIP that would be a method which there is not
}

jot_status archive_take_file(jot_archive *a, struct input *in)
{
    struct archive_file *larger = memory_resize(a->files, (a->n_files + 1) * sizeof *a->files);
    if (!larger) {
        input_close(in);
        return status_out_of_memory();
    }
    a->files = larger;
    struct archive_file *f = &a->files[a->n_files++];
    *f = (struct archive_file){.in = *in};
    if (!is_safetensors(&f->in))
        return zip_read_directory(&f->in, &f->members, &f->n_members);
    JOT_TRY(safetensors_read(&f->in, &f->tensors));
    return take_notes(a, &f->tensors);
}

// The members of the one file.
static jot_status list_entries(jot_archive *a)
{
    const struct archive_file *f = &a->files[0];
    size_t n = f->n_members + f->tensors.n;
    a->entries = memory_allocate((n + 1) * sizeof *a->entries);
    if (!a->entries)
        return status_out_of_memory();
    for (size_t i = 0; i < n; i++)
        a->entries[i] = (struct archive_entry){
            f->n_members ? f->members[i].name : f->tensors.tensors[i].name, 0, i};
    a->n_entries = n;
    return JOT_OK;
}

// Text; the length that a .safetensors file begins with has zero bytes, and may begin with this one.
static bool is_index(const struct input *in)
{
    char start[8] = "";
    size_t n = in->size < sizeof start ? (size_t)in->size : sizeof start;
    return input_read(in, 0, start, n) == JOT_OK && start[0] == '{' && !memchr(start, 0, n);
}

// Takes over the input; `open` opens what an index names, and is NULL where there is no index.
static jot_archive *read_input(struct input *in, archive_open *open)
{
    jot_archive *a = jot_archive_create();
    jot_status status = a && (a->name = copy_text(in->name)) ? JOT_OK : status_out_of_memory();
    if (status == JOT_OK && open && is_index(in)) {
        status = archive_take_index(a, in, open);
        input_close(in);
    } else if (status == JOT_OK) {
        status = archive_take_file(a, in);
        status = status == JOT_OK ? list_entries(a) : status;
    } else {
        input_close(in);
    }
    if (status == JOT_OK)
        return a;
    jot_archive_release(a);
    return NULL;
}

static jot_archive *load(const char *name, const char *path, archive_open *open)
{
    struct input in;
    if (!path)
        status_fail(JOT_ERR_ARGUMENT, "%s: path is NULL", name);
    jot_archive *a = path && open(&in, path) == JOT_OK ? read_input(&in, open) : NULL;
    return a ? a : status_null(STATUS_NULL_ARCHIVE, path ? path : name);
}

jot_archive *jot_archive_load(const char *path)
{
    return load("jot_archive_load", path, input_open);
}

jot_archive *jot_archive_map(const char *path)
{
    return load("jot_archive_map", path, input_map);
}

jot_archive *jot_archive_from_memory(const char *name, const void *bytes, size_t n)
{
    struct input in;
    if (!name || (n && !bytes)) {
        status_fail(JOT_ERR_ARGUMENT, "jot_archive_from_memory: %s is NULL",
                    name ? "bytes" : "name");
        return NULL;
    }
    return input_copy(&in, name, bytes, n) == JOT_OK ? read_input(&in, NULL) : NULL;
}

// ---- reading ----

size_t jot_archive_count(const jot_archive *a) { return a ? a->n_entries + a->n_added : 0; }

const char *jot_archive_name(const jot_archive *a, size_t i)
{
    if (i >= jot_archive_count(a))
        return NULL;
    return i < a->n_entries ? a->entries[i].name : a->added[i - a->n_entries].name;
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

static jot_status read_member(const struct input *in, const struct zip_member *m,
                              jot_array **out)
{
    struct zip_stream z;
    JOT_TRY(zip_open(in, m, &z));
    jot_status status = npy_read(&z.s, out);
    zip_close(&z);
    return status;
}

jot_status archive_get(const jot_archive *a, size_t i, jot_array **out)
{
    if (i >= a->n_entries) {
        *out = jot_array_retain(a->added[i - a->n_entries].array);
        return JOT_OK;
    }
    const struct archive_entry *e = &a->entries[i];
    const struct archive_file *f = &a->files[e->file];
    return f->members ? read_member(&f->in, &f->members[e->index], out)
                      : safetensors_get(&f->in, &f->tensors, e->index, out);
}

jot_status archive_is_null(const char *function)
{
    const char *why;
    jot_status status = status_of_null(STATUS_NULL_ARCHIVE, &why);
    return status_fail(status, "%s: the archive is NULL%s", function, why);
}

jot_array *jot_archive_get(const jot_archive *a, const char *name)
{
    jot_array *array = NULL;
    if (!a || !name) {
        if (a)
            status_fail(JOT_ERR_ARGUMENT, "jot_archive_get: the name is NULL");
        else
            archive_is_null("jot_archive_get");
        return status_null(STATUS_NULL_ARRAY, "jot_archive_get");
    }
    const char *file = a->name ? a->name : "the archive";
    size_t i = find_member(a, name), count = jot_archive_count(a);
    if (i == count)
        status_fail(JOT_ERR_ARGUMENT, "%s: there is no %.100s among the %zu arrays%s%.100s",
                    file, name, count, count ? ", the first of which is " : "",
                    count ? jot_archive_name(a, 0) : "");
    else if (archive_get(a, i, &array) == JOT_OK)
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
        struct added_array *larger = memory_resize(a->added, room * sizeof *larger);
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
    a->added[a->n_added++] = (struct added_array){copy, jot_array_retain(array)};
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
        JOT_TRY(archive_get(a, i, &array));
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

static jot_status write_some(const jot_archive *a, struct output *o, size_t n,
                             const size_t *numbers, struct named_array *list,
                             struct note *notes)
{
    for (size_t i = 0; i < n; i++) {
        size_t number = numbers ? numbers[i] : i;
        list[i].name = jot_archive_name(a, number);
        JOT_TRY(archive_get(a, number, &list[i].array));
    }
    for (size_t i = 0; i < a->n_notes; i++)
        notes[i] = (struct note){a->notes[i].key, a->notes[i].text};
    return safetensors_write(o, n, list, a->n_notes, notes);
}

jot_status archive_save_some(const jot_archive *a, const char *path, size_t n,
                             const size_t *numbers)
{
    struct output o;
    JOT_TRY(output_open(&o, path));
    struct named_array *list = memory_allocate_zeroed((n + 1) * sizeof *list);
    struct note *notes = memory_allocate((a->n_notes + 1) * sizeof *notes);
    jot_status status =
        list && notes ? write_some(a, &o, n, numbers, list, notes) : status_out_of_memory();
    for (size_t i = 0; list && i < n; i++)
        jot_array_release(list[i].array);
    memory_release(list);
    memory_release(notes);
    return output_close(&o, status);
}

jot_status jot_archive_save_safetensors(const jot_archive *a, const char *path)
{
    if (!a || !path)
        return status_fail(JOT_ERR_ARGUMENT, "jot_archive_save_safetensors: the %s is NULL",
                           a ? "path" : "archive");
    return archive_save_some(a, path, jot_archive_count(a), NULL);
}

// ---- metadata ----

static size_t find_note(const jot_archive *a, const char *key)
{
    size_t i = 0;
    while (i < a->n_notes && strcmp(a->notes[i].key, key) != 0)
        i++;
    return i;
}

const char *jot_archive_metadata(const jot_archive *a, const char *name)
{
    size_t i = a && name ? find_note(a, name) : 0;
    return a && name && i < a->n_notes ? a->notes[i].text : NULL;
}

const char *jot_archive_metadata_key(const jot_archive *a, size_t i)
{
    return a && i < a->n_notes ? a->notes[i].key : NULL;
}

static void remove_note(jot_archive *a, size_t i)
{
    memory_release(a->notes[i].key);
    memory_release(a->notes[i].text);
    memmove(&a->notes[i], &a->notes[i + 1], (--a->n_notes - i) * sizeof *a->notes);
}

jot_status jot_archive_set_metadata(jot_archive *a, const char *name, const char *text)
{
    if (!a || !name)
        return status_fail(JOT_ERR_ARGUMENT, "jot_archive_set_metadata: the %s is NULL",
                           a ? "name" : "archive");
    size_t i = find_note(a, name);
    if (!text) {
        if (i < a->n_notes)
            remove_note(a, i);
        return JOT_OK;
    }
    if (i == a->notes_room) {
        size_t room = 2 * a->notes_room + 8;
        struct added_note *larger = memory_resize(a->notes, room * sizeof *larger);
        if (!larger)
            return status_out_of_memory();
        a->notes = larger;
        a->notes_room = room;
    }
    struct added_note note = {copy_text(name), copy_text(text)};
    if (!note.key || !note.text) {
        memory_release(note.key);
        memory_release(note.text);
        return status_out_of_memory();
    }
    if (i < a->n_notes) {
        memory_release(a->notes[i].key);
        memory_release(a->notes[i].text);
    }
    a->notes[i] = note;
    a->n_notes += i == a->n_notes;
    return JOT_OK;
}
