// SPDX-License-Identifier: Apache-2.0
// How the program is linked.
#ifndef RUNTIME_HOST_LINKAGE_H
#define RUNTIME_HOST_LINKAGE_H

#include <stdbool.h>

// False in a program that is linked statically, C library and all.  dlopen crashes there.
bool rt_has_dynamic_linker(void);

#endif
