#!/bin/sh
# What becomes of processes under mpirun: alone and together, when one is killed, stopped, exits, or does
# something else than the others.
#
#     under_mpi.sh MPIRUN.SH MPIRUN PROGRAM
#
# A few of them, or with JOT_TEST_FULL=1 all, of eight processes.
set -eu
start=$1 mpirun=$2 program=$3
if [ -n "${JOT_TEST_FULL:-}" ]; then
    n=8
    set -- share own differ exit kill stop
else
    n=3
    set -- share own kill
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
faults=0

# Waits until so many processes have written "well", for a minute and a half, or what is left of the job.
expect()
{
    tries=0
    until [ "$(grep -c '^well$' "$folder/out" || true)" -eq "$1" ]; do
        kill -0 $job 2>/dev/null || tries=$((tries + 300))
        tries=$((tries + 1))
        if [ $tries -gt 900 ]; then
            echo "$mode: not $1 processes are well:"
            cat "$folder/out" "$folder/err"
            faults=1
            return
        fi
        sleep 0.1
    done
}

for mode in "$@"; do
    rm -f "$folder/fell"
    : >"$folder/out"
    sh "$start" "$mpirun" "$n" "$program" "$mode" "$folder/fell" >"$folder/out" 2>"$folder/err" &
    job=$!
    case $mode in
    kill | exit) expect $((n - 1)) ;;
    stop)
        # The others end while it stands; it hears of it, and ends.
        expect $((n - 1))
        kill -CONT "$(cut -d' ' -f1 "$folder/fell")"
        expect "$n"
        ;;
    *) expect "$n" ;;
    esac
    # The job ends, and none of its processes is left.
    [ $faults = 0 ] || pkill -KILL -f "$folder/fell" || true
    wait $job || true
    if pgrep -f "$folder/fell" >"$folder/left"; then
        echo "$mode: processes are left: $(tr '\n' ' ' <"$folder/left")"
        faults=1
    fi
done
exit $faults
