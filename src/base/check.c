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

static int named_lanes(const struct check *c)
{
    int n = 0;
    for (int axis = 0; axis < c->rank; axis++)
        n += c->dims[axis] < 0;
    return n;
}

// Where element number `at` is along each axis of the index.
static void find_index(const struct check *c, int64_t at, int64_t *index)
{
    const int64_t *lane = c->counts + c->n_counts - named_lanes(c);
    for (int axis = 0; axis < c->rank; axis++) {
        int64_t step = 1;
        for (int later = axis + 1; later < c->rank; later++)
            step *= extent(c, later);
        index[axis] = c->dims[axis] < 0 ? *lane++ : at / step % c->dims[axis];
    }
}

// ", at [3, 1]"
static void add_index(char *text, size_t size, int rank, const int64_t *index)
{
    size_t n = strlen(text);
    for (int axis = 0; axis < rank && n < size; axis++)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64 "%s", axis ? ", " : ", at [",
                              index[axis], axis == rank - 1 ? "]" : "");
}

void check_add_numbers(char *text, size_t size, const char *what, int n, const int64_t *numbers)
{
    size_t length = strlen(text);
    for (int i = 0; i < n && length < size; i++) {
        if (i == 0)
            length += (size_t)snprintf(text + length, size - length, ", in %s%s", what,
                                       n > 1 ? "s" : "");
        if (length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%" PRId64,
                                       i ? ", " : " ", numbers[i]);
    }
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
    int64_t index[CHECK_MAX_RANK];
    find_index(c, bad - c->holds, index);
    add_index(text, sizeof text, c->rank - c->n_lanes, index + c->n_lanes);
    check_add_numbers(text, sizeof text, "lane", c->n_lanes, index);
    check_add_numbers(text, sizeof text, "trip", c->n_counts - named_lanes(c), c->counts);
    return status_fail(JOT_ERR_CHECK, "%s%s", c->what, text);
}
