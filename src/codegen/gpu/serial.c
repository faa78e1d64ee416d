// SPDX-License-Identifier: Apache-2.0
// Which loop of a kernel one thread does, and why: for the printed schedule, and for tests that nothing
// that could be shared out is.
#include "codegen/gpu/gpu.h"

#define MUCH 32768.0    // operations that a thread does one after the other
#define FEW_POINTS 1024 // of a kernel, which leave most of a GPU idle

static const char *reason(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->kind == NEST_SEQ || s->kind == NEST_WHILE)
        return "a step needs the one before it";
    if (gpu_has_updates(l->nest))
        return "it reads what it writes";
    if (s->kind == NEST_SCAN)
        return "a running fold of several values, or of a point";
    if (s->kind == NEST_FOLD)
        return "its terms hold loops";
    return "no other thread has a share of it";
}

// The loop with the most work below the block that threads of a group do not share.
static void look(const struct cg_lowering *l, uint32_t block, bool is_shared,
                 struct gpu_serial *out)
{
    nest_for_each (s, l->nest, block) {
        bool is_group = s->kind == NEST_PAR || s->kind == NEST_MAP ||
                        gpu_is_team_fold(l, nest_id_of(l->nest, s));
        if (!gpu_is_loop(s->kind) || (is_shared && is_group))
            continue;
        // Threads of a group walk through loops over time together.
        if (is_shared && (s->kind == NEST_SEQ || s->kind == NEST_WHILE || s->kind == NEST_IF)) {
            look(l, s->body, true, out);
            look(l, s->other, true, out);
            continue;
        }
        double turns = (double)cg_extent(l, s), work = nest_work(l->nest, s->body);
        if (s->kind == NEST_WHILE) // some trips
            work = nest_work(l->nest, s->other) * 64;
        if (turns * work > MUCH && turns * work > out->work)
            *out = (struct gpu_serial){.loop = nest_id_of(l->nest, s),
                                       .work = turns * work,
                                       .count = cg_extent(l, s),
                                       .why = reason(l, s)};
    }
}

void gpu_serial_find(const struct cg_lowering *l, nest_id par, bool is_group,
                     struct gpu_serial *out)
{
    *out = (struct gpu_serial){.loop = NEST_NONE};
    if (par == NEST_NONE)
        look(l, 0, is_group, out);
    else if (cg_extent(l, cg_statement(l, par)) < FEW_POINTS)
        look(l, cg_statement(l, par)->body, is_group, out);
}
