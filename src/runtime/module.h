// SPDX-License-Identifier: Apache-2.0
// Files that are installed beside libjot and loaded or run when they are needed.
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#define RT_PATH_BYTES 4096

// Where the file is: beside this library, installed or in a build tree; where it was to be installed.
// "" where it is not there.
void rt_module_find(const char *name, char path[RT_PATH_BYTES]);

#endif
