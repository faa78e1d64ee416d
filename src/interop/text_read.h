// SPDX-License-Identifier: Apache-2.0
// What the parts of the reader of text share.
//
// A reader stands at a byte of the text.  What does not fit leaves by the guard of the thread
// (base/arena.h) with the status in the reader: nothing here returns a failure.
#ifndef INTEROP_TEXT_READ_H
#define INTEROP_TEXT_READ_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "interop/mlir.h"

struct text_piece {
    const char *at;
    size_t n;
};

// A word that the text has, once: names of operations and attributes, words of enumerations.
struct text_word {
    const char *text;
    size_t n;
    const struct mlir_row *row; // of the operation of that name
    uint32_t last_list;         // of attributes that had it
};

// A location, whose text is known when the aliases are.
struct text_location {
    struct mlir_attr attr;       // the first, by which it is known outside
    struct text_location *child; // what it is said of
    const char *place, *name;
};

// An argument of a function, which is called as its location is, or as in the text.
struct text_called {
    struct mlir_value *value;
    struct text_piece name;
    const struct mlir_attr *location;
};

struct text_alias {
    char sigil; // # or !
    struct text_piece name;
    const char *first; // where it was named first
    bool is_defined;
    const struct mlir_type *type;
    const struct mlir_attr *attr;
    struct text_location *location; // also of an alias that is not defined yet
};

// A name of a value, of those that the place sees when count is not 0.
struct text_name {
    struct text_piece name;
    struct mlir_value *const *values;
    uint32_t count;
};

struct text_resource {
    struct text_piece name;
    const char *where;
    struct mlir_attr *attr; // whose bytes it is
};

// Attributes as they are collected.
struct text_list {
    struct mlir_named *at;
    uint32_t count, capacity;
};

struct text_reader {
    struct arena *arena;
    struct mlir_program *program;
    const char *file, *start, *end;
    const char *at, *line_start;
    uint32_t line;
    int depth;
    jot_status status;

    VEC(struct text_word) words;
    struct hash_table word_table;
    uint32_t lists;
    VEC(const struct mlir_type *) types;
    struct hash_table type_table;
    VEC(struct text_alias) aliases;
    struct hash_table alias_table;
    VEC(struct text_location *) locations;
    VEC(struct text_called) called;
    VEC(struct text_resource) wanted; // of dense_resource
    struct hash_table wanted_table;
    VEC(struct text_name) names;
    struct hash_table name_table;
    VEC(uint32_t) defined; // names, in the order of their definition: what regions forget
    VEC(int64_t) numbers;  // scratch
    uint32_t n_values;     // of the function
    VEC(struct mlir_function) functions;
    struct hash_table function_table;
    bool has_module;
    struct text_list module_attrs;
};

// ---- text_lex.c: bytes ----

// "file:line:column: ..." with the place of `where`, and out by the guard.
__attribute__((format(printf, 3, 4))) _Noreturn void
text_fail(struct text_reader *r, const char *where, const char *format, ...);
// "... should be here, not ..."
_Noreturn void text_expected(struct text_reader *r, const char *what);
void text_enter(struct text_reader *r); // one level deeper, and back
void text_leave(struct text_reader *r);

extern const signed char text_hex_digits[256]; // 1 + the digit, 0 of what is none
static inline int text_hex_digit(char c) { return text_hex_digits[(unsigned char)c] - 1; }

char text_peek(struct text_reader *r);                        // behind blanks; 0 at the end
bool text_sees(struct text_reader *r, const char *text);      // punctuation
bool text_sees_word(struct text_reader *r, const char *word); // not the start of a longer one
bool text_accept(struct text_reader *r, const char *text);
bool text_accept_word(struct text_reader *r, const char *word);
void text_expect(struct text_reader *r, const char *text);
void text_expect_word(struct text_reader *r, const char *word);
// Of a list between brackets, the first of which is read: true when an item follows.  *n counts.
bool text_more(struct text_reader *r, uint32_t *n, const char *close);

// Letters, digits, '_', '$' and '.'; n is 0 when there are none.
struct text_piece text_word(struct text_reader *r);
// A number as it is written, or n 0.
struct text_piece text_number(struct text_reader *r);
int64_t text_integer(struct text_reader *r);
// What stands between quotes, as it is written.
struct text_piece text_quoted(struct text_reader *r);
// A string without its escapes; *out_n may be NULL.
const char *text_string(struct text_reader *r, size_t *out_n);
// One that is a name, with a zero byte behind it.
struct text_piece text_quoted_name(struct text_reader *r);
const char *text_symbol(struct text_reader *r); // @name
// All up to the bracket that closes the one here, both included.
struct text_piece text_balanced(struct text_reader *r);
void text_move(struct text_reader *r, const char *to);

// Until the next is asked for.
struct text_word *text_intern(struct text_reader *r, struct text_piece word);
const char *text_interned(struct text_reader *r, struct text_piece word);
// With a zero byte behind them.
static inline const char *text_copy(struct text_reader *r, const char *at, size_t n)
{
    char *copy = arena_allocate(r->arena, n + 1);
    if (n)
        memcpy(copy, at, n);
    return copy;
}
struct text_mark {
    const char *at, *line_start;
    uint32_t line;
};
static inline struct text_mark text_mark(const struct text_reader *r)
{
    return (struct text_mark){r->at, r->line_start, r->line};
}
static inline void text_rewind(struct text_reader *r, struct text_mark m)
{
    r->at = m.at;
    r->line_start = m.line_start;
    r->line = m.line;
}
static inline const char *text_type_name(struct text_reader *r, const struct mlir_type *t)
{
    struct strbuf s = strbuf_make(r->arena);
    mlir_print_type(&s, t);
    return s.text;
}
static inline bool text_is(struct text_piece p, const char *text)
{
    return strlen(text) == p.n && !memcmp(p.at, text, p.n);
}

// ---- text_type.c ----

bool text_sees_type(struct text_reader *r);
const struct mlir_type *text_type(struct text_reader *r);
const struct mlir_type *text_function_type(struct text_reader *r);
// One of the same content for all.
const struct mlir_type *text_type_of(struct text_reader *r, struct mlir_type t);
const struct mlir_type *text_scalar(struct text_reader *r, enum mlir_element e);

// ---- text_dense.c ----

// dense<...> : type, from behind the word; dense_resource<...> : type.
const struct mlir_attr *text_dense(struct text_reader *r, const char *start);
const struct mlir_attr *text_dense_resource(struct text_reader *r);
// {-# ... #-}, and an error when an array has none.
void text_resources(struct text_reader *r);
void text_settle_resources(struct text_reader *r);

// ---- text_location.c ----

struct text_alias *text_alias_of(struct text_reader *r, char sigil, struct text_piece name);
const struct mlir_attr *text_location(struct text_reader *r); // loc(...), from behind the word
const struct mlir_attr *text_optional_location(struct text_reader *r);
void text_define_location(struct text_reader *r, struct text_piece name); // #name = loc(...)
// What the argument of a function is called; NULL where it has no location.
void text_call(struct text_reader *r, struct mlir_value *v, struct text_piece name,
               const struct mlir_attr *location);
void text_settle_locations(struct text_reader *r);

// ---- text_attr.c ----

const struct mlir_attr *text_attr(struct text_reader *r);
const struct mlir_attr *text_attr_of(struct text_reader *r, struct mlir_attr a);
void text_attrs(struct text_reader *r, struct text_list *out); // {...}
const struct mlir_attr *text_dictionary(struct text_reader *r);
const struct mlir_attr *text_numbers(struct text_reader *r); // [1, 2], array<i64: 1, 2>
void text_alias_definition(struct text_reader *r);           // #name = ...
void text_add(struct text_reader *r, struct text_list *l, const char *name,
              const struct mlir_attr *a);
// #stablehlo.conv<...>, from behind the mark
void text_conv_numbers(struct text_reader *r, struct text_list *out);

// ---- text_normal.c ----

// The attributes in the form of stablehlo.def.
void text_normalise(struct text_reader *r, struct mlir_op *op, struct text_list *list,
                    const char *where);

// ---- text_op.c ----

// An operation as it is read.
struct text_statement {
    struct mlir_op *op;
    const char *where; // its name
    struct text_list attrs;
    VEC(struct mlir_value *) operands;
    VEC(const char *) operand_places;
    VEC(struct mlir_block) regions;
    VEC(const struct mlir_type *) types;   // written for operands, or one for all
    VEC(const struct mlir_type *) results; // when has_results, else to be told from the types
    bool has_results;
};

void text_operand(struct text_reader *r, struct text_statement *s); // %name
// "name"(%a, %b) <{properties}> ({region}, {region}) {attributes} : types, from behind the name
void text_general(struct text_reader *r, struct text_statement *s);
// : and types, or a function type
void text_types(struct text_reader *r, struct text_statement *s);
// { ^name(%a: type): ... }, and of arguments that are named already.  Without operations where there
// are none.
struct mlir_block text_region(struct text_reader *r);
struct mlir_block text_block(struct text_reader *r, struct mlir_value *const *args,
                             uint32_t n_args);
// A value of the next number, and one that has the name from here on.
struct mlir_value *text_value(struct text_reader *r, const struct mlir_type *t);
struct mlir_value *text_argument(struct text_reader *r, struct text_piece name,
                                 const struct mlir_type *t);
struct text_piece text_value_name(struct text_reader *r); // %name, without the mark
// What is defined between these is forgotten.
uint32_t text_open_scope(const struct text_reader *r);
void text_close_scope(struct text_reader *r, uint32_t scope);

// ---- text_form.c ----

// From behind the name on.
void text_pretty(struct text_reader *r, struct text_statement *s);

#endif
