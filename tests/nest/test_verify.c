// SPDX-License-Identifier: Apache-2.0
// Every class of fault that the verifier finds, in a nest that has it, and near misses that have
// none.
#include "nest/program.h"
#include "nest_support.h"

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

// Buffers and constants for the statements of a body.
static struct nest *parse_body(const char *body, const char *words)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_add(&s, "kernel f(x: f32[64], i: i32[64], g: bool[64], h: f16[64], y: out f32[64], "
                   "z: out f16[64], w: out i64[64], s: work u8[64]) ");
    strbuf_add(&s, words);
    strbuf_add(&s, " {\n  local t: f32[64]\n  local m: f32[64]\n"
                   "  %0 = const 0x3f800000 : f32\n  %1 = const 0x00000001 : i32\n"
                   "  %2 = const 0x01 : bool\n  %3 = const 0x0000000000000001 : i64\n"
                   "  %4 = const 0x3c00 : f16\n");
    strbuf_add(&s, body);
    strbuf_add(&s, "}\n");
    return parse_nest(arena, s.text);
}

struct fault {
    const char *body, *message; // a message of NULL: there is none
};

// Words behind the parameters are of the kernel.
static void check_fault(const struct fault *f, const char *words)
{
    struct nest *n = parse_body(f->body, words);
    struct strbuf report = strbuf_make(arena);
    int faults = nest_verify(n, &report);
    ck_assert_int_eq(faults, nest_verify(n, NULL));
    if (!f->message) {
        ck_assert_msg(faults == 0, "%s%s", report.text, f->body);
        return;
    }
    ck_assert_msg(faults > 0, "no fault found, not '%s', in\n%s", f->message, f->body);
    ck_assert_msg(strstr(report.text, f->message), "not '%s' but\n%s", f->message, report.text);
}

#define FAULT_TEST(name, ...)                                                                  \
    static const struct fault name##_faults[] = {__VA_ARGS__};                                 \
    START_TEST(name) { check_fault(&name##_faults[_i], ""); }                                  \
    END_TEST

#define MAP "map a < 8 {\n"
#define END "}\n"

FAULT_TEST(scopes,
           {MAP "%5 = load x[a] : f32\n" END "put y[0] = %5\n", "used outside the block"},
           {"map a < 8 {\n" END "%5 = index 1 : i32\n", NULL},
           {"seq a < 3 carry %5 = %0 {\nyield %5\n} -> %6\nput y[0] = %5\n", "used outside"},
           {"if %2 {\n%5 = neg %0 : f32\n} else {\nput y[0] = %5\n}\n", "used outside"},
           {"map a < 8 {\n%5 = index %1 + a : i32\n}\n", NULL},
           {"map a < 8 {\n%5 = index %0 + a : i32\n}\n", "not an integer"})

FAULT_TEST(ops, {"%5 = add %0, %1 : f32\n", "its operands are f32 and i32"},
           {"%5 = add %0, %0 : f64\n", "its result is f32, not f64"},
           {"%5 = add %0 : f32\n", "it takes 2 operands, not 1"},
           {"%5 = add %2, %2 : bool\n", "does not take bool"},
           {"%5 = exp %1 : i32\n", "does not take i32"},
           {"%5 = eq %0, %0 : f32\n", "its result is bool, not f32"},
           {"%5 = eq %0, %0 : bool\n", NULL},
           {"%5 = select %0, %0, %0 : f32\n", "first operand is f32, not bool"},
           {"%5 = select %2, %0, %0 : f32\n", NULL},
           {"%5 = select %2, %0, %1 : f32\n", "its operands are f32 and i32"},
           {"%5 = convert %0 : i64\n", NULL}, {"%5 = bitcast %0 : i32\n", NULL},
           {"%5 = bitcast %0 : i64\n", "a bitcast of f32 to i64"},
           {"%5 = integer_pow %1 {-2, 0} : i32\n", "no negative powers"},
           {"%5 = reduce_precision %0 {0, 10} : f32\n", "1 to 11 exponent"},
           {"%5 = complex %0, %0 : c64\n", NULL},
           {"%5 = complex %4, %4 : c64\n", "f32 or f64 parts"},
           {"%5, %6 = threefry2x32 %1, %1, %1, %1 : i32\n", "it takes u32"},
           {"%5 = reduce_sum %0 : f32\n", "not elementwise"},
           {"%5 = index 1 : f32\n", "an index is an integer"})

FAULT_TEST(ranges, {"map a < 64 {\n%5 = load x[a] : f32\n}\n", NULL},
           {"map a < 65 {\n%5 = load x[a] : f32\n}\n", "x[64] is read"},
           {"map a < 64 {\n%5 = load x[a - 1] : f32\n}\n", "x[-1] is read"},
           {"map a < 64 {\n%5 = load x[-a + 63] : f32\n}\n", NULL},
           {"map a < 64 {\n%5 = load x[-a + 62] : f32\n}\n", "x[-1] is read"},
           {"map a < 64 {\n%5 = load x[a + 1] if %2 : f32\n}\n", NULL},
           {"map a < 64 {\nif %2 {\n%5 = load x[a + 1] : f32\n}\n}\n", NULL},
           {"map a < 64 {\n%5 = load x[a + %1] : f32\n}\n", NULL},
           {"map a < 0 {\n%5 = load x[a + 100] : f32\n}\n", NULL},
           {"map a < 8, b < 8 {\nput y[8*a + b] = %0\n}\n", NULL},
           {"map a < 8, b < 8 {\nput y[9*a + b] = %0\n}\n", "y[70] is put"})

FAULT_TEST(types, {"put y[0] = %1\n", "its value is i32, not f32"},
           {"put y[0] = %0 if %1\n", "its guard is i32, not bool"},
           {"put x[0] = %0\n", "x is an input"},
           {"%5 = const 0x01 : u8\nput s[0] = %5\n", "s is for the threads alone"},
           {"%5 = load s[0] : u8\n", "s is read before anything is put into it"},
           {"%5 = load x[0] if %0 : f32\n", "its guard is f32, not bool"},
           {"if %0 {\n}\n", "its predicate is f32"},
           {"if %2 {\nyield %0\n} else {\nyield %1\n} -> %5\n", "a value it yields is"},
           {"seq a < 3 carry %5 = %0 {\nyield %1\n} -> %6\n",
            "a value it yields is i32, not f32"},
           {"seq a < 3 carry %5 = %0 {\n}\n", "1 carries, 0 yields"},
           {"while {\nyield %0\n} do {\n}\n", "its test is f32"},
           {"while carry %5 = %0 {\nyield %2\n} do {\nyield %1\n} -> %6\n",
            "a value it yields is i32"})

FAULT_TEST(
    one_point, {"map a < 8, b < 8 {\nput y[a + b] = %0\n}\n", "several iterations put"},
    {"map a < 8 {\nput y[0] = %0\n}\n", "every iteration of a loop puts"},
    {"map a < 1 {\nput y[0] = %0\n}\n", NULL}, {"map a < 8 {\nput y[0] = %0 if %2\n}\n", NULL},
    {"map a < 8, b < 4 {\nput y[a + 8*b] = %0\n}\n", NULL},
    {"map a < 8, b < 4 {\nput y[a + 7*b] = %0\n}\n", "several iterations put"},
    {"map a < 3, b < 2 {\nput y[2*a + 3*b] = %0\n}\n", NULL},
    {"map a < 4, b < 3 {\nput y[2*a + 3*b] = %0\n}\n", "several iterations put"},
    {"map a < 8 {\nput y[%1] = %0\n}\n", NULL}, {"seq a < 8 {\nput y[0] = %0\n}\n", NULL},
    {"fold a < 8 {\nput y[0] = %0\nyield reduce_sum %0 sum64\n} -> %5 : f32\n",
     "every iteration"},
    {"par a < 8 {\nmap b < 8 {\nput t[b] = %0\n}\n%5 = load t[0] : f32\nput y[a] = %5\n}\n",
     NULL},
    {"par a < 8 {\nmap b < 8 {\nput y[b] = %0\n}\n}\n", "every iteration"},
    {"par a < 8 {\nput t[a] = %0\n}\npar b < 8 {\n%5 = load t[b] : f32\nput y[b] = %5\n}\n",
     "belongs to a point"})

FAULT_TEST(accumulation,
           {"fold n < 9 {\nmap k < 8 {\nput y[k] reduce_sum= %0 in @n sum64\n}\n}\n", NULL},
           {"fold n < 9 {\nmap k < 8 {\nput y[k + n] reduce_sum= %0 in @n sum64\n}\n}\n",
            "uses axis n"},
           {"fold n < 9 {\nmap k < 8 {\nput y[0] reduce_sum= %0 in @n sum64\n}\n}\n",
            "every iteration"},
           {"map n < 9 {\nput y[0] reduce_sum= %0 in @n sum64\n}\n", "is not a fold around it"},
           {"fold n < 9 {\nput y[0] exp= %0 in @n sum64\n}\n", "not one that accumulates"},
           {"fold n < 9 {\nput y[0] fma= %0 in @n sum64\n}\n", "fma combines 1 values"},
           {"fold n < 9 {\nput y[0] fma= %0, %0 in @n sum64\n}\n", NULL},
           {"fold n < 9 {\nput y[0] reduce_sum= %1 in @n sum64\n}\n",
            "combining i32 gives i32, not f32"},
           {"fold n < 9 {\nput y[0] reduce_sum= %4 in @n sum64\n}\n", NULL},
           {"fold n < 9 {\nput m[0] reduce_sum= %0 in @n sum64\n%5 = load m[0] : f32\n}\n",
            "read in the loop that accumulates it"},
           {"fold n < 9 {\nput m[0] reduce_sum= %0 in @n sum64\n}\n%5 = load m[0] : f32\n",
            NULL},
           {"par r < 4 {\nfold n < 9 {\nput y[%1] reduce_sum= %0 in @n sum64\n}\n}\n",
            "stores the whole"},
           {"par r < 4 {\nfold n < 9 {\nput t[%1] reduce_sum= %0 in @n sum64\n}\n%5 = load "
            "t[0] : f32\n"
            "put y[r] = %5\n}\n",
            NULL})

FAULT_TEST(
    hazards, {"%5 = load t[0] : f32\n", "read before anything is put"},
    {"seq a < 3 {\n%5 = load m[0] : f32\nput m[0] = %5\n}\n", NULL},
    {"map a < 8 {\nput m[a] = %0\n}\nmap b < 7 {\n%5 = load m[b + 1] : f32\n}\n", NULL},
    {"map a < 8 {\nput m[a] = %0\n}\nmap a < 7 {\n%5 = load m[a + 1] : f32\nput m[a] = %5\n}\n",
     "another iteration of a puts into m"},
    {"map a < 8 {\nput m[a] = %0\n%5 = load m[a] : f32\n}\n", NULL},
    {"map a < 8 {\nput m[a] = %0\n}\nmap a < 8 {\n%5 = load m[0] : f32\nput m[a] = %5\n}\n",
     "another iteration of a puts into m"},
    {"map a < 8 {\nput m[2*a] = %0\n}\nmap a < 8 {\n%5 = load m[2*a] : f32\n"
     "put m[2*a + 1] = %5\n}\n",
     NULL},
    {"fold a < 8 {\nput y[a] = %0\n%5 = load y[-a + 7] : f32\nyield reduce_sum %5 sum64\n} -> "
     "%6 : "
     "f32\n",
     "another iteration of a puts into y"},
    {"map a < 8 {\n%5 = load y[a] : f32\n}\n", "read before anything is put"})

FAULT_TEST(folds,
           {"fold a < 8 {\nyield reduce_sum %4 sum64\n} -> %5 : f16\n",
            "combining f16 gives f32, not f16"},
           {"fold a < 8 {\nyield fma %4 %4 sum64\n} -> %5 : f16\n",
            "combining f16 gives f32, not f16"},
           {"scan a < 8 {\nyield reduce_prod %4 serial -> %5 : f16\nput z[a] = %5\n}\n",
            "combining f16 gives f32, not f16"},
           {"fold a < 8 {\nput z[0] reduce_sum= %4 in @a sum64\n}\n",
            "combining f16 gives f32, not f16"},
           {"fold a < 8 {\nyield reduce_max %4 free\n} -> %5 : f16\n", NULL},
           {"fold a < 8 {\nyield reduce_sum %4 sum64\n} -> %5 : f32\n", NULL},
           {"fold a < 8 {\nyield reduce_sum %0 sum64\n} -> %5 : f64\n",
            "combining f32 gives f32, not f64"},
           {"fold a < 8 {\nyield reduce_sum %2 sum64\n} -> %5 : bool\n",
            "reduce_sum does not take bool"},
           {"fold a < 8 {\nyield add %0 sum64\n} -> %5 : f32\n", "not one that it takes"},
           {"fold a < 8 {\nyield fma %0 %1 sum64\n} -> %5 : f32\n",
            "its values are f32 and i32"},
           {"fold a < 0 {\nyield argmax %0 free\n} -> %5 : f32, %6 : i64\n", "among none"},
           {"fold a < 0 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n", NULL},
           {"scan a < 8 {\nyield reduce_sum %0 serial -> %5 : f32\nput y[a] = %5\n}\n", NULL},
           {"scan a < 8 {\nyield cummax %0 free -> %5 : f32\nput y[a] = %5\n}\n", NULL},
           {"scan a < 8 {\nyield argmax %0 free -> %5 : f32, %6 : i64\n}\n",
            "not one that it takes"},
           {"fold {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n", "it has 0 axes, not some"},
           {"scan a < 8 {\n}\n", "a scan has one yield, not 0"},
           {"scan a < 8, b < 2 {\nyield reduce_sum %0 serial -> %5 : f32\n}\n",
            "it has 2 axes, not one"})

FAULT_TEST(orders, {"fold a < 8 {\nyield reduce_sum %1 free\n} -> %5 : i32\n", NULL},
           {"fold a < 8 {\nyield reduce_sum %1 sum64\n} -> %5 : i32\n", NULL},
           {"fold a < 8 {\nyield reduce_max %0 free\n} -> %5 : f32\n", NULL},
           {"fold a < 8 {\nyield reduce_or %2 free\n} -> %5 : bool\n", NULL},
           {"fold a < 8 {\nyield reduce_sum %0 free\n} -> %5 : f32\n",
            "reduce_sum of f32 has an order"},
           {"fold a < 8 {\nyield reduce_prod %4 free\n} -> %5 : f32\n",
            "reduce_prod of f16 has an order"},
           {"fold a < 8 {\nyield reduce_sum %0 serial\n} -> %5 : f32\n",
            "its order is sum64 or free, not serial"},
           {"fold n < 9 {\nput y[0] fma= %0, %0 in @n free\n}\n", "fma of f32 has an order"},
           {"fold n < 9 {\nput y[0] fma= %0, %0 in @n serial\n}\n",
            "its order is sum64 or free, not serial"},
           {"scan a < 8 {\nyield reduce_sum %1 free -> %5 : i32\n}\n", NULL},
           {"scan a < 8 {\nyield reduce_sum %1 serial -> %5 : i32\n}\n", NULL},
           {"scan a < 8 {\nyield reduce_sum %0 free -> %5 : f32\n}\n",
            "reduce_sum of f32 has an order"},
           {"scan a < 8 {\nyield cumlogsumexp %0 free -> %5 : f32\n}\n",
            "cumlogsumexp of f32 has an order"},
           {"scan a < 8 {\nyield reduce_sum %0 sum64 -> %5 : f32\n}\n",
            "its order is serial or free, not sum64"})

FAULT_TEST(levels, {"map a < 8 @vector 8 {\nput y[a] = %0\n}\n", NULL},
           {"map a < 8, b < 8 @vector 16 {\nput y[8*a + b] = %0\n}\n", NULL},
           {"map a < 8 @vector 3 {\n}\n", "no vectors of 3 lanes"},
           {"map a < 8 @vector 1 {\n}\n", "no vectors of 1 lanes"},
           {"map a < 8 @vector 128 {\n}\n", "no vectors of 128 lanes"},
           {"map a < 8 @vector 4, b < 8 @vector 4 {\n}\n", "2 axes have lanes"},
           {"fold a < 8, b < 2 @vector 2 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n", NULL},
           {"fold a < 8 @vector 4, b < 2 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n",
            "elements of axis a go one by one"},
           {"scan a < 8 @vector 4 {\nyield reduce_sum %0 serial -> %5 : f32\n}\n",
            "elements of axis a go one by one"},
           {"seq a < 8 @vector 4 {\n}\n", "elements of axis a go one by one"},
           {"contract t[a] = x[b], x[b] for a < 4 @vector 4 over b < 4\n",
            "elements of axis a go one by one"})

#define SUM(level) "fold " level "b < 8 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n"
#define PUT "put y[a] = %5\n"
#define ROWS(level) "map " level "a < 8 {\n"
#define SQUARE(a, b) "map @thread a < 8" a ", b < 8" b " {\nput y[8*a + b] = %0\n}\n"

#define FILLS(level) "map " level " a < 8 {\nput t[a] = %0\n}\n"

static const struct {
    struct fault fault;
    const char *words;
} owned[] = {
    {{ROWS("@group ") SUM("@thread ") PUT END, NULL}, "block 64 group 32"},
    {{ROWS("@grid ") SUM("@thread ") PUT END, NULL}, "block 64 group 64"},
    {{ROWS("@thread ") SUM("@serial ") PUT END, NULL}, "block 64"},
    {{ROWS("@thread ") SUM("@thread ") PUT END, "@thread stands in a loop @thread"},
     "block 64"},
    {{ROWS("@group ") "map @group b < 8 {\nput y[8*a + b] = %0\n}\n" END,
      "@group stands in a loop @group"},
     "block 64 group 32"},
    {{ROWS("@thread ") "map @serial b < 4 {\n" SUM("@thread ") "put y[8*a + b] = %5\n}\n" END,
      "@thread stands in a loop @thread"},
     "block 64"},
    {{ROWS("@group ") "seq @serial c < 4 {\nmap @thread b < 8 {\nput t[b] = %0\n}\n}\n" END,
      NULL},
     "block 64 group 32"},
    {{ROWS("@thread ") "seq @ahead c < 4 {\n}\nput y[a] = %0\n" END, NULL}, "block 64"},
    {{ROWS("@group ") "seq @ahead c < 4 {\n}\nput y[a] = %0\n" END,
      "@ahead stands in a loop @group"},
     "block 64 group 64"},
    {{"seq @thread a < 8 {\nput y[0] = %0\n}\n", "not shared out @thread"}, "block 64"},
    {{"scan @owner a < 8 {\nyield reduce_sum %0 serial -> %5 : f32\n}\n",
      "not shared out @owner"},
     "block 64"},
    {{"seq @owner a < 8 {\n}\n", NULL}, "block 64"},
    {{"fold @group a < 8 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n",
      "not shared out @group"},
     "block 64 group 32"},
    {{"fold @thread a < 8 {\nput y[0] reduce_sum= %0 in @a sum64\n}\n",
      "what accumulates over a loop is for one thread"},
     "block 64"},
    {{ROWS("@thread ") SUM("") PUT END, "no block of threads"}, ""},
    {{SQUARE(" @tile 32", " @tile 32"), NULL}, "block 256"},
    {{SQUARE(" @tile 32", ""), "1 axes have tiles"}, "block 256"},
    {{SQUARE(" @rows 2", " @vector 4"), NULL}, "block 256"},
    {{SQUARE(" @rows 3", ""), "axis a does not come in 3 parts"}, "block 256"},
    {{"map a < 8 @rows 2 {\nput y[a] = %0\n}\n", "axis a is not one of threads"}, "block 64"},
    {{ROWS("") SUM("") PUT END, "no groups of 48"}, "block 64 group 48"},
    {{ROWS("") SUM("") PUT END, "no blocks of 2048 threads"}, "block 2048"},
    {{ROWS("") SUM("") PUT END, "no 4 columns"}, "block 64 group 32 columns 4"},
    {{ROWS("") SUM("") PUT END, NULL}, "block 64 group 8 columns 8"},
    {{"scan @thread a < 8 @vector 4 {\nyield reduce_sum %0 serial -> %5 : f32\n}\n", NULL},
     "block 64"},
    {{"fold @thread a < 8 terms @shared {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n", NULL},
     "block 64"},
    {{"fold @serial a < 8 terms @shared {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n",
      "what the fold combines is computed by whoever combines it"},
     "block 64"},
    {{"seq @serial a < 8 @segment 4 {\nput t[a] = %0\n}\n", NULL}, "block 64"},
    {{"seq @serial a < 8 @segment 3 {\n}\n", "axis a does not come in 3 parts"}, "block 64"},
    {{FILLS("@thread") "map @thread b < 8 {\n%6 = load t[b] : f32\nput y[b] = %6\n}\n", NULL},
     "block 32 group 32 grid 1"},
    {{FILLS("@thread") "map @thread b < 8 {\n%6 = load t[-b + 7] : f32\nput y[b] = %6\n}\n",
      "each thread has its own t, and reads what another one puts"},
     "block 32 group 32 grid 1"},
    {{FILLS("@thread") "map @thread b < 4 {\n%6 = load t[b] : f32\nput y[b] = %6\n}\n", NULL},
     "block 32 group 32 grid 1"},
    {{FILLS("@thread") "%6 = load t[5] : f32\nput y[0] = %6\n",
      "each thread has its own t, and reads what another one puts"},
     "block 32 group 32 grid 1"},
    {{FILLS("@serial") "%6 = load t[5] : f32\nput y[0] = %6\n", NULL},
     "block 32 group 32 grid 1"},
    {{FILLS(
          "@thread") "scan @thread b < 8 {\n%6 = load t[b] : f32\nyield reduce_max %6 free -> "
                     "%7 : f32\nput y[b] = %7\n}\n",
      "t is put by blocks of threads that do not wait for one another"},
     "block 256"},
    // Of several puts, each by a loop that threads share; and where one of them is everybody's.
    {{"map @thread a < 4 {\nput t[a] = %0\n}\nmap @thread b < 4 {\nput t[b + 4] = %0\n}\n"
      "%6 = load t[5] : f32\nput y[0] = %6\n",
      "each thread has its own t, and reads what another one puts"},
     "block 32 group 32 grid 1"},
    {{FILLS("@thread") "put t[5] = %0\n%6 = load t[5] : f32\nput y[0] = %6\n", NULL},
     "block 32 group 32 grid 1"},
    {{"map @thread a < 4 {\nput t[a] = %0\n}\nput t[5] = %0\n%6 = load t[5] : f32\n"
      "%7 = load t[3] : f32\nput y[0] = %6\nput y[1] = %7\n",
      "each thread has its own t, and reads what another one puts"},
     "block 32 group 32 grid 1"},
    {{FILLS("@row") "map @row b < 8 {\n%6 = load t[b] : f32\nput y[b] = %6\n}\n", NULL},
     "block 8 group 8 grid 1"},
    {{"map @row a < 8, b < 8 {\nput y[8*a + b] = %0\n}\n", "points of 2 axes are no row"},
     "block 8 group 8 grid 1"},
    {{"map @thread a < 8 turns 2 {\nput y[a] = %0\n}\n", NULL}, "block 4 group 4 grid 1"},
    {{"map @thread a < 8 at_once 2 {\nput y[a] = %0\n}\n", NULL}, "block 4 group 4 grid 1"},
    {{"fold @thread a < 8 turns 2 at_once 4 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n",
      NULL},
     "block 4 group 4 grid 1"},
    {{"fold @serial a < 8 at_once 4 {\nyield reduce_sum %0 sum64\n} -> %5 : f32\n",
      "the turns of such a loop are not a thread's"},
     "block 4 group 4 grid 1"},
    {{"map @serial a < 8 turns 2 {\nput y[a] = %0\n}\n",
      "the turns of such a loop are not a thread's"},
     "block 64"},
    {{"map @thread a < 8 turns 2 at_once 2 {\nput y[a] = %0\n}\n",
      "a thread has no 2 turns, and 2 at once"},
     "block 64"},
    {{ROWS("@thread ") "map @serial b < 8 {\nput y[8*a + b] = %0\n}\n" END, NULL}, "block 64"},
    {{"map @thread a < 4 at_once 2 {\nmap @serial b < 8 {\nput y[8*a + b] = %0\n}\n}\n",
      "what turns read is not all read before it is written"},
     "block 64"},
    {{"map @thread a < 8 @segment 4 {\nput y[a] = %0\n}\n", "axis a is not one of time"},
     "block 64"},
};

START_TEST(owners) { check_fault(&owned[_i].fault, owned[_i].words); }
END_TEST

FAULT_TEST(places, {"map a < 8 {\npar b < 8 {\n}\n}\n", "a par is not inside"},
           {"map a < -1 {\n}\n", "a negative extent"})

FAULT_TEST(contracts,
           {"contract y[8*i + j] = x[8*i + k], x[8*k + j] for i < 8, j < 8 over k < 8\n", NULL},
           {"contract y[8*i + j] = x[8*i + k], x[8*k + j] for i < 8, j < 8 over k < 9\n", "x["},
           {"contract y[8*i + j] = x[8*i + k], i[8*k + j] for i < 8, j < 8 over k < 8\n",
            "f32 and i32"},
           {"contract y[8*i + j] = h[8*i + k], h[8*k + j] for i < 8, j < 8 over k < 8\n", NULL},
           {"contract z[8*i + j] = x[8*i + k], x[8*k + j] for i < 8, j < 8 over k < 8\n",
            "not f16"},
           {"contract z[8*i + j] = h[8*i + k], h[8*k + j] for i < 8, j < 8 over k < 8\n",
            "combining f16 gives f32, not f16"},
           {"contract y[8*i + k] = x[8*i + k], x[8*k + j] for i < 8, j < 8 over k < 8\n",
            "sums over"},
           {"contract y[i + j] = x[8*i + k], x[8*k + j] for i < 8, j < 8 over k < 8\n",
            "several iter"})

// What no text can say.
START_TEST(built_faults)
{
    struct nest *n = parse_body("map a < 8 {\n%5 = load x[a] : f32\nput y[a] = %5\n}\n", "");
    struct nest_statement *load = NULL;
    for (uint32_t i = 0; i < n->statements.count; i++)
        if (n->statements.at[i].kind == NEST_LOAD)
            load = &n->statements.at[i];
    check_faultless(arena, n);
    struct strbuf s = strbuf_make(arena);
    struct nest_statement saved = *load;
    load->buffer = 99;
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    load->dtype = JOT_F64;
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    load->result = NEST_NONE;
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    load->result = 0; // A constant has it.
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    load->guard = 1000;
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    load->kind = NEST_KIND_COUNT;
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    const struct nest_term unsorted[] = {{.factor = 0, .id = 0}};
    load->index = (struct nest_index){.count = 1, .terms = unsorted};
    ck_assert_int_gt(nest_verify(n, &s), 0);
    *load = saved;
    check_faultless(arena, n);
    // A statement in two blocks.
    vec_push(arena, &n->blocks.at[0].statements, (nest_id)(load - n->statements.at));
    ck_assert_int_gt(nest_verify(n, &s), 0);
}
END_TEST

static void check_change(const struct nest *n, struct nest_statement *s,
                         struct nest_statement to, const char *message)
{
    struct strbuf report = strbuf_make(arena);
    struct nest_statement saved = *s;
    *s = to;
    ck_assert_int_gt(nest_verify(n, &report), 0);
    ck_assert_msg(strstr(report.text, message), "not '%s' but\n%s", message, report.text);
    *s = saved;
}
#define LACKS(s, field, value, message)                                                        \
    do {                                                                                       \
        struct nest_statement with = *(s);                                                     \
        with.field = value;                                                                    \
        check_change(n, s, with, message);                                                     \
    } while (0)

START_TEST(fields_of_other_statements)
{
    struct nest *n = parse_body("map a < 8 {\n}\n%5 = load x[0] : f32\n", "");
    struct nest_statement *load = &vec_last(&n->statements), *map = load - 1;
    check_faultless(arena, n);
    LACKS(map, guard, 2, "map a: it has no guard");
    LACKS(map, order, NEST_FREE, "map a: it has no fold");
    LACKS(map, reverse, true, "map a: it has no direction");
    LACKS(map, n_in, 1, "map a: it has no operands");
    LACKS(map, n_results, 1, "map a: it has no results");
    LACKS(load, level, NEST_THREAD, "load x: it has no level");
    LACKS(load, turns, 2, "load x: it has no turns");
    LACKS(load, n_yields, 1, "load x: it has no yields");
    LACKS(load, op, IR_add, "load x: it has no op");
    LACKS(load, n_results, 2, "load x: it has 2 results, not one");
    LACKS(map, body, NEST_NONE, "map a: it has 0 body, not one");
}
END_TEST

START_TEST(programs)
{
    static const struct {
        const char *steps, *message;
    } cases[] = {
        {"step kernel 0 (0, 1)", NULL},
        {"step kernel 1 (0, 1)", "runs kernel 1 of 1"},
        {"step kernel 0 (0)", "has 1 memories for 2 buffers"},
        {"step kernel 0 (0, 9)", "uses memory 9 of 5"},
        {"step kernel 0 (1, 0)", "writes memory 0"},
        {"step kernel 0 (2, 1)", "memory 2 of 1 f32 is buffer x of 4 f32"},
        {"step copy (1, 0)", NULL},
        {"step copy (1, 2)", "copies 1 f32 to 4 f32"},
        {"step copy (0, 1)", "only read"},
        {"step collective \"s\" [0, 0, 11, 1, 1] (1, 0)", NULL},
        {"step collective \"s\" [2, 0, 11, 1, 1] (1, 2)", NULL},
        {"step collective \"s\" [2, 0, 11, 1, 1] (1, 4)", "all_gather of 4 f32 to 4 f32"},
        {"step collective \"s\" [0, 0, 12, 1, 1] (1, 0)", "all_reduce of 4 f32 to 4 f32"},
        {"step collective \"s\" [0, 0, 11, 1, 2] (1, 0)", "axes that the mesh does not have"},
        {"step collective \"s\" [0, 0, 11, 1] (1, 0)", "axes that the mesh does not have"},
        {"step collective \"s\" [9, 0, 11, 1, 1] (1, 0)", "of no kind"},
        {"step collective \"s\" [0, 4, 11, 1, 1] (1, 0)", "that it cannot combine"},
        {"step collective \"s\" [4, 0, 11, 1, 0, 1, -1] (1, 0)", NULL},
        {"step collective \"s\" [4, 0, 11, 1, 0, 1] (1, 0)", "too many or too few"},
        {"step collective \"s\" [4, 0, 11, 1, 0, 1, 2] (1, 0)", "outside of the group"},
        {"step collective \"s\" [0, 0, 11, 1, 1] (1)", "other memories"},
        {"step collective \"s\" [0, 0, 11, 1, 1] (0, 1)", "only read"},
        {"step collective \"s\" [0, 0, 11, 1, 1] (1[1:3], 0[2:4])", NULL},
        {"step collective \"s\" [0, 0, 11, 1, 1] (1[1:3], 0[1:4])", "all_reduce of 3 f32 to 2"},
        {"step collective \"s\" [0, 0, 11, 1, 1] (1[0:4], 0[1:5])",
         "elements 1 to 5 of memory 0"},
        {"step collective \"s\" [0, 0, 11, 1, 1] (1[2:0], 0[0:4])",
         "elements 2 to 0 of memory 1"},
        {"step copy (1[0:2], 0[0:2])", "uses elements 0 to 2 of memory 1 of 4"},
        {"step gemm f32 m 2 n 2 k 2 lda 2 ldb 2 ldc 2 batch 1 1 1 1 stride_a 0 0 0 0 stride_b "
         "0 0 "
         "0 0 stride_c 0 0 0 0 (0, 4, 1)",
         NULL},
        {"step gemm f32 m 2 n 2 k 2 lda 3 ldb 2 ldc 2 batch 1 1 1 1 stride_a 0 0 0 0 stride_b "
         "0 0 "
         "0 0 stride_c 0 0 0 0 (0, 4, 1)",
         "matrix a is not inside"},
        {"step gemm f32 m 2 n 2 k 2 lda 2 ldb 2 ldc 2 batch 1 1 2 1 stride_a 0 0 0 0 stride_b "
         "0 0 "
         "1 0 stride_c 0 0 0 0 (0, 4, 1)",
         "matrix b is not inside"},
    };
    const char *text =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1\n  arena 16\n"
        "  constants 4\n  mesh 2 4\n  memory input 0 : f32[4]\n  memory output 0 : f32[4]\n"
        "  memory constant at 0 : f32[1] = 00000000\n"
        "  memory temporary at 4 : f32[3]\n  memory temporary at 0 : f32[4]\n"
        "  %s\n}\nkernel f(x: f32[4], y: out f32[4]) {\n  par i < 4 {\n"
        "    %%0 = load x[i] : f32\n    put y[i] = %%0\n  }\n}\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf s = strbuf_make(arena), report = strbuf_make(arena);
        strbuf_printf(&s, text, cases[i].steps);
        struct nest_program *p;
        ck_assert_msg(nest_program_parse(arena, s.text, &p) == JOT_OK, "%s",
                      jot_error_message());
        int faults = nest_program_verify(p, &report);
        ck_assert_msg((faults > 0) == (cases[i].message != NULL), "%s%s", s.text, report.text);
        ck_assert_msg(!faults || strstr(report.text, cases[i].message), "%s", report.text);
        p->memories.at[3].offset = 8;
        ck_assert_int_gt(nest_program_verify(p, NULL), 0);
    }
}
END_TEST

#define ADD(name)                                                                              \
    tcase_add_loop_test(t, name, 0, (int)(sizeof name##_faults / sizeof *name##_faults))

int main(void)
{
    Suite *s = suite_create("nest_verify");
    TCase *t = tcase_create("faults");
    tcase_add_checked_fixture(t, setup, teardown);
    ADD(scopes);
    ADD(ops);
    ADD(ranges);
    ADD(types);
    ADD(one_point);
    ADD(accumulation);
    ADD(hazards);
    ADD(folds);
    ADD(orders);
    ADD(levels);
    tcase_add_loop_test(t, owners, 0, (int)(sizeof owned / sizeof *owned));
    ADD(places);
    ADD(contracts);
    tcase_add_test(t, built_faults);
    tcase_add_test(t, fields_of_other_statements);
    tcase_add_test(t, programs);
    suite_add_tcase(s, t);
    return run_suite(s);
}
