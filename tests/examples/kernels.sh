#!/bin/sh
# The function that docs/kernels.md shows is that of an example.  Each indented block of the page is a part of
# what jot makes of it, where a line of three dots stands for any lines, and the place of a node may be left out.
#
#     kernels.sh PAGE SOURCE EXAMPLE FOR_TARGET FAKE_CUDA
set -eu
page=$1 source=$2 example=$3 for_target=$4 fake_cuda=$5
export JOT_CACHE=off
made=$(mktemp)
trap 'rm -f "$made" "$made.host"' EXIT

shown=$(awk '/^```/ { c = $0 == "```c"; next } c' "$page" | tr -d ' \n')
case $(tr -d ' \n' <"$source") in
*"$shown"*) ;;
*)
    echo "not in $source: the function of $page"
    exit 1
    ;;
esac

# The levels of the machine's own processor are taken out, for those of one that all machines know.  The fake GPU
# runs no kernel, so the example finds its results wrong there.
while read -r shape; do
    # shellcheck disable=SC2086
    JOT_DUMP=trace,transform,simplify,schedule "$example" $shape 2>&1 >/dev/null |
        sed 's/ @vector [0-9]*//; s/ price [0-9]*//; s|[^ ]*/\([a-z]*\.c:\)|\1|g' >"$made.host"
    cat "$made.host"
    sed -n '/^jot nest/,$p' "$made.host" |
        "$for_target" 'skylake-avx512 +avx512f,+avx512bw,+avx512dq,+avx512vl'
    # shellcheck disable=SC2086
    JOT_DUMP=schedule,code JOT_DEVICE=cuda JOT_CUDA_LIBRARIES=$fake_cuda "$example" $shape 2>&1 || :
done >"$made" <<'SHAPES'
4096 1024
8 1048576
100000 8
1024 4096 1
SHAPES

awk '
    function plain(line) {
        sub(/^[ \t]+/, "", line)
        gsub(/[ \t]+/, " ", line)
        return line
    }
    function is_shown(at, line) {
        return made[at] == line || unplaced[at] == line
    }
    # The number of lines of the block that are made from line number first on.
    function matches(first,    at, i) {
        at = first
        for (i = 1; i <= n; i++) {
            if (block[i] == "...")
                continue
            while (i > 1 && block[i - 1] == "..." && at <= lines && !is_shown(at, block[i]))
                at++
            if (at > lines || !is_shown(at++, block[i]))
                return i - 1
        }
        return n
    }
    # Lines that differ from it in numbers alone.
    function print_alike(line,    at, other, printed) {
        gsub(/[0-9]+/, "", line)
        for (at = 1; at <= lines; at++) {
            other = unplaced[at]
            gsub(/[0-9]+/, "", other)
            if (other == line && !printed[unplaced[at]]++)
                print "                     it has: " unplaced[at]
        }
    }
    function finish(    at, most, m) {
        if (!n)
            return
        for (at = 1; at <= lines && most < n; at++)
            if (is_shown(at, block[1]) && (m = matches(at)) > most)
                most = m
        if (most < n) {
            print "not what jot makes of it: " block[most + 1]
            print_alike(block[most + 1])
            bad = 1
        }
        blocks++
        n = 0
    }
    FNR == NR { made[++lines] = plain($0); unplaced[lines] = made[lines]; sub(/ ; .*/, "", unplaced[lines]); next }
    /^```/ { is_source = !is_source }
    !is_source && /^    / { block[++n] = plain($0); next }
    { finish() }
    END {
        finish()
        if (blocks < 8)
            print "only " blocks + 0 " blocks"
        exit bad || blocks < 8
    }' "$made" "$page"
