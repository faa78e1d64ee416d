// SPDX-License-Identifier: Apache-2.0
// What the ways of a long running fold have in common: windows of neighbouring elements of a warp.
#ifndef CODEGEN_GPU_SCAN_H
#define CODEGEN_GPU_SCAN_H

#include "codegen/kernel.h"

// Of three functions that go one after the other; of one that does all, of a warp that has all of a point's.
enum pass { PASS_FOLD, PASS_OFFSETS, PASS_STORE, PASS_ONCE, PASS_WHOLE };

struct scan {
    const struct nest_statement *s, *yield;
    const struct nest_statement *par; // each of whose points has a scan, or NULL
    int64_t points;
    const struct nest_combine *combine;
    uint32_t yield_at; // in the body
    enum pass pass;
    unsigned lanes;
    unsigned columns; // points side by side, of which a thread has a chunk each; 0: a warp has
    int64_t length, chunk; // elements
    LLVMValueRef partial[2], lane;
    LLVMValueRef own; // a position of the thread's chunk, of columns
};

// A thread's elements of a window.
struct window {
    struct cg_value *values; // of the body
    LLVMValueRef at, is_inside;
    struct cg_value running; // what was read, then its running fold
};

// The steps of a kernel whose loops are such scans, or that has one of such loops.
void gpu_scan_lower(struct cg_lowering *l, struct cg_kernel *out);

struct scan gpu_scan_make(struct cg_lowering *l, nest_id id, enum pass pass);
struct cg_value gpu_scan_combine(struct cg_lowering *l, const struct scan *p, struct cg_value x,
                                 struct cg_value y);
// What leaves any element as it is: the sum of none is -0 then.
struct cg_value gpu_scan_neutral(struct cg_lowering *l, const struct scan *p, unsigned lanes);
// From the thread of the warp whose number is `by` smaller, or from number `by`.
struct cg_value gpu_scan_shuffled(struct cg_lowering *l, struct cg_value v, bool is_up,
                                  unsigned by);
// Reads the thread's elements from position `first` of the scan on; the neutral one behind the end.
void gpu_scan_read(struct cg_lowering *l, const struct scan *p, struct window *w,
                   LLVMValueRef first, bool may_end);
// The running values of a window that comes after `carry`; the new carry.
struct cg_value gpu_scan_run(struct cg_lowering *l, const struct scan *p, struct window *w,
                             struct cg_value carry);
// Stores them.
void gpu_scan_write(struct cg_lowering *l, const struct scan *p, struct window *w);

#endif
