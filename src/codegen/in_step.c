// SPDX-License-Identifier: Apache-2.0
// Registers of a wide vector that are to be computed side by side.
//
// A long chain of operations on a vector of several registers is as many chains that do not wait
// for each other.  LLVM puts one behind the other, which takes fewer registers, and a processor
// that looks ahead by less than a chain then waits.  Behind an assembly of no instructions that
// takes all registers at once each chain is as far as the others.
#include "codegen/in_step.h"
#include "codegen/emit.h"
#include "codegen/types.h"

#include <stdio.h>
#include <string.h>

#define MOST 16 // registers

// The parts one after the other; count is a power of two.
static LLVMValueRef join_lanes(struct machine *m, LLVMValueRef *parts, unsigned count)
{
    for (; count > 1; count /= 2) {
        unsigned lanes = 2 * cg_lanes_of(parts[0]);
        LLVMValueRef order = cg_sequence(m->module, m->module->i32, lanes, 0, 1);
        for (unsigned i = 0; i < count; i += 2)
            parts[i / 2] = LLVMBuildShuffleVector(m->b, parts[i], parts[i + 1], order, "");
    }
    return parts[0];
}

LLVMValueRef cg_in_step(struct machine *m, LLVMValueRef v)
{
    struct cg_module *module = m->module;
    unsigned lanes = module->vector_bytes / 4, count = cg_lanes_of(v) / lanes;
    if (module->is_gpu || count < 2 || count > MOST)
        return v;
    LLVMTypeRef types[MOST];
    LLVMValueRef parts[MOST];
    char out[8 * MOST] = "", in[8 * MOST] = "", number[8];
    for (unsigned i = 0; i < count; i++) {
        parts[i] = cg_extract(m, v, i * lanes, lanes);
        types[i] = LLVMTypeOf(parts[i]);
        strcat(out, i ? ",=v" : "=v");
        snprintf(number, sizeof number, ",%u", i); // the register of that result
        strcat(in, number);
    }
    strcat(out, in);
    LLVMTypeRef all = LLVMStructTypeInContext(module->context, types, count, 0),
                type = LLVMFunctionType(all, types, count, 0);
    LLVMValueRef nothing = LLVMGetInlineAsm(type, "", 0, out, strlen(out), 0, 0,
                                            LLVMInlineAsmDialectATT, 0),
                 after = LLVMBuildCall2(m->b, type, nothing, parts, count, "");
    for (unsigned i = 0; i < count; i++)
        parts[i] = LLVMBuildExtractValue(m->b, after, i, "");
    return join_lanes(m, parts, count);
}
