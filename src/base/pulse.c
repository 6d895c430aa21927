// SPDX-License-Identifier: Apache-2.0
// pulse.c — what ends a run from outside: a timer, and SIGINT.
//
// Python handles SIGINT by a note to itself that it reads once the call into us returns: without our look at the signal a long
// run would have to end first. Our handler counts and calls the one it found; it is there only while runs are that may last, and
// touches nothing but the count, so that no run can end under it.
#include "base/pulse.h"

#include <signal.h>
#include <string.h>
#include <time.h>

_Atomic unsigned pulse_interrupts;
_Thread_local Pulse *pulse_here;

void pulse_begin(Pulse *p, uint32_t of) {
    atomic_store_explicit(&p->stop, PULSE_GOES, memory_order_relaxed);
    atomic_store_explicit(&p->at, 0, memory_order_relaxed);
    atomic_store_explicit(&p->of, of, memory_order_relaxed);
}

// --- time ------------------------------------------------------------------------------------------------

static void *timer_main(void *arg) {
    PulseTimer *t = arg;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)t->seconds;
    pthread_mutex_lock(&t->lock);
    int late = 0;
    while (!t->end && !late)
        late = pthread_cond_timedwait(&t->wake, &t->lock, &until);
    if (!t->end)
        atomic_store_explicit(&t->pulse->stop, PULSE_LATE, memory_order_relaxed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void pulse_timer_begin(PulseTimer *t, Pulse *p, uint64_t seconds) {
    *t = (PulseTimer){.pulse = p, .seconds = seconds};
    if (!seconds)
        return;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, &attr);
    pthread_condattr_destroy(&attr);
    sigset_t all, old; // signals are for the program's own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    t->on = pthread_create(&t->thread, NULL, timer_main, t) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void pulse_timer_end(PulseTimer *t) {
    if (!t->seconds)
        return;
    pthread_mutex_lock(&t->lock);
    t->end = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->on)
        pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wake);
}

// --- SIGINT ----------------------------------------------------------------------------------------------

// A process has one handler: these are its.
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned catching; // pulses between begin and end
static struct sigaction theirs;
static bool ours;

static void on_interrupt(int sig, siginfo_t *info, void *context) {
    atomic_fetch_add_explicit(&pulse_interrupts, 1, memory_order_relaxed);
    if (theirs.sa_flags & SA_SIGINFO)
        theirs.sa_sigaction(sig, info, context);
    else
        theirs.sa_handler(sig);
}

static bool is_function(const struct sigaction *a) {
    return a->sa_flags & SA_SIGINFO ? a->sa_sigaction != NULL : a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

void pulse_catch_begin(Pulse *p) {
    pthread_mutex_lock(&handler_lock);
    p->seen = atomic_load_explicit(&pulse_interrupts, memory_order_relaxed); // before the handler is there: none is lost
    if (catching++ == 0) {
        sigaction(SIGINT, NULL, &theirs);
        ours = is_function(&theirs);
        struct sigaction own = {.sa_sigaction = on_interrupt, .sa_mask = theirs.sa_mask, .sa_flags = theirs.sa_flags | SA_SIGINFO};
        if (ours)
            sigaction(SIGINT, &own, NULL);
    }
    p->catches = ours;
    pthread_mutex_unlock(&handler_lock);
}

void pulse_catch_end(Pulse *p) {
    pthread_mutex_lock(&handler_lock);
    p->catches = false;
    if (--catching == 0 && ours) {
        struct sigaction now;
        sigaction(SIGINT, NULL, &now); // somebody may have set another meanwhile
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_interrupt)
            sigaction(SIGINT, &theirs, NULL);
        ours = false;
    }
    pthread_mutex_unlock(&handler_lock);
}
