// SPDX-License-Identifier: Apache-2.0
// Finding out what a program does while it runs.
//
// What these do beside computing is an effect: it is done once for each time that the place is
// reached, in the order in which the program has it, also where nothing reads a result.  In a loop
// it happens in every trip; in a branch when the branch is taken; under jot_vmap for every lane, in
// order.  Gradients do it once, with the values of the function itself.  In a lazy scope it happens
// with the next evaluation.
#ifndef JOT_DEBUG_H
#define JOT_DEBUG_H

#include "jot/callback.h"
#include "jot/ops.h"
#include "jot/trace.h"

JOT_BEGIN_C

// The call fails with JOT_ERR_CHECK unless every element of holds, bool of any shape, is true;
// results are then untouched.  The message of the call is
//     prog.c:12: jot_assert(jot_greater(x, 0)): message, at [3, 1], in lane 2, in trip 5
// with the index of the first element that is false (a scalar has none), the lane of the jot_vmap
// and the trip of the loop around it; of several "in lanes 2, 0, in trips 5, 17", the outermost
// first.  The text is copied; NULL is "does not hold".  where is a literal.
JOT_API void jot_assert_value(jot_value holds, const char *message, const char *where);

// Calls a C function: jot/callback.h.  out receives the results, n_out of the spec, whose types it
// says; the spec is copied.  Its tangent is an error, unless jot_custom_vjp or jot_custom_jvp
// around it give one.  A compiled function with callbacks is compiled anew in each process.
JOT_API void jot_callback_values(const jot_callback_spec *spec, jot_value *out,
                                 const char *where, size_t n_in, const jot_value *in);

// Writes to stdout when the values are there, in one piece: each {} of the format is a value, as
// jot_array_print has it; {{ and }} are braces.  Under jot_vmap every lane of the values is
// written, in order, with "[lane] " before it, or "[2, 0] " under several, the outermost first.  In
// a branch or a while that lanes take by themselves one lane is done after the other.  Trips are
// not written: the index of a loop is a value for {}.  In a lazy scope it is done at once.
// The format is copied, and may be of any length.  There are as many values as it has {}, or
// the trace is in error; they end after n_in or before the first {0, 0}, which is none, and
// there is no limit to them (the macro: 63).
JOT_API void jot_printf_values(const char *format, const char *where, size_t n_in,
                               const jot_value *in);

JOT_END_C

#if !defined(JOT_PLAIN)

// jot_callback(&spec, &y, x, ...)
#define jot_callback(spec, out, ...)                                                           \
    jot_callback_values(                                                                       \
        (JOT_NONE_LACKS_("jot_callback(" #spec ", " #out ", " #__VA_ARGS__ ")"), spec), out,   \
        JOT_HERE ": jot_callback", JOT_VALUES_("jot_callback", __VA_ARGS__))

// jot_printf("x = {}\n", x), of up to 63 values
#define jot_printf(...)                                                                        \
    jot_printf_values(JOT_FIRST_(__VA_ARGS__, 0), JOT_HERE ": jot_printf",                     \
                      JOT_VALUES_("jot_printf", JOT_REST_(__VA_ARGS__, jot_no_value_())))

#if defined(JOT_NO_TEXT)
#define jot_assert(holds, message)                                                             \
    jot_assert_value(JOT_VALUE_("jot_assert", holds), message, JOT_HERE)
#else
#define jot_assert(holds, message)                                                             \
    jot_assert_value(JOT_VALUE_("jot_assert", holds), message,                                 \
                     JOT_HERE ": jot_assert(" #holds ")")
#endif

#endif // JOT_PLAIN

#endif
