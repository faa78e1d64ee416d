// SPDX-License-Identifier: Apache-2.0
// A compiled function, for the files that make and measure it.
#ifndef TRACE_NATIVE_INTERNAL_H
#define TRACE_NATIVE_INTERNAL_H

#include "base/hash.h"
#include "runtime/program.h"
#include "runtime/text.h"
#include "schedule/schedule.h"
#include "trace/codegen_process.h"
#include "trace/native.h"
#include "trace/native_mesh.h"

// What measuring has chosen in place of prices (native_tune.c).  No bit depends on it.
struct native_choices {
    bool is_made;
    enum schedule_repeat repeat;
    uint32_t count;
    uint8_t *of; // by kernel, of nest_choice; in the module's arena
};

struct native_program {
    struct rt_program *program;
    jot_device *device;
    struct ir_module *module;
    uint32_t function; // as it is compiled
    struct native_choices choices;
    struct codegen_options codegen;
    const bool *donated;
    uint32_t n_in, n_out;
    struct native_output *outputs; // in the module's arena
    struct native_mesh mesh;       // when several devices run it
};

// All of them for the choices that the program has.
struct hash128 native_key(const struct native_program *p);
jot_status native_schedule(struct native_program *p, struct arena *arena,
                           struct nest_program **out);
// What the code generator makes of it, and of its texts those of `want` (codegen/codegen.h).  out_ahead, unless it is
// NULL: what the device's end_ahead is to be called with, which takes NULL.
jot_status native_generate(struct native_program *p, struct arena *arena, unsigned want,
                           struct rt_ahead **out_ahead, struct cg_response *out);
// Prints the stages that JOT_DUMP asks for.
void native_dump(struct native_program *p, struct arena *arena);
// Compiles and loads the program, and keeps it nowhere else.
jot_status native_compile_anew(struct native_program *p, struct arena *arena);
// The same by way of the disk cache.
jot_status native_find_or_make(struct native_program *p, struct arena *arena,
                               struct rt_text *report);
// Makes a loaded program the one that runs, or NULL; the one before is the caller's.
void native_use(struct native_program *p, struct rt_program *program);
// Has the program say its steps, where JOT_DUMP asks for that.
void native_watch(const struct native_program *p);

#endif
