// SPDX-License-Identifier: Apache-2.0
#include "interop/mlir.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "runtime/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct mlir_element_row mlir_elements[MLIR_N_ELEMENTS] = {
#define ELEMENT(name, text, bits, kind, vhlo, export, dtype)                                   \
    {#text, bits, #kind[0], vhlo, export, JOT_##dtype},
#include "interop/elements.def"
#undef ELEMENT
};

const struct mlir_row mlir_rows[MLIR_N_CODES] = {
#define HLO(dialect, name, version, regions, form, attrs)                                      \
    {#dialect, #name, MLIR_OP_##dialect##_##name, version, regions, MLIR_FORM_##form, attrs},
#include "interop/stablehlo.def"
#undef HLO
};

static bool is_text(const char *text, const char *found, size_t n)
{
    return strlen(text) == n && memcmp(text, found, n) == 0;
}

enum mlir_element mlir_element_find(const char *text, size_t n)
{
    int e = 0;
    while (e < MLIR_N_ELEMENTS && !is_text(mlir_elements[e].text, text, n))
        e++;
    return (enum mlir_element)e;
}

const struct mlir_row *mlir_row_find(const char *dialect, const char *name, size_t n)
{
    for (int i = 0; i < MLIR_N_CODES; i++)
        if (is_text(mlir_rows[i].name, name, n) && !strcmp(mlir_rows[i].dialect, dialect))
            return &mlir_rows[i];
    return NULL;
}

struct request {
    mlir_maker *make;
    void *ctx;
    struct mlir_program *program;
    struct arena *arena; // of the program
};

static jot_status make_with(struct arena *scratch, void *ctx)
{
    struct request *q = ctx;
    q->program = arena_new(q->arena, struct mlir_program);
    q->program->arena = q->arena;
    return q->make(scratch, q->program, q->ctx);
}

jot_status mlir_make(mlir_maker *make, void *ctx, struct mlir_program **out)
{
    struct request q = {make, ctx, NULL, arena_create()};
    if (!q.arena)
        return status_out_of_memory();
    jot_status status = arena_lend(make_with, &q);
    if (status == JOT_OK)
        *out = q.program;
    else if (q.program)
        mlir_release(q.program);
    else
        arena_release(q.arena);
    return status;
}

void mlir_release(struct mlir_program *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->arrays.count; i++)
        jot_array_release(p->arrays.at[i]);
    arena_release(p->arena);
}

// ---- large constants

void mlir_memory_leave(struct mlir_memory *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->uses, 1, memory_order_acq_rel) > 1)
        return;
    if (m->release)
        m->release(m->bytes, m->ctx);
    memory_release(m);
}

static void leave(const void *data, void *memory)
{
    (void)data;
    mlir_memory_leave(memory);
}

// Whether n bytes are elements of a type of jot, and many.
static bool is_large(const struct mlir_attr *a, size_t n)
{
    int64_t elements = mlir_elements_of(a->type);
    size_t size = jot_dtype_size(mlir_elements[a->type->element].dtype);
    return n >= MLIR_LARGE && elements >= 0 && n / size == (uint64_t)elements && n % size == 0;
}

// Adds the array, unless memory is out.
static void add_array(struct mlir_program *p, struct mlir_attr *a, jot_array *array)
{
    if (!array)
        arena_exhausted();
    vec_last(&p->arrays) = array;
    a->array = array;
    a->bytes = array->data;
}

bool mlir_stays(struct mlir_program *p, struct mlir_attr *a, const unsigned char *begin,
                const unsigned char *at)
{
    if (!p->memory || !is_large(a, a->n))
        return false;
    jot_dtype dtype = mlir_elements[a->type->element].dtype;
    size_t off = (uintptr_t)at % jot_dtype_size(dtype_real(dtype));
    if (off > (size_t)(at - begin))
        return false;
    unsigned char *to = (unsigned char *)(uintptr_t)(at - off);
    if (off)
        memmove(to, at, a->n);
    vec_push(p->arena, &p->arrays, NULL);
    atomic_fetch_add_explicit(&p->memory->uses, 1, memory_order_relaxed);
    jot_array *array =
        rt_array_create_over(dtype, a->type->rank, a->type->dims, to, leave, p->memory);
    if (!array)
        mlir_memory_leave(p->memory);
    add_array(p, a, array);
    return true;
}

unsigned char *mlir_make_room(struct mlir_program *p, struct mlir_attr *a, size_t n)
{
    if (!is_large(a, n))
        return arena_allocate(p->arena, n + 1);
    vec_push(p->arena, &p->arrays, NULL);
    jot_dtype dtype = mlir_elements[a->type->element].dtype;
    add_array(p, a, rt_array_create(dtype, a->type->rank, a->type->dims));
    return a->array->data;
}

// ---- asking

const struct mlir_attr *mlir_attr_find(const struct mlir_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!strcmp(op->attrs[i].name, name))
            return op->attrs[i].attr;
    return NULL;
}

int64_t mlir_int(const struct mlir_op *op, const char *name, int64_t otherwise)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    if (!a)
        return otherwise;
    if (a->kind == MLIR_UNIT)
        return 1;
    return a->kind == MLIR_INT || a->kind == MLIR_BOOL ? a->integer : otherwise;
}

const int64_t *mlir_ints(const struct mlir_op *op, const char *name, size_t *out_n)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    bool is_list = a && a->kind == MLIR_INTS;
    *out_n = is_list ? a->n : 0;
    return is_list && a->n ? a->numbers : NULL;
}

bool mlir_is_mesh_axes(const struct mlir_attr *a)
{
    static const char start[] = "#stablehlo.replica_group_mesh_axes<";
    return a->kind == MLIR_OPAQUE && !strncmp(a->text, start, strlen(start));
}

bool mlir_table_of(const char *name, const struct mlir_attr *list, int64_t *dims)
{
    bool is_pairs = (!strcmp(name, "padding") || !strcmp(name, "source_target_pairs")) &&
                    list->n % 2 == 0; // an odd number of them stays a list
    bool is_table = list->type && list->type->kind == MLIR_TENSOR && list->type->rank == 2;
    int64_t n = (int64_t)list->n;
    dims[0] = is_table ? list->type->dims[0] : is_pairs ? n / 2 : n > 0;
    dims[1] = is_table ? list->type->dims[1] : is_pairs ? 2 : n;
    return is_pairs || !strcmp(name, "replica_groups");
}

const char *mlir_text(const struct mlir_op *op, const char *name)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    bool has = a && (a->kind == MLIR_STRING || a->kind == MLIR_SYMBOL || a->kind == MLIR_ENUM);
    return has ? a->text : NULL;
}

const struct mlir_function *mlir_function_find(const struct mlir_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_functions; i++)
        if (!strcmp(p->functions[i].name, name))
            return &p->functions[i];
    return NULL;
}

int64_t mlir_elements_of(const struct mlir_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(n, t->dims[i], &n))
            return -1;
    return n;
}

bool mlir_types_equal(const struct mlir_type *a, const struct mlir_type *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->element != b->element || a->rank != b->rank ||
        a->n_parts != b->n_parts || a->n_inputs != b->n_inputs)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    for (uint32_t i = 0; i < a->n_parts; i++)
        if (!mlir_types_equal(a->parts[i], b->parts[i]))
            return false;
    return a->kind != MLIR_OTHER || !strcmp(a->text, b->text);
}

static void print_parts(struct strbuf *s, const struct mlir_type *t, uint32_t first,
                        uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        strbuf_add(s, i > first ? ", " : "");
        mlir_print_type(s, t->parts[i]);
    }
}

void mlir_print_type(struct strbuf *s, const struct mlir_type *t)
{
    switch (t->kind) {
    case MLIR_TENSOR:
        strbuf_add(s, "tensor<");
        for (int i = 0; i < t->rank; i++) {
            if (t->dims[i] < 0)
                strbuf_add(s, "?x");
            else
                strbuf_printf(s, "%lldx", (long long)t->dims[i]);
        }
        strbuf_printf(s, "%s>", mlir_elements[t->element].text);
        break;
    case MLIR_SCALAR:
        strbuf_add(s, mlir_elements[t->element].text);
        break;
    case MLIR_TUPLE:
        strbuf_add(s, "tuple<");
        print_parts(s, t, 0, t->n_parts);
        strbuf_add(s, ">");
        break;
    case MLIR_FUNCTION: {
        bool is_one =
            t->n_parts - t->n_inputs == 1 && t->parts[t->n_inputs]->kind != MLIR_FUNCTION;
        strbuf_add(s, "(");
        print_parts(s, t, 0, t->n_inputs);
        strbuf_add(s, is_one ? ") -> " : ") -> (");
        print_parts(s, t, t->n_inputs, t->n_parts);
        strbuf_add(s, is_one ? "" : ")");
        break;
    }
    case MLIR_TOKEN:
        strbuf_add(s, "!stablehlo.token");
        break;
    default:
        strbuf_add(s, t->text);
    }
}

jot_status mlir_fail(jot_status status, const char *file, const struct mlir_op *op,
                     const char *format, va_list args)
{
    char message[1024], place[64] = " ";
    vsnprintf(message, sizeof message, format, args);
    if (op && op->place.line)
        snprintf(place, sizeof place, "%u:%" PRIu64 ": ", op->place.line, op->place.column);
    else if (op)
        snprintf(place, sizeof place, " offset %" PRIu64 ": ", op->place.column);
    return status_fail(status, "%s:%s%s%s%s", file, place, op ? op->name : "", op ? ": " : "",
                       message);
}
