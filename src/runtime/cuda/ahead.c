// SPDX-License-Identifier: Apache-2.0
// What libraries do once, or once for a kind of routine, takes long: they are loaded, make their first choice of a
// product, and compile kernels.  Threads do it while the code generator works, products and routines apart.  What they
// find stays with the device; what goes wrong is said where a program is loaded that needs it.
#include "base/memory.h"
#include "base/status.h"
#include "runtime/cuda/routine.h"

#include <string.h>

struct rt_ahead {
    struct cuda_device *device;
    const struct rt_ahead_calls *calls; // of the caller, until the end
    pthread_t products, routines;
    bool has_products, has_routines;
};

static void *open_products(void *arg)
{
    struct rt_ahead *a = arg;
    if (cuda_enter(a->device) != JOT_OK)
        return NULL;
    cuda_gemm_open(a->device);
    cuda_leave();
    return NULL;
}

static bool are_equal(const struct rt_ahead_call *a, const struct rt_ahead_call *b)
{
    const struct rt_routine_call *x = &a->call, *y = &b->call;
    return !strcmp(a->name, b->name) && x->param_count == y->param_count &&
           !memcmp(x->params, y->params, x->param_count * sizeof *x->params) &&
           !memcmp(x->bytes, y->bytes, sizeof x->bytes);
}

static bool is_again(const struct rt_ahead_calls *all, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (are_equal(&all->at[k], &all->at[i]))
            return true;
    return false;
}

static void *bind_routines(void *arg)
{
    struct rt_ahead *a = arg;
    if (cuda_enter(a->device) != JOT_OK)
        return NULL;
    for (uint32_t i = 0; i < a->calls->count; i++)
        if (!is_again(a->calls, i))
            cuda_routine_open(a->device, a->calls->at[i].name, &a->calls->at[i].call);
    cuda_leave();
    return NULL;
}

struct rt_ahead *cuda_begin_ahead(jot_device *device, const struct rt_ahead_calls *calls)
{
    struct cuda_device *d = cuda_device_of(device);
    struct rt_ahead *a =
        calls->has_products || calls->count ? memory_allocate_zeroed(sizeof *a) : NULL;
    if (!a)
        return NULL;
    a->device = d;
    a->calls = calls;
    a->has_products =
        calls->has_products && pthread_create(&a->products, NULL, open_products, a) == 0;
    a->has_routines = calls->count && pthread_create(&a->routines, NULL, bind_routines, a) == 0;
    return a;
}

void cuda_end_ahead(struct rt_ahead *a)
{
    if (!a)
        return;
    if (a->has_products)
        pthread_join(a->products, NULL);
    if (a->has_routines)
        pthread_join(a->routines, NULL);
    memory_release(a);
}
