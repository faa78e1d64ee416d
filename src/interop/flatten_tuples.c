// SPDX-License-Identifier: Apache-2.0
// A program without tuples, tokens, and operations whose result is their operand, as the graph has none.
//
//     %t = stablehlo.tuple %x, %k                        (none)
//     %u = stablehlo.optimization_barrier %t     becomes %u:2 = stablehlo.optimization_barrier %x, %k
//     %y = stablehlo.get_tuple_element %u[1]             %u#1 where %y was
//     %z = sdy.sharding_constraint %y <@mesh, [{}]>      %u#1 where %z was
//
// A value of a tuple is its parts, and a token, which says in what order things are done, nothing: as
// operands and results, of functions and of regions.  Operations are done in the order of the program.
#include "interop/flatten_tuples.h"

#include "base/vec.h"

enum { MOST_PARTS = 1 << 20 }; // of all types of a program: tuples of one tuple grow fast

struct parts {
    struct mlir_value *const *at;
    uint32_t n;
};

typedef VEC(const struct mlir_type *) type_list;

struct flattening {
    struct arena *arena;
    int64_t left;        // parts that may be made
    struct parts *parts; // by number of a value of the function
    uint32_t next;       // number of a new value
};

static bool is_flat(const struct mlir_type *t)
{
    return t->kind != MLIR_TUPLE && t->kind != MLIR_TOKEN;
}

// Whether its result is its operand, as that of a cast between dialects: how a value lies on devices does not change it.
static bool is_nothing(const struct mlir_op *op)
{
    return op->row &&
           (op->row->code == MLIR_OP_sdy_sharding_constraint ||
            op->row->code == MLIR_OP_builtin_unrealized_conversion_cast) &&
           op->n_operands == 1 && op->n_results == 1 &&
           mlir_types_equal(op->operands[0]->type, op->results[0]->type);
}

// ---- whether there are any ----

static bool are_flat(struct mlir_value *const *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_flat(values[i]->type))
            return false;
    return true;
}

static bool is_flat_block(const struct mlir_block *block)
{
    if (!are_flat(block->args, block->n_args))
        return false;
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        if (!are_flat(op->results, op->n_results) || is_nothing(op))
            return false;
        for (uint32_t k = 0; k < op->n_regions; k++)
            if (!is_flat_block(&op->regions[k]))
                return false;
    }
    return true;
}

static bool is_flat_function(const struct mlir_function *f)
{
    for (uint32_t i = 0; i < f->type->n_parts; i++)
        if (!is_flat(f->type->parts[i]))
            return false;
    return !f->body || is_flat_block(f->body);
}

// ---- types ----

// Appends the parts of the type, also those of parts.
static void add_types(struct flattening *w, const struct mlir_type *t, type_list *out)
{
    if (w->left-- <= 0 || t->kind == MLIR_TOKEN)
        return;
    if (t->kind != MLIR_TUPLE) {
        vec_push(w->arena, out, t);
        return;
    }
    for (uint32_t i = 0; i < t->n_parts && w->left > 0; i++)
        add_types(w, t->parts[i], out);
}

static uint32_t count_parts(struct flattening *w, const struct mlir_type *t)
{
    type_list types = {0};
    add_types(w, t, &types);
    return types.count;
}

static const struct mlir_type *function_type(struct flattening *w, const struct mlir_type *t)
{
    struct mlir_type *flat = arena_copy(w->arena, t, sizeof *t);
    type_list types = {0};
    for (uint32_t i = 0; i < t->n_parts; i++) {
        if (i == t->n_inputs)
            flat->n_inputs = types.count;
        add_types(w, t->parts[i], &types);
    }
    if (t->n_inputs == t->n_parts)
        flat->n_inputs = types.count;
    flat->parts = types.at;
    flat->n_parts = types.count;
    return flat;
}

// What is said of an argument or result of a function, of each of its parts.
static const struct mlir_attr *const *spread(struct flattening *w,
                                             const struct mlir_type *const *types, uint32_t n,
                                             const struct mlir_attr *const *attrs)
{
    VEC(const struct mlir_attr *) out = {0};
    for (uint32_t i = 0; attrs && i < n; i++)
        for (uint32_t k = count_parts(w, types[i]); k-- > 0;)
            vec_push(w->arena, &out, attrs[i]);
    return attrs ? out.at : NULL;
}

// ---- values ----

// The values of v where it is made.
static struct parts define(struct flattening *w, struct mlir_value *v)
{
    struct mlir_value **at = arena_array(w->arena, struct mlir_value *, 1);
    *at = v;
    w->parts[v->number] = (struct parts){at, 1};
    if (is_flat(v->type))
        return w->parts[v->number];
    type_list types = {0};
    add_types(w, v->type, &types);
    at = arena_array(w->arena, struct mlir_value *, types.count + 1);
    for (uint32_t i = 0; i < types.count; i++) {
        at[i] = arena_new(w->arena, struct mlir_value);
        *at[i] = (struct mlir_value){types.at[i], w->next++, v->called};
    }
    return w->parts[v->number] = (struct parts){at, types.count};
}

typedef VEC(struct mlir_value *) value_list;

static void add_values(struct flattening *w, struct parts p, value_list *out)
{
    for (uint32_t i = 0; i < p.n; i++)
        vec_push(w->arena, out, p.at[i]);
}

static struct parts defined(struct flattening *w, struct mlir_value *const *values, uint32_t n)
{
    value_list out = {0};
    for (uint32_t i = 0; i < n; i++)
        add_values(w, define(w, values[i]), &out);
    return (struct parts){out.at, out.count};
}

static struct parts used(struct flattening *w, struct mlir_value *const *values, uint32_t n)
{
    value_list out = {0};
    for (uint32_t i = 0; i < n; i++)
        add_values(w, w->parts[values[i]->number], &out);
    return (struct parts){out.at, out.count};
}

// ---- operations ----

// The parts of one part of a tuple.
static struct parts element(struct flattening *w, const struct mlir_op *op)
{
    const struct mlir_type *t = op->operands[0]->type;
    struct parts all = w->parts[op->operands[0]->number];
    int64_t index = mlir_int(op, "index", 0);
    uint32_t first = 0;
    for (uint32_t i = 0; i < t->n_parts && i < index; i++)
        first += count_parts(w, t->parts[i]);
    uint32_t n = index >= 0 && index < t->n_parts ? count_parts(w, t->parts[index]) : 0;
    n = first + n <= all.n ? n : 0;
    return (struct parts){all.at + first, n};
}

// Whether the operation says only what is left out; then its results are known.
static bool is_dropped(struct flattening *w, const struct mlir_op *op)
{
    if (!op->row || op->n_results != 1)
        return false;
    struct parts *out = &w->parts[op->results[0]->number];
    if (is_nothing(op)) {
        *out = used(w, op->operands, 1);
        return true;
    }
    switch ((int)op->row->code) {
    case MLIR_OP_stablehlo_tuple:
        *out = used(w, op->operands, op->n_operands);
        return true;
    case MLIR_OP_stablehlo_get_tuple_element:
        if (op->n_operands == 1 && op->operands[0]->type->kind == MLIR_TUPLE)
            *out = element(w, op);
        return op->n_operands == 1 && op->operands[0]->type->kind == MLIR_TUPLE;
    case MLIR_OP_stablehlo_after_all:
    case MLIR_OP_stablehlo_create_token:
        return true;
    default:
        return false;
    }
}

static struct mlir_block flat_block(struct flattening *w, const struct mlir_block *block);

static struct mlir_op *flat_op(struct flattening *w, const struct mlir_op *op)
{
    struct mlir_op *flat = arena_copy(w->arena, op, sizeof *op);
    struct mlir_block *regions = arena_array(w->arena, struct mlir_block, op->n_regions + 1);
    struct parts in = used(w, op->operands, op->n_operands);
    for (uint32_t k = 0; k < op->n_regions; k++)
        regions[k] = flat_block(w, &op->regions[k]);
    struct parts out = defined(w, op->results, op->n_results);
    flat->operands = in.at;
    flat->n_operands = in.n;
    flat->results = out.at;
    flat->n_results = out.n;
    flat->regions = regions;
    return flat;
}

static struct mlir_block flat_block(struct flattening *w, const struct mlir_block *block)
{
    struct parts args = defined(w, block->args, block->n_args);
    VEC(struct mlir_op *) ops = {0};
    for (uint32_t i = 0; i < block->n_ops; i++)
        if (!is_dropped(w, block->ops[i]))
            vec_push(w->arena, &ops, flat_op(w, block->ops[i]));
    return (struct mlir_block){args.n, ops.count, args.at, ops.at};
}

static void flatten_function(struct flattening *w, struct mlir_function *f)
{
    const struct mlir_type *t = f->type;
    f->args = spread(w, t->parts, t->n_inputs, f->args);
    f->results = spread(w, t->parts + t->n_inputs, t->n_parts - t->n_inputs, f->results);
    f->type = function_type(w, t);
    if (!f->body)
        return;
    w->parts = arena_array(w->arena, struct parts, f->n_values + 1);
    w->next = f->n_values;
    struct mlir_block *body = arena_new(w->arena, struct mlir_block);
    *body = flat_block(w, f->body);
    f->body = body;
    f->n_values = w->next;
}

const struct mlir_program *mlir_flatten(const struct mlir_program *p)
{
    struct flattening w = {.arena = p->arena, .left = MOST_PARTS};
    bool is_done = true;
    for (uint32_t i = 0; i < p->n_functions; i++)
        is_done = is_done && is_flat_function(&p->functions[i]);
    if (is_done)
        return p;
    struct mlir_program *flat = arena_copy(p->arena, p, sizeof *p);
    flat->functions =
        arena_copy(p->arena, p->functions, ((size_t)p->n_functions) * sizeof *p->functions);
    for (uint32_t i = 0; i < p->n_functions; i++)
        flatten_function(&w, &flat->functions[i]);
    return w.left > 0 ? flat : p;
}
