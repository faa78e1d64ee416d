// SPDX-License-Identifier: Apache-2.0
// Products by subscripts: parsed, each operand made one axis a letter, multiplied two at a time.
#include "numpy/einsum.h"

#include "jot/einsum.h"
#include "jot/shapes.h"
#include "trace/emit.h"

#include <stdio.h>

#define NAME "jot_einsum"

enum { LETTERS = 52, MOST_UNNAMED = EINSUM_LABELS - LETTERS };

// Labels of axes in their order.
struct labels {
    int n;
    uint8_t at[IR_MAX_RANK];
    uint64_t set;
};

struct factor {
    jot_value x;
    struct labels axes;
};

// The subscripts of one operand: letters, and behind how many of them "..." stands.
struct term {
    const char *text;
    int length;
    struct labels letters;
    int dots; // -1: none
};

struct einsum {
    const char *subscripts;
    int n;
    struct term *terms, result;
    bool has_result;
    struct factor *factors;
    int n_unnamed; // axes of "..."
    int64_t sizes[EINSUM_LABELS];
    uint8_t count[LETTERS]; // occurrences in operands
    struct labels out;
};

static bool fail(const struct einsum *e, jot_status status, const char *what)
{
    trace_fail(NAME, status, "\"%s\": %s", e->subscripts, what);
    return false;
}

static int label_of(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
static char letter_of(int label)
{
    return (char)(label >= 26 ? 'a' + label - 26 : 'A' + label);
}
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static void add_label(struct labels *l, int label)
{
    l->at[l->n++] = (uint8_t)label;
    l->set |= UINT64_C(1) << label;
}

static int index_of(const struct labels *l, int label)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == label)
            return i;
    return -1;
}

// ---- Subscripts

static bool read_term(struct einsum *e, const char **at, struct term *t)
{
    const char *p = *at;
    *t = (struct term){.text = p, .dots = -1};
    for (; *p && *p != ',' && !(p[0] == '-' && p[1] == '>'); p++) {
        if (is_letter(*p)) {
            if (t->letters.n == IR_MAX_RANK)
                return fail(e, JOT_ERR_SHAPE, "an operand has too many axes");
            add_label(&t->letters, label_of(*p));
        } else if (!strncmp(p, "...", 3)) {
            if (t->dots >= 0)
                return fail(e, JOT_ERR_ARGUMENT, "\"...\" stands twice in one operand");
            t->dots = t->letters.n;
            p += 2;
        } else if (*p != ' ') {
            trace_fail(NAME, JOT_ERR_ARGUMENT,
                       "\"%s\": '%c' is no letter, comma, \"...\" or \"->\"", e->subscripts,
                       *p);
            return false;
        }
    }
    t->length = (int)(p - t->text);
    *at = p;
    return true;
}

static bool read_subscripts(struct einsum *e)
{
    const char *p = e->subscripts;
    int n = 0;
    for (;;) {
        struct term t;
        if (!read_term(e, &p, &t))
            return false;
        if (n < e->n)
            e->terms[n] = t;
        n++;
        if (*p != ',')
            break;
        p++;
    }
    if (*p) {
        p += 2;
        e->has_result = true;
        if (!read_term(e, &p, &e->result))
            return false;
        if (*p)
            return fail(e, JOT_ERR_ARGUMENT, "the result is one list of letters");
    }
    if (n == e->n)
        return true;
    trace_fail(NAME, JOT_ERR_ARGUMENT, "\"%s\" is of %d operands, and there are %d",
               e->subscripts, n, e->n);
    return false;
}

// ---- Labels of the operands

static bool set_size(struct einsum *e, int operand, int label, int64_t size)
{
    int64_t *known = &e->sizes[label];
    if (*known == size || size == 1)
        return true;
    if (*known == 1) {
        *known = size;
        return true;
    }
    char what[24] = "an axis of \"...\"";
    if (label < LETTERS)
        snprintf(what, sizeof what, "'%c'", letter_of(label));
    trace_fail(NAME, JOT_ERR_SHAPE, "\"%s\": %s is %lld, and %lld in operand %d, %s",
               e->subscripts, what, (long long)*known, (long long)size, operand,
               trace_type_text(e->factors[operand].x));
    return false;
}

static bool label_axes(struct einsum *e, int operand)
{
    const struct term *t = &e->terms[operand];
    struct factor *f = &e->factors[operand];
    int rank = trace_type(f->x).rank, unnamed = rank - t->letters.n;
    if (unnamed < 0 || (unnamed > 0 && t->dots < 0)) {
        trace_fail(NAME, JOT_ERR_SHAPE, "\"%s\": \"%.*s\" is of %d axes, and operand %d is %s",
                   e->subscripts, t->length, t->text, t->letters.n, operand,
                   trace_type_text(f->x));
        return false;
    }
    if (unnamed > MOST_UNNAMED)
        return fail(e, JOT_ERR_SHAPE, "\"...\" stands for more than 12 axes");
    e->n_unnamed = unnamed > e->n_unnamed ? unnamed : e->n_unnamed;
    const int64_t *dims = ir_dims(trace_top()->module, trace_type(f->x));
    int dots = t->dots < 0 ? t->letters.n : t->dots;
    for (int i = 0; i < rank; i++) {
        // Axes of "..." are counted from the last one.
        int from_dots = i - dots;
        int label = from_dots < 0         ? t->letters.at[i]
                    : from_dots < unnamed ? LETTERS + unnamed - 1 - from_dots
                                          : t->letters.at[i - unnamed];
        if (label < LETTERS)
            e->count[label]++;
        add_label(&f->axes, label);
        if (!set_size(e, operand, label, dims[i]))
            return false;
    }
    return true;
}

static void add_unnamed(struct einsum *e)
{
    for (int i = e->n_unnamed - 1; i >= 0; i--)
        add_label(&e->out, LETTERS + i);
}

static bool label_result(struct einsum *e)
{
    if (!e->has_result) {
        add_unnamed(e);
        for (int i = 0; i < LETTERS; i++)
            if (e->count[i] == 1)
                add_label(&e->out, i);
        return true;
    }
    for (int i = 0; i <= e->result.letters.n; i++) {
        if (i == e->result.dots)
            add_unnamed(e);
        if (i == e->result.letters.n)
            return true;
        int label = e->result.letters.at[i];
        const char *problem = !e->count[label]                ? "is in no operand"
                              : index_of(&e->out, label) >= 0 ? "stands twice"
                                                              : NULL;
        if (problem) {
            trace_fail(NAME, JOT_ERR_ARGUMENT, "\"%s\": '%c' of the result %s", e->subscripts,
                       letter_of(label), problem);
            return false;
        }
        add_label(&e->out, label);
    }
    return true;
}

// ---- Factors

static void drop_axis(struct factor *f, int axis)
{
    f->x = jot_squeeze_axes(f->x, (const int[]){axis, JOT_END});
    int label = f->axes.at[axis];
    for (int i = axis; i + 1 < f->axes.n; i++)
        f->axes.at[i] = f->axes.at[i + 1];
    f->axes.n--;
    if (index_of(&f->axes, label) < 0)
        f->axes.set &= ~(UINT64_C(1) << label);
}

// One axis a label: without axes of size 1 that others make larger, and diagonals of axes
// alike.
static void make_distinct(const struct einsum *e, struct factor *f)
{
    for (int i = f->axes.n - 1; i >= 0; i--)
        if (jot_value_dim(f->x, i) == 1 && e->sizes[f->axes.at[i]] != 1)
            drop_axis(f, i);
    for (int i = 0; i < f->axes.n; i++) {
        int label = f->axes.at[i], k = i + 1;
        while (k < f->axes.n && f->axes.at[k] != label)
            k++;
        if (k == f->axes.n)
            continue;
        f->x = jot_diagonal(f->x, 0, i, k);
        struct labels old = f->axes;
        f->axes = (struct labels){0};
        for (int j = 0; j < old.n; j++)
            if (j != i && j != k)
                add_label(&f->axes, old.at[j]);
        add_label(&f->axes, label);
        i = -1;
    }
}

// The sum over the labels that are not to be kept.
static void sum_others(struct factor *f, uint64_t keep)
{
    int axes[IR_MAX_RANK + 1], n = 0;
    struct labels left = {0};
    for (int i = 0; i < f->axes.n; i++)
        if (keep >> f->axes.at[i] & 1)
            add_label(&left, f->axes.at[i]);
        else
            axes[n++] = i;
    axes[n] = JOT_END;
    if (n)
        f->x = jot_sum_axes(f->x, axes);
    f->axes = left;
}

// With the axes in that order, and axes of size 1 for labels that the factor has not.
static jot_value arranged(const struct factor *f, const struct labels *order)
{
    int axes[IR_MAX_RANK + 1], missing[IR_MAX_RANK + 1], n = 0, m = 0;
    for (int i = 0; i < order->n; i++) {
        int at = index_of(&f->axes, order->at[i]);
        if (at >= 0)
            axes[n++] = at;
        else
            missing[m++] = i;
    }
    axes[n] = missing[m] = JOT_END;
    jot_value x = n > 1 ? jot_transpose_axes(f->x, axes) : f->x;
    return m ? jot_expand_dims_axes(x, missing) : x;
}

static void add_missing(struct labels *to, const struct labels *from, uint64_t only)
{
    for (int i = 0; i < from->n; i++)
        if (only >> from->at[i] & 1 && index_of(to, from->at[i]) < 0)
            add_label(to, from->at[i]);
}

// x becomes the product with y, summed over what both have and nobody else needs.
static void multiply(struct factor *x, struct factor *y, uint64_t keep)
{
    sum_others(x, keep | y->axes.set);
    sum_others(y, keep | x->axes.set);
    uint64_t both = x->axes.set & y->axes.set;
    struct labels product = {0};
    if (!(both & ~keep)) {
        add_missing(&product, &x->axes, ~UINT64_C(0));
        add_missing(&product, &y->axes, ~UINT64_C(0));
        x->x = jot_mul(arranged(x, &product), arranged(y, &product));
        x->axes = product;
        return;
    }
    int64_t axes[4][IR_MAX_RANK];
    struct ir_dot d = {.lhs_batch = axes[0],
                       .rhs_batch = axes[1],
                       .lhs_contract = axes[2],
                       .rhs_contract = axes[3]};
    for (int i = 0; i < x->axes.n; i++) {
        int label = x->axes.at[i], k = index_of(&y->axes, label);
        if (k < 0)
            continue;
        bool is_kept = keep >> label & 1;
        int at = is_kept ? d.n_batch++ : d.n_contract++;
        axes[is_kept ? 0 : 2][at] = i;
        axes[is_kept ? 1 : 3][at] = k;
    }
    add_missing(&product, &x->axes, both & keep);
    add_missing(&product, &x->axes, ~both);
    add_missing(&product, &y->axes, ~both);
    x->x = trace_product(NAME, x->x, y->x, &d);
    x->axes = product;
}

// All operands in the type of the result.
static bool bring_together(struct einsum *e, jot_value *error)
{
    jot_value v[EINSUM_MOST];
    struct trace_promoted p;
    bool are_bools = true;
    for (int i = 0; i < e->n; i++) {
        v[i] = e->factors[i].x;
        are_bools &= trace_slot_of(v[i])->dtype == JOT_BOOL;
    }
    if (are_bools)
        p.seen = JOT_I32;
    else if (!trace_promote(NAME, "num", e->n, v, &p, error))
        return false;
    for (int i = 0; i < e->n; i++)
        if (trace_slot_of(v[i])->dtype != p.seen)
            e->factors[i].x = jot_convert(v[i], p.seen);
    return true;
}

static jot_value multiply_all(struct einsum *e)
{
    struct einsum_pair pairs[EINSUM_MOST];
    uint64_t sets[EINSUM_MOST];
    for (int i = 0; i < e->n; i++) {
        make_distinct(e, &e->factors[i]);
        sets[i] = e->factors[i].axes.set;
    }
    einsum_order(e->n, sets, e->sizes, e->out.set, pairs);
    for (int step = 0; step + 1 < e->n; step++) {
        struct factor *x = &e->factors[pairs[step].to], *y = &e->factors[pairs[step].from];
        uint64_t keep = e->out.set;
        for (int i = 0; i < e->n; i++)
            if (&e->factors[i] != x && &e->factors[i] != y)
                keep |= e->factors[i].axes.set;
        multiply(x, y, keep);
        y->axes = (struct labels){0};
    }
    sum_others(&e->factors[0], e->out.set);
    return arranged(&e->factors[0], &e->out);
}

static jot_value einsum(const char *subscripts, size_t n, const jot_value *x)
{
    jot_value error;
    if (!trace_ready(NAME, 0, NULL, &error))
        return error;
    if (!subscripts)
        return trace_fail(NAME, JOT_ERR_ARGUMENT, "the subscripts are NULL");
    if (n == 0 || n > EINSUM_MOST)
        return trace_fail(NAME, JOT_ERR_ARGUMENT, "%zu operands: it takes 1 to %d", n,
                          EINSUM_MOST);
    struct arena *arena = trace_top()->module->arena;
    struct einsum e = {.subscripts = subscripts,
                       .n = (int)n,
                       .terms = arena_array(arena, struct term, n),
                       .factors = arena_array(arena, struct factor, n)};
    for (int i = 0; i < EINSUM_LABELS; i++)
        e.sizes[i] = 1;
    memset(e.factors, 0, n * sizeof *e.factors);
    for (size_t i = 0; i < n; i++) {
        e.factors[i].x = x[i];
        if (!trace_ready(NAME, 1, &e.factors[i].x, &error))
            return error;
    }
    if (!read_subscripts(&e))
        return trace_fail_latest();
    for (int i = 0; i < e.n; i++)
        if (!label_axes(&e, i))
            return trace_fail_latest();
    if (!label_result(&e))
        return trace_fail_latest();
    return bring_together(&e, &error) ? multiply_all(&e) : error;
}

jot_value jot_einsum_list(const char *subscripts, size_t n, const jot_value *x)
{
    TRACE_NEEDS("jot_einsum", "x", n, x);
    TRACE_RETURN(einsum(subscripts, n, x));
}
