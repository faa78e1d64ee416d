// SPDX-License-Identifier: Apache-2.0
// Result types and messages of every rule, as a table: operand types, attributes, and either
// the types of the results or the message.
#include "ir/build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST(k, ...)                                                                           \
    {                                                                                          \
        .key = IR_KEY_##k, .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),        \
        .ints = (const int64_t[])                                                              \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
#define NONE(k) {.key = IR_KEY_##k, .count = 0, .ints = (const int64_t[]){0}}
#define DATA(n, text) {.key = IR_KEY_data, .count = (n), .bytes = (text)}
#define WITH(...) {__VA_ARGS__}

enum { MOST_FIELDS = 8 };

struct row {
    enum ir_op op;
    const char *operands, *want;
    struct ir_field fields[MOST_FIELDS];
};

// clang-format off
static const struct row rows[] = {
    // Elementwise: equal dtypes, ranks equal or 0, extents equal or 1.
    {IR_add, "f32[2,3] f32[2,3]", "f32[2,3]", {{0}}},
    {IR_add, "f32[] f32[2,3]", "f32[2,3]", {{0}}},
    {IR_add, "f32[2,1] f32[1,3]", "f32[2,3]", {{0}}},
    {IR_add, "f32[0,1] f32[1,3]", "f32[0,3]", {{0}}},
    {IR_add, "i8[] i8[]", "i8[]", {{0}}},
    {IR_add, "c64[2] c64[2]", "c64[2]", {{0}}},
    {IR_add, "f32[2,3] f32[2]", "f32[2,3] and f32[2] do not broadcast: axis 1 is 3 in one and 2 in the other", {{0}}},
    {IR_add, "f32[2,3] f32[3]", "f32[2,3] and f32[3] have 2 and 1 axes: broadcast_in_dim one of them first", {{0}}},
    {IR_add, "f32[2] f64[2]", "f32 and f64 operands: convert one", {{0}}},
    {IR_add, "bool[2] bool[2]", "add of bool[2]: it takes numbers: convert it first", {{0}}},
    {IR_add, "f32[2]", "add takes 2 operands, not 1", {{0}}},
    {IR_fma, "f32[2,1] f32[1,3] f32[]", "f32[2,3]", {{0}}},
    {IR_fma, "f32[2,1] f32[1,3] f32[4,1]", "f32[2,1] and f32[4,1] do not broadcast: axis 0 is 2 in one and 4 in the other", {{0}}},
    {IR_exp, "f16[4]", "f16[4]", {{0}}},
    {IR_exp, "c128[4]", "c128[4]", {{0}}},
    {IR_exp, "i32[3]", "exp of i32[3]: it takes floats and complex numbers: convert it first", {{0}}},
    {IR_floor, "c64[3]", "floor of c64[3]: it takes floats: convert it first, or take a part of it", {{0}}},
    {IR_rem, "c64[3] c64[3]", "rem of c64[3]: it takes integers and floats: convert it first, or take a part of it", {{0}}},
    {IR_lt, "c64[3] c64[3]", "bool[3]", {{0}}},
    {IR_not, "bool[3]", "bool[3]", {{0}}},
    {IR_not, "f32[3]", "not of f32[3]: it takes integers and bool: convert it first", {{0}}},
    {IR_clz, "bool[3]", "clz of bool[3]: it takes integers: convert it first", {{0}}},
    {IR_real, "f32[3]", "real of f32[3]: it takes complex numbers: convert it first", {{0}}},
    {IR_real, "c64[3]", "f32[3]", {{0}}},
    {IR_imag, "c128[3]", "f64[3]", {{0}}},
    {IR_conj, "c128[3]", "c128[3]", {{0}}},
    {IR_abs, "c128[3]", "f64[3]", {{0}}},
    {IR_abs, "i16[3]", "i16[3]", {{0}}},
    {IR_complex, "f32[3] f32[]", "c64[3]", {{0}}},
    {IR_complex, "f64[3] f64[3]", "c128[3]", {{0}}},
    {IR_complex, "f16[3] f16[3]", "complex of f16[3]: complex numbers have f32 or f64 parts: convert it first", {{0}}},
    {IR_eq, "c64[2,1] c64[3]", "c64[2,1] and c64[3] have 2 and 1 axes: broadcast_in_dim one of them first", {{0}}},
    {IR_eq, "bool[2] bool[]", "bool[2]", {{0}}},
    {IR_lt, "u8[2] u8[2]", "bool[2]", {{0}}},
    {IR_is_finite, "bf16[2]", "bool[2]", {{0}}},
    {IR_select, "bool[] i32[2] i32[1]", "i32[2]", {{0}}},
    {IR_select, "i32[2] i32[2] i32[2]", "select by i32[2]: the first operand is bool: compare it with 0 first", {{0}}},
    {IR_select, "bool[2] i32[2] u32[2]", "i32 and u32 operands: convert one", {{0}}},
    {IR_clamp, "f32[] f32[2] f32[]", "f32[2]", {{0}}},
    {IR_integer_pow, "f32[2]", "f32[2]", WITH(LIST(exponent, -2))},
    {IR_integer_pow, "f32[2]", "integer_pow needs the attribute exponent, one number", {{0}}},
    {IR_integer_pow, "i32[2]", "i32[2] to the power -2: integers have no negative powers: convert it to a float first", WITH(LIST(exponent, -2))},
    {IR_reduce_precision, "f32[2]", "f32[2]", WITH(LIST(exponent_bits, 8), LIST(mantissa_bits, 7))},
    {IR_reduce_precision, "f32[2]", "0 exponent and 7 mantissa bits: there are 1 to 11 and 0 to 52", WITH(LIST(exponent_bits, 0), LIST(mantissa_bits, 7))},
    {IR_threefry2x32, "u32[] u32[] u32[4] u32[4]", "u32[4] u32[4]", {{0}}},
    {IR_threefry2x32, "u64[] u64[] u64[4] u64[4]", "threefry2x32 of u64[]: it takes u32: convert it first", {{0}}},
    {IR_convert, "f32[2]", "bf16[2]", WITH(LIST(dtype, JOT_BF16))},
    {IR_convert, "f32[2]", "convert needs the attribute dtype, one number", {{0}}},
    {IR_convert, "f32[2]", "99 is not a dtype: they are 0 to 14", WITH(LIST(dtype, 99))},
    {IR_bitcast, "f32[2]", "u32[2]", WITH(LIST(dtype, JOT_U32))},
    {IR_bitcast, "f32[2]", "bitcast of f32[2] to u64: elements have 4 and 8 bytes", WITH(LIST(dtype, JOT_U64))},
    {IR_bitcast, "u8[2]", "bitcast of u8[2] to bool: it takes integers and floats", WITH(LIST(dtype, JOT_BOOL))},
    {IR_bitcast, "c64[2]", "bitcast of c64[2] to f64: it takes integers and floats", WITH(LIST(dtype, JOT_F64))},
    {IR_stop_gradient, "i32[2]", "i32[2]", {{0}}},
    {IR_variable, "f32[2]", "f32[2]", {{0}}},
    {IR_barrier, "i32[2] f32[]", "i32[2] f32[]", {{0}}},

    // Types that attributes give.
    {IR_const, "", "f32[2]", WITH(LIST(dtype, JOT_F32), LIST(dims, 2), DATA(8, "12345678"))},
    {IR_const, "", "i8[]", WITH(LIST(dtype, JOT_I8), NONE(dims), DATA(1, "1"))},
    {IR_const, "", "f32[0]", WITH(LIST(dtype, JOT_F32), LIST(dims, 0), DATA(0, ""))},
    {IR_const, "", "const of f32[2] has 7 bytes of data, not 8", WITH(LIST(dtype, JOT_F32), LIST(dims, 2), DATA(7, "1234567"))},
    {IR_const, "", "element 1 of a bool const is 2: 0 or 1", WITH(LIST(dtype, JOT_BOOL), LIST(dims, 2), DATA(2, "\1\2"))},
    {IR_const, "", "size -3 of axis 1 is negative", WITH(LIST(dtype, JOT_F32), LIST(dims, 2, -3), DATA(0, ""))},
    {IR_iota, "", "i32[2,3]", WITH(LIST(dtype, JOT_I32), LIST(dims, 2, 3), LIST(axis, 1))},
    {IR_iota, "", "axis 2 of i32[2,3]: axes are -2 to 1", WITH(LIST(dtype, JOT_I32), LIST(dims, 2, 3), LIST(axis, 2))},
    {IR_iota, "", "axis 0 of i32[]: it has no axes", WITH(LIST(dtype, JOT_I32), LIST(axis, 0))},
    {IR_iota, "", "iota of bool: it counts in numbers", WITH(LIST(dtype, JOT_BOOL), LIST(dims, 2), LIST(axis, 0))},
    {IR_iota, "", "f32[1152921504606846976,4] is larger than 2^62 bytes", WITH(LIST(dtype, JOT_F32), LIST(dims, INT64_C(1) << 60, 4), LIST(axis, 0))},
    {IR_iota, "", "i8[1152921504606846976,4]", WITH(LIST(dtype, JOT_I8), LIST(dims, INT64_C(1) << 60, 4), LIST(axis, 0))},
    {IR_iota, "", "i8[3,2305843009213693952] is larger than 2^62 bytes", WITH(LIST(dtype, JOT_I8), LIST(dims, 3, INT64_C(1) << 61), LIST(axis, 0))},
    {IR_iota, "", "i8[4611686018427387904,0,2] is larger than 2^62 bytes", WITH(LIST(dtype, JOT_I8), LIST(dims, INT64_C(1) << 62, 0, 2), LIST(axis, 0))},
    {IR_iota, "", "a result of 33 axes: at most 32", WITH(LIST(dtype, JOT_I8), LIST(dims, 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), LIST(axis, 0))},

    // Changes of index.
    {IR_broadcast_in_dim, "f32[3]", "f32[2,3]", WITH(LIST(dims, 2, 3), LIST(axes, 1))},
    {IR_broadcast_in_dim, "f32[1,3]", "f32[2,3,4]", WITH(LIST(dims, 2, 3, 4), LIST(axes, 0, 1))},
    {IR_broadcast_in_dim, "f32[]", "f32[2]", WITH(LIST(dims, 2), NONE(axes))},
    {IR_broadcast_in_dim, "f32[3]", "f32[3] does not broadcast to f32[2,4]: axis 0 is 3 and would be 4", WITH(LIST(dims, 2, 4), LIST(axes, 1))},
    {IR_broadcast_in_dim, "f32[2,3]", "axis 0 after axis 1 of f32[3,2]: broadcast_in_dim takes its axes in increasing order", WITH(LIST(dims, 3, 2), LIST(axes, 1, 0))},
    {IR_broadcast_in_dim, "f32[2,2]", "axis 1 of f32[3,2] is listed twice", WITH(LIST(dims, 3, 2), LIST(axes, 1, 1))},
    {IR_broadcast_in_dim, "f32[3]", "broadcast_in_dim has 0 numbers in the attribute axes and needs 1", WITH(LIST(dims, 2, 3))},
    {IR_reshape, "f32[2,3]", "f32[3,2,1]", WITH(LIST(dims, 3, 2, 1))},
    {IR_reshape, "f32[0,3]", "f32[7,0]", WITH(LIST(dims, 7, 0))},
    {IR_reshape, "f32[1]", "f32[]", WITH(NONE(dims))},
    {IR_reshape, "f32[2,3]", "f32[2,3] has 6 elements and f32[4] has 4", WITH(LIST(dims, 4))},
    {IR_reshape, "f32[2,3]", "size -1 of axis 0 is negative", WITH(LIST(dims, -1))},
    {IR_transpose, "f32[2,3,4]", "f32[4,2,3]", WITH(LIST(axes, 2, 0, 1))},
    {IR_transpose, "f32[2,3]", "axis 1 of f32[2,3] is listed twice: a transpose lists each axis once", WITH(LIST(axes, 1, 1))},
    {IR_transpose, "f32[2,3]", "axis 3 of f32[2,3]: axes are -2 to 1", WITH(LIST(axes, 3, 1))},
    {IR_transpose, "f32[2,3]", "transpose has 1 numbers in the attribute axes and needs 2", WITH(LIST(axes, 1))},
    {IR_rev, "f32[2,3]", "f32[2,3]", WITH(LIST(axes, 0, 1))},
    {IR_rev, "f32[2,3]", "axis -1 of f32[2,3]: nodes count from 0: write 1", WITH(LIST(axes, -1))},
    {IR_slice, "f32[10,4]", "f32[3,4]", WITH(LIST(starts, 1, 0), LIST(limits, 9, 4), LIST(strides, 3, 1))},
    {IR_slice, "f32[10]", "f32[0]", WITH(LIST(starts, 4), LIST(limits, 4), LIST(strides, 2))},
    {IR_slice, "f32[10]", "slice 4 to 11 of axis 0 of f32[10]: bounds are 0 to 10", WITH(LIST(starts, 4), LIST(limits, 11), LIST(strides, 1))},
    {IR_slice, "f32[10]", "slice 5 to 4 of axis 0 of f32[10]: bounds are 0 to 10", WITH(LIST(starts, 5), LIST(limits, 4), LIST(strides, 1))},
    {IR_slice, "f32[10]", "slice -1 to 4 of axis 0 of f32[10]: bounds are 0 to 10", WITH(LIST(starts, -1), LIST(limits, 4), LIST(strides, 1))},
    {IR_slice, "f32[10]", "stride 0 along axis 0 of f32[10]: strides are positive; rev reverses", WITH(LIST(starts, 1), LIST(limits, 4), LIST(strides, 0))},
    {IR_slice, "f32[10]", "f32[1]", WITH(LIST(starts, 1), LIST(limits, 10), LIST(strides, INT64_MAX))},
    {IR_shear, "f32[7,3]", "f32[5,3]", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, -2), LIST(step, 2), LIST(length, 5))},
    {IR_shear, "f32[7,3]", "axis 1 of f32[7,3] sheared along itself", WITH(LIST(axis, 1), LIST(along, 1), LIST(offset, 0), LIST(step, 1), LIST(length, 5))},
    {IR_shear, "f32[7,3]", "axis 2 of f32[7,3]: axes are -2 to 1", WITH(LIST(axis, 2), LIST(along, 1), LIST(offset, 0), LIST(step, 1), LIST(length, 5))},
    {IR_shear, "f32[7,3]", "shear of axis 0 of f32[7,3] overflows", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, 0), LIST(step, INT64_MAX), LIST(length, 5))},
    {IR_shear, "f32[7,3]", "size -1 of axis 0 is negative", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, 0), LIST(step, 1), LIST(length, -1))},
    {IR_diagonal, "f32[7,3]", "f32[2]", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, -1), LIST(step, 2), LIST(length, 2))},
    {IR_diagonal, "f32[7,3]", "f32[0]", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, 3), LIST(step, 1), LIST(length, 0))},
    {IR_diagonal, "f32[7,3]", "a diagonal of f32[7,3] along axis 1 and itself", WITH(LIST(axis, 1), LIST(along, 1), LIST(offset, 0), LIST(step, 1), LIST(length, 1))},
    {IR_diagonal, "f32[7,3]", "3 elements 2 apart of diagonal -1 of f32[7,3]: it has 3", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, -1), LIST(step, 2), LIST(length, 3))},
    {IR_diagonal, "f32[7,3]", "1 elements 1 apart of diagonal 3 of f32[7,3]: it has 0", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, 3), LIST(step, 1), LIST(length, 1))},
    {IR_diagonal, "f32[7,3]", "0 elements 1 apart of diagonal 4 of f32[7,3]: it has 0", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, 4), LIST(step, 1), LIST(length, 0))},
    {IR_diagonal, "f32[7,3]", "1 elements 0 apart of diagonal 0 of f32[7,3]: it has 3", WITH(LIST(axis, 0), LIST(along, 1), LIST(offset, 0), LIST(step, 0), LIST(length, 1))},
    {IR_pad, "f32[3] f32[]", "f32[8]", WITH(LIST(low, 1), LIST(high, 2), LIST(interior, 1))},
    {IR_pad, "f32[3] f32[]", "f32[1]", WITH(LIST(low, -1), LIST(high, -1), LIST(interior, 0))},
    {IR_pad, "f32[0] f32[]", "f32[2]", WITH(LIST(low, 1), LIST(high, 1), LIST(interior, 5))},
    {IR_pad, "f32[3] f32[]", "padding -2 and -2 leaves -1 of axis 0 of f32[3]: at most the axis can be cut off", WITH(LIST(low, -2), LIST(high, -2), LIST(interior, 0))},
    {IR_pad, "f32[3] f32[]", "interior padding -1 of axis 0 of f32[3] is negative: slice with a stride instead", WITH(LIST(low, 0), LIST(high, 0), LIST(interior, -1))},
    {IR_pad, "f32[3] f32[]", "padding 9223372036854775807 and 0 of axis 0 of f32[3] overflows", WITH(LIST(low, INT64_MAX), LIST(high, 0), LIST(interior, 0))},
    {IR_pad, "f32[3] f32[]", "padding -9223372036854775807 and 9223372036854775807 of axis 0 of f32[3] overflows", WITH(LIST(low, -INT64_MAX), LIST(high, INT64_MAX), LIST(interior, 0))},
    {IR_pad, "f32[1] f32[]", "padding 0 and 0 of axis 0 of f32[1] overflows", WITH(LIST(low, 0), LIST(high, 0), LIST(interior, INT64_MAX))},
    {IR_pad, "f32[3] f32[1]", "pad with f32[1]: the padding value is one scalar", WITH(LIST(low, 0), LIST(high, 0), LIST(interior, 0))},
    {IR_pad, "f32[3] f64[]", "f32 and f64 operands: convert one", WITH(LIST(low, 0), LIST(high, 0), LIST(interior, 0))},
    {IR_concatenate, "f32[2,3] f32[4,3] f32[0,3]", "f32[6,3]", WITH(LIST(axis, 0))},
    {IR_concatenate, "f32[2,3] f32[2,4]", "concatenating f32[2,3] and f32[2,4] along axis 0: axis 1 is 3 in one and 4 in the other", WITH(LIST(axis, 0))},
    {IR_concatenate, "f32[2,3] f32[2]", "concatenating f32[2,3] and f32[2]: they have 2 and 1 axes", WITH(LIST(axis, 0))},
    {IR_concatenate, "", "concatenate takes at least 1 operand", WITH(LIST(axis, 0))},
    {IR_concatenate, "f32[2] f64[2]", "f32 and f64 operands: convert one", WITH(LIST(axis, 0))},
    {IR_concatenate, "f32[]", "axis 0 of f32[]: it has no axes", WITH(LIST(axis, 0))},

    // Places that are data.
    {IR_dynamic_slice, "f32[5,4] i32[] i64[]", "f32[2,4]", WITH(LIST(sizes, 2, 4))},
    {IR_dynamic_slice, "f32[5,4] i32[]", "dynamic_slice of f32[5,4] takes a start for each of its 2 axes, not 1", WITH(LIST(sizes, 2, 4))},
    {IR_dynamic_slice, "f32[5] f32[]", "the start along axis 0 of f32[5] is f32[], not one integer", WITH(LIST(sizes, 2))},
    {IR_dynamic_slice, "f32[5] i32[1]", "the start along axis 0 of f32[5] is i32[1], not one integer", WITH(LIST(sizes, 2))},
    {IR_dynamic_slice, "f32[5] i32[]", "a window of 6 along axis 0 of f32[5]: at most 5", WITH(LIST(sizes, 6))},
    {IR_dynamic_slice, "f32[5] i32[]", "dynamic_slice has 0 numbers in the attribute sizes and needs 1", {{0}}},
    {IR_dynamic_update_slice, "f32[5,4] f32[2,4] i32[] i32[]", "f32[5,4]", {{0}}},
    {IR_dynamic_update_slice, "f32[5] f64[2] i32[]", "an update of f32[5] by f64[2]: convert one", {{0}}},
    {IR_dynamic_update_slice, "f32[5] f32[] i32[]", "an update of f32[5] by f32[], which needs 1 axes", {{0}}},
    {IR_dynamic_update_slice, "f32[5] f32[6] i32[]", "a window of 6 along axis 0 of f32[5]: at most 5", {{0}}},
    {IR_gather, "f32[5,4] i32[3,1]", "f32[3,4]", WITH(LIST(offset_dims, 1), LIST(collapsed_dims, 0), LIST(index_map, 0), LIST(sizes, 1, 4))},
    {IR_gather, "f32[5,4] i32[7,2,2]", "f32[7,2,3,2]", WITH(LIST(offset_dims, 1, 2), LIST(index_map, 1, 0), LIST(sizes, 2, 3))},
    {IR_gather, "f32[2,5] i32[2,3,1]", "f32[2,3]", WITH(LIST(collapsed_dims, 1), LIST(operand_batch, 0), LIST(index_batch, 0), LIST(index_map, 1), LIST(sizes, 1, 1))},
    {IR_gather, "f32[5] f32[3,1]", "gather at f32[3,1]: indices are integers whose last axis holds the index of one window", WITH(LIST(collapsed_dims, 0), LIST(index_map, 0), LIST(sizes, 1))},
    {IR_gather, "f32[5] i32[3,2]", "gather: index_map has 1 axes and the indices of i32[3,2] have 2", WITH(LIST(collapsed_dims, 0), LIST(index_map, 0), LIST(sizes, 1))},
    {IR_gather, "f32[5] i32[3,1]", "gather: a window of 2 along axis 0, which is dropped: 1", WITH(LIST(collapsed_dims, 0), LIST(index_map, 0), LIST(sizes, 2))},
    {IR_gather, "f32[5] i32[3,1]", "gather: offset_dims has 0 axes and the window of f32[5] has 1", WITH(LIST(index_map, 0), LIST(sizes, 1))},
    {IR_gather, "f32[5] i32[3,1]", "gather: axis 1 in index_map: axes are 0 to 0", WITH(LIST(collapsed_dims, 0), LIST(index_map, 1), LIST(sizes, 1))},
    {IR_gather, "f32[2,5] i32[3,3,1]", "batch axis 0 of f32[2,5] and 0 of the indices i32[3,3,1]: 2 and 3", WITH(LIST(collapsed_dims, 1), LIST(operand_batch, 0), LIST(index_batch, 0), LIST(index_map, 1), LIST(sizes, 1, 1))},
    {IR_gather, "f32[5] i32[3,1]", "gather: mode 4: modes are 0 to 3", WITH(LIST(collapsed_dims, 0), LIST(index_map, 0), LIST(sizes, 1), LIST(mode, 4))},
    {IR_scatter_add, "f32[5,4] i32[3,1] f32[3,4]", "f32[5,4]", WITH(LIST(offset_dims, 1), LIST(collapsed_dims, 0), LIST(index_map, 0))},
    {IR_scatter, "f32[5,4] i32[3,1] f32[3,5]", "a window of 5 along axis 1 of f32[5,4]: at most 4", WITH(LIST(offset_dims, 1), LIST(collapsed_dims, 0), LIST(index_map, 0))},
    {IR_scatter, "f32[5,4] i32[3,1] f32[2,4]", "updates f32[2,4] at indices i32[3,1]: axis 0 is 2 and would be 3", WITH(LIST(offset_dims, 1), LIST(collapsed_dims, 0), LIST(index_map, 0))},
    {IR_scatter, "f32[5,4] i32[3,1] f64[3,4]", "updates f64[3,4] of f32[5,4]: convert one", WITH(LIST(offset_dims, 1), LIST(collapsed_dims, 0), LIST(index_map, 0))},
    {IR_scatter, "f32[5,4] i32[3,1] f32[3]", "updates f32[3] of f32[5,4] at i32[3,1]: they need 2 axes", WITH(LIST(offset_dims, 1), LIST(collapsed_dims, 0), LIST(index_map, 0))},

    // Folds.
    {IR_reduce_sum, "f32[2,3,4]", "f32[3]", WITH(LIST(axes, 0, 2))},
    {IR_reduce_sum, "f64[2,3]", "axis 3 of f64[2,3]: axes are -2 to 1", WITH(LIST(axes, 3))},
    {IR_reduce_sum, "f64[2,3]", "axis 0 after axis 1 of f64[2,3]: reduce_sum takes its axes in increasing order", WITH(LIST(axes, 1, 0))},
    {IR_reduce_max, "bool[2]", "bool[]", WITH(LIST(axes, 0))},
    {IR_reduce_and, "f32[2]", "reduce_and of f32[2]: it takes integers and bool: convert it first", WITH(LIST(axes, 0))},
    {IR_argmax, "f32[2,3]", "i32[2]", WITH(LIST(axis, 1), LIST(dtype, JOT_I32))},
    {IR_argmin, "f32[0,3]", "argmin along axis 0 of f32[0,3]: it is empty", WITH(LIST(axis, 0), LIST(dtype, JOT_I32))},
    {IR_argmax, "f32[0,3]", "i32[0]", WITH(LIST(axis, 1), LIST(dtype, JOT_I32))},
    {IR_argmax, "f32[3]", "argmax as f32: an index is an integer", WITH(LIST(axis, 0), LIST(dtype, JOT_F32))},
    {IR_argmax, "f32[128]", "i8[]", WITH(LIST(axis, 0), LIST(dtype, JOT_I8))},
    {IR_argmax, "f32[129]", "argmax along axis 0 of f32[129]: the index does not fit i8: ask for i64", WITH(LIST(axis, 0), LIST(dtype, JOT_I8))},
    {IR_cumsum, "f32[2,3]", "f32[2,3]", WITH(LIST(axis, 1), LIST(reverse, 1))},
    {IR_cumlogsumexp, "f32[2,3]", "axis 2 of f32[2,3]: axes are -2 to 1", WITH(LIST(axis, 2))},
    {IR_cummax, "f32[2,3]", "cummax needs the attribute axis, one number", {{0}}},

    // Contractions.
    {IR_dot_general, "f32[1000,100] f32[99]", "contracting 100 with 99: f32[1000,100] · f32[99]", WITH(LIST(lhs_contract, 1), LIST(rhs_contract, 0))},
    {IR_dot_general, "f32[1000,100] f32[100]", "f32[1000]", WITH(LIST(lhs_contract, 1), LIST(rhs_contract, 0))},
    {IR_dot_general, "f32[5,2,7] f32[7,5,3]", "f32[5,2,3]", WITH(LIST(lhs_contract, 2), LIST(rhs_contract, 0), LIST(lhs_batch, 0), LIST(rhs_batch, 1))},
    {IR_dot_general, "f32[2] f32[3]", "f32[2,3]", {{0}}},
    {IR_dot_general, "f32[2] f64[2]", "f32 and f64 operands: convert one", WITH(LIST(lhs_contract, 0), LIST(rhs_contract, 0))},
    {IR_dot_general, "f32[5,2] f32[4,2]", "batch axis 0 is 5 in one and 4 in the other: f32[5,2] · f32[4,2]", WITH(LIST(lhs_contract, 1), LIST(rhs_contract, 1), LIST(lhs_batch, 0), LIST(rhs_batch, 0))},
    {IR_dot_general, "f32[2,2] f32[2,2]", "axis 1 of f32[2,2] is listed twice among contracted and batch axes", WITH(LIST(lhs_contract, 1), LIST(rhs_contract, 1), LIST(lhs_batch, 1), LIST(rhs_batch, 0))},
    {IR_dot_general, "f32[2] f32[2]", "dot_general has 0 numbers in the attribute rhs_contract and needs 1", WITH(LIST(lhs_contract, 0))},
    {IR_conv, "f32[2,3] f32[4,3]", "f32[2,4]", WITH(LIST(mode, 2))},
    {IR_conv, "f32[2,3] i32[4,3]", "f32 and i32 operands: convert one", WITH(LIST(mode, 2))},
    {IR_conv, "i32[4,3] i32[2,4]", "conv of i32[4,3]: derivatives are of floats", WITH(LIST(mode, 0))},
    {IR_conv, "f32[2,3] f32[4,3]", "conv of mode 3: there are 0 to 2", WITH(LIST(mode, 3))},
    {IR_conv, "f32[2,3] f32[4,3]", "precision 4: there are 0 to 3", WITH(LIST(mode, 2), LIST(precision, 4))},
    {IR_conv, "f32[2,3] f32[4,3]", "conv of 0 groups: at least 1", WITH(LIST(mode, 2), LIST(groups, 0))},
    {IR_conv, "f32[2,4] f32[3,2]", "2 groups do not divide 4 features and 3 out", WITH(LIST(mode, 2), LIST(groups, 2))},
    {IR_conv, "f32[2,4] f32[3,2]", "conv of f32[2,4] and f32[3,2]: 4 and 2 features", WITH(LIST(mode, 2))},
    {IR_conv, "f32[2,4,5] f32[3,4]", "conv over 0 spatial axes of f32[2,4,5], its x", WITH(LIST(mode, 2))},
    {IR_conv, "f32[4,3,3] f32[2,4,3]", "f32[2,3,7]", WITH(LIST(mode, 0), LIST(strides, 2), LIST(low, 0), LIST(high, 0), LIST(lhs_dilation, 1), LIST(rhs_dilation, 1), LIST(sizes, 7))},
    {IR_conv, "f32[4,3,3] f32[2,4,3]", "conv: spatial axis 0 has 4 windows, and y 3", WITH(LIST(mode, 0), LIST(strides, 2), LIST(low, 0), LIST(high, 0), LIST(lhs_dilation, 1), LIST(rhs_dilation, 1), LIST(sizes, 9))},
    {IR_conv, "f32[2,3,7] f32[2,4,3]", "f32[4,3,3]", WITH(LIST(mode, 1), LIST(strides, 2), LIST(low, 0), LIST(high, 0), LIST(lhs_dilation, 1), LIST(rhs_dilation, 1), LIST(sizes, 3))},
    {IR_conv, "f32[2,3,7] f32[2,4,3]", "conv: number 0 of strides is 0", WITH(LIST(mode, 1), LIST(strides, 0), LIST(low, 0), LIST(high, 0), LIST(lhs_dilation, 1), LIST(rhs_dilation, 1), LIST(sizes, 3))},
    {IR_dot_general, "f32[2] f32[2]", "precision 4: there are 0 to 3", WITH(LIST(precision, 4))},
    // Matrices are the last two axes.
#define SOLVE(is_left) WITH(LIST(left, is_left), LIST(lower, 1), LIST(transposed, 0), LIST(conjugated, 0), LIST(unit_diagonal, 0))
    {IR_cholesky, "f64[5,3,3]", "f64[5,3,3]", {{0}}},
    {IR_cholesky, "f64[3]", "cholesky of f64[3]: a matrix has two axes", {{0}}},
    {IR_cholesky, "f64[3,2]", "cholesky of f64[3,2]: the matrix is not square", {{0}}},
    {IR_cholesky, "f16[3,3]", "cholesky of f16[3,3]: it takes f32, f64, c64 and c128: convert it first", {{0}}},
    {IR_lu, "c64[5,2,3]", "c64[5,2,3] i32[5,2] i32[5,2]", {{0}}},
    {IR_lu, "f32[3,2]", "f32[3,2] i32[2] i32[3]", {{0}}},
    {IR_lu, "f32[3]", "lu of f32[3]: a matrix has two axes", {{0}}},
    {IR_svd, "f32[5,4,3]", "f32[5,2] f32[5,4,2] f32[5,2,3]", WITH(LIST(mode, 3), LIST(length, 2))},
    {IR_svd, "c128[3,4]", "f64[0] c128[3,0] c128[0,4]", WITH(LIST(mode, 3), LIST(length, 0))},
    {IR_svd, "f32[4,3]", "svd of f32[4,3]: 4 of its 3 singular values", WITH(LIST(mode, 3), LIST(length, 4))},
    {IR_triangular_solve, "f32[4,3,3] f32[4,3,2]", "f32[4,3,2]", SOLVE(1)},
    {IR_triangular_solve, "f32[3,3] f32[2,3]", "f32[2,3]", SOLVE(0)},
    {IR_triangular_solve, "f32[3,3] f32[2,3]", "triangular_solve of f32[3,3] and f32[2,3]: 2 rows, not 3", SOLVE(1)},
    {IR_triangular_solve, "f32[3,3] f32[3,2]", "triangular_solve of f32[3,3] and f32[3,2]: 2 columns, not 3", SOLVE(0)},
    {IR_triangular_solve, "f32[3,2] f32[3,2]", "triangular_solve of f32[3,2]: the matrix is not square", SOLVE(1)},
    {IR_triangular_solve, "f32[3,3] f32[4,3,2]", "triangular_solve of f32[3,3] and f32[4,3,2]: they have 2 and 3 axes", SOLVE(1)},
    {IR_triangular_solve, "f32[2,3,3] f32[4,3,2]", "triangular_solve of f32[2,3,3] and f32[4,3,2]: the axes before the matrices differ", SOLVE(1)},
    {IR_triangular_solve, "f32[3,3] f32[3,2]", "triangular_solve needs the attribute unit_diagonal, one number", {{0}}},
    {IR_tridiagonal_solve, "f32[5,3] f32[5,3] f32[5,3] f32[5,3,2]", "f32[5,3,2]", {{0}}},
    {IR_tridiagonal_solve, "f32[3] f32[3] f32[2] f32[3,2]", "tridiagonal_solve of diagonals f32[3], f32[3] and f32[2]", {{0}}},
    {IR_tridiagonal_solve, "f32[3] f32[3] f32[3] f32[2,2]", "tridiagonal_solve of diagonals f32[3] and f32[2,2]: the right sides are the columns of 3 rows", {{0}}},
    // Results vary over named axes where operands do; collectives say it themselves.
    {IR_add, "f32[2] f32[2]<i:2>", "f32[2]<i:2>", {{0}}},
    {IR_add, "f32[2]<j:3> f32[2]<i:2>", "f32[2]<i:2,j:3>", {{0}}},
    {IR_mul, "f32[2] f32[2]", "f32[2]", {{0}}},
    {IR_barrier, "f32[2] f32[2]<i:2>", "f32[2] f32[2]<i:2>", {{0}}},
    {IR_pvary, "f32[2]", "f32[2]<i:2>", WITH(LIST(over, 0))},
    {IR_pvary, "f32[2]<i:2>", "f32[2]<i:2,j:3>", WITH(LIST(over, 1))},
    {IR_psum, "f32[2]<i:2,j:3>", "f32[2]<j:3>", WITH(LIST(over, 0))},
    {IR_psum, "f32[2]<i:2,j:3>", "f32[2]", WITH(LIST(over, 1, 0))},
    {IR_psum, "f32[2]", "f32[2]", WITH(LIST(over, 1, 0))},
    {IR_psum, "bool[2]<i:2>", "psum of bool[2]<i:2>: it takes numbers: convert it first", WITH(LIST(over, 0))},
    {IR_psum, "f32[2]<i:2>", "psum over no axis", {{0}}},
    {IR_psum, "f32[2]<i:2>", "psum over axis 2: the module has 2", WITH(LIST(over, 2))},
    {IR_psum, "f32[2]<i:2>", "psum over i twice", WITH(LIST(over, 0, 0))},
    {IR_pmax, "i8[2]<i:2>", "i8[2]", WITH(LIST(over, 0))},
    {IR_all_gather, "f32[5]<i:2,j:3>", "f32[2,5]<j:3>", WITH(LIST(over, 0))},
    {IR_all_gather, "bool[]", "bool[6]", WITH(LIST(over, 0, 1))},
    {IR_psum_scatter, "f32[2,5]<i:2>", "f32[5]<i:2>", WITH(LIST(over, 0))},
    {IR_psum_scatter, "f32[3,5]<i:2>", "psum_scatter of f32[3,5]<i:2> over i: axis 0 has 2 rows, one a lane", WITH(LIST(over, 0))},
    {IR_all_to_all, "f32[6,5]", "f32[6,5]<i:2,j:3>", WITH(LIST(over, 0, 1))},
    {IR_all_to_all, "f32[]", "all_to_all of f32[]<i:2,j:3> over i and j: axis 0 has 6 rows, one a lane", WITH(LIST(over, 0, 1))},
    {IR_ppermute, "f32[5]<i:2>", "f32[5]<i:2>", WITH(LIST(over, 0), LIST(pairs, 0, 1, 1, 0))},
    {IR_ppermute, "f32[5]<i:2>", "f32[5]<i:2>", WITH(LIST(over, 0))},
    {IR_ppermute, "f32[5]<i:2>", "ppermute to lane 2 of 2", WITH(LIST(over, 0), LIST(pairs, 0, 2))},
    {IR_ppermute, "f32[5]<i:2>", "ppermute from lane 1 twice", WITH(LIST(over, 0), LIST(pairs, 1, 0, 1, 1))},
    {IR_exchange, "f32[5]", "f32[5]", WITH(LIST(mesh, 2), LIST(exchange, 0, 0, JOT_F32, 1, 0))},
    {IR_exchange, "f32[3,5]", "f32[5]", WITH(LIST(mesh, 2, 3), LIST(exchange, 1, 0, JOT_F32, 1, 1))},
    {IR_exchange, "f32[5]", "f32[6,5]", WITH(LIST(mesh, 2, 3), LIST(exchange, 2, 0, JOT_F32, 2, 1, 0))},
    {IR_exchange, "f32[2,5]", "exchange of f32[2,5]: axis 0 has 3 rows, one a device", WITH(LIST(mesh, 3), LIST(exchange, 3, 0, JOT_F32, 1, 0))},
    {IR_exchange, "f32[5]", "exchange of f32[5]: it is of axes that the mesh does not have", WITH(LIST(mesh, 3), LIST(exchange, 0, 0, JOT_F32, 1, 1))},
    {IR_exchange, "i32[5]", "exchange of i32[5]: it is one of other elements", WITH(LIST(mesh, 3), LIST(exchange, 0, 0, JOT_F32, 1, 0))},
    {IR_axis_index, "", "i32[]<j:3>", WITH(LIST(over, 1))},
    {IR_axis_index, "", "axis_index over 2 axes: it takes one", WITH(LIST(over, 1, 0))},
    {IR_dot_general, "bool[2] bool[2]", "dot_general of bool[2]: it takes numbers: convert it first", {{0}}},
};
// clang-format on

static struct ir_module *module;

static void set_up(void)
{
    module = ir_module_create();
    ck_assert_ptr_nonnull(module);
    ir_axis_add(module, "i", 2);
    ir_axis_add(module, "j", 3);
}

static void tear_down(void) { ir_module_release(module); }

// Reads "f32[2,3]" or "f32[2,3]<i:2>", and the blanks behind it.
static struct ir_type read_type(const char **at)
{
    int64_t dims[IR_MAX_RANK];
    int rank = 0;
    size_t n = strcspn(*at, "[");
    int dtype = dtype_find(*at, n);
    ck_assert_int_ge(dtype, 0);
    *at += n + 1;
    while (**at != ']') {
        char *end;
        dims[rank++] = strtoll(*at, &end, 10);
        *at = end + (*end == ',');
    }
    struct ir_type t = ir_type_make(module, (jot_dtype)dtype, rank, dims);
    while (*++*at == '<' || **at == ',') {
        char name[] = {(*at)[1], 0};
        t.varies |= (uint16_t)(1u << ir_axis_add(module, name, (*at)[3] - '0'));
        *at += (*at)[4] == '>' ? 4 : 3;
    }
    *at += strspn(*at, " ");
    return t;
}

// Gives a builder with a parameter for each type.
static struct ir_builder with_params(const char *types, ir_id *in, int *n_in)
{
    struct ir_builder b = ir_builder_make(module, "test", IR_BUILD_PLAIN);
    for (*n_in = 0; *types; ++*n_in)
        in[*n_in] = ir_param(&b, read_type(&types));
    return b;
}

// The types of the last node's results, or the message.
static const char *outcome(struct ir_builder *b)
{
    struct strbuf s = strbuf_make(module->arena);
    if (b->status != JOT_OK)
        return b->message;
    const struct ir_node *n = &vec_last(&b->graph->nodes);
    for (uint32_t i = 0; i < n->n_out; i++) {
        strbuf_add(&s, i ? " " : "");
        ir_type_print(&s, module, ir_type_in(b, n->out + i));
    }
    return s.text;
}

START_TEST(rule)
{
    const struct row *row = &rows[_i];
    ir_id in[16];
    int n_in, n_fields = 0;
    while (n_fields < MOST_FIELDS && row->fields[n_fields].ints)
        n_fields++;
    struct ir_builder b = with_params(row->operands, in, &n_in);
    ir_build(&b, row->op, n_in, in, ir_attrs_make(module, n_fields, row->fields));
    ck_assert_msg(!strcmp(outcome(&b), row->want), "%s of %s: '%s' where '%s' is wanted",
                  ir_op_get(row->op)->name, row->operands, outcome(&b), row->want);
}
END_TEST

// The meaning of the types column, once more.
static bool may_take(const char *word, jot_dtype d)
{
    bool is_bool = d == JOT_BOOL, is_int = d >= JOT_I8 && d <= JOT_U64;
    bool is_float = d >= JOT_F16 && d <= JOT_F64, is_complex = d >= JOT_C64;
    if (!strcmp(word, "num"))
        return is_int || is_float || is_complex;
    if (!strcmp(word, "ordered"))
        return is_int || is_float;
    if (!strcmp(word, "real"))
        return is_bool || is_int || is_float;
    if (!strcmp(word, "inexact"))
        return is_float || is_complex;
    if (!strcmp(word, "wide"))
        return d == JOT_F32 || d == JOT_F64 || is_complex;
    if (!strcmp(word, "float"))
        return is_float;
    if (!strcmp(word, "integer"))
        return is_int;
    if (!strcmp(word, "bits"))
        return is_int || is_bool;
    if (!strcmp(word, "complex"))
        return is_complex;
    ck_assert_str_eq(word, "any");
    return true;
}

// Every op with every dtype: the status is the one of the column, and no op takes another
// number of operands than its row says.
START_TEST(every_op)
{
    enum ir_op op = (enum ir_op)_i;
    const struct ir_op_info *info = ir_op_get(op);
    for (int d = 0; d < DTYPE_COUNT; d++) {
        ir_id in[8];
        struct ir_builder b = ir_builder_make(module, "test", IR_BUILD_PLAIN);
        for (int i = 0; i < 8; i++)
            in[i] = ir_param(&b, ir_type_make(module, (jot_dtype)d, 1, (int64_t[]){3}));
        int n = info->in == IR_VARIADIC ? 2 : info->in;
        ir_build(&b, op, n, in, NULL);
        bool by_column = b.message && strstr(b.message, ": it takes ") &&
                         !(op == IR_threefry2x32 && strstr(b.message, "u32"));
        if (n > 0)
            ck_assert_msg(by_column == !may_take(info->types, (jot_dtype)d), "%s of %s: %s",
                          info->name, dtype_get((jot_dtype)d)->name, outcome(&b));
        if (info->in == IR_VARIADIC)
            continue;
        struct ir_builder c = b;
        c.status = JOT_OK;
        ck_assert_uint_eq(ir_build(&c, op, n + 1, in, NULL), IR_NONE);
        ck_assert_int_eq(c.status, JOT_ERR_ARGUMENT);
    }
}
END_TEST

START_TEST(broadcast_types)
{
    struct ir_type out, t[3];
    const char *types = "f32[2,1] bool[1,3]<j:3> i32[]";
    for (int i = 0; i < 3; i++)
        t[i] = read_type(&types);
    ck_assert(ir_broadcast_types(module, 3, t, &out));
    ck_assert_str_eq(ir_type_text(module, out), "f32[2,3]<j:3>");
    types = "f32[2] f32[1,3]";
    for (int i = 0; i < 2; i++)
        t[i] = read_type(&types);
    ck_assert(!ir_broadcast_types(module, 2, t, &out));
}
END_TEST

// A function of the types that gives the parameters listed, such as "0 1 1".
static uint32_t function_of(const char *types, const char *outputs)
{
    ir_id in[16];
    int n;
    struct ir_builder b = with_params(types, in, &n);
    for (; *outputs; outputs++)
        if (*outputs != ' ')
            ir_output(&b, in[*outputs - '0']);
    return ir_finish_function(&b);
}

struct call_row {
    enum ir_op op;
    const char *operands;
    struct {
        const char *params, *outputs;
    } functions[3];
    int n_residuals;
    const char *want;
};

static const struct call_row call_rows[] = {
    {IR_call, "f32[2] i32[]", {{"f32[2] i32[]", "1 0 0"}}, 0, "i32[] f32[2] f32[2]"},
    {IR_call, "f32[2]", {{"f32[2]", ""}}, 0, ""},
    {IR_call,
     "f32[2]",
     {{"f32[2] i32[]", "1"}},
     0,
     "call of a function of 2 parameters with 1"},
    {IR_checkpoint,
     "f32[2]",
     {{"f32[3]", "0"}},
     0,
     "operand 0 of checkpoint is f32[2] and the parameter f32[3]"},
    {IR_custom_jvp,
     "f32[2] i32[]",
     {{"f32[2] i32[]", "1 0"}, {"f32[2] i32[] f32[2]", "2"}},
     0,
     "i32[] f32[2]"},
    {IR_custom_jvp,
     "f32[2] i32[]",
     {{"f32[2] i32[]", "1 0"}, {"f32[2] i32[] f32[2] i32[]", "2"}},
     0,
     "the rule of custom_jvp has 4 parameters, not 3: primals, then tangents of the float and "
     "complex ones"},
    {IR_custom_jvp,
     "f32[2] i32[]",
     {{"f32[2] i32[]", "1 0"}, {"f32[2] i32[] f32[2]", "1"}},
     0,
     "result 0 of the rule of custom_jvp is i32[], not f32[2]: tangents of the float and "
     "complex "
     "results"},
    {IR_custom_jvp,
     "f32[2]",
     {{"f32[2]", "0"}},
     0,
     "custom_jvp has 1 numbers in the attribute functions and needs 2"},
    {IR_custom_vjp,
     "f32[2] i32[]",
     {{"f32[2] i32[]", "0 1"}, {"f32[2] i32[]", "0 1 1 0"}, {"i32[] f32[2] f32[2]", "2"}},
     0,
     "f32[2] i32[]"},
    {IR_custom_vjp,
     "f32[2]",
     {{"f32[2]", "0"}, {"f32[2]", "0 0"}, {"f32[2]", "0"}},
     0,
     "the backward function of custom_vjp has 1 parameters, not 2: residuals, then cotangents "
     "of "
     "the float and complex results"},
    {IR_custom_vjp,
     "f32[2]",
     {{"f32[2]", "0 0"}, {"f32[2]", "0"}, {"f32[2]", "0"}},
     0,
     "the forward function of custom_vjp has 1 results: at least the 2 of the function, then "
     "residuals"},
    {IR_custom_vjp,
     "f32[2]",
     {{"f32[2]", "0"}, {"f32[3]", "0"}, {"f32[2]", "0"}},
     0,
     "parameter 0 of the forward function of custom_vjp is f32[3], not f32[2]: those of the "
     "function"},
    {IR_linear_call,
     "i32[] f32[2]",
     {{"i32[] f32[2]", "1 1"}, {"i32[] f32[2] f32[2]", "1"}},
     1,
     "f32[2] f32[2]"},
    {IR_linear_call,
     "i32[] f32[2]",
     {{"i32[] f32[2]", "1 1"}, {"i32[] f32[2] f32[2]", "0"}},
     1,
     "result 0 of the backward function of linear_call is i32[], not f32[2]: cotangents of the "
     "linear operands"},
    {IR_linear_call,
     "i32[] f32[2]",
     {{"i32[] f32[2]", "1"}, {"f32[2]", "0"}},
     1,
     "the backward function of linear_call has 1 parameters, not 2: residuals, then cotangents "
     "of "
     "the results"},
    {IR_linear_call,
     "f32[2]",
     {{"f32[2]", "0"}, {"f32[2]", "0"}},
     2,
     "linear_call of 1 operands with 2 residuals"},
    {IR_linear_solve,
     "i32[] f32[2]",
     {{"i32[] f32[2]", "1"}, {"i32[] f32[2]", "1"}, {"i32[] f32[2]", "1"}},
     1,
     "f32[2]"},
    {IR_linear_solve,
     "i32[] f32[2]",
     {{"i32[] f32[2]", "1"}, {"i32[] f32[2]", "1 1"}, {"i32[] f32[2]", "1"}},
     1,
     "matvec of linear_solve has 2 results, not 1: values like those of b"},
    {IR_linear_solve,
     "i32[] f32[2]",
     {{"i32[] f32[2]", "1"}, {"i32[] f32[2]", "1"}, {"f32[2] i32[]", "0"}},
     1,
     "parameter 0 of the transposed solve of linear_solve is f32[2], not i32[]: residuals, "
     "then "
     "values like those of b"},
    {IR_linear_solve,
     "i32[2]",
     {{"i32[2]", "0"}, {"i32[2]", "0"}, {"i32[2]", "0"}},
     0,
     "operand 0 of linear_solve is i32[2]"},
    {IR_linear_solve,
     "f32[2]",
     {{"f32[2]", "0"}, {"f32[2]", "0"}, {"f32[2]", "0"}},
     -1,
     "linear_solve of 1 operands with -1 residuals"},
};

START_TEST(call_rule)
{
    const struct call_row *row = &call_rows[_i];
    uint32_t functions[3];
    int n = 0, n_in;
    ir_id in[16];
    for (; n < 3 && row->functions[n].params; n++)
        functions[n] = function_of(row->functions[n].params, row->functions[n].outputs);
    struct ir_builder b = with_params(row->operands, in, &n_in);
    if (row->op == IR_linear_call)
        ir_linear_call(&b, functions[0], functions[1], row->n_residuals, n_in, in);
    else if (row->op == IR_linear_solve)
        ir_linear_solve(&b, functions, row->n_residuals, n_in, in);
    else
        ir_call(&b, row->op, n, functions, n_in, in);
    ck_assert_str_eq(outcome(&b), row->want);
}
END_TEST

START_TEST(call_of_unknown_function)
{
    struct ir_builder b = ir_builder_make(module, "test", IR_BUILD_PLAIN);
    ir_call(&b, IR_call, 1, (uint32_t[]){7}, 0, NULL);
    ck_assert_str_eq(b.message, "call of function 7: the module has 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer");
    TCase *rules = tcase_create("rules");
    tcase_add_checked_fixture(rules, set_up, tear_down);
    tcase_add_loop_test(rules, rule, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_loop_test(rules, every_op, 0, IR_OP_COUNT);
    tcase_add_loop_test(rules, call_rule, 0, (int)(sizeof call_rows / sizeof call_rows[0]));
    tcase_add_test(rules, call_of_unknown_function);
    tcase_add_test(rules, broadcast_types);
    suite_add_tcase(suite, rules);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
