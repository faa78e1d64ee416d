// SPDX-License-Identifier: Apache-2.0
// Products with small matrices: accumulators stay in registers, as many as there are.  And the tree
// over the partial results of blocks, which many sums of one kernel share.
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/layers.h"
#include "codegen/emit.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#include <stdio.h>

#define MOST_SUMS 20
#define TRIPS 8 // over 64 points each, of a block of 512

// A function in the making.
struct maker {
    struct cg_module *module;
    struct machine m;
    LLVMValueRef function;
    LLVMTypeRef lane;
    unsigned bytes;
};

struct counted { // for (i = 0; i < end; i++), at least once
    LLVMBasicBlockRef body, exit, before;
    LLVMValueRef index, end;
};

static LLVMBasicBlockRef new_block(struct maker *f)
{
    return LLVMAppendBasicBlockInContext(f->module->context, f->function, "");
}

static struct counted count_open(struct maker *f, LLVMValueRef end)
{
    struct counted c = {.body = new_block(f), .exit = new_block(f), .end = end};
    LLVMValueRef zero = cg_int(f->module, 0);
    c.before = LLVMGetInsertBlock(f->m.b);
    LLVMBuildBr(f->m.b, c.body);
    LLVMPositionBuilderAtEnd(f->m.b, c.body);
    c.index = LLVMBuildPhi(f->m.b, f->module->i64, "");
    LLVMAddIncoming(c.index, &zero, &c.before, 1);
    return c;
}

static void count_close(struct maker *f, struct counted *c)
{
    LLVMValueRef next = LLVMBuildNSWAdd(f->m.b, c->index, cg_int(f->module, 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->m.b);
    LLVMBuildCondBr(f->m.b, LLVMBuildICmp(f->m.b, LLVMIntSLT, next, c->end, ""), c->body,
                    c->exit);
    LLVMAddIncoming(c->index, &next, &latch, 1);
    LLVMPositionBuilderAtEnd(f->m.b, c->exit);
}

static LLVMValueRef at(struct maker *f, LLVMValueRef base, LLVMValueRef i)
{
    return LLVMBuildInBoundsGEP2(f->m.b, f->lane, base, &i, 1, "");
}

static LLVMValueRef at_constant(struct maker *f, LLVMValueRef base, int64_t i)
{
    return at(f, base, cg_int(f->module, i));
}

static LLVMValueRef scaled(struct maker *f, LLVMValueRef i, int64_t factor)
{
    return LLVMBuildMul(f->m.b, i, cg_int(f->module, factor), "");
}

static LLVMValueRef load_row(struct maker *f, LLVMTypeRef type, LLVMValueRef from)
{
    LLVMValueRef v = LLVMBuildLoad2(f->m.b, type, from, "");
    LLVMSetAlignment(v, f->bytes);
    return v;
}

static void store_row(struct maker *f, LLVMValueRef v, LLVMValueRef to)
{
    LLVMSetAlignment(LLVMBuildStore(f->m.b, v, to), f->bytes);
}

static LLVMValueRef multiply_add(struct maker *f, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c)
{
    LLVMValueRef in[] = {a, b, c};
    return cg_intrinsic(&f->m, "llvm.fma", LLVMTypeOf(a), 3, in);
}

// Begins the function of this name; false when there is one.
static bool begin(struct maker *f, struct cg_lowering *l, const char *name, jot_dtype d,
                  LLVMTypeRef type)
{
    f->module = l->module;
    f->function = LLVMGetNamedFunction(l->module->module, name);
    if (f->function)
        return false;
    f->function = LLVMAddFunction(l->module->module, name, type);
    LLVMSetLinkage(f->function, LLVMInternalLinkage);
    f->lane = cg_memory_type(l->module, d);
    f->bytes = dtype_get(d)->bytes;
    f->m = (struct machine){.module = l->module,
                            .b = LLVMCreateBuilderInContext(l->module->context)};
    LLVMPositionBuilderAtEnd(f->m.b, new_block(f));
    return true;
}

static void end(struct maker *f)
{
    LLVMBuildRetVoid(f->m.b);
    LLVMDisposeBuilder(f->m.b);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The largest of pieces of nearly the same size, as few as there can be of no more than `most`.
static int64_t even_side(int64_t n, int64_t most)
{
    int64_t pieces = (n + most - 1) / most;
    return (n + pieces - 1) / pieces;
}

// Up to `most`, and more than half of it: one that leaves no rest, which is code of its own, if
// any.
static int64_t whole_side(int64_t n, int64_t most)
{
    for (int64_t side = most; 2 * side > most; side--)
        if (n % side == 0)
            return side;
    return most;
}

// ---- Layers

// `count` outputs, the first of them at `to`, its column of the matrix at `matrix`.
static void outputs(struct maker *f, const struct cg_layer *y, LLVMValueRef to,
                    LLVMValueRef from, LLVMValueRef matrix, int64_t count)
{
    LLVMTypeRef type = LLVMVectorType(f->lane, y->lanes);
    LLVMValueRef sums[64], zero = LLVMConstNull(type);
    struct counted k = count_open(f, cg_int(f->module, y->inputs));
    for (int64_t j = 0; j < count; j++) {
        sums[j] = LLVMBuildPhi(f->m.b, type, "");
        LLVMAddIncoming(sums[j], &zero, &k.before, 1);
    }
    LLVMValueRef x = load_row(f, type, at(f, from, scaled(f, k.index, y->from_row)));
    LLVMValueRef column = at(f, matrix, scaled(f, k.index, y->input_step));
    LLVMValueRef next[64];
    for (int64_t j = 0; j < count; j++) {
        LLVMValueRef w = load_row(f, f->lane, at_constant(f, column, j * y->output_step));
        next[j] = multiply_add(f, cg_splat(&f->m, w, y->lanes), x, sums[j]);
    }
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->m.b);
    for (int64_t j = 0; j < count; j++)
        LLVMAddIncoming(sums[j], &next[j], &latch, 1);
    count_close(f, &k);
    for (int64_t j = 0; j < count; j++)
        store_row(f, next[j], at_constant(f, to, j * y->to_row));
}

static void make_layer(struct maker *f, const struct cg_layer *y)
{
    LLVMValueRef to = LLVMGetParam(f->function, 0), from = LLVMGetParam(f->function, 1),
                 matrix = LLVMGetParam(f->function, 2);
    int64_t vectors = y->lanes * f->bytes / f->module->vector_bytes;
    int64_t most = f->module->registers * 3 / 4 / (vectors > 0 ? vectors : 1);
    int64_t side = even_side(y->outputs, most);
    int64_t whole = y->outputs / side, rest = y->outputs % side;
    struct counted g = count_open(f, cg_int(f->module, whole));
    outputs(f, y, at(f, to, scaled(f, g.index, side * y->to_row)), from,
            at(f, matrix, scaled(f, g.index, side * y->output_step)), side);
    count_close(f, &g);
    if (rest)
        outputs(f, y, at_constant(f, to, whole * side * y->to_row), from,
                at_constant(f, matrix, whole * side * y->output_step), rest);
}

void cg_call_layer(struct cg_lowering *l, const struct cg_layer *y, LLVMValueRef to,
                   LLVMValueRef from, LLVMValueRef matrix)
{
    LLVMTypeRef p = l->module->ptr;
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->module->context),
                                        (LLVMTypeRef[]){p, p, p}, 3, 0);
    char name[160];
    snprintf(name, sizeof name, "layer_%d_%u_%lld_%lld_%lld_%lld_%lld_%lld", (int)y->dtype,
             y->lanes, (long long)y->inputs, (long long)y->outputs, (long long)y->input_step,
             (long long)y->output_step, (long long)y->from_row, (long long)y->to_row);
    struct maker f;
    if (begin(&f, l, name, y->dtype, type)) {
        make_layer(&f, y);
        end(&f);
    }
    LLVMBuildCall2(l->m.b, type, f.function, (LLVMValueRef[]){to, from, matrix}, 3, "");
}

// ---- Products over points

// A block of results: `parts` vectors of `lanes` are the 64 accumulators of one of them.
struct block {
    const struct cg_product *product;
    LLVMTypeRef type;
    unsigned lanes, parts;
    int64_t rows, columns;
    LLVMValueRef a, b, count;
    LLVMValueRef sums[MOST_SUMS]; // variables: the accumulators of one part
    LLVMValueRef kept;            // memory: those of all parts
};

// One more trip over 64 points: `in` are those of the part, in the first rows of the factors.
static void add_trip(struct maker *f, const struct block *x, const LLVMValueRef in[2])
{
    LLVMValueRef v[2][MOST_SUMS];
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < (k ? x->columns : x->rows); i++)
            v[k][i] = load_row(f, x->type, at_constant(f, in[k], i * x->product->lanes));
    for (int64_t i = 0; i < x->rows * x->columns; i++) {
        LLVMValueRef sum = LLVMBuildLoad2(f->m.b, x->type, x->sums[i], "");
        sum = multiply_add(f, v[0][i / x->columns], v[1][i % x->columns], sum);
        LLVMBuildStore(f->m.b, sum, x->sums[i]);
    }
}

// for (; done + n <= trips; done += n) { n trips }
static LLVMValueRef add_trips(struct maker *f, const struct block *x, LLVMValueRef done,
                              LLVMValueRef trips, int64_t n, const LLVMValueRef from[2])
{
    LLVMBuilderRef b = f->m.b;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), test = new_block(f), body = new_block(f),
                      after = new_block(f);
    LLVMBuildBr(b, test);
    LLVMPositionBuilderAtEnd(b, test);
    LLVMValueRef now = LLVMBuildPhi(b, f->module->i64, "");
    LLVMAddIncoming(now, &done, &before, 1);
    LLVMValueRef next = LLVMBuildNSWAdd(b, now, cg_int(f->module, n), "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, next, trips, ""), body, after);
    LLVMPositionBuilderAtEnd(b, body);
    for (int64_t trip = 0; trip < n; trip++) {
        LLVMValueRef in[2];
        for (int k = 0; k < 2; k++) {
            int64_t step = x->product->lanes * x->product->rows[k];
            in[k] = at_constant(f, at(f, from[k], scaled(f, now, step)), trip * step);
        }
        add_trip(f, x, in);
    }
    LLVMAddIncoming(now, &next, &body, 1);
    LLVMBuildBr(b, test);
    LLVMPositionBuilderAtEnd(b, after);
    return now;
}

static LLVMValueRef kept_at(struct maker *f, const struct block *x, LLVMValueRef part,
                            int64_t i)
{
    return at_constant(f, at(f, x->kept, scaled(f, part, MOST_SUMS * x->lanes)), i * x->lanes);
}

// Sums what goes to one part of the accumulators, a vector of points each trip.
static void sum_part(struct maker *f, const struct block *x, LLVMValueRef part)
{
    LLVMBuilderRef b = f->m.b;
    const struct cg_product *p = x->product;
    int64_t n = x->rows * x->columns;
    LLVMValueRef parts = cg_int(f->module, p->lanes / x->lanes), from[2];
    LLVMValueRef group = LLVMBuildUDiv(b, part, parts, "");
    LLVMValueRef inner = LLVMBuildURem(b, part, parts, "");
    for (int k = 0; k < 2; k++) {
        from[k] = scaled(f, group, p->trips * p->lanes * p->rows[k]);
        from[k] = at(f, at(f, k ? x->b : x->a, from[k]), scaled(f, inner, x->lanes));
    }
    LLVMValueRef left = LLVMBuildSub(b, x->count, scaled(f, part, x->lanes), "");
    LLVMValueRef trips = LLVMBuildAdd(b, left, cg_int(f->module, CG_FOLD_LANES - 1), "");
    trips = LLVMBuildAShr(b, trips, cg_int(f->module, 6), "");
    for (int64_t i = 0; i < n; i++)
        LLVMBuildStore(b, LLVMConstNull(x->type), x->sums[i]);
    LLVMValueRef done = add_trips(f, x, cg_int(f->module, 0), trips, TRIPS, from);
    add_trips(f, x, done, trips, 1, from);
    for (int64_t i = 0; i < n; i++)
        store_row(f, LLVMBuildLoad2(b, x->type, x->sums[i], ""), kept_at(f, x, part, i));
}

// By halves: part i takes part i + half, so the last sum is of those that differ by one.
static LLVMValueRef sum_parts(struct maker *f, const struct block *x, int64_t i, unsigned part,
                              unsigned step)
{
    if (step == x->parts)
        return load_row(f, x->type, kept_at(f, x, cg_int(f->module, part), i));
    LLVMValueRef low = sum_parts(f, x, i, part, 2 * step);
    return LLVMBuildFAdd(f->m.b, low, sum_parts(f, x, i, part + step, 2 * step), "");
}

static LLVMValueRef order_lanes(struct maker *f, LLVMValueRef a, LLVMValueRef b, unsigned lanes,
                                const unsigned *from)
{
    LLVMValueRef order[64];
    for (unsigned i = 0; i < lanes; i++)
        order[i] = LLVMConstInt(f->module->i32, from[i], 0);
    return LLVMBuildShuffleVector(f->m.b, a, b, LLVMConstVector(order, lanes), "");
}

// Folds the parts of two vectors by halves: those of a, then b, have the halves of the result.
// One of the two operands is a blend, which more ports can do than other shuffles.
static LLVMValueRef fold_pair(struct maker *f, LLVMValueRef a, LLVMValueRef b, unsigned lanes,
                              unsigned half)
{
    unsigned blend[64], swap[64];
    for (unsigned i = 0; i < lanes; i++) {
        blend[i] = (i & half ? lanes : 0) + i;
        swap[i] = (i & half ? lanes : 0) + (i ^ half);
    }
    return LLVMBuildFAdd(f->m.b, order_lanes(f, a, b, lanes, blend),
                         order_lanes(f, a, b, lanes, swap), "");
}

// Folds the lanes of each of n vectors by halves; lane i of the result is the sum of vector i.
static LLVMValueRef fold_lanes(struct maker *f, const struct block *x, LLVMValueRef *v,
                               int64_t n)
{
    unsigned mirrored[64] = {0};
    for (unsigned half = x->lanes / 2, bit = 1; half; half /= 2, bit *= 2, n = (n + 1) / 2) {
        for (int64_t i = 0; i < n; i += 2)
            v[i / 2] = fold_pair(f, v[i], i + 1 < n ? v[i + 1] : v[i], x->lanes, half);
        for (unsigned i = 0; i < x->lanes; i++)
            mirrored[i] += i & bit ? half : 0;
    }
    return order_lanes(f, v[0], v[0], x->lanes, mirrored);
}

// As many rows at a time as have no more results than a vector has lanes.
static void make_block(struct maker *f, const struct block *x, LLVMValueRef to)
{
    LLVMValueRef sums[MOST_SUMS];
    struct counted c = count_open(f, cg_int(f->module, x->parts));
    sum_part(f, x, c.index);
    count_close(f, &c);
    int64_t step = x->lanes / x->columns;
    for (int64_t first = 0; first < x->rows; first += step) {
        int64_t n = least(step, x->rows - first);
        for (int64_t i = 0; i < n * x->columns; i++)
            sums[i] = sum_parts(f, x, first * x->columns + i, 0, 1);
        LLVMValueRef all = fold_lanes(f, x, sums, n * x->columns);
        for (int64_t i = 0; i < n; i++) {
            LLVMValueRef row =
                cg_extract(&f->m, all, (unsigned)(i * x->columns), (unsigned)x->columns);
            store_row(f, row, at_constant(f, to, (first + i) * x->product->sides[1]));
        }
    }
}

// Blocks along the columns, then those of what is left of them.
static void make_row_of_blocks(struct maker *f, struct block x, int64_t side, LLVMValueRef to)
{
    int64_t whole = x.product->sides[1] / side, rest = x.product->sides[1] % side;
    int64_t lanes = x.product->lanes;
    LLVMValueRef b = x.b;
    if (whole) {
        x.columns = side;
        struct counted j = count_open(f, cg_int(f->module, whole));
        x.b = at(f, b, scaled(f, j.index, side * lanes));
        make_block(f, &x, at(f, to, scaled(f, j.index, side)));
        count_close(f, &j);
    }
    if (rest) {
        x.columns = rest;
        x.b = at_constant(f, b, whole * side * lanes);
        make_block(f, &x, at_constant(f, to, whole * side));
    }
}

static void make_product(struct maker *f, const struct cg_product *p)
{
    LLVMValueRef to = LLVMGetParam(f->function, 0), a = LLVMGetParam(f->function, 1);
    struct block x = {.product = p,
                      .lanes = f->module->vector_bytes / f->bytes,
                      .b = LLVMGetParam(f->function, 2),
                      .count = LLVMGetParam(f->function, 3)};
    x.type = LLVMVectorType(f->lane, x.lanes);
    x.parts = CG_FOLD_LANES / x.lanes;
    for (int64_t i = 0; i < MOST_SUMS; i++)
        x.sums[i] = LLVMBuildAlloca(f->m.b, x.type, "");
    x.kept = LLVMBuildAlloca(f->m.b, LLVMArrayType2(x.type, x.parts * MOST_SUMS), "");
    // As many results as leave registers for the factors.  The rows are read again for all columns:
    // they stay in the nearest cache while these pass by.
    bool many = f->module->registers == 32;
    int64_t most = many ? MOST_SUMS : 8, side_a = whole_side(p->sides[0], many ? 5 : 4),
            side_b = whole_side(p->sides[1], least(most / side_a, x.lanes));
    int64_t whole = p->sides[0] / side_a, rest = p->sides[0] % side_a;
    if (whole) {
        x.rows = side_a;
        struct counted i = count_open(f, cg_int(f->module, whole));
        x.a = at(f, a, scaled(f, i.index, side_a * p->lanes));
        make_row_of_blocks(f, x, side_b, at(f, to, scaled(f, i.index, side_a * p->sides[1])));
        count_close(f, &i);
    }
    if (rest) {
        x.rows = rest;
        x.a = at_constant(f, a, whole * side_a * p->lanes);
        make_row_of_blocks(f, x, side_b, at_constant(f, to, whole * side_a * p->sides[1]));
    }
}

void cg_call_product(struct cg_lowering *l, const struct cg_product *p, LLVMValueRef to,
                     LLVMValueRef a, LLVMValueRef b, LLVMValueRef count)
{
    LLVMTypeRef ptr = l->module->ptr, i = l->module->i64;
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->module->context),
                                        (LLVMTypeRef[]){ptr, ptr, ptr, i}, 4, 0);
    char name[160];
    snprintf(name, sizeof name, "product_%d_%u_%lld_%lld_%lld_%lld_%lld", (int)p->dtype,
             p->lanes, (long long)p->sides[0], (long long)p->sides[1], (long long)p->rows[0],
             (long long)p->rows[1], (long long)p->trips);
    struct maker f;
    if (begin(&f, l, name, p->dtype, type)) {
        make_product(&f, p);
        end(&f);
    }
    LLVMBuildCall2(l->m.b, type, f.function, (LLVMValueRef[]){to, a, b, count}, 4, "");
}

// ---- Sums of blocks

// One row of sums, from row 2 i and the one after it, or from one row alone.
static void make_tree_row(struct maker *f, LLVMValueRef base, LLVMValueRef to,
                          LLVMValueRef from, LLVMValueRef width, bool adds)
{
    LLVMBuilderRef b = f->m.b;
    unsigned lanes = 64 / f->bytes;
    const unsigned step[] = {lanes, 1};
    LLVMValueRef whole = LLVMBuildAnd(b, width, cg_int(f->module, -(int64_t)lanes), "");
    LLVMValueRef begin[] = {cg_int(f->module, 0), whole}, stop[] = {whole, width};
    to = LLVMBuildMul(b, to, width, "");
    from = LLVMBuildMul(b, from, width, "");
    for (int k = 0; k < 2; k++) {
        LLVMTypeRef type = cg_with_lanes(f->lane, step[k]);
        LLVMBasicBlockRef body = new_block(f), after = new_block(f),
                          before = LLVMGetInsertBlock(b);
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, begin[k], stop[k], ""), body, after);
        LLVMPositionBuilderAtEnd(b, body);
        LLVMValueRef i = LLVMBuildPhi(b, f->module->i64, "");
        LLVMAddIncoming(i, &begin[k], &before, 1);
        LLVMValueRef first = at(f, base, LLVMBuildAdd(b, from, i, "")),
                     v = load_row(f, type, first);
        if (adds)
            v = LLVMBuildFAdd(b, v, load_row(f, type, at(f, first, width)), "");
        store_row(f, v, at(f, base, LLVMBuildAdd(b, to, i, "")));
        LLVMValueRef next = LLVMBuildAdd(b, i, cg_int(f->module, step[k]), "");
        LLVMAddIncoming(i, &next, &body, 1);
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, stop[k], ""), body, after);
        LLVMPositionBuilderAtEnd(b, after);
    }
}

// while (rows > 1) { pairs; an odd row as it is; rows = (rows + 1) / 2 }
static void make_tree(struct maker *f)
{
    LLVMBuilderRef b = f->m.b;
    LLVMValueRef base = LLVMGetParam(f->function, 0), rows = LLVMGetParam(f->function, 1),
                 width = LLVMGetParam(f->function, 2), one = cg_int(f->module, 1);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), level = new_block(f), odd = new_block(f),
                      next = new_block(f), after = new_block(f);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGT, rows, one, ""), level, after);
    LLVMPositionBuilderAtEnd(b, level);
    LLVMValueRef n = LLVMBuildPhi(b, f->module->i64, "");
    LLVMAddIncoming(n, &rows, &before, 1);
    LLVMValueRef half = LLVMBuildLShr(b, n, one, "");
    struct counted r = count_open(f, half);
    make_tree_row(f, base, r.index, scaled(f, r.index, 2), width, true);
    count_close(f, &r);
    LLVMValueRef rest = LLVMBuildAnd(b, n, one, "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, rest, cg_int(f->module, 0), ""), odd, next);
    LLVMPositionBuilderAtEnd(b, odd);
    make_tree_row(f, base, half, scaled(f, half, 2), width, false);
    LLVMBuildBr(b, next);
    LLVMPositionBuilderAtEnd(b, next);
    LLVMValueRef left = LLVMBuildAdd(b, half, rest, "");
    LLVMAddIncoming(n, &left, &next, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGT, left, one, ""), level, after);
    LLVMPositionBuilderAtEnd(b, after);
}

void cg_call_tree(struct cg_lowering *l, jot_dtype d, LLVMValueRef base, int64_t rows,
                  int64_t width)
{
    LLVMTypeRef p = l->module->ptr, i = l->module->i64;
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->module->context),
                                        (LLVMTypeRef[]){p, i, i}, 3, 0);
    char name[32];
    snprintf(name, sizeof name, "tree_%d", (int)d);
    struct maker f;
    if (begin(&f, l, name, d, type)) {
        make_tree(&f);
        end(&f);
    }
    LLVMValueRef in[] = {base, cg_int(l->module, rows), cg_int(l->module, width)};
    LLVMBuildCall2(l->m.b, type, f.function, in, 3, "");
}
