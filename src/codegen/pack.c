// SPDX-License-Identifier: Apache-2.0
// The while of one lane whose state has short rows, each element of which is a value of its own:
// where a step does the same with all elements of a row they are one vector.
//
//     x0' = sin(x0) + a   x1' = sin(x1) + b   ...        x' = sin(x) + (a, b, ...)
#include "codegen/pack.h"
#include "codegen/branch.h"
#include "codegen/emit.h"
#include "codegen/lower.h"
#include "codegen/scalar.h"
#include "codegen/types.h"

#include "base/hash.h"
#include "ir/cost.h"

#include <string.h>

#define SHORTEST 3 // rows
#define LONGEST 64

enum pack_kind { SAME, OUTSIDE, CARRIED, COMPUTED };

// Values that are the lanes of one vector.
struct pack {
    enum pack_kind kind;
    uint32_t n;
    const nest_id *values;
    uint32_t in[4];     // packs of the operands
    uint32_t row;       // that has what is carried
    struct cg_value it; // once it is made
};

// Carries that are one vector.
struct row {
    uint32_t first, n, next; // the pack of what a step makes of it
    LLVMValueRef it;
};

struct packer {
    struct cg_lowering *l;
    const struct nest_statement *s;
    bool *is_inside, *is_counted; // by value: made in the loop, and by itself
    uint64_t *shape;              // by value: a hash of how it is made, 0: not known yet
    uint32_t *row_of;             // by carry: its row and one, or 0
    VEC(struct row) rows;
    VEC(struct pack) packs;
    int64_t cost, cost_of_all; // with packs; when every value is made by itself
    bool is_simple;            // there is nothing but arithmetic and reading
    LLVMBasicBlockRef before;
};

// ---- What there is

static bool is_carry(const struct packer *p, nest_id v)
{
    return v >= p->s->first_carry && v < p->s->first_carry + p->s->n_in;
}

static const struct nest_statement *maker(const struct packer *p, nest_id v)
{
    return cg_statement(p->l, p->l->nest->values.at[v].statement);
}

static jot_dtype dtype_of(const struct packer *p, nest_id v)
{
    return p->l->nest->values.at[v].dtype;
}

static int64_t cost_of(const struct nest_statement *x)
{
    return x->kind == NEST_OP ? cost_of_op((enum ir_op)x->op, x->dtype) : 1;
}

static void note_block(struct packer *p, uint32_t block)
{
    nest_for_each (x, p->l->nest, block) {
        if (p->l->marks[nest_id_of(p->l->nest, x)].is_hoisted)
            continue;
        bool reads = x->kind == NEST_LOAD && p->l->nest->buffers.at[x->buffer].role == NEST_IN;
        p->is_simple &=
            x->kind == NEST_OP || x->kind == NEST_CONST || x->kind == NEST_INDEX || reads;
        p->cost_of_all += cost_of(x);
        for (uint32_t k = 0; k < x->n_results; k++)
            p->is_inside[x->result + k] = true;
    }
}

static uint64_t shape_of(struct packer *p, nest_id v)
{
    if (p->shape[v])
        return p->shape[v];
    const struct nest_statement *x = maker(p, v);
    uint64_t h = hash_mix((uint64_t)dtype_of(p, v) + 1);
    if (is_carry(p, v)) {
        h = hash_mix(h + 1);
    } else if (p->is_inside[v] && x->kind == NEST_OP) {
        h = hash_mix(h + x->op);
        for (uint32_t i = 0; i < x->n_in; i++)
            h = hash_mix(h + shape_of(p, x->in[i]));
    }
    return p->shape[v] = h | 1;
}

static void find_rows(struct packer *p)
{
    const struct nest_statement *s = p->s;
    for (uint32_t i = 0, n; i < s->n_in; i += n) {
        jot_dtype d = dtype_of(p, s->first_carry + i);
        n = 1;
        while (i + n < s->n_in && n < LONGEST && dtype_of(p, s->first_carry + i + n) == d &&
               shape_of(p, s->yields[1 + i + n]) == shape_of(p, s->yields[1 + i]))
            n++;
        if (n < SHORTEST || d == JOT_BOOL || dtype_is_complex(d))
            continue;
        vec_push(p->l->arena, &p->rows, (struct row){.first = i, .n = n});
        for (uint32_t k = 0; k < n; k++)
            p->row_of[i + k] = p->rows.count;
    }
}

static uint32_t row_number(const struct packer *p, nest_id v)
{
    return is_carry(p, v) ? p->row_of[v - p->s->first_carry] : 0;
}

// ---- The packs

// The value is made by itself, with all that it is made of.
static void count_value(struct packer *p, nest_id v)
{
    if (p->is_counted[v] || (!p->is_inside[v] && !row_number(p, v)))
        return;
    p->is_counted[v] = true;
    if (!p->is_inside[v]) {
        p->cost += 2; // a lane of its row
        return;
    }
    const struct nest_statement *x = maker(p, v);
    p->cost += cost_of(x);
    nest_for_uses (used, x)
        count_value(p, used);
}

static unsigned width_of(uint32_t n)
{
    unsigned width = 1;
    while (width < n)
        width *= 2;
    return width;
}

// Vectors of the target.
static int64_t registers_of_pack(const struct packer *p, const struct pack *k)
{
    unsigned bytes = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        unsigned of = dtype_get(dtype_of(p, k->values[i]))->bytes;
        bytes = of > bytes ? of : bytes;
    }
    unsigned all = width_of(k->n) * bytes, one = p->l->module->vector_bytes;
    return all > one ? all / one : 1;
}

static bool are_alike(const struct nest_statement *x, const struct nest_statement *y)
{
    return x->kind == NEST_OP && y->kind == NEST_OP && x->op == y->op && x->dtype == y->dtype &&
           x->n_in == y->n_in && x->n_results == 1 && !memcmp(x->bits, y->bits, sizeof x->bits);
}

static bool find_kind(const struct packer *p, struct pack *k)
{
    nest_id first = k->values[0];
    bool same = true, outside = true, carried = row_number(p, first),
         computed = p->is_inside[first];
    for (uint32_t i = 0; i < k->n; i++) {
        nest_id v = k->values[i];
        same &= v == first;
        outside &= !p->is_inside[v] && !is_carry(p, v);
        carried &= row_number(p, v) == row_number(p, first);
        computed &= p->is_inside[v] && are_alike(maker(p, first), maker(p, v)) &&
                    dtype_of(p, v) == dtype_of(p, first);
    }
    k->row = row_number(p, first) - 1;
    k->kind = same ? SAME : outside ? OUTSIDE : carried ? CARRIED : COMPUTED;
    return (same || outside || carried || computed) && !dtype_is_complex(dtype_of(p, first));
}

static bool is_row_itself(const struct packer *p, const struct pack *k)
{
    const struct row *r = &p->rows.at[k->row];
    for (uint32_t i = 0; i < k->n; i++)
        if (k->values[i] != p->s->first_carry + r->first + i)
            return false;
    return k->n == r->n;
}

// The number of the pack, or NEST_NONE.
static uint32_t pack(struct packer *p, uint32_t n, const nest_id *values)
{
    for (uint32_t i = 0; i < p->packs.count; i++)
        if (p->packs.at[i].n == n && !memcmp(p->packs.at[i].values, values, n * sizeof *values))
            return i;
    struct pack k = {.n = n, .values = values};
    if (!find_kind(p, &k))
        return NEST_NONE;
    const struct nest_statement *x = maker(p, values[0]);
    if (k.kind == SAME)
        count_value(p, values[0]);
    for (uint32_t i = 0; k.kind == COMPUTED && i < x->n_in; i++) {
        nest_id *in = arena_array(p->l->arena, nest_id, n);
        for (uint32_t e = 0; e < n; e++) {
            in[e] = maker(p, values[e])->in[i];
            if (dtype_of(p, in[e]) != dtype_of(p, in[0]))
                return NEST_NONE;
        }
        k.in[i] = pack(p, n, in);
        if (k.in[i] == NEST_NONE)
            return NEST_NONE;
    }
    p->cost += k.kind == COMPUTED ? cost_of(x) * registers_of_pack(p, &k)
               : k.kind == CARRIED && !is_row_itself(p, &k) ? 2 * registers_of_pack(p, &k)
                                                            : k.kind == SAME;
    vec_push(p->l->arena, &p->packs, k);
    return p->packs.count - 1;
}

// Whether there are rows, all of them can be vectors, and that is worth it.
static bool plan(struct packer *p)
{
    const struct nest_statement *s = p->s;
    note_block(p, s->body);
    note_block(p, s->other);
    if (!p->is_simple)
        return false;
    find_rows(p);
    for (uint32_t i = 0; i < p->rows.count; i++) {
        struct row *r = &p->rows.at[i];
        r->next = pack(p, r->n, s->yields + 1 + r->first);
        if (r->next == NEST_NONE)
            return false;
    }
    count_value(p, s->yields[0]);
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!p->row_of[i])
            count_value(p, s->yields[1 + i]);
    return p->rows.count && 4 * p->cost <= 3 * p->cost_of_all;
}

// ---- The code

static LLVMValueRef carry_of_row(struct packer *p, nest_id carry)
{
    const struct row *r = &p->rows.at[row_number(p, carry) - 1];
    uint32_t lane = carry - p->s->first_carry - r->first;
    return LLVMBuildExtractElement(p->l->m.b, r->it, LLVMConstInt(p->l->module->i32, lane, 0),
                                   "");
}

// A value by itself.
static struct cg_value make_value(struct packer *p, nest_id v)
{
    struct cg_lowering *l = p->l;
    if (l->values[v].re)
        return l->values[v];
    if (is_carry(p, v))
        return l->values[v] = (struct cg_value){carry_of_row(p, v), NULL};
    const struct nest_statement *x = maker(p, v);
    nest_for_uses (used, x)
        make_value(p, used);
    cg_lower_statement(l, l->nest->values.at[v].statement);
    return l->values[v];
}

// Values that are known, as a vector; the last of them has the lanes that are left.
static LLVMValueRef vector_of(struct cg_lowering *l, uint32_t n, const LLVMValueRef *v)
{
    unsigned width = width_of(n);
    LLVMValueRef all = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(v[0]), width));
    for (unsigned i = 0; i < width; i++)
        all = LLVMBuildInsertElement(l->m.b, all, v[i < n ? i : n - 1],
                                     LLVMConstInt(l->module->i32, i, 0), "");
    return all;
}

static LLVMValueRef make_outside(struct packer *p, const struct pack *k)
{
    LLVMBuilderRef b = p->l->m.b;
    LLVMValueRef v[LONGEST];
    LLVMBasicBlockRef now = LLVMGetInsertBlock(b);
    for (uint32_t i = 0; i < k->n; i++)
        v[i] = p->l->values[k->values[i]].re;
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(p->before));
    LLVMValueRef all = vector_of(p->l, k->n, v);
    LLVMPositionBuilderAtEnd(b, now);
    return all;
}

static LLVMValueRef make_shuffle(struct packer *p, const struct pack *k)
{
    const struct row *r = &p->rows.at[k->row];
    LLVMValueRef order[LONGEST];
    unsigned width = width_of(k->n);
    for (unsigned i = 0; i < width; i++) {
        nest_id v = k->values[i < k->n ? i : k->n - 1];
        order[i] = LLVMConstInt(p->l->module->i32, v - p->s->first_carry - r->first, 0);
    }
    return LLVMBuildShuffleVector(p->l->m.b, r->it, LLVMGetPoison(LLVMTypeOf(r->it)),
                                  LLVMConstVector(order, width), "");
}

static struct cg_value make_pack(struct packer *p, uint32_t number)
{
    struct pack *k = &p->packs.at[number];
    const struct nest_statement *x = maker(p, k->values[0]);
    struct cg_value in[4], out[2];
    jot_dtype dtypes[4];
    if (k->it.re)
        return k->it;
    switch (k->kind) {
    case SAME:
        k->it.re = cg_splat(&p->l->m, make_value(p, k->values[0]).re, width_of(k->n));
        break;
    case OUTSIDE:
        k->it.re = make_outside(p, k);
        break;
    case CARRIED:
        k->it.re = is_row_itself(p, k) ? p->rows.at[k->row].it : make_shuffle(p, k);
        break;
    case COMPUTED:
        for (uint32_t i = 0; i < x->n_in; i++) {
            in[i] = make_pack(p, k->in[i]);
            dtypes[i] = dtype_of(p, x->in[i]);
        }
        cg_op(&p->l->m, (enum ir_op)x->op, x->dtype, (int)x->n_in, dtypes, in, x->bits, out);
        k->it = out[0];
    }
    return k->it;
}

static void open_rows(struct packer *p, const struct cg_value *init, struct cg_value *carries,
                      LLVMBasicBlockRef head)
{
    struct cg_lowering *l = p->l;
    LLVMBuilderRef b = l->m.b;
    for (uint32_t i = 0; i < p->rows.count; i++) {
        struct row *r = &p->rows.at[i];
        LLVMValueRef v[LONGEST];
        for (uint32_t k = 0; k < r->n; k++)
            v[k] = init[r->first + k].re;
        r->it = vector_of(l, r->n, v);
    }
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    for (uint32_t i = 0; i < p->rows.count; i++)
        p->rows.at[i].it = cg_phi(l, (struct cg_value){p->rows.at[i].it, NULL}, p->before).re;
    for (uint32_t i = 0; i < p->s->n_in; i++) {
        carries[i] = p->row_of[i] ? (struct cg_value){0} : cg_phi(l, init[i], p->before);
        l->values[p->s->first_carry + i] = carries[i];
    }
}

static void close_rows(struct packer *p, struct cg_value *carries, LLVMBasicBlockRef head)
{
    struct cg_lowering *l = p->l;
    const struct nest_statement *s = p->s;
    for (uint32_t i = 0; i < p->rows.count; i++)
        make_pack(p, p->rows.at[i].next);
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!p->row_of[i])
            make_value(p, s->yields[1 + i]);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->m.b);
    for (uint32_t i = 0; i < p->rows.count; i++)
        cg_phi_add((struct cg_value){p->rows.at[i].it, NULL},
                   p->packs.at[p->rows.at[i].next].it, latch);
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!p->row_of[i])
            cg_phi_add(carries[i], l->values[s->yields[1 + i]], latch);
    LLVMBuildBr(l->m.b, head);
}

bool cg_lower_packed(struct cg_lowering *l, const struct nest_statement *s,
                     const struct cg_value *init, struct cg_value *carries)
{
    uint32_t n = (uint32_t)l->nest->values.count + 1;
    struct packer p = {.l = l,
                       .s = s,
                       .is_inside = arena_array(l->arena, bool, n),
                       .is_counted = arena_array(l->arena, bool, n),
                       .shape = arena_array(l->arena, uint64_t, n),
                       .row_of = arena_array(l->arena, uint32_t, s->n_in + 1),
                       .is_simple = true,
                       .before = LLVMGetInsertBlock(l->m.b)};
    if (!plan(&p))
        return false;
    LLVMContextRef c = l->module->context;
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(c, l->frame.function, ""),
                      step = LLVMAppendBasicBlockInContext(c, l->frame.function, ""),
                      exit = LLVMAppendBasicBlockInContext(c, l->frame.function, "");
    open_rows(&p, init, carries, head);
    LLVMBuildCondBr(l->m.b, make_value(&p, s->yields[0]).re, step, exit);
    LLVMPositionBuilderAtEnd(l->m.b, step);
    close_rows(&p, carries, head);
    LLVMPositionBuilderAtEnd(l->m.b, exit);
    for (uint32_t i = 0; i < s->n_in; i++)
        if (p.row_of[i])
            carries[i].re = carry_of_row(&p, s->first_carry + i);
    return true;
}
