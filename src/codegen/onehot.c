// SPDX-License-Identifier: Apache-2.0
// Loops over lanes whose points differ only where their index equals some number: rows of a
// Jacobian or a Hessian by basis vectors, identity matrices, one-hot rows.
//
//     par i, j { p = eq (index j), u; ...; put y[n*i + j] = f(p, ...) }
//
// Where p is false for all lanes of a vector, f is one number that is computed before the loop, and
// what is left of the body are its stores.
#include "codegen/onehot.h"
#include "codegen/emit.h"
#include "codegen/index.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#define MAX_MARKS 8

struct cg_onehot {
    int n_marks;
    nest_id marks[MAX_MARKS]; // the comparisons
    struct cg_value *plain;   // the body's values where no mark is true
};

// What a value is from lane to lane.
enum variation { SAME, BY_MARKS, BY_INDEX };

static const struct nest_statement *index_statement(const struct cg_lowering *l, uint32_t block,
                                                    nest_id value)
{
    nest_for_each (s, l->nest, block)
        if (s->kind == NEST_INDEX && s->result == value)
            return s;
    return NULL;
}

// The operand of a comparison that is an index which the lanes count; -1 when there is none.
static int counting_side(const struct cg_lowering *l, uint32_t block,
                         const struct nest_statement *s)
{
    if (s->kind != NEST_OP || s->op != IR_eq)
        return -1;
    for (int side = 0; side < 2; side++) {
        const struct nest_statement *x = index_statement(l, block, s->in[side]);
        int64_t factor = x ? nest_index_factor(&x->index, l->vector.axis) : 0;
        if ((factor == 1 || factor == -1) && !nest_index_has_values(&x->index))
            return side;
    }
    return -1;
}

static bool is_plain_put(const struct cg_lowering *l, const struct nest_statement *s)
{
    return s->kind == NEST_PUT && s->op == 0 && !nest_index_has_values(&s->index) &&
           nest_index_factor(&s->index, l->vector.axis) != 0;
}

// Finds the marks; false when lanes differ by anything else.
static bool find_marks(const struct cg_lowering *l, uint32_t block, struct cg_onehot *o)
{
    enum variation *varies = arena_array(l->arena, enum variation, l->nest->values.count + 1);
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        if (l->marks[id].is_hoisted || s->kind == NEST_CONST)
            continue;
        if (s->kind == NEST_INDEX) {
            varies[s->result] = BY_INDEX;
            continue;
        }
        int side = counting_side(l, block, s);
        if (side >= 0 && varies[s->in[1 - side]] == SAME && o->n_marks < MAX_MARKS) {
            o->marks[o->n_marks++] = id;
            varies[s->result] = BY_MARKS;
            continue;
        }
        if (s->kind != NEST_OP && !is_plain_put(l, s))
            return false;
        enum variation most = SAME;
        nest_for_uses (v, s)
            most = varies[v] > most ? varies[v] : most;
        if (most == BY_INDEX)
            return false;
        for (uint32_t k = 0; k < s->n_results; k++)
            varies[s->result + k] = most;
    }
    return o->n_marks > 0;
}

static bool is_mark(const struct cg_onehot *o, nest_id id)
{
    for (int k = 0; k < o->n_marks; k++)
        if (o->marks[k] == id)
            return true;
    return false;
}

struct cg_onehot *cg_onehot_make(struct cg_lowering *l, uint32_t block)
{
    struct cg_onehot *o = arena_new(l->arena, struct cg_onehot);
    if (l->vector.mask || l->tile.axis != NEST_NONE || !find_marks(l, block, o))
        return NULL;
    unsigned lanes = l->vector.lanes;
    l->vector.lanes = 1;
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        if (is_mark(o, id))
            l->values[s->result] = (struct cg_value){LLVMConstNull(l->module->i1), NULL};
        else if (!l->marks[id].is_hoisted && s->kind != NEST_PUT && s->kind != NEST_INDEX)
            cg_lower_statement(l, id);
    }
    l->vector.lanes = lanes;
    o->plain = arena_array(l->arena, struct cg_value, l->nest->values.count + 1);
    for (uint32_t i = 0; i < l->nest->values.count; i++)
        o->plain[i] = l->values[i];
    return o;
}

// Whether some lane of the vector at this index has the mark: the lane number, which wraps as the
// comparison does, is below the number of lanes.
static LLVMValueRef is_here(struct cg_lowering *l, uint32_t block, nest_id mark)
{
    const struct nest_statement *s = cg_statement(l, mark);
    int side = counting_side(l, block, s);
    const struct nest_statement *x = index_statement(l, block, s->in[side]);
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef type = cg_lane_type(l->module, x->dtype);
    LLVMValueRef first = cg_index_first(l, &x->index), u = l->values[s->in[1 - side]].re;
    if (dtype_get(x->dtype)->bytes < 8)
        first = LLVMBuildTrunc(b, first, type, "");
    LLVMValueRef lane = nest_index_factor(&x->index, l->vector.axis) == 1
                            ? LLVMBuildSub(b, u, first, "")
                            : LLVMBuildSub(b, first, u, "");
    return LLVMBuildICmp(b, LLVMIntULT, lane, LLVMConstInt(type, l->vector.lanes, 0), "");
}

void cg_onehot_lower(struct cg_lowering *l, uint32_t block, const struct cg_onehot *o)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef any = is_here(l, block, o->marks[0]);
    for (int k = 1; k < o->n_marks; k++)
        any = LLVMBuildOr(b, any, is_here(l, block, o->marks[k]), "");
    struct cg_branch some = cg_if_open(l, any);
    cg_lower_block(l, block);
    cg_else_open(l, &some);
    nest_for_each (s, l->nest, block) {
        for (uint32_t k = 0; k < s->n_results; k++)
            l->values[s->result + k] = o->plain[s->result + k];
        if (s->kind == NEST_PUT)
            cg_lower_statement(l, nest_id_of(l->nest, s));
    }
    cg_if_close(l, &some);
}
