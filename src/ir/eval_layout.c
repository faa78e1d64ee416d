// SPDX-License-Identifier: Apache-2.0
// Ops that move elements.  Most are a copy between two views.
#include "base/status.h"
#include "ir/eval_ops.h"

struct eval_view eval_view_dense(const struct ir_module *m, struct ir_type t)
{
    struct eval_view v = {.rank = t.rank};
    const int64_t *dims = ir_dims(m, t);
    int64_t step = 1;
    for (int a = t.rank - 1; a >= 0; a--) {
        v.dims[a] = dims[a];
        v.steps[a] = step;
        step *= dims[a];
    }
    return v;
}

static size_t element_bytes(struct ir_type t) { return dtype_get(ir_dtype(t))->bytes; }

static int64_t view_count(const struct eval_view *v)
{
    int64_t count = 1;
    for (int a = 0; a < v->rank; a++)
        count *= v->dims[a];
    return count;
}

// Elements of `from` (walked from element `start`) in row-major order of the result.
static jot_status gather(const struct eval_call *c, const struct eval_view *from, int64_t start)
{
    size_t bytes = element_bytes(c->out[0].type);
    const unsigned char *source = c->in[0].data;
    unsigned char *out = c->out[0].data;
    int64_t index[IR_MAX_RANK] = {0}, count = view_count(from);
    for (int64_t i = 0, at = start; i < count; i++) {
        memcpy(out + (size_t)i * bytes, source + (size_t)at * bytes, bytes);
        at = eval_view_next(from, index, at);
    }
    return JOT_OK;
}

jot_status eval_copy(const struct eval_call *c)
{
    for (int i = 0; i < c->n_out; i++) {
        struct ir_type t = c->out[i].type;
        size_t bytes = (size_t)eval_count(c, t) * element_bytes(t);
        if (bytes)
            memcpy(c->out[i].data, c->in[i].data, bytes);
    }
    return JOT_OK;
}

jot_status eval_const(const struct eval_call *c)
{
    struct ir_type t = c->out[0].type;
    size_t bytes = (size_t)eval_count(c, t) * element_bytes(t);
    const struct ir_field *data = ir_field_find(c->attrs, IR_KEY_data);
    if (bytes && (!data || data->count != bytes))
        return status_fail(JOT_ERR_INTERNAL, "const: %u bytes of data for a type of %zu",
                           data ? (unsigned)data->count : 0, bytes);
    if (bytes)
        memcpy(c->out[0].data, data->bytes, bytes);
    return JOT_OK;
}

jot_status eval_iota(const struct eval_call *c)
{
    struct eval_view v = eval_view_dense(c->module, c->out[0].type);
    int64_t axis = ir_attr_int(c->attrs, IR_KEY_axis);
    jot_dtype d = ir_dtype(c->out[0].type);
    int64_t count = view_count(&v);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = i / v.steps[axis] % v.dims[axis];
        struct eval_number x = {{(uint64_t)place, JOT_I64}, {0, JOT_I64}};
        eval_store(d, c->out[0].data, i, eval_convert(JOT_I64, d, x));
    }
    return JOT_OK;
}

jot_status eval_broadcast_in_dim(const struct eval_call *c)
{
    struct eval_view in = eval_view_dense(c->module, c->in[0].type);
    struct eval_view v = eval_view_dense(c->module, c->out[0].type);
    int n;
    const int64_t *axes = ir_attr_ints(c->attrs, IR_KEY_axes, &n);
    memset(v.steps, 0, sizeof v.steps);
    for (int a = 0; a < n; a++)
        v.steps[axes[a]] = in.dims[a] == 1 ? 0 : in.steps[a];
    return gather(c, &v, 0);
}

jot_status eval_transpose(const struct eval_call *c)
{
    struct eval_view in = eval_view_dense(c->module, c->in[0].type);
    struct eval_view v = eval_view_dense(c->module, c->out[0].type);
    int n;
    const int64_t *axes = ir_attr_ints(c->attrs, IR_KEY_axes, &n);
    for (int a = 0; a < n; a++)
        v.steps[a] = in.steps[axes[a]];
    return gather(c, &v, 0);
}

jot_status eval_rev(const struct eval_call *c)
{
    struct eval_view v = eval_view_dense(c->module, c->in[0].type);
    int n;
    const int64_t *axes = ir_attr_ints(c->attrs, IR_KEY_axes, &n);
    int64_t start = 0;
    for (int a = 0; a < n; a++) {
        start += v.steps[axes[a]] * (v.dims[axes[a]] - 1);
        v.steps[axes[a]] = -v.steps[axes[a]];
    }
    return gather(c, &v, start);
}

jot_status eval_slice(const struct eval_call *c)
{
    struct eval_view in = eval_view_dense(c->module, c->in[0].type);
    struct eval_view v = eval_view_dense(c->module, c->out[0].type);
    int n;
    const int64_t *starts = ir_attr_ints(c->attrs, IR_KEY_starts, &n);
    const int64_t *strides = ir_attr_ints(c->attrs, IR_KEY_strides, &n);
    int64_t start = 0;
    for (int a = 0; a < v.rank; a++) {
        start += starts[a] * in.steps[a];
        v.steps[a] = in.steps[a] * (n ? strides[a] : 1);
    }
    return gather(c, &v, start);
}

// The result element of operand index `index`, or -1 if low or high cut it off.
static int64_t padded_place(const struct eval_view *out, const int64_t *index,
                            const int64_t *low, const int64_t *interior)
{
    int64_t at = 0;
    for (int a = 0; a < out->rank; a++) {
        int64_t place = low[a] + index[a] * (interior[a] + 1);
        if (place < 0 || place >= out->dims[a])
            return -1;
        at += place * out->steps[a];
    }
    return at;
}

jot_status eval_pad(const struct eval_call *c)
{
    struct eval_view in = eval_view_dense(c->module, c->in[0].type);
    struct eval_view out = eval_view_dense(c->module, c->out[0].type);
    size_t bytes = element_bytes(c->out[0].type);
    unsigned char *result = c->out[0].data;
    int n;
    const int64_t *low = ir_attr_ints(c->attrs, IR_KEY_low, &n);
    const int64_t *interior = ir_attr_ints(c->attrs, IR_KEY_interior, &n);
    static const int64_t none[IR_MAX_RANK];
    if (n == 0)
        interior = none;

    int64_t count = view_count(&out);
    for (int64_t i = 0; i < count; i++)
        memcpy(result + (size_t)i * bytes, c->in[1].data, bytes);
    int64_t index[IR_MAX_RANK] = {0};
    int64_t operands = view_count(&in);
    for (int64_t i = 0; i < operands; i++) {
        int64_t at = padded_place(&out, index, low, interior);
        if (at >= 0)
            memcpy(result + (size_t)at * bytes,
                   (const unsigned char *)c->in[0].data + (size_t)i * bytes, bytes);
        eval_view_next(&in, index, 0);
    }
    return JOT_OK;
}

jot_status eval_shear(const struct eval_call *c)
{
    struct eval_view in = eval_view_dense(c->module, c->in[0].type);
    struct eval_view out = eval_view_dense(c->module, c->out[0].type);
    size_t bytes = element_bytes(c->out[0].type);
    unsigned char *result = c->out[0].data;
    int64_t axis = ir_attr_int(c->attrs, IR_KEY_axis);
    int64_t along = ir_attr_int(c->attrs, IR_KEY_along);
    int64_t offset = ir_attr_int(c->attrs, IR_KEY_offset);
    int64_t step = ir_attr_int(c->attrs, IR_KEY_step);
    int64_t index[IR_MAX_RANK] = {0}, count = view_count(&out);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = index[axis] + offset + step * index[along], at = 0;
        for (int a = 0; a < in.rank; a++)
            at += in.steps[a] * (a == axis ? place : index[a]);
        if (place < 0 || place >= in.dims[axis])
            memset(result + (size_t)i * bytes, 0, bytes);
        else
            memcpy(result + (size_t)i * bytes,
                   (const unsigned char *)c->in[0].data + (size_t)at * bytes, bytes);
        eval_view_next(&out, index, 0);
    }
    return JOT_OK;
}

// Each operand gives one run of bytes to each index of the axes before `axis`.
jot_status eval_concatenate(const struct eval_call *c)
{
    struct eval_view out = eval_view_dense(c->module, c->out[0].type);
    int64_t axis = ir_attr_int(c->attrs, IR_KEY_axis);
    size_t bytes = element_bytes(c->out[0].type);
    size_t row = (size_t)(out.dims[axis] * out.steps[axis]) * bytes;
    int64_t rows = row ? view_count(&out) / (out.dims[axis] * out.steps[axis]) : 0;
    unsigned char *result = c->out[0].data;
    for (int i = 0; i < c->n_in; i++) {
        int64_t extent = ir_dims(c->module, c->in[i].type)[axis];
        size_t run = (size_t)(extent * out.steps[axis]) * bytes;
        for (int64_t r = 0; r < rows && run; r++)
            memcpy(result + (size_t)r * row,
                   (const unsigned char *)c->in[i].data + (size_t)r * run, run);
        result += run;
    }
    return JOT_OK;
}
