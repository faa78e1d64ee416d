// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/linkage.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

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

// A copy of the file that the function is from, or NULL.
static void *open_copy(void *function)
{
    Dl_info info;
    char path[64];
    void *library = NULL;
    int from = -1, to = -1;
    struct stat size;
    if (function && dladdr(function, &info) && info.dli_fname)
        from = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
    if (from >= 0 && fstat(from, &size) == 0)
        to = memfd_create("jot-library", MFD_CLOEXEC);
    if (to >= 0) {
        off_t left = size.st_size;
        ssize_t n = 1;
        while (left > 0 && (n = sendfile(to, from, NULL, (size_t)left)) > 0)
            left -= n;
        snprintf(path, sizeof path, "/proc/self/fd/%d", to);
        if (left == 0)
            library = dlopen(path, RTLD_LOCAL | RTLD_NOW);
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return library;
}

void *rt_open_private(const char *name, const char *known)
{
    void *theirs = dlopen(name, RTLD_LOCAL | RTLD_NOW | RTLD_NOLOAD);
    void *library = theirs ? open_copy(dlsym(theirs, known)) : NULL;
    if (theirs)
        dlclose(theirs);
    return library ? library : dlopen(name, RTLD_LOCAL | RTLD_NOW);
}
