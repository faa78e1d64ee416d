// SPDX-License-Identifier: Apache-2.0
#include "trace/opened.h"

#include "runtime/fork.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace *newest;
static uint32_t last_serial;
static bool has_wrapped;

// Of the threads of the parent none is in the child but the one that forked.
static void forget_other_threads(void)
{
    newest = NULL;
    struct trace **end = &newest, *newer = NULL;
    for (struct trace *t = trace_top(); t; t = t->below) {
        t->newer = newer;
        t->older = NULL;
        *end = newer = t;
        end = &t->older;
    }
}

FORK_KEEPS(FORK_TRACES, lock, forget_other_threads)

static struct trace *find_trace(uint32_t serial)
{
    struct trace *t = newest;
    while (t && t->serial != serial)
        t = t->older;
    return t;
}

// 0 is "no value" and the largest marks guard slots; neither is ever given out.
static uint32_t next_serial(void)
{
    do {
        last_serial++;
        if (last_serial >= TRACE_GUARD_SERIAL) {
            last_serial = 1;
            has_wrapped = true;
        }
    } while (has_wrapped && find_trace(last_serial));
    return last_serial;
}

void opened_add(struct trace *t)
{
    pthread_mutex_lock(&lock);
    t->serial = next_serial();
    t->newer = NULL;
    t->older = newest;
    if (newest)
        newest->newer = t;
    newest = t;
    pthread_mutex_unlock(&lock);
}

void opened_remove(struct trace *t)
{
    pthread_mutex_lock(&lock);
    *(t->newer ? &t->newer->older : &newest) = t->older;
    if (t->older)
        t->older->newer = t->newer;
    pthread_mutex_unlock(&lock);
}

bool opened_find(uint32_t serial, struct opened_trace *out)
{
    pthread_mutex_lock(&lock);
    const struct trace *t = find_trace(serial);
    if (t) {
        out->kind = t->kind;
        snprintf(out->name, sizeof out->name, "%s", t->name);
        snprintf(out->where, sizeof out->where, "%s", t->where ? t->where : "?");
    }
    pthread_mutex_unlock(&lock);
    return t != NULL;
}

uint32_t *opened_last_serial(void) { return &last_serial; }
