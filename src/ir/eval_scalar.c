// SPDX-License-Identifier: Apache-2.0
// Single elements: the table of scalar.h for the evaluator, loads, stores, conversions.
#include "ir/eval_ops.h"

#include <assert.h>

#include "ir/scalar.inc"

struct eval_number eval_scalar(struct machine *m, enum ir_op op, struct eval_number x,
                               struct eval_number y, struct eval_number z)
{
    if (!dtype_is_complex(m->dtype) && op != IR_complex) {
        scalar r = scalar_table[op](m, x.re, y.re, z.re);
        return (struct eval_number){r, (scalar){0, r.dtype}};
    }
    struct pair r = complex_table[op](m, (struct pair){x.re, x.im}, (struct pair){y.re, y.im},
                                      (struct pair){z.re, z.im});
    return (struct eval_number){r.re, r.im};
}

void eval_threefry2x32(const uint32_t key[2], uint32_t counter[2])
{
    struct machine m = {.dtype = JOT_U32};
    scalar k[2], x[2];
    for (int i = 0; i < 2; i++) {
        k[i] = (scalar){key[i], JOT_U32};
        x[i] = (scalar){counter[i], JOT_U32};
    }
    composite_threefry2x32(&m, k, x);
    for (int i = 0; i < 2; i++)
        counter[i] = (uint32_t)x[i].bits;
}

// memcpy of a number of bytes that the compiler knows.
static uint64_t load_bytes(const unsigned char *at, size_t bytes)
{
    uint64_t bits = 0;
    if (bytes == 4)
        memcpy(&bits, at, 4);
    else if (bytes == 8)
        memcpy(&bits, at, 8);
    else if (bytes == 2)
        memcpy(&bits, at, 2);
    else
        bits = *at;
    return bits;
}

static void store_bytes(unsigned char *at, size_t bytes, uint64_t bits)
{
    if (bytes == 4)
        memcpy(at, &bits, 4);
    else if (bytes == 8)
        memcpy(at, &bits, 8);
    else if (bytes == 2)
        memcpy(at, &bits, 2);
    else
        *at = (unsigned char)bits;
}

static scalar load_real(jot_dtype d, const unsigned char *at)
{
    return scalar_from_bits(d, load_bytes(at, dtype_get(d)->bytes));
}

struct eval_number eval_load(jot_dtype d, const void *data, int64_t i)
{
    const unsigned char *at = (const unsigned char *)data + (size_t)i * dtype_get(d)->bytes;
    jot_dtype part = dtype_real(d);
    if (part == d)
        return (struct eval_number){load_real(d, at), (scalar){0, d}};
    return (struct eval_number){load_real(part, at),
                                load_real(part, at + dtype_get(part)->bytes)};
}

static scalar widen(scalar x)
{
    if (x.dtype == JOT_F16)
        return scalar_from_f32(dtype_f16_to_f32((uint16_t)x.bits));
    if (x.dtype == JOT_BF16)
        return scalar_from_f32(dtype_bf16_to_f32((uint16_t)x.bits));
    return x;
}

static scalar narrow(jot_dtype d, scalar x)
{
    if (d == JOT_F16 && x.dtype == JOT_F32)
        return (scalar){dtype_f16_from_f32(scalar_f32(x)), d};
    if (d == JOT_BF16 && x.dtype == JOT_F32)
        return (scalar){dtype_bf16_from_f32(scalar_f32(x)), d};
    return x;
}

struct eval_number eval_load_wide(jot_dtype d, const void *data, int64_t i)
{
    struct eval_number x = eval_load(d, data, i);
    if (dtype_is_half(d)) {
        x.re = widen(x.re);
        x.im = (scalar){0, JOT_F32};
    }
    return x;
}

void eval_store(jot_dtype d, void *data, int64_t i, struct eval_number x)
{
    unsigned char *at = (unsigned char *)data + (size_t)i * dtype_get(d)->bytes;
    size_t bytes = dtype_get(dtype_real(d))->bytes;
    scalar re = narrow(d, x.re);
    store_bytes(at, bytes, re.bits);
    if (dtype_is_complex(d))
        store_bytes(at + bytes, bytes, x.im.bits);
}

// Truncated, saturated; NaN gives 0.
static scalar integer_of_float(jot_dtype to, double x)
{
    int bits = dtype_get(to)->bits;
    if (x != x)
        return (scalar){0, to};
    if (dtype_is_unsigned(to)) {
        if (x >= ldexp(1, bits))
            return scalar_from_bits(to, UINT64_MAX);
        return (scalar){x <= 0 ? 0 : (uint64_t)x, to};
    }
    if (x >= ldexp(1, bits - 1))
        return (scalar){(UINT64_C(1) << (bits - 1)) - 1, to};
    if (x <= -ldexp(1, bits - 1))
        return scalar_from_bits(to, UINT64_C(1) << (bits - 1));
    return (scalar){(uint64_t)(int64_t)x, to};
}

static scalar float_of_integer(jot_dtype to, scalar x)
{
    if (to == JOT_F64)
        return scalar_from_f64(dtype_is_signed(x.dtype) ? (double)(int64_t)x.bits
                                                        : (double)x.bits);
    return scalar_from_f32(dtype_is_signed(x.dtype) ? (float)(int64_t)x.bits : (float)x.bits);
}

static scalar float_of_float(jot_dtype to, scalar x)
{
    if (x.dtype == JOT_F32)
        return to == JOT_F64 ? scalar_from_f64(scalar_f32(x)) : x;
    double f = scalar_f64(x);
    if (to == JOT_F16)
        return (scalar){dtype_f16_from_f64(f), to};
    if (to == JOT_BF16)
        return (scalar){dtype_bf16_from_f64(f), to};
    return to == JOT_F32 ? scalar_from_f32((float)f) : x;
}

static scalar convert_real(jot_dtype to, scalar x)
{
    bool from_float = dtype_is_float(x.dtype);
    if (to == JOT_BOOL)
        return machine_ne(x, (scalar){0, x.dtype});
    if (dtype_is_float(to))
        return from_float ? float_of_float(to, x) : float_of_integer(to, x);
    if (!from_float)
        return scalar_from_bits(to, x.bits);
    return integer_of_float(to, x.dtype == JOT_F32 ? scalar_f32(x) : scalar_f64(x));
}

struct eval_number eval_convert(jot_dtype from, jot_dtype to, struct eval_number x)
{
    if (to == JOT_BOOL && dtype_is_complex(from)) {
        scalar re = convert_real(to, x.re), im = convert_real(to, x.im);
        return (struct eval_number){machine_or(re, im), (scalar){0, to}};
    }
    if (!dtype_is_complex(to))
        return (struct eval_number){convert_real(to, x.re), (scalar){0, to}};
    jot_dtype part = dtype_real(to);
    scalar im = dtype_is_complex(from) ? convert_real(part, x.im) : (scalar){0, part};
    return (struct eval_number){convert_real(part, x.re), im};
}

static uint64_t float_bits(jot_dtype d, double x)
{
    return d == JOT_F64 ? scalar_from_f64(x).bits : scalar_from_f32((float)x).bits;
}

static uint64_t lowest_bits(jot_dtype d)
{
    int bits = dtype_get(d)->bits;
    if (dtype_is_float(d))
        return float_bits(d, -INFINITY);
    return dtype_is_signed(d) ? scalar_from_bits(d, UINT64_C(1) << (bits - 1)).bits : 0;
}

static uint64_t highest_bits(jot_dtype d)
{
    if (dtype_is_float(d))
        return float_bits(d, INFINITY);
    uint64_t ones = scalar_from_bits(d, UINT64_MAX).bits;
    return dtype_is_signed(d) ? ~lowest_bits(d) : ones;
}

uint64_t scalar_identity(enum ir_op op, jot_dtype d)
{
    d = dtype_real(d);
    switch (ir_op_get(op)->identity) {
    case IR_IDENTITY_zero:
        return 0;
    case IR_IDENTITY_one:
        return dtype_is_float(d) ? float_bits(d, 1) : 1;
    case IR_IDENTITY_lowest:
        return lowest_bits(d);
    case IR_IDENTITY_highest:
        return highest_bits(d);
    case IR_IDENTITY_ones:
        return scalar_from_bits(d, UINT64_MAX).bits;
    case IR_IDENTITY_none:
        break;
    }
    assert(!"an op that folds nothing");
    return 0;
}
