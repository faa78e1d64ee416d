// SPDX-License-Identifier: Apache-2.0
// Transposed reads through tiles in shared memory.
#ifndef CODEGEN_GPU_TILE_H
#define CODEGEN_GPU_TILE_H

#include "codegen/lower.h"
#include "map/gpu_shared.h"

struct gpu_tiles {
    struct map_tiles of;
    int64_t count;
    bool is_exact; // the tiles are full
    int64_t side;  // tiles in a row, where a block has a tile and its mirror image; else 0
};
struct gpu_tiles gpu_tiles_of(const struct cg_lowering *l, nest_id loop); // as its levels say
// What block `chunk` of threads has: a tile or, of a square, one and its mirror image.
void gpu_tiles_lower(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef chunk);
struct cg_value gpu_load_turned(struct cg_lowering *l, const struct nest_statement *s);

#endif
