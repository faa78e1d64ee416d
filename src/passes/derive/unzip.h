// SPDX-License-Identifier: Apache-2.0
// Separating a node that is partly linear: what unzip.c shares with the parts of its work on loops
// and branches.  Each function builds nodes for the node n, whose operands are partly linear, and
// sets map and linear of its results.
#ifndef PASSES_DERIVE_UNZIP_H
#define PASSES_DERIVE_UNZIP_H

#include "ir/control.h"
#include "passes/transform.h"

struct unzip {
    struct ir_builder *b;
    const struct ir_graph *g;
    ir_id *map;      // by value of g
    bool *linear;    // by value of g
    VEC(ir_id) made; // linear values of b that stand for none of g
};

void unzip_scan(struct unzip *u, const struct ir_node *n);
void unzip_while(struct unzip *u, const struct ir_node *n);
void unzip_cond(struct unzip *u, const struct ir_node *n);
void unzip_shard_map(struct unzip *u, const struct ir_node *n);

// The node n as the scan, which has its operands and results.
void unzip_loop(struct unzip *u, const struct ir_node *n, const struct ir_scan *scan);

// A scan over values of the graph that is built, some of them linear.
struct known_linear {
    struct ir_scan scan;
    uint32_t n_in;
    const ir_id *x; // operands
    const bool *linear_in;
    ir_id *y; // results
    bool *linear_out;
};

// Bytes that the linear loop needs beside operands and results.
struct tape {
    int64_t trip;  // residuals of a trip
    int64_t state; // known carries
    bool is_built;
};

// The scan as two, with the residuals of every trip as rows of the first, unless they are more than
// `most` bytes in all: then nothing is built.
jot_status unzip_trips(struct ir_builder *b, const struct known_linear *k, int64_t most,
                       struct tape *out);
// A while over values of the graph that is built: results in y, those that are linear in linear_out.  One
// with a bound is not built when the states of so many trips are too many bytes.
jot_status unzip_online(struct ir_builder *b, const struct ir_while *w, uint32_t n_in,
                        const ir_id *x, const bool *linear_in, ir_id *y, bool *linear_out,
                        bool *is_built);
// The linear loop computes every trip again from the first.
jot_status unzip_from_start(struct ir_builder *b, const struct known_linear *k);

// The operands of n, and which of them are linear.
ir_id *unzip_operands(const struct unzip *u, const struct ir_node *n);
bool *unzip_linear_operands(const struct unzip *u, const struct ir_node *n);

#endif
