// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 768 };

static int64_t extent(const struct check *c, int axis)
{
    return c->dims[axis] < 0 ? 1 : c->dims[axis];
}

static int lanes_of(const struct check *c)
{
    int n = 0;
    for (int axis = 0; axis < c->rank; axis++)
        n += c->dims[axis] < 0;
    return n;
}

// "[3, 1]" of element number `at`.
static void add_index(const struct check *c, int64_t at, char *text, size_t size)
{
    size_t n = strlen(text);
    const int64_t *lane = c->counts + c->n_counts - lanes_of(c);
    for (int axis = 0; axis < c->rank && n < size; axis++) {
        int64_t step = 1;
        for (int later = axis + 1; later < c->rank; later++)
            step *= extent(c, later);
        int64_t place = c->dims[axis] < 0 ? *lane++ : at / step % c->dims[axis];
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64 "%s", axis ? ", " : ", at [",
                              place, axis == c->rank - 1 ? "]" : "");
    }
}

static void add_trips(const struct check *c, char *text, size_t size)
{
    size_t n = strlen(text);
    int n_trips = c->n_counts - lanes_of(c);
    for (int i = 0; i < n_trips && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64,
                              i             ? ", "
                              : n_trips > 1 ? ", in trips "
                                            : ", in trip ",
                              c->counts[i]);
}

jot_status check_all(const struct check *c)
{
    int64_t count = 1;
    for (int axis = 0; axis < c->rank; axis++)
        count *= extent(c, axis);
    const uint8_t *bad = count ? memchr(c->holds, 0, (size_t)count) : NULL;
    if (!bad)
        return JOT_OK;
    char text[LONGEST] = "";
    add_index(c, bad - c->holds, text, sizeof text);
    add_trips(c, text, sizeof text);
    return status_fail(JOT_ERR_CHECK, "%s%s", c->what, text);
}
