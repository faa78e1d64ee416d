#!/bin/sh
# What no file of the project holds: paths of somebody's machine, unfinished places, ticket
# numbers, trailing blanks; that each C file begins with its licence; and that files which the
# documentation names are there.
#
#     clean.sh ROOT
set -u
cd "$1" || exit 1
faults=0

files=$(find . -name .git -prune -o -name 'build*' -type d -prune -o -path ./tests/clean -prune \
    -o -type f -print)

# without PATTERN WHY [FILES]
without()
{
    # shellcheck disable=SC2086
    if grep -nIE "$1" ${3:-$files}; then
        echo "  $2" >&2
        faults=1
    fi
}

code=$(printf '%s\n' "$files" | grep -E '^\./(src|include|tests|examples|bench|tools)/')
text=$(printf '%s\n' "$files" | grep -vE '\.(md|npz|npy|patch|diff)$|^\./LICENSE$')

without '(^|[^[:alnum:]_.}"$])/(home|root|work|farm|Users|mnt)/' 'the path of a machine'
without '\<(TODO|FIXME|XXX|HACK)\>' 'an unfinished place' "$code"
without '\<([Ii]ssue|[Tt]icket|[Bb]ug|PR) #?[0-9]+' 'the number of a ticket'
without '[[:blank:]]+$' 'blanks at the end of a line' "$text"

for file in $(printf '%s\n' "$code" | grep -E '\.(c|h|inc)$'); do
    if ! head -n 1 "$file" | grep -qF '// SPDX-License-Identifier: Apache-2.0'; then
        echo "$file: the first line is not the licence"
        faults=1
    fi
done

# Links, and `folder/file.c` from the page, the root or one of the folders.
pages=$(printf '%s\n' "$files" | grep '\.md$' | grep -vE '^\./(tests/|CHANGELOG)')
for page in $pages; do
    for name in $(sed '/^    /d' "$page" | grep -oE '\]\([^):#]+' | cut -c 3-) \
        $(grep -oE '`[[:alnum:]_]+/[[:alnum:]_/.-]+\.(c|h|inc|def|sh|py|md)`' "$page" | tr -d '`'); do
        for folder in "${page%/*}" . src include src/passes none; do
            [ -e "$folder/$name" ] && break
        done
        if [ "$folder" = none ]; then
            echo "$page: $name is not there"
            faults=1
        fi
    done
done
exit $faults
