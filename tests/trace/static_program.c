// SPDX-License-Identifier: Apache-2.0
// A program that is linked statically, C library and all: what has to be loaded is refused with a
// message, and nothing else is lost.
#include "runtime/host/blas.h"

#include <dlfcn.h>
#include <jot/jot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In the place of the real one, which crashes.
void *dlopen(const char *file, int mode)
{
    printf("dlopen(%s, %d)\n", file, mode);
    abort();
}

static jot_value f(jot_value x) { return jot_add(jot_exp(x), 3); }

static int says(jot_status status, const char *text)
{
    if (status == JOT_ERR_LIBRARY && strstr(jot_error_message(), text))
        return 1;
    printf("%s: %s\n", jot_status_name(status), jot_error_message());
    return 0;
}

int main(void)
{
    setenv("JOT_CACHE", "off", 1);
    unsetenv("JOT_BACKEND");
    unsetenv("JOT_DEVICE");
    jot_array *x = jot_array_full(JOT_F32, 0, 2), *y = NULL;
    jot_executable *e = jot_jit(jot_fn(f));
    int ok = says(jot_call(e, JOT_IN(x), JOT_OUT(y)),
                  "linked fully statically cannot load the code generator");
    ok &= says(rt_blas_open(), "link the C library dynamically");
    setenv("JOT_BACKEND", "eval", 1);
    ok &=
        jot_call(e, JOT_IN(x), JOT_OUT(y)) == JOT_OK && *(const float *)jot_array_data(y) == 4;
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(e);
    return !ok;
}
