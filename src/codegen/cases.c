// SPDX-License-Identifier: Apache-2.0
// A tree of branches that compare one integer with constants is one jump to the case that holds.
//
//     if x <= 3 { if x <= 1 { if x <= 0 { a } else { b } } else { ... } } else { ... }
// becomes
//     switch x (0: a, 1: b, ...)
//
// As branches, LLVM would ask of each comparison what every one above it says, and of what a case loads whether any
// other case writes it: quadratic time of the number of cases.
#include "codegen/cases.h"
#include "codegen/branch.h"
#include "codegen/loop.h"
#include "codegen/turn.h"
#include "codegen/types.h"

#include "base/vec.h"

// Fewer cases are compared for as fast as a table is read.
#define LEAST_CASES 16
// Of one jump: LLVM's order of blocks takes quadratic time of them.
#define LOG_MOST_TARGETS 6
#define MOST_TARGETS (1 << LOG_MOST_TARGETS)

// A branch of the tree, or a case.
struct node {
    const struct nest_statement *branch; // NULL: a case
    nest_id predicate;
    uint16_t op; // x op number
    int64_t number;
    uint32_t then, other; // nodes
    uint32_t block;       // of a case
    const nest_id *yields;
    LLVMBasicBlockRef begin, end;
    struct cg_value *out;
};

struct cases {
    struct cg_lowering *l;
    const struct nest_statement *root;
    nest_id x;
    VEC(struct node) nodes;
    uint32_t n_cases;
    int64_t least, most; // numbers that x is compared with
};

// Whether a branch compares an integer with a number.
static bool read_predicate(const struct cases *c, const struct nest_statement *branch,
                           struct node *out, nest_id *x)
{
    const struct nest *n = c->l->nest;
    out->branch = branch;
    out->predicate = branch->in[0];
    const struct nest_statement *s = cg_statement(c->l, n->values.at[branch->in[0]].statement);
    if (branch->other == NEST_NONE || s->kind != NEST_OP ||
        (s->op != IR_eq && s->op != IR_ne && s->op != IR_lt && s->op != IR_le))
        return false;
    const struct nest_statement *number = cg_statement(c->l, n->values.at[s->in[1]].statement);
    jot_dtype dtype = n->values.at[s->in[0]].dtype;
    if (number->kind != NEST_CONST || (dtype != JOT_I32 && dtype != JOT_I64))
        return false;
    out->op = s->op;
    out->number = dtype == JOT_I64 ? number->bits[0] : (int32_t)number->bits[0];
    *x = s->in[0];
    return true;
}

// The branch that a block is nothing but, and whose results it yields; NULL: there is none.
static const struct nest_statement *only_branch(const struct cases *c, uint32_t block,
                                                const nest_id *yields)
{
    const struct nest_block *b = &c->l->nest->blocks.at[block];
    uint32_t n = b->statements.count;
    const struct nest_statement *s = n ? cg_statement(c->l, b->statements.at[n - 1]) : NULL;
    if (!s || s->kind != NEST_IF || s->n_results != c->root->n_results)
        return NULL;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const struct nest_statement *t = cg_statement(c->l, b->statements.at[i]);
        if (t->kind != NEST_CONST && (t->kind != NEST_OP || t->result != s->in[0]))
            return NULL;
    }
    for (uint32_t i = 0; i < s->n_results; i++)
        if (yields[i] != s->result + i)
            return NULL;
    return s;
}

static uint32_t add_branch(struct cases *c, struct node node);

// The branch or case that a side of a branch is.
static uint32_t add_side(struct cases *c, uint32_t block, const nest_id *yields)
{
    const struct nest_statement *inner = only_branch(c, block, yields);
    struct node node = {0};
    nest_id x;
    if (inner && read_predicate(c, inner, &node, &x) && x == c->x)
        return add_branch(c, node);
    c->n_cases++;
    vec_push(c->l->arena, &c->nodes, (struct node){.block = block, .yields = yields});
    return c->nodes.count - 1;
}

static uint32_t add_branch(struct cases *c, struct node node)
{
    const struct nest_statement *s = node.branch;
    uint32_t at = c->nodes.count;
    vec_push(c->l->arena, &c->nodes, node);
    c->least = node.number < c->least ? node.number : c->least;
    c->most = node.number > c->most ? node.number : c->most;
    uint32_t then = add_side(c, s->body, s->yields);
    uint32_t other = add_side(c, s->other, s->yields + s->n_results);
    c->nodes.at[at].then = then;
    c->nodes.at[at].other = other;
    return at;
}

static bool holds(uint16_t op, int64_t x, int64_t number)
{
    return op == IR_eq   ? x == number
           : op == IR_ne ? x != number
           : op == IR_lt ? x < number
                         : x <= number;
}

// The case of a number.
static const struct node *find_case(const struct cases *c, int64_t x)
{
    const struct node *n = &c->nodes.at[0];
    while (n->branch)
        n = &c->nodes.at[holds(n->op, x, n->number) ? n->then : n->other];
    return n;
}

static void lower_constants(struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (cg_statement(l, b->statements.at[i])->kind == NEST_CONST)
            cg_lower_list(l, &b->statements.at[i], 1);
}

// Lowers the cases below a node; there, it is known what the branches above compare.
static void lower_cases(struct cases *c, uint32_t at)
{
    struct cg_lowering *l = c->l;
    struct node *n = &c->nodes.at[at];
    if (n->branch) {
        struct cg_value before[CG_CHUNKS];
        unsigned k = 0;
        for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
            before[k++] = l->values[n->predicate];
        for (unsigned is_true = 2; is_true-- > 0;) {
            LLVMValueRef known =
                LLVMConstInt(LLVMInt1TypeInContext(l->module->context), is_true, 0);
            for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
                l->values[n->predicate] = (struct cg_value){known, NULL};
            const struct node *side = &c->nodes.at[is_true ? n->then : n->other];
            if (side->branch)
                lower_constants(l, is_true ? n->branch->body : n->branch->other);
            lower_cases(c, is_true ? n->then : n->other);
        }
        k = 0;
        for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
            l->values[n->predicate] = before[k++];
        return;
    }
    n->out = arena_array(l->arena, struct cg_value, (size_t)c->root->n_results * CG_CHUNKS + 1);
    LLVMPositionBuilderAtEnd(l->m.b, n->begin);
    cg_lower_block(l, n->block);
    cg_take_yields(l, c->root, n->yields, n->out);
    n->end = LLVMGetInsertBlock(l->m.b);
}

// Jumps to the case of least - 1 + x, which is one of `count` from `first` on.
static void write_jump(struct cases *c, LLVMValueRef x, int64_t first, int64_t count)
{
    LLVMBuilderRef b = c->l->m.b;
    LLVMTypeRef type = LLVMTypeOf(x);
    unsigned shift = 0;
    while (count > (int64_t)MOST_TARGETS << shift)
        shift += LOG_MOST_TARGETS;
    LLVMBasicBlockRef from = LLVMGetInsertBlock(b), other = NULL;
    LLVMValueRef part = shift ? LLVMBuildLShr(b, x, LLVMConstInt(type, shift, 0), "") : x,
                 jump = NULL;
    for (int64_t k = first, end = first + count; k < end;) {
        int64_t n = shift ? (((k >> shift) + 1) << shift) - k : 1;
        n = n < end - k ? n : end - k;
        LLVMBasicBlockRef to;
        if (shift) {
            to = cg_new_block(c->l);
            LLVMPositionBuilderAtEnd(b, to);
            write_jump(c, x, k, n);
            LLVMPositionBuilderAtEnd(b, from);
        } else {
            to = find_case(c, c->least - 1 + k)->begin;
        }
        if (!jump)
            jump = LLVMBuildSwitch(b, part, other = to, MOST_TARGETS);
        else if (to != other)
            LLVMAddCase(jump, LLVMConstInt(type, (uint64_t)(k >> shift), 0), to);
        k += n;
    }
}

// Numbers below the least, and above the most, are as the one next to it.
static void write_jumps(struct cases *c)
{
    LLVMBuilderRef b = c->l->m.b;
    LLVMValueRef x = c->l->values[c->x].re;
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef least = LLVMConstInt(type, (uint64_t)c->least - 1, 1),
                 most = LLVMConstInt(type, (uint64_t)c->most + 1, 1);
    x = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, x, least, ""), least, x, "");
    x = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSGT, x, most, ""), most, x, "");
    write_jump(c, LLVMBuildSub(b, x, least, ""), 0, c->most - c->least + 3);
}

static bool gather_cases(struct cases *c)
{
    struct node node = {0};
    if (c->l->gpu || !read_predicate(c, c->root, &node, &c->x) || !c->l->values[c->x].re ||
        cg_lanes_of(c->l->values[c->x].re) > 1)
        return false;
    c->least = INT64_MAX;
    c->most = INT64_MIN;
    add_branch(c, node);
    return c->n_cases >= LEAST_CASES && c->least > INT32_MIN && c->most < INT32_MAX &&
           c->most - c->least < 2 * (int64_t)c->n_cases;
}

bool cg_lower_cases(struct cg_lowering *l, const struct nest_statement *s)
{
    struct cases c = {.l = l, .root = s};
    LLVMBuilderRef b = l->m.b;
    if (!gather_cases(&c))
        return false;
    for (uint32_t i = 0; i < c.nodes.count; i++)
        if (!c.nodes.at[i].branch)
            c.nodes.at[i].begin = cg_new_block(l);
    LLVMBasicBlockRef exit = cg_new_block(l);
    write_jumps(&c);
    lower_cases(&c, 0);
    LLVMPositionBuilderAtEnd(b, exit);
    for (uint32_t i = 0, is_first = 1; i < c.nodes.count; i++) {
        struct node *n = &c.nodes.at[i];
        if (n->branch)
            continue;
        LLVMPositionBuilderAtEnd(b, n->end);
        LLVMBuildBr(b, exit);
        LLVMPositionBuilderAtEnd(b, exit);
        struct cg_value *out = n->out;
        for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
            for (uint32_t k = 0; k < s->n_results; k++, out++)
                if (is_first)
                    l->values[s->result + k] = cg_phi(l, *out, n->end);
                else
                    cg_phi_add(l->values[s->result + k], *out, n->end);
        is_first = 0;
    }
    return true;
}
