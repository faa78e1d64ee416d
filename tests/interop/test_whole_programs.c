// SPDX-License-Identifier: Apache-2.0
// Whole programs of $JOT_CONFORMANCE, as text and as artefacts of jax.export, against JAX's outputs; the same
// with all names changed and operations in another order, and as jot writes them.  Nothing without it.  With
// $JOT_PYTHON, a Python with JAX, the gradients of simulations as well (gradients.py).
#include "interop/shuffle.h"
#include "interop/tree.h"
#include "jot/io.h"
#include "jot/jot.h"
#include "jot/program.h"
#include "support/suite.h"

#include <check.h>
#include <complex.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-4 // of the largest element

static char *replaced(const char *path, const char *ending)
{
    static char text[1024];
    const char *dot = strrchr(path, '.');
    snprintf(text, sizeof text, "%.*s%s", (int)(dot - path), path, ending);
    return text;
}

static double element(const jot_array *a, size_t i, size_t part)
{
    const void *data = jot_array_data(a);
    switch ((int)jot_array_dtype(a)) {
    case JOT_F32:
        return (double)((const float *)data)[i];
    case JOT_F64:
        return ((const double *)data)[i];
    case JOT_C64:
        return (double)((const float *)data)[2 * i + part];
    case JOT_C128:
        return ((const double *)data)[2 * i + part];
    case JOT_I32:
        return ((const int32_t *)data)[i];
    case JOT_U32:
        return ((const uint32_t *)data)[i];
    case JOT_BOOL:
        return ((const bool *)data)[i];
    default:
        ck_abort_msg("%s", jot_dtype_name(jot_array_dtype(a)));
    }
}

// The largest difference over the largest element.
static double distance(const jot_array *x, const jot_array *y)
{
    double most = 0, apart = 0;
    int parts = jot_array_dtype(y) == JOT_C64 || jot_array_dtype(y) == JOT_C128 ? 2 : 1;
    ck_assert_int_eq(jot_array_dtype(x), jot_array_dtype(y));
    ck_assert_uint_eq(jot_array_size(x), jot_array_size(y));
    for (size_t i = 0; i < jot_array_size(y); i++)
        for (size_t k = 0; k < (size_t)parts; k++) {
            double a = element(x, i, k), b = element(y, i, k);
            most = fmax(most, fabs(b));
            apart = isnan(a) && isnan(b)   ? apart
                    : isnan(a) || isnan(b) ? INFINITY
                                           : fmax(apart, fabs(a - b));
        }
    return most > 0 ? apart / most : apart;
}

// ---- decompositions, which are unique up to signs and phases ----

// The results x of a decomposition of matrices of n rows and columns, as left diag(scale) right.
struct factors {
    const jot_array *left, *scale, *right; // scale NULL: ones
    bool is_adjoint;                       // right is left^H
};

static struct factors factors_of(const char *name, jot_array *const *x)
{
    if (strstr(name, "eigh"))
        return (struct factors){x[0], x[1], x[0], true};
    if (strstr(name, "svd"))
        return (struct factors){x[0], x[1], x[2], false};
    return (struct factors){x[0], NULL, x[1], false};
}

static double complex number(const jot_array *a, size_t i)
{
    bool is_complex = jot_array_dtype(a) == JOT_C64 || jot_array_dtype(a) == JOT_C128;
    return CMPLX(element(a, i, 0), is_complex ? element(a, i, 1) : 0);
}

// Element (i, j) of matrix m.
static double complex product(const struct factors *f, size_t n, size_t m, size_t i, size_t j)
{
    double complex sum = 0;
    for (size_t k = 0; k < n; k++) {
        double scale = f->scale ? element(f->scale, m * n + k, 0) : 1;
        double complex right = f->is_adjoint ? conj(number(f->right, (m * n + j) * n + k))
                                             : number(f->right, (m * n + k) * n + j);
        sum += number(f->left, (m * n + i) * n + k) * scale * right;
    }
    return sum;
}

static bool is_decomposition(const char *name)
{
    return strstr(name, "eigh") || strstr(name, "svd") || strstr(name, "qr_");
}

static double distance_of_products(const char *name, jot_array *const *x, jot_array *const *y)
{
    struct factors a = factors_of(name, x), b = factors_of(name, y);
    size_t n = (size_t)jot_array_dim(a.left, -1);
    double most = 0, apart = 0;
    for (size_t m = 0; m < jot_array_size(a.left) / (n * n); m++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                double complex want = product(&b, n, m, i, j);
                most = fmax(most, cabs(want));
                apart = fmax(apart, cabs(product(&a, n, m, i, j) - want));
            }
    return fmax(apart / most, a.scale ? distance(a.scale, b.scale) : 0);
}

// ---- runs ----

struct run {
    jot_archive *values; // in0, in1 ..., out0 ...
    const char *name;
};

static jot_array *value(const struct run *r, const char *kind, size_t i)
{
    char name[32];
    snprintf(name, sizeof name, "%s%zu", kind, i);
    jot_array *a = jot_archive_get(r->values, name);
    ck_assert_msg(a != NULL, "%s: %s", r->name, jot_error_message());
    return a;
}

// Of the results of the program those that the archive has are compared.
static void check_run(const struct run *r, const jot_program *p)
{
    const jot_program_signature *s = jot_program_signature_of(p, "main");
    ck_assert_msg(s != NULL, "%s", jot_error_message());
    jot_array **in = calloc(s->n_in + 1, sizeof *in), **out = calloc(s->n_out + 1, sizeof *out);
    for (size_t i = 0; i < s->n_in; i++)
        in[i] = value(r, "in", i);
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(f && jot_call_list(f, s->n_in, in, s->n_out, out) == JOT_OK, "%s: %s",
                  r->name, jot_error_message());
    bool is_product = is_decomposition(r->name);
    jot_array **expected = calloc(s->n_out + 1, sizeof *expected);
    for (size_t i = 0; i < s->n_out; i++)
        expected[i] = value(r, "out", i);
    for (size_t i = 0; i < s->n_out && !is_product; i++) {
        double apart = distance(out[i], expected[i]);
        ck_assert_msg(apart <= TOLERANCE, "%s: result %zu is %g away", r->name, i, apart);
    }
    double apart = is_product ? distance_of_products(r->name, out, expected) : 0;
    ck_assert_msg(apart <= TOLERANCE, "%s: the matrix is %g away", r->name, apart);
    jot_arrays_release(s->n_out, expected);
    free(expected);
    jot_arrays_release(s->n_in, in);
    jot_arrays_release(s->n_out, out);
    jot_executable_release(f);
    free(in);
    free(out);
}

typedef void check_program(const struct run *r, const jot_program *p);

static void check_file(const char *path, check_program *check)
{
    struct run r = {jot_archive_load(replaced(path, ".npz")), path};
    ck_assert_msg(r.values != NULL, "%s", jot_error_message());
    jot_program *p = jot_program_read(path);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    check(&r, p);
    jot_program_release(p);
    jot_archive_release(r.values);
}

// Renamed, in another order, and written as text or bytecode.
static void check_rewritten(const char *path, uint64_t seed, bool as_text, check_program *check)
{
    struct run r = {jot_archive_load(replaced(path, ".npz")), path};
    size_t n, size;
    unsigned char *bytes = tree_load(path, &n);
    char *written = shuffle_rewrite(path, bytes, n, seed, as_text, &size);
    jot_program *p = jot_program_from_memory(path, written, size);
    ck_assert_msg(p != NULL, "%s, seed %llu: %s", path, (unsigned long long)seed,
                  jot_error_message());
    check(&r, p);
    jot_program_release(p);
    jot_archive_release(r.values);
    free(written);
    free(bytes);
}

static glob_t programs;

static size_t find(const char *files)
{
    const char *folder = getenv("JOT_CONFORMANCE");
    char pattern[1024];
    if (!folder)
        return 0;
    snprintf(pattern, sizeof pattern, "%s/%s", folder, files);
    return glob(pattern, 0, NULL, &programs) ? 0 : programs.gl_pathc;
}

START_TEST(texts_agree)
{
    for (size_t i = 0, n = find("whole_programs/*.mlir"); i < n; i++)
        check_file(programs.gl_pathv[i], check_run);
}
END_TEST

START_TEST(artefacts_agree)
{
    for (size_t i = 0, n = find("whole_programs/*.jaxexport"); i < n; i++)
        check_file(programs.gl_pathv[i], check_run);
}
END_TEST

START_TEST(calls_of_libraries_agree)
{
    for (size_t i = 0, n = find("jax_programs/*.mlir"); i < n; i++)
        check_file(programs.gl_pathv[i], check_run);
}
END_TEST

static uint64_t seed_of_test(void)
{
    const char *given = getenv("JOT_TEST_SEED");
    return given ? strtoull(given, NULL, 10) : 20261126;
}

START_TEST(rewritten_ones_agree)
{
    uint64_t seed = seed_of_test();
    printf("JOT_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (size_t i = 0, n = find("whole_programs/*.mlir"); i < n; i++)
        check_rewritten(programs.gl_pathv[i], seed + i, i % 2, check_run);
}
END_TEST

// ---- gradients ----

// What jot_vjp gives in the arguments that are floats is what the archive has.
static void check_gradient(const struct run *r, const jot_program *p)
{
    const jot_program_signature *s = jot_program_signature_of(p, "main");
    ck_assert_msg(s != NULL, "%s", jot_error_message());
    jot_array **in = calloc(s->n_in + 2 * s->n_out + s->n_in, sizeof *in),
              **out = in + s->n_in + s->n_out;
    int *floats = calloc(s->n_in + 1, sizeof *floats);
    size_t n = 0;
    for (size_t i = 0; i < s->n_in; i++) {
        in[i] = value(r, "in", i);
        if (s->in[i].dtype >= JOT_F16)
            floats[n++] = (int)i;
    }
    floats[n] = JOT_END;
    for (size_t i = 0; i < s->n_out; i++)
        in[s->n_in + i] = value(r, "ct", i);
    jot_executable *f = jot_jit(jot_vjp_of(jot_program_function(p, "main"), r->name, floats));
    ck_assert_msg(f && jot_call_list(f, s->n_in + s->n_out, in, s->n_out + n, out) == JOT_OK,
                  "%s: %s", r->name, jot_error_message());
    for (size_t i = 0; i < n; i++) {
        jot_array *expected = value(r, "grad", i);
        double apart = distance(out[s->n_out + i], expected);
        double most = jot_array_dtype(expected) == JOT_F64 ? 1e-7 : TOLERANCE;
        ck_assert_msg(apart <= most, "%s: gradient %zu is %g away", r->name, i, apart);
        jot_array_release(expected);
    }
    jot_arrays_release(s->n_in + s->n_out, in);
    jot_arrays_release(s->n_out + n, out);
    jot_executable_release(f);
    free(floats);
    free(in);
}

START_TEST(gradients_agree)
{
    char path[256], folder[] = "/tmp/jot-gradients-XXXXXX", command[1024];
    static const char *const names[] = {"lattice_boltzmann", "navier_stokes",  "cloth_grad",
                                        "kalman_grad",       "neural_ode_f64", "neural_ode"};
    const char *python = getenv("JOT_PYTHON");
    if (!python || !*python || !find("whole_programs/programs.py"))
        return;
    ck_assert(mkdtemp(folder) != NULL);
    snprintf(command, sizeof command, "%s tests/interop/gradients.py %s/whole_programs %s",
             python, getenv("JOT_CONFORMANCE"), folder);
    ck_assert_msg(system(command) == 0, "JAX gives no gradients");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s.mlir", folder, names[i]);
        check_file(path, check_gradient);
        for (int as_text = 0; as_text < 2; as_text++)
            check_rewritten(path, seed_of_test() + i, as_text, check_gradient);
        remove(path);
        remove(replaced(path, ".npz"));
    }
    remove(folder);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 200);
    tcase_add_test(t, texts_agree);
    tcase_add_test(t, artefacts_agree);
    tcase_add_test(t, calls_of_libraries_agree);
    tcase_add_test(t, rewritten_ones_agree);
    tcase_add_test(t, gradients_agree);
}

int main(void) { return suite_run("whole_programs", add_tests); }
