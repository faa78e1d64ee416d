// SPDX-License-Identifier: Apache-2.0
// Reads portable bytecode: the container of MLIR bytecode, versions 0 to 6, which holds strings,
// names of operations, attributes and types each once, and operations that number them.
//
// Operations and blocks become those of the tree as they are met; attributes and types are made
// when the first operation asks for them.  Memory is in proportion to the bytes: no
// count is believed that the bytes left could not hold.
#include "interop/bytecode.h"

#include "base/status.h"
#include "interop/write_text.h"

#include <inttypes.h>

// ---- operations ----

enum {
    HAS_ATTRS = 1,
    HAS_RESULTS = 2,
    HAS_OPERANDS = 4,
    HAS_SUCCESSORS = 8,
    HAS_REGIONS = 16,
    HAS_USES = 32,
    HAS_PROPERTIES = 64,
};

// Values of a region have the numbers behind all those of the regions around it; a region that is
// isolated begins anew.
struct reader {
    struct bytecode b;
    VEC(struct mlir_value *) values;
    uint64_t promised; // numbers of values that are still to be made, each of some byte before
    const unsigned char *ir_end;
    uint32_t isolated;   // where the values of the isolated region begin
    uint32_t n_values;   // of the function
    bool is_in_function; // and not in a region of an operation
    VEC(struct mlir_function) functions;
    VEC(struct mlir_named) attrs; // of the module, with its meshes
    struct mlir_program *program;
};

struct scope {
    uint32_t next, end; // values to be made
};

static bool read_regions(struct reader *r, struct bytes *s, uint64_t head,
                         const struct bytecode_op *kind, struct mlir_op *op);

static struct mlir_value *new_value(struct reader *r, struct scope *scope, uint64_t type,
                                    const unsigned char *at)
{
    const struct mlir_type *t = bytecode_type(&r->b, type);
    if (scope->next == scope->end) {
        bytecode_fail(&r->b, at, "more values than the region has");
        return NULL;
    }
    struct mlir_value *v = arena_new(r->b.arena, struct mlir_value);
    v->type = t;
    v->number = r->n_values++;
    r->values.at[scope->next++] = v;
    r->promised--;
    return v;
}

static struct mlir_value *read_value(struct reader *r, struct bytes *s)
{
    const unsigned char *at = s->at;
    uint64_t n = bytecode_number(&r->b, s);
    uint32_t all = r->values.count - r->isolated;
    struct mlir_value *v = n < all ? r->values.at[r->isolated + n] : NULL;
    if (!v)
        bytecode_fail(&r->b, at, "value %" PRIu64 " before it is made", n);
    return v;
}

static struct mlir_value **read_operands(struct reader *r, struct bytes *s, uint32_t *out_n)
{
    uint64_t n = bytecode_count(&r->b, s, 1);
    struct mlir_value **values = arena_array(r->b.arena, struct mlir_value *, n);
    for (uint64_t i = 0; i < n && !r->b.status; i++)
        values[i] = read_value(r, s);
    *out_n = (uint32_t)n;
    return values;
}

static struct mlir_value **read_results(struct reader *r, struct bytes *s, struct scope *scope,
                                        uint32_t *out_n)
{
    uint64_t n = bytecode_count(&r->b, s, 1);
    struct mlir_value **values = arena_array(r->b.arena, struct mlir_value *, n);
    for (uint64_t i = 0; i < n && !r->b.status; i++) {
        const unsigned char *at = s->at;
        values[i] = new_value(r, scope, bytecode_number(&r->b, s), at);
    }
    *out_n = (uint32_t)n;
    return values;
}

// The order of uses of n values, which is of no use here.
static void skip_uses(struct bytecode *b, struct bytes *s, uint32_t n)
{
    uint64_t count = n > 1 ? bytecode_count(b, s, 1) : 1;
    for (uint64_t i = 0; i < count && !b->status; i++) {
        if (n > 1)
            bytecode_number(b, s);
        uint64_t indices = bytecode_number(b, s) >> 1;
        for (uint64_t k = 0; k < indices && !b->status; k++)
            bytecode_number(b, s);
    }
}

// What stands before the regions of an operation.
struct head {
    const struct bytecode_op *kind;
    const unsigned char *at;
    unsigned char mask;
    uint64_t location;
    const struct mlir_attr *dictionary;
    struct bytes *properties;
    struct bytes own_properties;
};

static void read_head(struct reader *r, struct bytes *s, struct head *h)
{
    struct bytecode *b = &r->b;
    h->at = b->op = s->at;
    uint64_t name = bytecode_number(b, s);
    h->mask = bytecode_byte(b, s);
    h->location = bytecode_number(b, s);
    if (!b->status && name >= b->n_ops)
        bytecode_fail(b, h->at, "operation %" PRIu64 " of %" PRIu64, name, b->n_ops);
    if (h->mask & HAS_ATTRS)
        h->dictionary = bytecode_attr(b, bytecode_number(b, s));
    if (h->dictionary && h->dictionary->kind != MLIR_DICTIONARY)
        bytecode_fail(b, h->at, "attributes that are no dictionary");
    if (h->mask & HAS_PROPERTIES) {
        uint64_t n = bytecode_number(b, s);
        if (n < b->n_properties) {
            h->own_properties = b->properties[n];
            h->properties = &h->own_properties;
        } else {
            bytecode_fail(b, h->at, "properties %" PRIu64 " of %" PRIu64, n, b->n_properties);
        }
    }
    if (!b->status)
        h->kind = &b->ops[name];
}

static struct mlir_place place_of(const struct bytecode *b, const unsigned char *at)
{
    return (struct mlir_place){.line = 0, .column = (uint64_t)(at - b->begin)};
}

// Fields of operations that are no part of a function: their attributes and no more.
static struct mlir_op read_attributes(struct reader *r, struct head *h)
{
    struct mlir_op op = {.row = h->kind->row, .name = h->kind->name};
    bool has_fields = h->kind->n_fields != 0;
    bool is_strange = !has_fields && h->properties && op.row && *op.row->attrs &&
                      !strcmp(op.row->dialect, "chlo");
    if (is_strange)
        bytecode_fail(&r->b, h->at, "the attributes of %s are not in the portable form",
                      op.name);
    bytecode_attributes(&r->b, h->kind, &op, has_fields ? h->properties : NULL, h->dictionary);
    return op;
}

static struct mlir_op *read_op(struct reader *r, struct bytes *s, struct scope *scope)
{
    struct bytecode *b = &r->b;
    struct head h = {0};
    read_head(r, s, &h);
    if (b->status)
        return NULL;
    struct mlir_op *op = arena_new(b->arena, struct mlir_op);
    *op = read_attributes(r, &h);
    op->place = place_of(b, h.at);
    const struct mlir_attr *location = bytecode_attr(b, h.location);
    op->location =
        location && location->kind == MLIR_LOCATION && location->text ? location : NULL;
    if (op->row && op->row->code == MLIR_OP_stablehlo_return && r->is_in_function) {
        op->row = &mlir_rows[MLIR_OP_func_return];
        op->name = "func.return";
    }
    if (h.mask & HAS_RESULTS)
        op->results = read_results(r, s, scope, &op->n_results);
    if (h.mask & HAS_OPERANDS)
        op->operands = read_operands(r, s, &op->n_operands);
    if (h.mask & HAS_SUCCESSORS)
        bytecode_fail(b, h.at, "%s goes on in another block, which is not read", op->name);
    if (h.mask & HAS_USES)
        skip_uses(b, s, op->n_results);
    if (h.mask & HAS_REGIONS && !read_regions(r, s, bytecode_number(b, s), h.kind, op))
        return NULL;
    return b->status ? NULL : op;
}

static void read_arguments(struct reader *r, struct bytes *s, struct scope *scope,
                           struct mlir_block *block)
{
    struct bytecode *b = &r->b;
    uint64_t n = bytecode_count(b, s, 1);
    struct mlir_value **args = arena_array(b->arena, struct mlir_value *, n);
    for (uint64_t i = 0; i < n && !b->status; i++) {
        const unsigned char *at = s->at;
        uint64_t type = bytecode_number(b, s);
        bool has_location = b->version < 4 || type & 1;
        uint64_t location = has_location ? bytecode_number(b, s) : 0;
        args[i] = new_value(r, scope, b->version < 4 ? type : type >> 1, at);
        if (has_location && args[i])
            args[i]->called = bytecode_location_name(b, location);
    }
    block->args = args;
    block->n_args = (uint32_t)n;
    if (b->version >= 3 && bytecode_byte(b, s))
        skip_uses(b, s, block->n_args);
}

static void read_block(struct reader *r, struct bytes *s, struct scope *scope,
                       struct mlir_block *block)
{
    struct bytecode *b = &r->b;
    const unsigned char *at = s->at;
    uint64_t head = bytecode_number(b, s);
    if (head & 1)
        read_arguments(r, s, scope, block);
    VEC(struct mlir_op *) ops = {0};
    for (uint64_t i = 0; i < head >> 1 && !b->status; i++)
        vec_push(b->scratch, &ops, read_op(r, s, scope));
    bool ends = ops.count && vec_last(&ops) && vec_last(&ops)->row &&
                (vec_last(&ops)->row->code == MLIR_OP_func_return ||
                 vec_last(&ops)->row->code == MLIR_OP_stablehlo_return ||
                 vec_last(&ops)->row->code == MLIR_OP_sdy_return);
    if (!ends)
        bytecode_fail(b, at, "a block that does not end in a return");
    block->ops = arena_copy(b->arena, ops.at, ops.count * sizeof *ops.at);
    block->n_ops = ops.count;
}

// Opens the scope of the values of a region of one block.
static bool open_region(struct reader *r, struct bytes *s, struct scope *scope)
{
    struct bytecode *b = &r->b;
    const unsigned char *at = s->at;
    uint64_t blocks = bytecode_number(b, s);
    uint64_t n = blocks ? bytecode_number(b, s) : 0;
    if (blocks != 1)
        bytecode_fail(b, at, "a region of %" PRIu64 " blocks, where one is read", blocks);
    else if (n > (size_t)(s->end - s->at) || r->promised + n > (size_t)(r->ir_end - s->at) ||
             r->values.count + n > UINT32_MAX / 2)
        bytecode_fail(b, at, "%" PRIu64 " values in %zu bytes", n, (size_t)(s->end - s->at));
    if (b->status)
        return false;
    scope->next = r->values.count;
    vec_reserve(b->scratch, &r->values, r->values.count + (uint32_t)n);
    if (n)
        memset(r->values.at + r->values.count, 0, n * sizeof *r->values.at);
    scope->end = r->values.count = r->values.count + (uint32_t)n;
    r->promised += n;
    return true;
}

static void close_region(struct reader *r, uint32_t begin, struct scope *scope)
{
    r->promised -= scope->end - scope->next;
    r->values.count = begin;
}

static void read_region(struct reader *r, struct bytes *s, struct mlir_block *block)
{
    struct scope scope;
    uint32_t begin = r->values.count;
    if (!open_region(r, s, &scope))
        return;
    read_block(r, s, &scope, block);
    close_region(r, begin, &scope);
}

// The bytes of the regions of an operation: those that are isolated lie in a section.
static struct bytes begin_regions(struct bytecode *b, struct bytes *s, uint64_t head)
{
    int id;
    return head & 1 && b->version >= 2 ? bytecode_section(b, s, &id) : *s;
}

static bool read_regions(struct reader *r, struct bytes *s, uint64_t head,
                         const struct bytecode_op *kind, struct mlir_op *op)
{
    struct bytecode *b = &r->b;
    struct bytes inner = begin_regions(b, s, head);
    bool is_isolated = head & 1, is_inner = is_isolated && b->version >= 2;
    if (head >> 1 > (size_t)(inner.end - inner.at) || b->depth >= MLIR_MAX_DEPTH) {
        bytecode_fail(b, b->op, "the regions of %s are too %s", kind->name,
                      b->depth >= MLIR_MAX_DEPTH ? "deep" : "many");
        return false;
    }
    uint32_t outer = r->isolated;
    bool was_in_function = r->is_in_function;
    r->isolated = is_isolated ? r->values.count : outer;
    r->is_in_function = false;
    b->depth++;
    op->n_regions = (uint32_t)(head >> 1);
    struct mlir_block *regions = arena_array(b->arena, struct mlir_block, op->n_regions);
    for (uint32_t i = 0; i < op->n_regions && !b->status; i++)
        read_region(r, &inner, &regions[i]);
    op->regions = regions;
    b->depth--;
    r->isolated = outer;
    r->is_in_function = was_in_function;
    if (!is_inner)
        *s = inner;
    return !b->status;
}

// ---- functions and modules ----

static const struct mlir_attr *const *read_dictionaries(struct reader *r,
                                                        const struct mlir_attr *array,
                                                        uint32_t n, const unsigned char *at)
{
    if (!array || !array->n)
        return NULL;
    bool is_right = array->kind == MLIR_ARRAY && array->n == n;
    for (size_t i = 0; is_right && i < n; i++)
        is_right = array->parts[i]->kind == MLIR_DICTIONARY;
    if (!is_right)
        bytecode_fail(&r->b, at,
                      "attributes of arguments or results that are no dictionary of each");
    return is_right ? array->parts : NULL;
}

static bool is_body_of(const struct mlir_block *body, const struct mlir_type *type)
{
    bool is = body->n_args == type->n_inputs;
    for (uint32_t i = 0; is && i < body->n_args; i++)
        is = mlir_types_equal(body->args[i]->type, type->parts[i]);
    const struct mlir_op *end = body->ops[body->n_ops - 1];
    is = is && end->n_operands == type->n_parts - type->n_inputs;
    for (uint32_t i = 0; is && i < end->n_operands; i++)
        is = mlir_types_equal(end->operands[i]->type, type->parts[type->n_inputs + i]);
    return is;
}

static void read_function(struct reader *r, struct bytes *s, struct head *h)
{
    struct bytecode *b = &r->b;
    struct mlir_op op = read_attributes(r, h);
    if (b->status)
        return;
    const struct mlir_attr *type = mlir_attr_find(&op, "function_type");
    const char *name = mlir_text(&op, "sym_name"),
               *visibility = mlir_text(&op, "sym_visibility");
    if (!name || !type || type->kind != MLIR_TYPE || type->type->kind != MLIR_FUNCTION) {
        bytecode_fail(b, h->at, "a function without a name or a type");
        return;
    }
    struct mlir_function f = {.name = name, .type = type->type, .place = place_of(b, h->at)};
    f.is_private = visibility && !strcmp(visibility, "private");
    f.args = read_dictionaries(r, mlir_attr_find(&op, "arg_attrs"), f.type->n_inputs, h->at);
    f.results = read_dictionaries(r, mlir_attr_find(&op, "res_attrs"),
                                  f.type->n_parts - f.type->n_inputs, h->at);
    uint64_t head = h->mask & HAS_REGIONS ? bytecode_number(b, s) : 0;
    struct bytes inner = begin_regions(b, s, head);
    bool is_isolated = head & 1; // which functions of old programs are not
    if (head >> 1 != 1)
        bytecode_fail(b, h->at, "function %s has no body", name);
    struct mlir_block *body = arena_new(b->arena, struct mlir_block);
    uint32_t outer = r->isolated;
    r->isolated = is_isolated ? r->values.count : outer;
    r->n_values = 0;
    r->is_in_function = true;
    if (!b->status)
        read_region(r, &inner, body);
    r->is_in_function = false;
    r->isolated = outer;
    if (!b->status && !is_body_of(body, f.type))
        bytecode_fail(b, h->at,
                      "the arguments or results of function %s are not those of its type",
                      name);
    f.body = body;
    f.n_values = r->n_values;
    vec_push(b->scratch, &r->functions, f);
    if (!is_isolated || b->version < 2)
        *s = inner;
}

// A mesh of devices is an attribute of the module.
static void read_mesh(struct reader *r, struct head *h)
{
    struct bytecode *b = &r->b;
    struct mlir_op op = read_attributes(r, h);
    const struct mlir_attr *mesh = mlir_attr_find(&op, "mesh");
    const char *name = mlir_text(&op, "sym_name");
    if (b->status || !name || !mesh || mesh->kind != MLIR_OPAQUE) {
        bytecode_fail(b, h->at, "a mesh has a sym_name, and a mesh");
    } else if (bytecode_spend(b, strlen(name) + mesh->n)) {
        struct mlir_attr *a = bytecode_new_attr(b, MLIR_OPAQUE);
        a->text = write_mesh(b->arena, name, mesh->text);
        vec_push(b->scratch, &r->attrs, (struct mlir_named){"sdy.mesh", a});
    }
}

// Other operations of a module say nothing on one device: they are left out.
static void read_other(struct reader *r, struct bytes *s, struct head *h)
{
    struct bytecode *b = &r->b;
    if (h->mask & (HAS_RESULTS | HAS_OPERANDS | HAS_SUCCESSORS | HAS_REGIONS))
        bytecode_fail(b, h->at, "%s where functions stand", h->kind->name);
    if (h->mask & HAS_USES)
        skip_uses(b, s, 0);
    if (h->kind->row && h->kind->row->code == MLIR_OP_sdy_mesh)
        read_mesh(r, h);
}

static void read_module(struct reader *r, struct bytes *s, struct head *h)
{
    struct bytecode *b = &r->b;
    uint64_t head = h->mask & HAS_REGIONS ? bytecode_number(b, s) : 0;
    struct bytes inner = begin_regions(b, s, head);
    struct scope scope;
    if (strcmp(h->kind->name, "builtin.module") || head >> 1 != 1) {
        bytecode_fail(b, h->at, "%s where the module should be", h->kind->name);
        return;
    }
    for (size_t i = 0; h->dictionary && i < h->dictionary->n; i++)
        vec_push(b->scratch, &r->attrs, h->dictionary->named[i]);
    if (!open_region(r, &inner, &scope))
        return;
    uint64_t block = bytecode_number(b, &inner);
    if (block & 1)
        bytecode_fail(b, inner.at, "a module with arguments");
    for (uint64_t i = 0; i < block >> 1 && !b->status; i++) {
        struct head op = {0};
        read_head(r, &inner, &op);
        if (!b->status && op.kind->row && op.kind->row->code == MLIR_OP_func_func)
            read_function(r, &inner, &op);
        else if (!b->status)
            read_other(r, &inner, &op);
    }
}

static void read_ir(struct reader *r, struct bytes s)
{
    struct bytecode *b = &r->b;
    struct head h = {0};
    r->ir_end = s.end;
    if (bytecode_number(b, &s) != 1 << 1)
        bytecode_fail(b, s.at, "more than one module");
    read_head(r, &s, &h);
    if (!b->status)
        read_module(r, &s, &h);
    r->program->n_attrs = r->attrs.count;
    r->program->attrs = arena_copy(b->arena, r->attrs.at, r->attrs.count * sizeof *r->attrs.at);
    r->program->n_functions = r->functions.count;
    r->program->functions =
        arena_copy(b->arena, r->functions.at, r->functions.count * sizeof *r->functions.at);
}

struct request {
    struct mlir_memory *memory;
    const char *file;
    const unsigned char *bytes;
    size_t n;
};

static jot_status read_with(struct arena *scratch, struct mlir_program *p, void *ctx)
{
    const struct request *q = ctx;
    struct reader *r = arena_new(scratch, struct reader);
    p->file = arena_text(p->arena, q->file);
    p->memory = q->memory;
    r->program = p;
    r->b = (struct bytecode){.program = p,
                             .arena = p->arena,
                             .scratch = scratch,
                             .file = q->file,
                             .begin = q->bytes,
                             .end = q->bytes + q->n,
                             .op = q->bytes,
                             .allowance = ((size_t)1 << 20) + 64 * q->n};
    struct bytes ir = bytecode_open(&r->b);
    if (!r->b.status)
        read_ir(r, ir);
    p->memory = NULL;
    return r->b.status;
}

jot_status mlir_read_bytecode_in(struct mlir_memory *m, const char *file, const void *bytes,
                                 size_t n, struct mlir_program **out)
{
    return mlir_make(read_with, &(struct request){m, file, bytes, n}, out);
}

jot_status mlir_read_bytecode(const char *file, const void *bytes, size_t n,
                              struct mlir_program **out)
{
    return mlir_read_bytecode_in(NULL, file, bytes, n, out);
}
