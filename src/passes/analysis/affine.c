// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/affine.h"

#include "ir/number.h"

#define MOST_VALUES 256 // that are looked at for one
#define FAR (INT64_MAX / 4)

struct reading {
    const struct affine_loop *l;
    const struct ir_graph *g; // the body, or what is around it
    int left;
};

static bool read(struct reading *r, ir_id v, struct affine *out);

static bool is_body(const struct reading *r) { return r->g == r->l->body; }

static bool is_one(const struct ir_graph *g, ir_id v) { return ir_count_of(g, v) == 1; }

static bool is_rows(const struct reading *r, ir_id v)
{
    return !is_body(r) && ir_rank_of(r->g, v) == 1 &&
           ir_dims_of(r->g, v)[0] == r->l->scan->length;
}

// ---- numbers ----

struct ends {
    int64_t low, high;
};

static bool find_ends(const struct reading *r, struct affine a, struct ends *out)
{
    int64_t last;
    if (__builtin_mul_overflow(a.step, r->l->scan->length - 1, &last) ||
        __builtin_add_overflow(a.start, last, &last))
        return false;
    *out = last < a.start ? (struct ends){last, a.start} : (struct ends){a.start, last};
    return out->low >= -FAR && out->high <= FAR;
}

static bool fits(struct ends e, jot_dtype d)
{
    int bits = dtype_get(d)->bits;
    if (dtype_is_bool(d))
        return e.low >= 0 && e.high <= 1;
    if (dtype_is_unsigned(d))
        return e.low >= 0 && (bits == 64 || e.high < (int64_t)1 << bits);
    return bits == 64 ||
           (e.low >= -((int64_t)1 << (bits - 1)) && e.high < (int64_t)1 << (bits - 1));
}

// -1: it is below zero in all rows; 1: in none; 0: not known.
static int side(const struct reading *r, struct affine a)
{
    struct ends e;
    if (!find_ends(r, a, &e))
        return 0;
    return e.high < 0 ? -1 : e.low >= 0;
}

static struct affine difference(struct affine x, struct affine y)
{
    return (struct affine){x.step - y.step, x.start - y.start};
}

// ---- operations ----

static bool read_operand(struct reading *r, const struct ir_node *n, uint32_t i,
                         struct affine *out)
{
    return read(r, ir_operand(r->g, n, i), out);
}

static bool read_const(const struct reading *r, const struct ir_node *n, struct affine *out)
{
    const void *data = ir_const_data(n);
    jot_dtype d = ir_dtype_of(r->g, n->out);
    int64_t count = ir_count_of(r->g, n->out);
    int64_t first = ir_integer_at(d, data, 0),
            second = count > 1 ? ir_integer_at(d, data, 1) : first;
    if (first < -FAR || first > FAR || second < -FAR || second > FAR)
        return false;
    *out = (struct affine){second - first, first};
    struct ends e;
    if (!find_ends(r, *out, &e))
        return false;
    for (int64_t i = 2; i < count; i++)
        if (ir_integer_at(d, data, i) != first + i * out->step)
            return false;
    return true;
}

static bool read_sum(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine x, y;
    if (!read_operand(r, n, 0, &x) || !read_operand(r, n, 1, &y))
        return false;
    *out = n->op == IR_sub ? difference(x, y)
                           : (struct affine){x.step + y.step, x.start + y.start};
    return true;
}

static bool read_product(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine x, y;
    if (!read_operand(r, n, 0, &x) || !read_operand(r, n, 1, &y) || (x.step && y.step))
        return false;
    struct affine a = x.step ? x : y;
    int64_t by = x.step ? y.start : x.start;
    return !__builtin_mul_overflow(a.step, by, &out->step) &&
           !__builtin_mul_overflow(a.start, by, &out->start);
}

static bool read_comparison(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine x, y;
    if (!read_operand(r, n, 0, &x) || !read_operand(r, n, 1, &y))
        return false;
    bool is_turned = n->op == IR_gt || n->op == IR_le; // x > y is y < x, x <= y is not y < x
    bool is_opposite = n->op == IR_ge || n->op == IR_le || n->op == IR_ne;
    int s = is_turned ? side(r, difference(y, x)) : side(r, difference(x, y));
    if (n->op == IR_eq || n->op == IR_ne) {
        struct affine d = difference(x, y), opposite = difference(y, x);
        bool is_apart = side(r, d) < 0 || side(r, opposite) < 0;
        s = is_apart ? 1 : !d.step && !d.start ? -1 : 0;
    }
    *out = (struct affine){0, (s < 0) != is_opposite};
    return s != 0;
}

static bool choose(struct reading *r, struct affine x, struct affine y, bool lower,
                   struct affine *out)
{
    int s = side(r, difference(x, y));
    *out = (s < 0) == lower ? x : y;
    return s != 0;
}

static bool read_extremum(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine x, y;
    return read_operand(r, n, 0, &x) && read_operand(r, n, 1, &y) &&
           choose(r, x, y, n->op == IR_min, out);
}

static bool read_clamp(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine low, x, high;
    return read_operand(r, n, 0, &low) && read_operand(r, n, 1, &x) &&
           read_operand(r, n, 2, &high) && choose(r, x, low, false, &x) &&
           choose(r, x, high, true, out);
}

static bool read_select(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine p;
    return read_operand(r, n, 0, &p) && !p.step && read_operand(r, n, p.start ? 1 : 2, out);
}

// x rem y = x where 0 <= x < y.
static bool read_remainder(struct reading *r, const struct ir_node *n, struct affine *out)
{
    struct affine y;
    return read_operand(r, n, 0, out) && read_operand(r, n, 1, &y) && side(r, *out) > 0 &&
           side(r, difference(*out, y)) < 0;
}

static bool read_iota(const struct reading *r, const struct ir_node *n, struct affine *out)
{
    *out = (struct affine){is_rows(r, n->out), 0};
    return true;
}

static bool read_reversed(struct reading *r, const struct ir_node *n, struct affine *out)
{
    if (!read_operand(r, n, 0, out))
        return false;
    if (is_rows(r, n->out))
        *out = affine_turned(*out, r->l->scan->length);
    return true;
}

// One integer of a list.
static bool read_part(struct reading *r, const struct ir_node *n, struct affine *out)
{
    const struct ir_node *list = ir_node_of(r->g, ir_operand(r->g, n, 0));
    int rank;
    int64_t at = ir_attr_ints(n->attrs, IR_KEY_starts, &rank)[0];
    if (rank != 1 || (list->op != IR_const && list->op != IR_concatenate))
        return false;
    if (list->op == IR_const) {
        *out = (struct affine){
            0, ir_integer_at(ir_dtype_of(r->g, n->out), ir_const_data(list), at)};
        return out->start >= -FAR && out->start <= FAR;
    }
    for (uint32_t i = 0; i < list->n_in; i++) {
        ir_id v = ir_operand(r->g, list, i);
        if (at == 0 && is_one(r->g, v))
            return read(r, v, out);
        at -= ir_dims_of(r->g, v)[0];
    }
    return false;
}

static bool read_moved(struct reading *r, const struct ir_node *n, struct affine *out)
{
    bool is_part = is_one(r->g, n->out) && !is_one(r->g, ir_operand(r->g, n, 0));
    return is_part ? n->op == IR_slice && read_part(r, n, out) : read_operand(r, n, 0, out);
}

// ---- what comes into the body ----

static bool read_around(const struct reading *r, ir_id v, struct affine *out)
{
    struct reading outer = {r->l, r->l->b->graph, r->left};
    return read(&outer, v, out);
}

// What is added to the carry by a trip: the other operand of the sum that the body gives.
static bool read_growth(struct reading *r, uint32_t i, int64_t *out)
{
    ir_id carry = (ir_id)r->l->scan->n_consts + i;
    const struct ir_node *n = ir_node_of(r->g, r->g->outputs.at[i]);
    struct affine by;
    if (n->op != IR_add && n->op != IR_sub)
        return false;
    uint32_t side = ir_operand(r->g, n, 0) == carry ? 0 : 1;
    if (ir_operand(r->g, n, side) != carry || (side && n->op == IR_sub) ||
        !read_operand(r, n, 1 - side, &by) || by.step)
        return false;
    *out = n->op == IR_sub ? -by.start : by.start;
    return true;
}

static bool read_carry(struct reading *r, uint32_t i, struct affine *out, int64_t *out_end)
{
    const struct ir_scan *s = r->l->scan;
    struct affine first;
    int64_t by, end;
    if (!read_growth(r, i, &by) ||
        !read_around(r, r->l->in[(uint32_t)s->n_consts + i], &first) || first.step ||
        __builtin_mul_overflow(by, s->length, &end) ||
        __builtin_add_overflow(first.start, end, &end))
        return false;
    *out_end = end;
    *out = s->reverse ? (struct affine){-by, end - by} : (struct affine){by, first.start};
    return true;
}

static bool read_param(struct reading *r, ir_id v, struct affine *out)
{
    ir_id carries = (ir_id)r->l->scan->n_consts;
    ir_id rows = carries + (ir_id)r->l->scan->n_carry;
    int64_t end;
    if (!is_body(r) || (v >= rows && ir_rank_of(r->g, v)))
        return false;
    return v >= carries && v < rows ? read_carry(r, v - carries, out, &end)
                                    : read_around(r, r->l->in[v], out);
}

// ---- values ----

static bool read_node(struct reading *r, const struct ir_node *n, struct affine *out)
{
    switch ((int)n->op) {
    case IR_param:
        return read_param(r, n->out, out);
    case IR_const:
        return read_const(r, n, out);
    case IR_iota:
        return read_iota(r, n, out);
    case IR_add:
    case IR_sub:
        return read_sum(r, n, out);
    case IR_mul:
        return read_product(r, n, out);
    case IR_rem:
        return read_remainder(r, n, out);
    case IR_max:
    case IR_min:
        return read_extremum(r, n, out);
    case IR_clamp:
        return read_clamp(r, n, out);
    case IR_select:
        return read_select(r, n, out);
    case IR_lt:
    case IR_le:
    case IR_gt:
    case IR_ge:
    case IR_eq:
    case IR_ne:
        return read_comparison(r, n, out);
    case IR_rev:
        return read_reversed(r, n, out);
    case IR_convert:
    case IR_reshape:
    case IR_slice:
    case IR_broadcast_in_dim:
        return read_moved(r, n, out);
    default:
        return false;
    }
}

static bool read(struct reading *r, ir_id v, struct affine *out)
{
    jot_dtype d = ir_dtype_of(r->g, v);
    struct ends e;
    return r->left-- > 0 && (dtype_is_integer(d) || dtype_is_bool(d)) &&
           (is_one(r->g, v) || is_rows(r, v)) && read_node(r, ir_node_of(r->g, v), out) &&
           find_ends(r, *out, &e) && fits(e, d);
}

bool affine_in_body(const struct affine_loop *l, ir_id v, struct affine *out)
{
    return read(&(struct reading){l, l->body, MOST_VALUES}, v, out);
}

bool affine_rows(const struct affine_loop *l, ir_id v, struct affine *out)
{
    struct reading r = {l, l->b->graph, MOST_VALUES};
    return is_rows(&r, v) && read(&r, v, out);
}

bool affine_carry(const struct affine_loop *l, uint32_t i, struct affine *out, int64_t *out_end)
{
    struct reading r = {l, l->body, MOST_VALUES};
    ir_id v = (ir_id)l->scan->n_consts + i;
    struct ends e, end;
    if (ir_rank_of(l->body, v) || !dtype_is_integer(ir_dtype_of(l->body, v)) ||
        !read_carry(&r, i, out, out_end) || !find_ends(&r, *out, &e))
        return false;
    end = (struct ends){*out_end, *out_end};
    return fits(e, ir_dtype_of(l->body, v)) && fits(end, ir_dtype_of(l->body, v)) &&
           *out_end >= -FAR && *out_end <= FAR;
}
