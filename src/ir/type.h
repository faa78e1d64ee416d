// SPDX-License-Identifier: Apache-2.0
// The type of a value: element type, static shape, and the named axes it varies over.
//
// A type is eight bytes, passed and compared by value.  Its shape is a number in the shape table
// of the module, so types of one module are equal exactly when their bits are.
#ifndef IR_TYPE_H
#define IR_TYPE_H

#include "base/dtype.h"
#include "base/strbuf.h"

#include <string.h>

#define IR_MAX_RANK 32
#define IR_MAX_AXES 16 // named ones, in a module

struct ir_module;

// A named axis, that of a map or of a mesh of devices: letters, digits and underscores.
struct ir_axis {
    const char *name;
    int64_t size;
    bool is_far; // its lanes are in several processes: an exchange along it takes microseconds
};

struct ir_type {
    uint32_t shape; // in the module's shape table
    uint8_t dtype;  // enum jot_dtype
    uint8_t rank;
    uint16_t
        varies; // set of named axes of the module, 1 << number; empty outside of named maps
};

static inline bool ir_type_equal(struct ir_type a, struct ir_type b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}
// The same but for the named axes.
static inline bool ir_type_alike(struct ir_type a, struct ir_type b)
{
    a.varies = b.varies;
    return ir_type_equal(a, b);
}
static inline jot_dtype ir_dtype(struct ir_type t) { return (jot_dtype)t.dtype; }

// The type with the given extents; dims may be NULL for rank 0.
struct ir_type ir_type_make(struct ir_module *m, jot_dtype dtype, int rank,
                            const int64_t *dims);
// The same shape with another element type.
struct ir_type ir_type_with(struct ir_type t, jot_dtype dtype);
// The type with a leading axis of the size, at most IR_MAX_RANK axes in all; and without its first.
struct ir_type ir_type_stack(struct ir_module *m, struct ir_type t, int64_t size);
struct ir_type ir_type_row(struct ir_module *m, struct ir_type t);
// The type without the named axis; the type itself for a negative number.
static inline struct ir_type ir_type_unnamed(struct ir_type t, int axis)
{
    if (axis >= 0)
        t.varies &= (uint16_t)~(1u << axis);
    return t;
}
// The extents, rank of them; valid as long as the module.
const int64_t *ir_dims(const struct ir_module *m, struct ir_type t);
// The number of elements.
int64_t ir_count(const struct ir_module *m, struct ir_type t);
// The number of the axis of that name and size in the module; -1 when there are IR_MAX_AXES others.
int ir_axis_add(struct ir_module *m, const char *name, int64_t size);
// Adds axis number `axis` to the text: "i:4".
void ir_axis_print(struct strbuf *s, const struct ir_module *m, int axis);

// "f32[2,3]", or "f32[2,3]<i:4>" of what varies over an axis i of size 4.
void ir_type_print(struct strbuf *s, const struct ir_module *m, struct ir_type t);
// The same, in the module's arena.
const char *ir_type_text(struct ir_module *m, struct ir_type t);

#endif
