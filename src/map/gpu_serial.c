// SPDX-License-Identifier: Apache-2.0
// Which loop of a kernel one thread does, and why: for the printed schedule, and for tests that nothing
// that could be shared out is.
#include "map/gpu_serial.h"

#include "map/gpu_groups.h"

#define FEW_POINTS 1024 // of a kernel, which leave most of a GPU idle

static const char *reason(const struct nest *n, const struct nest_statement *s)
{
    if (s->kind == NEST_SEQ || s->kind == NEST_WHILE)
        return "a trip needs the one before it";
    if (map_has_updates(n))
        return "it reads what it writes";
    if (s->kind == NEST_SCAN)
        return "a running fold of several values, or of a point";
    if (s->kind == NEST_FOLD)
        return "its terms hold loops";
    return "no other thread has a share of it";
}

// Whether threads share a loop in the block.
static bool has_shared_loop(const struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block)
        if (nest_is_of_threads(s))
            return true;
    return false;
}

// The loop with the most work below the block that threads of a group do not share; times: of the block.
static void find_most_work(const struct nest *n, uint32_t block, bool is_group, double times,
                           struct map_serial *out)
{
    nest_for_each (s, n, block) {
        if (!map_is_loop(s->kind) || nest_is_of_threads(s))
            continue;
        double turns = times * (double)nest_extent(n, s), work = nest_work(n, s->body);
        if (s->kind == NEST_WHILE) { // some trips
            work = nest_work(n, s->other);
            turns *= 64;
        }
        // Threads of a group walk through loops over time together, where they share what is inside.
        bool is_walked = (s->kind == NEST_SEQ || s->kind == NEST_WHILE) &&
                         (has_shared_loop(n, s->body) || has_shared_loop(n, s->other));
        if (is_group && (is_walked || s->kind == NEST_IF)) {
            find_most_work(n, s->body, true, turns, out);
            find_most_work(n, s->other, true, turns, out);
            continue;
        }
        if (turns * work > COST_ALONE && turns * work > out->work)
            *out = (struct map_serial){.loop = nest_id_of(n, s),
                                       .work = turns * work,
                                       .count = (int64_t)(times * (double)nest_extent(n, s)),
                                       .why = reason(n, s)};
    }
}

void map_serial_find(const struct nest *n, struct map_serial *out)
{
    bool is_group = n->threads[NEST_GROUP_THREADS] > 1;
    *out = (struct map_serial){.loop = NEST_NONE};
    if (n->special)
        return;
    if (n->threads[NEST_BLOCKS] == 1)
        find_most_work(n, 0, is_group, 1, out);
    else if (!n->threads[NEST_COLUMNS])
        nest_for_each (s, n, 0)
            if ((s->level == NEST_THREAD || s->level == NEST_GROUP) &&
                (s->kind == NEST_PAR || s->kind == NEST_MAP) && nest_extent(n, s) < FEW_POINTS)
                find_most_work(n, s->body, is_group, 1, out);
}

const char *map_serial_text(struct arena *arena, const struct nest *n)
{
    static const char *const names[NEST_KIND_COUNT] = {
        [NEST_PAR] = "points",  [NEST_MAP] = "points",        [NEST_FOLD] = "terms",
        [NEST_SCAN] = "terms",  [NEST_SEQ] = "trips",         [NEST_WHILE] = "a while",
        [NEST_IF] = "a branch", [NEST_CONTRACT] = "a product"};
    struct strbuf text = strbuf_make(arena);
    struct map_serial s;
    map_serial_find(n, &s);
    if (s.loop == NEST_NONE)
        return NULL;
    if (s.count > 1)
        strbuf_printf(&text, "%lld ", (long long)s.count);
    strbuf_printf(&text, "%s (%s)", names[nest_statement_at(n, s.loop)->kind], s.why);
    return text.text;
}
