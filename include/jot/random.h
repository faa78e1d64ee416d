// SPDX-License-Identifier: Apache-2.0
// Random numbers from explicit keys: those of jax.random (threefry2x32, partitionable) for the same
// key.  Bits, integers and uniform numbers are the same bit for bit, the others but for roundings of
// elementary functions.  Where JAX's numbers do not have their distribution these do: the comments of
// uniform_in, truncated_normal, rayleigh, wald, f, t, generalized_normal, poisson and binomial
// say where.
//
// A key is a u32[2] (what jax.random.key_data gives).  The same key gives the same numbers, so use
// each once: split it first.
//
//     jot_value keys = jot_random_split(jot_random_key(0), 2);
//     jot_value x = jot_random_normal(jot_take(keys, 0), JOT_F32, 1000, 100);
//     jot_value g = jot_random_gamma(jot_take(keys, 1), JOT_F32, shape, 1000);
//
// The sizes of the result stand at the end.  Parameters are C numbers or values, are converted to the
// dtype asked for, and broadcast to the sizes; without sizes the result has the shape that they
// broadcast to.  Outside of its range a parameter gives what the formula does, as in JAX, most often
// NaN.  Numbers of lanes under jot_vmap are those of a loop over their keys.  Results have derivatives
// in the parameters unless they are integers.
//
// Errors: a key that is no u32[2] (JOT_ERR_ARGUMENT), a dtype that the distribution does not have
// (JOT_ERR_DTYPE), parameters that do not broadcast to the sizes (JOT_ERR_SHAPE).
#ifndef JOT_RANDOM_H
#define JOT_RANDOM_H

#include "jot/trace.h"

JOT_BEGIN_C

// ---- Keys ----

// The key of a seed: its upper and lower 32 bits.
JOT_API jot_value jot_random_key(jot_value seed);
// n new keys: u32[n,2].
JOT_API jot_value jot_random_split(jot_value key, int64_t n);
// A new key from a key and an integer.
JOT_API jot_value jot_random_fold_in(jot_value key, jot_value data);

// ---- Bits and integers ----

// All bits random: u8, u16, u32 or u64.
JOT_API jot_value jot_random_bits_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// Integers, evenly in [low, high), of any integer dtype; low where high <= low.  The bounds are
// integers; they are clipped to the dtype, and a high beyond it makes its last number possible.
JOT_API jot_value jot_random_randint_dims(jot_value key, jot_dtype dtype, jot_value low,
                                          jot_value high, const int64_t *dims);
// true with probability p; its floats are of the dtype of p, f32 of a C number.
JOT_API jot_value jot_random_bernoulli_dims(jot_value key, jot_value p, const int64_t *dims);

// How many random bits a number takes.  LOW: as many as a uniform float has, so that what is less
// likely than its epsilon comes too rarely or never; HIGH: twice as many; HIGHEST: of gumbel in f32
// all that the type has a use for, else as HIGH.
enum jot_random_mode { JOT_RANDOM_LOW, JOT_RANDOM_HIGH, JOT_RANDOM_HIGHEST };
// With JOT_RANDOM_HIGH also for small p; HIGHEST is JOT_ERR_ARGUMENT.
JOT_API jot_value jot_random_bernoulli_mode_dims(jot_value key, jot_value p,
                                                 enum jot_random_mode mode,
                                                 const int64_t *dims);
// -1 or 1, each with probability 1/2, of any integer or floating dtype.
JOT_API jot_value jot_random_rademacher_dims(jot_value key, jot_dtype dtype,
                                             const int64_t *dims);
// Trials up to the first success, 1, 2, ..., with probability p each: integers.
JOT_API jot_value jot_random_geometric_dims(jot_value key, jot_dtype dtype, jot_value p,
                                            const int64_t *dims);

// ---- Floats without parameters ----

// Uniform in [0, 1), and in [low, high): also where rounding would give high, and where high - low is no
// number of the type.
JOT_API jot_value jot_random_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
JOT_API jot_value jot_random_uniform_in_dims(jot_value key, jot_dtype dtype, jot_value low,
                                             jot_value high, const int64_t *dims);
// Mean 0 and variance 1: sqrt(2) erf_inv(u).  Of c64 and c128 both parts have variance 1/2.
JOT_API jot_value jot_random_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// Density e^-x for x > 0.
JOT_API jot_value jot_random_exponential_dims(jot_value key, jot_dtype dtype,
                                              const int64_t *dims);
// Distribution function e^(-e^-x).
JOT_API jot_value jot_random_gumbel_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// With JOT_RANDOM_HIGH and _HIGHEST also far above 0: in f32 those of jot_random_gumbel end at 16.6.
JOT_API jot_value jot_random_gumbel_mode_dims(jot_value key, jot_dtype dtype,
                                              enum jot_random_mode mode, const int64_t *dims);
// Density e^-|x| / 2.
JOT_API jot_value jot_random_laplace_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// Distribution function 1 / (1 + e^-x).
JOT_API jot_value jot_random_logistic_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// Density 1 / (pi (1 + x^2)).
JOT_API jot_value jot_random_cauchy_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// The length of three normal numbers: density sqrt(2/pi) x^2 e^(-x^2/2).
JOT_API jot_value jot_random_maxwell_dims(jot_value key, jot_dtype dtype, const int64_t *dims);

// ---- Floats with parameters ----

// A normal number between lower and upper, neither included.  Of an interval whose probability
// is so little that JAX has few numbers in it, below 2^-11 in f32, 2^-31 in f64 and 1/2 in the
// half types, by the inverse of the logarithm of the tail.
JOT_API jot_value jot_random_truncated_normal_dims(jot_value key, jot_dtype dtype,
                                                   jot_value lower, jot_value upper,
                                                   const int64_t *dims);
// e^(sigma x) of normal x.
JOT_API jot_value jot_random_lognormal_dims(jot_value key, jot_dtype dtype, jot_value sigma,
                                            const int64_t *dims);
// Density x / scale^2 e^(-x^2 / (2 scale^2)); never infinite, as JAX's are once in 2^23 (f32)
// or 2^7 (bf16).
JOT_API jot_value jot_random_rayleigh_dims(jot_value key, jot_dtype dtype, jot_value scale,
                                           const int64_t *dims);
// Distribution function 1 - e^(-(x / scale)^concentration).
JOT_API jot_value jot_random_weibull_min_dims(jot_value key, jot_dtype dtype, jot_value scale,
                                              jot_value concentration, const int64_t *dims);
// Distribution function 1 - x^-b for x >= 1.
JOT_API jot_value jot_random_pareto_dims(jot_value key, jot_dtype dtype, jot_value b,
                                         const int64_t *dims);
// loc + scale x of x that are jot_random_maxwell with a random sign.
JOT_API jot_value jot_random_double_sided_maxwell_dims(jot_value key, jot_dtype dtype,
                                                       jot_value loc, jot_value scale,
                                                       const int64_t *dims);
// Density that rises in a line from left to mode and falls to right, of numbers of any size: JAX's
// multiplies two of them.
JOT_API jot_value jot_random_triangular_dims(jot_value key, jot_dtype dtype, jot_value left,
                                             jot_value mode, jot_value right,
                                             const int64_t *dims);
// The inverse Gaussian distribution of this mean and scale 1: density
// sqrt(1 / (2 pi x^3)) e^(-(x - mean)^2 / (2 mean^2 x)).  Without the difference that makes
// JAX's negative for large means.  Of an infinite mean x is 1/v^2 of a normal number v.
JOT_API jot_value jot_random_wald_dims(jot_value key, jot_dtype dtype, jot_value mean,
                                       const int64_t *dims);

// ---- Gamma numbers and what is made of them ----

// By rejection, with a key for each number (Marsaglia and Tsang 2000); derivatives in the parameters
// are those of the inverse distribution function at the number.

// Density x^(a-1) e^-x / Gamma(a), and the logarithm of such a number, which has no underflow for
// small a.  0 and -infinity at a = 0.
JOT_API jot_value jot_random_gamma_dims(jot_value key, jot_dtype dtype, jot_value a,
                                        const int64_t *dims);
JOT_API jot_value jot_random_loggamma_dims(jot_value key, jot_dtype dtype, jot_value a,
                                           const int64_t *dims);
// Density proportional to x^(a-1) (1-x)^(b-1).
JOT_API jot_value jot_random_beta_dims(jot_value key, jot_dtype dtype, jot_value a, jot_value b,
                                       const int64_t *dims);
// The sum of df squares of normal numbers; the ratio of the means of two such sums; a normal number
// over the root of such a mean (Student's t).  The last two by logarithms where such a sum is
// too small for the type.
JOT_API jot_value jot_random_chisquare_dims(jot_value key, jot_dtype dtype, jot_value df,
                                            const int64_t *dims);
JOT_API jot_value jot_random_f_dims(jot_value key, jot_dtype dtype, jot_value numerator,
                                    jot_value denominator, const int64_t *dims);
JOT_API jot_value jot_random_t_dims(jot_value key, jot_dtype dtype, jot_value df,
                                    const int64_t *dims);
// Density proportional to e^(-|x|^p).  Where |x|^p is too small for the type, as often for
// large p, from its logarithm.  Of p infinity even on [-1, 1], where JAX has NaN.
JOT_API jot_value jot_random_generalized_normal_dims(jot_value key, jot_dtype dtype,
                                                     jot_value p, const int64_t *dims);
// Points, evenly in the unit ball of the norm p of d axes, which are the last of the result.
JOT_API jot_value jot_random_ball_dims(jot_value key, jot_dtype dtype, int64_t d, jot_value p,
                                       const int64_t *dims);

// Probabilities along the last axis, density proportional to the product of x_i^(alpha_i - 1).  The
// sizes are those before that axis.
JOT_API jot_value jot_random_dirichlet_dims(jot_value key, jot_dtype dtype, jot_value alpha,
                                            const int64_t *dims);

// ---- Vectors and matrices ----

// mean + r z of normal z, where r r^H is the covariance: mean[..., n], cov[..., n, n].  The sizes are
// those before the axis of n.  r is the factor of jot_cholesky (NaN where cov is not positive definite),
// or v diag(sqrt(w)) of jot_eigh or jot_svd, which take a singular cov.  Of c64 and c128, too.
enum jot_random_root { JOT_RANDOM_CHOLESKY, JOT_RANDOM_EIGH, JOT_RANDOM_SVD };
JOT_API jot_value jot_random_multivariate_normal_dims(jot_value key, jot_dtype dtype,
                                                      jot_value mean, jot_value cov,
                                                      const int64_t *dims);
JOT_API jot_value jot_random_multivariate_normal_root_dims(jot_value key, jot_dtype dtype,
                                                           jot_value mean, jot_value cov,
                                                           enum jot_random_root root,
                                                           const int64_t *dims);
// Matrices, n by m, with orthonormal columns (rows where n < m), evenly: q of the decomposition of
// normal numbers, with the signs of the diagonal of r.  The sizes are those before the matrix.
JOT_API jot_value jot_random_orthogonal_dims(jot_value key, jot_dtype dtype, int64_t n,
                                             int64_t m, const int64_t *dims);

// ---- Counts ----

// Events, of which there are `mean` on average: integers.  -1 where the mean is negative, NaN or
// infinite.  From a mean of 2^17 on JAX's density loses digits: at 10^8 its numbers are multiples of 8 with
// 1.5 times the variance.
JOT_API jot_value jot_random_poisson_dims(jot_value key, jot_dtype dtype, jot_value mean,
                                          const int64_t *dims);
// Successes in n trials (rounded down) with probability p each: floats of the dtype, NaN where n or p
// is NaN, n negative or p not in [0, 1], infinity where n is.  Its numbers are made in the floating
// dtype of p, of a C number in f64 if that is the dtype and else in f32.  In f32 JAX's density loses
// digits from n = 2^17 on: 1.4 times the variance at 10^9.
JOT_API jot_value jot_random_binomial_dims(jot_value key, jot_dtype dtype, jot_value n,
                                           jot_value p, const int64_t *dims);
// How many of n trials end in each category of the last axis, where p are the probabilities.  The
// sizes are those of the result, with that axis.
JOT_API jot_value jot_random_multinomial_dims(jot_value key, jot_dtype dtype, jot_value n,
                                              jot_value p, const int64_t *dims);

// ---- Choices ----

// Categories along the axis of the logits, with probabilities proportional to e^logit: i32.  The sizes
// end with those of the logits without the axis.  Without replacement the k draws that the other
// sizes make are different; k above the number of categories is JOT_ERR_ARGUMENT.
JOT_API jot_value jot_random_categorical_dims(jot_value key, jot_value logits, int axis,
                                              bool replace, const int64_t *dims);
// The same by Gumbel numbers of this mode.
JOT_API jot_value jot_random_categorical_mode_dims(jot_value key, jot_value logits, int axis,
                                                   bool replace, enum jot_random_mode mode,
                                                   const int64_t *dims);
// The slices of x along the axis in a random order, or, independently, the elements of each line; of
// a C number n the integers 0, ..., n - 1.
JOT_API jot_value jot_random_permutation_axis(jot_value key, jot_value x, int axis,
                                              bool independent);
// Slices of x along the axis, which the sizes take the place of; of a C number n integers below it.
// With probabilities proportional to p, one for each slice.  Without replacement they are different;
// more than there are is JOT_ERR_ARGUMENT.
JOT_API jot_value jot_random_choice_dims(jot_value key, jot_value x, int axis, bool replace,
                                         const int64_t *dims);
JOT_API jot_value jot_random_choice_weighted_dims(jot_value key, jot_value x, jot_value p,
                                                  int axis, bool replace, const int64_t *dims);

JOT_END_C

#if !defined(JOT_PLAIN)

#define jot_random_key(seed) JOT_OP1_(jot_random_key, #seed, seed)
#define jot_random_split(key, n)                                                               \
    JOT_OP_("jot_random_split(" #key ", " #n ")",                                              \
            jot_random_split(JOT_VALUE_("jot_random_split", key), n))
#define jot_random_fold_in(key, data) JOT_OP2_(jot_random_fold_in, #key ", " #data, key, data)

// name(key, dtype, parameters..., sizes...) by the number of parameters; t is the text of the
// arguments.  One more than there are is handed to the lists, to have no empty ones.
#define JOT_RANDOM0_(name, t, key, ...)                                                        \
    (JOT_TAKES_("jot_random_" #name " takes (key, dtype, sizes...)", 1, 127, __VA_ARGS__),     \
     JOT_OP_("jot_random_" #name "(" t ")",                                                    \
             jot_random_##name##_dims(JOT_VALUE_("jot_random_" #name, key),                    \
                                      JOT_FIRST_(__VA_ARGS__, 0),                              \
                                      JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END)))))
#define JOT_RANDOM1_(name, t, key, ...)                                                        \
    (JOT_TAKES_("jot_random_" #name " takes (key, dtype, parameter, sizes...)", 2, 127,        \
                __VA_ARGS__),                                                                  \
     JOT_OP_("jot_random_" #name "(" t ")",                                                    \
             jot_random_##name##_dims(                                                         \
                 JOT_VALUE_("jot_random_" #name, key), JOT_FIRST_(__VA_ARGS__, 0),             \
                 JOT_VALUE_("jot_random_" #name, JOT_SECOND_(__VA_ARGS__, 0, 0)),              \
                 JOT_DIMS_(JOT_REST2_(__VA_ARGS__, JOT_END, 0)))))
#define JOT_RANDOM2_(name, t, key, ...)                                                        \
    (JOT_TAKES_("jot_random_" #name " takes (key, dtype, two parameters, sizes...)", 3, 127,   \
                __VA_ARGS__),                                                                  \
     JOT_OP_("jot_random_" #name "(" t ")",                                                    \
             jot_random_##name##_dims(                                                         \
                 JOT_VALUE_("jot_random_" #name, key), JOT_FIRST_(__VA_ARGS__, 0),             \
                 JOT_VALUE_("jot_random_" #name, JOT_SECOND_(__VA_ARGS__, 0, 0)),              \
                 JOT_VALUE_("jot_random_" #name, JOT_THIRD_(__VA_ARGS__, 0, 0, 0)),            \
                 JOT_DIMS_(JOT_REST3_(__VA_ARGS__, JOT_END, 0, 0)))))
#define JOT_RANDOM3_(name, t, key, ...)                                                        \
    (JOT_TAKES_("jot_random_" #name " takes (key, dtype, three parameters, sizes...)", 4, 127, \
                __VA_ARGS__),                                                                  \
     JOT_OP_("jot_random_" #name "(" t ")",                                                    \
             jot_random_##name##_dims(                                                         \
                 JOT_VALUE_("jot_random_" #name, key), JOT_FIRST_(__VA_ARGS__, 0),             \
                 JOT_VALUE_("jot_random_" #name, JOT_SECOND_(__VA_ARGS__, 0, 0)),              \
                 JOT_VALUE_("jot_random_" #name, JOT_THIRD_(__VA_ARGS__, 0, 0, 0)),            \
                 JOT_VALUE_("jot_random_" #name, JOT_FOURTH_(__VA_ARGS__, 0, 0, 0, 0)),        \
                 JOT_DIMS_(JOT_REST4_(__VA_ARGS__, JOT_END, 0, 0, 0)))))

#define jot_random_bits(key, ...) JOT_RANDOM0_(bits, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_rademacher(key, ...)                                                        \
    JOT_RANDOM0_(rademacher, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_uniform(key, ...)                                                           \
    JOT_RANDOM0_(uniform, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_normal(key, ...)                                                            \
    JOT_RANDOM0_(normal, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_exponential(key, ...)                                                       \
    JOT_RANDOM0_(exponential, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_gumbel(key, ...)                                                            \
    JOT_RANDOM0_(gumbel, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_laplace(key, ...)                                                           \
    JOT_RANDOM0_(laplace, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_logistic(key, ...)                                                          \
    JOT_RANDOM0_(logistic, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_cauchy(key, ...)                                                            \
    JOT_RANDOM0_(cauchy, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_maxwell(key, ...)                                                           \
    JOT_RANDOM0_(maxwell, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_geometric(key, ...)                                                         \
    JOT_RANDOM1_(geometric, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_lognormal(key, ...)                                                         \
    JOT_RANDOM1_(lognormal, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_rayleigh(key, ...)                                                          \
    JOT_RANDOM1_(rayleigh, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_pareto(key, ...)                                                            \
    JOT_RANDOM1_(pareto, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_wald(key, ...) JOT_RANDOM1_(wald, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_randint(key, ...)                                                           \
    JOT_RANDOM2_(randint, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_uniform_in(key, ...)                                                        \
    JOT_RANDOM2_(uniform_in, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_truncated_normal(key, ...)                                                  \
    JOT_RANDOM2_(truncated_normal, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_weibull_min(key, ...)                                                       \
    JOT_RANDOM2_(weibull_min, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_double_sided_maxwell(key, ...)                                              \
    JOT_RANDOM2_(double_sided_maxwell, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_triangular(key, ...)                                                        \
    JOT_RANDOM3_(triangular, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_gamma(key, ...) JOT_RANDOM1_(gamma, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_loggamma(key, ...)                                                          \
    JOT_RANDOM1_(loggamma, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_chisquare(key, ...)                                                         \
    JOT_RANDOM1_(chisquare, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_t(key, ...) JOT_RANDOM1_(t, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_generalized_normal(key, ...)                                                \
    JOT_RANDOM1_(generalized_normal, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_poisson(key, ...)                                                           \
    JOT_RANDOM1_(poisson, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_beta(key, ...) JOT_RANDOM2_(beta, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_f(key, ...) JOT_RANDOM2_(f, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_binomial(key, ...)                                                          \
    JOT_RANDOM2_(binomial, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_dirichlet(key, ...)                                                         \
    JOT_RANDOM1_(dirichlet, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_multinomial(key, ...)                                                       \
    JOT_RANDOM2_(multinomial, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
// jot_random_permutation(key, x, axis, independent)
#define jot_random_permutation(key, x, axis, independent)                                      \
    JOT_OP_("jot_random_permutation(" #key ", " #x ", " #axis ", " #independent ")",           \
            jot_random_permutation_axis(JOT_VALUE_("jot_random_permutation", key),             \
                                        JOT_VALUE_("jot_random_permutation", x), axis,         \
                                        JOT_TRUTH_("jot_random_permutation", independent)))
// The last two after the axis are whether there is replacement, and the sizes.
#define jot_random_categorical(key, logits, axis, ...)                                         \
    JOT_OP_("jot_random_categorical(" #key ", " #logits ", " #axis ", " #__VA_ARGS__ ")",      \
            jot_random_categorical_dims(                                                       \
                JOT_VALUE_("jot_random_categorical", key),                                     \
                JOT_VALUE_("jot_random_categorical", logits), axis,                            \
                JOT_TRUTH_("jot_random_categorical", JOT_FIRST_(__VA_ARGS__, 0)),              \
                JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_choice(key, x, axis, ...)                                                   \
    JOT_OP_("jot_random_choice(" #key ", " #x ", " #axis ", " #__VA_ARGS__ ")",                \
            jot_random_choice_dims(                                                            \
                JOT_VALUE_("jot_random_choice", key), JOT_VALUE_("jot_random_choice", x),      \
                axis, JOT_TRUTH_("jot_random_choice", JOT_FIRST_(__VA_ARGS__, 0)),             \
                JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_choice_weighted(key, x, p, axis, ...)                                       \
    JOT_OP_("jot_random_choice_weighted(" #key ", " #x ", " #p ", " #axis ", " #__VA_ARGS__    \
            ")",                                                                               \
            jot_random_choice_weighted_dims(                                                   \
                JOT_VALUE_("jot_random_choice_weighted", key),                                 \
                JOT_VALUE_("jot_random_choice_weighted", x),                                   \
                JOT_VALUE_("jot_random_choice_weighted", p), axis,                             \
                JOT_TRUTH_("jot_random_choice_weighted", JOT_FIRST_(__VA_ARGS__, 0)),          \
                JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
// The last before the sizes is the mode.
#define jot_random_categorical_mode(key, logits, axis, replace, ...)                           \
    JOT_OP_("jot_random_categorical_mode(" #key ", " #logits ", " #axis ", " #replace          \
            ", " #__VA_ARGS__ ")",                                                             \
            jot_random_categorical_mode_dims(                                                  \
                JOT_VALUE_("jot_random_categorical_mode", key),                                \
                JOT_VALUE_("jot_random_categorical_mode", logits), axis,                       \
                JOT_TRUTH_("jot_random_categorical_mode", replace),                            \
                JOT_FIRST_(__VA_ARGS__, 0), JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_gumbel_mode(key, dtype, ...)                                                \
    JOT_OP_("jot_random_gumbel_mode(" #key ", " #dtype ", " #__VA_ARGS__ ")",                  \
            jot_random_gumbel_mode_dims(JOT_VALUE_("jot_random_gumbel_mode", key), dtype,      \
                                        JOT_FIRST_(__VA_ARGS__, 0),                            \
                                        JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_bernoulli_mode(key, p, ...)                                                 \
    JOT_OP_("jot_random_bernoulli_mode(" #key ", " #p ", " #__VA_ARGS__ ")",                   \
            jot_random_bernoulli_mode_dims(JOT_VALUE_("jot_random_bernoulli_mode", key),       \
                                           JOT_VALUE_("jot_random_bernoulli_mode", p),         \
                                           JOT_FIRST_(__VA_ARGS__, 0),                         \
                                           JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_multivariate_normal(key, ...)                                               \
    JOT_RANDOM2_(multivariate_normal, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_multivariate_normal_root(key, dtype, mean, cov, ...)                        \
    JOT_OP_("jot_random_multivariate_normal_root(" #key ", " #dtype ", " #mean ", " #cov       \
            ", " #__VA_ARGS__ ")",                                                             \
            jot_random_multivariate_normal_root_dims(                                          \
                JOT_VALUE_("jot_random_multivariate_normal_root", key), dtype,                 \
                JOT_VALUE_("jot_random_multivariate_normal_root", mean),                       \
                JOT_VALUE_("jot_random_multivariate_normal_root", cov),                        \
                JOT_FIRST_(__VA_ARGS__, 0), JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
// jot_random_orthogonal(key, dtype, n, m, sizes...)
#define jot_random_orthogonal(key, dtype, n, ...)                                              \
    JOT_OP_("jot_random_orthogonal(" #key ", " #dtype ", " #n ", " #__VA_ARGS__ ")",           \
            jot_random_orthogonal_dims(JOT_VALUE_("jot_random_orthogonal", key), dtype, n,     \
                                       JOT_FIRST_(__VA_ARGS__, 0),                             \
                                       JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
// jot_random_bernoulli(key, p, sizes...)  jot_random_ball(key, dtype, d, p, sizes...)
#define jot_random_bernoulli(key, ...)                                                         \
    JOT_OP_("jot_random_bernoulli(" #key ", " #__VA_ARGS__ ")",                                \
            jot_random_bernoulli_dims(                                                         \
                JOT_VALUE_("jot_random_bernoulli", key),                                       \
                JOT_VALUE_("jot_random_bernoulli", JOT_FIRST_(__VA_ARGS__, 0)),                \
                JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_ball(key, dtype, d, ...)                                                    \
    JOT_OP_("jot_random_ball(" #key ", " #dtype ", " #d ", " #__VA_ARGS__ ")",                 \
            jot_random_ball_dims(JOT_VALUE_("jot_random_ball", key), dtype, d,                 \
                                 JOT_VALUE_("jot_random_ball", JOT_FIRST_(__VA_ARGS__, 0)),    \
                                 JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))

#endif // JOT_PLAIN

#endif
