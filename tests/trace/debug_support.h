// SPDX-License-Identifier: Apache-2.0
// What the tests of assertions and callbacks share.
#ifndef DEBUG_SUPPORT_H
#define DEBUG_SUPPORT_H

#include "trace_support.h"

static inline const char *base_of(const char *message)
{
    const char *slash = strrchr(message, '/');
    return slash ? slash + 1 : message;
}

// The message with the place cut to the name of the file, without the line.
static inline const char *said(void)
{
    static _Thread_local char text[1024];
    const char *m = jot_error_message(), *colon = strchr(m, ':');
    char file[256];
    snprintf(file, sizeof file, "%.*s", colon ? (int)(colon - m) : 0, m);
    const char *rest = colon ? strchr(colon + 1, ':') : NULL;
    snprintf(text, sizeof text, "%s%s", base_of(file), rest ? rest : m);
    return text;
}

static inline jot_array *vector(int n, const double *x)
{
    const int64_t dims[] = {n, JOT_END};
    return jot_array_copy(JOT_F64, x, dims);
}

static inline void fails_to_trace(jot_function f, const char *message)
{
    jot_executable *e = jot_jit(f);
    jot_array *in = vector(1, (const double[]){1}), *out;
    ck_assert_int_eq(jot_call(e, JOT_IN(in), JOT_OUT(out)), JOT_ERR_ARGUMENT);
    ck_assert_str_eq(said(), message);
    jot_array_release(in);
    jot_executable_release(e);
}

#endif
