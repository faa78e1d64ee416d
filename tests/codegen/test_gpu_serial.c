// SPDX-License-Identifier: Apache-2.0
// Nothing of a kernel that could be shared out is done by one thread of a GPU, and what is says why.
#include "codegen/codegen.h"
#include "ir/graph.h"
#include "map/map.h"
#include "passes/passes.h"
#include "schedule/copies.h"
#include "schedule/internal.h"
#include "schedule/rewrites.h"
#include "schedule/schedule.h"
#include "support/run_native.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

static const char *text_of(const struct nest_program *p)
{
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, p);
    struct cg_request request = {
        .want = CG_WANT_MAPPED, .program = text.text, .target = "cuda sm_90"};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    const char *copy = arena_text(arena, r.text);
    r.release(&r);
    return copy;
}

// Each kernel says who does what, of which the verifier finds no fault.
static void check_mapped(const struct nest_program *p)
{
    struct strbuf report = strbuf_make(arena);
    struct nest_program *mapped;
    const char *text = text_of(p);
    ck_assert_msg(nest_program_parse(arena, text, &mapped) == JOT_OK, "%s", text);
    ck_assert_uint_eq(mapped->nests.count, p->nests.count);
    for (uint32_t i = 0; i < mapped->nests.count; i++) {
        const struct nest *n = mapped->nests.at[i];
        ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, text);
        ck_assert_msg(n->special || n->threads[NEST_BLOCK_THREADS], "%s", text);
    }
}

// What the kernels of the program do by one thread.
static const char *serial_of(const struct nest_program *p)
{
    struct strbuf text = strbuf_make(arena), lines = strbuf_make(arena);
    struct nest_program *mapped;
    check_mapped(p);
    nest_program_print(&text, p);
    ck_assert(nest_program_parse(arena, text.text, &mapped) == JOT_OK);
    map_program_to_gpu(mapped, false);
    for (uint32_t i = 0; i < mapped->nests.count; i++) {
        const char *serial = map_serial_text(arena, mapped->nests.at[i]);
        if (serial)
            strbuf_printf(&lines, "%u %s\n", i, serial);
    }
    return lines.length ? lines.text : "";
}

#define SUM(body, value)                                                                       \
    "  fold i < 100000 {\n" body "    yield reduce_sum " value " sum64\n  } -> %90 : f32\n"    \
    "  put z[0] = %90\n"
#define KERNEL(body)                                                                           \
    "kernel k0_k(x: f32[1000000], i32: i32[1000000], y: out f32[1000000], z: out f32[1]) "     \
    "{\n" body "}\n"
#define UPDATE(around, seq, at, end)                                                           \
    "kernel k0_update(x: f32[1000000], i: i32[1000000], y: inout f32[1000000]) {\n"            \
    "  %0 = const 0x0000000000000000 : i64\n  %1 = const 0x00000000000003e7 : "                \
    "i64\n" around seq "    %3 = load i[" at                                                   \
    "] : i32\n    %4 = convert %3 : i64\n    %5 = max %4, %0 : i64\n"                          \
    "    %6 = min %5, %1 : i64\n    %7 = load x[" at "] : f32\n"

static const struct {
    const char *what, *text, *serial;
} nests[] = {
    {"a map of few points in a fold",
     KERNEL(SUM("    map j < 9 {\n      %0 = load x[9*i + j] : f32\n      put y[9*i + j] = %0\n"
                "    }\n    %1 = load x[i] : f32\n",
                "%1")),
     ""},
    {"a map and a fold of nothing beside a map",
     KERNEL("  map i < 0 {\n    %0 = load x[i] : f32\n    put y[i] = %0\n  }\n"
            "  fold j < 0 {\n    %1 = load x[j] : f32\n    yield reduce_sum %1 sum64\n  } -> "
            "%2 : f32\n"
            "  put z[0] = %2\n"
            "  map k < 100000 {\n    %3 = load x[k] : f32\n    put y[k] = %3\n  }\n"),
     ""},
    {"a map of many",
     KERNEL("  fold i < 1000 {\n    map j < 1000 {\n      %0 = load x[1000*i + j] : f32\n"
            "      put y[1000*i + j] = %0\n    }\n    %1 = load x[i] : f32\n"
            "    yield reduce_sum %1 sum64\n  } -> %2 : f32\n  put z[0] = %2\n"),
     ""},
    {"folds in a fold",
     KERNEL("  fold i < 1000 {\n    fold j < 1000 {\n      %0 = load x[1000*i + j] : f32\n"
            "      yield reduce_max %0 free\n    } -> %1 : f32\n    yield reduce_sum %1 sum64\n"
            "  } -> %2 : f32\n  put z[0] = %2\n"),
     ""},
    {"the same in a few points",
     KERNEL(
         "  par b < 4 {\n    fold i < 500 {\n      fold j < 500 {\n"
         "        %0 = load x[250000*b + 500*i + j] : f32\n        yield reduce_max %0 free\n"
         "      } -> %1 : f32\n      yield reduce_sum %1 sum64\n    } -> %2 : f32\n"
         "    put y[b] = %2\n  }\n"),
     ""},
    {"loops over time in a fold",
     KERNEL(SUM("    %0 = load x[i] : f32\n    seq t < 50 carry %1 = %0 {\n"
                "      %2 = mul %1, %0 : f32\n      yield %2\n    } -> %3\n",
                "%3")),
     ""},
    {"a running sum and a sum",
     KERNEL("  scan i < 1000000 {\n    %0 = load x[i] : f32\n    yield reduce_sum %0 serial -> "
            "%1 : f32\n"
            "    put y[i] = %1\n  }\n  fold j < 1000000 {\n    %2 = load x[j] : f32\n"
            "    yield reduce_max %2 free\n  } -> %3 : f32\n  put z[0] = %3\n"),
     ""},
    {"running sums of a few points, of their sums",
     KERNEL("  par b < 4 {\n    fold i < 250000 {\n      %0 = load x[250000*b + i] : f32\n"
            "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    scan j < 250000 {\n"
            "      %2 = load x[250000*b + j] : f32\n      %3 = div %2, %1 : f32\n"
            "      yield reduce_sum %3 serial -> %4 : f32\n      put y[250000*b + j] = %4\n    "
            "}\n  }\n"),
     ""},
    {"long folds of a few points, some of whose terms lie along these",
     KERNEL("  %0 = const 0x0000000000000004 : i64\n  %1 = const 0x00000000 : f32\n"
            "  par i < 4, j < 7 {\n    fold k < 100000 {\n"
            "      %2 = load x[100000*i + k] : f32\n      %3 = index j + 2*k : i64\n"
            "      %4 = lt %3, %0 : bool\n      %5 = load x[100000*j + 200001*k] if %4 : f32\n"
            "      %6 = select %4, %5, %1 : f32\n      yield fma %2 %6 sum64\n    } -> %7 : "
            "f32\n    put y[7*i + j] = %7\n  }\n"),
     ""},
    {"running sums of folds",
     KERNEL("  par i < 3 {\n    scan j < 300000 {\n      fold k < 3 {\n"
            "        %0 = load x[3*j + k] : f32\n        yield reduce_sum %0 sum64\n"
            "      } -> %1 : f32\n      yield reduce_sum %1 serial -> %2 : f32\n"
            "      put y[i + 3*j] = %2\n    }\n  }\n"),
     ""},
    {"the largest of what a network gives",
     "kernel k0_points(x: f32[1000000], w: f32[4096], y: out f32[640000], z: out f32[1]) {\n"
     "  local row: f32[64]\n  local next: f32[64]\n"
     "  fold n < 10000 {\n    map j < 64 {\n      %0 = load x[64*n + j] : f32\n"
     "      put row[j] = %0\n    }\n"
     "    contract next[j] = row[k], w[j + 64*k] for j < 64 over k < 64\n"
     "    map j < 64 {\n      %1 = load next[j] : f32\n      put y[64*n + j] = %1\n    }\n"
     "    %2 = load next[3] : f32\n    yield reduce_max %2 free\n  } -> %3 : f32\n"
     "  put z[0] = %3\n}\n",
     ""},
    {"running products of complex numbers",
     "kernel k0_k(x: c64[1000000], y: out c64[1000000]) {\n  scan i < 1000000 {\n"
     "    %0 = load x[i] : c64\n    yield reduce_prod %0 serial -> %1 : c64\n"
     "    put y[i] = %1\n  }\n}\n",
     ""},
    {"a running logsumexp",
     KERNEL("  scan i < 1000000 {\n    %0 = load x[i] : f32\n"
            "    yield cumlogsumexp %0 serial -> %1 : f32\n    put y[i] = %1\n  }\n"),
     ""},
    {"three loops that need one another",
     KERNEL("  fold i < 1000000 {\n    %0 = load x[i] : f32\n    yield reduce_max %0 free\n"
            "  } -> %1 : f32\n  fold j < 1000000 {\n    %2 = load x[j] : f32\n"
            "    %3 = sub %2, %1 : f32\n    yield reduce_sum %3 sum64\n  } -> %4 : f32\n"
            "  map k < 1000000 {\n    %5 = load x[k] : f32\n    %6 = div %5, %4 : f32\n"
            "    put y[k] = %6\n  }\n"),
     ""},
    {"updates",
     UPDATE("", "  seq n < 100000 {\n", "n",
            "") "    %8 = load y[%6] : f32\n"
                "    %9 = add %8, %7 : f32\n    put y[%6] = %9\n  }\n}\n",
     ""},
    {"updates of loops in one another",
     UPDATE("", "  seq m < 100 {\n  seq n < 1000 {\n", "1000*m + n",
            "") "    %8 = load y[%6] : f32\n"
                "    %9 = add %8, %7 : f32\n    put y[%6] = %9\n  }\n  }\n}\n",
     ""},
    {"updates of rows",
     UPDATE("  par w < 100 {\n", "  seq n < 100000 {\n", "n",
            "") "    %8 = load y[w + 100*%6] : f32\n"
                "    %9 = add %8, %7 : f32\n    put y[w + 100*%6] = %9\n  }\n  }\n}\n",
     ""},
    {"a loop over time",
     KERNEL(
         "  %0 = load x[0] : f32\n  seq t < 100000 carry %1 = %0 {\n    %2 = load x[t] : f32\n"
         "    %3 = mul %1, %2 : f32\n    yield %3\n  } -> %4\n  put z[0] = %4\n"),
     "0 100000 trips (a trip needs the one before it)\n"},
    {"two of them beside a sum",
     KERNEL("  %0 = load x[0] : f32\n  par b < 2 {\n    seq t < 100000 carry %1 = %0 {\n"
            "      %2 = load x[t + 5*b] : f32\n      %3 = mul %1, %2 : f32\n      yield %3\n"
            "    } -> %4\n    put y[b] = %4\n  }\n  fold j < 1000000 {\n"
            "    %5 = load x[j] : f32\n    yield reduce_max %5 free\n  } -> %6 : f32\n  put "
            "z[0] = "
            "%6\n"),
     "0 100000 trips (a trip needs the one before it)\n"},
    {"a running fold of two values",
     KERNEL("  scan i < 1000000 {\n    %0 = load x[i] : f32\n    %1 = neg %0 : f32\n"
            "    yield reduce_sum %0 serial, reduce_max %1 free -> %2 : f32, %3 : f32\n"
            "    %4 = add %2, %3 : f32\n    put y[i] = %4\n  }\n"),
     "0 1000000 terms (a running fold of several values, or of a point)\n"},
};

// Kernels that are one but for where they begin to read are mapped each.
START_TEST(equal_kernels_are_mapped)
{
    static const char *const text =
        "jot nest 1\nprogram \"two\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[2048] \"x\"\n"
        "  memory output 0 : f32[1024] \"y\"\n  memory output 1 : f32[1024] \"z\"\n"
        "  step kernel 0 (0, 1) \"result\"\n  step kernel 1 (0, 2) \"result\"\n}\n"
        "kernel k0_exp(x: f32[2048], y: out f32[1024]) {\n  par i < 1024 {\n"
        "    %0 = load x[i] : f32\n    %1 = exp %0 : f32\n    put y[i] = %1\n  }\n}\n"
        "kernel k1_exp(x: f32[2048], y: out f32[1024]) {\n  par i < 1024 {\n"
        "    %0 = load x[i + 1024] : f32\n    %1 = exp %0 : f32\n    put y[i] = %1\n  }\n}\n";
    struct nest_program *p;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s", jot_error_message());
    check_mapped(p);
}
END_TEST

START_TEST(nests_are_shared_out)
{
    int n;
    struct nest **all;
    ck_assert_msg(nest_parse(arena, nests[_i].text, &n, &all) == JOT_OK, "%s: %s",
                  nests[_i].what, jot_error_message());
    struct nest_program *p = run_native_wrap(arena, all[0]);
    schedule_fission(p, &(struct schedule_options){0});
    schedule_sort_memories(p);
    plan_memory(p, NULL, false);
    const char *serial = serial_of(p);
    ck_assert_msg(!strcmp(serial, nests[_i].serial), "%s: \"%s\"", nests[_i].what, serial);
}
END_TEST

// Whole programs as people write them, in the sizes of a GPU.
static const char *const graphs[] = {
    "lattice_boltzmann", // a step of 2048 x 2048, and the mean velocity
    "lattices",          // the same of 16 lattices
    "particle_filter",   // 10,000,000 particles, resampled
    "cloth_grad",        // the gradient of 400 steps of a cloth
    "graph_net",         // three layers of a graph network, and their gradient
    "bins",              // sums over edges of rows of 128
    "scatter3",          // updates of rows at two-dimensional indices
    "cdf",               // a running sum beside a mean and a largest number
    "cdfs",              // the same of 8 rows
    "meanlse",           // the mean of log-sum-exp of rows, and its gradient
    "transport",         // Sinkhorn's steps
    "nbody",             // pairwise forces of 16,384
    "montecarlo",        // means over paths
    "windows",           // updates of windows that may meet: few large ones, many small ones
};

static struct nest_program *program_of(struct ir_module *m, const char *name)
{
    const struct schedule_options options = {
        .no_accumulation = true, .rich_gemm = true, .one_loop = true, .many_lanes = true};
    struct ir_graph *g;
    struct nest_program *p;
    char path[128], *text = arena_allocate(arena, 1 << 20);
    snprintf(path, sizeof path, "tests/codegen/graphs/%s.ir", name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    text[fread(text, 1, (1 << 20) - 1, f)] = 0;
    fclose(f);
    ck_assert_msg(ir_graph_parse(m, text, &g) == JOT_OK, "%s", jot_error_message());
    uint32_t simple = pass_simplify(m, pass_inline(m, ir_function_add(m, g), 100000));
    ck_assert(pass_schedule(arena, ir_function(m, simple), &options, &p) == JOT_OK);
    return p;
}

START_TEST(programs_are_shared_out)
{
    struct ir_module *m = ir_module_create();
    const char *serial = serial_of(program_of(m, graphs[_i]));
    ck_assert_msg(!*serial, "%s: %s", graphs[_i], serial);
    ir_module_release(m);
}
END_TEST

static int phases_of(const char *name)
{
    struct ir_module *m = ir_module_create();
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, program_of(m, name));
    struct cg_request request = {.program = text.text, .target = "cuda sm_90"};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    int n = 0;
    // Texts of several kernels lie one behind the other; a declaration has no body.
    for (size_t i = 0; i + 16 < r.object_size; i++) {
        const char *at = (const char *)r.object + i;
        n += !strncmp(at, "\n.func jot_phase", 16) && at[strcspn(at, ";{")] == '{';
    }
    r.release(&r);
    ir_module_release(m);
    return n;
}

// A loop of four hundred phases is not one function, and those that differ in which part of the
// weights they read are one; a loop of some 20 phases is.
START_TEST(phases_of_long_loops_stay_functions)
{
    ck_assert_int_eq(phases_of("cloth_grad"), 0);
    int phases = phases_of("decoder");
    ck_assert_msg(phases > 80 && phases < 100, "%d", phases);
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, equal_kernels_are_mapped);
    tcase_add_loop_test(c, nests_are_shared_out, 0, sizeof nests / sizeof *nests);
    tcase_add_loop_test(c, programs_are_shared_out, 0, sizeof graphs / sizeof *graphs);
    tcase_add_test(c, phases_of_long_loops_stay_functions);
}

int main(void) { return suite_run("serial work of a GPU", add_tests); }
