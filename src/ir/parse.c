// SPDX-License-Identifier: Apache-2.0
// Reads what print.c writes, through a plain builder, which infers and checks every type.  A
// statement is a line.  Value names need not be numbers; any text whatever either gives a graph
// or a message with line and column.
#include "base/status.h"
#include "base/strbuf.h"
#include "ir/infer.h"
#include "ir/literal.h"

#include <stdarg.h>
#include <stdio.h>

struct name {
    const char *text;
    uint32_t length;
    ir_id value;
};

struct parser {
    struct ir_module *m;
    const char *text, *at;
    jot_status status;
    struct ir_builder b;
    VEC(struct name) names; // values of the function being read
    struct hash_table name_table;
    VEC(uint32_t) functions; // numbers in the module of those read
};

struct word {
    const char *text;
    size_t length;
};

// One line "%a, %b = op %c {...} : types" between reading and building.
struct statement {
    VEC(struct word) results;
    VEC(ir_id) operands;
    VEC(struct ir_type) types;
    VEC(struct ir_field) fields;
    const char *start, *op_start, *data; // data: the elements of a const, read by its type
    enum ir_op op;
};

__attribute__((format(printf, 3, 4))) static bool fail(struct parser *p, const char *where,
                                                       const char *format, ...)
{
    int line = 1;
    const char *start = p->text;
    char message[1024];
    va_list args;
    for (const char *c = p->text; c < where; c++) {
        if (*c == '\n') {
            line++;
            start = c + 1;
        }
    }
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    p->status = status_fail(JOT_ERR_ARGUMENT, "line %d, column %d: %s", line,
                            (int)(where - start) + 1, message);
    return false;
}

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
}

// To the next thing that is neither blank nor comment, over line ends too.
static void skip_lines(struct parser *p)
{
    for (;; p->at++) {
        skip_blanks(p);
        if (*p->at == ';')
            p->at += strcspn(p->at, "\n");
        if (*p->at != '\n')
            return;
    }
}

static bool accept(struct parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool expect(struct parser *p, char c)
{
    if (accept(p, c))
        return true;
    if (*p->at == '\n' || *p->at == 0)
        return fail(p, p->at, "the line ends where '%c' should be", c);
    return fail(p, p->at, "'%c' should be here", c);
}

static bool expect_end_of_line(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == ';')
        p->at += strcspn(p->at, "\n");
    if (*p->at == '\n' || *p->at == 0)
        return true;
    return fail(p, p->at, "the line should end here");
}

static bool word_is(struct word w, const char *text)
{
    return strlen(text) == w.length && !memcmp(w.text, text, w.length);
}

// Letters, digits and underscores, and the characters of more.
static struct word read_word(struct parser *p, char more)
{
    skip_blanks(p);
    struct word w = {.text = p->at};
    while (strbuf_is_word_char(*p->at) || (*p->at && *p->at == more))
        p->at++;
    w.length = (size_t)(p->at - w.text);
    return w;
}

static bool read_int(struct parser *p, int64_t *out)
{
    skip_blanks(p);
    return literal_read_int(&p->at, out) || fail(p, p->at, "a 64-bit integer should be here");
}

// "%name"
static bool read_name(struct parser *p, struct word *out)
{
    if (!expect(p, '%'))
        return false;
    *out = read_word(p, '.');
    return out->length ? true : fail(p, p->at, "a value's name should follow '%%'");
}

static const struct name *find_name(const struct parser *p, struct word w)
{
    uint64_t hash = hash_bytes(0, w.text, w.length);
    for (struct hash_probe h = hash_probe(&p->name_table, hash);
         hash_next(&p->name_table, &h);) {
        const struct name *n = &p->names.at[h.id];
        if (n->length == w.length && !memcmp(n->text, w.text, w.length))
            return n;
    }
    return NULL;
}

static bool define(struct parser *p, struct word w, ir_id value)
{
    if (find_name(p, w))
        return fail(p, w.text, "%%%.*s is defined twice", (int)w.length, w.text);
    vec_push(p->m->arena, &p->names,
             (struct name){.text = w.text, .length = (uint32_t)w.length, .value = value});
    hash_insert(p->m->arena, &p->name_table, hash_bytes(0, w.text, w.length),
                p->names.count - 1);
    return true;
}

static bool read_value(struct parser *p, ir_id *out)
{
    struct word w;
    if (!read_name(p, &w))
        return false;
    const struct name *n = find_name(p, w);
    if (!n)
        return fail(p, w.text, "%%%.*s is not defined before this line", (int)w.length, w.text);
    *out = n->value;
    return true;
}

static bool read_dtype(struct parser *p, jot_dtype *out)
{
    struct word w = read_word(p, 0);
    int dtype = dtype_find(w.text, w.length);
    if (dtype < 0)
        return fail(p, w.text,
                    "'%.*s' is not an element type; they are called f32, i32, bool, ...",
                    (int)w.length, w.text);
    *out = (jot_dtype)dtype;
    return true;
}

// "i:4", as its number in the module.
static bool read_axis(struct parser *p, int64_t *out)
{
    struct word w = read_word(p, 0);
    int64_t size;
    if (!w.length)
        return fail(p, w.text, "the name of an axis should be here");
    if (!expect(p, ':') || !read_int(p, &size))
        return false;
    if (size < 0)
        return fail(p, w.text, "size %lld of a named axis is negative", (long long)size);
    char *name = arena_allocate(p->m->arena, w.length + 1);
    memcpy(name, w.text, w.length);
    *out = ir_axis_add(p->m, name, size);
    return *out >= 0 || fail(p, w.text, "a module has at most %d named axes", IR_MAX_AXES);
}

// "<i:4,j:2>", or nothing.
static bool read_varies(struct parser *p, uint16_t *out)
{
    int64_t axis;
    if (!accept(p, '<'))
        return true;
    do {
        if (!read_axis(p, &axis))
            return false;
        *out |= (uint16_t)(1u << axis);
    } while (accept(p, ','));
    return expect(p, '>');
}

// "f32[2,3]<i:4>"
static bool read_type(struct parser *p, struct ir_type *out)
{
    jot_dtype dtype;
    int64_t dims[IR_MAX_RANK];
    int rank = 0;
    skip_blanks(p);
    const char *start = p->at;
    if (!read_dtype(p, &dtype) || !expect(p, '['))
        return false;
    while (!accept(p, ']')) {
        if (rank == IR_MAX_RANK)
            return fail(p, p->at, "a type has at most %d axes", IR_MAX_RANK);
        if ((rank && !expect(p, ',')) || !read_int(p, &dims[rank]))
            return false;
        if (dims[rank++] < 0)
            return fail(p, start, "size %lld of axis %d is negative", (long long)dims[rank - 1],
                        rank - 1);
    }
    if (!infer_dims_fit(dtype, rank, dims))
        return fail(p, start, "the type is larger than 2^62 bytes");
    *out = ir_type_make(p->m, dtype, rank, dims);
    return read_varies(p, &out->varies);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int hex_byte(const char *at)
{
    int high = hex_digit(at[0]), low = high < 0 ? -1 : hex_digit(at[1]);
    return low < 0 ? -1 : high << 4 | low;
}

// A quoted text into memory of the module.
static bool read_text(struct parser *p, const char **out, uint32_t *length)
{
    struct strbuf s = strbuf_make(p->m->arena);
    if (!expect(p, '"'))
        return false;
    for (; *p->at != '"'; p->at++) {
        char c = *p->at;
        if (c == 0 || c == '\n')
            return fail(p, p->at, "the line ends inside a text: '\"' is missing");
        if (c == '\\' && p->at[1] == 'x') {
            int byte = hex_byte(p->at + 2);
            if (byte < 0)
                return fail(p, p->at, "'\\x' takes two lower-case hexadecimal digits");
            c = (char)byte;
            p->at += 3;
        } else if (c == '\\') {
            c = *++p->at;
            if (c != '"' && c != '\\')
                return fail(p, p->at - 1, "after '\\' there is '\\', '\"' or 'x'");
        }
        strbuf_add_bytes(&s, &c, 1);
    }
    p->at++;
    *out = s.text;
    *length = (uint32_t)s.length;
    return true;
}

// "0x0011" in the order of memory.
static bool read_bytes(struct parser *p, struct ir_field *f)
{
    skip_blanks(p);
    if (p->at[0] != '0' || p->at[1] != 'x')
        return fail(p, p->at, "bytes are written as 0x and hexadecimal digits");
    p->at += 2;
    size_t n = strspn(p->at, "0123456789abcdef");
    if (n % 2 || n / 2 > UINT32_MAX)
        return fail(p, p->at, "%zu hexadecimal digits are not whole bytes", n);
    uint8_t *bytes = arena_array(p->m->arena, uint8_t, n / 2 + 1);
    for (size_t i = 0; i < n / 2; i++)
        bytes[i] = (uint8_t)hex_byte(p->at + 2 * i);
    p->at += n;
    f->count = (uint32_t)(n / 2);
    f->bytes = bytes;
    return true;
}

static bool read_function(struct parser *p, int64_t *out)
{
    if (!expect(p, '@') || !read_int(p, out))
        return false;
    if (*out < 0 || *out >= p->functions.count)
        return fail(p, p->at, "@%lld is not defined before this line", (long long)*out);
    *out = p->functions.at[*out];
    return true;
}

static bool read_list(struct parser *p, struct ir_field *f)
{
    enum ir_key_kind kind = ir_key_table[f->key].kind;
    VEC(int64_t) list = {0};
    vec_reserve(p->m->arena, &list, 1);
    if (!expect(p, '['))
        return false;
    while (!accept(p, ']')) {
        int64_t x;
        if ((list.count && !expect(p, ',')) ||
            !(kind == IR_KIND_FUNCTIONS ? read_function(p, &x)
              : kind == IR_KIND_AXES    ? read_axis(p, &x)
                                        : read_int(p, &x)))
            return false;
        vec_push(p->m->arena, &list, x);
    }
    f->count = list.count;
    f->ints = list.at;
    return true;
}

static bool read_field(struct parser *p, struct ir_field *f)
{
    const char *text;
    jot_dtype dtype;
    int64_t *one = arena_new(p->m->arena, int64_t);
    f->count = 1;
    f->ints = one;
    switch (ir_key_table[f->key].kind) {
    case IR_KIND_INT:
        return read_int(p, one);
    case IR_KIND_DTYPE:
        if (!read_dtype(p, &dtype))
            return false;
        *one = dtype;
        return true;
    case IR_KIND_INTS:
    case IR_KIND_FUNCTIONS:
    case IR_KIND_AXES:
        return read_list(p, f);
    case IR_KIND_BYTES:
        return read_bytes(p, f);
    case IR_KIND_TEXT:
        if (!read_text(p, &text, &f->count))
            return false;
        f->bytes = text;
        return true;
    }
    return false;
}

static bool read_key(struct parser *p, const struct statement *s, struct ir_field *f)
{
    struct word w = read_word(p, 0);
    int key = 0;
    while (key < IR_KEY_COUNT && !word_is(w, ir_key_table[key].name))
        key++;
    if (key == IR_KEY_COUNT)
        return fail(p, w.text, "'%.*s' is not an attribute", (int)w.length, w.text);
    f->key = (enum ir_key)key;
    if (s->op == IR_const && (f->key == IR_KEY_dtype || f->key == IR_KEY_dims))
        return fail(p, w.text, "a const has %s in its type", ir_key_table[key].name);
    bool twice = f->key == IR_KEY_data && s->data;
    for (uint32_t i = 0; i < s->fields.count; i++)
        twice = twice || s->fields.at[i].key == f->key;
    if (twice)
        return fail(p, w.text, "the attribute %s is there twice", ir_key_table[key].name);
    return expect(p, '=');
}

// Past the elements of a const: to the comma or brace outside brackets that ends them.
static bool skip_data(struct parser *p)
{
    skip_blanks(p);
    for (int depth = 0;; p->at++) {
        char c = *p->at;
        if (c == 0 || c == '\n')
            return fail(p, p->at, "the line ends where '}' should be");
        if (depth == 0 && (c == ',' || c == '}'))
            return true;
        depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    }
}

static bool read_attrs(struct parser *p, struct statement *s)
{
    if (!accept(p, '{') || accept(p, '}'))
        return true;
    do {
        struct ir_field f;
        if (!read_key(p, s, &f))
            return false;
        if (s->op == IR_const && f.key == IR_KEY_data) {
            skip_blanks(p);
            s->data = p->at;
            if (!skip_data(p))
                return false;
            continue;
        }
        if (!read_field(p, &f))
            return false;
        vec_push(p->m->arena, &s->fields, f);
    } while (accept(p, ','));
    return expect(p, '}');
}

// The elements of a const of type t: bytes, one element, or a list.
static bool read_data(struct parser *p, struct ir_type t, struct ir_field *f)
{
    int64_t count = ir_count(p->m, t);
    int bytes = dtype_get(ir_dtype(t))->bytes;
    const char *start = p->at;
    if (start[0] == '0' && start[1] == 'x' && strspn(start + 2, "0123456789abcdef")) {
        const char *end = start + 2 + strspn(start + 2, "0123456789abcdef");
        if (*end != '.' && *end != 'p')
            return read_bytes(p, f);
    }
    if (t.rank && !expect(p, '['))
        return false;
    struct strbuf s = strbuf_make(p->m->arena);
    for (int64_t i = 0; i < count; i++) {
        uint8_t element[16];
        if (i && !expect(p, ','))
            return false;
        skip_blanks(p);
        if (!literal_read(&p->at, ir_dtype(t), element))
            return fail(p, p->at, "element %lld of %s should be here", (long long)i,
                        ir_type_text(p->m, t));
        strbuf_add_bytes(&s, element, (size_t)bytes);
    }
    f->count = (uint32_t)s.length;
    f->bytes = s.text;
    return !t.rank || expect(p, ']');
}

// Type and elements as the attributes that a const carries.
static bool add_const_fields(struct parser *p, struct statement *s)
{
    if (!s->data || s->types.count != 1)
        return fail(p, s->op_start, "a const needs data and one type");
    struct ir_type t = s->types.at[0];
    struct ir_field data = {.key = IR_KEY_data};
    const char *after = p->at;
    int64_t *dtype = arena_new(p->m->arena, int64_t);
    *dtype = t.dtype;
    p->at = s->data;
    if (!read_data(p, t, &data))
        return false;
    skip_blanks(p);
    if (*p->at != ',' && *p->at != '}')
        return fail(p, p->at, "the data of %s should end here", ir_type_text(p->m, t));
    p->at = after;
    vec_push(p->m->arena, &s->fields,
             (struct ir_field){.key = IR_KEY_dtype, .count = 1, .ints = dtype});
    vec_push(p->m->arena, &s->fields, (struct ir_field)IR_INTS(dims, t.rank, ir_dims(p->m, t)));
    vec_push(p->m->arena, &s->fields, data);
    return true;
}

static bool build_node(struct parser *p, struct statement *s)
{
    struct ir_builder *b = &p->b;
    if (s->op == IR_const && !add_const_fields(p, s))
        return false;
    const struct ir_attrs *attrs = ir_attrs_make(p->m, (int)s->fields.count, s->fields.at);
    ir_build(b, s->op, (int)s->operands.count, s->operands.at, attrs);
    if (b->status != JOT_OK)
        return fail(p, s->op_start, "%s: %s", ir_op_get(s->op)->name, b->message);
    const struct ir_node *n = &vec_last(&b->graph->nodes);
    if (n->n_out != s->results.count || n->n_out != s->types.count)
        return fail(p, s->start, "%s has %u results; %u names and %u types are given",
                    ir_op_get(s->op)->name, n->n_out, s->results.count, s->types.count);
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct ir_type t = ir_type_in(b, n->out + i), written = s->types.at[i];
        if (!ir_type_equal(t, written))
            return fail(p, s->start, "result %u of %s is %s, not %s", i, ir_op_get(s->op)->name,
                        ir_type_text(p->m, t), ir_type_text(p->m, written));
        if (!define(p, s->results.at[i], n->out + i))
            return false;
    }
    return true;
}

static bool read_statement(struct parser *p)
{
    struct statement s = {.start = p->at};
    if (*p->at == '%') {
        do {
            struct word w;
            if (!read_name(p, &w))
                return false;
            vec_push(p->m->arena, &s.results, w);
        } while (accept(p, ','));
        if (!expect(p, '='))
            return false;
    }
    struct word w = read_word(p, 0);
    int op = ir_op_find(w.text, w.length);
    if (op < 0 || op == IR_param)
        return fail(p, w.text, "'%.*s' is not an op", (int)w.length, w.text);
    s.op = (enum ir_op)op;
    s.op_start = w.text;
    skip_blanks(p);
    while (*p->at == '%' || s.operands.count) {
        ir_id v;
        if (s.operands.count && !accept(p, ','))
            break;
        if (!read_value(p, &v))
            return false;
        vec_push(p->m->arena, &s.operands, v);
    }
    if (!read_attrs(p, &s))
        return false;
    for (char before = ':'; accept(p, before); before = ',') {
        struct ir_type t;
        if (!read_type(p, &t))
            return false;
        vec_push(p->m->arena, &s.types, t);
    }
    return expect_end_of_line(p) && build_node(p, &s);
}

static bool read_return(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '%') {
        do {
            ir_id v;
            if (!read_value(p, &v))
                return false;
            ir_output(&p->b, v);
        } while (accept(p, ','));
    }
    if (!expect_end_of_line(p))
        return false;
    skip_lines(p);
    return expect(p, '}') && expect_end_of_line(p);
}

// "@0 name(%0: f32[2], %1: f32[]) {"
static bool read_header(struct parser *p)
{
    int64_t number;
    uint32_t length;
    const char *name = NULL;
    if (!expect(p, '@') || !read_int(p, &number))
        return false;
    if (number != p->functions.count)
        return fail(p, p->at, "functions are numbered in order: this is @%u",
                    p->functions.count);
    skip_blanks(p);
    if (*p->at == '"') {
        if (!read_text(p, &name, &length))
            return false;
    } else if (*p->at != '(') {
        struct word w = read_word(p, '.');
        char *copy = arena_allocate(p->m->arena, w.length + 1);
        memcpy(copy, w.text, w.length);
        name = copy;
    }
    p->b = ir_builder_make(p->m, name, IR_BUILD_PLAIN);
    p->names.count = 0;
    p->name_table = (struct hash_table){0};
    if (!expect(p, '('))
        return false;
    for (bool first = true; !accept(p, ')'); first = false) {
        struct word w;
        struct ir_type t;
        if ((!first && !expect(p, ',')) || !read_name(p, &w) || !expect(p, ':') ||
            !read_type(p, &t) || !define(p, w, ir_param(&p->b, t)))
            return false;
    }
    return expect(p, '{') && expect_end_of_line(p);
}

static bool read_one_function(struct parser *p)
{
    if (!read_header(p))
        return false;
    for (;;) {
        skip_lines(p);
        const char *start = p->at;
        if (*p->at == 0 || *p->at == '}')
            return fail(p, p->at, "a function ends with 'return' and then '}'");
        if (word_is(read_word(p, 0), "return"))
            return read_return(p);
        p->at = start;
        if (!read_statement(p))
            return false;
    }
}

static bool read_version(struct parser *p)
{
    int64_t version;
    skip_lines(p);
    if (!word_is(read_word(p, 0), "jot") || !word_is(read_word(p, 0), "ir"))
        return fail(p, p->text, "a graph's text starts with the line 'jot ir 1'");
    if (!read_int(p, &version))
        return false;
    if (version != 1)
        return fail(p, p->at, "the text has version %lld; this jot reads version 1",
                    (long long)version);
    return expect_end_of_line(p);
}

jot_status ir_graph_parse(struct ir_module *m, const char *text, struct ir_graph **out_g)
{
    struct parser p = {.m = m, .text = text, .at = text};
    struct ir_graph *last = NULL;
    if (!read_version(&p))
        return p.status;
    for (skip_lines(&p); *p.at; skip_lines(&p)) {
        // Only the last one is not yet a function that others may use.
        if (last)
            vec_push(m->arena, &p.functions, ir_function_add(m, last));
        if (!word_is(read_word(&p, 0), "function"))
            fail(&p, p.at, "'function' should be here");
        if (p.status != JOT_OK || !read_one_function(&p))
            return p.status;
        last = ir_finish(&p.b);
    }
    if (!last)
        fail(&p, p.at, "the text has no function");
    if (p.status == JOT_OK)
        *out_g = last;
    return p.status;
}
