// SPDX-License-Identifier: Apache-2.0
// A program of MLIR: functions of operations of StableHLO, CHLO and func.
//
// The readers make it (mlir_text.c of text, mlir_bytecode.c of portable bytecode), the writers write
// it, and to_graph.c traces it.  It is the same whatever it was read from: attributes have the names
// and the flat form that stablehlo.def gives them, whether they came as
// `dims = [0, 1]`, as `#stablehlo.gather<offset_dims = [0]>` or as a tensor of bytecode.
//
// Everything lives in the arena of the program and is not changed once it is read; the elements of large
// constants are arrays, which executables share.
#ifndef INTEROP_MLIR_H
#define INTEROP_MLIR_H

#include "base/arena.h"
#include "base/vec.h"

#include "jot/array.h"
#include "jot/dtype.h"
#include "jot/status.h"

#include <stdarg.h>
#include <stdatomic.h>

enum mlir_element {
#define ELEMENT(name, text, bits, kind, vhlo, export, dtype) MLIR_##name,
#include "interop/elements.def"
#undef ELEMENT
    MLIR_N_ELEMENTS
};

struct mlir_element_row {
    const char *text;
    int bits;
    char kind;
    int vhlo, export;
    jot_dtype dtype;
};
extern const struct mlir_element_row mlir_elements[MLIR_N_ELEMENTS];
// The element of the text `n` bytes long; MLIR_N_ELEMENTS when there is none.
enum mlir_element mlir_element_find(const char *text, size_t n);

#define MLIR_DYNAMIC INT64_MIN // an extent that is not known

enum mlir_type_kind {
    MLIR_TENSOR,
    MLIR_SCALAR,   // an element by itself: of numbers in attributes
    MLIR_TUPLE,    // parts
    MLIR_FUNCTION, // parts: inputs, then results
    MLIR_TOKEN,
    MLIR_OTHER, // of which only the text is known: quantized, memref, unranked, future ...
};

struct mlir_type {
    enum mlir_type_kind kind;
    enum mlir_element element; // of a tensor or scalar
    int rank;
    const int64_t *dims;
    uint32_t n_parts, n_inputs;
    const struct mlir_type *const *parts;
    const char *text; // of MLIR_OTHER
};

enum mlir_attr_kind {
    MLIR_UNIT,
    MLIR_BOOL,       // integer
    MLIR_INT,        // integer, of a type that may be NULL
    MLIR_REAL,       // real, of a type
    MLIR_STRING,     // text, n bytes
    MLIR_SYMBOL,     // text: a function, without the @
    MLIR_ENUM,       // text: a word of an enumeration, as LT or DEFAULT
    MLIR_TYPE,       // type
    MLIR_ARRAY,      // n parts
    MLIR_DICTIONARY, // n named
    MLIR_INTS, // n numbers: a list of integers or bools, pairs one after the other; of a tensor of two axes `type`
    MLIR_DENSE,    // a tensor of `type`: bytes as below
    MLIR_LOCATION, // text: what a message says of it, as "train.py:17"; NULL when nothing is known
    MLIR_OPAQUE, // text, as it stands
};

struct mlir_named;

// Bytes of a tensor are row-major and little-endian; one byte an element for i1 (0 or 1) and for
// integers of less than eight bits (sign-extended where signed); pairs for complex numbers.  One
// element stands for all of them in a splat.
struct mlir_attr {
    enum mlir_attr_kind kind;
    bool is_splat;
    const struct mlir_type *type;
    size_t n;               // bytes of a dense one
    const jot_array *array; // that these are of, or NULL
    union {
        int64_t integer;
        double real;
        const char *text;
        const int64_t *numbers;
        const unsigned char *bytes;
        const struct mlir_attr *const *parts;
        const struct mlir_named *named;
    };
};

struct mlir_named {
    const char *name;
    const struct mlir_attr *attr;
};

struct mlir_value {
    const struct mlir_type *type;
    uint32_t number; // dense in the function, regions included
    // Of an argument of a function: a string, what it is called; or NULL.
    const struct mlir_attr *called;
};

struct mlir_block {
    uint32_t n_args, n_ops;
    struct mlir_value *const *args;
    struct mlir_op *const *ops; // the last one is a return
};

// Where an operation stands.  line 0: at offset `column`.
struct mlir_place {
    uint32_t line;
    uint64_t column;
};

struct mlir_op {
    const struct mlir_row *row; // NULL: an operation that the table does not have
    const char *name;           // "stablehlo.add", "func.call"
    uint32_t n_operands, n_results, n_attrs, n_regions;
    struct mlir_value *const *operands;
    struct mlir_value *const *results;
    const struct mlir_named *attrs;
    const struct mlir_block *regions; // each is one block
    struct mlir_place place;
    const struct mlir_attr *location; // of the program that it was lowered from, or NULL
};

struct mlir_function {
    const char *name;
    bool is_private;
    const struct mlir_type *type; // MLIR_FUNCTION
    const struct mlir_attr *const
        *args; // a dictionary of attributes for each argument, or NULL
    const struct mlir_attr *const *results;
    const struct mlir_block *body;
    uint32_t n_values; // in the body
    struct mlir_place place;
};

// Memory that a program is read from, and in which its large constants may stay.
struct mlir_memory {
    atomic_int uses;
    void *bytes;
    void (*release)(void *bytes, void *ctx); // when nothing uses it any more; or NULL
    void *ctx;
};
// One use less.
void mlir_memory_leave(struct mlir_memory *m);

struct mlir_program {
    struct arena *arena;
    struct mlir_memory *memory; // while it is read, where large constants may stay in it
    const char *file;           // for messages
    uint32_t n_functions, n_attrs;
    struct mlir_function *functions;
    const struct mlir_named *attrs; // of the module
    VEC(jot_array *) arrays;        // of large constants
};

// The row of an operation in stablehlo.def.
enum mlir_code {
#define HLO(dialect, name, ...) MLIR_OP_##dialect##_##name,
#include "interop/stablehlo.def"
#undef HLO
    MLIR_N_CODES
};

// How an operation is printed, besides `"name"(operands) <{attributes}> : type`.
enum mlir_form {
    MLIR_FORM_GENERIC,
    MLIR_FORM_SAME,  // op operands : type, or a function type where types differ
    MLIR_FORM_ATTRS, // words of its own: the operation's code tells
};

struct mlir_row {
    const char *dialect, *name;
    enum mlir_code code;
    int version;   // of the operation in the bytecode that is written; 0: it has none there
    int n_regions; // -1: any number
    enum mlir_form form;
    const char *attrs; // see stablehlo.def
};
extern const struct mlir_row mlir_rows[MLIR_N_CODES];
// NULL when there is none.  `name` is n bytes without the dialect.
const struct mlir_row *mlir_row_find(const char *dialect, const char *name, size_t n);

// ---- readers and writers ----

// Regions in regions, attributes in attributes and types in types.
enum { MLIR_MAX_DEPTH = 1000 };

// The program in n bytes, of which it keeps nothing; `file` names them in messages.  A program of text may
// begin with anything but the four bytes of bytecode.
jot_status mlir_read_text(const char *file, const void *bytes, size_t n,
                          struct mlir_program **out);
jot_status mlir_read_bytecode(const char *file, const void *bytes, size_t n,
                              struct mlir_program **out);
// The same of bytes in the memory, which each constant that stays there uses; NULL: none does.
jot_status mlir_read_bytecode_in(struct mlir_memory *m, const char *file, const void *bytes,
                                 size_t n, struct mlir_program **out);
void mlir_release(struct mlir_program *p); // NULL is fine
// A program in an arena of its own, which `make` fills in, inside a guard of that arena and of `scratch`.
typedef jot_status mlir_maker(struct arena *scratch, struct mlir_program *p, void *ctx);
jot_status mlir_make(mlir_maker *make, void *ctx, struct mlir_program **out);
// As StableHLO and JAX print it, without locations.  Reading it gives the program again; constants of
// more than 32 elements are bytes in hex.  It leaves by the guard of the thread when memory is out.
struct strbuf;
void mlir_write_text(struct strbuf *out, const struct mlir_program *p);

// Adds the program as portable bytecode.  Operations and types that have no portable form are refused, those of
// CHLO among them (portable.h).  Inside a guard of the arena of `out`.
struct strbuf;
jot_status mlir_write_bytecode(struct strbuf *out, const struct mlir_program *p);

// Fails with "file:line:column: operation: message", or the offset where there is no line; op may be NULL.
__attribute__((format(printf, 4, 0))) jot_status mlir_fail(jot_status status, const char *file,
                                                           const struct mlir_op *op,
                                                           const char *format, va_list args);

// ---- asking ----

// The attribute of that name, or NULL.
const struct mlir_attr *mlir_attr_find(const struct mlir_op *op, const char *name);
// Of an attribute that is a number, a bool or a unit; `otherwise` when it is not there.
int64_t mlir_int(const struct mlir_op *op, const char *name, int64_t otherwise);
// The numbers of a list; NULL and 0 when it is not there or empty.
const int64_t *mlir_ints(const struct mlir_op *op, const char *name, size_t *out_n);
// Whether groups of replicas are given by axes of a mesh, #stablehlo.replica_group_mesh_axes<...>: text, no list.
bool mlir_is_mesh_axes(const struct mlir_attr *a);
// The rows and columns of a list that is a table where it is written: pairs, or groups of replicas.
bool mlir_table_of(const char *name, const struct mlir_attr *list, int64_t *dims);
// Of a string, symbol or word; NULL when it is not there.
const char *mlir_text(const struct mlir_op *op, const char *name);

// Bytes of a constant that is an array.
#define MLIR_LARGE ((size_t)1 << 16)
// Lets the elements of a dense attribute, a->n bytes at `at`, stay in the memory that the program is read from, as
// an array; those that are not aligned are moved down, to `begin` at most.  False where they cannot stay.
bool mlir_stays(struct mlir_program *p, struct mlir_attr *a, const unsigned char *begin,
                const unsigned char *at);
// Room for the elements of a dense attribute, whose type is set: n bytes, of an array where they are many and of
// a type of jot.
unsigned char *mlir_make_room(struct mlir_program *p, struct mlir_attr *a, size_t n);
const struct mlir_function *mlir_function_find(const struct mlir_program *p, const char *name);
// Elements of a tensor; -1 when that is not known or too large for an int64_t.
int64_t mlir_elements_of(const struct mlir_type *t);
// As text: tensor<2x3xf32>.
void mlir_print_type(struct strbuf *s, const struct mlir_type *t);
bool mlir_types_equal(const struct mlir_type *a, const struct mlir_type *b);

#endif
