// SPDX-License-Identifier: Apache-2.0
// status.h — what a process does, for `otrn top`: a page of shared memory in a folder of its user's own.
//
// The first program that runs in an environment makes the page, closing the environment removes it; what a killed process left
// is known by its pid and when that began, and removed by who finds it. Whoever runs programs (JAX, PyTorch, otrn train) goes
// through here. One thread writes at a time, readers take what they see: the numbers are for people.
#ifndef OTRN_RT_STATUS_H
#define OTRN_RT_STATUS_H

#include "base/arena.h"
#include "base/opt.h"

#define STATUS_VERSION 1
#define STATUS_MAGIC 0x4e52544f // "OTRN"

typedef struct StatusPage {
    uint32_t magic, version;
    int64_t pid;
    uint64_t began;                // of the process, in the system's ticks; 0: not known
    double opened;                 // seconds since 1970
    uint64_t runs;
    double busy_seconds;           // in them
    uint64_t hbm_bytes, hbm_capacity; // of one device: of the program that runs, at its peak
    uint32_t devices, rank, world;
    uint32_t pad;
    int64_t step, steps;           // of a training run; steps 0: none is known
    double loss, modelled_us;
    double engines[OTRN_ENGINES];  // share of the modelled time; all 0: not known
    char program[64], command[160];
} StatusPage;

typedef struct Status Status;
Status *status_open(const Options *o); // NULL: there is no place for it, and nothing is told
void status_close(Status *s);          // may be NULL
StatusPage *status_page(Status *s);    // NULL for NULL

typedef VEC(StatusPage) StatusPages;
void status_list(Arena *a, const Options *o, StatusPages *out); // of processes that run, by pid; removes what others left

#endif
