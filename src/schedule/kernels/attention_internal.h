// SPDX-License-Identifier: Apache-2.0
// What the passes of attention have in common: kernels of rows that become part of another one
// (attention_rows.c), and what a nest is asked for (attention_find.c).
#ifndef SCHEDULE_KERNELS_ATTENTION_INTERNAL_H
#define SCHEDULE_KERNELS_ATTENTION_INTERNAL_H

#include "schedule/internal.h"
#include "schedule/kernels/attention.h"

// What an operand of the rows' kernel becomes.
struct attention_part {
    enum {
        ATTENTION_OPERAND, // what it was
        ATTENTION_ROWS,    // a local
        ATTENTION_VALUE,   // of a row, a number that is read after it is put
        ATTENTION_NOTHING  // nobody reads it
    } kind;
    nest_id local;
    jot_dtype dtype; // of the local
    bool is_of_all;  // the local has all rows, else the one of the query
    nest_id value;
};

// A kernel of a point for each query, whose statements are copied in f32.
struct attention_rows {
    struct nest_program *p;
    struct nest_builder *b; // of the nest that is written
    const struct nest_step *step;
    const struct nest *from;
    const struct nest_statement *loop;
    int64_t queries, keys;
    nest_id *axes, *buffers, *values; // of `from` in the nest that is written
    struct attention_part *parts;     // by buffer
    bool fails;
};

// Looks at a step; false: it is no such kernel.
bool attention_rows_make(struct nest_program *p, uint32_t step, const struct nest_gemm *scores,
                         struct nest_builder *b, struct attention_rows *out);
// The buffer that stands for a memory, or NEST_NONE.
nest_id attention_rows_buffer(const struct attention_rows *r, uint32_t memory);
// Whether every access of a buffer is at the index of the point: a number of each row where width
// is 1, else all numbers along one axis, rows one behind the other.
bool attention_rows_walks(const struct attention_rows *r, nest_id buffer, int64_t width);
// An access of the buffer.
const struct nest_statement *attention_rows_access(const struct attention_rows *r,
                                                   nest_id buffer);
// Writes its locals, its operands that stay (to memories, from *n on), and what stands before its loop.
void attention_rows_begin(struct attention_rows *r, uint32_t *memories, uint32_t *n);
// Writes what stands in its loop, whose axes have been set.
void attention_rows_body(struct attention_rows *r);

// Where an operand of a product, whose matrices lie as strides say, has row `row` and column `column`
// of the point's batch; of_s is the index of a matrix of `matrix` numbers of the batch.
struct nest_index attention_matrix(struct attention_rows *r, const struct nest_gemm *g,
                                   const int64_t stride[4], const struct nest_index *of_s,
                                   int64_t matrix, struct nest_term row, nest_id column);
// Writes map across { fold along { x y } put } of what two elements have and where it goes.
struct attention_product {
    nest_id across, along; // axes
    nest_id buffers[2];
    struct nest_index index[2];
    nest_id to;
    struct nest_index to_index;
    jot_dtype dtype; // of what is put
};
void attention_write_product(struct attention_rows *r, const struct attention_product *x);
// The query's axis in the nest that is written.
nest_id attention_query(const struct attention_rows *r);
struct nest_index attention_at(struct attention_rows *r, nest_id axis);

// ---- attention_find.c: a nest's statements

nest_id attention_without_convert(const struct nest *n, nest_id value);

// A value, where the axis of keys has a name that differs from loop to loop.
struct attention_named {
    nest_id value, axis;
};
// What a row of the point was made of, through any number of rows.
struct attention_named attention_without_rows(const struct nest *n, nest_id score,
                                              struct attention_named v);
// The only put of a local, or NULL.
const struct nest_statement *attention_put_of(const struct nest *n, nest_id buffer);
// fold { a[...] * b[...] }, from half types that are contiguous along an axis.
bool attention_find_product(const struct nest *n, const struct nest_statement *fold,
                            const struct nest_statement *loads[2]);
// Whether a loop's body is scalars, puts of rows and the yield; no index of a load is a value.
bool attention_is_straight(const struct nest *n, const struct nest_statement *loop);
// Whether of locals the fold of the largest reads the scores alone, at their index.
bool attention_reads_scores_only(const struct nest *n, const struct attention *a);
// exp(f - largest) along the axis.
bool attention_is_term(const struct nest *n, const struct attention *a,
                       struct attention_named v);
// Rows begin at multiples of 16 bytes, as long as the memory does.
bool attention_is_even(const struct nest *n, const struct nest_statement *s, nest_id along);

#endif
