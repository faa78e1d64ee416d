// SPDX-License-Identifier: Apache-2.0
// Arrays in files: .npy and .npz, as NumPy writes them.
//
//     jot_array *x = jot_array_load("x.npy");
//     if (jot_array_save("y.npy", y) != JOT_OK) ...
//
//     jot_archive *a = jot_archive_load("weights.npz");
//     jot_array *w = jot_archive_get(a, "w");
//     jot_archive_release(a);
//
// All element types that jot has are read, little- and big-endian, row-major and column-major,
// in versions 1 to 3 of the format.  NumPy stores the bfloat16 of ml_dtypes as "<V2": that is
// read as bf16, and so is "bfloat16".  It stores float8_e5m2 as "<f1", which is read as f16,
// for that holds all its values.  It stores other floats of 8 bits and integers of 4 as "<V1",
// which does not tell them apart: that is refused, as are records, strings, times, objects and
// numbers of 16 bytes a part.  Files are written in version 1, little-endian, row-major, with
// bf16 as "<V2": the bytes are those of numpy.save.
//
// A file that is not sound is refused: the message names the file, the member of the archive, the
// offset, and what is wrong there.  Memory is taken only when it is known that the file has the
// data.
// A file is written under another name first, so that it is either whole or as it was.
//
// Arrays are made on the default device.
//
// Thread-safety: the functions may be called from any thread; several threads may read one archive
// while none adds to it.
#ifndef JOT_IO_H
#define JOT_IO_H

#include "jot/array.h"

#include <stdbool.h>

JOT_BEGIN_C

// The array of a .npy file, or of n bytes of memory, which `name` stands for in messages.  NULL
// with a message.
JOT_API JOT_MUST_USE jot_array *jot_array_load(const char *path);
JOT_API JOT_MUST_USE jot_array *jot_array_from_npy(const char *name, const void *bytes,
                                                   size_t n);
// Waits for the elements.
JOT_API JOT_MUST_USE jot_status jot_array_save(const char *path, const jot_array *a);

// Arrays with names, in an order: what a .npz file holds.
typedef struct jot_archive jot_archive;

// Of no arrays; NULL with a message when memory is out.
JOT_API JOT_MUST_USE jot_archive *jot_archive_create(void);
// Of a .npz file, stored or deflated, with the extensions for large ones; or of n bytes of
// memory, which are copied.  Only the directory is read at once; arrays are read when they are
// asked for, so the file stays open, and must not change.  NULL with a message.
JOT_API JOT_MUST_USE jot_archive *jot_archive_load(const char *path);
JOT_API JOT_MUST_USE jot_archive *jot_archive_from_memory(const char *name, const void *bytes,
                                                          size_t n);
JOT_API void jot_archive_release(jot_archive *a); // NULL is fine

// How many arrays, and their names without ".npy", in the order of the file; NULL beyond the last.
JOT_API size_t jot_archive_count(const jot_archive *a);
JOT_API const char *jot_archive_name(const jot_archive *a, size_t i);
// The array of that name, which may end in ".npy", the last one where several have it: a new
// reference.  NULL with a message when there is none, when its bytes are not sound or not those
// that the archive says, and when they are packed in a way that this build of jot does not
// know: it knows deflation where it was built with zlib.
JOT_API JOT_MUST_USE jot_array *jot_archive_get(const jot_archive *a, const char *name);

// Adds an array, of which the archive holds a reference.  JOT_ERR_ARGUMENT when there is one of
// that name.
JOT_API JOT_MUST_USE jot_status jot_archive_add(jot_archive *a, const char *name,
                                                jot_array *array);
// Writes all of them to a .npz file, which may be the one that the archive was read from.
// Deflated takes longer and less room, and is JOT_ERR_LIBRARY where jot was built without zlib.
JOT_API JOT_MUST_USE jot_status jot_archive_save(const jot_archive *a, const char *path,
                                                 bool is_deflated);

JOT_END_C

#endif
