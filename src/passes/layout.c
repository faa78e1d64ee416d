// SPDX-License-Identifier: Apache-2.0
// Layouts of operands of library products: a matrix that a kernel would store across its lanes is
// stored along them, and the product reads it transposed.
//
//     par i < 4096 { map k < 512 { put t[i + 4096*k] = ... } }     put t[512*i + k] = ...
//     gemm a = t [512, 4096]                              becomes  gemm transpose_a, a = t
//
// Needs a scheduled program; keeps steps, sizes and results.
#include "passes/schedule_internal.h"

struct writer {
    struct nest *nest;
    struct nest_statement *put;
    uint32_t buffer;
};

// The one step that stores memory m, when it is a kernel with one plain put of it; and every other
// use is as an operand of products.
static bool find_writer(struct nest_program *p, uint32_t m, struct writer *out)
{
    bool found = false;
    for (uint32_t i = m + 1; i < p->memories.count; i++)
        if (nest_memory_shows(p, i, m))
            return false;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        for (uint32_t k = 0; k < s->n_memories; k++) {
            if (s->memories[k] != m || (s->kind == NEST_STEP_GEMM && k < 2))
                continue;
            if (found || s->kind != NEST_STEP_KERNEL)
                return false;
            found = true;
            out->nest = p->nests.at[s->nest];
            out->buffer = k;
        }
    }
    return found;
}

// The statement that puts argument number `argument` of the nest, if it is the only one that
// names it.
static struct nest_statement *only_put(struct nest *n, uint32_t argument)
{
    nest_id buffer = 0;
    for (uint32_t seen = 0;; buffer++)
        if (n->buffers.at[buffer].role != NEST_LOCAL && seen++ == argument)
            break;
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
    return a->factor == 1 && b->factor == *rows && a->id < b->id && *columns >= 16;
}

// Every product takes m as a dense matrix of these rows and columns, or as its transpose.
static bool products_agree(const struct nest_program *p, uint32_t m, int64_t row)
{
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_GEMM)
            continue;
        const struct nest_gemm *g = &s->gemm;
        for (int k = 0; k < 2; k++) {
            if (s->memories[k] != m)
                continue;
            int64_t width =
                k == 0 ? (g->transpose_a ? g->m : g->k) : (g->transpose_b ? g->k : g->n);
            int64_t leading = k == 0 ? g->lda : g->ldb;
            if (width != row || leading != row ||
                g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3] != 1)
                return false;
        }
    }
    return true;
}

static void turn_products(struct nest_program *p, uint32_t m, int64_t leading)
{
    for (uint32_t i = 0; i < p->steps.count; i++) {
        struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_GEMM)
            continue;
        if (s->memories[0] == m) {
            s->gemm.transpose_a = !s->gemm.transpose_a;
            s->gemm.lda = leading;
        }
        if (s->memories[1] == m) {
            s->gemm.transpose_b = !s->gemm.transpose_b;
            s->gemm.ldb = leading;
        }
    }
}

static uint32_t uses_of_nest(const struct nest_program *p, const struct nest *n)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_KERNEL && p->nests.at[p->steps.at[i].nest] == n)
            uses++;
    return uses;
}

void layout_products(struct nest_program *p)
{
    for (uint32_t m = 0; m < p->memories.count; m++) {
        struct writer w;
        int64_t rows, columns;
        if (p->memories.at[m].place != NEST_TEMPORARY || !find_writer(p, m, &w) ||
            uses_of_nest(p, w.nest) != 1)
            continue;
        w.put = only_put(w.nest, w.buffer);
        if (!w.put || !is_across(w.nest, &w.put->index, &rows, &columns) ||
            rows * columns != p->memories.at[m].count || !products_agree(p, m, rows))
            continue;
        struct nest_term *terms = arena_array(p->arena, struct nest_term, 2);
        for (int k = 0; k < 2; k++) {
            terms[k] = w.put->index.terms[k];
            terms[k].factor = terms[k].factor == 1 ? columns : 1;
        }
        w.put->index.terms = terms;
        turn_products(p, m, columns);
    }
}
