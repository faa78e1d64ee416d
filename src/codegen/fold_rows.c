// SPDX-License-Identifier: Apache-2.0
// Folds that accumulate rows, one accumulator after the other, its rows in registers.
//
//     fold i { fold k { ... } -> s; e = exp s; map j { put y[j] fma= x[i, j], e } }
//
// The elements of an accumulator are 64 apart.  When numbers between the loops inside (e) are
// expensive, a tile of 16 elements goes through the body in three sections: what comes before them
// for each element, the numbers for all 16 at once, then the rest for each element.
#include "codegen/fold_rows.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "ir/cost.h"

#define ROW_BYTES 1280 // of all rows of one accumulator: what registers hold
#define TILE 16
#define NEAR 4096 // elements that stay in near caches

enum section { BEFORE, NUMBERS, AFTER };

struct sections {
    const struct nest_block *body;
    enum section *of_value, *of_statement; // the latter by number in the body
    LLVMValueRef *memory;                  // per value of the body: TILE of them
};

// -- Which statement belongs to which section -----------------------------------------------------

static enum section later(enum section a, enum section b) { return a > b ? a : b; }

static enum section of_block(const struct cg_lowering *l, const struct sections *t,
                             uint32_t block);

// The section of the latest value that a statement reads, with all that is inside it.
static enum section of_operands(const struct cg_lowering *l, const struct sections *t,
                                const struct nest_statement *s)
{
    enum section last = BEFORE;
    nest_for_uses (v, s)
        last = later(last, t->of_value[v]);
    last = later(last, of_block(l, t, s->body));
    return later(last, of_block(l, t, s->other));
}

static enum section of_block(const struct cg_lowering *l, const struct sections *t,
                             uint32_t block)
{
    enum section last = BEFORE;
    nest_for_each (s, l->nest, block)
        last = later(last, of_operands(l, t, s));
    return last;
}

// Memory that elements of the tile would share.
static bool writes_locals(const struct cg_lowering *l, uint32_t block)
{
    nest_for_below (s, l->nest, block)
        if ((s->kind == NEST_PUT && s->op == 0) || s->kind == NEST_IF)
            return true;
    return false;
}

// False when nothing is expensive, or values are not single numbers.
static bool assign_sections(const struct cg_lowering *l, struct sections *t)
{
    bool pays = false;
    for (uint32_t i = 0; i < t->body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, t->body->statements.at[i]);
        enum section section = of_operands(l, t, s);
        if (s->kind == NEST_OP && section == BEFORE && cost_is_expensive(s->op, s->dtype))
            section = NUMBERS;
        if (s->kind == NEST_MAP || s->kind == NEST_PUT ||
            (section == NUMBERS && s->kind != NEST_OP))
            section = AFTER;
        pays = pays || section == NUMBERS;
        t->of_statement[i] = section;
        for (uint32_t k = 0; k < s->n_results; k++) {
            t->of_value[s->result + k] = section;
            if (dtype_is_complex(l->nest->values.at[s->result + k].dtype))
                return false;
        }
    }
    return pays;
}

// -- Lowering -----------------------------------------------------------------------------------

static bool is_kept(const struct sections *t, const struct nest_statement *s, nest_id value)
{
    return s->kind != NEST_CONST && t->of_value[value] != AFTER;
}

// Lowers the statements of one section, and keeps their values at element `at` of the tile.
static void lower_section(struct cg_lowering *l, const struct sections *t, enum section section,
                          LLVMValueRef at)
{
    LLVMBuilderRef b = l->m.b;
    for (uint32_t i = 0; i < t->body->statements.count; i++) {
        nest_id id = t->body->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (l->marks[id].is_hoisted || t->of_statement[i] != section)
            continue;
        cg_lower_statement(l, id);
        for (uint32_t k = 0; k < s->n_results; k++) {
            nest_id value = s->result + k;
            if (!is_kept(t, s, value))
                continue;
            LLVMValueRef v = cg_wide(l, l->values[value].re);
            LLVMTypeRef lane = cg_memory_type(l->module, l->nest->values.at[value].dtype);
            v = cg_to_memory(l, v, l->nest->values.at[value].dtype);
            if (!t->memory[value])
                t->memory[value] = cg_alloca(l, LLVMArrayType2(lane, TILE), 1);
            LLVMSetAlignment(LLVMBuildStore(b, v, cg_at(l, lane, t->memory[value], at)),
                             dtype_get(l->nest->values.at[value].dtype)->bytes);
        }
    }
}

// The kept values of earlier sections at element `at` of the tile.
static void reload(struct cg_lowering *l, const struct sections *t, enum section section,
                   LLVMValueRef at)
{
    for (uint32_t i = 0; i < t->body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, t->body->statements.at[i]);
        for (uint32_t k = 0; t->of_statement[i] < section && k < s->n_results; k++) {
            nest_id value = s->result + k;
            if (!t->memory[value])
                continue;
            jot_dtype d = l->nest->values.at[value].dtype;
            LLVMTypeRef lane = cg_memory_type(l->module, d);
            LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_with_lanes(lane, l->vector.lanes),
                                            cg_at(l, lane, t->memory[value], at), "");
            LLVMSetAlignment(v, dtype_get(d)->bytes);
            l->values[value] = (struct cg_value){cg_from_memory(l, v, d), NULL};
        }
    }
}

static struct sections *sections_make(struct cg_lowering *l, const struct cg_fold_plan *p)
{
    uint32_t body = cg_statement(l, p->statement)->body;
    struct sections *t = arena_new(l->arena, struct sections);
    t->body = &l->nest->blocks.at[body];
    t->of_value = arena_array(l->arena, enum section, l->nest->values.count + 1);
    t->of_statement = arena_array(l->arena, enum section, t->body->statements.count + 1);
    t->memory = arena_array(l->arena, LLVMValueRef, l->nest->values.count + 1);
    bool has_tiles = p->length >= TILE / 2 * CG_FOLD_LANES;
    return has_tiles && !writes_locals(l, body) && assign_sections(l, t) ? t : NULL;
}

// The elements [first, last) of one accumulator, CG_FOLD_LANES apart.
static void staged_elements(struct cg_lowering *l, struct cg_fold_plan *p,
                            const struct sections *t, LLVMValueRef first, LLVMValueRef last)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef step = cg_int(l->module, CG_FOLD_LANES),
                 reach = cg_int(l->module, TILE * CG_FOLD_LANES);
    struct cg_loop tile = cg_loop_open(l, first, last, reach);
    LLVMValueRef stop = LLVMBuildAdd(b, tile.index, reach, "");
    stop = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, stop, last, ""), stop, last, "");
    for (enum section section = BEFORE; section <= AFTER; section++) {
        LLVMValueRef at = cg_int(l->module, 0);
        if (section == NUMBERS) {
            l->vector.lanes = TILE;
            reload(l, t, section, at);
            lower_section(l, t, section, at);
            l->vector.lanes = 1;
            continue;
        }
        struct cg_loop element = cg_loop_open(l, tile.index, stop, step);
        at = LLVMBuildSub(b, element.index, tile.index, "");
        at = LLVMBuildUDiv(b, at, step, "");
        cg_fold_set_position(l, p, element.index);
        reload(l, t, section, at);
        lower_section(l, t, section, at);
        if (section == AFTER)
            cg_fold_yield(l, p, element.index);
        cg_loop_close(l, &element);
    }
    cg_loop_close(l, &tile);
}

// Whether every put has a row that registers may hold.
static bool fit_registers(const struct cg_fold_plan *p)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->state.n_puts; i++) {
        const struct cg_accumulator *a = &p->state.accumulators[p->state.n_combines + i];
        if ((a->row_lanes != 64 && a->row_lanes != 16) || a->stride % a->row_lanes != 0)
            return false;
        bytes += a->stride * dtype_get(a->dtype)->bytes;
    }
    return p->state.n_puts > 0 && bytes <= ROW_BYTES;
}

bool cg_fold_rows(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                  LLVMValueRef last)
{
    // The elements of small blocks stay near; memory beyond streams better in order.
    if (p->length > NEAR || p->length <= 2 * CG_FOLD_LANES || !fit_registers(p))
        return false;
    struct cg_fold *f = &p->state;
    LLVMValueRef(*all)[2] = arena_allocate(l->arena, sizeof *all * f->n_puts);
    struct cg_accumulator *puts = f->accumulators + f->n_combines;
    for (uint32_t i = 0; i < f->n_puts; i++)
        cg_accumulator_one_row(l, &puts[i], all[i]);
    const struct sections *t = sections_make(l, p);
    LLVMValueRef lanes = cg_int(l->module, CG_FOLD_LANES), one = cg_int(l->module, 1);
    struct cg_loop slot = cg_loop_open(l, cg_int(l->module, 0), lanes, one);
    for (uint32_t i = 0; i < f->n_puts; i++)
        cg_accumulator_reset(l, &puts[i]);
    LLVMValueRef start = LLVMBuildAdd(l->m.b, first, slot.index, "");
    if (t) {
        staged_elements(l, p, t, start, last);
    } else {
        struct cg_loop turn = cg_loop_open(l, start, last, lanes);
        cg_fold_element(l, p, turn.index);
        cg_loop_close(l, &turn);
    }
    for (uint32_t i = 0; i < f->n_puts; i++)
        cg_accumulator_keep_row(l, &puts[i], (const LLVMValueRef *)all[i], slot.index);
    cg_loop_close(l, &slot);
    for (uint32_t i = 0; i < f->n_puts; i++) {
        puts[i].one_row = false;
        puts[i].base[0] = all[i][0];
        puts[i].base[1] = all[i][1];
    }
    return true;
}
