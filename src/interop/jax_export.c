// SPDX-License-Identifier: Apache-2.0
// Reads what jax.export has serialized, which is a FlatBuffer: tables whose fields are found by
// their numbers, and that lie behind what points to them.  All of it is in the order of bytes of
// the host that reads, which is little-endian.
#include "interop/jax_export.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum field {
    EXPORT_VERSION,
    EXPORT_NAME,
    EXPORT_IN = 3,
    EXPORT_OUT = 5,
    EXPORT_DEVICES_SHORT,
    EXPORT_PLATFORMS = 9,
    EXPORT_ORDERED,
    EXPORT_UNORDERED,
    EXPORT_DISABLED,
    EXPORT_MODULE,
    EXPORT_CONVENTION,
    EXPORT_KEPT,
    EXPORT_GLOBAL_CONSTANTS,
    EXPORT_VJP,
    EXPORT_DEVICES,
    EXPORT_AVALS,
    EXPORT_IN_INDICES = 22,
    EXPORT_OUT_INDICES,
    AVAL_KIND = 0,
    AVAL_SHAPE,
    AVAL_DTYPE,
    EFFECT_NAME = 0,
    CHECK_KIND = 0,
    CHECK_TARGET,
};

enum { OLDEST_CONVENTION = 9, NEWEST_CONVENTION = 10, MAX_VJP = 16 };

struct buffer {
    struct arena *arena;
    const char *file;
    const unsigned char *bytes;
    size_t n;
    // Tables may be shared: what is made of them is no more than in proportion to the bytes.
    size_t allowance;
    jot_status status;
};

// Where a table, or the things of a vector, begin; 0 when there is none.
struct vector {
    size_t at;
    uint32_t n;
};

__attribute__((format(printf, 3, 4))) static void fail(struct buffer *b, size_t at,
                                                       const char *format, ...)
{
    char message[512];
    va_list args;
    if (b->status)
        return;
    b->status = JOT_ERR_ARGUMENT;
    if (!b->file)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    b->status = status_fail(JOT_ERR_ARGUMENT, "%s: offset %zu: %s", b->file, at, message);
}

// The number of `size` bytes at an offset.
static uint32_t read_number(struct buffer *b, size_t at, size_t size)
{
    uint32_t value = 0;
    if (at > b->n || b->n - at < size)
        fail(b, at < b->n ? at : b->n, "the export of a function ends too early here");
    else
        memcpy(&value, b->bytes + at, size);
    return value;
}

// What the offset there points to.
static size_t follow(struct buffer *b, size_t at)
{
    uint32_t offset = read_number(b, at, 4);
    if (!b->status && (offset < 4 || offset > b->n - at))
        fail(b, at, "an offset of %u where %zu bytes are left", offset, b->n - at);
    return b->status ? 0 : at + offset;
}

// The offset of a field of a table, 0 when it has its default.
static size_t field(struct buffer *b, size_t table, int n)
{
    int32_t back = (int32_t)read_number(b, table, 4);
    int64_t fields = (int64_t)table - back;
    if (b->status)
        return 0;
    if (fields < 0 || fields > (int64_t)b->n) {
        fail(b, table, "a table whose fields are outside of the file");
        return 0;
    }
    size_t slot = 4 + 2 * (size_t)n;
    if (read_number(b, (size_t)fields, 2) < slot + 2)
        return 0;
    uint32_t offset = read_number(b, (size_t)fields + slot, 2);
    return offset ? table + offset : 0;
}

static uint32_t field_number(struct buffer *b, size_t table, int n, size_t size)
{
    size_t at = field(b, table, n);
    return at ? read_number(b, at, size) : 0;
}

static struct vector field_vector(struct buffer *b, size_t table, int n, size_t size)
{
    size_t at = field(b, table, n);
    struct vector v = {0};
    if (!at)
        return v;
    at = follow(b, at);
    v.n = read_number(b, at, 4);
    v.at = at + 4;
    if (!b->status && v.n > (b->n - v.at) / size)
        fail(b, at, "%u things in %zu bytes", v.n, b->n - v.at);
    return b->status ? (struct vector){0} : v;
}

static void *make(struct buffer *b, size_t at, size_t bytes)
{
    if (b->allowance < bytes)
        fail(b, at, "the export of a function says the same too often");
    if (b->status)
        return NULL;
    b->allowance -= bytes;
    return arena_allocate(b->arena, bytes);
}

// A copy of the text at the end of an offset.
static const char *text_at(struct buffer *b, size_t at)
{
    at = follow(b, at);
    uint32_t n = read_number(b, at, 4);
    if (!b->status && (n >= b->n - at - 4 || b->bytes[at + 4 + n]))
        fail(b, at, "a string that does not end");
    char *text = make(b, at, (size_t)n + 1);
    return text ? memcpy(text, b->bytes + at + 4, (size_t)n + 1) : "";
}

static const char *field_text(struct buffer *b, size_t table, int n)
{
    size_t at = field(b, table, n);
    return at ? text_at(b, at) : "";
}

static const char *const *texts_of(struct buffer *b, struct vector v)
{
    const char **texts = make(b, v.at, v.n * sizeof *texts);
    for (uint32_t i = 0; i < v.n && !b->status; i++)
        texts[i] = text_at(b, v.at + 4 * (size_t)i);
    return texts;
}

static void read_dtype(struct jax_aval *a, uint32_t code)
{
    a->element = MLIR_N_ELEMENTS;
    for (int e = 0; e < MLIR_N_ELEMENTS; e++)
        if (mlir_elements[e].export == (int)code)
            a->element = (enum mlir_element)e;
    static const char *const others[] = {
        [22] = "float0", [27] = "key<fry>", [28] = "key<rbg>", [29] = "key<unsafe_rbg>"};
    bool is_other = code < sizeof others / sizeof *others && others[code];
    a->dtype = a->element != MLIR_N_ELEMENTS ? mlir_elements[a->element].text
               : is_other                    ? others[code]
                                             : "unknown";
}

static void read_aval(struct buffer *b, size_t at, struct jax_aval *a)
{
    size_t table = follow(b, at);
    struct vector shape = field_vector(b, table, AVAL_SHAPE, 4);
    a->is_token = field_number(b, table, AVAL_KIND, 1) == 1;
    read_dtype(a, field_number(b, table, AVAL_DTYPE, 1));
    a->rank = shape.n;
    a->dims = texts_of(b, shape);
}

static const struct jax_aval *read_avals(struct buffer *b, size_t table, int indices, int all,
                                         uint32_t *out_n)
{
    struct vector chosen = field_vector(b, table, indices, 4);
    struct vector v = field_vector(b, table, chosen.n ? EXPORT_AVALS : all, 4);
    uint32_t n = chosen.n ? chosen.n : v.n;
    struct jax_aval *avals = make(b, table, n * sizeof *avals);
    for (uint32_t i = 0; i < n && !b->status; i++) {
        uint32_t which = chosen.n ? read_number(b, chosen.at + 4 * (size_t)i, 4) : i;
        if (which >= v.n)
            fail(b, table, "type %u of %u", which, v.n);
        else
            read_aval(b, v.at + 4 * (size_t)which, &avals[i]);
    }
    *out_n = n;
    return avals;
}

static const char *const *read_effects(struct buffer *b, size_t table, int n, uint32_t *out_n)
{
    struct vector v = field_vector(b, table, n, 4);
    const char **names = make(b, table, v.n * sizeof *names);
    for (uint32_t i = 0; i < v.n && !b->status; i++)
        names[i] = field_text(b, follow(b, v.at + 4 * (size_t)i), EFFECT_NAME);
    *out_n = v.n;
    return names;
}

static const char *disabled_name(struct buffer *b, size_t table)
{
    const char *target = field_text(b, table, CHECK_TARGET);
    switch (field_number(b, table, CHECK_KIND, 1)) {
    case 0:
        return "platform";
    case 1: {
        char *name = make(b, table, strlen(target) + sizeof "custom_call:");
        if (name)
            sprintf(name, "custom_call:%s", target);
        return name;
    }
    case 2:
        return "shape_assertions";
    default:
        return "unknown";
    }
}

static const char *const *read_disabled(struct buffer *b, size_t table, uint32_t *out_n)
{
    struct vector v = field_vector(b, table, EXPORT_DISABLED, 4);
    const char **names = make(b, table, v.n * sizeof *names);
    for (uint32_t i = 0; i < v.n && !b->status; i++)
        names[i] = disabled_name(b, follow(b, v.at + 4 * (size_t)i));
    *out_n = v.n;
    return names;
}

// Arguments of main, in ascending order.
static const uint32_t *read_kept(struct buffer *b, size_t table, uint32_t n_in, uint32_t *out_n)
{
    struct vector v = field_vector(b, table, EXPORT_KEPT, 2);
    uint32_t *kept = make(b, table, v.n * sizeof *kept);
    for (uint32_t i = 0; i < v.n && !b->status; i++) {
        kept[i] = read_number(b, v.at + 2 * (size_t)i, 2);
        if (kept[i] >= n_in || (i && kept[i] <= kept[i - 1]))
            fail(b, v.at, "argument %u of %u is kept", kept[i], n_in);
    }
    *out_n = v.n;
    return kept;
}

static struct jax_export *read_export(struct buffer *b, size_t table, int depth)
{
    struct jax_export *e = make(b, table, sizeof *e);
    if (!e)
        return NULL;
    e->arena = b->arena;
    e->file = b->file;
    e->version = (int)field_number(b, table, EXPORT_VERSION, 2);
    e->calling_convention = (int)field_number(b, table, EXPORT_CONVENTION, 2);
    if (!b->status && (e->calling_convention < OLDEST_CONVENTION ||
                       e->calling_convention > NEWEST_CONVENTION))
        fail(b, table, "calling convention %d, where %d to %d are read", e->calling_convention,
             OLDEST_CONVENTION, NEWEST_CONVENTION);
    e->function_name = field_text(b, table, EXPORT_NAME);
    e->n_devices = field_number(b, table, EXPORT_DEVICES, 4);
    if (!e->n_devices)
        e->n_devices = field_number(b, table, EXPORT_DEVICES_SHORT, 2);
    e->uses_global_constants = field_number(b, table, EXPORT_GLOBAL_CONSTANTS, 1) != 0;
    e->in = read_avals(b, table, EXPORT_IN_INDICES, EXPORT_IN, &e->n_in);
    e->out = read_avals(b, table, EXPORT_OUT_INDICES, EXPORT_OUT, &e->n_out);
    e->kept = read_kept(b, table, e->n_in, &e->n_kept);
    struct vector platforms = field_vector(b, table, EXPORT_PLATFORMS, 4);
    e->n_platforms = platforms.n;
    e->platforms = texts_of(b, platforms);
    e->ordered = read_effects(b, table, EXPORT_ORDERED, &e->n_ordered);
    e->unordered = read_effects(b, table, EXPORT_UNORDERED, &e->n_unordered);
    e->disabled = read_disabled(b, table, &e->n_disabled);
    struct vector module = field_vector(b, table, EXPORT_MODULE, 1);
    e->module = b->bytes + module.at;
    e->module_size = module.n;
    size_t vjp = b->status ? 0 : field(b, table, EXPORT_VJP);
    if (vjp && depth == MAX_VJP)
        fail(b, table, "more than %d derivatives in one another", MAX_VJP);
    if (vjp && !b->status)
        e->vjp = read_export(b, follow(b, vjp), depth + 1);
    return e;
}

bool jax_export_is(const void *bytes, size_t n)
{
    static const unsigned char magic[4] = {0x4d, 0x4c, 0xef, 0x52};
    // Without a name a fault leaves no message.
    struct buffer b = {.file = NULL, .bytes = bytes, .n = n};
    if (n < 8)
        return false;
    struct vector module = field_vector(&b, follow(&b, 0), EXPORT_MODULE, 1);
    return !b.status && module.n >= sizeof magic &&
           !memcmp(b.bytes + module.at, magic, sizeof magic);
}

struct request {
    struct buffer b;
    struct jax_export *made;
};

static jot_status read_with(struct arena *scratch, void *ctx)
{
    (void)scratch;
    struct request *q = ctx;
    q->b.file = arena_text(q->b.arena, q->b.file);
    q->made = read_export(&q->b, follow(&q->b, 0), 0);
    return q->b.status;
}

jot_status jax_export_read(const char *file, const void *bytes, size_t n,
                           struct jax_export **out)
{
    struct request q = {.b = {.file = file,
                              .bytes = bytes,
                              .n = n,
                              .allowance = ((size_t)1 << 20) + 16 * n,
                              .arena = arena_create()}};
    if (!q.b.arena)
        return status_out_of_memory();
    jot_status status = arena_lend(read_with, &q);
    if (status)
        arena_release(q.b.arena);
    else
        *out = q.made;
    return status;
}

void jax_export_release(struct jax_export *e)
{
    if (e)
        arena_release(e->arena);
}
