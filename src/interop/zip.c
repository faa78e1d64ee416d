// SPDX-License-Identifier: Apache-2.0
#include "interop/zip.h"

#include "base/memory.h"
#include "base/status.h"

#include <inttypes.h>
#include <string.h>

#define LOCAL_HEADER 0x04034b50u
#define ENTRY 0x02014b50u
#define END 0x06054b50u
#define END_64 0x06064b50u
#define LOCATOR_64 0x07064b50u

static uint16_t get16(const unsigned char *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t get32(const unsigned char *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}
static uint64_t get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

// ---- where the directory is ----

struct directory {
    uint64_t at, size, n;
};

static jot_status check_offsets(const struct input *in, uint64_t end, struct directory *d)
{
    if (d->size > end || d->at > end - d->size)
        return input_fail(in, end,
                          "the directory is said to be %" PRIu64 " bytes at offset %" PRIu64
                          ", which is not before this end",
                          d->size, d->at);
    if (d->n > d->size / 46)
        return input_fail(in, end,
                          "the archive is said to have %" PRIu64
                          " members, but its directory has %" PRIu64 " bytes",
                          d->n, d->size);
    return JOT_OK;
}

static jot_status read_end_64(const struct input *in, uint64_t at, struct directory *d)
{
    unsigned char locator[20], end[56];
    JOT_TRY(input_read(in, at, locator, sizeof locator));
    uint64_t there = get64(locator + 8);
    if (get32(locator + 16) > 1 || get32(locator + 4) != 0)
        return input_fail(in, at, "the archive is one of several parts");
    JOT_TRY(input_read(in, there, end, sizeof end));
    if (get32(end) != END_64)
        return input_fail(in, there, "the end of the directory of 64 bits does not begin here");
    d->n = get64(end + 32);
    d->size = get64(end + 40);
    d->at = get64(end + 48);
    return check_offsets(in, there, d);
}

static jot_status read_end(const struct input *in, uint64_t at, const unsigned char *end,
                           struct directory *d)
{
    unsigned char before[4];
    if (at >= 20) {
        JOT_TRY(input_read(in, at - 20, before, sizeof before));
        if (get32(before) == LOCATOR_64)
            return read_end_64(in, at - 20, d);
    }
    if (get16(end + 4) || get16(end + 6))
        return input_fail(in, at, "the archive is one of several parts");
    d->n = get16(end + 10);
    d->size = get32(end + 12);
    d->at = get32(end + 16);
    return check_offsets(in, at, d);
}

// The record at the end, before a comment of at most 64 KiB.
static jot_status find_end(const struct input *in, struct directory *out)
{
    size_t n = in->size < 65557 ? (size_t)in->size : 65557;
    uint64_t from = in->size - n;
    unsigned char *tail = memory_allocate(n + 1);
    if (!tail)
        return status_out_of_memory();
    jot_status status = input_read(in, from, tail, n);
    for (size_t i = n < 22 ? 0 : n - 22 + 1; status == JOT_OK && i-- > 0;)
        if (get32(tail + i) == END && i + 22 + get16(tail + i + 20) == n) {
            status = read_end(in, from + i, tail + i, out);
            memory_release(tail);
            return status;
        }
    memory_release(tail);
    return status != JOT_OK
               ? status
               : input_fail(in, in->size,
                            "this is no archive: it does not end as one of ZIP does");
}

// ---- the directory ----

// Sizes that did not fit are in an extra field, those of them alone, in this order.
static jot_status read_wide(const struct input *in, struct zip_member *m,
                            const unsigned char *extra, size_t n)
{
    uint64_t *wide[] = {&m->size, &m->packed, &m->header};
    bool is_wanted = false;
    for (int i = 0; i < 3; i++)
        is_wanted |= *wide[i] == UINT32_MAX;
    while (is_wanted && n >= 4) {
        size_t length = get16(extra + 2);
        if (length > n - 4)
            return input_fail(in, m->entry,
                              "the extra fields of this member do not fit together");
        if (get16(extra) == 1) {
            const unsigned char *at = extra + 4, *end = at + length;
            for (int i = 0; i < 3; i++)
                if (*wide[i] == UINT32_MAX) {
                    if (end - at < 8)
                        return input_fail(in, m->entry,
                                          "the sizes of this member are not all there");
                    *wide[i] = get64(at);
                    at += 8;
                }
            return JOT_OK;
        }
        extra += 4 + length;
        n -= 4 + length;
    }
    return JOT_OK;
}

// The next entry; its name is put at *names, which moves on.
static jot_status read_entry(const struct input *in, const unsigned char *at, size_t left,
                             struct zip_member *m, char **names, size_t *out_length)
{
    if (left < 46 || get32(at) != ENTRY)
        return input_fail(in, m->entry, "no entry of the directory begins here");
    size_t name = get16(at + 28), extra = get16(at + 30), comment = get16(at + 32);
    if (46 + name + extra + comment > left)
        return input_fail(in, m->entry, "this entry goes beyond the directory");
    m->flags = get16(at + 8);
    m->method = get16(at + 10);
    m->crc = get32(at + 16);
    m->packed = get32(at + 20);
    m->size = get32(at + 24);
    m->header = get32(at + 42);
    if (memchr(at + 46, 0, name))
        return input_fail(in, m->entry, "the name of this member has a zero byte");
    JOT_TRY(read_wide(in, m, at + 46 + name, extra));
    m->is_npy = name > 4 && memcmp(at + 46 + name - 4, ".npy", 4) == 0;
    m->name = *names;
    size_t kept = m->is_npy ? name - 4 : name;
    memcpy(*names, at + 46, kept);
    (*names)[kept] = 0;
    *names += kept + 1;
    *out_length = 46 + name + extra + comment;
    return JOT_OK;
}

static jot_status read_entries(const struct input *in, const struct directory *d,
                               const unsigned char *bytes, struct zip_member *members,
                               char *names, size_t *out_n)
{
    size_t n = 0, length;
    for (uint64_t i = 0, at = 0; i < d->n; i++, at += length) {
        struct zip_member *m = &members[n];
        *m = (struct zip_member){.entry = d->at + at};
        JOT_TRY(read_entry(in, bytes + at, (size_t)(d->size - at), m, &names, &length));
        // A folder holds nothing.
        size_t name = strlen(m->name);
        n += !(name && m->name[name - 1] == '/' && m->size == 0);
    }
    *out_n = n;
    return JOT_OK;
}

jot_status zip_read_directory(const struct input *in, struct zip_member **out, size_t *out_n)
{
    struct directory d;
    JOT_TRY(find_end(in, &d));
    // Each entry takes 46 bytes and its name.
    struct zip_member *members =
        memory_allocate((size_t)d.n * sizeof *members + (size_t)d.size + 1);
    unsigned char *bytes = memory_allocate((size_t)d.size + 1);
    jot_status status =
        members && bytes ? input_read(in, d.at, bytes, (size_t)d.size) : status_out_of_memory();
    if (status == JOT_OK)
        status = read_entries(in, &d, bytes, members, (char *)(members + d.n), out_n);
    memory_release(bytes);
    if (status == JOT_OK)
        *out = members;
    else
        memory_release(members);
    return status;
}

// ---- a member ----

static jot_status next_of_member(struct stream *s, void *to, size_t n)
{
    struct zip_stream *z = (struct zip_stream *)(void *)s;
    if (z->f)
        JOT_TRY(inflate_next(z->f, s, to, n));
    else
        JOT_TRY(input_read(s->in, z->from + s->at, to, n));
    z->crc = zip_crc(z->crc, to, n);
    if (s->at + n < s->size)
        return JOT_OK;
    if (z->f)
        JOT_TRY(inflate_end(z->f, s));
    return z->crc == z->m->crc
               ? JOT_OK
               : stream_fail(s, s->size,
                             "the bytes are not those that were written: their CRC "
                             "is %08" PRIx32 ", and the archive says %08" PRIx32,
                             z->crc, z->m->crc);
}

static jot_status check_member(const struct input *in, const struct zip_member *m)
{
    const char *ending = m->is_npy ? ".npy" : "";
    if (m->flags & 1)
        return input_fail(in, m->entry, "%s%s is encrypted", m->name, ending);
    if (m->method != 0 && m->method != 8)
        return input_fail(in, m->entry,
                          "%s%s is packed by method %u; known are 0, stored, and 8, deflated",
                          m->name, ending, m->method);
    if (m->method == 0 && m->packed != m->size)
        return input_fail(in, m->entry,
                          "%s%s is stored, but has %" PRIu64 " bytes for %" PRIu64, m->name,
                          ending, m->packed, m->size);
    if (m->size / DEFLATE_MOST > m->packed)
        return input_fail(in, m->entry, "%s%s cannot unpack to %" PRIu64 " bytes from %" PRIu64,
                          m->name, ending, m->size, m->packed);
    return JOT_OK;
}

jot_status zip_open(const struct input *in, const struct zip_member *m, struct zip_stream *out)
{
    unsigned char local[30];
    JOT_TRY(check_member(in, m));
    JOT_TRY(input_read(in, m->header, local, sizeof local));
    if (get32(local) != LOCAL_HEADER)
        return input_fail(in, m->header, "%s does not begin here, as the directory says",
                          m->name);
    uint64_t from = m->header + 30 + get16(local + 26) + get16(local + 28);
    if (from > in->size || m->packed > in->size - from)
        return input_fail(in, m->header,
                          "%s has %" PRIu64 " bytes from %" PRIu64
                          " on, but the file ends at %" PRIu64,
                          m->name, m->packed, from, in->size);
    *out = (struct zip_stream){.from = from, .m = m};
    out->s = (struct stream){.in = in,
                             .member = m->name,
                             .size = m->size,
                             .from = m->method ? UINT64_MAX : from,
                             .next = next_of_member};
    return m->method ? inflate_start(in, from, m->packed, &out->f) : JOT_OK;
}

void zip_close(struct zip_stream *z) { inflate_release(z->f); }
