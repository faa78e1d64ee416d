// SPDX-License-Identifier: Apache-2.0
// Makes a program for arguments of known extents.
//
// It goes through the functions from the one that is asked for, with the type of each value and,
// for small tensors of integers, its numbers where they are known: arithmetic on extents becomes
// constants.  A function that is called with other types or numbers becomes another function.
#include "interop/refine_internal.h"

#include "base/status.h"
#include "base/strbuf.h"

#include <stdarg.h>

void refine_fail(struct refiner *r, const struct mlir_op *op, const char *format, ...)
{
    va_list args;
    if (r->status)
        return;
    va_start(args, format);
    r->status = mlir_fail(JOT_ERR_SHAPE, r->from->file, op, format, args);
    va_end(args);
}

// ---- operations ----

static void refine_ops(struct refiner *r, struct refined *values,
                       const struct mlir_block *block, struct op_list *out);

// What a return gives, in values of the new program.
static struct refined *returned(struct refiner *r, struct refined *values,
                                const struct mlir_block *block, uint32_t *out_n)
{
    const struct mlir_op *last = block->n_ops ? block->ops[block->n_ops - 1] : NULL;
    *out_n = last ? last->n_operands : 0;
    struct refined *given = arena_array(r->scratch, struct refined, *out_n);
    for (uint32_t i = 0; i < *out_n; i++) {
        given[i] = values[last->operands[i]->number];
        if (!given[i].value)
            refine_fail(r, last, "a value that is not made before");
    }
    return given;
}

static void end_block(struct refiner *r, struct refined *values, const struct mlir_block *block,
                      struct op_list *ops, enum mlir_code code, struct mlir_block *out)
{
    uint32_t n;
    struct refined *given = returned(r, values, block, &n);
    if (r->status)
        return;
    struct refine_op o = {.r = r,
                          .values = values,
                          .op = block->ops[block->n_ops - 1],
                          .operands = given,
                          .out = ops};
    refine_emit(&o, code, n, 0);
    out->ops = arena_copy(r->arena, ops->at, ops->count * sizeof *ops->at);
    out->n_ops = ops->count;
}

// A block whose arguments have the types of `args`, or of those of the block.
static void refine_block(struct refiner *r, struct refined *values,
                         const struct mlir_block *block, const struct refined *args,
                         enum mlir_code end, struct mlir_block *out)
{
    struct mlir_value **made = arena_array(r->arena, struct mlir_value *, block->n_args);
    for (uint32_t i = 0; i < block->n_args; i++) {
        made[i] = refine_value(r, args ? args[i].value->type : block->args[i]->type);
        values[block->args[i]->number] = (struct refined){.value = made[i]};
    }
    out->args = made;
    out->n_args = block->n_args;
    struct op_list ops = {0};
    refine_ops(r, values, block, &ops);
    if (!r->status)
        end_block(r, values, block, &ops, end, out);
}

bool refine_inline(struct refine_op *o, const char *name, struct mlir_block *out)
{
    struct refiner *r = o->r;
    const struct mlir_function *f = mlir_function_find(r->from, name);
    if (!f || mlir_is_dynamic(f) || r->depth >= MLIR_MAX_DEPTH) {
        refine_fail(r, o->op, "%s is no function of scalars", name);
        return false;
    }
    struct refined *values = arena_array(r->scratch, struct refined, f->n_values);
    r->depth++;
    refine_block(r, values, f->body, NULL, MLIR_OP_stablehlo_return, out);
    r->depth--;
    return !r->status;
}

// The branch of a choice by a known number, in the place of the choice.
static bool choose(struct refine_op *o)
{
    int64_t n;
    const struct mlir_op *op = o->op;
    const int64_t *known = refine_known(o, 0, &n);
    bool is_if = op->row && op->row->code == MLIR_OP_stablehlo_if;
    bool is_case = op->row && op->row->code == MLIR_OP_stablehlo_case;
    if ((!is_if && !is_case) || n != 1 || !op->n_regions)
        return false;
    uint32_t last = op->n_regions - 1,
             which = *known < 0 || *known > last ? last : (uint32_t)*known;
    const struct mlir_block *block = &op->regions[is_if ? (*known ? 0 : last) : which];
    refine_ops(o->r, o->values, block, o->out);
    uint32_t count;
    struct refined *given = returned(o->r, o->values, block, &count);
    if (count != op->n_results)
        refine_fail(o->r, op, "a branch that gives %u values", count);
    for (uint32_t i = 0; i < count && !o->r->status; i++)
        o->values[op->results[i]->number] = given[i];
    return true;
}

static const struct mlir_type *result_of(struct refine_op *o, const struct mlir_op *made,
                                         uint32_t i)
{
    bool is_choice = o->op->row && (o->op->row->code == MLIR_OP_stablehlo_if ||
                                    o->op->row->code == MLIR_OP_stablehlo_case);
    if (!is_choice || !made->n_regions)
        return refine_result(o, i);
    const struct mlir_block *first = &made->regions[0];
    const struct mlir_op *end = first->ops[first->n_ops - 1];
    if (i < end->n_operands)
        return end->operands[i]->type;
    refine_fail(o->r, o->op, "a branch that gives %u values", end->n_operands);
    return NULL;
}

// The operation as it is, with the types that its results have.
static void keep_op(struct refine_op *o)
{
    struct refiner *r = o->r;
    const struct mlir_op *old = o->op;
    struct mlir_block *regions = arena_array(r->arena, struct mlir_block, old->n_regions);
    bool is_while = old->row && old->row->code == MLIR_OP_stablehlo_while;
    for (uint32_t i = 0; i < old->n_regions && !r->status; i++) {
        bool is_of_operands = is_while && old->regions[i].n_args == old->n_operands;
        refine_block(r, o->values, &old->regions[i], is_of_operands ? o->operands : NULL,
                     MLIR_OP_stablehlo_return, &regions[i]);
    }
    if (r->status)
        return;
    struct mlir_op *op =
        refine_emit(o, old->row ? old->row->code : MLIR_OP_stablehlo_custom_call,
                    old->n_operands, old->n_results);
    op->row = old->row;
    op->name = old->name;
    op->regions = regions;
    op->n_regions = old->n_regions;
    for (uint32_t i = 0; i < old->n_results && !r->status; i++) {
        const struct mlir_type *type = result_of(o, op, i);
        struct mlir_value *v = refine_value(r, type);
        ((struct mlir_value **)op->results)[i] = v;
        o->values[old->results[i]->number] = (struct refined){.value = v, .by = old};
    }
}

// ---- calls ----

static uint64_t hash_call(const struct mlir_function *f, const struct refined *args, uint32_t n)
{
    uint64_t h = hash_combine(0, (uintptr_t)f);
    for (uint32_t i = 0; i < n; i++) {
        const struct mlir_type *t = args[i].value->type;
        for (int k = 0; k < t->rank; k++)
            h = hash_combine(h, (uint64_t)t->dims[k]);
        for (int64_t k = 0; args[i].known && k < mlir_elements_of(t); k++)
            h = hash_combine(h, (uint64_t)args[i].known[k]);
    }
    return h;
}

static bool is_same_call(const struct refined_function *m, const struct mlir_function *f,
                         const struct refined *args)
{
    bool is = m->from == f;
    for (uint32_t i = 0; is && i < f->type->n_inputs; i++) {
        const struct mlir_type *t = args[i].value->type;
        is = mlir_types_equal(m->args[i].value->type, t) &&
             !m->args[i].known == !args[i].known &&
             (!args[i].known || !memcmp(m->args[i].known, args[i].known,
                                        (size_t)mlir_elements_of(t) * sizeof(int64_t)));
    }
    return is;
}

// A name that no function has: "f", then "f_1" ...
static const char *new_name(struct refiner *r, const struct mlir_function *f)
{
    uint32_t *count = &r->n_made[f - r->from->functions];
    struct strbuf text = strbuf_make(r->arena);
    strbuf_add(&text, f->name);
    for (bool is_taken = (*count)++ > 0; is_taken;) {
        text = strbuf_make(r->arena);
        strbuf_printf(&text, "%s_%u", f->name, (*count)++ - 1);
        is_taken = mlir_function_find(r->from, text.text) != NULL;
    }
    return text.text;
}

// Arguments of a function whose numbers are known are constants in it; those of the entry go.
static void make_arguments(struct refined_function *m, struct refine_op *o, bool is_entry,
                           struct mlir_function *out, struct mlir_block *body)
{
    const struct mlir_function *f = m->from;
    struct refiner *r = o->r;
    uint32_t n = f->body->n_args;
    struct mlir_value **args = arena_array(r->arena, struct mlir_value *, n);
    const struct mlir_attr **named = arena_array(r->arena, const struct mlir_attr *, n);
    for (uint32_t i = 0; i < n; i++) {
        struct mlir_op as_result = {.results = &f->body->args[i], .n_results = 1};
        const struct mlir_type *t = m->args[i].value->type;
        if (!is_entry || !m->args[i].known) {
            named[body->n_args] = f->args ? f->args[i] : NULL;
            args[body->n_args] = refine_value(r, t);
            o->values[f->body->args[i]->number] =
                (struct refined){.value = args[body->n_args++]};
        }
        o->op = &as_result;
        if (m->args[i].known)
            refine_emit_constant(o, 0, t, m->args[i].known);
    }
    body->args = args;
    out->args = f->args ? named : NULL;
}

static void make_type(struct refiner *r, struct refined_function *m,
                      const struct refined *given, uint32_t n, struct mlir_function *out)
{
    struct mlir_type *type = arena_new(r->arena, struct mlir_type);
    const struct mlir_block *body = out->body;
    const struct mlir_type **parts =
        arena_array(r->arena, const struct mlir_type *, body->n_args + n);
    m->results = arena_array(r->scratch, const struct mlir_type *, n);
    m->known = arena_array(r->scratch, const int64_t *, n);
    for (uint32_t i = 0; i < body->n_args; i++)
        parts[i] = body->args[i]->type;
    for (uint32_t i = 0; i < n; i++) {
        parts[body->n_args + i] = m->results[i] = given[i].value->type;
        m->known[i] = given[i].known;
    }
    *type = (struct mlir_type){.kind = MLIR_FUNCTION,
                               .n_inputs = body->n_args,
                               .n_parts = body->n_args + n,
                               .parts = parts};
    out->type = type;
}

static void make_function(struct refiner *r, struct refined_function *m, bool is_entry)
{
    const struct mlir_function *f = m->from;
    struct mlir_function made = *f;
    struct mlir_block *body = arena_new(r->arena, struct mlir_block);
    struct op_list ops = {0};
    struct refine_op o = {.r = r, .out = &ops};
    uint32_t at = r->functions.count, outer = r->n_values, n;
    vec_push(r->scratch, &r->functions, made); // its number: before those that it calls
    r->n_values = 0;
    r->depth++;
    o.values = arena_array(r->scratch, struct refined, f->n_values);
    make_arguments(m, &o, is_entry, &made, body);
    refine_ops(r, o.values, f->body, &ops);
    if (!r->status)
        end_block(r, o.values, f->body, &ops, MLIR_OP_func_return, body);
    struct refined *given = returned(r, o.values, f->body, &n);
    if (n != f->type->n_parts - f->type->n_inputs)
        refine_fail(r, NULL, "function %s does not give what its type says", f->name);
    if (!r->status) {
        made.name = m->name;
        made.body = body;
        made.n_values = r->n_values;
        make_type(r, m, given, n, &made);
        r->functions.at[at] = made;
        m->is_made = true;
    }
    r->depth--;
    r->n_values = outer;
}

static struct refined_function *find_function(struct refiner *r, const struct mlir_op *op,
                                              const struct mlir_function *f,
                                              const struct refined *args)
{
    uint64_t h = hash_call(f, args, f->type->n_inputs);
    for (struct hash_probe p = hash_probe(&r->table, h); hash_next(&r->table, &p);)
        if (is_same_call(r->made.at[p.id], f, args)) {
            if (!r->made.at[p.id]->is_made)
                refine_fail(r, op, "%s calls itself", f->name);
            return r->made.at[p.id];
        }
    if (r->depth >= MLIR_MAX_DEPTH)
        refine_fail(r, op, "calls in one another are too deep");
    struct refined_function *m = arena_new(r->scratch, struct refined_function);
    m->from = f;
    m->name = new_name(r, f);
    m->args = arena_copy(r->scratch, args, f->type->n_inputs * sizeof *args);
    hash_insert(r->scratch, &r->table, h, r->made.count);
    vec_push(r->scratch, &r->made, m);
    if (f->body->n_args != f->type->n_inputs)
        refine_fail(r, op, "function %s does not take what its type says", f->name);
    if (!r->status)
        make_function(r, m, !op);
    return m;
}

static const struct mlir_attr *symbol(struct refiner *r, const char *name)
{
    struct mlir_attr *a = arena_new(r->arena, struct mlir_attr);
    a->kind = MLIR_SYMBOL;
    a->text = name;
    a->n = strlen(name);
    return a;
}

// A call or a composite: of the function for the types and numbers of the operands.  When all of
// its results are known, it goes.
static bool call(struct refine_op *o)
{
    struct refiner *r = o->r;
    const struct mlir_op *old = o->op;
    bool is_call = old->row && old->row->code == MLIR_OP_func_call;
    bool is_composite = old->row && old->row->code == MLIR_OP_stablehlo_composite;
    if (!is_call && !is_composite)
        return false;
    const char *attr = is_call ? "callee" : "decomposition", *name = mlir_text(old, attr);
    const struct mlir_function *f = name ? mlir_function_find(r->from, name) : NULL;
    if (!f || f->type->n_inputs != old->n_operands ||
        f->type->n_parts - f->type->n_inputs != old->n_results) {
        refine_fail(r, old, "a call of %s, which is no function of these operands",
                    name ? name : "nothing");
        return true;
    }
    struct refined_function *m = find_function(r, old, f, o->operands);
    if (r->status)
        return true;
    bool is_known = is_call && old->n_results;
    for (uint32_t i = 0; i < old->n_results; i++)
        is_known = is_known && m->known[i];
    for (uint32_t i = 0; is_known && i < old->n_results; i++)
        refine_emit_constant(o, i, m->results[i], m->known[i]);
    if (is_known)
        return true;
    struct mlir_op *op = refine_emit(o, old->row->code, old->n_operands, old->n_results);
    struct mlir_named *attrs = arena_copy(r->arena, old->attrs, old->n_attrs * sizeof *attrs);
    for (uint32_t i = 0; i < old->n_attrs; i++)
        if (!strcmp(attrs[i].name, attr))
            attrs[i].attr = symbol(r, m->name);
    op->attrs = attrs;
    for (uint32_t i = 0; i < old->n_results; i++) {
        struct mlir_value *v = refine_value(r, m->results[i]);
        ((struct mlir_value **)op->results)[i] = v;
        o->values[old->results[i]->number] = (struct refined){.value = v, .known = m->known[i]};
    }
    return true;
}

// What an operation names beside calls, as the order of a custom_call: functions of the types that they
// declare.
static const struct mlir_attr *refine_named(struct refiner *r, const struct mlir_op *op,
                                            const struct mlir_attr *names)
{
    struct mlir_attr *made = arena_copy(r->arena, names, sizeof *names);
    made->parts = arena_copy(r->arena, names->parts, names->n * sizeof *names->parts);
    for (size_t i = 0; i < names->n && !r->status; i++) {
        bool is_name = names->parts[i]->kind == MLIR_SYMBOL;
        const struct mlir_function *f =
            is_name ? mlir_function_find(r->from, names->parts[i]->text) : NULL;
        if (!f || !f->body)
            continue;
        struct refined *args = arena_array(r->scratch, struct refined, f->type->n_inputs);
        for (uint32_t k = 0; k < f->type->n_inputs; k++) {
            args[k].value = arena_new(r->scratch, struct mlir_value);
            args[k].value->type = f->type->parts[k];
        }
        const struct mlir_attr **part = (const struct mlir_attr **)made->parts + i;
        *part = symbol(r, find_function(r, op, f, args)->name);
    }
    return made;
}

static void name_functions(struct refine_op *o)
{
    if (!o->out->count || !mlir_attr_find(o->op, "called_computations") || o->r->status)
        return;
    struct mlir_op *op = o->out->at[o->out->count - 1];
    struct mlir_named *attrs = arena_copy(o->r->arena, op->attrs, op->n_attrs * sizeof *attrs);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!strcmp(attrs[i].name, "called_computations") && attrs[i].attr->kind == MLIR_ARRAY)
            attrs[i].attr = refine_named(o->r, o->op, attrs[i].attr);
    op->attrs = attrs;
}

// ---- blocks and programs ----

static void refine_op(struct refiner *r, struct refined *values, const struct mlir_op *op,
                      struct op_list *out)
{
    struct refine_op o = {.r = r, .values = values, .op = op, .out = out};
    o.operands = arena_array(r->scratch, struct refined, op->n_operands);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        o.operands[i] = values[op->operands[i]->number];
        if (!o.operands[i].value)
            refine_fail(r, op, "operand %u is not made before", i);
    }
    if (r->status || choose(&o) || call(&o) || refine_special(&o))
        return;
    const struct mlir_type *type =
        op->n_results == 1 && !op->n_regions ? refine_result(&o, 0) : NULL;
    const int64_t *known = type ? refine_eval(&o, type) : NULL;
    if (known) {
        refine_emit_constant(&o, 0, type, known);
    } else if (!r->status) {
        keep_op(&o);
        name_functions(&o);
    }
}

// All but the return.
static void refine_ops(struct refiner *r, struct refined *values,
                       const struct mlir_block *block, struct op_list *out)
{
    if (!block->n_ops || r->depth >= MLIR_MAX_DEPTH)
        refine_fail(r, NULL, "a block that does not end, or is too deep");
    r->depth++;
    for (uint32_t i = 0; i + 1 < block->n_ops && !r->status; i++)
        refine_op(r, values, block->ops[i], out);
    r->depth--;
}

bool mlir_is_dynamic(const struct mlir_function *f)
{
    for (uint32_t i = 0; i < f->type->n_parts; i++)
        for (int k = 0; k < f->type->parts[i]->rank; k++)
            if (f->type->parts[i]->dims[k] == MLIR_DYNAMIC)
                return true;
    return false;
}

// Whether an argument may have a type: where it says an extent it is that.
static bool is_argument(const struct mlir_type *declared, const struct mlir_type *given)
{
    if (declared->kind != MLIR_TENSOR)
        return mlir_types_equal(declared, given);
    bool is = given->kind == MLIR_TENSOR && declared->element == given->element &&
              declared->rank == given->rank;
    for (int i = 0; is && i < given->rank; i++)
        is = given->dims[i] >= 0 &&
             (declared->dims[i] == MLIR_DYNAMIC || declared->dims[i] == given->dims[i]);
    return is;
}

static struct refined *arguments_of(struct refiner *r, const struct mlir_function *f,
                                    const struct mlir_argument *arguments)
{
    struct refined *args = arena_array(r->scratch, struct refined, f->type->n_inputs);
    for (uint32_t i = 0; i < f->type->n_inputs; i++) {
        const struct mlir_type *declared = f->type->parts[i];
        const struct mlir_type *given = arguments[i].is_known ? declared : arguments[i].type;
        bool is_scalar = declared->kind == MLIR_TENSOR && !declared->rank &&
                         strchr("biu", mlir_elements[declared->element].kind);
        if (!is_argument(declared, given) || (arguments[i].is_known && !is_scalar)) {
            struct strbuf text = strbuf_make(r->scratch);
            mlir_print_type(&text, declared);
            strbuf_add(&text, arguments[i].is_known ? ", not a number" : ", not ");
            if (!arguments[i].is_known)
                mlir_print_type(&text, given);
            refine_fail(r, NULL, "argument %u of %s is %s", i, f->name, text.text);
        }
        args[i].value = arena_new(r->scratch, struct mlir_value);
        args[i].value->type = given->kind == MLIR_TENSOR && !r->status
                                  ? refine_tensor(r, given->element, given->rank, given->dims)
                                  : declared;
        if (arguments[i].is_known)
            args[i].known = arena_copy(r->scratch, &arguments[i].value, sizeof(int64_t));
    }
    return args;
}

static size_t count_ops(const struct mlir_block *block)
{
    size_t n = block->n_ops;
    for (uint32_t i = 0; i < block->n_ops; i++)
        for (uint32_t k = 0; k < block->ops[i]->n_regions; k++)
            n += count_ops(&block->ops[i]->regions[k]);
    return n;
}

struct request {
    const struct mlir_program *from;
    const char *name;
    const struct mlir_argument *arguments;
    uint32_t n;
};

static jot_status refine_with(struct arena *scratch, struct mlir_program *p, void *ctx)
{
    const struct request *q = ctx;
    struct refiner *r = arena_new(scratch, struct refiner);
    *r = (struct refiner){.arena = p->arena, .scratch = scratch, .from = q->from};
    r->allowance = 100000;
    r->n_made = arena_array(scratch, uint32_t, q->from->n_functions);
    for (uint32_t i = 0; i < q->from->n_functions; i++)
        r->allowance += 64 * count_ops(q->from->functions[i].body);
    const struct mlir_function *f = mlir_function_find(q->from, q->name);
    if (!f || f->type->n_inputs != q->n) {
        refine_fail(r, NULL, "there is no function %s of %u arguments", q->name, q->n);
        return r->status;
    }
    struct refined *args = arguments_of(r, f, q->arguments);
    if (!r->status)
        find_function(r, NULL, f, args);
    if (r->status)
        return r->status;
    refine_tidy(r);
    struct arena *arena = p->arena;
    *p = *q->from;
    p->arena = arena;
    p->n_functions = r->functions.count;
    p->functions =
        arena_copy(arena, r->functions.at, r->functions.count * sizeof *r->functions.at);
    return JOT_OK;
}

jot_status mlir_refine(const struct mlir_program *p, const char *name,
                       const struct mlir_argument *arguments, uint32_t n,
                       struct mlir_program **out)
{
    return mlir_make(refine_with, &(struct request){p, name, arguments, n}, out);
}
