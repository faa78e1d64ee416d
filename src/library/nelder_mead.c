// SPDX-License-Identifier: Apache-2.0
// The search of Nelder and Mead, for functions without derivatives.
#include "library/formula.h"
#include "library/minimize.h"

#include "jot/control.h"
#include "jot/indexing.h"
#include "jot/ordering.h"

// The corners, one a row, the best first, and the function there.
enum { CORNERS, VALUES, STEPS, CARRIES };

static jot_value row(jot_value x, int64_t i) { return jot_take_axis(x, i, 0); }

static jot_value one_row(jot_value x)
{
    return jot_expand_dims_axes(x, (const int[]){0, JOT_END});
}

static jot_value value_at(const struct search *s, jot_value x)
{
    jot_value value;
    jot_apply_at(s->value, 1, &x, 1, &value, s->where);
    return value;
}

static jot_value values_at(const struct search *s, jot_value corners)
{
    jot_value values;
    jot_apply_at(jot_vmap_of(s->value, s->where, NULL), 1, &corners, 1, &values, s->where);
    return values;
}

static void sort_corners(jot_value *c)
{
    jot_value order = jot_argsort_axis(c[VALUES], 0);
    c[CORNERS] = jot_take_values(c[CORNERS], order, 0);
    c[VALUES] = jot_take_values(c[VALUES], order, 0);
}

static jot_value width(const jot_value *c)
{
    return library_largest(sub(c[CORNERS], row(c[CORNERS], 0)));
}

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct search *s = ctx;
    jot_value spread = sub(row(c[VALUES], -1), row(c[VALUES], 0));
    jot_value is_wide = jot_logical_or(jot_greater(spread, num(s->o.tol)),
                                       jot_greater(width(c), num(s->o.tol)));
    return both(is_wide, jot_less(c[STEPS], jot_from_int(s->o.max_steps)));
}

// The rows but the last, and one more.
static jot_value with_last(jot_value rows, jot_value last)
{
    jot_value parts[] = {jot_slice_axis(rows, 0, 0, jot_value_dim(rows, 0) - 1, 1),
                         one_row(last)};
    return jot_concatenate_list(0, 2, parts);
}

static void step(jot_value *c, void *ctx)
{
    const struct search *s = ctx;
    jot_value worst = row(c[CORNERS], -1), best_value = row(c[VALUES], 0);
    jot_value worst_value = row(c[VALUES], -1), second = row(c[VALUES], -2);
    jot_value others = jot_slice_axis(c[CORNERS], 0, 0, s->length, 1);
    jot_value middle = jot_mean_axes(others, (const int[]){0, JOT_END}), d = sub(middle, worst);
    jot_value mirrored = add(middle, d), value = value_at(s, mirrored);
    jot_value is_best = jot_less(value, best_value), is_good = jot_less(value, second);
    jot_value is_better = jot_less(value, worst_value);
    // Twice as far when that is the best; else half as far, on the better side.
    jot_value far = jot_where(is_best, num(2), jot_where(is_better, num(0.5), num(-0.5)));
    jot_value other = add(middle, mul(far, d)), other_value = value_at(s, other);
    jot_value bound = jot_where(is_better, value, worst_value);
    jot_value takes_other =
        both(jot_less(other_value, bound), jot_logical_or(is_best, jot_logical_not(is_good)));
    jot_value moves = jot_logical_or(takes_other, is_good);
    jot_value last = jot_where(takes_other, other, mirrored);
    jot_value last_value = jot_where(takes_other, other_value, value);
    jot_piece pieces[] = {{c, 2, "the corners"}, {NULL, 0, NULL}};
    jot_block *b = jot_if_begin(pieces, moves, s->where);
    while (jot_block_next(b))
        if (jot_if_first(b)) {
            c[CORNERS] = with_last(c[CORNERS], last);
            c[VALUES] = with_last(c[VALUES], last_value);
        } else {
            jot_value best = row(c[CORNERS], 0);
            c[CORNERS] = add(best, mul(num(0.5), sub(c[CORNERS], best)));
            c[VALUES] = values_at(s, c[CORNERS]);
        }
    jot_block_leave(&b);
    sort_corners(c);
    c[STEPS] = add(c[STEPS], jot_from_int(1));
}

jot_search jot_nelder_mead_tree(jot_function f, size_t n, jot_value *x,
                                const jot_minimize_options *options, const char *where)
{
    static const struct search_kind kind = {"jot_nelder_mead", false, false};
    jot_value c[CARRIES], start;
    jot_search out;
    struct search *s = library_search(&kind, sizeof *s, f, n, x, options, where, &start, &out);
    if (!s)
        return out;
    // As far as a twentieth of each number, or a little where it is 0.
    jot_value far = jot_where(jot_equal(start, num(0)), num(2.5e-4), mul(num(0.05), start));
    jot_value moved = add(start, mul(jot_eye(s->dtype, s->length, s->length), far));
    jot_value rows[] = {one_row(start), moved};
    c[CORNERS] = jot_concatenate_list(0, 2, rows);
    c[VALUES] = values_at(s, c[CORNERS]);
    c[STEPS] = library_zero_count();
    sort_corners(c);
    jot_while_at(goes_on, step, s, CARRIES, c, NULL, where);
    jot_value best = library_held(row(c[CORNERS], 0), row(c[VALUES], 0));
    library_parts(s, jot_stop_gradient(best), x);
    return library_minimum(s, row(c[VALUES], 0), width(c), c[STEPS]);
}
