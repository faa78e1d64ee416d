// SPDX-License-Identifier: Apache-2.0
// The gradient of attention, found in a nest.
//
// One shape: attention (docs/nests.md).
#include "schedule/kernels/attention_internal.h"

#include <string.h>

static bool is_map(const struct nest_statement *s)
{
    return s->kind == NEST_MAP && s->n_axes == 1;
}

static bool is_local(const struct nest *n, nest_id buffer)
{
    return n->buffers.at[buffer].role == NEST_LOCAL;
}

// ---- Products

// map across { fold along { x y } put }
struct product {
    const struct nest_statement *loads[2], *put;
    nest_id across, along;
};

static bool find_matrix(const struct nest *n, const struct nest_statement *map,
                        struct product *out)
{
    const struct nest_block *b = is_map(map) ? &n->blocks.at[map->body] : NULL;
    if (!b || b->statements.count < 2 || b->statements.count > 3)
        return false;
    const struct nest_statement *fold = nest_statement_at(n, b->statements.at[0]);
    out->put = nest_statement_at(n, b->statements.at[b->statements.count - 1]);
    if (fold->kind != NEST_FOLD || !attention_find_product(n, fold, out->loads) ||
        out->put->kind != NEST_PUT || out->put->op || out->put->guard != NEST_NONE ||
        attention_without_convert(n, out->put->in[0]) != fold->result)
        return false;
    out->across = map->axes[0];
    out->along = fold->axes[0];
    return true;
}

static bool is_along(const struct nest_statement *s, nest_id axis)
{
    return nest_index_factor(&s->index, axis) == 1;
}

static bool has_axis(const struct nest_statement *s, nest_id axis)
{
    return nest_index_factor(&s->index, axis) != 0;
}

// The local has at [row, column] what is read or put there, columns one by one.
static bool is_at(const struct nest_statement *s, nest_id row, nest_id column, int64_t columns)
{
    return !s->index.constant && s->index.count == 2 &&
           nest_index_factor(&s->index, column) == 1 &&
           nest_index_factor(&s->index, row) == columns;
}

// The same numbers of a matrix, whose row is `row` and whose columns are `along` in each.
static bool same_matrix(const struct nest_statement *a, nest_id row_a, nest_id along_a,
                        const struct nest_statement *b, nest_id row_b, nest_id along_b)
{
    if (a->buffer != b->buffer || a->index.constant != b->index.constant ||
        a->index.count != b->index.count ||
        nest_index_factor(&a->index, row_a) != nest_index_factor(&b->index, row_b) ||
        !is_along(a, along_a) || !is_along(b, along_b))
        return false;
    for (uint32_t i = 0; i < a->index.count; i++) {
        nest_id axis = a->index.terms[i].id;
        if (axis != row_a && axis != along_a &&
            nest_index_factor(&b->index, axis) != a->index.terms[i].factor)
            return false;
    }
    return true;
}

// ---- The rows' numbers

// A product of powers of what the rows have.
struct factors {
    int products, terms, sums; // of the product local, exp(f - largest), the sum
    bool is_negative;
    const struct nest_statement *difference;
    struct attention_named at;         // it
    const struct nest_statement *fold; // a sum over the row
};

struct finder {
    const struct nest *n;
    struct attention_gradient *g;
    const struct nest_statement *sum, *weight; // the put of weights
    nest_id weight_key;                        // its axis of keys
    nest_id product;                           // value: what its row is put
};

static bool is_one(const struct nest *n, nest_id value)
{
    const struct nest_statement *s = nest_maker_of(n, attention_without_convert(n, value));
    float one = 1;
    if (s->kind != NEST_CONST)
        return false;
    return s->dtype == JOT_F32    ? !memcmp(s->bits, &one, sizeof one)
           : s->dtype == JOT_BF16 ? (s->bits[0] & 0xffff) == 0x3f80
                                  : s->dtype == JOT_F16 && (s->bits[0] & 0xffff) == 0x3c00;
}

static bool is_fold_of(const struct nest_statement *s, enum ir_op op)
{
    return s->kind == NEST_FOLD && s->n_axes == 1 && s->n_combines == 1 &&
           s->combines[0].op == op && s->combines[0].dtype == JOT_F32;
}

// What the value was made of, through rows, those of weights as well, and roundings to a half type.
static struct attention_named origin(const struct finder *f, struct attention_named v)
{
    const struct nest *n = f->n;
    const struct attention *a = &f->g->a;
    for (int depth = 0; depth < 8; depth++) {
        v = attention_without_rows(n, a->score, v);
        const struct nest_statement *s = nest_maker_of(n, v.value);
        if (nest_is_op(s, IR_convert) && dtype_is_float(s->dtype) &&
            dtype_is_float(n->values.at[s->in[0]].dtype))
            v.value = s->in[0];
        else if (s->kind == NEST_LOAD && s->buffer == f->weight->buffer &&
                 s->guard == NEST_NONE &&
                 is_at(s, a->query, v.axis, n->axes.at[a->key_of_k].extent))
            v = (struct attention_named){f->weight->in[0], f->weight_key};
        else
            break;
    }
    return v;
}

// Multiplies or, where by is -1, divides by the value.
static bool collect(const struct finder *f, struct attention_named v, int by,
                    struct factors *out, int depth)
{
    const struct nest *n = f->n;
    if (depth > 16)
        return false;
    v = origin(f, v);
    const struct nest_statement *s = nest_maker_of(n, v.value);
    if (v.value == f->sum->result) {
        out->sums += by;
        return true;
    }
    if (v.value == f->product) {
        out->products += by;
        return true;
    }
    if (attention_is_term(n, &f->g->a, v)) {
        out->terms += by;
        return true;
    }
    if (is_one(n, v.value))
        return true;
    if (is_fold_of(s, IR_reduce_sum)) {
        bool is_second = out->fold || by != 1;
        out->fold = s;
        return !is_second;
    }
    if (s->kind != NEST_OP)
        return false;
    struct attention_named x = {s->in[0], v.axis}, y = {s->n_in > 1 ? s->in[1] : 0, v.axis};
    switch (s->op) {
    case IR_mul:
        return collect(f, x, by, out, depth + 1) && collect(f, y, by, out, depth + 1);
    case IR_neg:
        out->is_negative = !out->is_negative;
        return collect(f, x, by, out, depth + 1);
    case IR_div:
        return collect(f, x, by, out, depth + 1) && collect(f, y, -by, out, depth + 1);
    case IR_integer_pow:
        for (int64_t i = s->bits[0]; i < 0; i++)
            if (!collect(f, x, -by, out, depth + 1))
                return false;
        return s->bits[0] < 0;
    case IR_add:
    case IR_sub:
        out->at = v;
        if (out->difference || by != 1)
            return false;
        out->difference = s;
        return true;
    default:
        return false;
    }
}

// Factors of a row that are none of its keys'.
static bool is_of_row(const struct factors *x)
{
    return !x->products && !x->terms && !x->difference;
}

// The value, if is_negative less than nothing, is a sum of product * term / sum^sums, whose factors may
// stand in the sum over the row and behind it.
static bool is_delta(const struct finder *f, nest_id value, bool is_negative, int sums)
{
    struct factors row = {0}, x = {0};
    if (!collect(f, (struct attention_named){value, NEST_NONE}, 1, &row, 0) || !row.fold ||
        !is_of_row(&row) || !attention_is_straight(f->n, row.fold))
        return false;
    struct attention_named each = {row.fold->combines[0].value[0], row.fold->axes[0]};
    return collect(f, each, 1, &x, 0) && !x.difference && !x.fold && x.products == 1 &&
           x.terms == 1 && x.sums + row.sums == -sums &&
           (x.is_negative != row.is_negative) == is_negative;
}

// term / sum * (product - delta), in any order.
static bool is_given(const struct finder *f, struct attention_named v)
{
    struct factors all = {0};
    const struct nest_statement *s = nest_maker_of(f->n, v.value);
    if (!nest_is_op(s, IR_mul) && !nest_is_op(s, IR_div))
        return false;
    if (!collect(f, v, 1, &all, 0) || all.products || all.terms != 1 || !all.difference ||
        all.fold || all.sums > 0 || all.sums < -1)
        return false;
    const struct nest_statement *d = all.difference;
    for (int delta = 0; delta < 2; delta++) {
        bool is_minus[2] = {all.is_negative, all.is_negative != (d->op == IR_sub)};
        struct factors one = {0};
        if (is_delta(f, d->in[delta], !is_minus[delta], 2 + all.sums) &&
            collect(f, (struct attention_named){d->in[1 - delta], all.at.axis}, 1, &one, 0) &&
            !one.difference && !one.fold && one.is_negative == is_minus[1 - delta] &&
            one.products == 1 && !one.terms && one.sums + all.sums == -1)
            return true;
    }
    return false;
}

// Whether a number is made, one by one, of numbers of memory, indices, and, if it is f, a score, or else
// of what is given.
static bool is_made_of(const struct finder *f, struct attention_named v, bool is_f, int depth)
{
    const struct nest *n = f->n;
    struct attention_gradient *g = f->g;
    const struct nest_statement *s = nest_maker_of(n, v.value);
    if (depth > 16)
        return false;
    if (!is_f && is_given(f, v)) {
        bool is_other = g->given != NEST_NONE && g->given != v.value;
        g->given = v.value;
        return !is_other;
    }
    switch (s->kind) {
    case NEST_CONST:
        return true;
    case NEST_INDEX:
        return !nest_index_has_values(&s->index);
    case NEST_LOAD:
        return s->guard == NEST_NONE && !nest_index_has_values(&s->index) &&
               (!is_local(n, s->buffer) || (is_f && s->buffer == g->a.score));
    case NEST_OP:
        for (uint32_t i = 0; i < s->n_in; i++)
            if (!is_made_of(f, (struct attention_named){s->in[i], v.axis}, is_f, depth + 1))
                return false;
        return s->n_results == 1;
    default:
        return false;
    }
}

// ---- The parts

static bool find_products(const struct nest *n, const struct nest_block *b,
                          struct attention_gradient *g, struct product *scores,
                          struct product *changes)
{
    uint32_t next = 0;
    while (next < b->statements.count && !is_map(nest_statement_at(n, b->statements.at[next])))
        next++;
    if (next + 3 > b->statements.count ||
        !find_matrix(n, nest_statement_at(n, b->statements.at[next]), scores) ||
        !find_matrix(n, nest_statement_at(n, b->statements.at[next + 1]), changes))
        return false;
    struct attention *a = &g->a;
    *a = (struct attention){.loop = a->loop,
                            .query = a->query,
                            .q = scores->loads[0],
                            .k = scores->loads[1],
                            .v = changes->loads[1],
                            .score = scores->put->buffer,
                            .depth = scores->along,
                            .key_of_k = scores->across,
                            .key_of_v = changes->across,
                            .column = changes->along};
    g->dy = changes->loads[0];
    g->product = changes->put->buffer;
    return is_local(n, a->score) && is_local(n, g->product) &&
           attention_put_of(n, a->score) == scores->put &&
           attention_put_of(n, g->product) == changes->put && is_along(a->q, a->depth) &&
           is_along(a->k, a->depth) && is_along(a->v, a->column) &&
           is_along(g->dy, a->column) && !has_axis(a->q, a->key_of_k) &&
           !has_axis(a->k, a->query) && !has_axis(g->dy, a->key_of_v) &&
           !has_axis(a->v, a->query) && scores->put->index.count == 1 &&
           is_along(scores->put, scores->across) && changes->put->index.count == 1 &&
           is_along(changes->put, changes->across);
}

// The largest, the sum, and what weights and changes are put; their locals.
static bool find_rows(struct finder *f, const struct nest_block *b, nest_id weight,
                      nest_id change)
{
    const struct nest *n = f->n;
    struct attention_gradient *g = f->g;
    struct attention *a = &g->a;
    int64_t keys = n->axes.at[a->key_of_k].extent;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(n, b->statements.at[i]);
        if (!a->largest && is_fold_of(s, IR_reduce_max)) {
            a->largest = s;
            a->key = s->axes[0];
            a->value = s->combines[0].value[0];
        } else if (a->largest && !f->sum && is_fold_of(s, IR_reduce_sum)) {
            f->sum = s;
        }
    }
    if (!f->sum || !attention_is_straight(n, a->largest) || !attention_is_straight(n, f->sum) ||
        !attention_reads_scores_only(n, a) ||
        !attention_is_term(
            n, a, (struct attention_named){f->sum->combines[0].value[0], f->sum->axes[0]}))
        return false;
    const struct nest_statement *w = attention_put_of(n, weight),
                                *c = attention_put_of(n, change);
    if (!w || !c || w->guard != NEST_NONE || c->guard != NEST_NONE || w->index.count != 2 ||
        c->index.count != 2)
        return false;
    nest_id axes[2];
    for (int i = 0; i < 2; i++) {
        const struct nest_statement *s = i ? c : w;
        axes[i] = s->index.terms[s->index.terms[0].id == a->query].id;
        if (!is_at(s, a->query, axes[i], keys))
            return false;
    }
    f->weight = w;
    f->weight_key = axes[0];
    struct factors x = {0};
    if (!collect(f, (struct attention_named){w->in[0], axes[0]}, 1, &x, 0) || x.difference ||
        x.fold || x.is_negative || x.products || x.terms != 1 || x.sums != -1)
        return false;
    g->given = NEST_NONE;
    g->change = attention_without_convert(n, c->in[0]);
    g->change_key = axes[1];
    return is_made_of(f, (struct attention_named){a->value, a->key}, true, 0) &&
           is_made_of(f, (struct attention_named){g->change, axes[1]}, false, 0) &&
           g->given != NEST_NONE;
}

static bool is_matrix(const struct nest *n, const struct attention *a,
                      const struct nest_statement *s, nest_id along)
{
    return s->dtype == a->q->dtype && attention_is_even(n, s, along);
}

static bool is_result(const struct nest *n, const struct attention *a,
                      const struct nest_statement *s, nest_id along)
{
    return !is_local(n, s->buffer) && n->buffers.at[s->buffer].dtype == a->q->dtype &&
           is_along(s, along) && attention_is_even(n, s, along);
}

bool attention_find_gradient(const struct nest *n, struct attention_gradient *out)
{
    const struct nest_block *top = &n->blocks.at[0];
    const struct nest_statement *loop =
        top->statements.count
            ? nest_statement_at(n, top->statements.at[top->statements.count - 1])
            : NULL;
    if (!loop || loop->kind != NEST_PAR)
        return false;
    const struct nest_block *body = &n->blocks.at[loop->body];
    if (body->statements.count != 2)
        return false;
    const struct nest_statement *maps[2];
    for (int i = 0; i < 2; i++) {
        maps[i] = nest_statement_at(n, body->statements.at[i]);
        if (!is_map(maps[i]))
            return false;
    }
    const struct nest_block *turned = &n->blocks.at[maps[1]->body];
    struct product scores, changes, dq, dk, dv;
    *out = (struct attention_gradient){.rows = maps[0]};
    struct attention *a = &out->a;
    a->loop = loop;
    a->query = maps[0]->axes[0];
    const struct nest_block *rows = &n->blocks.at[maps[0]->body];
    if (!rows->statements.count || !find_products(n, rows, out, &scores, &changes) ||
        !find_matrix(n, nest_statement_at(n, rows->statements.at[rows->statements.count - 1]),
                     &dq) ||
        turned->statements.count != 2 ||
        !find_matrix(n, nest_statement_at(n, turned->statements.at[0]), &dv) ||
        !find_matrix(n, nest_statement_at(n, turned->statements.at[1]), &dk))
        return false;
    nest_id key = maps[1]->axes[0];
    out->dq = dq.put;
    out->dk = dk.put;
    out->dv = dv.put;
    out->dq_column = dq.across;
    out->dk_column = dk.across;
    out->dv_column = dv.across;
    out->result_key = key;
    int64_t keys = n->axes.at[a->key_of_k].extent;
    nest_id weight = dv.loads[0]->buffer, change = dq.loads[0]->buffer;
    if (!is_local(n, weight) || !is_local(n, change) || dk.loads[0]->buffer != change ||
        !is_at(dv.loads[0], dv.along, key, keys) || !is_at(dk.loads[0], dk.along, key, keys) ||
        !is_at(dq.loads[0], a->query, dq.along, keys) ||
        !same_matrix(dq.loads[1], dq.along, dq.across, a->k, a->key_of_k, a->depth) ||
        !same_matrix(dk.loads[1], dk.along, dk.across, a->q, a->query, a->depth) ||
        !same_matrix(dv.loads[1], dv.along, dv.across, out->dy, a->query, a->column))
        return false;
    struct finder f = {.n = n, .g = out, .product = changes.put->in[0]};
    return find_rows(&f, rows, weight, change) && is_matrix(n, a, a->q, a->depth) &&
           is_matrix(n, a, a->k, a->depth) && is_matrix(n, a, a->v, a->column) &&
           is_matrix(n, a, out->dy, a->column) && is_result(n, a, dq.put, dq.across) &&
           is_result(n, a, dk.put, dk.across) && is_result(n, a, dv.put, dv.across) &&
           n->axes.at[a->depth].extent <= ATTENTION_GRADIENT_DEPTH &&
           n->axes.at[a->column].extent <= ATTENTION_GRADIENT_DEPTH;
}
