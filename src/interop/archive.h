// SPDX-License-Identifier: Apache-2.0
// What the parts of archives share: files with members that are read when they are asked for,
// and arrays that were added.
#ifndef INTEROP_ARCHIVE_H
#define INTEROP_ARCHIVE_H

#include "interop/safetensors.h"
#include "interop/zip.h"

#include "jot/io.h"

// A .npz file, or a .safetensors file where there are no members.
struct archive_file {
    struct input in;
    struct zip_member *members;
    size_t n_members;
    struct safetensors tensors;
};

struct archive_entry {
    const char *name;
    size_t file, index; // of a member or a tensor
};

// With memory of its own.
struct added_array {
    char *name;
    jot_array *array;
};
struct added_note {
    char *key, *text;
};

struct jot_archive {
    char *name; // of the file, or NULL
    struct archive_file *files;
    size_t n_files;
    struct archive_entry *entries;
    size_t n_entries;
    struct added_array *added;
    size_t n_added, room;
    struct added_note *notes;
    size_t n_notes, notes_room;
};

typedef jot_status archive_open(struct input *in, const char *path);

// Array i: a new reference.
// The failure of a function that is given NULL for an archive, with why it is NULL.
jot_status archive_is_null(const char *function);

jot_status archive_get(const jot_archive *a, size_t i, jot_array **out);
// Writes the arrays of these numbers, of NULL the first n, to a .safetensors file, with the
// metadata.
jot_status archive_save_some(const jot_archive *a, const char *path, size_t n,
                             const size_t *numbers);

// The header of a file; the archive takes over the input also where that fails.
jot_status archive_take_file(jot_archive *a, struct input *in);
// The files that an index names, which is a text of n bytes: {"weight_map": {"w":
// "1.safetensors"}}. Opens them beside it.
jot_status archive_take_index(jot_archive *a, const struct input *index, archive_open *open);

#endif
