// SPDX-License-Identifier: Apache-2.0
// hints.h — what would make a program quicker or smaller, tried by compiling it again.
#ifndef OTRN_RT_HINTS_H
#define OTRN_RT_HINTS_H

#include "clock/html.h"
#include "rt/price.h"

typedef struct RtHint {
    const char *what, *how; // in words; the option, or what to write in the program
    double ns, hbm_bytes;   // of the program so compiled
    bool helps, changes_numbers;
} RtHint;

// `base` is the program, whose text or bytecode the bytes are, as priced by `how`. Returns how many were tried.
uint32_t rt_hints(Arena *a, const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, RtHint **out);
// Whether it is quicker when it masks with -inf instead of a finite number.
bool rt_hint_masks(const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, RtHint *out);
// "97.7 to 77.4 ms (-20.8 %)"
const char *rt_hint_text(Arena *a, const RtPriced *base, const RtHint *h);
// As the page has them.
HtmlRow *rt_hint_rows(Arena *a, const RtPriced *base, const RtHint *hints, uint32_t n);

#endif
