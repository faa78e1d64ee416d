// SPDX-License-Identifier: Apache-2.0
// Content hash and equality of nests.
//
// Both read one serial form: statements in the order of the text, with values, axes, statements
// and buffers numbered as they are first met there.  Two nests are equal when it is.
#include "base/hash.h"
#include "nest/nest.h"

#include <stdlib.h>

struct serial {
    struct arena *arena;
    const struct nest *nest;
    VEC(uint64_t) words;
    uint32_t *value, *axis, *statement, *buffer; // numbers in the serial form
    uint32_t n_values, n_axes, n_statements;
    bool without_numbers;
};

static void emit(struct serial *s, uint64_t word) { vec_push(s->arena, &s->words, word); }

static uint64_t mapped(const uint32_t *map, uint32_t count, nest_id id)
{
    return id < count ? map[id] : NEST_NONE;
}

static void emit_value(struct serial *s, nest_id v)
{
    emit(s, mapped(s->value, s->nest->values.count, v));
}

static void emit_statement(struct serial *s, nest_id id)
{
    emit(s, mapped(s->statement, s->nest->statements.count, id));
}

static void emit_buffer(struct serial *s, nest_id id)
{
    emit(s, mapped(s->buffer, s->nest->buffers.count, id));
}

static void define(struct serial *s, nest_id first, uint32_t count)
{
    for (uint32_t i = 0; i < count && first != NEST_NONE; i++) {
        if (first + i >= s->nest->values.count)
            return;
        s->value[first + i] = s->n_values++;
        emit(s, s->nest->values.at[first + i].dtype);
    }
}

static void emit_values(struct serial *s, uint32_t count, const nest_id *values)
{
    emit(s, count);
    for (uint32_t i = 0; i < count; i++)
        emit_value(s, values[i]);
}

static void emit_index(struct serial *s, const struct nest_index *x)
{
    emit(s, (uint64_t)x->constant);
    emit(s, x->count);
    struct nest_term *terms = arena_copy(s->arena, x->terms, x->count * sizeof *terms);
    for (uint32_t i = 0; i < x->count; i++)
        terms[i].id =
            (nest_id)(terms[i].is_value ? mapped(s->value, s->nest->values.count, terms[i].id)
                                        : mapped(s->axis, s->nest->axes.count, terms[i].id));
    if (x->count > 1)
        qsort(terms, x->count, sizeof *terms, nest_term_compare);
    for (uint32_t i = 0; i < x->count; i++) {
        emit(s, (uint64_t)terms[i].id << 1 | terms[i].is_value);
        emit(s, (uint64_t)terms[i].factor);
    }
}

static void emit_access(struct serial *s, nest_id buffer, const struct nest_index *x)
{
    emit_buffer(s, buffer);
    emit_index(s, x);
}

static void emit_axes(struct serial *s, const struct nest_statement *t)
{
    emit(s, t->n_axes);
    for (uint32_t i = 0; i < t->n_axes; i++)
        if (t->axes[i] < s->nest->axes.count) {
            const struct nest_axis *a = &s->nest->axes.at[t->axes[i]];
            s->axis[t->axes[i]] = s->n_axes++;
            emit(s, (uint64_t)a->extent);
            emit(s, a->vector);
            emit(s, (uint64_t)a->tile << 32 | a->rows);
            emit(s, (uint64_t)a->segment << 32 | a->early);
        }
}

static void emit_combines(struct serial *s, const struct nest_statement *t)
{
    emit(s, t->n_combines);
    for (uint32_t i = 0; i < t->n_combines; i++) {
        const struct nest_combine *c = &t->combines[i];
        emit(s, (uint64_t)c->order << 48 | (uint64_t)c->op << 32 | c->dtype);
        emit_values(s, c->n, c->value);
    }
}

static void emit_block(struct serial *s, uint32_t block);

static void emit_part(struct serial *s, const struct nest_statement *t, enum nest_part part)
{
    uint32_t split = nest_body_yields(t);
    switch (part) {
    case NEST_PART_op:
    case NEST_PART_combiner:
        emit(s, t->op);
        break;
    case NEST_PART_element:
    case NEST_PART_bits:
        for (int i = 0; i < 2; i++)
            emit(s, s->without_numbers && nest_is_number(t) ? 0 : (uint64_t)t->bits[i]);
        break;
    case NEST_PART_index:
        emit_index(s, &t->index);
        break;
    case NEST_PART_access:
        emit_access(s, t->buffer, &t->index);
        break;
    case NEST_PART_values:
        emit_values(s, t->n_in, t->in);
        break;
    case NEST_PART_guard:
        emit_value(s, t->guard);
        break;
    case NEST_PART_over:
        emit_statement(s, t->fold);
        emit(s, t->order);
        break;
    case NEST_PART_product:
        emit_axes(s, t);
        emit_access(s, t->buffer, &t->index);
        for (int i = 0; i < 2; i++)
            emit_access(s, t->source[i], &t->source_index[i]);
        break;
    case NEST_PART_combines:
        emit_combines(s, t);
        break;
    case NEST_PART_level:
        emit(s, t->level);
        break;
    case NEST_PART_axes:
        emit_axes(s, t);
        break;
    case NEST_PART_reverse:
        emit(s, t->reverse);
        break;
    case NEST_PART_turns:
        emit(s, (uint64_t)t->turns << 32 | t->at_once);
        break;
    case NEST_PART_terms:
        emit(s, t->terms);
        break;
    case NEST_PART_carries:
        emit_values(s, t->n_in, t->in);
        define(s, t->first_carry, t->n_in);
        break;
    case NEST_PART_body:
        emit_block(s, t->body);
        emit_values(s, split, t->yields);
        emit_combines(s, t);
        break;
    case NEST_PART_other:
        emit(s, t->other != NEST_NONE);
        emit_block(s, t->other);
        emit_values(s, t->n_yields - split, t->yields + split);
        break;
    case NEST_PART_type:
    case NEST_PART_combined:
    case NEST_PART_results:
        emit(s, t->n_results);
        define(s, t->result, t->n_results);
        break;
    case NEST_PARTS:
        break;
    }
}

static void emit_block(struct serial *s, uint32_t block)
{
    nest_for_each (t, s->nest, block) {
        s->statement[nest_id_of(s->nest, t)] = s->n_statements++;
        emit(s, t->kind);
        for (enum nest_part part = 0; part < NEST_PARTS; part++)
            if (nest_has(t->kind, part))
                emit_part(s, t, part);
    }
    emit(s, NEST_KIND_COUNT); // the end
}

static struct serial serialise(struct arena *arena, const struct nest *n, bool without_numbers)
{
    struct serial s = {
        .arena = arena,
        .nest = n,
        .value = nest_no_numbers(arena, n->values.count),
        .axis = nest_no_numbers(arena, n->axes.count),
        .statement = nest_no_numbers(arena, n->statements.count),
        .buffer = nest_no_numbers(arena, n->buffers.count),
        .without_numbers = without_numbers,
    };
    uint32_t parameters = 0, locals = 0;
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        const struct nest_buffer *b = &n->buffers.at[i];
        bool local = b->role == NEST_LOCAL;
        s.buffer[i] = local ? (uint32_t)1 << 31 | locals++ : parameters++;
    }
    // Where the locals stand among the parameters does not count.
    emit(&s, parameters);
    emit(&s, (uint64_t)n->special << 32 | n->choices);
    for (int i = 0; i < NEST_THREADS; i++)
        emit(&s, n->threads[i]);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n->buffers.count; i++) {
            const struct nest_buffer *b = &n->buffers.at[i];
            bool local = b->role == NEST_LOCAL;
            if (local != (pass == 1))
                continue;
            emit(&s, (uint64_t)b->space << 16 | (uint64_t)b->role << 8 | b->dtype);
            emit(&s, (uint64_t)b->count);
            emit(&s, (uint64_t)(uintptr_t)b->data);
        }
    emit_block(&s, 0);
    return s;
}

static uint64_t hash_of(const struct nest *n, bool without_numbers)
{
    struct arena_mark mark = arena_mark(n->arena);
    struct serial s = serialise(n->arena, n, without_numbers);
    uint64_t h = hash_bytes(0, s.words.at, s.words.count * sizeof *s.words.at);
    arena_rewind(n->arena, mark);
    return h;
}

static bool are_equal(const struct nest *a, const struct nest *b, bool without_numbers)
{
    struct arena_mark mark = arena_mark(a->arena);
    struct serial x = serialise(a->arena, a, without_numbers),
                  y = serialise(a->arena, b, without_numbers);
    bool equal = x.words.count == y.words.count &&
                 !memcmp(x.words.at, y.words.at, x.words.count * sizeof *x.words.at);
    arena_rewind(a->arena, mark);
    return equal;
}

uint64_t nest_hash(const struct nest *n) { return hash_of(n, false); }

bool nest_equal(const struct nest *a, const struct nest *b) { return are_equal(a, b, false); }

uint64_t nest_hash_alike(const struct nest *n) { return hash_of(n, true); }

bool nest_alike(const struct nest *a, const struct nest *b) { return are_equal(a, b, true); }
