// SPDX-License-Identifier: Apache-2.0
// Large functions, as LLVM compiles them in a time that grows with their length.
//
// What is the same in all turns of a loop LLVM takes out of it, and then looks for a register at each of
// the instructions that use it, which are thousands here: numbers, and the addresses of locals.  The time for
// that grows with the square of the code.  So numbers stand in a table whose address LLVM does not know,
// each read where it is used, as an operand of its operation; and all locals are parts of one.  Numbers do so
// in a function of many branches as well, which is shorter: one for each case of a switch.
//
// All addresses that go with the index of a loop LLVM compares with each other, to keep few of them from
// turn to turn.  So those that go with the index of a loop around others are made of it in each turn.
#include "codegen/large.h"
#include "base/vec.h"
#include "codegen/constants.h"
#include "codegen/emit.h"
#include "codegen/size.h"
#include "codegen/types.h"
#include "ir/cost.h"

#include <llvm-c/Target.h>
#include <string.h>

// Numbers of a function times its blocks: what LLVM looks at to find registers for them.
#define MOST_CROSSED (1 << 16)

struct entry {
    LLVMValueRef number;
    unsigned lanes;
    uint64_t offset;
};

struct table {
    struct cg_module *m;
    LLVMBuilderRef b;
    LLVMValueRef base;
    VEC(struct entry) entries;
    uint64_t bytes;
};

// ---- Numbers

static bool may_read(LLVMValueRef instruction)
{
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMFCmp:
    case LLVMAdd:
    case LLVMSub:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMICmp:
    case LLVMSelect:
        return true;
    default:
        return cg_may_read(instruction);
    }
}

static unsigned number_bytes(const struct cg_module *m, LLVMTypeRef lane)
{
    return lane == m->f64 || lane == m->i64 ? 8 : lane == m->f32 || lane == m->i32 ? 4 : 0;
}

// The number that all lanes have, or that the value is; NULL for other values, and for integers that
// are no vectors, which are parts of instructions.
static LLVMValueRef number_of(const struct cg_module *m, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    if (!LLVMIsConstant(v))
        return NULL;
    LLVMValueRef number = v;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        number = cg_number_of_lanes(v);
    } else if (!LLVMIsAConstantFP(v)) {
        return NULL;
    }
    bool is_number = number && (LLVMIsAConstantFP(number) || LLVMIsAConstantInt(number));
    return is_number && number_bytes(m, LLVMTypeOf(number)) ? number : NULL;
}

static uint64_t find_entry(struct table *t, LLVMValueRef number, unsigned lanes)
{
    for (uint32_t i = 0; i < t->entries.count; i++)
        if (t->entries.at[i].number == number && t->entries.at[i].lanes == lanes)
            return t->entries.at[i].offset;
    uint64_t bytes = lanes * number_bytes(t->m, LLVMTypeOf(number));
    uint64_t offset = (t->bytes + bytes - 1) / bytes * bytes;
    vec_push(t->m->arena, &t->entries, (struct entry){number, lanes, offset});
    t->bytes = offset + bytes;
    return offset;
}

static LLVMValueRef load_entry(struct table *t, LLVMValueRef number, unsigned lanes)
{
    LLVMTypeRef lane = LLVMTypeOf(number);
    LLVMValueRef offset = cg_int(t->m, (int64_t)find_entry(t, number, lanes));
    LLVMValueRef at = LLVMBuildGEP2(t->b, t->m->i8, t->base, &offset, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(t->b, cg_with_lanes(lane, lanes), at, "");
    LLVMSetAlignment(v, lanes * number_bytes(t->m, lane));
    return v;
}

// The number as a value of the type, read in front of the instruction.
static LLVMValueRef read(struct table *t, LLVMValueRef before, LLVMTypeRef type,
                         LLVMValueRef number)
{
    LLVMPositionBuilderBefore(t->b, before);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return load_entry(t, number, 1);
    unsigned all = LLVMGetVectorSize(type);
    if (t->m->vector_bytes == 64) { // has operands that it broadcasts
        struct machine m = {.module = t->m, .b = t->b};
        return cg_splat(&m, load_entry(t, number, 1), all);
    }
    unsigned lanes = t->m->vector_bytes / number_bytes(t->m, LLVMTypeOf(number));
    if (lanes >= all)
        return load_entry(t, number, all);
    LLVMValueRef v = load_entry(t, number, lanes), order[256];
    for (unsigned i = 0; i < all; i++)
        order[i] = LLVMConstInt(t->m->i32, i % lanes, 0);
    return LLVMBuildShuffleVector(t->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(order, all), "");
}

// Signs, which LLVM changes by numbers of its own: -x and |x| as operations on the bits.
static LLVMValueRef with_sign(struct table *t, LLVMValueRef i)
{
    bool is_neg = LLVMGetInstructionOpcode(i) == LLVMFNeg;
    size_t size;
    const char *name =
        LLVMIsACallInst(i) ? LLVMGetValueName2(LLVMGetCalledValue(i), &size) : "";
    LLVMTypeRef type = LLVMTypeOf(i);
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    unsigned bytes = is_vector ? number_bytes(t->m, LLVMGetElementType(type)) : 0;
    if (!bytes || (!is_neg && strncmp(name, "llvm.fabs.", 10) != 0))
        return NULL;
    unsigned lanes = LLVMGetVectorSize(type);
    LLVMTypeRef lane = bytes == 8 ? t->m->i64 : t->m->i32, bits = cg_with_lanes(lane, lanes);
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    LLVMValueRef mask = read(t, i, bits, LLVMConstInt(lane, is_neg ? sign : sign - 1, 0));
    LLVMValueRef x = LLVMBuildBitCast(t->b, LLVMGetOperand(i, 0), bits, "");
    x = is_neg ? LLVMBuildXor(t->b, x, mask, "") : LLVMBuildAnd(t->b, x, mask, "");
    return LLVMBuildBitCast(t->b, x, type, "");
}

static void change_signs(struct table *t, LLVMValueRef f)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
            next = LLVMGetNextInstruction(i);
            LLVMValueRef changed = with_sign(t, i);
            if (!changed)
                continue;
            LLVMReplaceAllUsesWith(i, changed);
            LLVMInstructionEraseFromParent(i);
        }
}

static void read_numbers(struct table *t, LLVMValueRef f)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            for (unsigned k = 0; may_read(i) && k < (unsigned)LLVMGetNumOperands(i); k++) {
                LLVMValueRef was = LLVMGetOperand(i, k), number = number_of(t->m, was);
                if (number)
                    LLVMSetOperand(i, k, read(t, i, LLVMTypeOf(was), number));
            }
}

// Whether so many numbers go past so many blocks that the table is worth while.
static bool has_many_numbers(const struct cg_module *m, LLVMValueRef f)
{
    int64_t blocks = 0, numbers = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
        blocks++;
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            for (unsigned k = 0; may_read(i) && k < (unsigned)LLVMGetNumOperands(i); k++)
                numbers += number_of(m, LLVMGetOperand(i, k)) != NULL;
    }
    return numbers * blocks > MOST_CROSSED;
}

static LLVMValueRef table_of(struct table *t)
{
    uint32_t n = t->entries.count;
    LLVMValueRef *all = arena_array(t->m->arena, LLVMValueRef, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct entry *e = &t->entries.at[i];
        LLVMValueRef lanes[64];
        for (unsigned k = 0; k < e->lanes; k++)
            lanes[k] = e->number;
        all[i] = e->lanes == 1 ? e->number : LLVMConstVector(lanes, e->lanes);
    }
    LLVMValueRef numbers = LLVMConstStructInContext(t->m->context, all, n, 0);
    LLVMValueRef table = LLVMAddGlobal(t->m->module, LLVMTypeOf(numbers), "numbers");
    LLVMSetInitializer(table, numbers);
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetAlignment(table, 64);
    return table;
}

static void add_table(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef f)
{
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(f);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    while (LLVMIsAAllocaInst(first))
        first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(b, first);
    LLVMValueRef slot = LLVMBuildAlloca(b, m->ptr, "");
    LLVMValueRef base = LLVMBuildLoad2(b, m->ptr, slot, "");
    LLVMSetVolatile(base, 1);
    struct table t = {.m = m, .b = b, .base = base};
    change_signs(&t, f);
    read_numbers(&t, f);
    if (!t.entries.count)
        return;
    LLVMPositionBuilderBefore(b, base);
    LLVMSetVolatile(LLVMBuildStore(b, table_of(&t), slot), 1);
}

// ---- Locals

static bool is_static(LLVMValueRef local)
{
    if (!LLVMIsAAllocaInst(local) || !LLVMIsAConstantInt(LLVMGetOperand(local, 0)))
        return false;
    for (LLVMUseRef u = LLVMGetFirstUse(local); u; u = LLVMGetNextUse(u))
        if (LLVMIsAPHINode(LLVMGetUser(u)))
            return false;
    return true;
}

static uint64_t local_bytes(LLVMTargetDataRef layout, LLVMValueRef local)
{
    return LLVMABISizeOfType(layout, LLVMGetAllocatedType(local)) *
           LLVMConstIntGetZExtValue(LLVMGetOperand(local, 0));
}

// Every use of the local has its own address in the frame.
static void move_into(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef local,
                      LLVMValueRef frame, uint64_t offset)
{
    for (LLVMUseRef u; (u = LLVMGetFirstUse(local));) {
        LLVMValueRef user = LLVMGetUser(u), at = cg_int(m, (int64_t)offset);
        LLVMPositionBuilderBefore(b, user);
        LLVMValueRef address = LLVMBuildGEP2(b, m->i8, frame, &at, 1, "");
        for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(user); k++)
            if (LLVMGetOperand(user, k) == local)
                LLVMSetOperand(user, k, address);
    }
    LLVMInstructionEraseFromParent(local);
}

static void unite_locals(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef f)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(m->module);
    VEC(LLVMValueRef) locals = {0};
    uint64_t bytes = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f)); i;
         i = LLVMGetNextInstruction(i))
        if (is_static(i)) {
            vec_push(m->arena, &locals, i);
            bytes += (local_bytes(layout, i) + 63) / 64 * 64;
        }
    if (locals.count < 2)
        return;
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f)));
    LLVMValueRef frame = LLVMBuildAlloca(b, LLVMArrayType2(m->i8, bytes), "");
    LLVMSetAlignment(frame, 64);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < locals.count; i++) {
        uint64_t size = (local_bytes(layout, locals.at[i]) + 63) / 64 * 64;
        move_into(m, b, locals.at[i], frame, offset);
        offset += size;
    }
}

// ---- Indices

LLVMValueRef cg_apart(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef number)
{
    LLVMTypeRef own = LLVMTypeOf(number), type = LLVMFunctionType(own, &own, 1, 0);
    LLVMTypeKind kind = LLVMGetTypeKind(own);
    const char *kept = "=r,0";
    if (m->is_gpu)
        kept = kind == LLVMFloatTypeKind    ? "=f,0"
               : kind == LLVMDoubleTypeKind ? "=d,0"
               : own == m->i64              ? "=l,0"
                                            : kept;
    LLVMValueRef nothing =
        LLVMGetInlineAsm(type, "", 0, kept, strlen(kept), 0, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(b, type, nothing, &number, 1, "");
}

// What the phi is after a turn, when it counts turns of a loop; or NULL.
static LLVMValueRef next_of_count(const struct cg_module *m, LLVMValueRef phi)
{
    if (LLVMTypeOf(phi) != m->i64)
        return NULL;
    for (unsigned k = 0; k < LLVMCountIncoming(phi); k++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, k);
        if (LLVMIsAInstruction(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
            LLVMGetOperand(next, 0) == phi)
            return next;
    }
    return NULL;
}

// What a loop tests: LLVM compares it with the tests of all loops in front.
static void put_test_apart(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef next)
{
    for (LLVMUseRef u = LLVMGetFirstUse(next), other; u; u = other) {
        LLVMValueRef test = LLVMGetUser(u);
        other = LLVMGetNextUse(u);
        if (!LLVMIsAICmpInst(test) || LLVMGetOperand(test, 0) != next)
            continue;
        LLVMPositionBuilderBefore(b, test);
        LLVMSetOperand(test, 0, cg_apart(m, b, next));
    }
}

// The index of a loop of several blocks, and the test of any, behind an assembly of no instructions.
static void put_apart(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef phi)
{
    LLVMValueRef next = next_of_count(m, phi), first = phi;
    if (!next)
        return;
    put_test_apart(m, b, next);
    if (LLVMGetInstructionParent(next) == LLVMGetInstructionParent(phi))
        return;
    while (LLVMIsAPHINode(first))
        first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(b, first);
    LLVMValueRef apart = cg_apart(m, b, phi);
    LLVMReplaceAllUsesWith(phi, apart);
    LLVMSetOperand(apart, 0, phi);
    LLVMSetOperand(next, 0, phi);
}

static void put_indices_apart(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef f)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && LLVMIsAPHINode(i);
             i = LLVMGetNextInstruction(i))
            put_apart(m, b, i);
}

void cg_large_functions(struct cg_module *m)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f)) {
        bool is_large = cost_is_too_much_code(cg_code_of(m, f));
        if (is_large) {
            put_indices_apart(m, b, f);
            unite_locals(m, b, f);
        }
        if (is_large || has_many_numbers(m, f))
            add_table(m, b, f);
    }
    LLVMDisposeBuilder(b);
}
