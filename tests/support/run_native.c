// SPDX-License-Identifier: Apache-2.0
#include "support/run_native.h"

#include "base/status.h"
#include "codegen/codegen.h"

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

jot_status run_native_load(struct arena *arena, const struct nest_program *p,
                           struct rt_program **out)
{
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, p);
    struct cg_request request = {.abi_version = CG_ABI_VERSION, .program = text.text};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    jot_status status = (jot_status)r.status;
    if (status == JOT_OK)
        status = rt_program_load(jot_host(), r.object, r.object_size, r.plan, r.plan_size, NULL,
                                 0, out);
    else
        status_fail(status, "%s", r.message);
    r.release(&r);
    return status;
}

jot_status run_native(struct arena *arena, const struct nest_program *p, void *const *inputs,
                      void *const *outputs)
{
    struct rt_program *program;
    JOT_TRY(run_native_load(arena, p, &program));
    jot_status status = rt_program_run(program, (const void *const *)inputs, outputs);
    rt_program_release(program);
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
                 (struct nest_memory){.place = is_in ? NEST_INPUT : NEST_OUTPUT,
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
