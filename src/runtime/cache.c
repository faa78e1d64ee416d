// SPDX-License-Identifier: Apache-2.0
// An entry is one file, <32 hexadecimal digits>.jot: a header, then the bytes.  It is written
// under another name and renamed, so that readers see whole entries only; the checksum finds
// what a crash of the machine left behind.  The time of modification of the file is the time of
// its last use.
#include "runtime/cache.h"

#include "base/file.h"
#include "base/memory.h"
#include "runtime/fork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_LIMIT (UINT64_C(1) << 30)
#define HEADER_BYTES 64
#define FORMAT 1
#define NAME_BYTES 48
#define SUFFIX ".jot"
#define UNFINISHED ".tmp"
// A use is noted when the last note is older than this.
#define NOTE_SECONDS 3600
#define UNFINISHED_SECONDS 3600

struct header {
    char magic[8];
    uint32_t format, header_bytes;
    uint64_t key_lo, key_hi;
    uint64_t size, checksum;
    uint64_t reserved[2];
};

_Static_assert(sizeof(struct header) == HEADER_BYTES, "the bytes start aligned");

// One of the directories that is used.
struct store {
    int directory;
    bool is_own; // of the user: damaged entries may go
    char *path;
};

struct rt_cache {
    struct store *stores;
    size_t count;
    bool keeps; // in the first store
    uint64_t limit;
    char reason[1024];
    struct rt_text refused; // writes to reason
    pthread_mutex_t lock;   // for the two that follow
    bool is_measured;       // total is known
    uint64_t total;         // about what the entries take
    atomic_uint temporary;  // makes names of unfinished entries differ
};

static const char magic[8] = {'j', 'o', 't', 'c', 'a', 'c', 'h', 'e'};

// ---- the directory ----

// mkdir -p.  What fails shows when the directory is opened.
static void make_directories(const char *path)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return;
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++)
        if (part[i] == '/' || !part[i]) {
            part[i] = 0;
            mkdir(part, 0700);
            part[i] = path[i];
        }
}

// Who may have written what becomes machine code here.  NULL, or why not.
static const char *fault_of_owner(const struct stat *info)
{
    if (info->st_uid != geteuid() && info->st_uid != 0)
        return "it belongs to another user";
    return info->st_mode & 022 ? "others may write to it" : NULL;
}

// Adds the directory to those that are used, or says why it is not.
static void open_store(struct rt_cache *cache, const char *path, bool is_first)
{
    struct stat info;
    const char *fault = NULL;
    if (is_first)
        make_directories(path);
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || fstat(directory, &info))
        fault = strerror(errno);
    else
        fault = fault_of_owner(&info);
    size_t length = strlen(path);
    char *copy = fault ? NULL : memory_allocate(length + 1);
    if (!fault && !copy)
        fault = "out of memory";
    if (fault) {
        rt_text_add(&cache->refused, "the cache directory %s is not used: %s\n", path, fault);
        if (directory >= 0)
            close(directory);
        return;
    }
    memcpy(copy, path, length + 1);
    bool is_own = info.st_uid == geteuid();
    cache->keeps |= is_first && is_own;
    cache->stores[cache->count++] =
        (struct store){.directory = directory, .is_own = is_own, .path = copy};
}

// The list has one of the separators between directories.
static void open_stores(struct rt_cache *cache, const char *list, const char *separators)
{
    char path[4096];
    size_t most = 1;
    for (const char *at = list; *(at += strcspn(at, separators)); at++)
        most++;
    cache->stores = memory_allocate_zeroed(most * sizeof *cache->stores);
    if (!cache->stores) {
        rt_text_add(&cache->refused, "out of memory\n");
        return;
    }
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, separators);
        if (n >= sizeof path) {
            rt_text_add(&cache->refused,
                        "the cache directory %.40s... is not used: its path is too long\n", at);
        } else {
            snprintf(path, sizeof path, "%.*s", (int)n, at);
            open_store(cache, path, at == list);
        }
        at += n;
        if (!*at)
            break;
    }
}

static struct rt_cache *create(uint64_t limit)
{
    struct rt_cache *cache = memory_allocate_zeroed(sizeof *cache);
    if (!cache)
        return NULL;
    cache->limit = limit;
    cache->refused = (struct rt_text){.at = cache->reason, .size = sizeof cache->reason};
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

struct rt_cache *rt_cache_open(const char *directories, uint64_t limit_bytes)
{
    struct rt_cache *cache = create(limit_bytes);
    if (cache)
        open_stores(cache, directories, ":");
    return cache;
}

void rt_cache_close(struct rt_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->count; i++) {
        close(cache->stores[i].directory);
        memory_release(cache->stores[i].path);
    }
    memory_release(cache->stores);
    pthread_mutex_destroy(&cache->lock);
    memory_release(cache);
}

const char *rt_cache_reason(const struct rt_cache *cache) { return cache->reason; }

static uint64_t limit_asked(void)
{
    const char *text = secure_getenv("JOT_CACHE_BYTES");
    char *end;
    if (!text || !*text)
        return DEFAULT_LIMIT;
    unsigned long long n = strtoull(text, &end, 10);
    return *end || *text == '-' ? DEFAULT_LIMIT : n;
}

static struct rt_cache *default_cache;
static struct rt_cache no_memory_cache = {.reason = "out of memory\n",
                                          .lock = PTHREAD_MUTEX_INITIALIZER};

static void open_default(void)
{
    char path[4096];
    const char *asked = secure_getenv("JOT_CACHE"), *own = secure_getenv("JOT_CACHE_DIR");
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    struct rt_cache *cache = create(limit_asked());
    default_cache = cache ? cache : &no_memory_cache;
    if (!cache)
        return;
    fork_register(FORK_CACHE, &cache->lock, NULL);
    bool has_xdg = xdg && *xdg == '/';
    if (asked && !strcmp(asked, "off"))
        rt_text_add(&cache->refused, "JOT_CACHE=off\n");
    else if (own && *own)
        open_stores(cache, own, ":");
    else if (!has_xdg && !(home && *home))
        rt_text_add(&cache->refused,
                    "no JOT_CACHE_DIR, XDG_CACHE_HOME or HOME says where the cache is\n");
    else if (snprintf(path, sizeof path, "%s%s", has_xdg ? xdg : home,
                      has_xdg ? "/jot" : "/.cache/jot") >= (int)sizeof path)
        rt_text_add(&cache->refused, "the path of the cache directory is too long\n");
    else
        open_stores(cache, path, "");
}

struct rt_cache *rt_cache_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_default);
    return default_cache;
}

// ---- finding ----

static void name_of(struct hash128 key, char *name)
{
    snprintf(name, NAME_BYTES, "%016" PRIx64 "%016" PRIx64 SUFFIX, key.hi, key.lo);
}

static bool is_whole(const void *map, size_t map_bytes, struct hash128 key)
{
    const struct header *h = map;
    return map_bytes >= HEADER_BYTES && !memcmp(h->magic, magic, sizeof magic) &&
           h->format == FORMAT && h->header_bytes == HEADER_BYTES && h->key_lo == key.lo &&
           h->key_hi == key.hi && h->size == map_bytes - HEADER_BYTES &&
           h->checksum == hash_bytes(FORMAT, (const char *)map + HEADER_BYTES, h->size);
}

static void note_use(int file, const struct stat *info)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        (now.tv_sec - info->st_mtim.tv_sec > NOTE_SECONDS || now.tv_sec < info->st_mtim.tv_sec))
        futimens(file, NULL);
}

// What is found of an entry.  Only what was read and found wrong is damaged: a lack of memory says
// nothing about the entry.
struct verdict {
    const char *fault; // NULL: it is good
    bool is_damaged;
};

static struct verdict examine(int file, struct hash128 key, struct rt_cache_entry *out)
{
    struct stat info;
    if (fstat(file, &info) || !S_ISREG(info.st_mode))
        return (struct verdict){"it is no file", true};
    const char *fault = fault_of_owner(&info);
    if (fault)
        return (struct verdict){fault, true};
    size_t n = (size_t)info.st_size;
    if (n < HEADER_BYTES)
        return (struct verdict){"it is damaged", true};
    void *map = memory_should_fail()
                    ? MAP_FAILED
                    : mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (map == MAP_FAILED)
        return (struct verdict){"out of memory", false};
    if (!is_whole(map, n, key)) {
        munmap(map, n);
        return (struct verdict){"it is damaged", true};
    }
    note_use(file, &info);
    *out = (struct rt_cache_entry){.bytes = (const char *)map + HEADER_BYTES,
                                   .size = n - HEADER_BYTES,
                                   .map = map,
                                   .map_bytes = n};
    return (struct verdict){NULL, false};
}

__attribute__((format(printf, 2, 3))) static void report(struct rt_text *to, const char *format,
                                                         ...)
{
    char line[4096 + 256];
    va_list args;
    if (!to)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    rt_text_add(to, "%s\n", line);
}

static bool find_in(const struct store *store, const char *name, struct hash128 key,
                    struct rt_cache_entry *out_entry, struct rt_text *to)
{
    struct rt_cache_entry e = {0};
    int file = openat(store->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        report(to, "%s/%s: %s", store->path, name,
               errno == ENOENT ? "is not there" : strerror(errno));
        return false;
    }
    struct verdict verdict = examine(file, key, &e);
    close(file);
    if (!verdict.fault) {
        report(to, "%s/%s: found, %zu bytes", store->path, name, e.size);
        *out_entry = e;
        return true;
    }
    bool is_removed = verdict.is_damaged && store->is_own;
    if (is_removed)
        unlinkat(store->directory, name, 0);
    report(to, "%s/%s: refused%s, %s", store->path, name, is_removed ? " and removed" : "",
           verdict.fault);
    return false;
}

bool rt_cache_find(struct rt_cache *cache, struct hash128 key, struct rt_cache_entry *out_entry,
                   struct rt_text *to)
{
    char name[NAME_BYTES];
    name_of(key, name);
    if (to)
        rt_text_add(to, "%s", cache->reason);
    for (size_t i = 0; i < cache->count; i++)
        if (find_in(&cache->stores[i], name, key, out_entry, to))
            return true;
    return false;
}

void rt_cache_entry_release(struct rt_cache_entry *entry)
{
    if (entry->map)
        munmap(entry->map, entry->map_bytes);
    *entry = (struct rt_cache_entry){0};
}

// ---- keeping the size ----

struct file {
    char name[NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
};

struct listing {
    struct file *files;
    size_t count, room;
    uint64_t total;
};

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static bool append(struct listing *list, const char *name, const struct stat *info)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 64;
        struct file *files = memory_resize(list->files, room * sizeof *files);
        if (!files)
            return false;
        list->files = files;
        list->room = room;
    }
    struct file *file = &list->files[list->count++];
    memcpy(file->name, name, strlen(name) + 1);
    file->bytes = (uint64_t)info->st_size;
    file->used = info->st_mtim;
    list->total += file->bytes;
    return true;
}

// Lists the entries; removes what writers that died left.
static void list_entries(int directory, struct listing *list)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        if (copy >= 0)
            close(copy);
        return;
    }
    time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(stream));) {
        struct stat info;
        bool is_entry = ends_in(e->d_name, SUFFIX) && strlen(e->d_name) < NAME_BYTES;
        if ((!is_entry && !ends_in(e->d_name, UNFINISHED)) ||
            fstatat(directory, e->d_name, &info, AT_SYMLINK_NOFOLLOW))
            continue;
        if (!is_entry && now - info.st_mtim.tv_sec > UNFINISHED_SECONDS)
            unlinkat(directory, e->d_name, 0);
        if (is_entry && !append(list, e->d_name, &info))
            break;
    }
    closedir(stream);
}

static int oldest_first(const void *a, const void *b)
{
    const struct file *left = a, *right = b;
    if (left->used.tv_sec != right->used.tv_sec)
        return left->used.tv_sec < right->used.tv_sec ? -1 : 1;
    return left->used.tv_nsec < right->used.tv_nsec   ? -1
           : left->used.tv_nsec > right->used.tv_nsec ? 1
                                                      : strcmp(left->name, right->name);
}

// Makes room down to three quarters of the limit, so that not every store has to.
static void evict(struct rt_cache *cache, const char *keep)
{
    struct listing list = {0};
    int directory = cache->stores[0].directory;
    list_entries(directory, &list);
    if (list.total > cache->limit) {
        qsort(list.files, list.count, sizeof *list.files, oldest_first);
        uint64_t goal = cache->limit - cache->limit / 4;
        for (size_t i = 0; i < list.count && list.total > goal; i++)
            if (strcmp(list.files[i].name, keep) &&
                unlinkat(directory, list.files[i].name, 0) == 0)
                list.total -= list.files[i].bytes;
    }
    cache->total = list.total;
    cache->is_measured = true;
    memory_release(list.files);
}

// ---- storing ----

// NULL, or what went wrong.
static const char *write_entry(int directory, const char *unfinished, const char *name,
                               const struct header *header, const void *bytes)
{
    unlinkat(directory, unfinished, 0); // of a dead process that had our number
    int file = openat(directory, unfinished,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return strerror(errno);
    bool is_written =
        file_write(file, header, sizeof *header) && file_write(file, bytes, header->size);
    is_written &= close(file) == 0;
    if (is_written && !renameat(directory, unfinished, directory, name))
        return NULL;
    const char *fault = strerror(errno);
    unlinkat(directory, unfinished, 0);
    return fault;
}

void rt_cache_store(struct rt_cache *cache, struct hash128 key, const void *bytes, size_t size,
                    struct rt_text *to)
{
    if (!cache->keeps) {
        report(to, "not kept: %s",
               cache->count
                   ? "the first directory of the list is not used or not this user's, and the "
                     "others are only read"
                   : "there is no cache directory");
        return;
    }
    if (size > cache->limit || HEADER_BYTES > cache->limit - size) {
        report(to, "not kept: %zu bytes, and JOT_CACHE_BYTES is %" PRIu64, size, cache->limit);
        return;
    }
    const struct store *store = &cache->stores[0];
    char name[NAME_BYTES], unfinished[NAME_BYTES];
    name_of(key, name);
    snprintf(unfinished, sizeof unfinished, "%lx-%x" UNFINISHED, (long)getpid(),
             atomic_fetch_add(&cache->temporary, 1));
    struct header header = {.format = FORMAT,
                            .header_bytes = HEADER_BYTES,
                            .key_lo = key.lo,
                            .key_hi = key.hi,
                            .size = size,
                            .checksum = hash_bytes(FORMAT, bytes, size)};
    memcpy(header.magic, magic, sizeof magic);
    const char *fault = write_entry(store->directory, unfinished, name, &header, bytes);
    if (fault) {
        report(to, "%s/%s: not kept, %s", store->path, name, fault);
        return;
    }
    report(to, "%s/%s: kept, %zu bytes", store->path, name, size);
    pthread_mutex_lock(&cache->lock);
    cache->total += size + HEADER_BYTES;
    if (!cache->is_measured || cache->total > cache->limit)
        evict(cache, name);
    pthread_mutex_unlock(&cache->lock);
}
