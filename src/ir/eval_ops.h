// SPDX-License-Identifier: Apache-2.0
// What the parts of the evaluator share.  Private to eval_*.c.
#ifndef IR_EVAL_OPS_H
#define IR_EVAL_OPS_H

#include "ir/eval.h"
#include "ir/eval_machine.h"

// One node to be evaluated: out has its types and zeroed data.
struct eval_call {
    struct arena *arena;
    struct ir_module *module;
    enum ir_op op;
    const struct ir_attrs *attrs;
    int n_in, n_out;
    const struct ir_tensor *in;
    struct ir_tensor *out;
};

typedef jot_status (*eval_function)(const struct eval_call *c);

jot_status eval_map(const struct eval_call *c);
jot_status eval_threefry(const struct eval_call *c);
jot_status eval_copy(const struct eval_call *c); // the same bytes: reshape, bitcast, hints
jot_status eval_const(const struct eval_call *c);
jot_status eval_iota(const struct eval_call *c);
jot_status eval_layout(const struct eval_call *c); // by its index maps
jot_status eval_dynamic_slice(const struct eval_call *c);
jot_status eval_dynamic_update_slice(const struct eval_call *c);
jot_status eval_gather(const struct eval_call *c);
jot_status eval_scatter(const struct eval_call *c);
jot_status eval_reduce(const struct eval_call *c);
jot_status eval_arg(const struct eval_call *c);
jot_status eval_cumulative(const struct eval_call *c);
jot_status eval_dot_general(const struct eval_call *c);
jot_status eval_conv(const struct eval_call *c);
jot_status eval_fft(const struct eval_call *c);
jot_status eval_qr(const struct eval_call *c);
jot_status eval_eigh(const struct eval_call *c);
jot_status eval_svd(const struct eval_call *c);
jot_status eval_eig(const struct eval_call *c);
jot_status eval_schur(const struct eval_call *c);
jot_status eval_sort(const struct eval_call *c);
jot_status eval_top_k(const struct eval_call *c);
jot_status eval_cholesky(const struct eval_call *c);
jot_status eval_lu(const struct eval_call *c);
jot_status eval_triangular_solve(const struct eval_call *c);
jot_status eval_tridiagonal_solve(const struct eval_call *c);
jot_status eval_scan(const struct eval_call *c);
jot_status eval_while(const struct eval_call *c);
jot_status eval_cond(const struct eval_call *c);
jot_status eval_shard_map(const struct eval_call *c);
jot_status eval_check(const struct eval_call *c);
jot_status eval_callback(const struct eval_call *c);

// A real number is the pair (re, 0 of its type).
struct eval_number {
    scalar re, im;
};

// Element i of d, as stored.
struct eval_number eval_load(jot_dtype d, const void *data, int64_t i);
// The same, half types widened to f32.
struct eval_number eval_load_wide(jot_dtype d, const void *data, int64_t i);
// Stores into element i of d: x is of type d, or to be rounded from f32 to a half type.
void eval_store(jot_dtype d, void *data, int64_t i, struct eval_number x);
// The convert rule of scalar.h, from a wide number of type `from`.
struct eval_number eval_convert(jot_dtype from, jot_dtype to, struct eval_number x);
// The op on one element: by the column of its row that fits the type of the last operand,
// m->dtype.
struct eval_number eval_scalar(struct machine *m, enum ir_op op, struct eval_number x,
                               struct eval_number y, struct eval_number z);
void eval_threefry2x32(const uint32_t key[2], uint32_t counter[2]);

static inline int64_t eval_count(const struct eval_call *c, struct ir_type t)
{
    return ir_count(c->module, t);
}

// Extents and steps between elements of a walk over a tensor.
struct eval_view {
    int rank;
    int64_t dims[IR_MAX_RANK];
    int64_t steps[IR_MAX_RANK];
};

// The row-major view of dense elements.
struct eval_view eval_view_dense(const struct ir_module *m, struct ir_type t);
// The element number, from `from`, of the next index in row-major order; index counts along.
static inline int64_t eval_view_next(const struct eval_view *v, int64_t *index, int64_t at)
{
    for (int a = v->rank - 1; a >= 0; a--) {
        at += v->steps[a];
        if (++index[a] < v->dims[a])
            return at;
        at -= v->steps[a] * v->dims[a];
        index[a] = 0;
    }
    return at;
}

#endif
