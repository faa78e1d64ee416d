// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, and whole files.
#ifndef TESTS_INTEROP_FOLDER_H
#define TESTS_INTEROP_FOLDER_H

#include <stddef.h>

void folder_make(void);
void folder_remove(void);
// The path of a file there; that of the fourth call before is overwritten.
const char *folder_path(const char *name);
int folder_count(void); // files there

// The bytes, with a zero byte behind, for free.
void *folder_slurp(const char *path, size_t *n);
void folder_spill(const char *path, const void *bytes, size_t n);

#endif
