// SPDX-License-Identifier: Apache-2.0
// How many threads share a fold, and how.
#include "codegen/gpu/gpu.h"

#define MOST_THREADS 256

struct gpu_row gpu_row_make(const struct cg_lowering *l, const struct nest_statement *s,
                            unsigned group)
{
    struct gpu_row r = {.length = cg_extent(l, s)};
    r.block = fold_block(r.length);
    r.blocks = r.length > r.block ? (r.length + r.block - 1) / r.block : 1;
    r.window = fold_power_of_two(r.length, FOLD_LANES);
    r.lanes = gpu_lanes(l, s, s->axes[s->n_axes - 1]);
    // As many teams as there are blocks, while a warp is more than one team.
    while (r.lanes > 1 && (r.lanes > r.window || (r.window / r.lanes < GPU_WARP &&
                                                  group / (r.window / r.lanes) > r.blocks)))
        r.lanes /= 2;
    unsigned most = group < GPU_WARP ? group : GPU_WARP;
    r.team = r.window / r.lanes < most ? r.window / r.lanes : most;
    r.parts = r.window / (r.team * r.lanes);
    r.teams = group / r.team;
    r.is_exact = r.blocks == 1 ? r.length % r.window == 0 && r.length : r.length % r.block == 0;
    return r;
}

bool gpu_goes_by_row(const struct cg_lowering *l, const struct nest_statement *s)
{
    const struct gpu_row *r = &l->gpu->row;
    int64_t extent = l->nest->axes.at[s->axes[s->n_axes - 1]].extent;
    return r->lanes && r->length == cg_extent(l, s) && extent % r->lanes == 0;
}

unsigned gpu_row_threads(const struct cg_lowering *l, const struct nest_statement *s)
{
    struct gpu_row r = gpu_row_make(l, s, MOST_THREADS);
    unsigned lanes = gpu_lanes(l, s, s->axes[s->n_axes - 1]);
    unsigned team = r.window / lanes ? r.window / lanes : 1;
    team = team < GPU_WARP ? team : GPU_WARP;
    unsigned threads = fold_power_of_two((int64_t)team * r.blocks, MOST_THREADS);
    return threads < GPU_WARP ? GPU_WARP : threads;
}

struct gpu_member gpu_member_of(struct cg_lowering *l, const struct gpu_row *r)
{
    LLVMValueRef size = gpu_i32(l, r->team);
    struct gpu_member m = {.team = LLVMBuildUDiv(l->m.b, l->gpu->place, size, ""),
                           .place = LLVMBuildURem(l->m.b, l->gpu->place, size, "")};
    m.offset = LLVMBuildMul(l->m.b, m.place, gpu_i32(l, r->lanes), "");
    return m;
}
