// SPDX-License-Identifier: Apache-2.0
// Operations of a program, one after the other.
#include "interop/from_graph.h"

#include "base/dtype.h"
#include "interop/mlir_defaults.h"
#include "interop/numbers.h"

#include <stdio.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- types ----

enum mlir_element hlo_element(jot_dtype d)
{
    static const enum mlir_element elements[DTYPE_COUNT] = {
        [JOT_BOOL] = MLIR_I1,  [JOT_I8] = MLIR_I8,     [JOT_I16] = MLIR_I16,
        [JOT_I32] = MLIR_I32,  [JOT_I64] = MLIR_I64,   [JOT_U8] = MLIR_UI8,
        [JOT_U16] = MLIR_UI16, [JOT_U32] = MLIR_UI32,  [JOT_U64] = MLIR_UI64,
        [JOT_F16] = MLIR_F16,  [JOT_BF16] = MLIR_BF16, [JOT_F32] = MLIR_F32,
        [JOT_F64] = MLIR_F64,  [JOT_C64] = MLIR_C64,   [JOT_C128] = MLIR_C128,
    };
    return elements[d];
}

const struct mlir_type *hlo_type(struct hlo_writer *w, jot_dtype d, int rank,
                                 const int64_t *dims)
{
    struct mlir_type *t = arena_new(w->arena, struct mlir_type);
    *t = (struct mlir_type){.kind = MLIR_TENSOR, .element = hlo_element(d), .rank = rank};
    if (rank)
        t->dims = arena_copy(w->arena, dims, sizeof *dims * (size_t)rank);
    return t;
}

const struct mlir_type *hlo_type_of(struct hlo_writer *w, struct ir_type t)
{
    return hlo_type(w, ir_dtype(t), t.rank, ir_dims(w->module, t));
}

const struct mlir_type *hlo_word_type(struct hlo_writer *w, enum mlir_element e)
{
    struct mlir_type *t = arena_new(w->arena, struct mlir_type);
    *t = (struct mlir_type){.kind = MLIR_SCALAR, .element = e};
    return t;
}

const struct mlir_type *hlo_type_with(struct hlo_writer *w, const struct mlir_type *t,
                                      jot_dtype d)
{
    return hlo_type(w, d, t->rank, t->dims);
}

// ---- attributes ----

const struct mlir_attr *hlo_attr(struct hlo_writer *w, struct mlir_attr a)
{
    return arena_copy(w->arena, &a, sizeof a);
}

void hlo_add(struct hlo_attrs *a, const char *name, const struct mlir_attr *attr)
{
    a->at[a->n++] = (struct mlir_named){name, attr};
}

void hlo_int(struct hlo_writer *w, struct hlo_attrs *a, const char *name, int64_t x)
{
    hlo_add(a, name, hlo_attr(w, (struct mlir_attr){.kind = MLIR_INT, .integer = x}));
}

void hlo_bool(struct hlo_writer *w, struct hlo_attrs *a, const char *name, bool x)
{
    hlo_add(a, name, hlo_attr(w, (struct mlir_attr){.kind = MLIR_BOOL, .integer = x}));
}

void hlo_ints(struct hlo_writer *w, struct hlo_attrs *a, const char *name, int n,
              const int64_t *x)
{
    struct mlir_attr list = {.kind = MLIR_INTS, .n = (size_t)n};
    list.numbers = n ? arena_copy(w->arena, x, sizeof *x * (size_t)n) : NULL;
    hlo_add(a, name, hlo_attr(w, list));
}

void hlo_text(struct hlo_writer *w, struct hlo_attrs *a, const char *name,
              enum mlir_attr_kind kind, const char *text)
{
    hlo_add(a, name,
            hlo_attr(w, (struct mlir_attr){.kind = kind, .text = text, .n = strlen(text)}));
}

// In the order of the table, those outside of it at the end.
static void set_attrs(struct hlo_writer *w, struct mlir_op *op, const struct hlo_attrs *attrs)
{
    struct mlir_named *list = arena_array(w->arena, struct mlir_named, attrs->n + 1);
    uint64_t taken = 0;
    for (const char *spec = op->row->attrs; *spec; spec += *spec == ' ') {
        size_t n = strcspn(spec, ":");
        for (uint32_t i = 0; i < attrs->n; i++) {
            const char *name = attrs->at[i].name;
            if (strncmp(name, spec, n) != 0 || name[n])
                continue;
            const struct mlir_default *d = mlir_default_find(op->row, name);
            if (!d || !mlir_default_is(d, attrs->at[i].attr))
                list[op->n_attrs++] = attrs->at[i];
            taken |= UINT64_C(1) << i;
        }
        spec += strcspn(spec, " ");
    }
    for (uint32_t i = 0; i < attrs->n; i++)
        if (!(taken >> i & 1))
            list[op->n_attrs++] = attrs->at[i];
    op->attrs = list;
}

// ---- operations ----

static hlo_value new_value(struct hlo_writer *w, const struct mlir_type *type)
{
    hlo_value v = arena_new(w->arena, struct mlir_value);
    *v = (struct mlir_value){.type = type, .number = w->n_values++};
    return v;
}

static const char *name_of(struct hlo_writer *w, const struct mlir_row *row)
{
    size_t n = strlen(row->dialect), m = strlen(row->name);
    char *name = arena_allocate(w->arena, n + m + 2);
    memcpy(name, row->dialect, n);
    name[n] = '.';
    memcpy(name + n + 1, row->name, m);
    return name;
}

struct mlir_op *hlo_emit(struct hlo_writer *w, enum mlir_code code, uint32_t n_in,
                         const hlo_value *in, uint32_t n_out,
                         const struct mlir_type *const *types, const struct hlo_attrs *attrs,
                         uint32_t n_regions, const struct mlir_block *regions)
{
    struct mlir_op *op = arena_new(w->arena, struct mlir_op);
    const struct mlir_row *row = &mlir_rows[code];
    *op = (struct mlir_op){.row = row, .name = name_of(w, row), .n_operands = n_in};
    hlo_value *results = arena_array(w->arena, hlo_value, n_out + 1);
    if (n_in)
        op->operands = arena_copy(w->arena, in, sizeof *in * n_in);
    for (uint32_t i = 0; i < n_out; i++)
        results[i] = new_value(w, types[i]);
    op->results = results;
    op->n_results = n_out;
    if (attrs)
        set_attrs(w, op, attrs);
    op->n_regions = n_regions;
    if (n_regions)
        op->regions = arena_copy(w->arena, regions, sizeof *regions * n_regions);
    vec_push(w->arena, &w->ops, op);
    return op;
}

hlo_value hlo_op(struct hlo_writer *w, enum mlir_code code, const struct mlir_type *type,
                 uint32_t n_in, const hlo_value *in, const struct hlo_attrs *attrs)
{
    return hlo_emit(w, code, n_in, in, 1, &type, attrs, 0, NULL)->results[0];
}

hlo_value hlo_1(struct hlo_writer *w, enum mlir_code code, hlo_value x)
{
    return hlo_op(w, code, x->type, 1, &x, NULL);
}

hlo_value hlo_2(struct hlo_writer *w, enum mlir_code code, hlo_value x, hlo_value y)
{
    return hlo_op(w, code, x->type, 2, (hlo_value[]){x, y}, NULL);
}

hlo_value hlo_select(struct hlo_writer *w, hlo_value p, hlo_value x, hlo_value y)
{
    return hlo_op(w, HLO_(select), x->type, 3, (hlo_value[]){p, x, y}, NULL);
}

hlo_value hlo_compare(struct hlo_writer *w, const char *direction, bool is_total, hlo_value x,
                      hlo_value y)
{
    struct hlo_attrs a = {0};
    jot_dtype d = hlo_dtype(x);
    hlo_text(w, &a, "comparison_direction", MLIR_ENUM, direction);
    hlo_text(w, &a, "compare_type", MLIR_ENUM,
             is_total && dtype_is_float(d) ? "TOTALORDER"
             : dtype_is_inexact(d)         ? "FLOAT"
             : dtype_is_signed(d)          ? "SIGNED"
                                           : "UNSIGNED");
    return hlo_op(w, HLO_(compare), hlo_type_with(w, x->type, JOT_BOOL), 2, (hlo_value[]){x, y},
                  &a);
}

hlo_value hlo_convert(struct hlo_writer *w, hlo_value x, jot_dtype d)
{
    return hlo_dtype(x) == d
               ? x
               : hlo_op(w, HLO_(convert), hlo_type_with(w, x->type, d), 1, &x, NULL);
}

hlo_value hlo_bitcast(struct hlo_writer *w, hlo_value x, jot_dtype d)
{
    return hlo_dtype(x) == d
               ? x
               : hlo_op(w, HLO_(bitcast_convert), hlo_type_with(w, x->type, d), 1, &x, NULL);
}

// ---- constants ----

hlo_value hlo_constant(struct hlo_writer *w, const struct mlir_type *t, const void *bytes,
                       size_t n)
{
    struct hlo_attrs a = {0};
    size_t size = number_bytes(t->element);
    bool is_splat = n >= size;
    for (size_t i = size; i < n && is_splat; i += size)
        is_splat = !memcmp(bytes, (const char *)bytes + i, size);
    is_splat = is_splat && mlir_elements_of(t) > 0;
    n = is_splat ? size : mlir_elements_of(t) == 0 ? 0 : n;
    struct mlir_attr value = {.kind = MLIR_DENSE, .type = t, .is_splat = is_splat, .n = n};
    value.bytes = arena_copy(w->arena, n ? bytes : "", n ? n : 1);
    hlo_add(&a, "value", hlo_attr(w, value));
    return hlo_op(w, HLO_(constant), t, 0, NULL, &a);
}

hlo_value hlo_integer(struct hlo_writer *w, const struct mlir_type *t, uint64_t bits)
{
    return hlo_constant(w, t, &bits, number_bytes(t->element));
}

hlo_value hlo_number(struct hlo_writer *w, const struct mlir_type *t, double x)
{
    unsigned char bytes[16] = {0};
    enum mlir_element e = t->element;
    char kind = mlir_elements[e].kind;
    if (kind != 'f' && kind != 'c')
        return hlo_integer(w, t, x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x);
    number_store(kind == 'c' ? number_part(e) : e, x, bytes);
    return hlo_constant(w, t, bytes, number_bytes(e));
}

// ---- layouts ----

hlo_value hlo_iota(struct hlo_writer *w, const struct mlir_type *t, int axis)
{
    struct hlo_attrs a = {0};
    hlo_int(w, &a, "iota_dimension", axis);
    return hlo_op(w, HLO_(iota), t, 0, NULL, &a);
}

hlo_value hlo_reshape(struct hlo_writer *w, hlo_value x, int rank, const int64_t *dims)
{
    return hlo_op(w, HLO_(reshape), hlo_type(w, hlo_dtype(x), rank, dims), 1, &x, NULL);
}

hlo_value hlo_transpose(struct hlo_writer *w, hlo_value x, const int64_t *axes)
{
    struct hlo_attrs a = {0};
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i < x->type->rank; i++)
        dims[i] = x->type->dims[axes[i]];
    hlo_ints(w, &a, "permutation", x->type->rank, axes);
    return hlo_op(w, HLO_(transpose), hlo_type(w, hlo_dtype(x), x->type->rank, dims), 1, &x,
                  &a);
}

hlo_value hlo_broadcast(struct hlo_writer *w, hlo_value x, const struct mlir_type *t,
                        const int64_t *axes)
{
    struct hlo_attrs a = {0};
    hlo_ints(w, &a, "broadcast_dimensions", x->type->rank, axes);
    return hlo_op(w, HLO_(broadcast_in_dim), hlo_type_with(w, t, hlo_dtype(x)), 1, &x, &a);
}

hlo_value hlo_slice(struct hlo_writer *w, hlo_value x, const int64_t *starts,
                    const int64_t *limits, const int64_t *strides)
{
    struct hlo_attrs a = {0};
    int rank = x->type->rank;
    int64_t dims[IR_MAX_RANK], ones[IR_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        ones[i] = strides ? strides[i] : 1;
        dims[i] = limits[i] > starts[i] ? (limits[i] - starts[i] - 1) / ones[i] + 1 : 0;
    }
    hlo_ints(w, &a, "start_indices", rank, starts);
    hlo_ints(w, &a, "limit_indices", rank, limits);
    hlo_ints(w, &a, "strides", rank, ones);
    return hlo_op(w, HLO_(slice), hlo_type(w, hlo_dtype(x), rank, dims), 1, &x, &a);
}

hlo_value hlo_stretch(struct hlo_writer *w, hlo_value x, const struct mlir_type *t)
{
    int64_t axes[IR_MAX_RANK];
    bool is_same = x->type->rank == t->rank;
    for (int i = 0; i < t->rank; i++) {
        axes[i] = i;
        is_same = is_same && x->type->dims[i] == t->dims[i];
    }
    return is_same ? x : hlo_broadcast(w, x, t, axes);
}

hlo_value hlo_reduce(struct hlo_writer *w, enum ir_op op, hlo_value x, hlo_value init, int n,
                     const int64_t *axes)
{
    struct hlo_attrs a = {0};
    int64_t dims[IR_MAX_RANK];
    int rank = 0;
    for (int i = 0, k = 0; i < x->type->rank; i++) {
        if (k < n && axes[k] == i)
            k++;
        else
            dims[rank++] = x->type->dims[i];
    }
    struct mlir_block body = hlo_combiner(w, op, hlo_dtype(x));
    const struct mlir_type *type = hlo_type(w, hlo_dtype(x), rank, dims);
    hlo_ints(w, &a, "dimensions", n, axes);
    return hlo_emit(w, HLO_(reduce), 2, (hlo_value[]){x, init}, 1, &type, &a, 1, &body)
        ->results[0];
}

// ---- blocks and functions ----

struct hlo_block hlo_open(struct hlo_writer *w, uint32_t n,
                          const struct mlir_type *const *types)
{
    struct hlo_block b = {.outer = w->ops};
    hlo_value *args = arena_array(w->arena, hlo_value, n + 1);
    for (uint32_t i = 0; i < n; i++)
        args[i] = new_value(w, types[i]);
    b.block = (struct mlir_block){.n_args = n, .args = args};
    w->ops = (hlo_ops){0};
    return b;
}

struct mlir_block hlo_close(struct hlo_writer *w, struct hlo_block *b, enum mlir_code code,
                            uint32_t n, const hlo_value *out)
{
    hlo_emit(w, code, n, out, 0, NULL, NULL, 0, NULL);
    b->block.n_ops = w->ops.count;
    b->block.ops = w->ops.at;
    w->ops = b->outer;
    return b->block;
}

struct mlir_block hlo_combiner(struct hlo_writer *w, enum ir_op op, jot_dtype d)
{
    enum ir_op pair = ir_op_get(op)->pair;
    enum mlir_code code = hlo_code(pair == IR_OP_COUNT ? op : pair);
    const struct mlir_type *number = hlo_type(w, d, 0, NULL);
    struct hlo_block b = hlo_open(w, 2, (const struct mlir_type *const[]){number, number});
    hlo_value x = b.block.args[0], y = b.block.args[1];
    y = code == MLIR_N_CODES ? hlo_combine(w, op, x, y) : hlo_2(w, code, x, y);
    return hlo_close(w, &b, HLO_(return), 1, &y);
}

// A name that no other function has: the slot is part of it.
static const char *unique_name(struct hlo_writer *w, const char *name, uint32_t slot)
{
    char *text = arena_allocate(w->arena, strlen(name) + 16), *at = text;
    if (slot == 0)
        return strcpy(text, name);
    for (const char *c = name; *c; c++) {
        bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                       (*c >= '0' && *c <= '9' && c > name) || *c == '_' || *c == '.';
        *at++ = is_word ? *c : '_';
    }
    sprintf(at, "_%u", slot);
    return text;
}

struct hlo_function hlo_open_function(struct hlo_writer *w, const char *name, uint32_t n,
                                      const struct mlir_type *const *types)
{
    struct hlo_function f = {.slot = w->functions.count, .n_values = w->n_values};
    vec_push(
        w->arena, &w->functions,
        (struct mlir_function){.name = unique_name(w, name, f.slot), .is_private = f.slot > 0});
    w->n_values = 0;
    f.block = hlo_open(w, n, types);
    return f;
}

const char *hlo_close_function(struct hlo_writer *w, struct hlo_function *f, uint32_t n,
                               const hlo_value *out)
{
    uint32_t n_in = f->block.block.n_args;
    struct mlir_type *type = arena_new(w->arena, struct mlir_type);
    const struct mlir_type **parts =
        arena_array(w->arena, const struct mlir_type *, n_in + n + 1);
    struct mlir_block *body = arena_new(w->arena, struct mlir_block);
    for (uint32_t i = 0; i < n_in; i++)
        parts[i] = f->block.block.args[i]->type;
    for (uint32_t i = 0; i < n; i++)
        parts[n_in + i] = out[i]->type;
    *type = (struct mlir_type){
        .kind = MLIR_FUNCTION, .n_parts = n_in + n, .n_inputs = n_in, .parts = parts};
    *body = hlo_close(w, &f->block, MLIR_OP_func_return, n, out);
    struct mlir_function *slot = &w->functions.at[f->slot];
    slot->type = type;
    slot->body = body;
    slot->n_values = w->n_values;
    w->n_values = f->n_values;
    return slot->name;
}

void hlo_call(struct hlo_writer *w, const char *name, uint32_t n_in, const hlo_value *in,
              uint32_t n_out, const struct mlir_type *const *types, hlo_value *out)
{
    struct hlo_attrs a = {0};
    hlo_text(w, &a, "callee", MLIR_SYMBOL, name);
    const struct mlir_op *op =
        hlo_emit(w, MLIR_OP_func_call, n_in, in, n_out, types, &a, 0, NULL);
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = op->results[i];
}
