#!/bin/sh
# Starts N processes of a program on this machine, which may have fewer processors and root as its user; one
# that dies does not end the others.
#
#     mpirun.sh MPIRUN N PROGRAM ARGUMENT...
set -eu
mpirun=$1 n=$2
shift 2
if "$mpirun" --version 2>/dev/null | grep -q 'Open MPI'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec "$mpirun" --oversubscribe --enable-recovery -n "$n" "$@"
fi
exec "$mpirun" -n "$n" "$@"
