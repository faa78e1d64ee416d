// SPDX-License-Identifier: Apache-2.0
#include "interop/npy.h"

#include "interop/raw_array.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "jot/io.h"
#include "runtime/array.h"

#include <inttypes.h>
#include <string.h>

#define HEADER_LIMIT ((uint64_t)1 << 16) // many times what 64 axes take

// ---- the header ----

static jot_status read_length(struct stream *s, uint64_t *out)
{
    unsigned char start[8], length[4] = {0};
    JOT_TRY(stream_read(s, start, sizeof start, "the begin of a .npy file"));
    if (memcmp(start, "PK\x03\x04", 4) == 0)
        return stream_fail(s, 0, "this is an archive, as .npz is: jot_archive_load reads it");
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return stream_fail(s, 0, "this is no .npy file: it does not begin with \\x93NUMPY");
    if (start[6] < 1 || start[6] > 3)
        return stream_fail(s, 6, "version %u.%u of the format; known are 1.0, 2.0 and 3.0",
                           start[6], start[7]);
    JOT_TRY(stream_read(s, length, start[6] == 1 ? 2 : 4, "the length of the header"));
    *out = length[0] | (uint64_t)length[1] << 8 | (uint64_t)length[2] << 16 |
           (uint64_t)length[3] << 24;
    return JOT_OK;
}

static jot_status read_header(struct stream *s, struct npy_header *out)
{
    uint64_t n;
    JOT_TRY(read_length(s, &n));
    if (n > HEADER_LIMIT)
        return stream_fail(s, 8, "a header of %" PRIu64 " bytes, more than any array needs", n);
    uint64_t at = s->at;
    char *text = memory_allocate(n + 1);
    if (!text)
        return status_out_of_memory();
    jot_status status = stream_read(s, text, n, "the header");
    if (status == JOT_OK)
        status = npy_parse(s, at, text, n, out);
    memory_release(text);
    return status;
}

// The elements' bytes in the file, which are what is left of it.
static jot_status check_size(const struct stream *s, const struct npy_header *h, uint64_t *out)
{
    uint64_t bytes = h->is_f8e5m2 ? 1 : jot_dtype_size(h->dtype);
    jot_status status = rt_array_check("shape", (int)h->dtype, h->rank, h->dims);
    if (status != JOT_OK)
        return stream_fail(s, s->at, "%s", jot_error_message());
    for (int i = 0; i < h->rank; i++)
        if (h->dims[i] == 0)
            bytes = 0;
    for (int i = 0; i < h->rank; i++)
        bytes *= (uint64_t)h->dims[i];
    if (bytes != s->size - s->at)
        return stream_fail(s, s->at,
                           "the elements take %" PRIu64 " bytes, but there are %" PRIu64, bytes,
                           s->size - s->at);
    *out = bytes;
    return JOT_OK;
}

// ---- elements ----

static void swap_parts(void *data, size_t bytes, int part)
{
    unsigned char *at = data, *end = at + bytes;
    for (; at < end; at += part) {
        uint16_t h;
        uint32_t w;
        uint64_t d;
        switch (part) {
        case 2:
            memcpy(&h, at, 2), h = __builtin_bswap16(h), memcpy(at, &h, 2);
            break;
        case 4:
            memcpy(&w, at, 4), w = __builtin_bswap32(w), memcpy(at, &w, 4);
            break;
        default:
            memcpy(&d, at, 8), d = __builtin_bswap64(d), memcpy(at, &d, 8);
        }
    }
}

// One of the two axes that run fastest is in steps of one element; both are walked in squares.
#define SQUARE 32

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline void turn_plane_of(char *to, const char *from, int64_t rows, int64_t columns,
                                 int64_t to_step, int64_t from_step, const size_t bytes)
{
    for (int64_t i0 = 0; i0 < rows; i0 += SQUARE)
        for (int64_t j0 = 0; j0 < columns; j0 += SQUARE)
            for (int64_t i = i0; i < least(i0 + SQUARE, rows); i++)
                for (int64_t j = j0; j < least(j0 + SQUARE, columns); j++)
                    memcpy(to + (size_t)(i * to_step + j) * bytes,
                           from + (size_t)(i + j * from_step) * bytes, bytes);
}

static void turn_plane(char *to, const char *from, int64_t rows, int64_t columns,
                       int64_t to_step, int64_t from_step, size_t bytes)
{
#define CASE(n)                                                                                \
    case n:                                                                                    \
        turn_plane_of(to, from, rows, columns, to_step, from_step, n);                         \
        return
    switch (bytes) {
        CASE(1);
        CASE(2);
        CASE(4);
        CASE(8);
        CASE(16);
    }
#undef CASE
}

// From the order in which the first index runs fastest.
static void turn(char *to, const char *from, int rank, const int64_t *dims, size_t bytes)
{
    int64_t to_step[RT_ARRAY_RANK_LIMIT], from_step[RT_ARRAY_RANK_LIMIT];
    int64_t at[RT_ARRAY_RANK_LIMIT] = {0}, n = 1, to_at = 0, from_at = 0;
    int last = rank - 1;
    for (int i = 0; i < rank; n *= dims[i++])
        from_step[i] = n;
    n = 1;
    for (int i = last; i >= 0; n *= dims[i--])
        to_step[i] = n;
    for (int i = 0; n && i >= 0 && i < last;) {
        turn_plane(to + (size_t)to_at * bytes, from + (size_t)from_at * bytes, dims[0],
                   dims[last], to_step[0], from_step[last], bytes);
        // The next plane: the axes between count.
        for (i = last - 1; i > 0; i--) {
            to_at += to_step[i], from_at += from_step[i];
            if (++at[i] < dims[i])
                break;
            to_at -= to_step[i] * dims[i], from_at -= from_step[i] * dims[i];
            at[i] = 0;
        }
        if (i <= 0)
            return;
    }
}

static jot_status read_turned(struct stream *s, const struct npy_header *h, uint64_t bytes,
                              jot_array *a)
{
    char *columns = memory_allocate(bytes + 1);
    if (!columns)
        return status_out_of_memory();
    jot_status status = stream_read(s, columns, bytes, "the elements");
    if (status == JOT_OK)
        turn(a->data, columns, h->rank, h->dims, h->is_f8e5m2 ? 1 : jot_dtype_size(h->dtype));
    memory_release(columns);
    return status;
}

static jot_status read_elements(struct stream *s, const struct npy_header *h, uint64_t bytes,
                                jot_array *a)
{
    if (h->is_column_major && h->rank > 1)
        JOT_TRY(read_turned(s, h, bytes, a));
    else
        JOT_TRY(stream_read(s, a->data, bytes, "the elements"));
    if (h->is_swapped)
        swap_parts(a->data, a->bytes, h->part);
    if (h->is_f8e5m2)
        raw_array_widen(a);
    if (h->dtype == JOT_BOOL)
        raw_array_normalize(a);
    return JOT_OK;
}

jot_status npy_read(struct stream *s, jot_array **out)
{
    struct npy_header h;
    uint64_t bytes;
    JOT_TRY(read_header(s, &h));
    JOT_TRY(check_size(s, &h, &bytes));
    bool is_raw = s->from != UINT64_MAX && !h.is_swapped && !h.is_f8e5m2;
    jot_array *a = NULL;
    if (is_raw && !(h.is_column_major && h.rank > 1))
        a = raw_array_map(s->in, s->from + s->at, h.dtype, h.rank, h.dims);
    if (a)
        return raw_array_place(a, out);
    a = rt_array_create(h.dtype, h.rank, h.dims);
    if (!a)
        return status_last();
    jot_status status = read_elements(s, &h, bytes, a);
    if (status == JOT_OK)
        return raw_array_place(a, out);
    jot_array_release(a);
    return status;
}

// ---- the API ----

static jot_array *read_input(struct input *in)
{
    jot_array *a = NULL;
    struct stream s = stream_of(in);
    if (npy_read(&s, &a) != JOT_OK)
        status_null(STATUS_NULL_ARRAY, in->name);
    input_close(in);
    return a;
}

static jot_array *load(const char *name, const char *path,
                       jot_status (*open)(struct input *in, const char *path))
{
    struct input in;
    if (!path)
        status_fail(JOT_ERR_ARGUMENT, "%s: path is NULL", name);
    if (!path || open(&in, path) != JOT_OK)
        return status_null(STATUS_NULL_ARRAY, path ? path : name);
    return read_input(&in);
}

jot_array *jot_array_load(const char *path) { return load("jot_array_load", path, input_open); }

jot_array *jot_array_map(const char *path) { return load("jot_array_map", path, input_map); }

jot_array *jot_array_from_npy(const char *name, const void *bytes, size_t n)
{
    struct input in;
    if (!name || (n && !bytes))
        status_fail(JOT_ERR_ARGUMENT, "jot_array_from_npy: %s is NULL",
                    name ? "bytes" : "name");
    else if (input_borrow(&in, name, bytes, n) == JOT_OK)
        return read_input(&in);
    return status_null(STATUS_NULL_ARRAY, "jot_array_from_npy");
}

static jot_status write_array(struct output *o, const jot_array *a)
{
    char *header;
    size_t n;
    const void *data = jot_array_data(a);
    if (!data)
        return status_last();
    JOT_TRY(npy_make_header(a, &header, &n));
    jot_status status = output_write(o, header, n);
    memory_release(header);
    return status == JOT_OK ? output_write(o, data, jot_array_bytes(a)) : status;
}

jot_status jot_array_save(const char *path, const jot_array *a)
{
    struct output o;
    if (!path || !a)
        return status_fail(JOT_ERR_ARGUMENT, "jot_array_save: the %s is NULL",
                           path ? "array" : "path");
    JOT_TRY(output_open(&o, path));
    return output_close(&o, write_array(&o, a));
}
