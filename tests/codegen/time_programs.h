// SPDX-License-Identifier: Apache-2.0
// Loops over time, as texts with %B for the lanes and %T for the times.
#ifndef TESTS_CODEGEN_TIME_PROGRAMS_H
#define TESTS_CODEGEN_TIME_PROGRAMS_H

static const char spring[] = "kernel spring(k: %d[%B], x: out %d[%B], v: out %d[%B]) {"
                             "  par b < %B {"
                             "    %1 = load k[b] : %d"
                             "    seq t < %T carry %2 = %1, %3 = %1 {"
                             "      %4 = mul %1, %2 : %d"
                             "      %5 = sub %3, %4 : %d"
                             "      %6 = add %2, %5 : %d"
                             "      yield %6, %5"
                             "    } -> %7, %8"
                             "    put x[b] = %7 put v[b] = %8"
                             "  }"
                             "}";

#endif
