// SPDX-License-Identifier: Apache-2.0
// A value at coordinates: found, loaded, or computed from its operands.
#include "schedule/write/write.h"

#include "ir/number.h"

// ---- Elementwise ops

// Which of two loads comes first, whatever the loops around are called that both are in: by what
// differs in their coordinates.
static bool is_load_before(const struct nest_statement *x, const struct nest_statement *y)
{
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer;
    for (uint32_t i = 0; i < x->index.count && i < y->index.count; i++) {
        const struct nest_term *a = &x->index.terms[i], *b = &y->index.terms[i];
        if (a->is_value != b->is_value || a->id != b->id)
            return a->is_value != b->is_value ? b->is_value : a->id < b->id;
        if (a->factor != b->factor)
            return a->factor < b->factor;
    }
    return x->index.count != y->index.count ? x->index.count < y->index.count
                                            : x->index.constant < y->index.constant;
}

// The square of x - y is that of y - x: of both, where an element and its mirror image are computed
// at one point, only one is left.
static nest_id base_of_square(struct writer *w, nest_id x)
{
    const struct nest *n = w->e.b.nest;
    const struct nest_statement *s = nest_maker_of(n, x);
    if (s->kind != NEST_OP || s->op != IR_sub || !dtype_is_float(s->dtype))
        return x;
    const struct nest_statement *a = nest_maker_of(n, s->in[0]),
                                *b = nest_maker_of(n, s->in[1]);
    if (a->kind != NEST_LOAD || b->kind != NEST_LOAD || !is_load_before(b, a))
        return x;
    return emit_op(&w->e, IR_sub, s->dtype, 2, (nest_id[]){s->in[1], s->in[0]}, NULL);
}

static nest_id write_map(struct writer *w, const struct ir_node *n, uint32_t result,
                         const form_id *at, nest_id guard)
{
    const struct ir_graph *g = w->s->g;
    const int64_t *dims = ir_dims_of(g, n->out);
    nest_id in[4];
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        const int64_t *from_dims = ir_dims_of(g, x);
        form_id from[IR_MAX_RANK];
        for (int k = 0; k < ir_rank_of(g, x); k++)
            from[k] = from_dims[k] == 1 && dims[k] != 1 ? 0 : at[k];
        in[i] = write_value_at(w, x, from, guard);
    }
    if (n->op == IR_convert && ir_dtype_of(g, n->out) == ir_dtype_of(g, ir_operand(g, n, 0)))
        return in[0];
    if (n->op == IR_mul && in[0] == in[1])
        in[0] = in[1] = base_of_square(w, in[0]);
    int64_t bits[2] = {0};
    if (n->op == IR_integer_pow)
        bits[0] = ir_attr_int(n->attrs, IR_KEY_exponent);
    if (n->op == IR_reduce_precision) {
        bits[0] = ir_attr_int(n->attrs, IR_KEY_exponent_bits);
        bits[1] = ir_attr_int(n->attrs, IR_KEY_mantissa_bits);
    }
    return emit_op(&w->e, (enum ir_op)n->op, ir_dtype_of(g, n->out), (int)n->n_in, in, bits) +
           result;
}

// ---- Values

static uint64_t value_hash(const struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    uint64_t h = hash_combine(hash_combine(hash_mix(v), guard), (uintptr_t)w->frame);
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        h = hash_combine(h, at[i]);
    return h;
}

nest_id write_find_value(const struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    uint64_t h = value_hash(w, v, at, guard);
    size_t bytes = (size_t)ir_rank_of(w->s->g, v) * sizeof *at;
    for (struct hash_probe p = hash_probe(&w->value_table, h);
         hash_next(&w->value_table, &p);) {
        const struct known_value *k = &w->values.at[p.id];
        if (k->v == v && k->frame == w->frame && k->guard == guard &&
            (!bytes || !memcmp(k->at, at, bytes)) &&
            emit_sees(&w->e, w->e.value_scope.at[k->result]))
            return k->result;
    }
    return NEST_NONE;
}

void write_remember(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id result)
{
    size_t bytes = (size_t)ir_rank_of(w->s->g, v) * sizeof *at;
    const form_id *copy = bytes ? arena_copy(w->s->scratch, at, bytes) : NULL;
    vec_push(w->s->scratch, &w->values, (struct known_value){w->frame, v, guard, copy, result});
    hash_insert(w->s->scratch, &w->value_table, value_hash(w, v, at, guard),
                w->values.count - 1);
}

void write_note(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id result)
{
    write_remember(w, v, at, guard, result);
    write_count_computation(w, v, at, guard, result);
    write_fill_row(w, v, at, guard, result);
    write_put_where_computed(w, v, at, guard, result);
}

// By the op, where the class does not say how.
static nest_id by_op(struct writer *w, const struct ir_node *n, const form_id *at,
                     nest_id guard)
{
    switch ((enum ir_op)n->op) {
    case IR_const:
        return write_constant(w, n, at, guard);
    case IR_iota:
        return write_iota(w, n, at);
    case IR_reshape:
        return write_reshape(w, n, at, guard);
    case IR_concatenate:
        return write_concatenate(w, n, at, guard);
    case IR_dynamic_slice:
        return write_dynamic_slice(w, n, at, guard);
    case IR_gather:
        return write_gather(w, n, at, guard);
    default:
        if (ir_op_get((enum ir_op)n->op)->index)
            return write_indexed(w, n, at, guard);
        w->s->refused = n;
        return write_zero_of(w, ir_dtype_of(w->s->g, n->out));
    }
}

static nest_id computed(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    switch (ir_op_class((enum ir_op)n->op)) {
    case IR_CLASS_MAP:
        return write_map(w, n, v - n->out, at, guard);
    case IR_CLASS_REDUCE:
    case IR_CLASS_ARG:
    case IR_CLASS_CONTRACT:
        return write_fold(w, v, at, guard);
    case IR_CLASS_UPDATE:
        return n->op == IR_dynamic_update_slice ? write_dynamic_update_slice(w, n, at, guard)
                                                : write_scatter(w, n, at, guard);
    case IR_CLASS_HINT:
        return write_at_operand(w, n, v - n->out, at, guard);
    default:
        return by_op(w, n, at, guard);
    }
}

// Whether the coordinates exist whatever a guard says.
static bool is_in_range(const struct writer *w, ir_id v, const form_id *at)
{
    const int64_t *dims = ir_dims_of(w->s->g, v);
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        if (w->e.forms.at[at[i]].low < 0 || w->e.forms.at[at[i]].high >= dims[i])
            return false;
    return true;
}

nest_id write_value_at(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    struct schedule *s = w->s;
    if (value_count(s, v) == 0)
        return write_zero_of(w, ir_dtype_of(s->g, v)); // in loops that do not run
    if (guard != NEST_NONE && is_in_range(w, v, at))
        guard = NEST_NONE;
    nest_id known = write_find_value(w, v, at, guard);
    if (known != NEST_NONE)
        return known;
    nest_id framed;
    if (w->frame && write_in_frame(w, v, at, guard, &framed))
        return framed;
    // A number in all elements is written rather than read from memory that it has too.
    if (s->is_stored[v] && !write_is_member(w, v) && !ir_filling(s->g, v))
        return write_load_value(w, v, at, guard);
    struct row *row = write_filled_row(w, v, at);
    if (row) {
        row->is_read = true;
        return emit_load(&w->e, row->local, write_index_in_row(w, v), NEST_NONE);
    }
    nest_id result = computed(w, v, at, guard);
    // Reductions that share a loop have been noted with it.
    if (write_find_value(w, v, at, guard) == NEST_NONE)
        write_note(w, v, at, guard, result);
    return result;
}
