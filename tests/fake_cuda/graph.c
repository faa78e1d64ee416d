// SPDX-License-Identifier: Apache-2.0
// Work of streams that are captured.  Conditions are numbers, which a node looks at when it runs.
//
// A node runs as soon as those that it has to wait for have, the last one of them first: what should
// wait for another one and does not comes before it where that is possible.
#include "fake_cuda/fake.h"

#include <stdatomic.h>

#define NODES_MOST 4096
#define CONDITIONS_MOST 4096
#define LOOKED_AT 200 // nodes from the first one on that has not run

struct node {
    void (*run)(void *argument);
    void *argument; // of malloc
    size_t bytes;
    int after[FAKE_ENDS], after_count; // nodes
    int depth;                         // of those that it comes after, in a row
    struct meeting *meeting;           // instead of what it runs
    bool has_run;
};

struct CUgraph_st {
    struct node *nodes;
    int *order; // to run them in; NULL before that is known
    int count;
    int uses; // of a body: by nodes that have it
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
    CUcontext context;
    CUstream stream; // while it runs
    int at;          // nodes that have run
};

// A node of several graphs, which runs when all have come to it.
#define MEETING_MOST 64
struct meeting {
    int count, arrived;
    CUgraphExec waiting[MEETING_MOST];
    const bool *is_aborted;
    void (*run)(void *);
    void *argument;
    // Of fake_come.
    struct meeting *next; // of those that some have not come to yet
    const void *key;
    int come;
    bool is_captured;
    CUstream streams[MEETING_MOST]; // NULL: it has not come
    void *arguments[MEETING_MOST];
    void (*phase)(void *argument, int phase);
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

static atomic_int graphs, graph_launches, last_count, last_edges, last_depth;
static struct condition conditions[CONDITIONS_MOST];
static CUgraphConditionalHandle condition_count;
int fake_cuda_graphs(void) { return graphs; }
int fake_cuda_graph_launches(void) { return graph_launches; }
int fake_cuda_graph_nodes(void) { return last_count; }
int fake_cuda_graph_edges(void) { return last_edges; }
int fake_cuda_graph_depth(void) { return last_depth; }

static struct conditional *conditional_of(const struct node *n);

static void add_node(CUgraph g, const struct node *from)
{
    if (g->count == NODES_MOST)
        abort();
    struct node *n = &g->nodes[g->count++];
    *n = *from;
    n->argument = fake_untracked(malloc(n->bytes));
    if (n->bytes)
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

static bool is_ready(const struct CUgraph_st *g, const struct node *n)
{
    bool is_ready = !n->has_run;
    for (int i = 0; i < n->after_count && is_ready; i++)
        is_ready = g->nodes[n->after[i]].has_run;
    return is_ready;
}

// Of those that are ready the last one; none before `first` is.
static int find_ready(const struct CUgraph_st *g, int first)
{
    int last = first + LOOKED_AT < g->count ? first + LOOKED_AT : g->count;
    while (last-- > first)
        if (is_ready(g, &g->nodes[last]))
            return last;
    abort();
}

static void find_order(struct CUgraph_st *g)
{
    int first = 0;
    g->order = fake_untracked(calloc((size_t)g->count + 1, sizeof *g->order));
    for (int i = 0; i < g->count; i++) {
        int n = find_ready(g, first);
        g->nodes[n].has_run = true;
        g->order[i] = n;
        while (first < g->count && g->nodes[first].has_run)
            first++;
    }
}

static void run_nodes(struct CUgraph_st *g)
{
    if (!g->order)
        find_order(g);
    for (int i = 0; i < g->count && !fake_context()->is_broken; i++)
        g->nodes[g->order[i]].run(g->nodes[g->order[i]].argument);
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
    free(g->order);
    free(g->nodes);
}

void fake_set_conditional(CUgraphConditionalHandle handle, unsigned value)
{
    if (handle == 0 || handle > condition_count)
        abort();
    conditions[handle] = (struct condition){value, true};
}

static CUgraphNode node_at(CUgraph g, int i) { return (CUgraphNode)(void *)&g->nodes[i]; }

// A node of the graph, or -1.
static int number_of(CUgraph g, CUgraphNode n)
{
    const struct node *at = (const struct node *)(const void *)n;
    return at >= g->nodes && at < g->nodes + g->count ? (int)(at - g->nodes) : -1;
}

static bool are_nodes(CUgraph g, const CUgraphNode *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (number_of(g, nodes[i]) < 0)
            return false;
    return count <= FAKE_ENDS;
}

// The last node of the graph, which waits for the others.
static void add_after(CUgraph g, const struct node *from, const CUgraphNode *after,
                      size_t count)
{
    add_node(g, from);
    struct node *n = &g->nodes[g->count - 1];
    n->depth = 1;
    for (size_t i = 0; i < count; i++) {
        int k = number_of(g, after[i]);
        n->after[n->after_count++] = k;
        n->depth = g->nodes[k].depth >= n->depth ? g->nodes[k].depth + 1 : n->depth;
    }
}

int fake_cuda_submitted(CUstream stream) { return stream->submitted; }

void fake_submit(CUstream stream, void (*run)(void *), void *argument, size_t bytes)
{
    stream->submitted++;
    if (!stream->capture && fake_is_waiting(stream))
        abort(); // for what comes later, or never
    if (!stream->capture) {
        run(argument);
        return;
    }
    add_after(stream->capture, &(struct node){.run = run, .argument = argument, .bytes = bytes},
              stream->ends, stream->end_count);
    stream->ends[0] = node_at(stream->capture, stream->capture->count - 1);
    stream->end_count = 1;
}

bool fake_is_waiting(CUstream stream) { return stream->is_aborted && !*stream->is_aborted; }

void fake_meet(int n, CUstream *streams, void (*run)(void *), void *argument,
               const bool *is_aborted)
{
    int captured = 0;
    for (int i = 0; i < n; i++)
        captured += streams[i]->capture != NULL;
    if (!captured) {
        run(argument);
        free(argument);
        return;
    }
    if (captured < n || n > MEETING_MOST)
        abort(); // some would wait for ever
    struct meeting *m = fake_untracked(calloc(1, sizeof *m));
    m->count = n;
    m->run = run;
    m->argument = argument;
    m->is_aborted = is_aborted;
    for (int i = 0; i < n; i++) {
        fake_submit(streams[i], run, argument, 0);
        streams[i]->capture->nodes[streams[i]->capture->count - 1].meeting = m;
    }
}

static void run_phases(void *argument)
{
    const struct meeting *m = argument;
    for (int phase = 0; phase < 2; phase++)
        for (int i = 0; i < m->count; i++) {
            cuCtxPushCurrent_v2(m->streams[i]->context);
            m->phase(m->arguments[i], phase);
            cuCtxPopCurrent_v2(&(CUcontext){NULL});
        }
}

static struct meeting **find_open(const void *key, int rank, bool is_captured)
{
    static struct meeting *open;
    struct meeting **at = &open;
    while (*at &&
           ((*at)->key != key || (*at)->is_captured != is_captured || (*at)->streams[rank]))
        at = &(*at)->next;
    return at;
}

void fake_come(const void *key, int n, int rank, CUstream stream,
               void (*run)(void *argument, int phase), const void *argument, size_t bytes)
{
    static const bool never;
    struct meeting **at = find_open(key, rank, stream->capture != NULL), *m = *at;
    if (!m) {
        m = *at = fake_untracked(calloc(1, sizeof *m));
        *m = (struct meeting){.count = n,
                              .key = key,
                              .is_captured = stream->capture != NULL,
                              .is_aborted = &never,
                              .run = run_phases,
                              .argument = m,
                              .phase = run};
    }
    m->streams[rank] = stream;
    m->arguments[rank] = fake_untracked(malloc(bytes));
    memcpy(m->arguments[rank], argument, bytes);
    if (m->is_captured) {
        fake_submit(stream, run_phases, m, 0);
        stream->capture->nodes[stream->capture->count - 1].meeting = m;
    } else {
        stream->is_aborted = m->is_aborted;
    }
    if (++m->come < n)
        return;
    *at = m->next;
    if (m->is_captured)
        return;
    run_phases(m);
    for (int i = 0; i < n; i++) {
        m->streams[i]->is_aborted = NULL;
        free(m->arguments[i]);
    }
    free(m);
}

// Runs the graph, up to its end or to where others have not come yet; those go on with it.
static void go_on(CUgraphExec exec)
{
    exec->stream->is_aborted = NULL;
    for (; exec->at < exec->graph.count && !exec->context->is_broken; exec->at++) {
        struct node *n = &exec->graph.nodes[exec->graph.order[exec->at]];
        struct meeting *m = n->meeting;
        if (!m) {
            n->run(n->argument);
            continue;
        }
        m->waiting[m->arrived++] = exec;
        if (m->arrived < m->count) {
            exec->stream->is_aborted = m->is_aborted;
            return;
        }
        m->run(m->argument);
        m->arrived = 0;
        for (int i = 0; i < m->count - 1; i++) {
            m->waiting[i]->at++;
            cuCtxPushCurrent_v2(m->waiting[i]->context);
            go_on(m->waiting[i]);
            cuCtxPopCurrent_v2(&(CUcontext){NULL});
        }
    }
}

// Captures that the thread has open.
static _Thread_local int capturing;

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    if (fake_number("FAKE_CUDA_NO_CAPTURE", 0) || stream->capture ||
        mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return 801;
    stream->capture = create_graph();
    stream->end_count = 0;
    capturing++;
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
    stream->end_count = 0;
    capturing++;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                   cuuint64_t *id, CUgraph *graph, const CUgraphNode **end,
                                   const CUgraphEdgeData **edges, size_t *count)
{
    *status = stream->capture != NULL;
    *id = 1;
    *graph = stream->capture;
    *end = stream->ends;
    *count = stream->end_count;
    if (edges)
        *edges = NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *after,
                                              const CUgraphEdgeData *edges, size_t count,
                                              unsigned flags)
{
    if (fake_number("FAKE_CUDA_NO_EDGES", 0) || !stream->capture || edges ||
        flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES ||
        !are_nodes(stream->capture, after, count))
        return 1;
    memcpy(stream->ends, after, count * sizeof *after);
    stream->end_count = count;
    return CUDA_SUCCESS;
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
        p->conditional.ctx != fake_context() || !are_nodes(graph, after, count))
        return 1;
    struct conditional c = {p->conditional.handle, p->conditional.type, create_graph()};
    add_after(graph, &(struct node){.run = run_conditional, .argument = &c, .bytes = sizeof c},
              after, count);
    // The array is as old as the node.
    p->conditional.phGraph_out =
        &((struct conditional *)graph->nodes[graph->count - 1].argument)->body;
    *node = node_at(graph, graph->count - 1);
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream->capture;
    capturing -= *graph != NULL;
    stream->capture = NULL;
    return *graph ? CUDA_SUCCESS : 801;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    if (capturing)
        return 901; // which ends the captures of the thread on a GPU
    *exec = fake_untracked(calloc(1, sizeof **exec));
    (*exec)->context = fake_context();
    (*exec)->graph.nodes =
        fake_untracked(calloc((size_t)graph->count + 1, sizeof(struct node)));
    last_depth = last_edges = 0;
    last_count = graph->count;
    for (int i = 0; i < graph->count; i++) {
        add_node(&(*exec)->graph, &graph->nodes[i]);
        last_edges += graph->nodes[i].after_count;
        last_depth = graph->nodes[i].depth > last_depth ? graph->nodes[i].depth : last_depth;
    }
    graphs++;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (exec->context != fake_context() || stream->context != fake_context())
        return 400;
    graph_launches++;
    if (fake_is_waiting(stream))
        abort(); // what was handed over before has not ended
    if (!exec->graph.order)
        find_order(&exec->graph);
    exec->stream = stream;
    exec->at = 0;
    go_on(exec);
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
