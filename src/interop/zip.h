// SPDX-License-Identifier: Apache-2.0
// Archives of ZIP (PKWARE's APPNOTE 6.3), as far as .npz uses them: one file, members stored or
// deflated, the extensions for 64 bits, data descriptors.
#ifndef INTEROP_ZIP_H
#define INTEROP_ZIP_H

#include "interop/deflate.h"
#include "interop/input.h"

#include <stdbool.h>

struct zip_member {
    const char *name; // without ".npy"
    bool is_npy;      // it had that
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed, size,
        header;     // bytes in the archive, bytes unpacked, offset of the local header
    uint64_t entry; // offset of its entry in the directory
};

// The members of an archive, in its order, for memory_release; names are in the same block.
jot_status zip_read_directory(const struct input *in, struct zip_member **out, size_t *out_n);

// The unpacked bytes of a member.
struct zip_stream {
    struct stream s; // what is read
    uint64_t from;
    const struct zip_member *m;
    uint32_t crc;
    struct inflation *f;
};
jot_status zip_open(const struct input *in, const struct zip_member *m, struct zip_stream *out);
void zip_close(struct zip_stream *z);

// ---- writing ----

// One member after the other; the archive is whole after zip_finish.
struct zip_writer {
    struct output *o;
    unsigned char *directory;
    size_t used, room, n;
    // Sizes and offsets from here on are written with 64 bits; numbers of members too, from a 65536th of it on.
    uint64_t wide;
};
struct zip_piece {
    const void *bytes;
    size_t n;
};
jot_status zip_write(struct zip_writer *w, const char *name, bool is_deflated, size_t n_pieces,
                     const struct zip_piece *pieces);
jot_status zip_finish(struct zip_writer *w);

// CRC-32 of more bytes after those of `crc`, which is 0 at the begin.
uint32_t zip_crc(uint32_t crc, const void *bytes, size_t n);

#endif
