// SPDX-License-Identifier: Apache-2.0
// Sums of a fold that have nothing in common, part by part.
#ifndef CODEGEN_FOLD_PARTS_H
#define CODEGEN_FOLD_PARTS_H

#include "codegen/fold.h"

// How many parts go one after the other through a block; sets the part of each combine in p.
uint32_t cg_fold_parts(struct cg_lowering *l, struct cg_fold_plan *p);
// Whether accumulator i is of the part at hand.
static inline bool cg_fold_is_in_part(const struct cg_fold_plan *p, uint32_t i)
{
    return !p->part_of_combine || p->part_of_combine[i] == p->part;
}
// From open to close the body is what part k needs.
void cg_fold_part_open(struct cg_lowering *l, struct cg_fold_plan *p, uint32_t k);
void cg_fold_part_close(struct cg_lowering *l, const struct cg_fold_plan *p);

#endif
