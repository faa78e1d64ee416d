// SPDX-License-Identifier: Apache-2.0
// Status codes and the message that goes with the last failure.
//
// Every function that can fail for a reason outside the caller's code returns a jot_status and
// leaves its outputs untouched when it is not JOT_OK.  Operations on traced values return values
// instead: their first error sticks to the trace and comes out of the call that asked for it.
#ifndef JOT_STATUS_H
#define JOT_STATUS_H

// Around declarations that have the linkage of C.
#if defined(__cplusplus)
#define JOT_BEGIN_C extern "C" {
#define JOT_END_C }
#else
#define JOT_BEGIN_C
#define JOT_END_C
#endif

// Marks of declarations: seen outside of the library; the result must be used; may be unused.
#if defined(__GNUC__)
#define JOT_API __attribute__((visibility("default")))
#define JOT_MUST_USE __attribute__((warn_unused_result))
#define JOT_UNUSED __attribute__((unused))
#else
#define JOT_API
#define JOT_MUST_USE
#define JOT_UNUSED
#endif

// What came of a call.
typedef enum jot_status {
    JOT_OK = 0,
    JOT_ERR_ARGUMENT, // an argument is outside what the function takes
    JOT_ERR_SHAPE,    // shapes do not fit together
    JOT_ERR_DTYPE,    // the operation is not defined for the element type
    JOT_ERR_STALE,    // a handle outlived its trace
    JOT_ERR_TRACE,    // the traced code is not a function: missing output, early exit, ...
    JOT_ERR_MEMORY,   // out of memory
    JOT_ERR_LIBRARY,  // a library that the call needs is missing or failed
    JOT_ERR_DEVICE,   // the device is missing or lost
    JOT_ERR_IO,       // a file could not be read or written
    JOT_ERR_CHECK,    // a check of the program does not hold: an assertion, the bound of a loop
    JOT_ERR_INTERNAL, // a fault of jot itself
} jot_status;

JOT_BEGIN_C

// The message of the last failure on this thread: what was wrong and what would be right.  Never
// NULL; empty when nothing failed yet.  Borrowed until the next failing call of the thread.
JOT_API const char *jot_error_message(void);

// The status again.  When it is not JOT_OK and the message of this thread names no place,
// "file:line" of where goes before it.  NULL is no place.
JOT_API JOT_MUST_USE jot_status jot_status_place(jot_status status, const char *where);

// The name of a status, such as "JOT_ERR_SHAPE".
JOT_API const char *jot_status_name(jot_status status);

JOT_END_C

#endif
