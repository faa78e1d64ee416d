// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

// Two convolutions, each with a maximum of squares of 2 by 2, and a layer; images are x[n, row, column].
struct cnn {
    jot_value w1, b1, w2, b2, w3, b3;
};

static jot_value convolved(jot_value x, jot_value w, jot_value b)
{
    x = jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME, .x = "NHWC", .w = "HWIO",
                                 .out = "NHWC");
    return jot_max_pool(jot_relu(jot_add(x, b)), .window = JOT_DIMS(1, 2, 2, 1));
}

static jot_value cnn_loss(struct cnn p, jot_value x, jot_value y)
{
    x = convolved(convolved(x, p.w1, p.b1), p.w2, p.b2);
    x = jot_reshape(x, jot_value_dim(x, 0), -1);
    x = jot_log_softmax(jot_add(jot_dot(x, p.w3), p.b3), -1);
    return jot_neg(jot_mean(jot_sum(jot_mul(x, jot_one_hot(y, 10, JOT_F32)), -1)));
}

struct cnn_state {
    struct cnn p, m, v; // parameters, means of gradients and of their squares
    jot_value t;
};

struct cnn_result {
    struct cnn_state s;
    jot_value loss;
};

// Adam, gradients clipped to the norm 1.
static struct cnn_result cnn_train(struct cnn_state s, jot_value x, jot_value y)
{
    struct cnn_result r;
    struct cnn g = JOT_VALUE_AND_GRAD(&r.loss, cnn_loss, s.p, x, y);
    jot_value squares = jot_zeros(JOT_F32);
    for (size_t i = 0; i < JOT_COUNT(g); i++)
        squares = jot_add(squares, jot_sum(jot_square(JOT_LEAVES(g)[i])));
    jot_value clip = jot_minimum(1, jot_div(1, jot_sqrt(squares)));
    s.t = jot_add(s.t, 1);
    for (size_t i = 0; i < JOT_COUNT(g); i++) {
        jot_value *p = JOT_LEAVES(s.p) + i, *m = JOT_LEAVES(s.m) + i, *v = JOT_LEAVES(s.v) + i;
        jot_value d = jot_mul(JOT_LEAVES(g)[i], clip);
        *m = jot_add(jot_mul(0.9, *m), jot_mul(0.1, d));
        *v = jot_add(jot_mul(0.999, *v), jot_mul(0.001, jot_square(d)));
        jot_value mean = jot_div(*m, jot_sub(1, jot_pow(0.9, s.t)));
        jot_value square = jot_div(*v, jot_sub(1, jot_pow(0.999, s.t)));
        d = jot_div(mean, jot_add(jot_sqrt(square), 1e-8));
        *p = jot_sub(*p, jot_mul(1e-3, d));
    }
    r.s = s;
    return r;
}

JOT_FUNCTION(cnn_train_fn, cnn_train, struct cnn_result, struct cnn_state, jot_value,
             jot_value);

jot_function cnn_train_step(void) { return cnn_train_fn; }
