// SPDX-License-Identifier: Apache-2.0
#include "pass_support.h"

struct ir_module *module;
uint64_t seed;

void support_setup(void) { module = ir_module_create(); }
void support_teardown(void) { ir_module_release(module); }

int support_run(const char *name, void (*add_tests)(TCase *t))
{
    const char *text = getenv("JOT_TEST_SEED");
    seed = text ? strtoull(text, NULL, 0) : 20240601;
    printf("seed %" PRIu64 "\n", seed);
    Suite *suite = suite_create(name);
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, support_setup, support_teardown);
    tcase_set_timeout(t, 120);
    add_tests(t);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

struct ir_type type_of_dims(jot_dtype d, int rank, const int64_t *dims)
{
    return ir_type_make(module, d, rank, dims);
}

uint32_t done(struct ir_builder *b)
{
    uint32_t f = ir_finish_function(b);
    ck_assert_msg(f != IR_NONE, "%s", b->message);
    return f;
}

uint32_t parse(const char *text)
{
    struct ir_graph *g;
    require(ir_graph_parse(module, text, &g));
    return ir_function_add(module, g);
}

const struct ir_graph *graph(uint32_t f) { return ir_function(module, f); }

struct ir_tensor *evaluate(uint32_t f, const struct ir_tensor *in)
{
    const struct ir_graph *g = graph(f);
    struct strbuf report = strbuf_make(module->arena);
    int faults = ir_verify(g, &report);
    ck_assert_msg(faults == 0, "%s\n%s", report.text, ir_graph_text(g));
    struct ir_tensor *out = arena_array(module->arena, struct ir_tensor, g->outputs.count + 1);
    jot_status status = ir_eval(module->arena, g, in, out);
    ck_assert_msg(status == JOT_OK, "%s\n%s", jot_error_message(), ir_graph_text(g));
    return out;
}

struct ir_tensor draw(struct ir_type t, uint64_t *state)
{
    return opcase_draw(module, t, "ANY", state);
}

struct ir_tensor zeros(struct ir_type t)
{
    size_t bytes = (size_t)ir_count(module, t) * jot_dtype_size(ir_dtype(t));
    return (struct ir_tensor){t, arena_allocate(module->arena, bytes + 1)};
}

struct ir_tensor scalar_f64(double x)
{
    return (struct ir_tensor){F64_SCALAR, arena_copy(module->arena, &x, sizeof x)};
}

struct complex_number element(struct ir_tensor x, int64_t i)
{
    switch (ir_dtype(x.type)) {
    case JOT_F64:
        return (struct complex_number){((const double *)x.data)[i], 0};
    case JOT_F32:
        return (struct complex_number){((const float *)x.data)[i], 0};
    case JOT_C128:
        return (struct complex_number){((const double *)x.data)[2 * i],
                                       ((const double *)x.data)[2 * i + 1]};
    case JOT_C64:
        return (struct complex_number){((const float *)x.data)[2 * i],
                                       ((const float *)x.data)[2 * i + 1]};
    case JOT_F16:
        return (struct complex_number){dtype_f16_to_f32(((const uint16_t *)x.data)[i]), 0};
    case JOT_BF16:
        return (struct complex_number){dtype_bf16_to_f32(((const uint16_t *)x.data)[i]), 0};
    default:
        ck_abort_msg("no numbers in %s", ir_type_text(module, x.type));
    }
    return (struct complex_number){0, 0};
}

double pair(struct ir_tensor x, struct ir_tensor y)
{
    ck_assert_int_eq(ir_count(module, x.type), ir_count(module, y.type));
    double sum = 0;
    for (int64_t i = 0; i < ir_count(module, x.type); i++) {
        struct complex_number a = element(x, i), b = element(y, i);
        sum += a.re * b.re - a.im * b.im;
    }
    return sum;
}

struct ir_tensor moved(struct ir_tensor x, struct ir_tensor t, double scale)
{
    struct ir_tensor y = zeros(x.type);
    jot_dtype part = dtype_real(ir_dtype(x.type));
    int64_t n = ir_count(module, x.type) * (dtype_is_complex(ir_dtype(x.type)) ? 2 : 1);
    ck_assert(part == JOT_F64 || part == JOT_F32);
    for (int64_t i = 0; i < n; i++) {
        if (part == JOT_F64)
            ((double *)y.data)[i] = ((double *)x.data)[i] + scale * ((double *)t.data)[i];
        else
            ((float *)y.data)[i] =
                (float)(((float *)x.data)[i] + scale * (double)((float *)t.data)[i]);
    }
    return y;
}

static double part_distance(double x, double y)
{
    if (x == y || (x != x && y != y))
        return 0;
    double d = fabs(x - y) / (1 + fmax(fabs(x), fabs(y)));
    return d == d ? d : INFINITY;
}

double distance(struct ir_tensor x, struct ir_tensor y)
{
    ck_assert_msg(ir_type_equal(x.type, y.type), "%s and %s", ir_type_text(module, x.type),
                  ir_type_text(module, y.type));
    if (!dtype_is_inexact(ir_dtype(x.type)))
        return bits_equal(x, y) ? 0 : INFINITY;
    double most = 0;
    for (int64_t i = 0; i < ir_count(module, x.type); i++) {
        struct complex_number a = element(x, i), b = element(y, i);
        most = fmax(most, fmax(part_distance(a.re, b.re), part_distance(a.im, b.im)));
    }
    return most;
}

bool bits_equal(struct ir_tensor x, struct ir_tensor y)
{
    size_t bytes = (size_t)ir_count(module, x.type) * jot_dtype_size(ir_dtype(x.type));
    return ir_type_equal(x.type, y.type) && (bytes == 0 || !memcmp(x.data, y.data, bytes));
}

static size_t bytes_of(struct ir_type t)
{
    return (size_t)ir_count(module, t) * jot_dtype_size(ir_dtype(t));
}

struct ir_tensor lane(struct ir_tensor x, int64_t i)
{
    const int64_t *dims = ir_dims(module, x.type);
    struct ir_type t = ir_type_make(module, ir_dtype(x.type), x.type.rank - 1, dims + 1);
    return (struct ir_tensor){t, (char *)x.data + (size_t)i * bytes_of(t)};
}

struct ir_tensor stack(struct ir_type t, int64_t n, const struct ir_tensor *lanes)
{
    int64_t dims[IR_MAX_RANK] = {n};
    for (int i = 0; i < t.rank; i++)
        dims[i + 1] = ir_dims(module, t)[i];
    struct ir_tensor x = zeros(ir_type_make(module, ir_dtype(t), t.rank + 1, dims));
    for (int64_t i = 0; i < n && bytes_of(t); i++)
        memcpy((char *)x.data + (size_t)i * bytes_of(t), lanes[i].data, bytes_of(t));
    return x;
}

const bool *mask_of(uint32_t n, uint64_t bits)
{
    bool *mask = arena_array(module->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++)
        mask[i] = bits >> i & 1;
    return mask;
}

// -- Checks of a transform ---------------------------------------------------------------------

bool *inexact_inputs(const struct ir_graph *g)
{
    bool *mask = arena_array(module->arena, bool, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        mask[i] = inexact(ir_type_of(g, i));
    return mask;
}

uint64_t inexact_bits(uint32_t f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        bits |= (uint64_t)inexact(ir_type_of(graph(f), i)) << i;
    return bits;
}

// The tangents of all results of f, as pass_jvp gives them; zeros made.
struct ir_tensor *tangents(uint32_t f, const bool *nonzero, const struct ir_tensor *x,
                           const struct ir_tensor *dx)
{
    const struct ir_graph *g = graph(f);
    uint32_t j;
    bool *out_nonzero = arena_array(module->arena, bool, g->outputs.count + 1);
    require(pass_jvp(module, f, nonzero, &j, out_nonzero));
    struct ir_tensor in[64];
    uint32_t n = g->n_params;
    memcpy(in, x, sizeof *in * n);
    for (uint32_t i = 0; i < g->n_params; i++)
        if (nonzero[i])
            in[n++] = dx[i];
    struct ir_tensor *y = evaluate(j, in), *dy = y + g->outputs.count;
    struct ir_tensor *out = arena_array(module->arena, struct ir_tensor, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        out[i] = out_nonzero[i] ? *dy++ : zeros(ir_type_of(g, g->outputs.at[i]));
    return out;
}

static struct ir_tensor *directions(const struct ir_graph *g, const bool *mask, uint64_t *state)
{
    struct ir_tensor *dx = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        dx[i] = mask[i] ? draw(ir_type_of(g, i), state) : zeros(ir_type_of(g, i));
    return dx;
}

static struct ir_tensor *all_moved(const struct ir_graph *g, const bool *mask,
                                   const struct ir_tensor *x, const struct ir_tensor *dx,
                                   double scale)
{
    struct ir_tensor *y = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        y[i] = mask[i] ? moved(x[i], dx[i], scale) : x[i];
    return y;
}

// dy against (f(x + h dx) - f(x - h dx)) / 2h.
void check_differences(const char *what, uint32_t f, const bool *mask,
                       const struct ir_tensor *x, uint64_t *state)
{
    const struct ir_graph *g = graph(f);
    const double h = 1e-6;
    struct ir_tensor *dx = directions(g, mask, state);
    struct ir_tensor *dy = tangents(f, mask, x, dx);
    struct ir_tensor *above = evaluate(f, all_moved(g, mask, x, dx, h));
    struct ir_tensor *below = evaluate(f, all_moved(g, mask, x, dx, -h));
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_type t = ir_type_of(g, g->outputs.at[i]);
        if (ir_dtype(t) != JOT_F64 && ir_dtype(t) != JOT_C128)
            continue;
        struct ir_tensor slope = zeros(t);
        if (!bits_equal(above[i], below[i])) // infinities stay what they are
            slope = moved(slope, moved(above[i], below[i], -1), 0.5 / h);
        double error = distance(slope, dy[i]);
        ck_assert_msg(error < 1e-6, "seed %" PRIu64 ": %s: tangent is off by %g\n%s", seed,
                      what, error, ir_graph_text(g));
    }
}

// What rounding of tangents to the dtypes of inputs and results leaves of an equality.
static double allowance(const struct ir_graph *g)
{
    double most = 1e-12;
    for (uint32_t i = 0; i < g->n_params + g->outputs.count; i++) {
        ir_id v = i < g->n_params ? i : g->outputs.at[i - g->n_params];
        jot_dtype part = dtype_real(ir_dtype_of(g, v));
        most = fmax(most, part == JOT_F32 ? 1e-5 : dtype_is_half(part) ? 1e-1 : 0);
    }
    return most;
}

// <w, J v> = <J' w, v>
void check_transpose(const char *what, uint32_t f, const bool *mask, const struct ir_tensor *x,
                     uint64_t *state)
{
    const struct ir_graph *g = graph(f);
    struct ir_tensor *v = directions(g, mask, state), *jv = tangents(f, mask, x, v), in[64];
    uint32_t back, n = g->n_params;
    require(pass_vjp(module, f, mask, &back));
    memcpy(in, x, sizeof *in * n);
    double there = 0, here = 0;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_type t = ir_type_of(g, g->outputs.at[i]);
        if (!inexact(t))
            continue;
        in[n] = draw(t, state);
        there += pair(in[n++], jv[i]);
    }
    struct ir_tensor *y = evaluate(back, in), *ct = y + g->outputs.count;
    struct ir_tensor *plain = evaluate(f, x);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ck_assert_msg(bits_equal(y[i], plain[i]), "%s: result %u differs", what, i);
    for (uint32_t i = 0; i < g->n_params; i++)
        if (mask[i])
            here += pair(*ct++, v[i]);
    ck_assert_msg(fabs(there - here) <= allowance(g) * (1 + fabs(there)),
                  "seed %" PRIu64 ": %s: <w,Jv> = %.17g and <J'w,v> = %.17g\n%s", seed, what,
                  there, here, ir_graph_text(graph(back)));
}

// Simplified functions give the same bits.
void check_simplify(const char *what, uint32_t f, const struct ir_tensor *x)
{
    uint32_t s = pass_simplify(module, pass_inline(module, f, 100000));
    struct ir_tensor *y = evaluate(f, x), *z = evaluate(s, x);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(bits_equal(y[i], z[i]) || distance(y[i], z[i]) == 0,
                      "seed %" PRIu64 ": %s: result %u changes by simplification\n%s\n%s", seed,
                      what, i, ir_graph_text(graph(f)), ir_graph_text(graph(s)));
}

// The mapped function against a loop, for the inputs in mask mapped.
void check_vmap(const char *what, uint32_t f, const bool *mask, int64_t size,
                const struct ir_tensor *x, double tolerance, const char *domain,
                uint64_t *state)
{
    const struct ir_graph *g = graph(f);
    struct ir_tensor in[64], lanes[8];
    for (uint32_t i = 0; i < g->n_params; i++) {
        in[i] = x[i];
        for (int64_t k = 0; k < size && mask[i]; k++)
            lanes[k] = k == 0 ? x[i] : opcase_draw(module, x[i].type, domain, state);
        if (mask[i])
            in[i] = stack(x[i].type, size, lanes);
    }
    uint32_t mapped;
    bool *batched = arena_array(module->arena, bool, g->outputs.count + 1);
    require(pass_vmap(module, f, mask, size, &mapped, batched));
    struct ir_tensor *y = evaluate(mapped, in), one[64];
    for (int64_t k = 0; k < size; k++) {
        for (uint32_t i = 0; i < g->n_params; i++)
            one[i] = mask[i] ? lane(in[i], k) : in[i];
        struct ir_tensor *want = evaluate(f, one);
        for (uint32_t i = 0; i < g->outputs.count; i++) {
            double error = distance(batched[i] ? lane(y[i], k) : y[i], want[i]);
            ck_assert_msg(error <= tolerance, "seed %" PRIu64 ": %s: lane %d is off by %g\n%s",
                          seed, what, (int)k, error, ir_graph_text(graph(mapped)));
        }
    }
}
