#!/bin/sh
# A header with the hash of the sources of libjot and of its code generator: two builds that have the
# same one make the same programs.
#
#     built.sh ROOT OUTPUT DEPENDENCIES
set -eu
root=$1 output=$2 dependencies=$3
sources()
{
    (cd "$root" && find meson.build src -name '*.[ch]' -o -name '*.def' -o -name '*.inc' \
        -o -name 'meson.build') | LC_ALL=C sort
}
hash=$(sources | (cd "$root" && xargs sha256sum) | sha256sum | cut -c1-32)
echo "#define BUILT \"$hash\"" >"$output"
{
    printf '%s:' "$output"
    sources | sed "s|^| $root/|" | tr -d '\n'
    echo
} >"$dependencies"
