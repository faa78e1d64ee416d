// SPDX-License-Identifier: Apache-2.0
// The module that uses MPI: a table of functions.
#ifndef RUNTIME_DISTRIBUTED_MPI_H
#define RUNTIME_DISTRIBUTED_MPI_H

#include <stddef.h>

#define MPI_MODULE_SYMBOL "jot_mpi_module"

enum mpi_state { MPI_STATE_NONE, MPI_STATE_OF_PROGRAM, MPI_STATE_OVER };

struct mpi_module {
    const char *built; // the hash of the sources it was built with
    enum mpi_state (*state)(void);
    // Gives each process its number, how many there are, and the records of all in their order, in memory
    // of `allocate`.  Waits for others at most so many seconds, where MPI lets it.  A text says what
    // is wrong; NULL is well.
    const char *(*meet)(const void *own, size_t bytes, double seconds,
                        void *(*allocate)(size_t bytes), int *out_index, int *out_count,
                        void **out_all);
};

#endif
