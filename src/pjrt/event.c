// SPDX-License-Identifier: Apache-2.0
// event.c — events: the shared one that is always ready, and those the framework makes itself.
//
// Work is finished when our functions return, so every event we hand out is the constant `ready`.
// Event_Create gives real ones: counted, because a callback may destroy the event that runs it;
// callbacks run without the lock, from a list taken off the event first.
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
    bool is_ready;
    PJRT_Error_Code code;
    char *text;
    Waiter *first, **last;
};

static const PJRT_Event ready = {.is_ready = true};

PJRT_Event *pj_event_ready(void) { return (PJRT_Event *)&ready; }

static void event_drop(PJRT_Event *e) {
    if (e == &ready || atomic_fetch_sub(&e->refs, 1) != 1)
        return;
    while (e->first) { // never set: its waiters are told nothing, as their arguments may be gone
        Waiter *w = e->first;
        e->first = w->next;
        free(w);
    }
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    free(e->text);
    free(e);
}

static PJRT_Error *event_error(const PJRT_Event *e) { // of a ready event; a new object each time
    return e->code ? pj_error(e->code, "%s", e->text ? e->text : "") : PJ_OK;
}

static bool event_is_ready(PJRT_Event *e) {
    if (e == &ready)
        return true;
    pthread_mutex_lock(&e->lock);
    bool is = e->is_ready;
    pthread_mutex_unlock(&e->lock);
    return is;
}

PJRT_Error *pj_Event_Destroy(PJRT_Event_Destroy_Args *args) {
    if (args->event)
        event_drop(args->event);
    return PJ_OK;
}

PJRT_Error *pj_Event_IsReady(PJRT_Event_IsReady_Args *args) {
    args->is_ready = event_is_ready(args->event);
    return PJ_OK;
}

PJRT_Error *pj_Event_Error(PJRT_Event_Error_Args *args) {
    if (!event_is_ready(args->event))
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: the event is not ready yet");
    return event_error(args->event);
}

PJRT_Error *pj_Event_Await(PJRT_Event_Await_Args *args) {
    PJRT_Event *e = args->event;
    if (e != &ready) {
        pthread_mutex_lock(&e->lock);
        while (!e->is_ready)
            pthread_cond_wait(&e->changed, &e->lock);
        pthread_mutex_unlock(&e->lock);
    }
    return event_error(e);
}

PJRT_Error *pj_Event_OnReady(PJRT_Event_OnReady_Args *args) {
    PJRT_Event *e = args->event;
    if (!event_is_ready(e)) {
        Waiter *w = malloc(sizeof *w);
        if (!w)
            return pj_error_nomem();
        *w = (Waiter){.callback = args->callback, .arg = args->user_arg};
        pthread_mutex_lock(&e->lock);
        bool waits = !e->is_ready;
        if (waits) {
            *e->last = w;
            e->last = &w->next;
        }
        pthread_mutex_unlock(&e->lock);
        if (waits)
            return PJ_OK;
        free(w);
    }
    args->callback(event_error(e), args->user_arg);
    return PJ_OK;
}

PJRT_Error *pj_Event_Create(PJRT_Event_Create_Args *args) {
    PJRT_Event *e = calloc(1, sizeof *e);
    if (!e)
        return pj_error_nomem();
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    atomic_init(&e->refs, 1);
    e->last = &e->first;
    args->event = e;
    return PJ_OK;
}

PJRT_Error *pj_Event_Set(PJRT_Event_Set_Args *args) {
    PJRT_Event *e = args->event;
    if (e == &ready)
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: the event is already set");
    char *text = args->error_code ? strndup(args->error_message, args->error_message_size) : NULL;
    if (args->error_code && !text)
        return pj_error_nomem();
    pthread_mutex_lock(&e->lock);
    bool again = e->is_ready;
    Waiter *waiters = NULL;
    if (!again) {
        e->is_ready = true;
        e->code = args->error_code;
        e->text = text;
        waiters = e->first;
        e->first = NULL;
        e->last = &e->first;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    if (again) {
        free(text);
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: the event is already set");
    }
    atomic_fetch_add(&e->refs, 1); // a callback may destroy e
    while (waiters) {
        Waiter *w = waiters;
        waiters = w->next;
        w->callback(event_error(e), w->arg);
        free(w);
    }
    event_drop(e);
    return PJ_OK;
}
