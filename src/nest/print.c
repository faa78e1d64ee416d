// SPDX-License-Identifier: Apache-2.0
// The text form of nests and programs.
//
// Values are numbered in the order of the text and the terms of an index are sorted likewise, so
// that nests that are equal up to numbering have the same text but for names.
#include "base/hash.h"
#include "nest/nest.h"

#include <ctype.h>
#include <stdlib.h>

struct printer {
    struct strbuf *s;
    struct arena *arena;
    const struct nest *nest;
    uint32_t *value; // number in the text
    uint32_t n_values;
    uint32_t *axis; // rank by opening
    uint32_t n_axes;
    const char **axis_names, **buffer_names;
    VEC(nest_id) open; // axes in scope
    uint32_t depth;
};

static void add(struct printer *p, const char *text) { strbuf_add(p->s, text); }

static void add_unsigned(struct strbuf *s, uint64_t x)
{
    char digits[20];
    int at = sizeof digits;
    do
        digits[--at] = (char)('0' + x % 10);
    while (x /= 10);
    strbuf_add_bytes(s, digits + at, sizeof digits - (size_t)at);
}

static void add_signed(struct strbuf *s, int64_t x)
{
    if (x < 0)
        strbuf_add(s, "-");
    add_unsigned(s, x < 0 ? -(uint64_t)x : (uint64_t)x);
}

// The name as an identifier.
static char *identifier(struct arena *a, const char *name, const char *otherwise)
{
    if (!name || !*name)
        name = otherwise;
    char *text = arena_text(a, name);
    for (char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            *c = '_';
    if (!isdigit((unsigned char)*text))
        return text;
    *text = '_';
    return text;
}

// name with the smallest number behind it for which it is free.
static const char *numbered(struct arena *a, const char *name, uint32_t n)
{
    struct strbuf s = strbuf_make(a);
    strbuf_printf(&s, "%s_%u", name, n);
    return s.text;
}

static bool axis_name_taken(const struct printer *p, const char *name)
{
    for (uint32_t i = 0; i < p->open.count; i++)
        if (!strcmp(p->axis_names[p->open.at[i]], name))
            return true;
    return false;
}

static bool axis_is_known(const struct printer *p, nest_id axis)
{
    return axis < p->nest->axes.count;
}

// Brings an axis into scope and gives it a name that no other axis in scope has.
static void open_axis(struct printer *p, nest_id axis)
{
    if (!axis_is_known(p, axis))
        return;
    const char *base = identifier(p->arena, p->nest->axes.at[axis].name, "i"), *name = base;
    for (uint32_t n = 2; axis_name_taken(p, name); n++)
        name = numbered(p->arena, base, n);
    p->axis_names[axis] = name;
    p->axis[axis] = p->n_axes++;
    vec_push(p->arena, &p->open, axis);
}

static void name_buffers(struct printer *p)
{
    const struct nest *n = p->nest;
    struct hash_table taken = {0};
    p->buffer_names = arena_array(p->arena, const char *, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        const char *base = identifier(p->arena, n->buffers.at[i].name, "b"), *name = base;
        for (uint32_t k = 2;; k++) {
            uint64_t h = hash_bytes(0, name, strlen(name));
            bool clash = false;
            for (struct hash_probe q = hash_probe(&taken, h); !clash && hash_next(&taken, &q);)
                clash = !strcmp(p->buffer_names[q.id], name);
            if (!clash) {
                p->buffer_names[i] = name;
                hash_insert(p->arena, &taken, h, i);
                break;
            }
            name = numbered(p->arena, base, k);
        }
    }
}

static void add_value(struct printer *p, nest_id v)
{
    add(p, "%");
    if (v < p->nest->values.count && p->value[v] != NEST_NONE)
        add_unsigned(p->s, p->value[v]);
    else
        add(p, "?");
}

static void add_values(struct printer *p, uint32_t n, const nest_id *values)
{
    for (uint32_t i = 0; i < n; i++) {
        add(p, i ? ", " : " ");
        add_value(p, values[i]);
    }
}

static void define(struct printer *p, nest_id v)
{
    if (v < p->nest->values.count)
        p->value[v] = p->n_values++;
    add_value(p, v);
}

static const char *axis_name(const struct printer *p, nest_id axis)
{
    return axis_is_known(p, axis) && p->axis_names[axis] ? p->axis_names[axis] : "?";
}

static const char *buffer_name(const struct printer *p, nest_id buffer)
{
    return buffer < p->nest->buffers.count ? p->buffer_names[buffer] : "?";
}

// Axes in the order of opening, then values.
static uint64_t term_rank(const struct printer *p, const struct nest_term *t)
{
    uint32_t rank = t->is_value ? (t->id < p->nest->values.count ? p->value[t->id] : NEST_NONE)
                                : (axis_is_known(p, t->id) ? p->axis[t->id] : NEST_NONE);
    return (uint64_t)t->is_value << 32 | rank;
}

static void add_term(struct printer *p, const struct nest_term *t, bool first)
{
    bool negative = t->factor < 0;
    uint64_t size = negative ? -(uint64_t)t->factor : (uint64_t)t->factor;
    if (first)
        add(p, negative ? "-" : "");
    else
        add(p, negative ? " - " : " + ");
    if (size != 1) {
        add_unsigned(p->s, size);
        add(p, "*");
    }
    if (t->is_value)
        add_value(p, t->id);
    else
        add(p, axis_name(p, t->id));
}

static void add_index(struct printer *p, const struct nest_index *x)
{
    struct nest_term *terms = arena_copy(p->arena, x->terms, x->count * sizeof *terms);
    for (uint32_t i = 1; i < x->count; i++)
        for (uint32_t j = i; j && term_rank(p, &terms[j]) < term_rank(p, &terms[j - 1]); j--) {
            struct nest_term t = terms[j];
            terms[j] = terms[j - 1];
            terms[j - 1] = t;
        }
    for (uint32_t i = 0; i < x->count; i++)
        add_term(p, &terms[i], i == 0);
    if (!x->count) {
        add_signed(p->s, x->constant);
    } else if (x->constant) {
        add(p, x->constant < 0 ? " - " : " + ");
        add_unsigned(p->s, x->constant < 0 ? -(uint64_t)x->constant : (uint64_t)x->constant);
    }
}

static void add_element(struct printer *p, nest_id buffer, const struct nest_index *x)
{
    add(p, buffer_name(p, buffer));
    add(p, "[");
    add_index(p, x);
    add(p, "]");
}

static void add_dtype(struct printer *p, int dtype)
{
    add(p, dtype_is_valid(dtype) ? dtype_get((jot_dtype)dtype)->name : "?");
}

static void add_op(struct printer *p, uint16_t op)
{
    add(p, op < IR_OP_COUNT ? ir_op_get((enum ir_op)op)->name : "?");
}

static void add_order(struct printer *p, enum nest_order order)
{
    add(p, " ");
    add(p, (unsigned)order < NEST_ORDERS ? nest_order_names[order] : "?");
}

static void start_line(struct printer *p) { strbuf_indent(p->s, p->depth); }

static void add_where(struct printer *p, const struct nest_statement *t)
{
    if (!t->where)
        return;
    add(p, " !");
    add_unsigned(p->s, t->where);
}

static void print_block(struct printer *p, uint32_t block);

// ---- What statements have (statements.def)

static void print_op(struct printer *p, const struct nest_statement *t) { add_op(p, t->op); }

static void print_element(struct printer *p, const struct nest_statement *t)
{
    unsigned bytes = dtype_is_valid((int)t->dtype) ? dtype_get(t->dtype)->bytes : 8;
    unsigned char element[16];
    memcpy(element, t->bits, sizeof element);
    uint64_t word[2] = {0};
    for (unsigned i = 0; i < bytes; i++)
        word[i / 8] |= (uint64_t)element[i] << (i % 8 * 8);
    if (bytes > 8)
        strbuf_printf(p->s, " 0x%016llx%016llx", (unsigned long long)word[1],
                      (unsigned long long)word[0]);
    else
        strbuf_printf(p->s, " 0x%0*llx", (int)bytes * 2, (unsigned long long)word[0]);
}

static void print_index(struct printer *p, const struct nest_statement *t)
{
    add(p, " ");
    add_index(p, &t->index);
}

static void print_access(struct printer *p, const struct nest_statement *t)
{
    add(p, " ");
    add_element(p, t->buffer, &t->index);
}

static void print_combiner(struct printer *p, const struct nest_statement *t)
{
    add(p, " ");
    if (t->op)
        add_op(p, t->op);
    add(p, "=");
}

static void print_values(struct printer *p, const struct nest_statement *t)
{
    add_values(p, t->n_in, t->in);
}

static void print_bits(struct printer *p, const struct nest_statement *t)
{
    if (!t->bits[0] && !t->bits[1])
        return;
    add(p, " {");
    add_signed(p->s, t->bits[0]);
    add(p, ", ");
    add_signed(p->s, t->bits[1]);
    add(p, "}");
}

static void print_guard(struct printer *p, const struct nest_statement *t)
{
    if (t->guard == NEST_NONE)
        return;
    add(p, " if ");
    add_value(p, t->guard);
}

// By the name of its first axis the fold is known inside it.
static void print_over(struct printer *p, const struct nest_statement *t)
{
    const struct nest *n = p->nest;
    bool known = t->fold < n->statements.count && n->statements.at[t->fold].n_axes;
    if (!t->op)
        return;
    add(p, " in @");
    add(p, known ? axis_name(p, n->statements.at[t->fold].axes[0]) : "?");
    add_order(p, t->order);
}

static void print_type(struct printer *p, const struct nest_statement *t)
{
    add(p, " : ");
    add_dtype(p, (int)t->dtype);
}

// Nothing of 0.
static void add_word(struct printer *p, const char *word, unsigned x)
{
    if (!x)
        return;
    add(p, word);
    add_unsigned(p->s, x);
}

static void add_axis(struct printer *p, nest_id axis)
{
    open_axis(p, axis);
    add(p, axis_name(p, axis));
    add(p, " < ");
    add_signed(p->s, axis_is_known(p, axis) ? p->nest->axes.at[axis].extent : -1);
    if (!axis_is_known(p, axis))
        return;
    const struct nest_axis *a = &p->nest->axes.at[axis];
    add_word(p, " @vector ", a->vector);
    add_word(p, " @tile ", a->tile);
    add_word(p, " @rows ", a->rows);
    add_word(p, " @segment ", a->segment);
    add_word(p, " @early ", a->early);
}

static void print_product(struct printer *p, const struct nest_statement *t)
{
    struct strbuf *text = p->s, axes = strbuf_make(p->arena);
    p->s = &axes; // The axes have their names before the indices are written.
    for (uint32_t i = 0; i < t->n_axes; i++) {
        add(p, i + 1 == t->n_axes ? " over " : i ? ", " : " for ");
        add_axis(p, t->axes[i]);
    }
    p->s = text;
    print_access(p, t);
    for (int i = 0; i < 2; i++) {
        add(p, i ? ", " : " = ");
        add_element(p, t->source[i], &t->source_index[i]);
    }
    add(p, axes.text);
}

static void print_combines(struct printer *p, const struct nest_statement *t)
{
    for (uint32_t i = 0; i < t->n_combines; i++) {
        add(p, i ? ", " : " ");
        add_op(p, t->combines[i].op);
        for (uint32_t j = 0; j < t->combines[i].n && j < 2; j++) {
            add(p, " ");
            add_value(p, t->combines[i].value[j]);
        }
        add_order(p, t->combines[i].order);
    }
}

static void print_level(struct printer *p, const struct nest_statement *t)
{
    if (t->level && t->level < NEST_LEVELS)
        strbuf_printf(p->s, " @%s", nest_level_names[t->level]);
}

static void print_axes(struct printer *p, const struct nest_statement *t)
{
    for (uint32_t i = 0; i < t->n_axes; i++) {
        add(p, i ? ", " : " ");
        add_axis(p, t->axes[i]);
    }
}

static void print_reverse(struct printer *p, const struct nest_statement *t)
{
    add(p, t->reverse ? " reverse" : "");
}

static void print_turns(struct printer *p, const struct nest_statement *t)
{
    add_word(p, " turns ", t->turns);
    add_word(p, " at_once ", t->at_once);
}

static void print_terms(struct printer *p, const struct nest_statement *t)
{
    if (t->terms && t->terms < NEST_SPACES)
        strbuf_printf(p->s, " terms @%s", nest_space_names[t->terms]);
}

static void print_carries(struct printer *p, const struct nest_statement *t)
{
    for (uint32_t i = 0; i < t->n_in; i++) {
        add(p, i ? ", " : " carry ");
        // The initial value is outside the loop, so its number is smaller.
        define(p, t->first_carry + i);
        add(p, " = ");
        add_value(p, t->in[i]);
    }
}

// A block, which ends in what it yields: values, or what a fold combines.
static void add_body(struct printer *p, const struct nest_statement *t, uint32_t block,
                     uint32_t count, const nest_id *yields)
{
    add(p, " {\n");
    print_block(p, block);
    if (count || t->n_combines) {
        strbuf_indent(p->s, p->depth + 1);
        add(p, "yield");
        add_values(p, count, yields);
        print_combines(p, t);
        add(p, "\n");
    }
    start_line(p);
    add(p, "}");
}

static void print_body(struct printer *p, const struct nest_statement *t)
{
    add_where(p, t);
    add_body(p, t, t->body, nest_body_yields(t), t->yields);
}

static void print_other(struct printer *p, const struct nest_statement *t)
{
    uint32_t first = nest_body_yields(t);
    if (t->other == NEST_NONE)
        return;
    add(p, t->kind == NEST_WHILE ? " do" : " else");
    add_body(p, t, t->other, t->n_yields - first, t->yields + first);
}

static void add_results(struct printer *p, const struct nest_statement *t)
{
    for (uint32_t i = 0; i < t->n_results; i++) {
        add(p, i ? ", " : "");
        define(p, t->result + i);
    }
}

static void print_combined(struct printer *p, const struct nest_statement *t)
{
    for (uint32_t i = 0; i < t->n_results; i++) {
        nest_id v = t->result + i;
        add(p, i ? ", " : " -> ");
        define(p, v);
        add(p, " : ");
        add_dtype(p, v < p->nest->values.count ? (int)p->nest->values.at[v].dtype : -1);
    }
}

static void print_results(struct printer *p, const struct nest_statement *t)
{
    add(p, t->n_results ? " -> " : "");
    add_results(p, t);
}

static void print_statement(struct printer *p, const struct nest_statement *t)
{
    static void (*const print[NEST_PARTS])(struct printer *, const struct nest_statement *) = {
#define PART(name) print_##name,
#include "nest/statements.def"
    };
    uint32_t open = p->open.count;
    start_line(p);
    if ((unsigned)t->kind >= NEST_KIND_COUNT) {
        add(p, "?\n");
        return;
    }
    if (nest_is_scalar(t)) {
        add_results(p, t);
        add(p, " = ");
    }
    add(p, nest_kind_names[t->kind]);
    for (enum nest_part part = 0; part < NEST_PARTS; part++)
        if (nest_has(t->kind, part))
            print[part](p, t);
    if (!nest_has(t->kind, NEST_PART_body))
        add_where(p, t);
    add(p, "\n");
    p->open.count = open;
}

static void print_block(struct printer *p, uint32_t block)
{
    p->depth++;
    nest_for_each (s, p->nest, block)
        print_statement(p, s);
    p->depth--;
}

static void print_parameters(struct printer *p)
{
    bool first = true;
    for (uint32_t i = 0; i < p->nest->buffers.count; i++) {
        const struct nest_buffer *b = &p->nest->buffers.at[i];
        if (b->role == NEST_LOCAL)
            continue;
        strbuf_printf(p->s, "%s%s: %s", first ? "" : ", ", p->buffer_names[i],
                      b->role == NEST_OUT     ? "out "
                      : b->role == NEST_INOUT ? "inout "
                      : b->role == NEST_PART  ? "part "
                      : b->role == NEST_WORK  ? "work "
                                              : "");
        add_dtype(p, (int)b->dtype);
        strbuf_printf(p->s, "[%lld]", (long long)b->count);
        first = false;
    }
}

static void print_locals(struct printer *p)
{
    for (uint32_t i = 0; i < p->nest->buffers.count; i++) {
        const struct nest_buffer *b = &p->nest->buffers.at[i];
        if (b->role != NEST_LOCAL)
            continue;
        strbuf_printf(p->s, "  local %s: ", p->buffer_names[i]);
        add_dtype(p, (int)b->dtype);
        strbuf_printf(p->s, "[%lld]", (long long)b->count);
        if (b->space && b->space < NEST_SPACES)
            strbuf_printf(p->s, " @%s", nest_space_names[b->space]);
        add(p, "\n");
    }
}

// What stands behind the parameters.
static void print_words(struct printer *p)
{
    const struct nest *n = p->nest;
    for (int i = 0; i < NEST_CHOICES; i++)
        if (n->choices >> i & 1)
            strbuf_printf(p->s, " %s", nest_choice_names[i]);
    if (n->special && n->special < NEST_SPECIALS)
        strbuf_printf(p->s, " as %s", nest_special_names[n->special]);
    for (int i = 0; i < NEST_THREADS; i++)
        if (n->threads[i])
            strbuf_printf(p->s, " %s %u", nest_threads_names[i], n->threads[i]);
    if (n->price)
        strbuf_printf(p->s, " price %lld", (long long)n->price);
}

void nest_print(struct strbuf *s, const struct nest *n)
{
    struct printer p = {
        .s = s,
        .arena = s->arena,
        .nest = n,
        .value = nest_no_numbers(s->arena, n->values.count),
        .axis = nest_no_numbers(s->arena, n->axes.count),
        .axis_names = arena_array(s->arena, const char *, n->axes.count + 1),
    };
    name_buffers(&p);
    strbuf_printf(s, "kernel %s(", identifier(s->arena, n->name, "kernel"));
    print_parameters(&p);
    add(&p, ")");
    print_words(&p);
    add(&p, " {\n");
    print_locals(&p);
    print_block(&p, 0);
    add(&p, "}\n");
}
