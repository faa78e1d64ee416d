// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/parts.h"

#include "base/status.h"
#include "runtime/host/nodes.h"
#include "runtime/host/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static jot_device host = {.type = &rt_host_type, .name = "host"};
static jot_device parts[RT_HOST_MOST + 1];            // the last for numbers of none
static _Atomic(struct rt_pool *) pools[RT_HOST_MOST]; // made when they are first entered
static atomic_int part_count;                         // 0: not known yet
static int node_count;
static cpu_set_t nodes[RT_NODES_MOST];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int default_count(void)
{
    const char *text = secure_getenv("JOT_HOST_DEVICES");
    long n = text ? strtol(text, NULL, 10) : 1;
    return n < 1 || n > RT_HOST_MOST ? 1 : (int)n; // calls that compile say what is wrong
}

static void set_up(void)
{
    for (int i = 0; i <= RT_HOST_MOST; i++) {
        parts[i] = (jot_device){.type = &rt_host_type, .index = i, .part = i + 1};
        snprintf(parts[i].name, sizeof parts[i].name, i < RT_HOST_MOST ? "host:%d" : "host:?",
                 i);
    }
    node_count = rt_nodes_read("/sys/devices/system/node", nodes);
    int unknown = 0;
    atomic_compare_exchange_strong(&part_count, &unknown, default_count());
}

jot_device *jot_host(void) { return &host; }

int rt_host_count(void)
{
    pthread_once(&once, set_up);
    return atomic_load_explicit(&part_count, memory_order_relaxed);
}

jot_device *rt_host_part(int part)
{
    pthread_once(&once, set_up);
    return part ? &parts[part - 1] : &host;
}

jot_device *jot_host_device(int index)
{
    if (index == 0 && rt_host_count() == 1)
        return &host;
    return rt_host_part(index >= 0 && index < RT_HOST_MOST ? index + 1 : RT_HOST_MOST + 1);
}

jot_status jot_set_host_devices(int n)
{
    if (n < 0 || n > RT_HOST_MOST)
        return status_fail(JOT_ERR_ARGUMENT, "jot_set_host_devices: %d is not in 0 to %d", n,
                           RT_HOST_MOST);
    pthread_once(&once, set_up);
    atomic_store(&part_count, n ? n : default_count());
    return JOT_OK;
}

jot_status rt_host_check(jot_device *d)
{
    int n = rt_host_count();
    if (d->part <= n)
        return JOT_OK;
    return status_fail(JOT_ERR_DEVICE,
                       "%s is not there: the host is %d device%s, and more when "
                       "JOT_HOST_DEVICES or jot_set_host_devices says so",
                       d->name, n, n == 1 ? "" : "s");
}

// ---- threads ----

// The threads that are there, shared out; at least the caller.
static int share_of(const jot_device *d, int n)
{
    int threads = jot_threads(), share = threads / n + (d->index < threads % n);
    return share > 1 ? share : 1;
}

static int node_of(const jot_device *d, int n)
{
    return d->index < n ? (int)((int64_t)d->index * node_count / n) : 0;
}

static struct rt_pool *pool_of(jot_device *d)
{
    int n = rt_host_count(), size = share_of(d, n);
    struct rt_pool *pool = atomic_load_explicit(&pools[d->index], memory_order_acquire);
    if (pool) {
        rt_pool_resize(pool, size);
        return pool;
    }
    struct rt_pool *made =
        rt_pool_create_part(size, node_count > 1 ? &nodes[node_of(d, n)] : NULL);
    if (made && atomic_compare_exchange_strong(&pools[d->index], &pool, made))
        return made;
    rt_pool_release(made);
    return pool;
}

struct rt_pool *rt_host_enter(jot_device *d)
{
    return rt_pool_enter(d->part ? pool_of(d) : NULL);
}

void rt_host_leave(struct rt_pool *before) { rt_pool_enter(before); }

void rt_host_describe(struct rt_text *text)
{
    int n = rt_host_count();
    for (int i = 0; n > 1 && i < n; i++) {
        int share = share_of(&parts[i], n);
        rt_text_add(text, "%-13s%d thread%s", parts[i].name, share, share == 1 ? "" : "s");
        if (node_count > 1)
            rt_text_add(text, ", node %d of %d", node_of(&parts[i], n), node_count);
        rt_text_add(text, "\n");
    }
}
