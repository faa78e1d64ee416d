// SPDX-License-Identifier: Apache-2.0
// Kernels of the user's own: expressions of C over elements, and kernels in CUDA C.
//
//     jot_value y = jot_elementwise("a, x", "t = exp(-a * x); x > 0 ? t : 1 - t", alpha, data);
#ifndef JOT_KERNELS_H
#define JOT_KERNELS_H

#include "jot/callback.h"
#include "jot/ops.h"

JOT_BEGIN_C

// ---- expressions ----

// What a C expression gives for each element of the values, which broadcast.  The expression becomes
// operations of the graph: it fuses with what stands beside it, has derivatives and runs on every
// device.
//
// names: those of the values in the expression, with commas between them, as many as there are
// values.  expression: C's operators but assignment ones, ++, --, & and * of addresses, [] . ->;
// before it definitions of names, each `name = expression;`.  An error in either is the value, with
// the column.
//
//     numbers       12, 0x7f, 1.5, 1e-3, with f, u or l behind them; like every C number they take
//                   the type of what they meet; true, false, M_PI, M_E, INFINITY, NAN
//     + - * /       as jot_add and so on: integers are divided as C divides them
//     %             C's remainder, jot_rem
//     < == && ! ?:  on elements; both sides of ?: are computed, && and || do not stop early
//     & | ^ ~ << >> of integers and bools
//     (float)x      jot_convert; also bool, char, short, int, long, unsigned, double, int8_t ...
//                   uint64_t, as 64-bit Linux has them
//     functions     those of math.h that jot has, also with an f behind them: sin cos tan asin acos
//                   atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p
//                   sqrt cbrt pow hypot fabs floor ceil rint nearbyint round trunc fmod fma erf erfc
//                   lgamma isnan isinf isfinite nextafter; abs, and jot's min max (NaN stays) rsqrt
//                   sign sigmoid relu gelu silu softplus logistic square where clamp erf_inv
JOT_API jot_value jot_elementwise_values(const char *names, const char *expression,
                                         const char *where, size_t n, const jot_value *x);

// ---- CUDA C ----

// A kernel of the user's in CUDA C.  Its parameters are the addresses of the operands, which it only
// reads, and then of the results, all of whose elements it writes: row-major arrays of the types that
// they have here.
//
//     static const char source[] =
//         "__global__ void scale(const float *x, float *y)"
//         "{ int i = blockIdx.x * 256 + threadIdx.x; if (i < 1000) y[i] = 2 * x[i]; }";
//     const jot_type types[] = {JOT_TYPE(JOT_F32, 1000)};
//     const jot_raw_kernel_spec scale = {
//         .name = "scale", .source = source, .n_out = 1, .out = types, .grid = {4}, .block = {256}};
//     jot_value y;
//     jot_raw_kernel(&scale, &y, x);
//
// It is compiled by NVRTC when the program is, and kept on disk.  Like a callback it is an effect
// (jot/callback.h), and has the derivative that jot_custom_jvp or jot_custom_vjp gives the function
// that it is called in.  Fields that are left out are zero.
typedef struct jot_raw_kernel_spec {
    const char *name;   // of the kernel in the source; may be a template with its arguments
    const char *source; // copied, as all texts are
    size_t n_out;
    const jot_type *out;        // the types of the n_out results, those of one lane
    unsigned grid[3], block[3]; // of the launch: blocks, and threads of a block; 0 is 1
    size_t shared_bytes;        // dynamic shared memory of a block
    const char *options;        // of NVRTC, with blanks between; may be NULL
    // Under jot_vmap: LANES launches it for one lane after the other, BATCH once, with a grid that
    // is as many times as deep (z) as there are lanes; every array has them in front.
    enum jot_callback_map map;
    jot_callback_function
        *host;      // computes the same where no GPU runs the function; may be NULL
    void *host_ctx; // as the ctx of a callback
} jot_raw_kernel_spec;

// The results of the kernel on the values.  What is wrong with the source is the status of the call
// that compiles.
JOT_API void jot_raw_kernel_values(const jot_raw_kernel_spec *spec, jot_value *out,
                                   const char *where, size_t n_in, const jot_value *in);

JOT_END_C

#if !defined(JOT_PLAIN)

// jot_raw_kernel(&spec, &y, x, ...)
#define jot_raw_kernel(spec, out, ...)                                                         \
    jot_raw_kernel_values(                                                                     \
        (JOT_NONE_LACKS_("jot_raw_kernel(" #spec ", " #out ", " #__VA_ARGS__ ")"), spec), out, \
        JOT_HERE ": jot_raw_kernel", JOT_VALUES_("jot_raw_kernel", __VA_ARGS__))

// jot_elementwise("x, y", "x * tanh(y)", x, y), of up to 63 values
#define jot_elementwise(names, ...)                                                            \
    jot_elementwise_values(                                                                    \
        names, JOT_FIRST_(__VA_ARGS__, 0), JOT_HERE ": jot_elementwise",                       \
        JOT_VALUES_("jot_elementwise", JOT_REST_(__VA_ARGS__, jot_no_value_())))

#endif // JOT_PLAIN

#endif
