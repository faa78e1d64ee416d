// SPDX-License-Identifier: Apache-2.0
// Options and files of a command, and its help.
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    enum option option;
    const char *name, *takes, *about;
} rows[] = {
    {OPTION_INPUT, "input", "[NAME=]FILE", "an argument: .npy, or several: .npz, .safetensors"},
    {OPTION_OUTPUT_DIR, "output-dir", "D", "where results are written"},
    {OPTION_DEVICE, "device", "DEVICE",
     "host, cuda or cuda:1; else what JOT_DEVICE says, or the host"},
    {OPTION_FUNCTION, "function", "NAME", "the function of the program; else main"},
    {OPTION_TF32, "tf32", NULL, "products of f32 by TF32, as JAX has them on a GPU"},
    {OPTION_TUNE, "tune", NULL,
     "runs the program compiled in several ways, and keeps the fastest"},
    {OPTION_WRT, "wrt", "I,J...", "the arguments that gradients are in; else 0"},
    {OPTION_OUTPUT, "output", "K", "the result that is differentiated; else 0"},
    {OPTION_STAGE, "stage", "STAGE",
     "trace, simplify, schedule, memory, llvm or code; else simplify"},
    {OPTION_AGAINST, "against", "python", "what else is timed"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

void print_help(const struct command *c, FILE *to)
{
    fprintf(to, "jot %s%s%s%s\n\n%c%s.\n%s", c->name, c->options ? " [OPTION...]" : "",
            *c->files ? " " : "", c->files, c->brief[0] - 'a' + 'A', c->brief + 1, c->about);
    if (c->options)
        fputc('\n', to);
    for (size_t i = 0; i < N_ROWS; i++)
        if (c->options & rows[i].option) {
            char word[40];
            snprintf(word, sizeof word, "--%s%s%s", rows[i].name, rows[i].takes ? " " : "",
                     rows[i].takes ? rows[i].takes : "");
            fprintf(to, "  %-20s %s\n", word, rows[i].about);
        }
}

// The n bytes that follow are all digits of a number.
static bool read_number(const char *text, const char **end, int *out)
{
    char *stop;
    errno = 0;
    long n = strtol(text, &stop, 10);
    *end = stop;
    *out = (int)n;
    return text[0] >= '0' && text[0] <= '9' && !errno && n < INT_MAX;
}

static bool read_wrt(const char *text, struct arguments *a)
{
    size_t n = 0;
    free(a->wrt);
    a->wrt = calloc(strlen(text) + 2, sizeof *a->wrt);
    if (!a->wrt)
        return fail("out of memory");
    for (const char *at = text, *end;; at = end + 1) {
        if (!read_number(at, &end, &a->wrt[n++]) || (*end && *end != ','))
            return misuse("--wrt %s: it is numbers of arguments, as 0,2", text);
        if (!*end)
            break;
    }
    a->wrt[n] = JOT_END;
    return true;
}

static bool read_device(const char *text, struct arguments *a)
{
    const char *end = "";
    int index = 0;
    bool is_host = !strcmp(text, "host"), has_number = !strncmp(text, "cuda:", 5);
    if (!is_host && strcmp(text, "cuda") &&
        !(has_number && read_number(text + 5, &end, &index) && !*end))
        return misuse("--device %s: it is host, cuda or cuda:1", text);
    a->device = is_host ? jot_host() : jot_cuda(index);
    return true;
}

static bool take_option(enum option option, const char *value, struct arguments *a)
{
    const char *end;
    switch (option) {
    case OPTION_INPUT:
        a->inputs[a->n_inputs++] = value;
        return true;
    case OPTION_OUTPUT_DIR:
        a->output_dir = value;
        return true;
    case OPTION_DEVICE:
        return read_device(value, a);
    case OPTION_FUNCTION:
        a->function = value[0] == '@' ? value + 1 : value;
        return true;
    case OPTION_TF32:
        a->tf32 = true;
        return true;
    case OPTION_TUNE:
        a->tune = true;
        return true;
    case OPTION_WRT:
        return read_wrt(value, a);
    case OPTION_OUTPUT:
        if (read_number(value, &end, &a->output) && !*end)
            return true;
        return misuse("--output %s: it is the number of a result", value);
    case OPTION_STAGE:
        a->stage = value;
        return true;
    case OPTION_AGAINST:
        a->against_python = !strcmp(value, "python");
        return a->against_python || misuse("--against %s: it is python", value);
    }
    return false;
}

// --name, --name=value or --name value; *at is the word, and moves to the value.
static bool read_option(const struct command *c, int n, char **words, int *at,
                        struct arguments *a)
{
    const char *word = words[*at] + 2, *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    const struct row *r = rows;
    while (r < rows + N_ROWS && (strlen(r->name) != length || memcmp(r->name, word, length)))
        r++;
    if (r == rows + N_ROWS || !(c->options & r->option))
        return misuse("there is no option --%.*s", (int)length, word);
    if (!r->takes && value)
        return misuse("--%s takes no value", r->name);
    if (r->takes && !value && ++*at == n)
        return misuse("--%s takes %s", r->name, r->takes);
    return take_option(r->option, r->takes ? (value ? value + 1 : words[*at]) : NULL, a);
}

static bool read_words(const struct command *c, int n, char **words, struct arguments *a)
{
    bool has_ended = false;
    for (int i = 0; i < n; i++) {
        const char *word = words[i];
        if (has_ended || word[0] != '-' || !word[1])
            a->files[a->n_files++] = word;
        else if (!strcmp(word, "--"))
            has_ended = true;
        else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
            return a->wants_help = true;
        else if (word[1] != '-')
            return misuse("there is no option %s", word);
        else if (!read_option(c, n, words, &i, a))
            return false;
    }
    return true;
}

bool read_arguments(const struct command *c, int n, char **words, struct arguments *a)
{
    *a = (struct arguments){.function = "main", .stage = "simplify"};
    a->files = calloc((size_t)n + 1, sizeof *a->files);
    a->inputs = calloc((size_t)n + 1, sizeof *a->inputs);
    a->wrt = calloc(2, sizeof *a->wrt);
    if (!a->files || !a->inputs || !a->wrt)
        return fail("out of memory");
    a->wrt[1] = JOT_END;
    if (!read_words(c, n, words, a))
        return false;
    if (a->wants_help || (a->n_files >= c->least && a->n_files <= c->most))
        return true;
    if (c->most == 0)
        misuse("it takes no files");
    else
        misuse("it takes %s, and %d %s given", c->files, a->n_files,
               a->n_files == 1 ? "is" : "are");
    return false;
}

void forget_arguments(struct arguments *a)
{
    free(a->files);
    free(a->inputs);
    free(a->wrt);
}
