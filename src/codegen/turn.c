// SPDX-License-Identifier: Apache-2.0
// Several vectors side by side.
//
//     seq t { a; b; }    becomes    loop { a0; b0; a1; b1; a2; b2; }
//
// The state of each vector stands in registers of its own.  What is the same for all lanes is
// computed in the first turn.
#include "codegen/turn.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/hooks.h"
#include "codegen/lower.h"

#include <string.h>

void cg_chunks_open(struct cg_lowering *l, unsigned n)
{
    size_t count = l->nest->values.count + 1;
    l->chunks.at = arena_array(l->arena, struct cg_chunk, n + 1);
    for (unsigned c = 0; c <= n; c++) {
        l->chunks.at[c].values = l->values;
        if (c == n)
            break; // the last keeps what was outside
        l->chunks.at[c].values = arena_array(l->arena, struct cg_value, count);
        memcpy(l->chunks.at[c].values, l->values, count * sizeof(struct cg_value));
    }
    l->chunks.count = n;
    l->chunks.now = 0;
    l->values = l->chunks.at[0].values;
    l->chunks.together = true;
}

void cg_chunks_close(struct cg_lowering *l)
{
    l->values = l->chunks.at[l->chunks.count].values;
    l->chunks.at = NULL;
    l->vector.mask = l->vector.tail = NULL;
    l->chunks.together = false;
}

static void enter(struct cg_lowering *l, unsigned c)
{
    const struct cg_chunk *k = &l->chunks.at[c];
    l->chunks.now = c;
    l->values = k->values;
    l->vector.mask = k->mask;
    l->axes[l->vector.axis] = k->index;
    if (k->slot)
        l->fold->slot = k->slot;
}

void cg_chunk_set(struct cg_lowering *l, unsigned c, LLVMValueRef index, LLVMValueRef mask,
                  LLVMValueRef slot)
{
    l->chunks.at[c].index = index;
    l->chunks.at[c].mask = mask;
    l->chunks.at[c].slot = slot;
    if (c == 0)
        enter(l, 0);
}

bool cg_turn_next(struct cg_lowering *l, struct cg_turn *t)
{
    if (t->next == 0)
        t->all = l->chunks.together;
    if (t->next == (t->all ? l->chunks.count : 1)) {
        if (t->all)
            enter(l, 0);
        l->chunks.together = t->all;
        return false;
    }
    if (t->all) {
        enter(l, t->next);
        l->chunks.together = false;
    }
    t->next++;
    return true;
}

static bool goes_together(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->kind == NEST_IF)
        return !l->vector.varies[s->in[0]] &&
               (nest_has_time(l->nest, s->body) || nest_has_time(l->nest, s->other));
    return s->kind == NEST_SEQ || s->kind == NEST_WHILE;
}

// What the first turn has made for all.
static bool is_made_once(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (!nest_is_scalar(s))
        return false;
    for (uint32_t i = 0; i < s->n_results; i++)
        if (l->vector.varies[s->result + i])
            return false;
    return true;
}

// A run of statements that the turn of each vector goes through.
static void lower_run(struct cg_lowering *l, const nest_id *statements, uint32_t n)
{
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t k = 0; k < n; k++) {
            const struct nest_statement *s = cg_statement(l, statements[k]);
            if (l->marks[statements[k]].is_hoisted)
                continue;
            if (l->chunks.now && is_made_once(l, s))
                for (uint32_t i = 0; i < s->n_results; i++)
                    l->values[s->result + i] = l->chunks.at[0].values[s->result + i];
            else
                cg_lower_statement(l, statements[k]);
        }
}

void cg_lower_list(struct cg_lowering *l, const nest_id *statements, uint32_t n)
{
    uint32_t none_before[2] = {0};
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i;
        uint32_t ranged =
            l->gpu ? l->module->hooks->ranged(l, statements, i, n, none_before) : 0;
        if (ranged) {
            i += ranged;
            continue;
        }
        while (l->chunks.together && end < n &&
               !goes_together(l, cg_statement(l, statements[end])))
            end++;
        if (end > i)
            lower_run(l, statements + i, end - i);
        else if (!l->marks[statements[end++]].is_hoisted)
            cg_lower_statement(l, statements[i]);
        i = end;
    }
}
