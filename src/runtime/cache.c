// SPDX-License-Identifier: Apache-2.0
// An entry is one file, <32 hexadecimal digits>.jot: a header, then the bytes.  It is written
// under another name and renamed, so that readers see whole entries only; the checksum finds
// what a crash of the machine left behind.  The time of modification of the file is the time of
// its last use.
#include "runtime/cache.h"

#include "base/memory.h"

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

struct rt_cache {
    int directory; // -1 when the cache is not used
    uint64_t limit;
    char reason[256];
    pthread_mutex_t lock;  // for the two that follow
    bool is_measured;      // total is known
    uint64_t total;        // about what the entries take
    atomic_uint temporary; // makes names of unfinished entries differ
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

__attribute__((format(printf, 2, 3))) static void refuse(struct rt_cache *cache,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(cache->reason, sizeof cache->reason, format, args);
    va_end(args);
    if (cache->directory >= 0)
        close(cache->directory);
    cache->directory = -1;
}

static void open_directory(struct rt_cache *cache, const char *path)
{
    struct stat info;
    make_directories(path);
    cache->directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (cache->directory < 0)
        refuse(cache, "the cache directory %s: %s", path, strerror(errno));
    else if (fstat(cache->directory, &info))
        refuse(cache, "the cache directory %s: %s", path, strerror(errno));
    else if (info.st_uid != geteuid())
        refuse(cache, "the cache directory %s belongs to another user", path);
    else if (info.st_mode & 022)
        refuse(cache, "others may write to the cache directory %s (mode %o)", path,
               (unsigned)info.st_mode & 0777);
}

static struct rt_cache *create(uint64_t limit)
{
    struct rt_cache *cache = memory_allocate_zeroed(sizeof *cache);
    if (!cache)
        return NULL;
    cache->directory = -1;
    cache->limit = limit;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

struct rt_cache *rt_cache_open(const char *directory, uint64_t limit_bytes)
{
    struct rt_cache *cache = create(limit_bytes);
    if (cache)
        open_directory(cache, directory);
    return cache;
}

void rt_cache_close(struct rt_cache *cache)
{
    if (!cache)
        return;
    if (cache->directory >= 0)
        close(cache->directory);
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
static struct rt_cache no_memory_cache = {
    .directory = -1, .reason = "out of memory", .lock = PTHREAD_MUTEX_INITIALIZER};

static void open_default(void)
{
    char path[4096];
    const char *asked = secure_getenv("JOT_CACHE"), *own = secure_getenv("JOT_CACHE_DIR");
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    struct rt_cache *cache = create(limit_asked());
    default_cache = cache ? cache : &no_memory_cache;
    if (!cache)
        return;
    int n;
    if (own && *own)
        n = snprintf(path, sizeof path, "%s", own);
    else if (xdg && *xdg == '/')
        n = snprintf(path, sizeof path, "%s/jot", xdg);
    else
        n = snprintf(path, sizeof path, "%s/.cache/jot", home && *home ? home : "");
    bool has_home = (own && *own) || (xdg && *xdg == '/') || (home && *home);
    if (asked && !strcmp(asked, "off"))
        refuse(cache, "JOT_CACHE=off");
    else if (!has_home)
        refuse(cache, "no JOT_CACHE_DIR, XDG_CACHE_HOME or HOME says where the cache is");
    else if (n < 0 || (size_t)n >= sizeof path)
        refuse(cache, "the path of the cache directory is too long");
    else
        open_directory(cache, path);
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

// What others could have written becomes no machine code here.
static bool is_trusted(int file, struct stat *info)
{
    return fstat(file, info) == 0 && S_ISREG(info->st_mode) && info->st_uid == geteuid() &&
           !(info->st_mode & 022);
}

// Only what was read and found wrong is damaged: a lack of memory says nothing about the entry.
enum verdict { HIT, MISS, DAMAGED };

static enum verdict examine(int file, struct hash128 key, struct rt_cache_entry *out)
{
    struct stat info;
    if (!is_trusted(file, &info))
        return DAMAGED;
    size_t n = (size_t)info.st_size;
    if (n < HEADER_BYTES)
        return DAMAGED;
    void *map = memory_should_fail()
                    ? MAP_FAILED
                    : mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (map == MAP_FAILED)
        return MISS;
    if (!is_whole(map, n, key)) {
        munmap(map, n);
        return DAMAGED;
    }
    note_use(file, &info);
    *out = (struct rt_cache_entry){.bytes = (const char *)map + HEADER_BYTES,
                                   .size = n - HEADER_BYTES,
                                   .map = map,
                                   .map_bytes = n};
    return HIT;
}

bool rt_cache_find(struct rt_cache *cache, struct hash128 key, struct rt_cache_entry *out_entry)
{
    char name[NAME_BYTES];
    if (cache->directory < 0)
        return false;
    name_of(key, name);
    int file = openat(cache->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    struct rt_cache_entry e = {0};
    enum verdict verdict = examine(file, key, &e);
    close(file);
    if (verdict == HIT)
        *out_entry = e;
    if (verdict == DAMAGED)
        unlinkat(cache->directory, name, 0);
    return verdict == HIT;
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
    list_entries(cache->directory, &list);
    if (list.total > cache->limit) {
        qsort(list.files, list.count, sizeof *list.files, oldest_first);
        uint64_t goal = cache->limit - cache->limit / 4;
        for (size_t i = 0; i < list.count && list.total > goal; i++)
            if (strcmp(list.files[i].name, keep) &&
                unlinkat(cache->directory, list.files[i].name, 0) == 0)
                list.total -= list.files[i].bytes;
    }
    cache->total = list.total;
    cache->is_measured = true;
    memory_release(list.files);
}

// ---- storing ----

static bool write_all(int file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        ssize_t n = write(file, at, size < (1u << 30) ? size : (1u << 30));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

void rt_cache_store(struct rt_cache *cache, struct hash128 key, const void *bytes, size_t size)
{
    if (cache->directory < 0 || size > cache->limit || HEADER_BYTES > cache->limit - size)
        return;
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
    unlinkat(cache->directory, unfinished, 0); // of a dead process that had our number
    int file = openat(cache->directory, unfinished,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    bool is_written = write_all(file, &header, sizeof header) && write_all(file, bytes, size);
    is_written &= close(file) == 0;
    if (!is_written || renameat(cache->directory, unfinished, cache->directory, name)) {
        unlinkat(cache->directory, unfinished, 0);
        return;
    }
    pthread_mutex_lock(&cache->lock);
    cache->total += size + HEADER_BYTES;
    if (!cache->is_measured || cache->total > cache->limit)
        evict(cache, name);
    pthread_mutex_unlock(&cache->lock);
}
