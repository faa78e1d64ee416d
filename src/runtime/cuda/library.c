// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/library.h"

#include "base/status.h"
#include "runtime/host/linkage.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The oldest driver that takes the PTX jot makes and has every entry point of its table.
#define OLDEST_CUDA 12040

struct cuda_api cuda;

struct entry {
    const char *name; // behind a question mark where libraries may lack it
    void *at;         // the pointer in `cuda`
};

static const struct entry entries[] = {
#define ENTRY(result, name, parameters) {#name, &cuda.driver.name},
#include "runtime/cuda/driver.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.cublas.name},
#include "runtime/cuda/cublas.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.cublaslt.name},
#include "runtime/cuda/cublaslt.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.nvrtc.name},
#include "runtime/cuda/nvrtc.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.nvjitlink.name},
#include "runtime/cuda/nvjitlink.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.cusolver.name},
#define OPTIONAL(result, name, parameters) {"?" #name, &cuda.cusolver.name},
#include "runtime/cuda/cusolver.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.cufft.name},
#include "runtime/cuda/cufft.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.cudnn.name},
#include "runtime/cuda/cudnn.def"
#undef ENTRY
    {NULL, NULL},
#define ENTRY(result, name, parameters) {#name, &cuda.nccl.name},
#include "runtime/cuda/nccl.def"
#undef ENTRY
    {NULL, NULL},
};

static struct library {
    const char *title, *names;
    jot_status status; // what opening it came to
    char version[64], fault[400];
} libraries[] = {
#define LIBRARY(word, title, names) {title, names, JOT_OK, "", ""},
    CUDA_LIBRARIES(LIBRARY)
#undef LIBRARY
};

// ---- looking for files ----

static const char *next_word(const char *at, char separator, char *word, size_t size)
{
    const char *end = strchrnul(at, separator);
    snprintf(word, size, "%.*s", (int)(end - at), at);
    return *end ? end + 1 : end;
}

// Any of the names in the directory.
static void *open_in(const char *directory, const char *below, const char *names)
{
    char name[64], path[4096];
    void *library = NULL;
    while (*names && !library) {
        names = next_word(names, ' ', name, sizeof name);
        snprintf(path, sizeof path, "%s%s/%s", directory, below, name);
        library = dlopen(path, RTLD_LOCAL | RTLD_LAZY);
    }
    return library;
}

static void *open_by_linker(const char *names)
{
    char name[64];
    void *library = NULL;
    while (*names && !library) {
        names = next_word(names, ' ', name, sizeof name);
        library = dlopen(name, RTLD_LOCAL | RTLD_LAZY);
    }
    return library;
}

static void *open_names(const char *names)
{
    const char *toolkits[] = {secure_getenv("CUDA_HOME"), secure_getenv("CUDA_PATH"),
                              "/usr/local/cuda"};
    const char *list = secure_getenv("JOT_CUDA_LIBRARIES");
    char directory[3072];
    void *library = NULL;
    while (list && *list && !library) {
        list = next_word(list, ':', directory, sizeof directory);
        library = open_in(directory, "", names);
    }
    if (!library)
        library = open_by_linker(names);
    for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits && !library; i++)
        if (toolkits[i] && *toolkits[i]) {
            library = open_in(toolkits[i], "/lib64", names);
            library = library ? library : open_in(toolkits[i], "/lib", names);
        }
    return library;
}

// ---- entry points ----

// The rows of a library: those between the ends of the tables before it and its own.
static const struct entry *first_entry(enum cuda_library_id id)
{
    const struct entry *e = entries;
    for (int i = 0; i < (int)id; i++, e++)
        while (e->name)
            e++;
    return e;
}

// The first entry point that the library lacks, or NULL.
static const char *find_entries(void *library, const struct entry *e)
{
    for (; e->name; e++) {
        bool is_optional = *e->name == '?';
        void *symbol = dlsym(library, e->name + is_optional);
        if (!symbol && !is_optional)
            return e->name;
        memcpy(e->at, &symbol, sizeof symbol);
    }
    return NULL;
}

static void write_version(struct library *l, int major, int minor, int patch)
{
    snprintf(l->version, sizeof l->version, patch < 0 ? "%d.%d" : "%d.%d.%d", major, minor,
             patch);
}

static void read_version(enum cuda_library_id id)
{
    struct library *l = &libraries[id];
    int a = 0, b = 0, c = 0;
    unsigned major = 0, minor = 0;
    switch (id) {
    case CUDA_LIBRARY_driver:
        cuda.driver.cuDriverGetVersion(&a);
        write_version(l, a / 1000, a % 1000 / 10, -1);
        break;
    case CUDA_LIBRARY_cublas:
        cuda.cublas.cublasGetProperty(MAJOR_VERSION, &a);
        cuda.cublas.cublasGetProperty(MINOR_VERSION, &b);
        cuda.cublas.cublasGetProperty(PATCH_LEVEL, &c);
        write_version(l, a, b, c);
        break;
    case CUDA_LIBRARY_cublaslt:
        a = (int)cuda.cublaslt.cublasLtGetVersion();
        write_version(l, a / 10000, a % 10000 / 100, a % 100);
        break;
    case CUDA_LIBRARY_nvrtc:
        cuda.nvrtc.nvrtcVersion(&a, &b);
        write_version(l, a, b, -1);
        break;
    case CUDA_LIBRARY_nvjitlink:
        cuda.nvjitlink.nvJitLinkVersion(&major, &minor);
        write_version(l, (int)major, (int)minor, -1);
        break;
    case CUDA_LIBRARY_cusolver:
        cuda.cusolver.cusolverGetVersion(&a);
        write_version(l, a / 1000, a % 1000 / 100, a % 100);
        break;
    case CUDA_LIBRARY_cufft:
        cuda.cufft.cufftGetVersion(&a);
        write_version(l, a / 1000, a % 1000 / 100, a % 100);
        break;
    case CUDA_LIBRARY_cudnn:
        a = (int)cuda.cudnn.cudnnGetVersion();
        write_version(l, a / 10000, a % 10000 / 100, a % 100);
        break;
    case CUDA_LIBRARY_nccl:
        cuda.nccl.ncclGetVersion(&a);
        write_version(l, a / 10000, a % 10000 / 100, a % 100);
        break;
    case CUDA_LIBRARY_COUNT:
        break;
    }
}

// ---- the driver ----

static jot_status fail(struct library *l, jot_status status, const char *fault)
{
    snprintf(l->fault, sizeof l->fault, "%s", fault);
    return l->status = status;
}

// A driver that is there may still have nothing to drive.
static jot_status start_driver(struct library *l)
{
    char text[sizeof l->fault];
    int version = 0;
    CUresult result = cuda.driver.cuDriverGetVersion(&version);
    if (result == CUDA_SUCCESS && version > 0 && version < OLDEST_CUDA) {
        snprintf(
            text, sizeof text,
            "the CUDA driver is too old: it is of CUDA %d.%d, and jot needs %d.%d or later",
            version / 1000, version % 1000 / 10, OLDEST_CUDA / 1000, OLDEST_CUDA % 1000 / 10);
        return fail(l, JOT_ERR_DEVICE, text);
    }
    if (result == CUDA_SUCCESS)
        result = cuda.driver.cuInit(0);
    if (result == CUDA_SUCCESS)
        return JOT_OK;
    if (result == CUDA_ERROR_NO_DEVICE)
        return fail(l, JOT_ERR_DEVICE, "the CUDA driver is there, but finds no GPU");
    const char *name = NULL, *why = NULL;
    cuda.driver.cuGetErrorName(result, &name);
    cuda.driver.cuGetErrorString(result, &why);
    snprintf(text, sizeof text, "the CUDA driver does not start: %s (%s)",
             name ? name : "an unknown error", why ? why : "no reason given");
    return fail(l, JOT_ERR_DEVICE, text);
}

// ---- loading ----

static jot_status load_library(enum cuda_library_id id)
{
    struct library *l = &libraries[id];
    bool is_driver = id == CUDA_LIBRARY_driver;
    jot_status missing = is_driver ? JOT_ERR_DEVICE : JOT_ERR_LIBRARY;
    char text[sizeof l->fault], name[64];
    next_word(l->names, ' ', name, sizeof name);
    if (!rt_has_dynamic_linker()) {
        snprintf(text, sizeof text,
                 "%s cannot be loaded by a program that is linked fully statically", name);
        return fail(l, missing, text);
    }
    void *library = open_names(l->names);
    if (!library) {
        const char *why = dlerror();
        if (is_driver)
            snprintf(text, sizeof text,
                     "there is no CUDA driver (%s is not found): NVIDIA's driver is not "
                     "installed, or this is not a machine with a GPU of NVIDIA",
                     name);
        else
            snprintf(text, sizeof text,
                     "%s (%s) is not found: install the CUDA toolkit, or set "
                     "JOT_CUDA_LIBRARIES to the directory that has it (%s)",
                     l->title, name, why ? why : "no such file");
        return fail(l, missing, text);
    }
    const char *lacking = find_entries(library, first_entry(id));
    if (lacking) {
        snprintf(text, sizeof text, "%s is too old or damaged: it has no %s", l->title,
                 lacking);
        return fail(l, missing, text);
    }
    if (is_driver)
        JOT_TRY(start_driver(l));
    read_version(id);
    return JOT_OK;
}

#define LIBRARY(word, title, names)                                                            \
    static void load_##word(void) { load_library(CUDA_LIBRARY_##word); }
CUDA_LIBRARIES(LIBRARY)
#undef LIBRARY

jot_status cuda_library_open(enum cuda_library_id id)
{
    static struct {
        pthread_once_t once;
        void (*load)(void);
    } loads[] = {
#define LIBRARY(word, title, names) {PTHREAD_ONCE_INIT, load_##word},
        CUDA_LIBRARIES(LIBRARY)
#undef LIBRARY
    };
    pthread_once(&loads[id].once, loads[id].load);
    const struct library *l = &libraries[id];
    return l->status == JOT_OK ? JOT_OK : status_fail(l->status, "%s", l->fault);
}

const char *cuda_library_title(enum cuda_library_id id) { return libraries[id].title; }
const char *cuda_library_version(enum cuda_library_id id) { return libraries[id].version; }
