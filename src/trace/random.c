// SPDX-License-Identifier: Apache-2.0
// Random numbers: threefry2x32 with 20 rounds (Salmon et al. 2011) in the counter layout of
// jax.random with jax_threefry_partitionable.  Keys, bits, and floats between bounds.
//
// Element n of a result (row-major, 64 bits) has the counter (high word of n, low word of n).
// 32-bit numbers are the xor of the two words that come out, 64-bit ones both, narrower ones the
// low bits.
#include "trace/random.h"

#include <math.h>

static ir_id scalar_int(jot_dtype d, int64_t x) { return ir_scalar_int(trace_builder(), d, x); }
static ir_id convert(ir_id x, jot_dtype d) { return ir_convert(trace_builder(), x, d); }

// ---------------------------------------------------------------------------------------
// Keys

static bool is_key(const char *name, jot_value *key, jot_value *out_error)
{
    if (!trace_ready(name, 1, key, out_error))
        return false;
    struct ir_type t = trace_type(*key);
    if (ir_dtype(t) == JOT_U32 && t.rank == 1 && ir_dims(trace_top()->module, t)[0] == 2)
        return true;
    bool is_list =
        ir_dtype(t) == JOT_U32 && t.rank == 2 && ir_dims(trace_top()->module, t)[1] == 2;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "the key is %s, not u32[2]: %s",
                            trace_type_text(*key),
                            is_list ? "take one of the keys, or map over them with jot_vmap"
                                    : "make one with jot_random_key");
    return false;
}

// One integer, for a key; false with an error.
static bool is_integer(const char *name, const char *what, jot_value *x, jot_value *out_error)
{
    if (!trace_ready(name, 1, x, out_error))
        return false;
    struct ir_type t = trace_type(*x);
    if (!t.rank && dtype_is_integer(ir_dtype(t)))
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "the %s is %s, not one integer", what,
                            trace_type_text(*x));
    return false;
}

static ir_id word_of(ir_id key, int64_t i)
{
    struct ir_builder *b = trace_builder();
    return ir_reshape(b, ir_slice(b, key, &i, (int64_t[]){i + 1}, NULL), 0, NULL);
}

struct random_key random_key_of(jot_value key)
{
    ir_id id = trace_kept(key);
    return (struct random_key){
        {trace_value(word_of(id, 0), false), trace_value(word_of(id, 1), false)}};
}

// The words may be those of a trace around this one.
static struct random_key hash(struct random_key key, struct random_key counter)
{
    jot_value v[] = {key.word[0], key.word[1], counter.word[0], counter.word[1]}, error;
    ir_id in[4];
    if (!trace_ready("jot_random", 4, v, &error))
        return (struct random_key){{error, error}};
    for (int i = 0; i < 4; i++)
        in[i] = trace_kept(v[i]);
    ir_id out = ir_build(trace_builder(), IR_threefry2x32, 4, in, NULL);
    return (struct random_key){{trace_value(out, false), trace_value(out + 1, false)}};
}

struct random_key random_counters(int64_t n)
{
    struct ir_builder *b = trace_builder();
    if (n <= (int64_t)UINT32_MAX + 1) {
        ir_id low = ir_iota(b, ir_type_make(b->module, JOT_U32, 1, &n), 0);
        return (struct random_key){
            {trace_value(scalar_int(JOT_U32, 0), false), trace_value(low, false)}};
    }
    ir_id wide = ir_iota(b, ir_type_make(b->module, JOT_U64, 1, &n), 0);
    ir_id high = ir_shr_logical(b, wide, scalar_int(JOT_U64, 32));
    return (struct random_key){{trace_value(convert(high, JOT_U32), false),
                                trace_value(convert(wide, JOT_U32), false)}};
}

struct random_key random_child(struct random_key key, uint32_t i)
{
    struct random_key counter = {{trace_value(scalar_int(JOT_U32, 0), false),
                                  trace_value(scalar_int(JOT_U32, i), false)}};
    return hash(key, counter);
}

// The words side by side: u32[n,2] of n keys.
static ir_id side_by_side(struct random_key k, int64_t n)
{
    struct ir_builder *b = trace_builder();
    const int64_t dims[] = {n, 1};
    ir_id columns[2];
    for (int i = 0; i < 2; i++)
        columns[i] = ir_reshape(b, trace_kept(k.word[i]), 2, dims);
    return ir_concatenate(b, 2, columns, 1);
}

static jot_value join(struct random_key key)
{
    ir_id row = side_by_side(key, 1);
    return trace_value(ir_reshape(trace_builder(), row, 1, (int64_t[]){2}), false);
}

struct random_key random_children(struct random_key key, int64_t n)
{
    return hash(key, random_counters(n));
}

jot_value random_subkey(jot_value key, uint32_t i)
{
    return join(random_child(random_key_of(key), i));
}

static jot_value key_of_seed(jot_value seed)
{
    const char *name = "jot_random_key";
    jot_value error;
    if (!is_integer(name, "seed", &seed, &error))
        return error;
    const struct trace_number *n = trace_number_of(seed);
    jot_dtype d = !n ? ir_dtype(trace_type(seed)) : n->kind == 'u' ? JOT_U64 : JOT_I64;
    ir_id id = trace_operand(seed, d), high = scalar_int(JOT_U32, 0);
    // A seed of 32 bits or less has no upper word.
    if (dtype_get(d)->bytes == 8)
        high = convert(ir_shr_logical(trace_builder(), id, scalar_int(d, 32)), JOT_U32);
    return join((struct random_key){
        {trace_value(high, false), trace_value(convert(id, JOT_U32), false)}});
}

jot_value jot_random_key(jot_value seed) { TRACE_RETURN(key_of_seed(seed)); }

static jot_value split(jot_value key, int64_t n)
{
    const char *name = "jot_random_split";
    jot_value error;
    if (!is_key(name, &key, &error))
        return error;
    if (n < 0 || n > RANDOM_MOST_NUMBERS)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%lld keys", (long long)n);
    struct random_key keys = random_children(random_key_of(key), n);
    return trace_result(name, side_by_side(keys, n), false);
}

jot_value jot_random_split(jot_value key, int64_t n) { TRACE_RETURN(split(key, n)); }

static jot_value fold_in(jot_value key, jot_value data)
{
    const char *name = "jot_random_fold_in";
    jot_value error;
    if (!is_key(name, &key, &error) || !is_integer(name, "data", &data, &error))
        return error;
    ir_id id = convert(trace_strong(data), JOT_U32);
    struct random_key counter = {
        {trace_value(scalar_int(JOT_U32, 0), false), trace_value(id, false)}};
    return join(hash(random_key_of(key), counter));
}

jot_value jot_random_fold_in(jot_value key, jot_value data)
{
    TRACE_RETURN(fold_in(key, data));
}

// ---------------------------------------------------------------------------------------
// Requests

bool random_open(struct random_request *r, const char *name, jot_value key, jot_dtype dtype,
                 const int64_t *dims, jot_value *out_error)
{
    *r = (struct random_request){.name = name, .key = key, .dtype = dtype};
    if (!is_key(name, &r->key, out_error) ||
        !trace_sizes(name, dims, 0, &r->rank, r->dims, out_error))
        return false;
    r->dims[r->rank] = JOT_END;
    // What is made on the way to the numbers is a few times as large.
    return trace_count(name, r->rank, r->dims, RANDOM_MOST_NUMBERS, &r->count, out_error) &&
           trace_is_dtype(name, dtype, out_error);
}

// Whether axes of a parameter fit the sizes of the result.
static bool fits(const struct random_request *r, jot_value param)
{
    struct ir_type t = trace_type(param);
    const int64_t *dims = ir_dims(trace_top()->module, t);
    for (int i = 0; i < t.rank; i++) {
        int at = r->rank - t.rank + i;
        if (at < 0 || (dims[i] != 1 && dims[i] != r->dims[at]))
            return false;
    }
    return true;
}

static bool add_params(struct random_request *r, int n, const jot_value *params, bool has_sizes,
                       jot_value *out_error)
{
    struct ir_module *m = trace_top()->module;
    ir_id ids[RANDOM_MAX_PARAMS];
    for (int i = 0; i < n; i++)
        r->param[i] = params[i];
    if (!trace_ready(r->name, n, r->param, out_error))
        return false;
    for (int i = 0; i < n; i++)
        ids[i] = trace_strong(r->param[i]);
    if (!trace_align(r->name, n, r->param, ids, out_error))
        return false;
    for (int i = 0; i < n && !has_sizes; i++) {
        struct ir_type t = trace_type(r->param[i]);
        int more = t.rank - r->rank;
        if (more > 0) {
            memmove(r->dims + more, r->dims, sizeof *r->dims * (size_t)r->rank);
            for (int k = 0; k < more; k++)
                r->dims[k] = 1;
            r->rank = t.rank;
        }
        for (int k = 0; k < t.rank; k++)
            if (ir_dims(m, t)[k] != 1)
                r->dims[r->rank - t.rank + k] = ir_dims(m, t)[k];
    }
    r->dims[r->rank] = JOT_END;
    if (!trace_count(r->name, r->rank, r->dims, RANDOM_MOST_NUMBERS, &r->count, out_error))
        return false;
    for (int i = 0; i < n; i++)
        if (!fits(r, r->param[i])) {
            *out_error = trace_fail(
                r->name, JOT_ERR_SHAPE, "a parameter is %s, which does not broadcast to %s",
                trace_type_text(r->param[i]),
                ir_type_text(m, ir_type_make(m, r->dtype, r->rank, r->dims)));
            return false;
        }
    return true;
}

bool random_open_params(struct random_request *r, const char *name, jot_value key,
                        jot_dtype dtype, int n, const jot_value *params, const int64_t *dims,
                        jot_value *out_error)
{
    return random_open(r, name, key, dtype, dims, out_error) &&
           add_params(r, n, params, dims && *dims != JOT_END, out_error);
}

bool random_is_float(const struct random_request *r, jot_value *out_error)
{
    if (dtype_is_float(r->dtype))
        return true;
    *out_error =
        trace_fail(r->name, JOT_ERR_DTYPE, "%s: it gives floats", jot_dtype_name(r->dtype));
    return false;
}

bool random_open_floats(struct random_request *r, const char *name, jot_value key,
                        jot_dtype dtype, int n, const jot_value *params, const int64_t *dims,
                        jot_value *out_error)
{
    if (!random_open_params(r, name, key, dtype, n, params, dims, out_error) ||
        !random_is_float(r, out_error))
        return false;
    for (int i = 0; i < n; i++) {
        if (dtype_is_complex(jot_value_dtype(r->param[i]))) {
            *out_error = trace_fail(name, JOT_ERR_DTYPE, "a parameter is %s, not real",
                                    trace_type_text(r->param[i]));
            return false;
        }
        r->param[i] = jot_convert(r->param[i], dtype);
    }
    return true;
}

jot_value random_drawn(random_draw *draw, const char *name, jot_value key, jot_dtype dtype,
                       int n, const jot_value *params, const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    if (!random_open_floats(&r, name, key, dtype, n, params, dims, &error))
        return error;
    return draw(&r);
}

// ---------------------------------------------------------------------------------------
// Bits and floats

static ir_id bits_of(struct random_key words, jot_dtype dtype)
{
    struct ir_builder *b = trace_builder();
    ir_id high = trace_kept(words.word[0]), low = trace_kept(words.word[1]);
    if (dtype != JOT_U64)
        return convert(ir_xor(b, high, low), dtype);
    high = ir_shl(b, convert(high, JOT_U64), scalar_int(JOT_U64, 32));
    return ir_or(b, high, convert(low, JOT_U64));
}

// Numbers of all elements, with the shape of the request.
static ir_id shaped(const struct random_request *r, ir_id x)
{
    return ir_reshape(trace_builder(), x, r->rank, r->dims);
}

jot_value random_bits(const struct random_request *r, jot_value key, jot_dtype dtype)
{
    struct random_key words = hash(random_key_of(key), random_counters(r->count));
    return trace_value(shaped(r, bits_of(words, dtype)), false);
}

static jot_value bits(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    if (!random_open(&r, "jot_random_bits", key, dtype, dims, &error))
        return error;
    if (!dtype_is_unsigned(dtype))
        return trace_fail(r.name, JOT_ERR_DTYPE, "%s: it gives u8, u16, u32 or u64",
                          jot_dtype_name(dtype));
    return random_bits(&r, r.key, dtype);
}

jot_value jot_random_bits_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(bits(key, dtype, dims));
}

// Random mantissas make floats in [1, 2), of which 1 is taken away.
struct float_layout {
    jot_dtype dtype, bits, random;
    int shift;
    int64_t one;
};

static ir_id unit_floats(struct random_key words, jot_dtype dtype)
{
    static const struct float_layout layouts[] = {
        {JOT_F32, JOT_U32, JOT_U32, 9, 0x3f800000},
        {JOT_F64, JOT_U64, JOT_U64, 12, 0x3ff0000000000000},
        {JOT_F16, JOT_U16, JOT_U16, 6, 0x3c00},
        {JOT_BF16, JOT_U16, JOT_U8, 1, 0x3f80},
    };
    const struct float_layout *f = layouts;
    while (f->dtype != dtype)
        f++;
    struct ir_builder *b = trace_builder();
    ir_id x = convert(bits_of(words, f->random), f->bits);
    x = ir_shr_logical(b, x, scalar_int(f->bits, f->shift));
    x = ir_bitcast(b, ir_or(b, x, scalar_int(f->bits, f->one)), dtype);
    return ir_sub(b, x, ir_scalar(b, dtype, 1));
}

jot_value random_uniform_at(struct random_key key, struct random_key counter, jot_dtype dtype)
{
    return trace_value(unit_floats(hash(key, counter), dtype), false);
}

// Numbers in [0, 1), moved to [low, high).
static jot_value moved(jot_value unit, jot_value low, jot_value high)
{
    return jot_add(jot_mul(unit, jot_sub(high, low)), low);
}

// The same where high may be below low.
static jot_value between(jot_value unit, jot_value low, jot_value high)
{
    return jot_maximum(low, moved(unit, low, high));
}

jot_value random_uniform(const struct random_request *r, jot_value key, jot_value low,
                         jot_value high)
{
    struct random_key words = hash(random_key_of(key), random_counters(r->count));
    ir_id unit = shaped(r, unit_floats(words, r->dtype));
    return between(trace_value(unit, false), low, high);
}

// What rounding has brought to the end is the last number before it.
static jot_value below_end(jot_value x, jot_value low, jot_value high)
{
    jot_value end = jot_stop_gradient(high), is_end = jot_greater_equal(x, end);
    is_end = jot_logical_and(is_end, jot_less(low, end));
    return jot_where(is_end, jot_nextafter(end, jot_stop_gradient(low)), x);
}

// By halves where the width of an interval is no number, though its ends are.
static jot_value uniform_between(const struct random_request *r, jot_value low, jot_value high)
{
    jot_value two = jot_convert(jot_from_int(2), r->dtype);
    jot_value half = random_uniform(r, r->key, jot_div(low, two), jot_div(high, two));
    jot_value x = random_uniform(r, r->key, low, high);
    jot_value is_wide = jot_logical_and(jot_logical_not(jot_is_finite(jot_sub(high, low))),
                                        jot_is_finite(half));
    return below_end(jot_where(is_wide, jot_mul(half, two), x), low, high);
}

static jot_value uniform(const char *name, jot_value key, jot_dtype dtype, jot_value low,
                         jot_value high, const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    if (!random_open_floats(&r, name, key, dtype, 2, (jot_value[]){low, high}, dims, &error))
        return error;
    return uniform_between(&r, r.param[0], r.param[1]);
}

static jot_value unit(const struct random_request *r)
{
    jot_value zero = jot_convert(jot_from_int(0), r->dtype);
    return random_uniform(r, r->key, zero, jot_ones_like(zero));
}

jot_value jot_random_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(random_drawn(unit, "jot_random_uniform", key, dtype, 0, NULL, dims));
}

jot_value jot_random_uniform_in_dims(jot_value key, jot_dtype dtype, jot_value low,
                                     jot_value high, const int64_t *dims)
{
    TRACE_RETURN(uniform("jot_random_uniform_in", key, dtype, low, high, dims));
}

// Between the ends of the open interval (-1, 1), which have no finite image.
static jot_value normal_of_unit(jot_value unit, jot_dtype dtype)
{
    jot_value one = jot_convert(jot_from_int(1), dtype), zero = jot_zeros_like(one);
    jot_value u = moved(unit, jot_nextafter(jot_neg(one), zero), one);
    return jot_mul(random_erf_inv(u), jot_from_double(M_SQRT2));
}

jot_value random_normal_at(struct random_key key, struct random_key counter, jot_dtype dtype)
{
    return normal_of_unit(random_uniform_at(key, counter, dtype), dtype);
}

jot_value random_normal(const struct random_request *r, jot_value key)
{
    struct random_key words = hash(random_key_of(key), random_counters(r->count));
    return normal_of_unit(trace_value(shaped(r, unit_floats(words, r->dtype)), false),
                          r->dtype);
}
