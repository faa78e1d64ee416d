// SPDX-License-Identifier: Apache-2.0
// The PTX of a module as several texts, each of which ends with a zero byte: the device's assembler
// takes one after the other on as many threads.  A long kernel is a text of its own, short ones are
// one together.  What stands before the first kernel, declarations and tables of constants, begins
// each of them.
#include "codegen/gpu/gpu.h"

#include <string.h>

#define ENTRY "\n.visible .entry "
#define END "\n}\n"
#define LONG 16384 // characters of a kernel that takes longer than one more text does

struct writer {
    char *to;
    const char *ptx;
    size_t head; // characters before the first kernel
    bool is_open;
};

static void put(struct writer *w, const char *from, size_t n)
{
    memcpy(w->to, from, n);
    w->to += n;
}

static void open_text(struct writer *w)
{
    if (!w->is_open)
        put(w, w->ptx, w->head);
    w->is_open = true;
}

static void close_text(struct writer *w)
{
    if (w->is_open)
        *w->to++ = 0;
    w->is_open = false;
}

// From the line of the kernel that begins behind `at` to behind its last one; 0: there is none.
static size_t next_kernel(const char **at)
{
    const char *entry = strstr(*at, ENTRY), *end = entry ? strstr(entry, END) : NULL;
    if (!end)
        return 0;
    *at = entry;
    return (size_t)(end - entry) + strlen(END);
}

// Kernels that are long, or those that are not.
static void put_kernels(struct writer *w, bool are_long)
{
    const char *at = w->ptx;
    for (size_t n; (n = next_kernel(&at)) != 0; at += n - 1) {
        if ((n >= LONG) != are_long)
            continue;
        open_text(w);
        put(w, at, n);
        if (are_long)
            close_text(w);
    }
    close_text(w);
}

const char *gpu_texts(struct arena *arena, const char *ptx, size_t *size)
{
    size_t kernels = 0, longs = 0;
    const char *first = strstr(ptx, ENTRY), *at = ptx;
    for (size_t n; (n = next_kernel(&at)) != 0; at += n - 1) {
        kernels++;
        longs += n >= LONG;
    }
    // Functions that kernels call would be assembled as often.
    if (kernels < 2 || !longs || strstr(ptx, "\n.func")) {
        *size = strlen(ptx) + 1;
        return ptx;
    }
    struct writer w = {.ptx = ptx, .head = (size_t)(first - ptx)};
    char *all = arena_allocate(arena, strlen(ptx) + (longs + 1) * (w.head + 1) + 1);
    w.to = all;
    put_kernels(&w, true);
    put_kernels(&w, false);
    *size = (size_t)(w.to - all);
    return all;
}
