#!/bin/sh
# Which folder may include which, and that every source is built.  Prints the lines at fault.
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
# The launch plan that codegen writes is a format, and base/launch.h defines it.
only src/codegen 'codegen/|passes/|ir/|base/|jot/(status|dtype)\.h'
only src/runtime 'runtime/|base/|jot/'
only src/trace 'trace/|codegen/(codegen|exchange)\.h|runtime/|passes/|ir/|base/|jot/'
only src/interop 'interop/|trace/|runtime/|passes/|ir/|base/|jot/'
only examples 'jot/'
only tools/jot 'jot/|command\.h|under_jax\.inc'
only tools/math 'base/|jot/(status|dtype)\.h'

never include 'llvm-c/|cuda|pthread'
for folder in base ir passes; do
    never "src/$folder" 'llvm-c/|cuda|dlfcn|pthread'
done
for folder in runtime trace interop; do
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
exit $faults
