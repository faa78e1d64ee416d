// SPDX-License-Identifier: Apache-2.0
// What the parts of the reader of portable bytecode share: bytecode.c has the container,
// mlir_bytecode.c the operations, vhlo_type.c types, vhlo.c, vhlo_location.c and mesh_attr.c
// attributes, vhlo_ops.c those of operations.
//
// The first fault sticks: bytecode_fail keeps the message, and everything read afterwards is zero
// or NULL, so that only loops and whatever is kept need ask for the status.
#ifndef INTEROP_BYTECODE_H
#define INTEROP_BYTECODE_H

#include "base/hash.h"
#include "base/vec.h"
#include "interop/mlir_defaults.h"

// What is still to be read.
struct bytes {
    const unsigned char *at, *end;
};

enum bytecode_dialect { BYTECODE_BUILTIN, BYTECODE_VHLO, BYTECODE_SDY, BYTECODE_OTHER };

struct bytecode_string {
    const char *text; // ends in a zero byte
    size_t n;
};

// An attribute or a type, which is made when it is asked for.
struct bytecode_entry {
    struct bytes bytes;
    enum bytecode_dialect dialect;
    bool is_text; // the bytes are assembly text
    enum { BYTECODE_UNREAD, BYTECODE_READING, BYTECODE_READ } state;
    union {
        const struct mlir_attr *attr;
        const struct mlir_type *type;
    };
};

// An attribute of an operation, of a row's text of them.
struct bytecode_field {
    const char *name;
    char kind;
    const struct mlir_default *otherwise; // NULL: it has to be there
};

struct bytecode_op {
    const char *name; // "stablehlo.add"
    const struct mlir_row *row;
    enum bytecode_dialect dialect;
    int version;
    uint32_t n_fields;
    const struct bytecode_field *fields;
};

struct bytecode {
    struct mlir_program *program;
    struct arena *arena, *scratch; // of the program, and until it is read
    const char *file;
    const unsigned char *begin, *end; // all bytes
    jot_status status;
    uint64_t version;
    uint64_t n_strings, n_dialects, n_ops, n_attrs, n_types, n_properties;
    struct bytecode_string *strings;
    struct bytecode_string *dialects;
    struct bytecode_op *ops;
    struct bytecode_entry *attrs, *types;
    struct bytes *properties;
    // Types that are equal are one: they may share parts in a way that makes them exponential.
    struct hash_table type_table;
    VEC(const struct mlir_type *) all_types;
    const unsigned char *op; // that is being read, for messages
    size_t allowance;
    int depth;
};

// ---- bytes ----

__attribute__((format(printf, 3, 4))) void
bytecode_fail(struct bytecode *b, const unsigned char *where, const char *format, ...);
unsigned char bytecode_byte(struct bytecode *b, struct bytes *s);
uint64_t bytecode_number(struct bytecode *b, struct bytes *s);
int64_t bytecode_signed(struct bytecode *b, struct bytes *s);
// How many things follow, each of at least so many bytes.
uint64_t bytecode_count(struct bytecode *b, struct bytes *s, size_t least);
struct bytes bytecode_bytes(struct bytecode *b, struct bytes *s, uint64_t n);
const struct bytecode_string *bytecode_string(struct bytecode *b, struct bytes *s);
// What one entry says may be copied many times: no more than in proportion to the file.
bool bytecode_spend(struct bytecode *b, size_t bytes);

enum bytecode_dialect bytecode_dialect_of(const char *name);
// A section at the begin of s, and its number.
struct bytes bytecode_section(struct bytecode *b, struct bytes *s, int *out_id);
// Reads the tables; the section of the operations.
struct bytes bytecode_open(struct bytecode *b);

// ---- types (vhlo_type.c) and attributes (vhlo.c); NULL after a fault ----

const struct mlir_attr *bytecode_attr(struct bytecode *b, uint64_t index);
const struct mlir_type *bytecode_type(struct bytecode *b, uint64_t index);
// One that bytecode_attr gave as MLIR_INTS; NULL when it is no list of integers or bools.
const struct mlir_attr *bytecode_numbers(struct bytecode *b, const struct mlir_attr *a);

// The one that is equal to a type, and that of a number by itself.
const struct mlir_type *bytecode_the_type(struct bytecode *b, const struct mlir_type *t);
const struct mlir_type *bytecode_element_type(struct bytecode *b, enum mlir_element e);
struct mlir_attr *bytecode_new_attr(struct bytecode *b, enum mlir_attr_kind kind);
// Begins to read an entry; false when it was read, or cannot be.
bool bytecode_begin(struct bytecode *b, struct bytecode_entry *entries, uint64_t n,
                    uint64_t index, const char *what);
// The text of an attribute of the dialect sdy, and of one of VHLO of that number that speaks of a mesh
// (mesh_attr.c).
const char *bytecode_sdy_text(struct bytecode *b, struct bytes *s);
const char *bytecode_mesh_text(struct bytecode *b, struct bytes *s, uint64_t code);
// A copy of text that perhaps does not end.
const char *bytecode_text_of(struct bytecode *b, struct bytes s);

// ---- locations (vhlo_location.c) ----

bool bytecode_is_location(const struct bytecode_entry *e);
const struct mlir_attr *bytecode_location(struct bytecode *b, uint64_t index);
// The string of one that is a name, or NULL.
const struct mlir_attr *bytecode_location_name(struct bytecode *b, uint64_t index);

// ---- operations (vhlo_ops.c) ----

// Name, row, version and fields of the operation `name` of a dialect.
struct bytecode_op bytecode_op_find(struct bytecode *b, const struct bytecode_string *dialect,
                                    const struct bytecode_string *name);
// The attributes of an operation: of its properties or its dictionary, each of which may be
// missing.
void bytecode_attributes(struct bytecode *b, const struct bytecode_op *kind, struct mlir_op *op,
                         struct bytes *properties, const struct mlir_attr *dictionary);

#endif
