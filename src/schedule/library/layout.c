// SPDX-License-Identifier: Apache-2.0
// Layouts of operands of library products: a matrix that a kernel would store across its lanes is
// stored along them, and the product reads it transposed.
//
//     par i < 4096 { map k < 512 { put t[i + 4096*k] = ... } }     put t[512*i + k] = ...
//     gemm a = t [512, 4096]                              becomes  gemm transpose_a, a = t
//
// Needs a scheduled program; keeps steps, sizes and results.
#include "schedule/internal.h"
#include "schedule/library/library.h"

// Where a step has a memory; the uses of one are in a list.
struct use {
    uint32_t step, argument, next; // next: among the uses, NEST_NONE at the end
};

struct uses {
    struct nest_program *p;
    struct use *uses;
    uint32_t *of_memory; // the first use, NEST_NONE: there is none
    uint32_t *of_nest;   // how many steps are the kernel
    bool *is_shown;      // by memory: another one is part of it
};

static struct uses find_uses(struct nest_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        n += p->steps.at[i].n_memories;
    struct uses u = {.p = p,
                     .uses = arena_array(p->arena, struct use, n + 1),
                     .of_memory = arena_array(p->arena, uint32_t, p->memories.count + 1),
                     .of_nest = arena_array(p->arena, uint32_t, p->nests.count + 1),
                     .is_shown = arena_array(p->arena, bool, p->memories.count + 1)};
    memset(u.of_memory, 0xff, p->memories.count * sizeof *u.of_memory);
    for (uint32_t i = p->steps.count; i-- > 0;) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind == NEST_STEP_KERNEL)
            u.of_nest[s->nest]++;
        for (uint32_t k = s->n_memories; k-- > 0;) {
            uint32_t *first = &u.of_memory[s->memories[k]];
            u.uses[--n] = (struct use){i, k, *first};
            *first = n;
        }
    }
    for (uint32_t m = 0; m < p->memories.count; m++) {
        const struct nest_memory *memory = &p->memories.at[m];
        for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++)
            u.is_shown[memory->of[i]] = true;
    }
    return u;
}

#define for_each_use(u, m, at)                                                                 \
    for (uint32_t at = (u)->of_memory[m]; at != NEST_NONE; at = (u)->uses[at].next)

// The one use that stores memory m, when it is by a kernel; and every other use is as an operand of
// products.
static const struct use *find_writer(const struct uses *u, uint32_t m)
{
    const struct use *found = NULL;
    for_each_use(u, m, i)
    {
        const struct use *use = &u->uses[i];
        const struct nest_step *s = &u->p->steps.at[use->step];
        if (s->kind == NEST_STEP_GEMM && use->argument < 2)
            continue;
        if (found || s->kind != NEST_STEP_KERNEL)
            return NULL;
        found = use;
    }
    return u->is_shown[m] ? NULL : found;
}

// The statement that puts argument number `argument` of the nest, if it is the only one that
// names it.
static struct nest_statement *only_put(struct nest *n, uint32_t argument)
{
    nest_id buffer = nest_buffer_of(n, argument);
    struct nest_statement *put = NULL;
    for (uint32_t i = 0; i < n->statements.count; i++) {
        struct nest_statement *s = &n->statements.at[i];
        if ((s->kind != NEST_LOAD && s->kind != NEST_PUT) || s->buffer != buffer)
            continue;
        if (put || s->kind != NEST_PUT || s->op != 0 || s->guard != NEST_NONE)
            return NULL;
        put = s;
    }
    return put;
}

// Whether the axis is one of time or of a running fold, whose elements are no lanes.
static bool is_in_order(const struct nest *n, nest_id axis)
{
    nest_for_all (s, n)
        for (uint32_t i = 0; i < s->n_axes; i++)
            if (s->axes[i] == axis && (s->kind == NEST_SCAN || s->kind == NEST_SEQ))
                return true;
    return false;
}

// Whether the index is slow + rows * fast over the whole of a matrix, and the loop of `fast` lies
// inside that of `slow`.
static bool is_across(const struct nest *n, const struct nest_index *x, int64_t *rows,
                      int64_t *columns)
{
    if (x->constant != 0 || x->count != 2 || x->terms[0].is_value || x->terms[1].is_value)
        return false;
    int slow = x->terms[0].factor == 1 ? 0 : 1;
    const struct nest_term *a = &x->terms[slow], *b = &x->terms[1 - slow];
    *rows = n->axes.at[a->id].extent;
    *columns = n->axes.at[b->id].extent;
    return a->factor == 1 && b->factor == *rows && a->id < b->id && *columns >= 16 &&
           !is_in_order(n, b->id);
}

// Every product takes m as a dense matrix of these rows and columns, or as its transpose.
static bool products_agree(const struct uses *u, uint32_t m, int64_t row)
{
    for_each_use(u, m, i)
    {
        const struct nest_step *s = &u->p->steps.at[u->uses[i].step];
        if (s->kind != NEST_STEP_GEMM)
            continue;
        const struct nest_gemm *g = &s->gemm;
        bool is_a = u->uses[i].argument == 0;
        int64_t width = is_a ? (g->transpose_a ? g->m : g->k) : (g->transpose_b ? g->k : g->n);
        int64_t leading = is_a ? g->lda : g->ldb;
        if (width != row || leading != row || dtype_is_byte(g->operands) ||
            g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3] != 1)
            return false;
    }
    return true;
}

static void turn_products(const struct uses *u, uint32_t m, int64_t leading)
{
    for_each_use(u, m, i)
    {
        struct nest_step *s = &u->p->steps.at[u->uses[i].step];
        if (s->kind != NEST_STEP_GEMM)
            continue;
        if (u->uses[i].argument == 0) {
            s->gemm.transpose_a = !s->gemm.transpose_a;
            s->gemm.lda = leading;
        } else {
            s->gemm.transpose_b = !s->gemm.transpose_b;
            s->gemm.ldb = leading;
        }
    }
}

void layout_products(struct nest_program *p)
{
    struct uses u = find_uses(p);
    for (uint32_t m = 0; m < p->memories.count; m++) {
        const struct use *w =
            p->memories.at[m].kind == NEST_TEMPORARY ? find_writer(&u, m) : NULL;
        int64_t rows, columns;
        if (!w || u.of_nest[p->steps.at[w->step].nest] != 1)
            continue;
        struct nest *nest = p->nests.at[p->steps.at[w->step].nest];
        struct nest_statement *put = only_put(nest, w->argument);
        if (!put || !is_across(nest, &put->index, &rows, &columns) ||
            rows * columns != p->memories.at[m].count || !products_agree(&u, m, rows))
            continue;
        struct nest_term *terms = arena_array(p->arena, struct nest_term, 2);
        for (int k = 0; k < 2; k++) {
            terms[k] = put->index.terms[k];
            terms[k].factor = terms[k].factor == 1 ? columns : 1;
        }
        put->index.terms = terms;
        turn_products(&u, m, columns);
    }
}
