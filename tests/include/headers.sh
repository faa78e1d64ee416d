#!/bin/sh
# Each public header alone, as C11 and as C++17, with every compiler that is here.
#
#     headers.sh ROOT
set -u
cd "$1" || exit 1
flags='-fsyntax-only -Iinclude -Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror'
faults=0
compilers=0

# each COMPILER LANGUAGE STANDARD
each()
{
    command -v "$1" >/dev/null 2>&1 || return 0
    compilers=$((compilers + 1))
    for header in include/jot/*.h; do
        # shellcheck disable=SC2086
        if ! echo "#include \"${header#include/}\"" | "$1" $flags -x "$2" -std="$3" -; then
            echo "$header does not stand alone: $1 -std=$3" >&2
            faults=1
        fi
    done
}

for compiler in gcc clang; do
    each $compiler c c11
done
for compiler in g++ clang++; do
    each $compiler c++ c++17
done
[ $compilers -gt 0 ] || {
    echo 'no compiler found' >&2
    exit 1
}
exit $faults
