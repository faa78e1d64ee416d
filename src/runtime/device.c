// SPDX-License-Identifier: Apache-2.0
// The devices of the public interface.
#include "runtime/device.h"

#include "base/status.h"
#include "base/timeline.h"
#include "runtime/host/blas.h"
#include "runtime/host/blocks.h"
#include "runtime/host/fft_plan.h"
#include "runtime/host/parts.h"

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// NULL until it is asked for or set.
static _Atomic(jot_device *) chosen;

jot_device *jot_cuda(int index) { return rt_cuda_device(index); }

jot_status rt_device_parse(const char *text, jot_device **out)
{
    char *end = NULL;
    bool is_part = !strncmp(text, "host:", 5);
    bool has_index =
        (is_part || !strncmp(text, "cuda:", 5)) && text[5] >= '0' && text[5] <= '9';
    long index = has_index ? strtol(text + 5, &end, 10) : 0;
    if (!strcmp(text, "host"))
        *out = jot_host();
    else if (is_part && end && !*end && index < RT_HOST_MOST)
        *out = jot_host_device((int)index);
    else if (!strcmp(text, "cuda") || (!is_part && end && !*end && index < RT_CUDA_MOST))
        *out = rt_cuda_device((int)index);
    else
        return status_fail(JOT_ERR_ARGUMENT,
                           "the environment variable JOT_DEVICE is '%s', which is none of: "
                           "host, host:0 to host:%d, cuda, cuda:0 to cuda:%d",
                           text, RT_HOST_MOST - 1, RT_CUDA_MOST - 1);
    return JOT_OK;
}

jot_device *jot_default_device(void)
{
    jot_device *d = atomic_load_explicit(&chosen, memory_order_acquire);
    if (d)
        return d;
    const char *text = secure_getenv("JOT_DEVICE");
    if (!text || !*text || rt_device_parse(text, &d) != JOT_OK)
        d = jot_host(); // what is wrong with the text is reported by calls that compile
    atomic_store_explicit(&chosen, d, memory_order_release);
    return d;
}

void jot_set_default_device(jot_device *device)
{
    atomic_store_explicit(&chosen, device, memory_order_release);
}

static jot_device *or_default(jot_device *d) { return d ? d : jot_default_device(); }

int jot_device_count(jot_device_kind kind)
{
    int count = 0;
    if (kind == JOT_HOST)
        return rt_host_count();
    if (kind != JOT_CUDA)
        status_fail(JOT_ERR_ARGUMENT, "jot_device_count: %d is no kind of device", (int)kind);
    else if (rt_cuda_count(&count) != JOT_OK)
        return 0;
    return count;
}

jot_status jot_device_check(jot_device *device)
{
    jot_device *d = or_default(device);
    return d->type->check(d);
}

jot_device_kind jot_device_kind_of(jot_device *device)
{
    return or_default(device)->type->kind;
}

const char *jot_device_name(jot_device *device) { return or_default(device)->name; }

jot_status jot_device_wait(jot_device *device)
{
    jot_device *d = or_default(device);
    return d->type->wait(d);
}

jot_status jot_device_set_stream(jot_device *device, void *stream)
{
    jot_device *d = or_default(device);
    if (!d->type->set_stream)
        return status_fail(JOT_ERR_ARGUMENT, "jot_device_set_stream: %s has no streams",
                           d->name);
    return d->type->set_stream(d, stream);
}

jot_status jot_device_memory(jot_device *device, jot_device_memory_use *out)
{
    jot_device *d = or_default(device);
    if (!out)
        return status_fail(JOT_ERR_ARGUMENT, "jot_device_memory: out is NULL");
    return d->type->memory(d, out);
}

void rt_device_count_memory(jot_device *d)
{
    jot_device_memory_use use;
    if (d->type->memory(d, &use) == JOT_OK)
        timeline_count_memory(rt_is_host(d) ? "host" : d->name, use.used);
}

void jot_memory_trim(void)
{
    rt_block_trim();
    rt_cuda_trim();
}

// ---- text ----

int jot_devices_format(char *buffer, size_t size)
{
    // C libraries take no size above INT_MAX.
    size = !buffer ? 0 : size < INT_MAX ? size : INT_MAX;
    struct rt_text text = {.at = buffer, .size = size};
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (size)
        buffer[0] = 0;
    rt_text_add(&text, "host         %d threads, %.1f GiB\n", jot_threads(), bytes / 0x1p30);
    rt_host_describe(&text);
    rt_cuda_describe(&text);
    const char *blas = rt_blas_version();
    rt_text_add(&text, "%-13s%s\n", "OpenBLAS", *blas ? blas : jot_error_message());
    const char *fftw = fftw_name();
    rt_text_add(&text, "%-13s%s\n", "FFTW",
                fftw ? fftw : "not found or off; jot's own Fourier transforms are slower");
    return (int)text.length;
}
