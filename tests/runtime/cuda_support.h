// SPDX-License-Identifier: Apache-2.0
// What the tests over the driver of fake_cuda share.
#ifndef CUDA_SUPPORT_H
#define CUDA_SUPPORT_H

#include "device_support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Every test is a process of its own, so that each has a driver of its own.
static inline void use_fake(const char *variable, const char *value)
{
    setenv("JOT_CUDA_LIBRARIES", getenv("JOT_TEST_FAKE_CUDA"), 1);
    if (variable)
        setenv(variable, value, 1);
}

// A directory with all of the fake but a library, in the place of which is one that lacks everything.
static inline void use_fake_without(const char *library)
{
    static const char *const all[] = {"libcuda.so.1",    "libnvJitLink.so.13", "libnvrtc.so.13",
                                      "libcublas.so.13", "libcusolver.so.12",  "libcufft.so.12",
                                      "libcudnn.so.9",   "libnccl.so.2"};
    static char directory[] = "/tmp/jot-routines-XXXXXX";
    char from[4096], to[4096];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_lacking = !strcmp(all[i], library);
        snprintf(from, sizeof from, "%s/%s",
                 getenv(is_lacking ? "JOT_TEST_LACKING_CUDA" : "JOT_TEST_FAKE_CUDA"), all[i]);
        snprintf(to, sizeof to, "%s/%s", directory, all[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    setenv("JOT_CUDA_LIBRARIES", directory, 1);
}

// Each library of the fake is a copy with numbers of its own.
static inline void fake_find(const char *file, const char *name, void *out, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("JOT_TEST_FAKE_CUDA"), file);
    void *library = dlopen(path, RTLD_LAZY);
    void *symbol = library ? dlsym(library, name) : NULL;
    ck_assert_ptr_nonnull(symbol);
    memcpy(out, &symbol, bytes);
}

static inline int fake_count_of(const char *file, const char *name)
{
    int (*count)(void);
    fake_find(file, name, &count, sizeof count);
    return count();
}

static inline int fake_count(const char *name) { return fake_count_of("libcuda.so.1", name); }

// Nothing is left once what is kept for reuse is given back.
static inline void expect_no_blocks(void)
{
    jot_memory_trim();
    ck_assert_int_eq(fake_count("fake_cuda_blocks"), 0);
}

#endif
