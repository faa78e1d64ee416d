// SPDX-License-Identifier: Apache-2.0
//
// One shape: attention (docs/nests.md).
#include "schedule/kernels/attention_internal.h"

struct finder {
    const struct nest *nest;
    const struct nest_block *body; // of the loop
    uint32_t next;                 // its statement to look at
};

nest_id attention_without_convert(const struct nest *n, nest_id value)
{
    const struct nest_statement *s = nest_maker_of(n, value);
    return nest_is_op(s, IR_convert) ? s->in[0] : value;
}

static const struct nest_statement *last_of(const struct nest *n, uint32_t block)
{
    const struct nest_block *b = &n->blocks.at[block];
    return b->statements.count ? nest_statement_at(n, b->statements.at[b->statements.count - 1])
                               : NULL;
}

// The next loop of the kind over one axis in the body; before it stand scalars only.
static const struct nest_statement *next_loop(struct finder *f, enum nest_kind kind)
{
    while (f->next < f->body->statements.count) {
        const struct nest_statement *s =
            nest_statement_at(f->nest, f->body->statements.at[f->next++]);
        if (s->kind == kind && s->n_axes == 1)
            return s;
        if (!nest_is_scalar(s))
            return NULL;
    }
    return NULL;
}

static bool is_fold_of(const struct nest_statement *s, enum ir_op op)
{
    return s && s->kind == NEST_FOLD && s->n_axes == 1 && s->n_combines == 1 &&
           s->combines[0].op == op;
}

// The put of a local that loads read at the index of the put, or NULL.
const struct nest_statement *attention_put_of(const struct nest *n, nest_id buffer)
{
    const struct nest_statement *put = NULL;
    nest_for_all (s, n) {
        if (s->kind != NEST_PUT || s->buffer != buffer)
            continue;
        if (put)
            return NULL;
        put = s;
    }
    return put;
}

struct attention_named attention_without_rows(const struct nest *n, nest_id score,
                                              struct attention_named v)
{
    for (int depth = 0; depth < 8; depth++) {
        const struct nest_statement *load = nest_maker_of(n, v.value);
        if (load->kind != NEST_LOAD || load->buffer == score || load->guard != NEST_NONE ||
            n->buffers.at[load->buffer].role != NEST_LOCAL ||
            !nest_index_is_axis(&load->index, v.axis))
            return v;
        const struct nest_statement *put = attention_put_of(n, load->buffer);
        if (!put || put->op || put->guard != NEST_NONE || put->index.count != 1 ||
            put->index.terms[0].is_value ||
            !nest_index_is_axis(&put->index, put->index.terms[0].id))
            return v;
        v = (struct attention_named){put->in[0], put->index.terms[0].id};
    }
    return v;
}

static bool is_same_index(const struct nest_index *a, nest_id of_a, const struct nest_index *b,
                          nest_id of_b)
{
    if (a->constant != b->constant || a->count != b->count ||
        nest_index_factor(a, of_a) != nest_index_factor(b, of_b))
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->terms[i].is_value ||
            (a->terms[i].id != of_a &&
             nest_index_factor(b, a->terms[i].id) != a->terms[i].factor))
            return false;
    return true;
}

static bool same_value(const struct nest *n, nest_id score, struct attention_named a,
                       struct attention_named b)
{
    a = attention_without_rows(n, score, a);
    b = attention_without_rows(n, score, b);
    if (a.value == b.value)
        return a.axis == b.axis || nest_maker_of(n, a.value)->kind != NEST_LOAD;
    const struct nest_statement *x = nest_maker_of(n, a.value), *y = nest_maker_of(n, b.value);
    if (x->kind != y->kind || x->op != y->op || x->dtype != y->dtype || x->n_in != y->n_in ||
        x->n_results != 1 || x->bits[0] != y->bits[0] || x->bits[1] != y->bits[1])
        return false;
    if (x->kind == NEST_LOAD || x->kind == NEST_INDEX)
        return (x->kind == NEST_INDEX || x->buffer == y->buffer) && x->guard == NEST_NONE &&
               y->guard == NEST_NONE && is_same_index(&x->index, a.axis, &y->index, b.axis);
    for (uint32_t i = 0; x->kind == NEST_OP && i < x->n_in; i++)
        if (!same_value(n, score, (struct attention_named){x->in[i], a.axis},
                        (struct attention_named){y->in[i], b.axis}))
            return false;
    return x->kind == NEST_OP || x->kind == NEST_CONST;
}

// ---- The parts

// fold { a[...] * b[...] }, from half types that are contiguous along an axis.
bool attention_find_product(const struct nest *n, const struct nest_statement *fold,
                            const struct nest_statement *loads[2])
{
    if (!is_fold_of(fold, IR_fma) || fold->combines[0].dtype != JOT_F32)
        return false;
    for (int i = 0; i < 2; i++) {
        loads[i] = nest_maker_of(n, attention_without_convert(n, fold->combines[0].value[i]));
        if (loads[i]->kind != NEST_LOAD || loads[i]->guard != NEST_NONE ||
            !dtype_is_half(loads[i]->dtype))
            return false;
        if (nest_index_has_values(&loads[i]->index))
            return false;
    }
    return loads[0]->dtype == loads[1]->dtype;
}

static bool find_scores(struct finder *f, struct attention *a)
{
    const struct nest_statement *map = next_loop(f, NEST_MAP), *loads[2];
    const struct nest_block *b = map ? &f->nest->blocks.at[map->body] : NULL;
    if (!b || b->statements.count != 2)
        return false;
    const struct nest_statement *fold = nest_statement_at(f->nest, b->statements.at[0]),
                                *put = nest_statement_at(f->nest, b->statements.at[1]);
    if (!attention_find_product(f->nest, fold, loads) || put->kind != NEST_PUT || put->op ||
        put->in[0] != fold->result || !nest_index_is_axis(&put->index, map->axes[0]))
        return false;
    a->q = loads[0];
    a->k = loads[1];
    a->score = put->buffer;
    a->depth = fold->axes[0];
    a->key_of_k = map->axes[0];
    return f->nest->buffers.at[a->score].role == NEST_LOCAL &&
           nest_index_factor(&a->q->index, a->depth) == 1 &&
           nest_index_factor(&a->k->index, a->depth) == 1 &&
           nest_index_factor(&a->q->index, a->key_of_k) == 0 &&
           nest_index_factor(&a->k->index, a->query) == 0;
}

// Only scalars, puts of rows, and the yield; no index of a load is a value.
bool attention_is_straight(const struct nest *n, const struct nest_statement *loop)
{
    nest_for_each (s, n, loop->body) {
        if (!nest_is_scalar(s) && s->kind != NEST_YIELD &&
            (s->kind != NEST_PUT || s->op || n->buffers.at[s->buffer].role != NEST_LOCAL))
            return false;
        if (s->kind == NEST_LOAD && nest_index_has_values(&s->index))
            return false;
    }
    return true;
}

// Of locals the fold of the largest reads the scores alone, at their index.
bool attention_reads_scores_only(const struct nest *n, const struct attention *a)
{
    nest_for_each (s, n, a->largest->body)
        if (s->kind == NEST_LOAD && n->buffers.at[s->buffer].role == NEST_LOCAL &&
            (s->buffer != a->score || s->guard != NEST_NONE ||
             !nest_index_is_axis(&s->index, a->key)))
            return false;
    return true;
}

// exp(f - largest) along the axis.
bool attention_is_term(const struct nest *n, const struct attention *a,
                       struct attention_named v)
{
    v = attention_without_rows(n, a->score, v);
    const struct nest_statement *e = nest_maker_of(n, v.value);
    if (!nest_is_op(e, IR_exp))
        return false;
    struct attention_named x =
        attention_without_rows(n, a->score, (struct attention_named){e->in[0], v.axis});
    const struct nest_statement *sub = nest_maker_of(n, x.value);
    return nest_is_op(sub, IR_sub) && sub->in[1] == a->largest->result &&
           same_value(n, a->score, (struct attention_named){sub->in[0], x.axis},
                      (struct attention_named){a->value, a->key});
}

static bool find_softmax(struct finder *f, struct attention *a, nest_id *out_weight)
{
    const struct nest *n = f->nest;
    a->largest = next_loop(f, NEST_FOLD);
    const struct nest_statement *sum = next_loop(f, NEST_FOLD), *map = next_loop(f, NEST_MAP);
    if (!is_fold_of(a->largest, IR_reduce_max) || !is_fold_of(sum, IR_reduce_sum) || !map ||
        a->largest->combines[0].dtype != JOT_F32 || sum->combines[0].dtype != JOT_F32 ||
        !attention_is_straight(n, a->largest) || !attention_is_straight(n, sum) ||
        !attention_is_straight(n, map))
        return false;
    a->key = a->largest->axes[0];
    a->value = a->largest->combines[0].value[0];
    const struct nest_statement *put = last_of(n, map->body);
    if (!attention_reads_scores_only(n, a) || put->kind != NEST_PUT ||
        !nest_index_is_axis(&put->index, map->axes[0]))
        return false;
    *out_weight = put->buffer;
    const struct nest_statement *div =
        nest_maker_of(n, attention_without_convert(n, put->in[0]));
    return nest_is_op(div, IR_div) && div->in[1] == sum->result &&
           attention_is_term(
               n, a, (struct attention_named){sum->combines[0].value[0], sum->axes[0]}) &&
           attention_is_term(n, a, (struct attention_named){div->in[0], map->axes[0]});
}

static bool find_result(struct finder *f, struct attention *a, nest_id weight)
{
    const struct nest *n = f->nest;
    const struct nest_statement *map = next_loop(f, NEST_MAP), *loads[2];
    if (!map || f->next != f->body->statements.count)
        return false;
    a->put = last_of(n, map->body);
    if (a->put->kind != NEST_PUT || a->put->op || a->put->guard != NEST_NONE)
        return false;
    const struct nest_statement *fold =
        nest_maker_of(n, attention_without_convert(n, a->put->in[0]));
    if (!attention_find_product(n, fold, loads) || loads[0]->buffer != weight ||
        !nest_index_is_axis(&loads[0]->index, fold->axes[0]))
        return false;
    a->v = loads[1];
    a->key_of_v = fold->axes[0];
    a->column = map->axes[0];
    return nest_index_factor(&a->v->index, a->column) == 1 &&
           nest_index_factor(&a->v->index, a->query) == 0 &&
           nest_index_factor(&a->put->index, a->column) == 1;
}

// Rows begin at multiples of 16 bytes, as long as the memory does.
bool attention_is_even(const struct nest *n, const struct nest_statement *s, nest_id along)
{
    if (s->index.constant % 8 || n->axes.at[along].extent % 8 ||
        n->axes.at[along].extent > ATTENTION_DEPTH)
        return false;
    for (uint32_t i = 0; i < s->index.count; i++)
        if (s->index.terms[i].id != along && s->index.terms[i].factor % 8)
            return false;
    return true;
}

bool attention_find(const struct nest *n, struct attention *out)
{
    const struct nest_statement *loop = last_of(n, 0);
    nest_id weight;
    if (!loop || loop->kind != NEST_PAR)
        return false;
    struct finder f = {.nest = n, .body = &n->blocks.at[loop->body]};
    *out = (struct attention){.loop = loop, .query = loop->axes[loop->n_axes - 1]};
    return find_scores(&f, out) && find_softmax(&f, out, &weight) &&
           find_result(&f, out, weight) && out->q->dtype == out->v->dtype &&
           n->buffers.at[out->put->buffer].dtype == out->q->dtype &&
           attention_is_even(n, out->q, out->depth) &&
           attention_is_even(n, out->k, out->depth) &&
           attention_is_even(n, out->v, out->column) &&
           attention_is_even(n, out->put, out->column);
}
