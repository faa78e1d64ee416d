#!/bin/sh
# One static library of several, in which only what is visible in the shared library is global:
# names of the inside can then not meet those of a program.
#
#     localise.sh COMPILER-AND-ITS-WORDS OBJCOPY AR OUTPUT LIBRARY...
set -eu
compiler=$1 objcopy=$2 ar=$3 output=$4
shift 4
object=${output%.a}.o
$compiler -r -nostdlib -o "$object" -Wl,--whole-archive "$@" -Wl,--no-whole-archive
"$objcopy" --localize-hidden "$object"
rm -f "$output"
"$ar" rcs "$output" "$object"
rm -f "$object"
