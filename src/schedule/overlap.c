// SPDX-License-Identifier: Apache-2.0
// Overlaps computation with what devices exchange.  Where an array is a concatenation of an exchange and of values
// that are known before, only some rows of what is computed of it wait; the others are computed beside the exchange.
//
//     y = f(concatenate(exchange a, x, exchange b))
//     becomes
//     y = concatenate(barrier (f of the first rows), barrier (f of rows of x), barrier (f of the last rows))
//
// Rows are those of the first axis.  Each part has a kernel of its own (schedule/parts.c).
#include "passes/transform.h"
#include "schedule/group/group.h"
#include "schedule/rewrites.h"

// Rows one after the other.
struct run {
    int64_t first, end;
};

// What has been made of a value.
struct made {
    struct run rows;
    ir_id value, next; // next: the number of another one of the value and 1, or 0
};

struct overlap {
    struct schedule *s;
    const struct ir_graph *g;
    struct ir_builder b;
    ir_id *map;
    struct run *early;  // by value: rows that wait for no exchange
    bool *is_stored;    // by value: it is made in parts
    uint32_t *first_of; // by value: in made
    VEC(struct made) made;
};

static int64_t rows_of(const struct ir_graph *g, ir_id v)
{
    return ir_rank_of(g, v) ? ir_dims_of(g, v)[0] : 1;
}

static int64_t int_of(const struct ir_node *n, enum ir_key key, int i)
{
    int count;
    const int64_t *x = ir_attr_ints(n->attrs, key, &count);
    return x && i < count ? x[i] : 0;
}

// ---- Rows that wait for nothing

static struct run intersection(struct run a, struct run b)
{
    struct run r = {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
    return r.first < r.end ? r : (struct run){0};
}

// The longest run of rows that are early, of rows that are told one after the other.
struct longest {
    struct run best, last;
};

static void add_rows(struct longest *l, int64_t end, struct run early)
{
    if (early.first < early.end)
        l->last =
            (struct run){early.first == l->last.end ? l->last.first : early.first, early.end};
    if (l->last.end - l->last.first > l->best.end - l->best.first)
        l->best = l->last;
    if (l->last.end < end)
        l->last = (struct run){end, end};
}

static struct run move(struct run r, int64_t by)
{
    return (struct run){r.first + by, r.end + by};
}

static struct run early_of_joined(const struct overlap *l, const struct ir_node *n)
{
    struct longest all = {0};
    int64_t at = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(l->g, n, i);
        int64_t end = at + rows_of(l->g, x);
        add_rows(&all, end, move(l->early[x], at));
        at = end;
    }
    return all.best;
}

static struct run early_of_padded(const struct overlap *l, const struct ir_node *n)
{
    ir_id x = ir_operand(l->g, n, 0);
    int64_t low = int_of(n, IR_KEY_low, 0), end = rows_of(l->g, n->out),
            rows = rows_of(l->g, x);
    struct run every = {0, end}, before = {0, low > 0 ? low : 0};
    struct longest all = {0};
    add_rows(&all, before.end, before);
    add_rows(&all, low + rows, intersection(every, move(l->early[x], low)));
    add_rows(&all, end, (struct run){low + rows < end ? low + rows : end, end});
    return all.best;
}

// Whether row r of the result is made of row r + by of each operand that has rows.
static bool keeps_rows(const struct ir_graph *g, const struct ir_node *n, int64_t *by)
{
    ir_id x = n->n_in ? ir_operand(g, n, 0) : IR_NONE;
    *by = 0;
    if (n->n_out != 1 || x == IR_NONE || ir_rank_of(g, n->out) == 0)
        return false;
    switch (n->op) {
    case IR_broadcast_in_dim:
        return ir_rank_of(g, x) && int_of(n, IR_KEY_axes, 0) == 0 &&
               rows_of(g, x) == rows_of(g, n->out);
    case IR_reshape:
        return ir_rank_of(g, x) && rows_of(g, x) == rows_of(g, n->out);
    case IR_transpose:
        return int_of(n, IR_KEY_axes, 0) == 0;
    case IR_slice:
        *by = int_of(n, IR_KEY_starts, 0);
        return int_of(n, IR_KEY_strides, 0) == 1;
    default:
        return ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP;
    }
}

static bool is_joined(const struct ir_node *n)
{
    return n->op == IR_concatenate && ir_attr_int(n->attrs, IR_KEY_axis) == 0;
}

static bool is_padded(const struct ir_node *n)
{
    return n->op == IR_pad && int_of(n, IR_KEY_interior, 0) == 0;
}

static struct run find_early(const struct overlap *l, const struct ir_node *n)
{
    const struct ir_graph *g = l->g;
    struct run early = {0, n->n_out ? rows_of(g, n->out) : 0};
    int64_t by;
    bool has_rows = keeps_rows(g, n, &by);
    if (n->op == IR_exchange)
        return (struct run){0};
    if (is_joined(n))
        return early_of_joined(l, n);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        bool is_all = l->early[x].end - l->early[x].first == rows_of(g, x);
        if (is_all || (is_padded(n) && i == 0))
            continue;
        early = has_rows && ir_rank_of(g, x) ? intersection(early, move(l->early[x], -by))
                                             : (struct run){0};
    }
    return is_padded(n) ? intersection(early, early_of_padded(l, n)) : early;
}

// ---- Rows of values

// Whether rows of the value are made of rows of its operands.
static bool is_made_of_rows(const struct overlap *l, ir_id v)
{
    const struct ir_node *n = ir_node_of(l->g, v);
    int64_t by;
    return !l->is_stored[v] && (is_joined(n) || is_padded(n) || keeps_rows(l->g, n, &by));
}

static ir_id rows(struct overlap *l, ir_id v, struct run r);

static ir_id joined_rows(struct overlap *l, const struct ir_node *n, struct run r)
{
    ir_id *parts = pass_no_values(l->g->module, n->n_in);
    uint32_t count = 0;
    int64_t at = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(l->g, n, i);
        int64_t end = at + rows_of(l->g, x);
        struct run part = intersection(r, (struct run){at, end});
        if (part.first < part.end)
            parts[count++] = rows(l, x, move(part, -at));
        at = end;
    }
    return count == 1 ? parts[0] : ir_concatenate(&l->b, (int)count, parts, 0);
}

static ir_id padded_rows(struct overlap *l, const struct ir_node *n, struct run r)
{
    int rank;
    ir_id x = ir_operand(l->g, n, 0), value = l->map[ir_operand(l->g, n, 1)];
    size_t size = (size_t)ir_rank_of(l->g, x) * sizeof(int64_t);
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], dims[IR_MAX_RANK], end = rows_of(l->g, x);
    memcpy(low, ir_attr_ints(n->attrs, IR_KEY_low, &rank), size);
    memcpy(high, ir_attr_ints(n->attrs, IR_KEY_high, &rank), size);
    struct run part = intersection((struct run){0, end}, move(r, -low[0]));
    if (part.first == part.end) {
        memcpy(dims, ir_dims_of(l->g, n->out), size);
        dims[0] = r.end - r.first;
        return ir_broadcast_in_dim(&l->b, value, rank, dims, NULL);
    }
    high[0] = r.end - low[0] > end ? r.end - low[0] - end : 0;
    low[0] = low[0] > r.first ? low[0] - r.first : 0;
    return ir_pad(&l->b, rows(l, x, part), value, low, high,
                  ir_attr_ints(n->attrs, IR_KEY_interior, &rank));
}

static ir_id rows_by_slice(struct ir_builder *b, ir_id x, struct run r, const int64_t *starts,
                           const int64_t *limits, const int64_t *strides)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t first[IR_MAX_RANK] = {0}, end[IR_MAX_RANK];
    memcpy(end, ir_dims(b->module, t), (size_t)t.rank * sizeof *end);
    for (int i = 1; i < t.rank && starts; i++) {
        first[i] = starts[i];
        end[i] = limits[i];
    }
    first[0] = r.first;
    end[0] = r.end;
    return ir_slice(b, x, first, end, strides);
}

static ir_id make_rows(struct overlap *l, ir_id v, struct run r)
{
    const struct ir_graph *g = l->g;
    const struct ir_node *n = ir_node_of(g, v);
    int64_t by, dims[IR_MAX_RANK];
    int rank;
    l->b.where = n->where;
    if (!is_made_of_rows(l, v))
        return rows_by_slice(&l->b, l->map[v], r, NULL, NULL, NULL);
    if (is_joined(n))
        return joined_rows(l, n, r);
    if (is_padded(n))
        return padded_rows(l, n, r);
    keeps_rows(g, n, &by);
    ir_id *in = pass_no_values(g->module, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        in[i] = ir_rank_of(g, x) ? rows(l, x, move(r, by)) : l->map[x];
    }
    l->b.where = n->where;
    memcpy(dims, ir_dims_of(g, v), (size_t)ir_rank_of(g, v) * sizeof *dims);
    dims[0] = r.end - r.first;
    if (n->op == IR_broadcast_in_dim)
        return ir_broadcast_in_dim(&l->b, in[0], ir_rank_of(g, v), dims,
                                   ir_attr_ints(n->attrs, IR_KEY_axes, &rank));
    if (n->op == IR_reshape)
        return ir_reshape(&l->b, in[0], ir_rank_of(g, v), dims);
    if (n->op == IR_slice)
        return rows_by_slice(&l->b, in[0], (struct run){0, dims[0]},
                             ir_attr_ints(n->attrs, IR_KEY_starts, &rank),
                             ir_attr_ints(n->attrs, IR_KEY_limits, &rank),
                             ir_attr_ints(n->attrs, IR_KEY_strides, &rank));
    return ir_rebuild(&l->b, g, n, in);
}

static ir_id rows(struct overlap *l, ir_id v, struct run r)
{
    if (r.first == 0 && r.end == rows_of(l->g, v))
        return l->map[v];
    for (uint32_t i = l->first_of[v]; i; i = l->made.at[i - 1].next)
        if (l->made.at[i - 1].rows.first == r.first && l->made.at[i - 1].rows.end == r.end)
            return l->made.at[i - 1].value;
    ir_id made = make_rows(l, v, r);
    vec_push(l->g->module->arena, &l->made, (struct made){r, made, l->first_of[v]});
    l->first_of[v] = l->made.count;
    return made;
}

// ---- Which values

// Counts values that would be made anew, once for each way that leads to them; no dear ones.
static bool is_cheap(const struct overlap *l, ir_id v, uint32_t *count)
{
    const struct ir_node *n = ir_node_of(l->g, v);
    if (!is_made_of_rows(l, v))
        return true;
    if (++*count > COST_BESIDE_VALUES || node_is_dear(l->g, n))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!is_cheap(l, ir_operand(l->g, n, i), count))
            return false;
    return true;
}

// Whether it pays to make the early rows of the value first.
static bool is_worth_parts(const struct overlap *l, ir_id v)
{
    struct run early = l->early[v];
    int64_t all = rows_of(l->g, v), count = early.end - early.first;
    uint32_t values = 0;
    if (count == 0 || count == all)
        return false;
    double bytes = (double)value_count(l->s, v) / (double)all * (double)count *
                   dtype_get(ir_dtype_of(l->g, v))->bytes;
    return (l->s->options->large || 2 * bytes > COST_BESIDE * (double)COST_BYTES_PER_US) &&
           is_made_of_rows(l, v) && is_cheap(l, v, &values);
}

static void store_in_parts(struct overlap *l, ir_id v)
{
    int64_t end = rows_of(l->g, v);
    struct run early = l->early[v], all[] = {{0, early.first}, early, {early.end, end}};
    ir_id parts[3];
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (all[i].first < all[i].end) {
            ir_id part = rows(l, v, all[i]);
            parts[count++] = ir_build(&l->b, IR_barrier, 1, &part, NULL);
        }
    l->map[v] = ir_concatenate(&l->b, count, parts, 0);
    l->is_stored[v] = true;
}

static bool is_barrier(const struct ir_node *n) { return n->op == IR_barrier && n->n_in == 1; }

// What has memory whatever the kernels are: results, operands of steps and what a barrier is of.
static bool *find_stored(const struct ir_graph *g)
{
    bool *is_stored = arena_array(g->module->arena, bool, g->values.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        is_stored[g->outputs.at[i]] = true;
    ir_for_each_node (g, n)
        for (uint32_t i = 0; i < n->n_in && (node_is_steps(n) || is_barrier(n)); i++)
            is_stored[ir_operand(g, n, i)] = true;
    return is_stored;
}

static bool has_exchanges(const struct ir_graph *g)
{
    ir_for_each_node (g, n)
        if (n->op == IR_exchange)
            return true;
    return false;
}

const struct ir_graph *schedule_overlap_exchanges(struct schedule *s)
{
    const struct ir_graph *g = s->g;
    if (!s->options->early_exchanges || s->options->separate || !has_exchanges(g))
        return g;
    struct overlap l = {.s = s,
                        .g = g,
                        .b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN),
                        .map = pass_no_values(g->module, g->values.count),
                        .early = arena_array(g->module->arena, struct run, g->values.count + 1),
                        .is_stored = arena_array(g->module->arena, bool, g->values.count + 1),
                        .first_of =
                            arena_array(g->module->arena, uint32_t, g->values.count + 1)};
    const bool *is_stored = find_stored(g);
    bool any = false;
    pass_copy_params(&l.b, g, NULL, true, l.map);
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        struct run early = find_early(&l, n);
        if (at >= g->n_params)
            pass_copy_node(&l.b, g, n, l.map);
        for (uint32_t k = 0; k < n->n_out; k++)
            l.early[n->out + k] =
                k && early.end ? (struct run){0, rows_of(g, n->out + k)} : early;
        if (n->n_out == 1 && is_stored[n->out] && is_worth_parts(&l, n->out)) {
            store_in_parts(&l, n->out);
            any = true;
        }
    }
    pass_copy_outputs(&l.b, g, l.map);
    const struct ir_graph *out = any ? ir_finish(&l.b) : NULL;
    return out ? ir_canonical(out) : g;
}
