// SPDX-License-Identifier: Apache-2.0
#include "interop/input.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 30) // of one call of the system

static char *copy_text(const char *text)
{
    char *copy = memory_allocate(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static jot_status fail_of_system(const char *path, int why)
{
    return status_fail(JOT_ERR_IO, "%s: %s", path, strerror(why));
}

// ---- in ----

// Until the end, as of a pipe, which has no size.
static jot_status read_all(struct input *in)
{
    size_t room = 0, used = 0;
    for (;;) {
        if (used == room) {
            room = room ? 2 * room : 1 << 16;
            void *larger = memory_resize(in->owned, room);
            if (!larger)
                return status_out_of_memory();
            in->owned = larger;
        }
        ssize_t n =
            read(in->file, (char *)in->owned + used, room - used < PIECE ? room - used : PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_of_system(in->name, errno);
        if (n == 0)
            break;
        used += (size_t)n;
    }
    close(in->file);
    in->file = -1;
    in->bytes = in->owned;
    in->size = used;
    return JOT_OK;
}

static jot_status open_file(struct input *in, const char *path)
{
    struct stat about;
    in->name = copy_text(path);
    if (!in->name)
        return status_out_of_memory();
    in->file = open(path, O_RDONLY | O_CLOEXEC);
    if (in->file < 0 || fstat(in->file, &about))
        return fail_of_system(path, errno);
    if (S_ISDIR(about.st_mode))
        return fail_of_system(path, EISDIR);
    if (!S_ISREG(about.st_mode))
        return read_all(in);
    in->size = (uint64_t)about.st_size;
    return JOT_OK;
}

jot_status input_open(struct input *in, const char *path)
{
    *in = (struct input){.file = -1};
    jot_status status = open_file(in, path);
    if (status != JOT_OK)
        input_close(in);
    return status;
}

static jot_status map_file(struct input *in)
{
    struct mapping *m = memory_allocate(sizeof *m);
    if (!m)
        return status_out_of_memory();
    void *bytes = mmap(NULL, (size_t)in->size, PROT_READ, MAP_PRIVATE, in->file, 0);
    if (bytes == MAP_FAILED) {
        memory_release(m);
        return JOT_OK;
    }
    m->bytes = bytes;
    m->n = (size_t)in->size;
    atomic_init(&m->users, 1);
    in->map = m;
    in->bytes = bytes;
    close(in->file);
    in->file = -1;
    return JOT_OK;
}

jot_status input_map(struct input *in, const char *path)
{
    JOT_TRY(input_open(in, path));
    if (in->file < 0 || in->size == 0 || in->size > SIZE_MAX)
        return JOT_OK;
    jot_status status = map_file(in);
    if (status != JOT_OK)
        input_close(in);
    return status;
}

void mapping_release(struct mapping *m)
{
    if (!m || atomic_fetch_sub(&m->users, 1) > 1)
        return;
    munmap(m->bytes, m->n);
    memory_release(m);
}

jot_status input_borrow(struct input *in, const char *name, const void *bytes, size_t n)
{
    *in = (struct input){.file = -1, .name = copy_text(name), .bytes = bytes, .size = n};
    return in->name ? JOT_OK : status_out_of_memory();
}

jot_status input_copy(struct input *in, const char *name, const void *bytes, size_t n)
{
    *in = (struct input){.file = -1, .name = copy_text(name), .size = n};
    in->bytes = in->owned = in->name && n < SIZE_MAX ? memory_allocate(n + 1) : NULL;
    if (!in->owned) {
        input_close(in);
        return status_out_of_memory();
    }
    if (n)
        memcpy(in->owned, bytes, n);
    return JOT_OK;
}

void input_close(struct input *in)
{
    if (in->file >= 0)
        close(in->file);
    memory_release(in->name);
    memory_release(in->owned);
    mapping_release(in->map);
    *in = (struct input){.file = -1};
}

static jot_status fail_at(const char *name, const char *member, uint64_t at, const char *format,
                          va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    return status_fail(JOT_ERR_IO, "%s: %s%soffset %" PRIu64 ": %s", name, member ? member : "",
                       member ? ": " : "", at, text);
}

jot_status input_fail(const struct input *in, uint64_t at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    jot_status status = fail_at(in->name, NULL, at, format, arguments);
    va_end(arguments);
    return status;
}

jot_status input_read(const struct input *in, uint64_t at, void *to, size_t n)
{
    if (at > in->size || n > in->size - at)
        return input_fail(in, at, "%zu bytes belong here, but the file ends at %" PRIu64, n,
                          in->size);
    if (in->file < 0) {
        if (n)
            memcpy(to, in->bytes + at, n);
        return JOT_OK;
    }
    for (char *p = to; n;) {
        ssize_t got = pread(in->file, p, n < PIECE ? n : PIECE, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_of_system(in->name, errno);
        if (got == 0)
            return input_fail(in, at, "the file has become shorter meanwhile");
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return JOT_OK;
}

static jot_status next_of_input(struct stream *s, void *to, size_t n)
{
    return input_read(s->in, s->at, to, n);
}

struct stream stream_of(const struct input *in)
{
    return (struct stream){.in = in, .size = in->size, .from = 0, .next = next_of_input};
}

jot_status stream_fail(const struct stream *s, uint64_t at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    jot_status status = fail_at(s->in->name, s->member, at, format, arguments);
    va_end(arguments);
    return status;
}

jot_status stream_read(struct stream *s, void *to, size_t n, const char *what)
{
    if (n > s->size - s->at)
        return stream_fail(s, s->at, "%s takes %zu bytes, but there are %" PRIu64 " to the end",
                           what, n, s->size - s->at);
    JOT_TRY(s->next(s, to, n));
    s->at += n;
    return JOT_OK;
}

// ---- out ----

static jot_status open_temporary(struct output *o, mode_t mode)
{
    size_t room = strlen(o->path) + 32;
    o->temporary = memory_allocate(room);
    if (!o->temporary)
        return status_out_of_memory();
    for (unsigned i = 0; i < 1000 && o->file < 0; i++) {
        snprintf(o->temporary, room, "%s.%ld.%u.part", o->path, (long)getpid(), i);
        o->file = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->file < 0 && errno != EEXIST)
            return fail_of_system(o->path, errno);
    }
    if (o->file < 0 || (mode && fchmod(o->file, mode & 07777)))
        return fail_of_system(o->path, errno);
    return JOT_OK;
}

// The path of the file itself, of which the given one may be a link.
static jot_status resolve(struct output *o)
{
    char *path = realpath(o->path, NULL), *copy = path ? copy_text(path) : NULL;
    int why = errno;
    free(path);
    if (!path)
        return why == ENOENT ? JOT_OK : fail_of_system(o->path, why);
    memory_release(o->path);
    o->path = copy;
    return copy ? JOT_OK : status_out_of_memory();
}

static jot_status open_output(struct output *o, const char *path)
{
    struct stat about;
    o->path = copy_text(path);
    if (!o->path)
        return status_out_of_memory();
    JOT_TRY(resolve(o));
    bool is_new = lstat(o->path, &about) != 0;
    if (is_new || S_ISREG(about.st_mode))
        return open_temporary(o, is_new ? 0 : about.st_mode);
    o->file = open(path, O_WRONLY | O_CLOEXEC);
    return o->file < 0 ? fail_of_system(path, errno) : JOT_OK;
}

jot_status output_open(struct output *o, const char *path)
{
    *o = (struct output){.file = -1};
    jot_status status = open_output(o, path);
    return status == JOT_OK ? JOT_OK : output_close(o, status);
}

jot_status output_write(struct output *o, const void *bytes, size_t n)
{
    for (const char *p = bytes; n;) {
        ssize_t done = write(o->file, p, n < PIECE ? n : PIECE);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return fail_of_system(o->path, done ? errno : EIO);
        p += done;
        o->at += (uint64_t)done;
        n -= (size_t)done;
    }
    return JOT_OK;
}

jot_status output_rewrite(struct output *o, uint64_t at, const void *bytes, size_t n)
{
    ssize_t done = pwrite(o->file, bytes, n, (off_t)at);
    return done == (ssize_t)n ? JOT_OK : fail_of_system(o->path, done < 0 ? errno : EIO);
}

// Renaming a file before its bytes are on the disk may leave it empty when the machine stops.
// A file system that does not know how to do that does without.
static jot_status keep(struct output *o)
{
    if (o->file < 0 || !o->temporary || fsync(o->file) == 0 || errno == EINVAL ||
        errno == ENOSYS || errno == EOPNOTSUPP)
        return JOT_OK;
    return fail_of_system(o->path, errno);
}

// The name is on the disk as well.
static void keep_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = copy_text(slash ? path : ".");
    if (folder && slash)
        folder[slash == path ? 1 : slash - path] = 0;
    int file = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file >= 0) {
        fsync(file);
        close(file);
    }
    memory_release(folder);
}

jot_status output_close(struct output *o, jot_status status)
{
    if (status == JOT_OK)
        status = keep(o);
    if (o->file >= 0 && close(o->file) && status == JOT_OK)
        status = fail_of_system(o->path, errno);
    if (o->temporary && o->file >= 0) {
        if (status == JOT_OK && rename(o->temporary, o->path))
            status = fail_of_system(o->path, errno);
        if (status != JOT_OK)
            unlink(o->temporary);
        else
            keep_name(o->path);
    }
    memory_release(o->path);
    memory_release(o->temporary);
    *o = (struct output){.file = -1};
    return status;
}
