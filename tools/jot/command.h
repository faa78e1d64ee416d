// SPDX-License-Identifier: Apache-2.0
// What the commands of `jot` share.  They use the public headers alone.
#ifndef COMMAND_H
#define COMMAND_H

#include "jot/jot.h"

#include <stdbool.h>
#include <stdio.h>

// ---- arguments.c ----

enum option {
    OPTION_INPUT = 1 << 0,
    OPTION_OUTPUT_DIR = 1 << 1,
    OPTION_DEVICE = 1 << 2,
    OPTION_FUNCTION = 1 << 3,
    OPTION_TF32 = 1 << 4,
    OPTION_WRT = 1 << 5,
    OPTION_OUTPUT = 1 << 6,
    OPTION_STAGE = 1 << 7,
    OPTION_AGAINST = 1 << 8,
    OPTION_TUNE = 1 << 9,
};
#define OPTIONS_OF_PROGRAM (OPTION_INPUT | OPTION_DEVICE | OPTION_FUNCTION | OPTION_TF32)
#define OPTIONS_OF_RUN (OPTIONS_OF_PROGRAM | OPTION_TUNE)

// What was said; lists are of pointers into the arguments of main.
struct arguments {
    const char **files, **inputs;
    int n_files, n_inputs;
    const char *output_dir, *function, *stage;
    jot_device *device; // NULL: the default one
    int *wrt;           // ends with JOT_END
    int output;
    bool tf32, tune, against_python, wants_help;
};

struct command {
    const char *name;
    bool (*run)(const struct arguments *a); // false after a message
    unsigned options;                       // enum option
    int least, most;                        // files
    const char *files;                      // in the usage
    const char *brief, *about;
};
extern const struct command commands[]; // ends with a name of NULL

// False after a message.
bool read_arguments(const struct command *c, int n, char **words, struct arguments *out);
void forget_arguments(struct arguments *a);
void print_help(const struct command *c, FILE *to);

// "jot NAME: ..." on stderr, and how jot ends then; they are false.
extern const char *command_name;
__attribute__((format(printf, 1, 2))) bool fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) bool misuse(const char *format,
                                                  ...); // what was asked for is wrong
bool fail_status(void);                                 // with the message of the library

// ---- job.c ----

// A function of a program with arrays for it.
struct job {
    const struct arguments *a;
    jot_program *program;
    const jot_program_signature *signature;
    jot_executable *executable;
    jot_array **in, **out;
    size_t n_in, n_out;
    bool is_last_run; // arguments may be overwritten where the program says so
};

// Reads the program of j->a and finds its function.  All of these say what is wrong, and false is failure.
bool open_job(struct job *j);
void close_job(struct job *j);
// The arrays of --input; others are random where they may be.
bool read_inputs(struct job *j, bool may_be_random);
// Compiles f, of n_out results, for the arrays, and tells on stderr when that takes long.
bool compile_job(struct job *j, jot_function f, size_t n_out);
bool run_job(struct job *j); // results are there when it ends
// Writes what out holds to the folder of --output-dir as NAME0.npy ..., or prints it.
bool give_outputs(const struct job *j, const char *name);

// "f32[2,3]"
const char *type_text(jot_dtype dtype, int rank, const int64_t *dims, char *room, size_t size);

// ---- random.c ----

// An array of the type, the same for the same seed; NULL with a message.
jot_array *random_array(const jot_program_type *t, uint64_t seed);

// ---- progress.c ----

// What is being done is said on stderr when it takes longer than a second, and how long it took.
struct progress;
struct progress *progress_start(const char *what);
double progress_end(struct progress *p); // seconds
double now(void);                        // seconds of a clock

// ---- the commands ----

bool command_run(const struct arguments *a);
bool command_check(const struct arguments *a);
bool command_grad(const struct arguments *a);
bool command_convert(const struct arguments *a);
bool command_print(const struct arguments *a);
bool command_time(const struct arguments *a);
bool command_devices(const struct arguments *a);

#endif
