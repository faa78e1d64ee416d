#!/bin/sh
# Each program of mistakes.h with every compiler that is here: it must not compile, and one of the first three lines
# of the message says which macro it is and what that takes.
#
#     mistakes.sh ROOT
set -u
cd "$1" || exit 1
header=tests/include/mistakes.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
compilers=0

# check COMPILER NAME WHAT: WHAT are texts with | between, of which one is in the message.
check()
{
    if $1 -std=c11 -Iinclude -fsyntax-only -x c -DMISTAKE_"$2" $header >"$work/$2" 2>&1; then
        echo "$1: $2 compiles" >&2
        return 1
    fi
    message=$(sed -n '/error:/,$p' "$work/$2" | head -3)
    rest=$3
    while [ -n "$rest" ]; do
        case $message in
        *"${rest%%|*}"*) return 0 ;;
        esac
        case $rest in
        *"|"*) rest=${rest#*|} ;;
        *) rest= ;;
        esac
    done
    printf '%s: %s: not "%s" but\n%s\n' "$1" "$2" "$3" "$message" >&2
    return 1
}

for compiler in gcc clang clang-19; do
    command -v $compiler >/dev/null 2>&1 || continue
    compilers=$((compilers + 1))
    if ! $compiler -std=c11 -Iinclude -fsyntax-only -Wall -Wextra -Wpedantic -Werror -Wno-unused -x c $header; then
        echo "$compiler: what is right does not compile" >&2
        faults=1
    fi
    sed -n 's/^#ifdef MISTAKE_\([a-z_0-9]*\) \/\/ \(.*\)/\1 \2/p' $header >"$work/list"
    while read -r name what; do
        check $compiler "$name" "$what" || faults=1
    done <"$work/list"
done
[ $compilers -gt 0 ] || {
    echo 'no compiler found' >&2
    exit 1
}
exit $faults
