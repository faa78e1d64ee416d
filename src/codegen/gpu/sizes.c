// SPDX-License-Identifier: Apache-2.0
// Sizes of f32s in a run of operations (ranges.c).  The operands of a root, quotient or power are checked
// to be in range.  That bounds what is made of them, and a value with known bounds is not checked
// again.
#include "codegen/gpu/sizes.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/gpu/gpu.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#include <math.h>
#include <string.h>

#define LEAST 0x1p-60 // of what a quotient or a root is made of without a look
#define MOST 0x1p60

struct gpu_size {
    double least, most; // of |x|, which is a number; most 0: not known
    bool is_positive;   // known to be
};

static bool is_within(struct gpu_size x)
{
    return x.most && x.least >= LEAST && x.most <= MOST;
}

static struct gpu_size times(struct gpu_size x, struct gpu_size y)
{
    if (!x.most || !y.most)
        return (struct gpu_size){0};
    return (struct gpu_size){x.least * y.least, x.most * y.most,
                             x.is_positive && y.is_positive};
}

static struct gpu_size inverse(struct gpu_size x)
{
    return x.most ? (struct gpu_size){1 / x.most, 1 / x.least, x.is_positive} : x;
}

static struct gpu_size power(struct gpu_size x, int64_t n)
{
    if (!x.most)
        return x;
    struct gpu_size y = {pow(x.least, fabs((double)n)), pow(x.most, fabs((double)n)),
                         x.is_positive || n % 2 == 0};
    return n < 0 ? inverse(y) : y;
}

// A number that an operation of the run is made of; what it is, if that must be found out.
static void note_operand(struct cg_lowering *l, nest_id value, bool is_positive)
{
    struct gpu_size *x = &l->m.ranges->sizes[value];
    if (is_within(*x) && (x->is_positive || !is_positive))
        return;
    LLVMValueRef v = l->values[value].re;
    LLVMTypeRef type = LLVMTypeOf(v);
    if (!is_positive)
        v = cg_intrinsic(&l->m, "llvm.fabs", type, 1, &v);
    LLVMValueRef below = LLVMBuildFCmp(l->m.b, LLVMRealULT, v, LLVMConstReal(type, LEAST), "");
    LLVMValueRef above = LLVMBuildFCmp(l->m.b, LLVMRealUGT, v, LLVMConstReal(type, MOST), "");
    cg_outside(&l->m, below);
    cg_outside(&l->m, above);
    *x = (struct gpu_size){LEAST, MOST, is_positive || x->is_positive};
}

static struct gpu_size size_of_number(const struct nest_statement *s)
{
    float x;
    memcpy(&x, s->bits, sizeof x);
    return isfinite(x) && x != 0 ? (struct gpu_size){fabs((double)x), fabs((double)x), x > 0}
                                 : (struct gpu_size){0};
}

// Of results the rounding is a part: sizes keep away from the ends by far more.
static struct gpu_size size_of(const struct cg_lowering *l, const struct nest_statement *s)
{
    const struct gpu_size *sizes = l->m.ranges->sizes;
    struct gpu_size x = s->n_in ? sizes[s->in[0]] : (struct gpu_size){0};
    switch (s->op) {
    case IR_neg:
        x.is_positive = false;
        return x;
    case IR_abs:
        x.is_positive = true;
        return x;
    case IR_mul:
        x = times(x, sizes[s->in[1]]);
        x.is_positive |= s->in[0] == s->in[1];
        return x;
    case IR_div:
        return times(x, inverse(sizes[s->in[1]]));
    case IR_sqrt:
        return (struct gpu_size){sqrt(x.least), sqrt(x.most), true};
    case IR_integer_pow:
        return power(x, s->bits[0]);
    default:
        return (struct gpu_size){0};
    }
}

bool gpu_is_sized(const struct cg_lowering *l, const struct nest_statement *s)
{
    return l->vector.lanes == 1 && s->kind == NEST_OP && s->dtype == JOT_F32 &&
           (s->op == IR_sqrt || s->op == IR_div || (s->op == IR_integer_pow && s->bits[0] < 0));
}

void gpu_lower_sized(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    struct cg_range_run *r = l->m.ranges;
    if (s->n_results != 1 || s->dtype != JOT_F32) {
        cg_lower_statement(l, id);
        return;
    }
    bool is_sized = gpu_is_sized(l, s);
    if (is_sized && s->op == IR_integer_pow) {
        struct gpu_size y = power(r->sizes[s->in[0]], -s->bits[0]);
        if (!is_within(y))
            is_sized = false;
    }
    for (uint32_t i = 0; is_sized && i < s->n_in; i++)
        note_operand(l, s->in[i], s->op == IR_sqrt);
    r->is_known = is_sized;
    cg_lower_statement(l, id);
    r->is_known = false;
    r->sizes[s->result] = s->kind == NEST_OP ? size_of(l, s) : r->sizes[s->result];
    if (!(r->sizes[s->result].least >= 0x1p-120 && r->sizes[s->result].most <= 0x1p120))
        r->sizes[s->result] = (struct gpu_size){0};
}

// What is known of a value outside of runs.
static struct gpu_size size_at_first(const struct cg_lowering *l, nest_id value)
{
    const struct nest_statement *s = cg_maker_of(l, value);
    return s->kind == NEST_CONST && s->dtype == JOT_F32 ? size_of_number(s)
                                                        : (struct gpu_size){0};
}

struct gpu_size *gpu_sizes_of(struct cg_lowering *l)
{
    struct cg_gpu *g = l->gpu;
    uint32_t n = l->nest->values.count;
    if (g->arithmetic.sizes && g->arithmetic.sized == l->nest)
        return g->arithmetic.sizes;
    g->arithmetic.sized = l->nest;
    g->arithmetic.sizes = arena_array(l->arena, struct gpu_size, n + 1);
    for (nest_id i = 0; i < n; i++)
        g->arithmetic.sizes[i] = size_at_first(l, i);
    return g->arithmetic.sizes;
}

void gpu_sizes_forget(struct cg_lowering *l, const nest_id *statements, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, statements[i]);
        for (uint32_t k = 0; k < s->n_in; k++)
            l->gpu->arithmetic.sizes[s->in[k]] = size_at_first(l, s->in[k]);
        for (uint32_t k = 0; k < s->n_results; k++)
            l->gpu->arithmetic.sizes[s->result + k] = size_at_first(l, s->result + k);
    }
}
