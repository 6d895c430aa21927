// SPDX-License-Identifier: Apache-2.0
// layouts.h — in which order the axes of an argument or a result lie in memory.
#ifndef OTRN_PASS_LAYOUTS_H
#define OTRN_PASS_LAYOUTS_H

#include "hlo/hlo.h"

#define LAYOUT_RANK_MAX 16

// The axes from major to minor, four bits each from the lowest; 0: row by row.
typedef uint64_t LayoutOrder;
static inline uint32_t layout_axis(LayoutOrder order, uint32_t place) {
    return order ? (uint32_t)(order >> 4 * place & 15) : place;
}
// Of the entry's arguments, then of its results. False: all lie row by row. Raises UNSUPPORTED.
bool layouts_said(Hlo *h, LayoutOrder *orders);

#endif
