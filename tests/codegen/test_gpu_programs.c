// SPDX-License-Identifier: Apache-2.0
// Networks, loops and whole programs on a GPU, without one: what the structure of their PTX
// promises.
#include "ptx_support.h"

#include "base/launch.h"

static const char *network(const char *type, int points)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_printf(&s, "kernel layer(x: %s[%d], ", type, 20 * points);
    strbuf_printf(&s, "w: %s[400], c: out %s[20], g: out %s[400], e: out %s[1]) {\n", type,
                  type, type, type);
    for (int i = 0; i < 3; i++)
        strbuf_printf(&s, "  local %s: %s[20]\n", (const char *[]){"in", "z", "h"}[i], type);
    strbuf_printf(&s, "  fold n < %d {\n", points);
    static const char body[] = "    map i < 20 {\n"
                               "      %0 = load x[20*n + i] : T\n"
                               "      put in[i] = %0\n"
                               "    }\n"
                               "    contract z[j] = in[k], w[j + 20*k] for j < 20 over k < 20\n"
                               "    map j < 20 {\n"
                               "      %1 = load z[j] : T\n"
                               "      %2 = mul %1, %1 : T\n"
                               "      put h[j] = %2\n"
                               "      put c[j] reduce_sum= %2 in @n sum64\n"
                               "    }\n"
                               "    map i < 20, j < 20 {\n"
                               "      %3 = load in[i] : T\n"
                               "      %4 = load h[j] : T\n"
                               "      put g[20*i + j] fma= %3, %4 in @n sum64\n"
                               "    }\n"
                               "    %5 = load z[3] : T\n"
                               "    yield reduce_sum %5 sum64\n"
                               "  } -> %6 : T\n"
                               "  put e[0] = %6\n"
                               "}\n";
    for (const char *at = body; *at; at++)
        if (*at == 'T')
            strbuf_add(&s, type);
        else
            strbuf_printf(&s, "%c", *at);
    return s.text;
}

// Every element is read and stored once; words of 64 bits, which nobody keeps near, tell what comes
START_TEST(points_of_networks_are_squads)
{
    const char *ptx = ptx_of(network("f32", 1000));
    ck_assert_int_eq(count(ptx, ".entry"), 4);
    // Five units of a layer are a thread's, and each four terms of them, a turn of a loop that
    // stays one, read six times 16 bytes; sums of ten rows with ten are another's.
    ck_assert_int_eq(count(ptx, "ld.shared.v4.f32"), 6);
    ck_assert_int_ge(count(ptx, "fma.rn.f32"), 20 + 100);
    ck_assert_ptr_nonnull(strstr(ptx, ".pragma \"nounroll\";"));
    check_assembles(ptx);
    // Where the text has no squads a thread has all of a point near.
    const char *text = mapped_of(network("f32", 1000), "cuda sm_90");
    text = replaced(text, "block 32 group 4", "block 32");
    for (int i = 0; i < 3; i++)
        text = replaced(text, i == 1 ? " @register" : " @shared", "");
    ck_assert_int_eq(count(ptx_of(text), "ld.shared.v4.f32"), 0);
    // Of a thousand times as many points the code is hardly longer.
    ck_assert_uint_lt(strlen(ptx_of(network("f32", 1000000))), 2 * strlen(ptx));
}
END_TEST

#define PATH(n, all)                                                                           \
    "kernel path(x: f32[1024], y: out f32[" all "]) {\n"                                       \
    "  %0 = const 0x3f800000 : f32\n"                                                          \
    "  par i < 1024 {\n"                                                                       \
    "    %1 = load x[i] : f32\n"                                                               \
    "    seq t < " n " carry %2 = %0 {\n"                                                      \
    "      %3 = fma %1, %2, %2 : f32\n"                                                        \
    "      put y[" n "*i + t] = %3\n"                                                          \
    "      yield %3\n"                                                                         \
    "    } -> %4\n"                                                                            \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(steps_are_put_together)
{
    // A warp turns 40 steps of its rows in shared memory.
    const char *ptx = ptx_of(PATH("1000", "1024000"));
    ck_assert_int_eq(count(ptx, "st.shared.f32"), 8);
    ck_assert_int_eq(count(ptx, "bar.warp.sync"), 2);
    check_clean(ptx);
    // Steps that no tile divides go by what a thread stores at once.
    ptx = ptx_of(PATH("104", "106496"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 2);
    ck_assert_int_eq(count(ptx, "st.global.f32"), 0);
    check_clean(ptx);
    // Rows of 1002 numbers begin anywhere.
    ptx = ptx_of(PATH("1002", "1026048"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 0);
    check_clean(ptx);
}
END_TEST

// Each point reads a row of so many elements and puts it, turned round.
static const char *rows(int points, int length)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_printf(&s, "kernel turn(x: f32[%d], y: out f32[%d]) {\n  par i < %d {\n",
                  points * length, points * length, points);
    for (int k = 0; k < length; k++)
        strbuf_printf(&s, "    %%%d = load x[%d*i + %d] : f32\n", k, length, k);
    for (int k = 0; k < length; k++)
        strbuf_printf(&s, "    put y[%d*i + %d] = %%%d\n", length, k, length - 1 - k);
    strbuf_add(&s, "  }\n}\n");
    return s.text;
}

// Rows of a warp are far apart: it moves them together, through shared memory.
START_TEST(rows_of_points_are_moved_by_warps)
{
    const char *ptx = ptx_of(rows(4096, 16));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 4);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 4);
    ck_assert_int_eq(count(ptx, "ld.shared.v4.f32"), 8);
    ck_assert_int_eq(count(ptx, "bar.warp.sync"), 4);
    check_clean(ptx);
    // Rows of 9 elements begin anywhere: 8 of them, and the last 8.
    ptx = ptx_of(rows(4096, 9));
    ck_assert_int_eq(count(ptx, "ld.global.nc.f32"), 16);
    ck_assert_int_eq(count(ptx, "bar.warp.sync"), 8);
    check_clean(ptx);
    // The last warp has fewer points.
    ptx = ptx_of(rows(4000 + 1, 16));
    ck_assert_ptr_null(strstr(ptx, "bar.warp.sync"));
    check_clean(ptx);
}
END_TEST

// Everything is there that the host calls a library for.
START_TEST(functions_are_in_the_module)
{
    const char *ptx = ptx_of("kernel f(x: f64[4096], y: f64[4096], z: out f64[4096]) {\n"
                             "  par i < 4096 {\n"
                             "    %0 = load x[i] : f64\n"
                             "    %1 = load y[i] : f64\n"
                             "    %2 = sin %0 : f64\n"
                             "    %3 = rem %2, %1 : f64\n"
                             "    put z[i] = %3\n"
                             "  }\n"
                             "}\n");
    ck_assert_ptr_null(strstr(ptx, ".extern .func"));
    check_clean(ptx);
}
END_TEST

// x = x[i - 1] + x[i] for i > 0 while x[0] < 1.
#define WHILE(n)                                                                               \
    "jot nest 1\n"                                                                             \
    "program \"while\" {\n"                                                                    \
    "  inputs 1\n  outputs 1 donated -1\n  arena 9000128\n  constants 0\n"                     \
    "  memory input 0 : f32[" n "] \"x\"\n"                                                    \
    "  memory output 0 : f32[" n "] \"y\"\n"                                                   \
    "  memory temporary at 0 : f32[" n "] \"turn\"\n"                                          \
    "  memory temporary at 4500032 : f32[" n "] \"turn\"\n"                                    \
    "  memory turn of 3, 2 in loop 0 : f32[" n "] \"carry\"\n"                                 \
    "  memory turn of 2, 3 in loop 0 : f32[" n "] \"next\"\n"                                  \
    "  memory temporary at 9000064 : bool[1] \"any\"\n"                                        \
    "  step copy (3, 0) \"\"\n  step while 0 trips -1 () \"\"\n"                               \
    "  step kernel 0 (4, 6) \"\"\n  step test (6)\n  step kernel 1 (4, 5) \"\"\n"              \
    "  step end ()\n  step copy (1, 4) \"\"\n}\n"                                              \
    "kernel k0(x: f32[" n "], any: out bool[1]) {\n"                                           \
    "  %0 = load x[0] : f32\n  %1 = const 0x3f800000 : f32\n"                                  \
    "  %2 = lt %0, %1 : bool\n  put any[0] = %2\n}\n"                                          \
    "kernel k1(x: f32[" n "], y: out f32[" n "]) {\n"                                          \
    "  %0 = const 0x0000000000000001 : i64\n"                                                  \
    "  par i < " n " {\n"                                                                      \
    "    %1 = index i : i64\n    %2 = ge %1, %0 : bool\n"                                      \
    "    %3 = load x[i - 1] if %2 : f32\n    %4 = load x[i] : f32\n"                           \
    "    %5 = add %3, %4 : f32\n    put y[i] = %5\n  }\n}\n"

START_TEST(loops_of_steps_are_kernels)
{
    // Blocks count, look at the count, and read nothing past the caches that others write.
    const char *ptx = ptx_of_program(WHILE("1000000"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_nonnull(strstr(ptx, ".visible .entry jot_loop_0"));
    ck_assert_int_eq(count(ptx, "atom.acq_rel.gpu"), 2);
    ck_assert_int_eq(count(ptx, "ld.acquire.gpu"), 1);
    ck_assert_ptr_null(strstr(ptx, "ld.global.nc"));
    // x[i - 1] and x[i] are two vectors.
    ck_assert_int_eq(count(ptx, "ld.global.v4.f32"), 2);
    check_clean(ptx);
    // Threads that all multiprocessors have a block of are no more in each.
    ck_assert_ptr_nonnull(strstr(ptx, ".maxntid 512"));
    ptx = ptx_of_program(WHILE("25000"));
    ck_assert_ptr_nonnull(strstr(ptx, "ld.acquire.gpu"));
    ck_assert_ptr_nonnull(strstr(ptx, ".maxntid 256"));
    check_clean(ptx);
    // Phases that have nothing to do with one another do not wait: here for what the one before it reads, then puts.
    const char *more =
        replaced(WHILE("1000000"), "outputs 1 donated -1", "outputs 2 donated -1 -1");
    more = replaced(more, "  memory temporary at 0 ",
                    "  memory output 1 : f32[1000000] \"z\"\n"
                    "  memory temporary at 0 ");
    more = replaced(more, "turn of 3, 2", "turn of 4, 3");
    more = replaced(more, "turn of 2, 3", "turn of 3, 4");
    more = replaced(more, "step copy (3, 0)", "step copy (4, 0)");
    more = replaced(more, "step kernel 0 (4, 6)", "step kernel 0 (5, 7)");
    more = replaced(more, "step test (6)", "step test (7)");
    more = replaced(more, "step copy (1, 4)", "step copy (1, 5)");
    const char *one = "step kernel 1 (4, 5) \"\"\n", *wait = "jot_wait_for_blocks, \n";
    const char *beside = "step kernel 1 (5, 6) \"\"\n  step kernel 1 (5, 2) \"\"\n",
               *behind = "step kernel 1 (5, 6) \"\"\n  step kernel 1 (6, 2) \"\"\n";
    ptx = ptx_of_program(replaced(more, one, beside));
    ck_assert_int_eq(count(ptx, wait) + 1,
                     count(ptx_of_program(replaced(more, one, behind)), wait));
    check_clean(ptx);
    // Beside phases of more than some 50 us launches are nothing: the loop is a node of a graph.
    ptx = ptx_of_program(WHILE("40000000"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    ck_assert_ptr_null(strstr(ptx, "jot_loop_0"));
    // So they are where phases would compute with few threads.
    const char *sum = "%5 = add %3, %4 : f32\n    put y[i] = %5\n",
               *dear = "%5 = lgamma %4 : f32\n    %6 = lgamma %5 : f32\n    %7 = lgamma %6 : "
                       "f32\n    put y[i] = %7\n";
    ptx = ptx_of_program(replaced(WHILE("2000000"), sum, dear));
    ck_assert_ptr_null(strstr(ptx, "jot_loop_0"));
    ptx = ptx_of_program(replaced(WHILE("1000000"), sum, dear));
    ck_assert_ptr_nonnull(strstr(ptx, "jot_loop_0"));
    // What is short is one block.
    ptx = ptx_of_program(WHILE("1000"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_null(strstr(ptx, "ld.acquire.gpu"));
    ck_assert_ptr_nonnull(strstr(ptx, "bar.sync"));
    check_clean(ptx);
}
END_TEST

START_TEST(architectures_that_nobody_knows)
{
    struct cg_response r = compiled(AXPY("64"), "cuda sm_35");
    ck_assert_int_eq(r.status, JOT_ERR_LIBRARY);
    ck_assert_str_eq(r.message, "no code for the GPU architecture \"sm_35\": sm_80 to sm_90 "
                                "and newer are known");
    r.release(&r);
    r = compiled(AXPY("64"), "cuda sm_120");
    ck_assert_int_eq(r.status, JOT_OK);
    ck_assert_ptr_nonnull(strstr(r.object, ".target sm_90\n"));
    r.release(&r);
}
END_TEST

START_TEST(tanh_has_no_branch)
{
    const char *ptx = ptx_of("kernel t(x: f32[1048576], y: out f32[1048576]) {\n"
                             "  par i < 1048576 {\n"
                             "    %0 = load x[i] : f32\n"
                             "    %1 = tanh %0 : f32\n"
                             "    put y[i] = %1\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "div.rn.f32"), 0);
    ck_assert_int_eq(count(ptx, "rcp.approx"), 4);
    check_assembles(ptx);
}
END_TEST

// Lanes with a row of `n` numbers each, that is written forwards and read backwards; the rows of
// more lanes would be computed again.
#define TAPE(n)                                                                                \
    "kernel tape(x: f32[16], y: out f32[16]) {\n"                                              \
    "  local row: f32[" n "]\n"                                                                \
    "  par i < 16 {\n"                                                                         \
    "    %0 = load x[i] : f32\n"                                                               \
    "    seq t < " n " carry %1 = %0 {\n"                                                      \
    "      put row[t] = %1\n"                                                                  \
    "      %2 = mul %1, %0 : f32\n"                                                            \
    "      yield %2\n"                                                                         \
    "    } -> %3\n"                                                                            \
    "    seq u < " n " reverse carry %4 = %3 {\n"                                              \
    "      %5 = load row[u] : f32\n"                                                           \
    "      %6 = fma %4, %0, %5 : f32\n"                                                        \
    "      yield %6\n"                                                                         \
    "    } -> %7\n"                                                                            \
    "    put y[i] = %7\n"                                                                      \
    "  }\n"                                                                                    \
    "}\n"

// A driver starts no kernel whose threads have more memory of their own, and does not say why.
START_TEST(threads_have_little_memory)
{
    ck_assert_int_eq(count(ptx_of(TAPE("1000")), "ld.local.v4.f32"), 2); // on their way at once
    check_assembles(ptx_of(TAPE("131072")));
    struct cg_response r = compiled(TAPE("131088"), "cuda sm_90");
    ck_assert_int_ne(r.status, JOT_OK);
    ck_assert_msg(strstr(r.message, "what a thread of a GPU has of its own"), "%s", r.message);
    r.release(&r);
}
END_TEST

// z = x + 1 and w = y + x, where z may have the memory of x.
#define SUM_AND_NEXT(donated)                                                                  \
    "jot nest 1\n"                                                                             \
    "program \"next\" {\n"                                                                     \
    "  inputs 2\n  outputs 2 donated " donated " -1\n  arena 0\n  constants 0\n"               \
    "  memory input 0 : f32[1] \"x\"\n  memory input 1 : f32[1000] \"y\"\n"                    \
    "  memory output 0 : f32[1] \"z\"\n  memory output 1 : f32[1000] \"w\"\n"                  \
    "  step kernel 0 (0, 1, 2, 3) \"\"\n}\n"                                                   \
    "kernel k0(x: f32[1], y: f32[1000], z: out f32[1], w: out f32[1000]) {\n"                  \
    "  %0 = load x[0] : f32\n  %1 = const 0x3f800000 : f32\n"                                  \
    "  %2 = add %0, %1 : f32\n  put z[0] = %2\n"                                               \
    "  map i < 1000 {\n    %3 = load y[i] : f32\n"                                             \
    "    %4 = add %3, %0 : f32\n    put w[i] = %4\n  }\n}\n"

// Not before all blocks have read what it is written over.
START_TEST(puts_over_what_is_read_come_last)
{
    ck_assert_int_eq(count(ptx_of_program(SUM_AND_NEXT("-1")), ".visible .entry"), 1);
    const char *ptx = ptx_of_program(SUM_AND_NEXT("0"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    const char *late = strstr(ptx, ".entry jot_kernel_0_late");
    ck_assert_ptr_nonnull(late);
    ck_assert_int_eq(count(ptx, "st.global") - count(late, "st.global"), 1);
    check_clean(ptx);
}
END_TEST

// All threads of a group have the sums, and one puts them.
START_TEST(sums_of_all_are_put_by_one)
{
    const char *ptx = ptx_of("kernel sums(x: f32[2], w: f32[40], y: out f32[20]) {\n"
                             "  fold i < 2 {\n"
                             "    %0 = load x[i] : f32\n"
                             "    map j < 20 {\n"
                             "      %1 = load w[20*i + j] : f32\n"
                             "      put y[j] fma= %0, %1 in @i sum64\n"
                             "    }\n"
                             "  }\n"
                             "}\n");
    ck_assert_ptr_nonnull(strstr(ptx, "%tid.x"));
    check_assembles(ptx);
}
END_TEST

START_TEST(layers_of_many_points_are_a_function)
{
    const char *ptx = ptx_of(network("f64", 100000));
    ck_assert_int_gt(count(ptx, "call.uni"), 0);
    ck_assert_int_gt(count(ptx, "ld.local"), 0); // of what is near the thread
    ck_assert_ptr_null(strstr(ptx, "\tld.f64"));
    ck_assert_int_eq(count(ptx_of(network("f64", 1000)), "call.uni"), 0);
}
END_TEST

// Calls have no numbers, which would go on from those of the programs before.
START_TEST(calls_are_the_same_text)
{
    static const char text[] = "kernel k(x: f32[64], y: out f32[64]) {\n"
                               "  par i < 64 {\n"
                               "    %0 = load x[i] : f32\n"
                               "    %1 = sin %0 : f32\n"
                               "    put y[i] = %1\n"
                               "  }\n"
                               "}\n";
    struct cg_response a = compiled(text, "cuda sm_90"), b = compiled(text, "cuda sm_90");
    ck_assert_int_gt(count(a.object, "call"), 0);
    ck_assert_uint_eq(a.object_size, strlen(a.object) + 1);
    ck_assert_str_eq(a.object, b.object);
    check_assembles(a.object);
    a.release(&a);
    b.release(&b);
}
END_TEST

// Kernels that take long to compile are texts of their own, with what they need of the module.
START_TEST(long_kernels_are_texts)
{
    struct cg_response r = compiled(network("f32", 1000), "cuda sm_90");
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    int texts = 0, kernels = 0, tables = 0;
    const char *end = (const char *)r.object + r.object_size;
    for (const char *at = r.object; at < end; at += strlen(at) + 1) {
        texts++;
        kernels += count(at, ".entry");
        ck_assert_int_eq(count(at, ".version"), 1);
        tables += count(at, ".global .align 16 .b8 jot_rows_a");
        check_assembles(at);
    }
    ck_assert_int_eq(texts, 2);
    ck_assert_int_eq(kernels, 4);
    ck_assert_int_eq(tables, 1);
    r.release(&r);
    // A short one is what it was.
    r = compiled(AXPY("1048576"), "cuda sm_90");
    ck_assert_uint_eq(strlen(r.object) + 1, r.object_size);
    r.release(&r);
}
END_TEST

// A test stands before the first step and behind each: loops with one test in front, of a flag that an
// outer loop tests too, lose it in the assembler of CUDA 13.0.
START_TEST(tests_follow_steps)
{
    const char *ptx = ptx_of("kernel trips(n: i32[1], y: out i32[1]) {\n"
                             "  %0 = const 0x00000001 : i32\n"
                             "  %1 = const 0x00000000 : i32\n"
                             "  %2 = const 0x01 : bool\n"
                             "  %3 = const 0x00000002 : i32\n"
                             "  %4 = load n[0] : i32\n"
                             "  while carry %5 = %1, %6 = %2, %7 = %1 {\n"
                             "    yield %6\n"
                             "  } do {\n"
                             "    %8 = add %5, %4 : i32\n"
                             "    while carry %9 = %5, %10 = %6, %11 = %7 {\n"
                             "      %12 = lt %9, %8 : bool\n"
                             "      %13 = and %12, %10 : bool\n"
                             "      yield %13\n"
                             "    } do {\n"
                             "      %14 = add %9, %0 : i32\n"
                             "      %15 = add %11, %0 : i32\n"
                             "      %16 = lt %15, %3 : bool\n"
                             "      yield %14, %16, %15\n"
                             "    } -> %17, %18, %19\n"
                             "    yield %17, %18, %19\n"
                             "  } -> %20, %21, %22\n"
                             "  put y[0] = %22\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "setp."), 3); // one of the step, two of the inner test
    check_clean(ptx);
}
END_TEST

#define RELU(steps)                                                                            \
    "jot nest 1\nprogram \"relu\" {\n  inputs 2\n  outputs 1 donated -1\n"                     \
    "  arena 64\n  constants 0\n"                                                              \
    "  memory input 0 : f32[6]\n  memory input 1 : f32[12]\n"                                  \
    "  memory temporary at 0 : f32[8]\n  memory output 0 : f32[8] \"y\"\n" steps               \
    "  step kernel 0 (2, 3)\n}\n"                                                              \
    "kernel relu(x: f32[8], y: out f32[8]) {\n  %0 = const 0x00000000 : f32\n"                 \
    "  par i < 8 {\n    %1 = load x[i] : f32\n    %2 = max %1, %0 : f32\n"                     \
    "    put y[i] = %2\n  }\n}\n"

// Whether the last step is a kernel that is launched early.
static bool is_early(const char *text)
{
    struct cg_request request = {.program = text, .target = "cuda sm_90"};
    struct cg_response r;
    struct rt_plan plan;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    ck_assert_int_eq(rt_plan_read(r.plan, r.plan_size, &plan), JOT_OK);
    const struct rt_step *last = &plan.steps[plan.step_count - 1];
    ck_assert_uint_eq(last->kind, RT_STEP_KERNEL);
    bool is = last->flags & RT_STEP_EARLY;
    r.release(&r);
    return is;
}

START_TEST(kernels_alone_are_launched_early)
{
    ck_assert(is_early(RELU("")));
    ck_assert(!is_early(RELU("  step gemm f32 transpose_b m 2 n 4 k 3 lda 3 ldb 3 ldc 4 "
                             "batch 1 1 1 1 stride_a 0 0 0 0 stride_b 0 0 0 0 "
                             "stride_c 0 0 0 0 (0, 1, 2) \"large\"\n")));
    // What cannot wait does not.
    struct cg_response r = compiled(AXPY("64"), "cuda sm_80");
    ck_assert_int_eq(r.status, JOT_OK);
    ck_assert_ptr_null(strstr(r.object, "griddepcontrol"));
    r.release(&r);
}
END_TEST

// What is no faster for being written out is a loop: rounds of many sums, turns of a group with branches, windows of
// dear terms.
START_TEST(long_code_is_loops)
{
    const char *sums =
        "kernel sums(x: f32[1048576], z: f32[1048576], y: out f32[64], u: out f32[64]) {\n"
        "  par i < 64 {\n    fold j < 16384 {\n"
        "      %0 = load x[16384*i + j] : f32\n      %1 = load z[16384*i + j] : f32\n"
        "      %2 = mul %0, %1 : f32\n      %3 = add %0, %1 : f32\n"
        "      yield reduce_sum %0 sum64, reduce_sum %1 sum64, reduce_sum %2 sum64, "
        "reduce_sum %3 sum64\n"
        "    } -> %4 : f32, %5 : f32, %6 : f32, %7 : f32\n"
        "    %8 = add %4, %5 : f32\n    put y[i] = %8\n"
        "    %9 = add %6, %7 : f32\n    put u[i] = %9\n  }\n}\n";
    const char *rows =
        "kernel rows(x: f32[4194304], y: out f32[4194304]) {\n  %0 = const 0x3f800000 : f32\n"
        "  par i < 32, j < 8 {\n"
        "    fold k < 32, l < 32, m < 16 {\n"
        "      %1 = load x[131072*i + 16*j + 4096*k + 128*l + m] : f32\n"
        "      yield reduce_sum %1 sum64\n    } -> %2 : f32\n"
        "    map k < 32, l < 32, m < 16 {\n"
        "      %3 = load x[131072*i + 16*j + 4096*k + 128*l + m] : f32\n"
        "      %4 = sub %3, %2 : f32\n      %5 = exp %4 : f32\n      %6 = add %0, %5 : f32\n"
        "      %7 = div %3, %6 : f32\n"
        "      put y[131072*i + 16*j + 4096*k + 128*l + m] = %7\n    }\n  }\n}\n";
    const char *terms =
        "kernel terms(x: f32[6422528], y: out f32[8192]) {\n  par i < 8192 {\n"
        "    fold j < 784 {\n      %0 = load x[784*i + j] : f32\n      %1 = exp %0 : f32\n"
        "      %2 = log1p %1 : f32\n      %3 = tanh %2 : f32\n      %4 = div %3, %1 : f32\n"
        "      %5 = exp %4 : f32\n      %6 = log1p %5 : f32\n      %7 = tanh %6 : f32\n"
        "      %8 = div %7, %1 : f32\n      yield reduce_sum %8 sum64\n    } -> %9 : f32\n"
        "    put y[i] = %9\n  }\n}\n";
    ck_assert_int_le(count(ptx_of(sums), "ld.global"), 64);
    ck_assert_int_le(count(ptx_of(rows), "st.global.v4.f32"), 4);
    ck_assert_int_le(count(ptx_of(terms), "ld.global"), 3);
    check_assembles(ptx_of(sums));
    check_assembles(ptx_of(rows));
    check_assembles(ptx_of(terms));
}
END_TEST

#define DOUBLE(name, begin)                                                                    \
    "kernel " name "(x: f32[256], y: out f32[64]) {\n  par i < 64 {\n"                         \
    "    %0 = load x[i + " begin "] : f32\n    %1 = add %0, %0 : f32\n    put y[i] = %1\n  "   \
    "}\n}\n"

// Kernels of parts of an array are one where the parts are aligned alike; their steps name the parts.
START_TEST(kernels_of_parts_are_one)
{
    static const char text[] =
        "jot nest 1\nprogram \"parts\" {\n  inputs 1\n  outputs 3 donated -1 -1 -1\n"
        "  arena 0\n  constants 0\n  memory input 0 : f32[256]\n"
        "  memory output 0 : f32[64]\n  memory output 1 : f32[64]\n  memory output 2 : "
        "f32[64]\n"
        "  step kernel 0 (0, 1)\n  step kernel 1 (0, 2)\n  step kernel 2 (0, 3)\n"
        "}\n" DOUBLE("first", "64") DOUBLE("second", "192") DOUBLE("third", "3");
    struct cg_request request = {.program = text, .target = "cuda sm_90"};
    struct cg_response r;
    struct rt_plan plan;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    ck_assert_int_eq(count(r.object, ".visible .entry "), 2);
    ck_assert_int_eq(rt_plan_read(r.plan, r.plan_size, &plan), JOT_OK);
    ck_assert_uint_eq(plan.step_count, 3);
    static const uint64_t begins[] = {64, 192, 0};
    for (int i = 0; i < 3; i++) {
        const struct rt_buffer *x = &plan.buffers[plan.operands[plan.steps[i].operand_first]];
        ck_assert_uint_eq(x->offset, begins[i] * sizeof(float));
        ck_assert_uint_eq(x->bytes, (256 - begins[i]) * sizeof(float));
    }
    r.release(&r);
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_test(c, kernels_of_parts_are_one);
    tcase_add_test(c, long_code_is_loops);
    tcase_add_test(c, points_of_networks_are_squads);
    tcase_add_test(c, steps_are_put_together);
    tcase_add_test(c, rows_of_points_are_moved_by_warps);
    tcase_add_test(c, functions_are_in_the_module);
    tcase_add_test(c, loops_of_steps_are_kernels);
    tcase_add_test(c, kernels_alone_are_launched_early);
    tcase_add_test(c, architectures_that_nobody_knows);
    tcase_add_test(c, tanh_has_no_branch);
    tcase_add_test(c, threads_have_little_memory);
    tcase_add_test(c, puts_over_what_is_read_come_last);
    tcase_add_test(c, sums_of_all_are_put_by_one);
    tcase_add_test(c, layers_of_many_points_are_a_function);
    tcase_add_test(c, calls_are_the_same_text);
    tcase_add_test(c, long_kernels_are_texts);
    tcase_add_test(c, tests_follow_steps);
}

int main(void) { return run_ptx("gpu programs", add_tests); }
