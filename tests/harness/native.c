// SPDX-License-Identifier: Apache-2.0
#include "harness/native.h"

#include "base/status.h"
#include "harness/isolate.h"
#include "jot/device.h"
#include "map/map.h"
#include "runtime/device.h"
#include "support/nest_eval.h"
#include "support/run_native.h"

#include <math.h>
#include <stdio.h>

enum { KERNELS_A_PROGRAM = 96, SECONDS = 100, REPORTED = 12 };

struct native native_make(struct ir_module *m, struct strbuf *report)
{
    return (struct native){.module = m, .report = report};
}

// ---- Comparing

static size_t tensor_bytes(const struct ir_module *m, struct ir_type t)
{
    return (size_t)ir_count(m, t) * jot_dtype_size(ir_dtype(t));
}

// The number that element i of the parts of a tensor is; NaN for what is no float.
static double part(jot_dtype d, const void *data, int64_t i)
{
    const char *at = (const char *)data + i * (int64_t)jot_dtype_size(d);
    double x = NAN;
    float y;
    uint16_t half;
    if (d == JOT_F64) {
        memcpy(&x, at, sizeof x);
    } else if (d == JOT_F32) {
        memcpy(&y, at, sizeof y);
        x = (double)y;
    } else if (dtype_is_half(d)) {
        memcpy(&half, at, sizeof half);
        x = (double)(d == JOT_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half));
    }
    return x;
}

// As native_same; element i may be off by spread[i] besides, where that is not NULL.
static bool same(const struct ir_module *m, struct ir_tensor got, struct ir_tensor want,
                 double tolerance, const double *spread, struct strbuf *report)
{
    jot_dtype d = dtype_real(ir_dtype(want.type));
    size_t size = jot_dtype_size(d);
    int64_t count = ir_count(m, want.type) * (dtype_is_complex(ir_dtype(want.type)) ? 2 : 1);
    if (!ir_type_equal(got.type, want.type)) {
        if (report)
            strbuf_add(report, "  types differ\n");
        return false;
    }
    double largest = 0;
    for (int64_t i = 0; tolerance > 0 && i < count; i++)
        largest = fmax(largest, fabs(part(d, want.data, i)));
    for (int64_t i = 0; i < count; i++) {
        const char *a = (const char *)got.data + (size_t)i * size;
        const char *b = (const char *)want.data + (size_t)i * size;
        if (!memcmp(a, b, size))
            continue;
        double x = part(d, got.data, i), y = part(d, want.data, i);
        bool is_close =
            tolerance > 0 && fabs(x - y) <= tolerance * largest + (spread ? spread[i] : 0);
        if (dtype_is_float(d) && ((x != x && y != y) || is_close))
            continue;
        if (report) {
            strbuf_printf(report, "  element %lld is ", (long long)i);
            for (size_t k = size; k-- > 0;)
                strbuf_printf(report, "%02x", (unsigned char)a[k]);
            strbuf_add(report, ", expected ");
            for (size_t k = size; k-- > 0;)
                strbuf_printf(report, "%02x", (unsigned char)b[k]);
            if (dtype_is_float(d))
                strbuf_printf(report, " (%a, expected %a)", x, y);
            strbuf_add(report, "\n");
        }
        return false;
    }
    return true;
}

bool native_same(const struct ir_module *m, struct ir_tensor got, struct ir_tensor want,
                 double tolerance, struct strbuf *report)
{
    return same(m, got, want, tolerance, NULL, report);
}

// x with each number that is finite replaced by the next one up or down.
static struct ir_tensor nudged(const struct ir_module *m, struct ir_tensor x, uint64_t seed)
{
    jot_dtype d = dtype_real(ir_dtype(x.type));
    size_t size = jot_dtype_size(d), bytes = tensor_bytes(m, x.type);
    struct ir_tensor y = {x.type, arena_copy(m->arena, x.data, bytes)};
    for (size_t i = 0; dtype_is_float(d) && i < bytes / size; i++) {
        char *at = (char *)y.data + i * size;
        uint64_t bits = 0;
        if (!isfinite(part(d, y.data, (int64_t)i)) || part(d, y.data, (int64_t)i) == 0)
            continue;
        memcpy(&bits, at, size);
        bits += hash_combine(seed, i) % 2 ? 1 : UINT64_MAX;
        memcpy(at, &bits, size);
    }
    return y;
}

// What each number of a result may be off for what the operands are (native_close); NULL when the
// evaluator fails.
static double *spread_of(const struct ir_graph *g, const struct ir_tensor *in, uint32_t output,
                         struct ir_tensor want)
{
    enum { TRIES = 4, ROUNDINGS = 4 };
    struct arena *a = g->module->arena;
    jot_dtype d = dtype_real(ir_dtype(want.type));
    int64_t count = (int64_t)(tensor_bytes(g->module, want.type) / jot_dtype_size(d));
    double *spread = arena_array(a, double, count + 1);
    for (uint64_t k = 0; k < TRIES; k++) {
        struct ir_tensor *other = arena_array(a, struct ir_tensor, g->n_params + 1),
                         *out = arena_array(a, struct ir_tensor, g->outputs.count + 1);
        for (uint32_t i = 0; i < g->n_params; i++)
            other[i] = nudged(g->module, in[i], hash_combine(k, i));
        if (ir_eval(a, g, other, out) != JOT_OK)
            return NULL;
        for (int64_t i = 0; i < count; i++)
            spread[i] = fmax(spread[i], ROUNDINGS * fabs(part(d, out[output].data, i) -
                                                         part(d, want.data, i)));
    }
    return spread;
}

bool native_close(const struct ir_graph *g, const struct ir_tensor *in, uint32_t output,
                  struct ir_tensor got, struct ir_tensor want, double tolerance,
                  struct strbuf *report)
{
    if (tolerance == 0 || native_same(g->module, got, want, tolerance, NULL))
        return same(g->module, got, want, tolerance, NULL, report);
    return same(g->module, got, want, tolerance, spread_of(g, in, output, want), report);
}

// ---- Running

static const char *way_of(const struct native_case *c)
{
    return c->how.separate ? " (separate)" : c->how.steps ? " (steps)" : "";
}

static void explain(struct strbuf *report, const struct native_case *c)
{
    struct strbuf text = strbuf_make(c->g->module->arena);
    schedule_print(&text, c->program);
    strbuf_printf(report, "%s", ir_graph_text(c->g));
    if (text.length < 20000)
        strbuf_add(report, text.text);
}

// What a child is to do.
struct batch {
    struct ir_module *module;
    const struct native_case *cases;
    uint32_t count;
};

static void check_outputs(const struct batch *b, void *const *out, int n_threads,
                          struct strbuf *report)
{
    for (uint32_t i = 0, k = 0; i < b->count; i++) {
        const struct native_case *c = &b->cases[i];
        struct strbuf detail = strbuf_make(b->module->arena);
        bool is_right = true;
        for (uint32_t o = 0; o < c->g->outputs.count; o++, k++) {
            struct ir_tensor got = {c->want[o].type, out[k]};
            if (is_right &&
                !native_close(c->g, c->in, o, got, c->want[o], c->how.tolerance, &detail)) {
                strbuf_printf(report, "! %s%s: output %u of machine code, %d threads\n%s",
                              c->what, way_of(c), o, n_threads, detail.text);
                explain(report, c);
                is_right = false;
            }
        }
    }
}

static void run_batch(void *ctx, struct strbuf *report)
{
    const struct batch *b = ctx;
    struct arena *arena = b->module->arena;
    struct nest_program **programs = arena_array(arena, struct nest_program *, b->count + 1);
    uint32_t n_in = 0, n_out = 0;
    bool threads = false;
    for (uint32_t i = 0; i < b->count; i++) {
        programs[i] = b->cases[i].program;
        n_in += b->cases[i].g->n_params;
        n_out += b->cases[i].g->outputs.count;
        threads |= b->cases[i].how.threads;
    }
    void **in = arena_array(arena, void *, n_in + 1),
         **out = arena_array(arena, void *, n_out + 1);
    uint32_t k = 0;
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t p = 0; p < b->cases[i].g->n_params; p++)
            in[k++] = b->cases[i].in[p].data;
    struct rt_program *program;
    if (run_native_load(arena, run_native_merge(arena, b->count, programs), NULL, &program) !=
        JOT_OK) {
        strbuf_printf(report, "! %s and %u more: %s\n", b->cases->what, b->count - 1,
                      jot_error_message());
        if (b->count == 1)
            explain(report, b->cases);
        return;
    }
    static const int numbers[] = {1, 2, 7};
    for (int t = 0; t < (threads && rt_is_host(jot_default_device()) ? 3 : 1); t++) {
        k = 0;
        for (uint32_t i = 0; i < b->count; i++)
            for (uint32_t o = 0; o < b->cases[i].g->outputs.count; o++) {
                size_t bytes = tensor_bytes(b->module, b->cases[i].want[o].type);
                out[k] = arena_allocate(arena, bytes + 64);
                memset(out[k++], 0xa5, bytes);
            }
        jot_status status = jot_set_threads(numbers[t]);
        if (status == JOT_OK)
            status = run_native_call(program, (const void *const *)in, out);
        if (status == JOT_OK) {
            check_outputs(b, out, numbers[t], report);
        } else {
            strbuf_printf(report, "! %s: %s\n", b->cases->what, jot_error_message());
            if (b->count == 1)
                explain(report, b->cases);
        }
    }
    rt_program_release(program);
}

// Lines that say that something failed.
static int failures_in(const char *text)
{
    int n = *text == '!';
    for (; (text = strchr(text, '\n')) != NULL; text++)
        n += text[1] == '!';
    return n;
}

static void run_alone(struct native *n, const struct native_case *c)
{
    struct batch one = {n->module, c, 1};
    struct strbuf text = strbuf_make(n->module->arena);
    bool ended = isolate_run(run_batch, &one, SECONDS, &text);
    int failures = failures_in(text.text);
    if (ended && !failures)
        return;
    n->failures += failures ? failures : 1;
    if (!ended)
        strbuf_printf(n->report, "! %s\n", c->what);
    strbuf_add(n->report, text.text);
    if (!ended)
        explain(n->report, c);
}

static void flush(struct native *n)
{
    struct batch all = {n->module, n->cases.at, n->cases.count};
    if (all.count == 0)
        return;
    struct strbuf text = strbuf_make(n->module->arena);
    bool ended = isolate_run(run_batch, &all, SECONDS, &text);
    if (!ended || failures_in(text.text)) {
        int before = n->failures;
        for (uint32_t i = 0; i < all.count && n->failures < REPORTED; i++)
            run_alone(n, &all.cases[i]);
        if (n->failures == before) {
            n->failures++;
            strbuf_printf(n->report, "! fails only together with others: %s", text.text);
        }
    }
    n->done += all.count;
    n->cases.count = 0;
    n->weight = 0;
}

int native_finish(struct native *n)
{
    flush(n);
    return n->failures;
}

// ---- Adding

static void fail(struct native *n, const struct native_case *c, const char *stage,
                 const char *message)
{
    n->failures++;
    strbuf_printf(n->report, "! %s%s: %s: %s\n", c->what, way_of(c), stage, message);
    if (c->program)
        explain(n->report, c);
    else
        strbuf_add(n->report, ir_graph_text(c->g));
}

static void interpret(struct native *n, const struct native_case *c)
{
    struct arena *arena = n->module->arena;
    void **in = arena_array(arena, void *, c->g->n_params + 1);
    void **out = arena_array(arena, void *, c->g->outputs.count + 1);
    for (uint32_t i = 0; i < c->g->n_params; i++)
        in[i] = c->in[i].data;
    for (uint32_t i = 0; i < c->g->outputs.count; i++)
        out[i] = arena_allocate(arena, tensor_bytes(n->module, c->want[i].type) + 64);
    if (nest_program_eval(c->program, in, out) != JOT_OK) {
        fail(n, c, "interpreter of nests", jot_error_message());
        return;
    }
    for (uint32_t i = 0; i < c->g->outputs.count; i++) {
        struct strbuf detail = strbuf_make(arena);
        struct ir_tensor got = {c->want[i].type, out[i]};
        if (!native_close(c->g, c->in, i, got, c->want[i], c->how.tolerance, &detail)) {
            fail(n, c, "interpreter of nests", detail.text);
            return;
        }
    }
}

// What a routine may be off, in units of the precision of its numbers: each of a few tens of
// roundings in a row, as those of the passes of a transform, is a unit of the largest element
// at most.
#define ROUTINE_UNITS 64

// Evaluator and machine code have the same bits but for what routines compute: the tolerance for the
// least precise of the graph and its bodies, 0 without any.
static double routine_tolerance(const struct ir_graph *g)
{
    double most = 0;
    ir_for_each_node (g, node) {
        double x = 0;
        int count = 0;
        bool only_moves = node->op == IR_sort || node->op == IR_top_k;
        if (ir_op_class((enum ir_op)node->op) == IR_CLASS_LIBRARY && !only_moves) {
            jot_dtype d = dtype_real(ir_dtype_of(g, ir_operand(g, node, 0)));
            // Halves are sums of f32 that are rounded once: to a unit more or less.
            x = d == JOT_BF16  ? 0x1p-7
                : d == JOT_F16 ? 0x1p-10
                               : ROUTINE_UNITS * (d == JOT_F32 ? 0x1p-24 : 0x1p-53);
        } else if (ir_has_bodies((enum ir_op)node->op)) {
            ir_attr_ints(node->attrs, IR_KEY_functions, &count);
        }
        for (int i = 0; i < count; i++)
            x = fmax(x, routine_tolerance(ir_body(g, node, i)));
        most = fmax(most, x);
    }
    return most;
}

static jot_status map_it(struct nest_program *p, void *ctx)
{
    (void)ctx;
    map_program_to_gpu(p, false);
    struct strbuf report = strbuf_make(p->arena);
    return map_program_verify(p, false, &report)
               ? status_fail(JOT_ERR_INTERNAL, "%s", report.text)
               : JOT_OK;
}

void native_add(struct native *n, const char *what, uint32_t f, const struct ir_tensor *in,
                const struct native_how *how)
{
    if (n->failures >= REPORTED)
        return;
    struct arena *arena = n->module->arena;
    struct native_case c = {.what = what, .g = ir_function(n->module, f), .how = *how};
    c.in = arena_copy(arena, in, c.g->n_params * sizeof *in);
    double routines = routine_tolerance(c.g);
    c.how.tolerance = fmax(how->tolerance, routines);
    struct ir_tensor *want = arena_array(arena, struct ir_tensor, c.g->outputs.count + 1);
    c.want = want;
    if (ir_eval(arena, c.g, in, want) != JOT_OK) {
        fail(n, &c, "evaluator", jot_error_message());
        return;
    }
    bool is_gpu = !rt_is_host(jot_default_device());
    struct schedule_options options = schedule_options_of(is_gpu);
    options.map = is_gpu ? map_it : NULL;
    options.separate = how->separate;
    options.steps = how->steps;
    options.no_gemm = !how->gemm;
    if (pass_schedule(arena, c.g, &options, &c.program) != JOT_OK) {
        fail(n, &c, "schedule", jot_error_message());
        return;
    }
    struct strbuf faults = strbuf_make(arena);
    if (nest_program_verify(c.program, &faults) + plan_verify(c.program, &faults)) {
        fail(n, &c, "faults of the program", faults.text);
        return;
    }
    if (how->interpret && !nest_program_has_routines(c.program))
        interpret(n, &c);
    vec_push(arena, &n->cases, c);
    n->weight += c.program->nests.count;
    if (n->weight >= KERNELS_A_PROGRAM)
        flush(n);
}
