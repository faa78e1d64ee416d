// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms, as the op fft has them.
//
// FFT     X[k] = sum_j x[j] exp(-2 pi i j k / n)       complex to complex
// IFFT    x[j] = 1/n sum_k X[k] exp(2 pi i j k / n)    complex to complex
// RFFT    FFT of a real array: the first n/2 + 1 along the last axis, of which the rest are conjugates
// IRFFT   IFFT of such a half to a real array; imaginary parts that no half has are ignored
//
// Of several axes each is transformed; only the last of them is halved.
#ifndef BASE_FFT_H
#define BASE_FFT_H

#include <stdbool.h>
#include <stdint.h>

enum fft_kind { FFT_FFT, FFT_IFFT, FFT_RFFT, FFT_IRFFT, FFT_KIND_COUNT };

static inline bool fft_is_inverse(enum fft_kind kind)
{
    return kind == FFT_IFFT || kind == FFT_IRFFT;
}
// Elements along the last axis of a half.
static inline int64_t fft_half(int64_t n) { return n / 2 + 1; }

#endif
