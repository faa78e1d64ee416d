// SPDX-License-Identifier: Apache-2.0
#include "support/run_native.h"

#include "base/memory.h"
#include "base/status.h"
#include "codegen/codegen.h"
#include "runtime/device.h"
#include "schedule/schedule.h"

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

jot_status run_native_load(struct arena *arena, const struct nest_program *p,
                           const struct ir_module *m, struct rt_program **out)
{
    return run_native_load_on(arena, p, m, 0, NULL, out, NULL);
}

jot_status run_native_load_on(struct arena *arena, const struct nest_program *p,
                              const struct ir_module *m, uint32_t n_devices,
                              jot_device *const *devices, struct rt_program **out,
                              struct rt_team **out_team)
{
    uint32_t n_hosts = m ? m->hosts.count : 0;
    struct rt_callback *hosts = arena_array(arena, struct rt_callback, n_hosts + 1);
    for (uint32_t i = 0; i < n_hosts; i++)
        hosts[i] = (struct rt_callback){.call = schedule_call_host, .ctx = &m->hosts.at[i]};
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, p);
    jot_device *d = n_devices ? devices[0] : jot_default_device();
    char target[128];
    JOT_TRY(d->type->target(d, target, sizeof target));
    struct cg_request request = {.program = text.text, .target = *target ? target : NULL};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    const void *object = r.object;
    size_t size = r.object_size;
    void *assembled = NULL;
    jot_status status = (jot_status)r.status;
    if (status != JOT_OK)
        status_fail(status, "%s", r.message);
    else if (d->type->assemble)
        status = d->type->assemble(d, r.object, r.object_size, &assembled, &size);
    object = assembled ? assembled : object;
    if (status == JOT_OK && n_devices)
        status = rt_team_load(devices, n_devices, NULL, object, size, r.plan, r.plan_size,
                              hosts, n_hosts, out_team);
    else if (status == JOT_OK)
        status = rt_program_load(d, object, size, r.plan, r.plan_size, hosts, n_hosts, out);
    memory_release(assembled);
    r.release(&r);
    return status;
}

// Memory of the device for arguments that are on the host.
static jot_status make_arguments(jot_device *d, const struct rt_argument *arguments,
                                 uint32_t count, void *const *here, void **there)
{
    for (uint32_t i = 0; i < count; i++) {
        JOT_TRY(d->type->allocate(d, arguments[i].bytes, "an argument", &there[i]));
        JOT_TRY(d->type->upload(d, there[i], here[i], arguments[i].bytes));
    }
    return JOT_OK;
}

static void release_arguments(jot_device *d, const struct rt_argument *arguments,
                              uint32_t count, void **there)
{
    for (uint32_t i = 0; i < count; i++)
        d->type->release(d, there[i], arguments[i].bytes);
    memory_release(there);
}

jot_status run_native_call(struct rt_program *program, const void *const *inputs,
                           void *const *outputs)
{
    jot_device *d = jot_default_device();
    const struct rt_plan *p = rt_program_plan(program);
    if (rt_is_host(d))
        return rt_program_run(program, inputs, outputs);
    void **in = memory_allocate_zeroed((p->input_count + 1) * sizeof *in);
    void **out = memory_allocate_zeroed((p->output_count + 1) * sizeof *out);
    jot_status status =
        make_arguments(d, p->inputs, p->input_count, (void *const *)(uintptr_t)inputs, in);
    if (status == JOT_OK)
        status = make_arguments(d, p->outputs, p->output_count, outputs, out);
    if (status == JOT_OK)
        status = rt_program_run(program, (const void *const *)in, out);
    for (uint32_t i = 0; status == JOT_OK && i < p->output_count; i++)
        status = d->type->download(d, outputs[i], out[i], p->outputs[i].bytes);
    release_arguments(d, p->inputs, p->input_count, in);
    release_arguments(d, p->outputs, p->output_count, out);
    return status;
}

jot_status run_native(struct arena *arena, const struct nest_program *p, void *const *inputs,
                      void *const *outputs)
{
    struct rt_program *program;
    JOT_TRY(run_native_load(arena, p, NULL, &program));
    jot_status status = run_native_call(program, (const void *const *)inputs, outputs);
    rt_program_release(program);
    return status;
}

uint32_t run_native_devices(void)
{
    jot_device_kind kind = jot_device_kind_of(jot_default_device());
    return kind == JOT_HOST ? UINT32_MAX : (uint32_t)jot_device_count(kind);
}

// Of one device; what the arguments have on the device is released where that fails as well.
static jot_status copy_arguments(jot_device *d, const struct rt_plan *p,
                                 const void *const *inputs, void *const *outputs,
                                 const void **in, void **out)
{
    JOT_TRY(make_arguments(d, p->inputs, p->input_count, (void *const *)(uintptr_t)inputs,
                           (void **)in));
    return make_arguments(d, p->outputs, p->output_count, outputs, out);
}

static jot_status run_copies(struct rt_team *team, uint32_t n, jot_device *const *devices,
                             const void *const *inputs, void *const *outputs)
{
    const struct rt_plan *p = rt_team_plan(team);
    uint32_t n_in = p->input_count, n_out = p->output_count;
    const void **in = memory_allocate_zeroed((n * n_in + 1) * sizeof *in);
    void **out = memory_allocate_zeroed((n * n_out + 1) * sizeof *out);
    jot_status status = JOT_OK;
    for (uint32_t d = 0; status == JOT_OK && d < n; d++)
        status = copy_arguments(devices[d], p, inputs + d * n_in, outputs + d * n_out,
                                in + d * n_in, out + d * n_out);
    if (status == JOT_OK)
        status = rt_team_run(team, in, out);
    for (uint32_t k = 0; status == JOT_OK && k < n * n_out; k++)
        status = devices[k / n_out]->type->download(devices[k / n_out], outputs[k], out[k],
                                                    p->outputs[k % n_out].bytes);
    for (uint32_t k = 0; k < n * n_in; k++)
        devices[k / n_in]->type->release(devices[k / n_in], (void *)(uintptr_t)in[k],
                                         p->inputs[k % n_in].bytes);
    for (uint32_t k = 0; k < n * n_out; k++)
        devices[k / n_out]->type->release(devices[k / n_out], out[k],
                                          p->outputs[k % n_out].bytes);
    memory_release(in);
    memory_release(out);
    return status;
}

jot_status run_native_together(struct arena *arena, const struct nest_program *p,
                               const struct ir_module *m, uint32_t n, const void *const *inputs,
                               void *const *outputs)
{
    bool is_host = rt_is_host(jot_default_device());
    jot_device **devices = arena_array(arena, jot_device *, n + 1);
    struct rt_team *team;
    if (is_host)
        JOT_TRY(jot_set_host_devices((int)n));
    for (uint32_t d = 0; d < n; d++)
        devices[d] = is_host ? jot_host_device((int)d) : jot_cuda((int)d);
    JOT_TRY(run_native_load_on(arena, p, m, n, devices, NULL, &team));
    jot_status status = is_host ? rt_team_run(team, inputs, outputs)
                                : run_copies(team, n, devices, inputs, outputs);
    rt_team_release(team);
    return status;
}

uint64_t run_native_bytes(const struct nest_memory *m)
{
    return (uint64_t)m->count * jot_dtype_size(m->dtype);
}

struct nest_program *run_native_wrap(struct arena *arena, struct nest *n)
{
    struct nest_program *p = arena_new(arena, struct nest_program);
    p->arena = arena;
    p->name = n->name;
    vec_push(arena, &p->nests, n);
    uint32_t *memories = arena_array(arena, uint32_t, n->buffers.count + 1), count = 0;
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        const struct nest_buffer *b = &n->buffers.at[i];
        if (b->role == NEST_LOCAL)
            continue;
        bool is_in = b->role == NEST_IN;
        vec_push(arena, &p->memories,
                 (struct nest_memory){.kind = is_in ? NEST_INPUT : NEST_OUTPUT,
                                      .dtype = b->dtype,
                                      .count = b->count,
                                      .index = is_in ? p->n_inputs++ : p->n_outputs++,
                                      .name = b->name});
        memories[count] = count;
        count++;
    }
    vec_push(arena, &p->steps,
             (struct nest_step){
                 .kind = NEST_STEP_KERNEL, .n_memories = count, .memories = memories});
    p->donated = arena_array(arena, int32_t, p->n_outputs + 1);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->donated[i] = -1;
    return p;
}

static uint64_t aligned(uint64_t x) { return (x + 63) / 64 * 64; }

static void append(struct nest_program *to, const struct nest_program *p)
{
    uint32_t first = to->memories.count, first_nest = to->nests.count;
    uint64_t arena_at = aligned(to->arena_bytes), constants_at = aligned(to->constant_bytes);
    for (uint32_t i = 0; i < p->memories.count; i++) {
        struct nest_memory m = p->memories.at[i];
        if (m.kind == NEST_INPUT)
            m.index += to->n_inputs;
        else if (m.kind == NEST_OUTPUT)
            m.index += to->n_outputs;
        else
            m.offset += m.kind == NEST_CONSTANT ? constants_at : arena_at;
        uint32_t *of = arena_array(to->arena, uint32_t, m.n_of + 1);
        for (uint32_t k = 0; k < m.n_of; k++)
            of[k] = m.of[k] + first;
        m.of = of;
        m.loop += to->n_loops;
        vec_push(to->arena, &to->memories, m);
    }
    for (uint32_t i = 0; i < p->nests.count; i++) {
        struct nest *n = arena_copy(to->arena, p->nests.at[i], sizeof *n);
        struct strbuf name = strbuf_make(to->arena);
        strbuf_printf(&name, "k%u_%s", to->nests.count, n->name);
        n->name = name.text;
        vec_push(to->arena, &to->nests, n);
    }
    for (uint32_t i = 0; i < p->steps.count; i++) {
        struct nest_step s = p->steps.at[i];
        uint32_t *memories = arena_array(to->arena, uint32_t, s.n_memories + 1);
        for (uint32_t k = 0; k < s.n_memories; k++)
            memories[k] = s.memories[k] + first;
        s.memories = memories;
        s.nest += s.kind == NEST_STEP_KERNEL ? first_nest : 0;
        s.loop += to->n_loops;
        vec_push(to->arena, &to->steps, s);
    }
    to->n_loops += p->n_loops;
    to->n_inputs += p->n_inputs;
    to->n_outputs += p->n_outputs;
    to->arena_bytes = arena_at + p->arena_bytes;
    to->constant_bytes = constants_at + p->constant_bytes;
}

struct nest_program *run_native_merge(struct arena *arena, uint32_t n,
                                      struct nest_program *const *programs)
{
    struct nest_program *to = arena_new(arena, struct nest_program);
    to->arena = arena;
    to->name = "together";
    for (uint32_t i = 0; i < n; i++)
        append(to, programs[i]);
    to->donated = arena_array(arena, int32_t, to->n_outputs + 1);
    for (uint32_t i = 0; i < to->n_outputs; i++)
        to->donated[i] = -1;
    return to;
}
