// SPDX-License-Identifier: Apache-2.0
// Between the files of a team: a call of its program, and where each of its devices is.
#ifndef RUNTIME_TEAM_CALL_H
#define RUNTIME_TEAM_CALL_H

#include "base/collective.h"
#include "runtime/collective.h"
#include "runtime/device.h"
#include "runtime/frames.h"
#include "runtime/host/pool.h"
#include "runtime/steps.h"
#include "runtime/team.h"

#include <stdatomic.h>

#define MESSAGE_BYTES 1024

// A collective of the plan, and its groups one after the other: devices by position.
struct team_collective {
    struct collective c;
    uint32_t *members;
    int *processes; // of the members
    uint64_t to_bytes, from_bytes;
};

// A call: where each device is.
struct team_call {
    struct rt_frame frame; // of a run that may call code of the user
    struct rt_team *team;
    struct team_call *next;
    struct rt_instance **instances;
    const void *const *inputs;
    void *const *outputs;
    uint32_t *at;                       // steps
    bool is_captured;                   // what devices do together
    const struct rt_segment **stepwise; // segments with collectives that are not run whole
    uint32_t *running;                  // devices that have something to do before a collective
    uint32_t n_running;
    void **to; // of a collective: by group and position
    const void **from;
    jot_device **devices;
    struct rt_blocks *blocks;
    struct rt_pool *outer;           // of the thread's loops before the call
    const struct rt_program *inside; // that a GPU runs, or NULL
    atomic_bool has_failed;
    jot_status status; // of the device that failed first
    char message[MESSAGE_BYTES];
};

// Devices of other processes have neither programs nor instances: what they do is done there.
struct rt_team {
    jot_device **devices;
    uint32_t count;
    uint32_t first_own;               // the first device of this process
    uint32_t n_own;                   // how many
    struct rt_program **programs;     // by device; on the host one for all; NULL elsewhere
    struct team_collective *together; // by step; size 0 where there is none
    _Atomic(struct team_call *) first;
    struct team_call *others; // under the lock of all teams
};

static inline bool team_is_own(const struct rt_team *t, uint32_t d)
{
    return !rt_is_elsewhere(t->devices[d]);
}
static inline bool team_is_on_host(const struct rt_team *t)
{
    return rt_is_host(t->devices[t->first_own]);
}
static inline const struct rt_plan *team_plan(const struct rt_team *t)
{
    return &t->programs[t->first_own]->plan;
}

// The collective of a step, of the groups that have come to it; adds their number.
jot_status team_meet_at(struct team_call *c, uint32_t step, size_t *out_met);

#endif
