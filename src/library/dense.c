// SPDX-License-Identifier: Apache-2.0
// Dense layers, lists of them, tables of rows, and dropout.
#include "jot/random.h"
#include "library/formula.h"
#include "library/layer.h"

#include <stdio.h>

static jot_dense dense(struct layer *l, jot_value key, int64_t in, int64_t out)
{
    const int64_t w[] = {in, out, JOT_END}, b[] = {out, JOT_END};
    library_size(l, "in", in);
    library_size(l, "out", out);
    return (jot_dense){.w = library_weights(l, key, w), .b = library_bias(l, b)};
}

jot_dense jot_dense_init_with(jot_value key, int64_t in, int64_t out,
                              const jot_layer_options *options, const char *where)
{
    struct layer l = library_layer("jot_dense_init", where, options, TAKES_W | TAKES_BIAS,
                                   jot_lecun_normal_dims);
    return dense(&l, key, in, out);
}

jot_value jot_dense_apply(jot_dense p, jot_value x)
{
    return library_add_bias(jot_dot(x, p.w), p.b);
}

enum { MOST_LAYERS = 65536 };

// What is wrong with n layers, in text; false where nothing is.
static bool refuses_layers(size_t n, const jot_dense *layers, char *text, size_t size)
{
    bool is_wrong = !layers || n > MOST_LAYERS;
    if (!layers)
        snprintf(text, size, "layers is NULL");
    else if (is_wrong)
        snprintf(text, size, "%zu layers: at most %d", n, MOST_LAYERS);
    return is_wrong;
}

void jot_mlp_init_list(jot_value key, size_t n, jot_dense *layers, const int64_t *sizes,
                       const jot_layer_options *options, const char *where)
{
    struct layer l = library_layer("jot_mlp_init", where, options, TAKES_W | TAKES_BIAS,
                                   jot_lecun_normal_dims);
    char text[80];
    if (refuses_layers(n, layers, text, sizeof text)) {
        library_refuse(&l, JOT_ERR_ARGUMENT, text);
        return;
    }
    size_t count = 0;
    while (sizes && sizes[count] != JOT_END)
        count++;
    snprintf(text, sizeof text, "%zu sizes for %zu layers: one more than layers", count, n);
    if (count != n + 1)
        library_refuse(&l, JOT_ERR_ARGUMENT, text);
    jot_value keys = l.is_wrong ? l.error : jot_random_split(key, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        layers[i] = l.is_wrong
                        ? (jot_dense){l.error, l.error}
                        : dense(&l, jot_take_axis(keys, (int64_t)i, 0), sizes[i], sizes[i + 1]);
}

jot_value jot_mlp_apply_list(size_t n, const jot_dense *layers, jot_value x,
                             jot_value (*activation)(jot_value))
{
    char text[80] = "activation is NULL";
    if (refuses_layers(n, layers, text, sizeof text) || !activation)
        return jot_error(JOT_ERR_ARGUMENT, "jot_mlp_apply", text);
    for (size_t i = 0; i < n; i++)
        x = jot_dense_apply(layers[i], i ? activation(x) : x);
    return x;
}

jot_embedding jot_embedding_init_with(jot_value key, int64_t n, int64_t size,
                                      const jot_layer_options *options, const char *where)
{
    struct layer l =
        library_layer("jot_embedding_init", where, options, TAKES_W, jot_random_normal_dims);
    const int64_t w[] = {n, size, JOT_END};
    library_size(&l, "n", n);
    library_size(&l, "size", size);
    return (jot_embedding){library_weights(&l, key, w)};
}

jot_value jot_embedding_apply(jot_embedding p, jot_value index)
{
    return jot_take_values(p.w, index, 0);
}

jot_value jot_embedding_scores(jot_embedding p, jot_value x)
{
    return jot_dot(x, jot_swap_axes(p.w, 0, 1));
}

jot_value jot_dropout(jot_value key, jot_value x, jot_value rate)
{
    int64_t dims[LIBRARY_MOST_AXES + 1];
    library_dims(x, dims);
    jot_value keep = sub(num(1), jot_convert(rate, jot_value_dtype(library_wide(x))));
    jot_value is_kept = jot_random_bernoulli_dims(key, jot_convert(keep, JOT_F32), dims);
    return jot_where(is_kept, over(x, jot_convert(keep, jot_value_dtype(x))), num(0));
}
