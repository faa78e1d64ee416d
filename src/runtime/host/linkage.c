// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/linkage.h"

#include <link.h>
#include <stddef.h>

static int names_interpreter(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            return 1;
    return 0;
}

// The interpreter of a program is its dynamic linker.
bool rt_has_dynamic_linker(void) { return dl_iterate_phdr(names_interpreter, NULL) != 0; }
