// SPDX-License-Identifier: Apache-2.0
// queue.c — one thread that runs launches in the order they came.
//
// The thread is made with the first launch and sleeps between them. A queue may be closed by its own
// last task (the task drops the last reference to a client): then the thread frees the queue when
// it ends. A caller that is far ahead of the thread waits for it.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "pjrt/pjrt.h"

#define BEHIND_MAX 64u // launches that may wait

struct Queue {
    pthread_mutex_t lock;
    pthread_cond_t work, idle; // idle: nothing left, or room again
    Task *first, **last;
    atomic_size_t pending; // queued or running
    pthread_t thread;
    bool started, stop, own_end; // own_end: the thread itself frees the queue
};

Queue *pj_queue_make(void) {
    Queue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->idle, NULL);
    q->last = &q->first;
    return q;
}

static void queue_free(Queue *q) {
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->work);
    pthread_cond_destroy(&q->idle);
    free(q);
}

static void *queue_main(void *arg) {
    Queue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->stop)
            pthread_cond_wait(&q->work, &q->lock);
        Task *t = q->first;
        if (!t)
            break;
        q->first = t->next;
        if (!q->first)
            q->last = &q->first;
        pthread_mutex_unlock(&q->lock);
        t->run(t);
        pthread_mutex_lock(&q->lock);
        size_t before = atomic_fetch_sub(&q->pending, 1);
        if (before == 1 || before == BEHIND_MAX)
            pthread_cond_broadcast(&q->idle);
    }
    bool own_end = q->own_end;
    pthread_mutex_unlock(&q->lock);
    if (own_end)
        queue_free(q);
    return NULL;
}

// Signals of the program that loaded us are for its own threads.
static bool thread_make(Queue *q) {
    sigset_t all, old;
    sigfillset(&all);
    const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigdelset(&all, ours[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&q->thread, NULL, queue_main, q) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

bool pj_queue_push(Queue *q, Task *t) {
    t->next = NULL;
    pthread_mutex_lock(&q->lock);
    bool mine = q->started && pthread_equal(pthread_self(), q->thread);
    while (!mine && atomic_load(&q->pending) >= BEHIND_MAX)
        pthread_cond_wait(&q->idle, &q->lock);
    bool ok = q->started || (q->started = thread_make(q));
    if (ok) {
        atomic_fetch_add(&q->pending, 1);
        *q->last = t;
        q->last = &t->next;
        pthread_cond_signal(&q->work);
    }
    pthread_mutex_unlock(&q->lock);
    return ok;
}

bool pj_queue_is_idle(Queue *q) { return atomic_load(&q->pending) == 0; }

// is this the queue's own thread?
static bool pj_queue_is_mine(Queue *q) {
    pthread_mutex_lock(&q->lock);
    bool mine = q->started && pthread_equal(pthread_self(), q->thread);
    pthread_mutex_unlock(&q->lock);
    return mine;
}

void pj_queue_drain(Queue *q, unsigned limit_ms) {
    if (pj_queue_is_mine(q))
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += limit_ms / 1000;
    until.tv_nsec += (long)(limit_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&q->lock);
    while (atomic_load(&q->pending) &&
           pthread_cond_timedwait(&q->idle, &q->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&q->lock);
}

void pj_queue_close(Queue *q) {
    if (!q)
        return;
    bool mine = pj_queue_is_mine(q);
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    q->own_end = mine;
    pthread_cond_signal(&q->work);
    bool started = q->started;
    pthread_mutex_unlock(&q->lock);
    if (mine) {
        pthread_detach(pthread_self());
    } else {
        if (started)
            pthread_join(q->thread, NULL);
        queue_free(q);
    }
}
