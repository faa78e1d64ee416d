// SPDX-License-Identifier: Apache-2.0
// Which loops of a nest are written out.  One bound is for all of a kernel: inner loops are written out
// before those around them, and where all together would be too much code, shorter ones only.
#include "codegen/lower.h"

#include "passes/cost.h"

// The most code that a loop of the kernel may become, which has as much beside those.
static int64_t most_of_kernel(const struct cg_lowering *l)
{
    int64_t most = COST_CODE;
    while (most > 1 && cost_is_too_much_code(nest_code(l->nest, 0, most) / 2))
        most /= 2;
    return most;
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
    int64_t once = nest_code(l->nest, s->body, l->written_out) + s->n_combines;
    return once <= l->written_out / registers_of(l) / (count ? count : 1);
}
