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
// few rows reads its matrix once.  Few elements go in parts of a body, one behind the other; of more, groups of
// them are a loop, and what is left is a loop behind it.  Each element keeps its operations and their order.
#include "ir/cost.h"
#include "map/map.h"

// ---- What depends on an axis

// What a walk over the body of a loop finds.
struct found {
    const struct nest *n;
    nest_id axis, lanes; // of the loop
    nest_id *scopes;     // by buffer
    bool *varies;        // by value: with the axis
    bool *has_copies;    // by buffer: each element has its own
    bool *inside;        // by axis: walked for each element
    bool *is_inside;     // by statement: the loop, and what is in it
    bool again;          // what has copies was not known yet
    double shared;       // bytes that long folds load for all elements of the axis
    uint32_t combines;   // of a fold, those that vary, at most
    bool has_own_lanes;  // a fold
};

static bool any_varies(const struct found *f, uint32_t count, const nest_id *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (f->varies[values[i]])
            return true;
    return false;
}

static bool statement_varies(const struct found *f, const struct nest_statement *s)
{
    return nest_index_factor(&s->index, f->axis) || nest_takes(s, f->varies) ||
           (s->kind == NEST_LOAD && f->has_copies[s->buffer]);
}

static void mark(const struct found *f, nest_id first, uint32_t count, bool does)
{
    for (uint32_t i = 0; i < count; i++)
        f->varies[first + i] = does;
}

// The bytes that a load meets from one element of the axis to the next.
static double bytes_between(const struct found *f, const struct nest_statement *load)
{
    double count = (double)f->n->buffers.at[load->buffer].count, met = 1;
    for (uint32_t i = 0; i < load->index.count; i++) {
        const struct nest_term *t = &load->index.terms[i];
        double extent = t->is_value ? count : (double)f->n->axes.at[t->id].extent;
        if (!t->is_value && !f->inside[t->id])
            extent = t->id != f->lanes            ? 1
                     : extent < COST_ACCUMULATORS ? extent
                                                  : COST_ACCUMULATORS;
        met *= extent;
    }
    return (met < count ? met : count) * dtype_get(load->dtype)->bytes;
}

static bool look(struct found *f, uint32_t block, nest_id points, nest_id fold);

static bool look_at_fold(struct found *f, nest_id id, nest_id points)
{
    const struct nest_statement *s = nest_statement_at(f->n, id);
    nest_id result = s->result, lanes;
    uint32_t combines = 0;
    double before = f->shared;
    if (!look(f, s->body, points, id))
        return false;
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        uint32_t results = nest_combine_results(c->op);
        bool does = any_varies(f, c->n, c->value);
        mark(f, result, results, does);
        result += results;
        combines += does;
    }
    if (f->shared > before) {
        f->combines = combines > f->combines ? combines : f->combines;
        map_cost(f->n, points, &lanes);
        f->has_own_lanes |=
            lanes == NEST_NONE || map_folds_by_lane(f->n, nest_statement_at(f->n, points), s,
                                                    lanes, (struct map_time){NEST_NONE, 0});
    }
    return true;
}

// Of the block, which stands in the loop `points` and, but for NEST_NONE, a fold there.  False where a statement
// stands that has no copies side by side, or they are not worth it: the work of a fold that shares loads is another.
static bool look(struct found *f, uint32_t block, nest_id points, nest_id fold)
{
    bool shares = false, is_expensive = false;
    nest_for_each (s, f->n, block) {
        nest_id id = nest_id_of(f->n, s);
        bool does = statement_varies(f, s), is_loop = s->body != NEST_NONE;
        f->is_inside[id] = true;
        for (uint32_t k = 0; is_loop && k < s->n_axes; k++)
            f->inside[s->axes[k]] = true;
        switch (s->kind) {
        case NEST_LOAD:
            if (fold != NEST_NONE && !does && s->guard == NEST_NONE &&
                nest_extent(f->n, nest_statement_at(f->n, fold)) >= COST_JAM_TERMS) {
                f->shared += bytes_between(f, s);
                shares = true;
            }
            break;
        case NEST_OP:
            is_expensive |= fold != NEST_NONE && does && cost_is_expensive(s->op, s->dtype);
            break;
        case NEST_CONST:
        case NEST_INDEX:
            break;
        case NEST_PUT:
            if (s->op)
                return false;
            if (does && f->scopes[s->buffer] != NEST_NONE &&
                f->is_inside[f->scopes[s->buffer]] && !f->has_copies[s->buffer])
                f->again = f->has_copies[s->buffer] = true;
            break;
        case NEST_FOLD:
            if (!look_at_fold(f, id, points))
                return false;
            continue;
        case NEST_PAR:
        case NEST_MAP:
            if (!look(f, s->body, fold == NEST_NONE ? id : points, fold))
                return false;
            continue;
        default:
            return false;
        }
        mark(f, s->result, s->n_results, does);
    }
    return !shares || !is_expensive;
}

// ---- How many go together

// Of a loop over points.
struct choice {
    struct found found;
    int64_t most; // elements together, 0: none
};

static struct choice look_at_axis(const struct nest *n, nest_id loop, uint32_t at,
                                  nest_id lanes)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    struct choice c = {
        .found = {.n = n,
                  .axis = s->axes[at],
                  .lanes = lanes,
                  .scopes = arena_array(n->arena, nest_id, n->buffers.count + 1),
                  .varies = arena_array(n->arena, bool, n->values.count + 1),
                  .has_copies = arena_array(n->arena, bool, n->buffers.count + 1),
                  .inside = arena_array(n->arena, bool, n->axes.count + 1),
                  .is_inside = arena_array(n->arena, bool, n->statements.count + 1)}};
    struct found *f = &c.found;
    nest_local_scopes(n, f->scopes);
    f->is_inside[loop] = true;
    for (uint32_t i = at + 1; i < s->n_axes; i++)
        f->inside[s->axes[i]] = true;
    do {
        f->again = false;
        f->shared = 0;
        if (!look(f, s->body, loop, NEST_NONE))
            return c;
    } while (f->again);
    int64_t most = f->has_own_lanes ? COST_JAM_OF_LANES : COST_JAM_TOGETHER;
    int64_t code = nest_code(n, s->body, 1, 1, COST_EXPANDED_OPS);
    if (!code)
        return c;
    most /= f->combines ? f->combines : 1;
    most = most < COST_EXPANDED_OPS / code ? most : COST_EXPANDED_OPS / code;
    c.most = most > 1 && n->axes.at[f->axis].extent > 1 ? most : 0;
    return c;
}

// The choices of the loops of the block, by statement.
static bool choose_jams(const struct nest *n, uint32_t block, struct choice *choices)
{
    const struct nest_block *b = &n->blocks.at[block];
    bool any = false;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id loop = b->statements.at[i], lanes;
        const struct nest_statement *s = nest_statement_at(n, loop);
        if (s->kind != NEST_PAR && s->kind != NEST_MAP)
            continue;
        struct choice *best = &choices[loop];
        map_cost(n, loop, &lanes);
        for (uint32_t k = 0; k < s->n_axes; k++) {
            if (s->axes[k] == lanes)
                continue;
            struct choice c = look_at_axis(n, loop, k, lanes);
            double least = c.found.has_own_lanes ? COST_JAM_BYTES : COST_NEAR_BYTES;
            if (c.most && c.found.shared > least &&
                (!best->most || c.found.shared > best->found.shared))
                *best = c;
        }
        any |= best->most || choose_jams(n, s->body, choices);
    }
    return any;
}

// ---- Copies

struct jam {
    const struct nest *from;
    struct nest_builder b;
    const struct choice *choices;      // by statement
    nest_id *axes;                     // by axis of `from`: that of the copy
    bool *is_used;                     // by buffer
    const struct found *f;             // of the loop whose elements go together, or NULL
    int64_t step, first, elements;     // those are number step * axis + first and the next
    nest_id *value[COST_JAM_TOGETHER]; // by value of `from`, that of each element
    nest_id *buffer[COST_JAM_TOGETHER];
};

static int64_t copies(const struct jam *j, bool varies) { return varies ? j->elements : 1; }

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

// Of element e.
static struct nest_index index_of_element(const struct jam *j, int64_t e,
                                          const struct nest_index *x)
{
    struct nest_term *terms = arena_array(j->from->arena, struct nest_term, x->count + 1);
    int64_t constant = x->constant;
    int n = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        terms[n] = *t;
        if (t->is_value) {
            terms[n++].id = value_of(j, e, t->id);
            continue;
        }
        if (j->f && t->id == j->f->axis) {
            constant += (j->first + e) * t->factor;
            if (!j->step)
                continue;
            terms[n].factor *= j->step;
        }
        terms[n++].id = j->axes[t->id];
    }
    return nest_index_make(j->from->arena, constant, n, terms);
}

static void copy_block(struct jam *j, uint32_t block);

// The results of a copy for the elements from e on, which is all that follow where there is one.
static void set_results(struct jam *j, int64_t e, nest_id result, uint32_t count, nest_id first)
{
    for (; e < COST_JAM_TOGETHER; e++)
        for (uint32_t i = 0; i < count; i++)
            j->value[e][result + i] = first + i;
}

static void copy_plain(struct jam *j, int64_t e, const struct nest_statement *s)
{
    struct nest_builder *b = &j->b;
    struct nest_statement to = *s;
    to.in = values_of(j, e, s->n_in, s->in);
    to.index = index_of_element(j, e, &s->index);
    to.guard = value_of(j, e, s->guard);
    to.buffer = s->buffer == NEST_NONE ? NEST_NONE : j->buffer[e][s->buffer];
    nest_id made = nest_append(b, to);
    set_results(j, e, s->result, s->n_results, b->nest->statements.at[made].result);
}

// The axis whose elements go together is left out where it has no groups and there are others.
static void open(struct jam *j, const struct nest_statement *s)
{
    nest_id *axes = arena_array(j->from->arena, nest_id, s->n_axes);
    int n = 0;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        const struct nest_axis *a = &j->from->axes.at[s->axes[i]];
        bool goes = j->f && s->axes[i] == j->f->axis;
        if (goes && !j->step && s->n_axes > 1)
            continue;
        int64_t extent = !goes ? a->extent : j->step ? a->extent / j->step : 1;
        axes[n++] = j->axes[s->axes[i]] = nest_axis(&j->b, a->name, extent);
    }
    nest_open(&j->b, s->kind, n, axes);
}

// One fold for all elements: what varies is combined for each of them.
static void copy_fold(struct jam *j, const struct nest_statement *s)
{
    struct nest_combine *combines =
        arena_array(j->from->arena, struct nest_combine, s->n_combines * COST_JAM_TOGETHER + 1);
    int n = 0;
    open(j, s);
    copy_block(j, s->body);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        int64_t count = copies(j, j->f && any_varies(j->f, c->n, c->value));
        for (int64_t e = 0; e < count; e++) {
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
        int64_t count = copies(j, j->f && any_varies(j->f, c->n, c->value));
        for (int64_t e = 0; e < count; e++, made += results)
            set_results(j, e, result, results, made);
        result += results;
    }
}

// `elements` of the axis from `first` on, in locals of their own.
static void copy_part(struct jam *j, const struct nest_statement *s, int64_t first,
                      int64_t elements)
{
    const struct found *f = j->f;
    j->first = first;
    j->elements = elements;
    for (uint32_t i = 0; i < j->from->buffers.count; i++) {
        const struct nest_buffer *b = &j->from->buffers.at[i];
        if (f->scopes[i] == NEST_NONE || !f->is_inside[f->scopes[i]])
            continue;
        for (int64_t e = 0; e < COST_JAM_TOGETHER; e++) {
            if (e && e >= copies(j, f->has_copies[i]))
                j->buffer[e][i] = j->buffer[0][i];
            else
                j->buffer[e][i] =
                    j->is_used[i] ? nest_local(&j->b, b->name, b->dtype, b->count) : i;
            j->is_used[i] = true;
        }
    }
    copy_block(j, s->body);
}

static void copy_side_by_side(struct jam *j, const struct nest_statement *s,
                              const struct choice *c)
{
    int64_t extent = j->from->axes.at[c->found.axis].extent, most = c->most;
    int64_t rest = extent, parts = (extent + most - 1) / most;
    j->f = &c->found;
    if (extent > COST_JAM_POINTS) {
        for (j->step = most; extent % j->step && j->step > COST_JAM_LEAST;)
            j->step--;
        j->step = extent % j->step ? most : j->step;
        open(j, s);
        copy_part(j, s, 0, j->step);
        nest_close(&j->b, 0, NULL);
        rest = extent % j->step;
        parts = 1;
        j->step = 0;
    }
    if (rest) {
        open(j, s);
        for (int64_t i = 0, n; i < parts; i++, rest -= n)
            copy_part(j, s, extent - rest, n = (rest + parts - i - 1) / (parts - i));
        nest_close(&j->b, 0, NULL);
    }
    j->f = NULL;
    j->elements = 1;
}

static void copy_block(struct jam *j, uint32_t block)
{
    const struct nest_block *b = &j->from->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(j->from, b->statements.at[i]);
        const struct choice *c = &j->choices[b->statements.at[i]];
        j->b.where = s->where;
        if (s->kind == NEST_FOLD) {
            copy_fold(j, s);
        } else if (c->most) {
            copy_side_by_side(j, s, c);
        } else if (s->kind == NEST_PAR || s->kind == NEST_MAP) {
            open(j, s);
            copy_block(j, s->body);
            nest_close(&j->b, 0, NULL);
        } else {
            int64_t count =
                copies(j, j->f && (statement_varies(j->f, s) ||
                                   (s->kind == NEST_PUT && j->f->has_copies[s->buffer])));
            for (int64_t e = 0; e < count; e++)
                copy_plain(j, e, s);
        }
    }
}

static struct nest *jammed(const struct nest *n, const struct choice *choices)
{
    struct jam j = {.from = n,
                    .b = nest_builder_make(n->arena, n->name),
                    .choices = choices,
                    .axes = arena_array(n->arena, nest_id, n->axes.count + 1),
                    .is_used = arena_array(n->arena, bool, n->buffers.count + 1),
                    .elements = 1};
    for (uint32_t i = 0; i < n->buffers.count; i++)
        vec_push(n->arena, &j.b.nest->buffers, n->buffers.at[i]);
    for (int64_t e = 0; e < COST_JAM_TOGETHER; e++) {
        j.value[e] = arena_array(n->arena, nest_id, n->values.count + 1);
        j.buffer[e] = arena_array(n->arena, nest_id, n->buffers.count + 1);
        for (uint32_t i = 0; i < n->buffers.count; i++)
            j.buffer[e][i] = i;
    }
    j.b.nest->place = n->place;
    j.b.nest->choices = n->choices;
    copy_block(&j, 0);
    return j.b.nest;
}

// Whether it has nothing but points, folds and plain statements.
static bool may_be_copied(const struct nest *n)
{
    nest_for_below (s, n, 0)
        if (s->kind > NEST_FOLD || s->fold != NEST_NONE)
            return false;
    return true;
}

bool map_jam(struct nest *n)
{
    struct choice *choices = arena_array(n->arena, struct choice, n->statements.count + 1);
    if (n->choices & NEST_NO_JAM || !may_be_copied(n) || !choose_jams(n, 0, choices))
        return false;
    *n = *jammed(n, choices);
    return true;
}
