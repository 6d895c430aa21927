// SPDX-License-Identifier: Apache-2.0
// flow.h — instructions that do not meet in memory are carried out beside each other on the host's threads.
//
// Program order is one legal execution; any order that keeps apart what meets in memory gives the same bits. So the
// program is handed out in units, in program order: a run of the plan, the products of one PSUM range, a transfer, a
// transpose. A unit is cut into tasks; it may begin when the units before it that it meets have ended. No thread waits
// at the end of an instruction for the others while there is something else to do.
//
//   pc ──► units in flight (FLOW_UNITS), the oldest first ──► tasks ──► threads
//
// A unit goes to the thread that wrote what it reads, where it still is in the cache, unless that one has other work and
// another has none; all its tasks go to one thread while there are enough units for the others.
//
// Whoever finds little left to do hands out the next unit himself. Everything that is not a unit (kernels, branches,
// collectives, what has to be looked at by itself) ends the flow: chip.c carries it out when all threads are through.
#ifndef OTRN_CHIP_FLOW_H
#define OTRN_CHIP_FLOW_H

#include "chip/core/core.h"

size_t flow_bytes(void); // of the memory that flow_begin takes, zeros, aligned to 64
struct Flow *flow_begin(void *memory);
// Is it worth it? Programs of small instructions are quicker one by one. Asked once, when a program is loaded.
bool flow_wanted(const IsaShapes *shapes, uint32_t ncode);
// Do registers of the engines carry nothing from one instruction to the next?
bool flow_fresh(const IsaShapes *shapes);
// Executes from pc on as far as it goes, and returns where it ended: at pc itself, or behind. The run follows the plan.
uint32_t flow_run(Chip *c, ChipProg *p, uint32_t pc, uint8_t *const *segs);

#endif
