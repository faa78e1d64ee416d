// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/fft_plan.h"
#include "runtime/host/linkage.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD (-1)
#define BACKWARD 1
// Which routine a plan takes depends on its length alone, not on what else the machine does.
#define ESTIMATE (1u << 6)
#define PRESERVE_INPUT (1u << 4)

struct entries {
#define FFTW(name, result, parameters) result(*name) parameters;
#include "runtime/host/fftw.def"
#undef FFTW
};

static struct {
    struct entries of_f32, of_f64;
    const char *version; // that of the library for f32
    bool is_there;
} fftw;

static bool load_entries(const char *file, const char *prefix, struct entries *out)
{
    void *library = rt_open_private(file, prefix[4] == 'f' ? "fftwf_version" : "fftw_version");
    char symbol[64];
    void *at;
    if (!library)
        return false;
    fftw.version = dlsym(library, prefix[4] == 'f' ? "fftwf_version" : "fftw_version");
#define FFTW(name, ...)                                                                        \
    strcpy(stpcpy(symbol, prefix), #name);                                                     \
    if (!(at = dlsym(library, symbol)))                                                        \
        return false;                                                                          \
    memcpy(&out->name, &at, sizeof at);
#include "runtime/host/fftw.def"
#undef FFTW
    return true;
}

static void load_both(void)
{
    const char *asked = secure_getenv("JOT_FFTW");
    fftw.is_there = !(asked && !strcmp(asked, "off")) && rt_has_dynamic_linker() &&
                    load_entries("libfftw3.so.3", "fftw_", &fftw.of_f64) &&
                    load_entries("libfftw3f.so.3", "fftwf_", &fftw.of_f32);
}

bool fftw_is_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_both);
    return fftw.is_there;
}

const char *fftw_name(void) { return fftw_is_there() ? fftw.version : NULL; }

static const struct entries *entries_of(const struct fft_key *key)
{
    return key->real == JOT_F32 ? &fftw.of_f32 : &fftw.of_f64;
}

static void *plan(const struct fft_key *key, void *a, void *b)
{
    const struct entries *e = entries_of(key);
    int n = (int)key->n, sign = fft_is_inverse(key->kind) ? BACKWARD : FORWARD;
    if (key->kind == FFT_RFFT)
        return e->plan_many_dft_r2c(1, &n, 1, a, NULL, 1, n, b, NULL, 1, n,
                                    ESTIMATE | PRESERVE_INPUT);
    if (key->kind == FFT_IRFFT)
        return e->plan_many_dft_c2r(1, &n, 1, a, NULL, 1, n, b, NULL, 1, n,
                                    ESTIMATE | PRESERVE_INPUT);
    if (key->form == FFT_ROW_IN_PLACE)
        return e->plan_many_dft(1, &n, 1, a, NULL, 1, n, a, NULL, 1, n, sign, ESTIMATE);
    return e->plan_many_dft(1, &n, 1, a, NULL, 1, n, b, NULL, 1, n, sign,
                            ESTIMATE | PRESERVE_INPUT);
}

void *fftw_plan(const struct fft_key *key)
{
    size_t bytes = ((size_t)key->n + 1) * (key->real == JOT_F32 ? 8 : 16);
    void *a = rt_block_allocate(bytes), *b = rt_block_allocate(bytes);
    void *made = a && b && key->n <= INT_MAX ? plan(key, a, b) : NULL;
    rt_block_release(a, bytes);
    rt_block_release(b, bytes);
    return made;
}

void fftw_run(const struct fft_plan *p, void *from, void *to)
{
    const struct entries *e = entries_of(&p->key);
    if (p->key.kind == FFT_RFFT)
        e->execute_dft_r2c(p->fftw, from, to);
    else if (p->key.kind == FFT_IRFFT)
        e->execute_dft_c2r(p->fftw, from, to);
    else
        e->execute_dft(p->fftw, from, to);
}
