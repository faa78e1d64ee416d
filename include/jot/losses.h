// SPDX-License-Identifier: Apache-2.0
// Losses, with the names and formulas of Optax, and metrics.
//
//     loss = jot_mean(jot_softmax_cross_entropy_with_integer_labels(scores(p, x), y));
//
// A loss is a number for each sample, and no mean of them.  Scores are along the last axis,
// labels and targets broadcast as operands do, and integers are converted where a formula has
// numbers.  A mistake is an error of the operation that meets it (JOT_ERR_SHAPE,
// JOT_ERR_DTYPE).
#ifndef JOT_LOSSES_H
#define JOT_LOSSES_H

#include "jot/struct.h"

JOT_BEGIN_C

// ---- classes ----

// -sum_k labels_k log softmax(scores)_k, of probabilities.
JOT_API jot_value jot_softmax_cross_entropy(jot_value scores, jot_value labels);
// -log softmax(scores)_label, of an integer for each sample; negative ones count from the end,
// and where it is no class it is NaN.
JOT_API jot_value jot_softmax_cross_entropy_with_integer_labels(jot_value scores,
                                                                jot_value labels);
// -label log(p) - (1 - label) log(1 - p) of p = logistic(score), element by element.
JOT_API jot_value jot_sigmoid_binary_cross_entropy(jot_value scores, jot_value labels);
// max(0, 1 - label score) of labels -1 and 1, element by element.
JOT_API jot_value jot_hinge_loss(jot_value scores, jot_value labels);
// sum_k target_k (log target_k - log_prediction_k), with 0 log 0 = 0.
JOT_API jot_value jot_kl_divergence(jot_value log_predictions, jot_value targets);

// ---- numbers ----

// e^2 / 2 of e = |x - y| where that is at most delta, and delta (e - delta / 2) beyond.
// Huber, 1964.
JOT_API jot_value jot_huber_loss(jot_value x, jot_value y, jot_value delta);
// (x - y)^2 / 2.
JOT_API jot_value jot_l2_loss(jot_value x, jot_value y);
// The sum of x y along the last axis, over the norms of both, each at least eps; and 1 minus
// that.
JOT_API jot_value jot_cosine_similarity(jot_value x, jot_value y, jot_value eps);
JOT_API jot_value jot_cosine_distance(jot_value x, jot_value y, jot_value eps);

// ---- sequences ----

// -log of the probability that scores[..., t, classes], of which the first `frames` count, are
// read as the first `count` of labels[..., n]: that a class drawn from each frame by the
// softmax, with repetitions made one and then blanks left out, gives them.  frames and count
// are integers for each sequence.  Infinity, with no derivative, where there are too few
// frames.  By the sum over the prefixes, frame by frame (Graves and others, 2006).
JOT_API jot_value jot_ctc_loss_at(jot_value scores, jot_value labels, jot_value frames,
                                  jot_value count, int64_t blank, const char *where);

// ---- metrics ----

// The share, an f32, of the samples whose label is the class of the largest score, and whose
// label is among the k largest; of equal scores the first counts as the larger one.  k > 0.
JOT_API jot_value jot_accuracy(jot_value scores, jot_value labels);
JOT_API jot_value jot_top_k_accuracy(jot_value scores, jot_value labels, int64_t k);
// How many samples with the label i were taken for j: i32[n, n] at [i, j].  Others are left
// out.  n > 0.
JOT_API jot_value jot_confusion_matrix(jot_value predicted, jot_value labels, int64_t n);

// Of each class, f32[n]: the share of those that were taken for it and are of it, the share of
// those of it that were taken for it, and 2 precision recall / (precision + recall).  0 where
// there are none.
JOT_STRUCT_TYPE(jot_class_scores, precision, recall, f1);
JOT_API jot_class_scores jot_scores_of_confusion_at(jot_value matrix, const char *where);

JOT_END_C

#if !defined(JOT_PLAIN)
// clang-format off
#define jot_softmax_cross_entropy(scores, labels) JOT_OP2_(jot_softmax_cross_entropy, #scores ", " #labels, scores, labels)
#define jot_softmax_cross_entropy_with_integer_labels(scores, labels) JOT_OP2_(jot_softmax_cross_entropy_with_integer_labels, #scores ", " #labels, scores, labels)
#define jot_sigmoid_binary_cross_entropy(scores, labels) JOT_OP2_(jot_sigmoid_binary_cross_entropy, #scores ", " #labels, scores, labels)
#define jot_hinge_loss(scores, labels) JOT_OP2_(jot_hinge_loss, #scores ", " #labels, scores, labels)
#define jot_kl_divergence(log_predictions, targets) JOT_OP2_(jot_kl_divergence, #log_predictions ", " #targets, log_predictions, targets)
#define jot_huber_loss(x, y, delta) JOT_OP3_(jot_huber_loss, #x ", " #y ", " #delta, x, y, delta)
#define jot_l2_loss(x, y) JOT_OP2_(jot_l2_loss, #x ", " #y, x, y)
#define jot_cosine_similarity(x, y, eps) JOT_OP3_(jot_cosine_similarity, #x ", " #y ", " #eps, x, y, eps)
#define jot_cosine_distance(x, y, eps) JOT_OP3_(jot_cosine_distance, #x ", " #y ", " #eps, x, y, eps)
#define jot_ctc_loss(scores, labels, frames, count, blank)                                     \
    jot_ctc_loss_at(JOT_VALUE_("jot_ctc_loss", scores), JOT_VALUE_("jot_ctc_loss", labels), JOT_VALUE_("jot_ctc_loss", frames), JOT_VALUE_("jot_ctc_loss", count), blank, \
                    JOT_HERE ": jot_ctc_loss(" #scores ", " #labels ", " #frames ", " #count ", " #blank ")")
#define jot_accuracy(scores, labels) JOT_OP2_(jot_accuracy, #scores ", " #labels, scores, labels)
#define jot_top_k_accuracy(scores, labels, k)                                                  \
    JOT_OP_("jot_top_k_accuracy(" #scores ", " #labels ", " #k ")", jot_top_k_accuracy(JOT_VALUE_("jot_top_k_accuracy", scores), JOT_VALUE_("jot_top_k_accuracy", labels), k))
#define jot_confusion_matrix(predicted, labels, n)                                             \
    JOT_OP_("jot_confusion_matrix(" #predicted ", " #labels ", " #n ")", jot_confusion_matrix(JOT_VALUE_("jot_confusion_matrix", predicted), JOT_VALUE_("jot_confusion_matrix", labels), n))
#define jot_scores_of_confusion(matrix)                                                        \
    jot_scores_of_confusion_at(JOT_VALUE_("jot_scores_of_confusion", matrix), JOT_HERE ": jot_scores_of_confusion(" #matrix ")")
// clang-format on
#endif // JOT_PLAIN

#endif
