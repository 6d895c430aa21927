// SPDX-License-Identifier: Apache-2.0
// chain.h — instructions of a run that go over the same rows element by element, as one pass over them.
//
// One by one, each of them reads its operands from the nearest cache and writes its result back: storing is what bounds
// them. A chain takes a few vectors of a row through all of them. Its program is that of a machine with one accumulator as
// wide as those vectors: what the next instruction takes stays there, what others need later lies in a slot of a few lines,
// and only what somebody outside the chain reads is written to its place.
//
//   place, slot, number ──► accumulator op= … ──► place, slot, register of the row
//
// The bits are those of one by one: the same operations in the same order on each element. NaNs may differ on the way, as
// any of them becomes the one NaN (engine.h) before it is seen.
#ifndef OTRN_CHIP_CHAIN_H
#define OTRN_CHIP_CHAIN_H

#include "chip/core/engine.h"

// Joins neighbours among the jobs of a run; a chain takes the first one's place and the memory of the rest, EngJob.span of
// them. Nothing happens on hosts without such a machine.
void chains_find(EngJob *jobs, uint32_t njobs, const EngLevel *eng);
// Rows [begin, end) of partitions, as eng_job_run.
void chain_rows(const EngJob *j, uint32_t slice, uint32_t begin, uint32_t end, uint8_t *local);

#endif
