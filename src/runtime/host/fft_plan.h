// SPDX-License-Identifier: Apache-2.0
// Transforms of one axis on the host: by FFTW, which is loaded at the first use and never linked, for
// its licence is not jot's; without it by jot's own passes, which take a few times as long.
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

// What a plan transforms.  A panel is of lines side by side: element j of line i is at j * width + i.
enum fft_form {
    FFT_PANEL,
    FFT_ROW,          // one line from memory to other memory
    FFT_ROW_IN_PLACE, // FFTW alone has these four
    FFT_ROW_OF_REALS, // to its half
    FFT_ROW_OF_HALF,  // to reals
};

struct fft_key {
    jot_dtype real; // of the parts: f32 or f64
    enum fft_form form;
    bool is_inverse;
    int64_t n;
};

struct fft_plan {
    struct fft_key key;
    void *fftw;          // NULL: own
    struct fft_own *own; // NULL: FFTW
    struct fft_plan *next;
};

// Lines side by side: as many as make whole cache lines, while a panel stays in the nearest caches.
int fft_width(int64_t n);
// Elements of memory that each of the two buffers of a panel needs.
int64_t fft_panel_room(const struct fft_plan *plan);

// JOT_ERR_MEMORY.
jot_status fft_plan_get(const struct fft_key *key, const struct fft_plan **out);

// Whether there are plans of rows of n elements.
bool fft_has_rows(int64_t n);

// Not scaled.  Transforms the panel in a; the result is there or in b, as is returned.
void *fft_run_panel(const struct fft_plan *plan, void *a, void *b);
// Both 16-byte aligned.
void fft_run_row(const struct fft_plan *plan, void *from, void *to);

// ---- FFTW (fftw.c)

bool fftw_is_there(void);
void *fftw_plan(const struct fft_key *key, int width); // NULL when memory is out
void fftw_run(const struct fft_plan *plan, void *from, void *to);

// ---- jot's own (fft_own.c)

// NULL when memory is out.
struct fft_own *fft_own_create(jot_dtype real, bool is_inverse, int64_t n);
int64_t fft_own_room(const struct fft_own *plan, int width);
void *fft_own_run(const struct fft_own *plan, int width, void *a, void *b);

#endif
