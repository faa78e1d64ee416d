// SPDX-License-Identifier: Apache-2.0
#include "trace/codegen_loader.h"

#include "base/status.h"
#include "runtime/host/linkage.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "libjot-codegen.so"

static struct {
    pthread_once_t once;
    char path[4096];
    char identity[160];
} place = {.once = PTHREAD_ONCE_INIT};

// Adds what tells a version of a file from others to the identity; false when there is no file.
static bool identify(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    size_t n = strlen(place.identity);
    snprintf(place.identity + n, sizeof place.identity - n, "%lld %lld.%ld;",
             (long long)info.st_size, (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return true;
}

static bool take(const char *path)
{
    if (!identify(path))
        return false;
    snprintf(place.path, sizeof place.path, "%s", path);
#ifdef JOT_LLVM_PATH
    // A new release of the shared LLVM leaves the module as it was, and makes other code.
    identify(JOT_LLVM_PATH);
#endif
    return true;
}

// $JOT_CODEGEN; beside this library, installed or in a build tree; where it was to be installed.
static void look(void)
{
    const char *asked = secure_getenv("JOT_CODEGEN");
    if (asked && *asked) {
        // Kept even when it is not there, so that the loader says what is wrong with it.
        if (!take(asked))
            snprintf(place.path, sizeof place.path, "%s", asked);
        return;
    }
    static const char *const beside[] = {"/jot/" FILE_NAME, "/" FILE_NAME,
                                         "/codegen/" FILE_NAME, "/../src/codegen/" FILE_NAME,
                                         "/../../src/codegen/" FILE_NAME};
    Dl_info self;
    if (dladdr((void *)(uintptr_t)codegen_load, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        int length = slash ? (int)(slash - self.dli_fname) : 1;
        const char *folder = slash ? self.dli_fname : ".";
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
            char path[4096];
            snprintf(path, sizeof path, "%.*s%s", length, folder, beside[i]);
            if (take(path))
                return;
        }
    }
#ifdef JOT_CODEGEN_PATH
    take(JOT_CODEGEN_PATH);
#endif
}

const char *codegen_identity(void)
{
    pthread_once(&place.once, look);
    return place.identity;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cg_entry *entry;

static jot_status load(void)
{
    if (entry)
        return JOT_OK;
    if (!rt_has_dynamic_linker())
        return status_fail(
            JOT_ERR_LIBRARY,
            "a program that is linked fully statically cannot load the code generator, and the "
            "disk cache has no code for this function: link the C library dynamically (without "
            "-static), or set JOT_BACKEND=eval for the slow evaluator");
    if (!place.path[0])
        return status_fail(JOT_ERR_LIBRARY, "the code generator " FILE_NAME
                                            " was not found beside libjot: install "
                                            "it there or name it in JOT_CODEGEN");
    void *library = dlopen(place.path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return status_fail(JOT_ERR_LIBRARY,
                           "the code generator cannot be loaded (is LLVM 19 installed?): %s",
                           dlerror());
    entry = (cg_entry *)(uintptr_t)dlsym(library, "jot_codegen_entry");
    if (!entry)
        return status_fail(JOT_ERR_LIBRARY, "%s is not a code generator of jot", place.path);
    return JOT_OK;
}

jot_status codegen_load(cg_entry **out_entry)
{
    pthread_once(&place.once, look);
    pthread_mutex_lock(&lock);
    jot_status status = load();
    pthread_mutex_unlock(&lock);
    if (status == JOT_OK)
        *out_entry = entry;
    return status;
}
