// SPDX-License-Identifier: Apache-2.0
#include "ir/build.h"

#include "ir/collective.h"
#include "ir/rewrite.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct ir_builder ir_builder_make(struct ir_module *m, const char *name, unsigned flags)
{
    struct ir_graph *g = arena_new(m->arena, struct ir_graph);
    g->module = m;
    g->name = name;
    return (struct ir_builder){.graph = g, .module = m, .flags = flags};
}

ir_id ir_fail(struct ir_builder *b, jot_status status, const char *format, ...)
{
    if (b->status == JOT_OK) {
        char text[1024];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        b->status = status;
        b->message = arena_text(b->module->arena, text);
    }
    return IR_NONE;
}

static ir_id append(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
                    const struct ir_attrs *attrs, int n_out, const struct ir_type *types)
{
    struct ir_graph *g = b->graph;
    struct arena *arena = b->module->arena;
    struct ir_node n = {.op = (uint16_t)op,
                        .n_in = (uint32_t)n_in,
                        .n_out = (uint16_t)n_out,
                        .in = g->operands.count,
                        .out = g->values.count,
                        .where = b->where,
                        .attrs = attrs};
    for (int i = 0; i < n_in; i++)
        vec_push(arena, &g->operands, in[i]);
    for (int i = 0; i < n_out; i++)
        vec_push(arena, &g->values,
                 (struct ir_value){.type = types[i], .node = g->nodes.count});
    vec_push(arena, &g->nodes, n);
    b->module->nodes_made++;
    return n.out;
}

ir_id ir_param(struct ir_builder *b, struct ir_type type)
{
    struct ir_graph *g = b->graph;
    if (g->nodes.count != g->n_params)
        return ir_fail(b, JOT_ERR_INTERNAL, "a parameter after other nodes");
    g->n_params++;
    return append(b, IR_param, 0, NULL, NULL, 1, &type);
}

void ir_output(struct ir_builder *b, ir_id v)
{
    if (v == IR_NONE)
        ir_fail(b, JOT_ERR_INTERNAL, "an output without a value");
    else
        vec_push(b->module->arena, &b->graph->outputs, v);
}

struct ir_graph *ir_finish(struct ir_builder *b)
{
    return b->status == JOT_OK ? b->graph : NULL;
}

uint32_t ir_finish_function(struct ir_builder *b)
{
    struct ir_graph *g = ir_finish(b);
    return g ? ir_function_add(b->module, ir_canonical(g)) : IR_NONE;
}

// Effects, recomputation and bodies keep their identity; so does a variable, which is a name.
static bool is_shareable(enum ir_op op)
{
    return !ir_has_bodies(op) && ir_op_class(op) != IR_CLASS_EFFECT && op != IR_param &&
           op != IR_variable && op != IR_barrier;
}

static uint64_t hash_node(enum ir_op op, int n_in, const ir_id *in,
                          const struct ir_attrs *attrs)
{
    uint64_t h = hash_combine(op, attrs ? attrs->id + UINT64_C(1) : 0);
    return hash_bytes(h, in, sizeof *in * (size_t)n_in);
}

static ir_id find_equal(const struct ir_builder *b, uint64_t hash, enum ir_op op, int n_in,
                        const ir_id *in, const struct ir_attrs *attrs)
{
    const struct ir_graph *g = b->graph;
    for (struct hash_probe p = hash_probe(&b->nodes, hash); hash_next(&b->nodes, &p);) {
        const struct ir_node *n = &g->nodes.at[p.id];
        if (n->op == op && n->attrs == attrs && (int)n->n_in == n_in &&
            (n_in == 0 || !memcmp(ir_operands(g, n), in, sizeof *in * (size_t)n_in)))
            return n->out;
    }
    return IR_NONE;
}

static ir_id note_known(struct ir_builder *b, ir_id v, const void *data)
{
    if (!data || v == IR_NONE)
        return v;
    while (b->known.count <= v)
        vec_push(b->module->arena, &b->known, NULL);
    b->known.at[v] = data;
    return v;
}

ir_id ir_build(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
               const struct ir_attrs *attrs)
{
    if (b->status != JOT_OK)
        return IR_NONE;
    for (int i = 0; i < n_in; i++)
        if (in[i] == IR_NONE)
            return ir_fail(b, JOT_ERR_INTERNAL, "%s: operand %d has no value",
                           ir_op_get(op)->name, i);
    if (b->module->axes.count) {
        if (op == IR_pvary && n_in == 1 && ir_type_in(b, in[0]).varies & ir_over_set(attrs))
            return ir_pvary(b, in[0], ir_over_set(attrs));
        in = ir_vary_operands(b, op, n_in, in, &attrs);
        if (b->status != JOT_OK)
            return IR_NONE;
    }
    struct ir_type one;
    struct ir_infer call = {
        .b = b, .op = op, .n_in = n_in, .in = in, .attrs = attrs, .n_out = 1, .types = &one};
    if (!ir_infer(&call))
        return IR_NONE;
    struct ir_rewrite rewrite = {
        .b = b, .op = op, .n_in = n_in, .in = in, .attrs = attrs, .type = call.types[0]};
    ir_id simpler = b->flags && call.n_out == 1 ? ir_rewrite(&rewrite) : IR_NONE;
    if (simpler != IR_NONE || b->status != JOT_OK)
        return ir_pvary(b, simpler, call.types[0].varies);
    if (!(b->flags & IR_BUILD_CSE) || !is_shareable(op))
        return note_known(b, append(b, op, n_in, in, attrs, call.n_out, call.types),
                          rewrite.known);

    uint64_t hash = hash_node(op, n_in, in, attrs);
    ir_id known = find_equal(b, hash, op, n_in, in, attrs);
    if (known != IR_NONE) {
        struct ir_node *n = &b->graph->nodes.at[b->graph->values.at[known].node];
        n->where = ir_where_merge(b->module, n->where, b->where);
        return known;
    }
    ir_id made = append(b, op, n_in, in, attrs, call.n_out, call.types);
    hash_insert(b->module->arena, &b->nodes, hash, b->graph->nodes.count - 1);
    return note_known(b, made, rewrite.known);
}

ir_id ir_rebuild(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                 const ir_id *in)
{
    (void)g;
    b->where = n->where;
    return ir_build(b, n->op, (int)n->n_in, in, n->attrs);
}

ir_id ir_map1(struct ir_builder *b, enum ir_op op, ir_id x)
{
    return ir_build(b, op, 1, &x, NULL);
}

ir_id ir_map2(struct ir_builder *b, enum ir_op op, ir_id x, ir_id y)
{
    return ir_build(b, op, 2, (ir_id[]){x, y}, NULL);
}

ir_id ir_map3(struct ir_builder *b, enum ir_op op, ir_id x, ir_id y, ir_id z)
{
    return ir_build(b, op, 3, (ir_id[]){x, y, z}, NULL);
}

ir_id ir_const(struct ir_builder *b, struct ir_type type, const void *data)
{
    struct ir_module *m = b->module;
    size_t bytes = (size_t)ir_count(m, type) * jot_dtype_size(ir_dtype(type));
    return ir_build(b, IR_const, 0, NULL,
                    ir_attrs(m, IR_INT(dtype, type.dtype),
                             IR_INTS(dims, type.rank, ir_dims(m, type)),
                             IR_BYTES(data, bytes, data)));
}

// The bytes of one element, rounded from the number; at most 16.
static void put_element(jot_dtype dtype, double x, int64_t i, bool is_int, unsigned char *data)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32[2];
        double f64[2];
    } u;
    memset(&u, 0, sizeof u);
    double f = is_int ? (double)i : x;
    uint64_t n = is_int ? (uint64_t)i : x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    switch (dtype) {
    case JOT_BOOL:
        u.u8 = is_int ? i != 0 : x != 0;
        break;
    case JOT_I8:
    case JOT_U8:
        u.u8 = (uint8_t)n;
        break;
    case JOT_I16:
    case JOT_U16:
        u.u16 = (uint16_t)n;
        break;
    case JOT_I32:
    case JOT_U32:
        u.u32 = (uint32_t)n;
        break;
    case JOT_I64:
    case JOT_U64:
        u.u64 = n;
        break;
    case JOT_F16:
        u.u16 = dtype_f16_from_f64(f);
        break;
    case JOT_BF16:
        u.u16 = dtype_bf16_from_f64(f);
        break;
    case JOT_F32:
    case JOT_C64:
        u.f32[0] = is_int ? (float)i : (float)x;
        break;
    case JOT_F64:
    case JOT_C128:
        u.f64[0] = f;
        break;
    }
    memcpy(data, &u, jot_dtype_size(dtype));
}

static ir_id scalar(struct ir_builder *b, jot_dtype dtype, double x, int64_t i, bool is_int)
{
    unsigned char data[16];
    put_element(dtype, x, i, is_int, data);
    return ir_const(b, ir_type_make(b->module, dtype, 0, NULL), data);
}

ir_id ir_scalar(struct ir_builder *b, jot_dtype dtype, double x)
{
    return scalar(b, dtype, x, 0, false);
}

ir_id ir_scalar_int(struct ir_builder *b, jot_dtype dtype, int64_t x)
{
    return scalar(b, dtype, 0, x, true);
}

ir_id ir_scalar_like(struct ir_builder *b, ir_id v, double x)
{
    return v == IR_NONE ? IR_NONE : ir_scalar(b, ir_dtype(ir_type_in(b, v)), x);
}

ir_id ir_full(struct ir_builder *b, struct ir_type type, double x)
{
    ir_id v = ir_scalar(b, ir_dtype(type), x);
    if (type.rank)
        v = ir_broadcast_in_dim(b, v, type.rank, ir_dims(b->module, type), NULL);
    return ir_pvary(b, v, type.varies);
}

ir_id ir_iota(struct ir_builder *b, struct ir_type type, int axis)
{
    return ir_build(b, IR_iota, 0, NULL,
                    ir_attrs(b->module, IR_INT(dtype, type.dtype),
                             IR_INTS(dims, type.rank, ir_dims(b->module, type)),
                             IR_INT(axis, axis)));
}

ir_id ir_convert(struct ir_builder *b, ir_id x, jot_dtype dtype)
{
    if (x != IR_NONE && ir_dtype(ir_type_in(b, x)) == dtype)
        return x;
    return ir_build(b, IR_convert, 1, &x, ir_attrs(b->module, IR_INT(dtype, dtype)));
}

ir_id ir_bitcast(struct ir_builder *b, ir_id x, jot_dtype dtype)
{
    return ir_build(b, IR_bitcast, 1, &x, ir_attrs(b->module, IR_INT(dtype, dtype)));
}

ir_id ir_integer_pow(struct ir_builder *b, ir_id x, int64_t exponent)
{
    return ir_build(b, IR_integer_pow, 1, &x, ir_attrs(b->module, IR_INT(exponent, exponent)));
}

ir_id ir_broadcast_in_dim(struct ir_builder *b, ir_id x, int rank, const int64_t *dims,
                          const int64_t *axes)
{
    if (x == IR_NONE)
        return IR_NONE;
    return ir_build(b, IR_broadcast_in_dim, 1, &x,
                    ir_attrs(b->module, IR_INTS(dims, rank, dims),
                             IR_INTS(axes, ir_type_in(b, x).rank, axes)));
}

ir_id ir_reshape(struct ir_builder *b, ir_id x, int rank, const int64_t *dims)
{
    return ir_build(b, IR_reshape, 1, &x, ir_attrs(b->module, IR_INTS(dims, rank, dims)));
}

ir_id ir_transpose(struct ir_builder *b, ir_id x, const int64_t *axes)
{
    if (x == IR_NONE)
        return IR_NONE;
    return ir_build(b, IR_transpose, 1, &x,
                    ir_attrs(b->module, IR_INTS(axes, ir_type_in(b, x).rank, axes)));
}

ir_id ir_rev(struct ir_builder *b, ir_id x, int n, const int64_t *axes)
{
    return ir_build(b, IR_rev, 1, &x, ir_attrs(b->module, IR_INTS(axes, n, axes)));
}

ir_id ir_slice(struct ir_builder *b, ir_id x, const int64_t *starts, const int64_t *limits,
               const int64_t *strides)
{
    if (x == IR_NONE)
        return IR_NONE;
    int rank = ir_type_in(b, x).rank;
    int64_t ones[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        ones[i] = 1;
    return ir_build(b, IR_slice, 1, &x,
                    ir_attrs(b->module, IR_INTS(starts, rank, starts),
                             IR_INTS(limits, rank, limits),
                             IR_INTS(strides, rank, strides ? strides : ones)));
}

ir_id ir_pad(struct ir_builder *b, ir_id x, ir_id value, const int64_t *low,
             const int64_t *high, const int64_t *interior)
{
    if (x == IR_NONE || value == IR_NONE)
        return IR_NONE;
    int rank = ir_type_in(b, x).rank;
    static const int64_t zeros[IR_MAX_RANK];
    return ir_build(b, IR_pad, 2, (ir_id[]){x, value},
                    ir_attrs(b->module, IR_INTS(low, rank, low), IR_INTS(high, rank, high),
                             IR_INTS(interior, rank, interior ? interior : zeros)));
}

ir_id ir_shear(struct ir_builder *b, ir_id x, int axis, int along, int64_t offset, int64_t step,
               int64_t length)
{
    return ir_build(b, IR_shear, 1, &x,
                    ir_attrs(b->module, IR_INT(axis, axis), IR_INT(along, along),
                             IR_INT(offset, offset), IR_INT(step, step),
                             IR_INT(length, length)));
}

ir_id ir_concatenate(struct ir_builder *b, int n, const ir_id *x, int axis)
{
    return ir_build(b, IR_concatenate, n, x, ir_attrs(b->module, IR_INT(axis, axis)));
}

ir_id ir_reduce(struct ir_builder *b, enum ir_op op, ir_id x, int n, const int64_t *axes)
{
    if (n == 0)
        return x;
    int64_t sorted[IR_MAX_RANK];
    if (n > IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_ARGUMENT, "%d axes: at most %d", n, IR_MAX_RANK);
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > axes[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = axes[i];
    }
    return ir_build(b, op, 1, &x, ir_attrs(b->module, IR_INTS(axes, n, sorted)));
}

ir_id ir_reduce_first(struct ir_builder *b, enum ir_op op, ir_id x, int n, const int64_t *axes)
{
    return n ? ir_build(b, op, 1, &x,
                        ir_attrs(b->module, IR_INTS(axes, n, axes), IR_INT(first, 1)))
             : x;
}

ir_id ir_cumulative(struct ir_builder *b, enum ir_op op, ir_id x, int axis, bool reverse)
{
    return ir_build(b, op, 1, &x,
                    ir_attrs(b->module, IR_INT(axis, axis), IR_INT(reverse, reverse)));
}

ir_id ir_arg(struct ir_builder *b, enum ir_op op, ir_id x, int axis, jot_dtype dtype)
{
    return ir_build(b, op, 1, &x,
                    ir_attrs(b->module, IR_INT(axis, axis), IR_INT(dtype, dtype)));
}

ir_id ir_fft(struct ir_builder *b, enum fft_kind kind, ir_id x, int n, const int64_t *sizes)
{
    return ir_build(b, IR_fft, 1, &x,
                    ir_attrs(b->module, IR_INT(mode, kind), IR_INTS(sizes, n, sizes)));
}

ir_id ir_decompose(struct ir_builder *b, enum ir_op op, ir_id x, int mode)
{
    return ir_build(b, op, 1, &x, mode ? ir_attrs(b->module, IR_INT(mode, mode)) : NULL);
}

ir_id ir_svd_first(struct ir_builder *b, ir_id x, int64_t k)
{
    return ir_build(b, IR_svd, 1, &x, ir_attrs(b->module, IR_INT(mode, 3), IR_INT(length, k)));
}

ir_id ir_sort(struct ir_builder *b, int n, const ir_id *x, int n_keys)
{
    return ir_build(b, IR_sort, n, x, ir_attrs(b->module, IR_INT(num_keys, n_keys)));
}

ir_id ir_top_k(struct ir_builder *b, ir_id x, int64_t k, jot_dtype dtype)
{
    return ir_build(b, IR_top_k, 1, &x,
                    ir_attrs(b->module, IR_INT(length, k), IR_INT(dtype, dtype)));
}

ir_id ir_dot_general(struct ir_builder *b, ir_id x, ir_id y, const struct ir_dot *d)
{
    return ir_build(b, IR_dot_general, 2, (ir_id[]){x, y},
                    ir_attrs(b->module, IR_INTS(lhs_contract, d->n_contract, d->lhs_contract),
                             IR_INTS(rhs_contract, d->n_contract, d->rhs_contract),
                             IR_INTS(lhs_batch, d->n_batch, d->lhs_batch),
                             IR_INTS(rhs_batch, d->n_batch, d->rhs_batch),
                             IR_INT(precision, d->precision)));
}

ir_id ir_call(struct ir_builder *b, enum ir_op op, int n_functions, const uint32_t *functions,
              int n_in, const ir_id *in)
{
    int64_t numbers[8];
    for (int i = 0; i < n_functions; i++)
        numbers[i] = functions[i];
    return ir_build(b, op, n_in, in,
                    ir_attrs(b->module, IR_INTS(functions, n_functions, numbers)));
}

ir_id ir_linear_call(struct ir_builder *b, uint32_t forward, uint32_t backward, int n_residuals,
                     int n_in, const ir_id *in)
{
    int64_t functions[] = {forward, backward};
    return ir_build(
        b, IR_linear_call, n_in, in,
        ir_attrs(b->module, IR_INTS(functions, 2, functions), IR_INT(counts, n_residuals)));
}

ir_id ir_linear_solve(struct ir_builder *b, const uint32_t functions[3], int n_residuals,
                      int n_in, const ir_id *in)
{
    int64_t numbers[] = {functions[0], functions[1], functions[2]};
    return ir_build(
        b, IR_linear_solve, n_in, in,
        ir_attrs(b->module, IR_INTS(functions, 3, numbers), IR_INT(counts, n_residuals)));
}

void ir_check(struct ir_builder *b, ir_id holds, int n_trips, const ir_id *trips,
              const char *message, const char *place)
{
    ir_id in[1 + IR_CHECK_TRIPS] = {holds};
    n_trips = n_trips < IR_CHECK_TRIPS ? n_trips : IR_CHECK_TRIPS;
    for (int i = 0; i < n_trips; i++)
        in[1 + i] = trips[i];
    ir_build(b, IR_check, 1 + n_trips, in,
             ir_attrs(b->module, IR_BYTES(message, strlen(message), message),
                      IR_BYTES(place, strlen(place), place)));
}

void ir_inline(struct ir_builder *b, const struct ir_graph *f, const ir_id *in, ir_id *out)
{
    struct arena *arena = b->module->arena;
    uint32_t where = b->where;
    ir_id *map = arena_array(arena, ir_id, f->values.count + 1);
    ir_id *operands = arena_array(arena, ir_id, f->operands.count + 1);
    for (uint32_t i = 0; i < f->n_params; i++)
        map[i] = in[i];
    for (uint32_t at = f->n_params; at < f->nodes.count; at++) {
        const struct ir_node *n = &f->nodes.at[at];
        for (uint32_t i = 0; i < n->n_in; i++)
            operands[i] = map[ir_operand(f, n, i)];
        b->where = n->where ? n->where : where;
        ir_id made = ir_build(b, n->op, (int)n->n_in, operands, n->attrs);
        for (uint32_t i = 0; i < n->n_out; i++)
            map[n->out + i] = made == IR_NONE ? IR_NONE : made + i;
    }
    b->where = where;
    for (uint32_t i = 0; i < f->outputs.count; i++)
        out[i] = map[f->outputs.at[i]];
}
