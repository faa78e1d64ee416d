// SPDX-License-Identifier: Apache-2.0
// The evaluator against golden values made with JAX, those of complex functions also with mpmath, and
// machine code against the evaluator on the same operands, which are full of special values.
#include "golden/golden.h"
#include "harness/native.h"
#include "passes/pass_support.h"

#include <fnmatch.h>

static const char *const files[] = {"floats",      "integers",   "complex",     "converts",
                                    "denormals",   "reductions", "layouts",     "indexing",
                                    "derivatives", "transforms", "complex_grid"};
enum { FILES = sizeof files / sizeof *files };

// -- Where jot means to differ ----------------------------------------------------------------

struct difference {
    struct ir_tensor in; // the first operand
    int64_t part;        // of the result
    double got, want;
};

// An operand on a branch cut: one of its parts is -0.
static bool is_below_the_cut(const struct difference *d)
{
    int64_t i = d->part / 2;
    if (!dtype_is_complex(ir_dtype(d->in.type)) || i >= ir_count(module, d->in.type))
        return false;
    struct complex_number z = element(d->in, i);
    bool is_negative_zero = (z.re == 0 && signbit(z.re)) || (z.im == 0 && signbit(z.im));
    return is_negative_zero && fabs(d->got + d->want) <= 1e-6 * fabs(d->want);
}

static bool are_zeros(const struct difference *d) { return d->got == 0 && d->want == 0; }

// To some digits, or beside 1.
static bool are_close(const struct difference *d)
{
    return fabs(d->got - d->want) <= 1e-5 * fmax(1, fabs(d->want));
}

static bool is_none_below_1(const struct difference *d)
{
    return isnan(d->got) && element(d->in, d->part).re < 1;
}

static bool is_nan_not_infinite(const struct difference *d)
{
    return isnan(d->got) && isinf(d->want);
}

static bool is_zero_not_nan(const struct difference *d)
{
    return d->got == 0 && isnan(d->want);
}

static const struct exception {
    const char *tests; // a pattern of names
    const char *reason;
    bool (*holds)(const struct difference *d);
} exceptions[] = {
    {"sqrt_c*", "the sign of a zero chooses the side of the cut, as C99 says; XLA drops it",
     is_below_the_cut},
    {"a@(sin|cos|sinh|cosh)_c*", "the same", is_below_the_cut},
    {"cumsum_*",
     "a running sum starts with its first element, so that -0 stays; XLA adds it to 0",
     are_zeros},
    {"vjp_cum@(prod|max|min)_f*",
     "gradients of running folds are sums in another order; the sign "
     "of a sum that is zero is not promised",
     are_zeros},
    {"vjp_@(div|rem|reduce_prod)_f*", "the sign of a slope that is zero is not promised",
     are_zeros},
    {"vjp_@(expm1|asin|acos)_f*",
     "1 + expm1(x) cancels far below 0, and 1 - x^2 near 1 unless it is rounded once",
     are_close},
    {"vjp_acosh_f*", "acosh is NaN below 1, and so is its slope", is_none_below_1},
    {"vjp_rem_f*", "a remainder by 0 or of infinity is NaN, and so is its slope",
     is_nan_not_infinite},
    {"vjp_pow_f*", "x^0 has the slope 0 at 0 as well", is_zero_not_nan},
};

// -- Comparing --------------------------------------------------------------------------------

static double number(jot_dtype d, const void *data, int64_t i)
{
    struct ir_tensor x = {ir_type_make(module, d, 0, NULL),
                          (char *)(uintptr_t)data + i * (int64_t)jot_dtype_size(d)};
    return element(x, 0).re;
}

static double smallest_normal(jot_dtype d)
{
    return d == JOT_F64 ? 0x1p-1022 : d == JOT_F16 ? 0x1p-14 : 0x1p-126;
}

static int mantissa_bits(jot_dtype d)
{
    return d == JOT_F64 ? 52 : d == JOT_F32 ? 23 : d == JOT_F16 ? 10 : 7;
}

static double ulp_of(jot_dtype d, double x)
{
    int e;
    frexp(fmax(fabs(x), smallest_normal(d)), &e);
    return ldexp(1, e - 1 - mantissa_bits(d));
}

// One part of an element.  XLA makes no denormal results, so a zero of the right sign stands for
// one.
static bool part_matches(const struct golden_test *t, jot_dtype d, const void *got,
                         const void *want, int64_t i, double scale)
{
    size_t size = jot_dtype_size(d);
    if (!memcmp((const char *)got + (size_t)i * size, (const char *)want + (size_t)i * size,
                size))
        return true;
    if (!dtype_is_float(d))
        return false;
    double x = number(d, got, i), y = number(d, want, i);
    if (x != x && y != y)
        return true;
    if (y == 0 && fabs(x) < smallest_normal(d) && signbit(x) == signbit(y) && x != 0)
        return true;
    double room = t->how == GOLDEN_EXACT ? 0
                  : t->how == GOLDEN_ULP ? t->bound * ulp_of(d, y)
                                         : t->bound * fmax(scale, smallest_normal(d));
    bool is_other_zero = t->how == GOLDEN_ULP && y == 0 && x == 0;
    if (isfinite(y) && fabs(x - y) <= room && !is_other_zero)
        return true;
    struct difference difference = {t->in[0], i, x, y};
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++)
        if (fnmatch(exceptions[k].tests, t->name, FNM_EXTMATCH) == 0 &&
            exceptions[k].holds(&difference))
            return true;
    return false;
}

static void compare(const struct golden_test *t, int o, struct ir_tensor got,
                    struct strbuf *report)
{
    struct ir_tensor want = t->out[o];
    if (!ir_type_equal(got.type, want.type)) {
        strbuf_printf(report, "%s: output %d is %s, expected %s\n", t->name, o,
                      ir_type_text(module, got.type), ir_type_text(module, want.type));
        return;
    }
    jot_dtype dtype = ir_dtype(want.type), d = dtype_real(dtype);
    int parts = dtype_is_complex(dtype) ? 2 : 1, shown = 0;
    int64_t count = ir_count(module, want.type);
    for (int64_t i = 0; i < count * parts; i++) {
        double scale = 0;
        for (int k = 0; k < parts && dtype_is_float(d); k++)
            scale = fmax(scale, fabs(number(d, want.data, i / parts * parts + k)));
        if (part_matches(t, d, got.data, want.data, i, scale))
            continue;
        if (shown++ == 6) {
            strbuf_printf(report, "  ...\n");
            return;
        }
        strbuf_printf(report, "%s: output %d, part %lld: ", t->name, o, (long long)i);
        if (dtype_is_float(d)) {
            double x = number(d, got.data, i), y = number(d, want.data, i);
            strbuf_printf(report, "%.9g, expected %.9g (%g ulp)", x, y,
                          fabs(x - y) / ulp_of(d, y));
        } else {
            long long a = 0, b = 0;
            memcpy(&a, (char *)got.data + i * (int64_t)jot_dtype_size(d), jot_dtype_size(d));
            memcpy(&b, (char *)want.data + i * (int64_t)jot_dtype_size(d), jot_dtype_size(d));
            strbuf_printf(report, "%lld, expected %lld", a, b);
        }
        for (int k = 0; k < t->n_in && !t->apply; k++) {
            struct ir_tensor in = t->in[k];
            if (!dtype_is_inexact(ir_dtype(in.type)))
                continue;
            int64_t rank2 = in.type.rank == 2 && ir_count(module, in.type) < count;
            int64_t columns =
                want.type.rank ? ir_dims(module, want.type)[want.type.rank - 1] : 1;
            int64_t at = i / parts;
            if (rank2)
                at = ir_dims(module, in.type)[0] == 1 ? at % columns : at / columns;
            if (at < ir_count(module, in.type)) {
                struct complex_number z = element(in, at);
                strbuf_printf(report, " [%.9g%+.9gi]", z.re, z.im);
            }
        }
        strbuf_add(report, "\n");
    }
}

// -- Running ----------------------------------------------------------------------------------

// The function of the statements, before a transform.
static uint32_t function_of(const struct golden_test *t)
{
    int n_params = t->n_in, extra = 0;
    if (t->apply && !strncmp(t->apply, "vjp", 3))
        extra = 1; // the cotangent
    if (t->apply && !strncmp(t->apply, "jvp", 3))
        extra = n_params / 2;
    n_params -= extra;
    struct strbuf s = strbuf_make(module->arena);
    strbuf_add(&s, "jot ir 1\nfunction @0(");
    int32_t axes[GOLDEN_TENSORS];
    for (int i = 0; i < GOLDEN_TENSORS; i++)
        axes[i] = PASS_NO_AXIS;
    if (t->apply && !strncmp(t->apply, "vmap", 4)) {
        char *at = arena_text(module->arena, t->apply + 5), *save = NULL;
        strtok_r(at, " ", &save);
        for (int i = 0; i < n_params; i++) {
            const char *word = strtok_r(NULL, " ", &save);
            axes[i] = word && strcmp(word, "-") ? atoi(word) : PASS_NO_AXIS;
        }
    }
    for (int i = 0; i < n_params; i++) {
        struct ir_type type = t->in[i].type;
        const int64_t *dims = ir_dims(module, type);
        int64_t lane[IR_MAX_RANK];
        int rank = 0;
        for (int k = 0; k < type.rank; k++)
            if (k != axes[i])
                lane[rank++] = dims[k];
        type = ir_type_make(module, ir_dtype(type), rank, lane);
        strbuf_printf(&s, "%s%%%d: %s", i ? ", " : "", i, ir_type_text(module, type));
    }
    strbuf_add(&s, ") {\n");
    int next = n_params;
    char *text = arena_text(module->arena, t->op), *save = NULL;
    const char *results = "";
    for (char *one = strtok_r(text, "|", &save); one; one = strtok_r(NULL, "|", &save)) {
        bool two = strstr(one, "u32[4], u32[4]") != NULL;
        strbuf_printf(&s, "  %%%d", next);
        if (two)
            strbuf_printf(&s, ", %%%d", next + 1);
        strbuf_printf(&s, " = %s\n", one + strspn(one, " "));
        next += two ? 2 : 1;
        results = two ? "two" : "";
    }
    if (*results)
        strbuf_printf(&s, "  return %%%d, %%%d\n}\n", next - 2, next - 1);
    else
        strbuf_printf(&s, "  return %%%d\n}\n", next - 1);
    uint32_t f = parse(s.text);
    if (t->apply && !strncmp(t->apply, "vmap", 4)) {
        int32_t out_axes[] = {0};
        require(
            pass_vmap_axes(module, f, axes, out_axes, atoi(t->apply + 5), PASS_UNNAMED, &f));
    }
    return f;
}

static const bool *mask_from(const char *digits)
{
    bool *mask = arena_array(module->arena, bool, strlen(digits) + 1);
    for (int i = 0; digits[i]; i++)
        mask[i] = digits[i] == '1';
    return mask;
}

static uint32_t transformed(const struct golden_test *t)
{
    uint32_t f = function_of(t);
    if (t->apply && !strncmp(t->apply, "vjp ", 4))
        require(pass_vjp(module, f, mask_from(t->apply + 4), &f));
    if (t->apply && !strncmp(t->apply, "jvp ", 4))
        require(pass_jvp(module, f, mask_from(t->apply + 4), &f, NULL));
    if (t->apply && !strncmp(t->apply, "hessian ", 8))
        require(pass_hessian(module, f, mask_from(t->apply + 8), &f));
    return f;
}

static struct golden read_file(int i)
{
    char path[64];
    snprintf(path, sizeof path, "tests/golden/%s.golden", files[i]);
    return golden_read(module, path);
}

START_TEST(evaluator_agrees)
{
    struct golden g = read_file(_i);
    struct strbuf report = strbuf_make(module->arena);
    ck_assert_uint_gt(g.tests.count, 0);
    for (uint32_t i = 0; i < g.tests.count; i++) {
        const struct golden_test *t = &g.tests.at[i];
        uint32_t f = transformed(t);
        struct ir_tensor *out = evaluate(f, t->in);
        ck_assert_msg((int)graph(f)->outputs.count == t->n_out, "%s: %d results\n%s", t->name,
                      (int)graph(f)->outputs.count, ir_graph_text(graph(f)));
        for (int o = 0; o < t->n_out; o++)
            compare(t, o, out[o], &report);
    }
    fprintf(stderr, "%s", report.text);
    ck_assert_msg(report.length == 0, "%s, %s", files[_i], g.made);
}
END_TEST

START_TEST(machine_code_agrees)
{
    struct golden g = read_file(_i);
    struct strbuf report = strbuf_make(module->arena);
    struct native n = native_make(module, &report);
    for (uint32_t i = 0; i < g.tests.count; i++) {
        const struct golden_test *t = &g.tests.at[i];
        uint32_t f = pass_simplify(module, pass_inline(module, transformed(t), 100000));
        native_add(&n, t->name, f, t->in, &(struct native_how){.interpret = i % 4 == 0});
    }
    int failures = native_finish(&n);
    fprintf(stderr, "%s", report.text);
    ck_assert_msg(failures == 0, "%s: %d failures", files[_i], failures);
}
END_TEST

// -- Types ------------------------------------------------------------------------------------

static int dtype_named(const char *name)
{
    int d = dtype_find(name, strlen(name));
    ck_assert_msg(d >= 0, "%s", name);
    return d;
}

// A weak result is a C number, whose width is the default's: only its kind counts.
static char kind_of(int d) { return dtype_get((jot_dtype)d)->kind; }

START_TEST(types_promote_as_in_jax)
{
    struct golden g = golden_read(module, "tests/golden/promotions.golden");
    ck_assert_uint_eq(g.lines.count, 21 * 21);
    for (uint32_t i = 0; i < g.lines.count; i++) {
        char **w = g.lines.at[i];
        bool weak_a = *w[2] == '1', weak_b = *w[4] == '1', want_weak = *w[6] == '1', weak;
        int a = dtype_named(w[1]), b = dtype_named(w[3]), want = dtype_named(w[5]);
        int got = (int)dtype_promote((jot_dtype)a, weak_a, (jot_dtype)b, weak_b, &weak);
        bool is_same = want_weak ? kind_of(got) == kind_of(want) : got == want;
        ck_assert_msg(is_same && weak == want_weak, "%s%s and %s%s: %s%s, expected %s%s", w[1],
                      weak_a ? " weak" : "", w[3], weak_b ? " weak" : "",
                      dtype_get((jot_dtype)got)->name, weak ? " weak" : "", w[5],
                      want_weak ? " weak" : "");
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, evaluator_agrees, 0, FILES);
    tcase_add_test(t, types_promote_as_in_jax);
    tcase_add_loop_test(t, machine_code_agrees, 0, FILES);
}

int main(void) { return support_run("golden", add_tests); }
