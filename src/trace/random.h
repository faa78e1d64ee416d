// SPDX-License-Identifier: Apache-2.0
// What the families of random numbers share: requests, words of the generator, and functions whose
// roundings are those of XLA.
//
// Functions here run inside a guard.
#ifndef TRACE_RANDOM_H
#define TRACE_RANDOM_H

#include "trace/emit.h"

#include "jot/random.h"

#define RANDOM_MAX_PARAMS 3
#define RANDOM_MOST_NUMBERS (INT64_C(1) << 55) // of one call

// What a call asks for, checked.
struct random_request {
    const char *name;
    jot_value key; // imported
    jot_dtype dtype;
    jot_value param[RANDOM_MAX_PARAMS]; // imported
    int rank;
    int64_t dims[IR_MAX_RANK + 1]; // of the result; ends with JOT_END
    int64_t count;
};

// Reads key and sizes; false with an error.
bool random_open(struct random_request *r, const char *name, jot_value key, jot_dtype dtype,
                 const int64_t *dims, jot_value *out_error);
// The same with parameters: they broadcast to the sizes, which without a list are what they
// broadcast to.
bool random_open_params(struct random_request *r, const char *name, jot_value key,
                        jot_dtype dtype, int n, const jot_value *params, const int64_t *dims,
                        jot_value *out_error);
// The same for a floating dtype, which the parameters get.
bool random_open_floats(struct random_request *r, const char *name, jot_value key,
                        jot_dtype dtype, int n, const jot_value *params, const int64_t *dims,
                        jot_value *out_error);
// Fails unless the request is of floats.
bool random_is_float(const struct random_request *r, jot_value *out_error);

// Fails unless the request is of integers or floats.
bool random_is_number(const struct random_request *r, jot_value *out_error);
// Fails unless the dtype is of integers.
bool random_is_integral(const char *name, jot_dtype dtype, jot_value *out_error);
// The lowest and the highest number of an integer dtype that are i64.
void random_ends(jot_dtype dtype, jot_value *out);
// The floating dtype of a probability; of C numbers f64 where that is asked for, else f32 as of integers.
jot_dtype random_dtype_of(jot_value p, jot_dtype of_number);

// What draws the numbers of a request for floats.
typedef jot_value random_draw(const struct random_request *r);
jot_value random_drawn(random_draw *draw, const char *name, jot_value key, jot_dtype dtype,
                       int n, const jot_value *params, const int64_t *dims);

// Public functions of the distributions that functions of their names draw, by their parameters.
#define RANDOM_OF0(name)                                                                       \
    jot_value jot_random_##name##_dims(jot_value key, jot_dtype dtype, const int64_t *dims)    \
    {                                                                                          \
        TRACE_RETURN(random_drawn(name, "jot_random_" #name, key, dtype, 0, NULL, dims));      \
    }
#define RANDOM_OF1(name, a)                                                                    \
    jot_value jot_random_##name##_dims(jot_value key, jot_dtype dtype, jot_value a,            \
                                       const int64_t *dims)                                    \
    {                                                                                          \
        TRACE_RETURN(random_drawn(name, "jot_random_" #name, key, dtype, 1, &a, dims));        \
    }
#define RANDOM_OF2(name, a, b)                                                                 \
    jot_value jot_random_##name##_dims(jot_value key, jot_dtype dtype, jot_value a,            \
                                       jot_value b, const int64_t *dims)                       \
    {                                                                                          \
        jot_value p[] = {a, b};                                                                \
        TRACE_RETURN(random_drawn(name, "jot_random_" #name, key, dtype, 2, p, dims));         \
    }

// A key as its two words, which loops carry as scalars.
struct random_key {
    jot_value word[2];
};

struct random_key random_key_of(jot_value key);
// Key i of a split of the key.
struct random_key random_child(struct random_key key, uint32_t i);
// All n keys of a split, with words u32[n].
struct random_key random_children(struct random_key key, int64_t n);
// Key i of a split of a u32[2], as one.
jot_value random_subkey(jot_value key, uint32_t i);
// The counters of n elements: words u32[n], the upper one of rank 0 where it is 0.
struct random_key random_counters(int64_t n);

// The number that the element with this counter has: uniform in [0, 1), normal.
jot_value random_uniform_at(struct random_key key, struct random_key counter, jot_dtype dtype);
jot_value random_normal_at(struct random_key key, struct random_key counter, jot_dtype dtype);
// All numbers of the request: of an unsigned dtype, uniform between two values of the request's
// dtype that broadcast to it, and normal.
jot_value random_bits(const struct random_request *r, jot_value key, jot_dtype dtype);
jot_value random_uniform(const struct random_request *r, jot_value key, jot_value low,
                         jot_value high);
jot_value random_normal(const struct random_request *r, jot_value key);

// Two numbers for each of the request: of an unsigned dtype, and uniform in [0, 1).
void random_two_bits(const struct random_request *r, jot_dtype dtype, jot_value *out);
void random_two_uniform(const struct random_request *r, jot_value *out);
// Fails unless the mode is one of the first n.
bool random_is_mode(const char *name, enum jot_random_mode mode, int n, jot_value *out_error);
// The least normal number of a float type, and the distance of 1 to the next.
double random_tiny(jot_dtype dtype);
double random_epsilon(jot_dtype dtype);

// log(x) for x >= 0, log(1 + x) for x > -1, and the inverse of erf inside (-1, 1), rounded as
// JAX's on the host.  The differences to jot's own are a unit or two in the last place (dozens for
// erf_inv), but where numbers are near 0 they are differences of nearly equal terms, and then these
// would be thousands.  Without derivatives.
jot_value random_log(jot_value x);
jot_value random_log1p(jot_value x);
jot_value random_erf_inv(jot_value x);
// log k!, in f32 with the errors of JAX.
jot_value random_log_factorial(jot_value k);

#endif
