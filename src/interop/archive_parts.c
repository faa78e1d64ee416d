// SPDX-License-Identifier: Apache-2.0
// An archive as several .safetensors files and an index, with the names that Hugging Face gives
// them.
#include "interop/archive.h"

#include "base/memory.h"
#include "base/status.h"
#include "interop/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char ending[] = ".safetensors";
enum { ENDING = sizeof ending - 1, MOST_PARTS = 99999 };

struct parts {
    const jot_archive *a;
    const char *path;
    size_t stem; // of the path, without the ending
    size_t n;    // arrays
    size_t *numbers, *part;
    size_t n_parts;
    uint64_t bytes;
};

// In their order; a part has as many as fit into it, and at least one.
static jot_status divide(struct parts *p, uint64_t most)
{
    uint64_t in_part = 0;
    for (size_t i = 0; i < p->n; i++) {
        jot_array *array;
        JOT_TRY(archive_get(p->a, i, &array));
        uint64_t bytes = jot_array_bytes(array);
        jot_array_release(array);
        if (i == 0 || in_part + bytes > most || in_part + bytes < bytes) {
            p->n_parts++;
            in_part = 0;
        }
        in_part += bytes;
        p->bytes += bytes;
        p->part[i] = p->n_parts - 1;
    }
    if (p->n_parts > MOST_PARTS)
        return status_fail(JOT_ERR_ARGUMENT, "%s: more than %d parts", p->path, MOST_PARTS);
    return JOT_OK;
}

// "model-00001-of-00003.safetensors", with the folder or without.
static void write_name(const struct parts *p, size_t part, bool has_folder, char *text,
                       size_t size)
{
    const char *slash = strrchr(p->path, '/');
    size_t folder = has_folder || !slash ? 0 : (size_t)(slash + 1 - p->path);
    snprintf(text, size, "%.*s-%05zu-of-%05zu%s", (int)(p->stem - folder), p->path + folder,
             part + 1, p->n_parts, ending);
}

static jot_status write_part(const struct parts *p, size_t part, char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->part[i] == part)
            p->numbers[n++] = i;
    write_name(p, part, true, text, size);
    return archive_save_some(p->a, text, n, p->numbers);
}

static jot_status write_index(const struct parts *p, char *text, size_t size)
{
    struct json_text t = {0};
    struct output o;
    json_put(&t, "{\n  \"metadata\": {\n    \"total_size\": ");
    json_put_count(&t, p->bytes);
    json_put(&t, "\n  },\n  \"weight_map\": {");
    for (size_t i = 0; i < p->n; i++) {
        json_put(&t, i ? ",\n    " : "\n    ");
        json_put_string(&t, jot_archive_name(p->a, i));
        json_put(&t, ": ");
        write_name(p, p->part[i], false, text, size);
        json_put_string(&t, text);
    }
    json_put(&t, p->n ? "\n  }\n}\n" : "}\n}\n");
    snprintf(text, size, "%s.index.json", p->path);
    jot_status status = t.is_lost ? status_out_of_memory() : output_open(&o, text);
    if (status == JOT_OK)
        status = output_close(&o, output_write(&o, t.bytes, t.n));
    memory_release(t.bytes);
    return status;
}

static jot_status save(struct parts *p, uint64_t most, char *text, size_t size)
{
    JOT_TRY(divide(p, most));
    for (size_t part = 0; part < p->n_parts; part++)
        JOT_TRY(write_part(p, part, text, size));
    return write_index(p, text, size);
}

jot_status jot_archive_save_parts(const jot_archive *a, const char *path, uint64_t most)
{
    const char *name = "jot_archive_save_parts";
    if (!a || !path)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the %s is NULL", name,
                           a ? "path" : "archive");
    size_t length = strlen(path), size = length + 64, n = jot_archive_count(a);
    if (length <= ENDING || strcmp(path + length - ENDING, ending) != 0)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the path %.200s does not end with %s", name,
                           path, ending);
    struct parts p = {.a = a, .path = path, .stem = length - ENDING, .n = n};
    char *text = memory_allocate(size);
    p.numbers = memory_allocate((n + 1) * sizeof *p.numbers);
    p.part = memory_allocate((n + 1) * sizeof *p.part);
    jot_status status =
        text && p.numbers && p.part ? save(&p, most, text, size) : status_out_of_memory();
    memory_release(text);
    memory_release(p.numbers);
    memory_release(p.part);
    return status;
}
