// SPDX-License-Identifier: Apache-2.0
// Request and response are files in memory, so neither side waits for the other to read.  The end of
// the process is seen by the end of its standard error, or a little later where others hold that open
// too, as the child of a fork that another thread makes.
#include "trace/codegen_process.h"

#include "base/built.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/exchange.h"
#include "trace/codegen_loader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_BYTES (UINT64_C(4) << 30)
#define DEFAULT_SECONDS 300.0
#define TAIL 600

extern char **environ;

// What a process writes to its standard error, the last of it.
struct tail {
    char text[TAIL + 1];
    size_t length;
};

struct run {
    uint64_t bytes;
    double seconds;
    int request, response, errors; // files; -1 when closed
    pid_t process;
    bool is_late;
    int ended; // as waitpid tells, or -1
    struct tail tail;
};

bool codegen_is_process(const struct codegen_options *options)
{
    const char *asked = secure_getenv("JOT_COMPILE");
    if (options->where != JOT_COMPILE_DEFAULT)
        return options->where == JOT_COMPILE_PROCESS;
    return asked && !strcmp(asked, "process");
}

static double number_of(const char *name, double otherwise)
{
    const char *text = secure_getenv(name);
    double n = text ? strtod(text, NULL) : 0;
    return n > 0 ? n : otherwise;
}

// ---- the request ----

// Above the standard files, which the caller may have closed.
static int raise_file(int file)
{
    int above = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
    if (file >= 0)
        close(file);
    return above;
}

static int memory_file(void) { return raise_file(memfd_create("jot", MFD_CLOEXEC)); }

static bool put_request(int file, const struct cg_request *request)
{
    const char *parts[EXCHANGE_REQUEST_PARTS] = {
        [EXCHANGE_PROGRAM] = request->program, [EXCHANGE_TARGET] = request->target};
    struct exchange_request header = {.want = request->want};
    for (int i = 0; i < EXCHANGE_REQUEST_PARTS; i++)
        header.sizes[i] = parts[i] ? strlen(parts[i]) : EXCHANGE_NONE;
    bool is_put = file_write(file, &header, sizeof header);
    for (int i = 0; is_put && i < EXCHANGE_REQUEST_PARTS; i++)
        is_put = !parts[i] || file_write(file, parts[i], header.sizes[i] + 1);
    return is_put && lseek(file, 0, SEEK_SET) == 0;
}

// ---- the process ----

// What the caller does about signals is no matter of the process.
static void set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(struct run *r, const char *path, int errors)
{
    char bytes[32], seconds[32];
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)r->bytes);
    snprintf(seconds, sizeof seconds, "%.0f", ceil(r->seconds) + 1);
    char *arguments[] = {"jot-compile", BUILT,   (char *)(uintptr_t)codegen_path(),
                         bytes,         seconds, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    set_signals(&attributes);
    posix_spawn_file_actions_adddup2(&actions, r->request, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, r->response, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    int fault = posix_spawn(&r->process, path, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return fault;
}

static void keep_tail(struct tail *t, const char *text, size_t n)
{
    size_t from = t->length + n > TAIL ? t->length + n - TAIL : 0;
    from = from < t->length ? from : t->length;
    memmove(t->text, t->text + from, t->length - from);
    t->length -= from;
    if (n > TAIL) {
        text += n - TAIL;
        n = TAIL;
    }
    memcpy(t->text + t->length, text, n);
    t->length += n;
    t->text[t->length] = 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Also where the caller has waited for it already, or wants no ends of processes told.
static bool has_ended(const struct run *r)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)r->process, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == r->process;
}

// Until the process has closed its standard error, as it does when it ends, has ended, or is late.
static void follow(struct run *r)
{
    double end = now() + r->seconds;
    for (;;) {
        char text[512];
        bool is_over = has_ended(r); // all that it wrote is there
        double left = is_over ? 0 : end - now();
        r->is_late = !is_over && left <= 0;
        if (r->is_late)
            return;
        struct pollfd file = {.fd = r->errors, .events = POLLIN};
        int n = poll(&file, 1, left < 0.05 ? (int)(left * 1e3) : 50);
        if (is_over && n == 0)
            return;
        if (n <= 0)
            continue;
        ssize_t got = read(r->errors, text, sizeof text);
        if (got == 0 || (got < 0 && errno != EINTR))
            return;
        if (got > 0)
            keep_tail(&r->tail, text, (size_t)got);
    }
}

// How a process that is ending ends is settled before its files are closed.
static void end(struct run *r)
{
    int status;
    if (!has_ended(r))
        kill(r->process, SIGKILL);
    while (waitpid(r->process, &status, 0) < 0)
        if (errno != EINTR) { // the caller has waited for all its processes, or wants none told
            r->ended = -1;
            return;
        }
    r->ended = status;
}

static jot_status start(struct run *r, const struct cg_request *request)
{
    const char *path = codegen_process_path();
    int pipes[2] = {-1, -1};
    if (!*path)
        return status_fail(
            JOT_ERR_LIBRARY,
            "jot-compile, which runs the code generator in a process of its own, was "
            "not found beside libjot: install it there, or do without "
            "JOT_COMPILE=process");
    r->request = memory_file();
    r->response = memory_file();
    if (r->request < 0 || r->response < 0 || !put_request(r->request, request) ||
        pipe2(pipes, O_CLOEXEC) != 0)
        return status_fail(JOT_ERR_IO, "files for the process that compiles: %s",
                           strerror(errno));
    r->errors = raise_file(pipes[0]);
    int errors = raise_file(pipes[1]);
    int fault = spawn(r, path, errors);
    close(errors);
    if (fault)
        return status_fail(JOT_ERR_LIBRARY, "%s cannot be started: %s", path, strerror(fault));
    return JOT_OK;
}

// ---- the response ----

static void release(struct cg_response *response)
{
    const struct exchange_response *header = response->memory;
    size_t size = sizeof *header;
    for (int i = 0; i < EXCHANGE_RESPONSE_PARTS; i++)
        if (header->sizes[i] != EXCHANGE_NONE)
            size += header->sizes[i] + 1;
    munmap(response->memory, size);
    response->memory = NULL;
}

// False when the file is not whole.
static bool read_response(int file, struct cg_response *out)
{
    struct exchange_response header;
    struct stat info;
    if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        header.is_whole != 1 || fstat(file, &info))
        return false;
    uint64_t size = sizeof header, at[EXCHANGE_RESPONSE_PARTS];
    for (int i = 0; i < EXCHANGE_RESPONSE_PARTS; i++) {
        at[i] = size;
        if (header.sizes[i] != EXCHANGE_NONE && header.sizes[i] > (uint64_t)info.st_size)
            return false;
        size += header.sizes[i] != EXCHANGE_NONE ? header.sizes[i] + 1 : 0;
    }
    if (size != (uint64_t)info.st_size)
        return false;
    char *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (map == MAP_FAILED)
        return false;
    const char *parts[EXCHANGE_RESPONSE_PARTS];
    for (int i = 0; i < EXCHANGE_RESPONSE_PARTS; i++)
        parts[i] = header.sizes[i] != EXCHANGE_NONE ? map + at[i] : NULL;
    *out = (struct cg_response){
        .status = header.status,
        .message = parts[EXCHANGE_MESSAGE],
        .object = parts[EXCHANGE_OBJECT],
        .object_size = parts[EXCHANGE_OBJECT] ? header.sizes[EXCHANGE_OBJECT] : 0,
        .plan = parts[EXCHANGE_PLAN],
        .plan_size = parts[EXCHANGE_PLAN] ? header.sizes[EXCHANGE_PLAN] : 0,
        .llvm = parts[EXCHANGE_LLVM],
        .assembly = parts[EXCHANGE_ASSEMBLY],
        .text = parts[EXCHANGE_TEXT],
        .release = release,
        .memory = map,
    };
    return true;
}

static bool tells_of(const struct tail *t, const char *words)
{
    return strstr(t->text, words) != NULL;
}

// Why there is no response.
static jot_status explain(struct run *r)
{
    struct tail *t = &r->tail;
    while (t->length && (t->text[t->length - 1] == '\n' || t->text[t->length - 1] == ' '))
        t->text[--t->length] = 0;
    const char *colon = t->length ? ": " : "";
    bool is_killed = r->ended != -1 && WIFSIGNALED(r->ended);
    int signal = is_killed ? WTERMSIG(r->ended) : 0;
    if (r->is_late || signal == SIGXCPU)
        return status_fail(JOT_ERR_LIBRARY,
                           "the process that compiles was ended after %g seconds, its limit "
                           "(JOT_COMPILE_SECONDS, or compile_seconds of jot_jit)%s%s",
                           r->seconds, colon, t->text);
    if (tells_of(t, "out of memory") || tells_of(t, "bad_alloc"))
        return status_fail(
            JOT_ERR_MEMORY,
            "the process that compiles ran out of memory: its limit is %llu bytes "
            "(JOT_COMPILE_BYTES, or compile_bytes of jot_jit)%s%s",
            (unsigned long long)r->bytes, colon, t->text);
    if (is_killed)
        return status_fail(
            JOT_ERR_LIBRARY,
            "the process that compiles ended by signal %d (%s), within %llu bytes%s%s", signal,
            strsignal(signal), (unsigned long long)r->bytes, colon, t->text);
    return status_fail(JOT_ERR_LIBRARY, "the process that compiles ended without a result%s%s",
                       colon, t->text);
}

jot_status codegen_process(const struct cg_request *request,
                           const struct codegen_options *options, struct cg_response *out)
{
    struct run r = {.request = -1, .response = -1, .errors = -1};
    r.bytes = options->bytes ? options->bytes
                             : (uint64_t)number_of("JOT_COMPILE_BYTES", (double)DEFAULT_BYTES);
    r.seconds = options->seconds > 0 ? options->seconds
                                     : number_of("JOT_COMPILE_SECONDS", DEFAULT_SECONDS);
    jot_status status = start(&r, request);
    if (status == JOT_OK) {
        follow(&r);
        end(&r);
        if (!read_response(r.response, out))
            status = explain(&r);
    }
    const int files[] = {r.request, r.response, r.errors};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            close(files[i]);
    return status;
}
