// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "interop/zip.h"

#include <string.h>

// ---- the sum ----

// By slices of eight bytes: tables[k][b] is the sum of b before k zero bytes.
static void make_tables(uint32_t (*tables)[256])
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t x = b;
        for (int i = 0; i < 8; i++)
            x = x >> 1 ^ (x & 1 ? 0xedb88320u : 0);
        tables[0][b] = x;
    }
    for (uint32_t b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++)
            tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

uint32_t zip_crc(uint32_t crc, const void *bytes, size_t n)
{
    uint32_t t[8][256];
    const unsigned char *p = bytes;
    make_tables(t);
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low =
            crc ^ (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^
              t[4][low >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ t[0][(crc ^ *p) & 0xff];
    return ~crc;
}

// ---- numbers in records ----

struct record {
    unsigned char bytes[128];
    size_t n;
};

static void put(struct record *r, int width, uint64_t value)
{
    for (int i = 0; i < width; i++)
        r->bytes[r->n++] = (unsigned char)(value >> 8 * i);
}

static jot_status append(struct zip_writer *w, const void *bytes, size_t n)
{
    if (n > w->room - w->used) {
        size_t room = 2 * w->room + n + 1024;
        unsigned char *larger = memory_resize(w->directory, room);
        if (!larger)
            return status_out_of_memory();
        w->directory = larger;
        w->room = room;
    }
    memcpy(w->directory + w->used, bytes, n);
    w->used += n;
    return JOT_OK;
}

// ---- members ----

struct member {
    const char *name;
    bool is_deflated, is_wide;
    uint32_t crc;
    uint64_t packed, size, at;
};

static uint32_t narrow(const struct member *m, uint64_t x)
{
    return m->is_wide ? UINT32_MAX : (uint32_t)x;
}

static bool is_ascii(const char *s)
{
    while (*s && (unsigned char)*s < 128)
        s++;
    return !*s;
}

// From the needed version to the lengths of the name and the extra field, as both kinds of headers have it.
static void put_common(struct record *r, const struct member *m, size_t extra)
{
    put(r, 2, m->is_wide ? 45 : 20);
    put(r, 2, is_ascii(m->name) ? 0 : 1u << 11); // names are UTF-8
    put(r, 2, m->is_deflated ? 8 : 0);
    put(r, 4, 0x00210000); // the first of January 1980
    put(r, 4, m->crc);
    put(r, 4, narrow(m, m->packed));
    put(r, 4, narrow(m, m->size));
    put(r, 2, strlen(m->name));
    put(r, 2, extra);
}

enum { LOCAL_HEADER = 30, ALIGNMENT = 64 };

static struct record local_header(const struct member *m, size_t extra)
{
    struct record r = {.n = 0};
    put(&r, 4, 0x04034b50);
    put_common(&r, m, extra);
    return r;
}

// Stored bytes begin where a map of the file has any elements aligned, behind padding as zipalign of
// Android makes it.
static struct record local_extra(const struct member *m)
{
    struct record r = {.n = 0};
    if (m->is_wide) {
        put(&r, 4, 1 | 16u << 16);
        put(&r, 8, m->size);
        put(&r, 8, m->packed);
    }
    if (m->is_deflated)
        return r;
    uint64_t end = m->at + LOCAL_HEADER + strlen(m->name) + r.n + 6;
    size_t padding = (size_t)(-end % ALIGNMENT);
    put(&r, 2, 0xd935);
    put(&r, 2, 2 + padding);
    put(&r, 2, ALIGNMENT);
    r.n += padding;
    return r;
}

static jot_status keep_entry(struct zip_writer *w, const struct member *m)
{
    struct record r = {.n = 0}, extra = {.n = 0};
    if (m->is_wide) {
        put(&extra, 4, 1 | 24u << 16);
        put(&extra, 8, m->size);
        put(&extra, 8, m->packed);
        put(&extra, 8, m->at);
    }
    put(&r, 4, 0x02014b50);
    put(&r, 2, 3 << 8 | 45); // made on Unix
    put_common(&r, m, extra.n);
    put(&r, 2, 0); // no comment
    put(&r, 4, 0);
    put(&r, 4, 0644u << 16); // its mode
    put(&r, 4, narrow(m, m->at));
    JOT_TRY(append(w, r.bytes, r.n));
    JOT_TRY(append(w, m->name, strlen(m->name)));
    w->n++;
    return append(w, extra.bytes, extra.n);
}

static jot_status write_deflated(struct zip_writer *w, size_t n, const struct zip_piece *pieces)
{
    struct deflation *d = NULL;
    JOT_TRY(deflate_start(w->o, &d));
    jot_status status = JOT_OK;
    for (size_t i = 0; i < n && status == JOT_OK; i++)
        status = deflate_add(d, pieces[i].bytes, pieces[i].n);
    if (status == JOT_OK)
        status = deflate_finish(d);
    deflate_release(d);
    return status;
}

static jot_status write_pieces(struct zip_writer *w, bool is_deflated, size_t n,
                               const struct zip_piece *pieces)
{
    if (is_deflated)
        return write_deflated(w, n, pieces);
    for (size_t i = 0; i < n; i++)
        JOT_TRY(output_write(w->o, pieces[i].bytes, pieces[i].n));
    return JOT_OK;
}

jot_status zip_write(struct zip_writer *w, const char *name, bool is_deflated, size_t n_pieces,
                     const struct zip_piece *pieces)
{
    struct member m = {.name = name, .is_deflated = is_deflated, .at = w->o->at};
    if (strlen(name) > UINT16_MAX)
        return status_fail(JOT_ERR_ARGUMENT,
                           "%s: the name %.40s... has more bytes than the 65535 of an archive",
                           w->o->path, name);
    for (size_t i = 0; i < n_pieces; i++) {
        m.size += pieces[i].n;
        m.crc = zip_crc(m.crc, pieces[i].bytes, pieces[i].n);
    }
    m.packed = m.size;
    // What is deflated may become a little longer.
    m.is_wide = m.at >= w->wide || m.size + m.size / 1000 + 1000 >= w->wide;
    struct record extra = local_extra(&m), header = local_header(&m, extra.n);
    JOT_TRY(output_write(w->o, header.bytes, header.n));
    JOT_TRY(output_write(w->o, name, strlen(name)));
    JOT_TRY(output_write(w->o, extra.bytes, extra.n));
    uint64_t from = w->o->at;
    JOT_TRY(write_pieces(w, is_deflated, n_pieces, pieces));
    m.packed = w->o->at - from;
    if (is_deflated) {
        extra = local_extra(&m), header = local_header(&m, extra.n);
        JOT_TRY(output_rewrite(w->o, m.at, header.bytes, header.n));
        JOT_TRY(output_rewrite(w->o, from - extra.n, extra.bytes, extra.n));
    }
    return keep_entry(w, &m);
}

static struct record end_64(const struct zip_writer *w, uint64_t at)
{
    struct record r = {.n = 0};
    put(&r, 4, 0x06064b50);
    put(&r, 8, 44);
    put(&r, 4, (3u << 8 | 45) | 45u << 16);
    put(&r, 8, 0); // the only part
    put(&r, 8, w->n);
    put(&r, 8, w->n);
    put(&r, 8, w->used);
    put(&r, 8, at);
    put(&r, 4, 0x07064b50);
    put(&r, 4, 0);
    put(&r, 8, at + w->used);
    put(&r, 4, 1);
    return r;
}

jot_status zip_finish(struct zip_writer *w)
{
    struct record end = {.n = 0};
    uint64_t at = w->o->at;
    bool is_wide = at >= w->wide || w->used >= w->wide || w->n >= UINT16_MAX;
    JOT_TRY(output_write(w->o, w->directory, w->used));
    if (is_wide) {
        struct record wide = end_64(w, at);
        JOT_TRY(output_write(w->o, wide.bytes, wide.n));
    }
    put(&end, 4, 0x06054b50);
    put(&end, 4, 0);
    put(&end, 2, is_wide ? UINT16_MAX : w->n);
    put(&end, 2, is_wide ? UINT16_MAX : w->n);
    put(&end, 4, is_wide ? UINT32_MAX : w->used);
    put(&end, 4, is_wide ? UINT32_MAX : at);
    put(&end, 2, 0);
    return output_write(w->o, end.bytes, end.n);
}
