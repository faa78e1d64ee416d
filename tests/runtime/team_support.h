// SPDX-License-Identifier: Apache-2.0
// What the tests of several GPUs share, of fake_cuda or real ones.
#ifndef TEAM_SUPPORT_H
#define TEAM_SUPPORT_H

#include "base/dtype.h"
#include "device_support.h"
#include "runtime/collective.h"
#include "team_plan.h"

#include <stdlib.h>

#define GPUS_MOST 8

static jot_device *devices[GPUS_MOST];

static inline void list_devices(int n)
{
    for (int i = 0; i < n; i++)
        devices[i] = jot_cuda(i);
}

// By GPUs in groups, and by the host; how the GPUs' call ended.  Every third block begins behind an element.
static inline jot_status compare(const struct collective *c, size_t n_groups, size_t k)
{
    size_t n = (size_t)c->size, size = dtype_get(c->dtype)->bytes, all = n_groups * n;
    size_t from_bytes = k * size * (c->kind == COLLECTIVE_REDUCE_SCATTER ? n : 1);
    size_t to_bytes = k * size * (c->kind == COLLECTIVE_ALL_GATHER ? n : 1);
    void *to[GPUS_MOST], *here_to[GPUS_MOST];
    const void *from[GPUS_MOST], *here_from[GPUS_MOST];
    struct rt_blocks groups[GPUS_MOST], here[GPUS_MOST];
    uint32_t draw = 1;
    jot_dtype real = dtype_real(c->dtype);
    size_t number = dtype_get(real)->bytes;
    const void *one = real == JOT_F16    ? (const void *)&(uint16_t){0x3c00}
                      : real == JOT_BF16 ? (const void *)&(uint16_t){0x3f80}
                      : real == JOT_F32  ? (const void *)&(float){1}
                                         : (const void *)&(double){1};
    const void *two = real == JOT_F16 || real == JOT_BF16 ? (const void *)&(uint16_t){0x4000}
                      : real == JOT_F32                   ? (const void *)&(float){2}
                                                          : (const void *)&(double){2};
    for (size_t i = 0; i < all; i++) {
        void *block;
        unsigned char *copy = malloc(from_bytes + 1);
        for (size_t b = 0; b < from_bytes; b++, draw = draw * 1664525 + 1013904223)
            copy[b] = c->dtype == JOT_BOOL ? draw >> 31 : (unsigned char)(draw >> 24) & 0x3f;
        // Whose sums are the same in any order.
        for (size_t b = 0; dtype_is_inexact(c->dtype) && b < from_bytes; b += number)
            memcpy(copy + b, copy[b] & 1 ? one : two, number);
        OK(rt_cuda_type.allocate(devices[i], from_bytes + size, "a block", &block));
        OK(rt_cuda_type.allocate(devices[i], to_bytes, "a block", &to[i]));
        from[i] = (char *)block + (i % 3 == 2) * size;
        OK(rt_cuda_type.upload(devices[i], (void *)(uintptr_t)from[i], copy, from_bytes));
        here_from[i] = copy;
        here_to[i] = malloc(to_bytes + 1);
    }
    for (size_t i = 0; i < n_groups; i++) {
        groups[i] = (struct rt_blocks){to + i * n, from + i * n};
        here[i] = (struct rt_blocks){here_to + i * n, here_from + i * n};
    }
    rt_collective_run(c, n_groups, here, to_bytes, from_bytes);
    jot_status status =
        rt_cuda_type.collective(devices, c, n_groups, groups, to_bytes, from_bytes);
    for (size_t i = 0; i < all; i++) {
        void *result = malloc(to_bytes + 1);
        OK(rt_cuda_type.download(devices[i], result, to[i], to_bytes));
        if (status == JOT_OK)
            ck_assert_msg(!memcmp(result, here_to[i], to_bytes), "%s of %s on GPU %zu",
                          collective_name(c->kind), jot_dtype_name(c->dtype), i);
        free(result);
        free(here_to[i]);
        free((void *)(uintptr_t)here_from[i]);
        rt_cuda_type.release(devices[i], to[i], to_bytes);
        rt_cuda_type.release(devices[i], (char *)(uintptr_t)from[i] - (i % 3 == 2) * size,
                             from_bytes + size);
    }
    return status;
}

// Every kind, combiner and type, in groups of 1, 2, 4 ... of n GPUs, of 24 elements or more.
static inline void check_collectives(int64_t n, size_t k)
{
    for (int64_t size = 1; size <= n; size *= 2)
        for (int kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++)
            for (int combiner = 0; combiner < COLLECTIVE_COMBINER_COUNT; combiner++)
                for (int dtype = 0; dtype_is_valid(dtype); dtype++) {
                    int64_t mesh[] = {n / size, size};
                    int64_t params[16] = {kind, combiner, dtype, 1, 1};
                    uint32_t n_params = 5;
                    struct collective c;
                    for (int64_t i = 0; kind == COLLECTIVE_PERMUTE && i < size; i++)
                        params[n_params++] = combiner ? i - 1 : 0;
                    if (collective_read(params, n_params, 2, mesh, &c))
                        continue;
                    jot_status status = compare(&c, (size_t)(n / size), k);
                    // The rest is the host's.
                    bool is_left = status == JOT_ERR_LIBRARY && collective_reduces(&c);
                    ck_assert_msg(is_left || status == JOT_OK, "%s", jot_error_message());
                }
}

// y = x, or what a kernel of so many threads makes of it, so many times replaced by its sum over all GPUs: n
// numbers.
static inline const struct rt_plan *make_sums(struct team_plan *p, int64_t gpus, size_t n,
                                              uint32_t threads, int64_t trips,
                                              enum collective_combiner combiner)
{
    plan_open(p, 1, &gpus, n);
    if (threads)
        plan_kernel(p, 1, 0, threads, threads < 64 ? threads : 64);
    else
        plan_copy(p, 1, 0);
    plan_loop(p, trips);
    plan_sum(p, 1, 1, combiner, 0);
    plan_next(p);
    return &p->plan;
}

#endif
