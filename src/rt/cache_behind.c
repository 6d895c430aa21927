// SPDX-License-Identifier: Apache-2.0
// cache_behind.c — entries written by a thread of their own, so that who compiles need not wait for a disk.
//
// The claim goes along: whoever wants the same program meanwhile waits for the entry as for one being compiled. Who
// ends its process without a word (rt_writer_wait, rt_writer_free) loses what was not written yet, and nothing else.
// In a child made by fork there is no such thread, and the caller writes.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rt/rt.h"

#define WAIT_S 30 // longer than any disk takes for what can be under way

typedef struct Item {
    struct Item *next;
    RtPut put; // its texts and bytes lie behind this
} Item;

struct RtWriter {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    Item *first, *last;
    bool busy, stop, started;
    pthread_t thread;
    atomic_int process; // that has the thread; 0: there is none yet
};

static void *writer_main(void *arg) {
    RtWriter *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->stop)
            pthread_cond_wait(&w->more, &w->lock);
        Item *i = w->first;
        if (!i)
            break;
        w->first = i->next;
        w->busy = true;
        pthread_mutex_unlock(&w->lock);
        rt_cache_put(&i->put);
        rt_cache_release(i->put.claim);
        free(i);
        pthread_mutex_lock(&w->lock);
        w->busy = false;
        if (!w->first)
            pthread_cond_broadcast(&w->done);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

RtWriter *rt_writer_make(void) {
    RtWriter *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    pthread_cond_init(&w->done, NULL);
    return w;
}

// Started with the first entry. Signals are for the program's own threads.
static bool writer_start(RtWriter *w) {
    if (w->started)
        return true;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    atomic_store(&w->process, getpid());
    w->started = pthread_create(&w->thread, NULL, writer_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return w->started;
}

static bool is_elsewhere(RtWriter *w) {
    int process = atomic_load(&w->process);
    return process && process != getpid();
}

static char *text_copy(char **at, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = memcpy(*at, text, n);
    *at += n;
    return copy;
}

bool rt_writer_add(RtWriter *w, const RtPut *p) {
    if (!w || is_elsewhere(w))
        return false;
    Item *i = malloc(sizeof *i + strlen(p->dir) + strlen(p->key) + strlen(p->inputs) + strlen(p->about) + 4 + p->size);
    if (!i)
        return false;
    char *at = (char *)(i + 1);
    *i = (Item){.put = *p};
    i->put.dir = text_copy(&at, p->dir);
    i->put.key = text_copy(&at, p->key);
    i->put.inputs = text_copy(&at, p->inputs);
    i->put.about = text_copy(&at, p->about);
    i->put.bytes = memcpy(at, p->bytes, p->size);
    pthread_mutex_lock(&w->lock);
    bool ok = writer_start(w);
    if (ok) {
        if (w->first)
            w->last->next = i;
        else
            w->first = i;
        w->last = i;
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->lock);
    if (!ok)
        free(i);
    return ok;
}

void rt_writer_wait(RtWriter *w) {
    if (!w || is_elsewhere(w))
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&w->lock);
    while ((w->first || w->busy) && !pthread_cond_timedwait(&w->done, &w->lock, &until))
        ;
    pthread_mutex_unlock(&w->lock);
}

void rt_writer_free(RtWriter *w) {
    if (!w || is_elsewhere(w))
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    pthread_cond_destroy(&w->done);
    free(w);
}
