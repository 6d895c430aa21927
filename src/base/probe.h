// SPDX-License-Identifier: Apache-2.0
// probe.h — what a core can do right now, to hold measured rates against.
#ifndef OTRN_BASE_PROBE_H
#define OTRN_BASE_PROBE_H

#include "base/host.h"

// Works for some ten microseconds in vectors of that level; returns the flop done, 0 when there is no probe for it.
double probe_run(HostLevel level);

#endif
