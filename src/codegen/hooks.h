// SPDX-License-Identifier: Apache-2.0
// What a GPU does otherwise than the host: the functions of gpu/ that this folder calls, by a table, for
// it includes nothing of gpu/.  What the functions do is said in the headers of their files.
#ifndef CODEGEN_HOOKS_H
#define CODEGEN_HOOKS_H

#include "codegen/lower.h"

struct cg_branch;
struct cg_kernel;
struct cg_kernel_step;
struct cg_object;
struct cg_objects;
struct cg_phases;
struct cg_record_row;
struct cg_resident;

struct cg_hooks {
    // Arithmetic.
    LLVMValueRef (*divide)(struct machine *m, LLVMValueRef x, LLVMValueRef y);
    LLVMValueRef (*quotient_of_unit)(struct machine *m, LLVMValueRef x, LLVMValueRef y);
    LLVMValueRef (*sqrt)(struct machine *m, LLVMValueRef x);
    LLVMValueRef (*remainder)(struct machine *m, LLVMValueRef x, LLVMValueRef y);
    LLVMValueRef (*copysign)(struct machine *m, LLVMValueRef x, LLVMValueRef sign);
    LLVMValueRef (*add_bits)(struct machine *m, LLVMValueRef i, LLVMValueRef j);
    void (*reduce)(struct machine *m, LLVMValueRef x, LLVMValueRef *out_hi,
                   LLVMValueRef *out_lo, LLVMValueRef *out_quadrant);
    LLVMValueRef (*round_half)(struct machine *m, LLVMValueRef x, jot_dtype d);
    LLVMValueRef (*widen_half)(struct machine *m, LLVMValueRef x, jot_dtype d);
    LLVMValueRef (*half_op)(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef x,
                            LLVMValueRef y);
    // Statements.
    bool (*statement)(struct cg_lowering *l, nest_id statement);
    uint32_t (*ranged)(struct cg_lowering *l, const nest_id *statements, uint32_t first,
                       uint32_t n, uint32_t none_before[2]);
    bool (*put_open)(struct cg_lowering *l, nest_id buffer, struct cg_branch *out);
    void (*put_close)(struct cg_lowering *l, nest_id buffer, struct cg_branch *one);
    // Memory.
    LLVMValueRef (*shared_local)(struct cg_lowering *l, nest_id buffer);
    void (*note_access)(struct cg_lowering *l, const struct nest_statement *s);
    bool (*load)(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef guard,
                 struct cg_value *out);
    bool (*store)(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);
    nest_id (*records_axis)(const struct cg_lowering *l);
    void (*records_load)(struct cg_lowering *l, const struct cg_record_row *r,
                         LLVMValueRef *out);
    void (*records_store)(struct cg_lowering *l, const struct cg_record_row *r,
                          LLVMValueRef *in);
    // Loops over time.
    uint32_t (*early_find)(const struct cg_lowering *l, const struct nest_statement *seq,
                           nest_id *out);
    int64_t (*rows_find)(struct cg_lowering *l, const struct nest_statement *seq);
    void (*rows_store)(struct cg_lowering *l, const struct nest_statement *seq,
                       LLVMValueRef first, int64_t trips);
    int64_t (*strip_find)(struct cg_lowering *l, const struct nest_statement *seq);
    void (*strip_store)(struct cg_lowering *l, const struct nest_statement *seq,
                        LLVMValueRef first, int64_t trips);
    void (*strip_end)(struct cg_lowering *l, const struct nest_statement *seq);
    // Loops of steps.
    void (*resident_kernel)(struct cg_resident *r, const struct cg_kernel_step *step,
                            const LLVMValueRef *operands, unsigned n);
    void (*resident_copy)(struct cg_resident *r, unsigned n, const LLVMValueRef *to,
                          const LLVMValueRef *from, int64_t count, unsigned bytes);
    void (*resident_wait)(struct cg_resident *r);
    // Programs and modules.
    jot_status (*program)(struct cg_module *m, struct arena *arena,
                          struct nest_program *program, struct cg_kernel *kernels,
                          struct cg_phases *phases);
    void (*split_bytes)(LLVMModuleRef module);
    char *(*finish_text)(struct arena *arena, const char *target, const char *ptx);
    void (*take_texts)(struct arena *arena, const char *target, const struct cg_objects *parts,
                       struct cg_object *out);
};

extern const struct cg_hooks cg_hooks_of_gpu; // gpu/hooks.c

#endif
