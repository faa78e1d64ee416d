// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char own_folder[RT_PATH_BYTES]; // empty where that is not known

// At the start: the loader's name may begin where the process stands then.  A name without a
// folder is that of a program, found along $PATH, that this library is in.
__attribute__((constructor)) static void note_folder(void)
{
    Dl_info self;
    char here[RT_PATH_BYTES] = "", program[RT_PATH_BYTES] = "";
    if (!dladdr((void *)(uintptr_t)rt_module_find, &self) || !self.dli_fname)
        return;
    const char *name = self.dli_fname;
    if (!strchr(name, '/'))
        name = readlink("/proc/self/exe", program, sizeof program - 1) > 0 ? program : "";
    if (!*name || (*name != '/' && !getcwd(here, sizeof here)))
        return;
    int n = snprintf(own_folder, sizeof own_folder, "%s%s%.*s", here, *here ? "/" : "",
                     (int)(strrchr(name, '/') - name), name);
    if (n < 0 || n >= (int)sizeof own_folder)
        own_folder[0] = 0;
}

static bool join_path(char *path, const char *folder, const char *between, const char *name)
{
    int n = snprintf(path, RT_PATH_BYTES, "%s%s%s", folder, between, name);
    if (n > 0 && n < RT_PATH_BYTES && access(path, R_OK) == 0)
        return true;
    path[0] = 0;
    return false;
}

void rt_module_find(const char *name, char path[RT_PATH_BYTES])
{
    static const char *const between[] = {"/jot/",
                                          "/",
                                          "/codegen/",
                                          "/../src/codegen/",
                                          "/../../src/codegen/",
                                          "/runtime/",
                                          "/../src/runtime/"};
    path[0] = 0;
    for (size_t i = 0; *own_folder && i < sizeof between / sizeof *between; i++)
        if (join_path(path, own_folder, between[i], name))
            return;
#ifdef JOT_MODULE_DIRECTORY
    join_path(path, JOT_MODULE_DIRECTORY, "/", name);
#endif
}
