// SPDX-License-Identifier: Apache-2.0
// The connectionist temporal classification of Graves and others, 2006.
//
// The labels with blanks between and around them, 2 n + 1 in all, are what frames read: at
// each frame a reading stays, goes on by one, or by two over a blank between different
// labels.  The logarithms of the probabilities of all readings up to a frame that end at one
// of these are the state of the loop.
#include "jot/control.h"
#include "jot/indexing.h"
#include "jot/losses.h"
#include "library/formula.h"

#include <math.h>
#include <stdio.h>

// No probability: its sums stay finite, so derivatives are no NaN.
static const double NEVER = -1e30;

static const int last[] = {-1, JOT_END};

struct ctc {
    jot_value can_skip; // over the one before it
    jot_value frames;   // with an axis for states
};

// x[..., s - by] at s, and `first` before.
static jot_value shifted(jot_value x, jot_value first, int64_t by)
{
    return jot_slice_axis(jot_pad_axis(x, first, -1, by, 0), -1, 0, jot_value_dim(x, -1), 1);
}

static void step(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    const struct ctc *c = ctx;
    jot_value stays = carry[0], never = num(NEVER);
    jot_value skips = jot_where(c->can_skip, shifted(stays, never, 2), never);
    jot_value next = jot_logaddexp(jot_logaddexp(stays, shifted(stays, never, 1)), skips);
    carry[0] = jot_where(jot_less(row[1], c->frames), add(next, row[0]), stays);
    (void)out;
}

// labels[..., n] as blank, label, blank, ..., blank.
static jot_value spread(jot_value labels, int64_t blank)
{
    jot_value blanks = jot_full_like(labels, jot_from_int(blank));
    const jot_value pairs[] = {blanks, labels};
    int64_t dims[34];
    int rank = jot_value_rank(labels);
    for (int i = 0; i < rank; i++)
        dims[i] = jot_value_dim(labels, i);
    dims[rank - 1] *= 2;
    dims[rank] = JOT_END;
    return jot_pad_axis(jot_reshape_dims(jot_stack_list(-1, 2, pairs), dims),
                        jot_from_int(blank), -1, 0, 1);
}

static jot_value ctc(jot_value scores, jot_value labels, jot_value frames, jot_value count,
                     int64_t blank, const char *where)
{
    int64_t n = jot_value_dim(labels, -1), t = jot_value_dim(scores, -2);
    int rank = jot_value_rank(scores);
    jot_value states = spread(labels, blank), never = num(NEVER),
              s = jot_arange(JOT_I32, 2 * n + 1);
    jot_value is_label = jot_equal(jot_mod(s, jot_from_int(2)), jot_from_int(1));
    jot_value before = shifted(states, jot_from_int(blank), 2);
    struct ctc c = {.can_skip = both(is_label, jot_not_equal(states, before)),
                    .frames = jot_expand_dims_axes(frames, last)};
    // [..., t, states], then with frames in front.  What stands behind the labels need be no
    // class.
    jot_value index = jot_expand_dims_axes(states, (const int[]){-2, JOT_END});
    jot_value p =
        jot_take_along_axis_mode(jot_log_softmax(scores, -1), index, -1, JOT_INDEX_CLIP);
    p = jot_move_axis(p, rank - 2, 0);
    jot_value begin = jot_where(jot_equal(s, jot_from_int(0)), num(0), never);
    jot_value carry = add(jot_zeros_like(jot_take_axis(p, 0, 0)), begin);
    const jot_value rows[] = {p, jot_arange(JOT_I32, t)};
    jot_scan_at(step, &c, 1, &carry, 2, rows, 0, NULL, NULL, where);
    jot_value end = jot_expand_dims_axes(mul(jot_from_int(2), count), last);
    jot_value is_end =
        jot_logical_or(jot_equal(s, end), jot_equal(s, sub(end, jot_from_int(1))));
    jot_value sum = jot_logsumexp_axes(jot_where(is_end, carry, never), last);
    return jot_where(jot_less(sum, num(NEVER / 2)), num(HUGE_VAL), jot_neg(sum));
}

jot_value jot_ctc_loss_at(jot_value scores, jot_value labels, jot_value frames, jot_value count,
                          int64_t blank, const char *where)
{
    const char *name = "jot_ctc_loss";
    char text[80];
    jot_value y;
    int64_t classes = jot_value_dim(scores, -1);
    snprintf(text, sizeof text, "blank is %lld of %lld classes", (long long)blank,
             (long long)classes);
    if (jot_value_failed(scores) || jot_value_failed(labels))
        y = jot_value_failed(scores) ? scores : labels;
    else if (jot_value_rank(scores) < 2 || jot_value_rank(labels) != jot_value_rank(scores) - 1)
        y = jot_error(JOT_ERR_SHAPE, name, "scores are [..., t, classes], labels [..., n]");
    else if (jot_value_dim(scores, -2) < 1)
        y = jot_error(JOT_ERR_SHAPE, name, "scores have no frames");
    else if (blank < 0 || blank >= classes)
        y = jot_error(JOT_ERR_ARGUMENT, name, text);
    else
        y = ctc(scores, labels, frames, count, blank, where);
    jot_place(y, where);
    return y;
}
