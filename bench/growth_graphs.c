// SPDX-License-Identifier: Apache-2.0
// Growing programs: graphs of operations, and derivatives.
#include "growth_programs.h"

#include <stdlib.h>
#include <string.h>

// ---- What whole graphs are made of

static void chain(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int i = 0, n = growth_size(ctx); i < n; i += 2)
        x = jot_mul(jot_sin(x), in[0]);
    out[0] = jot_sum(x);
}

static void tree(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = jot_from(0.0);
    for (int i = 0, n = growth_size(ctx) / 4; i < n; i++)
        x = jot_add(x, jot_sum(jot_mul(in[i], jot_tanh(in[i]))));
    out[0] = x;
}

static void recurrent(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value h = in[0];
    for (int i = 0, n = growth_size(ctx); i < n; i += 3)
        h = jot_tanh(jot_add(jot_dot(h, in[1]), in[2]));
    out[0] = jot_sum(h);
}

struct level {
    int depth;
    const struct level *below;
    bool captures;
};

static jot_value outer;

static void twice(const jot_value *in, jot_value *out, void *ctx)
{
    const struct level *l = ctx;
    if (l->depth == 0) {
        out[0] = jot_sin(jot_mul(in[0], l->captures ? outer : in[0]));
        return;
    }
    jot_function f = jot_function_make(twice, 1, 1, (void *)(uintptr_t)l->below);
    jot_apply(f, 1, in, 1, out);
    jot_apply(f, 1, out, 1, out);
}

static struct level levels[16];

static void tower(const jot_value *in, jot_value *out, int n, bool captures)
{
    int depth = 0;
    for (; n > 2 && depth < 15; n /= 2)
        depth++;
    for (int i = 0; i < 16; i++)
        levels[i] = (struct level){i, i ? &levels[i - 1] : NULL, captures};
    outer = in[0];
    twice(in, out, &levels[depth]);
    out[0] = jot_sum(out[0]);
}

static void nested(const jot_value *in, jot_value *out, void *ctx)
{
    tower(in, out, growth_size(ctx), false);
}

static void captured(const jot_value *in, jot_value *out, void *ctx)
{
    tower(in, out, growth_size(ctx), true);
}

static void additions(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int i = 0, n = growth_size(ctx); i < n; i++)
        x = jot_add(x, in[0]);
    out[0] = jot_sum(x);
}

// ---- Many users of one value

static void updates(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        s = jot_add(s, jot_norm(jot_sort(jot_at_set(t, k, 0.5))));
    out[0] = s;
}

// Updates one after the other, each of what the one before has left.
static void updates_in_turn(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = jot_sin(in[0]);
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = jot_at_set(x, k % 1000, jot_sin(jot_take(x, (k + 7) % 1000)));
    out[0] = jot_sum(x);
}

static void loops_of_one(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = growth_size(ctx); k < n; k++) {
        jot_value x = t;
        JOT_FOR (i, 10, x)
            x = jot_mul(jot_cos(x), 1.0 + k);
        s = jot_add(s, jot_sum(x));
    }
    out[0] = s;
}

static void beta_integrals(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value s = jot_from(0.0);
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        s = jot_add(s, jot_sum(jot_betainc(jot_add(in[0], k), in[1], 0.3)));
    out[0] = s;
}

// Loops of one value that are all of another form.
static void loops_that_differ(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = growth_size(ctx); k < n; k++) {
        jot_value x = t;
        JOT_FOR (i, 10, x)
            for (int b = k + 1; b; b /= 2)
                x = b % 2 ? jot_mul(x, in[0]) : jot_add(x, 0.5);
        s = jot_add(s, jot_sum(x));
    }
    out[0] = s;
}

// The Jacobians of as many results as the size says.
static void results(const jot_value *in, jot_value *out, void *ctx)
{
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        out[k] = jot_sin(jot_mul(in[0], 1.0 + k));
}

static void jacobians(const jot_value *in, jot_value *out, void *ctx)
{
    int n = growth_size(ctx);
    jot_value *v = calloc((size_t)n, sizeof *v), s = jot_from(0.0);
    jot_function f = jot_function_make(results, 1, n, ctx);
    jot_apply(jot_jacrev(f), 1, in, n, v);
    for (int k = 0; k < n; k++)
        s = jot_add(s, jot_sum(v[k]));
    free(v);
    out[0] = s;
}

// ---- Many parts and cases

static void pieces(const jot_value *in, jot_value *out, void *ctx)
{
    int n = growth_size(ctx);
    jot_value *v = calloc((size_t)n, sizeof *v);
    for (int k = 0; k < n; k++)
        v[k] = jot_mul(in[0], 1.0 + k);
    out[0] = jot_sum(jot_sin(jot_concatenate_list(0, (size_t)n, v)));
    free(v);
}

static void sine_of_sum(const jot_value *in, jot_value *out, void *ctx)
{
    uintptr_t k = (uintptr_t)ctx;
    out[0] = jot_sum(jot_mul(in[0], 1.0 + (double)k));
    for (uintptr_t i = 0; i < k % 7; i++)
        out[0] = jot_sin(out[0]);
}

static void scaled_sine(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_mul(jot_sin(in[0]), 1.0 + (double)(uintptr_t)ctx);
}

static void cases_of(jot_body *body, const jot_value *in, jot_value *out, int n)
{
    jot_function *f = calloc((size_t)n, sizeof *f);
    for (int k = 0; k < n; k++)
        f[k] = jot_function_make(body, 1, 1, (void *)(uintptr_t)k);
    jot_switch(jot_convert(jot_sum(in[0]), JOT_I32), n, f, 1, in, 1, out);
    out[0] = jot_sum(out[0]);
    free(f);
}

static void cases(const jot_value *in, jot_value *out, void *ctx)
{
    cases_of(scaled_sine, in, out, growth_size(ctx));
}

static void cases_of_sums(const jot_value *in, jot_value *out, void *ctx)
{
    cases_of(sine_of_sum, in, out, growth_size(ctx));
}

// Layers that differ in a factor, and what a kernel cannot hold between them.
static void scaled_layers(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = jot_sort(jot_sin(jot_mul(jot_softmax(x, 0), 1.0 + k)));
    out[0] = jot_sum(x);
}

// ---- Derivatives in one another and of many parts

// Gradients of as many values of one graph as the size says.
static void gradients(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value s = jot_from(0.0);
    for (int k = 0, n = growth_size(ctx); k < n; k++) {
        jot_value y = jot_sum(jot_cos(jot_mul(in[0], 1.0 + k)));
        s = jot_add(s, jot_sum(jot_gradient(y, in[0])));
    }
    out[0] = s;
}

// Steps of gradient descent, one after the other.
static void descents(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value w = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++) {
        w = jot_variable(w);
        jot_value y = jot_sum(jot_cos(jot_mul(w, 1.0 + k)));
        w = jot_sub(w, jot_mul(0.1, jot_gradient(y, w)));
    }
    out[0] = jot_sum(w);
}

static void sums_and_products(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = jot_mul(jot_sin(jot_add(x, jot_sum(x))), in[0]);
    out[0] = jot_sum(x);
}

static void hessians(const jot_value *in, jot_value *out, void *ctx)
{
    jot_apply(jot_hessian(jot_function_make(sums_and_products, 1, 1, ctx)), 1, in, 1, out);
    out[0] = jot_sum(out[0]);
}

static void scans(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++) {
        jot_value s = jot_from(0.0), r;
        JOT_SCAN ((s), (x), (r)) {
            s = jot_add(s, jot_sin(x));
            r = jot_mul(s, 1.0 + k);
        }
        x = r;
    }
    out[0] = jot_sum(x);
}

// Routines one after the other.
static void sorts(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = jot_sin(jot_sort(jot_mul(x, 1.0 + k)));
    out[0] = jot_sum(x);
}

// One value in as many sums as the size says.
static void fan_sums(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        s = jot_add(s, jot_exp(jot_neg(jot_sum(jot_cos(jot_mul(t, 1.0 + k))))));
    out[0] = s;
}

// As many sums, stacked.
static void stacked_sums(const jot_value *in, jot_value *out, void *ctx)
{
    int n = growth_size(ctx);
    jot_value *v = calloc((size_t)n, sizeof *v);
    for (int k = 0; k < n; k++)
        v[k] = jot_sum(jot_sin(jot_mul(in[0], 1.0 + k)));
    out[0] = jot_sum(jot_exp(jot_stack_list(0, (size_t)n, v)));
    free(v);
}

// ---- Folds in folds

// As many folds in one another as the size says.
static void rows_of_rows(const jot_value *in, jot_value *out, void *ctx)
{
    int64_t shape[17];
    int n = growth_size(ctx);
    for (int i = 0; i < n; i++)
        shape[i] = 2;
    shape[n] = JOT_END;
    jot_value x =
        jot_sin(jot_add(jot_broadcast_to_dims(jot_sum(in[0]), shape), jot_arange(JOT_F32, 2)));
    while (jot_value_rank(x))
        x = jot_exp(jot_neg(jot_sum(jot_mul(x, x), -1)));
    out[0] = x;
}

// Five folds in one another, of as many terms as the size says.
static void five_folds(const jot_value *in, jot_value *out, void *ctx)
{
    int n = growth_size(ctx);
    jot_value x = jot_sin(
        jot_add(jot_broadcast_to(jot_sum(in[0]), n, n, n, n, n), jot_arange(JOT_F32, n)));
    while (jot_value_rank(x))
        x = jot_exp(jot_neg(jot_sum(jot_mul(x, x), -1)));
    out[0] = x;
}

// The determinants of matrices [..., n, n], by the minors of their first rows.
static jot_value determinant(jot_value a)
{
    int64_t n = jot_value_dim(a, -1);
    if (n == 1)
        return jot_squeeze(a, -1, -2);
    jot_value parts[64], first = jot_take(a, 0, -2), rest = jot_slice(a, -2, 1, n);
    for (int j = 0; j < n; j++)
        parts[j] =
            jot_concatenate(-1, jot_slice(rest, -1, 0, j), jot_slice(rest, -1, j + 1, n));
    jot_value minors = determinant(jot_stack_list(-3, (size_t)n, parts));
    jot_value sign = jot_sub(1.0, jot_mul(2.0, jot_rem(jot_arange(JOT_F32, n), 2.0)));
    return jot_sum(jot_mul(jot_mul(first, sign), minors), -1);
}

// Of 4 rows and as many more as the size has doublings: 8 of 16.
static void minors(const jot_value *in, jot_value *out, void *ctx)
{
    int rows = 4;
    for (int n = growth_size(ctx); n > 1; n /= 2)
        rows++;
    jot_value a = jot_reshape(jot_sin(jot_arange(JOT_F32, rows * rows)), rows, rows);
    out[0] = determinant(jot_mul(in[0], a));
}

// Mixtures of as many Gaussians as the size says, in 5 dimensions, with factors of their precisions.
static void mixtures(const jot_value *in, jot_value *out, void *ctx)
{
    int n = 50, d = 5, k = growth_size(ctx);
    jot_value q = jot_mul(in[0], jot_reshape(jot_sin(jot_arange(JOT_F32, k * d * d)), k, d, d));
    jot_value mean = jot_mul(in[0], jot_reshape(jot_cos(jot_arange(JOT_F32, k * d)), k, d));
    jot_value x = jot_sin(jot_reshape(jot_arange(JOT_F32, n * d), n, d));
    jot_value l = jot_add(jot_tril(q, -1), jot_mul(jot_exp(q), jot_eye(JOT_F32, d, d)));
    jot_value e = jot_sub(jot_expand_dims(x, 1), jot_expand_dims(mean, 0));
    jot_value z = jot_einsum("kij,nkj->nki", l, e);
    jot_value g = jot_sub(jot_sum(q, -1, -2), jot_mul(0.5, jot_sum(jot_mul(z, z), -1)));
    out[0] = jot_sum(jot_logsumexp(g, -1));
}

const struct growth_family growth_graphs[] = {
    {"chain", chain, 1, false, JOT_F32, 1, 8, 5000, 30},
    {"chain_grad", chain, 1, true, JOT_F32, 1, 8, 8000, 150},
    {"tree", tree, 0, false, JOT_F32, 1, 8, 5000, 30},
    {"tree_grad", tree, 0, true, JOT_F32, 1, 8, 8000, 30},
    {"recurrent", recurrent, 3, false, JOT_F32, 1, 8, 5000, 30},
    {"recurrent_grad", recurrent, 3, true, JOT_F32, 1, 8, 6000, 30},
    {"nested", nested, 1, false, JOT_F32, 1, 8, 8000, 60},
    {"nested_grad", nested, 1, true, JOT_F32, 1, 8, 17000, 400},
    {"captured", captured, 1, false, JOT_F32, 1, 8, 12000, 60},
    {"captured_grad", captured, 1, true, JOT_F32, 1, 8, 50000, 1600},
    {"additions", additions, 1, false, JOT_F32, 1, 8, 5000, 30},
    {"additions_grad", additions, 1, true, JOT_F32, 1, 8, 8000, 30},
    {"updates", updates, 1, false, JOT_F32, 1, 1000, 6000, 40},
    {"updates_grad", updates, 1, true, JOT_F32, 1, 1000, 12000, 100},
    {"updates_in_turn", updates_in_turn, 1, false, JOT_F32, 1, 1000, 7000, 100},
    {"updates_in_turn_grad", updates_in_turn, 1, true, JOT_F32, 1, 1000, 12000, 350},
    {"loops_of_one", loops_of_one, 1, false, JOT_F32, 1, 1000, 8000, 100},
    {"loops_of_one_grad", loops_of_one, 1, true, JOT_F32, 1, 1000, 8000, 100},
    {"loops_that_differ", loops_that_differ, 1, false, JOT_F32, 1, 1000, 15000, 500},
    {"loops_that_differ_grad", loops_that_differ, 1, true, JOT_F32, 1, 1000, 12000, 250},
    {"jacobians", jacobians, 1, false, JOT_F32, 1, 8, 8000, 40},
    {"pieces", pieces, 1, false, JOT_F32, 1, 8, 8000, 40},
    {"pieces_grad", pieces, 1, true, JOT_F32, 1, 8, 8000, 60},
    {"cases", cases, 1, false, JOT_F32, 1, 8, 6000, 10},
    {"cases_grad", cases, 1, true, JOT_F32, 1, 8, 7000, 15},
    {"cases_of_sums_grad", cases_of_sums, 1, true, JOT_F32, 1, 8, 7500, 12},
    {"gradients", gradients, 1, false, JOT_F32, 1, 8, 4500, 30},
    {"descents", descents, 1, false, JOT_F32, 1, 8, 4500, 40},
    {"hessians", hessians, 1, false, JOT_F32, 1, 8, 12000, 40},
    {"scans_grad", scans, 1, true, JOT_F32, 1, 100, 10000, 30},
    {"sorts", sorts, 1, false, JOT_F32, 1, 100, 5000, 15},
    {"sorts_grad", sorts, 1, true, JOT_F32, 1, 100, 8000, 20},
    {"scaled_layers", scaled_layers, 1, false, JOT_F32, 1, 100, 4000, 15},
    {"scaled_layers_grad", scaled_layers, 1, true, JOT_F32, 1, 100, 8000, 35},
    {"beta_integrals", beta_integrals, 2, false, JOT_F32, 1, 8, 12000, 250},
    {"beta_integrals_grad", beta_integrals, 2, true, JOT_F32, 1, 8, 60000, 500},
    {"fan_sums", fan_sums, 1, false, JOT_F32, 1, 1000, 10000, 800},
    {"fan_sums_grad", fan_sums, 1, true, JOT_F32, 1, 1000, 10000, 400},
    {"stacked_sums", stacked_sums, 1, false, JOT_F32, 1, 1000, 12000, 200},
    {"stacked_sums_grad", stacked_sums, 1, true, JOT_F32, 1, 1000, 12000, 250},
    {"rows_of_rows", rows_of_rows, 1, false, JOT_F32, 1, 8, 20000, 500},
    {"rows_of_rows_grad", rows_of_rows, 1, true, JOT_F32, 1, 8, 100000, 350},
    {"five_folds", five_folds, 1, false, JOT_F32, 1, 8, 20000, 1000},
    {"five_folds_grad", five_folds, 1, true, JOT_F32, 1, 8, 50000, 2500},
    {"minors", minors, 1, false, JOT_F32, 0, 0, 10000, 600},
    {"minors_grad", minors, 1, true, JOT_F32, 0, 0, 6000, 400},
    {"mixtures", mixtures, 1, false, JOT_F32, 0, 0, 80000, 4000},
    {"mixtures_grad", mixtures, 1, true, JOT_F32, 0, 0, 20000, 2000},
    {.name = NULL},
};
