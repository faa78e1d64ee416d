// SPDX-License-Identifier: Apache-2.0
#include "trace/lazy_cache.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/frames.h"
#include "runtime/host/blocks.h"
#include "trace/copy.h"

#include <pthread.h>

#define MOST_PROGRAMS 256

struct entry {
    struct entry *next; // most recently used first
    struct hash128 key;
    struct ir_module *module;
    struct backend_program *program; // NULL while a thread compiles it
    int users;                       // calls in flight, and the thread that compiles
};

// A call of a program that calls code of the user.
struct open_use {
    struct rt_frame frame;
    struct entry *entry;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_compiled = PTHREAD_COND_INITIALIZER;
static struct entry *entries;
static size_t n_compiled, n_hits, n_evicted, most_programs = MOST_PROGRAMS;

static void take_out(struct entry *e);

// What another thread of the parent compiles is never done.
static void forget_compiling(void)
{
    is_compiled = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    for (struct entry *e = entries, *next; e; e = next) {
        next = e->next;
        if (!e->program)
            take_out(e);
    }
}

FORK_KEEPS(FORK_SCOPES, lock, forget_compiling)

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
        n_evicted++;
    }
}

static void add(struct entry *e)
{
    e->next = entries;
    entries = e;
}

static void take_out(struct entry *e)
{
    struct entry **at = &entries;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

static struct entry *find_entry(struct hash128 key)
{
    struct entry *e = entries;
    while (e && (e->key.lo != key.lo || e->key.hi != key.hi))
        e = e->next;
    if (e) {
        take_out(e);
        add(e);
    }
    return e;
}

// Where a program runs: on the device, or on the mesh, NULL for the first devices of its kind.
struct where {
    jot_device *device;
    const jot_mesh *mesh;
};

static jot_status compile(const struct ir_graph *g, struct ir_module *m,
                          const struct where *where, struct backend_program **out)
{
    if (!m)
        return status_out_of_memory();
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    uint32_t f = copy_function(m, g);
    struct backend_options options = {
        .name = "scope", .device = where->device, .mesh = where->mesh};
    jot_status status = backend_compile(m, f, &options, out);
    arena_guard_close(&guard);
    return status;
}

// Compiles with the lock open, so that only those wait who want the same program.
static jot_status add_compiled(const struct ir_graph *g, struct hash128 key,
                               const struct where *where, struct entry **out)
{
    struct entry *e = memory_allocate_zeroed(sizeof *e);
    if (!e)
        return status_out_of_memory();
    e->key = key;
    e->users = 1;
    add(e);
    pthread_mutex_unlock(&lock);
    struct backend_program *program = NULL;
    e->module = ir_module_create();
    jot_status status = compile(g, e->module, where, &program);
    pthread_mutex_lock(&lock);
    e->program = program;
    pthread_cond_broadcast(&is_compiled);
    if (status != JOT_OK) {
        take_out(e);
        release_entry(e);
        return status;
    }
    n_compiled++;
    *out = e;
    return JOT_OK;
}

// The entry with one more user.  Who waited for a program that could not be compiled tries itself,
// and so has a message of its own.
static jot_status acquire(const struct ir_graph *g, struct hash128 key,
                          const struct where *where, struct entry **out)
{
    jot_status status = JOT_OK;
    pthread_mutex_lock(&lock);
    rt_block_on_new_allocator(lazy_forget);
    struct entry *e = find_entry(key);
    for (; e && !e->program; e = find_entry(key))
        pthread_cond_wait(&is_compiled, &lock);
    if (e) {
        e->users++;
        n_hits++;
    } else {
        status = add_compiled(g, key, where, &e);
        trim(most_programs);
    }
    pthread_mutex_unlock(&lock);
    *out = e;
    return status;
}

static void end_use(struct entry *e)
{
    pthread_mutex_lock(&lock);
    e->users--;
    pthread_mutex_unlock(&lock);
}

static void abandon_use(struct rt_frame *frame)
{
    struct open_use *u = (struct open_use *)frame;
    end_use(u->entry);
    memory_release(u);
}

__attribute__((noinline)) static jot_status run_open(struct entry *e, jot_array *const *in,
                                                     jot_array **out)
{
    RT_MARK mark = {0};
    struct open_use *u = memory_allocate(sizeof *u);
    if (!u)
        return status_out_of_memory();
    u->entry = e;
    rt_frame_open(&u->frame, &mark, abandon_use);
    jot_status status = backend_run(e->program, in, out);
    rt_frame_close(&mark);
    memory_release(u);
    return status;
}

jot_status lazy_run(const struct ir_graph *g, struct hash128 key, const jot_mesh *mesh,
                    jot_array *const *in, jot_array **out, bool *has_run)
{
    struct entry *e;
    struct where where = {jot_default_device(), mesh};
    *has_run = false;
    key.lo ^= hash_bytes(0, where.device->name, strlen(where.device->name));
    key.hi ^= (uint64_t)(uintptr_t)mesh;
    JOT_TRY(acquire(g, key, &where, &e));
    *has_run = true;
    int64_t since = timeline_begin();
    jot_status status = backend_calls_back(e->program) ? run_open(e, in, out)
                                                       : backend_run(e->program, in, out);
    timeline_end(since, &(struct timeline_event){.kind = "call", .name = "scope"});
    if (since && status == JOT_OK)
        rt_device_count_memory(where.device);
    end_use(e);
    return status;
}

void lazy_forget(void)
{
    pthread_mutex_lock(&lock);
    trim(0);
    pthread_mutex_unlock(&lock);
}

size_t lazy_compiled(void)
{
    pthread_mutex_lock(&lock);
    size_t n = n_compiled;
    pthread_mutex_unlock(&lock);
    return n;
}

jot_version_use jot_scope_use(void)
{
    pthread_mutex_lock(&lock);
    jot_version_use use = {
        .most = most_programs, .made = n_compiled, .hits = n_hits, .evicted = n_evicted};
    for (const struct entry *e = entries; e; e = e->next) {
        use.kept++;
        if (e->program)
            use.bytes += sizeof *e + arena_bytes(e->module->arena) + backend_bytes(e->program);
    }
    pthread_mutex_unlock(&lock);
    return use;
}

void jot_set_most_scope_programs(size_t n)
{
    pthread_mutex_lock(&lock);
    most_programs = n ? n : MOST_PROGRAMS;
    pthread_mutex_unlock(&lock);
}
