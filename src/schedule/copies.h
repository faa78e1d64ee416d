// SPDX-License-Identifier: Apache-2.0
// Copies that need not be, and memories that stand for others (copies.c).
#ifndef SCHEDULE_COPIES_H
#define SCHEDULE_COPIES_H

#include "schedule/internal.h"

// Has the steps from `first` on compute values where they are copied to; memories from first_memory
// on are theirs alone.
void schedule_forward_copies(struct schedule *s, uint32_t first, uint32_t first_memory);
// Has kernels of elements put what is copied of them, where others read it too.
void schedule_put_copies(struct nest_program *p, struct arena *scratch);
// What stands for memories first, first + 1, ...: 1 more than its number, or 0.
struct schedule_renaming {
    uint32_t first, count, *by;
};
struct schedule_renaming schedule_rename(struct schedule *s, uint32_t first);
static inline void schedule_rename_to(struct schedule_renaming *r, uint32_t from, uint32_t to)
{
    r->by[from - r->first] = to + 1;
}
// Puts them there, in the steps from `first` on and in views, and leaves the steps that are gone, by step
// from the first, and copies that this makes ones of a memory to itself.
void schedule_replace(struct nest_program *p, uint32_t first, const bool *is_gone,
                      const struct schedule_renaming *r);
void schedule_remove_step(struct nest_program *p, uint32_t i);
// Drops memories that no step uses, and numbers views after what they show.
void schedule_sort_memories(struct nest_program *p);

#endif
