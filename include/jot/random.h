// SPDX-License-Identifier: Apache-2.0
// Random numbers from explicit keys, bit for bit those of jax.random (threefry2x32, partitionable).
//
// A key is a u32[2].  The same key gives the same numbers, so use each once: split it first.
//
//     jot_value keys = jot_random_split(jot_random_key(0), 2);
//     jot_value x = jot_random_normal(jot_take(keys, 0), JOT_F32, 1000, 100);
#ifndef JOT_RANDOM_H
#define JOT_RANDOM_H

#include "jot/trace.h"

JOT_BEGIN_C

// The key of a seed: its upper and lower 32 bits.
JOT_API jot_value jot_random_key(jot_value seed);
// n new keys: u32[n,2].
JOT_API jot_value jot_random_split(jot_value key, int64_t n);
// A new key from a key and an integer.
JOT_API jot_value jot_random_fold_in(jot_value key, jot_value data);

// All bits random: u8, u16, u32 or u64.
JOT_API jot_value jot_random_bits_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// Floats, uniform in [0, 1).
JOT_API jot_value jot_random_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// Floats, uniform in [low, high).
JOT_API jot_value jot_random_uniform_in_dims(jot_value key, jot_dtype dtype, jot_value low,
                                             jot_value high, const int64_t *dims);
// Floats with mean 0 and variance 1: sqrt(2) erf_inv(u).
JOT_API jot_value jot_random_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// true with probability p.
JOT_API jot_value jot_random_bernoulli_dims(jot_value key, double p, const int64_t *dims);
// Floats with density e^-x.
JOT_API jot_value jot_random_exponential_dims(jot_value key, jot_dtype dtype,
                                              const int64_t *dims);

JOT_END_C

#if !defined(JOT_PLAIN)

#define jot_random_key(seed) JOT_OP1_(jot_random_key, #seed, seed)
#define jot_random_split(key, n)                                                               \
    JOT_OP_("jot_random_split(" #key ", " #n ")", jot_random_split(JOT_V(key), (n)))
#define jot_random_fold_in(key, data) JOT_OP2_(jot_random_fold_in, #key ", " #data, key, data)

// name(key, dtype, sizes...); t is the text of the arguments.
#define JOT_RANDOM_(name, t, key, ...)                                                         \
    JOT_OP_("jot_random_" #name "(" t ")",                                                     \
            jot_random_##name##_dims(JOT_V(key), JOT_FIRST_(__VA_ARGS__, 0),                   \
                                     JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_random_bits(key, ...) JOT_RANDOM_(bits, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_uniform(key, ...)                                                           \
    JOT_RANDOM_(uniform, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_normal(key, ...)                                                            \
    JOT_RANDOM_(normal, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_bernoulli(key, ...)                                                         \
    JOT_RANDOM_(bernoulli, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
#define jot_random_exponential(key, ...)                                                       \
    JOT_RANDOM_(exponential, #key ", " #__VA_ARGS__, key, __VA_ARGS__)
// jot_random_uniform_in(key, dtype, low, high, sizes...)
#define jot_random_uniform_in(key, dtype, low, ...)                                            \
    JOT_OP_("jot_random_uniform_in(" #key ", " #dtype ", " #low ", " #__VA_ARGS__ ")",         \
            jot_random_uniform_in_dims(JOT_V(key), (dtype), JOT_V(low),                        \
                                       JOT_V(JOT_FIRST_(__VA_ARGS__, 0)),                      \
                                       JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))

#endif // JOT_PLAIN

#endif
