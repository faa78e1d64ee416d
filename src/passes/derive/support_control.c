// SPDX-License-Identifier: Apache-2.0
// Supports through calls, loops and branches (support.c).
//
//     c = scan {body} x, c0            becomes     c, p = scan {body'} x, c0, p0
//
// where p, bool, is the support of c.  What kind of support a carry has is found by a fixpoint: kinds
// only grow.
#include "ir/control.h"
#include "ir/shard.h"
#include "passes/derive/support.h"
#include "passes/rules/rules.h"

static struct ir_module *module_of(const struct support *s) { return s->b->module; }

static enum support_kind join(enum support_kind x, enum support_kind y)
{
    if (x == y)
        return x;
    return x == SUPPORT_SOME || y == SUPPORT_SOME ? SUPPORT_SOME : SUPPORT_SAME;
}

// What bodies take and give: kinds by operand and by result.  A bool for the whole of what has rows
// or lanes of its own is made one for each of its elements.
struct shared {
    enum support_kind *in, *out;
};

static enum support_kind for_rows(enum support_kind kind)
{
    return kind == SUPPORT_SAME ? SUPPORT_SOME : kind;
}

static struct shared kinds_of(struct support *s, const struct ir_node *n, const bool *in)
{
    struct arena *arena = module_of(s)->arena;
    struct shared k = {arena_array(arena, enum support_kind, n->n_in + 1),
                       arena_array(arena, enum support_kind, n->n_out + 1)};
    for (uint32_t i = 0; i < n->n_in; i++)
        if (in[i])
            k.in[i] = s->of[ir_operand(s->g, n, i)].kind;
    return k;
}

static ir_id *operands_of(struct support *s, const struct ir_node *n)
{
    ir_id *x = pass_no_values(module_of(s), 2 * n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        x[i] = support_clean(s, &s->of[ir_operand(s->g, n, i)]);
    return x;
}

// A support, as wide as the kind says, of a value of the type.
static ir_id as_kind(struct ir_builder *b, enum support_kind have, ir_id where,
                     enum support_kind want, struct ir_type t)
{
    if (!support_has_value(have))
        where = ir_scalar_int(b, JOT_BOOL, have == SUPPORT_ALL);
    return want == SUPPORT_SOME ? rule_broadcast_to(b, where, ir_type_with(t, JOT_BOOL))
                                : where;
}

// The bools of operands first .. end - 1 that have one, appended to x from n on.
static int add_supports(struct support *s, const struct ir_node *n, const struct shared *k,
                        uint32_t first, uint32_t end, ir_id *x, int count)
{
    for (uint32_t i = first; i < end; i++) {
        const struct supported *v = &s->of[ir_operand(s->g, n, i)];
        if (support_has_value(k->in[i]))
            x[count++] = as_kind(s->b, v->kind, v->where, k->in[i],
                                 ir_type_of(s->g, ir_operand(s->g, n, i)));
    }
    return count;
}

// Results y on, then the bools from `where` on of those that have one.
static ir_id take_results(struct support *s, const struct ir_node *n, const struct shared *k,
                          uint32_t first, uint32_t end, ir_id y)
{
    if (y == IR_NONE)
        return y;
    for (uint32_t i = first; i < end; i++)
        s->of[n->out + i] =
            (struct supported){y + i - first, y + i - first, k->out[i], IR_NONE};
    y += end - first;
    for (uint32_t i = first; i < end; i++)
        if (support_has_value(k->out[i]))
            s->of[n->out + i].where = y++;
    return y;
}

// -- Bodies -----------------------------------------------------------------------------------

// The groups of the operands of a node, which are followed by their supports.
struct groups {
    uint32_t n, ends[3];
};

// body with its parameters in groups, each followed by its supports; bool results of the kinds
// that are shared after those before `n_first`, the others' at the end.
static uint32_t arrange(struct ir_module *m, const struct support_function *body, uint32_t n_in,
                        uint32_t n_out, const struct groups *groups, const struct shared *k,
                        uint32_t n_first, bool gives)
{
    struct body w = body_of(m, body->f);
    uint32_t first = 0, next = n_in;
    for (uint32_t j = 0; j < groups->n; j++) {
        for (uint32_t i = first; i < groups->ends[j]; i++)
            body_take(&w, i);
        for (uint32_t i = first; i < groups->ends[j]; i++)
            if (support_has_value(k->in[i]))
                body_take(&w, next++);
        first = groups->ends[j];
    }
    body_run(&w);
    uint32_t where = n_out;
    for (uint32_t part = 0, i = 0; part < 2; part++) {
        uint32_t end = part ? n_out : n_first, begin = i;
        for (; i < end; i++)
            body_give(&w, i);
        for (uint32_t j = begin; j < end && gives; j++) {
            ir_id p = support_has_value(body->out[j]) ? w.out[where++] : IR_NONE;
            if (support_has_value(k->out[j]))
                ir_output(&w.b, as_kind(&w.b, body->out[j], p, k->out[j],
                                        ir_type_in(&w.b, w.out[j])));
        }
    }
    return ir_finish_function(&w.b);
}

static void call(struct support *s, const struct ir_node *n)
{
    const int64_t *functions;
    ir_bodies_of(n, &functions);
    uint32_t f = (uint32_t)functions[0];
    const bool *wanted = s->wanted + n->out;
    struct shared k = kinds_of(s, n, support_wanted(module_of(s), f, wanted));
    const struct support_function *body = support_apply(module_of(s), f, wanted, k.in);
    ir_id *x = operands_of(s, n);
    int count = add_supports(s, n, &k, 0, n->n_in, x, (int)n->n_in);
    enum ir_op op = n->op == IR_checkpoint ? IR_checkpoint : IR_call;
    k.out = body->out;
    take_results(s, n, &k, 0, n->n_out, ir_call(s->b, op, 1, &body->f, count, x));
}

// Operands of all groups, with their supports.
static int gather_operands(struct support *s, const struct ir_node *n,
                           const struct groups *groups, const struct shared *k, ir_id *to)
{
    ir_id *x = operands_of(s, n);
    int count = 0;
    for (uint32_t j = 0, first = 0; j < groups->n; first = groups->ends[j++]) {
        for (uint32_t i = first; i < groups->ends[j]; i++)
            to[count++] = x[i];
        count = add_supports(s, n, k, first, groups->ends[j], to, count);
    }
    return count;
}

// The body for kinds of carries that hold after it as well.
static const struct support_function *settle(struct support *s, uint32_t f, const bool *wanted,
                                             struct shared *k, uint32_t first, uint32_t n_carry,
                                             bool has_lanes)
{
    const struct support_function *body;
    bool grows;
    do {
        grows = false;
        body = support_apply(module_of(s), f, wanted, k->in);
        for (uint32_t i = 0; i < n_carry; i++) {
            enum support_kind kind = k->in[first + i];
            if (wanted[i])
                kind = join(kind, body->out[i]);
            kind = has_lanes ? for_rows(kind) : kind;
            grows = grows || kind != k->in[first + i];
            k->in[first + i] = k->out[i] = kind;
        }
    } while (grows);
    return body;
}

static void scan(struct support *s, const struct ir_node *n)
{
    struct ir_module *m = module_of(s);
    struct ir_scan l = ir_scan_of(n);
    uint32_t n_consts = (uint32_t)l.n_consts, n_carry = (uint32_t)l.n_carry;
    struct groups groups = {3, {n_consts, n_consts + n_carry, n->n_in}};
    bool *out = arena_copy(m->arena, s->wanted + n->out, n->n_out * sizeof *out);
    bool *in = body_mask(m, n->n_in);
    support_want_scan(s->g, n, out, in);
    struct shared k = kinds_of(s, n, in);
    for (uint32_t i = n_consts + n_carry; i < n->n_in; i++)
        k.in[i] = for_rows(k.in[i]);
    const struct support_function *body = settle(s, l.body, out, &k, n_consts, n_carry, false);
    for (uint32_t i = n_carry; i < n->n_out; i++)
        k.out[i] = for_rows(body->out[i]);
    l.body = arrange(m, body, n->n_in, n->n_out, &groups, &k, n_carry, true);
    ir_id *x = pass_no_values(m, 2 * n->n_in + 1);
    int count = gather_operands(s, n, &groups, &k, x);
    for (uint32_t i = 0; i < n_consts; i++)
        l.n_consts += support_has_value(k.in[i]);
    for (uint32_t i = 0; i < n_carry; i++)
        l.n_carry += support_has_value(k.in[n_consts + i]);
    ir_id y = ir_scan(s->b, &l, count, x);
    y = take_results(s, n, &k, 0, n_carry, y);
    take_results(s, n, &k, n_carry, n->n_out, y);
}

static void loop(struct support *s, const struct ir_node *n)
{
    struct ir_module *m = module_of(s);
    struct ir_while l = ir_while_of(n);
    uint32_t n_consts = (uint32_t)l.n_consts, n_carry = n->n_out;
    struct groups groups = {2, {n_consts, n->n_in}};
    bool *out = arena_copy(m->arena, s->wanted + n->out, n->n_out * sizeof *out);
    bool *in = body_mask(m, n->n_in), *none = body_mask(m, 1);
    support_want_while(s->g, n, out, in);
    struct shared k = kinds_of(s, n, in);
    const struct support_function *body =
        settle(s, l.body, out, &k, n_consts, n_carry, l.batched > 0);
    const struct support_function *test = support_apply(m, l.test, none, k.in);
    l.body = arrange(m, body, n->n_in, n->n_out, &groups, &k, n_carry, true);
    l.test = arrange(m, test, n->n_in, 1, &groups, &k, 1, false);
    ir_id *x = pass_no_values(m, 2 * n->n_in + 1);
    int count = gather_operands(s, n, &groups, &k, x);
    for (uint32_t i = 0; i < n_consts; i++)
        l.n_consts += support_has_value(k.in[i]);
    take_results(s, n, &k, 0, n_carry, ir_while(s->b, &l, count, x));
}

static void cond(struct support *s, const struct ir_node *n)
{
    struct ir_module *m = module_of(s);
    const int64_t *functions;
    int n_branches = ir_bodies_of(n, &functions);
    const bool *wanted = s->wanted + n->out;
    bool *in = body_mask(m, n->n_in);
    for (int j = 0; j < n_branches; j++) {
        const bool *one = support_wanted(m, (uint32_t)functions[j], wanted);
        for (uint32_t i = 1; i < n->n_in; i++)
            in[i] = in[i] || one[i - 1];
    }
    struct shared k = kinds_of(s, n, in), inside = {k.in + 1, k.out};
    const struct support_function **branches =
        arena_array(m->arena, const struct support_function *, (size_t)n_branches + 1);
    uint32_t *made = arena_array(m->arena, uint32_t, (size_t)n_branches + 1);
    for (int j = 0; j < n_branches; j++) {
        branches[j] = support_apply(m, (uint32_t)functions[j], wanted, inside.in);
        for (uint32_t i = 0; i < n->n_out; i++)
            k.out[i] = j ? join(k.out[i], branches[j]->out[i]) : branches[j]->out[i];
    }
    struct groups groups = {1, {n->n_in - 1}};
    for (int j = 0; j < n_branches; j++)
        made[j] =
            arrange(m, branches[j], n->n_in - 1, n->n_out, &groups, &inside, n->n_out, true);
    ir_id *x = operands_of(s, n);
    int count = add_supports(s, n, &k, 1, n->n_in, x, (int)n->n_in);
    take_results(s, n, &k, 0, n->n_out, ir_cond(s->b, n_branches, made, count, x));
}

// Supports are split as what they are of.
static int add_splits(const enum support_kind *kinds, uint32_t n, const struct ir_split *from,
                      struct ir_split *to, int count)
{
    memcpy(to + count, from, n * sizeof *to);
    count += (int)n;
    for (uint32_t i = 0; i < n; i++)
        if (support_has_value(kinds[i]))
            to[count++] = from[i];
    return count;
}

static void shard(struct support *s, const struct ir_node *n)
{
    struct ir_module *m = module_of(s);
    struct ir_shard l = ir_shard_of(m, n);
    const bool *wanted = s->wanted + n->out;
    struct shared k = kinds_of(s, n, support_wanted(m, l.body, wanted));
    for (uint32_t i = 0; i < n->n_in; i++)
        k.in[i] = for_rows(k.in[i]);
    const struct support_function *body = support_apply(m, l.body, wanted, k.in);
    for (uint32_t i = 0; i < n->n_out; i++)
        k.out[i] = for_rows(body->out[i]);
    struct groups groups = {1, {n->n_in}};
    ir_id *x = operands_of(s, n);
    int count = add_supports(s, n, &k, 0, n->n_in, x, (int)n->n_in);
    struct ir_split *splits = arena_array(m->arena, struct ir_split, 2 * (n->n_in + n->n_out));
    l.body = arrange(m, body, n->n_in, n->n_out, &groups, &k, n->n_out, true);
    l.n_splits = add_splits(k.in, n->n_in, l.split, splits, 0);
    l.n_splits = add_splits(k.out, n->n_out, l.split + n->n_in, splits, l.n_splits);
    l.split = splits;
    take_results(s, n, &k, 0, n->n_out, ir_shard_map(s->b, &l, count, x));
}

void support_bodies(struct support *s, const struct ir_node *n)
{
    if (n->op == IR_scan)
        scan(s, n);
    else if (n->op == IR_while)
        loop(s, n);
    else if (n->op == IR_cond)
        cond(s, n);
    else if (n->op == IR_shard_map)
        shard(s, n);
    else
        call(s, n);
    if (s->b->status != JOT_OK)
        return;
}
