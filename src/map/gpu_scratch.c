// SPDX-License-Identifier: Apache-2.0
// Memory that the threads of a mapped kernel have besides its buffers, where one block of them wants what another one
// has made: results of parts of a fold, its terms, what chunks of a running fold come to, updates in the order of their
// elements.  A network says while its code is written how much it wants (codegen/gpu/sums.c).
#include "map/gpu_scratch.h"

#include "map/gpu_counting_sort.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"
#include "map/gpu_shared.h"
#include "map/gpu_updates.h"

#include "base/fold.h"
#include "schedule/kernels/attention.h"

#define UNITS 8        // of a block of a fold that points with columns share, at least
#define PARTS 8        // of such a fold, of a multiprocessor at a time
#define ONCE (1 << 16) // elements of a running fold that is worth one pass
#define MOST_CHUNKS 4096
#define SHORTEST_OF_COLUMN 32 // elements of a chunk that a thread has
#define COLUMN_THREADS (GPU_MULTIPROCESSORS * COST_THREADS_OF_ONE)

static uint64_t whole_lines(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// ---- Folds

uint64_t map_result_bytes(uint16_t op, jot_dtype dtype, uint64_t count, uint64_t out[3])
{
    uint64_t bytes = whole_lines(count * dtype_get(dtype_real(dtype))->bytes);
    out[0] = bytes;
    out[1] = dtype_is_complex(dtype) ? bytes : 0;
    out[2] = ir_is_arg((enum ir_op)op) ? whole_lines(count * sizeof(int64_t)) : 0;
    return out[0] + out[1] + out[2];
}

static uint64_t results_of(const struct nest_statement *fold, int64_t count)
{
    uint64_t sum = 0, parts[3];
    for (uint32_t i = 0; i < fold->n_combines; i++)
        sum += map_result_bytes(fold->combines[i].op, fold->combines[i].dtype, (uint64_t)count,
                                parts);
    return sum;
}

int64_t map_fold_chunks(const struct nest_statement *fold, const struct map_row *r,
                        int64_t *out_size)
{
    *out_size = fold->terms == NEST_SHARED ? 1 : r->teams;
    return (r->blocks + *out_size - 1) / *out_size;
}

static uint64_t of_blocks(const struct nest *n, const struct nest_statement *fold,
                          int64_t points)
{
    struct map_row r = map_row_of(n, fold, n->threads[NEST_BLOCK_THREADS], map_vector(n, fold));
    int64_t size, chunks = map_fold_chunks(fold, &r, &size);
    uint64_t terms =
        fold->terms == NEST_SCRATCH ? map_terms_bytes(fold, nest_extent(n, fold)) : 0;
    return (uint64_t)points * terms + results_of(fold, points * chunks);
}

struct map_parts map_parts_of(const struct nest *n, const struct nest_statement *fold,
                              int64_t groups, unsigned group)
{
    struct map_parts p = {.units = UNITS, .span = 1};
    int64_t length = nest_extent(n, fold), block = fold_block(length);
    int64_t blocks = length > block ? (length + block - 1) / block : 1;
    while (p.units < FOLD_LANES && blocks * p.units / group * groups < GPU_MULTIPROCESSORS)
        p.units *= 2;
    // As many parts as keep all threads busy, while a thread has a unit.
    int64_t units = blocks * p.units;
    while (units / (p.span * group) * groups > GPU_MULTIPROCESSORS * PARTS)
        p.span *= 2;
    p.parts = (units + p.span * group - 1) / (p.span * group);
    return p;
}

static uint64_t of_parts(const struct map_gpu *m, const struct nest *n, nest_id loop)
{
    struct map_points points = map_points_of(n, loop);
    bool *depends = arena_array(m->arena, bool, n->values.count + 1);
    const struct nest_statement *fold =
        nest_statement_at(n, map_only_fold(n, points.s, depends));
    int64_t columns = n->threads[NEST_COLUMNS];
    unsigned group = n->threads[NEST_GROUP_THREADS];
    struct map_parts p =
        map_parts_of(n, fold, (points.count + columns - 1) / columns, group ? group : 1);
    return results_of(fold, p.parts * points.count * points.lanes);
}

// ---- Running folds

bool map_scan_is_once(const struct nest *n, bool is_phase)
{
    uint32_t scans = 0;
    bool is = !is_phase;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        is &= n->buffers.at[i].role != NEST_LOCAL;
    nest_for_each (s, n, 0) {
        if (s->kind != NEST_SCAN)
            continue;
        nest_id yield = n->blocks.at[s->body].statements.at[map_scan_yield(n, s)];
        jot_dtype d = nest_statement_at(n, yield)->combines[0].dtype;
        scans++;
        is &= nest_extent(n, s) >= ONCE && map_is_short(n, s->body, MAP_SCAN_WINDOWS) &&
              !dtype_is_complex(d) && dtype_get(d)->bytes == 4;
    }
    return is && scans == 1;
}

uint64_t map_scan_words(const struct nest *n, const struct nest_statement *scan,
                        int64_t out[MAP_SCAN_LEVELS])
{
    int64_t tile = map_vector(n, scan) * GPU_BLOCK * MAP_SCAN_WINDOWS,
            count = (nest_extent(n, scan) + tile - 1) / tile;
    int64_t words = 0;
    for (int i = 0; i < MAP_SCAN_LEVELS; i++) {
        count = (count + GPU_WARP - 1) / GPU_WARP * GPU_WARP;
        out[i] = words;
        words += count;
        count /= GPU_WARP;
    }
    return (uint64_t)words;
}

bool map_scans_are_whole(const struct nest *n)
{
    const struct nest_statement *s =
        nest_statement_at(n, vec_last(&n->blocks.at[0].statements));
    return s->kind == NEST_PAR && nest_extent(n, s) > COST_PART_SCANS &&
           !n->threads[NEST_COLUMNS];
}

int64_t map_scan_chunk(int64_t length, int64_t points, unsigned columns)
{
    int64_t chunk = columns ? SHORTEST_OF_COLUMN : MAP_SHORTEST_CHUNK;
    while (chunk * MOST_CHUNKS < length ||
           (columns && points * (length / chunk) > COLUMN_THREADS))
        chunk *= 2;
    return chunk;
}

static uint64_t of_scan(const struct nest *n, const struct nest_statement *s)
{
    bool is_par = s->kind == NEST_PAR;
    const struct nest_statement *scan =
        is_par ? nest_statement_at(n, vec_last(&n->blocks.at[s->body].statements)) : s;
    int64_t points = is_par ? nest_extent(n, s) : 1, length = nest_extent(n, scan);
    int64_t chunk = map_scan_chunk(length, points, n->threads[NEST_COLUMNS]);
    nest_id yield = n->blocks.at[scan->body].statements.at[map_scan_yield(n, scan)];
    const struct nest_combine *c = &nest_statement_at(n, yield)->combines[0];
    uint64_t parts[3];
    return map_result_bytes(c->op, c->dtype,
                            (uint64_t)(points * ((length + chunk - 1) / chunk)), parts);
}

static uint64_t of_scans(const struct map_gpu *m, const struct nest *n)
{
    uint64_t sum = 0;
    int64_t words[MAP_SCAN_LEVELS];
    if (map_scan_is_once(n, m->is_phase))
        return 8 * map_scan_words(
                       n, nest_statement_at(n, vec_last(&n->blocks.at[0].statements)), words);
    nest_for_each (s, n, 0)
        if (!map_scans_are_whole(n) && (s->kind == NEST_SCAN || s->kind == NEST_PAR))
            sum += of_scan(n, s);
    return sum;
}

// ---- Others

static uint64_t of_updates(const struct map_gpu *m, nest_id loop)
{
    struct map_updates u;
    struct map_counting_sort p;
    map_updates_find(m, loop, &u);
    if (map_counting_sort_find(m, &u, &p))
        return (uint64_t)(u.points * p.chunks *
                          (p.row * 2 + MAP_CHUNK * map_value_bytes(p.dtype)));
    int64_t bytes = u.is_carried ? MAP_SLOT_BYTES + u.copies * map_value_bytes(u.dtype)
                                 : (int64_t)sizeof(uint32_t);
    return (uint64_t)(u.offsets * (int64_t)sizeof(uint32_t) +
                      u.points * u.chunks * u.length * bytes);
}

static uint64_t of_gradient(const struct nest *n)
{
    struct attention_gradient g;
    attention_find_gradient(n, &g);
    uint64_t batches = (uint64_t)nest_extent(n, g.a.loop);
    uint64_t rows = (uint64_t)n->axes.at[g.a.query].extent + MAP_GRADIENT_QUERIES - 1;
    rows -= rows % MAP_GRADIENT_QUERIES;
    uint64_t depths = (uint64_t)(n->axes.at[g.a.depth].extent + 15) / 16;
    return rows * (8 * batches + 64 * depths * n->threads[NEST_BLOCKS]);
}

uint64_t map_scratch_of(const struct map_gpu *m, const struct nest *n)
{
    const struct nest_statement *last = NULL, *inner = NULL;
    nest_for_each (s, n, 0)
        last = map_is_loop(s->kind) ? s : last;
    if (n->special || n->threads[NEST_BLOCKS] == 1 || !last)
        return n->special == NEST_ATTENTION_GRADIENT ? of_gradient(n) : 0;
    bool is_of_points = last->kind == NEST_PAR || last->kind == NEST_MAP;
    if (is_of_points && last->level != NEST_GRID)
        return 0;
    nest_id loop = nest_id_of(n, last);
    nest_for_each (s, n, last->level == NEST_GRID ? last->body : NEST_NONE)
        inner = map_is_loop(s->kind) ? s : inner;
    inner = inner ? inner : last;
    if (inner->level == NEST_OWNER)
        return of_updates(m, loop);
    if (inner->kind == NEST_SCAN)
        return of_scans(m, n);
    return n->threads[NEST_COLUMNS]
               ? of_parts(m, n, loop)
               : of_blocks(n, inner, is_of_points ? nest_extent(n, last) : 1);
}
