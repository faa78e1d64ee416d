// SPDX-License-Identifier: Apache-2.0
// Ops of class LIBRARY: which routine of the run time computes a node, and what it is told.
//
// The step has the operands of the node and then its results, all dense and row-major.  The params of
// every routine begin with the dtype of the first operand and how often what it does is repeated, over
// the leading axes; the rest is the routine's own, as src/runtime/host/routines.def lists it.
#include "schedule/library/library.h"

#include "ir/collective.h"
#include "ir/conv.h"
#include "ir/linalg.h"
#include "passes/analysis/interval.h"
#include "schedule/control/control.h"

enum { NO_BATCH = -1, ALL_SIZES = -2 };

struct routine {
    struct arena *arena;
    const char *name;
    bool
        in_place; // the first result may have the memory of the first operand when it is as large
    VEC(int64_t) params;
};

static void add_param(struct routine *r, int64_t x) { vec_push(r->arena, &r->params, x); }

// What all routines are told first.
static void add_batch(struct routine *r, const struct ir_graph *g, const struct ir_node *n)
{
    ir_id x = ir_operand(g, n, 0);
    int64_t batch = 1;
    for (int axis = 0; axis < ir_rank_of(g, x) - node_routine_axes(n); axis++)
        batch *= ir_dims_of(g, x)[axis];
    add_param(r, ir_dtype_of(g, x));
    add_param(r, batch);
}

// ..., kind, lengths
static void tell_fft(struct routine *r, const struct ir_graph *g, const struct ir_node *n)
{
    int n_axes;
    const int64_t *sizes = ir_attr_ints(n->attrs, IR_KEY_sizes, &n_axes);
    enum fft_kind kind = (enum fft_kind)ir_attr_int(n->attrs, IR_KEY_mode);
    r->name = "fft";
    r->in_place = kind == FFT_FFT || kind == FFT_IFFT;
    add_batch(r, g, n);
    add_param(r, kind);
    for (int i = 0; i < n_axes; i++)
        add_param(r, sizes[i]);
}

// ..., rows, columns, mode
static void tell_matrices(struct routine *r, const struct ir_graph *g, const struct ir_node *n)
{
    ir_id x = ir_operand(g, n, 0);
    r->name = ir_op_get((enum ir_op)n->op)->name;
    add_batch(r, g, n);
    add_param(r, ir_dims_of(g, x)[ir_rank_of(g, x) - 2]);
    add_param(r, ir_dims_of(g, x)[ir_rank_of(g, x) - 1]);
    add_param(r, ir_attr_int_or(n->attrs, IR_KEY_mode, 0));
}

// What base/conv.h writes; only what passes/expand/library_conv.c leaves comes here.
static void tell_conv(struct routine *r, const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_conv of = ir_conv_of(n->attrs);
    struct conv_call c = {.dtype = ir_dtype_of(g, n->out),
                          .part = of.part,
                          .layout = of.layout,
                          .precision = of.precision,
                          .n = of.n,
                          .groups = of.groups};
    size_t size = sizeof(int64_t) * (size_t)of.n;
    memcpy(c.lists[CONV_STRIDES], of.strides, size);
    memcpy(c.lists[CONV_PADDING], of.low, size);
    memcpy(c.lists[CONV_DILATION], of.rhs_dilation, size);
    size += 2 * sizeof(int64_t);
    memcpy(c.dims[of.part], ir_dims_of(g, n->out), size);
    for (uint32_t i = 0; i < n->n_in; i++)
        memcpy(c.dims[ir_conv_operand(&of, (int)i)], ir_dims_of(g, ir_operand(g, n, i)), size);
    int64_t params[CONV_PARAMS_MOST];
    uint32_t count = conv_call_write(&c, params);
    r->name = "conv";
    for (uint32_t i = 0; i < count; i++)
        add_param(r, params[i]);
}

// How many bits say which of its integers a value is, 0 where it may be negative or any.
static int bits_of(const struct ir_graph *g, ir_id v)
{
    struct interval x = pass_interval_of(g, v);
    int bits = 1;
    while (bits < 62 && x.high >> bits)
        bits++;
    return dtype_is_integer(ir_dtype_of(g, v)) && x.low >= 0 &&
                   bits < 8 * dtype_get(ir_dtype_of(g, v))->bytes
               ? bits
               : 0;
}

// ..., length, keys, dtypes of all operands; where that is known of some key, the bits of each, 0: all of the type
static void tell_sort(struct routine *r, const struct ir_graph *g, const struct ir_node *n)
{
    ir_id x = ir_operand(g, n, 0);
    r->name = "sort";
    add_batch(r, g, n);
    add_param(r, ir_dims_of(g, x)[ir_rank_of(g, x) - 1]);
    add_param(r, ir_attr_int(n->attrs, IR_KEY_num_keys));
    for (uint32_t i = 0; i < n->n_in; i++)
        add_param(r, ir_dtype_of(g, ir_operand(g, n, i)));
    int64_t keys = ir_attr_int(n->attrs, IR_KEY_num_keys);
    bool is_known = false;
    for (uint32_t i = 0; i < keys; i++)
        is_known |= bits_of(g, ir_operand(g, n, i)) > 0;
    for (uint32_t i = 0; is_known && i < keys; i++)
        add_param(r, bits_of(g, ir_operand(g, n, i)));
}

// ..., length, k, dtype of indices
static void tell_top_k(struct routine *r, const struct ir_graph *g, const struct ir_node *n)
{
    ir_id x = ir_operand(g, n, 0);
    r->name = "top_k";
    add_batch(r, g, n);
    add_param(r, ir_dims_of(g, x)[ir_rank_of(g, x) - 1]);
    add_param(r, ir_attr_int(n->attrs, IR_KEY_length));
    add_param(r, ir_attr_int(n->attrs, IR_KEY_dtype));
}

// The extent of an axis of operand i, counted from the end.
static int64_t extent(const struct ir_graph *g, const struct ir_node *n, uint32_t i,
                      int from_end)
{
    ir_id x = ir_operand(g, n, i);
    return ir_dims_of(g, x)[ir_rank_of(g, x) - from_end];
}

// ..., rows and columns of the right sides, left, lower, transposed, conjugated, unit diagonal
static void tell_triangular_solve(struct routine *r, const struct ir_graph *g,
                                  const struct ir_node *n)
{
    struct ir_triangular t = ir_triangular_of(n->attrs);
    r->name = "triangular_solve";
    add_batch(r, g, n);
    add_param(r, extent(g, n, 1, 2));
    add_param(r, extent(g, n, 1, 1));
    add_param(r, t.left);
    add_param(r, t.lower);
    add_param(r, t.transposed);
    add_param(r, t.conjugated);
    add_param(r, t.unit_diagonal);
}

// By op of the class; pass_expand leaves none of those that are told nothing.
static const struct {
    void (*tell)(struct routine *, const struct ir_graph *, const struct ir_node *);
    bool gains_lanes; // a GPU does several in less time than one after the other
} routines[IR_OP_COUNT] = {
    [IR_conv] = {tell_conv},          [IR_fft] = {tell_fft, true},
    [IR_qr] = {tell_matrices, true},  [IR_eigh] = {tell_matrices, true},
    [IR_svd] = {tell_matrices, true}, [IR_eig] = {tell_matrices},
    [IR_schur] = {tell_matrices},     [IR_cholesky] = {tell_matrices, true},
    [IR_lu] = {tell_matrices, true},  [IR_triangular_solve] = {tell_triangular_solve, true},
    [IR_sort] = {tell_sort},          [IR_top_k] = {tell_top_k},
};

bool node_routine_gains_lanes(const struct ir_node *n) { return routines[n->op].gains_lanes; }

static bool is_empty(const struct schedule *s, const struct ir_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (value_count(s, n->out + i))
            return false;
    return true;
}

// What the devices of the program's mesh do together.
static void add_exchange(struct schedule *s, const struct ir_node *n)
{
    struct arena *arena = s->program->arena;
    uint32_t *memories = arena_array(arena, uint32_t, 2);
    struct strbuf text = strbuf_make(arena);
    struct collective c;
    int n_params;
    const int64_t *params = ir_attr_ints(n->attrs, IR_KEY_exchange, &n_params);
    ir_exchange_read(n->attrs, &c);
    strbuf_printf(&text, "%s%s%s of %lld bytes over %lld devices", collective_name(c.kind),
                  collective_reduces(&c) ? " " : "",
                  collective_reduces(&c) ? collective_combiner_name(c.combiner) : "",
                  (long long)value_count(s, ir_operand(s->g, n, 0)) * dtype_get(c.dtype)->bytes,
                  (long long)c.size);
    memories[0] = schedule_memory(s, n->out);
    memories[1] = schedule_memory(s, ir_operand(s->g, n, 0));
    schedule_step(s, (struct nest_step){
                         .kind = NEST_STEP_COLLECTIVE,
                         .n_memories = 2,
                         .memories = memories,
                         .text = text.text,
                         .n_params = (uint32_t)n_params,
                         .params = arena_copy(arena, params, sizeof *params * (size_t)n_params),
                         .place = schedule_place(s, n),
                         .reason = schedule_reason(s, "devices exchange it", n)});
}

void schedule_library(struct schedule *s, uint32_t group)
{
    const struct ir_node *n = &s->g->nodes.at[s->groups.at[group].node];
    struct arena *arena = s->program->arena;
    struct routine r = {.arena = arena};
    if (is_empty(s, n))
        return;
    if (n->op == IR_exchange) {
        add_exchange(s, n);
        return;
    }
    if (!routines[n->op].tell) {
        s->refused = n;
        return;
    }
    routines[n->op].tell(&r, s->g, n);
    uint32_t *memories = arena_array(arena, uint32_t, n->n_in + n->n_out);
    for (uint32_t i = 0; i < n->n_in; i++)
        memories[i] = schedule_memory(s, ir_operand(s->g, n, i));
    for (uint32_t i = 0; i < n->n_out; i++)
        memories[n->n_in + i] = schedule_memory(s, n->out + i);
    schedule_step(s,
                  (struct nest_step){.kind = NEST_STEP_LIBRARY,
                                     .n_memories = n->n_in + n->n_out,
                                     .memories = memories,
                                     .text = r.name,
                                     .n_reads = n->n_in,
                                     .in_place = r.in_place,
                                     .n_params = r.params.count,
                                     .params = r.params.at,
                                     .place = schedule_place(s, n),
                                     .reason = schedule_reason(s, "a routine computes it", n)});
}
