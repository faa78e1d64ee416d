// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <errno.h>
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
