// SPDX-License-Identifier: Apache-2.0
// A while as conditional nodes of the graph that is being captured: the host reads no flag.
//
//     test                          where operands are before the first trip
//     if it fails { leave }
//     while it holds {
//         trip, test                where operands are in the second trip
//         if it fails { leave }
//         if it holds {
//             trip, test            where they were before the first one: for two turns
//             if it fails { leave }
//         }
//     }
//
// A graph holds addresses, so trips are written until the carries are back where they were, and what
// copies them to the results of the loop stands wherever it may end; with one turn, behind it.
#include "runtime/cuda/device.h"

#include "base/status.h"
#include "runtime/steps.h"

#include <string.h>

// Sets the conditions whose handles are not 0: two to the flag, the third to its opposite.
static const char set_conditional[] =
    ".version 8.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry set_conditional (.param .u64 holds, .param .u64 too, .param .u64 fails,\n"
    "                                 .param .u64 flag)\n"
    "{\n"
    "    .reg .pred %p<3>;\n"
    "    .reg .b32 %r<3>;\n"
    "    .reg .b64 %rd<5>;\n"
    "    .param .b64 h;\n"
    "    .param .b32 v;\n"
    "    ld.param.u64 %rd1, [flag];\n"
    "    ld.param.u64 %rd2, [holds];\n"
    "    ld.param.u64 %rd3, [too];\n"
    "    ld.param.u64 %rd4, [fails];\n"
    "    cvta.to.global.u64 %rd1, %rd1;\n"
    "    ld.global.u8 %r1, [%rd1];\n"
    "    setp.ne.u32 %p1, %r1, 0;\n"
    "    selp.u32 %r1, 1, 0, %p1;\n"
    "    selp.u32 %r2, 0, 1, %p1;\n"
    "    setp.eq.u64 %p2, %rd2, 0;\n"
    "    @%p2 bra SECOND;\n"
    "    st.param.b64 [h], %rd2;\n"
    "    st.param.b32 [v], %r1;\n"
    "    call.uni cudaGraphSetConditional, (h, v);\n"
    "SECOND:\n"
    "    setp.eq.u64 %p2, %rd3, 0;\n"
    "    @%p2 bra THIRD;\n"
    "    st.param.b64 [h], %rd3;\n"
    "    st.param.b32 [v], %r1;\n"
    "    call.uni cudaGraphSetConditional, (h, v);\n"
    "THIRD:\n"
    "    setp.eq.u64 %p2, %rd4, 0;\n"
    "    @%p2 bra END;\n"
    "    st.param.b64 [h], %rd4;\n"
    "    st.param.b32 [v], %r2;\n"
    "    call.uni cudaGraphSetConditional, (h, v);\n"
    "END:\n"
    "    ret;\n"
    "}\n";

struct taking {
    const struct rt_program *p;
    struct rt_instance *instance;
    const struct rt_while *loop;
    struct cuda_device *d;
    CUgraphConditionalHandle goes_on;
};

static jot_status status_of(const struct taking *t, CUresult result)
{
    return cuda_status(t->d, result, "capturing a loop");
}

static jot_status load_kernel(struct cuda_device *d)
{
    CUmodule module; // of the device, as long as that is there
    if (d->set_conditional)
        return JOT_OK;
    JOT_TRY(cuda_status(d, cuda.driver.cuModuleLoadData(&module, set_conditional),
                        "loading a kernel"));
    return cuda_status(
        d, cuda.driver.cuModuleGetFunction(&d->set_conditional, module, "set_conditional"),
        "loading a kernel");
}

// ---- Nodes

// The graph that is being captured, and the node that its next one waits for.
static jot_status find_end(const struct taking *t, CUgraph *out_graph, const CUgraphNode **out,
                           size_t *out_count)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    return status_of(t, cuda.driver.cuStreamGetCaptureInfo_v3(cuda_capturing(), &status, &id,
                                                              out_graph, out, NULL, out_count));
}

static jot_status make_handle(const struct taking *t, CUgraphConditionalHandle *out)
{
    CUgraph graph;
    const CUgraphNode *end;
    size_t count;
    JOT_TRY(find_end(t, &graph, &end, &count));
    return status_of(t, cuda.driver.cuGraphConditionalHandleCreate(
                            out, graph, t->d->context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT));
}

static jot_status set(const struct taking *t, CUgraphConditionalHandle holds,
                      CUgraphConditionalHandle too, CUgraphConditionalHandle fails)
{
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = cuda_capturing()};
    const struct rt_bound_step *test = &t->p->steps[t->loop->test];
    CUdeviceptr flag = (CUdeviceptr)(uintptr_t)t->instance->operands[test->operand_first];
    void *parameters[] = {&holds, &too, &fails, &flag};
    JOT_TRY(cuda_branches_wait(t->p));
    return status_of(
        t, cuda.driver.cuLaunchKernelEx(&config, t->d->set_conditional, parameters, NULL));
}

// A node of the type, after all that is captured; what follows goes into its body.
static jot_status open_body(struct taking *t, int type, CUgraphConditionalHandle handle)
{
    CUgraph graph;
    CUgraphNode node;
    const CUgraphNode *end;
    size_t count;
    int depth = 1;
    while (t->d->capturing[depth - 1] != cuda_capturing())
        depth++;
    if (depth == CUDA_DEPTH)
        return status_fail(JOT_ERR_DEVICE, "whiles are %d deep", depth);
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    p.conditional.handle = handle;
    p.conditional.type = type;
    p.conditional.size = 1;
    p.conditional.ctx = t->d->context;
    JOT_TRY(cuda_open_capturing(t->d, depth));
    JOT_TRY(find_end(t, &graph, &end, &count));
    JOT_TRY(status_of(t, cuda.driver.cuGraphAddNode_v2(&node, graph, end, NULL, count, &p)));
    JOT_TRY(status_of(
        t, cuda.driver.cuStreamUpdateCaptureDependencies_v2(
               cuda_capturing(), &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES)));
    JOT_TRY(status_of(t, cuda.driver.cuStreamBeginCaptureToGraph(
                             t->d->capturing[depth], p.conditional.phGraph_out[0], NULL, NULL,
                             0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)));
    cuda_capture(t->d->capturing[depth]);
    return JOT_OK;
}

static jot_status close_body(struct taking *t, jot_status status)
{
    CUgraph graph;
    int depth = 0;
    while (t->d->capturing[depth] != cuda_capturing())
        depth++;
    jot_status ended = status_of(t, cuda.driver.cuStreamEndCapture(cuda_capturing(), &graph));
    cuda_capture(t->d->capturing[depth - 1]);
    return status == JOT_OK ? ended : status;
}

// ---- The loop

static jot_status run_steps(struct taking *t, uint32_t first, uint32_t end)
{
    return rt_program_run_steps(t->p, t->instance, first, end);
}

// The test as operands are in trip `turn`, and what is to be done when it fails there; `too` is set
// to what it says, or 0.
static jot_status test(struct taking *t, uint32_t turn, CUgraphConditionalHandle too)
{
    const struct rt_while *w = t->loop;
    CUgraphConditionalHandle fails = 0;
    rt_program_turn(t->p, t->instance, t->p->steps[w->first].index, turn);
    JOT_TRY(run_steps(t, w->first + 1, w->test));
    if (w->turns == 1)
        return set(t, t->goes_on, too, 0);
    JOT_TRY(make_handle(t, &fails));
    JOT_TRY(set(t, t->goes_on, too, fails));
    JOT_TRY(open_body(t, CU_GRAPH_COND_TYPE_IF, fails));
    return close_body(t, run_steps(t, w->next + 1, w->end));
}

// Trip `turn`, and the others up to that after which operands are where they were.
static jot_status take_trips(struct taking *t, uint32_t turn)
{
    const struct rt_while *w = t->loop;
    CUgraphConditionalHandle more = 0;
    JOT_TRY(run_steps(t, w->test + 1, w->next));
    if (turn + 1 == w->turns)
        return test(t, 0, 0);
    JOT_TRY(make_handle(t, &more));
    JOT_TRY(test(t, turn + 1, more));
    JOT_TRY(open_body(t, CU_GRAPH_COND_TYPE_IF, more));
    return close_body(t, take_trips(t, turn + 1));
}

jot_status cuda_take_while(const struct rt_program *p, struct rt_instance *instance,
                           const struct rt_while *loop, bool *out_done)
{
    struct taking t = {
        .p = p, .instance = instance, .loop = loop, .d = cuda_device_of(p->device)};
    *out_done = cuda_capturing() != NULL;
    if (!*out_done)
        return JOT_OK;
    JOT_TRY(load_kernel(t.d));
    JOT_TRY(cuda_branches_wait(p));
    JOT_TRY(cuda_branches_restart(p));
    JOT_TRY(make_handle(&t, &t.goes_on));
    JOT_TRY(test(&t, 0, 0));
    JOT_TRY(open_body(&t, CU_GRAPH_COND_TYPE_WHILE, t.goes_on));
    JOT_TRY(close_body(&t, take_trips(&t, 0)));
    JOT_TRY(cuda_branches_restart(p));
    return loop->turns == 1 ? run_steps(&t, loop->next + 1, loop->end) : JOT_OK;
}
