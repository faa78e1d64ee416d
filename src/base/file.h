// SPDX-License-Identifier: Apache-2.0
// Files by their descriptors.
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

// Writes all of the bytes, however many calls that takes; false, with errno, when one fails.
bool file_write(int file, const void *bytes, size_t size);

#endif
