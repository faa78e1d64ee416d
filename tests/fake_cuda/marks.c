// SPDX-License-Identifier: Apache-2.0
// Who used a cell of memory last: pairs of uses that nothing orders are races.
#include "fake_cuda/emulate.h"

#define SHARED_MOST 232448
#define GLOBAL_BITS 18 // cells of global memory that are known at a time; others are forgotten

struct use {
    uint32_t block, thread, barriers, syncs, part, counts;
    bool is, has_counted;
};

struct cell {
    const char *at;
    uint32_t stamp;             // of the launch or the block whose uses these are
    struct use write, reads[2]; // of reads the last ones of two threads
};

static struct cell shared_cells[SHARED_MOST], global_cells[1 << GLOBAL_BITS];
static uint32_t launch_stamp, block_stamp;

void marks_launch(void) { launch_stamp++; }
void marks_block(void) { block_stamp++; }

static struct cell *find(const char *at, int64_t shared)
{
    uint64_t hash = (uint64_t)(uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15);
    struct cell *p =
        shared >= 0 ? &shared_cells[shared] : &global_cells[hash >> (64 - GLOBAL_BITS)];
    uint32_t stamp = shared >= 0 ? block_stamp : launch_stamp;
    if (p->stamp != stamp || p->at != at)
        *p = (struct cell){.at = at, .stamp = stamp};
    return p;
}

static bool is_same_thread(const struct use *u, const struct marks_now *now)
{
    return u->block == now->block && u->thread == now->thread;
}

static bool comes_before(const struct use *u, const struct marks_now *now)
{
    if (!u->is || is_same_thread(u, now))
        return true;
    if (u->block != now->block) // the earlier one ran to its end, and counted at it
        return now->has_counted && !u->has_counted;
    return u->barriers < now->barriers ||
           emulated_counted(u->thread, u->part, u->counts, now->counted) ||
           (u->thread / 32 == now->thread / 32 && u->syncs < now->syncs);
}

static const char *add(const struct marks_now *now, struct cell *p, bool is_write)
{
    struct use use = {now->block, now->thread, now->barriers, now->syncs,
                      now->part,  now->counts, true,          now->has_counted};
    if (!comes_before(&p->write, now))
        return is_write ? "writes what another thread writes"
                        : "reads what another thread writes";
    if (!is_write) {
        if (!is_same_thread(&p->reads[0], now))
            p->reads[1] = p->reads[0];
        p->reads[0] = use;
        return NULL;
    }
    if (!comes_before(&p->reads[0], now) || !comes_before(&p->reads[1], now))
        return "writes what another thread reads";
    p->write = use;
    p->reads[0].is = p->reads[1].is = false;
    return NULL;
}

const char *marks_add(const struct marks_now *now, const char *at, unsigned bytes,
                      unsigned each, bool is_write, int64_t shared)
{
    const char *wrong = NULL;
    for (unsigned i = 0; !wrong && i < bytes; i += each)
        wrong = add(now, find(at + i, shared < 0 ? shared : shared + i), is_write);
    return wrong;
}
