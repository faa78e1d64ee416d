// SPDX-License-Identifier: Apache-2.0
#include "harness/isolate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// What runs away is stopped before it takes the machine with it.  The shadow memory of a sanitizer
// is of the kind that the limit counts.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_MEMORY RLIM_INFINITY
#else
#define MOST_MEMORY ((rlim_t)4 << 30)
#endif

static void child(void (*work)(void *ctx, struct strbuf *report), void *ctx, int seconds,
                  int fd)
{
    // Of processor time, so that a machine that does other things ends nothing; what waits for ever
    // is ended as well.
    setrlimit(RLIMIT_CPU, &(struct rlimit){(rlim_t)seconds, (rlim_t)seconds + 5});
    alarm(10 * (unsigned)seconds);
    setrlimit(RLIMIT_DATA, &(struct rlimit){MOST_MEMORY, MOST_MEMORY});
    struct arena *arena = arena_create();
    struct strbuf text = strbuf_make(arena);
    work(ctx, &text);
    for (size_t at = 0; at < text.length;) {
        ssize_t n = write(fd, text.text + at, text.length - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    _exit(0);
}

// A context of a GPU takes long to make, and reserves more addresses than the limit has.
static bool uses_gpu(void)
{
    const char *device = getenv("JOT_DEVICE");
    return device && !strncmp(device, "cuda", 4) && !getenv("JOT_TEST_EMULATED");
}

bool isolate_run(void (*work)(void *ctx, struct strbuf *report), void *ctx, int seconds,
                 struct strbuf *report)
{
    int ends[2];
    if (uses_gpu()) {
        work(ctx, report);
        return true;
    }
    fflush(NULL);
    if (pipe(ends) != 0) {
        strbuf_add(report, "no pipe for a child\n");
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(work, ctx, seconds, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        strbuf_add(report, "no child\n");
        return false;
    }
    char chunk[4096];
    for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
        strbuf_add_bytes(report, chunk, (size_t)n);
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status))
        strbuf_printf(report, "ended by signal %d (%s)\n", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    else
        strbuf_printf(report, "exited with %d\n", WEXITSTATUS(status));
    return false;
}
