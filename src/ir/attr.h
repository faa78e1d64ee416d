// SPDX-License-Identifier: Apache-2.0
// Attributes of a node: a short list of (key, integers or bytes), interned by the module, so that
// equal attributes are the same pointer.  Comparing, hashing, printing and parsing all follow the
// kinds of keys.def; no op has code of its own for them.
#ifndef IR_ATTR_H
#define IR_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ir_module;

enum ir_key {
#define KEY(name, kind) IR_KEY_##name,
#include "ir/keys.def"
#undef KEY
    IR_KEY_COUNT
};

enum ir_key_kind {
    IR_KIND_INT,
    IR_KIND_INTS,
    IR_KIND_DTYPE,
    IR_KIND_FUNCTIONS,
    IR_KIND_AXES,
    IR_KIND_BYTES,
    IR_KIND_TEXT,
};

struct ir_key_info {
    const char *name;
    enum ir_key_kind kind;
};
extern const struct ir_key_info ir_key_table[IR_KEY_COUNT];

struct ir_field {
    enum ir_key key;
    uint32_t count; // numbers, or bytes for BYTES and TEXT (the text's zero not counted)
    union {
        const int64_t *ints;
        const void *bytes;
    };
};

struct ir_attrs {
    uint64_t hash;
    uint32_t id; // number in the module's table
    uint32_t count;
    struct ir_field fields[]; // by increasing key
};

// The interned list with these fields, in any order; data is copied.  NULL when count is 0.
const struct ir_attrs *ir_attrs_make(struct ir_module *m, int count,
                                     const struct ir_field *fields);

#define IR_INTS(k, n, list) {.key = IR_KEY_##k, .count = (uint32_t)(n), .ints = (list)}
#define IR_INT(k, x)                                                                           \
    {                                                                                          \
        .key = IR_KEY_##k, .count = 1, .ints = (const int64_t[]) { (int64_t)(x) }              \
    }
#define IR_BYTES(k, n, data) {.key = IR_KEY_##k, .count = (uint32_t)(n), .bytes = (data)}
// ir_attrs(m, IR_INT(axis, 0), IR_INTS(dims, rank, dims))
#define ir_attrs(m, ...)                                                                       \
    ir_attrs_make((m),                                                                         \
                  (int)(sizeof((struct ir_field[]){__VA_ARGS__}) / sizeof(struct ir_field)),   \
                  (const struct ir_field[]){__VA_ARGS__})

// The field of a key, or NULL.  a may be NULL.
const struct ir_field *ir_field_find(const struct ir_attrs *a, enum ir_key key);
// The one number of a key that must be there.
int64_t ir_attr_int(const struct ir_attrs *a, enum ir_key key);
// The one number, or otherwise.
int64_t ir_attr_int_or(const struct ir_attrs *a, enum ir_key key, int64_t otherwise);
// The list of a key; *count is 0 and the result not NULL when it is absent.
const int64_t *ir_attr_ints(const struct ir_attrs *a, enum ir_key key, int *count);

#endif
