// SPDX-License-Identifier: Apache-2.0
#include "trace/lazy_cache.h"

#include "base/memory.h"
#include "base/status.h"
#include "trace/copy.h"

#include <pthread.h>

#define PROGRAMS_KEPT 256

struct entry {
    struct entry *next; // most recently used first
    struct hash128 key;
    struct ir_module *module;
    struct backend_program *program;
    int users; // calls in flight
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t n_compiled;

static void release_entry(struct entry *e)
{
    backend_release(e->program);
    ir_module_release(e->module);
    memory_release(e);
}

// Releases entries without users after the first `kept`.
static void trim(size_t kept)
{
    for (struct entry **at = &entries; *at;) {
        struct entry *e = *at;
        if (kept > 0 || e->users) {
            kept -= kept > 0;
            at = &e->next;
            continue;
        }
        *at = e->next;
        release_entry(e);
    }
}

static struct entry *find(struct hash128 key)
{
    for (struct entry **at = &entries; *at; at = &(*at)->next) {
        struct entry *e = *at;
        if (e->key.lo != key.lo || e->key.hi != key.hi)
            continue;
        *at = e->next;
        e->next = entries;
        return entries = e;
    }
    return NULL;
}

static jot_status compile(const struct ir_graph *g, struct entry *e)
{
    struct arena_guard guard;
    if (!arena_guard_open(&guard))
        return status_out_of_memory();
    uint32_t f = copy_function(e->module, g);
    struct backend_options options = {.name = "scope"};
    jot_status status = backend_compile(e->module, f, &options, &e->program);
    arena_guard_close(&guard);
    return status;
}

static jot_status add(const struct ir_graph *g, struct hash128 key, struct entry **out)
{
    struct entry *e = memory_allocate_zeroed(sizeof *e);
    if (!e)
        return status_out_of_memory();
    e->key = key;
    e->module = ir_module_create();
    jot_status status = e->module ? compile(g, e) : status_out_of_memory();
    if (status != JOT_OK) {
        release_entry(e);
        return status;
    }
    n_compiled++;
    e->next = entries;
    *out = entries = e;
    return JOT_OK;
}

static jot_status acquire(const struct ir_graph *g, struct hash128 key, struct entry **out)
{
    pthread_mutex_lock(&lock);
    *out = find(key);
    jot_status status = *out ? JOT_OK : add(g, key, out);
    if (status == JOT_OK)
        (*out)->users++;
    trim(PROGRAMS_KEPT);
    pthread_mutex_unlock(&lock);
    return status;
}

jot_status lazy_run(const struct ir_graph *g, struct hash128 key, jot_array *const *in,
                    jot_array **out)
{
    struct entry *e;
    JOT_TRY(acquire(g, key, &e));
    jot_status status = backend_run(e->program, in, out);
    pthread_mutex_lock(&lock);
    e->users--;
    pthread_mutex_unlock(&lock);
    return status;
}

void lazy_forget(void)
{
    pthread_mutex_lock(&lock);
    trim(0);
    pthread_mutex_unlock(&lock);
}

size_t lazy_compiled(void) { return n_compiled; }
