// SPDX-License-Identifier: Apache-2.0
// What the disk cache keeps of a program is the object and the launch plan; with both, neither the
// scheduler nor LLVM is needed.
#include "trace/native.h"

#include "base/built.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "ir/control.h"
#include "ir/cost.h"
#include "ir/eval.h"
#include "map/map.h"
#include "runtime/cache.h"
#include "runtime/device.h"
#include "runtime/distributed.h"
#include "runtime/frames.h"
#include "runtime/program.h"
#include "runtime/routine.h"
#include "runtime/stack.h"
#include "schedule/pipeline.h"
#include "schedule/schedule.h"
#include "trace/codegen_loader.h"
#include "trace/codegen_process.h"
#include "trace/dump.h"
#include "trace/environment.h"
#include "trace/native_internal.h"
#include "trace/raw_kernel.h"
#include "trace/stacks.h"

#include <stdlib.h>
#include <string.h>

#define FEW 32
#define TARGET 128 // characters of one (codegen/codegen.h)
// Of what a kernel of a GPU reads and writes, in bytes.
#define FAR_ALIGNMENT 16

struct code {
    const void *object, *plan;
    size_t object_size, plan_size;
};

static bool is_on_mesh(const struct native_program *p) { return p->mesh.mesh != NULL; }

static const struct rt_plan *plan_of(const struct native_program *p)
{
    return is_on_mesh(p) ? rt_team_plan(p->mesh.team) : rt_program_plan(p->program);
}

static bool is_loaded(const struct native_program *p) { return p->program || p->mesh.team; }

// Steps have places for the timeline, which equal functions elsewhere in the source do not share.
static void add_places(struct strbuf *s, const struct ir_graph *g)
{
    const int64_t *bodies;
    ir_for_each_node (g, n) {
        const char *place = ir_where_text(g->module, n->where);
        strbuf_printf(s, "%s|", place ? place : "");
        for (int i = 0, n_bodies = ir_bodies_of(n, &bodies); i < n_bodies; i++)
            add_places(s, ir_body(g, n, i));
    }
}

struct hash128 native_key(const struct native_program *p)
{
    const struct ir_graph *g = ir_function(p->module, p->function);
    struct strbuf s = strbuf_make(p->module->arena);
    char machine[256];
    p->device->type->identity(p->device, machine, sizeof machine);
    struct hash128 content = ir_graph_key(g);
    strbuf_printf(&s, "%s|%s|", BUILT, machine);
    strbuf_add_bytes(&s, &content, sizeof content);
    for (uint32_t i = 0; i < p->n_in; i++)
        strbuf_add(&s, p->donated && p->donated[i] ? "d" : ".");
    for (uint32_t i = 0; is_on_mesh(p) && i < p->mesh.mesh->rank; i++)
        strbuf_printf(&s, "x%lld", (long long)p->mesh.mesh->dims[i]);
    if (p->choices.is_made)
        strbuf_printf(&s, "|%d|", (int)p->choices.repeat);
    strbuf_add_bytes(&s, p->choices.of, p->choices.count);
    if (timeline_is_on())
        add_places(&s, g);
    return hash128_bytes(s.text, s.length);
}

// What is said of a kernel besides its nest: what measuring has chosen, and on a GPU who does what.
static jot_status map_nests(struct nest_program *nests, void *ctx)
{
    const struct native_program *p = ctx;
    bool is_gpu = p->device->type->kind == JOT_CUDA;
    if (is_gpu)
        map_split_phases(nests);
    for (uint32_t i = 0; i < p->choices.count && i < nests->nests.count; i++)
        nests->nests.at[i]->choices = p->choices.of[i];
    char target[TARGET] = "";
    if (!is_gpu)
        return JOT_OK;
    JOT_TRY(p->device->type->target(p->device, target, sizeof target));
    map_program_to_gpu(nests, map_has_warpgroups(target));
    struct strbuf report = strbuf_make(nests->arena);
    return environment_verifies() &&
                   map_program_verify(nests, map_has_warpgroups(target), &report)
               ? status_fail(JOT_ERR_INTERNAL,
                             "the pass map leaves kernels that there is no code for: %s",
                             report.text)
               : JOT_OK;
}

jot_status native_schedule(struct native_program *p, struct arena *arena,
                           struct nest_program **out)
{
    bool is_gpu = p->device->type->kind == JOT_CUDA;
    struct schedule_options options = schedule_options_of(is_gpu);
    options.repeat = p->choices.repeat;
    options.says_places = timeline_is_on();
    options.price = is_gpu ? NULL : map_price_of_all;
    options.gpu_price = is_gpu ? map_price_on_gpu : NULL;
    options.donated = p->donated;
    options.has_convolutions = p->device->type->takes_convolution != NULL;
    if (is_on_mesh(p)) {
        options.early_exchanges = is_gpu;
        options.mesh_rank = p->mesh.mesh->rank;
        options.mesh = p->mesh.mesh->dims;
    }
    options.verifies = environment_verifies();
    options.map = map_nests;
    options.map_ctx = p;
    int64_t since = timeline_begin();
    jot_status status =
        pass_schedule(arena, ir_function(p->module, p->function), &options, out);
    timeline_end(since, &(struct timeline_event){.kind = "pass", .name = "schedule"});
    return status;
}

// Whether the code generator runs in a process of its own.
static bool is_apart(const struct native_program *p)
{
    return codegen_is_process(&p->codegen) || codegen_is_left();
}

static jot_status ask_code_generator(const struct native_program *p,
                                     const struct cg_request *request, struct cg_response *out)
{
    int64_t since = timeline_begin();
    jot_status status =
        is_apart(p) ? codegen_process(request, &p->codegen, out) : codegen_run(request, out);
    timeline_end(since, &(struct timeline_event){.kind = "compile", .name = "generate code"});
    return status;
}

static struct rt_routine_call call_of(const struct nest_program *n, const struct nest_step *s)
{
    struct rt_routine_call c = {.params = s->params,
                                .param_count = s->n_params,
                                .operand_count = s->n_memories,
                                .read_count = s->n_reads};
    for (uint32_t i = 0; i < s->n_memories; i++) {
        const struct nest_memory *m = &n->memories.at[s->memories[i]];
        c.bytes[i] =
            (uint64_t)(s->ranges ? s->ranges[i].count : m->count) * jot_dtype_size(m->dtype);
    }
    return c;
}

// The calls of libraries that the program has.
static struct rt_ahead_calls *list_calls(struct arena *arena, const struct nest_program *n)
{
    struct rt_ahead_calls *all = arena_new(arena, struct rt_ahead_calls);
    *all = (struct rt_ahead_calls){
        .at = arena_array(arena, struct rt_ahead_call, n->steps.count + 1)};
    for (uint32_t i = 0; i < n->steps.count; i++) {
        const struct nest_step *s = &n->steps.at[i];
        all->has_products |= s->kind == NEST_STEP_GEMM;
        if (s->kind == NEST_STEP_LIBRARY && s->n_memories <= RT_ROUTINE_MOST)
            all->at[all->count++] = (struct rt_ahead_call){s->text, call_of(n, s)};
    }
    return all;
}

// The dynamic linker loads one library at a time, and those of products take longest: the code generator comes first.
static struct rt_ahead *begin_ahead(const struct native_program *p, struct arena *arena,
                                    const struct nest_program *nests)
{
    if (!p->device->type->begin_ahead)
        return NULL;
    if (!is_apart(p) && codegen_open() != JOT_OK)
        return NULL;
    return p->device->type->begin_ahead(p->device, list_calls(arena, nests));
}

jot_status native_generate(struct native_program *p, struct arena *arena, unsigned want,
                           struct rt_ahead **out_ahead, struct cg_response *out)
{
    struct nest_program *nests;
    JOT_TRY(native_schedule(p, arena, &nests));
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, nests);
    char target[TARGET];
    JOT_TRY(p->device->type->target(p->device, target, sizeof target));
    struct cg_request request = {.want = want | (environment_verifies() ? CG_WANT_VERIFIED : 0),
                                 .program = text.text,
                                 .target = *target ? target : NULL};
    // Nothing here takes memory of the arena while threads read what is in it: without any it is left at once.
    if (out_ahead)
        *out_ahead = begin_ahead(p, arena, nests);
    JOT_TRY(ask_code_generator(p, &request, out));
    if (out->status == JOT_OK)
        return JOT_OK;
    jot_status status = status_fail((jot_status)out->status, "%s", out->message);
    out->release(out);
    return status;
}

// An entry of the cache: the size of the object, the object padded to 8 bytes, the plan.  Not in an
// arena, which would leave here, with the program loaded, when memory is out.
static void store(struct hash128 key, const struct code *c, struct rt_text *report)
{
    uint64_t size = c->object_size;
    size_t plan_at = sizeof size + c->object_size + (8 - c->object_size % 8) % 8;
    char *bytes = memory_allocate_zeroed(plan_at + c->plan_size);
    if (!bytes)
        return;
    memcpy(bytes, &size, sizeof size);
    if (c->object_size)
        memcpy(bytes + sizeof size, c->object, c->object_size);
    memcpy(bytes + plan_at, c->plan, c->plan_size);
    rt_cache_store(rt_cache_default(), key, bytes, plan_at + c->plan_size, report);
    memory_release(bytes);
}

static bool unpack(const struct rt_cache_entry *e, struct code *c)
{
    uint64_t size;
    if (e->size < sizeof size)
        return false;
    memcpy(&size, e->bytes, sizeof size);
    uint64_t padded = size + (8 - size % 8) % 8;
    if (size > e->size || padded + sizeof size > e->size)
        return false;
    const char *at = e->bytes;
    *c = (struct code){.object = at + sizeof size,
                       .object_size = size,
                       .plan = at + sizeof size + padded,
                       .plan_size = e->size - sizeof size - padded};
    return true;
}

// The functions that steps call by number; the program copies the list, not what it points to.
static struct rt_callback *callbacks_of(const struct native_program *p)
{
    struct arena *arena = p->module->arena;
    uint32_t n = p->module->hosts.count;
    struct ir_host *hosts = arena_copy(arena, p->module->hosts.at, n * sizeof *hosts);
    struct rt_callback *all = arena_array(arena, struct rt_callback, n + 1);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct rt_callback){
            .call = schedule_call_host,
            .ctx = &hosts[i],
            .kernel = hosts[i].call == raw_kernel_on_host ? hosts[i].ctx : NULL};
    return all;
}

static void unload(struct native_program *p)
{
    rt_program_release(p->program);
    rt_team_release(p->mesh.team);
    p->program = NULL;
    p->mesh.team = NULL;
}

static void take_donations(struct native_program *p)
{
    for (uint32_t i = 0; i < p->n_out; i++)
        p->outputs[i].donated = plan_of(p)->outputs[i].donated;
}

void native_use(struct native_program *p, struct rt_program *program)
{
    p->program = program;
    if (program)
        take_donations(p);
}

void native_watch(const struct native_program *p)
{
    if (p->mesh.team)
        rt_team_watch(p->mesh.team, dump_wants("run") ? dump_step : NULL);
    else
        rt_program_watch(p->program, dump_wants("run") ? dump_step : NULL);
}

static jot_status load_on_device(struct native_program *p, const struct code *c)
{
    const struct rt_callback *callbacks = callbacks_of(p);
    uint32_t n_callbacks = p->module->hosts.count;
    if (is_on_mesh(p)) {
        const struct ir_graph *g = ir_function(p->module, p->function);
        struct rt_team_content content = {g->name, ir_graph_key_across(g)};
        JOT_TRY(rt_team_load(p->mesh.mesh->devices, p->mesh.mesh->count, &content, c->object,
                             c->object_size, c->plan, c->plan_size, callbacks, n_callbacks,
                             &p->mesh.team));
    } else {
        JOT_TRY(rt_program_load(p->device, c->object, c->object_size, c->plan, c->plan_size,
                                callbacks, n_callbacks, &p->program));
    }
    if (plan_of(p)->input_count != p->n_in || plan_of(p)->output_count != p->n_out) {
        unload(p);
        return status_fail(JOT_ERR_IO, "the program is not that of this function");
    }
    native_watch(p);
    return JOT_OK;
}

static jot_status load_code(struct native_program *p, const struct code *c)
{
    int64_t since = timeline_begin();
    jot_status status = load_on_device(p, c);
    timeline_end(since, &(struct timeline_event){.kind = "compile", .name = "load"});
    return status;
}

// Leaves the program NULL when the cache has none that can be used.  What is wrong with the machine
// instead, such as a library that is missing, would be wrong with a new one as well.
static jot_status load_cached(struct native_program *p, struct hash128 key,
                              struct rt_text *report)
{
    struct rt_cache_entry e;
    struct code c;
    int64_t since = timeline_begin();
    bool is_found = rt_cache_find(rt_cache_default(), key, &e, report);
    timeline_end(since, &(struct timeline_event){
                            .kind = "cache", .name = is_found ? "cache hit" : "cache miss"});
    if (!is_found)
        return JOT_OK;
    jot_status status = unpack(&e, &c) ? load_code(p, &c) : JOT_ERR_IO;
    rt_cache_entry_release(&e);
    if (status != JOT_ERR_IO)
        return status;
    rt_text_add(report, "it is no program of this function, which is compiled\n");
    return JOT_OK;
}

// What the code generator gave, as the device loads it; *assembled is to be released.
static jot_status assemble(const struct native_program *p, const struct cg_response *r,
                           struct code *out, void **assembled)
{
    *out = (struct code){r->object, r->plan, r->object_size, r->plan_size};
    if (!p->device->type->assemble)
        return JOT_OK;
    int64_t since = timeline_begin();
    JOT_TRY(p->device->type->assemble(p->device, r->object, r->object_size, assembled,
                                      &out->object_size));
    timeline_end(since, &(struct timeline_event){.kind = "compile", .name = "assemble"});
    out->object = *assembled;
    return JOT_OK;
}

// Kept by the key; NULL: not kept.
static jot_status make_code(struct native_program *p, struct arena *arena,
                            const struct hash128 *key, struct rt_text *report)
{
    struct cg_response r;
    struct code c;
    struct rt_ahead *ahead = NULL;
    void *assembled = NULL;
    jot_status status = native_generate(p, arena, 0, &ahead, &r);
    bool is_generated = status == JOT_OK;
    if (is_generated)
        status = assemble(p, &r, &c, &assembled);
    if (ahead)
        p->device->type->end_ahead(ahead);
    if (status == JOT_OK)
        status = load_code(p, &c);
    if (status == JOT_OK && key)
        store(*key, &c, report);
    memory_release(assembled);
    if (is_generated)
        r.release(&r);
    return status;
}

jot_status native_compile_anew(struct native_program *p, struct arena *arena)
{
    return make_code(p, arena, NULL, NULL);
}

jot_status native_find_or_make(struct native_program *p, struct arena *arena,
                               struct rt_text *report)
{
    // What calls functions of this process is of no use to another.
    if (p->module->hosts.count) {
        rt_text_add(report,
                    "not looked for and not kept: it calls functions of this process\n");
        return make_code(p, arena, NULL, report);
    }
    struct hash128 key = native_key(p);
    JOT_TRY(load_cached(p, key, report));
    return is_loaded(p) ? JOT_OK : make_code(p, arena, &key, report);
}

static jot_status compile(struct native_program *p, struct arena *arena)
{
    char text[8192] = "";
    struct rt_text report = {.at = text, .size = sizeof text};
    JOT_TRY(p->device->type->check(p->device));
    jot_status status = native_find_or_make(p, arena, &report);
    // Others wait for this one, unless they have all found that their programs differ.
    if (status != JOT_OK && status != JOT_ERR_CHECK && is_on_mesh(p) &&
        rt_mesh_is_across(p->mesh.mesh))
        rt_distributed_fail(status, "%s", jot_error_message());
    if (dump_wants("cache"))
        dump_text("cache", ir_function(p->module, p->function)->name, text);
    return status;
}

// ---------------------------------------------------------------------------------------
// Compiling

static void describe_outputs(struct native_program *p)
{
    const struct ir_graph *g = ir_function(p->module, p->function);
    p->n_in = g->n_params;
    p->n_out = g->outputs.count;
    p->outputs = arena_array(p->module->arena, struct native_output, p->n_out + 1);
    for (uint32_t i = 0; i < p->n_out; i++) {
        ir_id id = g->outputs.at[i];
        p->outputs[i] = (struct native_output){.dtype = ir_dtype_of(g, id),
                                               .rank = ir_rank_of(g, id),
                                               .dims = ir_dims_of(g, id),
                                               .donated = -1};
    }
}

static bool takes_convolution(const void *ctx, const int64_t *params, uint32_t count)
{
    const struct native_program *p = ctx;
    return p->device->type->takes_convolution(p->device, params, count);
}

static jot_status build_program(struct arena *arena, void *ctx)
{
    struct native_program *p = ctx;
    struct pass_conv_library library = {takes_convolution, p,
                                        p->device->type->kind == JOT_HOST};
    struct pass_target target = {.is_gpu = p->device->type->kind == JOT_CUDA,
                                 .is_on_mesh = is_on_mesh(p),
                                 .verifies = environment_verifies(),
                                 .convolutions =
                                     p->device->type->takes_convolution ? &library : NULL};
    JOT_TRY(pass_pipeline(p->module, p->function, &target, &p->function));
    describe_outputs(p);
    p->mesh.pieces = p->outputs;
    native_dump(p, arena);
    JOT_TRY(compile(p, arena));
    take_donations(p);
    return JOT_OK;
}

static jot_status build_in_arena(void *ctx) { return arena_lend(build_program, ctx); }

jot_status native_compile(struct ir_module *m, uint32_t function,
                          const struct backend_options *options,
                          const struct pass_partition *parts, struct native_program **out)
{
    struct native_program *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    p->module = m;
    p->function = function;
    p->donated = options->donated;
    p->device = options->device;
    p->codegen = options->codegen;
    if (parts) {
        p->mesh.mesh = (jot_mesh *)(uintptr_t)options->mesh;
        p->device = rt_mesh_device(options->mesh);
        native_mesh_describe(&p->mesh, m, function, parts);
        p->function = parts->f;
    }
    jot_status status = rt_stack_lend(backend_stack(m), build_in_arena, p);
    if (status != JOT_OK)
        native_release(p);
    else
        *out = p;
    return status;
}

void native_release(struct native_program *p)
{
    if (!p)
        return;
    unload(p);
    memory_release(p);
}

// The caller holds one reference to an array, and may give it as several inputs.
static bool is_given_once(const struct native_program *p, jot_array *const *in, int at)
{
    for (uint32_t i = 0; i < p->n_in; i++)
        if ((int)i != at && in[i] == in[at])
            return false;
    return true;
}

// Whether the program reads the array where it is.  Kernels of a GPU rely on the alignment that all
// memory but that of others has.
static bool is_in_place(const struct native_program *p, const jot_array *a)
{
    if (a->flags & RT_ARRAY_SPLIT)
        return false;
    if (rt_is_host(p->device)) // whose parts have one memory
        return rt_is_host(rt_array_device(a));
    return rt_array_device(a) == p->device && (uintptr_t)a->data % FAR_ALIGNMENT == 0;
}

// A copy of an array where and how the program reads it.
static jot_status bring(const struct native_program *p, jot_array *a, jot_array **out)
{
    jot_array *copy = rt_array_create_on(p->device, (jot_dtype)a->dtype, a->rank, a->dims);
    jot_status status = copy ? rt_array_transfer(copy, a) : status_last();
    if (status == JOT_OK)
        *out = copy;
    else
        jot_array_release(copy);
    return status;
}

// The array of an output: the donated input itself where that is allowed, else a new one.
static jot_array *make_output(const struct native_program *p, const struct native_output *t,
                              jot_array *const *in)
{
    if (t->donated >= 0) {
        jot_array *a = in[t->donated];
        if (is_in_place(p, a) && rt_array_is_unique(a) && is_given_once(p, in, t->donated) &&
            rt_array_can_retype(a, t->dtype, t->rank, t->dims))
            return jot_array_retain(a);
    }
    return rt_array_create_on(p->device, t->dtype, t->rank, t->dims);
}

static jot_status make_outputs(const struct native_program *p, jot_array *const *in,
                               jot_array **out, void **outputs)
{
    for (uint32_t i = 0; i < p->n_out; i++) {
        out[i] = make_output(p, &p->outputs[i], in);
        if (!out[i]) {
            jot_status status = status_last();
            jot_arrays_release(i, out);
            return status;
        }
        outputs[i] = out[i]->data;
    }
    return JOT_OK;
}

static jot_status run_program(struct native_program *p, jot_array *const *in, jot_array **out,
                              const void **inputs, void **outputs)
{
    for (uint32_t i = 0; i < p->n_in; i++)
        inputs[i] = in[i]->data;
    JOT_TRY(make_outputs(p, in, out, outputs));
    jot_status status = rt_program_run(p->program, inputs, outputs);
    if (status != JOT_OK) {
        jot_arrays_release(p->n_out, out);
        return status;
    }
    // Last of all, so that a call that fails leaves every array the type that it had.
    for (uint32_t i = 0; i < p->n_out; i++) {
        const struct native_output *t = &p->outputs[i];
        if (t->donated >= 0 && out[i] == in[t->donated]) {
            rt_array_retype(out[i], t->dtype, t->rank, t->dims);
            out[i]->part = p->device->part;
        }
    }
    return JOT_OK;
}

// A run of its own frame: one whose inputs are copied, that has many arrays, or that calls code of
// the user.
struct open_run {
    struct rt_frame frame;
    uint32_t n;
    jot_array *owned[]; // copies of inputs, or NULL, then outputs
};

static void abandon_run(struct rt_frame *frame)
{
    struct open_run *r = (struct open_run *)frame;
    for (uint32_t i = 0; i < r->n; i++)
        jot_array_release(r->owned[i]);
    memory_release(r);
}

__attribute__((noinline)) static jot_status run_open(struct native_program *p,
                                                     jot_array *const *in, jot_array **out)
{
    if (is_on_mesh(p))
        return native_mesh_run(&p->mesh, native_calls_back(p), in, out);
    RT_MARK mark = {0};
    uint32_t n = p->n_in + p->n_out;
    struct open_run *r = memory_allocate_zeroed(sizeof *r + 3 * (size_t)n * sizeof(void *));
    if (!r)
        return status_out_of_memory();
    r->n = n;
    jot_array **made = r->owned + p->n_in, **all = r->owned + n;
    void **pointers = (void **)(all + p->n_in);
    jot_status status = JOT_OK;
    for (uint32_t i = 0; status == JOT_OK && i < p->n_in; i++)
        if (is_in_place(p, in[i])) {
            all[i] = in[i];
        } else {
            status = bring(p, in[i], &r->owned[i]);
            all[i] = r->owned[i];
        }
    rt_frame_open(&r->frame, &mark, abandon_run);
    if (status == JOT_OK)
        status = run_program(p, all, made, (const void **)pointers, pointers + p->n_in);
    rt_frame_close(&mark);
    for (uint32_t i = 0; status == JOT_OK && i < p->n_out; i++)
        out[i] = made[i];
    for (uint32_t i = 0; i < p->n_in; i++)
        jot_array_release(r->owned[i]);
    memory_release(r);
    return status;
}

bool native_calls_back(const struct native_program *p) { return p->module->hosts.count > 0; }

size_t native_bytes(const struct native_program *p)
{
    return sizeof *p +
           (is_on_mesh(p) ? rt_team_bytes(p->mesh.team) : rt_program_bytes(p->program));
}

struct small_run {
    struct native_program *p;
    jot_array *const *in;
    jot_array **out;
};

static jot_status do_small_run(void *ctx)
{
    struct small_run *r = ctx;
    return run_open(r->p, r->in, r->out);
}

static jot_status run_on_small_stack(struct native_program *p, jot_array *const *in,
                                     jot_array **out, size_t left)
{
    struct small_run r = {p, in, out};
    if (!native_calls_back(p))
        return rt_stack_lend(STACK_OF_RUN, do_small_run, &r);
    if (left < STACK_OF_CALLBACKS)
        return status_fail(JOT_ERR_MEMORY,
                           "the stack of the thread has %zu KiB left, and a run with callbacks "
                           "takes %zu: give it a larger one",
                           left >> 10, STACK_OF_CALLBACKS >> 10);
    return do_small_run(&r);
}

jot_status native_run(struct native_program *p, jot_array *const *in, jot_array **out)
{
    const void *inputs[FEW];
    void *outputs[FEW];
    jot_array *made[FEW];
    size_t left = rt_stack_left();
    if (left < STACK_OF_RUN)
        return run_on_small_stack(p, in, out, left);
    bool is_plain =
        p->n_in <= FEW && p->n_out <= FEW && !native_calls_back(p) && !is_on_mesh(p);
    for (uint32_t i = 0; is_plain && i < p->n_in; i++)
        is_plain = is_in_place(p, in[i]);
    if (!is_plain)
        return run_open(p, in, out);
    JOT_TRY(run_program(p, in, made, inputs, outputs));
    for (uint32_t i = 0; i < p->n_out; i++)
        out[i] = made[i];
    return JOT_OK;
}

jot_status native_keep(const struct native_program *p, uint32_t i, jot_array *a,
                       jot_array **out)
{
    if (is_on_mesh(p))
        return native_mesh_bring(&p->mesh, i, a, out);
    *out = jot_array_retain(a);
    return JOT_OK;
}
