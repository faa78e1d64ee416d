// SPDX-License-Identifier: Apache-2.0
// Layers of networks, after Equinox and Flax: each is a struct of values, made from a key and
// sizes, and functions that apply it.
//
//     JOT_STRUCT(net, (jot_convolution, c[2]), (jot_normalization, norm), (jot_dense, out));
//
//     struct net p = {.c[0] = jot_convolution_init(key, 1, 16, JOT_DIMS(3, 3)), ...};
//
//     static jot_value scores(struct net p, jot_value x)
//     {
//         x = jot_relu(jot_convolution_apply(p.c[0], x, .padding = JOT_PADDING_SAME));
//         x = jot_max_pool(x, .window = JOT_DIMS(1, 2, 2, 1));
//         x = jot_layer_norm(p.norm, jot_mean(x, 1, 2));
//         return jot_dense_apply(p.out, x);
//     }
//
// Many alike ones are a map over keys, and a scan goes through them:
//     JOT_VMAP ((keys), (blocks)) { blocks = block_init(keys); }
//     JOT_SCAN ((x), (blocks), ()) { x = block_apply(blocks, x); }
//
// A layer holds values alone, so that it is a tree wherever one goes (jot/struct.h).  Sizes
// are those of its values; what these do not say, as strides, is an option where the layer is
// applied.  A part that is left out, as a bias, is a value without elements.  Features are the
// last axis.
//
// Layers are of real floating types, and compute as their operations do: a layer of bf16 on x
// of bf16 stays in bf16, beside f32 it gives f32.  Norms, the weights of attention and what is
// added up over a batch are computed in f32 where x is of a half type, and rounded to it.
//
// Values that fit no layer are errors of the operation that meets them (JOT_ERR_SHAPE,
// JOT_ERR_DTYPE); sizes below 1 or above 2^31 - 1 are JOT_ERR_ARGUMENT.
#ifndef JOT_LAYERS_H
#define JOT_LAYERS_H

#include "jot/struct.h"
#include "jot/windows.h"

// ---- initialisers ----

// Values to begin with, of a shape.  So are jot_random_normal_dims and
// jot_random_uniform_dims.
typedef jot_value jot_initializer(jot_value key, jot_dtype dtype, const int64_t *dims);

JOT_BEGIN_C

// The numbers of jax.nn.initializers for the same key.  The last axis counts the features that
// come out, the one before it those that go in, and others are those of windows:  fan_in is
// the product of all extents but the last, fan_out that of all but the last but one.
// JOT_ERR_SHAPE of fewer than two axes.
//
// lecun: variance 1 / fan_in; he: 2 / fan_in; glorot: 2 / (fan_in + fan_out).  uniform: in
// [-sqrt(3 variance), sqrt(3 variance)); normal: within two standard deviations of the normal
// distribution that has this variance then.  LeCun and others, 1998; He and others, 2015,
// arXiv:1502.01852; Glorot and Bengio, 2010.
JOT_API jot_value jot_lecun_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
JOT_API jot_value jot_lecun_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
JOT_API jot_value jot_he_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
JOT_API jot_value jot_he_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
JOT_API jot_value jot_glorot_uniform_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
JOT_API jot_value jot_glorot_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims);
// The normal distribution of variance 1 between -2 and 2, of any number of axes.
JOT_API jot_value jot_truncated_normal_dims(jot_value key, jot_dtype dtype,
                                            const int64_t *dims);
// A matrix with orthonormal columns (rows, where they are fewer), whose columns are the last
// axis.  Saxe and others, 2013, arXiv:1312.6120.
JOT_API jot_value jot_orthogonal_dims(jot_value key, jot_dtype dtype, const int64_t *dims);

JOT_END_C

// What an _init may be told; each says which it takes, and any other that is set is a mistake.
typedef struct jot_layer_options {
    jot_initializer *w; // of its matrices
    double scale;       // times that; 0: 1
    jot_dtype dtype;    // 0: JOT_F32
    bool no_bias;
    int64_t groups;    // of jot_convolution, described there
    int64_t kv_heads;  // of jot_attention, described there
    int64_t head_size; // the same
    size_t size;       // of this struct, set by the macro; 0 is this version
} jot_layer_options;

// ---- dense layers ----

// w[in, out], b[out].
JOT_STRUCT_TYPE(jot_dense, w, b);

// w[n, size].
JOT_STRUCT_TYPE(jot_embedding, w);

JOT_BEGIN_C

// b is 0.  Options: w lecun_normal, scale, dtype, no_bias.
JOT_API jot_dense jot_dense_init_with(jot_value key, int64_t in, int64_t out,
                                      const jot_layer_options *options, const char *where);
// x[..., in] w + b.
JOT_API jot_value jot_dense_apply(jot_dense p, jot_value x);

// n layers, of which layer i has sizes[i] features in and sizes[i + 1] out; n + 1 sizes, ended
// by JOT_END, or the layers are errors (JOT_ERR_ARGUMENT).  Options: those of jot_dense.
JOT_API void jot_mlp_init_list(jot_value key, size_t n, jot_dense *layers, const int64_t *sizes,
                               const jot_layer_options *options, const char *where);
// The layers, with the activation between them.
JOT_API jot_value jot_mlp_apply_list(size_t n, const jot_dense *layers, jot_value x,
                                     jot_value (*activation)(jot_value));

// Options: w jot_random_normal_dims, scale, dtype.
JOT_API jot_embedding jot_embedding_init_with(jot_value key, int64_t n, int64_t size,
                                              const jot_layer_options *options,
                                              const char *where);
// w[index] of integers: jot_take.
JOT_API jot_value jot_embedding_apply(jot_embedding p, jot_value index);
// x[..., size] w^T: a score for each row, for networks that have one table at both ends.
JOT_API jot_value jot_embedding_scores(jot_embedding p, jot_value x);

JOT_END_C

// ---- convolutions and pooling ----

// w[window..., in / groups, out], b[out].
JOT_STRUCT_TYPE(jot_convolution, w, b);

JOT_BEGIN_C

// A window of 1, 2 or 3 extents.  Of `groups` parts of the features in and out each goes with
// its own.  b is 0.  Options: w lecun_normal, scale, dtype, no_bias, groups.
JOT_API jot_convolution jot_convolution_init_with(jot_value key, int64_t in, int64_t out,
                                                  const int64_t *window,
                                                  const jot_layer_options *options,
                                                  const char *where);
// jot_conv_general_dilated and jot_conv_transpose of x[n, spatial..., in] plus b, with their
// options; also of x[spatial..., in].  Letters and groups are known here, and are mistakes.
//     jot_convolution_apply(p, x, .strides = JOT_DIMS(2, 2), .padding = JOT_PADDING_SAME)
JOT_API jot_value jot_convolution_apply_with(jot_convolution p, jot_value x,
                                             const jot_conv_options *options);
JOT_API jot_value jot_convolution_transpose_apply_with(jot_convolution p, jot_value x,
                                                       const jot_conv_options *options);

// Pooling is jot_max_pool, jot_min_pool and jot_avg_pool of jot/windows.h, with a window for
// each axis of x, and of everything jot_max(x, 1, 2) and jot_mean(x, 1, 2).

JOT_END_C

// ---- norms and dropout ----

// scale[n], bias[n].
JOT_STRUCT_TYPE(jot_normalization, scale, bias);

// What batches had on average: mean[n], var[n].
JOT_STRUCT_TYPE(jot_batch_stats, mean, var);

// What norms may be told.
typedef struct jot_normalization_options {
    double eps;       // 0: 1e-5
    double momentum;  // of jot_batch_norm, described there; 0: 0.99
    const char *axis; // of jot_batch_norm, described there
    size_t size;      // of this struct, set by the macro; 0 is this version
} jot_normalization_options;

JOT_BEGIN_C

// scale 1 and bias 0.  Options: dtype, no_bias.
JOT_API jot_normalization jot_normalization_init_with(int64_t n,
                                                      const jot_layer_options *options,
                                                      const char *where);
// y scale + bias where y is, with the mean and variance of the last axis,
//     (x - mean) / sqrt(var + eps);
// x / sqrt(mean of x^2 + eps) along the last axis;  and of x[m, ..., n] the first again, with
// those of each of m samples and each of so many groups of features, of which groups of one
// are the instance norm.
// Options: eps.  Ba and others, 2016, arXiv:1607.06450; Zhang and Sennrich, 2019,
// arXiv:1910.07467; Wu and He, 2018, arXiv:1803.08494.
JOT_API jot_value jot_layer_norm_with(jot_normalization p, jot_value x,
                                      const jot_normalization_options *options);
JOT_API jot_value jot_rms_norm_with(jot_normalization p, jot_value x,
                                    const jot_normalization_options *options);
JOT_API jot_value jot_group_norm_with(jot_normalization p, jot_value x, int64_t groups,
                                      const jot_normalization_options *options);

// Mean 0 and var 1, of f32 or f64.  Options: dtype.
JOT_API jot_batch_stats jot_batch_stats_init_with(int64_t n, const jot_layer_options *options,
                                                  const char *where);
// y scale + bias where y is (x - mean) / sqrt(var + eps) with those of x[..., n] along all
// axes but the last, and stats <- momentum stats + (1 - momentum) those.  With `axis` also
// along the named axis of a map or a mesh around it (jot/collective.h).  stats goes in and
// out; a gradient of y does not see it.  Options: eps, momentum, axis.  Ioffe and Szegedy,
// 2015, arXiv:1502.03167.
JOT_API jot_value jot_batch_norm_with(jot_normalization p, jot_value x, jot_batch_stats *stats,
                                      const jot_normalization_options *options,
                                      const char *where);
// The same with the mean and var of stats, for after training.  Options: eps.
JOT_API jot_value jot_batch_norm_apply_with(jot_normalization p, jot_value x,
                                            jot_batch_stats stats,
                                            const jot_normalization_options *options);

// x / (1 - rate) where jot_random_bernoulli(key, 1 - rate) of the shape of x holds, and 0
// elsewhere; rate is below 1.  Srivastava and others, 2014.
JOT_API jot_value jot_dropout(jot_value key, jot_value x, jot_value rate);

JOT_END_C

// ---- attention ----

// Of x[..., size]: wq[size, heads, d], wk and wv[size, kv_heads, d], wo[heads, d, size], and
// biases of their last axes, bo of size.
JOT_STRUCT_TYPE(jot_attention, wq, wk, wv, wo, bq, bk, bv, bo);

// The keys and values of what came before: k and v[..., most, kv_heads, d], of which the first
// `length`, an i32, are there.
JOT_STRUCT_TYPE(jot_kv_cache, k, v, length);

// What attention may be told; each function says what it takes.
typedef struct jot_attention_options {
    bool causal;      // query i sees the keys up to i
    double rotary;    // the base of jot_rotary for queries and keys; 0: these do not turn
    double scale;     // of scores; 0: 1 / sqrt(d)
    jot_value mask;   // bools that broadcast to [..., heads, t, s]: which keys a query sees
    jot_value bias;   // added to the scaled scores, to which it broadcasts
    jot_value memory; // of jot_attention_apply: keys and values are made of this, not of x
    size_t size;      // of this struct, set by the macro; 0 is this version
} jot_attention_options;

JOT_BEGIN_C

// sum_j p_ij v_j, where p_i is the softmax along j of scale q_i k_j + bias over the keys that
// i sees: of q[..., t, heads, d], k[..., s, kv_heads, d], v[..., s, kv_heads, e] it is [...,
// t, heads, e].  kv_heads divides heads, and so many queries in a row share a key.  A query
// that sees no key has the mean of v. Options: causal, scale, mask, bias.  Vaswani and others,
// 2017, arXiv:1706.03762; Ainslie and others, 2023, arXiv:2305.13245.
JOT_API jot_value jot_dot_product_attention_with(jot_value q, jot_value k, jot_value v,
                                                 const jot_attention_options *options);

// The halves a, b of the last axis of x[..., t, heads, d] turn by position base^(-2 i / d) at
// element i: a cos - b sin, a sin + b cos.  position is a number for each t.  Su and others,
// 2021, arXiv:2104.09864.
JOT_API jot_value jot_rotary(jot_value x, jot_value position, double base);

// d is head_size, size / heads by default; kv_heads is heads by default.  Biases are 0.
// Options: w lecun_normal, scale, dtype, no_bias, kv_heads, head_size.
JOT_API jot_attention jot_attention_init_with(jot_value key, int64_t size, int64_t heads,
                                              const jot_layer_options *options,
                                              const char *where);
// Each of x[..., t, size] attends to all of them: queries, keys and values are products with
// wq, wk and wv plus biases, and what comes out of the heads goes through wo.  Options: all.
JOT_API jot_value jot_attention_apply_with(jot_attention p, jot_value x,
                                           const jot_attention_options *options);

// Room for `most` positions of the type of p, for x[dims..., t, size].
JOT_API jot_kv_cache jot_kv_cache_init_dims(jot_attention p, int64_t most, const int64_t *dims,
                                            const char *where);
// The next t positions x[..., t, size] of a causal sequence: their keys and values go into the
// cache, and they attend to all that are there.  t is 1 where a sequence grows by itself, and
// more where it is begun.  More than `most` positions overwrite the last ones.  Options:
// rotary, scale.
//     JOT_FOR (i, n, x, cache) { x = next(jot_attention_step(p, x, &cache, .rotary = 1e4)); }
JOT_API jot_value jot_attention_step_with(jot_attention p, jot_value x, jot_kv_cache *cache,
                                          const jot_attention_options *options,
                                          const char *where);

JOT_END_C

// ---- recurrent layers ----

// wx[in, 3 n], wh[n, 3 n], b[3 n], bn[n]: the gates r, z and n side by side.
JOT_STRUCT_TYPE(jot_gru, wx, wh, b, bn);

// wx[in, 4 n], wh[n, 4 n], b[4 n]: the gates i, f, g and o side by side.
JOT_STRUCT_TYPE(jot_lstm, wx, wh, b);

// h[..., n], c[..., n].
JOT_STRUCT_TYPE(jot_lstm_state, h, c);

JOT_BEGIN_C

// wh has orthogonal matrices beside each other; biases are 0.  Options: w (of wx)
// lecun_normal, scale, dtype.
JOT_API jot_gru jot_gru_init_with(jot_value key, int64_t in, int64_t n,
                                  const jot_layer_options *options, const char *where);
JOT_API jot_lstm jot_lstm_init_with(jot_value key, int64_t in, int64_t n,
                                    const jot_layer_options *options, const char *where);

// The state h[..., n] after x[..., in]: with r and z the logistic of x wx + b + h wh and
// m = tanh(x wx + b + r (h wh + bn)), each with its columns, it is (1 - z) m + z h.
// Over a sequence:    JOT_SCAN ((h), (x), (y)) { h = jot_gru_step(p, h, x); y = h; }
// Cho and others, 2014, arXiv:1406.1078.
JOT_API jot_value jot_gru_step(jot_gru p, jot_value h, jot_value x);
// With i, f and o the logistic and g the tanh of x wx + h wh + b, each with its columns: c
// becomes f c + i g and h is o tanh(c).  Hochreiter and Schmidhuber, 1997.
JOT_API jot_lstm_state jot_lstm_step_at(jot_lstm p, jot_lstm_state s, jot_value x,
                                        const char *where);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

#if !defined(JOT_PLAIN)

// clang-format off
// jot_he_normal(key, JOT_F32, 3, 3, 16, 32)
#define JOT_INITIALIZER_(name, key, dtype, ...)                                                \
    JOT_OP_(#name "(" #key ", " #dtype ", " #__VA_ARGS__ ")",                                  \
            name##_dims(JOT_VALUE_(#name, key), dtype, JOT_DIMS_(__VA_ARGS__, JOT_END)))
#define jot_lecun_uniform(key, dtype, ...) JOT_INITIALIZER_(jot_lecun_uniform, key, dtype, __VA_ARGS__)
#define jot_lecun_normal(key, dtype, ...) JOT_INITIALIZER_(jot_lecun_normal, key, dtype, __VA_ARGS__)
#define jot_he_uniform(key, dtype, ...) JOT_INITIALIZER_(jot_he_uniform, key, dtype, __VA_ARGS__)
#define jot_he_normal(key, dtype, ...) JOT_INITIALIZER_(jot_he_normal, key, dtype, __VA_ARGS__)
#define jot_glorot_uniform(key, dtype, ...) JOT_INITIALIZER_(jot_glorot_uniform, key, dtype, __VA_ARGS__)
#define jot_glorot_normal(key, dtype, ...) JOT_INITIALIZER_(jot_glorot_normal, key, dtype, __VA_ARGS__)
#define jot_truncated_normal(key, dtype, ...) JOT_INITIALIZER_(jot_truncated_normal, key, dtype, __VA_ARGS__)
#define jot_orthogonal(key, dtype, ...) JOT_INITIALIZER_(jot_orthogonal, key, dtype, __VA_ARGS__)

#define jot_dense_init(key, in, ...)                                                           \
    jot_dense_init_with(JOT_VALUE_("jot_dense_init", key), in, JOT_AND_OPTIONS_(jot_layer_options, "jot_dense_init", "(key, in, out)", __VA_ARGS__), \
                        JOT_HERE ": jot_dense_init(" #key ", " #in ", " #__VA_ARGS__ ")")
#define jot_embedding_init(key, n, ...)                                                        \
    jot_embedding_init_with(JOT_VALUE_("jot_embedding_init", key), n, JOT_AND_OPTIONS_(jot_layer_options, "jot_embedding_init", "(key, n, size)", __VA_ARGS__), \
                            JOT_HERE ": jot_embedding_init(" #key ", " #n ", " #__VA_ARGS__ ")")
#define jot_convolution_init(key, in, out, ...)                                                       \
    jot_convolution_init_with(JOT_VALUE_("jot_convolution_init", key), in, out, JOT_AND_OPTIONS_(jot_layer_options, "jot_convolution_init", "(key, in, out, JOT_DIMS(...))", __VA_ARGS__), \
                       JOT_HERE ": jot_convolution_init(" #key ", " #in ", " #out ", " #__VA_ARGS__ ")")
#define jot_normalization_init(...)                                                                     \
    jot_normalization_init_with(JOT_AND_OPTIONS_(jot_layer_options, "jot_normalization_init", "(n)", __VA_ARGS__), \
                       JOT_HERE ": jot_normalization_init(" #__VA_ARGS__ ")")
#define jot_batch_stats_init(...)                                                              \
    jot_batch_stats_init_with(JOT_AND_OPTIONS_(jot_layer_options, "jot_batch_stats_init", "(n)", __VA_ARGS__), \
                              JOT_HERE ": jot_batch_stats_init(" #__VA_ARGS__ ")")
// jot_mlp_init(key, p.layers, JOT_DIMS(2, 64, 64, 1))  jot_mlp_apply(p.layers, x, jot_tanh)
#define jot_mlp_init(key, layers, ...)                                                         \
    jot_mlp_init_list(JOT_VALUE_("jot_mlp_init", key), JOT_LAYERS_("jot_mlp_init", layers), JOT_AND_OPTIONS_(jot_layer_options, "jot_mlp_init", "(key, layers, JOT_DIMS(...))", __VA_ARGS__), \
                      JOT_HERE ": jot_mlp_init(" #key ", " #layers ", " #__VA_ARGS__ ")")
#define jot_mlp_apply(layers, x, activation)                                                   \
    JOT_OP_("jot_mlp_apply(" #layers ", " #x ", " #activation ")",                             \
            jot_mlp_apply_list(JOT_LAYERS_("jot_mlp_apply", layers), JOT_VALUE_("jot_mlp_apply", x), activation))
// An array of layers, not a pointer to them.
#if defined(__GNUC__) && !defined(__cplusplus)
#define JOT_LAYERS_(name, layers)                                                              \
    JOT_MUST_(JOT_IS_C_ARRAY_(layers), name " takes an array of layers") + sizeof(layers) / sizeof *(layers), layers
#else
#define JOT_LAYERS_(name, layers) sizeof(layers) / sizeof *(layers), layers
#endif

// The last value of a function, and the options behind it.
#define JOT_VALUE_AND_OPTIONS_(type, f, takes, ...)                                            \
    JOT_VALUE_(#f, JOT_FIRST_(__VA_ARGS__, 0)), JOT_OPTIONS_OF_(type, f, takes, __VA_ARGS__)
#if defined(__cplusplus)
#define JOT_OPTIONS_OF_(...) nullptr
#else
#define JOT_OPTIONS_OF_(type, f, takes, ...)                                                   \
    JOT_OPTIONS_(type, #f " takes " takes ", and named options", JOT_REST_(__VA_ARGS__, .size = sizeof(type)))
#endif
#define jot_convolution_apply(p, ...)                                                                 \
    JOT_OP_("jot_convolution_apply(" #p ", " #__VA_ARGS__ ")", jot_convolution_apply_with(p, JOT_VALUE_AND_OPTIONS_(jot_conv_options, jot_convolution_apply, "(p, x)", __VA_ARGS__)))
#define jot_convolution_transpose_apply(p, ...)                                                       \
    JOT_OP_("jot_convolution_transpose_apply(" #p ", " #__VA_ARGS__ ")", jot_convolution_transpose_apply_with(p, JOT_VALUE_AND_OPTIONS_(jot_conv_options, jot_convolution_transpose_apply, "(p, x)", __VA_ARGS__)))
#define jot_layer_norm(p, ...)                                                                 \
    JOT_OP_("jot_layer_norm(" #p ", " #__VA_ARGS__ ")", jot_layer_norm_with(p, JOT_VALUE_AND_OPTIONS_(jot_normalization_options, jot_layer_norm, "(p, x)", __VA_ARGS__)))
#define jot_rms_norm(p, ...)                                                                   \
    JOT_OP_("jot_rms_norm(" #p ", " #__VA_ARGS__ ")", jot_rms_norm_with(p, JOT_VALUE_AND_OPTIONS_(jot_normalization_options, jot_rms_norm, "(p, x)", __VA_ARGS__)))
#define jot_group_norm(p, x, ...)                                                              \
    JOT_OP_("jot_group_norm(" #p ", " #x ", " #__VA_ARGS__ ")",                                \
            jot_group_norm_with(p, JOT_VALUE_("jot_group_norm", x), JOT_AND_OPTIONS_(jot_normalization_options, "jot_group_norm", "(p, x, groups)", __VA_ARGS__)))
#define jot_batch_norm(p, x, ...)                                                              \
    jot_batch_norm_with(p, JOT_VALUE_("jot_batch_norm", x), JOT_AND_OPTIONS_(jot_normalization_options, "jot_batch_norm", "(p, x, &stats)", __VA_ARGS__), \
                        JOT_HERE ": jot_batch_norm(" #p ", " #x ", " #__VA_ARGS__ ")")
#define jot_batch_norm_apply(p, x, ...)                                                        \
    JOT_OP_("jot_batch_norm_apply(" #p ", " #x ", " #__VA_ARGS__ ")",                          \
            jot_batch_norm_apply_with(p, JOT_VALUE_("jot_batch_norm_apply", x), JOT_AND_OPTIONS_(jot_normalization_options, "jot_batch_norm_apply", "(p, x, stats)", __VA_ARGS__)))
#define jot_dense_apply(p, x) JOT_OP_("jot_dense_apply(" #p ", " #x ")", jot_dense_apply(p, JOT_VALUE_("jot_dense_apply", x)))
#define jot_embedding_apply(p, index) JOT_OP_("jot_embedding_apply(" #p ", " #index ")", jot_embedding_apply(p, JOT_VALUE_("jot_embedding_apply", index)))
#define jot_embedding_scores(p, x) JOT_OP_("jot_embedding_scores(" #p ", " #x ")", jot_embedding_scores(p, JOT_VALUE_("jot_embedding_scores", x)))
#define jot_dropout(key, x, rate) JOT_OP3_(jot_dropout, #key ", " #x ", " #rate, key, x, rate)
#define jot_dot_product_attention(q, k, ...)                                                   \
    JOT_OP_("jot_dot_product_attention(" #q ", " #k ", " #__VA_ARGS__ ")",                     \
            jot_dot_product_attention_with(JOT_VALUE_("jot_dot_product_attention", q), JOT_VALUE_("jot_dot_product_attention", k), JOT_VALUE_AND_OPTIONS_(jot_attention_options, jot_dot_product_attention, "(q, k, v)", __VA_ARGS__)))
#define jot_rotary(x, position, base)                                                          \
    JOT_OP_("jot_rotary(" #x ", " #position ", " #base ")", jot_rotary(JOT_VALUE_("jot_rotary", x), JOT_VALUE_("jot_rotary", position), base))
#define jot_attention_init(key, size, ...)                                                     \
    jot_attention_init_with(JOT_VALUE_("jot_attention_init", key), size, JOT_AND_OPTIONS_(jot_layer_options, "jot_attention_init", "(key, size, heads)", __VA_ARGS__), \
                            JOT_HERE ": jot_attention_init(" #key ", " #size ", " #__VA_ARGS__ ")")
#define jot_attention_apply(p, ...)                                                            \
    JOT_OP_("jot_attention_apply(" #p ", " #__VA_ARGS__ ")",                                   \
            jot_attention_apply_with(p, JOT_VALUE_AND_OPTIONS_(jot_attention_options, jot_attention_apply, "(p, x)", __VA_ARGS__)))
// jot_kv_cache_init(p, 256)  jot_kv_cache_init(p, 256, batch)
#define jot_kv_cache_init(p, ...)                                                              \
    jot_kv_cache_init_dims(p, JOT_FIRST_(__VA_ARGS__, 0), JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END)), \
                           JOT_HERE ": jot_kv_cache_init(" #p ", " #__VA_ARGS__ ")")
#define jot_attention_step(p, x, ...)                                                          \
    jot_attention_step_with(p, JOT_VALUE_("jot_attention_step", x), JOT_AND_OPTIONS_(jot_attention_options, "jot_attention_step", "(p, x, &cache)", __VA_ARGS__), \
                            JOT_HERE ": jot_attention_step(" #p ", " #x ", " #__VA_ARGS__ ")")
#define jot_gru_init(key, in, ...)                                                             \
    jot_gru_init_with(JOT_VALUE_("jot_gru_init", key), in, JOT_AND_OPTIONS_(jot_layer_options, "jot_gru_init", "(key, in, n)", __VA_ARGS__), \
                      JOT_HERE ": jot_gru_init(" #key ", " #in ", " #__VA_ARGS__ ")")
#define jot_lstm_init(key, in, ...)                                                            \
    jot_lstm_init_with(JOT_VALUE_("jot_lstm_init", key), in, JOT_AND_OPTIONS_(jot_layer_options, "jot_lstm_init", "(key, in, n)", __VA_ARGS__), \
                       JOT_HERE ": jot_lstm_init(" #key ", " #in ", " #__VA_ARGS__ ")")
#define jot_gru_step(p, h, x)                                                                  \
    JOT_OP_("jot_gru_step(" #p ", " #h ", " #x ")", jot_gru_step(p, JOT_VALUE_("jot_gru_step", h), JOT_VALUE_("jot_gru_step", x)))
#define jot_lstm_step(p, s, x)                                                                 \
    jot_lstm_step_at(p, s, JOT_VALUE_("jot_lstm_step", x), JOT_HERE ": jot_lstm_step(" #p ", " #s ", " #x ")")
// clang-format on

#endif // JOT_PLAIN

#endif
