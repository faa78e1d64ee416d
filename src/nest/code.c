// SPDX-License-Identifier: Apache-2.0
// How much code the statements of a nest become (COST_CODE).
//
//     fold i < 4 { fold j < 8 { a; b; } c; }        8 (a + b) written out, 4 (8 (a + b) + c) for both
#include "base/count.h"
#include "ir/cost.h"
#include "nest/nest.h"

static int64_t extent_of(const struct nest *n, const struct nest_statement *s)
{
    int64_t extent = 1;
    for (uint32_t i = 0; i < s->n_axes; i++)
        extent = count_times(extent, n->axes.at[s->axes[i]].extent);
    return extent;
}

static bool has_loop(const struct nest *n, uint32_t block)
{
    nest_for_each (s, n, block)
        if (s->kind > NEST_PUT)
            return true;
    return false;
}

// Turns of it that are written out, where that is not too much.
static int64_t turns_of(const struct nest *n, const struct nest_statement *s, int64_t longest,
                        int64_t strip)
{
    int64_t extent = extent_of(n, s);
    if (s->kind == NEST_FOLD || s->kind == NEST_MAP)
        return extent <= longest ? extent : 1;
    if (s->kind != NEST_SEQ || has_loop(n, s->body))
        return 1;
    return extent < strip ? extent : strip;
}

static int64_t code_of_statement(const struct nest *n, nest_id id, int64_t longest,
                                 int64_t strip, int64_t most)
{
    const struct nest_statement *s = &n->statements.at[id];
    int64_t own =
        s->kind == NEST_OP ? cost_code_of_op((enum ir_op)s->op, s->dtype) : COST_CODE_STATEMENT;
    int64_t inner = count_plus(nest_code(n, s->body, longest, strip, most),
                               nest_code(n, s->other, longest, strip, most));
    inner = count_plus(inner, s->n_combines);
    int64_t all = count_times(turns_of(n, s, longest, strip), inner);
    return count_plus(own, all <= most ? all : inner);
}

int64_t nest_code(const struct nest *n, uint32_t block, int64_t longest, int64_t strip,
                  int64_t most)
{
    if (block == NEST_NONE)
        return 0;
    const struct nest_block *b = &n->blocks.at[block];
    int64_t code = 0;
    for (uint32_t i = 0; i < b->statements.count; i++)
        code =
            count_plus(code, code_of_statement(n, b->statements.at[i], longest, strip, most));
    return code;
}
