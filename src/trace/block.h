// SPDX-License-Identifier: Apache-2.0
// Blocks: bodies traced in place.
//
// A block macro is a loop that runs its body once, or a few times when the body has parts (the
// branches of JOT_IF and JOT_SWITCH) or must be seen again with other types.  Opening a part opens
// a trace and rebinds the variables of its lists; closing it makes a function of what the part
// recorded; in the end the kind of the block makes an op of the functions, and the results are
// assigned to the variables.
#ifndef TRACE_BLOCK_H
#define TRACE_BLOCK_H

#include "trace/function.h"

#include "jot/control.h"

// One value of a variable in a list.
struct block_leaf {
    jot_value *at, before; // where it lives; what it was before the block
    jot_value outer;       // that in the trace around the block
    const char *name;
    size_t index, of;    // in its variable
    struct ir_type type; // in the graph
    bool starts_weak;    // the value before the block has met C numbers only
    bool weak;           // so has that inside, or the result
    bool is_bit; // the value before the block is a C number 0 or 1, false or true perhaps
};

struct block_leaves {
    struct block_leaf *at;
    int count;
};

enum block_progress { BLOCK_DONE, BLOCK_AGAIN, BLOCK_FAILED };

// What a kind reads of jot_loop_options, or refuses by a message of its own.
enum block_option {
    BLOCK_LENGTH = 1u << 0,
    BLOCK_REVERSE = 1u << 1,
    BLOCK_BOUND = 1u << 2,
    BLOCK_SLOTS = 1u << 3,
    BLOCK_CHECKPOINT = 1u << 4,
    BLOCK_BATCH = 1u << 5,
};

struct block_kind {
    unsigned options; // of enum block_option
    // Checks the imported inputs and opens the first part.  False with b->error set.
    bool (*open)(jot_block *b);
    // Ends a part whose body has run.  BLOCK_AGAIN when another part is open; BLOCK_DONE with the
    // values of b->carry and b->out, in the trace around the block, in `results`.
    enum block_progress (*close)(jot_block *b, ir_id *results);
};

struct jot_block {
    const struct block_kind *kind;
    const char *where, *name;    // "qmc.c:8: JOT_FOR", "JOT_FOR"
    struct trace *trace, *outer; // the part that is open
    struct block_leaves carry, in, out;
    int64_t length, batch; // trips, or the bound of JOT_WHILE with 0 for none; rows at once
    int64_t checkpoint, slots;
    const char *axis_name; // of the rows, or NULL
    int axis;              // the same axis, or PASS_UNNAMED
    bool reverse;
    jot_value first, number; // JOT_FOR: from here, to there; JOT_IF, JOT_SWITCH: which branch
    jot_value index;         // JOT_FOR: inside the body
    struct traced *parts;    // those before the one that is open
    // Of JOT_IF and JOT_SWITCH: whether a result is a C number 0 or 1, branch by branch.
    bool *bits;
    const char **made; // and where it was made, or NULL
    int n_parts, n_branches;
    bool has_failed;
    bool is_in_body; // of a while: the body has begun and not ended
    bool is_inert;   // opening failed: the body runs, and its results are the error
    bool is_closed;  // the end of the body was reached
    bool is_lost;    // the scope around it was closed in the body
    bool has_run;
    jot_value error;
};

// "x", or "p (value 2 of 4)"; in a buffer of the thread.
const char *block_leaf_name(const struct block_leaf *l);
// An error of the block, at its place.
__attribute__((format(printf, 3, 4))) jot_value block_fail(jot_block *b, jot_status status,
                                                           const char *format, ...);

// The place ends with the name of the block.
jot_block *block_create(const struct block_kind *kind, const jot_piece *carry,
                        const jot_piece *in, const jot_piece *out, const char *where);
// Whether all options that are set are read by the kind; else the block is inert, with an error.
bool block_accepts(jot_block *b, const jot_loop_options *options);
// Opens it: what begin functions return.
jot_block *block_begin(jot_block *b);

// Frees a block that the user's code has left without a word.  NULL is fine.
void block_free(jot_block *b);
// The traces of the block are ended by somebody else; its body goes on.  NULL is fine.
void block_lose(jot_block *b);

// Opens the trace of a part, with no parameter yet.
void block_open_part(jot_block *b);
// Gives the variable a parameter of that type, as weak as the leaf.
void block_bind(struct block_leaf *l, struct ir_type type);
// Opens a part whose variables are the carries and a row of each of the listed arrays.  How many
// rows there are comes to b->length, which may stand before (-1: it does not).  False with b->error
// set when they differ.
bool block_open_rows(jot_block *b);
// What the body made of b->out, as values of the open part in order; false with an error.
bool block_collect(jot_block *b, ir_id *ids);
// The same of b->carry.  A carry that started as a C number takes the type that the body makes of
// it, and BLOCK_AGAIN asks to open the part anew; another that is not as before is an error.
enum block_progress block_collect_carries(jot_block *b, ir_id *ids);
// Closes the part into a function of n results.  Variables have the values from before the block.
bool block_close_part(jot_block *b, int n, const ir_id *ids, struct traced *out);

// Whether the imported value is the C number 0 or 1, which false and true of C11 are.
bool block_is_bit(jot_value v);
// Whether it is that or one bool.
bool block_is_bool(jot_value v);
// Whether what came from C numbers, seen as that dtype, goes where another is.
bool block_adapts(jot_dtype weak, jot_dtype other);
// The dtype in the graph that holds what came from C numbers and is of either dtype there; false
// when none does.
bool block_join(jot_dtype a, jot_dtype b, jot_dtype *out);

// What hidden values several functions use, and the functions with all of them first, then their
// own parameters.  False with an error.
struct block_consts {
    int n;
    jot_value *at;
};
bool block_share(jot_block *b, int n, const struct traced *const *parts, uint32_t *functions,
                 struct block_consts *out);
// The values in the innermost trace: the consts, then those of the lists before the block.  There
// is room for one more.
ir_id *block_operands(jot_block *b, const struct block_consts *c, int n_lists,
                      const struct block_leaves *const *lists, int *out_n);
// The results of a node, the first of which is given, are those of the block.  An error of the
// builder is found by who asked.
enum block_progress block_take_results(const jot_block *b, ir_id first, ir_id *results);

#endif
