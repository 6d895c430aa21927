// SPDX-License-Identifier: Apache-2.0
// png.h — PNG files as grey pixels of a byte, row by row.
#ifndef OTRN_TRAIN_PNG_H
#define OTRN_TRAIN_PNG_H

#include "base/arena.h"
#include "base/ctx.h"

#define PNG_SIDE_MAX 4096

typedef struct Png {
    uint32_t width, height;
    uint8_t *pixels;
} Png;

// All kinds but those that are interlaced. Raises PARSE.
void png_parse(Ctx *ctx, Arena *a, const char *name, const uint8_t *bytes, size_t size, Png *out);

#endif
