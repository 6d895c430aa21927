// SPDX-License-Identifier: Apache-2.0
// pulse.h — a run seen from outside: how far it is, and whether it is to end before its program does.
//
// A pulse belongs to an environment, whose runs take turns, or to a tool. Who executes looks at it at branches, between
// instructions and between the chunks of a kernel (a relaxed load or two), and ends with OTRN_TIMEOUT or OTRN_INTERRUPTED; what
// was computed by then is of no use. The thread that executes enters the pulse, the workers of its pool with it: code below needs no
// argument for it, and other threads that use the same pool (to compile) are not concerned.
#ifndef OTRN_BASE_PULSE_H
#define OTRN_BASE_PULSE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PULSE_GOES, PULSE_LATE, PULSE_STOPPED };

typedef struct Pulse {
    _Atomic int stop;            // PULSE_…
    _Atomic uint32_t at, of;     // instructions, or operations, reached, and how many there are; of 0: not known
    _Atomic(const char *) stage; // of a compilation; NULL: none
    bool catches;                // SIGINT stops it; `seen` of them came before
    unsigned seen;
} Pulse;

extern _Atomic unsigned pulse_interrupts;       // signals so far (pulse.c)
extern _Thread_local Pulse *pulse_here;         // what this thread executes for; NULL: nothing that stops

static inline Pulse *pulse_enter(Pulse *p) { // returns what to enter again afterwards
    Pulse *before = pulse_here;
    pulse_here = p;
    return before;
}

static inline int pulse_state(const Pulse *p) {
    if (!p)
        return PULSE_GOES;
    int stop = atomic_load_explicit(&p->stop, memory_order_relaxed);
    if (!stop && p->catches && atomic_load_explicit(&pulse_interrupts, memory_order_relaxed) != p->seen)
        return PULSE_STOPPED;
    return stop;
}
static inline bool pulse_stops(const Pulse *p) { return pulse_state(p) != PULSE_GOES; }

static inline void pulse_tell(Pulse *p, uint32_t at) {
    if (p)
        atomic_store_explicit(&p->at, at, memory_order_relaxed);
}

void pulse_begin(Pulse *p, uint32_t of); // nothing is reached, nobody wants an end
static inline void pulse_stage(const char *name) { // what the thread is at
    if (pulse_here)
        atomic_store_explicit(&pulse_here->stage, name, memory_order_relaxed);
}

// A thread that waits for the time to pass; seconds 0: none.
typedef struct PulseTimer {
    Pulse *pulse;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t seconds;
    bool on, end;
} PulseTimer;
void pulse_timer_begin(PulseTimer *t, Pulse *p, uint64_t seconds);
void pulse_timer_end(PulseTimer *t);

// Between them a SIGINT that the process handles stops the pulse too, and goes on to its handler. A process that does not
// handle it ends by it, as ever.
void pulse_catch_begin(Pulse *p);
void pulse_catch_end(Pulse *p);

#endif
