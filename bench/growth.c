// SPDX-License-Identifier: Apache-2.0
// How programs grow with the functions they are made of: the lines of the graph as traced and as
// simplified, the bytes of the schedule and of the assembly, and the time to the first result, for
// chains, wide trees of parameters, unrolled recurrent networks, nested calls (of functions that
// use values around them or not), and the gradients of all.  Sizes double from row to row; what
// grows by more than 2.5 times is marked, and fails.  Equal kernels are one, so the size of the
// code depends on how soon kernels repeat; it is not marked while it is small.
//
//     growth [LARGEST [FAMILY...]]     the largest number of operations, 1000 unless told
#include "measure.h"

#include <string.h>

enum { STAGES = 4, WIDTH = 8 };

static const char *const stages[STAGES] = {"trace", "simplify", "schedule", "code"};
static const size_t small[STAGES] = {2000, 2000, 2000, 3 << 20};

// ---- functions of size n ----

static void chain(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    for (int i = 0, n = *(const int *)ctx; i < n; i += 2)
        x = jot_mul(jot_sin(x), in[0]);
    out[0] = jot_sum(x);
}

static void tree(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = jot_from(0.0);
    for (int i = 0, n = *(const int *)ctx / 4; i < n; i++)
        x = jot_add(x, jot_sum(jot_mul(in[i], jot_tanh(in[i]))));
    out[0] = x;
}

static void recurrent(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value h = in[0];
    for (int i = 0, n = *(const int *)ctx; i < n; i += 3)
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
    tower(in, out, *(const int *)ctx, false);
}

static void captured(const jot_value *in, jot_value *out, void *ctx)
{
    tower(in, out, *(const int *)ctx, true);
}

// ---- measuring ----

struct family {
    const char *name;
    jot_body *body;
    int n_in; // 0: as many as a quarter of the size
    bool is_graded, is_matrix;
};

struct row {
    size_t lines[2], bytes[STAGES];
    double first;
};

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static jot_status measure(const struct family *f, int n, struct row *r)
{
    int n_in = f->n_in ? f->n_in : n / 4, n_out = f->is_graded ? n_in : 1;
    uint16_t in_leaves = (uint16_t)n_in, out_leaves = 1;
    jot_array **in = calloc((size_t)n_in + (size_t)n_out, sizeof *in), **out = in + n_in;
    for (int i = 0; i < n_in; i++)
        in[i] = f->is_matrix && i == 1 ? jot_array_full(JOT_F32, 0.1, WIDTH, WIDTH)
                                       : jot_array_full(JOT_F32, 0.5 + i * 1e-3, WIDTH);
    jot_function traced =
        jot_function_trees(f->name, f->name, f->body, 1, &in_leaves, 1, &out_leaves, &n);
    double start = seconds();
    jot_executable *e = jot_jit(f->is_graded ? jot_grad(traced) : traced, .name = f->name);
    jot_status status = jot_call_list(e, (size_t)n_in, in, (size_t)n_out, out);
    r->first = seconds() - start;
    for (int i = 0; status == JOT_OK && i < STAGES; i++) {
        const char *text = jot_executable_text(e, stages[i]);
        r->bytes[i] = text ? strlen(text) : 0;
        if (i < 2)
            r->lines[i] = text ? lines_of(text) : 0;
    }
    if (status == JOT_OK)
        jot_arrays_release((size_t)n_out, out);
    jot_arrays_release((size_t)n_in, in);
    free(in);
    jot_executable_release(e);
    return status;
}

static bool grows_fast(size_t a, size_t b, size_t limit)
{
    return b > limit && (double)b > 2.5 * (double)a;
}

static int print_row(const struct family *f, int n, const struct row *r, const struct row *last)
{
    int bad = 0;
    printf("%-16s %7d %9zu %9zu", f->name, n, r->lines[0], r->lines[1]);
    for (int i = 2; i < STAGES; i++)
        printf(" %11zu", r->bytes[i]);
    printf(" %10.1f", 1e3 * r->first);
    for (int i = 0; last && i < STAGES; i++)
        if (grows_fast(last->bytes[i], r->bytes[i], small[i])) {
            printf("  %s grows %.1f times", stages[i],
                   (double)r->bytes[i] / (double)last->bytes[i]);
            bad = 1;
        }
    printf("\n");
    return bad;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    bool named = argc <= 2;
    for (int i = 2; i < argc; i++)
        named = named || !strcmp(argv[i], name);
    return named;
}

int main(int argc, char **argv)
{
    static const struct family families[] = {
        {"chain", chain, 1, false, false},        {"chain_grad", chain, 1, true, false},
        {"tree", tree, 0, false, false},          {"tree_grad", tree, 0, true, false},
        {"recurrent", recurrent, 3, false, true}, {"recurrent_grad", recurrent, 3, true, true},
        {"nested", nested, 1, false, false},      {"nested_grad", nested, 1, true, false},
        {"captured", captured, 1, false, false},  {"captured_grad", captured, 1, true, false},
    };
    setenv("JOT_CACHE", "off", 1);
    int largest = argc > 1 ? atoi(argv[1]) : 1000, failed = 0;
    printf("%-16s %7s %9s %9s %11s %11s %10s\n", "family", "size", "traced", "simple",
           "schedule B", "code B", "first ms");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct row rows[3];
        if (!is_wanted(families[i].name, argc, argv))
            continue;
        for (int k = 0; k < 3; k++) {
            int n = largest >> (2 - k);
            if (measure(&families[i], n, &rows[k]) != JOT_OK) {
                printf("%-16s %7d %s\n", families[i].name, n, jot_error_message());
                failed = 1;
                break;
            }
            failed |= print_row(&families[i], n, &rows[k], k ? &rows[k - 1] : NULL);
            fflush(stdout);
        }
    }
    return failed;
}
