// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/fft_plan.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/fork.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#define PANEL_MOST 2048  // numbers of a row whose panels are in the nearer caches
#define PANEL_COMPLEX 32 // complex numbers, of which FFTW is as fast in longer rows

// FFTW counts by int.
bool fft_takes_rows(const struct fft_key *key, int64_t lines)
{
    int64_t n = key->n;
    bool is_panel =
        lines >= fft_lanes(key->real) && n <= PANEL_MOST &&
        (n <= PANEL_COMPLEX || fft_has_pairs(key->kind, n) || !fft_own_has_passes(n));
    return !is_panel && fftw_is_there() && n <= INT_MAX / 4;
}

static bool same_key(const struct fft_key *a, const struct fft_key *b)
{
    return a->real == b->real && a->form == b->form && a->kind == b->kind && a->n == b->n;
}

static _Atomic(struct fft_plan *) plans; // only ever longer

static const struct fft_plan *find_plan(const struct fft_key *key)
{
    struct fft_plan *p = atomic_load_explicit(&plans, memory_order_acquire);
    while (p && !same_key(&p->key, key))
        p = p->next;
    return p;
}

static const struct fft_plan *add(const struct fft_key *key)
{
    struct fft_plan *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return NULL;
    p->key = *key;
    if (key->form != FFT_PANEL)
        p->fftw = fftw_plan(key);
    else
        p->own = fft_own_create(key->real, key->kind, key->n);
    if (!p->fftw && !p->own) {
        memory_release(p);
        return NULL;
    }
    p->next = atomic_load_explicit(&plans, memory_order_relaxed);
    atomic_store_explicit(&plans, p, memory_order_release);
    return p;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

FORK_KEEPS(FORK_PLANS, lock, NULL)

// The planner of FFTW is not for several threads.
jot_status fft_plan_get(const struct fft_key *key, const struct fft_plan **out)
{
    const struct fft_plan *p = find_plan(key);
    if (!p) {
        pthread_mutex_lock(&lock);
        p = find_plan(key);
        p = p ? p : add(key);
        pthread_mutex_unlock(&lock);
    }
    if (!p)
        return status_fail(JOT_ERR_MEMORY, "out of memory: a Fourier transform of %lld numbers",
                           (long long)key->n);
    *out = p;
    return JOT_OK;
}
