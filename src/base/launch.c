// SPDX-License-Identifier: Apache-2.0
// The bytes of a plan: a header with the counts, then the tables one after the other, each
// 8-byte aligned, in the order of get_tables.
#include "base/launch.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/collective.h"
#include "base/dtype.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define PLAN_FORMAT 9

// What CUDA takes.
#define BLOCK_MOST 1024
#define CLUSTER_MOST 16

struct header {
    char magic[8];
    uint32_t format, header_bytes;
    uint32_t input_count, output_count;
    uint32_t buffer_count, operand_count;
    uint32_t step_count, gemm_count;
    uint32_t param_count, text_bytes;
    uint32_t loop_count, mesh_rank;
    uint64_t constant_bytes, arena_bytes, zeroed_bytes;
    uint64_t total_bytes;
};

static const char magic[8] = {'j', 'o', 't', 'p', 'l', 'a', 'n', 0};

#define TABLE_COUNT 9

// A table of a plan: where it is, how many elements of which size.
struct table {
    const void *at;
    uint64_t count, element;
};

static void get_tables(const struct rt_plan *p, struct table tables[TABLE_COUNT])
{
    const struct table all[TABLE_COUNT] = {
        {p->inputs, p->input_count, sizeof *p->inputs},
        {p->outputs, p->output_count, sizeof *p->outputs},
        {p->buffers, p->buffer_count, sizeof *p->buffers},
        {p->steps, p->step_count, sizeof *p->steps},
        {p->gemms, p->gemm_count, sizeof *p->gemms},
        {p->operands, p->operand_count, sizeof *p->operands},
        {p->params, p->param_count, sizeof *p->params},
        {p->text, p->text_bytes, 1},
        {p->constants, p->constant_bytes, 1},
    };
    memcpy(tables, all, sizeof all);
}

static void set_tables(struct rt_plan *p, const struct table tables[TABLE_COUNT])
{
    p->inputs = tables[0].at;
    p->outputs = tables[1].at;
    p->buffers = tables[2].at;
    p->steps = tables[3].at;
    p->gemms = tables[4].at;
    p->operands = tables[5].at;
    p->params = tables[6].at;
    p->text = tables[7].at;
    p->constants = tables[8].at;
}

static uint64_t padded(uint64_t bytes) { return (bytes + 7) & ~UINT64_C(7); }

// ---- checking ----

static jot_status bad(const char *what, uint32_t i, const char *fault)
{
    return status_fail(JOT_ERR_IO, "the launch plan is damaged: %s %u: %s", what, i, fault);
}

static bool is_range(uint64_t first, uint64_t count, uint64_t of)
{
    return first <= of && count <= of - first;
}

// The trips that loop `index` makes; -1 when that is not known, or there is no such loop.
static int64_t trips_of(const struct rt_plan *p, uint32_t loop)
{
    int64_t trips = -1;
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].kind == RT_STEP_LOOP && p->steps[i].index == loop)
            trips = p->steps[i].total;
    return trips;
}

static jot_status check_view(const struct rt_plan *p, uint32_t i)
{
    const struct rt_buffer *b = &p->buffers[i];
    if (b->loop >= p->loop_count)
        return bad("buffer", i, "is seen from no loop");
    if (b->of_count == 0 || !is_range(b->of_first, b->of_count, p->operand_count))
        return bad("buffer", i, "is part of no buffer");
    for (uint32_t k = 0; k < b->of_count; k++)
        if (p->operands[b->of_first + k] >= i)
            return bad("buffer", i, "is part of a later one");
        else if (b->memory == RT_MEMORY_TURN &&
                 p->buffers[p->operands[b->of_first + k]].bytes != b->bytes)
            return bad("buffer", i, "is one of several of other sizes");
    if (b->memory == RT_MEMORY_TURN)
        return b->index < b->of_count && !b->offset && !b->stride
                   ? JOT_OK
                   : bad("buffer", i, "has a wrong index");
    int64_t trips = trips_of(p, b->loop), last;
    uint64_t room = p->buffers[p->operands[b->of_first]].bytes;
    if (b->of_count != 1 || trips < 0 || b->offset > INT64_MAX ||
        (trips &&
         (__builtin_mul_overflow(trips - 1, b->stride, &last) ||
          __builtin_add_overflow((int64_t)b->offset, last, &last) || last < 0 ||
          !is_range((uint64_t)last, b->bytes, room) || !is_range(b->offset, b->bytes, room))))
        return bad("buffer", i, "lies outside its memory");
    return JOT_OK;
}

static jot_status check_buffers(const struct rt_plan *p)
{
    for (uint32_t i = 0; i < p->output_count; i++)
        if (p->outputs[i].donated >= (int64_t)p->input_count || p->outputs[i].donated < -1)
            return bad("output", i, "takes over no input");
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const struct rt_buffer *b = &p->buffers[i];
        uint64_t room = 0;
        if (b->memory >= RT_MEMORY_COUNT)
            return bad("buffer", i, "is in no memory");
        if (b->memory == RT_MEMORY_INPUT && b->index < p->input_count)
            room = p->inputs[b->index].bytes;
        else if (b->memory == RT_MEMORY_OUTPUT && b->index < p->output_count)
            room = p->outputs[b->index].bytes;
        else if (b->memory == RT_MEMORY_CONSTANT && b->index == 0)
            room = p->constant_bytes;
        else if (b->memory == RT_MEMORY_ARENA && b->index == 0)
            room = p->arena_bytes;
        else if (b->memory == RT_MEMORY_ROW || b->memory == RT_MEMORY_TURN) {
            JOT_TRY(check_view(p, i));
            continue;
        } else
            return bad("buffer", i, "has a wrong index");
        if (!is_range(b->offset, b->bytes, room))
            return bad("buffer", i, "lies outside its memory");
    }
    return JOT_OK;
}

// One past the last element that a batch of matrices of `rows` rows touches; -1 on overflow.
static int64_t extent_of(const struct rt_gemm *g, int64_t rows, int64_t columns, int64_t stride,
                         const int64_t *batch_strides)
{
    if (rows == 0 || columns == 0)
        return 0;
    int64_t last, part;
    if (__builtin_mul_overflow(rows - 1, stride, &last) ||
        __builtin_add_overflow(last, columns, &last))
        return -1;
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++) {
        if (g->batch[i] == 0)
            return 0;
        if (batch_strides[i] < 0 ||
            __builtin_mul_overflow(g->batch[i] - 1, batch_strides[i], &part) ||
            __builtin_add_overflow(last, part, &last))
            return -1;
    }
    return last;
}

static jot_status check_gemm(uint32_t i, const struct rt_gemm *g)
{
    if (!dtype_is_valid((int)g->dtype) || !dtype_is_valid((int)g->operands) ||
        !dtype_multiplies((jot_dtype)g->operands, (jot_dtype)g->dtype))
        return bad("gemm", i, "a matrix product of this dtype is not possible");
    if (g->transpose_a > RT_TRANSPOSE_CONJUGATE || g->transpose_b > RT_TRANSPOSE_CONJUGATE)
        return bad("gemm", i, "an unknown transposition");
    if (g->precision >= RT_PRECISION_COUNT || g->activation >= RT_ACTIVATION_COUNT ||
        g->flags & ~(uint32_t)(RT_GEMM_BIAS | RT_GEMM_ADDEND | RT_GEMM_SYMMETRIC))
        return bad("gemm", i, "what the library cannot do");
    bool is_negative = g->m < 0 || g->n < 0 || g->k < 0;
    for (int axis = 0; axis < RT_GEMM_BATCH_RANK; axis++)
        is_negative |= g->batch[axis] < 0;
    if (is_negative)
        return bad("gemm", i, "a negative extent");
    int64_t columns_a = g->transpose_a ? g->m : g->k, columns_b = g->transpose_b ? g->k : g->n;
    if (g->lda < columns_a || g->ldb < columns_b || g->ldc < g->n)
        return bad("gemm", i, "a leading dimension shorter than a row");
    return JOT_OK;
}

// Whether the matrices of a step lie inside its operands.
static jot_status check_matrices(const struct rt_plan *p, uint32_t i, const struct rt_gemm *g,
                                 const uint32_t *operands)
{
    int64_t rows_a = g->transpose_a ? g->k : g->m, columns_a = g->transpose_a ? g->m : g->k;
    int64_t rows_b = g->transpose_b ? g->n : g->k, columns_b = g->transpose_b ? g->k : g->n;
    int64_t of_c = extent_of(g, g->m, g->n, g->ldc, g->stride_c);
    int64_t extents[5] = {extent_of(g, rows_a, columns_a, g->lda, g->stride_a),
                          extent_of(g, rows_b, columns_b, g->ldb, g->stride_b), of_c};
    int n = 3;
    if (g->flags & RT_GEMM_BIAS)
        extents[n++] = g->n;
    if (g->flags & RT_GEMM_ADDEND)
        extents[n++] = of_c;
    for (int operand = 0; operand < n; operand++) {
        uint64_t element = dtype_get((jot_dtype)(operand < 2 ? g->operands : g->dtype))->bytes;
        if (extents[operand] < 0 ||
            (uint64_t)extents[operand] > p->buffers[operands[operand]].bytes / element)
            return bad("step", i, "a matrix larger than its buffer");
    }
    return JOT_OK;
}

static jot_status check_check(const struct rt_plan *p, uint32_t i, const struct rt_step *s)
{
    uint64_t count = 1;
    if (s->name >= p->text_bytes)
        return bad("step", i, "a check says nothing");
    if (s->operand_count < 1 || s->operand_count > 1 + CHECK_MAX_COUNTS)
        return bad("step", i, "a check needs flags");
    const int64_t *params = p->params + s->param_first;
    if (s->param_count < 1 || s->param_count > 1 + CHECK_MAX_RANK || params[0] < 0 ||
        params[0] >= s->param_count)
        return bad("step", i, "a check of no extents");
    uint32_t lanes = 0;
    for (uint32_t k = 1; k < s->param_count; k++) {
        int64_t extent = params[k];
        lanes += extent == -1;
        if (extent < -1 ||
            (extent >= 0 && __builtin_mul_overflow(count, (uint64_t)extent, &count)))
            return bad("step", i, "a check of no extents");
    }
    if (lanes >= s->operand_count)
        return bad("step", i, "a check of lanes that are not there");
    const uint32_t *operands = p->operands + s->operand_first;
    if (p->buffers[operands[0]].bytes != count)
        return bad("step", i, "a check of other flags");
    for (uint32_t k = 1; k < s->operand_count; k++)
        if (p->buffers[operands[k]].bytes != sizeof(int64_t))
            return bad("step", i, "a trip is one number");
    return JOT_OK;
}

static jot_status check_collective(const struct rt_plan *p, uint32_t i, const struct rt_step *s)
{
    struct collective c;
    const uint32_t *operands = p->operands + s->operand_first;
    if (s->name >= p->text_bytes)
        return bad("step", i, "its collective has no name");
    const char *fault = collective_read(p->params + s->param_first, s->param_count,
                                        p->mesh_rank, p->params, &c);
    if (fault)
        return bad("step", i, fault);
    if (s->operand_count != 2 ||
        !collective_fits(&c, p->buffers[operands[0]].bytes, p->buffers[operands[1]].bytes))
        return bad("step", i, "a collective of other blocks");
    return JOT_OK;
}

static jot_status check_step(const struct rt_plan *p, uint32_t i)
{
    const struct rt_step *s = &p->steps[i];
    if (s->kind >= RT_STEP_KIND_COUNT)
        return bad("step", i, "of no kind");
    if (!is_range(s->operand_first, s->operand_count, p->operand_count))
        return bad("step", i, "its operands lie outside the table");
    if (!is_range(s->param_first, s->param_count, p->param_count))
        return bad("step", i, "its params lie outside the table");
    if (s->where && s->where >= p->text_bytes)
        return bad("step", i, "its place has no text");
    const uint32_t *operands = p->operands + s->operand_first;
    bool has_name = s->name < p->text_bytes && s->title < p->text_bytes;
    switch ((enum rt_step_kind)s->kind) {
    case RT_STEP_KERNEL:
        if (!has_name)
            return bad("step", i, "its kernel has no name");
        if (s->block > BLOCK_MOST || s->cluster > CLUSTER_MOST)
            return bad("step", i, "more threads or blocks together than any device has");
        return s->total >= 0 && s->grain >= 1 ? JOT_OK
                                              : bad("step", i, "a wrong total or grain");
    case RT_STEP_LIBRARY:
        if (!has_name)
            return bad("step", i, "its routine has no name");
        return s->index < s->operand_count && s->operand_count <= RT_ROUTINE_MOST
                   ? JOT_OK
                   : bad("step", i, "a routine of wrong operands");
    case RT_STEP_GEMM:
        if (s->index >= p->gemm_count ||
            s->operand_count != 3u + (p->gemms[s->index].flags & RT_GEMM_BIAS ? 1 : 0) +
                                    (p->gemms[s->index].flags & RT_GEMM_ADDEND ? 1 : 0))
            return bad("step", i, "a matrix product needs its operands and its numbers");
        return check_matrices(p, i, &p->gemms[s->index], operands);
    case RT_STEP_COPY:
        if (s->operand_count != 2 ||
            p->buffers[operands[0]].bytes != p->buffers[operands[1]].bytes)
            return bad("step", i, "a copy needs two operands of one size");
        return JOT_OK;
    case RT_STEP_CLEAR:
        return s->operand_count == 1 ? JOT_OK : bad("step", i, "a clearing needs one operand");
    case RT_STEP_CHECK:
        return check_check(p, i, s);
    case RT_STEP_JUMP_IF:
    case RT_STEP_JUMP_IFN:
        if (s->operand_count != 1 || p->buffers[operands[0]].bytes < 1)
            return bad("step", i, "a conditional jump needs its flag");
        return s->target <= p->step_count ? JOT_OK : bad("step", i, "jumps out of the plan");
    case RT_STEP_JUMP:
        return s->target <= p->step_count ? JOT_OK : bad("step", i, "jumps out of the plan");
    case RT_STEP_PHASES:
        return has_name && s->index < p->loop_count && s->total >= 0 && s->block <= BLOCK_MOST
                   ? JOT_OK
                   : bad("step", i, "a wrong loop");
    case RT_STEP_LOOP:
    case RT_STEP_NEXT:
        if (s->index >= p->loop_count || s->target > p->step_count ||
            s->total != trips_of(p, s->index))
            return bad("step", i, "a wrong loop");
        return JOT_OK;
    case RT_STEP_SWITCH:
        if (s->operand_count != 1 || p->buffers[operands[0]].bytes < 4 || s->param_count == 0)
            return bad("step", i, "a switch needs its index and its cases");
        for (uint32_t k = 0; k < s->param_count; k++)
            if (p->params[s->param_first + k] < 0 ||
                p->params[s->param_first + k] > p->step_count)
                return bad("step", i, "jumps out of the plan");
        return JOT_OK;
    case RT_STEP_COLLECTIVE:
        return check_collective(p, i, s);
    case RT_STEP_CALLBACK: // the program knows how many there are
    case RT_STEP_KIND_COUNT:
        break;
    }
    return JOT_OK;
}

jot_status rt_plan_check(const struct rt_plan *p)
{
    JOT_TRY(check_buffers(p));
    if (p->mesh_rank &&
        (p->mesh_rank > p->param_count || collective_mesh_size(p->mesh_rank, p->params) == 0))
        return status_fail(JOT_ERR_IO, "the launch plan is damaged: it is of no mesh");
    if (p->zeroed_bytes > p->arena_bytes)
        return status_fail(JOT_ERR_IO, "the launch plan is damaged: more zeroes than memory");
    if (p->text_bytes && p->text[p->text_bytes - 1])
        return status_fail(JOT_ERR_IO, "the launch plan is damaged: its names do not end");
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i] >= p->buffer_count)
            return bad("operand", i, "is no buffer");
    for (uint32_t i = 0; i < p->gemm_count; i++)
        JOT_TRY(check_gemm(i, &p->gemms[i]));
    for (uint32_t i = 0; i < p->step_count; i++)
        JOT_TRY(check_step(p, i));
    return JOT_OK;
}

// ---- bytes ----

void rt_plan_write(const struct rt_plan *plan, struct arena *arena, const void **out_bytes,
                   size_t *out_size)
{
    struct table tables[TABLE_COUNT];
    get_tables(plan, tables);
    struct header header = {.format = PLAN_FORMAT,
                            .header_bytes = sizeof header,
                            .input_count = plan->input_count,
                            .output_count = plan->output_count,
                            .buffer_count = plan->buffer_count,
                            .operand_count = plan->operand_count,
                            .step_count = plan->step_count,
                            .gemm_count = plan->gemm_count,
                            .param_count = plan->param_count,
                            .text_bytes = plan->text_bytes,
                            .loop_count = plan->loop_count,
                            .mesh_rank = plan->mesh_rank,
                            .constant_bytes = plan->constant_bytes,
                            .arena_bytes = plan->arena_bytes,
                            .zeroed_bytes = plan->zeroed_bytes,
                            .total_bytes = sizeof header};
    memcpy(header.magic, magic, sizeof magic);
    for (int i = 0; i < TABLE_COUNT; i++)
        header.total_bytes += padded(tables[i].count * tables[i].element);
    char *bytes = arena_allocate(arena, header.total_bytes), *at = bytes + sizeof header;
    memcpy(bytes, &header, sizeof header);
    for (int i = 0; i < TABLE_COUNT; i++) {
        uint64_t size = tables[i].count * tables[i].element;
        if (size)
            memcpy(at, tables[i].at, size);
        at += padded(size);
    }
    *out_bytes = bytes;
    *out_size = header.total_bytes;
}

jot_status rt_plan_read(const void *bytes, size_t size, struct rt_plan *out_plan)
{
    struct header h;
    if (size < sizeof h || (uintptr_t)bytes % 8)
        return status_fail(JOT_ERR_IO, "the launch plan is damaged: too short or not aligned");
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic))
        return status_fail(JOT_ERR_IO, "not a launch plan");
    if (h.format != PLAN_FORMAT || h.header_bytes != sizeof h)
        return status_fail(JOT_ERR_IO, "the launch plan has format %u, this library reads %d",
                           h.format, PLAN_FORMAT);
    struct rt_plan p = {.input_count = h.input_count,
                        .output_count = h.output_count,
                        .buffer_count = h.buffer_count,
                        .operand_count = h.operand_count,
                        .step_count = h.step_count,
                        .gemm_count = h.gemm_count,
                        .param_count = h.param_count,
                        .text_bytes = h.text_bytes,
                        .loop_count = h.loop_count,
                        .mesh_rank = h.mesh_rank,
                        .constant_bytes = h.constant_bytes,
                        .arena_bytes = h.arena_bytes,
                        .zeroed_bytes = h.zeroed_bytes};
    struct table tables[TABLE_COUNT];
    get_tables(&p, tables);
    uint64_t at = sizeof h;
    for (int i = 0; i < TABLE_COUNT; i++) {
        if (tables[i].count > size) // so that the product cannot overflow
            return status_fail(JOT_ERR_IO, "the launch plan is damaged: it ends early");
        uint64_t table_bytes = tables[i].count * tables[i].element;
        if (!is_range(at, padded(table_bytes), size))
            return status_fail(JOT_ERR_IO, "the launch plan is damaged: it ends early");
        tables[i].at = (const char *)bytes + at;
        at += padded(table_bytes);
    }
    if (h.total_bytes != size || at != size)
        return status_fail(JOT_ERR_IO,
                           "the launch plan is damaged: %" PRIu64
                           " bytes, but its tables have %" PRIu64,
                           (uint64_t)size, at);
    set_tables(&p, tables);
    JOT_TRY(rt_plan_check(&p));
    *out_plan = p;
    return JOT_OK;
}
