// SPDX-License-Identifier: Apache-2.0
// Transforms of one axis on the host: by jot's own passes over panels of lines; of few or long rows by
// FFTW, which is loaded at the first use and never linked, for its licence is not jot's.
//
// Plans are kept for the life of the process, by what they transform.
//
// Thread-safety: any thread.
#ifndef RUNTIME_HOST_FFT_PLAN_H
#define RUNTIME_HOST_FFT_PLAN_H

#include "base/fft.h"
#include "jot/dtype.h"
#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>

// What a plan transforms.  A panel is of lines side by side, as many as a vector of FFT_VECTOR
// bytes has: for each element the real parts and then the imaginary parts of fft_own_lanes
// lines, then those of the next.  An even number of reals are half as many elements of a panel:
// those of even indices are real parts, the others imaginary ones.  An odd number are real parts.
#define FFT_VECTOR 64
enum fft_form {
    FFT_PANEL,        // by own passes
    FFT_ROW,          // by FFTW: one line from memory to other memory
    FFT_ROW_IN_PLACE, // in its memory
};

struct fft_key {
    jot_dtype real; // of the parts: f32 or f64
    enum fft_form form;
    enum fft_kind kind;
    int64_t n;
};

struct fft_plan {
    struct fft_key key;
    void *fftw;          // NULL: own
    struct fft_own *own; // NULL: FFTW
    struct fft_plan *next;
};

// Whether they are reals that are two and two an element of a panel.
static inline bool fft_has_pairs(enum fft_kind kind, int64_t n)
{
    return (kind == FFT_RFFT || kind == FFT_IRFFT) && n % 2 == 0;
}

static inline int fft_lanes(jot_dtype real) { return FFT_VECTOR / (real == JOT_F32 ? 4 : 8); }

// JOT_ERR_MEMORY.
jot_status fft_plan_get(const struct fft_key *key, const struct fft_plan **out);

// Whether FFTW is there for so many rows, and panels are not faster; whatever the form.
bool fft_takes_rows(const struct fft_key *key, int64_t lines);

// ---- FFTW (fftw.c)

bool fftw_is_there(void);
const char *fftw_name(void); // "fftw-3.3.10-sse2-avx"; NULL where it is not there
void *fftw_plan(const struct fft_key *key); // NULL when memory is out
// Not scaled.  Both 16-byte aligned.
void fftw_run(const struct fft_plan *plan, void *from, void *to);

// ---- jot's own (fft_own.c)

// Whether n has small factors alone; a convolution does what has others, which FFTW is slow at.
bool fft_own_has_passes(int64_t n);
// NULL when memory is out.
struct fft_own *fft_own_create(jot_dtype real, enum fft_kind kind, int64_t n);
// Bytes of each of the two buffers of a panel.
size_t fft_own_room(const struct fft_own *plan);
int fft_own_lanes(const struct fft_own *plan);
// A panel of lines whose complex numbers lie side by side, element after element `step` real
// numbers apart, and back, scaled.
void fft_own_load(const struct fft_own *plan, const void *block, int64_t step, void *panel);
void fft_own_store(const struct fft_own *plan, const void *panel, double scale, void *block,
                   int64_t step);
// The same of rows of n complex numbers, line after line `step` real numbers apart.
void fft_own_load_rows(const struct fft_own *plan, int64_t n, const void *rows, int64_t step,
                       void *panel);
void fft_own_store_rows(const struct fft_own *plan, int64_t n, const void *panel, double scale,
                        void *rows, int64_t step);
// Not scaled.  Transforms the panel in a, 64-byte aligned; the result is there or in b, as is returned.
void *fft_own_run(const struct fft_own *plan, void *a, void *b);

#endif
