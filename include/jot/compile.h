// SPDX-License-Identifier: Apache-2.0
// Compiling functions and running them, and the lazy scope that needs neither.
//
//     jot_executable *df = jot_jit(jot_grad(jot_fn(energy), 0, 1));
//     jot_array *g[2];
//     if (jot_call(df, JOT_IN(w, alpha, x), JOT_OUT(g)) != JOT_OK)
//         fprintf(stderr, "%s\n", jot_error_message());
//     jot_arrays_release(JOT_OUT(g));
//     jot_executable_release(df);
#ifndef JOT_COMPILE_H
#define JOT_COMPILE_H

#include "jot/array.h"
#include "jot/ops.h"
#include "jot/products.h"
#include "jot/transform.h"

JOT_BEGIN_C

// ---- compiled functions ----

// Counted.  Thread-safety: may be called from several threads at once; a first call with new types
// traces and compiles while others wait.
//
// Stack: tracing takes some 20 KiB beside what the traced functions take, and a run with callbacks 16.
// With less, and where functions or blocks are too deep in each other, a status says how much there
// has to be. What takes more, compiling above all, is done on a stack of jot's own where the thread
// has too little.
//
// Forks: the child of a fork may use jot whatever other threads of the parent were doing. It has one
// thread. GPUs that the parent has used are lost there. If another thread was compiling at that moment,
// the child compiles as with JOT_COMPILE_PROCESS.
typedef struct jot_executable jot_executable;

// Where code is generated.  Results are the same.
typedef enum jot_compile {
    JOT_COMPILE_DEFAULT, // as $JOT_COMPILE says, "inside" or "process"; inside where it says nothing
    JOT_COMPILE_INSIDE, // in this process, which a crash or a lack of memory of LLVM ends
    // In a process of its own with limits of memory and time: whatever LLVM does there is a status,
    // JOT_ERR_MEMORY or JOT_ERR_LIBRARY.  A compilation takes some 50 ms longer.  For services that
    // compile what they are sent, and where memory is short.
    JOT_COMPILE_PROCESS,
} jot_compile;

// Zero is the default of every field.
typedef struct jot_jit_options {
    const char *name; // in messages and dumps, instead of that of the C function; copied
    // Arguments whose arrays the call may overwrite, a list that ends with JOT_END: the memory of
    // an array that nobody else holds becomes that of a result, and the array must only be released
    // afterwards.
    const int *donate;
    // Bytes that the traced function reads besides its arguments (what ctx points to, a global).
    // They are compared at each call: when they have changed the function is traced again.
    const void *static_data;
    size_t static_size;
    // Where it runs, and where its results are; NULL is the default device of the time.  Inputs
    // that are elsewhere are copied for the call.
    jot_device *device;
    // Of products that ask for none themselves (jot/products.h).
    jot_precision precision;
    // Where code is generated, and the limits of JOT_COMPILE_PROCESS: bytes of memory, or
    // $JOT_COMPILE_BYTES, or 4 GiB, and seconds, or $JOT_COMPILE_SECONDS, or 300.
    jot_compile compile;
    size_t compile_bytes;
    double compile_seconds;
    // The most versions that are kept: there is one for each set of input types and each state
    // of static_data.  0: as many as jot_set_most_versions says.
    size_t most_versions;
    // Of this struct, set by the macro; 0 is this version. Fields behind it are read where they are part of it.
    size_t size;
    // Whether each version is tuned when it is compiled: it is compiled some eight times, run on the arrays
    // of the call that asks for it, and what was fastest stays. Results are the same, bit for bit. What was
    // found is kept in the disk cache, and measured once for a program and a machine. Functions with
    // callbacks, and those that a mesh runs, are not tuned.
    bool tune;
} jot_jit_options;

// NULL with a message when f is not sound or memory is out.  Tracing waits for the first call.
JOT_API JOT_MUST_USE jot_executable *jot_jit_with(jot_function f,
                                                  const jot_jit_options *options);
JOT_API jot_executable *jot_executable_retain(jot_executable *f);
JOT_API void jot_executable_release(jot_executable *f); // NULL is fine

// How often the function has been traced and compiled so far.
JOT_API size_t jot_executable_versions(const jot_executable *f);

// How much compiled code is kept.  A new version that is one too many takes the place of the
// one that has not been used for the longest time.  That is freed when no call runs it any
// more, with its machine code, its module on a GPU and the memory of its temporaries, and is
// traced again when a call needs it.
typedef struct jot_version_use {
    size_t kept, most; // versions, and how many are kept at most
    size_t bytes;      // of graphs, code, constants and temporaries of those that are kept
    size_t made;       // how often one was compiled, or found in the disk cache
    size_t hits;       // calls that found a version; a few less where threads call at once
    size_t evicted;
} jot_version_use;
// Of an executable; all zero for NULL.  Thread-safe.
JOT_API jot_version_use jot_executable_use(const jot_executable *f);
// Of the programs of lazy scopes, all threads together.
JOT_API jot_version_use jot_scope_use(void);
// Bounds for the process: on the versions of executables whose options give none, 512 unless
// set, and on the programs of lazy scopes, 256 unless set; 0 sets that again.  What is above a
// new bound is freed when the next version or program is made.
JOT_API void jot_set_most_versions(size_t n);
JOT_API void jot_set_most_scope_programs(size_t n);

// What was made for the types of the last call, as text.  "trace" is the graph as it was traced and
// transformed; then those of compiled code: "simplify", "schedule", "memory", "llvm",
// "code".  NULL with a message before the first call or when there is no such stage.  Borrowed
// until the next call of this function on the executable.
JOT_API const char *jot_executable_text(jot_executable *f, const char *stage);
JOT_API const char *jot_executable_graph(jot_executable *f); // jot_executable_text(f, "trace")

// The arrays of one argument: what JOT_IN makes a list of.
typedef struct jot_array_piece {
    jot_array **at;
    size_t n;
} jot_array_piece;

// Runs f on the arrays of JOT_IN(...).  Arrays of dtypes, weakness or shapes that no call has had
// so far trace f anew and compile what comes of it, or take that from the disk cache, which costs
// milliseconds to seconds; jot_executable_versions counts.  On JOT_OK every output is a new
// reference; on failure out is untouched.  Numbers of arrays that do not fit are
// JOT_ERR_ARGUMENT; what is wrong in the traced code is reported with its place.
//     jot_call(f, JOT_IN(params, x, y), JOT_OUT(grad))
JOT_API JOT_MUST_USE jot_status jot_call(jot_executable *f, const char *where,
                                         const jot_array_piece *in, size_t n_out,
                                         jot_array **out);

// The same for arrays in one list.
JOT_API JOT_MUST_USE jot_status jot_call_list(jot_executable *f, size_t n_in,
                                              jot_array *const *in, size_t n_out,
                                              jot_array **out);

// Traces and compiles f for arrays of these types, where that has not been done, and runs nothing: the
// next call has no more to wait for, and jot_executable_text tells what was made.
JOT_API JOT_MUST_USE jot_status jot_executable_prepare(jot_executable *f, size_t n_in,
                                                       jot_array *const *in);

// ---- checking derivatives ----

// Which derivatives jot_check_grads compares with what.
enum jot_mode {
    JOT_FORWARD = 1 << 0, // jvp against central differences
    JOT_REVERSE = 1 << 1, // vjp against jvp's numbers
};

// Compares the derivatives of f at the arrays, along random directions, with central differences,
// up to the given order.  Arrays that are not floating or complex stay fixed.  JOT_ERR_ARGUMENT
// with the two numbers when they differ by more than tolerance, relative to their size; 0 is a
// tolerance by dtype (1e-5 for f64, 2e-3 for f32).
JOT_API JOT_MUST_USE jot_status jot_check_grads_list(jot_function f, size_t n,
                                                     jot_array *const *at, int order,
                                                     unsigned modes, double tolerance);

// ---- the lazy scope ----

// Between opening and closing a scope, operations outside of any function build a graph;
// evaluating a value compiles what it needs, or finds it compiled already: floating C numbers are
// inputs, so a learning rate that changes does not compile again. Integers are part of the program:
// in a loop take new keys by jot_random_split, not from a seed that changes.
//
// A C loop around evaluations compiles a few programs, however many trips it has: what an evaluation
// needs of what was recorded before an earlier one becomes an array, so that each program is as long
// as what stands between two evaluations. Of such arrays the scope keeps 256 MiB, those used last;
// what it has let go of is computed again. What has been recorded stays, for derivatives, until the
// scope is closed: loops of many thousand trips renew it by jot_scope_keep.
//
//     jot_scope *s = jot_scope_open();
//     jot_value b = jot_add(jot_sin(array), 1.0);
//     if (jot_eval(b, &result) != JOT_OK) ...
//     jot_scope_close(s);
typedef struct jot_scope jot_scope;

// A scope and its values are of the thread that opened it: in another one they are errors.  It ends
// when it is closed, with the function or scope that it was opened in, or with its thread.
JOT_API JOT_MUST_USE jot_scope *jot_scope_open_at(const char *where); // NULL when memory is out
// NULL is fine.  A scope of another thread, or one in which a function is being traced, stays open,
// with a message.
JOT_API void jot_scope_close(jot_scope *s);

// The array of a value; *out is a new reference, and may be NULL when only the evaluation counts.
// The value is an array from then on, and is not computed again; derivatives still go through it, to
// the variables that it was made of.
JOT_API JOT_MUST_USE jot_status jot_eval(jot_value v, jot_array **out);
// The same for n values at once.
JOT_API JOT_MUST_USE jot_status jot_eval_tree(size_t n, const jot_value *v, jot_array **out);
// The number itself; NaN with a message on failure.
JOT_API double jot_item(jot_value v);
JOT_API double jot_item_at(jot_value v, const char *where);
// Writes "name = [...]" to stdout, or the error.  In a function that is traced it is written
// when the function runs (jot/debug.h).
JOT_API void jot_print_value(jot_value v, const char *name);
// Evaluates v, forgets everything else of the innermost scope, and renews the handles in v: for
// long loops.
JOT_API JOT_MUST_USE jot_status jot_scope_keep(jot_scope *s, size_t n, jot_value *v);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

// jot_jit(f)  jot_jit(f, .name = "step")
#if defined(__cplusplus)
#define jot_jit(f) jot_jit_with(f, nullptr)
#else
#define jot_jit(...)                                                                           \
    jot_jit_with(JOT_A_FUNCTION_("jot_jit", JOT_FIRST_(__VA_ARGS__, 0)),                       \
                 JOT_OPTIONS_(jot_jit_options,                                                 \
                              "jot_jit takes (f, .name = ..., .donate = ..., .device = ...)",  \
                              JOT_REST_(__VA_ARGS__, .size = sizeof(jot_jit_options))))
#endif

// Arrays given to and taken from a compiled function.  Each argument is a jot_array * variable, or
// a struct or C array of them; up to 64.  A pointer to arrays, as a parameter is, does not say
// how many there are: jot_call_list takes it with their number.
#define JOT_OUT(x) JOT_OUT_("JOT_OUT", x)
#define JOT_OUT_(name, x) JOT_ARRAYS_(name, x), JOT_ARRAYS_AT_(x)
#if defined(__cplusplus)
template <size_t count> using jot_array_pieces_ = jot_list_<jot_array_piece, count>;
template <class T> constexpr bool jot_are_arrays_()
{
    using element = typename std::remove_cv<typename std::remove_all_extents<T>::type>::type;
    return (std::is_class<element>::value || std::is_same<element, jot_array *>::value ||
            std::is_same<element, const jot_array *>::value) &&
           sizeof(T) % sizeof(jot_array *) == 0 && alignof(T) == alignof(jot_array *);
}
template <class T> inline jot_array **jot_arrays_at_(T &x)
{
    static_assert(jot_are_arrays_<T>(),
                  "JOT_IN and JOT_OUT take a jot_array *, or a struct or C array of them");
    return (jot_array **)(void *)(&x);
}
#define JOT_ARRAYS_(name, x) (sizeof(x) / sizeof(jot_array *))
#define JOT_ARRAYS_AT_(x) jot_arrays_at_(x)
#define JOT_ARRAY_PIECE_(name, x) {JOT_ARRAYS_AT_(x), JOT_ARRAYS_(name, x)}
#define JOT_IN(...)                                                                            \
    JOT_HERE,                                                                                  \
        jot_array_pieces_<JOT_ARGUMENTS_(__VA_ARGS__) + 1>{                                    \
            {JOT_EACH_(JOT_ARRAY_PIECE_, "JOT_IN", __VA_ARGS__),                               \
             {nullptr, JOT_MUST_BE_LIST_("JOT_IN", "arguments", __VA_ARGS__)}}}                \
            .v
#else
#define JOT_ARRAYS_(name, x)                                                                   \
    (JOT_MUST_(JOT_ARE_ARRAYS_(x),                                                             \
               name " takes a jot_array *, or a struct or C array of them, not"                \
                    " a pointer to several") +                                                 \
     sizeof(x) / sizeof(jot_array *))
#define JOT_ARRAYS_AT_(x) ((jot_array **)(void *)&(x))
#define JOT_ARRAY_PIECE_(name, x) {.n = JOT_ARRAYS_(name, x), .at = JOT_ARRAYS_AT_(x)}
#if defined(__GNUC__)
#define JOT_ARE_ARRAYS_(x)                                                                     \
    _Generic(&JOT_ITEM_(x),                                                                    \
        jot_array * *: 1,                                                                      \
        const jot_array **: 1,                                                                 \
        jot_array *const *: 1,                                                                 \
        const jot_array *const *: 1,                                                           \
        jot_value *: 0,                                                                        \
        const jot_value *: 0,                                                                  \
        default: sizeof(x) % sizeof(jot_array *) == 0 &&                                       \
            __alignof__(__typeof__(x)) == __alignof__(jot_array *) &&                          \
            JOT_IS_STRUCT_OR_ARRAY_(JOT_ITEM_(x)))
#else
#define JOT_ARE_ARRAYS_(x)                                                                     \
    _Generic(&(x), jot_array * **: 0, default: sizeof(x) % sizeof(jot_array *) == 0)
#endif
#define JOT_IN(...)                                                                            \
    JOT_HERE, ((void)(JOT_MUST_(sizeof(#__VA_ARGS__) > 1, "JOT_IN takes 1 to 64 arrays") +     \
                      JOT_MUST_BE_LIST_("JOT_IN", "arguments", __VA_ARGS__)),                  \
               ((const jot_array_piece[]){JOT_EACH_(JOT_ARRAY_PIECE_, "JOT_IN", __VA_ARGS__),  \
                                          {NULL, 0}}))
#endif

// Takes over the result of a step: releases what is in dst and moves src there.
#define jot_arrays_replace(dst, src)                                                           \
    jot_arrays_move(JOT_OUT_("jot_arrays_replace", dst), JOT_OUT_("jot_arrays_replace", src))

// jot_check_grads(f, 2, JOT_FORWARD | JOT_REVERSE, 0, x, y)
#if !defined(__cplusplus)
#define jot_check_grads(f, order, modes, tolerance, ...)                                       \
    jot_status_place(                                                                          \
        jot_check_grads_list(JOT_A_FUNCTION_("jot_check_grads", f),                            \
                             JOT_ARGUMENTS_(__VA_ARGS__) +                                     \
                                 JOT_MUST_BE_LIST_("jot_check_grads", "arrays", __VA_ARGS__),  \
                             ((jot_array *const[]){__VA_ARGS__}), order, modes, tolerance),    \
        JOT_HERE)
#endif

#define jot_scope_open() jot_scope_open_at(JOT_HERE)

// The same functions, with the place of the call in their messages.
#if !defined(JOT_PLAIN)
#define jot_eval(v, out) jot_status_place(jot_eval(JOT_VALUE_("jot_eval", v), out), JOT_HERE)
#define jot_eval_tree(...) jot_status_place(jot_eval_tree(__VA_ARGS__), JOT_HERE)
#define jot_scope_keep(...) jot_status_place(jot_scope_keep(__VA_ARGS__), JOT_HERE)
#define jot_call_list(...) jot_status_place(jot_call_list(__VA_ARGS__), JOT_HERE)
#define jot_item(v)                                                                            \
    jot_item_at((JOT_ONE_IS_THERE_("jot_item", #v), JOT_VALUE_("jot_item", v)), JOT_HERE)
#endif
#if !defined(JOT_PLAIN)
#define jot_print(x) jot_print_value(JOT_VALUE_("jot_print", x), #x)
#endif

#endif
