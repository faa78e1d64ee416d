// SPDX-License-Identifier: Apache-2.0
// Maps of a trip that are one, and that these do the same, bit for bit.
#include "nest_programs.h"

// Maps of a trip, and how many of them there are once those of elements alone are one: what is read at another index,
// put at another index, or read of what a map has put behind it, stays behind.
static const struct {
    const char *trip;
    uint32_t maps;
} trips[] = {
    {"    map i < 6 {\n      %1 = load x[6*t + i] : f32\n      %2 = load s[i] : f32\n"
     "      %3 = add %1, %2 : f32\n      put h[i] = %3\n    }\n"
     "    map j < 6 {\n      %4 = load h[j] : f32\n      put y[6*t + j] = %4\n    }\n"
     "    %5 = load x[t] : f32\n"
     "    map k < 6 {\n      %6 = load h[k] : f32\n      %7 = mul %6, %5 : f32\n"
     "      put s[k] = %7\n    }\n",
     1},
    {"    map i < 6 {\n      %1 = load x[6*t + i] : f32\n      put h[i] = %1\n    }\n"
     "    map j < 6 {\n      %2 = load h[-j + 5] : f32\n      put y[6*t + j] = %2\n    }\n"
     "    map k < 6 {\n      %3 = load h[k] : f32\n      put s[k] = %3\n    }\n",
     2},
    {"    map i < 6 {\n      %1 = load s[-i + 5] : f32\n      put y[6*t + i] = %1\n    }\n"
     "    map j < 6 {\n      %2 = load x[6*t + j] : f32\n      put s[j] = %2\n    }\n"
     "    map k < 5 {\n      %3 = load x[6*t + k] : f32\n      put h[k] = %3\n    }\n",
     3},
    {"    map i < 6 {\n      %1 = load x[6*t + i] : f32\n      put s[i] = %1\n    }\n"
     "    %2 = load s[3] : f32\n"
     "    map j < 6 {\n      put y[6*t + j] = %2\n    }\n",
     2},
};

START_TEST(maps_of_a_trip_are_one)
{
    struct strbuf s = strbuf_make(arena);
    strbuf_printf(&s,
                  "kernel k0_scan(x: f32[60], y: out f32[60]) {\n  local s: f32[6]\n"
                  "  local h: f32[6]\n  %%0 = const 0x3f000000 : f32\n"
                  "  map l < 6 {\n    put s[l] = %%0\n  }\n  seq t < 10 {\n%s  }\n}\n",
                  trips[_i].trip);
    struct nest_program *p = program_of(s.text);
    size_t bytes;
    uint32_t maps = 0;
    char *want = results(p, &bytes);
    schedule_fuse_maps(p, arena);
    struct strbuf text = strbuf_make(arena);
    schedule_print(&text, p);
    ck_assert_msg(nest_program_verify(p, &text) == 0, "%s", text.text);
    const struct nest *n = p->nests.at[0];
    nest_for_all (t, n)
        if (t->kind == NEST_SEQ)
            nest_for_each (m, n, t->body)
                maps += m->kind == NEST_MAP;
    ck_assert_msg(maps == trips[_i].maps, "%u maps\n%s", maps, text.text);
    ck_assert(!memcmp(results(p, &bytes), want, bytes));
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, maps_of_a_trip_are_one, 0, sizeof trips / sizeof *trips);
}

int main(void) { return suite_run("fuse_maps", add_tests); }
