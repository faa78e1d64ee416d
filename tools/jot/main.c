// SPDX-License-Identifier: Apache-2.0
// The command `jot`: programs of StableHLO, as JAX writes them, on this machine.
#include "command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

const char *command_name = "";

#define FILES_OF_PROGRAM                                                                       \
    "FILE is StableHLO as text, portable bytecode, or what jax.export serializes.\n"
#define ABOUT_INPUTS                                                                           \
    "Each --input is the next of the flattened arguments, a .npy file; NAME=FILE is the "      \
    "argument\n"                                                                               \
    "called so in the program, as x or params['w'], or of that number, as 0, in0 or arg0; a "  \
    ".npz\n"                                                                                   \
    "or .safetensors file, or an index of these, gives its arrays in order, or by name "       \
    "where\n"                                                                                  \
    "all are those of arguments.\n"

enum { MOST_AXES = 8 };

const struct command commands[] = {
    {"run", command_run, OPTIONS_OF_RUN | OPTION_OUTPUT_DIR, 1, 1, "FILE",
     "run a program on arrays",
     FILES_OF_PROGRAM ABOUT_INPUTS "Results are printed, or are D/out0.npy, D/out1.npy ... "
                                   "with --output-dir D, which is made.\n"},
    {"check", command_check, OPTION_DEVICE, 1, 1000000, "FILE...",
     "run test programs and compare what they expect",
     "Runs @main of each test program of StableHLO, and tells each one that fails or is not "
     "supported,\n"
     "with its reason.  Of a folder all .mlir and .mlirbc files are taken.  Form is what files "
     "that\n"
     "differ only in element types share, operation the begin of their name.  The last line "
     "is\n"
     "\"N passed, N failed, N unsupported\".\n"},
    {"grad", command_grad, OPTIONS_OF_RUN | OPTION_OUTPUT_DIR | OPTION_WRT | OPTION_OUTPUT, 1,
     1, "FILE", "the gradient of a program's result",
     FILES_OF_PROGRAM ABOUT_INPUTS
     "Gradients are those of the sum of the elements of result --output; they are printed, or "
     "are\n"
     "D/grad0.npy ... with --output-dir D, in the order of --wrt.  Complex ones are JAX's.\n"},
    {"convert", command_convert, 0, 2, 2, "IN OUT", "write a program in another form",
     "OUT is text where its name ends in .mlir, and portable bytecode where it ends in "
     ".mlirbc.\n"},
    {"print", command_print, OPTIONS_OF_PROGRAM | OPTION_STAGE, 1, 1, "FILE",
     "show what a program is compiled to",
     FILES_OF_PROGRAM
     "Types are those of the program, or of --input.  It is compiled, not run.\n"},
    {"time", command_time, OPTIONS_OF_RUN | OPTION_AGAINST, 1, 1, "FILE",
     "how long a program compiles and runs",
     FILES_OF_PROGRAM ABOUT_INPUTS
     "Arguments without an --input are random: floats from 0.5 to 1, integers from 0 to 9, "
     "unsigned\n"
     "ones of 32 and 64 bits any bits.  The cache of compiled code is not used, unless "
     "JOT_CACHE is set.\n"
     "Run is the median of many calls, results waited for.  With --against python the program "
     "runs\n"
     "under JAX as well, on the same arrays, by the Python that JOT_PYTHON names.\n"},
    {"devices", command_devices, OPTION_DEVICE, 0, MOST_AXES, "AXIS=N...",
     "list the host, the GPUs, and the libraries for them",
     "With the reason where a device or library is not found.  Then the mesh of all devices, "
     "or of "
     "as\n"
     "many as the axes say, as x=2 y=4: which device is where; y=0 are as many as there are.  "
     "Devices are\n"
     "GPUs with --device cuda, else parts of the host, of which JOT_HOST_DEVICES says how "
     "many.\n"},
    {.name = NULL},
};

// How `jot` ends.
enum { ENDS_WELL, ENDS_FAILED, ENDS_MISUSED };
static int end;

static void say(const char *format, va_list arguments)
{
    fflush(stdout);
    fprintf(stderr, "jot%s%s: ", *command_name ? " " : "", command_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

bool fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    end = ENDS_FAILED;
    return false;
}

bool misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    fprintf(stderr, "(jot help%s%s tells more)\n", *command_name ? " " : "", command_name);
    end = ENDS_MISUSED;
    return false;
}

bool fail_status(void) { return fail("%s", jot_error_message()); }

bool command_devices(const struct arguments *a)
{
    char text[16384], names[MOST_AXES][64];
    jot_mesh_axis axes[MOST_AXES] = {{"i", 0}};
    jot_device_kind kind = jot_device_kind_of(a->device ? a->device : jot_default_device());
    jot_devices_format(text, sizeof text);
    fputs(text, stdout);
    for (int i = 0; i < a->n_files; i++) {
        int length = 0;
        axes[i].name = names[i];
        if (sscanf(a->files[i], "%63[^=]=%" SCNd64 "%n", names[i], &axes[i].size, &length) !=
                2 ||
            a->files[i][length])
            return misuse("%s is no axis of a mesh: x=2 is one", a->files[i]);
    }
    if (!a->n_files && jot_device_count(kind) < 2)
        return true;
    jot_mesh *mesh = jot_mesh_of_kind(kind, a->n_files ? (size_t)a->n_files : 1, axes);
    jot_mesh_format(mesh, text, sizeof text);
    fputs(text, stdout);
    return mesh || fail_status();
}

static void print_usage(FILE *to)
{
    fputs("jot COMMAND [OPTION...] [FILE...]\n\n", to);
    for (const struct command *c = commands; c->name; c++)
        fprintf(to, "  %-8s %-8s %s\n", c->name, c->files, c->brief);
    fputs("  help     [COMMAND]\n"
          "  --version\n\n"
          "It ends with 0 when all went well, 1 when something failed, and 2 when what was "
          "asked for\n"
          "is not what a command takes.\n",
          to);
}

static const struct command *find_command(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static bool help(const char *name)
{
    const struct command *c = name ? find_command(name) : NULL;
    if (name && !c)
        return misuse("help: there is no command %s", name);
    if (c)
        print_help(c, stdout);
    else
        print_usage(stdout);
    return true;
}

static bool run_command(const struct command *c, int n, char **words)
{
    struct arguments a;
    command_name = c->name;
    bool is_well = read_arguments(c, n, words, &a);
    if (is_well && a.wants_help)
        print_help(c, stdout);
    else if (is_well)
        is_well = c->run(&a);
    forget_arguments(&a);
    return is_well;
}

static bool run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct command *c = find_command(name);
    if (c)
        return run_command(c, argc - 2, argv + 2);
    if (!strcmp(name, "--version"))
        return puts("jot " VERSION) >= 0;
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return help(argc > 2 ? argv[2] : NULL);
    if (*name)
        return misuse("there is no command %s", name);
    print_usage(stderr);
    end = ENDS_MISUSED;
    return false;
}

int main(int argc, char **argv)
{
    bool is_well = run(argc, argv);
    // What could not be written was not given.
    if (fflush(stdout) || ferror(stdout))
        is_well = fail("the output could not be written");
    return is_well ? ENDS_WELL : end ? end : ENDS_FAILED;
}
