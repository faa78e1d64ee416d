// SPDX-License-Identifier: Apache-2.0
// Fission: which kernels become several, and that these do the same, bit for bit.
#include "nest_programs.h"

#include "schedule/copies.h"

// Of x: f32[60], i: i32[60], and what they put.
static const struct {
    const char *what, *text;
    uint32_t kernels;
} nests[] = {
    {"a scan and a fold over what it is made of",
     "kernel k0_scan(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  scan i < 60 {\n    %0 = load x[i] : f32\n    %1 = mul %0, %0 : f32\n"
     "    yield reduce_sum %1 serial -> %2 : f32\n    put y[i] = %2\n  }\n"
     "  fold j < 60 {\n    %3 = load x[j] : f32\n    yield reduce_max %3 free\n  } -> %4 : "
     "f32\n"
     "  put z[0] = %4\n}\n",
     2},
    {"a fold over what the scan has put",
     "kernel k0_scan(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  scan i < 60 {\n    %0 = load x[i] : f32\n    yield reduce_sum %0 serial -> %1 : f32\n"
     "    put y[i] = %1\n  }\n"
     "  fold j < 60 {\n    %2 = load y[j] : f32\n    yield reduce_max %2 free\n  } -> %3 : "
     "f32\n"
     "  put z[0] = %3\n}\n",
     2},
    {"values that go on: a number, and one for each point of a par",
     "kernel k0_softmax(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  %0 = const 0x3f000000 : f32\n"
     "  fold i < 60 {\n    %1 = load x[i] : f32\n    yield reduce_max %1 free\n  } -> %2 : "
     "f32\n"
     "  %3 = mul %2, %0 : f32\n"
     "  fold j < 60 {\n    %4 = load x[j] : f32\n    %5 = sub %4, %3 : f32\n"
     "    yield reduce_sum %5 sum64\n  } -> %6 : f32\n"
     "  map k < 60 {\n    %7 = load x[k] : f32\n    %8 = sub %7, %2 : f32\n"
     "    %9 = div %8, %6 : f32\n    put y[k] = %9\n  }\n"
     "  put z[0] = %6\n}\n",
     3},
    {"a map in a fold, and what the fold gives",
     "kernel k0_map(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  fold i < 3 {\n    map j < 20 {\n      %0 = load x[20*i + j] : f32\n"
     "      %1 = add %0, %0 : f32\n      put y[20*i + j] = %1\n    }\n"
     "    %2 = load x[20*i + 7] : f32\n    yield reduce_sum %2 sum64\n  } -> %3 : f32\n"
     "  %4 = mul %3, %3 : f32\n  put z[0] = %4\n}\n",
     2},
    {"a map of few points stays",
     "kernel k0_map(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  fold i < 20 {\n    map j < 3 {\n      %0 = load x[3*i + j] : f32\n"
     "      put y[3*i + j] = %0\n    }\n"
     "    %1 = load x[3*i] : f32\n    yield reduce_sum %1 sum64\n  } -> %2 : f32\n"
     "  put z[0] = %2\n}\n",
     1},
    {"indices, products by fma and a test of a fold whose terms are folds",
     "kernel k0_arg(x: f32[60], y: out f32[2], z: out i64[1], t: out bool[1]) {\n"
     "  %0 = const 0x00000000 : f32\n"
     "  fold i < 3, j < 2 {\n"
     "    fold k < 70 {\n      %1 = load x[20*i + 10*j + 3] : f32\n      yield reduce_sum %1 "
     "sum64\n"
     "    } -> %2 : f32\n    %3 = load x[10*i + j] : f32\n    %4 = gt %2, %0 : bool\n"
     "    yield argmax %2 free, fma %2 %3 sum64, reduce_and %4 free\n  } -> %5 : f32, %6 : "
     "i64, %7 : f32, %8 : "
     "bool\n"
     "  put y[0] = %5\n  put y[1] = %7\n  put z[0] = %6\n  put t[0] = %8\n}\n",
     2},
    {"a fold of rows in a par of few points, between other loops",
     "kernel k0_rows(x: f32[60], y: out f32[3], z: out f32[60]) {\n"
     "  par b < 3 {\n"
     "    fold i < 20 {\n      %0 = load x[20*b + i] : f32\n      yield reduce_max %0 free\n"
     "    } -> %1 : f32\n"
     "    fold j < 2 {\n      map k < 10 {\n        %2 = load x[20*b + 10*j + k] : f32\n"
     "        fold l < 80 {\n          %3 = sub %2, %1 : f32\n          yield reduce_sum %3 "
     "sum64\n"
     "        } -> %4 : f32\n        put z[20*b + 10*j + k] = %4\n      }\n"
     "      %5 = load x[20*b + j] : f32\n      yield reduce_sum %5 sum64\n    } -> %6 : f32\n"
     "    %7 = add %6, %1 : f32\n    put y[b] = %7\n  }\n}\n",
     3},
    {"a running sum of dear terms, from the end, of a few points",
     "kernel k0_scan(x: f32[60], y: out f32[60]) {\n  par b < 3 {\n    scan i < 20 reverse {\n"
     "      %0 = load x[3*i + b] : f32\n      %1 = sin %0 : f32\n      %2 = log %1 : f32\n"
     "      yield reduce_sum %2 serial -> %3 : f32\n      %4 = mul %3, %0 : f32\n"
     "      put y[b + 3*i] = %4\n    }\n  }\n}\n",
     2},
    {"loops over time and tests in the terms",
     "kernel k0_time(x: f32[60], y: out f32[1], z: out f32[1]) {\n"
     "  %0 = const 0x3f800000 : f32\n  %1 = const 0x41200000 : f32\n"
     "  fold i < 60 {\n    %2 = load x[i] : f32\n"
     "    seq t < 5 carry %3 = %2 {\n      %4 = mul %3, %2 : f32\n      yield %4\n    } -> %5\n"
     "    while carry %6 = %0 {\n      %7 = lt %6, %1 : bool\n      yield %7\n    } do {\n"
     "      %8 = add %6, %0 : f32\n      yield %8\n    } -> %9\n"
     "    yield reduce_sum %5 sum64, reduce_max %9 free\n  } -> %10 : f32, %11 : f32\n"
     "  put y[0] = %10\n  put z[0] = %11\n}\n",
     3},
    {"a running sum of folds, from the end, of a few points",
     "kernel k0_scan(x: f32[60], y: out f32[60]) {\n  %0 = const 0x3f000000 : f32\n"
     "  par b < 3 {\n    %1 = load x[b] : f32\n    scan i < 20 reverse {\n"
     "      %2 = load x[3*i + b] : f32\n"
     "      fold k < 70 {\n        %3 = mul %2, %1 : f32\n        yield reduce_sum %3 sum64\n"
     "      } -> %4 : f32\n      %5 = mul %4, %0 : f32\n"
     "      yield reduce_sum %5 serial -> %6 : f32\n      %7 = mul %6, %2 : f32\n"
     "      put y[b + 3*i] = %7\n    }\n  }\n}\n",
     2},
    {"a running sum of folds that are put as well",
     "kernel k0_scan(x: f32[60], y: out f32[60], z: out f32[60]) {\n"
     "  scan i < 60 {\n    fold k < 70 {\n      %0 = load x[i] : f32\n"
     "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    %2 = neg %1 : f32\n"
     "    put z[i] = %2\n    yield reduce_sum %1 serial -> %3 : f32\n    put y[i] = %3\n  "
     "}\n}\n",
     2},
    {"a running sum of folds whose row a map reads",
     "kernel k0_scan(x: f32[60], y: out f32[60], z: out f32[60]) {\n  local row: f32[20]\n"
     "  par b < 3 {\n    scan i < 20 {\n      fold k < 70 {\n"
     "        %0 = load x[20*b + i] : f32\n        yield reduce_sum %0 sum64\n      } -> %1 : "
     "f32\n      put row[i] = %1\n      yield reduce_sum %1 serial -> %2 : f32\n"
     "      put y[20*b + i] = %2\n    }\n    map j < 20 {\n      %3 = load row[j] : f32\n"
     "      %4 = neg %3 : f32\n      put z[20*b + j] = %4\n    }\n  }\n}\n",
     3},
    {"a running sum that is multiplied by the fold stays",
     "kernel k0_scan(x: f32[60], y: out f32[60]) {\n"
     "  scan i < 60 {\n    fold k < 70 {\n      %0 = load x[i] : f32\n"
     "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
     "    yield reduce_sum %1 serial -> %2 : f32\n    %3 = mul %2, %1 : f32\n"
     "    put y[i] = %3\n  }\n}\n",
     1},
    {"the largest of what a network gives",
     "kernel points_3(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  local row: f32[6]\n  local next: f32[6]\n"
     "  fold n < 10 {\n    map j < 6 {\n      %0 = load x[6*n + j] : f32\n      put row[j] = "
     "%0\n    }\n"
     "    contract next[j] = row[k], x[j + 6*k] for j < 6 over k < 6\n"
     "    map j < 6 {\n      %1 = load next[j] : f32\n      put y[6*n + j] = %1\n    }\n"
     "    %2 = load next[3] : f32\n    yield reduce_max %2 free\n  } -> %3 : f32\n"
     "  put z[0] = %3\n}\n",
     2},
    {"a row of the whole kernel becomes memory",
     "kernel k0_kept(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  local row: f32[60]\n"
     "  fold i < 60 {\n    %0 = load x[i] : f32\n    %1 = neg %0 : f32\n    put row[i] = %1\n"
     "    yield reduce_sum %1 sum64\n  } -> %2 : f32\n"
     "  scan j < 60 {\n    %3 = load row[j] : f32\n    %4 = div %3, %2 : f32\n"
     "    yield reduce_sum %4 serial -> %5 : f32\n    put y[j] = %5\n  }\n  put z[0] = %2\n}\n",
     2},
    {"a row of a point becomes memory",
     "kernel k0_kept(x: f32[60], y: out f32[60], z: out f32[3]) {\n"
     "  local row: f32[20]\n"
     "  par b < 3 {\n"
     "    map i < 20 {\n      %0 = load x[20*b + i] : f32\n      %1 = neg %0 : f32\n"
     "      put row[i] = %1\n    }\n"
     "    fold j < 20 {\n      %2 = load row[j] : f32\n      seq t < 3 carry %3 = %2 {\n"
     "        %4 = mul %3, %2 : f32\n        yield %4\n      } -> %5\n"
     "      put y[20*b + j] = %5\n      yield reduce_sum %5 sum64\n    } -> %6 : f32\n"
     "    put z[b] = %6\n  }\n}\n",
     3},
    {"two folds, a map and numbers of points that lie beside one another",
     "kernel k0_columns(x: f32[60], y: out f32[60], z: out f32[30]) {\n"
     "  %0 = const 0x40000000 : f32\n"
     "  par c < 30 {\n"
     "    fold i < 2 {\n      %1 = load x[30*i + c] : f32\n      yield reduce_sum %1 sum64\n"
     "    } -> %2 : f32\n    %3 = div %2, %0 : f32\n"
     "    fold j < 2 {\n      %4 = load x[30*j + c] : f32\n      %5 = sub %4, %3 : f32\n"
     "      %6 = mul %5, %5 : f32\n      yield reduce_sum %6 sum64\n    } -> %7 : f32\n"
     "    %8 = rsqrt %7 : f32\n"
     "    map k < 2 {\n      %9 = load x[30*k + c] : f32\n      %10 = sub %9, %3 : f32\n"
     "      %11 = mul %10, %8 : f32\n      put y[30*k + c] = %11\n    }\n"
     "    put z[c] = %8\n  }\n}\n",
     4},
    {"a row of points that lie beside one another becomes memory that lies so",
     "kernel k0_columns(x: f32[60], y: out f32[60]) {\n  local row: f32[2]\n"
     "  par c < 30 {\n"
     "    fold i < 2 {\n      %1 = load x[30*i + c] : f32\n      %2 = exp %1 : f32\n"
     "      put row[i] = %2\n      yield reduce_max %2 free\n    } -> %3 : f32\n"
     "    map k < 2 {\n      %4 = load row[k] : f32\n      %5 = sub %4, %3 : f32\n"
     "      put y[30*k + c] = %5\n    }\n  }\n}\n",
     2},
    {"two loops that put parts of one result",
     "kernel k0_parts(x: f32[60], y: inout f32[60]) {\n"
     "  scan i < 30 {\n    %0 = load x[i] : f32\n    yield reduce_sum %0 serial -> %1 : f32\n"
     "    put y[i] = %1\n  }\n"
     "  map j < 30 {\n    %2 = load x[j] : f32\n    put y[j + 30] = %2\n  }\n}\n",
     1},
    {"what is read before it is written, beside what is written before it is read",
     "kernel k0_order(x: f32[60], y: inout f32[60], z: out f32[1], w: out f32[1]) {\n"
     "  %0 = load y[3] : f32\n"
     "  fold i < 60 {\n    %1 = load y[i] : f32\n    yield reduce_sum %1 sum64\n  } -> %2 : "
     "f32\n"
     "  put z[0] = %2\n"
     "  map j < 60 {\n    %3 = load x[j] : f32\n    %4 = add %3, %0 : f32\n    put y[j] = %4\n "
     " }\n"
     "  put w[0] = %0\n}\n",
     1},
    {"updates of elements that accumulate over the fold",
     "kernel k0_accumulates(x: f32[60], y: out f32[20], z: out f32[1]) {\n"
     "  fold i < 3 {\n    map j < 20 {\n      %0 = load x[20*i + j] : f32\n"
     "      put y[j] reduce_sum= %0 in @i sum64\n    }\n"
     "    %1 = load x[i] : f32\n    yield reduce_sum %1 sum64\n  } -> %2 : f32\n  put z[0] = "
     "%2\n}\n",
     2},
    {"nothing is left of the fold",
     "kernel k0_accumulates(x: f32[60], y: out f32[20], z: out f32[1]) {\n"
     "  fold i < 3 {\n    %0 = load x[i] : f32\n"
     "    map j < 20 {\n      %1 = load x[20*i + j] : f32\n"
     "      put y[j] fma= %0, %1 in @i sum64\n    }\n"
     "    put z[0] fma= %0, %0 in @i sum64\n  }\n}\n",
     2},
    {"a sum and a map in a fold over which elements and a number accumulate",
     "kernel k0_accumulates(x: f32[60], y: out f32[20], z: out f32[1], w: out f32[60]) {\n"
     "  fold i < 3 {\n    fold k < 20 {\n      %0 = load x[20*i + k] : f32\n"
     "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
     "    map j < 20 {\n      %2 = load x[20*i + j] : f32\n      %3 = mul %2, %1 : f32\n"
     "      put w[20*i + j] = %3\n      put y[j] fma= %3, %1 in @i sum64\n    }\n"
     "    put z[0] reduce_max= %1 in @i free\n  }\n}\n",
     5},
    {"the same for each point of a par",
     "kernel k0_accumulates(x: f32[60], y: out f32[20], z: out f32[4]) {\n"
     "  par l < 4 {\n    fold i < 3 {\n      fold k < 5 {\n"
     "        %0 = load x[15*l + 5*i + k] : f32\n        yield reduce_sum %0 sum64\n"
     "      } -> %1 : f32\n"
     "      map j < 5 {\n        %2 = load x[15*l + 5*i + j] : f32\n"
     "        put y[5*l + j] fma= %2, %1 in @i sum64\n      }\n"
     "      yield reduce_max %1 free\n    } -> %3 : f32\n    put z[l] = %3\n  }\n}\n",
     3},
    {"products of a row that a fold has with itself, of which the row is kept",
     "kernel k0_accumulates(x: f32[60], y: out f32[20]) {\n  local t: f32[5]\n"
     "  fold i < 3 {\n    map j < 5 {\n      %0 = load x[5*i + j] : f32\n"
     "      %1 = mul %0, %0 : f32\n      put t[j] = %1\n    }\n"
     "    map k < 4, l < 5 {\n      %2 = load t[k] : f32\n      %3 = load t[l] : f32\n"
     "      put y[5*k + l] fma= %2, %3 in @i sum64\n    }\n  }\n}\n",
     4},
    {"some of what accumulates is left out, so that it stays",
     "kernel k0_accumulates(x: f32[60], y: out f32[20]) {\n"
     "  %0 = const 0x00000000 : f32\n"
     "  fold i < 3 {\n    map j < 20 {\n      %1 = load x[20*i + j] : f32\n"
     "      %2 = gt %1, %0 : bool\n"
     "      put y[j] reduce_sum= %1 if %2 in @i sum64\n    }\n  }\n}\n",
     1},
    {"points, and what could stand in front of them",
     "kernel k0_map(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
     "  map i < 60 {\n    %0 = load x[i] : f32\n    %1 = add %0, %0 : f32\n    put y[i] = %1\n"
     "  }\n  %2 = load x[7] : f32\n  put z[0] = %2\n}\n",
     1},
    {"one loop with plain statements around",
     "kernel k0_one(x: f32[60], z: out f32[1]) {\n"
     "  fold i < 60 {\n    %0 = load x[i] : f32\n    yield reduce_sum %0 sum64\n  } -> %1 : "
     "f32\n"
     "  put z[0] = %1\n}\n",
     1},
};

// Threads share points that are the only loop of a kernel, and its end.
static bool ends_in_points(const struct nest *n)
{
    uint32_t loops = 0;
    bool has_points = false, ends = false;
    nest_for_each (s, n, 0) {
        ends = s->body != NEST_NONE;
        loops += ends;
        has_points |= s->kind == NEST_PAR || s->kind == NEST_MAP;
    }
    return ends || loops > 1 || !has_points;
}

static void split(struct nest_program *p, const char *what, uint32_t kernels)
{
    struct strbuf report = strbuf_make(arena), text = strbuf_make(arena);
    schedule_fission(p, &(struct schedule_options){.large = true});
    schedule_sort_memories(p);
    plan_memory(p, NULL, false);
    schedule_print(&text, p);
    ck_assert_msg(nest_program_verify(p, &report) + plan_verify(p, &report) == 0, "%s: %s\n%s",
                  what, report.text, text.text);
    ck_assert_msg(p->nests.count == kernels, "%s: %u kernels\n%s", what, p->nests.count,
                  text.text);
    for (uint32_t i = 0; i < p->nests.count; i++)
        ck_assert_msg(ends_in_points(p->nests.at[i]), "%s: %s", what, text.text);
}

START_TEST(parts_do_the_same)
{
    size_t bytes, others;
    struct nest_program *p = program_of(nests[_i].text);
    char *want = results(p, &bytes);
    split(p, nests[_i].what, nests[_i].kernels);
    char *got = results(p, &others);
    ck_assert_uint_eq(bytes, others);
    ck_assert_msg(!memcmp(got, want, bytes), "%s: it does something else", nests[_i].what);
}
END_TEST

// What is stored for elements that accumulate has the axes that it varies along, and no others.
START_TEST(rows_are_kept_as_rows)
{
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
        struct nest_program *p = program_of(nests[i].text);
        if (!strstr(nests[i].what, "of which the row is kept"))
            continue;
        schedule_fission(p, &(struct schedule_options){.large = true});
        for (uint32_t k = 0; k < p->memories.count; k++)
            ck_assert(p->memories.at[k].kind != NEST_TEMPORARY ||
                      p->memories.at[k].count <= 15);
    }
}
END_TEST

// A kernel that is worth no launch stays, unless a thread would do it.
START_TEST(little_work_stays)
{
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
        struct nest_program *p = program_of(nests[i].text);
        schedule_fission(p, &(struct schedule_options){0});
        ck_assert_uint_le(p->nests.count, nests[i].kernels);
    }
    struct nest_program *p = program_of(nests[0].text);
    schedule_fission(p, &(struct schedule_options){0});
    ck_assert_uint_eq(p->nests.count, 1);
}
END_TEST

static int64_t price_of_loops, price_of_one;

static int64_t price(const struct nest *n)
{
    int loops = 0;
    nest_for_all (s, n)
        loops += s->body != NEST_NONE;
    return loops > 1 ? price_of_loops : price_of_one;
}

// What no rule splits becomes several kernels where they are clearly better by their prices.
START_TEST(prices_split)
{
    static const struct {
        int64_t of_loops, of_one;
        bool are_several;
    } of[] = {{1000000, 10000, true}, {1000000, 400000, false}, {5000, 1, false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct nest_program *p = program_of(nests[0].text);
        size_t bytes;
        char *want = results(p, &bytes);
        price_of_loops = of[i].of_loops;
        price_of_one = of[i].of_one;
        schedule_fission(p, &(struct schedule_options){.gpu_price = price});
        ck_assert_int_eq(p->nests.count > 1, of[i].are_several);
        ck_assert(!memcmp(results(p, &bytes), want, bytes));
    }
}
END_TEST

// Nor do what each point puts and its map stay together then.
START_TEST(prices_split_a_map_from_a_put)
{
    struct nest_program *p = program_of(
        "kernel k0_both(x: f32[60], y: out f32[60], z: out f32[12]) {\n  par i < 12 {\n"
        "    %0 = load x[5*i] : f32\n    map j < 5 {\n      %1 = load x[i + 12*j] : f32\n"
        "      %2 = sub %1, %0 : f32\n      put y[i + 12*j] = %2\n    }\n"
        "    put z[i] = %0\n  }\n}\n");
    size_t bytes;
    char *want = results(p, &bytes);
    price_of_loops = 1000000;
    price_of_one = 10000;
    schedule_fission(p, &(struct schedule_options){.gpu_price = price});
    ck_assert_uint_eq(p->nests.count, 2);
    ck_assert(!memcmp(results(p, &bytes), want, bytes));
}
END_TEST

// Sums of rows and of columns, which lie in two directions: whatever threads do, one of the loads is of as many lines
// of memory as threads.
START_TEST(sums_go_their_own_way)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[4096] \"x\"\n  memory output 0 : f32[64] \"y\"\n"
        "  step kernel 0 (0, 1) \"\"\n}\n"
        "kernel k0_sums(x: f32[4096], y: out f32[64]) {\n  par i < 64 {\n"
        "    fold j < 64 {\n      %0 = load x[64*i + j] : f32\n      %1 = load x[i + 64*j] : "
        "f32\n"
        "      %2 = mul %1, %1 : f32\n"
        "      yield reduce_sum %0 sum64, argmax %2 free, reduce_sum %2 sum64\n"
        "    } -> %3 : f32, %4 : f32, %5 : i64, %6 : f32\n"
        "    %7 = add %3, %4 : f32\n    %8 = mul %7, %6 : f32\n    put y[i] = %8\n  }\n}\n";
    struct nest_program *p;
    size_t bytes;
    p = after_fission(text);
    ck_assert_uint_eq(p->nests.count, 1);
    char *want = results(p, &bytes);
    split(p, "two directions", 2);
    ck_assert(!memcmp(results(p, &bytes), want, bytes));
}
END_TEST

// The second loop writes over what both read.
START_TEST(memory_in_place)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 64\n"
        "  constants 0\n  memory input 0 : f32[60] \"x\"\n  memory output 0 : f32[60] \"y\"\n"
        "  memory output 1 : f32[1] \"z\"\n"
        "  step copy (1, 0) \"\"\n  step kernel 0 (1, 1, 2) \"\"\n}\n"
        "kernel k0_in_place(x: f32[60], y: out f32[60], z: out f32[1]) {\n"
        "  fold i < 60 {\n    %0 = load x[i] : f32\n    yield reduce_sum %0 sum64\n  } -> %1 : "
        "f32\n"
        "  map j < 60 {\n    %2 = load x[j] : f32\n    %3 = mul %2, %1 : f32\n"
        "    put y[j] = %3\n  }\n  put z[0] = %1\n}\n";
    struct nest_program *p;
    size_t bytes;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s", jot_error_message());
    char *want = results(p, &bytes);
    split(p, "in place", 2);
    ck_assert(!memcmp(results(p, &bytes), want, bytes));
    ck_assert_uint_eq(p->steps.count, 3);
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, parts_do_the_same, 0, sizeof nests / sizeof *nests);
    tcase_add_test(c, rows_are_kept_as_rows);
    tcase_add_test(c, little_work_stays);
    tcase_add_test(c, prices_split);
    tcase_add_test(c, prices_split_a_map_from_a_put);
    tcase_add_test(c, memory_in_place);
    tcase_add_test(c, sums_go_their_own_way);
}

int main(void) { return suite_run("fission", add_tests); }
