// SPDX-License-Identifier: Apache-2.0
// Losses beside the numbers of Optax, and metrics of samples that are counted by hand.
#include "layers_support.h"

#include <jot/losses.h>

static jot_value softmax_cross_entropy(const jot_value *x)
{
    return jot_softmax_cross_entropy(x[0], jot_softmax(x[1], -1));
}
static jot_value integer_labels(const jot_value *x)
{
    return jot_softmax_cross_entropy_with_integer_labels(
        x[0], jot_reshape(case_integers(6, 4), 2, 3));
}
static jot_value sigmoid(const jot_value *x)
{
    return jot_sigmoid_binary_cross_entropy(jot_mul(8, x[0]), jot_square(x[1]));
}
static jot_value hinge(const jot_value *x)
{
    jot_value sign = jot_where(jot_equal(case_integers(6, 2), 0), 1, -1);
    return jot_hinge_loss(jot_mul(2, x[0]), sign);
}
static jot_value kl(const jot_value *x)
{
    return jot_kl_divergence(jot_log_softmax(x[0], -1), jot_softmax(x[1], -1));
}
static jot_value huber(const jot_value *x)
{
    return jot_huber_loss(jot_mul(2, x[0]), x[1], 0.7);
}
static jot_value l2(const jot_value *x) { return jot_l2_loss(x[0], x[1]); }
static jot_value cosine(const jot_value *x) { return jot_cosine_distance(x[0], x[1], 1e-3); }
// Two readings of 7 and 5 frames, of 3 and 2 labels.
static jot_value ctc(const jot_value *x)
{
    jot_value lengths = jot_arange(JOT_I32, 2), labels = jot_add(case_integers(8, 3), 1);
    return jot_ctc_loss(x[0], jot_reshape(labels, 2, 4), jot_sub(7, jot_mul(2, lengths)),
                        jot_sub(3, lengths), 0);
}
static jot_value ctc_repeated(const jot_value *x)
{
    jot_value labels = jot_reshape(jot_stack(0, 2, 2, 1), 1, 3);
    return jot_ctc_loss(x[0], labels, 6, 3, 3);
}

static const struct layer_case cases[] = {
    {"softmax_cross_entropy", softmax_cross_entropy, {{3, 4}, {3, 4}}},
    {"integer_labels", integer_labels, {{2, 3, 4}}},
    {"sigmoid", sigmoid, {{7}, {7}}},
    {"hinge", hinge, {{6}}},
    {"kl", kl, {{3, 4}, {3, 4}}},
    {"huber", huber, {{9}, {9}}},
    {"l2", l2, {{5}, {5}}},
    {"cosine", cosine, {{2, 3}, {2, 3}}},
    {"ctc", ctc, {{2, 7, 4}}},
    {"ctc_repeated", ctc_repeated, {{1, 6, 4}}},
};

START_TEST(test_f32) { case_check(&cases[_i], JOT_F32); }
END_TEST

START_TEST(test_f64) { case_check(&cases[_i], JOT_F64); }
END_TEST

START_TEST(test_lanes) { case_check_lanes(&cases[_i]); }
END_TEST

START_TEST(test_edges)
{
    jot_scope *scope = jot_scope_open();
    jot_value half = jot_full(JOT_F64, 0.5, 2), zero = jot_zeros(JOT_F64, 2);
    // A target of 0 adds nothing.
    jot_value target = jot_stack(0, jot_ones(JOT_F64), jot_zeros(JOT_F64));
    check_item(jot_kl_divergence(jot_log(half), target), log(2), 1e-15);
    // What has no direction is as far from all, and its gradient is finite.
    jot_value x = jot_variable(zero), y = jot_cosine_distance(x, half, 1e-8);
    check_item(y, 1, 0);
    check_between(jot_sum(jot_gradient(y, x)), -DBL_MAX, DBL_MAX);
    // A label that is no class.
    check_item(jot_softmax_cross_entropy_with_integer_labels(half, 2), NAN, 0);
    jot_scope_close(scope);
}
END_TEST

// All readings of 4 frames, 3^4, one by one.
START_TEST(test_ctc_is_the_sum_over_all_readings)
{
    enum { FRAMES = 4, CLASSES = 3, READINGS = 81 };
    const int wanted[2] = {1, 1};
    double sum = 0, p[FRAMES][CLASSES];
    for (int t = 0; t < FRAMES; t++) {
        double all = 0;
        for (int k = 0; k < CLASSES; k++)
            all += p[t][k] = exp(case_number(3, t * CLASSES + k));
        for (int k = 0; k < CLASSES; k++)
            p[t][k] /= all;
    }
    for (int r = 0; r < READINGS; r++) {
        int before = 0, n = 0, is_right = 1;
        double product = 1;
        for (int t = 0, rest = r; t < FRAMES; t++, rest /= CLASSES) {
            int k = rest % CLASSES;
            product *= p[t][k];
            if (k && k != before)
                is_right = is_right && n < 2 && k == wanted[n], n++;
            before = k;
        }
        sum += is_right && n == 2 ? product : 0;
    }
    jot_scope *scope = jot_scope_open();
    jot_array *each = jot_array_from(&p[0][0], FRAMES, CLASSES);
    jot_value scores = jot_log(each);
    jot_value labels = jot_stack(0, 1, 1, -1);
    check_item(jot_ctc_loss(scores, labels, 4, 2, 0), -log(sum), 1e-13);
    jot_scope_close(scope);
    jot_array_release(each);
}
END_TEST

// Too few frames: two equal labels need a blank between them.
START_TEST(test_ctc_without_a_reading)
{
    jot_scope *scope = jot_scope_open();
    jot_value scores = jot_variable(jot_zeros(JOT_F32, 5, 3)), labels = jot_stack(0, 1, 1);
    jot_value y = jot_ctc_loss(scores, labels, 2, 2, 0);
    check_item(y, INFINITY, 0);
    check_item(jot_sum(jot_abs(jot_gradient(y, scores))), 0, 0);
    // No label: blanks alone.
    check_item(jot_ctc_loss(scores, labels, 2, 0, 0), 2 * log(3), 1e-6);
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_metrics)
{
    const float scores[4][3] = {{0.1f, 0.7f, 0.2f}, {2, 1, 2}, {-1, -3, -2}, {0, 1, 5}};
    const int32_t labels[] = {1, 2, 1, 2}, taken[] = {1, 0, 0, 2};
    const double matrix[] = {0, 0, 0, 1, 1, 0, 1, 0, 1}, precision[] = {0, 1, 1},
                 recall[] = {0, 0.5, 0.5}, f1[] = {0, 2.0 / 3, 2.0 / 3};
    jot_array *s = jot_array_from(&scores[0][0], 4, 3), *y = jot_array_from(labels, 4),
              *t = jot_array_from(taken, 4), *out;
    jot_scope *scope = jot_scope_open();
    check_item(jot_accuracy(s, y), 0.5, 0);
    check_item(jot_top_k_accuracy(s, y, 1), 0.5, 0);
    check_item(jot_top_k_accuracy(s, y, 2), 0.75, 0);
    check_item(jot_top_k_accuracy(s, y, 3), 1, 0);
    // Labels that are no class are never right, and counted nowhere.
    jot_value no_class = jot_from_array(y), m;
    no_class = jot_concatenate(0, jot_slice(no_class, 0, 0, 3), jot_stack(0, -1));
    check_item(jot_top_k_accuracy(s, no_class, 3), 0.75, 0);
    check_item(jot_sum(jot_confusion_matrix(t, no_class, 3)), 3, 0);
    check_item(jot_sum(jot_confusion_matrix(t, jot_add(t, 2), 3)), 2, 0);
    m = jot_confusion_matrix(t, y, 3);
    jot_class_scores c = jot_scores_of_confusion(m);
    must(jot_eval(m, &out));
    check_numbers(out, 9, matrix, 0), jot_array_release(out);
    must(jot_eval(c.precision, &out));
    check_numbers(out, 3, precision, 1e-7), jot_array_release(out);
    must(jot_eval(c.recall, &out));
    check_numbers(out, 3, recall, 1e-7), jot_array_release(out);
    must(jot_eval(c.f1, &out));
    check_numbers(out, 3, f1, 1e-7), jot_array_release(out);
    jot_scope_close(scope);
    jot_array_release(s), jot_array_release(y), jot_array_release(t);
}
END_TEST

START_TEST(test_mistakes_are_told)
{
    jot_scope *scope = jot_scope_open();
    jot_value x = jot_ones(JOT_F32, 5, 3), one = jot_ones(JOT_I32);
    check_told(jot_ctc_loss(x, one, 5, 1, 0), "labels [..., n]");
    check_told(jot_ctc_loss(x, jot_stack(0, 1, 2), 5, 1, 3), "blank is 3 of 3 classes");
    check_told(jot_top_k_accuracy(x, jot_zeros(JOT_I32, 5), 0), "k is 0");
    check_told(jot_confusion_matrix(one, one, -1), "n is -1");
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_f32, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_f64, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_lanes, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, test_edges);
    tcase_add_test(t, test_ctc_is_the_sum_over_all_readings);
    tcase_add_test(t, test_ctc_without_a_reading);
    tcase_add_test(t, test_metrics);
    tcase_add_test(t, test_mistakes_are_told);
}

int main(void) { return run_suite("library/losses", add); }
