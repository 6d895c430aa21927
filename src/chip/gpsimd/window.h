// SPDX-License-Identifier: Apache-2.0
// window.h — windows sliding over a padded, dilated tensor.
#ifndef OTRN_CHIP_GP_WINDOW_H
#define OTRN_CHIP_GP_WINDOW_H

#include "chip/gpsimd/gp.h"

typedef struct WindowAxis { // element w of the window at output o reads padded position o step + w
                            // gap - low
    int64_t in, out, size;  // extents of operand, output and window
    int64_t step, gap;      // window stride and dilation
    int64_t base;           // base dilation: position p holds element p / base when it divides
    int64_t low;            // padding in front
} WindowAxis;

typedef struct Windows {
    WindowAxis axis[OTRN_MAX_RANK];
    int rank;
    int64_t count; // elements of one window
} Windows;

// From window_dimensions, window_strides, base_dilations, window_dilations and padding. False when
// an attribute is wrong or the output's extents do not follow.
bool windows_init(Windows *w, const Kern *k, const KTensor *in, const KTensor *out);
static inline int64_t window_position(const WindowAxis *a, int64_t o, int64_t w) {
    return o * a->step + w * a->gap - a->low;
}
// Operand index at a padded position, or -1.
static inline int64_t window_index(const WindowAxis *a, int64_t position) {
    if (position < 0 || position % a->base)
        return -1;
    return position / a->base < a->in ? position / a->base : -1;
}

#endif
