// SPDX-License-Identifier: Apache-2.0
// Whether each lane of a loop can make a fold of its body by itself: it takes nothing from there but
// constants.
#include "map/map.h"

// A value that the body of the loop makes differs from lane to lane, but for constants.
static bool is_of_body(const struct nest *n, uint32_t body, nest_id value)
{
    nest_for_each (s, n, body)
        if (s == nest_maker_of(n, value))
            return s->kind != NEST_CONST;
    return false;
}

// A local that the body of the loop writes: each lane has its own, between those of the others.
static bool is_own_of_lanes(const struct nest *n, uint32_t body, nest_id buffer)
{
    if (n->buffers.at[buffer].role == NEST_LOCAL)
        nest_for_below (s, n, body)
            if (s->kind != NEST_LOAD && s->buffer == buffer)
                return true;
    return false;
}

static bool uses_body(const struct nest *n, uint32_t body, uint32_t block)
{
    nest_for_each (s, n, block) {
        // Anything else is not looked into.
        if (!nest_is_scalar(s) || (s->kind == NEST_LOAD && is_own_of_lanes(n, body, s->buffer)))
            return true;
        nest_for_uses (v, s)
            if (is_of_body(n, body, v))
                return true;
    }
    return false;
}

bool map_may_fold_by_lane(const struct nest *n, uint32_t body,
                          const struct nest_statement *fold)
{
    for (uint32_t i = 0; i < fold->n_combines; i++) {
        const struct nest_combine *c = &fold->combines[i];
        if (nest_combine_results(c->op) != 1 || c->dtype == JOT_BOOL ||
            dtype_is_complex(c->dtype))
            return false;
        for (uint32_t k = 0; k < c->n; k++)
            if (is_of_body(n, body, c->value[k]))
                return false;
    }
    return fold->n_combines && !uses_body(n, body, fold->body);
}
