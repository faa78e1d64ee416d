// SPDX-License-Identifier: Apache-2.0
// Unroll-and-jam: several elements of an axis of points share what their folds load.
//
//     par i < 4, j < 1024 {                        par j < 1024 {
//       fold k < 1024 {                              fold k < 1024 {
//         %0 = load x[1024*i + k]                      %0 = load x[k]
//         %1 = load w[j + 1024*k]         becomes      %1 = load w[j + 1024*k]
//         yield fma %0 %1 sum64                        %2 = load x[1024 + k] ...
//       } -> %2                                        yield fma %0 %1 sum64, fma %2 %1 sum64 ...
//       put y[1024*i + j] = %2                       } -> %5, %6, %7, %8
//                                                    put y[j] = %5; put y[1024 + j] = %6 ...
//
// It is worth it where a long fold reads much memory that is the same for all elements of the axis: a product of a
// few rows reads its matrix once.  Each element keeps its operations and their order.
#include "map/map.h"
#include "passes/cost.h"

enum {
    MOST_ELEMENTS = 8,                 // of the axis that go together
    LONG_FOLD = 4 * COST_ACCUMULATORS, // turns
};

static const struct nest_statement *statement(const struct nest *n, nest_id id)
{
    return &n->statements.at[id];
}

// ---- What depends on an axis

static bool any_varies(const bool *varies, uint32_t count, const nest_id *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (varies[values[i]])
            return true;
    return false;
}

static bool index_varies(const struct nest_index *x, nest_id axis, const bool *varies)
{
    if (nest_index_factor(x, axis))
        return true;
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].is_value && varies[x->terms[i].id])
            return true;
    return false;
}

static bool statement_varies(const struct nest_statement *s, nest_id axis, const bool *varies)
{
    return any_varies(varies, s->n_in, s->in) || index_varies(&s->index, axis, varies) ||
           (s->guard != NEST_NONE && varies[s->guard]);
}

static void mark(bool *varies, nest_id first, uint32_t count, bool does)
{
    for (uint32_t i = 0; i < count; i++)
        varies[first + i] = does;
}

// The bytes that a load in the fold meets over all points and turns.
static double bytes_met(const struct nest *n, const struct nest_statement *load)
{
    double count = (double)n->buffers.at[load->buffer].count, met = 1;
    for (uint32_t i = 0; i < load->index.count; i++)
        met *= load->index.terms[i].is_value
                   ? count
                   : (double)n->axes.at[load->index.terms[i].id].extent;
    return (met < count ? met : count) * dtype_get(load->dtype)->bytes;
}

// What a walk finds; false where a statement stands that has no copies side by side.
struct found {
    nest_id axis;
    bool *varies;  // values, with the axis
    double shared; // bytes that long folds load for all elements of it
    bool work_is_loads;
};

static bool look(const struct nest *n, uint32_t block, bool in_fold, struct found *f)
{
    const struct nest_block *b = &n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = statement(n, b->statements.at[i]);
        bool does = statement_varies(s, f->axis, f->varies);
        switch (s->kind) {
        case NEST_LOAD:
            if (n->buffers.at[s->buffer].role == NEST_LOCAL)
                return false;
            if (in_fold && !does && s->guard == NEST_NONE)
                f->shared += bytes_met(n, s);
            break;
        case NEST_OP:
            f->work_is_loads &= !in_fold || !cost_is_expensive(s->op, s->dtype);
            break;
        case NEST_CONST:
        case NEST_INDEX:
            break;
        case NEST_PUT:
            if (s->op || in_fold || n->buffers.at[s->buffer].role == NEST_LOCAL)
                return false;
            break;
        case NEST_FOLD: {
            if (in_fold || nest_extent(n, s) < LONG_FOLD || !look(n, s->body, true, f))
                return false;
            nest_id result = s->result;
            for (uint32_t k = 0; k < s->n_combines; k++) {
                const struct nest_combine *c = &s->combines[k];
                uint32_t results = nest_combine_results(c->op);
                mark(f->varies, result, results, any_varies(f->varies, c->n, c->value));
                result += results;
            }
            continue;
        }
        case NEST_PAR:
            if (!look(n, s->body, false, f))
                return false;
            continue;
        default:
            return false;
        }
        mark(f->varies, s->result, s->n_results, does);
    }
    return true;
}

// ---- Copies

struct jam {
    const struct nest *from;
    struct nest_builder b;
    nest_id axis;
    int64_t elements; // of it that go together
    const bool *varies;
    nest_id *value[MOST_ELEMENTS]; // by value of `from`, that of each element
};

static nest_id value_of(const struct jam *j, int64_t e, nest_id v)
{
    return v == NEST_NONE ? v : j->value[e][v];
}

static const nest_id *values_of(const struct jam *j, int64_t e, uint32_t count,
                                const nest_id *values)
{
    nest_id *to = arena_array(j->from->arena, nest_id, count + 1);
    for (uint32_t i = 0; i < count; i++)
        to[i] = value_of(j, e, values[i]);
    return to;
}

// Of element e: the axis walks over groups of elements.
static struct nest_index index_of(const struct jam *j, int64_t e, const struct nest_index *x)
{
    struct nest_term *terms = arena_array(j->from->arena, struct nest_term, x->count + 1);
    int64_t constant = x->constant;
    for (uint32_t i = 0; i < x->count; i++) {
        terms[i] = x->terms[i];
        if (terms[i].is_value) {
            terms[i].id = value_of(j, e, terms[i].id);
        } else if (terms[i].id == j->axis) {
            constant += e * terms[i].factor;
            terms[i].factor *= j->elements;
        }
    }
    return nest_index_make(j->from->arena, constant, (int)x->count, terms);
}

static void copy_block(struct jam *j, uint32_t block);

static void set_results(struct jam *j, int64_t e, const struct nest_statement *s, nest_id first)
{
    for (uint32_t i = 0; i < s->n_results; i++)
        j->value[e][s->result + i] = first + i;
}

static void copy_plain(struct jam *j, int64_t e, const struct nest_statement *s)
{
    struct nest_builder *b = &j->b;
    nest_id guard = value_of(j, e, s->guard), first = NEST_NONE;
    struct nest_index index = index_of(j, e, &s->index);
    const nest_id *in = values_of(j, e, s->n_in, s->in);
    if (s->kind == NEST_OP)
        first = nest_op(b, s->op, s->dtype, (int)s->n_in, in, s->bits);
    else if (s->kind == NEST_CONST)
        first = nest_const(b, s->dtype, s->bits);
    else if (s->kind == NEST_INDEX)
        first = nest_index_value(b, index, s->dtype);
    else if (s->kind == NEST_LOAD)
        first = nest_load(b, s->buffer, index, guard);
    else
        nest_put(b, s->buffer, index, in[0], guard);
    set_results(j, e, s, first);
}

// One fold for all elements: what varies is combined for each of them.
static void copy_fold(struct jam *j, const struct nest_statement *s)
{
    struct nest_combine *combines =
        arena_array(j->from->arena, struct nest_combine, s->n_combines * MOST_ELEMENTS + 1);
    int n = 0;
    nest_open(&j->b, NEST_FOLD, (int)s->n_axes, s->axes);
    copy_block(j, s->body);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        bool varies = any_varies(j->varies, c->n, c->value);
        for (int64_t e = 0; e < (varies ? j->elements : 1); e++) {
            combines[n] = *c;
            for (uint32_t i = 0; i < c->n; i++)
                combines[n].value[i] = value_of(j, e, c->value[i]);
            n++;
        }
    }
    nest_id made = nest_close(&j->b, n, combines), result = s->result;
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        uint32_t results = nest_combine_results(c->op);
        bool varies = any_varies(j->varies, c->n, c->value);
        for (int64_t e = 0; e < j->elements; e++)
            for (uint32_t i = 0; i < results; i++)
                j->value[e][result + i] = made + (varies ? (nest_id)e * results : 0) + i;
        made += (nest_id)(varies ? j->elements : 1) * results;
        result += results;
    }
}

static void copy_block(struct jam *j, uint32_t block)
{
    const struct nest_block *b = &j->from->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = statement(j->from, b->statements.at[i]);
        j->b.where = s->where;
        if (s->kind == NEST_FOLD) {
            copy_fold(j, s);
        } else if (s->kind == NEST_PAR) {
            nest_open(&j->b, NEST_PAR, (int)s->n_axes, s->axes);
            copy_block(j, s->body);
            nest_close(&j->b, 0, NULL);
        } else {
            bool varies = statement_varies(s, j->axis, j->varies);
            copy_plain(j, 0, s);
            for (int64_t e = 1; e < j->elements; e++)
                if (varies)
                    copy_plain(j, e, s);
                else if (s->n_results)
                    set_results(j, e, s, j->value[0][s->result]);
        }
    }
}

static struct nest *jammed(const struct nest *n, const struct found *f, int64_t elements)
{
    struct jam j = {.from = n,
                    .b = nest_builder_make(n->arena, n->name),
                    .axis = f->axis,
                    .elements = elements,
                    .varies = f->varies};
    for (int64_t e = 0; e < elements; e++)
        j.value[e] = arena_array(n->arena, nest_id, n->values.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        vec_push(n->arena, &j.b.nest->buffers, n->buffers.at[i]);
    for (uint32_t i = 0; i < n->axes.count; i++)
        vec_push(n->arena, &j.b.nest->axes, n->axes.at[i]);
    j.b.nest->axes.at[f->axis].extent /= elements;
    j.b.nest->place = n->place;
    copy_block(&j, 0);
    return j.b.nest;
}

// ---- Where

// How many elements of the axis go together, the rest of it in whole groups; 1 for none.
static int64_t elements_of(int64_t extent)
{
    static const int64_t sizes[] = {4, 3, 2, 5, 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (extent % sizes[i] == 0)
            return sizes[i];
    return 1;
}

// The only loop of the nest, over points, NEST_NONE when it is another one.
static nest_id only_loop(const struct nest *n)
{
    const struct nest_block *b = &n->blocks.at[0];
    nest_id loop = NEST_NONE;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = statement(n, b->statements.at[i]);
        if (s->body == NEST_NONE)
            continue;
        if (s->kind != NEST_PAR || loop != NEST_NONE)
            return NEST_NONE;
        loop = b->statements.at[i];
    }
    return loop;
}

bool map_jam(struct nest *n)
{
    nest_id loop = only_loop(n), lanes;
    if (loop == NEST_NONE)
        return false;
    const struct nest_statement *s = statement(n, loop);
    struct found best = {.shared = COST_NEAR_BYTES};
    int64_t elements = 1;
    map_cost(n, loop, &lanes);
    for (uint32_t i = 0; i < s->n_axes; i++) {
        struct found f = {.axis = s->axes[i],
                          .varies = arena_array(n->arena, bool, n->values.count + 1),
                          .work_is_loads = true};
        int64_t together = elements_of(n->axes.at[f.axis].extent);
        if (f.axis == lanes || together == 1 || !look(n, 0, false, &f) || !f.work_is_loads ||
            f.shared <= best.shared)
            continue;
        best = f;
        elements = together;
    }
    if (elements > 1)
        *n = *jammed(n, &best, elements);
    return elements > 1;
}
