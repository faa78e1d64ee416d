// SPDX-License-Identifier: Apache-2.0
// Functions of kernels with many ops: with the bits of the interpreter of nests, and each compiled once.
#include "nest_check.h"

#include "codegen/codegen.h"
#include "support/nest_text.h"
#include "support/opcases.h"
#include "support/suite.h"

#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// Whether it is an op of elements of the type that gives such an element.
static bool gives_its_type(enum ir_op op, jot_dtype d)
{
    const struct ir_op_info *info = ir_op_get(op);
    return ir_op_class(op) == IR_CLASS_MAP && info->out == 1 && !strcmp(info->shape, "same") &&
           opcase_takes(op, d);
}

// A kernel of so many ops that the long ones are functions: all of a type, several times, each several
// times of the same operands.
START_TEST(ops_of_large_kernels)
{
    enum { N = 40, TIMES = 8 };
    jot_dtype d = (jot_dtype)_i;
    static const int64_t bits[] = {3, 7}; // an exponent, or the bits that are left
    int n_ops = 0;
    for (int op = 0; op < IR_OP_COUNT; op++)
        n_ops += gives_its_type((enum ir_op)op, d);
    struct nest_builder b = nest_builder_make(nest_check_arena, "large");
    nest_id x = nest_buffer(&b, "x", d, N + 4 * TIMES, NEST_IN);
    nest_id y = nest_buffer(&b, "y", d, N * TIMES * n_ops, NEST_OUT), i = nest_axis(&b, "i", N);
    nest_open(&b, NEST_PAR, 1, &i);
    for (int t = 0, k = 0; t < TIMES; t++) {
        nest_id in[4];
        for (int j = 0; j < 4; j++)
            in[j] = nest_load(&b, x, form(&b, 4 * t + j, 1, (struct nest_term[]){AXIS(i, 1)}),
                              NEST_NONE);
        for (int op = 0; op < IR_OP_COUNT; op++) {
            if (!gives_its_type((enum ir_op)op, d))
                continue;
            nest_id v = nest_op(&b, (enum ir_op)op, d, (uint32_t)ir_op_get((enum ir_op)op)->in,
                                in, bits);
            nest_put(&b, y, form(&b, N * k++, 1, (struct nest_term[]){AXIS(i, 1)}), v,
                     NEST_NONE);
        }
    }
    nest_close(&b, 0, NULL);
    nest_check(b.nest);
    nest_check_end();
}
END_TEST

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

// For a processor, or this one for NULL.
static struct cg_response compile_for(const char *target, const char *text)
{
    struct cg_request request = {.want = CG_WANT_LLVM, .program = text, .target = target};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_int_eq(r.status, JOT_OK);
    return r;
}

static struct cg_response compile_program(const char *text) { return compile_for(NULL, text); }

static const char *program_of(const char *text)
{
    int n_nests;
    struct nest **nests;
    ck_assert_int_eq(nest_parse(nest_check_arena, text, &n_nests, &nests), JOT_OK);
    struct strbuf program = strbuf_make(nest_check_arena);
    nest_program_print(&program, run_native_wrap(nest_check_arena, nests[0]));
    return program.text;
}

static struct cg_response compile(const char *text)
{
    return compile_program(program_of(text));
}

// A kernel of so many sines, cosines and products that they are functions.
static void add_long_kernel(struct strbuf *text, const char *name, int operations)
{
    int n = 0;
    strbuf_printf(text,
                  "kernel %s(x: f32[10000], y: out f32[10000]) {\n  par i < 10000 {\n"
                  "    %%0 = load x[i] : f32\n",
                  name);
    for (; n < operations; n += 3)
        strbuf_printf(text,
                      "    %%%d = sin %%%d : f32\n    %%%d = cos %%%d : f32\n"
                      "    %%%d = mul %%%d, %%%d : f32\n",
                      n + 1, n, n + 2, n, n + 3, n + 1, n + 2);
    strbuf_printf(text, "    put y[i] = %%%d\n  }\n}\n", n);
}

// Beyond the bound equal ops are compiled once, and a sine and a cosine of the same number as one.
START_TEST(equal_ops_are_one_function)
{
    struct strbuf text = strbuf_make(nest_check_arena);
    add_long_kernel(&text, "long", 1200);
    struct cg_response r = compile(text.text);
    int defined = 0, called = 0;
    for (const char *at = r.llvm; (at = strstr(at, "@pair_op_sin_f32")); at++)
        defined += !strncmp(at - 2, "} @", 3), called++;
    ck_assert_int_ge(called, 400);
    ck_assert_ptr_null(strstr(r.llvm, "define internal <16 x float> @op_"));
    ck_assert_uint_lt(r.object_size, 120000);
    r.release(&r);
}
END_TEST

// Functions whose names begin so that the object defines; *end: where the next one is.
static int count_defined(const char *object, const char *prefix, const char **end)
{
    const Elf64_Ehdr *header = (const void *)object;
    const Elf64_Shdr *sections = (const void *)(object + header->e_shoff);
    int n = 0;
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const void *)(object + sections[i].sh_offset);
        const char *names = object + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
            n += symbols[k].st_shndx != SHN_UNDEF &&
                 !strncmp(names + symbols[k].st_name, prefix, strlen(prefix));
    }
    *end = object + (header->e_shoff + header->e_shnum * sizeof *sections + 7) / 8 * 8;
    return n;
}

// Functions of several kernels are compiled once, though the kernels are parts that threads compile.
START_TEST(functions_of_parts_are_one)
{
    static const char text[] =
        "jot nest 1\nprogram \"two\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[10000]\n  memory output 0 : f32[10000]\n"
        "  memory output 1 : f32[10000]\n  step kernel 0 (0, 1)\n  step kernel 1 (0, 2)\n}\n";
    struct strbuf program = strbuf_make(nest_check_arena);
    strbuf_add(&program, text);
    add_long_kernel(&program, "first", 1200);
    add_long_kernel(&program, "second", 1206);
    struct cg_response r = compile_program(program.text);
    const char *at = r.object;
    int n = 0, kernels = 0;
    while (at < (const char *)r.object + r.object_size) {
        const char *object = at;
        n += count_defined(object, "pair_op_", &at);
        kernels += count_defined(object, "jot_kernel_", &at);
    }
    ck_assert_int_eq(kernels, 2);
    ck_assert_int_eq(n, 1);
    r.release(&r);
    struct nest_program *p;
    struct rt_program *loaded;
    ck_assert_int_eq(nest_program_parse(nest_check_arena, program.text, &p), JOT_OK);
    ck_assert_int_eq(run_native_load(nest_check_arena, p, NULL, &loaded), JOT_OK);
    static float x[10000], y[2][10000];
    x[1] = 1;
    ck_assert_int_eq(run_native_call(loaded, (const void *[]){x}, (void *[]){y[0], y[1]}),
                     JOT_OK);
    ck_assert(y[0][1] > 0 && y[1][1] > 0 && y[1][1] < y[0][1]);
    rt_program_release(loaded);
    nest_check_end();
}
END_TEST

// y0 = -2 x0; y1 = -2 x1 or -3 x1, of two shapes.
static const char *two_shapes(bool is_equal)
{
    struct strbuf s = strbuf_make(nest_check_arena);
    strbuf_add(&s, "jot nest 1\nprogram \"main\" {\n  inputs 2\n  outputs 2 donated -1 -1\n"
                   "  arena 0\n  constants 72\n  memory input 0 : f32[48] \"x0\"\n"
                   "  memory input 1 : f32[48] \"x1\"\n  memory output 0 : f32[48] \"y0\"\n"
                   "  memory output 1 : f32[48] \"y1\"\n"
                   "  memory constant at 0 : f32[2] = 0000000000000040\n"
                   "  memory constant at 64 : f32[2] = 0000000000004040\n");
    strbuf_printf(&s, "  step kernel 0 (0, 4, 2)\n  step kernel 1 (1, %d, 3)\n}\n",
                  is_equal ? 4 : 5);
    static const char *const axes[] = {"i < 48", "i < 6, j < 8"}, *const at[] = {"i",
                                                                                 "8*i + j"};
    for (int k = 0; k < 2; k++)
        strbuf_printf(&s,
                      "kernel k%d(x: f32[48], t: f32[2], y: out f32[48]) {\n  par %s {\n"
                      "    %%0 = load x[%s] : f32\n    %%1 = load t[1] : f32\n"
                      "    %%2 = mul %%0, %%1 : f32\n    %%3 = neg %%2 : f32\n"
                      "    put y[%s] = %%3\n  }\n}\n",
                      k, axes[k], at[k], at[k]);
    return s.text;
}

// What is another kernel once it is mapped is that kernel, and runs as it, with levels of its own; not where
// numbers in the code tell them apart.
START_TEST(kernels_that_become_equal_are_one)
{
    struct nest_program *p;
    struct rt_program *program;
    const char *text = two_shapes(_i);
    ck_assert_msg(nest_program_parse(nest_check_arena, text, &p) == JOT_OK, "%s",
                  jot_error_message());
    struct cg_request request = {.want = CG_WANT_LLVM, .program = text};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_int_eq(r.status, JOT_OK);
    ck_assert_ptr_nonnull(strstr(r.llvm, "@jot_kernel_0("));
    ck_assert_int_eq(strstr(r.llvm, "@jot_kernel_1(") == NULL, _i);
    r.release(&r);
    request.want = CG_WANT_MAPPED;
    jot_codegen_entry(&request, &r);
    const char *second = strstr(r.text, "kernel k1(");
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_nonnull(strstr(second, "@vector"));
    r.release(&r);
    float x[2][48], y[2][48];
    for (int i = 0; i < 96; i++)
        x[i / 48][i % 48] = (float)i;
    ck_assert_int_eq(run_native_load(nest_check_arena, p, NULL, &program), JOT_OK);
    ck_assert_int_eq(
        run_native_call(program, (const void *[]){x[0], x[1]}, (void *[]){y[0], y[1]}), JOT_OK);
    for (int i = 0; i < 96; i++)
        ck_assert(y[i / 48][i % 48] == (float)(i < 48 || _i ? -2 * i : -3 * i));
    rt_program_release(program);
    nest_check_end();
}
END_TEST

#define DOUBLE(name, begin)                                                                    \
    "kernel " name "(x: f32[240], y: out f32[48]) {\n  par i < 48 {\n"                         \
    "    %0 = load x[i + " begin "] : f32\n    %1 = add %0, %0 : f32\n    put y[i] = %1\n  "   \
    "}\n}\n"

// Kernels that read parts of arrays are one where the parts begin at lines of the cache, also in a loop of steps; a
// text of what is mapped has them as they are.
START_TEST(kernels_of_parts_are_one)
{
    static const char begin[] =
        "jot nest 1\nprogram \"parts\" {\n  inputs 1\n  outputs 3 donated -1 -1 -1\n"
        "  arena 0\n  constants 0\n  memory input 0 : f32[240]\n"
        "  memory output 0 : f32[48]\n  memory output 1 : f32[48]\n  memory output 2 : "
        "f32[48]\n";
    static const char kernels[] =
        DOUBLE("first", "64") DOUBLE("second", "192") DOUBLE("third", "3");
    static const int begins[] = {64, 192, 3};
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_printf(&text,
                  "%s  %sstep kernel 0 (0, 1)\n  step kernel 1 (0, 2)\n  step kernel 2 (0, 3)\n"
                  "%s}\n%s",
                  begin, _i ? "step loop 0 trips 3 ()\n  " : "", _i ? "  step end ()\n" : "",
                  kernels);
    struct cg_response r = compile_program(text.text);
    ck_assert_ptr_nonnull(strstr(r.llvm, "@jot_kernel_0("));
    ck_assert_ptr_null(strstr(r.llvm, "@jot_kernel_1("));
    ck_assert_ptr_nonnull(strstr(r.llvm, "@jot_kernel_2("));
    r.release(&r);
    struct cg_request request = {.want = CG_WANT_MAPPED, .program = text.text};
    jot_codegen_entry(&request, &r);
    ck_assert_ptr_nonnull(strstr(r.text, "x[i + 192]"));
    r.release(&r);
    struct nest_program *p;
    struct rt_program *program;
    ck_assert_int_eq(nest_program_parse(nest_check_arena, text.text, &p), JOT_OK);
    float x[240], y[3][48];
    for (int i = 0; i < 240; i++)
        x[i] = (float)i;
    ck_assert_int_eq(run_native_load(nest_check_arena, p, NULL, &program), JOT_OK);
    ck_assert_int_eq(
        run_native_call(program, (const void *[]){x}, (void *[]){y[0], y[1], y[2]}), JOT_OK);
    for (int i = 0; i < 144; i++)
        ck_assert(y[i / 48][i % 48] == (float)(2 * (begins[i / 48] + i % 48)));
    rt_program_release(program);
    nest_check_end();
}
END_TEST

// Lanes of a loop over points that look for their winners have these in registers.
START_TEST(winners_are_registers)
{
    static const char text[] = "kernel columns(x: f32[576], y: out i64[64]) {\n"
                               "  par i < 64 @vector 64 {\n"
                               "    fold k < 9 {\n"
                               "      %0 = load x[i + 64*k] : f32\n"
                               "      yield argmax %0 free\n"
                               "    } -> %1 : f32, %2 : i64\n"
                               "    put y[i] = %2\n"
                               "  }\n"
                               "}\n";
    struct cg_response r = compile(text);
    ck_assert_ptr_null(strstr(r.llvm, "alloca"));
    r.release(&r);
}
END_TEST

// The integer at the end of the range where a number is beyond it, 0 of NaN.
static uint64_t integer_of(double x, unsigned bits, bool is_signed)
{
    double low = is_signed ? -ldexp(1, (int)bits - 1) : 0,
           high = ldexp(1, (int)bits - is_signed);
    if (isnan(x))
        return 0;
    if (x < low)
        return is_signed ? UINT64_C(1) << (bits - 1) : 0;
    if (x >= high)
        return UINT64_MAX >> (64 - bits + is_signed);
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

// Integers of floats, around the ends of every range, are made of whole vectors.
START_TEST(integers_of_floats)
{
    enum { N = 64 * 16, TYPES = 8 };
    static const jot_dtype types[TYPES] = {JOT_I8, JOT_I16, JOT_I32, JOT_I64,
                                           JOT_U8, JOT_U16, JOT_U32, JOT_U64};
    static const double steps[] = {-1, -0.5, 0, 0.5, 1};
    jot_dtype from = _i < TYPES ? JOT_F32 : JOT_F64, to = types[_i % TYPES];
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_printf(&text,
                  "kernel convert(x: %s[%d], y: out %s[%d]) {\n  par i < %d {\n"
                  "    %%0 = load x[i] : %s\n    %%1 = convert %%0 : %s\n    put y[i] = %%1\n"
                  "  }\n}\n",
                  dtype_get(from)->name, N, dtype_get(to)->name, N, N, dtype_get(from)->name,
                  dtype_get(to)->name);
    struct nest *nest = nest_of_text(nest_check_arena, text.text);
    struct rt_program *program;
    ck_assert_int_eq(run_native_load(nest_check_arena, run_native_wrap(nest_check_arena, nest),
                                     NULL, &program),
                     JOT_OK);
    float f[N] = {NAN, INFINITY, -INFINITY, 0, -0.f};
    double d[N] = {NAN, INFINITY, -INFINITY, 0, -0.};
    uint64_t out[N];
    int n = 5;
    for (int sign = -1; sign <= 1; sign += 2)
        for (int k = 0; k <= 66; k++)
            for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
                d[n] = sign * ldexp(1, k) + steps[s];
                f[n] = (float)d[n];
                n++;
            }
    ck_assert_int_le(n, N);
    ck_assert_int_eq(run_native_call(program, (const void *[]){from == JOT_F32 ? (void *)f : d},
                                     (void *[]){out}),
                     JOT_OK);
    unsigned bits = dtype_get(to)->bits, bytes = bits / 8;
    for (int i = 0; i < n; i++) {
        double x = from == JOT_F32 ? (double)f[i] : d[i];
        uint64_t expected = integer_of(x, bits, dtype_is_signed(to));
        ck_assert_msg(!memcmp((char *)out + i * (int)bytes, &expected, bytes), "%s of %.17g",
                      dtype_get(to)->name, x);
    }
    rt_program_release(program);
    struct cg_response r = compile(text.text);
    ck_assert_ptr_null(strstr(r.llvm, ".sat.v"));
    r.release(&r);
}
END_TEST

// Lanes that load in the course of time: those left over behind whole vectors have code of their own where it is short.
START_TEST(rest_of_long_bodies_is_masked)
{
    int operations = _i ? 3000 : 30;
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_add(&text, "kernel rows(x: f32[8024], y: out f32[1003]) {\n  par i < 1003 {\n"
                      "    %0 = const 0x00000000 : f32\n"
                      "    seq t < 8 carry %1 = %0 {\n      %2 = load x[i + 1003*t] : f32\n"
                      "      %3 = add %1, %2 : f32\n");
    for (int n = 3; n < operations; n++)
        strbuf_printf(&text, "      %%%d = %s %%%d, %%2 : f32\n", n + 1, n % 2 ? "mul" : "add",
                      n);
    strbuf_printf(&text, "      yield %%%d\n    } -> %%%d\n    put y[i] = %%%d\n  }\n}\n",
                  operations, operations + 1, operations + 1);
    struct cg_response r = compile_for("skylake-avx512 +avx512f,+avx2", program_of(text.text));
    bool has_whole = strstr(r.llvm, "= load <16 x float>") != NULL;
    ck_assert_msg(strstr(r.llvm, "call <16 x float> @llvm.masked.load") != NULL, "%s", r.llvm);
    ck_assert_int_eq(has_whole, !_i);
    r.release(&r);
    nest_check_text(text.text);
    nest_check_end();
}
END_TEST

// Sums far apart have their accumulators side by side, on the stack.
START_TEST(accumulators_have_no_gaps)
{
    static const char text[] = "kernel columns(x: f32[1600000], y: out f32[1600000]) {\n"
                               "  par i < 100000 {\n"
                               "    fold j < 16 {\n"
                               "      %0 = load x[i + 100000*j] : f32\n"
                               "      map k < 16 {\n"
                               "        %1 = load x[i + 100000*k] : f32\n"
                               "        put y[i + 100000*k] fma= %0, %1 in @j sum64\n"
                               "      }\n"
                               "    }\n"
                               "  }\n"
                               "}\n";
    // 16 sums of four vectors
    struct cg_response r = compile_for("skylake-avx512 +avx512f,+avx2", program_of(text));
    ck_assert_ptr_nonnull(strstr(r.llvm, "alloca [4096 x i8]"));
    r.release(&r);
    r = compile_for("haswell +avx2", program_of(text));
    ck_assert_ptr_nonnull(strstr(r.llvm, "alloca [2048 x i8]"));
    r.release(&r);
}
END_TEST

// A short loop of lanes that compares its index with a number is written out, so that it chooses nothing; one of other
// indices is a loop.
START_TEST(short_loops_that_choose_are_written_out)
{
    static const char *const indices[] = {"k", "k + i"};
    for (int i = 0; i < 2; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "kernel rows(x: f32[64], y: f32[64], z: out f32[192]) {\n"
                 "  par i < 64 @vector 16 {\n"
                 "    %%0 = load x[i] : f32\n"
                 "    %%1 = load y[i] : f32\n"
                 "    map k < 3 {\n"
                 "      %%2 = const 0x0000000000000001 : i64\n"
                 "      %%3 = index %s : i64\n"
                 "      %%4 = lt %%3, %%2 : bool\n"
                 "      %%5 = select %%4, %%0, %%1 : f32\n"
                 "      put z[i + 64*k] = %%5\n"
                 "    }\n"
                 "  }\n"
                 "}\n",
                 indices[i]);
        struct cg_response r = compile(text);
        ck_assert_int_eq(strstr(r.llvm, "select") != NULL, i);
        r.release(&r);
        nest_check_text(text);
    }
    nest_check_end();
}
END_TEST

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

// Lanes of which it is known how far they are apart go one by one.
START_TEST(lanes_apart_go_one_by_one)
{
    static const char text[] = "kernel apart(x: f64[1024], y: out f64[64]) {\n"
                               "  par i < 64 @vector 8 {\n"
                               "    %0 = load x[13*i + 1] : f64\n"
                               "    put y[i] = %0\n"
                               "  }\n"
                               "}\n";
    struct cg_response r = compile(text);
    ck_assert_ptr_null(strstr(r.llvm, "@llvm.masked.gather"));
    r.release(&r);
    nest_check_text(text);
    nest_check_end();
}
END_TEST

// A short fold of lanes adds a zero once, to its result, and multiplies where it has nothing to add to; a sum of -0 is
// 0 all the same.
START_TEST(short_folds_add_one_zero)
{
    static const char text[] =
        "kernel sums(x: f32[320], w: f32[320], y: out f32[64], z: out f32[64]) {\n"
        "  par i < 64 @vector 16 {\n"
        "    fold k < 5 {\n"
        "      %0 = load x[i + 64*k] : f32\n"
        "      %1 = load w[i + 64*k] : f32\n"
        "      yield reduce_sum %0 sum64, fma %0 %1 sum64\n"
        "    } -> %2 : f32, %3 : f32\n"
        "    put y[i] = %2\n"
        "    put z[i] = %3\n"
        "  }\n"
        "}\n";
    struct cg_response r = compile(text);
    ck_assert_int_eq(count(r.llvm, " = fadd "), 2 * 5);
    ck_assert_int_eq(count(r.llvm, " = fmul "), 5);
    ck_assert_ptr_null(strstr(r.llvm, "@llvm.fma"));
    r.release(&r);
    nest_check_text(text);
    nest_check_text("kernel zeros(x: f32[64], y: out f32[64], z: out f64[64]) {\n"
                    "  %0 = const 0x80000000 : f32\n"
                    "  %1 = const 0x8000000000000000 : f64\n"
                    "  par i < 64 @vector 16 {\n"
                    "    fold k < 5 {\n"
                    "      yield reduce_sum %0 sum64, fma %1 %1 sum64\n"
                    "    } -> %2 : f32, %3 : f64\n"
                    "    fold l < 3 {\n"
                    "      %4 = neg %1 : f64\n"
                    "      yield fma %1 %4 sum64\n"
                    "    } -> %5 : f64\n"
                    "    %6 = add %3, %5 : f64\n"
                    "    put y[i] = %2\n"
                    "    put z[i] = %6\n"
                    "  }\n"
                    "}\n");
    nest_check_end();
}
END_TEST

// A table of numbers that all steps give a kernel is part of its code where a loop is written out.
START_TEST(tables_are_numbers)
{
    static const char kernel[] = "kernel taps(x: f32[320], w: f32[5], y: out f32[64]) {\n"
                                 "  par i < 64 @vector 16 {\n"
                                 "    fold k < 5 {\n"
                                 "      %0 = load x[i + 64*k] : f32\n"
                                 "      %1 = load w[k] : f32\n"
                                 "      yield fma %0 %1 sum64\n"
                                 "    } -> %2 : f32\n"
                                 "    put y[i] = %2\n"
                                 "  }\n"
                                 "}\n";
#define ONES "constant at 0 : f32[5] = 0000803f0000803f0000803f0000803f0000803f"
#define TWOS "constant at 64 : f32[5] = 0000004000000040000000400000004000000040"
    // What two steps give the kernel: the same table, another one, or a table and an input in either order.
    static const struct {
        const char *first, *second;
        int of_second; // which the second step has
        int products;
    } tables[] = {{ONES, TWOS, 1, 0},
                  {ONES, TWOS, 2, 5},
                  {ONES, "input 1 : f32[5]", 2, 5},
                  {"input 1 : f32[5]", ONES, 2, 5}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct strbuf text = strbuf_make(nest_check_arena);
        strbuf_printf(
            &text,
            "jot nest 1\nprogram \"taps\" {\n  inputs 2\n  outputs 2 donated -1 -1\n  arena 0\n"
            "  constants 128\n  memory input 0 : f32[320] \"x\"\n  memory %s \"v\"\n"
            "  memory %s \"w\"\n  memory output 0 : f32[64] \"y\"\n"
            "  memory output 1 : f32[64] \"z\"\n  step kernel 0 (0, 1, 3) \"result\"\n"
            "  step kernel 0 (0, %d, 4) \"result\"\n}\n%s",
            tables[i].first, tables[i].second, tables[i].of_second, kernel);
        struct cg_response r = compile_program(text.text);
        ck_assert_msg(count(r.llvm, "fmul") == tables[i].products, "%d products of tables %zu",
                      count(r.llvm, "fmul"), i);
        r.release(&r);
    }
}
END_TEST

// Rows of points go to locals and back by one function, whatever their lengths.
START_TEST(copies_of_rows_are_one_function)
{
    static const char text[] =
        "kernel net(x: f32[6400], v: f32[3300], w: f32[2112], y: out f32[3300], z: out "
        "f32[6400]) {\n"
        "  local a: f32[64]\n  local b: f32[33]\n  local c: f32[33]\n"
        "  par n < 100 {\n"
        "    map k < 64 {\n      %0 = load x[64*n + k] : f32\n      put a[k] = %0\n    }\n"
        "    map j < 33 {\n      %1 = load v[33*n + j] : f32\n      put b[j] = %1\n    }\n"
        "    contract c[i] = a[l], w[33*l + i] for i < 33 over l < 64\n"
        "    map j2 < 33 {\n      %2 = load b[j2] : f32\n      %3 = load c[j2] : f32\n"
        "      %4 = add %2, %3 : f32\n      put b[j2] = %4\n    }\n"
        "    map j3 < 33 {\n      %5 = load b[j3] : f32\n      put y[33*n + j3] = %5\n    }\n"
        "    map k2 < 64 {\n      %6 = load a[k2] : f32\n      put z[64*n + k2] = %6\n    }\n"
        "  }\n"
        "}\n";
    struct cg_response r = compile(text);
    ck_assert_int_eq(count(r.llvm, "define internal void @tiles_load_f32"), 1);
    ck_assert_int_eq(count(r.llvm, "define internal void @tiles_store_f32"), 1);
    ck_assert_int_ge(count(r.llvm, "call void @tiles_load_f32"),
                     3); // of 33, the last ones once more
    r.release(&r);
    nest_check_text(text);
    nest_check_end();
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(t, 300);
    tcase_add_test(t, short_loops_that_choose_are_written_out);
    tcase_add_test(t, short_folds_add_one_zero);
    tcase_add_test(t, tables_are_numbers);
    tcase_add_loop_test(t, ops_of_large_kernels, 0, DTYPE_COUNT);
    tcase_add_test(t, equal_ops_are_one_function);
    tcase_add_test(t, functions_of_parts_are_one);
    tcase_add_loop_test(t, kernels_that_become_equal_are_one, 0, 2);
    tcase_add_loop_test(t, kernels_of_parts_are_one, 0, 2);
    tcase_add_test(t, winners_are_registers);
    tcase_add_loop_test(t, integers_of_floats, 0, 16);
    tcase_add_test(t, copies_of_rows_are_one_function);
    tcase_add_loop_test(t, rest_of_long_bodies_is_masked, 0, 2);
    tcase_add_test(t, accumulators_have_no_gaps);
    tcase_add_test(t, lanes_apart_go_one_by_one);
}

int main(void)
{
    nest_check_any = true;
    return suite_run("functions", add);
}
