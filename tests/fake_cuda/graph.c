// SPDX-License-Identifier: Apache-2.0
// Work of streams that are captured.  Conditions are numbers, which a node looks at when it runs.
#include "fake_cuda/fake.h"

#include <stdatomic.h>

#define NODES_MOST 4096
#define CONDITIONS_MOST 4096

struct node {
    void (*run)(void *argument);
    void *argument; // of malloc
    size_t bytes;
};

struct CUgraph_st {
    struct node *nodes;
    int count;
    int uses; // of a body: by nodes that have it
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
    CUcontext context;
};

struct condition {
    unsigned value;
    bool is_set;
};

// An IF or a WHILE.
struct conditional {
    CUgraphConditionalHandle handle;
    int type;
    CUgraph body;
};

static atomic_int graphs, graph_launches;
static struct condition conditions[CONDITIONS_MOST];
static CUgraphConditionalHandle condition_count;
static const struct CUgraphNode_st *const last_node = (const void *)&conditions[0];

int fake_cuda_graphs(void) { return graphs; }
int fake_cuda_graph_launches(void) { return graph_launches; }

static struct conditional *conditional_of(const struct node *n);

static void add_node(CUgraph g, const struct node *from)
{
    if (g->count == NODES_MOST)
        abort();
    struct node *n = &g->nodes[g->count++];
    *n = *from;
    n->argument = fake_untracked(malloc(n->bytes));
    memcpy(n->argument, from->argument, n->bytes);
    if (conditional_of(n))
        conditional_of(n)->body->uses++;
}

static CUgraph create_graph(void)
{
    CUgraph g = fake_untracked(calloc(1, sizeof *g));
    g->nodes = fake_untracked(calloc(NODES_MOST, sizeof(struct node)));
    return g;
}

static void run_nodes(const struct CUgraph_st *g)
{
    for (int i = 0; i < g->count && !fake_context()->is_broken; i++)
        g->nodes[i].run(g->nodes[i].argument);
}

static void run_conditional(void *argument)
{
    struct conditional *c = argument;
    struct condition *at = &conditions[c->handle];
    if (!at->is_set)
        abort(); // the node came before what decides
    while (at->value && !fake_context()->is_broken) {
        run_nodes(c->body);
        if (c->type == CU_GRAPH_COND_TYPE_IF)
            return;
    }
}

static struct conditional *conditional_of(const struct node *n)
{
    return n->run == run_conditional ? n->argument : NULL;
}

static void release_nodes(CUgraph g)
{
    for (int i = 0; i < g->count; i++) {
        struct conditional *c = conditional_of(&g->nodes[i]);
        if (c && --c->body->uses == 0) {
            release_nodes(c->body);
            free(c->body);
        }
        free(g->nodes[i].argument);
    }
    free(g->nodes);
}

void fake_set_conditional(CUgraphConditionalHandle handle, unsigned value)
{
    if (handle == 0 || handle > condition_count)
        abort();
    conditions[handle] = (struct condition){value, true};
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
    stream->capture = create_graph();
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after,
                                     const CUgraphEdgeData *edges, size_t count,
                                     CUstreamCaptureMode mode)
{
    if (stream->capture || after || edges || count ||
        mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return 801;
    stream->capture = graph;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                   cuuint64_t *id, CUgraph *graph, const CUgraphNode **end,
                                   const CUgraphEdgeData **edges, size_t *count)
{
    *status = stream->capture != NULL;
    *id = 1;
    *graph = stream->capture;
    *end = (const CUgraphNode *)&last_node;
    *count = 1;
    return edges ? 1 : CUDA_SUCCESS;
}

// Nodes come one after the other, so what follows has to wait for the last.
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *after,
                                              const CUgraphEdgeData *edges, size_t count,
                                              unsigned flags)
{
    bool is_right = stream->capture && count == 1 && *after == last_node && !edges &&
                    flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES;
    return is_right ? CUDA_SUCCESS : 1;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph,
                                        CUcontext context, unsigned value, unsigned flags)
{
    if (!graph || context != fake_context() || flags != CU_GRAPH_COND_ASSIGN_DEFAULT ||
        condition_count + 1 == CONDITIONS_MOST)
        return 1;
    *handle = ++condition_count;
    conditions[*handle] = (struct condition){value, false};
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p)
{
    if (p->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || p->conditional.size != 1 || edges ||
        p->conditional.ctx != fake_context() || count != 1 || *after != last_node)
        return 1;
    struct conditional c = {p->conditional.handle, p->conditional.type, create_graph()};
    add_node(graph, &(struct node){run_conditional, &c, sizeof c});
    // The array is as old as the node.
    p->conditional.phGraph_out =
        &((struct conditional *)graph->nodes[graph->count - 1].argument)->body;
    memcpy(node, &last_node, sizeof *node);
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
    run_nodes(&exec->graph);
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
