// SPDX-License-Identifier: Apache-2.0
// What the parts of the writer of text share.
#ifndef INTEROP_WRITE_TEXT_H
#define INTEROP_WRITE_TEXT_H

#include "base/strbuf.h"
#include "interop/mlir.h"

// What a value is called in the text.
struct write_name {
    enum { WRITE_RESULT, WRITE_ARGUMENT, WRITE_CARRIED } kind;
    uint32_t number;
    uint32_t result, n_results; // of its operation
};

struct writer {
    struct strbuf *out;
    struct write_name *names; // by the number of a value of the function
    uint32_t n_results, n_args, n_carried;
    int indent;
};

// ---- write_attr.c ----

void write_symbol(struct strbuf *out, const char *name);
void write_string(struct strbuf *out, const char *text, size_t n);
// @name = <["x"=2]>, of a mesh "#sdy.mesh<["x"=2]>".
const char *write_mesh(struct arena *arena, const char *name, const char *mesh);
void write_key(struct strbuf *out, const char *name); // of an attribute
// The attribute of that name, of an operation of the row or of a dictionary (NULL).
void write_attr(struct strbuf *out, const struct mlir_row *row, const char *name,
                const struct mlir_attr *a);
// As forms have it, by its letter: [1, 2], LT, 3.  NULL is an empty list.
void write_in_form(struct strbuf *out, char letter, const struct mlir_attr *a);
void write_numbers(struct strbuf *out, const struct mlir_attr *a);
// Whether only the dialect of the attribute is known, of bytecode: it is left out.
bool write_is_unread(const struct mlir_attr *a);
void write_dictionary(struct strbuf *out, const struct mlir_named *named, size_t n);

// ---- write_form.c ----

// The attributes of an operation that are written, by their index in its list.
struct write_said {
    const struct mlir_op *op;
    bool *at;
};

// Whether the operation is one that its form can say.
bool write_fits_form(const struct mlir_op *op);
void write_form(struct writer *w, struct write_said *said);

// ---- write_op.c ----

// The attribute, which is written with that; NULL when there is none.
const struct mlir_attr *write_say(struct write_said *said, const char *name, size_t n);
void write_value(struct writer *w, const struct mlir_value *v);
void write_argument(struct writer *w, const struct mlir_value *v); // %arg1: type
void write_block(struct writer *w, const struct mlir_block *block);
void write_op(struct writer *w, const struct mlir_op *op);

#endif
