// SPDX-License-Identifier: Apache-2.0
// Attention: heads, rotary positions, and the cache of a sequence that grows.
#include "jot/indexing.h"
#include "jot/random.h"
#include "library/formula.h"
#include "library/layer.h"

#include <math.h>
#include <stdio.h>

static bool is_there(jot_value x) { return x.trace || x.id; }

// Below all scores, and no infinity: a query that sees no key has a softmax as well.
static jot_value lowest(jot_value score)
{
    return num(jot_value_dtype(score) == JOT_F64 ? -1e300 : -0.7 * 3.4028234663852886e38);
}

// Which of s keys t queries see, of which the first is at that position: those up to their
// own.
static jot_value at_most(jot_value first, int64_t t, int64_t s)
{
    const int column[] = {1, JOT_END};
    jot_value query = jot_expand_dims_axes(add(first, jot_arange(JOT_I32, t)), column);
    return jot_less_equal(jot_arange(JOT_I32, s), query);
}

// Who is told: each takes some of the options.
enum told { FUNCTION, LAYER, STEP };

// The options; false with what is wrong in *error.
static bool read_options(const char *name, enum told told, const jot_attention_options *options,
                         jot_attention_options *o, jot_value *error)
{
    char text[80] = "";
    if (options)
        *o = *options;
    if (!(o->rotary >= 0) || !isfinite(o->rotary))
        snprintf(text, sizeof text, "rotary is %g: the base, above 0", o->rotary);
    else if (!isfinite(o->scale))
        snprintf(text, sizeof text, "scale is %g: a finite number", o->scale);
    else if (told == STEP && (is_there(o->mask) || is_there(o->bias)))
        snprintf(text, sizeof text, "takes no mask and no bias");
    else if (told != LAYER && is_there(o->memory))
        snprintf(text, sizeof text, "takes no memory");
    else if (told == FUNCTION && o->rotary != 0)
        snprintf(text, sizeof text, "takes no rotary: jot_rotary(q, positions, base)");
    if (*text)
        *error = jot_error(JOT_ERR_ARGUMENT, name, text);
    return !*text;
}

// Of options that are read; `seen` is a mask for all heads, or no value.  What causal says is
// there.
static jot_value attend(const char *name, jot_value q, jot_value k, jot_value v, jot_value seen,
                        const jot_attention_options *o)
{
    const jot_value all[] = {q, k, v};
    for (int i = 0; i < 3; i++) {
        if (jot_value_failed(all[i]))
            return all[i];
        if (jot_value_rank(all[i]) < 3)
            return jot_error(JOT_ERR_SHAPE, name, "q, k and v are [..., t, heads, d]");
    }
    int rank = jot_value_rank(q);
    int64_t heads = jot_value_dim(q, -2), kv_heads = jot_value_dim(k, -2),
            d = jot_value_dim(q, -1);
    char text[80];
    snprintf(text, sizeof text, "%lld heads of queries and %lld of keys", (long long)heads,
             (long long)kv_heads);
    if (kv_heads < 1 || heads % kv_heads)
        return jot_error(JOT_ERR_SHAPE, name, text);
    // The queries that share a key are rows of one product.
    int64_t rows[LIBRARY_MOST_AXES + 1], dims[LIBRARY_MOST_AXES + 1];
    jot_value by_head = jot_move_axis(q, -3, -2);
    library_dims(by_head, rows);
    rows[rank - 3] = kv_heads, rows[rank - 2] *= heads / kv_heads;
    jot_value keys = jot_swap_axes(jot_move_axis(k, -3, -2), -2, -1);
    jot_value score = jot_matmul(jot_reshape_dims(by_head, rows), keys);
    library_dims(by_head, dims);
    dims[rank - 1] = jot_value_dim(k, -3);
    score = jot_reshape_dims(score, dims);
    score = mul(library_wide(score), num(o->scale != 0 ? o->scale : 1 / sqrt((double)d)));
    if (is_there(o->bias))
        score = add(score, library_wide(o->bias));
    jot_value low = lowest(score);
    if (is_there(seen))
        score = jot_where(seen, score, low);
    if (is_there(o->mask))
        score = jot_where(o->mask, score, low);
    jot_value weight = jot_convert(jot_softmax(score, -1), jot_value_dtype(v));
    rows[rank - 1] = dims[rank - 1];
    jot_value y = jot_matmul(jot_reshape_dims(weight, rows), jot_move_axis(v, -3, -2));
    dims[rank - 1] = jot_value_dim(v, -1);
    return jot_move_axis(jot_reshape_dims(y, dims), -2, -3);
}

static jot_value seen_of(const jot_attention_options *o, jot_value q, jot_value k)
{
    const jot_value all = {0};
    return o->causal ? at_most(jot_from_int(0), jot_value_dim(q, -3), jot_value_dim(k, -3))
                     : all;
}

jot_value jot_dot_product_attention_with(jot_value q, jot_value k, jot_value v,
                                         const jot_attention_options *options)
{
    const char *name = "jot_dot_product_attention";
    jot_attention_options o = {0};
    jot_value error;
    return read_options(name, FUNCTION, options, &o, &error)
               ? attend(name, q, k, v, seen_of(&o, q, k), &o)
               : error;
}

jot_value jot_rotary(jot_value x, jot_value position, double base)
{
    if (jot_value_failed(x))
        return x;
    int64_t d = jot_value_dim(x, -1), half = d / 2;
    char text[80];
    snprintf(text, sizeof text, "base is %g: above 0, at most 1e30", base);
    if (!(base > 0) || base > 1e30)
        return jot_error(JOT_ERR_ARGUMENT, "jot_rotary", text);
    if (jot_value_rank(x) < 3 || d % 2)
        return jot_error(JOT_ERR_SHAPE, "jot_rotary", "x is [..., t, heads, d] of even d");
    jot_value wide = library_wide(x);
    jot_dtype dtype = jot_value_dtype(wide);
    const int heads_and_d[] = {-2, -1, JOT_END};
    jot_value power = mul(jot_arange(dtype, half), num(-2 / (double)(d ? d : 1)));
    jot_value turn = jot_exp(mul(power, num(log(base))));
    jot_value angle = jot_expand_dims_axes(jot_convert(position, dtype), heads_and_d);
    angle = mul(angle, turn);
    jot_value a = jot_slice_axis(wide, -1, 0, half, 1),
              b = jot_slice_axis(wide, -1, half, d, 1);
    jot_value c = jot_cos(angle), s = jot_sin(angle);
    const jot_value both[] = {sub(mul(a, c), mul(b, s)), add(mul(a, s), mul(b, c))};
    return jot_convert(jot_concatenate_list(-1, 2, both), jot_value_dtype(x));
}

// A matrix of weights with its axes split.
static jot_value split(struct layer *l, jot_value key, int64_t rows, int64_t columns,
                       const int64_t *dims)
{
    const int64_t matrix[] = {rows, columns, JOT_END};
    return jot_reshape_dims(library_weights(l, key, matrix), dims);
}

jot_attention jot_attention_init_with(jot_value key, int64_t size, int64_t heads,
                                      const jot_layer_options *options, const char *where)
{
    struct layer l = library_layer("jot_attention_init", where, options,
                                   TAKES_W | TAKES_BIAS | TAKES_HEADS, jot_lecun_normal_dims);
    int64_t kv_heads = l.o.kv_heads ? l.o.kv_heads : heads;
    int64_t d = l.o.head_size || heads < 1 ? l.o.head_size : size / heads;
    library_size(&l, "size", size);
    library_size(&l, "heads", heads);
    library_size(&l, "kv_heads", kv_heads);
    library_size(&l, "head_size", d);
    if (!l.is_wrong && heads % kv_heads)
        library_refuse(&l, JOT_ERR_SHAPE, "kv_heads divides heads");
    const int64_t q[] = {size, heads, d, JOT_END}, kv[] = {size, kv_heads, d, JOT_END},
                  o[] = {heads, d, size, JOT_END};
    int64_t all = l.is_wrong ? 1 : heads * d, some = l.is_wrong ? 1 : kv_heads * d;
    jot_value keys = l.is_wrong ? l.error : jot_random_split(key, 4);
    return (jot_attention){.wq = split(&l, jot_take_axis(keys, 0, 0), size, all, q),
                           .wk = split(&l, jot_take_axis(keys, 1, 0), size, some, kv),
                           .wv = split(&l, jot_take_axis(keys, 2, 0), size, some, kv),
                           .wo = split(&l, jot_take_axis(keys, 3, 0), all, size, o),
                           .bq = library_bias(&l, q + 1),
                           .bk = library_bias(&l, kv + 1),
                           .bv = library_bias(&l, kv + 1),
                           .bo = library_bias(&l, o + 2)};
}

static jot_value heads_of(jot_value x, jot_value w, jot_value b)
{
    return library_add_bias(jot_tensordot(x, w, 1), b);
}

jot_value jot_attention_apply_with(jot_attention p, jot_value x,
                                   const jot_attention_options *options)
{
    const char *name = "jot_attention_apply";
    jot_attention_options o = {0};
    jot_value error;
    if (!read_options(name, LAYER, options, &o, &error))
        return error;
    jot_value y = is_there(o.memory) ? o.memory : x;
    jot_value q = heads_of(x, p.wq, p.bq), k = heads_of(y, p.wk, p.bk),
              v = heads_of(y, p.wv, p.bv);
    if (o.rotary != 0) {
        q = jot_rotary(q, jot_arange(JOT_I32, jot_value_dim(q, -3)), o.rotary);
        k = jot_rotary(k, jot_arange(JOT_I32, jot_value_dim(k, -3)), o.rotary);
    }
    return library_add_bias(
        jot_tensordot(attend(name, q, k, v, seen_of(&o, q, k), &o), p.wo, 2), p.bo);
}

jot_kv_cache jot_kv_cache_init_dims(jot_attention p, int64_t most, const int64_t *dims,
                                    const char *where)
{
    const jot_layer_options of_p = {.dtype = jot_value_dtype(p.wk)};
    struct layer l = library_layer("jot_kv_cache_init", where, &of_p, 0, NULL);
    int64_t all[LIBRARY_MOST_AXES + 1];
    int n = 0;
    library_size(&l, "most", most);
    for (; dims && dims[n] != JOT_END && n < LIBRARY_MOST_AXES - 3; n++)
        all[n] = dims[n];
    all[n] = most;
    all[n + 1] = jot_value_dim(p.wk, 1);
    all[n + 2] = jot_value_dim(p.wk, 2);
    all[n + 3] = JOT_END;
    if (dims && dims[n] != JOT_END)
        library_refuse(&l, JOT_ERR_SHAPE, "too many axes");
    else if (jot_value_rank(p.wk) != 3)
        library_refuse(&l, JOT_ERR_SHAPE, "wk is [size, kv_heads, d]");
    jot_value zeros = library_filled(&l, 0, all);
    jot_value length =
        l.is_wrong ? l.error : jot_zeros_dims(JOT_I32, (const int64_t[]){JOT_END});
    return (jot_kv_cache){.k = zeros, .v = zeros, .length = length};
}

// all with the rows x[..., t, heads, d] from the position on.
static jot_value written(jot_value all, jot_value x, jot_value position)
{
    jot_value starts[LIBRARY_MOST_AXES];
    int rank = jot_value_rank(all);
    for (int i = 0; i < rank; i++)
        starts[i] = i == rank - 3 ? position : jot_from_int(0);
    x = jot_convert(x, jot_value_dtype(all));
    return jot_dynamic_update_slice(all, x, jot_stack_list(0, (size_t)rank, starts));
}

jot_value jot_attention_step_with(jot_attention p, jot_value x, jot_kv_cache *cache,
                                  const jot_attention_options *options, const char *where)
{
    const char *name = "jot_attention_step";
    jot_attention_options o = {0};
    jot_value y;
    if (!cache)
        y = jot_error(JOT_ERR_ARGUMENT, name, "cache is NULL");
    else if (read_options(name, STEP, options, &o, &y)) {
        jot_value q = heads_of(x, p.wq, p.bq), k = heads_of(x, p.wk, p.bk);
        jot_value v = heads_of(x, p.wv, p.bv), first = cache->length;
        int64_t t = jot_value_dim(x, -2);
        if (o.rotary != 0) {
            jot_value position = add(first, jot_arange(JOT_I32, t));
            q = jot_rotary(q, position, o.rotary);
            k = jot_rotary(k, position, o.rotary);
        }
        cache->k = written(cache->k, k, first);
        cache->v = written(cache->v, v, first);
        cache->length = add(first, jot_from_int(t));
        jot_value seen = at_most(first, t, jot_value_dim(cache->k, -3));
        y = attend(name, q, cache->k, cache->v, seen, &o);
        y = library_add_bias(jot_tensordot(y, p.wo, 2), p.bo);
    }
    jot_place(y, where);
    return y;
}
