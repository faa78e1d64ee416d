// SPDX-License-Identifier: Apache-2.0
// Scopes, index forms and statements of a nest under construction.
#include "schedule/write/emit.h"

void emit_set_scope(struct emitter *e, nest_id value, scope_id scope)
{
    while (e->value_scope.count <= value) {
        vec_push(e->scratch, &e->value_scope, 0);
        vec_push(e->scratch, &e->value_extent, 0);
    }
    e->value_scope.at[value] = scope;
}

struct emitter emit_make(struct arena *arena, struct arena *scratch, const char *name)
{
    struct emitter e = {
        .arena = arena, .scratch = scratch, .b = nest_builder_make(arena, name)};
    vec_push(scratch, &e.scopes, (struct scope){.parent = NONE, .loop = NONE, .is_open = true});
    emit_form(&e, 0, 0, NULL);
    return e;
}

// ---- Scopes

scope_id emit_deeper(const struct emitter *e, scope_id a, scope_id b)
{
    return e->scopes.at[a].depth >= e->scopes.at[b].depth ? a : b;
}

bool emit_sees(const struct emitter *e, scope_id scope)
{
    return emit_sees_from(e, e->at, scope);
}

bool emit_sees_from(const struct emitter *e, scope_id s, scope_id scope)
{
    while (e->scopes.at[s].depth > e->scopes.at[scope].depth)
        s = e->scopes.at[s].parent;
    return s == scope;
}

void emit_enter(struct emitter *e, scope_id scope)
{
    e->b.open.count = 1;
    e->b.open.at[0] = e->scopes.at[scope].block;
}

scope_id emit_scope(struct emitter *e, scope_id parent, nest_id loop, uint32_t block)
{
    scope_id s = e->scopes.count;
    e->b.nest->blocks.at[e->scopes.at[parent].block].statements.count--;
    vec_push(e->scratch, &e->scopes,
             (struct scope){.parent = parent,
                            .depth = e->scopes.at[parent].depth + 1,
                            .block = block,
                            .loop = loop,
                            .is_open = true});
    return e->at = s;
}

scope_id emit_open(struct emitter *e, scope_id parent, enum nest_kind kind, int n_axes,
                   const nest_id *axes)
{
    emit_enter(e, parent);
    nest_id loop = nest_open(&e->b, kind, n_axes, axes);
    scope_id s = emit_scope(e, parent, loop, e->b.nest->statements.at[loop].body);
    for (int i = 0; i < n_axes; i++)
        e->axis_scope.at[axes[i]] = s;
    return s;
}

void emit_reopen(struct emitter *e)
{
    const struct scope *s = &e->scopes.at[e->at];
    uint32_t parent = e->scopes.at[s->parent].block;
    vec_push(e->arena, &e->b.nest->blocks.at[parent].statements, s->loop);
    emit_enter(e, s->parent);
    vec_push(e->arena, &e->b.open, s->block);
}

nest_id emit_closed(struct emitter *e, scope_id back, nest_id result)
{
    struct scope *s = &e->scopes.at[e->at];
    s->is_open = false;
    for (uint32_t i = 0; result != NEST_NONE && i < e->b.nest->statements.at[s->loop].n_results;
         i++)
        emit_set_scope(e, result + i, s->parent);
    e->at = back;
    return result;
}

nest_id emit_close(struct emitter *e, scope_id back, int n, const struct nest_combine *combines)
{
    emit_reopen(e);
    return emit_closed(e, back, nest_close(&e->b, n, combines));
}

nest_id emit_axis(struct emitter *e, int64_t extent)
{
    static const char *const names[] = {"i", "j", "k", "l"};
    nest_id axis = nest_axis(&e->b, names[e->b.nest->axes.count & 3], extent);
    vec_push(e->scratch, &e->axis_scope, 0);
    return axis;
}

// ---- Index forms

static uint64_t form_hash(const struct nest_index *x)
{
    uint64_t h = hash_mix((uint64_t)x->constant);
    for (uint32_t i = 0; i < x->count; i++) {
        h = hash_combine(h, (uint64_t)x->terms[i].factor);
        h = hash_combine(h, (uint64_t)x->terms[i].id * 2 + x->terms[i].is_value);
    }
    return h;
}

static int64_t term_extent(const struct emitter *e, struct nest_term t)
{
    return t.is_value ? e->value_extent.at[t.id] : e->b.nest->axes.at[t.id].extent;
}

// Range and scope of a form.
static struct form describe(const struct emitter *e, struct nest_index x)
{
    struct form f = {.index = x, .low = x.constant, .high = x.constant};
    for (uint32_t i = 0; i < x.count; i++) {
        struct nest_term t = x.terms[i];
        int64_t last = term_extent(e, t) - 1, span;
        if (last < 0)
            last = 0;
        if (__builtin_mul_overflow(t.factor, last, &span))
            span = t.factor < 0 ? INT64_MIN / 4 : INT64_MAX / 4;
        f.low += span < 0 ? span : 0;
        f.high += span > 0 ? span : 0;
        f.scope = emit_deeper(e, f.scope,
                              t.is_value ? e->value_scope.at[t.id] : e->axis_scope.at[t.id]);
    }
    return f;
}

static const struct emit_division *find_division(const struct emitter *e, nest_id quotient)
{
    uint32_t low = 0, high = e->divisions.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (e->divisions.at[middle].quotient < quotient)
            low = middle + 1;
        else
            high = middle;
    }
    bool is = low < e->divisions.count && e->divisions.at[low].quotient == quotient;
    return is ? &e->divisions.at[low] : NULL;
}

// x in place of x / d * d + x mod d, by terms of the two.
static struct nest_index join_divided(struct emitter *e, struct nest_index x)
{
    for (uint32_t i = 0; i < x.count; i++) {
        const struct emit_division *d =
            x.terms[i].is_value ? find_division(e, x.terms[i].id) : NULL;
        for (uint32_t k = 0; d && k < x.count; k++) {
            int64_t factor = x.terms[k].factor;
            if (!x.terms[k].is_value || x.terms[k].id != d->rest ||
                x.terms[i].factor % d->divisor || x.terms[i].factor / d->divisor != factor)
                continue;
            struct nest_index whole = e->forms.at[d->x].index;
            struct nest_term *terms =
                arena_array(e->scratch, struct nest_term, x.count + whole.count);
            int n = 0;
            for (uint32_t t = 0; t < whole.count; t++) {
                terms[n] = whole.terms[t];
                terms[n++].factor *= factor;
            }
            for (uint32_t t = 0; t < x.count; t++)
                if (t != i && t != k)
                    terms[n++] = x.terms[t];
            x = nest_index_make(e->scratch, x.constant + factor * whole.constant, n, terms);
            return join_divided(e, x);
        }
    }
    return x;
}

form_id emit_form(struct emitter *e, int64_t constant, int n, const struct nest_term *terms)
{
    struct nest_index x = join_divided(e, nest_index_make(e->scratch, constant, n, terms));
    uint64_t h = form_hash(&x);
    for (struct hash_probe p = hash_probe(&e->form_table, h); hash_next(&e->form_table, &p);)
        if (nest_index_equal(&e->forms.at[p.id].index, &x))
            return p.id;
    vec_push(e->scratch, &e->forms, describe(e, x));
    hash_insert(e->scratch, &e->form_table, h, e->forms.count - 1);
    return e->forms.count - 1;
}

form_id emit_form_constant(struct emitter *e, int64_t constant)
{
    return constant ? emit_form(e, constant, 0, NULL) : 0;
}

form_id emit_form_axis(struct emitter *e, nest_id axis)
{
    return emit_form(e, 0, 1, &(struct nest_term){.factor = 1, .id = axis});
}

form_id emit_form_add(struct emitter *e, form_id x, int64_t factor, form_id y)
{
    struct nest_index a = e->forms.at[x].index, b = e->forms.at[y].index;
    uint32_t n = a.count + b.count;
    struct nest_term *terms = arena_array(e->scratch, struct nest_term, n);
    for (uint32_t i = 0; i < a.count; i++) {
        terms[i] = a.terms[i];
        terms[i].factor *= factor;
    }
    for (uint32_t i = 0; i < b.count; i++)
        terms[a.count + i] = b.terms[i];
    return emit_form(e, a.constant * factor + b.constant, factor ? (int)n : (int)b.count,
                     factor ? terms : b.terms);
}

form_id emit_form_affine(struct emitter *e, form_id x, int64_t factor, int64_t offset)
{
    if (factor == 1 && offset == 0)
        return x;
    return emit_form_add(e, x, factor, emit_form_constant(e, offset));
}

form_id emit_form_linear(struct emitter *e, int rank, const int64_t *dims, const form_id *at)
{
    form_id linear = 0;
    for (int i = 0; i < rank; i++)
        linear = i == 0 ? at[0] : emit_form_add(e, linear, dims[i], at[i]);
    return linear;
}

bool emit_form_is_constant(const struct emitter *e, form_id x, int64_t *out)
{
    *out = e->forms.at[x].index.constant;
    return e->forms.at[x].index.count == 0;
}

// Statements that divide.
static void divide_values(struct emitter *e, form_id x, int64_t divisor, form_id *out_quotient,
                          form_id *out_rest)
{
    int64_t high = e->forms.at[x].high;
    int64_t zero = 0;
    nest_id in[2] = {emit_index(e, x, JOT_I64), emit_const(e, JOT_I64, &zero)};
    // Before the first element, where a guard stands: the results keep to their ranges.
    if (e->forms.at[x].low < 0)
        in[0] = emit_op(e, IR_max, JOT_I64, 2, in, NULL);
    in[1] = emit_const(e, JOT_I64, &divisor);
    nest_id q = emit_op(e, IR_div, JOT_I64, 2, in, NULL);
    nest_id r = emit_op(e, IR_rem, JOT_I64, 2, in, NULL);
    e->value_extent.at[q] = high < 0 ? 1 : high / divisor + 1;
    e->value_extent.at[r] = divisor;
    struct emit_division d = {.quotient = q, .rest = r, .divisor = divisor, .x = x};
    bool is_new = !e->divisions.count || vec_last(&e->divisions).quotient < q;
    if (is_new && e->forms.at[x].low >= 0)
        vec_push(e->scratch, &e->divisions, d);
    *out_quotient =
        emit_form(e, 0, 1, &(struct nest_term){.factor = 1, .id = q, .is_value = true});
    *out_rest = emit_form(e, 0, 1, &(struct nest_term){.factor = 1, .id = r, .is_value = true});
}

void emit_form_divide(struct emitter *e, form_id x, int64_t divisor, form_id *out_quotient,
                      form_id *out_rest)
{
    struct nest_index f = e->forms.at[x].index;
    if (e->forms.at[x].low >= 0 && e->forms.at[x].high < divisor) {
        *out_quotient = 0;
        *out_rest = x;
        return;
    }
    struct nest_term *whole = arena_array(e->scratch, struct nest_term, f.count);
    struct nest_term *part = arena_array(e->scratch, struct nest_term, f.count);
    int n_whole = 0, n_part = 0;
    for (uint32_t i = 0; i < f.count; i++) {
        if (f.terms[i].factor % divisor == 0) {
            whole[n_whole] = f.terms[i];
            whole[n_whole++].factor /= divisor;
        } else {
            part[n_part++] = f.terms[i];
        }
    }
    int64_t rest = f.constant % divisor;
    rest += rest < 0 ? divisor : 0;
    form_id remaining = emit_form(e, rest, n_part, part);
    if (e->forms.at[remaining].low < 0 || e->forms.at[remaining].high >= divisor) {
        divide_values(e, x, divisor, out_quotient, out_rest);
        return;
    }
    *out_quotient = emit_form(e, (f.constant - rest) / divisor, n_whole, whole);
    *out_rest = remaining;
}

// ---- Statements

static uint64_t known_hash(const struct emit_known *k)
{
    uint64_t h = hash_mix((uint64_t)k->kind * 4096 + k->op * 32u + (uint64_t)k->dtype);
    for (int i = 0; i < 4; i++)
        h = hash_combine(h, k->in[i]);
    h = hash_combine(h, (uint64_t)k->bits[0]);
    h = hash_combine(h, (uint64_t)k->bits[1]);
    h = hash_combine(h, k->buffer);
    h = hash_combine(h, k->form);
    return hash_combine(h, k->guard);
}

static bool known_equal(const struct emit_known *x, const struct emit_known *y)
{
    return x->kind == y->kind && x->op == y->op && x->dtype == y->dtype &&
           !memcmp(x->in, y->in, sizeof x->in) && !memcmp(x->bits, y->bits, sizeof x->bits) &&
           x->buffer == y->buffer && x->form == y->form && x->guard == y->guard;
}

static struct emit_known blank(enum nest_kind kind, jot_dtype dtype)
{
    return (struct emit_known){.kind = kind,
                               .dtype = dtype,
                               .in = {NONE, NONE, NONE, NONE},
                               .buffer = NONE,
                               .guard = NONE};
}

// The earlier result, or NEST_NONE: then k.scope is where the statement goes.
static nest_id find_known(struct emitter *e, struct emit_known *k, uint64_t *h)
{
    *h = known_hash(k);
    for (struct hash_probe p = hash_probe(&e->known_table, *h);
         hash_next(&e->known_table, &p);) {
        const struct emit_known *old = &e->known.at[p.id];
        if (known_equal(old, k) && emit_sees(e, old->scope))
            return old->result;
    }
    k->scope = e->forms.at[k->form].scope;
    for (int i = 0; i < 4 && k->in[i] != NONE; i++)
        k->scope = emit_deeper(e, k->scope, e->value_scope.at[k->in[i]]);
    if (k->guard != NONE)
        k->scope = emit_deeper(e, k->scope, e->value_scope.at[k->guard]);
    if (k->kind != NEST_CONST)
        k->scope = emit_deeper(e, k->scope, e->floor);
    emit_enter(e, k->scope);
    return NEST_NONE;
}

static nest_id add_known(struct emitter *e, struct emit_known *k, uint64_t h, nest_id result)
{
    k->result = result;
    nest_id statement = e->b.nest->values.at[result].statement;
    for (uint32_t i = 0; i < e->b.nest->statements.at[statement].n_results; i++)
        emit_set_scope(e, result + i, k->scope);
    vec_push(e->scratch, &e->known, *k);
    hash_insert(e->scratch, &e->known_table, h, e->known.count - 1);
    e->ops++;
    return result;
}

nest_id emit_op(struct emitter *e, enum ir_op op, jot_dtype dtype, int n, const nest_id *in,
                const int64_t bits[2])
{
    struct emit_known k = blank(NEST_OP, dtype);
    uint64_t h;
    k.op = (uint16_t)op;
    memcpy(k.in, in, (size_t)n * sizeof *in);
    if (bits)
        memcpy(k.bits, bits, sizeof k.bits);
    nest_id known = find_known(e, &k, &h);
    return known != NEST_NONE ? known
                              : add_known(e, &k, h, nest_op(&e->b, op, dtype, n, in, bits));
}

nest_id emit_const(struct emitter *e, jot_dtype dtype, const void *element)
{
    struct emit_known k = blank(NEST_CONST, dtype);
    uint64_t h;
    memcpy(k.bits, element, dtype_get(dtype)->bytes);
    nest_id known = find_known(e, &k, &h);
    return known != NEST_NONE ? known : add_known(e, &k, h, nest_const(&e->b, dtype, element));
}

nest_id emit_index(struct emitter *e, form_id x, jot_dtype dtype)
{
    struct emit_known k = blank(NEST_INDEX, dtype);
    uint64_t h;
    k.form = x;
    nest_id known = find_known(e, &k, &h);
    return known != NEST_NONE
               ? known
               : add_known(e, &k, h, nest_index_value(&e->b, e->forms.at[x].index, dtype));
}

nest_id emit_load(struct emitter *e, nest_id buffer, form_id x, nest_id guard)
{
    struct emit_known k = blank(NEST_LOAD, e->b.nest->buffers.at[buffer].dtype);
    uint64_t h;
    k.form = x;
    k.buffer = buffer;
    k.guard = guard;
    // What a local holds depends on when it is read.
    bool is_local = e->b.nest->buffers.at[buffer].role == NEST_LOCAL;
    nest_id known = find_known(e, &k, &h);
    if (known != NEST_NONE)
        return known;
    if (is_local) {
        k.scope = e->at;
        emit_enter(e, e->at);
    }
    return add_known(e, &k, h, nest_load(&e->b, buffer, e->forms.at[x].index, guard));
}

// A buffer without elements has no element to put, however its loops are shared.
static bool is_empty(const struct emitter *e, nest_id buffer)
{
    return e->b.nest->buffers.at[buffer].count == 0;
}

void emit_put_guarded(struct emitter *e, nest_id buffer, form_id x, nest_id value,
                      nest_id guard)
{
    if (is_empty(e, buffer))
        return;
    emit_enter(e, e->at);
    nest_put(&e->b, buffer, e->forms.at[x].index, value, guard);
}

void emit_put(struct emitter *e, nest_id buffer, form_id x, nest_id value)
{
    emit_put_guarded(e, buffer, x, value, NEST_NONE);
}

nest_id emit_load_here(struct emitter *e, nest_id buffer, form_id x)
{
    emit_enter(e, e->at);
    nest_id result = nest_load(&e->b, buffer, e->forms.at[x].index, NEST_NONE);
    emit_set_scope(e, result, e->at);
    e->ops++;
    return result;
}

void emit_put_combine(struct emitter *e, nest_id buffer, form_id x, nest_id fold,
                      const struct nest_combine *combine)
{
    if (is_empty(e, buffer))
        return;
    emit_enter(e, e->at);
    nest_put_combine(&e->b, buffer, e->forms.at[x].index, fold, combine);
}

nest_id emit_yield(struct emitter *e, const struct nest_combine *combine)
{
    emit_enter(e, e->at);
    nest_id result = nest_yield(&e->b, 1, combine);
    emit_set_scope(e, result, e->at);
    return result;
}

static nest_id compare_form(struct emitter *e, enum ir_op op, form_id x, int64_t bound)
{
    nest_id in[2] = {emit_index(e, x, JOT_I64), emit_const(e, JOT_I64, &bound)};
    return emit_op(e, op, JOT_BOOL, 2, in, NULL);
}

nest_id emit_less(struct emitter *e, form_id x, int64_t bound)
{
    return e->forms.at[x].high < bound ? NEST_NONE : compare_form(e, IR_lt, x, bound);
}

nest_id emit_not_less(struct emitter *e, form_id x, int64_t bound)
{
    return e->forms.at[x].low >= bound ? NEST_NONE : compare_form(e, IR_ge, x, bound);
}

nest_id emit_both(struct emitter *e, nest_id a, nest_id b)
{
    if (a == NEST_NONE || b == NEST_NONE || a == b)
        return a == NEST_NONE ? b : a;
    nest_id in[2] = {a, b};
    return emit_op(e, IR_and, JOT_BOOL, 2, in, NULL);
}
