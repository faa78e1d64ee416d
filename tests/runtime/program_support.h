// SPDX-License-Identifier: Apache-2.0
// Plans by hand, over the kernels of kernels.c.
#ifndef TESTS_RUNTIME_PROGRAM_SUPPORT_H
#define TESTS_RUNTIME_PROGRAM_SUPPORT_H

#include "runtime/program.h"

#include "base/arena.h"
#include "jot/device.h"
#include "object.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

// Plans by hand.  Names lie in one text; NAME gives the offset of one.
static const char text[] = "add_one\0sum_chunk\0sum_partials\0double_it\0no_such_kernel\0"
                           "count_up";
enum {
    ADD_ONE = 0,
    SUM_CHUNK = 8,
    SUM_PARTIALS = 18,
    DOUBLE_IT = 31,
    NO_SUCH = 41,
    COUNT_UP = 56
};

// The object of all tests, compiled once.
static inline const char *kernels(size_t *out_size)
{
    static char *object;
    static size_t size;
    if (!object)
        object = test_object(&size, "-DNO_OUTSIDE");
    *out_size = size;
    return object;
}

static inline struct rt_program *
load_with(const struct rt_plan *plan, const struct rt_callback *callback, jot_status *status)
{
    struct arena *arena = arena_create();
    struct rt_program *program = NULL;
    const void *bytes;
    size_t object_size, size;
    const char *object = kernels(&object_size);
    rt_plan_write(plan, arena, &bytes, &size);
    *status = rt_program_load(jot_host(), object, object_size, bytes, size, callback,
                              callback != NULL, &program);
    arena_release(arena);
    return program;
}

static inline struct rt_program *load(const struct rt_plan *plan)
{
    jot_status status;
    struct rt_program *program = load_with(plan, NULL, &status);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    return program;
}

#endif
