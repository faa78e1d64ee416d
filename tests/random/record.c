// SPDX-License-Identifier: Apache-2.0
#include "random/record.h"

#include "base/status.h"

#include <inttypes.h>

static struct {
    struct strbuf *to;
    uint64_t left;
} record = {.left = UINT64_MAX};

// Equal for equal elements, whatever NaN a NaN is.
static uint64_t hash_element(jot_dtype d, const char *at)
{
    size_t size = jot_dtype_size(d);
    double x = 0;
    float y;
    if (d == JOT_F64)
        memcpy(&x, at, sizeof x);
    if (d == JOT_F32) {
        memcpy(&y, at, sizeof y);
        x = (double)y;
    }
    if (dtype_is_half(d)) {
        uint16_t half;
        memcpy(&half, at, sizeof half);
        x = (double)(d == JOT_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half));
    }
    return x != x ? 1 : hash_bytes(0, at, size);
}

static jot_status write_call(void *ctx, const jot_callback_call *call)
{
    (void)ctx;
    const jot_callback_array *x = &call->in[1];
    if (record.left == 0)
        return status_fail(JOT_ERR_ARGUMENT, "no further call");
    record.left--;
    if (!record.to)
        return JOT_OK;
    jot_dtype d = dtype_real(x->dtype);
    int64_t count = dtype_is_complex(x->dtype) ? 2 : 1;
    uint64_t hash = 0;
    strbuf_printf(record.to, "%" PRId64 " %s[", *(const int64_t *)call->in[0].data,
                  jot_dtype_name(x->dtype));
    for (int i = 0; i < x->rank; count *= x->dims[i], i++)
        strbuf_printf(record.to, i ? ",%" PRId64 : "%" PRId64, x->dims[i]);
    for (int64_t i = 0; i < count; i++)
        hash = hash_combine(
            hash, hash_element(d, (const char *)x->data + (size_t)i * jot_dtype_size(d)));
    strbuf_printf(record.to, "] %016" PRIx64 "\n", hash);
    return JOT_OK;
}

void record_build(struct ir_builder *b, int64_t number, ir_id x)
{
    static const struct ir_host host = {.name = "record", .call = write_call};
    ir_id in[] = {ir_scalar_int(b, JOT_I64, number), x};
    ir_callback(b, ir_host_add(b->module, &host), 0, 2, in, 0, NULL);
}

void record_begin(struct strbuf *to, uint64_t calls)
{
    record.to = to;
    record.left = calls;
}
