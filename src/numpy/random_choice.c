// SPDX-License-Identifier: Apache-2.0
// Choices among categories and elements, and elements in a random order.
#include "trace/random.h"

#include "jot/ordering.h"

#include <math.h>

// The sizes with `n` more in the place of axis `at` and of `gone` axes there; ends with JOT_END.
static void spliced(const int64_t *dims, int rank, int at, int gone, int n, const int64_t *more,
                    int64_t *out)
{
    memcpy(out, dims, sizeof *out * (size_t)at);
    for (int i = 0; i < n; i++)
        out[at + i] = more[i];
    memcpy(out + at + n, dims + at + gone, sizeof *out * (size_t)(rank - at - gone));
    out[rank - gone + n] = JOT_END;
}

// ---------------------------------------------------------------------------------------
// Categories

struct categories {
    struct random_request r; // sizes of the result
    jot_value logits;
    int axis, rank;
    enum jot_random_mode mode; // of the Gumbel numbers
    int64_t dims[IR_MAX_RANK]; // of the logits
};

// The sizes end with those of the logits without the axis; without a list they are these.
static bool open_categories(struct categories *c, const char *name, jot_value key,
                            jot_value logits, int axis, const int64_t *dims,
                            jot_value *out_error)
{
    int64_t at;
    if (!random_open(&c->r, name, key, JOT_I32, dims, out_error) ||
        !trace_ready(name, 1, &logits, out_error) ||
        !trace_axis(name, logits, axis, &at, out_error))
        return false;
    struct ir_type t = trace_type(logits);
    if (!dtype_is_float(ir_dtype(t))) {
        *out_error = trace_fail(name, JOT_ERR_DTYPE, "the logits are %s, not floats",
                                trace_type_text(logits));
        return false;
    }
    c->logits = logits;
    c->axis = (int)at;
    c->rank = t.rank;
    memcpy(c->dims, ir_dims(trace_top()->module, t), sizeof *c->dims * t.rank);
    int64_t batch[IR_MAX_RANK + 1];
    spliced(c->dims, c->rank, c->axis, 1, 0, NULL, batch);
    struct random_request *r = &c->r;
    if (!r->rank) {
        r->rank = c->rank - 1;
        memcpy(r->dims, batch, sizeof batch);
    }
    int more = r->rank - (c->rank - 1);
    if (more >= 0 && !memcmp(r->dims + more, batch, sizeof *batch * (size_t)(c->rank - 1)))
        return true;
    struct ir_module *m = trace_top()->module;
    *out_error =
        trace_fail(name, JOT_ERR_SHAPE, "%s does not end with the sizes of %s without axis %d",
                   ir_type_text(m, ir_type_make(m, JOT_I32, r->rank, r->dims)),
                   trace_type_text(logits), c->axis);
    return false;
}

static jot_value gumbel(const struct categories *c, const int64_t *dims)
{
    return jot_random_gumbel_mode_dims(c->r.key, jot_value_dtype(c->logits), c->mode, dims);
}

// The greatest of logit + Gumbel number, whose probability is that of the category.
static jot_value with_replacement(const struct categories *c)
{
    int more = c->r.rank - (c->rank - 1);
    int64_t dims[IR_MAX_RANK + 2];
    if (more + c->rank > IR_MAX_RANK)
        return trace_fail(c->r.name, JOT_ERR_SHAPE, "more than %d axes", IR_MAX_RANK);
    memcpy(dims, c->r.dims, sizeof *dims * (size_t)more);
    memcpy(dims + more, c->dims, sizeof *dims * (size_t)c->rank);
    dims[more + c->rank] = JOT_END;
    jot_value noisy = jot_add(gumbel(c, dims), c->logits);
    return jot_argmax_axes(noisy, (int[]){more + c->axis, JOT_END});
}

// The k greatest.
static jot_value without_replacement(const struct categories *c)
{
    int more = c->r.rank - (c->rank - 1);
    int64_t dims[IR_MAX_RANK + 1], k = 1, n = c->dims[c->axis];
    for (int i = 0; i < more; i++)
        k *= c->r.dims[i];
    if (k > n)
        return trace_fail(c->r.name, JOT_ERR_ARGUMENT,
                          "%lld draws of %lld categories without replacement", (long long)k,
                          (long long)n);
    memcpy(dims, c->dims, sizeof *dims * (size_t)c->rank);
    dims[c->rank] = JOT_END;
    jot_value noisy = jot_add(gumbel(c, dims), c->logits), indices;
    jot_top_k(jot_move_axis(noisy, c->axis, -1), k, &indices);
    return jot_reshape_dims(jot_move_axis(indices, -1, 0), c->r.dims);
}

static jot_value categorical(const char *name, jot_value key, jot_value logits, int axis,
                             bool replace, enum jot_random_mode mode, const int64_t *dims)
{
    struct categories c = {.mode = mode};
    jot_value error;
    if (!random_is_mode(name, mode, JOT_RANDOM_HIGHEST + 1, &error) ||
        !open_categories(&c, name, key, logits, axis, dims, &error))
        return error;
    return replace ? with_replacement(&c) : without_replacement(&c);
}

jot_value jot_random_categorical_dims(jot_value key, jot_value logits, int axis, bool replace,
                                      const int64_t *dims)
{
    TRACE_RETURN(categorical("jot_random_categorical", key, logits, axis, replace,
                             JOT_RANDOM_LOW, dims));
}

jot_value jot_random_categorical_mode_dims(jot_value key, jot_value logits, int axis,
                                           bool replace, enum jot_random_mode mode,
                                           const int64_t *dims)
{
    TRACE_RETURN(
        categorical("jot_random_categorical_mode", key, logits, axis, replace, mode, dims));
}

// ---------------------------------------------------------------------------------------
// Orders

// Sorting by random keys; ties would favour orders, so there are as many rounds as make them rare.
static jot_value shuffled(jot_value key, jot_value x, int axis)
{
    int64_t size = jot_value_size(x), dims[IR_MAX_RANK + 1];
    int rank = jot_value_rank(x),
        rounds = (int)ceil(3 * log(size > 1 ? (double)size : 1) / log(UINT32_MAX));
    for (int i = 0; i < rank; i++)
        dims[i] = jot_value_dim(x, i);
    dims[rank] = JOT_END;
    for (int i = 0; i < rounds; i++) {
        jot_value pair[] = {jot_random_bits_dims(random_subkey(key, 1), JOT_U32, dims), x};
        jot_sort_by_key_into(axis, 1, 2, pair);
        key = random_subkey(key, 0);
        x = pair[1];
    }
    return x;
}

// What x chooses from: n elements along an axis, or 0, ..., n - 1 for a C number n.
struct population {
    struct random_request r;
    jot_value x;
    int64_t axis, n;
    bool is_number;
};

static bool open_population(struct population *p, const char *name, jot_value key, jot_value x,
                            int axis, const int64_t *dims, jot_value *out_error)
{
    if (!random_open(&p->r, name, key, JOT_I32, dims, out_error) ||
        !trace_ready(name, 1, &x, out_error))
        return false;
    const struct trace_number *number = trace_number_of(x);
    p->is_number = number && number->kind == 'i' && number->i >= 0;
    if (p->is_number)
        x = jot_arange(trace_index_dtype(number->i), number->i);
    p->x = x;
    if (!trace_type(x).rank) {
        *out_error =
            trace_fail(name, JOT_ERR_ARGUMENT,
                       "x is %s, neither an array with axes nor a number of C from 0 on",
                       trace_type_text(x));
        return false;
    }
    if (!trace_axis(name, x, axis, &p->axis, out_error))
        return false;
    p->n = jot_value_dim(x, (int)p->axis);
    return true;
}

static jot_value permuted(const struct population *p, bool independent)
{
    if (independent || jot_value_rank(p->x) == 1)
        return shuffled(p->r.key, p->x, (int)p->axis);
    jot_value order = jot_arange(trace_index_dtype(p->n), p->n);
    return jot_take_values(p->x, shuffled(p->r.key, order, 0), (int)p->axis);
}

static jot_value permutation(jot_value key, jot_value x, int axis, bool independent)
{
    struct population p;
    jot_value error;
    if (!open_population(&p, "jot_random_permutation", key, x, axis, NULL, &error))
        return error;
    return permuted(&p, independent);
}

jot_value jot_random_permutation_axis(jot_value key, jot_value x, int axis, bool independent)
{
    TRACE_RETURN(permutation(key, x, axis, independent));
}

// ---------------------------------------------------------------------------------------
// Choices

static bool can_choose(const struct population *p, bool replace, jot_value *out_error)
{
    if (p->r.count == 0 || (p->n > 0 && (replace || p->r.count <= p->n)))
        return true;
    *out_error =
        p->n == 0 ? trace_fail(p->r.name, JOT_ERR_ARGUMENT, "there is nothing to choose from")
                  : trace_fail(p->r.name, JOT_ERR_ARGUMENT,
                               "%lld draws of %lld elements without replacement",
                               (long long)p->r.count, (long long)p->n);
    return false;
}

// The elements at indices with the sizes of the request.
static jot_value elements(const struct population *p, jot_value indices)
{
    indices = jot_reshape_dims(indices, p->r.dims);
    return p->is_number ? indices : jot_take_values(p->x, indices, (int)p->axis);
}

static jot_value choice(jot_value key, jot_value x, int axis, bool replace, const int64_t *dims)
{
    struct population p;
    jot_value error;
    const char *name = "jot_random_choice";
    if (!open_population(&p, name, key, x, axis, dims, &error) ||
        !can_choose(&p, replace, &error))
        return error;
    if (replace) {
        jot_value end = jot_from_int(p.n > 0 ? p.n : 1);
        return elements(
            &p, jot_random_randint_dims(p.r.key, JOT_I32, jot_from_int(0), end, p.r.dims));
    }
    int64_t old[IR_MAX_RANK], sizes[2 * IR_MAX_RANK + 1];
    int rank = jot_value_rank(p.x);
    jot_value first = jot_slice_axis(permuted(&p, false), (int)p.axis, 0, p.r.count, 1);
    for (int i = 0; i < rank; i++)
        old[i] = jot_value_dim(p.x, i);
    spliced(old, rank, (int)p.axis, 1, p.r.rank, p.r.dims, sizes);
    return jot_reshape_dims(first, sizes);
}

jot_value jot_random_choice_dims(jot_value key, jot_value x, int axis, bool replace,
                                 const int64_t *dims)
{
    TRACE_RETURN(choice(key, x, axis, replace, dims));
}

static jot_value choice_weighted(jot_value key, jot_value x, jot_value weights, int axis,
                                 bool replace, const int64_t *dims)
{
    struct population p;
    jot_value error, indices;
    const char *name = "jot_random_choice_weighted";
    if (!open_population(&p, name, key, x, axis, dims, &error) ||
        !can_choose(&p, replace, &error) || !trace_ready(name, 1, &weights, &error))
        return error;
    if (jot_value_rank(weights) != 1 || jot_value_dim(weights, 0) != p.n)
        return trace_fail(name, JOT_ERR_SHAPE,
                          "p is %s, not one axis with a number for each of %lld elements",
                          trace_type_text(weights), (long long)p.n);
    if (dtype_is_complex(jot_value_dtype(weights)))
        return trace_fail(name, JOT_ERR_DTYPE, "p is %s, not real", trace_type_text(weights));
    jot_dtype d = random_dtype_of(weights, JOT_F32);
    weights = jot_convert(weights, d);
    if (replace) {
        jot_value sums = jot_cumsum_axes(weights, (int[]){0, JOT_END});
        jot_value u = jot_random_uniform_dims(p.r.key, d, p.r.dims);
        u = jot_mul(jot_take_axis(sums, -1, 0), jot_sub(jot_from_int(1), u));
        indices = jot_searchsorted(sums, u, JOT_SIDE_LEFT);
    } else {
        jot_value noise = jot_random_gumbel_dims(p.r.key, d, (int64_t[]){p.n, JOT_END});
        jot_top_k(jot_add(noise, jot_log(weights)), p.r.count, &indices);
    }
    return elements(&p, indices);
}

jot_value jot_random_choice_weighted_dims(jot_value key, jot_value x, jot_value p, int axis,
                                          bool replace, const int64_t *dims)
{
    TRACE_RETURN(choice_weighted(key, x, p, axis, replace, dims));
}
