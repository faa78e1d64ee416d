// SPDX-License-Identifier: Apache-2.0
// Kernels that differ in numbers alone are one, which reads them from memory.
//
//     %0 = const 0x40000000 : f32             %0 = load numbers[0] : f32
//     ... mul %3, %0                     =>   ... mul %3, %0
//
// A program of many layers, terms or loops that a C loop writes has such kernels, and compiling is
// nearly all that they cost.  Of few the numbers stay in the code, where they cost nothing.  Integers
// stay too: what is known of an index may follow from them.
#include "schedule/internal.h"
#include "schedule/rewrites.h"

#include <string.h>

typedef VEC(nest_id) id_list;

// Kernels that are alike: the first of them, and in which numbers others differ.
struct alike {
    uint32_t first, count;
    bool *differs; // by number
};

struct sharing {
    struct nest_program *program;
    uint32_t least; // of a class that is one kernel
    VEC(struct alike) classes;
    uint32_t *class_of; // by kernel
    id_list *numbers; // by kernel: its constants that are no integers, in the order of the text
};

// The class of kernel i, in the table by what is alike.
static uint32_t find_class(struct sharing *f, struct hash_table *classes, uint32_t i)
{
    struct nest_program *p = f->program;
    uint64_t h = nest_hash_alike(p->nests.at[i]);
    for (struct hash_probe q = hash_probe(classes, h); hash_next(classes, &q);)
        if (nest_alike(p->nests.at[f->classes.at[q.id].first], p->nests.at[i]))
            return q.id;
    struct alike c = {.first = i};
    c.differs = arena_array(p->arena, bool, f->numbers[i].count + 1);
    vec_push(p->arena, &f->classes, c);
    hash_insert(p->arena, classes, h, f->classes.count - 1);
    return f->classes.count - 1;
}

static const int64_t *bits_of(const struct sharing *f, uint32_t kernel, uint32_t k)
{
    return f->program->nests.at[kernel]->statements.at[f->numbers[kernel].at[k]].bits;
}

static void find_alike(struct sharing *f)
{
    struct nest_program *p = f->program;
    struct hash_table classes = {0};
    f->class_of = arena_array(p->arena, uint32_t, p->nests.count + 1);
    f->numbers = arena_array(p->arena, id_list, p->nests.count + 1);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct nest *n = p->nests.at[i];
        nest_for_below (s, n, 0)
            if (nest_is_number(s))
                vec_push(p->arena, &f->numbers[i], nest_id_of(n, s));
        f->class_of[i] = find_class(f, &classes, i);
        struct alike *c = &f->classes.at[f->class_of[i]];
        c->count++;
        for (uint32_t k = 0; k < f->numbers[i].count; k++)
            c->differs[k] |=
                memcmp(bits_of(f, i, k), bits_of(f, c->first, k), 2 * sizeof(int64_t)) != 0;
    }
}

// The numbers of kernel i that are of this type and differ, in a memory of their own.
static uint32_t memory_of_numbers(struct sharing *f, uint32_t i, jot_dtype dtype)
{
    struct nest_program *p = f->program;
    const struct nest *n = p->nests.at[i];
    const struct alike *c = &f->classes.at[f->class_of[i]];
    size_t bytes = dtype_get(dtype)->bytes, count = 0;
    char *data = arena_allocate(p->arena, bytes * (f->numbers[i].count + 1));
    for (uint32_t k = 0; k < f->numbers[i].count; k++) {
        const struct nest_statement *s = &n->statements.at[f->numbers[i].at[k]];
        if (c->differs[k] && s->dtype == dtype)
            memcpy(data + bytes * count++, s->bits, bytes);
    }
    struct strbuf name = strbuf_make(p->arena);
    strbuf_printf(&name, "n%u", p->memories.count);
    vec_push(p->arena, &p->memories,
             (struct nest_memory){.kind = NEST_CONSTANT,
                                  .dtype = dtype,
                                  .count = (int64_t)count,
                                  .data = data,
                                  .name = name.text});
    return p->memories.count - 1;
}

// The numbers are read where they stood.
static void read_numbers(struct sharing *f, const struct alike *c, jot_dtype dtype)
{
    struct nest *n = f->program->nests.at[c->first];
    int64_t count = 0;
    for (uint32_t k = 0; k < f->numbers[c->first].count; k++) {
        struct nest_statement *s = &n->statements.at[f->numbers[c->first].at[k]];
        if (!c->differs[k] || s->dtype != dtype)
            continue;
        s->kind = NEST_LOAD;
        s->bits[0] = s->bits[1] = 0;
        s->buffer = n->buffers.count;
        s->index = nest_index_make(n->arena, count++, 0, NULL);
    }
    vec_push(n->arena, &n->buffers,
             (struct nest_buffer){
                 .name = "numbers", .dtype = dtype, .count = count, .role = NEST_IN});
}

static bool has_numbers(const struct sharing *f, const struct alike *c, jot_dtype dtype)
{
    const struct nest *n = f->program->nests.at[c->first];
    for (uint32_t k = 0; k < f->numbers[c->first].count; k++)
        if (c->differs[k] && n->statements.at[f->numbers[c->first].at[k]].dtype == dtype)
            return true;
    return false;
}

// What the steps of the kernels read besides: the numbers of one type.
static void add_memories(struct sharing *f, const struct alike *c, jot_dtype dtype)
{
    struct nest_program *p = f->program;
    uint32_t *numbers = arena_array(p->arena, uint32_t, p->nests.count + 1);
    uint32_t number = (uint32_t)(c - f->classes.at);
    for (uint32_t i = 0; i < p->nests.count; i++)
        if (f->class_of[i] == number)
            numbers[i] = memory_of_numbers(f, i, dtype);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        struct nest_step *t = &p->steps.at[i];
        if (t->kind != NEST_STEP_KERNEL || f->class_of[t->nest] != number)
            continue;
        uint32_t *memories = arena_array(p->arena, uint32_t, t->n_memories + 1);
        memcpy(memories, t->memories, t->n_memories * sizeof *memories);
        memories[t->n_memories++] = numbers[t->nest];
        t->memories = memories;
    }
}

// Leaves out the kernels that are another one.
static void drop_kernels(struct sharing *f)
{
    struct nest_program *p = f->program;
    uint32_t *to = arena_array(p->arena, uint32_t, p->nests.count + 1), count = 0;
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct alike *c = &f->classes.at[f->class_of[i]];
        bool is_other = c->count >= f->least && c->first != i;
        to[i] = is_other ? to[c->first] : count;
        if (!is_other)
            p->nests.at[count++] = p->nests.at[i];
    }
    p->nests.count = count;
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_KERNEL)
            p->steps.at[i].nest = to[p->steps.at[i].nest];
}

void schedule_share_kernels(struct nest_program *p, bool always)
{
    struct sharing f = {.program = p, .least = always ? 2 : COST_ALIKE};
    find_alike(&f);
    for (uint32_t i = 0; i < f.classes.count; i++) {
        const struct alike *c = &f.classes.at[i];
        for (jot_dtype d = 0; c->count >= f.least && d < DTYPE_COUNT; d++)
            if (has_numbers(&f, c, d)) {
                add_memories(&f, c, d);
                read_numbers(&f, c, d);
            }
    }
    drop_kernels(&f);
}
