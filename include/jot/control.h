// SPDX-License-Identifier: Apache-2.0
// Loops and branches, as blocks whose bodies are traced in place.
//
//     JOT_FOR (i, 500, x, v) { v = jot_sub(v, jot_mul(k, x)); x = jot_add(x, jot_mul(dt, v)); }
//     JOT_SCAN ((h), (x), (y)) { h = cell(h, x); y = h; }            carry, rows in, rows out
//     JOT_SCAN ((s), (), (path), .length = 1000) { s = step(s); path = s.x; }
//     JOT_WHILE ((x), jot_greater(error(x), 1e-9)) { x = improve(x); }
//     JOT_IF (jot_greater(x, 0), y) { y = jot_log(x); } else { y = jot_sub(x, 1); }
//
// The listed variables (values, structs or arrays of values) are rebound: inside to what one step
// sees, afterwards to the results; a variable of rows in has its whole array again.  Other values are
// used freely.  A variable that is set inside and not listed has no value afterwards, which is
// reported where it is used.  What a step makes of a carry must have the type of the carry, or the
// error names it and both types; a C number that starts a carry takes the type that the step gives
// it, and then the body runs twice.  Do not leave a block by break, return or goto: it is reported.
#ifndef JOT_CONTROL_H
#define JOT_CONTROL_H

#include "jot/transform.h"

typedef struct jot_loop_options {
    int64_t length; // trips of a scan without rows in
    bool reverse;   // from the last row to the first; rows out stand at the places of rows in
    // Of a while loop: the most trips.  Reverse mode goes through a while loop with a bound only;
    // a test that still holds after so many is an error of the call.
    int64_t bound;
    size_t size; // of this struct, set by the macro; 0 is this version
} jot_loop_options;

JOT_BEGIN_C

// The same with bodies that are functions.  A step changes the carries in place.
typedef void jot_scan_step(jot_value *carry, const jot_value *row, jot_value *out, void *ctx);
typedef jot_value jot_while_condition(const jot_value *carry, void *ctx);
typedef void jot_while_step(jot_value *carry, void *ctx);

// carry, out[t] = step(carry, rows[t]) for every row t; out[k] becomes all rows of output k, along a
// new first axis.  options may be NULL.
JOT_API void jot_scan(jot_scan_step *step, void *ctx, size_t n_carry, jot_value *carry,
                      size_t n_rows, const jot_value *rows, size_t n_out, jot_value *out,
                      const jot_loop_options *options);
// carry = step(carry) while condition(carry), which gives one bool.
JOT_API void jot_while(jot_while_condition *condition, jot_while_step *step, void *ctx,
                       size_t n_carry, jot_value *carry, const jot_loop_options *options);

// What the macros are made of.
JOT_API jot_block *jot_for_begin(const jot_piece *carry, jot_value trips, const char *where);
JOT_API bool jot_for_next(jot_block *b, jot_value *index);
JOT_API jot_block *jot_scan_begin(const jot_piece *carry, const jot_piece *in,
                                  const jot_piece *out, const jot_loop_options *options,
                                  const char *where);
JOT_API jot_block *jot_while_begin(const jot_piece *carry, const jot_loop_options *options,
                                   const char *where);
JOT_API bool jot_while_test(jot_block *b, jot_value test);
JOT_API jot_block *jot_if_begin(const jot_piece *results, jot_value condition,
                                const char *where);
JOT_API bool jot_if_first(const jot_block *b);

JOT_END_C

#if !defined(JOT_PLAIN)

// JOT_FOR (index, trips, state ...): trips is a C integer or one integer value; index is i32[].
// With a C integer the loop is a scan, and reverse mode goes through it.
#define JOT_FOR(i, trips, ...) JOT_FOR_(__COUNTER__, i, trips, __VA_ARGS__)
#define JOT_FOR_(k, i, trips, ...)                                                             \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_PIECES_(__VA_ARGS__),                            \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_for_begin(JOT_CAT(jot_c_, k), JOT_V(trips), JOT_HERE ": JOT_FOR"))   \
    for (jot_value i; jot_for_next(JOT_CAT(jot_b_, k), &i); (void)i)

// JOT_SCAN ((carry ...), (rows in ...), (rows out ...), .length = n, .reverse = true)
#if defined(__cplusplus)
#define JOT_SCAN(carry, in, out) JOT_SCAN_(__COUNTER__, nullptr, carry, in, out)
#else
#define JOT_SCAN(carry, in, ...)                                                               \
    JOT_SCAN_(__COUNTER__,                                                                     \
              (&(jot_loop_options){JOT_REST_(__VA_ARGS__, .size = sizeof(jot_loop_options))}), \
              carry, in, JOT_FIRST_(__VA_ARGS__, 0))
#endif
#define JOT_SCAN_(k, options, carry, in, out)                                                  \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(carry),                                    \
                                   JOT_CAT(jot_i_, k)[] = JOT_LIST_(in),                       \
                                   JOT_CAT(jot_r_, k)[] = JOT_LIST_(out),                      \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_scan_begin(JOT_CAT(jot_c_, k), JOT_CAT(jot_i_, k),                   \
                                     JOT_CAT(jot_r_, k), options, JOT_HERE ": JOT_SCAN"))      \
    while (jot_block_next(JOT_CAT(jot_b_, k)))

// JOT_WHILE ((state ...), test, .bound = n)
#if defined(__cplusplus)
#define JOT_WHILE(state, test) JOT_WHILE_(__COUNTER__, nullptr, state, test)
#else
#define JOT_WHILE(state, ...)                                                                  \
    JOT_WHILE_(                                                                                \
        __COUNTER__,                                                                           \
        (&(jot_loop_options){JOT_REST_(__VA_ARGS__, .size = sizeof(jot_loop_options))}),       \
        state, JOT_FIRST_(__VA_ARGS__, 0))
#endif
#define JOT_WHILE_(k, options, state, test)                                                    \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(state),                                    \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_while_begin(JOT_CAT(jot_c_, k), options, JOT_HERE ": JOT_WHILE"))    \
    while (jot_block_next(JOT_CAT(jot_b_, k)))                                                 \
        for (bool JOT_CAT(jot_t_, k) = jot_while_test(JOT_CAT(jot_b_, k), JOT_V(test));        \
             JOT_CAT(jot_t_, k); JOT_CAT(jot_t_, k) = false)

// JOT_IF (condition, results ...) { ... } else { ... }: the condition is one bool.  Without an else
// the results keep their values.  Only one branch runs; under jot_vmap, for each lane.
#define JOT_IF(condition, ...) JOT_IF_(__COUNTER__, condition, __VA_ARGS__)
#define JOT_IF_(k, condition, ...)                                                             \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_PIECES_(__VA_ARGS__),                            \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_if_begin(JOT_CAT(jot_c_, k), JOT_V(condition), JOT_HERE ": JOT_IF")) \
    while (jot_block_next(JOT_CAT(jot_b_, k)))                                                 \
        if (jot_if_first(JOT_CAT(jot_b_, k)))

#endif // JOT_PLAIN

#endif
