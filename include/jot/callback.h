// SPDX-License-Identifier: Apache-2.0
// C functions that a compiled function calls while it runs.
//
//     static jot_status measure(void *ctx, const jot_callback_call *call)
//     {
//         const double *x = call->in[0].data;
//         double *y = call->out[0].data;
//         ...
//         return JOT_OK;
//     }
//
//     const jot_type types[] = {JOT_TYPE(JOT_F64, 3)};
//     const jot_callback_spec spec = {.call = measure, .ctx = &bench, .n_out = 1, .out = types};
//     jot_value y;
//     jot_callback(&spec, &y, x);
//
// A callback is an effect (jot/debug.h): it is called once for each time that its place is reached,
// in the order of the program, though nobody reads its results.
#ifndef JOT_CALLBACK_H
#define JOT_CALLBACK_H

#include "jot/dtype.h"
#include "jot/macros.h"
#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An array of a call, row-major: elements of an operand, to be read, or of a result, all of
// which are to be written.  Borrowed for the call; data may be NULL when there are no elements.
typedef struct jot_callback_array {
    jot_dtype dtype;
    int rank;
    const int64_t *dims;
    void *data;
} jot_callback_array;

// What a callback is called with: operands and results in the order of jot_callback, of the
// types that they have there.  Everything is borrowed for the call.
typedef struct jot_callback_call {
    size_t n_in, n_out;
    const jot_callback_array *in, *out;
    // Leading axes that every operand and result has because the callback was mapped, those of the
    // outermost map first; 0 unless the spec says JOT_CALLBACK_BATCH.
    int n_lanes;
} jot_callback_call;

// Runs on the thread that called the compiled function, which waits for it; several threads
// that call that at once call this at once.  It may use jot, but no values of a trace; it may
// call the executable that calls it, and release it: an executable is freed when its last call
// has returned.  A status other than JOT_OK ends the run and is the status of that call.  The
// message has the place and the name, then that of jot_callback_fail or of the function of jot
// that failed, then the lane and the trips of the loops around it.  Results of the call are
// untouched then, and when the callback leaves the run by an exception, by longjmp or by ending
// the thread, all of which it may do as a traced function may (jot/transform.h).
typedef jot_status jot_callback_function(void *ctx, const jot_callback_call *call);

// What jot_vmap makes of a callback.
enum jot_callback_map {
    JOT_CALLBACK_LANES, // jot_vmap calls it for one lane after the other
    JOT_CALLBACK_BATCH, // jot_vmap calls it once, with the lanes as leading axis of every array
};

// A dtype and sizes that end with JOT_END.  JOT_TYPE(JOT_F32, 3, 4), JOT_TYPE(JOT_I32) for a
// scalar.  The sizes last as long as the block it stands in, so in a function it is not static.
typedef struct jot_type {
    jot_dtype dtype;
    const int64_t *dims;
} jot_type;
#define JOT_TYPE(...) {JOT_FIRST_(__VA_ARGS__, 0), JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))}

// What jot_callback is to call.  Fields that are left out are zero: no context, no name, no
// results, and for .map 0 is JOT_CALLBACK_LANES.
typedef struct jot_callback_spec {
    jot_callback_function *call; // not NULL
    void *ctx;                   // borrowed while any executable that was made with it lives
    const char *name;            // in messages; NULL: none
    size_t n_out;
    const jot_type *out; // the types of the n_out results, those of one lane
    enum jot_callback_map map;
} jot_callback_spec;

JOT_BEGIN_C

// Leaves the message for the call and returns the status, for a callback to return.
JOT_API jot_status jot_callback_fail(jot_status status, const char *message);

JOT_END_C

#endif
