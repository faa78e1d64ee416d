// SPDX-License-Identifier: Apache-2.0
// What the tests of devices share.
#ifndef DEVICE_SUPPORT_H
#define DEVICE_SUPPORT_H

#include "jot/array.h"
#include "jot/device.h"
#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/program.h"

#include <check.h>
#include <string.h>

static inline void expect(jot_status status, jot_status wanted, const char *part)
{
    ck_assert_msg(status == wanted, "%s: %s", jot_status_name(status), jot_error_message());
    if (part)
        ck_assert_msg(strstr(jot_error_message(), part), "%s", jot_error_message());
}

#define OK(call) expect(call, JOT_OK, NULL)

static inline jot_array *ramp(int64_t n)
{
    jot_array *a = jot_array_full(JOT_F32, 0, n);
    for (int64_t i = 0; i < n; i++)
        ((float *)a->data)[i] = (float)(i % 9973);
    return a;
}

static inline jot_status run(struct rt_program *p, const jot_array *x, const jot_array *y)
{
    return rt_program_run(p, (const void *[]){x ? x->data : NULL}, (void *[]){y->data});
}

#endif
