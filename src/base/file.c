// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20) // bytes of a file that is mapped

bool file_write(int file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        ssize_t n = write(file, at, size < (1u << 30) ? size : (1u << 30));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

// Until the end, whatever size the file said: it may grow, or be a pipe.
static jot_status read_all(int file, size_t expected, struct file_bytes *out)
{
    size_t room = expected + 4096;
    out->bytes = memory_allocate(room);
    while (out->bytes) {
        ssize_t n = read(file, (char *)out->bytes + out->n, room - out->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? JOT_ERR_IO : JOT_OK;
        out->n += (size_t)n;
        if (out->n < room)
            continue;
        room *= 2;
        char *larger = memory_resize(out->bytes, room);
        if (!larger)
            memory_release(out->bytes);
        out->bytes = larger;
    }
    return status_out_of_memory();
}

static jot_status map_all(int file, size_t n, struct file_bytes *out)
{
    void *bytes = mmap(NULL, n, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
        return read_all(file, n, out);
    *out = (struct file_bytes){bytes, n, true};
    return JOT_OK;
}

jot_status file_read(const char *path, struct file_bytes *out)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    *out = (struct file_bytes){0};
    if (file < 0 || fstat(file, &about)) {
        int why = errno;
        if (file >= 0)
            close(file);
        return status_fail(JOT_ERR_IO, "%s: %s", path, strerror(why));
    }
    size_t n = S_ISREG(about.st_mode) && about.st_size > 0 ? (size_t)about.st_size : 0;
    jot_status status = n >= LARGE ? map_all(file, n, out) : read_all(file, n, out);
    int why = errno;
    close(file);
    if (status == JOT_OK)
        return JOT_OK;
    file_release(out);
    return status == JOT_ERR_IO ? status_fail(JOT_ERR_IO, "%s: %s", path, strerror(why))
                                : status;
}

void file_release(struct file_bytes *f)
{
    if (f->is_mapped)
        munmap(f->bytes, f->n);
    else
        memory_release(f->bytes);
    *f = (struct file_bytes){0};
}
