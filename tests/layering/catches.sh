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
    mkdir -p "$tree/src/base" "$tree/src/ir" "$tree/src/passes" "$tree/include/jot"
    echo '#include "base/arena.h"' >"$tree/src/ir/graph.c"
    echo "files('graph.c')" >"$tree/src/ir/meson.build"
    echo '#include "jot/status.h"' >"$tree/include/jot/array.h"
}

# caught FILE LINE: the tree with that line in that file fails.
caught()
{
    fresh
    echo "$2" >>"$tree/$1"
    if sh "$layering" "$tree" >/dev/null 2>&1; then
        echo "not caught: $2 in $1" >&2
        exit 1
    fi
}

layering=$1
fresh
sh "$layering" "$tree"
caught src/ir/graph.c '#include "passes/nest.h"'
caught src/ir/graph.c '#  include <llvm-c/Core.h>'
caught src/base/vec.h '#include "ir/graph.h"'
caught src/passes/rules.inc '#include "codegen/codegen.h"'
caught include/jot/array.h '#include "base/status.h"'
caught src/ir/forgotten.c '// A source that no meson.build names.'
