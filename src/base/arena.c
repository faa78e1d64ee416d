// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "base/memory.h"
#include "base/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 16
#define FIRST_BLOCK 4096

struct block {
    struct block *previous;
    size_t size, used;
    size_t before; // bytes in earlier blocks
    _Alignas(ALIGNMENT) unsigned char data[];
};

struct arena {
    struct block *last;
};

static _Thread_local struct arena_guard *innermost;

jmp_buf *arena_guard_push(struct arena_guard *g)
{
    g->outer = innermost;
    innermost = g;
    return &g->leave;
}

void arena_guard_close(struct arena_guard *g)
{
    assert(innermost == g);
    innermost = g->outer;
}

struct arena_guard *arena_guard_innermost(void) { return innermost; }

void arena_guard_restore(struct arena_guard *g) { innermost = g; }

_Noreturn void arena_exhausted(void)
{
    struct arena_guard *g = innermost;
    if (!g)
        abort(); // an entry point without a guard: a fault of jot
    innermost = g->outer;
    longjmp(g->leave, 1);
}

struct arena *arena_create(void) { return memory_allocate_zeroed(sizeof(struct arena)); }

void arena_release(struct arena *a)
{
    if (!a)
        return;
    for (struct block *b = a->last, *previous; b; b = previous) {
        previous = b->previous;
        memory_release(b);
    }
    memory_release(a);
}

size_t arena_bytes(const struct arena *a)
{
    return a->last ? a->last->before + a->last->used : 0;
}

static void add_block(struct arena *a, size_t bytes)
{
    size_t size = a->last ? a->last->size * 2 : FIRST_BLOCK;
    if (size > (size_t)1 << 24)
        size = (size_t)1 << 24;
    if (size < bytes)
        size = bytes;
    struct block *b = memory_allocate(sizeof(struct block) + size);
    if (!b)
        arena_exhausted();
    *b = (struct block){.previous = a->last, .size = size, .before = arena_bytes(a)};
    a->last = b;
}

void *arena_allocate(struct arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        arena_exhausted();
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!a->last || a->last->size - a->last->used < bytes)
        add_block(a, bytes);
    void *at = a->last->data + a->last->used;
    a->last->used += bytes;
    return memset(at, 0, bytes);
}

void *arena_allocate_many(struct arena *a, size_t bytes, size_t n)
{
    size_t all;
    return arena_allocate(a, __builtin_mul_overflow(bytes, n, &all) ? SIZE_MAX : all);
}

void *arena_copy(struct arena *a, const void *data, size_t bytes)
{
    void *at = arena_allocate(a, bytes);
    return bytes ? memcpy(at, data, bytes) : at;
}

char *arena_text(struct arena *a, const char *text)
{
    return arena_copy(a, text, strlen(text) + 1);
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){.block = a->last, .used = a->last ? a->last->used : 0};
}

void arena_rewind(struct arena *a, struct arena_mark mark)
{
    assert(!mark.block || a->last); // it is of this arena, and not rewound already
    while (a->last && a->last != mark.block) {
        struct block *b = a->last;
        a->last = b->previous;
        memory_release(b);
    }
    if (a->last)
        a->last->used = mark.used;
}

jot_status arena_lend(jot_status (*body)(struct arena *scratch, void *ctx), void *ctx)
{
    struct arena *scratch = arena_create();
    if (!scratch)
        return status_out_of_memory();
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        arena_release(scratch);
        return status_out_of_memory();
    }
    jot_status status = body(scratch, ctx);
    arena_guard_close(&guard);
    arena_release(scratch);
    return status;
}
