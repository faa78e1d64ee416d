// SPDX-License-Identifier: Apache-2.0
// Programs in what portable bytecode has: operations of CHLO, which are not in it, become calls of functions that are
// made as those of any function of jot are (jot_program_from_function).
//
//     %1 = chlo.erf %0                      %1 = func.call @chlo.erf(%0)
//                                  becomes  func.func private @chlo.erf(%0) { stablehlo.composite "chlo.erf" ... }
//
// Equal operations on values of equal types share one.
#include "interop/portable.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <string.h>

// What became of an operation: the function that is called.
struct made {
    const struct mlir_op *op; // the first of its kind
    const char *name;
    jot_program *program; // that has the function; its tree is renamed
};

struct portable {
    struct arena *arena;
    struct strbuf *out;
    jot_status status;
    const struct mlir_program *from;
    VEC(struct made) made;
    VEC(struct mlir_function) functions;
};

__attribute__((format(printf, 3, 4))) static void
fail(struct portable *p, const struct mlir_op *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    p->status = mlir_fail(JOT_ERR_ARGUMENT, p->from->file, op, format, args);
    va_end(args);
}

static bool is_foreign(const struct mlir_op *op)
{
    return op->row && !op->row->version && !strcmp(op->row->dialect, "chlo");
}

static bool has_foreign(const struct mlir_block *block)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        if (is_foreign(op))
            return true;
        for (uint32_t k = 0; k < op->n_regions; k++)
            if (has_foreign(&op->regions[k]))
                return true;
    }
    return false;
}

// ---- equal operations ----

static bool same_attr(const struct mlir_attr *a, const struct mlir_attr *b)
{
    if (a == b)
        return true;
    switch (a->kind == b->kind ? a->kind : MLIR_LOCATION) {
    case MLIR_UNIT:
        return true;
    case MLIR_BOOL:
    case MLIR_INT:
        return a->integer == b->integer;
    default:
        return false; // one function more
    }
}

static bool same_types(uint32_t n, struct mlir_value *const *a, struct mlir_value *const *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mlir_types_equal(a[i]->type, b[i]->type))
            return false;
    return true;
}

static bool same_op(const struct mlir_op *a, const struct mlir_op *b)
{
    if (a->row != b->row || a->n_operands != b->n_operands || a->n_results != b->n_results ||
        a->n_attrs != b->n_attrs || !same_types(a->n_operands, a->operands, b->operands) ||
        !same_types(a->n_results, a->results, b->results))
        return false;
    for (uint32_t i = 0; i < a->n_attrs; i++)
        if (strcmp(a->attrs[i].name, b->attrs[i].name) != 0 ||
            !same_attr(a->attrs[i].attr, b->attrs[i].attr))
            return false;
    return true;
}

// ---- functions of operations ----

static const struct mlir_type *function_type(struct arena *a, const struct mlir_op *op)
{
    struct mlir_type *t = arena_new(a, struct mlir_type);
    const struct mlir_type **parts =
        arena_array(a, const struct mlir_type *, op->n_operands + op->n_results + 1);
    for (uint32_t i = 0; i < op->n_operands; i++)
        parts[i] = op->operands[i]->type;
    for (uint32_t i = 0; i < op->n_results; i++)
        parts[op->n_operands + i] = op->results[i]->type;
    *t = (struct mlir_type){.kind = MLIR_FUNCTION,
                            .n_parts = op->n_operands + op->n_results,
                            .n_inputs = op->n_operands,
                            .parts = parts};
    return t;
}

static struct mlir_value **new_values(struct arena *a, uint32_t n,
                                      struct mlir_value *const *like, uint32_t first)
{
    struct mlir_value **out = arena_array(a, struct mlir_value *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = arena_new(a, struct mlir_value);
        *out[i] = (struct mlir_value){.type = like[i]->type, .number = first + i};
    }
    return out;
}

struct request {
    const char *file;
    const struct mlir_op *op;
};

// func.func @main(...) { the operation; return }, which borrows from the operation.
static jot_status make_main(struct arena *scratch, struct mlir_program *p, void *ctx)
{
    const struct request *q = ctx;
    const struct mlir_op *op = q->op;
    struct arena *a = p->arena;
    struct mlir_op *ops = arena_array(a, struct mlir_op, 2);
    struct mlir_op **list = arena_array(a, struct mlir_op *, 2);
    struct mlir_block *body = arena_new(a, struct mlir_block);
    struct mlir_value **args = new_values(a, op->n_operands, op->operands, 0);
    ops[0] = *op;
    ops[0].operands = args;
    ops[0].results = new_values(a, op->n_results, op->results, op->n_operands);
    ops[1] = (struct mlir_op){.row = &mlir_rows[MLIR_OP_func_return],
                              .name = "func.return",
                              .n_operands = op->n_results,
                              .operands = ops[0].results,
                              .place = op->place};
    list[0] = &ops[0];
    list[1] = &ops[1];
    *body =
        (struct mlir_block){.n_args = op->n_operands, .n_ops = 2, .args = args, .ops = list};
    p->file = arena_text(a, q->file);
    p->n_functions = 1;
    p->functions = arena_new(a, struct mlir_function);
    *p->functions = (struct mlir_function){.name = "main",
                                           .type = function_type(a, op),
                                           .body = body,
                                           .n_values = op->n_operands + op->n_results,
                                           .place = op->place};
    (void)scratch;
    return JOT_OK;
}

// The function of the operation as a program that jot has written.
static jot_program *write_op(const char *file, const struct mlir_op *op)
{
    struct mlir_program *tree;
    if (mlir_make(make_main, &(struct request){file, op}, &tree) != JOT_OK)
        return NULL;
    jot_program *p = program_of_tree(file, tree), *out = NULL;
    const jot_program_signature *s = p ? jot_program_signature_of(p, "main") : NULL;
    if (s)
        out = jot_program_from_function(jot_program_function(p, "main"), s->n_in, s->in);
    jot_program_release(p);
    return out;
}

// ---- names ----

// The name, with a number behind it where another function has it.
static const char *free_name(struct portable *p, const char *name)
{
    struct strbuf s = strbuf_make(p->arena);
    strbuf_add(&s, name);
    for (unsigned k = 1; k; k++) {
        bool is_taken = mlir_function_find(p->from, s.text) != NULL;
        for (uint32_t i = 0; i < p->functions.count; i++)
            is_taken = is_taken || !strcmp(p->functions.at[i].name, s.text);
        if (!is_taken)
            break;
        s = strbuf_make(p->arena);
        strbuf_printf(&s, "%s.%u", name, k);
    }
    return s.text;
}

static const struct mlir_attr *symbol(struct arena *a, const char *name)
{
    struct mlir_attr *s = arena_new(a, struct mlir_attr);
    *s = (struct mlir_attr){.kind = MLIR_SYMBOL, .text = name, .n = strlen(name)};
    return s;
}

// Where functions of `of` are named, by their new names, which begin at `first`.
static struct mlir_block renamed(struct portable *p, const struct mlir_program *of,
                                 uint32_t first, const struct mlir_block *block)
{
    struct mlir_block out = *block;
    struct mlir_op **ops = arena_array(p->arena, struct mlir_op *, block->n_ops + 1);
    for (uint32_t i = 0; i < block->n_ops; i++) {
        struct mlir_op *op = arena_copy(p->arena, block->ops[i], sizeof *op);
        struct mlir_named *attrs = arena_array(p->arena, struct mlir_named, op->n_attrs + 1);
        struct mlir_block *regions =
            arena_array(p->arena, struct mlir_block, op->n_regions + 1);
        for (uint32_t k = 0; k < op->n_attrs; k++) {
            attrs[k] = op->attrs[k];
            const struct mlir_function *f = attrs[k].attr->kind == MLIR_SYMBOL
                                                ? mlir_function_find(of, attrs[k].attr->text)
                                                : NULL;
            if (f)
                attrs[k].attr =
                    symbol(p->arena, p->functions.at[first + (f - of->functions)].name);
        }
        for (uint32_t k = 0; k < op->n_regions; k++)
            regions[k] = renamed(p, of, first, &op->regions[k]);
        op->attrs = attrs;
        op->regions = regions;
        ops[i] = op;
    }
    out.ops = ops;
    return out;
}

// Adds the functions of a program, main under the name of the operation.
static const char *add_functions(struct portable *p, const char *name,
                                 const struct mlir_program *of)
{
    uint32_t first = p->functions.count;
    const char *main = NULL;
    for (uint32_t i = 0; i < of->n_functions; i++) {
        struct mlir_function f = of->functions[i];
        bool is_main = !strcmp(f.name, "main");
        f.name = free_name(p, is_main ? name : f.name);
        f.is_private = true;
        main = is_main ? f.name : main;
        vec_push(p->arena, &p->functions, f);
    }
    for (uint32_t i = 0; i < of->n_functions; i++) {
        struct mlir_block *body = arena_new(p->arena, struct mlir_block);
        *body = renamed(p, of, first, of->functions[i].body);
        p->functions.at[first + i].body = body;
    }
    return main;
}

static bool has_extents(uint32_t n, struct mlir_value *const *values)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i]->type->kind != MLIR_TENSOR || mlir_elements_of(values[i]->type) < 0)
            return false;
    return true;
}

// Whether what was written is of the types of the operation: those of fewer bits than jot has are others.
static bool has_types(const struct mlir_function *f, const struct mlir_op *op)
{
    const struct mlir_op *end = f->body->ops[f->body->n_ops - 1];
    return f->body->n_args == op->n_operands && end->n_operands == op->n_results &&
           same_types(op->n_operands, f->body->args, op->operands) &&
           same_types(op->n_results, end->operands, op->results);
}

static const char *function_of_op(struct portable *p, const struct mlir_op *op)
{
    for (uint32_t i = 0; i < p->made.count; i++)
        if (same_op(p->made.at[i].op, op))
            return p->made.at[i].name;
    vec_push(p->arena, &p->made, (struct made){.op = op});
    struct made *m = &p->made.at[p->made.count - 1];
    bool is_known =
        has_extents(op->n_operands, op->operands) && has_extents(op->n_results, op->results);
    if (is_known)
        m->program = write_op(p->from->file, op);
    if (!is_known ||
        (m->program && !has_types(mlir_function_find(m->program->tree, "main"), op)))
        fail(p, op, "it has no portable form on values of %s",
             is_known ? "these types" : "unknown extents");
    else if (!m->program)
        p->status = status_last();
    else
        m->name = add_functions(p, op->name, m->program->tree);
    return m->name;
}

// ---- the program ----

static struct mlir_op *call_of(struct portable *p, const struct mlir_op *op)
{
    struct mlir_op *call = arena_copy(p->arena, op, sizeof *op);
    struct mlir_named *callee = arena_new(p->arena, struct mlir_named);
    const char *name = function_of_op(p, op);
    *callee = (struct mlir_named){"callee", symbol(p->arena, name ? name : "")};
    call->row = &mlir_rows[MLIR_OP_func_call];
    call->name = "func.call";
    call->attrs = callee;
    call->n_attrs = 1;
    return call;
}

static struct mlir_block portable_block(struct portable *p, const struct mlir_block *block)
{
    struct mlir_block out = *block;
    if (!has_foreign(block))
        return out;
    struct mlir_op **ops = arena_array(p->arena, struct mlir_op *, block->n_ops + 1);
    for (uint32_t i = 0; i < block->n_ops && !p->status; i++) {
        ops[i] = block->ops[i];
        if (is_foreign(ops[i])) {
            ops[i] = call_of(p, ops[i]);
            continue;
        }
        struct mlir_block *regions =
            arena_array(p->arena, struct mlir_block, ops[i]->n_regions + 1);
        for (uint32_t k = 0; k < ops[i]->n_regions; k++)
            regions[k] = portable_block(p, &ops[i]->regions[k]);
        ops[i] = arena_copy(p->arena, ops[i], sizeof *ops[i]);
        ops[i]->regions = regions;
    }
    out.ops = ops;
    return out;
}

static void make_portable(struct portable *p, struct mlir_program *out)
{
    for (uint32_t i = 0; i < p->from->n_functions; i++)
        vec_push(p->arena, &p->functions, p->from->functions[i]);
    for (uint32_t i = 0; i < p->from->n_functions && !p->status; i++) {
        if (!p->functions.at[i].body || !has_foreign(p->functions.at[i].body))
            continue;
        struct mlir_block *body = arena_new(p->arena, struct mlir_block);
        *body = portable_block(p, p->from->functions[i].body);
        p->functions.at[i].body = body;
    }
    *out = *p->from;
    out->n_functions = p->functions.count;
    out->functions = p->functions.at;
}

static jot_status write_guarded(struct portable *p)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    struct mlir_program program;
    make_portable(p, &program);
    jot_status status = p->status ? p->status : mlir_write_bytecode(p->out, &program);
    arena_guard_close(&guard);
    return status;
}

jot_status portable_write(struct strbuf *out, const struct mlir_program *from)
{
    struct portable *p = arena_new(out->arena, struct portable);
    *p = (struct portable){.arena = out->arena, .out = out, .from = from};
    jot_status status = write_guarded(p);
    for (uint32_t i = 0; i < p->made.count; i++)
        jot_program_release(p->made.at[i].program);
    return status;
}
