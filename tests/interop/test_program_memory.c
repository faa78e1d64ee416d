// SPDX-License-Identifier: Apache-2.0
// Memory that programs take while they are read: constants stand in it once, and parts that stand deep in each other
// need no deep stack.
#include "interop/program_support.h"
#include "interop/tree.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// In KiB: VmRSS, or VmHWM, which is the most there was.
static long memory_of(const char *name)
{
    char line[256];
    long n = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && n < 0 && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name)))
            n = strtol(line + strlen(name) + 1, NULL, 10);
    if (status)
        fclose(status);
    return n;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER true // it has memory of its own
#else
#define HAS_SANITIZER false
#endif

enum { CONSTANT_MIB = 64, CONSTANT_ELEMENTS = CONSTANT_MIB << 18 };

static void write_large(const char *path, int n, bool is_resource)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out,
            "func.func @main(%%x: tensor<f32>) -> tensor<f32> {\n"
            "  %%c = stablehlo.constant %s",
            is_resource ? "dense_resource<w>" : "dense<\"0x");
    for (int part = 0; part < 2; part++) {
        if (part)
            fprintf(out,
                    " : tensor<%dxf32>\n  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                    "  %%s = stablehlo.reduce(%%c init: %%z) applies stablehlo.add across "
                    "dimensions = "
                    "[0] : (tensor<%dxf32>, tensor<f32>) -> tensor<f32>\n"
                    "  %%y = stablehlo.multiply %%s, %%x : tensor<f32>\n"
                    "  return %%y : tensor<f32>\n}\n%s",
                    n, n,
                    is_resource ? "{-#\n dialect_resources: { builtin: { w: \"0x04000000" : "");
        for (int i = 0; i < n && part == is_resource; i++)
            fputs(i % 2 ? "0000803F" : "00000040", out);
        if (part == is_resource)
            fputs(is_resource ? "\" } }\n#-}\n" : "\">", out);
    }
    ck_assert_int_eq(fclose(out), 0);
}

enum from { FROM_TEXT, FROM_RESOURCE, FROM_BYTECODE, FROM_MEMORY, FROM_BORROWED };

static void free_counted(void *bytes, void *count)
{
    free(bytes);
    ++*(int *)count;
}

// Whoever has the memory does away with it when the program is read.
static jot_program *program_of(enum from from, const char *path, int *n_released)
{
    size_t n;
    *n_released = 0;
    if (from < FROM_MEMORY)
        return jot_program_read(path);
    unsigned char *bytes = tree_load(path, &n);
    if (from == FROM_BORROWED)
        return jot_program_borrow(path, bytes, n, free_counted, n_released);
    jot_program *p = jot_program_from_memory(path, bytes, n);
    memset(bytes, 0xff, n);
    free(bytes);
    return p;
}

// 2 times the sum of 1 and 2 in turn.
static void run_large(enum from from, const char *path, int n)
{
    int n_released;
    jot_program *p = program_of(from, path, &n_released);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    jot_executable *f = jot_jit(jot_program_function(p, "main"), .device = jot_host());
    jot_array *x = jot_array_full(JOT_F32, 2), *y[1];
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    ck_assert_float_eq(*(const float *)jot_array_data(y[0]), 3.0f * (float)n);
    jot_arrays_release(JOT_OUT(y));
    jot_array_release(x);
    ck_assert_int_eq(n_released, 0);
    jot_program_release(p);
    ck_assert_int_eq(n_released, 0);
    jot_executable_release(f);
    ck_assert_int_eq(n_released, from == FROM_BORROWED);
}

// Beside what it is read from, and where it is borrowed not even that; another process makes the file.
START_TEST(constants_are_in_memory_once)
{
    char path[] = "/tmp/jot-large-XXXXXX.mlirbc";
    const char *backend = getenv("JOT_BACKEND");
    if (HAS_SANITIZER || (backend && !strcmp(backend, "eval")))
        return;
    int file = mkstemps(path, 7), ended;
    ck_assert_int_ge(file, 0);
    close(file);
    pid_t maker = fork();
    if (maker == 0) {
        write_large(path, CONSTANT_ELEMENTS, _i == FROM_RESOURCE);
        jot_program *p = _i >= FROM_BYTECODE ? jot_program_read(path) : NULL;
        _exit(p && jot_program_write(p, path) != JOT_OK);
    }
    ck_assert(waitpid(maker, &ended, 0) == maker && WIFEXITED(ended) && !WEXITSTATUS(ended));
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    char small[] = "/tmp/jot-small-XXXXXX";
    close(mkstemp(small));
    write_large(small, 1 << 16, false);
    run_large(FROM_TEXT, small, 1 << 16); // what compiling takes is there already
    unlink(small);
    long before = memory_of("VmRSS");
    run_large(_i, path, CONSTANT_ELEMENTS);
    long grown = memory_of("VmHWM") - before - (long)(about.st_size >> 10);
    unlink(path);
    ck_assert_msg(grown < CONSTANT_MIB * 1024 * (_i == FROM_BORROWED ? 1 : 6) / 5,
                  "a constant of %d KiB takes %ld beside its file", CONSTANT_MIB * 1024, grown);
}
END_TEST

// Parts of a program that stand deep in each other, on a stack that has no room for them.
struct deep {
    const char *text;
    int read;
};

static void *read_and_write(void *ctx)
{
    struct deep *d = ctx;
    jot_program *p = jot_program_from_memory("deep.mlir", d->text, strlen(d->text));
    for (int form = JOT_PROGRAM_TEXT; form <= JOT_PROGRAM_BYTECODE; form++) {
        size_t n = 0, room = 8 << 20; // of which indentation takes most
        char *bytes = calloc(1, room);
        if (jot_program_to_memory(p, (jot_program_format)form, bytes, room, &n) == JOT_OK) {
            jot_program *again = jot_program_from_memory("again", bytes, n);
            d->read += again != NULL;
            jot_program_release(again);
        }
        free(bytes);
    }
    jot_program_release(p);
    return NULL;
}

static void add_times(struct strbuf *s, int n, const char *text)
{
    while (n-- > 0)
        strbuf_add(s, text);
}

START_TEST(are_deep_on_small_stacks)
{
    enum { DEEP = 990 };
    struct arena *arena = arena_create();
    struct strbuf s = strbuf_make(arena);
    strbuf_add(&s, "func.func public @main(%x: tensor<f32>) -> tensor<f32> {\n"
                   "  %i = stablehlo.constant dense<0> : tensor<i32>\n");
    if (_i) {
        add_times(&s, DEEP, "  %y = \"stablehlo.case\"(%i) ({\n");
        strbuf_add(&s, "  stablehlo.return %x : tensor<f32>\n");
        add_times(&s, DEEP - 1,
                  "  }) : (tensor<i32>) -> tensor<f32>\n"
                  "  stablehlo.return %y : tensor<f32>\n");
        strbuf_add(&s, "  }) : (tensor<i32>) -> tensor<f32>\n");
    } else {
        strbuf_add(&s, "  %y = stablehlo.custom_call @f(%x) {a = ");
        add_times(&s, DEEP, "[");
        strbuf_add(&s, "1");
        add_times(&s, DEEP, "]");
        strbuf_add(&s, "} : (tensor<f32>) -> tensor<f32>\n");
    }
    strbuf_add(&s, "  return %y : tensor<f32>\n}\n");
    struct deep d = {.text = s.text};
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, 64 << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, read_and_write, &d), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(d.read, 2);
    arena_release(arena);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, constants_are_in_memory_once, 0, FROM_BORROWED + 1);
    tcase_add_loop_test(t, are_deep_on_small_stacks, 0, 2);
}

int main(void) { return run_by_both("program_memory", add); }
