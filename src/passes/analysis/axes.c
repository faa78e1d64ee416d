// SPDX-License-Identifier: Apache-2.0
// Axes of values as sequences of atoms.
//
// Seen from the loops of a kernel, an axis of a value is an ordered product of atoms.  Elementwise
// ops, broadcasts and transposes keep atoms; a reshape splits them to common factors, so that a
// merged axis keeps its identity and no index needs a division; other changes of index (a slice, a
// reversal, a padding) make a derived atom: a coordinate that depends on the old ones but is none
// of them.
#include "passes/analysis/axes.h"

#include "ir/index_map.h"
#include "ir/indexing.h"

atom_id axes_atom(struct axes *s, int64_t extent)
{
    atom_id a = s->atoms.count;
    vec_push(s->scratch, &s->atoms,
             (struct atom){.extent = extent, .same = a, .high = NONE, .low = NONE});
    return a;
}

static atom_id derived_atom(struct axes *s, int64_t extent, struct atoms from)
{
    atom_id a = axes_atom(s, extent);
    s->atoms.at[a].is_derived = true;
    s->atoms.at[a].from = from.at;
    s->atoms.at[a].n_from = from.count;
    return a;
}

atom_id axes_root(const struct axes *s, atom_id a)
{
    while (s->atoms.at[a].same != a)
        a = s->atoms.at[a].same;
    return a;
}

typedef VEC(atom_id) atom_list;

static struct atoms list_atoms(const atom_list *l)
{
    return (struct atoms){.count = l->count, .at = l->at};
}

static void push_leaves(struct axes *s, atom_list *l, atom_id a)
{
    // The lower parts wait; an atom of extent E has at most log2(E) parts.
    atom_id wait[64];
    int n = 0;
    wait[n++] = a;
    while (n) {
        a = axes_root(s, wait[--n]);
        if (s->atoms.at[a].high == NONE) {
            vec_push(s->scratch, l, a);
            continue;
        }
        wait[n++] = s->atoms.at[a].low;
        wait[n++] = s->atoms.at[a].high;
    }
}

// Whether the atoms are leaves already, which is what they mostly are.
static bool are_leaves(const struct axes *s, struct atoms x)
{
    for (uint32_t i = 0; i < x.count; i++) {
        const struct atom *a = &s->atoms.at[x.at[i]];
        if (a->same != x.at[i] || a->high != NONE)
            return false;
    }
    return true;
}

struct atoms axes_leaves(struct axes *s, struct atoms x)
{
    atom_list l = {0};
    if (are_leaves(s, x))
        return x;
    for (uint32_t i = 0; i < x.count; i++)
        push_leaves(s, &l, x.at[i]);
    return list_atoms(&l);
}

struct atoms axes_of_view(struct axes *s, struct view v)
{
    atom_list l = {0};
    for (uint32_t i = 0; i < v.rank; i++)
        for (uint32_t k = 0; k < v.dims[i].count; k++)
            push_leaves(s, &l, v.dims[i].at[k]);
    return list_atoms(&l);
}

bool axes_contain(const struct axes *s, struct atoms set, atom_id a)
{
    (void)s;
    for (uint32_t i = 0; i < set.count; i++)
        if (set.at[i] == a)
            return true;
    return false;
}

static void push_new(struct axes *s, atom_list *l, atom_id a)
{
    if (!axes_contain(s, list_atoms(l), a))
        vec_push(s->scratch, l, a);
}

struct atoms axes_dependence(struct axes *s, struct atoms x)
{
    atom_list l = {0}, wait = {0};
    x = axes_leaves(s, x);
    bool plain = true;
    for (uint32_t i = 0; i < x.count; i++)
        plain &= !s->atoms.at[x.at[i]].is_derived;
    if (plain)
        return x;
    for (uint32_t i = x.count; i-- > 0;)
        vec_push(s->scratch, &wait, x.at[i]);
    while (wait.count) {
        atom_id a = wait.at[--wait.count];
        const struct atom *atom = &s->atoms.at[a];
        if (!atom->is_derived) {
            push_new(s, &l, a);
            continue;
        }
        // Derived atoms are made with their dependence resolved, so one step is enough but for
        // splits and unions since.
        struct atoms from =
            axes_leaves(s, (struct atoms){.count = atom->n_from, .at = atom->from});
        for (uint32_t i = from.count; i-- > 0;)
            vec_push(s->scratch, &wait, from.at[i]);
    }
    return list_atoms(&l);
}

struct atoms axes_concat(struct axes *s, struct atoms a, struct atoms b)
{
    if (!a.count)
        return b;
    if (!b.count)
        return a;
    atom_list l = {0};
    vec_reserve(s->scratch, &l, a.count + b.count);
    for (uint32_t i = 0; i < a.count; i++)
        vec_push(s->scratch, &l, a.at[i]);
    for (uint32_t i = 0; i < b.count; i++)
        vec_push(s->scratch, &l, b.at[i]);
    return list_atoms(&l);
}

// The atoms of a that are in b, or that are not.
static struct atoms filter(struct axes *s, struct atoms a, struct atoms b, bool in)
{
    atom_list l = {0};
    a = axes_leaves(s, a);
    b = axes_leaves(s, b);
    for (uint32_t i = 0; i < a.count; i++)
        if (axes_contain(s, b, a.at[i]) == in)
            vec_push(s->scratch, &l, a.at[i]);
    return list_atoms(&l);
}

struct atoms axes_intersect(struct axes *s, struct atoms a, struct atoms b)
{
    return filter(s, a, b, true);
}

struct atoms axes_minus(struct axes *s, struct atoms a, struct atoms b)
{
    return filter(s, a, b, false);
}

bool axes_include(const struct axes *s, struct atoms set, struct atoms part)
{
    for (uint32_t i = 0; i < part.count; i++)
        if (!axes_contain(s, set, part.at[i]))
            return false;
    return true;
}

bool axes_overlap(const struct axes *s, struct atoms a, struct atoms b)
{
    for (uint32_t i = 0; i < a.count; i++)
        if (axes_contain(s, b, a.at[i]))
            return true;
    return false;
}

bool axes_equal(struct axes *s, struct atoms a, struct atoms b)
{
    a = axes_leaves(s, a);
    b = axes_leaves(s, b);
    return a.count == b.count && (!a.count || !memcmp(a.at, b.at, a.count * sizeof *a.at));
}

int64_t axes_product(const struct axes *s, struct atoms a)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < a.count; i++)
        if (__builtin_mul_overflow(product, s->atoms.at[a.at[i]].extent, &product))
            return INT64_MAX;
    return product;
}

static struct atoms one_atom(struct axes *s, atom_id a)
{
    atom_id *at = arena_array(s->scratch, atom_id, 1);
    at[0] = a;
    return (struct atoms){.count = 1, .at = at};
}

struct view axes_fresh_view(struct axes *s, ir_id v)
{
    const int64_t *dims = ir_dims_of(s->g, v);
    uint32_t rank = (uint32_t)ir_rank_of(s->g, v);
    struct atoms *at = arena_array(s->scratch, struct atoms, rank);
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] != 1)
            at[i] = one_atom(s, axes_atom(s, dims[i]));
    return (struct view){.rank = rank, .dims = at};
}

bool axes_view_equal(struct axes *s, struct view a, struct view b)
{
    for (uint32_t i = 0; i < a.rank; i++)
        if (!axes_equal(s, a.dims[i], b.dims[i]))
            return false;
    return a.rank == b.rank;
}

static void split_atom(struct axes *s, atom_id a, int64_t high)
{
    struct atom old = s->atoms.at[a];
    struct atoms from = {.count = old.n_from, .at = old.from};
    int64_t low = old.extent / high;
    atom_id h = old.is_derived ? derived_atom(s, high, from) : axes_atom(s, high);
    atom_id l = old.is_derived ? derived_atom(s, low, from) : axes_atom(s, low);
    s->atoms.at[a].high = h;
    s->atoms.at[a].low = l;
}

void axes_split(struct axes *s, atom_id a, int64_t extent)
{
    split_atom(s, a, s->atoms.at[a].extent / extent);
}

// Splits the first atoms of both sequences until they have one extent.
static bool refine_heads(struct axes *s, atom_id a, atom_id b)
{
    int64_t x = s->atoms.at[a].extent, y = s->atoms.at[b].extent;
    if (x == y)
        return true;
    if (x == 0 || y == 0)
        return false;
    if (x > y && x % y == 0) {
        split_atom(s, a, y);
        return true;
    }
    if (y > x && y % x == 0) {
        split_atom(s, b, x);
        return true;
    }
    return false;
}

bool axes_refine(struct axes *s, struct atoms a, struct atoms b)
{
    for (uint32_t i = 0;;) {
        a = axes_leaves(s, a);
        b = axes_leaves(s, b);
        if (i == a.count || i == b.count)
            return i == a.count && i == b.count;
        if (s->atoms.at[a.at[i]].extent == s->atoms.at[b.at[i]].extent) {
            i++;
            continue;
        }
        if (!refine_heads(s, a.at[i], b.at[i]))
            return false;
    }
}

static bool are_distinct(struct atoms x)
{
    for (uint32_t i = 0; i < x.count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (x.at[i] == x.at[k])
                return false;
    return true;
}

bool axes_unify(struct axes *s, struct view a, struct view b, struct atoms *out_united)
{
    for (uint32_t i = 0; i < a.rank; i++)
        if (!axes_refine(s, a.dims[i], b.dims[i]))
            return false;
    struct atoms x = axes_of_view(s, a), y = axes_of_view(s, b);
    if (x.count != y.count || !are_distinct(x) || !are_distinct(y))
        return false;
    for (uint32_t i = 0; i < x.count; i++)
        if (x.at[i] != y.at[i] &&
            (s->atoms.at[x.at[i]].is_derived || s->atoms.at[y.at[i]].is_derived ||
             axes_contain(s, x, y.at[i]) || axes_contain(s, y, x.at[i])))
            return false;
    for (uint32_t i = 0; i < x.count; i++)
        s->atoms.at[y.at[i]].same = x.at[i];
    *out_united = y;
    return true;
}

void axes_separate(struct axes *s, struct atoms united)
{
    for (uint32_t i = 0; i < united.count; i++)
        s->atoms.at[united.at[i]].same = united.at[i];
}

bool axes_take(struct axes *s, struct atoms *from, int64_t extent, struct atoms *out)
{
    atom_list l = {0};
    while (extent > 1) {
        *from = axes_leaves(s, *from);
        if (!from->count)
            return false;
        atom_id a = from->at[0];
        int64_t have = s->atoms.at[a].extent;
        if (have > 1 && have <= extent && extent % have == 0) {
            vec_push(s->scratch, &l, a);
            extent /= have;
            from->at++;
            from->count--;
        } else if (have > extent && have % extent == 0) {
            split_atom(s, a, extent);
        } else {
            return false;
        }
    }
    *out = list_atoms(&l);
    return true;
}

static struct atoms derive(struct axes *s, int64_t extent, struct atoms from)
{
    if (extent == 1)
        return (struct atoms){0};
    return one_atom(s, derived_atom(s, extent, axes_dependence(s, from)));
}

// Both shapes in blocks of equal products: in each the atoms of the result are dealt out to the
// axes of the operand.
static void view_of_reshape(struct axes *s, int rank, const int64_t *dims, int result_rank,
                            const int64_t *result_dims, struct view result, struct atoms *out)
{
    int i = 0, k = 0;
    for (int d = 0; d < rank; d++)
        if (dims[d] == 0)
            return; // nothing is ever read
    while (i < rank || k < result_rank) {
        int first = i;
        int64_t x = i < rank ? dims[i++] : 1, y = 1;
        struct atoms block = {0};
        if (k < result_rank) {
            y = result_dims[k];
            block = axes_concat(s, block, result.dims[k++]);
        }
        while (x != y) {
            if ((x < y && i < rank) || k == result_rank) {
                x *= dims[i++];
            } else {
                y *= result_dims[k];
                block = axes_concat(s, block, result.dims[k++]);
            }
        }
        struct atoms rest = axes_leaves(s, block);
        bool fits = true;
        for (int d = first; d < i && fits; d++)
            fits = axes_take(s, &rest, dims[d], &out[d]);
        for (int d = first; d < i && !fits; d++)
            out[d] = derive(s, dims[d], block);
    }
}

// A coordinate that is one of the result keeps its atoms.
static void view_by_map(struct axes *s, const struct ir_node *n, uint32_t i,
                        const int64_t *dims, struct view result, struct atoms *out)
{
    struct ir_index_map map;
    ir_index_map_of(s->g, n, i, &map);
    for (int d = 0; d < map.rank; d++) {
        const struct ir_index_axis *a = &map.axes[d];
        struct atoms from = {0};
        for (int t = 0; t < a->n_terms; t++)
            from = axes_concat(s, from, result.dims[a->axis[t]]);
        out[d] = a->is_kept ? from : derive(s, dims[d], from);
    }
}

// Seen from the result of a gather or from the updates of a scatter.
static void view_of_windows(struct axes *s, const struct ir_node *n, uint32_t i,
                            const int64_t *dims, struct view result, struct atoms *out)
{
    const struct ir_graph *g = s->g;
    struct ir_type x = ir_type_of(g, ir_operand(g, n, 0));
    struct ir_type indices = ir_type_of(g, ir_operand(g, n, 1));
    bool is_update = ir_op_class((enum ir_op)n->op) == IR_CLASS_UPDATE;
    ir_id y = is_update ? ir_operand(g, n, 2) : n->out;
    struct ir_window w = ir_window_of(g->module, n->attrs, x, indices, ir_type_of(g, y));
    struct atoms window = {0};
    for (int a = 0; a < w.index_rank; a++)
        window = axes_concat(s, window, result.dims[w.index_axis[a]]);
    if (i == 1) {
        for (int a = 0; a < w.index_rank; a++)
            out[a] = result.dims[w.index_axis[a]];
        out[w.index_rank] = derive(s, dims[w.index_rank], (struct atoms){0});
        return;
    }
    for (int d = 0; d < w.rank; d++) {
        struct atoms along = {0};
        if (w.along[d] >= 0)
            along = result.dims[w.along[d]];
        bool moves = w.component[d] >= 0 && dims[d] != w.size[d];
        if (moves)
            out[d] = derive(s, dims[d], axes_concat(s, window, along));
        else
            out[d] = w.is_batch[d] || w.size[d] == dims[d] ? along : derive(s, dims[d], along);
    }
}

static void view_of_indices(struct axes *s, const struct ir_node *n, uint32_t i,
                            const int64_t *dims, struct view result, struct atoms *out)
{
    uint32_t rank = (uint32_t)ir_rank_of(s->g, ir_operand(s->g, n, i));
    if (n->op != IR_dynamic_slice && n->op != IR_dynamic_update_slice) {
        view_of_windows(s, n, i, dims, result, out);
        return;
    }
    const int64_t *have = ir_dims_of(s->g, n->out);
    for (uint32_t d = 0; d < rank; d++) // starts have no axes
        out[d] = dims[d] == have[d] ? result.dims[d] : derive(s, dims[d], result.dims[d]);
}

struct view axes_operand_view(struct axes *s, const struct ir_node *n, uint32_t i,
                              struct view result)
{
    ir_id v = ir_operand(s->g, n, i);
    uint32_t rank = (uint32_t)ir_rank_of(s->g, v);
    const int64_t *dims = ir_dims_of(s->g, v);
    struct atoms *out = arena_array(s->scratch, struct atoms, rank);
    enum ir_class class = ir_op_class((enum ir_op)n->op);
    if (n->op == IR_reshape)
        view_of_reshape(s, (int)rank, dims, ir_rank_of(s->g, n->out), ir_dims_of(s->g, n->out),
                        result, out);
    else if (ir_op_get((enum ir_op)n->op)->index)
        view_by_map(s, n, i, dims, result, out);
    else if (class == IR_CLASS_INDEX || class == IR_CLASS_UPDATE)
        view_of_indices(s, n, i, dims, result, out);
    else
        for (uint32_t d = 0; d < rank; d++)
            if (dims[d] != 1)
                out[d] = result.dims[d];
    return (struct view){.rank = rank, .dims = out};
}

struct atoms axes_fold_atoms(struct axes *s, const struct ir_node *n)
{
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    const int64_t *dims = ir_dims_of(s->g, ir_operand(s->g, n, 0));
    atom_list l = {0};
    for (int i = 0; i < count; i++)
        if (dims[axes[i]] != 1)
            vec_push(s->scratch, &l, axes_atom(s, dims[axes[i]]));
    return list_atoms(&l);
}

static void put_folded(struct axes *s, struct atoms *out, const int64_t *dims, int count,
                       const int64_t *axes, struct atoms folded)
{
    struct atoms rest = axes_leaves(s, folded);
    for (int i = 0; i < count; i++)
        if (dims[axes[i]] != 1)
            axes_take(s, &rest, dims[axes[i]], &out[axes[i]]);
}

static void put_dot(struct axes *s, const struct ir_node *n, uint32_t i, struct view result,
                    struct atoms *out)
{
    struct dot_shape d = dot_shape_of(s->g, n);
    int next = d.n_batch + (i ? d.n_free[0] : 0);
    for (int k = 0; k < d.n_batch; k++)
        out[d.batch[i][k]] = result.dims[k];
    for (int k = 0; k < d.n_free[i]; k++)
        out[d.free[i][k]] = result.dims[next + k];
}

struct view axes_folded_view(struct axes *s, const struct ir_node *n, uint32_t i,
                             struct view result, struct atoms folded)
{
    ir_id v = ir_operand(s->g, n, i);
    uint32_t rank = (uint32_t)ir_rank_of(s->g, v);
    const int64_t *dims = ir_dims_of(s->g, v);
    struct atoms *out = arena_array(s->scratch, struct atoms, rank);
    int count;
    const int64_t *axes = node_folded_axes(n, i, &count);
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTRACT) {
        put_dot(s, n, i, result, out);
    } else {
        uint32_t set = 0;
        for (int k = 0; k < count; k++)
            set |= UINT32_C(1) << axes[k];
        for (uint32_t d = 0, next = 0; d < rank; d++)
            if (!(set >> d & 1))
                out[d] = result.dims[next++];
    }
    put_folded(s, out, dims, count, axes, folded);
    return (struct view){.rank = rank, .dims = out};
}
