// SPDX-License-Identifier: Apache-2.0
// Every call of docs/jax-to-jot.md, and of cases.md, against what JAX gives for the call beside it
// (values.golden, made by make_values.py), also mapped, and the derivatives of each.
#include "support/sample.h"
#include "trace/trace_support.h"

// The operands of the document.
enum { OPERANDS = 16, GROUP = 24, MOST_ELEMENTS = 1024 };
static jot_value x, y, a, m, w, s, t, v, h, z, i, j, b, c, u, key;
static jot_value *const operands[OPERANDS] = {&x, &y, &a, &m, &w, &s, &t, &v,
                                              &h, &z, &i, &j, &b, &c, &u, &key};
static const char *const names[OPERANDS] = {"x", "y", "a", "m", "w", "s", "t", "v",
                                            "h", "z", "i", "j", "b", "c", "u", "key"};

struct row {
    const char *jax;
    jot_value (*call)(void);
    const char *place;
};

// Functions that calls of the document are given.
static jot_value cube(jot_value e) { return jot_integer_pow(e, 3); }
static jot_value product(jot_value p, jot_value q) { return jot_mul(p, q); }
static jot_value sum_of_two(jot_value p, jot_value q) { return jot_add(p, q); }
static void greater_pair(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    for (int k = 0; k < 2; k++)
        out[k] = jot_where(jot_greater(in[2], in[0]), in[2 + k], in[k]);
}
static jot_value times_s(jot_value e) { return jot_matmul(s, e); }
static jot_value solve_s(jot_value e) { return jot_solve(jot_stop_gradient(s), e); }
static jot_value cube_less_x(jot_value e) { return jot_sub(jot_integer_pow(e, 3), x); }
static jot_value cbrt_x(jot_value e)
{
    (void)e;
    return jot_cbrt(jot_stop_gradient(x));
}
static jot_value spread(jot_value e) { return jot_sub(jot_max(e), jot_min(e)); }

#include "calls.inc"

enum { ROWS = sizeof rows / sizeof *rows };

// ---- Golden values

struct value {
    jot_dtype dtype;
    int rank, count; // of numbers
    int64_t dims[8];
    double *numbers;
};

static struct value given[OPERANDS], wanted[ROWS];

static jot_dtype dtype_of(const char *name)
{
    for (int d = 0; d <= JOT_C128; d++)
        if (!strcmp(jot_dtype_name((jot_dtype)d), name))
            return (jot_dtype)d;
    ck_abort_msg("dtype %s", name);
    return JOT_F32;
}

static void read_value(char *line, struct value *out)
{
    char *open = strchr(line, '['), *p = open + 1;
    *open = 0;
    out->dtype = dtype_of(line);
    for (out->rank = 0; *p != ']'; out->rank++) {
        out->dims[out->rank] = strtol(p, &p, 10);
        p += *p == ',';
    }
    out->numbers = calloc(MOST_ELEMENTS, sizeof *out->numbers);
    for (out->count = 0, p++; *p == ' '; out->count++) {
        ck_assert_int_lt(out->count, MOST_ELEMENTS);
        out->numbers[out->count] = strtod(p, &p);
    }
}

static struct value *row_of(const char *call)
{
    for (int r = 0; r < ROWS; r++)
        if (!strcmp(rows[r].jax, call))
            return &wanted[r];
    return NULL;
}

static void read_golden(void)
{
    static char line[1 << 16];
    FILE *f = fopen("tests/table/values.golden", "r");
    ck_assert_msg(f != NULL, "tests/table/values.golden");
    int operand = 0;
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f)); // made with what
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "operand ", 8)) {
            char *type = strchr(line + 8, ' ');
            *type = 0;
            ck_assert_str_eq(line + 8, names[operand]);
            read_value(type + 1, &given[operand++]);
            continue;
        }
        struct value *out = row_of(line + 5);
        ck_assert_msg(out != NULL, "the document has no '%s': run make_values.py", line + 5);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
        line[strcspn(line, "\n")] = 0;
        read_value(line, out);
    }
    fclose(f);
    for (int r = 0; r < ROWS; r++)
        ck_assert_msg(wanted[r].numbers != NULL,
                      "there is no value of '%s': run make_values.py", rows[r].jax);
}

// ---- Arrays

static bool is_complex(jot_dtype d) { return d == JOT_C64 || d == JOT_C128; }
static bool is_float(jot_dtype d)
{
    return d == JOT_F16 || d == JOT_BF16 || d == JOT_F32 || d == JOT_F64;
}

// With `lanes` copies, of which the last is the operand and the others another one.
static jot_array *array_of(const struct value *g, int lanes)
{
    int64_t dims[10], *d = dims;
    char buffer[4 * MOST_ELEMENTS];
    size_t size = jot_dtype_size(g->dtype) / (is_complex(g->dtype) ? 2 : 1);
    int many = lanes ? lanes : 1;
    if (lanes)
        *d++ = lanes;
    memcpy(d, g->dims, (size_t)g->rank * sizeof *d);
    d[g->rank] = JOT_END;
    for (int n = 0; n < many * g->count; n++) {
        double e = g->numbers[n % g->count];
        if (n / g->count < many - 1 && (is_float(g->dtype) || is_complex(g->dtype)))
            e = 0.5 * e + 0.125;
        ck_assert_uint_le((size_t)(n + 1) * size, sizeof buffer);
        char *at = buffer + (size_t)n * size;
        if (is_complex(g->dtype) || g->dtype == JOT_F64)
            memcpy(at, &e, size);
        else if (g->dtype == JOT_I32)
            memcpy(at, &(int32_t){(int32_t)e}, size);
        else if (g->dtype == JOT_U32)
            memcpy(at, &(uint32_t){(uint32_t)e}, size);
        else
            *at = (char)(unsigned char)e;
    }
    return jot_array_copy(g->dtype, buffer, dims);
}

static double number_at(const jot_array *array, int64_t n)
{
    const char *data = jot_array_data(array);
    switch (jot_array_dtype(array)) {
    case JOT_BOOL:
    case JOT_U8:
        return ((const uint8_t *)data)[n];
    case JOT_I8:
        return ((const int8_t *)data)[n];
    case JOT_I16:
        return ((const int16_t *)data)[n];
    case JOT_U16:
        return ((const uint16_t *)data)[n];
    case JOT_I32:
        return ((const int32_t *)data)[n];
    case JOT_U32:
        return ((const uint32_t *)data)[n];
    case JOT_I64:
        return (double)((const int64_t *)data)[n];
    case JOT_U64:
        return (double)((const uint64_t *)data)[n];
    case JOT_F32:
    case JOT_C64:
        return ((const float *)data)[n];
    case JOT_F64:
    case JOT_C128:
        return ((const double *)data)[n];
    default:
        ck_abort_msg("dtype %s", jot_dtype_name(jot_array_dtype(array)));
        return 0;
    }
}

static bool alike(jot_dtype have, jot_dtype want)
{
    bool is_real = is_float(want) || is_complex(want) || want == JOT_BOOL;
    return is_real ? have == want : !is_float(have) && !is_complex(have) && have != JOT_BOOL;
}

static void compare(int r, const jot_array *array, int lanes)
{
    const struct value *want = &wanted[r];
    jot_dtype d = jot_array_dtype(array);
    ck_assert_msg(alike(d, want->dtype), "%s: %s is %s, not %s", rows[r].place, rows[r].jax,
                  jot_dtype_name(d), jot_dtype_name(want->dtype));
    int extra = lanes > 0, parts = is_complex(d) ? 2 : 1;
    bool same = jot_array_rank(array) == want->rank + extra;
    for (int k = 0; same && k < want->rank; k++)
        same = jot_array_dim(array, k + extra) == want->dims[k];
    ck_assert_msg(same, "%s: the shape of %s", rows[r].place, rows[r].jax);
    // XLA's functions of f64 are off by some units in the last place, of f32 by more.
    double tolerance = d == JOT_F64 || d == JOT_C128 ? 4e-13 : 4e-6;
    int64_t skip = jot_array_size(array) * parts - want->count;
    for (int n = 0; n < want->count; n++) {
        double have = number_at(array, skip + n), e = want->numbers[n];
        bool equal = e == have || (isnan(e) && isnan(have)) ||
                     (is_float(want->dtype) || is_complex(want->dtype)
                          ? fabs(have - e) <= tolerance * fmax(1, fabs(e))
                          : false);
        ck_assert_msg(equal, "%s: element %d of %s is %.17g, not %.17g", rows[r].place, n,
                      rows[r].jax, have, e);
    }
}

// ---- Calls

struct part {
    int first, count;
};

static void body(const jot_value *in, jot_value *out, void *ctx)
{
    const struct part *part = ctx;
    for (int r = 0; r < part->count; r++) {
        for (int k = 0; k < OPERANDS; k++) // blocks rebind them
            *operands[k] = in[k];
        out[r] = rows[part->first + r].call();
    }
}

static void run(int lanes)
{
    jot_array *in[OPERANDS];
    for (int k = 0; k < OPERANDS; k++)
        in[k] = array_of(&given[k], k < 10 ? lanes : 0);
    for (int first = 0; first < ROWS; first += GROUP) {
        if (!sample_takes((uint64_t)(first / GROUP), 1))
            continue;
        int n = ROWS - first < GROUP ? ROWS - first : GROUP;
        struct part part = {first, n};
        jot_array *out[GROUP] = {NULL};
        jot_function f = jot_function_make(body, OPERANDS, n, &part);
        if (lanes)
            f = jot_vmap(f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, JOT_NONE, JOT_NONE, JOT_NONE,
                         JOT_NONE, JOT_NONE, JOT_NONE);
        jot_executable *e = jot_jit(f);
        must(jot_call_list(e, OPERANDS, in, (size_t)n, out));
        for (int r = 0; r < n; r++)
            compare(first + r, out[r], lanes);
        jot_arrays_release((size_t)n, out);
        jot_executable_release(e);
    }
    jot_arrays_release(OPERANDS, in);
}

START_TEST(calls)
{
    read_golden();
    run(0);
}
END_TEST

START_TEST(mapped_calls)
{
    read_golden();
    run(2);
}
END_TEST

// What has no derivative that differences see.
static bool is_smooth(int r)
{
    static const char *const others[] = {
        "jnp.inf",
        "jnp.nan",         // differences of what is not finite
        "jnp.cov(m[:2, :", // NaN, of too few observations
        "jnp.cov(x[:0])",
        "nextafter(x, y)", // derivative 0
        "lax.reduce_precision",
        "linalg.qr", // without derivatives
        "stop_gradient",
        "astype(jnp.float16)", // steps of differences are lost
    };
    bool is_smooth = wanted[r].dtype == JOT_F64 || wanted[r].dtype == JOT_C128;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        is_smooth &= !strstr(rows[r].jax, others[k]);
    return is_smooth;
}

// Forward mode against differences, reverse against forward.
START_TEST(derivatives)
{
    read_golden();
    jot_array *in[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) // a and y in the place of v and h, which are not finite
        in[k] = array_of(&given[k == 7 ? 2 : k == 8 ? 1 : k], 0);
    for (int r = 0; r < ROWS; r++) {
        struct part part = {r, 1};
        jot_function f = jot_function_make(body, OPERANDS, 1, &part);
        if (is_smooth(r) && sample_takes((uint64_t)r, 1) &&
            jot_check_grads_list(f, OPERANDS, in, 1, JOT_FORWARD | JOT_REVERSE, 0) != JOT_OK)
            ck_abort_msg("%s: %s: %s", rows[r].place, rows[r].jax, jot_error_message());
    }
    jot_arrays_release(OPERANDS, in);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 300); // each call is a program of its own
    tcase_add_test(tests, calls);
    tcase_add_test(tests, mapped_calls);
    tcase_add_test(tests, derivatives);
}

int main(void) { return run_by_both("table", add_tests); }
