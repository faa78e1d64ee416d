// SPDX-License-Identifier: Apache-2.0
// How much code there is.  One bound (COST_CODE) is for all of a kernel: inner loops are written out
// before those around them, and where all together would be too much code, shorter ones only.
#include "codegen/size.h"
#include "codegen/emit.h"
#include "codegen/lower.h"
#include "ir/cost.h"
#include "map/map.h"

#include "ir/cost.h"

int64_t cg_registers_of(const struct cg_module *m, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return 1;
    LLVMTypeRef lane = LLVMGetElementType(type);
    int64_t lanes = LLVMGetVectorSize(type),
            of_one = m->vector_bytes / (lane == m->f64 || lane == m->i64 ? 8 : 4);
    return m->is_gpu ? lanes : lanes > of_one ? lanes / of_one : 1;
}

static bool is_number(LLVMValueRef v)
{
    return LLVMIsAConstantFP(v) || LLVMIsAConstantDataVector(v);
}

// Numbers in the code are worth some instructions: LLVM takes them out of loops, and looks for registers
// for them at each use.
#define OF_A_NUMBER 2

static int64_t code_of_instruction(const struct cg_module *m, LLVMValueRef i)
{
    int64_t n = cg_registers_of(m, LLVMIsAStoreInst(i) ? LLVMGetOperand(i, 0) : i);
    for (int k = 0; !m->is_gpu && k < LLVMGetNumOperands(i); k++)
        n += is_number(LLVMGetOperand(i, (unsigned)k)) ? OF_A_NUMBER : 0;
    return n;
}

int64_t cg_code_up_to(const struct cg_module *m, LLVMValueRef f, int64_t most)
{
    int64_t n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b && n <= most;
         b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i && n <= most;
             i = LLVMGetNextInstruction(i))
            n += code_of_instruction(m, i);
    return n;
}

int64_t cg_code_of(const struct cg_module *m, LLVMValueRef f)
{
    return cg_code_up_to(m, f, INT64_MAX);
}

// Turns of a loop that may be written out.
static int64_t longest_loop(const struct cg_module *m)
{
    return m->is_gpu ? CG_FOLD_LANES : NEST_SHORT_LOOP;
}

int64_t cg_most_written_out(const struct cg_module *m, const struct nest *nest)
{
    return map_most_code(nest, longest_loop(m));
}

// Registers that a value of the lanes at hand takes.
static int64_t registers_of_lanes(const struct cg_lowering *l)
{
    int64_t lanes = l->vector.lanes * (l->chunks.at ? l->chunks.count : 1),
            of_one = l->module->vector_bytes / 4;
    return of_one && lanes > of_one ? lanes / of_one : 1;
}

int64_t cg_room(const struct cg_lowering *l) { return l->written_out / registers_of_lanes(l); }

bool cg_may_repeat(const struct cg_lowering *l, const struct nest_statement *s, int64_t count)
{
    int64_t once =
        nest_code(l->nest, s->body, longest_loop(l->module), 1, l->written_out) + s->n_combines;
    return once <= cg_room(l) / (count ? count : 1);
}
