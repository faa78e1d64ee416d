// SPDX-License-Identifier: Apache-2.0
// Loops and branches, as blocks whose bodies are traced in place.
//
//     JOT_FOR (i, 500, x, v) { v = jot_sub(v, jot_mul(k, x)); x = jot_add(x, jot_mul(dt, v)); }
//     JOT_FOR_RANGE (i, 1, n, x) { x = jot_mul(x, i); }              from 1 to n - 1
//     JOT_SCAN ((h), (x), (y)) { h = cell(h, x); y = h; }            carry, rows in, rows out
//     JOT_SCAN ((s), (), (path), .length = 1000, .checkpoint = 32) { s = step(s); path = s.x; }
//     JOT_MAP ((x), (y), .batch = 64) { y = model(p, x); }           rows in, rows out
//     JOT_WHILE ((x), jot_greater(error(x), 1e-9)) { x = improve(x); }
//     JOT_IF (jot_greater(x, 0), y) { y = jot_log(x); } else { y = jot_sub(x, 1); }
//     JOT_SWITCH (kind, 3, y) { case 0: y = jot_sin(x); break; case 1: y = x; break; ... }
//
// The lists name the variables that change: values, structs or arrays of values.  Inside of a block
// they are what one trip sees.  After it they are the results, and rows in are whole again.
// Other values are used freely.
//
// - A variable stands in one list.  Rows in may be rows out as well.
// - A variable that a body sets and no list has is an error where it is used later.
// - A body gives a carry the type that the carry had.  If not, the error names both types.
// - A C number takes the type of the carry or of the other branches.  A carry that starts as one
//   takes the type that the body gives it, and for this the body runs a second time.  Where there
//   are only C numbers, the result is one too.
// - Do not leave a block by break, return or goto: it is reported.
// - false and true of C11 are the integers 0 and 1.  They pass for bools as a condition, and where
//   the body or another branch makes a bool of the variable.  Elsewhere write (bool)true or
//   jot_from_bool(true).
//
// All blocks can be differentiated, forward and backward, and mapped (docs/ir.md).  Names and
// meanings are those of jax.lax: fori_loop, scan, map, while_loop, cond, switch, associative_scan.
#ifndef JOT_CONTROL_H
#define JOT_CONTROL_H

#include "jot/transform.h"

// Named options after the lists of a block, and of the functions below.  A field that the block
// does not have is JOT_ERR_ARGUMENT when it is set.
//     JOT_SCAN     length, reverse, checkpoint
//     JOT_MAP      batch
//     JOT_WHILE    bound, slots
typedef struct jot_loop_options {
    // Trips of a scan without rows in; with rows in their number, if it is set.  0 is not set: a loop
    // without a trip has rows of which there are none, or is a JOT_FOR.
    int64_t length;
    bool reverse; // from the last row to the first; rows out stand at the indices of rows in
    // Of a while loop: the most trips.  A test that still holds after so many is JOT_ERR_CHECK
    // of the call, and names the lane.  Reverse mode keeps the states of so many trips, as long as
    // they take at most 256 MiB, and computes each trip that was made once more.  Beyond that, and with
    // callbacks, it is a scan of so many trips, most of which may do nothing.
    int64_t bound;
    // Of a while loop without a bound: how many states reverse mode keeps, 2 or more (an odd number
    // counts as one more); 0: 64.  When all slots are full, every second state is dropped.  So of n
    // trips it keeps the state of every s-th, s the least power of 2 with n <= slots * s.  On the way
    // back a trip runs again about log2(s) / 2 times.  Under jot_vmap every lane has slots of its
    // own.  The loops stay one kernel while the slots of a lane take at most 32 KiB: about 200 for a
    // state of five numbers of double precision.  More slots are slower.
    int64_t slots;
    // Of a scan: what reverse mode keeps of it, k > 0 or a constant of enum jot_checkpoint.  With k
    // it keeps the state before every k-th trip and computes k trips at a time again on the way
    // back: one more run of the loop.  Derivatives are the same bits whatever is kept.
    int64_t checkpoint;
    int64_t batch; // of a map: so many rows at once, as jot_vmap; 0: one after the other
    size_t size;   // of this struct, set by the macro; 0 is this version
} jot_loop_options;

// What reverse mode keeps of a scan.
enum jot_checkpoint {
    // All residuals, while those of the loop (without the axes of a jot_vmap around the derivative)
    // are at most 256 MiB.  Else the k that keeps least, states of all segments and residuals of
    // one together: about sqrt(trips * bytes of the state / bytes of a trip's residuals).
    JOT_CHECKPOINT_AUTO = 0,
    JOT_CHECKPOINT_ALL = -1,  // the residuals of every trip: nothing is computed again
    JOT_CHECKPOINT_SQRT = -2, // k is the square root of the trips, rounded up
    // Only the first state: each trip back runs the loop again from the start, in all half the
    // square of the trips.
    JOT_CHECKPOINT_RECOMPUTE = -3,
};

JOT_BEGIN_C

// The same with bodies that are functions, for bodies that are data and for other languages: macros
// of the names without _at add the place, jot_scan(step, ctx, ...).  A step changes the carries in
// place.
//
// carry, row and out have as many values as the call that takes the step says; a row is without the
// axis of time.  The lists are the step's for the call only.  ctx is handed on.  A step may be
// called more than once for one loop (to see it with other types), so it must do the same each
// time.
typedef void jot_for_step(jot_value index, jot_value *carry, void *ctx);
// Sets every value of out.
typedef void jot_scan_step(jot_value *carry, const jot_value *row, jot_value *out, void *ctx);
// Gives one bool: whether there is a next trip.
typedef jot_value jot_while_condition(const jot_value *carry, void *ctx);
typedef void jot_while_step(jot_value *carry, void *ctx);

// carry = step(index, carry) for the indices from first to end - 1; none when end <= first.
JOT_API void jot_for_at(jot_for_step *step, void *ctx, jot_value first, jot_value end,
                        size_t n_carry, jot_value *carry, const char *where);
// carry, out[t] = step(carry, rows[t]) for every row t; out[k] becomes all rows of output k, along
// a new first axis.  options may be NULL.
JOT_API void jot_scan_at(jot_scan_step *step, void *ctx, size_t n_carry, jot_value *carry,
                         size_t n_rows, const jot_value *rows, size_t n_out, jot_value *out,
                         const jot_loop_options *options, const char *where);
// carry = step(carry) while condition(carry), which gives one bool.
JOT_API void jot_while_at(jot_while_condition *condition, jot_while_step *step, void *ctx,
                          size_t n_carry, jot_value *carry, const jot_loop_options *options,
                          const char *where);
// out = f(rows[t]) for every row t, along a new first axis; with options->batch so many rows at
// once.
JOT_API void jot_map_at(jot_function f, size_t n_rows, const jot_value *rows, size_t n_out,
                        jot_value *out, const jot_loop_options *options, const char *where);
// out = branches[index](in).  The index is one integer; below 0 the first branch is taken, above
// the last that one.  All branches give the same types.  Mapped over the index, each lane takes its
// own.
JOT_API void jot_switch_at(jot_value index, int n_branches, const jot_function *branches,
                           size_t n_in, const jot_value *in, size_t n_out, jot_value *out,
                           const char *where);
// x becomes its running combination along an axis:  x[t] = combine(x[t - 1], x[t]) from the second
// element on; with reverse x[t] = combine(x[t + 1], x[t]) from the last but one back.  combine
// takes an element of each of the n values, twice, and gives one of each, of the same types; it
// must be associative, for it is applied to neighbours first: fewer than 2 n combinations, in 2 log
// n rounds. Values may have different shapes but for the extent of the axis.
JOT_API void jot_associative_scan_tree(jot_function combine, size_t n, jot_value *x, int axis,
                                       bool reverse, const char *where);

// What the macros are made of.
JOT_API jot_block *jot_for_begin(const jot_piece *carry, jot_value trips, const char *where);
JOT_API jot_block *jot_range_begin(const jot_piece *carry, jot_value first, jot_value end,
                                   const char *where);
JOT_API bool jot_for_next(jot_block *b, jot_value *index);
JOT_API jot_block *jot_scan_begin(const jot_piece *carry, const jot_piece *in,
                                  const jot_piece *out, const jot_loop_options *options,
                                  const char *where);
JOT_API jot_block *jot_map_begin(const jot_piece *in, const jot_piece *out,
                                 const jot_loop_options *options, const char *where);
JOT_API jot_block *jot_while_begin(const jot_piece *carry, const jot_loop_options *options,
                                   const char *where);
JOT_API bool jot_while_test(jot_block *b, jot_value test);
JOT_API bool jot_while_stepped(jot_block *b); // false
JOT_API jot_block *jot_if_begin(const jot_piece *results, jot_value condition,
                                const char *where);
JOT_API bool jot_if_first(const jot_block *b);
JOT_API jot_block *jot_switch_begin(const jot_piece *results, jot_value index, int n_cases,
                                    const char *where);
JOT_API int jot_switch_case(const jot_block *b);

JOT_END_C

#if !defined(JOT_PLAIN)

// JOT_FOR (index, trips, state ...): trips is a C integer below 2^63 or one integer value;
// index is i32[], or i64[] where trips is a C integer outside of i32, or an i64, u64 or u32.
// With a C integer the loop is a scan, and reverse mode goes through it.
#define JOT_FOR(i, trips, ...) JOT_FOR_(__COUNTER__, i, trips, __VA_ARGS__)
#define JOT_FOR_(k, i, trips, ...)                                                             \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_PIECES_("JOT_FOR", __VA_ARGS__),                 \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_for_begin(JOT_CAT(jot_c_, k), JOT_VALUE_("JOT_FOR", trips),          \
                                    JOT_HERE ": JOT_FOR"))                                     \
    for (jot_value i; jot_for_next(JOT_CAT(jot_b_, k), &i); (void)i)

// JOT_FOR_RANGE (index, first, end, state ...): from first to end - 1; no trips when end <=
// first.  The index has the type that the wider of them asks for.
#define JOT_FOR_RANGE(i, first, end, ...)                                                      \
    JOT_FOR_RANGE_(__COUNTER__, i, first, end, __VA_ARGS__)
#define JOT_FOR_RANGE_(k, i, first, end, ...)                                                  \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_PIECES_("JOT_FOR_RANGE", __VA_ARGS__),           \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_range_begin(JOT_CAT(jot_c_, k), JOT_VALUE_("JOT_FOR_RANGE", first),  \
                                      JOT_VALUE_("JOT_FOR_RANGE", end),                        \
                                      JOT_HERE ": JOT_FOR_RANGE"))                             \
    for (jot_value i; jot_for_next(JOT_CAT(jot_b_, k), &i); (void)i)

// JOT_SCAN ((carry ...), (rows in ...), (rows out ...), .length = n, .reverse = true, .checkpoint =
// k)
#if defined(__cplusplus)
#define JOT_SCAN(carry, in, out) JOT_SCAN_(__COUNTER__, nullptr, carry, in, out)
#else
#define JOT_SCAN(carry, in, ...)                                                               \
    JOT_SCAN_(__COUNTER__,                                                                     \
              JOT_OPTIONS_(jot_loop_options,                                                   \
                           "JOT_SCAN takes ((carries), (rows in), (rows out), .length = ..., " \
                           ".reverse = ..., .checkpoint = ...)",                               \
                           JOT_REST_(__VA_ARGS__, .size = sizeof(jot_loop_options))),          \
              carry, in, JOT_FIRST_(__VA_ARGS__, 0))
#endif
#define JOT_SCAN_(k, options, carry, in, out)                                                  \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(JOT_SCAN, carry),                          \
                                   JOT_CAT(jot_i_, k)[] = JOT_LIST_(JOT_SCAN, in),             \
                                   JOT_CAT(jot_r_, k)[] = JOT_LIST_(JOT_SCAN, out),            \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_scan_begin(JOT_CAT(jot_c_, k), JOT_CAT(jot_i_, k),                   \
                                     JOT_CAT(jot_r_, k), options, JOT_HERE ": JOT_SCAN"))      \
    while (jot_block_next(JOT_CAT(jot_b_, k)))

// JOT_MAP ((rows in ...), (rows out ...), .batch = n): as JOT_VMAP, but one row after the other, or
// n rows at once: what memory a batch takes is taken once.
#if defined(__cplusplus)
#define JOT_MAP(in, out) JOT_MAP_(__COUNTER__, nullptr, in, out)
#else
#define JOT_MAP(in, ...)                                                                       \
    JOT_MAP_(__COUNTER__,                                                                      \
             JOT_OPTIONS_(jot_loop_options,                                                    \
                          "JOT_MAP takes ((rows in), (rows out), .batch = ...)",               \
                          JOT_REST_(__VA_ARGS__, .size = sizeof(jot_loop_options))),           \
             in, JOT_FIRST_(__VA_ARGS__, 0))
#endif
#define JOT_MAP_(k, options, in, out)                                                          \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(JOT_MAP, in),                              \
                                   JOT_CAT(jot_r_, k)[] = JOT_LIST_(JOT_MAP, out),             \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_map_begin(JOT_CAT(jot_c_, k), JOT_CAT(jot_r_, k), options,           \
                                    JOT_HERE ": JOT_MAP"))                                     \
    while (jot_block_next(JOT_CAT(jot_b_, k)))

// JOT_WHILE ((state ...), test, .bound = n, .slots = n)
#if defined(__cplusplus)
#define JOT_WHILE(state, test) JOT_WHILE_(__COUNTER__, nullptr, state, test)
#else
#define JOT_WHILE(state, ...)                                                                  \
    JOT_WHILE_(__COUNTER__,                                                                    \
               JOT_OPTIONS_(jot_loop_options,                                                  \
                            "JOT_WHILE takes ((state), test, .bound = ..., .slots = ...)",     \
                            JOT_REST_(__VA_ARGS__, .size = sizeof(jot_loop_options))),         \
               state, JOT_FIRST_(__VA_ARGS__, 0))
#endif
#define JOT_WHILE_(k, options, state, test)                                                    \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(JOT_WHILE, state),                         \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_while_begin(JOT_CAT(jot_c_, k), options, JOT_HERE ": JOT_WHILE"))    \
    while (jot_block_next(JOT_CAT(jot_b_, k)))                                                 \
        for (bool JOT_CAT(jot_t_, k) =                                                         \
                 jot_while_test(JOT_CAT(jot_b_, k), JOT_VALUE_("JOT_WHILE", test));            \
             JOT_CAT(jot_t_, k); JOT_CAT(jot_t_, k) = jot_while_stepped(JOT_CAT(jot_b_, k)))

// JOT_IF (condition, results ...) { ... } else { ... }: the condition is one bool.  Without an else
// the results keep their values.  Only one branch runs; under jot_vmap, for each lane.
#define JOT_IF(condition, ...) JOT_IF_(__COUNTER__, condition, __VA_ARGS__)
#define JOT_IF_(k, condition, ...)                                                             \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_PIECES_("JOT_IF", __VA_ARGS__),                  \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_if_begin(JOT_CAT(jot_c_, k), JOT_VALUE_("JOT_IF", condition),        \
                                   JOT_HERE ": JOT_IF"))                                       \
    while (jot_block_next(JOT_CAT(jot_b_, k)))                                                 \
        if (jot_if_first(JOT_CAT(jot_b_, k)))

// JOT_SWITCH (index, n, results ...) { case 0: ...; break; ... case n - 1: ... }: the cases are
// those of a C switch, and the body runs once for each.  A result that a case does not set keeps
// its value. An index below 0 is 0, and one from n on is n - 1.
#define JOT_SWITCH(index, n, ...) JOT_SWITCH_(__COUNTER__, index, n, __VA_ARGS__)
#define JOT_SWITCH_(k, index, n, ...)                                                          \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_PIECES_("JOT_SWITCH", __VA_ARGS__),              \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_switch_begin(JOT_CAT(jot_c_, k), JOT_VALUE_("JOT_SWITCH", index), n, \
                                       JOT_HERE ": JOT_SWITCH"))                               \
    while (jot_block_next(JOT_CAT(jot_b_, k)))                                                 \
        switch (jot_switch_case(JOT_CAT(jot_b_, k)))

#define jot_for(step, ctx, first, end, n_carry, carry)                                         \
    jot_for_at(step, ctx, JOT_VALUE_("jot_for", first), JOT_VALUE_("jot_for", end), n_carry,   \
               carry, JOT_HERE ": jot_for")
#define jot_scan(...) jot_scan_at(__VA_ARGS__, JOT_HERE ": jot_scan")
#define jot_while(...) jot_while_at(__VA_ARGS__, JOT_HERE ": jot_while")
#define jot_map(...) jot_map_at(__VA_ARGS__, JOT_HERE ": jot_map")
#define jot_switch(index, ...)                                                                 \
    jot_switch_at(JOT_VALUE_("jot_switch", index), __VA_ARGS__, JOT_HERE ": jot_switch")

#if defined(JOT_AUTO_)
// jot_associative_scan(combine, x), (combine, x, axis) or (combine, x, axis, reverse): the running
// combination of x, a value or a tree.
#define jot_associative_scan(...)                                                              \
    (JOT_TAKES_("jot_associative_scan takes (combine, x), (combine, x, axis) or (combine, x, " \
                "axis, reverse)",                                                              \
                2, 4, __VA_ARGS__),                                                            \
     JOT_ASSOCIATIVE_(JOT_CAT(jot_x_, __COUNTER__), __VA_ARGS__, 0, 0, 0, 0))
#define JOT_ASSOCIATIVE_(v, combine, x, axis, reverse, ...)                                    \
    __extension__({                                                                            \
        JOT_AUTO_ v = (x);                                                                     \
        JOT_NO_ARRAY_("jot_associative_scan", v);                                              \
        jot_associative_scan_tree(JOT_A_FUNCTION_("jot_associative_scan", combine),            \
                                  JOT_TREE_("jot_associative_scan", v), axis, reverse,         \
                                  JOT_HERE ": jot_associative_scan");                          \
        v;                                                                                     \
    })
#endif

#endif // JOT_PLAIN

#endif
