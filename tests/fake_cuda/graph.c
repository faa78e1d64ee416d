// SPDX-License-Identifier: Apache-2.0
// Work of streams that are captured.
#include "fake_cuda/fake.h"

#include <stdatomic.h>

#define ARGUMENT_BYTES 512
#define NODES_MOST 4096

struct node {
    void (*run)(void *argument);
    char argument[ARGUMENT_BYTES] __attribute__((aligned(16)));
};

struct CUgraph_st {
    struct node *nodes;
    int count;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
    CUcontext context;
};

static atomic_int graphs, graph_launches;

int fake_cuda_graphs(void) { return graphs; }
int fake_cuda_graph_launches(void) { return graph_launches; }

void fake_submit(CUstream stream, void (*run)(void *), void *argument, size_t bytes)
{
    CUgraph g = stream->capture;
    if (!g) {
        run(argument);
        return;
    }
    if (bytes > ARGUMENT_BYTES || g->count == NODES_MOST)
        abort();
    g->nodes[g->count].run = run;
    memcpy(g->nodes[g->count++].argument, argument, bytes);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    if (fake_number("FAKE_CUDA_NO_CAPTURE", 0) || stream->capture ||
        mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return 801;
    stream->capture = fake_untracked(calloc(1, sizeof *stream->capture));
    stream->capture->nodes = fake_untracked(calloc(NODES_MOST, sizeof(struct node)));
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream->capture;
    stream->capture = NULL;
    return *graph ? CUDA_SUCCESS : 801;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    *exec = fake_untracked(calloc(1, sizeof **exec));
    (*exec)->context = fake_context();
    (*exec)->graph.count = graph->count;
    (*exec)->graph.nodes =
        fake_untracked(calloc((size_t)graph->count + 1, sizeof(struct node)));
    memcpy((*exec)->graph.nodes, graph->nodes, (size_t)graph->count * sizeof(struct node));
    graphs++;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (exec->context != fake_context() || stream->context != fake_context())
        return 400;
    graph_launches++;
    for (int i = 0; i < exec->graph.count && !fake_context()->is_broken; i++)
        exec->graph.nodes[i].run(exec->graph.nodes[i].argument);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    free(graph->nodes);
    free(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    graphs--;
    free(exec->graph.nodes);
    free(exec);
    return CUDA_SUCCESS;
}
