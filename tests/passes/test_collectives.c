// SPDX-License-Identifier: Apache-2.0
// Each collective with each type that it takes: a map over its axis gives what all lanes give side by side,
// and so do its tangents, and its cotangents are the transpose of these; over one axis, over two, of what
// is the same in all lanes.
#include "pass_support.h"

#include "ir/collective.h"
#include "passes/rules/rules.h"

enum { LANES_I = 3, LANES_J = 2, LANES = LANES_I * LANES_J };

static const int64_t both[] = {0, 1};

struct over {
    const char *name;
    int n;
    int64_t axes[2];
};
static const struct over overs[] = {
    {"i", 1, {0}}, {"j", 1, {1}}, {"i, j", 2, {0, 1}}, {"j, i", 2, {1, 0}}};

static const enum ir_op ops[] = {IR_psum,         IR_pmax,       IR_pmin,     IR_all_gather,
                                 IR_psum_scatter, IR_all_to_all, IR_ppermute, IR_pvary};
static const jot_dtype dtypes[] = {JOT_BOOL, JOT_I8,  JOT_I32,  JOT_I64, JOT_U8,  JOT_U64,
                                   JOT_F16,  JOT_F32, JOT_BF16, JOT_F64, JOT_C64, JOT_C128};

static bool takes(enum ir_op op, jot_dtype d)
{
    const char *types = ir_op_get(op)->types;
    return !strcmp(types, "any") || (!strcmp(types, "num") && d != JOT_BOOL) ||
           (!strcmp(types, "real") && !dtype_is_complex(d));
}

// The collective of a value of a row for each lane where it wants them; varies: over which axes that does.
static uint32_t function_of(enum ir_op op, jot_dtype d, const struct over *o, uint16_t varies)
{
    struct ir_builder b = ir_builder_make(module, ir_op_get(op)->name, IR_BUILD_PLAIN);
    int64_t lanes = 1, pairs[2 * LANES], n_pairs = 0;
    for (int i = 0; i < o->n; i++)
        lanes *= o->axes[i] ? LANES_J : LANES_I;
    for (int64_t i = 0; i + 1 < lanes; i++) { // all but one, turned
        pairs[2 * n_pairs] = i;
        pairs[2 * n_pairs++ + 1] = (i + 1) % lanes;
    }
    bool has_rows = op == IR_psum_scatter || op == IR_all_to_all;
    const int64_t dims[] = {has_rows ? lanes : 2, 2};
    struct ir_type t = type_of_dims(d, 2, dims);
    t.varies = varies;
    ir_id x = ir_param(&b, t), y;
    if (op == IR_ppermute)
        y = ir_ppermute(&b, x, o->n, o->axes, (int)n_pairs, pairs);
    else if (op == IR_pvary)
        y = ir_pvary(&b, x, (uint16_t)(1u << o->axes[0] | 1u << o->axes[o->n - 1]));
    else
        y = ir_collective(&b, op, x, o->n, o->axes);
    ir_output(&b, y);
    return done(&b);
}

// x of each lane, as a value of the mapped function that has an axis for each that it varies over.
static struct ir_tensor whole_of(struct ir_type t, struct ir_tensor *const *lanes, uint32_t at)
{
    int64_t dims[IR_MAX_RANK + 2],
        own[2] = {t.varies & 1 ? LANES_I : 1, t.varies & 2 ? LANES_J : 1};
    int rank = 0;
    for (int k = 0; k < 2; k++)
        if (t.varies >> k & 1)
            dims[rank++] = own[k];
    memcpy(dims + rank, ir_dims(module, t), sizeof *dims * t.rank);
    struct ir_tensor x = zeros(type_of_dims(ir_dtype(t), rank + t.rank, dims));
    size_t bytes = (size_t)ir_count(module, t) * jot_dtype_size(ir_dtype(t));
    for (int64_t i = 0; i < own[0]; i++)
        for (int64_t j = 0; j < own[1]; j++)
            memcpy((char *)x.data + (size_t)(i * own[1] + j) * bytes,
                   lanes[i * LANES_J + j][at].data, bytes);
    return x;
}

static struct ir_tensor **rows_of(uint32_t n)
{
    struct ir_tensor **x = arena_array(module->arena, struct ir_tensor *, LANES);
    for (int k = 0; k < LANES; k++)
        x[k] = arena_array(module->arena, struct ir_tensor, n + 1);
    return x;
}

// Values of a lane: the same where the type does not vary.
static void draw_lanes(struct ir_type t, uint64_t *state, struct ir_tensor **x, uint32_t at)
{
    for (int k = 0; k < LANES; k++) {
        int i = k / LANES_J, j = k % LANES_J;
        int from = (t.varies & 1 ? i : 0) * LANES_J + (t.varies & 2 ? j : 0);
        x[k][at] = from == k ? draw(t, state) : x[from][at];
    }
}

// f mapped over both axes, with results that have an axis for each that they vary over.
static uint32_t mapped(uint32_t f)
{
    static const int sizes[] = {LANES_I, LANES_J};
    const struct ir_graph *g = graph(f);
    for (int k = 1; k >= 0; k--) {
        bool *in = arena_array(module->arena, bool, g->n_params + 1);
        bool *out = arena_array(module->arena, bool, g->outputs.count + 1);
        for (uint32_t i = 0; i < g->n_params; i++)
            in[i] = ir_type_of(g, i).varies >> k & 1;
        require(pass_vmap_named(module, f, in, sizes[k], k, &f, out));
        struct ir_builder b = ir_builder_make(module, "mapped", IR_BUILD_PLAIN);
        ir_id *x = arena_array(module->arena, ir_id, g->n_params + g->outputs.count + 1);
        for (uint32_t i = 0; i < g->n_params; i++)
            x[i] = ir_param(&b, ir_type_of(graph(f), i));
        ir_inline(&b, graph(f), x, x + g->n_params);
        for (uint32_t i = 0; i < g->outputs.count; i++) {
            bool varies = ir_type_of(g, g->outputs.at[i]).varies >> k & 1;
            ir_id y = x[g->n_params + i];
            ck_assert(varies || !out[i]);
            ir_output(&b, varies && !out[i] ? batch_repeat(&b, y, sizes[k]) : y);
        }
        f = done(&b);
    }
    return f;
}

// The map of f against all lanes side by side, which come back.
static struct ir_tensor **check_lanes(const char *what, uint32_t f, struct ir_tensor **in)
{
    const struct ir_graph *g = graph(f);
    struct ir_tensor **out = rows_of(g->outputs.count);
    struct ir_tensor *whole = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    require(ir_eval_lanes(module->arena, g, 2, both, in, out));
    for (uint32_t i = 0; i < g->n_params; i++)
        whole[i] = whole_of(ir_type_of(g, i), in, i);
    struct ir_tensor *y = evaluate(mapped(f), whole);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_type t = ir_type_of(g, g->outputs.at[i]);
        double far = distance(y[i], whole_of(t, out, i));
        // Sums of six terms, which over two axes are rounded after each of them.
        jot_dtype d = dtype_real(ir_dtype(t));
        double near = d == JOT_BF16  ? 0x1p-6
                      : d == JOT_F16 ? 0x1p-9
                      : d == JOT_F32 ? 0x1p-20
                                     : 0x1p-49;
        ck_assert_msg(far <= (dtype_is_inexact(ir_dtype(t)) ? near : 0),
                      "%s of %s: result %u is %g off\n%s", what,
                      ir_type_text(module, ir_type_of(g, 0)), i, far, ir_graph_text(g));
    }
    return out;
}

// Sums of products over all lanes; of what is the same in some, once.
static double pair_lanes(struct ir_type t, struct ir_tensor **x, uint32_t i,
                         struct ir_tensor **y, uint32_t k)
{
    double sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += pair(x[lane][i], y[lane][k]);
    return sum / ((t.varies & 1 ? 1 : LANES_I) * (t.varies & 2 ? 1 : LANES_J));
}

static void check_derivatives(const char *what, uint32_t f, struct ir_tensor **x,
                              uint64_t *state)
{
    const struct ir_graph *g = graph(f);
    struct ir_type from = ir_type_of(g, 0), to = ir_type_of(g, g->outputs.at[0]);
    uint32_t forward, back;
    bool nonzero;
    require(pass_jvp(module, f, (const bool[]){true}, &forward, &nonzero));
    require(pass_vjp(module, f, (const bool[]){true}, &back));
    ck_assert(nonzero);
    struct ir_tensor **with_v = rows_of(2), **with_w = rows_of(2);
    for (int k = 0; k < LANES; k++)
        with_v[k][0] = with_w[k][0] = x[k][0];
    draw_lanes(from, state, with_v, 1);
    draw_lanes(to, state, with_w, 1);
    struct ir_tensor **jv = check_lanes("tangents", forward, with_v);
    struct ir_tensor **jw = check_lanes("cotangents", back, with_w);
    double there = pair_lanes(to, jv, 1, with_w, 1), here = pair_lanes(from, jw, 1, with_v, 1);
    ck_assert_msg(fabs(there - here) <= 1e-10 * (1 + fabs(there)),
                  "%s of %s: <w,Jv> = %.17g, <J'w,v> = %.17g\n%s", what,
                  ir_type_text(module, from), there, here, ir_graph_text(graph(back)));
}

START_TEST(collectives_hold)
{
    const struct over *o = &overs[_i];
    uint64_t state = seed + (uint64_t)_i;
    ir_axis_add(module, "i", LANES_I);
    ir_axis_add(module, "j", LANES_J);
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (uint16_t varies = 0; varies < 4 && takes(ops[k], dtypes[d]); varies++) {
                uint32_t f = function_of(ops[k], dtypes[d], o, varies);
                struct ir_tensor **x = rows_of(1);
                draw_lanes(ir_type_of(graph(f), 0), &state, x, 0);
                check_lanes(ir_op_get(ops[k])->name, f, x);
                if (dtypes[d] == JOT_F64 || dtypes[d] == JOT_C128)
                    check_derivatives(ir_op_get(ops[k])->name, f, x, &state);
            }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, collectives_hold, 0, (int)(sizeof overs / sizeof *overs));
}

int main(void) { return support_run("collectives", add_tests); }
