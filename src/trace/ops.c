// SPDX-License-Identifier: Apache-2.0
// The public pointwise operations of the op table.
//
// Every MAP row of one to three operands gives a function jot_<row>.  Rows that users know by
// another name, or not at all, are listed here; a new row needs nothing in this file.
#include "trace/emit.h"

#include "jot/special.h"

#define RENAMED_round_even ~, PUBLIC, round
#define RENAMED_max ~, PUBLIC, maximum
#define RENAMED_min ~, PUBLIC, minimum
#define RENAMED_not ~, PUBLIC, bitwise_not
#define RENAMED_and ~, PUBLIC, bitwise_and
#define RENAMED_or ~, PUBLIC, bitwise_or
#define RENAMED_xor ~, PUBLIC, bitwise_xor
#define RENAMED_shl ~, PUBLIC, left_shift
#define RENAMED_shr_logical ~, PUBLIC, right_shift_logical
#define RENAMED_shr_arith ~, PUBLIC, right_shift_arithmetic
#define RENAMED_eq ~, PUBLIC, equal
#define RENAMED_ne ~, PUBLIC, not_equal
#define RENAMED_lt ~, PUBLIC, less
#define RENAMED_le ~, PUBLIC, less_equal
#define RENAMED_gt ~, PUBLIC, greater
#define RENAMED_ge ~, PUBLIC, greater_equal

// With arguments or types of their own; written by hand, or internal.
#define RENAMED_integer_pow ~, HIDDEN, ~
#define RENAMED_reduce_precision ~, HIDDEN, ~
#define RENAMED_real ~, HIDDEN, ~
#define RENAMED_imag ~, HIDDEN, ~
#define RENAMED_conj ~, HIDDEN, ~
#define RENAMED_convert ~, HIDDEN, ~
#define RENAMED_bitcast ~, HIDDEN, ~
#define RENAMED_mul_z ~, HIDDEN, ~
#define RENAMED_guard ~, HIDDEN, ~
#define RENAMED_div ~, HIDDEN, ~
#define RENAMED_direction ~, HIDDEN, ~
#define RENAMED_inversion ~, HIDDEN, ~
#define RENAMED_pow ~, HIDDEN, ~
#define RENAMED_select ~, HIDDEN, ~

// A row that is not renamed gives one unknown word, so that the defaults after it move up.
#define PICK(...) PICK_(__VA_ARGS__)
#define PICK_(renamed, state, name, ...) state, name

#define BODY(arity, op, ...) BODY_(arity, op, __VA_ARGS__)
#define BODY_(arity, op, state, name) BODY_##state##_##arity(op, name)
#define BODY_PUBLIC_1(op, name)                                                                \
    jot_value jot_##name(jot_value x) { TRACE_RETURN(trace_map(IR_##op, "jot_" #name, 1, &x)); }
#define BODY_PUBLIC_2(op, name)                                                                \
    jot_value jot_##name(jot_value x, jot_value y)                                             \
    {                                                                                          \
        jot_value v[] = {x, y};                                                                \
        TRACE_RETURN(trace_map(IR_##op, "jot_" #name, 2, v));                                  \
    }
#define BODY_PUBLIC_3(op, name)                                                                \
    jot_value jot_##name(jot_value x, jot_value y, jot_value z)                                \
    {                                                                                          \
        jot_value v[] = {x, y, z};                                                             \
        TRACE_RETURN(trace_map(IR_##op, "jot_" #name, 3, v));                                  \
    }
#define BODY_HIDDEN_1(op, name)
#define BODY_HIDDEN_2(op, name)
#define BODY_HIDDEN_3(op, name)

#define ROW_MAP_1(op) BODY(1, op, PICK(RENAMED_##op, PUBLIC, op, ~))
#define ROW_MAP_2(op) BODY(2, op, PICK(RENAMED_##op, PUBLIC, op, ~))
#define ROW_MAP_3(op) BODY(3, op, PICK(RENAMED_##op, PUBLIC, op, ~))
#define ROW_MAP_4(op)
#define ROW_OTHER(op)
#define ROW_CONST(op, in) ROW_OTHER(op)
#define ROW_PARAM(op, in) ROW_OTHER(op)
#define ROW_LAYOUT(op, in) ROW_OTHER(op)
#define ROW_INDEX(op, in) ROW_OTHER(op)
#define ROW_UPDATE(op, in) ROW_OTHER(op)
#define ROW_REDUCE(op, in) ROW_OTHER(op)
#define ROW_ARG(op, in) ROW_OTHER(op)
#define ROW_CONTRACT(op, in) ROW_OTHER(op)
#define ROW_CUMULATIVE(op, in) ROW_OTHER(op)
#define ROW_LIBRARY(op, in) ROW_OTHER(op)
#define ROW_CALL(op, in) ROW_OTHER(op)
#define ROW_CONTROL(op, in) ROW_OTHER(op)
#define ROW_COLLECTIVE(op, in) ROW_OTHER(op)
#define ROW_HINT(op, in) ROW_OTHER(op)
#define ROW_EFFECT(op, in) ROW_OTHER(op)
#define ROW_MAP(op, in) ROW_MAP_##in(op)

#define OP(name, in, out, op_class, ...) ROW_##op_class(name, in)
#include "ir/ops.def"
#undef OP
