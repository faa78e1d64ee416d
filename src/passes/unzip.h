// SPDX-License-Identifier: Apache-2.0
// Separating a node that is partly linear: what unzip.c shares with the parts of its work on loops
// and branches.  Each function builds nodes for the node n, whose operands are partly linear, and
// sets map and linear of its results.
#ifndef PASSES_UNZIP_H
#define PASSES_UNZIP_H

#include "passes/transform.h"

struct unzip {
    struct ir_builder *b;
    const struct ir_graph *g;
    ir_id *map;   // by value of g
    bool *linear; // by value of g
};

void unzip_scan(struct unzip *u, const struct ir_node *n);
void unzip_while(struct unzip *u, const struct ir_node *n);
void unzip_cond(struct unzip *u, const struct ir_node *n);

// The node n as the scan, which has its operands and results.
struct ir_scan;
void unzip_loop(struct unzip *u, const struct ir_node *n, const struct ir_scan *scan);

// The operands of n, and which of them are linear.
ir_id *unzip_operands(const struct unzip *u, const struct ir_node *n);
bool *unzip_linear_operands(const struct unzip *u, const struct ir_node *n);

#endif
