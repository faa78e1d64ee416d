// SPDX-License-Identifier: Apache-2.0
// jot-compile: the code generator in a process of its own, so that nothing that LLVM does ends the
// caller's (exchange.h).  It ends with the request, with the caller, or at its limits.
#include "base/built.h"
#include "base/file.h"
#include "codegen/codegen.h"
#include "codegen/exchange.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "jot-compile: %s: %s\n", what, why);
    _exit(1);
}

static void limit(int resource, rlim_t most)
{
    struct rlimit limits = {most, most};
    if (setrlimit(resource, &limits) != 0)
        die("a limit cannot be set", strerror(errno));
}

// Sanitizers map more memory than any limit allows.
static bool can_be_limited(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
}

static cg_entry *load_code_generator(const char *path, const char *built)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die("the code generator cannot be loaded (is LLVM 19 installed?)", dlerror());
    const char *theirs = dlsym(library, CG_BUILT_SYMBOL);
    cg_entry *entry = (cg_entry *)(uintptr_t)dlsym(library, CG_ENTRY_SYMBOL);
    if (!theirs || !entry)
        die(path, "is not a code generator of jot");
    if (strcmp(built, theirs) != 0 || strcmp(built, BUILT) != 0)
        die(path, "libjot, it and jot-compile are not of one build");
    return entry;
}

// The part that begins at *at, which moves behind it.
static const char *part(const char **at, uint64_t size)
{
    const char *start = *at;
    if (size == EXCHANGE_NONE)
        return NULL;
    *at += size + 1;
    return start;
}

static struct cg_request read_request(void)
{
    struct stat info;
    if (fstat(STDIN_FILENO, &info) || (size_t)info.st_size < sizeof(struct exchange_request))
        die("the request", "is no file of libjot");
    const char *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
    if (map == MAP_FAILED)
        die("the request", strerror(errno));
    const struct exchange_request *r = (const void *)map;
    const char *at = map + sizeof *r;
    struct cg_request request = {.want = r->want};
    request.program = part(&at, r->sizes[EXCHANGE_PROGRAM]);
    request.target = part(&at, r->sizes[EXCHANGE_TARGET]);
    return request;
}

static void put(const void *bytes, size_t size)
{
    if (!file_write(STDOUT_FILENO, bytes, size))
        die("the response", strerror(errno));
}

static uint64_t size_of_text(const char *text) { return text ? strlen(text) : EXCHANGE_NONE; }

static void write_response(const struct cg_response *r)
{
    struct exchange_response header = {.status = r->status};
    const void *parts[EXCHANGE_RESPONSE_PARTS] = {
        [EXCHANGE_MESSAGE] = r->message,   [EXCHANGE_OBJECT] = r->object,
        [EXCHANGE_PLAN] = r->plan,         [EXCHANGE_LLVM] = r->llvm,
        [EXCHANGE_ASSEMBLY] = r->assembly, [EXCHANGE_TEXT] = r->text,
    };
    header.sizes[EXCHANGE_MESSAGE] = size_of_text(r->message);
    header.sizes[EXCHANGE_OBJECT] = r->object ? r->object_size : EXCHANGE_NONE;
    header.sizes[EXCHANGE_PLAN] = r->plan ? r->plan_size : EXCHANGE_NONE;
    header.sizes[EXCHANGE_LLVM] = size_of_text(r->llvm);
    header.sizes[EXCHANGE_ASSEMBLY] = size_of_text(r->assembly);
    header.sizes[EXCHANGE_TEXT] = size_of_text(r->text);
    put(&header, sizeof header);
    for (int i = 0; i < EXCHANGE_RESPONSE_PARTS; i++)
        if (header.sizes[i] != EXCHANGE_NONE) {
            put(parts[i], header.sizes[i]);
            put("", 1);
        }
    header.is_whole = 1;
    if (pwrite(STDOUT_FILENO, &header, sizeof header, 0) != (ssize_t)sizeof header)
        die("the response", strerror(errno));
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage", "libjot starts this program");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#if defined(SYS_close_range)
    syscall(SYS_close_range, 3u, ~0u, 0u); // files that the caller has open
#endif
    limit(RLIMIT_CORE, 0);
    if (can_be_limited())
        limit(RLIMIT_AS, strtoull(argv[3], NULL, 10));
    limit(RLIMIT_CPU, strtoull(argv[4], NULL, 10));
    struct cg_request request = read_request();
    struct cg_response response;
    load_code_generator(argv[2], argv[1])(&request, &response);
    write_response(&response);
    _exit(0);
}
