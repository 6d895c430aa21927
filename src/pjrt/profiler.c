// SPDX-License-Identifier: Apache-2.0
// profiler.c — the profiler extension: a plane for the device in jax.profiler's traces, beside those of the host.
//
// While a profile is taken, every launch is noted with the host's time at which it began. Collecting prices each
// program once and gives back its modelled timeline at those moments (clock/xplane.h). The interface knows no client: the
// notes are the process's, behind a lock, which is why they are file-level state here.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pjrt/pjrt.h"
#include "rt/timeline.h"

#define RUNS_MOST 100000u

// The interface of the plugin profiler, version 1.
typedef struct PLUGIN_Profiler {
    uint8_t *bytes; // the XSpace, once it was collected
    size_t size;
    bool ready;
} PLUGIN_Profiler;
typedef struct PLUGIN_Profiler_Error PLUGIN_Profiler_Error; // never made
typedef struct CreateArgs {
    size_t struct_size;
    const char *options;
    size_t options_size;
    PLUGIN_Profiler *profiler;
} CreateArgs;
typedef struct ProfilerArgs {
    size_t struct_size;
    PLUGIN_Profiler *profiler;
} ProfilerArgs;
typedef struct CollectArgs {
    size_t struct_size;
    PLUGIN_Profiler *profiler;
    uint8_t *buffer;
    size_t buffer_size_in_bytes;
} CollectArgs;
typedef struct ErrorArgs {
    size_t struct_size;
    PLUGIN_Profiler_Error *error;
} ErrorArgs;
typedef struct ErrorMessageArgs {
    size_t struct_size;
    const PLUGIN_Profiler_Error *error;
    const char *message;
    size_t message_size;
} ErrorMessageArgs;
typedef struct ErrorCodeArgs {
    size_t struct_size;
    const PLUGIN_Profiler_Error *error;
    int code;
} ErrorCodeArgs;
typedef struct PLUGIN_Profiler_Api {
    size_t struct_size;
    void *priv;
    void (*error_destroy)(ErrorArgs *);
    void (*error_message)(ErrorMessageArgs *);
    PLUGIN_Profiler_Error *(*error_get_code)(ErrorCodeArgs *);
    PLUGIN_Profiler_Error *(*create)(CreateArgs *);
    PLUGIN_Profiler_Error *(*destroy)(ProfilerArgs *);
    PLUGIN_Profiler_Error *(*start)(ProfilerArgs *);
    PLUGIN_Profiler_Error *(*stop)(ProfilerArgs *);
    PLUGIN_Profiler_Error *(*collect_data)(CollectArgs *);
} PLUGIN_Profiler_Api;

static struct {
    pthread_mutex_t lock;
    atomic_bool on;
    PJRT_Executable **exes; // counted
    uint32_t nexes, exes_cap;
    XRun *runs;
    uint32_t nruns, runs_cap;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void notes_clear(void) {
    for (uint32_t i = 0; i < notes.nexes; i++)
        pj_exe_drop(notes.exes[i]);
    free(notes.exes);
    free(notes.runs);
    notes.exes = NULL, notes.runs = NULL;
    notes.nexes = notes.exes_cap = notes.nruns = notes.runs_cap = 0;
}

// Makes room for one more; false without memory.
static bool room(void **list, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap)
        return true;
    uint32_t more = *cap ? 2 * *cap : 64;
    void *grown = realloc(*list, more * size);
    if (!grown)
        return false;
    *list = grown;
    *cap = more;
    return true;
}

void pj_profiler_note(PJRT_Executable *e, uint64_t took_ns) {
    if (!atomic_load_explicit(&notes.on, memory_order_relaxed))
        return;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    pthread_mutex_lock(&notes.lock);
    uint32_t i = 0;
    while (i < notes.nexes && notes.exes[i] != e)
        i++;
    bool ok = notes.on && notes.nruns < RUNS_MOST && room((void **)&notes.runs, notes.nruns, &notes.runs_cap, sizeof *notes.runs) &&
              (i < notes.nexes || room((void **)&notes.exes, notes.nexes, &notes.exes_cap, sizeof(PJRT_Executable *)));
    if (ok) {
        if (i == notes.nexes) {
            atomic_fetch_add(&e->refs, 1);
            notes.exes[notes.nexes++] = e;
        }
        notes.runs[notes.nruns++] = (XRun){i, now > took_ns ? now - took_ns : 0};
    }
    pthread_mutex_unlock(&notes.lock);
}

static PLUGIN_Profiler_Error *profiler_create(CreateArgs *args) {
    args->profiler = calloc(1, sizeof *args->profiler);
    return NULL;
}

static PLUGIN_Profiler_Error *profiler_destroy(ProfilerArgs *args) {
    if (args->profiler)
        free(args->profiler->bytes);
    free(args->profiler);
    return NULL;
}

static PLUGIN_Profiler_Error *profiler_start(ProfilerArgs *args) {
    (void)args;
    pthread_mutex_lock(&notes.lock);
    notes_clear();
    atomic_store(&notes.on, true);
    pthread_mutex_unlock(&notes.lock);
    return NULL;
}

static PLUGIN_Profiler_Error *profiler_stop(ProfilerArgs *args) {
    (void)args;
    atomic_store(&notes.on, false);
    return NULL;
}

static int run_order(const void *x, const void *y) {
    const XRun *a = x, *b = y;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

// The header asks for two calls, for the size and then for the bytes; jaxlib makes the first only and reads where `buffer` then points.
static PLUGIN_Profiler_Error *profiler_collect(CollectArgs *args) {
    PLUGIN_Profiler *p = args->profiler;
    if (p && !p->ready) {
        pthread_mutex_lock(&notes.lock);
        otrn_exe **exes = calloc((size_t)notes.nexes + 1, sizeof *exes);
        for (uint32_t i = 0; exes && i < notes.nexes; i++)
            exes[i] = notes.exes[i]->exe;
        if (notes.nruns)
            qsort(notes.runs, notes.nruns, sizeof *notes.runs, run_order);
        if (exes)
            p->size = rt_xspace(exes, notes.nexes, notes.runs, notes.nruns, &p->bytes);
        free(exes);
        notes_clear();
        pthread_mutex_unlock(&notes.lock);
        p->ready = true;
    }
    if (p && p->size && args->buffer)
        memcpy(args->buffer, p->bytes, p->size);
    else if (p)
        args->buffer = p->bytes;
    args->buffer_size_in_bytes = p ? p->size : 0;
    return NULL;
}

static void error_destroy(ErrorArgs *args) { (void)args; }
static void error_message(ErrorMessageArgs *args) { args->message = "", args->message_size = 0; }
static PLUGIN_Profiler_Error *error_code(ErrorCodeArgs *args) {
    args->code = 0;
    return NULL;
}

static const PLUGIN_Profiler_Api profiler_api = {
    .struct_size = sizeof(PLUGIN_Profiler_Api),
    .error_destroy = error_destroy,
    .error_message = error_message,
    .error_get_code = error_code,
    .create = profiler_create,
    .destroy = profiler_destroy,
    .start = profiler_start,
    .stop = profiler_stop,
    .collect_data = profiler_collect,
};

const PjProfilerExtension pj_profiler_extension = {
    .base = {.struct_size = sizeof(PjProfilerExtension),
             .type = PJRT_Extension_Type_Profiler},
    .profiler_api = &profiler_api,
};
