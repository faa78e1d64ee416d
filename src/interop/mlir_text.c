// SPDX-License-Identifier: Apache-2.0
// A program of text: aliases, a module, its functions.
#include "interop/text_read.h"
#include "interop/write_text.h"

#include "base/status.h"

// ---- functions

struct signature {
    struct text_list attrs; // of the function
    VEC(const struct mlir_type *) types;
    VEC(const struct mlir_attr *) arg_attrs, result_attrs;
    VEC(struct mlir_value *) args;
    uint32_t n_inputs;
};

static const struct mlir_attr *optional_dictionary(struct text_reader *r)
{
    if (!text_sees(r, "{"))
        return NULL;
    const struct mlir_attr *a = text_dictionary(r);
    return a->n ? a : NULL;
}

// (%a: type {attributes}, ...), or types alone where there is no body
static void read_inputs(struct text_reader *r, struct signature *s)
{
    text_expect(r, "(");
    for (uint32_t n = 0; text_more(r, &n, ")");) {
        bool is_named = text_sees(r, "%");
        struct text_piece name = {0};
        if (is_named) {
            name = text_value_name(r);
            text_expect(r, ":");
        }
        const struct mlir_type *t = text_type(r);
        vec_push(r->arena, &s->types, t);
        struct mlir_value *v = is_named ? text_argument(r, name, t) : NULL;
        if (v)
            vec_push(r->arena, &s->args, v);
        vec_push(r->arena, &s->arg_attrs, optional_dictionary(r));
        const struct mlir_attr *location = text_optional_location(r);
        if (v)
            text_call(r, v, name, location);
    }
    s->n_inputs = s->types.count;
}

// type, or (type {attributes}, ...): braces behind a single type are the body.
static void read_results(struct text_reader *r, struct signature *s)
{
    bool is_list = text_accept(r, "(");
    for (uint32_t n = 0; is_list ? text_more(r, &n, ")") : n++ == 0;) {
        vec_push(r->arena, &s->types, text_type(r));
        vec_push(r->arena, &s->result_attrs, is_list ? optional_dictionary(r) : NULL);
    }
}

static void check_returns(struct text_reader *r, const struct mlir_function *f,
                          const char *where)
{
    const struct mlir_op *end = f->body->ops[f->body->n_ops - 1];
    uint32_t n = f->type->n_parts - f->type->n_inputs;
    if (end->n_operands != n)
        text_fail(r, where, "@%s has %u results and returns %u", f->name, n, end->n_operands);
    for (uint32_t i = 0; i < n; i++) {
        const struct mlir_type *a = f->type->parts[f->type->n_inputs + i];
        if (!mlir_types_equal(a, end->operands[i]->type))
            text_fail(r, where, "result %u of @%s is %s, and %s is returned", i, f->name,
                      text_type_name(r, a), text_type_name(r, end->operands[i]->type));
    }
}

static void add_function(struct text_reader *r, struct mlir_function *f, const char *where)
{
    uint64_t hash = hash_bytes(0, f->name, strlen(f->name));
    for (struct hash_probe h = hash_probe(&r->function_table, hash);
         hash_next(&r->function_table, &h);)
        if (!strcmp(r->functions.at[h.id].name, f->name))
            text_fail(r, where, "@%s is defined twice", f->name);
    f->n_values = r->n_values;
    if (f->body)
        check_returns(r, f, where);
    vec_push(r->arena, &r->functions, *f);
    hash_insert(r->arena, &r->function_table, hash, r->functions.count - 1);
}

static void set_body(struct text_reader *r, struct mlir_function *f, struct mlir_block body)
{
    if (body.n_ops)
        f->body = arena_copy(r->arena, &body, sizeof body);
}

static struct mlir_place place_of(struct text_reader *r)
{
    text_peek(r);
    return (struct mlir_place){.line = r->line,
                               .column = (uint64_t)(r->at - r->line_start) + 1};
}

// From behind func.func.
static void read_function(struct text_reader *r)
{
    struct mlir_function f = {0};
    struct signature s = {0};
    r->n_values = 0;
    f.is_private = text_accept_word(r, "private");
    if (!f.is_private && !text_accept_word(r, "public"))
        text_accept_word(r, "nested");
    f.place = place_of(r);
    const char *where = r->at;
    f.name = text_symbol(r);
    uint32_t scope = text_open_scope(r);
    read_inputs(r, &s);
    if (text_accept(r, "->"))
        read_results(r, &s);
    if (text_accept_word(r, "attributes"))
        text_attrs(r, &s.attrs);
    if (text_sees(r, "{")) {
        if (s.args.count != s.n_inputs)
            text_fail(r, where, "@%s has a body, so all its arguments have names", f.name);
        const char *body = r->at;
        set_body(r, &f, text_block(r, s.args.at, s.args.count));
        if (!f.body)
            text_fail(r, body, "@%s has no operations", f.name);
    }
    text_close_scope(r, scope);
    text_optional_location(r);
    f.type = text_type_of(r, (struct mlir_type){.kind = MLIR_FUNCTION,
                                                .n_parts = s.types.count,
                                                .n_inputs = s.n_inputs,
                                                .parts = s.types.at});
    f.args = s.arg_attrs.at;
    f.results = s.result_attrs.at;
    add_function(r, &f, where);
}

static const struct mlir_attr *find_attr(const struct text_list *l, const char *name,
                                         enum mlir_attr_kind kind)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (!strcmp(l->at[i].name, name) && l->at[i].attr->kind == kind)
            return l->at[i].attr;
    return NULL;
}

static bool is_name(const struct mlir_attr *a) { return a && a->n && strlen(a->text) == a->n; }

// A dictionary or NULL for each of n.
static const struct mlir_attr *const *
dictionaries(struct text_reader *r, const struct mlir_attr *list, uint32_t n, const char *where)
{
    const struct mlir_attr **all = arena_array(r->arena, const struct mlir_attr *, n + 1);
    if (list && list->n != n)
        text_fail(r, where,
                  "attributes of %zu arguments or results stand here, and there are %u",
                  list->n, n);
    for (uint32_t i = 0; list && i < n; i++)
        if (list->parts[i]->kind == MLIR_DICTIONARY && list->parts[i]->n)
            all[i] = list->parts[i];
    return all;
}

// "func.func"() <{...}> ({ ... }) : () -> (), from behind the name.
static void read_general_function(struct text_reader *r, const char *where,
                                  struct mlir_place place)
{
    struct text_statement s = {.op = arena_new(r->arena, struct mlir_op), .where = where};
    r->n_values = 0;
    s.op->name = "func.func";
    text_general(r, &s);
    const struct mlir_attr *name = find_attr(&s.attrs, "sym_name", MLIR_STRING);
    const struct mlir_attr *type = find_attr(&s.attrs, "function_type", MLIR_TYPE);
    const struct mlir_attr *visibility = find_attr(&s.attrs, "sym_visibility", MLIR_STRING);
    if (!is_name(name) || !type || type->type->kind != MLIR_FUNCTION)
        text_fail(r, where, "a function has a sym_name, and a function_type");
    struct mlir_function f = {.name = name->text,
                              .is_private = visibility && !strcmp(visibility->text, "private"),
                              .type = type->type,
                              .place = place};
    if (s.regions.count)
        set_body(r, &f, s.regions.at[0]);
    uint32_t n = f.type->n_inputs;
    bool fits = s.regions.count == 1 && (!f.body || f.body->n_args == n);
    for (uint32_t i = 0; fits && f.body && i < n; i++)
        fits = mlir_types_equal(f.body->args[i]->type, f.type->parts[i]);
    if (!fits)
        text_fail(r, where, "the body of @%s does not have the arguments of its function_type",
                  f.name);
    f.args = dictionaries(r, find_attr(&s.attrs, "arg_attrs", MLIR_ARRAY), n, where);
    f.results = dictionaries(r, find_attr(&s.attrs, "res_attrs", MLIR_ARRAY),
                             f.type->n_parts - n, where);
    text_optional_location(r);
    add_function(r, &f, where);
}

// ---- modules

// A mesh is an attribute of the module: sdy.mesh @name = <...> {...}, from behind the word.
static void read_mesh(struct text_reader *r)
{
    const char *start = (text_peek(r), r->at);
    text_symbol(r);
    text_expect(r, "=");
    text_peek(r);
    text_balanced(r);
    const char *text = text_copy(r, start, (size_t)(r->at - start));
    text_add(r, &r->module_attrs, "sdy.mesh",
             text_attr_of(r, (struct mlir_attr){.kind = MLIR_OPAQUE, .text = text}));
    if (text_sees(r, "{"))
        text_dictionary(r);
    text_optional_location(r);
}

static void read_general_mesh(struct text_reader *r, const char *where)
{
    struct text_statement s = {.op = arena_new(r->arena, struct mlir_op), .where = where};
    s.op->name = "sdy.mesh";
    text_general(r, &s);
    const struct mlir_attr *name = find_attr(&s.attrs, "sym_name", MLIR_STRING);
    const struct mlir_attr *mesh = find_attr(&s.attrs, "mesh", MLIR_OPAQUE);
    if (!is_name(name) || !mesh)
        text_fail(r, where, "a mesh has a sym_name, and a mesh");
    const char *text = write_mesh(r->arena, name->text, mesh->text);
    text_add(r, &r->module_attrs, "sdy.mesh",
             text_attr_of(r, (struct mlir_attr){.kind = MLIR_OPAQUE, .text = text}));
    text_optional_location(r);
}

static void read_module(struct text_reader *r, bool is_general);

// Something that stands in a module, or outside of all.
static void read_item(struct text_reader *r)
{
    struct mlir_place place = place_of(r);
    const char *where = r->at;
    bool is_general = text_sees(r, "\"");
    struct text_piece name = is_general ? text_quoted_name(r) : text_word(r);
    bool is_module = text_is(name, "module") || text_is(name, "builtin.module");
    if (is_module && !r->has_module)
        read_module(r, is_general);
    else if (is_module)
        text_fail(r, where, "one module is read");
    else if (text_is(name, "func.func") && is_general)
        read_general_function(r, where, place);
    else if (text_is(name, "func.func"))
        read_function(r);
    else if (text_is(name, "sdy.mesh") && is_general)
        read_general_mesh(r, where);
    else if (text_is(name, "sdy.mesh"))
        read_mesh(r);
    else {
        r->at = where;
        text_expected(r, "a module or function");
    }
}

static void read_items(struct text_reader *r)
{
    text_expect(r, "{");
    if (text_accept(r, "^")) {
        text_word(r);
        text_expect(r, ":");
    }
    while (!text_accept(r, "}"))
        read_item(r);
}

// module @name attributes {...} { ... }, or "builtin.module"() <{...}> ({ ... }) {...} : () -> ()
static void read_module(struct text_reader *r, bool is_general)
{
    r->has_module = true;
    if (is_general) {
        text_expect(r, "(");
        text_expect(r, ")");
        if (text_accept(r, "<")) {
            text_attrs(r, &r->module_attrs);
            text_expect(r, ">");
        }
        text_expect(r, "(");
        read_items(r);
        text_expect(r, ")");
        if (text_sees(r, "{"))
            text_attrs(r, &r->module_attrs);
        text_expect(r, ":");
        text_function_type(r);
    } else {
        if (text_sees(r, "@")) {
            const char *name = text_symbol(r);
            text_add(r, &r->module_attrs, "sym_name",
                     text_attr_of(r, (struct mlir_attr){.kind = MLIR_STRING,
                                                        .n = strlen(name),
                                                        .text = name}));
        }
        if (text_accept_word(r, "attributes"))
            text_attrs(r, &r->module_attrs);
        read_items(r);
    }
    text_optional_location(r);
}

static void read_program(struct text_reader *r)
{
    r->program->file = r->file = arena_text(r->arena, r->file);
    const char *zero = memchr(r->at, 0, (size_t)(r->end - r->at));
    if (zero)
        text_fail(r, zero, "a zero byte is no text");
    while (text_peek(r)) {
        if (text_accept(r, "{-#"))
            text_resources(r);
        else if (text_sees(r, "#") || text_sees(r, "!"))
            text_alias_definition(r);
        else
            read_item(r);
    }
    if (!r->functions.count)
        text_expected(r, "a function");
    text_settle_locations(r);
    text_settle_resources(r);
    r->program->functions = r->functions.at;
    r->program->n_functions = r->functions.count;
    r->program->attrs = r->module_attrs.at;
    r->program->n_attrs = r->module_attrs.count;
}

// A fault leaves by the guard.
static jot_status read_with(struct arena *scratch, struct mlir_program *p, void *ctx)
{
    struct text_reader *r = ctx;
    struct arena_guard guard;
    (void)scratch;
    r->program = p;
    r->arena = p->arena;
    if (arena_guard_left(&guard))
        return r->status != JOT_OK ? r->status : status_out_of_memory();
    read_program(r);
    arena_guard_close(&guard);
    return JOT_OK;
}

jot_status mlir_read_text(const char *file, const void *bytes, size_t n,
                          struct mlir_program **out)
{
    struct text_reader r = {
        .file = file, .start = bytes, .line_start = bytes, .at = bytes, .line = 1};
    r.end = r.start + n;
    return mlir_make(read_with, &r, out);
}
