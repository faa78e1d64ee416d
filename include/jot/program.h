// SPDX-License-Identifier: Apache-2.0
// Programs from elsewhere as functions: StableHLO, as JAX and others write it.
//
//     jot_program *p = jot_program_read("model.jaxexport");
//     jot_executable *f = jot_jit(jot_program_function(p, "main"));
//     jot_executable *df = jot_jit(jot_grad(jot_program_function(p, "main"), 0));
//     if (jot_call(f, JOT_IN(x, y), JOT_OUT(z)) != JOT_OK)
//         fprintf(stderr, "%s\n", jot_error_message());
//     jot_executable_release(f);
//     jot_program_release(p);
//
// What jax.jit(f).lower(x).as_text() prints is read, and so are portable bytecode and what
// jax.export.export(jax.jit(f))(x).serialize() gives.  A function of a program is a function value
// like any other: it is compiled, differentiated, mapped and called in traced functions.  Loops that
// count their trips are differentiated in reverse as well.
//
// What is differentiated is what the program computes.  What JAX was told of derivatives is not in a lowered program:
// stop_gradient, custom_jvp, custom_vjp, and that the solution of cg or of custom_root has the derivative of its
// equation, not that of the iteration, which is less accurate.  An artefact serialized with vjp_order=1 brings JAX's
// gradient along, which is its derivative in reverse mode.
// Where a program computes with the bits of floats there is no derivative, and it is 0; lgamma, which JAX 0.12 writes
// so, is found.
//
// A decomposition that reads one triangle, as cho_factor's, has the derivative of a function of that
// triangle; JAX takes it as one of a symmetric matrix, which is the same only where changes are symmetric.
//
// Products of DEFAULT precision are those of f32, on a GPU as on the host, unless the options of
// jot_jit say otherwise.  Integers of 2 and 4 bits and floats of 4, 6 and 8 are kept in the next type that holds
// them (f8E8M0FNU in f32), and what an operation computes is wrapped or rounded to them: a sum at its end.
// Arguments are taken as they are, and derivatives go through the rounding.  Tuples are their parts, of a function
// arguments or results one after the other, and tokens nothing.  Quantized types, extents that are not known,
// collectives, several partitions, infeed and callbacks are refused with the place of the operation when a
// function is traced that has them.
//
// Thread-safety: a program does not change once it is read.
#ifndef JOT_PROGRAM_H
#define JOT_PROGRAM_H

#include "jot/device.h"
#include "jot/dtype.h"
#include "jot/function.h"

JOT_BEGIN_C

// A program that was read or made: one or more functions.
typedef struct jot_program jot_program;

// The program in a file, or in n bytes of memory; `name` stands for the file in messages.  NULL with a message:
// the place in the file, and what is wrong there.  Neither is needed when it is read: constants are copied, once,
// and executables share large ones.  A large file is mapped: it must not be written to or made shorter meanwhile.
JOT_API JOT_MUST_USE jot_program *jot_program_read(const char *path);
JOT_API JOT_MUST_USE jot_program *jot_program_from_memory(const char *name, const void *bytes,
                                                          size_t n);
// The same, in which large constants of bytecode and of artefacts stay where they are in memory of the caller.  It may
// be written to: those that are not aligned are moved by some bytes, or copied where there is no room for that.
// release(bytes, ctx) is called, once, when neither the program nor an executable or array that was made of it
// uses the memory any more, which may be at once; it may be NULL, and may be called from any thread.  On failure it
// is not called.
JOT_API JOT_MUST_USE jot_program *jot_program_borrow(const char *name, void *bytes, size_t n,
                                                     void (*release)(void *bytes, void *ctx),
                                                     void *ctx);
// After the functions and executables that were made of it are done with.  NULL is fine.
JOT_API void jot_program_release(jot_program *p);

// The function of that name; of most programs the one to run is "main".  Arguments and results are as
// the program has them, in the order of the flattened arguments of JAX.  Of an artefact of jax.export
// "main" takes all arguments, also those that it does not use, and "vjp" is the gradient that it was
// serialized with: it takes the cotangents of the results behind them.  Where there is none, using it
// fails with the names that there are.  It holds as long as the program.
JOT_API jot_function jot_program_function(const jot_program *p, const char *name);

// The number of functions, and their names; NULL beyond the last.
JOT_API size_t jot_program_functions(const jot_program *p);
JOT_API const char *jot_program_name(const jot_program *p, size_t i);

// The type of an argument or a result.
typedef struct jot_program_type {
    jot_dtype dtype;
    int rank;
    const int64_t *dims; // -1: not known
} jot_program_type;

// What a function takes and gives.
typedef struct jot_program_signature {
    size_t n_in, n_out;
    const jot_program_type *in, *out;
    const bool *donated; // of inputs: the program allows that they are overwritten
    // What inputs are called: "x" or "params['w']" in a function of JAX where the program tells, as jax.export's
    // does, else what the text has, "arg0"; NULL where neither is known.
    const char *const *names;
} jot_program_signature;

// NULL with a message when there is no such function.
JOT_API const jot_program_signature *jot_program_signature_of(const jot_program *p,
                                                              const char *name);

// ---- writing ----

// Writes the program to a file: as text of StableHLO where the name ends in ".mlir", as portable bytecode,
// which jaxlib reads, where it ends in ".mlirbc".  Reading that gives the program again; locations are
// not kept, and in bytecode, which has no operations of CHLO, as chlo.erf, these are calls of functions of what it has.
// JOT_ERR_ARGUMENT for other endings, and for what has no portable form, as quantized types.
JOT_API JOT_MUST_USE jot_status jot_program_write(const jot_program *p, const char *path);

// How a program is written.
typedef enum jot_program_format {
    JOT_PROGRAM_TEXT,     // as jax.jit(f).lower(x).as_text() prints it
    JOT_PROGRAM_BYTECODE, // as stablehlo.deserialize_portable_artifact takes it
} jot_program_format;

// The same to memory: *out_n is set to the number of bytes, and they are put to the buffer when it has room for
// so many.
JOT_API JOT_MUST_USE jot_status jot_program_to_memory(const jot_program *p,
                                                      jot_program_format form, void *buffer,
                                                      size_t size, size_t *out_n);

// A function as a program, whose "main" is the function for arguments of those n types: StableHLO, as JAX reads
// it.  Transforms are done, so that jot_grad(...) is written as the gradient, and the rules of derivatives
// that functions bring along are left behind; arrays that it uses are constants.  What StableHLO has no
// operation for is a composite, "chlo.erf" or "jot.gamma", with a decomposition; matrices are factored by calls of the
// routines that JAX has on the host.  Checks are left out.  NULL with a message: that of tracing, or
// JOT_ERR_TRACE for a function that calls back into this program.
JOT_API JOT_MUST_USE jot_program *jot_program_from_function(jot_function f, size_t n,
                                                            const jot_program_type *in);
// What each device of a mesh does of such a function, one of jot_shard_map or jot_pmap or made of them, for
// whole arguments of those types: "main" takes and gives pieces, and the devices are the partitions of the
// program, between which its collectives are.  It runs in jot_vmap_named or jot_pmap over an axis called
// "partition", as a program of several partitions does, and one of several replicas over "replica".
JOT_API JOT_MUST_USE jot_program *jot_program_of_device(jot_function f, size_t n,
                                                        const jot_program_type *in);

// ---- tests of StableHLO ----

// Runs the functions of a test program of StableHLO that check something, which take no arguments, and
// compares what their checks name: expect_eq by bits, NaN equal to NaN; expect_close by units in the
// last place, three unless it says how many; expect_almost_eq by an absolute difference, 1e-3 unless
// it says which.  JOT_OK when all hold, JOT_ERR_CHECK with the place, the element and both numbers
// of the first that does not; other statuses where it could not be run.
//
// Functions of elements may differ by four units, products and convolutions by 4 K eps |a| |b|, K the
// terms of a sum, and transforms by 16 eps of the largest element: *out_wide is set to the number of
// checks that hold only so.  On the device, or where that is NULL the default one.
JOT_API JOT_MUST_USE jot_status jot_program_check(const jot_program *p, jot_device *device,
                                                  int *out_wide);

JOT_END_C

#endif
