#!/bin/sh
# The functions that README.md shows are those of examples, but for spaces; and the kernels are what
# they are compiled to, where a line of three dots stands for any, but for levels and prices, which a processor has.
#
#     readme.sh README.md DIRECTORY readme readme_loop
set -eu
shown=$1
sources=$(cat "$2"/readme.c "$2"/readme_loop.c "$2"/own_kernels.c | tr -d ' \n')
shift 2
awk '/^```/ { c = $0 == "```c"; $0 = "" } !c && NF { next } { print }' "$shown" |
    awk -v RS= '/^(static|int main)/ { gsub(/[ \n]/, ""); print }' |
    while read -r function; do
        case $sources in
        *"$function"*) ;;
        *)
            echo "not in an example: $function"
            exit 1
            ;;
        esac
    done
for example; do
    JOT_CACHE=off JOT_DUMP=schedule "$example" 2>&1
done | awk -v shown="$shown" '
    function is_dots(line) { return line ~ /^ *\.\.\.$/ }
    { gsub(/ @vector [0-9]+| price [0-9]+/, ""); made[++n] = $0 }
    END {
        while ((getline line < shown) > 0) {
            if (line ~ /^    kernel /) {
                at = 1
                while (at <= n && made[at] != substr(line, 5))
                    at++
                kernels++
                skips = 0
                inside = 1
            }
            if (!inside)
                continue
            if (line !~ /^    /) {
                inside = 0
                continue
            }
            line = substr(line, 5)
            if (is_dots(line)) {
                skips = 1
                continue
            }
            while (skips && at <= n && made[at] != line)
                at++
            if (made[at++] != line) {
                print "not in the schedule: " line
                bad = 1
                exit 1
            }
            skips = 0
        }
        if (!bad && kernels != 2) {
            print kernels + 0 " kernels in " shown
            exit 1
        }
    }'
