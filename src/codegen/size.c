// SPDX-License-Identifier: Apache-2.0
// How much code the statements of a nest become, and which of its loops are written out.
//
//     fold i < 4 { fold j < 8 { a; b; } c; }        8 (a + b) written out, 4 (8 (a + b) + c) for both
//
// One bound is for all of a kernel.  Inner loops are written out before those around them, and where all
// together would be more than the bound, shorter ones only.
#include "codegen/lower.h"

#include "passes/cost.h"

struct sizes {
    const struct cg_lowering *l;
    int64_t most; // of a loop that is written out
};

static int64_t plus(int64_t a, int64_t b)
{
    return a > INT64_MAX / 4 - b ? INT64_MAX / 4 : a + b;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t p;
    return __builtin_mul_overflow(a, b, &p) || p > INT64_MAX / 4 ? INT64_MAX / 4 : p;
}

static int64_t size_of_block(const struct sizes *z, uint32_t block);

static int64_t size_of_statement(const struct sizes *z, nest_id id)
{
    const struct nest_statement *s = cg_statement(z->l, id);
    int64_t own = s->kind == NEST_OP ? cost_of_op((enum ir_op)s->op, s->dtype) : 0;
    int64_t inner = plus(size_of_block(z, s->body), size_of_block(z, s->other));
    inner = plus(inner, s->n_combines);
    bool is_short =
        (s->kind == NEST_FOLD || s->kind == NEST_MAP) && cg_extent(z->l, s) <= CG_SHORT_LOOP;
    int64_t all = is_short ? times(cg_extent(z->l, s), inner) : inner;
    return plus(plus(own, 1), all <= z->most ? all : inner);
}

static int64_t size_of_block(const struct sizes *z, uint32_t block)
{
    if (block == NEST_NONE)
        return 0;
    const struct nest_block *b = &z->l->nest->blocks.at[block];
    int64_t n = 0;
    for (uint32_t i = 0; i < b->statements.count; i++)
        n = plus(n, size_of_statement(z, b->statements.at[i]));
    return n;
}

// The most code that a loop of the kernel may become.
static int64_t most_of_kernel(const struct cg_lowering *l)
{
    struct sizes z = {l, CG_WRITTEN_OUT};
    while (z.most > 1 && size_of_block(&z, 0) > 2 * CG_WRITTEN_OUT)
        z.most /= 2;
    return z.most;
}

// Registers that a value of the lanes at hand takes.
static int64_t registers_of(const struct cg_lowering *l)
{
    int64_t lanes = l->lanes * (l->chunks ? l->n_chunks : 1),
            of_one = l->module->vector_bytes / 4;
    return of_one && lanes > of_one ? lanes / of_one : 1;
}

bool cg_may_repeat(struct cg_lowering *l, const struct nest_statement *s, int64_t count)
{
    if (!l->written_out)
        l->written_out = most_of_kernel(l);
    struct sizes z = {l, l->written_out};
    int64_t inner = plus(size_of_block(&z, s->body), s->n_combines);
    return times(times(count, inner), registers_of(l)) <= z.most;
}
