// SPDX-License-Identifier: Apache-2.0
// Putting rows in order.
#include "ir/eval_ops.h"

// The bits of a float as a number whose order is the total one of IEEE 754.
static uint64_t total_key(scalar x)
{
    uint64_t sign = x.dtype == JOT_F32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
    return x.bits & sign ? sign - 1 - (x.bits & (sign - 1)) : x.bits | sign;
}

// Whether x stands before y (-1), behind it (1) or beside it.  NaN are last.
static int compare_real(scalar x, scalar y)
{
    if (dtype_is_float(x.dtype)) {
        double a = x.dtype == JOT_F32 ? (double)scalar_f32(x) : scalar_f64(x);
        double b = y.dtype == JOT_F32 ? (double)scalar_f32(y) : scalar_f64(y);
        if (isnan(a) || isnan(b))
            return (isnan(a) != 0) - (isnan(b) != 0);
        return (a > b) - (a < b);
    }
    if (dtype_is_signed(x.dtype))
        return ((int64_t)x.bits > (int64_t)y.bits) - ((int64_t)x.bits < (int64_t)y.bits);
    return (x.bits > y.bits) - (x.bits < y.bits);
}

// What rows are sorted by: the keys, turn is -1 for the greatest first; floats in the order of sort or
// in the total one.
struct order {
    int n_keys, turn;
    bool is_total;
};

static int compare(const struct order *o, const struct ir_tensor *t, int64_t i, int64_t k)
{
    jot_dtype d = ir_dtype(t->type);
    struct eval_number x = eval_load_wide(d, t->data, i), y = eval_load_wide(d, t->data, k);
    if (o->is_total && dtype_is_float(d)) {
        uint64_t a = total_key(x.re), b = total_key(y.re);
        return (a > b) - (a < b);
    }
    int order = compare_real(x.re, y.re);
    return order || !dtype_is_complex(d) ? order : compare_real(x.im, y.im);
}

static int compare_keys(const struct order *o, const struct ir_tensor *keys, int64_t i,
                        int64_t k)
{
    int order = 0;
    for (int key = 0; key < o->n_keys && !order; key++)
        order = compare(o, &keys[key], i, k);
    return o->turn * order;
}

// Merges runs of indices, in pairs, until there is one.
static void merge_sort(const struct order *o, const struct ir_tensor *keys, int64_t n,
                       int64_t *indices, int64_t *spare)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t first = 0; first < n; first += 2 * run) {
            int64_t middle = first + run < n ? first + run : n;
            int64_t end = middle + run < n ? middle + run : n, a = first, b = middle;
            for (int64_t to = first; to < end; to++) {
                bool takes_a = a < middle &&
                               (b == end || compare_keys(o, keys, indices[a], indices[b]) <= 0);
                spare[to] = takes_a ? indices[a++] : indices[b++];
            }
        }
        memcpy(indices, spare, (size_t)n * sizeof *indices);
    }
}

struct rows {
    int64_t count, length;
    int64_t *indices, *spare; // of one row
};

static struct rows rows_of(const struct eval_call *c)
{
    struct ir_type t = c->in[0].type;
    struct rows r = {.length = ir_dims(c->module, t)[t.rank - 1]};
    r.count = r.length ? eval_count(c, t) / r.length : 0;
    r.indices = arena_array(c->arena, int64_t, r.length + 1);
    r.spare = arena_array(c->arena, int64_t, r.length + 1);
    return r;
}

static void sort_row(const struct eval_call *c, const struct rows *r, int64_t row,
                     const struct order *o)
{
    for (int64_t i = 0; i < r->length; i++)
        r->indices[i] = row * r->length + i;
    merge_sort(o, c->in, r->length, r->indices, r->spare);
}

static void copy_element(const struct ir_tensor *from, int64_t i, struct ir_tensor *to,
                         int64_t k)
{
    size_t bytes = jot_dtype_size(ir_dtype(from->type));
    memcpy((char *)to->data + (size_t)k * bytes, (const char *)from->data + (size_t)i * bytes,
           bytes);
}

jot_status eval_sort(const struct eval_call *c)
{
    const struct order o = {(int)ir_attr_int(c->attrs, IR_KEY_num_keys), 1, false};
    struct rows r = rows_of(c);
    for (int64_t row = 0; row < r.count; row++) {
        sort_row(c, &r, row, &o);
        for (int k = 0; k < c->n_in; k++)
            for (int64_t i = 0; i < r.length; i++)
                copy_element(&c->in[k], r.indices[i], &c->out[k], row * r.length + i);
    }
    return JOT_OK;
}

jot_status eval_top_k(const struct eval_call *c)
{
    int64_t k = ir_attr_int(c->attrs, IR_KEY_length);
    jot_dtype d = ir_dtype(c->out[1].type);
    const struct order o = {1, -1, true};
    struct rows r = rows_of(c);
    for (int64_t row = 0; row < r.count; row++) {
        sort_row(c, &r, row, &o);
        for (int64_t i = 0; i < k; i++) {
            uint64_t index = (uint64_t)(r.indices[i] - row * r.length);
            copy_element(&c->in[0], r.indices[i], &c->out[0], row * k + i);
            eval_store(d, c->out[1].data, row * k + i,
                       (struct eval_number){{index, d}, {0, d}});
        }
    }
    return JOT_OK;
}
