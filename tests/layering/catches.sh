#!/bin/sh
# layering.sh finds what it is for: a small tree passes, and each fault put into it fails.
#
#     catches.sh LAYERING.SH
set -eu
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# fresh: a tree without faults.
fresh()
{
    rm -rf "$tree/src" "$tree/include"
    mkdir -p "$tree/src/base" "$tree/src/ir" "$tree/src/passes" "$tree/src/codegen" "$tree/include/jot"
    echo '#include "base/arena.h"' >"$tree/src/ir/graph.c"
    echo "files('graph.c')" >"$tree/src/ir/meson.build"
    echo '#include "jot/status.h"' >"$tree/include/jot/array.h"
    for folder in src src/base src/ir src/passes src/codegen; do
        echo '| file | what it does |' >"$tree/$folder/README.md"
    done
    echo '| `graph.c` | graphs |' >>"$tree/src/ir/README.md"
}

# fails WHY: the tree fails.
fails()
{
    if sh "$layering" "$tree" >/dev/null 2>&1; then
        echo "not caught: $1" >&2
        exit 1
    fi
}

# caught FILE LINE: the tree with that line in that file, which its README names, fails.
caught()
{
    fresh
    [ -f "$tree/$1" ] || echo "| \`${1##*/}\` | a file |" >>"$tree/${1%/*}/README.md"
    echo "$2" >>"$tree/$1"
    fails "$2 in $1"
}

layering=$1
fresh
sh "$layering" "$tree"
caught src/ir/graph.c '#include "nest/nest.h"'
caught src/ir/graph.c '#  include <llvm-c/Core.h>'
caught src/base/vec.h '#include "ir/graph.h"'
caught src/passes/rules.inc '#include "codegen/codegen.h"'
caught src/codegen/lower.h '#include "codegen/gpu/gpu.h"'
caught include/jot/array.h '#include "base/status.h"'
caught src/ir/forgotten.c '// A source that no meson.build names.'
caught src/ir/graph.c '// One shape: a file that docs/nests.md does not name.'
caught src/ir/README.md '| `nodes.[ch]` | A file that is not there. |'
caught src/ir/README.md '| `graph.c` | A file that is named twice. |'
fresh
touch "$tree/src/ir/ops.def"
fails 'a file that no README names'
fresh
rm "$tree/src/ir/README.md"
fails 'a folder without README.md'
