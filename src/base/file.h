// SPDX-License-Identifier: Apache-2.0
// Files.
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>

// Writes all of the bytes, however many calls that takes; false, with errno, when one fails.
bool file_write(int file, const void *bytes, size_t size);

// The bytes of a file.  Those of a large one are a map of it: they are in memory where they are looked at,
// and the file must not be made shorter meanwhile.
struct file_bytes {
    void *bytes;
    size_t n;
    bool is_mapped;
};

// JOT_ERR_IO names the path.
jot_status file_read(const char *path, struct file_bytes *out);
void file_release(struct file_bytes *f);

#endif
