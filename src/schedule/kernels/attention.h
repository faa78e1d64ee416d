// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel: the rows of softmax(f(q k^T)) v, where f is computed number by number.
//
//     par b, i {
//       map j { fold d { q[b, i, d] * k[b, j, d] }      put score[j] }
//       fold j { f(score[j], i, j) }                    -> the largest
//       fold j { exp(f(score[j], i, j) - largest) }     -> the sum
//       map j { put weight[j] = the same / sum }
//       map c { fold j { weight[j] * v[b, j, c] }       put y[b, i, c] }
//     }
//
// What stands between the products is computed in f32, whatever their type; the weights are rounded
// to it.  attention_join (schedule/kernels/attention.c) writes such a nest; a code generator that finds one may
// compute it by blocks of keys (codegen/gpu/attention.c, docs/numerics.md).
#ifndef SCHEDULE_KERNELS_ATTENTION_H
#define SCHEDULE_KERNELS_ATTENTION_H

#include "nest/nest.h"

enum { ATTENTION_DEPTH = 128 };         // the longest rows of q, k and v
enum { ATTENTION_GRADIENT_DEPTH = 64 }; // the same of gradients

struct attention {
    const struct nest_statement *loop;      // the par; its last axis is that of queries
    nest_id query, score;                   // axis; buffer
    const struct nest_statement *q, *k, *v; // loads
    const struct nest_statement *put;       // of y
    nest_id depth;                          // axis of q and k
    nest_id key_of_k, key_of_v, column;     // axes
    // The fold of the largest: what it takes is f, along its axis, and is made in its body and by
    // the statements before it in the loop.
    const struct nest_statement *largest;
    nest_id key;   // its axis
    nest_id value; // f
};

// Whether the nest is such a kernel, of half types whose rows are contiguous.
bool attention_find(const struct nest *n, struct attention *out);

// Its gradient: given that of y, dy, those of q, k and v, of a batch and all its queries and keys.
//
//     par b {
//       map i {
//         map j { fold d { q[b, i, d] * k[b, j, d] }    put score[j] }
//         map j { fold c { dy[b, i, c] * v[b, j, c] }   put product[j] }
//         the largest, the sum, weight[i, j] as above
//         fold j { product[j] * weight }                -> delta
//         map j { g(weight * (product[j] - delta))      put change[i, j] }
//         map d { fold j { change[i, j] * k[b, j, d] }  put dq[b, i, d] }
//       }
//       map j {
//         map c { fold i { weight[i, j] * dy[b, i, c] }  put dv[b, j, c] }
//         map d { fold i { change[i, j] * q[b, i, d] }   put dk[b, j, d] }
//       }
//     }
//
// g is what f makes of a change, number by number; weights and changes are rounded to the half type.
struct attention_gradient {
    struct attention a; // of f, q, k and v; the query is an axis of `rows`; no put
    const struct nest_statement *rows, *dy; // the map over queries; the load of dy by `product`
    nest_id product;                        // buffer
    nest_id given, change;                  // values: weight * (product - delta), and g of it
    nest_id change_key;                     // the axis of keys where they are
    const struct nest_statement *dq, *dk, *dv; // puts
    nest_id dq_column, dk_column, dv_column;   // axes
    nest_id result_key;                        // of dk and dv
};

// Whether the nest is such a kernel, as above.
bool attention_find_gradient(const struct nest *n, struct attention_gradient *out);

#endif
