// SPDX-License-Identifier: Apache-2.0
// jot check: test programs of StableHLO, several at once.
#include "command.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The worse the later.
enum outcome { PASSED, UNSUPPORTED, FAILED, N_OUTCOMES };
static const char *const outcome_names[] = {"passed", "unsupported", "failed"};

struct test {
    char *path, *reason; // NULL: it passed
    char *text;          // the part of the file that it is; NULL: all of it
    enum outcome outcome;
    int n_wide; // checks that hold within the wider limit alone
};

struct tests {
    struct test *at;
    size_t n, room, next;
    jot_device *device;
    pthread_mutex_t mutex; // of next
};

// ---- which ----

static bool add_program(struct tests *t, char *path, char *text)
{
    if (t->n == t->room) {
        size_t room = 2 * t->room + 64;
        struct test *larger = realloc(t->at, room * sizeof *larger);
        if (!larger) {
            free(path);
            free(text);
            return fail("out of memory");
        }
        t->at = larger;
        t->room = room;
    }
    t->at[t->n++] = (struct test){.path = path, .text = text};
    return true;
}

// The bytes of a file with a zero behind them; NULL when it cannot be read.
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    bool is_read =
        text && !fseek(file, 0, SEEK_SET) && fread(text, 1, (size_t)size, file) == (size_t)size;
    if (file)
        fclose(file);
    if (is_read)
        text[size] = 0;
    else
        free(text);
    return is_read ? text : NULL;
}

static const char separator[] = "\n// -----";

// The part from `begin` to `end`, behind as many line ends as stand before it, so that places are those
// of the file.
static char *part_of(const char *text, const char *begin, const char *end)
{
    size_t lines = 0;
    for (const char *at = text; at < begin; at++)
        lines += *at == '\n';
    char *part = malloc(lines + (size_t)(end - begin) + 1);
    if (part) {
        memset(part, '\n', lines);
        memcpy(part + lines, begin, (size_t)(end - begin));
        part[lines + (size_t)(end - begin)] = 0;
    }
    return part;
}

static bool is_empty(const char *begin, const char *end)
{
    for (; begin < end; begin++) {
        if (begin[0] == '/' && begin + 1 < end && begin[1] == '/')
            while (begin < end && *begin != '\n')
                begin++;
        else if (*begin != ' ' && *begin != '\t' && *begin != '\r' && *begin != '\n')
            return false;
        if (begin >= end)
            break;
    }
    return true;
}

// The programs between the lines that begin with the separator.
static bool add_parts(struct tests *t, const char *path, const char *text)
{
    const char *begin = text;
    for (bool is_last = false; !is_last;) {
        const char *end = strstr(begin, separator);
        is_last = !end;
        end = end ? end + 1 : begin + strlen(begin);
        if (!is_empty(begin, end)) {
            char *part = part_of(text, begin, end), *name = strdup(path);
            if (!part || !name) {
                free(part);
                free(name);
                return fail("out of memory");
            }
            if (!add_program(t, name, part))
                return false;
        }
        begin = is_last ? end : end + strcspn(end, "\n");
    }
    return true;
}

static bool add_test(struct tests *t, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path)
        return fail("out of memory");
    snprintf(path, size, "%s%s%s", folder, *folder ? "/" : "", name);
    char *text = read_text(path); // bytecode ends at its first zero
    if (!text || !strstr(text, separator)) {
        free(text);
        return add_program(t, path, NULL);
    }
    bool is_well = add_parts(t, path, text);
    free(text);
    free(path);
    return is_well;
}

static int is_program(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');
    return dot && (!strcmp(dot, ".mlir") || !strcmp(dot, ".mlirbc"));
}

static bool add_folder(struct tests *t, const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_program, alphasort);
    bool is_well = n >= 0 || fail("%s: the folder cannot be read", folder);
    for (int i = 0; i < n; i++) {
        is_well = is_well && add_test(t, folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return is_well;
}

static bool add_all(struct tests *t, const struct arguments *a)
{
    struct stat about;
    for (int i = 0; i < a->n_files; i++) {
        bool is_folder = !stat(a->files[i], &about) && S_ISDIR(about.st_mode);
        if (!(is_folder ? add_folder(t, a->files[i]) : add_test(t, "", a->files[i])))
            return false;
    }
    return true;
}

// ---- running ----

// What a program is refused for, of those statuses that checking one gives.
static enum outcome outcome_of(jot_status status)
{
    switch (status) {
    case JOT_OK:
        return PASSED;
    case JOT_ERR_CHECK:
    case JOT_ERR_INTERNAL:
    case JOT_ERR_MEMORY:
    case JOT_ERR_DEVICE:
    case JOT_ERR_IO:
        return FAILED;
    default:
        return UNSUPPORTED;
    }
}

static void run_test(struct test *t, jot_device *device)
{
    jot_program *p = t->text ? jot_program_from_memory(t->path, t->text, strlen(t->text))
                             : jot_program_read(t->path);
    t->outcome = p ? outcome_of(jot_program_check(p, device, &t->n_wide)) : FAILED;
    if (t->outcome != PASSED)
        t->reason = strdup(jot_error_message());
    jot_program_release(p);
}

static void *run_some(void *ctx)
{
    struct tests *t = ctx;
    for (;;) {
        pthread_mutex_lock(&t->mutex);
        size_t i = t->next++;
        pthread_mutex_unlock(&t->mutex);
        if (i >= t->n)
            return NULL;
        run_test(&t->at[i], t->device);
    }
}

// As many at once as the host has threads; this one takes what others could not be started for.
static void run_all(struct tests *t)
{
    pthread_t threads[64];
    int n = 0, most = jot_threads() < 64 ? jot_threads() : 64;
    pthread_mutex_init(&t->mutex, NULL);
    struct progress *p = progress_start("checking");
    while (n + 1 < most && (size_t)n + 1 < t->n &&
           pthread_create(&threads[n], NULL, run_some, t) == 0)
        n++;
    run_some(t);
    while (n)
        pthread_join(threads[--n], NULL);
    progress_end(p);
    pthread_mutex_destroy(&t->mutex);
}

// ---- telling ----

static bool is_type(const char *word, size_t n)
{
    static const char *const kinds[] = {"bool", "bfloat", "float", "complex", "int", "uint"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t k = strlen(kinds[i]);
        if (n >= k && !memcmp(word, kinds[i], k) && strspn(word + k, "0123456789") >= n - k)
            return n > k || i == 0;
    }
    return false;
}

// The name of the file without element types; of an operation, what stands before the first of them or a number.
static char *group_of(const char *path, bool is_operation)
{
    const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;
    size_t used = 0, end = strcspn(at, ".");
    char *name = malloc(end + 2);
    if (!name)
        return NULL;
    for (const char *stop = at + end; at < stop;) {
        size_t n = strcspn(at, "_.");
        bool is_number = n && strspn(at, "0123456789") >= n;
        if (is_operation && (is_number || is_type(at, n)))
            break;
        if (!is_type(at, n)) {
            memcpy(name + used, at, n);
            used += n;
            name[used++] = '_';
        }
        at += n + 1;
    }
    name[used ? used - 1 : 0] = 0;
    return name;
}

struct group {
    char *name;
    enum outcome worst;
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (int)y->worst - (int)x->worst;
}

// A group has failed when one of its files has, and is not supported when one is not.
static void tell_groups(const struct tests *t, bool is_operation)
{
    size_t count[N_OUTCOMES] = {0}, n = 0;
    struct group *groups = calloc(t->n + 1, sizeof *groups);
    for (; groups && n < t->n; n++) {
        groups[n].name = group_of(t->at[n].path, is_operation);
        groups[n].worst = t->at[n].outcome;
        if (!groups[n].name)
            break;
    }
    if (n)
        qsort(groups, n, sizeof *groups, compare_groups);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(groups[i].name, groups[i - 1].name))
            count[groups[i].worst]++;
    printf("%s: %zu passed, %zu failed, %zu unsupported\n",
           is_operation ? "operations" : "forms", count[PASSED], count[FAILED],
           count[UNSUPPORTED]);
    while (n)
        free(groups[--n].name);
    free(groups);
}

// Most reasons begin with the file.
static void tell_test(const struct test *t)
{
    const char *reason = t->reason ? t->reason : "out of memory";
    bool has_path = !strncmp(reason, t->path, strlen(t->path));
    printf("%s: %s%s%s\n", outcome_names[t->outcome], has_path ? "" : t->path,
           has_path ? "" : ": ", reason);
}

static bool tell(const struct tests *t)
{
    size_t count[N_OUTCOMES] = {0}, n_wide = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct test *test = &t->at[i];
        count[test->outcome]++;
        n_wide += test->outcome == PASSED && test->n_wide > 0;
        if (test->outcome != PASSED)
            tell_test(test);
    }
    tell_groups(t, false);
    tell_groups(t, true);
    printf("%zu of those that passed needed the wider limit\n", n_wide);
    printf("%zu passed, %zu failed, %zu unsupported\n", count[PASSED], count[FAILED],
           count[UNSUPPORTED]);
    return count[FAILED] == 0;
}

bool command_check(const struct arguments *a)
{
    struct tests t = {.device = a->device};
    if (a->device && jot_device_check(a->device) != JOT_OK)
        return fail_status();
    bool is_well = add_all(&t, a);
    if (is_well) {
        run_all(&t);
        is_well = tell(&t);
    }
    for (size_t i = 0; i < t.n; i++) {
        free(t.at[i].path);
        free(t.at[i].text);
        free(t.at[i].reason);
    }
    free(t.at);
    return is_well;
}
