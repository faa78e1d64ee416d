// SPDX-License-Identifier: Apache-2.0
// Building nests.
#include "nest/nest.h"

#include <stdlib.h>

const char *const nest_choice_names[NEST_CHOICES] = {"more_lanes", "fewer_lanes", "no_jam",
                                                     "no_stages"};
const char *const nest_order_names[NEST_ORDERS] = {"none", "sum64", "free", "serial"};
const char *const nest_space_names[NEST_SPACES] = {NULL, "register", "shared", "again",
                                                   "scratch"};
const char *const nest_level_names[NEST_LEVELS] = {NULL,  "grid",  "group", "thread",
                                                   "row", "owner", "ahead", "serial"};
const char *const nest_special_names[NEST_SPECIALS] = {NULL, "attention", "attention_gradient",
                                                       "network", "trips"};
const char *const nest_threads_names[NEST_THREADS] = {"block",    "group", "columns",
                                                      "resident", "grid",  "trips"};

const char *const nest_kind_names[NEST_KIND_COUNT] = {
#define STATEMENT(kind, word, parts) word,
#include "nest/statements.def"
};

#define HAS(part) [NEST_PART_##part] = NEST_ANY,
#define ONE(part) [NEST_PART_##part] = NEST_ONE,
#define SOME(part) [NEST_PART_##part] = NEST_SOME,
const uint8_t nest_numbers[NEST_KIND_COUNT][NEST_PARTS] = {
#define STATEMENT(kind, word, parts) {parts},
#include "nest/statements.def"
};

struct nest *nest_copy(struct arena *arena, const struct nest *n)
{
    struct nest *copy = arena_copy(arena, n, sizeof *n);
    copy->axes.at = arena_copy(arena, n->axes.at, n->axes.count * sizeof *n->axes.at);
    copy->buffers.at =
        arena_copy(arena, n->buffers.at, n->buffers.count * sizeof *n->buffers.at);
    copy->statements.at =
        arena_copy(arena, n->statements.at, n->statements.count * sizeof *n->statements.at);
    copy->axes.capacity = n->axes.count;
    copy->buffers.capacity = n->buffers.count;
    copy->statements.capacity = n->statements.count;
    return copy;
}

static uint32_t add_block(struct nest *n)
{
    vec_push(n->arena, &n->blocks, (struct nest_block){0});
    return n->blocks.count - 1;
}

struct nest_builder nest_builder_make(struct arena *arena, const char *name)
{
    struct nest_builder b = {.nest = arena_new(arena, struct nest)};
    b.nest->arena = arena;
    b.nest->name = arena_text(arena, name ? name : "kernel");
    vec_push(arena, &b.open, add_block(b.nest));
    return b;
}

nest_id nest_buffer(struct nest_builder *b, const char *name, jot_dtype dtype, int64_t count,
                    enum nest_role role)
{
    struct nest *n = b->nest;
    vec_push(n->arena, &n->buffers,
             (struct nest_buffer){.name = arena_text(n->arena, name ? name : "b"),
                                  .dtype = dtype,
                                  .count = count,
                                  .role = role});
    return n->buffers.count - 1;
}

nest_id nest_local(struct nest_builder *b, const char *name, jot_dtype dtype, int64_t count)
{
    return nest_buffer(b, name, dtype, count, NEST_LOCAL);
}

nest_id nest_axis(struct nest_builder *b, const char *name, int64_t extent)
{
    struct nest *n = b->nest;
    vec_push(
        n->arena, &n->axes,
        (struct nest_axis){.name = arena_text(n->arena, name ? name : "i"), .extent = extent});
    return n->axes.count - 1;
}

struct nest_statement nest_blank(enum nest_kind kind)
{
    return (struct nest_statement){
        .kind = kind,
        .result = NEST_NONE,
        .buffer = NEST_NONE,
        .guard = NEST_NONE,
        .fold = NEST_NONE,
        .body = NEST_NONE,
        .other = NEST_NONE,
        .first_carry = NEST_NONE,
        .source = {NEST_NONE, NEST_NONE},
    };
}

static nest_id add_value(struct nest *n, nest_id statement, jot_dtype dtype)
{
    vec_push(n->arena, &n->values, (struct nest_value){.dtype = dtype, .statement = statement});
    return n->values.count - 1;
}

static void add_result(struct nest *n, nest_id statement, jot_dtype dtype)
{
    nest_id v = add_value(n, statement, dtype);
    struct nest_statement *s = &n->statements.at[statement];
    if (!s->n_results++)
        s->result = v;
}

nest_id nest_append(struct nest_builder *b, struct nest_statement s)
{
    struct nest *n = b->nest;
    bool opens = nest_has(s.kind, NEST_PART_body),
         carries = nest_has(s.kind, NEST_PART_carries);
    s.where = b->where;
    s.result = s.other = NEST_NONE;
    s.n_results = s.n_combines = s.n_yields = 0;
    s.body = opens ? add_block(n) : NEST_NONE;
    s.first_carry = carries && s.n_in ? n->values.count : NEST_NONE;
    vec_push(n->arena, &n->statements, s);
    nest_id id = n->statements.count - 1;
    vec_push(n->arena, &n->blocks.at[vec_last(&b->open)].statements, id);
    if (opens)
        vec_push(n->arena, &b->open, s.body);
    for (uint32_t i = 0; carries && i < s.n_in; i++)
        add_value(n, id, n->values.at[s.in[i]].dtype);
    int out = s.kind == NEST_OP ? ir_op_get((enum ir_op)s.op)->out : 1;
    for (int i = 0; nest_has(s.kind, NEST_PART_type) && i < (out > 1 ? out : 1); i++)
        add_result(n, id, s.dtype);
    return id;
}

static nest_id append_value(struct nest_builder *b, struct nest_statement s)
{
    nest_id id = nest_append(b, s);
    return b->nest->statements.at[id].result;
}

static const nest_id *copy_ids(struct nest *n, uint32_t count, const nest_id *ids)
{
    return arena_copy(n->arena, ids, count * sizeof *ids);
}

static struct nest_index copy_index(struct nest *n, struct nest_index x)
{
    x.terms = arena_copy(n->arena, x.terms, x.count * sizeof *x.terms);
    return x;
}

nest_id nest_op(struct nest_builder *b, enum ir_op op, jot_dtype dtype, int n,
                const nest_id *in, const int64_t bits[2])
{
    struct nest_statement s = nest_blank(NEST_OP);
    s.op = (uint16_t)op;
    s.dtype = dtype;
    s.n_in = (uint32_t)n;
    s.in = copy_ids(b->nest, s.n_in, in);
    if (bits)
        memcpy(s.bits, bits, sizeof s.bits);
    return append_value(b, s);
}

nest_id nest_const(struct nest_builder *b, jot_dtype dtype, const void *element)
{
    struct nest_statement s = nest_blank(NEST_CONST);
    s.dtype = dtype;
    memcpy(s.bits, element, dtype_get(dtype)->bytes);
    return append_value(b, s);
}

nest_id nest_index_value(struct nest_builder *b, struct nest_index index, jot_dtype dtype)
{
    struct nest_statement s = nest_blank(NEST_INDEX);
    s.dtype = dtype;
    s.index = copy_index(b->nest, index);
    return append_value(b, s);
}

nest_id nest_load(struct nest_builder *b, nest_id buffer, struct nest_index index,
                  nest_id guard)
{
    struct nest_statement s = nest_blank(NEST_LOAD);
    s.dtype = b->nest->buffers.at[buffer].dtype;
    s.buffer = buffer;
    s.index = copy_index(b->nest, index);
    s.guard = guard;
    return append_value(b, s);
}

void nest_put(struct nest_builder *b, nest_id buffer, struct nest_index index, nest_id value,
              nest_id guard)
{
    struct nest_statement s = nest_blank(NEST_PUT);
    s.buffer = buffer;
    s.index = copy_index(b->nest, index);
    s.n_in = 1;
    s.in = copy_ids(b->nest, 1, &value);
    s.guard = guard;
    nest_append(b, s);
}

void nest_put_combine(struct nest_builder *b, nest_id buffer, struct nest_index index,
                      nest_id fold, const struct nest_combine *combine)
{
    struct nest_statement s = nest_blank(NEST_PUT);
    s.op = combine->op;
    s.buffer = buffer;
    s.index = copy_index(b->nest, index);
    s.n_in = combine->n;
    s.in = copy_ids(b->nest, combine->n, combine->value);
    s.fold = fold;
    s.order = combine->order;
    nest_append(b, s);
}

nest_id nest_open(struct nest_builder *b, enum nest_kind kind, int n_axes, const nest_id *axes)
{
    struct nest_statement s = nest_blank(kind);
    s.n_axes = (uint32_t)n_axes;
    s.axes = copy_ids(b->nest, s.n_axes, axes);
    return nest_append(b, s);
}

// Closes the innermost block and returns its statement, the last of the block around it.
static nest_id close_block(struct nest_builder *b)
{
    b->open.count--;
    return vec_last(&b->nest->blocks.at[vec_last(&b->open)].statements);
}

static nest_id add_combines(struct nest *n, nest_id id, int count,
                            const struct nest_combine *combines)
{
    struct nest_statement *s = &n->statements.at[id];
    s->n_combines = (uint32_t)count;
    s->combines = arena_copy(n->arena, combines, (size_t)count * sizeof *combines);
    for (int i = 0; i < count; i++) {
        add_result(n, id, combines[i].dtype);
        if (nest_combine_results(combines[i].op) == 2)
            add_result(n, id, JOT_I64);
    }
    return s->result;
}

nest_id nest_close(struct nest_builder *b, int n_combines, const struct nest_combine *combines)
{
    return add_combines(b->nest, close_block(b), n_combines, combines);
}

nest_id nest_yield(struct nest_builder *b, int n, const struct nest_combine *combines)
{
    return add_combines(b->nest, nest_append(b, nest_blank(NEST_YIELD)), n, combines);
}

static nest_id open_carry(struct nest_builder *b, struct nest_statement s, int n,
                          const nest_id *init)
{
    s.n_in = (uint32_t)n;
    s.in = copy_ids(b->nest, s.n_in, init);
    nest_id id = nest_append(b, s);
    return b->nest->statements.at[id].first_carry;
}

// Puts n values after the yields that the statement has.
static void add_yields(struct nest *n, nest_id id, int count, const nest_id *values)
{
    struct nest_statement *s = &n->statements.at[id];
    nest_id *yields = arena_array(n->arena, nest_id, s->n_yields + (uint32_t)count);
    if (s->n_yields)
        memcpy(yields, s->yields, s->n_yields * sizeof *yields);
    if (count)
        memcpy(yields + s->n_yields, values, (size_t)count * sizeof *yields);
    s->yields = yields;
    s->n_yields += (uint32_t)count;
}

nest_id nest_close_values(struct nest_builder *b, int n, const nest_id *values)
{
    nest_id id = close_block(b);
    add_yields(b->nest, id, n, values);
    for (int i = 0; i < n; i++)
        add_result(b->nest, id, b->nest->values.at[values[i]].dtype);
    return b->nest->statements.at[id].result;
}

nest_id nest_seq_open(struct nest_builder *b, nest_id axis, bool reverse, int n,
                      const nest_id *init)
{
    struct nest_statement s = nest_blank(NEST_SEQ);
    s.n_axes = 1;
    s.axes = copy_ids(b->nest, 1, &axis);
    s.reverse = reverse;
    return open_carry(b, s, n, init);
}

nest_id nest_while_open(struct nest_builder *b, int n, const nest_id *init)
{
    return open_carry(b, nest_blank(NEST_WHILE), n, init);
}

void nest_open_other(struct nest_builder *b, int n, const nest_id *values)
{
    nest_id id = close_block(b);
    add_yields(b->nest, id, n, values);
    uint32_t other = add_block(b->nest);
    b->nest->statements.at[id].other = other;
    vec_push(b->nest->arena, &b->open, other);
}

void nest_if_open(struct nest_builder *b, nest_id predicate)
{
    struct nest_statement s = nest_blank(NEST_IF);
    s.n_in = 1;
    s.in = copy_ids(b->nest, 1, &predicate);
    nest_append(b, s);
}

void nest_contract(struct nest_builder *b, const nest_id buffer[3],
                   const struct nest_index index[3], int n_axes, const nest_id *axes)
{
    struct nest_statement s = nest_blank(NEST_CONTRACT);
    s.buffer = buffer[0];
    s.index = copy_index(b->nest, index[0]);
    for (int i = 0; i < 2; i++) {
        s.source[i] = buffer[i + 1];
        s.source_index[i] = copy_index(b->nest, index[i + 1]);
    }
    s.n_axes = (uint32_t)n_axes;
    s.axes = copy_ids(b->nest, s.n_axes, axes);
    nest_append(b, s);
}

int nest_term_compare(const void *a, const void *b)
{
    const struct nest_term *x = a, *y = b;
    if (x->is_value != y->is_value)
        return x->is_value ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

struct nest_index nest_index_make(struct arena *arena, int64_t constant, int n,
                                  const struct nest_term *terms)
{
    struct nest_term *sorted = arena_copy(arena, terms, (size_t)n * sizeof *terms);
    if (n > 1)
        qsort(sorted, (size_t)n, sizeof *sorted, nest_term_compare);
    uint32_t count = 0;
    for (int i = 0; i < n; i++) {
        if (count && !nest_term_compare(&sorted[count - 1], &sorted[i]))
            sorted[count - 1].factor =
                (int64_t)((uint64_t)sorted[count - 1].factor + (uint64_t)sorted[i].factor);
        else
            sorted[count++] = sorted[i];
        if (!sorted[count - 1].factor &&
            (i + 1 == n || nest_term_compare(&sorted[i], &sorted[i + 1])))
            count--;
    }
    return (struct nest_index){.constant = constant, .count = count, .terms = sorted};
}

bool nest_index_same_terms(const struct nest_index *a, const struct nest_index *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = !nest_term_compare(&a->terms[i], &b->terms[i]) &&
               a->terms[i].factor == b->terms[i].factor;
    return same;
}

int64_t nest_index_factor(const struct nest_index *x, nest_id axis)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (!x->terms[i].is_value && x->terms[i].id == axis)
            return x->terms[i].factor;
    return 0;
}

bool nest_index_is_axis(const struct nest_index *x, nest_id axis)
{
    return x->count == 1 && !x->constant && nest_index_factor(x, axis) == 1;
}

bool nest_is_layer(const struct nest_statement *s)
{
    const struct nest_index *b = &s->source_index[1];
    bool is = s->n_axes == 2 && nest_index_is_axis(&s->index, s->axes[0]) &&
              nest_index_is_axis(&s->source_index[0], s->axes[1]);
    for (uint32_t i = 0; is && i < b->count; i++)
        is = !b->terms[i].is_value &&
             (b->terms[i].id == s->axes[0] || b->terms[i].id == s->axes[1]);
    return is;
}

uint32_t nest_body_yields(const struct nest_statement *s)
{
    if (s->kind == NEST_WHILE)
        return s->n_yields ? 1 : 0;
    return s->other == NEST_NONE ? s->n_yields : s->n_yields / 2;
}

// --- walks

// Blocks that are deeper than those of any nest are left out.
static void descend(struct nest_descent *d, uint32_t block)
{
    if (block >= d->nest->blocks.count || d->n_open == sizeof d->open / sizeof *d->open)
        return;
    d->open[d->n_open].block = block;
    d->open[d->n_open++].next = 0;
}

struct nest_descent nest_descent_make(const struct nest *n, uint32_t block)
{
    struct nest_descent d;
    d.nest = n;
    d.is_inside = false;
    d.n_open = 0;
    descend(&d, block);
    return d;
}

const struct nest_statement *nest_descent_enter(struct nest_descent *d)
{
    for (; d->n_open; d->n_open--) {
        uint32_t block = d->open[d->n_open - 1].block, next = d->open[d->n_open - 1].next++;
        if (next >= d->nest->blocks.at[block].statements.count)
            continue;
        const struct nest_statement *s =
            nest_statement_at(d->nest, d->nest->blocks.at[block].statements.at[next]);
        descend(d, s->other);
        descend(d, s->body);
        d->is_inside = true;
        return s;
    }
    return NULL;
}

// --- uses

// Value number *k of an index, whose values stand last; else takes their number from *k.
static nest_id use_in_index(const struct nest_index *x, uint32_t *k)
{
    uint32_t first = x->count;
    while (first && x->terms[first - 1].is_value)
        first--;
    if (*k < x->count - first)
        return x->terms[first + *k].id;
    *k -= x->count - first;
    return NEST_NONE;
}

nest_id nest_use(const struct nest_statement *s, uint32_t k)
{
    if (k < s->n_in)
        return s->in[k];
    k -= s->n_in;
    nest_id v = use_in_index(&s->index, &k);
    if (v != NEST_NONE)
        return v;
    if (s->guard != NEST_NONE && k-- == 0)
        return s->guard;
    if (k < s->n_yields)
        return s->yields[k];
    k -= s->n_yields;
    for (uint32_t i = 0; i < s->n_combines; k -= s->combines[i++].n)
        if (k < s->combines[i].n)
            return s->combines[i].value[k];
    for (int i = 0; v == NEST_NONE && i < 2; i++)
        v = use_in_index(&s->source_index[i], &k);
    return v;
}

nest_id nest_use_buffer(const struct nest_statement *s, uint32_t k)
{
    return k == 0 ? s->buffer : k < 3 ? s->source[k - 1] : NEST_NONE;
}

bool nest_takes(const struct nest_statement *s, const bool *values)
{
    nest_for_uses (v, s)
        if (values[v])
            return true;
    return false;
}

bool nest_index_takes(const struct nest_index *x, const bool *values)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].is_value && values[x->terms[i].id])
            return true;
    return false;
}

uint32_t *nest_no_numbers(struct arena *a, uint32_t count)
{
    uint32_t *at = arena_array(a, uint32_t, count + 1);
    memset(at, 0xff, (count + 1) * sizeof *at);
    return at;
}
