// SPDX-License-Identifier: Apache-2.0
// What libraries compute: routines (library.c, join_routines.c), products (gemm.c) and what stands around them
// (epilogue.c, layout.c).
#ifndef SCHEDULE_LIBRARY_LIBRARY_H
#define SCHEDULE_LIBRARY_LIBRARY_H

#include "schedule/internal.h"

// Whether a GPU does several calls of the node's routine in less time than one after the other.
bool node_routine_gains_lanes(const struct ir_node *n);
// Whether the product is for rows of which each would read a large matrix where the demand wants it: a fold takes all
// elements of a row.  By itself its points are those of all rows, which read the matrix together.
bool dot_rereads_matrix(const struct schedule *s, ir_id v, const struct demand *d);

// ---- Routines (library.c)

// The step of a node of class LIBRARY, the one of the group.
void schedule_library(struct schedule *s, uint32_t group);

// ---- Library calls (gemm.c)
// The library call of a dot_general that is large enough and whose operands lie right; false
// otherwise.  base[i] is the value whose memory is used for operand i.
bool gemm_of_dot(const struct schedule *s, const struct ir_node *n, struct nest_gemm *out,
                 ir_id base[2]);
// s->g with copies, as transposes behind barriers, of operands that lie wrong for the library or a kernel.
const struct ir_graph *schedule_pack_operands(struct schedule *s);

// ---- What products do to their results (epilogue.c)

// Kernels that do to the elements of a product what the library can do go into the product.
void epilogue_products(struct nest_program *p);
// The one step besides i that uses memory m, a temporary, in straight steps behind it, which leave
// what step i reads as it is; UINT32_MAX when there is none.
uint32_t schedule_find_reader(const struct nest_program *p, uint32_t i, uint32_t m);
// Whether m is a temporary that no step but i uses.
bool schedule_is_unread(const struct nest_program *p, uint32_t i, uint32_t m);
// Whether the steps between i and end are straight and leave what step i reads as it is.
bool schedule_keeps_operands(const struct nest_program *p, uint32_t i, uint32_t end);
// Drops kernels that no step runs any more.
void schedule_drop_nests(struct nest_program *p);
// Joins each product with what stands around it as long as that goes: join says whether it did.
void schedule_join_products(struct nest_program *p,
                            bool (*join)(struct nest_program *p, uint32_t i));

// ---- Routines side by side (join_routines.c)

// s->g with calls of one routine that do not wait for one another as one call, for a GPU.
const struct ir_graph *schedule_join_routines(struct schedule *s);

// ---- Layouts (layout.c)

// Stores operands of library products the way the kernel that makes them writes best.
void layout_products(struct nest_program *p);

#endif
