// SPDX-License-Identifier: Apache-2.0
// Functions of random numbers with the roundings of XLA on a host, so that numbers are JAX's.
#include "trace/random.h"

#include <math.h>

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

// The logarithm of s > 0 in f32 of the Cephes library, with the fma's of XLA.
static ir_id log_f32(ir_id s)
{
    static const double third[3][3] = {{7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1},
                                       {-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1},
                                       {2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1}};
    struct ir_builder *b = trace_builder();
#define SCALAR(x) ir_scalar(b, JOT_F32, x)
#define BITS(x) ir_scalar(b, JOT_I32, x)
    // s = (1 + x) 2^e with 1 + x between the root of 1/2 and that of 2: the difference of the bits of
    // s and of that root has e in front.  e is kept times 2^23, as it stands there.
    ir_id bits = ir_bitcast(b, s, JOT_I32);
    ir_id high = ir_and(b, ir_sub(b, bits, BITS(0x3f3504f3)), BITS(-0x800000));
    ir_id x = ir_sub(b, ir_bitcast(b, ir_sub(b, bits, high), JOT_F32), SCALAR(1));
    ir_id e = ir_convert(b, high, JOT_F32);
    ir_id x2 = ir_mul(b, x, x), x3 = ir_mul(b, x2, x), p = IR_NONE;
    for (int i = 0; i < 3; i++) {
        ir_id part = polynomial(3, third[i], x, JOT_F32);
        p = i ? ir_fma(b, p, x3, part) : part;
    }
    p = ir_fma(b, p, x3, ir_mul(b, e, SCALAR((double)-2.12194440e-4f * 0x1p-23)));
    p = ir_add(b, ir_fma(b, x2, SCALAR(-0.5), x), p);
    return ir_fma(b, e, SCALAR(0.693359375 * 0x1p-23), p);
#undef BITS
#undef SCALAR
}

// h + l = a + b exactly, where |a| >= |b| or a = 0; *l gathers the rest.
static ir_id sum_of(ir_id a, ir_id b, ir_id *l)
{
    struct ir_builder *to = trace_builder();
    ir_id h = ir_add(to, a, b);
    *l = ir_add(to, *l, ir_sub(to, b, ir_sub(to, h, a)));
    return h;
}

// The logarithm of s > 0 in f64 to 0.501 units in the last place, for XLA takes that of the C
// library, which is as exact: with x = m 2^e and q = (m - 1) / (m + 1), it is
// e log 2 + 2 q + 2/3 q^3 + ..., the first three terms with twice the precision.
static ir_id log_f64(ir_id s)
{
    struct ir_builder *b = trace_builder();
#define SCALAR(x) ir_scalar(b, JOT_F64, x)
#define BITS(x) ir_scalar_int(b, JOT_I64, x)
    ir_id bits = ir_bitcast(b, s, JOT_I64);
    ir_id e = ir_sub(b, ir_shr_logical(b, bits, BITS(52)), BITS(1022));
    ir_id m = ir_or(b, ir_and(b, bits, BITS(0xfffffffffffff)), BITS(0x3fe0000000000000));
    m = ir_bitcast(b, m, JOT_F64);
    ir_id is_low = ir_lt(b, m, SCALAR(0.707106781186547524));
    e = ir_sub(b, ir_convert(b, e, JOT_F64), ir_convert(b, is_low, JOT_F64));
    m = ir_add(b, m, ir_select(b, is_low, m, SCALAR(0)));
    // q and its rest.
    ir_id f = ir_sub(b, m, SCALAR(1)), g = ir_add(b, m, SCALAR(1)), q = ir_div(b, f, g);
    ir_id g_low = ir_sub(b, m, ir_sub(b, g, SCALAR(1)));
    ir_id rest = ir_fma(b, ir_neg(b, q), g_low, ir_fma(b, ir_neg(b, q), g, f));
    ir_id q_low = ir_div(b, rest, g);
    // q^2, q^3 and 2/3 q^3, with theirs.
    ir_id z = ir_mul(b, q, q), c = ir_mul(b, q, z), third = SCALAR(2.0 / 3);
    ir_id twice = ir_mul(b, ir_add(b, q, q), q_low);
    ir_id z_low = ir_add(b, ir_fma(b, q, q, ir_neg(b, z)), twice);
    ir_id c_low = ir_fma(b, q, z, ir_neg(b, c));
    c_low = ir_fma(b, q_low, z, ir_fma(b, q, z_low, c_low));
    ir_id u = ir_mul(b, c, third), u_low = ir_fma(b, c, third, ir_neg(b, u));
    u_low = ir_fma(b, c_low, third, ir_fma(b, c, SCALAR(0x1p-54 * 2.0 / 3), u_low));
    // 2/5 q^5 + 2/7 q^7 + ...
    double term[10];
    for (int k = 0; k < 10; k++)
        term[k] = 2.0 / (23 - 2 * k);
    ir_id low = ir_mul(b, ir_mul(b, c, z), polynomial(10, term, z, JOT_F64));
    low = ir_add(b, low, ir_add(b, ir_add(b, q_low, q_low), u_low));
    low = ir_fma(b, e, SCALAR(1.90821492927058770002e-10), low);
    ir_id h = sum_of(ir_mul(b, e, SCALAR(6.93147180369123816490e-01)), ir_add(b, q, q), &low);
    h = sum_of(h, u, &low);
    return ir_add(b, h, low);
#undef BITS
#undef SCALAR
}

static ir_id log_of_positive(ir_id s, jot_dtype dtype)
{
    return dtype == JOT_F32 ? log_f32(s) : log_f64(s);
}

// log(1 + x) of x > -1 as XLA has it: the rational form of the Cephes library up to the root of 2,
// the logarithm beyond.
static ir_id log1p_of(ir_id x, jot_dtype dtype)
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
    return ir_select(b, ir_lt(b, ir_abs(b, x), ir_scalar(b, dtype, 0.41421356237309504880)),
                     ir_add(b, x, near), log_of_positive(s, dtype));
}

// erf_inv of |u| < 1 as JAX has it: the rounding of 1 - u^2 moves results near the ends by 90 units
// in the last place in f32 and thousands in f64, so that normal numbers would not be JAX's with
// the op.
static ir_id erf_inv_of(ir_id u, jot_dtype dtype)
{
    struct ir_builder *b = trace_builder();
    bool is_wide = dtype == JOT_F64;
    const struct giles *piece = is_wide ? giles_f64 : giles_f32;
    ir_id w = ir_neg(b, log1p_of(ir_mul(b, u, ir_neg(b, u)), dtype));
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

static ir_id log_of(ir_id x, jot_dtype dtype)
{
    struct ir_builder *b = trace_builder();
    ir_id is_zero = ir_eq(b, x, ir_scalar(b, dtype, 0));
    return ir_select(b, is_zero, ir_scalar(b, dtype, -INFINITY), log_of_positive(x, dtype));
}

// f(x) in f32 or f64, rounded to the type of x.
static jot_value in_wide(ir_id (*f)(ir_id, jot_dtype), jot_value x)
{
    struct ir_builder *b = trace_builder();
    jot_value error;
    if (!trace_ready("jot_random", 1, &x, &error))
        return error;
    jot_dtype dtype = ir_dtype(trace_type(x)), wide = dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    ir_id y = f(ir_convert(b, trace_strong(x), wide), wide);
    return trace_value(ir_convert(b, y, dtype), false);
}

jot_value random_log(jot_value x) { return in_wide(log_of, x); }
jot_value random_log1p(jot_value x) { return in_wide(log1p_of, x); }
jot_value random_erf_inv(jot_value x) { return in_wide(erf_inv_of, x); }

// Lanczos' approximation of the gamma function (1964), for JAX has it: what it is compared with in f32
// cancels, and by Stirling's series every fortieth Poisson number of mean 1e5 would be another.
jot_value random_log_factorial(jot_value k)
{
    static const double c[] = {
        676.520368121885098567009190444019, -1259.13921672240287047156078755283,
        771.3234287776530788486528258894,   -176.61502916214059906584551354,
        12.507343278686904814458936853,     -0.13857109526572011689554707,
        9.984369578019570859563e-6,         1.50563273514931155834e-7};
    jot_value sum = jot_from_double(0.99999999999980993227684700473478);
    for (int i = 0; i < 8; i++)
        sum = jot_add(sum, jot_div(jot_from_double(c[i]), jot_add(k, jot_from_double(i + 1))));
    jot_value t = jot_add(k, jot_from_double(7.5));
    jot_value log_t = jot_add(random_log1p(jot_div(k, jot_from_double(7.5))),
                              jot_from_double(2.0149030205422647));
    jot_value power = jot_sub(jot_add(k, jot_from_double(0.5)), jot_div(t, log_t));
    return jot_add(jot_add(jot_mul(power, log_t), jot_from_double(0.9189385332046727)),
                   random_log(sum));
}
