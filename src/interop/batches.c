// SPDX-License-Identifier: Apache-2.0
// Batches of rows, which a thread of their own reads ahead.
//
// The order of an epoch is a permutation that is computed row by row, so that it takes no
// memory and any batch may be the first: a Feistel network on the least power of four that
// holds all rows, applied until what comes is a row (Black and Rogaway, Ciphers with Arbitrary
// Finite Domains, 2002).
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "jot/io.h"
#include "runtime/array.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 8, MOST_AHEAD = 1024 };

struct jot_loader {
    size_t n;
    jot_array **arrays; // on the host
    int64_t rows, batch, per_epoch;
    jot_loader_options o;
    jot_device *device;
    // Under the lock: batches from `given` to `read`, which lie in slots by their number.
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, is_stopped;
    int64_t given, read;
    jot_array **slots; // o.ahead times n
    jot_status status; // of the batch behind `read`, with its message
    char message[300];
};

// ---- the order ----

// Of one epoch.
struct order {
    uint64_t key[ROUNDS];
    int half_bits; // of a row's number
    uint64_t rows;
};

static struct order make_order(const struct jot_loader *l, uint64_t epoch)
{
    struct order o = {.half_bits = 1, .rows = (uint64_t)l->rows};
    while ((o.rows - 1) >> 2 * o.half_bits)
        o.half_bits++;
    for (uint64_t i = 0; i < ROUNDS; i++)
        o.key[i] = hash_combine(hash_combine(l->o.seed, epoch), i);
    return o;
}

static uint64_t row_of(const struct order *o, uint64_t place)
{
    uint64_t mask = (UINT64_C(1) << o->half_bits) - 1;
    do {
        uint64_t left = place >> o->half_bits, right = place & mask;
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t next = left ^ (hash_combine(o->key[i], right) & mask);
            left = right;
            right = next;
        }
        place = left << o->half_bits | right;
    } while (place >= o->rows);
    return place;
}

// ---- reading ----

// n rows of an array, the first of which comes at `from` in the epoch.
static void gather(const struct jot_loader *l, const jot_array *a, uint64_t epoch, int64_t from,
                   int64_t n, char *to)
{
    const char *data = jot_array_data(a);
    size_t bytes = jot_array_bytes(a) / (size_t)l->rows;
    if (!l->o.shuffle) {
        memcpy(to, data + (size_t)from * bytes, (size_t)n * bytes);
        return;
    }
    struct order o = make_order(l, epoch);
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, data + row_of(&o, (uint64_t)(from + i)) * bytes, bytes);
}

static jot_status read_array(const struct jot_loader *l, const jot_array *a, uint64_t epoch,
                             int64_t from, int64_t n, jot_array **out)
{
    int64_t dims[RT_ARRAY_RANK_LIMIT];
    int rank = jot_array_rank(a);
    for (int i = 0; i < rank; i++)
        dims[i] = i ? jot_array_dim(a, i) : n;
    jot_array *here = rt_array_create(jot_array_dtype(a), rank, dims);
    if (!here)
        return status_last();
    gather(l, a, epoch, from, n, here->data);
    *out = jot_array_to(here, l->device);
    jot_array_release(here);
    return *out ? JOT_OK : status_last();
}

static jot_status read_batch(const struct jot_loader *l, int64_t number, jot_array **out)
{
    uint64_t epoch = (uint64_t)(number / l->per_epoch);
    int64_t from = number % l->per_epoch * l->batch, left = l->rows - from;
    for (size_t i = 0; i < l->n; i++) {
        jot_status status = read_array(l, l->arrays[i], epoch, from,
                                       left < l->batch ? left : l->batch, &out[i]);
        if (status != JOT_OK) {
            jot_arrays_release(i, out);
            return status;
        }
    }
    return JOT_OK;
}

static bool is_end(const struct jot_loader *l, int64_t number)
{
    return l->o.epochs > 0 && number / l->per_epoch >= l->o.epochs;
}

static void *read_ahead(void *ctx)
{
    struct jot_loader *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->is_stopped && l->status == JOT_OK && !is_end(l, l->read)) {
        if (l->read - l->given >= l->o.ahead) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        jot_array **slot = l->slots + (size_t)(l->read % l->o.ahead) * l->n;
        int64_t number = l->read;
        pthread_mutex_unlock(&l->lock);
        jot_status status = read_batch(l, number, slot);
        pthread_mutex_lock(&l->lock);
        if (status == JOT_OK)
            l->read++;
        else
            snprintf(l->message, sizeof l->message, "%s", jot_error_message());
        l->status = status;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

// ---- making ----

static jot_status check(size_t n, jot_array *const *arrays, int64_t batch,
                        const jot_loader_options *o)
{
    const char *name = "jot_loader_create";
    if (!n || !arrays || n > UINT16_MAX)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the arrays are NULL, or n is %zu", name, n);
    for (size_t i = 0; i < n; i++) {
        if (!arrays[i])
            return status_fail(JOT_ERR_ARGUMENT, "%s: array %zu is NULL", name, i);
        if (jot_array_rank(arrays[i]) < 1 ||
            jot_array_dim(arrays[i], 0) != jot_array_dim(arrays[0], 0))
            return status_fail(JOT_ERR_SHAPE,
                               "%s: array %zu has not as many rows as the first, which has "
                               "%" PRId64,
                               name, i, jot_array_dim(arrays[0], 0));
    }
    if (batch < 1)
        return status_fail(JOT_ERR_ARGUMENT, "%s: batch is %" PRId64, name, batch);
    if (o->epochs < 0 || o->first < 0)
        return status_fail(JOT_ERR_ARGUMENT, "%s: %s is %" PRId64, name,
                           o->first < 0 ? "first" : "epochs",
                           o->first < 0 ? o->first : o->epochs);
    if (o->ahead < 0 || o->ahead > MOST_AHEAD)
        return status_fail(JOT_ERR_ARGUMENT, "%s: ahead is %d: 0 to %d", name, o->ahead,
                           MOST_AHEAD);
    return JOT_OK;
}

static jot_status set_up(struct jot_loader *l, jot_array *const *arrays)
{
    l->o.ahead = l->o.ahead ? l->o.ahead : 2;
    l->device = jot_default_device();
    l->rows = jot_array_dim(arrays[0], 0);
    l->per_epoch = l->rows / l->batch + (!l->o.drop_last && l->rows % l->batch);
    if (l->per_epoch == 0)
        return status_fail(JOT_ERR_SHAPE,
                           "jot_loader_create: of %" PRId64 " rows no batch has %" PRId64,
                           l->rows, l->batch);
    if (l->o.epochs > INT64_MAX / l->per_epoch)
        l->o.epochs = 0; // without an end that anybody sees
    l->given = l->read = l->o.first;
    l->arrays = memory_allocate_zeroed(l->n * sizeof *l->arrays);
    l->slots = memory_allocate_zeroed((size_t)l->o.ahead * l->n * sizeof *l->slots);
    if (!l->arrays || !l->slots)
        return status_out_of_memory();
    for (size_t i = 0; i < l->n; i++) {
        l->arrays[i] = jot_array_to(arrays[i], jot_host());
        if (!l->arrays[i] || !jot_array_data(l->arrays[i]))
            return status_last();
    }
    int why = pthread_create(&l->thread, NULL, read_ahead, l);
    l->has_thread = why == 0;
    return why ? status_fail(JOT_ERR_LIBRARY, "jot_loader_create: a thread: %s", strerror(why))
               : JOT_OK;
}

jot_loader *jot_loader_create_with(size_t n, jot_array *const *arrays, int64_t batch,
                                   const jot_loader_options *options)
{
    jot_loader_options o = options ? *options : (jot_loader_options){0};
    if (check(n, arrays, batch, &o) != JOT_OK)
        return NULL;
    struct jot_loader *l = memory_allocate_zeroed(sizeof *l);
    if (!l) {
        status_out_of_memory();
        return NULL;
    }
    l->n = n;
    l->batch = batch;
    l->o = o;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (set_up(l, arrays) == JOT_OK)
        return l;
    jot_loader_release(l);
    return NULL;
}

void jot_loader_release(jot_loader *l)
{
    if (!l)
        return;
    if (l->has_thread) {
        pthread_mutex_lock(&l->lock);
        l->is_stopped = true;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    if (l->slots)
        jot_arrays_release((size_t)l->o.ahead * l->n, l->slots);
    if (l->arrays)
        jot_arrays_release(l->n, l->arrays);
    memory_release(l->slots);
    memory_release(l->arrays);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    memory_release(l);
}

// ---- using ----

int64_t jot_loader_batches(const jot_loader *l) { return l ? l->per_epoch : 0; }

int64_t jot_loader_position(const jot_loader *l) { return l ? l->given : 0; }

jot_status jot_loader_next(jot_loader *l, size_t n, jot_array **out)
{
    const char *name = "jot_loader_next";
    if (!l || !out)
        return status_fail(JOT_ERR_ARGUMENT, "%s: %s is NULL", name, l ? "out" : "the loader");
    if (n != l->n)
        return status_fail(JOT_ERR_ARGUMENT, "%s: n is %zu, and a batch has %zu arrays", name,
                           n, l->n);
    pthread_mutex_lock(&l->lock);
    while (l->given == l->read && l->status == JOT_OK && !is_end(l, l->given))
        pthread_cond_wait(&l->changed, &l->lock);
    jot_status status = JOT_OK;
    if (l->given < l->read) {
        jot_array **slot = l->slots + (size_t)(l->given % l->o.ahead) * n;
        memcpy(out, slot, n * sizeof *out);
        memset(slot, 0, n * sizeof *slot);
        l->given++;
        pthread_cond_broadcast(&l->changed);
    } else if (l->status != JOT_OK) {
        status = status_fail(l->status, "%s", l->message);
    } else {
        memset(out, 0, n * sizeof *out);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}
