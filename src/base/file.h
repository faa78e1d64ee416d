// SPDX-License-Identifier: Apache-2.0
// Files.
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>

// Writes all of the bytes, however many calls that takes; false, with errno, when one fails.
bool file_write(int file, const void *bytes, size_t size);

// The bytes of the file at the path, and a zero behind them, for memory_release.  JOT_ERR_IO names it.
jot_status file_read(const char *path, void **out_bytes, size_t *out_size);

#endif
