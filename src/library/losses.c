// SPDX-License-Identifier: Apache-2.0
// Losses of classes and of numbers.
#include "jot/losses.h"
#include "jot/indexing.h"
#include "jot/nn.h"
#include "library/formula.h"

static const int last[] = {-1, JOT_END};

jot_value jot_softmax_cross_entropy(jot_value scores, jot_value labels)
{
    return jot_neg(jot_sum_axes(mul(labels, jot_log_softmax(scores, -1)), last));
}

jot_value jot_softmax_cross_entropy_with_integer_labels(jot_value scores, jot_value labels)
{
    jot_value of_label = jot_take_along_axis(scores, jot_expand_dims_axes(labels, last), -1);
    return sub(jot_logsumexp_axes(scores, last), jot_squeeze_axes(of_label, last));
}

jot_value jot_sigmoid_binary_cross_entropy(jot_value scores, jot_value labels)
{
    jot_value other = sub(num(1), labels);
    return jot_neg(add(mul(labels, jot_log_sigmoid(scores)),
                       mul(other, jot_log_sigmoid(jot_neg(scores)))));
}

jot_value jot_hinge_loss(jot_value scores, jot_value labels)
{
    return jot_relu(sub(num(1), mul(scores, labels)));
}

jot_value jot_kl_divergence(jot_value log_predictions, jot_value targets)
{
    jot_value is_zero = jot_equal(targets, num(0));
    jot_value log = jot_log(jot_where(is_zero, num(1), targets));
    return jot_sum_axes(mul(targets, sub(log, log_predictions)), last);
}

jot_value jot_huber_loss(jot_value x, jot_value y, jot_value delta)
{
    jot_value e = jot_abs(sub(x, y)), near = jot_minimum(e, delta);
    return add(mul(num(0.5), jot_square(near)), mul(delta, sub(e, near)));
}

jot_value jot_l2_loss(jot_value x, jot_value y) { return mul(num(0.5), jot_square(sub(x, y))); }

// The norm along the last axis, at least eps; without a derivative there.
static jot_value norm(jot_value x, jot_value eps)
{
    jot_value square = jot_sum_axes(jot_square(x), last);
    jot_value is_small = jot_less_equal(square, jot_square(eps));
    return jot_where(is_small, eps, jot_sqrt(jot_where(is_small, num(1), square)));
}

jot_value jot_cosine_similarity(jot_value x, jot_value y, jot_value eps)
{
    return over(over(jot_sum_axes(mul(x, y), last), norm(x, eps)), norm(y, eps));
}

jot_value jot_cosine_distance(jot_value x, jot_value y, jot_value eps)
{
    return sub(num(1), jot_cosine_similarity(x, y, eps));
}
