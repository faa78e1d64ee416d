// SPDX-License-Identifier: Apache-2.0
// Growing programs: loops and branches, and what becomes long kernels.
#include "growth_programs.h"

#include <stdlib.h>
#include <string.h>

// ---- Long kernels

static void loops(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++)
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
    out[0] = jot_sum(whiles_of(in[0], growth_size(ctx)));
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
        x = fors_of(x, growth_size(ctx));
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
    out[0] = jot_sum(kept_of(in[0], growth_size(ctx)));
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
    out[0] = jot_sum(ifs_of(in[0], growth_size(ctx)));
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
    out[0] = jot_sum(else_ifs_of(in[0], growth_size(ctx)));
}

// Loops whose step has as many arrays from outside, branches or updates as the size says.
static void captures_loop(const jot_value *in, jot_value *out, void *ctx)
{
    int n = growth_size(ctx);
    jot_value *v = calloc((size_t)n, sizeof *v), x = in[0];
    for (int k = 0; k < n; k++)
        v[k] = jot_sort(jot_mul(in[0], 1.0 + k));
    JOT_FOR (i, 10, x)
        for (int k = 0; k < n; k++)
            x = jot_mul(jot_sin(x), v[k]);
    free(v);
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
    out[0] = jot_sum(branches_of(in[0], growth_size(ctx)));
}

static void branches_loop(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (i, 10, x)
        x = branches_of(x, growth_size(ctx));
    out[0] = jot_sum(x);
}

static void loops_in_loop(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (j, 3, x)
        for (int k = 0, n = growth_size(ctx); k < n; k++)
            JOT_FOR (i, 4, x)
                x = jot_sin(jot_mul(x, 0.5 + k));
    out[0] = jot_sum(x);
}

// As many whiles in a loop, none of which has a bound.
static void whiles_loop(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (j, 4, x)
        for (int k = 0, n = growth_size(ctx); k < n; k++)
            JOT_WHILE ((x), jot_greater(jot_sum(x), 1.0 + k))
                x = jot_mul(x, 0.5);
    out[0] = jot_sum(x);
}

// A scan whose step has as many branches on its row.
static void branches_scan(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value s = jot_from(0.0), r, x = in[0];
    JOT_SCAN ((s), (x), (r)) {
        for (int k = 0, n = growth_size(ctx); k < n; k++)
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
    int n = growth_size(ctx) / 4;
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
        for (int k = 0, n = growth_size(ctx); k < n; k++)
            x = jot_at_set(x, jot_rem(jot_add(i, k), 100), jot_sin(jot_take(x, (k + 7) % 100)));
    out[0] = jot_sum(x);
}

static void long_step(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    JOT_FOR (i, 10, x)
        for (int k = 0, n = growth_size(ctx); k < n; k++)
            x = jot_sin(x);
    out[0] = jot_sum(x);
}

static void steps_then_max(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = jot_add(x, jot_mul(1e-3, jot_sin(x)));
    out[0] = jot_max(x);
}

static void halves(const jot_value *in, jot_value *out, void *ctx)
{
    static jot_value (*const ops[])(jot_value) = {jot_tan,  jot_lgamma, jot_erf,     jot_log1p,
                                                  jot_cbrt, jot_sinh,   jot_digamma, jot_atan};
    jot_value x = in[0];
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = ops[k % 8](x);
    out[0] = jot_sum(x);
}

// A scan whose step has many layers: a product, a softmax and the update of a row of a cache.
static void cached_layers(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0], cache = jot_mul(jot_zeros(JOT_F32, 16, 8), jot_sum(in[0])),
              m = jot_outer(in[0], in[0]);
    JOT_FOR (i, 16, x, cache)
        for (int k = 0, n = growth_size(ctx); k < n; k++) {
            cache = jot_at_set(cache, i, x);
            x = jot_dot(jot_softmax(jot_dot(cache, x), -1), cache);
            x = jot_add(x, jot_dot(m, x));
        }
    out[0] = jot_sum(x);
}

// A loop of as many carries as the size says, each a sum of its own and the next.
static void mix_neighbours(jot_value i, jot_value *carry, void *ctx)
{
    int n = growth_size(ctx);
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
    int n = growth_size(ctx);
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
    int n = growth_size(ctx);
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

// Carries that change places by two, and of which one is another number then.
static void swap(jot_value i, jot_value *carry, void *ctx)
{
    (void)i;
    for (int k = 0, n = growth_size(ctx); k + 1 < n; k += 2) {
        jot_value first = carry[k];
        carry[k] = carry[k + 1];
        carry[k + 1] = jot_sin(first);
    }
}

static void swaps(const jot_value *in, jot_value *out, void *ctx)
{
    sum_carries(in[0], swap, out, ctx);
}

// The same of numbers, each a sine of a product, all of which reverse mode keeps.
static void multiply_neighbours(jot_value i, jot_value *carry, void *ctx)
{
    int n = growth_size(ctx);
    jot_value first = carry[0];
    (void)i;
    for (int k = 0; k < n; k++)
        carry[k] = jot_sin(jot_mul(carry[k], k + 1 < n ? carry[k + 1] : first));
}

static void scalar_carries(const jot_value *in, jot_value *out, void *ctx)
{
    int n = growth_size(ctx);
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
    int n = growth_size(ctx);
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
        for (int k = 0, n = growth_size(ctx); k < n; k++) {
            jot_value at = jot_convert(jot_mul(jot_abs(jot_take(x, k % 100)), 3.0), JOT_I32);
            x = jot_at_set(jot_add(x, jot_mul(0.5, in[0])), jot_rem(at, 100), 0.25);
        }
    out[0] = jot_sum(x);
}

static void gathers(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0], p = jot_rem(jot_mul(jot_arange(JOT_I32, 100), 7), 100);
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        x = jot_sin(jot_take(x, jot_rem(jot_add(p, k), 100)));
    out[0] = jot_sum(x);
}

static void complexes(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value z = jot_convert(in[0], JOT_C64);
    for (int k = 0, n = growth_size(ctx); k < n; k++)
        z = jot_mul(jot_exp(z), jot_add(z, 0.1 * k));
    out[0] = jot_sum(jot_real(z));
}

// A scan whose step has as many scans as the size says.
static void scans_in_scan(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0], s = jot_mul(in[0], 0.5), y;
    JOT_SCAN ((s), (x), (y)) {
        for (int k = 0, n = growth_size(ctx); k < n; k++) {
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

const struct growth_family growth_loops[] = {
    {"branches_grad", branches, 1, true, JOT_F32, 1, 8, 9000, 15},
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
    {"whiles_loop_grad", whiles_loop, 1, true, JOT_F32, 1, 100, 12000, 40},
    {"branches_scan", branches_scan, 1, false, JOT_F32, 1, 100, 8000, 40},
    {"branches_scan_grad", branches_scan, 1, true, JOT_F32, 1, 100, 10000, 40},
    {"descent_loop_grad", descent_loop, 0, true, JOT_F32, 1, 8, 15000, 130},
    {"updates_loop", updates_loop, 1, false, JOT_F32, 1, 100, 20000, 600},
    {"updates_loop_grad", updates_loop, 1, true, JOT_F32, 1, 100, 50000, 900},
    {"long_step", long_step, 1, false, JOT_F32, 1, 1000, 10000, 200},
    {"long_step_grad", long_step, 1, true, JOT_F32, 1, 1000, 10000, 200},
    {"steps_then_max", steps_then_max, 1, false, JOT_F32, 1, 1000, 30000, 900},
    {"steps_then_max_grad", steps_then_max, 1, true, JOT_F32, 1, 1000, 20000, 800},
    {"swaps_grad", swaps, 1, true, JOT_F32, 1, 100, 15000, 150},
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
    {.name = NULL},
};
