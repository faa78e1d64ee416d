// SPDX-License-Identifier: Apache-2.0
// Arrays in files: .npy and .npz as NumPy writes them, .safetensors, and numbers as
// text; and batches of their rows.
//
//     jot_array *x = jot_array_load("x.npy");
//     if (jot_array_save("y.npy", y) != JOT_OK) ...
//
//     jot_archive *a = jot_archive_load("weights.npz");
//     jot_array *w = jot_archive_get(a, "w");
//     jot_archive_release(a);
//
// A file that is not sound is refused: the message names the file, the member of the archive,
// the offset, and what is wrong there.  Memory is taken only when it is known that the file has
// the data.  A file is written under another name first, is on the disk before it gets its own,
// and so is either whole or as it was, also when the machine stops; a process that is killed
// may leave that other file, NAME.PROCESS.0.part.
//
// Arrays are made on the default device.
//
// Thread-safety: the functions may be called from any thread; several threads may read one
// archive while none adds to it.
#ifndef JOT_IO_H
#define JOT_IO_H

#include "jot/compile.h"
#include "jot/struct.h"

#include <stdbool.h>
#include <stdint.h>

JOT_BEGIN_C

// ---- .npy ----
//
// All element types that jot has are read, little- and big-endian, row-major and column-major,
// in versions 1 to 3 of the format.  NumPy stores the bfloat16 of ml_dtypes as "<V2": that is
// read as bf16, and so is "bfloat16".  It stores float8_e5m2 as "<f1", which is read as f16,
// for that holds all its values.  It stores other floats of 8 bits and integers of 4 as "<V1",
// which does not tell them apart: that is refused, as are records, strings, times, objects and
// numbers of 16 bytes a part.  Files are written in version 1, little-endian, row-major, with
// bf16 as "<V2": the bytes are those of numpy.save.

// The array of a .npy file, or of n bytes of memory, which `name` stands for in messages.  NULL
// with a message.
JOT_API JOT_MUST_USE jot_array *jot_array_load(const char *path);
JOT_API JOT_MUST_USE jot_array *jot_array_from_npy(const char *name, const void *bytes,
                                                   size_t n);
// That of a .npy file over a map of it, where its elements are as they are in memory and
// aligned: then they are in memory where they are looked at, and the file may be larger than
// memory.  It must not change nor become shorter while the array is there.  Else, and on a
// device, a copy.
JOT_API JOT_MUST_USE jot_array *jot_array_map(const char *path);
// Waits for the elements.
JOT_API JOT_MUST_USE jot_status jot_array_save(const char *path, const jot_array *a);

// ---- archives ----

// Arrays with names, in an order, and texts with names: what .npz and .safetensors files hold,
// the former without texts.
//
// The format of .safetensors is that of github.com/huggingface/safetensors: a header of JSON,
// then the elements, little-endian and row-major, which leave no gaps.  All its types are read
// but floats of 4 and 6 bits, F8_E4M3 and F8_E8M0; F8_E5M2 is read as f16.  What is written has
// the bytes of the reference implementation; c128 it does not have (JOT_ERR_DTYPE).
typedef struct jot_archive jot_archive;

// Of no arrays; NULL with a message when memory is out.
JOT_API JOT_MUST_USE jot_archive *jot_archive_create(void);
// Of a .npz file, stored or deflated, with the extensions for large ones; of a .safetensors
// file; of an index of several such (model.safetensors.index.json), which lie beside it.  What
// a file is is seen from its first bytes.  Only the directory is read at once; arrays are read
// when they are asked for, so the files stay open, and must not change.  NULL with a message.
JOT_API JOT_MUST_USE jot_archive *jot_archive_load(const char *path);
// The same over maps of the files: arrays that are not packed, and lie where their elements
// may, are in memory where they are looked at, as those of jot_array_map are.  The bytes of
// such members of a .npz file are not checked by their CRC.  What jot writes lies so.
JOT_API JOT_MUST_USE jot_archive *jot_archive_map(const char *path);
// Of n bytes of memory, which are copied; of no index.
JOT_API JOT_MUST_USE jot_archive *jot_archive_from_memory(const char *name, const void *bytes,
                                                          size_t n);
// Arrays that were got from it stay.
JOT_API void jot_archive_release(jot_archive *a); // NULL is fine

// How many arrays, and their names without ".npy", in the order of the file; NULL beyond the
// last.
JOT_API size_t jot_archive_count(const jot_archive *a);
JOT_API const char *jot_archive_name(const jot_archive *a, size_t i);
// The array of that name, which may end in ".npy", the last one where several have it: a new
// reference.  NULL with a message when there is none, when its bytes are not sound or not those
// that the archive says, and when they are packed in a way that this build of jot does not
// know: it knows deflation where it was built with zlib.
JOT_API JOT_MUST_USE jot_array *jot_archive_get(const jot_archive *a, const char *name);

// The text of that name, and the name of text i; NULL where there is none.  Borrowed until
// texts change or the archive is released.
JOT_API const char *jot_archive_metadata(const jot_archive *a, const char *name);
JOT_API const char *jot_archive_metadata_key(const jot_archive *a, size_t i);
// Replaces the text of that name by a copy of this one; NULL removes it.
JOT_API JOT_MUST_USE jot_status jot_archive_set_metadata(jot_archive *a, const char *name,
                                                         const char *text);

// Adds an array, of which the archive holds a reference.  JOT_ERR_ARGUMENT when there is one of
// that name.
JOT_API JOT_MUST_USE jot_status jot_archive_add(jot_archive *a, const char *name,
                                                jot_array *array);
// Writes all of them to a .npz file, which may be the one that the archive was read from.
// Deflated takes longer and less room, and is JOT_ERR_LIBRARY where jot was built without zlib.
JOT_API JOT_MUST_USE jot_status jot_archive_save(const jot_archive *a, const char *path,
                                                 bool is_deflated);
// The same to a .safetensors file, with the metadata.
JOT_API JOT_MUST_USE jot_status jot_archive_save_safetensors(const jot_archive *a,
                                                             const char *path);

// The same to several such files of at most so many bytes of elements, or of one array, and an
// index of them, which jot_archive_load takes: of "model.safetensors" they are
// "model-00001-of-00003.safetensors" and so on, and "model.safetensors.index.json".  The index
// is written last; files of these names are replaced one after the other, so that what must be
// whole at any time goes to a folder of its own.
JOT_API JOT_MUST_USE jot_status jot_archive_save_parts(const jot_archive *a, const char *path,
                                                       uint64_t most);

// ---- structs of arrays ----

// Adds the arrays of a struct of JOT_STRUCT, with the names of its values, "net.layers[2].w";
// without the name in front where that is NULL.  On failure, but for memory, none is added.
//     jot_archive_add_tree(a, "net", JOT_MEMBERS(net), JOT_OUT(p))
JOT_API JOT_MUST_USE jot_status jot_archive_add_tree(jot_archive *a, const char *name,
                                                     const jot_members *members, size_t n,
                                                     jot_array *const *arrays);
// Gets them: new references, whatever the struct held.  On failure, as when one of the names is
// not there, the struct stays as it is.  Shapes and dtypes are those of the archive, whatever
// they are: a call that takes them checks them.
JOT_API JOT_MUST_USE jot_status jot_archive_get_tree(const jot_archive *a, const char *name,
                                                     const jot_members *members, size_t n,
                                                     jot_array **arrays);

// ---- numbers as text ----

// Zero is the default of every field.
typedef struct jot_csv_options {
    char delimiter;     // between numbers; 0: a comma; ' ': any number of blanks and tabs
    char comment;       // lines that begin with it are left out; 0: none
    bool has_header;    // the first line has the names of columns
    int64_t skip;       // lines before that
    jot_dtype dtype;    // JOT_F32 or JOT_F64; JOT_BOOL, which is 0: JOT_F64
    const char *header; // when writing: the first line, as it is; NULL: none
    size_t size;        // of this struct, set by the macro; 0 is this version
} jot_csv_options;

// The numbers of a file, f64[rows, columns] or f32, rounded once: decimal, whatever the
// language of the process, with blanks or quotes around them or without.  Nothing, "NA", "null"
// and "nan" in any case are NaN; "inf" is there, too.  Lines without anything are left out.  A
// row with more or fewer numbers than those before, and what is no number, are refused with
// line and column (JOT_ERR_IO).
//     jot_array *x = jot_array_load_csv("x.csv", .has_header = true);
JOT_API JOT_MUST_USE jot_array *jot_array_load_csv_with(const char *path,
                                                        const jot_csv_options *options);
// The same as columns, of shape [rows], with the names of the header, which there is.
JOT_API JOT_MUST_USE jot_archive *jot_archive_load_csv_with(const char *path,
                                                            const jot_csv_options *options);
// Writes an array of real numbers with one or two axes, a line for each row; each number with
// as few digits as it is read back with, from 6 or 15 on.  JOT_ERR_DTYPE and JOT_ERR_SHAPE of
// others. Options: delimiter, header.
JOT_API JOT_MUST_USE jot_status jot_array_save_csv_with(const char *path, const jot_array *a,
                                                        const jot_csv_options *options);

// ---- batches ----

// Reads batches of rows, which a thread of its own gets ready ahead: arrays over maps of files
// may be larger than memory.
typedef struct jot_loader jot_loader;

// Zero is the default of every field.
typedef struct jot_loader_options {
    bool shuffle; // each epoch in an order of its own, which the seed alone chooses
    uint64_t seed;
    bool drop_last; // the rest of the rows that is no whole batch; else it is a shorter one
    int64_t epochs; // 0: without end
    int64_t first;  // the number of the first batch, counted from the first epoch
    int ahead;      // batches that are ready; 0: 2, at most 1024
    size_t size;    // of this struct, set by the macro; 0 is this version
} jot_loader_options;

// Of n arrays with as many rows along their first axes, of which it holds references; batches
// are made on the device that is the default one now.  NULL with a message: JOT_ERR_SHAPE where
// rows differ or no batch is full, JOT_ERR_ARGUMENT for numbers that are negative.
//     jot_array *data[] = {x, y}, *batch[2];
//     jot_loader *l = jot_loader_create(data, 128, .shuffle = true, .first = step);
//     while (jot_loader_next(l, JOT_OUT(batch)) == JOT_OK && batch[0]) ...
JOT_API JOT_MUST_USE jot_loader *jot_loader_create_with(size_t n, jot_array *const *arrays,
                                                        int64_t batch,
                                                        const jot_loader_options *options);
// Waits for the thread.
JOT_API void jot_loader_release(jot_loader *l); // NULL is fine

// The arrays of the next batch, new references; behind the last epoch all are NULL.  From one
// thread at a time.
JOT_API JOT_MUST_USE jot_status jot_loader_next(jot_loader *l, size_t n, jot_array **out);
// Batches of an epoch, and the number of the next one: a loader of the same arrays and options
// that begins there goes on with the same batches.  0 of NULL.
JOT_API int64_t jot_loader_batches(const jot_loader *l);
JOT_API int64_t jot_loader_position(const jot_loader *l);

JOT_END_C

#if !defined(JOT_PLAIN)
#if defined(__cplusplus)
#define jot_array_load_csv(path) jot_array_load_csv_with(path, nullptr)
#define jot_archive_load_csv(path) jot_archive_load_csv_with(path, nullptr)
#define jot_array_save_csv(path, a) jot_array_save_csv_with(path, a, nullptr)
#define jot_loader_create(arrays, batch)                                                       \
    jot_loader_create_with(JOT_OUT_("jot_loader_create", arrays), batch, nullptr)
#else
#define JOT_CSV_OPTIONS_(takes, ...)                                                           \
    JOT_OPTIONS_(jot_csv_options, takes ", and named options",                                 \
                 JOT_REST_(__VA_ARGS__, .size = sizeof(jot_csv_options)))
#define jot_array_load_csv(...)                                                                \
    jot_array_load_csv_with(JOT_FIRST_(__VA_ARGS__, 0),                                        \
                            JOT_CSV_OPTIONS_("jot_array_load_csv takes (path)", __VA_ARGS__))
#define jot_archive_load_csv(...)                                                              \
    jot_archive_load_csv_with(                                                                 \
        JOT_FIRST_(__VA_ARGS__, 0),                                                            \
        JOT_CSV_OPTIONS_("jot_archive_load_csv takes (path)", __VA_ARGS__))
#define jot_array_save_csv(path, ...)                                                          \
    jot_array_save_csv_with(                                                                   \
        path, JOT_FIRST_(__VA_ARGS__, 0),                                                      \
        JOT_CSV_OPTIONS_("jot_array_save_csv takes (path, array)", __VA_ARGS__))
#define jot_loader_create(arrays, ...)                                                         \
    jot_loader_create_with(                                                                    \
        JOT_OUT_("jot_loader_create", arrays), JOT_FIRST_(__VA_ARGS__, 0),                     \
        JOT_OPTIONS_(jot_loader_options,                                                       \
                     "jot_loader_create takes (arrays, batch), and named options",             \
                     JOT_REST_(__VA_ARGS__, .size = sizeof(jot_loader_options))))
#endif
#endif

#endif
