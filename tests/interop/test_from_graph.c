// SPDX-License-Identifier: Apache-2.0
// Graphs written as programs: what is read back is written the same, as text and as bytecode, and
// computes the same.  All cases of the op table, loops and branches with their derivatives and maps, and functions
// of the API.
//
// JOT_PYTHON names a Python with JAX, which then runs some of them; $JOT_WRITTEN is a folder that is to have all.
#include "jot/jot.h"

#include "interop/from_graph.h"
#include "passes/control_programs.h"
#include "passes/pass_support.h"

#include <string.h>
#include <unistd.h>

// ---- there and back ----

// Of interop/program.h, whose headers are those of traces.
jot_program *program_of_tree(const char *file, struct mlir_program *tree);

typedef jot_status reader(const char *file, const void *bytes, size_t n,
                          struct mlir_program **out);

static struct mlir_program *program_of(const struct ir_graph *g)
{
    struct arena *arena = arena_create();
    struct hlo_writer w = {.arena = arena, .module = module};
    struct mlir_program *p = arena_new(arena, struct mlir_program);
    ck_assert_ptr_null(hlo_refusal(arena, g));
    hlo_write_main(&w, "main", g, g->n_params, NULL);
    *p = (struct mlir_program){.arena = arena,
                               .file = "graph",
                               .n_functions = w.functions.count,
                               .functions = w.functions.at};
    return p;
}

static struct strbuf written(struct arena *arena, const struct mlir_program *p, bool is_text,
                             const char *what)
{
    struct strbuf s = strbuf_make(arena);
    if (is_text)
        mlir_write_text(&s, p);
    else
        ck_assert_msg(mlir_write_bytecode(&s, p) == JOT_OK, "%s: %s", what,
                      jot_error_message());
    return s;
}

// What is read of what is written, which is written the same again.
static struct mlir_program *read_back(struct arena *arena, const struct mlir_program *p,
                                      bool is_text, const char *what)
{
    struct strbuf first = written(arena, p, is_text, what);
    struct mlir_program *q;
    reader *read = is_text ? mlir_read_text : mlir_read_bytecode;
    ck_assert_msg(read("written", first.text, first.length, &q) == JOT_OK, "%s: %s\n%s", what,
                  jot_error_message(), is_text ? first.text : "");
    struct strbuf second = written(arena, q, is_text, what);
    bool is_same =
        first.length == second.length && !memcmp(first.text, second.text, first.length);
    ck_assert_msg(is_same, "%s: %s is written otherwise\n%s\n%s", what,
                  is_text ? "text" : "bytecode", is_text ? first.text : "",
                  is_text ? second.text : "");
    return q;
}

// ---- results ----

static jot_array *array_of(struct ir_tensor t)
{
    int64_t dims[IR_MAX_RANK + 1];
    memcpy(dims, ir_dims(module, t.type), sizeof *dims * t.type.rank);
    dims[t.type.rank] = JOT_END;
    jot_array *a = jot_array_copy(ir_dtype(t.type), t.data, dims);
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    return a;
}

static double number_at(jot_dtype d, const void *data, size_t i)
{
    const char *at = (const char *)data + i * jot_dtype_size(d);
    uint16_t half;
    float single;
    double wide;
    memcpy(&half, at, 2);
    if (d == JOT_F16)
        return (double)dtype_f16_to_f32(half);
    if (d == JOT_BF16)
        return (double)dtype_bf16_to_f32(half);
    if (d == JOT_F32)
        return memcpy(&single, at, 4), (double)single;
    return memcpy(&wide, at, 8), wide;
}

static double epsilon(jot_dtype d)
{
    return d == JOT_F16 ? 0x1p-10 : d == JOT_BF16 ? 0x1p-7 : d == JOT_F32 ? 0x1p-23 : 0x1p-52;
}

// Numbers that differ, and by how many units of the largest of the row.
static double difference(jot_dtype d, size_t n, const void *x, const void *y)
{
    jot_dtype part = dtype_real(d);
    double most = 0, worst = 0;
    if (!dtype_is_inexact(d))
        return memcmp(x, y, n * jot_dtype_size(d)) ? (double)INFINITY : 0;
    n *= jot_dtype_size(d) / jot_dtype_size(part);
    for (size_t i = 0; i < n; i++)
        most = isfinite(number_at(part, y, i)) ? fmax(most, fabs(number_at(part, y, i))) : most;
    for (size_t i = 0; i < n; i++) {
        double a = number_at(part, x, i), b = number_at(part, y, i);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        worst = fmax(worst,
                     isfinite(a - b) ? fabs(a - b) / (most * epsilon(part)) : (double)INFINITY);
    }
    return worst;
}

// A graph and what it is called with.
struct sample {
    const char *what, *op; // a word of letters: what the graph is about
    const struct ir_graph *g;
    const struct ir_tensor *in;
};

// ---- for JAX ----

static char folder[256]; // where programs, their arguments and results are put; "": nowhere
static int n_seen;
static int one_of = 1; // so many is put there

static void add_array(jot_archive *a, const char *what, int i, jot_array *x)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", what, i);
    ck_assert_int_eq(jot_archive_add(a, name, x), JOT_OK);
}

static void save_bytes(const char *path, const struct strbuf *s)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(s->text, 1, s->length, file), s->length);
    fclose(file);
}

// OP.SEED-N.mlir or .mlirbc in turn, and .npz.
static void keep_for_jax(const struct sample *c, const struct mlir_program *p,
                         jot_array *const *in, const struct ir_tensor *want)
{
    char path[512];
    int n = n_seen++;
    if (!*folder || n % one_of)
        return;
    struct arena *arena = arena_create();
    jot_archive *a = jot_archive_create();
    bool is_text = n / one_of % 2 == 0;
    struct strbuf s = written(arena, p, is_text, c->what);
    snprintf(path, sizeof path, "%s/%s.%d-%d.%s", folder, c->op, (int)getpid(), n,
             is_text ? "mlir" : "mlirbc");
    save_bytes(path, &s);
    for (uint32_t i = 0; i < c->g->n_params; i++)
        add_array(a, "in", (int)i, in[i]);
    for (uint32_t i = 0; i < c->g->outputs.count; i++) {
        jot_array *x = array_of(want[i]);
        add_array(a, "out", (int)i, x);
        jot_array_release(x);
    }
    strcpy(strrchr(path, '.'), ".npz");
    ck_assert_int_eq(jot_archive_save(a, path, false), JOT_OK);
    jot_archive_release(a);
    arena_release(arena);
}

// ---- samples ----

// In units of the last place of the largest number of a result.
enum { MOST_UNITS = 16 };

static void compare_results(const struct sample *c, struct mlir_program *q)
{
    const struct ir_graph *g = c->g;
    uint32_t n_in = g->n_params, n_out = g->outputs.count;
    struct ir_tensor *want = arena_array(module->arena, struct ir_tensor, n_out + 1);
    jot_array **in = arena_array(module->arena, jot_array *, n_in + n_out + 1),
              **out = in + n_in;
    ck_assert_msg(ir_eval(module->arena, g, c->in, want) == JOT_OK, "%s", jot_error_message());
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = array_of(c->in[i]);
    jot_program *p = program_of_tree("written", q);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(jot_call_list(f, n_in, in, n_out, out) == JOT_OK, "%s: %s", c->what,
                  jot_error_message());
    keep_for_jax(c, q, in, want);
    for (uint32_t i = 0; i < n_out; i++) {
        jot_dtype d = ir_dtype(want[i].type);
        ck_assert_int_eq(jot_array_dtype(out[i]), d);
        double by = difference(d, (size_t)ir_count(module, want[i].type),
                               jot_array_data(out[i]), want[i].data);
        ck_assert_msg(by <= MOST_UNITS, "%s: result %u differs by %g", c->what, i, by);
        jot_array_release(out[i]);
    }
    for (uint32_t i = 0; i < n_in; i++)
        jot_array_release(in[i]);
    jot_executable_release(f);
    jot_program_release(p);
}

static void check_sample(const struct sample *c)
{
    struct arena *arena = arena_create();
    struct mlir_program *p = program_of(c->g);
    mlir_release(read_back(arena, p, false, c->what));
    compare_results(c, read_back(arena, p, true, c->what));
    mlir_release(p);
    arena_release(arena);
}

START_TEST(ops_come_back)
{
    struct opcases cases = opcases_make(module, (jot_dtype)_i, seed);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct opcase *c = &cases.at[i];
        check_sample(&(struct sample){c->text, ir_op_get(c->op)->name,
                                      graph(opcase_function(module, c)), c->in});
    }
    ck_assert_uint_gt(cases.count, 300);
}
END_TEST

// ---- decompositions ----

static const int64_t matrices[][3] = {{1, 3, 3}, {2, 4, 3}, {2, 3, 5}, {1, 1, 1}};

static void check_decomposition(enum ir_op op, int mode, jot_dtype d, const int64_t *dims)
{
    char what[96];
    uint64_t state = seed;
    struct ir_builder b = ir_builder_make(module, "decomposition", IR_BUILD_PLAIN);
    struct ir_type t = ir_type_make(module, d, 3, dims);
    ir_id x = ir_param(&b, t);
    ir_id first = mode == 3 ? ir_svd_first(&b, x, 2) : ir_decompose(&b, op, x, mode);
    for (uint32_t i = 0; i < ir_node_of(b.graph, first)->n_out; i++)
        ir_output(&b, first + i);
    const struct ir_graph *g = graph(done(&b));
    struct ir_tensor in = draw(t, &state);
    snprintf(what, sizeof what, "%s %d of %s", ir_op_get(op)->name, mode,
             ir_type_text(module, t));
    check_sample(&(struct sample){what, ir_op_get(op)->name, g, &in});
}

START_TEST(decompositions_come_back)
{
    static const struct {
        enum ir_op op;
        int modes;
        bool is_square;
    } ops[] = {{IR_qr, 2, false},
               {IR_eigh, 1, true},
               {IR_svd, 4, false},
               {IR_eig, 3, true},
               {IR_schur, 1, true}};
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_C64, JOT_C128};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int mode = 0; mode < ops[i].modes; mode++)
            for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++) {
                bool is_square = matrices[k][1] == matrices[k][2];
                bool is_large = matrices[k][1] > 1;
                if ((is_square || !ops[i].is_square) && (is_large || mode < 3))
                    check_decomposition(ops[i].op, mode, dtypes[_i], matrices[k]);
            }
}
END_TEST

// ---- loops ----

// As it is, backward and mapped.
static uint32_t transformed(uint32_t f, int how)
{
    const struct ir_graph *g = graph(f);
    uint32_t to = f;
    if (how == 1)
        require(pass_vjp(module, f, mask_of(g->n_params, inexact_bits(f)), &to));
    if (how == 2)
        require(pass_vmap(module, f, mask_of(g->n_params, UINT64_MAX), 3, &to, NULL));
    return pass_simplify(module, to);
}

START_TEST(loops_come_back)
{
    const struct control_program *p = &control_programs[_i];
    uint64_t state = seed;
    for (int how = 0; how < 3; how++) {
        if (how == 1 && p->kind == CONTROL_NO_BOUND)
            continue;
        const struct ir_graph *g = graph(transformed(parse(p->text), how));
        struct ir_tensor *in = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
        for (uint32_t i = 0; i < g->n_params; i++)
            in[i] = draw(ir_type_of(g, i), &state);
        check_sample(&(struct sample){p->name, "loop", g, in});
    }
}
END_TEST

// ---- the API ----

static jot_program *through_memory(jot_program *p, jot_program_format format)
{
    size_t n = 0, again = 0;
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    ck_assert_msg(jot_program_to_memory(p, format, NULL, 0, &n) == JOT_OK, "%s",
                  jot_error_message());
    char *bytes = malloc(n);
    ck_assert_int_eq(jot_program_to_memory(p, format, bytes, n, &again), JOT_OK);
    ck_assert_uint_eq(n, again);
    jot_program *q = jot_program_from_memory("memory", bytes, n);
    ck_assert_msg(q != NULL, "%s", jot_error_message());
    free(bytes);
    jot_program_release(p);
    return q;
}

static jot_array *weights;

// A constant array, a check, a special function and a loop.
static jot_value model(jot_value x)
{
    jot_value y = jot_erf(jot_mul(x, weights));
    jot_assert(jot_less(y, 2), "y is small");
    JOT_FOR (i, 3, y) {
        y = jot_add(jot_sin(y), jot_mul(0.5, x));
    }
    return jot_sum(y);
}

START_TEST(gradients_are_written)
{
    jot_program_type in = {JOT_F64, 1, (const int64_t[]){3}};
    weights = jot_array_from(((double[]){0.5, -1, 2}), 3);
    jot_array *x = jot_array_from(((double[]){0.3, 0.1, -0.7}), 3), *want, *got;
    jot_executable *f = jot_jit(jot_grad(jot_fn(model)));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(want)) == JOT_OK, "%s", jot_error_message());
    for (int format = 0; format < 2; format++) {
        jot_program *p =
            through_memory(jot_program_from_function(jot_grad(jot_fn(model)), 1, &in),
                           (jot_program_format)format);
        jot_executable *g = jot_jit(jot_program_function(p, "main"));
        ck_assert_msg(jot_call(g, JOT_IN(x), JOT_OUT(got)) == JOT_OK, "%s",
                      jot_error_message());
        double by = difference(JOT_F64, 3, jot_array_data(got), jot_array_data(want));
        ck_assert_double_le(by, 4);
        jot_array_release(got);
        jot_executable_release(g);
        jot_program_release(p);
    }
    jot_executable_release(f);
    jot_array_release(want);
    jot_array_release(x);
    jot_array_release(weights);
}
END_TEST

static jot_status answer(void *ctx, const jot_callback_call *call)
{
    (void)ctx;
    (void)call;
    return JOT_OK;
}

static jot_value calls_back(jot_value x)
{
    jot_callback_spec spec = {.call = answer, .name = "answer"};
    jot_value none;
    jot_callback(&spec, &none, x);
    return x;
}

static jot_value two(jot_value x, jot_value y) { return jot_add(x, y); }

START_TEST(what_is_not_written_is_told)
{
    jot_program_type in = {JOT_F64, 1, (const int64_t[]){3}}, bad = {JOT_F64, 1, NULL};
    ck_assert_ptr_null(jot_program_from_function(jot_fn(calls_back), 1, &in));
    ck_assert_msg(strstr(jot_error_message(), "answer calls back into this program") != NULL,
                  "%s", jot_error_message());
    ck_assert_ptr_null(jot_program_from_function(jot_fn(two), 1, &in));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "two takes 2 values, not 1"));
    ck_assert_ptr_null(jot_program_from_function(jot_fn(model), 1, &bad));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "type 0 of its arguments"));
}
END_TEST

// ---- JAX ----

START_TEST(jax_agrees)
{
    const char *python = getenv("JOT_PYTHON");
    char command[1024];
    if (!python || !*python)
        return;
    snprintf(command, sizeof command, "%s tests/interop/run_written.py %s 2>/dev/null", python,
             folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, ops_come_back, 0, DTYPE_COUNT);
    tcase_add_loop_test(t, decompositions_come_back, 0, 4);
    tcase_add_loop_test(t, loops_come_back, 0, CONTROL_PROGRAMS);
    tcase_add_test(t, gradients_are_written);
    tcase_add_test(t, what_is_not_written_is_told);
    tcase_add_test(t, jax_agrees);
}

static void choose_folder(void)
{
    const char *all = getenv("JOT_WRITTEN"), *python = getenv("JOT_PYTHON");
    if (all && *all) {
        snprintf(folder, sizeof folder, "%s", all);
    } else if (python && *python) {
        strcpy(folder, "/tmp/jot-written-XXXXXX");
        one_of = 29;
        if (!mkdtemp(folder))
            perror(folder);
    }
}

int main(void)
{
    char command[512];
    setenv("JOT_BACKEND", "eval", 1);
    choose_folder();
    int failed = support_run("from_graph", add_tests);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (one_of > 1)
        (void)!system(command);
    return failed;
}
