// SPDX-License-Identifier: Apache-2.0
#include "base/timeline.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define ROOM ((size_t)32 << 10)
#define NAME_MOST 200
#define WHERE_MOST 400
// Of an event: each byte of its texts takes six where it is escaped.
#define EVENT_MOST ((size_t)4 << 10)

_Static_assert(EVENT_MOST > 6 * (NAME_MOST + WHERE_MOST) + 300, "an event has room");

// What a thread has not written yet.  Buffers stay; that of a thread that has ended goes to another.
struct buffer {
    atomic_flag lock; // the thread's own but when the process ends
    atomic_bool is_taken;
    struct buffer *next;
    long thread;
    size_t n;
    char text[ROOM];
};

atomic_int timeline_state;

// Of the process that has opened the file.
static int file;
static pid_t process;
static tss_t key;
static _Atomic(struct buffer *) buffers;
static _Thread_local struct buffer *own;

int64_t timeline_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// ---- Text

static char *put(char *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

static char *put_number(char *to, uint64_t x)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + x % 10);
    while (x /= 10);
    while (n)
        *to++ = digits[--n];
    return to;
}

// Nanoseconds as microseconds.
static char *put_time(char *to, int64_t time)
{
    unsigned rest = (unsigned)(time % 1000);
    to = put_number(to, (uint64_t)time / 1000);
    *to++ = '.';
    *to++ = (char)('0' + rest / 100);
    *to++ = (char)('0' + rest / 10 % 10);
    *to++ = (char)('0' + rest % 10);
    return to;
}

// How many bytes the character has, 0 where it is none of UTF-8.
static size_t length_of(const unsigned char *c)
{
    size_t n = *c < 0x80                 ? 1
               : *c >= 0xc2 && *c < 0xe0 ? 2
               : *c >= 0xe0 && *c < 0xf0 ? 3
               : *c >= 0xf0 && *c < 0xf5 ? 4
                                         : 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

// A text as JSON has it, of which no more than `most` bytes are read.
static char *put_text(char *to, const char *text, size_t most)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *c = (const unsigned char *)text, *end = c + most;
    *to++ = '"';
    while (*c) {
        size_t n = length_of(c);
        if (c + (n ? n : 1) > end)
            break;
        if (n == 1 && (*c == '"' || *c == '\\')) {
            *to++ = '\\';
            *to++ = (char)*c;
        } else if (n == 1 && (*c < ' ' || *c == 127)) {
            to = put(to, "\\u00");
            *to++ = digits[*c >> 4];
            *to++ = digits[*c & 15];
        } else if (n) {
            memcpy(to, c, n);
            to += n;
        } else {
            *to++ = '?';
        }
        c += n ? n : 1;
    }
    *to++ = '"';
    return to;
}

static char *put_head(char *to, const char *phase, long thread, int64_t time)
{
    to = put(to, "{\"ph\":\"");
    to = put(to, phase);
    to = put(to, "\",\"pid\":");
    to = put_number(to, (uint64_t)process);
    to = put(to, ",\"tid\":");
    to = put_number(to, (uint64_t)thread);
    to = put(to, ",\"ts\":");
    return put_time(to, time);
}

// ---- The file

static void say(const char *path)
{
    fprintf(stderr, "jot: no timeline is written: JOT_TRACE: %s%s%s\n", path ? path : "",
            path ? ": " : "", strerror(errno));
}

// Under the lock of the buffer.
static void flush(struct buffer *b)
{
    if (getpid() != process)
        atomic_store(&timeline_state, TIMELINE_OFF);
    else if (!file_write(file, b->text, b->n) &&
             atomic_exchange(&timeline_state, TIMELINE_OFF) == TIMELINE_ON)
        say(NULL);
    b->n = 0;
}

static void lock(struct buffer *b)
{
    while (atomic_flag_test_and_set_explicit(&b->lock, memory_order_acquire))
        thrd_yield();
}

static void unlock(struct buffer *b)
{
    atomic_flag_clear_explicit(&b->lock, memory_order_release);
}

// When the process ends.  Who comes to write later finds the timeline off.
static void finish(void)
{
    char end[64 + 6 * NAME_MOST], *at = end;
    if (getpid() != process || atomic_exchange(&timeline_state, TIMELINE_OFF) != TIMELINE_ON)
        return;
    for (struct buffer *b = atomic_load(&buffers); b; b = b->next) {
        lock(b);
        flush(b);
        unlock(b);
    }
    at = put(at, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":");
    at = put_number(at, (uint64_t)process);
    at = put(at, ",\"args\":{\"name\":");
    at = put_text(at, program_invocation_short_name, NAME_MOST);
    at = put(at, "}}\n]\n");
    file_write(file, end, (size_t)(at - end));
}

// The path with the number of the process in the place of %p; false where it is too long.
static bool fill_in(const char *path, char *out, size_t size)
{
    const char *mark = strstr(path, "%p");
    int n = mark ? snprintf(out, size, "%.*s%ld%s", (int)(mark - path), path, (long)process,
                            mark + 2)
                 : snprintf(out, size, "%s", path);
    return n >= 0 && (size_t)n < size;
}

static void leave_thread(void *buffer)
{
    own = NULL;
    atomic_store_explicit(&((struct buffer *)buffer)->is_taken, false, memory_order_release);
}

static bool open_file(const char *wanted)
{
    char path[4096];
    process = getpid();
    errno = ENAMETOOLONG;
    file = fill_in(wanted, path, sizeof path)
               ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)
               : -1;
    if (file < 0 || !file_write(file, "[\n", 2)) {
        say(wanted);
        return false;
    }
    return tss_create(&key, leave_thread) == thrd_success && !atexit(finish);
}

// Others who come while one thread opens the file find the timeline off.
bool timeline_open(void)
{
    int state = TIMELINE_UNREAD;
    if (!atomic_compare_exchange_strong(&timeline_state, &state, TIMELINE_OFF))
        return state == TIMELINE_ON;
    const char *path = secure_getenv("JOT_TRACE");
    if (!path || !*path || !open_file(path))
        return false;
    atomic_store(&timeline_state, TIMELINE_ON);
    return true;
}

// ---- Events

static struct buffer *take_buffer(void)
{
    struct buffer *b = atomic_load(&buffers);
    bool is_taken = false;
    while (b && !atomic_compare_exchange_strong(&b->is_taken, &is_taken, true)) {
        is_taken = false;
        b = b->next;
    }
    if (!b) {
        b = memory_allocate_zeroed(sizeof *b);
        if (!b)
            return NULL;
        atomic_flag_clear(&b->lock);
        atomic_store(&b->is_taken, true);
        b->next = atomic_load(&buffers);
        while (!atomic_compare_exchange_weak(&buffers, &b->next, b)) {
        }
    }
    b->thread = syscall(SYS_gettid);
    tss_set(key, b);
    return b;
}

// Room for an event, under the lock of the buffer; NULL: none, or the timeline is off.
static char *open_event(void)
{
    own = own ? own : take_buffer();
    if (!own)
        return NULL;
    lock(own);
    if (own->n + EVENT_MOST > ROOM)
        flush(own);
    if (atomic_load(&timeline_state) == TIMELINE_ON)
        return own->text + own->n;
    unlock(own);
    return NULL;
}

static void close_event(const char *end)
{
    own->n = (size_t)(end - own->text);
    unlock(own);
}

void timeline_write(int64_t since, const struct timeline_event *e)
{
    int64_t now = timeline_now();
    char *at = open_event();
    if (!at)
        return;
    at = put_head(at, "X", own->thread, since);
    at = put(at, ",\"dur\":");
    at = put_time(at, now - since);
    at = put(at, ",\"cat\":\"");
    at = put(at, e->kind);
    at = put(at, "\",\"name\":");
    at = put_text(at, e->name, NAME_MOST);
    at = put(at, ",\"args\":{");
    if (e->where) {
        at = put(at, "\"where\":");
        at = put_text(at, e->where, WHERE_MOST);
    }
    if (e->bytes) {
        at = put(at, e->where ? ",\"bytes\":" : "\"bytes\":");
        at = put_number(at, (uint64_t)e->bytes);
    }
    close_event(put(at, "}},\n"));
}

void timeline_count_memory(const char *of, uint64_t bytes)
{
    char name[64], *at = open_event();
    if (!at)
        return;
    snprintf(name, sizeof name, "memory of %s", of);
    at = put_head(at, "C", own->thread, timeline_now());
    at = put(at, ",\"name\":");
    at = put_text(at, name, sizeof name);
    at = put(at, ",\"args\":{\"bytes\":");
    at = put_number(at, bytes);
    close_event(put(at, "}},\n"));
}
