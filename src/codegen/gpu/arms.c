// SPDX-License-Identifier: Apache-2.0
// Arms of a select: operations that nothing else takes.  An arm with a function that has a branch of
// its own cannot be moved behind another branch by LLVM: here it is skipped where no thread of the
// warp chooses it.
#include "codegen/gpu/arms.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/gpu/common.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#include "ir/cost.h"

#include <string.h>

#define LEAST_WORK 12 // operations of an arm that is worth a branch

struct gpu_arms {
    const struct nest *nest;
    struct gpu_arm *of_statement;   // by statement: the arm that it is in
    int *skipped;                   // by statement: the side of a select that is skipped, or 0
    const struct nest_block **home; // by statement
    bool is_inside;                 // an arm is being lowered
};

static nest_id maker_of(const struct cg_lowering *l, nest_id value)
{
    return l->nest->values.at[value].statement;
}

// ---- What is in arms

static void count_value_uses(const struct cg_lowering *l, uint32_t *uses)
{
    nest_for_all (s, l->nest)
        nest_for_uses (v, s)
            uses[v]++;
}

static bool may_be_in_arm(const struct cg_lowering *l, const struct gpu_arms *a, nest_id id,
                          nest_id select)
{
    const struct nest_statement *s = cg_statement(l, id);
    return s->kind == NEST_OP && s->n_results == 1 && a->home[id] == a->home[select] &&
           a->of_statement[id].select == NEST_NONE &&
           (!l->gpu->time.common || gpu_common_varies(l->gpu->time.common, s->result));
}

// The statements from the end of an arm back, as far as all that takes them is in it.
static uint32_t find_arm(struct cg_lowering *l, struct gpu_arms *a, const uint32_t *uses,
                         uint32_t *taken, nest_id select, int side, nest_id *arm)
{
    nest_id value = cg_statement(l, select)->in[side];
    uint32_t n = 0;
    if (uses[value] != 1 || !may_be_in_arm(l, a, maker_of(l, value), select))
        return 0;
    arm[n++] = maker_of(l, value);
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, arm[i]);
        a->of_statement[arm[i]] = (struct gpu_arm){select, side};
        for (uint32_t k = 0; k < s->n_in; k++)
            if (++taken[s->in[k]] == uses[s->in[k]] &&
                may_be_in_arm(l, a, maker_of(l, s->in[k]), select))
                arm[n++] = maker_of(l, s->in[k]);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < cg_statement(l, arm[i])->n_in; k++)
            taken[cg_statement(l, arm[i])->in[k]] = 0;
    return n;
}

static bool is_worth_it(const struct cg_lowering *l, const struct gpu_arms *a,
                        const nest_id *arm, uint32_t n)
{
    bool has_branch = false;
    int work = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, arm[i]);
        if (a->skipped[arm[i]]) // whose own arm would be lost
            return false;
        work += cost_of_op((enum ir_op)s->op, s->dtype);
        has_branch |= s->op == IR_sqrt && s->dtype == JOT_F32;
    }
    return has_branch && work >= LEAST_WORK;
}

static struct gpu_arms *find_all(struct cg_lowering *l)
{
    uint32_t n = l->nest->statements.count, n_values = l->nest->values.count;
    struct gpu_arms *a = arena_array(l->arena, struct gpu_arms, 1);
    *a = (struct gpu_arms){.nest = l->nest};
    a->of_statement = arena_array(l->arena, struct gpu_arm, n + 1);
    a->skipped = arena_array(l->arena, int, n + 1);
    a->home = arena_array(l->arena, const struct nest_block *, n + 1);
    uint32_t *uses = arena_array(l->arena, uint32_t, n_values + 1);
    uint32_t *taken = arena_array(l->arena, uint32_t, n_values + 1);
    nest_id *arm = arena_array(l->arena, nest_id, n + 1);
    for (uint32_t i = 0; i < n; i++)
        a->of_statement[i].select = NEST_NONE;
    for (uint32_t i = 0; i < l->nest->blocks.count; i++) {
        const struct nest_block *b = &l->nest->blocks.at[i];
        for (uint32_t k = 0; k < b->statements.count; k++)
            a->home[b->statements.at[k]] = b;
    }
    count_value_uses(l, uses);
    for (nest_id i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, i);
        if (s->kind != NEST_OP || s->op != IR_select || s->dtype != JOT_F32 || !a->home[i])
            continue;
        for (int side = 1; side <= 2; side++) {
            uint32_t count = find_arm(l, a, uses, taken, i, side, arm);
            if (!a->skipped[i] && is_worth_it(l, a, arm, count))
                a->skipped[i] = side;
        }
    }
    return a;
}

static struct gpu_arms *arms_of(struct cg_lowering *l)
{
    if (!l->gpu->arithmetic.arms || l->gpu->arithmetic.arms->nest != l->nest)
        l->gpu->arithmetic.arms = find_all(l);
    return l->gpu->arithmetic.arms;
}

// ---- Arms that are skipped

static LLVMValueRef value_for_lane(struct cg_lowering *l, LLVMValueRef v, unsigned k)
{
    return v && cg_lanes_of(v) > 1 ? cg_extract(&l->m, v, k, 1) : v;
}

// The arm for lane k, of the values that stood before.
static LLVMValueRef lower_arm(struct cg_lowering *l, const struct gpu_arms *a, nest_id id,
                              unsigned k, const struct cg_value *before)
{
    const struct nest_block *home = a->home[id];
    memcpy(l->values, before, l->nest->values.count * sizeof *before);
    for (uint32_t i = 0; i < home->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, home->statements.at[i]);
        struct gpu_arm at = a->of_statement[home->statements.at[i]];
        if (at.select != id || at.side != a->skipped[id])
            continue;
        for (uint32_t j = 0; j < s->n_in; j++)
            l->values[s->in[j]].re = value_for_lane(l, l->values[s->in[j]].re, k);
        cg_lower_statement(l, home->statements.at[i]);
    }
    return l->values[cg_statement(l, id)->in[a->skipped[id]]].re;
}

// p ? x : y, one of which is lowered here, for the threads that choose it: a branch for each lane,
// for few warps have a thread that does.
static void lower_select(struct cg_lowering *l, struct gpu_arms *a, nest_id id)
{
    int side = a->skipped[id];
    const struct nest_statement *s = cg_statement(l, id);
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef p = l->values[s->in[0]].re, quick = l->values[s->in[3 - side]].re;
    unsigned lanes = cg_is_wide(l, s->result) ? l->vector.lanes : 1, outside = l->vector.lanes;
    uint32_t n = l->nest->values.count;
    struct cg_value *before = arena_array(l->arena, struct cg_value, n + 1);
    memcpy(before, l->values, n * sizeof *before);
    LLVMValueRef all = LLVMGetPoison(cg_with_lanes(l->module->f32, lanes));
    a->is_inside = true;
    l->vector.lanes = 1;
    for (unsigned k = 0; k < lanes; k++) {
        LLVMValueRef chosen = value_for_lane(l, p, k), own = value_for_lane(l, quick, k);
        LLVMValueRef wants = side == 1 ? chosen : LLVMBuildNot(b, chosen, "");
        LLVMBasicBlockRef from, warm = cg_cold_open(&l->m, wants, &from);
        own = cg_cold_close(&l->m, warm, from, own, lower_arm(l, a, id, k, before));
        all = lanes > 1 ? LLVMBuildInsertElement(b, all, own, gpu_i32(l, k), "") : own;
    }
    l->vector.lanes = outside;
    a->is_inside = false;
    memcpy(l->values, before, n * sizeof *before);
    l->values[s->result] = (struct cg_value){all, NULL};
}

bool gpu_arm_statement(struct cg_lowering *l, nest_id id)
{
    if (l->m.ranges)
        return false;
    struct gpu_arms *a = arms_of(l);
    if (a->is_inside)
        return false;
    if (a->skipped[id]) {
        lower_select(l, a, id);
        return true;
    }
    struct gpu_arm at = a->of_statement[id];
    return at.select != NEST_NONE && a->skipped[at.select] == at.side;
}

struct gpu_arm gpu_arm_of(struct cg_lowering *l, nest_id id)
{
    return arms_of(l)->of_statement[id];
}
