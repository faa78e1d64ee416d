// SPDX-License-Identifier: Apache-2.0
// Deflated bytes, by zlib where jot was built with it.
#ifndef INTEROP_DEFLATE_H
#define INTEROP_DEFLATE_H

#include "interop/input.h"

// The most bytes that one deflated byte can stand for.
#define DEFLATE_MOST 1032

struct inflation; // in progress

// Of n bytes from offset `at` of the input.  JOT_ERR_LIBRARY without zlib.
jot_status inflate_start(const struct input *in, uint64_t at, uint64_t n,
                         struct inflation **out);
// The next n bytes; what is wrong with them is said of the stream.
jot_status inflate_next(struct inflation *f, const struct stream *s, void *to, size_t n);
// That nothing is left.
jot_status inflate_end(struct inflation *f, const struct stream *s);
void inflate_release(struct inflation *f); // NULL is fine

// Deflated bytes of several pieces, one after the other, into an output.
struct deflation;
jot_status deflate_start(struct output *o, struct deflation **out);
jot_status deflate_add(struct deflation *d, const void *bytes, size_t n);
jot_status deflate_finish(struct deflation *d);
void deflate_release(struct deflation *d); // NULL is fine

#endif
