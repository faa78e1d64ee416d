// SPDX-License-Identifier: Apache-2.0
#include "interop/folder.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char made[64];

const char *folder_path(const char *name)
{
    static char path[4][400];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", made, name);
    return p;
}

void folder_make(void)
{
    strcpy(made, "/tmp/jot-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(made));
}

static int visit(void (*each)(const char *path))
{
    int n = 0;
    DIR *d = opendir(made);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            n++;
            each(folder_path(e->d_name));
        }
    closedir(d);
    return n;
}

static void keep(const char *path) { (void)path; }
static void discard(const char *path) { ck_assert_int_eq(unlink(path), 0); }

int folder_count(void) { return visit(keep); }

void folder_remove(void)
{
    visit(discard);
    ck_assert_int_eq(rmdir(made), 0);
}

void *folder_slurp(const char *path, size_t *n)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *bytes = malloc(MOST + 1);
    *n = fread(bytes, 1, MOST, f);
    bytes[*n] = 0;
    fclose(f);
    return bytes;
}

void folder_spill(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "%s", path);
}
