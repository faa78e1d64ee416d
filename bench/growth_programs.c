// SPDX-License-Identifier: Apache-2.0
#include "growth_programs.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 8

static int size_of(const void *ctx) { return *(const int *)ctx; }

// ---- What whole graphs are made of

static void chain(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int i = 0, n = size_of(ctx); i < n; i += 2)
        x = jot_mul(jot_sin(x), in[0]);
    out[0] = jot_sum(x);
}

static void tree(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = jot_from(0.0);
    for (int i = 0, n = size_of(ctx) / 4; i < n; i++)
        x = jot_add(x, jot_sum(jot_mul(in[i], jot_tanh(in[i]))));
    out[0] = x;
}

static void recurrent(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value h = in[0];
    for (int i = 0, n = size_of(ctx); i < n; i += 3)
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
    tower(in, out, size_of(ctx), false);
}

static void captured(const jot_value *in, jot_value *out, void *ctx)
{
    tower(in, out, size_of(ctx), true);
}

static void additions(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int i = 0, n = size_of(ctx); i < n; i++)
        x = jot_add(x, in[0]);
    out[0] = jot_sum(x);
}

// ---- Many users of one value

static void updates(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = size_of(ctx); k < n; k++)
        s = jot_add(s, jot_norm(jot_sort(jot_at_set(t, k, 0.5))));
    out[0] = s;
}

// Updates one after the other, each of what the one before has left.
static void updates_in_turn(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = jot_sin(in[0]);
    for (int k = 0, n = size_of(ctx); k < n; k++)
        x = jot_at_set(x, k % 1000, jot_sin(jot_take(x, (k + 7) % 1000)));
    out[0] = jot_sum(x);
}

static void loops_of_one(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = size_of(ctx); k < n; k++) {
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
    for (int k = 0, n = size_of(ctx); k < n; k++)
        s = jot_add(s, jot_sum(jot_betainc(jot_add(in[0], k), in[1], 0.3)));
    out[0] = s;
}

// Loops of one value that are all of another form.
static void loops_that_differ(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = size_of(ctx); k < n; k++) {
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
    for (int k = 0, n = size_of(ctx); k < n; k++)
        out[k] = jot_sin(jot_mul(in[0], 1.0 + k));
}

static void jacobians(const jot_value *in, jot_value *out, void *ctx)
{
    int n = size_of(ctx);
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
    int n = size_of(ctx);
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
    cases_of(scaled_sine, in, out, size_of(ctx));
}

static void cases_of_sums(const jot_value *in, jot_value *out, void *ctx)
{
    cases_of(sine_of_sum, in, out, size_of(ctx));
}

// Layers that differ in a factor, and what a kernel cannot hold between them.
static void scaled_layers(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++)
        x = jot_sort(jot_sin(jot_mul(jot_softmax(x, 0), 1.0 + k)));
    out[0] = jot_sum(x);
}

// ---- Derivatives in one another and of many parts

// Gradients of as many values of one graph as the size says.
static void gradients(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value s = jot_from(0.0);
    for (int k = 0, n = size_of(ctx); k < n; k++) {
        jot_value y = jot_sum(jot_cos(jot_mul(in[0], 1.0 + k)));
        s = jot_add(s, jot_sum(jot_gradient(y, in[0])));
    }
    out[0] = s;
}

// Steps of gradient descent, one after the other.
static void descents(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value w = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++) {
        w = jot_variable(w);
        jot_value y = jot_sum(jot_cos(jot_mul(w, 1.0 + k)));
        w = jot_sub(w, jot_mul(0.1, jot_gradient(y, w)));
    }
    out[0] = jot_sum(w);
}

static void sums_and_products(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++)
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
    for (int k = 0, n = size_of(ctx); k < n; k++) {
        jot_value s = jot_from(0.0), r;
        JOT_SCAN ((s), (x), (r)) {
            s = jot_add(s, jot_sin(x));
            r = jot_mul(s, 1.0 + k);
        }
        x = r;
    }
    out[0] = jot_sum(x);
}

static jot_value branches_of(jot_value x, int n)
{
    for (int k = 0; k < n; k++)
        JOT_IF (jot_greater(jot_sum(x), 1.0 + k), x)
            x = jot_sin(x);
        else
            x = jot_cos(jot_mul(x, 0.1 * k));
    return x;
}

static void branches(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(branches_of(in[0], size_of(ctx)));
}

// Routines one after the other.
static void sorts(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++)
        x = jot_sin(jot_sort(jot_mul(x, 1.0 + k)));
    out[0] = jot_sum(x);
}

// One value in as many sums as the size says.
static void fan_sums(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value t = jot_sin(in[0]), s = jot_from(0.0);
    for (int k = 0, n = size_of(ctx); k < n; k++)
        s = jot_add(s, jot_exp(jot_neg(jot_sum(jot_cos(jot_mul(t, 1.0 + k))))));
    out[0] = s;
}

// As many sums, stacked.
static void stacked_sums(const jot_value *in, jot_value *out, void *ctx)
{
    int n = size_of(ctx);
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
    int n = size_of(ctx);
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
    int n = size_of(ctx);
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
    for (int n = size_of(ctx); n > 1; n /= 2)
        rows++;
    jot_value a = jot_reshape(jot_sin(jot_arange(JOT_F32, rows * rows)), rows, rows);
    out[0] = determinant(jot_mul(in[0], a));
}

// Mixtures of as many Gaussians as the size says, in 5 dimensions, with factors of their precisions.
static void mixtures(const jot_value *in, jot_value *out, void *ctx)
{
    int n = 50, d = 5, k = size_of(ctx);
    jot_value q = jot_mul(in[0], jot_reshape(jot_sin(jot_arange(JOT_F32, k * d * d)), k, d, d));
    jot_value mean = jot_mul(in[0], jot_reshape(jot_cos(jot_arange(JOT_F32, k * d)), k, d));
    jot_value x = jot_sin(jot_reshape(jot_arange(JOT_F32, n * d), n, d));
    jot_value l = jot_add(jot_tril(q, -1), jot_mul(jot_exp(q), jot_eye(JOT_F32, d, d)));
    jot_value e = jot_sub(jot_expand_dims(x, 1), jot_expand_dims(mean, 0));
    jot_value z = jot_einsum("kij,nkj->nki", l, e);
    jot_value g = jot_sub(jot_sum(q, -1, -2), jot_mul(0.5, jot_sum(jot_mul(z, z), -1)));
    out[0] = jot_sum(jot_logsumexp(g, -1));
}

// ---- Long kernels

static void loops(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++)
        JOT_FOR (i, 10, x)
            x = jot_sin(x);
    out[0] = jot_sum(x);
}

// As many loops in one another as the size says.
static jot_value whiles_of(jot_value x, int n)
{
    if (n == 0)
        return jot_sin(x);
    jot_value i = jot_from(0);
    JOT_WHILE ((i, x), jot_less(i, 1)) {
        x = whiles_of(jot_mul(x, 0.5), n - 1);
        i = jot_add(i, 1);
    }
    return x;
}

static void nested_whiles(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(whiles_of(in[0], size_of(ctx)));
}

static jot_value fors_of(jot_value x, int n)
{
    if (n == 0)
        return jot_sin(x);
    JOT_FOR (i, 2, x)
        x = fors_of(jot_mul(x, 0.5), n - 1);
    return x;
}

// Its trips would be 2 to the size: it is not run.
static void nested_fors(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_IF (jot_less(jot_sum(x), 0.0), x)
        x = fors_of(x, size_of(ctx));
    out[0] = jot_sum(x);
}

// Each of them keeps a value for its gradient.
static jot_value kept_of(jot_value x, int n)
{
    if (n == 0)
        return jot_sin(x);
    JOT_FOR (i, 1, x)
        x = jot_mul(x, kept_of(jot_mul(x, 0.5), n - 1));
    return x;
}

static void kept_fors(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(kept_of(in[0], size_of(ctx)));
}

static jot_value ifs_of(jot_value x, int n)
{
    if (n == 0)
        return jot_sin(x);
    JOT_IF (jot_greater(jot_sum(x), 0.1 * n), x)
        x = ifs_of(jot_mul(x, 0.5), n - 1);
    else
        x = jot_cos(x);
    return x;
}

static void nested_ifs(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(ifs_of(in[0], size_of(ctx)));
}

// Branches on a value that all of them see from outside.
static jot_value else_ifs_of(jot_value x, int n)
{
    if (n == 0)
        return jot_sin(x);
    JOT_IF (jot_greater(jot_sum(x), 0.1 * n), x)
        x = jot_mul(x, 0.5 + n);
    else
        x = else_ifs_of(x, n - 1);
    return x;
}

static void else_ifs(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(else_ifs_of(in[0], size_of(ctx)));
}

// Loops whose step has as many arrays from outside, branches or updates as the size says.
static void captures_loop(const jot_value *in, jot_value *out, void *ctx)
{
    int n = size_of(ctx);
    jot_value *v = calloc((size_t)n, sizeof *v), x = in[0];
    for (int k = 0; k < n; k++)
        v[k] = jot_sort(jot_mul(in[0], 1.0 + k));
    JOT_FOR (i, 10, x)
        for (int k = 0; k < n; k++)
            x = jot_mul(jot_sin(x), v[k]);
    free(v);
    out[0] = jot_sum(x);
}

static void branches_loop(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (i, 10, x)
        x = branches_of(x, size_of(ctx));
    out[0] = jot_sum(x);
}

static void loops_in_loop(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (j, 3, x)
        for (int k = 0, n = size_of(ctx); k < n; k++)
            JOT_FOR (i, 4, x)
                x = jot_sin(jot_mul(x, 0.5 + k));
    out[0] = jot_sum(x);
}

// A scan whose step has as many branches on its row.
static void branches_scan(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value s = jot_from(0.0), r, x = in[0];
    JOT_SCAN ((s), (x), (r)) {
        for (int k = 0, n = size_of(ctx); k < n; k++)
            JOT_IF (jot_greater(x, 1.0 + k), s)
                s = jot_sin(s);
            else
                s = jot_cos(jot_mul(s, 0.1 * k));
        s = jot_add(s, x);
        r = s;
    }
    out[0] = jot_sum(r);
}

static jot_value loss_of_leaves(int n, const jot_value *w)
{
    jot_value s = jot_from(0.0);
    for (int k = 0; k < n; k++)
        s = jot_add(s, jot_sum(jot_tanh(w[k])));
    return s;
}

// Steps of gradient descent in a loop, of a quarter as many leaves as the size says.
static void descent_loop(const jot_value *in, jot_value *out, void *ctx)
{
    int n = size_of(ctx) / 4;
    jot_value *w = calloc(2 * (size_t)n, sizeof *w), *g = w + n;
    memcpy(w, in, (size_t)n * sizeof *w);
    jot_piece carries[] = {{.n = (size_t)n, .at = w, .name = "w"}, {.n = 0}};
    jot_block *b = jot_for_begin(carries, jot_from(10), JOT_HERE);
    for (jot_value i; jot_for_next(b, &i);) {
        jot_variable_tree((size_t)n, w);
        memcpy(g, w, (size_t)n * sizeof *w);
        jot_gradient_tree(loss_of_leaves(n, w), (size_t)n, g);
        for (int k = 0; k < n; k++)
            w[k] = jot_sub(w[k], jot_mul(0.1, g[k]));
    }
    jot_block_leave(&b);
    out[0] = loss_of_leaves(n, w);
    free(w);
}

static void updates_loop(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (i, 10, x)
        for (int k = 0, n = size_of(ctx); k < n; k++)
            x = jot_at_set(x, jot_rem(jot_add(i, k), 100), jot_sin(jot_take(x, (k + 7) % 100)));
    out[0] = jot_sum(x);
}

static void long_step(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (i, 10, x)
        for (int k = 0, n = size_of(ctx); k < n; k++)
            x = jot_sin(x);
    out[0] = jot_sum(x);
}

static void steps_then_max(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++)
        x = jot_add(x, jot_mul(1e-3, jot_sin(x)));
    out[0] = jot_max(x);
}

static void halves(const jot_value *in, jot_value *out, void *ctx)
{
    static jot_value (*const ops[])(jot_value) = {jot_tan,  jot_lgamma, jot_erf,     jot_log1p,
                                                  jot_cbrt, jot_sinh,   jot_digamma, jot_atan};
    jot_value x = in[0];
    for (int k = 0, n = size_of(ctx); k < n; k++)
        x = ops[k % 8](x);
    out[0] = jot_sum(x);
}

// A scan whose step has many layers: a product, a softmax and the update of a row of a cache.
static void cached_layers(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0], cache = jot_mul(jot_zeros(JOT_F32, 16, 8), jot_sum(in[0])),
              m = jot_outer(in[0], in[0]);
    JOT_FOR (i, 16, x, cache)
        for (int k = 0, n = size_of(ctx); k < n; k++) {
            cache = jot_at_set(cache, i, x);
            x = jot_dot(jot_softmax(jot_dot(cache, x), -1), cache);
            x = jot_add(x, jot_dot(m, x));
        }
    out[0] = jot_sum(x);
}

// A loop of as many carries as the size says, each a sum of its own and the next.
static void mix_neighbours(jot_value i, jot_value *carry, void *ctx)
{
    int n = size_of(ctx);
    jot_value first = carry[0];
    (void)i;
    for (int k = 0; k + 1 < n; k++)
        carry[k] = jot_add(jot_mul(carry[k], 0.5), jot_mul(carry[k + 1], 0.25));
    carry[n - 1] = jot_sin(first);
}

// The sum of carries after ten steps, which begin as multiples of x.
static void sum_carries(jot_value x, void (*step)(jot_value, jot_value *, void *),
                        jot_value *out, void *ctx)
{
    int n = size_of(ctx);
    jot_value *carry = calloc((size_t)n, sizeof *carry), sum = jot_from(0.0);
    for (int k = 0; k < n; k++)
        carry[k] = jot_mul(x, 1.0 + k);
    jot_for(step, ctx, 0, 10, (size_t)n, carry);
    for (int k = 0; k < n; k++)
        sum = jot_add(sum, jot_sum(carry[k]));
    free(carry);
    out[0] = sum;
}

static void carries(const jot_value *in, jot_value *out, void *ctx)
{
    sum_carries(in[0], mix_neighbours, out, ctx);
}

static void number_carries(const jot_value *in, jot_value *out, void *ctx)
{
    sum_carries(jot_sum(in[0]), mix_neighbours, out, ctx);
}

// Carries that go round and are nothing else, but for one.
static void pass_on(jot_value i, jot_value *carry, void *ctx)
{
    int n = size_of(ctx);
    jot_value first = carry[0];
    (void)i;
    for (int k = 0; k + 1 < n; k++)
        carry[k] = carry[k + 1];
    carry[n - 1] = jot_sin(first);
}

static void rotations(const jot_value *in, jot_value *out, void *ctx)
{
    sum_carries(jot_sum(in[0]), pass_on, out, ctx);
}

// The same of numbers, each a sine of a product, all of which reverse mode keeps.
static void multiply_neighbours(jot_value i, jot_value *carry, void *ctx)
{
    int n = size_of(ctx);
    jot_value first = carry[0];
    (void)i;
    for (int k = 0; k < n; k++)
        carry[k] = jot_sin(jot_mul(carry[k], k + 1 < n ? carry[k + 1] : first));
}

static void scalar_carries(const jot_value *in, jot_value *out, void *ctx)
{
    int n = size_of(ctx);
    jot_value *carry = calloc((size_t)n, sizeof *carry), x = jot_sum(in[0]);
    for (int k = 0; k < n; k++)
        carry[k] = jot_add(x, 1e-3 * k);
    jot_for(multiply_neighbours, ctx, 0, 10, (size_t)n, carry);
    out[0] = jot_from(0.0);
    for (int k = 0; k < n; k++)
        out[0] = jot_add(out[0], carry[k]);
    free(carry);
}

// The same in a loop with a test and a bound, whose trips are branches.
static void while_carries(const jot_value *in, jot_value *out, void *ctx)
{
    int n = size_of(ctx);
    jot_value *carry = calloc((size_t)n, sizeof *carry), x = jot_sum(in[0]), i = jot_from(0);
    for (int k = 0; k < n; k++)
        carry[k] = jot_add(x, 1e-3 * k);
    jot_piece pieces[] = {{.n = (size_t)n, .at = carry, .name = "carry"},
                          {.n = 1, .at = &i, .name = "i"},
                          {.n = 0}};
    jot_loop_options options = {.size = sizeof options, .bound = 20};
    jot_block *b = jot_while_begin(pieces, &options, JOT_HERE);
    while (jot_block_next(b))
        for (bool t = jot_while_test(b, jot_less(i, 10)); t; t = jot_while_stepped(b)) {
            multiply_neighbours(i, carry, ctx);
            i = jot_add(i, 1);
        }
    jot_block_leave(&b);
    out[0] = jot_from(0.0);
    for (int k = 0; k < n; k++)
        out[0] = jot_add(out[0], carry[k]);
    free(carry);
}

// A loop of very many short phases: updates at places that are data.
static void placed_updates(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (i, 4, x)
        for (int k = 0, n = size_of(ctx); k < n; k++) {
            jot_value at = jot_convert(jot_mul(jot_abs(jot_take(x, k % 100)), 3.0), JOT_I32);
            x = jot_at_set(jot_add(x, jot_mul(0.5, in[0])), jot_rem(at, 100), 0.25);
        }
    out[0] = jot_sum(x);
}

static void gathers(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0], p = jot_rem(jot_mul(jot_arange(JOT_I32, 100), 7), 100);
    for (int k = 0, n = size_of(ctx); k < n; k++)
        x = jot_sin(jot_take(x, jot_rem(jot_add(p, k), 100)));
    out[0] = jot_sum(x);
}

static void complexes(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value z = jot_convert(in[0], JOT_C64);
    for (int k = 0, n = size_of(ctx); k < n; k++)
        z = jot_mul(jot_exp(z), jot_add(z, 0.1 * k));
    out[0] = jot_sum(jot_real(z));
}

// A scan whose step has as many scans as the size says.
static void scans_in_scan(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0], s = jot_mul(in[0], 0.5), y;
    JOT_SCAN ((s), (x), (y)) {
        for (int k = 0, n = size_of(ctx); k < n; k++) {
            jot_value c = jot_from(0.0), row = s, r;
            JOT_SCAN ((c), (row), (r)) {
                c = jot_add(jot_sin(c), row);
                r = jot_mul(c, 1.0 + k);
            }
            s = jot_add(r, x);
        }
        y = jot_sum(s);
    }
    out[0] = jot_sum(y);
}

const struct growth_family growth_families[] = {
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
    {"branches_grad", branches, 1, true, JOT_F32, 1, 8, 9000, 15},
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
    {"loops", loops, 1, false, JOT_F32, 1, 1000, 5000, 100},
    {"loops_grad", loops, 1, true, JOT_F32, 1, 1000, 40000, 500},
    {"nested_whiles", nested_whiles, 1, false, JOT_F32, 1, 1000, 8000, 150},
    {"nested_fors", nested_fors, 1, false, JOT_F32, 1, 1000, 8000, 50},
    {"nested_fors_grad", nested_fors, 1, true, JOT_F32, 1, 8, 0, 0},
    {"kept_fors_grad", kept_fors, 1, true, JOT_F32, 1, 100, 8000, 50},
    {"nested_ifs", nested_ifs, 1, false, JOT_F32, 1, 1000, 8000, 20},
    {"nested_ifs_grad", nested_ifs, 1, true, JOT_F32, 1, 1000, 10000, 40},
    {"else_ifs", else_ifs, 1, false, JOT_F32, 1, 1000, 5000, 10},
    {"else_ifs_grad", else_ifs, 1, true, JOT_F32, 1, 1000, 10000, 40},
    {"captures_loop", captures_loop, 1, false, JOT_F32, 1, 100, 8000, 100},
    {"captures_loop_grad", captures_loop, 1, true, JOT_F32, 1, 100, 15000, 400},
    {"branches_loop", branches_loop, 1, false, JOT_F32, 1, 1000, 10000, 100},
    {"branches_loop_grad", branches_loop, 1, true, JOT_F32, 1, 1000, 20000, 350},
    {"loops_in_loop_grad", loops_in_loop, 1, true, JOT_F32, 1, 100, 15000, 250},
    {"branches_scan", branches_scan, 1, false, JOT_F32, 1, 100, 8000, 40},
    {"branches_scan_grad", branches_scan, 1, true, JOT_F32, 1, 100, 10000, 40},
    {"descent_loop_grad", descent_loop, 0, true, JOT_F32, 1, 8, 15000, 130},
    {"updates_loop", updates_loop, 1, false, JOT_F32, 1, 100, 20000, 600},
    {"updates_loop_grad", updates_loop, 1, true, JOT_F32, 1, 100, 50000, 900},
    {"long_step", long_step, 1, false, JOT_F32, 1, 1000, 10000, 200},
    {"long_step_grad", long_step, 1, true, JOT_F32, 1, 1000, 10000, 200},
    {"steps_then_max", steps_then_max, 1, false, JOT_F32, 1, 1000, 30000, 900},
    {"steps_then_max_grad", steps_then_max, 1, true, JOT_F32, 1, 1000, 20000, 800},
    {"carries", carries, 1, false, JOT_F32, 1, 1000, 18000, 320},
    {"carries_grad", carries, 1, true, JOT_F32, 1, 1000, 16000, 200},
    {"number_carries_grad", number_carries, 1, true, JOT_F32, 1, 4, 15000, 100},
    {"rotations_grad", rotations, 1, true, JOT_F32, 1, 4, 18000, 50},
    {"while_carries_grad", while_carries, 1, true, JOT_F32, 1, 4, 18000, 100},
    {"scalar_carries_grad", scalar_carries, 1, true, JOT_F32, 1, 4, 13000, 120},
    {"placed_updates", placed_updates, 1, false, JOT_F32, 1, 100, 8000, 200},
    {"halves", halves, 1, false, JOT_F16, 1, 4, 100000, 3000},
    {"gathers_grad", gathers, 1, true, JOT_F32, 1, 100, 20000, 500},
    {"complexes", complexes, 1, false, JOT_F32, 1, 100, 8000, 400},
    {"complexes_grad", complexes, 1, true, JOT_F32, 1, 100, 15000, 1500},
    {"scans_in_scan", scans_in_scan, 1, false, JOT_F32, 1, 8, 10000, 50},
    {"scans_in_scan_grad", scans_in_scan, 1, true, JOT_F32, 1, 8, 20000, 100},
    {"cached_layers", cached_layers, 1, false, JOT_F32, 1, 8, 5000, 100},
    {"cached_layers_grad", cached_layers, 1, true, JOT_F32, 1, 8, 15000, 200},
};
const int n_growth_families = sizeof growth_families / sizeof *growth_families;
