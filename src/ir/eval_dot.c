// SPDX-License-Identifier: Apache-2.0
// Contractions: a chain of fused multiply-adds in each accumulator of the shape of sums.
//
// Attribute precision is a licence, not a duty: the evaluator computes in full.
#include "ir/eval_fold.h"

// Columns are gathered together as long as they have about so many elements.
#define CHUNK 65536

static void add_axes(struct eval_view *to, const struct eval_view *v, int n,
                     const int64_t *axes)
{
    for (int i = 0; i < n; i++) {
        to->dims[to->rank] = v->dims[axes[i]];
        to->steps[to->rank++] = v->steps[axes[i]];
    }
}

// An operand: batch and free axes in one view, contracted ones in another.
struct side {
    struct eval_view outer, contracted;
    const struct ir_tensor *tensor;
    int n_batch;
};

static struct side side_make(const struct eval_call *c, int operand, enum ir_key batch_key,
                             enum ir_key contract_key)
{
    int n_batch, n;
    const int64_t *batch = ir_attr_ints(c->attrs, batch_key, &n_batch);
    const int64_t *contract = ir_attr_ints(c->attrs, contract_key, &n);
    struct side s = {.tensor = &c->in[operand], .n_batch = n_batch};
    struct eval_view v = eval_view_dense(c->module, s.tensor->type);
    add_axes(&s.contracted, &v, n, contract);
    add_axes(&s.outer, &v, n_batch, batch);
    for (int64_t a = 0; a < v.rank; a++) {
        bool is_free = true;
        for (int i = 0; i < n_batch; i++)
            is_free &= batch[i] != a;
        for (int i = 0; i < n; i++)
            is_free &= contract[i] != a;
        if (is_free)
            add_axes(&s.outer, &v, 1, &a);
    }
    return s;
}

// The contracted elements from `start`, in order, as numbers of the type to compute in.
static void gather_row(const struct side *s, int64_t start, int64_t n, struct eval_number *row)
{
    int64_t index[IR_MAX_RANK] = {0}, at = start;
    for (int64_t k = 0; k < n; k++) {
        row[k] = eval_load_wide(ir_dtype(s->tensor->type), s->tensor->data, at);
        at = eval_view_next(&s->contracted, index, at);
    }
}

static void accumulate(struct eval_number *sum, const struct eval_number *a,
                       const struct eval_number *b, bool is_complex)
{
    sum->re = FMA(a->re, b->re, sum->re);
    if (!is_complex)
        return;
    sum->re = FMA(NEG(a->im), b->im, sum->re);
    sum->im = FMA(a->re, b->im, sum->im);
    sum->im = FMA(a->im, b->re, sum->im);
}

static struct eval_number dot(struct eval_fold *f, int64_t n, const struct eval_number *a,
                              const struct eval_number *b, bool is_complex)
{
    for (int64_t first = 0; first < n; first += f->block) {
        int64_t end = n - first < f->block ? n : first + f->block;
        struct eval_number *lanes = eval_fold_open_block(f);
        for (int64_t k = first; k < end; k++)
            accumulate(&lanes[k % FOLD_LANES], &a[k], &b[k], is_complex);
        eval_fold_close_block(f);
    }
    return eval_fold_finish(f);
}

static int64_t count_axes(const struct eval_view *v, int from, int to)
{
    int64_t count = 1;
    for (int a = from; a < to; a++)
        count *= v->dims[a];
    return count;
}

// The element of outer index `i`, counted in row-major order.
static int64_t outer_offset(const struct eval_view *v, int64_t i)
{
    int64_t at = 0;
    for (int a = v->rank - 1; a >= 0; a--) {
        at += i % v->dims[a] * v->steps[a];
        i /= v->dims[a];
    }
    return at;
}

// Everything about one contraction.
struct contraction {
    struct side x, y;
    struct eval_fold fold;
    int64_t rows, columns, n; // free elements of x and of y, contracted elements
    struct eval_number *row, *gathered;
    struct ir_tensor *out;
};

// Results (batch, all rows, columns first .. first + count - 1), whose columns are gathered.
static void fill_columns(struct contraction *t, int64_t batch, int64_t first, int64_t count)
{
    jot_dtype d = ir_dtype(t->out->type);
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t at = batch * t->rows + i;
        gather_row(&t->x, outer_offset(&t->x.outer, at), t->n, t->row);
        for (int64_t k = 0; k < count; k++) {
            const struct eval_number *column = t->gathered + k * t->n;
            struct eval_number r = dot(&t->fold, t->n, t->row, column, dtype_is_complex(d));
            eval_store(d, t->out->data, at * t->columns + first + k, r);
        }
    }
}

jot_status eval_dot_general(const struct eval_call *c)
{
    struct ir_type result = c->out[0].type;
    if (eval_count(c, result) == 0)
        return JOT_OK;
    struct contraction t = {.x = side_make(c, 0, IR_KEY_lhs_batch, IR_KEY_lhs_contract),
                            .y = side_make(c, 1, IR_KEY_rhs_batch, IR_KEY_rhs_contract),
                            .out = &c->out[0]};
    const struct eval_view *x = &t.x.outer, *y = &t.y.outer;
    int64_t batches = count_axes(x, 0, t.x.n_batch);
    t.rows = count_axes(x, t.x.n_batch, x->rank);
    t.columns = count_axes(y, t.y.n_batch, y->rank);
    t.n = count_axes(&t.x.contracted, 0, t.x.contracted.rank);
    int64_t most = t.n < CHUNK ? CHUNK / (t.n + 1) + 1 : 1;
    if (most > t.columns)
        most = t.columns;
    t.fold = eval_fold_make(c->arena, IR_reduce_sum, ir_dtype(result), t.n);
    t.row = arena_array(c->arena, struct eval_number, t.n);
    t.gathered = arena_array(c->arena, struct eval_number, t.n * most);

    for (int64_t batch = 0; batch < batches; batch++) {
        for (int64_t first = 0; first < t.columns; first += most) {
            int64_t count = t.columns - first < most ? t.columns - first : most;
            for (int64_t k = 0; k < count; k++)
                gather_row(&t.y, outer_offset(y, batch * t.columns + first + k), t.n,
                           t.gathered + k * t.n);
            fill_columns(&t, batch, first, count);
        }
    }
    return JOT_OK;
}
