// SPDX-License-Identifier: Apache-2.0
// What points.c, which finds steps over the same points, and points_write.c, which makes one kernel
// of them, share.
#ifndef SCHEDULE_KERNELS_POINTS_H
#define SCHEDULE_KERNELS_POINTS_H

#include "nest/program.h"
#include "schedule/plan/plan.h"

#define POINTS_LEAST_LAYERS 2 // products with small matrices that make it worth while

enum points_kind {
    POINTS_OTHER,
    POINTS_MAP,      // par n, j { ... }
    POINTS_FOLD,     // fold n { ... } and what follows
    POINTS_COLUMNS,  // par i, j { fold n { ... } ... }
    POINTS_LAYER,    // a product [N, k] [k, m]
    POINTS_GRADIENT, // a product [k, N] [N, m]
};

enum points_side { POINTS_BEFORE, POINTS_IN, POINTS_AFTER };

struct points_step {
    enum points_kind kind;
    enum points_side side;
    const struct nest *nest;
    uint32_t at;   // MAP, FOLD, COLUMNS: where the loop stands in the body of the kernel
    nest_id loop;  // and its statement
    nest_id fold;  // COLUMNS: the loop over points
    nest_id axis;  // whose points they are
    int64_t width; // and so many indices of it are one point
};

struct points {
    struct nest_program *program;
    struct arena *scratch;
    int64_t n; // how many points there are
    struct points_step *steps;
    // By memory: the kernel makes it, each element at its own point; and others see it too.
    bool *is_local, *is_exported;
};

// COLUMNS: where the fold over points stands in its loop.
static inline uint32_t points_fold_at(const struct points_step *t)
{
    const struct nest_statement *loop = &t->nest->statements.at[t->loop];
    const struct nest_block *body = &t->nest->blocks.at[loop->body];
    uint32_t i = 0;
    while (body->statements.at[i] != t->fold)
        i++;
    return i;
}

// The element of a point: the memory has `width` elements for each of them.
static inline int64_t points_width(const struct points *p, uint32_t memory)
{
    return p->program->memories.at[memory].count / p->n;
}

// ---- points_copy.c

struct points_term {
    int64_t factor;
    nest_id axis;
};

struct points_copy { // of one kernel into another
    struct points *p;
    struct nest_builder *b;
    const struct nest *from;
    nest_id *buffers, *values, *folds; // by those of `from`
    struct points_term *axes[2];       // by axis of `from`: what it is the sum of
    bool *is_local;                    // by buffer: drops the point from indices
    nest_id points;                    // the axis of the points
};

struct points_copy points_copier(struct points *p, struct nest_builder *b,
                                 const struct nest *from, nest_id points);
void points_set_axis(struct points_copy *c, nest_id from, nest_id to);
nest_id points_copy_axis(struct points_copy *c, nest_id from);
struct nest_combine points_combine(const struct points_copy *c, const struct nest_combine *x);
void points_copy_statement(struct points_copy *c, nest_id id);
void points_copy_range(struct points_copy *c, uint32_t block, uint32_t from, uint32_t to);
void points_copy_block(struct points_copy *c, uint32_t block);

// ---- points_product.c

// Whether the columns are sums of products of what is of rows and what is of columns.
bool points_is_products(const struct points *p, const struct points_step *t);
// Bytes of their factors of one point; 0 when they are none.
int64_t points_product_bytes(const struct points *p, const struct points_step *t);
// Writes them into buffers, sums over the loop.
void points_write_products(struct points_copy *c, const struct points_step *t,
                           const nest_id *results, nest_id loop);

// ---- points_split.c

// Makes two kernels of one that sums over more than points and stores numbers of points besides.
void points_split(struct nest_program *m, struct arena *scratch, int64_t n);

// ---- points_write.c

// Puts the kernel of all steps IN, and the steps that finish what it sums, in place of them.
void points_write(struct points *p);

// Whether the product is one of many rows with a small matrix.
bool points_is_layer(const struct nest_gemm *g);

// Whether a kernel goes over points with layers, and what it sums over them is of one type and
// without guards, so that a GPU may sum it afterwards.
bool points_is_network(const struct nest *n);

// How many numbers a kernel accumulates over its loops.
int64_t points_accumulated(const struct nest *n);

// Makes one kernel of steps over the same points when several of them are products with small
// matrices: what a point has is then in near memory from its first value to its last.  Where nothing is summed over
// the points a thread of a GPU has one alone, and least_alone of them are as many as keep it busy.
void schedule_points(struct nest_program *p, struct arena *scratch, int64_t least_alone);

#endif
