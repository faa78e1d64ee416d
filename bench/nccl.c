// SPDX-License-Identifier: Apache-2.0
#include "nccl.h"

#include "measure.h"

#include <dlfcn.h>

enum { MOST = 64, FLOAT = 7, SUM = 0 };

// The few entry points that this takes of the driver and of NCCL.
static struct {
    int (*retain)(void **context, int device);
    int (*enter)(void *context);
    int (*leave)(void **context);
    int (*stream)(void **stream, unsigned flags);
    int (*wait)(void *stream);
    int (*init)(void **comms, int n, const int *devices);
    int (*start)(void);
    int (*end)(void);
    int (*sum)(const void *from, void *to, size_t count, int type, int op, void *comm,
               void *stream);
} call;

static bool find(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *nccl = dlopen("libnccl.so.2", RTLD_NOW);
    const struct {
        void *library;
        const char *name;
        void *entry;
    } entries[] = {
        {driver, "cuDevicePrimaryCtxRetain", &call.retain},
        {driver, "cuCtxPushCurrent_v2", &call.enter},
        {driver, "cuCtxPopCurrent_v2", &call.leave},
        {driver, "cuStreamCreate", &call.stream},
        {driver, "cuStreamSynchronize", &call.wait},
        {nccl, "ncclCommInitAll", &call.init},
        {nccl, "ncclGroupStart", &call.start},
        {nccl, "ncclGroupEnd", &call.end},
        {nccl, "ncclAllReduce", &call.sum},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *at = entries[i].library ? dlsym(entries[i].library, entries[i].name) : NULL;
        if (!at)
            return false;
        *(void **)entries[i].entry = at;
    }
    return true;
}

double nccl_sum(int n, const void *const *from, void *const *to, size_t count)
{
    void *contexts[MOST], *streams[MOST], *comms[MOST];
    int devices[MOST], failed = 0;
    double best = 1e9, end = 0;
    if (n > MOST || !find())
        return 0;
    for (int i = 0; i < n; i++) {
        devices[i] = i;
        failed = failed || call.retain(&contexts[i], i) || call.enter(contexts[i]) ||
                 call.stream(&streams[i], 1) || call.leave(&contexts[i]);
    }
    if (failed || call.init(comms, n, devices))
        return 0;
    for (int turn = 0; turn < 3 || seconds() < end; turn++) {
        double start = seconds();
        call.start();
        for (int i = 0; i < n; i++) {
            call.enter(contexts[i]);
            failed |= call.sum(from[i], to[i], count, FLOAT, SUM, comms[i], streams[i]);
            call.leave(&contexts[i]);
        }
        failed |= call.end();
        for (int i = 0; i < n; i++) {
            call.enter(contexts[i]);
            failed |= call.wait(streams[i]);
            call.leave(&contexts[i]);
        }
        double time = seconds() - start;
        if (failed)
            return 0;
        if (turn == 0)
            end = seconds() + 0.5;
        else if (time < best)
            best = time;
    }
    return best * 1e6;
}
