// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
static jot_status read_all(int file, size_t expected, void **out, size_t *out_size)
{
    size_t room = expected + 4096, used = 0;
    char *bytes = memory_allocate(room);
    while (bytes) {
        ssize_t n = read(file, bytes + used, room - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            bytes[used] = 0;
            *out = bytes;
            *out_size = used;
            return n ? JOT_ERR_IO : JOT_OK;
        }
        used += (size_t)n;
        if (used + 1 < room)
            continue;
        room *= 2;
        char *larger = memory_resize(bytes, room);
        if (!larger)
            memory_release(bytes);
        bytes = larger;
    }
    *out = NULL;
    return status_out_of_memory();
}

jot_status file_read(const char *path, void **out_bytes, size_t *out_size)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    *out_bytes = NULL;
    if (file < 0 || fstat(file, &about)) {
        int why = errno;
        if (file >= 0)
            close(file);
        return status_fail(JOT_ERR_IO, "%s: %s", path, strerror(why));
    }
    bool has_size = S_ISREG(about.st_mode) && about.st_size > 0;
    jot_status status =
        read_all(file, has_size ? (size_t)about.st_size : 0, out_bytes, out_size);
    int why = errno;
    close(file);
    if (status == JOT_ERR_IO) {
        memory_release(*out_bytes);
        *out_bytes = NULL;
        return status_fail(JOT_ERR_IO, "%s: %s", path, strerror(why));
    }
    return status;
}
