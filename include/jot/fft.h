// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms: names, meanings and derivatives are those of jax.numpy.fft.
//
//     jot_fft(x)       X[k] = sum_j x[j] exp(-2 pi i j k / n)        along the last axis
//     jot_ifft(X)      x[j] = 1/n sum_k X[k] exp(2 pi i j k / n)
//     jot_rfft(x)      of real x: X[0 .. n/2], for X[n - k] = conj(X[k])
//     jot_irfft(X)     the real x of such a half
//     jot_fft2(x)      along the last two axes; jot_fftn(x) along all of them
//
//     jot_rfft(x, .n = JOT_SIZES(256), .axes = JOT_AXES(0), .norm = JOT_FFT_ORTHO)
//
// f32 and c64 give c64 or f32, f64 and c128 the wider ones; integers are converted to floats,
// real numbers to complex ones where the transform is of these.  A length is any; powers of 2,
// 3, 5 and 7 are fastest, a large prime takes several times as long.  Errors grow with log n,
// some units in the last place of the largest element.
//
// Derivatives are transforms.  A map is a transform of more rows.
#ifndef JOT_FFT_H
#define JOT_FFT_H

#include "jot/ops.h"

JOT_BEGIN_C

// What a transform of N points, over all its axes, is divided by, there and back.
typedef enum jot_fft_norm {
    JOT_FFT_BACKWARD, // 1 and N
    JOT_FFT_ORTHO,    // sqrt(N) and sqrt(N): lengths of vectors stay
    JOT_FFT_FORWARD,  // N and 1
} jot_fft_norm;

// Named options of the transforms, `.axes = JOT_AXES(0, 1)`.
typedef struct jot_fft_options {
    // The length along each of the axes, JOT_SIZES(n, ...): what is longer is cut off at the
    // end, what is shorter has zeros there.  NULL: as x is; from halves 2 (m - 1) along the
    // last of the axes.
    const int64_t *n;
    // Which axes, JOT_AXES(axis, ...), each once; the last one is that of the half.
    const int *axes;
    jot_fft_norm norm;
    size_t size; // of this struct, set by the macro; 0 is this version
} jot_fft_options;

// options may be NULL.  An error for a length below 1, an axis that is not there or is listed
// twice, as many lengths as there are no axes, f16 and bf16.

// Along one axis, the last one unless options say another.
JOT_API jot_value jot_fft(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_ifft(jot_value x, const jot_fft_options *options);
// From n real numbers to n/2 + 1, and back.  Back, the imaginary parts of X[0] and of X[n/2],
// which no half has, are ignored; whether n is even or odd only `n` tells.
JOT_API jot_value jot_rfft(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_irfft(jot_value x, const jot_fft_options *options);
// The real transform of a signal that is its own mirrored conjugate, of which x is the first half:
// n irfft(conj(x)); and back, conj(rfft(x)) / n.
JOT_API jot_value jot_hfft(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_ihfft(jot_value x, const jot_fft_options *options);

// Along two axes, the last ones unless options say others.
JOT_API jot_value jot_fft2(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_ifft2(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_rfft2(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_irfft2(jot_value x, const jot_fft_options *options);

// Along all axes, or those that options say; of lengths without axes, along as many last ones.
JOT_API jot_value jot_fftn(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_ifftn(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_rfftn(jot_value x, const jot_fft_options *options);
JOT_API jot_value jot_irfftn(jot_value x, const jot_fft_options *options);

// Moves frequency 0 to the middle of the axes, all of them when none is listed; and back.
JOT_API jot_value jot_fftshift_axes(jot_value x, const int *axes);
JOT_API jot_value jot_ifftshift_axes(jot_value x, const int *axes);

// The n frequencies of jot_fft in cycles per unit for samples d apart, 0, 1, ..., -1 over d n; those of
// jot_rfft, 0, 1, ..., n/2 over d n.  dtype is floating, n at least 1.
JOT_API jot_value jot_fftfreq(jot_dtype dtype, int64_t n, double d);
JOT_API jot_value jot_rfftfreq(jot_dtype dtype, int64_t n, double d);

JOT_END_C

// A list of lengths:  .n = JOT_SIZES(128, 128)
#define JOT_SIZES(...) JOT_DIMS_(__VA_ARGS__, JOT_END)

#if !defined(JOT_PLAIN)

// clang-format off
// In C++ the options are the second argument, a pointer or nothing.
#if defined(__cplusplus)
#define JOT_FFT_(f, t, ...) JOT_FFT_OF_(f, t, __VA_ARGS__, nullptr, 0)
#define JOT_FFT_OF_(f, t, x, options, ...) JOT_OP_(#f "(" t ")", f(JOT_VALUE_(#f, x), options))
#else
#define JOT_FFT_(f, t, ...) JOT_FFT_OF_(f, t, __VA_ARGS__, .size = sizeof(jot_fft_options))
#define JOT_FFT_OF_(f, t, x, ...)                                                              \
    JOT_OP_(#f "(" t ")", f(JOT_VALUE_(#f, x), JOT_OPTIONS_(jot_fft_options, #f " takes (x, .n = JOT_SIZES(...), .axes = JOT_AXES(...), .norm = ...)", __VA_ARGS__)))
#endif
#define jot_fft(...) JOT_FFT_(jot_fft, #__VA_ARGS__, __VA_ARGS__)
#define jot_ifft(...) JOT_FFT_(jot_ifft, #__VA_ARGS__, __VA_ARGS__)
#define jot_rfft(...) JOT_FFT_(jot_rfft, #__VA_ARGS__, __VA_ARGS__)
#define jot_irfft(...) JOT_FFT_(jot_irfft, #__VA_ARGS__, __VA_ARGS__)
#define jot_hfft(...) JOT_FFT_(jot_hfft, #__VA_ARGS__, __VA_ARGS__)
#define jot_ihfft(...) JOT_FFT_(jot_ihfft, #__VA_ARGS__, __VA_ARGS__)
#define jot_fft2(...) JOT_FFT_(jot_fft2, #__VA_ARGS__, __VA_ARGS__)
#define jot_ifft2(...) JOT_FFT_(jot_ifft2, #__VA_ARGS__, __VA_ARGS__)
#define jot_rfft2(...) JOT_FFT_(jot_rfft2, #__VA_ARGS__, __VA_ARGS__)
#define jot_irfft2(...) JOT_FFT_(jot_irfft2, #__VA_ARGS__, __VA_ARGS__)
#define jot_fftn(...) JOT_FFT_(jot_fftn, #__VA_ARGS__, __VA_ARGS__)
#define jot_ifftn(...) JOT_FFT_(jot_ifftn, #__VA_ARGS__, __VA_ARGS__)
#define jot_rfftn(...) JOT_FFT_(jot_rfftn, #__VA_ARGS__, __VA_ARGS__)
#define jot_irfftn(...) JOT_FFT_(jot_irfftn, #__VA_ARGS__, __VA_ARGS__)
#define jot_fftshift(...) JOT_AXES_OP_(fftshift, #__VA_ARGS__, __VA_ARGS__)
#define jot_ifftshift(...) JOT_AXES_OP_(ifftshift, #__VA_ARGS__, __VA_ARGS__)
#define jot_fftfreq(dtype, n, d)                                                               \
    JOT_OP_("jot_fftfreq(" #dtype ", " #n ", " #d ")", jot_fftfreq(dtype, n, d))
#define jot_rfftfreq(dtype, n, d)                                                              \
    JOT_OP_("jot_rfftfreq(" #dtype ", " #n ", " #d ")", jot_rfftfreq(dtype, n, d))
// clang-format on

#endif // JOT_PLAIN

#endif
