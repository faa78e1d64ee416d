// SPDX-License-Identifier: Apache-2.0
// One program on all devices of a mesh, run together by one call.
//
// The plan says how large the mesh is (base/launch.h).  Each device runs up to its next collective;
// when all devices of a group have come to it, it is done, and they go on.  On the host threads take
// devices in turn, as the loops of the pool do: nothing waits for a thread that has not come yet, and
// devices that share a core are run one after the other.
//
// Devices of other processes run it there: all processes of the mesh load the same programs in one
// order, which they compare, and run them in one order.  A collective of a group that is in several processes is done over
// memory of the host.  What fails in one process fails in all.
//
// Thread-safety: as programs.
#ifndef RUNTIME_TEAM_H
#define RUNTIME_TEAM_H

#include "base/hash.h"
#include "runtime/program.h"

struct rt_team;

// What processes compare of a program: what it is called, and what it computes.
struct rt_team_content {
    const char *name;
    struct hash128 key;
};

// Devices of one kind, in the order of the mesh; the list is copied.  Without content processes compare plans.
// Everything else as for rt_program_load.
jot_status rt_team_load(jot_device *const *devices, uint32_t count,
                        const struct rt_team_content *content, const void *object,
                        size_t object_size, const void *plan, size_t plan_size,
                        const struct rt_callback *callbacks, uint32_t callback_count,
                        struct rt_team **out);
void rt_team_release(struct rt_team *team); // NULL is fine; no call may be in flight
// As rt_program_watch, for all devices, whose threads tell.
void rt_team_watch(struct rt_team *team, void (*say)(const char *step));

const struct rt_plan *rt_team_plan(const struct rt_team *team);
size_t rt_team_bytes(const struct rt_team *team);

// The memory of the arguments on each device: those of device 0, then those of device 1.  Which device a
// failure came from is part of the message.
jot_status rt_team_run(struct rt_team *team, const void *const *inputs, void *const *outputs);

#endif
