// SPDX-License-Identifier: Apache-2.0
// Loads in front of puts, in the kernels of loops on a GPU:
//
//     put next[j] = %1                          %2 = load carry_2[j] : f32
//     %2 = load carry_2[j] : f32       =>       put next[j] = %1
//     put next_2[j] = add %2, %3                put next_2[j] = add %2, %3
//
// A thread stops at a put until the value is there. In the function of a loop memories take turns, and the assembler
// does not know that a load behind the put reads another one: each load waits for all those before it. What
// the kernel only reads may be read first: where a result has the memory of an operand, a point reads its elements
// before it puts them (plan.h), and so it does after this.
#include "schedule/internal.h"
#include "schedule/rewrites.h"

#define MOST_AHEAD 32 // values that registers have room for

// Whether the statement reads what no statement of the kernel writes, at an index that is known before what is late.
static bool may_go(const struct nest *n, const struct nest_statement *s, const bool *is_late)
{
    return s->kind == NEST_LOAD && n->buffers.at[s->buffer].role == NEST_IN &&
           !nest_takes(s, is_late);
}

static void order_block(struct nest *n, struct nest_block *b, struct arena *scratch)
{
    uint32_t first = 0, ahead = 0;
    while (first < b->statements.count &&
           nest_statement_at(n, b->statements.at[first])->kind != NEST_PUT)
        first++;
    bool *is_late = arena_array(scratch, bool, n->values.count + 1);
    for (uint32_t i = first; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = nest_statement_at(n, id);
        if (ahead < MOST_AHEAD && may_go(n, s, is_late)) {
            memmove(&b->statements.at[first + 1], &b->statements.at[first],
                    (i - first) * sizeof id);
            b->statements.at[first++] = id;
            ahead++;
            continue;
        }
        for (uint32_t k = 0; k < s->n_results; k++)
            is_late[s->result + k] = true;
    }
}

void schedule_loads_first(struct nest_program *p, struct arena *scratch)
{
    bool *is_done = arena_array(scratch, bool, p->nests.count + 1);
    uint32_t depth = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        depth += nest_step_opens(t);
        depth -= t->kind == NEST_STEP_END;
        if (!depth || t->kind != NEST_STEP_KERNEL || is_done[t->nest])
            continue;
        struct nest *n = p->nests.at[t->nest];
        is_done[t->nest] = true;
        for (uint32_t k = 0; k < n->blocks.count; k++)
            order_block(n, &n->blocks.at[k], scratch);
    }
}
