// SPDX-License-Identifier: Apache-2.0
// The steps of nodes with effects: what they read is in memory.
#include "base/memory.h"
#include "base/status.h"
#include "ir/eval.h"
#include "schedule/control/control.h"
#include "schedule/internal.h"

static uint32_t *memories_of(struct schedule *s, const struct ir_node *n)
{
    uint32_t *memories = arena_array(s->program->arena, uint32_t, n->n_in + n->n_out + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        memories[i] = schedule_memory(s, ir_operand(s->g, n, i));
    for (uint32_t i = 0; i < n->n_out; i++)
        memories[n->n_in + i] = schedule_memory(s, n->out + i);
    return memories;
}

static void add_check(struct schedule *s, const struct ir_node *n, struct nest_step *step)
{
    ir_id holds = ir_operand(s->g, n, 0);
    int64_t params[1 + IR_MAX_RANK] = {ir_check_lanes(n->attrs)};
    step->kind = NEST_STEP_CHECK;
    step->place = schedule_place(s, n);
    step->text = ir_check_text(s->program->arena, n->attrs);
    int rank = ir_check_index(s->g->module, n->attrs, ir_type_of(s->g, holds), params + 1);
    step->n_params = 1 + (uint32_t)rank;
    step->params = arena_copy(s->program->arena, params, step->n_params * sizeof(int64_t));
}

static void add_callback(struct schedule *s, const struct ir_node *n, struct nest_step *step)
{
    struct arena *arena = s->program->arena;
    int64_t host = ir_attr_int(n->attrs, IR_KEY_host);
    VEC(int64_t) params = {0};
    vec_push(arena, &params, host);
    vec_push(arena, &params, n->n_in);
    vec_push(arena, &params, n->n_out);
    struct ir_host_call c = ir_host_call_of(n->attrs, (int)n->n_in, (int)n->n_out);
    vec_push(arena, &params, c.lanes);
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        ir_id v = i < n->n_in ? ir_operand(s->g, n, i) : n->out + i - n->n_in;
        vec_push(arena, &params, ir_dtype_of(s->g, v));
        vec_push(arena, &params, ir_rank_of(s->g, v));
        for (int axis = 0; axis < ir_rank_of(s->g, v); axis++)
            vec_push(arena, &params, ir_dims_of(s->g, v)[axis]);
    }
    vec_push(arena, &params, c.n_trips);
    vec_push(arena, &params, c.n_named);
    for (int i = 0; i < c.n_named; i++)
        vec_push(arena, &params, c.axes[i]);
    step->kind = NEST_STEP_CALLBACK;
    step->place = schedule_place(s, n);
    if (step->place && *s->g->module->hosts.at[host].where)
        step->place = s->g->module->hosts.at[host].where;
    step->text = arena_text(arena, s->g->module->hosts.at[host].name);
    step->n_params = params.count;
    step->params = params.at;
}

// As add_callback writes them down.
jot_status schedule_call_host(void *host, void *const *buffers, const int64_t *params)
{
    enum { FEW = 32 };
    int n_in = (int)params[1], n_out = (int)params[2], n = n_in + n_out;
    jot_callback_array few[FEW], *all = few;
    if (n > FEW)
        all = memory_allocate(sizeof *all * (size_t)n);
    if (!all)
        return status_out_of_memory();
    const int64_t *type = params + 4;
    for (int i = 0; i < n; i++) {
        all[i] = (jot_callback_array){.dtype = (jot_dtype)type[0],
                                      .rank = (int)type[1],
                                      .dims = type + 2,
                                      .data = buffers[i]};
        type += 2 + type[1];
    }
    struct ir_host_call call = {.lanes = (int)params[3],
                                .n_in = n_in - (int)type[0] - (int)type[1],
                                .n_trips = (int)type[0],
                                .n_named = (int)type[1],
                                .axes = type + 2,
                                .n_out = n_out};
    jot_status status = ir_host_call(host, &call, all);
    if (all != few)
        memory_release(all);
    return status;
}

void schedule_effect(struct schedule *s, uint32_t group)
{
    const struct ir_node *n = &s->g->nodes.at[s->groups.at[group].node];
    struct nest_step step = {.n_memories = n->n_in + n->n_out,
                             .memories = memories_of(s, n),
                             .reason = schedule_reason(s, "the host does an effect", n)};
    if (n->op == IR_check)
        add_check(s, n, &step);
    else
        add_callback(s, n, &step);
    schedule_step(s, step);
}
