// SPDX-License-Identifier: Apache-2.0
// A function of a program, arrays for it, and its results.
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *type_text(jot_dtype dtype, int rank, const int64_t *dims, char *room, size_t size)
{
    size_t n = (size_t)snprintf(room, size, "%s[", jot_dtype_name(dtype));
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)(dims[i] < 0
                          ? snprintf(room + n, size - n, "%s?", i ? "," : "")
                          : snprintf(room + n, size - n, "%s%" PRId64, i ? "," : "", dims[i]));
    if (n < size)
        snprintf(room + n, size - n, "]");
    return room;
}

static const char *text_of_array(const jot_array *a, char *room, size_t size)
{
    int64_t dims[64];
    for (int i = 0; i < jot_array_rank(a); i++)
        dims[i] = jot_array_dim(a, i);
    return type_text(jot_array_dtype(a), jot_array_rank(a), dims, room, size);
}

bool open_job(struct job *j)
{
    const struct arguments *a = j->a;
    if (a->device && jot_device_check(a->device) != JOT_OK)
        return fail_status();
    if (a->device)
        jot_set_default_device(a->device);
    j->program = jot_program_read(a->files[0]);
    j->signature = j->program ? jot_program_signature_of(j->program, a->function) : NULL;
    if (!j->signature)
        return fail_status();
    j->n_in = j->signature->n_in;
    j->in = calloc(j->n_in + 1, sizeof *j->in);
    return j->in || fail("out of memory");
}

void close_job(struct job *j)
{
    if (j->in)
        jot_arrays_release(j->n_in, j->in);
    if (j->out)
        jot_arrays_release(j->n_out, j->out);
    free(j->in);
    free(j->out);
    jot_executable_release(j->executable);
    jot_program_release(j->program);
}

// ---- inputs ----

static bool fits(const jot_program_type *t, const jot_array *x)
{
    bool is_so = t->dtype == jot_array_dtype(x) && t->rank == jot_array_rank(x);
    for (int i = 0; is_so && i < t->rank; i++)
        is_so = t->dims[i] < 0 || t->dims[i] == jot_array_dim(x, i);
    return is_so;
}

// Takes over the array, or NULL.
static bool put_input(struct job *j, size_t i, jot_array *x, const char *word)
{
    char want[256], has[256];
    if (!x)
        return fail("--input %s: %s", word, jot_error_message());
    if (i >= j->n_in)
        misuse("--input %s: argument %zu, but @%s takes %zu (numbered from 0)", word, i,
               j->a->function, j->n_in);
    else if (j->in[i])
        misuse("--input %s: argument %zu has an array already", word, i);
    else if (!fits(&j->signature->in[i], x))
        fail("--input %s: it is %s, and argument %zu of @%s is %s", word,
             text_of_array(x, has, sizeof has), i, j->a->function,
             type_text(j->signature->in[i].dtype, j->signature->in[i].rank,
                       j->signature->in[i].dims, want, sizeof want));
    else
        return j->in[i] = x, true;
    jot_array_release(x);
    return false;
}

static bool ends_in(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && !strcmp(text + n - m, ending);
}

// As 2, in2 or arg2.
static bool read_number(const char *word, size_t n, size_t *out)
{
    size_t prefix = n > 3 && !memcmp(word, "arg", 3)  ? 3
                    : n > 2 && !memcmp(word, "in", 2) ? 2
                                                      : 0;
    size_t digits = strspn(word + prefix, "0123456789");
    *out = strtoull(word + prefix, NULL, 10);
    return digits && digits < 10 && prefix + digits == n;
}

// The argument that n bytes name: by what the program calls it, else by its number.
static bool find_input(const struct job *j, const char *word, size_t n, size_t *out)
{
    for (size_t i = 0; i < j->n_in; i++) {
        const char *name = j->signature->names[i];
        if (name && strlen(name) == n && !memcmp(name, word, n))
            return *out = i, true;
    }
    return read_number(word, n, out);
}

static bool is_output(const char *name)
{
    return !strncmp(name, "out", 3) && name[3] && !name[3 + strspn(name + 3, "0123456789")];
}

// Where all names are those of arguments, or of outputs as out0, arrays are for these arguments; else for
// the next ones, in order.
static bool read_archive(struct job *j, const char *path, const char *word, size_t *next)
{
    jot_archive *archive = jot_archive_load(path);
    bool is_well = archive || fail("--input %s: %s", word, jot_error_message());
    bool has_names = true;
    const char *name;
    size_t place;
    for (size_t i = 0; (name = jot_archive_name(archive, i)); i++)
        has_names &= find_input(j, name, strlen(name), &place) || is_output(name);
    for (size_t i = 0; is_well && (name = jot_archive_name(archive, i)); i++) {
        if (!has_names)
            place = *next;
        else if (!find_input(j, name, strlen(name), &place))
            continue;
        is_well = put_input(j, place, jot_archive_get(archive, name), word);
        *next = place + 1;
    }
    jot_archive_release(archive);
    return is_well;
}

static bool read_input(struct job *j, const char *word, size_t *next)
{
    const char *path = word, *equals = strchr(word, '=');
    // What a path has behind its first slash is no name.
    if (equals && equals < word + strcspn(word, "/")) {
        const char *first = j->n_in ? j->signature->names[0] : NULL;
        if (!find_input(j, word, (size_t)(equals - word), next))
            return misuse(
                "--input %s: no argument is called %.*s; they are numbered from 0%s%s", word,
                (int)(equals - word), word, first ? ", and the first is called " : "",
                first ? first : "");
        path = equals + 1;
    }
    if (ends_in(path, ".npz") || ends_in(path, ".safetensors") || ends_in(path, ".json"))
        return read_archive(j, path, word, next);
    return put_input(j, (*next)++, jot_array_load(path), word);
}

static bool fill_input(struct job *j, size_t i, bool may_be_random)
{
    char text[256];
    const jot_program_type *t = &j->signature->in[i];
    type_text(t->dtype, t->rank, t->dims, text, sizeof text);
    if (!may_be_random)
        return misuse("@%s takes %zu arguments, and there is no --input for %zu, %s",
                      j->a->function, j->n_in, i, text);
    for (int k = 0; k < t->rank; k++)
        if (t->dims[k] < 0)
            return misuse("argument %zu is %s: give an --input for it", i, text);
    j->in[i] = random_array(t, i);
    return j->in[i] || fail("an array for argument %zu, %s: %s", i, text, jot_error_message());
}

bool read_inputs(struct job *j, bool may_be_random)
{
    size_t next = 0;
    for (int i = 0; i < j->a->n_inputs; i++)
        if (!read_input(j, j->a->inputs[i], &next))
            return false;
    for (size_t i = 0; i < j->n_in; i++)
        if (!j->in[i] && !fill_input(j, i, may_be_random))
            return false;
    return true;
}

// ---- running ----

// Those that may be overwritten; NULL when memory is out.
static int *list_donated(const struct job *j)
{
    int *list = calloc(j->n_in + 1, sizeof *list);
    size_t n = 0;
    if (!list)
        return NULL;
    for (size_t i = 0; j->is_last_run && i < j->n_in; i++)
        if (j->signature->donated[i])
            list[n++] = (int)i;
    list[n] = JOT_END;
    return list;
}

bool compile_job(struct job *j, jot_function f, size_t n_out)
{
    j->n_out = n_out;
    j->out = calloc(n_out + 1, sizeof *j->out);
    int *donated = list_donated(j);
    if (!j->out || !donated)
        return free(donated), fail("out of memory");
    j->executable = jot_jit(
        f, .name = j->a->function, .device = j->a->device, .donate = donated,
        .precision = j->a->tf32 ? JOT_PRECISION_TF32 : JOT_PRECISION_FULL, .tune = j->a->tune);
    free(donated);
    if (!j->executable)
        return fail_status();
    struct progress *p = progress_start("compiling");
    jot_status status = jot_executable_prepare(j->executable, j->n_in, j->in);
    progress_end(p);
    return status == JOT_OK || fail_status();
}

bool run_job(struct job *j)
{
    jot_status status = jot_call_list(j->executable, j->n_in, j->in, j->n_out, j->out);
    for (size_t i = 0; i < j->n_out && status == JOT_OK; i++)
        status = jot_array_wait(j->out[i]);
    return status == JOT_OK || fail_status();
}

static bool save_output(const struct job *j, const char *name, size_t i)
{
    size_t room = strlen(j->a->output_dir) + strlen(name) + 32;
    char *path = malloc(room);
    if (!path)
        return fail("out of memory");
    snprintf(path, room, "%s/%s%zu.npy", j->a->output_dir, name, i);
    jot_status status = jot_array_save(path, j->out[i]);
    free(path);
    return status == JOT_OK || fail_status();
}

bool give_outputs(const struct job *j, const char *name)
{
    char text[256];
    const char *folder = j->a->output_dir;
    if (folder && mkdir(folder, 0777) && errno != EEXIST)
        return fail("--output-dir %s: %s", folder, strerror(errno));
    for (size_t i = 0; i < j->n_out; i++) {
        if (folder) {
            if (!save_output(j, name, i))
                return false;
            continue;
        }
        printf("%s%zu: %s\n", name, i, text_of_array(j->out[i], text, sizeof text));
        jot_array_print(j->out[i]);
    }
    return true;
}
