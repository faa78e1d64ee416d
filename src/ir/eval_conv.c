// SPDX-License-Identifier: Apache-2.0
// Convolutions: each product of the sum that defines them (conv.h), added where it belongs.
#include "base/count.h"
#include "ir/conv.h"
#include "ir/eval_ops.h"

struct parts {
    struct ir_conv c;
    const int64_t *dims[CONV_PARTS];
    struct eval_number *at[CONV_PARTS]; // elements, to compute in
    bool is_complex;
};

static int64_t offset_of(const struct parts *p, enum conv_part part, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < p->c.n + 2; i++)
        at = at * p->dims[part][i] + index[i];
    return at;
}

// The coordinate of x that position and k of window axis i read, or -1.
static int64_t coordinate(const struct parts *p, int i, int64_t y, int64_t k)
{
    const struct ir_conv *c = &p->c;
    int64_t x = y * c->strides[i] + k * c->rhs_dilation[i] - c->low[i];
    int64_t extent = p->dims[CONV_X][ir_conv_spatial(c, CONV_X) + i];
    if (x < 0 || x % c->lhs_dilation[i] || x / c->lhs_dilation[i] >= extent)
        return -1;
    return x / c->lhs_dilation[i];
}

static void add_product(const struct parts *p, const int64_t *x, const int64_t *w,
                        const int64_t *y)
{
    struct eval_number *of[] = {&p->at[CONV_X][offset_of(p, CONV_X, x)],
                                &p->at[CONV_W][offset_of(p, CONV_W, w)],
                                &p->at[CONV_Y][offset_of(p, CONV_Y, y)]};
    struct eval_number *sum = of[p->c.part];
    const struct eval_number *a = of[ir_conv_operand(&p->c, 0)];
    const struct eval_number *b = of[ir_conv_operand(&p->c, 1)];
    sum->re = FMA(a->re, b->re, sum->re);
    if (!p->is_complex)
        return;
    sum->re = FMA(NEG(a->im), b->im, sum->re);
    sum->im = FMA(a->re, b->im, sum->im);
    sum->im = FMA(a->im, b->re, sum->im);
}

// All products of an element of w: those with each element of y.
static void add_products(const struct parts *p, const int64_t *w)
{
    const struct ir_conv *c = &p->c;
    int of_x = ir_conv_features(c, CONV_X), of_y = ir_conv_features(c, CONV_Y);
    int64_t out = w[ir_conv_features(c, CONV_W)];
    int64_t per_group = p->dims[CONV_Y][of_y] / c->groups;
    int64_t in = p->dims[CONV_W][ir_conv_in(c)];
    int64_t y[IR_MAX_RANK] = {0}, x[IR_MAX_RANK] = {0};
    do {
        bool is_inside = y[of_y] == out;
        x[0] = y[0];
        x[of_x] = out / per_group * in + w[ir_conv_in(c)];
        for (int i = 0; i < c->n && is_inside; i++) {
            int64_t *to = &x[ir_conv_spatial(c, CONV_X) + i];
            *to = coordinate(p, i, y[ir_conv_spatial(c, CONV_Y) + i],
                             w[ir_conv_spatial(c, CONV_W) + i]);
            is_inside = *to >= 0;
        }
        if (is_inside)
            add_product(p, x, w, y);
    } while (count_next_index(c->n + 2, p->dims[CONV_Y], y));
}

static struct eval_number *load_all(const struct eval_call *c, const struct ir_tensor *t)
{
    int64_t n = eval_count(c, t->type);
    struct eval_number *x = arena_array(c->arena, struct eval_number, n + 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = eval_load_wide(ir_dtype(t->type), t->data, i);
    return x;
}

jot_status eval_conv(const struct eval_call *c)
{
    struct parts p = {.c = ir_conv_of(c->attrs),
                      .is_complex = dtype_is_complex(ir_dtype(c->out[0].type))};
    const struct ir_tensor *of[CONV_PARTS] = {NULL};
    of[p.c.part] = &c->out[0];
    for (int i = 0; i < 2; i++)
        of[ir_conv_operand(&p.c, i)] = &c->in[i];
    bool is_empty = false;
    for (int i = 0; i < CONV_PARTS; i++) {
        p.dims[i] = ir_dims(c->module, of[i]->type);
        p.at[i] = load_all(c, of[i]);
        is_empty = is_empty || eval_count(c, of[i]->type) == 0;
    }
    int64_t w[IR_MAX_RANK] = {0}, count = eval_count(c, c->out[0].type);
    if (is_empty) // the results are zeros already
        return JOT_OK;
    do {
        add_products(&p, w);
    } while (count_next_index(p.c.n + 2, p.dims[CONV_W], w));
    for (int64_t i = 0; i < count; i++)
        eval_store(ir_dtype(c->out[0].type), c->out[0].data, i, p.at[p.c.part][i]);
    return JOT_OK;
}
