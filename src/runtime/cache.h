// SPDX-License-Identifier: Apache-2.0
// The disk cache of compiled programs: bytes by a 128-bit key.
//
// The directory is JOT_CACHE_DIR, else $XDG_CACHE_HOME/jot, else ~/.cache/jot; it is made
// private (0700).  A directory that others own or can enter is not used, for what it holds
// becomes machine code of this process.  JOT_CACHE=off switches the cache off, JOT_CACHE_BYTES
// bounds it (default 1 GiB; the entries that were not used for longest go first).
//
// Nothing that is wrong with a cache is an error of a call: it only misses.  Entries that are
// damaged are removed.
//
// Thread-safety: any thread may use a cache, and any number of processes the same directory.
#ifndef RUNTIME_CACHE_H
#define RUNTIME_CACHE_H

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_cache;

// The bytes of an entry, 8-byte aligned; mapped until released.
struct rt_cache_entry {
    const void *bytes;
    size_t size;
    void *map;
    size_t map_bytes;
};

// The cache that the environment asks for, read at the first call.  Never NULL.
struct rt_cache *rt_cache_default(void);

// A cache in a directory, which is made when it is missing.  NULL only when memory is out.
struct rt_cache *rt_cache_open(const char *directory, uint64_t limit_bytes);
void rt_cache_close(struct rt_cache *cache);

// Why the cache is not used; "" when it is.
const char *rt_cache_reason(const struct rt_cache *cache);

bool rt_cache_find(struct rt_cache *cache, struct hash128 key,
                   struct rt_cache_entry *out_entry);
void rt_cache_entry_release(struct rt_cache_entry *entry);

// Keeps a copy of the bytes under the key, if it can.
void rt_cache_store(struct rt_cache *cache, struct hash128 key, const void *bytes, size_t size);

#endif
