// SPDX-License-Identifier: Apache-2.0
// Memory that is freed whole.  Graphs, nests and everything a pass makes live in an arena.
//
// An arena never returns NULL.  When memory is out it leaves by the guard of the thread: a public
// entry point opens one with arena_guard_left, and what it owns is released there.  Code between
// owns nothing but arena memory, so leaving it by longjmp loses nothing.
//
//     struct arena_guard guard;
//     if (arena_guard_left(&guard)) { ...release...; return status_out_of_memory(); }
//     ...
//     arena_guard_close(&guard);
//
// Thread-safety: an arena belongs to one thread at a time.
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "jot/status.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

struct arena_guard {
    jmp_buf leave;
    struct arena_guard *outer;
};

struct arena_mark {
    void *block;
    size_t used;
};

struct arena *arena_create(void);          // NULL when memory is out
void arena_release(struct arena *a);       // NULL is fine
size_t arena_bytes(const struct arena *a); // handed out so far

// Zeroed, aligned for any type.
void *arena_allocate(struct arena *a, size_t bytes);
void *arena_allocate_many(struct arena *a, size_t bytes, size_t n); // n times as much
void *arena_copy(struct arena *a, const void *data, size_t bytes);
char *arena_text(struct arena *a, const char *text); // a copy of a string

// Forgets everything allocated after the mark.
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark);

#define arena_new(a, T) ((T *)arena_allocate((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_allocate_many((a), sizeof(T), (size_t)(n)))

// Opens the guard.  False the first time; true when memory ran out inside, the guard then being
// closed.  It is the whole condition of an `if`, perhaps after a `!`: C allows setjmp no more.
#define arena_guard_left(g) setjmp(*arena_guard_push(g))
jmp_buf *arena_guard_push(struct arena_guard *g);
void arena_guard_close(struct arena_guard *g);
// The innermost guard of the thread, or NULL; and that one again, when those inside it are gone.
struct arena_guard *arena_guard_innermost(void);
void arena_guard_restore(struct arena_guard *g);
// The body with an arena that is freed afterwards, inside a guard: what the body gives, or the
// status of no memory.
jot_status arena_lend(jot_status (*body)(struct arena *scratch, void *ctx), void *ctx);
// Leaves by the innermost guard of the thread; there must be one.
_Noreturn void arena_exhausted(void);

#endif
