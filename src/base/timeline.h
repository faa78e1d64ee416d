// SPDX-License-Identifier: Apache-2.0
// A timeline of what the process does, in Chrome's trace format, when JOT_TRACE names a file.
//
//     int64_t since = timeline_begin();
//     ...
//     timeline_end(since, &(struct timeline_event){.kind = "pass", .name = "hoist"});
//
// An event is written when it ends, with its beginning, so that none is open: what a longjmp leaves has no event.
// Each thread writes to a buffer of its own, which goes to the file when it is full and when the process ends.  The
// child of a fork writes nothing.  The variable is read at the first event.  All functions may be called by any thread.
#ifndef BASE_TIMELINE_H
#define BASE_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct timeline_event {
    const char *kind;  // a word of ours
    const char *name;  // any text
    const char *where; // the place in the user's source, any text; NULL: not said
    int64_t bytes;     // of the memories that it uses; 0: not said
};

enum timeline_state { TIMELINE_UNREAD, TIMELINE_OFF, TIMELINE_ON };
extern atomic_int timeline_state;

bool timeline_open(void);   // true when it is on
int64_t timeline_now(void); // nanoseconds, not 0
void timeline_write(int64_t since, const struct timeline_event *e);
// So many bytes of the memory `of` are in use.
void timeline_count_memory(const char *of, uint64_t bytes);

static inline bool timeline_is_on(void)
{
    return atomic_load_explicit(&timeline_state, memory_order_relaxed) != TIMELINE_OFF &&
           timeline_open();
}

// 0 when it is off.
static inline int64_t timeline_begin(void) { return timeline_is_on() ? timeline_now() : 0; }

static inline void timeline_end(int64_t since, const struct timeline_event *e)
{
    if (since)
        timeline_write(since, e);
}

#endif
