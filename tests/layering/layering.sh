#!/bin/sh
# Which folder may include which, that every source is built, and that the README of its folder says
# what it is for.  Prints the lines at fault.
#
#     layering.sh ROOT
set -u
cd "$1" || exit 1
faults=0

# only FOLDER NAMES: quoted includes of the files in FOLDER begin with one of NAMES.
only()
{
    [ -d "$1" ] || return 0
    if grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$1" \
        --include='*.c' --include='*.h' --include='*.inc' --include='*.def' |
        grep -vE "include[[:space:]]*\"($2)"; then
        echo "  $1 may include: $2" >&2
        faults=1
    fi
}

# never FOLDER HEADERS: angle-bracket includes that FOLDER does without.
never()
{
    [ -d "$1" ] || return 0
    if grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<($2)" "$1"; then
        echo "  $1 does without: $2" >&2
        faults=1
    fi
}

only include 'jot/'
only src/base 'base/|jot/(status|dtype)\.h'
only src/ir 'ir/|base/|jot/(status|dtype|callback)\.h'
only src/passes 'passes/|ir/|base/|jot/(status|dtype)\.h'
only src/nest 'nest/|ir/|base/|jot/(status|dtype)\.h'
only src/schedule 'schedule/|nest/|passes/|ir/|base/|jot/(status|dtype)\.h'
only src/map 'map/|schedule/kernels/attention\.h|nest/|ir/|base/|jot/(status|dtype)\.h'
# The launch plan that codegen writes is a format, and base/launch.h defines it.
only src/codegen 'codegen/|map/|schedule/(kernels/attention|plan/plan)\.h|nest/|ir/|base/|jot/(status|dtype)\.h'
if grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"codegen/gpu/' src/codegen/*.[ch] 2>/dev/null; then
    echo "  src/codegen reaches its folder gpu by hooks.h alone" >&2
    faults=1
fi
only src/runtime 'runtime/|base/|jot/'
only src/trace 'trace/|codegen/(codegen|exchange)\.h|map/map\.h|runtime/|schedule/|nest/|passes/|ir/|base/|jot/'
only src/numpy 'numpy/|trace/(emit|lanes|linalg|random)\.h|base/dtype\.h|jot/'
only src/interop 'interop/|trace/|runtime/|passes/|ir/|base/|jot/'
only src/library 'library/|jot/'
only examples 'jot/'
only tools/jot 'jot/|command\.h|under_jax\.inc'
only tools/math 'base/|jot/(status|dtype)\.h'

never include 'llvm-c/|cuda|pthread'
for folder in base ir passes nest schedule map; do
    never "src/$folder" 'llvm-c/|cuda|dlfcn|pthread'
done
for folder in runtime trace numpy interop library; do
    never "src/$folder" 'llvm-c/'
done

for source in $(find src -name '*.c' | sort); do
    path=${source#src/}
    folder=${path%%/*}
    if ! grep -qF "'${path#"$folder"/}'" "src/$folder/meson.build"; then
        echo "$source: not in src/$folder/meson.build"
        faults=1
    fi
done

# Files that serve one shape say so in their heads.  They are few, and docs/nests.md says why each is there.
tagged=$(grep -rlE '^// One shape: ' src --include='*.c' | sort)
listed=$(sed -n '/^## Files that serve one shape/,/^## [^F]/p' docs/nests.md 2>/dev/null |
    sed -n 's/^| \(`[^|]*\) |.*/\1/p' | tr -d '` ' | tr ',' '\n' | sort)
if [ "$tagged" != "$listed" ]; then
    printf '%s\n' "$tagged" "$listed" | sort | uniq -u
    echo "  serve one shape by their heads or by docs/nests.md, not by both" >&2
    faults=1
fi
if [ "$(printf '%s\n' "$tagged" | wc -l)" -gt 16 ]; then
    echo "more than 16 files serve one shape"
    faults=1
fi

# The README.md of a folder of src names its files in the first column of tables: `arena.c`, or
# `arena.[ch]` for a source and its header.
for folder in $(find src -type d | sort); do
    readme=$folder/README.md
    if ! [ -f "$readme" ]; then
        echo "$folder: no README.md"
        faults=1
        continue
    fi
    named=$(sed -n 's/^| `\([^|]*\)` |.*/\1/p' "$readme" | sed 's/`, `/\n/g' |
        sed 's/^\(.*\)\.\[ch\]$/\1.c\n\1.h/' | sort)
    files=$(find "$folder" -maxdepth 1 -type f ! -name README.md ! -name meson.build |
        sed 's|.*/||' | sort)
    for name in $(printf '%s\n' "$named" | uniq -d); do
        echo "$readme: $name is named twice"
        faults=1
    done
    for name in $(printf '%s\n' "$named" | uniq | { cat; printf '%s\n' "$files"; } | sort | uniq -u); do
        if [ -f "$folder/$name" ]; then
            echo "$folder/$name: not in $readme: add a line that says what it is for"
        else
            echo "$readme: $name is not there"
        fi
        faults=1
    done
done
exit $faults
