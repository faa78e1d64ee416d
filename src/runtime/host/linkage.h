// SPDX-License-Identifier: Apache-2.0
// How the program is linked, and libraries that it loads by itself.
#ifndef RUNTIME_HOST_LINKAGE_H
#define RUNTIME_HOST_LINKAGE_H

#include <stdbool.h>

// False in a program that is linked statically, C library and all.  dlopen crashes there.
bool rt_has_dynamic_linker(void);

// The library of that file name, or NULL with the reason in dlerror.  One that the process has already
// is somebody else's, known by a function that it has: changing its state would change their
// program.  A copy of the file is a library of its own.
void *rt_open_private(const char *name, const char *known);

#endif
