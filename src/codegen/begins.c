// SPDX-License-Identifier: Apache-2.0
// Kernels, and phases of a loop of a GPU, that are equal but for where in their arrays they begin to read are one
// function, which gets the addresses: those of layers, each of which has its part of an array of weights.
//
//     load w[i + 16*j + 512]     =>     load w[i + 16*j], of w + 512 elements
#include "codegen/begins.h"
#include "base/hash.h"

// The least element that the index may be.
static int64_t least_of(const struct nest *n, const struct nest_index *x)
{
    int64_t least = x->constant;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        least += t->factor < 0 ? t->factor * (n->axes.at[t->id].extent - 1) : 0;
    }
    return least;
}

static bool is_known(const struct nest_statement *s)
{
    return s->kind == NEST_LOAD && s->guard == NEST_NONE && !nest_index_has_values(&s->index);
}

// By buffer: the first element that is read, or one before it that is aligned as the array is; 0 where that
// is not known, or of locals, results, what nothing reads, and constants, whose elements are known by their numbers.
static int64_t *begins_of(struct arena *arena, const struct nest *n, unsigned alignment)
{
    int64_t *begins = arena_array(arena, int64_t, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        begins[i] = n->buffers.at[i].role == NEST_IN && !n->buffers.at[i].data
                        ? n->buffers.at[i].count
                        : 0;
    nest_for_all (s, n) {
        for (int k = 0; s->kind == NEST_CONTRACT && k < 2; k++)
            begins[s->source[k]] = 0;
        if (s->buffer == NEST_NONE)
            continue;
        int64_t least = is_known(s) ? least_of(n, &s->index) : 0;
        if (least < begins[s->buffer])
            begins[s->buffer] = least;
    }
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (begins[i] == n->buffers.at[i].count)
            begins[i] = 0;
        else
            begins[i] -= begins[i] % (alignment / jot_dtype_size(n->buffers.at[i].dtype));
    return begins;
}

// Has the nest read so many elements before, or with a sign of -1 behind, where it does.
static void move(struct nest *n, const int64_t *begins, int sign)
{
    for (uint32_t i = 0; i < n->statements.count; i++) {
        struct nest_statement *s = &n->statements.at[i];
        if (s->kind == NEST_LOAD)
            s->index.constant -= sign * begins[s->buffer];
    }
}

// What the step uses of its memories from where its nest begins to read them.
static void set_ranges(struct arena *arena, const struct nest_program *p, struct nest_step *t,
                       const int64_t *begins)
{
    const struct nest *n = p->nests.at[t->nest];
    struct nest_range *ranges = arena_array(arena, struct nest_range, t->n_memories + 1);
    for (uint32_t i = 0, k = 0; i < n->buffers.count; i++) {
        if (n->buffers.at[i].role == NEST_LOCAL)
            continue;
        ranges[k] = nest_step_range(p, t, k);
        ranges[k].first += begins[i];
        ranges[k++].count -= begins[i];
    }
    t->ranges = ranges;
}

// Of each operand of nests that are one there are as many elements as behind the last element where one begins.
static void take_least(int64_t *least, const struct nest *n, const int64_t *begins)
{
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        int64_t left = n->buffers.at[i].count - begins[i];
        least[i] = least[i] < left ? least[i] : left;
    }
}

static void set_counts(struct nest *n, const int64_t *counts)
{
    for (uint32_t i = 0; i < n->buffers.count; i++)
        n->buffers.at[i].count = counts[i];
}

void cg_begins_share(struct arena *arena, struct nest_program *p, const bool *wanted,
                     unsigned alignment, uint32_t *of)
{
    struct hash_table table = {0};
    uint32_t n = p->nests.count;
    int64_t **begins = arena_array(arena, int64_t *, n + 1);
    int64_t **least = arena_array(arena, int64_t *, n + 1);
    bool *is_shared = arena_array(arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        of[i] = i;
        if (!wanted[i])
            continue;
        begins[i] = begins_of(arena, p->nests.at[i], alignment);
        move(p->nests.at[i], begins[i], 1);
        uint64_t h = nest_hash(p->nests.at[i]);
        for (struct hash_probe q = hash_probe(&table, h); hash_next(&table, &q);)
            if (nest_equal(p->nests.at[q.id], p->nests.at[i]))
                of[i] = q.id;
        if (of[i] == i) {
            hash_insert(arena, &table, h, i);
            least[i] = arena_array(arena, int64_t, p->nests.at[i]->buffers.count + 1);
            for (uint32_t k = 0; k < p->nests.at[i]->buffers.count; k++)
                least[i][k] = INT64_MAX;
        } else {
            is_shared[i] = is_shared[of[i]] = true;
        }
        take_least(least[of[i]], p->nests.at[i], begins[i]);
    }
    for (uint32_t i = 0; i < p->steps.count; i++) {
        struct nest_step *t = &p->steps.at[i];
        if (t->kind != NEST_STEP_KERNEL || !is_shared[t->nest])
            continue;
        set_ranges(arena, p, t, begins[t->nest]);
        t->nest = of[t->nest];
    }
    for (uint32_t i = 0; i < n; i++)
        if (is_shared[i])
            set_counts(p->nests.at[i], least[of[i]]);
        else if (wanted[i])
            move(p->nests.at[i], begins[i], -1);
}
