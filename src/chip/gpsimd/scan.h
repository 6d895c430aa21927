// SPDX-License-Identifier: Apache-2.0
// scan.h — running sums hidden in a reduce_window.
#ifndef OTRN_CHIP_GP_SCAN_H
#define OTRN_CHIP_GP_SCAN_H

#include "chip/gpsimd/window.h"

// Runs the kernel as a scan when it is one; false when it is not.
bool scan_try(const GpCall *c, const Windows *w);

#endif
