// SPDX-License-Identifier: Apache-2.0
// The functions of this folder that its parent calls.
#include "codegen/hooks.h"
#include "codegen/gpu/bytes.h"
#include "codegen/gpu/functions.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/halves.h"
#include "codegen/gpu/memory.h"
#include "codegen/gpu/program.h"
#include "codegen/gpu/quotient.h"
#include "codegen/gpu/ranges.h"
#include "codegen/gpu/records.h"
#include "codegen/gpu/resident.h"
#include "codegen/gpu/rows.h"
#include "codegen/gpu/statement.h"
#include "codegen/gpu/strips.h"
#include "codegen/gpu/text.h"
#include "codegen/lower.h"
#include "map/gpu_early.h"

static uint32_t early_find(const struct cg_lowering *l, const struct nest_statement *seq,
                           nest_id *out)
{
    struct map_gpu m = gpu_map_of(l);
    return map_early_find(&m, seq, out);
}

const struct cg_hooks cg_hooks_of_gpu = {
    .divide = gpu_divide,
    .quotient_of_unit = gpu_quotient_of_unit,
    .sqrt = gpu_sqrt,
    .remainder = gpu_fmod,
    .copysign = gpu_copysign,
    .add_bits = gpu_add_by_product,
    .reduce = gpu_reduce,
    .round_half = gpu_round_half,
    .widen_half = gpu_widen_half,
    .half_op = gpu_half_op,
    .statement = gpu_statement,
    .ranged = gpu_lower_ranged,
    .put_open = gpu_put_open,
    .put_close = gpu_put_close,
    .shared_local = gpu_shared_local,
    .note_access = gpu_note_access,
    .load = gpu_load,
    .store = gpu_store,
    .records_axis = gpu_records_axis,
    .records_load = gpu_records_load,
    .records_store = gpu_records_store,
    .early_find = early_find,
    .rows_find = gpu_rows_find,
    .rows_store = gpu_rows_store,
    .strip_find = gpu_strip_find,
    .strip_store = gpu_strip_store,
    .strip_end = gpu_strip_end,
    .resident_kernel = gpu_resident_kernel,
    .resident_copy = gpu_resident_copy,
    .resident_wait = gpu_resident_wait,
    .program = gpu_program_lower,
    .split_bytes = gpu_split_bytes,
    .finish_text = gpu_finish_text,
    .take_texts = gpu_take_texts,
};
