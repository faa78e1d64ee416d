// SPDX-License-Identifier: Apache-2.0
// Work of streams that are captured.
#include "fake_cuda/fake.h"

#include <stdatomic.h>

#define NODES_MOST 4096

struct node {
    void (*run)(void *argument);
    void *argument; // of malloc
    size_t bytes;
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

static void add_node(CUgraph g, const struct node *from)
{
    if (g->count == NODES_MOST)
        abort();
    struct node *n = &g->nodes[g->count++];
    *n = *from;
    n->argument = fake_untracked(malloc(n->bytes));
    memcpy(n->argument, from->argument, n->bytes);
}

static void release_nodes(CUgraph g)
{
    for (int i = 0; i < g->count; i++)
        free(g->nodes[i].argument);
    free(g->nodes);
}

void fake_submit(CUstream stream, void (*run)(void *), void *argument, size_t bytes)
{
    if (stream->capture)
        add_node(stream->capture, &(struct node){run, argument, bytes});
    else
        run(argument);
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
    (*exec)->graph.nodes =
        fake_untracked(calloc((size_t)graph->count + 1, sizeof(struct node)));
    for (int i = 0; i < graph->count; i++)
        add_node(&(*exec)->graph, &graph->nodes[i]);
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
    release_nodes(graph);
    free(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    graphs--;
    release_nodes(&exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}
