// SPDX-License-Identifier: Apache-2.0
// What the parts of the writer of portable bytecode share: bytecode_write.c has the container and the
// operations, vhlo_write.c attributes, vhlo_write_type.c types.
#ifndef INTEROP_BYTECODE_WRITE_H
#define INTEROP_BYTECODE_WRITE_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "interop/mlir.h"

// Bytes that are written once, however often they are asked for, and have a number.  The first come
// from `bytes`; those of a large tensor follow where they lie.
struct written {
    const char *bytes;
    size_t n;
    const unsigned char *more;
    size_t n_more;
    bool is_vhlo;
};

struct written_table {
    VEC(struct written) at;
    struct hash_table table;
};

struct bytecode_writer {
    struct arena *scratch;
    const struct mlir_program *program;
    jot_status status;
    struct written_table strings, attrs, types, properties, names;
    uint32_t *values; // numbers in the file by those of the function
    int depth;
};

__attribute__((format(printf, 3, 4))) void bytecode_write_fail(struct bytecode_writer *w,
                                                               const struct mlir_op *op,
                                                               const char *format, ...);

void bytecode_put(struct strbuf *s, uint64_t number);
void bytecode_put_signed(struct strbuf *s, int64_t number);
// The number of bytes in a table.
uint32_t bytecode_entry(struct bytecode_writer *w, struct written_table *t, struct written e);
uint32_t bytecode_text(struct bytecode_writer *w, const char *text, size_t n);

// ---- vhlo_write_type.c ----

uint32_t vhlo_type(struct bytecode_writer *w, const struct mlir_type *t);
uint32_t vhlo_element(struct bytecode_writer *w, enum mlir_element e);
// A type of MLIR itself.
uint32_t builtin_type(struct bytecode_writer *w, const struct mlir_type *t);

// ---- vhlo_write.c ----

uint32_t vhlo_string(struct bytecode_writer *w, const char *text, size_t n);
// Attributes of each of n arguments or results.
uint32_t vhlo_dictionaries(struct bytecode_writer *w, const struct mlir_attr *const *each,
                           uint32_t n);
uint32_t vhlo_type_attr(struct bytecode_writer *w, const struct mlir_type *t);
uint32_t builtin_location(struct bytecode_writer *w, const struct mlir_attr *location);
// The attributes of an operation of a row: the number of its properties.
uint32_t vhlo_properties(struct bytecode_writer *w, const struct mlir_op *op);
// Those that the row does not have, as a dictionary; false when there are none.
bool builtin_discardable(struct bytecode_writer *w, const struct mlir_row *row,
                         const struct mlir_named *attrs, uint32_t n, uint32_t *out_attr);

#endif
