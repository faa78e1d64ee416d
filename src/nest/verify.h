// SPDX-License-Identifier: Apache-2.0
// What the parts of the verifier share.
#ifndef NEST_VERIFY_H
#define NEST_VERIFY_H

#include "nest/nest.h"

// A use of a buffer and the loops and branches around it, outermost first.
struct nest_access {
    nest_id statement, buffer;
    const struct nest_index *index;
    bool is_put;
    bool is_sure; // it happens in every iteration: no guard, no branch around it, no empty loop
    nest_id fold; // the loop at whose end the result is stored, or NEST_NONE
    uint32_t depth;
    const nest_id *path;
};

enum value_state { VALUE_UNDEFINED, VALUE_IN_SCOPE, VALUE_OUT_OF_SCOPE };

struct verifier {
    const struct nest *nest;
    struct arena *arena;
    struct strbuf *report;
    int faults;
    nest_id statement;    // being looked at
    uint8_t *value_state; // enum value_state
    uint8_t *axis_open;
    uint8_t *block_seen, *statement_seen;
    VEC(nest_id) path;
    VEC(struct nest_access) accesses; // in the order of the text
};

__attribute__((format(printf, 2, 3))) void nest_fault(struct verifier *v, const char *format,
                                                      ...);

// nest/verify_values.c: types, and values that are in scope where they are used.
const char *verify_dtype_text(int d);
int verify_dtype_of(const struct verifier *v, nest_id value); // -1 for what is no value
bool verify_use(struct verifier *v, nest_id value);
void verify_type(struct verifier *v, nest_id value, int dtype, const char *what);
void verify_define(struct verifier *v, nest_id value, int dtype);
bool verify_results(struct verifier *v, const struct nest_statement *s, uint32_t n);
void verify_index(struct verifier *v, const struct nest_index *x);
void verify_op(struct verifier *v, const struct nest_statement *s);
bool verify_is_scan_op(uint16_t op);
bool verify_is_put_op(uint16_t op);
bool verify_is_fold_op(uint16_t op);
// That what combines elements of one type may be of another.
void verify_accumulated(struct verifier *v, uint16_t op, int from, int to);
// `strict` is the order that the statement takes of what has one.
void verify_combine(struct verifier *v, uint16_t op, uint32_t n, const nest_id *values,
                    int result, enum nest_order order, enum nest_order strict);
void verify_combines(struct verifier *v, const struct nest_statement *s,
                     bool (*allowed)(uint16_t), enum nest_order strict);
void verify_define_combines(struct verifier *v, const struct nest_statement *s);

// Everything about accesses of buffers, after the walk: ranges, one point to an element, reads of
// what other points write, reads of what nothing wrote.
void nest_verify_accesses(struct verifier *v);
// Whether two accesses of a buffer may be of one element.
bool verify_may_meet(const struct verifier *v, const struct nest_access *a,
                     const struct nest_access *b);

// nest/verify_levels.c: who does what of a loop, and with how many threads; after the walk, that no thread reads what
// only another one has put.
void verify_levels(struct verifier *v, const struct nest_statement *s);
void verify_threads(struct verifier *v);
void nest_verify_sharing(struct verifier *v);

#endif
