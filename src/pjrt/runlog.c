// SPDX-License-Identifier: Apache-2.0
// runlog.c — what a client ran: the last program, and all of them while a profile is taken.
//
// The functions are for the Python package: a client is a number that opentrn_clients gives (also the attribute opentrn_client of
// its devices), answers are JSON. Modelled times are computed when they are asked for, never while programs run.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

// ---- the clients of this process
//
// Of all front ends: TensorFlow and torch_xla have no way to ask for theirs. A profile may begin before a client is made.

static struct {
    pthread_mutex_t lock; // taken before a client's
    PJRT_Client *first;
    unsigned profiles; // under way
} clients = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

void pj_runlog_init(PJRT_Client *c) {
    pthread_mutex_lock(&clients.lock);
    c->log.next = clients.first;
    c->log.recording = clients.profiles > 0;
    clients.first = c;
    pthread_mutex_unlock(&clients.lock);
}

static void client_forget(PJRT_Client *c) {
    pthread_mutex_lock(&clients.lock);
    PJRT_Client **at = &clients.first;
    while (*at && *at != c)
        at = &(*at)->log.next;
    if (*at)
        *at = c->log.next;
    pthread_mutex_unlock(&clients.lock);
}

// ---- keeping

static void record_add(RunLog *log, PJRT_Executable *e, uint64_t ns) {
    size_t i = e->logged && e->logged <= log->n && log->list[e->logged - 1].exe == e ? e->logged - 1 : log->n;
    if (i == log->cap) {
        size_t cap = log->cap ? 2 * log->cap : 16;
        RunRecord *more = realloc(log->list, cap * sizeof *more);
        if (!more)
            return;
        log->list = more;
        log->cap = cap;
    }
    if (i == log->n) {
        atomic_fetch_add(&e->refs, 1);
        log->list[log->n++] = (RunRecord){.exe = e};
        e->logged = log->n;
    }
    log->list[i].runs++;
    log->list[i].ns += ns;
}

void pj_runlog_add(PJRT_Client *c, PJRT_Executable *e, uint64_t ns) {
    RunLog *log = &c->log;
    PJRT_Executable *old = NULL;
    if (!log->on)
        return;
    pj_lock(c);
    if (!c->destroyed) {
        if (log->last.exe != e) {
            old = log->last.exe;
            atomic_fetch_add(&e->refs, 1);
        }
        log->last = (RunRecord){e, 1, ns};
        if (log->recording)
            record_add(log, e, ns);
    }
    pj_unlock(c);
    pj_exe_drop(old);
}

static void records_free(RunRecord *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        pj_exe_drop(list[i].exe);
    free(list);
}

// A copy of the records so far, or all of them with nothing left behind.
static RunRecord *records_take(PJRT_Client *c, bool all, size_t *n) {
    pj_lock(c);
    RunLog *log = &c->log;
    RunRecord *list = all ? log->list : malloc((log->n + 1) * sizeof *list);
    *n = list ? log->n : 0;
    if (all) {
        log->list = NULL;
        log->n = log->cap = 0;
    } else if (*n) {
        memcpy(list, log->list, *n * sizeof *list);
        for (size_t i = 0; i < *n; i++)
            atomic_fetch_add(&list[i].exe->refs, 1);
    }
    pj_unlock(c);
    return list;
}

void pj_runlog_fini(PJRT_Client *c) {
    client_forget(c);
    size_t n;
    RunRecord *list = records_take(c, true, &n);
    records_free(list, n);
    pj_lock(c);
    PJRT_Executable *last = c->log.last.exe;
    c->log.last = (RunRecord){0};
    pj_unlock(c);
    pj_exe_drop(last);
}

// ---- telling

typedef struct Text {
    char *at;
    size_t n, cap;
} Text;

static void text_add(Text *t, const char *s, size_t n) {
    size_t room = t->cap > t->n ? t->cap - t->n : 0;
    if (n + 1 <= room) {
        memcpy(t->at + t->n, s, n);
        t->at[t->n + n] = 0;
    }
    t->n += n;
}

#define SHOWN_ARGS 4

// "8x12xf32, 8xi64, …": types of the first arguments.
static void takes_print(const otrn_exe *exe, char *out, size_t out_bytes) {
    size_t n = 0, args = otrn_exe_num_args(exe);
    out[0] = 0;
    for (size_t i = 0; i < args && i < SHOWN_ARGS; i++) {
        const otrn_type *t = otrn_exe_arg_type(exe, i);
        n += (size_t)snprintf(out + n, out_bytes - n, "%s", i ? ", " : "");
        for (int d = 0; d < t->rank && n < out_bytes; d++)
            n += (size_t)snprintf(out + n, out_bytes - n, "%lldx", (long long)t->dims[d]);
        n += n < out_bytes ? (size_t)snprintf(out + n, out_bytes - n, "%s", otrn_dtype_name(t->dtype)) : 0;
        if (n >= out_bytes)
            return;
    }
    if (args > SHOWN_ARGS && out_bytes - n > sizeof ", …")
        snprintf(out + n, out_bytes - n, ", …");
}

static bool record_print(const RunRecord *r, const char *target, Text *out, otrn_error *err) {
    char line[16384], name[256], takes[1024];
    otrn_report report = OTRN_REPORT_INIT;
    if (otrn_time(r->exe->exe, target, &report, err))
        return false;
    size_t n = 0;
    for (const char *s = otrn_exe_name(r->exe->exe); *s && n + 1 < sizeof name; s++)
        name[n++] = strchr("\"\\", *s) || *s < ' ' ? '_' : *s;
    name[n] = 0;
    takes_print(r->exe->exe, takes, sizeof takes);
    int k = snprintf(line, sizeof line, "{\"name\": \"%s\", \"takes\": \"%s\", \"runs\": %llu, \"host_us\": %.3f, ", name, takes,
                     (unsigned long long)r->runs, (double)r->ns / 1e3);
    text_add(out, line, (size_t)k);
    pj_report_print(&report, line, sizeof line);
    text_add(out, line + 1, strlen(line + 1)); // without its opening brace
    return true;
}

// Takes over the records. Returns the bytes of the answer, or -1 with the error's text in `out`.
static long records_print(RunRecord *list, size_t n, const char *target, char *out, size_t out_bytes) {
    Text text = {out, 0, out_bytes};
    otrn_error err = OTRN_ERROR_INIT;
    bool ok = true;
    text_add(&text, "[", 1);
    for (size_t i = 0; i < n && ok; i++) {
        text_add(&text, i ? ", " : "", i ? 2 : 0);
        ok = record_print(&list[i], target, &text, &err);
    }
    text_add(&text, "]", 1);
    records_free(list, n);
    if (!ok)
        otrn_error_print(&err, out, out_bytes);
    return ok ? (long)text.n + 1 : -1;
}

static RunRecord last_take(PJRT_Client *c) {
    pj_lock(c);
    RunRecord last = c->log.last;
    if (last.exe)
        atomic_fetch_add(&last.exe->refs, 1);
    pj_unlock(c);
    return last;
}

// The last program that ran, as a list of one or none. target NULL: the one it was compiled for.
OTRN_API long opentrn_last_run(int64_t client, const char *target, char *out, size_t out_bytes);
// The clients of this process; at most `cap` of them are written, how many there are is returned.
OTRN_API size_t opentrn_clients(int64_t *out, size_t cap);
// A profile begins (1) or ends (0): while there is one, clients record, also those yet to be made. The first forgets what was
// recorded before it.
OTRN_API void opentrn_record(int begins);
// What ran while recording, one entry for a program, always in the same order.
OTRN_API long opentrn_runs(int64_t client, const char *target, char *out, size_t out_bytes);
// Writes the timeline of the last program as a trace. Returns 0, or -1 with the error's text in `out`.
OTRN_API int opentrn_trace(int64_t client, const char *target, const char *path, char *out, size_t out_bytes);

// The same for the program with this number in opentrn_runs' answer.
OTRN_API int opentrn_runs_write(int64_t client, int number, const char *target, const char *path, char *out, size_t out_bytes);

long opentrn_last_run(int64_t client, const char *target, char *out, size_t out_bytes) {
    RunRecord *list = malloc(sizeof *list);
    if (!list)
        return -1;
    *list = last_take((PJRT_Client *)(intptr_t)client);
    return records_print(list, list->exe ? 1 : 0, target, out, out_bytes);
}

size_t opentrn_clients(int64_t *out, size_t cap) {
    size_t n = 0;
    pthread_mutex_lock(&clients.lock);
    for (PJRT_Client *c = clients.first; c; c = c->log.next, n++)
        if (n < cap)
            out[n] = (int64_t)(intptr_t)c;
    pthread_mutex_unlock(&clients.lock);
    return n;
}

void opentrn_record(int begins) {
    pthread_mutex_lock(&clients.lock);
    bool first = begins && !clients.profiles;
    if (begins)
        clients.profiles++;
    else if (clients.profiles)
        clients.profiles--;
    for (PJRT_Client *c = clients.first; c; c = c->log.next) {
        size_t n = 0;
        RunRecord *old = first ? records_take(c, true, &n) : NULL;
        records_free(old, n);
        pj_lock(c);
        c->log.recording = clients.profiles > 0;
        pj_unlock(c);
    }
    pthread_mutex_unlock(&clients.lock);
}

long opentrn_runs(int64_t client, const char *target, char *out, size_t out_bytes) {
    size_t n;
    RunRecord *list = records_take((PJRT_Client *)(intptr_t)client, false, &n);
    return records_print(list, n, target, out, out_bytes);
}

// A program's timeline as a file; 0, or -1 with the error's text in `out`.
static int timeline_write(const PJRT_Executable *e, const char *target, const char *path, char *out, size_t out_bytes) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_profile *profile;
    otrn_status s = otrn_profile_make(e->exe, target, &profile, &err);
    if (!s)
        s = otrn_profile_trace(profile, path, &err);
    if (s)
        otrn_error_print(&err, out, out_bytes);
    otrn_profile_free(profile);
    return s ? -1 : 0;
}

int opentrn_trace(int64_t client, const char *target, const char *path, char *out, size_t out_bytes) {
    RunRecord last = last_take((PJRT_Client *)(intptr_t)client);
    if (!last.exe) {
        snprintf(out, out_bytes, "nothing ran yet");
        return -1;
    }
    int status = timeline_write(last.exe, target, path, out, out_bytes);
    pj_exe_drop(last.exe);
    return status;
}

int opentrn_runs_write(int64_t client, int number, const char *target, const char *path, char *out, size_t out_bytes) {
    size_t n;
    RunRecord *list = records_take((PJRT_Client *)(intptr_t)client, false, &n);
    int status = -1;
    if (number < 0 || (size_t)number >= n)
        snprintf(out, out_bytes, "program %d is not among the %zu that ran", number, n);
    else
        status = timeline_write(list[number].exe, target, path, out, out_bytes);
    records_free(list, n);
    return status;
}
