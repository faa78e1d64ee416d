// SPDX-License-Identifier: Apache-2.0
// Metrics of classes.
#include "jot/indexing.h"
#include "jot/losses.h"
#include "jot/shapes.h"
#include "library/formula.h"

#include <stdio.h>

static const int last[] = {-1, JOT_END};

// Whether each holds, on average.
static jot_value share(jot_value holds)
{
    return jot_mean_axes(jot_convert(holds, JOT_F32), NULL);
}

jot_value jot_accuracy(jot_value scores, jot_value labels)
{
    return share(jot_equal(jot_argmax_axes(scores, last), labels));
}

jot_value jot_top_k_accuracy(jot_value scores, jot_value labels, int64_t k)
{
    char text[80];
    snprintf(text, sizeof text, "k is %lld: above 0", (long long)k);
    if (k < 1)
        return jot_error(JOT_ERR_ARGUMENT, "jot_top_k_accuracy", text);
    if (jot_value_failed(scores))
        return scores;
    int64_t classes = jot_value_dim(scores, -1);
    jot_value label = jot_expand_dims_axes(labels, last);
    jot_value own = jot_take_along_axis(scores, label, -1);
    jot_value is_before = jot_less(jot_arange(JOT_I32, classes), label);
    jot_value is_larger =
        jot_logical_or(jot_greater(scores, own), both(jot_equal(scores, own), is_before));
    jot_value larger = jot_sum_axes(jot_convert(is_larger, JOT_I32), last);
    jot_value is_class =
        both(jot_less_equal(jot_from_int(0), labels), jot_less(labels, jot_from_int(classes)));
    return share(both(is_class, jot_less(larger, jot_from_int(k))));
}

// Negative integers would count from the end.
static jot_value outside(jot_value index, int64_t n)
{
    return jot_where(jot_less(index, jot_from_int(0)), jot_from_int(n), index);
}

jot_value jot_confusion_matrix(jot_value predicted, jot_value labels, int64_t n)
{
    char text[80];
    snprintf(text, sizeof text, "n is %lld: 1 to 46340", (long long)n);
    if (n < 1 || n > 46340)
        return jot_error(JOT_ERR_ARGUMENT, "jot_confusion_matrix", text);
    const int64_t dims[] = {n, n, JOT_END};
    const jot_value both[] = {outside(labels, n), outside(predicted, n)};
    jot_value points = jot_stack_list(-1, 2, both), zero = jot_zeros_dims(JOT_I32, dims);
    return jot_at_points(JOT_SCATTER_ADD, zero, points, jot_from_int(1));
}

static jot_value quotient(jot_value x, jot_value y)
{
    jot_value is_none = jot_equal(y, num(0));
    return jot_where(is_none, num(0), over(x, jot_where(is_none, num(1), y)));
}

jot_class_scores jot_scores_of_confusion_at(jot_value matrix, const char *where)
{
    const int first[] = {0, JOT_END};
    jot_value counts = jot_convert(matrix, JOT_F32), right = jot_diagonal(counts, 0, 0, 1);
    jot_class_scores s = {.precision = quotient(right, jot_sum_axes(counts, first)),
                          .recall = quotient(right, jot_sum_axes(counts, last))};
    s.f1 = quotient(mul(num(2), mul(s.precision, s.recall)), add(s.precision, s.recall));
    jot_place(s.precision, where), jot_place(s.recall, where), jot_place(s.f1, where);
    return s;
}
