// SPDX-License-Identifier: Apache-2.0
#include "nest_check.h"

#include "base/hash.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct arena *nest_check_arena;
static uint64_t seed;

uint64_t nest_check_seed(void)
{
    const char *text = getenv("JOT_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : 1;
}

void nest_check_setup(void)
{
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

static void put_float(jot_dtype d, float f, unsigned char *at)
{
    double wide = (double)f;
    uint16_t half = d == JOT_BF16 ? dtype_bf16_from_f32(f) : dtype_f16_from_f32(f);
    if (d == JOT_F64)
        memcpy(at, &wide, 8);
    else if (d == JOT_F32)
        memcpy(at, &f, 4);
    else
        memcpy(at, &half, 2);
}

// Numbers of both signs, one in 50 of them NaN; integers from 0 to 39; bools.
static void fill(jot_dtype d, int64_t count, unsigned char *at)
{
    jot_dtype part = dtype_real(d);
    size_t size = dtype_get(part)->bytes;
    for (int64_t i = 0; i < (dtype_is_complex(d) ? 2 * count : count); i++, at += size) {
        uint64_t bits = nest_check_random(), small = (bits >> 8) % (part == JOT_BOOL ? 2 : 40);
        float f = bits % 50 == 0 ? NAN : (float)((double)(bits >> 11) * 0x1p-51 - 2);
        if (dtype_is_float(part))
            put_float(part, f, at);
        else
            memcpy(at, &small, size);
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

// The first element that differs, or -1.  NaN of any kind equals NaN.
static int64_t differs(jot_dtype d, int64_t count, const unsigned char *x,
                       const unsigned char *y)
{
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

static void check_nest(struct nest *n)
{
    struct strbuf text = strbuf_make(nest_check_arena), report = strbuf_make(nest_check_arena);
    nest_print(&text, n);
    ck_assert_msg(!nest_verify(n, &report), "%s\n%s", report.text, text.text);
    struct nest_program *p = run_native_wrap(nest_check_arena, n);
    uint32_t count = p->memories.count;
    void *buffers[16], *in[16], *out[16];
    for (uint32_t i = 0; i < count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        buffers[i] = memory_of(m);
        fill(m->dtype, m->count, buffers[i]);
        if (m->place == NEST_INPUT) {
            in[m->index] = buffers[i];
        } else {
            out[m->index] = memory_of(m);
            memcpy(out[m->index], buffers[i], run_native_bytes(m));
        }
    }
    ck_assert_msg(nest_eval(n, buffers) == JOT_OK, "interpreter: %s\n%s", jot_error_message(),
                  text.text);
    ck_assert_msg(run_native(nest_check_arena, p, in, out) == JOT_OK, "%s\n%s",
                  jot_error_message(), text.text);
    for (uint32_t i = 0; i < count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        int64_t at = m->place == NEST_OUTPUT
                         ? differs(m->dtype, m->count, out[m->index], buffers[i])
                         : -1;
        ck_assert_msg(at < 0, "element %lld of %s differs:\n%s", (long long)at, m->name,
                      text.text);
    }
}

void nest_check_text(const char *text)
{
    struct nest **nests;
    int count;
    ck_assert_msg(nest_parse(nest_check_arena, text, &count, &nests) == JOT_OK, "%s\n%s",
                  jot_error_message(), text);
    for (int i = 0; i < count; i++)
        check_nest(nests[i]);
    arena_release(nest_check_arena);
    nest_check_arena = arena_create();
}
