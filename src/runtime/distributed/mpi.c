// SPDX-License-Identifier: Apache-2.0
// The processes that MPI has started find each other by it.  Nothing else is done with MPI: its calls have
// no end when a process dies, and neither has MPI_Finalize, so MPI is over before the work begins.
#include "runtime/distributed/mpi.h"

#include "base/built.h"

#include <mpi.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

static char message[MPI_MAX_ERROR_STRING];

static const char *fault_of(int code)
{
    int length;
    if (code == MPI_SUCCESS)
        return NULL;
    if (MPI_Error_string(code, message, &length) != MPI_SUCCESS)
        return "MPI failed";
    return message;
}

static enum mpi_state state(void)
{
    int has_begun = 0, is_over = 0;
    MPI_Initialized(&has_begun);
    MPI_Finalized(&is_over);
    return is_over ? MPI_STATE_OVER : has_begun ? MPI_STATE_OF_PROGRAM : MPI_STATE_NONE;
}

static const char *gather_bytes(MPI_Comm world, const void *own, void *all, size_t bytes,
                                double seconds)
{
    MPI_Request request;
    int is_done = 0, n = (int)bytes;
    double end = MPI_Wtime() + seconds;
    int code = MPI_Iallgather(own, n, MPI_BYTE, all, n, MPI_BYTE, world, &request);
    while (code == MPI_SUCCESS) {
        code = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (is_done)
            break;
        if (MPI_Wtime() > end)
            return "not all have come in time";
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return fault_of(code);
}

static const char *meet(const void *own, size_t bytes, double seconds,
                        void *(*allocate)(size_t bytes), int *out_index, int *out_count,
                        void **out_all)
{
    bool is_ours = state() == MPI_STATE_NONE;
    int level, code = MPI_SUCCESS;
    MPI_Comm world;
    if (is_ours)
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (code != MPI_SUCCESS)
        return fault_of(code);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, out_index);
    MPI_Comm_size(world, out_count);
    *out_all = allocate((size_t)*out_count * bytes);
    if (!*out_all)
        return "out of memory";
    const char *fault = gather_bytes(world, own, *out_all, bytes, seconds);
    if (fault)
        return fault;
    MPI_Comm_free(&world);
    return is_ours ? fault_of(MPI_Finalize()) : NULL;
}

// Declared here as well, for a symbol that others see has a declaration.
__attribute__((visibility("default"))) extern const struct mpi_module jot_mpi_module;
const struct mpi_module jot_mpi_module = {.built = BUILT, .state = state, .meet = meet};
