// SPDX-License-Identifier: Apache-2.0
// Poisson and binomial numbers: counts of events while they are few, rejection where they are many.
//
// The loops are those of JAX, over all numbers until the last is done, for its numbers depend on how
// many trips that takes: in each a candidate that is accepted replaces one accepted before.
#include "numpy/formula.h"
#include "trace/random.h"

#include "jot/control.h"

#include <math.h>

// What is the same in all trips of a loop; arrays of one axis, the parameters among them.
struct loop {
    struct random_key counter;
    jot_value mean, is_huge, base;                      // Poisson
    jot_value count, odds, log_miss, middle, at_middle; // binomial
    jot_value a, b, c, inner, limit;                    // of rejection
};

static jot_value uniform_of(const struct loop *l, struct random_key key, jot_value like)
{
    return random_uniform_at(key, l->counter, jot_value_dtype(like));
}

// Parameter i for each number of the request, in one axis.
static jot_value flat(const struct random_request *r, int i)
{
    return jot_reshape_dims(jot_broadcast_to_dims(r->param[i], r->dims),
                            (int64_t[]){r->count, JOT_END});
}

// From here on differences of logarithms of factorials have lost their digits in f32.
#define HUGE_COUNT 0x1p17

static jot_value any(jot_value x) { return jot_any_axes(x, (int[]){JOT_END}); }

// ---------------------------------------------------------------------------------------
// Loops of rejection carry a key, the numbers, and whether one has been accepted.

enum { KEY, NUMBER = 2, ACCEPTED, CARRIES };

static jot_value is_open(const jot_value *carry, void *ctx)
{
    (void)ctx;
    return any(jot_logical_not(carry[ACCEPTED]));
}

// One trip of the transformed rejection of W. Hoermann (The transformed rejection method for
// generating Poisson random variables, 1993; The generation of binomial random variates, 1993):
// a candidate k, and v moved to what is compared with the logarithm of the density at k.
struct candidate {
    struct random_key next;
    jot_value k, v, is_inside, is_thin;
};

static struct candidate candidate(const struct loop *l, const jot_value *carry, double offset)
{
    struct random_key key = {{carry[KEY], carry[KEY + 1]}};
    struct candidate x = {.next = random_child(key, 0)};
    jot_value u = sub(uniform_of(l, random_child(key, 1), l->a), num(0.5));
    jot_value v = uniform_of(l, random_child(key, 2), l->a);
    jot_value rest = sub(num(0.5), jot_abs(u));
    jot_value slope = add(over(mul(num(2), l->a), rest), l->b);
    x.k = jot_floor(add(add(mul(slope, u), l->c), num(offset)));
    x.v = random_log(over(mul(v, l->inner), add(over(l->a, mul(rest, rest)), l->b)));
    x.is_inside =
        jot_logical_and(jot_greater_equal(rest, num(0.07)), jot_less_equal(v, l->limit));
    x.is_thin = jot_logical_and(jot_less(rest, num(0.013)), jot_greater(v, rest));
    return x;
}

static void accept(jot_value *carry, const struct candidate *x, jot_value is_outside,
                   jot_value density)
{
    jot_value is_below =
        jot_logical_and(jot_logical_not(is_outside), jot_less_equal(x->v, density));
    jot_value is_accepted = jot_logical_or(x->is_inside, is_below);
    carry[ACCEPTED] = jot_logical_or(carry[ACCEPTED], is_accepted);
    carry[NUMBER] = jot_where(is_accepted, x->k, carry[NUMBER]);
    memcpy(carry + KEY, x->next.word, sizeof x->next.word);
}

// For each number, what ACCEPTED starts with: nothing is drawn unless any number is large, and then the
// small ones take part with other parameters, as in JAX, for the number of trips depends on them.
static jot_value unless_any(jot_value is_large)
{
    return jot_where(any(is_large), jot_zeros_like(is_large), jot_ones_like(is_large));
}

// (1 + x) log(1 + x) - x, for what is so large that the difference of logarithms of factorials
// has lost its digits: near 0 its series, x^2/2 - x^3/6 + ... + (-x)^n / (n (n - 1)).
static jot_value deviance(jot_value x)
{
    enum { TERMS = 9 };
    jot_value sum = num(0);
    for (int n = TERMS + 1; n >= 2; n--)
        sum = add(mul(sum, x), num((n % 2 ? -1.0 : 1.0) / (n * (n - 1))));
    jot_value near = mul(mul(x, x), sum), next = add(one(), x);
    jot_value far = sub(mul(next, jot_log1p(x)), x);
    return jot_where(jot_less(jot_abs(x), num(0.1)), near, far);
}

// ---------------------------------------------------------------------------------------
// Poisson

// Carries a key, the numbers of events, and the logarithms of products of uniform numbers, which
// leave e^-mean after one event too many.
static jot_value is_early(const jot_value *carry, void *ctx)
{
    return jot_greater(carry[3], jot_neg(((const struct loop *)ctx)->mean));
}

static jot_value are_early(const jot_value *carry, void *ctx)
{
    return any(is_early(carry, ctx));
}

static void wait(jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    struct random_key key = {{carry[0], carry[1]}}, next = random_child(key, 0);
    jot_value u = uniform_of(l, random_child(key, 1), l->mean);
    memcpy(carry, next.word, sizeof next.word);
    carry[2] = add(carry[2], jot_convert(is_early(carry, ctx), JOT_F32));
    carry[3] = add(carry[3], random_log(u));
}

// Where the mean is huge, candidates are counted from its whole part, and the logarithm of the
// density at mean + d is -mean deviance(d / mean) - log(2 pi k) / 2.
static void draw_poisson(jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    struct candidate x = candidate(l, carry, 0.43);
    jot_value density =
        sub(add(jot_neg(l->mean), mul(x.k, random_log(l->mean))), random_log_factorial(x.k));
    jot_value d = sub(x.k, sub(l->mean, l->base)), k = jot_maximum(add(x.k, l->base), one());
    jot_value huge = mul(jot_log(mul(num(2 * M_PI), k)), num(-0.5));
    huge = sub(huge, mul(l->mean, deviance(over(d, l->mean))));
    density = jot_where(l->is_huge, huge, density);
    jot_value is_below = jot_less(add(x.k, l->base), num(0));
    accept(carry, &x, jot_logical_or(is_below, x.is_thin), density);
}

// The numbers are counted from *out_base, 0 but where the mean is huge.
static jot_value poisson_of(const struct random_request *r, jot_value *out_base)
{
    jot_value mean = flat(r, 0), zero = jot_zeros_like(mean), one = jot_ones_like(mean);
    // NaN and what is below 0 have -1, as has infinity, for which nothing would be accepted.
    jot_value is_small = jot_logical_not(jot_greater_equal(mean, num(10)));
    jot_value is_large = jot_logical_and(jot_logical_not(is_small), jot_is_finite(mean));
    struct random_key key = random_key_of(r->key);
    struct loop l = {.counter = random_counters(r->count),
                     .mean = jot_where(is_small, mean, zero)};
    jot_value few[] = {key.word[0], key.word[1], zero, zero};
    jot_while_at(are_early, wait, &l, 4, few, NULL, r->name);

    l.mean = jot_where(is_large, mean, num(1e5));
    l.is_huge = both(jot_greater_equal(l.mean, num(HUGE_COUNT)), jot_less(l.mean, num(0x1p62)));
    l.base = jot_where(l.is_huge, jot_floor(l.mean), zero);
    l.b = add(num(0.931), mul(num(2.53), jot_sqrt(l.mean)));
    l.a = add(num(-0.059), mul(num(0.02483), l.b));
    l.c = sub(l.mean, l.base);
    l.inner = add(num(1.1239), over(num(1.1328), sub(l.b, num(3.4))));
    l.limit = sub(num(0.9277), over(num(3.6224), sub(l.b, num(2))));
    jot_value many[] = {key.word[0], key.word[1], jot_neg(one), unless_any(is_large)};
    jot_while_at(is_open, draw_poisson, &l, CARRIES, many, NULL, r->name);
    jot_value k = jot_where(is_large, many[NUMBER], sub(few[2], one));
    *out_base = jot_reshape_dims(jot_where(is_large, l.base, zero), r->dims);
    return jot_reshape_dims(jot_where(jot_equal(mean, zero), zero, k), r->dims);
}

static jot_value poisson(jot_value key, jot_dtype dtype, jot_value mean, const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    const char *name = "jot_random_poisson";
    if (!random_is_integral(name, dtype, &error) ||
        !random_open_floats(&r, name, key, JOT_F32, 1, &mean, dims, &error))
        return error;
    jot_value base, k = poisson_of(&r, &base), whole = jot_convert(base, JOT_I64);
    jot_value sum = add(whole, jot_convert(k, JOT_I64)), ends[2];
    random_ends(dtype, ends);
    sum = jot_clip(sum, ends[0], ends[1]);
    return jot_where(jot_equal(base, num(0)), jot_convert(k, dtype), jot_convert(sum, dtype));
}

jot_value jot_random_poisson_dims(jot_value key, jot_dtype dtype, jot_value mean,
                                  const int64_t *dims)
{
    TRACE_RETURN(poisson(key, dtype, mean, dims));
}

// ---------------------------------------------------------------------------------------
// Binomial

// Carries a key, the numbers of successes with one too many, and the trials up to it.
static jot_value is_within(const jot_value *carry, void *ctx)
{
    return jot_less_equal(carry[3], ((const struct loop *)ctx)->count);
}

static jot_value are_within(const jot_value *carry, void *ctx)
{
    return any(is_within(carry, ctx));
}

static void succeed(jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    struct random_key key = {{carry[0], carry[1]}}, next = random_child(key, 1);
    jot_value u = uniform_of(l, random_child(key, 0), l->count);
    memcpy(carry, next.word, sizeof next.word);
    carry[2] = add(carry[2], jot_convert(is_within(carry, ctx), jot_value_dtype(u)));
    carry[3] = add(carry[3], jot_ceil(over(random_log(u), l->log_miss)));
}

// log k! less its approximation (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
static jot_value stirling_tail(jot_value k)
{
    static const double exact[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                   0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                   0.0118967099458917,  0.010411265261972,  0.00925546218271273,
                                   0.00833056343336287};
    jot_value next = add(k, num(1)), square = mul(next, next);
    jot_value y = sub(num(1.0 / 360), over(num(1.0 / 1260), square));
    y = over(sub(num(1.0 / 12), over(y, square)), next);
    for (int i = 9; i >= 0; i--)
        y = jot_where(jot_less(k, num(i + 1)), num(exact[i]), y);
    return y;
}

// log of the density at k over that at the middle m, of huge n: with M = m + 1 and N = n - m + 1 it is
// d log(N odds / M) - M deviance(d / M) - N deviance(-d / N) + log((1 + d / M)
// (1 - d / N)) / 2, d = k - m, and what Stirling's series has besides.
static jot_value density_of_huge(const struct loop *l, jot_value k)
{
    jot_value d = sub(k, l->middle), m = add(l->middle, one());
    jot_value n = add(sub(l->count, l->middle), one());
    jot_value up = over(d, m), down = jot_neg(over(d, n));
    jot_value density = mul(d, jot_log(over(mul(l->odds, n), m)));
    density = sub(density, mul(m, deviance(up)));
    density = sub(density, mul(n, deviance(down)));
    return add(density, mul(num(0.5), add(jot_log1p(up), jot_log1p(down))));
}

static void draw_binomial(jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    struct candidate x = candidate(l, carry, 0);
    jot_value one = num(1), half = num(0.5), n = l->count, k = x.k;
    jot_value misses = add(sub(n, k), one), most = add(sub(n, l->middle), one);
    jot_value density = add(l->at_middle, mul(add(n, one), random_log(over(most, misses))));
    jot_value ratio = over(mul(l->odds, misses), add(k, one));
    density = add(density, mul(add(k, half), random_log(ratio)));
    double huge = jot_value_dtype(n) == JOT_F64 ? 0x1p46 : HUGE_COUNT;
    density = jot_where(jot_less(n, num(huge)), density, density_of_huge(l, k));
    density = add(density, stirling_tail(l->middle));
    density = add(density, stirling_tail(sub(n, l->middle)));
    density = sub(sub(density, stirling_tail(k)), stirling_tail(sub(n, k)));
    accept(carry, &x, jot_logical_or(jot_less(k, num(0)), jot_greater(k, n)), density);
}

// What rejection needs of n trials with probability p.
static void prepare(struct loop *l, jot_value n, jot_value p)
{
    jot_value one = num(1), miss = sub(one, p), mean = mul(n, p);
    jot_value deviation = jot_sqrt(mul(mean, miss));
    l->count = n;
    l->b = add(num(1.15), mul(num(2.53), deviation));
    l->a = add(add(num(-0.0873), mul(num(0.0248), l->b)), mul(num(0.01), p));
    l->c = add(mean, num(0.5));
    l->limit = sub(num(0.92), over(num(4.2), l->b));
    l->odds = over(p, miss);
    l->inner = mul(add(num(2.83), over(num(5.1), l->b)), deviation);
    l->middle = jot_floor(mul(add(n, one), p));
    jot_value most = mul(l->odds, add(sub(n, l->middle), one));
    l->at_middle = mul(add(l->middle, num(0.5)), random_log(over(add(l->middle, one), most)));
}

static jot_value binomial_of(const struct random_request *r)
{
    jot_value given = flat(r, 0), p = flat(r, 1), zero = jot_zeros_like(p),
              one = jot_ones_like(p);
    jot_value is_rare = jot_less(p, num(0.5)), q = jot_where(is_rare, p, sub(one, p));
    jot_value is_right =
        jot_logical_and(jot_greater_equal(q, num(0)), jot_greater_equal(given, num(0)));
    jot_value is_drawn = jot_logical_and(is_right, jot_is_finite(given)), n = jot_floor(given);
    jot_value is_large = jot_logical_and(is_drawn, jot_greater(mul(given, q), num(10)));
    jot_value is_small = jot_logical_and(is_drawn, jot_logical_not(is_large));
    struct random_key key = random_key_of(r->key);
    struct loop l = {.counter = random_counters(r->count)};
    l.count = jot_where(is_small, n, num(-1));
    l.log_miss = jot_log1p(jot_neg(jot_where(is_small, q, num(0.5))));
    jot_value few[] = {key.word[0], key.word[1], zero, zero};
    jot_while_at(are_within, succeed, &l, 4, few, NULL, r->name);

    prepare(&l, jot_where(is_large, n, num(1e4)), jot_where(is_large, q, num(0.5)));
    jot_value many[] = {key.word[0], key.word[1], jot_neg(one), unless_any(is_large)};
    jot_while_at(is_open, draw_binomial, &l, CARRIES, many, NULL, r->name);
    jot_value k = jot_where(is_large, many[NUMBER], sub(few[2], one));
    k = jot_where(is_drawn, jot_where(is_rare, k, sub(n, k)), given);
    return jot_reshape_dims(jot_where(is_right, k, num(NAN)), r->dims);
}

static jot_value binomial(jot_value key, jot_dtype dtype, jot_value n, jot_value p,
                          const int64_t *dims)
{
    struct random_request r;
    jot_value error, params[] = {n, p};
    const char *name = "jot_random_binomial";
    if (!random_open(&r, name, key, dtype, dims, &error) || !random_is_float(&r, &error) ||
        !random_open_floats(&r, name, key, random_dtype_of(p, dtype), 2, params, dims, &error))
        return error;
    return jot_convert(binomial_of(&r), dtype);
}

jot_value jot_random_binomial_dims(jot_value key, jot_dtype dtype, jot_value n, jot_value p,
                                   const int64_t *dims)
{
    TRACE_RETURN(binomial(key, dtype, n, p, dims));
}

// ---------------------------------------------------------------------------------------
// Multinomial: of what is left, the number in each category is binomial.

static void draw_category(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value ratio = jot_clip(row[1], jot_from_int(0), jot_from_int(1));
    out[0] = jot_random_binomial_dims(row[0], jot_value_dtype(carry[0]), carry[0], ratio,
                                      (int64_t[]){JOT_END});
    carry[0] = sub(carry[0], out[0]);
}

static jot_value multinomial(jot_value key, jot_dtype dtype, jot_value n, jot_value p,
                             const int64_t *dims)
{
    struct random_request r, batch;
    jot_value error, counts;
    const char *name = "jot_random_multinomial";
    jot_dtype d = random_dtype_of(p, dtype);
    if (!random_open(&r, name, key, dtype, dims, &error) || !random_is_number(&r, &error) ||
        !random_open_floats(&r, name, key, d, 1, &p, dims, &error))
        return error;
    if (!r.rank)
        return trace_fail(name, JOT_ERR_SHAPE, "p is %s: it has an axis of categories",
                          trace_type_text(p));
    int64_t kinds = r.dims[r.rank - 1];
    jot_value all = jot_broadcast_to_dims(r.param[0], r.dims);
    r.dims[r.rank - 1] = JOT_END;
    if (!random_open_floats(&batch, name, key, d, 1, &n, r.dims, &error))
        return error;
    jot_value first = jot_broadcast_to_dims(batch.param[0], r.dims);
    const int last[] = {-1, JOT_END};
    jot_value left = jot_flip_axes(jot_cumsum_axes(jot_flip_axes(all, last), last), last);
    left = jot_where(jot_equal(left, num(0)), num(1), left);
    jot_value rows[] = {jot_random_split(r.key, kinds), jot_move_axis(over(all, left), -1, 0)};
    jot_scan_at(draw_category, NULL, 1, &first, 2, rows, 1, &counts, NULL, name);
    return jot_convert(jot_move_axis(counts, 0, -1), dtype);
}

jot_value jot_random_multinomial_dims(jot_value key, jot_dtype dtype, jot_value n, jot_value p,
                                      const int64_t *dims)
{
    TRACE_RETURN(multinomial(key, dtype, n, p, dims));
}
