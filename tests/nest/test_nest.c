// SPDX-License-Identifier: Apache-2.0
// Building nests, their text, equality; texts that are not nests.
#include "nest_support.h"
#include "schedule/schedule.h"

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

static uint64_t random_state;

static uint32_t next_random(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % n;
}

static struct nest_index index_of(int64_t constant, int n, const struct nest_term *terms)
{
    return nest_index_make(arena, constant, n, terms);
}

static struct nest_index at_axis(nest_id axis)
{
    return index_of(0, 1, &(struct nest_term){.factor = 1, .id = axis});
}

// --- index forms

START_TEST(index_terms_merge_and_sort)
{
    const struct nest_term terms[] = {
        {.factor = 2, .id = 5, .is_value = true},
        {.factor = 3, .id = 9},
        {.factor = 4, .id = 1},
        {.factor = -3, .id = 9},
        {.factor = 1, .id = 1},
        {.factor = 7, .id = 5},
        {.factor = 0, .id = 2},
    };
    struct nest_index x = index_of(6, 7, terms);
    ck_assert_uint_eq(x.count, 3);
    ck_assert(x.terms[0].id == 1 && x.terms[0].factor == 5 && !x.terms[0].is_value);
    ck_assert(x.terms[1].id == 5 && x.terms[1].factor == 7 && !x.terms[1].is_value);
    ck_assert(x.terms[2].id == 5 && x.terms[2].factor == 2 && x.terms[2].is_value);
    ck_assert_int_eq(x.constant, 6);
    ck_assert_int_eq(nest_index_factor(&x, 1), 5);
    ck_assert_int_eq(nest_index_factor(&x, 9), 0);
    ck_assert_uint_eq(index_of(1, 0, NULL).count, 0);
    const struct nest_term gone[] = {{.factor = 1, .id = 3}, {.factor = -1, .id = 3}};
    ck_assert_uint_eq(index_of(1, 2, gone).count, 0);
}
END_TEST

// --- building

// y[r] = sum over c of x[r, c]; things are numbered in another order when shuffled.
static struct nest *build_row_sums(bool shuffled, const char *name)
{
    struct nest_builder b = nest_builder_make(arena, name);
    nest_id x, y, c = 0, r;
    x = nest_buffer(&b, "x", JOT_F32, 12, NEST_IN);
    if (shuffled) {
        nest_local(&b, "t", JOT_F32, 3);
        c = nest_axis(&b, "inner", 4);
    }
    y = nest_buffer(&b, "y", JOT_F32, 3, NEST_OUT);
    r = nest_axis(&b, "r", 3);
    if (!shuffled) {
        nest_local(&b, "scratch", JOT_F32, 3);
        c = nest_axis(&b, "c", 4);
    }
    nest_open(&b, NEST_PAR, 1, &r);
    nest_open(&b, NEST_FOLD, 1, &c);
    const struct nest_term terms[] = {{.factor = 4, .id = r}, {.factor = 1, .id = c}};
    nest_id v = nest_load(&b, x, index_of(0, 2, terms), NEST_NONE);
    nest_id s = nest_close(
        &b, 1,
        &(struct nest_combine){
            .op = IR_reduce_sum, .n = 1, .dtype = JOT_F32, .order = NEST_SUM64, .value = {v}});
    nest_put(&b, y, at_axis(r), s, NEST_NONE);
    nest_close(&b, 0, NULL);
    return b.nest;
}

START_TEST(builder)
{
    struct nest *n = build_row_sums(false, "row sums");
    check_faultless(arena, n);
    ck_assert_str_eq(print_nest(arena, n), "kernel row_sums(x: f32[12], y: out f32[3]) {\n"
                                           "  local scratch: f32[3]\n"
                                           "  par r < 3 {\n"
                                           "    fold c < 4 {\n"
                                           "      %0 = load x[4*r + c] : f32\n"
                                           "      yield reduce_sum %0 sum64\n"
                                           "    } -> %1 : f32\n"
                                           "    put y[r] = %1\n"
                                           "  }\n"
                                           "}\n");
    struct nest *other = build_row_sums(true, "f");
    ck_assert(nest_equal(n, other));
    ck_assert_uint_eq(nest_hash(n), nest_hash(other));
}
END_TEST

START_TEST(builder_of_loops_with_state)
{
    struct nest_builder b = nest_builder_make(arena, "f");
    nest_id y = nest_buffer(&b, "y", JOT_I32, 4, NEST_OUT);
    nest_id i = nest_axis(&b, "i", 4), t = nest_axis(&b, "i", 3);
    int32_t ten = 10;
    nest_id c = nest_const(&b, JOT_I32, &ten);
    nest_open(&b, NEST_PAR, 1, &i);
    b.where = 5;
    nest_id carry = nest_seq_open(&b, t, true, 1, &c);
    b.where = 0;
    nest_id next = nest_op(&b, IR_add, JOT_I32, 2, (nest_id[]){carry, c}, NULL);
    nest_id sum = nest_close_values(&b, 1, &next);
    nest_id state = nest_while_open(&b, 1, &sum);
    nest_id test = nest_op(&b, IR_lt, JOT_BOOL, 2, (nest_id[]){state, c}, NULL);
    nest_open_other(&b, 1, &test);
    next = nest_op(&b, IR_add, JOT_I32, 2, (nest_id[]){state, c}, NULL);
    nest_id end = nest_close_values(&b, 1, &next);
    nest_if_open(&b, nest_op(&b, IR_eq, JOT_BOOL, 2, (nest_id[]){end, c}, NULL));
    nest_open_other(&b, 1, &c);
    nest_id chosen = nest_close_values(&b, 1, &end);
    nest_put(&b, y, at_axis(i), chosen, NEST_NONE);
    nest_close(&b, 0, NULL);
    check_faultless(arena, b.nest);
    ck_assert_str_eq(print_nest(arena, b.nest), "kernel f(y: out i32[4]) {\n"
                                                "  %0 = const 0x0000000a : i32\n"
                                                "  par i < 4 {\n"
                                                "    seq i_2 < 3 reverse carry %1 = %0 !5 {\n"
                                                "      %2 = add %1, %0 : i32\n"
                                                "      yield %2\n"
                                                "    } -> %3\n"
                                                "    while carry %4 = %3 {\n"
                                                "      %5 = lt %4, %0 : bool\n"
                                                "      yield %5\n"
                                                "    } do {\n"
                                                "      %6 = add %4, %0 : i32\n"
                                                "      yield %6\n"
                                                "    } -> %7\n"
                                                "    %8 = eq %7, %0 : bool\n"
                                                "    if %8 {\n"
                                                "      yield %0\n"
                                                "    } else {\n"
                                                "      yield %7\n"
                                                "    } -> %9\n"
                                                "    put y[i] = %9\n"
                                                "  }\n"
                                                "}\n");
}
END_TEST

// --- text

START_TEST(files_round_trip)
{
    const char *text = read_nest_file(arena, nest_files[_i]);
    struct nest *n = parse_nest(arena, text);
    check_faultless(arena, n);
    ck_assert_str_eq(print_nest(arena, n), text);
    struct nest *again = parse_nest(arena, print_nest(arena, n));
    ck_assert(nest_equal(n, again));
    ck_assert_uint_eq(nest_hash(n), nest_hash(again));
}
END_TEST

START_TEST(texts_of_several_kernels)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_add(&s, "jot nest 1\n");
    for (size_t i = 0; i < NEST_FILES; i++)
        strbuf_add(&s, read_nest_file(arena, nest_files[i]));
    int count = 0;
    struct nest **nests;
    ck_assert_int_eq(nest_parse(arena, s.text, &count, &nests), JOT_OK);
    ck_assert_uint_eq(count, NEST_FILES);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            ck_assert(nest_equal(nests[i], nests[j]) == (i == j));
            ck_assert((nest_hash(nests[i]) == nest_hash(nests[j])) == (i == j));
        }
}
END_TEST

static void check_change(const char *text, const char *from, const char *to)
{
    struct strbuf s = strbuf_make(arena);
    const char *at = strstr(text, from);
    ck_assert(at);
    strbuf_add_bytes(&s, text, (size_t)(at - text));
    strbuf_add(&s, to);
    strbuf_add(&s, at + strlen(from));
    struct nest *a = parse_nest(arena, text), *b = parse_nest(arena, s.text);
    ck_assert_msg(!nest_equal(a, b) && nest_hash(a) != nest_hash(b), "%s", s.text);
}

// Every change of one thing that means something is a change of the hash.
START_TEST(equality_sees_everything)
{
    static const char *const base =
        "kernel f(x: f32[8], y: out f32[8]) {\n  local t: f32[8]\n  par i < 2 {\n"
        "    map j < 4 {\n      %0 = load x[4*i + j + 0] : f32\n"
        "      %1 = const 0x3f800000 : f32\n      %2 = sub %0, %1 : f32\n"
        "      put y[4*i + j] = %2\n    }\n  }\n}\n";
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"x: f32[8]", "x: f32[9]"},
        {"{\n  local", "no_jam {\n  local"},
        {"{\n  local", "more_lanes no_stages {\n  local"},
        {"{\n  local", "as network {\n  local"},
        {"{\n  local", "block 64 {\n  local"},
        {"{\n  local", "block 64 group 32 columns 2 resident 4 grid 1 {\n  local"},
        {"t: f32[8]", "t: f32[8] @register"},
        {"t: f32[8]", "t: f32[8] @shared"},
        {"par i", "par @grid i"},
        {"par i", "par @thread i"},
        {"par i", "par @row i"},
        {"i < 2", "i < 2 turns 2"},
        {"i < 2", "i < 2 at_once 2"},
        {"i < 2", "i < 2 @rows 2"},
        {"i < 2", "i < 2 @segment 2"},
        {"t: f32[8]", "t: f32[8] @again"},
        {"i < 2", "i < 2 @tile 32"},
        {"t: f32[8]", "t: f64[8]"},
        {"par i", "map i"},
        {"i < 2", "i < 1"},
        {"+ 0", "+ 1"},
        {"[4*i + j +", "[3*i + j +"},
        {"0x3f800000", "0x3f800001"},
        {"sub", "add"},
        {"sub %0, %1", "sub %1, %0"},
        {"put y[4*i", "put t[4*i"},
        {"= %2", "= %0"},
        {"load x", "load y"},
        {"j < 4 {", "j < 3 {"},
        {"j < 4", "j < 4 @vector 4"},
        {"[4*i + j]", "[4*i - j]"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        check_change(base, changes[i].from, changes[i].to);
    static const char *const other =
        "kernel f(x: f32[8], g: bool[8], y: out f32[8]) {\n  %0 = load g[0] : bool\n"
        "  %1 = load x[0] if %0 : f32\n  %2 = load g[1] : bool\n"
        "  fold n < 2 {\n    fold m < 2 {\n      put y[0] reduce_sum= %1 in @n sum64\n    }\n  "
        "}\n"
        "  contract y[4*i + j] = x[i], x[j] for i < 2, j < 2 over k < 2\n"
        "  scan s < 4 {\n    yield reduce_sum %1 serial -> %3 : f32\n    put y[s] = %3 if %2\n "
        " }\n"
        "  if %2 {\n    yield %1\n  } else {\n    yield %3\n  } -> %4\n"
        "}\n";
    check_change(other, "in @n", "in @m");
    check_change(other, "if %0 :", ":");
    check_change(other, "if %2\n", "if %0\n");
    check_change(other, "= x[i]", "= x[k]");
    check_change(other, "scan s < 4 {", "scan s < 4 reverse {");
    check_change(other, "scan s < 4 {", "scan @thread s < 4 {");
    check_change(other, "fold m < 2 {", "fold m < 2 terms @shared {");
    check_change(other, "fold m < 2 {", "fold m < 2 terms @scratch {");
    check_change(other, "yield reduce_sum", "yield reduce_max");
    check_change(other, "in @n", "if %0 in @n");
    check_change(other, "in @n sum64", "in @n free");
    check_change(other, "%1 serial", "%1 free");
    check_change(other, "yield %3\n  }", "yield %1\n  }");
    check_change(other, "if %2 {", "if %0 {");
    struct nest *n = parse_nest(arena, base);
    struct nest *named = parse_nest(
        arena, "kernel g(a: f32[8], b: out f32[8]) {\n  local c: f32[8]\n"
               "  par p < 2 {\n    map q < 4 !7 {\n      %7 = load a[q + 4*p] : f32 !3\n"
               "      %1 = const 0x3f800000 : f32\n      %2 = sub %7, %1 : f32\n"
               "      put b[4*p + q] = %2\n    }\n  }\n}\n");
    ck_assert(nest_equal(n, named) && nest_hash(n) == nest_hash(named));
}
END_TEST

// The word `if` behind a put is its guard; on the next line it starts a statement.
START_TEST(an_if_after_a_put)
{
    static const char *const text = "kernel f(x: f32[2], g: bool[1], y: out f32[2]) {\n"
                                    "  %0 = load g[0] : bool\n"
                                    "  %1 = load x[0] : f32\n"
                                    "  put y[0] = %1 if %0\n"
                                    "  put y[1] = %1\n"
                                    "  if %0 {\n"
                                    "    %2 = neg %1 : f32\n"
                                    "    put y[1] = %2\n"
                                    "  } else {\n"
                                    "  }\n"
                                    "}\n";
    struct nest *n = parse_nest(arena, text);
    ck_assert_str_eq(print_nest(arena, n), text);
    int guards = 0, branches = 0;
    for (uint32_t i = 0; i < n->statements.count; i++) {
        const struct nest_statement *s = &n->statements.at[i];
        guards += s->kind == NEST_PUT && s->guard != NEST_NONE;
        branches += s->kind == NEST_IF;
    }
    ck_assert_int_eq(guards, 1);
    ck_assert_int_eq(branches, 1);
}
END_TEST

START_TEST(names_are_made_unique)
{
    struct nest_builder b = nest_builder_make(arena, "1 bad-name");
    nest_id x = nest_buffer(&b, "x", JOT_F32, 4, NEST_IN);
    nest_id y = nest_buffer(&b, "x", JOT_F32, 4, NEST_OUT);
    nest_id i = nest_axis(&b, "", 2), j = nest_axis(&b, "i", 2);
    nest_open(&b, NEST_PAR, 2, (nest_id[]){i, j});
    struct nest_index at =
        index_of(0, 2, (struct nest_term[]){{.factor = 2, .id = i}, {.factor = 1, .id = j}});
    nest_put(&b, y, at, nest_load(&b, x, at, NEST_NONE), NEST_NONE);
    nest_close(&b, 0, NULL);
    const char *text = print_nest(arena, b.nest);
    ck_assert_str_eq(text, "kernel __bad_name(x: f32[4], x_2: out f32[4]) {\n"
                           "  par i < 2, i_2 < 2 {\n"
                           "    %0 = load x[2*i + i_2] : f32\n"
                           "    put x_2[2*i + i_2] = %0\n"
                           "  }\n"
                           "}\n");
    ck_assert(nest_equal(b.nest, parse_nest(arena, text)));
}
END_TEST

START_TEST(extreme_numbers)
{
    struct nest *n =
        parse_nest(arena, "kernel f(x: f32[9223372036854775807], y: out i64[1]) {\n"
                          "  map i < 1 {\n"
                          "    %0 = index -9223372036854775808*i - 9223372036854775808 : i64\n"
                          "    put y[0] = %0 !4294967295\n"
                          "  }\n"
                          "}\n");
    const char *text = print_nest(arena, n);
    ck_assert_str_eq(print_nest(arena, parse_nest(arena, text)), text);
    ck_assert(strstr(text, "index -9223372036854775808*i - 9223372036854775808 "));
}
END_TEST

// --- messages

static void check_message(const char *text, const char *message)
{
    int count = -1;
    struct nest **nests = NULL;
    ck_assert_msg(nest_parse(arena, text, &count, &nests) != JOT_OK, "%s", text);
    ck_assert_msg(strstr(jot_error_message(), message), "%s", jot_error_message());
    ck_assert(count == -1 && !nests);
}

START_TEST(messages_have_places)
{
    check_message("kernel f(", "1:10: expected a name, found 'the end'");
    check_message("kernel f() {\n  par i < 3 {\n    %0 = bogus %1 : f32\n",
                  "3:10: there is no op");
    check_message("kernel f(x: f32[1]) {\n  fold i < 1 {\n    %0 = load x[i] : f32\n    yield "
                  "reduce_sum %0\n  } -> %1 : f32\n}",
                  "expected an order such as sum64 or free");
    check_message("kernel f() {\n  %0 = index j : i32\n}", "there is no axis 'j'");
    check_message("kernel f() {\n  %0 = load x[0] : i32\n}", "there is no buffer 'x'");
    check_message("kernel f() {\n  %0 = neg %1 : i32\n}", "%1 is used before it is defined");
    check_message("kernel f() {\n  %0 = index 1 : i32\n  %0 = index 1 : i32\n}",
                  "defined twice");
    check_message("kernel f() {\n  %0 = const 0x0 : i32\n}", "a constant of type i32 has 8");
    check_message("kernel f(x: q7[1]) {\n}", "1:13: expected an element type");
    check_message("kernel f() {\n  what\n}", "there is no statement 'what'");
    check_message("kernel f() {\n  %99999999 = index 1 : i32\n}", "value numbers count from 0");
    check_message("kernel f(x: f32[99999999999999999999]) {\n}", "does not fit 64 bits");
    check_message("kernel f(x: f32[1], x: f32[1]) {\n}", "two buffers are called 'x'");
    check_message("kernel f() {\n  if %0 {\n", "used before");
    check_message("kernel f(x: f32[1]) {\n  %0 = load x[0] : f64\n}", "are f32, not f64");
}
END_TEST

START_TEST(statements_below_a_block)
{
    struct nest *n = parse_nest(arena, read_nest_file(arena, nest_files[_i]));
    uint32_t next = 0;
    nest_for_below (s, n, 0)
        ck_assert_uint_eq(nest_id_of(n, s), next++);
    ck_assert_uint_eq(next, n->statements.count);
    next = 0;
    nest_for_below (s, n, 0)
        if (++next == 2)
            break;
    ck_assert_uint_eq(next, 2);
    nest_for_below (s, n, NEST_NONE)
        ck_abort();
}
END_TEST

// A kernel of so many blocks in one another.
static struct nest *build_deep(uint32_t depth)
{
    struct nest_builder b = nest_builder_make(arena, "f");
    for (uint32_t i = 1; i < depth; i++)
        nest_open(&b, NEST_MAP, 0, NULL);
    return b.nest;
}

START_TEST(deepest_nest)
{
    struct nest *n = build_deep(NEST_DEPTH);
    uint32_t count = 0;
    check_faultless(arena, n);
    nest_for_below (s, n, 0)
        count++;
    ck_assert_uint_eq(count, NEST_DEPTH - 1);
    ck_assert_int_gt(nest_verify(build_deep(NEST_DEPTH + 1), NULL), 0);
}
END_TEST

START_TEST(deep_nesting_is_an_error)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_add(&s, "kernel f() {\n");
    for (int i = 0; i < 100000; i++)
        strbuf_add(&s, "map i < 1 {");
    check_message(s.text, "blocks nest more than");
}
END_TEST

// --- fuzz

static const char *const words[] = {
    "%0",      "%1",         " = ",        "{",       "}",     "yield ", "put ",   "if ",
    "->",      "carry ",     "9999999999", "-",       "*",     "[",      "]",      "in @i",
    " : f32",  "reduce_sum", "fma ",       "argmax ", "over ", "for ",   "while ", "seq i < 3 ",
    "local b", "\n",         "0x",         "local ",  "!",     "\""};

// Another digit, or another of the names of one letter.
static void change_letter(char *text)
{
    static const char letters[] = "abcdijknprtuvxy";
    for (char *c = text + next_random((uint32_t)strlen(text)); *c; c++) {
        bool digit = *c >= '0' && *c <= '9';
        bool name =
            c > text && strchr(letters, *c) && strchr("[ +*", c[-1]) && strchr(" ]+[", c[1]);
        if (digit || name) {
            *c = digit ? (char)('0' + next_random(10))
                       : letters[next_random(sizeof letters - 1)];
            return;
        }
    }
}

static void insert(char *text, size_t room, size_t at, const char *piece, size_t n)
{
    size_t length = strlen(text);
    if (length + n + 1 >= room)
        return;
    memmove(text + at + n, text + at, length - at + 1);
    memcpy(text + at, piece, n);
}

static void mutate_once(char *text, size_t room)
{
    size_t length = strlen(text), at = next_random((uint32_t)length + 1);
    size_t count = next_random(8);
    if (at + count > length)
        count = length - at;
    char piece[8];
    memcpy(piece, text + next_random((uint32_t)(length - count + 1)), count);
    const char *word = words[next_random(sizeof words / sizeof *words)];
    switch (next_random(12)) {
    case 0:
        memmove(text + at, text + at + count, length - at - count + 1);
        break;
    case 1:
        if (at < length)
            text[at] = (char)(1 + next_random(127));
        break;
    case 2:
        insert(text, room, at, word, strlen(word));
        break;
    case 3:
        insert(text, room, at, piece, count);
        break;
    default:
        if (length)
            change_letter(text);
        break;
    }
}

static void mutate(char *text, size_t room)
{
    for (uint32_t n = 1 + next_random(4); n > 0; n--)
        mutate_once(text, room);
}

// Whatever the text, there is a nest or a message; a nest prints, verifies and comes back.
START_TEST(mutated_texts)
{
    static char text[16384];
    int parsed = 0, faultless = 0;
    for (int round = 0; round < 1000; round++) {
        struct arena *a = arena_create();
        const char *source = read_nest_file(a, nest_files[_i]);
        snprintf(text, sizeof text, "%s", source);
        mutate(text, sizeof text);
        int count = 0;
        struct nest **nests;
        if (nest_parse(a, text, &count, &nests) == JOT_OK) {
            struct strbuf s = strbuf_make(a), again = strbuf_make(a), report = strbuf_make(a);
            for (int i = 0; i < count; i++) {
                nest_print(&s, nests[i]);
                faultless += nest_verify(nests[i], &report) == 0;
            }
            parsed += count;
            int second = 0;
            struct nest **copies;
            ck_assert_msg(nest_parse(a, s.text, &second, &copies) == JOT_OK, "%s\n%s",
                          jot_error_message(), text);
            ck_assert_int_eq(second, count);
            for (int i = 0; i < count; i++) {
                nest_print(&again, copies[i]);
                ck_assert(nest_equal(nests[i], copies[i]));
            }
            ck_assert_str_eq(s.text, again.text);
        } else {
            ck_assert(strlen(jot_error_message()) > 0);
        }
        arena_release(a);
    }
    ck_assert_msg(parsed > 20 && faultless < parsed && faultless > 0, "%d parsed, %d faultless",
                  parsed, faultless);
}
END_TEST

static const char *const program_text =
    "jot nest 1\nprogram \"p\" {\n  inputs 2\n  outputs 1 donated 1\n  arena 64\n  constants "
    "8\n  mesh 2 1\n"
    "  memory input 0 : f32[2] \"a\"\n  memory output 0 : f32[2]\n"
    "  memory temporary at 0 : f32[16]\n  memory constant at 0 : f32[2] = 000102030405a6f7\n"
    "  step gemm f32 transpose_a m 1 n 1 k 2 lda 1 ldb 1 ldc 1 batch 1 1 1 1 stride_a 0 0 0 0 "
    "stride_b 0 0 0 0 stride_c 0 0 0 0 (0, 3, 2)\n"
    "  step kernel 0 (0, 1) at \"t.c:3: \\\"x\\\"\" \"why \\x01\"\n  step copy (1, 0)\n"
    "  step collective \"sum\" [0, 0, 11, 2, 1, 0] (1, 0)\n"
    "  step collective \"sum\" [0, 0, 11, 2, 1, 0] (1[0:1], 0[1:2])\n}\n"
    "kernel f(x: f32[2], y: out f32[2]) {\n  par i < 2 {\n    %0 = load x[i] : f32\n"
    "    put y[i] = %0\n  }\n}\n";

// What GPUs do together, and how.
START_TEST(schedules_tell_of_collectives)
{
    struct arena *a = arena_create();
    struct strbuf s = strbuf_make(a);
    struct nest_program *p;
    ck_assert_int_eq(nest_program_parse(a, program_text, &p), JOT_OK);
    schedule_print_gpu(&s, p);
    ck_assert_msg(strstr(s.text, "# together: step 3, sum (a kernel over the memory of other "
                                 "GPUs, else NCCL)"),
                  "%s", s.text);
    arena_release(a);
}
END_TEST

// Step 5 writes what the second sum reads, and the first one ends before it, too: kernels stay in a row.
START_TEST(schedules_tell_what_is_beside_collectives)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 320\n  "
        "constants "
        "0\n  mesh 2\n"
        "  memory input 0 : f32[2] \"a\"\n  memory output 0 : f32[2]\n"
        "  memory temporary at 0 : f32[2]\n  memory temporary at 64 : f32[2]\n"
        "  memory temporary at 128 : f32[2]\n  memory temporary at 192 : f32[2]\n"
        "  memory temporary at 256 : f32[2]\n"
        "  step kernel 0 (0, 2)\n"
        "  step collective \"sum\" [0, 0, 11, 1, 0] (3, 2)\n"
        "  step kernel 0 (0, 4)\n"
        "  step collective \"sum\" [0, 0, 11, 1, 0] (5, 4)\n"
        "  step kernel 0 (2, 6)\n"
        "  step kernel 0 (6, 4)\n"
        "  step kernel 0 (3, 1)\n}\n"
        "kernel f(x: f32[2], y: out f32[2]) {\n  par i < 2 {\n    %0 = load x[i] : f32\n"
        "    put y[i] = %0\n  }\n}\n";
    struct arena *a = arena_create();
    struct strbuf s = strbuf_make(a);
    struct nest_program *p;
    ck_assert_int_eq(nest_program_parse(a, text, &p), JOT_OK);
    schedule_print_gpu(&s, p);
    ck_assert_msg(strstr(s.text, "# together: step 1, sum (a kernel over the memory of other "
                                 "GPUs, else NCCL; beside 2, 4)\n") &&
                      strstr(s.text, "# together: step 3, sum (a kernel over the memory of "
                                     "other GPUs, else NCCL; beside 4)\n"),
                  "%s", s.text);
    arena_release(a);
}
END_TEST

START_TEST(mutated_programs)
{
    static char text[16384];
    int parsed = 0;
    for (int round = 0; round < 2000; round++) {
        struct arena *a = arena_create();
        snprintf(text, sizeof text, "%s", program_text);
        if (round)
            mutate(text, sizeof text);
        struct nest_program *p, *copy;
        if (nest_program_parse(a, text, &p) == JOT_OK) {
            parsed++;
            struct strbuf s = strbuf_make(a), again = strbuf_make(a), report = strbuf_make(a);
            nest_program_print(&s, p);
            if (round == 0)
                ck_assert_str_eq(s.text, text);
            int faults = nest_program_verify(p, &report);
            ck_assert(round || !faults);
            ck_assert_msg(nest_program_parse(a, s.text, &copy) == JOT_OK, "%s\n%s\n%s",
                          jot_error_message(), text, s.text);
            nest_program_print(&again, copy);
            ck_assert_str_eq(s.text, again.text);
        }
        arena_release(a);
    }
    ck_assert(parsed > 10);
}
END_TEST

int main(void)
{
    const char *given = getenv("JOT_TEST_SEED");
    random_state = given ? strtoull(given, NULL, 0) : 7;
    printf("seed %llu\n", (unsigned long long)random_state);
    Suite *s = suite_create("nest");
    TCase *t = tcase_create("nest");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, index_terms_merge_and_sort);
    tcase_add_test(t, builder);
    tcase_add_test(t, builder_of_loops_with_state);
    tcase_add_loop_test(t, files_round_trip, 0, NEST_FILES);
    tcase_add_test(t, texts_of_several_kernels);
    tcase_add_test(t, equality_sees_everything);
    tcase_add_test(t, an_if_after_a_put);
    tcase_add_test(t, names_are_made_unique);
    tcase_add_test(t, extreme_numbers);
    tcase_add_test(t, messages_have_places);
    tcase_add_loop_test(t, statements_below_a_block, 0, NEST_FILES);
    tcase_add_test(t, deepest_nest);
    tcase_add_test(t, deep_nesting_is_an_error);
    tcase_add_loop_test(t, mutated_texts, 0, NEST_FILES);
    tcase_add_test(t, schedules_tell_of_collectives);
    tcase_add_test(t, schedules_tell_what_is_beside_collectives);
    tcase_add_test(t, mutated_programs);
    suite_add_tcase(s, t);
    return run_suite(s);
}
