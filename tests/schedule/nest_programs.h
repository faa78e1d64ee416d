// SPDX-License-Identifier: Apache-2.0
// Programs of one nest, and what they put.
#ifndef PASSES_NEST_PROGRAMS_H
#define PASSES_NEST_PROGRAMS_H

#include "schedule/internal.h"
#include "schedule/rewrites.h"
#include "support/nest_eval.h"

#include "base/status.h"
#include "schedule/schedule.h"
#include "support/suite.h"

#include <check.h>

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

static struct nest *parsed(const char *text)
{
    int n;
    struct nest **all;
    ck_assert_msg(nest_parse(arena, text, &n, &all) == JOT_OK, "%s", jot_error_message());
    return all[0];
}

// A program of the kernel; what is changed is x at first.
static struct nest_program *program_of(const char *kernel)
{
    struct strbuf s = strbuf_make(arena), operands = strbuf_make(arena);
    struct nest *n = parsed(kernel);
    struct nest_program *p;
    uint32_t outputs = n->buffers.count - 1;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        outputs -= n->buffers.at[i].role == NEST_LOCAL;
    strbuf_printf(&s, "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs %u donated", outputs);
    for (uint32_t i = 0; i < outputs; i++)
        strbuf_add(&s, " -1");
    strbuf_add(&s, "\n  arena 0\n  constants 0\n  memory input 0 : f32[60] \"x\"\n");
    for (uint32_t i = 1, k = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role != NEST_LOCAL)
            strbuf_printf(&s, "  memory output %u : %s[%d] \"y\"\n", k++,
                          dtype_get(n->buffers.at[i].dtype)->name, (int)n->buffers.at[i].count);
    for (uint32_t i = 1; i < n->buffers.count; i++)
        if (n->buffers.at[i].role == NEST_INOUT)
            strbuf_printf(&s, "  step copy (%u, 0) \"\"\n", i);
    for (uint32_t i = 0; i <= outputs; i++)
        strbuf_printf(&operands, "%s%u", i ? ", " : "", i);
    strbuf_printf(&s, "  step kernel 0 (%s) \"\"\n}\n%s", operands.text, kernel);
    ck_assert_msg(nest_program_parse(arena, s.text, &p) == JOT_OK, "%s\n%s",
                  jot_error_message(), s.text);
    return p;
}

static size_t bytes_of(const struct nest_memory *m)
{
    return (size_t)m->count * jot_dtype_size(m->dtype);
}

// What the program puts, one output behind the other, with the inputs that all have.
static char *results(const struct nest_program *p, size_t *out_bytes)
{
    void *in[16], *out[16];
    uint64_t state = 1;
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        if (m->kind == NEST_OUTPUT)
            bytes += bytes_of(m);
        if (m->kind != NEST_INPUT)
            continue;
        float *x = in[m->index] = arena_allocate(arena, bytes_of(m));
        for (int64_t k = 0; m->dtype == JOT_F32 && k < m->count; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            x[k] = (float)(int64_t)(state >> 40) * 0x1p-23f - 0.7f;
        }
    }
    char *all = arena_allocate(arena, bytes + 1), *at = all;
    for (uint32_t o = 0; o < p->n_outputs; o++)
        for (uint32_t i = 0; i < p->memories.count; i++)
            if (p->memories.at[i].kind == NEST_OUTPUT && p->memories.at[i].index == o) {
                out[o] = at;
                at += bytes_of(&p->memories.at[i]);
            }
    ck_assert_msg(nest_program_eval(p, in, out) == JOT_OK, "%s", jot_error_message());
    *out_bytes = bytes;
    return all;
}

static inline struct nest_program *after_fission(const char *text)
{
    struct nest_program *p;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s", jot_error_message());
    schedule_fission(p, &(struct schedule_options){0});
    return p;
}

#endif
