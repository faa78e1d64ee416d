// SPDX-License-Identifier: Apache-2.0
#include "nest_check.h"

#include "base/hash.h"
#include "base/status.h"
#include "map/map.h"
#include "support/map_nest.h"
#include "support/nest_eval.h"
#include "support/nest_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS_A_PROGRAM = 64, MOST_BUFFERS = 16 };

// A kernel, and what the interpreter has made of its outputs.
struct waiting {
    struct nest *nest;
    struct nest_program *program;
    void *in[MOST_BUFFERS], *out[MOST_BUFFERS], *want[MOST_BUFFERS];
};

struct arena *nest_check_arena;
bool nest_check_any;
static uint64_t seed;
static struct waiting waiting[KERNELS_A_PROGRAM];
static uint32_t n_waiting;

uint64_t nest_check_seed(void)
{
    const char *text = getenv("JOT_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : 1;
}

void nest_check_setup(void)
{
    n_waiting = 0;
    seed = nest_check_seed();
    nest_check_arena = arena_create();
}

void nest_check_vary(int number) { seed = hash_mix(seed + (uint64_t)number); }

void nest_check_teardown(void) { arena_release(nest_check_arena); }

uint64_t nest_check_random(void)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(seed);
}

static void put_float(jot_dtype d, double wide, unsigned char *at)
{
    float f = (float)wide;
    uint16_t half = d == JOT_BF16 ? dtype_bf16_from_f32(f) : dtype_f16_from_f32(f);
    if (d == JOT_F64)
        memcpy(at, &wide, 8);
    else if (d == JOT_F32)
        memcpy(at, &f, 4);
    else
        memcpy(at, &half, 2);
}

static void fill(jot_dtype d, int64_t count, void *data)
{
    jot_dtype part = dtype_real(d);
    size_t size = dtype_get(part)->bytes;
    unsigned char *at = data;
    for (int64_t i = 0; i < (dtype_is_complex(d) ? 2 * count : count); i++, at += size) {
        uint64_t bits = nest_check_random(), integer = bits >> 8;
        bool is_nan = !nest_check_any && bits % 50 == 0;
        if (part == JOT_BOOL)
            integer %= 2;
        else if (!nest_check_any)
            integer %= 40;
        else
            integer = bits % 5 ? nest_check_random() : integer % 3;
        if (dtype_is_float(part))
            put_float(part, is_nan ? NAN : (double)(bits >> 11) * 0x1p-51 - 2, at);
        else
            memcpy(at, &integer, size);
    }
}

static bool is_nan(jot_dtype d, const unsigned char *at)
{
    float f;
    double g;
    uint16_t h;
    memcpy(&f, at, d == JOT_F32 ? 4 : 0);
    memcpy(&g, at, d == JOT_F64 ? 8 : 0);
    memcpy(&h, at, dtype_is_half(d) ? 2 : 0);
    if (dtype_is_half(d))
        f = d == JOT_F16 ? dtype_f16_to_f32(h) : dtype_bf16_to_f32(h);
    return d == JOT_F64 ? g != g : dtype_is_float(d) && f != f;
}

int64_t nest_check_differs(jot_dtype d, int64_t count, const void *left, const void *right)
{
    const unsigned char *x = left, *y = right;
    jot_dtype part = dtype_real(d);
    size_t size = dtype_get(part)->bytes;
    int64_t parts = dtype_is_complex(d) ? 2 : 1;
    for (int64_t i = 0; i < count * parts; i++, x += size, y += size)
        if (memcmp(x, y, size) != 0 && !(is_nan(part, x) && is_nan(part, y)))
            return i / parts;
    return -1;
}

static unsigned char *memory_of(const struct nest_memory *m)
{
    uint64_t bytes = run_native_bytes(m) + 128;
    unsigned char *at = arena_allocate(nest_check_arena, bytes);
    memset(at, 0, bytes);
    return at;
}

static const char *text_of(const struct nest *n)
{
    struct strbuf text = strbuf_make(nest_check_arena);
    nest_print(&text, n);
    return text.text;
}

static void check_outputs(const struct waiting *w)
{
    for (uint32_t i = 0; i < w->program->memories.count; i++) {
        const struct nest_memory *m = &w->program->memories.at[i];
        if (m->kind != NEST_OUTPUT)
            continue;
        int64_t at =
            nest_check_differs(m->dtype, m->count, w->out[m->index], w->want[m->index]);
        ck_assert_msg(at < 0, "element %lld of %s differs:\n%s", (long long)at, m->name,
                      text_of(w->nest));
    }
}

void nest_check_end(void)
{
    struct nest_program *programs[KERNELS_A_PROGRAM];
    void *in[KERNELS_A_PROGRAM * MOST_BUFFERS], *out[KERNELS_A_PROGRAM * MOST_BUFFERS];
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t i = 0; i < n_waiting; i++) {
        const struct nest_program *p = programs[i] = waiting[i].program;
        memcpy(in + n_in, waiting[i].in, p->n_inputs * sizeof *in);
        memcpy(out + n_out, waiting[i].out, p->n_outputs * sizeof *out);
        n_in += p->n_inputs;
        n_out += p->n_outputs;
    }
    struct nest_program *all = run_native_merge(nest_check_arena, n_waiting, programs);
    ck_assert_msg(run_native(nest_check_arena, all, in, out) == JOT_OK, "%s",
                  jot_error_message());
    for (uint32_t i = 0; i < n_waiting; i++)
        check_outputs(&waiting[i]);
    n_waiting = 0;
}

// Memory as `buffers` has it where it is read, and else as it was before.
static void run_again(const struct waiting *w, const struct nest *n, void *const *buffers,
                      void **out)
{
    for (uint32_t i = 0; i < w->program->memories.count; i++) {
        const struct nest_memory *m = &w->program->memories.at[i];
        out[i] = buffers[i];
        if (m->kind == NEST_INPUT)
            continue;
        out[i] = memory_of(m);
        memcpy(out[i], w->out[m->index], run_native_bytes(m));
    }
    ck_assert_msg(nest_eval(n, out) == JOT_OK, "interpreter: %s\n%s", jot_error_message(),
                  text_of(n));
}

// The mapped nest is as legal, has a text, and gives the bits of the other one.
static void check_mapped(const struct waiting *w, struct nest *n, void *const *buffers,
                         void *const *want)
{
    struct strbuf report = strbuf_make(nest_check_arena);
    void *got[MOST_BUFFERS];
    ck_assert_msg(!nest_verify(n, &report), "%s\n%s", report.text, text_of(n));
    ck_assert_msg(nest_equal(n, nest_of_text(nest_check_arena, text_of(n))), "%s", text_of(n));
    run_again(w, n, buffers, got);
    for (uint32_t i = 0; i < w->program->memories.count; i++) {
        const struct nest_memory *m = &w->program->memories.at[i];
        ck_assert_msg(nest_check_differs(m->dtype, m->count, got[i], want[i]) < 0,
                      "%s differs:\n%s", m->name, text_of(n));
    }
}

// With the levels of some processor, and, of every other one, of a GPU.
static void check_maps(const struct waiting *w, void *const *buffers)
{
    struct nest *n = nest_of_text(nest_check_arena, text_of(w->nest));
    uint64_t draw = nest_check_random();
    n->choices = draw / 16 % (1u << NEST_CHOICES);
    if (map_jam(n))
        nest_collapse(n);
    map_stage(n);
    map_to_host(n, &(struct map_host){16u << draw % 3, draw / 3 % 3});
    check_mapped(w, n, buffers, buffers);
    if (draw >> 31 & 1)
        return;
    n = nest_of_text(nest_check_arena, text_of(w->nest));
    n->choices = draw / 16 % (1u << NEST_CHOICES);
    map_nest_as_if_longer(nest_check_arena, n, draw >> 32);
    void *plain[MOST_BUFFERS];
    run_again(w, nest_without_levels(nest_check_arena, n), buffers, plain);
    check_mapped(w, n, buffers, plain);
}

void nest_check(struct nest *n)
{
    struct strbuf report = strbuf_make(nest_check_arena);
    ck_assert_msg(!nest_verify(n, &report), "%s\n%s", report.text, text_of(n));
    struct waiting *w = &waiting[n_waiting++];
    *w = (struct waiting){.nest = n, .program = run_native_wrap(nest_check_arena, n)};
    void *buffers[MOST_BUFFERS];
    for (uint32_t i = 0; i < w->program->memories.count; i++) {
        const struct nest_memory *m = &w->program->memories.at[i];
        buffers[i] = memory_of(m);
        fill(m->dtype, m->count, buffers[i]);
        if (m->kind == NEST_INPUT) {
            w->in[m->index] = buffers[i];
            continue;
        }
        w->want[m->index] = buffers[i];
        w->out[m->index] = memory_of(m);
        memcpy(w->out[m->index], buffers[i], run_native_bytes(m));
    }
    ck_assert_msg(nest_eval(n, buffers) == JOT_OK, "interpreter: %s\n%s", jot_error_message(),
                  text_of(n));
    check_maps(w, buffers);
    if (n_waiting == KERNELS_A_PROGRAM)
        nest_check_end();
}

void nest_check_text(const char *text)
{
    struct nest **nests;
    int count;
    ck_assert_msg(nest_parse(nest_check_arena, text, &count, &nests) == JOT_OK, "%s\n%s",
                  jot_error_message(), text);
    for (int i = 0; i < count; i++)
        nest_check(nests[i]);
}

const char *nest_check_instance(const char *text, int64_t lanes, int64_t times,
                                const char *dtype)
{
    struct strbuf s = strbuf_make(nest_check_arena);
    for (const char *at = text; *at; at++) {
        int64_t number = 0;
        bool is_number = true;
        switch (at[0] == '%' ? at[1] : 0) {
        case 'B':
            number = lanes;
            break;
        case 'T':
            number = times;
            break;
        case 'P':
            number = lanes * times;
            break;
        default:
            is_number = false;
        }
        if (is_number)
            strbuf_printf(&s, "%lld", (long long)number);
        else if (at[0] == '%' && at[1] == 'd')
            strbuf_printf(&s, "%s", dtype);
        else
            strbuf_printf(&s, "%c", *at);
        at += is_number || (at[0] == '%' && at[1] == 'd');
    }
    return s.text;
}
