// SPDX-License-Identifier: Apache-2.0
#include "interop/deflate.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>

#if JOT_HAS_ZLIB

#include <zlib.h>

#define BUFFER 65536

static void *allocate(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return memory_allocate_zeroed((size_t)n * size);
}

static void release(void *ctx, void *block)
{
    (void)ctx;
    memory_release(block);
}

// How many of n bytes one call of zlib takes.
static unsigned piece(uint64_t n) { return n < 1u << 30 ? (unsigned)n : 1u << 30; }

// ---- in ----

struct inflation {
    z_stream z;
    const struct input *in;
    uint64_t at, left; // what has not been read
    bool has_ended;
    unsigned char buffer[BUFFER];
};

jot_status inflate_start(const struct input *in, uint64_t at, uint64_t n,
                         struct inflation **out)
{
    struct inflation *f = memory_allocate_zeroed(sizeof *f);
    if (!f)
        return status_out_of_memory();
    f->in = in;
    f->at = at;
    f->left = n;
    f->z.zalloc = allocate;
    f->z.zfree = release;
    int code = inflateInit2(&f->z, -MAX_WBITS);
    if (code != Z_OK) {
        memory_release(f);
        return code == Z_MEM_ERROR ? status_out_of_memory()
                                   : status_fail(JOT_ERR_LIBRARY, "zlib: %s", zError(code));
    }
    *out = f;
    return JOT_OK;
}

static jot_status fill(struct inflation *f)
{
    if (f->z.avail_in || !f->left)
        return JOT_OK;
    unsigned n = f->left < BUFFER ? (unsigned)f->left : BUFFER;
    JOT_TRY(input_read(f->in, f->at, f->buffer, n));
    f->at += n;
    f->left -= n;
    f->z.next_in = f->buffer;
    f->z.avail_in = n;
    return JOT_OK;
}

// One call of zlib; its room is what is left of it.
static jot_status step(struct inflation *f, const struct stream *s)
{
    JOT_TRY(fill(f));
    unsigned room = f->z.avail_out, had = f->z.avail_in;
    int code = inflate(&f->z, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
        return status_out_of_memory();
    f->has_ended = code == Z_STREAM_END;
    if (f->has_ended || (code == Z_OK && (f->z.avail_out < room || f->z.avail_in < had)))
        return JOT_OK;
    bool is_short = code == Z_BUF_ERROR || code == Z_OK;
    return stream_fail(s, s->at,
                       "the deflated bytes before offset %llu of the file are broken: %s",
                       (unsigned long long)(f->at - f->z.avail_in),
                       is_short   ? "they end too early"
                       : f->z.msg ? f->z.msg
                                  : zError(code));
}

jot_status inflate_next(struct inflation *f, const struct stream *s, void *to, size_t n)
{
    unsigned char *at = to;
    while (n) {
        unsigned room = piece(n);
        f->z.next_out = at;
        f->z.avail_out = room;
        while (f->z.avail_out && !f->has_ended)
            JOT_TRY(step(f, s));
        if (f->z.avail_out)
            return stream_fail(s, s->at,
                               "the deflated bytes unpack to fewer than the archive says");
        at += room;
        n -= room;
    }
    return JOT_OK;
}

jot_status inflate_end(struct inflation *f, const struct stream *s)
{
    unsigned char more;
    f->z.next_out = &more;
    f->z.avail_out = 1;
    while (!f->has_ended && f->z.avail_out)
        JOT_TRY(step(f, s));
    if (!f->z.avail_out)
        return stream_fail(s, s->at, "the deflated bytes unpack to more than the archive says");
    return f->z.avail_in || f->left
               ? stream_fail(s, s->at, "bytes follow those that are deflated")
               : JOT_OK;
}

void inflate_release(struct inflation *f)
{
    if (f)
        inflateEnd(&f->z);
    memory_release(f);
}

// ---- out ----

struct deflation {
    z_stream z;
    struct output *o;
    unsigned char buffer[BUFFER];
};

jot_status deflate_start(struct output *o, struct deflation **out)
{
    struct deflation *d = memory_allocate_zeroed(sizeof *d);
    if (!d)
        return status_out_of_memory();
    d->o = o;
    d->z.zalloc = allocate;
    d->z.zfree = release;
    int code = deflateInit2(&d->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                            Z_DEFAULT_STRATEGY);
    if (code != Z_OK) {
        memory_release(d);
        return code == Z_MEM_ERROR ? status_out_of_memory()
                                   : status_fail(JOT_ERR_LIBRARY, "zlib: %s", zError(code));
    }
    *out = d;
    return JOT_OK;
}

// Deflates what the input is until it is used up, and with Z_FINISH until all is out.
static jot_status deflate_input(struct deflation *d, int flush)
{
    do {
        d->z.next_out = d->buffer;
        d->z.avail_out = BUFFER;
        deflate(&d->z, flush);
        JOT_TRY(output_write(d->o, d->buffer, BUFFER - d->z.avail_out));
    } while (d->z.avail_in || !d->z.avail_out);
    return JOT_OK;
}

jot_status deflate_add(struct deflation *d, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    while (n) {
        d->z.next_in = (unsigned char *)(uintptr_t)at;
        d->z.avail_in = piece(n);
        at += d->z.avail_in;
        n -= d->z.avail_in;
        JOT_TRY(deflate_input(d, Z_NO_FLUSH));
    }
    return JOT_OK;
}

jot_status deflate_finish(struct deflation *d)
{
    d->z.avail_in = 0;
    return deflate_input(d, Z_FINISH);
}

void deflate_release(struct deflation *d)
{
    if (d)
        deflateEnd(&d->z);
    memory_release(d);
}

#else

static jot_status fail(void)
{
    return status_fail(JOT_ERR_LIBRARY,
                       "deflated bytes need zlib, and this jot was built without it");
}

jot_status inflate_start(const struct input *in, uint64_t at, uint64_t n,
                         struct inflation **out)
{
    (void)in, (void)at, (void)n, (void)out;
    return fail();
}

jot_status inflate_next(struct inflation *f, const struct stream *s, void *to, size_t n)
{
    (void)f, (void)s, (void)to, (void)n;
    return fail();
}

jot_status inflate_end(struct inflation *f, const struct stream *s)
{
    (void)f, (void)s;
    return fail();
}

void inflate_release(struct inflation *f) { (void)f; }

jot_status deflate_start(struct output *o, struct deflation **out)
{
    (void)o, (void)out;
    return fail();
}

jot_status deflate_add(struct deflation *d, const void *bytes, size_t n)
{
    (void)d, (void)bytes, (void)n;
    return fail();
}

jot_status deflate_finish(struct deflation *d)
{
    (void)d;
    return fail();
}

void deflate_release(struct deflation *d) { (void)d; }

#endif
