// SPDX-License-Identifier: Apache-2.0
// A program with jot inside that is started by a name that does not say where it is, and goes
// elsewhere before it compiles: the code generator is found beside it.
#include <jot/jot.h>

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static jot_value f(jot_value x) { return jot_add(jot_exp(x), 3); }

static int compiles(jot_compile where)
{
    jot_array *x = jot_array_full(JOT_F32, 0, 2), *y = NULL;
    jot_executable *e = jot_jit(jot_fn(f), .compile = where);
    int ok = jot_call(e, JOT_IN(x), JOT_OUT(y)) == JOT_OK &&
             ((const float *)jot_array_data(y))[1] == 4;
    if (!ok)
        printf("%s\n", jot_error_message());
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(e);
    return ok;
}

static int run(const char *folder, const char *name)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (chdir(strchr(name, '/') ? folder : "/") == 0)
            execlp(name, name, "started", (char *)NULL);
        _exit(2);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return chdir("/") || !(compiles(JOT_COMPILE_INSIDE) && compiles(JOT_COMPILE_PROCESS));
    char *path = realpath("/proc/self/exe", NULL), name[256];
    const char *folder = dirname(path);
    unsetenv("JOT_CODEGEN");
    unsetenv("JOT_BACKEND");
    unsetenv("JOT_DEVICE");
    setenv("JOT_CACHE", "off", 1);
    setenv("PATH", folder, 1);
    snprintf(name, sizeof name, "./%s", basename(argv[0]));
    int ok = run(folder, name) & run(folder, name + 2);
    free(path);
    return !ok;
}
