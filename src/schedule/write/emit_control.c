// SPDX-License-Identifier: Apache-2.0
// Loops with state and branches of a nest under construction.
#include "schedule/write/emit.h"

static nest_id last_statement(const struct emitter *e)
{
    return e->b.nest->statements.count - 1;
}

static const struct nest_statement *loop_at(const struct emitter *e)
{
    return &e->b.nest->statements.at[e->scopes.at[e->at].loop];
}

static void set_scopes(struct emitter *e, nest_id first, uint32_t n, scope_id scope)
{
    for (uint32_t i = 0; i < n; i++)
        emit_set_scope(e, first + i, scope);
}

// A scope for the body of the statement that was just opened, whose carries belong to it.
static nest_id body_scope(struct emitter *e, scope_id parent, nest_id carry, int n)
{
    nest_id id = last_statement(e);
    scope_id s = emit_scope(e, parent, id, e->b.nest->statements.at[id].body);
    set_scopes(e, carry, (uint32_t)n, s);
    return carry;
}

nest_id emit_seq_open(struct emitter *e, scope_id parent, nest_id axis, bool reverse, int n,
                      const nest_id *init)
{
    emit_enter(e, parent);
    nest_id carry = body_scope(e, parent, nest_seq_open(&e->b, axis, reverse, n, init), n);
    e->axis_scope.at[axis] = e->at;
    return carry;
}

nest_id emit_while_open(struct emitter *e, scope_id parent, int n, const nest_id *init)
{
    emit_enter(e, parent);
    return body_scope(e, parent, nest_while_open(&e->b, n, init), n);
}

// Goes from the first block of the statement to its second.
static void other_scope(struct emitter *e)
{
    nest_id loop = e->scopes.at[e->at].loop;
    scope_id parent = e->scopes.at[e->at].parent;
    e->scopes.at[e->at].is_open = false;
    emit_scope(e, parent, loop, e->b.nest->statements.at[loop].other);
}

void emit_while_do(struct emitter *e, nest_id test)
{
    emit_reopen(e);
    nest_open_other(&e->b, 1, &test);
    other_scope(e);
    set_scopes(e, loop_at(e)->first_carry, loop_at(e)->n_in, e->at);
}

void emit_if_open(struct emitter *e, scope_id parent, nest_id predicate)
{
    emit_enter(e, parent);
    nest_if_open(&e->b, predicate);
    body_scope(e, parent, NEST_NONE, 0);
}

void emit_if_else(struct emitter *e, int n, const nest_id *values)
{
    emit_reopen(e);
    nest_open_other(&e->b, n, values);
    other_scope(e);
}

nest_id emit_close_values(struct emitter *e, scope_id back, int n, const nest_id *values)
{
    emit_reopen(e);
    return emit_closed(e, back, nest_close_values(&e->b, n, values));
}
