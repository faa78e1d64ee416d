// SPDX-License-Identifier: Apache-2.0
// Starting by MPI.  MPI is begun and ended on a thread of its own, which is left behind where
// MPI waits for a process that does not come; where the program has begun MPI itself, on the caller's.
#include "runtime/distributed/job.h"
#include "runtime/distributed/mpi.h"

#include "base/built.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/host/linkage.h"
#include "runtime/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FILE_NAME "libjot-mpi.so"

static jot_status load_mpi(const struct mpi_module **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct mpi_module *loaded;
    char path[RT_PATH_BYTES];
    const char *asked = secure_getenv("JOT_MPI");
    if (!rt_has_dynamic_linker())
        return status_fail(JOT_ERR_LIBRARY, "a program that is linked fully statically cannot "
                                            "load MPI");
    if (asked && *asked)
        snprintf(path, sizeof path, "%s", asked);
    else
        rt_module_find(FILE_NAME, path);
    if (!*path)
        return status_fail(JOT_ERR_LIBRARY,
                           FILE_NAME " was not found beside libjot: it is built where there is "
                                     "an MPI (Debian: libopenmpi-dev), or name it in JOT_MPI");
    pthread_mutex_lock(&lock);
    if (!loaded) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const struct mpi_module *found = library ? dlsym(library, MPI_MODULE_SYMBOL) : NULL;
        if (!library)
            status_fail(JOT_ERR_LIBRARY, "MPI cannot be loaded: %s", dlerror());
        else if (!found)
            status_fail(JOT_ERR_LIBRARY, "%s is not the module of jot that uses MPI", path);
        else if (strcmp(found->built, BUILT) != 0)
            status_fail(JOT_ERR_LIBRARY,
                        "%s was built from other sources than libjot: the two are built and "
                        "installed together",
                        path);
        else
            loaded = found;
    }
    *out = loaded;
    pthread_mutex_unlock(&lock);
    return *out ? JOT_OK : JOT_ERR_LIBRARY;
}

// What the thread of MPI and the caller tell each other.  Who goes last releases it.
struct meeting {
    const struct mpi_module *mpi;
    double seconds;
    pthread_mutex_t lock;
    pthread_cond_t is_over;
    int users;
    int index, count;
    void *all;
    const char *fault;
    size_t bytes;
    unsigned char own[];
};

static void release(struct meeting *m)
{
    pthread_mutex_lock(&m->lock);
    bool is_last = --m->users == 0;
    pthread_cond_signal(&m->is_over);
    pthread_mutex_unlock(&m->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&m->is_over);
    pthread_mutex_destroy(&m->lock);
    memory_release(m->all);
    memory_release(m);
}

static void meet(struct meeting *m)
{
    m->fault = m->mpi->meet(m->own, m->bytes, m->seconds, memory_allocate, &m->index, &m->count,
                            &m->all);
}

static void *meet_apart(void *ctx)
{
    meet(ctx);
    release(ctx);
    return NULL;
}

static struct meeting *create(const struct mpi_module *mpi, const void *own, size_t bytes,
                              double seconds)
{
    pthread_condattr_t attributes;
    struct meeting *m = memory_allocate_zeroed(sizeof *m + bytes);
    if (!m)
        return NULL;
    m->mpi = mpi, m->seconds = seconds, m->bytes = bytes, m->users = 1;
    memcpy(m->own, own, bytes);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&m->is_over, &attributes);
    pthread_condattr_destroy(&attributes);
    return m;
}

// False when it takes too long.
static bool meet_on_thread(struct meeting *m)
{
    pthread_t thread;
    pthread_attr_t attributes;
    int64_t end = clock_ns() + (int64_t)(m->seconds * 1e9);
    struct timespec at = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
    m->users = 2;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int fault = pthread_create(&thread, &attributes, meet_apart, m);
    pthread_attr_destroy(&attributes);
    if (fault) {
        m->users = 1;
        m->fault = "no thread can be started";
        return true;
    }
    pthread_mutex_lock(&m->lock);
    while (m->users == 2 && fault == 0)
        fault = pthread_cond_timedwait(&m->is_over, &m->lock, &at);
    bool is_over = m->users == 1;
    pthread_mutex_unlock(&m->lock);
    return is_over;
}

struct wanted {
    const struct mpi_module *mpi;
    double seconds;
};

static const char *meet_by_mpi(void *ctx, const void *own, size_t bytes, int *out_index,
                               int *out_count, void **out_all)
{
    const struct wanted *w = ctx;
    struct meeting *m = create(w->mpi, own, bytes, w->seconds);
    const char *fault = NULL;
    if (!m)
        return "out of memory";
    if (w->mpi->state() == MPI_STATE_OF_PROGRAM)
        meet(m);
    else if (!meet_on_thread(m))
        fault = "MPI has not begun in time";
    if (!fault) {
        fault = m->fault;
        *out_index = m->index, *out_count = m->count;
        *out_all = m->all;
        m->all = NULL;
    }
    release(m);
    return fault;
}

jot_status jot_distributed_start(const jot_distributed_options *options)
{
    static const jot_distributed_options defaults;
    options = options ? options : &defaults;
    struct wanted w = {.seconds = options->start_seconds > 0 ? options->start_seconds : 300};
    if (job_find())
        return status_fail(JOT_ERR_ARGUMENT, "jot_distributed_start: it was called before");
    JOT_TRY(load_mpi(&w.mpi));
    if (w.mpi->state() == MPI_STATE_OVER)
        return status_fail(JOT_ERR_ARGUMENT,
                           "jot_distributed_start: MPI is over: it is called once, and before "
                           "MPI_Finalize");
    return rt_distributed_join(options, meet_by_mpi, &w);
}
