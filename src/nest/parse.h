// SPDX-License-Identifier: Apache-2.0
// The parser of kernels from the inside: what nest/parse.c takes of nest/parse_simple.c.  All give
// false with a message in the lexer.
#ifndef NEST_PARSE_H
#define NEST_PARSE_H

#include "nest/lex.h"

// An axis in scope and the loop it belongs to.
struct nest_parser_axis {
    struct lex_word name;
    nest_id axis, statement;
};

struct nest_parser {
    struct lexer *l;
    struct nest_builder b;
    VEC(nest_id) values; // by number in the text
    VEC(struct nest_parser_axis) open;
    struct hash_table buffers;
    int depth;
};

// %N as a number, as the value that has it, and as the number of a new value.
bool nest_parse_number(struct nest_parser *p, uint32_t *out);
bool nest_parse_value(struct nest_parser *p, nest_id *out);
bool nest_parse_bind(struct nest_parser *p, uint32_t number, nest_id value);
bool nest_parse_order(struct nest_parser *p, enum nest_order *out);
// The place of a statement in the source, if one follows.
bool nest_parse_where(struct nest_parser *p);
bool nest_parse_index(struct nest_parser *p, struct nest_index *out);
// buffer[index]
bool nest_parse_access(struct nest_parser *p, nest_id *buffer, struct nest_index *index);
bool nest_parse_buffer(struct nest_parser *p, bool local);
// A word of `words` behind an @, if one follows: its number, or 0.
bool nest_parse_level(struct nest_parser *p, const char *const *words, unsigned n,
                      unsigned *out);
// name < extent, and levels of the axis
bool nest_parse_axis(struct nest_parser *p, struct lex_word *name, nest_id *out);
// Names of axes, from where they are in scope to where their loop closes.
void nest_parse_open_axis(struct nest_parser *p, struct lex_word name, nest_id axis,
                          nest_id statement);
bool nest_parse_find_axis(struct nest_parser *p, struct lex_word w,
                          struct nest_parser_axis *out);

#endif
