// SPDX-License-Identifier: Apache-2.0
// The disk cache of compiled programs: bytes by a 128-bit key.
//
// It is a list of directories, with ':' between them: JOT_CACHE_DIR, else $XDG_CACHE_HOME/jot, else
// ~/.cache/jot.  An entry is looked for in each, in order, and kept in the first, which is made
// private (0700) when it is missing.  The others are only read.  JOT_CACHE=off switches the cache
// off, JOT_CACHE_BYTES bounds the first directory (default 1 GiB; the entries that were not used for
// longest go first).
//
// What a directory holds becomes machine code of this process.  So directories and entries belong
// to the user or to root, and nobody else may write to them; a link to such a directory will do.  A
// directory of root's is only read by others.
//
// Nothing that is wrong with a cache is an error of a call: it only misses, and says why where it is
// asked.  Entries of the user's that are damaged are removed.
//
// Thread-safety: any thread may use a cache, and any number of processes the same directory.
#ifndef RUNTIME_CACHE_H
#define RUNTIME_CACHE_H

#include "base/hash.h"
#include "runtime/text.h"

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

// A cache in a list of directories.  NULL only when memory is out.
struct rt_cache *rt_cache_open(const char *directories, uint64_t limit_bytes);
void rt_cache_close(struct rt_cache *cache);

// Why the cache, or a directory of it, is not used, a line each; "" when all are.
const char *rt_cache_reason(const struct rt_cache *cache);

// The report, unless it is NULL, is told what was looked for, found and refused, a line each.
bool rt_cache_find(struct rt_cache *cache, struct hash128 key, struct rt_cache_entry *out_entry,
                   struct rt_text *report);
void rt_cache_entry_release(struct rt_cache_entry *entry);

// Keeps a copy of the bytes under the key, if it can.
void rt_cache_store(struct rt_cache *cache, struct hash128 key, const void *bytes, size_t size,
                    struct rt_text *report);

#endif
