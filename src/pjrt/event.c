// SPDX-License-Identifier: Apache-2.0
// event.c — events: the shared one that is always ready, those of launches, those the framework makes.
//
// An event is counted, because a callback may destroy the event that runs it, and because the event
// of a launch is shared by everything the launch computes. Callbacks run without the lock, from a
// list taken off the event first, each with an error object of its own.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

typedef struct Waiter {
    struct Waiter *next;
    void (*callback)(PJRT_Error *, void *);
    void *arg;
} Waiter;

struct PJRT_Event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int refs;
    atomic_bool is_ready;
    PJRT_Error *error; // once ready
    Waiter *first, **last;
};

static const PJRT_Event ready = {.is_ready = true};

PJRT_Event *pj_event_ready(void) { return (PJRT_Event *)&ready; }

PJRT_Event *pj_event_make(void) {
    PJRT_Event *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    atomic_init(&e->refs, 1);
    e->last = &e->first;
    return e;
}

void pj_event_hold(PJRT_Event *e) {
    if (e != &ready)
        atomic_fetch_add(&e->refs, 1);
}

void pj_event_drop(PJRT_Event *e) {
    if (!e || e == &ready || atomic_fetch_sub(&e->refs, 1) != 1)
        return;
    while (e->first) { // never set: its waiters are told nothing, as their arguments may be gone
        Waiter *w = e->first;
        e->first = w->next;
        free(w);
    }
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.error = e->error});
    free(e);
}

bool pj_event_is_ready(PJRT_Event *e) { return atomic_load_explicit(&e->is_ready, memory_order_acquire); }

PJRT_Error *pj_event_error(PJRT_Event *e) { return pj_error_dup(e->error); }

void pj_event_set(PJRT_Event *e, PJRT_Error *error) {
    pthread_mutex_lock(&e->lock);
    e->error = error;
    Waiter *waiters = e->first;
    e->first = NULL;
    e->last = &e->first;
    atomic_store_explicit(&e->is_ready, true, memory_order_release);
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    pj_event_hold(e); // a callback may destroy e
    while (waiters) {
        Waiter *w = waiters;
        waiters = w->next;
        w->callback(pj_event_error(e), w->arg);
        free(w);
    }
    pj_event_drop(e);
}

PJRT_Error *pj_event_wait(PJRT_Event *e) {
    if (!pj_event_is_ready(e)) {
        pthread_mutex_lock(&e->lock);
        while (!pj_event_is_ready(e))
            pthread_cond_wait(&e->changed, &e->lock);
        pthread_mutex_unlock(&e->lock);
    }
    return pj_event_error(e);
}

PJRT_Error *pj_event_then(PJRT_Event *e, void (*fn)(PJRT_Error *, void *), void *arg) {
    if (!pj_event_is_ready(e)) {
        Waiter *w = malloc(sizeof *w);
        if (!w)
            return pj_error_nomem();
        *w = (Waiter){.callback = fn, .arg = arg};
        pthread_mutex_lock(&e->lock);
        bool waits = !pj_event_is_ready(e);
        if (waits) {
            *e->last = w;
            e->last = &w->next;
        }
        pthread_mutex_unlock(&e->lock);
        if (waits)
            return PJ_OK;
        free(w);
    }
    fn(pj_event_error(e), arg);
    return PJ_OK;
}

// ---- the table's rows

PJRT_Error *pj_Event_Destroy(PJRT_Event_Destroy_Args *args) {
    pj_event_drop(args->event);
    return PJ_OK;
}

PJRT_Error *pj_Event_IsReady(PJRT_Event_IsReady_Args *args) {
    args->is_ready = pj_event_is_ready(args->event);
    return PJ_OK;
}

PJRT_Error *pj_Event_Error(PJRT_Event_Error_Args *args) {
    if (!pj_event_is_ready(args->event))
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: the event is not ready yet");
    return pj_event_error(args->event);
}

PJRT_Error *pj_Event_Await(PJRT_Event_Await_Args *args) { return pj_event_wait(args->event); }

PJRT_Error *pj_Event_OnReady(PJRT_Event_OnReady_Args *args) {
    return pj_event_then(args->event, args->callback, args->user_arg);
}

PJRT_Error *pj_Event_Create(PJRT_Event_Create_Args *args) {
    args->event = pj_event_make();
    return args->event ? PJ_OK : pj_error_nomem();
}

PJRT_Error *pj_Event_Set(PJRT_Event_Set_Args *args) {
    if (pj_event_is_ready(args->event))
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: the event is already set");
    PJRT_Error *error = args->error_code ? pj_error(args->error_code, "%.*s", (int)args->error_message_size,
                                                    args->error_message)
                                         : PJ_OK;
    pj_event_set(args->event, error);
    return PJ_OK;
}
