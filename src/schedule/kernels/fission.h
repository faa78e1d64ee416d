// SPDX-License-Identifier: Apache-2.0
// Loop fission (fission.c): a kernel that is split.
#ifndef SCHEDULE_KERNELS_FISSION_H
#define SCHEDULE_KERNELS_FISSION_H

#include "schedule/internal.h"

#define NO_PART UINT32_MAX

// The steps of each kernel.
struct kernel_steps {
    uint32_t *first, *next; // by nest, by step
};

struct fission {
    struct nest_program *program;
    const struct kernel_steps *steps;
    uint32_t first_step; // of the kernel
    struct arena *arena;
    bool always;    // whatever it gains: for tests
    struct nest *n; // a copy that is worked on
    nest_id par;    // the loop whose body is split, NEST_NONE: the kernel is
    uint32_t block; // the statements that are split
    uint32_t n_parts;
    uint32_t *part;   // by statement of the block: NO_PART for what may be made again
    bool *is_written; // by buffer, of the first so many: somebody writes its memory
    uint32_t n_known;
    uint32_t *operand;  // of the kernel's steps, by those; NEST_NONE: a local
    bool *is_crossing;  // by value: made in one part for another
    nest_id *memory_of; // by value that crosses: its buffer
};

static inline const struct nest_statement *fission_statement(const struct fission *f,
                                                             nest_id id)
{
    return &f->n->statements.at[id];
}

static inline bool fission_is_loop(const struct nest_statement *s)
{
    return s->body != NEST_NONE;
}

// Whether it belongs among the loops.
bool fission_is_anchored(const struct fission *f, const struct nest_statement *s);
// The kernel has nothing but what is known here.
bool fission_is_plain(const struct fission *f);
void fission_find_written(struct fission *f);
// The body of a par that is all of the kernel but plain statements, or the kernel's.
void fission_find_block(struct fission *f);
// The yield of a running fold, in its body.
uint32_t fission_yield_of(const struct fission *f, const struct nest_statement *scan);
// Whether the terms of the fold, or of the running fold, are to be loops of their own.
bool fission_wants_terms(const struct fission *f, nest_id id);
// Whether sums of the fold whose terms lie beside those of neighbouring points, by combine, are to be a fold of their
// own beside those whose terms lie beside one another.
bool fission_wants_apart(const struct fission *f, nest_id id, bool *is_along);
// Whether the block is a map and what stands before it, of elements alone.
bool fission_is_map_alone(const struct fission *f, uint32_t block);
// Whether points have one map, and are so few that it is rather a loop of all their elements.
bool fission_is_one_map(const struct fission *f);
// Whether all of the block is a loop that threads share where it is last, and what could stand in front of it and
// stands behind.
bool fission_wants_loop_last(const struct fission *f, uint32_t block);
bool fission_is_wanted(const struct fission *f);

// fission_accumulations.c: whether all that accumulates does so over folds of the block, in a way that is known here.
bool fission_knows_accumulations(const struct fission *f);
// Whether what accumulates over the fold is to be folds of its own.
bool fission_wants_accumulations(const struct fission *f, nest_id fold);
// Puts loops of these in the block; whether anything is left of the fold.
bool fission_part_accumulations(struct fission *f, nest_id fold, uint32_t block);

// fission_terms.c: what a statement, or all of a block, uses.
struct fission_uses {
    bool *values, *loads, *puts; // by value, by buffer
};
struct fission_uses fission_no_uses(const struct fission *f);
void fission_use(const struct fission *f, nest_id id, struct fission_uses *u);
void fission_use_block(const struct fission *f, uint32_t block, struct fission_uses *u);
// Writing.
struct nest_builder fission_builder_in(struct fission *f, uint32_t block);
nest_id fission_add_statement(struct fission *f, struct nest_statement s);
nest_id fission_add_buffer(struct fission *f, jot_dtype dtype, int64_t count);
uint32_t fission_new_block(struct fission *f);
void fission_append(struct fission *f, uint32_t block, nest_id id);
void fission_append_put(struct fission *f, uint32_t block, nest_id buffer, struct nest_index at,
                        nest_id value);
// Makes the value again.
void fission_append_load_of(struct fission *f, uint32_t block, nest_id buffer,
                            struct nest_index at, nest_id value);
// The index among all points of the loops, and how many there are.
struct nest_index fission_index_in(struct fission *f, nest_id outer, uint32_t n,
                                   const nest_id *axes, int64_t *count);
// Folds whose terms are loops of their own, or whose sums go apart, become several loops.
void fission_split_folds(struct fission *f);

#endif
