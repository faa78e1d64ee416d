// SPDX-License-Identifier: Apache-2.0
// What is known in a block when every number that it loads is within bounds that its own
// comparisons name.
//
//     %4 = load i[n]                     assume 0 <= %4 <= 4095
//     %5 = lt %4, 0                      false
//     %7 = select %5, %6, %4             is %4
//     %8 = convert %7 : i64              is %4
//     %9 = le %8, 4095                   true: this is where the bound comes from
//     %13 = min %8, 4095                 is %4
//
// So one comparison says that all of a wrapped, clipped and tested index is what was loaded.
#include "codegen/inside.h"
#include "codegen/lower.h"

static int64_t most_of(jot_dtype d)
{
    int bits = dtype_get(d)->bits - dtype_is_signed(d);
    return bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

static bool read_number(const struct cg_lowering *l, nest_id value, int64_t *out)
{
    const struct nest_value *v = &l->nest->values.at[value];
    const struct nest_statement *s = cg_statement(l, v->statement);
    if (s->kind != NEST_CONST || !dtype_is_integer(v->dtype))
        return false;
    int unused = 64 - dtype_get(v->dtype)->bits;
    uint64_t bits = (uint64_t)s->bits[0] << unused;
    *out = dtype_is_signed(v->dtype) ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
    return dtype_is_signed(v->dtype) || *out >= 0; // of 64 bits without a sign: in their range
}

static const struct cg_fact unknown = {.kind = CG_UNKNOWN};

// Assumes that the loaded number is `most` or less.
static struct cg_fact assume(struct cg_inside *p, struct cg_fact x, int64_t most,
                             enum cg_fact_kind then)
{
    if (most < 0)
        return unknown;
    p->most[x.load] = most < p->most[x.load] ? most : p->most[x.load];
    return (struct cg_fact){then, x.load};
}

// An op on a loaded number and a constant.
static struct cg_fact with_number(struct cg_inside *p, enum ir_op op, struct cg_fact x,
                                  int64_t number)
{
    switch (op) {
    case IR_lt:
        return number <= 0 ? (struct cg_fact){.kind = CG_FALSE}
                           : assume(p, x, number - 1, CG_TRUE);
    case IR_le:
        return assume(p, x, number, CG_TRUE);
    case IR_ge:
        return number <= 0 ? (struct cg_fact){.kind = CG_TRUE} : unknown;
    case IR_max:
        return number <= 0 ? x : unknown;
    case IR_min:
        return assume(p, x, number, CG_LOADED);
    default:
        return unknown;
    }
}

static struct cg_fact of_op(const struct cg_lowering *l, struct cg_inside *p,
                            const struct nest_statement *s)
{
    struct cg_fact a = cg_inside_fact(l, p, s->in[0]);
    int64_t number;
    if (s->op == IR_select && (a.kind == CG_TRUE || a.kind == CG_FALSE))
        return cg_inside_fact(l, p, s->in[a.kind == CG_TRUE ? 1 : 2]);
    if (s->op == IR_and && a.kind == CG_TRUE)
        return cg_inside_fact(l, p, s->in[1]);
    if (a.kind != CG_LOADED)
        return unknown;
    if (s->op == IR_convert && dtype_is_integer(s->dtype))
        return assume(p, a, most_of(s->dtype), CG_LOADED);
    if (s->n_in == 2 && read_number(l, s->in[1], &number))
        return with_number(p, (enum ir_op)s->op, a, number);
    return unknown;
}

// A load that can be made before all else of the block: its index is no value.
static bool is_load_of(const struct cg_inside *p, nest_id id, const struct nest_statement *s)
{
    bool is_inside = false;
    for (uint32_t i = 0; i < p->body->statements.count; i++)
        is_inside |= p->body->statements.at[i] == id && !p->is_left_out[i];
    return is_inside && s->kind == NEST_LOAD && dtype_is_integer(s->dtype) &&
           s->guard == NEST_NONE && !nest_index_has_values(&s->index);
}

struct cg_fact cg_inside_fact(const struct cg_lowering *l, struct cg_inside *p, nest_id value)
{
    struct cg_fact *fact = &p->facts[value];
    nest_id id = l->nest->values.at[value].statement;
    const struct nest_statement *s = cg_statement(l, id);
    if (fact->kind != CG_UNSEEN)
        return *fact;
    *fact = unknown;
    if (is_load_of(p, id, s)) {
        p->most[value] = most_of(s->dtype);
        *fact = (struct cg_fact){CG_LOADED, value};
    } else if (s->kind == NEST_OP && s->n_results == 1) {
        *fact = of_op(l, p, s);
    }
    return *fact;
}

struct cg_inside cg_inside_make(struct cg_lowering *l, const struct nest_block *body,
                                const bool *is_left_out)
{
    uint32_t n = l->nest->values.count + 1;
    return (struct cg_inside){body, is_left_out, arena_array(l->arena, struct cg_fact, n),
                              arena_array(l->arena, int64_t, n)};
}
