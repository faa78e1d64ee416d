#!/bin/sh
# A header with the hash of libraries: what they make can then be told from what others made.
#
#     built.sh AR OUTPUT LIBRARY...
set -eu
ar=$1 output=$2
shift 2
hash=$(for library in "$@"; do "$ar" p "$library"; done | sha256sum | cut -c1-32)
echo "#define BUILT \"$hash\"" >"$output"
