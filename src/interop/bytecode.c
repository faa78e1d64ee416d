// SPDX-License-Identifier: Apache-2.0
// The container of portable bytecode: numbers and lists of them, the sections of a file, its tables
// of strings, names, attributes, types and properties.
#include "interop/bytecode.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NEWEST_VERSION 6

// ---- bytes ----

void bytecode_fail(struct bytecode *b, const unsigned char *where, const char *format, ...)
{
    char message[512];
    va_list args;
    if (b->status)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    b->status = status_fail(JOT_ERR_ARGUMENT, "%s: offset %zu: %s", b->file,
                            (size_t)(where - b->begin), message);
}

static void fail_short(struct bytecode *b, struct bytes *s)
{
    bytecode_fail(b, s->end, "the bytecode ends too early here");
    s->at = s->end;
}

unsigned char bytecode_byte(struct bytecode *b, struct bytes *s)
{
    if (s->at < s->end)
        return *s->at++;
    fail_short(b, s);
    return 0;
}

// The low bits of the first byte say how many more there are; a first byte of zero, that eight do.
uint64_t bytecode_number(struct bytecode *b, struct bytes *s)
{
    unsigned char first = bytecode_byte(b, s);
    if (first & 1)
        return first >> 1;
    size_t more = first ? (size_t)__builtin_ctz(first) : 8;
    if ((size_t)(s->end - s->at) < more) {
        fail_short(b, s);
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < more; i++)
        value |= (uint64_t)s->at[i] << (8 * i);
    s->at += more;
    return first ? (value << 8 | first) >> (more + 1) : value;
}

int64_t bytecode_signed(struct bytecode *b, struct bytes *s)
{
    uint64_t value = bytecode_number(b, s);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

uint64_t bytecode_count(struct bytecode *b, struct bytes *s, size_t least)
{
    const unsigned char *at = s->at;
    uint64_t n = bytecode_number(b, s);
    if (n <= (size_t)(s->end - s->at) / least && n < UINT32_MAX)
        return n;
    bytecode_fail(b, at, "%" PRIu64 " things in %zu bytes", n, (size_t)(s->end - s->at));
    s->at = s->end;
    return 0;
}

struct bytes bytecode_bytes(struct bytecode *b, struct bytes *s, uint64_t n)
{
    struct bytes found = {s->at, s->at};
    if ((size_t)(s->end - s->at) < n)
        fail_short(b, s);
    else
        s->at = found.end = s->at + n;
    return found;
}

const struct bytecode_string *bytecode_string(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    uint64_t n = bytecode_number(b, s);
    if (n < b->n_strings)
        return b->status ? NULL : &b->strings[n];
    bytecode_fail(b, at, "string %" PRIu64 " of %" PRIu64, n, b->n_strings);
    return NULL;
}

bool bytecode_spend(struct bytecode *b, size_t bytes)
{
    if (b->allowance < bytes)
        bytecode_fail(b, b->op, "the bytecode says the same too often");
    else
        b->allowance -= bytes;
    return !b->status;
}

// ---- sections ----

enum {
    SECTION_STRINGS,
    SECTION_DIALECTS,
    SECTION_DATA,
    SECTION_OFFSETS,
    SECTION_IR,
    SECTION_RESOURCES,
    SECTION_RESOURCE_OFFSETS,
    SECTION_DIALECT_VERSIONS,
    SECTION_PROPERTIES,
    N_SECTIONS
};

struct bytes bytecode_section(struct bytecode *b, struct bytes *s, int *out_id)
{
    const unsigned char *at = s->at;
    unsigned char id = bytecode_byte(b, s);
    uint64_t size = bytecode_number(b, s);
    *out_id = id & 0x7f;
    if (*out_id >= N_SECTIONS)
        bytecode_fail(b, at, "a section of number %d", *out_id);
    if (id & 0x80) {
        uint64_t alignment = bytecode_number(b, s);
        bool is_power = alignment && !(alignment & (alignment - 1));
        uint64_t before = is_power ? -(uint64_t)(s->at - b->begin) & (alignment - 1) : 0;
        if (!is_power)
            bytecode_fail(b, at, "an alignment of %" PRIu64, alignment);
        bytecode_bytes(b, s, before);
    }
    return bytecode_bytes(b, s, size);
}

static void read_strings(struct bytecode *b, struct bytes s)
{
    b->n_strings = bytecode_count(b, &s, 1);
    b->strings = arena_array(b->scratch, struct bytecode_string, b->n_strings);
    for (uint64_t i = b->n_strings; i-- > 0;)
        b->strings[i].n = bytecode_number(b, &s);
    const unsigned char *begin = s.at;
    const char *kept = arena_copy(b->arena, begin, (size_t)(s.end - s.at));
    for (uint64_t i = 0; i < b->n_strings && !b->status; i++) {
        struct bytes text = bytecode_bytes(b, &s, b->strings[i].n);
        if (text.at == text.end || text.end[-1])
            bytecode_fail(b, text.at, "a string that does not end");
        b->strings[i] = (struct bytecode_string){kept + (text.at - begin),
                                                 (size_t)(text.end - text.at) - 1};
    }
}

static void read_dialects(struct bytecode *b, struct bytes *s)
{
    b->n_dialects = bytecode_count(b, s, 1);
    b->dialects = arena_array(b->scratch, struct bytecode_string, b->n_dialects);
    for (uint64_t i = 0; i < b->n_dialects && !b->status; i++) {
        const unsigned char *at = s->at;
        uint64_t name = bytecode_number(b, s);
        bool has_version = b->version >= 1 && (name & 1);
        name = b->version >= 1 ? name >> 1 : name;
        if (name >= b->n_strings)
            bytecode_fail(b, at, "string %" PRIu64 " of %" PRIu64, name, b->n_strings);
        else
            b->dialects[i] = b->strings[name];
        int id;
        if (has_version)
            bytecode_section(b, s, &id);
    }
}

enum bytecode_dialect bytecode_dialect_of(const char *name)
{
    return !strcmp(name, "vhlo")      ? BYTECODE_VHLO
           : !strcmp(name, "builtin") ? BYTECODE_BUILTIN
           : !strcmp(name, "sdy")     ? BYTECODE_SDY
                                      : BYTECODE_OTHER;
}

static const struct bytecode_string *read_dialect(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    uint64_t n = bytecode_number(b, s);
    if (n < b->n_dialects)
        return &b->dialects[n];
    bytecode_fail(b, at, "dialect %" PRIu64 " of %" PRIu64, n, b->n_dialects);
    return NULL;
}

// Names of operations, in groups of one dialect each.
static void read_names(struct bytecode *b, struct bytes *s)
{
    VEC(struct bytecode_op) ops = {0};
    if (b->version >= 4)
        bytecode_number(b, s); // how many in all
    while (s->at < s->end && !b->status) {
        const struct bytecode_string *dialect = read_dialect(b, s);
        uint64_t n = bytecode_count(b, s, 1);
        for (uint64_t i = 0; i < n && !b->status; i++) {
            const unsigned char *at = s->at;
            uint64_t name = bytecode_number(b, s);
            name = b->version >= 5 ? name >> 1 : name;
            if (name >= b->n_strings)
                bytecode_fail(b, at, "string %" PRIu64 " of %" PRIu64, name, b->n_strings);
            else
                vec_push(b->scratch, &ops, bytecode_op_find(b, dialect, &b->strings[name]));
        }
    }
    b->ops = ops.at;
    b->n_ops = ops.count;
}

// Where n entries lie in the data, in groups of one dialect each.
static struct bytecode_entry *read_entries(struct bytecode *b, struct bytes *s,
                                           struct bytes *data, uint64_t n)
{
    struct bytecode_entry *entries = arena_array(b->scratch, struct bytecode_entry, n);
    for (uint64_t i = 0; i < n && !b->status;) {
        const struct bytecode_string *name = read_dialect(b, s);
        const unsigned char *at = s->at;
        uint64_t count = bytecode_number(b, s);
        if (count > n - i)
            bytecode_fail(b, at, "%" PRIu64 " entries where there are %" PRIu64 " left", count,
                          n - i);
        enum bytecode_dialect dialect = name ? bytecode_dialect_of(name->text) : BYTECODE_OTHER;
        for (; count && !b->status; count--, i++) {
            uint64_t size = bytecode_number(b, s);
            entries[i].bytes = bytecode_bytes(b, data, size >> 1);
            entries[i].is_text = !(size & 1);
            entries[i].dialect = dialect;
        }
    }
    return entries;
}

static void read_offsets(struct bytecode *b, struct bytes s, struct bytes data)
{
    b->n_attrs = bytecode_count(b, &s, 1);
    b->n_types = bytecode_count(b, &s, 1);
    b->attrs = read_entries(b, &s, &data, b->n_attrs);
    b->types = read_entries(b, &s, &data, b->n_types);
}

static void read_properties(struct bytecode *b, struct bytes s)
{
    if (s.at == s.end)
        return;
    b->n_properties = bytecode_count(b, &s, 1);
    b->properties = arena_array(b->scratch, struct bytes, b->n_properties);
    for (uint64_t i = 0; i < b->n_properties && !b->status; i++)
        b->properties[i] = bytecode_bytes(b, &s, bytecode_number(b, &s));
}

struct bytes bytecode_open(struct bytecode *b)
{
    static const unsigned char magic[4] = {0x4d, 0x4c, 0xef, 0x52};
    struct bytes s = {b->begin, b->end}, sections[N_SECTIONS];
    for (int i = 0; i < N_SECTIONS; i++)
        sections[i] = (struct bytes){b->end, b->end};
    struct bytes first = bytecode_bytes(b, &s, sizeof magic);
    if (!b->status && memcmp(first.at, magic, sizeof magic)) {
        bytecode_fail(b, b->begin, "no MLIR bytecode: the first four bytes are others");
        return sections[SECTION_IR];
    }
    b->version = bytecode_number(b, &s);
    if (b->version > NEWEST_VERSION)
        bytecode_fail(b, s.at,
                      "MLIR bytecode of version %" PRIu64 ", of which %d is the newest read",
                      b->version, NEWEST_VERSION);
    while (bytecode_byte(b, &s))
        ; // who made it
    while (s.at < s.end && !b->status) {
        int id;
        struct bytes section = bytecode_section(b, &s, &id);
        if (!b->status)
            sections[id] = section;
    }
    if (!b->status)
        read_strings(b, sections[SECTION_STRINGS]);
    if (!b->status)
        read_dialects(b, &sections[SECTION_DIALECTS]);
    if (!b->status)
        read_names(b, &sections[SECTION_DIALECTS]);
    if (!b->status)
        read_offsets(b, sections[SECTION_OFFSETS], sections[SECTION_DATA]);
    if (!b->status)
        read_properties(b, sections[SECTION_PROPERTIES]);
    return sections[SECTION_IR];
}
