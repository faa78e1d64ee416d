// SPDX-License-Identifier: Apache-2.0
#include "trace/raw_kernel.h"

#include "base/memory.h"
#include "base/status.h"
#include "jot/kernels.h"
#include "runtime/raw_kernel.h"
#include "trace/emit.h"

#define OP_NAME "jot_raw_kernel"

// ---- On the host

// Lane number `lane` of all arrays, without the leading axes that are lanes.
static void take_lane(const jot_callback_call *call, int64_t lane, jot_callback_array *out)
{
    for (size_t i = 0; i < call->n_in + call->n_out; i++) {
        const jot_callback_array *a =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        size_t bytes = jot_dtype_size(a->dtype);
        out[i] = *a;
        out[i].rank -= call->n_lanes;
        out[i].dims += call->n_lanes;
        for (int k = 0; k < out[i].rank; k++)
            bytes *= (size_t)out[i].dims[k];
        out[i].data = bytes ? (char *)a->data + (size_t)lane * bytes : a->data;
    }
}

static int64_t count_lanes(const jot_callback_call *call)
{
    const jot_callback_array *any = call->n_in ? call->in : call->out;
    int64_t lanes = 1;
    for (int i = 0; i < call->n_lanes; i++)
        lanes *= any->dims[i];
    return lanes;
}

jot_status raw_kernel_on_host(void *ctx, const jot_callback_call *call)
{
    const struct rt_raw_kernel *k = ctx;
    if (!k->host)
        return status_fail(JOT_ERR_DEVICE,
                           "kernel %s is in CUDA C and runs on a GPU: jot_jit(..., .device = "
                           "jot_cuda(0)), or give it a .host",
                           k->text + k->name);
    if (k->maps_batch || call->n_lanes == 0)
        return k->host(k->host_ctx, call);
    jot_callback_array *arrays =
        memory_allocate((call->n_in + call->n_out + 1) * sizeof *arrays);
    if (!arrays)
        return status_out_of_memory();
    jot_status status = JOT_OK;
    int64_t lanes = count_lanes(call);
    for (int64_t lane = 0; lane < lanes && status == JOT_OK; lane++) {
        jot_callback_call one = *call;
        take_lane(call, lane, arrays);
        one.in = arrays;
        one.out = arrays + call->n_in;
        one.n_lanes = 0;
        status = k->host(k->host_ctx, &one);
    }
    memory_release(arrays);
    return status;
}

// ---- In the graph

static uint32_t put_text(struct rt_raw_kernel *k, uint32_t *at, const char *text)
{
    uint32_t start = *at;
    size_t n = strlen(text) + 1;
    if (k)
        memcpy(k->text + start, text, n);
    *at += (uint32_t)n;
    return start;
}

static struct rt_raw_kernel *make_kernel(struct arena *arena, const jot_raw_kernel_spec *spec)
{
    const char *options = spec->options ? spec->options : "";
    uint32_t at = 0;
    put_text(NULL, &at, spec->name);
    put_text(NULL, &at, spec->source);
    put_text(NULL, &at, options);
    // Compared by its bytes, so padding is zero as well.
    struct rt_raw_kernel *k = arena_allocate(arena, sizeof *k + at);
    memset(k, 0, sizeof *k + at);
    k->bytes = sizeof *k + at;
    for (int i = 0; i < 3; i++) {
        k->grid[i] = spec->grid[i];
        k->block[i] = spec->block[i];
    }
    k->shared_bytes = spec->shared_bytes;
    k->maps_batch = spec->map == JOT_CALLBACK_BATCH;
    k->host = spec->host;
    k->host_ctx = spec->host_ctx;
    at = 0;
    k->name = put_text(k, &at, spec->name);
    k->source = put_text(k, &at, spec->source);
    k->options = put_text(k, &at, options);
    return k;
}

static jot_value raw_kernel(const jot_raw_kernel_spec *spec, jot_value *out, const char *where,
                            size_t n_in, const jot_value *in)
{
    jot_value error;
    char buffer[320];
    if (!trace_ready(OP_NAME, 0, NULL, &error))
        return error;
    const char *problem = !spec                       ? "the spec is NULL"
                          : !spec->name               ? "the name is NULL"
                          : !spec->source             ? "the source is NULL"
                          : spec->n_out && !spec->out ? "the list of result types is NULL"
                          : spec->n_out && !out       ? "out is NULL"
                                                      : NULL;
    if (problem)
        return trace_fail(OP_NAME, JOT_ERR_ARGUMENT, "%s", problem);
    struct rt_raw_kernel *k = make_kernel(trace_top()->module->arena, spec);
    struct ir_host host = {.name = spec->name,
                           .where = trace_shorten(where, buffer, sizeof buffer),
                           .call = raw_kernel_on_host,
                           .ctx = k,
                           .ctx_bytes = k->bytes,
                           .maps_batch = true};
    return trace_call_host(OP_NAME, &host, n_in, in, spec->n_out, spec->out, out);
}

static jot_value guarded(const jot_raw_kernel_spec *spec, jot_value *out, const char *where,
                         size_t n_in, const jot_value *in)
{
    TRACE_RETURN(raw_kernel(spec, out, where, n_in, in));
}

void jot_raw_kernel_values(const jot_raw_kernel_spec *spec, jot_value *out, const char *where,
                           size_t n_in, const jot_value *in)
{
    size_t n_out = spec ? spec->n_out : 0;
    if (trace_lacks("jot_raw_kernel", "in", n_in, in, n_out, out, where))
        return;
    jot_value error = guarded(spec, out, where, n_in, in);
    jot_place(error, where);
    for (size_t i = 0; out && i < n_out && (error.trace || error.id); i++)
        out[i] = error;
}
