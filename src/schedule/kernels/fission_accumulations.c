// SPDX-License-Identifier: Apache-2.0
// Loop fission (fission.c): what accumulates over a fold becomes a fold for each of its elements.
//
//     fold i < N {                               par i < N { fold k { ... } -> %1   put part[i] = %1 }
//       fold k { ... } -> %1                     par j < M {
//       map j < M {                       =>       fold i < N { %2 = load x[i, j]   %1 = load part[i]
//         %2 = load x[i, j]                                     yield fma %2 %1 } -> %3
//         put y[j] fma= %2, %1 in @i             put y[j] = %3
//       } }                                      }
//
// Its positions and their order are those of the fold, and so are the bits.  What is accumulated is memory, but for
// what is read of operands, which is read again.
#include "schedule/kernels/fission.h"

#include <string.h>

#define MOST_MAPS 4 // in one another

// A put that accumulates, and the blocks around it: that of the fold, and those of maps.
struct accumulation {
    nest_id put;
    uint32_t depth;
    uint32_t blocks[MOST_MAPS + 1];
    nest_id maps[MOST_MAPS];
};
typedef VEC(struct accumulation) accumulation_list;

static bool is_accumulating(const struct nest_statement *s)
{
    return s->kind == NEST_PUT && s->op;
}

static void find_accumulation(const struct fission *f, nest_id fold, struct accumulation at,
                              accumulation_list *out)
{
    nest_for_each (s, f->n, at.blocks[at.depth]) {
        struct accumulation inner = at;
        if (is_accumulating(s) && s->fold == fold && s->guard == NEST_NONE &&
            !nest_index_has_values(&s->index) && !ir_is_arg((enum ir_op)s->op)) {
            inner.put = nest_id_of(f->n, s);
            vec_push(f->arena, out, inner);
        }
        if (s->kind != NEST_MAP || at.depth == MOST_MAPS)
            continue;
        inner.maps[inner.depth++] = nest_id_of(f->n, s);
        inner.blocks[inner.depth] = s->body;
        find_accumulation(f, fold, inner, out);
    }
}

static accumulation_list accumulations_of(const struct fission *f, nest_id fold)
{
    accumulation_list all = {0};
    const struct nest_statement *s = fission_statement(f, fold);
    if (s->kind == NEST_FOLD)
        find_accumulation(f, fold, (struct accumulation){.blocks = {s->body}}, &all);
    return all;
}

bool fission_knows_accumulations(const struct fission *f)
{
    int64_t count = 0;
    nest_for_all (s, f->n)
        count += is_accumulating(s);
    nest_for_each (s, f->n, f->block)
        count -= accumulations_of(f, nest_id_of(f->n, s)).count;
    return count == 0;
}

bool fission_wants_accumulations(const struct fission *f, nest_id fold)
{
    const struct nest_statement *s = fission_statement(f, fold);
    double work = (double)nest_extent(f->n, s) * nest_work(f->n, s->body);
    return s->kind == NEST_FOLD && nest_accumulates(f->n, fold) &&
           (f->always || work > COST_OF_BLOCK);
}

// The depth of the block that makes the value, UINT32_MAX: none of those around the put.
static uint32_t depth_of(const struct fission *f, const struct accumulation *a, nest_id value)
{
    for (uint32_t d = 0; d <= a->depth; d++) {
        const struct nest_block *b = &f->n->blocks.at[a->blocks[d]];
        for (uint32_t i = 0; i < b->statements.count; i++) {
            const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
            if (s->n_results && value >= s->result && value < s->result + s->n_results)
                return d;
        }
    }
    return UINT32_MAX;
}

// All axes of the fold and of so many of the maps.
static uint32_t axes_of(const struct fission *f, nest_id fold, const struct accumulation *a,
                        uint32_t depth, nest_id **out)
{
    uint32_t count = 0;
    *out = arena_array(f->arena, nest_id, f->n->axes.count + 1);
    for (uint32_t d = 0; d <= depth; d++) {
        const struct nest_statement *s = fission_statement(f, d ? a->maps[d - 1] : fold);
        memcpy(*out + count, s->axes, s->n_axes * sizeof **out);
        count += s->n_axes;
    }
    return count;
}

// The last `count` statements of the block go in front of another one.
static void move_before(struct fission *f, uint32_t block, uint32_t count, nest_id other)
{
    struct nest_block *b = &f->n->blocks.at[block];
    uint32_t end = b->statements.count - count, to = 0;
    while (b->statements.at[to] != other)
        to++;
    nest_id *moved = arena_copy(f->arena, b->statements.at + end, count * sizeof *moved);
    memmove(b->statements.at + to + count, b->statements.at + to, (end - to) * sizeof *moved);
    memcpy(b->statements.at + to, moved, count * sizeof *moved);
}

// The index of an access with other axes.
static struct nest_index with_axes(struct fission *f, const struct nest_index *x, uint32_t n,
                                   const nest_id *from, const nest_id *to)
{
    struct nest_term *terms = arena_copy(f->arena, x->terms, x->count * sizeof *terms);
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t k = 0; k < n; k++)
            if (x->terms[i].id == from[k])
                terms[i].id = to[k];
    return nest_index_make(f->arena, x->constant, (int)x->count, terms);
}

// What a map reads is stored by a map in front of it, along those of its axes alone that the index has; axes: of the
// fold and of the map.
static nest_id store_read(struct fission *f, const struct accumulation *a,
                          const struct nest_statement *load, uint32_t of_fold, uint32_t n,
                          const nest_id *axes, struct nest_index *at)
{
    nest_id *old = arena_array(f->arena, nest_id, n + 1),
            *own = arena_copy(f->arena, axes, (n + 1) * sizeof *own);
    struct nest_index from = load->index;
    uint32_t k = of_fold, block = a->blocks[0];
    memcpy(old, axes, of_fold * sizeof *old);
    for (uint32_t i = of_fold; i < n; i++)
        if (nest_index_factor(&from, axes[i]))
            old[k++] = axes[i];
    for (uint32_t i = of_fold; i < k; i++) {
        vec_push(f->arena, &f->n->axes, f->n->axes.at[old[i]]);
        own[i] = f->n->axes.count - 1;
    }
    int64_t count;
    *at = fission_index_in(f, f->par, k, old, &count);
    nest_id source = load->buffer, buffer = fission_add_buffer(f, load->dtype, count);
    uint32_t before = f->n->blocks.at[block].statements.count;
    struct nest_builder b = fission_builder_in(f, block);
    if (k > of_fold)
        nest_open(&b, NEST_MAP, (int)(k - of_fold), own + of_fold);
    nest_id value = nest_load(&b, source, with_axes(f, &from, k, old, own), NEST_NONE);
    nest_put(&b, buffer, fission_index_in(f, f->par, k, own, &count), value, NEST_NONE);
    if (k > of_fold)
        nest_close(&b, 0, NULL);
    move_before(f, block, f->n->blocks.at[block].statements.count - before, a->maps[0]);
    return buffer;
}

// Makes the value in the block again: reads it where it was read, or where the fold leaves it.
static void make_again(struct fission *f, nest_id fold, const struct accumulation *a,
                       nest_id value, uint32_t block)
{
    uint32_t depth = depth_of(f, a, value);
    if (depth == UINT32_MAX)
        return;
    const struct nest_statement *s = nest_maker_of(f->n, value);
    bool is_read =
        s->kind == NEST_LOAD && s->guard == NEST_NONE && !nest_index_has_values(&s->index);
    bool is_kept = is_read && f->n->buffers.at[s->buffer].role == NEST_IN;
    if ((is_kept && !fission_is_anchored(f, s)) || s->kind == NEST_CONST) {
        fission_append(f, block, nest_id_of(f->n, s));
        return;
    }
    nest_id *axes, buffer;
    int64_t count;
    uint32_t n = axes_of(f, fold, a, depth, &axes);
    struct nest_index at = fission_index_in(f, f->par, n, axes, &count);
    if (is_read && depth) {
        buffer = store_read(f, a, s, fission_statement(f, fold)->n_axes, n, axes, &at);
    } else {
        buffer = fission_add_buffer(f, f->n->values.at[value].dtype, count);
        fission_append_put(f, a->blocks[depth], buffer, at, value);
    }
    fission_append_load_of(f, block, buffer, at, value);
}

static void drop(struct fission *f, const struct accumulation *a)
{
    struct nest_block *b = &f->n->blocks.at[a->blocks[a->depth]];
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (b->statements.at[i] != a->put)
            b->statements.at[n++] = b->statements.at[i];
    b->statements.count = n;
    f->n->statements.at[a->put].op = 0;
    f->n->statements.at[a->put].fold = NEST_NONE;
}

// The loop over the elements that the put had, each with a fold of its own.
static void append_fold(struct fission *f, nest_id fold, const struct accumulation *a,
                        uint32_t block)
{
    struct nest_statement put = *fission_statement(f, a->put);
    nest_id *axes;
    uint32_t n = axes_of(f, fold, a, a->depth, &axes);
    uint32_t own = fission_statement(f, fold)->n_axes;
    struct nest_combine c = {.op = put.op,
                             .n = (uint16_t)put.n_in,
                             .dtype = f->n->buffers.at[put.buffer].dtype,
                             .order = put.order};
    struct nest_builder b = fission_builder_in(f, block);
    b.where = put.where;
    if (a->depth)
        nest_open(&b, f->par == NEST_NONE ? NEST_PAR : NEST_MAP, (int)(n - own), axes + own);
    nest_open(&b, NEST_FOLD, (int)own, axes);
    for (uint32_t k = 0; k < put.n_in; k++) {
        c.value[k] = put.in[k];
        if (!k || put.in[k] != put.in[0])
            make_again(f, fold, a, put.in[k], vec_last(&b.open));
    }
    nest_id sum = nest_close(&b, 1, &c);
    nest_put(&b, put.buffer, put.index, sum, NEST_NONE);
    if (a->depth)
        nest_close(&b, 0, NULL);
    drop(f, a);
}

static bool puts_anything(const struct fission *f, uint32_t block)
{
    nest_for_below (s, f->n, block)
        if (s->kind == NEST_PUT)
            return true;
    return false;
}

// Drops maps that put nothing any more.
static void drop_maps(struct fission *f, uint32_t block)
{
    struct nest_block *b = &f->n->blocks.at[block];
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        if (s->kind == NEST_MAP)
            drop_maps(f, s->body);
        if (s->kind != NEST_MAP || puts_anything(f, s->body))
            b->statements.at[n++] = b->statements.at[i];
    }
    b->statements.count = n;
}

bool fission_part_accumulations(struct fission *f, nest_id fold, uint32_t block)
{
    accumulation_list all = accumulations_of(f, fold);
    if (!all.count)
        return true;
    for (uint32_t i = 0; i < all.count; i++)
        append_fold(f, fold, &all.at[i], block);
    struct nest_statement *s = &f->n->statements.at[fold];
    drop_maps(f, s->body);
    if (s->n_combines)
        return true;
    s->kind = f->par == NEST_NONE ? NEST_PAR : NEST_MAP;
    return puts_anything(f, s->body);
}
