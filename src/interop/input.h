// SPDX-License-Identifier: Apache-2.0
// Bytes of files: where they come from and where they go.
#ifndef INTEROP_INPUT_H
#define INTEROP_INPUT_H

#include "jot/status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

// ---- in ----

// A map of a file, which stays while somebody uses it.
struct mapping {
    void *bytes;
    size_t n;
    atomic_uint users;
};
void mapping_release(struct mapping *m);

// A file, or bytes of memory.
struct input {
    char *name;
    int file; // -1: bytes
    const unsigned char *bytes;
    void *owned;         // the bytes, or NULL where they are borrowed
    struct mapping *map; // that they are in, or NULL
    uint64_t size;
};

// Of what is no regular file all bytes are read.
jot_status input_open(struct input *in, const char *path);
// The same; a regular file is mapped where the system can do it.
jot_status input_map(struct input *in, const char *path);
// Borrows the bytes; input_copy has its own.
jot_status input_borrow(struct input *in, const char *name, const void *bytes, size_t n);
jot_status input_copy(struct input *in, const char *name, const void *bytes, size_t n);
void input_close(struct input *in);
// n bytes from offset `at`; fails where the file has fewer.
jot_status input_read(const struct input *in, uint64_t at, void *to, size_t n);
// Fails with "name: offset N: ...".
__attribute__((format(printf, 3, 4))) jot_status input_fail(const struct input *in, uint64_t at,
                                                            const char *format, ...);

// Bytes that are read once and in order: a file, or what a member of an archive unpacks to.
struct stream {
    const struct input *in;
    const char *member; // for messages, or NULL
    uint64_t size, at;
    uint64_t from; // offset in the input of bytes that are as they are there, else UINT64_MAX
    // The next n bytes, which there are: at + n <= size.
    jot_status (*next)(struct stream *s, void *to, size_t n);
};

struct stream stream_of(const struct input *in);
// Fails where there are fewer; what they are for is `what`.
jot_status stream_read(struct stream *s, void *to, size_t n, const char *what);
__attribute__((format(printf, 3, 4))) jot_status stream_fail(const struct stream *s,
                                                             uint64_t at, const char *format,
                                                             ...);

// ---- out ----

struct output {
    char *path, *temporary; // NULL: the path itself is written
    int file;
    uint64_t at;
};

jot_status output_open(struct output *o, const char *path);
jot_status output_write(struct output *o, const void *bytes, size_t n);
jot_status output_rewrite(struct output *o, uint64_t at, const void *bytes, size_t n);
// Puts the file where it belongs when all went well, or removes it.  The status, or what went
// wrong here.
jot_status output_close(struct output *o, jot_status status);

#endif
