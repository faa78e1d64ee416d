// SPDX-License-Identifier: Apache-2.0
#include "base/conv.h"

#include "base/dtype.h"

#include <string.h>

uint32_t conv_call_write(const struct conv_call *c, int64_t *params)
{
    int64_t head[] = {c->dtype, 1, c->part, c->layout, c->precision, c->groups, c->n};
    size_t n = (size_t)c->n, at = sizeof head / sizeof *head;
    memcpy(params, head, sizeof head);
    for (int i = 0; i < CONV_LISTS; i++, at += n)
        memcpy(params + at, c->lists[i], n * sizeof *params);
    for (int i = 0; i < CONV_PARTS; i++, at += n + 2)
        memcpy(params + at, c->dims[i], (n + 2) * sizeof *params);
    return (uint32_t)at;
}

static bool is_extent(int64_t x) { return x > 0 && x <= INT32_MAX; }

// Whether y has the positions of windows of the extents of w in x along spatial axis i.
static bool has_positions(const struct conv_call *c, int i)
{
    int64_t x = c->dims[CONV_X][conv_spatial(c->layout, CONV_X) + i],
            w = c->dims[CONV_W][conv_spatial(c->layout, CONV_W) + i],
            y = c->dims[CONV_Y][conv_spatial(c->layout, CONV_Y) + i];
    int64_t room = x + 2 * c->lists[CONV_PADDING][i] - (w - 1) * c->lists[CONV_DILATION][i] - 1;
    return room >= 0 && room / c->lists[CONV_STRIDES][i] + 1 == y;
}

static bool is_sound(const struct conv_call *c)
{
    for (int part = 0; part < CONV_PARTS; part++)
        for (int i = 0; i < c->n + 2; i++)
            if (!is_extent(c->dims[part][i]))
                return false;
    for (int i = 0; i < c->n; i++)
        if (!is_extent(c->lists[CONV_STRIDES][i]) || !is_extent(c->lists[CONV_DILATION][i]) ||
            !is_extent(c->lists[CONV_PADDING][i] + 1) || !has_positions(c, i))
            return false;
    int64_t in = c->dims[CONV_X][conv_features(c->layout, c->n, CONV_X)],
            out = c->dims[CONV_Y][conv_features(c->layout, c->n, CONV_Y)];
    return is_extent(c->groups) && in % c->groups == 0 && out % c->groups == 0 &&
           c->dims[CONV_W][conv_in(c->layout, c->n)] == in / c->groups &&
           c->dims[CONV_W][conv_features(c->layout, c->n, CONV_W)] == out &&
           c->dims[CONV_X][0] == c->dims[CONV_Y][0];
}

bool conv_call_read(const int64_t *params, uint32_t count, struct conv_call *out)
{
    struct conv_call c;
    memset(&c, 0, sizeof c); // calls are compared by bytes
    c.n = count > 6 ? (int)params[6] : 0;
    if (count <= 6 || params[6] < 1 || params[6] > CONV_AXES_MOST || params[0] < 0 ||
        params[0] >= DTYPE_COUNT || !dtype_is_float((jot_dtype)params[0]) || params[1] != 1 ||
        params[2] < 0 || params[2] >= CONV_PARTS || params[3] < 0 ||
        params[3] >= CONV_LAYOUTS || params[4] < 0 || params[4] > 3)
        return false;
    size_t n = (size_t)c.n, at = 7;
    if (count != at + CONV_LISTS * n + CONV_PARTS * (n + 2))
        return false;
    c.dtype = (jot_dtype)params[0];
    c.part = (enum conv_part)params[2];
    c.layout = (enum conv_layout)params[3];
    c.precision = (int)params[4];
    c.groups = params[5];
    for (int i = 0; i < CONV_LISTS; i++, at += n)
        memcpy(c.lists[i], params + at, n * sizeof *params);
    for (int i = 0; i < CONV_PARTS; i++, at += n + 2)
        memcpy(c.dims[i], params + at, (n + 2) * sizeof *params);
    memcpy(out, &c, sizeof c);
    return is_sound(&c);
}
