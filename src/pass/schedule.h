// SPDX-License-Identifier: Apache-2.0
// schedule.h — one schedule for all who want operations elsewhere in their region.
//
// Each op has a key, its place at first. Who moves an op gives it another, between two places or as that of another op (then the one that stood
// first goes first), and the region is put in order of keys once. What an op needs goes along: schedule_raise.
#ifndef OTRN_PASS_SCHEDULE_H
#define OTRN_PASS_SCHEDULE_H

#include "pass/walk.h"

typedef struct Schedule {
    Compile *c;
    Hlo *h;
    Users u;     // places as they were
    double *key; // per op
} Schedule;

typedef bool (*ScheduleMay)(const void *pass, const HloOp *op);

void schedule_init(Schedule *o, Compile *c);
static inline bool schedule_is_moved(const Schedule *o, OpId id) { return o->key[id] != o->u.position[id]; }
// The op, and what it needs that does not stand before that key, gets the key; false: one may not, or they are more than `most`, and none does.
bool schedule_raise(Schedule *o, OpId id, double key, ScheduleMay may, const void *pass, uint32_t most);
// The least key of an op of the region that reads the value; that of another region: -1. INFINITY: nobody does.
double schedule_first_read(const Schedule *o, RegionId r, ValueId v);
void schedule_make(Schedule *o, RegionId r); // by keys

#endif
