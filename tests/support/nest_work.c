// SPDX-License-Identifier: Apache-2.0
#include "support/nest_work.h"

#include "ir/cost.h"

// ---- Of programs

static int64_t extent_of(const struct nest *n, const struct nest_statement *s)
{
    int64_t all = 1;
    for (uint32_t i = 0; i < s->n_axes; i++)
        all *= n->axes.at[s->axes[i]].extent;
    return all;
}

static int64_t block_work(const struct nest *n, uint32_t block)
{
    int64_t sum = 0;
    for (uint32_t i = 0; block != NEST_NONE && i < n->blocks.at[block].statements.count; i++) {
        const struct nest_statement *s =
            &n->statements.at[n->blocks.at[block].statements.at[i]];
        switch (s->kind) {
        case NEST_OP:
            sum += cost_of_op((enum ir_op)s->op, s->dtype);
            break;
        case NEST_PUT:
            sum += s->op != 0;
            break;
        case NEST_YIELD:
            sum += s->n_combines;
            break;
        case NEST_IF:
            sum += block_work(n, s->body) + block_work(n, s->other);
            break;
        case NEST_CONTRACT:
            sum += extent_of(n, s);
            break;
        case NEST_PAR:
        case NEST_MAP:
        case NEST_FOLD:
        case NEST_SCAN:
        case NEST_SEQ:
            sum += extent_of(n, s) * (block_work(n, s->body) + s->n_combines);
            break;
        default:
            break;
        }
    }
    return sum;
}

int64_t nest_program_work(const struct nest_program *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        const struct nest_gemm *g = &s->gemm;
        if (s->kind == NEST_STEP_KERNEL)
            sum += block_work(p->nests.at[s->nest], 0);
        else if (s->kind == NEST_STEP_GEMM)
            sum += g->m * g->n * g->k * g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3];
    }
    return sum;
}

int64_t nest_program_statements(const struct nest_program *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        for (uint32_t b = 0; b < p->nests.at[i]->blocks.count; b++)
            sum += p->nests.at[i]->blocks.at[b].statements.count;
    return sum;
}

// ---- Of graphs

int64_t graph_work(const struct ir_graph *g)
{
    int64_t sum = 0;
    ir_for_each_node (g, n) {
        int64_t count = ir_count(g->module, ir_type_of(g, n->out));
        switch (ir_op_class((enum ir_op)n->op)) {
        case IR_CLASS_MAP:
            sum += count * cost_of_op((enum ir_op)n->op, ir_dtype_of(g, n->out));
            break;
        case IR_CLASS_REDUCE:
        case IR_CLASS_ARG:
            sum += ir_count(g->module, ir_type_of(g, ir_operand(g, n, 0)));
            break;
        case IR_CLASS_CONTRACT: {
            int n_axes;
            const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &n_axes);
            for (int i = 0; i < n_axes; i++)
                count *= ir_dims_of(g, ir_operand(g, n, 0))[axes[i]];
            sum += count;
            break;
        }
        default:
            break;
        }
    }
    return sum;
}
