// SPDX-License-Identifier: Apache-2.0
// Initialisers: random numbers whose variance the shape says.
#include "jot/random.h"
#include "library/formula.h"
#include "library/layer.h"

#include <math.h>

enum fan { FAN_IN, FAN_MEAN };

// The standard deviation of a normal number that lies between -2 and 2.
static const double TRUNCATED = 0.87962566103423978;

// scale / fan; 0 of a shape without two axes or without elements.
static double variance(double scale, enum fan fan, const int64_t *dims)
{
    double all = 1;
    int rank = 0;
    for (; dims && dims[rank] != JOT_END; rank++)
        all *= (double)dims[rank];
    if (rank < 2 || !(all > 0))
        return 0;
    double in = all / (double)dims[rank - 1], out = all / (double)dims[rank - 2];
    return scale / (fan == FAN_IN ? in : (in + out) / 2);
}

static bool has_two_axes(const int64_t *dims)
{
    return dims && dims[0] != JOT_END && dims[1] != JOT_END;
}

static jot_value no_two_axes(const char *name)
{
    return jot_error(JOT_ERR_SHAPE, name, "needs two axes or more");
}

static jot_value uniform(const char *name, jot_value key, jot_dtype dtype, const int64_t *dims,
                         double scale, enum fan fan)
{
    if (!has_two_axes(dims))
        return no_two_axes(name);
    jot_value u = jot_random_uniform_in_dims(key, dtype, num(-1), num(1), dims);
    return mul(u, num(sqrt(3 * variance(scale, fan, dims))));
}

static jot_value normal(const char *name, jot_value key, jot_dtype dtype, const int64_t *dims,
                        double scale, enum fan fan)
{
    if (!has_two_axes(dims))
        return no_two_axes(name);
    jot_value x = jot_truncated_normal_dims(key, dtype, dims);
    return mul(x, num(sqrt(variance(scale, fan, dims)) / TRUNCATED));
}

jot_value jot_lecun_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return uniform("jot_lecun_uniform", key, dtype, dims, 1, FAN_IN);
}

jot_value jot_lecun_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return normal("jot_lecun_normal", key, dtype, dims, 1, FAN_IN);
}

jot_value jot_he_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return uniform("jot_he_uniform", key, dtype, dims, 2, FAN_IN);
}

jot_value jot_he_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return normal("jot_he_normal", key, dtype, dims, 2, FAN_IN);
}

jot_value jot_glorot_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return uniform("jot_glorot_uniform", key, dtype, dims, 1, FAN_MEAN);
}

jot_value jot_glorot_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return normal("jot_glorot_normal", key, dtype, dims, 1, FAN_MEAN);
}

jot_value jot_truncated_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    return jot_random_truncated_normal_dims(key, dtype, num(-2), num(2), dims);
}

jot_value jot_orthogonal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    if (!has_two_axes(dims))
        return no_two_axes("jot_orthogonal");
    const int64_t none[] = {JOT_END};
    int64_t rows = 1, columns = dims[0];
    for (int i = 0; dims[i + 1] != JOT_END; i++) {
        if (dims[i] < 0 || (dims[i] && rows > INT32_MAX / dims[i]))
            return jot_error(JOT_ERR_SHAPE, "jot_orthogonal", "the matrix is too large");
        rows *= dims[i];
        columns = dims[i + 1];
    }
    return jot_reshape_dims(jot_random_orthogonal_dims(key, dtype, rows, columns, none), dims);
}
