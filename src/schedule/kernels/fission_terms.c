// SPDX-License-Identifier: Apache-2.0
// Loop fission (fission.c): what it writes statements with, and terms of folds as loops of their own.
#include "schedule/kernels/fission.h"

// ---- What a statement uses

void fission_use(const struct fission *f, nest_id id, struct fission_uses *u)
{
    const struct nest_statement *s = fission_statement(f, id);
    nest_for_uses (v, s)
        u->values[v] = true;
    nest_for_buffers (b, s)
        (b == s->buffer && s->kind != NEST_LOAD ? u->puts : u->loads)[b] = true;
    fission_use_block(f, s->body, u);
    fission_use_block(f, s->other, u);
}

void fission_use_block(const struct fission *f, uint32_t block, struct fission_uses *u)
{
    nest_for_each (s, f->n, block)
        fission_use(f, nest_id_of(f->n, s), u);
}

struct fission_uses fission_no_uses(const struct fission *f)
{
    return (struct fission_uses){arena_array(f->arena, bool, f->n->values.count + 1),
                                 arena_array(f->arena, bool, f->n->buffers.count + 1),
                                 arena_array(f->arena, bool, f->n->buffers.count + 1)};
}

// ---- Writing

nest_id fission_add_statement(struct fission *f, struct nest_statement s)
{
    vec_push(f->arena, &f->n->statements, s);
    return f->n->statements.count - 1;
}

nest_id fission_add_buffer(struct fission *f, jot_dtype dtype, int64_t count)
{
    struct nest_buffer b = {.name = "part", .dtype = dtype, .count = count, .role = NEST_OUT};
    vec_push(f->arena, &f->n->buffers, b);
    return f->n->buffers.count - 1;
}

// The index among all points of the loops, and how many there are.
struct nest_index fission_index_in(struct fission *f, nest_id outer, uint32_t n,
                                   const nest_id *axes, int64_t *count)
{
    const struct nest_statement *par = outer == NEST_NONE ? NULL : fission_statement(f, outer);
    uint32_t all = n + (par ? par->n_axes : 0);
    struct nest_term *terms = arena_array(f->arena, struct nest_term, all + 1);
    *count = 1;
    for (uint32_t i = all; i-- > 0;) {
        nest_id axis = i < all - n ? par->axes[i] : axes[i - (all - n)];
        terms[i] = (struct nest_term){*count, axis, false};
        *count *= f->n->axes.at[axis].extent;
    }
    return nest_index_make(f->arena, 0, (int)all, terms);
}

struct nest_builder fission_builder_in(struct fission *f, uint32_t block)
{
    struct nest_builder b = {.nest = f->n};
    vec_push(f->arena, &b.open, block);
    return b;
}

void fission_append_put(struct fission *f, uint32_t block, nest_id buffer, struct nest_index at,
                        nest_id value)
{
    struct nest_builder b = fission_builder_in(f, block);
    nest_put(&b, buffer, at, value, NEST_NONE);
}

static nest_id append_load(struct fission *f, uint32_t block, nest_id buffer,
                           struct nest_index at)
{
    struct nest_builder b = fission_builder_in(f, block);
    return nest_load(&b, buffer, at, NEST_NONE);
}

// Makes the value again.
void fission_append_load_of(struct fission *f, uint32_t block, nest_id buffer,
                            struct nest_index at, nest_id value)
{
    nest_id made = append_load(f, block, buffer, at);
    f->n->statements.at[f->n->values.at[made].statement].result = value;
    f->n->values.count--;
}

uint32_t fission_new_block(struct fission *f)
{
    vec_push(f->arena, &f->n->blocks, (struct nest_block){0});
    return f->n->blocks.count - 1;
}

void fission_append(struct fission *f, uint32_t block, nest_id id)
{
    vec_push(f->arena, &f->n->blocks.at[block].statements, id);
}

// The loop that makes the terms of the fold, which reads them from then on.
static nest_id make_terms(struct fission *f, nest_id fold)
{
    struct nest_statement terms = *fission_statement(f, fold), s = terms;
    nest_id *axes = arena_array(f->arena, nest_id, s.n_axes + 1);
    for (uint32_t i = 0; i < s.n_axes; i++) {
        struct nest_axis axis = f->n->axes.at[s.axes[i]];
        vec_push(f->arena, &f->n->axes, axis);
        axes[i] = f->n->axes.count - 1;
    }
    int64_t count;
    struct nest_index to = fission_index_in(f, f->par, s.n_axes, s.axes, &count);
    struct nest_index from = fission_index_in(f, f->par, s.n_axes, axes, &count);
    struct nest_combine *combines =
        arena_copy(f->arena, s.combines, s.n_combines * sizeof *combines);
    s.body = fission_new_block(f);
    for (uint32_t i = 0; i < s.n_combines; i++)
        for (uint32_t k = 0; k < combines[i].n; k++) {
            nest_id value = combines[i].value[k];
            jot_dtype dtype = f->n->values.at[value].dtype;
            nest_id buffer = fission_add_buffer(f, dtype, count);
            fission_append_put(f, terms.body, buffer, to, value);
            combines[i].value[k] = append_load(f, s.body, buffer, from);
        }
    s.axes = axes;
    s.combines = combines;
    f->n->statements.at[fold] = s;
    terms.kind = f->par == NEST_NONE ? NEST_PAR : NEST_MAP;
    terms.result = NEST_NONE;
    terms.n_results = terms.n_combines = 0;
    return fission_add_statement(f, terms);
}

// The statements of the block that the values of the combines need, and those before `end` that put something.
static uint32_t block_for(struct fission *f, uint32_t block, uint32_t n,
                          const struct nest_combine *combines, uint32_t end)
{
    struct nest_block old = f->n->blocks.at[block];
    bool *has = arena_array(f->arena, bool, old.statements.count + 1);
    struct fission_uses u = fission_no_uses(f);
    uint32_t out = fission_new_block(f);
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t k = 0; k < combines[c].n; k++)
            u.values[combines[c].value[k]] = true;
    for (uint32_t i = old.statements.count; i-- > 0;) {
        const struct nest_statement *s = fission_statement(f, old.statements.at[i]);
        has[i] = i < end && s->kind == NEST_PUT;
        for (uint32_t k = 0; k < s->n_results; k++)
            has[i] |= u.values[s->result + k];
        if (has[i])
            fission_use(f, old.statements.at[i], &u);
    }
    for (uint32_t i = 0; i < old.statements.count; i++)
        if (has[i])
            fission_append(f, out, old.statements.at[i]);
    return out;
}

// The index of an element of the running fold among those of all points; points stand side by side where what the loop
// reads and puts does so.
static struct nest_index index_of_term(struct fission *f, const struct nest_statement *scan,
                                       int64_t *count)
{
    struct nest_index index = fission_index_in(f, f->par, scan->n_axes, scan->axes, count);
    struct nest_lines all = {0};
    if (f->par == NEST_NONE)
        return index;
    const struct nest_statement *par = fission_statement(f, f->par);
    nest_for_each (s, f->n, scan->body) {
        if (s->kind != NEST_LOAD && s->kind != NEST_PUT)
            continue;
        struct nest_lines one = nest_lines_of(f->n, par, scan, s);
        all.of_points += one.of_points;
        all.of_inner += one.of_inner;
    }
    if (!nest_lies_along(all))
        return index;
    int64_t points = nest_extent(f->n, par), length = nest_extent(f->n, scan);
    struct nest_term *terms =
        arena_copy(f->arena, index.terms, index.count * sizeof *index.terms);
    for (uint32_t i = 0; i < index.count; i++) {
        bool is_inner = terms[i].factor < length;
        terms[i].factor = is_inner ? terms[i].factor * points : terms[i].factor / length;
    }
    return nest_index_make(f->arena, 0, (int)index.count, terms);
}

// The same of a running fold, which has its own axes and what it does with the running values.
static nest_id make_scan_terms(struct fission *f, nest_id scan)
{
    struct nest_statement terms = *fission_statement(f, scan), s = terms, yield;
    const struct nest_block old = f->n->blocks.at[s.body];
    uint32_t at = fission_yield_of(f, &s);
    yield = *fission_statement(f, old.statements.at[at]);
    struct nest_combine *combines =
        arena_copy(f->arena, yield.combines, yield.n_combines * sizeof *combines);
    int64_t count;
    struct nest_index index = index_of_term(f, &s, &count);
    terms.body = block_for(f, s.body, yield.n_combines, yield.combines, at);
    s.body = fission_new_block(f);
    for (uint32_t i = 0; i < yield.n_combines; i++)
        for (uint32_t k = 0; k < combines[i].n; k++) {
            nest_id value = combines[i].value[k];
            nest_id buffer = fission_add_buffer(f, f->n->values.at[value].dtype, count);
            fission_append_put(f, terms.body, buffer, index, value);
            combines[i].value[k] = append_load(f, s.body, buffer, index);
        }
    yield.combines = combines;
    nest_id made = fission_add_statement(f, yield);
    for (uint32_t k = 0; k < yield.n_results; k++)
        f->n->values.at[yield.result + k].statement = made;
    bool *has = arena_array(f->arena, bool, old.statements.count + 1);
    struct fission_uses u = fission_no_uses(f);
    for (uint32_t i = old.statements.count; i-- > 0;) {
        nest_id id = old.statements.at[i];
        const struct nest_statement *t = fission_statement(f, id);
        has[i] = i > at;
        for (uint32_t k = 0; k < t->n_results; k++)
            has[i] |= u.values[t->result + k];
        if (has[i] && i != at)
            fission_use(f, id, &u);
    }
    for (uint32_t i = 0; i < old.statements.count; i++)
        if (has[i] || i == at)
            fission_append(f, s.body, i == at ? made : old.statements.at[i]);
    f->n->statements.at[scan] = s;
    terms.kind = f->par == NEST_NONE ? NEST_PAR : NEST_MAP;
    terms.reverse = false;
    return fission_add_statement(f, terms);
}

// A fold for each run of combines that go one way.
static void append_apart(struct fission *f, nest_id id, const bool *is_along)
{
    struct nest_statement s = *fission_statement(f, id);
    nest_id result = s.result;
    for (uint32_t first = 0, end; first < s.n_combines; first = end) {
        struct nest_statement fold = s;
        fold.n_results = 0;
        for (end = first; end < s.n_combines && is_along[end] == is_along[first]; end++)
            fold.n_results += nest_combine_results(s.combines[end].op);
        fold.result = result;
        fold.combines = s.combines + first;
        fold.n_combines = end - first;
        fold.body = block_for(f, s.body, fold.n_combines, fold.combines, 0);
        result += fold.n_results;
        nest_id made = fission_add_statement(f, fold);
        for (uint32_t k = 0; k < fold.n_results; k++)
            f->n->values.at[fold.result + k].statement = made;
        fission_append(f, f->block, made);
    }
}

static void append_split(struct fission *f, nest_id id)
{
    bool *is_along = arena_array(f->arena, bool, fission_statement(f, id)->n_combines + 1);
    if (fission_wants_apart(f, id, is_along)) {
        append_apart(f, id, is_along);
        return;
    }
    if (fission_wants_terms(f, id)) {
        bool is_fold = fission_statement(f, id)->kind == NEST_FOLD;
        fission_append(f, f->block, is_fold ? make_terms(f, id) : make_scan_terms(f, id));
    }
    fission_append(f, f->block, id);
}

void fission_split_folds(struct fission *f)
{
    struct nest_block old = f->n->blocks.at[f->block];
    f->n->blocks.at[f->block] = (struct nest_block){0};
    for (uint32_t i = 0; i < old.statements.count; i++) {
        nest_id id = old.statements.at[i];
        uint32_t behind = fission_new_block(f);
        if (fission_part_accumulations(f, id, behind))
            append_split(f, id);
        for (uint32_t k = 0; k < f->n->blocks.at[behind].statements.count; k++)
            fission_append(f, f->block, f->n->blocks.at[behind].statements.at[k]);
    }
}
