// SPDX-License-Identifier: Apache-2.0
// Nests of all kinds that a GPU's threads share in ways of their own, and what of their levels is theirs.
#ifndef MAP_GPU_NESTS_H
#define MAP_GPU_NESTS_H

#include <stdbool.h>

#define KERNEL(body)                                                                           \
    "kernel k(x: f32[134217728], w: f32[256], y: inout f32[134217728]) {\n" body "}\n"
#define UPDATES(body)                                                                          \
    "kernel k(x: f32[1048576], n: i32[1048576], y: inout f32[1000]) {\n"                       \
    "  %0 = const 0x0000000000000000 : i64\n  %1 = const 0x00000000000003e7 : i64\n" body      \
    "}\n"
#define UPDATE(at)                                                                             \
    "    %2 = load n[" at "] : i32\n    %3 = convert %2 : i64\n    %4 = max %3, %0 : i64\n"    \
    "    %5 = min %4, %1 : i64\n    %6 = load x[" at "] : f32\n    %7 = load y[%5] : f32\n"    \
    "    %8 = add %7, %6 : f32\n    put y[%5] = %8\n"
#define ROWS_OF_UPDATES(turns)                                                                 \
    "kernel k(x: f32[1048576], n: i32[1048576], y: inout f32[2000000]) {\n"                    \
    "  %0 = const 0x0000000000000000 : i64\n  %1 = const 0x00000000000003e7 : i64\n"           \
    "  par i < 2000 {\n  seq j < " turns " {\n    %2 = load n[j] : i32\n"                      \
    "    %3 = convert %2 : i64\n    %4 = max %3, %0 : i64\n    %5 = min %4, %1 : i64\n"        \
    "    %6 = load x[j] : f32\n    %7 = load y[%5 + 1000*i] : f32\n    %8 = add %7, %6 : "     \
    "f32\n"                                                                                    \
    "    put y[%5 + 1000*i] = %8\n  }\n  }\n}\n"
#define SUM(loop, load, result)                                                                \
    "    fold " loop " {\n      %0 = load " load " : f32\n"                                    \
    "      yield reduce_sum %0 sum64\n    } -> " result " : f32\n"
#define SUMS(points, loop, load)                                                               \
    KERNEL("  par " points " {\n" SUM(loop, load, "%1") "    put y[i] = %1\n  }\n")
#define TIMES(points)                                                                          \
    KERNEL("  par " points " {\n    %0 = load x[i] : f32\n    seq j < 100 carry %1 = %0 {\n"   \
           "      %2 = sin %1 : f32\n      yield %2\n    } -> %3\n    put y[i] = %3\n  }\n")
#define READS(points, at)                                                                      \
    KERNEL("  par " points " {\n    %0 = load w[0] : f32\n    seq j < 20 carry %1 = %0 {\n"    \
           "      %2 = load x[" at                                                             \
           "] : f32\n      %5 = sin %2 : f32\n      %6 = log %5 : f32\n      %7 = tan %6 : "   \
           "f32\n      %3 = mul %1, %7 : f32\n      yield %3\n"                                \
           "    } -> %4\n    put y[i] = %4\n  }\n")
#define SCANS(points, loop, at)                                                                \
    KERNEL("  par " points " {\n    scan " loop " {\n      %0 = load x[" at "] : f32\n"        \
           "      yield reduce_sum %0 serial -> %1 : f32\n      put y[" at                     \
           "] = %1\n    }\n  }\n")
#define MAP(points, index, to)                                                                 \
    "  par " points " {\n    %10 = load x[" index "] : f32\n    %11 = exp %10 : f32\n"         \
    "    put y[" to "] = %11\n  }\n"

static const struct gpu_nest {
    const char *what, *text;
    bool is_phase;
    const char *has[3];
} gpu_nests[] = {
    {"points: some neighbours for a thread",
     KERNEL(MAP("i < 1048576", "i", "i")),
     false,
     {") block 256 price ", "par @thread i < 1048576 @vector 4 {"}},
    {"a loop as long as the row beside it, whose elements do not go side by side: one",
     KERNEL("  map i < 33026 {\n    %10 = load x[i] : f32\n    scan j < 1 {\n"
            "      yield reduce_sum %10 serial -> %11 : f32\n      put y[i + 1] = %11\n    }\n"
            "  }\n" SUM("k < 33026", "x[k]", "%1") "  put y[0] = %1\n"),
     false,
     {"map @thread i < 33026 {", "fold @thread k < 33026 @vector 2 "}},
    {"few points: one",
     KERNEL(MAP("i < 1000", "i", "i")),
     false,
     {") block 256 price ", "par @thread i < 1000 {"}},
    {"points of two axes: neighbouring threads have those whose loops read side by side",
     KERNEL("  par i < 4096, j < 512 {\n" SUM("k < 64", "x[i + 4096*k + 262144*j]",
                                              "%1") "    put y[512*i + j] = %1\n  }\n"),
     false,
     {"par @thread j < 512, i < 4096"}},
    {"few long columns: blocks of threads have parts of the folds and of the maps beside them",
     KERNEL("  par i < 400 {\n" SUM(
         "j < 4096", "x[i + 400*j]",
         "%1") "    put y[i + 134217000] = %1\n    "
               "map k < 4096 {\n      %2 = load x[i + 400*k] : f32\n      %3 = exp %2 : f32\n"
               "      put y[4096*i + k] = %3\n    }\n  }\n"),
     false,
     {" columns 64", "par @grid i < 400", "map @thread k < 4096"}},
    {"a number read before many points: some after another for a thread",
     KERNEL("  %9 = load w[0] : f32\n  par i < 134217728 {\n    %10 = load x[i] : f32\n"
            "    %11 = mul %10, %9 : f32\n    put y[i] = %11\n  }\n"),
     false,
     {"par @thread i < 134217728 @vector 4 turns 4 {"}},
    {"dear ones: two that are read at once",
     KERNEL("  par i < 134217728 {\n    %0 = load x[i] : f32\n    %1 = tanh %0 : f32\n"
            "    %2 = log1p %1 : f32\n    put y[i] = %2\n  }\n"),
     false,
     {"par @thread i < 134217728 @vector 4 at_once 2 {"}},
    {"a group's turns, written out and read at once where they branch",
     KERNEL("  par i < 4096 {\n" SUM(
         "k < 1280", "x[1280*i + k]",
         "%1") "    map j < 1280 {\n      %2 = load x[1280*i + j] : f32\n"
               "      %3 = sub %2, %1 : f32\n      put y[2560*i + j] = %3\n    }\n"
               "    map l < 1280 {\n      %4 = load x[1280*i + l] : f32\n"
               "      %5 = tanh %4 : f32\n      %6 = div %5, %1 : f32\n"
               "      put y[2560*i + l + 1280] = %6\n    }\n  }\n"),
     false,
     {"map @thread j < 1280 @vector 2 turns 10 {",
      "map @thread l < 1280 @vector 2 at_once 2 {"}},
    {"a transposed read: tiles",
     KERNEL(MAP("i < 1024, j < 1024", "i + 1024*j", "1024*i + j")),
     false,
     {") block 256 resident 8 price ",
      "par @thread i < 1024 @tile 32, j < 1024 @tile 32 turns 2 {"}},
    {"many tiles: wide ones",
     KERNEL(MAP("i < 16384, j < 8192", "i + 16384*j", "8192*i + j")),
     false,
     {") block 1024 resident 2 price ", "i < 16384 @tile 64, j < 8192 @tile 64 {"}},
    {"of a phase narrow ones",
     KERNEL(MAP("i < 16384, j < 8192", "i + 16384*j", "8192*i + j")),
     true,
     {"i < 16384 @tile 32, j < 8192 @tile 32 {"}},
    {"rows that lie together: a group has one",
     SUMS("i < 4096", "k < 1024", "x[1024*i + k]"),
     false,
     {"block 256 group 32 resident 4 price ", "par @group i < 4096 {",
      "fold @thread k < 1024 @vector 4 at_once 8 {"}},
    {"rows of neighbours: columns",
     SUMS("i < 65536", "k < 1024", "x[i + 65536*k]"),
     false,
     {" columns 32 price ", "par @group i < 65536 @vector 4 {", "fold @thread k < 1024 {"}},
    {"few of them: parts of the folds",
     SUMS("i < 1024", "k < 4096", "x[i + 1024*k]"),
     false,
     {"block 256 group 4 columns 64 price ", "par @grid i < 1024 @vector 4 {",
      "fold @thread k < 4096 {"}},
    {"more of them, where no block has whole ones",
     SUMS("i < 4099", "k < 4096", "x[i + 4099*k]"),
     false,
     {"block 256 group 4 columns 64 price ", "par @grid i < 4099 {",
      "fold @thread k < 4096 {"}},
    {"few of them, whose last axis a thread has whole",
     KERNEL(
         "  par i < 64, j < 4 {\n    %3 = load w[4*i + j] : f32\n    fold k < 256, l < 64 {\n"
         "      %0 = load x[64*j + 256*k + l] : f32\n"
         "      %1 = load x[i + 4096*k + 64*l] : f32\n      yield fma %0 %1 sum64\n"
         "    } -> %2 : f32\n    %4 = add %2, %3 : f32\n    put y[4*i + j] = %4\n  }\n"),
     false,
     {"block 256 group 4 columns 64 price ", "par @grid i < 64, j < 4 @vector 4 {",
      "fold @thread k < 256, l < 64 {"}},
    {"rows that lie where data say",
     "kernel k(x: f32[1048576], n: i32[1048576], y: inout f32[1000]) {\n"
     "  %0 = const 0x0000000000000000 : i64\n  %1 = const 0x00000000000003e7 : i64\n"
     "  par i < 8 {\n    fold j < 40000 {\n      %2 = load n[j] : i32\n"
     "      %3 = convert %2 : i64\n      %4 = max %3, %0 : i64\n      %5 = min %4, %1 : i64\n"
     "      %6 = load x[i + 8*%5] : f32\n      yield reduce_sum %6 sum64\n    } -> %7 : f32\n"
     "    put y[i] = %7\n  }\n}\n",
     false,
     {"par @grid i < 8 @vector 4 {", "fold @thread j < 40000 {"}},
    {"few points with long folds: blocks share each",
     SUMS("i < 4", "k < 1048576", "x[1048576*i + k]"),
     false,
     {"block 64 group 64 price ", "par @grid i < 4 {",
      "fold @thread k < 1048576 @vector 4 at_once 16 {"}},
    {"a long fold: all blocks",
     KERNEL(SUM("k < 16777216", "x[k]", "%1") "    put y[0] = %1\n"),
     false,
     {"block 256 group 256 price ", "  fold @thread k < 16777216 @vector 4 at_once 16 {"}},
    {"terms that are dear: threads make them for the block",
     KERNEL("    fold k < 500000 {\n      %0 = load x[k] : f32\n      %1 = tanh %0 : f32\n"
            "      %2 = tanh %1 : f32\n      %3 = exp %2 : f32\n      %4 = tanh %3 : f32\n"
            "      yield reduce_sum %4 sum64\n    } -> %5 : f32\n    put y[0] = %5\n"),
     false,
     {"  fold @thread k < 500000 @vector 4 at_once 16 terms @shared {"}},
    {"few blocks of such: a function makes them",
     KERNEL("    fold k < 100000 {\n      %0 = load x[k] : f32\n      %1 = tanh %0 : f32\n"
            "      %2 = tanh %1 : f32\n      %3 = exp %2 : f32\n      %4 = tanh %3 : f32\n"
            "      yield reduce_sum %4 sum64\n    } -> %5 : f32\n    put y[0] = %5\n"),
     false,
     {"  fold @thread k < 100000 @vector 4 at_once 16 terms @scratch {"}},
    {"so few that one block has them, of sums that keep it longer than a function more",
     KERNEL("    fold k < 3072 {\n      fold l < 40 {\n        %0 = load x[40*k + l] : f32\n"
            "        %1 = load w[l] : f32\n        yield fma %0 %1 sum64\n      } -> %2 : f32\n"
            "      yield reduce_sum %2 sum64\n    } -> %5 : f32\n    put y[0] = %5\n"),
     false,
     {"  fold @thread k < 3072 at_once 8 terms @scratch {"}},
    {"such terms of two types",
     KERNEL("    %7 = const 0x00000000 : f32\n"
            "    fold k < 100000 {\n      %0 = load x[k] : f32\n      %1 = tanh %0 : f32\n"
            "      %2 = tanh %1 : f32\n      %3 = exp %2 : f32\n      %4 = gt %3, %7 : bool\n"
            "      yield reduce_sum %3 sum64, reduce_or %4 free\n    } -> %5 : f32, %6 : bool\n"
            "    put y[0] = %5 if %6\n"),
     false,
     {"  fold @thread k < 100000 @vector 4 at_once 16 terms @scratch {"}},
    {"a short one: one block",
     KERNEL(SUM("k < 1024", "x[k]", "%1") "    put y[0] = %1\n"),
     false,
     {" grid 1 price ", "  fold @thread k < 1024 @vector 4 at_once 8 {"}},
    {"loops side by side: one block",
     KERNEL(MAP("i < 64", "i", "i") SUM("k < 64", "x[k]", "%9") "    put y[64] = %9\n"),
     false,
     {" grid 1 price ", "par @row i < 64 @vector 2 {", "fold @thread k < 64 @vector 2 {"}},
    {"a long running fold: warps have parts",
     KERNEL("  scan i < 100000 {\n    %0 = load x[i] : f32\n"
            "    yield reduce_sum %0 serial -> %1 : f32\n    put y[i] = %1\n  }\n"),
     false,
     {"block 256 price ", "scan @thread i < 100000 @vector 4 {"}},
    {"a short one: one thread",
     KERNEL("  scan i < 100 {\n    %0 = load x[i] : f32\n"
            "    yield reduce_sum %0 serial -> %1 : f32\n    put y[i] = %1\n  }\n"),
     false,
     {" grid 1 price ", "scan @serial i < 100 {"}},
    {"long ones with a row in common, which warps do not have: one thread",
     KERNEL("  local row: f32[2000]\n  scan i < 2000 {\n    %0 = load x[i] : f32\n"
            "    put row[i] = %0\n    yield reduce_max %0 free -> %1 : f32\n"
            "    put y[i] = %1\n  }\n  scan j < 2000 {\n    %2 = load row[j] : f32\n"
            "    yield reduce_min %2 free -> %3 : f32\n    put y[j + 2000] = %3\n  }\n"),
     false,
     {" grid 1 price ", "scan @serial i < 2000 {", "scan @serial j < 2000 {"}},
    {"one of each of few points",
     KERNEL("  par j < 8 {\n    scan i < 100000 {\n      %0 = load x[100000*j + i] : f32\n"
            "      yield reduce_sum %0 serial -> %1 : f32\n      put y[100000*j + i] = %1\n"
            "    }\n  }\n"),
     false,
     {"par @grid j < 8 {", "scan @thread i < 100000 @vector 4 {"}},
    {"those of neighbouring points: threads that have points side by side",
     SCANS("j < 64", "i < 1100", "j + 64*i"),
     false,
     {" block 256 group 8 columns 32 price ", "par @grid j < 64 {", "scan @thread i < 1100 {"}},
    {"long ones of many rows: warps",
     SCANS("j < 1100", "i < 1100", "1100*j + i"),
     false,
     {") block 256 price ", "par @grid j < 1100 {", "scan @thread i < 1100 @vector 4 {"}},
    {"short ones of few points: a thread, of blocks on all multiprocessors",
     SCANS("j < 3000", "i < 40", "40*j + i"),
     false,
     {") block 32 price ", "par @thread j < 3000 {", "scan @serial i < 40 {"}},
    {"few points with a loop over time: blocks on all multiprocessors",
     TIMES("i < 8192"),
     false,
     {") block 64 ", "par @thread i < 8192 {", "seq @serial j < 100 "}},
    {"one that reads rows side by side: some steps before",
     READS("i < 8192", "i + 8192*j"),
     false,
     {") block 64 ", "seq @serial j < 20 @early 3 carry"}},
    {"little work a step, of rows that end before: some steps before",
     KERNEL(
         "  %0 = const 0x0000000000000013 : i64\n  par i < 8192 {\n    %1 = load w[0] : f32\n"
         "    seq j < 20 reverse carry %2 = %1 {\n      %3 = index j + 1 : i64\n"
         "      %4 = le %3, %0 : bool\n      %5 = load x[20*i + j + 1] if %4 : f32\n"
         "      %6 = load x[i + 8192*j] : f32\n      %7 = div %5, %2 : f32\n"
         "      %8 = add %7, %6 : f32\n      put y[i + 8192*j] = %8\n      yield %8\n"
         "    } -> %9\n    put y[i] = %9\n  }\n"),
     false,
     {") block 64 ", "seq @serial j < 20 @early 8 reverse carry"}},
    {"of many points: when it is wanted",
     READS("i < 33000", "i + 33000*j"),
     false,
     {") block 256 ", "seq @serial j < 20 carry"}},
    {"along time: when it is wanted, by warps",
     READS("i < 8192", "20*i + j"),
     false,
     {") block 64 ", "seq @serial j < 20 carry"}},
    {"of a phase: whole blocks",
     TIMES("i < 8192"),
     true,
     {") block 256 ", "par @thread i < 8192 {"}},
    {"short ones of many rows: a thread",
     SCANS("j < 40000", "i < 20", "20*j + i"),
     false,
     {") block 256 price ", "par @thread j < 40000 {", "scan @serial i < 20 {"}},
    {"updates at indices that are data: indices",
     UPDATES("  seq j < 1000000 {\n" UPDATE("j") "  }\n"),
     false,
     {"block 256 price ", "seq @owner j < 1000000 {"}},
    {"loops of them in one another are one",
     UPDATES("  seq i < 1000 {\n  seq j < 1000 {\n" UPDATE("1000*i + j") "  }\n  }\n"),
     false,
     {"seq @owner i < 1000 {", "seq @serial j < 1000 {"}},
    {"a hundred of them: a thread would take longer than a sort",
     UPDATES("  seq j < 100 {\n" UPDATE("j") "  }\n"),
     false,
     {"block 256 price ", "seq @owner j < 100 {"}},
    {"of each of many points, still sooner than by a thread each",
     ROWS_OF_UPDATES("1000"),
     false,
     {"par @grid i < 2000 {", "seq @owner j < 1000 {"}},
    {"few of each: a thread has a point",
     ROWS_OF_UPDATES("100"),
     false,
     {"par @thread i < 2000 {", "seq @serial j < 100 @early "}},
    {"few of them: one thread",
     UPDATES("  seq j < 10 {\n" UPDATE("j") "  }\n"),
     false,
     {"block 1 group 1 grid 1 price ", "seq @serial j < 10 {"}},
    {"a row of a group is shared, or kept by the threads that put it",
     KERNEL("  local t: f32[1024]\n  local u: f32[1024]\n  par i < 4096 {\n"
            "    map k < 1024 {\n      %0 = load x[1024*i + k] : f32\n      put t[k] = %0\n"
            "      put u[k] = %0\n    }\n"
            "    fold l < 1024 {\n      %6 = load t[l] : f32\n      yield reduce_sum %6 "
            "sum64\n    } -> %1 : f32\n"
            "    map j < 1024 {\n      %2 = load t[j] : f32\n      %3 = load u[1023 - j] "
            ": f32\n      %4 = sub %2, %1 : f32\n      %5 = mul %4, %3 : f32\n"
            "      put y[1024*i + j] = %5\n    }\n  }\n"),
     false,
     {"local t: f32[1024] @register\n", "local u: f32[1024] @shared\n", "map @row j < 1024"}},
    {"a small product: rows for a thread",
     KERNEL("  par i < 65536, j < 16, k < 16 {\n    fold l < 16 {\n"
            "      %0 = load x[256*i + 16*j + l] : f32\n      %1 = load w[16*l + k] : f32\n"
            "      yield fma %0 %1 sum64\n    } -> %2 : f32\n"
            "    put y[256*i + 16*j + k] = %2\n  }\n"),
     false,
     {"block 64 price ", " @rows 2, ", "k < 16 @vector 4 {"}},
    {"what of a loop over time is the same for all points: a warp more",
     KERNEL("  %0 = const 0x3f800000 : f32\n  par i < 100000 {\n    %1 = load x[i] : f32\n"
            "    seq t < 1000 carry %2 = %1, %3 = %0 {\n      %4 = exp %3 : f32\n"
            "      %5 = tanh %4 : f32\n      %6 = tanh %5 : f32\n      %7 = tanh %6 : f32\n"
            "      %8 = tanh %7 : f32\n      %9 = tanh %8 : f32\n"
            "      %10 = fma %2, %9, %9 : f32\n      yield %10, %9\n    } -> %11, %12\n"
            "    put y[i] = %11\n  }\n"),
     false,
     {"par @thread i < 100000 {", "seq @ahead t < 1000"}},
    {"a tape that no cache holds: computed again, some steps at a time",
     KERNEL("  local tape: f32[1000]\n  par i < 100000 {\n    %0 = load x[i] : f32\n"
            "    seq t < 1000 carry %1 = %0 {\n      put tape[t] = %1\n"
            "      %2 = mul %1, %1 : f32\n      yield %2\n    } -> %3\n"
            "    seq s < 1000 reverse carry %4 = %3 {\n      %5 = load tape[s] : f32\n"
            "      %6 = mul %4, %5 : f32\n      yield %6\n    } -> %7\n"
            "    put y[i] = %7\n  }\n"),
     false,
     {"local tape: f32[1000] @again\n", "seq @serial t < 1000 @segment 25 carry"}},
    {"one that the caches hold is kept",
     KERNEL("  local tape: f32[1000]\n  par i < 1000 {\n    %0 = load x[i] : f32\n"
            "    seq t < 1000 carry %1 = %0 {\n      put tape[t] = %1\n"
            "      %2 = mul %1, %1 : f32\n      yield %2\n    } -> %3\n"
            "    seq s < 1000 reverse carry %4 = %3 {\n      %5 = load tape[s] : f32\n"
            "      %6 = mul %4, %5 : f32\n      yield %6\n    } -> %7\n"
            "    put y[i] = %7\n  }\n"),
     false,
     {"local tape: f32[1000]\n", "seq @serial t < 1000 carry"}},
    {"sums over the points of a network",
     "kernel k(x: f32[65536], w: f32[64], g: out f32[64]) {\n  local z: f32[8]\n"
     "  local a: f32[8]\n  fold n < 8192 {\n    map i < 8 {\n"
     "      %0 = load x[8*n + i] : f32\n      put a[i] = %0\n    }\n"
     "    contract z[j] = a[k], w[8*j + k] for j < 8 over k < 8\n    map l < 8, m < 8 {\n"
     "      %1 = load z[l] : f32\n      %2 = load a[m] : f32\n"
     "      put g[8*l + m] fma= %1, %2 in @n sum64\n    }\n  }\n}\n",
     false,
     {") as network block 256 group 4 price ", "local z: f32[8] @register\n",
      "local a: f32[8] @shared\n"}},
    {"of numbers of 64 bits: a thread has a point",
     "kernel k(x: f64[65536], w: f64[64], g: out f64[8]) {\n  local z: f64[8]\n"
     "  local a: f64[8]\n  fold n < 8192 {\n    map i < 8 {\n"
     "      %0 = load x[8*n + i] : f64\n      put a[i] = %0\n    }\n"
     "    contract z[j] = a[k], w[8*j + k] for j < 8 over k < 8\n    map l < 8 {\n"
     "      %1 = load z[l] : f64\n      put g[l] reduce_sum= %1 in @n sum64\n    }\n  }\n}\n",
     false,
     {") as network block 32 price ", "local z: f64[8]\n", "local a: f64[8]\n"}},
};
#define GPU_NESTS (sizeof gpu_nests / sizeof *gpu_nests)

#endif
