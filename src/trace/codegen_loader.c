// SPDX-License-Identifier: Apache-2.0
#include "trace/codegen_loader.h"

#include "base/built.h"
#include "base/status.h"
#include "runtime/fork.h"
#include "runtime/host/linkage.h"
#include "runtime/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "libjot-codegen.so"

static struct {
    pthread_once_t once;
    char module[RT_PATH_BYTES], process[RT_PATH_BYTES];
} files = {.once = PTHREAD_ONCE_INIT};

static void look_for_both(void)
{
    const char *asked = secure_getenv("JOT_CODEGEN");
    // Kept even when it is not there, so that the loader says what is wrong with it.
    if (asked && *asked)
        snprintf(files.module, sizeof files.module, "%s", asked);
    else
        rt_module_find(FILE_NAME, files.module);
    rt_module_find("jot-compile", files.process);
}

const char *codegen_path(void)
{
    pthread_once(&files.once, look_for_both);
    return files.module;
}

const char *codegen_process_path(void)
{
    pthread_once(&files.once, look_for_both);
    return files.process;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cg_entry *entry;
static atomic_int inside; // threads that run it
static bool is_left;

static void note_fork(void) { is_left |= atomic_exchange(&inside, 0) > 0; }

FORK_KEEPS(FORK_LOADER, lock, note_fork)

bool codegen_is_left(void) { return is_left; }

static jot_status load_module(void)
{
    if (entry)
        return JOT_OK;
    if (!rt_has_dynamic_linker())
        return status_fail(
            JOT_ERR_LIBRARY,
            "a program that is linked fully statically cannot load the code generator, and the "
            "disk cache has no code for this function: link the C library dynamically (without "
            "-static), or set JOT_BACKEND=eval for the slow evaluator");
    const char *path = codegen_path();
    if (!*path)
        return status_fail(JOT_ERR_LIBRARY, "the code generator " FILE_NAME
                                            " was not found beside libjot: install "
                                            "it there or name it in JOT_CODEGEN");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return status_fail(JOT_ERR_LIBRARY,
                           "the code generator cannot be loaded (is LLVM 19 installed?): %s",
                           dlerror());
    const char *built = dlsym(library, CG_BUILT_SYMBOL);
    cg_entry *found = (cg_entry *)(uintptr_t)dlsym(library, CG_ENTRY_SYMBOL);
    if (!built || !found)
        return status_fail(JOT_ERR_LIBRARY, "%s is not a code generator of jot", path);
    if (strcmp(built, BUILT) != 0)
        return status_fail(JOT_ERR_LIBRARY,
                           "%s was built from other sources than libjot: the two are built and "
                           "installed together",
                           path);
    entry = found;
    return JOT_OK;
}

jot_status codegen_open(void)
{
    pthread_mutex_lock(&lock);
    jot_status status = load_module();
    pthread_mutex_unlock(&lock);
    return status;
}

jot_status codegen_run(const struct cg_request *request, struct cg_response *out)
{
    JOT_TRY(codegen_open());
    atomic_fetch_add(&inside, 1);
    entry(request, out);
    atomic_fetch_sub(&inside, 1);
    return JOT_OK;
}
