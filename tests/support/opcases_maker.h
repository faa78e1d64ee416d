// SPDX-License-Identifier: Apache-2.0
// How the files of opcases make cases.
#ifndef TESTS_OPCASES_MAKER_H
#define TESTS_OPCASES_MAKER_H

#include "support/opcases.h"

struct opcase_maker {
    struct ir_module *m;
    jot_dtype dtype;
    jot_dtype indices; // of operands that say where
    uint64_t state;
    struct opcases cases;
};

struct opcase_shape {
    int rank;
    int64_t dims[4];
};
#define SHAPE(...)                                                                             \
    ((struct opcase_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),          \
                           {__VA_ARGS__}})
static const struct opcase_shape scalar = {0, {0}};

// Lists of integers as attributes: INTS(axes, LIST(0, 2)).
#define LIST(...)                                                                              \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])         \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }
#define NO_LIST 0, (const int64_t[]){0}
#define INTS_(k, n, ...) {.key = IR_KEY_##k, .count = (uint32_t)(n), .ints = __VA_ARGS__}
#define INTS(k, ...) INTS_(k, __VA_ARGS__)

// Adds a case with operands of these shapes; the second one has a single operand.
void opcase_add(struct opcase_maker *k, enum ir_op op, const struct ir_attrs *attrs, int n,
                const struct opcase_shape *shapes);
void opcase_add_one(struct opcase_maker *k, enum ir_op op, const struct ir_attrs *attrs,
                    struct opcase_shape s);
// Writes x as a float of the dtype.
void opcase_put_real(jot_dtype dtype, double x, void *at);

// Contractions and libraries.
void opcase_add_dot_general(struct opcase_maker *k);
void opcase_add_factored(struct opcase_maker *k, enum ir_op op);
void opcase_add_triangular_solve(struct opcase_maker *k);
void opcase_add_tridiagonal_solve(struct opcase_maker *k);
void opcase_add_fft(struct opcase_maker *k);
void opcase_add_conv(struct opcase_maker *k);
void opcase_add_sort(struct opcase_maker *k);
void opcase_add_top_k(struct opcase_maker *k);

// Indices that are data.
void opcase_add_dynamic_slice(struct opcase_maker *k, enum ir_op op);
void opcase_add_gather(struct opcase_maker *k);
void opcase_add_scatter(struct opcase_maker *k, enum ir_op op);

#endif
