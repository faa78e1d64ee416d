// SPDX-License-Identifier: Apache-2.0
// Structs of arrays in archives: the names of their members become those of the arrays.
#include "base/memory.h"
#include "base/status.h"
#include "interop/archive.h"
#include "jot/io.h"

#include <stdio.h>
#include <string.h>

#define NAME_ROOM 512

static jot_status check(const char *function, const void *archive, const jot_members *members,
                        size_t n, const void *arrays)
{
    if (!archive)
        return archive_is_null(function);
    if (!members || !arrays)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the %s are NULL", function,
                           members ? "arrays" : "members");
    if (n != members->values)
        return status_fail(JOT_ERR_ARGUMENT, "%s: n is %zu arrays, and the struct has %zu",
                           function, n, members->values);
    return JOT_OK;
}

// "name.layers[2].w"
static jot_status write_name(const char *function, const char *name, const jot_members *members,
                             size_t i, char *text)
{
    int n = snprintf(text, NAME_ROOM, "%s%s", name ? name : "", name ? "." : "");
    size_t left = n >= 0 && n < NAME_ROOM ? (size_t)(NAME_ROOM - n) : 0;
    n = jot_value_name(members, i, left ? text + n : NULL, left);
    if (n >= 0 && (size_t)n < left)
        return JOT_OK;
    return status_fail(JOT_ERR_ARGUMENT, "%s: the name of value %zu is too long", function, i);
}

// ---- adding ----

static jot_status check_new(const jot_archive *a, const char *name, const jot_array *array)
{
    for (size_t i = 0; i < jot_archive_count(a); i++)
        if (strcmp(jot_archive_name(a, i), name) == 0)
            return status_fail(JOT_ERR_ARGUMENT,
                               "jot_archive_add_tree: there is a %.100s already", name);
    return array ? JOT_OK
                 : status_fail(JOT_ERR_ARGUMENT, "jot_archive_add_tree: %.100s is NULL", name);
}

jot_status jot_archive_add_tree(jot_archive *a, const char *name, const jot_members *members,
                                size_t n, jot_array *const *arrays)
{
    const char *function = "jot_archive_add_tree";
    char text[NAME_ROOM];
    JOT_TRY(check(function, a, members, n, arrays));
    for (size_t i = 0; i < n; i++) {
        JOT_TRY(write_name(function, name, members, i, text));
        JOT_TRY(check_new(a, text, arrays[i]));
    }
    for (size_t i = 0; i < n; i++) {
        JOT_TRY(write_name(function, name, members, i, text));
        JOT_TRY(jot_archive_add(a, text, arrays[i]));
    }
    return JOT_OK;
}

// ---- getting ----

jot_status jot_archive_get_tree(const jot_archive *a, const char *name,
                                const jot_members *members, size_t n, jot_array **arrays)
{
    const char *function = "jot_archive_get_tree";
    char text[NAME_ROOM];
    JOT_TRY(check(function, a, members, n, arrays));
    jot_array **found = memory_allocate_zeroed((n + 1) * sizeof *found);
    jot_status status = found ? JOT_OK : status_out_of_memory();
    for (size_t i = 0; status == JOT_OK && i < n; i++) {
        status = write_name(function, name, members, i, text);
        if (status == JOT_OK && !(found[i] = jot_archive_get(a, text)))
            status = status_last();
    }
    if (status == JOT_OK)
        memcpy(arrays, found, n * sizeof *found);
    else if (found)
        jot_arrays_release(n, found);
    memory_release(found);
    return status;
}
