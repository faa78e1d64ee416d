// SPDX-License-Identifier: Apache-2.0
// How a GPU runs a loop of steps.
#include "passes/cost.h"
#include "passes/nest.h"

static double block_work(const struct nest *n, uint32_t block)
{
    double work = 0;
    if (block >= n->blocks.count)
        return 0;
    for (uint32_t i = 0; i < n->blocks.at[block].statements.count; i++) {
        const struct nest_statement *s =
            &n->statements.at[n->blocks.at[block].statements.at[i]];
        double turns = 1;
        for (uint32_t k = 0; k < s->n_axes; k++)
            turns *= (double)n->axes.at[s->axes[k]].extent;
        double once = s->kind == NEST_OP ? cost_of_op((enum ir_op)s->op, s->dtype) : 1;
        work += turns * (once + block_work(n, s->body) + block_work(n, s->other));
    }
    return work;
}

static double step_work(const struct nest_program *p, const struct nest_step *t)
{
    if (t->kind == NEST_STEP_KERNEL)
        return block_work(p->nests.at[t->nest], 0);
    return t->kind == NEST_STEP_COPY ? (double)p->memories.at[t->memories[0]].count : 0;
}

enum nest_loop_class nest_loop_on_gpu(const struct nest_program *p, uint32_t i,
                                      const char **out_why)
{
    uint32_t obstacle = nest_loop_obstacle(p, i), end = nest_step_end(p, i);
    double most = 0;
    *out_why = "its phases are short";
    if (obstacle != NEST_NONE) {
        *out_why = p->steps.at[obstacle].reason;
        return NEST_LOOP_STEPS;
    }
    for (uint32_t k = i; k < end; k++) {
        double work = step_work(p, &p->steps.at[k]);
        most = work > most ? work : most;
        if (p->steps.at[k].kind == NEST_STEP_GEMM) {
            *out_why = "a product of the library";
            return NEST_LOOP_STEPS;
        }
    }
    if (most <= COST_OF_BLOCK)
        return NEST_LOOP_BLOCK;
    *out_why = "a phase is worth several blocks";
    return NEST_LOOP_GRID;
}
