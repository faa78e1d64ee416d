// SPDX-License-Identifier: Apache-2.0
// Loops over time and branches at random, in machine code against the interpreter of nests.
#include "nest_check.h"

#include <stdio.h>

// Numbers that programs are made of at random: those in scope, a body's own forgotten at its end.
struct program {
    struct strbuf text;
    int next;
    int floats[64], ints[64], n_floats, n_ints;
};

static int pick(const int *from, int n) { return from[nest_check_random() % (unsigned)n]; }

static int keep(int *in, int *n, int value)
{
    if (*n < 64)
        in[(*n)++] = value;
    return value;
}

static void add_op(struct program *p)
{
    static const char *const ops[] = {"add", "sub", "mul", "max", "min"};
    int x = pick(p->floats, p->n_floats), y = pick(p->floats, p->n_floats);
    int i = pick(p->ints, p->n_ints), j = pick(p->ints, p->n_ints), r = p->next++;
    switch (nest_check_random() % 5) {
    case 0:
        strbuf_printf(&p->text, "%%%d = fma %%%d, %%%d, %%%d : f32\n", r, x, y, x);
        break;
    case 1:
        strbuf_printf(&p->text, "%%%d = lt %%%d, %%%d : bool\n", r, i, j);
        strbuf_printf(&p->text, "%%%d = select %%%d, %%%d, %%%d : f32\n", p->next, r, x, y);
        r = p->next++;
        break;
    case 2:
        strbuf_printf(&p->text, "%%%d = %s %%%d, %%%d : i32\n", r, ops[nest_check_random() % 5],
                      i, j);
        keep(p->ints, &p->n_ints, r);
        return;
    default:
        strbuf_printf(&p->text, "%%%d = %s %%%d, %%%d : f32\n", r, ops[nest_check_random() % 5],
                      x, y);
    }
    keep(p->floats, &p->n_floats, r);
}

static void add_body(struct program *p, int depth);

// A loop or a branch with two floats and an integer; a while counts down from 0 to 7.
static void add_nested(struct program *p, int depth)
{
    int kind = (int)(nest_check_random() % 3), n_floats = p->n_floats, n_ints = p->n_ints;
    int x = pick(p->floats, n_floats), y = pick(p->floats, n_floats);
    int i = pick(p->ints, n_ints), first = p->next;
    if (kind == 2) {
        p->next += 1;
        strbuf_printf(&p->text, "%%%d = lt %%%d, %%%d : bool\nif %%%d {\n", first, i,
                      pick(p->ints, n_ints), first);
    } else {
        p->next += 6;
        strbuf_printf(&p->text, "%%%d = and %%%d, %%1 : i32\n", first + 3, i);
        if (kind == 0)
            strbuf_printf(&p->text, "seq s%d < %d%s ", first, (int)(nest_check_random() % 5),
                          nest_check_random() % 2 ? " reverse" : "");
        else
            strbuf_printf(&p->text, "while ");
        strbuf_printf(&p->text, "carry %%%d = %%%d, %%%d = %%%d, %%%d = %%%d {\n", first, x,
                      first + 1, y, first + 2, first + 3);
        if (kind == 1)
            strbuf_printf(&p->text, "%%%d = gt %%%d, %%0 : bool\nyield %%%d\n} do {\n",
                          first + 4, first + 2, first + 4);
        keep(p->floats, &p->n_floats, first);
        keep(p->floats, &p->n_floats, first + 1);
        keep(p->ints, &p->n_ints, first + 2);
    }
    for (int branch = 0; branch < (kind == 2 ? 2 : 1); branch++) {
        int outer_floats = p->n_floats, outer_ints = p->n_ints;
        add_body(p, depth - 1);
        if (kind != 2)
            strbuf_printf(&p->text, "%%%d = sub %%%d, %%2 : i32\n", first + 5, first + 2);
        strbuf_printf(&p->text, "yield %%%d, %%%d, %%%d\n}", pick(p->floats, p->n_floats),
                      pick(p->floats, p->n_floats),
                      kind != 2 ? first + 5 : pick(p->ints, p->n_ints));
        strbuf_printf(&p->text, "%s", kind == 2 && branch == 0 ? " else {\n" : "");
        p->n_floats = outer_floats;
        p->n_ints = outer_ints;
    }
    p->n_floats = n_floats;
    p->n_ints = n_ints;
    strbuf_printf(&p->text, " -> %%%d, %%%d, %%%d\n", p->next, p->next + 1, p->next + 2);
    keep(p->floats, &p->n_floats, p->next);
    keep(p->floats, &p->n_floats, p->next + 1);
    keep(p->ints, &p->n_ints, p->next + 2);
    p->next += 3;
}

static void add_body(struct program *p, int depth)
{
    int n = 1 + (int)(nest_check_random() % 5);
    for (int i = 0; i < n; i++)
        if (depth && nest_check_random() % 3 == 0)
            add_nested(p, depth);
        else
            add_op(p);
}

// Bodies at random, of a few lanes and of many.
START_TEST(random_bodies)
{
    static const int64_t extents[] = {1, 9, 16, 100, 333};
    if (!sample_takes((uint64_t)_i, 1))
        return;
    struct program p = {.text = strbuf_make(nest_check_arena), .next = 10};
    int64_t n = extents[_i % 5];
    nest_check_vary(_i);
    strbuf_printf(&p.text,
                  "kernel random(x: f32[%lld], n: i32[%lld], u: f32[1], y: out f32[%lld],"
                  " z: out i32[%lld]) {\n",
                  (long long)n, (long long)n, (long long)n, (long long)n);
    strbuf_printf(&p.text, "%%0 = const 0x00000000 : i32\n%%1 = const 0x00000007 : i32\n"
                           "%%2 = const 0x00000001 : i32\n%%3 = load u[0] : f32\n");
    strbuf_printf(&p.text, "par b < %lld {\n%%4 = load x[b] : f32\n%%5 = load n[b] : i32\n",
                  (long long)n);
    keep(p.floats, &p.n_floats, 3);
    keep(p.floats, &p.n_floats, 4);
    keep(p.ints, &p.n_ints, 1);
    keep(p.ints, &p.n_ints, 5);
    add_nested(&p, 3);
    add_body(&p, 3);
    strbuf_printf(&p.text, "put y[b] = %%%d\nput z[b] = %%%d\n}\n}\n", p.floats[p.n_floats - 1],
                  p.ints[p.n_ints - 1]);
    nest_check_text(p.text.text);
    nest_check_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("time at random");
    printf("seed %llu\n", (unsigned long long)nest_check_seed());
    TCase *c = tcase_create("bits");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, nest_check_setup, nest_check_teardown);
    tcase_add_loop_test(c, random_bodies, 0, 60);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
