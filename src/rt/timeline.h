// SPDX-License-Identifier: Apache-2.0
// timeline.h — the runs of a process for jax.profiler.
#ifndef OTRN_RT_TIMELINE_H
#define OTRN_RT_TIMELINE_H

#include "clock/xplane.h"
#include "otrn.h"

// A serialised XSpace (clock/xplane.h) of runs of these programs, each on the chip it was compiled for; allocated with
// malloc. Returns its size, 0 when there is nothing or no memory.
size_t rt_xspace(otrn_exe *const *exes, uint32_t count, const XRun *runs, uint32_t nruns, uint8_t **out);

#endif
