// SPDX-License-Identifier: Apache-2.0
#include "trace/ended.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>

#define REMEMBERED 64
#define VALUES_REMEMBERED 65536 // of one trace

struct ended_ring {
    uint32_t count; // of all that ended
    struct ended_trace traces[REMEMBERED];
};

static _Thread_local struct ended_ring *ring;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release_ring(void *data)
{
    struct ended_ring *r = data;
    for (int i = 0; i < REMEMBERED; i++)
        memory_release(r->traces[i].made);
    memory_release(r);
}

static void make_key(void) { pthread_key_create(&key, release_ring); }

// Without memory nothing is remembered, and messages say less.
static struct ended_ring *get_ring(void)
{
    if (ring)
        return ring;
    pthread_once(&once, make_key);
    ring = memory_allocate_zeroed(sizeof *ring);
    if (ring)
        pthread_setspecific(key, ring);
    return ring;
}

void ended_add(const struct trace *t)
{
    struct ended_ring *r = get_ring();
    if (!r)
        return;
    struct ended_trace *e = &r->traces[r->count++ % REMEMBERED];
    memory_release(e->made);
    uint32_t count = t->slots.count < VALUES_REMEMBERED ? t->slots.count : VALUES_REMEMBERED;
    *e = (struct ended_trace){
        .serial = t->serial, .count = count, .kind = t->kind, .where = t->where};
    snprintf(e->name, sizeof e->name, "%s", t->name);
    e->made = memory_allocate(count * sizeof *e->made);
    if (!e->made)
        return;
    for (uint32_t i = 0; i < count; i++)
        e->made[i] = t->slots.at[i].where;
}

const struct ended_trace *ended_find(uint32_t serial)
{
    for (int i = 0; ring && i < REMEMBERED; i++)
        if (ring->traces[i].serial == serial)
            return &ring->traces[i];
    return NULL;
}

void trace_forget_ended(void)
{
    if (!ring)
        return;
    release_ring(ring);
    ring = NULL;
    pthread_setspecific(key, NULL);
}
