// SPDX-License-Identifier: Apache-2.0
// The command `jot`.
#include "jot/jot.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "jot devices     list the host, the GPUs, and the libraries for them\n"
    "jot --version   print the version\n";

static int list_devices(void)
{
    char text[16384];
    jot_devices_format(text, sizeof text);
    fputs(text, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "devices"))
        return list_devices();
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        puts("jot " VERSION);
        return 0;
    }
    bool asks = argc == 2 && (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help"));
    fputs(usage, asks ? stdout : stderr);
    return asks ? 0 : 1;
}
