// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct progress {
    const char *what;
    double start;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool has_thread, has_ended, has_said;
};

// After 1, 2, 4, 8 ... seconds.
static void *watch(void *ctx)
{
    struct progress *p = ctx;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&p->mutex);
    for (time_t seconds = 1, passed = 0; !p->has_ended;) {
        struct timespec next = {until.tv_sec + seconds, until.tv_nsec};
        if (pthread_cond_timedwait(&p->ended, &p->mutex, &next) == 0)
            continue;
        passed = seconds;
        fprintf(stderr, "jot %s: %s, %ld s\n", command_name, p->what, (long)passed);
        p->has_said = true;
        seconds *= 2;
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

struct progress *progress_start(const char *what)
{
    struct progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->what = what;
    p->start = now();
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->ended, NULL);
    p->has_thread = pthread_create(&p->thread, NULL, watch, p) == 0;
    return p;
}

double progress_end(struct progress *p)
{
    if (!p)
        return 0;
    double seconds = now() - p->start;
    pthread_mutex_lock(&p->mutex);
    p->has_ended = true;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->mutex);
    if (p->has_thread)
        pthread_join(p->thread, NULL);
    if (p->has_said)
        fprintf(stderr, "jot %s: %s, %.1f s, done\n", command_name, p->what, seconds);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->ended);
    free(p);
    return seconds;
}
