// SPDX-License-Identifier: Apache-2.0
// Operations of a program of text, and the names of values.
#include "interop/text_read.h"

// ---- values

struct mlir_value *text_value(struct text_reader *r, const struct mlir_type *t)
{
    struct mlir_value *v = arena_new(r->arena, struct mlir_value);
    *v = (struct mlir_value){.type = t, .number = r->n_values++};
    return v;
}

struct text_piece text_value_name(struct text_reader *r)
{
    text_expect(r, "%");
    struct text_piece name = {.at = r->at};
    for (; r->at < r->end; r->at++) {
        char c = *r->at;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '$' || c == '.' || c == '-'))
            break;
        if (c == '-' && r->end - r->at > 1 && r->at[1] == '>')
            break;
    }
    name.n = (size_t)(r->at - name.at);
    if (!name.n)
        text_expected(r, "the name of a value");
    return name;
}

static struct text_name *find_name(struct text_reader *r, struct text_piece name)
{
    uint64_t hash = hash_bytes(0, name.at, name.n);
    for (struct hash_probe h = hash_probe(&r->name_table, hash);
         hash_next(&r->name_table, &h);) {
        struct text_name *n = &r->names.at[h.id];
        if (n->name.n == name.n && !memcmp(n->name.at, name.at, name.n))
            return n;
    }
    return NULL;
}

static void define(struct text_reader *r, struct text_piece name,
                   struct mlir_value *const *values, uint32_t count)
{
    struct text_name *n = find_name(r, name);
    if (n && n->count)
        text_fail(r, name.at - 1, "%%%.*s is defined twice", (int)name.n, name.at);
    if (!n) {
        vec_push(r->arena, &r->names, (struct text_name){.name = name});
        hash_insert(r->arena, &r->name_table, hash_bytes(0, name.at, name.n),
                    r->names.count - 1);
        n = &vec_last(&r->names);
    }
    n->values = values;
    n->count = count;
    vec_push(r->arena, &r->defined, (uint32_t)(n - r->names.at));
}

struct mlir_value *text_argument(struct text_reader *r, struct text_piece name,
                                 const struct mlir_type *t)
{
    struct mlir_value **v = arena_new(r->arena, struct mlir_value *);
    *v = text_value(r, t);
    define(r, name, v, 1);
    return *v;
}

uint32_t text_open_scope(const struct text_reader *r) { return r->defined.count; }

void text_close_scope(struct text_reader *r, uint32_t scope)
{
    while (r->defined.count > scope)
        r->names.at[r->defined.at[--r->defined.count]].count = 0;
}

// "%name" or "%name#1"
void text_operand(struct text_reader *r, struct text_statement *s)
{
    const char *where = (text_peek(r), r->at);
    struct text_piece name = text_value_name(r);
    const struct text_name *n = find_name(r, name);
    if (!n || !n->count)
        text_fail(r, where, "%%%.*s is not defined before", (int)name.n, name.at);
    int64_t i = 0;
    if (r->at < r->end && *r->at == '#') {
        r->at++;
        i = text_integer(r);
    }
    if (i < 0 || i >= n->count)
        text_fail(r, where, "%%%.*s has no result %lld", (int)name.n, name.at, (long long)i);
    vec_push(r->arena, &s->operands, n->values[i]);
    vec_push(r->arena, &s->operand_places, where);
}

// ---- regions

static bool is_return(const struct mlir_op *op)
{
    size_t n = strlen(op->name);
    return n > 7 && !strcmp(op->name + n - 7, ".return");
}

// ^name(%a: type, ...):
static void read_label(struct text_reader *r, struct mlir_block *block)
{
    VEC(struct mlir_value *) args = {0};
    bool is_of_function = r->n_values == 0;
    text_expect(r, "^");
    if (!text_word(r).n)
        text_expected(r, "the name of a block");
    if (text_accept(r, "("))
        for (uint32_t n = 0; text_more(r, &n, ")");) {
            struct text_piece name = text_value_name(r);
            text_expect(r, ":");
            struct mlir_value *v = text_argument(r, name, text_type(r));
            vec_push(r->arena, &args, v);
            const struct mlir_attr *location = text_optional_location(r);
            if (is_of_function)
                text_call(r, v, name, location);
        }
    text_expect(r, ":");
    block->args = args.at;
    block->n_args = args.count;
}

static struct mlir_op *text_op(struct text_reader *r);

// From behind the brace that opens it.
static void read_ops(struct text_reader *r, struct mlir_block *block)
{
    VEC(struct mlir_op *) ops = {0};
    text_enter(r);
    while (!text_accept(r, "}")) {
        if (text_sees(r, "^"))
            text_fail(r, r->at, "a region of several blocks is not read");
        if (ops.count && is_return(vec_last(&ops)))
            text_expected(r, "'}' behind the return");
        vec_push(r->arena, &ops, text_op(r));
    }
    if (ops.count && !is_return(vec_last(&ops)))
        text_fail(r, r->at - 1, "this region should end with a return");
    text_leave(r);
    block->ops = ops.at;
    block->n_ops = ops.count;
}

struct mlir_block text_region(struct text_reader *r)
{
    struct mlir_block block = {0};
    uint32_t scope = text_open_scope(r);
    text_expect(r, "{");
    if (text_sees(r, "^"))
        read_label(r, &block);
    read_ops(r, &block);
    text_close_scope(r, scope);
    return block;
}

struct mlir_block text_block(struct text_reader *r, struct mlir_value *const *args,
                             uint32_t n_args)
{
    struct mlir_block block = {.args = args, .n_args = n_args};
    uint32_t scope = text_open_scope(r);
    text_expect(r, "{");
    read_ops(r, &block);
    text_close_scope(r, scope);
    return block;
}

// ---- types

static void take_operands(struct text_reader *r, struct text_statement *s,
                          const struct mlir_type *f)
{
    for (uint32_t i = 0; i < f->n_parts; i++) {
        if (i < f->n_inputs)
            vec_push(r->arena, &s->types, f->parts[i]);
        else
            vec_push(r->arena, &s->results, f->parts[i]);
    }
    s->has_results = true;
}

// (a, b) -> c; a; a, b; a, b -> c; a to b
void text_types(struct text_reader *r, struct text_statement *s)
{
    text_expect(r, ":");
    if (text_sees(r, "(")) {
        take_operands(r, s, text_function_type(r));
        return;
    }
    do {
        vec_push(r->arena, &s->types, text_type(r));
    } while (text_accept(r, ","));
    if (!text_accept(r, "->") && !text_accept_word(r, "to"))
        return;
    s->has_results = true;
    if (text_accept(r, "("))
        for (uint32_t n = 0; text_more(r, &n, ")");)
            vec_push(r->arena, &s->results, text_type(r));
    else
        vec_push(r->arena, &s->results, text_type(r));
}

// What a list of types without an arrow means for the results.
static void infer_results(struct text_reader *r, struct text_statement *s)
{
    const struct mlir_row *row = s->op->row;
    if (row && row->code == MLIR_OP_stablehlo_optimization_barrier)
        for (uint32_t i = 0; i < s->types.count; i++)
            vec_push(r->arena, &s->results, s->types.at[i]);
    else if (s->types.count && !is_return(s->op) && strncmp(s->op->name, "check.", 6) != 0)
        vec_push(r->arena, &s->results, vec_last(&s->types));
}

// The type that is written for operand i, or NULL when it need not be that of the operand.
static const struct mlir_type *written_type(struct text_reader *r,
                                            const struct text_statement *s, uint32_t i)
{
    enum mlir_code code = s->op->row ? s->op->row->code : MLIR_N_CODES;
    uint32_t n = s->types.count;
    if (s->has_results || n == s->operands.count) {
        if (n != s->operands.count)
            text_fail(r, s->where, "%s has %u operands and types for %u", s->op->name,
                      s->operands.count, n);
        return !s->has_results &&
                       (code == MLIR_OP_stablehlo_complex || code == MLIR_OP_stablehlo_tuple)
                   ? NULL
                   : s->types.at[i];
    }
    if (code == MLIR_OP_stablehlo_complex || code == MLIR_OP_stablehlo_tuple || n == 0)
        return NULL;
    if (code == MLIR_OP_stablehlo_select && n == 2)
        return s->types.at[i > 0];
    if (n != 1)
        text_fail(r, s->where, "%s has %u operands and types for %u", s->op->name,
                  s->operands.count, n);
    return s->types.at[0];
}

static void check_operands(struct text_reader *r, const struct text_statement *s)
{
    if (s->has_results && s->operands.count == 0 && s->types.count)
        text_fail(r, s->where, "%s has no operands and types for %u", s->op->name,
                  s->types.count);
    for (uint32_t i = 0; i < s->operands.count; i++) {
        const struct mlir_type *t = written_type(r, s, i), *of = s->operands.at[i]->type;
        if (t && !mlir_types_equal(t, of))
            text_fail(r, s->operand_places.at[i], "this value is %s, and %s is written for it",
                      text_type_name(r, of), text_type_name(r, t));
    }
}

// ---- operations

void text_general(struct text_reader *r, struct text_statement *s)
{
    text_expect(r, "(");
    for (uint32_t n = 0; text_more(r, &n, ")");)
        text_operand(r, s);
    if (text_accept(r, "<")) {
        text_attrs(r, &s->attrs);
        text_expect(r, ">");
    }
    if (text_accept(r, "("))
        for (uint32_t n = 0; text_more(r, &n, ")");)
            vec_push(r->arena, &s->regions, text_region(r));
    if (text_sees(r, "{"))
        text_attrs(r, &s->attrs);
    text_expect(r, ":");
    take_operands(r, s, text_function_type(r));
}

struct left {
    struct text_piece name;
    uint32_t count;
};

static void define_results(struct text_reader *r, struct text_statement *s,
                           const struct left *names, uint32_t n_names)
{
    uint32_t n = s->results.count, named = 0;
    struct mlir_value **results = arena_array(r->arena, struct mlir_value *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        results[i] = text_value(r, s->results.at[i]);
    for (uint32_t i = 0; i < n_names; i++) {
        if (names[i].count <= n - named)
            define(r, names[i].name, results + named, names[i].count);
        named = names[i].count <= n - named ? named + names[i].count : n + 1;
        if (named > n)
            break;
    }
    if (n_names && named != n)
        text_fail(r, names[0].name.at - 1, "%s has %u results, which are not as many as these",
                  s->op->name, n);
    s->op->results = results;
    s->op->n_results = n;
}

static void check_regions(struct text_reader *r, const struct text_statement *s)
{
    const struct mlir_op *op = s->op;
    if (op->row && op->row->n_regions >= 0 && op->n_regions != (uint32_t)op->row->n_regions)
        text_fail(r, s->where, "%s has %d regions, not %u", op->name, op->row->n_regions,
                  op->n_regions);
    for (uint32_t i = 0; i < op->n_regions; i++)
        if (op->regions[i].n_ops == 0)
            text_fail(r, s->where, "a region of %s has no operations", op->name);
}

// Operations of func and of MLIR's own are printed without their dialect.
static const char *full_name(struct text_reader *r, struct text_piece name)
{
    static const char *const names[] = {"func.call", "func.return",
                                        "builtin.unrealized_conversion_cast"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_is(name, strchr(names[i], '.') + 1))
            return text_interned(r, (struct text_piece){names[i], strlen(names[i])});
    return text_interned(r, name);
}

static struct mlir_op *text_op(struct text_reader *r)
{
    VEC(struct left) names = {0};
    struct text_statement s = {.op = arena_new(r->arena, struct mlir_op)};
    if (text_sees(r, "%")) {
        do {
            struct left left = {.name = text_value_name(r), .count = 1};
            if (text_accept(r, ":")) {
                const char *where = (text_peek(r), r->at);
                int64_t count = text_integer(r);
                if (count < 1 || count > UINT32_MAX)
                    text_fail(r, where, "a count of results is 1 or more");
                left.count = (uint32_t)count;
            }
            vec_push(r->arena, &names, left);
        } while (text_accept(r, ","));
        text_expect(r, "=");
    }
    bool is_general = text_sees(r, "\"");
    s.where = (text_peek(r), r->at);
    s.op->place =
        (struct mlir_place){.line = r->line, .column = (uint64_t)(r->at - r->line_start) + 1};
    struct text_piece name = is_general ? text_quoted_name(r) : text_word(r);
    if (!name.n)
        text_expected(r, "an operation");
    s.op->name = full_name(r, name);
    s.op->row = text_intern(r, (struct text_piece){s.op->name, strlen(s.op->name)})->row;
    if (is_general)
        text_general(r, &s);
    else
        text_pretty(r, &s);
    if (!s.has_results)
        infer_results(r, &s);
    check_operands(r, &s);
    s.op->location = text_optional_location(r);
    s.op->operands = s.operands.at;
    s.op->n_operands = s.operands.count;
    s.op->regions = s.regions.at;
    s.op->n_regions = s.regions.count;
    check_regions(r, &s);
    text_normalise(r, s.op, &s.attrs, s.where);
    define_results(r, &s, names.at, names.count);
    return s.op;
}
