// SPDX-License-Identifier: Apache-2.0
// Random numbers: threefry2x32 with 20 rounds (Salmon et al. 2011) in the counter layout of
// jax.random with jax_threefry_partitionable.
//
// Element n of a result (row-major, 64 bits) has the counter (high word of n, low word of n).
// 32-bit numbers are the xor of the two words that come out, 64-bit ones both, narrower ones the
// low bits.
#include "trace/emit.h"

#include "jot/random.h"

#include <math.h>

static bool is_key(const char *name, jot_value *key, jot_value *out_error)
{
    if (!trace_ready(name, 1, key, out_error))
        return false;
    struct ir_type t = trace_type(*key);
    if (ir_dtype(t) == JOT_U32 && t.rank == 1 && ir_dims(trace_top()->module, t)[0] == 2)
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                            "the key is %s, not u32[2]: make one with "
                            "jot_random_key",
                            trace_type_text(*key));
    return false;
}

static ir_id key_word(ir_id key, int64_t i)
{
    struct ir_builder *b = trace_builder();
    return ir_reshape(b, ir_slice(b, key, &i, (int64_t[]){i + 1}, NULL), 0, NULL);
}

// The two words for n consecutive counters.
struct words {
    ir_id high, low;
};

static struct words hash_counters(ir_id key, ir_id counter_high, ir_id counter_low)
{
    struct ir_builder *b = trace_builder();
    ir_id in[] = {key_word(key, 0), key_word(key, 1), counter_high, counter_low};
    ir_id out = ir_build(b, IR_threefry2x32, 4, in, NULL);
    return (struct words){out, out == IR_NONE ? out : out + 1};
}

static struct words random_words(ir_id key, int64_t n)
{
    struct ir_builder *b = trace_builder();
    struct ir_module *m = b->module;
    if (n <= (int64_t)UINT32_MAX + 1) {
        ir_id low = ir_iota(b, ir_type_make(m, JOT_U32, 1, &n), 0);
        return hash_counters(key, ir_scalar_int(b, JOT_U32, 0), low);
    }
    ir_id wide = ir_iota(b, ir_type_make(m, JOT_U64, 1, &n), 0);
    ir_id high = ir_shr_logical(b, wide, ir_scalar_int(b, JOT_U64, 32));
    return hash_counters(key, ir_convert(b, high, JOT_U32), ir_convert(b, wide, JOT_U32));
}

static jot_value key_of_seed(jot_value seed)
{
    const char *name = "jot_random_key";
    jot_value error;
    if (!trace_ready(name, 1, &seed, &error))
        return error;
    struct ir_type t = trace_type(seed);
    struct ir_builder *b = trace_builder();
    if (t.rank || !dtype_is_integer(ir_dtype(t)))
        return trace_fail(name, JOT_ERR_ARGUMENT, "the seed is %s, not one integer",
                          trace_type_text(seed));
    const struct trace_number *n = trace_number_of(seed);
    jot_dtype d = n ? (n->kind == 'u' ? JOT_U64 : JOT_I64) : ir_dtype(t);
    ir_id id = trace_operand(seed, d), one = IR_NONE, parts[2];
    // A seed of 32 bits or less has no upper word.
    parts[1] = ir_convert(b, id, JOT_U32);
    if (dtype_get(d)->bytes == 8)
        one = ir_shr_logical(b, id, ir_scalar_int(b, d, 32));
    parts[0] = one == IR_NONE ? ir_scalar_int(b, JOT_U32, 0) : ir_convert(b, one, JOT_U32);
    for (int i = 0; i < 2; i++)
        parts[i] = ir_reshape(b, parts[i], 1, (int64_t[]){1});
    return trace_result(name, ir_concatenate(b, 2, parts, 0), false);
}

jot_value jot_random_key(jot_value seed) { TRACE_RETURN(key_of_seed(seed)); }

static ir_id side_by_side(struct words w, int64_t n)
{
    struct ir_builder *b = trace_builder();
    const int64_t dims[] = {n, 1};
    ir_id columns[] = {ir_reshape(b, w.high, 2, dims), ir_reshape(b, w.low, 2, dims)};
    return ir_concatenate(b, 2, columns, 1);
}

static jot_value split(jot_value key, int64_t n)
{
    jot_value error;
    if (!is_key("jot_random_split", &key, &error))
        return error;
    if (n < 0)
        return trace_fail("jot_random_split", JOT_ERR_ARGUMENT, "%lld keys", (long long)n);
    return trace_result("jot_random_split", side_by_side(random_words(trace_kept(key), n), n),
                        false);
}

jot_value jot_random_split(jot_value key, int64_t n) { TRACE_RETURN(split(key, n)); }

static jot_value fold_in(jot_value key, jot_value data)
{
    const char *name = "jot_random_fold_in";
    jot_value error;
    if (!is_key(name, &key, &error) || !trace_ready(name, 1, &data, &error))
        return error;
    struct ir_type t = trace_type(data);
    if (t.rank || !dtype_is_integer(ir_dtype(t)))
        return trace_fail(name, JOT_ERR_ARGUMENT, "the data is %s, not one integer",
                          trace_type_text(data));
    struct ir_builder *b = trace_builder();
    ir_id id = ir_convert(b, trace_strong(data), JOT_U32);
    ir_id at = ir_reshape(b, id, 1, (int64_t[]){1});
    struct words w = hash_counters(trace_kept(key), ir_scalar_int(b, JOT_U32, 0), at);
    return trace_result(name, ir_reshape(b, side_by_side(w, 1), 1, (int64_t[]){2}), false);
}

jot_value jot_random_fold_in(jot_value key, jot_value data)
{
    TRACE_RETURN(fold_in(key, data));
}

// ---------------------------------------------------------------------------------------
// Numbers

struct request {
    jot_value key;
    int rank;
    int64_t dims[IR_MAX_RANK], count;
};

static bool open_request(const char *name, jot_value key, const int64_t *dims,
                         struct request *r, jot_value *out_error)
{
    r->key = key;
    if (!is_key(name, &r->key, out_error) ||
        !trace_sizes(name, dims, 0, &r->rank, r->dims, out_error))
        return false;
    r->count = 1;
    for (int i = 0; i < r->rank; i++)
        r->count *= r->dims[i];
    return true;
}

// Random integers of the unsigned dtype, with the shape of the request.
static ir_id bits(const struct request *r, jot_dtype dtype)
{
    struct ir_builder *b = trace_builder();
    struct words w = random_words(trace_kept(r->key), r->count);
    ir_id x;
    if (dtype == JOT_U64) {
        ir_id high = ir_shl(b, ir_convert(b, w.high, JOT_U64), ir_scalar_int(b, JOT_U64, 32));
        x = ir_or(b, high, ir_convert(b, w.low, JOT_U64));
    } else {
        x = ir_convert(b, ir_xor(b, w.high, w.low), dtype);
    }
    return ir_reshape(b, x, r->rank, r->dims);
}

static jot_value random_bits(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    struct request r;
    jot_value error;
    if (!open_request("jot_random_bits", key, dims, &r, &error))
        return error;
    if (!dtype_is_valid((int)dtype) || !dtype_is_unsigned(dtype))
        return trace_fail("jot_random_bits", JOT_ERR_DTYPE, "%s: it gives u8, u16, u32 or u64",
                          jot_dtype_name(dtype));
    return trace_result("jot_random_bits", bits(&r, dtype), false);
}

jot_value jot_random_bits_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(random_bits(key, dtype, dims));
}

// Random mantissas make floats in [1, 2), of which 1 is taken away.
struct float_layout {
    jot_dtype dtype, bits, random;
    int shift;
    int64_t one;
};

static const struct float_layout *find_layout(jot_dtype dtype)
{
    static const struct float_layout layouts[] = {
        {JOT_F32, JOT_U32, JOT_U32, 9, 0x3f800000},
        {JOT_F64, JOT_U64, JOT_U64, 12, 0x3ff0000000000000},
        {JOT_F16, JOT_U16, JOT_U16, 6, 0x3c00},
        {JOT_BF16, JOT_U16, JOT_U8, 1, 0x3f80},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].dtype == dtype)
            return &layouts[i];
    return NULL;
}

// low and high have the dtype and rank 0.
static ir_id uniform_between(const struct request *r, const struct float_layout *f, ir_id low,
                             ir_id high)
{
    struct ir_builder *b = trace_builder();
    ir_id x = ir_convert(b, bits(r, f->random), f->bits);
    x = ir_shr_logical(b, x, ir_scalar_int(b, f->bits, f->shift));
    x = ir_bitcast(b, ir_or(b, x, ir_scalar_int(b, f->bits, f->one)), f->dtype);
    x = ir_sub(b, x, ir_scalar(b, f->dtype, 1));
    return ir_max(b, low, ir_add(b, ir_mul(b, x, ir_sub(b, high, low)), low));
}

static bool open_floats(const char *name, jot_value key, jot_dtype dtype, const int64_t *dims,
                        struct request *r, const struct float_layout **f, jot_value *out_error)
{
    if (!open_request(name, key, dims, r, out_error))
        return false;
    *f = find_layout(dtype);
    if (!*f)
        *out_error =
            trace_fail(name, JOT_ERR_DTYPE, "%s: it gives floats", jot_dtype_name(dtype));
    return *f != NULL;
}

static jot_value uniform(const char *name, jot_value key, jot_dtype dtype, jot_value low,
                         jot_value high, const int64_t *dims)
{
    struct request r;
    const struct float_layout *f;
    jot_value v[] = {low, high}, error;
    if (!open_floats(name, key, dtype, dims, &r, &f, &error) ||
        !trace_ready(name, 2, v, &error))
        return error;
    for (int i = 0; i < 2; i++)
        if (trace_type(v[i]).rank)
            return trace_fail(name, JOT_ERR_SHAPE, "a bound is %s, not one number",
                              trace_type_text(v[i]));
    ir_id x = uniform_between(&r, f, trace_operand(v[0], dtype), trace_operand(v[1], dtype));
    return trace_result(name, x, false);
}

jot_value jot_random_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    jot_value low = jot_from_int(0), high = jot_from_int(1);
    TRACE_RETURN(uniform("jot_random_uniform", key, dtype, low, high, dims));
}

jot_value jot_random_uniform_in_dims(jot_value key, jot_dtype dtype, jot_value low,
                                     jot_value high, const int64_t *dims)
{
    TRACE_RETURN(uniform("jot_random_uniform_in", key, dtype, low, high, dims));
}

// The polynomials of M. Giles, "Approximating the erfinv function" (GPU Computing Gems 2, 2011), in
// w = -log(1 - u^2), highest power first: for w below `end`, in w or its root less `middle`.
struct giles {
    double end, middle;
    int n;
    double coefficient[23];
};

static const struct giles giles_f32[] = {
    {5,
     2.5,
     9,
     {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
      -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}},
    {INFINITY,
     3,
     9,
     {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
      -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}},
};
static const struct giles giles_f64[] = {
    {6.25,
     3.125,
     23,
     {-3.6444120640178197e-21, -1.6850591381820166e-19, 1.28584807152564e-18,
      1.1157877678025181e-17,  -1.3331716628546209e-16, 2.0972767875968562e-17,
      6.6376381343583238e-15,  -4.0545662729752069e-14, -8.1519341976054722e-14,
      2.6335093153082323e-12,  -1.2975133253453532e-11, -5.4154120542946279e-11,
      1.0512122733215323e-09,  -4.1126339803469837e-09, -2.9070369957882005e-08,
      4.2347877827932404e-07,  -1.3654692000834679e-06, -1.3882523362786469e-05,
      0.00018673420803405714,  -0.000740702534166267,   -0.0060336708714301491,
      0.24015818242558962,     1.6536545626831027}},
    {16,
     3.25,
     19,
     {2.2137376921775787e-09, 9.0756561938885391e-08, -2.7517406297064545e-07,
      1.8239629214389228e-08, 1.5027403968909828e-06, -4.013867526981546e-06,
      2.9234449089955446e-06, 1.2475304481671779e-05, -4.7318229009055734e-05,
      6.8284851459573175e-05, 2.4031110387097894e-05, -0.00035503752036284748,
      0.0009532893797373805, -0.0016882755560235047, 0.0024914420961078508,
      -0.0037512085075692412, 0.0053709145535900636, 1.0052589676941592, 3.0838856104922208}},
    {INFINITY,
     5,
     17,
     {-2.7109920616438573e-11, -2.5556418169965252e-10, 1.5076572693500548e-09,
      -3.789465440126737e-09, 7.61570120807834e-09, -1.496002662714924e-08,
      2.9147953450901081e-08, -6.7711997758452339e-08, 2.2900482228026655e-07,
      -9.9298272942317e-07, 4.5260625972231537e-06, -1.9681778105531671e-05,
      7.5995277030017761e-05, -0.00021503011930044477, -0.00013871931833623122,
      1.0103004648645344, 4.8499064014085844}},
};

// The value at x of a polynomial, highest power first.
static ir_id polynomial(int n, const double *c, ir_id x, jot_dtype dtype)
{
    struct ir_builder *b = trace_builder();
    ir_id p = ir_scalar(b, dtype, c[0]);
    for (int i = 1; i < n; i++)
        p = ir_fma(b, p, x, ir_scalar(b, dtype, c[i]));
    return p;
}

// The logarithm of 0 < s < 1 in f32 of the Cephes library, with the fma's of XLA.
static ir_id log_of_jax(ir_id s)
{
    static const double third[3][3] = {{7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1},
                                       {-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1},
                                       {2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1}};
    struct ir_builder *b = trace_builder();
#define SCALAR(x) ir_scalar(b, JOT_F32, x)
#define BITS(x) ir_scalar(b, JOT_I32, x)
    ir_id bits = ir_bitcast(b, s, JOT_I32);
    ir_id e = ir_convert(b, ir_sub(b, ir_shr_logical(b, bits, BITS(23)), BITS(126)), JOT_F32);
    ir_id m =
        ir_bitcast(b, ir_or(b, ir_and(b, bits, BITS(0x7fffff)), BITS(0x3f000000)), JOT_F32);
    ir_id is_low = ir_lt(b, m, SCALAR(0.707106781186547524));
    e = ir_sub(b, e, ir_convert(b, is_low, JOT_F32));
    ir_id x = ir_add(b, ir_sub(b, m, SCALAR(1)), ir_select(b, is_low, m, SCALAR(0)));
    ir_id x2 = ir_mul(b, x, x), x3 = ir_mul(b, x2, x), p = IR_NONE;
    for (int i = 0; i < 3; i++) {
        ir_id part = polynomial(3, third[i], x, JOT_F32);
        p = i ? ir_fma(b, p, x3, part) : part;
    }
    p = ir_fma(b, p, x3, ir_mul(b, e, SCALAR(-2.12194440e-4)));
    p = ir_add(b, ir_fma(b, x2, SCALAR(-0.5), x), p);
    return ir_fma(b, e, SCALAR(0.693359375), p);
#undef BITS
#undef SCALAR
}

// log(1 + x) of -1 < x <= 0 as XLA has it: the rational form of the Cephes library up to the
// root of 2, the logarithm beyond.
static ir_id log1p_of_jax(ir_id x, jot_dtype dtype)
{
    static const double over[] = {4.5270000862445199635215e-5, 4.9854102823193375972212e-1,
                                  6.5787325942061044846969,    2.9911919328553073277375e1,
                                  6.0949667980987787057556e1,  5.7112963590585538103336e1,
                                  2.0039553499201281259648e1};
    static const double under[] = {1,
                                   1.5062909083469192043167e1,
                                   8.3047565967967209469434e1,
                                   2.2176239823732856465394e2,
                                   3.0909872225312059774938e2,
                                   2.1642788614495947685003e2,
                                   6.0118660497603843919306e1};
    struct ir_builder *b = trace_builder();
    ir_id x2 = ir_mul(b, x, x);
    ir_id ratio = ir_div(b, polynomial(7, over, x, dtype), polynomial(7, under, x, dtype));
    ir_id near = ir_fma(b, x2, ir_scalar(b, dtype, -0.5), ir_mul(b, ir_mul(b, x, x2), ratio));
    ir_id s = ir_add(b, x, ir_scalar(b, dtype, 1));
    return ir_select(b, ir_lt(b, ir_neg(b, x), ir_scalar(b, dtype, 0.41421356237309504880)),
                     ir_add(b, x, near), dtype == JOT_F32 ? log_of_jax(s) : ir_log(b, s));
}

// erf_inv of |u| < 1 as JAX has it: the rounding of 1 - u^2 moves results near the ends by 90 units
// in the last place in f32 and thousands in f64, so that normal numbers would not be JAX's with
// the op.
static ir_id erf_inv_of_jax(ir_id u, jot_dtype dtype)
{
    struct ir_builder *b = trace_builder();
    bool is_wide = dtype == JOT_F64;
    const struct giles *piece = is_wide ? giles_f64 : giles_f32;
    ir_id w = ir_neg(b, log1p_of_jax(ir_mul(b, u, ir_neg(b, u)), dtype));
    ir_id root = ir_sqrt(b, w), p = IR_NONE;
#define SCALAR(x) ir_scalar(b, dtype, x)
    // All polynomials, and then one of them: a multiplication is no dearer than to choose a coefficient.
    for (int k = is_wide ? 2 : 1; k >= 0; k--) {
        ir_id t = ir_sub(b, k == 0 ? w : root, SCALAR(piece[k].middle));
        ir_id own = polynomial(piece[k].n, piece[k].coefficient, t, dtype);
        p = p == IR_NONE ? own : ir_select(b, ir_lt(b, w, SCALAR(piece[k].end)), own, p);
    }
#undef SCALAR
    return ir_mul(b, p, u);
}

static jot_value normal(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    struct request r;
    const struct float_layout *f;
    jot_value error;
    if (!open_floats("jot_random_normal", key, dtype, dims, &r, &f, &error))
        return error;
    struct ir_builder *b = trace_builder();
    // The open interval (-1, 1): its ends have no finite image.
    ir_id low = ir_nextafter(b, ir_scalar(b, dtype, -1), ir_scalar(b, dtype, 0));
    ir_id u = uniform_between(&r, f, low, ir_scalar(b, dtype, 1));
    jot_dtype wide = dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    ir_id y = ir_convert(b, erf_inv_of_jax(ir_convert(b, u, wide), wide), dtype);
    ir_id x = ir_mul(b, ir_scalar(b, dtype, M_SQRT2), y);
    return trace_result("jot_random_normal", x, false);
}

jot_value jot_random_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(normal(key, dtype, dims));
}

jot_value jot_random_bernoulli_dims(jot_value key, double p, const int64_t *dims)
{
    return jot_less(jot_random_uniform_dims(key, JOT_F32, dims), jot_from_double(p));
}

jot_value jot_random_exponential_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return jot_neg(jot_log1p(jot_neg(jot_random_uniform_dims(key, dtype, dims))));
}
